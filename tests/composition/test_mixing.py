"""The default filter on mixtures: sound by adaptive games, without a cliff, and near the optimum where it was.

A game is played on a tree: after each answer the analyst launches whatever the rule still admits, or stops. The
mechanisms have few answers each, with the chances in both worlds, and fill their claims: randomized responses, cells of
a Gaussian, and rare answers with a large loss, which are the worst that zCDP and Renyi claims allow.
"""

import math
import random
from fractions import Fraction
from functools import cache
from itertools import pairwise
from statistics import NormalDist

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.composition.accumulator import Account
from counterpoint.composition.best import SHARES, BestOfSums
from counterpoint.composition.filters import Filter
from counterpoint.composition.reserve import GRAIN, UNIT
from counterpoint.encoding import decode, encode
from counterpoint.errors import BudgetExceeded, NotCovered
from counterpoint.measures import ApproxDP, ApproxzCDP, GaussianDP, PureDP, RenyiDP, TradeOff, tCDP, zCDP
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.relations import every_step

ONE = ApproxDP(1, "1e-6")
Outcomes = list[tuple[float, float]]
Item = tuple[Claim, Outcomes]


def of(loss, interaction="one-shot") -> Claim:
    return claim(loss, every_step(), "a test", interaction=interaction)


def short(value: float) -> Fraction:
    """A number of six digits, a little larger."""
    return Fraction(f"{value * (1 + 2e-6):.6g}")


# ---------------------------------------------------------------------------------------------------------- the games


def response(epsilon: float, delta: float = 0.0) -> Item:
    size, chance = short(epsilon), Fraction(f"{delta:.6g}")
    truth = 1 / (1 + math.exp(-float(size)))
    seen = [(truth, 1 - truth), (1 - truth, truth)]
    if not chance:
        return of(PureDP(size)), seen
    exposed = [(float(chance), 0.0), (0.0, float(chance))]
    return of(ApproxDP(size, chance)), exposed + [(p * (1 - float(chance)), q * (1 - float(chance))) for p, q in seen]


def cells(mu: float, loss) -> Item:
    """The answers of a Gaussian mechanism in six cells: GaussianDP(mu), and zCDP(mu^2/2)."""
    normal = NormalDist()
    edges = [-math.inf, *(mu / 2 + shift for shift in (-2, -1, 0, 1, 2)), math.inf]
    chances = [
        (normal.cdf(high - mu) - normal.cdf(low - mu), normal.cdf(high) - normal.cdf(low))
        for low, high in pairwise(edges)
    ]
    return of(loss), chances


def divergence(order: float, pair: Outcomes) -> float:
    """The larger of the two Renyi divergences."""

    def one_way(swap: bool) -> float:
        terms = [order * math.log(p) + (1 - order) * math.log(q) for p, q in (x[::-1] if swap else x for x in pair)]
        top = max(terms)
        return (top + math.log(sum(math.exp(term - top) for term in terms))) / (order - 1)

    return max(one_way(False), one_way(True))


def rare(chance: float, loss: float) -> Outcomes:
    """An answer that is e^loss times likelier in one world than in the other, and the rest."""
    return [(chance, chance * math.exp(-loss)), (1 - chance, 1 - chance * math.exp(-loss))]


ORDERS = [1 + 2.0 ** (n / 4) for n in range(-40, 60)]


def rare_zcdp(chance: float, loss: float) -> Item:
    pair = rare(chance, loss)
    return of(zCDP(short(1.001 * max(divergence(order, pair) / order for order in ORDERS)))), pair


def rare_renyi(order: float, chance: float, loss: float) -> Item:
    pair = rare(chance, loss)
    return of(RenyiDP(Fraction(f"{order:.4g}"), short(divergence(float(f"{order:.4g}"), pair)))), pair


