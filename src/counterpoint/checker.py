"""Check the public record of a session, and receipts, without any code of Counterpoint's.

    python checker.py [--signer KEY] [--earlier OLDER.jsonl] record.jsonl [receipt.json ...]

This file stands alone: it needs Python 3.11 and, for signatures, the package `cryptography`. The format is described in
the guide, "Receipts and the public record", so that others can write a checker of their own. What it checks:

- the chain: each entry is hashed with all before it, and the last hash is the one that the record states;
- the protocol: a session is opened once; a request is admitted once and answered once, in its place; what is asked was
  launched; in a session that was granted, only its principal acts, and nothing is launched once it was revoked;
- admissions: where a budget is a plain sum (PureDP, zCDP, basic composition of (epsilon, delta)), every launch that was
  admitted fits, every one that was refused does not, a delegated budget costs itself, and what was returned,
  once, is what was left unused. Sums are rounded exactly as the ledger rounds them;
- the end: from the recovery of a lost record on nothing is launched or asked, and a retirement is the last entry;
- signatures: `--signer` is the service's public key, which the auditor has from the service (`counterpoint serve`
  prints it), never from the record. Another key counts only where the one before it has signed that on the record;
- receipts: the signature, the entries of the question and of the answer, the price, the commitment to the answer. Two
  receipts for one question must say the same;
- `--earlier`: a record that was exported before must be the beginning of this one.

What a mechanism costs is taken from the record: that it deserves its price is a theorem's matter.

The exit code is 0 if everything holds, 1 if something does not, 2 for a wrong call, and 3 if nothing is wrong but the
record has kinds of entries or losses that this file does not know.
"""

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]  # this file's folder, or the current one: nothing there may stand in for the standard library

import argparse
import gc
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from hashlib import sha256
from typing import Any, BinaryIO, NamedTuple

FORMAT = "counterpoint-record/1"
SIGNER = "counterpoint-signer/1"
FIELDS = (
    *("number", "kind", "request", "path", "what", "body", "version"),
    *("state", "at", "record", "who", "salt", "cost"),
)
ADMITTED = (
    *("open", "launch", "delegation", "charge", "ask", "question"),
    *("revocation", "recount", "closing", "reopening", "version"),
)
CHOOSING = tuple(f'["{kind}",' for kind in ("open", "launch", "delegation", "charge", "question"))
"""How the bodies begin that may have a second line, of what was decided then. A question, the last, always has one."""
UNRULED = ("denial", "data", "rows", "keys", "signer", "items", "witness", "retirement")
KINDS = frozenset((*ADMITTED, *UNRULED, "refusal", "answer", "lost", "recovery"))
"""What entries are about. The replay has nothing to check of those in `UNRULED` but their place."""
LARGEST = 10**400
"""The largest denominator of a sum: a longer one is rounded up to a whole multiple of 1/LARGEST, as the ledger does."""
DIGITS = 4000
"""How many digits the numerator and the denominator of a stored number have at most."""
LONGEST = 2**24
"""How many bytes an entry has at most; the ledger stores no longer one."""
LONGEST_LINE = 8 * LONGEST
_LONGEST_HEADER = 2**16
_LONGEST_RECEIPT = 2 * LONGEST
_INTEGER_DIGITS = 4300
_NUMBER = re.compile(rf"(-?[0-9]{{1,{DIGITS}}})(?:/([0-9]{{1,{DIGITS}}}))?", re.ASCII)
_LINE = re.compile(r'\{"number":\s?([0-9]{1,18}),\s?"entry":\s?(".*")\}\s*', re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
_SIGNATURE = re.compile(r"[0-9a-f]{128}", re.ASCII)
_PRIME = 2**255 - 19
_TORSION = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
_SMALL_ORDER = frozenset((0, 1, _PRIME - 1, _TORSION, _PRIME - _TORSION))
"""The y of the points of order 1, 2, 4 and 8: under such a key a signature can be found for any message."""

Path = tuple[Any, ...]
Sum = tuple[Fraction, ...]


class DoesNotHold(Exception):
    """The record, or a receipt, does not hold."""


class NotAllKnown(DoesNotHold):
    """Nothing that was checked is wrong, but the record has entries or losses of kinds that this file does not know."""


class Unsummed(Exception):
    """A loss of another measure: how much it adds is a theorem's matter, which this file does not know."""


# ------------------------------------------------------------------------------------------------------ reading bytes


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise DoesNotHold("an object names a field twice")
    return found


def _refuse(text: str) -> None:
    raise DoesNotHold(f"{text[:40]} is not a number that a service writes")


def _integer(text: str) -> int:
    if len(text) > _INTEGER_DIGITS + 1:
        raise DoesNotHold("an integer has more digits than a service writes")
    return int(text)


_decoder = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_refuse, parse_constant=_refuse, parse_int=_integer, strict=True
)


def _read(text: Any, what: str) -> Any:
    """JSON as the service writes it: no floats, no field twice, no endless nesting."""
    if not isinstance(text, str):
        raise DoesNotHold(f"{what} is not a text")
    try:
        return _decoder.decode(text)
    except (ValueError, RecursionError):
        raise DoesNotHold(f"{what} is not JSON that a service writes") from None


