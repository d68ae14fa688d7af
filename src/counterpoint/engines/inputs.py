r"""Frames and files as the embedded engine reads them, so that no row changes how another is read.

The schema decides how a column of a pandas, Arrow, Polars or Ibis frame is read, never a value: a pandas column of
objects is read as texts, and an object that cannot be converted to a text (a surrogate, a failing `__str__`) is
missing; the other rows are unaffected. In a column of the unit an object is read as its key (see `unit_keys`). CSV
files have a reader of their own, `batches`, which neither guesses types nor stops at a damaged row.

>>> import numpy as np
>>> texts(np.array(["Zürich", "half: \ud800", 7], dtype=object))
array(['Zürich', None, 7], dtype=object)
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from counterpoint.engines.engine import unreadable
from counterpoint.errors import InvalidParameter
from counterpoint.schema.columns import is_readable
from counterpoint.schema.unit_keys import EXACT_FLOATS, unit_key

_NULLABLE = {"i": "Int{}", "u": "UInt{}", "b": "boolean"}
"""pandas' nullable types, by the kind of the values; the number of bits is filled in."""
_PER_SECOND = {"s": 1, "ms": 1000}
_DAY = 24 * 3600 * 1000
_CALENDAR = (-62_135_596_800, 253_402_300_799)
"""The first and the last second of the years 1 to 9999."""
_ARROW_TEXTS = ("string", "large_string", "string_view")


