"""Answers that know themselves: numbers and tables with their error, their price and their origin.

A scalar answer is an int or a float: it compares, adds up, hashes and pickles as that number. A keyed answer is a
mapping from keys to such numbers, and a small table. The error is relative to what is measured, the rows of a
declaration with its bounds and its rows per unit: by the law of the noise from public facts alone, or (for a mean) from
the noisy answer too, which is public by then.

>>> import counterpoint as cp
>>> session = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1))
>>> visits = session.ask(cp.total(), epsilon=0.1)
>>> visits.error(0.95), visits.cost, visits.mechanism, visits == visits + 0
(30, PureDP(0.1), Laplace(0.1), True)
"""

from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from dataclasses import dataclass
from fractions import Fraction
from math import inf, nextafter
from typing import Any

from counterpoint.encoding import Plain
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.numbers import Number
from counterpoint.privacy.loss import Loss
from counterpoint.session.answering.answer_table import arrow, as_frame, html, plain, rich_table
from counterpoint.session.answering.choosing import SURE
from counterpoint.session.rehearsing import marked
from counterpoint.sources.asking.about import About
from counterpoint.sources.asking.grouping import cell_by_cell
from counterpoint.sources.asking.request import Request
from counterpoint.sources.source import Prepared

Label = Any
"""What a cell of an answer is called: a key, several of them in a tuple, or a number."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a number comes from: the mechanism, the request with its public facts, what was released, and why so."""

    mechanism: Mechanism
    prepared: Prepared
    released: Plain
    why: str
    made_up: bool = False

    def error(self, probability: Number) -> int | Fraction:
        """How far off the number is at most with this probability, in its units."""
        facts = self.prepared
        steps = self.mechanism.answer_error(facts.message(), probability, facts.together)
        return facts.error_from(self.released, steps)


