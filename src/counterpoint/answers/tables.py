"""Answers of several cells: by key, by name, or both.

`TableAnswer` maps the keys of one request to its cells, `RecordAnswer` the names of several questions to theirs, and
`SeveralAnswer` has a value column for each question. All are mappings and small tables.

>>> import counterpoint as cp
>>> clicks = cp.Stream(bound=1, dimensions=2)
>>> answer = cp.Session(clicks, within=cp.PureDP(1)).ask(cp.total(), epsilon=1)
>>> list(answer.keys()), answer[0].error(0.95), answer.error(0.95, simultaneous=True)
([0, 1], 6, 7)

>>> from fractions import Fraction
>>> from counterpoint import Laplace
>>> from counterpoint.answers.provenance import Provenance
>>> from counterpoint.answers.scalars import IntAnswer
>>> from counterpoint.queries.request import PreparedQuery
>>> count = PreparedQuery(None, 1, 1, None, Fraction(1))
>>> rows, late = (IntAnswer(number, Provenance(Laplace(1), count, number)) for number in (60, 2))
>>> both = RecordAnswer({"rows": rows, "late": late}, rows._provenance)
>>> both["rows"], both
(60 +- 3, rows  rows_error  late  late_error
  60        +- 3     2        +- 3  late mostly noise)
"""

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from fractions import Fraction
from typing import Any, NoReturn, Self, TypeAlias

from counterpoint.answers.arithmetic import Computed, read_ratio
from counterpoint.answers.frame import (
    INTERVAL,
    MOSTLY_NOISE,
    AnswerRow,
    AnswerTable,
    arrow,
    as_frame,
    as_polars,
    html,
    plain,
    plot_answer,
    rich_table,
)
from counterpoint.answers.provenance import SURE, Answer, Provenance
from counterpoint.answers.scalars import AnyChoice, Choice, QuantileAnswer, Scalar, no_error_of_a_choice, rows_needed
from counterpoint.display.markup import Picture
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.numbers import Number

Label: TypeAlias = Any
"""What a cell of an answer is called: a key, several of them in a tuple, or a number."""
Cell: TypeAlias = Scalar | Computed | AnyChoice | None
"""A number, a computed one, or a choice; None where noise left nothing, or where it was suppressed."""