def _struct(value: Any, fields: dict[str, Any], what: str) -> dict[str, Any]:
    """An object with just these fields, of these types."""
    if not isinstance(value, dict) or value.keys() != fields.keys():
        raise DoesNotHold(f"{what} has other fields than a service writes")
    for name, kind in fields.items():
        if not kind(value[name]):
            raise DoesNotHold(f"{what} has a {name!r} that no service writes")
    return value


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return type(value) is int


def _is_path(value: Any) -> bool:
    return isinstance(value, list) and all(type(step) in (int, str) for step in value)


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and _HASH.fullmatch(value) is not None


class RecordEntry(NamedTuple):
    """One entry of the chain."""

    number: int
    kind: str
    request: str
    path: Path
    what: str
    body: str
    version: int
    state: str
    at: int
    record: str
    who: str
    salt: str
    cost: str

    @classmethod
    def read(cls, text: str, expected: int) -> "RecordEntry":
        """The entry that a text is; it must have the number that is expected."""
        values = _read(text, f"entry {expected}")
        numbers = {"number", "version", "at"}
        checks = [_is_count if name in numbers else _is_path if name == "path" else _is_text for name in FIELDS]
        fits = isinstance(values, list) and len(values) == len(FIELDS)
        if not fits or not all(check(value) for check, value in zip(checks, values, strict=True)):
            raise DoesNotHold(f"entry {expected} has other fields than a service writes")
        if values[0] != expected:
            raise DoesNotHold(f"entry {expected} is missing")
        values[3] = tuple(values[3])
        return cls(*values)

    def wrong(self, what: str) -> DoesNotHold:
        """The error for this entry."""
        return DoesNotHold(f"entry {self.number}: {what}")

    def says(self, length: int) -> list[Any]:
        """The body, a list of at least this many parts; its second line is `choice`."""
        said, _, choice = self.body.partition("\n")
        if not said.startswith(CHOOSING if choice else "[") or (not choice and said.startswith(CHOOSING[-1])):
            raise self.wrong("its body is not that of an entry of its kind")
        parts = _read(said, f"the body of entry {self.number}")
        if not isinstance(parts, list) or len(parts) < length:
            raise self.wrong("its body is not that of an entry of its kind")
        return parts

    def kept_version(self) -> int:
        """The version of the data that a launch says it keeps; the first, if it says none."""
        _, _, choice = self.body.partition("\n")
        if not choice:
            return 1
        chosen = _read(choice, f"the body of entry {self.number}")
        if isinstance(chosen, list):  # a question: its mechanism, its options, and perhaps the version and the text
            chosen = chosen[2] if len(chosen) > 2 else 1
        if not _is_count(chosen):
            raise self.wrong("its body is not that of an entry of its kind")
        return int(chosen)

    def charge(self) -> "RecordedCharge":
        """What a launch costs: a loss, or a list of one and of the launches that it is made of."""
        said = _read(self.cost, f"the cost in entry {self.number}")
        loss, *parts = said if isinstance(said, list) and said else [said]
        launches: list[Any] = [(part.get("loss"), part.get("times")) for part in parts if isinstance(part, dict)]
        losses = [loss, *(part for part, _ in launches)]
        named = all(isinstance(one, dict) and isinstance(one.get("type"), str) for one in losses)
        if not named or len(launches) != len(parts) or not all(_is_count(times) and times > 0 for _, times in launches):
            raise self.wrong("it does not say what it costs")
        return RecordedCharge(loss, launches)


class RecordedCharge(NamedTuple):
    """What a launch costs: as one loss, or as the launches that it is made of, which are counted if they all fit."""

    loss: dict[str, Any]
    launches: list[tuple[dict[str, Any], int]]


class RecordHeader(NamedTuple):
    """What the first line says: which record this is, where it begins and ends, and the signature of that, if any."""

    session: str
    genesis: str
    number: int
    hash: str
    signature: str

    @classmethod
    def read(cls, line: str) -> "RecordHeader":
        """The header that a line is."""
        if len(line) > _LONGEST_HEADER:
            raise DoesNotHold("the first line is longer than a service writes it")
        said = _read(line, "the first line")
        if not isinstance(said, dict) or said.get("format") != FORMAT:
            raise DoesNotHold(f"this is not a record of the format {FORMAT}")
        signature = said.pop("signature", "")
        fields = {"format": _is_text, "session": _is_text, "genesis": _is_hash, "head": lambda head: True}
        head = _struct(_struct(said, fields, "the first line")["head"], {"number": _is_count, "hash": _is_hash}, "head")
        if not _is_text(signature):
            raise DoesNotHold("the first line has a signature that no service writes")
        return cls(said["session"], said["genesis"], head["number"], head["hash"], signature)

    @property
    def text(self) -> str:
        """What is signed."""
        return "\n".join((FORMAT, self.genesis, str(self.number), self.hash, self.session))


