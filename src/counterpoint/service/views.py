"""Sessions, handles, partitions and grants as JSON.

The values in them (losses, mechanisms, rules) are written by `wire.documents`, where the client reads them.
"""

from typing import Any

from counterpoint.encoding import plain_number
from counterpoint.errors import NotAllowed
from counterpoint.ledger.state import Grant
from counterpoint.session.handle import Handle
from counterpoint.session.session import Session
from counterpoint.session.subsessions import Partition
from counterpoint.session.versions import DataVersion
from counterpoint.wire.documents import loss_json, mechanism_json, remaining_json, rule_json
from counterpoint.wire.problems import SessionId


def session_json(data_set: str, session: Session) -> dict[str, Any]:
    """The loss of a session, and what is left of its budget."""
    said: dict[str, Any] = {
        "session": str(SessionId(data_set, session._path)),
        **rule_json(session.rule),
        "loss": loss_json(session.loss),
        "made_up": session.made_up,
        "data_version": session.data_version,
    }
    try:
        said["remaining"] = remaining_json(session.remaining)
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
        "data_version": handle.data_version,
    }
    return {**said, "halted": handle.halted} if answers else said


def given_json(data_set: str, given: Session | Partition) -> dict[str, Any]:
    """A delegated session or a partition."""
    kind, what = given.as_given()
    return {**placed_json(data_set, given), "id": str(SessionId(data_set, given._path)), "kind": kind, "what": what}


def partition_json(data_set: str, parts: Partition) -> dict[str, Any]:
    """A partition: its column, the budget of each part, and the charge for all parts."""
    return {
        "partition": str(SessionId(data_set, parts._path)),
        "by": parts._by,
        "within": [loss_json(loss) for loss in parts.within]
        if isinstance(parts.within, tuple)
        else loss_json(parts.within),
        "charged": loss_json(parts.loss),
    }


def placed_json(data_set: str, found: Session | Handle | Partition) -> dict[str, Any]:
    """The session, handle or partition at an id."""
    if isinstance(found, Session):
        return session_json(data_set, found)
    return handle_json(data_set, found) if isinstance(found, Handle) else partition_json(data_set, found)


def version_json(version: DataVersion) -> dict[str, Any]:
    """A version of the data; `DataVersion.public` leaves its number and time."""
    said: dict[str, Any] = {"version": version.number, "at": version.at}
    if version.declared is None:
        return said
    about = {"fingerprint": version.fingerprint, "who": version.who, "note": version.note}
    return said | about | {"declared": version.words}


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
