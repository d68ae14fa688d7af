"""The ledger: one row per mechanism, addressed by path; every change is an intent first and then settled.

The protocol is small, so that the engine does not know which ledger it runs on (SECURITY, "The ledger protocol"):
`intent` checks and charges in one step and records a seed before anything is drawn; `settle` stores the state and the
answer together, and only then is the answer released. A request id that was answered gets the stored answer, for ever;
with another body it is a conflict. At each path at most one intent is open; whoever comes next is given that one to
finish, from its own seed, before it may make another: it is never admitted, charged or drawn for again.

>>> ledger = MemoryLedger()
>>> ledger.read(("nobody",)) is None
True
"""

import threading
import time
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NoReturn

import msgspec

from counterpoint.composition.rules.rule import Account
from counterpoint.encoding import Plain, Tagged, Value
from counterpoint.errors import LedgerError, RequestConflict, SecretLeak
from counterpoint.mechanisms.mechanism import Mechanism, State
from counterpoint.randomness.fresh import fresh
from counterpoint.randomness.process import Owner
from counterpoint.randomness.secure import SAMPLER_VERSION
from counterpoint.sources.streams.log import Log

Path = tuple[int | str, ...]
"""Where a mechanism lives: the root is (), its children (0,), (1,), ..., a part ("str:CA",) below its partition."""


class Node(State, Value, frozen=True):
    """The state of a composition whose children have rows of their own: its account, and how many there are.

    It is public: nothing in it was computed from data, so it is stored in the open and can be read without a key.
    """

    account: Account
    launched: int = 0
    sequential: bool = False


class Sealed(State, Value, frozen=True):
    """Stands for a state that cannot be unsealed: whoever only looks may see that there is one; nobody can step it."""


class Faulty(State, Value, frozen=True):
    """Stands for the state of a mechanism whose code failed in a step, and for the answer to the request that did it.

    The step is not made again: it would fail again, and coins that were tossed for one answer must not make another.
    That it failed is all that is on record, as why it did would tell of the data.
    """


class Row(Tagged, Value, frozen=True):
    """A launched mechanism: its state (None: halted), how often it has stepped, how much of a stream it has read.

    `by` is the column that a partition cuts the data by; its children are the parts. `of` is what a mechanism follows
    of a stream's records: a field, several of them, or the records as such.
    """

    mechanism: Mechanism
    state: State | None
    version: int = 0
    cursor: int | str = 0
    by: str | None = None
    of: str | tuple[str, ...] | None = None


class Intent(msgspec.Struct, frozen=True):
    """What is about to be done: by which request, where, on which version of row and data, with which coins.

    `row` is the row as the intent found it (None: it is about to be made); `entry` is its place in the record. A seed
    is never shown or pickled.
    """

    request: str
    body: bytes
    path: Path
    version: int
    pin: int | str
    seed: bytes
    sampler: int = SAMPLER_VERSION
    row: Row | None = None
    prompt: bool = False
    entry: int = 0

    def __repr__(self) -> str:
        return f"Intent({self.request!r}, {self.path!r}, version={self.version})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []

    def __reduce__(self) -> NoReturn:
        raise SecretLeak("an intent was to be copied or pickled, and its seed with it")


class Done(msgspec.Struct, frozen=True):
    """A request that has been answered before, and what was said."""

    body: bytes
    answer: Plain

    def __repr__(self) -> str:
        return "Done(...)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []


class Fact(Tagged, Value, frozen=True):
    """One public line of the history: what happened where. It holds nothing that was computed from data."""

    kind: str
    path: Path
    what: str


class Plan(msgspec.Struct, frozen=True):
    """Where the answer will be settled, and what is changed at once: the row at the fact's path, if it is charged.

    `row` is the row where the answer will be settled, if there is one. `prompt` says that it will be computed in no
    time, so that others may wait for it.
    """

    path: Path
    version: int
    pin: int | str = 0
    row: Row | None = None
    charged: Row | None = None
    prompt: bool = False


Read = Callable[[Path], Row | None]
"""Reads rows, as they are inside the step that is being made."""
Compute = Callable[[Intent], tuple[Row, Plain]]
"""Works out what an intent comes to: the row after it, and the answer. It may be called again, and by any thread."""


