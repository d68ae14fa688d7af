"""A live table on a durable ledger: its updates outlive the process, are the same for all, and are sealed."""

import pytest
from tests.ledger.crashes import Killer, in_child
from tests.ledger.places import Place
from tests.ledger.test_sealing import CANARY, dumped
from tests.sources.live_model import COLUMNS, EVALUATED, draws, history, live, moments, send

import counterpoint as cp
from counterpoint.errors import DataChanged, DataInUse, InvalidRequest, RequestConflict
from counterpoint.privacy.secret import counted, reveal
from counterpoint.sources.streams import rows as present

SURE = cp.PureDP(10**8)
LEVELS = [{}, {"updates": 3}, {"protects": "event"}, {"protects": "event", "updates": 3}]


def made(folder):
    folder.mkdir()
    return folder


def exact(session, request):
    return session.launch(cp.Laplace(10**5)).ask(request)


def found(source, request, pin):
    raw = source.resolve(pin, source.prepare(request))
    return dict(counted(raw).pairs) if raw.keyed else reveal(raw)


@pytest.mark.parametrize("options", [*LEVELS, {"protects": "event", "unit": None}])
def test_the_rows_of_every_moment_are_found_again(tmp_path, options):
    """Also of updates that came before the session, found no room, or were one too many of their unit."""
    updates = history(draws(11), 30)
    model = moments(updates, 2, options.get("updates"), options.get("unit", "who") is not None)
    place, first = Place("sqlite", tmp_path), live(**options)
    for update in updates[:10]:
        send(first, update)
    send(first, None, id="known before")
    with place.session(SURE, source=first):
        for update in updates[10:20]:
            send(first, update)
    second = live(**options)
    with place.reopened(source=second) as s:
        send(second, None, id="known before")
        assert second.pin() == 21
        for update in updates[20:]:
            send(second, update)
        s._engine.ledger.verify()
    third = live(**options)
    with place.reopened(source=third):
        assert third.pin() == len(updates) + 1
        for request, evaluate in EVALUATED.items():
            for pin, moment in ((0, 0), (5, 5), (10, 10), (11, 10), (16, 15), (31, 30)):
                assert found(third, request, pin) == evaluate(model[moment]), (request, pin)


def test_a_session_goes_on_where_it_was(lasting):
    table = live(updates=6)
    with lasting.session(SURE, source=table) as s:
        whole = s.launch(cp.Laplace(10**6, asks=9))
        part = s.partition("note", k=6, within=cp.PureDP(10**6))["x"].launch(cp.Laplace(10**6, asks=9))
        table.put({"who": "ann", "k": 1, "n": 5, "note": "x"}, id="one")
        assert whole.ask(cp.sum("n"), id="q") == 5
    table = live(updates=6)
    with lasting.reopened(source=table) as s:
        whole, part = s.at(whole.path), s.at(part.path)
        table.put({"who": "ann", "k": 1, "n": 5, "note": "x"}, id="one")
        assert table.pin() == 1, "it arrived before"
        with pytest.raises(RequestConflict):
            table.put({"who": "ann", "k": 1, "n": 4, "note": "x"}, id="one")
        table.put({"who": "ann", "k": 1, "n": 3, "note": "x"})
        assert whole.ask(cp.sum("n"), id="q") == 5, "what was answered stays"
        assert whole.ask(cp.sum("n")) == 3 and part.ask(cp.count()) == 1
        s._engine.ledger.verify()


