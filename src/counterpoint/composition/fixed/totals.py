"""What fixed losses cost together: itself a loss, with bounds on either side.

`epsilon_at` and `delta_at` report the upper bound, as for every loss; `bounds` has both ends, between which
the value of the rule certainly lies, and `method` says how it was computed. A composition that is again an
amount of its own measure (Gaussian, concentrated, Renyi, f-DP) is a `Total` around that loss.

>>> from counterpoint import compose, zCDP
>>> total = compose.optimal([zCDP(0.1), zCDP(0.2)])
>>> total.loss, total.method, total.epsilon_at(1e-6) == zCDP(0.3).epsilon_at(1e-6)
(zCDP(0.3), 'sum', True)
"""

import math
from abc import abstractmethod
from collections import Counter, deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, TypeVar

from counterpoint.encoding import Value
from counterpoint.measures import ApproxDP, PureDP
from counterpoint.measures.loss import Loss
from counterpoint.numbers import Interval, Number, Precision, certify, float_down, float_up, precision
from counterpoint.numbers.exact import at_least, probability
from counterpoint.numbers.rounding import DIGITS, rounded_up

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
        """The loss of its own measure that this total is."""
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


Parts = tuple[tuple[Fraction, Fraction, int], ...]
"""The different (epsilon, delta), and how many there are of each."""

_WRITTEN_OUT = 2**14
"""The most bits of a product that is written out; a longer one is enclosed."""
_SHOWN = 3


class Exposure(NamedTuple):
    """The probability that something is exposed, between two fractions; they are equal if it is exact."""

    low: Fraction
    high: Fraction


Read = TypeVar("Read")
_HASHED = 1000


def remembered(read: Callable[[Parts], Read]) -> Callable[[Parts], Read]:
    """Remember what is read of the last few lists of losses; a long list is found as the object that it is.

    To hash 100,000 fractions takes longer than what is read of them.
    """
    by_value = lru_cache(maxsize=32)(read)
    long: deque[tuple[Parts, Read]] = deque(maxlen=4)

    def found(parts: Parts) -> Read:
        if len(parts) < _HASHED:
            return by_value(parts)
        for known, value in tuple(long):
            if known is parts:
                return value
        value = read(parts)
        long.append((parts, value))
        return value

    return found


@remembered
def exposure(parts: Parts) -> Exposure:
    """1 - prod(1 - delta_i).

    RR(eps, delta) exposes its input with probability delta, so several expose something with probability D = 1 - prod(1
    - delta_i), and a total delta is D + (1 - D) times what the unexposed ones lose (theory, Fixed parameters). D is a
    fraction where that can be written out, and enclosed between two where it can't.

    >>> exposure(((Fraction(1), Fraction(1, 10), 2),))
    Exposure(low=Fraction(19, 100), high=Fraction(19, 100))
    """
    chances: Counter[Fraction] = Counter()
    for _, delta, copies in parts:
        if delta:
            chances[delta] += copies
    if Fraction(1) in chances:
        return Exposure(Fraction(1), Fraction(1))
    if sum(copies * delta.denominator.bit_length() for delta, copies in chances.items()) <= _WRITTEN_OUT:
        exact = 1 - math.prod(((1 - delta) ** copies for delta, copies in chances.items()), start=Fraction(1))
        return Exposure(exact, exact)

    def formula(p: Precision) -> Interval:
        return 1 - math.prod((p(1 - delta) ** copies for delta, copies in chances.items()), start=p(1))

    bounds = certify(formula, DIGITS)
    return Exposure(Fraction(bounds.lower), Fraction(bounds.upper))


def left_after(delta: Fraction, exposed: Fraction) -> Fraction | None:
    """The d with delta = D + (1 - D) d, or None if D alone is more than delta.

    >>> left_after(Fraction(1, 2), Fraction(1, 4)), left_after(Fraction(1, 8), Fraction(1, 4))
    (Fraction(1, 3), None)
    """
    if delta == 1:
        return Fraction(1)
    return (delta - exposed) / (1 - exposed) if delta >= exposed else None


def with_exposure(exposed: Fraction, unexposed: Decimal) -> Interval:
    """D + (1 - D) d, enclosed.

    >>> with_exposure(Fraction(1, 4), Decimal("0.5"))
    Interval(0.625, 0.625)
    """
    p = precision(DIGITS)
    return p(exposed) + p(1 - exposed) * p.between(unexposed, unexposed)


