"""Planned launches: what is declared before the first answer reaches the fixed optimum, and the rest stays adaptive.

The residue that a filter starts from (theory, The Gaussian reserve) may be the product of the randomized responses that
are planned, beside the largest Gaussian reserve with which all of them are still within the budget. A launch that a
planned one dominates takes it, at no other cost. Any other is paid from the reserve, or, if it is pure, from planned
copies: RR(e) costs the least k with R(n) >= RR(e) (x) R(n - k), R(n) being n copies (theory, Planned launches).

>>> from counterpoint import ApproxDP, Filter, PureDP
>>> rule = Filter.planned(ApproxDP(3, 1e-6), PureDP(0.1))
>>> rule
Filter.planned(ApproxDP(3, 1e-6), 46 x PureDP(0.1))
>>> rule.would_admit(rule.start(), PureDP(0.1)), rule.would_admit(rule.start(), PureDP(0.3))
(46, 10)
"""

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from math import comb

from msgspec.structs import replace

from counterpoint.composition.accumulator import ZERO, Accumulator, Tuned, entry
from counterpoint.composition.fixed.compose import optimal_of
from counterpoint.composition.reserve import UNIT, left_after, left_after_gaussian, pure_within
from counterpoint.composition.sums import GaussianSum
from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.measures import ApproxDP, GaussianDP, PureDP, Unbounded
from counterpoint.measures.conversions import response_of
from counterpoint.measures.loss import Loss
from counterpoint.numbers import Interval, format_number, precision
from counterpoint.numbers.exact import added_up
from counterpoint.numbers.rounding import crossing, short
from counterpoint.privacy.claims import Interaction

Free = tuple[tuple[Loss, int], ...]
"""Planned launches that are not taken yet, from the smallest epsilon on: losses, and how many there are of each."""

_MOST_PLANNED = 10**5
_SMALLER = 1 - Fraction(1, 10**9)
"""What a reserve beside a plan is cut by: its bounds are computed in floats, which need not agree elsewhere."""


class PlannedRest(Accumulator, Value, frozen=True):
    """What is left: planned launches that are free, beside a Gaussian reserve; and basic composition by itself.

    Covers PureDP, ApproxDP, and GaussianDP with finite communication or without memory. `left` is in units of 2^-320;
    None once a launch could not be paid. Deltas of launches are exposures, up to `room` in all.
    """

    budget: ApproxDP
    planned: Free
    room: Fraction
    free: Free
    left: int | None
    basic: Fraction | None = Fraction(0)
    exposed: Fraction = Fraction(0)
    theorem = (
        "what is left of planned randomized responses and a Gaussian reserve (theory, Planned launches), or basic "
        "composition, whichever has admitted everything so far; Haney et al. 2023, Thm 1.19, 1.20 and Henzinger et "
        "al. 2024, Thm 12.4, Cor 14.10"
    )
    checked = "union_of_parts"
    checked_only = "their union alone, not what is left of the plan and exposures"

    @classmethod
    def within(cls, budget: Loss, planned: object, slack: Fraction | None) -> "PlannedRest":
        """What a budget starts with for a plan: as many of one loss as fit, or all of a list."""
        if not isinstance(budget, ApproxDP) or not budget.delta:
            raise InvalidParameter("planned launches are for budgets in ApproxDP with a delta above 0")
        if slack is not None and (slack > budget.delta or slack >= 1):
            raise InvalidParameter(
                f"slack must be below 1 and at most the budget's delta {format_number(budget.delta)}, not "
                f"{format_number(slack)}"
            )
        largest = isinstance(planned, Loss)
        losses = [planned] if isinstance(planned, Loss) else list(planned) if isinstance(planned, Iterable) else []
        if not losses or not all(isinstance(loss, Loss) and response_of(loss) is not None for loss in losses):
            raise NotCovered("a plan is a loss in PureDP or ApproxDP, or a list of such losses")
        counted: Counter[Loss] = Counter(losses)
        if largest:
            counted[losses[0]] = _largest_count(budget, losses[0], slack)
        if not _fits(budget, counted, slack):
            raise InvalidParameter(
                f"the planned launches do not fit into {budget!r}"
                + (f" with slack={format_number(slack)}" if slack is not None else "")
            )
        free = tuple(sorted(counted.items(), key=lambda group: _response(group[0])))
        return cls(budget, free, _room(budget, counted, slack), free, _reserve_beside(budget, free, slack))

    def __repr__(self) -> str:
        return " + ".join(f"{copies} x {loss!r}" for loss, copies in self.planned)

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "PlannedRest":
        """Take a planned launch, or pay from the reserve or from planned copies."""
        response, square = response_of(loss), entry(GaussianSum.ENTERS, loss, interaction)
        if response is None and square is None:
            self._not_covered(loss, "PureDP, ApproxDP, and GaussianDP of mechanisms with finite communication")
        if response is None:
            assert square is not None
            left = None if self.left is None else left_after_gaussian(self.left, square)
            return replace(self, left=left, basic=None)
        epsilon, delta = response
        basic = None if self.basic is None else added_up(self.basic, epsilon)
        free, left = (self.free, None) if self.left is None else self._paid(epsilon, self.left)
        return replace(self, free=free, left=left, basic=basic, exposed=added_up(self.exposed, delta))

    def _paid(self, epsilon: Fraction, left: int) -> tuple[Free, int | None]:
        """What RR(epsilon) leaves, by the first of the ways that pays for it."""
        planned = [_response(loss)[0] for loss, _ in self.free]
        if epsilon in planned:
            return self._free_without(planned.index(epsilon), 1), left
        after = left_after(left, epsilon)
        if after is not None:
            return self.free, after
        larger = next((index for index, each in enumerate(planned) if each >= epsilon), None)
        if larger is not None:
            return self._free_without(larger, 1), left
        for index, each in reversed(list(enumerate(planned))):
            copies = exchange(self.free[index][1], each, epsilon)
            if copies is not None:
                return self._free_without(index, copies), left
        return self.free, None

    def _free_without(self, index: int, taken: int) -> Free:
        loss, copies = self.free[index]
        rest = ((loss, copies - taken),) if copies > taken else ()
        return (*self.free[:index], *rest, *self.free[index + 1 :])

    @property
    def total(self) -> ApproxDP | Unbounded:
        """The sum of epsilons, and no more than the budget while it holds."""
        if not self.keeps(self.budget):
            return Unbounded()
        most = self.budget.epsilon
        return ApproxDP(most if self.basic is None else min(most, self.basic), self.budget.delta)

    def keeps(self, budget: Loss) -> bool:
        """Whether everything was paid, by one of the two ways, and the deltas have room."""
        if not self.budget.within(budget) or self.exposed > self.room:
            return False
        return self.left is not None or (self.basic is not None and self.basic <= self.budget.epsilon)

    @property
    def tuned(self) -> Tuned:
        """The budget: what was planned is not read from its plan, which holds between neighbours alone."""
        return Tuned(self.budget.epsilon, self.budget.delta, None)

    def delta_left(self, budget: Loss) -> Fraction:
        """How much the deltas of further launches may add up to."""
        return max(ZERO, self.room - self.exposed)

    def headroom(self, budget: Loss) -> Fraction:
        """The largest pure launch that is planned, or that something pays for."""
        if self.exposed > self.room:
            return ZERO
        rooms = [ZERO] if self.basic is None else [ZERO, self.budget.epsilon - self.basic]
        if self.left is not None:
            rooms += [pure_within(self.left), *(_response(loss)[0] for loss, _ in self.free)]
            rooms += [_largest_exchange(copies, _response(loss)[0]) for loss, copies in self.free]
        return max(rooms)


