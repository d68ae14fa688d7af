"""One verdict with three values: what is not known does not read as a pass, and a game that is empty is an error."""

from fractions import Fraction
from io import StringIO

import pytest
from rich.console import Console
from typer.testing import CliRunner

from counterpoint import ApproxDP, Counter, GaussianDP, Laplace, PureDP, RandomizedResponse, relations, verify, zCDP
from counterpoint.cli import app
from counterpoint.coins import SeededCoins
from counterpoint.errors import InvalidParameter
from counterpoint.mechanisms import Ask, Update
from counterpoint.mechanisms.partition_selection import PartitionSelection
from counterpoint.privacy.secret import Tally
from counterpoint.verify.audits.audit import audit
from counterpoint.verify.catalogue import catalogue as report
from counterpoint.verify.catalogue.instances import Instance, measure
from counterpoint.verify.decomposition import decompose
from counterpoint.verify.exact_loss import exact
from counterpoint.verify.finite import FiniteMechanism, Outcome, query_pairs
from counterpoint.verify.game import CreatedFirst
from counterpoint.verify.verdict import Verdict, compared, overall


def test_a_verdict_is_neither_true_nor_false():
    for verdict in Verdict:
        for use in (bool, lambda v: not v, lambda v: v and 1, lambda v: any([v])):
            with pytest.raises(InvalidParameter, match="is Verdict"):
                use(verdict)
    assert verify.Verdict is Verdict and {v.value for v in Verdict} == {"holds", "refuted", "undecided"}


def test_where_too_much_was_cut_to_tell_nothing_is_decided():
    """The same mechanism, seen well, through a fog, and against a claim that even the fog cannot hide."""
    assert exact(Laplace(1)).judge() is Verdict.HOLDS
    foggy = exact(Laplace(1), cut="0.1")
    assert foggy.judge(PureDP(1)) is Verdict.UNDECIDED and foggy.judge(PureDP("0.9")) is Verdict.UNDECIDED
    assert foggy.judge(PureDP("0.1")) is Verdict.REFUTED


def test_an_audit_refutes_or_decides_nothing():
    found = audit(RandomizedResponse(1), samples=4_000, coins=SeededCoins(1))
    for claim in (PureDP(1), PureDP(50), ApproxDP(0, 1), RandomizedResponse(1).claim, None):
        assert found.judge(claim) is Verdict.UNDECIDED
    assert found.judge(PureDP("0.1")) is Verdict.REFUTED


def test_claims_and_losses_are_judged_and_nothing_else():
    loss = exact(RandomizedResponse(1))
    assert loss.judge() is loss.judge(RandomizedResponse(1).claim) is loss.judge(PureDP(1)) is Verdict.HOLDS
    for wrong in (1, "PureDP(1)", RandomizedResponse(1), True):
        with pytest.raises(InvalidParameter, match="a claim or a loss"):
            loss.judge(wrong)
    for wrong in ({"allowance": 2}, {"allowance": -1}, {"points": 0}):
        with pytest.raises(InvalidParameter):
            loss.judge(**wrong)


def test_a_claim_with_a_delta_is_compared_at_its_own_epsilon():
    """It tells the bit half of the time, with odds of 4: a delta of 0.128 at 1, and within the claim at 0.9 and 1.2."""
    told, kept = ((Outcome("1/2", None), Outcome("2/5", bit), Outcome("1/10", 1 - bit)) for bit in (0, 1))
    loss = exact(FiniteMechanism((((told, kept),),)), messages=query_pairs(1), rounds=1)
    assert loss.judge(ApproxDP(1, "0.13")) is Verdict.HOLDS and loss.judge(ApproxDP(1, "0.12")) is Verdict.REFUTED
    assert all(loss.delta_at(epsilon) < ApproxDP(1, "0.12").delta_at(epsilon) for epsilon in (0, "0.9", "1.2"))


@pytest.mark.parametrize("loss", [PureDP(1), PureDP(200), ApproxDP(1, "0.01"), ApproxDP("0.3", "1/7"), zCDP("0.1")])
def test_the_ends_of_a_curve_are_among_what_is_compared(loss):
    epsilons = compared(loss, 3)
    assert epsilons[0] == 0 and len(epsilons) > 3
    if not isinstance(loss, zCDP):
        assert float(loss.epsilon) in epsilons and epsilons[-1] == float(loss.epsilon)


def test_a_claim_beyond_what_can_be_computed_is_not_said_to_hold():
    """Tells the bit with probability 1/10: no epsilon holds, however large."""
    tells = FiniteMechanism((((_law(1, 9), _law(0, 10)),),))
    assert exact(tells, messages=query_pairs(1), rounds=1).judge(PureDP(200)) is not Verdict.HOLDS


