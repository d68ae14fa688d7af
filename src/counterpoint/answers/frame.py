"""An answer as data and on screens: columns, a data frame, a text or HTML table, a picture.

`AnswerTable` holds keys, values and errors as plain columns; everything here is made of one. Numbers are aligned at the
right, and a picture draws each value with its error bar.

>>> errors = {"value": ("error", [30, 30])}
>>> cities = AnswerTable({"city": ["Paris", "Rome"]}, {"value": [902, 21]}, errors, notes=["", "mostly noise"])
>>> print(plain(cities))
city   value  error
Paris    902  +- 30
Rome      21  +- 30  mostly noise
>>> cities.columns()
{'city': ['Paris', 'Rome'], 'value': [902, 21], 'error': [30, 30]}

>>> import counterpoint as cp
>>> session = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1))
>>> session.ask(cp.total(), epsilon=0.1).plot().sure
'95 %'
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from html import escape
from importlib import import_module
from math import inf
from typing import Any

from counterpoint.display.charts import ErrorBar, ErrorBars
from counterpoint.display.markup import Picture
from counterpoint.errors import InvalidParameter
from counterpoint.numbers import Number
from counterpoint.numbers.exact import exact

Columns = Mapping[str, Sequence[Any]]

MOSTLY_NOISE = "mostly noise"
"""What displays say beside a number that is smaller than its error at 95 %."""

INTERVAL = "interval"
"""The head of errors that are pairs: the ends between which the true value is, which become two columns."""

_MOST = 60
"""The most rows that a screen shows; it says how many more there are."""


@dataclass(frozen=True, slots=True)
class AnswerTable:
    """Columns of keys, and columns of values, each with the head and the column of its errors; and a note per row."""

    keys: Columns
    values: Columns
    errors: Mapping[str, tuple[str, Sequence[Any]]]
    notes: Sequence[str]
    measured: str | None = None
    made_up: bool = False
    caption: str | None = None
    """A sentence below the table."""

    def columns(self) -> dict[str, list[Any]]:
        """All columns by their heads: keys, and each value beside its errors. A key's head may be taken: then it has
        another.
        """
        numbers: dict[str, list[Any]] = {}
        for head, values in self.values.items():
            error, errors = self.errors[head]
            if error == INTERVAL:
                numbers |= {head: list(values), "low": [low for low, _ in errors], "high": [high for _, high in errors]}
            else:
                numbers |= {head: list(values), error: list(errors)}
        keys = {f"{head}_key" if head in numbers else head: list(key) for head, key in self.keys.items()}
        return keys | numbers

    def rows(self) -> "Iterator[AnswerRow]":
        """The rows, each with the heads as names."""
        columns = self.columns()
        heads = tuple(columns)
        return (AnswerRow(heads, row) for row in zip(*columns.values(), strict=True))


class AnswerRow(tuple[Any, ...]):
    """A row of an answer: a tuple whose values have the names of their columns, as in a named tuple.

    >>> row = AnswerRow(("city", "value", "error"), ("Paris", 902, 30))
    >>> row, row.city, row[1]
    (AnswerRow(city='Paris', value=902, error=30), 'Paris', 902)
    """

    _fields: tuple[str, ...]

    def __new__(cls, heads: tuple[str, ...], values: Sequence[Any]) -> "AnswerRow":
        """The values, and what they are called; `_fields` is where pandas looks for it."""
        row = super().__new__(cls, values)
        row._fields = heads
        return row

    def __getattr__(self, name: str) -> Any:
        """The value in this column."""
        if name.startswith("__") or name not in self._fields:
            raise AttributeError(f"this row has no column {name!r}: it has {', '.join(self._fields)}")
        return self[self._fields.index(name)]

    def __repr__(self) -> str:
        return f"AnswerRow({', '.join(f'{head}={value!r}' for head, value in zip(self._fields, self, strict=True))})"

    def __reduce__(self) -> tuple[type["AnswerRow"], tuple[tuple[str, ...], tuple[Any, ...]]]:
        return AnswerRow, (self._fields, tuple(self))


def as_frame(columns: Columns) -> Any:
    """A pandas DataFrame.

    >>> as_frame({"city": ["Rome"], "value": [41]}).shape
    (1, 2)
    """
    frames = _library("pandas")
    return frames.DataFrame(dict(columns))


def as_polars(columns: Columns) -> Any:
    """A Polars DataFrame.

    >>> as_polars({"city": ["Rome"], "value": [41]}).shape
    (1, 2)
    """
    return _library("polars").DataFrame(dict(columns))


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


def plain(table: AnswerTable) -> str:
    """Lines of text."""
    heads, rows, more = _written(table, "+-")
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    keys = len(table.keys)
    numbers = len(table.columns()) - keys

    def line(row: Sequence[str]) -> str:
        cells = [cell.ljust(width) for cell, width in zip(row[:keys], widths[:keys], strict=True)]
        cells += [cell.rjust(width) for cell, width in zip(row[keys:], widths[keys:], strict=True)][:numbers]
        return "  ".join([*cells, *(cell for cell in row[keys + numbers :] if cell)])

    return "\n".join([line(heads), *map(line, rows), *more])


def html(table: AnswerTable) -> str:
    """An HTML table."""
    heads, rows, more = _written(table, "±")
    keys = len(table.keys)
    body = "".join(_html_row("td", row, keys) for row in rows)
    after = "".join(f"<p>{escape(line)}</p>" for line in more)
    return f"<table><thead>{_html_row('th', heads, keys)}</thead><tbody>{body}</tbody></table>{after}"


def _html_row(tag: str, row: Sequence[str], keys: int) -> str:
    names = "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row[:keys])
    numbers = "".join(f'<{tag} align="right">{escape(cell)}</{tag}>' for cell in row[keys:])
    return f"<tr>{names}{numbers}</tr>"


def rich_table(table: AnswerTable) -> object:
    """A rich table."""
    from rich.table import Table  # noqa: PLC0415 - rich is imported only where something is shown
    from rich.text import Text  # noqa: PLC0415 - as above

    heads, rows, more = _written(table, "+-")
    shown = Table(caption=", ".join(more) or None)
    for number, head in enumerate(heads):
        shown.add_column(Text(head), justify="left" if number < len(table.keys) else "right")
    for row in rows:
        shown.add_row(*map(Text, row))  # as it stands: a key of the data may look like markup
    return shown


def _written(table: AnswerTable, sign: str) -> tuple[list[str], list[list[str]], list[str]]:
    """Heads and rows as texts: keys, values each beside its error, and notes if there are any; then lines below it."""
    columns = table.columns()
    errors = {head for head, _ in table.errors.values()}
    texts = {
        head: _numbers(column[:_MOST], "" if head not in errors else "within " if is_rank(head) else f"{sign} ")
        if place >= len(table.keys)
        else [str(key) for key in column[:_MOST]]
        for place, (head, column) in enumerate(columns.items())
    }
    if any(table.notes):
        texts[""] = list(table.notes[:_MOST])
    left = max(0, len(table.notes) - _MOST)
    more = [f"and {left} more"] if left else []
    more += [table.measured] if table.measured else []
    more += [table.caption] if table.caption else []
    more += ["(made up)"] if table.made_up else []
    return list(texts), [list(row) for row in zip(*texts.values(), strict=True)], more


def is_rank(head: str) -> bool:
    """Whether a column of errors counts rows of rank, not units of the values."""
    return head.endswith("rank_error")


def _numbers(column: Sequence[Any], before: str) -> list[str]:
    return [f"{before}{_number(value)}" for value in column]


def _number(value: float | str | None) -> str:
    if value is None:
        return "?"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def plot_answer(table: AnswerTable, request: object, probability: Number) -> Picture:
    """The table as bars on one scale."""
    if len(table.values) > 1:
        names = list(table.values)
        raise InvalidParameter(
            f"{', '.join(names)} have no common scale: plot one of them, as in answer[{names[-1]!r}].plot(), or "
            f"answer.part({names[-1]!r}).plot() if there are keys"
        )
    made_up = " (made up)" if table.made_up else ""
    measured = f", {table.measured}" if table.measured else ""
    sure = f"{float(100 * exact(probability)):g} %"
    return ErrorBars(f"{request!r}{measured}{made_up}", tuple(table.keys), tuple(_error_bars(table)), sure)


def _error_bars(table: AnswerTable) -> Iterator[ErrorBar]:
    keys = list(zip(*table.keys.values(), strict=True)) or [()] * len(table.notes)
    ((head, values),) = table.values.items()
    stated, errors = table.errors[head]
    for key, value, error, note in zip(keys, values, errors, table.notes, strict=True):
        yield _error_bar(" · ".join(map(str, key)), value, stated, error, note)


def _error_bar(key: str, value: object, stated: str, error: object, note: str) -> ErrorBar:
    if isinstance(value, str):
        raise InvalidParameter("these answers are texts, which no scale shows: print them, or use to_pandas()")
    if stated == INTERVAL:
        assert isinstance(value, int | float) and isinstance(error, tuple)
        return ErrorBar(key, value, None, note, bool(note), interval=(float(error[0]), float(error[1])))
    assert isinstance(value, int | float | None) and isinstance(error, int | float | None)
    if is_rank(stated):  # how far off a chosen value's rank is, which is not on this scale
        return ErrorBar(key, value, None, f"rank within {_number(error)} rows")
    return ErrorBar(key, value, error, note or ("" if value is not None else "noise left no value"), bool(note))


def show(value: str, error: str, units: str | None, mostly_noise: bool, made_up: bool) -> str:
    """A number with its error in one line.

    >>> show("34", "3", "minutes", False, False), show("2", "3", None, True, True)
    ('34 +- 3 minutes', '2 +- 3 (mostly noise) (made up)')
    """
    measured = "" if units is None else f" {units}"
    noisy = f" ({MOSTLY_NOISE})" if mostly_noise else ""
    return f"{value} +- {error}{measured}{noisy}{' (made up)' if made_up else ''}"


def written(value: float, error: float) -> tuple[str, str]:
    """A number and its error as people write them: three digits of the error, rounded up, and no more of the number.

    >>> written(6.874359614706216, 0.0133234), written(920644298.5, 29957323), written(2.5, 0)
    (('6.8744', '0.0134'), ('920644298', '30000000'), ('2.5', '0'))
    """
    if not 0 < error < inf:
        return repr(value), f"{error:g}"
    last = Decimal(error).adjusted() - 2
    up = Decimal(error).quantize(Decimal(1).scaleb(last), ROUND_CEILING, Context(prec=400))
    digits = max(0, -last)
    return f"{value:.{digits}f}", f"{up:.{digits}f}"
