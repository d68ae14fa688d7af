"""The unit of a row in SQL: the same keys as `unit_keys` computes in Python, in every engine.

A unit that is one column of whole numbers of at most 64 bits is stored as an integer, any other as its key; written as
a text, both are the key. So hashes, samples and joins are the same, however a column of the same units is typed.

>>> from counterpoint.engines.duckdb import DUCKDB
>>> from counterpoint.engines.spark import SPARK
>>> key_of("INTEGER", '"id"', "whole", DUCKDB), key_of("INTEGER", "`id`", "text", SPARK)
(('BIGINT', 'CAST("id" AS BIGINT)'), ('VARCHAR', 'CAST(`id` AS STRING)'))
"""

from counterpoint.engines.dialect import Dialect
from counterpoint.errors import InvalidParameter
from counterpoint.schema.declaration import Declaration
from counterpoint.schema.unit_keys import (
    DIGITS,
    EXACT_FLOATS,
    HEXADECIMAL,
    LONGEST_DIGITS,
    MOST_DIGITS,
    UUID_LENGTH,
    UnitType,
)

SMALL = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
"""The types of whole numbers that 64 bits hold."""
_WIDE = {"UBIGINT", "HUGEINT", "UHUGEINT"}
_FLOATS = {"DOUBLE": 64, "FLOAT": 32}
"""The types of floats, with their widths in bits."""
_LARGEST = 10**MOST_DIGITS - 1
SPELLED_OUT = 100_000
"""The most characters of a text in the spelling of a row; an engine's longest text has room for 1,600 of them."""


def schema_type(kind: str) -> UnitType:
    """The type of the units that a column of an engine's type names, where none is declared.

    >>> schema_type("UBIGINT"), schema_type("DECIMAL"), schema_type("UUID")
    ('whole', 'whole', 'text')
    """
    return "whole" if kind in SMALL | _WIDE | {"DECIMAL"} else "text"


def key_of(kind: str, value: str, of: UnitType, dialect: Dialect) -> tuple[str, str] | None:
    """The type and the expression of the key that a value has; None if a column of its type cannot name such units."""
    if kind in SMALL:
        return ("BIGINT", f"CAST({value} AS BIGINT)") if of == "whole" else ("VARCHAR", dialect.written(value))
    if kind in _FLOATS:  # a NaN is larger than any number, in every engine
        is_whole = f"ABS({value}) < {EXACT_FLOATS[_FLOATS[kind]]} AND {value} = FLOOR({value})"
        return ("BIGINT", f"CASE WHEN {is_whole} THEN CAST({value} AS BIGINT) END") if of == "whole" else None
    if kind in _WIDE:
        return "VARCHAR", _digits(dialect.whole_of_wide.format(value), dialect)
    if kind == "DECIMAL":
        return "VARCHAR", _digits(dialect.whole_of_decimal.format(value), dialect)
    if kind in ("VARCHAR", "ENUM"):
        text = dialect.written(value)
        return "VARCHAR", _whole_text(text, dialect) if of == "whole" else _text(text, dialect)
    if of == "whole":
        return None
    if kind == "UUID":
        return "VARCHAR", dialect.written(value)
    if kind == "DATE":
        within = f"{value} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
        return "VARCHAR", f"CASE WHEN {within} THEN {dialect.written(value)} END"
    return None


def _digits(whole: str, dialect: Dialect) -> str:
    """The digits of a wide integer that has few enough of them."""
    return f"CASE WHEN {whole} BETWEEN {-_LARGEST} AND {_LARGEST} THEN {dialect.written(whole)} END"


def _whole_text(text: str, dialect: Dialect) -> str:
    read = dialect.written(dialect.read_whole.format(text))
    return f"CASE WHEN LENGTH({text}) > {LONGEST_DIGITS} THEN NULL WHEN {dialect.matches(text, DIGITS)} THEN {read} END"


def _text(text: str, dialect: Dialect) -> str:
    is_uuid = f"LENGTH({text}) = {UUID_LENGTH} AND {dialect.matches(text, HEXADECIMAL)}"
    readable = dialect.readable.format(text)
    return f"CASE WHEN {readable} IS NULL THEN NULL WHEN {is_uuid} THEN LOWER({text}) ELSE {text} END"


def unit_column(declared: Declaration, name: str, kind: str, dialect: Dialect) -> tuple[str, str]:
    """The type and the expression of the key that a column of the unit has, or `InvalidParameter` by its type."""
    of = declared.unit_type(name)
    found = key_of(kind, dialect.quoted(name), of, dialect)
    if found is None:
        what = "whole numbers, texts or dates" if of == "text" else "whole numbers, decimals, floats or texts"
        instead = ", or declare unit_type='whole'" if kind in _FLOATS else ""
        raise InvalidParameter(f"column {name!r} of type {kind} cannot name the unit: use a column of {what}{instead}")
    return found


def owner(declared: Declaration, kinds: dict[str, str], dialect: Dialect) -> str:
    """The expression that identifies the unit of a row; NULL where a column of it is missing.

    Several columns are spelled one after the other, each behind its length, so that no two combinations are spelled
    alike: ("a", "bc") is 1:a2:bc, and ("ab", "c") is 2:ab1:c. Long texts are hashed, as in `loading.content`.
    """
    if declared.unit is None:
        return "CAST(NULL AS BOOLEAN)"
    found = [unit_column(declared, name, kinds[name], dialect)[1] for name in declared.unit_columns]
    if len(found) == 1:
        return found[0]
    texts = [dialect.written(part) for part in found]
    return " || ".join(f"{dialect.written(f'LENGTH({it})')} || ':' || {shortened(it, dialect)}" for it in texts)


def stored_unit_key(dialect: Dialect) -> str:
    """The expression that spells the unit of a stored row as one text, its key; a long one is hashed."""
    return shortened(dialect.written("u"), dialect)


def shortened(text: str, dialect: Dialect) -> str:
    """A text, or its hash if it is long."""
    return f"CASE WHEN LENGTH({text}) > {SPELLED_OUT} THEN {dialect.hashed(text)} ELSE {text} END"
