"""Partition over streams: one charge, parts on demand, interleaved with the parent, in two worlds alike.

See Henzinger et al. 2024, sec. 5.
"""

import asyncio
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.session.deeds import done, lines
from tests.session.run_threads import run_threads

import counterpoint as cp
from counterpoint.encoding import digest
from counterpoint.ledger.memory import MemoryLedger

FIELDS = {
    "page": cp.text(),
    "country": cp.category(["CH", "DE"]),
    "clicks": cp.number(0, 10),
    "paid": cp.number(0, 5, "0.5"),
}


def visits(**options):
    return cp.Stream(fields=FIELDS, **options)


def test_parts_of_a_stream_are_charged_once_and_interleave_with_each_other_and_the_parent():
    stream = visits()
    session = cp.Session(stream, within=cp.PureDP(1))
    parts = session.partition("page", k=2, within=cp.PureDP(0.25))
    assert session.loss == cp.PureDP(0.5) == parts.loss.as_pure()
    home = parts["home"].launch(cp.Counter(epsilon=0.25))
    whole = session.launch(cp.Counter(epsilon=0.5))
    shop = parts["shop"].launch(cp.Laplace(0.25, asks=3))
    for _ in range(3):
        stream.extend([{"page": "home", "clicks": 1}, {"page": "shop", "clicks": 9}])
        answers = shop.ask(cp.total()), whole.ask(), home.ask()
        assert all(isinstance(answer, int) for answer in answers)
    assert session.loss == cp.PureDP(1) and parts["home"].loss == cp.PureDP(0.25)
    with pytest.raises(cp.BudgetExceeded):
        parts["shop"].launch(cp.Laplace("0.01"))
    for n in range(300):
        parts[f"page {n}"].launch(cp.Counter(epsilon=0.25))
    assert session.loss == cp.PureDP(1), "any number of parts"


def test_a_part_counts_its_own_records_from_its_launch_on():
    stream = visits()
    session = cp.Session(stream, within=cp.PureDP(10**6))
    parts = session.partition("page", k=2, within=cp.PureDP(10**5))
    stream.append({"page": "home", "clicks": 10})
    exact = {page: parts[page].launch(cp.Counter(epsilon=10**4)) for page in ("home", "shop")}
    clicks = parts["home"].launch(cp.Counter(epsilon=10**4, bound=10), of="clicks")
    paid = parts["home"].launch(cp.Counter(epsilon=10**4, bound=10), of="paid")
    sums = parts["home"].launch(cp.Laplace(10**4, asks=3))
    stream.extend(
        [{"page": "home", "clicks": 3, "paid": 2.5}, {"page": "shop", "clicks": 4}, {"page": "home", "clicks": 2}]
    )
    assert (exact["home"].ask(), exact["shop"].ask(), clicks.ask()) == (2, 1, 5)
    assert paid.ask() == Fraction(5, 2), "in the user's units"
    assert (sums.ask(cp.total()), sums.ask(cp.total("clicks"))) == (3, 15), "a total is of all that has arrived"
    assert sums.ask(cp.total("paid")) == Fraction(5, 2)


def test_parts_nest():
    stream = visits()
    session = cp.Session(stream, within=cp.PureDP(10**6))
    inner = session.partition("page", k=2, within=cp.PureDP(10**5))["home"].partition(
        "country", k=2, within=cp.PureDP(10**4)
    )
    counter = inner["CH"].launch(cp.Counter(epsilon=10**4))
    stream.extend([{"page": "home", "country": c} for c in ("CH", "DE", "CH")] + [{"page": "shop", "country": "CH"}])
    assert counter.ask() == 2 and session.loss == cp.PureDP(2 * 10**5)


