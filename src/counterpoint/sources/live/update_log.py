"""The log of a live table: its updates in the order of arrival, each with what it replaced.

A live table *is* this log, and its rows are what the updates so far make of it. Each update takes a slot. The number of
slots is public; what an update says is private, also whether it did anything. Which updates take effect is decided at
arrival (see `rule`); with `most`, only the first so many updates of a unit over its whole life do.

>>> log = UpdateLog("person", rows_per_unit=1)
>>> log.extend([(True, 1, 30), (True, 2, 40), (True, 1, 31), (False, 2)], ["ann"] * 4)
>>> log.items, log.replaced, log.length()
([(True, 1, 30), None, (True, 1, 31), None], [-1, None, 0, None], 4)
"""

from collections.abc import Sequence
from typing import Any

from counterpoint.numbers.exact import whole
from counterpoint.randomness.process import Owner
from counterpoint.sources.declaring.declaration import Declaration
from counterpoint.sources.live.present import PresentRows
from counterpoint.sources.live.rule import LiveRows
from counterpoint.sources.streams.log import Item, Log, Unit


class UpdateLog(Log):
    """The updates of a live table; `items` has None for those that do nothing.

    `replaced` has the slot of the row that an update replaced or removed (-1: none, the row is new).
    """

    what = "live table"
    __slots__ = ("_present", "_rows", "replaced")

    def __init__(self, unit: str | None, rows_per_unit: int | None, most: int | None = None) -> None:
        super().__init__()
        self.unit, self.most = unit, None if most is None else whole(most, 1, "updates_per_unit")
        self.replaced: list[int | None] = []
        self._rows = LiveRows(rows_per_unit)
        self._present: PresentRows | None = None
        self._process = Owner(
            "a live table",
            "make it in this process, or after the fork; processes share one through a ledger in PostgreSQL",
        )

    def _take(self, arrived: Sequence[Item]) -> None:
        for item, owner in arrived:
            counts = self.most is None or self._counts(owner, self.most)
            replaced = self._applied(owner, item) if counts else None
            self.items.append(None if replaced is None else item)
            self.replaced.append(replaced)
            self._owners.append(owner)

    def _applied(self, owner: Unit | None, item: Any) -> int | None:
        if item is None or (owner is None and self.unit is not None):
            return None
        return self._rows.apply(owner, item, len(self.items))

    def fetch(self, declared: Declaration, sql: str, pin: int) -> list[tuple[Any, ...]]:
        """The rows that a statement returns about the table as it was after `pin` updates."""
        with self._lock:
            if self._present is None:
                self._present = PresentRows(declared)
        return self._present.run(sql, self.items, self.replaced, self._owners, pin)
