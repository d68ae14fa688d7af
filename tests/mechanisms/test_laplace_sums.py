"""Sums of discrete Laplace noises: the stated variance and bound, against the exact law by convolution."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.mechanisms.laplace_sums import bound_of_sum, deviation_of_sum

parts = st.lists(
    st.tuples(st.sampled_from([Fraction(1, 20), Fraction(1, 2), Fraction(1), Fraction(7, 2)]), st.integers(0, 6)),
    max_size=3,
)


def exact_law(parts, reach=1500):
    """The law of the sum on -reach..reach, in floats; scales are small enough for what lies beyond not to matter."""
    steps = np.arange(-reach, reach + 1)
    law = (steps == 0).astype(float)
    for scale, count in parts:
        one = np.exp(-np.abs(steps) / float(scale))
        for _ in range(count):
            law = np.convolve(law, one / one.sum(), mode="same")
    return steps, law


@settings(max_examples=40, deadline=None)
@given(parts, st.sampled_from(["0", "0.5", "0.9", "0.999", "0.999999"]))
def test_the_bound_holds_with_its_probability_and_the_deviation_is_exact(parts, probability):
    steps, law = exact_law(parts, reach=400)
    bound = bound_of_sum(parts, Fraction(probability))
    assert law[np.abs(steps) > bound].sum() <= float(1 - Fraction(probability)) + 1e-12
    assert deviation_of_sum(parts) == pytest.approx(np.sqrt((law * steps**2).sum()), rel=1e-9, abs=1e-9)


def test_the_bound_is_close_to_what_the_exact_law_allows():
    sums = [(Fraction(3), 18)]
    steps, law = exact_law(sums)
    for probability, most in [("0.95", 1.5), ("0.999999", 1.2)]:
        size = np.abs(steps)
        needed = min(x for x in range(1500) if law[size > x].sum() <= 1 - float(probability))
        assert needed <= bound_of_sum(sums, Fraction(probability)) <= most * needed


@pytest.mark.parametrize("scale", [Fraction(10) ** 300, Fraction(1, 10**6), Fraction(1, 10**300)])
def test_scales_of_any_size_are_handled(scale):
    bound = bound_of_sum([(scale, 5)], Fraction("0.99"))
    assert 0 <= bound <= 100 * scale + 1 and deviation_of_sum([(scale, 5)]) <= 4 * scale
    assert scale < 1 or bound > scale


def test_no_noise_has_no_error():
    assert bound_of_sum([(Fraction(3), 0)], Fraction("0.99")) == 0 and deviation_of_sum([(Fraction(3), 0)]) == 0.0
