"""Odometers that hold at all times at once: with probability 1 - delta the privacy loss never exceeds them.

See Whitehouse et al. 2023, Thm 2.

They cover sequences of one-shot mechanisms that are (epsilon_m, delta_m)-*probabilistically* DP (pure DP is; DP is
not enough), never of interactive or concurrent ones: no theorem gives that (errata, Haney E8). With
V = sum epsilon_m^2 and L = log(1/delta'):

- filter: sqrt(y L/2) + V sqrt(L/(2 y)) + V/2, tight near V = y;
- mixture: sqrt(2 (V + r) log(sqrt((V + r)/r)/delta')) + V/2 (errata, Whitehouse E3: V + r belongs under the root);
- stitched: 1.7 sqrt(V (log log(2 V/v0) + 0.72 log(5.2/delta'))) + V/2 once V >= v0, infinite before.

The promise is one-sided, P[L > U ever] <= delta in either world, so a reading is `OneSidedDP`. From both sides it is
delta (1 + e^-u), with u the smallest value that U can take: each bound grows with V, so that is its value at V = 0 (for
the stitched one at v0).

How much of delta is delta', and how much is kept for the deltas of launches, is fixed before the first answer. It may
depend on the first launch, whose loss is public and chosen before any answer: given that launch, all constants are
fixed in advance. So by default a first launch without a delta gives delta' nine tenths of delta, one with a delta gives
it half. Moving the unused half to delta' later would not be valid: a bound with half of delta may have been crossed by
then, and both together fail with 1.5 delta.

>>> from counterpoint import PureDP
>>> empty = TimeUniform("mixture", Fraction(1, 100), delta=Fraction(5, 100), slack=Fraction(5, 100))
>>> reading = empty.plus(PureDP(0.1), "one-shot").total
>>> round(float(reading.epsilon), 4), round(float(reading.two_sided().delta), 4)
(0.3706, 0.0891)
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Literal

from msgspec.structs import replace

from counterpoint.composition.accumulator import ZERO, Accumulator, Entries, entry
from counterpoint.composition.advanced import smallest_at, variance_at
from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter
from counterpoint.measures import OneSidedDP, ProbabilisticDP, PureDP, Unbounded
from counterpoint.measures.loss import EpsilonDelta, Loss
from counterpoint.numbers import Interval, Precision, float_up, format_number, precision
from counterpoint.numbers.exact import LARGEST, added_up
from counterpoint.numbers.rounding import DIGITS, crossing, root_below, rounded_down, rounded_up
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.claims import Interaction

Kind = Literal["filter", "mixture", "stitched"]


class TimeUniform(Accumulator, Value, frozen=True):
    """One of Whitehouse et al.'s three odometers, with its tuning constant (y, r or v0) and delta' = `slack` fixed
    in advance.

    Before the first launch there may be another one, `if_exposed`, that takes its place if that launch has a delta.
    """

    ENTERS: ClassVar[Entries[EpsilonDelta]] = {
        PureDP: lambda loss, _: (loss.epsilon, ZERO),
        ProbabilisticDP: lambda loss, _: (loss.epsilon, loss.delta),
    }

    kind: Kind
    constant: Fraction
    delta: Fraction
    slack: Fraction
    variance: Fraction = Fraction(0)
    exposed: Fraction = Fraction(0)
    if_exposed: "TimeUniform | None" = None
    theorem = "time-uniform odometer for one-shot probabilistically private mechanisms (Whitehouse et al. 2023, Thm 2)"

    def __post_init__(self) -> None:
        """An invalid configuration fails here."""
        if self.constant <= 0 or not 0 < self.slack <= self.delta or self.slack >= 1 or self.delta > 1:
            raise InvalidParameter("an odometer needs a constant above 0 and 0 < slack <= delta <= 1, slack below 1")
        if self.if_exposed is not None and (self.variance or self.exposed or self.if_exposed.delta != self.delta):
            raise InvalidParameter("which of two odometers is read is decided at the first launch, at one delta")

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "TimeUniform":
        """Add a one-shot pure or probabilistic loss."""
        once = interaction == "one-shot"
        added = entry(self.ENTERS, loss, interaction) if once else None
        if added is None:
            self._not_covered(
                repr(loss) if once else f"{loss!r} of an interactive mechanism",
                "one-shot mechanisms in PureDP or ProbabilisticDP (convert by ApproxDP.as_probabilistic); "
                "for others use Odometer.approximate",
            )
        epsilon, delta = added
        chosen = self if self.if_exposed is None or delta == 0 else self.if_exposed
        return replace(
            chosen,
            variance=added_up(chosen.variance, epsilon * epsilon),
            exposed=added_up(chosen.exposed, delta),
            if_exposed=None,
        )

    @property
    def total(self) -> OneSidedDP | Unbounded:
        """The bound that the loss has never exceeded, with probability 1 - delta; infinite where it says nothing."""
        return self._reading or Unbounded()

    @property
    def _reading(self) -> OneSidedDP | None:
        if self.slack + self.exposed > self.delta:
            return None
        if self.variance == 0 and self.exposed == 0:
            return OneSidedDP(0, self.delta, self._least)  # no launch so far can have lost anything
        if self.kind == "stitched" and self.variance < self.constant:
            return None
        bound = self._bound(self.variance).upper
        return OneSidedDP(rounded_up(bound), self.delta, self._least) if bound <= LARGEST else None

    def headroom(self, budget: Loss) -> Fraction:
        """The root of what V lacks of the largest one at which the bound is within the budget."""
        epsilon, _ = self._limits(budget, OneSidedDP)
        if self.slack + self.exposed > self.delta:
            return ZERO
        return root_below(most_variance(self.kind, self.constant, self.slack, epsilon) - self.variance)

    def delta_left(self, budget: Loss) -> Fraction:
        """What delta' and the deltas so far leave of delta; before the first launch, what they would leave to one."""
        slack = self.slack if self.if_exposed is None else self.if_exposed.slack
        return max(ZERO, self.delta - slack - self.exposed)

    @property
    def certificate(self) -> Certificate:
        """What is promised, at all times at once, from one side and from both."""
        reading = self._reading
        if reading is None:
            return super().certificate
        delta, both = format_number(self.delta), float_up(reading.two_sided().delta)
        promise = "at all times at once, in either world: the loss ever exceeds its bound with probability at most"
        return Certificate(
            f"{reading!r} for the launches so far, {promise} {delta} (to either side {both})", self.theorem
        )

    @property
    def _least(self) -> Fraction:
        """The smallest value that the bound can take after a launch, rounded down."""
        least = rounded_down(self._bound(self.constant if self.kind == "stitched" else Fraction(0)).lower)
        return least if self.if_exposed is None else min(least, self.if_exposed._least)

    def _bound(self, variance: Fraction) -> Interval:
        return BOUNDS[self.kind](precision(DIGITS), variance, self.constant, self.slack)


