"""The ledger: one row per mechanism, addressed by path; every change is an intent first and then settled.

The protocol is small so that a durable ledger can take the place of the one in memory without touching the engine
(SECURITY, "The ledger protocol"): `intent` checks and charges in one step and records a seed before anything is drawn;
`settle` stores the state and the answer together. A request id that was answered gets the stored answer, for ever; with
another body it is a conflict. An intent that was never settled is finished from its own seed, never admitted again.

>>> ledger = MemoryLedger()
>>> ledger.read(("nobody",)) is None
True
"""

import os
import threading
from abc import abstractmethod
from collections.abc import Callable

from counterpoint.encoding import Plain, Tagged, Value
from counterpoint.errors import LedgerError
from counterpoint.mechanisms.mechanism import Mechanism, State

Path = tuple[int | str, ...]
"""Where a mechanism lives: the root is (), its children (0,), (1,), ..., a part ("CA",) below its partition."""


class Row(Tagged, Value, frozen=True):
    """A launched mechanism: its state (None: halted), how often it has stepped, how much of a stream it has read."""

    mechanism: Mechanism
    state: State | None
    version: int = 0
    cursor: int | str = 0


class Intent(Tagged, Value, frozen=True):
    """What is about to be done: by which request, where, on which version of row and data, with which coins."""

    request: str
    body: bytes
    path: Path
    version: int
    pin: int | str
    seed: bytes


class Done(Tagged, Value, frozen=True):
    """A request that has been answered before, and what was said."""

    body: bytes
    answer: Plain


class Fact(Tagged, Value, frozen=True):
    """One public line of the history: what happened where. It holds nothing that was computed from data."""

    kind: str
    path: Path
    what: str


class Plan(Tagged, Value, frozen=True):
    """What an intent changes at once (rows that are charged) and where its answer will be settled."""

    path: Path
    version: int
    pin: int | str = 0
    charged: tuple[tuple[Path, Row], ...] = ()


class Ledger:
    """What the engine needs of a record."""

    @abstractmethod
    def intent(self, request: str, body: bytes, fact: Fact, plan: Callable[[], Plan]) -> Intent | Done:
        """Look the request up; if it is new, run `plan` (which checks, and may refuse by raising) and record it.

        All of it is one step: nobody else charges in between, and a refusal leaves nothing behind.
        """

    @abstractmethod
    def settle(self, intent: Intent, row: Row, answer: Plain) -> None:
        """Store the row and the answer together, if the row still has the version that the intent was made for."""

    @abstractmethod
    def read(self, path: Path) -> Row | None:
        """The row at a path."""

    @abstractmethod
    def history(self) -> tuple[Fact, ...]:
        """What has been done, in order; public facts only."""


class MemoryLedger(Ledger):
    """The ledger of a session that lives and dies with its process. Threads may share it."""

    def __init__(self, seeds: Callable[[], bytes] = lambda: os.urandom(32)) -> None:
        self._seeds = seeds
        self._lock = threading.RLock()
        self._rows: dict[Path, Row] = {}
        self._open: dict[str, Intent] = {}
        self._done: dict[str, Done] = {}
        self._facts: list[Fact] = []

    def intent(self, request: str, body: bytes, fact: Fact, plan: Callable[[], Plan]) -> Intent | Done:
        """Check, charge and record, under one lock."""
        with self._lock:
            known = self._done.get(request) or self._open.get(request)
            if known is not None:
                if known.body != body:
                    raise LedgerError(f"request {request} was made before with another body; choose another id")
                return known
            planned = plan()
            intent = Intent(request, body, planned.path, planned.version, planned.pin, self._seeds())
            self._rows.update(planned.charged)
            self._open[request] = intent
            self._facts.append(fact)
            return intent

    def settle(self, intent: Intent, row: Row, answer: Plain) -> None:
        """Store both, once."""
        with self._lock:
            before = self._rows.get(intent.path)
            if before is not None and before.version != intent.version:
                raise LedgerError("the mechanism has moved on since this request was made")
            self._rows[intent.path] = row
            self._done[intent.request] = Done(intent.body, answer)
            del self._open[intent.request]

    def read(self, path: Path) -> Row | None:
        """The row at a path."""
        with self._lock:
            return self._rows.get(path)

    def history(self) -> tuple[Fact, ...]:
        """What has been done, in order."""
        with self._lock:
            return tuple(self._facts)
