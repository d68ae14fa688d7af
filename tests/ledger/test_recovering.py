"""A backup that is behind its witness is opened on purpose: its budget is spent, and nothing is answered again."""

import itertools
import json
import shutil
from hashlib import sha256

import pytest
from tests.ledger.forging import forge
from tests.ledger.places import DATA, Place
from tests.ledger.test_left_open import Flaky
from tests.session.numbers_source import Numbers
from typer.testing import CliRunner

import counterpoint as cp
from counterpoint import checker
from counterpoint.cli import app
from counterpoint.composition.rule import Exhausted
from counterpoint.errors import (
    Halted,
    InvalidParameter,
    InvalidRequest,
    LedgerError,
    LedgerRolledBack,
    LedgerTampered,
    NotAllowed,
    Unsealable,
)
from counterpoint.ledger.admin import recover
from counterpoint.ledger.chain import NeverAnswered
from counterpoint.ledger.open import sessions_at
from counterpoint.ledger.sealing import MasterKey
from counterpoint.ledger.witness import WitnessFile


def lived(place, rows=DATA):
    """A session with answers, an open ask, a delegation, parts and a grant; its first answer."""
    with place.session(source=Numbers(rows)) as s:
        s.launch(cp.Laplace("0.1", asks=9), id="L")
        answered = s.launch(cp.Laplace("0.1", asks=9), id="M").ask("beans", id="before")
        s.delegate(cp.PureDP("0.2"), id="D").launch(cp.Laplace("0.05"), id="inner")
        s.partition("letter", within=cp.PureDP("0.1"), id="P")["a"].launch(cp.Laplace("0.05"), id="part")
        s.grant("ann", cp.PureDP("0.1"), id="G")
    with place.reopened(source=Flaky(rows)) as s, pytest.raises(InvalidRequest):
        s.handles[0].ask("apples", id="open")
    return answered


def backed_up(place, tmp_path, number=itertools.count()):  # noqa: B008 - one count for all
    """A copy of the database as it is now, to be put back by `restored`."""
    assert place.kind == "sqlite"
    return shutil.copy(place.url, tmp_path / f"copy{next(number)}.db")


@pytest.fixture
def behind(tmp_path):
    """A place whose database is a backup, which lacks what was launched and asked since; and what is in the backup."""
    place = Place("sqlite", tmp_path)
    answered = lived(place)
    copy = backed_up(place, tmp_path)
    with place.reopened() as s:
        s.handles[0].ask("apples", id="open")
        s.handles[1].ask("beans", id="after")
        s.launch(cp.Laplace("0.1"), id="later").ask("apples", id="last")
    place.newest = shutil.copy(place.url, tmp_path / "newest.db")
    shutil.copy(copy, place.url)
    with pytest.raises(LedgerRolledBack, match="its witness has seen"):
        place.reopened()
    return place, answered


def recovered(place):
    recover(place.durable, "session", by="olga")
    return place.reopened()


def test_answers_can_be_read_and_all_of_the_budget_is_spent(behind):
    place, answered = behind
    with recovered(place) as s:
        assert s.handles[1].ask("beans", id="before") == answered, "as it was"
        assert s.loss == cp.PureDP(1) and s.remaining.epsilon == 0 and isinstance(s.rule, Exhausted)
        assert "all that the rule admits" in s.certificate().statement
        inner = s.given[0]
        assert inner.loss == cp.PureDP("0.2") and inner.remaining.epsilon == 0
        for session in (s, inner, s.given[1]["a"], s.given[2]):
            with pytest.raises(cp.BudgetExceeded, match="lost with its disk"):
                session.launch(cp.Laplace("0.0001"))
        with pytest.raises(cp.BudgetExceeded):
            _ = s.given[1]["b"]
        with pytest.raises(cp.BudgetExceeded):
            s.grant("bob", cp.PureDP("0.0001"))
        s._engine.ledger.verify()