def filter_bound(p: Precision, v: Fraction, y: Fraction, slack: Fraction) -> Interval:
    """The filter odometer: a line in V, tangent to advanced composition at V = y (Whitehouse et al. 2023, Thm 2).

    >>> print(round(filter_bound(precision(20), Fraction(1), Fraction(1, 10), Fraction(1, 10**6)).upper, 6))
    9.642420
    """
    tail = -p(slack).log()
    return (tail * y / 2).sqrt() + v * (tail / (2 * y)).sqrt() + v / 2


def mixture_bound(p: Precision, v: Fraction, r: Fraction, slack: Fraction) -> Interval:
    """The mixture odometer (Whitehouse et al. 2023, Thm 2, corrected).

    >>> print(round(mixture_bound(precision(20), Fraction(10), Fraction(1), Fraction(1, 10**9)).upper, 6))
    26.961072
    """
    tail = p((v + r) / r).log() / 2 - p(slack).log()
    return (2 * (v + r) * tail).sqrt() + v / 2


def stitched_bound(p: Precision, v: Fraction, v0: Fraction, slack: Fraction) -> Interval:
    """The stitched odometer, for V >= v0 (Whitehouse et al. 2023, Thm 2).

    >>> print(round(stitched_bound(precision(20), Fraction(100), Fraction(1, 100), Fraction(1, 10**9)).upper, 6))
    122.923209
    """
    tail = p(2 * v / v0).log().log() + Fraction(72, 100) * (p(Fraction(52, 10) / slack).log())
    return Fraction(17, 10) * (v * tail).sqrt() + v / 2


