"""Odometers: the same accumulators without a budget, and Whitehouse et al.'s time-uniform ones."""

import json
import math
import pathlib
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from counterpoint.coins.secure import SeededCoins
from counterpoint.composition.advanced import variance_at
from counterpoint.composition.filters import Filter
from counterpoint.composition.odometers import Odometer, truncated
from counterpoint.composition.time_uniform import BOUNDS, TimeUniform, constant_for, rogers_2016
from counterpoint.encoding import decode, encode
from counterpoint.errors import BudgetExceeded, CounterpointError, InvalidParameter, NotCovered
from counterpoint.measures import (
    ApproxDP,
    ApproxzCDP,
    GaussianDP,
    OneSidedDP,
    ProbabilisticDP,
    PureDP,
    RenyiDP,
    Unbounded,
    tCDP,
    zCDP,
)
from counterpoint.mechanisms.additive import Laplace
from counterpoint.mechanisms.concurrent import Concurrent, Launch
from counterpoint.numbers import precision
from counterpoint.privacy.claims import claim
from counterpoint.privacy.messages import Ask, ToChild
from counterpoint.privacy.relations import every_step

VECTORS = json.loads((pathlib.Path(__file__).parents[1] / "vectors" / "accounting.json").read_text())
DELTA = Fraction(1, 10**6)


def of(loss, interaction="one-shot"):
    return claim(loss, every_step(), "a test", interaction=interaction)


def read(rule, *losses):
    account = rule.start()
    for loss in losses:
        account = rule.admit(account, of(loss))
    return rule.loss(account)


PAIRS = [
    (Odometer(PureDP), lambda e: Filter(PureDP(e)), PureDP),
    (Odometer(zCDP), lambda e: Filter(zCDP(e)), zCDP),
    (Odometer.renyi(8), lambda e: Filter(RenyiDP(8, e)), lambda e: RenyiDP(8, e)),
    (Odometer.tcdp(20), lambda e: Filter(tCDP(e, 20)), lambda e: tCDP(e, 20)),
    (
        Odometer.advanced(DELTA),
        lambda e: Filter(ApproxDP(e, DELTA), by="advanced"),
        lambda e: ApproxDP(e, DELTA),
    ),
    (
        Odometer.approximate(DELTA, alpha=20),
        lambda e: Filter(ApproxDP(e, DELTA), alpha=20),
        lambda e: ApproxDP(e, DELTA),
    ),
]


@pytest.mark.parametrize(
    ("odometer", "filter_at", "threshold"), PAIRS, ids=[type(pair[0].empty).__name__ for pair in PAIRS]
)
@settings(max_examples=25, deadline=None)
@given(
    losses=st.lists(st.fractions(0, 1, max_denominator=50).map(PureDP), max_size=5),
    level=st.fractions("1/10", 3, max_denominator=20),
)
def test_lemma_2_19_a_filter_admits_just_what_keeps_the_odometer_within_its_threshold(
    odometer, filter_at, threshold, losses, level
):
    rule, account, reading = filter_at(level), filter_at(level).start(), odometer.start()
    for loss in losses:
        reading = odometer.admit(reading, of(loss))
        try:
            account = rule.admit(account, of(loss))
            admitted = True
        except BudgetExceeded:
            admitted = False
        assert admitted == odometer.loss(reading).within(threshold(level))
        if not admitted:
            break


def test_before_the_first_launch_nothing_is_lost_and_beyond_delta_everything_is():
    rule = Odometer.approximate(DELTA)
    assert read(rule) == ApproxDP(0, DELTA)
    assert read(rule, ApproxDP(0.1, DELTA)) == Unbounded()
    assert read(Odometer.advanced(DELTA)) == ApproxDP(0, DELTA)


def test_t05_reading_is_pure():
    rule = Odometer(zCDP)
    account = rule.admit(rule.start(), of(zCDP(0.1)))
    before = encode(account)
    assert {rule.loss(account) for _ in range(1000)} == {zCDP(0.1)} and encode(account) == before


def test_t07_the_truncated_view_drops_the_answer_that_exceeds():
    def view(*epsilons):
        composition, coins = Concurrent(Odometer(PureDP), every_step()), SeededCoins(1)
        state, readings = composition.start(coins), []
        for child, epsilon in enumerate(epsilons):
            for message in (Ask(Launch(Laplace(epsilon))), Ask(ToChild(child), 7)):
                state, answer = composition.step(state, message, coins)
                readings.append((composition.loss(state), (child, answer)))
        return [child for child, _ in truncated(readings, PureDP(1))]

    assert view(5, 0.1) == []
    assert view(0.5, 0.5, 0.1) == [0, 0, 1, 1], "equality with the threshold stays in"


