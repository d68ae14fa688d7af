"""The samples follow their laws, also where tiny words force the paths that 32-bit words almost never take.

Chi-squared tests fail at a p-value below 1e-12: a false-alarm rate below 1e-9, with room for the approximation (each
bin expects at least 100 samples, 20 where words are tiny). Seeds are fixed, so that a test that passes goes on passing.
"""

import ast
import inspect
import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from counterpoint.coins import bernoulli as thresholds
from counterpoint.coins import cells as cells_module
from counterpoint.coins import keystream, secure
from counterpoint.coins import noise as gaussian_module
from counterpoint.coins import noise as laplace
from counterpoint.coins import noise as rounded_module
from counterpoint.coins.keystream import Keystream
from counterpoint.coins.noise import (
    discrete_gaussian,
    discrete_laplace,
    geometric,
    one_gaussian,
    one_rounded_normal,
    rounded_normal,
)
from counterpoint.coins.secure import SeededCoins

ALARM = 1e-12
MANY = 10**6


def laplace_cdf(scale: float) -> Callable[[int], float]:
    q = math.exp(-1 / scale)
    return lambda x: 1 - math.exp(-(x + 1) / scale) / (1 + q) if x >= 0 else math.exp(x / scale) / (1 + q)


def gaussian_cdf(sigma2: float) -> Callable[[int], float]:
    if sigma2 > 10**7:  # a midpoint rule for the normal density, off by less than 1/(24 sigma2)
        return lambda x: 0.5 * math.erfc(-(x + 0.5) / math.sqrt(2 * sigma2))
    reach = math.ceil(12 * math.sqrt(sigma2)) + 2
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma2))
    sums = np.cumsum(weights) / weights.sum()
    return lambda x: float(sums[min(max(x + reach, 0), 2 * reach)])


def rounded_cdf(sigma2: float) -> Callable[[int], float]:
    return lambda x: 0.5 * math.erfc(-(x + 0.5) / math.sqrt(2 * sigma2))


def cuts(cdf: Callable[[int], float], reach: int, bins: int) -> list[int]:
    """Integers that cut the law into about so many equal parts, with finer ones far out; atoms stand alone."""
    tails = [10.0**-4, 3 * 10.0**-4, 10.0**-3, 3 * 10.0**-3]
    found = set()
    for target in [*tails, *(np.arange(1, bins) / bins), *(1 - t for t in tails)]:
        low, high = -reach, reach
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if cdf(middle) < target else (low, middle)
        found |= {low - 1, low}
    return sorted(found)


def p_value(samples, cdf: Callable[[int], float], reach: int, bins: int = 64, least: int = 100) -> float:
    """How likely samples of this law fit it no better, by chi-squared over bins chosen from the law alone."""
    places = cuts(cdf, reach, bins)
    expected = len(samples) * np.diff([0.0, *map(cdf, places), 1.0])
    landed = np.searchsorted(np.array(places, dtype=samples.dtype), samples, side="left")
    observed = np.bincount(landed, minlength=len(expected))
    merged = [[0.0, 0.0]]
    for pair in zip(expected, observed, strict=True):
        merged[-1] = [merged[-1][0] + pair[0], merged[-1][1] + pair[1]]
        if merged[-1][0] >= least:
            merged.append([0.0, 0.0])
    rest = merged.pop()
    merged[-1] = [merged[-1][0] + rest[0], merged[-1][1] + rest[1]]
    assert len(merged) > 1
    return float(chi2.sf(sum((o - e) ** 2 / e for e, o in merged), len(merged) - 1))


# --- the laws, drawn as in production

SCALES = ["1/8", 1, 10, 1000, 2**20, 2**40, 2**100]
VARIANCES = ["1/4", 1, 2, 100, 10**6, 2**40, 2**80, 2**120]


@pytest.mark.statistical
@pytest.mark.parametrize("scale", SCALES)
def test_discrete_laplace_samples_follow_their_law(scale):
    spread = Fraction(scale)
    samples = SeededCoins(1).discrete_laplace(scale, size=MANY if spread < 2**50 else 20_000)
    assert p_value(samples, laplace_cdf(float(spread)), math.ceil(60 * spread)) > ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("sigma2", VARIANCES)