class Tabular(Answer):
    """An answer that other libraries and screens treat as a table, with the columns of `table()`."""

    def table(self, probability: Number = SURE) -> AnswerTable:
        """The table as data: keys, values, errors, and a note where a value is mostly noise."""
        raise NotImplementedError

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, known: object) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise InvalidParameter(
            f"a {type(self).__name__} is not pickled, as it would lose where its numbers come from: pickle "
            "answer.columns(), or answer.to_pandas()"
        )

    def columns(self, probability: Number = SURE) -> dict[str, list[Any]]:
        """The table as columns: the keys under the names of their columns, and each value beside its error."""
        return self.table(probability).columns()

    def __iter__(self) -> Iterator[AnswerRow]:
        return self.table().rows()

    def plot(self, probability: Number = SURE) -> Picture:
        """A picture of each value with its error, on one scale; values that are mostly noise are marked."""
        return plot_answer(self.table(probability), self.request, probability)

    def to_pandas(self, probability: Number = SURE) -> Any:
        """A pandas DataFrame of keys, values and errors."""
        return as_frame(self.columns(probability))

    def to_arrow(self, probability: Number = SURE) -> Any:
        """A pyarrow Table of keys, values and errors."""
        return arrow(self.columns(probability), made_up=self.made_up)

    def to_polars(self, probability: Number = SURE) -> Any:
        """A Polars DataFrame of keys, values and errors."""
        return as_polars(self.columns(probability))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The table as an Arrow stream, through pyarrow."""
        return arrow(self.columns(), made_up=self.made_up).__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return plain(self.table())

    def __rich__(self) -> object:
        return rich_table(self.table())

    def _repr_html_(self) -> str:
        return html(self.table())


class TableAnswer(Tabular):
    """The cells of one answer by their keys, each a number that knows its error.

    It reads as a mapping: `answer[key]`, `answer.items()`, `key in answer`, `dict(answer)`. It is a table of keys,
    values and errors for pandas (`pandas.DataFrame(answer)`), for Arrow and Polars (`pyarrow.table(answer)`,
    `polars.DataFrame(answer)`) and on screens. Iterating gives the rows of that table, as pandas needs it.

    >>> import counterpoint as cp
    >>> visits = cp.Stream(fields={"page": cp.category(["home", "shop"])})
    >>> pages = cp.Session(visits, within=cp.PureDP(1000)).ask(cp.histogram("page"), epsilon=1000)
    >>> [(row.page, row.value, row.error) for row in pages], dict(pages) == {"home": 0, "shop": 0}
    ([('home', 0, 0), ('shop', 0, 0)], True)
    """

    def __init__(
        self,
        heads: tuple[str, ...],
        cells: Mapping[Label, Cell],
        provenance: Provenance,
        suppressed: frozenset[Label] = frozenset(),
        *,
        released: int | None = None,
    ) -> None:
        self._heads = heads
        self._cells = dict(cells)
        self._provenance = provenance
        self._suppressed = suppressed
        self._released = len(self._cells) if released is None else released

    def __getitem__(self, key: Label) -> Cell:
        return self._cells[key]

    def __len__(self) -> int:
        return len(self._cells)

    def __contains__(self, key: object) -> bool:
        return key in self._cells

    def keys(self) -> KeysView[Label]:
        """The keys, in the order of the request."""
        return self._cells.keys()

    def values(self) -> ValuesView[Cell]:
        """The numbers, in the order of the keys."""
        return self._cells.values()

    def items(self) -> ItemsView[Label, Cell]:
        """Each key with its number."""
        return self._cells.items()

    def error(self, probability: Number = SURE, *, simultaneous: bool = False) -> int | float:
        """How far off each value is at most, with this probability; or with `simultaneous=True` all of them at once.

        All are those that were released: which of them a SELECT shows may depend on their noise.
        """
        if self._provenance.prepared.wants == "choice":
            raise no_error_of_a_choice()
        return self._off(probability, simultaneous)

    def rank_error(self, probability: Number = SURE, *, simultaneous: bool = False) -> int | float:
        """By how many rows the rank of each choice is farther off than the best one's at most; or of all at once."""
        if self._provenance.prepared.wants != "choice":
            raise NotCovered("rank_error is for chosen candidates, such as medians; these are numbers: use error()")
        return self._off(probability, simultaneous)

    def _off(self, probability: Number, simultaneous: bool) -> int | float:
        steps = self._provenance.steps_of(self._released if simultaneous else 1, probability)
        error = self._provenance.prepared.error_in_units(steps)
        return error if isinstance(error, int) else float(error)

    def suppress(self, signal_to_noise: Number) -> "TableAnswer":
        """The same table, with None for every value less than `signal_to_noise` times its error at 95 %.

        Of a mean or a variance it is the noisy count under it that is compared with its error. Both are public.

        >>> import counterpoint as cp
        >>> visits = cp.Stream(fields={"page": cp.category(["home", "shop"])})
        >>> pages = cp.Session(visits, within=cp.PureDP(1)).ask(cp.histogram("page"), epsilon=1)
        >>> dict(pages.suppress(signal_to_noise=1000))
        {'home': None, 'shop': None}
        """
        ratio = read_ratio(signal_to_noise)
        gone = {
            key
            for key, cell in self._cells.items()
            if cell is not None and not isinstance(cell, Choice) and cell.suppress(ratio) is None
        }
        cells = {key: None if key in gone else cell for key, cell in self._cells.items()}
        return TableAnswer(self._heads, cells, self._provenance, self._suppressed | gone, released=self._released)

    def arranged(self, keys: Iterable[Label], heads: tuple[str, ...]) -> "TableAnswer":
        """The cells of these keys, in this order, and what the keys are called: postprocessing, so it costs nothing.

        >>> import counterpoint as cp
        >>> clicks = cp.Stream(bound=1, dimensions=3)
        >>> answer = cp.Session(clicks, within=cp.PureDP(1000)).ask(cp.total(), epsilon=1000)
        >>> answer.arranged([2, 0], ("button",)).columns()
        {'button': [2, 0], 'value': [0, 0], 'error': [0, 0]}
        """
        cells = {key: self._cells[key] for key in keys}
        return TableAnswer(heads, cells, self._provenance, self._suppressed, released=self._released)

    def table(self, probability: Number = SURE) -> AnswerTable:
        """The table as data: keys, values, errors, and a note where a value is mostly noise."""
        cells = self._cells.items()
        values = [_plain(cell) for _, cell in cells]
        errors = [None if cell is None else _stated(cell, probability) for _, cell in cells]
        notes = [
            MOSTLY_NOISE if key in self._suppressed or (cell is not None and cell.mostly_noise) else ""
            for key, cell in cells
        ]
        measured = None if self.units is None else f"in {self.units}"
        columns = self._key_columns(), {"value": values}
        if self._provenance.prepared.wants != "choice":
            return AnswerTable(*columns, {"value": ("error", errors)}, notes, measured, self.made_up)
        least = rows_needed(self._provenance.prepared, Fraction(self.rank_error(probability)))
        caption = f"among fewer than {least:,} rows a choice is {MOSTLY_NOISE}" if least > 1 else None
        return AnswerTable(*columns, {"value": ("rank_error", errors)}, notes, measured, self.made_up, caption)

    def _key_columns(self) -> dict[str, list[Label]]:
        """One column for each that was grouped by."""
        if len(self._heads) == 1:
            return {self._heads[0]: [_readable(key) for key in self._cells]}
        return {head: [_readable(key[at]) for key in self._cells] for at, head in enumerate(self._heads)}


