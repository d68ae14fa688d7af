"""A loss: one amount of privacy, in one measure. Frozen values, exact parameters, certified conversions.

Every loss answers `epsilon_at(delta)` and `delta_at(epsilon)`, the two coordinates in which measures meet,
each as an upper bound (tight where a tight form is known); `implies` is the partial order, within a measure
and across measures where a conversion is valid (Haney et al. 2023, Def 1.15: both coordinates, never tuple order).
Conversions (`as_zcdp`, ...) round toward more loss, or raise `NotCovered`. The meanings of these classes
never change: a new meaning is a new class.

A new measure is one file with one subclass: it defines `_epsilon_bounds`, `_delta_bounds` and `group`. Every other
member has a default, which is that no theorem covers the case. Members with an underscore are for measures to define,
not for others to call. What relates a measure to others stands in tables beside the theorems: `conversions.py`, and the
sums in `composition/`.

>>> from counterpoint import ApproxDP, PureDP
>>> PureDP(0.5).implies(ApproxDP(1, 1e-6)), ApproxDP(0.5, 0.9).implies(ApproxDP(1, 1e-6))
(True, False)
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from fractions import Fraction
from operator import le
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, TypeVar

from counterpoint.encoding import Tagged
from counterpoint.errors import NotCovered
from counterpoint.numbers import Interval, Number, float_up
from counterpoint.numbers.exact import at_least, probability
from counterpoint.numbers.rounding import rounded_up

if TYPE_CHECKING:
    from counterpoint import measures

OPTIMAL = "optimal composition (Vadhan and Wang 2021, Cor 4; Lyu 2022, Thm 1; Henzinger et al. 2024, Thm 4.12)"
"""What (epsilon, delta) losses that are fixed in advance compose by."""

EpsilonDelta: TypeAlias = tuple[Fraction, Fraction]
"""An epsilon and a delta."""


Converted = TypeVar("Converted", bound="Loss")

CONVERSIONS: dict[tuple[type, str], Callable[..., Any]] = {}
"""From a measure to the name of another: what converts a loss. `conversions.py` fills it, and says more."""


class Loss(Tagged):
    """One amount of privacy loss; a subclass is one measure."""

    __slots__ = ()

    @abstractmethod
    def _epsilon_bounds(self, delta: Fraction) -> Interval | None:
        """What `epsilon_bounds` says of a delta that has been read."""

    @abstractmethod
    def _delta_bounds(self, epsilon: Fraction) -> Interval:
        """What `delta_bounds` says of an epsilon that has been read."""

    @abstractmethod
    def group(self, size: int) -> "Loss":
        """The loss for a unit that changes `size` places at once (theory, Groups); none at all for 0 places."""

    def epsilon_bounds(self, delta: Number) -> Interval | None:
        """The smallest certified epsilon at this delta, enclosed; None where there is no finite one."""
        return self._epsilon_bounds(probability(delta, "delta"))

    def delta_bounds(self, epsilon: Number) -> Interval:
        """The smallest certified delta at this epsilon, enclosed; at most 1."""
        return self._delta_bounds(at_least(epsilon, 0, "epsilon"))

    def epsilon_at(self, delta: Number) -> float:
        """The epsilon with which this loss implies (epsilon, delta)-DP: an upper bound, or infinite."""
        bounds = self.epsilon_bounds(delta)
        return math.inf if bounds is None else float_up(bounds.upper)

    def delta_at(self, epsilon: Number) -> float:
        """The delta with which this loss implies (epsilon, delta)-DP: an upper bound, at most 1."""
        return min(1.0, float_up(self.delta_bounds(epsilon).upper))

    def implies(self, other: "Loss") -> bool:
        """Whether everything that has this loss has the other too; False where no conversion proves it."""
        if self == other:
            return True
        try:
            return other._follows_from(self)
        except NotCovered:
            return False

    def _follows_from(self, loss: "Loss") -> bool:
        """Each measure knows which conversion of the stronger loss answers for it."""
        return False

    def postprocessed(self) -> "Loss":
        """What is left of it whatever is made of the answers: itself, in every measure that postprocessing keeps."""
        return self

    # What a budget of this measure compares, and what is left of it.

    @property
    def amounts(self) -> tuple[Fraction, ...]:
        """The numbers that grow with what is lost; none where no budget or threshold compares this measure."""
        return ()

    letters: ClassVar[tuple[str, ...]] = ("ε", "δ")
    """How pictures call the amounts, in their order."""

    def within(self, budget: "Loss") -> bool:
        """Whether a total keeps a budget of the same measure, coordinate by coordinate, never in tuple order.

        Deliberately not `implies`: that a pure loss of 1.0000001 implies (1, 1e-6) says nothing about a rule that would
        admit some paths by one of these bounds and some by the other.
        """
        if type(self) is not type(budget):
            return False
        spent = self.amounts
        return spent != () and all(map(le, spent, budget.amounts))

    def used_of(self, budget: "Loss", parts: int) -> int:
        """How many of `parts` equal parts of a budget this total uses, rounded up; more than all if it exceeds it.

        Where a loss has several numbers, the one that is nearest to its limit counts.

        >>> from counterpoint import PureDP
        >>> PureDP(0.3).used_of(PureDP(1), 100), PureDP(1).used_of(PureDP(1), 100), PureDP(1.1).used_of(PureDP(1), 100)
        (30, 100, 101)
        """
        if not self.within(budget):
            return parts + 1
        limits = zip(self.amounts, budget.amounts, strict=True)
        return max(_parts_up(parts, amount, limit) if limit else 0 for amount, limit in limits)

    def left_after(self, total: "Loss") -> "Loss | None":
        """What a total leaves of this budget, as one loss to show; None if no single loss says it."""
        return None

    def can_keep(self, threshold: "Loss") -> bool:
        """Whether an odometer with this reading could have kept a threshold at all, had nothing been lost."""
        return type(self) is type(threshold) and threshold.within(threshold)

    # What losses of this measure cost together if they are fixed in advance.

    @classmethod
    def compose_fixed(cls, counted: Mapping[Self, int]) -> "tuple[Loss, str]":
        """What losses of this measure cost together if they are fixed in advance, and by which rule."""
        raise NotCovered(
            f"no theorem composes {cls.__name__} losses as they are; convert them to one measure first, "
            "for instance with as_zcdp(), as_renyi(alpha) or as_tradeoff()"
        )

    theorem_if_fixed: ClassVar[str] = "the rule of its own measure, for losses fixed in advance"
    """What the cost of losses of this measure that are fixed in advance rests on, as a certificate cites it."""

    slow_to_compose: ClassVar[bool] = False
    """Whether `compose_fixed` may take long, so that it is not computed only to see whether it is covered."""

    @property
    def needs_finite_communication(self) -> bool:
        """Whether this measure composes by theorems on f-DP, which need finite communication."""
        return False

    # How people read it.

    @property
    def example(self) -> str:
        """A mechanism that has this loss, as it is typed; empty if none comes to mind."""
        return ""

    @property
    def stated_delta(self) -> Fraction | None:
        """The delta that the loss itself names, if it is a promise at one delta."""
        return None

    # Conversions, which conversions.py holds: tight or rounded toward more loss; else `NotCovered`.

    def as_pure(self) -> "measures.PureDP":
        """Pure DP: only for a loss whose worst case is bounded."""
        return self._converted("PureDP")

    def as_approx(self, delta: Number = 0) -> "measures.ApproxDP":
        """(epsilon, delta)-DP at the delta given; lossy, since it keeps one point of a curve.

        >>> from counterpoint import PureDP
        >>> PureDP(1).as_approx()
        ApproxDP(1, 0)
        """
        return self._converted("ApproxDP", delta)

    def as_probabilistic(self, epsilon: Number | None = None) -> "measures.ProbabilisticDP":
        """Probabilistic DP at the epsilon given, by the best (e, delta) below it; lossy (errata, Whitehouse E4).

        The epsilon may be left out for a loss that has one of its own which is never exceeded.

        >>> from counterpoint import PureDP
        >>> PureDP(1).as_probabilistic()
        ProbabilisticDP(1, 0)
        """
        return self._converted("ProbabilisticDP", epsilon)

    def as_renyi(self, alpha: Number) -> "measures.RenyiDP":
        """Rényi DP at the order given."""
        return self._converted("RenyiDP", alpha)

    def as_zcdp(self, *, tight: bool = False) -> "measures.zCDP":
        """Zero-concentrated DP; with `tight=True` the smallest rho of a pure loss, not the usual epsilon^2/2."""
        return self._converted("zCDP", tight)

    def as_tcdp(self, omega: Number) -> "measures.tCDP":
        """Truncated concentrated DP up to the order given."""
        return self._converted("tCDP", omega)

    def as_gaussian(self) -> "measures.GaussianDP":
        """Gaussian DP."""
        return self._converted("GaussianDP")

    def as_tradeoff(self, points: int = 32) -> "measures.TradeOff":
        """The trade-off curve; a Gaussian one is drawn from below, by `points` pairs of tangents."""
        return self._converted("TradeOff", points)

    def _converted(self, measure: str, *how: object) -> Converted:  # type: ignore[type-var] # by the measure's name
        convert = CONVERSIONS.get((type(self), measure)) or CONVERSIONS[Loss, measure]
        return convert(self, *how)  # type: ignore[no-any-return]

    def _through_pure(self, measure: str) -> "measures.PureDP":
        try:
            return self.as_pure()
        except NotCovered:
            raise self._no_conversion(measure) from None

    def _no_conversion(self, measure: str, would: str = "") -> NotCovered:
        return NotCovered(f"{self!r} has no conversion to {measure}; {would or self._advice()}")

    def _is_zero(self) -> bool:
        """Whether nothing is lost at all, so that every other loss is implied."""
        return False

    def _advice(self) -> str:
        return "use its epsilon_at(delta) and delta_at(epsilon)"

    def _least_epsilon(self, delta: Fraction) -> Fraction | None:
        """The upper end of `epsilon_bounds` as a parameter that a loss can carry."""
        bounds = self._epsilon_bounds(delta)
        return None if bounds is None else rounded_up(bounds.upper)

    def _least_delta(self, epsilon: Fraction) -> Fraction:
        """The least delta that is proven at this epsilon, as a parameter that a loss can carry."""
        return rounded_up(self._delta_bounds(epsilon).upper)

    def _covers(self, epsilon: Fraction, delta: Fraction) -> bool:
        """Whether this loss is proven to imply (epsilon, delta)-DP, read off either coordinate."""
        if self._least_delta(epsilon) <= delta:
            return True
        least = self._least_epsilon(delta)
        return least is not None and least <= epsilon


def _parts_up(parts: int, amount: Fraction, limit: Fraction) -> int:
    """Parts * amount / limit in integers, rounded up: at every launch, fractions would be reduced for nothing."""
    return -(-parts * amount.numerator * limit.denominator // (amount.denominator * limit.numerator))
