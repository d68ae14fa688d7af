"""The items of a stream, and the rows of a live table, as rows of an embedded engine that answers requests by a pin.

`ArrivedRows` holds the items of a stream. They are fed from the log when they are first asked for, each once, so an ask
costs what the same query costs on a table of that size, however many asks came before. Every item becomes a row, also
one that does not count: then its place is missing, and no condition finds it. So the number of rows that are stored is
the public length.

>>> from counterpoint.schema.columns import number
>>> from counterpoint.schema.declaration import Named
>>> rows = ArrivedRows(Declaration(None, 1, "replace", (Named("clicks", number(0, 10)),)))
>>> rows.run("SELECT COUNT(*) FROM arrived WHERE c1 < ?", [(3,), None, (7,)], [None] * 3, pin=3)
[(2,)]

`LiveRows` holds each version of a live table's rows, with the slots at which it began and ended. A row that an update
puts at slot b, and another one replaces or removes at slot d, is there for the pins b < pin <= d. So an ask reads the
rows as they were when it was pinned, whatever has arrived since. Every slot becomes a row of the engine, also one that
does nothing: then it begins nowhere, and no condition finds it. So how many rows are fed, and when, depends on public
lengths alone.

Rows that ended long ago leave the engine at public times, once in `EVERY` slots, so that it holds the present rows and
at most 2 * `EVERY` others. A pin from before that (a crash left its ask unfinished) is answered from the log, by an
engine of its own.

>>> from counterpoint.schema.columns import number
>>> from counterpoint.schema.declaration import Named
>>> updates, replaced = [(True, 7, 30), (True, 7, 31), (False, 7)], [-1, 0, 1]
>>> def slots(start, end):
...     return updates[start:end], replaced[start:end], [None] * (end - start)
>>> rows = LiveRows(Declaration(None, 1, "replace", (Named("age", number(0, 120)),)), slots)
>>> [rows.run(f"SELECT SUM(c0) FROM {PRESENT} WHERE c1 < ? AND c2 >= ?", pin) for pin in (1, 2, 3)]
[[(30,)], [(31,)], [(None,)]]
"""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import numpy as np

from counterpoint.engines.duckdb import EmbeddedEngine, JoinedTable, empty_engine
from counterpoint.engines.sampling import column_array, stored_kind
from counterpoint.privacy.secret import Raw
from counterpoint.schema.declaration import Declaration
from counterpoint.sources.streams.items import Record

ARRIVED = "arrived"
"""The table of the rows."""
_TOGETHER = 2**17
"""How many items are fed at a time."""


class ArrivedRows:
    """An embedded engine with a row for each item: its fields `ci`, its place as one more column, its unit `u`."""

    __slots__ = ("_declared", "_engine", "_fed", "_lock")

    def __init__(self, declared: Declaration) -> None:
        self._declared = declared
        self._engine: EmbeddedEngine | None = None
        self._fed = 0
        self._lock = Lock()

    def run(
        self,
        sql: str,
        items: "Sequence[Raw | Record | None]",
        owners: Sequence[Any] | None,
        pin: int,
        *,
        beside: Sequence[JoinedTable] = (),
    ) -> list[tuple[Any, ...]]:
        """The rows that a statement returns, of which one parameter is the pin, once as many items are fed.

        `owners` has the unit of each item; None at event level, where items have none.
        """
        with self._lock:
            engine = self._up_to(items, owners, pin)
        return engine.run(sql, (pin,), beside)

    def _up_to(self, items: "Sequence[Any]", owners: Sequence[Any] | None, pin: int) -> EmbeddedEngine:
        """The engine, once it has the first `pin` items, each of them once."""
        if self._engine is None:
            self._engine, self._fed = empty_engine(f"CREATE TABLE {ARRIVED} ({', '.join(self._columns())})"), 0
        try:
            for start in range(self._fed, pin, _TOGETHER):
                end = min(start + _TOGETHER, pin)
                owned = [None] * (end - start) if owners is None else owners[start:end]
                self._engine.insert(ARRIVED, self._batch(items[start:end], owned, start))
                self._fed = end
        except BaseException:
            self._engine = None  # it may have been fed before it failed, and items that are fed again count twice
            raise
        return self._engine

    def _columns(self) -> list[str]:
        kinds = [stored_kind(named.column) for named in self._declared.columns]
        return [*(f"c{i} {kind}" for i, kind in enumerate(kinds)), f"c{len(kinds)} BIGINT", "u VARCHAR"]

    def _batch(self, items: "Sequence[Any]", owners: Sequence[Any], start: int) -> list[Any]:
        """The columns of these items, as arrays."""
        width = len(self._declared.columns)
        blank: tuple[Any, ...] = (None,) * width
        fields = list(zip(*(blank if item is None else item for item in items), strict=True))
        places = [None if item is None else start + number for number, item in enumerate(items)]
        kinds = [stored_kind(named.column) for named in self._declared.columns]
        return [
            column_array(kind, values)
            for kind, values in zip((*kinds, "BIGINT", "VARCHAR"), (*fields, places, owners), strict=True)
        ]