def test_t08_time_uniform_odometers_want_one_shot_pure_or_probabilistic_claims():
    rule = Odometer.mixture(DELTA, tuned_for=1)
    with pytest.raises(NotCovered):
        rule.admit(rule.start(), of(ApproxDP("0.1", "1e-3")))
    with pytest.raises(NotCovered):
        rule.admit(rule.start(), of(PureDP("0.1"), "endless"))
    converted = ApproxDP("0.1", "1e-9").as_probabilistic("0.2")
    assert isinstance(read(rule, converted), OneSidedDP)
    assert read(Odometer.advanced("0.01"), ApproxDP("0.1", "1e-3")).delta == Fraction(1, 100)


TIME_UNIFORM = [Odometer.filter, Odometer.mixture, Odometer.stitched]


@pytest.mark.parametrize("make", TIME_UNIFORM)
def test_a_first_launch_without_a_delta_gives_the_tail_nine_tenths_of_delta_and_another_half(make):
    pure, failing = PureDP("0.1"), ProbabilisticDP("0.1", "1e-9")
    rule = make(DELTA, tuned_for=1)
    assert read(rule, pure) == read(make(DELTA, tuned_for=1, slack=DELTA * 9 / 10), pure)
    assert read(rule, failing) == read(make(DELTA, tuned_for=1, slack=DELTA / 2), failing)
    assert read(rule, pure).epsilon < read(make(DELTA, tuned_for=1, slack=DELTA / 2), pure).epsilon


@pytest.mark.parametrize("make", TIME_UNIFORM)
def test_what_the_first_launch_decided_stays_whatever_comes_later(make):
    pure, failing = PureDP("0.1"), ProbabilisticDP("0.1", "1e-9")
    rule = make(DELTA, tuned_for=1)
    for order in ([pure, failing, pure], [failing, pure, pure]):
        slack = DELTA * 9 / 10 if order[0] == pure else DELTA / 2
        assert read(rule, *order) == read(make(DELTA, tuned_for=1, slack=slack), *order)


def test_before_the_first_launch_a_time_uniform_odometer_says_what_would_be_left_for_a_delta():
    rule = Odometer.mixture(DELTA, 1).within(OneSidedDP(1, DELTA))
    assert rule.remaining(rule.start()).delta == DELTA / 2
    assert rule.remaining(rule.admit(rule.start(), of(PureDP("0.1")))).delta == DELTA / 10


def test_two_odometers_to_choose_from_have_one_delta_and_nothing_launched():
    other = TimeUniform("mixture", Fraction(1), DELTA / 2, DELTA / 2)
    with pytest.raises(InvalidParameter, match="first launch"):
        TimeUniform("mixture", Fraction(1), DELTA, DELTA, if_exposed=other)


def test_t10_the_mixture_bracket_and_y_star():
    mixture = TimeUniform("mixture", Fraction(1, 100), Fraction(5, 100), Fraction(5, 100), Fraction(1, 100))
    assert round(float(mixture.total.epsilon), 4) == 0.3706
    y = variance_at(Fraction(1), DELTA)
    length = 2 * math.log(10**6)
    assert abs(math.sqrt(length * float(y)) + float(y) / 2 - 1) < 1e-12


def test_the_filter_odometer_is_tangent_to_advanced_composition_at_its_target():
    rule = Odometer.filter(DELTA, tuned_for=1, slack=DELTA)
    empty = rule.empty
    assert isinstance(empty, TimeUniform)
    at = TimeUniform("filter", empty.constant, DELTA, DELTA, empty.constant).total
    assert abs(float(at.epsilon) - 1) < 1e-9


def test_a_tuned_constant_beats_its_neighbours_at_the_target():
    slack, p = DELTA, precision(30)
    target = variance_at(Fraction(2), slack)
    tuned = constant_for("mixture", Fraction(2), slack)
    here = BOUNDS["mixture"](p, target, tuned, slack).upper
    assert all(here <= BOUNDS["mixture"](p, target, tuned * factor, slack).upper for factor in (Fraction(1, 2), 2))


