"""What became of each given value while a table was bound: missing, unreadable, beyond a bound, not a declared key.

The stored rows cannot tell: a missing value and an unreadable one are both NULL, and a clamped value is a bound. So the
query that loads the rows also computes, of each declared column i, a number `f{i}` (the fate of the value, one of those
below) and, where the value was not understood, a short text `k{i}`: the value itself where the declaration lists keys,
else its spelling, with every digit written as 9. The engine then counts them. Everything here is about raw data, and
only `sources.report` reads it, for the custodian.

>>> from counterpoint.schema.columns import number
>>> from counterpoint.schema.declaration import Named
>>> print(counts(Declaration(None, 1, "replace", (Named("age", number(0, 120)),)), "loaded")[:65])
SELECT COUNT(*), COUNT(u), COUNT(CASE WHEN f0 = 1 THEN 1 END), CO
"""

from counterpoint.engines import loading
from counterpoint.engines.dialect import Dialect
from counterpoint.schema.columns import Category, Column
from counterpoint.schema.declaration import Declaration, Named

MISSING, UNREADABLE, BELOW, ABOVE, UNDECLARED = FATES = (1, 2, 3, 4, 5)
"""The fates of values that are not stored as they were given; the fate of the others is 0."""
MOST_FREQUENT = 10
"""How many different values that were not understood are listed."""
_SHOWN = 40
"""The most characters of such a value."""
_TEXTS = ("VARCHAR", "ENUM")
_DOUBLES = ("DOUBLE", "FLOAT")


def surveyed_columns(declared: Declaration) -> list[tuple[int, Named]]:
    """The columns whose values were given, with their places: those that are not derived from others."""
    return [(i, named) for i, named in enumerate(declared.columns) if not isinstance(named.expression, str)]


def load(declared: Declaration, kinds: dict[str, str], given: str, dialect: Dialect, *, hashed: bool = False) -> str:
    """The query of `loading.load`, with the fates and the texts of all given columns beside what is stored."""
    columns = surveyed_columns(declared)
    along = {f"r{i}": dialect.quoted(named.name) for i, named in columns}
    rows = loading.load(declared, kinds, given, dialect, hashed=hashed, along=along)
    stored = [f"c{i}" for i in range(len(declared.columns))] + ["u"] + (["g0", "g1"] if hashed else [])
    found = []
    for i, named in columns:
        kind = kinds[named.name]
        found.append(f"{_fate(declared, named, kind, i, dialect)} AS f{i}")
        found.append(f"{_not_understood(named.column, kind, i, dialect)} AS k{i}")
    return f"SELECT {', '.join([*stored, *found])} FROM ({rows}) AS raw"


def _fate(declared: Declaration, named: Named, kind: str, i: int, dialect: Dialect) -> str:
    stored, given, column = f"c{i}", f"r{i}", named.column
    missing = f"{given} IS NULL"
    if kind in _DOUBLES:
        missing = f"{missing} OR {given} = CAST('nan' AS {dialect.double})"
    unknown = UNDECLARED if isinstance(column, Category) else UNREADABLE
    beyond = "" if named.name in declared.unit_columns else _beyond(column, kind, stored, given, dialect)
    return f"CASE WHEN {missing} THEN {MISSING} WHEN {stored} IS NULL THEN {unknown} {beyond}ELSE 0 END"


def _beyond(column: Column, kind: str, stored: str, given: str, dialect: Dialect) -> str:
    """The cases of a value that was clamped: read with bounds a step farther out, it is beyond the declared ones.

    Only a value that is stored as a bound is read again.
    """
    wider, bounds = column.wider, column.bounds
    if wider is None or bounds is None:
        return ""
    again = loading.stored(wider, kind, given, dialect)
    assert again is not None, "the same type with other bounds is read from the same types"
    least, most = bounds
    return (
        f"WHEN {stored} = {least} THEN CASE WHEN {again} < {least} THEN {BELOW} ELSE 0 END "
        f"WHEN {stored} = {most} THEN CASE WHEN {again} > {most} THEN {ABOVE} ELSE 0 END "
    )


def _not_understood(column: Column, kind: str, i: int, dialect: Dialect) -> str:
    """The value if it is not a declared key; the spelling of a text that cannot be read; else NULL."""
    given = f"r{i}"
    nothing = f"CAST(NULL AS {dialect.text}"
    if isinstance(column, Category):
        found = loading.written_value(kind, given, dialect)
    elif kind in _TEXTS and column.kind != "text":
        digits, nines = dialect.literal("0123456789"), dialect.literal("9999999999")
        found = f"TRANSLATE({loading.written_value(kind, given, dialect)}, {digits}, {nines})"
    else:
        return nothing
    return f"CASE WHEN c{i} IS NULL AND {given} IS NOT NULL THEN SUBSTR({found}, 1, {_SHOWN}) END"


def counts(declared: Declaration, loaded: str) -> str:
    """The query for the number of rows, of those with a unit, and of the values of each fate in each given column."""
    fates = [f"COUNT(CASE WHEN f{i} = {fate} THEN 1 END)" for i, _ in surveyed_columns(declared) for fate in FATES]
    return f"SELECT {', '.join(['COUNT(*)', 'COUNT(u)', *fates])} FROM {loaded}"


def units_by_rows(loaded: str) -> str:
    """The query for how many units have how many rows."""
    rows = f"SELECT u, COUNT(*) AS n FROM {loaded} WHERE u IS NOT NULL GROUP BY u"
    return f"SELECT n, COUNT(*) FROM ({rows}) AS rows_of_units GROUP BY n ORDER BY n"


def most_frequent(place: int, loaded: str) -> str:
    """The query for the most frequent texts of a column that were not understood, with the number of each."""
    text = f"k{place}"
    return (
        f"SELECT {text}, COUNT(*) AS n FROM {loaded} WHERE {text} IS NOT NULL GROUP BY {text} "
        f"ORDER BY n DESC, {text} LIMIT {MOST_FREQUENT}"
    )
