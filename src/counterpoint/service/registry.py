"""The data sets of a service, each with one budget, and which principal reaches which session in them.

A data set is registered once: a source, a rule and a name in the ledger. All its sessions were granted out of that one
budget. A session's id is its data set and its path: `people` is the whole, `people.0` the first grant, `people.0.2` a
budget that its analyst delegated further.

>>> SessionId.read("people.0.2")
SessionId(data_set='people', path=(0, 2))
>>> str(SessionId("people", (0, "str:CA")))
'people.0.str%3ACA'
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path as FilePath
from typing import NamedTuple

from counterpoint.composition.rule import Rule
from counterpoint.errors import (
    DataLost,
    InvalidParameter,
    LedgerError,
    LedgerRolledBack,
    LedgerTampered,
    NotAllowed,
)
from counterpoint.ledger import admin
from counterpoint.ledger.chain import Head
from counterpoint.ledger.location import Durable, hold, release
from counterpoint.ledger.state import Grant, LaunchRecord, Path, granted
from counterpoint.queries.source import Source
from counterpoint.service.data_set import Binding, DataSet
from counterpoint.service.identity import Identity, Principal, Role
from counterpoint.service.outages import Outage
from counterpoint.session.given_away import GivenAway
from counterpoint.session.handle import Handle
from counterpoint.session.session import Session
from counterpoint.session.subsessions import Partition
from counterpoint.wire.problems import NotFound, SessionId, unknown

OPERATOR = "operator"
"""Who is on record for what the commands do."""
_MOST_FOUND = 10_000
_log = logging.getLogger("counterpoint.service")


def _read_root(data_set: DataSet) -> None:
    data_set.session()._engine.ledger.read(())


def _ask_twice(ask: Callable[[], object]) -> None:
    """Ask again on a new connection: only the first question finds one lost that was idle."""
    try:
        ask()
    except (LedgerError, DataLost):
        ask()


class GrantedSession(NamedTuple):
    """A session that was granted out of the budget of a whole one, and its row as it was read."""

    id: SessionId
    grant: Grant
    row: LaunchRecord
    whole: Session

    @property
    def session(self) -> Session:
        """The session itself."""
        found = self.whole.at(self.id.path)
        assert isinstance(found, Session)
        return found


class Verification(NamedTuple):
    """When this process verified a record, how many seconds that took, and the fault that was found, if any."""

    at: float
    took: float
    failure: str | None = None


class SetAside(NamedTuple):
    """A data set that is not served, as its record cannot be trusted: why not, and when it is looked at again."""

    data_set: DataSet
    why: LedgerError
    again: float


_UNTRUSTED = (LedgerRolledBack, LedgerTampered)
"""Errors of one record, which keep its data set from being served, and no other."""
_LOOKED_AT_AGAIN = 10.0
"""Seconds after which a request may try again to open a data set that was set aside."""


class Registry:
    """The data sets of one ledger, and its people."""

    def __init__(self, place: Durable, *, backups: FilePath | None = None) -> None:
        self.place = place
        self.backups = backups
        """The folder that backups go to, if there are any."""
        self._lock = threading.Lock()
        self._opening = threading.Lock()
        """Held while a data set is opened, which may take seconds; every request needs the other lock."""
        self._store = hold(place, existing=False)
        self._signer: str | None = None
        try:
            self._identity = self._known_people()
        except BaseException:
            release(self._store)
            raise
        self._outage = Outage("principals and keys")
        self._data_sets: dict[str, DataSet] = {}
        self._set_aside: dict[str, SetAside] = {}
        self.verifications: dict[str, Verification] = {}
        self._closed = False

    def register(self, name: str, source: Callable[[], Source], rule: Rule, *, second_budget: bool = False) -> DataSet:
        """Add a data set, with its budget."""
        return self.add(name, Binding(source, rule, second_budget=second_budget))

    def add(
        self, name: str, binding: Binding, renewed: Callable[[], Binding] | None = None, *, refresh: bool = False
    ) -> DataSet:
        """Add a data set, and how it is bound now and later; with `refresh`, its data become the next version.

        One whose record cannot be trusted is set aside, and the others served.
        """
        if name in self._data_sets or name in self._set_aside:
            raise InvalidParameter(f"there is a data set {name!r} already")
        made = DataSet(name, binding, self.place, renewed)
        if refresh:
            made.open_as_next_version(OPERATOR)
        if binding.second_budget:
            message = f"{name} has a budget of its own beside others for the same rows: losses add up"
            _log.warning("%s", message, extra={"said": {"message": message}})
        with self._opening:
            self._serve(made)
        return made

    def _serve(self, made: DataSet) -> None:
        """Open a data set, or set it aside."""
        try:
            made.session()
        except _UNTRUSTED as error:
            made.outage.begin(error)
            self._set_aside[made.name] = SetAside(made, error, time.monotonic() + _LOOKED_AT_AGAIN)
            return
        made.outage.end()
        self._signer = self.place.signer
        self._set_aside.pop(made.name, None)
        self._data_sets[made.name] = made

    @property
    def set_aside(self) -> dict[str, str]:
        """The data sets that are not served, and why not."""
        return {name: f"{type(found.why).__name__}: {found.why}" for name, found in self._set_aside.items()}

    def recover(self, name: str, *, by: str) -> str:
        """Open the record of a data set that is behind its witness, with its budget spent, and serve it again."""
        with self._opening:
            found = self._set_aside.get(name)
            if found is None:
                raise NotAllowed(f"the record of {name!r} is served as it is, so there is nothing to recover")
            done = admin.recover(self.place, name, by=by)
            self._serve(found.data_set)
        return done

    def limit_launches(self, most: int) -> None:
        """Let no session have more launches than this."""
        for data_set in self._all():
            data_set.limit_launches(most)

    def _all(self) -> list[DataSet]:
        return [*self._data_sets.values(), *(found.data_set for found in self._set_aside.values())]

    @property
    def identity(self) -> Identity:
        """The people. A database that was lost is opened anew."""
        with self._lock:
            if not self._store.is_open and not self._closed:
                self._open_anew()
            self._outage.end()
            return self._identity

    def _open_anew(self) -> None:
        try:
            release(self._store, broken=True)
            self._store = hold(self.place, existing=True)
            self._identity.close()
            self._identity = self._known_people()
        except LedgerError as error:
            self._outage.begin(error)
            raise

    def _known_people(self) -> Identity:
        return Identity(self._store, self.place, alone=not self.place.in_postgres)

    @property
    def signer(self) -> str:
        """The public key that records and receipts are signed with, from the first data set on."""
        return self._signer or "not known yet: there is no data set"

    @property
    def names(self) -> tuple[str, ...]:
        """The data sets that are served."""
        return tuple(self._data_sets)

    @property
    def bound(self) -> tuple[str, ...]:
        """Those whose rows are the ones on record: not those that were changed in place and wait for a refresh."""
        return tuple(name for name in self.names if not self._data_sets[name].has_other_rows())

    def data_set(self, name: str) -> DataSet:
        """One of them."""
        return self._served(name, name)

    def _served(self, name: str, text: str) -> DataSet:
        """A data set that is served. `text` is what the caller asked for."""
        found = self._data_sets.get(name) or self._looked_at_again(name)
        if found is not None:
            return found
        if not self._set_aside:
            raise unknown(text)
        # the same words for every name: who has a grant in a record that cannot be trusted is not known
        raise NotFound(
            f"{text[:80]!r} was not found, or is not yours, or its data set is closed until its custodian has looked"
        )

    def _looked_at_again(self, name: str) -> DataSet | None:
        """A data set that was set aside, if it can be opened by now: its newest copy was put back, or recovered."""
        if name not in self._set_aside:
            return None
        with self._opening:
            found = self._set_aside.get(name)
            if found is not None and time.monotonic() >= found.again:
                self._serve(found.data_set)
            return self._data_sets.get(name)

    def verified(self, name: str) -> Verification:
        """Verify the record of a data set, and keep the result."""
        began, failure = time.time(), None
        try:
            self.data_set(name).session()._engine.ledger.verify()
        except LedgerTampered as error:
            failure = str(error)
        found = Verification(began, time.time() - began, failure)
        self.verifications[name] = found
        return found

    def head(self, name: str) -> Head:
        """How far the chain of a data set has come."""
        self.data_set(name).session()
        with self._store.lock:
            header = self._store.header(name)
        if header is None:
            raise unknown(name)
        return header.head

    def entries(self, name: str) -> list[bytes]:
        """The entries of the chain of a data set."""
        self.data_set(name).session()
        with self._store.lock:
            return [data for _, data in self._store.entries(name, 0)]

    def ledger_bytes(self) -> int:
        """How large the database of the ledger is."""
        _ = self.identity  # which opens the database anew, if it was lost
        with self._store.lock:
            return self._store.size()

    def must_answer(self) -> None:
        """Ask every ledger, and the people, for something; `LedgerError` if one does not answer."""
        for data_set in tuple(self._data_sets.values()):
            _ask_twice(partial(_read_root, data_set))
        _ask_twice(self._read_people)

    def _read_people(self) -> None:
        self.identity.principals()

    def grantee(self, name: str) -> str:
        """The name, if it is that of an analyst: a grant to another would be charged, and no key could use it."""
        known = {one.name: one for one in self.identity.principals()}
        found = known.get(name)
        if found is None or found.ended is not None or found.role != Role.ANALYST:
            analysts = sorted(one.name for one in known.values() if one.role == Role.ANALYST and one.ended is None)
            raise InvalidParameter(
                f"{name[:80]!r} is not an analyst, and only an analyst can be granted a session: "
                + (f"analysts are {', '.join(analysts)[:200]}" if analysts else "there are no analysts yet")
                + "; `counterpoint keys new NAME --role analyst`, or POST /v1/principals, makes one"
            )
        return name

    def granted(self, name: str) -> Iterator[GrantedSession]:
        """The sessions that were granted out of a data set's budget, in order."""
        whole = self.data_set(name).session()
        for path, row in GivenAway.of(whole).rows().items():
            found = granted(row)
            if found is not None:
                yield GrantedSession(SessionId(name, path), found, row, whole)

    def reached(self, who: Principal, text: str) -> Session | Handle | Partition:
        """The session, handle or partition with this id, for a principal who may work there.

        Other people's sessions look as if they did not exist.
        """
        id = SessionId.read(text)
        whole, known = self._served(id.data_set, text).opened()
        if (who, id.path) in known:
            return known[who, id.path]
        if who.role is not Role.CUSTODIAN and not self._is_theirs(whole, who, id.path):
            raise unknown(text)
        found = whole.acting_as(who.name).at(id.path)
        if found is None:
            raise unknown(text)
        if len(known) >= _MOST_FOUND:
            known.clear()
        known[who, id.path] = found
        return found

    def _is_theirs(self, whole: Session, who: Principal, path: Path) -> bool:
        """Whether a path lies in a session that was granted to this analyst."""
        rows = (whole._engine.ledger.read(path[:length]) for length in range(1, len(path) + 1))
        grants = [grant for grant in (granted(row) for row in rows if row is not None) if grant is not None]
        return who.role is Role.ANALYST and bool(grants) and grants[-1].to == who.name

    def close(self) -> None:
        """Let go of every ledger."""
        if self._closed:
            return
        self._closed = True
        for data_set in self._all():
            data_set.close()
        self._identity.close()
        release(self._store)


def later(until: datetime | None) -> datetime | None:
    """When a grant ends, if that is ahead: one that has ended already would be charged, and never used.

    >>> later(datetime(2001, 1, 1, tzinfo=UTC))
    Traceback (most recent call last):
    ...
    counterpoint.errors.InvalidParameter: until must be in the future: a grant that ends on 2001-01-01 could not be ...
    """
    if until is not None and until.tzinfo is not None and until <= datetime.now(UTC):
        raise InvalidParameter(f"until must be in the future: a grant that ends on {until:%Y-%m-%d} could not be used")
    return until
