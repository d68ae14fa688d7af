"""What is appended under an id arrives once: sent again, from anywhere, at any time, after any crash."""

import enum
import os
import threading
from contextlib import ExitStack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.ledger.crashes import Killer, in_child
from tests.ledger.forging import forge
from tests.ledger.places import Place, fresh_database
from tests.ledger.test_streams import SURE, exact, visits

import counterpoint as cp
from counterpoint.errors import (
    InvalidParameter,
    InvalidRequest,
    LedgerFailed,
    LedgerTampered,
    RequestConflict,
    Unsealable,
)
from counterpoint.ledger import stream_log as keeping
from counterpoint.ledger.sealed_rows import Ids
from counterpoint.ledger.sealing import MasterKey
from counterpoint.ledger.store.tables import Tables


def spending():
    return cp.Stream(bound=9, unit="user", per_unit=2)


def sent(place):
    """Which ids the database has, batch by batch."""
    return place.sql("SELECT start, count, request, part FROM counterpoint_items ORDER BY start")


def test_the_same_items_under_one_id_arrive_once(place):
    stream = visits()
    with place.session(SURE, source=stream) as s:
        for _ in range(3):
            stream.append(4, id="one")
            stream.extend([1, 2], id="two")
        stream.append(4)
        stream.append(4, id="another")
        assert stream.pin() == 5 and exact(s) == 15
        s._engine.ledger.verify()


@pytest.mark.parametrize(
    "other",
    [
        lambda stream: stream.extend([1, 8], units=["ann", "bob"], id="sent"),
        lambda stream: stream.extend([2, 1], units=["ann", "bob"], id="sent"),
        lambda stream: stream.extend([1, None], units=["ann", "bob"], id="sent"),
        lambda stream: stream.extend([1, 2], units=["ann", "ann"], id="sent"),
        lambda stream: stream.extend([1, 2], units=["bob", "ann"], id="sent"),
        lambda stream: stream.extend([1, 2, 3], units=["ann", "bob", "cid"], id="sent"),
        lambda stream: stream.append(1, unit="ann", id="sent"),
    ],
)
def test_other_items_under_the_same_id_are_a_conflict_and_add_nothing(place, other):
    stream = spending()
    with place.session(SURE, source=stream) as s:
        stream.extend([1, 2], units=["ann", "bob"], id="sent")
        with pytest.raises(
            RequestConflict, match=r"^other items were appended under id 'sent' before, so nothing was added"
        ):
            other(stream)
        assert stream.pin() == 2 and exact(s) == 3
        stream.extend([1, 2], units=["ann", "bob"], id="sent")
        stream.append(5, unit="ann", id="next")
        assert stream.log.items == [1, 2, 5], "and the ledger goes on"


def test_items_are_compared_as_they_are_stored(place):
    """What is clipped to the same value is the same; 7 and "7" are one unit, "07" is another."""
    stream = spending()
    with place.session(SURE, source=stream):
        stream.extend([10, float("nan")], units=["ann", 7], id="a")
        stream.extend([900, None], units=["ann", "7"], id="a")
        assert stream.pin() == 2
        with pytest.raises(RequestConflict):
            stream.extend([900, None], units=["ann", "07"], id="a")


def test_items_that_came_too_late_to_count_are_compared_too(place):
    """They are kept as nothing, yet what was sent is what was sent."""
    stream = spending()
    stream.extend([1, 2, 3], units=["ann"] * 3, id="before")
    with place.session(SURE, source=stream):
        stream.extend([4, 5], units=["ann"] * 2, id="in it")
        for _ in range(2):
            stream.extend([1, 2, 3], units=["ann"] * 3, id="before")
            stream.extend([4, 5], units=["ann"] * 2, id="in it")
            with pytest.raises(RequestConflict):
                stream.extend([1, 2, 4], units=["ann"] * 3, id="before")
            with pytest.raises(RequestConflict):
                stream.extend([4, 6], units=["ann"] * 2, id="in it")
        assert stream.log.items == [1, 2, None, None, None]