@pytest.mark.parametrize("make", [Odometer.filter, Odometer.mixture, Odometer.stitched])
@pytest.mark.parametrize("target", ["1e-400", "1e-300", "1e300", "9e399"])
def test_an_odometer_can_be_tuned_for_any_target_and_is_read_back(make, target):
    rule = make("1e-6", tuned_for=target)
    assert decode(encode(rule), Odometer) == rule
    assert isinstance(rule.loss(rule.admit(rule.start(), of(PureDP("0.1")))), OneSidedDP | Unbounded)


HUGE = [
    zCDP("5e398"),
    PureDP("9e399"),
    zCDP("9e399"),
    GaussianDP("9e399"),
    GaussianDP("9e199"),
    RenyiDP(8, "9e399"),
    tCDP("9e399", 20),
]


@pytest.mark.parametrize(
    "rule",
    [
        *(pair[0] for pair in PAIRS),
        Odometer(GaussianDP),
        Odometer.approximate(DELTA, by="basic"),
        Odometer.approximate(DELTA, by="renyi", alpha="1." + "0" * 44 + "1"),
        Odometer.filter(DELTA, tuned_for="1e-200"),
        Odometer.mixture(DELTA, tuned_for=1),
        Odometer.stitched(DELTA, tuned_for=1),
    ],
    ids=repr,
)
def test_no_launch_makes_an_account_that_cannot_be_written_and_read_again(rule):
    """A durable session with such an account could not be opened any more."""
    account = rule.start()
    for loss in [*HUGE, *HUGE, PureDP("1e200"), PureDP("1e200"), PureDP("0.1")]:
        try:
            account = rule.admit(account, of(loss))
        except CounterpointError:
            continue
        assert decode(encode(account), type(account)) == account
        assert rule.loss(account).epsilon_at(DELTA) >= 0 and str(rule.certificate(account))


def test_the_stitched_odometer_is_infinite_until_its_time_comes():
    rule = Odometer.stitched(DELTA, tuned_for=1)
    assert read(rule, PureDP("1e-4")) == Unbounded()
    assert isinstance(read(rule, PureDP("0.1")), OneSidedDP)


@pytest.mark.parametrize(
    "case",
    [c for c in VECTORS["e_adaptive"] if c["kind"].startswith("odometer") or c["kind"] == "ystar"],
    ids=lambda c: c["id"],
)
def test_reference_numbers(case):
    values = {name: Fraction(str(value)) for name, value in case["in"].items()}
    if case["kind"] == "ystar":
        got = variance_at(values["eps"], values["dprime"])
        want = float(case["out"]["ystar"])
    else:
        kind = case["kind"].removeprefix("odometer_")
        constant = values.get("ystar") or values.get("rho") or values["v0"]
        got = BOUNDS[kind](precision(40), values["V"], constant, values["dprime"]).upper
        want = float(case["out"]["eps"])
    assert want * (1 - 1e-10) <= float(got) <= want * (1 + 1e-10)


def paths(epsilon: float, rounds: int, count: int) -> np.ndarray:
    """Privacy losses of so many runs of repeated randomized response: +-epsilon with its own odds, summed up."""
    rng = np.random.default_rng(20261115)
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    steps = np.where(rng.random((count, rounds)) < truth, epsilon, -epsilon)
    return steps.cumsum(axis=1)


def crossing(bound, epsilon, rounds, count) -> int:
    variance = [Fraction(str(epsilon)) ** 2 * (n + 1) for n in range(rounds)]
    line = np.array([float(bound(v)) for v in variance])
    return int((paths(epsilon, rounds, count) > line).any(axis=1).sum())


@pytest.mark.parametrize("kind", ["filter", "mixture", "stitched"])
def test_the_loss_crosses_a_time_uniform_odometer_with_probability_at_most_delta(kind):
    """4,000 runs of 400 rounds at delta' = 0.05; false-alarm rate 1e-10."""
    slack, constant, count = Fraction(5, 100), Fraction(1, 100), 4000
    crossed = crossing(
        lambda v: BOUNDS[kind](precision(20), v, constant, slack).upper if v >= constant or kind != "stitched" else 99,
        0.01,
        400,
        count,
    )
    assert crossed <= binom.isf(1e-10, count, 0.05)


