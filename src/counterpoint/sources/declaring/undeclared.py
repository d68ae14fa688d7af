"""Columns that were not declared and cannot be asked about as they are: what to declare, by their public type.

>>> undeclared_words("delay", "DOUBLE")
"undeclared, of type DOUBLE: declare columns={'delay': number(low, high)} to ask about it"
"""

_NUMBERS = {"DOUBLE", "FLOAT", "DECIMAL", "HUGEINT", "UHUGEINT", "UBIGINT"}
_DATES = {"DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"}


def undeclared_words(name: str, kind: str) -> str:
    """What an undeclared column needs before requests can name it.

    >>> undeclared_words("when", "TIMESTAMP WITH TIME ZONE")
    'undeclared, of type TIMESTAMP WITH TIME ZONE: its day depends on a time zone; convert it to a date first'
    >>> undeclared_words("tags", "VARCHAR[]")
    'undeclared, of type VARCHAR[]: no declaration fits this type; convert it to a number, a text or a date first'
    """
    if kind in _NUMBERS:
        return f"undeclared, of type {kind}: declare columns={{{name!r}: number(low, high)}} to ask about it"
    if kind in _DATES:
        return f"undeclared, of type {kind}: declare columns={{{name!r}: date(low, high)}} to ask about it"
    if "TIME ZONE" in kind:
        return f"undeclared, of type {kind}: its day depends on a time zone; convert it to a date first"
    return f"undeclared, of type {kind}: no declaration fits this type; convert it to a number, a text or a date first"
