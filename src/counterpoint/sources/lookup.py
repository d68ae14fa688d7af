"""Public lookup tables: what everyone may know about a value, such as the section of a page or the weather of an hour.

A row of a private source finds at most one row of a lookup: the one with its own values of the lookup's keys and, if
the lookup has ranges, in whose range its own value lies. So keys are unique and the ranges of one key do not overlap,
which is checked where a lookup is made: otherwise a row would become several.

>>> import duckdb
>>> from counterpoint.schema.columns import category, text
>>> rows = duckdb.sql("SELECT * FROM (VALUES ('/a', 'news'), ('/b', 'sport')) AS pages(page, section)")
>>> Lookup(rows, key="page", columns={"page": text(), "section": category(["news", "sport"])})
Lookup(section; key='page', 2 rows)
>>> Lookup(rows, key="section", columns={"page": text(), "section": category(["news"])})
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: the key of a lookup must be there in every row, and 'section' is missing ...
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from counterpoint.encoding import digest
from counterpoint.errors import InvalidParameter, shown
from counterpoint.schema.columns import Column, Number
from counterpoint.schema.declaration import Declaration, Derived, Named
from counterpoint.schema.times import Date, Timestamp
from counterpoint.schema.units import each_row
from counterpoint.sources.table import Table

MOST_ROWS = 10**7
"""The most rows of a lookup: it is held in memory, and again beside the rows that see it."""


class Lookup:
    """A public lookup table, whose rows are protected by nothing; `data` and `columns` are those of a `Table`.

    In `Sources`, the rows of a source that has columns with the names of the lookup's keys see the lookup's other
    columns under their own values: `key=["airport", "hour"]` finds the weather of an airport in an hour. With
    `ranges={"day": ("since", "until")}` a row finds the row of the lookup for which `since <= day < until`.
    """

    __slots__ = ("columns", "compared", "ends", "key", "rows", "within")

    def __init__(
        self,
        data: object,
        key: str | Sequence[str] = (),
        columns: Mapping[str, Column | Derived] | None = None,
        *,
        ranges: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        self.key: tuple[str, ...] = (key,) if isinstance(key, str) else tuple(key)
        self.within, self.ends = _range(ranges)
        named = (*self.key, *self.ends)
        if not named or len(set(named)) < len(named):
            raise InvalidParameter(
                "a lookup is found by its key, as in key='page' or key=['airport', 'hour'], or by ranges, as in "
                f"ranges={{'day': ('since', 'until')}}; each column counts once, not {shown(named)}"
            )
        with Table(data, unit=each_row, columns=columns, neighbours="replace") as table:
            declared = table.declaration
            places = [declared.index(name) for name in named]
            found = table.all_rows(", ".join(f"c{i}" for i in range(len(declared.columns))))
        if len(found) > MOST_ROWS:
            raise InvalidParameter(f"a lookup has at most {MOST_ROWS} rows, not {len(found)}")
        for name, place in zip(named, places, strict=True):
            if any(row[place] is None for row in found):
                raise InvalidParameter(
                    f"the key of a lookup must be there in every row, and {name!r} is missing in some"
                )
        self.compared = _compared(declared, self.key, self.within, self.ends)
        """The columns that a row of a source needs, by name, and how the lookup declares each."""
        self.columns: tuple[Named, ...] = tuple(it for i, it in enumerate(declared.columns) if i not in places)
        others = [i for i in range(len(declared.columns)) if i not in places]
        self.rows: list[tuple[Any, ...]] = sorted(
            (tuple(row[i] for i in (*places, *others)) for row in found),
            key=lambda row: (*map(str, row[: len(self.key)]), *row[len(self.key) : len(places)]),
        )
        """The keys of each row, the ends of its range if there are ranges, then its other columns, in stored form."""
        self._check_unique()

    def _check_unique(self) -> None:
        """Refuse rows of which one row of a source could find several."""
        width, which = len(self.key), ", ".join(map(repr, self.key))
        for before, after in pairwise(self.rows):
            if before[:width] != after[:width]:
                continue
            if self.within is None:
                raise InvalidParameter(
                    f"the key of a lookup must be unique, and {which} has a value in several rows: keep one of them"
                )
            if before[width + 1] > after[width]:
                raise InvalidParameter(
                    f"ranges of a lookup must not overlap, and some do{which and f' for one {which}'}"
                )
        if self.within is not None and any(row[width] >= row[width + 1] for row in self.rows):
            raise InvalidParameter("each range of a lookup must end after it begins, and some do not")

    @property
    def found_by(self) -> str:
        """By which columns a row finds its row of the lookup, in words.

        >>> import duckdb
        >>> from counterpoint.schema.columns import number, text
        >>> rows = duckdb.sql("SELECT 'JFK' AS airport, 0 AS since, 5 AS until, 3 AS wind")
        >>> declared = {"airport": text(), **dict.fromkeys(("since", "until", "wind"), number(0, 9))}
        >>> Lookup(rows, "airport", declared, ranges={"hour": ("since", "until")}).found_by
        'airport and the range of hour'
        """
        ranged = () if self.within is None else (f"the range of {self.within}",)
        return " and ".join((*self.key, *ranged))

    @property
    def comparisons(self) -> tuple[tuple[str, str, str], ...]:
        """How a row of a source is compared with one of these: its column, the comparison, and the lookup's column."""
        ranged = () if self.within is None else zip((self.within,) * 2, (">=", "<"), self.ends, strict=True)
        return (*((name, "=", name) for name in self.key), *ranged)

    def __repr__(self) -> str:
        names = ", ".join(named.name for named in self.columns)
        key = self.key[0] if len(self.key) == 1 else list(self.key)
        ranged = "" if self.within is None else f", ranges of {self.within!r}"
        return f"Lookup({names}; key={key!r}{ranged}, {len(self.rows)} rows)"

    def fingerprint(self) -> str:
        """A digest of everything; it is public."""
        return digest("lookup", self.key, self.within or "", self.compared, self.columns, tuple(self.rows)).hex()


def _range(ranges: Any) -> tuple[str | None, tuple[str, ...]]:
    """The column whose values lie in ranges, and the lookup's columns of their ends; a lookup has one such column."""
    if ranges is None:
        return None, ()
    ((name, ends),) = ranges.items() if isinstance(ranges, Mapping) and len(ranges) == 1 else ((None, ()),)
    if not isinstance(name, str) or not isinstance(ends, tuple | list) or len(ends) != 2:
        raise InvalidParameter(
            "ranges names one column of the rows and the two ends, as in {'day': ('since', 'until')}, not "
            f"{shown(ranges)}"
        )
    return name, tuple(ends)


def _compared(
    declared: Declaration, key: Sequence[str], within: str | None, ends: Sequence[str]
) -> tuple[tuple[str, Column], ...]:
    columns = [(name, declared.columns[declared.index(name)].column) for name in key]
    if within is not None:
        first, second = (declared.columns[declared.index(name)].column for name in ends)
        if not isinstance(first, Number | Date | Timestamp) or not compares(first, second):
            raise InvalidParameter(
                f"the ends of a range are two columns of numbers, dates or times that are declared alike: {ends[0]} is "
                f"{first.describe()}, and {ends[1]} is {second.describe()}"
            )
        columns.append((within, first))
    return tuple(columns)


def compares(one: Column, other: Column) -> bool:
    """Whether two columns store a value alike."""
    return (one.kind, one.grid, isinstance(one, Date)) == (other.kind, other.grid, isinstance(other, Date))
