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
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from counterpoint.randomness import gaussian as gaussian_module
from counterpoint.randomness import keystream, laplace, secure, thresholds
from counterpoint.randomness import rounded_normal as rounded_module
from counterpoint.randomness.gaussian import FAR, discrete_gaussian, gaussian, one_gaussian
from counterpoint.randomness.keystream import Keystream
from counterpoint.randomness.laplace import discrete_laplace, geometric
from counterpoint.randomness.rounded_normal import rounded, rounded_normal
from counterpoint.randomness.seeded import SeededCoins
from counterpoint.randomness.thresholds import Chance, failure

ALARM = 1e-12
_POINT = 50
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
@pytest.mark.parametrize("sigma2", [Fraction(1, 4), Fraction(1), Fraction(14, 3), Fraction(10**4)])
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
    samples = rounded_normal(sigma2, 1000, Keystream(bytes([width] * 32)), width)
    reach = math.ceil(15 * math.sqrt(sigma2))
    assert p_value(samples, rounded_cdf(float(sigma2)), reach, bins=20, least=20) > ALARM


@pytest.mark.parametrize("sigma2", [Fraction(1, 4), Fraction(10), Fraction(4095)])
def test_every_word_names_the_integer_of_its_quantile(sigma2):
    """Cells of one integer, all words of 12 bits: the cell of a word that is no threshold holds both its ends."""
    width, law = 12, rounded(sigma2, 12)
    words = np.arange(2**width, dtype=np.uint16)
    untied = words[~np.isin(words, law.thresholds)]
    cdf = rounded_cdf(float(sigma2))
    for word, n in zip(untied, law._cells(untied, Keystream(bytes(32))), strict=True):
        assert cdf(int(n) - 1) <= word / 2**width * (1 + 1e-9) and (word + 1) / 2**width * (1 - 1e-9) <= cdf(int(n))