def ever_crossed(readings, epsilon, *, both_sides):
    """The exact probability that the loss of repeated randomized responses ever leaves its readings.

    The loss is a random walk, up by epsilon with probability e^epsilon/(1+e^epsilon); what has crossed stays out.
    """
    rounds, up = len(readings), math.exp(epsilon) / (1 + math.exp(epsilon))
    losses = epsilon * np.arange(-rounds, rounds + 1)
    inside = (losses == 0).astype(float)
    crossed = 0.0
    for reading in readings:
        moved = np.zeros_like(inside)
        moved[1:] += up * inside[:-1]
        moved[:-1] += (1 - up) * inside[1:]
        bound = math.inf if isinstance(reading, Unbounded) else float(reading.epsilon)
        out = (np.abs(losses) if both_sides else losses) > bound
        crossed += moved[out].sum()
        inside = np.where(out, 0.0, moved)
    return crossed


def readings_of(kind, constant, delta, epsilon, rounds):
    account, readings = TimeUniform(kind, Fraction(constant), Fraction(delta), Fraction(delta)), []
    for _ in range(rounds):
        account = account.plus(PureDP(epsilon), "one-shot")
        readings.append(account.total)
    return readings


def test_the_loss_leaves_the_filter_odometer_to_either_side_more_often_than_delta():
    """theory, Postprocessing, exactly: 0.3036 at delta = 0.2, where delta (1 + e^-U) with the present U would say
    0.2000.
    """
    readings = readings_of("filter", "0.01", "0.2", "0.02", 4000)
    last, both = readings[-1], ever_crossed(readings, 0.02, both_sides=True)
    assert round(both, 4) == 0.3036
    assert both > last.delta * Fraction(1 + math.exp(-last.epsilon)), "the crossing may be old"
    assert ever_crossed(readings, 0.02, both_sides=False) <= last.delta == Fraction(1, 5)
    assert last.two_sided() == readings[0].two_sided().as_probabilistic(last.epsilon), "one delta at all times"
    assert both <= last.two_sided().delta and abs(float(last.two_sided().delta) - 0.38284) < 1e-5
    assert last.two_sided().delta > 0.366, "measured in another game against this odometer"


@pytest.mark.parametrize("kind", ["filter", "mixture", "stitched"])
@pytest.mark.parametrize(("epsilon", "constant"), [("0.05", "0.01"), ("0.2", "0.04"), ("1", "0.1"), ("0.1", "1")])
def test_a_time_uniform_reading_holds_at_all_times_from_one_side_and_from_both(kind, epsilon, constant):
    readings = readings_of(kind, constant, "0.3", epsilon, 400)
    finite = [reading for reading in readings if isinstance(reading, OneSidedDP)]
    assert finite and all(reading.least <= reading.epsilon for reading in finite)
    assert ever_crossed(readings, float(epsilon), both_sides=False) <= finite[-1].delta
    assert ever_crossed(readings, float(epsilon), both_sides=True) <= finite[-1].two_sided().delta


def test_a_launch_that_can_only_fail_is_not_read_as_nothing():
    """(0, delta_m) moves no variance, but a bound of 0 would be crossed to either side by its failure."""
    rule = Odometer.mixture(DELTA, tuned_for=1)
    assert read(rule, PureDP(0)).epsilon == 0
    failing = read(rule, ProbabilisticDP(0, "1e-8"))
    assert isinstance(failing, OneSidedDP) and failing.epsilon >= failing.least > 0


def test_a_view_is_truncated_by_a_threshold_in_the_measure_that_is_read():
    rule = Odometer.mixture(DELTA, tuned_for=1)
    account, readings = rule.start(), []
    for name in range(30):
        account = rule.admit(account, of(PureDP("0.1")))
        readings.append((rule.loss(account), name))
    kept = truncated(readings, OneSidedDP(2, DELTA))
    assert 0 < len(kept) < 30 and kept == tuple(range(len(kept)))
    assert readings[len(kept) - 1][0].epsilon <= 2 < readings[len(kept)][0].epsilon
    assert truncated([(Unbounded(), "a"), *readings], OneSidedDP(2, DELTA)) == ()


@pytest.mark.parametrize(
    ("reading", "threshold"),
    [
        (OneSidedDP("0.5", "1e-6"), ProbabilisticDP(1, "1e-6")),
        (OneSidedDP("0.5", "1e-6"), ApproxDP(1, "1e-6")),
        (OneSidedDP("0.5", "1e-6"), OneSidedDP(1, "1e-9")),
        (OneSidedDP("0.5", "1e-6"), OneSidedDP(1, "1e-6", least=1)),
        (ProbabilisticDP("0.5", "1e-6"), ProbabilisticDP(1, "1e-6")),
        (PureDP("0.5"), ApproxDP(1, "1e-6")),
        (RenyiDP(2, "0.1"), RenyiDP(8, 1)),
    ],
    ids=repr,
)
def test_a_threshold_that_no_reading_could_keep_is_refused_instead_of_an_empty_view(reading, threshold):
    with pytest.raises(NotCovered, match="is not a threshold for an odometer that reads"):
        truncated([(reading, "a")], threshold)


