"""The monotone histogram: derived claim, order of updates, taint, two worlds, accuracy, adaptive streams."""

from fractions import Fraction
from itertools import pairwise
from math import ceil, log, pi

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from counterpoint.coins.secure import SeededCoins
from counterpoint.continual.histogram_error import limit, log_odds
from counterpoint.continual.monotone_histogram import HistogramInterval, MonotoneHistogram
from counterpoint.continual.monotone_queries import MonotoneQuery, max_of
from counterpoint.encoding import Value, decode, encode
from counterpoint.errors import InvalidParameter, RelationMismatch, SecretLeak
from counterpoint.measures import ApproxDP, PureDP, zCDP
from counterpoint.mechanisms.mechanism import Mechanism, State
from counterpoint.mechanisms.sparse_vector import AboveThreshold
from counterpoint.mechanisms.threshold import Threshold
from counterpoint.privacy.messages import Ask, Update
from counterpoint.privacy.relations import Steps
from counterpoint.privacy.secret import Secret, reveal
from counterpoint.session.session import Session
from counterpoint.sources.streams.stream import Stream
from counterpoint.verify.coupling import two_adaptive_worlds, two_worlds

LOUD = MonotoneHistogram(epsilon=60, query=max_of, dimensions=3)
"""With little noise, so that a short stream has hits."""


def fed(mechanism, vectors, seed=1):
    """The runs of the steps, in order."""
    coins = SeededCoins(seed)
    state, runs = mechanism.start(coins), []
    for vector in vectors:
        run = mechanism.ran(state, Update(vector), coins)
        runs.append(run)
        state = run.state
    return runs


def answer(mechanism, state):
    return mechanism.step(state, Ask(), SeededCoins(0))[1]


@given(st.fractions("1/1000", 10), st.integers(1, 9), st.integers(1, 12))
def test_the_claim_is_epsilon_derived_whatever_the_diameter(epsilon, dimensions, diameter):
    mechanism = MonotoneHistogram(epsilon, max_of, dimensions, diameter)
    reach = min(dimensions, diameter)
    assert mechanism.claim.loss == PureDP(epsilon)
    assert mechanism.claim.relation == Steps(updates=1, bound=reach)
    assert mechanism.totals.bound == reach, "the noise is for what a change can reach, not for all d"
    assert MonotoneHistogram(epsilon, max_of, dimensions).diameter == dimensions
    mechanism.start(SeededCoins(1))  # what is launched fits into the parts


def test_the_claim_rests_on_parallel_composition_and_cor_6_6():
    certificate = LOUD.claim.certificate
    assert certificate.rests_on("Henzinger et al. 2024, Cor 5.5") and certificate.rests_on("Cor 6.6")


# ------------------------------------------------------------------------------------------------ X1: the order


class Counted(MonotoneHistogram, frozen=True):
    """The thresholds of trap X1: gamma(t, j) = j."""

    def gamma(self, t, j):
        return 20 * j

    def xi(self, t, j):
        return 5


def asked(run, part):
    return [sent.what for sent in run.sent if sent.part == part and isinstance(sent.what, Ask | Update)]


def thresholds_of_algorithm_4(histogram, runs, *, first=True):
    """Henzinger et al. 2024, Alg 4, line by line, on the sub-answers of a run; `first=False` forgets to increment j
    before re-reading.
    """
    j, found = 1, []
    threshold = histogram.gamma(1, j)
    hits, base = 0, 0
    for t, run in enumerate(runs, 1):
        found.append(threshold)
        if run.state.own.hits > hits:
            if run.state.own.base > base:  # the check has confirmed the hit
                threshold += histogram.gamma(t, j)
            if first:
                j += 1
                threshold += histogram.gamma(t, j) - histogram.gamma(t, j - 1)
            else:
                threshold += histogram.gamma(t, j) - histogram.gamma(t, j)
                j += 1
        threshold += histogram.gamma(t + 1, j) - histogram.gamma(t, j)
        hits, base = run.state.own.hits, run.state.own.base
    return found


class Doubting(Counted, frozen=True):
    """No check confirms a hit."""

    def xi(self, t, j):
        return -(10**6)


@pytest.mark.parametrize("mechanism", [Counted(60, max_of, 3), Doubting(60, max_of, 3), LOUD])
def test_x1_thresholds_are_those_of_algorithm_4(mechanism):
    runs = fed(mechanism, [(1, 0, 1)] * 300)
    sent = [asked(run, "above")[0].public for run in runs]
    assert runs[-1].state.own.hits >= 3
    assert sent == thresholds_of_algorithm_4(mechanism, runs)