def worst(rule, budget: ApproxDP, menu: list[Item], depth: int) -> float:
    """The largest delta at the budget's epsilon over all analysts with so many launches."""
    target = math.exp(budget.epsilon)

    @cache
    def after(account: Account, index: int):
        try:
            return rule.admit(account, menu[index][0])
        except (BudgetExceeded, NotCovered):
            return None

    def value(account, zero: float, one: float, left: int) -> float:
        best = max(zero - target * one, 0.0)
        for index in range(len(menu)) if left else ():
            launched = after(account, index)
            if launched is not None:
                best = max(best, sum(value(launched, zero * p, one * q, left - 1) for p, q in menu[index][1]))
        return best

    return value(rule.start(), 1.0, 1.0, depth)


def menu_for(budget: ApproxDP, draw: random.Random) -> list[Item]:
    """Mechanisms of all measures, of sizes at which a few of them fill the budget."""
    epsilon, delta = float(budget.epsilon), float(budget.delta)
    size = epsilon * draw.choice([0.2, 0.5, 0.9]) + delta / 2
    mu = draw.choice([0.3, 0.6, 1.2]) * (epsilon / 2 + delta)
    orders = Filter(budget).start().union.orders
    between = float(orders[0]) * 0.4 + float(orders[1]) * 0.6
    kinds = [
        response(size * draw.choice([0.3, 1.0])),
        response(size * draw.choice([0.1, 0.5]), delta * draw.choice([0.05, 0.3])),
        response(0.0, delta * draw.choice([0.1, 0.45])),
        cells(mu, GaussianDP(short(mu))),
        cells(mu, zCDP(short(mu * mu / 2))),
        rare_zcdp(delta * draw.choice([0.2, 0.6, 1.0]), epsilon + draw.choice([0.5, 1.5, 4.0])),
        rare_renyi(between, delta * draw.choice([0.3, 1.0]), epsilon + draw.choice([0.5, 2.0])),
    ]
    return draw.sample(kinds, 4)


BUDGETS = [
    ApproxDP("0.5", "0.1"),
    ApproxDP("0.05", "0.3"),
    ApproxDP(2, "0.01"),
    ApproxDP(1, "0.2"),
    ApproxDP(4, "0.05"),
]


@pytest.mark.parametrize("seed", [*range(16), *(pytest.param(n, marks=pytest.mark.long) for n in range(16, 150))])
def test_no_adaptive_analyst_gets_beyond_the_budget_with_a_mixture(seed):
    draw = random.Random(seed)  # noqa: S311 - which menus are tried is no secret
    budget = BUDGETS[seed % len(BUDGETS)]
    rule = Filter(budget) if seed % 3 else Filter(budget, slack=budget.delta * Fraction(draw.randint(1, 10), 10))
    assert worst(rule, budget, menu_for(budget, draw), 4) <= float(budget.delta) * (1 + 1e-9)


def test_the_games_come_near_the_budget():
    """Else those above would say little: exposures to their limit, and then a rare answer."""
    budget = ApproxDP("0.5", "0.1")
    menu = [response(0.0, 0.0245), rare_zcdp(0.03, 1.2), response(0.3)]
    assert worst(Filter(budget), budget, menu, 4) > 0.45 * float(budget.delta)


@pytest.mark.parametrize("part", ["basic", "reserve", "renyi"])
def test_a_part_that_skips_what_it_cannot_count_is_beaten(part, monkeypatch):
    """So the games find it: with the launch skipped, the part would still be in."""
    budget = ApproxDP("0.5", "0.1")
    menu = [response(0.01), rare_zcdp(0.15, 2.5)]
    if part == "renyi":
        order = float(Filter(budget).start().union.orders[0]) + 0.01
        menu = [response(0.01), rare_renyi(order, 0.15, 2.5)]
    plus = BestOfSums.plus

    def skipping(self, loss, interaction="endless"):
        account = plus(self, loss, interaction)
        fields = {name: getattr(account, name) for name in account.__struct_fields__}
        if part == "basic" and account.basic is None:
            fields["basic"] = self.basic
        if part == "reserve" and account.left is None:
            fields["left"] = self.left
        if part == "renyi" and self.renyi:
            fields["renyi"] = tuple(b if a is None else a for a, b in zip(account.renyi, self.renyi, strict=True))
        return BestOfSums(**fields)

    assert worst(Filter(budget), budget, menu, 4) <= float(budget.delta)
    monkeypatch.setattr(BestOfSums, "plus", skipping)
    assert worst(Filter(budget), budget, menu, 4) > 1.2 * float(budget.delta)