def test_the_certificate_of_a_time_uniform_reading_says_which_side_it_bounds():
    rule = Odometer.filter("0.2", tuned_for=1)
    account = rule.admit(rule.start(), of(PureDP("0.1")))
    text = str(rule.certificate(account))
    assert "at all times at once" in text and "with probability at most 0.2 (to either side 0.3" in text


def test_the_misprinted_mixture_odometer_is_crossed_most_of_the_time():
    """With V + r outside the root (errata, Whitehouse E3): 0.81 of the runs cross it; below 0.7 has probability <
    1e-10.
    """
    r, count = 0.01, 4000

    def misprinted(v):
        v = float(v)
        return math.sqrt(2 * math.log(math.sqrt((v + r) / r) / 0.05)) * (v + r) + v / 2

    assert crossing(misprinted, 0.01, 400, count) > 0.7 * count


def test_the_comparison_curve_of_2016_is_what_the_erratum_says():
    assert abs(float(rogers_2016(precision(20), Fraction(2), 10**4, DELTA).upper) - 28.4) < 0.05


@pytest.mark.parametrize("slack", [0, -1, 2e-6, 1, float("nan")])
def test_t11_invalid_odometers_fail_closed(slack):
    for make in (Odometer.mixture, Odometer.filter, Odometer.stitched):
        with pytest.raises(InvalidParameter):
            make(1e-6, tuned_for=1, slack=slack)
    with pytest.raises(InvalidParameter):
        Odometer.advanced(1e-6, slack=slack)


def test_t11_more_of_the_kind():
    nearly_one = "1." + "0" * 399 + "1"
    for make in (
        lambda: Odometer(ApproxDP),
        lambda: Odometer("zCDP"),
        lambda: Odometer.renyi(1),
        lambda: Odometer.approximate(DELTA, alpha=nearly_one),
        lambda: Filter(ApproxDP(1, DELTA), alpha=nearly_one),
    ):
        with pytest.raises(InvalidParameter):
            make()
    for bad in (0, -1, float("inf")):
        with pytest.raises(InvalidParameter):
            Odometer.mixture(1e-6, tuned_for=bad)
    with pytest.raises(InvalidParameter):
        TimeUniform("mixture", Fraction(0), DELTA, DELTA)


@pytest.mark.parametrize(
    "rule", [pair[0] for pair in PAIRS] + [Odometer.mixture(1e-6, 1), Odometer(GaussianDP)], ids=str
)
def test_an_odometer_round_trips_and_explains_itself(rule):
    assert decode(encode(rule), Odometer) == rule
    assert rule.certificate(rule.start()).rests_on("Haney et al. 2023, Lemma 2.19")
    with pytest.raises(NotCovered):
        rule.bound(every_step())
    with pytest.raises(NotCovered):
        rule.promise(every_step())


ODOMETERS = [
    (Odometer(PureDP), PureDP(1)),
    (Odometer(zCDP), zCDP(0.1)),
    (Odometer(ApproxzCDP), ApproxzCDP(0.1, Fraction(1, 100))),
    (Odometer.renyi(8), RenyiDP(8, 0.5)),
    (Odometer.renyi(8), RenyiDP(4, 0.5)),
    (Odometer.tcdp(20), tCDP(0.1, 20)),
    (Odometer.advanced(DELTA), ApproxDP(1, DELTA)),
    (Odometer.approximate(DELTA), ApproxDP(1, DELTA)),
    (Odometer.approximate(DELTA), ApproxDP(1, 2 * DELTA)),
    (Odometer.approximate(DELTA, by="basic"), ApproxDP(1, DELTA)),
    (Odometer.filter(DELTA, 1), OneSidedDP(1, DELTA)),
    (Odometer.mixture(DELTA, 1), OneSidedDP(1, DELTA)),
    (Odometer.stitched(DELTA, 1), OneSidedDP(1, DELTA)),
]