def test_x1_forgetting_to_increment_j_first_would_be_seen():
    mechanism = Counted(60, max_of, 3)
    runs = fed(mechanism, [(1, 0, 1)] * 300)
    sent = [asked(run, "above")[0].public for run in runs]
    assert sent != thresholds_of_algorithm_4(mechanism, runs, first=False)


def test_x1_a_confirmed_hit_raises_the_threshold_by_the_old_gamma_and_then_to_the_new_one():
    runs = fed(Counted(60, max_of, 3), [(1, 1, 1)] * 60)
    sent = [asked(run, "above")[0].public for run in runs]
    assert set(sent[:15]) == {20}
    assert set(sent) >= {20, 60}, "20, then + gamma(t, 1) + gamma(t, 2) - gamma(t, 1) = 20 + 20 + 20"


def test_x1_a_new_sparse_vector_starts_from_the_counters_histogram_and_sums_start_again_after_them():
    runs = fed(LOUD, [(1, 0, 1)] * 200)
    hits = [i for i in range(1, 200) if runs[i].state.own.hits > runs[i - 1].state.own.hits]
    assert hits
    for i in hits:
        own = runs[i].state.own
        assert reveal(own.since) == (0, 0, 0)
        (told,) = [reveal(update.private) for update in asked(runs[i], "totals") if isinstance(update, Update)]
        assert list(told) == [reveal(runs[i - 1].state.own.since)[at] + (1, 0, 1)[at] for at in range(3)]
        parts = [sent.part for sent in runs[i].sent]
        assert parts == ["above", "check", "check", "totals", "totals", "above"]
        assert isinstance(runs[i].sent[-1].what, AboveThreshold), "and the new one is launched last"
        assert answer(LOUD, runs[i].state) == max(own.noisy)
        if i + 1 < 200:
            assert reveal(asked(runs[i + 1], "above")[0].private) == max(
                own.noisy[0] + 1, own.noisy[1], own.noisy[2] + 1
            )


def test_x1_negative_counters_do_not_crash_the_query():
    class Eager(MonotoneHistogram, Value, frozen=True):
        def gamma(self, t, j):
            return -(10**6)  # hits at every step: privacy does not depend on gamma

    mechanism = Eager("0.01", MonotoneQuery("min"), 4)
    runs = fed(mechanism, [(0, 1, 0, 0)] * 20)
    assert runs[-1].state.own.hits == 20
    assert all(answer(mechanism, run.state) >= 0 for run in runs)


def test_children_that_are_replaced_are_dropped():
    runs = fed(LOUD, [(1, 1, 1)] * 400)
    assert runs[-1].state.own.hits > 5 and len(runs[-1].state.children) == 3


# ------------------------------------------------------------------------------------------------ X2: taint


class Branching(MonotoneHistogram, frozen=True):
    """Wrong: restarts by a raw sum."""

    def react(self, context, own, message):
        if own.since.map(lambda sums: sums[0]) > 10:
            context.launch("above", AboveThreshold(self._third, 0))
        return super().react(context, own, message)


class Returning(MonotoneHistogram, frozen=True):
    """Wrong: answers with the raw function."""

    def react(self, context, own, message):
        return own, (own.since + own.noisy).map(self.query)


class Steered(MonotoneHistogram, frozen=True):
    """Wrong: the threshold comes from raw data."""

    def react(self, context, own, message):
        value = own.since.map(self.query)
        return own, context.ask("above", value, Threshold(value + 1))


class Based(MonotoneHistogram, frozen=True):
    """Wrong: the base of the threshold, which is public, is remembered from raw data."""

    def react(self, context, own, message):
        return HistogramInterval(own.time, own.hits, own.since.map(self.query), own.noisy, own.since), None


class Unprivate(MonotoneHistogram, frozen=True):
    """Wrong: the comparison has no noise."""

    def react(self, context, own, message):
        above = (own.since + own.noisy).map(self.query) > own.base
        return own, above


@pytest.mark.parametrize("mutant", [Branching, Returning, Steered, Based, Unprivate])
def test_x2_raw_data_in_a_branch_an_answer_a_threshold_or_a_comparison_is_a_leak(mutant):
    mechanism, coins = mutant(60, max_of, 3), SeededCoins(1)
    state = mechanism.start(coins)
    with pytest.raises(SecretLeak):
        state, _ = mechanism.step(state, Update((1, 0, 1)), coins)
        mechanism.step(state, Ask(), coins)


