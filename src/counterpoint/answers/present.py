"""From a released value to the analyst's answer.

`present` makes the answer of a question: an int or a float (`scalars`), a chosen candidate or selected keys, or a table
(`tables`). Each knows its error, its price and its provenance. `as_sql_table` applies HAVING, ORDER BY and LIMIT to a
released table, and answers of a rehearsal are marked as synthetic.

>>> import counterpoint as cp
>>> visits = cp.Stream(fields={"page": cp.category(["home", "shop"])})
>>> pages = cp.Session(visits, within=cp.PureDP(1)).ask(cp.histogram("page"), epsilon=0.1)
>>> list(pages.keys()), pages["home"].error(0.95), pages.cost
(['home', 'shop'], 60, PureDP(0.1))

>>> import counterpoint as cp
>>> visits = cp.Stream(fields={"page": cp.category(["home", "shop"])})
>>> session = cp.Session(visits, within=cp.PureDP(1000))
>>> visits.extend([{"page": "home"}, {"page": "shop"}, {"page": "shop"}])
>>> session.sql("SELECT page AS p, COUNT(*) AS n FROM visits GROUP BY page ORDER BY n DESC", epsilon=1000)
p     n  n_error
shop  2     +- 0
home  1     +- 0
"""

from collections.abc import KeysView, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from msgspec.structs import replace

from counterpoint.answers.provenance import Provenance
from counterpoint.answers.scalars import KeysAnswer, NumberAnswer, TupleAnswer, choice, quantile_answer, scalar
from counterpoint.answers.tables import (
    Cell,
    ComputedColumn,
    Label,
    QuantilesAnswer,
    RecordAnswer,
    SeveralAnswer,
    TableAnswer,
)
from counterpoint.numbers import Exact
from counterpoint.queries.grouping import cell_by_cell
from counterpoint.queries.request import OnSource, PreparedQuery, Request
from counterpoint.queries.several_quantiles import CumulatedQuantiles
from counterpoint.sql_requests.query import Row, SQLQuery


def present(provenance: Provenance) -> object:
    """The answer in units, with its provenance; an answer without a stated error stays a plain value."""
    shares = provenance.prepared.parts(provenance.released)
    parts = {name: _answer(provenance.of(share, part)) for name, (part, share) in shares.items()}
    if parts:
        return (
            RecordAnswer(parts, provenance) if provenance.prepared.names is None else SeveralAnswer(parts, provenance)
        )
    return _answer(provenance)


def _answer(provenance: Provenance) -> Any:
    prepared, released = provenance.prepared, provenance.released
    if isinstance(prepared, CumulatedQuantiles):
        return _quantiles(prepared, provenance)
    answer = prepared.in_units(released)
    if prepared.wants == "keys":
        assert isinstance(answer, tuple)
        return KeysAnswer(answer, provenance)
    if not prepared.states_error:
        return _without_error(answer, provenance)
    if not isinstance(answer, tuple):
        return _cell(answer, provenance)
    whole = released if isinstance(released, tuple) else (released,)  # a choice for one key is no tuple
    heads, labels = _names(prepared, len(answer))
    raws = whole if prepared.simultaneous_values == 1 else tuple(cell_by_cell(whole, prepared.simultaneous_values))
    cells = {label: _cell(value, provenance.of(raw)) for label, value, raw in zip(labels, answer, raws, strict=True)}
    return TableAnswer(heads, cells, provenance)


def _quantiles(prepared: CumulatedQuantiles, provenance: Provenance) -> QuantilesAnswer:
    """A table of quantiles, each with the histogram of its group alone."""
    heads, labels = _names(prepared, 0)
    of_groups = [(cells, q) for cells in prepared.cells_of(provenance.released) for q in prepared.qs]
    found = [
        quantile_answer(
            prepared.value(prepared.chosen(cells, q)), provenance.of(cells, replace(prepared, qs=(q,), names=None))
        )
        for cells, q in of_groups
    ]
    return QuantilesAnswer(heads, dict(zip(labels, found, strict=True)), provenance)