def _response(loss: Loss) -> tuple[Fraction, Fraction]:
    response = response_of(loss)
    assert response is not None
    return response


def _room(budget: ApproxDP, counted: Counter[Loss], slack: Fraction | None) -> Fraction:
    """What the deltas of all launches may add up to: those of the plan, or what the slack leaves."""
    planned = sum((copies * _response(loss)[1] for loss, copies in counted.items()), ZERO)
    return planned if slack is None else (budget.delta - slack) / (1 - slack)


def _tail(budget: ApproxDP, counted: Counter[Loss], slack: Fraction | None) -> Fraction:
    """The d with room + (1 - room) d <= delta, 0 or more."""
    room = _room(budget, counted, slack)
    return max(ZERO, (budget.delta - room) / (1 - room)) if room < 1 else ZERO


def _responses(counted: Counter[Loss]) -> Counter[Loss]:
    pure: Counter[Loss] = Counter()
    for loss, copies in counted.items():
        pure[PureDP(_response(loss)[0])] += copies
    return pure


def _fits(budget: ApproxDP, counted: Counter[Loss], slack: Fraction | None) -> bool:
    """Whether the plan alone is within the budget: its responses within the tail, its deltas within the room."""
    planned = sum((copies * _response(loss)[1] for loss, copies in counted.items()), ZERO)
    tail = _tail(budget, counted, slack)
    if planned > _room(budget, counted, slack) or planned > budget.delta:
        return False
    pure = _responses(counted)
    if sum(copies * _response(loss)[0] for loss, copies in pure.items()) <= budget.epsilon:
        return True
    return optimal_of(pure)._delta_above(budget.epsilon) <= tail


def _largest_count(budget: ApproxDP, loss: Loss, slack: Fraction | None) -> int:
    """How many of a loss are within the budget: R(n) grows with n."""
    low, high = 0, 1
    while high <= _MOST_PLANNED and _fits(budget, Counter({loss: high}), slack):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _fits(budget, Counter({loss: middle}), slack) else (low, middle)
    return max(1, low)


