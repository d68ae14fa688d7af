r"""Frames as the embedded engine can read them whatever their values are: pandas', Arrow's, Polars', an Ibis table's.

The schema decides how a column is read, never a value: a pandas column of objects holds texts, and an object that
cannot be written as one (half a character, a `__str__` that fails) is missing, by itself.

>>> import numpy as np
>>> texts(np.array(["Zürich", "half: \ud800", 7], dtype=object))
array(['Zürich', None, 7], dtype=object)
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np

from counterpoint.errors import InvalidParameter
from counterpoint.sources.declaring.columns import is_readable
from counterpoint.sources.engines.engine import unreadable

_NULLABLE = {"i": "Int{}", "u": "UInt{}", "b": "boolean"}
"""pandas' types that can be missing, by the kind of what is in them and its bits."""
_ARROW_TEXTS = ("string", "large_string", "string_view")


class Arrow:
    """Any data that speaks Arrow's C stream interface, without the detour over pyarrow."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._data.__arrow_c_stream__(requested_schema)


def offered(data: object) -> object:
    """What to hand to the engine for a frame, or `InvalidParameter` if it is none."""
    if _is_of("ibis", type(data)) and hasattr(data, "columns") and hasattr(data, "to_pyarrow"):
        data = _executed(data)
    if is_pandas(data) and hasattr(data, "columns"):
        check_names(map(str, data.columns))
        return _typed(data)
    if hasattr(data, "__arrow_c_stream__") and not is_pandas(data):
        check_names(_names(data))
        return Arrow(data)
    raise InvalidParameter(
        "a table is a path to a .parquet or .csv file, a DuckDB relation, an Arrow table, a Polars, pandas or "
        f"Spark frame, an Ibis table, or a postgresql:// URL, not a {type(data).__name__}"
    )


def check_names(given: Iterable[str]) -> None:
    """Refuse names that the engine, for which a and A are one name, would change: which of two is the unit, then?

    >>> check_names(["age", "Age"])
    Traceback (most recent call last):
    ...
    counterpoint.errors.InvalidParameter: two columns have the same name, or names that differ in upper and lower ...
    """
    names = list(given)
    if len({name.lower() for name in names}) < len(names):
        raise InvalidParameter("two columns have the same name, or names that differ in upper and lower case only")
    if not all(name and is_readable(name) for name in names):
        raise InvalidParameter("a column has no name, or one that holds NUL or half a character")


def is_pandas(data: object) -> bool:
    """Whether this is a frame of pandas or of a subtype, whose own way to Arrow would guess types from values.

    >>> is_pandas([1, 2])
    False
    """
    return any(_is_of("pandas", kind) for kind in type(data).__mro__)


def unreadable_column(data: Any, reads: Callable[[object], bool]) -> str | None:
    """The first column, with its type, that `reads` finds unreadable where it has no rows: by its type alone, then."""
    with suppress(Exception):  # whose words may quote the data
        for name in list(data.columns) if is_pandas(data) else _names(data):
            kind, alone = _kind(data, name), None
            with suppress(Exception):
                alone = _without_rows(data, name)
            if alone is None or not reads(alone):
                return f"{str(name)!r} is of type {kind}"
    return None


def _kind(data: Any, name: Any) -> object:
    if _is_of("pyarrow", type(data)):
        return data.schema.field(name).type
    return data.dtypes[name] if is_pandas(data) else data.schema[name]


def _without_rows(data: Any, name: Any) -> object:
    """One column of a frame and none of its rows."""
    if is_pandas(data):
        return _typed(data[[name]].iloc[:0])
    if _is_of("pyarrow", type(data)):
        return Arrow(import_module("pyarrow").schema([data.schema.field(name)]).empty_table())
    return Arrow(data.clear().select([name]))  # Polars'


def texts(values: Any) -> Any:
    """An array of objects, in which what cannot be written as a text is None."""
    return objects([value if _is_writable(value) else None for value in values])


def objects(values: list[Any]) -> Any:
    """An array of these objects as they are.

    >>> objects(["a", (1, 2)]).shape
    (2,)
    """
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _is_writable(value: object) -> bool:
    try:
        text = value if type(value) is str else str(value)
        return text.isascii() or bool(text.encode())
    except Exception:  # whatever an object of a stranger's does when it is asked for its text
        return False


def _typed(frame: Any) -> object:
    """A pandas frame whose texts can be read, and whose categories are what is in them, and may be missing.

    DuckDB reads a category of whole numbers or truth values as doubles or texts where a value is missing, and only
    there: a type that the schema does not have, and that would tell of one row.
    """
    typed = frame.copy(deep=False)
    with suppress(Exception):  # whose words may quote the data
        for name, kind in frame.dtypes.items():
            kept = getattr(kind, "categories", None)
            if kept is not None and (len(kept) == 0 or _holds_texts(kept.dtype)):  # without any, all are missing
                words = texts([*_objects(kept), None])[frame[name].cat.codes.to_numpy()]
                typed[name] = type(frame[name])(words, frame.index, object)  # of a bare array, pandas guesses the type
            elif kept is not None and kept.dtype.kind in _NULLABLE:
                values = kept.astype(_NULLABLE[kept.dtype.kind].format(8 * kept.dtype.itemsize)).array
                typed[name] = values.take(frame[name].cat.codes.to_numpy(), allow_fill=True)  # astype takes floats
            elif kept is None and _holds_texts(kind):
                typed[name] = type(frame[name])(texts(_objects(frame[name])), frame.index, object)
        return typed
    raise unreadable()


def _holds_texts(kind: Any) -> bool:
    """Whether a pandas type is one of objects or of texts."""
    return str(kind) in ("object", "str", "string") or str(getattr(kind, "pyarrow_dtype", "")) in _ARROW_TEXTS


def _objects(values: Any) -> Any:
    """The values of a column or index as objects; None for those whose bytes are no text."""
    with suppress(Exception):  # one of Arrow's, if some bytes are no text
        return values.astype(object).to_numpy()
    return [_object(values, i) for i in range(len(values))]


def _object(values: Any, i: int) -> object:
    with suppress(Exception):
        return values.array[i]
    return None


def _is_of(package: str, kind: type) -> bool:
    """Whether this is a type of a package that need not be there, and is not imported to find out."""
    return kind.__module__.partition(".")[0] == package


def _executed(expression: Any) -> object:
    """The Arrow table of an Ibis expression; what its backend complains of may quote the data, and is not passed on."""
    check_names(_names(expression))
    with suppress(Exception):
        return expression.to_pyarrow()
    raise unreadable()


def _names(data: object) -> Iterable[str]:
    """The names of the columns as Arrow, Polars or DuckDB have them; none if the data does not say."""
    names = getattr(data, "columns", None)
    if not all(isinstance(name, str) for name in names or ()):  # Arrow's columns are the values
        names = getattr(getattr(data, "schema", None), "names", None)
    return names or ()
