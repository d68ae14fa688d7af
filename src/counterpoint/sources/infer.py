"""Declarations inferred from a public sample, or from types alone; never from the rows that are protected.

Of a sample, the smallest and largest values and the keys become bounds and categories. **The sample must be public.**
What it contains becomes part of the declaration, which every analyst sees and no budget
protects: last year's published extract, a made-up file, a test fixture. It must never be the sensitive data, nor some
rows of it. That is said at the call, with `public=True`. Nothing is ever inferred from the rows that are protected:
values outside the declared bounds are clamped, and keys that the sample lacks are missing. So print the result, read
it, and widen what is too narrow.

>>> import duckdb
>>> people = "(VALUES (41, 'CA', 1.25), (17, 'NY', 3), (30, 'NY', 2), (18, 'CA', 2)) AS people(age, state, pay)"
>>> sample = duckdb.sql(f"SELECT * FROM {people}")
>>> columns_like(sample, public=True)
{
    'age': cp.number(17, 41),
    'state': cp.category(['CA', 'NY']),
    'pay': cp.number(1.25, 3, step=0.01),
}

Types come from an Arrow schema, the dtypes of a frame, or a mapping from names to types. Types are public, and so is
what follows from them: whole numbers, texts and truth values need no more to be compared and counted by key. A number
that is to be added up, and a date, need bounds, which no type says: such columns are left out, and the code that is
printed has a line for each of them to fill in.

>>> import counterpoint as cp
>>> columns_from({"year": int, "carrier": str, "delay": float, "late": bool})
{
    'year': cp.whole(),
    'carrier': cp.text(),
    'late': cp.boolean(),
    # 'delay': cp.number(low, high),
}
>>> {**columns_from({"year": int, "delay": float}), "delay": cp.number(-60, 1500)}["delay"]
Number(low=-60, high=1500)
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from math import ceil, floor
from pathlib import Path
from typing import Any

from counterpoint.engines.duckdb import DUCKDB, EmbeddedEngine, EmbeddedOffer
from counterpoint.engines.loading import NUMBER, TEXTS, WHOLE
from counterpoint.engines.loading_times import DAY, TIMES, ZONED
from counterpoint.errors import InvalidParameter
from counterpoint.numbers.exact import exact
from counterpoint.schema.columns import (
    WIDEST,
    Column,
    boolean,
    category,
    is_readable,
    number,
    text,
    what_to_declare,
    whole,
)
from counterpoint.schema.times import SECOND, at_micros, date, spelled, timestamp, zone


class Columns(dict[str, Column]):
    """Declared columns by name, as `Table(columns=...)` takes them; printed as code, to be read and edited.

    `undeclared` has, by name, what to write for the columns that could not be declared.
    """

    def __init__(self, declared: Mapping[str, Column], undeclared: Mapping[str, str]) -> None:
        super().__init__(declared)
        self.undeclared = dict(undeclared)

    def __repr__(self) -> str:
        lines = [f"    {name!r}: {column.code}," for name, column in self.items()]
        left_out = [f"    # {name!r}: {words}," for name, words in self.undeclared.items() if name not in self]
        return "\n".join(["{", *lines, *left_out, "}"])


_ZONED = "cp.timestamp('YYYY-MM-DD', 'YYYY-MM-DD', zone='UTC')"
_TYPES: tuple[tuple[str, Callable[[], Column] | str], ...] = (
    (r"(u?int(eger|\d+)?|bigint|smallint|tinyint|long|dictionary<values=u?int.*)", whole),
    (r"bool.*", boolean),
    (r"(str.*|large_string|utf8.*|object|text|varchar|char|dictionary<.*|categor.*|enum.*|uuid)", text),
    (r"(float\d*|double|half.*|real|numeric|decimal.*)", "cp.number(low, high)"),
    (r"(timestamp\[.*tz=.*|datetime64\[.*, .*|datetime\(.*time_zone='.*|.*with time zone|timestamptz.*)", _ZONED),
    (r"(date.*|timestamp.*)", "cp.date('YYYY-MM-DD', 'YYYY-MM-DD')"),
)
"""What a type needs by its name in Python, numpy, pandas, Polars, Arrow or SQL: nothing more, or what to write."""


def columns_from(types: object) -> Columns:
    """Declare columns by their types: of an Arrow schema, of `frame.dtypes`, or of a mapping such as {"year": int}.

    Only names and types are read, never a row. A mapping may hold declarations as well, which stay as they are.

    >>> import counterpoint as cp
    >>> columns_from({"age": cp.number(0, 120), "tags": list})
    {
        'age': cp.number(0, 120),
        # 'tags': no declaration fits list,
    }
    """
    declared: dict[str, Column] = {}
    undeclared: dict[str, str] = {}
    for name, kind in _pairs(types):
        if isinstance(kind, Column):
            declared[name] = kind
            continue
        found = _fitting(kind)
        if isinstance(found, str):
            undeclared[name] = found
        else:
            declared[name] = found()
    return Columns(declared, undeclared)


def _fitting(kind: object) -> Callable[[], Column] | str:
    """What declares a column of this type, or what to write."""
    written = (kind.__name__ if isinstance(kind, type) else str(kind)).lower()
    for pattern, what in _TYPES:
        if re.fullmatch(pattern, written):
            return what
    return f"no declaration fits {written[:80]}"


def _pairs(types: Any) -> Iterable[tuple[str, object]]:
    """Names and types, of whatever has them."""
    if hasattr(types, "items"):  # a mapping, or the dtypes of a pandas frame
        return [(str(name), kind) for name, kind in types.items()]
    if hasattr(types, "__arrow_c_schema__"):
        return [(field.name, field.type) for field in import_module("pyarrow").schema(types)]
    raise InvalidParameter(
        "columns are declared from an Arrow schema, from frame.dtypes, or from a mapping such as {'year': int, "
        f"'carrier': str}}, not from a {type(types).__name__}"
    )


MOST_CATEGORIES = 100
"""A column of texts with more different values is declared as text()."""
FINEST = 6
"""The most decimal places of a step."""
_COARSEST = -18
"""The least number of decimal places of a step: a step has at most 18 digits."""
_WHOLE_TEXT = "[+-]?(0|[1-9][0-9]{0,17})"
"""A whole number in a CSV file; with leading zeros, as in 02139, it is a code."""
_TRUTHS = "[tT][rR][uU][eE]|[fF][aA][lL][sS][eE]"


def columns_like(sample: object, *, public: bool = False) -> Columns:
    """Declare columns like those of a **public** sample: a path, a frame, an Arrow table, a DuckDB relation.

    Say `public=True` if every value of the sample may be published; it must not be the data to protect, nor rows of it.
    The result prints as code. Texts become a category if there are at most 100 different ones, each twice on average;
    numbers get the smallest and the largest value as bounds, with a step that holds all values of the sample (down to
    0.000001). A CSV file is read as numbers, dates, truth values or texts, as all values of a column allow.

    >>> import duckdb
    >>> columns_like(duckdb.sql("SELECT 1 AS x"))
    Traceback (most recent call last):
    ...
    counterpoint.errors.InvalidParameter: say public=True if every value of this sample may be published: its ...
    """
    if public is not True:
        raise InvalidParameter(
            "say public=True if every value of this sample may be published: its smallest and largest values and its "
            "keys become part of the declaration, which every analyst sees. Never give the data that is to be "
            "protected, nor rows of it; without a public sample, declare by types, cp.columns_from({'year': int})"
        )
    offer = EmbeddedOffer(sample)
    try:
        rows = offer.take("SELECT * FROM given", "sample")
        guessed = isinstance(sample, str | Path) and Path(sample).suffix == ".csv"
        found = {name: _column(rows, name, kind, guessed) for name, kind in offer.kinds.items()}
    finally:
        offer.close()
    declared = {name: column for name, column in found.items() if column is not None}
    return Columns(declared, {name: what_to_declare(offer.kinds[name]) for name in found if name not in declared})


def _column(rows: EmbeddedEngine, name: str, kind: str, guessed: bool) -> Column | None:
    """What declares one column, by its type and the values of the sample."""
    quoted = DUCKDB.quoted(name)
    if kind == "BOOLEAN":
        return boolean()
    if kind in WHOLE or kind == "UHUGEINT":
        return _whole_number(_values(rows, quoted)) or whole()
    if kind in ("DOUBLE", "FLOAT", "DECIMAL"):
        return _real_number(_values(rows, f"CAST({quoted} AS DOUBLE)", f"ISFINITE(CAST({quoted} AS DOUBLE))"))
    if kind == "DATE" or kind in TIMES:
        return _dates(rows, quoted)
    if kind in ZONED:
        return _instants(rows, quoted)
    if kind not in TEXTS:
        return None
    return (_guessed(rows, quoted) if guessed else None) or _texts(rows, quoted)


def _guessed(rows: EmbeddedEngine, quoted: str) -> Column | None:
    """A CSV column all of whose values are numbers, dates or truth values."""
    ways: tuple[tuple[str, Callable[[], Column | None]], ...] = (
        (_WHOLE_TEXT, lambda: _whole_number(_values(rows, f"CAST({quoted} AS BIGINT)"))),
        (
            NUMBER,
            lambda: _real_number(_values(rows, f"CAST({quoted} AS DOUBLE)", f"ISFINITE(CAST({quoted} AS DOUBLE))")),
        ),
        (DAY, lambda: _dates(rows, quoted)),
        (_TRUTHS, boolean),
    )
    for pattern, declare in ways:
        [(some, others)] = rows.run(
            f"SELECT COUNT({quoted}), COUNT(*) FILTER (WHERE NOT {DUCKDB.matches(quoted, pattern)}) FROM sample"
        )
        if some and not others and not (pattern == NUMBER and _has_codes(rows, quoted)):
            return declare()
    return None


def _has_codes(rows: EmbeddedEngine, quoted: str) -> bool:
    """Whether a value is written with leading zeros, as a code is."""
    return bool(rows.run(f"SELECT COUNT(*) FROM sample WHERE {DUCKDB.matches(quoted, '0[0-9]+')}")[0][0])


def _values(rows: EmbeddedEngine, value: str, where: str = "TRUE", limit: int | None = None) -> list[Any]:
    """The different values in the sample, in their order."""
    most = "" if limit is None else f"LIMIT {limit}"
    found = rows.run(
        f"SELECT DISTINCT {value} AS v FROM sample WHERE {where} AND {value} IS NOT NULL ORDER BY v {most}"
    )
    return [item for (item,) in found]


def _whole_number(values: Sequence[int]) -> Column | None:
    """Between the smallest and the largest value."""
    if not values or max(map(abs, values)) >= WIDEST:
        return None
    low, high = min(values), max(values)
    return number(low, high if high > low else low + 1)


def _real_number(values: Sequence[float]) -> Column | None:
    """Between the smallest and the largest value, in decimal steps that hold all of them, as far as that goes."""
    if not values:
        return None
    written = [Decimal(repr(value)).normalize() for value in values]
    places = min(FINEST, max(0, *(-int(value.as_tuple().exponent) for value in written)))
    farthest = max(abs(exact(value)) for value in values)
    while farthest * Fraction(10) ** places >= WIDEST:
        places -= 1
    if places < _COARSEST:
        return None
    step = Fraction(10) ** -places
    low, high = floor(exact(min(values)) / step) * step, ceil(exact(max(values)) / step) * step
    return number(low, high if high > low else low + step, step)


def _dates(rows: EmbeddedEngine, quoted: str) -> Column | None:
    """Between the first and the last day."""
    days = f"DATE_DIFF('day', DATE '1970-01-01', CAST({quoted} AS DATE))"
    finite = f"CAST({quoted} AS DATE) BETWEEN DATE '0001-01-01' AND DATE '9999-12-30'"
    [(first, last)] = rows.run(f"SELECT MIN({days}), MAX({days}) FROM sample WHERE {finite}")
    return None if first is None else date(spelled(first), spelled(last if last > first else first + 1))


def _instants(rows: EmbeddedEngine, quoted: str) -> Column | None:
    """Between the first and the last instant, in UTC: the custodian knows the zone."""
    first, last = (f"CAST('{year}-01-01 00:00:00+00:00' AS TIMESTAMPTZ)" for year in (1900, 2100))
    at = f"CAST({quoted} AS TIMESTAMPTZ)"
    [(least, most)] = rows.run(
        f"SELECT MIN(EPOCH_US({at})), MAX(EPOCH_US({at})) FROM sample WHERE {at} BETWEEN {first} AND {last}"
    )
    if least is None:
        return None
    low, high = (at_micros(found, zone("UTC")) for found in (least, most if most > least else least + SECOND))
    return timestamp(low, high, zone="UTC")


def _texts(rows: EmbeddedEngine, quoted: str) -> Column:
    """A category, if there are few different values; else texts."""
    written = f"CAST({quoted} AS VARCHAR)"
    [(some,)] = rows.run(f"SELECT COUNT({written}) FROM sample")
    listed = _values(rows, written, limit=MOST_CATEGORIES + 1)
    few = 0 < len(listed) <= MOST_CATEGORIES and 2 * len(listed) <= some
    return category(listed) if few and all(map(is_readable, listed)) else text()
