"""The optimal composition of randomized responses that expose nothing: RR(eps_1, 0), RR(eps_2, 0), ...

Its delta at eps is d0 of theory, Fixed parameters. It is counted where there are few values to count, and convolved
on a lattice otherwise; where a lattice's d0 would be below 1e-300, the best Renyi order bounds epsilon.
Parameters that floating point cannot hold (an epsilon above 10^15, or all of them below 10^-290) compose by
their sum.

>>> hundred = Unexposed(((Fraction(1, 10), 100),))
>>> hundred.method, f"{float(hundred.epsilon_above(Fraction(1, 10**6))):.9f}"
('counting', '4.774567588')
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Protocol

from counterpoint.composition.fixed.counting import Counting
from counterpoint.composition.fixed.inverse import at_most, crossing, log_of
from counterpoint.composition.fixed.lattices.lattice import Lattice
from counterpoint.composition.fixed.lattices.moments import Groups, LossShape, largest_loss
from counterpoint.numbers import Interval, Precision, certify, precision
from counterpoint.privacy.formulas.divergences import renyi_of_pure, renyi_to_epsilon
from counterpoint.privacy.loss import rounded_up

REACH = Fraction(1, 10**300)
"""The smallest d0 that a lattice is asked for."""
_LARGEST, _SMALLEST = Fraction(10) ** 15, Fraction(1, 10**290)


class Curve(Protocol):
    """Bounds on delta at every epsilon."""

    def delta_above(self, epsilon: Fraction) -> Decimal:
        """An upper bound."""
        ...

    def delta_below(self, epsilon: Fraction) -> Decimal:
        """A lower bound."""
        ...


@dataclass(frozen=True)
class BasicBound:
    """Basic composition: d0 is at most tanh(most/2), which is at most `most`, and nothing more is said."""

    most: Fraction

    def delta_above(self, epsilon: Fraction) -> Decimal:
        """An upper bound."""
        return precision(20)(self.most).at_most(1).upper

    def delta_below(self, epsilon: Fraction) -> Decimal:
        """A lower bound."""
        return Decimal(0)


@dataclass(frozen=True)
class Unexposed:
    """Randomized responses `groups`, composed."""

    groups: Groups

    @cached_property
    def most(self) -> Fraction:
        """The epsilon at which nothing is left: the sum of all."""
        return largest_loss(self.groups)

    @cached_property
    def method(self) -> str:
        """Either "counting" or "lattice"; "basic" for parameters out of all proportion."""
        if self._counted:
            return "counting"
        return "lattice" if _SMALLEST <= self._largest <= _LARGEST else "basic"

    def by_renyi(self, delta: Fraction) -> bool:
        """Whether the epsilon at delta is the Renyi bound's."""
        return self.method == "lattice" and 0 < delta < REACH

    def delta_above(self, epsilon: Fraction) -> Decimal:
        """An upper bound on d0."""
        return self._near(epsilon).delta_above(epsilon) if epsilon < self.most else Decimal(0)

    def delta_below(self, epsilon: Fraction) -> Decimal:
        """A lower bound on d0."""
        return self._near(epsilon).delta_below(epsilon) if epsilon < self.most else Decimal(0)

    def epsilon_above(self, delta: Fraction) -> Fraction:
        """An epsilon at which d0 is at most delta: about the smallest."""
        if delta == 0 or not self.groups or self.method == "basic":
            return self.most
        if self.by_renyi(delta):
            return self._renyi_epsilon(delta)
        guess = self._guess(delta)
        return crossing(self._near(guess).delta_above, delta, Fraction(0), self.most, guess)[1]

    def epsilon_below(self, delta: Fraction) -> Fraction:
        """An epsilon at which d0 is above delta: about the largest; 0 where none was found."""
        if delta == 0 or not self.groups:
            return self.most
        high = self.epsilon_above(delta)
        curve = self._near(high)
        low, step = high, high / 2**40
        while low > 0 and at_most(curve.delta_below(low), delta):
            low, step = max(Fraction(0), low - step), 4 * step
        return crossing(curve.delta_below, delta, low, high, low)[0] if low > 0 else low

    def _near(self, epsilon: Fraction) -> Curve:
        if self.method == "lattice":
            return Lattice.near(self.groups, epsilon)
        return self._counted or BasicBound(self.most)

    @cached_property
    def _counted(self) -> Counting | None:
        return Counting.of(self.groups) if self._largest <= _LARGEST else None

    @cached_property
    def _largest(self) -> Fraction:
        return max((epsilon for epsilon, _ in self.groups), default=Fraction(0))

    def _guess(self, delta: Fraction) -> Fraction:
        if self._largest < _SMALLEST:
            return self.most / 2
        shape = LossShape(self.groups)
        return Fraction(shape.mean(float(shape.tilt_at_delta(log_of(delta)))))

    def _renyi_epsilon(self, delta: Fraction) -> Fraction:
        alpha = 1 + LossShape(self.groups).renyi_tilt_at_delta(log_of(delta))

        def tau(p: Precision) -> Interval:
            return sum((copies * renyi_of_pure(each, alpha, p) for each, copies in self.groups), p(0))

        total = rounded_up(certify(tau).upper)
        bounds = certify(lambda p: renyi_to_epsilon(total, alpha, delta, p))
        return min(self.most, Fraction(bounds.upper))
