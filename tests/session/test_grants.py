"""Principals and grants: who did what is on record, ids are each principal's own, and a grant ends when it ends."""

import time
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

import counterpoint as cp
from counterpoint.encoding import encode
from counterpoint.errors import InvalidParameter, LedgerTampered, NotAllowed, NotGranted
from counterpoint.ledger.chain import read_entry


def new(ledger=None, within=None, **more):
    visits = cp.Stream(bound=1)
    session = cp.Session(visits, within=within or cp.PureDP(10), ledger=ledger, **more)
    visits.extend([1] * 100)
    return session


@pytest.fixture(params=["memory", "sqlite"])
def session(request, tmp_path):
    if request.param == "memory":
        with new() as made:
            yield made
    else:
        with new(cp.Durable(str(tmp_path / "ledger.db"))) as made:
            yield made


def test_the_history_says_who_did_what_and_when_and_what_was_refused(session):
    before = int(time.time())
    ann = session.acting_as("ann")
    handle = ann.launch(cp.Laplace(1))
    handle.ask(cp.total())
    with pytest.raises(cp.BudgetExceeded):
        session.acting_as("bob").launch(cp.Laplace(10))
    session.launch(cp.Laplace(1))
    facts = [fact for fact in session.history if fact.kind not in ("open", "data")]
    assert [(fact.kind, fact.who) for fact in facts] == [
        ("launch", "ann"),
        ("ask", "ann"),
        ("refusal", "bob"),
        ("launch", ""),
    ]
    assert facts[2].what == "Laplace(10) at PureDP(10) refused: BudgetExceeded"
    assert all(before <= fact.at <= time.time() for fact in facts)
    session._engine.ledger.verify()


def test_two_principals_may_use_one_id_and_each_gets_its_own_answer(session):
    ann, bob = session.acting_as("ann"), session.acting_as("bob")
    noisy = ann.launch(cp.Laplace("1/1000", asks=3), id="monday")
    other = bob.launch(cp.Laplace("1/1000", asks=3), id="monday")
    assert noisy.path != other.path
    assert ann.launch(cp.Laplace("1/1000", asks=3), id="monday").path == noisy.path
    first, second = noisy.ask(cp.total(), id="a"), bob.at(noisy.path).ask(cp.total(), id="a")
    assert first == noisy.ask(cp.total(), id="a")
    assert second == bob.at(noisy.path).ask(cp.total(), id="a")
    assert len([fact for fact in session.history if fact.kind == "ask"]) == 2


@pytest.mark.parametrize("name", ["part", "question", "revocation", "root"])
def test_no_principal_can_be_named_so_that_its_ids_are_those_of_others(session, name):
    acting = session.acting_as(name)
    assert acting._engine._own("(0,) x", ()) == f"@{name} () (0,) x"
    ids = {
        session._engine._own("x", (0,)),
        acting._engine._own("x", (0,)),
        "part (0,) x",
        "revocation (0,)",
    }
    assert len(ids) == 4


@pytest.mark.parametrize("name", ["", " ", "a b", "@ (0,)", "ann\n", "x" * 65, "ä", None, 7])
def test_names_of_principals_are_checked(session, name):
    with pytest.raises(InvalidParameter, match="a principal is named by"):
        session.acting_as(name)


def test_a_grant_is_a_budget_for_one_principal(session):
    hers = session.grant("ann", cp.PureDP(2), id="ann")
    assert session.loss == cp.PureDP(2)
    hers.launch(cp.Laplace(1)).ask(cp.total())
    with pytest.raises(cp.BudgetExceeded):
        hers.launch(cp.Laplace(2))
    with pytest.raises(NotGranted, match="granted to 'ann', not to 'bob'"):
        session.at(hers._path).acting_as("bob").launch(cp.Laplace(1))
    with pytest.raises(NotGranted, match="granted to 'ann', not to 'carol'"):
        session.acting_as("carol").at((*hers._path, 0)).ask(cp.total())
    again = session.grant("ann", cp.PureDP(2), id="ann")
    assert (again._path, session.loss) == (hers._path, cp.PureDP(2))
    kinds = [(fact.kind, fact.who) for fact in session.history][-2:]
    assert kinds == [("denial", "bob"), ("denial", "carol")]
    session._engine.ledger.verify()


def test_a_revoked_grant_launches_and_answers_no_more_and_stays_charged(session):
    hers = session.grant("ann", cp.PureDP(2))
    noisy = hers.launch(cp.Laplace(1, asks=5))
    kept = noisy.ask(cp.total(), id="kept")
    parts = hers.delegate(cp.PureDP(0.5))
    session.revoke(hers)
    session.revoke(hers)
    for stopped in (
        lambda: noisy.ask(cp.total()),
        lambda: hers.launch(cp.Laplace("1/10")),
        lambda: hers.ask(cp.total(), epsilon=0.1),
        lambda: hers.delegate(cp.PureDP("1/10")),
        lambda: parts.launch(cp.Laplace("1/10")),
        lambda: session.at(hers._path).acting_as("ann").launch(cp.Laplace("1/10")),
    ):
        with pytest.raises(NotGranted, match="was revoked"):
            stopped()
    assert noisy.ask(cp.total(), id="kept") == kept
    assert session.loss == cp.PureDP(2)
    session._engine.ledger.verify()


def test_an_expired_grant_is_refused_and_its_handles_too(session, monkeypatch):
    with pytest.raises(InvalidParameter, match="with a zone"):
        session.grant("ann", cp.PureDP(1), until=datetime(2030, 1, 1))
    hers = session.grant("ann", cp.PureDP(1), until=datetime.now(UTC) + timedelta(hours=1))
    noisy = hers.launch(cp.Laplace(1, asks=2))
    noisy.ask(cp.total())
    late = time.time() + 7200
    monkeypatch.setattr(time, "time", lambda: late)
    with pytest.raises(NotGranted, match="has expired"):
        noisy.ask(cp.total())
    with pytest.raises(NotGranted, match="has expired"):
        hers.delegate(cp.PureDP("1/10"))


