"""Several `Sources` that share a table, or parts of one: each sees what it was given, whatever others put beside it."""

import gc
from itertools import product

import pyarrow as pa
import pytest
from tests.engines import engines
from tests.sources import people

import counterpoint as cp
from counterpoint.engines import duckdb as embedded
from counterpoint.errors import DataInUse, InvalidRequest, NotAllowed
from counterpoint.privacy.secret import reveal

KEY = bytes(32)
NAMES = ["ann", "bob", "cat"]
ONE = {"x": cp.number(0, 100)}
VISITS = pa.table({"person": NAMES * 2, "page": ["a"] * 3 + ["b"] * 3})
ASKED = cp.sum("joined.x", of="visits")


def visits():
    return cp.Table(VISITS, unit="person", rows_per_unit=2, columns={"page": cp.text()}, key=KEY)


def a_table(x):
    frame = pa.table({"person": NAMES, "x": [x] * 3})
    return cp.Table(frame, unit="person", rows_per_unit=1, columns=ONE, key=KEY)


def a_live_table(x):
    live = cp.LiveTable("person", 1, key="row", columns=ONE)
    live.put([{"person": name, "row": 1, "x": x} for name in NAMES])
    return live


def a_lookup(x):
    rows = pa.table({"page": ["a", "b"], "x": [x] * 2})
    return cp.Lookup(rows, key="page", columns={"page": cp.text(), **ONE})


JOINED = {"table": a_table, "live": a_live_table, "lookup": a_lookup}


def asked(sources, request=ASKED):
    return reveal(sources.resolve(sources.pin(), sources.prepare(request)))


def rows_seen(base):
    return people.found(base, cp.count())[0]


@pytest.mark.parametrize(("first", "second"), list(product(JOINED, JOINED)))
def test_sources_that_share_a_table_or_its_parts_see_their_own_attributes_in_every_order(first, second):
    whole = visits()
    bases = [whole, whole, whole.part("page", "a"), whole.part("page", "b"), whole.part("page", "b")]
    pairs = [
        (cp.Sources(visits=base, joined=JOINED[kind](10 * place + far), unit="person"), 10 * place + far, base)
        for place, base in enumerate(bases)
        for far, kind in ((1, first), (2, second))
    ]
    for sources, x, base in (*pairs, *reversed(pairs), *pairs[::2], *pairs[1::2]):
        assert asked(sources) == x * rows_seen(base)


def test_parts_of_one_table_are_different_attributes_although_they_have_one_pin():
    whole = people_by_state()
    parts = {state: whole.part("state", state) for state in ("CA", "NY")}
    assert parts["CA"].pin() == parts["NY"].pin()
    shared = visits()
    both = {state: cp.Sources(visits=shared, joined=part, unit="person") for state, part in parts.items()}
    for _ in range(2):
        assert asked(both["CA"]) == 2 * 7 and asked(both["NY"]) == 2 * (20 + 30)


def people_by_state():
    frame = pa.table({"person": NAMES, "state": ["CA", "NY", "NY"], "x": [7, 20, 30]})
    return cp.Table(frame, unit="person", rows_per_unit=1, columns={"state": cp.category(["CA", "NY"]), **ONE}, key=KEY)


def test_live_attributes_that_change_between_asks_are_read_as_they_are_and_as_they_were():
    shared = visits()
    lives = [cp.LiveTable("person", 1, key="row", columns=ONE) for _ in range(3)]
    both = [cp.Sources(visits=shared, joined=live, unit="person") for live in lives]
    for step in range(1, 5):
        for far, live in enumerate(lives, 1):  # equal pins, other rows
            live.put([{"person": name, "row": 1, "x": far * step} for name in NAMES])
        for far, sources in enumerate(both, 1):
            assert asked(sources) == 6 * far * step
            old = sources.prepare(ASKED)
            assert reveal(sources.resolve(3 * (step - 1), old)) == 6 * far * (step - 1)


