"""Loading: the SQL that converts the given data into stored form, once, when a table is bound.

Every column becomes 64-bit integer counts of steps, texts or truth values, by the total, per-row rules of `columns`.
The unit of a row is a key (`unit_key_sql.py`). Of each unit only `rows_per_unit` rows are kept: the first in the order
of a keyed SHA-256 of unit and content. Which rows are kept depends on nothing but the multiset of the unit's own rows:
neither on other units' rows nor on the order of the rows. A row without a unit is dropped.

Whole numbers are converted in wide integers, exactly; other numbers as doubles, by floor(x / step + 1/2), which all
engines compute alike (IEEE 754). A text is a number if it matches `NUMBER` or is infinite, and has at most 200
characters. Where a whole number or a key is declared, 1.0 is 1, as a text, a float or a decimal. A date is written as
YYYY-MM-DD; outside the years 1 to 9999 it is missing, or, in a column declared as a date, the nearer bound. A text that
is not UTF-8 is missing. The length of a text is checked before any expression that may fail on a long text. The SQL
contains only quoted names, literals and integers; a `Dialect` has what engines spell differently.

>>> from counterpoint.schema.columns import number, text
>>> from counterpoint.engines.duckdb import DUCKDB
>>> print(stored(text(), "BIGINT", DUCKDB.quoted("a b"), DUCKDB))
CAST("a b" AS VARCHAR)
>>> print(stored(text(), "DOUBLE", DUCKDB.quoted("x"), DUCKDB))
None
"""

from collections.abc import Mapping
from math import ceil, floor

from counterpoint.engines.dialect import Dialect
from counterpoint.engines.emit import emit_term
from counterpoint.engines.loading_times import TIMES, ZONED, stored_day, stored_instant
from counterpoint.engines.unit_key_sql import SMALL, SPELLED_OUT, owner, shortened, stored_unit_key, unit_column
from counterpoint.errors import InvalidParameter
from counterpoint.schema.columns import Boolean, Category, Column, Number, Text, Whole
from counterpoint.schema.declaration import Declaration, Named
from counterpoint.schema.times import Date, Timestamp
from counterpoint.schema.unit_keys import EXACT_FLOATS

WHOLE = SMALL | {"UBIGINT", "HUGEINT"}
TEXTS = {"VARCHAR", "ENUM", "UUID"}
_WRITTEN_ALIKE = TEXTS | WHOLE | {"UHUGEINT", "DATE", "BOOLEAN"}
LONGEST_NUMBER = 200
"""The most characters of a text that is read as a number."""
_DOUBLES = {"DOUBLE", "FLOAT", "DECIMAL", "UHUGEINT"}

DIGITS = " *[+-]?[0-9]{1,30} *"
WHOLE_DIGITS = " *[+-]?[0-9]{1,30}([.]0*)? *"
"""A whole number, also as other tools write it: 1.0 names the key 1."""
NUMBER = " *[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,3})? *"
INFINITE = "[iI][nN][fF]([iI][nN][iI][tT][yY])? *"


def undeclared(kind: str) -> Column | None:
    """The column that an undeclared column of this type is, or None if the type needs a declaration.

    >>> undeclared("BIGINT"), undeclared("DOUBLE")
    (Whole(), None)
    """
    if kind in SMALL:
        return Whole()
    if kind in TEXTS:
        return Text()
    return Boolean() if kind == "BOOLEAN" else None


def stored(column: Column, kind: str, value: str, dialect: Dialect) -> str | None:
    """The expression that converts a value of an engine's type to this column's stored form; None if there is none."""
    if isinstance(column, Number) and (kind in _DOUBLES or kind in WHOLE or kind in ("VARCHAR", "BOOLEAN")):
        return _number(column, kind, value, dialect)
    if isinstance(column, Whole) and (kind in WHOLE | _DOUBLES or kind == "VARCHAR"):
        return f"CAST({value} AS BIGINT)" if kind in SMALL else _whole(kind, value, dialect)
    if isinstance(column, Text) and kind in _WRITTEN_ALIKE:
        return written_value(kind, value, dialect)
    if isinstance(column, Date) and kind in {"DATE", "VARCHAR", "ENUM"} | TIMES:
        return stored_day(column, kind, value, dialect)
    if isinstance(column, Timestamp) and kind in {"VARCHAR", "ENUM"} | TIMES | ZONED:
        return stored_instant(column, kind, value, dialect)
    if isinstance(column, Boolean) and kind in _WRITTEN_ALIKE:
        return value if kind == "BOOLEAN" else _truth(kind, value, dialect)
    if isinstance(column, Category) and kind in (
        _WRITTEN_ALIKE if column.kind == "text" else WHOLE | _DOUBLES | {"VARCHAR"}
    ):
        return _one_of(column, kind, value, dialect)
    return None


