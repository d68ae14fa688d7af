"""Loading: the SQL that brings given data into stored form, once, when a table is bound.

Every column becomes 64-bit integers of steps, texts or truth values by the total, per-row rules of `columns`, and
rows beyond a unit's cap are dropped: of each unit the first `rows_per_unit` rows in the order of a keyed SHA-256 of
unit and content are kept. That depends on nothing but the unit's own rows, as a multiset: another unit's rows and
the order of the rows do not matter, and rows of equal content are interchangeable. A row without a unit is dropped.

Whole numbers are converted in 128-bit integers, exactly; other numbers as doubles, by floor(x / step + 1/2), which
all engines compute alike (IEEE 754). This text is in DuckDB's dialect; only quoted names, literals and integers are
put into it.

>>> from counterpoint.sources.columns import number, text
>>> print(stored(text(), "VARCHAR", quoted("a b")))
CAST("a b" AS VARCHAR)
>>> stored(text(), "DOUBLE", quoted("x"))
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: a column of type DOUBLE cannot be declared as a text
"""

from math import ceil, floor

from counterpoint.errors import InvalidParameter
from counterpoint.sources.columns import Boolean, Category, Column, Number, Text, Whole
from counterpoint.sources.declaration import Declaration

SMALL = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
WHOLE = SMALL | {"UBIGINT", "HUGEINT"}
TEXTS = {"VARCHAR", "ENUM", "UUID"}
_WRITTEN_ALIKE = TEXTS | WHOLE | {"UHUGEINT", "DATE", "BOOLEAN"}
_DOUBLES = {"DOUBLE", "FLOAT", "DECIMAL", "UHUGEINT"}


def quoted(name: str) -> str:
    """A name as an identifier.

    >>> quoted('we"ird')
    '"we""ird"'
    """
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as a literal.

    >>> literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def undeclared(kind: str) -> Column | None:
    """What a column is by its type alone, or None if it cannot be asked about unless it is declared.

    >>> undeclared("BIGINT"), undeclared("DOUBLE")
    (Whole(), None)
    """
    if kind in SMALL:
        return Whole()
    if kind in TEXTS:
        return Text()
    return Boolean() if kind == "BOOLEAN" else None


def stored(column: Column, kind: str, value: str) -> str:
    """The expression that turns a value of an engine's type into what is stored for this column."""
    if isinstance(column, Number) and (kind in _DOUBLES or kind in WHOLE or kind in ("VARCHAR", "BOOLEAN")):
        return _number(column, kind, value)
    if isinstance(column, Whole) and kind in SMALL:
        return f"CAST({value} AS BIGINT)"
    if isinstance(column, Text) and kind in _WRITTEN_ALIKE:
        return f"CAST({value} AS VARCHAR)"
    if isinstance(column, Boolean) and kind in _WRITTEN_ALIKE:
        return value if kind == "BOOLEAN" else _truth(value)
    if isinstance(column, Category) and kind in (_WRITTEN_ALIKE if column.kind == "text" else WHOLE | {"VARCHAR"}):
        return _one_of(column, value)
    raise InvalidParameter(f"a column of type {kind} cannot be declared as {column.said()}")


def _number(column: Number, kind: str, value: str) -> str:
    if kind in _DOUBLES:
        return _from_double(column, f"CAST({value} AS DOUBLE)")
    if kind != "VARCHAR":
        return _from_whole(column, f"CAST({value} AS HUGEINT)")
    whole = _from_whole(column, f"TRY_CAST({value} AS HUGEINT)")
    double = _from_double(column, f"TRY_CAST({value} AS DOUBLE)")
    return f"CASE WHEN REGEXP_FULL_MATCH({value}, '[+-]?[0-9]{{1,30}}') THEN {whole} ELSE {double} END"


def _from_whole(column: Number, value: str) -> str:
    """Exact: inside the bounds |value| / step is at most 2^62, so 2 q |value| stays below 2^124."""
    p, q = column.step.as_integer_ratio()
    shifted = f"({2 * q} * {value} + {p - 2 * p * column.least}) // {2 * p} + {column.least}"
    steps = f"{value} * {q}" if p == 1 else shifted  # shifted to be positive, where every engine's division floors
    return (
        f"CASE WHEN {value} IS NULL THEN NULL WHEN {value} >= {ceil(column.high)} THEN {column.most} "
        f"WHEN {value} <= {floor(column.low)} THEN {column.least} ELSE CAST({steps} AS BIGINT) END"
    )


def _from_double(column: Number, value: str) -> str:
    """Clamped before and after: before, so that the cast cannot fail; after, so that rounding cannot leave the bounds.

    NaN is asked for first, since it counts as larger than every number.
    """
    p, q = column.step.as_integer_ratio()
    steps = f"CAST(FLOOR({value} * {_double(q)} / {_double(p)} + 0.5) AS BIGINT)"
    return (
        f"CASE WHEN {value} IS NULL OR {value} = CAST('NaN' AS DOUBLE) THEN NULL "
        f"WHEN {value} >= {_double(column.high)} THEN {column.most} "
        f"WHEN {value} <= {_double(column.low)} THEN {column.least} "
        f"ELSE GREATEST({column.least}, LEAST({column.most}, {steps})) END"
    )


