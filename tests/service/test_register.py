"""Who may call is decided by a chain: what is changed in the database opens nothing, neither at rest nor while it runs.

The tamperer has the database, and neither the key nor the witness; a tamperer of entries knows how they are hashed.
"""

import shutil
import sqlite3
from contextlib import closing, contextmanager

import pytest
from msgspec.structs import replace
from tests.ledger.places import DURABLE, Place
from tests.service import registry
from tests.service.browser import Browser
from tests.service.registry import PEOPLE, served
from typer.testing import CliRunner

import counterpoint as cp
from counterpoint.cli import app
from counterpoint.errors import InvalidParameter, LedgerError, LedgerRolledBack, LedgerTampered, NotAllowed, Unsealable
from counterpoint.ledger.admin import recover
from counterpoint.ledger.chain import Entry, link, read_entry
from counterpoint.ledger.location import hold, release
from counterpoint.ledger.open import rotate, sessions_at
from counterpoint.ledger.register_check import signature
from counterpoint.ledger.sealing import MasterKey
from counterpoint.ledger.store.records import REGISTER, StoredPrincipal
from counterpoint.service.identity import Identity, Role

BOB_AS_CUSTODIAN = "UPDATE counterpoint_principal SET role = 'custodian' WHERE name = 'bob'"
CHANGES = {
    "a role": BOB_AS_CUSTODIAN,
    "a name": "UPDATE counterpoint_principal SET name = 'rob' WHERE name = 'bob'",
    "whose key it is": "UPDATE counterpoint_api_key SET principal = 'carol' WHERE principal = 'bob'",
    "a digest": "UPDATE counterpoint_api_key SET digest = (SELECT digest FROM counterpoint_api_key WHERE "
    "principal = 'bob') WHERE principal = 'carol'",
    "when a key was made": "UPDATE counterpoint_api_key SET made = made + 1 WHERE principal = 'bob'",
    "when a principal was made": "UPDATE counterpoint_principal SET made = made + 1 WHERE name = 'bob'",
    "when it expires": "UPDATE counterpoint_api_key SET expires = 9999999999 WHERE principal = 'bob'",
    "a principal that is gone": "DELETE FROM counterpoint_principal WHERE name = 'bob'",
}


@pytest.fixture
def call(tmp_path):
    with served(tmp_path) as caller:
        yield caller


def run_sql(call, *statements):
    """Change the database of a service that runs, behind its back."""
    for statement in statements:
        call.registry._store._run(statement)


@pytest.mark.parametrize("what", CHANGES)
def test_a_row_that_was_changed_opens_nothing_while_the_service_runs(call, what):
    """The request is refused, not only the next verification."""
    run_sql(call, CHANGES[what])
    who = "carol" if what == "a digest" else "bob"
    for path in ("/v1/principals", "/v1/sessions"):
        refused = call(who, "GET", path)
        assert refused.status_code == 503 and refused.json()["title"] == "LedgerTampered", refused.text
    verified = call("carol" if who == "bob" else "olga", "POST", "/v1/data-sets/people/verification")
    assert verified.json().get("holds") is not True and "is " in verified.text, verified.text


def test_a_key_that_was_put_in_opens_nothing(call):
    key = call.registry.identity.new_key("bob")
    run_sql(call, f"UPDATE counterpoint_api_key SET id = '{'0' * 16}' WHERE id = '{key.id}'")
    forged = key.shown().replace(key.id, "0" * 16)
    assert call("bob", "GET", "/v1/sessions", key=forged).status_code == 503
    assert call("bob", "GET", "/v1/sessions").status_code == 200, "another key of bob's is as it was"


@pytest.mark.parametrize("put_back", ["ended = NULL", "ended = NULL, expires = NULL"])
def test_a_revoked_key_that_was_put_back_opens_nothing(call, put_back):
    """The row was valid once: it is not what the last entry about it says."""
    key = call.registry.identity.new_key("ann", days=1)
    assert call("carol", "DELETE", f"/v1/keys/{key.id}").status_code == 200
    run_sql(call, f"UPDATE counterpoint_api_key SET {put_back} WHERE id = '{key.id}'")
    assert call("ann", "GET", "/v1/sessions", key=key.shown()).status_code == 503


