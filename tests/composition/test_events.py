"""Events of dp_accounting and histories of Opacus, read as losses; everything else is refused by name."""

from dataclasses import dataclass
from typing import Any

import pytest

import counterpoint as cp
from counterpoint.composition.fixed.compose import optimal_of
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.measures import SampledGaussianDP


@pytest.fixture
def dp():
    """The real package, where it is installed."""
    return pytest.importorskip("dp_accounting", reason="dp_accounting is not installed: its events are not read here")


def test_each_event_is_its_loss(dp):
    gaussian = dp.GaussianDpEvent(2.0)
    sampled = dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(1.0))
    assert cp.losses_of(gaussian) == [(cp.GaussianDP("0.5"), 1)]
    assert cp.losses_of(dp.LaplaceDpEvent(4.0)) == [(cp.PureDP("0.25"), 1)]
    assert cp.losses_of(dp.ZCDpEvent(0.1)) == [(cp.zCDP("0.1"), 1)]
    assert cp.losses_of(sampled) == [(SampledGaussianDP(1, "0.01"), 1)]
    assert cp.losses_of(dp.PoissonSampledDpEvent(1.0, gaussian)) == [(cp.GaussianDP("0.5"), 1)]
    assert cp.losses_of(dp.NoOpDpEvent()) == []
    whole = dp.ComposedDpEvent([dp.SelfComposedDpEvent(sampled, 500), gaussian, sampled, dp.NoOpDpEvent()])
    assert dict(cp.losses_of(dp.SelfComposedDpEvent(whole, 2))) == {
        SampledGaussianDP(1, "0.01"): 1002,
        cp.GaussianDP("0.5"): 2,
    }


def test_dp_sgd_agrees_with_its_accountants_to_four_digits(dp):
    from dp_accounting.pld import PLDAccountant

    event = dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(1.0)), 1000)
    theirs = PLDAccountant().compose(event).get_epsilon(1e-5)
    ours = optimal_of(dict(cp.losses_of(event))).epsilon_at(1e-5)
    assert abs(ours - theirs) < 1e-3 * theirs


def test_what_it_does_not_know_is_refused_by_name(dp):
    gaussian = dp.GaussianDpEvent(1.0)
    for event in (
        dp.NonPrivateDpEvent(),
        dp.UnsupportedDpEvent(),
        dp.SampledWithReplacementDpEvent(1000, 10, gaussian),
        dp.SampledWithoutReplacementDpEvent(1000, 10, gaussian),
        dp.SingleEpochTreeAggregationDpEvent(1.0, 8),
    ):
        name = type(event).__name__
        for nested in (event, dp.SelfComposedDpEvent(event, 3), dp.ComposedDpEvent([gaussian, event])):
            with pytest.raises(NotCovered, match=name):
                cp.losses_of(nested)
        with pytest.raises(NotCovered, match=f"only a single GaussianDpEvent is read, and this one is of a {name}"):
            cp.losses_of(dp.PoissonSampledDpEvent(0.1, event))
    several = dp.SelfComposedDpEvent(gaussian, 4)
    with pytest.raises(NotCovered, match="SelfComposedDpEvent"):
        cp.losses_of(dp.PoissonSampledDpEvent(0.1, several))
    with pytest.raises(NotCovered, match="xi above 0"):
        cp.losses_of(dp.ZCDpEvent(0.1, 0.2))
    with pytest.raises(InvalidParameter, match="above 0"):
        cp.losses_of(dp.GaussianDpEvent(0.0))


@dataclass
class GaussianDpEvent:
    """An event by its name and fields, as the package has it."""

    noise_multiplier: float


@dataclass
class SelfComposedDpEvent:
    event: Any
    count: int


@dataclass
class PoissonSampledDpEvent:
    sampling_probability: float
    event: Any


@dataclass
class Accountant:
    history: list


def test_the_same_without_the_package():
    sampled = PoissonSampledDpEvent(0.02, GaussianDpEvent(1.25))
    assert cp.losses_of(SelfComposedDpEvent(sampled, 7)) == [(SampledGaussianDP("0.8", "0.02"), 7)]
    assert cp.losses_of(SelfComposedDpEvent(sampled, 0)) == []
    nested = GaussianDpEvent(1)
    for _ in range(70):
        nested = SelfComposedDpEvent(nested, 1)
    with pytest.raises(InvalidParameter, match="deep"):
        cp.losses_of(nested)
    with pytest.raises(NotCovered, match="object"):
        cp.losses_of(object())


def test_an_opacus_history_is_a_list_of_sampled_steps():
    history = [(1.0, 0.01, 100), (1.0, 0.01, 50), (0.5, 1, 2)]
    expected = {SampledGaussianDP(1, "0.01"): 150, cp.GaussianDP(2): 2}
    assert dict(cp.losses_of(history)) == dict(cp.losses_of(Accountant(history))) == expected
    for wrong in ([(1.0, 0.01)], [1.0], [(0.0, 0.1, 1)], [(1.0, 0.1, 0)], [(1.0, 1.5, 1)], [(1.0, 0.1, 2.5)]):
        with pytest.raises(InvalidParameter):
            cp.losses_of(wrong)


def test_a_run_is_charged_as_its_accountant_has_it():
    session = cp.Session(cp.Stream(neighbours="add-or-remove"), within=cp.ApproxDP(3, 1e-4))
    run = cp.losses_of(Accountant([(1.0, 0.01, 1000)]))
    charged = session.charge(run, "DP-SGD run 17, Opacus", unit="an example", id="run 17", delta="1e-5")
    assert 1.82 < charged.cost.epsilon < 1.84
