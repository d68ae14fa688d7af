"""Events that distinguish two worlds, learned from samples.

Games are represented as columns of integers: views of the answers (a transcript as a number, an answer, a sum, a
difference, a likelihood ratio). An event says that one column is at least or at most a value, or one of some values.
The best event is learned: one part of the samples orders the values of each column by their ratio of counts, another
part chooses the best of all events. The event must then be tested on samples that were not used to learn it.

>>> zero, one = {"sum": np.array([0, 0, 0, 1] * 50)}, {"sum": np.array([0, 1, 1, 1] * 50)}
>>> print(learn((zero, one), (zero, one), Aim(delta=0.0, width=3.0, trials=1000)).event)
sum at most 0

`Weights` are the evidence of each answer for one world or the other, learned from samples and added up over a game. If
no single answer distinguishes the worlds well, and there are too many transcripts to count, the sum of the evidence
still can: it is the log-likelihood ratio if the answers are independent, and a good order of transcripts otherwise.

>>> zero, one = {"answer 1": np.array([0] * 9 + [1])}, {"answer 1": np.array([1] * 9 + [0])}
>>> Weights.learned((zero, one)).column({"answer 1": np.array([0, 1, 7])}).tolist()
[-103, 103, 0]

The views of a transcript are a number that identifies it, the sum and the count of its numbers, and for each answer its
number, the coordinates of a vector, and the difference from the answer before.

>>> columns([(3, "high"), (5, 4), (5, 4)], rounds=2)["answer 1"]
array([3, 5, 5])
"""

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

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


_UNITS = 64
_FEW_GAMES = 1.0


@dataclass(frozen=True)
class Weighed:
    """One column of answers: its values, in order, and the weight of each."""

    view: str
    values: Column
    weights: Column


@dataclass(frozen=True)
class Weights:
    """The weights of the answers of a game: above 0 for evidence of world 1."""

    columns: tuple[Weighed, ...]

    @classmethod
    def learned(cls, games: Pair) -> "Weights":
        """The log-ratio of each answer's frequencies in the two worlds, smoothed for rare answers."""
        return cls(tuple(_weighed(view, games) for view in _answers(games)))

    def column(self, views: Views) -> Column:
        """The weight of each game, in 64ths; an answer that was never seen before has weight 0."""
        total = np.zeros(len(next(iter(views.values()))), dtype=np.int64)
        for one in self.columns:
            column = seen(views, one.view)
            places = np.minimum(np.searchsorted(one.values, column), len(one.values) - 1)
            total += np.where(one.values[places] == column, one.weights[places], 0)
        return total


def _answers(games: Pair) -> Iterable[str]:
    names = dict.fromkeys(name for views in games for name in views)
    return [name for name in names if name.startswith("answer ") and " - " not in name]


def _weighed(view: str, games: Pair) -> Weighed:
    columns = [seen(views, view) for views in games]
    values, places = np.unique(np.concatenate(columns), return_inverse=True)
    zero, one = np.split(places, [len(columns[0])])
    shares = [_shares(part, len(values)) for part in (zero, one)]
    return Weighed(view, values, np.rint(_UNITS * np.log(shares[1] / shares[0])).astype(np.int64))


def _shares(places: NDArray[np.intp], values: int) -> NDArray[np.float64]:
    counts = np.bincount(places, minlength=values).astype(np.float64)
    return (counts + _FEW_GAMES) / (len(places) + _FEW_GAMES * values)


Indices: TypeAlias = NDArray[np.intp]
WEIGHT = "weight of the answers"
"""The learned column: the sum of the weights of all answers."""
Kind: TypeAlias = Literal["at least", "at most", "among"]
_MOST_VALUES = 200_000
_SPELLED = 12
_DOUBT = 0.05
_NOTHING = -10.0
_RAREST = 1e-300


@dataclass(frozen=True)
class Event:
    """A set of outcomes: `view` is at least or at most a value, or among some values."""

    view: str
    kind: Kind
    values: Column
    or_no_number: bool = False
    weights: Weights | None = None

    def holds(self, views: Views) -> NDArray[np.bool_]:
        """For each game, whether the event happened."""
        column = seen(views, self.view) if self.weights is None else self.weights.column(views)
        if self.kind == "at least":
            return np.asarray(column >= self.values[0])
        if self.kind == "at most":
            return np.asarray(column <= self.values[0])
        places = np.minimum(np.searchsorted(self.values, column), len(self.values) - 1)
        return np.asarray(self.values[places] == column)

    def __str__(self) -> str:
        if self.kind != "among":
            return (
                f"{self.view} {self.kind} {_spelled(self.values[0])}{' or not a number' if self.or_no_number else ''}"
            )
        if self.view == UNORDERED or len(self.values) > _SPELLED:
            return f"{self.view} among {len(self.values)} learned ones"
        return f"{self.view} among {', '.join(dict.fromkeys(map(_spelled, self.values)))}"


