"""Columns that were not declared: their public type, and what to declare before requests can use them fully.

>>> undeclared_words("delay", "DOUBLE")
"undeclared, of type DOUBLE: declare columns={'delay': cp.number(low, high)} to ask about it"
>>> undeclared_note(Whole())
' (undeclared: for where and keys only; cp.number(low, high) to add it up)'
"""

from counterpoint.sources.declaring.columns import Column, Text, Whole

_NUMBERS = {"DOUBLE", "FLOAT", "DECIMAL", "HUGEINT", "UHUGEINT", "UBIGINT"}
_DATES = {"DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"}
_MORE: dict[type[Column], str] = {
    Whole: "; cp.number(low, high) to add it up",
    Text: "; cp.category([...]) to count by it",
}
"""What to declare in the place of a column that was inferred from its type, and what for."""


def undeclared_words(name: str, kind: str) -> str:
    """What an undeclared column needs before requests can name it.

    >>> undeclared_words("when", "DATE")
    "undeclared, of type DATE: declare columns={'when': cp.date('YYYY-MM-DD', 'YYYY-MM-DD')} to ask about it"
    >>> undeclared_words("tags", "VARCHAR[]")
    'undeclared, of type VARCHAR[]: no declaration fits this type; convert it to a number, a text or a date first'
    """
    found = what_to_declare(kind)
    if found.startswith("cp."):
        return f"undeclared, of type {kind}: declare columns={{{name!r}: {found}}} to ask about it"
    return f"undeclared, of type {kind}: {found}"


def what_to_declare(kind: str) -> str:
    """The code that declares a column of this type, with names for what is to be filled in; or why there is none.

    >>> what_to_declare("DATE")
    "cp.date('YYYY-MM-DD', 'YYYY-MM-DD')"
    """
    if kind in _NUMBERS:
        return "cp.number(low, high)"
    if kind in _DATES:
        return "cp.date('YYYY-MM-DD', 'YYYY-MM-DD')"
    if "TIME ZONE" in kind.upper() or kind == "TIMESTAMPTZ_NS":
        return "cp.timestamp('YYYY-MM-DD', 'YYYY-MM-DD', zone='UTC')"
    return "no declaration fits this type; convert it to a number, a text or a date first"


def undeclared_note(column: Column) -> str:
    """What `describe` says behind a column that was inferred from its type."""
    return f" (undeclared: for where and keys only{_MORE.get(type(column), '')})"
