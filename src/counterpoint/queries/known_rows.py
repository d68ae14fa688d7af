r"""Known rows: awkward values of every type, their stored form, and what requests about them answer (`conformance`).

All of it was written down once, and is the same for every engine; tests compute it again with `expressions.evaluate`.

>>> {len(rows) for known in COLUMNS.values() for rows in (known.given, known.stored)}
{12}
"""

from collections.abc import Callable, Sequence
from datetime import date as date_of
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from counterpoint.queries.aggregates import count, count_distinct, histogram, ranks, sum
from counterpoint.queries.quantiles import median
from counterpoint.queries.request import Request
from counterpoint.schema.columns import Column, Key, boolean, number, text, whole
from counterpoint.schema.declaration import Declaration, Named, derived, with_derived
from counterpoint.schema.times import date, timestamp
from counterpoint.schema.unit_keys import UnitType, unit_key

_FAR = 2**62


class KnownColumn(NamedTuple):
    """A column: what it is about, its type by DuckDB's name, its declaration, and its values, row by row.

    They are given as texts that are cast to the type; None is NULL.
    """

    about: str
    kind: str
    column: Column
    given: Sequence[str | None]
    stored: Sequence[Key | None]


def _whole(about: str, column: Column, values: Sequence[int | None]) -> KnownColumn:
    """A column of whole numbers, which are stored as they are."""
    return KnownColumn(about, "BIGINT", column, [None if value is None else str(value) for value in values], values)


def _same(about: str, kind: str, values: Sequence[str | None]) -> KnownColumn:
    """A column of texts, which are stored as they are."""
    return KnownColumn(about, kind, text(), values, values)


_BERLIN = timestamp("2024-01-01", "2024-12-31", zone="Europe/Berlin")  # 2024-03-31 has no 02:30, and 2024-10-27 has two
_FIRST, _LAST = 1704063600_000000, 1735599600_000000

