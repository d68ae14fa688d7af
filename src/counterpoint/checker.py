"""Check the public record of a session, and receipts, without any code of Counterpoint's.

    python checker.py record.jsonl [receipt.json ...]

This file stands alone: it needs Python 3.11 and, for signatures, the package `cryptography`. The format is described in
the guide, "Receipts and the public record", so that others can write a checker of their own. What it checks:

- the chain: each entry is hashed with all before it, and the last hash is the one that the record states;
- the protocol: a session is opened once; a request is admitted once and answered once, in its place; what is asked was
  launched; in a session that was granted, only its principal acts, and nothing is launched once it was revoked;
- admissions: where a budget is a plain sum (PureDP, zCDP, basic composition of (epsilon, delta)), every launch that was
  admitted fits, every one that was refused does not, a delegated budget costs what it allows, and what was returned,
  once, is what was left unused;
- the end: from the recovery of a lost record on nothing is launched or asked, and a retirement is the last entry;
- receipts: the signature, by the key on record; the question's entry; its price; the head that the receipt names.

What a mechanism costs is taken from the record: that it deserves its price is a theorem's matter.
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

    def is_covered_by(self, cost: Any) -> bool:
        """Whether a charge of this loss covers all that may be spent; so too where it is of another measure."""
        try:
            return all(limit <= one for one, limit in zip(self.adds(cost), self.limits, strict=True))
        except Unsummed:
            return True


@dataclass
class AuditedSession:
    """A session in the record: its account if it is a plain sum, what was launched, and what became of its grant."""

    budget: SummedBudget | None
    launched: list[Any] = field(default_factory=list)
    cost: Any = None
    granted_to: str = ""
    revoked: bool = False
    recounted: bool = False


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

    def charge(self, path: list[Any]) -> str:
        """What was charged for the mechanism at a path; empty where an old record does not say."""
        launches = {entry["request"]: entry["cost"] for entry in self.entries if entry["kind"] == "launch"}
        answered = (entry for entry in self.entries if entry["kind"] == "answer" and entry["path"] == path)
        return next((launches[entry["request"]] for entry in answered if entry["request"] in launches), "")


def read_record(lines: Iterator[str]) -> PublicRecord:
    """Follow the chain from its beginning to the head that the record states."""
    header = json.loads(next(lines, "null"))
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise DoesNotHold(f"this is no record of the format {FORMAT}")
    head, entries, hashes = bytes.fromhex(header["genesis"]), [], []
    heads: list[str] = []
    for expected, line in enumerate(lines, start=1):
        text = json.loads(line)["entry"].encode()
        values = json.loads(text)
        entry = dict(zip(FIELDS, values + [""] * (len(FIELDS) - len(values)), strict=False))
        if entry["number"] != expected:
            raise DoesNotHold(f"entry {expected} is missing")
        if entry["kind"] == "answer" and entry["what"] not in ("", head.hex()):
            raise DoesNotHold(f"entry {expected}: an answer names another head before it")
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
        self.costs: dict[Path, str] = {}
        """What was charged for each mechanism, by its path."""
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
            self._admit(entry, kind)
        if kind == "open":
            if path or self.sessions:
                raise DoesNotHold(f"entry {entry['number']}: the session was opened twice")
            self.sessions[()] = AuditedSession(budget_of(json.loads(entry["body"])[1]))
        elif kind in ("launch", "delegation"):
            self._must_be_granted(entry, path)
            self._launch(entry, path)
        elif kind == "ask":
            self._must_be_granted(entry, path)
            if path not in self.costs:
                raise DoesNotHold(f"entry {entry['number']}: something was asked that was not launched")
        elif kind == "refusal":
            self._refusal(entry, path)
        elif kind == "revocation":
            self._session(entry, path).revoked = True
        elif kind == "recount":
            self._recount(entry, path)
        elif kind == "answer":
            self._answer(entry, path)
        elif kind == "lost":
            self._lost(entry)
        self.recovered = self.recovered or kind == "recovery"
        self.retired = kind == "retirement"

    def _admit(self, entry: dict[str, Any], kind: str) -> None:
        if self.recovered and kind != "revocation":
            raise DoesNotHold(f"entry {entry['number']}: something was launched or asked after the record was lost")
        if entry["request"] in self.seen:
            raise DoesNotHold(f"entry {entry['number']}: a request was admitted twice")
        said = json.loads(entry["body"])
        if said[0] != kind or (kind != "open" and said[1] != entry["path"]):
            raise DoesNotHold(f"entry {entry['number']}: its body is that of another entry")
        self.seen.add(entry["request"])
        self.open[entry["request"]] = entry

    def _must_be_granted(self, entry: dict[str, Any], path: Path) -> None:
        """In what was granted a principal acts under its own grant, while that stands; a script may have no name."""
        around = (self.sessions.get(path[:length]) for length in range(len(path), 0, -1))
        grants = [session for session in around if session is not None and session.granted_to]
        if not entry["who"] or not grants:
            return
        if grants[0].granted_to != entry["who"]:
            raise DoesNotHold(f"entry {entry['number']}: something was done in a session that another was granted")
        if any(session.revoked for session in grants):
            raise DoesNotHold(f"entry {entry['number']}: something was done in a session that was revoked")

    def _lost(self, entry: dict[str, Any]) -> None:
        if entry["request"] and self.open.pop(entry["request"], None) is None:
            raise DoesNotHold(f"entry {entry['number']}: a request was given up that was not open")

    def _launch(self, entry: dict[str, Any], path: Path) -> None:
        session = self._session(entry, path)
        if session.revoked:
            raise DoesNotHold(f"entry {entry['number']}: something was launched in a session that was revoked")
        entry["place"] = len(session.launched)
        cost = json.loads(entry["cost"]) if entry["cost"] else None
        session.launched.append(cost)
        try:
            spent = None if session.budget is None or cost is None else session.budget.after(cost)
        except Unsummed:
            spent = None
        if session.budget is None or spent is None:  # from here on, this session's account is no plain sum
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
        if child.recounted:
            raise DoesNotHold(f"entry {entry['number']}: what was left unused was returned twice")
        child.recounted = True
        try:
            spent = self._returned(entry, session, child)
        except Unsummed:
            spent = None
        if session.budget is None or spent is None:
            session.budget = None
            self.unchecked += 1
            return
        session.budget.spent = spent
        self.checked += 1

    def _returned(
        self, entry: dict[str, Any], session: AuditedSession, child: AuditedSession
    ) -> tuple[Fraction, ...] | None:
        """What is spent with the child's launches in the place of its charge; None if that is no plain sum."""
        if session.budget is None or child.cost is None or None in child.launched:
            return None
        parts = [session.budget.adds(cost) for cost in child.launched]
        charged = session.budget.adds(child.cost)
        used = tuple(sum((part[place] for part in parts), Fraction(0)) for place in range(len(charged)))
        if any(more > limit for more, limit in zip(used, charged, strict=True)):
            raise DoesNotHold(f"entry {entry['number']}: more was used in a grant than was charged for it")
        return tuple(
            spent - whole + part for spent, whole, part in zip(session.budget.spent, charged, used, strict=True)
        )

    def _answer(self, entry: dict[str, Any], path: Path) -> None:
        asked = self.open.pop(entry["request"], None)
        if asked is None:
            raise DoesNotHold(f"entry {entry['number']}: an answer was given to a request that was not open")
        if asked["kind"] not in ("launch", "delegation"):
            if path != tuple(asked["path"]):
                raise DoesNotHold(f"entry {entry['number']}: an answer was given in another place than was asked")
            return
        _, _, name, mechanism, *_, last = json.loads(asked["body"])
        if path[:-1] != tuple(asked["path"]) or path[-1:] != (asked["place"] if name is None else name,):
            raise DoesNotHold(f"entry {entry['number']}: what was launched is in another place")
        if path in self.sessions or path in self.costs:
            raise DoesNotHold(f"entry {entry['number']}: two were launched in one place")
        if asked["kind"] == "launch":
            self.costs[path] = asked["cost"]
            return
        cost, budget = json.loads(asked["cost"]) if asked["cost"] else None, budget_of(mechanism)
        if budget is not None and cost is not None and not budget.is_covered_by(cost):
            raise DoesNotHold(f"entry {asked['number']}: a budget was delegated for less than it allows")
        to = last["to"] if isinstance(last, dict) and last.get("type") == "Grant/1" else ""
        self.sessions[path] = AuditedSession(budget, cost=cost, granted_to=to)

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
        return *_numbers("PureDP/1", "epsilon", cost), Fraction(0)
    return *_numbers("ApproxDP/1", "epsilon", cost), *_numbers("ApproxDP/1", "delta", cost)


