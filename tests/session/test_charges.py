"""Releases made elsewhere: charged once, declared and not derived; reserved, and settled where that is proven."""

import pyarrow as pa
import pytest
from msgspec.structs import replace
from tests.ledger.forging import forge
from tests.ledger.places import Place

import counterpoint as cp
from counterpoint import checker
from counterpoint.errors import InvalidParameter, LedgerTampered, RequestConflict
from counterpoint.measures import SampledGaussianDP
from counterpoint.mechanisms.external import External

RUN = {"what": "DP-SGD run 17, Opacus 1.6", "unit": "a person", "id": "run 17"}
CLICKS = {"page": cp.category(["home", "help"])}


def session(within=None, **more):
    return cp.Session(cp.Stream(fields=CLICKS, **more), within=within or cp.ApproxDP(1, 1e-6))


def test_a_charge_pays_like_any_launch_and_answers_nothing():
    here = session()
    run = here.charge(cp.ApproxDP("0.5", "1e-8"), **RUN)
    twin = session()
    twin.launch(cp.Laplace("0.5"))
    assert here.loss.epsilon == twin.loss.epsilon and here.remaining.epsilon <= twin.remaining.epsilon
    assert here.history[-1].kind == "charge" and RUN["what"] in here.history[-1].what
    assert here.handles[-1].mechanism == run.mechanism and here.at(run.path).cost == run.cost
    for request in (None, cp.count()):
        with pytest.raises(cp.CounterpointError, match="answers nothing"):
            run.ask(request)


def test_the_certificate_says_that_the_loss_was_declared_and_by_whom():
    here = session(cp.PureDP(1))
    here.charge(cp.PureDP("0.25"), **RUN)
    here.acting_as("carol").charge(cp.PureDP("0.25"), **{**RUN, "id": "other"})
    shown = str(here.certificate())
    assert "declared by the custodian, not derived" in shown and "declared by carol, not derived" in shown
    assert "DP-SGD run 17" in shown and "a person" in shown
    assert RUN["what"] in str(here.plot()) or "DP-SGD" in str(here.plot())


def test_a_script_that_runs_twice_pays_once_and_another_loss_under_its_id_is_a_conflict():
    here = session(cp.PureDP(1))
    first, again = (here.charge(cp.PureDP("0.25"), **RUN) for _ in range(2))
    assert first.path == again.path and here.loss == cp.PureDP("0.25")
    for other in ({"unit": "an example"}, {"what": "run 18"}):
        with pytest.raises(RequestConflict):
            here.charge(cp.PureDP("0.25"), **{**RUN, **other})
    with pytest.raises(InvalidParameter, match="needs an id"):
        here.charge(cp.PureDP("0.25"), "a run", unit="a person", id="")


def test_what_does_not_fit_is_refused_before_it_is_run():
    here = session(cp.PureDP(1))
    with pytest.raises(cp.BudgetExceeded):
        here.charge(cp.PureDP(2), **RUN)
    assert here.loss == cp.PureDP(0) and here.history[-1].kind == "refusal"


def test_a_list_is_composed_optimally_and_the_certificate_says_how():
    here = session(cp.ApproxDP(3, 1e-5))
    steps = [(cp.PureDP("0.01"), 100), cp.PureDP("0.2")]
    run = here.charge(steps, **RUN, delta="1e-6")
    composed = cp.compose.optimal([cp.PureDP("0.01")] * 100 + [cp.PureDP("0.2")])
    assert run.cost.delta == cp.ApproxDP(1, "1e-6").delta and run.cost.epsilon < 1.2
    assert run.cost.epsilon >= composed.bounds.epsilon_at("1e-6").lower
    assert "compose.optimal" in str(here.certificate()) and "100 x PureDP(0.01)" in str(here.certificate())
    with pytest.raises(InvalidParameter, match="at which delta"):
        here.charge(steps, **{**RUN, "id": "no delta"})
    twice = [cp.zCDP("0.1"), cp.zCDP("0.1"), (cp.zCDP("0.1"), 3)]
    assert session(cp.zCDP(1)).charge(twice, **RUN).cost == cp.zCDP("0.5"), "a loss that is listed again counts again"


def test_dp_sgd_is_charged_as_the_list_of_its_steps():
    here = session(cp.ApproxDP(3, 1e-4))
    run = here.charge([(SampledGaussianDP(1, "0.01"), 1000)], **RUN, delta="1e-5")
    assert 1.82 < run.cost.epsilon < 1.84, "dp_accounting's PLD: 1.828"