@pytest.mark.parametrize("first", [0, 9])
@pytest.mark.parametrize("again", [0, 9])
def test_the_public_length_is_the_same_whatever_items_say(place, first, again):
    """In two worlds that differ in an item, one send may be a repeat and the other a conflict: neither adds."""
    stream = visits()
    with place.session(SURE, source=stream):
        stream.append(first, id="a")
        if first == again:
            stream.append(again, id="a")
        else:
            with pytest.raises(RequestConflict) as caught:
                stream.append(again, id="a")
            assert not {"0", "9"} & set(str(caught.value)), "and not a word of what they say"
        assert stream.pin() == 1


@pytest.mark.parametrize("bad", [7, "", "x" * 257, b"q", True, "nul\0", "half a character \ud800"])
def test_a_bad_id_is_refused_and_nothing_arrives(place, bad):
    stream = visits()
    with place.session(source=stream):
        for deed in (lambda: stream.append(1, id=bad), lambda: stream.extend([1, 2], id=bad)):
            with pytest.raises(InvalidParameter, match="request id"):
                deed()
        stream.append(1, id="x" * 256)
        assert stream.pin() == 1


def test_an_id_for_no_items_is_refused(place):
    """It could not be on record, and the same id with items would then be taken for the first."""
    stream = visits()
    with place.session(source=stream):
        with pytest.raises(InvalidRequest, match="without items"):
            stream.extend([], id="a")
        stream.extend([])
        stream.append(1, id="a")
        assert stream.pin() == 1


def test_an_id_of_a_kind_of_text_is_that_text(place):
    class Days(enum.StrEnum):
        MONDAY = "monday"

    stream = visits()
    with place.session(source=stream):
        stream.append(1, id=Days.MONDAY)
        stream.append(1, id="monday")
        assert stream.pin() == 1


def test_ids_of_appends_are_no_concern_of_asks_or_of_other_streams(lasting):
    stream, other = visits(), visits()
    with lasting.session(SURE, source=stream) as s, lasting.session(SURE, source=other, name="other"):
        handle = s.launch(cp.Laplace(10**5), id="a")
        for id in ("a", "b"):
            stream.append(1, id=id)
            other.append(2, id=id)
        assert handle.ask(cp.total(), id="b") == 2 and other.pin() == 2


def test_what_was_sent_before_a_restart_is_known_after_it(lasting):
    """Also where it was sent before there was a session, and where it takes several batches."""
    stream = visits()
    stream.append(1)
    stream.extend([2] * 2500, id="before")
    stream.extend([3, 4])
    stream.append(5, id="and")
    with lasting.session(SURE, source=stream):
        stream.extend([6] * 1025, id="in it")
        stream.extend([2] * 2500, id="before")
    expected = [1, *[2] * 2500, 3, 4, 5, *[6] * 1025]
    stream = visits()
    with lasting.reopened(source=stream) as s:
        assert stream.log.items == expected
        stream.extend([2] * 2500, id="before")
        stream.append(5, id="and")
        stream.extend([6] * 1025, id="in it")
        for other in ([2] * 2499, [2] * 2501, [2] * 1024, [*[2] * 2499, 1]):
            with pytest.raises(RequestConflict):
                stream.extend(other, id="before")
        assert stream.pin() == len(expected) and stream.log.items == expected
        s._engine.ledger.verify()
    assert sent(lasting) == [
        (0, 1, None, None),
        (1, 1024, "before", 0),
        (1025, 1024, "before", 1),
        (2049, 452, "before", 2),
        (2501, 2, None, None),
        (2503, 1, "and", 0),
        (2504, 1024, "in it", 0),
        (3528, 1, "in it", 1),
    ]


def test_one_batch_with_an_id_is_not_taken_for_a_longer_append(lasting):
    """What follows in the log is not what was sent."""
    stream = visits()
    with lasting.session(source=stream):
        stream.extend([1] * 1024, id="a")
        stream.extend([1] * 1024)
        with pytest.raises(RequestConflict):
            stream.extend([1] * 2048, id="a")
        assert stream.pin() == 2048


