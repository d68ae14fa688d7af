"""The items of a stream of records as rows of an embedded engine: every request on what has arrived by a pin.

The rows are fed from the log when they are first asked for, each once, so an ask costs what the same query costs on a
table of that size, however many asks came before. Every item becomes a row, also one that does not count: then its
place is missing, and no condition finds it. So the number of rows that are stored is the public length.

>>> from counterpoint.sources.declaring.columns import number
>>> from counterpoint.sources.declaring.declaration import Named
>>> rows = ArrivedRows(Declaration(None, 1, "replace", (Named("clicks", number(0, 10)),)))
>>> rows.run("SELECT COUNT(*) FROM arrived WHERE c1 < ?", [(3,), None, (7,)], [None] * 3, pin=3)
[(2,)]
"""

from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np

from counterpoint.privacy.secret import Raw
from counterpoint.sources.declaring.columns import Column
from counterpoint.sources.declaring.declaration import Declaration
from counterpoint.sources.engines.embedded import BesideTable, EmbeddedEngine, empty_engine
from counterpoint.sources.streams.shape import Record

ROWS = "arrived"
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
        beside: Sequence[BesideTable] = (),
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
            self._engine, self._fed = empty_engine(f"CREATE TABLE {ROWS} ({', '.join(self._columns())})"), 0
        try:
            for start in range(self._fed, pin, _TOGETHER):
                end = min(start + _TOGETHER, pin)
                owned = [None] * (end - start) if owners is None else owners[start:end]
                self._engine.insert(ROWS, self._batch(items[start:end], owned, start))
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


_KINDS = {"text": "VARCHAR", "boolean": "BOOLEAN"}


def stored_kind(column: Column) -> str:
    """The type in which a stored value of this column is kept.

    >>> from counterpoint.sources.declaring.columns import number, text
    >>> stored_kind(number(0, 1)), stored_kind(text())
    ('BIGINT', 'VARCHAR')
    """
    return _KINDS.get(column.kind, "BIGINT")


def column_array(kind: str, values: "Sequence[Any]") -> Any:
    """A column as an array; missing numbers and truth values are masked.

    >>> column_array("BIGINT", [3, None]).tolist()
    [3, None]
    """
    if kind == "VARCHAR":
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array
    missing = np.fromiter((value is None for value in values), dtype=bool, count=len(values))
    filled = np.fromiter((0 if value is None else value for value in values), dtype=np.int64, count=len(values))
    return np.ma.MaskedArray(filled if kind == "BIGINT" else filled.astype(bool), mask=missing)