@pytest.mark.parametrize("threshold", ["0.1", "0.3", "0.45"])
def test_stopping_where_the_reading_exceeds_a_threshold_keeps_the_threshold(threshold):
    """Haney et al. 2023, Lemma 2.19: the loss is an odometer's reading at every threshold below the budget."""
    rule, bound = Filter(ApproxDP("0.5", "0.1")), ApproxDP(threshold, "0.1")

    class Stopped:
        def start(self):
            return rule.start()

        def admit(self, account, launch):
            after = rule.admit(account, launch)
            if not (rule.loss(after).epsilon <= bound.epsilon):
                raise BudgetExceeded("the reading is beyond the threshold")
            return after

    for seed in range(6):
        menu = menu_for(bound, random.Random(seed))  # noqa: S311 - as above
        assert worst(Stopped(), bound, menu, 3) <= float(bound.delta) * (1 + 1e-9)


# ----------------------------------------------------------------------------------------------------------- the tails


def tail_of_order(epsilon: Fraction, order: Fraction, room: int) -> mpmath.mpf:
    """The d for which a Renyi sum that grows to this room is (epsilon, d): the conversion, solved for d."""
    a, e, b = (mpmath.mpf(x.numerator) / x.denominator for x in (order, epsilon, Fraction(room, UNIT)))
    return mpmath.exp((a - 1) * (b - e + mpmath.log(1 - 1 / a))) / a


def tail_of_reserve(epsilon: Fraction, left: int) -> mpmath.mpf:
    e, mu = mpmath.mpf(epsilon.numerator) / epsilon.denominator, mpmath.sqrt(mpmath.mpf(left) / UNIT)
    return mpmath.ncdf(-e / mu + mu / 2) - mpmath.exp(e) * mpmath.ncdf(-e / mu - mu / 2)


FIRSTS = [
    PureDP("0.0001"),
    PureDP("0.6"),
    ApproxDP("0.0001", "1e-12"),
    ApproxDP("0.5", "1e-9"),
    zCDP("1e-6"),
    GaussianDP("1e-6"),
    RenyiDP(20, "1e-6"),
    tCDP("1e-6", 70),
]


@pytest.mark.parametrize("first", FIRSTS, ids=repr)
@pytest.mark.parametrize("budget", [ONE, ApproxDP(8, "1e-4"), ApproxDP("0.2", "0.3")], ids=repr)
@pytest.mark.parametrize("slack", [None, Fraction(1, 3), Fraction(1)], ids=str)
def test_no_slack_is_used_twice(budget, first, slack):
    """delta'' + (1 - delta'') times the sum of all tails is at most delta, computed from what each part admits."""
    rule = Filter(budget, slack=slack and slack * budget.delta)
    try:
        account = rule.start().plus(first, "one-shot")
    except NotCovered:
        return
    rooms, orders = account.rooms, account.union.orders
    with mpmath.workdps(60):
        for bounds, reserve in ((rooms.most, account.left), (rooms.read, None)):
            tails = [
                tail_of_order(budget.epsilon, order, room)
                for order, room, units in zip(orders, bounds, account.renyi, strict=True)
                if units is not None
            ]
            if reserve is not None:
                tails.append(tail_of_reserve(budget.epsilon, reserve))
            exposed = mpmath.mpf(rooms.exposed.numerator) / rooms.exposed.denominator
            delta = mpmath.mpf(budget.delta.numerator) / budget.delta.denominator
            spent = exposed + (1 - exposed) * sum(tails)
            assert 0.99 * delta < spent <= delta * (1 + mpmath.mpf(10) ** -30)


def test_the_shares_are_shares():
    for row in (SHARES.without_delta, SHARES.with_delta):
        assert sum(row.with_reserve) == sum(row.among_orders) == 1 and 0 < row.slack < 1
        assert len(row.with_reserve) - 1 == len(row.among_orders) == len(SHARES.steps)


