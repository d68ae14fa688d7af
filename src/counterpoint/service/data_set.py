"""One data set of a service: how it is bound, its whole session, its versions, and when it is opened anew.

>>> from counterpoint import Filter, PureDP, Stream
>>> binding = Binding(Stream, Filter(PureDP(1)))
>>> binding.rule
Filter(PureDP(1))
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from counterpoint.composition.rule import Rule
from counterpoint.errors import (
    CounterpointError,
    DataChanged,
    DataLost,
    InvalidParameter,
    InvalidRequest,
    LedgerError,
)
from counterpoint.ledger.commands import NewerVersion
from counterpoint.ledger.location import Durable
from counterpoint.ledger.state import Path
from counterpoint.queries.source import Source
from counterpoint.service.identity import Principal
from counterpoint.service.outages import Outage
from counterpoint.session.handle import Handle
from counterpoint.session.scope import make_version
from counterpoint.session.session import Session
from counterpoint.session.subsessions import Partition
from counterpoint.session.versions import DataVersion
from counterpoint.sources.table import Table
from counterpoint.wire.problems import _NAME

NOT_KEPT = "workers that share a ledger in PostgreSQL do not keep the rows of an earlier version: leave out keep"


class Binding(NamedTuple):
    """How a data set is bound: what reads its rows, and what is said about them when they become a version."""

    source: Callable[[], Source]
    rule: Rule
    label: str = ""
    """What the rows are read from, without its secrets: for custodians and auditors."""
    second_budget: bool = False
    keep: bool = False
    """Whether a refresh leaves the rows of the version before in memory, for every caller."""
    earlier: Callable[[], Sequence[Source]] = tuple
    """What reads the rows of earlier versions, whose handles answer on after a start."""


class SeenVersion(NamedTuple):
    """A next version that a custodian has looked at before confirming it: its number and its fingerprint."""

    number: int
    fingerprint: str


class DataSet:
    """A registered data set. Its session is opened when it is needed, and again after the database was lost.

    `renewed` reads the configuration anew: a refresh binds what it says then.
    """

    def __init__(
        self, name: str, binding: Binding, place: Durable, renewed: Callable[[], Binding] | None = None
    ) -> None:
        if not _NAME.fullmatch(name):
            raise InvalidParameter(f"a data set is named by 1 to 64 letters, digits, - and _, not {name!r}")
        self.name = name
        self._binding = binding
        self._renewed = renewed or (lambda: binding)
        self._place = place
        self._refreshing = threading.Lock()
        self._lock = threading.Lock()
        self._opened: Session | None = None
        self.outage = Outage(name)
        self._most_launches: int | None = None
        self.found: dict[tuple[Principal, Path], Session | Handle | Partition] = {}
        """What principals have reached in the session as it is open now.

        Where a path leads, and to whom it was granted, never changes. That a grant still stands is checked in the
        transaction of each request.
        """

    def session(self) -> Session:
        """The whole session. A ledger that has failed is opened anew, and data whose connection was lost is bound anew.

        Open requests are finished by their seeds. `DataLost` if the data cannot be reached now.
        """
        return self.opened()[0]

    def opened(self) -> tuple[Session, dict[tuple[Principal, Path], Session | Handle | Partition]]:
        """The whole session, and what principals have reached in it: these two go together."""
        with self._lock:
            if self._opened is not None:
                lost = _why_lost(self._opened)
                if lost is None:
                    self.outage.end()
                    return self._opened, self.found
                if isinstance(lost, NewerVersion):
                    self._binding = self._renewed()
                else:
                    self.outage.begin(lost)
                with suppress(LedgerError):
                    self._opened.close()
            self.found = {}
            try:
                self._opened = self._made(None)
            except (LedgerError, DataLost) as error:
                if self._opened is not None:
                    self.outage.begin(error)
                raise
            return self._opened, self.found

    def _made(self, refresh: str | None, by: str = "") -> Session:
        """The whole session; with `refresh`, on its data as the next version, which this person makes."""
        binding = self._binding
        made = Session(
            self._bound(),
            rule=binding.rule,
            ledger=self._place,
            name=self.name,
            second_budget=binding.second_budget,
            refresh=refresh,
            refreshed_by=by,
            earlier=binding.earlier(),
        )
        made._engine.most_launches = self._most_launches
        return made

    def open_as_next_version(self, by: str, note: str = "") -> DataVersion:
        """Open the session on its data as the next version, as the operator has confirmed; a new session as it is."""
        with self._lock:
            self.found = {}
            self._opened = self._made(_noted(self._binding, note), by)
            return self._opened.versions[-1]

    def _reopen_as_next_version(self, by: str, note: str) -> DataVersion:
        self._binding = self.next_binding()
        return self.open_as_next_version(by, note)

    def refresh(
        self,
        who: str,
        *,
        note: str = "",
        keep: bool = False,
        id: str | None = None,
        seen: SeenVersion | None = None,
    ) -> DataVersion:
        """Read the configuration and the rows anew, and make them the next version; the same id does it once.

        Asks go on meanwhile. Rows that are not kept are deleted once no request reads them. With `seen`, nothing
        happens if what is read now is another version than the one that was looked at.
        """
        if keep and self._place.in_postgres:
            raise InvalidParameter(NOT_KEPT)
        with self._refreshing:
            try:
                session = self.session().acting_as(who)
            except DataChanged:  # the rows were replaced in place, and the ledger was opened anew since
                return self._reopen_as_next_version(who, note)
            before, binding = session._seen, self.next_binding()
            source = binding.source()
            if seen is not None and not _is_seen(source, seen, session, id):
                _let_go(source)
                raise InvalidParameter(
                    "the rows, the declaration or the current version changed after you looked: look again"
                )
            said = _noted(binding, note)
            keep = keep or binding.keep
            let_go = before.source.close if isinstance(before.source, Table) else None
            budget = binding.second_budget
            made = make_version(
                session._engine, source, note=said, keep=keep, second_budget=budget, request=id, let_go=let_go
            )
            if session.data_version == before.number:
                _let_go(source)  # the version was made before, under this id
            else:
                self._binding = binding
            return made

    def next_binding(self) -> Binding:
        """What the configuration says now; the budget stays."""
        found = self._renewed()
        if found.rule != self._binding.rule:
            raise InvalidParameter("a refresh leaves the budget as it is: change it back in the configuration")
        return found

    def has_other_rows(self) -> bool:
        """Whether the rows or the declaration were changed in place, so that the ledger does not know them."""
        try:
            self.session()
        except DataChanged:
            return True
        return False

    def limit_launches(self, most: int) -> None:
        """Let no session of this data set have more launches than this."""
        with self._lock:
            self._most_launches = most
            self.found.clear()  # those have engines without the limit
            if self._opened is not None:
                self._opened._engine.most_launches = most

    def _bound(self) -> Source:
        """The data. At first a failure is an error of the configuration; later on the database is out of reach."""
        try:
            return self._binding.source()
        except (InvalidParameter, InvalidRequest):
            if self._opened is None:
                raise
        raise DataLost(f"the data of {self.name!r} cannot be reached now; repeat the request by its id")

    @property
    def source(self) -> Source:
        """The data."""
        return self.session()._source

    def close(self) -> None:
        """Let go of the ledger."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()


def _is_seen(source: Source, seen: SeenVersion, session: Session, request: str | None) -> bool:
    """Whether a next version is the one that was looked at, or was made by this request before."""
    own = None if request is None else session._engine.own_id(request)
    if own is not None and session._engine.ledger.find(own) is not None:
        return True
    return next_seen(source, session.data_version) == seen


def next_seen(source: Source, current: int) -> SeenVersion:
    """How these data are recognised as the version behind the current one."""
    return SeenVersion(current + 1, source.numbered(current + 1).fingerprint() or "")


def _let_go(source: Source) -> None:
    if isinstance(source, Table):
        source.close()


def _why_lost(session: Session) -> CounterpointError | None:
    """Why an open session cannot go on, if it cannot."""
    try:
        session._engine.ledger.check()
    except LedgerError as error:
        return session._engine.ledger.failure or error
    if session._engine.data.is_behind:
        return NewerVersion("another process has refreshed the data")
    return DataLost("the connection to the data was lost") if session._source.is_lost else None


def _noted(binding: Binding, note: str) -> str:
    """What is on record of a version: what it was read from, and the custodian's note."""
    return ": ".join(part for part in (binding.label, note) if part)