class GivenReceipt(NamedTuple):
    """A receipt that was read; nothing of it has been compared yet."""

    text: str
    signature: str
    said: dict[str, Any]

    @classmethod
    def read(cls, given: Any) -> "GivenReceipt":
        """The receipt that this is. If its answer is disclosed, that must be the one that it commits to."""
        given = dict(given) if isinstance(given, dict) else {}
        disclosed = given.pop("disclosed", None)
        _struct(given, {"receipt": _is_text, "signature": _is_text}, "a receipt")
        said = _struct(_read(given["receipt"], "a receipt"), _RECEIPT, "a receipt")
        if disclosed is not None:
            _struct(disclosed, {"nonce": _is_hash, "answer": _is_text}, "a disclosed answer")
            opened = sha256(bytes.fromhex(disclosed["nonce"]) + disclosed["answer"].encode()).hexdigest()
            if opened != said["answer"]:
                raise DoesNotHold("the answer that was shown is not the one that the receipt was given for")
        return cls(given["receipt"], given["signature"], said)


_RECEIPT: dict[str, Callable[[Any], bool]] = {
    **{"ledger": _is_hash, "session": _is_text, "number": _is_count, "entry": _is_hash, "head_number": _is_count},
    **{"head": _is_hash, "who": _is_text, "what": _is_text, "path": _is_path, "cost": _is_text, "data": _is_text},
    **{"answer": _is_hash, "at": _is_count, "data_version": _is_count},
}


# --------------------------------------------------------------------------------------------------------- signatures


def must_be_a_key(public: str) -> str:
    """The public key, if it is one: written canonically, and not of small order, when anybody could sign by it."""
    if _HASH.fullmatch(public) is None:
        raise DoesNotHold("a public key has 64 lower-case hexadecimal digits")
    y = int.from_bytes(bytes.fromhex(public), "little") & (2**255 - 1)
    if y >= _PRIME or y in _SMALL_ORDER:
        raise DoesNotHold("a public key is of small order, or is not written canonically: anybody could sign by it")
    return public


def is_signed(text: str, signature: str, public: str) -> bool:
    """Whether this key has signed this text."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - the chain is checked without it
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415

    if _SIGNATURE.fullmatch(signature) is None:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(signature), text.encode())
    except (InvalidSignature, ValueError):
        return False
    return True


class Signers:
    """The keys that sign, in the order in which the record names them: each but the first signed by the one before."""

    def __init__(self) -> None:
        self.known: list[tuple[int, str]] = []

    def step(self, entry: RecordEntry, before: str) -> None:
        """A key that signs from this entry on; `before` is the head of the chain before it."""
        public = must_be_a_key(entry.what)
        if self.known and not is_signed(f"{SIGNER} {before} {public}", entry.body, self.known[-1][1]):
            raise entry.wrong("it names another signer, and the one before has not signed that")
        self.known.append((entry.number, public))

    def trusted(self, signer: str, header: RecordHeader) -> tuple[bool, list[str]]:
        """Whether the record as a whole is signed; and the keys that the auditor's vouches for, in order.

        A key vouches for those after it. For those before it only if it, or one after it, has signed this record.
        """
        keys = [key for _, key in self.known]
        if signer not in keys:
            raise DoesNotHold("the record does not name the signer that was given: it is not this service's, or forged")
        if header.signature and not is_signed(header.text, header.signature, keys[-1]):
            raise DoesNotHold("the signature of the record is not that of its signer")
        return bool(header.signature), keys if header.signature else keys[keys.index(signer) :]

    def must_have_signed(self, receipt: GivenReceipt, trusted: list[str]) -> None:
        """One of the trusted keys that sign when the answer was given, or later."""
        ends = [*(number for number, _ in self.known[1:]), math.inf]
        head = receipt.said["head_number"]
        since = {key for (_, key), end in zip(self.known, ends, strict=True) if head < end}
        if not any(is_signed(receipt.text, receipt.signature, key) for key in since & set(trusted)):
            raise DoesNotHold("no key that counts here has signed this receipt: not the signer, nor one that it named")


# --------------------------------------------------------------------------------------------------------------- sums


def rounded(value: Fraction, up: bool = True) -> Fraction:
    """A sum as the ledger keeps it."""
    if value.denominator <= LARGEST:
        return value
    scaled, below = value.numerator * LARGEST, value.denominator
    return Fraction(-(-scaled // below) if up else scaled // below, LARGEST)


@dataclass
class Additions:
    """How many additions are still made, in one record, for launches that were charged one by one as a list."""

    left: int = 200_000


@dataclass
class PlainSum:
    """A session's account, where it is a plain sum: what a loss adds, the limits, and what was added so far.

    Once a charge is not known (`exact` is False), `spent` is a lower bound: it still shows an overspent budget.
    """

    adds: Callable[[Any], Sum]
    limits: Sum
    spent: Sum
    work: Additions
    most: int | None = None
    made: int = 0
    exact: bool = True

    def plus(self, spent: Sum, loss: Any, times: int = 1) -> Sum:
        """The sum after this number of launches of a loss, rounded after each."""
        return tuple(self._plus(one, more, times) for one, more in zip(spent, self.adds(loss), strict=True))

    def _plus(self, total: Fraction, amount: Fraction, times: int) -> Fraction:
        if times > 1 and math.lcm(total.denominator, amount.denominator) <= LARGEST:
            return total + times * amount
        self.work.left -= times
        if times > 1 and self.work.left < 0:
            raise Unsummed
        for _ in range(times):
            total = rounded(total + amount, self.exact)
        return total

    def after(self, charge: RecordedCharge) -> tuple[Sum, int]:
        """What would be spent after one more launch, and how many launches there would be.

        As the rule counts it: the launches that it is made of, if these fit; else the loss as one.
        """
        if charge.launches:
            spent, made = self.spent, self.made
            try:
                for loss, times in charge.launches:
                    spent, made = self.plus(spent, loss, times), made + times
                if self.holds(spent, made):
                    return spent, made
            except Unsummed:
                if self.work.left < 0:
                    raise
        return self.plus(self.spent, charge.loss), self.made + 1

    def holds(self, spent: Sum, made: int = 0) -> bool:
        """Whether that is within the limits."""
        within = all(one <= limit for one, limit in zip(spent, self.limits, strict=True))
        return within and (self.most is None or made <= self.most)

    def recount(self, charge: RecordedCharge, launched: list[RecordedCharge]) -> None:
        """Count a child's launches in the place of its charge, unless that is more than the budget."""
        try:
            taken = zip(self.spent, self.adds(charge.loss), strict=True)
            spent: Sum = tuple(max(Fraction(0), rounded(one - less, self.exact)) for one, less in taken)
            for one in launched:
                spent = self.plus(spent, one.loss)
        except Unsummed:
            self.exact, spent = False, tuple(Fraction(0) for _ in self.spent)
        if self.holds(spent) or not self.exact:
            self.spent = spent


