"""The register of a ledger as a process uses it: who may act, read and changed through the chain.

Every read is compared, in memory, with what the chain says was left: a row that was changed, put back or deleted in the
database is refused at once, not only when the ledger is verified. Each read also follows the chain, so a change made by
another process counts from the next request on. A change is one transaction; it has happened once the witness has seen
it.

>>> import tempfile, os.path
>>> from counterpoint.ledger.location import Durable, hold, release
>>> place = Durable(os.path.join(tempfile.mkdtemp(), "ledger.db"))
>>> store = hold(place, existing=False)
>>> register = Register(store, place)
>>> with register.changing("olga") as change:
...     change.put(StoredPrincipal("ann", "analyst", made=0), "principal 'ann' was added, an analyst")
>>> [one.name for one in register.principals()]
['ann']
>>> register.close()
>>> release(store)
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from counterpoint.errors import InvalidParameter, LedgerBusy, LedgerTampered, NotAllowed, Unsealable
from counterpoint.ledger import headers
from counterpoint.ledger.chain import API_KEY, PRINCIPAL, Head, link, read_entry
from counterpoint.ledger.location import Durable, release
from counterpoint.ledger.register_check import Registered, RegisterSigner
from counterpoint.ledger.sealing import DataKeys
from counterpoint.ledger.store.records import REGISTER, PrincipalTables, StoredKey, StoredPrincipal
from counterpoint.ledger.store.store import ChangeSet, Store
from counterpoint.ledger.verification import started


class Change:
    """What is changed in one transaction; reads see it."""

    def __init__(
        self, people: PrincipalTables, registered: Registered, changes: ChangeSet, signer: RegisterSigner
    ) -> None:
        self._people = people
        self._registered = registered
        self._changes = changes
        self._signer = signer

    def principal(self, name: str) -> StoredPrincipal | None:
        """One principal."""
        found = self._people.principal(name)
        self._registered.must_be_as_left(PRINCIPAL, name, found)
        return found

    def api_key(self, id: str) -> StoredKey | None:
        """One key, by its public id."""
        found = self._people.api_key(id)
        self._registered.must_be_as_left(API_KEY, id, found)
        return found

    def api_keys(self) -> list[StoredKey]:
        """All keys, the oldest first."""
        found = self._people.api_keys()
        self._registered.must_be_all(API_KEY, {one.id: one for one in found})
        return found

    def put(self, row: StoredPrincipal | StoredKey, what: str) -> None:
        """Store a principal or a key; `what` is the line of the history."""
        if isinstance(row, StoredPrincipal):
            self._people.put_principal(row)
            self._append(PRINCIPAL, row.name, what, row)
        else:
            self._people.put_api_key(row)
            self._append(API_KEY, row.id, what, row)

    def delete(self, key: StoredKey, what: str) -> None:
        """Delete a key that has ended."""
        self._people.delete_api_key(key.id)
        self._append(API_KEY, key.id, what, None)

    def _append(self, kind: str, id: str, what: str, row: StoredPrincipal | StoredKey | None) -> None:
        before = self._changes.head.hash
        self._registered.step(self._signer.append(self._changes, kind, id, what, row), before)


class Register:
    """The register of the ledger at a place, over the store that holds it; made if the ledger is new."""

    def __init__(self, store: Store, place: Durable) -> None:
        assert isinstance(store, PrincipalTables)
        self._store = store
        self._people: PrincipalTables = store
        self._witness = place.witness_file()
        with store.lock:
            if not store.headers():
                place.make_key_beside()
            master = place.master_key()
            found = started(store, REGISTER, self._witness, master, self._writing)
            if found is None:
                headers.must_have_key(master)
                assert master is not None
                with self._writing():
                    headers.make_register(store, master)
                found = started(store, REGISTER, self._witness, master, self._writing)
            assert found is not None and found.registered is not None
            self._key = _signing(DataKeys(REGISTER, master, found.header.keys))
            self._genesis, self._head, self._known = found.header.genesis, found.header.head, found.registered
            self._noted = Head(0, b"")
            self._clock = LedgerClock()
            for name in store.headers():
                self._clock.see(self._last_written(name))

    def now(self) -> int:
        """Seconds since 1970, and never less than this process or its register has seen: no expired key revives."""
        self._clock.see(self._known.latest)
        return self._clock.now()

    def look_up_key(self, id: str) -> tuple[StoredKey, StoredPrincipal] | None:
        """A key and its principal; None if there is no key of this id.

        `LedgerTampered` if one of the two is not stored as it was left.
        """
        with self._store.lock:
            head, key, holder = self._people.look_up_key(id)
            known = self._followed(head)
            known.must_be_as_left(API_KEY, id, key)
            if key is None:
                return None
            known.must_be_as_left(PRINCIPAL, key.principal, holder)
            return None if holder is None else (key, holder)

    def principals(self) -> list[StoredPrincipal]:
        """All principals, also those that ended, by name."""
        with self._reading() as known:
            found = self._people.principals()
            known.must_be_all(PRINCIPAL, {one.name: one for one in found})
            return found

    def api_keys(self) -> list[StoredKey]:
        """All keys, the oldest first."""
        with self._reading() as known:
            found = self._people.api_keys()
            known.must_be_all(API_KEY, {one.id: one for one in found})
            return found

    @contextmanager
    def changing(self, who: str) -> Iterator[Change]:
        """A transaction in which `who` changes principals and keys. After it, the change has happened and was seen."""
        with self._store.lock, self._writing():
            known = self._followed(self._store.begin(REGISTER)).copied()
            changes = ChangeSet(self._store, REGISTER, self._head)
            yield Change(self._people, known, changes, RegisterSigner(self._key, who))
            if changes.entries:
                self._store.write(changes)
                self._store.commit()
                self._head, self._known = changes.head, known
            else:
                self._store.rollback()
            if self._witness is not None and self._noted != self._head:
                # also what another process has changed, which this caller may take for its own change
                self._witness.note(REGISTER, *self._head, self._genesis, self._entries_after)
                self._noted = self._head

    def close(self) -> None:
        """Let go of the witness; the store is its owner's."""
        if self._witness is not None:
            self._witness.close()

    @contextmanager
    def _reading(self) -> Iterator[Registered]:
        """What the chain says at one moment, at which the database is read."""
        with self._store.lock:
            self._store.begin_reading()
            try:
                header = self._store.header(REGISTER)
                yield self._followed(None if header is None else header.head)
            finally:
                self._store.rollback()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Any error closes the connection, except a refusal, a missing lock or a missing key."""
        try:
            yield
        except (InvalidParameter, NotAllowed, LedgerBusy, LedgerTampered, Unsealable):
            self._store.rollback()
            raise
        except BaseException:
            release(self._store, broken=True)
            raise

    def _followed(self, head: Head | None) -> Registered:
        """What the chain says up to this head, which must continue what this process has seen of it."""
        if head == self._head:
            return self._known
        known, reached = self._known.copied(), self._head
        for number, data in self._entries_after(reached.number):
            if head is None or number > head.number:
                break
            known.step(read_entry(data, number), reached.hash)
            reached = Head(number, link(reached.hash, data))
        if head is None or reached != head:
            raise LedgerTampered(
                "the register of this ledger does not continue what this process has seen of it: an entry was changed "
                "or taken away, or an old copy was put back, while it was open"
            )
        self._head, self._known = head, known
        return known

    def _last_written(self, name: str) -> int:
        """When the last entry of a session was written."""
        header = self._store.header(name)
        data = None if header is None else self._store.entry(name, header.head.number)
        return 0 if data is None else read_entry(data).at

    def _entries_after(self, number: int) -> Iterator[tuple[int, bytes]]:
        return self._store.entries(REGISTER, number)


def _signing(keys: DataKeys) -> bytes:
    if not keys.usable:
        raise Unsealable(
            "who may use this ledger is signed with a key that the ledger's master key opens, and that one was not "
            "given: COUNTERPOINT_KEY_FILE=..., key_file in the configuration, or --key-file"
        )
    return keys.register_key()


class LedgerClock:
    """The clock by which API keys expire: seconds since 1970, never less than what was seen.

    A clock that is set back, by mistake or by a time server that others command, would make expired keys valid again.
    So the latest time on the chain counts, which outlives the process, or a later one seen since in this process.
    (The clock of grants is `ChangeSet.now`.)

    >>> clock = LedgerClock()
    >>> clock.see(later := clock.now() + 3600)
    >>> clock.now() == later
    True
    """

    __slots__ = ("latest",)

    def __init__(self, latest: int = 0) -> None:
        self.latest = latest

    def see(self, at: int) -> None:
        """It was so late."""
        self.latest = max(self.latest, at)

    def now(self) -> int:
        """How late it is."""
        self.see(int(time.time()))
        return self.latest
