"""The optimal composition of fixed (eps_i, delta_i): what the responses RR(eps_i, delta_i) lose together.

Vadhan and Wang 2021, Cor 4 and Lyu 2022, Thm 1 for interactive mechanisms; Henzinger et al. 2024, Thm 4.12 for
continual ones: any concurrent composition of them is a postprocessing of these randomized responses. Something is
exposed with probability D = 1 - prod(1 - delta_i); otherwise the RR(eps_i, 0) remain, so delta = D + (1 - D) d0(eps)
(theory, Fixed parameters).

>>> hundred = Optimal(((Fraction(1, 10), Fraction(1, 10**9), 100),))
>>> hundred.epsilon_at(1e-6), hundred.bounds.delta_at(4), hundred.method
(4.787723760811647, Enclosure(lower=3.432311976470558e-05, upper=3.432311976470559e-05), 'counting')
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, groupby, repeat
from math import comb, floor
from operator import mul
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from counterpoint.composition.fixed.lattice import Lattice
from counterpoint.composition.fixed.masses import Groups, LossShape, common_measure, largest_loss
from counterpoint.composition.fixed.totals import (
    INFINITE,
    Composed,
    Parts,
    at_most,
    crossing,
    exposure,
    format_parts,
    left_after,
    log_of,
    remembered,
    with_exposure,
)
from counterpoint.encoding import Value
from counterpoint.measures import ApproxDP, PureDP
from counterpoint.measures.divergences import renyi_of_pure, renyi_to_epsilon
from counterpoint.measures.loss import Loss
from counterpoint.numbers import Interval, Precision, certify, precision
from counterpoint.numbers.rounding import rounded_up


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

    The optimal bound by counting: exact for hundreds of mechanisms with few different parameters.

    The delta at eps of independent randomized responses is P[L > eps] - e^eps P[L < -eps], with L their privacy loss
    (theory, Fixed parameters; by symmetry the other world has P[L < -eps] of mass above eps). Equal parameters are
    counted, so L has as many values as there are counts, not subsets (Murtagh and Vadhan 2016 enumerate those). The
    responses are dealt into two halves: for each value of the one, a sum over the values of the other is looked up, and
    2^26 outcomes cost 2^13. The arithmetic is the caller's: intervals where epsilons are numbers, fractions where every
    e^eps is one.

    >>> one = Counting.of(((Fraction(800), 1),))
    >>> one.delta_bounds(Fraction(799)).agrees_to(15), one.delta_above(Fraction(800)) == 0
    (True, True)

    >>> ten = Counting.of(((Fraction(1, 10), 10),))
    >>> print(f"{ten.delta_bounds(Fraction(1, 2)).upper:.16f}")
    0.0099296269173889
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


REACH = Fraction(1, 10**300)
"""The smallest d0 that a lattice is asked for."""
_MOST_DIFFERENT, _CELLS = 4096, 600
"""From how many different epsilons on they are rounded, and to how many; the bounds then lie about 0.35 % apart."""
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
    """Randomized responses `groups`, composed.

    The optimal composition of randomized responses that expose nothing: RR(eps_1, 0), RR(eps_2, 0), ...

    Its delta at eps is d0 of theory, Fixed parameters. It is counted where there are few values to count, and convolved
    on a lattice otherwise; where a lattice's d0 would be below 1e-300, the best Renyi order bounds epsilon. Parameters
    that floating point cannot hold (an epsilon above 10^15, or all of them below 10^-290) compose by their sum.

    >>> hundred = Unexposed(((Fraction(1, 10), 100),))
    >>> hundred.method, f"{float(hundred.epsilon_above(Fraction(1, 10**6))):.9f}"
    ('counting', '4.774567588')
    """

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
        if self._coarser is not None:
            return self._coarser[1].delta_above(epsilon) if epsilon < self.most else Decimal(0)
        return self._near(epsilon).delta_above(epsilon) if epsilon < self.most else Decimal(0)

    def delta_below(self, epsilon: Fraction) -> Decimal:
        """A lower bound on d0."""
        if self._coarser is not None:
            return self._coarser[0].delta_below(epsilon)
        return self._near(epsilon).delta_below(epsilon) if epsilon < self.most else Decimal(0)

    def epsilon_above(self, delta: Fraction) -> Fraction:
        """An epsilon at which d0 is at most delta: about the smallest."""
        if delta == 0 or not self.groups or self.method == "basic":
            return self.most
        if self._coarser is not None:
            return min(self.most, self._coarser[1].epsilon_above(delta))
        if self.by_renyi(delta):
            return self._renyi_epsilon(delta)
        guess = self._guess(delta)
        return crossing(self._near(guess).delta_above, delta, Fraction(0), self.most, guess)[1]

    def epsilon_below(self, delta: Fraction) -> Fraction:
        """An epsilon at which d0 is above delta: about the largest; 0 where none was found."""
        if delta == 0 or not self.groups:
            return self.most
        if self._coarser is not None:
            below, above = self._coarser
            return below._epsilon_below(delta, min(below.most, above.epsilon_above(delta)))
        return self._epsilon_below(delta, self.epsilon_above(delta))

    def _epsilon_below(self, delta: Fraction, high: Fraction) -> Fraction:
        """The same, from an epsilon on that is surely too large."""
        curve = self._near(high)
        low, step = high, high / 2**40
        while low > 0 and at_most(curve.delta_below(low), delta):
            low, step = max(Fraction(0), low - step), 4 * step
        return crossing(curve.delta_below, delta, low, high, low)[0] if low > 0 else low

    @cached_property
    def _coarser(self) -> "tuple[Unexposed, Unexposed] | None":
        """Responses that reveal no more, and ones that reveal no less, with far fewer different epsilons.

        RR(epsilon) grows with epsilon: the smallest and the largest of each cell bound the rest. In a cell of width w
        the squares of n responses move by about n epsilon w, so cells whose w is as the root of 1/(density epsilon)
        move the sum of squares least: those in which the roots of epsilon times the gaps add up to the same.
        """
        if len(self.groups) <= _MOST_DIFFERENT or self.method != "lattice":
            return None
        sizes = np.array([float(epsilon) for epsilon, _ in self.groups])
        weights = np.sqrt([float(copies) for _, copies in self.groups]) * np.sqrt(sizes)
        width = np.cumsum(weights * np.sqrt(np.diff(sizes, append=sizes[-1])))
        cells = np.minimum(width / (width[-1] or 1.0) * _CELLS, _CELLS - 1).astype(np.int64)
        firsts = np.flatnonzero(np.diff(cells, prepend=-1)).tolist()
        lasts = [*(first - 1 for first in firsts[1:]), len(sizes) - 1]
        counted = list(accumulate((copies for _, copies in self.groups), initial=0))
        held = [counted[last + 1] - counted[first] for first, last in zip(firsts, lasts, strict=True)]
        below, above = (
            Unexposed(tuple((self.groups[end][0], number) for end, number in zip(ends, held, strict=True)))
            for ends in (firsts, lasts)
        )
        return below, above

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


class Optimal(Composed, Value, frozen=True):
    """Randomized responses RR(epsilon, delta), composed."""

    parts: Parts

    def __repr__(self) -> str:
        return f"{type(self).__name__}({format_parts(self.parts)})"

    @property
    def loss(self) -> "Optimal":
        """Itself: it is a whole curve, not an amount of one measure."""
        return self

    @property
    def method(self) -> str:
        """Either "counting" or "lattice"; "basic" for parameters out of all proportion."""
        return _unexposed(self.parts).method

    def _by_renyi(self, delta: Fraction) -> bool:
        """Where a lattice's d0 would be below 1e-300."""
        left = left_after(delta, exposure(self.parts).high)
        return left is not None and _unexposed(self.parts).by_renyi(left)

    def _epsilon_above(self, delta: Fraction) -> Fraction | Decimal:
        """An epsilon at which d0 is at most what the exposures leave of delta."""
        left = left_after(delta, exposure(self.parts).high)
        return INFINITE if left is None else _unexposed(self.parts).epsilon_above(left)

    def _epsilon_below(self, delta: Fraction) -> Fraction | Decimal:
        """An epsilon at which d0 is still more than that."""
        left = left_after(delta, exposure(self.parts).low)
        return INFINITE if left is None else _unexposed(self.parts).epsilon_below(left)

    def _delta_above(self, epsilon: Fraction) -> Decimal:
        """D + (1 - D) d0 from above."""
        return with_exposure(exposure(self.parts).high, _unexposed(self.parts).delta_above(epsilon)).upper

    def _delta_below(self, epsilon: Fraction) -> Decimal:
        """D + (1 - D) d0 from below."""
        return with_exposure(exposure(self.parts).low, _unexposed(self.parts).delta_below(epsilon)).lower

    def group(self, size: int) -> "Optimal":
        """Each mechanism's loss for a group, composed."""
        larger = [(ApproxDP(epsilon, delta).group(size), copies) for epsilon, delta, copies in self.parts]
        return Optimal(tuple((loss.epsilon, loss.delta, copies) for loss, copies in larger))

    def as_pure(self) -> PureDP:
        """The sum of the epsilons, if no delta is above 0."""
        if any(delta for _, delta, _ in self.parts):
            raise self._no_conversion("PureDP")
        return PureDP(_unexposed(self.parts).most)


class OptimalParts(Optimal, frozen=True):
    """The same for parts of the data, k of which neighbours reach; data farther apart may reach more than k.

    Three units may move three parts by two steps each where two parts were paid for, and RR(2e) three times is not
    within RR(3e) twice (theory, Groups). So a group's loss is that of the sum.

    >>> OptimalParts(((Fraction(1), Fraction(0), 2),)).group(3)
    PureDP(6)
    """

    def group(self, size: int) -> Loss:  # type: ignore[override]  # no composition of the parts' groups
        """The group loss of all parts together, as one loss; itself for one unit."""
        if size == 1:
            return self
        total, _ = ApproxDP.compose_fixed({ApproxDP(epsilon, delta): copies for epsilon, delta, copies in self.parts})
        assert isinstance(total, ApproxDP)
        return total.group(size) if total.delta else PureDP(total.epsilon).group(size)


@remembered
def _unexposed(parts: Parts) -> Unexposed:
    together = groupby(parts, key=lambda part: part[0])  # they are sorted by epsilon
    groups = ((epsilon, sum(copies for *_, copies in same)) for epsilon, same in together)
    return Unexposed(tuple((epsilon, copies) for epsilon, copies in groups if epsilon))
