"""Sealing: what is secret at rest (states, seeds, answers) under AES-256-GCM, with a key per dataset.

A master key, from a file or the environment, wraps the data keys and seals nothing else; so it can be changed
(`rewrapped`) without touching what was sealed. What seals is derived from the data key and a random salt, and changed
after `SEALS` blobs, each with a random nonce: no number of blobs wears a data key out, nor does a nonce come twice. A
blob is bound to its place (dataset, kind, path, version, request): moved elsewhere it does not open. A wrong key and a
changed blob look alike, and say what can be done.

>>> master = MasterKey(bytes(32))
>>> keys = DataKeys("people", master, (DataKeys.fresh("people", 0, master),))
>>> blob = keys.seal(b"noise", "state", (0,), 3)
>>> b"noise" in blob, keys.unseal(blob, "state", (0,), 3)
(False, b'noise')
>>> keys.unseal(blob, "state", (1,), 3)
Traceback (most recent call last):
...
counterpoint.errors.Unsealable: the state at (1,) cannot be opened: it is not what was sealed there; its charge stays
"""

import binascii
import hmac
import os
import stat
from hashlib import sha256
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, NoReturn

import msgspec

from counterpoint.coins.keystream import fresh
from counterpoint.encoding import digest
from counterpoint.errors import InvalidParameter, Unsealable
from counterpoint.ledger.store.files import sync_folder_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_PLACES = msgspec.json.Encoder()
"""Places are texts, numbers and paths, which this writes as `encode` does, at a fraction of the time."""
KEY_BYTES = 32
_FORMAT = b"\x01"
_NUMBER = 2
_SALT = 16
_HEAD = len(_FORMAT) + _NUMBER + _SALT
"""What a blob begins with: how it is sealed, by which data key (one a day is more than a byte counts), and a salt."""
_NONCE = 12
SEALS = 2**16
"""How many blobs share a salt: of 2^16 random nonces of 96 bits, two are alike with probability below 2^-64."""
_SALTS = 256
_FEW = 4096
"""Up to this length, padded texts are powers of two."""
_LEAST = 7
"""None is shorter than 2^_LEAST bytes: the state of a mechanism with one number has room for any."""
ENVIRONMENT = "COUNTERPOINT_KEY"
"""Holds the master key, as 64 hexadecimal digits; with _FILE, the path of a file that does."""

Place = int | str | tuple[int | str, ...]
"""What a blob is bound to: a path, a version, a request's id."""


