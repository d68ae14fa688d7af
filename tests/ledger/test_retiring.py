"""A data set that is retired: keys and sealed content are gone from the files, and its public record stays."""

import pathlib

import pytest
from tests.ledger.forging import forge
from tests.ledger.places import DATA, Place
from tests.session.numbers_source import Numbers
from typer.testing import CliRunner

import counterpoint as cp
from counterpoint import checker
from counterpoint.cli import app
from counterpoint.errors import LedgerError, LedgerRolledBack, LedgerTampered, NotAllowed
from counterpoint.ledger import admin as tending
from counterpoint.ledger.admin import retire
from counterpoint.ledger.open import rotate, sessions_at
from counterpoint.ledger.sealing import MasterKey


def lived(place, name="session", rows=DATA):
    """A session with answers, a delegation, a refusal and a receipt; the receipt."""
    with place.session(name=name, source=Numbers(rows)) as s:
        s.launch(cp.Laplace("0.1", asks=9), id="L").ask("apples", id="q")
        s.delegate(cp.PureDP("0.2"), id="D").launch(cp.Laplace("0.1"), id="inner")
        with pytest.raises(cp.BudgetExceeded):
            s.launch(cp.Laplace(2))
        signed, disclosed = s.receipt("q")
        return {**signed._asdict(), "disclosed": disclosed._asdict()}


SEALED = [
    "SELECT wrapped FROM counterpoint_key WHERE name = 'session'",
    "SELECT sealed FROM counterpoint_row WHERE name = 'session' AND sealed IS NOT NULL",
    "SELECT answer FROM counterpoint_request WHERE name = 'session' AND answer IS NOT NULL",
    "SELECT sealed FROM counterpoint_items WHERE name = 'session'",
]


def secrets(place):
    return [bytes(blob) for sql in SEALED for (blob,) in place.sql(sql)]


@pytest.fixture
def lived_in(lasting):
    """A ledger with two sessions, and the receipt of the first."""
    receipt = lived(lasting)
    lived(lasting, "other", {"apples": 5})
    return lasting, receipt


def test_the_record_verifies_and_receipts_hold_without_any_key(lived_in):
    place, receipt = lived_in
    loss = list(tending.shown(place.durable, "session"))[1]
    retire(place.durable, "session", by="olga")
    assert secrets(place) == []
    assert next(iter(sessions_at(place.durable))).startswith("other: ")
    assert list(tending.shown(place.durable, "session"))[1] == loss
    assert any("retired" in line for line in tending.shown(place.durable, "session"))
    last = list(tending.history(place.durable, "session"))[-1]
    assert " olga retirement . " in last
    exported = CliRunner().invoke(app, ["ledger", "export", place.url, "session"]).output.splitlines()
    signer = place.durable.signer
    said = checker.check(iter(exported), [receipt], signer)
    assert "the data set is retired" in said and "1 receipt holds" in said
    with pytest.raises(checker.DoesNotHold):
        forged = {**receipt, "receipt": receipt["receipt"].replace("Laplace", "Laplacian").replace('"at":', '"at":1')}
        checker.check(iter(exported), [forged], signer)


def test_nothing_can_be_asked_read_or_begun_again_under_its_name(lived_in):
    place, _ = lived_in
    retire(place.durable, "session", by="olga")
    with pytest.raises(NotAllowed, match="is retired"):
        place.reopened()
    with pytest.raises(NotAllowed, match="is retired"):
        place.session()
    with pytest.raises(NotAllowed, match="is retired"):
        retire(place.durable, "session", by="olga")
    with place.reopened(name="other", source=Numbers({"apples": 5})) as s:
        s.handles[0].ask("apples")
        s._engine.ledger.verify()


def test_no_key_and_nothing_sealed_is_in_the_files_any_more(tmp_path):
    place = Place("sqlite", tmp_path)
    stream = cp.Stream()
    with place.session(source=stream) as s:
        stream.extend([1, 0, 1], id="monday")
        s.launch(cp.Counter("0.5"), id="C").ask(id="q")
        s.launch(cp.Laplace("0.1", asks=3), id="L").ask(cp.total(), id="r")
    found = secrets(place)
    before = pathlib.Path(place.url).read_bytes()
    assert len(found) > 4 and all(blob in before for blob in found), "or this could not fail"
    retire(place.durable, "session", by="olga")
    left = b"".join(file.read_bytes() for file in tmp_path.iterdir() if file.name.startswith("ledger.db"))
    assert [blob for blob in found if blob in left or blob[-24:] in left] == []


def test_an_older_backup_is_refused_by_the_witness(lived_in):
    place, _ = lived_in
    tables = {name: place.sql(f"SELECT * FROM counterpoint_{name}") for name in TABLES}
    retire(place.durable, "session", by="olga")
    for name, rows in tables.items():
        place.sql(f"DELETE FROM counterpoint_{name}")
        for row in rows:
            place.sql(f"INSERT INTO counterpoint_{name} VALUES ({', '.join('?' * len(row))})", *row)
    with pytest.raises(LedgerRolledBack):
        place.reopened()


TABLES = ("session", "key", "entry", "row", "request", "items")


def test_a_rotation_passes_it_over(lived_in, tmp_path):
    place, _ = lived_in
    retire(place.durable, "session", by="olga")
    MasterKey.create(tmp_path / "new.key")
    assert not any(line.startswith("session:") for line in rotate(place.durable, str(tmp_path / "new.key")))


TAMPERED = {
    "a key is put back": "INSERT INTO counterpoint_key (name, number, wrapped) VALUES ('session', 0, 'x')",
    "an account is changed": "UPDATE counterpoint_row SET version = version + 1 WHERE name = 'session'",
    "an account is deleted": "DELETE FROM counterpoint_row WHERE name = 'session'",
    "a request is put back": (
        "UPDATE counterpoint_request SET name = 'session' WHERE name = 'other' AND request = '() q'"
    ),
    "a state is put back": "UPDATE counterpoint_row SET name = 'session' WHERE name = 'other' AND node IS NULL",
    "a book is changed": "UPDATE counterpoint_session SET witnessed = 0 WHERE name = 'session'",
}


@pytest.mark.parametrize("how", TAMPERED)
def test_what_is_changed_in_it_is_noticed(lived_in, how):
    place, _ = lived_in
    retire(place.durable, "session", by="olga")
    assert len(list(sessions_at(place.durable))) == 2
    place.sql(TAMPERED[how])
    with pytest.raises(LedgerTampered):
        list(sessions_at(place.durable))


def test_a_record_that_goes_on_after_it_does_not_verify(tmp_path):
    place = Place("sqlite", tmp_path)
    lived(place)
    retire(place.durable, "session", by="olga")
    forge(place, lambda entries: [*entries, next(entry for entry in entries if entry.kind == "refusal")])
    with pytest.raises(LedgerError):
        list(sessions_at(place.durable))


def test_the_command_asks_for_the_name_once_more(tmp_path):
    place = Place("sqlite", tmp_path)
    lived(place)
    words = ["ledger", "retire", place.url, "session", "--by", "olga", "--witness", str(place.home / "witness")]
    refused = CliRunner().invoke(app, [*words, "--yes", "y"])
    assert refused.exit_code == 1 and "nothing was done" in refused.output and secrets(place)
    done = CliRunner().invoke(app, [*words, "--yes", "session"])
    assert done.exit_code == 0 and "retired" in done.output and not secrets(place)