@pytest.mark.parametrize("every", [2, 2**16])
def test_an_ask_that_a_crash_cut_short_is_finished_on_the_rows_it_was_asked_about(tmp_path, every, monkeypatch):
    """Also where these rows have long left the engine."""
    monkeypatch.setattr(present, "EVERY", every)
    place = Place("sqlite", tmp_path)

    def work(say):
        killer, table = Killer(0), live()
        s = place.session(SURE, source=table, reached=killer)
        handle = s.launch(cp.Laplace(10**5, asks=2))
        table.put({"who": "ann", "k": 1, "n": 3})
        killer.left = 3
        handle.ask(cp.sum("n"), id="q")

    assert not in_child(work)[1]
    table, ledger = live(), place.ledger()
    (left,) = ledger.opened()
    assert left.pin == 1
    ledger.bind(table.fingerprint(), table.log)
    table.put([{"who": "ann", "k": 1, "n": n} for n in (5, 4, 5, 4, 5, 4, 5)])
    table.remove(who="ann", k=1)
    assert found(table, cp.count(), table.pin()) == 0
    ledger.close()
    table = live()
    with place.reopened(source=table) as s:
        assert s.at((0,)).ask(cp.sum("n"), id="q") == 3 and s.at((0,)).ask(cp.sum("n")) == 0


@pytest.mark.parametrize("at", range(1, 5))
def test_a_batch_whose_sender_crashed_is_sent_again_and_happens_once(tmp_path, at):
    place = Place("sqlite", tmp_path)
    place.session(SURE, source=live()).close()
    batch = [{"who": "ann", "k": 1, "n": 1}, {"who": "bob", "k": 1, "n": 2}, None]

    def work(say):
        killer, table = Killer(at), live()
        place.reopened(source=table, reached=killer)
        table.put(batch, id="17")

    in_child(work)
    table = live()
    with place.reopened(source=table) as s:
        assert table.pin() in (0, 3), "all of it or nothing"
        table.put(batch, id="17")
        assert table.pin() == 3 and exact(s, cp.sum("n")) == 3
        s._engine.ledger.verify()


def test_rows_units_and_keys_are_sealed(tmp_path):
    place, table = Place("sqlite", tmp_path), live()
    with place.session(SURE, source=table):
        table.put({"who": CANARY, "k": 1, "note": CANARY})
        table.put({"who": "ann", "k": CANARY, "note": "x"})
        table.remove(who=CANARY, k=CANARY)
    assert not [blob for blob in dumped(place) if str(CANARY)[:12].encode() in blob]


def test_updates_that_do_something_and_updates_that_do_not_are_stored_alike(tmp_path):
    """What is stored of an update is what was sent, whether there was a row or room for one."""
    sizes = []
    for keys in ((1, 2, 3), (1, 1, 1)):
        place, table = Place("sqlite", made(tmp_path / str(keys[1]))), live(rows=1)
        with place.session(SURE, source=table):
            for key in keys:
                table.put({"who": "ann", "k": key, "n": 1})
                table.remove(who="ann", k=key + 5)
        sizes.append(place.sql("SELECT start, count, length(sealed) FROM counterpoint_items ORDER BY start"))
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize(
    "other",
    [
        lambda: live(rows=3),
        lambda: live("event"),
        lambda: live(updates=9),
        lambda: cp.LiveTable("who", 2, key="key", columns=COLUMNS),
        lambda: cp.LiveTable("who", 2, key="k", columns={"n": cp.number(0, 1)}),
        lambda: cp.Stream(fields=COLUMNS, unit="who", per_unit=2),
    ],
)
def test_another_declaration_is_refused(other, tmp_path):
    place = Place("sqlite", tmp_path)
    place.session(source=live()).close()
    with pytest.raises(DataChanged, match="declaration"):
        place.reopened(source=other())


def test_a_live_table_belongs_to_one_session_and_is_opened_empty(tmp_path):
    place, table = Place("sqlite", tmp_path), live()
    with place.session(source=table):
        table.put(None)
        with pytest.raises((DataInUse, DataChanged), match="this live table belongs to another session"):
            place.session(source=table, name="other")
    table = live()
    table.put(None)
    with pytest.raises(DataChanged, match="1 items of this live table"):
        place.reopened(source=table)