def padded(text: bytes) -> bytes:
    """Plain data with spaces behind it, which reading it back ignores, so that few lengths are left.

    A sealed blob is as long as what is in it, and a number of many digits is longer than one of few: what a thief sees
    of a state or an answer is then a power of two, or from 4,096 bytes on a sixteenth of one.

    >>> len(padded(b"7")), len(padded(b"70000")), len(padded(bytes(65))), len(padded(bytes(10**4)))
    (128, 128, 128, 10240)
    """
    step = 1 << max(6, len(text).bit_length() - 4)
    few = 1 << max(_LEAST, (len(text) - 1).bit_length())
    return text.ljust(few if few <= _FEW else -(-len(text) // step) * step)


class MasterKey:
    """The key that wraps data keys; never shown, copied or written by us, but for a new key file."""

    __slots__ = ("_key", "name")

    def __init__(self, key: bytes) -> None:
        if type(key) is not bytes or len(key) != KEY_BYTES:
            raise InvalidParameter(f"a master key is {KEY_BYTES} secret bytes")
        self._key = key
        self.name = hmac.digest(key, b"counterpoint key name", sha256)[:8].hex()

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> "MasterKey":
        """The key in a file of 64 hexadecimal digits, which only its owner may read."""
        file = FilePath(path)
        try:
            if os.name == "posix" and file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise Unsealable(f"others may read the key file {str(path)!r}: chmod 600 it")
            return cls(_digits(file.read_text(encoding="ascii"), f"the key file {str(path)!r}"))
        except (OSError, UnicodeError):
            raise Unsealable(f"the key file {str(path)!r} cannot be read") from None

    @classmethod
    def from_environment(cls) -> "MasterKey | None":
        """The key that COUNTERPOINT_KEY or COUNTERPOINT_KEY_FILE gives, if one does."""
        if digits := os.environ.get(ENVIRONMENT):
            return cls(_digits(digits, ENVIRONMENT))
        if path := os.environ.get(f"{ENVIRONMENT}_FILE"):
            return cls.from_file(path)
        return None

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> "MasterKey":
        """A new key in a new file, readable by its owner alone; an existing file is never touched."""
        key = os.urandom(KEY_BYTES)
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise InvalidParameter(f"there is a file {str(path)!r} already; a key is never overwritten") from None
        except OSError as error:
            raise _unmade(path, error) from None
        try:
            with os.fdopen(handle, "w", encoding="ascii") as file:
                file.write(key.hex() + "\n")
                file.flush()
                os.fsync(file.fileno())
            sync_folder_of(path)
        except OSError as error:
            os.unlink(path)  # half a key is useless, and would block the next attempt
            raise _unmade(path, error) from None
        return cls(key)

    def derived(self, purpose: str) -> bytes:
        """A secret for another purpose, which tells nothing of this key."""
        return hmac.digest(self._key, b"counterpoint secret for " + purpose.encode(), sha256)

    def signing_seed(self) -> bytes:
        """What records and receipts of all sessions under this key are signed with."""
        return self.derived("signatures of records and receipts")

    def wrap(self, key: bytes, place: bytes) -> bytes:
        """A data key, sealed."""
        nonce = fresh(_NONCE)
        return nonce + _cipher(self._key).encrypt(nonce, key, place)

    def unwrap(self, blob: bytes, place: bytes) -> bytes | None:
        """The data key, or None if another master key wrapped it."""
        return _opened(_cipher(self._key), blob[:_NONCE], blob[_NONCE:], place)

    def __repr__(self) -> str:
        return f"MasterKey({self.name})"

    def __reduce__(self) -> NoReturn:
        raise Unsealable("a key was to be copied or pickled")


class DataKeys:
    """The keys of one dataset: the last one seals, each opens what it sealed. Without a master key none does."""

    __slots__ = ("_ciphers", "_dataset", "_keys", "_master", "_sealing", "_wrapped")

    def __init__(self, dataset: str, master: MasterKey | None, wrapped: tuple[bytes, ...]) -> None:
        self._dataset = dataset
        self._master = master
        self._wrapped = wrapped
        self._keys = tuple(
            None if master is None else master.unwrap(blob, _place(dataset, number))
            for number, blob in enumerate(wrapped)
        )
        self._ciphers: dict[bytes, AESGCM] = {}
        self._sealing = (b"", iter(range(0)))
        """What blobs begin with now, and how many more may; one pair, as threads seal at the same time."""

    @staticmethod
    def fresh(dataset: str, number: int, master: MasterKey) -> bytes:
        """A new data key, wrapped."""
        return master.wrap(os.urandom(KEY_BYTES), _place(dataset, number))

    @property
    def usable(self) -> bool:
        """Whether the master key opens every data key."""
        return None not in self._keys

    def rewrapped(self, master: MasterKey) -> tuple[bytes, ...]:
        """The same data keys under another master key, and a new one for what is sealed from now on."""
        for number in range(len(self._keys)):
            self._key(number)
        again = (master.wrap(self._key(number), _place(self._dataset, number)) for number in range(len(self._keys)))
        return (*again, self.fresh(self._dataset, len(self._keys), master))

    def seal(self, secret: bytes, kind: str, *place: Place) -> bytes:
        """The secret, bound to its place."""
        head, left = self._sealing
        if next(left, None) is None:
            head = _FORMAT + (len(self._keys) - 1).to_bytes(_NUMBER, "big") + os.urandom(_SALT)
            self._sealing = (head, iter(range(SEALS - 1)))
        nonce = fresh(_NONCE)
        return head + nonce + self._cipher(head).encrypt(nonce, secret, self._bound(kind, place))

    def unseal(self, blob: bytes, kind: str, *place: Place) -> bytes:
        """The secret, if this is what was sealed at this place."""
        number, nonce = int.from_bytes(blob[len(_FORMAT) : _HEAD - _SALT], "big"), blob[_HEAD : _HEAD + _NONCE]
        opened = None
        if blob.startswith(_FORMAT) and number < len(self._keys):
            opened = _opened(self._cipher(blob[:_HEAD]), nonce, blob[_HEAD + _NONCE :], self._bound(kind, place))
        if opened is None:
            raise Unsealable(
                f"the {kind} at {place[0]!r} cannot be opened: it is not what was sealed there; its charge stays"
            )
        return opened

    def commitment_key(self) -> bytes:
        """What the nonces of commitments are derived from: the first data key, which a change of master key keeps."""
        return hmac.digest(self._key(0), b"counterpoint commitments", "sha256")

    def register_key(self) -> bytes:
        """What entries of the register are signed with; like `signing_seed`, but no receipt is."""
        return hmac.digest(self._key(0), b"counterpoint register", "sha256")

    def _cipher(self, head: bytes) -> "AESGCM":
        """What sealed the blobs with this head; the last few are kept, as making one takes longer than sealing."""
        known = self._ciphers.get(head)
        if known is None:
            if len(self._ciphers) >= _SALTS:
                self._ciphers.clear()
            number, salt = head[len(_FORMAT) : -_SALT], head[-_SALT:]
            known = self._ciphers[head] = _cipher(_derived(self._key(int.from_bytes(number, "big")), salt))
        return known

    def _bound(self, kind: str, place: tuple[Place, ...]) -> bytes:
        return _PLACES.encode((self._dataset, kind, place))

    def _key(self, number: int) -> bytes:
        key = self._keys[number]
        if key is not None:
            return key
        given = "no key was given" if self._master is None else f"the key given ({self._master.name}) is another one"
        raise Unsealable(
            f"{given} than the one that {self._dataset!r} is sealed with, so its mechanisms are halted; charges are "
            f"kept. Give the right key: {ENVIRONMENT}_FILE=..., {ENVIRONMENT}=... or Durable(..., key_file=...)"
            if self._master is not None
            else f"{given}, so the mechanisms of {self._dataset!r} are halted; charges are kept. Give the key it is "
            f"sealed with: {ENVIRONMENT}_FILE=..., {ENVIRONMENT}=... or Durable(..., key_file=...)"
        )

    def __repr__(self) -> str:
        return f"DataKeys({self._dataset!r}, {len(self._keys)})"


def _unmade(path: str | os.PathLike[str], error: OSError) -> InvalidParameter:
    return InvalidParameter(f"no key file can be made at {str(path)!r}: {error.strerror}")


def _place(dataset: str, number: int) -> bytes:
    return digest("data key", dataset, number)


def _derived(key: bytes, salt: bytes) -> bytes:
    return hmac.digest(key, b"counterpoint blob" + salt, "sha256")


def _cipher(key: bytes) -> "AESGCM":
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - only where something is sealed

    return AESGCM(key)


def _opened(cipher: "AESGCM", nonce: bytes, sealed: bytes, place: bytes) -> bytes | None:
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415

    try:
        return cipher.decrypt(nonce, sealed, place)
    except (InvalidTag, ValueError):
        return None


def _digits(text: str, where: str) -> bytes:
    try:
        key = binascii.unhexlify(text.strip())
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise Unsealable(f"{where} does not hold a key: {2 * KEY_BYTES} hexadecimal digits were expected")
    return key
