"""Principals and their roles, API keys, and the sessions of browsers.

A key is 256 random bits behind a public id. It is shown only once; a digest is stored, which is enough because 256 bits
cannot be guessed. Digests are compared in constant time, and an unknown key takes the same path as a wrong one. For the
tokens of an identity provider, replace `Identity.principal`.

>>> key = ApiKey.fresh()
>>> ApiKey.read(key.shown()) == key, key
(True, ApiKey('...'))

A browser that signs in gets a key of its own in a cookie, which scripts cannot read and other sites cannot send. It
lasts half a day at most, and ends in every worker when the key that signed in is revoked. Every form carries a token
derived from the cookie, so a form without it was not made by these pages.

>>> token = BrowserToken.fresh("0123456789abcdef")
>>> BrowserToken.read(token.cookie()) == token, token.signs(token.form()), token.signs("guessed")
(True, True, False)
>>> token
BrowserToken('...')
"""

import hmac
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from enum import StrEnum
from hashlib import sha256
from typing import NamedTuple, NoReturn

from counterpoint.coins.keystream import fresh
from counterpoint.errors import InvalidParameter, NotAllowed, SecretLeak
from counterpoint.ledger.location import Durable
from counterpoint.ledger.register import Change, Register
from counterpoint.ledger.state import principal as named
from counterpoint.ledger.store.records import StoredKey, StoredPrincipal
from counterpoint.ledger.store.store import Store

_PREFIX = "cp"
_KNOWN_FOR = 1.0
_MOST_KNOWN = 10_000
_NOBODY = StoredKey("", "", bytes(32), 0, ended=0)


class Role(StrEnum):
    """The role of a principal, which decides what it may call."""

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
    def fresh(cls, id: str | None = None) -> "ApiKey":
        """A new one, with this public id if one is given."""
        return cls(fresh(8).hex() if id is None else id, fresh(32))

    @classmethod
    def read(cls, text: str) -> "ApiKey | None":
        """Read a key from its text; None if the text is not a key."""
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
        """The digest that is stored instead of the secret."""
        return sha256(b"counterpoint api key " + self._secret).digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ApiKey) and self.id == other.id and hmac.compare_digest(self._secret, other._secret)

    __hash__ = None  # type: ignore[assignment]  # a secret is no key of a dictionary

    def __repr__(self) -> str:
        return "ApiKey('...')"

    def __reduce__(self) -> NoReturn:
        raise SecretLeak("an API key cannot be copied or pickled")


class Identity:
    """The principals and keys of a ledger. Every read and change goes through the ledger's register.

    `alone`: no other process can change them meanwhile, as with SQLite; then who called lately is remembered.
    """

    def __init__(self, store: Store, place: Durable, *, alone: bool = False) -> None:
        self._alone = alone
        self._register = Register(store, place)
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
        """The principal that this key belongs to; None if it is not valid. Every path takes the same comparison."""
        lately = self._lately
        key = ApiKey.read(presented)
        found = self.holder("" if key is None else key.id, bytes(32) if key is None else key.digest)
        if found is not None and self._alone:
            if len(lately) >= _MOST_KNOWN:
                lately.clear()
            lately[_name_of(presented)] = (found, time.monotonic() + _KNOWN_FOR)
        return found

    def holder(self, id: str, digest: bytes | None = None) -> Principal | None:
        """The principal of a valid key with this id and, if a digest is given, with this digest."""
        key, holder = self._register.look_up_key(id) or (_NOBODY, None)
        right = digest is None or hmac.compare_digest(key.digest, digest)
        if holder is None or holder.ended is not None or not right:
            return None
        if not key.stands(self.now()):
            self._expire(key)
            return None
        return Principal(holder.name, Role(holder.role))

    def now(self) -> int:
        """Seconds since 1970, by the clock that keys expire by; it does not go back."""
        return self._register.now()

    def _expire(self, key: StoredKey) -> None:
        """End a key that was used after it had expired: no clock that is set back revives it, after a start either."""
        if key.ended is None:
            self.end_key(key.id)

    def add(self, name: str, role: Role, *, by: str = "") -> None:
        """Make a principal; `InvalidParameter` if there was one of this name, whatever became of it."""
        with self._register.changing(by) as change:
            if change.principal(named(name)) is not None:
                raise InvalidParameter(
                    f"there is, or was, a principal {name!r}: histories name it, choose another name"
                )
            made = StoredPrincipal(name, role.value, self.now())
            change.put(made, f"principal {name!r} was added as {role.value}")

    def new_key(self, name: str, *, days: int | None = None, by: str = "", id: str | None = None) -> ApiKey:
        """A key for a principal, which expires after some days if they are given.

        `id` is the key's public id, where its maker chooses one: the second key of an id is refused.
        """
        if days is not None and (type(days) is not int or not 0 < days <= 3660):
            raise InvalidParameter("a key expires after 1 to 3660 days")
        now, key = self.now(), ApiKey.fresh(id)
        with self._register.changing(by) as change:
            if change.api_key(key.id) is not None:
                raise NotAllowed("this key was made and shown before, and cannot be shown again: make another one")
            found = change.principal(named(name))
            if found is None or found.ended is not None:
                raise NotAllowed(f"{name!r} is not a principal")
            expires = None if days is None else now + 86_400 * days
            change.put(StoredKey(key.id, name, key.digest, now, expires), f"key {key.id} of {name!r} was made")
        return key

    def sign_in(self, browser: StoredKey, begin: str) -> None:
        """Store the key of a browser, and delete ended keys with the same prefix."""
        with self._register.changing(browser.principal) as change:
            for old in change.api_keys():
                if old.id.startswith(begin) and not old.stands(browser.made):
                    change.delete(old, f"an ended sign-in of {old.principal!r} was deleted")
            change.put(browser, f"{browser.principal!r} signed in")

    def has_key(self, id: str) -> bool:
        """Whether there is a key of this public id, standing or ended."""
        return self._register.look_up_key(id) is not None

    def end_key(self, id: str, *, by: str = "") -> None:
        """Revoke a key, by its public id."""
        with self._register.changing(by) as change:
            found = change.api_key(id)
            if found is not None:
                _end_key(change, found, self.now())
        self._lately = {}

    def end(self, name: str, *, by: str = "") -> None:
        """End a principal with all its keys."""
        with self._register.changing(by) as change:
            found = change.principal(named(name))
            if found is not None and found.ended is None:
                change.put(found._replace(ended=self.now()), f"principal {name!r} was ended")
            for key in change.api_keys():
                if key.principal == name:
                    _end_key(change, key, self.now())
        self._lately = {}

    def principals(self) -> list[StoredPrincipal]:
        """All principals, also those that ended."""
        return self._register.principals()

    def keys(self, name: str) -> list[StoredKey]:
        """The keys of a principal: ids, times and digests."""
        return [key for key in self._register.api_keys() if key.principal == named(name)]

    def all_keys(self) -> list[StoredKey]:
        """The keys of all principals, and of their browsers, the oldest first."""
        return self._register.api_keys()

    def close(self) -> None:
        """Let go of the witness; the store is its owner's."""
        self._register.close()


