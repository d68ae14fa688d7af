"""A table of keys, values and errors, for other libraries and for screens. Numbers are aligned at the right.

>>> print(plain({"city": ["Paris", "Rome"], "value": [902, 41], "error": [30, 30]}))
city   value  error
Paris    902  +- 30
Rome      41  +- 30
"""

from collections.abc import Mapping, Sequence
from html import escape
from importlib import import_module
from typing import Any

from counterpoint.errors import InvalidParameter

Columns = Mapping[str, Sequence[Any]]

_MOST = 60
"""The most rows that a screen shows; it says how many more there are."""


def as_frame(columns: Columns) -> Any:
    """A pandas DataFrame.

    >>> as_frame({"city": ["Rome"], "value": [41]}).shape
    (1, 2)
    """
    frames = _library("pandas")
    return frames.DataFrame(dict(columns))


def arrow(columns: Columns, *, made_up: bool = False) -> Any:
    """A pyarrow Table; the metadata of its schema says if it is made up.

    >>> arrow({"city": ["Rome"], "value": [41]}).column_names
    ['city', 'value']
    """
    table = _library("pyarrow").table(dict(columns))
    return table.replace_schema_metadata({"made_up": "true"}) if made_up else table


def _library(name: str) -> Any:
    """A library that is optional, imported only where it is wanted."""
    try:
        return import_module(name)
    except ImportError:
        raise InvalidParameter(
            f"this needs {name}, which is not installed: install it, or use answer.columns()"
        ) from None


def plain(columns: Columns, *, made_up: bool = False) -> str:
    """Lines of text."""
    heads, rows, more = _written(columns, "+-", made_up)
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]

    def line(row: Sequence[str]) -> str:
        keys = [cell.ljust(width) for cell, width in zip(row[:-2], widths[:-2], strict=True)]
        return "  ".join([*keys, row[-2].rjust(widths[-2]), row[-1].rjust(widths[-1])])

    return "\n".join([line(heads), *map(line, rows), *more])


def html(columns: Columns, *, made_up: bool = False) -> str:
    """An HTML table."""
    heads, rows, more = _written(columns, "±", made_up)
    body = "".join(_html_row("td", row) for row in rows)
    after = "".join(f"<p>{line}</p>" for line in more)
    return f"<table><thead>{_html_row('th', heads)}</thead><tbody>{body}</tbody></table>{after}"


def _html_row(tag: str, row: Sequence[str]) -> str:
    keys = "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row[:-2])
    numbers = "".join(f'<{tag} align="right">{escape(cell)}</{tag}>' for cell in row[-2:])
    return f"<tr>{keys}{numbers}</tr>"


def rich_table(columns: Columns, *, made_up: bool = False) -> object:
    """A rich table."""
    from rich.table import Table  # noqa: PLC0415 - rich is imported only where something is shown
    from rich.text import Text  # noqa: PLC0415 - as above

    heads, rows, more = _written(columns, "+-", made_up)
    table = Table(caption=", ".join(more) or None)
    for head in heads[:-2]:
        table.add_column(Text(head))
    for head in heads[-2:]:
        table.add_column(Text(head), justify="right")
    for row in rows:
        table.add_row(*map(Text, row))  # as it stands: a key of the data may look like markup
    return table


def _written(columns: Columns, sign: str, made_up: bool) -> tuple[list[str], list[list[str]], list[str]]:
    """Heads and rows as texts, the value and the error last, and lines about rows left out and rows made up."""
    rows = [
        [*map(str, keys), _number(value), f"{sign} {_number(error)}"]
        for *keys, value, error in list(zip(*columns.values(), strict=True))[:_MOST]
    ]
    left = max(0, len(columns["value"]) - _MOST)
    return list(columns), rows, [*([f"and {left} more"] if left else []), *(["(made up)"] if made_up else [])]


def _number(value: float | None) -> str:
    if value is None:
        return "?"
    return str(value) if isinstance(value, int) else f"{value:.6g}"