@pytest.mark.parametrize("at", range(1, 6))
def test_who_sends_again_after_a_crash_has_sent_it_once(lasting, at, count=1500):
    """write, commit, committed, witnessed: wherever it was, the retry leaves exactly one."""
    lasting.session(SURE, source=visits()).close()

    def work(say):
        killer, stream = Killer(0), visits()
        lasting.reopened(source=stream, reached=killer)
        stream.extend([5] * 3, id="first")
        killer.left = at
        stream.extend([1] * count, id="second")
        say("sent")

    assert in_child(work) == (["sent"] if at == 5 else [], at == 5)
    for _ in range(2):
        stream = visits()
        with lasting.reopened(source=stream) as s:
            assert stream.pin() in (3, 3 + count)
            stream.extend([1] * count, id="second")
            stream.extend([5] * 3, id="first")
            assert stream.pin() == 3 + count and stream.log.items == [5] * 3 + [1] * count
            s._engine.ledger.verify()


@pytest.mark.parametrize("at", range(1, 5))
def test_ids_from_before_the_session_survive_a_crash_while_they_are_kept(lasting, at):
    lasting.session(SURE, source=visits(), name="other").close()

    def work(say):
        stream = visits()
        stream.append(7, id="early")
        killer = Killer(at)
        lasting.session(SURE, source=stream, reached=killer)
        say("made")

    in_child(work)
    stream = visits()
    with lasting.session(SURE, source=stream) as s:
        stream.append(7, id="early")
        assert stream.pin() == 1 and exact(s) == 7


