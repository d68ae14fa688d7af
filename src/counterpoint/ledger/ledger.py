"""The ledger's protocol: begin and settle.

`begin` checks and charges in one transaction and records a seed before anything is drawn; `settle` stores the state and
the answer together in a second one, and only then is the answer released. A request id that was answered gets the
stored answer, for ever; with another body it is a conflict. At each row at most one request is open; the next one is
given that intent to finish, from its own seed, before it is admitted itself: nothing is charged or drawn twice.

The protocol is written once, here, over a `Transaction`. `memory.py` keeps the records for as long as its process
lives, and `durable.py` keeps them in a database.

>>> from counterpoint.ledger.commands import OpenCommand
>>> from counterpoint.ledger.memory import MemoryLedger
>>> from counterpoint.mechanisms.concurrent import Concurrent
>>> from counterpoint import Filter, PureDP
>>> from counterpoint.privacy.relations import Steps
>>> ledger = MemoryLedger()
>>> begun = ledger.begin("root", OpenCommand((), Concurrent(Filter(PureDP(1)), Steps())))
>>> ledger.settle(begun, begun.row, None), [fact.kind for fact in ledger.history()]
(None, ['open'])
"""

import time
from abc import abstractmethod
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, NamedTuple, NoReturn, Protocol

import msgspec

from counterpoint.coins.keystream import fresh
from counterpoint.coins.secure import SAMPLER_VERSION
from counterpoint.encoding import Plain
from counterpoint.errors import (
    BudgetExceeded,
    CounterpointError,
    DataFailed,
    LedgerError,
    NotAllowed,
    NotCovered,
    NotGranted,
    RelationMismatch,
    RequestConflict,
    SecretLeak,
)
from counterpoint.ledger.chain import Disclosure, Signed, said_digest
from counterpoint.ledger.commands import Admission, Command, row_at
from counterpoint.ledger.read_commands import read_command
from counterpoint.ledger.state import (
    UNNAMED,
    Acting,
    HistoryEntry,
    LaunchRecord,
    Lookups,
    Lost,
    Path,
    SessionState,
    granted,
    lost_answer,
)
from counterpoint.queries.source import AppendLog


class Intent(msgspec.Struct, frozen=True):
    """A request that was begun: where, on which version of row and data, with which coins.

    `row` is the row as the intent found it (None: it is about to be made); `entry` is its place in the record, and
    `line` what stands there. A seed is never shown or pickled.
    """

    request: str
    body: bytes
    path: Path
    version: int
    pin: int | str
    seed: bytes
    sampler: int = SAMPLER_VERSION
    row: LaunchRecord | None = None
    entry: int = 0
    line: bytes = b""
    command: Command | None = None
    """What is asked, where it was begun just now; else it is read from the body (`asked`)."""

    @property
    def asked(self) -> Command:
        """What is asked, with the choices that were made as it began."""
        return read_command(self.body, self.pin) if self.command is None else self.command

    @property
    def digest(self) -> bytes:
        """Stands for what a repeated request must say, too."""
        return said_digest(self.body)

    def __repr__(self) -> str:
        return f"Intent({self.request!r}, {self.path!r}, version={self.version})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []

    def __reduce__(self) -> NoReturn:
        raise SecretLeak("an intent was to be copied or pickled, and its seed with it")


class StoredAnswer(msgspec.Struct, frozen=True):
    """A request that was answered: what stands for its body, the answer, and the path of the row that gave it."""

    digest: bytes
    answer: Plain
    path: Path

    def __repr__(self) -> str:
        return "StoredAnswer(...)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []


class AnsweredAsk(NamedTuple):
    """An ask on record: the line of its history, its id there, its body, and its answer."""

    fact: HistoryEntry
    request: str
    body: bytes
    answer: StoredAnswer


class VersionLine(NamedTuple):
    """An entry that says what the data were declared to be: the line of the history, and what it says."""

    fact: HistoryEntry
    body: bytes
    fingerprint: str = ""
    """Of the first version: its rows and declaration, which the body of the opening does not have."""


class StepOutcome(msgspec.Struct, frozen=True):
    """What a step came to: the row after it, and the answer. A durable ledger adds both as they will be stored.

    An answer that `reads_data` is released only while the data are open. Otherwise many asks at once, each of which
    may fail or not, would tell as much as that many closings.
    """

    row: LaunchRecord
    answer: Plain
    reads_data: bool = False