def test_nothing_is_answered_again_with_other_coins(behind):
    place, _ = behind
    with recovered(place) as s:
        assert [handle.halted for handle in s.handles] == [True, True]
        for handle in s.handles:
            with pytest.raises(Halted):
                handle.ask("apples")
        with pytest.raises(Halted):
            s.handles[1].ask("beans", id="after")
        with pytest.raises(Halted, match="is not answered again"):
            s.handles[0].ask("apples", id="open")
        with pytest.raises(cp.BudgetExceeded):
            s.launch(cp.Laplace("0.1"), id="later")
        assert s.launch(cp.Laplace("0.1", asks=9), id="L").halted, "what is on record is found by its id"
    ((seeds, states),) = place.sql(
        "SELECT (SELECT count(*) FROM counterpoint_request WHERE seed IS NOT NULL), "
        "(SELECT count(*) FROM counterpoint_row WHERE sealed IS NOT NULL)"
    )
    assert (seeds, states) == (0, 0), "no coins are left to go on from"


def test_an_open_request_has_no_receipt_and_is_not_among_the_answers(behind):
    place, _ = behind
    with recovered(place) as s:
        with pytest.raises((Halted, NeverAnswered)):
            s.receipt("open")
        assert [one.fact.path for one in s._engine.ledger.answered((), "", 9)] == [(1,)]


def test_the_act_is_on_the_record(behind):
    place, _ = behind
    ((before, hash),) = place.sql("SELECT number, head FROM counterpoint_session WHERE name <> '@register'")
    seen = max(WitnessFile(place.home / "witness").seen("session"))
    with recovered(place) as s:
        fact = next(fact for fact in s.history if fact.kind == "recovery")
        assert fact.who == "olga" and fact.at and f"a backup of {before} entries" in fact.what
        assert f"had seen {seen.sequence}" in fact.what
        entries = [json.loads(json.loads(line)["entry"]) for line in s.record()[1:]]
    body = json.loads(next(entry[5] for entry in entries if entry[1] == "recovery"))
    assert body == [before, hash.hex(), seen.sequence, seen.head.hex()]


def test_the_checker_understands_it_and_finds_what_goes_on_after_it(behind):
    place, _ = behind
    with recovered(place) as s:
        s.revoke(s.given[2])
        with pytest.raises(cp.BudgetExceeded):
            s.launch(cp.Laplace("0.1"))
        said = checker.check(iter(s.record()), [])
        record = s.record()
    assert "its budget counts as spent" in said
    asked = next(line for line in record if '\\"ask\\"' in line)
    for more, why in (
        (asked, "after the record was lost"),
        (record[-1].replace("refusal", "lost"), "no record was lost"),
    ):
        with pytest.raises(checker.DoesNotHold, match=why):
            checker.check(iter(rechained([*record, more])), [])


def rechained(record):
    """The lines with numbers, hashes and ids that fit, as one could write them who has no witness to fit."""
    header, head, lines = json.loads(record[0]), bytes.fromhex(json.loads(record[0])["genesis"]), []
    for number, line in enumerate(record[1:], start=1):
        entry = json.loads(json.loads(line)["entry"])
        entry = [number, entry[1], entry[2] if number < len(record) - 1 else "new", *entry[3:]]
        text = json.dumps(entry, separators=(",", ":"), ensure_ascii=False)
        head = sha256(head + text.encode()).digest()
        lines.append(json.dumps({"number": number, "entry": text}))
    return [json.dumps({**header, "head": {"number": len(lines), "hash": head.hex()}}), *lines]


def test_the_backup_and_the_newest_copy_are_refused_from_then_on(behind, tmp_path):
    place, _ = behind
    old = backed_up(place, tmp_path)
    with recovered(place) as s:
        s.revoke(s.given[2])
    kept = backed_up(place, tmp_path)
    for copy, what in ((old, "has seen"), (place.newest, "another history")):
        shutil.copy(copy, place.url)
        with pytest.raises(LedgerRolledBack, match=what):
            place.reopened()
    with pytest.raises(LedgerRolledBack, match="another history"):
        recover(place.durable, "session", by="olga")
    shutil.copy(kept, place.url)
    with place.reopened() as s:
        assert s.remaining.epsilon == 0


def test_a_second_loss_is_recovered_too(behind, tmp_path):
    """Whether the copy is from before the first recovery or from after it."""
    place, answered = behind
    old = backed_up(place, tmp_path)
    recover(place.durable, "session", by="olga")
    later = backed_up(place, tmp_path)
    with place.reopened() as s:
        s.revoke(s.given[2])
    for copy, times in ((later, 2), (old, 1)):
        shutil.copy(copy, place.url)
        with recovered(place) as s:
            assert s.handles[1].ask("beans", id="before") == answered and s.remaining.epsilon == 0
            assert [fact.kind for fact in s.history].count("recovery") == times
            s._engine.ledger.verify()


