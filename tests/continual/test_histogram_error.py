"""The stated error of a monotone histogram, compared with exact enumerations of its noises on streams of one bar."""

from fractions import Fraction
from math import exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.continual.grid_laws import CARE, Grid
from counterpoint.continual.histogram_error import HistogramNoises, confirmed, histogram_error, last, missed, share
from counterpoint.continual.monotone_histogram import MonotoneHistogram
from counterpoint.continual.monotone_queries import max_of
from counterpoint.mechanisms.sparse_vector import AboveThreshold

FINE = Grid(1, 1e-14)
LOUD = MonotoneHistogram(8, max_of, 1)


def chances(scale, reach):
    """Of discrete Laplace noise, from -reach to reach."""
    q = exp(-1 / float(scale))
    return (1 - q) / (1 + q) * q ** np.abs(np.arange(-reach, reach + 1))


def at_least(scale, least):
    """P[nu >= least], for an array."""
    q = exp(-1 / float(scale))
    far = np.where(least > 0, least, 1 - least)
    return np.where(least > 0, q**far / (1 + q), 1 - q**far / (1 + q))


def chance_of_an_error(mechanism, held, until, t, far):
    """The exact chance that an answer until time t, with one hit at most, is off by `far` or more.

    The stream of one bar rises until it is `held` below the threshold. There it stays until time `until`, or until a
    hit, and then it goes on rising. All noises are enumerated: those on two thresholds, of each comparison, of the
    check and in the first total.
    """
    third, reach = mechanism._third, 30
    once, each = AboveThreshold(third, 0).scales
    (node, nodes), _ = mechanism.totals.noise.parts(1)
    assert nodes == 1
    around, total = np.arange(-reach, reach + 1), 0.0
    unseen = chances(once, reach)  # of each tau, with no hit yet
    count = 0
    for time in range(1, t + 1):
        threshold = mechanism.gamma(time, 1)
        count += time > until or count < threshold - held
        hit = at_least(each, threshold + around - count)
        found = float(np.sum(unseen * hit))
        unseen = unseen * (1 - hit)
        yes = float(at_least(1 / third, np.array(threshold - mechanism.xi(time, 1) - count)))
        for base, chance in ((threshold, yes), (0, 1 - yes)):
            if found * chance > 1e-7:
                total += found * chance * after_a_hit(mechanism, (count, time, base), t, far, node)
        if count >= far:
            return total + float(np.sum(unseen))
    return total


def after_a_hit(mechanism, hit, t, far, node):
    """The same given the count and the time of a hit, and the base since."""
    count, time, base = hit
    once, each = AboveThreshold(mechanism._third, 0).scales
    reach = 30
    around = np.arange(-reach, reach + 1)
    total, taus = 0.0, chances(once, reach)
    for z, chance in zip(around, chances(node, reach), strict=True):
        noisy = max(0, count + int(z))
        if chance < 1e-7:
            continue
        if abs(count - noisy) >= far:
            total += chance
            continue
        steps = np.arange(1, noisy + far - count + 1)  # the last of which makes the answer too low by `far`
        if time + steps[-1] > t:
            continue
        gammas = np.array([mechanism.gamma(time + int(step), 2) for step in steps])
        least = (base + gammas - noisy - steps)[:, None] + around[None, :]
        total += chance * float(np.sum(taus * np.prod(1 - at_least(each, least), axis=0)))
    return total


@pytest.mark.parametrize(("gamma", "scales"), [(20, (1, 2)), (9, (3, 6)), (150, (6, 12)), (0, (2, 4))])
def test_how_far_the_function_rises_unseen_is_at_least_the_exact_chance(gamma, scales):
    """Given tau, a function that rises by 1 a step is missed at each height."""
    once, each = scales
    taus = np.arange(-150, 151)
    law, missing = missed(FINE, (Fraction(once), Fraction(each)), gamma), chances(once, 150)
    for rise in range(1, gamma + 40):
        missing = missing * (1 - at_least(each, gamma + taus - rise))
        exact = float(np.sum(missing))
        assert CARE * law.tail(rise) >= exact - 1e-13
        if exact < 0.2 and gamma > 10:
            assert law.tail(rise) <= 1.3 * exact + 1e-12, "and not far above it"


