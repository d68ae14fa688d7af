"""The optimal bound by counting: exact for hundreds of mechanisms with few different parameters.

The delta at eps of independent randomized responses is P[L > eps] - e^eps P[L < -eps], with L their privacy
loss (theory, Fixed parameters; by symmetry the other world has P[L < -eps] of mass above eps). Equal parameters are
counted, so L has as many values as there are counts, not subsets (Murtagh and Vadhan 2016 enumerate those). The
responses are dealt into two halves: for each value of the one, a sum over the values of the other is looked
up, and 2^26 outcomes cost 2^13. The arithmetic is the caller's: intervals where epsilons are numbers,
fractions where every e^eps is one.

>>> ten = Counting.of(((Fraction(1, 10), 10),))
>>> print(f"{ten.delta_bounds(Fraction(1, 2)).upper:.16f}")
0.0099296269173889
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, repeat
from math import comb, floor
from operator import mul
from typing import Generic, Protocol, Self, TypeVar

from counterpoint.composition.fixed.lattices.moments import Groups, common_measure, largest_loss
from counterpoint.numbers import Interval, Precision, certify


class Exponent(Protocol):
    """A loss that can be added up and compared: a number of units, or the logarithm of a fraction."""

    def __add__(self, other: Self, /) -> Self: ...
    def __sub__(self, other: Self, /) -> Self: ...
    def __neg__(self) -> Self: ...
    def __mul__(self, times: int, /) -> Self: ...
    def __lt__(self, other: Self, /) -> bool: ...


_ONCE = 16
"""About how often the shorter half is gone through to answer one question."""
_WORK = 2**18

E = TypeVar("E", bound=Exponent)
W = TypeVar("W", Interval, Fraction)


@dataclass(frozen=True)
class LossValues(Generic[E, W]):
    """The values that a loss can take, ascending, with their probabilities and running sums of these."""

    losses: Sequence[E]
    weights: Sequence[W]
    below: Sequence[W]
    above: Sequence[W]


def loss_values(groups: Sequence[tuple[E, int]], exp: Callable[[E], W], zero: E) -> LossValues[E, W]:
    """Count the outcomes of `groups`: pairs of an epsilon and how many responses have it."""
    counted: dict[E, W] = {zero: exp(zero)}
    for epsilon, copies in groups:
        step = list(_outcomes(epsilon, copies, exp))
        merged: dict[E, W] = {}
        for loss, weight in counted.items():
            for change, factor in step:
                key, part = loss + change, weight * factor
                merged[key] = merged[key] + part if key in merged else part
        counted = merged
    losses = sorted(counted)
    weights = [counted[loss] for loss in losses]
    none = weights[0] * 0
    below = list(accumulate(weights, initial=none))
    above = list(accumulate(reversed(weights), initial=none))[::-1]
    return LossValues(losses, weights, below, above)


def _outcomes(epsilon: E, copies: int, exp: Callable[[E], W]) -> Iterable[tuple[E, W]]:
    """How the loss of equal responses is distributed: a binomial number of them say the truth."""
    against = exp(-epsilon)
    truth, lie = 1 / (1 + against), against / (1 + against)
    one = exp(epsilon * 0)
    truths = list(accumulate(repeat(truth, copies), mul, initial=one))
    lies = list(accumulate(repeat(lie, copies), mul, initial=one))
    for true in range(copies + 1):
        yield epsilon * (2 * true - copies), truths[true] * lies[copies - true] * comb(copies, true)


def tails(one: LossValues[E, W], other: LossValues[E, W], cut: E) -> tuple[W, W]:
    """P[L > cut] and P[L < -cut] for the sum L of two independent losses; `one` is the longer list."""
    over = under = one.below[0]
    for loss, weight in zip(other.losses, other.weights, strict=True):
        over = over + weight * one.above[bisect_right(one.losses, cut - loss)]
        under = under + weight * one.below[bisect_left(one.losses, -cut - loss)]
    return over, under


@dataclass(frozen=True)
class Half:
    """Some of the groups, with at most how many different losses they have, and the work of counting them."""

    groups: Groups = ()
    counts: int = 1
    points: int = 1
    work: int = 0

    @property
    def values(self) -> int:
        """One loss per count, or per point of their common lattice if that has fewer."""
        return min(self.counts, self.points)

    def plus(self, group: tuple[Fraction, int]) -> "Half":
        """With one group more."""
        groups, copies = (*self.groups, group), group[1]
        points = int(largest_loss(groups) / common_measure(groups)) + 1
        binomials = copies * copies // 50  # long integers: the time grows with their length
        work = self.work + self.values * (copies + 1) + binomials
        return Half(groups, self.counts * (copies + 1), points, work)


def deal(groups: Groups) -> tuple[Half, Half] | None:
    """Two halves, the first with more values: its sums are made once, the second is gone through each time.

    None where counting would take more than about a second.

    >>> halves = deal(((Fraction(1), 5), (Fraction(2), 9), (Fraction(3), 9)))
    >>> [half.values for half in halves]
    [46, 6]
    """
    longer, shorter = Half(), Half()
    for group in sorted(groups, key=lambda group: -group[1]):
        if longer.values <= _ONCE * shorter.values:
            longer = longer.plus(group)
        else:
            shorter = shorter.plus(group)
        if longer.work + shorter.work + _ONCE * shorter.values > _WORK:
            return None
    return longer, shorter


@dataclass(frozen=True)
class Counting:
    """The optimal composition of randomized responses `groups`, counted.

    >>> one = Counting.of(((Fraction(800), 1),))
    >>> one.delta_bounds(Fraction(799)).agrees_to(15), one.delta_above(Fraction(800)) == 0
    (True, True)
    """

    groups: Groups
    halves: tuple[Half, Half]

    @classmethod
    def of(cls, groups: Groups) -> "Counting | None":
        """None where counting would take more than about a second."""
        halves = deal(groups)
        return None if halves is None else cls(groups, halves)

    def delta_above(self, epsilon: Fraction) -> Decimal:
        """An upper bound on the delta at `epsilon`."""
        return self.delta_bounds(epsilon).upper

    def delta_below(self, epsilon: Fraction) -> Decimal:
        """A lower bound on the delta at `epsilon`."""
        return self.delta_bounds(epsilon).lower

    def delta_bounds(self, epsilon: Fraction) -> Interval:
        """The delta at `epsilon`, enclosed to 17 digits."""
        cut = floor(epsilon / self._unit)

        def formula(p: Precision) -> Interval:
            over, under = tails(*self._values(p), cut)
            return over - p(epsilon).exp() * under

        return certify(formula).at_least(0)

    @cached_property
    def _unit(self) -> Fraction:
        return common_measure(self.groups)

    @cached_property
    def _counted(self) -> dict[int, tuple[LossValues[int, Interval], LossValues[int, Interval]]]:
        return {}

    def _values(self, p: Precision) -> tuple[LossValues[int, Interval], LossValues[int, Interval]]:
        if p.digits not in self._counted:
            longer, shorter = (
                loss_values([(int(each / self._unit), copies) for each, copies in half.groups], self._exp(p), 0)
                for half in self.halves
            )
            self._counted[p.digits] = longer, shorter
        return self._counted[p.digits]

    def _exp(self, p: Precision) -> Callable[[int], Interval]:
        return lambda units: p(units * self._unit).exp()
