"""Gaussian DP: telling neighbours apart is no easier than telling N(0, 1) from N(mu, 1) (Dong et al. 2022).

The (epsilon, delta) curve is exact: delta = Q(a) - e^eps Q(b) with a = eps/mu - mu/2, b = eps/mu + mu/2 and Q the
normal tail (Balle and Wang 2018). e^eps Q(b) is the density at a times Mills' ratio at b, so nothing overflows.
Newton's steps find what has no closed form (epsilon, the mu for a budget), and certified evaluations enclose it. A
Gaussian step on a Poisson sample (`SampledGaussianDP`), as in DP-SGD, has a curve of the same kind.

>>> from counterpoint import GaussianDP
>>> GaussianDP(1).delta_at(1), GaussianDP(1).epsilon_at(1e-6)
(0.12693673750664397, 4.886554117462212)
"""

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, ClassVar, Self

from msgspec.structs import force_setattr

from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.measures.gaussian_curve import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    sampled_delta,
    sampled_epsilon,
)
from counterpoint.measures.loss import Loss
from counterpoint.measures.pure import PureDP
from counterpoint.numbers import Interval, Number, format_number, precision, sqrt_up
from counterpoint.numbers.exact import at_least, probability, whole
from counterpoint.numbers.parameters import Parameter, Positive, PositiveOrNone, Rate, Read, default
from counterpoint.numbers.rounding import DIGITS, certified_delta, root_below, rounded_down, rounded_up

_NOT_GIVEN = Fraction(-1)


def _read_mu(value: object, what: str) -> Fraction:
    return _NOT_GIVEN if value is _NOT_GIVEN else at_least(value, 0, what)


MuUnlessRho = Annotated[Parameter[Fraction, Number], Read(_read_mu)]
"""A number from 0 on; it may be left out where a rho is given."""


@lru_cache(maxsize=4096)
def _root_up(square: Fraction) -> Fraction:
    """Remembered: every launch of a mechanism with a rho asks for it."""
    return rounded_up(sqrt_up(square))


class GaussianDP(Loss, Value, frozen=True):
    """mu-Gaussian DP, for a mu that is given, or by rho = mu^2/2.

    What is given as a rho is carried exactly: squares add, and the loss is zCDP(rho) with nothing rounded. `mu` is then
    the root of 2 rho, rounded up; a rational root is the mu that was meant.

    >>> GaussianDP(0.5).as_zcdp(), GaussianDP(rho=0.3).as_zcdp(), GaussianDP(rho=0.5)
    (zCDP(0.125), zCDP(0.3), GaussianDP(1))
    """

    mu: MuUnlessRho = default(_NOT_GIVEN)
    rho: PositiveOrNone = default(None)

    def __post_init__(self) -> None:
        """Derive the mu from a rho."""
        if self.rho is None:
            if self.mu is _NOT_GIVEN:
                raise InvalidParameter("GaussianDP takes a mu, or rho= for mu^2/2")
            return
        mu = _root_up(2 * self.rho)
        if self.mu is not _NOT_GIVEN and self.mu != mu:
            raise InvalidParameter("GaussianDP takes a mu or a rho, not both")
        force_setattr(self, "mu", mu)
        if mu * mu == 2 * self.rho:
            force_setattr(self, "rho", None)

    def __repr__(self) -> str:
        given = format_number(self.mu) if self.rho is None else f"rho={format_number(self.rho)}"
        return f"GaussianDP({given})"

    @classmethod
    def of_square(cls, square: Fraction) -> "GaussianDP":
        """The one with this mu^2, exactly.

        >>> GaussianDP.of_square(Fraction(1, 4)), GaussianDP.of_square(Fraction(1, 2))
        (GaussianDP(0.5), GaussianDP(rho=0.25))
        """
        return cls(rho=square / 2) if square else cls(0)

    @property
    def square(self) -> Fraction:
        """mu^2, exactly."""
        return self.mu * self.mu if self.rho is None else 2 * self.rho

    @classmethod
    def for_budget(cls, epsilon: Number, delta: Number) -> "GaussianDP":
        """The largest mu that implies (epsilon, delta)-DP, rounded down.

        >>> float(GaussianDP.for_budget(0.1, 1e-9).mu)
        0.01991642341268146...
        """
        budget, allowed = at_least(epsilon, 0, "epsilon"), probability(delta, "delta")
        if allowed == 1:
            raise InvalidParameter("delta must be below 1: at 1 every mu is within the budget")
        if allowed == 0:
            return cls(0)
        return cls(rounded_down(gaussian_mu(budget, allowed).lower))

    def _epsilon_bounds(self, delta: Fraction) -> Interval | None:
        """Where the curve falls to delta."""
        if self.mu == 0 or delta == 1:
            return precision(DIGITS)(0)
        if delta == 0:
            return None
        return gaussian_epsilon(self.mu, delta)

    def _delta_bounds(self, epsilon: Fraction) -> Interval:
        """Q(eps/mu - mu/2) - e^eps Q(eps/mu + mu/2)."""
        if self.mu == 0:
            return precision(DIGITS)(0)
        return certified_delta(lambda p: gaussian_delta(self.mu, epsilon, p))

    def group(self, size: int) -> "GaussianDP":
        """A unit of m places: m mu (Dong et al. 2022, Thm 2.14).

        >>> GaussianDP(0.5).group(3)
        GaussianDP(1.5)
        """
        units = whole(size, 0, "size")
        return GaussianDP(units * self.mu) if self.rho is None else GaussianDP.of_square(units**2 * self.square)

    letters: ClassVar[tuple[str, ...]] = ("μ",)

    def within(self, budget: Loss) -> bool:
        """Whether the square is within the budget's, of which a root is only known from above."""
        return isinstance(budget, GaussianDP) and self.square <= budget.square

    @property
    def amounts(self) -> tuple[Fraction, ...]:
        """Mu."""
        return (self.mu,)

    def left_after(self, total: Loss) -> "GaussianDP | None":
        """The root of what is left of the square."""
        return GaussianDP(root_below(self.square - total.square)) if isinstance(total, GaussianDP) else None

    theorem_if_fixed: ClassVar[str] = (
        "tensor product, with finite communication or without memory (Haney et al. 2023, Thm 1.24; Henzinger et al. "
        "2024, Cor 14.7)"
    )

    @classmethod
    def compose_fixed(cls, counted: Mapping[Self, int]) -> tuple["GaussianDP", str]:
        """The root of the sum of squares (Haney et al. 2023, Thm 1.24; Henzinger et al. 2024, Cor 14.7)."""
        squares = sum((copies * loss.square for loss, copies in counted.items()), Fraction(0))
        return GaussianDP.of_square(squares), "root of the sum of squares"

    @property
    def needs_finite_communication(self) -> bool:
        """As every measure of f-DP."""
        return True

    def _advice(self) -> str:
        return "its loss is unbounded; use as_approx(delta), as_zcdp(), as_renyi(alpha) or as_tradeoff()"

    def _is_zero(self) -> bool:
        return self.mu == 0

    def _follows_from(self, loss: Loss) -> bool:
        return loss.as_gaussian().square <= self.square


