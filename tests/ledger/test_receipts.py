"""Receipts and the public record: signed, checked without our code, and found out if anything was changed."""

import ast
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from typer.testing import CliRunner

import counterpoint as cp
from counterpoint import checker
from counterpoint.cli import app
from counterpoint.errors import LedgerError, LedgerTampered, NotAllowed
from counterpoint.ledger import sealed_transaction as sealed
from counterpoint.ledger.admin import shown
from counterpoint.ledger.chain import Head, Receipt, Signer, read_entry
from counterpoint.ledger.durable import DurableLedger
from counterpoint.ledger.replay import Replay
from counterpoint.ledger.sealing import MasterKey
from counterpoint.ledger.store import store as exporting


def new(tmp_path, within=None, name="ledger.db"):
    visits = cp.Stream(fields={"clicks": cp.number(0, 9)})
    session = cp.Session(visits, within=within or cp.PureDP(1), ledger=str(tmp_path / name))
    visits.extend([{"clicks": 3}] * 50)
    return session


def lines(session):
    return session.record()


def signer_of(session):
    return session._engine.ledger._signer.public


def as_json(session, id):
    signed, disclosed = session.receipt(id)
    return {**signed._asdict(), "disclosed": disclosed._asdict()}


@pytest.fixture
def story(tmp_path):
    """A session with grants, refusals, a revocation, a recount, parts and answers; its receipts, and its record."""
    with new(tmp_path) as session:
        hers = session.grant("ann", cp.PureDP("0.5"))
        noisy = hers.launch(cp.Laplace("0.2", asks=3))
        noisy.ask(cp.count(), id="monday")
        hers.ask(cp.count(), epsilon="0.1", id="tuesday")
        with pytest.raises(cp.BudgetExceeded):
            hers.launch(cp.Laplace("0.3"))
        session.revoke(hers)
        session.recount(hers)
        session.launch(cp.Laplace("0.4")).ask(cp.count(), id="wednesday")
        session.delegate(cp.PureDP("0.1")).launch(cp.Laplace("0.1"))
        receipts = [as_json(hers, "monday"), as_json(hers, "tuesday"), as_json(session, "wednesday")]
        yield lines(session), receipts, session


def test_the_checker_imports_nothing_of_ours():
    tree = ast.parse(Path(checker.__file__).read_text(encoding="utf-8"))
    names = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    ours = {name.split(".")[0] for name in names}
    assert ours <= {*sys.stdlib_module_names, "cryptography"}


def test_a_record_and_its_receipts_hold(story):
    record, receipts, _ = story
    said = checker.check(iter(record), receipts, signer_of(story[2]))
    assert said.endswith("; signed by the service; 3 receipts hold") and "not checked" not in said
    assert json.loads(receipts[0]["receipt"])["who"] == "ann"
    assert json.loads(receipts[0]["receipt"])["cost"] == '{"type":"PureDP/1","epsilon":"1/5"}'


