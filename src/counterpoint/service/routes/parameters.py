"""What handlers are called with, besides a body: the house, who calls, names in the path, and the request's id."""

from typing import Annotated, TypeAlias, TypeVar

from litestar import Response
from litestar.di import NamedDependency
from litestar.params import HeaderParameter, PathParameter, QueryParameter

from counterpoint.service.house import House
from counterpoint.service.identity import Principal
from counterpoint.service.wire import PAGE

LONGEST_ID = 200
"""How many characters the id of a request may have."""

TheHouse: TypeAlias = NamedDependency[House]
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