class Arrow:
    """Any data with Arrow's C stream interface, whose times the engine can read whatever they are."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return _within_calendar(self._data).__arrow_c_stream__(requested_schema)


def _within_calendar(data: Any) -> Any:
    """The same stream, with instants in seconds or milliseconds, and days in milliseconds, in the years 1 to 9999.

    The engine converts those instants to microseconds, and fails on the first that 64 bits do not hold: one row would
    keep a table from binding. The number of a day wraps around at 32 bits. Without pyarrow the data is passed on as it
    is.
    """
    try:
        pyarrow = import_module("pyarrow")
    except ImportError:
        return data
    reader = pyarrow.RecordBatchReader.from_stream(data)
    schema = reader.schema
    coarse = [i for i, kind in enumerate(schema.types) if _is_coarse(kind)]
    if not coarse:
        return reader

    def bounded() -> Iterator[Any]:
        for batch in reader:
            columns = list(batch.columns)
            for i in coarse:
                columns[i] = _bounded(columns[i])
            yield pyarrow.RecordBatch.from_arrays(columns, schema=schema)

    return pyarrow.RecordBatchReader.from_batches(schema, bounded())


def _is_coarse(kind: Any) -> bool:
    """Whether a type of Arrow or pandas has instants in seconds or milliseconds, or days in milliseconds."""
    return str(kind) == "date64[ms]" or (getattr(kind, "tz", None) is not None and kind.unit in _PER_SECOND)


def _bounded(times: Any) -> Any:
    """A column of Arrow, whose values count seconds or milliseconds; for days, the last is its midnight."""
    compute, kind = import_module("pyarrow.compute"), times.type
    is_day = str(kind) == "date64[ms]"
    first, last = (bound * (1000 if is_day else _PER_SECOND[kind.unit]) for bound in _CALENDAR)
    counts = compute.min_element_wise(times.cast("int64"), last - last % _DAY if is_day else last, skip_nulls=False)
    return compute.max_element_wise(counts, first, skip_nulls=False).cast(kind)


def _bounded_in(column: Any) -> Any:
    """A column of pandas that has a time zone and counts seconds or milliseconds."""
    if hasattr(column.dtype, "pyarrow_dtype"):
        return type(column)(type(column.array)(_bounded(column.array.__arrow_array__())), column.index)
    utc = column.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
    first, last = (bound * _PER_SECOND[np.datetime_data(utc.dtype)[0]] for bound in _CALENDAR)
    counts = np.where(np.isnat(utc), utc.view(np.int64), np.clip(utc.view(np.int64), first, last))
    return type(column)(counts.view(utc.dtype), column.index).dt.tz_localize("UTC")


def offered(data: object, units: Sequence[str] = ()) -> object:
    """A frame as the engine takes it, or `InvalidParameter` if it is not one; `units` are the columns of the unit."""
    if _is_of("ibis", type(data)) and hasattr(data, "columns") and hasattr(data, "to_pyarrow"):
        data = _executed(data)
    if is_pandas(data) and hasattr(data, "columns"):
        check_names(map(str, data.columns))
        return _typed(data, units)
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


def keys(values: Any) -> Any:
    """An array of the keys of the units that these objects name, with None for those that name none.

    >>> keys([17, 17.0, "ann", True, None])
    array(['17', '17', 'ann', None, None], dtype=object)
    """
    return objects([_key(value) for value in values])


def _key(value: object) -> str | None:
    with suppress(Exception):  # of a type that names no unit; or the object's own methods raise anything
        return unit_key(value)
    return None


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


def _typed(frame: Any, units: Sequence[str] = ()) -> object:
    """A pandas frame with readable texts, or keys in the columns of units; categories become columns of their values.

    DuckDB reads a category of whole numbers or truth values as doubles or texts if a value is missing. The type would
    then depend on one row.
    """
    typed = frame.copy(deep=False)
    with suppress(Exception):  # the message may quote the data
        for name, kind in frame.dtypes.items():
            write = keys if str(name) in units else texts
            kept = getattr(kind, "categories", None)
            if kept is not None and (len(kept) == 0 or _holds_texts(kept.dtype)):  # no categories: all are missing
                words = write([*_objects(kept), None])[frame[name].cat.codes.to_numpy()]
                typed[name] = type(frame[name])(words, frame.index, object)  # given an array, pandas guesses the type
            elif kept is not None and kept.dtype.kind in _NULLABLE:
                values = kept.astype(_NULLABLE[kept.dtype.kind].format(8 * kept.dtype.itemsize)).array
                typed[name] = values.take(frame[name].cat.codes.to_numpy(), allow_fill=True)  # astype would use floats
            elif _is_coarse(getattr(kind, "pyarrow_dtype", kind)):
                typed[name] = _bounded_in(frame[name])
            elif kept is None and _holds_texts(kind):
                typed[name] = type(frame[name])(write(_objects(frame[name])), frame.index, object)
            elif str(name) in units and str(kind) == "float16":  # which the engine reads as floats of 32 bits
                typed[name] = frame[name].where(frame[name].abs() < EXACT_FLOATS[16])
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


LONGEST_ROW = 2**24
"""The most bytes of a row. Longer rows are dropped, so that every row fits in memory."""
LONGEST_HEADER = 2**20
_BLOCK = 2**22

Fields = list[str]
"""The values of one row, or of several rows one after the other."""

_QUOTED = ' *"([^"]*+(?:""[^"]*+)*+)" *'
_FIELD = re.compile(rf'(?:{_QUOTED}|((?! *")[^,]*+))(,|\Z)')
"""A field that does not start with a quote may contain quotes, as in 5" pipe."""
_ESCAPED = re.compile("[\udc80-\udcff]")
"""A byte that is not UTF-8, as Python's `surrogateescape` decodes it."""


def header(path: Path) -> list[str]:
    """The column names in the first line. They are public, so a bad header may be refused."""
    names: Fields | None = None
    with suppress(OSError, UnicodeError), path.open("rb") as file:
        line = file.readline(LONGEST_HEADER + 1)
        if 0 < len(line) <= LONGEST_HEADER:
            names = _split(line.removesuffix(b"\r\n").removesuffix(b"\n").decode("utf-8-sig"))
    if names is None or not all(is_readable(name) and "\r" not in name for name in names):
        raise InvalidParameter(
            f"the header of this .csv file cannot be read: the first line must name the columns, separated by commas, "
            f"in UTF-8, in at most {LONGEST_HEADER} bytes, and end in LF or CRLF"
        )
    return names


def columns(path: Path, width: int) -> Iterator[list[Fields]]:
    """The columns of the rows after the first line, in batches of at least one row."""
    with path.open("rb") as file:
        file.readline(LONGEST_HEADER + 1)
        for batch in filter(None, batches(file, width)):
            yield [batch[i::width] for i in range(width)]