@pytest.mark.parametrize(
    ("options", "by", "k"),
    [
        ({}, "page", 2),
        ({"neighbours": "add-or-remove"}, "page", 1),
        ({"unit": "user", "per_unit": 3}, "page", 6),
        ({"unit": "user", "per_unit": 3, "neighbours": "add-or-remove"}, "page", 3),
        ({"unit": "user", "per_unit": 3}, "country", 2),
    ],
)
def test_a_partition_is_as_sparse_as_the_stream_declares(options, by, k):
    session = cp.Session(visits(**options), within=cp.PureDP(1))
    if k > 1:
        with pytest.raises(cp.errors.RelationMismatch, match=f"say k={k}"):
            session.partition(by, k=k - 1, within=cp.PureDP(0.1))
        assert session.loss == cp.PureDP(0) and len(done(session)) == 1
    session.partition(by, k=k, within=cp.PureDP("0.1"))
    assert session.loss == cp.PureDP(Fraction(k, 10))


def test_approximate_parts_of_a_stream_charge_every_delta_to_delta_total():
    """Henzinger et al. 2024, Thm 5.4: a part that nobody affects costs its delta, too, so their number is bounded; a
    refusal is free.
    """
    session = cp.Session(visits(), within=cp.ApproxDP(1, 1e-6))
    with pytest.raises(cp.errors.NotCovered, match="delta_total"):
        session.partition("page", k=2, within=cp.ApproxDP(0.1, 1e-8))
    with pytest.raises(cp.errors.NotCovered):
        session.partition("page", k=2, within=cp.zCDP(0.1))
    assert session.loss == cp.ApproxDP(0, 0)
    parts = session.partition("page", k=2, within=cp.ApproxDP(0.1, 1e-8), delta_total=3e-8)
    assert parts.loss.epsilon_at(3e-8) == 0.2 and session.loss.epsilon == Fraction(1, 5)
    for page in ("home", "shop", "home", "help", "shop"):
        parts[page].launch(cp.Laplace("0.02"))
    with pytest.raises(cp.BudgetExceeded, match="delta_total"):
        parts["one more"]
    facts = len(done(session))
    with pytest.raises(cp.BudgetExceeded):
        parts["one more"]
    assert len(done(session)) == facts
    assert isinstance(parts["home"].launch(cp.Laplace("0.02")).ask(cp.total()), int), "what is there stays"


def test_pure_parts_need_no_delta_total_even_under_an_approximate_budget():
    session = cp.Session(visits(), within=cp.ApproxDP(1, 1e-6))
    session.partition("page", k=2, within=cp.PureDP(0.1))
    assert session.loss == cp.ApproxDP(0.2, 1e-6)
    assert "Henzinger et al. 2024, Cor 5.5" in str(session.given[0]._session._engine.node((0,))[0].claim.certificate)


def test_however_a_key_is_spelled_it_is_one_part_with_one_budget():
    """1 and 1.0, or a text of numpy's and a plain one, would otherwise be two parts of the same data, paid for once."""
    session = cp.Session(visits(), within=cp.PureDP(1))
    pages = session.partition("page", k=2, within=cp.PureDP("0.1"))
    pages["home"].launch(cp.Laplace("0.1"))
    for spelled in (np.str_("home"), np.array(["home"])[0], type("Text", (str,), {})("home")):
        with pytest.raises(cp.BudgetExceeded):
            pages[spelled].launch(cp.Laplace("0.1"))
    clicks = session.partition("clicks", k=2, within=cp.PureDP("0.1"))
    clicks[1].launch(cp.Laplace("0.1"))
    for spelled in (1.0, Fraction(1), np.float64(1)):
        with pytest.raises(cp.BudgetExceeded):
            clicks[spelled].launch(cp.Laplace("0.1"))
    assert pages["home"] is pages["home"] and pages["home"].loss == cp.PureDP("0.1")


