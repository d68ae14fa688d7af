"""SecureCoins as its users meet it: what it accepts, returns, replays, refuses and never shows."""

import copy
import hashlib
import math
import pickle
import time
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, spearmanr

from counterpoint.coins.bernoulli import tosses
from counterpoint.coins.coins import Coins
from counterpoint.coins.keystream import Keystream
from counterpoint.coins.secure import SAMPLER_VERSION, SecureCoins, SeededCoins
from counterpoint.errors import InvalidParameter, SecretLeak

SEED = bytes(range(32))
BIG = 2**128

scales = st.builds(
    lambda a, b, e: Fraction(a, b) * Fraction(2) ** e,
    st.integers(1, 1000),
    st.integers(1, 1000),
    st.integers(-20, 120),
)

# --- what comes out


def test_secure_and_seeded_coins_are_coins():
    coins: Coins = SecureCoins()
    assert isinstance(coins, Coins)
    assert isinstance(SeededCoins(0), Coins)


@settings(max_examples=30)
@given(scales, st.integers(0, 5))
def test_draws_are_python_integers_and_vectors_of_the_size_asked_for(scale, size):
    coins = SecureCoins()
    for draw in (coins.discrete_laplace, coins.discrete_gaussian, coins.rounded_normal):
        assert type(draw(scale)) is int
        vector = draw(scale, size=size)
        assert vector.shape == (size,)
        assert vector.dtype in (np.int64, object)
        assert all(type(x) is int for x in vector.tolist())


def test_other_draws_are_plain_too():
    coins = SecureCoins()
    assert type(coins.bernoulli("1/2")) is bool
    assert type(coins.logistic(1)) is bool
    assert type(coins.integer(6)) is int
    assert type(coins.integer(2**70)) is int


@pytest.mark.parametrize(("scale", "kind"), [(2**40, np.int64), (2**56, np.int64), (2**100, object)])
def test_vectors_are_64_bit_where_values_fit_and_python_integers_where_they_might_not(scale, kind):
    for size in (0, 3):
        assert SecureCoins().discrete_laplace(scale, size=size).dtype == kind
        assert SecureCoins().discrete_gaussian(scale**2, size=size).dtype == kind
        assert SecureCoins().rounded_normal(scale**2, size=size).dtype == kind


def test_size_zero_draws_nothing():
    coins = SecureCoins(SEED)
    coins.discrete_laplace(10, size=0)
    coins.discrete_gaussian(10, size=0)
    coins.rounded_normal(10, size=0)
    coins.rounded_normal(10**6, size=0)
    assert coins.integer(BIG) == SecureCoins(SEED).integer(BIG)


@pytest.mark.parametrize("tiny", ["1e-6", Fraction(1, 2**40), Fraction(1, 10**300)])
def test_tiny_noise_is_zero(tiny):
    for draw in (SecureCoins().discrete_laplace, SecureCoins().discrete_gaussian, SecureCoins().rounded_normal):
        assert draw(tiny) == 0
        assert not draw(tiny, size=100).any()


def test_a_huge_scale_gives_huge_integers():
    assert any(abs(SecureCoins().discrete_laplace(2**200)) > 2**190 for _ in range(50))
    assert any(abs(SecureCoins().discrete_gaussian(2**400)) > 2**190 for _ in range(50))
    assert any(abs(SecureCoins().rounded_normal(2**400)) > 2**190 for _ in range(50))
    assert SecureCoins().discrete_laplace(Fraction(10) ** 400) != 0


def test_certain_events_happen_and_impossible_ones_do_not():
    coins = SecureCoins()
    for _ in range(50):
        assert coins.bernoulli(1)
        assert not coins.bernoulli(0)
        assert coins.integer(1) == 0
        assert coins.logistic(800)
        assert coins.logistic(10**30)


