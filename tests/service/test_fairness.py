"""Fair threads: whose work runs next, and how much of it at once. Every order here is decided, none is timed."""

import threading
import time
from contextlib import contextmanager

import pytest
from tests.service.registry import served

from counterpoint.service import fair_threads as fairness
from counterpoint.service.fair_threads import (
    BRIEF,
    HEAVY,
    HEAVY_AT_ONCE,
    LONGER_AT_ONCE,
    STRANGERS_AT_ONCE,
    STRANGERS_WAITING,
    UNKNOWN_AT_ONCE,
    WORK,
    FairThreads,
    RequestWork,
    TooBusy,
)
from counterpoint.service.limits import Limits


def submit(pool, who, run, kind="ask"):
    """Submit work for a principal, as a request of theirs does."""
    token = WORK.set(RequestWork(who, kind))
    try:
        return pool.submit(run)
    finally:
        WORK.reset(token)


def compute(seconds=2 * HEAVY):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


class Gate:
    """Work that runs until it is let through, and the order in which it began."""

    def __init__(self):
        self.open, self.begun, self.lock = threading.Event(), [], threading.Lock()

    def work(self, name):
        def run():
            with self.lock:
                self.begun.append(name)
            assert self.open.wait(60)

        return run


@contextmanager
def pool(threads):
    made = FairThreads(threads)
    yield made
    made.shutdown()


def known(made, *kinds, principals=("ann", "bob")):
    """Let a pool learn that work of these kinds is light."""
    for who in principals:
        for kind in kinds:
            submit(made, who, lambda: None, kind).result(60)


def heavy(made, *kinds, principals=("ann", "bob")):
    """Let a pool learn that work of these kinds is heavy."""
    for who in principals:
        for kind in kinds:
            submit(made, who, compute, kind).result(60)


def settled(gate, number):
    """The names of what has begun, once it is so many; what must not begin had its chance meanwhile."""
    until = time.monotonic() + 60
    while len(gate.begun) < number and time.monotonic() < until:
        time.sleep(0.001)
    return list(gate.begun)


def test_a_principal_leaves_as_many_threads_free_as_it_holds():
    with pool(8) as made:
        known(made, "ask", principals=("ann", "bob", "cyd"))
        gate = Gate()
        work = [submit(made, "ann", gate.work("ann")) for _ in range(50)]
        work += [submit(made, "bob", gate.work("bob")) for _ in range(50)]
        work += [submit(made, "cyd", gate.work("cyd")) for _ in range(50)]
        begun = settled(gate, 7)
        assert [begun.count(who) for who in ("ann", "bob", "cyd")] == [4, 2, 1]
        gate.open.set()
        for one in work:
            one.result(60)


def test_queues_take_turns_however_long_they_are():
    with pool(2) as made:
        known(made, "ask", principals=("ann", "bob", "cyd"))
        gate, order, lock = Gate(), [], threading.Lock()
        stop = submit(made, "ann", gate.work("first"))

        def note(who):
            with lock:
                order.append(who)

        hold = Gate()
        held = submit(made, "dan", hold.work("held"))  # now no thread is free
        settled(gate, 1), settled(hold, 1)
        work = [submit(made, "ann", lambda: note("ann")) for _ in range(30)]
        work += [submit(made, "bob", lambda: note("bob")) for _ in range(3)]
        work += [submit(made, "cyd", lambda: note("cyd")) for _ in range(3)]
        gate.open.set()
        for one in [stop, *work]:
            one.result(60)
        hold.open.set()
        held.result(60)
        last = {who: len(order) - order[::-1].index(who) for who in ("ann", "cyd")}
        assert last["cyd"] <= 9 and last["ann"] > 30, order


def test_heavy_work_has_one_thread_for_each_principal_and_few_for_all():
    names = [f"analyst {number}" for number in range(HEAVY_AT_ONCE + 3)]
    with pool(64) as made:
        heavy(made, "quote", principals=names)
        known(made, "ask", principals=("ann",))
        gate = Gate()
        work = [submit(made, who, gate.work(who), "quote") for who in names for _ in range(5)]
        assert settled(gate, HEAVY_AT_ONCE) == names[:HEAVY_AT_ONCE]
        assert submit(made, "ann", lambda: "an ask", "ask").result(60) == "an ask", "which waits for none of these"
        assert len(gate.begun) == HEAVY_AT_ONCE
        gate.open.set()
        for one in work:
            one.result(60)
        assert gate.begun[: len(names)] == names, "each principal had its turn before any had a second one"


def test_work_that_computes_longer_than_an_ask_has_a_few_threads_of_each_principal():
    """Each of 64 reads of a long certificate would else take its turn before another principal's request goes on."""
    with pool(64) as made:
        for who in ("ann", "bob"):
            submit(made, who, lambda: compute(2 * BRIEF), "certificate").result(60)
        known(made, "ask", principals=("ann",))
        gate = Gate()
        work = [submit(made, who, gate.work(who), "certificate") for who in ("ann", "bob") for _ in range(20)]
        assert submit(made, "ann", lambda: "an ask", "ask").result(60) == "an ask"
        begun = settled(gate, 2 * LONGER_AT_ONCE)
        assert [begun.count(who) for who in ("ann", "bob")] == [LONGER_AT_ONCE] * 2
        gate.open.set()
        for one in work:
            one.result(60)