# -------------------------------------------------------------------------------------------------- which part counts


@pytest.mark.parametrize(
    "loss, interaction, basic, reserve",
    [
        (PureDP("0.001"), "endless", True, True),
        (ApproxDP("0.001", "1e-9"), "endless", True, True),
        (GaussianDP("0.001"), "one-shot", False, True),
        (GaussianDP("0.001"), "finite", False, True),
        (GaussianDP("0.001"), "endless", False, False),
        (zCDP("1e-6"), "one-shot", False, False),
        (RenyiDP(10**6, "1e-6"), "one-shot", False, False),
    ],
    ids=str,
)
def test_which_part_counts_which_launch(loss, interaction, basic, reserve):
    """The table of theory, The default filter; a part that cannot count a launch is out for good."""
    account = (Filter(ONE).start() + PureDP("0.001")).plus(loss, interaction)
    for after in (account, account + PureDP("0.001")):
        assert (after.basic is not None, after.left is not None) == (basic, reserve)
        assert None not in after.renyi


@pytest.mark.parametrize("loss", [RenyiDP(30, "0.001"), tCDP("0.0001", 30)], ids=repr)
def test_the_orders_above_that_of_a_claim_are_out_for_good(loss):
    account = Filter(ONE).start() + PureDP("0.001") + loss + PureDP("0.001")
    assert [units is not None for units in account.renyi] == [order <= 30 for order in account.union.orders]
    assert 0 < sum(units is None for units in account.renyi) < len(account.renyi)


@pytest.mark.parametrize("loss", [ApproxzCDP("1e-6", "1e-9"), RenyiDP(2, "1e-6"), TradeOff([(0, 1), (1, 0)])], ids=repr)
def test_what_no_part_can_ever_count_is_not_covered(loss):
    for account in (Filter(ONE).start(), Filter(ONE).start() + PureDP("0.1")):
        with pytest.raises(NotCovered):
            Filter(ONE).admit(account, of(loss))


def test_what_only_a_part_that_is_out_could_count_does_not_fit():
    """After a Renyi claim of order 20 only orders up to 20 are in; they are full long before basic composition is."""
    rule = Filter(ONE)
    account = rule.admit(rule.start(), of(RenyiDP(20, "0.001")))
    with pytest.raises(BudgetExceeded):
        rule.admit(account, of(PureDP("0.9")))


def test_an_account_reads_back_from_its_bytes():
    account = Filter(ONE).start() + PureDP("0.01") + zCDP("1e-6") + ApproxDP("0.01", "1e-9")
    assert decode(encode(account), BestOfSums) == account
    assert decode(encode(Filter(ONE).start()), BestOfSums) == Filter(ONE).start()


# ------------------------------------------------------------------------------------------------- what the issue asks


def launched(rule, *losses):
    account = rule.start()
    for loss in losses:
        account = rule.admit(account, of(loss))
    return account


def test_a_large_pure_launch_fits_after_a_tiny_zcdp_one():
    rule = Filter(ONE)
    account = launched(rule, zCDP("1e-6"))
    assert rule.fits(account, PureDP("0.98")) and rule.remaining(account).epsilon >= Fraction(98, 100)
    assert rule.loss(account).epsilon < Fraction(2, 100)


def test_a_zcdp_launch_fits_after_a_large_pure_one():
    rule = Filter(ONE)
    assert rule.fits(launched(rule, PureDP("0.6")), zCDP("0.0033"))
    assert rule.fits(launched(rule, *[PureDP("0.01")] * 100), zCDP("0.0125"))


COUNTS = [(1, "0.01", 544), (1, "0.03", 59), (3, "0.1", 41), (8, "0.1", 229)]


@pytest.mark.parametrize("epsilon, size, count", COUNTS)
def test_so_many_equal_launches_are_admitted(epsilon, size, count):
    rule = Filter(ApproxDP(epsilon, "1e-6"))
    account = launched(rule, *[PureDP(size)] * count)
    assert rule.loss(account).epsilon <= epsilon


