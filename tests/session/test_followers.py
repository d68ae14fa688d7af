"""Mechanisms that follow a request on a stream of records: they count what the request counts, from their launch on."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ledger.crashes import Killer, in_child
from tests.ledger.places import Place

import counterpoint as cp
from counterpoint.encoding import encode
from counterpoint.ledger.commands import Fit, LaunchCommand
from counterpoint.ledger.sealed_rows import PublicRow
from counterpoint.privacy.relations import Steps

PAGES = ["home", "shop", "help"]
FIELDS = {"page": cp.category(PAGES), "seconds": cp.number(-10, 60, step=5), "note": cp.text()}
SURE = cp.PureDP(10**8)
"""So much that noise is 0 for all practical purposes, and what is counted can be seen."""


def visits(**options):
    return cp.Stream(fields=FIELDS, **options)


def test_a_counter_follows_a_count_a_sum_and_a_condition():
    stream = visits()
    session = cp.Session(stream, within=SURE)
    stream.append({"page": "home", "seconds": 60})
    home = session.launch(cp.Counter(10**5), of=cp.count(where="page = 'home' AND seconds >= 10"))
    spent = session.launch(cp.Counter(10**5), of=cp.sum("seconds", where="page = 'home'"))
    stream.extend([{"page": "home", "seconds": 20}, {"page": "shop", "seconds": 60}, {"page": "home"}, None])
    assert (home.ask(), spent.ask()) == (1, 20), "from the launch on"
    stream.append({"page": "home", "seconds": 15})
    assert (home.ask(), spent.ask()) == (2, 35)
    assert home.mechanism.bound == 1 and spent.mechanism.bound == (60 + 10) / 5, "in steps of 5, in replacement"


def test_vector_counters_and_monotone_histograms_follow_a_group_by():
    stream = visits(unit="who", per_unit=3)
    session = cp.Session(stream, within=SURE)
    pages = session.launch(cp.Counter(epsilon=10**6, width=3), of=cp.histogram("page", where="seconds > 0"))
    sums = session.launch(cp.Counter(epsilon=10**7, width=2), of=cp.sum("seconds", by="page", keys=["home", "help"]))
    ranks = session.launch(cp.Counter(epsilon=10**6, width=2), of=cp.ranks("seconds", [0, 20]))
    busiest = session.launch(
        cp.MonotoneHistogram(epsilon=10**6, query=cp.continual.max_of), of=cp.histogram("page", where="note LIKE 'a%'")
    )
    stream.extend(
        [{"who": n, "page": "home", "seconds": 5, "note": "a note"} for n in range(50)]
        + [{"who": n, "page": "shop", "seconds": 30, "note": "b"} for n in range(50)]
        + [{"who": 0, "page": "help", "seconds": 60, "note": "a"} for n in range(9)]
    )
    assert pages.ask() == (50, 50, 1) and sums.ask() == (250, 60), "the third item of a unit is its last that counts"
    assert ranks.ask() == (0, 50)
    assert abs(busiest.ask() - 50) <= 3
    assert (pages.mechanism.bound, pages.mechanism.squared, pages.mechanism.per_unit) == (2, 2, 3)
    assert session.launch(cp.Counter(1), of=cp.histogram("page")).mechanism.width == 3
    with pytest.raises(
        cp.errors.InvalidRequest, match="counts vectors of 2 numbers, and items of this source are vectors of 3"
    ):
        session.launch(cp.Counter(1, width=2), of=cp.histogram("page"))


def test_the_sensitivity_is_the_requests_and_a_smaller_bound_does_not_fit():
    session = cp.Session(visits(neighbours="add-or-remove"), within=SURE)
    assert session.launch(cp.Counter(1), of=cp.sum("seconds")).mechanism.claim.relation == Steps(updates=1, bound=12)
    with pytest.raises(cp.errors.RelationMismatch, match="bound=12"):
        session.launch(cp.Counter(1, bound=5), of=cp.sum("seconds"))
    assert session.would_cost(cp.Counter(1), of=cp.count("seconds > 3")).fits


def test_parts_and_delegations_follow_requests():
    stream = visits()
    session = cp.Session(stream, within=SURE)
    parts = session.partition("page", k=2, within=cp.PureDP(10**6))
    home = parts["home"].launch(cp.Counter(10**5), of=cp.count(where="seconds >= 10"))
    inner = session.delegate(cp.PureDP(10**6)).launch(cp.Counter(10**5), of=cp.sum("seconds"))
    stream.extend([{"page": "home", "seconds": 60}, {"page": "shop", "seconds": 40}, {"page": "home"}])
    assert home.ask() == 1 and inner.ask() == 100
    assert session.at(home.path).ask() == 1 and session.at(inner.path).ask() == 100


def test_answers_are_in_the_units_of_the_request():
    stream = cp.Stream(fields={"paid": cp.number(0, 5, step="0.5")})
    paid = cp.Session(stream, within=SURE).launch(cp.Counter(10**5), of=cp.sum("paid", where="paid < 4"))
    stream.extend([{"paid": 2.5}, {"paid": 5}, {"paid": 0.5}])
    assert paid.ask() == Fraction(3)


def test_an_id_that_was_launched_on_one_request_is_a_conflict_on_another():
    session = cp.Session(visits(), within=cp.PureDP(1))
    first = session.launch(cp.Counter("0.1"), of=cp.count("seconds > 3"), id="mine")
    assert session.launch(cp.Counter("0.1"), of=cp.count("seconds > 3"), id="mine").path == first.path
    for other in (cp.count("seconds > 4"), cp.count(), None):
        with pytest.raises(cp.errors.RequestConflict):
            session.launch(cp.Counter("0.1"), of=other, id="mine")
    assert session.loss == cp.PureDP("0.1")


@pytest.mark.parametrize(("of", "written"), [("clicks", '"clicks"'), (("a", "b"), '["a","b"]'), (None, "null")])
def test_names_are_stored_as_they_always_were(of, written):
    launch = LaunchCommand((), None, Fit(cp.Counter(1), Steps(), cp.Counter(1).claim), None, of, 0)
    assert launch.body().decode().endswith(f",null,{written}]")
    assert encode(PublicRow(cp.Counter(1), 0, None, of)).decode().endswith(f'"of":{written},"sees":1}}')


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_follower_is_found_again_and_goes_on_where_it_was(kind, tmp_path):
    place, stream = Place(kind, tmp_path), visits(unit="who", per_unit=2)
    of = cp.histogram("page", where="seconds >= 5")
    with place.session(SURE, source=stream) as s:
        counter = s.launch(cp.Counter(epsilon=10**6, width=3), of=of, id="C")
        home = s.partition("page", k=3, within=cp.PureDP(10**6))["home"].launch(cp.Counter(10**6), of=cp.sum("seconds"))
        stream.extend([{"who": "ann", "page": "home", "seconds": 5}, {"who": "ann", "page": "shop"}])
        assert counter.ask(id="q1") == (1, 0, 0)
        stream.append({"who": "ann", "page": "home", "seconds": 60})
        stream.append({"who": "bob", "page": "home", "seconds": 60})
    again = visits(unit="who", per_unit=2)
    with place.reopened(source=again) as s:
        s._engine.ledger.verify()
        assert s.launch(cp.Counter(epsilon=10**6, width=3), of=of, id="C").path == counter.path
        found = s.at(counter.path)
        assert found.ask(id="q1") == (1, 0, 0), "what was said stays said"
        assert found.ask() == (2, 0, 0) and s.at(home.path).ask() == 65
        again.append({"who": "bob", "page": "help", "seconds": 60})
        assert found.ask() == (2, 0, 1)


@pytest.mark.parametrize("at", range(1, 9))
def test_an_ask_that_a_crash_interrupted_is_finished_with_the_same_answer(at, tmp_path):
    """Whatever was answered before the crash is answered again, and items are read once."""
    place, of = Place("sqlite", tmp_path), cp.count(where="page = 'home'")
    records = [{"page": page} for page in ("home", "shop", "home")]

    def work(say):
        stream = visits()
        s = place.session(cp.PureDP(1), source=stream, reached=lambda point: None)
        counter = s.launch(cp.Counter("0.5"), of=of, id="C")
        stream.extend(records)
        s._engine.ledger._reached = Killer(at)
        for name in ("q1", "q2"):
            say(name, counter.ask(id=name))

    said, _ = in_child(work)
    stream = visits()
    with place.reopened(source=stream) as s:
        counter = s.launch(cp.Counter("0.5"), of=of, id="C")
        first, second = (counter.ask(id=name) for name in ("q1", "q2"))
        assert first == second and said == [f"q{n + 1} {first}" for n in range(len(said))]
        s._engine.ledger.verify()


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(["home", "shop", None, "ask"]), max_size=25),
    st.integers(1, 6),
)
def test_a_window_is_over_the_last_items_of_the_stream_whether_they_satisfy_the_condition_or_not(doings, last):
    stream, items = visits(), []
    session = cp.Session(stream, within=SURE)
    stream.append({"page": "home"})
    recent = session.launch(cp.Counter(10**6, window=last), of=cp.count(where="page = 'home'"))
    wide = session.launch(cp.Counter(epsilon=10**6, window=last), of=cp.histogram("page"))
    for doing in doings:
        if doing == "ask":
            window = items[-last:]
            assert recent.ask() == window.count("home")
            assert wide.ask() == tuple(window.count(page) for page in PAGES)
        else:
            stream.append(None if doing is None else {"page": doing})
            items.append(doing)


def test_a_window_costs_what_its_counter_costs_and_counts_slots_of_the_whole_stream_in_a_part():
    stream = visits()
    session = cp.Session(stream, within=SURE)
    assert session.would_cost(cp.Counter(7, window=5), of=cp.count()).cost == cp.PureDP(7)
    parts = session.partition("page", k=2, within=cp.PureDP(10**6))
    home = parts["home"].launch(cp.Counter(10**6, window=3), of=cp.sum("seconds"))
    stream.extend([{"page": page, "seconds": 5} for page in ("home", "home", "shop", "shop", "home")])
    assert home.ask() == 5, "of the last three items of the stream one is in this part"
    assert session.loss == cp.PureDP(2 * 10**6)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_window_is_found_again_with_what_it_released(kind, tmp_path):
    place, stream, of = Place(kind, tmp_path), visits(), cp.count(where="page = 'home'")
    with place.session(cp.PureDP(1), source=stream) as s:
        recent = s.launch(cp.Counter("0.5", window=4), of=of, id="W")
        stream.extend([{"page": "home"}] * 10)
        first = recent.ask(id="q1")
        stream.append({"page": "home"})
    again = visits()
    with place.reopened(source=again) as s:
        found = s.launch(cp.Counter("0.5", window=4), of=of, id="W")
        assert found.path == recent.path and found.mechanism == recent.mechanism
        assert found.ask(id="q1") == first
        later = found.ask(id="q2")
        assert found.ask() == later, "no item is new, so nothing is drawn"
        with pytest.raises(cp.errors.RequestConflict):
            s.launch(cp.Counter("0.5", window=5), of=of, id="W")
        s._engine.ledger.verify()
