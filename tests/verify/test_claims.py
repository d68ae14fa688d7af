"""Every shipped mechanism keeps its claim on a small instance, against every adaptive adversary, and some reach it."""

from io import StringIO

import pytest
from rich.console import Console
from tests.verify.shipped import ABSTRACT, EXCUSED, EXCUSED_RULES, held, shipped
from typer.testing import CliRunner

from counterpoint import PureDP, RandomizedResponse
from counterpoint.cli import app
from counterpoint.composition.rule import Rule
from counterpoint.errors import InvalidParameter
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.verify.catalogue import catalogue as report
from counterpoint.verify.catalogue.catalogue import CATALOGUE, find_instance
from counterpoint.verify.catalogue.instances import Instance, measure
from counterpoint.verify.exact_loss import exact
from counterpoint.verify.message_pairs import message_pairs
from counterpoint.verify.verdict import Verdict

TIGHT = {
    "Laplace",
    "Laplace, by 2",
    "Laplace, a vector",
    "sparse vector, by 2",
    "noisy max, by 2",
    "counter, 2 of a unit",
    "counter, off range",
    "window",
    "membership, off range",
    "randomized response",
    "exposing response",
    "interactive response",
    "open door",
    "loud number",
    "sparse vector",
    "sparse vector, one way",
    "AboveThreshold",
    "noisy max",
    "noisy max, one way",
    "partition selection",
    "counter",
    "vector counter",
    "filter, basic",
    "odometer, pure",
    "slots",
    "parallel, pure",
    "parallel, every delta",
    "parallel, first pair",
    "parts of a partition",
    "Laplace, clamped",
    "filter, Gaussian",
    "odometer, Gaussian",
    "slots, Gaussian",
    "slots, trade-off",
    "parallel, trade-off",
    "parallel, Gaussian",
    "membership",
    "k-ary response",
    "subset selection",
    "affine response",
    "Hadamard response",
    "guarded user",
    "vertex",
    "rounded normal",
    "rounded normal, 2 asks",
    "rounded normal, by 2",
    "parallel, static",
    "parallel, unlike",
    *(f"{rule} PureDP" for rule in ("filter", "odometer", "slots", "static", "continual", "delegate", "partition")),
    *(
        f"{rule} {measure}"
        for measure in ("RenyiDP", "zCDP", "tCDP")
        for rule in ("filter", "odometer", "slots", "static", "delegate", "partition", "composite")
    ),
    *(f"{rule} TradeOff" for rule in ("filter", "slots", "static", "delegate", "partition", "composite")),
    *(f"{rule} ApproxDP" for rule in ("slots", "static", "partition")),
    "composite PureDP",
}


@pytest.mark.parametrize("instance", CATALOGUE, ids=lambda instance: instance.name)
def test_the_exact_loss_is_within_the_claim(instance):
    measured = measure(instance)
    assert measured.verdict is Verdict.HOLDS
    assert measured.lower <= measured.upper
    assert measured.lower <= measured.claimed * (1 + 1e-9) + 1e-12
    if instance.name in TIGHT:
        assert measured.tightness > 0.99


def test_every_name_in_the_catalogue_is_there_once_and_fits_a_terminal():
    names = [instance.name for instance in CATALOGUE]
    assert len(set(names)) == len(names) and max(map(len, names)) <= 22 and set(names) >= TIGHT


@pytest.mark.parametrize("kind", [Mechanism, Rule])
def test_nothing_is_shipped_that_is_not_in_the_catalogue(kind):
    verified = {part for instance in CATALOGUE for part in held((instance.mechanism, *(instance.pairs or ())))}
    missing = {c.__name__ for c in shipped(kind) - verified} - ABSTRACT
    assert missing == (EXCUSED if kind is Mechanism else EXCUSED_RULES).keys()


def test_the_walk_would_notice_a_mechanism_that_is_missing():
    verified = {part for instance in CATALOGUE if "noisy max" not in instance.name for part in held(instance.mechanism)}
    assert "NoisyMax" in {c.__name__ for c in shipped(Mechanism) - verified}


@pytest.mark.parametrize("instance", CATALOGUE, ids=lambda instance: instance.name)
def test_default_messages_are_ones_that_the_mechanism_takes(instance):
    """Where there are defaults at all: a composition can hold anything, and units bring anything, so one must say."""
    try:
        default = message_pairs(instance.mechanism)
    except InvalidParameter as error:
        assert "give messages=" in str(error) and type(instance.mechanism).__name__ in ("Concurrent", "UnitByUnit")
        return
    mechanism, relation = instance.mechanism, instance.mechanism.claim.relation
    assert default.rounds >= 1
    for left, right in default.pairs:
        assert mechanism.accepts(left) and mechanism.accepts(right) and relation.valid([(left, right)])


def test_the_command_shows_the_catalogue_as_a_table():
    done = CliRunner().invoke(app, ["verify", "randomized response", "Laplace"])
    assert done.exit_code == 0 and "PureDP(1)" in done.output and "all 2 claims hold" in done.output
    strange = CliRunner().invoke(app, ["verify", "nothing"])
    assert strange.exit_code == 2 and "there is no instance 'nothing'" in strange.output


def test_the_table_is_whole_in_80_columns():
    fast = [instance for instance in CATALOGUE if instance.name in ("slots", "parallel, every delta", "open door")]
    console = Console(width=80, record=True, file=StringIO())
    assert report.show_catalogue([instance.name for instance in fast], console) is Verdict.HOLDS
    text = console.export_text()
    assert "…" not in text and "ApproxDP(0, 13/49)" in text and max(map(len, text.splitlines())) <= 80


class Boasting(RandomizedResponse, frozen=True):
    """A randomized response that claims less than it loses."""

    @property
    def claim(self):
        return super().claim.__class__(PureDP("0.9"), super().claim.relation, super().claim.certificate)


def test_a_false_claim_shows_and_ends_the_command_with_1(monkeypatch):
    false = Instance("boast", Boasting(1))
    assert exact(false.mechanism).judge() is Verdict.REFUTED
    measured = measure(false)
    assert measured.verdict is Verdict.REFUTED and measured.tightness > 1
    monkeypatch.setattr(report, "CATALOGUE", (false,))
    done = CliRunner().invoke(app, ["verify"])
    assert done.exit_code == 1 and "FALSE for: boast" in done.output and "NO" in done.output


def test_an_instance_is_found_by_its_name():
    assert find_instance("dice").mechanism.sides == 6
    with pytest.raises(InvalidParameter, match="there are: 'Laplace'"):
        find_instance("Gauss")
