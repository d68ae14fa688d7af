"""A stream on a durable ledger: its log outlives the process, is one for all, sealed, and on record in the chain."""

import base64
import threading
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ledger.crashes import Killer, in_child
from tests.ledger.places import Place
from tests.ledger.test_sealing import CANARY, dumped

import counterpoint as cp
from counterpoint.encoding import encode
from counterpoint.errors import DataChanged, LedgerError, LedgerFailed, LedgerRolledBack, LedgerTampered, Unsealable
from counterpoint.ledger.commands import AskCommand
from counterpoint.ledger.durable import DurableLedger
from counterpoint.ledger.sealing import MasterKey
from counterpoint.ledger.store.records import StoredItems
from counterpoint.ledger.store.store import ChangeSet

SURE = cp.PureDP(10**7)
"""So much that noise is 0 for all practical purposes, and what is counted can be seen."""


def visits():
    return cp.Stream(bound=9)


def exact(session, request=None):
    return session.launch(cp.Laplace(10**5)).ask(request or cp.total())


@pytest.fixture
def begun(lasting):
    """A log of three items and a counter that has read two of them."""
    stream = visits()
    with lasting.session(SURE, source=stream) as s:
        counter = s.launch(cp.Counter(epsilon=10**5), id="C")
        stream.extend([1, 2])
        assert counter.ask(id="q1") == 3
        stream.append(4)
    return lasting


def test_a_log_is_found_again_and_goes_on_where_it_was(begun):
    stream = visits()
    with begun.reopened(source=stream) as s:
        assert stream.pin() == 3 and "3 items" in repr(stream)
        assert s.at((0,)).ask(id="q1") == 3, "what was said stays said"
        assert s.at((0,)).ask(id="q2") == 7, "each item is read once, from where the counter was"
        stream.extend([8, 0])
        assert (stream.pin(), s.at((0,)).ask(), exact(s)) == (5, 15, 15)
        s._engine.ledger.verify()


def test_items_from_before_the_session_are_kept_too(lasting):
    stream = visits()
    stream.extend([1] * 2500)
    lasting.session(SURE, source=stream).close()
    again = visits()
    with lasting.reopened(source=again) as s:
        assert again.pin() == 2500 and exact(s) == 2500
    assert lasting.sql("SELECT start, count FROM counterpoint_items ORDER BY start") == [
        (0, 1024),
        (1024, 1024),
        (2048, 452),
    ]


def test_a_stream_with_items_of_its_own_is_not_taken_for_the_log(begun):
    """[1, 2] may be the first items again, or two new ones: nobody can tell, so it is refused."""
    stream = visits()
    stream.extend([1, 2])
    with pytest.raises(DataChanged, match="3 items"):
        begun.reopened(source=stream)
    with pytest.raises(DataChanged, match="3 items"):
        begun.session(SURE, source=stream)
    assert stream.pin() == 2, "and it is left alone"


def test_of_two_processes_that_begin_a_log_at_once_one_is_told_that_it_came_too_late(lasting, monkeypatch):
    """Both found none; which items come first is decided by the transaction alone."""
    first, second = visits(), visits()
    first.extend([1, 2])
    second.extend([3])
    lasting.session(SURE, source=first).close()
    with monkeypatch.context() as patch:
        patch.setattr(DurableLedger, "stored_length", lambda self: 0)
        with pytest.raises(DataChanged, match="another process has begun"):
            lasting.session(SURE, source=second)
    fresh = visits()
    with lasting.reopened(source=fresh):
        assert fresh.log.items == [1, 2]


@pytest.mark.parametrize("items", [StoredItems(0, 0, b"x"), StoredItems(-1, 1, b"x"), StoredItems(2, 1, b"x")])
def test_batches_have_a_place_of_their_own_by_the_databases_own_rule(begun, items):
    with closing(begun.ledger()) as ledger:
        unit = ChangeSet(ledger._store, "session", ledger._header.head)
        unit.put_items(items)
        ledger._store.begin(None)
        with pytest.raises(LedgerFailed):
            ledger._store.write(unit), ledger._store.commit()
        ledger._store.rollback()