def test_a_grant_names_its_mechanisms_also_for_what_is_delegated_further(session):
    with pytest.raises(InvalidParameter, match="named by their classes"):
        session.grant("ann", cp.PureDP(1), mechanisms=["Laplace"])
    hers = session.grant("ann", cp.PureDP(2), mechanisms=[cp.Laplace, cp.Counter])
    hers.launch(cp.Laplace("1/2"))
    inner = hers.delegate(cp.PureDP(1))
    for refused in (hers, inner):
        with pytest.raises(NotGranted, match="'ann' was granted Laplace, Counter here, not SparseVector"):
            refused.launch(cp.SparseVector("1/10", threshold=1))
    inner.launch(cp.Counter("1/10"))


def test_a_grant_inside_a_grant_ends_with_the_outer_one(session):
    hers = session.grant("ann", cp.PureDP(2), mechanisms=[cp.Laplace])
    his = hers.grant("bob", cp.PureDP(1))
    noisy = his.launch(cp.Laplace("1/2", asks=3))
    with pytest.raises(NotGranted, match="not Counter"):
        his.launch(cp.Counter("1/10"))
    with pytest.raises(NotAllowed, match="do it where it was granted"):
        his.revoke(hers)
    session.revoke(hers)
    with pytest.raises(NotGranted, match="the grant of 'ann' was revoked"):
        noisy.ask(cp.total())


def test_only_what_was_granted_is_revoked(session):
    delegated = session.delegate(cp.PureDP(1))
    with pytest.raises(NotAllowed, match="was not granted to anyone"):
        session.revoke(delegated)
    with pytest.raises(NotAllowed, match="was not granted here"):
        session.revoke(session)
    delegated.launch(cp.Laplace(1))


def test_grants_outlive_the_process(tmp_path):
    place = cp.Durable(str(tmp_path / "ledger.db"))
    with new(place) as session:
        kept, gone = session.grant("ann", cp.PureDP(1)), session.grant("bob", cp.PureDP(1))
        session.revoke(gone)
        paths = kept._path, gone._path
    with cp.open(place, source=cp.Stream(bound=1)) as session:
        session.at(paths[0]).acting_as("ann").launch(cp.Laplace(1))
        with pytest.raises(NotGranted):
            session.at(paths[1]).acting_as("bob").launch(cp.Laplace(1))
        with pytest.raises(NotGranted):
            session.acting_as("bob").at(paths[0]).launch(cp.Laplace(1))
        session._engine.ledger.verify()


def test_a_grant_that_was_changed_in_the_database_is_found(tmp_path):
    place = cp.Durable(str(tmp_path / "ledger.db"))
    session = new(place)
    hers = session.grant("ann", cp.PureDP(1))
    session.revoke(hers)
    store = session._engine.ledger._store
    row = session._engine.ledger.read(hers._path)
    put_back = replace(row.state, grant=replace(row.state.grant, revoked=False))
    store._run("UPDATE counterpoint_row SET node = ? WHERE path = '[0]'", (encode(put_back),))
    with pytest.raises(LedgerTampered):
        session._engine.ledger.verify()
    session.close()


def test_no_two_chains_of_the_same_requests_have_the_same_entries(tmp_path):
    """Entries are salted: knowing all that was asked, one cannot confirm it by the hash of an entry."""
    for name in ("one", "two"):
        with new(cp.Durable(str(tmp_path / f"{name}.db"))) as session:
            session.launch(cp.Laplace(1), id="a")
            entries = [data for _, data in session._engine.ledger._store.entries("session", 1)]
            salts = {read_entry(data).salt for data in entries}
            assert len(salts) == len(entries) and all(len(salt) == 32 for salt in salts)


def test_a_clock_that_goes_back_revives_no_grant(session, monkeypatch, tmp_path):
    now = time.time()
    hers = session.grant("ann", cp.PureDP(1), until=datetime.fromtimestamp(int(now) + 100, UTC))
    noisy = hers.launch(cp.Laplace("0.1", asks=5))
    noisy.ask(cp.total())
    monkeypatch.setattr(time, "time", lambda: now + 1000)
    with pytest.raises(NotGranted, match="has expired"):
        hers.launch(cp.Laplace("0.1"))
    monkeypatch.setattr(time, "time", lambda: now)
    for again in (lambda: noisy.ask(cp.total()), lambda: hers.launch(cp.Laplace("0.1"))):
        with pytest.raises(NotGranted, match="has expired"):
            again()
    session.launch(cp.Laplace("0.1"))
    times = [fact.at for fact in session.history]
    assert times == sorted(times) and times[-1] == int(now + 1000)
    session._engine.ledger.verify()


def test_a_clock_that_was_put_back_before_a_restart_revives_no_grant_either(monkeypatch, tmp_path):
    place, now = cp.Durable(str(tmp_path / "ledger.db")), time.time()
    with new(place) as session:
        hers = session.grant("ann", cp.PureDP(1), until=datetime.fromtimestamp(int(now) + 100, UTC))
        path = hers._path
        monkeypatch.setattr(time, "time", lambda: now + 1000)
        session.launch(cp.Laplace("0.1"))
    monkeypatch.setattr(time, "time", lambda: now)
    with new(place) as session, pytest.raises(NotGranted, match="has expired"):
        session.at(path).acting_as("ann").launch(cp.Laplace("0.1"))
