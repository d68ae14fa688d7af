"""Several sources under one budget: what a request sees, how far it moves between neighbours, and what lasts."""

from contextlib import ExitStack, closing
from threading import Thread

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ledger.places import Place
from tests.queries.on_data import distinguisher

import counterpoint as cp
from counterpoint.engines.duckdb import EmbeddedEngine
from counterpoint.errors import DataFailed, DataInUse, InvalidParameter, InvalidRequest, RequestConflict
from counterpoint.privacy.messages import Ask, gap
from counterpoint.privacy.relations import OneWay, Steps
from counterpoint.privacy.secret import reveal

KEY = bytes(32)
NAMES = ["ann", "bob", "eve", "dan"]
PAGES = {"/a": "news", "/b": "sport", "/c": "news"}
AGES = cp.number(0, 120)
STATES = cp.category(["CA", "NY"])
SECONDS = cp.number(-20, 60, step=5)

people_rows = st.dictionaries(
    st.sampled_from(NAMES), st.tuples(st.sampled_from([0, 17, 65, 90]), st.sampled_from(["CA", "NY"]))
)
visit_rows = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(["/a", "/b", "/c", "/d"]), st.sampled_from([-20, 0, 35, 60])),
    max_size=9,
)


def people_of(rows, neighbours="add-or-remove"):
    frame = pd.DataFrame(
        [(name, age, state) for name, (age, state) in rows.items()], columns=["person", "age", "state"]
    ).astype({"person": object, "state": object, "age": "int64"})
    return cp.Table(
        frame, unit="person", rows_per_unit=1, columns={"age": AGES, "state": STATES}, neighbours=neighbours, key=KEY
    )


def orders_of(rows, neighbours="add-or-remove", per_unit=2):
    """A table with several rows of a unit."""
    frame = pd.DataFrame(rows, columns=["person", "page", "seconds"]).astype(
        {"person": object, "page": object, "seconds": "int64"}
    )
    columns = {"page": cp.text(), "seconds": SECONDS}
    return cp.Table(frame, unit="person", rows_per_unit=per_unit, columns=columns, neighbours=neighbours, key=KEY)


def stream(neighbours="replace", per_unit=2):
    return cp.Stream(
        fields={"page": cp.text(), "seconds": SECONDS}, unit="person", per_unit=per_unit, neighbours=neighbours
    )


def item(row):
    return {"person": row[0], "page": row[1], "seconds": row[2]}


def pages():
    frame = pd.DataFrame(PAGES.items(), columns=["page", "section"])
    return cp.Lookup(frame, key="page", columns={"page": cp.text(), "section": cp.category(["news", "sport"])})


REQUESTS = [
    cp.count(of="visits"),
    cp.count("people.age >= 65", of="visits"),
    cp.count("people.age IS NULL OR people.state = 'CA' AND page = '/a'", of="visits"),
    cp.count_distinct("people.state = 'NY'", of="visits"),
    cp.count("pages.section = 'news' AND people.age < 65", of="visits"),
    cp.sum("seconds", "people.age >= 65", of="visits"),
    cp.sum("people.age", of="visits"),
    cp.sum("seconds", by="people.state", of="visits"),
    cp.mean("seconds", "pages.section = 'sport'", of="visits"),
    cp.histogram("people.state", of="visits"),
    cp.sum("seconds", by=["page", "people.state"], keys=[("/a", "CA"), ("/b", "NY")], of="visits"),
    cp.variance("seconds", by=["people.state", "pages.section"], of="visits"),
    cp.histogram("pages.section", where="people.age >= 17", of="visits"),
    cp.histogram("people.age", edges=[0, 18, 65, 120], of="visits"),
    cp.ranks("people.age", [17, 65], of="visits"),
    cp.quantile("people.age", 0.5, [0, 17, 65, 90], of="visits"),
    cp.count("age >= 65", of="people"),
]


def found(sources, request, pin=None):
    return reveal(sources.resolve(sources.pin() if pin is None else pin, sources.prepare(request)))


def kept(visits, per_unit=2):
    """The visits that count: the first of each person."""
    seen = dict.fromkeys(NAMES, 0)
    for person, page, seconds in visits:
        seen[person] += 1
        if seen[person] <= per_unit:
            yield person, page, seconds


