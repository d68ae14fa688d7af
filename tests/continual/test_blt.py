"""BLT matrices: what is said of them exactly, against plain sums; and how near the table comes to the optimum."""

import json
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from counterpoint.continual.blt import Blt, Buffer, for_horizon
from counterpoint.continual.blt_noise import blt_noise
from counterpoint.continual.blt_table import TABLE
from counterpoint.errors import InvalidParameter

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "counters.json").read_text())
SMALL = [Blt([Buffer(1, 1, 1, 2)]), Blt([Buffer(1, 2, 1, 3), Buffer(1, 5, 1, 4)]), for_horizon(2**6)]


def coefficients(blt, steps):
    """c and b by their definitions, exactly: C b = the all-ones column, as A = B C and all of them commute."""
    c = [Fraction(1)]
    c += [sum(buffer.weight * (1 - buffer.rate) ** k for buffer in blt.buffers) for k in range(steps - 1)]
    b = []
    for t in range(steps):
        b.append(1 - sum(c[k] * b[t - k] for k in range(1, t + 1)))
    return c, b


@pytest.mark.parametrize("blt", SMALL)
def test_the_norm_is_the_sum_of_squares_over_all_time(blt):
    c, _ = coefficients(blt, 60)
    rest = sum((1 - buffer.rate) ** 59 for buffer in blt.buffers) ** 2 / (1 - (1 - blt.buffers[0].rate) ** 2)
    assert sum(x * x for x in c) < blt.squared < sum(x * x for x in c) + rest
    assert 1 + blt.total > sum(c)


@pytest.mark.parametrize("blt", SMALL)
def test_spread_and_drift_enclose_the_plain_sums_closely(blt):
    _, b = coefficients(blt, 40)
    assert all(x > y > 0 for x, y in pairwise(b)), "b is positive and falls"
    for t in (1, 2, 7, 40):
        for found, plain in ((blt.spread(t), sum(x * x for x in b[:t])), (blt.drift(t), sum(b[:t]))):
            assert Fraction(found.lower) <= plain <= Fraction(found.upper) and found.agrees_to(25)


def sqrt_toeplitz(power):
    """The squared norm of the square root's coefficients up to 2^power: its largest deviation at rho = 1/2."""
    k = np.arange(1, round(2 ** min(power, 20)))
    known = 1 + (np.cumprod((2 * k - 1) / (2 * k)) ** 2).sum()
    return known + max(0, power - 20) * np.log(2) / np.pi


@pytest.mark.parametrize("power", sorted(TABLE))
def test_at_its_horizon_the_deviation_is_within_two_percent_of_the_square_root(power):
    reached = float((for_horizon(2**power).squared * for_horizon(2**power).spread(2**power)).sqrt().upper)
    assert 1 < reached / sqrt_toeplitz(power) < 1.02


@pytest.mark.parametrize("power", range(2, 40, 3))
def test_at_horizons_between_those_of_the_table_it_is_still_within_three_percent(power):
    for between in (power + 0.49, power + 0.51):
        blt, horizon = for_horizon(round(2**between)), round(2**between)
        assert float((blt.squared * blt.spread(horizon)).sqrt().upper) / sqrt_toeplitz(between) < 1.03


@pytest.mark.parametrize("power", [10, 16, 20])
def test_a_counter_keeps_to_the_figures_of_the_theory(power):
    best = VECTORS["exact"][str(power)]["G sqrt Toeplitz"]
    assert sqrt_toeplitz(power) == pytest.approx(best["maxstd"])
    noise, t = blt_noise(Fraction(1, 2), 2**power), 2**power
    assert best["maxstd"] < noise.deviation(t) < 1.05 * best["maxstd"]
    times = sorted({int(x) for x in np.linspace(1, t, 60)})
    mean_square = np.mean([noise.deviation(x) ** 2 for x in times])
    assert np.sqrt(mean_square) < 1.05 * best["rmse"]


def mean_spread(blt, last):
    """The mean over t from 1 to `last` of the sum of b_k^2 over k < t, by the fading parts of b, in floats."""
    parts = [(float(blt.end), 0.0), *((float(fade.size.upper), float(fade.gap.upper)) for fade in blt.fades)]
    total = 0.0
    for one, first in parts:
        for other, second in parts:
            gap, log = first + second - first * second, np.log1p(-first) + np.log1p(-second)
            sums = (last + 1) / 2 if not gap else (1 + np.exp(log) * np.expm1(last * log) / (gap * last)) / gap
            total += one * other * sums
    return total


def root_mean_square_of_the_square_root(power):
    k = np.arange(1, 2 ** min(power, 20))
    squares = np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k)) ** 2])
    norm, moment = squares.sum(), (squares * np.arange(len(squares))).sum()
    if power > 20:  # the squares go on as 1/(pi k)
        norm, moment = norm + (power - 20) * np.log(2) / np.pi, moment + (2**power - 2**20) / np.pi
    return np.sqrt(norm * (norm - moment / 2**power))


def test_without_a_horizon_the_root_mean_square_error_is_near_that_of_the_square_root_up_to_any_time():
    blt = for_horizon(None)
    assert mean_spread(blt, 300) == pytest.approx(
        np.mean([float(blt.spread(t).upper) for t in range(1, 301)]), rel=1e-9
    )
    assert root_mean_square_of_the_square_root(10) == pytest.approx(VECTORS["exact"]["10"]["G sqrt Toeplitz"]["rmse"])
    ratios = {
        power: np.sqrt(float(blt.squared) * mean_spread(blt, 2**power)) / root_mean_square_of_the_square_root(power)
        for power in range(8, 25)
    }
    assert max(ratios.values()) <= 1.16
    assert max(ratios[power] for power in range(10, 21)) <= 1.14


def test_beyond_its_horizon_the_deviation_grows_as_the_theory_says():
    noise = blt_noise(Fraction(1, 2), 2**20)
    ratios = [noise.deviation(2**power) / sqrt_toeplitz(power) for power in (10, 16, 20, 22)]
    assert ratios == [pytest.approx(ratio, rel=0.02) for ratio in (1.31, 1.10, 1.01, 1.09)]
    assert noise.deviation(2**39) / noise.deviation(2**37) == pytest.approx(2, rel=1e-3)


def test_the_formulas_give_the_sensitivity_and_the_error_of_the_vectors():
    for name, known in VECTORS["blt"].items():
        decay, scale = np.array(known["buffer_decay"]), np.array(known["output_scale"])
        if name.startswith("10_") and len(decay) < 5:
            digits = [
                Buffer(round((1 - d) * 2**50), 50, round(w * 2**50), 50) for d, w in zip(decay, scale, strict=True)
            ]
            blt = Blt(digits)
            # the vectors' sensitivity is that up to the horizon, ours that over all time
            assert known["sensitivity_squared"] < float(blt.squared) < 1.06 * known["sensitivity_squared"]
            error = known["maxstd"] / known["sensitivity_squared"] ** 0.5
            assert float(blt.spread(2**10).sqrt().upper) == pytest.approx(error, rel=1e-6)


@pytest.mark.parametrize(
    "buffers",
    [
        [Buffer(2, 1, 1, 2)],
        [Buffer(0, 1, 1, 2)],
        [Buffer(1, 1, 0, 2)],
        [Buffer(1, 1, -1, 2)],
        [Buffer(1, 1, 1, 1)],
        [Buffer(1, 1, 1, 4), Buffer(2, 2, 1, 4)],
    ],
)
def test_buffers_for_which_the_formulas_do_not_hold_are_refused(buffers):
    with pytest.raises(InvalidParameter):
        Blt(buffers)
