"""A fork of a process has neither its budget nor its connections: it is refused, and the process goes on."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading

import pyarrow as pa
import pytest
from tests.engines import engines
from tests.ledger.crashes import in_child

import counterpoint as cp
from counterpoint.engines.spark import SparkEngine

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")

PEOPLE = pa.table({"person": list(range(1000)), "age": [number % 90 for number in range(1000)]})
TWENTY = 20  # seconds, after which a child that waits for a thread that it does not have is ended


def in_a_fork(*deeds):
    """What became of each deed in a forked child."""

    def work(say):
        signal.alarm(TWENTY)
        for deed in deeds:
            try:
                say("did", deed())
            except cp.CounterpointError as error:
                say(type(error).__name__)

    said, lived = in_child(work)
    assert lived
    return said


def visits_counted():
    visits = cp.Stream(bound=1)
    session = cp.Session(visits, within=cp.PureDP(1))
    counter = session.launch(cp.Counter(epsilon="0.5"))
    visits.extend([1, 0, 1])
    return visits, session, counter


def test_a_session_in_memory_is_refused_in_a_fork_whatever_is_done_and_its_process_goes_on():
    visits, session, counter = visits_counted()
    noisy = session.launch(cp.Laplace("0.2"))
    inside = session.delegate(cp.PureDP("0.1"))
    deeds = [
        lambda: noisy.ask(cp.total()),
        counter.ask,
        lambda: session.launch(cp.Laplace("0.1")),
        lambda: session.delegate(cp.PureDP("0.1")),
        lambda: inside.launch(cp.Laplace("0.1")),
        lambda: session.partition("page", within=cp.PureDP("0.1")),
        lambda: session.would_cost(cp.Laplace("0.1")),
        lambda: session.loss,
        lambda: session.remaining,
        lambda: session.history,
        lambda: session.handles,
        session.certificate,
        lambda: noisy.halted,
        lambda: visits.append(1),
        lambda: visits.extend([1, 1], id="monday"),
        visits.pin,
    ]
    assert in_a_fork(*deeds) == ["ForkedProcess"] * len(deeds)
    assert isinstance(noisy.ask(cp.total()), int) and visits.pin() == 3 and session.loss == cp.PureDP("0.8")


def test_the_refusal_says_what_to_do():
    _, session, _ = visits_counted()

    def work(say):
        try:
            session.launch(cp.Laplace("0.1"))
        except cp.errors.ForkedProcess as error:
            say(error)

    (said,), _ = in_child(work)
    assert "after the fork" in said and "PostgreSQL" in said


def test_a_fork_may_make_a_session_of_its_own():
    visits_counted()
    assert in_a_fork(lambda: visits_counted()[1].loss) == ["did PureDP(0.5)"]


def test_a_fork_does_not_wait_for_a_lock_that_a_thread_of_its_parent_holds():
    visits, session, counter = visits_counted()
    parts = cp.Session(cp.Stream(fields={"page": cp.text()}), within=cp.PureDP(1)).partition(
        "page", k=2, within=cp.PureDP("0.5")
    )
    locks = [session._engine.ledger._lock, visits.log._lock, parts._lock, *session._engine._locks]
    held, done = threading.Event(), threading.Event()

    def sit():
        for lock in locks:
            lock.acquire()
        held.set()
        done.wait(60)
        for lock in locks:
            lock.release()

    thread = threading.Thread(target=sit)
    thread.start()
    assert held.wait(30)
    try:
        deeds = (counter.ask, lambda: session.loss, lambda: visits.append(1), lambda: parts["home"])
        assert in_a_fork(*deeds) == ["ForkedProcess"] * len(deeds)
    finally:
        done.set()
        thread.join(30)


def _launched_again(_):
    try:
        return str(_shared.launch(cp.Laplace("0.5")).path)
    except cp.CounterpointError as error:
        return type(error).__name__


def test_workers_of_a_pool_have_no_budget_each():
    global _shared  # noqa: PLW0603 - as a fork inherits it
    _shared = cp.Session(cp.Stream(bound=1), within=cp.PureDP("0.5"))
    with multiprocessing.get_context("fork").Pool(6) as pool:
        assert pool.map(_launched_again, range(6), chunksize=1) == ["ForkedProcess"] * 6
    assert _launched_again(0) == "(0,)" and _launched_again(0) == "BudgetExceeded"


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
def test_a_table_is_refused_in_a_fork_and_mixes_up_no_answers(engine):
    """A connection that two processes write to gives the one what was meant for the other."""
    people = engines.bound(engine, PEOPLE, "person", 1)
    noisy = cp.Session(people, within=cp.PureDP(10_000)).launch(cp.Laplace(10_000, asks=200))  # no noise to speak of
    ages = [cp.count(where=f"age = {age % 90}") for age in range(150)]
    begun, go_on = os.pipe(), os.pipe()

    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os.write(begun[1], b".")
        found = []
        for age in ages:
            for deed in (noisy.ask, people.prepare):
                try:
                    found.append(deed(age))
                except cp.errors.ForkedProcess:
                    found.append(None)
        people.close()
        os.read(go_on[0], 1)
        os._exit(0 if found == [None] * 300 else 1)
    os.read(begun[0], 1)
    answers = [noisy.ask(age) for age in ages]
    os.write(go_on[1], b".")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    right = [12 if age % 90 < 10 else 11 for age in range(150)]
    assert answers == right  # epsilon = 50 a question: noise other than 0 has probability 150 * 2 * e^-50 < 1e-19
    assert noisy.ask(ages[0]) == right[0], "what the child closed is its own"


ENDING = """
import os, sys
import pyarrow as pa
import counterpoint as cp

where, relation = sys.argv[1:]
data = where if relation else pa.table({"person": list(range(1000))})
people = cp.Table(data, unit="person", rows_per_unit=1, relation=relation or None)
noisy = cp.Session(people, within=cp.PureDP(100)).launch(cp.Laplace(100, asks=2))
child = os.fork()
if child == 0:
    sys.exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), noisy.ask(cp.count()))
"""


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
def test_a_fork_that_comes_to_its_end_ends_well_and_takes_no_table_from_its_parent(engine):
    where = [engines.url(), engines.relation(PEOPLE)] if engine == "postgres" else ["", ""]
    path = os.pathsep.join(filter(None, sys.path))
    words = [sys.executable, "-c", ENDING, *where]
    run = subprocess.run(words, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert run.stdout.split() == ["3", "1000"], run.stderr


def test_a_session_of_spark_is_left_to_its_process():
    """Py4J would speak on the sockets of the parent, as any connection would."""

    class Session:
        def __del__(self):
            os.write(said[1], b"gone")

    said = os.pipe()
    engine = SparkEngine(Session())

    def work(say):
        nonlocal engine
        del engine
        say("let go")

    assert in_child(work) == (["let go"], True)
    os.set_blocking(said[0], False)
    with pytest.raises(BlockingIOError):
        os.read(said[0], 4)