@pytest.mark.parametrize("wrong", ["", "  ", "x" * 201, "two\nlines", 7])
def test_what_and_unit_are_short_texts(wrong):
    here = session()
    for field in ("what", "unit"):
        with pytest.raises(InvalidParameter, match="text of 1 to 200"):
            here.charge(cp.PureDP("0.1"), **{**RUN, field: wrong})
    assert here.loss.epsilon == 0


@pytest.mark.parametrize("wrong", ["0.5", [], [0.5], [(cp.PureDP(1), 0)], [(cp.PureDP(1), -1)], 3, None])
def test_a_loss_is_a_loss_or_a_list_of_them(wrong):
    here = session()
    with pytest.raises(InvalidParameter):
        here.charge(wrong, **RUN)
    assert len(here.history) == 1


def test_a_part_and_a_sample_are_not_charged_since_the_release_has_seen_all_rows():
    here = session(cp.PureDP(4))
    part = here.partition("page", k=2, within=cp.PureDP(1))["home"]
    people = cp.Session(cp.Table(cp.datasets.people(), unit="person_id", rows_per_unit=1), within=cp.PureDP(3))
    sampled = people.delegate(cp.PureDP(3), sampled=0.01)
    for inside in (part, sampled, sampled.delegate(cp.PureDP(1))):
        with pytest.raises(cp.errors.NotCovered, match="of the data"):
            inside.charge(cp.PureDP("0.1"), **RUN)
        with pytest.raises(cp.errors.NotCovered, match="of the data"):
            inside.reserve(cp.PureDP("0.1"), **RUN)
    assert here.delegate(cp.PureDP(1)).charge(cp.PureDP("0.1"), **RUN).cost == cp.PureDP("0.1")


def test_in_a_grant_its_principal_charges_while_it_stands_and_covers_it():
    here = session(cp.PureDP(3))
    hers, only = here.grant("ann", cp.PureDP(1)), here.grant("bob", cp.PureDP(1), mechanisms=[cp.Laplace])
    assert hers.charge(cp.PureDP("0.1"), **RUN).mechanism.declared_by == "ann"
    with pytest.raises(cp.errors.NotGranted):
        only.charge(cp.PureDP("0.1"), **RUN)
    here.revoke(hers)
    with pytest.raises(cp.errors.NotGranted):
        hers.charge(cp.PureDP("0.1"), **{**RUN, "id": "later"})


def test_settling_returns_what_was_reserved_and_not_used():
    here = session(cp.zCDP(1))
    reserved = here.reserve(cp.zCDP("0.75"), **RUN)
    assert here.loss == cp.zCDP("0.75") == reserved.loss
    run = reserved.settle(cp.zCDP("0.25"))
    assert here.loss == cp.zCDP("0.25") and isinstance(run.mechanism, External)
    assert reserved.settle(cp.zCDP("0.25")).path == run.path and here.loss == cp.zCDP("0.25"), "once"
    with pytest.raises(cp.CounterpointError):
        reserved.settle(cp.zCDP("0.1"))
    assert here.loss == cp.zCDP("0.25")


def test_settling_for_more_than_was_reserved_is_refused_and_leaves_it():
    here = session(cp.zCDP(1))
    reserved = here.reserve(cp.zCDP("0.5"), **RUN)
    with pytest.raises(cp.BudgetExceeded):
        reserved.settle(cp.zCDP("0.75"))
    assert here.loss == cp.zCDP("0.5")
    reserved.settle(cp.zCDP("0.5"))
    assert here.loss == cp.zCDP("0.5")


def test_where_no_theorem_returns_the_rest_it_stays_reserved():
    here = cp.Session(cp.Stream(fields=CLICKS), rule=cp.Filter(cp.ApproxDP(2, 1e-6), by="advanced"))
    reserved = here.reserve(cp.PureDP("0.2"), **RUN)
    before, facts = here.loss, len(here.history)
    with pytest.raises(cp.errors.NotCovered):
        reserved.settle(cp.PureDP("0.1"))
    assert here.loss == before and len(here.history) == facts, "nothing was charged, revoked or returned"


def test_only_the_release_is_launched_in_a_reservation():
    here = session(cp.PureDP(1))
    here.reserve(cp.PureDP("0.5"), **RUN)
    with pytest.raises(cp.errors.NotGranted):
        here.given[0].acting_as("custodian").launch(cp.Laplace("0.1"))


