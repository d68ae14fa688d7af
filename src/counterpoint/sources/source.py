"""A source: a table or a stream that turns a public request into private integers under a relation (S4 sec. 3, 6).

A request is prepared by public facts alone: its shape, its sensitivity in the L1 and squared L2 norms, and the grid on
which its integers stand (one step of the integer is worth `grid` in the user's units). Only then is it resolved on
pinned data, to a `Secret`. What is refused is refused before any data is touched.

>>> Prepared(request=None, sensitivity=100, squared=10_000, width=None, grid=Fraction(1, 100)).in_units(250)
Fraction(5, 2)
"""

from abc import abstractmethod
from fractions import Fraction

from counterpoint.encoding import Plain, Tagged, Value, digest
from counterpoint.errors import InvalidRequest
from counterpoint.privacy.messages import Update
from counterpoint.privacy.relations import Relation
from counterpoint.privacy.secret import Secret


class Prepared(Tagged, Value, frozen=True):
    """A request that has been checked against the source's declaration, with everything public about its value."""

    request: Plain
    sensitivity: int
    squared: int
    width: int | None
    grid: Fraction

    def in_units(self, answer: Plain) -> object:
        """A noisy integer (or a tuple of them) in the user's units: an int where the grid is 1, else a Fraction."""
        if isinstance(answer, tuple):
            return tuple(self.in_units(item) for item in answer)
        if isinstance(answer, bool) or not isinstance(answer, int):
            return answer
        return answer if self.grid == 1 else answer * self.grid

    def to_grid(self, value: Fraction) -> Fraction:
        """A number in the user's units (such as a threshold) on the grid of the integers."""
        return value / self.grid


class Source:
    """Data that can be asked: prepares requests in public, resolves them in secret, on pinned versions."""

    __slots__ = ()

    @property
    @abstractmethod
    def relation(self) -> Relation:
        """How the messages made from this source may differ between neighbouring data."""

    @abstractmethod
    def pin(self) -> int | str:
        """The present version of the data: a fingerprint of a table, the length of a stream. It is public."""

    def fingerprint(self) -> str | None:
        """What a durable ledger knows this data by after a restart, rows and declaration; None: it cannot be known."""
        return digest(self.pin(), self.relation).hex()

    @abstractmethod
    def prepare(self, request: object) -> Prepared:
        """The request with its public facts, or `InvalidRequest`; no data is touched."""

    @abstractmethod
    def resolve(self, pin: int | str, prepared: Prepared) -> Secret:
        """The private integers, on the data as it was when it was pinned."""

    def items(self, start: int | str, end: int | str) -> tuple[Update, ...]:
        """The updates that arrived between two pins; a table has none."""
        return ()

    def reach(self, by: str) -> int:
        """How many parts, cut by this column, a unit and its neighbour can reach: public, enforced by the source."""
        raise InvalidRequest(f"this source is not cut into parts by {by!r}")

    @abstractmethod
    def part(self, by: str, key: Plain) -> "Source":
        """The part of this source where column `by` has this value; the set of parts is never read off the data."""
