"""Who is calling: API keys, and the principal that each belongs to.

A key is 256 random bits behind a public id. It is shown once, when it is made; what is stored is a digest, which is
enough because 256 bits cannot be guessed. Digests are compared in constant time, and a key that is unknown takes the
same way as a wrong one. An identity provider's tokens can come later: what the service needs is `Identity.principal`.

>>> key = ApiKey.fresh()
>>> ApiKey.read(key.shown()) == key, key
(True, ApiKey('...'))
"""

import hmac
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from enum import StrEnum
from hashlib import sha256
from typing import NamedTuple, NoReturn

from counterpoint.errors import InvalidParameter, LedgerTampered, NotAllowed, SecretLeak
from counterpoint.ledger.grants import principal as named
from counterpoint.ledger.store.people import PeopleTables, StoredKey, StoredPrincipal
from counterpoint.ledger.store.store import Store
from counterpoint.randomness.fresh import fresh

_PREFIX = "cp"
_KNOWN_FOR = 1.0
_MOST_KNOWN = 10_000
_NOBODY = StoredKey("", "", bytes(32), 0, ended=0)


class Role(StrEnum):
    """What a principal is for."""

    CUSTODIAN = "custodian"
    """Registers data sets, grants and revokes."""
    ANALYST = "analyst"
    """Works in the sessions that were granted."""
    AUDITOR = "auditor"
    """Reads histories, certificates and verifications; no answers."""
    PRODUCER = "producer"
    """Appends to streams and live tables; reads nothing."""


class Principal(NamedTuple):
    """Who is calling."""

    name: str
    role: Role


class ApiKey:
    """A public id and a secret; shown only by `shown`."""

    __slots__ = ("_secret", "id")

    def __init__(self, id: str, secret: bytes) -> None:
        self.id = id
        self._secret = secret

    @classmethod
    def fresh(cls) -> "ApiKey":
        """A new one."""
        return cls(fresh(8).hex(), fresh(32))

    @classmethod
    def read(cls, text: str) -> "ApiKey | None":
        """The key that this text is; None if it is none."""
        prefix, _, rest = text.partition("_")
        id, _, secret = rest.partition("_")
        try:
            found = urlsafe_b64decode(secret + "=")
        except (ValueError, NotBase64):
            return None
        plain = prefix == _PREFIX and len(id) == 16 and len(found) == 32
        return cls(id, found) if plain and _text(found) == secret else None

    def shown(self) -> str:
        """The text that its holder keeps."""
        return f"{_PREFIX}_{self.id}_{_text(self._secret)}"

    @property
    def digest(self) -> bytes:
        """What is stored of it."""
        return sha256(b"counterpoint api key " + self._secret).digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ApiKey) and self.id == other.id and hmac.compare_digest(self._secret, other._secret)

    __hash__ = None  # type: ignore[assignment]  # a secret is no key of a dictionary

    def __repr__(self) -> str:
        return "ApiKey('...')"

    def __reduce__(self) -> NoReturn:
        raise SecretLeak("an API key was to be copied or pickled")


