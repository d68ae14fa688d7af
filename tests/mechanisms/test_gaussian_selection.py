"""Keys are selected by noisy counts and one threshold: exactly within (epsilon, delta), and where that is best."""

from fractions import Fraction
from itertools import product

import pytest
from tests.mechanisms.test_partition_selection import SMALL, least_delta

import counterpoint as cp
from counterpoint.coins.enumerated import EnumeratedCoins
from counterpoint.coins.secure import SeededCoins
from counterpoint.errors import InvalidParameter
from counterpoint.measures import ApproxDP, ApproxzCDP
from counterpoint.mechanisms.partition_selection import MOST_SQUARED, Calibration, GaussianSelection, PartitionSelection
from counterpoint.numbers import precision
from counterpoint.privacy.messages import Ask, ToChild, Update
from counterpoint.privacy.relations import every_step
from counterpoint.privacy.secret import Tally


def law(mechanism, tally, s, q):
    """The chance of every answer, from the closed form of each key's: keys are released independently."""
    found = {(): Fraction(1)}
    calibration = mechanism.calibrated(s, q)
    for key, units in tally.pairs:
        chance = Fraction(calibration.released(units).upper) if units else Fraction(0)
        found = {
            answer + (key,) * shown: p * (chance if shown else 1 - chance)
            for answer, p in found.items()
            for shown in (False, True)
        }
    return found


CASES = [
    (2, "0.05", 3, 3),
    *(
        pytest.param(*case, marks=pytest.mark.long)
        for case in [(1, "0.01", 1, 1), ("0.3", "0.1", 2, 2), (3, "0.02", 4, 4), (1, "0.1", 2, 4), (9, "0.01", 9, 9)]
    ),
]


@pytest.mark.parametrize(("epsilon", "delta", "s", "q"), CASES)
def test_the_law_keeps_epsilon_and_delta_on_all_small_neighbours(epsilon, delta, s, q):
    mechanism = GaussianSelection(epsilon, delta)
    near = mechanism.calibrated(s, q).threshold - 2
    tallies = [*SMALL, *(Tally(tuple((key, n + near) for key, n in tally.pairs)) for tally in SMALL if near > 1)]
    laws = [law(mechanism, tally, s, q) for tally in tallies]
    worst = Fraction(0)
    for (left, one), (right, other) in product(zip(tallies, laws, strict=True), repeat=2):
        asks = [Ask(private=tally, sensitivity=s, squared=q) for tally in (left, right)]
        if left != right and every_step().valid([tuple(asks)]):
            worst = max(worst, least_delta(one, other, mechanism.epsilon))
    assert mechanism.delta / 100 < worst <= mechanism.delta


