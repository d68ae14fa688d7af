"""A live table answers about the present as a table of its present rows would; what it is sent has one stated form."""

import threading
from contextlib import closing
from datetime import datetime

import pandas as pd
import pytest
from tests.sources.live_model import COLUMNS, EVALUATED, draws, history, live, moments, send

import counterpoint as cp
from counterpoint.engines.duckdb import EmbeddedEngine
from counterpoint.errors import InvalidParameter, InvalidRequest, RequestConflict
from counterpoint.privacy.secret import counted, reveal
from counterpoint.sources.streams import rows as present


def found(source, request, pin=None):
    raw = source.resolve(source.pin() if pin is None else pin, source.prepare(request))
    return dict(counted(raw).pairs) if raw.keyed else reveal(raw)


def expected(request, rows):
    return EVALUATED[request](rows)


@pytest.mark.parametrize("every", [3, 2**16])
@pytest.mark.parametrize("options", [{}, {"updates": 3}, {"protects": "event"}, {"protects": "event", "unit": None}])
def test_every_request_at_every_pin_is_about_the_rows_of_that_moment(options, every, monkeypatch):
    """In any order of the pins, while updates arrive, also where old rows have left the engine."""
    monkeypatch.setattr(present, "EVERY", every)
    for seed in range(10):
        rng, table = draws(seed), live(**options)
        updates = history(rng, 9)
        model = moments(updates, 2, options.get("updates"), options.get("unit", "who") is not None)
        for arrived, update in enumerate(updates, start=1):
            send(table, update)
            for request in rng.sample(list(EVALUATED), 4):
                pin = rng.choice([arrived, rng.randint(0, arrived)])
                assert found(table, request, pin) == expected(request, model[pin]), (seed, request, pin)
        assert table.pin() == len(updates)


def test_a_live_table_and_a_table_of_its_rows_give_one_answer():
    live_table = cp.LiveTable("who", 2, key="k", columns=COLUMNS)
    updates = history(draws(4), 40)
    for update in updates:
        send(live_table, update)
    rows = [{"who": who, **record} for who, _, record in moments(updates, 2)[-1]]
    frame = pd.DataFrame(rows, columns=["who", *COLUMNS]).astype({"note": object, "state": object})
    with closing(cp.Table(frame, unit="who", rows_per_unit=2, columns=COLUMNS)) as table:
        for request in EVALUATED:
            assert found(live_table, request) == found(table, request, table.pin())
            facts, same = live_table.prepare(request), table.prepare(request)
            assert facts == same, "the same sensitivities, one way where the table's are"


def test_each_slot_is_fed_once_and_what_was_fed_depends_on_public_lengths_alone(monkeypatch):
    sizes = []
    insert = EmbeddedEngine.insert
    monkeypatch.setattr(
        EmbeddedEngine,
        "insert",
        lambda self, name, columns: sizes.append(len(columns[0])) or insert(self, name, columns),
    )
    for updates in ([None] * 10, [("put", "ann", 1, {"n": n}) for n in range(10)]):
        table = live()
        for update in updates:
            send(table, update)
        for _ in range(3):
            found(table, cp.count())
        send(table, ("remove", "ann", 1))
        found(table, cp.histogram("state")), found(table.part("state", "a"), cp.count())
        assert sizes == [10, 1]
        sizes.clear()


def test_the_engine_holds_the_present_rows_and_few_others(monkeypatch):
    monkeypatch.setattr(present, "EVERY", 20)
    table = live()
    for n in range(300):
        send(table, ("put", "ann", n % 2 + 1, {"n": n % 6}))
        found(table, cp.count())
    ((held,),) = table.log._present._engine.run(f"SELECT COUNT(*) FROM {present.PRESENT}")
    assert held <= 2 + 2 * 20 and found(table, cp.count()) == 2
    assert found(table, cp.count(), 1) == 1, "an old pin is answered from the log"


