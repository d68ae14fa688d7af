"""Sessions on live tables: two worlds on equal coins, the pure composition as a twin, parts, delegation."""

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ledger.places import Place
from tests.session.deeds import lines
from tests.session.test_pure_twin import Run, Watching, losses, session_losses
from tests.session.test_stream_parts import Steady
from tests.sources.live_model import EVALUATED, draws, history, live, moments, send, without

import counterpoint as cp
from counterpoint.encoding import digest
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.privacy.messages import Update
from counterpoint.queries.aggregates import Mean
from counterpoint.queries.quantiles import Keys, Quantile

LARGE = cp.PureDP(10**7)
MECHANISMS = {
    "laplace": lambda: cp.Laplace("0.1", asks=5),
    "gaussian": lambda: cp.Gaussian("1e-3", asks=5),
    "sparse": lambda: cp.SparseVector("0.1", 1, hits=2, sensitivity=14),
    "largest": lambda: cp.NoisyMax("0.1"),
    "one way": lambda: cp.NoisyMax("0.1", monotone=True),
    "select": lambda: cp.PartitionSelection("0.1", "1e-4"),
    "counter": lambda: cp.Counter("0.1"),
    "too much": lambda: cp.Laplace(7),
}
FOLLOWED = [cp.count("n >= 3"), cp.sum("n")]
PLACES = ["all", "inside", "a", "b"]
questions = st.sampled_from(sorted(EVALUATED, key=repr))
doings = st.lists(
    st.one_of(
        st.tuples(st.just("update"), st.none(), st.none()),
        st.tuples(st.just("update"), st.none(), st.none()),
        st.tuples(st.just("launch"), st.sampled_from(PLACES), st.sampled_from(sorted(MECHANISMS))),
        st.tuples(st.just("ask"), st.sampled_from(PLACES), questions),
        st.tuples(st.just("ask"), st.sampled_from(PLACES), questions),
        st.tuples(
            st.just("crash"), st.none(), st.sampled_from(["write", "commit", "committed", "witnessed", "release"])
        ),
        st.tuples(st.just("reopen"), st.none(), st.none()),
    ),
    min_size=8,
    max_size=30,
)
levels = st.sampled_from(
    [
        {"protects": "unit"},
        {"protects": "unit", "updates": 3},
        {"protects": "event"},
        {"protects": "event", "updates": 3},
        {"protects": "event", "unit": None},
    ]
)


class CrashError(Exception):
    """The power went."""


class World:
    """A session on one of two neighbouring live tables, opened again after each crash; everything public is noted."""

    def __init__(self, updates, options, place=None):
        self.updates, self.options, self.place = list(updates), options, place
        self.seen, self.answers, self.handles, self.armed, self.drawn, self.sent = [], [], {}, None, 0, 0
        self.open(first=True)

    def reached(self, point):
        if point == self.armed:
            self.armed = None
            raise CrashError

    def seeds(self):
        self.drawn += 1
        return digest("seed", self.drawn)

    def open(self, first=False):
        if self.place is None:
            if not first:
                return
            self.table = live(**self.options)
            self.session = cp.Session(self.table, within=cp.ApproxDP(5, 1e-3), ledger=Steady())
        else:
            self.table = live(**self.options)
            ledger = {"seeds": self.seeds, "reached": self.reached}
            opened = partial(self.place.session, cp.ApproxDP(5, 1e-3)) if first else self.place.reopened
            self.session = opened(source=self.table, **ledger)
        self.inside = self.session.delegate(cp.ApproxDP(1, 1e-6), id="inside")
        self.parts = self.session.partition(
            "state", k=3, within=cp.ApproxDP("0.5", 1e-6), delta_total="1e-5", id="parts"
        )
        self.handles = {name: self.session.at(handle.path) for name, handle in self.handles.items()}

    def reopen(self):
        self.armed = None
        if self.place is not None:
            self.session.close()
        self.open()

    def do(self, deed, where, what):
        here = {"all": self.session, "inside": self.inside}.get(where) or (self.parts[where] if where else None)
        if deed == "update":
            if self.sent < len(self.updates):
                self.sent += 1  # sent again under its id after a crash
                send(self.table, self.updates[self.sent - 1], id=f"batch {self.sent}")
        elif deed == "launch":
            self.handles[where] = here.launch(MECHANISMS[what](), id=f"{where} {what}")
        elif deed == "follow":
            self.handles[f"{where} counter"] = here.launch(cp.Counter("0.1"), of=what, id=f"{where} {what}")
        elif deed == "look" and f"{where} counter" in self.handles:
            handle = self.handles[f"{where} counter"]
            self.answers.append((where, None, handle.mechanism, handle.ask(), self.table.pin()))
        elif deed == "ask" and where in self.handles:
            handle = self.handles[where]
            self.answers.append((where, what, handle.mechanism, handle.ask(what), self.table.pin()))
        elif deed == "crash":
            self.armed = what
        elif deed == "reopen":
            self.reopen()

    def drive(self, doings):
        for deed in doings:
            try:
                self.do(*deed)
            except CrashError:
                self.seen.append("crash")
                self.sent -= deed[0] == "update"
                self.reopen()
            except cp.errors.LedgerError as error:
                self.seen.append((type(error), str(error)))
                self.reopen()
            except cp.CounterpointError as error:
                self.seen.append((type(error), str(error)))
            facts = self.session.loss, self.session.remaining, lines(self.session), repr(self.table)
            self.seen.append((*facts, self.table.describe(), repr(self.session), str(self.session.certificate())))
        if self.place is not None:
            self.session._engine.ledger.verify()
        self.session.close()
        return self