@settings(max_examples=40, deadline=None)
@given(people_rows, visit_rows)
def test_rows_see_their_own_units_attributes_and_the_public_lookup(people, visits):
    log = stream()
    with closing(people_of(people)) as table:
        both = cp.Sources(people=table, visits=log, pages=pages(), unit="person")
        log.extend([item(row) for row in visits])
        rows = [(*people.get(person, (None, None)), PAGES.get(page), page, s) for person, page, s in kept(visits)]
        want = [
            len(rows),
            sum(age is not None and age >= 65 for age, *_ in rows),
            sum(age is None or (state == "CA" and page == "/a") for age, state, _, page, _ in rows),
            len({person for person, *_ in kept(visits) if people.get(person, (0, ""))[1] == "NY"}),
            sum(section == "news" and age is not None and age < 65 for age, _, section, *_ in rows),
            sum(s // 5 for age, *_, s in rows if age is not None and age >= 65),
            sum(age or 0 for age, *_ in rows),
        ]
        assert [found(both, request) for request in REQUESTS[:7]] == want
        assert found(both, REQUESTS[9]) == tuple(sum(row[1] == state for row in rows) for state in ("CA", "NY"))
        assert found(both, REQUESTS[10]) == tuple(
            sum(s // 5 for _, *key, s in ((row[0], row[3], row[1], row[4]) for row in rows) if tuple(key) == cell)
            for cell in (("/a", "CA"), ("/b", "NY"))
        )
        assert found(both, REQUESTS[-1]) == sum(age >= 65 for age, _ in people.values())


def neighbour(people, visits, declared, arriving, data):
    """All that ann has is gone, or another's where that is declared; the data of the others stay."""
    gone = "replace" not in declared or data.draw(st.booleans(), label="gone")
    others = {name: it for name, it in people.items() if name != "ann"}
    if not gone and "ann" in people and declared[0] == "replace":
        others["ann"] = data.draw(st.tuples(st.sampled_from([0, 17, 65, 90]), st.sampled_from(["CA", "NY"])))
    instead = [("ann", *rest) for _, *rest in data.draw(visit_rows, label="instead")]
    stays, rows = not gone and declared[1] == "replace", []
    for row in visits:
        if row[0] != "ann":
            rows.append(row)
        elif stays:
            rows.append(instead.pop() if instead else row)
        elif arriving:
            rows.append(None)  # the place of an item is public
    return others, rows


def sources_of(stack, people, visits, declared, arriving):
    table = stack.enter_context(closing(people_of(people, declared[0])))
    if not arriving:
        orders = stack.enter_context(closing(orders_of(visits, declared[1])))
        return cp.Sources(people=table, visits=orders, pages=pages(), unit="person")
    log = stream(declared[1])
    log.extend([None if row is None else item(row) for row in visits])
    return cp.Sources(people=table, visits=log, pages=pages(), unit="person")


def asked(source, facts, pin):
    secret = source.resolve(source.pin() if pin is None else pin, facts)
    return Ask(None, secret, facts.sensitivity, facts.squared, each=facts.each, one_way=facts.one_way)


worlds = st.sampled_from([("add-or-remove", "add-or-remove"), ("add-or-remove", "replace"), ("replace", "replace")])


@settings(max_examples=10, deadline=None)
@given(people_rows, visit_rows, worlds, st.booleans(), st.data())
def test_between_neighbours_every_request_moves_by_at_most_its_sensitivity(people, visits, declared, arriving, data):
    other = neighbour(people, visits, declared, arriving, data)
    with ExitStack() as stack:
        one, two = (sources_of(stack, *world, declared, arriving) for world in ((people, visits), other))
        assert one.relation == two.relation and (one.pin() == two.pin() or not arriving)
        prepared = [one.prepare(request) for request in REQUESTS]
        assert prepared == [two.prepare(request) for request in REQUESTS]
        for pin in range(len(visits) + 1) if arriving else [None]:
            pairs = [(asked(one, facts, pin), asked(two, facts, pin)) for facts in prepared]
            assert all(gap(*pair) is not None for pair in pairs)
            assert one.relation.valid(pairs), "what moves one way does so together"


@pytest.mark.long
@settings(max_examples=500, deadline=None)
@given(people_rows, visit_rows, worlds, st.booleans(), st.data())
def test_so_it_does_between_hundreds_of_neighbours(people, visits, declared, arriving, data):
    test_between_neighbours_every_request_moves_by_at_most_its_sensitivity.hypothesis.inner_test(
        people, visits, declared, arriving, data
    )


@pytest.mark.parametrize(
    ("request_", "far"),
    [
        (cp.count("people.age >= 65", of="visits"), 2),
        (cp.sum("people.age", of="visits"), 240),
        (cp.histogram("people.state", of="visits"), 2),
        (cp.count("pages.section = 'news'", of="visits"), 2),
        (cp.count(of="people"), 1),
    ],
)
def test_a_sensitivity_is_that_of_the_source_asked_and_is_reached(request_, far):
    values = []
    for there in (True, False):
        with closing(people_of({"ann": (120, "CA")} if there else {})) as table:
            visits = [("ann", "/a", 5)] * 2 if there else []
            with closing(orders_of(visits)) as orders:
                both = cp.Sources(people=table, visits=orders, pages=pages(), unit="person")
                assert both.prepare(request_).sensitivity == far and both.prepare(request_).one_way
                value = found(both, request_)
                values.append(sum(value) if isinstance(value, tuple) else value)
    assert values[0] - values[1] == far


def built(there, pages_=None):
    people = people_of({"ann": (120, "CA"), "bob": (20, "NY")} if there else {"bob": (20, "NY")})
    rows = [("ann", "/a", 5)] * 2 if there else []
    orders = orders_of([*rows, ("bob", "/b", 5)])
    return cp.Sources(people=people, visits=orders, pages=pages_ or pages(), unit="person"), people, orders


ASKED = [
    cp.count("people.age >= 65", of="visits"),
    cp.count(of="people"),
    cp.count("pages.section = 'news'", of="visits"),
]


@pytest.mark.parametrize("mechanism", [cp.Laplace(1, asks=2), cp.SparseVector(1, threshold=1, sensitivity=2)])
def test_two_sources_lose_what_is_claimed_against_every_adversary(mechanism):
    (one, *first), (two, *second) = built(True), built(False)
    loss = distinguisher(mechanism, one, two, ASKED, rounds=2)
    assert loss.judge(mechanism.claim.loss, allowance=1e-9) == cp.verify.Verdict.HOLDS
    assert loss.epsilon_at(1e-9) > 0.25, "and a good part of it is reached"
    for table in (*first, *second):
        table.close()


def test_a_join_that_multiplies_rows_is_refuted():
    """A lookup whose key is not unique, had it been let in."""
    twice = pages()
    twice.rows = [row for row in twice.rows for _ in range(3)]
    (one, *first), (two, *second) = built(True, twice), built(False, twice)
    loss = distinguisher(cp.Laplace(1), one, two, ASKED, rounds=1)
    assert loss.judge(cp.PureDP(1), allowance=1e-9) == cp.verify.Verdict.REFUTED
    for table in (*first, *second):
        table.close()


def test_where_attributes_may_be_replaced_while_rows_stay_a_row_counts_as_replaced():
    with closing(people_of({}, "replace")) as people, closing(orders_of([])) as orders:
        both = cp.Sources(people=people, visits=orders, unit="person")
        assert both.prepare(cp.histogram("people.state", of="visits")).sensitivity == 4
        assert both.prepare(cp.histogram("page", keys=["/a"], of="visits")).sensitivity == 2


def members(per_unit=1):
    columns = {"age": AGES, "state": STATES}
    return cp.LiveTable(unit="person", rows_per_unit=per_unit, key="row", columns=columns, updates_per_unit=4)


changes = st.lists(
    st.one_of(
        st.tuples(
            st.just("put"), st.sampled_from(NAMES), st.sampled_from([0, 17, 65, 90]), st.sampled_from(["CA", "NY"])
        ),
        st.tuples(st.just("remove"), st.sampled_from(NAMES)),
        st.tuples(st.just("visit"), st.sampled_from(NAMES), st.sampled_from(["/a", "/b"]), st.sampled_from([0, 35])),
    ),
    max_size=12,
)


def moved(people, visits, change, gone):
    """One thing that happens; of one who is not there, nothing in the same place."""
    what, name, *values = change
    if what == "put":
        people.put(None if name == gone else {"person": name, "row": 1, "age": values[0], "state": values[1]})
    elif what == "remove":
        people.remove([None]) if name == gone else people.remove(person=name, row=1)
    else:
        visits.append(None if name == gone else item((name, *values)))


@settings(max_examples=25, deadline=None)
@given(changes)
def test_rows_see_their_own_units_attributes_as_they_are_at_the_pin(happening):
    people, visits = members(), stream(per_unit=3)
    both = cp.Sources(people=people, visits=visits, unit="person")
    present, seen, updates, want = {}, [], dict.fromkeys(NAMES, 0), [0]
    for change in happening:
        moved(people, visits, change, None)
        what, name, *values = change
        if what == "visit":
            seen.append((name, *values))
        else:
            updates[name] += 1
            if updates[name] <= 4:
                present.pop(name, None)
                if what == "put":
                    present[name] = values
        want.append(sum(name in present and present[name][0] >= 65 for name, *_ in kept(seen, 3)))
    asked_for = cp.count("people.age >= 65", of="visits")
    assert [found(both, asked_for, pin) for pin in range(len(happening) + 1)] == want
    assert [found(both, asked_for, pin) for pin in reversed(range(len(happening) + 1))] == want[::-1]


@settings(max_examples=15, deadline=None)
@given(changes)
def test_between_neighbours_that_change_every_request_moves_by_at_most_its_sensitivity_at_every_moment(happening):
    worlds = []
    for gone in (None, "ann"):
        people, visits = members(), stream("add-or-remove")
        worlds.append(cp.Sources(people=people, visits=visits, pages=pages(), unit="person"))
        for change in happening:
            moved(people, visits, change, gone)
    one, two = worlds
    prepared = [one.prepare(request) for request in REQUESTS]
    assert prepared == [two.prepare(request) for request in REQUESTS] and one.pin() == two.pin()
    for pin in range(len(happening) + 1):
        pairs = [(asked(one, facts, pin), asked(two, facts, pin)) for facts in prepared]
        assert all(gap(*pair) is not None for pair in pairs)
        assert OneWay(Steps(updates=0)).valid(pairs), "what moves one way does so together"


def test_a_live_table_among_sources_is_asked_followed_and_seen():
    people, visits = members(), stream()
    with closing(orders_of([("ann", "/a", 5), ("bob", "/a", 5)])) as orders:
        both = cp.Sources(people=people, visits=visits, orders=orders, unit="person")
        session = cp.Session(both, within=cp.PureDP(10**8))
        noisy = session.launch(cp.Laplace(epsilon=10**6, asks=20))
        old = session.launch(cp.Counter(epsilon=10**6, horizon=64), of=cp.count("age >= 65", of="people"))
        people.put([{"person": "ann", "row": 1, "age": 70, "state": "CA"}, {"person": 5, "row": 1, "age": 80}])
        assert old.ask() == 2 and noisy.ask(cp.count("people.age >= 65", of="orders")) == 1
        people.put({"person": "ann", "row": 1, "age": 30, "state": "CA"})
        assert old.ask() == 1 and noisy.ask(cp.count("people.age >= 65", of="orders")) == 0
        visits.append(item(("ann", "/a", 5)))
        assert noisy.ask(cp.histogram("people.state", of="visits")) == (1, 0)
        with pytest.raises(InvalidRequest, match="say of which source"):
            session.launch(cp.Counter(epsilon=1))


def test_one_pin_says_how_much_of_each_stream_has_arrived():
    first, second = stream(), cp.Stream(bound=9, unit="person", per_unit=3)
    both = cp.Sources(visits=first, calls=second, unit="person")
    first.extend([item(("ann", "/a", 5)), item(("bob", "/a", 5))])
    second.extend([4, 5], units=["ann", "eve"])
    first.append(item(("eve", "/b", 5)))
    assert both.pin() == 5
    assert [found(both, cp.count(of="visits"), pin) for pin in range(6)] == [0, 1, 2, 2, 2, 3]
    assert [found(both, cp.total("calls"), pin) for pin in range(6)] == [0, 0, 0, 4, 9, 9]
    assert found(both, cp.total("visits.seconds")) == 3
    assert both.relation == Steps(updates=5, bound=16), "16 steps of 5 seconds, and 9"


def test_a_mechanism_follows_one_stream_and_asks_about_all():
    first, second = stream(), stream()
    with closing(people_of({"ann": (70, "CA")})) as people:
        both = cp.Sources(people=people, visits=first, calls=second, unit="person")
        session = cp.Session(both, within=cp.PureDP(10**7))
        running = session.launch(cp.Counter(epsilon=10**5, horizon=64), of="visits")
        seconds = session.launch(cp.Counter(epsilon=10**5, horizon=64), of="calls.seconds")
        only = session.launch(cp.Counter(epsilon=10**5, horizon=64), of=cp.count("page = '/b'", of="visits"))
        noisy = session.launch(cp.Laplace(epsilon=10**5, asks=9))
        first.extend([item(("ann", "/a", 5)), item(("bob", "/b", 5))])
        second.extend([item(("ann", "/a", 35))])
        assert (running.ask(), seconds.ask(), only.ask()) == (2, 35, 1)
        assert noisy.ask(cp.count("people.age >= 65", of="visits")) == 1
        assert noisy.ask(cp.count(of="people")) == 1
        inner = session.delegate(cp.PureDP(10**5))
        assert inner.launch(cp.Laplace(epsilon=10**4)).ask(cp.count(of="calls")) == 1


def test_tables_alone_move_one_way_together():
    with closing(people_of({})) as people, closing(orders_of([])) as orders:
        both = cp.Sources(people=people, orders=orders, unit="person")
        assert both.relation == OneWay(Steps(updates=0)) and isinstance(both.pin(), str)
        session = cp.Session(both, within=cp.PureDP(1))
        with pytest.raises(InvalidRequest, match="say of which source"):
            session.launch(cp.Counter(epsilon=1))
        with pytest.raises(InvalidRequest, match="a table, which does not change"):
            session.launch(cp.Counter(epsilon=1), of="people")
        assert session.loss == cp.PureDP(0)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_sources_that_were_opened_again_know_everything_that_arrived(kind, tmp_path):
    place, opened = Place(kind, tmp_path), []

    def fresh():
        first, second = stream(), cp.Stream(bound=9, unit="person", per_unit=3)
        opened.append(people_of({"ann": (70, "CA")}))
        return cp.Sources(people=opened[-1], visits=first, calls=second, unit="person"), first, second

    both, visits, calls = fresh()
    visits.append(item(("ann", "/a", 5)), id="before")
    with place.session(cp.PureDP(10**7), source=both) as s:
        s.launch(cp.Laplace(epsilon=10**5, asks=9))
        s.launch(cp.Counter(epsilon=10**5, horizon=64), of="calls")
        s.launch(cp.Counter(epsilon=10**5, horizon=64), of=cp.sum("seconds", "page = '/b'", of="visits"))
        calls.extend([4, None, 9], units=["ann", "bob", "eve"], id="monday")
        calls.extend([4, None, 9], units=["ann", "bob", "eve"], id="monday")
        visits.extend([item(("ann", "/b", 5)), None, item(("ann", "/c", 5))], id="monday")
    again, visits, calls = fresh()
    with place.reopened(source=again) as s:
        assert again.pin() == 7 and visits.pin() == 4 and calls.pin() == 3
        calls.extend([4, None, 9], units=["ann", "bob", "eve"], id="monday")
        visits.append(item(("ann", "/a", 5)), id="before")
        with pytest.raises(RequestConflict, match="other items"):
            calls.extend([5], units=["ann"], id="monday")
        calls.append(1, unit="ann")
        assert again.pin() == 8
        noisy, counter = s.at((0,)), s.at((1,))
        assert noisy.ask(cp.count("people.age >= 65", of="visits")) == 2, "the third item of ann does not count"
        assert noisy.ask(cp.total("calls")) == 14 and counter.ask() == 14
        assert s.at((2,)).ask() == 5, "what it follows is on record"
    for table in opened:
        table.close()


def test_a_stream_among_sources_is_fed_like_any_other():
    visits, calls = stream(), stream()
    both = cp.Sources(visits=visits, calls=calls, unit="person")
    for log in (visits, calls):
        rows = [item((name, "/a", 5)) for name in NAMES]
        log.feed(iter(rows[:3]), name="the same")
        log.feed(iter(rows), name="the same")
    assert (visits.pin(), calls.pin(), both.pin()) == (4, 4, 8), "each resumed at its own position"


def test_a_stream_among_sources_belongs_to_them():
    visits = stream()
    cp.Sources(visits=visits, unit="person")
    with pytest.raises(DataInUse):
        cp.Sources(visits=visits, unit="person")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda people: cp.Sources(unit="person"), "give the sources by name"),
        (lambda people: cp.Sources(pages=pages(), unit="person"), "give the sources by name"),
        (lambda people: cp.Sources(people=people, unit="who"), "calls its unit 'person'"),
        (lambda people: cp.Sources(people=people, clicks=cp.Stream(), unit="person"), "clicks has no unit"),
        (lambda people: cp.Sources(people=[1, 2], unit="person"), "a Stream or a Lookup, not a list"),
        (
            lambda people: cp.Sources(
                members=cp.LiveTable("person", 1, key="row", columns={"age": AGES}, protects="event"), unit="person"
            ),
            "members protects single updates",
        ),
        (
            lambda people: cp.Lookup(
                pd.DataFrame({"page": ["/a", "/a"], "n": [1, 2]}), key="page", columns={"page": cp.text()}
            ),
            "'page' has a value in several rows",
        ),
        (
            lambda people: cp.Sources(
                people=people,
                states=cp.Lookup(pd.DataFrame({"state": [1]}), key="state", columns={"state": cp.number(0, 9)}),
                unit="person",
            ),
            "declare both alike",
        ),
    ],
)
def test_sources_that_do_not_fit_together_are_refused(make, message):
    with closing(people_of({})) as people, pytest.raises(InvalidParameter, match=message):
        make(people)


