"""Receipts: a signed statement that an answer was given, to whom, to which question, on which data, at which price.

A receipt names the entry of its question in the hash chain by number and hash, and the chain's head with its answer. It
is signed with Ed25519, by a key that is derived from the master key, so all sessions of a service have one signer. An
auditor gets its public part from the service, and checks receipts and the public record by it (`counterpoint ledger
export`), without our code (`counterpoint/checker.py`). The answer is in the receipt, and on the chain, as a commitment:
its holder can open it to others by the answer and the nonce, and others cannot guess at it. The data version is a
counter of items, or a keyed digest.

A record names its signer from the start. A change of master key changes the signer: the entry that names the new one is
signed by the one before it, so a record shows who may sign from where on.

A receipt follows from what is on record, so an answer that is repeated by its id has the same receipt, byte for byte,
until the signer changes; then the same text has another signature.

>>> signer = Signer(bytes(32))
>>> receipt = Receipt("00", "people", 3, "e" * 64, 4, "f" * 64, "ann", "count", (0, 0), "", "7", "c" * 64, 0, 1)
>>> signed = signer.sign(receipt)
>>> is_signed(signed.receipt, signed.signature, signer.public)
True
>>> is_signed(signed.receipt.replace("ann", "bob"), signed.signature, signer.public)
False
"""

import hmac
from hashlib import sha256
from typing import NamedTuple

import msgspec

from counterpoint.encoding import Plain, encode
from counterpoint.errors import LedgerError, LedgerTampered, SecretLeak
from counterpoint.ledger.state import HistoryEntry, Path

INTENTS = (
    *("open", "launch", "delegation", "charge", "ask", "question"),
    *("revocation", "recount", "closing", "reopening", "version"),
)
VERSIONS = ("open", "version")
"""What says how the data were declared: the first version, and each later one."""
ANSWERED = ("ask", "question")
"""What an analyst gets an answer to, computed from the data."""
RECEIPTED = (*ANSWERED, "charge")
"""What has a receipt: an answer, or that a release made elsewhere was charged."""
REFUSALS = ("refusal", "denial")
ENDINGS = ("recovery", "retirement")
"""Acts of a custodian after which nothing more is answered."""