def _end_key(change: Change, key: StoredKey, now: int) -> None:
    if key.ended is None:
        change.put(key._replace(ended=now), f"key {key.id} of {key.principal!r} was ended")


def _name_of(presented: str) -> bytes:
    """The name under which a presented key is remembered, instead of the key itself."""
    return sha256(presented.encode()).digest()


def _text(secret: bytes) -> str:
    return urlsafe_b64encode(secret).decode().rstrip("=")


COOKIE = "counterpoint"
"""The name of the cookie."""
LASTS = 12 * 3600
"""How many seconds a browser stays signed in."""
_BROWSER = "browser"
_SECRET = 64


class BrowserToken:
    """The token in a browser's cookie: the id of its stored session, and a secret."""

    __slots__ = ("_secret", "id")

    def __init__(self, id: str, secret: str) -> None:
        self.id = id
        self._secret = secret

    @classmethod
    def fresh(cls, key: str) -> "BrowserToken":
        """A new one, for a browser that signs in with the key of this id; without a key, for the form to sign in."""
        return cls(f"{_BROWSER}.{key}.{fresh(8).hex()}", fresh(32).hex())

    @classmethod
    def read(cls, cookie: str | None) -> "BrowserToken | None":
        """Read the token from a cookie; None if there is none."""
        id, _, secret = (cookie or "").rpartition(".")
        kind, *rest = id.split(".")
        is_id = kind == _BROWSER and len(rest) == 2 and len(id) <= 128 and all(map(_is_plain, rest))
        return cls(id, secret) if is_id and len(secret) == _SECRET and _is_plain(secret) else None

    @property
    def key(self) -> str:
        """The id of the key that signed in."""
        return self.id.split(".")[1]

    def cookie(self) -> str:
        """The text of the cookie."""
        return f"{self.id}.{self._secret}"

    @property
    def digest(self) -> bytes:
        """The digest that is stored instead of the secret."""
        return sha256(f"counterpoint browser {self._secret}".encode()).digest()

    def form(self) -> str:
        """The token in each form, derived from the cookie, which it does not reveal."""
        return sha256(f"counterpoint form {self._secret}".encode()).hexdigest()

    def signs(self, given: str) -> bool:
        """Whether a form was made for this browser."""
        return hmac.compare_digest(self.form().encode(), given.encode(errors="replace"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BrowserToken) and self.cookie() == other.cookie()

    __hash__ = None  # type: ignore[assignment]  # a secret is no key of a dictionary

    def __repr__(self) -> str:
        return "BrowserToken('...')"


def is_browser(id: str) -> bool:
    """Whether the id of a key is that of a browser's session.

    >>> is_browser(BrowserToken.fresh("0123456789abcdef").id), is_browser("0123456789abcdef")
    (True, False)
    """
    return id.startswith(f"{_BROWSER}.")


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isalnum()


class SignedIn(NamedTuple):
    """A browser with a valid session."""

    who: Principal
    token: BrowserToken


class Browsers:
    """Signs browsers in and out."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity

    def sign_in(self, presented: str) -> BrowserToken | None:
        """A browser session for the principal of this key; None if the key is not valid."""
        key, who = ApiKey.read(presented), self._identity.principal(presented)
        if key is None or who is None:
            return None
        token, now = BrowserToken.fresh(key.id), self._identity.now()
        self._identity.sign_in(StoredKey(token.id, who.name, token.digest, now, now + LASTS), _BROWSER)
        return token

    def signed_in(self, cookie: str | None) -> SignedIn | None:
        """The principal signed in with this cookie, while the key that signed in is valid."""
        token = BrowserToken.read(cookie)
        if token is None:
            return None
        who = self._identity.holder(token.id, token.digest)
        if who is None or self._identity.holder(token.key) != who:
            return None
        return SignedIn(who, token)

    def sign_out(self, token: BrowserToken) -> None:
        """End a session."""
        self._identity.end_key(token.id)
