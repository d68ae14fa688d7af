"""Declarations from types: an Arrow schema, the dtypes of a frame, or a mapping from names to types.

Types are public, and so is what follows from them: whole numbers, texts and truth values need no more to be compared
and counted by key. A number that is to be added up, and a date, need bounds, which no type says: such columns are left
out, and the code that is printed has a line for each of them to fill in.

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
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

from counterpoint.errors import InvalidParameter
from counterpoint.sources.declaring.columns import Column, boolean, text, whole


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
