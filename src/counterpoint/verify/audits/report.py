"""The result of an audit: one event, how often it happened in either world, and what that proves.

If p is a lower bound on its probability in one world and q an upper bound in the other, every (epsilon, delta) of the
mechanism satisfies p <= e^epsilon q + delta. So one pair of bounds gives a whole curve, at one confidence.

>>> from counterpoint import Laplace
>>> from counterpoint.coins import SeededCoins
>>> from counterpoint.verify.audits.audit import audit
>>> found = audit(Laplace(1), samples=10_000, coins=SeededCoins(1))
>>> print(found)
Laplace: epsilon is at least 0.8575 at delta = 0, with confidence 0.999; PureDP(1) is claimed, and not refuted
  10000 games; sent: Ask(private=1 | 0); event: answer 1 at most 0
  of 2510 games it happened in 1853 in world 1, and in 679 in world 0

The bounds on a probability are those of Clopper and Pearson 1934, rounded in the safe direction. With k hits in n
trials, `least_chance` is a p at which k hits or more have a probability of at most `risk`: whatever the true
probability is, it is below this bound with a probability of at most `risk`. The binomial tail is its first term,
enclosed by Stirling's series (whose remainder has a known sign and size), times a sum of falling ratios, whose rest is
bounded by a geometric series: so the bound is never too large, and within a part in 10^7 of the exact one.

>>> least_chance(10, 10, Fraction(1, 1024)), at_most(0, 10, Fraction(1, 1024))   # p^10 = 1/1024
(0.49999999..., 0.50000000...)
>>> least_chance(0, 10, Fraction(1, 1000)), at_most(10, 10, Fraction(1, 1000))
(0.0, 1.0)
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from counterpoint.errors import InvalidParameter
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.numbers import (
    Interval,
    Number,
    Precision,
    exact,
    float_down,
    format_number,
    normal_density,
    precision,
)
from counterpoint.numbers.exact import at_least, probability, whole
from counterpoint.privacy.claims import Claim
from counterpoint.verify.audits.events import Event
from counterpoint.verify.verdict import Verdict, allowed, compared, loss_of

_POINTS = 24


class EventCount(NamedTuple):
    """How often an event happened in a number of games, and a lower or upper bound on its probability."""

    hits: int
    trials: int
    bound: float


@dataclass(frozen=True)
class Audit:
    """A lower bound on the loss: `likely` counts the event in world `bit`, `unlikely` in the other."""

    mechanism: Mechanism
    player: str
    event: Event
    bit: int
    likely: EventCount
    unlikely: EventCount
    confidence: Fraction
    delta: Fraction
    games: int
    seconds: float

    @property
    def epsilon(self) -> float:
        """A lower bound on epsilon at the audited delta."""
        return self.epsilon_at(self.delta)

    def epsilon_at(self, delta: Number) -> float:
        """A lower bound on epsilon at a delta: log((p - delta) / q), rounded down."""
        allowed = probability(delta, "delta")
        p, q = Fraction(self.likely.bound) - allowed, Fraction(self.unlikely.bound)
        if p <= q:
            return 0.0
        return max(0.0, float_down(precision(30)(p / q).log().lower))

    def delta_at(self, epsilon: Number) -> float:
        """A lower bound on delta at an epsilon: p - e^epsilon q, rounded down."""
        exponent = at_least(epsilon, 0, "epsilon")
        if exponent > 1000:
            return 0.0
        lower = Fraction(self.likely.bound) - precision(30)(exponent).exp() * Fraction(self.unlikely.bound)
        return max(0.0, float_down(lower.lower))

    def judge(self, claim: Claim | Loss | None = None) -> Verdict:
        """The verdict on a claim or a loss (without one: on the mechanism's own claim), at this confidence.

        REFUTED: at one of a few epsilons the lower bound on delta exceeds the one that the claim allows. Otherwise
        UNDECIDED: an audit is a lower bound, and never shows that a claim holds.
        """
        loss = loss_of(self.mechanism.claim if claim is None else claim)
        reached = any(Fraction(self.delta_at(e)) > allowed(loss, e) for e in self._compared(loss))
        return Verdict.REFUTED if reached else Verdict.UNDECIDED

    def _compared(self, loss: Loss) -> list[float]:
        top = self.epsilon_at(0)
        return sorted({*compared(loss, _POINTS, self.delta), *(top * n / _POINTS for n in range(1, _POINTS + 1))})

    def __str__(self) -> str:
        claimed = self.mechanism.claim.loss
        verdict = "REFUTED" if self.judge(claimed) is Verdict.REFUTED else "not refuted"
        return (
            f"{type(self.mechanism).__name__}: epsilon is at least {self.epsilon:.4f} at delta = "
            f"{format_number(self.delta)}, "
            f"with confidence {_sure(self.confidence)}; {claimed!r} is claimed, and {verdict}\n"
            f"  {self.games} games; sent: {self.player}; event: {self.event}\n"
            f"  of {self.likely.trials} games it happened in {self.likely.hits} in world {self.bit}, "
            f"and in {self.unlikely.hits} in world {1 - self.bit}"
        )

    def plot(self, path: str | Path | None = None) -> Any:
        """Plot delta by epsilon, the claim and the lower bound; saved under `path` if given. Needs matplotlib."""
        from matplotlib.figure import Figure  # noqa: PLC0415 - only plots need it

        claimed = self.mechanism.claim.loss
        top = max([1.0, *(1.2 * epsilon for epsilon in self._compared(claimed)[-1:])])
        epsilons = [top * n / 200 for n in range(201)]
        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.add_subplot(xlabel="epsilon", ylabel="delta", title=type(self.mechanism).__name__)
        axes.plot(epsilons, [min(1.0, claimed.delta_at(e)) for e in epsilons], label=f"claimed: {claimed!r}")
        axes.plot(epsilons, [self.delta_at(e) for e in epsilons], label=f"at least, with {_sure(self.confidence)}")
        axes.legend()
        if path is not None:
            figure.savefig(path)
        return figure


def _sure(confidence: Fraction) -> str:
    risk = float(1 - confidence)
    return format_number(confidence) if risk >= 1e-6 else f"1 - {risk:.0e}"


_DIGITS = 40
_HALVINGS = 40
_MOST_TERMS = 4_000_000
_ROUNDING = 1 + 1e-8  # for a sum of _MOST_TERMS products of as many ratios, each within 4 units of rounding


def least_chance(hits: int, trials: int, risk: Fraction) -> float:
    """A lower bound on the probability of a hit, which is wrong with a probability of at most `risk`."""
    n, alpha = whole(trials, 1, "trials"), _risk(risk)
    k = whole(hits, 0, "hits")
    if k > n:
        raise InvalidParameter(f"there cannot be {k} hits in {n} trials")
    if k == 0:
        return 0.0
    low, high = _bracket(k, n, alpha)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if tail(k, n, middle) <= alpha:
            low = middle
        else:
            high = middle
    return low


def _bracket(hits: int, trials: int, alpha: Fraction) -> tuple[float, float]:
    """A p at which this many hits are rarer than alpha, and a larger one at which they may not be."""
    high, step = hits / trials, math.sqrt(hits) / trials
    while (low := high - step) > 0:
        if tail(hits, trials, low) <= alpha:
            return low, high
        high, step = low, 2 * step
    return 0.0, high


def at_most(hits: int, trials: int, risk: Fraction) -> float:
    """An upper bound on the probability of a hit, which is wrong with a probability of at most `risk`."""
    return min(1.0, math.nextafter(1 - least_chance(whole(trials, 1, "trials") - hits, trials, risk), 2.0))


def tail(hits: int, trials: int, p: float) -> Fraction:
    """An upper bound on the probability of at least `hits` hits, each of probability p < hits/trials."""
    first = Fraction(_log_term(hits, trials, Fraction(p), precision(_DIGITS)).exp().upper)
    odds = p / (1 - p)
    terms = min(trials - hits, int(12 * math.sqrt(trials * p * (1 - p))) + 200, _MOST_TERMS)
    at = np.arange(hits, hits + terms, dtype=np.float64)
    falling = np.cumprod((trials - at) / (at + 1) * odds)
    total = 1.0 + float(falling.sum())
    if terms < trials - hits:
        ratio = (trials - hits - terms) / (hits + terms + 1) * odds
        total += float(falling[-1]) * ratio / (1 - ratio)
    return first * Fraction(total * _ROUNDING)


def _log_term(hits: int, trials: int, p: Fraction, accuracy: Precision) -> Interval:
    """The logarithm of the probability of exactly `hits` hits."""
    misses = trials - hits
    ways = log_factorial(trials) - log_factorial(hits) - log_factorial(misses)
    missed = misses * accuracy(1 - p).log() if misses else accuracy(0)
    return ways + hits * accuracy(p).log() + missed


@lru_cache(maxsize=2**12)
def log_factorial(n: int) -> Interval:
    """Log n!, by Stirling's series: cut after a positive term it is too large, after a negative one too small.

    >>> log_factorial(100).agrees_to(13)
    True
    """
    p = precision(_DIGITS)
    if n < 64:
        return p(math.factorial(n)).log()
    root = -normal_density(p(0)).log()
    series = p(n + Fraction(1, 2)) * p(n).log() - n + root + p(Fraction(1, 12 * n) - Fraction(1, 360 * n**3))
    rest = p(Fraction(1, 1260 * n**5))
    return p.between(series.lower, (series + rest).upper)


def _risk(risk: object) -> Fraction:
    alpha = exact(risk, "the risk")
    if not 0 < alpha < 1:
        raise InvalidParameter("the risk must be above 0 and below 1, such as 0.001")
    return alpha