class SampledGaussianDP(Loss, Value, frozen=True):
    """The loss of a Gaussian mechanism with this mu on a Poisson sample of this rate.

    `mu` is its sensitivity divided by its standard deviation (1 over the noise multiplier), `rate` the probability with
    which each unit is in the batch, for one unit that is added or removed (theory, Sampling). Its (epsilon, delta)
    curve is exact. Lists of such steps that are fixed in advance compose by `compose.optimal`; filters and
    odometers add up their Renyi losses (theory, Sampled Gaussian steps).

    >>> SampledGaussianDP(1, 0.01).delta_at(0)
    0.0038292492254802623

    >>> step = SampledGaussianDP(mu=1, rate=0.01)
    >>> step.epsilon_at(1e-5) < 1 < step.of_all.epsilon_at(1e-5)
    True
    """

    mu: Positive
    rate: Rate

    def __repr__(self) -> str:
        return f"SampledGaussianDP({format_number(self.mu)}, {format_number(self.rate)})"

    @property
    def of_all(self) -> "GaussianDP":
        """The same mechanism on all units: a sample loses no more, by joint convexity."""
        return GaussianDP(self.mu)

    def _epsilon_bounds(self, delta: Fraction) -> Interval | None:
        """Where the curve falls to delta."""
        if delta == 1:
            return precision(DIGITS)(0)
        return None if delta == 0 else sampled_epsilon(self.mu, self.rate, delta)

    def _delta_bounds(self, epsilon: Fraction) -> Interval:
        """The larger of the two hockey sticks, of adding and of removing a unit."""
        return certified_delta(lambda p: sampled_delta(self.mu, self.rate, epsilon, p))

    def group(self, size: int) -> Loss:
        """Itself for one unit; for more, no bound in this measure."""
        units = whole(size, 0, "size")
        if units == 0:
            return PureDP(0)
        if units == 1:
            return self
        raise NotCovered(
            f"{self!r} has no group loss of its own: of {units} units, any number may be in the sample; take that of "
            "as_approx(delta)"
        )

    @property
    def needs_finite_communication(self) -> bool:
        """As every measure that is a pair of distributions."""
        return True

    def _follows_from(self, loss: Loss) -> bool:
        return isinstance(loss, SampledGaussianDP) and loss.mu <= self.mu and loss.rate <= self.rate