FLIGHTS = {
    "person": ["ann", "ann", "bob", "bob", "eve", "eve", "eve"],
    "airport": ["JFK", "JFK", "LGA", "JFK", None, "LGA", "EWR"],
    "hour": [0, 5, 0, None, 3, 9, 0],
}
HOURS = cp.number(0, 23)


def flights(weather):
    """A table whose rows see the weather."""
    columns = {"airport": cp.text(), "hour": HOURS}
    table = cp.Table(pd.DataFrame(FLIGHTS).astype({"hour": "Int64"}), unit="person", rows_per_unit=3, columns=columns)
    return cp.Sources(flights=table, weather=weather, unit="person")


def winds(source):
    """How many rows see each wind, and what is missing."""
    with cp.Session(source, within=cp.PureDP(10**9)) as session:
        asked = session.launch(cp.Laplace(10**8, asks=2))
        seen = asked.ask(cp.count(by=["weather.wind"], keys=range(10), of="flights"))
        missing = asked.ask(cp.count(where="weather.wind IS NULL", of="flights"))
        return {wind: n for wind, n in enumerate(seen) if n}, missing


def by_hour():
    frame = pd.DataFrame({"airport": ["JFK", "JFK", "LGA"], "hour": [0, 5, 0], "wind": [3, 4, 5]})
    return cp.Lookup(
        frame, key=["airport", "hour"], columns={"airport": cp.text(), "hour": HOURS, "wind": cp.number(0, 9)}
    )