COLUMNS = {
    "id": _whole("whole numbers", whole(), range(12)),
    "w": _whole("whole numbers of 63 bits", number(-_FAR, _FAR), [*[_FAR] * 6, -1, None, -_FAR, 0, _FAR - 1, 7]),
    "n": _whole("small whole numbers", number(-9, 9), [-7, -2, -1, 0, 1, 2, 7, 9, None, 5, -9, 3]),
    "d": KnownColumn(
        "doubles, NaN and infinities",
        "DOUBLE",
        number(-3, 3, step="1/2"),
        ["NaN", "Infinity", "-Infinity", "-0.25", "0.25", "1e308", "-1e308", "5e-324", "2.5", "1.75", "-0.75", "0.1"],
        [None, 6, -6, 0, 1, 6, -6, 0, 5, 4, -1, 0],
    ),
    "t": _same(
        "texts", "VARCHAR", ["a", "A", "a ", "ab", "\u00e9", "e\u0301", "a\nb", "%", "it's", "", "x" * 300, None]
    ),
    "r": KnownColumn(
        "texts that are read as numbers",
        "VARCHAR",
        number(-3, 3, step="1/10"),
        [" 4 ", "1e1", "nan", "-Infinity", "0x10", "1_0", "4\n", "9" * 20, "1e400", "\u0663", ".5", "-0.15"],
        [30, 30, None, -30, None, None, None, 30, 30, None, 5, -1],
    ),
    "f": KnownColumn(
        "truth values",
        "BOOLEAN",
        boolean(),
        ["true", "false", None, "true", "true", "false", "false", None, "true", "false", "true", "false"],
        [True, False, None, True, True, False, False, None, True, False, True, False],
    ),
    "y": KnownColumn(
        "dates",
        "DATE",
        date("1990-01-01", "2030-12-31"),
        [
            *["2000-02-29", "0001-01-01", "9999-12-31", "1999-12-31", None, "2024-12-30"],
            *["2021-01-03", "1970-01-01", "1969-12-31", "2030-12-31", "1990-01-01", "2004-03-01"],
        ],
        [11016, 7305, 22279, 10956, None, 20087, 18630, 7305, 7305, 22279, 7305, 12478],
    ),
    "v": KnownColumn(
        "timestamps without a zone",
        "TIMESTAMP",
        _BERLIN,
        [
            *["2024-03-31 01:59:59", "2024-03-31 02:30:00", "2024-03-31 03:00:00", "2024-10-27 02:30:00"],
            *["1969-12-31 23:59:59.999999", None, "0001-01-01 00:00:00", "9999-12-31 23:59:59"],
            *["2024-01-01 00:00:00", "2024-06-01 12:00:00", "2024-06-01 12:00:00.500001", "2024-06-01 00:00:00"],
        ],
        [
            *[1711846799_000000, 1711848600_000000, 1711846800_000000, 1729989000_000000],
            *[_FIRST, None, _FIRST, _LAST],
            *[1704063600_000000, 1717236000_000000, 1717236000_500001, 1717192800_000000],
        ],
    ),
    "z": KnownColumn(
        "timestamps with a zone",
        "TIMESTAMP WITH TIME ZONE",
        _BERLIN,
        [
            *["2024-03-31 00:59:59+00:00", "2024-03-31 01:00:00+00:00", "0001-01-01 00:00:00+00:00"],
            *["9999-12-31 00:00:00+00:00", "1969-12-31 23:59:59.999999+00:00", None, "2024-10-27 00:30:00+00:00"],
            *["2024-10-27 01:30:00+00:00", "2024-01-01 00:00:00+00:00", "2024-06-01 12:00:00+00:00"],
            *["2024-06-01 12:00:00.500001+00:00", "2024-06-01 00:00:00+00:00"],
        ],
        [
            *[1711846799_000000, 1711846800_000000, _FIRST, _LAST, _FIRST, None, 1729989000_000000],
            *[1729992600_000000, 1704067200_000000, 1717243200_000000, 1717243200_500001, 1717200000_000000],
        ],
    ),
    "decimal": KnownColumn(
        "exact decimals",
        "DECIMAL",
        number(-(2**30), 2**30),
        [
            *["17.500", "17.000", "-0.500", "16777217.000", f"{10**35 - 1}.999", f"-{10**35 - 1}.999", "0.001", None],
            *["-17.000", "1073741823.499", "33554433.000", "0.000"],
        ],
        [18, 17, 0, 16777217, 2**30, -(2**30), 0, None, -17, 1073741823, 33554433, 0],
    ),
    "wide": KnownColumn(
        "whole numbers of more than 64 bits",
        "HUGEINT",
        whole(),
        [
            *[str(2**64 + 1), str(-(2**64) - 1), "17", None, "0", str(2**63 - 1)],
            *[str(2**63), str(-(2**63)), str(10**38 - 1), "-5", str(10**20), "1"],
        ],
        [None, None, 17, None, 0, 2**63 - 1, None, -(2**63), None, -5, None, 1],
    ),
    "single": KnownColumn(
        "floats of 32 bits",
        "FLOAT",
        number(0, 2**25),
        ["16777215", "16777216", "17.5", "NaN", "Infinity", "-0.0", "17", None, "-5", "0.5", "1e-30", "1e30"],
        [16777215, 16777216, 18, None, 2**25, 0, 17, None, 0, 1, 0, 2**25],
    ),
    "threes": KnownColumn(
        "whole numbers on a coarse grid",
        "BIGINT",
        number(-9, 9, step="3/2"),
        ["-7", "-2", "-1", "0", "1", "2", "7", "9", None, "5", "-9", "3"],
        [-5, -1, -1, 0, 1, 1, 5, 6, None, 3, -6, 2],
    ),
    "day": KnownColumn(
        "texts that are read as dates",
        "VARCHAR",
        date("1990-01-01", "2030-12-31"),
        [
            *["2000-02-29", "0001-01-01", "9999-12-31", "1999-12-31", None, "2024-12-30"],
            *["2021-01-03", "2023-02-29", "20000101", "2030-12-31", "1990-01-01", "2004-03-01 "],
        ],
        [11016, 7305, 22279, 10956, None, 20087, 18630, None, None, 22279, 7305, None],
    ),
    "time": KnownColumn(
        "texts that are read as timestamps",
        "VARCHAR",
        _BERLIN,
        [
            *["2024-06-01T12:00:00", "2024-06-01T12:00:00Z", "2024-06-01T12:00:00+05:30", "2024-06-01T12:00:00-05:30"],
            *["2024-06-01 12:00:00.500001", "2024-02-30T12:00:00", "2024-06-01T12:00", "2024-06-01", "noon", None],
            *["0001-01-01T00:00:00Z", "9999-12-31T23:59:59"],
        ],
        [
            *[1717236000_000000, 1717243200_000000, 1717223400_000000, 1717263000_000000, 1717236000_500001, None],
            *[1717236000_000000, 1717192800_000000, None, None, _FIRST, _LAST],
        ],
    ),
    "nano": KnownColumn(
        "timestamps with nanoseconds",
        "TIMESTAMP_NS",
        timestamp("1960-01-01", "2030-12-31", zone="UTC"),
        [
            *["2024-06-01 12:00:00.123456789", "1969-12-31 23:59:59.999999999", "1965-01-01 00:00:00.000001001", None],
            *["2024-06-01 12:00:00", "1970-01-01 00:00:00.000000001", "1950-01-01 00:00:00", "2100-01-01 00:00:00"],
            *["2024-06-01 12:00:00.999999500", "1999-12-31 23:59:59.9", "2000-01-01 00:00:00", "1960-01-01 00:00:00"],
        ],
        [
            *[1717243200_123456, -1, -157766399_999999, None, 1717243200_000000, 0, -315619200_000000],
            *[1924905600_000000, 1717243200_999999, 946684799_900000, 946684800_000000, -315619200_000000],
        ],
    ),
    "name": _same(
        "texts that name units",
        "VARCHAR",
        [
            *["17", "017", " +17 ", "-0", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "9" * 38, "9" * 39, "17.0", ""],
            *["ann", None, "-00"],
        ],
    ),
    "who": _same(
        "units",
        "VARCHAR",
        ["ann", "ann", "ann", "Ann", "\u00e9", "e\u0301", "ann ", "bob", "bob", None, "", "a\\b"],
    ),
}
"""The columns of the known rows. The last one names their units."""

