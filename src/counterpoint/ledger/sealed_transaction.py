"""The records of a durable session inside one transaction: what is secret is sealed, every change extends the chain.

A `SealedTransaction` is the protocol's view of a `ChangeSet`, which is written whole or not at all. The `Sealer` keeps
what lasts from one transaction to the next: the data keys, the ids on the chain, and rows that were opened lately. The
grounds of the last receipts are kept too: the receipt of an answer is mostly wanted right after it.

>>> from counterpoint.ledger.chain import Head
>>> records = SealedTransaction(ChangeSet(None, "people", Head(0, bytes(32))), Sealer(DataKeys("people", None, ())))
>>> records.settled(Intent("never", b"", (0,), 0, 0, bytes(32)), None)
Traceback (most recent call last):
...
counterpoint.errors.LedgerError: this request was never made; nothing was stored
"""

from collections.abc import Callable
from functools import lru_cache

from msgspec.structs import replace

from counterpoint.coins.keystream import fresh
from counterpoint.coins.secure import SAMPLER_VERSION
from counterpoint.encoding import Plain, decode, encode, encode_checked, must_read_back
from counterpoint.errors import CounterpointError, InvalidParameter, LedgerTampered, SecretLeak
from counterpoint.ledger.chain import (
    Entry,
    Grounds,
    Head,
    NeverAnswered,
    commitment,
    disclosure,
    link,
    read_entry,
    said_digest,
)
from counterpoint.ledger.commands import Admission, Command
from counterpoint.ledger.ledger import Intent, StepOutcome, StoredAnswer, never_made, not_lost
from counterpoint.ledger.sealed_rows import Ids, OpenRows, cost_of, read_public_row, stored_row
from counterpoint.ledger.sealing import DataKeys, padded
from counterpoint.ledger.state import Faulty, HistoryEntry, LaunchRecord, Path, refused
from counterpoint.ledger.store.records import LONGEST, StoredRequest, StoredRow, fits, path_text, read_path
from counterpoint.ledger.store.store import ChangeSet

_KEPT = 256
_LARGEST = 2**16
_NEXT = 16
"""How many entries are read at once where an answer is looked for: mostly it follows its question closely."""


class SealedOutcome(StepOutcome, frozen=True, kw_only=True):
    """A row and an answer, and both as they will be stored."""

    stored: StoredRow
    request: StoredRequest
    commitment: str


class Sealer:
    """Seals what a session stores, and opens it again."""

    def __init__(self, keys: DataKeys, seeds: Callable[[], bytes] = lambda: fresh(32)) -> None:
        self.keys = keys
        self.ids = Ids()
        self.seeds = seeds
        self.rows = OpenRows()
        self.grounds: dict[str, Grounds] = {}

    def learn(self, grounds: list[Grounds]) -> None:
        """Keep the grounds of the last few receipts, once they are committed; not of a large answer."""
        if grounds and len(self.grounds) >= _KEPT:
            self.grounds.clear()
        self.grounds.update({one.request: one for one in grounds})

    def forget(self) -> None:
        """Keep no state and no answer in memory."""
        self.rows, self.grounds = OpenRows(), {}

    def outcome(self, intent: Intent, outcome: StepOutcome) -> SealedOutcome:
        """Seal what is going to be settled.

        A state or an answer that is not plain data, or cannot be read back, is a fault in the mechanism's code, and
        halts it; a launch has seen no data, and its error says what is wrong.
        """
        row, answer = outcome.row, outcome.answer
        try:
            stored = stored_row(intent.path, row, self.keys, self.rows.last(intent.path))
            plain = encode_checked(answer, Plain)  # type: ignore[arg-type]  # plain data of no fixed type
        except (SecretLeak, TypeError, ValueError):
            if not outcome.reads_data:
                raise
            row, answer = replace(row, state=Faulty()), Faulty()
            stored, plain = stored_row(intent.path, row, self.keys), encode(answer)
        asked = _stored(intent)
        done = asked.settled(self.keys.seal(padded(plain), "answer", *asked.place))
        committed = commitment(disclosure(self.keys.commitment_key(), intent.request, plain))
        return SealedOutcome(row, answer, outcome.reads_data, stored=stored, request=done, commitment=committed)


