"""Who may use a ledger through a service: principals with their roles, and the digests of their keys.

These tables are not on a chain: what a principal did is, by name, and a key that was put in or out here can launch
nothing that was not granted. A key itself is never stored.

>>> StoredKey("a1", "ann", bytes(32), made=0, expires=10, ended=None).stands(now=9)
True
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from counterpoint.ledger.store.records import read_record


class StoredPrincipal(NamedTuple):
    """A principal, when it was made and, if it is no more, when it ended."""

    name: str
    role: str
    made: int
    ended: int | None = None


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


class PeopleTables:
    """The statements about principals and keys; each is a transaction of its own."""

    _PRINCIPAL = "SELECT name, role, made, ended FROM counterpoint_principal"
    _API_KEY = "SELECT id, principal, digest, made, expires, ended FROM counterpoint_api_key"

    def _run(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        raise NotImplementedError

    def principal(self, name: str) -> StoredPrincipal | None:
        """One principal."""
        found = self._run(f"{self._PRINCIPAL} WHERE name = ?", (name,))
        return read_record(StoredPrincipal, found[0]) if found else None

    def principals(self) -> list[StoredPrincipal]:
        """All of them, by name."""
        return [read_record(StoredPrincipal, found) for found in self._run(f"{self._PRINCIPAL} ORDER BY name")]

    def add_principal(self, principal: StoredPrincipal) -> bool:
        """Add one; False if there was one of this name, which keeps what it has."""
        put = """INSERT INTO counterpoint_principal (name, role, made, ended) VALUES (?, ?, ?, ?)
            ON CONFLICT (name) DO NOTHING RETURNING name"""
        return bool(self._run(put, principal))

    def end_principal(self, name: str, now: int) -> None:
        """End a principal and all its keys; it is never made again, as the record names it."""
        self._run("UPDATE counterpoint_principal SET ended = ? WHERE name = ? AND ended IS NULL", (now, name))
        self._run("UPDATE counterpoint_api_key SET ended = ? WHERE principal = ? AND ended IS NULL", (now, name))

    def api_key(self, id: str) -> StoredKey | None:
        """One key, by its public id."""
        found = self._run(f"{self._API_KEY} WHERE id = ?", (id,))
        return read_record(StoredKey, found[0]) if found else None

    def api_keys(self, principal: str) -> list[StoredKey]:
        """The keys of a principal, the oldest first."""
        return [
            read_record(StoredKey, found)
            for found in self._run(f"{self._API_KEY} WHERE principal = ? ORDER BY made, id", (principal,))
        ]

    def add_api_key(self, key: StoredKey) -> None:
        """Add a key."""
        put = "INSERT INTO counterpoint_api_key (id, principal, digest, made, expires, ended) VALUES (?, ?, ?, ?, ?, ?)"
        self._run(put, key)

    def delete_ended(self, begin: str, now: int) -> None:
        """Delete the keys whose ids begin so, and which have ended or expired: of a browser nothing is to be kept."""
        sql = "DELETE FROM counterpoint_api_key WHERE substr(id, 1, ?) = ? AND (ended IS NOT NULL OR expires <= ?)"
        self._run(sql, (len(begin), begin, now))

    def end_api_key(self, id: str, now: int) -> None:
        """Revoke a key."""
        self._run("UPDATE counterpoint_api_key SET ended = ? WHERE id = ? AND ended IS NULL", (now, id))