def test_discrete_gaussian_samples_follow_their_law(sigma2):
    variance = Fraction(sigma2)
    samples = SeededCoins(2).discrete_gaussian(sigma2, size=MANY if variance < 2**90 else 20_000)
    assert p_value(samples, gaussian_cdf(float(variance)), math.ceil(15 * math.sqrt(variance))) > ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("sigma2", VARIANCES)
def test_so_do_discrete_gaussian_samples_that_are_drawn_one_by_one(sigma2):
    variance, coins = Fraction(sigma2), SeededCoins(10)
    drawn = [coins.discrete_gaussian(variance) for _ in range(30_000)]
    samples = np.array(drawn, dtype=np.int64 if variance < 2**90 else object)
    assert p_value(samples, gaussian_cdf(float(variance)), math.ceil(15 * math.sqrt(variance))) > ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("sigma2", [*VARIANCES, 4000, 5000, 2**13])
def test_rounded_normal_samples_follow_their_law(sigma2):
    """Up to sigma = 64 a cell is one integer, and beyond it is not."""
    variance = Fraction(sigma2)
    samples = SeededCoins(2).rounded_normal(sigma2, size=MANY if variance < 2**90 else 20_000)
    assert p_value(samples, rounded_cdf(float(variance)), math.ceil(15 * math.sqrt(variance))) > ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [10, 1000])
def test_far_values_of_discrete_laplace_are_as_rare_as_they_should_be(scale):
    """A count that expects about 400 is within 10 of its standard deviations: a false alarm below 1e-15."""
    samples = SeededCoins(3).discrete_laplace(scale, size=MANY)
    far = scale * math.log(MANY / 400)
    expected = MANY * 2 * laplace_cdf(scale)(-math.ceil(far))
    assert abs(np.count_nonzero(abs(samples) >= far) - expected) < 10 * math.sqrt(expected)


@pytest.mark.statistical
@pytest.mark.parametrize("draw", ["discrete_laplace", "discrete_gaussian", "rounded_normal"])
def test_the_lowest_digits_of_wide_noise_are_uniform(draw):
    samples = getattr(SeededCoins(4), draw)(2**40, size=MANY)
    observed = np.bincount(samples & 63, minlength=64)
    statistic = float(((observed - MANY / 64) ** 2 / (MANY / 64)).sum())
    assert chi2.sf(statistic, 63) > ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [2**40, 2**100, 2**200])
def test_wide_discrete_laplace_has_mean_0_and_mean_size_scale(scale):
    """Both means are within 8 standard errors: a false alarm below 1e-14."""
    samples = [int(x) for x in SeededCoins(5).discrete_laplace(scale, size=20_000)]
    assert abs(float(Fraction(sum(samples), len(samples) * scale))) < 8 * math.sqrt(2 / len(samples))
    sizes = Fraction(sum(map(abs, samples)), len(samples) * scale)
    assert abs(float(sizes) - 1) < 8 * math.sqrt(1 / len(samples))


@pytest.mark.statistical
@pytest.mark.parametrize("sigma2", [2**80, 2**200, Fraction(2**100, 3)])
def test_wide_discrete_gaussian_has_mean_0_and_variance_sigma2(sigma2):
    """Mean and variance are within 8 standard errors: a false alarm below 1e-14."""
    samples = [int(x) for x in SeededCoins(6).discrete_gaussian(sigma2, size=20_000)]
    mean_squared = Fraction(sum(samples), len(samples)) ** 2 / Fraction(sigma2)
    assert math.sqrt(mean_squared) < 8 / math.sqrt(len(samples))
    variance = Fraction(sum(x * x for x in samples), len(samples)) / Fraction(sigma2)
    assert abs(float(variance) - 1) < 8 * math.sqrt(2 / len(samples))


