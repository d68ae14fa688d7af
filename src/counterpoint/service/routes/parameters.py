"""What handlers are called with, besides a body: the house, who calls, names in the path, and the request's id."""

from typing import Annotated, TypeAlias

from litestar.di import NamedDependency
from litestar.params import HeaderParameter, PathParameter, QueryParameter

from counterpoint.service.house import House
from counterpoint.service.identity import Principal

LONGEST_ID = 200
"""How many characters the id of a request may have."""
PAGE = 200
"""How many lines of a history are sent at once, at most."""

TheHouse: TypeAlias = NamedDependency[House]
Caller: TypeAlias = NamedDependency[Principal]
InPath: TypeAlias = Annotated[str, PathParameter()]
InQuery: TypeAlias = Annotated[str, QueryParameter()]
After: TypeAlias = Annotated[int, QueryParameter(ge=0)]
Limit: TypeAlias = Annotated[int, QueryParameter(ge=1, le=PAGE)]
Key: TypeAlias = Annotated[str | None, HeaderParameter(name="Idempotency-Key", min_length=1, max_length=LONGEST_ID)]
RequestId: TypeAlias = NamedDependency[str]
"""The id of a request: its `Idempotency-Key`, or one that was made up."""