class Transaction(Protocol):
    """The records, as the protocol reads and changes them: all changes become durable together, or none."""

    def now(self) -> int:
        """The time in seconds since 1970, but never before the latest time on record: grants end once and for all."""

    def find(self, request: str) -> Intent | StoredAnswer | None:
        """What is on record under an id."""

    def must_be_new(self, kind: str, request: str) -> None:
        """`LedgerTampered` if the chain has a request with this id and the tables do not."""

    def waiting_at(self, path: Path) -> Intent | None:
        """The open request at a row."""

    def row(self, path: Path) -> LaunchRecord | None:
        """The row at a path, with its state."""

    def version(self, path: Path) -> int | None:
        """How often the row at a path has stepped."""

    def begin(self, request: str, command: Command, body: bytes, fact: HistoryEntry, plan: Admission) -> Intent:
        """Record a request with a fresh seed, and the row that it charges."""

    def refuse(self, request: str, body: bytes, fact: HistoryEntry, refusal: Exception) -> None:
        """Record that the rule refused a launch, or that no grant covers a request."""

    def settled(self, intent: Intent, outcome: StepOutcome) -> StoredAnswer | None:
        """The answer on record, if the request has one; `LedgerError` if no such request was begun."""

    def settle(self, intent: Intent, outcome: StepOutcome) -> None:
        """Store row and answer together, and erase the seed."""


class Begin(msgspec.Struct, frozen=True):
    """The first transaction of a request. `new`: its id was made up just now, and nothing is looked up under it."""

    request: str
    wanted: Command
    body: bytes
    new: bool = False
    acting: Acting = UNNAMED

    def looks_up(self) -> Lookups:
        """Its own id, the row that it concerns, those of the granted sessions that it is made in, and the root's."""
        at, root = (self.wanted.at,), ((),) if self.wanted.needs_data else ()
        return Lookups(() if self.new else (self.request,), at, (*at, *self.acting.under, *root))

    def run(self, records: Transaction) -> Intent | StoredAnswer:
        """The request as it is on record; or it is checked, charged and recorded. A refusal changes nothing."""
        if not self.new:
            known = records.find(self.request)
            if known is not None:
                if known.digest != sha256(self.body).digest():
                    raise conflict(self.request)
                if isinstance(known, StoredAnswer):
                    return not_lost(self.request, known)
                self._data_must_be_open(records)
                return known
            records.must_be_new(self.wanted.kind, self.request)
        self._data_must_be_open(records)
        waiting = records.waiting_at(self.wanted.at)
        if waiting is not None:
            return waiting
        wanted = self.wanted.decide(records.row)
        choice = wanted.choice()
        body = self.body + b"\n" + choice if choice else self.body
        fact = wanted.fact(self.acting.who, records.now())
        try:
            self._must_be_granted(records, wanted, fact)
            plan = wanted.plan(records.row)
        except (BudgetExceeded, NotCovered, RelationMismatch, NotGranted) as refusal:
            records.refuse(self.request, body, fact, refusal)
            raise
        return records.begin(self.request, wanted, body, fact, plan)

    def _data_must_be_open(self, records: Transaction) -> None:
        if self.wanted.needs_data:
            data_must_be_open(records)

    def _must_be_granted(self, records: Transaction, wanted: Command, fact: HistoryEntry) -> None:
        """Whether the grants that the request was made under still stand, as of this transaction."""
        for path in self.acting.under:
            grant = granted(row_at(records.row, path))
            assert grant is not None
            grant.check(wanted.launches, fact.at)
            if path == self.acting.under[-1] and grant.to != self.acting.who:
                raise NotGranted(f"this session was granted to {grant.to!r}, not to {self.acting.who!r}")


def data_must_be_open(records: Transaction) -> None:
    """`DataFailed` from when an answer could not be computed until a custodian reopens the data.

    What was answered before is on record and can be read.
    """
    root = records.row(())
    if root is not None and isinstance(root.state, SessionState) and root.state.is_closed:
        raise DataFailed


class Settle(msgspec.Struct, frozen=True):
    """The second transaction of a request."""

    intent: Intent
    outcome: StepOutcome

    def looks_up(self) -> Lookups:
        """The request, whether its row has moved on, and whether the data are open."""
        root = ((),) if self.outcome.reads_data else ()
        return Lookups((self.intent.request,), rows=root, versions=(self.intent.path,))

    def run(self, records: Transaction) -> Plain:
        """Store the outcome; or return what another thread or process has stored for this intent."""
        done = records.settled(self.intent, self.outcome)
        if done is not None:
            return not_lost(self.intent.request, done).answer
        if records.version(self.intent.path) not in (None, self.intent.version):
            raise moved_on()
        if self.outcome.reads_data:
            data_must_be_open(records)
        records.settle(self.intent, self.outcome)
        return self.outcome.answer


