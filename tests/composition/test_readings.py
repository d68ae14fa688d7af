"""Readings of launches one by one: near the optimum at any distance, and no adaptive analyst stops beyond them."""

import json
from fractions import Fraction
from functools import cache
from pathlib import Path

import mpmath
import pytest
from tests.composition.test_validity import PURE, STEP, worst_delta

from counterpoint.composition import reserve
from counterpoint.composition.filters import Filter
from counterpoint.composition.fixed import compose
from counterpoint.composition.odometers import Odometer
from counterpoint.composition.reserve import UNIT, Payment, left_after, needed_before, variance_needed
from counterpoint.encoding import decode, encode
from counterpoint.errors import BudgetExceeded, NotCovered
from counterpoint.measures import ApproxDP, GaussianDP, PureDP, Unbounded, zCDP
from counterpoint.privacy.claims import claim
from counterpoint.privacy.relations import every_step

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "residues.json").read_text())


def of(loss, interaction="one-shot"):
    return claim(loss, every_step(), "a test", interaction=interaction)


def read(rule, losses):
    account = rule.start()
    for loss in losses:
        account = rule.admit(account, of(loss))
    return rule.loss(account)


@pytest.mark.parametrize("row", VECTORS["odometer_mu"], ids=lambda row: f"{len(row['launches'])}, {row['mu'][:6]}")
def test_the_gaussian_odometer_reads_the_reference_value_and_never_less(row):
    mu = read(Odometer.gaussian(), map(PureDP, row["launches"])).mu
    assert Fraction(row["mu"]) * (1 - Fraction(1, 10**24)) <= mu <= Fraction(row["mu"]) * (1 + Fraction(1, 10**6))
    assert mu < read(Odometer(GaussianDP), map(PureDP, row["launches"])).mu


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "0.7", "1.5", "4"])
@pytest.mark.parametrize("times", ["0", "0.01", "1", "20", "200"])
def test_what_is_needed_before_a_launch_satisfies_the_one_inequality_and_hardly_less_would(epsilon, times):
    e = Fraction(epsilon)
    after = int(Fraction(times) * e**2 * UNIT)
    needed = needed_before(after, e)
    with mpmath.workdps(400):
        before, rest, size = mpmath.mpf(needed) / UNIT, mpmath.mpf(after) / UNIT, mpmath.mpf(epsilon)

        def lie(x, v):
            mu = mpmath.sqrt(v) or mpmath.mpf(10) ** -100
            return mpmath.erfc((x / mu - mu / 2) / mpmath.sqrt(2)) / 2, mpmath.erfc(
                (x / mu + mu / 2) / mpmath.sqrt(2)
            ) / 2

        one, other = lie(size, rest)
        room = (1 - one + mpmath.exp(size) * other) / (1 + mpmath.exp(size))
        assert mpmath.erfc(mpmath.sqrt(before / 8)) / 2 <= room * (1 + mpmath.mpf(10) ** -45)
        if e < 1 and Fraction(times) <= 20:
            less = before - (before - rest) / 50
            assert mpmath.erfc(mpmath.sqrt(less / 8)) / 2 > room


def test_a_filter_stopped_at_a_reading_is_the_filter_that_pays_from_it():
    """What the odometer reads is what a Gaussian budget of that mu pays, to the last launch."""
    launches = [Payment(Fraction(e, 100), None, Fraction(0)) for e in (10, 3, 25, 1, 10)]
    read = variance_needed(launches)
    for share, pays in ((Fraction(1001, 1000), True), (Fraction(999, 1000), False)):
        left = int(read * share)
        for launch in launches:
            left = None if left is None else left_after(left, launch.epsilon)
        assert (left is not None) == pays


def test_the_gaussian_odometer_covers_what_squares_do_and_is_stored_as_its_runs():
    rule = Odometer.gaussian()
    account = rule.start()
    for loss in (PureDP("0.1"), PureDP("0.1"), GaussianDP("0.3"), PureDP("0.1")):
        account = rule.admit(account, of(loss))
    assert account.runs == ((PureDP("0.1"), 2), (GaussianDP("0.3"), 1), (PureDP("0.1"), 1))
    assert decode(encode(account), type(account)) == account
    for loss in (zCDP("0.1"), ApproxDP("0.1", "1e-9")):
        with pytest.raises(NotCovered):
            rule.admit(account, of(loss))
    with pytest.raises(NotCovered):
        rule.admit(account, of(GaussianDP("0.1"), "endless"))
    stopping = rule.within(GaussianDP("0.4"))
    assert stopping.fits(account, PureDP(stopping.remaining(account).epsilon))
    assert not stopping.fits(account, PureDP(stopping.remaining(account).epsilon * Fraction(101, 100)))


NEAR = ApproxDP(1, Fraction(1, 20))


def stopped(reading, threshold):
    """Launching while what `reading` says of the counts is within a threshold that was fixed before."""

    @cache
    def launch(launched, index):
        after = (*launched, PURE[index][0] * STEP)
        return after if reading(after).within(threshold) else None

    return launch


MENU = ((2, Fraction(0)), (5, Fraction(0)))


def stopping_at(rule, threshold, distance=1):
    @cache
    def launch(launched, index):
        after = (*launched, MENU[index][0])
        reading = rule.loss_at(distance, [of(PureDP(size * STEP / distance)) for size in after])
        return after if reading.within(threshold) else None

    return worst_delta((), launch, MENU, STEP, threshold.epsilon)