def _numbers(kind: str, name: str, cost: Any) -> tuple[Fraction, ...]:
    if cost["type"] != kind:
        raise Unsummed
    number = Fraction(cost[name])
    if number < 0:
        raise DoesNotHold(f"a loss is below 0: {cost}")
    return (number,)


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
    said = ("ask", *(receipt[name] for name in ("who", "what", "path", "at")))
    if tuple(entry[name] for name in ("kind", "who", "what", "path", "at")) != said:
        raise DoesNotHold("the receipt's question is not the one on record")
    if record.charge(entry["path"]) not in ("", receipt["cost"]):
        raise DoesNotHold("the receipt's price is not the one on record")
    answers = [one for one in record.entries[number:] if one["kind"] == "answer" and one["request"] == entry["request"]]
    if len(answers) != 1:
        raise DoesNotHold("the receipt's question was not answered on record")
    if head_number < answers[0]["number"]:
        raise DoesNotHold("the receipt names a head before its answer")
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
    except (DoesNotHold, OSError) as error:
        print(f"does not hold: {error}", file=sys.stderr)
        return 1
    except ImportError as error:
        print(f"receipts cannot be checked here: install {error.name}", file=sys.stderr)
        return 1
    except Exception as error:  # whatever a record or a receipt is made of that no service writes
        print(f"does not hold: it cannot be read ({type(error).__name__}: {error})", file=sys.stderr)
        return 1
    return 0


def _receipt(name: str) -> Any:
    with open(name, encoding="utf-8") as file:
        return json.load(file)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
