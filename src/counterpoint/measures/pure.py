"""Pure differential privacy: no outcome is more than e^epsilon times likelier than under a neighbour.

Randomized response with truth probability e^eps/(1+e^eps) is the worst of all eps-DP mechanisms (Kairouz et al. 2015;
Lyu 2022, Thm 3 for interactive ones): every other is a postprocessing of it. So whatever it has in
another measure is the tight conversion to that measure.

>>> from counterpoint import PureDP
>>> PureDP(1).as_zcdp(), PureDP(1).delta_at(0.5)
(zCDP(0.5), 0.28764913664496794)
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self

from counterpoint.encoding import Value
from counterpoint.measures.divergences import delta_below, pure_near
from counterpoint.measures.loss import OPTIMAL, Loss
from counterpoint.numbers import Interval, Precision, certify, format_number, precision
from counterpoint.numbers.exact import LARGEST, whole
from counterpoint.numbers.parameters import NonNegative
from counterpoint.numbers.rounding import DIGITS, largest_short, rounded_up

_NOTHING = Fraction(1, 10**60)
"""What is left of a Renyi sum that leaves room for no launch worth the name."""

_SURELY_LESS = Fraction(10**6 - 1, 10**6)
"""An order whose epsilon is near less than this share of another's has the smaller one."""


class PureDP(Loss, Value, frozen=True):
    """epsilon-differential privacy.

    >>> PureDP(0.1).epsilon
    0.1
    """

    epsilon: NonNegative

    def __repr__(self) -> str:
        return f"PureDP({format_number(self.epsilon)})"

    def _epsilon_bounds(self, delta: Fraction) -> Interval:
        """Where the hockey stick of randomized response falls to delta."""
        return certify(lambda p: _epsilon_at(self.epsilon, delta, p), DIGITS)

    def _delta_bounds(self, epsilon: Fraction) -> Interval:
        """The hockey stick of randomized response."""
        if epsilon >= self.epsilon:
            return precision(DIGITS)(0)
        return certify(lambda p: delta_below(self.epsilon, Fraction(0), epsilon, p), DIGITS)

    def group(self, size: int) -> "PureDP":
        """A unit of m places: m epsilon.

        >>> PureDP(0.1).group(3)
        PureDP(0.3)
        """
        return PureDP(whole(size, 0, "size") * self.epsilon)

    @property
    def amounts(self) -> tuple[Fraction, ...]:
        """Epsilon."""
        return (self.epsilon,)

    def left_after(self, total: Loss) -> "PureDP | None":
        """The rest of epsilon."""
        return PureDP(max(Fraction(0), self.epsilon - total.epsilon)) if isinstance(total, PureDP) else None

    theorem_if_fixed: ClassVar[str] = OPTIMAL

    @classmethod
    def compose_fixed(cls, counted: Mapping[Self, int]) -> tuple["PureDP", str]:
        """The sum of epsilons; `compose.optimal` has a whole curve."""
        return PureDP(sum((copies * loss.epsilon for loss, copies in counted.items()), Fraction(0))), "sum"

    @property
    def example(self) -> str:
        """Laplace noise."""
        return f"Laplace(epsilon={format_number(self.epsilon)})"

    def _follows_from(self, loss: Loss) -> bool:
        return loss._covers(self.epsilon, Fraction(0))

    def _least_epsilon(self, delta: Fraction) -> Fraction:
        return min(self.epsilon, rounded_up(self._epsilon_bounds(delta).upper))


class Unbounded(Loss, Value, frozen=True):
    """No finite amount: every loss implies it, and it implies only itself (and what promises nothing either).

    >>> from counterpoint import PureDP
    >>> PureDP(1).implies(Unbounded()), Unbounded().implies(PureDP(1))
    (True, False)
    """

    def _epsilon_bounds(self, delta: Fraction) -> Interval | None:
        """None, unless delta is 1, which promises nothing either."""
        return precision(20)(0) if delta == 1 else None

    def _delta_bounds(self, epsilon: Fraction) -> Interval:
        """1."""
        return precision(20)(1)

    def group(self, size: int) -> Loss:
        """No worse than it was; where no place changes, nothing is lost."""
        return self if whole(size, 0, "size") else PureDP(0)

    def can_keep(self, threshold: Loss) -> bool:
        """It is beyond every threshold, in every measure."""
        return True

    def _follows_from(self, loss: Loss) -> bool:
        return True


@lru_cache(maxsize=65536)
def renyi_of(epsilon: Fraction, alpha: Fraction) -> Fraction:
    """tau_alpha(epsilon), the Renyi loss of randomized response, rounded up; cached, since the same losses recur.

    >>> round(float(renyi_of(Fraction(1, 100), Fraction(16))), 9)
    0.000796814
    """
    return PureDP(epsilon).as_renyi(alpha).epsilon


@lru_cache(maxsize=4096)
def pure_below(alpha: Fraction, most: Fraction) -> Fraction:
    """The largest epsilon of 12 digits whose Renyi loss tau_alpha(epsilon) is at most this; 0 if this is not above 0.

    >>> epsilon = pure_below(Fraction(20), Fraction(1, 10))
    >>> renyi_of(epsilon, Fraction(20)) <= Fraction(1, 10) < renyi_of(epsilon + Fraction(1, 10**12), Fraction(20))
    True
    """
    if most <= _NOTHING:
        return Fraction(0)
    return largest_short(
        lambda epsilon: epsilon <= LARGEST and renyi_of(epsilon, alpha) <= most, pure_near(most, alpha)
    )


def largest_pure_below(rooms: Iterable[tuple[Fraction, Fraction]]) -> Fraction:
    """The largest `pure_below` of several orders, each with what its sum may still grow by; 0 for none.

    Only those are computed that an approximation puts first; what it misjudges could only make the answer smaller.

    >>> rooms = [(Fraction(20), Fraction(1, 10)), (Fraction(5), Fraction(1, 50))]
    >>> largest_pure_below(rooms) == max(pure_below(*room) for room in rooms)
    True
    """
    near = [(pure_near(most, alpha), alpha, most) for alpha, most in rooms if most > _NOTHING]
    first = max((guess for guess, _, _ in near), default=Fraction(0)) * _SURELY_LESS
    return max((pure_below(alpha, most) for guess, alpha, most in near if guess >= first), default=Fraction(0))


def _epsilon_at(truth: Fraction, delta: Fraction, p: Precision) -> Interval:
    """The inverse of `delta_below`: truth + log(1 - delta (1 + e^-truth)), at least 0."""
    fading = p(-truth).exp()
    remaining = 1 - delta * (1 + fading)
    if remaining.upper <= fading.lower:
        return p(0)
    upper = (truth + p.between(remaining.upper, remaining.upper).log()).at_least(0).upper
    if remaining.lower <= 0:
        return p.between(0, upper)
    return p.between((truth + remaining.log()).at_least(0).lower, upper)