class ComputedColumn(TableAnswer):
    """Numbers by key that were computed from the answers of one release, such as a share of two columns.

    >>> import counterpoint as cp
    >>> visits = cp.Stream(fields={"page": cp.category(["home", "shop"])})
    >>> session = cp.Session(visits, within=cp.PureDP(1000))
    >>> visits.extend([{"page": "home"}, {"page": "shop"}, {"page": "shop"}])
    >>> session.sql("SELECT page, 2 * COUNT(*) AS twice FROM visits GROUP BY page", epsilon=1000)
    page  twice  twice_error
    home      2         +- 0
    shop      4         +- 0
    """

    def error(self, probability: Number = SURE, *, simultaneous: bool = False) -> int | float:
        """How far off each number is at most, with this probability for each: the largest error of them."""
        if simultaneous:
            raise NotCovered("errors of computed numbers hold for each of them: simultaneous= is for their parts")
        errors = [cell.error(probability) for cell in self._cells.values() if isinstance(cell, Computed)]
        return max(errors, default=0)

    def suppress(self, signal_to_noise: Number) -> "ComputedColumn":
        """The same numbers, with None for every one that is less than `signal_to_noise` times its error at 95 %."""
        return self._like(super().suppress(signal_to_noise))

    def arranged(self, keys: Iterable[Label], heads: tuple[str, ...]) -> "ComputedColumn":
        """The cells of these keys, in this order."""
        return self._like(super().arranged(keys, heads))

    def _like(self, other: TableAnswer) -> "ComputedColumn":
        return ComputedColumn(
            other._heads, other._cells, other._provenance, other._suppressed, released=other._released
        )

    @property
    def units(self) -> str | None:
        """Those of the numbers, if they have any."""
        return next((cell.units for cell in self._cells.values() if cell is not None), None)


class QuantilesAnswer(TableAnswer):
    """Several quantiles of a column, each with an interval in the units of the column.

    >>> import counterpoint as cp
    >>> session = cp.Session(cp.datasets.people_table(), within=cp.PureDP(10**6))
    >>> ages = session.ask(cp.quantile("age", [0.1, 0.5, 0.9], range(0, 121, 40)), epsilon=10**6)
    >>> list(ages.columns())
    ['q', 'value', 'low', 'high']
    """

    def _quantiles(self) -> Iterator[QuantileAnswer]:
        for cell in self.values():
            assert isinstance(cell, QuantileAnswer)
            yield cell

    def error(self, probability: Number = SURE, *, simultaneous: bool = False) -> NoReturn:
        """Refused: each quantile has an interval of its own."""
        raise NotCovered("quantiles have no error, but an interval each: answer[0.5].interval(0.95)")

    def rank_error(self, probability: Number = SURE, *, simultaneous: bool = False) -> NoReturn:
        """Refused: each quantile has a rank error of its own."""
        raise NotCovered("each of these quantiles has a rank error of its own: answer[0.5].rank_error(0.95)")

    def suppress(self, signal_to_noise: Number) -> NoReturn:
        """Refused: a quantile is compared with no noise."""
        raise NotCovered("quantiles are not suppressed: answer[0.5].mostly_noise says which are mostly noise")

    def arranged(self, keys: Iterable[Label], heads: tuple[str, ...]) -> "QuantilesAnswer":
        """The quantiles of these keys, in this order."""
        return QuantilesAnswer(heads, {key: self[key] for key in keys}, self._provenance)

    def table(self, probability: Number = SURE) -> AnswerTable:
        """The table as data: keys, values, both ends of each interval, and a note where a value is mostly noise."""
        cells = list(self._quantiles())
        intervals = [cell.interval(probability) for cell in cells]
        measured = None if self.units is None else f"in {self.units}"
        return AnswerTable(
            self._key_columns(),
            {"value": [_plain(cell) for cell in self.values()]},
            {"value": (INTERVAL, intervals)},
            [MOSTLY_NOISE if cell.mostly_noise else "" for cell in cells],
            measured,
            self.made_up,
        )


def one_cell(cell: Cell, provenance: Provenance) -> TableAnswer:
    """A table of one cell."""
    if isinstance(cell, Computed):
        return ComputedColumn(("number",), {0: cell}, provenance)
    return TableAnswer(("number",), {0: cell}, provenance if cell is None else cell._provenance)