class SealedTransaction:
    """The records of one session in one transaction."""

    __slots__ = ("_rows", "_sealer", "changes", "grounds")

    def __init__(self, changes: ChangeSet, sealer: Sealer) -> None:
        self.changes = changes
        self.grounds: list[Grounds] = []
        self._sealer = sealer
        self._rows: dict[Path, LaunchRecord | None] = {}

    def now(self) -> int:
        """The time, but never before that of the last entry, whichever process wrote it."""
        return self.changes.now()

    def find(self, request: str) -> Intent | StoredAnswer | None:
        """What is on record under an id; its seal shows that it is as it was stored."""
        found = self.changes.request(request)
        if found is None:
            return None
        return self.intent(found) if found.answer is None else self._done(found)

    def must_be_new(self, kind: str, request: str) -> None:
        """Whether a request is new is never decided by what a table lacks: the chain must not have it either."""
        self._sealer.ids.must_be_new(self.changes, kind, request)

    def waiting_at(self, path: Path) -> Intent | None:
        """The open request at a row."""
        found = self.changes.open_at(path)
        return None if found is None else self.intent(found)

    def row(self, path: Path) -> LaunchRecord | None:
        """The row at a path, with its state; it must be the one that the chain left."""
        if path not in self._rows:
            stored = self.changes.row(path)
            if path_text(path) not in self.changes.rows:
                self._sealer.ids.must_be_as_left(self.changes, path, stored)
            self._rows[path] = None if stored is None else self._sealer.rows.read(stored, self._sealer.keys)
        return self._rows[path]

    def _put_row(self, path: Path, stored: StoredRow, row: LaunchRecord) -> None:
        self.changes.put_row(stored)
        self._sealer.rows.keep(stored, row)
        self._rows[path] = row

    def version(self, path: Path) -> int | None:
        """How often the row at a path has stepped."""
        return self.changes.version(path)

    def begin(self, request: str, command: Command, body: bytes, fact: HistoryEntry, plan: Admission) -> Intent:
        """Record a request, its seed sealed, and the row that it charges."""
        _must_be_readable(fact, request, body)
        sealer, changes, seed = self._sealer, self.changes, self._sealer.seeds()
        entry = changes.head.number + 1
        intent = Intent(request, body, plan.path, plan.version, plan.pin, seed, SAMPLER_VERSION, plan.row, entry)
        asked = _stored(intent)
        asked = asked._replace(seed=sealer.keys.seal(seed, "seed", *asked.place))
        record, version, state = asked.fingerprint, 0, ""
        if plan.charged is not None:
            charged = stored_row(fact.path, plan.charged, sealer.keys, sealer.rows.last(fact.path))
            version, state = charged.version, charged.fingerprint
            self._put_row(fact.path, charged, plan.charged)
        changes.put_request(asked)
        changes.append(
            fact.kind,
            request,
            fact.path,
            fact.what,
            body.decode(),
            version=version,
            state=state,
            record=record,
            who=fact.who,
            cost=fact.cost,
        )
        return replace(intent, line=changes.entries[-1][1], command=command)

    def refuse(self, request: str, body: bytes, fact: HistoryEntry, refusal: Exception) -> None:
        """A refusal stays on record, and is replayed as every charge is."""
        _must_be_readable(fact, request, body)
        line = refused(fact, refusal)
        self.changes.append(line.kind, request, line.path, line.what, body.decode(), who=line.who, cost=line.cost)

    def settled(self, intent: Intent, outcome: StepOutcome) -> StoredAnswer | None:
        """The answer on record; None if the request is open, as it was begun."""
        found = self.changes.request(intent.request)
        if found is None:
            raise never_made()
        if found.answer is not None:
            return self._done(found)
        assert isinstance(outcome, SealedOutcome)
        # All but seed and answer: what the noise was drawn from must be as it was begun
        if found[:-2] != outcome.request[:-2]:
            raise _changed(intent.request)
        return None

    def settle(self, intent: Intent, outcome: StepOutcome) -> None:
        """Store state and answer together; the request has no seed any more.

        The answer's entry says where the chain was before it: a receipt names the head with it, whenever it is made. It
        commits to the answer: another receipt, for another answer, would not be that of the record.
        """
        assert isinstance(outcome, SealedOutcome)
        stored, request, answer = outcome.stored, outcome.request, outcome.request.answer or b""
        body, state, record = outcome.commitment, stored.fingerprint, request.fingerprint
        # `what` names the head before this entry: by it a receipt proves its place in the chain, whenever it is made.
        self.changes.append(
            "answer",
            intent.request,
            intent.path,
            self.changes.head.hash.hex(),
            body,
            version=stored.version,
            state=state,
            record=record,
        )
        if intent.line and len(answer) <= _LARGEST and outcome.reads_data:
            self.grounds.append(_grounds(request, intent.line, stored, outcome.answer, self.changes.head))
        self._put_row(intent.path, stored, outcome.row)
        self.changes.put_request(request)
        self.changes.settled = True

    def intent(self, found: StoredRequest) -> Intent:
        """An open request, ready to be finished from its seed."""
        assert found.seed is not None
        path = read_path(found.path)
        seed = self._sealer.keys.unseal(found.seed, "seed", *found.place)
        line = self._line(found)
        body = read_entry(line, found.entry).body.encode()
        pin: int | str = decode(found.pin.encode(), int | str)  # type: ignore[arg-type]  # a union is a kind, too
        row = self.row(path)
        return Intent(found.request, body, path, found.version, pin, seed, found.sampler, row, found.entry, line)

    def intent_or_none(self, found: StoredRequest) -> Intent | None:
        """The same, or None if the key at hand does not open it."""
        try:
            return self.intent(found)
        except CounterpointError:
            return None

    def _done(self, found: StoredRequest) -> StoredAnswer:
        """An answer on record, about to be released: the process that settled it may have died right after.

        Its seal covers all other columns.
        """
        assert found.answer is not None
        answer = self._sealer.keys.unseal(found.answer, "answer", *found.place)
        self.changes.settled = True
        plain: Plain = decode(answer, Plain)  # type: ignore[arg-type]  # plain data of no fixed type
        return StoredAnswer(found.digest, plain, read_path(found.path))

    def receipt_grounds(self, request: str) -> Grounds:
        """What the receipt of a request that was answered is made of, as it is on record."""
        found = self.changes.request(request)
        if found is None or found.answer is None:
            raise NeverAnswered("this request was never made, or not by you; an answer's receipt is found by its id")
        line, row = self._line(found), self.changes.row(read_path(found.path))
        assert row is not None
        return _grounds(found, line, row, not_lost(request, self._done(found)).answer, self._head_with_answer(found))

    def _head_with_answer(self, found: StoredRequest) -> Head:
        """The head of the chain with the answer's entry."""
        for number, data in self.changes.added(found.entry, _NEXT):
            entry = read_entry(data, number)
            if (entry.kind, entry.request) == ("answer", found.request):
                return Head(number, link(_hash_before(entry), data))
        raise LedgerTampered("the entry of an answer is missing; `counterpoint ledger verify` says more")

    def _line(self, found: StoredRequest) -> bytes:
        """The entry of a request, whose body must be the one that its digest is of."""
        data = self.changes.entry(found.entry)
        if data is None:
            raise LedgerTampered("the entry of a request is missing; `counterpoint ledger verify` says more")
        entry = read_entry(data, found.entry)
        if (entry.request, said_digest(entry.body.encode())) != (found.request, found.digest):
            raise _changed(found.request)
        return data


