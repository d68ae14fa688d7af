"""Kill -9 at every point of a launch and an ask, then again during recovery: same answer, one charge, nothing lost."""

import os
import secrets
import time
from itertools import combinations, count

import pytest
from tests.ledger.crashes import Killer, in_child, judge, on_record, story, told
from tests.ledger.places import DURABLE, Place

import counterpoint as cp
from counterpoint.errors import BudgetExceeded, LedgerBusy

POINTS = (*("write", "commit", "committed"), *("write", "commit", "committed", "witnessed", "release"))
"""What an intent and its settling pass through."""
ALL = 6 * len(POINTS)
"""For the session itself, its launch, three asks and a question."""
TOGETHER = 200
"""How many random kills one ledger gets."""


def test_the_points_are_those_of_the_protocol(lasting):
    (*_, points), lived = in_child(story(lasting))
    assert lived and points.split(" ")[1:] == [*POINTS * 6]


@pytest.mark.parametrize("kind", DURABLE)
@pytest.mark.parametrize("first", [2, 10, 12, 15, 18, 20, 22, 24])
def test_a_crash_during_a_launch_or_an_ask_costs_nothing(kind, first, tmp_path):
    """From the charge of the launch (9) through its answer (16) to the release of the first ask (24)."""
    assert judge(Place(kind, tmp_path), first)


@pytest.mark.parametrize("kind", DURABLE)
@pytest.mark.parametrize("first", [42, 43, 44, 45, 46, 47, 48])
def test_a_crash_during_a_question_costs_nothing(kind, first, tmp_path):
    """From its charge (42, on disk at 43) through its step to its answer (on disk at 46) and the release of that."""
    assert judge(Place(kind, tmp_path), first)


@pytest.mark.parametrize("kind", DURABLE)
@pytest.mark.parametrize(("first", "second"), [(12, 3), (20, 2), (43, 2)])
def test_a_second_crash_during_recovery_costs_nothing_either(kind, first, second, tmp_path):
    assert judge(Place(kind, tmp_path), first, second)


@pytest.mark.long
@pytest.mark.parametrize("kind", DURABLE)
@pytest.mark.parametrize("first", range(1, ALL + 1))
@pytest.mark.parametrize("second", range(7))
def test_every_crash_and_every_second_crash(kind, first, second, tmp_path):
    assert judge(Place(kind, tmp_path), first, second)


def asks_for_ever(place, number):
    def work(say):
        s = place.session(cp.PureDP(10**6))
        noisy = s.launch(cp.Laplace("0.001", asks=10**6), id="L")
        say("L", *noisy.path)
        while True:
            number[0] += 1
            say(f"q{number[0]}", noisy.ask("apples", id=f"q{number[0]}"))

    return work


def random_kills(place, kills):
    """Kill so often, and more, each later, until something was said; by then it is on record, and is said again."""
    with Place(place.kind).session() as warm:  # what a first time loads, each child would load anew, and get no further
        warm.launch(cp.Laplace("0.001")).ask("apples")
    said = []
    for turn in count():
        if turn >= kills and len(told(said)) > 1:
            break
        number = [len(told(said))]
        patience = 1 + turn // kills
        lines, _ = in_child(asks_for_ever(place, number), after=patience * (0.05 + secrets.randbelow(10**5) / 10**6))
        said += [line for line in lines if line.count(" ")]
        assert not said or set(told(said)) <= on_record(place)
    answers = told(said)
    with place.session(cp.PureDP(10**6)) as s:
        noisy = s.launch(cp.Laplace("0.001", asks=10**6), id="L")
        for name, (value,) in answers.items():
            assert name == "L" or noisy.ask("apples", id=name) == int(value)
        assert s.loss == cp.PureDP("0.001")
        s._engine.ledger.verify()
    return len(answers)


@pytest.mark.parametrize("kind", DURABLE)
def test_a_few_random_kills(kind, tmp_path):
    assert random_kills(Place(kind, tmp_path), 5) > 1


@pytest.mark.long
@pytest.mark.parametrize("kind", DURABLE)
def test_many_random_kills(kind, tmp_path):
    """Ten thousand on both, in about half an hour. A long ledger would only ever be killed while it is being opened, so
    there is a fresh one now and then.
    """
    for number in range(int(os.environ.get("KILLS", "5000")) // TOGETHER):
        home = tmp_path / str(number)
        home.mkdir()
        assert random_kills(Place(kind, home), TOGETHER) > TOGETHER // 10


def _forked(work):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            work(lambda *words: os.write(writer, (" ".join(map(str, words)) + "\n").encode()))
            os._exit(0)
        except BaseException as error:
            os.write(writer, f"failed {error!r}\n".encode())
            os._exit(1)
    os.close(writer)
    return child, reader


def hammer(place, processes, launches, cost, budget):
    """Each process launches as often as it is let; how many were admitted and how many refused, all told."""
    place.session(budget).close()
    patient = cp.Durable(place.url, key_file=place.key, witness=place.home / "witness", wait=60)

    def work(say):
        from counterpoint.ledger.open import durable

        for _ in range(launches):
            s = cp.open(durable(patient, "session"), source=place.source)
            begun = time.monotonic_ns()
            try:
                handle = s.launch(cp.Laplace(cost))
                say("admitted", *handle.path, begun, time.monotonic_ns(), handle.ask("apples"))
            except BudgetExceeded:
                say("refused")
            s.close()

    children = [_forked(work) for _ in range(processes)]
    lines = []
    for child, reader in children:
        with os.fdopen(reader) as pipe:
            lines += pipe.read().splitlines()
        os.waitpid(child, 0)
    return lines


@pytest.mark.parametrize("kind", DURABLE)
def test_eight_processes_on_one_budget_get_exactly_what_is_admissible(kind, tmp_path):
    """0.07 goes 14 times into 1; with SQLite the processes take turns, with PostgreSQL they are in at once."""
    place = Place(kind, tmp_path)
    lines = hammer(place, 8, 3, "0.07", cp.PureDP(1))
    admitted = [line for line in lines if line.startswith("admitted")]
    assert not [line for line in lines if line.startswith("failed")] and len(lines) == 24
    assert len(admitted) == 14 and len({line.split(" ")[1] for line in admitted}) == 14
    launches = sorted(tuple(map(int, line.split(" ")[1:4])) for line in admitted)
    assert all(first[1] < later[2] for first, later in combinations(launches, 2)), "who was done first is first"
    with place.reopened() as s:
        assert s.loss == cp.PureDP("0.98")
        s._engine.ledger.verify()  # which replays every refusal at its place, too


def test_a_forked_process_must_open_the_ledger_itself(lasting):
    with lasting.session() as s:
        noisy = s.launch(cp.Laplace(0.5, asks=3))

        def work(say):
            for deed in (lambda: noisy.ask("apples"), lambda: s.loss):
                try:
                    deed()
                except cp.errors.LedgerError as error:
                    say("refused" if "forked" in str(error) else error)

        assert in_child(work)[0] == ["refused", "refused"]
        assert isinstance(noisy.ask("apples"), int)


def test_a_second_process_is_told_that_an_sqlite_ledger_is_taken(tmp_path):
    place = Place("sqlite", tmp_path)
    with place.session() as s:
        noisy = s.launch(cp.Laplace(0.5, asks=3), id="L")

        def work(say):
            try:
                place.session()
            except LedgerBusy:
                say("busy")

        assert in_child(work)[0] == ["busy"]
        assert isinstance(noisy.ask("apples"), int)


def test_a_killer_kills():
    assert in_child(lambda say: (say("before"), Killer(1)("now"), say("after"))) == (["before"], False)
