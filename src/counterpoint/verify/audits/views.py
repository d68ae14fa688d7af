"""Games as columns of integers: the views in which the search looks for events (events.py).

The views of a transcript are a number that identifies it, the sum and the count of its numbers, and for each answer its
number, the coordinates of a vector, and the difference from the answer before.

>>> columns([(3, "high"), (5, 4), (5, 4)], rounds=2)["answer 1"]
array([3, 5, 5])
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterpoint.encoding import encode
from counterpoint.mechanisms.mechanism import Answer

Column: TypeAlias = NDArray[np.int64]
Views: TypeAlias = dict[str, Column]
"""The columns of many games, with one entry for every game."""
Pair: TypeAlias = tuple[Views, Views]
"""The views of either world."""
UNORDERED = "transcript"
"""The one column whose values are all names, not numbers."""
NAMES = -(2**62)
"""A value up to this one is a name: it stands for an answer that is not a number."""
_WIDEST = 2**61
_PLACES = 8


def columns(games: Sequence[tuple[Answer, ...]], rounds: int) -> Views:
    """The views of transcripts of at most `rounds` answers; each distinct transcript is converted once."""
    numbers: dict[bytes, int] = {}
    distinct: list[tuple[Answer, ...]] = []
    which = np.empty(len(games), dtype=np.intp)
    for place, game in enumerate(games):
        name = encode(game)
        if name not in numbers:
            numbers[name] = len(distinct)
            distinct.append(game)
        which[place] = numbers[name]
    return {name: column[which] for name, column in _seen(distinct, rounds).items()}


def _seen(games: list[tuple[Answer, ...]], rounds: int) -> Views:
    views = {UNORDERED: _column(map(_name, games))}
    views["sum"] = _column(clipped(sum(_integers(game))) for game in games)
    views["numbers"] = _column(sum(1 for _ in _integers(game)) for game in games)
    for at in range(rounds):
        answers = [_at(game, at) for game in games]
        views[f"answer {at + 1}"] = _column(map(_number, answers))
        views |= _coordinates(f"answer {at + 1}", answers)
        if at:
            steps = (_difference(_at(game, at - 1), _at(game, at)) for game in games)
            views[f"answer {at + 1} - answer {at}"] = _column(steps)
    return views


def _coordinates(name: str, answers: list[Answer]) -> Views:
    """The coordinates of vectors, each as a column. A column without any number is left out (see `seen`)."""
    places = range(min(_PLACES, max((len(a) for a in answers if isinstance(a, tuple)), default=0)))
    views = {f"{name}, place {place + 1}": _column(_in_place(a, place) for a in answers) for place in places}
    return {view: column for view, column in views.items() if (column > NAMES).any()}


def _in_place(answer: Answer, place: int) -> int:
    coordinate = answer[place] if isinstance(answer, tuple) and place < len(answer) else None
    return clipped(int(coordinate)) if isinstance(coordinate, int) else NAMES


def _column(values: Any) -> Column:
    return np.array(list(values), dtype=np.int64)


def _name(answers: Any) -> int:
    """A name for an answer that is not a number: an integer below all numbers."""
    return NAMES - (int.from_bytes(hashlib.sha256(encode(answers)).digest()[:8], "big") >> 2)


def _integers(answer: Answer) -> Iterator[int]:
    """All integers in an answer, also inside tuples, clipped to the range of a column."""
    if isinstance(answer, int):
        yield clipped(int(answer))
    elif isinstance(answer, tuple):
        for item in answer:
            yield from _integers(item)


def _at(game: tuple[Answer, ...], at: int) -> Answer:
    return game[at] if at < len(game) else None


def _difference(before: Answer, after: Answer) -> int:
    return _number(after - before if type(before) is int and type(after) is int else (before, after))


def _number(answer: Answer) -> int:
    """One answer as a number: an integer itself, a truth value as 0 or 1, anything else as its name."""
    return clipped(int(answer)) if isinstance(answer, int) else _name(answer)


def clipped(value: int) -> int:
    """An integer clipped to the range of a column.

    >>> clipped(7), clipped(10**30) == 2**61
    (7, True)
    """
    return max(-_WIDEST, min(value, _WIDEST))


def seen(views: Views, name: str) -> Column:
    """A column; if these games do not have it, it has no number for any of them."""
    return views[name] if name in views else np.full(len(next(iter(views.values()))), NAMES)


def joined(parts: Sequence[Views]) -> Views:
    """The games of several parts together, with all columns that any part has.

    >>> joined([{"sum": np.array([1])}, {"sum": np.array([2]), "answer 2": np.array([3])}])["answer 2"][1]
    np.int64(3)
    """
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: np.concatenate([seen(part, name) for part in parts]) for name in names}