def compared(one, other):
    """Everything public is the same, and answers on the same noise move by no more than was declared."""
    assert one.seen == other.seen
    assert [(where, what, pin) for where, what, _, _, pin in one.answers] == [
        (where, what, pin) for where, what, _, _, pin in other.answers
    ]
    differing = set()
    for (where, request, mechanism, left, _), (*_, right, _) in zip(one.answers, other.answers, strict=True):
        if left != right and where in ("a", "b"):
            differing.add(where)
        if isinstance(mechanism, cp.Counter):
            assert abs(left - right) <= mechanism.per_unit * mechanism.bound
        noisy = isinstance(mechanism, cp.Laplace) and not isinstance(request, Keys | Mean | Quantile)
        if noisy:
            facts = one.table.prepare(request)
            moves = zip(left, right, strict=True) if isinstance(left, tuple) else [(left, right)]
            assert sum(abs(a - b) for a, b in moves) <= facts.sensitivity * facts.grid, request
    assert len(differing) <= one.table.reach("state")


@settings(max_examples=40, deadline=None)
@given(levels, st.integers(0, 10**6), doings)
def test_on_neighbouring_live_tables_with_equal_coins_everything_public_is_the_same(options, seed, doings):
    rng = draws(seed)
    updates = history(rng, 12)
    worlds = updates, without(updates, options["protects"], rng)
    compared(*(World(world, options).drive(doings) for world in worlds))


@settings(max_examples=15, deadline=None)
@given(levels, st.integers(0, 10**6), doings)
def test_also_through_crashes_and_reopenings(options, seed, doings):
    """On a durable ledger, which may fail at each of its points; what was sent under an id is sent again."""
    rng = draws(seed)
    updates = history(rng, 12)
    worlds = updates, without(updates, options["protects"], rng)
    compared(*(World(world, options, Place("sqlite")).drive(doings) for world in worlds))


@pytest.mark.long
@settings(max_examples=1500, deadline=None)
@given(levels, st.integers(0, 10**9), doings)
def test_over_thousands_of_interleavings_everything_public_is_the_same(options, seed, doings):
    test_on_neighbouring_live_tables_with_equal_coins_everything_public_is_the_same.hypothesis.inner_test(
        options, seed, doings
    )


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(levels, st.integers(0, 10**9), doings)
def test_over_hundreds_of_crashes_everything_public_is_the_same(options, seed, doings):
    test_also_through_crashes_and_reopenings.hypothesis.inner_test(options, seed, doings)


asked = st.sampled_from(
    [request for request in sorted(EVALUATED, key=repr) if not isinstance(request, Keys | Mean | Quantile)]
)
one_shots = [cp.Laplace("0.2", asks=3), cp.SparseVector("0.2", 2, hits=1, sensitivity=10), cp.Laplace("0.1", asks=2)]
moves = st.lists(
    st.tuples(st.just("launch"), st.integers(0, 3), st.sampled_from(one_shots))
    | st.tuples(st.just("delegate"), st.integers(0, 3), st.sampled_from([cp.PureDP("0.3"), cp.PureDP("0.9")]))
    | st.tuples(st.just("update"), st.none(), st.none())
    | st.tuples(
        st.just("follow"), st.integers(0, 3), st.sampled_from([cp.Counter("0.2"), cp.Counter("0.1", horizon=9)])
    )
    | st.tuples(st.just("ask"), st.integers(0, 7), asked),
    min_size=8,
    max_size=40,
)


