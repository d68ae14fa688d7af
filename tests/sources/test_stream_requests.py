"""Every request of a table, on what has arrived in a stream of records: the same answers, pinned, within bounds."""

from contextlib import closing

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ledger.places import Place

import counterpoint as cp
from counterpoint.errors import InvalidRequest
from counterpoint.privacy.messages import Ask
from counterpoint.privacy.relations import every_step
from counterpoint.privacy.secret import counted, reveal
from counterpoint.queries import aggregates as requests
from counterpoint.queries import quantiles as choices
from counterpoint.queries import variance as variances
from counterpoint.sources.streams.stream import Stream

PAGES = ["home", "shop", "help"]
FIELDS = {
    "page": cp.category(PAGES),
    "seconds": cp.number(-20, 60, step=5),
    "note": cp.text(),
    "vip": cp.boolean(),
    "day": cp.date("2024-01-01", "2024-01-10"),
}
REQUESTS = [
    requests.count(),
    requests.count("page = 'home' AND (seconds >= 10 OR vip)"),
    requests.count("NOT (note LIKE 'a%') OR day IS NULL"),
    requests.count_distinct(),
    requests.count_distinct("page = 'shop'"),
    requests.sum("seconds"),
    requests.sum("seconds", by="page"),
    requests.mean("seconds", "vip"),
    requests.histogram("page"),
    requests.sum("seconds", by=["page", "vip"]),
    requests.mean("seconds", by=["page", "vip"]),
    variances.variance("seconds", by="page"),
    requests.histogram("seconds", edges=[-20, 0, 30, 60]),
    requests.histogram("day", edges=["2024-01-01", "2024-01-05", "2024-01-10"]),
    requests.ranks("seconds", [0, 20, 40]),
    choices.quantile("seconds", 0.5, [-20, 0, 20, 40, 60]),
]
records = st.none() | st.fixed_dictionaries(
    {
        "page": st.sampled_from([*PAGES, "elsewhere", None]),
        "seconds": st.sampled_from([-1000, -20, -3, 0, 12.4, 60, 99, None, float("nan")]),
        "note": st.sampled_from(["a note", "", "b", None]),
        "vip": st.sampled_from([True, False, None]),
        "day": st.sampled_from(["2024-01-01", "2024-01-07", "2030-01-01", "no day", None]),
    }
)
units = st.sampled_from(["ann", "bob", "eve"])


def stream_of(items, owners=None, per_unit=None, neighbours="replace"):
    user = {} if owners is None else {"unit": "who", "per_unit": per_unit}
    stream = Stream(fields=FIELDS, neighbours=neighbours, **user)
    if owners is not None:
        items = [None if item is None else {**item, "who": owner} for item, owner in zip(items, owners, strict=True)]
    stream.extend(items)
    return stream


def found(source, request, pin=None):
    raw = source.resolve(source.pin() if pin is None else pin, source.prepare(request))
    return reveal(raw)


@settings(max_examples=60, deadline=None)
@given(st.lists(records, max_size=12), st.sampled_from(REQUESTS))
def test_a_stream_answers_as_a_table_of_what_has_arrived(items, request):
    stream = stream_of(items)
    present = [item for item in items if item is not None]
    frame = pd.DataFrame(present, columns=list(FIELDS)).astype({"note": object, "page": object})
    frame["vip"] = frame["vip"].astype("boolean")
    frame["day"] = frame["day"].astype("string")
    frame["seconds"] = frame["seconds"].astype(float)
    with closing(cp.Table(frame, unit=cp.each_row, columns=FIELDS, neighbours="replace")) as table:
        assert found(stream, request) == found(table, request)
        facts, same = stream.prepare(request), table.prepare(request)
        assert (facts.sensitivity, facts.squared, facts.each) == (same.sensitivity, same.squared, same.each)
        assert not facts.one_way


neighbouring = given(
    st.lists(st.tuples(records, units), min_size=1, max_size=10),
    st.data(),
    st.sampled_from(["replace", "add-or-remove"]),
    st.booleans(),
)


@settings(max_examples=20, deadline=None)
@neighbouring
def test_between_neighbours_every_request_moves_by_at_most_its_sensitivity_at_every_pin(items, data, neighbours, user):
    """At user level all items of one unit change or are gone, with their owner; at event level one item."""
    gone = neighbours == "add-or-remove" or data.draw(st.booleans(), "whether it is gone")
    if user:
        other = [
            ((None if gone else data.draw(records)), None if gone else who) if who == "ann" else (item, who)
            for item, who in items
        ]
        other = [(item, who if item is not None else None) for item, who in other] if gone else other
    else:
        place = data.draw(st.integers(0, len(items) - 1))
        other = [
            (None if gone else data.draw(records), who) if n == place else (item, who)
            for n, (item, who) in enumerate(items)
        ]
    one, two = (
        stream_of([item for item, _ in world], [who for _, who in world] if user else None, 2, neighbours)
        for world in (items, other)
    )
    for request in REQUESTS:
        facts = one.prepare(request)
        assert facts == two.prepare(request) and one.pin() == two.pin()
        for pin in range(len(items) + 1):
            left, right = (
                Ask(None, source.resolve(pin, facts), facts.sensitivity, facts.squared, each=facts.each)
                for source in (one, two)
            )
            assert every_step().valid([(left, right)]), request


@pytest.mark.long
@settings(max_examples=1000, deadline=None)
@neighbouring
def test_so_it_does_between_a_thousand_neighbours(items, data, neighbours, user):
    test_between_neighbours_every_request_moves_by_at_most_its_sensitivity_at_every_pin.hypothesis.inner_test(
        items, data, neighbours, user
    )