def test_x2_the_original_is_accepted():
    assert fed(LOUD, [(1, 0, 1)] * 100)[-1].state.own.hits > 0


# ------------------------------------------------------------------------------------------------ two worlds

vectors = st.tuples(*[st.integers(0, 1)] * 3)


@settings(max_examples=25)
@given(st.lists(vectors, min_size=60, max_size=120), vectors, st.data())
def test_one_changed_step_reaches_one_sparse_vector_one_check_and_one_item_of_the_totals(stream, other, data):
    at = data.draw(st.integers(0, len(stream) - 1))
    changed = [*stream[:at], other, *stream[at + 1 :]]
    found = two_worlds(LOUD, [Update(v) for v in stream], [Update(v) for v in changed], data.draw(st.integers(0, 99)))
    assert all(reached <= 1 for reached in found.reached.values())


def test_a_changed_step_is_seen_to_reach_all_three_parts():
    left = [Update((1, 0, 1))] * 200
    right = [Update((0, 0, 1)), *left[1:]]
    swapped = [Update((0, 1, 1)), *left[1:]]
    quick = MonotoneHistogram(60, MonotoneQuery("min"), 3, diameter=2, scale="1/100")
    assert two_worlds(quick, left, right).steps == 200
    assert two_worlds(LOUD, left, swapped).reached == {"above": 0, "check": 0, "totals": 1}
    alone = [Update((1, 0, 0))] * 200
    assert two_worlds(LOUD, alone, [Update((0, 0, 0)), *alone[1:]]).reached == {"above": 1, "check": 1, "totals": 1}


@pytest.mark.parametrize("pair", [((0, 0, 0), (3, 0, 0)), ((-2, 0, 0), (1, 0, 0)), ((0, 9, 0), (2, 9, -1))])
def test_items_off_range_are_brought_there_before_a_change_of_theirs_reaches_a_part(pair):
    rest = [Update((5, 0, 0))] * 200
    found = two_worlds(LOUD, *([Update(item), *rest] for item in pair))
    assert found.reached["totals"] == 1 and max(found.reached.values()) == 1


def test_a_change_in_more_coordinates_than_declared_is_no_neighbour():
    mechanism = MonotoneHistogram(60, max_of, 3, diameter=1)
    with pytest.raises(RelationMismatch):
        two_worlds(mechanism, [Update((1, 0, 0))], [Update((0, 1, 0))])


class Hoarding(MonotoneHistogram, frozen=True):
    """Wrong: the sums do not start again, so that a change reaches every later sparse vector."""

    def react(self, context, own, message):
        after, said = super().react(context, own, message)
        since = own.since + message.private
        return HistogramInterval(after.time, after.hits, after.base, (0,) * self.dimensions, since), said


class Doubled(MonotoneHistogram, frozen=True):
    """Wrong: the counters are told everything twice."""

    def _counted(self, context, since):
        return super()._counted(context, since * 2)


class Unclamped(MonotoneHistogram, frozen=True):
    """Wrong: items are not brought to 0 and 1, so that a change in L1 may be one of a single coordinate."""

    def react(self, context, own, message):
        value = (own.since + message.private).map(self.query)
        context.ask("above", value, 10**9)
        return HistogramInterval(own.time + 1, own.hits, own.base, own.noisy, own.since + message.private), None


@pytest.mark.parametrize("mutant", [Hoarding, Doubled, Unclamped])
def test_two_worlds_reject_changes_that_reach_further_than_declared(mutant):
    left = [Update((1, 0, 0))] * 300
    right = [Update((4, 0, 0) if mutant is Unclamped else (0, 0, 0)), *left[1:]]
    with pytest.raises(RelationMismatch):
        two_worlds(mutant(60, max_of, 3), left, right)


@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_two_worlds_follow_an_adaptive_adversary(delta):
    mechanism = MonotoneHistogram(60, max_of, 3, delta=delta)

    def adversary(answers):
        said = [answer for answer in answers if answer is not None]
        if len(answers) % 5 == 4:
            return Ask(), Ask()
        here = there = tuple(int(at == (said[-1] if said else 0) % 3) for at in range(3))
        if len(said) == 12 and len(answers) % 5 == 0:  # one step differs, at a place chosen by the answers
            there = (1, 1, 1)
        return Update(here), Update(there)

    found = two_adaptive_worlds(mechanism, adversary, rounds=400)
    assert found.steps == 400 and all(reached <= 1 for reached in found.reached.values())