def _spelled(value: np.int64) -> str:
    return str(value) if value > NAMES else "not a number"


class Learned(NamedTuple):
    """An event, the world in which it is more likely, and how large an epsilon it seems to show."""

    event: Event
    bit: int
    score: float


class Aim(NamedTuple):
    """The goal of the search: the largest epsilon at delta, tested in `trials` games of either world.

    `width` is how many standard deviations the bounds will then be from the counts.
    """

    delta: float
    width: float
    trials: int


def learn(ordering: Pair, choosing: Pair, aim: Aim) -> Learned:
    """The best event of all columns: one part of the samples orders its values, another chooses it."""
    names = dict.fromkeys(name for views in ordering for name in views)
    counted = [ColumnCounts.of(name, *(seen(views, name) for views in (*ordering, *choosing))) for name in names]
    always = Learned(Event(counted[0].view, "at least", counted[0].values[:1]), 0, _NOTHING)
    found = [always, *(option for column in counted for option in _options(column, aim))]
    weights = Weights.learned(ordering)
    if len(weights.columns) > 1:
        weighed = ColumnCounts.of(WEIGHT, *(weights.column(views) for views in (*ordering, *choosing)))
        found += [o._replace(event=replace(o.event, weights=weights)) for o in _options(weighed, aim)]
    return max(found, key=lambda option: option.score)


class ColumnCounts(NamedTuple):
    """How often each value of a column occurs in either world, in the samples that order and in those that choose.

    `chosen` has each value's share of the games. If there are very many values, the most frequent are kept.
    """

    view: str
    values: Column
    ordered: NDArray[np.int64]
    chosen: NDArray[np.float64]
    games: tuple[int, int]

    @classmethod
    def of(cls, view: str, *parts: Column) -> "ColumnCounts":
        """Count one column in its four parts: both worlds of the ordering samples, then of the choosing samples."""
        values, places = np.unique(np.concatenate(parts), return_inverse=True)
        ends = np.cumsum([len(part) for part in parts])[:-1]
        counts = np.stack([np.bincount(part, minlength=len(values)) for part in np.split(places, ends)])
        if len(values) > _MOST_VALUES:
            kept = np.sort(np.argsort(-counts[:2].sum(axis=0), kind="stable")[:_MOST_VALUES])
            values, counts = values[kept], counts[:, kept]
        games = len(parts[2]), len(parts[3])
        return cls(view, values, counts[:2], counts[2:] / np.array(games)[:, None], games)

    def best(self, bit: int, order: Indices, aim: Aim, fewest: int = 0) -> tuple[int, float]:
        """The last value (at least the one at `fewest`) of the best event that takes the first values in this order,
        and its score.

        The score uses pessimistic bounds, as if the counts were a little off. An event that would show no positive
        epsilon has a lower score than any that would, and a higher one the nearer it comes.
        """
        low = self._bound(bit, order, -1, aim) - aim.delta
        high = self._bound(1 - bit, order, 1, aim)
        shown = np.log(np.maximum(low, _RAREST) / high)
        scores = np.where(low > 0, np.maximum(shown, _NOTHING), _NOTHING + low - high)
        best = fewest + int(np.argmax(scores[fewest:]))
        return best, float(scores[best])

    def _bound(self, world: int, order: Indices, side: int, aim: Aim) -> NDArray[np.float64]:
        games, share = self.games[world], np.cumsum(self.chosen[world][order])
        spread = np.sqrt(np.maximum(share * (1 - share), 0.0))
        by_chance = spread / math.sqrt(games) + 1 / games
        later = aim.width * spread / math.sqrt(aim.trials) + aim.width**2 / (2 * aim.trials)
        return np.asarray(share + side * (by_chance + later))


def _options(counted: ColumnCounts, aim: Aim) -> Iterator[Learned]:
    places = np.arange(len(counted.values))
    if len(places) == 1:
        return  # a constant column distinguishes nothing
    names = int(np.searchsorted(counted.values, NAMES, side="right"))
    ends: list[tuple[Kind, Indices, int]] = [("at most", places, names), ("at least", places[names:][::-1], 0)]
    for bit in (0, 1):
        for kind, order, fewest in ends if names < len(places) else ():
            best, score = counted.best(bit, order, aim, fewest)
            at = counted.values[order[best : best + 1]]
            yield Learned(Event(counted.view, kind, at, kind == "at most" and names > 0), bit, score)
        mine, other = counted.ordered[bit], counted.ordered[1 - bit]
        order = np.argsort((other + 0.5) / (mine + 0.5), kind="stable")
        best, score = counted.best(bit, order, aim)
        # the best of many sets is overestimated, so a set must be clearly better than a threshold to be chosen
        discounted = score - _DOUBT * abs(score)
        yield Learned(Event(counted.view, "among", np.sort(counted.values[order[: best + 1]])), bit, discounted)