def test_an_ask_of_an_old_pin_never_reads_an_engine_that_has_dropped_its_rows(monkeypatch):
    """The floor rises before rows leave, and is looked at after the statement ran."""
    monkeypatch.setattr(present, "EVERY", 4)
    table = live()
    for _ in range(4):
        send(table, ("put", "ann", 1, {"n": 5}))
    assert found(table, cp.count(), 1) == 1
    run, raced = EmbeddedEngine.run, []

    def racing(engine, sql, parameters=(), beside=()):
        if parameters == (1, 1) and not raced:
            raced.append(True)
            for _ in range(3):
                for _ in range(4):
                    send(table, ("put", "ann", 1, {"n": 5}))
                found(table, cp.count())
        return run(engine, sql, parameters)

    monkeypatch.setattr(EmbeddedEngine, "run", racing)
    assert found(table, cp.count(), 1) == 1 and raced


def test_threads_put_and_ask_at_once(monkeypatch):
    monkeypatch.setattr(present, "EVERY", 16)
    table, wrong = live(rows=3), []

    def put(unit):
        for n in range(60):
            table.put({"who": unit, "k": n % 3, "n": 5})

    def ask():
        for _ in range(40):
            pin = table.pin()
            if found(table, cp.count(), pin) != found(table, cp.count(), pin):
                wrong.append(pin)

    workers = [threading.Thread(target=put, args=(unit,)) for unit in "abc"]
    workers += [threading.Thread(target=ask) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong and table.pin() == 180 and found(table, cp.count()) == 9


def test_what_names_no_row_or_finds_no_room_takes_a_slot_and_does_nothing():
    table = live()
    deeds = [
        lambda: table.remove(who="ann", k=1),
        lambda: table.put(None),
        lambda: table.put({"who": None, "k": 1, "n": 3}),
        lambda: table.put({"who": "ann", "k": None, "n": 3}),
        lambda: table.put([{"who": "ann", "k": key} for key in range(2)]),
        lambda: table.put({"who": "ann", "k": "one too many"}),
        lambda: table.remove({"who": "ann", "k": "one too many"}),
        lambda: table.remove(who="bob", k=0),
    ]
    for deed in deeds:
        assert deed() is None
    assert table.pin() == 9 and found(table, cp.count()) == 2


def test_a_batch_that_is_sent_again_under_its_id_happens_once():
    table = live()
    batch = [{"who": "ann", "k": 1, "n": 3}, {"who": "bob", "k": 1, "n": 4}]
    table.put(batch, id="17")
    table.remove(who="ann", k=1)
    table.put(batch, id="17")
    table.remove([{"who": "bob", "k": 1}], id="18"), table.remove([{"who": "bob", "k": 1}], id="18")
    assert table.pin() == 4 and found(table, cp.count()) == 0
    for other in (lambda: table.put(batch[:1], id="17"), lambda: table.remove(who="bob", k=1, id="17")):
        with pytest.raises(RequestConflict):
            other()
    assert table.pin() == 4


def test_keys_and_units_are_the_same_as_a_number_and_as_its_digits():
    table = live()
    table.put([{"who": 1, "k": 1}, {"who": "1", "k": 1}, {"who": 1, "k": "1"}, {"who": "1", "k": "01"}])
    assert found(table, cp.count()) == 2 and found(table, cp.count_distinct()) == 1


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("a row", "a mapping or a list"),
        (["a row"], "not a str"),
        ({"k": 1}, "needs 'who', which names the row's unit"),
        ({"who": "ann"}, "needs 'k', which names the row's key"),
        ({"who": "ann", "k": 1, "age": 3}, "there is no 'age'"),
        ({"who": "ann", "k": b"1"}, "'k' must be a text or a whole number, not a bytes"),
        ({"who": True, "k": 1}, "'who' must be a text or a whole number, not a bool"),
        ({"who": None, "k": 1, "n": datetime(2024, 1, 1)}, "cannot be converted"),
    ],
)
def test_rows_of_a_wrong_form_are_refused_together_whatever_the_table_holds(row, why):
    for table in (live(), live(rows=1, protects="event")):
        for _ in range(2):
            with pytest.raises(InvalidRequest, match=why):
                table.put(row)
            with pytest.raises(InvalidRequest, match=why):
                table.put([{"who": "ann", "k": 1}, *(row if isinstance(row, list) else [row])]) if row != "a row" else (
                    table.put(row)
                )
            assert table.pin() in (0, 1)
            table.put({"who": "ann", "k": 1})