@pytest.mark.statistical
@pytest.mark.parametrize("draw", ["discrete_laplace", "discrete_gaussian", "rounded_normal"])
def test_successive_draws_are_not_correlated(draw):
    """The correlation of neighbours is within 8 standard errors of 0: a false alarm below 1e-14."""
    samples = getattr(SeededCoins(7), draw)(100, size=MANY).astype(float)
    for lag in (1, 2, 7):
        assert abs(np.corrcoef(samples[:-lag], samples[lag:])[0, 1]) < 8 / math.sqrt(MANY)


# --- tiny words: most words tie, most values pass their digits

TINY = [1, 2, 4, 8]


@pytest.mark.statistical
@pytest.mark.parametrize("width", TINY)
@pytest.mark.parametrize("scale", [Fraction(1, 8), Fraction(1), Fraction(7, 3), Fraction(20)])
def test_discrete_laplace_is_exact_however_tiny_the_words(scale, width):
    samples = discrete_laplace(scale, 4000, Keystream(bytes([width] * 32)), width)
    least = 20 if scale >= 1 else 1  # at 1/8 nearly every value is 0: 1.3 of 4000 are positive
    assert p_value(samples, laplace_cdf(float(scale)), math.ceil(60 * scale), bins=20, least=least) > ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("width", TINY)
@pytest.mark.parametrize("sigma2", [Fraction(1, 4), Fraction(1), Fraction(14, 3), Fraction(10**4), Fraction(10**6, 7)])
def test_discrete_gaussian_is_exact_however_tiny_the_words(sigma2, width):
    reach, stream = math.ceil(15 * math.sqrt(sigma2)), Keystream(bytes([width] * 32))
    together = discrete_gaussian(sigma2, 2000, stream, width)
    alone = np.array([one_gaussian(sigma2, stream, width) for _ in range(2000)])
    for samples in (together, alone):
        assert p_value(samples, gaussian_cdf(float(sigma2)), reach, bins=20, least=20) > ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("width", TINY)
@pytest.mark.parametrize("sigma2", [Fraction(1, 4), Fraction(1), Fraction(14, 3), Fraction(10**4)])
def test_rounded_normal_is_exact_however_tiny_the_words(sigma2, width):
    reach, stream = math.ceil(15 * math.sqrt(sigma2)), Keystream(bytes([width] * 32))
    together = rounded_normal(sigma2, 1000, stream, width)
    alone = np.array([one_rounded_normal(sigma2, stream, width) for _ in range(1000)])
    for samples in (together, alone):
        assert p_value(samples, rounded_cdf(float(sigma2)), reach, bins=20, least=20) > ALARM


@given(st.integers(1, 130), st.integers(0, 3), st.randoms(use_true_random=False))
def test_few_columns_of_digits_spell_the_same_numbers_as_many(rows, few, random):
    columns = [random.getrandbits(rows) for _ in range(few)]
    ones = np.array([[column >> row & 1 for column in columns] for row in range(rows)], dtype=bool).reshape(rows, few)
    many = np.concatenate([ones, np.zeros((rows, 100), dtype=bool)], axis=1)
    assert laplace._from_digits(ones).tolist() == columns == laplace._from_digits(many)[:few].tolist()


@pytest.mark.parametrize("width", [16, 64])
def test_other_words_give_other_draws_of_the_same_law(width):
    samples = discrete_laplace(Fraction(10), 10**5, Keystream(bytes(32)), width)
    assert p_value(samples, laplace_cdf(10), 600) > ALARM
    for sigma2 in (100, 10**6):
        samples = discrete_gaussian(Fraction(sigma2), 10**5, Keystream(bytes(32)), width)
        assert p_value(samples, gaussian_cdf(sigma2), 15_000) > ALARM
    for sigma2 in (100, 10**4):
        samples = rounded_normal(Fraction(sigma2), 10**4, Keystream(bytes(32)), width)
        assert p_value(samples, rounded_cdf(sigma2), 1500) > ALARM