def account_of(composition: Any, work: Additions) -> PlainSum | None:
    """The account of a session, if its rule is a plain sum in the measure of its budget."""
    rule = composition.get("rule") if isinstance(composition, dict) else None
    if not isinstance(rule, dict) or not isinstance(rule.get("type"), str):
        raise DoesNotHold("a session has no rule")
    if rule["type"] != "Filter/1" or rule.get("empty") is not None:
        return None
    budget, most = rule.get("budget"), rule.get("launches")
    if not isinstance(budget, dict) or not (most is None or _is_count(most)):
        raise DoesNotHold("a rule has no budget")
    if budget.get("type") in ("PureDP/1", "zCDP/1"):
        adds = partial(_amount, budget["type"])
        return PlainSum(adds, adds(budget), (Fraction(0),), work, most)
    if budget.get("type") == "ApproxDP/1" and rule.get("by") == "basic":
        return PlainSum(_epsilon_delta, _epsilon_delta(budget), (Fraction(0), Fraction(0)), work, most)
    return None


def _amount(measure: str, loss: Any) -> Sum:
    if (measure, loss["type"]) == ("PureDP/1", "PureDP/1"):
        return (_number(loss, "epsilon"),)
    if (measure, loss["type"]) == ("zCDP/1", "zCDP/1"):
        return (_number(loss, "rho"),)
    if (measure, loss["type"]) == ("zCDP/1", "GaussianDP/1") and loss.get("rho") is not None:
        return (_number(loss, "rho"),)
    halved = {"PureDP/1": "epsilon", "GaussianDP/1": "mu"}.get(loss["type"])
    if measure == "zCDP/1" and halved is not None:
        return (rounded(_number(loss, halved) ** 2 / 2),)
    raise Unsummed


def _epsilon_delta(loss: Any) -> Sum:
    if loss["type"] == "PureDP/1":
        return _number(loss, "epsilon"), Fraction(0)
    if loss["type"] in ("ApproxDP/1", "ProbabilisticDP/1"):
        return _number(loss, "epsilon"), _number(loss, "delta")
    raise Unsummed


def _number(loss: dict[str, Any], name: str) -> Fraction:
    said = loss.get(name)
    written = _NUMBER.fullmatch(said) if isinstance(said, str) else None
    if written is None or (below := int(written[2] or 1)) == 0:
        raise DoesNotHold(f"a loss has a number that no service writes: {ascii(said)[:60]}")
    above = int(written[1])
    if above < 0:
        raise DoesNotHold(f"a loss is below 0: {written[0][:60]}")
    return Fraction(above, below)


# ------------------------------------------------------------------------------------------------------------- replay


@dataclass
class AuditedSession:
    """A session in the record: its account if it is a plain sum, what was launched, and what became of its grant."""

    account: PlainSum | None
    outer: "AuditedSession | None" = None
    """The nearest session around it that was granted."""
    charge: RecordedCharge | None = None
    granted_to: str = ""
    launched: list[RecordedCharge] = field(default_factory=list)
    revoked: bool = False
    recounted: bool = False
    sees: int | None = None
    """The version of the data that it keeps, or a session around it; None: what is launched sees the current one."""

    def grants(self) -> "Iterator[AuditedSession]":
        """It and those around it, as far as they were granted, from the inside."""
        found: AuditedSession | None = self
        while found is not None:
            if found.granted_to:
                yield found
            found = found.outer


class AdmittedLaunch(NamedTuple):
    """A launch that was admitted and waits for its place."""

    path: Path
    mechanism: Any
    cost: str
    charge: RecordedCharge
    granted_to: str
    sees: int | None


