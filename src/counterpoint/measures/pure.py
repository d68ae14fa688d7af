"""Pure differential privacy: no outcome is more than e^epsilon times likelier than under a neighbour.

Randomized response with truth probability e^eps/(1+e^eps) is the worst of all eps-DP mechanisms (Kairouz et al. 2015;
Lyu 2022, Thm 3 for interactive ones): every other is a postprocessing of it. So whatever it has in
another measure is the tight conversion to that measure. Pure losses add up (`PureSum`).

>>> from counterpoint import PureDP
>>> PureDP(1).as_zcdp(), PureDP(1).delta_at(0.5)
(zCDP(0.5), 0.28764913664496794)
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self

from counterpoint.encoding import Value
from counterpoint.measures import approximate, concentrated, gaussian, renyi, tradeoff
from counterpoint.measures.accumulator import ZERO, Accumulator, Interaction, Summand
from counterpoint.measures.divergences import concentrated_of_pure, delta_below, pure_near, renyi_of_pure
from counterpoint.measures.gaussian_curve import gaussian_of_pure
from counterpoint.measures.loss import OPTIMAL, EpsilonDelta, Loss
from counterpoint.measures.renyi import above_one
from counterpoint.numbers import Interval, Number, Precision, certify, precision, spell
from counterpoint.numbers.exact import LARGEST, added_up, at_least, taken_out, whole
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
        return f"PureDP({spell(self.epsilon)})"

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
        return PureDP(max(ZERO, self.epsilon - total.epsilon)) if isinstance(total, PureDP) else None

    @classmethod
    def odometer(cls) -> "PureSum":
        """The sum of epsilons."""
        return PureSum()

    theorem_if_fixed: ClassVar[str] = OPTIMAL

    @classmethod
    def together(cls, counted: Mapping[Self, int]) -> tuple["PureDP", str]:
        """The sum of epsilons; `compose.optimal` has a whole curve."""
        return PureDP(sum((copies * loss.epsilon for loss, copies in counted.items()), ZERO)), "sum"

    def added_epsilon(self) -> Fraction:
        """Epsilon."""
        return self.epsilon

    def added_response(self) -> EpsilonDelta:
        """Randomized response itself."""
        return self.epsilon, ZERO

    def added_rho(self) -> Fraction:
        """epsilon^2/2."""
        return self.as_zcdp().rho

    def added_renyi(self, alpha: Fraction) -> Fraction:
        """tau_alpha(epsilon)."""
        return renyi_of(self.epsilon, alpha)

    def added_probabilistic(self) -> EpsilonDelta:
        """Its loss is bounded without exception."""
        return self.epsilon, ZERO

    def part_on_changing_data(self) -> EpsilonDelta:
        """K of them (Henzinger et al. 2024, Cor 5.5)."""
        return self.epsilon, ZERO

    @property
    def example(self) -> str:
        """Laplace noise."""
        return f"Laplace(epsilon={spell(self.epsilon)})"

    def as_pure(self) -> "PureDP":
        """Itself."""
        return self

    def as_approx(self, delta: Number = 0) -> "approximate.ApproxDP":
        """(epsilon, 0)-DP, or the smaller epsilon that a delta allows; tight.

        >>> PureDP(1).as_approx()
        ApproxDP(1, 0)
        """
        return super().as_approx(delta)

    def as_probabilistic(self, epsilon: Number | None = None) -> "approximate.ProbabilisticDP":
        """(epsilon, 0)-pDP; at a smaller epsilon there is none (randomized response always exceeds it).

        >>> PureDP(1).as_probabilistic()
        ProbabilisticDP(1, 0)
        """
        target = self.epsilon if epsilon is None else at_least(epsilon, 0, "epsilon")
        if target < self.epsilon:
            raise self._no_conversion(
                f"ProbabilisticDP at epsilon {spell(target)}", f"choose an epsilon of at least {spell(self.epsilon)}"
            )
        return approximate.ProbabilisticDP(target, 0)

    def as_renyi(self, alpha: Number) -> "renyi.RenyiDP":
        """tau_alpha(epsilon), the divergence of randomized response; tight, rounded up.

        See theory, The Renyi filter by reduction.

        >>> float(PureDP(0.01).as_renyi(16).epsilon)
        0.000796813728723477
        """
        order = above_one(alpha, "alpha")
        tau = certify(lambda p: renyi_of_pure(self.epsilon, order, p), DIGITS)
        return renyi.RenyiDP(order, min(self.epsilon, rounded_up(tau.upper)))  # it never exceeds epsilon

    def as_zcdp(self, *, tight: bool = False) -> "concentrated.zCDP":
        """epsilon^2/2 (Bun and Steinke 2016, Prop 1.4): exact, and lossy for a large epsilon.

        With `tight=True`, epsilon tanh(epsilon/2), rounded up: the smallest rho there is.

        >>> PureDP(20).as_zcdp(), PureDP(20).as_zcdp(tight=True).rho < 20
        (zCDP(200), True)
        """
        return concentrated.zCDP(self._least_rho() if tight else rounded_up(self.epsilon**2 / 2))

    def as_tcdp(self, omega: Number) -> "concentrated.tCDP":
        """(epsilon tanh(epsilon/2), omega)-tCDP; tight, because the smallest orders decide."""
        return concentrated.tCDP(self._least_rho(), omega)

    def as_gaussian(self) -> "gaussian.GaussianDP":
        """The smallest mu there is, 2 Phi^-1(e^eps/(1+e^eps)), rounded up.

        The trade-off curve of eps-DP is two segments, (0, 1) to (q, q) to (1, 0), with q = 1/(1+e^eps). G_mu
        is convex with the same ends, so it lies below that curve exactly if it does at the corner: G_mu(q) =
        Phi(Phi^-1(1-q) - mu) <= q, that is mu >= 2 Phi^-1(1-q).

        >>> float(PureDP(1).as_gaussian().mu)
        1.2320353853449009
        """
        return gaussian.GaussianDP(rounded_up(gaussian_of_pure(self.epsilon)))

    def as_tradeoff(self) -> "tradeoff.TradeOff":
        """The two segments of f_(epsilon, 0), rounded toward more loss."""
        return tradeoff.TradeOff.of_approx(self.epsilon, 0)

    def _follows_from(self, loss: Loss) -> bool:
        return loss._covers(self.epsilon, Fraction(0))

    def _least_epsilon(self, delta: Fraction) -> Fraction:
        return min(self.epsilon, rounded_up(self._epsilon_bounds(delta).upper))

    def _least_rho(self) -> Fraction:
        tight = certify(lambda p: concentrated_of_pure(self.epsilon, p), DIGITS)
        return min(rounded_up(self.epsilon**2 / 2), rounded_up(tight.upper))


class PureSum(Accumulator, Value, frozen=True):
    """Pure losses add.

    See theory, Sums; Haney et al. 2023, Thm 1.19; Henzinger et al. 2024, Thm 12.4 with the basic filter. Covers PureDP
    only.

    >>> (PureSum() + PureDP("1e-17") + PureDP(1)).epsilon > 1
    True
    """

    epsilon: Fraction = Fraction(0)
    theorem = "basic composition of pure losses (Haney et al. 2023, Thm 1.19; Henzinger et al. 2024, Thm 12.4)"

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "PureSum":
        """Add a pure loss."""
        return PureSum(added_up(self.epsilon, self._added(loss)))

    def _without(self, charge: Summand) -> "PureSum":
        return PureSum(taken_out(self.epsilon, self._added(charge.loss)))

    def _added(self, loss: Loss) -> Fraction:
        epsilon = loss.added_epsilon()
        if epsilon is None:
            self._not_covered(loss, "PureDP; budget in ApproxDP for other measures")
        return epsilon

    @property
    def total(self) -> PureDP:
        """The sum."""
        return PureDP(self.epsilon)

    def room(self, budget: Loss) -> Fraction:
        """What is left, exactly."""
        (epsilon,) = self._limits(budget, PureDP)
        return max(ZERO, epsilon - self.epsilon)


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
        return ZERO
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
    first = max((guess for guess, _, _ in near), default=ZERO) * _SURELY_LESS
    return max((pure_below(alpha, most) for guess, alpha, most in near if guess >= first), default=ZERO)


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