class Everything:
    """A stream that hands out every combination of words once, and settles all ties alike."""

    def __init__(self, tie: int) -> None:
        self.tie = tie

    def words(self, count: int, width: int):
        rows = next(r for r in range(1, 9) if r * 2 ** (width * r) == count)
        combinations = itertools.product(range(2**width), repeat=rows)
        return np.array(list(combinations), dtype=np.uint8).T.ravel()

    def bits(self, width: int) -> int:
        return self.tie if width == 64 else 2**width - 1


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(8, 7)])
def test_of_all_words_exactly_the_right_number_gives_each_geometric_value(scale):
    """With ties settled downward and upward, the counts are those of independent digits, and enclose the law."""
    width = 4
    law = geometric(scale, width)
    rows = len(law.digits) + 1
    total = 2 ** (width * rows)
    lower = [chance.floor(width) for chance in (*law.digits, law.passing)]
    for tie, ones in ((2**64 - 1, lower), (1, [floor + 1 for floor in lower])):
        counts = np.bincount(law.draw(total, Everything(tie)), minlength=2**rows)
        for value in range(2**rows):
            digits = [value >> i & 1 for i in range(rows)]
            expected = math.prod(one if digit else 2**width - one for digit, one in zip(digits, ones, strict=True))
            assert counts[value] == expected
    for floor, i in zip(lower, range(rows - 1), strict=False):
        chance = 1 / (1 + math.exp(2**i / scale))
        assert floor / 2**width < chance < (floor + 1) / 2**width
    assert lower[-1] == 0


# --- the pieces that exactness rests on


@given(st.fractions(min_value=Fraction(1, 2**30), max_value=2**60), st.sampled_from([1, 4, 32, 64]))
def test_passing_the_kept_digits_is_rarer_than_a_tie(scale, width):
    assert int(geometric(scale, width).thresholds[-1, 0]) == 0


def test_a_value_that_outgrows_64_bits_is_not_wrapped():
    """With words of two bits, 61 digits are kept for this scale and one value in seven or so goes beyond 2^62."""
    scale = Fraction(2**60)
    samples = discrete_laplace(scale, 400, Keystream(bytes(32)), width=2)
    assert samples.dtype == object
    assert max(map(abs, samples)) > 2**62
    assert abs(float(Fraction(sum(map(abs, samples)), 400) / scale) - 1) < 8 / math.sqrt(400)


def test_the_same_bytes_are_read_whatever_laplace_value_is_drawn(monkeypatch):
    reads: list[int] = []
    coins = SeededCoins(8)
    stream = type(coins._stream)
    octets = stream.octets
    monkeypatch.setattr(stream, "octets", lambda self, count: reads.append(count) or octets(self, count))
    sizes = {abs(coins.discrete_laplace(10)) for _ in range(2000)}
    assert len(sizes) > 30
    assert len(reads) == 2000
    assert len(set(reads)) == 1


MODULES = [keystream, thresholds, laplace, cells_module, gaussian_module, rounded_module, secure]


@pytest.mark.parametrize("module", MODULES)
def test_no_floating_point_appears_between_the_random_bits_and_the_integers(module):
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        assert not (isinstance(node, ast.Constant) and isinstance(node.value, float))
        if isinstance(node, ast.Name):
            assert node.id != "float"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert not (node.value.id == "np" and node.attr.startswith(("float", "random", "exp", "log", "sqrt")))
            assert not (node.value.id == "math" and node.attr not in ("isqrt", "floor", "ceil"))


@settings(max_examples=300, deadline=None)
@given(
    st.fractions(min_value=Fraction(1, 1000), max_value=10**30),
    st.sampled_from((3, 8, 12, 32)),
    st.binary(min_size=32, max_size=32),
)
def test_a_single_draw_is_the_first_of_many(scale, width, seed):
    """With tiny words ties and passed digits are common, and both ways must take the same words for them."""
    one, many = Keystream(seed), Keystream(seed)
    law = geometric(scale, width)
    assert law.difference(one) == int(law.differences(1, many)[0])
    assert one.octets(8) == many.octets(8)