class RecordReplay:
    """What the entries say, one after the other."""

    def __init__(self) -> None:
        self.sessions: dict[Path, AuditedSession] = {}
        self.costs: dict[Path, str] = {}
        """What was charged for each mechanism, by its path."""
        self.kept: dict[Path, int] = {}
        """The version of the data that each mechanism keeps, by its path."""
        self.version = 1
        self.waiting: dict[str, tuple[RecordEntry, AdmittedLaunch | None]] = {}
        self.seen: set[str] = set()
        self.left_open: set[str] = set()
        self.recovered = self.recovering = self.retired = False
        self.closings = 0
        self.checked = self.unchecked = 0
        self.declared: set[Path] = set()
        """Where releases that were made elsewhere were charged: their losses are declared, and not derived."""
        self.unknown: Counter[str] = Counter()
        self._rules: dict[str, Callable[[RecordEntry, str], None]] = {
            **{"open": self._open, "launch": self._launch, "delegation": self._launch, "charge": self._launch},
            "ask": self._ask,
            "question": self._question,
            **{"revocation": self._revocation, "recount": self._recount, "refusal": self._refusal},
            **{"closing": self._close_or_reopen, "reopening": self._close_or_reopen},
            **{"version": self._version, "answer": self._answer, "recovery": self._recovery, "lost": self._lost},
        }
        self.work = Additions()

    def step(self, entry: RecordEntry, before: str) -> None:
        """One entry further, behind the head `before`."""
        self._must_be_in_place(entry)
        if entry.kind in ADMITTED:
            self._admit(entry)
        rule = self._rules.get(entry.kind)
        if rule is not None:
            rule(entry, before)
        elif entry.kind not in UNRULED:
            self.unknown[f"entries {ascii(entry.kind)[:40]}"] += 1
        self.retired = entry.kind == "retirement"

    def _must_be_in_place(self, entry: RecordEntry) -> None:
        if (entry.kind == "data") != (entry.number == 1):
            raise entry.wrong("a record begins with its data, once")
        if self.retired:
            raise entry.wrong("the record has entries after it was retired")
        if entry.kind != "lost":
            if self.left_open:
                raise entry.wrong("a request was left open that a recovery must close")
            self.recovering = False

    def _admit(self, entry: RecordEntry) -> None:
        if self.recovered and entry.kind != "revocation":
            raise entry.wrong("something was launched or asked after the record was lost")
        if self.closings % 2 and entry.kind in ("launch", "delegation", "charge", "ask", "question"):
            raise entry.wrong("something was launched or asked while the data were closed")
        if entry.request in self.seen:
            raise entry.wrong("a request was admitted twice")
        said = entry.says(2)
        if said[0] != entry.kind or (entry.kind != "open" and said[1] != list(entry.path)):
            raise entry.wrong("its body is that of another entry")
        self.seen.add(entry.request)
        self.waiting[entry.request] = (entry, None)

    def _must_be_granted(self, entry: RecordEntry, session: AuditedSession) -> None:
        """In what was granted a principal acts under its own grant, while that stands; a script may have no name."""
        grants = list(session.grants())
        if not entry.who or not grants:
            return
        if grants[0].granted_to != entry.who:
            raise entry.wrong("something was done in a session that another was granted")
        if any(grant.revoked for grant in grants):
            raise entry.wrong("something was done in a session that was revoked")

    def _open(self, entry: RecordEntry, before: str) -> None:
        if entry.path or self.sessions:
            raise entry.wrong("the session was opened twice")
        self.sessions[()] = AuditedSession(account_of(entry.says(2)[1], self.work))

    def _ask(self, entry: RecordEntry, before: str) -> None:
        if entry.path not in self.costs:
            raise entry.wrong("something was asked that was not launched")
        self._must_be_granted(entry, self._session(entry, entry.path[:-1]))

    def _revocation(self, entry: RecordEntry, before: str) -> None:
        revoked = self._session(entry, entry.path)
        if not revoked.granted_to:
            raise entry.wrong("there was no grant to revoke")
        revoked.revoked = True

    def _close_or_reopen(self, entry: RecordEntry, before: str) -> None:
        """Data are closed after an answer could not be computed, and reopened by their custodian, in turn."""
        if entry.path or entry.says(3)[2] != self.closings or (entry.kind == "reopening") != bool(self.closings % 2):
            raise entry.wrong("data are closed and reopened in turn")
        self.closings += 1

    def _version(self, entry: RecordEntry, before: str) -> None:
        """Newer rows of the same units: versions are numbered, one after the other."""
        _, _, number, fingerprint, declared, note, *_ = entry.says(6)
        if entry.path or number != self.version + 1:
            raise entry.wrong("the versions of the data are numbered one after the other")
        if not (_is_text(fingerprint) and _is_text(note) and isinstance(declared, dict)):
            raise entry.wrong("its body is not that of an entry of its kind")
        self.version += 1

    def _launch(self, entry: RecordEntry, before: str) -> None:
        _, _, name, mechanism, _, by, *_, last = entry.says(7)
        is_grant = isinstance(last, dict) and last.get("type") == "Grant/1"
        to = last.get("to") if is_grant else ""
        if not isinstance(to, str) or (is_grant and not to) or not (name is None or isinstance(name, str)):
            raise entry.wrong("its body is not that of an entry of its kind")
        is_external = isinstance(mechanism, dict) and mechanism.get("type") == "External/1"
        if is_external != (entry.kind == "charge"):
            raise entry.wrong("only a release that was made elsewhere is a charge")
        relation = mechanism.get("relation") if isinstance(mechanism, dict) else None
        on_sample = isinstance(relation, dict) and relation.get("type") == "OfSample/1"
        keeps = entry.kind in ("launch", "charge") or by is not None or on_sample
        self._admit_launch(entry, name, mechanism, to, keeps=keeps)

    def _question(self, entry: RecordEntry, before: str) -> None:
        """A launch that is asked once: its answer settles both."""
        entry.says(5)
        self._admit_launch(entry, None, None, "", keeps=True)

    def _admit_launch(self, entry: RecordEntry, name: str | None, mechanism: Any, to: str, *, keeps: bool) -> None:
        """`keeps` says whether it keeps its version of the data: a session does that is parted, or sees a sample."""
        session = self._session(entry, entry.path)
        current = session.sees or self.version
        if entry.kept_version() != (current if keeps else 1):
            raise entry.wrong("something was launched on another version of the data than the one of its time")
        self._must_be_granted(entry, session)
        if session.revoked:
            raise entry.wrong("something was launched in a session that was revoked")
        charge = entry.charge()
        place = len(session.launched) if name is None else name
        self.waiting[entry.request] = (
            entry,
            AdmittedLaunch((*entry.path, place), mechanism, entry.cost, charge, to, current if keeps else session.sees),
        )
        session.launched.append(charge)
        self._charge(entry, session.account, charge)

    def _charge(self, entry: RecordEntry, account: PlainSum | None, charge: RecordedCharge) -> None:
        if account is None:
            self.unchecked += 1
            return
        try:
            spent, made = account.after(charge)
        except Unsummed:
            account.exact = False
            self.unchecked += 1
            if not charge.launches:
                self.unknown[f"losses {ascii(charge.loss['type'])[:40]}"] += 1
            return
        if not account.holds(spent, made):
            raise entry.wrong("a launch was admitted that does not fit into its budget")
        account.spent, account.made = spent, made
        if account.exact:
            self.checked += 1
        else:
            self.unchecked += 1

    def _refusal(self, entry: RecordEntry, before: str) -> None:
        account = self._session(entry, entry.path).account
        if self.recovered:  # where everything is refused
            return
        exceeded = entry.cost and entry.what.endswith("BudgetExceeded")
        if account is None or not account.exact or not exceeded:
            self.unchecked += 1
            return
        try:
            fits = account.holds(*account.after(entry.charge()))
        except Unsummed:
            self.unchecked += 1
            return
        if fits:
            raise entry.wrong("a launch was refused that fits into its budget")
        self.checked += 1

    def _recount(self, entry: RecordEntry, before: str) -> None:
        _, _, number, *_ = entry.says(3)
        if not _is_count(number):
            raise entry.wrong("its body is not that of an entry of its kind")
        session, child = self._session(entry, entry.path), self._session(entry, (*entry.path, number))
        if not child.revoked:
            raise entry.wrong("what was not revoked was recounted")
        if child.recounted:
            raise entry.wrong("what was left unused was returned twice")
        child.recounted = True
        account, charge = session.account, child.charge
        if account is None or charge is None:
            self.unchecked += 1
            return
        if account.most is not None:
            raise entry.wrong("a recount that no theorem covers")
        account.recount(charge, child.launched)
        if account.exact:
            self.checked += 1
        else:
            self.unchecked += 1

    def _answer(self, entry: RecordEntry, before: str) -> None:
        if entry.what != before:
            raise entry.wrong("an answer names another head before it")
        asked, launch = self.waiting.pop(entry.request, (None, None))
        if asked is None:
            raise entry.wrong("an answer was given to a request that was not open")
        if launch is None:
            if entry.path != asked.path:
                raise entry.wrong("an answer was given in another place than was asked")
            return
        if entry.path != launch.path:
            raise entry.wrong("what was launched is in another place")
        if entry.path in self.sessions or entry.path in self.costs or entry.path in self.declared:
            raise entry.wrong("two were launched in one place")
        if asked.kind == "charge":  # it answers nothing, so nothing may be asked there
            self.declared.add(entry.path)
            return
        if asked.kind != "delegation":
            self.costs[entry.path], self.kept[entry.path] = launch.cost, launch.sees or 1
            return
        account, around = account_of(launch.mechanism, self.work), self._session(asked, asked.path)
        rule = launch.mechanism["rule"]
        if rule["type"] == "Filter/1" and launch.charge != (rule.get("budget"), []):
            raise asked.wrong("a budget was delegated for another cost than itself")
        outer = around if around.granted_to else around.outer
        self.sessions[entry.path] = AuditedSession(account, outer, launch.charge, launch.granted_to, sees=launch.sees)

    def _recovery(self, entry: RecordEntry, before: str) -> None:
        """The backup that was opened is the record up to there."""
        number, head, *_ = entry.says(2)
        if (number, head) != (entry.number - 1, before):
            raise entry.wrong("the recovery of another record")
        self.recovered = self.recovering = True
        self.left_open = set(self.waiting)

    def _lost(self, entry: RecordEntry, before: str) -> None:
        if not self.recovering:
            raise entry.wrong("something was given up, and no record was lost")
        if entry.request:
            if entry.request not in self.left_open:
                raise entry.wrong("a request was given up that was not open")
            self.left_open.discard(entry.request)
            del self.waiting[entry.request]

    def answering(self, entry: RecordEntry) -> tuple[Path, str | None, int | None]:
        """Where the mechanism is that answers an entry which was just admitted, what its launch was charged, and which
        version of the data it keeps.
        """
        if entry.kind == "ask":
            return entry.path, self.costs[entry.path], self.kept[entry.path]
        launch = self.waiting[entry.request][1] if entry.kind in ("question", "charge") else None
        if launch is None:
            raise DoesNotHold("the receipt's question is not the one on record")
        return launch.path, launch.cost, launch.sees

    def _session(self, entry: RecordEntry, path: Path) -> AuditedSession:
        found = self.sessions.get(path)
        if found is None:
            raise entry.wrong("there is no session at its path")
        return found