def _grounds(request: StoredRequest, line: bytes, row: StoredRow, answer: Plain, head: Head) -> Grounds:
    cost, version = cost_of(row.public), read_public_row(row.public).sees
    return Grounds(request.request, line, read_path(request.path), request.pin, cost, answer, head, version)


def _hash_before(answer: Entry) -> bytes:
    try:
        return bytes.fromhex(answer.what)
    except ValueError:
        raise LedgerTampered(f"entry {answer.number} does not say what was before it") from None


def _must_be_readable(fact: HistoryEntry, request: str, body: bytes) -> None:
    """What cannot be read back could be neither finished nor verified."""
    if not fits(body, request, fact.what, fact.cost, path_text(fact.path)):
        raise InvalidParameter(f"an entry of the record has at most {LONGEST} bytes, and this request needs more")
    _must_read_back(body)


@lru_cache(maxsize=256)
def _must_read_back(body: bytes) -> None:
    """Remembered, since questions recur."""
    for line in body.split(b"\n"):
        must_read_back(line, Plain)  # type: ignore[arg-type]  # plain data of no fixed type


def _stored(intent: Intent) -> StoredRequest:
    """The request of an intent as it is stored, but for seed and answer."""
    path, pin = path_text(intent.path), encode(intent.pin).decode()
    return StoredRequest(
        intent.request, path, intent.entry, intent.digest, intent.version, pin, intent.sampler, None, None
    )


def _changed(request: str) -> LedgerTampered:
    return LedgerTampered(
        f"request {request[:80]!r} is not stored as the entries say: it was changed; nothing is drawn for it"
    )