def _double(value: object) -> str:
    return f"CAST('{float(value)!r}' AS DOUBLE)"  # type: ignore[arg-type]


def _truth(value: str) -> str:
    written = f"LOWER(CAST({value} AS VARCHAR))"
    return f"CASE WHEN {written} IN ('true', 't', '1') THEN TRUE WHEN {written} IN ('false', 'f', '0') THEN FALSE END"


def _one_of(column: Category, value: str) -> str:
    if column.kind == "text":
        value, keys = f"CAST({value} AS VARCHAR)", [literal(str(key)) for key in column.keys]
    else:
        value, keys = f"TRY_CAST({value} AS BIGINT)", [str(key) for key in column.keys]
    return f"CASE WHEN {value} IN ({', '.join(keys)}) THEN {value} END"


def unit(kind: str, value: str) -> str:
    """The expression that identifies a unit.

    >>> unit("INTEGER", quoted("id")), unit("UUID", quoted("id"))
    ('CAST("id" AS BIGINT)', 'CAST("id" AS VARCHAR)')
    """
    if kind in SMALL:
        return f"CAST({value} AS BIGINT)"
    if kind in _WRITTEN_ALIKE and kind != "BOOLEAN":
        return f"CAST({value} AS VARCHAR)"
    raise InvalidParameter(f"a column of type {kind} cannot name the unit: whole numbers, texts and dates can")


def load(declared: Declaration, kinds: dict[str, str], given: str) -> str:
    """The query that reads every column of the declaration into stored form."""
    columns = [
        f"{stored(named.column, kinds[named.name], quoted(named.name))} AS c{i}"
        for i, named in enumerate(declared.columns)
    ]
    if declared.unit is None:
        return f"SELECT {', '.join([*columns, 'CAST(NULL AS BOOLEAN) AS u'])} FROM {given}"
    who = unit(kinds[declared.unit], quoted(declared.unit))
    return f"SELECT {', '.join([*columns, f'{who} AS u'])} FROM {given} WHERE {quoted(declared.unit)} IS NOT NULL"


def capped(declared: Declaration, loaded: str, key: str) -> str:
    """The query that keeps at most `rows_per_unit` rows of each unit; only units that have more are ordered."""
    most, row = declared.rows_per_unit, content(declared)
    heavy = f"(SELECT u FROM {loaded} GROUP BY u HAVING COUNT(*) > {most})"
    place = f"ROW_NUMBER() OVER (PARTITION BY u ORDER BY SHA256({literal(key)} || {row}), {row})"
    names = ", ".join([*(f"c{i}" for i in range(len(declared.columns))), "u"])
    return (
        f"SELECT {names} FROM {loaded} WHERE u NOT IN {heavy} UNION ALL SELECT {names} FROM "
        f"(SELECT *, {place} AS place FROM {loaded} WHERE u IN {heavy}) WHERE place <= {most}"
    )


def spread(declared: Declaration, column: int, k: int, bound: str, key: str) -> str:
    """The query that keeps, of each unit, the rows with at most k values of a column, chosen by a keyed hash."""
    value = f"CAST(u AS VARCHAR) || ';' || {_spelled(declared.columns[column].column, f'c{column}')}"
    place = f"DENSE_RANK() OVER (PARTITION BY u ORDER BY SHA256({literal(key)} || {value}), {value})"
    names = ", ".join([*(f"c{i}" for i in range(len(declared.columns))), "u"])
    known = f"SELECT *, {place} AS place FROM {bound} WHERE c{column} IS NOT NULL"
    return f"SELECT {names} FROM ({known}) WHERE place <= {k}"


def fingerprint(declared: Declaration, bound: str, key: str) -> str:
    """The query for two sums of 60 bits each of a keyed hash of every row: the same for the same rows in any order."""
    halves = [f"SUM(CAST('0x' || SUBSTR(hash, {start}, 15) AS BIGINT))" for start in (1, 16)]
    hashed = f"SELECT SHA256({literal(key)} || {content(declared)}) AS hash FROM {bound}"
    return f"SELECT {', '.join(halves)} FROM ({hashed})"


def content(declared: Declaration) -> str:
    """The expression that spells out a row so that different rows are spelled differently."""
    parts = [_spelled(named.column, f"c{i}") for i, named in enumerate(declared.columns)]
    return " || ".join([*parts, "COALESCE(CAST(u AS VARCHAR), '')"])


def _spelled(column: Column, name: str) -> str:
    spelled = {
        "number": f"'i' || CAST({name} AS VARCHAR) || ';'",
        "text": f"'t' || CAST(LENGTH({name}) AS VARCHAR) || ':' || {name}",
        "boolean": f"'b' || CAST(CAST({name} AS INTEGER) AS VARCHAR)",
    }[column.kind]
    return f"COALESCE({spelled}, 'n')"