class Ledger:
    """What the engine needs of a record."""

    name = "session"
    """Of the session that it is the record of."""

    def begin(
        self, request: str, wanted: Command, *, new: bool = False, acting: Acting = UNNAMED
    ) -> Intent | StoredAnswer:
        """Look the request up; if it is new, check it, charge for it and record it. All of that is one transaction.

        If another request is open at that row, its intent comes back: finish it, then begin again.
        """
        done: Intent | StoredAnswer = self.transact(Begin(request, wanted, wanted.body(), new, acting))
        return done

    def settle(self, intent: Intent, row: LaunchRecord, answer: Plain, *, reads_data: bool = False) -> Plain:
        """Store the row and the answer together, if the row still has the version that the intent was made for."""
        settled: Plain = self.transact(Settle(intent, self.prepare(intent, StepOutcome(row, answer, reads_data))))
        return settled

    def prepare(self, intent: Intent, outcome: StepOutcome) -> StepOutcome:
        """Bring an outcome into the form in which it is stored, before the transaction in which others wait."""
        return outcome

    @abstractmethod
    def transact(self, job: Begin | Settle) -> Any:
        """Run a job in a transaction; its result, once that is durable."""

    def check(self) -> None:
        """Raise what makes this ledger unusable, such as `ForkedProcess` in a fork, before any lock is waited for.

        A fork has the locks of its parent's threads, but not the threads that would let go of them.
        """

    @property
    def failure(self) -> CounterpointError | None:
        """The error that ended it, for the custodian's log, if a commit did."""
        return None

    @abstractmethod
    def read(self, path: Path) -> LaunchRecord | None:
        """The row at a path."""

    def read_all(self, known: dict[Path, LaunchRecord | None]) -> None:
        """Bring the rows at these paths up to date; None stands for one that is not known, or not there."""
        for path in known:
            known[path] = self.read(path)

    @abstractmethod
    def opened(self) -> tuple[Intent, ...]:
        """The intents that have not been settled, in the order in which they were made."""

    def waiting(self) -> int:
        """How many requests are open: charged, and not answered yet."""
        return len(self.opened())

    @abstractmethod
    def history(self) -> tuple[HistoryEntry, ...]:
        """What has been done or refused, in order; public facts only, from which every refusal follows."""

    @abstractmethod
    def find(self, request: str) -> Intent | StoredAnswer | None:
        """What is on record under an id."""

    @abstractmethod
    def versions(self) -> "tuple[VersionLine, ...]":
        """The entries that say what the data were declared to be: where the session was opened, and each refresh."""

    @abstractmethod
    def verify(self) -> None:
        """Check that the record holds together: `LedgerTampered` if not."""

    def bind(
        self,
        fingerprint: str | None,
        log: AppendLog | None = None,
        *,
        rows: bytes | None = None,
        second_budget: bool = False,
        refreshed: str | None = None,
    ) -> None:
        """Note which data this record is about, or refuse other data, and keep the log of a stream from now on.

        `rows` is a digest of the data as it was given: a new record is refused if another one of the same ledger has
        these rows, unless `second_budget` insists. `refreshed` is the fingerprint of the current version, if the data
        were refreshed. A ledger in memory has nothing to compare with.
        """

    def note_rows(self, rows: bytes | None, *, second_budget: bool = False) -> None:
        """Note the rows of a next version beside those of the versions before it, or refuse them if another has them.

        It is noted whatever the rows are, also if they are the same: what is on record must not tell of that.
        """

    def answered(self, path: Path, who: str, most: int, request: str | None = None) -> list[AnsweredAsk]:
        """The newest asks of a principal at or below a path that were answered, in order; at most `most`.

        With `request`, the one with this id, if it is one of them.
        """
        raise NotAllowed("a session in memory keeps no list of its answers; give it a ledger")

    def receipt(self, request: str) -> tuple[Signed, Disclosure]:
        """A signed receipt for a request that was answered, and what opens its answer to others."""
        raise NotAllowed("a session in memory keeps no record that a receipt could name; give it a ledger")

    def record(self) -> Iterator[str]:
        """The public record as JSON lines."""
        raise NotAllowed("a session in memory has a history, and no record that others could check; give it a ledger")

    def head(self) -> int:
        """The number of the last entry: while it stays, nothing has changed."""
        raise NotAllowed("a session in memory has no chain of entries; give it a ledger")

    def beside(self) -> tuple[str, ...]:
        """Which other records are about the same data, as far as is known: what is lost there adds to this one."""
        return ()

    def close(self) -> None:
        """Let go of what is held open."""


def new_request_id() -> str:
    """An id for a request that has none: ids of one moment begin alike, and databases keep them together.

    >>> len(new_request_id()), new_request_id() != new_request_id()
    (36, True)
    """
    return f"{time.time_ns() // 10**6:012x}{fresh(12).hex()}"


def not_lost(request: str, done: StoredAnswer) -> StoredAnswer:
    """The answer on record; `Halted` if it was lost."""
    if isinstance(done.answer, Lost):
        raise lost_answer(request)
    return done


def conflict(request: str) -> RequestConflict:
    """The error for an id that was used before."""
    return RequestConflict(f"request {request[:80]!r} was made before with another body; choose another id")


def never_made() -> LedgerError:
    """The error for settling what was never begun."""
    return LedgerError("this request was never made; nothing was stored")


def moved_on() -> LedgerError:
    """The error for a step that came too late; the protocol keeps this from happening."""
    return LedgerError("the mechanism has moved on since this request was made; nothing was stored")
