"""Gaussian steps on Poisson samples: the closed curve of one, and the lattice of many, against other computations."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from counterpoint import ApproxDP, GaussianDP, PureDP, compose
from counterpoint.composition.fixed.sampled import Direction, SampledGaussians, SampledLattice
from counterpoint.composition.fixed.sampled_steps import SampledStep
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.measures import ApproxzCDP, SampledGaussianDP

MUS = st.fractions(Fraction(1, 10), 3, max_denominator=50)
RATES = st.fractions(Fraction(1, 1000), Fraction(99, 100), max_denominator=1000)

PEER = [
    # mu, rate, steps, delta, epsilon of dp_accounting 0.6.0: PLDs, connect the dots, a grid of 1e-4
    (1, "0.01", 1000, "1e-5", 1.828243645591767),
    pytest.param(Fraction(10, 11), "0.004", 15000, "1e-5", 2.295467939135149, marks=pytest.mark.long),
    pytest.param(1, "0.01", 10000, "1e-5", 6.18774497574583, marks=pytest.mark.long),
    ("0.5", "0.1", 100, "1e-6", 2.6750357412985606),
    (1, "0.01", 1, "1e-5", 0.1994504734738037),
    ("0.2", "0.5", 50, "1e-8", 4.11178525960063),
]


@pytest.mark.parametrize("mu, rate, steps, delta, theirs", PEER)
def test_the_lattice_is_as_tight_as_dp_accounting(mu, rate, steps, delta, theirs):
    composed = compose.optimal([SampledGaussianDP(mu, rate)] * steps)
    found = composed.bounds.epsilon_at(delta)
    assert found.lower <= theirs and found.upper <= theirs * (1 + 1e-6)
    assert found.upper <= found.lower * (1 + 1e-4)
    assert composed.method == "lattice" and composed.delta_at(found.upper) <= float(Fraction(delta)) * (1 + 1e-3)


@given(MUS, RATES, st.fractions(0, 3, max_denominator=20))
@settings(max_examples=15, deadline=None)
def test_one_step_has_the_curve_that_its_definition_says(mu, rate, epsilon):
    m, q, growth = float(mu), float(rate), math.exp(epsilon)

    def mixed(x):
        return (1 - q) * norm.pdf(x) + q * norm.pdf(x - m)

    grid = np.linspace(-12, 12 + m, 400_001)
    width = grid[1] - grid[0]
    removed = np.sum(np.maximum(mixed(grid) - growth * norm.pdf(grid), 0)) * width
    added = np.sum(np.maximum(norm.pdf(grid) - growth * mixed(grid), 0)) * width
    assert SampledGaussianDP(mu, rate).delta_at(epsilon) == pytest.approx(max(removed, added), rel=1e-4, abs=1e-9)


@given(MUS, RATES, st.fractions(0, 3, max_denominator=20), st.booleans())
@settings(max_examples=8, deadline=None)
def test_the_lattice_of_one_step_encloses_its_curve(mu, rate, epsilon, coarse):
    composed = compose.optimal([SampledGaussianDP(mu, rate)])
    assert isinstance(composed, SampledGaussians)
    true = SampledGaussianDP(mu, rate)._delta_bounds(epsilon)
    assert composed._delta_below(epsilon) <= true.upper and true.lower <= composed._delta_above(epsilon)
    if coarse:  # whatever the tilt and the spacing
        lattices = [
            SampledLattice(Direction(composed.steps, way), Fraction(3), Fraction(1, 7)) for way in (True, False)
        ]
        assert max(lattice.delta_below(epsilon) for lattice in lattices) <= true.upper
        assert true.lower <= max(lattice.delta_above(epsilon) for lattice in lattices)


@pytest.mark.parametrize("mu, rate, epsilon", [("0.1", "0.001", "0.5"), ("0.1", "0.9", 2), ("3", "0.001", 40)])
def test_a_delta_that_no_float_holds_is_still_below_the_upper_bound(mu, rate, epsilon):
    composed = compose.optimal([SampledGaussianDP(mu, rate)])
    true = SampledGaussianDP(mu, rate)._delta_bounds(Fraction(epsilon))
    for removing in (True, False):
        lattice = Direction(composed.steps, removing).near(Fraction(epsilon))
        assert lattice.delta_below(Fraction(epsilon)) <= true.upper
        if removing:
            assert true.lower <= lattice.delta_above(Fraction(epsilon))


def exactly_two(mu, rate, epsilon, removing):
    """The delta of two steps: the integral over the first of what the second has left."""

    def loss(x):
        return math.log1p(rate * math.expm1(mu * x - mu * mu / 2))

    def stick(e):
        """The hockey stick of one step, for any e."""
        growth = math.exp(e)
        if removing:
            if growth <= 1 - rate:
                return 1 - growth
            x = math.log((growth - 1 + rate) / rate) / mu + mu / 2
            return (1 - rate) * norm.sf(x) + rate * norm.sf(x - mu) - growth * norm.sf(x)
        if 1 / growth <= 1 - rate:
            return 0.0
        x = math.log((1 / growth - 1 + rate) / rate) / mu + mu / 2
        return norm.cdf(x) - growth * ((1 - rate) * norm.cdf(x) + rate * norm.cdf(x - mu))

    def term(x):
        first = (1 - rate) * norm.pdf(x) + rate * norm.pdf(x - mu) if removing else norm.pdf(x)
        return first * stick(epsilon - (loss(x) if removing else -loss(x)))

    return quad(term, -12, 12 + mu, limit=500, epsabs=1e-13)[0]


@pytest.mark.parametrize("mu, rate", [("1", "0.1"), ("0.5", "0.6"), ("2", "0.02")])
@pytest.mark.parametrize("epsilon", ["0.05", "0.5", "1.5"])
def test_two_steps_are_enclosed_in_both_directions(mu, rate, epsilon):
    steps = ((Fraction(mu), Fraction(rate), 2),)
    for removing in (True, False):
        lattice = Direction(steps, removing).near(Fraction(epsilon))
        true = exactly_two(float(mu), float(rate), float(epsilon), removing)
        assert float(lattice.delta_below(Fraction(epsilon))) <= true * (1 + 1e-7) + 1e-12
        assert float(lattice.delta_above(Fraction(epsilon))) >= true * (1 - 1e-7) - 1e-12
        assert float(lattice.delta_above(Fraction(epsilon))) <= true * (1 + 1e-3) + 1e-9


def test_unlike_steps_compose_together_and_with_gaussians_on_all_units():
    mixed = compose.optimal([SampledGaussianDP(1, "0.01")] * 50 + [SampledGaussianDP("0.5", "0.1")] * 50)
    alone = [compose.optimal([SampledGaussianDP(mu, rate)] * 50) for mu, rate in ((1, "0.01"), ("0.5", "0.1"))]
    assert max(one.epsilon_at("1e-6") for one in alone) < mixed.epsilon_at("1e-6")
    beside = compose.optimal([GaussianDP(1), SampledGaussianDP(1, "1e-9")])
    assert beside.epsilon_at("1e-6") == pytest.approx(GaussianDP(1).epsilon_at("1e-6"), rel=1e-4)
    assert compose.optimal([GaussianDP(3), GaussianDP(4)]).loss == GaussianDP(5)


def test_a_sample_loses_less_than_all_units_and_a_larger_one_more():
    steps = [compose.optimal([SampledGaussianDP(1, rate)] * 100).epsilon_at("1e-6") for rate in ("0.01", "0.1", "0.9")]
    assert steps == sorted(steps) and steps[-1] < GaussianDP(10).epsilon_at("1e-6")
    assert SampledGaussianDP("0.5", "0.1").implies(SampledGaussianDP(1, "0.2"))
    assert not SampledGaussianDP(1, "0.2").implies(SampledGaussianDP("0.5", "0.3"))
    assert not GaussianDP(1).implies(SampledGaussianDP(1, "0.5"))


def test_a_tiny_delta_falls_back_on_the_curve_of_all_units():
    composed = compose.optimal([SampledGaussianDP(1, "0.5")] * 3)
    assert composed.epsilon_at(0) == math.inf and composed.epsilon_at(1) == 0
    assert composed.epsilon_at("1e-300") <= GaussianDP(1).group(2).epsilon_at("1e-300") < math.inf


def test_what_it_does_not_cover():
    with pytest.raises(NotCovered, match="no theorem composes"):
        compose.optimal([SampledGaussianDP(1, "0.1"), ApproxzCDP("0.1", "1e-9")])
    for loss in (SampledGaussianDP(1, "0.1"), compose.optimal([SampledGaussianDP(1, "0.1")])):
        assert loss.group(1) == loss and loss.group(0) == PureDP(0)
        with pytest.raises(NotCovered, match="2 units"):
            loss.group(2)
        assert isinstance(loss.as_approx("1e-6").group(2), ApproxDP)
    with pytest.raises(InvalidParameter):
        SampledGaussianDP(0, "0.1")


@pytest.mark.parametrize("mu, rate", [(1.0, 0.01), (0.3, 0.7), (3.0, 1.0), (20.0, 0.5)])
@pytest.mark.parametrize("removing", [True, False])
def test_the_masses_of_the_cells_are_those_of_both_laws(mu, rate, removing):
    """From above they add up to a little more than 1, from below to a little less, and each is where its loss is."""
    step, gap = SampledStep(mu, rate), 2.0**-6
    x = np.array([-9.0, 9.0 + mu])
    least, most = sorted(step.loss(x) if removing else -step.loss(x))
    cells = step.cells(removing=removing, low=math.floor(least / gap) - 3, high=math.ceil(most / gap) + 3, spacing=gap)
    for above, below in ((cells.ones, cells.least_ones), (cells.others, cells.least_others)):
        assert np.all(above >= below) and np.all(above <= below + 1e-12)
    whole = cells.ones.sum() + cells.before + cells.beyond
    assert 1 <= whole + 1e-15 < 1 + 1e-9
    points = gap * (cells.low + np.arange(len(cells.ones)))
    where = cells.ones > 1e-10
    ratio = np.log(cells.ones[where] / cells.others[where])
    assert np.all(ratio >= points[where] - 1e-3) and np.all(ratio <= points[where] + gap + 1e-3)
