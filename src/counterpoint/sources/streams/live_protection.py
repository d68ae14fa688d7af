"""What a live table protects, and how far its neighbours can differ: from its declaration alone.

Two live tables are neighbours if they have the same slots, and

- *unit level*: all updates of one unit do nothing in one of them. At every moment the rows of that unit are there or
  not, as when a unit is added to a table or removed: every request moves as on that table, counts all the same way;
- *event level*: one update does nothing in one of them. A put over a row is then a replacement, and without a put its
  unit may have room for another one; so at every moment one row replaces another (`UpdateRule`). With a limit on a
  unit's updates, a later update counts in the place of the one that does nothing, and two rows are replaced.

What follows the *changes* of an answer, update by update, sees other changes only at updates of one unit that count in
one world: its first `updates_per_unit`, at event level one more. Rows without a unit have no cap: there, one update
that does nothing changes what happens at it and at the next update of the same key. An update changes one row, and two
worlds that receive the same update differ by the row that it replaces: each change differs as a replaced row does.

>>> from counterpoint.schema.columns import number
>>> from counterpoint.schema.declaration import Named
>>> ages = (Named("age", number(0, 120)),)
>>> Protection("person", 3, ages).relation, Protection("person", 3, ages, event=True, updates_per_unit=5).relation
(OneWay(), Steps(updates=6))
"""

from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter, RelationMismatch, shown
from counterpoint.numbers.parameters import PositiveInt
from counterpoint.privacy.relations import OneWay, Relation, Steps
from counterpoint.queries.contributions import Contribution, contribution
from counterpoint.queries.request import Request
from counterpoint.schema.declaration import Declaration, Named


class Protection(Value, frozen=True):
    """The unit of a live table, its caps, its columns, and whether a unit or one update is protected."""

    unit: str | None
    rows_per_unit: PositiveInt | None
    columns: tuple[Named, ...]
    event: bool = False
    updates_per_unit: PositiveInt | None = None

    def __post_init__(self) -> None:
        """Refuse a unit without a cap, and a cap without a unit."""
        if self.unit is None and not self.event:
            raise InvalidParameter(
                "a live table protects units, so name the column that identifies them, as in unit='person', "
                "rows_per_unit=2; protects='event' protects single updates, also without a unit"
            )
        if self.unit is not None and self.rows_per_unit is None:
            raise InvalidParameter(
                f"rows_per_unit must say how many rows one {self.unit!r} has at a time: later ones find no room"
            )
        for name, limit in (("rows_per_unit", self.rows_per_unit), ("updates_per_unit", self.updates_per_unit)):
            if self.unit is None and limit is not None:
                raise InvalidParameter(f"{name} was given without a unit: name its column with unit=...")

    @property
    def declared(self) -> Declaration:
        """The rows of any moment, as a table declares them."""
        neighbours = "replace" if self.event else "add-or-remove"
        return Declaration(self.unit, self.rows_per_unit or 1, neighbours, self.columns)

    @property
    def moved(self) -> Declaration:
        """A table whose neighbours differ as the rows of neighbouring live tables do at any moment."""
        if not self.event:
            return self.declared
        return Declaration(self.unit, 1 if self.updates_per_unit is None else 2, "replace", self.columns)

    @property
    def reached_keys(self) -> dict[str, int]:
        """In how many values of a column the rows of one moment differ, where that is fewer than a unit has rows."""
        return {named.name: self.moved.rows_per_unit for named in self.columns} if self.event else {}

    @property
    def slots(self) -> int | None:
        """At how many updates the changes of an answer may differ; None: at any number."""
        if self.unit is None:
            return 2
        return None if self.updates_per_unit is None else self.updates_per_unit + (1 if self.event else 0)

    @property
    def relation(self) -> Relation:
        """Every ask may differ by its own sensitivity, at unit level one way; changes as far as `slots` says."""
        steps = Steps(updates=self.slots)
        return steps if self.event else OneWay(steps)

    def following(self, request: Request) -> Contribution:
        """What a row adds to a request that a mechanism follows; a change of it differs as a replaced row does."""
        if self.slots is None:
            raise RelationMismatch(
                f"a mechanism that follows {shown(request, 200)} sees every change of a row, and a limit on the rows "
                "of a unit does not limit how often they change: declare updates_per_unit=..., or ask for the present "
                "answer with a one-shot mechanism, such as Laplace"
            )
        return contribution(request, Declaration(None, 1, "replace", self.columns))

    def reach(self, by: str) -> int:
        """In how many parts by this column neighbours may ever differ.

        A row is in one part, and every row that a unit has in one of the worlds comes from an update that counts
        there. Without units, one row is replaced by another. There are no more parts than keys, and a unit's own column
        has one value.
        """
        column = self.declared.column(by)
        if by == self.unit:
            return 1
        keys = None if column.known_keys is None else len(column.known_keys)
        limits = [limit for limit in (self.slots, keys) if limit is not None]
        if not limits:
            raise RelationMismatch(
                f"a unit may reach any number of parts by {by!r} over its life, as rows change: declare "
                f"updates_per_unit=..., or {by!r} as category([...]) with few keys"
            )
        return min(limits)

    def describe(self) -> str:
        """The declaration in words."""
        if self.unit is None:
            unit, protected = "unit: every row is its own unit", "one update"
        else:
            unit = f"unit: {self.unit}, which has at most {self.rows_per_unit} rows at a time"
            protected = f"one update of one {self.unit}" if self.event else f"all updates of one {self.unit}"
        limit = "" if self.updates_per_unit is None else f", and whose first {self.updates_per_unit} updates count"
        columns = [f"{named.name}: {named.column.describe()}" for named in self.columns]
        return "\n".join((unit + limit, f"protected: {protected}; the number of updates is public", *columns))