@pytest.mark.parametrize(("rho", "delta", "s", "q"), [("0.5", "0.01", 3, 3), (2, "0.05", 2, 4), ("0.1", "0.1", 4, 4)])
def test_apart_from_new_keys_it_is_concentrated_and_those_show_with_delta(rho, delta, s, q):
    """Keys of both worlds: Renyi divergences of orders 2 and 8, exactly. New ones: the worst set of them."""
    mechanism = GaussianSelection(rho=rho, delta=delta)
    calibration = mechanism.calibrated(s, q)
    for alpha, units in product((2, 8), range(1, 2 * calibration.threshold)):
        here, there = (Fraction(calibration.released(n).upper) for n in (units, units + 1))
        for p, r in ((here, there), (there, here)):
            moment = p**alpha / r ** (alpha - 1) + (1 - p) ** alpha / (1 - r) ** (alpha - 1)
            assert moment <= Fraction((precision(40)(mechanism.rho * (alpha - 1) * alpha) / q).exp().upper)
    new = {(1,) * min(s, q), (2,) * min(s // 2, q // 4)}
    for counts in new:
        hidden = Fraction(1)
        for units in counts:
            hidden *= 1 - Fraction(calibration.released(units).upper)
        assert 1 - hidden <= mechanism.delta


@pytest.mark.parametrize(
    ("epsilon", "delta", "s"), [(1, "0.01", 1), (2, "0.05", 3), (1, "1e-6", 8), ("0.1", "1e-9", 50)]
)
def test_the_threshold_is_the_least(epsilon, delta, s):
    """One less, and s new keys of one unit each would show more often than delta."""
    mechanism = GaussianSelection(epsilon, delta)
    sigma2, threshold = mechanism.calibrated(s, s)
    chances = [1 - (1 - Fraction(Calibration(sigma2, t).released(1).lower)) ** s for t in (threshold - 1, threshold)]
    assert chances[1] <= mechanism.delta < chances[0]


def test_a_release_has_the_stated_chance():
    mechanism, ask = GaussianSelection(4, "0.01"), Ask(private=Tally((("a", 3), ("b", 0))), sensitivity=2, squared=2)
    found = dict(EnumeratedCoins("1e-12").law(lambda coins: mechanism.step(mechanism.start(coins), ask, coins)[1]))
    assert set(found) == {(), ("a",)}, "a key without units is never released"
    assert abs(found["a",] - Fraction(mechanism.calibrated(2, 2).released(3).lower)) < Fraction(1, 10**11)


@pytest.mark.parametrize("probability", ["0.3", "0.5", "0.95", "0.999"])
def test_the_units_that_a_key_needs_are_the_least(probability):
    mechanism = GaussianSelection(1, "1e-6")
    units, calibration = mechanism.error(probability, sensitivity=8), mechanism.calibrated(8, 8)
    assert calibration.released(units - 1).upper < Fraction(probability) <= calibration.released(units).lower
    assert mechanism.error(0) == 1


def test_it_needs_fewer_units_than_the_other_from_four_keys_on():
    pairs = {
        r: [kind(1, "1e-6").error("0.95", r) for kind in (PartitionSelection, GaussianSelection)]
        for r in (1, 3, 4, 8, 50)
    }
    assert all((one < other) == (r < 4) for r, (one, other) in pairs.items())
    assert pairs[8][0] > 1.4 * pairs[8][1] and pairs[50][0] > 3.4 * pairs[50][1]


def test_a_session_takes_the_better_one_by_public_numbers():
    duckdb = pytest.importorskip("duckdb")
    rows = duckdb.sql("SELECT range // 8 AS person, range % 8 AS city FROM range(4000)")
    columns = {"city": cp.whole()}
    table = cp.Table(rows, unit="person", rows_per_unit=8, columns=columns)
    session = cp.Session(table, within=cp.ApproxDP(8, 1e-5))
    many = session.ask(cp.keys("city"), loss=cp.ApproxDP(1, 1e-6))
    one = session.ask(cp.keys("city", where="city < 50"), loss=cp.ApproxDP(1, 1e-6))
    assert many.mechanism == one.mechanism == GaussianSelection(1, 1e-6) and set(many) == set(range(8))
    assert many.units_needed(0.95) == 84 and "fewest units" in many.why and "PartitionSelection" in many.why
    single = cp.Session(table.spread("city", 1), within=cp.ApproxDP(8, 1e-5))
    assert isinstance(single.ask(cp.keys("city"), loss=cp.ApproxDP(1, 1e-6)).mechanism, PartitionSelection)


def test_a_budget_in_approximate_zcdp_pays_for_keys():
    duckdb = pytest.importorskip("duckdb")
    rows = duckdb.sql("SELECT range // 8 AS person, range % 8 AS city FROM range(4000)")
    table = cp.Table(rows, unit="person", rows_per_unit=8, columns={"city": cp.whole()})
    session = cp.Session(table, within=ApproxzCDP("0.2", "1e-5"))
    found = session.ask(cp.keys("city"), loss=ApproxzCDP("0.1", "1e-6"))
    assert found.mechanism == GaussianSelection(rho="0.1", delta="1e-6") and set(found) == set(range(8))
    assert session.ask(cp.count(), loss=ApproxzCDP("0.1", 0)).cost.rho == Fraction(1, 10)


def test_only_tallies_of_units_with_a_limited_number_of_keys_are_accepted():
    mechanism, tally = GaussianSelection(1, "1e-6"), Tally((("a", 1),))
    assert mechanism.accepts(Ask(private=tally, sensitivity=9, squared=9))
    assert not mechanism.accepts(Ask(private=tally, sensitivity=MOST_SQUARED, squared=MOST_SQUARED + 1))
    assert not mechanism.accepts(Ask(ToChild(0), private=tally)) and not mechanism.accepts(Ask(private=3))
    assert not mechanism.accepts(Update(tally)) and not mechanism.accepts("keys")
    with pytest.raises(InvalidParameter):
        mechanism.error("0.95", MOST_SQUARED + 1)


@pytest.mark.parametrize(
    "given", [{"delta": "0.1"}, {"epsilon": 1}, {"epsilon": 1, "rho": 1, "delta": "0.1"}, {"epsilon": 1, "delta": 1}]
)
def test_one_price_and_a_delta_are_needed(given):
    with pytest.raises(InvalidParameter):
        GaussianSelection(**given)


def test_with_many_units_all_keys_are_released_in_order():
    mechanism, coins = GaussianSelection(1, "1e-6"), SeededCoins(1)
    ask = Ask(private=Tally((("a", 9000), ("b", 1), ("c", 9000))), sensitivity=3, squared=3)
    assert mechanism.step(mechanism.start(coins), ask, coins) == (None, ("a", "c"))
    assert mechanism.claim.loss == ApproxDP(1, "1e-6") and mechanism.claim.interaction == "one-shot"