def test_only_monotone_queries_are_taken():
    with pytest.raises(InvalidParameter):
        MonotoneHistogram(1, max, 3)


@pytest.mark.parametrize("message", [Update(1), Update((1, 0)), Ask(1), Ask(private=1), Ask(private=(1, 0, 1)), "x"])
def test_only_vectors_of_the_declared_width_and_bare_asks_are_accepted(message):
    assert not LOUD.accepts(message)


# ------------------------------------------------------------------------------------------------ fitted


def test_a_stream_says_what_was_left_open():
    clicks, one_hot = Stream(bound=1, dimensions=4), Stream(bound=1, dimensions=4, l1=2)
    open_ = MonotoneHistogram(1, max_of)
    several = Stream(bound=1, dimensions=4, l1=2, unit="user", per_unit=9)
    assert open_.fitted(clicks.relation, 4) == MonotoneHistogram(1, max_of, 4, 4, per_unit=1)
    assert open_.fitted(one_hot.relation, 4) == MonotoneHistogram(1, max_of, 4, 2, per_unit=1)
    assert open_.fitted(several.relation, 4) == MonotoneHistogram(1, max_of, 4, 2, per_unit=9)
    said = MonotoneHistogram(1, max_of, 4, 3, per_unit=2)
    assert said.fitted(one_hot.relation, 4) == said, "what was given stays"
    assert MonotoneHistogram(1, max_of, 7).fitted(clicks.relation, 4).dimensions == 7
    for stream in (clicks, one_hot, several):
        assert stream.relation.within(open_.fitted(stream.relation, 4).claim.relation)


def test_one_that_does_not_know_its_dimensions_says_so_and_accepts_no_items():
    unfitted = MonotoneHistogram(1, max_of)
    for use in (
        lambda: unfitted.claim,
        lambda: unfitted.start(SeededCoins(1)),
        lambda: unfitted.error("0.9", 10, 0),
        lambda: unfitted.fitted(Stream(bound=1).relation, None),
    ):
        with pytest.raises(InvalidParameter, match="say dimensions="):
            use()
    assert not unfitted.accepts(Update(1)) and not unfitted.accepts(Update((1, 0)))


# ------------------------------------------------------------------------------- several items of a unit


@settings(max_examples=25)
@given(st.fractions("1/100", 10), st.integers(2, 40), st.sampled_from([0, "1e-9", "1e-6", "0.1"]))
def test_several_items_of_a_unit_have_the_claim_together_that_one_has_by_group_privacy(epsilon, places, delta):
    mechanism = MonotoneHistogram(epsilon, max_of, 3, 2, delta, per_unit=places)
    one = MonotoneHistogram(epsilon / places, max_of, 3, 2, mechanism._each_delta)
    claimed = mechanism.claim
    assert claimed.loss == (ApproxDP(epsilon, delta) if delta else PureDP(epsilon))
    assert claimed.relation == Steps(updates=places, bound=2)
    assert one.claim.loss.group(places).implies(claimed.loss)
    assert (mechanism.structure, mechanism.totals) == (one.structure, one.totals)
    if delta:
        more = ApproxDP(epsilon / places, mechanism._each_delta * Fraction("1.001"))
        assert not more.group(places).implies(claimed.loss), "nothing is left unused"
    mechanism.start(SeededCoins(1))  # what is launched fits into the parts


def test_two_items_of_a_unit_in_one_interval_are_no_neighbours_of_a_part_so_that_its_noise_must_grow():
    mechanism = MonotoneHistogram(60, max_of, 3, per_unit=2)
    left = [Update((1, 0, 0))] * 20
    right = [Update((0, 0, 0))] * 2 + left[2:]
    with pytest.raises(RelationMismatch):
        two_worlds(mechanism, left, right)
    chain = [left, [right[0], *left[1:]], right]
    for one, other in pairwise(chain):
        assert all(reached <= 1 for reached in two_worlds(mechanism, one, other).reached.values())
    assert mechanism.error("0.95", 1000, 3) > 1.9 * MonotoneHistogram(60, max_of, 3).error("0.95", 1000, 3)