def test_processes_share_one_live_table(tmp_path):
    place = Place("postgres", tmp_path)
    here, there = live(rows=1), live(rows=1)
    with place.session(SURE, source=here) as s, place.reopened(source=there) as t:
        here.put({"who": "ann", "k": 1, "n": 1})
        there.put({"who": "ann", "k": 2, "n": 2})  # finds no room, as the other process put a row
        there.remove(who="ann", k=1)
        here.put({"who": "ann", "k": 3, "n": 3})
        assert exact(s, cp.sum("n")) == exact(t, cp.sum("n")) == 3
        assert here.log.items == there.log.items and here.log.replaced == there.log.replaced == [-1, None, 0, -1]
        t._engine.ledger.verify()


def test_a_forked_process_cannot_change_it():
    table = live()

    def work(say):
        for deed in (lambda: table.put(None), table.pin):
            try:
                deed()
            except cp.errors.ForkedProcess as error:
                say("a live table" in str(error))

    assert in_child(work)[0] == ["True", "True"]


def test_wrong_rows_are_refused_before_anything_is_stored(tmp_path):
    place, table = Place("sqlite", tmp_path), live()
    with place.session(SURE, source=table) as s:
        with pytest.raises(InvalidRequest):
            table.put([{"who": "ann", "k": 1}, {"who": "ann"}], id="17")
        table.put([{"who": "ann", "k": 1}], id="17")
        assert table.pin() == 1 and exact(s, cp.count()) == 1


@pytest.mark.parametrize(
    "options", [{"updates": 5}, {"protects": "event", "updates": 5}, {"protects": "event", "unit": None}]
)
def test_a_table_that_was_compacted_answers_as_before_at_every_pin(tmp_path, options, monkeypatch):
    """Also old pins and counters that were idle, from the ledger; and goes on as one that was not."""
    monkeypatch.setattr(present, "EVERY", 4)
    updates = [update for seed in range(20) for update in history(draws(seed), 9)][:60]
    model = moments(updates, 2, options.get("updates"), options.get("unit", "who") is not None)
    table, adults = live(**options), cp.count("n >= 3")
    with Place("sqlite", tmp_path).session(SURE, source=table) as s:
        idle, busy = (s.launch(cp.Counter(10**5), of=adults) for _ in range(2))
        for arrived, update in enumerate(updates, start=1):
            send(table, update)
            if arrived % 7 == 0:
                table.compact()
            if arrived % 5 == 0:
                assert busy.ask() == EVALUATED[adults](model[arrived])
        assert idle.ask() == busy.ask() == EVALUATED[adults](model[-1])
        for request, evaluate in EVALUATED.items():
            for pin in (60, 3, 20, 56, 0):
                assert found(table, request, pin) == evaluate(model[pin]), (request, pin)
        s._engine.ledger.verify()


def test_a_compacted_table_holds_no_more_than_its_rows(tmp_path):
    place, table = Place("sqlite", tmp_path), live()
    with place.session(SURE, source=table) as s:
        table.put([{"who": "ann", "k": 1, "n": n % 6} for n in range(100)])
        table.compact()
        assert [item for item in table.log.items if item is not None] == [(True, "1", None, 3, None)]
        assert exact(s, cp.sum("n")) == 3 and table.pin() == 100
    again = live()
    with place.reopened(source=again) as s:
        assert exact(s, cp.sum("n")) == 3


def test_without_a_ledger_nothing_is_forgotten():
    table = live()
    table.put({"who": "ann", "k": 1})
    with pytest.raises(cp.errors.NotAllowed, match="durable ledger"):
        table.compact()
    assert found(table, cp.count(), 1) == 1


def test_updates_of_other_processes_are_compacted_too(tmp_path):
    place = Place("postgres", tmp_path)
    here, there = live(rows=1), live(rows=1)
    with place.session(SURE, source=here) as s, place.reopened(source=there):
        there.put([{"who": "ann", "k": 1, "n": n} for n in (1, 2, 3)])
        here.compact()
        there.put({"who": "ann", "k": 1, "n": 5})
        assert exact(s, cp.sum("n")) == 5 and found(here, cp.sum("n"), 2) == 2
