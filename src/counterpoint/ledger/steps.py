"""What an intent and its settlement do inside a transaction: look up, check, charge, seal and extend the chain.

Each step reads and changes a `Unit`, which is written as a whole or not at all. Secrets leave a step only sealed.

>>> from counterpoint.ledger.records import Head
>>> unit = Unit(None, "people", Head(0, bytes(32)))
>>> steps = Steps(DataKeys("people", None, ()))
>>> steps.settle(unit, Intent("nobody", b"", (0,), 0, 0, bytes(32)), None)
Traceback (most recent call last):
...
counterpoint.errors.LedgerError: this request was never made; nothing was stored
"""

from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

from msgspec.structs import replace

from counterpoint.encoding import Plain, decode, encode
from counterpoint.errors import (
    BudgetExceeded,
    CounterpointError,
    LedgerTampered,
    NotCovered,
    RelationMismatch,
    SecretLeak,
    Unsealable,
)
from counterpoint.ledger.ids import Ids
from counterpoint.ledger.ledger import (
    Done,
    Fact,
    Faulty,
    Intent,
    Path,
    Plan,
    Read,
    Row,
    conflict,
    moved_on,
    never_made,
)
from counterpoint.ledger.records import StoredRequest, StoredRow, path_text, read_entry, read_path
from counterpoint.ledger.rows import OpenRows, stored_row
from counterpoint.ledger.sealing import DataKeys, padded
from counterpoint.ledger.store import Unit
from counterpoint.randomness.fresh import fresh
from counterpoint.randomness.secure import SAMPLER_VERSION


class Settlement(NamedTuple):
    """A row and an answer, and as they will be stored: sealed, with their fingerprints."""

    row: Row
    stored: StoredRow
    state: str
    answer: Plain
    request: StoredRequest
    digest: str
    record: str


