"""Browser sessions: who signed in with a key, for how long, and whether a form is one of ours.

Signing in makes a key of the browser's own: 256 random bits in a cookie that scripts cannot read and other sites cannot
send. Its digest is stored as an API key's is, under another domain, so that it is no API key. It stands for half a day,
and no longer than the key that signed in: revoking that one ends its browsers at once, in every worker.

Every form carries a token that is derived from the cookie. Another site can neither read the cookie nor guess the
token, so a form without it was not made by these pages.

>>> token = BrowserToken.fresh("0123456789abcdef")
>>> BrowserToken.read(token.cookie()) == token, token.signs(token.form()), token.signs("guessed")
(True, True, False)
>>> token
BrowserToken('...')
"""

import hmac
from hashlib import sha256
from typing import NamedTuple

from counterpoint.ledger.store.people import StoredKey
from counterpoint.randomness.fresh import fresh
from counterpoint.service.identity import ApiKey, Identity, Principal

COOKIE = "counterpoint"
"""The name of the cookie."""
LASTS = 12 * 3600
"""How many seconds a browser stays signed in."""
_BROWSER = "browser"
_SECRET = 64


class BrowserToken:
    """What a browser holds: under which id its session is stored, and a secret."""

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
        """The token that a cookie holds; None if it holds none."""
        id, _, secret = (cookie or "").rpartition(".")
        kind, *rest = id.split(".")
        is_id = kind == _BROWSER and len(rest) == 2 and len(id) <= 128 and all(map(_is_plain, rest))
        return cls(id, secret) if is_id and len(secret) == _SECRET and _is_plain(secret) else None

    @property
    def key(self) -> str:
        """The id of the key that signed in."""
        return self.id.split(".")[1]

    def cookie(self) -> str:
        """What the browser keeps."""
        return f"{self.id}.{self._secret}"

    @property
    def digest(self) -> bytes:
        """What is stored of it."""
        return sha256(f"counterpoint browser {self._secret}".encode()).digest()

    def form(self) -> str:
        """What each form carries: it follows from the cookie, which it does not give away."""
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
    """A browser whose session stands."""

    who: Principal
    token: BrowserToken


class Browsers:
    """Signs browsers in and out."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity

    def sign_in(self, presented: str) -> BrowserToken | None:
        """A session for the principal whose key this is; None if it is no key that stands."""
        key, who = ApiKey.read(presented), self._identity.principal(presented)
        if key is None or who is None:
            return None
        token, now = BrowserToken.fresh(key.id), self._identity.now()
        self._identity.sign_in(StoredKey(token.id, who.name, token.digest, now, now + LASTS), _BROWSER)
        return token

    def signed_in(self, cookie: str | None) -> SignedIn | None:
        """Who is signed in with this cookie, as long as the key that signed in stands."""
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
