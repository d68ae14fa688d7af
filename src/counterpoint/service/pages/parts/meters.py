"""What is left of a budget, as a bar and in figures: spent, granted or reserved and not spent yet, left.

Where a rule is not a sum, a part of the bar is the increase that a launch caused when it was admitted, as in a score.
"""

from collections import defaultdict
from dataclasses import dataclass

from counterpoint.pictures.score import Score
from counterpoint.service.pages.parts.words import figure
from counterpoint.session.session import Session
from counterpoint.session.showing.scoring import gauge_of


@dataclass(frozen=True, slots=True)
class Meter:
    """A loss under its ceiling; without a ceiling it is only counted."""

    symbol: str
    ceiling: float | None
    lost: float
    unspent: float
    words: str

    @property
    def left(self) -> float:
        """What is not lost."""
        return 0.0 if self.ceiling is None else max(0.0, self.ceiling - self.lost)

    @property
    def spent(self) -> float:
        """What is lost and no longer a reserve."""
        return max(0.0, self.lost - self.unspent)

    @property
    def is_short(self) -> bool:
        """Whether less than a twentieth is left."""
        return self.ceiling is not None and self.left < self.ceiling / 20

    def share(self, amount: float) -> str:
        """A part of the bar, in percent."""
        return f"{100 * min(1.0, amount / self.ceiling):.2f}%" if self.ceiling else "0%"

    @property
    def sentence(self) -> str:
        """The bar in words."""
        if self.ceiling is None:
            return f"{self.symbol} {figure(self.lost)} lost so far"
        parts = [f"{figure(self.lost)} of {figure(self.ceiling)} lost"]
        if self.unspent:
            parts.append(f"{figure(self.unspent)} of that granted or reserved and not spent")
        return f"{', '.join(parts)}, {figure(self.left)} left"


def meter_of(session: Session, score: Score) -> Meter:
    """The meter of a session, from its score."""
    budget = score.budget
    unspent = sum(amount for _, amount in reserves(session, score))
    return Meter(budget.symbol, budget.ceiling, score.lost, unspent, budget.words.removeprefix("budget "))


def reserves(session: Session, score: Score) -> list[tuple[str, float]]:
    """What was granted, delegated or set aside for parts and is not spent yet, by the number of its lane."""
    first: dict[str, float] = {}
    charged: dict[str, float] = defaultdict(float)
    for step in score.steps:
        if step.reserve:
            first.setdefault(step.number, step.after - step.before)
            charged[step.number] += step.after - step.before
    used = {str(child._path[-1] + 1): _used(child) for child in session.given if isinstance(child, Session)}  # type: ignore[operator]
    found = [(number, charged[number] - first[number] * used.get(number, 0.0)) for number in charged]
    return [(number, amount) for number, amount in found if amount > 1e-12]


def _used(session: Session) -> float:
    """Which share of its own budget a session has used."""
    gauge = gauge_of(session)
    ceiling = gauge.budget.ceiling
    return min(1.0, gauge(session.loss) / ceiling) if ceiling else 0.0