# ----------------------------------------------------------------------------------------------------------- receipts


class Receipts:
    """Receipts that wait for the entries which they name."""

    def __init__(self, given: Iterable[Any], header: RecordHeader) -> None:
        self.given = 0
        self.by_text: dict[str, GivenReceipt] = {}
        self._questions: dict[int, GivenReceipt] = {}
        self._answers: dict[int, list[GivenReceipt]] = {}
        self._requests: dict[int, str] = {}
        for one in given:
            self.given += 1
            self._add(GivenReceipt.read(one), header)

    def _add(self, receipt: GivenReceipt, header: RecordHeader) -> None:
        said = receipt.said
        if (said["ledger"], said["session"]) != (header.genesis, header.session):
            raise DoesNotHold("this receipt is about another record")
        if not 0 < said["number"] < said["head_number"] <= header.number:
            raise DoesNotHold("this receipt names entries that are not on record: the record is older, or was cut")
        first = self._questions.setdefault(said["number"], receipt)
        if first.said != said:
            raise DoesNotHold(f"two receipts for the question in entry {said['number']} say different things")
        self.by_text[receipt.text + receipt.signature] = receipt
        if first is receipt:
            self._answers.setdefault(said["head_number"], []).append(receipt)

    def step(self, entry: RecordEntry, text: bytes, head: str, replay: RecordReplay) -> None:
        """Compare the receipts that name this entry, which leads to the head, with it."""
        asked = self._questions.get(entry.number)
        if asked is not None:
            self._compare(asked.said, entry, text, replay)
            self._requests[entry.number] = entry.request
        for receipt in self._answers.get(entry.number, ()):
            said = receipt.said
            if said["head"] != head:
                raise DoesNotHold("the record is not the one that this receipt was given on: an entry was changed")
            if (entry.kind, entry.request) != ("answer", self._requests[said["number"]]):
                raise DoesNotHold("the receipt does not name the head with its answer: that is not the one on record")
            if entry.body != said["answer"]:
                raise DoesNotHold("the receipt's answer is not the one on record")

    def _compare(self, said: dict[str, Any], entry: RecordEntry, text: bytes, replay: RecordReplay) -> None:
        if said["entry"] != sha256(text).hexdigest():
            raise DoesNotHold("the record is not the one that this receipt was given on: an entry was changed")
        path, cost, version = replay.answering(entry)
        if (entry.who, entry.what, path, entry.at) != (said["who"], said["what"], tuple(said["path"]), said["at"]):
            raise DoesNotHold("the receipt's question is not the one on record")
        if cost != said["cost"]:
            raise DoesNotHold("the receipt's price is not the one on record")
        if version != said["data_version"]:
            raise DoesNotHold("the receipt's version of the data is not the one on record")

    @property
    def reach(self) -> int:
        """The last entry that a receipt vouches for."""
        return max(self._answers, default=0)