DERIVED = {
    "sign": ("a derived text", derived("CASE WHEN n > 0 THEN 'up' WHEN n < 0 THEN 'down' END")),
    "half": ("a derived quotient", derived("CLAMP(n / 2, -9, 9, 1)")),
}
_COMPUTED: tuple[tuple[Key | None, ...], ...] = (
    ("down", "down", "down", None, "up", "up", "up", "up", None, "up", "down", "up"),
    (-3, -1, 0, 0, 1, 1, 4, 5, None, 3, -4, 2),
)
STORED = tuple(zip(*(known.stored for known in COLUMNS.values()), *_COMPUTED, COLUMNS["who"].stored, strict=True))
"""The rows in stored form: the columns, those that are derived, and the unit."""


UNIT_TYPES: tuple[tuple[str, UnitType], ...] = (
    *(("name", "text"), ("name", "whole"), ("id", "text"), ("id", "whole"), ("y", "text"), ("d", "whole")),
    *(("single", "whole"), ("decimal", "text"), ("decimal", "whole"), ("wide", "text"), ("wide", "whole")),
)
"""Columns whose values name units, by either rule; `keys_of` has their keys."""
_IN_PYTHON: dict[str, Callable[[str], object]] = {
    **{"VARCHAR": str, "BIGINT": int, "HUGEINT": int, "DECIMAL": Decimal},
    **{"DOUBLE": float, "FLOAT": np.float32, "DATE": date_of.fromisoformat},
}


def keys_of(name: str, of: UnitType) -> list[str | None]:
    """The key of the unit that each value of a column names."""
    known = COLUMNS[name]
    return [None if value is None else unit_key(_IN_PYTHON[known.kind](value), of) for value in known.given]


@lru_cache(1)
def declared() -> Declaration:
    """The declaration of the known rows; at most two of a unit are kept."""
    named = tuple(Named(name, known.column) for name, known in COLUMNS.items())
    computed = {name: column for name, (_, column) in DERIVED.items()}
    return Declaration("who", 2, "add-or-remove", with_derived(named, computed))