def test_threads_that_send_the_same_at_once_add_it_once(place):
    """They share transactions: one may find in its own what another has just put there."""
    stream, failed = visits(), []
    with place.session(SURE, source=stream) as s:

        def send(offset):
            try:
                for number in range(15):
                    own = (number * 7 + offset) % 15
                    stream.extend([own % 10] * 2, id=f"{own}")
            except Exception as error:
                failed.append(error)

        threads = [threading.Thread(target=send, args=(offset,)) for offset in (0, 0, 0, 7)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not failed and stream.pin() == 30 and exact(s) == 2 * sum(own % 10 for own in range(15))
        s._engine.ledger.verify()


def test_of_two_that_send_different_items_under_one_id_one_is_refused(lasting):
    stream, outcomes = visits(), []
    with lasting.session(SURE, source=stream) as s:

        def send(value):
            for number in range(10):
                try:
                    stream.append(value, id=f"{number}")
                    outcomes.append((number, value))
                except RequestConflict:
                    outcomes.append((number, None))

        threads = [threading.Thread(target=send, args=(value,)) for value in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        kept = dict(pair for pair in outcomes if pair[1] is not None)
        assert len(outcomes) == 20 and sum(value is None for _, value in outcomes) == 10
        assert stream.pin() == 10 and exact(s) == sum(kept.values())


def test_processes_that_send_the_same_at_once_add_it_once(tmp_path):
    place = Place("postgres", tmp_path)
    place.session(SURE, source=visits()).close()
    ready, go = os.pipe()
    children = []
    for start in (0, 0, 9):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.close(go)
                stream, order = visits(), [(number * 7 + start) % 20 for number in range(20)]
                with place.reopened(source=stream):
                    os.read(ready, 1)
                    for number in order:
                        stream.extend([number % 10] * (number % 3 + 1), id=f"{number}")
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    os.close(ready)
    os.close(go)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 3
    stream = visits()
    with place.reopened(source=stream) as s:
        assert stream.pin() == sum(number % 3 + 1 for number in range(20))
        assert exact(s) == sum((number % 10) * (number % 3 + 1) for number in range(20))
        s._engine.ledger.verify()


def test_the_database_itself_refuses_a_second_append_of_one_id(lasting, monkeypatch):
    """Were our own look-ups wrong, nothing would arrive twice."""
    stream = visits()
    with lasting.session(SURE, source=stream):
        stream.append(1, id="a")
        monkeypatch.setattr(Tables, "sent", lambda *_: [])
        monkeypatch.setattr(Ids, "must_be_new", lambda *_: None)
        with pytest.raises(LedgerFailed, match="stored twice"):
            stream.append(1, id="a")
    monkeypatch.undo()
    stream = visits()
    with lasting.reopened(source=stream) as s:
        assert stream.pin() == 1
        s._engine.ledger.verify()
    for request, part in ((None, 0), ("b", None), ("b", -1)):
        with pytest.raises(Exception, match=r"(?i)check constraint"):
            lasting.sql("UPDATE counterpoint_items SET request = ?, part = ?", request, part)


@pytest.fixture
def three(lasting):
    """Three batches: two of one id, then one without."""
    stream = visits()
    with lasting.session(SURE, source=stream):
        stream.extend([1] * 1025, id="a")
        stream.append(2)
        stream.append(3, id="b")
    return lasting


TAMPERED = {
    "an id was changed": "UPDATE counterpoint_items SET request = 'c' WHERE start = 1026",
    "an id was taken away": "UPDATE counterpoint_items SET request = NULL, part = NULL WHERE start = 1026",
    "an id was made empty": "UPDATE counterpoint_items SET request = '' WHERE start = 1026",
    "an id was added": "UPDATE counterpoint_items SET request = 'c', part = 0 WHERE start = 1025",
    "an id goes on": "UPDATE counterpoint_items SET request = 'a', part = 2 WHERE start = 1025",
    "an id ends early": "UPDATE counterpoint_items SET request = NULL, part = NULL WHERE start = 1024",
    "a batch of an id was moved": "UPDATE counterpoint_items SET part = 7 WHERE start = 1024",
    "the only batch of an id was moved": "UPDATE counterpoint_items SET part = 1 WHERE start = 1026",
}


@pytest.mark.parametrize("what", TAMPERED)
def test_an_id_that_was_tampered_with_is_found_at_start(three, what):
    three.reopened(source=visits()).close()
    three.sql(TAMPERED[what])
    with pytest.raises(LedgerTampered, match="not those that arrived"):
        three.reopened(source=visits())


def test_an_id_is_sealed_with_its_items(three):
    """Whoever also rewrites the chain and the witness cannot give them another."""

    def renamed(entries):
        return [replace(entry, request="c") if entry.request == "b" else entry for entry in entries]

    three.sql(TAMPERED["an id was changed"])
    forge(three, renamed)
    stream = visits()
    with three.reopened(source=stream), pytest.raises(Unsealable):
        stream.pin()


def test_an_id_that_was_used_twice_is_found_by_verification(three):
    """Whoever takes the index away, and rewrites the chain and the witness."""
    three.sql("DROP INDEX counterpoint_sent")
    three.sql("UPDATE counterpoint_items SET request = 'a' WHERE start = 1026")
    forge(three, lambda entries: [replace(e, request="a") if e.request == "b" else e for e in entries])
    ledger = three.ledger()
    with pytest.raises(LedgerTampered, match="twice under one id"):
        ledger.verify()
    ledger.close()


def test_the_entries_of_items_carry_their_id(three):
    from counterpoint.ledger.chain import read_entry

    entries = [read_entry(bytes(data)) for (data,) in three.sql("SELECT entry FROM counterpoint_entry ORDER BY number")]
    assert [entry.request for entry in entries if entry.kind == "items"] == ["a", "a", "", "b"]


def test_ids_are_known_after_a_change_of_keys_and_not_without_the_key(lasting):
    stream = visits()
    with lasting.session(SURE, source=stream) as s:
        stream.append(1, id="a")
        new = lasting.home / "new.key"
        s._engine.ledger.rotate(MasterKey.create(new))
        stream.append(2, id="b")
        stream.append(1, id="a")
        with pytest.raises(RequestConflict):
            stream.append(2, id="a")
        assert stream.pin() == 2
    old, lasting.key = lasting.key, new
    stream = visits()
    with lasting.reopened(source=stream):
        stream.append(1, id="a")
        stream.append(2, id="b")
        assert stream.pin() == 2
    lasting.key = old
    stream = visits()
    with lasting.reopened(source=stream), pytest.raises(Unsealable):
        stream.append(1, id="a")
    assert len(sent(lasting)) == 2


def test_the_same_items_under_two_ids_look_different(tmp_path):
    """Nothing that is stored in the open is a function of what items say."""
    place, stream = Place("sqlite", tmp_path), visits()
    with place.session(source=stream):
        stream.append(1, id="a")
        stream.append(1, id="b")
        stream.append(9, id="c")
    sealed = [bytes(blob) for (blob,) in place.sql("SELECT sealed FROM counterpoint_items")]
    assert len(set(sealed)) == 3 and len(set(map(len, sealed))) == 1


class Model:
    """What a log must be: all that arrived, and under which ids."""

    def __init__(self):
        self.arrived, self.ids = [], {}

    def send(self, id, batch):
        """Whether it is a conflict."""
        stored = [(min(value or 0, 9), owner) for value, owner in batch]
        if id is None or id not in self.ids:
            self.arrived += stored
        return self.ids.setdefault(id, stored) != stored if id is not None else False

    @property
    def items(self):
        """The first two of each unit."""
        owners = [owner for _, owner in self.arrived]
        return [value if owners[:place].count(owner) < 2 else None for place, (value, owner) in enumerate(self.arrived)]


IDS = st.none() | st.sampled_from(["a", "b", "A", "0"])
BATCHES = st.lists(st.tuples(st.none() | st.integers(8, 10), st.sampled_from(["ann", 7, "07"])), min_size=1, max_size=5)
SENDS = st.lists(st.tuples(IDS, st.booleans(), st.booleans(), BATCHES), max_size=8)
"""Under which id; whether what was sent under it before is sent again; by which of two producers; what otherwise."""


def play(stream, model, id, again, batch):
    known = model.ids.get(id)
    batch = known if again and known is not None else batch
    values, owners = [value for value, _ in batch], [owner for _, owner in batch]
    if model.send(id, batch):
        with pytest.raises(RequestConflict):
            stream.extend(values, units=owners, id=id)
    else:
        stream.extend(values, units=owners, id=id)


@settings(max_examples=25, deadline=None)
@given(before=SENDS, lives=st.lists(SENDS, max_size=3))
def test_appends_are_those_of_the_model_in_memory_and_over_restarts(before, lives):
    place, model, stream = Place("sqlite"), Model(), spending()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keeping, "_TOGETHER", 2)  # so that most appends take several batches
        for id, again, _, batch in before:
            play(stream, model, id, again, batch)
            assert stream.log.items == model.items
        place.session(source=stream).close()
        for sends in lives:
            stream = spending()
            with place.reopened(source=stream) as s:
                assert stream.log.items == model.items
                for id, again, _, batch in sends:
                    play(stream, model, id, again, batch)
                    assert stream.pin() == len(model.items) and stream.log.items == model.items
                s._engine.ledger.verify()


@pytest.fixture(scope="module")
def shared_url():
    return fresh_database()


@settings(max_examples=10, deadline=None)
@given(lives=st.lists(SENDS, min_size=1, max_size=2))
def test_appends_of_two_producers_on_one_ledger_are_those_of_the_model(shared_url, lives):
    place, model = Place("postgres", url=shared_url), Model()
    name = f"session {os.urandom(8).hex()}"
    place.session(source=spending(), name=name).close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keeping, "_TOGETHER", 2)
        for sends in lives:
            with ExitStack() as stack:
                streams = [spending(), spending()]
                sessions = [stack.enter_context(place.reopened(source=stream, name=name)) for stream in streams]
                for id, again, who, batch in sends:
                    play(streams[who], model, id, again, batch)
                assert [stream.pin() for stream in streams] == [len(model.items)] * 2
                assert streams[0].log.items == streams[1].log.items == model.items
                sessions[0]._engine.ledger.verify()