BEFORE = [
    PureDP("0.01"),
    PureDP("0.03"),
    PureDP("0.1"),
    PureDP("0.6"),
    ApproxDP("0.1", "1e-9"),
    ApproxDP("0.3", "1e-7"),
    GaussianDP("0.01"),
    GaussianDP("0.05"),
]


@pytest.mark.parametrize("first", BEFORE, ids=repr)
def test_a_tiny_zcdp_launch_is_no_cliff_whatever_came_first(first):
    rule = Filter(ONE)
    account = launched(rule, first)
    after = rule.admit(account, of(zCDP("1e-6")))
    assert rule.remaining(account).epsilon - rule.remaining(after).epsilon <= Fraction(3, 100)
    assert rule.fits(after, PureDP(rule.remaining(after).epsilon))


DELTAS = [
    (ONE, ApproxDP("0.01", "1e-10"), 510),
    (ONE, ApproxDP("0.03", "1e-9"), 54),
    (ApproxDP(3, "1e-6"), ApproxDP("0.1", "1e-9"), 39),
    (ApproxDP(8, "1e-6"), ApproxDP("0.1", "1e-9"), 218),
    (ApproxDP(1, "1e-4"), ApproxDP("0.01", "1e-7"), 495),
]


@pytest.mark.parametrize("budget, loss, count", DELTAS, ids=repr)
def test_so_many_launches_with_a_delta_are_admitted(budget, loss, count):
    account = Filter(budget).start()
    for _ in range(count):
        account = account + loss
    assert account.keeps(budget)


def test_more_than_a_tenth_of_delta_stays_for_exposures_after_a_pure_launch_and_slack_changes_that():
    rule, own = Filter(ONE), Filter(ONE, slack="0.3e-6")
    tenth, rest = rule.remaining(launched(rule, PureDP("0.01"))), own.remaining(launched(own, PureDP("0.01")))
    assert Fraction(1, 10**7) <= tenth.delta < Fraction(12, 10**8) and rest.delta >= Fraction(7, 10**7)
    assert rule.fits(launched(rule, PureDP("0.01")), ApproxDP("0.1", "1e-7"))
    assert not rule.fits(launched(rule, PureDP("0.01")), ApproxDP("0.1", "2e-7"))
    assert own.fits(launched(own, PureDP("0.01")), ApproxDP("0.1", "7e-7"))


MIXTURE = st.sampled_from(
    [PureDP("0.03"), PureDP("0.2"), ApproxDP("0.05", "1e-8"), zCDP("1e-4"), GaussianDP("0.01"), RenyiDP(30, "0.01")]
)


@given(st.lists(MIXTURE, max_size=8))
def test_what_remains_is_true_of_mixed_histories(losses):
    """The largest pure launch and all of the delta left fit, also together; a little more of either does not."""
    rule = Filter(ONE)
    account = rule.start()
    for loss in losses:
        if rule.fits(account, of(loss)):
            account = rule.admit(account, of(loss))
    left = rule.remaining(account)
    assert rule.fits(account, of(ApproxDP(left.epsilon, left.delta)))
    assert not rule.fits(account, of(PureDP(left.epsilon * (1 + Fraction(1, 10**9)) + Fraction(1, 10**29))))
    assert not rule.fits(account, of(ApproxDP(0, left.delta + Fraction(1, 10**20))))


def test_where_delta_is_large_a_first_launch_may_exceed_epsilon():
    rule = Filter(ApproxDP(0, "0.4"))
    left = rule.remaining(rule.start()).epsilon
    assert left > 0 and rule.fits(rule.start(), PureDP(left))
    assert not rule.fits(rule.start(), PureDP(left * Fraction(101, 100)))


def test_a_reserve_starts_with_the_share_that_the_table_gives_it():
    account = Filter(ONE).start() + PureDP(0)
    row = SHARES.without_delta
    with mpmath.workdps(40):
        tail = tail_of_reserve(Fraction(1), account.left)
    assert float(tail) == pytest.approx(float(row.slack * row.with_reserve[0]) * 1e-6, rel=1e-6)
    assert account.left * GRAIN == pytest.approx(0.0548, abs=5e-4)
