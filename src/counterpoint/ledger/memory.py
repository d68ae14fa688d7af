"""The ledger in memory: its records last as long as its process, and threads may share it.

>>> ledger = MemoryLedger()
>>> ledger.read(()), ledger.history(), ledger.opened()
(None, (), ())
"""

import threading
import time
from collections.abc import Callable
from typing import Any

from counterpoint.coins.keystream import fresh
from counterpoint.coins.secure import SAMPLER_VERSION
from counterpoint.ledger.chain import VERSIONS
from counterpoint.ledger.commands import Admission, Command
from counterpoint.ledger.ledger import (
    Begin,
    Intent,
    Ledger,
    Settle,
    StepOutcome,
    StoredAnswer,
    VersionLine,
    never_made,
)
from counterpoint.ledger.state import HistoryEntry, LaunchRecord, Path, refused
from counterpoint.process import Owner


class MemoryLedger(Ledger):
    """One lock around dictionaries."""

    def __init__(self, seeds: Callable[[], bytes] = lambda: fresh(32)) -> None:
        self._lock = threading.RLock()
        self._records = _Records(seeds)
        self._process = Owner(
            "a session in memory",
            "make a session here, or after the fork; processes share a budget through a ledger in PostgreSQL",
        )

    def check(self) -> None:
        """A fork has a copy of the account: with it, the budget could be spent once more."""
        self._process.check()

    def transact(self, job: Begin | Settle) -> Any:
        """Run it under the lock; a job changes nothing before its last check."""
        self.check()
        with self._lock:
            return job.run(self._records)

    def read(self, path: Path) -> LaunchRecord | None:
        """The row at a path."""
        self.check()
        with self._lock:
            return self._records.row(path)

    def opened(self) -> tuple[Intent, ...]:
        """What was begun and not finished."""
        self.check()
        with self._lock:
            return tuple(self._records.opened.values())

    def history(self) -> tuple[HistoryEntry, ...]:
        """What has been done or refused, in order."""
        self.check()
        with self._lock:
            return tuple(self._records.facts)

    def find(self, request: str) -> Intent | StoredAnswer | None:
        """What is known under an id."""
        self.check()
        with self._lock:
            return self._records.find(request)

    def versions(self) -> tuple[VersionLine, ...]:
        """The opening, and each refresh."""
        self.check()
        with self._lock:
            return tuple(self._records.versions)

    def verify(self) -> None:
        """Nothing here could have been changed from outside."""


class _Records:
    """The records of one session, as a transaction reads and changes them."""

    def __init__(self, seeds: Callable[[], bytes]) -> None:
        self._seeds = seeds
        self._rows: dict[Path, LaunchRecord] = {}
        self._at: dict[Path, Intent] = {}
        self._done: dict[str, StoredAnswer] = {}
        self.opened: dict[str, Intent] = {}
        self.facts: list[HistoryEntry] = []
        self.versions: list[VersionLine] = []

    def now(self) -> int:
        return max(int(time.time()), self.facts[-1].at if self.facts else 0)

    def find(self, request: str) -> Intent | StoredAnswer | None:
        return self._done.get(request) or self.opened.get(request)

    def must_be_new(self, kind: str, request: str) -> None:
        """What is not found was never there."""

    def waiting_at(self, path: Path) -> Intent | None:
        return self._at.get(path)

    def row(self, path: Path) -> LaunchRecord | None:
        return self._rows.get(path)

    def version(self, path: Path) -> int | None:
        row = self._rows.get(path)
        return None if row is None else row.version

    def begin(self, request: str, command: Command, body: bytes, fact: HistoryEntry, plan: Admission) -> Intent:
        seed = self._seeds()
        intent = Intent(
            request, body, plan.path, plan.version, plan.pin, seed, SAMPLER_VERSION, plan.row, command=command
        )
        if plan.charged is not None:
            self._rows[fact.path] = plan.charged
        self.opened[request] = self._at[intent.path] = intent
        self.facts.append(fact)
        if fact.kind in VERSIONS:
            self.versions.append(VersionLine(fact, body))
        return intent

    def refuse(self, request: str, body: bytes, fact: HistoryEntry, refusal: Exception) -> None:
        self.facts.append(refused(fact, refusal))

    def settled(self, intent: Intent, outcome: StepOutcome) -> StoredAnswer | None:
        done = self._done.get(intent.request)
        if done is None and intent.request not in self.opened:
            raise never_made()
        return done

    def settle(self, intent: Intent, outcome: StepOutcome) -> None:
        self._rows[intent.path] = outcome.row
        self._done[intent.request] = StoredAnswer(intent.digest, outcome.answer, intent.path)
        del self.opened[intent.request], self._at[intent.path]