def test_charges_survive_a_restart_and_the_record_holds(tmp_path):
    folder = str(tmp_path / "ledger.db")
    with cp.Session(cp.Stream(fields=CLICKS), within=cp.PureDP(2), ledger=folder) as here:
        here.charge(cp.PureDP("0.25"), **RUN)
        here.reserve(cp.PureDP("0.5"), "a model", unit="a person", id="model")
    with cp.open(folder, source=cp.Stream(fields=CLICKS)) as here:
        assert here.loss == cp.PureDP("0.75")
        assert here.charge(cp.PureDP("0.25"), **RUN).path == (0,), "found again"
        here.reserve(cp.PureDP("0.5"), "a model", unit="a person", id="model").settle(cp.PureDP("0.125"))
        assert here.loss == cp.PureDP("0.375")
        here._engine.ledger.verify()
        said = checker.check(iter(here.record()), signer=None)
    assert "2 charges are for releases made elsewhere, whose losses are declared" in said


@pytest.mark.parametrize(("kind", "other"), [("launch", "charge"), ("charge", "launch")])
def test_a_launch_does_not_pass_as_a_charge_nor_a_charge_as_a_launch(tmp_path, kind, other):
    """By whoever rewrites the chain and the witness: neither for verification nor for an auditor's checker."""
    place = Place("sqlite", tmp_path)
    with place.session(cp.PureDP(2)) as here:
        if kind == "launch":
            here.launch(cp.Laplace("0.25"))
        else:
            here.charge(cp.PureDP("0.25"), **RUN)

    def renamed(entries):
        words = f'["{kind}",', f'["{other}",'
        return [replace(e, kind=other, body=e.body.replace(*words)) if e.kind == kind else e for e in entries]

    forge(place, renamed)
    ledger = place.ledger()
    with pytest.raises(LedgerTampered, match="on record as one of another kind"):
        ledger.verify()
    with pytest.raises(checker.DoesNotHold):
        checker.check(ledger.record())
    ledger.close()


def test_nothing_is_asked_where_a_release_was_charged(tmp_path):
    place = Place("sqlite", tmp_path)
    with place.session(cp.PureDP(2)) as here:
        here.charge(cp.PureDP("0.25"), **RUN)
        here.launch(cp.Laplace("0.25")).ask("apples", id="monday")

    def moved(entries):
        asked = [entry for entry in entries if entry.request.endswith("monday")]
        return [replace(e, path=(0,), body=e.body.replace("[1]", "[0]")) if e in asked else e for e in entries]

    forge(place, moved)
    ledger = place.ledger()
    with pytest.raises(checker.DoesNotHold, match="asked that was not launched"):
        checker.check(ledger.record())
    ledger.close()


def test_a_charge_after_a_refresh_is_of_the_version_of_its_time(tmp_path):
    def people(rows):
        data = {"person": list(range(rows)), "age": [40] * rows}
        options = {"unit": "person", "rows_per_unit": 1, "columns": {"age": cp.number(0, 120)}}
        return cp.Table(pa.table(data), key=b"k" * 32, **options)

    with Place("sqlite", tmp_path).session(cp.PureDP(10), source=people(10)) as here:
        here.refresh(people(20), note="April")
        run = here.charge(cp.PureDP("0.25"), **RUN)
        here.ask(cp.count(), epsilon=1)
        assert run.data_version == 2 and here.loss == cp.PureDP("1.25")
        here._engine.ledger.verify()
        checker.check(iter(here.record()))


def test_a_charge_has_a_receipt_that_says_what_was_declared_and_the_checker_agrees(tmp_path):
    place = Place("sqlite", tmp_path)
    with place.session(cp.PureDP(2)) as here:
        here.acting_as("carol").charge(cp.PureDP("0.25"), **RUN)
    with place.reopened() as here:
        signed, disclosed = here.acting_as("carol").receipt("run 17")
        said = checker._read(signed.receipt, "it")
        assert (said["who"], said["path"], disclosed.answer) == ("carol", [0], "[0]")
        assert "DP-SGD run 17" in said["what"] and "1/4" in said["cost"]
        record, signer = here.record(), here._engine.ledger._signer
    assert "1 receipt" in checker.check(iter(record), [signed._asdict()], signer.public)
    cheaper = signed.receipt.replace("1/4", "1/8")
    assert cheaper != signed.receipt
    forged = {"receipt": cheaper, "signature": signer.signature(cheaper)}
    with pytest.raises(checker.DoesNotHold, match="price"):
        checker.check(iter(record), [forged], signer.public)