@pytest.mark.parametrize("t", [1, 30, 1000])
def test_how_far_below_its_threshold_a_confirmed_hit_is_has_at_least_the_exact_chance(t):
    """For a function that stays s below its threshold for t steps: a hit, and a check that confirms it."""
    scales, xi = (Fraction(3), Fraction(6)), 20
    law = confirmed(FINE, HistogramNoises(scales, Fraction(2), LOUD.totals), xi, t)
    taus = np.arange(-200, 201)
    for below in range(1, 60):
        hit = 1 - (1 - at_least(6, below + taus)) ** t
        exact = float(np.sum(chances(3, 200) * hit)) * float(at_least(2, np.array(below - xi)))
        assert CARE * law.tail(below) >= exact
        if exact < 0.05:
            assert law.tail(below) <= 1.6 * exact + 1e-12, "min(1, x) is at most 1.59 (1 - e^-x)"


@pytest.mark.parametrize("width", [2, 5, 50])
def test_a_coarser_grid_only_widens_laws(width):
    scales = (Fraction(3), Fraction(6))
    noises, coarse = HistogramNoises(scales, Fraction(2), LOUD.totals), Grid(width, 1e-14)
    pairs = [
        (missed(coarse, scales, 77), missed(FINE, scales, 77)),
        (confirmed(coarse, noises, 23, 100), confirmed(FINE, noises, 23, 100)),
        (LOUD.totals.noise.worst_law(9, coarse), LOUD.totals.noise.worst_law(9, FINE)),
    ]
    for wide, narrow in pairs:
        for value in range(1, 200):
            assert CARE * wide.tail(-(-value // width)) + 1e-12 >= narrow.tail(value)


def falling(chances_at_least):
    """The chances of each value, from those to be at least 0, 1, 2, ..."""
    return chances_at_least - np.append(chances_at_least[1:], 0.0)


def summed(*laws):
    """The chances of a sum, from (least value, chances) of independent numbers."""
    low, total = 0, np.ones(1)
    for least, each in laws:
        low, total = low + least, np.convolve(total, each)
    return low, total


def laws_of_the_proof(mechanism, t, most):
    """max(gamma + tau, low) + Y, B and V, as the theory sheet has them, one value at a time."""
    third = mechanism._third
    once, each = AboveThreshold(third, 0).scales
    gamma, xi = mechanism.gamma(t, most + 1), mechanism.xi(t, most)
    half, taus = gamma // 2, np.arange(-60, 61)
    height = np.zeros(200)
    np.add.at(height, np.maximum(gamma + taus, half), chances(once, 60))
    missing = [1.0]  # P[Y >= -half], P[Y >= 1 - half], ...
    for y in range(1 - half, 60):
        missing.append(missing[-1] * float(at_least(each, np.array(y + 1))))  # P[nu <= -y - 1]
    below = np.arange(1, 60)
    hit = [float(np.sum(chances(once, 60) * np.minimum(1, t * at_least(each, s + taus)))) for s in below]
    moved = np.append(1.0, np.array(hit) * at_least(1 / third, below - xi))
    (node, _), _ = mechanism.totals.noise.parts(1)
    nodes = max(mechanism.totals.noise.parts(time)[0][1] for time in range(1, most + 1))
    reach, noise = summed(*[(-60, chances(node, 60))] * nodes)
    upper = noise[-reach:].copy()
    upper[0] += noise[:-reach].sum()
    return (0, height), (-half, falling(np.array(missing))), (0, falling(moved)), (0, upper)


def twice(law):
    spread = np.zeros(2 * len(law[1]) - 1)
    spread[::2] = law[1]
    return 2 * law[0], spread


@pytest.mark.parametrize("sure", ["0.5", "0.9", "0.99"])
@pytest.mark.parametrize("hits", [1, 3])
def test_the_stated_error_is_the_least_that_the_proof_allows(sure, hits):
    """Before the first hit; at `hits` hits, two ways; and for each pair of hits, by what they exceed on average."""
    t, pairs = 300, hits * (hits - 1) // 2
    height, rise, moved, noise = laws_of_the_proof(LOUD, t, hits)
    first, after_one = summed(height, rise), summed(height, rise, moved, twice(noise))
    after_two = summed(after_one, noise)

    def tail(law, least):
        return float(law[1][max(0, least - law[0]) :].sum())

    def on_average(law, least):
        values = law[0] + np.arange(len(law[1]))
        means = [float(np.sum(law[1] * np.maximum(values - a, 0))) / (least - a) for a in range(least - 40, least)]
        return min(means)

    def chance(error):
        some = tail(first, error + 1) + hits * (tail(after_one, error + 1) + tail(noise, error + 1))
        return some + pairs * on_average(after_two, error + 1)

    allowed = (1 - float(sure)) / {1: 4, 3: 6}[hits]
    stated = LOUD.error(sure, t, hits)
    assert chance(stated) <= allowed < chance(stated - 1)


@pytest.mark.parametrize("sure", ["0.5", "0.9", "0.99"])
@pytest.mark.parametrize(
    ("t", "held", "until"),
    [
        (60, 0, 0),
        (200, 7, 160),
        pytest.param(200, 5, 160, marks=pytest.mark.long),
        pytest.param(250, 6, 210, marks=pytest.mark.long),
    ],
)
def test_the_exact_chance_of_an_error_beyond_the_stated_one_is_no_more_than_may_fail(sure, t, held, until):
    stated = LOUD.error(sure, t, hits=1)
    assert chance_of_an_error(LOUD, held, until, t, stated + 1) <= 1 - float(sure)


def test_a_patient_stream_comes_near_the_stated_error():
    """It waits below its threshold until the base is moved without it, and then rises: the exact quantile at 90 %."""
    stated = LOUD.error("0.9", 200, hits=1)
    near = stated * 10 // 13
    assert chance_of_an_error(LOUD, 6, 160, 200, near) >= 0.1


@pytest.mark.parametrize("sure", ["0.5", "0.9", "0.999"])
def test_before_the_first_hit_the_stated_error_is_near_the_exact_quantile(sure):
    """One bar that rises at every step: the chance that no step is a hit until the count is `far`."""
    once, each = AboveThreshold(LOUD._third, 0).scales
    taus, missing = np.arange(-200, 201), chances(once, 200)
    stated, quantile = LOUD.error(sure, 300, hits=0), 0
    for count in range(1, 200):
        missing = missing * (1 - at_least(each, LOUD.gamma(300, 1) + taus - count))
        quantile = count if float(np.sum(missing)) > 1 - float(sure) else quantile
    assert quantile <= stated <= 1.3 * quantile


@settings(max_examples=60, deadline=None)
@given(
    histogram=st.builds(
        MonotoneHistogram,
        st.sampled_from(["0.01", "1", "20", "1e50"]),
        st.just(max_of),
        st.integers(1, 50),
        delta=st.sampled_from(["0", "1e-6"]),
        scale=st.sampled_from(["1/100", "1/4", "1"]),
    ),
    sure=st.sampled_from(["0", "0.5", "0.95", "0.999999999999"]),
    t=st.integers(1, 10**6),
    hits=st.integers(0, 2000),
)
def test_no_bound_is_above_that_of_the_paper(histogram, sure, t, hits):
    papers = histogram._papers_error(1 - Fraction(sure), t, min(hits, t))
    assert histogram.error(sure, t, hits) <= papers


def test_what_floats_cannot_hold_has_the_bound_of_the_paper():
    tiny = Fraction(1, 10**250)
    for mechanism, fails, t in [
        (LOUD, tiny, 100),
        (LOUD, Fraction(1, 10), 10**31),
        (MonotoneHistogram("1e-200", max_of, 1), Fraction(1, 10), 100),
    ]:
        assert mechanism.error(1 - fails, t, 3) == mechanism._papers_error(fails, t, 3)


def test_shares_of_what_may_fail_add_up_to_one_at_most():
    """One for all numbers of hits of as many binary digits."""
    assert [last(hits) for hits in (0, 1, 2, 3, 4, 7, 8)] == [0, 1, 3, 3, 7, 7, 15]
    total = sum((share(2**digits - 1) for digits in range(1000)), Fraction(0))
    assert Fraction(999, 1000) <= total < 1


def test_an_answer_is_never_too_low_by_more_than_there_were_steps():
    assert MonotoneHistogram(1, max_of, 1).error("0.9", 30, hits=0) == 30
    assert MonotoneHistogram(1, max_of, 1).error("0.9", 30, hits=1) == 30
    few = MonotoneHistogram(1, max_of, 1).error("0.9", 3, hits=1)
    assert 3 < few < 60, "but the noise of the totals may make it too high"


def test_hits_of_as_many_digits_have_one_bound_which_is_for_the_last_of_them():
    assert LOUD.error("0.9", 1000, 4) == LOUD.error("0.9", 1000, 7) < LOUD.error("0.9", 1000, 8)
    assert LOUD.error("0.9", 1000, 1) < LOUD.error("0.9", 1000, 2)
    assert LOUD.error("0.9", 5, 10**6) == LOUD.error("0.9", 5, 5), "there is at most one hit a step"


def test_the_bound_is_computed_once():
    histogram_error.cache_clear()
    assert LOUD.error("0.9", 1000, 4) == LOUD.error("0.9", 1000, 4)
    assert histogram_error.cache_info().hits == 1