@pytest.mark.parametrize("same", [0.1, "0.1", "1/10", Decimal("0.1"), Fraction(1, 10), np.float64(0.1)])
def test_a_parameter_is_the_decimal_that_it_prints_as(same):
    ours, reference = SecureCoins(SEED), SecureCoins(SEED)
    assert ours.bernoulli(same) == reference.bernoulli(Fraction(1, 10))
    assert ours.logistic(same) == reference.logistic(Fraction(1, 10))
    for _ in range(5):
        assert ours.discrete_laplace(same) == reference.discrete_laplace(Fraction(1, 10))
    assert ours.discrete_gaussian(same) == reference.discrete_gaussian(Fraction(1, 10))
    assert ours.integer(BIG) == reference.integer(BIG)


def test_call_runs_the_experiment_on_these_very_coins():
    coins = SecureCoins()
    assert coins.call(lambda a, b, given: (a, b, given), 1, "x") == (1, "x", coins)


# --- what is refused

NOT_POSITIVE = [0, -1, "-0.5", float("nan"), float("inf"), True, None, "ten", [1], 1j, Decimal("NaN")]
NOT_A_SIZE = [-1, 1.5, "many", True, float("nan"), (2, 3)]
BAD = [
    *[("bernoulli", (p,)) for p in (-1, 1.0000001, "2", float("nan"), float("inf"), True, None, "1/0")],
    *[("logistic", (e,)) for e in (-1, "-1e-9", float("nan"), float("inf"), False, None)],
    *[("integer", (n,)) for n in (0, -5, 2.5, float("nan"), True, None, "six")],
    *[("discrete_laplace", (scale,)) for scale in NOT_POSITIVE],
    *[("discrete_gaussian", (sigma2,)) for sigma2 in NOT_POSITIVE],
    *[("discrete_laplace", (scale, 3)) for scale in NOT_POSITIVE],
    *[("discrete_gaussian", (sigma2, 3)) for sigma2 in NOT_POSITIVE],
    *[("discrete_laplace", (10, size)) for size in NOT_A_SIZE],
    *[("discrete_gaussian", (10, size)) for size in NOT_A_SIZE],
    *[("rounded_normal", (sigma2,)) for sigma2 in NOT_POSITIVE],
    *[("rounded_normal", (10, size)) for size in NOT_A_SIZE],
]


@pytest.mark.parametrize(("draw", "arguments"), BAD, ids=str)
def test_a_bad_parameter_is_refused_before_anything_is_drawn(draw, arguments):
    coins = SecureCoins(SEED)
    with pytest.raises(InvalidParameter):
        getattr(coins, draw)(*arguments)
    assert coins.integer(BIG) == SecureCoins(SEED).integer(BIG)


@pytest.mark.parametrize("seed", [b"", bytes(31), bytes(33), "0" * 32, 7, bytearray(32), [0] * 32, True])
def test_a_seed_of_the_wrong_length_or_type_is_refused(seed):
    with pytest.raises(InvalidParameter, match="32 bytes"):
        SecureCoins(seed=seed)


@pytest.mark.parametrize("seed", [-1, 1.5, True, None, "x"])
def test_a_small_seed_must_be_a_whole_number_or_bytes(seed):
    with pytest.raises(InvalidParameter):
        SeededCoins(seed)


@pytest.mark.parametrize("coins", [SecureCoins(), SecureCoins(SEED), SeededCoins(7)], ids=repr)
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_coins_are_never_copied_or_stored(coins, duplicate):
    with pytest.raises(SecretLeak):
        duplicate(coins)


def test_coins_show_no_key():
    seed = bytes(range(100, 132))
    coins = SecureCoins(seed)
    assert repr(coins) == str(coins) == "SecureCoins(keyed by a seed)"
    assert repr(SecureCoins()) == "SecureCoins(keyed by the operating system)"
    assert not hasattr(coins, "__dict__")
    held = [getattr(coins._stream, name) for name in type(coins._stream).__slots__]
    assert not any(isinstance(value, bytes | bytearray) for value in held)
    assert not any(seed.hex() in repr(value) or repr(seed) in repr(value) for value in held)


# --- replay