def test_a_stream_with_several_items_of_a_unit_is_followed_in_a_session():
    clicks = Stream(bound=1, dimensions=3, unit="user", per_unit=5)
    with pytest.raises(RelationMismatch):
        Session(clicks, within=PureDP(60)).launch(MonotoneHistogram(60, max_of, 3, per_unit=1))
    session = Session(clicks, within=PureDP(300))
    busiest = session.launch(MonotoneHistogram(300, max_of))
    for at in range(200):
        clicks.append([1, 0, 1], unit=f"user {at // 5}")
    assert abs(busiest.ask() - 200) < 100 and session.loss == PureDP(300)


# ------------------------------------------------------------------------------------------------ with a delta


@given(st.fractions("1/100", 10), st.integers(1, 2000), st.sampled_from(["1e-9", "1e-6", "0.1"]))
@settings(max_examples=25)
def test_with_a_delta_the_claim_is_epsilon_and_delta(epsilon, dimensions, delta):
    mechanism = MonotoneHistogram(epsilon, max_of, dimensions, delta=delta)
    assert mechanism.claim.loss == ApproxDP(epsilon, delta)
    MonotoneHistogram(epsilon, max_of, min(dimensions, 20), delta=delta).start(SeededCoins(1))


def test_the_totals_are_gaussian_where_a_change_reaches_many_coordinates_and_laplace_where_few():
    many, few = (MonotoneHistogram(1, max_of, 1000, *shape) for shape in ((1000, "1e-6"), (1, "1e-12")))
    counted = many.totals.claim.loss
    assert isinstance(counted, zCDP) and counted.implies(many.structure[2].loss)
    assert not zCDP(counted.rho * Fraction("1.001")).implies(many.structure[2].loss), "nothing is left unused"
    assert few.totals.claim.loss == PureDP(Fraction(1, 3))
    pure = MonotoneHistogram(1, max_of, 1000)
    assert many.error("0.95", 1000, 9) < pure.error("0.95", 1000, 9) / 4


def test_with_a_delta_answers_are_as_accurate_as_stated_and_follow_an_adaptive_stream():
    mechanism, coins = MonotoneHistogram(60, MonotoneQuery("top", 5), 40, delta="1e-6"), SeededCoins(3)
    assert isinstance(mechanism.totals.claim.loss, zCDP)
    state, true, said = mechanism.start(coins), [0] * 40, 0
    for t in range(1, 300):
        vector = [int((at + said) % 3 == 0) for at in range(40)]
        true = [a + b for a, b in zip(true, vector, strict=True)]
        state, _ = mechanism.step(state, Update(tuple(vector)), coins)
        state, said = mechanism.step(state, Ask(), coins)
        exactly = sum(sorted(true)[-5:]) // 5
        assert abs(said - exactly) <= mechanism.error("0.999999999999", t, state.own.hits)
    assert state.own.hits > 0


@pytest.mark.parametrize("wrong", [{"delta": 1}, {"delta": -1}, {"scale": 0}, {"beta": 0}, {"diameter": 0}])
def test_parameters_are_checked(wrong):
    with pytest.raises(InvalidParameter):
        MonotoneHistogram(**{"epsilon": 1, "query": max_of, "dimensions": 3, **wrong})


# ------------------------------------------------------------------------------------------------ accuracy


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [1, pytest.param(Fraction(1, 4), marks=pytest.mark.long)])
def test_answers_at_all_times_are_as_accurate_as_stated(scale):
    sure, runs, length = Fraction(9, 10), 40, 250
    mechanism = MonotoneHistogram(20, max_of, 2, beta="1/10", scale=scale)
    failures = hits = 0
    for seed in range(runs):
        coins = SeededCoins(seed)
        state, true, failed = mechanism.start(coins), [0, 0], False
        for t in range(1, length + 1):
            vector = (int(t % 7 != seed % 7), int(t % 3 == 0))
            true = [a + b for a, b in zip(true, vector, strict=True)]
            state, _ = mechanism.step(state, Update(vector), coins)
            if t % 10 == 0:
                failed |= abs(answer(mechanism, state) - max(true)) > mechanism.error(sure, t, state.own.hits)
        failures, hits = failures + failed, hits + state.own.hits
    # Each run fails with probability at most 1/10, independently: more failures than this have one below 1e-9.
    assert binom.sf(20, runs, 0.1) < 1e-9
    assert failures <= 20 and hits > runs, "and the counters were read"


