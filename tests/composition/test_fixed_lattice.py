"""The lattice against counting and exact rationals: whatever the tilt and the spacing, the truth is between."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.composition.fixed.lattice import Lattice, LatticePart, binomial, spacing_for
from counterpoint.composition.fixed.masses import UNIT, LossShape, Masses, convolve, convolve_all, largest_loss
from counterpoint.composition.fixed.optimal import Counting

group = st.tuples(st.fractions(Fraction(1, 100), 3, max_denominator=300), st.integers(1, 5))
groups = st.lists(group, min_size=1, max_size=4, unique_by=lambda pair: pair[0]).map(tuple)


def encloses(lattice, epsilon):
    counted = Counting.of(lattice.groups).delta_bounds(epsilon)
    return lattice.delta_below(epsilon) <= counted.upper and counted.lower <= lattice.delta_above(epsilon)


@given(
    groups,
    st.fractions(0, Fraction(99, 100), max_denominator=100),
    st.fractions(0, 20, max_denominator=10),
    st.fractions(Fraction(1, 50), 1, max_denominator=50),
)
@settings(max_examples=80, deadline=None)
def test_any_tilt_and_any_coarse_spacing_enclose_the_true_delta(groups, share, tilt, spacing):
    assert encloses(Lattice(groups, tilt, spacing), share * largest_loss(groups))


@given(groups, st.fractions(0, Fraction(99, 100), max_denominator=100))
@settings(max_examples=30, deadline=None)
def test_a_fine_spacing_encloses_it_through_fourier_transforms(groups, share):
    epsilon = share * largest_loss(groups)
    tilt = LossShape(groups).tilt_at_epsilon(float(epsilon))
    assert encloses(Lattice(groups, tilt, Fraction(1, 3001)), epsilon)


@given(groups, st.fractions(Fraction(1, 20), Fraction(9, 10), max_denominator=100))
@settings(max_examples=30, deadline=None)
def test_a_common_spacing_is_exact_but_for_rounding(groups, share):
    epsilon = share * largest_loss(groups)
    lattice = Lattice.near(groups, epsilon)
    assert encloses(lattice, epsilon)
    if all((2 * value / lattice.spacing).denominator == 1 for value, _ in groups):
        assert float(lattice.delta_below(epsilon)) == pytest.approx(float(lattice.delta_above(epsilon)), rel=1e-6)


def test_halving_the_spacing_quarters_the_gap():
    groups = tuple((Fraction(1, number), 3) for number in range(7, 19))
    epsilon = Fraction(2)
    tilt = LossShape(groups).tilt_at_epsilon(2.0)
    gaps = []
    for denominator in (64, 128, 256):
        lattice = Lattice(groups, tilt, Fraction(1, denominator))
        gaps.append(float(lattice.delta_above(epsilon) - lattice.delta_below(epsilon)))
    assert gaps[1] < gaps[0] / 2.5
    assert gaps[2] < gaps[1] / 2.5


def test_many_copies_are_cut_to_where_their_mass_is_and_still_enclose():
    groups = ((Fraction(1, 100), 1500), (Fraction(1, 7), 2))
    for epsilon in (Fraction(0), Fraction(3), Fraction(5)):
        assert encloses(Lattice.near(groups, epsilon), epsilon)
        assert encloses(Lattice(groups, Fraction(3), Fraction(1, 64)), epsilon)


def test_the_spacing_is_common_to_all_losses_where_one_is_wide_enough():
    decimal = tuple((Fraction(number, 1000), 2) for number in range(1, 400))
    assert spacing_for(decimal, Fraction(1)) == Fraction(2, 1000)
    wild = tuple((Fraction(1, number), 1) for number in range(100, 400))
    assert spacing_for(wild, Fraction(1)).denominator & (spacing_for(wild, Fraction(1)).denominator - 1) == 0


masses = st.lists(st.floats(0, 1), min_size=1, max_size=40)


def distance(computed, exact):
    return sum(abs(Fraction(float(value)) - truth) for value, truth in zip(computed, exact, strict=True))


def exact_convolution(one, other):
    total = [Fraction(0)] * (len(one) + len(other) - 1)
    for i, left in enumerate(one):
        for j, right in enumerate(other):
            total[i + j] += left * right
    return total


@pytest.mark.parametrize("length", [3, 100, 150, 257])
def test_the_error_of_a_convolution_is_within_its_bound(length):
    # up to 16 values are added up by shifting, more go through Fourier transforms
    wave = np.abs(np.sin(np.arange(length) * 1.7)) + 1e-3
    spikes = np.where(np.arange(length) % 17 == 0, 1.0, 1e-9)
    one, other = wave / wave.sum(), spikes / spikes.sum()
    computed = convolve(Masses(3, one, 0.0), Masses(-5, other, 0.0))
    exact = exact_convolution([Fraction(float(v)) for v in one], [Fraction(float(v)) for v in other])
    off = distance(computed.between(-2, -2 + len(exact)), exact)
    assert off <= Fraction(computed.error)
    assert computed.error < 1e-10


@given(masses, masses, st.floats(0, 0.01), st.floats(0, 0.01))
@settings(max_examples=50, deadline=None)
def test_errors_of_the_parts_carry_over_to_the_whole(one, other, off_one, off_other):
    # the truth is the first value of each raised by the stated error
    truth_one = [Fraction(v) for v in one]
    truth_other = [Fraction(v) for v in other]
    truth_one[0] += Fraction(off_one)
    truth_other[0] += Fraction(off_other)
    computed = convolve(Masses(0, np.array(one), off_one), Masses(0, np.array(other), off_other))
    exact = exact_convolution(truth_one, truth_other)
    assert distance(computed.between(0, len(exact)), exact) <= Fraction(computed.error)


def test_cut_ends_are_counted_as_error():
    thin = Masses(0, np.array([1e-17, 1e-16, 0.5, 0.5, 1e-16]), 0.0).trimmed()
    assert (thin.start, len(thin.values)) == (2, 2)
    assert 2.1e-16 <= thin.error < 2.2e-16


def test_a_sum_of_many_keeps_its_place():
    steps = [Masses(start, np.array([0.5, 0.5]), 0.0) for start in range(9)]
    total = convolve_all(steps)
    assert (total.start, total.stop) == (36, 46)
    assert total.values == pytest.approx([1 / 512 * n for n in (1, 9, 36, 84, 126, 126, 84, 36, 9, 1)])


@pytest.mark.parametrize(("copies", "against"), [(1, 0.25), (40, 0.9), (200, 0.01), (3, 1e-300), (5, 0.0)])
def test_binomial_weights_are_as_accurate_as_stated(copies, against):
    first, weights = binomial(copies, against)
    assert 0 <= first < first + len(weights) <= copies + 1
    odds = Fraction(against)
    exact = [Fraction(1)]
    for told in range(copies, 0, -1):
        exact.append(exact[-1] * told / (copies - told + 1) * odds)
    exact.reverse()
    total = sum(exact)
    assert sum(exact[:first]) < total / 10**18
    allowed = Fraction((16 * len(weights) + 64) * UNIT)
    assert sum(exact[first + len(weights) :]) < total / 10**18
    for weight, truth in zip(weights, exact[first:], strict=False):
        assert abs(Fraction(float(weight)) - truth / total) <= truth / total * allowed + Fraction(1, 10**300)


def test_a_spread_part_keeps_its_mass_and_the_mean_of_exp_minus_loss():
    part = LatticePart.of(Fraction(1, 3), 4, Fraction(0), Fraction(1, 10))
    spread = part.spread()
    points = np.arange(spread.start, spread.stop) / 10
    places = (part.start + part.cells + part.beyond) / 10
    assert spread.values.sum() == pytest.approx(1, rel=1e-14)
    assert (spread.values * np.exp(-points)).sum() == pytest.approx((part.weights * np.exp(-places)).sum(), rel=1e-13)


def test_a_renamed_part_keeps_its_mass_in_both_worlds():
    part = LatticePart.of(Fraction(1, 3), 4, Fraction(0), Fraction(1, 10))
    one, other = part.renamed(Fraction(0)), part.renamed(Fraction(1))
    assert one.values.sum() == pytest.approx(1, rel=1e-14)
    points = np.arange(other.start, other.stop) / 10
    places = (part.start + part.cells + part.beyond) / 10
    assert (other.values * np.exp(-points)).sum() == pytest.approx((part.weights * np.exp(-places)).sum(), rel=1e-13)