def test_values_off_the_declaration_are_converted_as_a_tables_are():
    table = live(rows=9)
    for key, n in enumerate([99, -99, float("inf"), float("nan"), "4", "four", None, 2.5]):
        table.put({"who": "ann", "k": key, "n": n, "state": "elsewhere"})
    assert found(table, cp.sum("n")) == 5 - 2 + 5 + 4 + 3 and found(table, cp.histogram("state")) == (0, 0, 0)
    assert found(table, cp.count()) == 8


def test_a_removal_names_unit_and_key_and_nothing_else():
    table = live()
    for bad in ({"who": "ann"}, {"who": "ann", "k": 1, "n": 3}, {}):
        with pytest.raises(InvalidRequest):
            table.remove(**bad)
        with pytest.raises(InvalidRequest):
            table.remove([bad])
    with pytest.raises(InvalidRequest, match="one list"):
        table.remove([{"who": "ann", "k": 1}], who="ann")
    assert table.pin() == 0


def test_a_key_may_be_called_id():
    table = cp.LiveTable("person", 3, key="id", columns=COLUMNS)
    table.put([{"person": "ann", "id": 1}, {"person": "ann", "id": 2}], id="first")
    table.remove(person="ann", id=1)
    table.remove([{"person": "ann", "id": 2}], id="second"), table.remove([{"person": "ann", "id": 2}], id="second")
    assert table.pin() == 4 and found(table, cp.count()) == 0


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "name the column that identifies them"),
        ({"unit": "who"}, "rows_per_unit must say"),
        ({"rows_per_unit": 2, "protects": "event"}, "without a unit"),
        ({"updates_per_unit": 2, "protects": "event"}, "without a unit"),
        ({"unit": "k", "rows_per_unit": 1}, "both 'k'"),
        ({"unit": "who", "rows_per_unit": 0}, "rows_per_unit"),
        ({"unit": "who", "rows_per_unit": 1, "updates_per_unit": 0}, "updates_per_unit"),
        ({"unit": 3, "rows_per_unit": 1}, "unit must be"),
        ({"unit": "who", "rows_per_unit": 1, "protects": "row"}, "'unit' or 'event'"),
        ({"unit": "who", "rows_per_unit": 1, "columns": {}}, "an empty one"),
    ],
)
def test_a_declaration_that_says_too_little_is_refused(options, why):
    with pytest.raises(InvalidParameter, match=why):
        cp.LiveTable(**{"key": "k", "columns": COLUMNS, **options})


def test_its_display_and_its_description_are_public():
    table = live(updates=9)
    before = table.describe()
    table.put([{"who": "ann", "k": 1, "n": 3}, {"who": "ann", "k": 1, "n": 4}])
    assert repr(table) == "LiveTable(state, n, note; unit='who', rows_per_unit=2, updates_per_unit=9; 2 updates)"
    assert table.describe() == before and "whose first 9 updates count" in before
    assert repr(live("event", unit=None)) == "LiveTable(state, n, note; protects='event'; 0 updates)"
    assert live("event", unit=None).describe().split("\n\n")[1].startswith("unit: every row is its own unit")


def test_a_part_holds_the_rows_that_have_its_value_now():
    table = live()
    table.put([{"who": "ann", "k": 1, "state": "a", "n": 5}, {"who": "bob", "k": 1, "state": "b"}])
    a, b = table.part("state", "a"), table.part("state", "b")
    assert (found(a, cp.count()), found(b, cp.count())) == (1, 1)
    table.put({"who": "ann", "k": 1, "state": "b", "n": 4})
    assert (found(a, cp.count()), found(b, cp.count()), found(a, cp.count(), 2)) == (0, 2, 1)
    for deed in (lambda: a.put(None), lambda: a.remove(who="ann", k=1), lambda: table.part("state", "elsewhere")):
        with pytest.raises(InvalidRequest):
            deed()


def test_requests_of_other_sources_and_pins_of_the_future_are_refused():
    table = live()
    table.put(None)
    for bad in (
        lambda: table.prepare("how many?"),
        lambda: table.prepare(cp.total()),
        lambda: table.prepare(cp.sum("k")),
    ):
        with pytest.raises(InvalidRequest):
            bad()
    for pin in (2, -1, "now", True):
        with pytest.raises(InvalidRequest, match="0 to 1"):
            table.resolve(pin, table.prepare(cp.count()))
    with pytest.raises(InvalidRequest, match="another source"):
        table.resolve(1, live(rows=3).prepare(cp.count()))