class Identity:
    """The principals and keys in a ledger's database.

    `alone`: no other process can change them meanwhile, as with SQLite; then who called lately is remembered.
    """

    def __init__(self, store: Store, *, alone: bool = False) -> None:
        self._alone = alone
        self._store = store
        assert isinstance(store, PeopleTables)
        self._people: PeopleTables = store
        self._lately: dict[bytes, tuple[Principal, float]] = {}
        """Who called lately. What ends a key puts a new one in its place: a lookup that had begun before, and found the
        key standing, writes into the old one.
        """

    def known(self, presented: str) -> Principal | None:
        """Whose key this is, if it was looked up within the last second; else None, and `principal` looks it up.

        A key that is revoked opens for not one request more: what is known is forgotten then, and where another process
        may revoke it, nothing is known but what the database says.
        """
        found = self._lately.get(_name_of(presented))
        return found[0] if found is not None and time.monotonic() < found[1] else None

    def principal(self, presented: str) -> Principal | None:
        """Whose key this is; None if it is no key that stands. Every way takes the same comparison."""
        lately = self._lately
        found = self._looked_up(presented)
        if found is not None and self._alone:
            if len(lately) >= _MOST_KNOWN:
                lately.clear()
            lately[_name_of(presented)] = (found, time.monotonic() + _KNOWN_FOR)
        return found

    def _looked_up(self, presented: str) -> Principal | None:
        key = ApiKey.read(presented)
        stored = self.standing("" if key is None else key.id, bytes(32) if key is None else key.digest)
        return None if stored is None else self.holder(stored)

    def standing(self, id: str, digest: bytes | None = None) -> StoredKey | None:
        """The key of this id if it stands and, where a digest is given, if that is its own."""
        with self._store.lock:
            stored = self._people.api_key(id)
        right = digest is None or hmac.compare_digest((stored or _NOBODY).digest, digest)
        return stored if stored is not None and right and stored.stands(int(time.time())) else None

    def holder(self, key: StoredKey) -> Principal | None:
        """The principal that a key belongs to, if it has not ended."""
        with self._store.lock:
            found = self._people.principal(key.principal)
        if found is None or found.ended is not None:
            return None
        if found.role not in set(Role):
            raise LedgerTampered(f"the role of {found.name!r} was changed, or is damaged")
        return Principal(found.name, Role(found.role))

    def add(self, name: str, role: Role) -> None:
        """Make a principal; `InvalidParameter` if there was one of this name, whatever became of it."""
        with self._store.lock:
            if not self._people.add_principal(StoredPrincipal(named(name), role.value, int(time.time()))):
                raise InvalidParameter(
                    f"there is, or was, a principal {name!r}: histories name it, choose another name"
                )

    def new_key(self, name: str, *, days: int | None = None) -> ApiKey:
        """A key for a principal, which expires after some days if they are given."""
        if days is not None and (type(days) is not int or not 0 < days <= 3660):
            raise InvalidParameter("a key expires after a number of days from 1 to 3660")
        now, key = int(time.time()), ApiKey.fresh()
        with self._store.lock:
            found = self._people.principal(named(name))
            if found is None or found.ended is not None:
                raise NotAllowed(f"there is no principal {name!r} here")
            expires = None if days is None else now + 86_400 * days
            self._people.add_api_key(StoredKey(key.id, name, key.digest, now, expires))
        return key

    def add_key(self, key: StoredKey) -> None:
        """Store a key that was made elsewhere, such as a browser's."""
        with self._store.lock:
            self._people.add_api_key(key)

    def forget_ended(self, begin: str) -> None:
        """Delete the keys whose ids begin so, and which stand no more."""
        with self._store.lock:
            self._people.delete_ended(begin, int(time.time()))

    def has_key(self, id: str) -> bool:
        """Whether there is a key of this public id, standing or ended."""
        with self._store.lock:
            return self._people.api_key(id) is not None

    def end_key(self, id: str) -> None:
        """Revoke a key, by its public id."""
        with self._store.lock:
            self._people.end_api_key(id, int(time.time()))
        self._lately = {}

    def end(self, name: str) -> None:
        """End a principal with all its keys."""
        with self._store.lock:
            self._people.end_principal(named(name), int(time.time()))
        self._lately = {}

    def principals(self) -> list[StoredPrincipal]:
        """All principals, also those that ended."""
        with self._store.lock:
            return self._people.principals()

    def keys(self, name: str) -> list[StoredKey]:
        """The keys of a principal: ids, times and digests."""
        with self._store.lock:
            return self._people.api_keys(named(name))


def _name_of(presented: str) -> bytes:
    """What a presented key is remembered by: not the key itself."""
    return sha256(presented.encode()).digest()


def _text(secret: bytes) -> str:
    return urlsafe_b64encode(secret).decode().rstrip("=")