BOUNDS: dict[Kind, Callable[[Precision, Fraction, Fraction, Fraction], Interval]] = {
    "filter": filter_bound,
    "mixture": mixture_bound,
    "stitched": stitched_bound,
}


@lru_cache(maxsize=4096)
def most_variance(kind: Kind, constant: Fraction, slack: Fraction, epsilon: Fraction) -> Fraction:
    """The largest V, to 12 digits, at which a bound is at most epsilon; 0 if there is none. Remembered for a budget.

    >>> most = most_variance("filter", Fraction(1, 10), Fraction(1, 10**6), Fraction(10))
    >>> filter_bound(precision(20), most, Fraction(1, 10), Fraction(1, 10**6)).upper <= 10
    True
    """

    def excess(variance: Fraction) -> Fraction:
        return Fraction(BOUNDS[kind](precision(DIGITS), variance, constant, slack).upper) - epsilon

    first = constant if kind == "stitched" else ZERO
    if excess(first) > 0:
        return ZERO
    return crossing(excess, first, first + epsilon * 2)  # the bound is above V/2


_IN_FLOATS = Fraction(1, 10**250)


def constant_for(kind: Kind, epsilon: Fraction, slack: Fraction) -> Fraction:
    """The tuning constant for a target epsilon: any constant is valid, this one is tight where it matters.

    filter: tangent at the target. mixture: the r with the smallest bound at the V that advanced composition allows
    for the target. stitched: v0 where advanced composition reaches a tenth of the target, so that it is finite by then.

    >>> float(constant_for("stitched", Fraction(1), Fraction(1, 10**6))) < 0.001
    True
    """
    target = min(rounded_up(variance_at(epsilon, slack)), Fraction(LARGEST))
    if kind == "filter":
        return target
    if kind == "stitched":
        return rounded_up(variance_at(epsilon / 10, slack))
    if not _IN_FLOATS < target < 1 / _IN_FLOATS:
        return target  # floats could not search there

    def at_target(log_r: float) -> float:
        r = Fraction(math.exp(log_r))
        return float(mixture_bound(precision(20), target, r, slack).upper)

    middle = math.log(target)
    return Fraction(f"{math.exp(smallest_at(at_target, middle - 12, middle + 12)):.3g}")


def rogers_2016(p: Precision, v: Fraction, rows: int, slack: Fraction) -> Interval:
    """The odometer of Rogers et al. 2016 as Whitehouse et al. 2023, Lemma 4 should read.

    See errata, Whitehouse E5. For comparison; not a guarantee.

    >>> print(round(rogers_2016(precision(20), Fraction(2), 10**4, Fraction(1, 10**6)).upper, 1))
    28.4
    """
    n = p(rows)
    inverse = 1 / (n * n)
    if Fraction(inverse.upper) <= v <= 1:
        tail = (110 * p(1).exp()).log() + 2 * (n.log() / slack).log()
        return (2 * v * tail).sqrt() + v / 2
    growth = 1 + (1 + n * n * v).log() / 2
    tail = (4 / p(slack) * (n.log() / p(2).log())).log()
    return (2 * (inverse + v) * growth * tail).sqrt() + v / 2
