"""What the service says of sessions, handles, answers and histories, as plain JSON.

Losses, mechanisms and answers are given twice: as plain numbers for people, and as `exact`, in the library's canonical
encoding, of which our own client makes the same objects as a local session does.

>>> import counterpoint as cp
>>> loss_json(cp.PureDP("1/10"))
{'measure': 'PureDP', 'epsilon': 0.1, 'text': 'PureDP(0.1)', 'exact': '{"type":"PureDP/1","epsilon":"1/10"}'}
"""

import sys
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from msgspec import UNSET
from msgspec.structs import asdict

from counterpoint.answers.provenance import Provenance
from counterpoint.encoding import encode, plain_number
from counterpoint.errors import NotAllowed, NotCovered
from counterpoint.ledger.chain import Disclosure, Signed
from counterpoint.ledger.state import Fact, Grant
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.privacy.certificates import Certificate
from counterpoint.queries.request import Prepared
from counterpoint.service.problems import SessionId
from counterpoint.session.handle import Handle, Quote, Released
from counterpoint.session.session import Session
from counterpoint.session.subsessions import Partition

LARGEST = sys.float_info.max
"""The largest float."""


def loss_json(loss: Loss) -> dict[str, Any]:
    """A loss: its measure, its numbers, and how it is written."""
    return {"measure": type(loss).__name__, **_numbers(loss), "text": repr(loss), "exact": _exact(loss)}


def mechanism_json(mechanism: Mechanism) -> dict[str, Any]:
    """A mechanism: its class, its plain parameters, and how it is written."""
    name = type(mechanism).__name__
    return {"mechanism": name, **_numbers(mechanism), "text": repr(mechanism), "exact": _exact(mechanism)}


def session_json(data_set: str, session: Session) -> dict[str, Any]:
    """What a session has lost and has left."""
    rule = session.rule
    said: dict[str, Any] = {
        "session": str(SessionId(data_set, session._path)),
        "rule": repr(rule),
        "loss": loss_json(session.loss),
        "made_up": session.made_up,
        "exact": {"rule": _exact(rule)},
    }
    try:
        left = session.remaining
        exact = {"epsilon": plain_number(left.epsilon), "delta": plain_number(left.delta)}
        said["remaining"] = {"epsilon": plain(left.epsilon), "delta": plain(left.delta), "exact": exact}
    except NotAllowed as error:  # an odometer has no budget
        said["remaining"] = None
        said["no_budget"] = str(error)
    return said


def handle_json(data_set: str, handle: Handle, *, answers: bool = True) -> dict[str, Any]:
    """A launched mechanism; whether it has halted may follow from its answers, as a sparse vector's hits do."""
    said: dict[str, Any] = {
        "handle": str(SessionId(data_set, handle.path)),
        **mechanism_json(handle.mechanism),
        "cost": loss_json(handle.mechanism.claim.loss),
        "grid": plain_number(handle._source.update_grid),
        "made_up": handle._source.made_up,
    }
    return {**said, "halted": handle.halted} if answers else said


def given_json(data_set: str, given: Session | Partition) -> dict[str, Any]:
    """What was delegated or partitioned."""
    kind, what = given.as_given()
    return {**placed_json(data_set, given), "id": str(SessionId(data_set, given._path)), "kind": kind, "what": what}


def partition_json(data_set: str, parts: Partition) -> dict[str, Any]:
    """What was partitioned: by which column, what each part may lose, and what was charged for all of them."""
    return {
        "partition": str(SessionId(data_set, parts._path)),
        "by": parts._by,
        "within": [loss_json(loss) for loss in parts.within]
        if isinstance(parts.within, tuple)
        else loss_json(parts.within),
        "charged": loss_json(parts.loss),
    }


def placed_json(data_set: str, found: Session | Handle | Partition) -> dict[str, Any]:
    """Whatever lives at an id."""
    if isinstance(found, Session):
        return session_json(data_set, found)
    return handle_json(data_set, found) if isinstance(found, Handle) else partition_json(data_set, found)


def grant_json(id: SessionId, grant: Grant, session: Session) -> dict[str, Any]:
    """A grant, and how much of it is used."""
    return {
        "session": str(id),
        "to": grant.to,
        "until": grant.until,
        "mechanisms": None if grant.mechanisms is None else list(grant.mechanisms),
        "revoked": grant.revoked,
        "charged": loss_json(session.rule.bound(session._source.relation)),
        "used": loss_json(session.loss),
    }


