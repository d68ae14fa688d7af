"""What version 1 of the sampler began is finished with its noise: its discrete Gaussians, and their law.

Chi-squared tests fail at a p-value below 1e-12, and seeds are fixed (`test_secure_laws.py`).
"""

import hashlib
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.randomness.test_secure_laws import ALARM, Everything, gaussian_cdf, p_value

from counterpoint.randomness import keystream
from counterpoint.randomness.keystream import Keystream
from counterpoint.randomness.samplers import version_1
from counterpoint.randomness.samplers.thresholds import Chance, failure
from counterpoint.randomness.samplers.version_1 import FAR, discrete_gaussian, gaussian_test
from counterpoint.randomness.seeded import SeededCoins


@pytest.mark.parametrize(("sigma2", "digest"), [(100, "93a583ba58627a51"), (2**80, "22793707404d3b20")])
def test_vectors_are_those_that_version_1_drew(sigma2, digest):
    vector = discrete_gaussian(Fraction(sigma2), 50_000, Keystream(bytes(range(32))))
    assert hashlib.sha256(vector.astype("<i8").tobytes()).hexdigest()[:16] == digest


@pytest.mark.statistical
@pytest.mark.parametrize("sigma2", ["1/4", 1, 100, 2**80])
def test_samples_follow_their_law(sigma2):
    variance = Fraction(sigma2)
    samples = discrete_gaussian(variance, 10**5, Keystream(bytes(32)))
    assert p_value(samples, gaussian_cdf(float(variance)), math.ceil(15 * math.sqrt(variance))) > ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("width", [2, 8])
@pytest.mark.parametrize("sigma2", [Fraction(1, 4), Fraction(14, 3)])
def test_samples_are_exact_however_tiny_the_words(sigma2, width):
    samples = discrete_gaussian(sigma2, 2000, Keystream(bytes([width] * 32)), width)
    reach = math.ceil(15 * math.sqrt(sigma2))
    assert p_value(samples, gaussian_cdf(float(sigma2)), reach, bins=20, least=20) > ALARM


@pytest.mark.parametrize("sigma2", [Fraction(1, 3)])
def test_of_all_words_the_right_number_keeps_a_gaussian_candidate(sigma2):
    """Four words of three bits: the share that keeps y is e^-g up to how the ties are settled."""
    law, total = gaussian_test(sigma2), 2**12
    for y in range(0, 3 * law.scale + 1, max(1, law.scale // 2)):
        candidates = np.full(total, y)
        fewest = np.count_nonzero(law.keeps(candidates, Everything(1), 3))
        most = np.count_nonzero(law.keeps(candidates, Everything(2**64 - 1), 3))
        assert fewest <= total * math.exp(-law.exponent(y)) <= most
        assert most - fewest <= total // 2


variances = st.builds(
    lambda a, b, e: Fraction(a, b) * Fraction(4) ** e,
    st.integers(1, 1000),
    st.integers(1, 1000),
    st.integers(-60, 110),
)


@settings(max_examples=300)
@given(variances, st.floats(0, 30), st.integers(-3, 3))
def test_the_integer_exponent_lies_within_two_steps_below_the_exact_one(sigma2, deviations, step):
    law = gaussian_test(sigma2)
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
        law = gaussian_test(sigma2)
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
    law, high = gaussian_test(sigma2), 2**32 - 1
    y = int(Fraction(deviations) * math.isqrt(math.ceil(sigma2)))
    candidates = np.array([y], dtype=np.int64 if y < 2**62 else object)
    floor = int(law.floors(candidates)[0])
    assume(floor < 20 << 16)  # beyond, a highest word may tie
    threshold = Chance(failure, law.exponent(y) - Fraction(floor, 2**16)).floor(32)
    assert threshold < 2**17
    for word in {0, threshold - 1, threshold + 1, 2**17 - 1, 2**17, 2**17 + 1, high} - {-1, threshold}:
        words = Prepared(high, high, high, word)
        assert bool(law.keeps(candidates, words, 32)[0]) == (word > threshold)


@given(variances)
def test_the_largest_exponent_is_never_survived_without_a_tie(sigma2):
    law = gaussian_test(sigma2)
    y = 32 * law.scale
    assert int(law.floors(np.array([y], dtype=np.int64 if y < 2**62 else object))[0]) == FAR << 16
    for width in (1, 8, 32, 64):
        assert int(version_1._tables(width)[2][FAR]) == 2**width - 1