def _plain(cell: Cell) -> int | float | str | None:
    """The plain value: other libraries look at the type."""
    if cell is None:
        return None
    return int(cell) if isinstance(cell, int) else float(cell) if isinstance(cell, float) else str(cell)


def _readable(key: Label) -> Label:
    """A key as other libraries read it: they know no rationals."""
    return float(key) if isinstance(key, Fraction) else key


def _stated(cell: Scalar | Computed | AnyChoice, probability: Number) -> int | float:
    error = cell.rank_error(probability) if isinstance(cell, Choice) else cell.error(probability)
    return error if isinstance(error, int) else float(error)


class RecordAnswer(Tabular):
    """The answers to several questions by their names; a table of one row.

    It reads as a mapping (`answer["late"]`, `answer.items()`, `dict(answer)`); iterating gives its row.
    """

    def __init__(self, cells: Mapping[str, Cell], provenance: Provenance) -> None:
        self._cells = dict(cells)
        self._provenance = provenance

    def __getitem__(self, name: str) -> Cell:
        return self._cells[name]

    def __len__(self) -> int:
        return len(self._cells)

    def __contains__(self, name: object) -> bool:
        return name in self._cells

    def keys(self) -> KeysView[str]:
        """The names, in the order of the request."""
        return self._cells.keys()

    def values(self) -> ValuesView[Cell]:
        """The answers, in the order of the names."""
        return self._cells.values()

    def items(self) -> ItemsView[str, Cell]:
        """Each name with its answer."""
        return self._cells.items()

    def suppress(self, signal_to_noise: Number) -> "RecordAnswer":
        """The same answers, with None in place of each that is less than `signal_to_noise` times its error at 95 %."""
        kept = {name: one_cell(cell, self._provenance).suppress(signal_to_noise)[0] for name, cell in self.items()}
        return RecordAnswer(kept, self._provenance)

    def table(self, probability: Number = SURE) -> AnswerTable:
        """The table as data, with one row and no keys."""
        parts = {name: one_cell(cell, self._provenance) for name, cell in self.items()}
        return beside({}, parts, probability, self.made_up)


class SeveralAnswer(Tabular):
    """The answers to several questions by key: a table with a value column, and a column of errors, for each.

    `answer["UA"]` has the answers for one key by their names, `answer.part("late")` those to one question by key.
    Iterating gives rows.
    """

    def __init__(self, parts: Mapping[str, TableAnswer], provenance: Provenance) -> None:
        self._parts = dict(parts)
        self._first = next(iter(self._parts.values()))
        self._provenance = provenance

    def __getitem__(self, key: Label) -> RecordAnswer:
        return RecordAnswer({name: part[key] for name, part in self._parts.items()}, self._provenance)

    def __len__(self) -> int:
        return len(self._first)

    def __contains__(self, key: object) -> bool:
        return key in self._first

    def keys(self) -> KeysView[Label]:
        """The keys, in the order of the request."""
        return self._first.keys()

    def values(self) -> list[RecordAnswer]:
        """The answers by their names, in the order of the keys."""
        return [self[key] for key in self.keys()]

    def items(self) -> list[tuple[Label, RecordAnswer]]:
        """Each key with its answers."""
        return [(key, self[key]) for key in self.keys()]

    def part(self, name: str) -> TableAnswer:
        """The answers to one of the questions, by key."""
        return self._parts[name]

    def suppress(self, signal_to_noise: Number) -> "SeveralAnswer":
        """The same table, with None for every value less than `signal_to_noise` times its error at 95 %."""
        return SeveralAnswer(
            {name: part.suppress(signal_to_noise) for name, part in self._parts.items()}, self._provenance
        )

    def table(self, probability: Number = SURE) -> AnswerTable:
        """The table as data: keys, and each value beside its error."""
        keys = self._first.table(probability).keys
        return beside(keys, self._parts, probability, self.made_up)


def beside(
    keys: Mapping[str, Any], parts: Mapping[str, TableAnswer], probability: Number, made_up: bool
) -> AnswerTable:
    """The tables of several questions as one: the errors of `late` are in `late_error`, and notes name the column."""
    tables = {name: part.table(probability) for name, part in parts.items()}
    values = {name: table.values["value"] for name, table in tables.items()}
    errors = {
        name: (f"{name}_{head}", column) for name, table in tables.items() for head, column in [table.errors["value"]]
    }
    noted = zip(
        *([f"{name} {note}" if note else "" for note in table.notes] for name, table in tables.items()), strict=True
    )
    notes = [", ".join(filter(None, row)) for row in noted]
    measured = ", ".join(f"{name} {table.measured}" for name, table in tables.items() if table.measured)
    return AnswerTable(keys, values, errors, notes, measured or None, made_up)
