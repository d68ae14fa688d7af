"""Errors as problem+json: the library's type, what was asked, the limit and what would work; never a value of the data.

>>> problem(BudgetExceeded("PureDP(2) does not fit", requested=PureDP(2)))["status"]
409
"""

from typing import Any

from counterpoint.errors import (
    BudgetExceeded,
    CounterpointError,
    DataChanged,
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
)
from counterpoint.privacy.losses import PureDP
from counterpoint.service.house import NoSuchThing

__all__ = ["BudgetExceeded", "PureDP", "problem"]

_STATUS: tuple[tuple[type[CounterpointError], int], ...] = (
    (NotGranted, 403),
    (NoSuchThing, 404),
    (NotAllowed, 409),
    (BudgetExceeded, 409),
    (RequestConflict, 409),
    (Halted, 410),
    (NotCovered, 422),
    (RelationMismatch, 422),
    (InvalidRequest, 422),
    (InvalidParameter, 422),
    (DataChanged, 409),
    (LedgerBusy, 503),
    (LedgerError, 503),
)
"""The first that fits; the rest is a fault of ours."""


def problem(error: CounterpointError) -> dict[str, Any]:
    """What the caller sees of an error."""
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    said: dict[str, Any] = {
        "type": f"urn:counterpoint:{type(error).__name__}",
        "title": type(error).__name__,
        "status": status,
        "detail": str(error),
    }
    if isinstance(error, BudgetExceeded):
        said |= {
            "requested": repr(error.requested),
            "remaining": repr(error.remaining),
            "would_fit": repr(error.would_fit),
        }
    return said