def by_range(since=(0, 5, 0), until=(5, 23, 9)):
    frame = pd.DataFrame({"airport": ["JFK", "JFK", "LGA"], "since": since, "until": until, "wind": [3, 4, 5]})
    columns = {"airport": cp.text(), "since": HOURS, "until": HOURS, "wind": cp.number(0, 9)}
    return cp.Lookup(frame, key="airport", columns=columns, ranges={"hour": ("since", "until")})


@pytest.mark.parametrize("broken", [False, True], ids=["the engine", "the second path"])
@pytest.mark.parametrize(("weather", "seen"), [(by_hour, {3: 1, 4: 1, 5: 1}), (by_range, {3: 1, 4: 1, 5: 1})])
def test_a_lookup_is_found_by_several_keys_or_by_ranges_and_what_finds_none_is_missing(
    weather, seen, broken, monkeypatch
):
    source = flights(weather())
    if broken:
        monkeypatch.setattr(EmbeddedEngine, "run", refuse)
    assert winds(source) == (seen, 4)


def refuse(*_):
    raise DataFailed("planted")


def test_ranges_alone_find_a_row_of_a_lookup():
    frame = pd.DataFrame({"since": [0, 4], "until": [1, 10], "wind": [1, 2]})
    columns = {"since": HOURS, "until": HOURS, "wind": cp.number(0, 9)}
    assert winds(flights(cp.Lookup(frame, columns=columns, ranges={"hour": ("since", "until")}))) == ({1: 3, 2: 2}, 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: by_range(until=(6, 23, 9)), "must not overlap, and some do for one 'airport'"),
        (lambda: by_range(since=(0, 5, 9)), "must end after it begins"),
        (lambda: cp.Lookup(pd.DataFrame(FLIGHTS)), "found by its key"),
        (lambda: cp.Lookup(pd.DataFrame(FLIGHTS), key="hour", ranges={"x": ("hour", "person")}), "counts once"),
        (
            lambda: cp.Lookup(pd.DataFrame(FLIGHTS), ranges={"x": "hour"}),
            "names one column of the rows and the two ends",
        ),
        (
            lambda: cp.Lookup(pd.DataFrame({"a": ["x"], "b": ["y"]}), ranges={"hour": ("a", "b")}),
            "two columns of numbers, dates or times",
        ),
    ],
)
def test_lookups_of_which_a_row_could_find_several_are_refused(make, message):
    with pytest.raises(InvalidParameter, match=message):
        make()


