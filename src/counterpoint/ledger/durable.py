"""A ledger that outlives its process: the protocol of `Ledger` over a database, sealed, chained and witnessed.

Each transaction of the protocol reads and changes records through a `SealedTransaction`, and is shared by all requests
that wait at the same time (`group_commit.py`). It is committed, then the witness sees its head, and only then
does `transact` return: an answer leaves after it is on disk. Nothing is refunded, pruned or drawn again: what failed in
between is finished from its seed, on the pinned data.

>>> import counterpoint as cp, tempfile, os.path
>>> from counterpoint.ledger.store.sqlite import SqliteStore
>>> folder = tempfile.mkdtemp()
>>> ledger = DurableLedger(SqliteStore(os.path.join(folder, "ledger.db")), "people", MasterKey(bytes(32)))
>>> ledger.bind("fingerprint of the data")
>>> [fact.kind for fact in ledger.history()]
['data']
>>> ledger.close()
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, islice
from typing import Any, Protocol

from counterpoint.coins.keystream import fresh
from counterpoint.errors import (
    CounterpointError,
    DataChanged,
    DataInUse,
    LedgerBusy,
    LedgerError,
    LedgerFailed,
    Unsealable,
)
from counterpoint.ledger import headers, verification
from counterpoint.ledger import witness as sightings
from counterpoint.ledger.chain import ANSWERED, VERSIONS, Disclosure, Entry, Grounds, Head, Signed, Signer, read_entry
from counterpoint.ledger.followed_history import FollowedHistory
from counterpoint.ledger.ledger import AnsweredAsk, Intent, Ledger, Settle, StepOutcome, StoredAnswer, VersionLine
from counterpoint.ledger.location import release
from counterpoint.ledger.sealed_rows import seen_row
from counterpoint.ledger.sealed_transaction import SealedTransaction, Sealer
from counterpoint.ledger.sealing import DataKeys, MasterKey
from counterpoint.ledger.state import HistoryEntry, LaunchRecord, Lookups, Lost, Path
from counterpoint.ledger.store.group_commit import GroupCommit, Ticket, failed_before
from counterpoint.ledger.store.records import REGISTER, SessionHeader, StoredItems, path_text
from counterpoint.ledger.store.store import ChangeSet, Store, exported
from counterpoint.ledger.stream_log import StoredStreamLog
from counterpoint.ledger.verification import started
from counterpoint.ledger.witness import SeenBefore, Witness
from counterpoint.queries.source import AppendLog
from counterpoint.sources.streams.log import in_use as in_use_log
from counterpoint.sources.streams.log import position


class Job(Protocol):
    """What is done in a transaction, and which records it reads there."""

    def looks_up(self) -> Lookups:
        """The records that it reads."""

    def run(self, records: SealedTransaction) -> Any:
        """Do it."""


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
        self._group: GroupCommit[Job] = GroupCommit(self._commit, store.lock)
        self._history = FollowedHistory()
        self._closed = False
        self._witnessed = Head(0, b"")
        self._header: SessionHeader | None = None
        self._signer: Signer | None = None
        self._sealer = Sealer(DataKeys(name, master, ()), seeds)
        self._open_header()

    def check(self) -> None:
        """Refuse everything in a forked process, after a failure, when closed, or when the connection was lost."""
        self._group.check()
        if not self._store.is_open:
            raise failed_before()

    @property
    def failure(self) -> CounterpointError | None:
        """The error that ended it, if a commit did; of another library's error only the class is shown."""
        found = self._group.failure
        return found if isinstance(found, CounterpointError | None) else LedgerFailed(type(found).__name__)

    def prepare(self, intent: Intent, outcome: StepOutcome) -> StepOutcome:
        """Seal row and answer."""
        return self._sealer.outcome(intent, outcome)

    def transact(self, job: Job) -> Any:
        """Run a job in a transaction that waiting requests share; its result, once it is durable and witnessed."""
        result = self._group.run(job)
        if isinstance(job, Settle) or isinstance(result, StoredAnswer):
            self._reached("release")
        return result

    def _commit(self, batch: list[Ticket[Job]]) -> None:
        """One transaction for a batch of jobs; an error of one job concerns that job alone."""
        with self._connection_at_stake():
            changes = self._store.begin_changes(self.name, _together([ticket.job.looks_up() for ticket in batch]))
            if changes is None:
                raise LedgerError(f"there is no session {self.name!r} in this ledger")
            records = SealedTransaction(changes, self._sealer)
            for ticket in batch:
                try:
                    ticket.result = ticket.job.run(records)
                except Exception as error:
                    ticket.error = error
            if changes.entries:
                self._write(changes)
                self._sealer.learn(records.grounds)
            else:
                self._store.rollback()
            # After the commit: a witness that had seen a head which was then lost would accuse an honest ledger. Before
            # any answer leaves: otherwise a database that is put back could forget an answer that was given.
            self._note(changes)

    def _write(self, changes: ChangeSet) -> None:
        self._reached("write")
        self._store.write(changes)
        self._reached("commit")
        self._store.commit()
        self._reached("committed")
        self._sealer.ids.learn(changes)

    def _note(self, changes: ChangeSet) -> None:
        """Show the witness the head before an answer leaves, also one that an interrupted process has settled."""
        if self._witness is None or not changes.settled or changes.head == self._witnessed:
            return
        assert self._header is not None
        if changes.head.number <= self._witnessed.number:  # the database was put back while it was open
            raise sightings.forked(self.name)
        self._witness.note(self.name, *changes.head, self._header.genesis, self._entries_after)
        self._witnessed = changes.head
        self._reached("witnessed")

    def _entries_after(self, number: int) -> Iterator[tuple[int, bytes]]:
        return self._store.entries(self.name, number)

    @contextmanager
    def _connection_at_stake(self) -> Iterator[None]:
        """Any error closes the connection, as a crash would, except a missing lock or key."""
        try:
            yield
        except (LedgerBusy, Unsealable, DataInUse):
            self._store.rollback()
            raise
        except BaseException:
            release(self._store, broken=True)
            raise

    @contextmanager
    def _connection(self) -> Iterator[Store]:
        """The database, for this thread alone."""
        self._group.check()
        with self._store.lock:
            self._group.check()
            yield self._store

    def read(self, path: Path) -> LaunchRecord | None:
        """The row at a path."""
        with self._connection() as store:
            stored = store.row(self.name, path_text(path))
            return None if stored is None else seen_row(stored, self._sealer.keys)

    def read_all(self, known: dict[Path, LaunchRecord | None]) -> None:
        """Bring the rows at these paths up to date; only those are read whose version is another one."""
        paths = {path_text(path): path for path in known}
        with self._connection() as store:
            versions = store.versions_at(self.name, list(paths))
            changed = [text for text, path in paths.items() if _version(known[path]) != versions.get(text)]
            for stored in store.rows_at(self.name, changed):
                known[paths[stored.path]] = seen_row(stored, self._sealer.keys)

    def opened(self) -> tuple[Intent, ...]:
        """The intents that a crash has left open, as far as their seeds can be unsealed."""
        with self._connection() as store:
            with self._one_moment(store) as records:
                found = [records.intent_or_none(request) for request in store.open_requests(self.name)]
            return tuple(intent for intent in found if intent is not None)

    def waiting(self) -> int:
        """How many requests are open; no seed is unsealed."""
        with self._connection() as store:
            return len(store.open_requests(self.name))

    def history(self) -> tuple[HistoryEntry, ...]:
        """What has been done or refused, in order."""
        with self._connection():
            return tuple(self._history.follow(self._entries_after))

    def find(self, request: str) -> Intent | StoredAnswer | None:
        """What is on record under an id."""
        with self._connection() as store, self._one_moment(store) as records:
            return records.find(request)

    def versions(self) -> tuple[VersionLine, ...]:
        """The opening, and each refresh."""
        with self._connection() as store:
            entries = (read_entry(data) for _, data in store.entries(self.name, 0))
            found = [entry for entry in entries if entry.kind in VERSIONS]
            first = self._opened_header.fingerprint or ""
        return tuple(
            VersionLine(entry.fact, entry.body.encode(), first if entry.kind == "open" else "") for entry in found
        )

    def answered(self, path: Path, who: str, most: int, request: str | None = None) -> list[AnsweredAsk]:
        """The newest asks of a principal at or below a path that were answered, in order; at most `most`.

        With `request`, the one with this id, if it is one of them.
        """
        with self._connection() as store:
            if request is None:
                self._history.follow(self._entries_after)
                numbers = list(islice(self._history.answered(path, who), most))[::-1]
            else:
                stored = store.request(self.name, request)
                numbers = [] if stored is None else [stored.entry]
            data = [store.entry(self.name, number) for number in numbers]
            asks = [ask for ask in (read_entry(one) for one in data if one is not None) if _is_of(ask, path, who)]
            asks = [ask for ask in asks if request in (None, ask.request)]
            with self._one_moment(store) as records:
                found = [(ask, records.find(ask.request)) for ask in asks]
            return [
                AnsweredAsk(ask.fact, ask.request, ask.body.encode(), done)
                for ask, done in found
                if isinstance(done, StoredAnswer) and not isinstance(done.answer, Lost)
            ]

    def verify(self) -> None:
        """Check the chain, replay every charge, compare with what is stored; `LedgerTampered` if anything differs.

        A snapshot is checked, so that requests go on meanwhile.
        """
        with self._connection() as store:
            # before the snapshot: what the witness sees after it is not in it
            witness = None if self._witness is None else SeenBefore(self._witness, (self.name, REGISTER))
        with store.snapshot() as copy:
            verification.verify(copy, self.name, witness)
            verification.verify_register(copy, witness, self._master, may_be_unseen=True)

    def beside(self) -> tuple[str, ...]:
        """The sessions that have the same rows."""
        with self._connection() as store:
            return headers.beside(store, self.name)

    def bind(
        self,
        fingerprint: str | None,
        log: AppendLog | None = None,
        *,
        rows: bytes | None = None,
        second_budget: bool = False,
        refreshed: str | None = None,
    ) -> None:
        """Begin the record for this data, or make sure that it is about this data; and keep the log of a stream."""
        if fingerprint is None:
            raise unrecognisable()
        if self._header is None:
            # before anything is written: a log that is another session's must not leave an empty session behind
            if log is not None and log.kept_for is not None:
                raise in_use_log(log.kept_for, log.what)
            self._create(fingerprint, rows, second_budget)
        if fingerprint != (refreshed or self._opened_header.fingerprint):
            raise DataChanged(
                f"the data is not what {self.name!r} was made for: its rows, its declaration or its key differ. Newer "
                "rows of the same units, or another declaration, become the next version, under the same budget: open "
                'it with refresh="why", or start the service with --refresh. Else bind the data as it was; data about '
                "other units have a session of another name, and a budget of their own"
            )
        if log is not None:
            log.keep(StoredStreamLog(self.name, self._opened_header.genesis, self._sealer, self))
            with suppress(Unsealable):  # charges can be read without a key; asking for items says what is missing
                log.length()

    def note_rows(self, rows: bytes | None, *, second_budget: bool = False) -> None:
        """Note the rows of a next version beside those of the versions before, or refuse them if another has them."""
        if rows is None:
            return
        with self._connection() as store, self._connection_at_stake():
            self._header = headers.add_rows(
                store, self.name, self._master, self._sealer.keys, rows, second_budget=second_budget
            )

    def _create(self, fingerprint: str, rows: bytes | None, second_budget: bool) -> None:
        headers.must_have_key(self._master)
        with self._store.lock, self._connection_at_stake():
            headers.create(
                self._store,
                self.name,
                self._master,
                headers.new_genesis(),
                fingerprint,
                rows,
                witness=self._witness,
                second_budget=second_budget,
            )
        self._open_header()

    def _open_header(self) -> None:
        """Check the record as it is found, and continue from there."""
        with self._store.lock:
            upto = 0 if self._witness is None else self._witness.size()
            found = started(self._store, self.name, self._witness, self._master, self._connection_at_stake)
            # behind the session: an error that concerns both is told of the session that was asked for
            verification.opened(self._store, REGISTER, self._witness, self._master, may_be_unseen=True)
            if found is None:
                return
            keys = DataKeys(self.name, self._master, found.header.keys)
            if self._witness is not None and found.sighting is not None:
                recovered = [one.number for one in found.recoveries]
                self._witness.compact(self.name, found.header.genesis, upto, found.sighting, recovered)
            self._header, self._sealer.keys, self._sealer.ids = found.header, keys, found.ids
            if self._master is not None and keys.usable and self.name != REGISTER:
                self._signer = headers.signer(self.name, self._master, found.signer)

    @property
    def _opened_header(self) -> SessionHeader:
        if self._header is None:
            raise LedgerError(f"there is no session {self.name!r} in this ledger yet")
        return self._header

    def stored_length(self) -> int:
        """How many items the session's stream has."""
        with self._connection() as store:
            return store.length(self.name)

    def stored_items(self, start: int) -> list[StoredItems]:
        """The items of the session's stream from a place on."""
        with self._connection() as store:
            return list(store.items(self.name, start))

    def stored_position(self, feed: str) -> str | None:
        """How far a feed of the session's stream has come."""
        with self._connection() as store:
            return position(store.newest_ids(self.name), feed)

    def receipt(self, request: str) -> tuple[Signed, Disclosure]:
        """A signed receipt for a request that was answered, and what opens its answer to others."""
        self.check()
        grounds = self._sealer.grounds.get(request) or self._read_grounds(request)
        if self._signer is None:
            raise Unsealable(f"no key was given, so no receipt of {self.name!r} can be signed")
        key = self._sealer.keys.commitment_key()
        return grounds.signed(self._opened_header.genesis, self.name, self._signer, key)

    def _read_grounds(self, request: str) -> Grounds:
        with self._connection() as store, self._one_moment(store) as records:
            return records.receipt_grounds(request)

    @contextmanager
    def _one_moment(self, store: Store) -> Iterator[SealedTransaction]:
        """The records as they are at one moment: another process may settle a request between it and its row."""
        store.begin_reading()
        try:
            yield SealedTransaction(ChangeSet(store, self.name, self._read_header(store).head), self._sealer)
        finally:
            store.rollback()

    def record(self) -> Iterator[str]:
        """The public record as JSON lines, as it is when the first is read; other requests are not held up."""
        return exported(self._connection, self.name, self._signer)

    def head(self) -> int:
        """The number of the last entry: while it stays, nothing has changed."""
        with self._connection() as store:
            return self._read_header(store).head.number

    def _read_header(self, store: Store) -> SessionHeader:
        found = store.header(self.name)
        assert found is not None
        return found

    def rotate(self, master: MasterKey) -> None:
        """Wrap the data keys with another master key; what is sealed from now on is sealed with a new data key."""
        with self._connection() as store:
            with self._connection_at_stake():
                keys = headers.rewrap(store, self.name, self._master, master)
            self._sealer.keys = DataKeys(self.name, master, keys)
            self._master, self._signer = master, Signer(master.signing_seed())

    def close(self) -> None:
        """Let go of the database and the witness; in a forked process both are still the parent's."""
        if self._group.inherited:
            return
        with self._store.lock:
            if not self._closed:
                self._closed = True
                self._sealer.forget()
                self._signer = None
                self._group.stop(LedgerError("this ledger has been closed; open it again to read it"))
                if self._witness is not None:
                    self._witness.close()
                release(self._store)


def unrecognisable() -> DataChanged:
    """The error for data that a durable ledger could not know again."""
    return DataChanged(
        "a durable ledger must know its data again after a restart: bind a table with key=..., 32 secret bytes, which "
        "make its fingerprint"
    )


def _together(lookups: list[Lookups]) -> Lookups:
    """What a batch of jobs reads."""
    return lookups[0] if len(lookups) == 1 else Lookups(*(tuple(chain(*keys)) for keys in zip(*lookups, strict=True)))


def _is_of(entry: Entry, path: Path, who: str) -> bool:
    """Whether an entry is an ask of this principal at or below a path."""
    return entry.kind in ANSWERED and entry.who == who and entry.path[: len(path)] == path


def _version(row: LaunchRecord | None) -> int | None:
    return None if row is None else row.version