def suppress_noisy(answer: object, ratio: Fraction) -> object:
    """The answer with None in place of each value below `ratio` times its error, or where noise left no number."""
    if answer is None:
        return None
    assert isinstance(answer, NumberAnswer | TableAnswer | RecordAnswer | SeveralAnswer)
    return answer.suppress(ratio)


def _without_error(answer: object, provenance: Provenance) -> object:
    if isinstance(answer, tuple) and provenance.prepared.wants == "choice":
        return TupleAnswer(answer, provenance)
    return marked(answer) if provenance.made_up else answer


def _cell(value: object, provenance: Provenance) -> Cell:
    return choice(value, provenance) if provenance.prepared.wants == "choice" else scalar(value, provenance)


def _names(prepared: PreparedQuery, cells: int) -> tuple[tuple[str, ...], Sequence[Label]]:
    """The heads of the keys, and the keys; cells that have no names are numbered."""
    request = prepared.request.request if isinstance(prepared.request, OnSource) else prepared.request
    heads = request.keyed_by if isinstance(request, Request) else ()
    names = prepared.names if prepared.labels is None else prepared.labels
    return heads or ("number",), range(cells) if names is None else names


SQLAnswer: TypeAlias = SeveralAnswer | RecordAnswer
"""The answer of a query: by key and then by the names of SELECT; without GROUP BY, by the names alone."""


def as_sql_table(query: SQLQuery, answer: Any, provenance: Provenance) -> SQLAnswer:
    """The table of a query, from the answer to its request."""
    heads = query.heads
    if not heads:
        cells = query.row([answer[part] if isinstance(answer, RecordAnswer) else answer for part in query.requested])
        return RecordAnswer({output.name: cells[output.place] for output in query.aggregates}, provenance)
    asked = [answer.part(part) if isinstance(answer, SeveralAnswer) else answer for part in query.requested]
    keys: KeysView[Label] = answer.keys()
    row_of = {key: query.row([part[key] for part in asked]) for key in keys}
    rows = query.arrange([(*_values(key, len(heads)), *row_of[key]) for key in keys])
    kept = [_key(row, len(heads)) for row in rows]
    columns = _columns(query, asked, row_of, provenance)
    named = {output.name: columns[output.place - len(heads)] for output in query.aggregates}
    return SeveralAnswer({name: column.arranged(kept, heads) for name, column in named.items()}, provenance)


def _columns(
    query: SQLQuery, asked: Sequence[TableAnswer], row_of: Mapping[Label, Sequence[Cell]], provenance: Provenance
) -> list[TableAnswer]:
    """What is in each place behind the keys: a part of the answer, or what is computed from several of them."""
    given = iter(asked)
    return [
        next(given)
        if isinstance(value, str)
        else ComputedColumn(query.heads, {key: row[number] for key, row in row_of.items()}, provenance)
        for number, value in enumerate(query.values)
    ]


def _values(key: Label, columns: int) -> tuple[Label, ...]:
    return (key,) if columns == 1 else tuple(key)


def _key(row: Row, columns: int) -> Label:
    return row[0] if columns == 1 else tuple(row[:columns])


class _Marked:
    """An answer of a handle in a rehearsal: it counts as what it is, and its repr says that it is made up."""

    made_up = True

    def __repr__(self) -> str:
        return f"{super().__repr__()} (made up)"


class SyntheticInt(_Marked, int):
    """A made-up whole number."""

    __str__ = int.__repr__


class SyntheticNumber(_Marked, Exact):
    """A made-up number."""

    __slots__ = ()


class SyntheticText(_Marked, str):
    """A made-up text, such as a chosen key."""

    __slots__ = ()
    __str__ = str.__str__


class SyntheticTuple(_Marked, tuple[Any, ...]):
    """Made-up numbers or keys."""

    __slots__ = ()


def marked(answer: Any) -> Any:
    """An answer, marked as made up; a truth value and None stay as they are.

    >>> marked(3), marked(3) + 1, marked(("CA", 2))
    (3 (made up), 4, ('CA', 2) (made up))
    """
    kind = _MARKED.get(type(answer))
    return answer if kind is None else kind(answer)


_MARKED: dict[type, type] = {int: SyntheticInt, Exact: SyntheticNumber, str: SyntheticText, tuple: SyntheticTuple}
