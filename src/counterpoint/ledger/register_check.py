"""What a register says: which sessions a ledger has, and how every principal and API key was left.

A session's chain says nothing of what is beside it: a whole session could be deleted, and a role be changed, without
a trace. So a ledger has a register, made like a session: a chain, wrapped keys, a witness. An entry names a new
session with the genesis of its chain, or has the fingerprint of the row of a principal or an API key as the change
left it.

Anyone who can write to the database can append a link to a chain. Entries that decide authority are therefore signed:
an HMAC under a key of the ledger covers the entry and the head before it. An entry that was forged, or copied from an
earlier place, is refused by every process that has the key.

>>> signing, before = bytes(32), bytes(32)
>>> said = Entry(1, "principal", "", (), "ann is an analyst", "ann", state="f00d", who="olga")
>>> signed = msgspec.structs.replace(said, record=signature(said, before, signing))
>>> known = Registered(signing)
>>> known.step(signed, before)
>>> known.rows
{('principal', 'ann'): 'f00d'}
>>> known.step(signed, bytes(31) + b"x")
Traceback (most recent call last):
...
counterpoint.errors.LedgerTampered: entry 1 of the register was not made by this ledger: it is not signed with its key
"""

import hmac
from typing import NamedTuple

import msgspec

from counterpoint.errors import LedgerTampered
from counterpoint.ledger.chain import API_KEY, PRINCIPAL, SESSION, Entry
from counterpoint.ledger.store.records import REGISTER, PrincipalTables, StoredKey, StoredPrincipal
from counterpoint.ledger.store.store import ChangeSet, Store

_NAMES = {PRINCIPAL: "principal", API_KEY: "API key"}
Row = StoredPrincipal | StoredKey


def signature(entry: Entry, before: bytes, key: bytes) -> str:
    """The signature of an entry behind the head `before`."""
    covered = (before.hex(), entry.number, entry.kind, entry.body, entry.what, entry.state, entry.who)
    return hmac.digest(key, msgspec.json.encode(covered), "sha256").hex()


class RegisterSigner(NamedTuple):
    """Appends entries in the name of `who`, signed with the register's key."""

    key: bytes
    who: str

    def append(self, changes: ChangeSet, kind: str, id: str, what: str, row: Row | None) -> Entry:
        """Add how the row of a principal or an API key was left; None: it was deleted. `what` is for the history."""
        number, before = changes.head
        left = "" if row is None else row.fingerprint
        said = Entry(number + 1, kind, "", (), what, id, state=left, who=self.who)
        signed = signature(said, before, self.key)
        return changes.append(kind, "", (), what, id, state=left, record=signed, who=self.who)


class Registered:
    """The content of a register, read entry by entry; `signing` is None if the key is missing."""

    def __init__(self, signing: bytes | None) -> None:
        self._signing = signing
        self.sessions: dict[str, str] = {}
        """The genesis of each session's chain."""
        self.rows: dict[tuple[str, str], str] = {}
        """The fingerprint of each principal and key, by its kind and id."""
        self.latest = 0
        """The latest time at which an entry was written."""

    def copied(self) -> "Registered":
        """The same, to be followed further on trial."""
        other = Registered(self._signing)
        other.sessions, other.rows = dict(self.sessions), dict(self.rows)
        other.latest = self.latest
        return other

    def step(self, entry: Entry, before: bytes) -> None:
        """One entry further, from the head before it."""
        self.latest = max(self.latest, entry.at)
        if entry.kind == SESSION:
            if entry.body in self.sessions:
                raise LedgerTampered(f"entry {entry.number} of the register names session {entry.body!r} a second time")
            self.sessions[entry.body] = entry.state
        elif entry.kind in _NAMES:
            self._check_signature(entry, before)
            if entry.state:
                self.rows[entry.kind, entry.body] = entry.state
            else:
                self.rows.pop((entry.kind, entry.body), None)

    def _check_signature(self, entry: Entry, before: bytes) -> None:
        if self._signing is None:
            return
        if not hmac.compare_digest(signature(entry, before, self._signing), entry.record):
            raise LedgerTampered(
                f"entry {entry.number} of the register was not made by this ledger: it is not signed with its key"
            )

    def must_be_as_left(self, kind: str, id: str, row: Row | None) -> None:
        """`LedgerTampered` if a row is not the one that the last entry about it left."""
        known = self.rows.get((kind, id))
        if known != (None if row is None else row.fingerprint):
            raise LedgerTampered(f"the {_NAMES[kind]} {id[:80]!r} is {_difference(known, row)}")

    def compare(self, store: Store) -> None:
        """Every session, principal and key is there as it was registered, and no other is."""
        self._compare_sessions(store)
        assert isinstance(store, PrincipalTables)
        self.must_be_all(PRINCIPAL, {one.name: one for one in store.principals()})
        self.must_be_all(API_KEY, {one.id: one for one in store.api_keys()})

    def must_be_all(self, kind: str, rows: dict[str, StoredPrincipal] | dict[str, StoredKey]) -> None:
        """`LedgerTampered` if these are not all the rows of a kind as they were left."""
        expected = {id for of, id in self.rows if of == kind}
        for id in sorted(expected | set(rows)):
            self.must_be_as_left(kind, id, rows.get(id))

    def _compare_sessions(self, store: Store) -> None:
        found = {name: genesis.hex() for name, genesis in store.headers().items() if name != REGISTER}
        for name in sorted(found | self.sessions):
            if name not in found:
                raise LedgerTampered(
                    f"session {name!r} is in the register of this ledger, and its header is missing: it was taken away"
                )
            if name not in self.sessions:
                raise LedgerTampered(f"session {name!r} is not in the register of this ledger: it was put in")
            if found[name] != self.sessions[name]:
                raise LedgerTampered(f"session {name!r} is not the one in the register of this ledger: it was replaced")


def _difference(known: str | None, row: Row | None) -> str:
    if row is None:
        return "in the register of this ledger, and its row is missing: it was taken away"
    if known is None:
        return "not in the register of this ledger: its row was put in or put back"
    return "not stored as the register of this ledger says: its row was changed or put back"


def must_have_register(store: Store) -> None:
    """`LedgerTampered` if a ledger in which something is has no register."""
    assert isinstance(store, PrincipalTables)
    if store.headers() or store.principals() or store.api_keys():
        raise LedgerTampered("this ledger has sessions or principals and no register of them: it was taken away")


def must_have_no_strays(store: Store) -> None:
    """`LedgerTampered` if a table has rows of a session that has no header."""
    headers = store.headers()
    for table, name in store.names_by_table():
        if name not in headers:
            raise LedgerTampered(
                f"the table {table} has rows of {str(name)[:80]!r}, a session without a header: they were put in"
            )