def _reserve_beside(budget: ApproxDP, free: Free, slack: Fraction | None) -> int:
    """The largest variance, but for a billionth, with which the plan is still within the budget; 0 where none is."""
    counted = Counter(dict(free))
    tail, pure = _tail(budget, counted, slack), _responses(counted)
    if not tail:
        return 0

    def excess(mu: Fraction) -> Fraction:
        found = optimal_of({**pure, GaussianDP(mu): 1})._delta_above(budget.epsilon)
        return Fraction((precision(20)(Fraction(found)) / tail).log().upper) if found else -_ONE

    high = GaussianDP.for_budget(min(budget.epsilon, _HUGE), tail).mu * 2
    low = high
    for _ in range(_HALVINGS):
        low /= 2
        if excess(low) <= 0:
            mu = crossing(excess, low, high)
            return int(mu * mu * UNIT * _SMALLER)
    return 0


_ONE, _HUGE, _HALVINGS = Fraction(1), Fraction(10**12), 24
_EXCHANGE_DIGITS = 60
_MOST_EXCHANGED = 500


@lru_cache(maxsize=4096)
def exchange(copies: int, each: Fraction, epsilon: Fraction) -> int | None:
    """The least k with R(n) >= RR(epsilon) (x) R(n - k), R(n) being n copies of RR(each); None where even n is too few.

    k + 1 serves if k does, and k does not fall with epsilon (theory, Planned launches): so it is found by halving, and
    remembered. What 60 digits do not decide counts as no. Of more than 500 copies 500 are looked at, since the others
    may stand beside them: else one launch could take minutes.

    >>> [exchange(46, Fraction(1, 10), Fraction(e, 100)) for e in (5, 10, 15, 20, 50, 80)]
    [1, 1, 3, 6, 31, None]
    """
    if epsilon <= each:
        return 1 if copies else None
    if copies > _MOST_EXCHANGED:
        return exchange(_MOST_EXCHANGED, each, epsilon)
    least = -(-epsilon.numerator * each.denominator // (epsilon.denominator * each.numerator))  # epsilon <= k each
    if least > copies or not _pays(copies, copies, each, epsilon):
        return None
    low, high = least - 1, copies
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _pays(copies, middle, each, epsilon) else (middle, high)
    return high


def _pays(copies: int, taken: int, each: Fraction, epsilon: Fraction) -> bool:
    """Whether k copies pay for RR(epsilon): compared where R(n) has its knots, at which alone it could fail."""
    whole, rest = Responses(copies, each), Responses(copies - taken, each)
    p = precision(_EXCHANGE_DIGITS)
    lie = 1 / (1 + p(epsilon).exp())
    for knot in range((copies + 1) // 2, copies + 1):
        x = (2 * knot - copies) * each
        right = (1 - lie) * rest.stick(x - epsilon) + lie * rest.stick(x + epsilon)
        top = knot == copies  # both sides vanish there, as epsilon <= k each
        if not top and right.upper > whole.stick(x).lower:
            return False
    return True


class Responses:
    """The hockey stick of n randomized responses of one epsilon, at any threshold e^x."""

    def __init__(self, copies: int, each: Fraction) -> None:
        p = precision(_EXCHANGE_DIGITS)
        truth = 1 / (1 + p(-each).exp())
        lie = 1 - truth if copies else p(0)
        truths, lies = _powers(truth, copies, p(1)), _powers(lie, copies, p(1))
        self._copies, self._each, self._precision = copies, each, p
        self._above, self._others = [p(0)], [p(0)]
        for true in range(copies, -1, -1):
            ways = comb(copies, true)
            self._above.append(self._above[-1] + truths[true] * lies[copies - true] * ways)
            self._others.append(self._others[-1] + lies[true] * truths[copies - true] * ways)

    def stick(self, x: Fraction) -> Interval:
        """P[L > x] - e^x Q[L > x]: L is (2 j - n) epsilon for j truths."""
        first = (x / self._each + self._copies) / 2  # L > x just if j > first
        number = min(self._copies + 1, max(0, self._copies - first.__floor__()))
        grown = self._precision(x).exp()
        return (self._above[number] - grown * self._others[number]).at_least(0)


def _powers(base: Interval, most: int, one: Interval) -> list[Interval]:
    powers = [one]
    for _ in range(most):
        powers.append(powers[-1] * base)
    return powers


@lru_cache(maxsize=4096)
def _largest_exchange(copies: int, each: Fraction) -> Fraction:
    """The largest epsilon, cut to 12 digits, that all copies together pay for: where the total variations agree.

    R(n) >= RR(epsilon) just if it holds at 0: a trade-off curve is convex, and that of RR has one corner there.
    """
    variation = Responses(min(copies, _MOST_EXCHANGED), each).stick(Fraction(0))
    return short(Fraction(((1 + variation) / (1 - variation)).log().at_least(0).lower)) if copies else ZERO
