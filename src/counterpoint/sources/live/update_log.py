"""The log of a live table: its updates in the order of arrival, each with what it replaced.

A live table *is* this log, and its rows are what the updates so far make of it. Each update takes a slot. The number of
slots is public; what an update says is private, also whether it did anything. Which updates take effect is decided at
arrival (see `rule`); with `most`, only the first `most` updates of a unit over its whole life do.

>>> log = UpdateLog("person", rows_per_unit=1)
>>> log.extend([(True, 1, 30), (True, 2, 40), (True, 1, 31), (False, 2)], ["ann"] * 4)
>>> log.items, log.replaced, log.length()
([(True, 1, 30), None, (True, 1, 31), None], [-1, None, 0, None], 4)
"""

from collections.abc import Iterator, Sequence
from typing import Any

from counterpoint.errors import NotAllowed
from counterpoint.numbers.exact import whole
from counterpoint.randomness.process import Owner
from counterpoint.sources.asking.evaluating import StoredRow
from counterpoint.sources.declaring.declaration import Declaration
from counterpoint.sources.declaring.unit_keys import UnitType
from counterpoint.sources.engines.embedded import BesideTable
from counterpoint.sources.live.present import ENDLESS, PresentRows, Slots
from counterpoint.sources.live.rule import NEW, LiveRows
from counterpoint.sources.streams.log import Item, Log, Unit, log_unit_type


class UpdateLog(Log):
    """The updates of a live table; `items` has None for those that do nothing.

    `replaced` has the slot of the row that an update replaced or removed (-1: none, the row is new). After `compact`,
    what was before that is read again from the keeper, by whoever needs it: use `slots` and `effects`.
    """

    what = "live table"
    __slots__ = ("_compacted", "_present", "_rows", "replaced")

    def __init__(
        self, unit: str | None, rows_per_unit: int | None, most: int | None = None, unit_type: UnitType | None = None
    ) -> None:
        super().__init__()
        self.unit, self.most = unit, None if most is None else whole(most, 1, "updates_per_unit")
        self.unit_type = log_unit_type(unit, unit_type)
        self.replaced: list[int | None] = []
        self._rows = LiveRows(rows_per_unit)
        self._present: PresentRows | None = None
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
        self, declared: Declaration, sql: str, pin: int, beside: Sequence[BesideTable] = ()
    ) -> list[tuple[Any, ...]]:
        """The rows that a statement returns about the table as it was after `pin` updates."""
        with self._lock:
            if self._present is None:
                self._present = PresentRows(declared, self.slots)
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
        self.replaced, self._present, self._rows = [], None, LiveRows(self._rows.most)
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
        log = UpdateLog(self.unit, self._rows.most, self.most, self.unit_type)
        for _, batch in self._keeper.after(0):
            log._take(batch)
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