class _Known:
    """What every answer knows of its origin."""

    _origin: Origin

    @property
    def cost(self) -> Loss:
        """What the mechanism cost that gave this answer, and perhaps others."""
        return self._origin.mechanism.claim.loss

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that gave this answer."""
        return self._origin.mechanism

    @property
    def request(self) -> Plain:
        """What was asked."""
        return self._origin.prepared.request

    @property
    def why(self) -> str:
        """Why this mechanism was chosen."""
        return self._origin.why

    @property
    def made_up(self) -> bool:
        """Whether it is an answer of a rehearsal, about made-up rows."""
        return self._origin.made_up

    @property
    def _mark(self) -> str:
        return " (made up)" if self.made_up else ""


class IntAnswer(_Known, int):
    """A whole number that knows its error; else it is an int.

    >>> import counterpoint as cp
    >>> visits = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1)).ask(cp.total(), epsilon=1)
    >>> visits + 1 == int(visits) + 1, type(visits + 1), f"{visits!r}".endswith("+- 3")
    (True, <class 'int'>, True)
    """

    def __new__(cls, value: int, origin: Origin) -> "IntAnswer":
        """An int, and where it comes from."""
        answer = super().__new__(cls, value)
        answer._origin = origin
        return answer

    def error(self, probability: Number = SURE) -> int:
        """How far off it is at most, with this probability: the least whole number that holds."""
        error = self._origin.error(probability)
        assert isinstance(error, int)
        return error

    def __repr__(self) -> str:
        return f"{int(self)} +- {self.error()}{self._mark}"

    __str__ = int.__repr__
    __format__ = int.__format__

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)


class FloatAnswer(_Known, float):
    """A number that knows its error; else it is a float.

    The released number is a multiple of the request's grid; this is the float nearest to it.
    """

    def __new__(cls, value: Fraction, origin: Origin) -> "FloatAnswer":
        """A float, and where it comes from."""
        answer = super().__new__(cls, float(value))
        answer._origin = origin
        return answer

    def error(self, probability: Number = SURE) -> float:
        """How far off it is at most, with this probability; the next larger float where it is none."""
        error = self._origin.error(probability)
        return float(error) if Fraction(float(error)) >= error else nextafter(float(error), inf)

    def __repr__(self) -> str:
        return f"{float(self)} +- {self.error():.6g}{self._mark}"

    __str__ = float.__repr__
    __format__ = float.__format__

    def __reduce__(self) -> tuple[type[float], tuple[float]]:
        return float, (float(self),)


Scalar = IntAnswer | FloatAnswer | None
"""A number that knows its error; None where noise left no mean."""


class TableAnswer(_Known):
    """The cells of one answer by their keys, each a number that knows its error.

    It reads as a mapping, and is a table of keys, values and errors for Arrow (`pyarrow.table(answer)`,
    `polars.DataFrame(answer)`), for pandas (`answer.to_pandas()`) and on screens. It is no `collections.abc.Mapping`:
    Polars would take each key for a column.

    >>> import counterpoint as cp
    >>> clicks = cp.Stream(bound=1, dimensions=2)
    >>> answer = cp.Session(clicks, within=cp.PureDP(1)).ask(cp.total(), epsilon=1)
    >>> list(answer), answer[0].error(0.95), answer.error(0.95, simultaneous=True)
    ([0, 1], 6, 7)
    """

    def __init__(self, keyed_by: tuple[str, ...], cells: Mapping[Label, Scalar], origin: Origin) -> None:
        self._keyed_by = keyed_by
        self._cells = dict(cells)
        self._origin = origin

    def __getitem__(self, key: Label) -> Scalar:
        return self._cells[key]

    def __iter__(self) -> Iterator[Label]:
        return iter(self._cells)

    def __len__(self) -> int:
        return len(self._cells)

    def __contains__(self, key: object) -> bool:
        return key in self._cells

    def keys(self) -> KeysView[Label]:
        """The keys, in the order of the request."""
        return self._cells.keys()

    def values(self) -> ValuesView[Scalar]:
        """The numbers, in the order of the keys."""
        return self._cells.values()

    def items(self) -> ItemsView[Label, Scalar]:
        """Each key with its number."""
        return self._cells.items()

    def error(self, probability: Number = SURE, *, simultaneous: bool = False) -> int | float:
        """How far off each value is at most, with this probability; or with `simultaneous=True` all of them at once."""
        origin = self._origin
        numbers = len(self) if simultaneous else 1
        steps = origin.mechanism.answer_error(origin.prepared.message(), probability, numbers)
        error = origin.prepared.error_in_units(steps)
        return error if isinstance(error, int) else float(error)

    def columns(self, probability: Number = SURE) -> dict[str, list[Any]]:
        """The table as columns: the keys under the names of their columns, `value` and `error`."""
        cells = self._cells.values()
        values = [cell if cell is None else int(cell) if isinstance(cell, int) else float(cell) for cell in cells]
        errors = [None if cell is None else cell.error(probability) for cell in cells]
        return {**self._key_columns(), "value": values, "error": errors}

    def _key_columns(self) -> dict[str, list[Label]]:
        """One column for each that was grouped by; a column called value or error gets another name."""
        if len(self._keyed_by) < 2:
            return {self._head(name): list(self._cells) for name in self._keyed_by or ("number",)}
        return {self._head(name): [key[at] for key in self._cells] for at, name in enumerate(self._keyed_by)}

    @staticmethod
    def _head(name: str) -> str:
        return f"{name}_key" if name in ("value", "error") else name

    def to_pandas(self, probability: Number = SURE) -> Any:
        """A pandas DataFrame of keys, values and errors."""
        return as_frame(self.columns(probability))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The table as an Arrow stream, through pyarrow."""
        return arrow(self.columns(), made_up=self.made_up).__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return plain(self.columns(), made_up=self.made_up)

    def __rich__(self) -> object:
        return rich_table(self.columns(), made_up=self.made_up)

    def _repr_html_(self) -> str:
        return html(self.columns(), made_up=self.made_up)


def labelled(mechanism: Mechanism, prepared: Prepared, released: Plain, why: str, *, made_up: bool = False) -> object:
    """The answer in units, with what it knows; a choice, keys and what has no stated error stay as they are."""
    origin = Origin(mechanism, prepared, released, why, made_up)
    answer = prepared.in_units(released)
    if prepared.wants != "numbers" or not prepared.states_error:
        return marked(answer) if made_up else answer
    if not isinstance(answer, tuple):
        return _scalar(answer, origin)
    assert isinstance(released, tuple)
    keys = range(len(answer)) if prepared.names is None else prepared.names
    raws = released if prepared.together == 1 else tuple(cell_by_cell(released, prepared.together))
    cells = {
        key: _scalar(value, Origin(mechanism, prepared, raw, why, made_up))
        for key, value, raw in zip(keys, answer, raws, strict=True)
    }
    return TableAnswer(_keyed_by(prepared.request), cells, origin)


def _scalar(value: object, origin: Origin) -> Any:
    if type(value) is int:
        return IntAnswer(value, origin)
    return FloatAnswer(value, origin) if isinstance(value, Fraction) else value


def _keyed_by(request: Plain) -> tuple[str, ...]:
    inner = request.request if isinstance(request, About) else request
    return inner.keyed_by if isinstance(inner, Request) else ()