def test_what_was_put_there_by_sources_that_are_gone_is_not_taken_for_anothers():
    shared = visits()
    for x in range(1, embedded._BESIDES + 5):
        kind = list(JOINED)[x % 3]
        assert asked(cp.Sources(visits=shared, joined=JOINED[kind](x), unit="person")) == 6 * x
        gc.collect(0)  # the next sources may have the address, and the `id()`, of these
    left = shared.embedded.run("SHOW TABLES")
    assert len(left) == embedded._BESIDES + 1, "the rows of sources that are gone do not pile up"


def test_more_attributes_than_are_kept_are_put_there_again_when_they_are_read():
    shared, many = visits(), range(embedded._BESIDES + 4)
    named = {f"s{i}": a_table(i) for i in many}
    sources = cp.Sources(visits=shared, **named, unit="person")
    for i in (*many, *many[:3], *reversed(many)):
        assert asked(sources, cp.sum(f"s{i}.x", of="visits")) == 6 * i
    every = " + ".join(f"s{i}.x" for i in many)
    assert asked(sources, cp.sum(every, of="visits")) == 6 * sum(many), "one statement may read them all"


def test_attributes_that_were_closed_are_not_answered_from_the_copy_and_bound_again_they_are_themselves():
    shared, closed = visits(), a_table(3)
    old = cp.Sources(visits=shared, joined=closed, unit="person")
    prepared, pin = old.prepare(ASKED), old.pin()
    assert asked(old) == 18
    closed.close()
    with pytest.raises(NotAllowed, match="closed"):
        old.resolve(pin, prepared)
    assert asked(cp.Sources(visits=shared, joined=a_table(5), unit="person")) == 30
    assert asked(cp.Sources(visits=shared, joined=a_table(3), unit="person")) == 18, (
        "the same pin as that of the closed"
    )


def test_rows_that_could_not_be_put_there_are_not_taken_for_the_version_before(monkeypatch):
    shared, live = visits(), a_live_table(4)
    sources = cp.Sources(visits=shared, joined=live, unit="person")
    assert asked(sources) == 24
    live.put([{"person": name, "row": 1, "x": 5} for name in NAMES])
    monkeypatch.setattr(live.log, "_present", None)
    with monkeypatch.context() as broken, pytest.raises(InvalidRequest):
        broken.setattr(embedded.EmbeddedEngine, "insert", lambda *_: refuse())
        asked(sources)
    assert reveal(sources.resolve(3, sources.prepare(ASKED))) == 24
    assert asked(sources) == 30


def refuse():
    raise InvalidRequest("no room")


def test_sessions_that_share_a_table_answer_from_their_own_sources():
    """The script of the attack: another session's medical data were answered, uncharged."""
    shared, medical, ages = visits(), a_live_table(1), a_live_table(0)
    sessions = [
        cp.Session(cp.Sources(visits=shared, joined=live, unit="person"), within=cp.PureDP(1000))
        for live in (medical, ages)
    ]
    found = [session.ask(cp.count("joined.x = 1", of="visits"), epsilon=500) for session in sessions]
    assert [int(answer) for answer in found] == [6, 0]


def test_a_live_table_or_stream_is_in_one_sources_only():
    live, stream = a_live_table(1), cp.Stream(fields={"page": cp.text()}, unit="person", per_unit=2)
    cp.Sources(joined=live, visits=stream, unit="person")
    for shared in ({"joined": live}, {"visits": stream}, {"other": visits(), "joined": live}):
        with pytest.raises(DataInUse):
            cp.Sources(**shared, unit="person")


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "spark"])
def test_parts_of_a_table_in_several_sources_answer_for_themselves_on_every_engine(engine):
    whole = engines.bound(engine, VISITS, "person", 2, {"page": cp.text()}, key=KEY)
    both = [
        cp.Sources(visits=whole.part("page", page), joined=a_lookup(x), unit="person")
        for page, x in (("a", 1), ("b", 2))
    ]
    assert [asked(sources, cp.count(f"page = '{key}'", of="visits")) for key in "ab" for sources in both] == [
        3,
        0,
        0,
        3,
    ]
    for sources, x in zip(both, (1, 2), strict=True):
        if engine == "duckdb":
            assert asked(sources) == 3 * x
        else:
            with pytest.raises(InvalidRequest, match=r"joined\.x"):
                sources.prepare(ASKED)
