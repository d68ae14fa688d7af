"""The evidence of each answer for one world or the other, learned from samples and added up over a game.

If no single answer distinguishes the worlds well, and there are too many transcripts to count, the sum of the evidence
still can: it is the log-likelihood ratio if the answers are independent, and a good order of transcripts otherwise.

>>> zero, one = {"answer 1": np.array([0] * 9 + [1])}, {"answer 1": np.array([1] * 9 + [0])}
>>> Weights.learned((zero, one)).column({"answer 1": np.array([0, 1, 7])}).tolist()
[-103, 103, 0]
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterpoint.verify.audits.views import Column, Pair, Views, seen

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
