r"""The rows of a CSV file, read so that no row changes how another is read, and none keeps the others from being read.

The dialect is fixed: UTF-8, commas, lines that end in LF or CRLF; a field that holds a comma, a quote or a line break
stands in double quotes, its own quotes doubled. The first line names the columns, and everything after it is data:
nothing is detected. A value that is not UTF-8 is empty, and empty values are missing. A row without as many fields as
there are names, or of more than `LONGEST_ROW` bytes, is left out.

A row that a program wrote by these rules is read as it was written, whatever its values hold. A line that opens a quote
and does not close it is the first of a row with line breaks in it, if together with the next lines it makes one of as
many fields as there are names; else it is damaged. A row that was written holds an even number of quotes and such a
line an odd one, so it can only be closed by a line with an odd number: by part of a row with line breaks, or another
that is damaged. Among rows without line breaks it is left out, and the others are read as if it were not there.

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
"""The most bytes of a row; what is longer is left out, so that a row can be looked at as a whole."""
LONGEST_HEADER = 2**20
_BLOCK = 2**22

Fields = list[str]
"""The values of one row, or of several, one row after the other."""

_QUOTED = ' *"([^"]*+(?:""[^"]*+)*+)" *'
_FIELD = re.compile(rf'(?:{_QUOTED}|((?! *")[^,]*+))(,|\Z)')
"""One that does not open with a quote may hold some, as in 5" pipe: taken alone, a line shows what is meant."""
_ESCAPED = re.compile("[\udc80-\udcff]")
"""A byte that is not part of any character, as Python's decoder passes it on."""


def header(path: Path) -> list[str]:
    """The names in the first line: the only part of a file whose reading depends on what is there."""
    names: Fields | None = None
    with suppress(OSError, UnicodeError), path.open("rb") as file:
        line = file.readline(LONGEST_HEADER + 1)
        if 0 < len(line) <= LONGEST_HEADER:
            names = _split(line.removesuffix(b"\r\n").removesuffix(b"\n").decode("utf-8-sig"))
    if names is None or not all(is_readable(name) and "\r" not in name for name in names):
        raise InvalidParameter(
            f"the first line of a .csv file names its columns, in UTF-8, in at most {LONGEST_HEADER} bytes, and ends "
            "in LF or CRLF"
        )
    return names


def columns(path: Path, width: int) -> Iterator[list[Fields]]:
    """The columns of the rows after the first line, in batches of at least one row."""
    with path.open("rb") as file:
        file.readline(LONGEST_HEADER + 1)
        for batch in filter(None, batches(file, width)):
            yield [batch[i::width] for i in range(width)]


def batches(file: BinaryIO, width: int) -> Iterator[Fields]:
    """The rows of so many fields that a file has from here on."""
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
    """The lines of a file without their LF, in batches; None is one that is longer than any row."""
    begun = b""
    while block := file.read(_BLOCK):
        *lines, last = block.split(b"\n")
        if lines:
            lines[0] = begun + lines[0]
            begun = last
            yield [line if len(line) <= LONGEST_ROW else None for line in lines]
        elif len(begun) <= LONGEST_ROW:  # of a longer line no more is kept than shows that it is longer
            begun += last
    if begun:
        yield [begun if len(begun) <= LONGEST_ROW else None]


def _rows(lines: list[bytes | None], width: int, *, ended: bool) -> tuple[Fields, list[bytes | None]]:
    """The rows in these lines, and the lines at the end that may be part of a row of which more is to come."""
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
    """The rows of lines without quotes, all at once: what `_rows` finds, in a fraction of the time."""
    kept = [line.removesuffix(b"\r") for line in lines if line.count(b",") == width - 1]
    return (_fields(b",".join(kept)) or []) if kept else []


def _fields(line: bytes) -> Fields | None:
    """The fields of a line, or None if it is not well-formed; what is not UTF-8 is empty."""
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
    """The fields of several lines, if they are one well-formed row of so many fields."""
    parts = [line for line in lines if line is not None]
    if len(parts) < len(lines) or sum(map(len, parts)) > LONGEST_ROW:
        return None
    fields = _fields(b"\n".join(parts).removesuffix(b"\r"))
    return fields if fields is not None and len(fields) == width else None


def _is_odd(line: bytes | None) -> bool:
    """Whether a row that is open before this line may be closed by it; past a line that is too long none goes on."""
    return line is None or line.count(b'"') % 2 == 1