def test_an_ended_principal_that_was_put_back_opens_nothing(call):
    assert call("carol", "DELETE", "/v1/principals/ann").status_code == 200
    run_sql(
        call,
        "UPDATE counterpoint_principal SET ended = NULL WHERE name = 'ann'",
        "UPDATE counterpoint_api_key SET ended = NULL WHERE principal = 'ann'",
    )
    assert call("ann", "GET", "/v1/sessions").status_code == 503


def test_a_browser_that_signed_out_does_not_come_back(call):
    browser = Browser(call, "ann")
    row = call.registry._store._run("SELECT * FROM counterpoint_api_key WHERE id LIKE 'browser%'")[0]
    cookies = dict(browser.cookies)
    browser.post("/sign-out")
    call.registry._store._run("DELETE FROM counterpoint_api_key WHERE id LIKE 'browser%'")
    call.registry._store._run("INSERT INTO counterpoint_api_key VALUES (?, ?, ?, ?, ?, ?)", row)
    browser.cookies = cookies
    assert browser.get("/").status_code == 503


def test_grants_are_to_analysts_of_the_register_alone(call):
    """The role of a principal decides to whom a grant may be, too."""
    run_sql(call, "UPDATE counterpoint_principal SET role = 'analyst' WHERE name = 'olga'")
    body = {"to": "olga", "within": {"measure": "PureDP", "epsilon": 1}}
    assert call("carol", "POST", "/v1/data-sets/people/grants", body).status_code == 503


@pytest.mark.parametrize("what", CHANGES)
def test_at_the_next_start_such_a_change_is_found(tmp_path, what):
    with served(tmp_path):
        pass
    execute(tmp_path, CHANGES[what])
    with pytest.raises(LedgerTampered, match=r"(principal|API key) '.+' is"):
        reopened(tmp_path)
    assert_refused(tmp_path, r"(principal|API key) '.+' is")


def execute(folder, *statements):
    """Change the database of a service that does not run."""
    database = sqlite3.connect(folder / "ledger.db", isolation_level=None)
    for statement in statements:
        database.execute(statement)
    database.close()


@contextmanager
def people(place):
    store = hold(place, existing=True)
    try:
        with closing(Identity(store, place)) as known:
            yield known
    finally:
        release(store)


def reopened(folder):
    with people(cp.Durable(folder / "ledger.db")) as known:
        return known.principals()


def assert_refused(folder, match):
    with pytest.raises(LedgerError, match=match):
        list(sessions_at(cp.Durable(folder / "ledger.db")))


@pytest.fixture
def shut(tmp_path):
    with served(tmp_path) as call:
        call.registry.identity.end_key(call.registry.identity.new_key("ann").id)
    return tmp_path


def append(folder, make):
    """Append an entry to the register as somebody may who can write to the database."""
    with sqlite3.connect(folder / "ledger.db") as database:
        read = "SELECT entry FROM counterpoint_entry WHERE name = ? ORDER BY number"
        entries = [read_entry(data) for (data,) in database.execute(read, (REGISTER,))]
        ((head,),) = database.execute("SELECT head FROM counterpoint_session WHERE name = ?", (REGISTER,))
        data = replace(make(head, entries), number=len(entries) + 1).encoded()
        database.execute("INSERT INTO counterpoint_entry VALUES (?, ?, ?)", (REGISTER, len(entries) + 1, data))
        moved = "UPDATE counterpoint_session SET number = ?, head = ? WHERE name = ?"
        database.execute(moved, (len(entries) + 1, link(head, data), REGISTER))
    database.close()


@pytest.mark.parametrize("record", ["", "of another key", "of another entry"])
def test_an_entry_that_was_appended_without_the_key_is_refused(shut, record):
    """The chain itself needs no key: row, entry and head agree. The signature does not."""
    execute(shut, BOB_AS_CUSTODIAN)
    with sqlite3.connect(shut / "ledger.db") as database:
        row = database.execute("SELECT * FROM counterpoint_principal WHERE name = 'bob'").fetchone()
    database.close()

    def forged(head, entries):
        original = next(one for one in entries if (one.kind, one.body) == ("principal", "bob"))
        said = replace(original, number=len(entries) + 1, state=StoredPrincipal(*row).fingerprint)
        signatures = {"": "", "of another key": signature(said, head, bytes(32)), "of another entry": original.record}
        return replace(said, record=signatures[record])

    append(shut, forged)
    with pytest.raises(LedgerTampered, match="not signed with its key"):
        reopened(shut)
    assert_refused(shut, "not signed with its key")


