"""The default account in (epsilon, delta): a launch is admitted while any of several bounds holds.

The parts are basic composition, a Gaussian reserve (reserve.py) and Renyi filters of several orders, each with a tail
d_i that is fixed before the first answer. A part that refuses a launch which another one admits, or that meets a launch
it cannot count, is *out for good*; the filter refuses where no part would be left:

| launch | basic | reserve | Renyi order a |
|---|---|---|---|
| PureDP, ApproxDP (its delta is an exposure, once for all parts) | epsilon | RR(epsilon) | tau_a(epsilon) |
| GaussianDP with finite communication | out | mu^2 | a mu^2/2 |
| other GaussianDP | out | out | a mu^2/2 |
| zCDP, without GaussianDP | out | out: a discrete Gaussian is not GaussianDP | a rho |
| RenyiDP, tCDP | out | out | its loss at a, out if it has none |

Why this is a filter (theory, The default filter). Fix an analyst who tosses no coins. A complete transcript ends with a
part i that is in, hence was in at every prefix, and there the two worlds are those of the analyst who stops where part
i would go out. So the transcripts that end with part i add at most d_i to the hockey stick at epsilon (basic
composition: nothing, the likelihood ratio is at most e^epsilon). Exposures are a mixture as in theory, The Renyi filter
by reduction: delta'' + (1 - delta'') sum d_i <= delta. A part that skipped a launch would be in at a transcript whose
worlds are not those of its analyst: delta could reach 1.

The first launch is chosen before there is any answer. Its public loss decides how much of delta is kept for exposures
and how the rest is divided (`SHARES`; `STEPS` for Gaussian steps on samples, which have whole orders of their own); a
part that cannot count it gets nothing. High orders are for mixtures: what they take off epsilon for their tail is
small, so that a large pure launch and a small zCDP launch go together.

>>> from counterpoint import ApproxDP, Filter, PureDP, zCDP
>>> rule = Filter(ApproxDP(1, 1e-6))
>>> account = rule.start() + PureDP(0.6) + zCDP(0.0017)
>>> rule.loss(account).epsilon < 1, rule.fits(account, PureDP(0.01))
(True, True)
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from counterpoint.composition.accumulator import ZERO, Accumulator, Summand, Tuned, entry
from counterpoint.composition.advanced import order_for
from counterpoint.composition.one_order import renyi_room_at
from counterpoint.composition.renyi_sums import renyi_loss
from counterpoint.composition.reserve import UNIT, Payment, opened, pure_within, reserve_for, spent, units_up
from counterpoint.composition.sums import GaussianSum
from counterpoint.encoding import Tagged, Value
from counterpoint.errors import NotCovered
from counterpoint.measures import ApproxDP, PureDP, SampledGaussianDP, Unbounded
from counterpoint.measures.conversions import response_of
from counterpoint.measures.loss import Loss
from counterpoint.measures.pure import largest_pure_below, pure_below, renyi_of
from counterpoint.numbers.exact import added_up, taken_out
from counterpoint.privacy.claims import Interaction


class Division(Tagged, Value, frozen=True, cache_hash=True):
    """Which share of delta is slack, and how the parts divide that; the rest of delta is for exposures.

    `with_reserve` is for a first launch that suits the reserve: its share, then one for each order. `among_orders`
    divides the slack otherwise, and for every reading below the budget.
    """

    slack: Fraction
    with_reserve: tuple[Fraction, ...]
    among_orders: tuple[Fraction, ...]


class Shares(Tagged, Value, frozen=True, cache_hash=True):
    """The whole table. `steps` says how many times farther from 1 each order lies than the best one for the budget
    (`union_within`); then come the divisions if the first launch has no delta, and if it has one.

    The parts and tails of a union of filters must be fixed before the first answer (theory, The default filter); any
    choice is valid, a good one is tight. `python -m bench.mixing` searches over the workloads of
    `bench/workloads.json`, of which half are held out, and prints this table.

    A ledger holds these numbers in its accounts, but its rules say no more than `by="best"`: a change of a number here
    changes what a stored rule means. So a better table comes with another name for `by`, and this one stays.

    >>> [sum(row.among_orders) for row in (SHARES.without_delta, SHARES.with_delta)]
    [Fraction(1, 1), Fraction(1, 1)]
    """

    steps: tuple[Fraction, ...]
    without_delta: Division
    with_delta: Division


def _in_proportion(*weights: int) -> tuple[Fraction, ...]:
    return tuple(Fraction(weight, sum(weights)) for weight in weights)


SHARES = Shares(
    steps=(Fraction(7, 10), Fraction(12, 10), Fraction(3), Fraction(344, 10)),
    without_delta=Division(
        slack=Fraction(885, 1000),
        with_reserve=_in_proportion(900, 10, 78, 23, 30),
        among_orders=_in_proportion(51, 920, 46, 26),
    ),
    with_delta=Division(
        slack=Fraction(505, 1000),
        with_reserve=_in_proportion(790, 5, 241, 10, 10),
        among_orders=_in_proportion(5, 975, 10, 10),
    ),
)

STEPS = Shares(
    steps=(),
    without_delta=Division(
        slack=Fraction(97, 100),
        with_reserve=_in_proportion(0, 94, 2, 2, 2),
        among_orders=_in_proportion(94, 2, 2, 2),
    ),
    with_delta=SHARES.with_delta,
)
"""The same if the first launch is a Gaussian step on a sample, which neither basic composition nor a reserve counts."""

Sums = tuple[int | None, ...]
"""A Renyi loss for each order in units of 2^-320, rounded up; None where the order cannot count a launch."""


class Counted(NamedTuple):
    """What a launch adds to each part."""

    pays: Payment
    renyi: Sums


class Rooms(Tagged, Value, frozen=True, cache_hash=True):
    """What the first launch has decided: delta'', and what the Renyi sums may grow to.

    `most` is what they may grow to within the budget, `read` what they could if the orders shared all of the slack; in
    units of 2^-320, rounded down. Orders that could not count the first launch have 0.
    """

    exposed: Fraction
    most: tuple[int, ...]
    read: tuple[int, ...]


class Union(Tagged, Value, frozen=True, cache_hash=True):
    """What is fixed in advance: the budget, the slack (None: the first launch decides), the shares and the orders."""

    budget: ApproxDP
    slack: Fraction | None
    shares: Shares
    orders: tuple[Fraction, ...]

    def chosen_for(self, first: Loss) -> "Union":
        """The union with the orders and shares that suit the first launch: whole orders for steps on samples."""
        if not isinstance(first, SampledGaussianDP) or self.shares == STEPS:
            return self
        return steps_within(self.budget, self.slack, first)

    def divide(self, first: Counted) -> tuple[int | None, Rooms]:
        """What the first launch leaves of the reserve, and what the other parts may grow to."""
        row = self._row(first.pays.delta)
        exposed = self.room_for_deltas(first.pays.delta)
        read = self._rooms(self._tails((ZERO, *self.shares.without_delta.among_orders), first))
        most = self._rooms(self._tails((ZERO, *row.among_orders), first))
        tails = self.tails(first)
        if not tails[0]:
            return None, Rooms(exposed, most, read)
        return opened(first.pays, self.budget.epsilon, tails[0]), Rooms(exposed, self._rooms(tails), read)

    def tails(self, first: Counted) -> tuple[Fraction, ...]:
        """The tails of the reserve and of each order; 0 for the reserve where the first launch does not suit it."""
        row = self._row(first.pays.delta)
        with_reserve, among_orders = self._tails(row.with_reserve, first), self._tails((ZERO, *row.among_orders), first)
        return with_reserve if self._suits_reserve(first, with_reserve[0], self._rooms(among_orders)) else among_orders

    def room_for_deltas(self, first: Fraction) -> Fraction:
        """The delta'' of delta'' + (1-delta'') slack = delta, if the first launch has this delta."""
        slack = self._slack(first)
        return (self.budget.delta - slack) / (1 - slack)

    def _row(self, first: Fraction) -> Division:
        return self.shares.with_delta if first else self.shares.without_delta

    def _slack(self, first: Fraction) -> Fraction:
        """What the tails have together, if the first launch has this delta."""
        return self._row(first).slack * self.budget.delta if self.slack is None else self.slack

    def _tails(self, weights: tuple[Fraction, ...], first: Counted) -> tuple[Fraction, ...]:
        """The tails of the reserve and of each order: the parts that can count the first launch share the slack."""
        counting = (first.pays.by_reserve, *(units is not None for units in first.renyi))
        own = [weight if counts else ZERO for weight, counts in zip(weights, counting, strict=True)]
        slack = self._slack(first.pays.delta) / (sum(own) or 1)
        return tuple(weight * slack for weight in own)

    def _rooms(self, tails: tuple[Fraction, ...]) -> tuple[int, ...]:
        """What each Renyi sum may grow to; 0 for an order without a tail."""
        epsilon = self.budget.epsilon
        return tuple(
            renyi_room_at(epsilon, order, tail) if tail else 0
            for order, tail in zip(self.orders, tails[1:], strict=True)
        )

    def _suits_reserve(self, first: Counted, tail: Fraction, rooms: tuple[int, ...]) -> bool:
        """Whether more launches like the first would fit into the reserve than into the Renyi parts without one.

        A reserve pays epsilon^2 for each and about three times that at its end. Any answer is sound.
        """
        epsilon = first.pays.epsilon
        if not epsilon:
            return first.pays.by_reserve
        by_renyi = max(0, *(most // units for most, units in zip(rooms, first.renyi, strict=True) if units))
        return Fraction(reserve_for(self.budget.epsilon, tail), UNIT) > epsilon**2 * (by_renyi + 3)


@lru_cache(maxsize=4096)
def union_within(budget: ApproxDP, slack: Fraction | None, shares: Shares = SHARES) -> Union:
    """The union for a budget, with the orders that suit it.

    >>> [round(float(order), 1) for order in union_within(ApproxDP(1, 1e-6), None).orders]
    [15.8, 26.4, 64.6, 730.3]
    """
    tuned_for = shares.without_delta.slack * budget.delta if slack is None else slack
    nearest = order_for(budget.epsilon, tuned_for) - 1
    return Union(budget, slack, shares, tuple(1 + step * nearest for step in shares.steps))


_HIGHEST = 512


@lru_cache(maxsize=256)
def steps_within(budget: ApproxDP, slack: Fraction | None, step: SampledGaussianDP) -> Union:
    """The union for a budget whose first launch is such a step: the order that admits most of them, and three beside.

    Between whole orders a step costs what the chord says, so all orders are whole (theory, Sampled Gaussian steps).

    >>> [int(order) for order in steps_within(ApproxDP(5, 1e-5), None, SampledGaussianDP(1, 0.01)).orders]
    [5, 3, 10, 40]
    """
    tail = STEPS.without_delta.slack * budget.delta if slack is None else slack

    def admits(order: int) -> Fraction:
        return renyi_room_at(budget.epsilon, Fraction(order), tail) / Fraction(_units(step, None, Fraction(order)) or 1)

    best = stride = 2
    while best + stride <= _HIGHEST and admits(best + stride) > admits(best):
        best, stride = best + stride, 2 * stride
    while stride > 1:
        stride //= 2
        best = max((near for near in (best, best - stride, best + stride) if near >= 2), key=admits)
    beside = (max(2, best // 2 + 1), 2 * best, 8 * best)
    return Union(budget, slack, STEPS, tuple(map(Fraction, (best, *beside))))


class BestOfSums(Accumulator, Value, frozen=True, cache_hash=True):
    """Basic composition, a Gaussian reserve and Renyi sums of several orders, side by side.

    `left` is what the reserve has left and `renyi` the Renyi sums; None for a part that is out for good. Covers PureDP,
    ApproxDP, zCDP, GaussianDP, and tCDP and RenyiDP above the lowest order.

    What has been lost is read as Haney et al. 2023, Lemma 2.19 says, threshold by threshold: below the budget's epsilon
    there is no reserve, and the orders share all of the slack; the whole is unbounded where the filter refuses.
    """

    union: Union
    rooms: Rooms | None = None
    left: int | None = None
    basic: Fraction | None = Fraction(0)
    renyi: Sums = ()
    exposed: Fraction = Fraction(0)

    theorem = (
        "basic composition, a Gaussian reserve or the Renyi filter of one of several orders, whichever has admitted "
        "everything so far (theory, The default filter; Haney et al. 2023, Thm 1.19, Thm 1.21; Henzinger et al. 2024, "
        "Thm 12.4, Cor 13.8)"
    )
    checked = "union_of_parts"
    checked_only = "their union alone, not the reserve, the Renyi filters and exposures"

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "BestOfSums":
        """Add a loss to each part; a part that cannot count it no longer counts."""
        union = self.union if self.rooms is not None else self.union.chosen_for(loss)
        counted = count(loss, interaction, union.orders)
        pays = counted.pays
        if self.rooms is None:
            left, rooms = union.divide(counted)
            renyi = counted.renyi
        else:
            left, rooms = spent(self.left, pays), self.rooms
            renyi = tuple(
                None if total is None or units is None else total + units
                for total, units in zip(self.renyi, counted.renyi, strict=True)
            )
        return BestOfSums(
            union,
            rooms,
            left,
            None if self.basic is None or pays.epsilon is None else added_up(self.basic, pays.epsilon),
            renyi,
            added_up(self.exposed, pays.delta) if pays.delta else self.exposed,
        )

    def refunded(self, budget: Loss, charge: Summand, launches: Sequence[Summand]) -> "BestOfSums":
        """The basic sum, the Renyi sums and the deltas with the launches in the place of the charge.

        The reserve keeps the charge, because what it pays depends on the order. A sum that has outgrown its room is out
        for good: it is taken out before it could fall below the room again.
        """
        return replace(super().refunded(budget, charge, launches), left=self.left)

    def _without(self, charge: Summand) -> "BestOfSums":
        """The sums that are in, without a charge that all of them counted, and no reserve."""
        rooms, counted = self.rooms, count(*charge, self.union.orders)
        assert rooms is not None and counted.pays.epsilon is not None
        basic = None if self.basic is None or self.basic > self.union.budget.epsilon else self.basic
        sums = zip(self.renyi, rooms.most, counted.renyi, strict=True)
        return BestOfSums(
            self.union,
            rooms,
            None,
            None if basic is None else taken_out(basic, counted.pays.epsilon),
            tuple(None if total is None or total > room else total - (units or 0) for total, room, units in sums),
            taken_out(self.exposed, counted.pays.delta),
        )

    @property
    def total(self) -> ApproxDP | Unbounded:
        """The smallest epsilon of the parts; a reserve says no more than that the budget holds."""
        budget = self.union.budget
        if self.rooms is None:
            return ApproxDP(0, budget.delta)
        if not self.keeps(budget):
            return Unbounded()
        bounds = [budget.epsilon] if self.basic is None else [budget.epsilon, self.basic]
        bounds.extend(budget.epsilon - Fraction(left, UNIT) for _, left in self._renyi_left(self.rooms.read))
        return ApproxDP(max(ZERO, min(bounds)), budget.delta)

    def keeps(self, budget: Loss) -> bool:
        """Whether one of the parts is in and the deltas have room."""
        if budget is not self.union.budget and budget != self.union.budget:
            return self.total.within(budget)
        rooms = self.rooms
        if rooms is None:
            return True
        if self.exposed > rooms.exposed:
            return False
        if self.left is not None or (self.basic is not None and self.basic <= self.union.budget.epsilon):
            return True
        return any(left >= 0 for _, left in self._renyi_left(rooms.most))

    def _renyi_left(self, rooms: tuple[int, ...]) -> Iterator[tuple[Fraction, int]]:
        """Each order that is in, and what its sum leaves of such a room."""
        for order, room, total in zip(self.union.orders, rooms, self.renyi, strict=True):
            if total is not None:
                yield order, room - total

    @property
    def tuned(self) -> Tuned:
        """The budget, and its slack."""
        return Tuned(self.union.budget.epsilon, self.union.budget.delta, self.union.slack)

    def delta_left(self, budget: Loss) -> Fraction:
        """How much the deltas of further launches may add up to."""
        union, rooms = self.union, self.rooms
        room = union.room_for_deltas(union.budget.delta) if rooms is None else rooms.exposed
        return max(ZERO, room - self.exposed)

    def headroom(self, budget: Loss) -> Fraction:
        """What the part that leaves most leaves."""
        if self.rooms is None:
            return first_room(self.union)
        if self.exposed > self.rooms.exposed:
            return ZERO
        rooms = [ZERO] if self.basic is None else [ZERO, self.union.budget.epsilon - self.basic]
        if self.left is not None:
            rooms.append(pure_within(self.left))
        by_order = ((order, Fraction(left, UNIT)) for order, left in self._renyi_left(self.rooms.most))
        return max(*rooms, largest_pure_below(by_order))


@lru_cache(maxsize=4096)
def first_room(union: Union) -> Fraction:
    """The largest pure first launch: as large as epsilon or, where delta is large, what a part alone admits.

    >>> first_room(union_within(ApproxDP(1, 1e-6), None))
    1
    """
    empty, budget = BestOfSums(union), union.budget
    nothing = empty.plus(PureDP(0))
    assert nothing.rooms is not None
    orders = nothing._renyi_left(nothing.rooms.read)
    rooms = [nothing.headroom(budget), *(pure_below(order, Fraction(left, UNIT)) for order, left in orders)]
    return max(epsilon for epsilon in (budget.epsilon, *rooms) if empty.plus(PureDP(epsilon)).keeps(budget))


@lru_cache(maxsize=65536)
def count(loss: Loss, interaction: Interaction, orders: tuple[Fraction, ...]) -> Counted:
    """What a launch adds to each part, remembered, since losses recur; `NotCovered` if no part can count it.

    >>> count(PureDP(0), "endless", (Fraction(2),)).renyi
    (0,)
    """
    epsilon, delta = response_of(loss) or (None, ZERO)
    pays = Payment(epsilon, entry(GaussianSum.ENTERS, loss, interaction), delta)
    renyi = tuple(_units(loss, epsilon, order) for order in orders)
    if not pays.by_reserve and all(units is None for units in renyi):
        renyi_loss(loss, orders[0])  # says why not
        raise NotCovered(f"{loss!r} has no place in any part of the default filter")
    return Counted(pays, renyi)


def _units(loss: Loss, epsilon: Fraction | None, order: Fraction) -> int | None:
    if epsilon is not None:
        return units_up(renyi_of(epsilon, order))
    try:
        return units_up(renyi_loss(loss, order))
    except NotCovered:
        return None