def test_sql_joins_a_lookup_by_all_of_its_keys_or_by_its_range():
    joined = "SELECT COUNT(*) AS n FROM flights AS f LEFT JOIN weather AS w"
    text = "{} {} WHERE w.wind = 3"
    with cp.Session(flights(by_hour()), within=cp.PureDP(10**9)) as session:
        for on in ("USING (airport, hour)", "ON w.hour = f.hour AND f.airport = w.airport"):
            assert session.sql(text.format(joined, on), epsilon=10**8)["n"] == 1
        with pytest.raises(InvalidRequest, match=r"Rows see LEFT JOIN weather USING \(airport, hour\)"):
            session.sql(text.format(joined, "USING (airport)"), epsilon=1)
    with cp.Session(flights(by_range()), within=cp.PureDP(10**9)) as session:
        on = "ON f.airport = w.airport AND w.since <= f.hour AND f.hour < w.until"
        assert session.sql(text.format(joined, on), epsilon=10**8)["n"] == 1
        for wrong in (on.replace("<=", "<"), "USING (airport, hour)", on.replace(" AND f.hour < w.until", "")):
            with pytest.raises(InvalidRequest, match=r"weather\.since AND flights\.hour < weather\.until"):
                session.sql(text.format(joined, wrong), epsilon=1)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (cp.count(), "say which source this is about, as in count\\(of='people'\\); there are: people, visits"),
        (cp.count(of="calls"), "there is no source 'calls'"),
        (cp.count("visits.page = '/a'", of="people"), "there is no column 'visits.page'"),
        (cp.count("people.height > 3", of="visits"), "there is no column 'people.height'"),
        (cp.count("a.b.c = 3", of="visits"), "an expression does not support"),
        (cp.keys("people.state", of="visits"), "the keys of people.state are declared"),
        ("how many?", "these sources answer requests such as"),
    ],
)
def test_requests_that_no_source_answers_are_refused(request_, message):
    with closing(people_of({})) as people:
        both = cp.Sources(people=people, visits=stream(), unit="person")
        with pytest.raises(InvalidRequest, match=message):
            both.prepare(request_)
        with pytest.raises(InvalidRequest, match="cannot be partitioned"):
            cp.Session(both, within=cp.PureDP(1)).partition("page", within=cp.PureDP(1))


