"""Stored items under another declaration: which fields may follow which, and how an item is read under the new ones.

A stream and a live table keep what arrived, and a later version of their declaration reads the same log. It may have
more fields, behind the earlier ones, and other keys and bounds. Each item is read by itself, by a total function of its
stored form: fields that it has not are missing, values beyond the bounds count as the nearest bound, and keys that are
not declared are missing. Earlier versions read later items the same way, so a counter that was launched on one
receives no value beyond the bounds that its noise was chosen for.

>>> from counterpoint.schema.columns import Boolean, category, number
>>> first = (Named("page", category(["home"])), Named("clicks", number(0, 10)))
>>> second = (Named("page", category(["home", "shop"])), Named("clicks", number(0, 20)), Named("vip", Boolean()))
>>> why_not_read(first, second)
>>> why_not_read(second, first)
"'vip' would be gone"
>>> read_as(second)(("home", 7)), read_as(first)(("shop", 15, True))
(('home', 7, None), (None, 10))
"""

from collections.abc import Callable, Sequence
from typing import Any

from counterpoint.encoding import Tagged, Value
from counterpoint.schema.columns import Column, Key
from counterpoint.schema.declaration import Named
from counterpoint.schema.unit_keys import UnitType
from counterpoint.sources.streams.items import Record


class StreamFacts(Tagged, Value, frozen=True):
    """What is declared about a stream: its arguments; `columns` are the fields of records, None for numbers."""

    columns: tuple[Named, ...] | None
    bound: int
    dimensions: int | None
    signed: bool
    l1: int | None
    l2_squared: int | None
    unit: str | None
    per_unit: int | None
    apart: int | None
    unit_type: UnitType | None
    neighbours: str


class LiveTableFacts(Tagged, Value, frozen=True):
    """What is declared about a live table: its arguments."""

    columns: tuple[Named, ...]
    unit: str | None
    rows_per_unit: int | None
    key: str
    protects: str
    updates_per_unit: int | None
    unit_type: UnitType | None


def why_not_after(before: object, after: StreamFacts | LiveTableFacts) -> str | None:
    """Why a log that was declared like `before` cannot be read by the declaration `after`; None if it can."""
    if isinstance(before, StreamFacts) and isinstance(after, StreamFacts):
        if (before.columns is None) != (after.columns is None) or before.dimensions != after.dimensions:
            return "its items would have another form than those that arrived"
        return None if before.columns is None else why_not_read(before.columns, after.columns or ())
    if isinstance(before, LiveTableFacts) and isinstance(after, LiveTableFacts):
        if before.key != after.key:
            return f"rows would be named by {after.key!r}, and they are named by {before.key!r}"
        return why_not_read(before.columns, after.columns)
    return "the record does not say what was declared"


def why_not_read(before: Sequence[Named], after: Sequence[Named]) -> str | None:
    """Why records of the fields `before` cannot be read as records of the fields `after`; None if they can."""
    names = [named.name for named in after]
    for place, named in enumerate(before):
        if named.name not in names:
            return f"{named.name!r} would be gone"
        if names[place] != named.name:
            return f"{named.name!r} would have another place: declare new fields behind the earlier ones"
        now = after[place].column
        if _form(now) != _form(named.column):
            return f"{named.name!r} would be {now.describe()}, and what arrived is {named.column.describe()}"
    return None


def _form(column: Column) -> tuple[object, ...]:
    """What says which value a stored value stands for."""
    return type(column), column.kind, column.grid


def read_as(columns: Sequence[Named]) -> Callable[[Any], Record]:
    """The function that reads the stored form of any version as a record of these fields."""
    readers = [_reader(named.column) for named in columns]

    def read(stored: Any) -> Record:
        missing = (None,) * (len(readers) - len(stored))
        return tuple([read(value) for read, value in zip(readers, (*stored, *missing), strict=False)])

    return read


def _reader(column: Column) -> Callable[[Any], Key | None]:
    bounds, known = column.bounds, column.known_keys
    if bounds is not None:
        least, most = bounds
        return lambda value: None if value is None else min(max(value, least), most)
    if known is not None:
        keys = frozenset(known)
        return lambda value: value if value in keys else None
    return lambda value: value
