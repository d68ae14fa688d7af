"""What fixed losses cost together: itself a loss, with bounds on either side.

`epsilon_at` and `delta_at` report the upper bound, as for every loss; `bounds` has both ends, between which
the value of the rule certainly lies, and `method` says how it was computed. A composition that is again an
amount of its own measure (Gaussian, concentrated, Renyi, f-DP) is a `Total` around that loss.

>>> from counterpoint import compose, zCDP
>>> total = compose.optimal([zCDP(0.1), zCDP(0.2)])
>>> total.loss, total.method, total.epsilon_at(1e-6) == zCDP(0.3).epsilon_at(1e-6)
(zCDP(0.3), 'sum', True)
"""

from abc import abstractmethod
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from counterpoint.encoding import Value
from counterpoint.numbers import Interval, Number, float_down, float_up, precision
from counterpoint.numbers.exact import at_least, probability
from counterpoint.privacy.loss import DIGITS, Loss, rounded_up

INFINITE = Decimal("Infinity")


class Enclosure(NamedTuple):
    """Two numbers between which the value certainly lies."""

    lower: float
    upper: float


class Composed(Loss):
    """The cost of a multiset of losses that is fixed up front."""

    __slots__ = ()

    @property
    @abstractmethod
    def method(self) -> str:
        """How it is computed: "counting", "lattice", or the name of the rule."""

    @abstractmethod
    def _by_renyi(self, delta: Fraction) -> bool:
        """Whether `method` does not reach this delta, so that the Renyi bound answers."""

    @property
    @abstractmethod
    def loss(self) -> Loss:
        """The same as an amount of its measure, where it is one; else itself."""

    @abstractmethod
    def _epsilon_above(self, delta: Fraction) -> Fraction | Decimal: ...

    @abstractmethod
    def _epsilon_below(self, delta: Fraction) -> Fraction | Decimal: ...

    @abstractmethod
    def _delta_above(self, epsilon: Fraction) -> Fraction | Decimal: ...

    @abstractmethod
    def _delta_below(self, epsilon: Fraction) -> Fraction | Decimal: ...

    def epsilon_above(self, delta: Number) -> Fraction | Decimal:
        """An upper bound on the epsilon at delta; infinite where there is no finite one."""
        return self._epsilon_above(probability(delta, "delta"))

    def epsilon_below(self, delta: Number) -> Fraction | Decimal:
        """A lower bound on the epsilon at delta."""
        return self._epsilon_below(probability(delta, "delta"))

    def delta_above(self, epsilon: Number) -> Fraction | Decimal:
        """An upper bound on the delta at epsilon."""
        return self._delta_above(at_least(epsilon, 0, "epsilon"))

    def delta_below(self, epsilon: Number) -> Fraction | Decimal:
        """A lower bound on the delta at epsilon."""
        return self._delta_below(at_least(epsilon, 0, "epsilon"))

    def epsilon_at(self, delta: Number) -> float:
        """The epsilon at delta, rounded up; infinite if something is exposed with a larger chance than delta."""
        return float_up(self.epsilon_above(delta))

    def delta_at(self, epsilon: Number) -> float:
        """The delta at epsilon, rounded up."""
        return min(1.0, float_up(self.delta_above(epsilon)))

    def method_at(self, delta: Number) -> str:
        """How `epsilon_at(delta)` is computed: by `method`, or "renyi" where that does not reach."""
        return "renyi" if self._by_renyi(probability(delta, "delta")) else self.method

    @property
    def bounds(self) -> "BothSides":
        """The same questions, answered from both sides."""
        return BothSides(self)

    def _epsilon_bounds(self, delta: Fraction) -> Interval | None:
        """Both bounds on epsilon."""
        upper = self._epsilon_above(delta)
        if upper == INFINITE:
            return None
        p = precision(DIGITS)
        return p.between(min(p(self._epsilon_below(delta)).lower, p(upper).upper), p(upper).upper)

    def _delta_bounds(self, epsilon: Fraction) -> Interval:
        """Both bounds on delta."""
        p = precision(DIGITS)
        upper = p(self._delta_above(epsilon)).at_most(1).upper
        return p.between(min(p(self._delta_below(epsilon)).lower, upper), upper)

    def _least_epsilon(self, delta: Fraction) -> Fraction | None:
        upper = self._epsilon_above(delta)
        return None if upper == INFINITE else rounded_up(upper)

    def _least_delta(self, epsilon: Fraction) -> Fraction:
        return min(Fraction(1), rounded_up(self._delta_above(epsilon)))


class BothSides(NamedTuple):
    """The bounds of a composition: `bounds.epsilon_at(delta)` and `bounds.delta_at(epsilon)`."""

    composed: Composed

    def epsilon_at(self, delta: Number) -> Enclosure:
        """Two numbers with the epsilon at delta between them."""
        read = probability(delta, "delta")
        upper = self.composed.epsilon_at(read)
        return Enclosure(min(float_down(self.composed._epsilon_below(read)), upper), upper)

    def delta_at(self, epsilon: Number) -> Enclosure:
        """Two numbers with the delta at epsilon between them."""
        read = at_least(epsilon, 0, "epsilon")
        upper = self.composed.delta_at(read)
        return Enclosure(min(max(0.0, float_down(self.composed._delta_below(read))), upper), upper)


class Total(Composed, Value, frozen=True):
    """A composition that is one amount of a measure; its bounds enclose what the measure's conversion says."""

    amount: Loss
    rule: str

    @property
    def loss(self) -> Loss:
        """The amount."""
        return self.amount

    @property
    def method(self) -> str:
        """The rule by which the losses were added up."""
        return self.rule

    def _by_renyi(self, delta: Fraction) -> bool:
        """Never: it reaches every delta."""
        return False

    def _epsilon_above(self, delta: Fraction) -> Fraction | Decimal:
        """As the amount says."""
        bounds = self.amount._epsilon_bounds(delta)
        return INFINITE if bounds is None else bounds.upper

    def _epsilon_below(self, delta: Fraction) -> Fraction | Decimal:
        """As the amount says."""
        bounds = self.amount._epsilon_bounds(delta)
        return INFINITE if bounds is None else bounds.lower

    def _delta_above(self, epsilon: Fraction) -> Fraction | Decimal:
        """As the amount says."""
        return self.amount._delta_bounds(epsilon).upper

    def _delta_below(self, epsilon: Fraction) -> Fraction | Decimal:
        """As the amount says."""
        return self.amount._delta_bounds(epsilon).lower

    def implies(self, other: Loss) -> bool:
        """Whatever the amount implies."""
        return self == other or self.amount.implies(other)

    def group(self, size: int) -> "Total":
        """The amount for a group."""
        return Total(self.amount.group(size), self.rule)

    def _follows_from(self, loss: Loss) -> bool:
        return loss.implies(self.amount)

    def _advice(self) -> str:
        return "its `loss` has the conversions of its measure"
