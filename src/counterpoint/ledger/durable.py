"""A ledger that outlives its process: the protocol of `Ledger` over a database, sealed, chained and witnessed.

Commit, then release (an answer leaves only after its charge is on disk). An intent is one transaction: looked up,
checked, charged, its seed sealed and the chain extended. Settling is a second one: state and answer together, the seed
gone. Then the witness, then the answer. Nothing is refunded, pruned or drawn again: what failed in between is finished
from its seed, on the pinned data.

>>> import counterpoint as cp, tempfile, os.path
>>> home = tempfile.mkdtemp()
>>> ledger = DurableLedger(SqliteStore(os.path.join(home, "ledger.db")), "people", MasterKey(bytes(32)))
>>> ledger.bind("fingerprint of the data")
>>> [fact.kind for fact in ledger.history()]
['data']
>>> ledger.close()
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256

from counterpoint.encoding import Plain
from counterpoint.errors import (
    DataChanged,
    DataInUse,
    LedgerBusy,
    LedgerError,
    Unsealable,
)
from counterpoint.ledger import same_data, verification
from counterpoint.ledger.committing import Committer, Job, Ticket
from counterpoint.ledger.keeping import KeptLog
from counterpoint.ledger.ledger import (
    Compute,
    Done,
    Fact,
    Intent,
    Ledger,
    Path,
    Plan,
    Read,
    Row,
    made_up,
)
from counterpoint.ledger.places import release
from counterpoint.ledger.records import (
    FORM,
    INTENTS,
    Book,
    Entry,
    Head,
    StoredItems,
    keys_digest,
    path_text,
    read_entry,
)
from counterpoint.ledger.rows import seen_row
from counterpoint.ledger.sealing import DataKeys, MasterKey
from counterpoint.ledger.sqlite import SqliteStore
from counterpoint.ledger.steps import Steps
from counterpoint.ledger.store import Overtaken, Store, Unit
from counterpoint.ledger.upgrade import upgrade
from counterpoint.ledger.witness import Witness
from counterpoint.randomness.fresh import fresh
from counterpoint.sources.streams.log import Log
from counterpoint.sources.streams.log import in_use as in_use_log

__all__ = ["DurableLedger", "MasterKey", "SqliteStore"]


class DurableLedger(Ledger):
    """The record of one named session in a database. Threads share it; with PostgreSQL, so do processes.

    `reached` is called at each point where a crash would leave something else behind, for the tests of exactly that.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        master: MasterKey | None,
        witness: Witness | None = None,
        *,
        seeds: Callable[[], bytes] = lambda: fresh(32),
        reached: Callable[[str], None] = lambda point: None,
    ) -> None:
        self.name = name
        self._store = store
        self._master = master
        self._witness = witness
        self._reached = reached
        self._committer = Committer(self._commit, store.desk)
        self._closed = False
        self._noted = 0
        self._book: Book | None = None
        self._steps = Steps(DataKeys(name, master, ()), seeds)
        self._open_book()

    def check(self) -> None:
        """Refuse to go on in a forked process, after a failure, or when closed."""
        self._committer.check()

    def intent(self, request: str, body: bytes, fact: Fact, plan: Callable[[Read], Plan]) -> Intent | Done:
        """Check, charge and record, in one transaction."""
        job = Job(lambda unit: self._steps.begin(unit, request, body, fact, plan), request, (fact.path,))
        begun: Intent | Done = self._committer.run(job)
        return begun

    def settle(self, intent: Intent, row: Row, answer: Plain) -> Plain:
        """Store both in one transaction, and let the witness know."""
        settled: Done = self._committer.run(self._settle(intent, row, answer))
        self._reached("release")
        return settled.answer

    def perform(
        self, request: str | None, body: bytes, fact: Fact, plan: Callable[[Read], Plan], compute: Compute
    ) -> Intent | Done:
        """In one go: what is computed promptly is computed for all who share a transaction, by one of them."""
        own = made_up() if request is None else request

        def begin(unit: Unit) -> Intent | Done:
            return self._steps.begin(unit, own, body, fact, plan, new=request is None)

        def settle(begun: Intent | Done) -> Job | None:
            if isinstance(begun, Done) or begun.request != own:
                return None
            return self._settle(begun, *compute(begun))

        done: Intent | Done = self._committer.run(Job(begin, request, (fact.path,), settle, _is_prompt))
        if isinstance(done, Done):
            self._reached("release")
        return done

    def _settle(self, intent: Intent, row: Row, answer: Plain) -> Job:
        ready = self._steps.sealed(intent, row, answer)

        def settle(unit: Unit) -> Done:
            return Done(intent.body, self._steps.settle(unit, intent, ready))

        return Job(settle, intent.request, (intent.path,))

    def read(self, path: Path) -> Row | None:
        """The row at a path."""
        with self._at_desk():
            stored = self._store.row(self.name, path_text(path))
            return None if stored is None else seen_row(stored, self._steps.keys)

    def opened(self) -> tuple[Intent, ...]:
        """The intents that a crash has left open, as far as their seeds can be unsealed."""
        with self._at_desk():
            unit = Unit(self._store, self.name, self._head())
            self._store.begin_reading()  # or another process may settle one between its request and its row
            try:
                found = [self._steps.unsealed(unit, request) for request in self._store.open_requests(self.name)]
            finally:
                self._store.rollback()
            return tuple(intent for intent in found if intent is not None)

    def history(self) -> tuple[Fact, ...]:
        """What has been done, in order."""
        with self._at_desk():
            entries = (read_entry(data) for _, data in self._store.entries(self.name, 0))
            return tuple(entry.fact for entry in entries if entry.kind in (*INTENTS, "data", "rows"))

    def verify(self) -> None:
        """Check the chain, replay every charge, compare with what is stored; `LedgerTampered` if anything differs."""
        with self._at_desk():
            verification.verify(self._store, self.name, self._witness)

    def bind(
        self,
        fingerprint: str | None,
        log: Log | None = None,
        *,
        rows: bytes | None = None,
        second_budget: bool = False,
    ) -> None:
        """Begin the record for this data, or make sure that it is about this data; and keep the log of a stream."""
        if fingerprint is None:
            raise DataChanged(
                "a durable ledger must know its data again after a restart: bind a table with key=..., 32 secret "
                "bytes, which make its fingerprint"
            )
        if self._book is None:
            if log is not None and log.kept_for is not None:
                raise in_use_log(log.kept_for)
            self._create(fingerprint, rows, second_budget)
        assert self._book is not None
        if self._book.fingerprint != fingerprint:
            raise DataChanged(
                f"the data is not what {self.name!r} was made for: its rows, its declaration or its key differ. "
                "Bind the data as it was; for new data make a session with another name, and a budget of its own"
            )
        if rows is not None and self._book.content is None and self._steps.keys.usable:
            self._note_rows(rows)
        if log is not None:
            log.keep(self._keeper(self._book.genesis))
            with suppress(Unsealable):  # charges are there for whoever has no key; who asks for items is told
                log.length()

    def _keeper(self, genesis: bytes) -> KeptLog:
        keys, ids = (lambda: self._steps.keys), (lambda: self._steps.ids)
        return KeptLog(self.name, genesis, self._append, self._length, self._items, keys, ids)

    def _append(self, job: Callable[[Unit], int]) -> int:
        length: int = self._committer.run(Job(job))
        return length

    def _length(self) -> int:
        with self._at_desk():
            return self._store.length(self.name)

    def _items(self, start: int) -> list[StoredItems]:
        with self._at_desk():
            return list(self._store.items(self.name, start))

    def rotate(self, master: MasterKey) -> None:
        """Wrap the data keys with another master key; what is sealed from now on is sealed with a new data key."""
        with self._at_desk():
            with self._transaction():
                head, book = self._store.begin(self.name), self._store.book(self.name)
                assert head is not None and book is not None
                # those on record, not those read at the start: another process may have added one since
                keys = DataKeys(self.name, self._master, book.keys).rewrapped(master)
                unit = Unit(self._store, self.name, head)
                unit.append("keys", "", (), f"master key {master.name}", "", state=keys_digest(keys))
                self._store.write(unit)
                self._store.write_keys(self.name, keys)
                self._store.commit()
            self._steps.keys = DataKeys(self.name, master, keys)
            self._master = master

    @contextmanager
    def _at_desk(self) -> Iterator[None]:
        self._committer.check()
        with self._store.desk:
            self._committer.check()
            yield

    def close(self) -> None:
        """Let go of the database and the witness, which in a forked process are the parent's to let go of."""
        if self._committer.inherited:
            return
        with self._store.desk:
            if not self._closed:
                self._closed = True
                self._steps.forget()
                self._committer.stop(LedgerError("this ledger has been closed; open it again to read it"))
                if self._witness is not None:
                    self._witness.close()
                release(self._store)

    def _open_book(self) -> None:
        with self._store.desk:
            found = verification.opened(self._store, self.name, self._witness)
            if found is None:
                return
            keys = DataKeys(self.name, self._master, found.book.keys)
            changes = False
            if found.form < FORM and self._master is not None and keys.usable:
                with self._transaction():
                    upgrade(self._store, self.name, keys)
                changes = True
            if self._witness is not None and not found.placed:
                self._witness.note_place(self.name, found.book.genesis)
            if self._witness is not None and not found.book.witnessed:
                self._require(self._witness)
                changes = True
            if changes:
                found = verification.opened(self._store, self.name, self._witness)
                assert found is not None
            self._book, self._steps.keys, self._steps.ids = found.book, keys, found.ids

    def _require(self, witness: Witness) -> None:
        """From the first time that there is a witness on, there must be one: that is on record."""
        with self._transaction():
            head, book = self._store.begin(self.name), self._store.book(self.name)
            assert head is not None and book is not None
            book = book._replace(witnessed=True)
            unit = Unit(self._store, self.name, head)
            unit.append("witness", "", (), "there is a witness from here on", "", record=book.record)
            self._store.write(unit)
            self._store.write_book(self.name, book)
            self._store.commit()
        witness.note(self.name, *unit.head, book.genesis)

    def _create(self, fingerprint: str, rows: bytes | None, second_budget: bool) -> None:
        if self._master is None:
            raise Unsealable(
                "a durable ledger seals what is secret, and no key was given: make one with `counterpoint ledger "
                "key FILE`, keep it apart from the database, and say COUNTERPOINT_KEY_FILE=FILE"
            )
        genesis = sha256(os.urandom(32)).digest()
        wrapped = (DataKeys.fresh(self.name, 0, self._master),)
        keys = DataKeys(self.name, self._master, wrapped)
        content = None if rows is None else same_data.sealed(rows, keys, genesis)
        with self._store.desk:
            if self._witness is not None:
                # Before the book: a book that its witness has never seen is one whose witness was taken away.
                self._witness.note_place(self.name, genesis)
            with self._transaction():
                self._store.begin_alone(self.name)
                beside = () if rows is None else same_data.with_rows(self._store, self.name, rows, self._master)
                if beside and not second_budget:
                    raise same_data.in_use(self.name, beside)
                witnessed, what = self._witness is not None, same_data.about(beside, insisted=True)
                book = Book(Head(0, genesis), genesis, fingerprint, wrapped, witnessed, content, beside)
                first = Entry(1, "data", "", (), what, fingerprint, FORM, keys_digest(wrapped), record=book.record)
                book = book._replace(head=Head(1, first.hash(genesis)))
                self._store.create(self.name, book, first.encoded())
                self._store.commit()
        self._open_book()

    def _note_rows(self, rows: bytes) -> None:
        """Put on record what an earlier version did not compare; a session that is there is not refused."""
        with self._store.desk:
            with self._transaction():
                head, book = self._store.begin_alone(self.name), self._store.book(self.name)
                beside = same_data.with_rows(self._store, self.name, rows, self._master)
                assert head is not None and book is not None
                book = book._replace(content=same_data.sealed(rows, self._steps.keys, book.genesis), beside=beside)
                unit = Unit(self._store, self.name, head)
                unit.append("rows", "", (), same_data.about(beside, insisted=False), "", record=book.record)
                self._store.write(unit)
                self._store.write_book(self.name, book)
                self._store.commit()
            self._book = book._replace(head=unit.head)

    def beside(self) -> tuple[str, ...]:
        """The sessions that have the same rows."""
        with self._at_desk():
            return same_data.beside(self._store, self.name)

    def _head(self) -> Head:
        return self._opened_book.head

    @property
    def _genesis(self) -> bytes:
        return self._opened_book.genesis

    @property
    def _opened_book(self) -> Book:
        if self._book is None:
            raise LedgerError(f"there is no session {self.name!r} in this ledger yet")
        return self._book

    def _commit(self, batch: list[Ticket]) -> None:
        """One transaction for all of them, then the witness; whoever waits is released by the caller."""
        with self._transaction():
            paths = list({path_text(path) for ticket in batch for path in ticket.job.paths})
            requests = [ticket.job.request for ticket in batch if ticket.job.request is not None]
            unit = self._tried(batch, self._store.presume(self.name, requests, paths))
            if unit is None:
                unit = self._tried(batch, self._store.begin_unit(self.name, requests, paths))
            if unit is None:
                raise LedgerError(f"there is no session {self.name!r} in this ledger")
            self._note(unit)

    def _tried(self, batch: list[Ticket], unit: Unit | None) -> Unit | None:
        """All jobs in this unit, written and committed; None if that was not to be, and nothing came of it."""
        if unit is None:
            return None
        for ticket in batch:
            ticket.run(unit)
        if not unit.entries:  # so nothing makes sure of what was presumed
            if unit.presumed is not None:
                return None
            self._store.rollback()
            return unit
        try:
            self._write(unit)
        except Overtaken:
            self._store.rollback()
            return None
        self._steps.ids.learn(unit)
        return unit

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Whatever goes wrong ends this connection, as a crash would; a lock or key that was not to be had does not."""
        try:
            yield
        except (LedgerBusy, Unsealable, DataInUse):
            self._store.rollback()
            raise
        except BaseException:
            release(self._store, broken=True)
            raise

    def _write(self, unit: Unit) -> None:
        self._reached("write")
        self._store.write(unit)
        self._reached("commit")
        self._store.commit()
        self._reached("committed")

    def _note(self, unit: Unit) -> None:
        """Before anybody is told what was settled, now or by somebody who did not come so far, the witness sees it."""
        if self._witness is not None and unit.settled and unit.head.number > self._noted:
            self._witness.note(self.name, *unit.head, self._genesis)
            self._noted = unit.head.number
            self._reached("witnessed")


def _is_prompt(begun: object) -> bool:
    return isinstance(begun, Intent) and begun.prompt
