"""Threads that wait for one connection, requests that share a transaction, and failures in the middle of one."""

import threading
import time
from contextlib import closing

import pytest
from msgspec.structs import replace
from tests.ledger.wanting import Known, Question

import counterpoint as cp
from counterpoint.errors import LedgerError, LedgerFailed, RequestConflict


def test_a_witness_that_cannot_be_written_leaves_no_ledger_behind(lasting):
    """A book that its witness has never seen would be taken for one whose witness was taken away, for ever."""
    away = lasting.home / "not there yet"
    durable = cp.Durable(lasting.url, key_file=lasting.key, witness=away / "witness")
    with pytest.raises(LedgerFailed, match="witness"):
        cp.Session(lasting.source, cp.PureDP(1), ledger=durable)
    away.mkdir()
    with cp.Session(lasting.source, cp.PureDP(1), ledger=durable) as s:
        assert isinstance(s.launch(cp.Laplace("0.1")).ask("apples"), int)


def meeting(ledger, deed, meanwhile):
    """Let a thread wait for the connection with `deed`, do `meanwhile` with it, and then let it go on: what it gets."""
    arrived, results = threading.Event(), []
    check = ledger._group.check

    def noticed():
        check()
        arrived.set()

    ledger._group.check = noticed

    def run():
        try:
            results.append(deed())
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=run)
    with ledger._store.lock:
        thread.start()
        assert arrived.wait(30)
        meanwhile()
    thread.join(30)
    return results[0]


@pytest.mark.parametrize("deed", ["read", "begin"])
def test_whoever_waited_for_a_ledger_that_was_closed_meanwhile_is_told_so(lasting, deed):
    lasting.session().close()
    with closing(lasting.ledger()) as other, closing(lasting.ledger()) as ledger:
        deeds = {
            "read": lambda: ledger.read(()),
            "begin": lambda: ledger.begin("q", Known(())),
        }
        told = meeting(ledger, deeds[deed], ledger.close)
        assert isinstance(told, LedgerError) and "has been closed" in str(told)
        assert other.read(()) is not None


def test_a_connection_that_failed_is_nobodys_and_the_next_session_opens_the_file_anew(lasting):
    armed = []

    def reached(point):
        if point == "commit" and armed:
            raise KeyboardInterrupt

    with lasting.session(name="one", reached=reached) as one, lasting.session(name="two") as two:
        first, second = one.launch(cp.Laplace("0.1", asks=9)), two.launch(cp.Laplace("0.1", asks=9))
        armed.append(True)
        with pytest.raises(KeyboardInterrupt):
            first.ask("apples", id="q")
        with lasting.reopened(name="one") as again:
            assert isinstance(again.handles[0].ask("apples", id="q"), int)
            if lasting.kind == "sqlite":  # which they shared
                with pytest.raises(LedgerError, match="closed"):
                    second.ask("apples")
            again._engine.ledger.verify()
    with lasting.reopened(name="two") as two:
        assert isinstance(two.handles[0].ask("apples"), int)


def in_one_batch(ledger, *deeds):
    """Let each deed wait in a thread until all do, and share one transaction: what each gets, in that order."""
    results = [None] * len(deeds)

    def run(number, deed):
        try:
            results[number] = deed()
        except Exception as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(deeds)]
    with ledger._store.lock:
        for number, thread in enumerate(threads, start=1):
            thread.start()
            while len(ledger._group._waiting) < number:
                assert thread.is_alive()
                time.sleep(0.001)
    for thread in threads:
        thread.join(30)
    return results


def test_in_one_transaction_later_requests_see_what_earlier_ones_did(lasting):
    with lasting.session() as s:
        noisy = s.launch(cp.Laplace("0.1", asks=9))
        ledger = s._engine.ledger
        before = ledger._store.header("session").head.number

        def ask(name, body=b"[]"):
            return lambda: ledger.begin(name, Question(noisy.path, body, version=0))

        first, again, conflict, other = in_one_batch(ledger, ask("q"), ask("q"), ask("q", b"[1]"), ask("r"))
        assert first.seed == again.seed == other.seed and other.request == "q", "one open intent per handle"
        assert isinstance(conflict, RequestConflict)
        assert ledger._store.header("session").head.number == before + 1, "one entry"
        row = replace(first.row, version=1)
        assert in_one_batch(ledger, *[lambda n=n: ledger.settle(first, row, n) for n in (5, 6, 7)]) == [5, 5, 5]
        done = in_one_batch(ledger, ask("q"), ask("r"))
        assert done[0].answer == 5 and done[1].request == "r" and done[1].seed != first.seed
        assert ledger._store.header("session").head.number == before + 3


def test_in_one_transaction_a_request_that_is_answered_makes_room_for_the_next(lasting):
    with lasting.session() as s:
        noisy = s.launch(cp.Laplace("0.1", asks=9))
        ledger = s._engine.ledger
        begun = ledger.begin("q", Question(noisy.path))

        def next_one():
            return ledger.begin("r", Question(noisy.path))

        settled, later = in_one_batch(ledger, lambda: ledger.settle(begun, replace(begun.row, version=1), 5), next_one)
        assert settled == 5 and later.request == "r" and later.version == later.row.version == 1


def test_in_one_transaction_a_budget_is_spent_once_and_an_error_is_nobody_elses(lasting):
    with lasting.session(cp.PureDP("0.5")) as s:
        launch = [lambda n=n: s.launch(cp.Laplace("0.2"), id=f"L{n}") for n in range(4)]
        same = [lambda: s.launch(cp.Laplace("0.2"), id="L0")]
        broken = [lambda: s.launch(cp.Laplace("0.2", asks=2), id="L0")]
        results = in_one_batch(s._engine.ledger, *launch, *same, *broken)
        assert sorted(r.path for r in results if not isinstance(r, Exception)) == [(0,), (0,), (1,)]
        assert [type(r).__name__ for r in results[2:]] == [
            "BudgetExceeded",
            "BudgetExceeded",
            "Handle",
            "RequestConflict",
        ]
        assert s.loss == cp.PureDP("0.4")
        s._engine.ledger.verify()


def test_items_that_arrive_at_once_are_all_kept_in_one_order(lasting):
    stream = cp.Stream(bound=9)
    with lasting.session(source=stream) as s:
        in_one_batch(s._engine.ledger, *[lambda n=n: stream.extend([n] * n) for n in (1, 2, 3)])
        assert stream.pin() == 6 and stream.log.items == [1, 2, 2, 3, 3, 3]
        s._engine.ledger.verify()


@pytest.mark.parametrize("point", ["write", "commit", "committed", "witnessed"])
def test_an_interrupt_in_the_middle_of_a_commit_stops_the_ledger_and_is_passed_on(lasting, point):
    def reached(now):
        if now == point and armed:
            raise KeyboardInterrupt

    armed = False
    with lasting.session(reached=reached) as s:
        noisy = s.launch(cp.Laplace("0.01", asks=9))
        begun = s._engine.ledger.begin("() q", Question((0,)))
        armed = True
        with pytest.raises(KeyboardInterrupt):
            s._engine.ledger.settle(begun, replace(begun.row, version=1), 5)
        armed = False
        with pytest.raises(LedgerError, match="open it again"):
            noisy.ask("apples")
    with closing(lasting.ledger()) as ledger:
        done = ledger.begin("() q", Known((0,)))
        assert done.answer == 5 if point in ("committed", "witnessed") else done.seed == begun.seed
        ledger.verify()
