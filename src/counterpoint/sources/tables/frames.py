r"""Frames of pandas, Arrow, Polars and Ibis, prepared so that the embedded engine reads them whatever their values are.

The schema decides how a column is read, never a value: a pandas column of objects is read as texts, and an object that
cannot be converted to a text (a surrogate, a failing `__str__`) is missing; the other rows are unaffected.

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
"""pandas' nullable types, by the kind of the values; the number of bits is filled in."""
_ARROW_TEXTS = ("string", "large_string", "string_view")


class Arrow:
    """Any data with Arrow's C stream interface, passed on without importing pyarrow."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._data.__arrow_c_stream__(requested_schema)


def offered(data: object) -> object:
    """A frame as the engine takes it, or `InvalidParameter` if the data is not a frame."""
    if _is_of("ibis", type(data)) and hasattr(data, "columns") and hasattr(data, "to_pyarrow"):
        data = _executed(data)
    if is_pandas(data) and hasattr(data, "columns"):
        check_names(map(str, data.columns))
        return _typed(data)
    if hasattr(data, "__arrow_c_stream__") and not is_pandas(data):
        check_names(_names(data))
        return Arrow(data)
    raise InvalidParameter(
        "data must be a path to a .parquet or .csv file, a DuckDB relation, an Arrow table, a Polars, pandas or "
        f"Spark frame, an Ibis table, or a postgresql:// URL, not a {type(data).__name__}"
    )


def check_names(given: Iterable[str]) -> None:
    """Refuse names that the engine, which ignores case, would confuse: the unit column might not be the declared one.

    >>> check_names(["age", "Age"])
    Traceback (most recent call last):
    ...
    counterpoint.errors.InvalidParameter: two columns have the same name, or names that differ in upper and lower ...
    """
    names = list(given)
    if len({name.lower() for name in names}) < len(names):
        raise InvalidParameter(
            "two columns have the same name, or names that differ in upper and lower case only: rename one of them"
        )
    if not all(name and is_readable(name) for name in names):
        raise InvalidParameter(
            "every column needs a name without NUL and without surrogates: rename the column that has another one"
        )


def is_pandas(data: object) -> bool:
    """Whether this is a pandas frame or of a subtype; its own conversion to Arrow would guess types from values.

    >>> is_pandas([1, 2])
    False
    """
    return any(_is_of("pandas", kind) for kind in type(data).__mro__)


def unreadable_column(data: Any, reads: Callable[[object], bool]) -> str | None:
    """The first column, with its type, that `reads` rejects even without rows, so because of its type alone."""
    with suppress(Exception):  # the message may quote the data
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
    """An array of objects, with None for those that cannot be converted to a text."""
    return objects([value if _is_writable(value) else None for value in values])


def objects(values: list[Any]) -> Any:
    """A one-dimensional array of these objects.

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
    except Exception:  # the object's own __str__ may raise anything
        return False


def _typed(frame: Any) -> object:
    """A pandas frame with readable texts, whose categories are replaced by nullable columns of their values.

    DuckDB reads a category of whole numbers or truth values as doubles or texts if a value is missing. The type would
    then depend on one row.
    """
    typed = frame.copy(deep=False)
    with suppress(Exception):  # the message may quote the data
        for name, kind in frame.dtypes.items():
            kept = getattr(kind, "categories", None)
            if kept is not None and (len(kept) == 0 or _holds_texts(kept.dtype)):  # no categories: all are missing
                words = texts([*_objects(kept), None])[frame[name].cat.codes.to_numpy()]
                typed[name] = type(frame[name])(words, frame.index, object)  # given an array, pandas guesses the type
            elif kept is not None and kept.dtype.kind in _NULLABLE:
                values = kept.astype(_NULLABLE[kept.dtype.kind].format(8 * kept.dtype.itemsize)).array
                typed[name] = values.take(frame[name].cat.codes.to_numpy(), allow_fill=True)  # astype would use floats
            elif kept is None and _holds_texts(kind):
                typed[name] = type(frame[name])(texts(_objects(frame[name])), frame.index, object)
        return typed
    raise unreadable()


def _holds_texts(kind: Any) -> bool:
    """Whether a pandas type holds objects or texts."""
    return str(kind) in ("object", "str", "string") or str(getattr(kind, "pyarrow_dtype", "")) in _ARROW_TEXTS


def _objects(values: Any) -> Any:
    """The values of a column or index as objects; None for those whose bytes are not UTF-8."""
    with suppress(Exception):  # Arrow raises if some bytes are not UTF-8
        return values.astype(object).to_numpy()
    return [_object(values, i) for i in range(len(values))]


def _object(values: Any, i: int) -> object:
    with suppress(Exception):
        return values.array[i]
    return None


def _is_of(package: str, kind: type) -> bool:
    """Whether this is a type of an optional package, which is not imported to find out."""
    return kind.__module__.partition(".")[0] == package


def _executed(expression: Any) -> object:
    """The Arrow table of an Ibis expression. The backend's own error may quote the data, so it is not passed on."""
    check_names(_names(expression))
    with suppress(Exception):
        return expression.to_pyarrow()
    raise unreadable()


def _names(data: object) -> Iterable[str]:
    """The column names of an Arrow, Polars or DuckDB object; empty if it has none."""
    names = getattr(data, "columns", None)
    if not all(isinstance(name, str) for name in names or ()):  # Arrow's columns are the values
        names = getattr(getattr(data, "schema", None), "names", None)
    return names or ()