def test_items_of_one_unit_beyond_its_number_change_no_answer():
    stream = stream_of([{"page": "home", "seconds": 10}] * 5, ["ann"] * 3 + ["bob"] * 2, per_unit=2)
    assert found(stream, requests.count()) == 4 and found(stream, requests.count_distinct()) == 2
    assert found(stream, requests.sum("seconds")) == 4 * 2, "in steps of 5"


@pytest.mark.parametrize(
    ("name", "counted", "units"),
    [("\ud800", 1, 1), ("\x00", 1, 1), ("", 3, 2), (2**90, 3, 2), (2**127, 1, 1), (-1, 3, 2), ("1", 2, 1)],
    ids=["half a character", "a zero byte", "empty", "27 digits", "39 digits", "negative", "as the other unit"],
)
def test_whatever_a_unit_is_called_the_stream_answers(name, counted, units):
    """Or the error would tell that the unit is there. What names no unit is left out; "1" and 1 are one unit."""
    stream = Stream(fields={"page": cp.text()}, unit="who", per_unit=2)
    stream.extend([{"who": name, "page": "home"}, {"who": 1, "page": "home"}, {"who": name, "page": "shop"}])
    assert found(stream, requests.count()) == counted and found(stream, requests.count_distinct()) == units


def test_an_answer_is_about_what_had_arrived_when_it_was_pinned():
    stream = stream_of([{"page": "home"}] * 3)
    assert [found(stream, requests.count(), pin) for pin in (3, 1, 0, 2)] == [3, 1, 0, 2]
    stream.extend([{"page": "shop"}, None, {"page": "home"}])
    assert found(stream, requests.count("page = 'home'")) == 4 and found(stream, requests.count(), 3) == 3


def test_each_item_is_stored_for_requests_once(monkeypatch):
    stream = stream_of([{"page": "home"}] * 10)
    sizes = []
    from counterpoint.engines.duckdb import EmbeddedEngine

    insert = EmbeddedEngine.insert
    monkeypatch.setattr(
        EmbeddedEngine,
        "insert",
        lambda self, name, columns: sizes.append(len(columns[0])) or insert(self, name, columns),
    )
    for _ in range(3):
        found(stream, requests.count())
    stream.extend([{"page": "shop"}] * 4)
    found(stream, requests.histogram("page")), found(stream.part("page", "shop"), requests.count())
    assert sizes == [10, 4]


def test_a_part_answers_about_its_own_items():
    stream = stream_of([{"page": "home", "seconds": 10}, {"page": "shop", "seconds": 50}, {"page": "home"}])
    home = stream.part("page", "home")
    assert found(home, requests.count()) == 2 and found(home, requests.histogram("page")) == (2, 0, 0)
    assert found(stream.part("vip", True), requests.count()) == 0


def test_keys_are_selected_from_what_has_arrived():
    stream = Stream(fields={"note": cp.text()}, unit="who", per_unit=2)
    stream.extend(
        [{"who": who, "note": note} for who, note in (("ann", "x"), ("ann", "x"), ("bob", "x"), ("bob", "y"))]
    )
    facts = stream.prepare(choices.keys("note"))
    assert dict(counted(stream.resolve(4, facts)).pairs) == {"x": 2, "y": 1}, "units, not items"
    assert facts.sensitivity == 4 and facts.each == 1


def test_a_session_answers_every_request_and_a_mechanism_that_takes_no_items_reads_none(monkeypatch):
    stream = stream_of([{"page": "home", "seconds": 10}] * 50)
    session = cp.Session(stream, within=cp.PureDP(10**6))
    noisy = session.launch(cp.Laplace(epsilon=10**5, asks=9))
    monkeypatch.setattr(Stream, "items", lambda *_: pytest.fail("items were read"))
    stream.append({"page": "shop"})
    assert (noisy.ask(cp.count()), noisy.ask(cp.count(where="page = 'shop'"))) == (51, 1)
    assert abs(float(noisy.ask(cp.mean("seconds"))) - 10) < 0.1


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_stream_that_was_opened_again_answers_what_it_did(kind, tmp_path):
    place = Place(kind, tmp_path)

    def fresh():
        return Stream(fields=FIELDS, unit="who", per_unit=2)

    first = fresh()
    with place.session(cp.PureDP(10**6), source=first) as s:
        first.extend([{"who": "ann", "page": "home", "seconds": n} for n in (5, 10, 15)])
        s.launch(cp.Laplace(epsilon=10**5, asks=9))
    again = fresh()
    with place.reopened(source=again) as s:
        again.append({"who": "bob", "page": "shop", "seconds": 60})
        noisy = s.at((0,))
        assert [noisy.ask(cp.count()), noisy.ask(cp.count_distinct()), noisy.ask(cp.sum("seconds"))] == [3, 2, 75]


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        (requests.count("nothing = 3"), "no column"),
        (requests.sum("note"), "only a number"),
        ("how many?", "requests of a table"),
    ],
)
def test_what_a_stream_cannot_answer_is_refused_by_public_facts(asked, match):
    with pytest.raises(InvalidRequest, match=match):
        stream_of([]).prepare(asked)


def test_a_stream_of_numbers_has_no_columns_to_ask_about():
    with pytest.raises(InvalidRequest, match="fields="):
        Stream(bound=3).prepare(requests.count())


def test_no_request_on_a_stream_claims_that_neighbours_move_one_way():
    """The relation of a stream does not say so; a table's does, where a unit is added or removed."""
    stream = stream_of([], neighbours="add-or-remove")
    assert not stream.prepare(requests.count()).one_way
    with pytest.raises(cp.errors.RelationMismatch):
        cp.Session(stream, within=cp.PureDP(1)).launch(cp.SparseVector(epsilon=1, threshold=5, monotone=True))
