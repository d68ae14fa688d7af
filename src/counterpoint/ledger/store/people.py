"""Who may use a ledger through a service: principals with their roles, and the digests of their keys.

The register, which is one chain of the ledger, has the fingerprint of every row as it was left (`registered.py`).
A key itself is never stored.

>>> StoredKey("a1", "ann", bytes(32), made=0, expires=10, ended=None).stands(now=9)
True
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from counterpoint.ledger.store.records import REGISTER, Head, fingerprint_of, read_record


class StoredPrincipal(NamedTuple):
    """A principal, when it was made and, if it is no more, when it ended."""

    name: str
    role: str
    made: int
    ended: int | None = None

    @property
    def fingerprint(self) -> str:
        """Stands in the register for all columns."""
        return fingerprint_of(self)


class StoredKey(NamedTuple):
    """A key: its public id, whose it is, the digest of its secret, and its times."""

    id: str
    principal: str
    digest: bytes
    made: int
    expires: int | None = None
    ended: int | None = None

    def stands(self, now: int) -> bool:
        """Whether it has neither expired nor been revoked."""
        return self.ended is None and (self.expires is None or now < self.expires)

    @property
    def fingerprint(self) -> str:
        """Stands in the register for all columns."""
        return fingerprint_of(self)


class KeyLookup(NamedTuple):
    """A key and its principal, as they are stored at one moment, and how far the register had come then."""

    head: Head | None
    key: StoredKey | None
    principal: StoredPrincipal | None


class PeopleTables:
    """The statements about principals and keys."""

    _PRINCIPAL = "SELECT name, role, made, ended FROM counterpoint_principal"
    _API_KEY = "SELECT id, principal, digest, made, expires, ended FROM counterpoint_api_key"
    _HOLDER = f"{_PRINCIPAL} WHERE name = (SELECT principal FROM counterpoint_api_key WHERE id = ?)"
    _BEGIN_READING: str
    """Begins a transaction that sees one moment only."""
    _HEAD: str

    def _run(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        raise NotImplementedError

    def _run_all(self, statements: Sequence[tuple[str, Sequence[Any]]]) -> list[list[tuple[Any, ...]]]:
        raise NotImplementedError

    def rollback(self) -> None:
        """Forget everything since the transaction began."""
        raise NotImplementedError

    def look_up_key(self, id: str) -> KeyLookup:
        """One key, by its public id; in one round trip, where there is one."""
        statements: list[tuple[str, Sequence[Any]]] = [
            (self._BEGIN_READING, ()),
            (self._HEAD, (REGISTER,)),
            (f"{self._API_KEY} WHERE id = ?", (id,)),
            (self._HOLDER, (id,)),
            ("COMMIT", ()),  # after a ROLLBACK psycopg would prepare every statement again
        ]
        try:
            _, head, key, holder, _ = self._run_all(statements)
        except BaseException:
            self.rollback()
            raise
        return KeyLookup(
            read_record(Head, head[0]) if head else None,
            read_record(StoredKey, key[0]) if key else None,
            read_record(StoredPrincipal, holder[0]) if holder else None,
        )

    def principal(self, name: str) -> StoredPrincipal | None:
        """One principal."""
        found = self._run(f"{self._PRINCIPAL} WHERE name = ?", (name,))
        return read_record(StoredPrincipal, found[0]) if found else None

    def principals(self) -> list[StoredPrincipal]:
        """All of them, by name."""
        return [read_record(StoredPrincipal, found) for found in self._run(f"{self._PRINCIPAL} ORDER BY name")]

    def put_principal(self, principal: StoredPrincipal) -> None:
        """Store a principal."""
        put = """INSERT INTO counterpoint_principal (name, role, made, ended) VALUES (?, ?, ?, ?)
            ON CONFLICT (name) DO UPDATE SET role = excluded.role, made = excluded.made, ended = excluded.ended"""
        self._run(put, principal)

    def api_key(self, id: str) -> StoredKey | None:
        """One key, by its public id."""
        found = self._run(f"{self._API_KEY} WHERE id = ?", (id,))
        return read_record(StoredKey, found[0]) if found else None

    def api_keys(self) -> list[StoredKey]:
        """All keys, the oldest first."""
        return [read_record(StoredKey, found) for found in self._run(f"{self._API_KEY} ORDER BY made, id")]

    def put_api_key(self, key: StoredKey) -> None:
        """Store a key."""
        put = """INSERT INTO counterpoint_api_key (id, principal, digest, made, expires, ended)
            VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET principal = excluded.principal,
            digest = excluded.digest, made = excluded.made, expires = excluded.expires, ended = excluded.ended"""
        self._run(put, key)

    def delete_api_key(self, id: str) -> None:
        """Delete a key: nothing is to be kept of a browser that has signed out."""
        self._run("DELETE FROM counterpoint_api_key WHERE id = ?", (id,))