@pytest.mark.parametrize("distance", [1, 2])
@pytest.mark.parametrize("threshold", ["0.6", "1"])
def test_no_adaptive_analyst_gets_beyond_a_reading_of_launches(threshold, distance):
    """The launches' group losses are on the lattice, so that the analyst moves between data at that distance."""
    rule = Odometer.approximate(Fraction(1, 20), tuned_for=Fraction(1, distance))
    found = stopping_at(rule, ApproxDP(threshold, Fraction(1, 20)), distance)
    assert 0.1 / 20 < found <= 1 / 20 * (1 + 1e-9)


def test_an_analyst_beats_a_reading_that_needs_a_third_of_what_each_launch_costs(monkeypatch):
    """So the program above would find one that needs too little."""
    monkeypatch.setattr(reserve, "needed_before", lambda after, epsilon: after + int(epsilon**2 / 3 * UNIT))
    rule = Odometer.approximate(Fraction(1, 20), tuned_for=1)
    assert stopping_at(rule, ApproxDP("0.6", Fraction(1, 20))) > 1.05 / 20


@pytest.mark.parametrize(
    "near, delta, losses",
    [
        (3, "1e-6", [PureDP("0.1")] * 40),
        (1, "1e-6", [PureDP("0.03")] * 60),
        (8, "1e-6", [PureDP("0.5")] * 14),
        (1, "1e-6", [ApproxDP("0.01", "1e-10")] * 300),
        (3, "1e-6", [PureDP("0.1")] * 20 + [PureDP("0.05")] * 40),
        (5, "1e-6", [zCDP("0.02")] * 10),
        (3, "1e-6", [PureDP("0.1")] * 20 + [zCDP("0.02")] * 4),
        (3, "1e-6", [PureDP("0.1")] * 20 + [GaussianDP("0.2")] * 4),
    ],
    ids=lambda given: f"{len(given)} x {given[0]!r}" if isinstance(given, list) else str(given),
)
@pytest.mark.parametrize("distance", [2, 3])
def test_a_tuned_reading_at_a_distance_is_within_ten_percent_of_the_optimum(near, delta, losses, distance):
    optimum = compose.optimal([loss.group(distance) for loss in losses]).epsilon_at(float(delta))
    for rule in (Odometer.approximate(delta, tuned_for=near), Filter(ApproxDP(near, delta))):
        reading = rule.loss_at(distance, map(of, losses))
        assert optimum * (1 - 1e-6) <= float(reading.epsilon) <= 1.1 * optimum


def test_a_reading_at_distance_one_is_tighter_than_the_account_and_grows_with_each_launch():
    rule, launches = Filter(ApproxDP(1, "1e-6")), [of(PureDP("0.01"))] * 400
    readings = [rule.loss_at(1, launches[:count]).epsilon for count in range(0, 401, 25)]
    assert readings == sorted(readings) and readings[0] == 0
    assert readings[-1] < 0.95 * read(rule, [PureDP("0.01")] * 400).epsilon


def test_each_part_of_a_reading_has_its_own_share_of_delta():
    """Of 300 small launches the Gaussian part reads least; its epsilon is that of its variance at its own tail."""
    delta, launches = Fraction(1, 10**4), [of(PureDP("0.02"))] * 300
    reading = Odometer.approximate(delta, tuned_for=2).loss_at(1, launches).epsilon
    with mpmath.workdps(40):
        x = mpmath.mpf(reading.numerator) / reading.denominator
        mu = mpmath.sqrt(mpmath.mpf(variance_needed([Payment(Fraction(1, 50), None, Fraction(0))] * 300)) / UNIT)
        found = mpmath.ncdf(mu / 2 - x / mu) - mpmath.exp(x) * mpmath.ncdf(-mu / 2 - x / mu)
        share = mpmath.mpf(885) / 1000 * 900 / 1041
        assert found == pytest.approx(float(share * mpmath.mpf("1e-4")), rel=1e-9)


def test_a_planned_filter_is_read_by_its_launches_and_not_by_its_plan():
    """At a distance the plan is no filter: 46 launches of 0.3 are not within (3, 1e-6)."""
    rule = Filter.planned(ApproxDP(3, "1e-6"), PureDP("0.1"))
    at_three = rule.loss_at(3, [of(PureDP("0.1"))] * 46)
    assert compose.optimal([PureDP("0.3")] * 46).epsilon_at(1e-6) < at_three.epsilon < 13.8


def test_a_launch_that_the_gaussian_part_cannot_count_ends_it():
    rule, launches = Filter(ApproxDP(1, "1e-6")), [of(PureDP("0.01"))] * 20
    assert rule.loss_at(1, [*launches, of(zCDP(1))]).epsilon > 0.9 * zCDP(1).epsilon_at(1e-6)


def test_deltas_beyond_their_room_leave_no_bound_and_what_no_part_counts_is_refused():
    rule = Filter(ApproxDP(1, "1e-6"))
    assert rule.loss_at(1, [of(ApproxDP("0.1", "1e-7"))] * 9) == Unbounded()
    with pytest.raises(BudgetExceeded):
        read(rule, [ApproxDP("0.1", "1e-7")] * 9)
    from counterpoint.measures import ApproxzCDP

    with pytest.raises(NotCovered):
        rule.loss_at(1, [of(ApproxzCDP("0.1", "1e-9"))])
