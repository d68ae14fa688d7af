"""What the service says of sessions, handles, answers and histories, as plain JSON.

Numbers that may be exact are given twice: for people as a float, and exactly as a text. An answer also carries what our
own client makes the same answer of as a local session does, in the library's canonical encoding.

>>> import counterpoint as cp
>>> loss_shown(cp.PureDP("1/10"))
{'measure': 'PureDP', 'epsilon': 0.1, 'text': 'PureDP(0.1)'}
"""

from fractions import Fraction
from typing import Any

from msgspec import UNSET
from msgspec.structs import asdict

from counterpoint.encoding import encode
from counterpoint.errors import NotAllowed
from counterpoint.ledger.grants import Grant
from counterpoint.ledger.state import Fact
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.loss import Loss
from counterpoint.service.house import SessionId
from counterpoint.session.answering.origin import Known
from counterpoint.session.handle import Handle
from counterpoint.session.partition import Partition
from counterpoint.session.session import Session


def loss_shown(loss: Loss) -> dict[str, Any]:
    """A loss: its measure, its numbers, and how it is written."""
    return {"measure": type(loss).__name__, **_numbers(loss), "text": repr(loss)}


def mechanism_shown(mechanism: Mechanism) -> dict[str, Any]:
    """A mechanism: its class, its plain parameters, and how it is written."""
    return {"mechanism": type(mechanism).__name__, **_numbers(mechanism), "text": repr(mechanism)}


def session_shown(data_set: str, session: Session) -> dict[str, Any]:
    """What a session has lost and has left."""
    said: dict[str, Any] = {
        "session": str(SessionId(data_set, session._path)),
        "rule": repr(session.rule),
        "loss": loss_shown(session.loss),
    }
    try:
        left = session.remaining
        said["remaining"] = {"epsilon": float(left.epsilon), "delta": float(left.delta)}
    except NotAllowed:  # an odometer has no budget
        said["remaining"] = None
    return said


def handle_shown(data_set: str, handle: Handle) -> dict[str, Any]:
    """A launched mechanism."""
    return {
        "handle": str(SessionId(data_set, handle.path)),
        **mechanism_shown(handle.mechanism),
        "cost": loss_shown(handle.mechanism.claim.loss),
        "halted": handle.halted,
    }


def given_shown(data_set: str, given: Session | Partition) -> dict[str, Any]:
    """What was delegated or partitioned."""
    kind, what = given.as_given()
    return {"id": str(SessionId(data_set, given._path)), "kind": kind, "what": what}


def grant_shown(id: SessionId, grant: Grant, session: Session) -> dict[str, Any]:
    """A grant, and how much of it is used."""
    return {
        "session": str(id),
        "to": grant.to,
        "until": grant.until,
        "mechanisms": None if grant.mechanisms is None else list(grant.mechanisms),
        "revoked": grant.revoked,
        "charged": loss_shown(session.rule.bound(session._source.relation)),
        "used": loss_shown(session.loss),
    }


def fact_shown(data_set: str, number: int, fact: Fact) -> dict[str, Any]:
    """One line of a history."""
    at = str(SessionId(data_set, fact.path))
    return {"number": number, "kind": fact.kind, "at": at, "what": fact.what, "who": fact.who, "when": fact.at}


def certificate_shown(certificate: Certificate) -> dict[str, Any]:
    """A derivation, as a tree."""
    return {
        "statement": certificate.statement,
        "theorem": certificate.theorem,
        "premises": [certificate_shown(premise) for premise in certificate.premises],
    }


def answer_shown(answer: object) -> dict[str, Any]:
    """An answer with its error at 95 % where it states one, its price, and how it came about."""
    if not isinstance(answer, Known):
        return {"value": _plain(answer)}
    origin = answer._origin
    said: dict[str, Any] = {"value": _plain(answer), **_with_error(answer)}
    said |= {
        "units": answer.units,
        "cost": loss_shown(answer.cost),
        "mechanism": mechanism_shown(answer.mechanism),
        "why": answer.why,
        "made_up": answer.made_up,
    }
    said["exact"] = {
        "mechanism": encode(origin.mechanism).decode(),
        "prepared": encode(origin.prepared).decode(),
        "released": encode(origin.released).decode(),
    }
    return said


def _with_error(answer: object) -> dict[str, Any]:
    table = getattr(answer, "table", None)
    if table is not None:
        return {"table": {head: [_plain(value) for value in column] for head, column in table().columns().items()}}
    error = getattr(answer, "error", None)
    return {} if error is None else {"error": _plain(error()), "probability": 0.95}


def _numbers(value: Any) -> dict[str, Any]:
    """The plain fields of a loss or a mechanism."""
    fields = {name: _plain(field) for name, field in asdict(value).items() if field is not None and field is not UNSET}
    return {name: field for name, field in fields.items() if isinstance(field, int | float | str | bool | list)}


def _plain(value: Any) -> Any:
    """As JSON has it: an exact number as the nearest float, a table as nothing (it is given as such)."""
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float | Fraction):
        return float(value)
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    return None