@pytest.mark.parametrize(
    ("change", "error", "what"),
    [
        ("DELETE FROM counterpoint_items WHERE start = 0", LedgerTampered, "missing"),
        (
            "UPDATE counterpoint_items SET sealed = (SELECT sealed FROM counterpoint_items WHERE start = 1)",
            Unsealable,
            "items at",
        ),
    ],
    ids=["taken away", "at another place"],
)
def test_a_batch_that_is_changed_from_under_an_open_ledger_is_not_read(tmp_path, change, error, what):
    place, stream = Place("postgres", tmp_path), visits()
    with place.session(SURE, source=stream):
        other = visits()
        with place.reopened(source=other):
            stream.append(1)
            stream.append(2)
            place.sql(change)
            with pytest.raises(error, match=what):
                other.pin()


def test_the_same_stream_may_be_opened_again_and_nowhere_else(begun, tmp_path):
    stream = visits()
    with begun.reopened(source=stream):
        pass
    for deed in (lambda: stream.append(1), stream.pin):
        with pytest.raises(LedgerError, match="closed"):
            deed()
    with begun.reopened(source=stream) as s:
        stream.append(2)
        assert exact(s) == 9
        with pytest.raises(DataChanged, match="another session"):
            begun.session(source=stream, name="other")


@pytest.mark.parametrize(
    "other",
    [
        lambda: cp.Stream(bound=10),
        lambda: cp.Stream(bound=9, signed=True),
        lambda: cp.Stream(bound=9, dimensions=1),
        lambda: cp.Stream(bound=9, unit="user", per_unit=1),
        lambda: cp.Stream(bound=9, neighbours="add-or-remove"),
        lambda: cp.Stream(fields={"n": cp.number(0, 9)}),
    ],
)
def test_another_declaration_is_refused(other, tmp_path):
    place = Place("sqlite", tmp_path)
    place.session(source=visits()).close()
    with pytest.raises(DataChanged, match="declaration"):
        place.reopened(source=other())


def test_which_items_count_is_the_same_after_a_restart(lasting):
    def shopping():
        columns = {"page": cp.category(["home", "shop"]), "spent": cp.number(0, 100, step="0.5")}
        return cp.Stream(fields=columns, unit="user", per_unit=2)

    stream = shopping()
    stream.append({"user": "ann", "page": "home", "spent": 1})
    with lasting.session(SURE, source=stream):
        stream.append({"user": "ann", "page": "shop", "spent": 2.5})
        stream.append({"user": "ann", "page": "shop", "spent": 100})  # one too many
        stream.append({"user": None, "page": "shop", "spent": 100})  # nobody's
    stream = shopping()
    with lasting.reopened(source=stream) as s:
        stream.append({"user": "ann", "page": "shop", "spent": 100})
        stream.append({"user": "日本 \\ no ASCII", "page": "shop", "spent": 7})
        assert stream.pin() == 6 and exact(s, cp.total("spent")) == 10.5
        assert exact(s, cp.total("page")) == (1, 2)
    stream = shopping()
    with lasting.reopened(source=stream) as s:
        stream.append({"user": "日本 \\ no ASCII", "page": "home", "spent": 1})
        stream.append({"user": "日本 \\ no ASCII", "page": "home", "spent": 1})
        assert exact(s, cp.total("spent")) == 11.5


def test_vectors_and_parts_are_found_again(lasting):
    vectors = cp.Stream(bound=2**70, dimensions=2, signed=True)
    with lasting.session(cp.PureDP(10**30), source=vectors):
        vectors.extend([[2**70, -1], [0, 5]])
    again = cp.Stream(bound=2**70, dimensions=2, signed=True)
    with lasting.reopened(source=again):
        assert again.log.items == vectors.log.items == [(2**70, -1), (0, 5)]
    pages = cp.Stream(fields={"page": cp.text()})
    with lasting.session(SURE, source=pages, name="pages") as s:
        counter = s.partition("page", 2, within=cp.PureDP(10**6))["home"].launch(cp.Counter(epsilon=10**5))
        pages.extend([{"page": "home"}, {"page": "shop"}])
    pages = cp.Stream(fields={"page": cp.text()})
    with lasting.reopened(source=pages, name="pages") as s:
        pages.append({"page": "home"})
        assert s.at(counter.path).ask() == 2


def test_an_ask_that_was_pinned_before_another_one_reads_no_item_twice(lasting):
    """A second process may have asked between the moment in which the data is pinned and the transaction."""
    stream = visits()
    with lasting.session(SURE, source=stream) as s:
        counter = s.launch(cp.Counter(epsilon=10**5))
        stream.extend([1, 2, 3])
        assert counter.ask() == 6
        begun = s._engine.ledger.begin("() late", AskCommand(counter.path, None, None, pin=1))
        assert begun.pin == begun.row.cursor == 3
        assert counter.ask(id="late") == 6 and s._engine.ledger.read(counter.path).cursor == 3