PRESENT = "present"
"""The table of the rows."""
EVERY = 2**16
"""How many slots apart the engine drops rows that ended."""

ENDLESS = 2**62
"""The end of a row that is still there."""

Slots = tuple[Sequence[Any], Sequence[int | None], Sequence[Any]]
"""Updates, the slots whose rows they replaced or removed, and their owners."""


class LiveRows:
    """An embedded engine with a row for each slot: its columns `ci`, where it began and ended, its unit `u`.

    `slots` reads the log, from one slot up to another.
    """

    __slots__ = ("_declared", "_engine", "_fed", "_floor", "_lock", "_slots", "_swept")

    def __init__(self, declared: Declaration, slots: Callable[[int, int], Slots]) -> None:
        self._declared = declared
        self._slots = slots
        self._lock = Lock()
        self._reset()

    def _reset(self) -> None:
        self._engine: EmbeddedEngine | None = None
        self._fed = self._swept = self._floor = 0

    def run(self, sql: str, pin: int, beside: Sequence[JoinedTable] = ()) -> list[tuple[Any, ...]]:
        """The rows that a statement returns, of which both parameters are the pin."""
        with self._lock:
            engine = self._up_to(pin)
        found = engine.run(sql, (pin, pin), beside)
        if pin >= self._floor:  # looked at last: the floor rises before rows leave
            return found
        return LiveRows(self._declared, self._slots)._up_to(pin).run(sql, (pin, pin), beside)

    def _up_to(self, pin: int) -> EmbeddedEngine:
        """The engine, once it has the first `pin` slots."""
        if self._engine is None:
            self._engine = empty_engine(f"CREATE TABLE {PRESENT} ({', '.join(self._columns())})")
        try:
            for start in range(self._fed, pin, _TOGETHER):
                end = min(start + _TOGETHER, pin)
                self._feed(self._engine, self._slots(start, end), start)
                self._fed = end
            if self._fed - self._swept >= EVERY:
                self._sweep(self._engine)
        except BaseException:
            self._reset()  # what was fed is not known, and the log has it all
            raise
        return self._engine

    def _columns(self) -> list[str]:
        kinds = [stored_kind(named.column) for named in self._declared.columns]
        width = len(kinds)
        own = (f"c{i} {kind}" for i, kind in enumerate(kinds))
        return [*own, f"c{width} BIGINT", f"c{width + 1} BIGINT", "u VARCHAR"]

    def _feed(self, engine: EmbeddedEngine, arrived: Slots, start: int) -> None:
        """Insert these slots, and end the rows that they replaced or removed."""
        updates, replaced, owners = arrived
        width, slots = len(self._declared.columns), range(start, start + len(updates))
        blank: tuple[Any, ...] = (None,) * width
        puts = [update is not None and update[0] for update in updates]
        fields = zip(*(update[2:] if put else blank for put, update in zip(puts, updates, strict=True)), strict=True)
        kinds = [stored_kind(named.column) for named in self._declared.columns]
        begins = [slot if put else None for put, slot in zip(puts, slots, strict=True)]
        columns = [column_array(kind, values) for kind, values in zip(kinds, fields, strict=True)]
        columns += [column_array("BIGINT", begins), np.full(len(updates), ENDLESS)]
        engine.insert(PRESENT, [*columns, column_array("VARCHAR", owners)])
        ended = np.fromiter((-1 if slot is None else slot for slot in replaced), dtype=np.int64, count=len(replaced))
        engine.change(
            f"UPDATE {PRESENT} SET c{width + 1} = offered.f1 FROM offered WHERE {PRESENT}.c{width} = offered.f0",
            [ended, np.arange(start, start + len(updates))],
        )

    def _sweep(self, engine: EmbeddedEngine) -> None:
        """Drop the rows that had ended when the rows were last swept."""
        self._floor = self._swept
        self._swept = self._fed
        width = len(self._declared.columns)
        kept = f"c{width} IS NOT NULL AND c{width + 1} >= {self._floor}"
        engine.run(f"CREATE OR REPLACE TABLE {PRESENT} AS SELECT * FROM {PRESENT} WHERE {kept}")