def _law(ones, zeros):
    return tuple(Outcome(Fraction(n, 10), answer) for n, answer in ((ones, 1), (zeros, 0)) if n)


def test_verdicts_together_are_as_bad_as_the_worst():
    holds, refuted, undecided = Verdict.HOLDS, Verdict.REFUTED, Verdict.UNDECIDED
    assert overall([holds, holds]) is holds and overall([holds, undecided]) is undecided
    assert overall([undecided, refuted, holds]) is refuted


def test_what_is_undecided_is_shown_as_such_and_ends_the_command_with_1(monkeypatch):
    foggy = Instance("fog", Laplace(1), cut=Fraction(1, 10**3))
    assert measure(foggy).verdict is Verdict.UNDECIDED
    monkeypatch.setattr(report, "CATALOGUE", (foggy,))
    console = Console(width=80, record=True, file=StringIO())
    assert report.show_catalogue((), console) is Verdict.UNDECIDED
    text = console.export_text()
    assert "Undecided" in text and "fog" in text and "hold" not in text and " ok" not in text
    assert CliRunner().invoke(app, ["verify"]).exit_code == 1


NINE, PUBLIC = (Ask(private=0), Ask(private=9)), (Ask(0, sensitivity=4), Ask(4, sensitivity=4))
ONE = (Ask(private=0), Ask(private=1))


def decomposed(mechanism, **options):
    return decompose(mechanism, epsilon=1, delta="1/2", **options)


@pytest.mark.parametrize("tool", [exact, audit, decomposed], ids=["exact", "audit", "decompose"])
@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([NINE], r"pair 1 of 1, Ask\(private=0 \| 9\).* differ by 9, and it declares sensitivity=1"),
        ([PUBLIC], r"pair 1 of 1, Ask\(0\) \| Ask\(4\).* does not accept Ask\(0\).*give private="),
        ([(Ask("a", 0), Ask("b", 1))], "the public parts of its two messages differ.*private="),
        ([(Ask(private=0), Ask(private=0, sensitivity=2))], "the public parts of its two messages differ"),
        ([(Update(0), Update(1))], r"does not accept Update\(0"),
        ([ONE, NINE], r"pair 2 of 2, Ask\(private=0 \| 9\)"),
    ],
    ids=["too far apart", "public by accident", "public", "sensitivities", "not accepted", "one of two"],
)
def test_a_pair_that_no_valid_sequence_contains_is_an_error_that_says_why(tool, messages, reason):
    with pytest.raises(InvalidParameter, match=reason):
        tool(Laplace(2), messages=messages, rounds=1)


@pytest.mark.parametrize("tool", [exact, audit])
def test_a_relation_that_no_message_is_valid_in_is_an_error(tool):
    launched = CreatedFirst(relations.every_step(), 1)
    for messages in ([ONE], None):
        with pytest.raises(InvalidParameter, match="valid in no sequence"):
            tool(Laplace(1), launched, messages, 1)
    with pytest.raises(InvalidParameter, match="relation must be one of"):
        tool(Laplace(1), "neighbours")


def test_messages_that_are_valid_only_later_are_no_error():
    """After an ask of 0, only an ask of 1 is valid: it never is the first."""
    second = relations.Predicate("first 0, then 1", lambda pairs: [p[0].public for p in pairs] in ([0], [0, 1]))
    coin = tuple(Outcome("1/2", answer, 0) for answer in (0, 1))
    machine = FiniteMechanism(((((coin, coin)), (_law(1, 9), _law(9, 1))),))
    assert exact(machine, second, query_pairs(2), 2).bounds_at_growth(1) == (Fraction(8, 10),) * 2


def test_the_menu_under_a_narrower_relation_is_what_is_left_of_it():
    counter = Counter(3, horizon=2)
    assert exact(counter, relations.identical(), rounds=2, cut="1e-6").bounds(0).lower == 0


def test_tallies_are_shown_in_adversaries_and_errors():
    selection = PartitionSelection(1, "0.01")
    assert str(exact(selection).adversary).startswith("send Ask(private={'key': 4} | {'key': 5})")
    far = (Ask(private=Tally((("NY", 3),))), Ask(private=Tally((("CA", 5),))))
    with pytest.raises(InvalidParameter, match=r"\{'NY': 3\} \| \{'CA': 5\}.* differ by 8"):
        exact(selection, messages=[far], rounds=1)


def test_gaussian_claims_are_judged():
    assert exact(RandomizedResponse("0.5")).judge(GaussianDP(1)) is Verdict.HOLDS
    assert exact(RandomizedResponse(2)).judge(GaussianDP("0.5")) is Verdict.REFUTED