@settings(max_examples=30, deadline=None)
@given(moves, st.integers(0, 10**6), st.sampled_from(["unit", "event"]))
def test_a_session_answers_as_the_pure_composition_does(moves, seed, protects):
    """On equal coins, with the values that the written-out rules give at each moment, and their changes as updates.

    The twin has one relation for all that it launches: at unit level that of asks that move one way, so that nothing
    is followed there, and at event level that of what is followed, in the session itself.
    """
    ledger, table, updates = Watching(), live(protects, updates=9), history(draws(seed), 40) * 12
    model, arrived = moments(updates, 2, 9), 0
    counts = [EVALUATED[FOLLOWED[0]](rows) for rows in model]
    session = cp.Session(table, cp.PureDP(2), ledger=ledger)
    run, sessions, handles = Run(ledger), [session], []
    begun = [("delegate", 0, cp.PureDP("0.9")), ("launch", 1, one_shots[0]), ("follow", 0, cp.Counter("0.2"))]
    seen = table.relation if protects == "unit" else table.of(FOLLOWED[0]).relation
    for move, number, what in begun + moves:
        if move == "update":
            send(table, updates[arrived])
            arrived += 1
            run.events.append(((), Update(counts[arrived] - counts[arrived - 1]), None, None))
        elif move == "launch":
            handles.append(run.launch(sessions[number % len(sessions)], what))
        elif move == "follow" and protects == "event":
            handles.append(run.launch(session, what, of=FOLLOWED[0]))
        elif move == "delegate":
            sessions.append(run.delegate(sessions[number % len(sessions)], what))
        elif move == "ask" and handles:
            handle = handles[number % len(handles)]
            follows = isinstance(handle.mechanism, cp.Counter)
            run.ask(handle, None if follows else what, None if follows else EVALUATED[what](model[arrived]))
        sessions, handles = [s for s in sessions if s is not None], [h for h in handles if h is not None]
    pure = Concurrent(cp.Filter(cp.PureDP(2)), seen)
    assert losses(pure, run.replayed(pure)) == session_losses(session)


def test_asks_see_the_present_in_any_interleaving():
    table = live()
    session = cp.Session(table, within=LARGE)
    exact = session.launch(cp.Laplace(10**5, asks=9))
    inner = session.delegate(cp.PureDP(10**6)).launch(cp.Laplace(10**5, asks=9))
    table.put([{"who": "ann", "k": 1, "n": 5}, {"who": "bob", "k": 1, "n": -2}])
    assert (exact.ask(cp.count()), inner.ask(cp.sum("n"))) == (2, 3)
    table.put({"who": "ann", "k": 1, "n": 0})
    table.remove(who="bob", k=1)
    assert (exact.ask(cp.count()), inner.ask(cp.sum("n")), exact.ask(cp.count_distinct())) == (1, 0, 1)


def test_a_live_table_is_continual_for_a_partition():
    """A static relation would let zCDP and unlimited deltas through (Henzinger et al. 2024, Thm 5.2, 13.5)."""
    table = live(updates=4)
    assert not table.relation.within(cp.relations.Steps(updates=0))
    session = cp.Session(table, within=cp.ApproxDP(3, 1e-6))
    for within in (cp.ApproxDP("0.1", 1e-8), cp.zCDP("0.01"), cp.GaussianDP("0.1")):
        with pytest.raises(cp.errors.NotCovered):
            session.partition("note", k=4, within=within)
    parts = session.partition("note", k=4, within=cp.ApproxDP("0.1", 1e-8), delta_total=2e-8)
    parts["x"], parts["y"]
    with pytest.raises(cp.BudgetExceeded, match="delta_total"):
        parts["z"]


@pytest.mark.parametrize(
    ("options", "by", "k"),
    [
        ({"updates": 4}, "note", 4),
        ({"updates": 2}, "state", 2),
        ({"updates": 9}, "state", 3),
        ({}, "state", 3),
        ({"protects": "event", "updates": 4}, "note", 5),
        ({"protects": "event", "unit": None}, "note", 2),
        ({"protects": "event"}, "state", 3),
    ],
)
def test_a_partition_counts_the_parts_that_a_unit_ever_reaches(options, by, k):
    session = cp.Session(live(**options), within=cp.PureDP(1))
    with pytest.raises(cp.errors.RelationMismatch, match=f"say k={k}"):
        session.partition(by, k=k - 1, within=cp.PureDP("0.01"))
    session.partition(by, k=k, within=cp.PureDP("0.01"))
    assert session.loss.as_pure() == cp.PureDP(f"0.0{k}")


@pytest.mark.parametrize("options", [{}, {"protects": "event"}])
def test_without_a_limit_on_updates_a_row_may_reach_any_number_of_parts(options):
    session = cp.Session(live(**options), within=cp.PureDP(1))
    with pytest.raises(cp.errors.RelationMismatch, match="updates_per_unit"):
        session.partition("note", k=10**6, within=cp.PureDP("0.01"))
    assert session.loss == cp.PureDP(0)