def test_rows_see_no_source_that_may_have_several_rows_of_their_unit():
    with closing(people_of({})) as people, closing(orders_of([])) as orders:
        both = cp.Sources(people=people, orders=orders, unit="person")
        with pytest.raises(InvalidRequest, match=r"there is no column 'orders\.page'"):
            both.prepare(cp.count("orders.page = '/a'", of="people"))


def test_a_request_about_one_of_several_is_refused_by_a_session_with_one_source():
    with closing(people_of({})) as people, pytest.raises(InvalidRequest, match="leave out of='people'"):
        people.prepare(cp.count(of="people"))


def test_units_of_different_types_are_not_matched():
    numbered = pd.DataFrame({"person": [1, 2], "page": ["/a", "/b"]})
    with (
        closing(people_of({})) as people,
        closing(cp.Table(numbered, unit="person", rows_per_unit=1)) as orders,
        pytest.raises(InvalidParameter, match="declare one unit_type"),
    ):
        cp.Sources(people=people, orders=orders, unit="person")


def test_what_sources_say_about_themselves():
    with closing(people_of({})) as people:
        both = cp.Sources(people=people, visits=stream(), pages=pages(), unit="person")
    assert repr(both) == "Sources(people, visits, pages; unit='person')"
    assert both.describe().startswith("Protected is everything about one person in people and visits, taken together")
    assert "pages: public, found by page" in both.describe()