def test_heavy_work_does_not_hold_up_its_own_principals_asks():
    with pool(64) as made:
        heavy(made, "quote", principals=("ann",))
        known(made, "ask", principals=("ann",))
        gate = Gate()
        work = [submit(made, "ann", gate.work("quote"), "quote") for _ in range(5)]
        assert submit(made, "ann", lambda: "an ask", "ask").result(60) == "an ask"
        assert settled(gate, 1) == ["quote"]
        gate.open.set()
        for one in work:
            one.result(60)


def test_a_principal_whose_work_was_taken_for_light_gets_few_threads_and_others_as_many_as_before():
    """Light work may be sent only to make its kind light, and then much heavy work at once."""
    with pool(64) as made:
        for kind in ("ask", "launch"):
            known(made, kind, principals=("ann", "bob"))
        submit(made, "ann", compute, "launch").result(60)
        gates = {who: Gate() for who in ("ann", "bob")}
        work = [submit(made, who, gate.work(who), "ask") for who, gate in gates.items() for _ in range(10)]
        assert settled(gates["bob"], 10) == ["bob"] * 10
        assert settled(gates["ann"], UNKNOWN_AT_ONCE) == ["ann"] * UNKNOWN_AT_ONCE
        for gate in gates.values():
            gate.open.set()
        for one in work:
            one.result(60)


def test_work_of_an_unknown_kind_begins_with_few_threads():
    with pool(64) as made:
        gate = Gate()
        work = [submit(made, "ann", gate.work("new"), "new") for _ in range(20)]
        assert settled(gate, fairness.UNKNOWN_AT_ONCE) == ["new"] * fairness.UNKNOWN_AT_ONCE
        assert submit(made, "bob", lambda: 1, "new").result(60) == 1
        assert len(gate.begun) == fairness.UNKNOWN_AT_ONCE
        gate.open.set()
        for one in work:
            one.result(60)


def test_a_kind_that_was_heavy_is_not_light_again_after_a_few_light_runs():
    with pool(64) as made:
        heavy(made, "quote", principals=("ann",))
        for _ in range(5):
            submit(made, "ann", lambda: None, "quote").result(60)
        gate = Gate()
        work = [submit(made, "ann", gate.work("quote"), "quote") for _ in range(20)]
        assert settled(gate, 1) == ["quote"]
        submit(made, "bob", lambda: None).result(60)
        assert len(gate.begun) == 1
        gate.open.set()
        for one in work:
            one.result(60)


def test_callers_without_a_key_have_few_threads_and_a_bounded_queue():
    with pool(64) as made:
        submit(made, None, lambda: None).result(60)
        gate = Gate()
        work = [submit(made, None, gate.work("stranger")) for _ in range(STRANGERS_AT_ONCE + STRANGERS_WAITING)]
        assert len(settled(gate, STRANGERS_AT_ONCE)) == STRANGERS_AT_ONCE
        with pytest.raises(TooBusy):
            submit(made, None, gate.work("one more"))
        assert submit(made, "ann", lambda: 1).result(60) == 1
        gate.open.set()
        for one in work:
            one.result(60)


def test_work_whose_caller_waits_no_more_is_not_begun_and_errors_are_the_callers():
    with pool(64) as made:
        heavy(made, "quote", principals=("ann",))
        gate, began = Gate(), []
        first = submit(made, "ann", gate.work("first"), "quote")
        dropped = submit(made, "ann", lambda: began.append("dropped"), "quote")
        failing = submit(made, "ann", lambda: 1 // 0, "quote")
        settled(gate, 1)
        assert dropped.cancel()
        gate.open.set()
        first.result(60)
        with pytest.raises(ZeroDivisionError):
            failing.result(60)
        assert not began


QUOTE = {"request": {"request": "count"}, "epsilon": 0.1}


def test_quotes_and_reads_that_have_taken_their_cpu_time_are_refused_and_asks_go_on(tmp_path, monkeypatch):
    from counterpoint.session.session import Session

    would_cost = Session.would_cost

    def slowly(*given, **options):
        compute(1.2)
        return would_cost(*given, **options)

    monkeypatch.setattr(Session, "would_cost", slowly)
    with served(tmp_path, limits=Limits(computing=0.001, computing_burst=1)) as call:
        session = call.granted()
        quotes = f"/v1/sessions/{session}/quotes"
        assert call("ann", "POST", quotes, QUOTE).status_code == 200
        refused = call("ann", "POST", quotes, QUOTE)
        assert refused.status_code == 429 and int(refused.headers["retry-after"]) > 1
        assert "CPU time" in refused.json()["detail"]
        assert call("ann", "GET", f"/v1/sessions/{session}").status_code == 429
        assert call("ann", "POST", f"/v1/sessions/{session}/questions", QUOTE).status_code == 201
        assert call("carol", "GET", f"/v1/sessions/{session}").status_code == 200


def test_every_route_that_posts_and_costs_nothing_counts_as_a_read(tmp_path):
    """Such as answer 200 to a POST of an analyst's: they make nothing."""
    with served(tmp_path) as call:
        free = {
            path
            for route in call.client.app.routes
            for path, handler in [(route.path, getattr(route, "route_handler_map", {}).get("POST"))]
            if handler is not None and path.startswith(("/v1/sessions", "/v1/handles"))
            for handler in [handler[0] if isinstance(handler, tuple) else handler]
            if handler.status_code == 200 and "free" not in handler.opt
        }
        assert free == set()
