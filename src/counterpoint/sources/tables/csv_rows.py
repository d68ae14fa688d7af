r"""A CSV reader in which no row changes how another is read.

A reader that guesses types or stops at a damaged row lets one unit change the rows of all others. This one has a fixed
dialect: UTF-8, commas, lines that end in LF or CRLF; a field that contains a comma, a quote or a line break is enclosed
in double quotes, its own quotes doubled. The first line names the columns; every later line is data. A value that is
not UTF-8 is empty, and empty values are missing. A row with a different number of fields than the header, or of more
than `LONGEST_ROW` bytes, is dropped.

A row written by these rules is read as it was written, whatever its values are. A line with an unclosed quote starts a
row with line breaks if it and the next lines together make a row of the right number of fields; otherwise the line is
damaged. A well-formed row has an even number of quotes and a line with an unclosed quote an odd number, so only a line
with an odd number can close it: part of a row with line breaks, or another damaged line. Among rows without line breaks
a damaged line is dropped, and the other rows are read as if it were not there.

>>> from io import BytesIO
>>> list(batches(BytesIO(b'1,"a, b"\r\n2\n3,"damaged\n4,\xff\n'), 2))
[['1', 'a, b'], ['4', '']]
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from counterpoint.errors import InvalidParameter
from counterpoint.sources.declaring.columns import is_readable

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
    """The rest of a file as rows of `width` fields, in batches."""
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