@pytest.mark.parametrize("sigma2", [Fraction(2**13), Fraction(10**9, 7), Fraction(2**90)])
@pytest.mark.parametrize("negative", [False, True])
def test_the_bounds_that_decide_a_rounded_normal_enclose_the_chance_itself(sigma2, negative):
    law = rounded(sigma2)
    places = [0, 1, (1 << law.bits) // 3, (1 << law.bits) - 1]
    for row in (0, 1, 17, 200):
        for place in places:
            fails = rounded_module._Failure(sigma2, law.bits, row, negative, place)
            floor = fails._floor(_POINT)
            outward = place >> max(0, law.bits - 20)
            most = rounded_module._exponent(law.above, row, negative, outward + (law.bits > 20))
            least = rounded_module._exponent(law.below, row, negative, outward)
            square = (most >> 25) + 1
            assert least - (square * square >> 1) - (most >> 14) - 2 <= floor <= most


class Repeated:
    """A stream whose words are all the same."""

    def __init__(self, word: int) -> None:
        self.word = word

    def words(self, count: int, width: int):
        return np.full(count, self.word, dtype=np.uint32)


@pytest.mark.parametrize("cell", [-60, -1, 5, 150])
def test_a_candidate_is_kept_by_just_the_words_above_its_chance_to_fail(cell):
    law = rounded(Fraction(10**6, 3))
    place = 1 if cell < 0 else (1 << law.bits) - 2
    outward = (1 << law.bits) - 1 - place if cell < 0 else place
    floor = rounded_module._Failure(law.sigma2, law.bits, max(cell, -1 - cell), cell < 0, outward)._floor(32)
    kept = [
        bool(law._keeps(np.array([cell]), np.array([place]), Repeated(floor + step))[0])
        for step in (-1000, -1, 1, 1000)
    ]
    assert kept == [False, False, True, True]


def test_some_candidates_of_a_wide_rounded_normal_are_not_kept_and_all_of_a_narrow_one():
    """Of cells of two integers about one candidate in 150 is not kept: of 20,000 certainly some."""
    for sigma2, kept in ((5000, range(19_000, 19_990)), (4000, range(20_000, 20_001))):
        assert len(rounded(Fraction(sigma2)).draw(20_000, Keystream(bytes(32)))) in kept


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
    samples = discrete_gaussian(Fraction(100), 10**5, Keystream(bytes(32)), width)
    assert p_value(samples, gaussian_cdf(100), 150) > ALARM
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


@pytest.mark.parametrize("sigma2", [Fraction(1, 3), Fraction(5), Fraction(1000)])
def test_of_all_words_the_right_number_keeps_a_gaussian_candidate(sigma2):
    """Four words of three bits: the share that keeps y is e^-g up to how the ties are settled."""
    law, total = gaussian(sigma2), 2**12
    for y in range(0, 3 * law.scale + 1, max(1, law.scale // 2)):
        candidates = np.full(total, y)
        fewest = np.count_nonzero(law.keeps(candidates, Everything(1), 3))
        most = np.count_nonzero(law.keeps(candidates, Everything(2**64 - 1), 3))
        assert fewest <= total * math.exp(-law.exponent(y)) <= most
        assert most - fewest <= total // 2


@pytest.mark.parametrize("sigma2", [Fraction(1, 3), Fraction(5), Fraction(1000)])
def test_of_all_words_the_right_number_keeps_a_gaussian_candidate_alone(sigma2):
    law, total = gaussian(sigma2), 2**12
    for y in range(0, 3 * law.scale + 1, max(1, law.scale // 2)):
        fewest, most = (
            sum(law.keeps_one(y, Prepared(*words, more=tie), 3) for words in itertools.product(range(8), repeat=4))
            for tie in (1, 2**64 - 1)
        )
        assert fewest <= total * math.exp(-law.exponent(y)) <= most
        assert most - fewest <= total // 2


# --- the pieces that exactness rests on

variances = st.builds(
    lambda a, b, e: Fraction(a, b) * Fraction(4) ** e,
    st.integers(1, 1000),
    st.integers(1, 1000),
    st.integers(-60, 110),
)


@settings(max_examples=300)
@given(variances, st.floats(0, 30), st.integers(-3, 3))
def test_the_integer_exponent_lies_within_two_steps_below_the_exact_one(sigma2, deviations, step):
    law = gaussian(sigma2)
    y = max(0, int(Fraction(deviations) * math.isqrt(math.ceil(sigma2))) + step)
    candidates = np.array([y, -y], dtype=np.int64 if y < 2**62 else object)
    floors = [int(n) for n in law.floors(candidates)]
    scaled = law.exponent(y) * 2**16
    assert floors[0] == floors[1]
    assert 0 <= floors[0] <= scaled
    assert scaled < floors[0] + 2 or floors[0] == FAR << 16


@pytest.mark.parametrize("bits", [0, 1, 2, 10, 26, 27, 28, 29, 40, 60, 100])
def test_the_integer_root_of_the_exponent_never_exceeds_the_exact_one_and_is_close_to_it(bits):
    """At the ends of cells too, and on both sides of the smallest exponent: a bound off by one unit would show."""
    coins = SeededCoins(9)
    for _ in range(15):
        sigma2 = Fraction(coins.integer(4**bits) + 4**bits, 1 + coins.integer(20))
        law = gaussian(sigma2)
        cell = (1 << law.shift) - 1
        ys = [coins.integer(10 * law.scale + 2) | (cell if coins.bernoulli("1/2") else 0) for _ in range(60)]
        ys += [coins.integer(law.scale) | cell for _ in range(60)]
        candidates = np.array(ys, dtype=np.int64 if bits < 57 else object)
        for y, root in zip(ys, law.roots(candidates).tolist(), strict=True):
            scaled = law.exponent(y) * 2**48
            assert root**2 <= scaled
            assert scaled < (root + 3) ** 2 or root >= 2**27


class Prepared:
    """A stream of prepared words, and of `more` wherever a tie asks for it."""

    def __init__(self, *words: int, more: int = 0) -> None:
        self.prepared = words
        self.more = more

    def words(self, count: int, width: int):
        return np.array(self.prepared, dtype=keystream.word_type(width))

    def bits(self, width: int) -> int:
        return self.more


@given(variances, st.floats(0, 5))
def test_a_candidate_falls_by_its_rest_at_exactly_the_right_words(sigma2, deviations):
    """The other three words are the highest, so that the last one decides: by 1 - e^-rest, computed from g."""
    law, high = gaussian(sigma2), 2**32 - 1
    y = int(Fraction(deviations) * math.isqrt(math.ceil(sigma2)))
    candidates = np.array([y], dtype=np.int64 if y < 2**62 else object)
    floor = int(law.floors(candidates)[0])
    assume(floor < 20 << 16)  # beyond, a highest word may tie
    threshold = Chance(failure, law.exponent(y) - Fraction(floor, 2**16)).floor(32)
    assert threshold < 2**17
    for word in {0, threshold - 1, threshold + 1, 2**17 - 1, 2**17, 2**17 + 1, high} - {-1, threshold}:
        words = Prepared(high, high, high, word)
        assert bool(law.keeps(candidates, words, 32)[0]) == (word > threshold)
        rest = law.exponent(y) - Fraction(int(law.exponent(y) * 2**16), 2**16)
        if word != Chance(failure, rest).floor(32):
            assert law.keeps_one(y, words, 32) == Chance(failure, rest).exceeds(word, 32, words) ^ True


@given(variances)
def test_the_largest_exponent_is_never_survived_without_a_tie(sigma2):
    law = gaussian(sigma2)
    y = 32 * law.scale
    assert int(law.floors(np.array([y], dtype=np.int64 if y < 2**62 else object))[0]) == FAR << 16
    for width in (1, 8, 32, 64):
        assert int(gaussian_module._tables(width)[2][FAR]) == 2**width - 1


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


@pytest.mark.parametrize("module", [keystream, thresholds, laplace, gaussian_module, rounded_module, secure])
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
