"""Errors as problem+json, and the ids of sessions, as server and client both write and read them.

A problem has what was asked, the limit and what would work, never a value of the data. Its `type` names the library's
class, and `exact` what the error carries, so that the client raises the error that a local session raises.

>>> from counterpoint import PureDP
>>> document = problem(BudgetExceeded("PureDP(2) does not fit", requested=PureDP(2)))
>>> document["status"], document["type"], error_of(document).requested
(409, 'urn:counterpoint:BudgetExceeded', PureDP(2))
"""

import re
from fractions import Fraction
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import msgspec

from counterpoint import errors
from counterpoint.composition.rule import Remaining
from counterpoint.encoding import Tagged, decode, encode
from counterpoint.errors import (
    BudgetExceeded,
    CounterpointError,
    DataChanged,
    DataFailed,
    DataLost,
    DataReplaced,
    Halted,
    InvalidParameter,
    InvalidRequest,
    LedgerBusy,
    LedgerError,
    NotAllowed,
    NotCovered,
    NotGranted,
    RelationMismatch,
    RequestConflict,
    ServiceFailed,
    UnsupportedSQL,
)
from counterpoint.ledger.chain import NeverAnswered
from counterpoint.ledger.state import Path


class SessionId(NamedTuple):
    """The id of a session, a handle or a partition: its data set, and its path there."""

    data_set: str
    path: Path

    @classmethod
    def read(cls, text: str) -> "SessionId":
        """Read an id; `NotFound` if the text is not one, as for an id that does not exist."""
        name, *steps = text.split(".")
        if not _NAME.fullmatch(name) or not all(steps) or len(steps) > 32:
            raise unknown(text)
        return cls(name, tuple(_step(step) for step in steps))

    def __str__(self) -> str:
        return ".".join([self.data_set, *(quote(str(step), safe="").replace(".", "%2E") for step in self.path)])


class NotFound(NotAllowed):
    """Not found, or not yours: the two are indistinguishable to callers."""


def unknown(text: str) -> NotFound:
    """The error for an id that does not exist or is not the caller's."""
    return NotFound(f"{text[:80]!r} was not found, or is not yours")


_DIGITS = 18
"""How many digits the number of a launch may have."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def _step(text: str) -> int | str:
    """The number of a launch, or the name of a part."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else unquote(text)


_URN = "urn:counterpoint:"

_STATUS: tuple[tuple[type[CounterpointError], int], ...] = (
    (NotGranted, 403),
    (NotFound, 404),
    (NeverAnswered, 404),
    (NotAllowed, 409),
    (BudgetExceeded, 409),
    (RequestConflict, 409),
    (Halted, 410),
    (DataReplaced, 410),
    (NotCovered, 422),
    (RelationMismatch, 422),
    (DataFailed, 503),
    (DataLost, 503),
    (InvalidRequest, 422),
    (InvalidParameter, 422),
    (DataChanged, 409),
    (LedgerBusy, 503),
    (LedgerError, 503),
)
"""The first that fits; the rest is a fault of ours."""


def problem(error: CounterpointError) -> dict[str, Any]:
    """An error as problem+json."""
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    document: dict[str, Any] = {
        "type": f"{_URN}{_public(type(error)).__name__}",
        "title": type(error).__name__,
        "status": status,
        "detail": str(error),
    }
    if isinstance(error, BudgetExceeded):
        document |= {
            "requested": repr(error.requested),
            "remaining": repr(error.remaining),
            "would_fit": repr(error.would_fit),
            "exact": {name: _exact(getattr(error, name)) for name in _CARRIED},
        }
    if isinstance(error, UnsupportedSQL):
        document |= {"found": error.found, "where": error.where, "works": error.works}
    return document


def error_of(document: dict[str, Any]) -> CounterpointError:
    """The library's error in a problem; any other problem becomes an error by its status."""
    detail = str(document.get("detail") or document.get("title") or "the service gave no reason")
    kind = _KINDS.get(str(document.get("type")).removeprefix(_URN)) or _by_status(int(document.get("status") or 500))
    if kind is BudgetExceeded:
        exact = document.get("exact") or {}
        return BudgetExceeded(detail, **{name: _read(exact.get(name)) for name in _CARRIED})
    if kind is UnsupportedSQL:
        return UnsupportedSQL(*(str(document.get(name)) for name in ("found", "where", "works")))
    return kind(detail)


_KINDS: dict[str, type[CounterpointError]] = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, CounterpointError)
} | {NotFound.__name__: NotFound}
"""The tree of errors by their names, and what the service adds to it."""
_CARRIED = ("requested", "remaining", "would_fit")


def _public(kind: type[CounterpointError]) -> type[CounterpointError]:
    """The class in the tree of errors that this one is, or is a kind of."""
    return next(one for one in kind.__mro__ if _KINDS.get(one.__name__) is one)


def _by_status(status: int) -> type[CounterpointError]:
    if status in (401, 403, 404, 405, 429):
        return NotAllowed
    return InvalidRequest if 400 <= status < 500 else ServiceFailed


def _exact(carried: object) -> str | None:
    """A value that an error carries, in its canonical encoding."""
    return None if carried is None else encode(carried).decode()


def _read(text: str | None) -> object:
    """The same, read back."""
    if text is None:
        return None
    document = msgspec.json.decode(text)
    if isinstance(document, str):
        return decode(text.encode(), Fraction)
    remaining = isinstance(document, dict) and document.get("type") == Remaining.__struct_config__.tag
    kind: type = Remaining if remaining else Tagged
    found: object = decode(text.encode(), kind)
    return found


PROBLEM = "application/problem+json"
"""How refusals and errors are sent."""
