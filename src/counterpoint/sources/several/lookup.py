"""A public lookup table: what everyone may know about a value, such as the section of a page or the region of a state.

Its rows are public and protected by nothing. In `Sources`, the rows of a source that has a column with the name of the
lookup's key see the lookup's columns under that value. The key must be unique, which is checked here: otherwise a row
would become several.

>>> import duckdb
>>> from counterpoint.sources.declaring.columns import category, text
>>> rows = duckdb.sql("SELECT * FROM (VALUES ('/a', 'news'), ('/b', 'sport')) AS pages(page, section)")
>>> Lookup(rows, key="page", columns={"page": text(), "section": category(["news", "sport"])})
Lookup(section; key='page', 2 rows)
>>> Lookup(rows, key="section", columns={"page": text(), "section": category(["news"])})
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: the key of a lookup must be there in every row, and 'section' is missing in some
"""

from collections.abc import Mapping

from counterpoint.encoding import digest
from counterpoint.errors import InvalidParameter
from counterpoint.sources.declaring.columns import Column, Key
from counterpoint.sources.declaring.dates import Date
from counterpoint.sources.declaring.declaration import Named
from counterpoint.sources.declaring.derived import Derived
from counterpoint.sources.declaring.units import each_row
from counterpoint.sources.tables.table import Table

MOST_ROWS = 10**7
"""The most rows of a lookup: it is held in memory, and again beside the rows that see it."""


class Lookup:
    """Public rows, found by a key that is unique; `data` and `columns` are those of a `Table`."""

    __slots__ = ("columns", "key", "key_column", "rows")

    def __init__(self, data: object, key: str, columns: Mapping[str, Column | Derived] | None = None) -> None:
        with Table(data, unit=each_row, columns=columns, neighbours="replace") as table:
            declared = table.declaration
            place = declared.index(key)
            names = ", ".join(f"c{i}" for i in range(len(declared.columns)))
            found = table.all_rows(names)
        if len(found) > MOST_ROWS:
            raise InvalidParameter(f"a lookup has at most {MOST_ROWS} rows, not {len(found)}")
        keys = [row[place] for row in found]
        if None in keys:
            raise InvalidParameter(f"the key of a lookup must be there in every row, and {key!r} is missing in some")
        if len(set(keys)) < len(keys):
            raise InvalidParameter(
                f"the key of a lookup must be unique, and {key!r} has a value in several rows: keep one of them"
            )
        self.key = key
        self.key_column = declared.columns[place].column
        self.columns: tuple[Named, ...] = tuple(it for i, it in enumerate(declared.columns) if i != place)
        self.rows: list[tuple[Key | None, ...]] = sorted(
            ((row[place], *(value for i, value in enumerate(row) if i != place)) for row in found),
            key=lambda row: str(row[0]),
        )
        """The key of each row, then its other columns, in stored form."""

    def __repr__(self) -> str:
        names = ", ".join(named.name for named in self.columns)
        return f"Lookup({names}; key={self.key!r}, {len(self.rows)} rows)"

    def fits(self, column: Column) -> bool:
        """Whether the values of a column are stored as the keys are."""
        own = self.key_column
        return (own.kind, own.grid, isinstance(own, Date)) == (column.kind, column.grid, isinstance(column, Date))

    def fingerprint(self) -> str:
        """A digest of everything; it is public."""
        return digest("lookup", self.key, self.key_column, self.columns, tuple(self.rows)).hex()
