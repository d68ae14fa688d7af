"""Fixed-parameter composition against the reference vectors (60-digit arithmetic, inputs lifted exactly)."""

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest

from counterpoint.composition.fixed import compose
from counterpoint.composition.fixed.optimal import loss_values, tails
from counterpoint.composition.fixed.totals import exposure
from counterpoint.measures import ApproxDP

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "accounting.json").read_text())


def cases(section, kind):
    return [pytest.param(case["in"], case["out"], id=case["id"]) for case in VECTORS[section] if case["kind"] == kind]


def lifted(given):
    """The losses of a case, with every double as the binary fraction that it is."""
    epsilons, deltas = given["eps"], given["delta"]
    if not isinstance(epsilons, list):
        epsilons, deltas = [epsilons] * given["k"], [deltas] * given["k"]
    return [ApproxDP(Fraction(e), Fraction(d)) for e, d in zip(epsilons, deltas, strict=True)]


def read(given):
    """The same, with every double as the decimal that a person typed."""
    epsilons, deltas = given["eps"], given["delta"]
    if not isinstance(epsilons, list):
        epsilons, deltas = [epsilons] * given["k"], [deltas] * given["k"]
    return [ApproxDP(e, d) for e, d in zip(epsilons, deltas, strict=True)]


@pytest.mark.parametrize(("given", "out"), cases("a_kov", "delta_of_eps") + cases("b_mv", "delta_of_eps"))
def test_optimal_delta_is_the_reference_delta(given, out):
    expected = float(out["delta_g"])
    assert compose.optimal(lifted(given)).delta_at(Fraction(given["eps_g"])) == pytest.approx(expected, rel=1e-14)
    assert compose.optimal(read(given)).delta_at(given["eps_g"]) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(("given", "out"), cases("a_kov", "delta_of_eps") + cases("b_mv", "delta_of_eps"))
def test_the_reference_value_lies_between_the_bounds(given, out):
    # the reference is rounded to 17 digits, hence half a unit in its last place of room
    expected = Fraction(out["delta_g"])
    room = expected / 10**16
    composed = compose.optimal(lifted(given))
    epsilon = Fraction(given["eps_g"])
    assert Fraction(composed.delta_below(epsilon)) <= expected + room
    assert Fraction(composed.delta_above(epsilon)) >= expected - room


@pytest.mark.parametrize(("given", "out"), cases("a_kov", "delta_of_eps") + cases("b_mv", "delta_of_eps"))
def test_epsilon_at_inverts_delta_at(given, out):
    composed = compose.optimal(lifted(given))
    epsilon = Fraction(given["eps_g"])
    assert composed.epsilon_at(Fraction(composed.delta_above(epsilon))) == pytest.approx(given["eps_g"], rel=1e-12)
    assert composed.bounds.epsilon_at(Fraction(composed.delta_above(epsilon))).lower <= given["eps_g"]
    assert composed.epsilon_at(Fraction(composed.delta_below(epsilon))) >= given["eps_g"]


@dataclass(frozen=True, order=True)
class Log:
    """The exact logarithm of a fraction: adding logarithms multiplies what they are of."""

    of: Fraction

    def __add__(self, other):
        return Log(self.of * other.of)

    def __sub__(self, other):
        return Log(self.of / other.of)

    def __neg__(self):
        return Log(1 / self.of)

    def __mul__(self, times):
        return Log(self.of**times)


@pytest.mark.parametrize(("given", "out"), cases("b_mv", "delta_of_eps_exact"))
@pytest.mark.parametrize("split", range(5))
def test_where_every_exp_epsilon_is_a_fraction_counting_is_exact(given, out, split):
    groups = [(Log(Fraction(odds)), 1) for odds in given["exp_eps"]]
    one, other = (loss_values(half, lambda log: log.of, Log(Fraction(1))) for half in (groups[:split], groups[split:]))
    target = Fraction(given["exp_eps_g"])
    over, under = tails(one, other, Log(target))
    parts = tuple((Fraction(0), Fraction(delta), 1) for delta in given["delta"])
    exposed = exposure(parts)
    assert exposed.low == exposed.high
    assert exposed.low + (1 - exposed.low) * (over - target * under) == Fraction(out["fraction"])


@pytest.mark.parametrize(("given", "out"), cases("c_closed", "closed_forms"))
def test_basic_and_advanced_are_the_closed_forms(given, out):
    losses = lifted(given)
    epsilon, delta = float(out["basic_eps"]), float(out["basic_delta"])
    basic = compose.basic(losses)
    assert float(basic.loss.epsilon) == pytest.approx(epsilon, rel=1e-14)
    assert float(basic.loss.delta) == pytest.approx(delta, rel=1e-14)
    advanced = compose.advanced(losses)
    assert advanced.epsilon_at(Fraction(out["delta_total"])) == pytest.approx(float(out["advanced_eps"]), rel=1e-10)
    assert advanced.delta_at(Fraction(out["advanced_eps"])) == pytest.approx(float(out["delta_total"]), rel=1e-10)


@pytest.mark.parametrize(("given", "out"), cases("c_closed", "closed_forms"))
def test_optimal_is_below_every_closed_form(given, out):
    optimal = compose.optimal(lifted(given)).epsilon_at(Fraction(out["delta_total"]))
    closed = [float(out[name]) for name in ("kov_closed_eps", "advanced_eps", "advanced_old_eps")]
    assert optimal <= closed[0] * (1 + 1e-15)
    assert closed == sorted(closed)


@pytest.mark.parametrize(("given", "out"), cases("c_closed", "closed_forms"))
def test_the_plain_sum_of_deltas_is_never_better_than_the_product(given, out):
    losses = lifted(given)
    plain = Fraction(given["dprime"]) + sum(loss.delta for loss in losses)
    assert compose.advanced(losses).epsilon_at(plain) <= float(out["advanced_eps"]) * (1 + 1e-15)