def written_value(kind: str, value: str, dialect: Dialect) -> str:
    """A value as a text; NULL for a text that is not UTF-8 and for a date outside the years 1 to 9999."""
    written = dialect.written(value)
    if kind == "VARCHAR":
        return dialect.readable.format(written)
    if kind != "DATE":
        return written
    return f"CASE WHEN {value} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {written} END"


def _number(column: Number, kind: str, value: str, dialect: Dialect) -> str:
    if kind == "DECIMAL":
        return _from_double(column, dialect.from_decimal.format(value), dialect)
    if kind in _DOUBLES:
        return _from_double(column, f"CAST({value} AS {dialect.double})", dialect)
    if kind != "VARCHAR":
        return _from_whole(column, _wide(kind, value, dialect), dialect)
    value = dialect.written(value)
    real = _from_double(column, dialect.read_real.format(value), dialect)
    return (
        f"CASE WHEN LENGTH({value}) > {LONGEST_NUMBER} THEN NULL "
        f"WHEN {dialect.matches(value, DIGITS)} THEN {_from_whole(column, _wide(kind, value, dialect), dialect)} "
        f"WHEN {dialect.matches(value, NUMBER)} THEN {real} "
        f"WHEN {dialect.matches(value, ' *[+]?' + INFINITE)} THEN {column.most} "
        f"WHEN {dialect.matches(value, ' *[-]' + INFINITE)} THEN {column.least} END"
    )


def _whole(kind: str, value: str, dialect: Dialect) -> str:
    """A whole number of 64 bits; one that is wider, or has a fraction, is missing."""
    value = dialect.written(value) if kind == "VARCHAR" else value
    wide = _whole_value(kind, value, dialect)
    fitting = f"CASE WHEN {wide} BETWEEN {-(2**63)} AND {2**63 - 1} THEN CAST({wide} AS BIGINT) END"
    if kind != "VARCHAR":
        return fitting
    digits = dialect.matches(value, WHOLE_DIGITS)
    return f"CASE WHEN LENGTH({value}) > {LONGEST_NUMBER} THEN NULL WHEN {digits} THEN {fitting} END"


def _whole_value(kind: str, value: str, dialect: Dialect) -> str:
    """The whole number that a number is, or a text of `WHOLE_DIGITS`; NULL if it has a fraction.

    A float is one as far as floats are exact. A NaN is larger than any number, in every engine.
    """
    if kind in ("DOUBLE", "FLOAT"):
        exact = EXACT_FLOATS[64 if kind == "DOUBLE" else 32]
        return f"CASE WHEN ABS({value}) < {exact} AND {value} = FLOOR({value}) THEN CAST({value} AS BIGINT) END"
    if kind == "DECIMAL":
        return dialect.whole_of_decimal.format(value)
    return dialect.whole_of_wide.format(value) if kind == "UHUGEINT" else _wide(kind, value, dialect)


def _wide(kind: str, value: str, dialect: Dialect) -> str:
    """A whole number, a text of `DIGITS` or a truth value as a wide integer."""
    if kind == "VARCHAR":
        return dialect.read_whole.format(value)
    return f"CAST({f'CAST({value} AS INTEGER)' if kind == 'BOOLEAN' else value} AS {dialect.wide})"


def _from_whole(column: Number, value: str, dialect: Dialect) -> str:
    """Exact: inside the bounds |value| / step is at most 2^62, so 2 q |value| stays below 2^124."""
    p, q = column.step.as_integer_ratio()
    shifted = f"{2 * q} * {value} + {p - 2 * p * column.least}"  # positive, where every engine's division floors
    steps = f"{value} * {q}" if p == 1 else f"{dialect.floor_divide.format(shifted, 2 * p)} + {column.least}"
    return (
        f"CASE WHEN {value} IS NULL THEN NULL WHEN {value} >= {ceil(column.high)} THEN {column.most} "
        f"WHEN {value} <= {floor(column.low)} THEN {column.least} ELSE CAST({steps} AS BIGINT) END"
    )


def _from_double(column: Number, value: str, dialect: Dialect) -> str:
    """Clamped before and after: before, so that the cast cannot fail; after, so that rounding cannot leave the bounds.

    NaN is checked first, since engines order it above every number.
    """
    p, q, low, high, nan = (
        f"CAST('{float(constant)!r}' AS {dialect.double})"
        for constant in (*column.step.as_integer_ratio(), column.low, column.high, "nan")
    )
    steps = f"CAST(FLOOR({dialect.tame.format(value)} * {q} / {p} + 0.5) AS BIGINT)"
    return (
        f"CASE WHEN {value} IS NULL OR {value} = {nan} THEN NULL WHEN {value} >= {high} THEN {column.most} "
        f"WHEN {value} <= {low} THEN {column.least} ELSE GREATEST({column.least}, LEAST({column.most}, {steps})) END"
    )


