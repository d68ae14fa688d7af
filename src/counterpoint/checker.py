"""Check the public record of a session, and receipts, without any code of Counterpoint's.

    python checker.py record.jsonl [receipt.json ...]

This file stands alone: it needs Python 3.11 and, for signatures, the package `cryptography`. The format is described in
the guide, "Receipts and the public record", so that others can write a checker of their own. What it checks:

- the chain: each entry is hashed with all before it, and the last hash is the one that the record states;
- the protocol: a request is admitted once, answered once, and nothing is launched in a session that was revoked;
- admissions: where a budget is a plain sum (PureDP, zCDP, basic composition of (epsilon, delta)), every launch that was
  admitted fits, every one that was refused does not, and what was returned is what was left unused;
- the end: from the recovery of a lost record on nothing is launched or asked, and a retirement is the last entry;
- receipts: the signature, by the key on record; the question's entry; the head that the receipt names.
"""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from hashlib import sha256
from typing import Any

FORMAT = "counterpoint-record/1"
FIELDS = (
    *("number", "kind", "request", "path", "what", "body", "version"),
    *("state", "at", "record", "who", "salt", "cost"),
)
ADMITTED = ("open", "launch", "delegation", "ask", "revocation", "recount")

Path = tuple[Any, ...]


class DoesNotHold(Exception):
    """The record, or a receipt, does not hold."""


@dataclass
class SummedBudget:
    """A session's account, where it is a plain sum: what a loss adds, the limits, and what was added so far."""

    adds: Callable[[Any], tuple[Fraction, ...]]
    limits: tuple[Fraction, ...]
    spent: tuple[Fraction, ...]

    def after(self, cost: Any) -> tuple[Fraction, ...]:
        """What would be spent after one more launch."""
        return tuple(spent + more for spent, more in zip(self.spent, self.adds(cost), strict=True))

    def holds(self, spent: tuple[Fraction, ...]) -> bool:
        """Whether that is within the limits."""
        return all(one <= limit for one, limit in zip(spent, self.limits, strict=True))


@dataclass
class AuditedSession:
    """A session in the record: its account if it is a plain sum, what was launched, and whether it was revoked."""

    budget: SummedBudget | None
    launched: list[Any] = field(default_factory=list)
    cost: Any = None
    revoked: bool = False


@dataclass
class PublicRecord:
    """A record that was read: its entries, their hashes, the heads of the chain, and the keys that sign receipts."""

    header: dict[str, Any]
    entries: list[dict[str, Any]]
    hashes: list[str]
    heads: list[str]

    @property
    def signers(self) -> set[str]:
        """The public keys on record."""
        return {entry["what"] for entry in self.entries if entry["kind"] == "signer"}


def read_record(lines: Iterator[str]) -> PublicRecord:
    """Follow the chain from its beginning to the head that the record states."""
    header = json.loads(next(lines))
    if header.get("format") != FORMAT:
        raise DoesNotHold(f"this is no record of the format {FORMAT}")
    head, entries, hashes = bytes.fromhex(header["genesis"]), [], []
    heads: list[str] = []
    for expected, line in enumerate(lines, start=1):
        text = json.loads(line)["entry"].encode()
        values = json.loads(text)
        entry = dict(zip(FIELDS, values + [""] * (len(FIELDS) - len(values)), strict=False))
        if entry["number"] != expected:
            raise DoesNotHold(f"entry {expected} is missing")
        head = sha256(head + text).digest()
        if entry["kind"] == "recovery":
            _check_recovery(entry, heads)
        entries.append(entry)
        hashes.append(sha256(text).hexdigest())
        heads.append(head.hex())
    stated = header["head"]
    if not heads or (len(heads), heads[-1]) != (stated["number"], stated["hash"]):
        raise DoesNotHold("the entries do not lead to the head that the record states")
    return PublicRecord(header, entries, hashes, heads)


def _check_recovery(entry: dict[str, Any], heads: list[str]) -> None:
    """The backup that was opened is the record up to there."""
    number, head, _, _ = json.loads(entry["body"])
    if (number, [head]) != (len(heads), heads[-1:]):
        raise DoesNotHold(f"entry {entry['number']}: the recovery of another record")


