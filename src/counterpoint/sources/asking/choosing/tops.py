"""The most frequent keys of a column, or of several columns together.

It is a histogram whose counts are not released: `NoisyMax` chooses the largest k of them, one after the other, and only
their names come out. The keys are given or declared; keys that are not public are selected first, by `keys`. From noisy
counts that were released already, the largest can be read off at no further cost.

>>> top("dest", 5, keys=["ATL", "BOS", "ORD", "LAX", "SFO", "MIA"]).k
5
"""

from collections.abc import Iterable, Mapping

from counterpoint.encoding import Plain, Value
from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.mechanisms.mechanism import Chosen
from counterpoint.numbers.exact import whole
from counterpoint.privacy.secret import Raw
from counterpoint.sources.asking.about import about
from counterpoint.sources.asking.arguments import check_texts, listed
from counterpoint.sources.asking.grouping import DistinctKeys, GivenBy, Names, check_groups
from counterpoint.sources.asking.request import Request
from counterpoint.sources.asking.requests import Histogram
from counterpoint.sources.declaring.columns import KeyOrTuple
from counterpoint.sources.declaring.declaration import Declaration
from counterpoint.sources.engines.query_plan import QueryPlan
from counterpoint.sources.source import Prepared, Wants


class Top(Request, Value, frozen=True):
    """Which `k` keys have the most rows that satisfy `where`: the counts of a histogram, as scores."""

    column: Names
    k: int
    keys: DistinctKeys = None
    where: str | None = None

    def __post_init__(self) -> None:
        """Check the texts, the keys and how many are wanted."""
        check_texts(where=self.where)
        check_groups(self.column, self.keys)
        try:
            whole(self.k, 1, "k")
        except InvalidParameter as error:
            raise InvalidRequest(str(error)) from None

    @property
    def _counts(self) -> Histogram:
        return Histogram(self.column, self.keys, None, self.where)

    def plan(self, declared: Declaration) -> QueryPlan:
        """Count rows by key."""
        plan = self._counts.plan(declared)
        assert plan.width is not None
        if self.k > plan.width:
            raise InvalidRequest(f"there are {plan.width} keys, so no more than that can be wanted: k is {self.k}")
        return plan

    def read_cells(self, declared: Declaration, found: tuple[int, ...]) -> Raw:
        """One count for each key."""
        return found

    def names(self, declared: Declaration) -> tuple[KeyOrTuple, ...] | None:
        """The keys."""
        return self._counts.names(declared)

    def prepare(self, declared: Declaration, plan: QueryPlan) -> "Largests":
        """The public facts, with how many are wanted."""
        return Largests(*self._facts(declared, plan), k=self.k)


TOPS = (Top,)
"""Together with the lists of the other modules the whole language: exactly these classes, no subclasses."""


class Largests(Prepared, frozen=True, kw_only=True):
    """Prepared counts of which the names of the `k` largest are wanted: in units, a tuple of names."""

    k: int

    @property
    def wants(self) -> Wants:
        """The largest counts."""
        return "choice"

    @property
    def options(self) -> Mapping[str, int]:
        """How many."""
        return {"top": self.k}

    @property
    def states_error(self) -> bool:
        """Names have none."""
        return False

    def in_units(self, answer: Plain) -> object:
        """The names of the chosen keys, the most frequent first."""
        if not isinstance(answer, tuple):
            return super().in_units(answer)
        return tuple(super(Largests, self).in_units(one) if isinstance(one, Chosen) else one for one in answer)


def top(
    column: GivenBy,
    k: int,
    keys: Iterable[KeyOrTuple] | None = None,
    where: str | None = None,
    *,
    of: str | None = None,
) -> Top:
    """The `k` most frequent keys of a column, or of several columns together, the most frequent first.

    Keys are given, or declared by the columns.

    >>> top(["origin", "dest"], 2).column
    ('origin', 'dest')
    """
    return about(of, Top(column, k, listed(keys, "keys"), where))