def fact_json(data_set: str, number: int, fact: Fact) -> dict[str, Any]:
    """One line of a history."""
    at = str(SessionId(data_set, fact.path))
    return {"number": number, "kind": fact.kind, "at": at, "what": fact.what, "who": fact.who, "when": fact.at}


def certificate_json(certificate: Certificate) -> dict[str, Any]:
    """A derivation, as a tree."""
    return {
        "statement": certificate.statement,
        "theorem": certificate.theorem,
        "premises": [certificate_json(premise) for premise in certificate.premises],
    }


def quote_json(quoted: Quote) -> dict[str, Any]:
    """What a launch would cost."""
    return {
        "cost": loss_json(quoted.cost),
        "after": None if quoted.after is None else loss_json(quoted.after),
        "fits": quoted.fits,
        "refusal": quoted.refusal,
        "mechanism": None if quoted.mechanism is None else mechanism_json(quoted.mechanism),
    }


def answer_json(answer: object, provenance: Provenance) -> dict[str, Any]:
    """The answer of a question with its error at 95 % where it states one, its price, and how it came about."""
    reason = provenance.reason
    return {
        "value": plain(answer),
        **_with_error(answer),
        "units": provenance.prepared.measured_in,
        "cost": loss_json(provenance.mechanism.claim.loss),
        "mechanism": mechanism_json(provenance.mechanism),
        "why": reason.text(provenance.mechanism, provenance.asked),
        "made_up": provenance.made_up,
        "exact": {
            "mechanism": _exact(provenance.mechanism),
            "prepared": _exact(provenance.prepared),
            "released": _exact(provenance.released),
            "compared": _exact(reason.compared),
            "wanted": reason.wanted,
        },
    }


def released_json(released: Released) -> dict[str, Any]:
    """The answer of a launched mechanism, in the request's units."""
    return {"value": plain(released.in_units()), **raw_json(released)}


def raw_json(released: Released) -> dict[str, Any]:
    """The answer of a launched mechanism as it is, with what makes it one in units.

    A postprocessor may ask with a public part that does not go with the request: its answer need not be one in units.
    """
    return {
        "made_up": released.made_up,
        "exact": {
            "released": _exact(released.answer),
            "prepared": _exact(released.prepared),
            "grid": plain_number(released.grid),
        },
    }


def prepared_json(prepared: Prepared) -> dict[str, Any]:
    """What is public about a request: its shape, how far a unit moves it, and the grid of its integers."""
    return {
        "numbers": prepared.width,
        "grid": plain_number(prepared.grid),
        "sensitivity": prepared.sensitivity,
        "units": prepared.measured_in,
        "exact": _exact(prepared),
    }


def receipt_json(id: str, signed: Signed, disclosed: Disclosure) -> dict[str, Any]:
    """The id of a request, and its receipt as `counterpoint/checker.py` reads it from a file."""
    return {"id": id, "receipt": {**signed._asdict(), "disclosed": disclosed._asdict()}}


def _exact(value: object) -> str:
    return encode(value).decode()


def _with_error(answer: object) -> dict[str, Any]:
    table = getattr(answer, "table", None)
    if table is not None:
        return {"table": {head: [plain(value) for value in column] for head, column in table().columns().items()}}
    error = getattr(answer, "error", None)
    try:
        return {} if error is None else {"error": plain(error()), "probability": 0.95}
    except NotCovered:  # what was chosen states none; it has been paid for, and is answered
        return {}


def _numbers(value: Any) -> dict[str, Any]:
    """The plain fields of a loss or a mechanism."""
    fields = {name: plain(field) for name, field in asdict(value).items() if field is not None and field is not UNSET}
    return {name: field for name, field in fields.items() if isinstance(field, int | float | str | bool | list)}


def plain(value: Any) -> Any:
    """As JSON has it: an exact number as the nearest float, a table as nothing (it is given as such).

    A number beyond all floats is nothing, too: `exact` has it.

    >>> plain((Fraction(1, 4), Fraction(10**400, 3), "CA"))
    [0.25, None, 'CA']
    """
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float | Fraction):
        return float(value) if -LARGEST <= value <= LARGEST else None
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    return None