def story(coins: Coins) -> list[object]:
    return [
        coins.integer(1000),
        coins.integer(3 * 2**80),
        [coins.bernoulli("1/3") for _ in range(8)],
        [coins.logistic("0.5") for _ in range(8)],
        [coins.discrete_laplace(10) for _ in range(4)],
        coins.discrete_laplace("1/3", size=6).tolist(),
        coins.discrete_laplace(2**30, size=2).tolist(),
        coins.discrete_laplace(2**70),
        [coins.discrete_gaussian(100) for _ in range(4)],
        coins.discrete_gaussian("1/4", size=6).tolist(),
        coins.discrete_gaussian(2**70, size=2).tolist(),
        coins.discrete_gaussian(2**140),
    ]


def test_the_same_seed_gives_the_same_draws_whatever_else_is_drawn():
    first, second, other = SecureCoins(SEED), SecureCoins(SEED), SecureCoins()
    expected = story(first)
    other.discrete_laplace(3, size=100)
    assert story(second) == expected
    assert story(SecureCoins(SEED[::-1])) != expected
    assert story(SecureCoins()) != expected


def test_small_seeds_replay_and_differ():
    assert story(SeededCoins(7)) == story(SeededCoins(7))
    assert len({SeededCoins(seed).integer(BIG) for seed in (*range(20), b"", b"7", b"number 7", 10**300)}) == 24


def test_a_stored_seed_still_replays_what_it_drew_when_this_was_written():
    """If this fails, stored seeds no longer replay: restore the draws, or raise SAMPLER_VERSION and re-record."""
    assert SAMPLER_VERSION == 1
    assert story(SecureCoins(SEED)) == GOLDEN


@pytest.mark.parametrize(
    ("draw", "parameter", "digest"),
    [
        ("discrete_laplace", 10, "4aa3b9916ee45691"),
        ("discrete_laplace", 2**40, "3960020c2dc9fe63"),
        ("discrete_gaussian", 100, "fe3a07a29c8990bb"),
        ("discrete_gaussian", 2**80, "fcf27e7b08bec4b8"),
    ],
)
def test_long_vectors_still_replay_too(draw, parameter, digest):
    vector = getattr(SecureCoins(SEED), draw)(parameter, size=50_000)
    assert hashlib.sha256(vector.astype("<i8").tobytes()).hexdigest()[:16] == digest


def test_rounded_normal_draws_still_replay_too():
    """Drawn by coins of their own, as they came later than the story above."""
    coins = SecureCoins(SEED)
    drawn = [
        [int(coins.rounded_normal(100, size=1)[0]) for _ in range(4)],
        coins.rounded_normal("1/4", size=6).tolist(),
        coins.rounded_normal(10**6, size=4).tolist(),
        int(coins.rounded_normal(2**140, size=1)[0]),
    ]
    assert drawn == GOLDEN_ROUNDED
    alone = SecureCoins(SEED)
    assert [alone.rounded_normal(sigma2) for sigma2 in (100, 100, 2**140)] == [0, -1, SINGLE]
    vector = np.concatenate([coins.rounded_normal(sigma2, size=50_000) for sigma2 in (900, 10**6)])
    assert hashlib.sha256(vector.astype("<i8").tobytes()).hexdigest()[:16] == "6c30af0d8a3cf694"


SINGLE = -215081703921913627751
GOLDEN_ROUNDED: list[object] = [[0, -2, -1, -6], [0, 0, 0, 0, 1, 0], [-224, -286, 1380, -921], 36064826843996137051]

GOLDEN: list[object] = [
    500,
    1414106782102030842881815,
    [False, False, True, False, False, False, False, False],
    [True, True, False, True, False, False, True, True],
    [-4, -10, -5, 6],
    [0, 0, 0, 0, 0, 0],
    [82554549, 756159236],
    -1666830594536998193469,
    [8, 0, -4, -3],
    [0, 0, 0, 1, -1, 0],
    [37480263433, 12566292559],
    -1302258467530618756160,
]


# --- the laws of the small draws (those of the noise are in test_secure_laws.py)