def test_a_signed_entry_that_is_repeated_is_refused(shut):
    """The one that made ann's key, behind the one that ended it; its row is put back, too."""
    append(shut, lambda head, entries: next(one for one in entries[::-1] if "of 'ann' was made" in one.what))
    execute(shut, "UPDATE counterpoint_api_key SET ended = NULL WHERE principal = 'ann'")
    with pytest.raises(LedgerTampered, match="not signed with its key"):
        reopened(shut)


def test_a_role_cannot_be_given_by_an_entry_while_the_service_runs(tmp_path):
    with served(tmp_path) as call:
        register, store = call.registry.identity._register, call.registry._store
        said = Entry(register._head.number + 1, "principal", "", (), "forged", "bob", state="0" * 64)
        data = said.encoded()
        with store.lock:
            store._run("INSERT INTO counterpoint_entry VALUES (?, ?, ?)", (REGISTER, said.number, data))
            moved = "UPDATE counterpoint_session SET number = ?, head = ? WHERE name = ?"
            store._run(moved, (said.number, link(register._head.hash, data), REGISTER))
        assert call("bob", "GET", "/v1/principals").json()["title"] == "LedgerTampered"


def test_a_register_from_before_a_revocation_is_rolled_back(tmp_path):
    """The whole database, or the register with its rows alone: the witness has seen the revocation."""
    with served(tmp_path) as call:
        key = call.registry.identity.new_key("bob")
    shutil.copy(tmp_path / "ledger.db", tmp_path / "old.db")
    with people(cp.Durable(tmp_path / "ledger.db")) as known:
        known.end_key(key.id)
    shutil.copy(tmp_path / "ledger.db", tmp_path / "new.db")
    shutil.copy(tmp_path / "old.db", tmp_path / "ledger.db")
    with pytest.raises(LedgerRolledBack, match="an old copy was put back"):
        reopened(tmp_path)
    shutil.copy(tmp_path / "new.db", tmp_path / "ledger.db")
    execute(tmp_path, f"ATTACH '{tmp_path / 'old.db'}' AS old", *_register_of_old())
    with pytest.raises(LedgerRolledBack, match="an old copy was put back"):
        reopened(tmp_path)
    assert_refused(tmp_path, "an old copy was put back")


def _register_of_old():
    for table in ("session", "entry", "key"):
        yield f"DELETE FROM counterpoint_{table} WHERE name = '{REGISTER}'"
        yield f"INSERT INTO counterpoint_{table} SELECT * FROM old.counterpoint_{table} WHERE name = '{REGISTER}'"
    for table in ("principal", "api_key"):
        yield f"DELETE FROM counterpoint_{table}"
        yield f"INSERT INTO counterpoint_{table} SELECT * FROM old.counterpoint_{table}"