class Ledger:
    """What the engine needs of a record."""

    name = "session"
    """Of the session that it is the record of."""

    def check(self) -> None:
        """Refuse to go on (`ForkedProcess` in a fork of the process that has it open); before any lock is waited for.

        A fork has the locks of its parent's threads, but not the threads that would let go of them.
        """

    @abstractmethod
    def intent(self, request: str, body: bytes, fact: Fact, plan: Callable[[Read], Plan]) -> Intent | Done:
        """Look the request up; if it is new, run `plan` (which checks, and may refuse by raising) and record it.

        All of it is one step: nobody else charges in between, and a refusal changes nothing. If another request is
        open at `fact.path`, that one's intent comes back: finish it, then ask again.
        """

    @abstractmethod
    def settle(self, intent: Intent, row: Row, answer: Plain) -> Plain:
        """Store the row and the answer together, if the row still has the version that the intent was made for.

        Gives what is on record: if somebody else has finished this intent meanwhile, what they stored.
        """

    def perform(
        self, request: str | None, body: bytes, fact: Fact, plan: Callable[[Read], Plan], compute: Compute
    ) -> Intent | Done:
        """Intent, computing and settling, under an id that is made up where none is given.

        If another request has to be finished first, its intent comes back, and nothing was done.
        """
        own = made_up() if request is None else request
        begun = self.intent(own, body, fact, plan)
        if isinstance(begun, Done) or begun.request != own:
            return begun
        return Done(body, self.settle(begun, *compute(begun)))

    @abstractmethod
    def read(self, path: Path) -> Row | None:
        """The row at a path."""

    @abstractmethod
    def opened(self) -> tuple[Intent, ...]:
        """The intents that have not been settled, in the order in which they were made."""

    @abstractmethod
    def history(self) -> tuple[Fact, ...]:
        """What has been done, in order; public facts only."""

    @abstractmethod
    def verify(self) -> None:
        """Check that the record holds together: `LedgerTampered` if not."""

    def bind(
        self,
        fingerprint: str | None,
        log: Log | None = None,
        *,
        rows: bytes | None = None,
        second_budget: bool = False,
    ) -> None:
        """Note which data this record is about, or refuse other data, and keep the log of a stream from now on.

        `rows` is a digest of the data as it was given: a new record is refused if another one of the same ledger has
        these rows, unless `second_budget` insists. What dies with its process need not care.
        """

    def beside(self) -> tuple[str, ...]:
        """Which other records are about the same data, as far as is known: what is lost there adds to this one."""
        return ()

    def close(self) -> None:
        """Let go of what is held open."""


class MemoryLedger(Ledger):
    """The ledger of a session that lives and dies with its process. Threads may share it."""

    def __init__(self, seeds: Callable[[], bytes] = lambda: fresh(32)) -> None:
        self._seeds = seeds
        self._lock = threading.RLock()
        self._rows: dict[Path, Row] = {}
        self._requests: dict[str, Intent] = {}
        self._at: dict[Path, Intent] = {}
        self._done: dict[str, Done] = {}
        self._facts: list[Fact] = []
        self._process = Owner(
            "a session in memory",
            "make a session here, or after the fork; processes share a budget through a ledger in PostgreSQL",
        )

    def check(self) -> None:
        """A fork has a copy of the account: with it, the budget could be spent once more."""
        self._process.check()

    def intent(self, request: str, body: bytes, fact: Fact, plan: Callable[[Read], Plan]) -> Intent | Done:
        """Check, charge and record, under one lock."""
        self.check()
        with self._lock:
            known = self._done.get(request) or self._requests.get(request)
            if known is not None:
                if known.body != body:
                    raise conflict(request)
                return known
            if fact.path in self._at:
                return self._at[fact.path]
            planned = plan(self.read)
            if planned.charged is not None:
                self._rows[fact.path] = planned.charged
            intent = Intent(request, body, planned.path, planned.version, planned.pin, self._seeds(), row=planned.row)
            self._requests[request] = self._at[intent.path] = intent
            self._facts.append(fact)
            return intent

    def settle(self, intent: Intent, row: Row, answer: Plain) -> Plain:
        """Store both, once."""
        self.check()
        with self._lock:
            done = self._done.get(intent.request)
            if done is not None:
                return done.answer
            if intent.request not in self._requests:
                raise never_made()
            before = self._rows.get(intent.path)
            if before is not None and before.version != intent.version:
                raise moved_on()
            self._rows[intent.path] = row
            self._done[intent.request] = Done(intent.body, answer)
            del self._requests[intent.request], self._at[intent.path]
            return answer

    def read(self, path: Path) -> Row | None:
        """The row at a path."""
        self.check()
        with self._lock:
            return self._rows.get(path)

    def opened(self) -> tuple[Intent, ...]:
        """What was begun and not finished."""
        self.check()
        with self._lock:
            return tuple(self._requests.values())

    def history(self) -> tuple[Fact, ...]:
        """What has been done, in order."""
        self.check()
        with self._lock:
            return tuple(self._facts)

    def verify(self) -> None:
        """There is nothing that could have been changed behind our back."""


def made_up() -> str:
    """The id of a request that nobody has given one: those of one moment begin alike, and databases keep them together.

    >>> len(made_up()), made_up() != made_up()
    (36, True)
    """
    return f"{time.time_ns() // 10**6:012x}{fresh(12).hex()}"


def conflict(request: str) -> RequestConflict:
    """The error for an id that was used before."""
    return RequestConflict(f"request {request[:80]!r} was made before with another body; choose another id")


def never_made() -> LedgerError:
    """The error for a step that nobody has asked for."""
    return LedgerError("this request was never made; nothing was stored")


def moved_on() -> LedgerError:
    """The error for a step that came too late; the protocol keeps this from happening."""
    return LedgerError("the mechanism has moved on since this request was made; nothing was stored")