def test_processes_share_one_log(tmp_path):
    place = Place("postgres", tmp_path)
    here, there = visits(), visits()
    with place.session(SURE, source=here) as s, place.reopened(source=there) as t:
        counter = s.launch(cp.Counter(epsilon=10**5))
        here.append(1)
        there.append(2)
        assert here.pin() == there.pin() == 2 and t.at(counter.path).ask() == 3
        here.extend([3, 4])
        assert counter.ask() == t.at(counter.path).ask() == 10
        assert here.log.items == there.log.items == [1, 2, 3, 4]
        t._engine.ledger.verify()


def test_threads_append_and_ask_at_once(lasting):
    stream = visits()
    with lasting.session(SURE, source=stream) as s:
        counters = [s.launch(cp.Counter(epsilon=10**5)) for _ in range(4)]
        seen = [[] for _ in counters]

        def follow(counter, told):
            for _ in range(10):
                stream.append(1)
                told.append(counter.ask())

        threads = [threading.Thread(target=follow, args=pair) for pair in zip(counters, seen, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert [counter.ask() for counter in counters] == [40] * 4
        assert all(told == sorted(told) and told[0] >= 1 and told[-1] >= 10 for told in seen)
        s._engine.ledger.verify()


@pytest.mark.parametrize("at", range(1, 6))
def test_a_crash_while_items_arrive_keeps_all_of_them_or_none(lasting, at):
    """write, commit, committed, witnessed: what has returned is kept; what has not is there as a whole or not."""
    lasting.session(SURE, source=visits()).close()

    def work(say):
        killer, stream = Killer(0), visits()
        lasting.reopened(source=stream, reached=killer)
        stream.extend([5] * 3)
        say("safe")
        killer.left = at
        stream.extend([1] * 1500)
        say("safe")

    said, lived = in_child(work)
    assert said == ["safe"] * (2 if lived else 1) and lived == (at == 5)
    stream = visits()
    with lasting.reopened(source=stream) as s:
        assert stream.pin() == (3 if at <= 2 else 1503)
        stream.append(1)
        assert exact(s) == stream.pin() + 12
        s._engine.ledger.verify()


@pytest.mark.parametrize(
    ("mechanism", "question"), [(cp.Counter(epsilon=10**5), None), (cp.Laplace(10**5, asks=2), cp.total())]
)
def test_an_ask_that_a_crash_cut_short_is_finished_on_the_items_it_was_asked_about(lasting, mechanism, question):
    def work(say):
        killer, stream = Killer(0), visits()
        s = lasting.session(SURE, source=stream, reached=killer)
        handle = s.launch(mechanism)
        stream.append(3)
        killer.left = 3
        handle.ask(question, id="q")

    assert not in_child(work)[1]
    stream = visits()
    ledger = lasting.ledger()
    (left,) = ledger.opened()
    assert left.pin == 1
    ledger.bind(stream.fingerprint(), stream.log)
    stream.append(5)
    ledger.close()
    stream = visits()
    with lasting.reopened(source=stream) as s:
        assert s.at((0,)).ask(question, id="q") == 3 and s.at((0,)).ask(question) == 8


TAMPERED = {
    "the last batch is gone": "DELETE FROM counterpoint_items WHERE start = 2",
    "the first batch is gone": "DELETE FROM counterpoint_items WHERE start = 0",
    "a batch is longer": "UPDATE counterpoint_items SET count = 3 WHERE start = 0",
    "the last batch is longer": "UPDATE counterpoint_items SET count = 2 WHERE start = 2",
    "a batch has moved": "UPDATE counterpoint_items SET start = 7 WHERE start = 2",
    "a batch is another's": """UPDATE counterpoint_items SET sealed =
        (SELECT sealed FROM counterpoint_items WHERE start = 0) WHERE start = 2""",
    "a batch was added": """INSERT INTO counterpoint_items (name, start, count, sealed)
        SELECT name, 3, 1, sealed FROM counterpoint_items WHERE start = 2""",
    "the entry is gone with its batch": """DELETE FROM counterpoint_entry WHERE number =
        (SELECT max(number) FROM counterpoint_entry)""",
}


@pytest.mark.parametrize("what", TAMPERED)
def test_a_log_that_was_tampered_with_is_refused_at_start(begun, what):
    begun.sql(TAMPERED[what])
    for deed in (begun.ledger, lambda: begun.reopened(source=visits())):  # whether anybody reads the log or not
        with pytest.raises(LedgerTampered):
            deed()


def test_two_batches_cannot_change_places(lasting):
    stream = visits()
    with lasting.session(source=stream):
        stream.append(1)
        stream.append(2)
    for start, to in ((0, 5), (1, 0), (5, 1)):
        lasting.sql(f"UPDATE counterpoint_items SET start = {to} WHERE start = {start}")
    with pytest.raises(LedgerTampered, match="not those that arrived"):
        lasting.reopened(source=visits())


def test_an_old_copy_without_the_last_items_is_refused(tmp_path):
    place, stream = Place("sqlite", tmp_path), visits()
    place.session(source=stream).close()
    old = (tmp_path / "ledger.db").read_bytes()
    with place.reopened(source=stream):
        stream.append(1)
    (tmp_path / "ledger.db").write_bytes(old)
    with pytest.raises(LedgerRolledBack):
        place.reopened(source=visits())


def test_a_stream_remembers_what_has_arrived_even_if_database_and_witness_do_not(tmp_path):
    place, stream = Place("sqlite", tmp_path), visits()
    with place.session(source=stream):
        stream.append(1)
    old = {name: (tmp_path / name).read_bytes() for name in ("ledger.db", "witness")}
    with place.reopened(source=stream):
        stream.append(2)
    for name, data in old.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(DataChanged, match="shorter than it was"):
        place.reopened(source=stream)


def test_without_the_key_charges_can_be_read_and_items_cannot(begun):
    begun.key = begun.home / "other.key"
    MasterKey.create(begun.key)
    stream = visits()
    with begun.reopened(source=stream) as s:
        assert s.loss == cp.PureDP(10**5)
        for deed in (stream.pin, lambda: stream.append(1), lambda: s.at((0,)).ask()):
            with pytest.raises(Unsealable, match="KEY_FILE"):
                deed()
        s._engine.ledger.verify()


def test_no_item_no_unit_and_no_state_lies_in_the_open(lasting):
    """A counter's state holds what it has counted."""
    stream = cp.Stream(bound=10**18, unit="user", per_unit=3)
    stream.append(CANARY, unit="canary-of-before")
    with lasting.session(source=stream) as s:
        counter = s.launch(cp.Counter(epsilon="0.5"))
        stream.extend([CANARY, 0], units=["canary-of-now", CANARY])
        counter.ask()
        state = encode(s._engine.ledger.read(counter.path).state, sealed=True)
        stored = dumped(lasting)
    stored += dumped(lasting)
    digits, needle = str(CANARY)[:12].encode(), CANARY.to_bytes(8, "big")[:5]
    packed = base64.b64encode(CANARY.to_bytes(8, "little"))[:10]
    assert packed in state, "or the search below could not fail"
    hidden = (digits, needle, packed, CANARY.to_bytes(8, "little")[:5], b"canary-of")
    assert stored and not [b for b in stored if any(one in b for one in hidden)]


def test_the_size_of_what_is_sealed_does_not_tell_a_value_or_a_unit(tmp_path):
    place, stream = Place("sqlite", tmp_path), cp.Stream(bound=10**9, unit="user", per_unit=2)
    with place.session(source=stream):
        for value, unit in ((0, "a"), (10**9, "a longer name"), (None, 7), (3, "a")):
            stream.append(value, unit=unit)
    assert len(set(place.sql("SELECT length(sealed) FROM counterpoint_items"))) == 1


OWNERS = st.sampled_from(["ann", "bob", 7, "07"])
BATCHES = st.lists(st.lists(st.tuples(st.none() | st.integers(0, 9), OWNERS), max_size=4), max_size=4)


@settings(max_examples=25, deadline=None)
@given(before=BATCHES, lives=st.lists(BATCHES, max_size=3))
def test_a_kept_log_is_what_a_log_in_memory_would_be(before, lives):
    """Whatever arrives before the session, in it, and after however many restarts."""

    def fresh():
        return cp.Stream(bound=9, unit="user", per_unit=2)

    def send(stream, batches):
        for batch in batches:
            stream.extend([value for value, _ in batch], units=[owner for _, owner in batch])

    place, model, stream = Place("sqlite"), fresh(), fresh()
    send(stream, before)
    send(model, before)
    place.session(source=stream).close()
    for batches in lives:
        stream = fresh()
        with place.reopened(source=stream) as s:
            assert stream.log.items == model.log.items
            send(stream, batches)
            send(model, batches)
            assert stream.pin() == model.pin() and stream.log.items == model.log.items
            s._engine.ledger.verify()