@pytest.mark.parametrize(("odometer", "budget"), ODOMETERS, ids=repr)
def test_the_filter_of_an_odometer_admits_exactly_while_the_reading_is_within_the_budget(odometer, budget):
    rule = odometer.within(budget)
    account, admitted = rule.start(), 0
    for launched in (0.05, 0.2, 0.1, 0.4, 0.05, 0.3, 0.2, 0.3, 0.01, 0.5):
        after = odometer.admit(account, of(PureDP(launched)))
        if odometer.loss(after).within(budget):
            account, admitted = rule.admit(account, of(PureDP(launched))), admitted + 1
            assert account == after
        else:
            with pytest.raises(BudgetExceeded):
                rule.admit(account, of(PureDP(launched)))
    assert 0 < admitted < 10
    assert rule.bound(every_step()) == budget and odometer.loss(account).within(budget)
    assert decode(encode(rule), Filter) == rule


@pytest.mark.parametrize(("odometer", "budget"), ODOMETERS, ids=repr)
def test_what_the_filter_of_an_odometer_says_remains_fits_and_a_little_more_does_not(odometer, budget):
    rule = odometer.within(budget)
    account = rule.admit(rule.start(), of(PureDP(0.1)))
    room = rule.remaining(account).epsilon
    assert room > 0 and rule.fits(account, of(PureDP(room)))
    assert not rule.fits(account, of(PureDP(room * Fraction(10**9 + 1, 10**9))))


def test_the_filter_of_an_odometer_is_the_usual_one_where_there_is_one():
    assert Odometer(PureDP).within(PureDP(1)) == Filter(PureDP(1))
    assert encode(Odometer(zCDP).within(zCDP(1))) == encode(Filter(zCDP(1)))


@pytest.mark.parametrize(
    ("odometer", "budget"),
    [
        (Odometer(PureDP), zCDP(1)),
        (Odometer.renyi(8), RenyiDP(16, 1)),
        (Odometer.approximate(DELTA), ApproxDP(1, DELTA / 2)),
        (Odometer.mixture(DELTA, 1), ApproxDP(1, DELTA)),
    ],
    ids=repr,
)
def test_a_budget_that_no_reading_can_be_within_is_refused(odometer, budget):
    with pytest.raises(InvalidParameter, match="is not a budget for"):
        odometer.within(budget)


def test_a_filter_has_a_sum_or_chooses_one():
    with pytest.raises(InvalidParameter, match="one or the other"):
        Filter(ApproxDP(1, DELTA), by="renyi", empty=Odometer.approximate(DELTA).empty)
    with pytest.raises(InvalidParameter, match="accumulator"):
        Filter(ApproxDP(1, DELTA), empty=3)


def test_approximate_zcdp_is_read_for_mechanisms_that_answer_once():
    rule = Odometer(ApproxzCDP)
    assert read(rule, ApproxzCDP(0.1, 1e-9), zCDP(0.2), ApproxDP(1, 1e-9)) == ApproxzCDP(0.8, 2e-9)
    with pytest.raises(NotCovered, match="interactive"):
        rule.admit(rule.start(), of(ApproxzCDP(0.1, 1e-9), "finite"))


@pytest.mark.parametrize("budget", [PureDP(1), ApproxDP(1, DELTA), zCDP(1)], ids=repr)
def test_the_launch_after_the_last_is_refused_whatever_it_costs(budget):
    rule = Filter(budget, launches=3)
    account = rule.start()
    for _ in range(3):
        with pytest.raises(BudgetExceeded):
            rule.admit(account, of(PureDP(5)))  # a refused launch does not count
        account = rule.admit(account, of(PureDP(0.01)))
    with pytest.raises(BudgetExceeded, match="allows 3 launches, and 3 have been made"):
        rule.admit(account, of(PureDP(0)))
    assert not rule.fits(account, of(PureDP(0)))
    assert rule.remaining(account).epsilon == rule.remaining(account).delta == 0
    assert rule.loss(account) == Filter(budget).loss(sum_of(Filter(budget), 3))


def sum_of(rule, launches):
    account = rule.start()
    for _ in range(launches):
        account = rule.admit(account, of(PureDP(0.01)))
    return account


def test_a_limit_is_a_whole_number_from_one_on_and_shows():
    for launches in (0, -1, 1.5):
        with pytest.raises(InvalidParameter):
            Filter(PureDP(1), launches=launches)
    assert repr(Filter(PureDP(1), launches=3)) == "Filter(PureDP(1), launches=3)"


def test_a_filter_is_stored_with_all_that_it_fixes():
    assert encode(Filter(PureDP(1))) == (
        b'{"type":"Filter/1","budget":{"type":"PureDP/1","epsilon":"1/1"},"by":null,"slack":null,"alpha":null,'
        b'"halt":false,"launches":null,"empty":null}'
    )
