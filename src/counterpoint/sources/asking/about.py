"""A request about one of several sources: which one, and what is asked of it.

>>> from counterpoint.sources.asking.requests import count
>>> count(where="people.age >= 65", of="visits")
About(source='visits', request=Count(where='people.age >= 65'))
"""

from typing import TypeVar

from counterpoint.encoding import Plain, Tagged, Value
from counterpoint.errors import InvalidRequest

R = TypeVar("R")


class About(Tagged, Value, frozen=True):
    """A request for the source of this name among several (`Sources`)."""

    source: str
    request: Plain

    def __post_init__(self) -> None:
        """Check the name."""
        named: object = self.source
        if not (isinstance(named, str) and named.isidentifier()):
            raise InvalidRequest("of names one of several sources, as in count(of='visits')")


def about(of: str | None, request: R) -> R:
    """The request itself, or about the source of this name; for a reader of types it stays what it is."""
    return request if of is None else About(of, request)  # type: ignore[return-value, arg-type]