def test_the_checker_runs_alone_as_a_script(story, tmp_path):
    record, receipts, _ = story
    (tmp_path / "record.jsonl").write_text("\n".join(record) + "\n")
    (tmp_path / "receipt.json").write_text(json.dumps(receipts[0]))
    alone = tmp_path / "checker.py"
    alone.write_text(Path(checker.__file__).read_text(encoding="utf-8"))
    files = [str(tmp_path / "record.jsonl"), str(tmp_path / "receipt.json")]
    command = [sys.executable, "-I", str(alone), "--signer", signer_of(story[2]), *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "1 receipt holds" in done.stdout, done.stderr
    (tmp_path / "record.jsonl").write_text("\n".join(record[:-1]) + "\n")
    assert subprocess.run(command, capture_output=True, text=True, check=False).returncode == 1


def test_the_command_exports_what_the_checker_reads(tmp_path):
    with new(tmp_path) as session:
        session.launch(cp.Laplace("0.4")).ask(cp.count())
        expected = lines(session)
    done = CliRunner().invoke(app, ["ledger", "export", str(tmp_path / "ledger.db"), "session"])
    assert done.exit_code == 0 and done.output.splitlines() == expected
    assert CliRunner().invoke(app, ["ledger", "export", str(tmp_path / "ledger.db"), "nobody"]).exit_code == 1


def test_a_record_is_read_in_pages_and_requests_go_on_between_them(tmp_path, monkeypatch):
    monkeypatch.setattr(exporting, "BATCH", 4)
    with new(tmp_path) as session, ThreadPoolExecutor(1) as other:
        noisy = session.launch(cp.Laplace("0.4", asks=9))
        noisy.ask(cp.count(), id="a")
        before, reading = lines(session), session._engine.ledger.record()
        first = [next(reading), next(reading)]
        other.submit(noisy.ask, cp.count()).result(timeout=60)
        assert [*first, *reading] == before, "the record is as of its first line"
        assert "entries hold" in checker.check(iter(before), []) and len(lines(session)) == len(before) + 2


def test_a_record_with_a_gap_is_not_handed_out(tmp_path):
    with new(tmp_path) as session:
        session.launch(cp.Laplace("0.4")).ask(cp.count(), id="a")
        session._engine.ledger._store._run("DELETE FROM counterpoint_entry WHERE number = 5", ())
        with pytest.raises(LedgerTampered, match="missing"):
            lines(session)


@pytest.mark.parametrize("number", range(1, 23))
@pytest.mark.parametrize("how", ["change", "cut", "drop"])
def test_a_record_that_was_changed_anywhere_does_not_hold(story, number, how):
    record = list(story[0])
    if number >= len(record):
        pytest.skip("the record is shorter")
    if how == "drop":
        del record[number]
    elif how == "cut":
        record = record[:number]
    else:
        entry = json.loads(record[number])
        entry["entry"] = entry["entry"].replace('"', '"x', 1)
        record[number] = json.dumps(entry)
    with pytest.raises((checker.DoesNotHold, ValueError)):
        checker.check(iter(record), [])


def rewritten(record, change):
    """A record that was rewritten as a whole: one entry is another, and every hash after it was computed again."""
    return retold(record, lambda entries: [change(entry) for entry in entries])


def retold(record, change, signer=None):
    """A record whose entries were changed, left out or added to, and then numbered, hashed and signed again."""
    header, *rest = map(json.loads, record)
    head, texts = bytes.fromhex(header["genesis"]), []
    for number, values in enumerate(change([json.loads(line["entry"]) for line in rest]), start=1):
        before = head.hex() if values[1] == "answer" else values[4]
        texts.append(json.dumps([number, *values[1:4], before, *values[5:]], separators=(",", ":")))
        head = checker.sha256(head + texts[-1].encode()).digest()
    header["head"] = {"number": len(texts), "hash": head.hex()}
    if signer is not None:
        genesis = bytes.fromhex(header["genesis"])
        header["signature"] = signer.sign_record(genesis, header["session"], Head(len(texts), head))
    return [json.dumps(header), *(json.dumps({"number": n, "entry": text}) for n, text in enumerate(texts, start=1))]


def reworded(values):
    return [*values[:4], "Count(where='clicks > 3')", *values[5:]] if values[1] == "ask" else values


def dearer(values):
    return [*values[:-1], values[-1].replace("1/5", "5/1")] if values[1] == "launch" else values


def smaller(values):
    return [*values[:-1], values[-1].replace("3/10", "1/100")] if values[1] == "refusal" else values


def nobody(values):
    return [*values[:10], "", *values[11:]] if values[1] == "ask" else values


@pytest.mark.parametrize("change", [dearer, smaller], ids=lambda change: change.__name__)
def test_a_record_that_was_rewritten_as_a_whole_is_found_by_its_sums(story, change):
    with pytest.raises(checker.DoesNotHold, match=r"admitted that does not fit|refused that fits"):
        checker.check(iter(rewritten(story[0], change)), [])


def again(entries, kind, at=None):
    """The same once more, later: the first request of this kind and its answer, under another id."""
    first = next(entry for entry in entries if entry[1] == kind)
    both = [entry for entry in entries if entry[2] == first[2] and entry[1] in (kind, "answer")]
    copies = [[*entry[:2], "another id", *entry[3:]] for entry in both]
    place = len(entries) if at is None else 1 + max(entry[0] for entry in entries if entry[1] == at)
    return [*entries[:place], *copies, *entries[place:]]


def moved(entries, kind, path):
    """The first request of this kind is answered somewhere else."""
    request = next(entry for entry in entries if entry[1] == kind)[2]
    return [
        [*entry[:3], path, *entry[4:]] if entry[1] == "answer" and entry[2] == request else entry for entry in entries
    ]


def without(entries, kind):
    """All but the first request of this kind and its answer."""
    request = next(entry for entry in entries if entry[1] == kind)[2]
    return [entry for entry in entries if entry[2] != request]


def replaced(entries, kind, field, old, new):
    return [
        [*entry[:field], entry[field].replace(old, new), *entry[field + 1 :]] if entry[1] == kind else entry
        for entry in entries
    ]


FORGED = {
    "the session was opened twice": lambda entries: again(entries, "open"),
    "returned twice": lambda entries: again(entries, "recount"),
    "what was launched is in another place": lambda entries: moved(entries, "delegation", []),
    "it is in another place": lambda entries: moved(entries, "launch", [7]),
    "an answer was given in another place": lambda entries: moved(entries, "ask", [7]),
    "delegated for another cost than itself": lambda entries: replaced(entries, "delegation", 12, "1/2", "1/50"),
    "a loss is below 0": lambda entries: replaced(entries, "launch", 12, "1/10", "-9/1"),
    "its body is that of another entry": lambda entries: replaced(entries, "ask", 5, '["ask",[0,0]', '["ask",[0,1]'),
    "not launched": lambda entries: without(entries, "launch"),
    "it is what was launched is in another place": lambda entries: moved(entries, "question", [0, 0]),
    "admitted that does not fit": lambda entries: replaced(entries, "question", 12, "1/10", "4/10"),
    "its body is not that of an entry of its kind": lambda entries: replaced(entries, "question", 5, "\n", ","),
    "it is its body is not that of an entry of its kind": lambda entries: replaced(entries, "ask", 5, "]", "]\n[1]"),
    "that was revoked": lambda entries: again(entries, "ask", at="revocation"),
    "that another was granted": lambda entries: replaced(entries, "ask", 10, "ann", "bob"),
}


@pytest.mark.parametrize("reason", FORGED)
def test_a_record_that_tells_another_story_is_found_out(story, reason):
    with pytest.raises(checker.DoesNotHold, match=reason.removeprefix("it is ")):
        checker.check(iter(retold(story[0], FORGED[reason])), [])


@pytest.mark.parametrize("reason", ["opened twice", "returned twice", "what was launched is in another place"])
def test_the_ledgers_own_replay_finds_what_would_give_a_budget_twice(story, reason):
    """As `verify` goes through the entries; each of these would have left an account with less than was charged."""
    forged = next(forge for name, forge in FORGED.items() if reason in name)
    replay = Replay("session")
    with pytest.raises(LedgerTampered, match=reason):
        for line in retold(story[0], forged)[1:]:
            replay.step(read_entry(json.loads(line)["entry"].encode()))


REPLAYED = {
    "the rule refuses": lambda entries: replaced(
        entries, "question", 5, 'Laplace/1","epsilon":"1/10', 'Laplace/1","epsilon":"2/5'
    ),
    "the form of its kind": lambda entries: replaced(entries, "question", 5, "\n[", "\n[null,"),
    "form of its kind": lambda entries: replaced(
        entries, "question", 5, '\n[{"type":"Laplace/1"', '\n[{"type":"PureDP/1"'
    ),
    "it cannot be read": lambda entries: replaced(entries, "question", 5, "\n[", "\n"),
}


@pytest.mark.parametrize("reason", REPLAYED)
def test_the_ledgers_own_replay_finds_a_question_that_was_rewritten(story, reason):
    """The mechanism that was chosen for it is charged anew, by the code that admits."""
    (body,) = [entry[5] for entry in map(json.loads, texts(story[0])) if entry[1] == "question"]
    assert body.count("\n") == 1
    replay = Replay("session")
    with pytest.raises(LedgerTampered, match=reason.removeprefix("it ")):
        for text in texts(retold(story[0], REPLAYED[reason])):
            replay.step(read_entry(text.encode()))


def texts(record):
    return [json.loads(line)["entry"] for line in record[1:]]


def test_a_part_that_is_launched_twice_to_have_a_fresh_budget_is_found_out(tmp_path):
    visits = cp.Stream(fields={"page": cp.category(["a", "b"])})
    with cp.Session(visits, within=cp.PureDP(1), ledger=str(tmp_path / "ledger.db")) as session:
        session.partition("page", 2, within=cp.PureDP("0.5"))["a"].launch(cp.Laplace("0.5"))
        record = session.record()
    assert "10 entries hold" in checker.check(iter(record), [])

    def twice(entries):
        [part] = [entry for entry in entries if entry[2].startswith("part ") and entry[1] == "delegation"]
        return [*entries, *([*e[:2], "another", *e[3:]] for e in entries if e[2] == part[2])]

    with pytest.raises(checker.DoesNotHold, match="two were launched in one place"):
        checker.check(iter(retold(record, twice)), [])


def test_an_answer_that_names_another_head_before_it_is_found_out(story):
    header, *rest = map(json.loads, story[0])
    line = next(line for line in rest if '"answer"' in line["entry"])
    values = json.loads(line["entry"])
    line["entry"] = json.dumps([*values[:4], "0" * 64, *values[5:]])
    with pytest.raises(checker.DoesNotHold, match="another head before it"):
        checker.check(iter(map(json.dumps, [header, *rest])), [])


@pytest.mark.parametrize(
    "lie",
    [
        {"cost": '{"type":"PureDP/1","epsilon":"1/99"}'},
        {"path": [0, 1]},
        {"at": 1},
        {"who": "bob"},
        {"head_number": 0},
        {"answer": "0" * 64},
    ],
    ids=lambda lie: next(iter(lie)),
)
def test_a_service_that_signs_what_its_record_does_not_say_is_found_out(story, lie):
    signer, said = story[2]._engine.ledger._signer, json.loads(story[1][0]["receipt"])
    honest = Receipt(**{**said, "path": tuple(said["path"])})
    if "head_number" in lie:
        lie = {"head_number": said["number"], "head": said["head"]}
    assert checker.check(iter(story[0]), [signer.sign(honest)._asdict()], signer.public).endswith("1 receipt holds")
    with pytest.raises(checker.DoesNotHold, match=r"not the one on record|not on record"):
        checker.check(iter(story[0]), [signer.sign(Receipt(**{**said, **lie}))._asdict()], signer.public)


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", "{", '{"format": "counterpoint-record/1"}', "\x00"])
def test_what_is_no_record_is_refused_in_one_line(tmp_path, text, capsys):
    (tmp_path / "record.jsonl").write_text(text)
    assert checker.main([str(tmp_path / "record.jsonl")]) == 1
    assert capsys.readouterr().err.startswith("does not hold: ")


@pytest.mark.parametrize("change", [reworded, nobody], ids=lambda change: change.__name__)
def test_and_by_the_receipts_that_were_given(story, change):
    record, receipts, _ = story
    with pytest.raises(checker.DoesNotHold, match="not the one that this receipt was given on"):
        checker.check(iter(rewritten(record, change)), receipts[:1], signer_of(story[2]))


@pytest.mark.parametrize("field", ["who", "what", "cost", "data", "answer", "head", "entry"])
def test_a_receipt_that_was_changed_is_not_signed(story, field):
    record, receipts, session = story
    said = json.loads(receipts[0]["receipt"])
    said[field] = "0" * 64
    forged = {"receipt": json.dumps(said), "signature": receipts[0]["signature"]}
    with pytest.raises(checker.DoesNotHold, match=r"no key that counts here|not the one"):
        checker.check(iter(record), [forged], signer_of(session))


def test_another_answer_does_not_open_a_receipt(story):
    record, receipts, _ = story
    other = {**receipts[0], "disclosed": {**receipts[0]["disclosed"], "answer": "7"}}
    with pytest.raises(checker.DoesNotHold, match="not the one that the receipt was given for"):
        checker.check(iter(record), [other], signer_of(story[2]))


def test_a_receipt_of_another_ledger_is_about_another_record(story, tmp_path):
    with new(tmp_path, name="other.db") as other:
        other.launch(cp.Laplace("0.4")).ask(cp.count(), id="a")
        receipt = as_json(other, "a")
        other_record = lines(other)
        key = signer_of(other)
    assert "1 receipt holds" in checker.check(iter(other_record), [receipt], key)
    with pytest.raises(checker.DoesNotHold, match="about another record"):
        checker.check(iter(story[0]), [receipt], key)


def test_a_receipt_is_the_same_bytes_however_late_it_is_made(tmp_path):
    with new(tmp_path) as session:
        session.launch(cp.Laplace("0.4", asks=2)).ask(cp.count(), id="a")
        at_once = session.receipt("a")
        session.launch(cp.Laplace("0.1"))
        assert session.receipt("a") == at_once
        session._engine.ledger._sealer.grounds.clear()
        assert session.receipt("a") == at_once, "from the record, as from memory"


def test_a_new_master_key_changes_the_signer_and_the_one_before_signs_that(tmp_path):
    with new(tmp_path) as session:
        session.launch(cp.Laplace("0.4", asks=2)).ask(cp.count(), id="a")
        first, before = as_json(session, "a"), signer_of(session)
        assert cp.Durable(str(tmp_path / "ledger.db")).signer == before
        assert f"signer of its record and receipts: {before}" in shown(
            cp.Durable(str(tmp_path / "ledger.db")), "session"
        )
    key = tmp_path / "new.key"
    CliRunner().invoke(app, ["ledger", "key", str(key)])
    assert CliRunner().invoke(app, ["ledger", "rotate", str(tmp_path / "ledger.db"), str(key)]).exit_code == 0
    place = cp.Durable(str(tmp_path / "ledger.db"), key_file=str(key))
    visits = cp.Stream(fields={"clicks": cp.number(0, 9)})
    with cp.open(place, source=visits) as session:
        again, after = as_json(session, "a"), signer_of(session)
        assert again["receipt"] == first["receipt"] and again["disclosed"] == first["disclosed"]
        assert after == place.signer != before and again["signature"] != first["signature"]
        record = lines(session)
        for known in (before, after):
            assert checker.check(iter(record), [first, again], known).endswith("2 receipts hold")
        session.launch(cp.Laplace("0.1")).ask(cp.count(), id="b")
        record, later = lines(session), json.loads(as_json(session, "b")["receipt"])
        session._engine.ledger.verify()
    old = Signer(MasterKey.from_file(tmp_path / "ledger.db.key").signing_seed())
    leaked = old.sign(Receipt(**{**later, "path": tuple(later["path"])}))._asdict()
    with pytest.raises(checker.DoesNotHold, match="no key that counts here has signed this receipt"):
        checker.check(iter(record), [leaked], before)


def test_receipts_of_answers_that_were_committed_together_are_those_that_the_record_gives(tmp_path):
    """More asks than the record is read ahead by when an answer is looked for."""
    with new(tmp_path) as session:
        handles = [session.launch(cp.Laplace("0.01")) for _ in range(24)]
        with ThreadPoolExecutor(len(handles)) as pool:
            list(pool.map(lambda n: handles[n].ask(cp.count(), id=f"id {n}"), range(len(handles))))
        at_once = [as_json(session, f"id {n}") for n in range(len(handles))]
        session._engine.ledger._sealer.grounds.clear()
        assert [as_json(session, f"id {n}") for n in range(len(handles))] == at_once
        assert checker.check(iter(lines(session)), at_once, signer_of(session)).endswith("24 receipts hold")


def test_an_answer_that_was_finished_after_a_crash_and_long_after_its_question_has_its_receipt(tmp_path, monkeypatch):
    with new(tmp_path) as session:
        noisy, other = session.launch(cp.Laplace("0.1", asks=2)), session.launch(cp.Laplace("0.1", asks=40))
        with monkeypatch.context() as patch:
            patch.setattr(DurableLedger, "settle", lambda *_, **__: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                noisy.ask(cp.count(), id="a")
        for _ in range(40):
            other.ask(cp.count())
        noisy.ask(cp.count(), id="b")
        at_once = as_json(session, "a")
        session._engine.ledger._sealer.grounds.clear()
        assert as_json(session, "a") == at_once
        assert checker.check(iter(lines(session)), [at_once], signer_of(session)).endswith("1 receipt holds")


def test_few_grounds_are_kept_and_none_of_a_ledger_that_is_closed(tmp_path, monkeypatch):
    monkeypatch.setattr(sealed, "_KEPT", 3)
    with new(tmp_path) as session:
        noisy, sealer = session.launch(cp.Laplace("0.1", asks=9)), session._engine.ledger._sealer
        for n in range(9):
            noisy.ask(cp.count(), id=f"{n}")
            assert len(sealer.grounds) <= 3
        monkeypatch.setattr(sealed, "_LARGEST", 0)
        large = session.launch(cp.Laplace("0.1"))
        before = set(sealer.grounds)
        large.ask(cp.count(), id="large")
        assert set(sealer.grounds) == before != set() and as_json(session, "large")
    assert not sealer.grounds


def test_a_question_has_one_entry_and_one_receipt_at_once_and_after_a_restart(tmp_path):
    with new(tmp_path) as session:
        session.ask(cp.count(), epsilon="0.1", id="a")
        assert [fact.kind for fact in session.history if fact.kind != "data"] == ["open", "question"]
        given = as_json(session, "a")
    said = json.loads(given["receipt"])
    assert (said["path"], said["cost"]) == ([0], '{"type":"PureDP/1","epsilon":"1/10"}')
    assert said["what"] == "Count() by Laplace(0.1) at PureDP(0.1)"
    with new(tmp_path) as session:
        assert as_json(session, "a") == given
        said = checker.check(iter(lines(session)), [given], signer_of(session))
    assert said.endswith("1 receipt holds")


@pytest.mark.parametrize("change", [("path", [1]), ("cost", "1"), ("what", "Count()")], ids=repr)
def test_a_receipt_of_a_question_that_says_something_else_does_not_hold(tmp_path, change):
    with new(tmp_path) as session:
        session.ask(cp.count(), epsilon="0.1", id="a")
        field, value = change
        text = json.dumps({**json.loads(as_json(session, "a")["receipt"]), field: value})
        signed = {"receipt": text, "signature": session._engine.ledger._signer.signature(text)}
        with pytest.raises(checker.DoesNotHold, match="not the one on record"):
            checker.check(iter(lines(session)), [signed], signer_of(session))


def test_what_was_never_answered_has_no_receipt(tmp_path):
    with new(tmp_path) as session, pytest.raises(LedgerError, match="never made"):
        session.receipt("a")
    with pytest.raises(NotAllowed, match="a session in memory"):
        cp.Session(cp.Stream(bound=1), within=cp.PureDP(1)).receipt("a")
    with pytest.raises(NotAllowed, match="a session in memory"):
        cp.Session(cp.Stream(bound=1), within=cp.PureDP(1)).record()


def test_a_launch_has_no_receipt_under_its_id_nor_after_a_restart(tmp_path):
    with new(tmp_path) as session:
        session.launch(cp.Laplace("0.2"), id="launched")
        with pytest.raises(
            LedgerError, match="a receipt is for an answer or a charge, and this id is that of a launch"
        ):
            session.receipt("launched")
    with (
        new(tmp_path) as session,
        pytest.raises(LedgerError, match="a receipt is for an answer or a charge, and this id is that of a launch"),
    ):
        session.receipt("launched")


def test_where_a_rule_is_no_sum_the_checker_says_what_it_did_not_check(tmp_path):
    with new(tmp_path, within=cp.ApproxDP(1, 1e-6)) as session:
        session.launch(cp.Laplace("0.4"))
        session.delegate(cp.PureDP("0.2")).launch(cp.Laplace("0.1"))
        said = checker.check(iter(lines(session)), [])
    assert "1 admissions and refusals are right, 2 are not plain sums and were not checked" in said


def test_every_measure_that_a_plain_sum_covers_is_added_up(tmp_path):
    with new(tmp_path, within=cp.zCDP(1)) as session:
        session.launch(cp.Gaussian(rho="0.1"))
        session.launch(cp.Laplace("0.1"))
        session.launch(cp.Gaussian(mu="0.1"))
        with pytest.raises(cp.BudgetExceeded):
            session.launch(cp.Laplace("1.5"))
        assert "4 admissions" in checker.check(iter(lines(session)), [])
