"""Draws the pictures of docs/guide/pictures.md and of the README, as a session draws itself, into docs/figures.

The sessions are real ones on the synthetic people, with fixed seeds: a run draws the same pictures again. Run by `make
docs`; a test compares the files with what this draws.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import counterpoint as cp
from counterpoint.display.markup import Picture
from counterpoint.ledger.memory import MemoryLedger

FIGURES = Path(__file__).with_name("figures")
STATES = ["WY", "VT", "OR", "WA", "NY", "CA", "TX"]


def seeds() -> Iterator[bytes]:
    """Seeds for the steps of a session; a real one draws its own."""
    return (bytes([number % 251, number // 251]) + bytes(30) for number in range(1, 60_000))


def opened(source: cp.Source, within: cp.Loss) -> cp.Session:
    """A session with these seeds."""
    drawn = seeds()
    return cp.Session(source, within=within, ledger=MemoryLedger(seeds=lambda: next(drawn)))


def people() -> cp.Table:
    """The made-up people."""
    columns = {"age": cp.number(0, 120, units="years"), "state": cp.category(STATES)}
    return cp.Table(cp.datasets.people(), unit="person_id", rows_per_unit=1, columns=columns)


def in_state(state: str) -> object:
    """A count."""
    return cp.count(where=f"state = '{state}'")


def timeline() -> Picture:
    """Every mark: launches, asks, refusals, a halt, a partition and a delegation with launches inside."""
    session = opened(people(), cp.ApproxDP(1, 1e-6))
    watch = session.launch(cp.SparseVector(epsilon=0.3, threshold=1000, hits=2))
    tell = session.launch(cp.Laplace(epsilon=0.1, asks=4))
    parts = colleague = None
    for number, state in enumerate(STATES):
        if not watch.halted and watch.ask(in_state(state)):
            tell.ask(in_state(state))
        if number == 2:
            with suppress(cp.BudgetExceeded):
                session.launch(cp.Laplace(epsilon=0.9))
            parts = session.partition("state", within=cp.ApproxDP(0.15, 1e-8))
        if parts is not None and number in (3, 5):
            inside = parts[state].launch(cp.Laplace(epsilon=0.1, asks=2))
            inside.ask(cp.count(where="age >= 65"))
            inside.ask(cp.count(where="age < 18"))
        if number == 4:
            colleague = session.delegate(cp.ApproxDP(0.2, 1e-8))
    assert colleague is not None
    given = colleague.launch(cp.Laplace(epsilon=0.15, asks=5))
    given.ask(cp.count())
    with suppress(cp.BudgetExceeded):
        colleague.launch(cp.Laplace(epsilon=0.1))
    tell.ask(in_state("CA"))
    given.ask(in_state("TX"))
    return session.plot()


def crowded() -> Picture:
    """Sixty launches, most of which have ended, and a thousand asks, which come in waves."""
    session = opened(cp.Stream(bound=1), cp.PureDP(10))
    last = [session.launch(cp.Laplace(epsilon="0.5", asks=1000)) for _ in range(4)]
    for number in range(1000):
        if number % 18 == 0:
            session.launch(cp.Laplace(epsilon="0.1")).ask(cp.total())
        last[(number // 90 + number * number % 7) % 4].ask(cp.total())
    return session.plot()


def answers() -> Picture:
    """The old of each state: where there are few, the answer is mostly noise."""
    return opened(people(), cp.PureDP(1)).ask(cp.count(by="state", where="age >= 80"), epsilon=0.1).plot()


def counter() -> Picture:
    """A running count, asked every twenty items; more arrive in the second half."""
    visits = cp.Stream(bound=1)
    running = opened(visits, cp.PureDP(1)).launch(cp.Counter(epsilon=1))
    seen: dict[int, float] = {}
    for item in range(1, 4001):
        visits.append(int(item * item % 11 < (3 if item < 2000 else 7)))
        if item % 20 == 0:
            seen[item] = running.ask()
    return running.plot(seen)


PICTURES = {"timeline": timeline, "crowded": crowded, "answers": answers, "counter": counter}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        draw().save(FIGURES / f"{name}.svg")