@pytest.mark.statistical
@pytest.mark.parametrize("p", ["1/2", "1/3", "0.001", Fraction(10**30 + 1, 3 * 10**30)])
def test_bernoulli_is_true_as_often_as_it_should_be(p):
    """Within 8 standard deviations of a binomial count: a false alarm below 1e-12."""
    coins, count, chance = SeededCoins(1), 10_000, float(Fraction(p))
    successes = sum(coins.bernoulli(p) for _ in range(count))
    assert abs(successes - count * chance) < 8 * math.sqrt(count * chance * (1 - chance))


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0, "1/3", 1, 3])
def test_logistic_is_true_as_often_as_it_should_be(epsilon):
    """Within 8 standard deviations of a binomial count: a false alarm below 1e-12."""
    coins, count, chance = SeededCoins(2), 10_000, 1 / (1 + math.exp(-float(Fraction(epsilon))))
    successes = sum(coins.logistic(epsilon) for _ in range(count))
    assert abs(successes - count * chance) < 8 * math.sqrt(count * chance * (1 - chance))


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "part"), [(6, 1), (7, 1), (3 * 2**70, 2**70), (5 * 2**64 // 4, 2**62)])
def test_integers_are_equally_likely(n, part):
    """Chi-squared over n/part equal parts fails at a p-value below 1e-12."""
    coins, count, parts = SeededCoins(3), 10_000, n // part
    observed = np.bincount([coins.integer(n) // part for _ in range(count)], minlength=parts)
    assert len(observed) == parts
    assert chi2.sf(float(((observed - count / parts) ** 2 / (count / parts)).sum()), parts - 1) > 1e-12


@pytest.mark.statistical
@pytest.mark.parametrize("n", [2, 6, 7, 257])
def test_vectors_of_integers_are_equally_likely(n):
    """Chi-squared fails at a p-value below 1e-12."""
    drawn = SeededCoins(3).integer(n, size=20_000)
    observed = np.bincount(drawn, minlength=n)
    assert len(observed) == n and drawn.dtype == np.int64
    assert chi2.sf(float(((observed - 20_000 / n) ** 2 / (20_000 / n)).sum()), n - 1) > 1e-12


def test_vectors_of_integers_are_within_their_range_however_wide_it_is():
    coins = SeededCoins(4)
    assert coins.integer(1, size=3).tolist() == [0, 0, 0] and coins.integer(9, size=0).tolist() == []
    assert all(0 <= value < 3 * 2**61 for value in coins.integer(3 * 2**61, size=50).tolist())
    wide = coins.integer(3 * 2**80, size=50)
    assert wide.dtype == object and max(wide) > 2**80 and all(0 <= value < 3 * 2**80 for value in wide)


@pytest.mark.statistical
@pytest.mark.parametrize("width", [1, 3, 64])
@pytest.mark.parametrize("p", ["1/2", "1/3", "0.001", Fraction(10**30 + 1, 3 * 10**30), "0.999"])
def test_vectors_of_tosses_are_true_as_often_as_they_should_be(p, width):
    """Within 8 standard deviations of a binomial count: a false alarm below 1e-12. Few digits make many ties."""
    count, chance = 50_000, Fraction(p)
    heads = tosses(chance, count, Keystream(bytes(32)), width)
    assert abs(heads.sum() - count * chance) < 8 * math.sqrt(count * chance * (1 - chance))


def test_vectors_of_certain_tosses_are_certain():
    coins = SeededCoins(5)
    assert coins.bernoulli(1, size=3).tolist() == [True] * 3 and coins.bernoulli(0, size=3).tolist() == [False] * 3


@pytest.mark.statistical
@pytest.mark.parametrize("draw", ["discrete_laplace", "discrete_gaussian", "rounded_normal"])
def test_the_time_of_a_draw_does_not_depend_on_its_size(draw):
    """Spearman's rank correlation over 10^4 draws is within 6.5 standard errors of 0: a false alarm below 1e-10."""
    sample = getattr(SecureCoins(), draw)
    sample(100)
    sizes, times = [], []
    for _ in range(10_000):
        start = time.perf_counter_ns()
        value = sample(100)
        times.append(time.perf_counter_ns() - start)
        sizes.append(abs(value))
    assert abs(spearmanr(sizes, times).statistic) * math.sqrt(len(sizes) - 1) < 6.5