def test_a_recovery_that_ended_before_the_witness_had_seen_it_is_finished(behind, monkeypatch):
    place, answered = behind

    def dies(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(WitnessFile, "note_recovery", dies)
    with pytest.raises(KeyboardInterrupt):
        recover(place.durable, "session", by="olga")
    monkeypatch.undo()
    with pytest.raises(LedgerRolledBack):
        place.reopened()
    with recovered(place) as s:
        assert s.handles[1].ask("beans", id="before") == answered
        assert [fact.kind for fact in s.history].count("recovery") == 1


def test_what_the_lost_ledger_still_does_is_not_taken_for_the_recovered_one(behind):
    """A process that was thought to be gone goes on to write to the witness: then neither is trusted."""
    place, _ = behind
    recover(place.durable, "session", by="olga")
    ((genesis,),) = place.sql("SELECT genesis FROM counterpoint_session WHERE name <> '@register'")
    furthest = max(line.sequence for line in WitnessFile(place.home / "witness").seen("session"))
    WitnessFile(place.home / "witness").note("session", furthest + 1, bytes(32), genesis)
    with pytest.raises(LedgerRolledBack):
        place.reopened()


def test_only_what_is_behind_its_witness_is_recovered(tmp_path):
    place = Place("sqlite", tmp_path)
    lived(place)
    with pytest.raises(NotAllowed, match="nothing to recover"):
        recover(place.durable, "session", by="olga")
    with pytest.raises(LedgerError, match="there is no session"):
        recover(place.durable, "people", by="olga")
    with pytest.raises(InvalidParameter, match="a principal is named"):
        recover(place.durable, "session", by="")
    with place.reopened() as s:
        assert s.remaining.epsilon > 0


def test_a_key_that_opens_the_answers_is_needed(behind, tmp_path):
    place, _ = behind
    MasterKey.create(tmp_path / "other.key")
    other = cp.Durable(place.url, key_file=tmp_path / "other.key", witness=place.home / "witness")
    with pytest.raises(Unsealable):
        recover(other, "session", by="olga")
    with pytest.raises(LedgerRolledBack):
        place.reopened()


def test_if_the_witness_was_lost_too_that_is_said(behind):
    place, answered = behind
    (place.home / "witness").unlink()
    with pytest.raises(LedgerRolledBack, match="is kept with a witness"):
        recover(place.durable, "session", by="olga")
    recover(place.durable, "session", by="olga", witness_lost=True)
    with place.reopened() as s:
        assert s.handles[1].ask("beans", id="before") == answered and s.remaining.epsilon == 0
        assert "its witness was lost, too" in next(fact for fact in s.history if fact.kind == "recovery").what


def test_a_damaged_backup_is_not_recovered(behind):
    place, _ = behind
    place.sql("UPDATE counterpoint_row SET version = version + 1 WHERE path = '[0]'")
    with pytest.raises(LedgerTampered):
        recover(place.durable, "session", by="olga")


def test_a_session_without_a_bound_has_lost_what_no_budget_bounds(tmp_path):
    place = Place("sqlite", tmp_path)
    with place.session(rule=cp.Odometer(cp.PureDP)) as s:
        s.launch(cp.Laplace(1))
    copy = backed_up(place, tmp_path)
    with place.reopened() as s:
        s.launch(cp.Laplace(1))
    shutil.copy(copy, place.url)
    with recovered(place) as s:
        assert s.loss == cp.ApproxDP(0, 1)
        with pytest.raises(cp.BudgetExceeded):
            s.launch(cp.Laplace("0.1"))
        s._engine.ledger.verify()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_stream_and_a_ledger_of_any_kind(kind, tmp_path):
    """In PostgreSQL the copy is put back by tables, as a restored dump would be."""
    place = Place(kind, tmp_path)
    with place.session(source=cp.Stream()) as s:
        s.launch(cp.Counter("0.5"), id="C")
    tables = {name: place.sql(f"SELECT * FROM counterpoint_{name}") for name in TABLES}
    stream = cp.Stream()
    with place.reopened(source=stream) as s:
        stream.append(1, id="monday")
        s.handles[0].ask(id="q")
    for name, rows in tables.items():
        place.sql(f"DELETE FROM counterpoint_{name}")
        for row in rows:
            place.sql(f"INSERT INTO counterpoint_{name} VALUES ({', '.join('?' * len(row))})", *row)
    recover(place.durable, "session", by="olga")
    stream = cp.Stream()
    with place.reopened(source=stream) as s:
        assert stream.append(1, id="monday") is None, "items may arrive, and nothing is read of them"
        with pytest.raises(Halted):
            s.handles[0].ask(id="q")
        s._engine.ledger.verify()


TABLES = ("session", "key", "entry", "row", "request", "items")


def test_the_public_record_of_a_recovery_does_not_depend_on_the_data(tmp_path):
    """Two worlds: entries differ in what is random, sealed or a time, and in nothing else."""
    worlds = []
    for rows in (DATA, {"apples": 0, "beans": 10**6, "avocados": 0}):
        (tmp_path / str(len(worlds))).mkdir()
        place = Place("sqlite", tmp_path / str(len(worlds)))
        lived(place, rows)
        copy = backed_up(place, tmp_path)
        with place.reopened(source=Numbers(rows)) as s:
            s.handles[1].ask("beans", id="after")
        shutil.copy(copy, place.url)
        recover(place.durable, "session", by="olga")
        found = place.sql("SELECT entry FROM counterpoint_entry WHERE name <> '@register' ORDER BY number")
        entries = [json.loads(bytes(data)) for (data,) in found]
        worlds.append(
            [
                (entry[:4], entry[4] if entry[1] not in ("answer", "signer") else "", entry[6], len(bytes(data)))
                for entry, (data,) in zip(entries, found, strict=True)
            ]
        )
        kinds = [entry[1] for entry in entries]
        assert kinds[kinds.index("recovery") :] == ["recovery", *["lost"] * 10]
    assert worlds[0] == worlds[1]


FORGED = {
    "a launch after the record was lost": lambda entries: [*entries, entries[5]],
    "no request left to close": lambda entries: [e for e in entries if not (e.kind == "lost" and e.request)],
    "a loss without a recovery": lambda entries: [e for e in entries if e.kind != "recovery"],
}


@pytest.mark.parametrize("edit", FORGED.values(), ids=FORGED)
def test_a_record_that_was_rewritten_to_say_otherwise_does_not_verify(behind, edit):
    place, _ = behind
    recover(place.durable, "session", by="olga")
    assert list(sessions_at(place.durable))
    forge(place, edit)
    with pytest.raises(LedgerError):
        list(sessions_at(place.durable))


def test_the_command_asks_for_the_name_once_more(behind):
    place, _ = behind
    words = ["ledger", "recover", place.url, "session", "--by", "olga", "--key-file", str(place.key)]
    words += ["--witness", str(place.home / "witness")]
    refused = CliRunner().invoke(app, [*words, "--yes", "yes"])
    assert refused.exit_code == 1 and "nothing was done" in refused.output
    done = CliRunner().invoke(app, [*words, "--yes", "session"])
    assert done.exit_code == 0 and "its budget counts as spent" in done.output
    shown = CliRunner().invoke(app, ["ledger", "show", place.url, "session"]).output
    assert "loss: PureDP(1)" in shown


def test_a_picture_of_a_recovered_session_shows_its_launches_and_that_all_is_spent(behind):
    place, _ = behind
    with recovered(place) as s:
        for session, budget in ((s, 1.0), (s.given[0], 0.2)):
            timeline = session.plot().timeline
            assert (timeline.lost, timeline.left) == (budget, 0.0) and timeline.events[-1].kind == "recovery"
            assert [lane.name for lane in timeline.lanes if not lane.reserve and not lane.depth]
        assert "5 launches lost ε 1.0 of 1; 0.0 is left" in repr(s.plot()) and "ε" in s._repr_html_()


def test_a_picture_of_a_recovered_odometer_is_drawn(tmp_path):
    """It promises nothing, so what it has lost has no height."""
    place = Place("sqlite", tmp_path)
    with place.session(rule=cp.Odometer(cp.PureDP)) as s:
        s.launch(cp.Laplace("0.1", asks=9), id="L")
    copy = backed_up(place, tmp_path)
    with place.reopened() as s:
        s.handles[0].ask("apples")
    shutil.copy(copy, place.url)
    with recovered(place) as s:
        assert [event.kind for event in s.plot().timeline.events] == ["launch", "recovery"]