def _truth(kind: str, value: str, dialect: Dialect) -> str:
    lower = f"LOWER({written_value(kind, value, dialect)})"
    return (
        f"CASE WHEN LENGTH({dialect.written(value)}) > 5 THEN NULL WHEN {lower} IN ('true', 't', '1') THEN TRUE "
        f"WHEN {lower} IN ('false', 'f', '0') THEN FALSE END"
    )


def _one_of(column: Category, kind: str, value: str, dialect: Dialect) -> str:
    if column.kind == "text":
        written = written_value(kind, value, dialect)
        return (
            f"CASE WHEN {written} IN ({', '.join(dialect.literal(str(key)) for key in column.keys)}) THEN {written} END"
        )
    value = dialect.written(value) if kind == "VARCHAR" else value
    whole = _whole_value(kind, value, dialect)
    known = f"{whole} IN ({', '.join(map(str, column.keys))})"
    if kind == "VARCHAR":
        digits = dialect.matches(value, WHOLE_DIGITS)
        known = f"CASE WHEN LENGTH({value}) > {LONGEST_NUMBER} THEN NULL WHEN {digits} THEN {known} END"
    return f"CASE WHEN {known} THEN CAST({whole} AS BIGINT) END"


def load(
    declared: Declaration,
    kinds: dict[str, str],
    given: str,
    dialect: Dialect,
    *,
    hashed: bool = False,
    along: Mapping[str, str] = {},
) -> str:
    """The query that converts every declared column to stored form, one row at a time, and computes the derived ones.

    With `hashed`, it also returns a hash of each given row, independent of the declaration, as `g0` and `g1`; beside
    them it returns the expressions in `along`, by the names that they have there.
    """
    query = _converted(declared, kinds, given, dialect, hashed=hashed, along=along)
    for place, computed in declared.derived:  # each may read those before it
        value = emit_term(computed.term, dialect).sql(dialect=dialect.name)
        value = dialect.written(value) if computed.column.kind == "text" else value
        query = f"SELECT stored.*, {value} AS c{place} FROM ({query}) AS stored"
    return query


def _converted(
    declared: Declaration,
    kinds: dict[str, str],
    given: str,
    dialect: Dialect,
    *,
    hashed: bool,
    along: Mapping[str, str],
) -> str:
    columns = {}
    for i, named in enumerate(declared.columns):
        if isinstance(named.expression, str):
            continue
        read = _read(declared, named, kinds[named.name], dialect)
        if read is None:
            what = f"column {named.name!r} of type {kinds[named.name]}"
            raise InvalidParameter(
                f"{what} cannot be declared as {named.column.describe()}: declare it as another type, or convert the "
                "data first"
            )
        columns[f"c{i}"] = f"{read} AS c{i}"
    columns["u"] = f"{owner(declared, kinds, dialect)} AS u"
    columns |= {name: f"{expression} AS {name}" for name, expression in along.items()}
    if not hashed:
        return f"SELECT {', '.join(columns.values())} FROM {given}"
    halves = [f"{_half('hash', start, dialect)} AS g{i}" for i, start in enumerate((1, 16))]
    row = f"{dialect.hashed(_as_given(kinds, dialect))} AS hash"
    inner = f"SELECT {', '.join([*columns.values(), row])} FROM {given}"
    return f"SELECT {', '.join([*columns, *halves])} FROM ({inner}) AS hashed"


def _read(declared: Declaration, named: Named, kind: str, dialect: Dialect) -> str | None:
    """The expression for the stored value of a column.

    A column of the unit is read from its key: all rows of a unit have one value there, whatever spelling each had.
    """
    if named.name not in declared.unit_columns:
        return stored(named.column, kind, dialect.quoted(named.name), dialect)
    found, key = unit_column(declared, named.name, kind, dialect)
    return key if found == "VARCHAR" and isinstance(named.column, Text) else stored(named.column, found, key, dialect)


def _as_given(kinds: dict[str, str], dialect: Dialect) -> str:
    """The expression that spells a given row as one text: its columns in the order of their names, long texts cut.

    Columns of types that cannot be asked about are left out.
    """
    texts = [
        dialect.tried.format(f"SUBSTR({dialect.written(dialect.quoted(name))}, 1, {SPELLED_OUT})")
        for name, kind in sorted(kinds.items())
        if kind in _WRITTEN_ALIKE | _DOUBLES | TIMES
    ]
    return " || ".join(["''", *(f"COALESCE('t' || {text}, 'n') || ';'" for text in texts)])


