"""Events that distinguish two worlds, learned from samples.

Games are represented as columns of integers: views of the answers (a transcript as a number, an answer, a sum, a
difference, a likelihood ratio). An event says that one column is at least or at most a value, or one of some values.
The best event is learned: one part of the samples orders the values of each column by their ratio of counts, another
part chooses the best of all events. The event must then be tested on samples that were not used to learn it.

>>> zero, one = {"sum": np.array([0, 0, 0, 1] * 50)}, {"sum": np.array([0, 1, 1, 1] * 50)}
>>> print(learn((zero, one), (zero, one), Aim(delta=0.0, width=3.0, trials=1000)).event)
sum at most 0
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterpoint.verify.audits.views import NAMES, UNORDERED, Column, Pair, Views, seen
from counterpoint.verify.audits.weights import Weights

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