def format_parts(parts: Parts) -> str:
    """The first few, as a person would write them.

    >>> format_parts(((Fraction(1, 10), Fraction(0), 3),))
    '3 x PureDP(0.1)'
    """
    shown = [
        f"{copies} x {(ApproxDP(epsilon, delta) if delta else PureDP(epsilon))!r}"
        for epsilon, delta, copies in parts[:_SHOWN]
    ]
    return ", ".join(shown + [f"{len(parts) - _SHOWN} more"] * (len(parts) > _SHOWN))


def in_order(parts: list[tuple[Fraction, Fraction, int]]) -> Parts:
    """Sorted by epsilon and then delta: by floats first, which compare in a tenth of the time.

    >>> in_order([(Fraction(2), Fraction(0), 1), (Fraction(1), Fraction(0), 3)])[0]
    (Fraction(1, 1), Fraction(0, 1), 3)
    """
    return tuple(sorted(parts, key=lambda part: (float(min(part[0], _FLOATS)), *part)))


_FLOATS = Fraction(10) ** 300
_DIGITS = 50
_CLOSE = 2.0**-46
_TRIES = 200


def crossing(
    bound: Callable[[Fraction], Decimal], delta: Fraction, low: Fraction, high: Fraction, guess: Fraction
) -> tuple[Fraction, Fraction]:
    """The last epsilon with bound > delta and the first with bound <= delta that were tried.

    At `high` the bound must be known to be at most delta; if it is at `low` already, both are `low`.

    A bound on delta falls as epsilon grows. `crossing` closes in on the epsilon where it reaches a given delta and
    returns two epsilons, both tried: at the first the bound is still above delta, at the second it no longer is.
    However the search went, the second is an epsilon that the bound proves for delta, and the first is one that it does
    not.

    >>> def falling(epsilon):
    ...     return Decimal(-float(epsilon)).exp()
    >>> low, high = crossing(falling, Fraction(1, 2), low=Fraction(0), high=Fraction(9), guess=Fraction(1))
    >>> print(f"{float(low):.12f} {float(high):.12f} {math.log(2):.12f}")
    0.693147180560 0.693147180560 0.693147180560
    """
    log_delta = log_of(delta)

    def excess(epsilon: Fraction) -> float:
        """log(bound/delta), with the sign of the exact comparison."""
        value = bound(epsilon)
        ratio = float(value.ln()) - log_delta if value > 0 else -math.inf
        return min(ratio, 0.0) if at_most(value, delta) else max(ratio, 5e-324)

    above, below = excess(low), -math.inf
    if above <= 0:
        return low, low
    trial, rising = guess, False
    for _ in range(_TRIES):
        trial = _inside(low, high, trial)
        value = excess(trial)
        # the Illinois rule: an end that stays where it is twice counts half, so that both ends move
        if value > 0:
            low, above, below, rising = trial, value, below / 2 if rising else below, True
        else:
            high, below, above, rising = trial, value, above if rising else above / 2, False
        if high - low <= high * Fraction(_CLOSE):
            break
        trial = low + (high - low) * Fraction(above / (above - below)) if below > -math.inf else high
    return low, high


def _inside(low: Fraction, high: Fraction, trial: Fraction) -> Fraction:
    """The trial as a short fraction, kept a little off both ends; the middle where that is not inside."""
    margin = high * Fraction(_CLOSE / 4)
    kept = min(max(trial, low + margin), high - margin) if trial != high else (low + high) / 2
    short = Fraction(float(kept))
    return short if low < short < high else (low + high) / 2


def log_of(delta: Fraction) -> float:
    """The natural logarithm of a fraction that may be too small for a float.

    >>> round(log_of(Fraction(1, 10**400)))
    -921
    """
    return float(Decimal(delta.numerator).ln() - Decimal(delta.denominator).ln())


def at_most(value: Decimal, delta: Fraction) -> bool:
    """Whether value <= delta, exactly, without writing out a decimal that is far too small.

    >>> at_most(Decimal("0.5"), Fraction(1, 2)), at_most(Decimal("0.5"), Fraction(49, 100))
    (True, False)
    """
    near = precision(_DIGITS)(delta)
    if value <= near.lower or value > near.upper:
        return value <= near.lower
    return Fraction(value) <= delta
