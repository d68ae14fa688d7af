"""The protocol of a request: how it is planned, how far its answer moves, and how the answer is read.

A request is checked against a declaration, which makes it a `QueryPlan` and a `Prepared`, from public facts alone;
`read_rows` makes the answer of what the engine returned. `requests`, `choices` and `variances` have the requests.

>>> from counterpoint.sources.asking.requests import count
>>> isinstance(count(), Request), count().unfollowed
(True, None)
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, UnsetType

from counterpoint.encoding import Tagged
from counterpoint.privacy.secret import Raw
from counterpoint.privacy.tally import Tally
from counterpoint.sources.asking.conditions import Condition
from counterpoint.sources.asking.sensitivity import Sensitivities, one_way, sum_sensitivities
from counterpoint.sources.asking.where import condition
from counterpoint.sources.declaring.columns import KeyOrTuple
from counterpoint.sources.declaring.declaration import Declaration
from counterpoint.sources.engines.emitter import tally
from counterpoint.sources.engines.query_plan import QueryPlan
from counterpoint.sources.source import Prepared


class Request(Tagged):
    """A question for a table."""

    __slots__ = ()
    where: str | None

    @abstractmethod
    def plan(self, declared: Declaration) -> QueryPlan:
        """The plan of this request on a declaration, or `InvalidRequest`."""

    def read_cells(self, declared: Declaration, found: tuple[int, ...]) -> Raw:
        """The answer in its public shape, from one integer per cell."""
        return found[0]

    def read_rows(self, declared: Declaration, plan: QueryPlan, fetched: Sequence[Sequence[Any]]) -> Raw | Tally:
        """The answer, from the rows that the engine returned for the plan."""
        return self.read_cells(declared, tally(plan, fetched))

    @property
    def keyed_by(self) -> tuple[str, ...]:
        """The heads of what names the values of the answer, such as columns of keys; none where they are numbered."""
        return ()

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """What the values of the answer are called where `names` says nothing, one item for each head of `keyed_by`.

        Labels are public facts of the request that no mechanism and no record needs.
        """
        return None

    def units(self, declared: Declaration) -> str | UnsetType:
        """What the answer is measured in, if the declaration of its column says that."""
        return UNSET

    @property
    def unfollowed(self) -> str | None:
        """Why no mechanism can follow this request as rows arrive; None if its answer is a sum over rows.

        Such a sum adds up `read_cells` of each row alone, so `read_cells` must be linear.
        """
        return "its answer is not a sum of what each row adds by itself"

    def sensitivities(self, declared: Declaration, plan: QueryPlan) -> Sensitivities:
        """How far the answer can move in the L1 norm, in the squared L2 norm and in each coordinate."""
        rows = 1 if plan.once else declared.rows_per_unit
        return sum_sensitivities(plan.corners, rows, declared.neighbours, plan.groups)

    def prepare(self, declared: Declaration, plan: QueryPlan) -> Prepared:
        """Everything public about the answer; `plan` is this request's plan on the same declaration."""
        return Prepared(*self._facts(declared, plan))

    def _facts(self, declared: Declaration, plan: QueryPlan) -> tuple[Any, ...]:
        """The public facts of the answer, in the order of the fields of `Prepared`."""
        most, up = self.sensitivities(declared, plan), one_way(plan.corners, declared.neighbours)
        names, units = self.names(declared), self.units(declared)
        return self, most.l1, most.squared, plan.width, plan.grid, most.each, up, names, units

    def names(self, declared: Declaration) -> tuple[KeyOrTuple, ...] | None:
        """The names of the values that `in_units` gives, in the user's units; None if they have none."""
        return None

    def _condition(self, declared: Declaration) -> Condition | None:
        return None if self.where is None else condition(self.where, declared)