def test_the_papers_bound_at_scale_1_is_that_of_the_theory_sheet():
    mechanism = MonotoneHistogram(1, max_of, 4, beta="0.05", scale=1)
    comparing, counting, _ = mechanism._noises(mechanism.beta, 1000, 5)
    assert mechanism._papers_error(mechanism.beta, 1000, hits=4) == 4 * comparing + 5 * counting + 2
    logs = [log(4 * pi**2 * i**2 / (6 * 0.05)) for i in (5, 1000)]
    assert 6 * logs[0] + 12 * logs[1] <= comparing <= 6 * logs[0] + 12 * logs[1] + 2


def test_the_bounds_on_noise_never_fall():
    mechanism = MonotoneHistogram(1, max_of, 2)
    along = [mechanism._noises(mechanism.beta, t, j) for t, j in [(1, 1), (1, 2), (2, 3), (5, 3), (9, 9), (9, 40)]]
    assert all(a <= b for one, other in pairwise(along) for a, b in zip(one, other, strict=True))


@given(st.fractions("1/1000", 10**12), st.fractions("1/1000000", 1), st.integers(1, 10**30), st.integers(-1, 1))
def test_limits_of_noise_are_those_of_exact_logarithms(scale, beta, i, beside):
    """Also where the product is a whole number, or so near to one that floats cannot tell on which side it is."""
    whole_product = max(1, round(scale)) / log_odds(beta, i) + Fraction(beside, 10**18)
    for tried in (scale, whole_product):
        assert limit(tried, beta, i) == ceil(tried * log_odds(beta, i))
    assert limit(Fraction(10**400), beta, i) == ceil(10**400 * log_odds(beta, i)), "beyond all floats"


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(*[st.integers(-1, 2)] * 3), max_size=60), st.integers(0, 9))
def test_items_that_come_together_make_the_state_that_they_make_one_by_one(vectors, seed):
    coins, updates = SeededCoins(seed), [Update(vector) for vector in vectors]
    together = LOUD.updated(LOUD.start(coins), updates, coins)
    coins = SeededCoins(seed)
    one_by_one = LOUD.start(coins)
    for update in updates:
        one_by_one, _ = LOUD.step(one_by_one, update, coins)
    assert encode(together, sealed=True) == encode(one_by_one, sealed=True)


def test_no_time_no_error_and_certainty_is_not_offered():
    assert LOUD.error("0.9", 0, 0) == 0
    with pytest.raises(InvalidParameter):
        LOUD.error(1, 10, 0)


def test_an_adaptive_stream_is_followed():
    coins = SeededCoins(3)
    state, true, said = LOUD.start(coins), [0, 0, 0], 0
    for t in range(1, 400):
        vector = [0, 0, 0]
        vector[said % 3] = 1  # the next item depends on what was answered
        true = [a + b for a, b in zip(true, vector, strict=True)]
        state, _ = LOUD.step(state, Update(tuple(vector)), coins)
        state, said = LOUD.step(state, Ask(), coins)
        assert abs(said - max(true)) <= LOUD.error("0.999999999999", t, state.own.hits)
    assert state.own.hits > 0


def test_a_session_runs_it_on_a_stream_of_vectors_that_declares_how_far_they_are_apart():
    clicks = Stream(bound=1, dimensions=3)
    session = Session(clicks, within=PureDP(60))
    with pytest.raises(RelationMismatch):
        session.launch(MonotoneHistogram(60, max_of, 3, diameter=2))
    busiest = session.launch(LOUD)
    for _ in range(200):
        clicks.append([1, 0, 1])
    assert abs(busiest.ask() - 200) < 100 and session.loss == PureDP(60)
    one_hot = Session(Stream(bound=1, dimensions=3, l1=2), within=PureDP(60))
    assert one_hot.launch(MonotoneHistogram(60, max_of, 3, diameter=2)).ask() == 0


def test_states_and_mechanisms_round_trip():
    mechanism = decode(encode(LOUD), Mechanism)
    assert mechanism == LOUD and mechanism.claim == LOUD.claim
    coins = SeededCoins(1)
    state = LOUD.start(coins)
    for _ in range(60):
        data = encode(state, sealed=True)
        assert encode(decode(data, State), sealed=True) == data
        state, _ = LOUD.step(decode(data, State), Update((1, 1, 0)), coins)
    assert state.own.hits > 0 and isinstance(state.own.since, Secret)
