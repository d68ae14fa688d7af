"""Answers that know themselves: what was released, with its error, its price and its origin.

A scalar answer is an int or a float (`scalars`), a choice the chosen candidate, and selected keys a tuple (`choices`).
A keyed answer is a small table of such numbers (`tables`).

>>> import counterpoint as cp
>>> visits = cp.Stream(fields={"page": cp.category(["home", "shop"])})
>>> pages = cp.Session(visits, within=cp.PureDP(1)).ask(cp.histogram("page"), epsilon=0.1)
>>> list(pages.keys()), pages["home"].error(0.95), pages.cost
(['home', 'shop'], 60, PureDP(0.1))
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from counterpoint.session.answering.choices import KeysAnswer, TupleAnswer, choice
from counterpoint.session.answering.origin import Origin
from counterpoint.session.answering.scalars import NumberAnswer, scalar
from counterpoint.session.answering.several import RecordAnswer, SeveralAnswer
from counterpoint.session.answering.tables import Cell, Label, TableAnswer
from counterpoint.session.rehearsing import marked
from counterpoint.sources.asking.about import About
from counterpoint.sources.asking.grouping import cell_by_cell
from counterpoint.sources.asking.request import Request
from counterpoint.sources.source import Prepared


def labelled(origin: Origin) -> object:
    """The answer in units, with what it knows; what has no stated error stays as it is."""
    shares = origin.prepared.parts(origin.released)
    parts = {name: _answer(origin.of(share, part)) for name, (part, share) in shares.items()}
    if parts:
        return RecordAnswer(parts, origin) if origin.prepared.names is None else SeveralAnswer(parts, origin)
    return _answer(origin)


def _answer(origin: Origin) -> Any:
    prepared, released = origin.prepared, origin.released
    answer = prepared.in_units(released)
    if prepared.wants == "keys":
        assert isinstance(answer, tuple)
        return KeysAnswer(answer, origin)
    if not prepared.states_error:
        return _without_error(answer, origin)
    if not isinstance(answer, tuple):
        return _cell(answer, origin)
    whole = released if isinstance(released, tuple) else (released,)  # a choice for one key is no tuple
    heads, labels = _names(prepared, len(answer))
    raws = whole if prepared.together == 1 else tuple(cell_by_cell(whole, prepared.together))
    cells = {label: _cell(value, origin.of(raw)) for label, value, raw in zip(labels, answer, raws, strict=True)}
    return TableAnswer(heads, cells, origin)


def suppressed(answer: object, ratio: Fraction) -> object:
    """The answer without what is less than `ratio` times its error; None where noise left no number at all."""
    if answer is None:
        return None
    assert isinstance(answer, NumberAnswer | TableAnswer | RecordAnswer | SeveralAnswer)
    return answer.suppress(ratio)


def _without_error(answer: object, origin: Origin) -> object:
    if isinstance(answer, tuple) and origin.prepared.wants == "choice":
        return TupleAnswer(answer, origin)
    return marked(answer) if origin.made_up else answer


def _cell(value: object, origin: Origin) -> Cell:
    return choice(value, origin) if origin.prepared.wants == "choice" else scalar(value, origin)


def _names(prepared: Prepared, cells: int) -> tuple[tuple[str, ...], Sequence[Label]]:
    """The heads of the keys, and the keys; cells that have no names are numbered."""
    request = prepared.request.request if isinstance(prepared.request, About) else prepared.request
    heads, labels = (request.keyed_by, request.labels) if isinstance(request, Request) else ((), None)
    names = prepared.names if labels is None else labels
    return heads or ("number",), range(cells) if names is None else names
