"""Every shipped mechanism keeps its claim on a small instance, against every adaptive adversary, and some reach it."""

import pytest
from typer.testing import CliRunner

from counterpoint import PureDP
from counterpoint.cli import app
from counterpoint.verify.catalogue import CATALOGUE, measure

TIGHT = {
    "Laplace",
    "randomized response",
    "randomized response that may expose",
    "interactive randomized response",
    "sparse vector",
    "AboveThreshold",
    "Counter",
    "filter, basic",
    "slots",
    "parallel, pure",
}


@pytest.mark.parametrize("instance", CATALOGUE, ids=lambda instance: instance.name)
def test_the_exact_loss_is_within_the_claim(instance):
    measured = measure(instance)
    assert measured.holds
    assert measured.lower <= measured.claimed * (1 + 1e-9) + 1e-12
    if instance.name in TIGHT:
        assert measured.tightness > 0.99


def test_the_command_shows_the_catalogue_as_a_table():
    done = CliRunner().invoke(app, ["verify", "randomized response", "Laplace"])
    assert done.exit_code == 0 and "PureDP(1)" in done.output and "holds" in done.output
    assert CliRunner().invoke(app, ["verify", "nothing"]).exit_code != 0


def test_a_false_claim_would_show():
    honest = next(instance for instance in CATALOGUE if instance.name == "Laplace")
    measured = measure(honest)._replace(claim=PureDP("0.9"), claimed=0.9)
    assert not measured.holds and measured.tightness > 1