@pytest.mark.parametrize(
    "options", [{"updates": 3}, {"protects": "event", "updates": 3}, {"protects": "event", "unit": None}]
)
def test_neighbours_differ_in_no_more_parts_than_the_table_says_and_in_as_many(options):
    table, most = live(**options), 0
    for seed in range(6000):
        rng = draws(seed)
        updates, reached = history(rng, 9), set()
        there = options.get("unit", "who") is not None
        one, other = (
            moments(world, 2, options.get("updates"), there)
            for world in (updates, without(updates, options.get("protects", "unit"), rng))
        )
        for left, right in zip(one, other, strict=True):
            for note in "wxyz":
                here, gone = ([row for row in rows if row[2]["note"] == note] for rows in (left, right))
                reached |= {note} if here != gone else set()
        most = max(most, len(reached))
    assert most == min(table.reach("note"), 4)


@pytest.mark.parametrize("protects", ["unit", "event"])
def test_a_unit_is_in_one_part_by_itself(protects):
    columns = {"who": cp.text(), "n": cp.number(0, 9)}
    table = cp.LiveTable("who", 2, key="k", columns=columns, protects=protects)
    assert table.reach("who") == 1
    parts = cp.Session(table, within=LARGE).partition("who", within=cp.PureDP(10**6))
    exact = parts["ann"].launch(cp.Laplace(10**5, asks=2))
    table.put([{"who": "ann", "k": 1, "n": 5}, {"who": "bob", "k": 1, "n": 7}])
    assert exact.ask(cp.sum("n")) == 5


def test_parts_of_a_live_table_follow_their_rows():
    table = live(updates=5)
    parts = cp.Session(table, within=LARGE).partition("note", k=5, within=cp.PureDP(10**6))
    exact = {note: parts[note].launch(cp.Laplace(10**5, asks=5)) for note in "xy"}
    table.put({"who": "ann", "k": 1, "note": "x"})
    assert [exact[note].ask(cp.count()) for note in "xy"] == [1, 0]
    table.put({"who": "ann", "k": 1, "note": "y"})
    assert [exact[note].ask(cp.count()) for note in "xy"] == [0, 1]


def test_updates_of_a_unit_beyond_its_number_do_nothing():
    table = live(updates=3)
    exact = cp.Session(table, within=LARGE).launch(cp.Laplace(10**5, asks=5))
    table.put([{"who": "ann", "k": 1, "n": n} for n in (1, 2, 3, 4)])
    table.put({"who": "bob", "k": 1, "n": 5})
    assert exact.ask(cp.sum("n")) == 8
    table.remove(who="ann", k=1)
    assert exact.ask(cp.count()) == 2


def test_counters_follow_the_changes_of_a_request():
    table = live(updates=9)
    session = cp.Session(table, within=LARGE)
    table.put({"who": "ann", "k": 1, "n": 5, "state": "a"})
    adults = session.launch(cp.Counter(10**5), of=cp.count("n >= 3"))
    states = session.launch(cp.Counter(epsilon=10**5, width=3), of=cp.histogram("state"))
    recent = session.launch(cp.Counter(10**5, window=2), of=cp.count())
    table.put([{"who": "bob", "k": 1, "n": 4, "state": "b"}, {"who": "ann", "k": 1, "n": 0, "state": "b"}])
    assert (adults.ask(), states.ask(), recent.ask()) == (0, (-1, 2, 0), 1), "one came, one went, since the launch"
    table.remove(who="bob", k=1)
    assert (adults.ask(), states.ask(), recent.ask()) == (-1, (-1, 1, 0), -1)
    assert adults.mechanism.per_unit == 9 and not adults.mechanism.clamp


def test_what_follows_changes_needs_a_limit_on_updates_and_a_request():
    session = cp.Session(live(), within=cp.PureDP(1))
    with pytest.raises(cp.errors.RelationMismatch, match="updates_per_unit"):
        session.launch(cp.Counter("0.1"), of=cp.count())
    for mechanism in (cp.Counter("0.1"), cp.Counter(epsilon="0.1", width=3)):
        for table in (live(), live(updates=3), live("event", unit=None)):
            with pytest.raises(cp.errors.InvalidRequest, match="say of which request"):
                cp.Session(table, within=cp.PureDP(1)).launch(mechanism)
    assert session.loss == cp.PureDP(0)


def test_a_counter_of_changes_goes_on_after_a_restart(tmp_path):
    place, table = Place("sqlite", tmp_path), live(updates=9)
    with place.session(LARGE, source=table) as s:
        counter = s.launch(cp.Counter(10**5), of=cp.count("n >= 3"))
        table.put({"who": "ann", "k": 1, "n": 5})
        assert counter.ask(id="q") == 1
        table.put({"who": "ann", "k": 2, "n": 5})
    table = live(updates=9)
    with place.reopened(source=table) as s:
        counter = s.at(counter.path)
        assert counter.ask(id="q") == 1 and counter.ask() == 2
        table.remove(who="ann", k=1)
        assert counter.ask() == 1
        s._engine.ledger.verify()
