"""Thresholds are certified floors, and comparing words with them decides an event with exactly its probability."""

import itertools
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.coins import bernoulli as thresholds
from counterpoint.coins.bernoulli import Chance, failure, odds, survival
from counterpoint.coins.keystream import Keystream

LAWS = {
    survival: lambda x: mpmath.exp(-x),
    odds: lambda x: mpmath.exp(-x) / (1 + mpmath.exp(-x)),
}

points = st.builds(
    lambda a, b, e: Fraction(a, b) * Fraction(2) ** e,
    st.integers(0, 10**6),
    st.integers(1, 10**6),
    st.integers(-80, 20),
)


class Script:
    """A stream that says what it is told to, and then refuses to go on."""

    def __init__(self, *words: int) -> None:
        self.words = iter(words)

    def bits(self, width: int) -> int:
        return next(self.words)


def by_mpmath(law, x: Fraction, width: int) -> int:
    if law is failure:  # e^-x 2^width is no integer unless x = 0, so the two floors add up to one less than 2^width
        return 2**width - 1 - by_mpmath(survival, x, width) if x else 0
    with mpmath.workdps(150 + width):
        return int(mpmath.floor(LAWS[law](mpmath.mpf(x.numerator) / x.denominator) * mpmath.mpf(2) ** width))


@given(st.sampled_from([survival, failure, odds]), points, st.integers(0, 130))
def test_the_floor_of_a_chance_agrees_with_an_independent_evaluation(law, x, width):
    assert Chance(law, x).floor(width) == by_mpmath(law, x, width)


def test_at_zero_the_chances_are_exact():
    for width in (0, 1, 8, 64, 200):
        assert Chance(survival, Fraction(0)).floor(width) == 2**width
        assert Chance(failure, Fraction(0)).floor(width) == 0
        assert Chance(odds, Fraction(0)).floor(width) == 2**width // 2


@pytest.mark.parametrize("x", [Fraction(800), Fraction(10**20), Fraction(10) ** 400])
def test_a_huge_argument_neither_overflows_nor_underflows(x):
    assert Chance(survival, x).floor(64) == Chance(odds, x).floor(64) == 0
    assert Chance(failure, x).floor(64) == 2**64 - 1


@pytest.mark.parametrize("law", [survival, failure, odds])
@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 3), Fraction(1, 1000), Fraction(2), Fraction(7)])
def test_every_way_to_draw_seven_binary_digits_decides_with_the_exact_probability(law, x, monkeypatch):
    """Three digits at first and two more at each tie: of all 2^7 ways, floor(2^7 p) are below and one is open."""
    monkeypatch.setattr(thresholds, "_MORE", 2)
    below = undecided = 0
    for first, second, third in itertools.product(range(8), range(4), range(4)):
        try:
            below += Chance(law, x).exceeds(first, 3, Script(second, third))
        except StopIteration:
            undecided += 1
    assert below == by_mpmath(law, x, 7)
    assert undecided == (0 if below == 2**7 else 1)


def test_a_tie_reads_further_digits_and_a_clear_case_reads_none():
    chance = Chance(odds, Fraction(1))
    stream, untouched = Keystream(bytes(32)), Keystream(bytes(32))
    assert chance.exceeds(chance.floor(8) - 1, 8, stream)
    assert not chance.exceeds(chance.floor(8) + 1, 8, stream)
    assert stream.bits(64) == untouched.bits(64)
    chance.exceeds(chance.floor(8), 8, stream)
    untouched.bits(64)
    assert stream.bits(64) == untouched.bits(64)