def test_sources_whose_names_differ_in_case_alone_keep_their_own_attributes():
    young, old = (dict.fromkeys(NAMES, (age, "CA")) for age in (17, 90))
    visits = stream()
    both = cp.Sources(people=people_of(young), People=people_of(old), visits=visits, unit="person")
    visits.extend([item(("ann", "/a", 0)), item(("bob", "/a", 0))])
    asked = ("people.age", "People.age", "people.age")
    found = [both.resolve(both.pin(), both.prepare(cp.sum(column, of="visits"))) for column in asked]
    assert list(map(reveal, found)) == [34, 180, 34]
    together = both.prepare(cp.count("people.age = 17 AND People.age = 90", of="visits"))
    assert reveal(both.resolve(both.pin(), together)) == 2


@pytest.mark.parametrize("name", ["a b", "a.b", "a;b", "", "x" * 51])
def test_a_source_is_named_by_a_word(name):
    with pytest.raises(InvalidParameter, match="named by a word"):
        cp.Sources(**{name: stream()}, unit="person")


def test_a_column_does_not_take_the_name_of_anothers():
    visits = cp.Stream(fields={"people.age": AGES}, unit="person", per_unit=2)
    with pytest.raises(InvalidParameter, match=r"has a column 'people\.age'"):
        cp.Sources(people=people_of({}), visits=visits, unit="person")


