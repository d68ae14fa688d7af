"""The updates of a live table: how they are stored, which of them take effect, and what each changes.

**Stored form.** (True, key, fields...) puts a row, (False, key) removes one. Fields are converted by the rules of a
table's columns, which are total over the types that a column accepts (see `records`). The names and the types of what
is sent are public, so a record with wrong ones is refused, whatever the table holds. A unit or a key that is missing
(None) makes an update that does nothing, as None itself does. A row is named as a unit is: by the key of `unit_keys`,
as a text.

>>> from counterpoint.schema.columns import number
>>> form = UpdateForm(Fields.of({"age": number(0, 120)}), "person", "row")
>>> form.put({"person": "ann", "row": 1, "age": 200.3}), form.put({"person": None, "row": 1}), form.put(None)
(((True, '1', 120), 'ann'), (None, None), (None, None))
>>> form.removal({"person": "ann", "row": 1})
((False, '1'), 'ann')

**The log** has the updates in the order of arrival, each with what it replaced. A live table *is* this log, and its
rows are what the updates so far make of it. Each update takes a slot. The number of slots is public; what an update
says is private, also whether it did anything. Which updates take effect is decided at arrival (see `UpdateRule`); with
`most`, only the first `most` updates of a unit over its whole life do.

>>> log = UpdateLog("person", rows_per_unit=1)
>>> log.extend([(True, 1, 30), (True, 2, 40), (True, 1, 31), (False, 2)], ["ann"] * 4)
>>> log.items, log.replaced, log.length()
([(True, 1, 30), None, (True, 1, 31), None], [-1, None, 0, None], 4)

**Which updates take effect** is decided at arrival, by earlier updates of the same unit alone. An update puts a row
under a key, or removes the row under a key. A key belongs to its unit: the same key of two units names two rows. A put
under a key that has a row replaces it. Under a new key it adds a row if its unit has fewer than `most` rows, and else
does nothing, for good. Removing a key that has no row does nothing.

Two lemmas, on which every sensitivity of a live table rests (theory, Live data). The tests enumerate both.

- *Unit level.* Without its updates a unit has no rows, and the rows of all others stay as they are. So at every moment
  neighbours differ by at most `most` rows of one unit, as neighbouring tables do.
- *Event level.* Without one update, at every moment each world has at most one row that the other has not, and both
  belong to the same unit. Let A and B be the two sets of rows of that unit. If they are equal, they stay equal. If they
  have the same keys and differ in one row, the cap treats them alike; the next update of that key makes them equal. If
  A has one key more, a put under another new key finds room in both, in none, or in B alone: then A has one key and B
  another. From there, an update of A's own key removes or replaces that row, and B, which has as many rows, takes the
  key if there is room (then B has one key more) and stays as it is if there is none.

>>> rows = UpdateRule(most=2)
>>> [rows.apply("ann", update, slot) for slot, update in enumerate([(True, 1), (True, 2), (True, 3), (True, 1)])]
[-1, -1, None, 0]
>>> rows.apply("bob", (False, 1), 4), rows.apply("ann", (False, 1), 5), rows.apply("ann", (True, 3), 6)
(None, 3, -1)

**What an update changes** is what a mechanism that follows the table receives. An update puts a row in the place of
another, or of none, or removes one: the answer, a sum over rows, changes by what the new row adds less what the old one
added. It is a function of the two rows, which the log has.

>>> from counterpoint.queries.contributions import contribution
>>> from counterpoint.queries.aggregates import sum
>>> from counterpoint.schema.columns import number
>>> from counterpoint.schema.declaration import Declaration, Named
>>> ages = contribution(sum("age"), Declaration(None, 1, "replace", (Named("age", number(0, 120)),)))
>>> log = UpdateLog("person", rows_per_unit=1)
>>> log.extend([(True, 1, 30), (True, 1, 31), None, (False, 1)], ["ann"] * 4)
>>> [change(*effect, ages, ()) for effect in log.effects(0, 4)]
[30, 1, 0, -31]
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from counterpoint.encoding import Value
from counterpoint.engines.duckdb import JoinedTable
from counterpoint.errors import InvalidParameter, InvalidRequest, NotAllowed
from counterpoint.numbers.exact import whole
from counterpoint.privacy.secret import Raw
from counterpoint.process import Owner
from counterpoint.queries.contributions import Contribution
from counterpoint.schema.columns import Key
from counterpoint.schema.declaration import Declaration
from counterpoint.schema.expressions.evaluate import StoredRow
from counterpoint.schema.unit_keys import UnitType, checked_key
from counterpoint.schema.units import one_column
from counterpoint.sources.streams.items import Record
from counterpoint.sources.streams.log import Item, Log, Unit, log_unit_type
from counterpoint.sources.streams.records import Fields, reader
from counterpoint.sources.streams.rows import ENDLESS, LiveRows, Slots

Readers = Sequence[tuple[str, Callable[[object], Key | None]]]
"""The columns of a row by their names, each with the function that brings its values to stored form."""

NOTHING: Item = (None, None)
"""An update that does nothing, and belongs to no unit."""


class UpdateForm(Value, frozen=True):
    """The declared columns of a live table, and the names of its unit (None: none) and of its key."""

    fields: Fields
    unit: str | None
    key: str

    def __post_init__(self) -> None:
        """Check the names."""
        if self.unit is not None:
            one_column(self.unit, "a live table")
        if not isinstance(self.key, str):
            raise InvalidParameter(f"key must be the name of a column, such as 'row', not {self.key!r}")
        if self.unit == self.key:
            raise InvalidParameter(
                f"unit and key are both {self.key!r}, but a key tells the rows of one unit apart: name two columns"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """What names a row: its unit, if it has one, and its key."""
        return (self.key,) if self.unit is None else (self.unit, self.key)

    def puts(self, records: Iterable[object], of: UnitType = "text") -> list[Item]:
        """The updates that put these rows: all of them, or `InvalidRequest` if one has a wrong form."""
        known = dict.fromkeys((*self.names, *self.fields.names))
        readers = [(named.name, reader(named)) for named in self.fields.declared.columns]
        return [
            NOTHING if record is None else self._put(self._checked(record, known), readers, of) for record in records
        ]

    def put(self, record: object) -> Item:
        """The update that puts this row; a column that is left out is missing."""
        return self.puts([record])[0]

    def _put(self, sent: Mapping[str, object], readers: Readers, of: UnitType) -> Item:
        """The column of the unit is read from its key: all rows of a unit have one value there."""
        owner, key = self._owner_and_key(sent, of)
        row = tuple([read(owner if name == self.unit else sent.get(name)) for name, read in readers])
        return NOTHING if key is None else ((True, key, *row), owner)

    def stored(self, of: UnitType, named: object, *converted: Any) -> Item:
        """The update that puts a row whose columns, and behind them its unit, are converted already.

        >>> from counterpoint.schema.columns import number
        >>> UpdateForm(Fields.of({"age": number(0, 120)}), "person", "row").stored("text", 1, 41, "ann")
        ((True, '1', 41), 'ann')
        """
        *row, unit = converted
        owner = None if self.unit is None else checked_key(self.unit, unit, of)
        key = checked_key(self.key, named)
        is_missing = key is None or (owner is None and self.unit is not None)
        return NOTHING if is_missing else ((True, key, *row), owner)

    def removals(self, records: Iterable[object], of: UnitType = "text") -> list[Item]:
        """The updates that remove these rows: all of them, or `InvalidRequest` if one has a wrong form."""
        return [self.removal(record, of) for record in records]

    def removal(self, record: object, of: UnitType = "text") -> Item:
        """The update that removes the row of this unit with this key."""
        if record is None:
            return NOTHING
        owner, key = self._owner_and_key(self._checked(record, dict.fromkeys(self.names)), of)
        return NOTHING if key is None else ((False, key), owner)

    def _checked(self, record: object, known: Collection[str]) -> Mapping[str, object]:
        """The record, if it names its row and has no unknown columns."""
        if not isinstance(record, Mapping):
            example = ", ".join(f"{name!r}: ..." for name in known)
            raise InvalidRequest(f"a row of this live table is {{{example}}}, not a {type(record).__name__}")
        for name in self.names:
            if name not in record:
                what = "unit" if name == self.unit else "key"
                raise InvalidRequest(f"each update of this live table needs {name!r}, which names the row's {what}")
        for name in record:
            if name not in known:
                raise InvalidRequest(f"there is no {str(name)[:40]!r} to give here; there are: {', '.join(known)}")
        return record

    def _owner_and_key(self, record: Mapping[str, object], of: UnitType) -> tuple[Unit | None, Unit | None]:
        """The unit and the key of a row; both None if one of them is missing."""
        owner = None if self.unit is None else checked_key(self.unit, record[self.unit], of)
        key = checked_key(self.key, record[self.key])
        missing = key is None or (owner is None and self.unit is not None)
        return (None, None) if missing else (owner, key)


class UpdateLog(Log):
    """The updates of a live table; `items` has None for those that do nothing.

    `replaced` has the slot of the row that an update replaced or removed (-1: none, the row is new). After `compact`,
    what was before that is read again from the keeper, by whoever needs it: use `slots` and `effects`.
    """

    what = "live table"
    __slots__ = ("_compacted", "_present", "_row", "_rows", "replaced")

    def __init__(
        self,
        unit: str | None,
        rows_per_unit: int | None,
        most: int | None = None,
        unit_type: UnitType | None = None,
        row: Callable[[Any], Record] | None = None,
    ) -> None:
        super().__init__()
        self._row = row
        self.fit = None if row is None else partial(_refitted, row)
        self.unit, self.most = unit, None if most is None else whole(most, 1, "updates_per_unit")
        self.unit_type = log_unit_type(unit, unit_type)
        self.replaced: list[int | None] = []
        self._rows = UpdateRule(rows_per_unit)
        self._present: LiveRows | None = None
        self._compacted = 0
        self._process = Owner(
            "a live table",
            "make it in this process, or after the fork; processes share one through a ledger in PostgreSQL",
        )

    def _take(self, arrived: Sequence[Item]) -> None:
        for item, owner in arrived:
            counts = self.most is None or self._counts(owner, len(self.items))
            replaced = self._applied(owner, item) if counts else None
            self.items.append(None if replaced is None else item)
            self.replaced.append(replaced)
            self._owners.append(owner)

    def _applied(self, owner: Unit | None, item: Any) -> int | None:
        if item is None or (owner is None and self.unit is not None):
            return None
        return self._rows.apply(owner, item, len(self.items))

    def fetch(
        self, declared: Declaration, sql: str, pin: int, beside: Sequence[JoinedTable] = ()
    ) -> list[tuple[Any, ...]]:
        """The rows that a statement returns about the table as it was after `pin` updates."""
        with self._lock:
            if self._present is None:
                self._present = LiveRows(declared, self.slots)
        return self._present.run(sql, pin, beside)

    def placed(self, pin: int) -> Iterator[StoredRow]:
        """The fields of each row that is there after `pin` updates, where it began and ends, and its unit."""
        updates, replaced, owners = self.slots(0, pin)
        present: dict[int, StoredRow] = {}
        for slot, (update, before, owner) in enumerate(zip(updates, replaced, owners, strict=True)):
            if update is None:
                continue
            if before is not None:
                present.pop(before, None)
            if update[0]:
                present[slot] = (*update[2:], slot, ENDLESS, owner)
        yield from present.values()

    def _again(self, arrived: Sequence[Item]) -> None:
        self.replaced, self._present, self._rows = [], None, UpdateRule(self._rows.most)
        super()._again(arrived)

    def slots(self, start: int, end: int) -> Slots:
        """The updates of these slots, what they replaced, and their owners."""
        with self._lock:
            if start >= self._compacted:
                return self.items[start:end], self.replaced[start:end], self._owners[start:end]
        return self._read_again(end).slots(start, end)

    def effects(self, start: int, end: int) -> list[tuple[Any, Any]]:
        """Of each of these slots the update, and the one whose row it replaced or removed; None if there is none."""
        with self._lock:
            if start >= self._compacted:
                before = [
                    None if slot is None or slot == NEW else self.items[slot] for slot in self.replaced[start:end]
                ]
                return list(zip(self.items[start:end], before, strict=True))
        return self._read_again(end).effects(start, end)

    def _read_again(self, end: int) -> "UpdateLog":
        """The first `end` updates, read again from the keeper."""
        assert self._keeper is not None  # only a log that is kept is compacted
        log = UpdateLog(self.unit, self._rows.most, self.most, self.unit_type, self._row)
        for _, batch in self._keeper.after(0):
            log._take([(self._fitted(item), owner) for item, owner in batch])
            if len(log.items) >= end:
                break
        return log

    def compact(self) -> None:
        """Forget all updates but those whose rows are there now; the keeper has them."""
        self.length()
        with self._lock:
            if self._keeper is None:
                raise NotAllowed(
                    "this live table is in no durable ledger, so nothing else has its updates: open its session with "
                    "ledger=..."
                )
            there = self._rows.slots()
            for slot in range(len(self.items)):
                if slot not in there:
                    self.items[slot] = self.replaced[slot] = self._owners[slot] = None
            self._compacted = len(self.items)


def _refitted(row: Callable[[Any], Record], update: Any) -> Any:
    """An update that was stored under another version of the declaration, with the columns of this one."""
    return (*update[:2], *row(update[2:])) if update[0] else update


NEW = -1
"""What a put replaces that adds a row."""


class UpdateRule:
    """For each unit its rows: the key of each, and the slot of the update that put it there."""

    __slots__ = ("_of", "most")

    def __init__(self, most: int | None = None) -> None:
        self.most = most
        self._of: dict[Unit | None, dict[Key | None, int]] = {}

    def apply(self, owner: Unit | None, update: Record, slot: int) -> int | None:
        """The slot of the row that this update replaces or removes, or `NEW`; None if it does nothing.

        An update is (True, key, field, ...) to put a row, or (False, key) to remove one.
        """
        puts, key = update[:2]
        own = self._of.get(owner, {})
        before = own.get(key)
        if before is None and not (puts and (self.most is None or len(own) < self.most)):
            return None
        if puts:
            self._of.setdefault(owner, own)[key] = slot
        else:
            self._remove(owner, key)
        return NEW if before is None else before

    def slots(self) -> set[int]:
        """The slots of the updates whose rows are there."""
        return {slot for own in self._of.values() for slot in own.values()}

    def _remove(self, owner: Unit | None, key: Key | None) -> None:
        del self._of[owner][key]
        if not self._of[owner]:
            del self._of[owner]  # or the memory would grow with the units that ever were


Where = tuple[tuple[int, Key], ...]
"""A part: columns by their places, each with the value that its rows have there."""


def change(update: Any, replaced: Any, read: Contribution, where: Where) -> Raw:
    """How much an update changes the answer about the rows of a part, with the update whose row it replaced, if any."""
    after = _added(update, read, where)
    before = _added(replaced, read, where)
    if isinstance(after, tuple):
        return tuple(new - old for new, old in zip(after, before, strict=True))  # type: ignore[arg-type]  # same shape
    return after - before  # type: ignore[operator]  # the same shape


def _added(update: Any, read: Contribution, where: Where) -> Raw:
    """What the row of an update adds to the answer; 0 without a row, or if the row is in another part."""
    if update is None or not update[0]:
        return read.zero
    row = update[2:]
    return read.read(row) if all(row[place] == key for place, key in where) else read.zero
