"""From delta back to epsilon, with a proof at either end.

A bound on delta falls as epsilon grows. `crossing` closes in on the epsilon where it reaches a given delta
and returns two epsilons, both tried: at the first the bound is still above delta, at the second it no longer
is. However the search went, the second is an epsilon that the bound proves for delta, and the first is one
that it does not.

>>> def falling(epsilon):
...     return Decimal(-float(epsilon)).exp()
>>> low, high = crossing(falling, Fraction(1, 2), low=Fraction(0), high=Fraction(9), guess=Fraction(1))
>>> print(f"{float(low):.12f} {float(high):.12f} {math.log(2):.12f}")
0.693147180560 0.693147180560 0.693147180560
"""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from counterpoint.numbers import precision

_DIGITS = 50
_CLOSE = 2.0**-46
_TRIES = 200


def crossing(
    bound: Callable[[Fraction], Decimal], delta: Fraction, low: Fraction, high: Fraction, guess: Fraction
) -> tuple[Fraction, Fraction]:
    """The last epsilon with bound > delta and the first with bound <= delta that were tried.

    At `high` the bound must be known to be at most delta; if it is at `low` already, both are `low`.
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