def test_a_register_that_was_put_back_while_the_service_runs_opens_nothing(tmp_path):
    with served(tmp_path) as call:
        key = call.registry.identity.new_key("bob")
        store = call.registry._store
        kept = {
            table: store._run(f"SELECT * FROM {table}")
            for table in ("counterpoint_session", "counterpoint_entry", "counterpoint_api_key")
        }
        call.registry.identity.end_key(key.id)
        for table, rows in kept.items():
            store._run(f"DELETE FROM {table}")
            for row in rows:
                store._run(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        refused = call("bob", "GET", "/v1/sessions", key=key.shown())
        assert refused.status_code == 503 and "does not continue" in refused.json()["detail"]


def test_a_register_that_was_deleted_makes_no_new_custodian(shut):
    """Else the first start after it would print the key of one."""
    execute(
        shut,
        *(f"DELETE FROM counterpoint_{table} WHERE name = '{REGISTER}'" for table in ("session", "entry", "key")),
        "DELETE FROM counterpoint_principal",
        "DELETE FROM counterpoint_api_key",
    )
    with pytest.raises(LedgerRolledBack, match="taken away"):
        reopened(shut)
    (shut / "ledger.db.witness").unlink()
    with pytest.raises(LedgerTampered, match="no register"):
        reopened(shut)


def test_a_session_whose_book_was_deleted_gets_no_fresh_budget(lasting):
    """Also where no witness was given: the register has it."""
    place = cp.Durable(lasting.url, key_file=lasting.key) if lasting.kind == "postgres" else lasting.durable
    source = lasting.source
    with cp.Session(source, cp.PureDP(1), ledger=place) as session:
        session.launch(cp.Laplace(1))
    for table in ("session", "entry", "key", "row", "request", "items"):
        lasting.sql(f"DELETE FROM counterpoint_{table} WHERE name = 'session'")
    with pytest.raises(LedgerError, match="taken away"):
        cp.Session(lasting.source, cp.PureDP(1), ledger=place)


def test_no_session_is_called_as_the_register_is(tmp_path):
    with pytest.raises(InvalidParameter, match="register"):
        cp.Session(Place("sqlite").source, cp.PureDP(1), ledger=tmp_path / "ledger.db", name=REGISTER)


@pytest.fixture(params=DURABLE)
def lasting(request):
    return Place(request.param)


@pytest.fixture
def lasting_pair(lasting):
    """What two processes see of one ledger in PostgreSQL; of one in SQLite, two threads."""
    stores = [hold(lasting.durable, existing=False) for _ in range(2)]
    yield [Identity(store, lasting.durable) for store in stores]
    for store in stores:
        release(store)


def test_what_another_process_changes_counts_from_the_next_request_on(lasting_pair):
    one, other = lasting_pair
    one.add("ann", Role.ANALYST)
    key = other.new_key("ann")
    assert one.principal(key.shown()) == other.principal(key.shown()) == ("ann", "analyst")
    one.end_key(key.id)
    assert one.principal(key.shown()) is other.principal(key.shown()) is None
    with pytest.raises(InvalidParameter, match="there is, or was"):
        other.add("ann", Role.CUSTODIAN)
    other.end("ann")
    with pytest.raises(NotAllowed):
        one.new_key("ann")


def test_the_history_of_the_register_says_who_made_whom(call, tmp_path):
    call("carol", "POST", "/v1/principals", {"name": "dora", "role": "analyst"})
    call("carol", "POST", "/v1/principals/dora/keys", {})
    call.registry.close()
    said = CliRunner().invoke(app, ["ledger", "history", str(tmp_path / "ledger.db"), REGISTER]).output
    assert "carol principal . principal 'dora' was added as analyst" in said
    assert "of 'dora' was made" in said and "session 'people' was made" in said


def test_keys_outlive_a_change_of_the_master_key_and_then_need_the_new_one(shut):
    before = {one.name for one in reopened(shut)}
    MasterKey.create(shut / "new.key")
    assert any(line.startswith(REGISTER) for line in rotate(cp.Durable(shut / "ledger.db"), str(shut / "new.key")))
    with pytest.raises(Unsealable, match="--key-file"):
        reopened(shut)
    shutil.move(shut / "new.key", shut / "ledger.db.key")
    assert {one.name for one in reopened(shut)} == before == set(PEOPLE)


def test_a_recovered_ledger_has_no_keys_but_new_ones(tmp_path):
    """One that was revoked since the backup cannot be told from the others."""
    place = cp.Durable(tmp_path / "ledger.db")
    with served(tmp_path) as call:
        key, others = call.registry.identity.new_key("bob"), dict(call.keys)
    shutil.copy(tmp_path / "ledger.db", tmp_path / "backup.db")
    with people(place) as known:
        known.end_key(key.id)
    with cp.open(place, "people", source=registry.table()) as session:
        session.launch(cp.Laplace("0.1")).ask(cp.count())
    shutil.copy(tmp_path / "backup.db", tmp_path / "ledger.db")
    assert "every API key is ended" in recover(place, "people", by="olga")
    with people(place) as known:
        assert {known.principal(shown) for shown in [key.shown(), *others.values()]} == {None}
        assert known.principal(known.new_key("carol").shown()) == ("carol", "custodian")
    assert len(list(sessions_at(place))) == 3