def batches(file: BinaryIO, width: int) -> Iterator[Fields]:
    r"""The rest of a CSV file as rows of `width` fields, in batches.

    The dialect is fixed: UTF-8, commas, lines that end in LF or CRLF; a field that contains a comma, a quote or a line
    break is enclosed in double quotes, its own quotes doubled. A value that is not UTF-8 is empty, and empty values are
    missing. A row with a different number of fields than the header, or of more than `LONGEST_ROW` bytes, is dropped.

    A row written by these rules is read as it was written, whatever its values are. A line with an unclosed quote
    starts a row with line breaks if it and the next lines together make a row of the right number of fields; otherwise
    the line is damaged. A well-formed row has an even number of quotes and a line with an unclosed quote an odd number,
    so only a line with an odd number can close it: part of a row with line breaks, or another damaged line. Among rows
    without line breaks a damaged line is dropped, and the other rows are read as if it were not there.

    >>> from io import BytesIO
    >>> list(batches(BytesIO(b'1,"a, b"\r\n2\n3,"damaged\n4,\xff\n'), 2))
    [['1', 'a, b'], ['4', '']]
    """
    undecided: list[bytes | None] = []
    for lines in _lines(file):
        plain = [line for line in lines if line is not None and b'"' not in line]
        if not undecided and len(plain) == len(lines):
            yield _plain(plain, width)
        else:
            found, undecided = _rows(undecided + lines, width, ended=False)
            yield found
    if undecided:
        yield _rows(undecided, width, ended=True)[0]


def _lines(file: BinaryIO) -> Iterator[list[bytes | None]]:
    """The lines of a file without their LF, in batches; None stands for a line longer than any row."""
    begun = b""
    while block := file.read(_BLOCK):
        *lines, last = block.split(b"\n")
        if lines:
            lines[0] = begun + lines[0]
            begun = last
            yield [line if len(line) <= LONGEST_ROW else None for line in lines]
        elif len(begun) <= LONGEST_ROW:  # beyond that the line is too long already, and the rest is not kept
            begun += last
    if begun:
        yield [begun if len(begun) <= LONGEST_ROW else None]


def _rows(lines: list[bytes | None], width: int, *, ended: bool) -> tuple[Fields, list[bytes | None]]:
    """The rows in these lines, and the last lines, which may be the start of an unfinished row."""
    found: Fields = []
    place = 0
    while place < len(lines):
        line = lines[place]
        fields = None if line is None else _fields(line.removesuffix(b"\r"))
        if line is not None and fields is None and _is_odd(line):
            end = next((i for i in range(place + 1, len(lines)) if _is_odd(lines[i])), None)
            if end is None and not ended and sum(len(part or b"") for part in lines[place:]) <= LONGEST_ROW:
                return found, lines[place:]
            fields = None if end is None else _joined(lines[place : end + 1], width)
            if end is not None and fields is not None:
                place = end
        if fields is not None and len(fields) == width:
            found += fields
        place += 1
    return found, []


def _plain(lines: list[bytes], width: int) -> Fields:
    """The rows of lines without quotes: the same result as `_rows`, much faster."""
    kept = [line.removesuffix(b"\r") for line in lines if line.count(b",") == width - 1]
    return (_fields(b",".join(kept)) or []) if kept else []


def _fields(line: bytes) -> Fields | None:
    """The fields of a line, or None if it is not well-formed; a field that is not UTF-8 is empty."""
    text = line.decode("utf-8", "surrogateescape")
    fields = _split(text)
    if fields is None or text.isascii() or _ESCAPED.search(text) is None:
        return fields
    return ["" if _ESCAPED.search(value) else value for value in fields]


def _split(text: str) -> Fields | None:
    if '"' not in text:
        return text.split(",")
    fields, place, after = [], 0, ","
    while after:
        match = _FIELD.match(text, place)
        if match is None:
            return None
        quoted, plain, after = match.groups()
        fields.append(plain if quoted is None else quoted.replace('""', '"'))
        place = match.end()
    return fields


def _joined(lines: list[bytes | None], width: int) -> Fields | None:
    """The fields of several lines that form one row of `width` fields, or None."""
    parts = [line for line in lines if line is not None]
    if len(parts) < len(lines) or sum(map(len, parts)) > LONGEST_ROW:
        return None
    fields = _fields(b"\n".join(parts).removesuffix(b"\r"))
    return fields if fields is not None and len(fields) == width else None


def _is_odd(line: bytes | None) -> bool:
    """Whether this line can end a row that an earlier line left open; a line that is too long ends every row."""
    return line is None or line.count(b'"') % 2 == 1