def test_however_a_key_of_a_table_is_spelled_it_is_one_part():
    duckdb = pytest.importorskip("duckdb")
    rows = duckdb.sql("SELECT i AS id, i % 3 AS shop, 'x' AS page FROM range(9) AS t(i)")
    session = cp.Session(cp.Table(rows, unit="id", rows_per_unit=1), within=cp.PureDP(1))
    shops, pages = (session.partition(by, within=cp.PureDP("0.1")) for by in ("shop", "page"))
    shops[1].launch(cp.Laplace("0.1")), pages["x"].launch(cp.Laplace("0.1"))
    for again in (lambda: shops[1.0], lambda: shops[Fraction(1)], lambda: pages[np.str_("x")]):
        with pytest.raises(cp.BudgetExceeded):
            again().launch(cp.Laplace("0.1"))


class Steady(MemoryLedger):
    """Seeds that depend on what is done, and how often it was done, alone: equal coins for equal doings."""

    def __init__(self):
        self._counts, self._done = {}, b""
        super().__init__(seeds=lambda: digest(self._done.decode(), self._counts[self._done]))

    def begin(self, request, wanted, **more):
        self._done = wanted.body()
        self._counts[self._done] = self._counts.get(self._done, 0) + 1
        return super().begin(request, wanted, **more)


pages = st.sampled_from(["home", "shop", "help"])
items = st.none() | st.fixed_dictionaries({"page": pages, "clicks": st.integers(0, 10)})
doings = st.lists(st.tuples(pages, st.sampled_from(["launch", "count", "clicks", "ask", "total"])), max_size=15)


@settings(max_examples=60)
@given(st.lists(items, min_size=1, max_size=6), items, st.integers(0, 5), doings)
def test_on_neighbouring_streams_with_equal_coins_everything_public_is_the_same(left, other, place, doings):
    """Errors, history, losses, displays; and all but `reach` parts give the very same answers."""
    right = list(left)
    right[place % len(left)] = other
    seen, answers = zip(*(drive(stream, doings) for stream in (left, right)), strict=True)
    assert seen[0] == seen[1]
    differing = {page for (page, here), (_, there) in zip(*answers, strict=True) if here != there}
    assert len(differing) <= 2


def drive(records, doings):
    stream = visits()
    session = cp.Session(stream, within=cp.ApproxDP(1, 1e-6), ledger=Steady())
    parts = session.partition("page", k=2, within=cp.ApproxDP("0.2", 1e-9), delta_total=2e-9)
    handles, seen, answers, arriving = {}, [], [], iter(records)
    for page, deed in doings:
        stream.append(next(arriving, None))
        try:
            if deed == "launch":
                handles[page] = parts[page].launch(cp.Laplace("0.05", asks=2))
            elif deed == "count":
                handles[page] = parts[page].launch(cp.Counter("0.1"))
            elif deed == "clicks":
                handles[page] = parts[page].launch(cp.Counter("0.1", bound=10), of="clicks", id=f"{page}{len(seen)}")
            else:
                answers.append((page, handles[page].ask(*([cp.total()] if deed == "total" else []))))
        except (KeyError, cp.CounterpointError) as error:
            seen.append((type(error), str(error)))
        seen.append((session.loss, lines(session), repr(session), session._repr_html_()))
    return seen, answers


def test_an_id_that_was_launched_on_one_field_is_a_conflict_on_another():
    stream = visits()
    session = cp.Session(stream, within=cp.PureDP(1))
    first = session.launch(cp.Counter("0.1", bound=10), of="clicks", id="mine")
    assert session.launch(cp.Counter("0.1", bound=10), of="clicks", id="mine").path == first.path
    for other in ("paid", ["clicks"], None):
        with pytest.raises((cp.errors.LedgerError, cp.errors.InvalidRequest, cp.errors.RelationMismatch)):
            session.launch(cp.Counter("0.1", bound=10), of=other, id="mine")
    assert session.loss == cp.PureDP("0.1")


