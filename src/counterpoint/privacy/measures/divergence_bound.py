"""What Rényi, zero-concentrated and truncated concentrated DP share: bounds on Rényi divergences.

Each order that is bounded proves an (epsilon, delta), and the conversion takes the order that proves most.
`implies` knows two things more, without which it would not be transitive: that lower orders are bounded too,
and that the hockey stick is convex in e^epsilon, so that a larger epsilon and its delta bound the smaller
ones.

>>> from counterpoint import ApproxDP, RenyiDP
>>> RenyiDP(8, 1).delta_at(0.5), RenyiDP(8, 1).implies(ApproxDP(0.5, 0.4))
(0.3934693402873666, True)
"""

from abc import abstractmethod
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, ClassVar

from counterpoint.errors import InvalidParameter
from counterpoint.numbers import Interval, Number, certify, precision, spell
from counterpoint.numbers.exact import exact
from counterpoint.numbers.parameters import Parameter, Read
from counterpoint.privacy.formulas.divergences import delta_below, renyi_to_delta, renyi_to_epsilon
from counterpoint.privacy.loss import DIGITS, Loss, certified_delta, rounded_up

if TYPE_CHECKING:
    from counterpoint.privacy.accumulator import Interaction
    from counterpoint.privacy.measures.tradeoff import TradeOff


def above_one(value: Number, what: str) -> Fraction:
    """Read an order: a number above 1.

    >>> above_one(1, "alpha")
    Traceback (most recent call last):
    ...
    counterpoint.errors.InvalidParameter: alpha must be above 1, but 1 was given
    """
    number = exact(value, what)
    if number <= 1:
        raise InvalidParameter(f"{what} must be above 1, but {spell(number)} was given")
    return number


Order = Annotated[Parameter[Fraction, Number], Read(above_one)]
"""A parameter that is an order: a number above 1."""
OrderOrNone = Annotated[Parameter[Fraction | None, Number | None], Read(above_one)]
"""An order, or None."""


class DivergenceBound(Loss):
    """A loss that bounds Rényi divergences, read as (epsilon, delta) at the order that says most."""

    __slots__ = ()

    theorem_if_fixed: ClassVar[str] = (
        "divergences of mechanisms fixed in advance add (Lyu 2022, Thm 2; Henzinger et al. 2024, Cor 13.4)"
    )

    @abstractmethod
    def _bound_at(self, alpha: Fraction) -> Fraction:
        """The bound on D_alpha; 0 means that nothing is lost at all."""

    @abstractmethod
    def _order_for_delta(self, delta: Fraction) -> Fraction: ...

    @abstractmethod
    def _order_for_epsilon(self, epsilon: Fraction) -> Fraction: ...

    def _lowest_order_for_epsilon(self, epsilon: Fraction) -> Fraction:
        """The best of all orders that are bounded, those below the stated one included."""
        return self._order_for_epsilon(epsilon)

    def _epsilon_bounds(self, delta: Fraction) -> Interval | None:
        """The conversion (`renyi_to_epsilon`) at the order that makes it smallest."""
        if self._is_zero() or delta == 1:
            return precision(DIGITS)(0)
        if delta == 0:
            return None
        alpha = self._order_for_delta(delta)
        tau = self._bound_at(alpha)
        return certify(lambda p: renyi_to_epsilon(tau, alpha, delta, p), DIGITS)

    def _delta_bounds(self, epsilon: Fraction) -> Interval:
        """The same theorem, solved for delta."""
        if self._is_zero():
            return precision(DIGITS)(0)
        return self._delta_through(self._order_for_epsilon(epsilon), epsilon)

    def _delta_through(self, alpha: Fraction, epsilon: Fraction) -> Interval:
        tau = self._bound_at(alpha)
        return certified_delta(lambda p: renyi_to_delta(tau, alpha, epsilon, p))

    def _least_delta(self, epsilon: Fraction) -> Fraction:
        """Also what convexity adds to the conversion: see `_corner`."""
        if self._is_zero():
            return Fraction(0)
        through = rounded_up(self._delta_through(self._lowest_order_for_epsilon(epsilon), epsilon).upper)
        corner = _corner(self)
        if epsilon >= corner[0]:
            return through
        return min(through, rounded_up(certify(lambda p: delta_below(*corner, epsilon, p), DIGITS).upper))

    def added_curve(self, interaction: "Interaction") -> "TradeOff | None":
        """The curve that its deltas prove, at 25 epsilons and down to 1e-15, with finite communication.

        A mechanism with this loss has that curve against every adversary (theory, f-DP in general).

        >>> from counterpoint import zCDP
        >>> zCDP(0.1).implies(zCDP(0.1).added_curve("finite")), zCDP(0.1).added_curve("endless")
        (True, None)
        """
        from counterpoint.privacy.measures.tradeoff import TradeOff  # noqa: PLC0415 - the base meets its heirs at use

        if interaction not in ("one-shot", "finite"):
            return None
        reach = self._least_epsilon(_TINY) or Fraction(0)
        return TradeOff.proven_by(self, [rounded_up(reach * k / _STEPS) for k in range(_STEPS + 1)])

    def _covers(self, epsilon: Fraction, delta: Fraction) -> bool:
        if delta == 0:
            return self._is_zero()
        least = self._least_epsilon(delta)  # the conversion itself comes first: it is the cheap one
        return (least is not None and least <= epsilon) or self._least_delta(epsilon) <= delta


_TINY, _STEPS = Fraction(1, 10**15), 24
_SMALLEST_POWER = 997
"""2 to minus this is about 10^-300: no corner is looked for below."""


def _first(holds: Callable[[int], bool], low: int) -> int:
    """The first whole number from `low` on where a condition that stays true holds; found by doubling and halving."""
    if holds(low):
        return low
    reach = 1
    while not holds(low + reach):
        reach *= 2
    high, low = low + reach, low + reach // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


@lru_cache(maxsize=1024)
def _corner(loss: DivergenceBound) -> tuple[Fraction, Fraction]:
    """The (epsilon, delta) whose own randomized response lies below the rest of the conversion's curve.

    Against s = e^eps the conversion's delta is convex, but for a small epsilon it is above what (eps',
    delta') at a larger eps' implies: the line through (-1, 1) and (e^eps', delta'). The two meet in a
    tangent. As delta is C s^(1-alpha), its slope is -(alpha-1) delta/s, and that of the line is
    -(1-delta)/(1+s).
    """
    rough = precision(25)

    def is_steep(epsilon: Fraction) -> bool:
        alpha = loss._lowest_order_for_epsilon(epsilon)
        delta = renyi_to_delta(loss._bound_at(alpha), alpha, epsilon, rough)
        return (delta * (alpha - 1) * (1 + rough(-epsilon).exp()) + delta).upper > 1

    high = Fraction(2) ** _first(lambda power: not is_steep(Fraction(2) ** power), -_SMALLEST_POWER)
    low = high / 2
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if is_steep(middle) else (low, middle)
    delta = loss._delta_through(loss._lowest_order_for_epsilon(high), high)
    return high, rounded_up(delta.upper)
