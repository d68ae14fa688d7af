"""The result of an audit: one event, how often it happened in either world, and what that proves.

If p is a lower bound on its probability in one world and q an upper bound in the other, every (epsilon, delta) of the
mechanism satisfies p <= e^epsilon q + delta. So one pair of bounds gives a whole curve, at one confidence.

>>> from counterpoint import Laplace, SeededCoins
>>> from counterpoint.verify.auditing import audit
>>> found = audit(Laplace(1), samples=10_000, coins=SeededCoins(1))
>>> print(found)
Laplace: epsilon is at least 0.8575 at delta = 0, with confidence 0.999; PureDP(1) is claimed, and not refuted
  10000 games; sent: Ask(private=1 | 0); event: answer 1 at most 0
  of 2510 games it happened in 1853 in world 1, and in 679 in world 0
"""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.numbers import Number, float_down, precision, spell
from counterpoint.numbers.exact import at_least, probability
from counterpoint.privacy.claims import Claim
from counterpoint.privacy.loss import Loss
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
            f"{type(self.mechanism).__name__}: epsilon is at least {self.epsilon:.4f} at delta = {spell(self.delta)}, "
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
    return spell(confidence) if risk >= 1e-6 else f"1 - {risk:.0e}"
