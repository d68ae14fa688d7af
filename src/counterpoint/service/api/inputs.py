"""What handlers receive: bodies, path and query parameters, the caller, the request's id; and guards by role.

A field that a body does not list is an error. `within`, `mechanism` and `request` are objects of the allow-list in
`wire/requests.py`.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec
from litestar import Response
from litestar.connection import ASGIConnection
from litestar.di import NamedDependency
from litestar.exceptions import PermissionDeniedException
from litestar.handlers.base import BaseRouteHandler
from litestar.params import HeaderParameter, PathParameter, QueryParameter

from counterpoint.ledger.ledger import new_request_id
from counterpoint.numbers.exact import exact
from counterpoint.service.identity import Principal, Role
from counterpoint.service.registry import Registry
from counterpoint.session.questions import GivenTerms
from counterpoint.sources.streams.log import checked_id
from counterpoint.wire.requests import PAGE, check_size, decode_loss, decode_request

Json = dict[str, Any]

_TERMS: tuple[
    Literal[
        "epsilon",
        "rho",
        "mu",
        "error",
        "rank_error",
        "probability",
        "suppress",
        "relative_error",
        "rows_at_least",
    ],
    ...,
] = (
    "epsilon",
    "rho",
    "mu",
    "error",
    "rank_error",
    "probability",
    "suppress",
    "relative_error",
    "rows_at_least",
)


class Body(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A body with fixed fields, checked for size and depth before anything is made of it."""

    def __post_init__(self) -> None:
        """Refuse a body that is too large or nested too deeply."""
        for field in self.__struct_fields__:
            check_size(getattr(self, field))


class GrantBody(Body, frozen=True, kw_only=True):
    """A budget for a principal."""

    to: str
    within: Json
    until: datetime | None = None
    mechanisms: list[str] | None = None
    delta: int | float | str | None = None
    sampled: int | float | str | None = None


class ConfirmBody(Body, frozen=True, kw_only=True):
    """The name of a data set again, to confirm its recovery."""

    confirm: str


class VersionBody(Body, frozen=True, kw_only=True):
    """A refresh: a note for the record, and whether the rows of the version before are kept for its handles."""

    note: str = ""
    keep: bool = False


class LaunchBody(Body, frozen=True, kw_only=True):
    """A mechanism to launch; of a stream, what it follows."""

    mechanism: Json
    of: str | list[str] | Json | None = None


class AskBody(Body, frozen=True, kw_only=True):
    """A request to a launched mechanism, and the mechanism's own options; or, from a postprocessor, the public part."""

    request: Json | None = None
    options: Json = {}
    public: Json | None = None


class RequestBody(Body, frozen=True, kw_only=True):
    """A request whose public facts are wanted."""

    request: Json


class ErrorBody(Body, frozen=True, kw_only=True):
    """A request whose error is wanted, and the probability with which it is to hold."""

    request: Json
    probability: int | float | str = "0.95"
    simultaneous: bool = False


class TermsBody(Body, frozen=True, kw_only=True):
    """What an answer may cost, or how far off it may be."""

    epsilon: int | float | str | None = None
    rho: int | float | str | None = None
    mu: int | float | str | None = None
    loss: Json | None = None
    error: int | float | str | None = None
    rank_error: int | float | str | None = None
    probability: int | float | str | None = None
    simultaneous: bool = False
    suppress: int | float | str | None = None
    relative_error: int | float | str | None = None
    rows_at_least: int | float | str | None = None

    def given(self) -> GivenTerms:
        """The given terms, as `Session.ask` takes them."""
        said: GivenTerms = {"simultaneous": True} if self.simultaneous else {}
        for name in _TERMS:
            value = getattr(self, name)
            if value is not None:
                said[name] = value
        if self.loss is not None:
            said["loss"] = decode_loss(self.loss)
        return said


class QuestionBody(TermsBody, frozen=True, kw_only=True):
    """A request to be answered once, on these terms."""

    request: Json


class SQLBody(TermsBody, frozen=True, kw_only=True):
    """A SELECT of aggregates to be answered once, on these terms."""

    text: str