def _entries(lines: Iterator[str], header: RecordHeader) -> Iterator[tuple[RecordEntry, bytes, str, str]]:
    """Each entry with its bytes, and the heads before and after it; the last must be the one that the header states."""
    head, number = bytes.fromhex(header.genesis), 0
    for number, line in enumerate(lines, start=1):
        written = _LINE.fullmatch(line)
        said = None if written is None else _read(written[2], f"line {number + 1}")
        if written is None or not isinstance(said, str):
            raise DoesNotHold(f"line {number + 1} is not written as a service writes it")
        try:
            text = said.encode()
        except UnicodeError:
            raise DoesNotHold(f"entry {number} is not UTF-8") from None
        if len(text) > LONGEST:
            raise DoesNotHold(f"entry {number} is longer than a service writes one")
        before, head = head.hex(), sha256(head + text).digest()
        if int(written[1]) != number:
            raise DoesNotHold(f"entry {number} is missing")
        yield RecordEntry.read(said, number), text, before, head.hex()
    if not number or (number, head.hex()) != (header.number, header.hash):
        raise DoesNotHold("the entries do not lead to the head that the record states")


def check(
    lines: Iterator[str],
    receipts: Iterable[Any] = (),
    signer: str | None = None,
    earlier: str | None = None,
) -> str:
    """Check a record and receipts; what was found, in one line. `DoesNotHold` if anything does not hold.

    `signer` is the service's public key, without which there are no receipts to check; `earlier` is the first line of a
    record that was exported before.
    """
    header = RecordHeader.read(next(lines, "null"))
    waiting, replay, signers = Receipts(receipts, header), RecordReplay(), Signers()
    if signer is not None:
        must_be_a_key(signer)
    elif waiting.given:
        raise DoesNotHold("receipts are checked by the service's public key, and none was given: say --signer KEY")
    older = None if earlier is None else RecordHeader.read(earlier)
    for entry, text, before, head in _entries(lines, header):
        if entry.kind == "signer":
            signers.step(entry, before)
        replay.step(entry, before)
        waiting.step(entry, text, head, replay)
        if older is not None and older.number == entry.number and older.hash != head:
            raise DoesNotHold("the earlier record is not the beginning of this one: one of them is a fork")
    if older is not None and (
        (older.session, older.genesis) != (header.session, header.genesis) or older.number > header.number
    ):
        raise DoesNotHold("the earlier record is not the beginning of this one: it is another's, or this one was cut")
    return _summary(header, replay, waiting, _vouched(signers, waiting, signer, header))


