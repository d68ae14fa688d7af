"""Events that tell two worlds apart, learned from samples.

Many games are seen as columns of integers: views of what was answered (a transcript as a number, an answer, a sum, a
difference, a likelihood ratio). An event says that one column is at least or at most a value, or one of some values.
Which event is best is learned: on one part of the samples the values of each column are put in the order of their
ratio of counts, on another part the best of all events is chosen. It must then be judged on samples it has not seen.

>>> zero, one = {"sum": np.array([0, 0, 0, 1] * 50)}, {"sum": np.array([0, 1, 1, 1] * 50)}
>>> print(learn((zero, one), (zero, one), Aim(delta=0.0, width=3.0, trials=1000)).event)
sum at most 0
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Column: TypeAlias = NDArray[np.int64]
Views: TypeAlias = dict[str, Column]
"""The columns of many games, one entry each for every game."""
Pair: TypeAlias = tuple[Views, Views]
"""The same of either world."""

Kind: TypeAlias = Literal["at least", "at most", "among"]
UNORDERED = "transcript"
"""The one column whose values are names, not numbers."""
_MOST_VALUES = 200_000
_SPELLED = 12
_DOUBT = 0.02
_NAMES = 2**48  # answers that are no numbers have names, which are mostly larger


@dataclass(frozen=True)
class Event:
    """A set of outcomes: `view` is at least or at most a value, or among some."""

    view: str
    kind: Kind
    values: Column

    def holds(self, views: Views) -> NDArray[np.bool_]:
        """For each game, whether it happened."""
        column = views[self.view]
        if self.kind == "at least":
            return np.asarray(column >= self.values[0])
        if self.kind == "at most":
            return np.asarray(column <= self.values[0])
        places = np.minimum(np.searchsorted(self.values, column), len(self.values) - 1)
        return np.asarray(self.values[places] == column)

    def __str__(self) -> str:
        if self.kind != "among":
            return f"{self.view} {self.kind} {_spelled(self.values[0])}"
        if self.view == UNORDERED or len(self.values) > _SPELLED:
            return f"{self.view} among {len(self.values)} learned ones"
        return f"{self.view} among {', '.join(dict.fromkeys(map(_spelled, self.values)))}"


def _spelled(value: np.int64) -> str:
    return str(value) if abs(int(value)) < _NAMES else "what is no number"


class Learned(NamedTuple):
    """An event, the world in which it is more likely, and how large an epsilon it seems to show."""

    event: Event
    bit: int
    score: float


class Aim(NamedTuple):
    """What an event is wanted for: to be judged in so many games of either world, for the largest epsilon at delta.

    `width` is how many standard deviations the bounds will then be away from what was counted.
    """

    delta: float
    width: float
    trials: int


def learn(ordering: Pair, choosing: Pair, aim: Aim) -> Learned:
    """The best event of all columns: its values ordered by one part of the samples, chosen by another."""
    judge = Judge(choosing, aim)
    found = [option for view in ordering[0] for bit in (0, 1) for option in _options(view, bit, ordering, judge)]
    return max(found, key=lambda option: option.score)


class Judge(NamedTuple):
    """Says of growing events which is best, by what their bounds will be if the counts are a little off."""

    games: Pair
    aim: Aim

    def best(self, view: str, bit: int, ranked: Column) -> tuple[int, float]:
        """How many of these values, from the first on, make the best event, less one; and how good it is."""
        low, high = (self._bound(self.games[world][view], ranked, side) for world, side in ((bit, -1), (1 - bit, 1)))
        low = low - self.aim.delta
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = np.where(low > 0, np.log(np.maximum(low, 1e-300) / high), -math.inf)
        best = int(np.argmax(scores))
        return best, float(scores[best])

    def _bound(self, column: Column, ranked: Column, side: int) -> NDArray[np.float64]:
        share, width, trials = _tallied(column, ranked) / len(column), self.aim.width, self.aim.trials
        spread = np.sqrt(share * (1 - share))
        by_chance = spread / math.sqrt(len(column)) + 1 / len(column)
        return np.asarray(share + side * (by_chance + width * spread / math.sqrt(trials) + width**2 / (2 * trials)))


def _options(view: str, bit: int, ordering: Pair, judge: Judge) -> Iterator[Learned]:
    values, (mine, other) = _counted(ordering[bit][view], ordering[1 - bit][view])
    kinds: list[tuple[Kind, Column]] = [("at most", values), ("at least", values[::-1])]
    for kind, ends in kinds if view != UNORDERED else ():
        best, score = judge.best(view, bit, ends)
        yield Learned(Event(view, kind, ends[best : best + 1]), bit, score)
    ranked = values[np.argsort((other + 0.5) / (mine + 0.5), kind="stable")]
    best, score = judge.best(view, bit, ranked)
    # the best of many sets flatters itself: one is taken only where it is clearly better than an end of the line
    yield Learned(Event(view, "among", np.sort(ranked[: best + 1])), bit, score - _DOUBT * abs(score))


def _counted(mine: Column, other: Column) -> tuple[Column, NDArray[np.int64]]:
    """The values that occur, the most frequent of them if they are very many, and how often in either."""
    values, places = np.unique(np.concatenate([mine, other]), return_inverse=True)
    counts = np.stack([np.bincount(part, minlength=len(values)) for part in (places[: len(mine)], places[len(mine) :])])
    if len(values) > _MOST_VALUES:
        kept = np.sort(np.argsort(-counts.sum(axis=0), kind="stable")[:_MOST_VALUES])
        values, counts = values[kept], counts[:, kept]
    return values, counts


def _tallied(column: Column, ranked: Column) -> NDArray[np.int64]:
    """How many entries are among the first one, two, three, ... of these values."""
    order = np.argsort(ranked, kind="stable")
    places = np.minimum(np.searchsorted(ranked, column, sorter=order), len(ranked) - 1)
    there = order[places]
    return np.cumsum(np.bincount(there[ranked[there] == column], minlength=len(ranked)))