def test_sources_are_found_again_in_whatever_order_they_are_given(tmp_path):
    place = Place("sqlite", tmp_path)

    def made(*names):
        visits, calls = stream(), stream()
        given = {"visits": visits, "calls": calls}
        return visits, calls, cp.Sources(**{name: given[name] for name in names}, unit="person")

    visits, calls, both = made("visits", "calls")
    with place.session(cp.PureDP(1), source=both):
        visits.extend([item(("ann", "/a", 0)), item(("bob", "/a", 0))])
        calls.append(item(("eve", "/b", 35)))
    visits, calls, both = made("calls", "visits")
    with place.session(cp.PureDP(1), source=both):
        assert (visits.pin(), calls.pin()) == (2, 1)


def test_a_stream_is_not_read_before_an_append_has_arrived_as_a_whole():
    class Paused(list):
        """Lets another thread read each time that something is put."""

        def append(self, value):
            reader = Thread(target=lambda: lengths.append(visits.pin()))
            reader.start()
            readers.append(reader)
            reader.join(0.1)
            super().append(value)

    visits, lengths, readers = stream(), [], []
    both = cp.Sources(visits=visits, unit="person")
    both.log.items = Paused()
    visits.append(item(("ann", "/a", 0)))
    for reader in readers:
        reader.join()
    assert lengths == [1]


def test_a_followed_request_reads_the_columns_of_its_own_source():
    both = cp.Sources(people=people_of({}), visits=stream(), unit="person")
    with pytest.raises(InvalidRequest, match="follows visits reads its own columns"):
        cp.Session(both, cp.PureDP(1)).launch(cp.Counter(epsilon=1), of=cp.count("people.age > 3", of="visits"))


def test_of_a_live_table_among_sources_a_request_is_followed():
    members = cp.LiveTable("person", 1, key="row", columns={"age": AGES}, updates_per_unit=3)
    session = cp.Session(cp.Sources(members=members, unit="person"), cp.PureDP(1))
    with pytest.raises(InvalidRequest, match=r"of=cp\.count\(of='members'\)"):
        session.launch(cp.Counter(epsilon=1), of="members")