class RecordReplay:
    """What the entries say, one after the other."""

    def __init__(self) -> None:
        self.sessions: dict[Path, AuditedSession] = {}
        self.open: dict[str, dict[str, Any]] = {}
        self.seen: set[str] = set()
        self.recovered = self.retired = False
        self.checked = self.unchecked = 0

    def step(self, entry: dict[str, Any]) -> None:
        """One entry further."""
        kind, path = entry["kind"], tuple(entry["path"])
        if self.retired:
            raise DoesNotHold(f"entry {entry['number']}: the record goes on after it was retired")
        if kind in ADMITTED:
            if self.recovered and kind != "revocation":
                raise DoesNotHold(f"entry {entry['number']}: something was launched or asked after the record was lost")
            if entry["request"] in self.seen:
                raise DoesNotHold(f"entry {entry['number']}: a request was admitted twice")
            self.seen.add(entry["request"])
            self.open[entry["request"]] = entry
        if kind == "open":
            self.sessions[()] = AuditedSession(budget_of(json.loads(entry["body"])[1]))
        elif kind in ("launch", "delegation"):
            self._launch(entry, path)
        elif kind == "refusal":
            self._refusal(entry, path)
        elif kind == "revocation":
            self.sessions[path].revoked = True
        elif kind == "recount":
            self._recount(entry, path)
        elif kind == "answer":
            self._answer(entry, path)
        elif kind == "lost":
            self._lost(entry)
        self.recovered = self.recovered or kind == "recovery"
        self.retired = kind == "retirement"

    def _lost(self, entry: dict[str, Any]) -> None:
        if entry["request"] and self.open.pop(entry["request"], None) is None:
            raise DoesNotHold(f"entry {entry['number']}: a request was given up that was not open")

    def _launch(self, entry: dict[str, Any], path: Path) -> None:
        session = self._session(entry, path)
        if session.revoked:
            raise DoesNotHold(f"entry {entry['number']}: something was launched in a session that was revoked")
        cost = json.loads(entry["cost"]) if entry["cost"] else None
        session.launched.append(cost)
        if session.budget is None or cost is None:
            self.unchecked += 1
            return
        try:
            spent = session.budget.after(cost)
        except Unsummed:  # from here on, this session's account is no plain sum
            session.budget = None
            self.unchecked += 1
            return
        if not session.budget.holds(spent):
            raise DoesNotHold(f"entry {entry['number']}: a launch was admitted that does not fit into its budget")
        session.budget.spent = spent
        self.checked += 1

    def _refusal(self, entry: dict[str, Any], path: Path) -> None:
        session = self._session(entry, path)
        cost = json.loads(entry["cost"]) if entry["cost"] else None
        exceeded = entry["what"].endswith("BudgetExceeded")
        if self.recovered:  # where everything is refused
            return
        if session.budget is None or cost is None or not exceeded:
            self.unchecked += 1
            return
        if session.budget.holds(session.budget.after(cost)):
            raise DoesNotHold(f"entry {entry['number']}: a launch was refused that fits into its budget")
        self.checked += 1

    def _recount(self, entry: dict[str, Any], path: Path) -> None:
        _, _, number = json.loads(entry["body"])
        session, child = self._session(entry, path), self._session(entry, (*path, number))
        if not child.revoked:
            raise DoesNotHold(f"entry {entry['number']}: what was not revoked was recounted")
        if session.budget is None or child.cost is None or None in child.launched:
            self.unchecked += 1
            return
        parts = [session.budget.adds(cost) for cost in child.launched]
        charged = session.budget.adds(child.cost)
        used = tuple(sum((part[place] for part in parts), Fraction(0)) for place in range(len(charged)))
        if any(more > limit for more, limit in zip(used, charged, strict=True)):
            raise DoesNotHold(f"entry {entry['number']}: more was used in a grant than was charged for it")
        session.budget.spent = tuple(
            spent - whole + part for spent, whole, part in zip(session.budget.spent, charged, used, strict=True)
        )
        self.checked += 1

    def _answer(self, entry: dict[str, Any], path: Path) -> None:
        asked = self.open.pop(entry["request"], None)
        if asked is None:
            raise DoesNotHold(f"entry {entry['number']}: an answer was given to a request that was not open")
        if asked["kind"] == "delegation":
            cost = json.loads(asked["cost"]) if asked["cost"] else None
            self.sessions[path] = AuditedSession(budget_of(json.loads(asked["body"])[3]), cost=cost)

    def _session(self, entry: dict[str, Any], path: Path) -> AuditedSession:
        found = self.sessions.get(path)
        if found is None:
            raise DoesNotHold(f"entry {entry['number']}: there is no session at {list(path)}")
        return found