def given(loaded: str) -> str:
    """The query for a digest of the given rows in any order: their number, and sums of their hashes."""
    return f"SELECT COUNT(*), SUM(g0), SUM(g1) FROM {loaded}"


def heavy(declared: Declaration, loaded: str) -> str:
    """The query for the units that have more than `rows_per_unit` rows."""
    return f"SELECT u FROM {loaded} WHERE u IS NOT NULL GROUP BY u HAVING COUNT(*) > {declared.rows_per_unit}"


def capped(declared: Declaration, loaded: str, heavy: str, key: str, dialect: Dialect) -> str:
    """The query that keeps at most `rows_per_unit` rows of each unit, and none without a unit.

    Only the rows of `heavy` units are hashed and sorted.
    """
    most, row = declared.rows_per_unit, content(declared, dialect)
    place = f"ROW_NUMBER() OVER (PARTITION BY u ORDER BY {_keyed(key, row, dialect)}, {row})"
    names = ", ".join([*(f"c{i}" for i in range(len(declared.columns))), "u"])
    return (
        f"SELECT {names} FROM {loaded} WHERE u IS NOT NULL "
        f"AND NOT EXISTS (SELECT 1 FROM {heavy} WHERE {heavy}.u = {loaded}.u) "
        f"UNION ALL SELECT {names} FROM (SELECT {names}, {place} AS place FROM {loaded} "
        f"WHERE EXISTS (SELECT 1 FROM {heavy} WHERE {heavy}.u = {loaded}.u)) AS placed WHERE place <= {most}"
    )


def spread(
    declared: Declaration, column: int, k: int, bound: str, key: str, *, dialect: Dialect, each: int | None = None
) -> str:
    """The query that keeps, of each unit, the rows of at most k values of a column, chosen by a keyed hash.

    With `each`, at most that number of rows of each value is kept: the first in the order in which `capped` keeps them.
    """
    value = f"{stored_unit_key(dialect)} || ';' || {_spelled(declared.columns[column].column, f'c{column}', dialect)}"
    place = f"DENSE_RANK() OVER (PARTITION BY u ORDER BY {_keyed(key, value, dialect)}, {value}) AS place"
    names = ", ".join([*(f"c{i}" for i in range(len(declared.columns))), "u"])
    known = f"SELECT {names}, {place} FROM {bound} WHERE c{column} IS NOT NULL"
    kept = f"SELECT {names} FROM ({known}) AS placed WHERE place <= {k}"
    if each is None:
        return kept
    row = content(declared, dialect)
    within = f"ROW_NUMBER() OVER (PARTITION BY u, c{column} ORDER BY {_keyed(key, row, dialect)}, {row}) AS place"
    return f"SELECT {names} FROM (SELECT {names}, {within} FROM ({kept}) AS kept) AS numbered WHERE place <= {each}"


def fingerprint(declared: Declaration, bound: str, key: str, dialect: Dialect) -> str:
    """The query for two sums of 60 bits each of a keyed hash of every row: the same for the same rows in any order."""
    halves = [f"SUM({_half('hash', start, dialect)})" for start in (1, 16)]
    hashed = f"SELECT {_keyed(key, content(declared, dialect), dialect)} AS hash FROM {bound}"
    return f"SELECT {', '.join(halves)} FROM ({hashed}) AS hashed"


def _half(hash: str, start: int, dialect: Dialect) -> str:
    """60 bits of a hash as an integer whose sum is wide."""
    return dialect.hexadecimal.format(f"SUBSTR({hash}, {start}, 15)")


def _keyed(key: str, text: str, dialect: Dialect) -> str:
    return dialect.hashed(f"{dialect.literal(key)} || {text}")


def content(declared: Declaration, dialect: Dialect) -> str:
    """The expression that spells a stored row as one text, injectively.

    Long texts are hashed: together, those of one row might exceed an engine's longest text.
    """
    parts = [_spelled(named.column, f"c{i}", dialect) for i, named in enumerate(declared.columns)]
    return " || ".join([*parts, f"COALESCE({stored_unit_key(dialect)}, '')"])


def _spelled(column: Column, name: str, dialect: Dialect) -> str:
    spelled = {
        "number": f"'i' || {dialect.written(name)} || ';'",
        "text": f"'t' || {dialect.written(f'LENGTH({name})')} || ':' || {shortened(name, dialect)}",
        "boolean": f"'b' || {dialect.written(f'CAST({name} AS INTEGER)')}",
    }[column.kind]
    return f"COALESCE({spelled}, 'n')"