def _vouched(signers: Signers, receipts: Receipts, signer: str | None, header: RecordHeader) -> str:
    if signer is None:
        return "no signature was checked: give --signer"
    whole, trusted = signers.trusted(signer, header)
    for receipt in receipts.by_text.values():
        signers.must_have_signed(receipt, trusted)
    if whole:
        return "signed by the service"
    if not receipts.given:
        raise DoesNotHold("neither this record nor a receipt for it is signed, so no service vouches for it")
    return f"the record is not signed: receipts vouch for entries 1 to {receipts.reach}, and for no later one"


def _summary(header: RecordHeader, replay: RecordReplay, receipts: Receipts, vouched: str) -> str:
    number, twice = len(receipts.by_text), receipts.given - len(receipts.by_text)
    parts = [f"{header.number} entries hold; {replay.checked} admissions and refusals are right"]
    if replay.unchecked:
        parts[0] += f", {replay.unchecked} are not plain sums and were not checked"
    if replay.declared:
        parts.append(f"{len(replay.declared)} charges are for releases made elsewhere, whose losses are declared")
    parts.append(vouched)
    if replay.recovered:
        parts.append("a part of the record was lost, and its budget counts as spent")
    if replay.retired:
        parts.append("the data set is retired")
    if twice:
        parts.append(f"{twice} of the receipts were given twice")
    if number:
        parts.append(f"{number} receipt holds" if number == 1 else f"{number} receipts hold")
    if replay.unknown:
        kinds = ", ".join(f"{count} {kind}" for kind, count in replay.unknown.most_common(5))
        parts.append(f"of kinds that this checker does not know, and which were not checked: {kinds}")
        raise NotAllKnown("; ".join(parts))
    return "; ".join(parts)


# ------------------------------------------------------------------------------------------------------- command line


def _lines(file: BinaryIO, longest: int = LONGEST_LINE) -> Iterator[str]:
    while line := file.readline(longest):
        if len(line) == longest:
            raise DoesNotHold("a line is longer than a service writes one")
        try:
            yield line.decode()
        except UnicodeError:
            raise DoesNotHold("a line is not UTF-8") from None
        longest = LONGEST_LINE


def _receipt(name: str) -> Any:
    with open(name, "rb") as file:
        text = file.read(_LONGEST_RECEIPT)
    if len(text) == _LONGEST_RECEIPT:
        raise DoesNotHold(f"{name} is longer than a service writes a receipt")
    try:
        return _read(text.decode(), name)
    except UnicodeError:
        raise DoesNotHold(f"{name} is not UTF-8") from None


def _first_line(name: str | None) -> str | None:
    if name is None:
        return None
    with open(name, "rb") as file:
        return next(_lines(file, _LONGEST_HEADER), "null")


def main(arguments: list[str]) -> int:
    """Check the files that are named; 0 if all of it holds."""
    parser = argparse.ArgumentParser(
        prog="checker.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("record", help="the public record, as JSON lines")
    parser.add_argument("receipts", nargs="*", help="receipts, each in a file")
    parser.add_argument("--signer", metavar="KEY", help="the service's public key, 64 hexadecimal digits")
    parser.add_argument("--earlier", metavar="FILE", help="a record that was exported before")
    given = parser.parse_args(arguments)
    signer = None if given.signer is None else given.signer.strip().lower()
    try:
        with open(given.record, "rb") as file:
            receipts = [_receipt(name) for name in given.receipts]
            print(check(_lines(file, _LONGEST_HEADER), receipts, signer, _first_line(given.earlier)))
    except NotAllKnown as error:
        print(f"not all of it was checked: {error}", file=sys.stderr)
        return 3
    except (DoesNotHold, OSError) as error:
        print(f"does not hold: {error}", file=sys.stderr)
        return 1
    except ImportError as error:
        print(f"signatures cannot be checked here: install {error.name}", file=sys.stderr)
        return 1
    except Exception as error:  # anything else that a record or a receipt holds and no service writes
        print(f"does not hold: it cannot be read ({type(error).__name__}: {ascii(str(error))[:200]})", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    gc.disable()  # nothing here makes a cycle, and looking for one takes long where a hostile file holds many lists
    sys.exit(main(sys.argv[1:]))