def test_several_fields_are_followed_under_one_budget():
    stream = visits()
    session = cp.Session(stream, within=cp.PureDP(10**6))
    count = session.launch(cp.Counter(10**4))
    clicks = session.launch(cp.Counter(10**4, bound=10), of="clicks")
    stream.extend([{"clicks": 4}, {"clicks": 5}, None])
    assert (count.ask(), clicks.ask()) == (2, 9)
    assert session.would_cost(cp.Counter(1, bound=1), of="clicks").refusal.startswith("RelationMismatch")
    assert session.would_cost(cp.Counter(1, bound=10), of="clicks").fits
    colleague = session.delegate(cp.PureDP(10**5))
    assert isinstance(colleague.launch(cp.Counter(10**4, bound=10), of="clicks").ask(), int)


def test_threads_may_open_the_same_parts_at_once():
    session = cp.Session(visits(), within=cp.PureDP(1))
    parts = session.partition("page", k=2, within=cp.PureDP("0.1"))
    admitted = []

    def work():
        for n in range(40):
            try:
                parts[f"page {n % 10}"].launch(cp.Laplace("0.05"))
                admitted.append(n % 10)
            except cp.BudgetExceeded:
                pass

    run_threads(16, work)
    assert sorted(admitted) == sorted([*range(10)] * 2), "two launches of 0.05 in each of ten parts, however they race"


def test_a_part_that_two_threads_open_at_the_same_moment_is_made_once():
    class Slow(MemoryLedger):
        def settle(self, intent, row, answer, **reads):
            time.sleep(0.02)  # time enough for another thread to find the part not made yet
            return super().settle(intent, row, answer, **reads)

    session = cp.Session(visits(), within=cp.PureDP(1), ledger=Slow())
    parts, opened = session.partition("page", k=2, within=cp.PureDP("0.1")), []
    run_threads(8, lambda: opened.append(parts["home"]))
    assert len(opened) == 8 and len(set(map(id, opened))) == 1


def test_asyncio_users_ask_in_threads():
    stream = cp.Stream(bound=1)
    session = cp.Session(stream, within=cp.PureDP(1))
    noisy = [session.launch(cp.Laplace("0.1", asks=5)) for _ in range(4)]

    async def analysts():
        asks = [asyncio.to_thread(handle.ask, cp.total()) for handle in noisy * 5]
        return await asyncio.gather(*asks)

    assert len(asyncio.run(analysts())) == 20 and all(handle.halted for handle in noisy)


def test_a_thousand_idle_counters_cost_nothing_when_data_arrives(monkeypatch):
    read = []
    updated = cp.Counter.updated
    monkeypatch.setattr(cp.Counter, "updated", lambda *given: read.extend(given[2]) or updated(*given))
    stream = cp.Stream(bound=1)
    session = cp.Session(stream, within=cp.PureDP(1))
    counters = [session.launch(cp.Counter("0.001")) for _ in range(1000)]
    stream.extend([1] * 100)
    assert read == []
    counters[7].ask()
    assert len(read) == 100
    counters[7].ask()
    assert len(read) == 100, "nothing is read twice"


def test_the_parts_are_never_read_off_the_data():
    stream = visits()
    stream.append({"page": "home"})
    parts = cp.Session(stream, within=cp.PureDP(1)).partition("page", k=2, within=cp.PureDP("0.1"))
    for deed in (lambda: list(parts), lambda: "home" in parts):
        with pytest.raises(cp.errors.NotAllowed, match="name them"):
            deed()
    with pytest.raises(cp.errors.InvalidRequest, match="'FR' is not a key"):
        cp.Session(stream, within=cp.PureDP(1)).partition("country", k=2, within=cp.PureDP("0.1"))["FR"]


def test_a_handle_on_a_field_found_again_below_lives_in_a_session_on_the_whole_stream():
    stream = visits()
    session = cp.Session(stream, within=cp.PureDP(10**6))
    launched = session.delegate(cp.PureDP(10**5)).launch(cp.Counter(10**4, bound=10), of="clicks")
    stream.extend([{"clicks": 4}, {"clicks": 5}])
    found = session.at(launched.path)
    assert found.ask() == 9
    assert found._session.launch(cp.Counter(10**4)).ask() == 0, "records from here on, not clicks"
    stream.append({"clicks": 7})
    assert found._session.handles[-1].ask() == 1