def budget_of(composition: dict[str, Any]) -> SummedBudget | None:
    """The account of a session, if its rule is a plain sum in the measure of its budget."""
    rule = composition["rule"]
    if rule["type"] != "Filter/1" or "empty" in rule or "launches" in rule:
        return None
    budget = rule["budget"]
    for kind, name in (("PureDP/1", "epsilon"), ("zCDP/1", "rho")):
        if budget["type"] == kind:
            adds = partial(_numbers, kind, name)
            return SummedBudget(adds, adds(budget), (Fraction(0),))
    if budget["type"] == "ApproxDP/1" and rule["by"] == "basic":
        return SummedBudget(_epsilon_delta, _epsilon_delta(budget), (Fraction(0), Fraction(0)))
    return None


def _epsilon_delta(cost: Any) -> tuple[Fraction, ...]:
    if cost["type"] == "PureDP/1":
        return Fraction(cost["epsilon"]), Fraction(0)
    return *_numbers("ApproxDP/1", "epsilon", cost), *_numbers("ApproxDP/1", "delta", cost)


def _numbers(kind: str, name: str, cost: Any) -> tuple[Fraction, ...]:
    if cost["type"] != kind:
        raise Unsummed
    return (Fraction(cost[name]),)


class Unsummed(Exception):
    """A loss of another measure: how much it adds is a theorem's matter, which this file does not know."""


def check_receipt(record: PublicRecord, signed: dict[str, str], disclosed: dict[str, str] | None = None) -> None:
    """Whether a receipt is the service's, and says what the record says."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - the record is checked without it
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415

    def by(public: str) -> bool:
        try:
            key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
            key.verify(bytes.fromhex(signed["signature"]), signed["receipt"].encode())
        except (InvalidSignature, ValueError):
            return False
        return True

    if not any(by(public) for public in record.signers):
        raise DoesNotHold("no key on record has signed this receipt")
    receipt = json.loads(signed["receipt"])
    if (receipt["ledger"], receipt["session"]) != (record.header["genesis"], record.header["session"]):
        raise DoesNotHold("this receipt is about another record")
    number, head_number = receipt["number"], receipt["head_number"]
    if not 0 < number <= head_number <= len(record.entries):
        raise DoesNotHold("this receipt names entries that the record does not have: the record is older, or was cut")
    if (receipt["entry"], receipt["head"]) != (record.hashes[number - 1], record.heads[head_number - 1]):
        raise DoesNotHold("the record is not the one that this receipt was given on: an entry was changed")
    entry = record.entries[number - 1]
    if (entry["kind"], entry["who"], entry["what"]) != ("ask", receipt["who"], receipt["what"]):
        raise DoesNotHold("the receipt's question is not the one on record")
    answers = [one for one in record.entries[number:] if one["kind"] == "answer" and one["request"] == entry["request"]]
    if len(answers) != 1:
        raise DoesNotHold("the receipt's question was not answered on record")
    if disclosed is not None:
        opened = sha256(bytes.fromhex(disclosed["nonce"]) + disclosed["answer"].encode()).hexdigest()
        if opened != receipt["answer"]:
            raise DoesNotHold("the answer that was shown is not the one that the receipt was given for")


def check(lines: Iterator[str], receipts: list[dict[str, Any]]) -> str:
    """Check a record and receipts; what was found, in one line. `DoesNotHold` if anything does not hold."""
    record = read_record(lines)
    replay = RecordReplay()
    for entry in record.entries:
        try:
            replay.step(entry)
        except Unsummed:
            replay.unchecked += 1
    for receipt in receipts:
        check_receipt(record, receipt, receipt.get("disclosed"))
    held = "receipt holds" if len(receipts) == 1 else "receipts hold"
    return (
        f"{len(record.entries)} entries hold; {replay.checked} admissions and refusals are right"
        f"{f', {replay.unchecked} are not plain sums and were not checked' if replay.unchecked else ''}"
        f"{'; a part of the record was lost, and its budget counts as spent' if replay.recovered else ''}"
        f"{'; the data set is retired' if replay.retired else ''}"
        f"{f'; {len(receipts)} {held}' if receipts else ''}"
    )


def main(arguments: list[str]) -> int:
    """Check the files that are named; 0 if all of it holds."""
    if not arguments:
        print(__doc__)
        return 2
    record, *receipts = arguments
    try:
        with open(record, encoding="utf-8") as lines:
            print(check(lines, [_receipt(name) for name in receipts]))
    except (DoesNotHold, OSError, ValueError, KeyError, IndexError, TypeError) as error:
        print(f"does not hold: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


def _receipt(name: str) -> Any:
    with open(name, encoding="utf-8") as file:
        return json.load(file)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