SUMS: tuple[tuple[str, Request, int], ...] = (
    ("sums beyond 64 bits", sum("w"), 27670116110564327429),
    ("sums of negative numbers beyond 64 bits", sum("-w"), -27670116110564327429),
    ("sums of some rows", sum("w", where="n <= 0"), 23058430092136939519),
    ("products", sum("n * n * n"), 152),
    ("quotients that are rounded to the nearest step", sum("CLAMP(n / 4, -3, 3, 1)"), 3),
    ("quotients of columns, which are missing where the divisor is 0", sum("CLAMP(d / n, -3, 3, 1/8)"), 28),
    ("quotients by negative numbers", sum("CLAMP(60 / n, -50, 50, 1/4)"), 128),
    ("wide products and quotients", sum("CLAMP(w * n / 7, -1000, 1000)", low=-1000, high=1000), -13986),
    ("absolute values", sum("ABS(n - 3)"), 49),
    ("COALESCE", sum("COALESCE(n, -d, 2)"), 11),
    ("CASE", sum("CASE WHEN n > 2 THEN 3 WHEN f THEN -n ELSE 1 END"), 30),
    ("comparisons with what is missing", count("n < 5 OR n >= 5"), 11),
    ("comparisons of columns of which one is missing", count("w > n OR w <= n"), 10),
    ("NOT of a comparison with what is missing", count("NOT n < 5"), 3),
    ("NOT IN", count("n NOT IN (1, 2, 3)"), 8),
    ("NOT of what no row satisfies", count("NOT n IN (0.5, 1.5)"), 11),
    ("conditions that are unknown", count("(n < 5 AND f) IS NULL"), 2),
    ("conditions that are equal", count("(n < 5) = (d > 0)"), 5),
    ("NOT of a CASE of conditions", count("NOT CASE WHEN n > 0 THEN f ELSE n = 0 END"), 8),
    ("IS NULL", count("n IS NULL OR t IS NULL"), 2),
    ("BETWEEN", count("n BETWEEN -2 AND 7"), 8),
    ("BETWEEN columns", count("n BETWEEN d AND w"), 4),
    ("truth values", count("f"), 5),
    ("NOT of truth values", count("NOT f"), 5),
    ("which texts are equal", count("t = 'a'"), 1),
    ("which texts are equal in a list", count("t IN ('a ', '', 'e\u0301', 'IT''S')"), 3),
    ("which texts of two columns are equal", count("t = who"), 2),
    ("texts of a CASE that is missing", count("CASE WHEN n > 0 THEN 'a' END = 'a'"), 6),
    ("LIKE of a CASE that is missing", count("CASE WHEN n > 0 THEN 'a' END LIKE 'a%'"), 6),
    ("LIKE with letters of either case", count("t LIKE 'A%'"), 1),
    ("LIKE with %", count("t LIKE '%b'"), 2),
    ("LIKE with _", count("t LIKE '_'"), 4),
    ("LIKE with a line break", count("t LIKE 'a_b'"), 1),
    ("LIKE with signs of regular expressions", count("t LIKE 'a.b' OR t LIKE '.' OR t LIKE '[a]'"), 0),
    ("NOT LIKE", count("t NOT LIKE 'a%'"), 7),
    ("long texts", count("t LIKE 'x%x'"), 1),
    ("parts of dates", sum("YEAR(y) + 100 * MONTH(y) + 10000 * DAY(y)", low=0, high=10**6), 1627868),
    ("the quarter of a date", sum("QUARTER(y)"), 23),
    ("the day of the week", sum("WEEKDAY(y)"), 24),
    ("days between dates", sum("d + (y - '2000-02-29')", low=-20000, high=20000), 51546),
    ("dates moved by days", count("y + n > '2000-02-28'"), 5),
    ("hours in a zone", sum("HOUR(z) + 100 * HOUR(v)", low=0, high=10**4), 3339),
    ("days in a zone", count("DATE(z) = '2024-06-01' OR DATE(v) >= '2024-10-27'"), 5),
    ("instants", count("z = v"), 2),
    ("distinct units", count_distinct(), 8),
    ("distinct units of some rows", count_distinct("n > 0"), 5),
)
"""Requests without cells, what each is about, and the integer that answers it."""

CELLS: tuple[tuple[str, Request, object], ...] = (
    ("how many rows there are", count(), 12),
    (
        "the rows of each text",
        histogram("t", keys=["a", "A", "a ", "\u00e9", "e\u0301", "", "A "]),
        (1, 1, 1, 1, 1, 1, 0),
    ),
    ("the rows of each key of several columns", count(by=["n > 0", "f"], where="n IS NOT NULL"), (1, 3, 4, 1)),
    ("sums of each key", sum("w", by="f"), (9223372036854775814, 13835058055282163711)),
    ("the rows between thresholds", ranks("n", [-9, -2, 0, 3, 9]), (1, 3, 5, 8, 11)),
    ("quantiles of a column by itself", median("n", [-2, 0, 3], by="n", keys=[-2, 3]), (0, -1, -1, -1, -1, 0)),
)
"""Requests that are asked alone, most of them with cells, and the answers."""

FINGERPRINT = (6561011296663828133, 7102902154315517537)
CAPPED = [1, 2, 3, 4, 5, 6, 7, 8, 10, 11]
SPREAD = [1, 3, 4, 5, 6, 8, 9, 10, 11]