SESSION, PRINCIPAL, API_KEY = REGISTERED = ("session", "principal", "api key")
"""What the entries of a register are about."""
HISTORY = (*INTENTS, *REFUSALS, *ENDINGS, *REGISTERED, "data", "rows")
"""Which entries are lines of the history."""
ABOUT_HEADER = ("data", "rows", "keys", "witness", "retirement")
"""Entries about the header itself; `state` is then the fingerprint of the wrapped keys."""


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One link of the chain.

    `body` is what was asked, in full; a question has a second line, the mechanism and the options that were chosen
    for it as it began. Of an answer it is the commitment that its receipt names, of data or sealed items the
    fingerprint, of a signer the signature of the one before it. `what` of an answer is the hash of the entry before
    it, which its receipt needs; of a signer, its public key. `version` and `state` are those of the row at `path`
    after a charge or an answer (`state` its fingerprint); of data and of keys, `state` is the fingerprint of the
    wrapped keys; of items, `version` is how many there are with them, and `request` the id under which they were
    sent, if any. `at` is when, by the clock of the process that wrote it: for people, nothing is decided by it.
    `record` is the fingerprint of the record that the entry leaves: of the request, if it is an intent, or an
    answer; of the header, if it is about data or the witness. `who` is the principal whose request it was, if one
    was named. `salt` is random: the head of the chain confirms no guess at what an entry says. `cost` is what a
    launch costs, exactly, for auditors who have no code of ours.
    """

    number: int
    kind: str
    request: str
    path: tuple[int | str, ...]
    what: str
    body: str
    version: int = 0
    state: str = ""
    at: int = 0
    record: str = ""
    who: str = ""
    salt: str = ""
    cost: str = ""

    def encoded(self) -> bytes:
        """The bytes that are stored and hashed."""
        return _ENCODER.encode(self)

    def hash(self, before: bytes) -> bytes:
        """The head of the chain after this entry."""
        return link(before, self.encoded())

    @property
    def leaves_row(self) -> bool:
        """Whether `state` is the fingerprint of the row at `path`."""
        return bool(self.state) and self.kind not in ABOUT_HEADER and self.kind not in REGISTERED

    @property
    def fact(self) -> HistoryEntry:
        """The line of the history."""
        return HistoryEntry(self.kind, self.path, self.what, self.who, self.at, self.cost)


def said_digest(body: bytes) -> bytes:
    r"""Stands for what was asked, whatever was decided as it began: for the first line of the body.

    >>> said_digest(b"a question") == said_digest(b"a question\nand its mechanism")
    True
    """
    return sha256(body.partition(b"\n")[0]).digest()


def link(before: bytes, entry: bytes) -> bytes:
    """The head of the chain after an entry, from its bytes."""
    return sha256(before + entry).digest()


def read_entry(data: bytes, number: int | None = None) -> Entry:
    """Read an entry; `LedgerTampered` if these bytes are not one, with its number if that is known."""
    try:
        return _DECODER.decode(data)
    except _UNREADABLE:
        raise LedgerTampered(f"{'an entry' if number is None else f'entry {number}'} cannot be read") from None


class Head(NamedTuple):
    """How far a chain has come."""

    number: int
    hash: bytes


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Entry, strict=True)
_UNREADABLE = (msgspec.MsgspecError, UnicodeError)
"""What reading bytes that were changed may raise."""

RECORD = "counterpoint-record/1"
"""The format of public records."""
_SIGNER = "counterpoint-signer/1"


class Receipt(msgspec.Struct, frozen=True):
    """What is signed. `entry` is the hash of the question's entry, `head` the chain's with the answer's entry.

    `data_version` numbers the version of the data that the answer is about, `data` says how far it had come.
    """

    ledger: str
    session: str
    number: int
    entry: str
    head_number: int
    head: str
    who: str
    what: str
    path: tuple[int | str, ...]
    cost: str
    data: str
    answer: str
    at: int
    data_version: int


class NeverAnswered(LedgerError):
    """No answer is on record under this id, so there is no receipt."""


class Grounds(NamedTuple):
    """What a receipt is made of, all of it on record: the entry of the question, the answer, and the head with it."""

    request: str
    entry: bytes
    path: Path
    pin: str
    cost: str
    answer: Plain
    head: Head
    data_version: int

    def signed(self, genesis: bytes, session: str, signer: "Signer", key: bytes) -> "tuple[Signed, Disclosure]":
        """The receipt, signed, and what opens the answer in it; `key` is that of commitments."""
        asked, disclosed = read_entry(self.entry), disclosure(key, self.request, encode(self.answer))
        if asked.kind not in RECEIPTED:
            raise NeverAnswered(
                f"a receipt is for an answer or a charge, and this id is that of a {asked.kind}, which has none"
            )
        receipt = Receipt(
            ledger=genesis.hex(),
            session=session,
            number=asked.number,
            entry=sha256(self.entry).hexdigest(),
            head_number=self.head.number,
            head=self.head.hash.hex(),
            who=asked.who,
            what=asked.what,
            path=self.path,
            cost=self.cost,
            data=self.pin,
            answer=commitment(disclosed),
            at=asked.at,
            data_version=self.data_version,
        )
        return signer.sign(receipt), disclosed


class Signed(NamedTuple):
    """A receipt as it is handed out: the text that was signed, and the signature in hexadecimal digits."""

    receipt: str
    signature: str


class Disclosure(NamedTuple):
    """What opens the commitment of a receipt: the nonce, with the answer in its canonical encoding."""

    nonce: str
    answer: str


class Signer:
    """An Ed25519 key."""

    __slots__ = ("_key", "public")

    def __init__(self, seed: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - where signed

        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self.public = self._key.public_key().public_bytes_raw().hex()
        """The public key, in hexadecimal digits."""

    def sign(self, receipt: Receipt) -> Signed:
        """The receipt with its signature."""
        text = msgspec.json.encode(receipt).decode()
        return Signed(text, self.signature(text))

    def sign_record(self, genesis: bytes, session: str, head: Head) -> str:
        """The signature of a public record that begins and ends so."""
        return self.signature("\n".join((RECORD, genesis.hex(), str(head.number), head.hash.hex(), session)))

    def sign_successor(self, public: str, before: bytes) -> str:
        """The signature of the entry that names the next signer, behind the head `before`."""
        return self.signature(successor_text(public, before))

    def signature(self, text: str) -> str:
        """Each kind of text that is signed begins in another way, so none passes for another."""
        return self._key.sign(text.encode()).hex()

    def __repr__(self) -> str:
        return f"Signer({self.public[:16]})"

    def __reduce__(self) -> tuple[object, ...]:
        raise SecretLeak("a signing key was to be copied or pickled")


def disclosure(key: bytes, request: str, answer: bytes) -> Disclosure:
    """The nonce of a request, always the same, and its encoded answer."""
    return Disclosure(hmac.digest(key, request.encode(), "sha256").hex(), answer.decode())


def commitment(disclosed: Disclosure) -> str:
    """What stands for the answer, in its entry and in its receipt. A nonce has 32 bytes: then nothing else opens it."""
    return sha256(bytes.fromhex(disclosed.nonce) + disclosed.answer.encode()).hexdigest()


def successor_text(public: str, before: bytes) -> str:
    """What a signer signs to name the next one."""
    return f"{_SIGNER} {before.hex()} {public}"


def is_signed(text: str, signature: str, public: str) -> bool:
    """Whether the key with this public part has signed it."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415

    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
        key.verify(bytes.fromhex(signature), text.encode())
    except (InvalidSignature, ValueError):
        return False
    return True