class Steps:
    """The steps of the protocol, with the keys of one session."""

    def __init__(self, keys: DataKeys, seeds: Callable[[], bytes] = lambda: fresh(32), ids: Ids | None = None) -> None:
        self.keys = keys
        self.ids = ids or Ids()
        self._seeds = seeds
        self._rows = OpenRows()

    def forget(self) -> None:
        """No state stays in memory."""
        self._rows = OpenRows()

    def begin(
        self, unit: Unit, request: str, body: bytes, fact: Fact, plan: Callable[[Read], Plan], *, new: bool = False
    ) -> Intent | Done:
        """What came of this request before, unless it is new; or check, charge and record it.

        A refusal stays on record and is raised.
        """
        known = None if new else unit.request(request)
        if known is not None:
            found = self.intent(unit, known) if known.answer is None else self._done(unit, known, body)
            if known.digest != sha256(body).digest():  # which by now is known to be as it was sealed
                raise conflict(request)
            return found
        if not new:
            self.ids.must_be_new(unit, fact.kind, request)
        waiting = unit.open_at(fact.path)
        if waiting is not None:
            return self.intent(unit, waiting)
        if fact.kind != "ask":
            _must_be_readable(body)
        seen: dict[Path, Row | None] = {}

        def read(path: Path) -> Row | None:
            if path not in seen:
                seen[path] = self._row(unit.row(path))
            return seen[path]

        try:
            planned = plan(read)
        except (BudgetExceeded, NotCovered, RelationMismatch) as refusal:
            unit.append("refusal", request, fact.path, type(refusal).__name__, body.decode())
            raise
        return self._record(unit, request, body, fact, planned)

    def _record(self, unit: Unit, request: str, body: bytes, fact: Fact, planned: Plan) -> Intent:
        intent = Intent(
            request,
            body,
            planned.path,
            planned.version,
            planned.pin,
            self._seeds(),
            SAMPLER_VERSION,
            planned.row,
            prompt=planned.prompt,
            entry=unit.head.number + 1,
        )
        asked = _stored(intent)
        asked = asked._replace(seed=self.keys.seal(intent.seed, "seed", *asked.place))
        charged = None
        if planned.charged is not None:
            charged = stored_row(fact.path, planned.charged, self.keys, self._rows.last(fact.path))
        changed, state = (0, "") if charged is None else (charged.version, charged.fingerprint)
        what, record = fact.what, asked.fingerprint
        unit.append(fact.kind, request, fact.path, what, body.decode(), version=changed, state=state, record=record)
        if charged is not None and planned.charged is not None:
            unit.put_row(charged)
            self._rows.keep(charged, planned.charged)
        unit.put_request(asked, vacant=planned.row is None)
        return intent

    def sealed(self, intent: Intent, row: Row, answer: Plain) -> "Settlement":
        """What is going to be settled, as it will be stored: before the transaction, in which others wait.

        A state that is not plain data is a fault in the mechanism's code, and halts it.
        """
        try:
            stored = stored_row(intent.path, row, self.keys, self._rows.last(intent.path))
        except (SecretLeak, TypeError, ValueError):
            if intent.row is None:  # a launch, which has seen no data: it is told what is wrong
                raise
            row, answer = replace(row, state=Faulty()), Faulty()
            stored = stored_row(intent.path, row, self.keys)
        asked = _stored(intent)
        told = self.keys.seal(padded(encode(answer)), "answer", *asked.place)
        done = asked.settled(told)
        return Settlement(row, stored, stored.fingerprint, answer, done, _digest(told), done.fingerprint)

    def settle(self, unit: Unit, intent: Intent, ready: "Settlement") -> Plain:
        """State and answer together, and the seed gone; or what is on record, if somebody has settled it."""
        known = unit.request(intent.request)
        if known is None:
            raise never_made()
        if known.answer is not None:
            return self._done(unit, known, intent.body).answer
        if known[:-2] != ready.request[:-2]:
            raise _changed(intent.request)
        before = unit.row(intent.path)
        if before is not None and before.version != intent.version:
            raise moved_on()
        version, state = ready.stored.version, ready.state
        path, body, record = intent.path, ready.digest, ready.record
        unit.append("answer", intent.request, path, "", body, version=version, state=state, record=record)
        unit.put_row(ready.stored)
        self._rows.keep(ready.stored, ready.row)
        unit.put_request(ready.request)
        unit.settled = True
        return ready.answer

    def intent(self, unit: Unit, found: StoredRequest) -> Intent:
        """An open request, ready to be finished from its seed."""
        assert found.seed is not None
        path = read_path(found.path)
        seed = self.keys.unseal(found.seed, "seed", *found.place)
        body = _body(unit, found)
        row = self._row(unit.row(path))
        pin: int | str = decode(found.pin.encode(), int | str)  # type: ignore[arg-type]  # a union is a kind, too
        return Intent(found.request, body, path, found.version, pin, seed, found.sampler, row, entry=found.entry)

    def unsealed(self, unit: Unit, found: StoredRequest) -> Intent | None:
        """The same, or None if the key at hand does not open it."""
        try:
            return self.intent(unit, found)
        except CounterpointError:
            return None

    def _done(self, unit: Unit, found: StoredRequest, body: bytes) -> Done:
        """An answer on record, about to be released: the process that settled it may have died right after.

        Its seal covers all other columns. Before form 2 it did not cover the question: that is compared with its entry.
        """
        assert found.answer is not None
        try:
            answer = self.keys.unseal(found.answer, "answer", *found.place)
        except Unsealable:
            answer = self.keys.unseal(found.answer, "answer", *found.first_place)
            _body(unit, found)
        unit.settled = True
        return Done(body, decode(answer, Plain))  # type: ignore[arg-type]  # plain data of no fixed type

    def _row(self, stored: StoredRow | None) -> Row | None:
        return None if stored is None else self._rows.read(stored, self.keys)


@lru_cache(maxsize=256)
def _must_be_readable(body: bytes) -> None:
    """What cannot be read back could neither be finished nor verified."""
    decode(body, Plain)  # type: ignore[arg-type]  # plain data of no fixed type


def _stored(intent: Intent) -> StoredRequest:
    """The request of an intent as it is stored, but for seed and answer."""
    path, pin = path_text(intent.path), encode(intent.pin).decode()
    digest = sha256(intent.body).digest()
    return StoredRequest(intent.request, path, intent.entry, digest, intent.version, pin, intent.sampler, None, None)


def _body(unit: Unit, found: StoredRequest) -> bytes:
    """What was asked, from the entry of a request, which must be the one that its digest is of."""
    data = unit.entry(found.entry)
    if data is None:
        raise LedgerTampered("the entry of a request is missing; `counterpoint ledger verify` says more")
    entry = read_entry(data, found.entry)
    body = entry.body.encode()
    if (entry.request, sha256(body).digest()) != (found.request, found.digest):
        raise _changed(found.request)
    return body


def _changed(request: str) -> LedgerTampered:
    return LedgerTampered(
        f"request {request[:80]!r} is not stored as the entries say: it was changed; nothing is drawn for it"
    )


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()