class QuoteBody(TermsBody, frozen=True, kw_only=True):
    """A mechanism, or a request on these terms, whose price is wanted."""

    mechanism: Json | None = None
    request: Json | None = None
    of: str | list[str] | Json | None = None


class DelegationBody(Body, frozen=True, kw_only=True):
    """A budget for a session inside this one; with `sampled`, on a secret sample of the units, of this rate."""

    within: Json
    delta: int | float | str | None = None
    sampled: int | float | str | None = None


class ChargeBody(Body, frozen=True, kw_only=True):
    """A release that was made elsewhere: its loss or a list of losses, what it is, and whom it protects, in words."""

    loss: Json | list[Json]
    what: str
    unit: str
    delta: int | float | str | None = None


class SettlementBody(Body, frozen=True, kw_only=True):
    """What a reserved release cost, and what was reserved, as it was said then."""

    reserved: ChargeBody
    loss: Json | list[Json]
    delta: int | float | str | None = None


class LossBody(Body, frozen=True, kw_only=True):
    """A loss."""

    loss: Json


class PartitionBody(Body, frozen=True, kw_only=True):
    """Parts of the data by a column, each within a budget."""

    by: str
    within: Json | list[Json]
    k: int = 1
    delta_total: int | float | str | None = None


class RatioBody(Body, frozen=True, kw_only=True):
    """A key that is a number, exactly."""

    number: str


class PartBody(Body, frozen=True, kw_only=True):
    """The key of a part, and of unlike parts what this one may lose."""

    key: str | int | float | bool | RatioBody
    within: Json | None = None

    @property
    def value(self) -> str | int | float | bool | Fraction:
        """The key, as a partition takes it."""
        return exact(self.key.number, "key") if isinstance(self.key, RatioBody) else self.key


class ItemsBody(Body, frozen=True, kw_only=True):
    """Items of a stream, in the order in which they are to arrive."""

    items: list[Any]
    owners: list[int | str] | None = None


class RowsBody(Body, frozen=True, kw_only=True):
    """Rows of a live table, in the order in which they are to arrive; to remove them, their units and keys alone."""

    rows: list[Json]


def of(said: str | list[str] | Json | None) -> Any:
    """The part of a stream's records that a mechanism follows."""
    return decode_request(said) if isinstance(said, dict) else said


def request_id(given: str | None) -> str:
    """The id of a request: what its caller gave, or one that is made up."""
    return new_request_id() if given is None else checked_id(given)


LONGEST_ID = 200
"""How many characters the id of a request may have."""

TheRegistry: TypeAlias = NamedDependency[Registry]
Caller: TypeAlias = NamedDependency[Principal]
InPath: TypeAlias = Annotated[str, PathParameter()]
InQuery: TypeAlias = Annotated[str, QueryParameter()]
After: TypeAlias = Annotated[int, QueryParameter(ge=0)]
Limit: TypeAlias = Annotated[int, QueryParameter(ge=1, le=PAGE)]
Key: TypeAlias = Annotated[str | None, HeaderParameter(name="Idempotency-Key", min_length=1, max_length=LONGEST_ID)]
RequestId: TypeAlias = NamedDependency[str]
"""The id of a request: its `Idempotency-Key`, or one that was made up."""
T = TypeVar("T")


def page_of(path: str, page: list[T], number: int, after: int, limit: int) -> Response[list[T]]:
    """A page of a list with so many entries; the header `Link` says where the next one is, if there is one."""
    following = f'<{path}?after={after + limit}&limit={limit}>; rel="next"'
    return Response(page, headers={"Link": following} if after + limit < number else {})


Guard: TypeAlias = Callable[[ASGIConnection[Any, Any, Any, Any], BaseRouteHandler], Awaitable[None]]
"""What a route asks before it runs: it refuses, or does nothing. One that is not async would run in a thread."""


def for_roles(*roles: Role) -> Guard:
    """A guard that lets these roles through."""

    async def guard(connection: ASGIConnection[Any, Any, Any, Any], _handler: BaseRouteHandler) -> None:
        if connection.user.role not in roles:
            allowed = " or ".join(role.value for role in roles)
            raise PermissionDeniedException(
                f"this is for the role {allowed}; your key has {connection.user.role.value}"
            )

    return guard
