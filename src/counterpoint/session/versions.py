"""The versions of a session's data: newer rows of the same units, under the same budget (theory, Versions).

A launch sees the version that is current then, and keeps it; the account goes on. Which version is made when, and what
is declared about it, is public, so it must not follow from the rows: a refresh is made by schedule or by decision, and
numbered. The rows of a version that was replaced are kept by choice; without them its handles say `DataReplaced`.

>>> import duckdb
>>> import counterpoint as cp
>>> ages = {"age": cp.number(0, 120)}
>>> march, april = (
...     cp.Table(duckdb.sql(f"SELECT {person} AS person, 41 AS age"), unit="person", rows_per_unit=1, columns=ages)
...     for person in (1, 2)
... )
>>> session = cp.Session(march, within=cp.PureDP(1))
>>> old = session.launch(cp.Laplace(epsilon=0.4, asks=9))
>>> session.refresh(april, note="monthly").number, session.loss
(2, PureDP(0.4))
>>> session.launch(cp.Laplace(epsilon=0.4)).data_version, old.data_version
(2, 1)
>>> old.ask(cp.count())
Traceback (most recent call last):
...
counterpoint.errors.DataReplaced: this was launched on version 1 of the data, whose rows were replaced and not kept: ...
"""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import NamedTuple

import msgspec

from counterpoint.encoding import decode
from counterpoint.errors import DataReplaced, NotCovered
from counterpoint.ledger.commands import Command, LaunchCommand, QuestionCommand
from counterpoint.ledger.custodian_commands import RefreshCommand
from counterpoint.ledger.ledger import Ledger, VersionLine
from counterpoint.ledger.read_commands import read_command
from counterpoint.ledger.state import SessionState
from counterpoint.queries.source import Source
from counterpoint.schema.versions import DeclaredData, why_not_next
from counterpoint.sources.replaced import replaced, without_rows


class DataVersion(msgspec.Struct, frozen=True):
    """A version of a data set: its number, and when it came (in seconds since 1970).

    The rest is for custodians and auditors, and empty for others: what is declared, the fingerprint by which a ledger
    knows the rows again, who refreshed the data, and their note.
    """

    number: int
    at: int
    declared: DeclaredData | None = None
    fingerprint: str = ""
    who: str = ""
    note: str = ""
    words: str = ""
    """The declaration in words."""

    @property
    def public(self) -> "DataVersion":
        """What analysts see of it."""
        return DataVersion(self.number, self.at)


class VersionedSource(NamedTuple):
    """A version of the data, by its number, as this process can read it."""

    number: int
    source: Source


class DataVersions:
    """The versions of a data set that this process can read, and the one that it launches on.

    A version without rows stays as what was declared. Rows are let go of once no request is about them: a request that
    was begun is finished on the rows that it was begun on.
    """

    def __init__(
        self, source: Source, number: int = 1, on_record: Sequence[DataVersion] = (), *, has_rows: bool = True
    ) -> None:
        self._lock = Lock()
        self._current = VersionedSource(number, source)
        self._sources = {number: source}
        self._declared = {version.number: version.declared for version in on_record}
        self._gone = set() if has_rows else {number}
        self._busy: dict[int, int] = {}
        self._let_go: dict[int, Callable[[], None]] = {}
        self.is_behind = False
        """Whether another process has refreshed the data: this one has to bind them anew."""

    @property
    def current(self) -> VersionedSource:
        """The version that is launched on."""
        return self._current

    def source(self, number: int) -> Source:
        """The source of a version; without rows, what was declared about it."""
        with self._lock:
            found = self._sources.get(number)
            if found is None:
                declared = self._declared.get(number)
                if declared is None:
                    raise DataReplaced(f"version {number} of the data is not here: its rows were replaced and not kept")
                found = self._sources[number] = replaced(declared)
                self._gone.add(number)
            return found

    def note_newer(self, asked: Command) -> None:
        """A request for this version was refused, since there is a newer one."""
        if isinstance(asked, LaunchCommand | QuestionCommand) and asked.sees == self._current.number:
            self.is_behind = True

    def has_rows(self, number: int) -> bool:
        """Whether the rows of a version can be read."""
        with self._lock:
            return number in self._sources and number not in self._gone

    def keep(self, number: int, source: Source) -> None:
        """Read an earlier version from these rows."""
        with self._lock:
            self._sources[number] = source
            self._gone.discard(number)

    def move_on(self, number: int, source: Source, *, keep: bool, let_go: Callable[[], None] | None = None) -> None:
        """Launch on a new version. Without `keep` the rows before it go: `let_go` frees them once they are not read."""
        with self._lock:
            before = self._current
            self._current = VersionedSource(number, source)
            self._sources[number], self.is_behind = source, False
            if keep or before.number in self._gone or before.source.log is not None:  # a log is read by all versions
                return
            self._sources[before.number] = without_rows(before.source)
            self._gone.add(before.number)
            if let_go is not None:
                self._let_go[before.number] = let_go
        self._free(before.number)

    def begin_reading(self, number: int) -> bool:
        """Whether the rows of a version can be read; they stay until `end_reading`."""
        with self._lock:
            self._busy[number] = self._busy.get(number, 0) + 1
            return number in self._sources and number not in self._gone

    def end_reading(self, number: int) -> None:
        """One reader less."""
        with self._lock:
            self._busy[number] -= 1
        if self._let_go:
            self._free(number)

    def _free(self, number: int) -> None:
        with self._lock:
            let_go = self._let_go.pop(number, None) if not self._busy.get(number) else None
        if let_go is not None:
            let_go()


def current_number(ledger: Ledger) -> int:
    """The number of the current version on record."""
    row = ledger.read(())
    return row.state.data_version if row is not None and isinstance(row.state, SessionState) else 1


def versions_on_record(ledger: Ledger) -> tuple[DataVersion, ...]:
    """All versions, in order, as the record has them."""
    return tuple(_on_record(line) for line in ledger.versions())


def _on_record(line: VersionLine) -> DataVersion:
    fact = line.fact
    if fact.kind == "open":
        choice = line.body.partition(b"\n")[2]
        declared = decode(choice, DeclaredData) if choice else None
        return DataVersion(1, fact.at, declared, line.fingerprint, fact.who, "", _words(declared))
    made = read_command(line.body)
    assert isinstance(made, RefreshCommand)
    about = (made.declared, made.fingerprint, fact.who, made.note, _words(made.declared))
    return DataVersion(made.number, fact.at, *about)


def _words(declared: DeclaredData | None) -> str:
    return "" if declared is None else declared.text


def must_follow(before: DeclaredData | None, source: Source) -> DeclaredData:
    """`NotCovered` unless the theorem covers these data as the next version; else, what was declared before."""
    why = source.why_not_refreshed
    if why is None and before is None:
        why = "the record does not say what was declared"
    if why is None and before is not None:
        why = why_not_next(before, source.declared()) or source.why_not_behind(before)
    if why is not None or before is None:
        raise NotCovered(
            f"these data are no next version: {why}. All versions are about the same units, with the same neighbours "
            "(theory, Versions); make a session of another name for other data, with a budget of its own"
        )
    return before
