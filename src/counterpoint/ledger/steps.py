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

from counterpoint.encoding import Plain, decode, encode
from counterpoint.errors import BudgetExceeded, CounterpointError, LedgerError, NotCovered, RelationMismatch
from counterpoint.ledger.ledger import Done, Fact, Intent, Path, Plan, Read, Row, conflict, moved_on, never_made
from counterpoint.ledger.records import StoredRequest, StoredRow, path_text, read_entry, read_path
from counterpoint.ledger.rows import OpenRows, stored_row
from counterpoint.ledger.sealing import DataKeys
from counterpoint.ledger.store import Unit
from counterpoint.randomness.fresh import fresh
from counterpoint.randomness.secure import SAMPLER_VERSION


class Settlement(NamedTuple):
    """A row and an answer, and as they will be stored: sealed, with their fingerprints."""

    row: Row
    stored: StoredRow
    state: str
    answer: Plain
    told: bytes
    digest: str


class Steps:
    """The steps of the protocol, with the keys of one session."""

    def __init__(self, keys: DataKeys, seeds: Callable[[], bytes] = lambda: fresh(32)) -> None:
        self.keys = keys
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
            if known.digest != sha256(body).digest():
                raise conflict(request)
            return self.intent(unit, known) if known.answer is None else Done(body, self._told(unit, known))
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
        path, version, seed = planned.path, planned.version, self._seeds()
        sealed = self.keys.seal(seed, "seed", path, version, request)
        pin = encode(planned.pin).decode()
        charged = None
        if planned.charged is not None:
            charged = stored_row(fact.path, planned.charged, self.keys, self._rows.last(fact.path))
        changed, state = (0, "") if charged is None else (charged.version, charged.fingerprint)
        entry = unit.append(fact.kind, request, fact.path, fact.what, body.decode(), version=changed, state=state)
        digest = sha256(body).digest()
        if charged is not None and planned.charged is not None:
            unit.put_row(charged)
            self._rows.keep(charged, planned.charged)
        asked = StoredRequest(
            request, path_text(path), entry.number, digest, version, pin, SAMPLER_VERSION, sealed, None
        )
        unit.put_request(asked, vacant=planned.row is None)
        return Intent(request, body, path, version, planned.pin, seed, row=planned.row, prompt=planned.prompt)

    def sealed(self, intent: Intent, row: Row, answer: Plain) -> "Settlement":
        """What is going to be settled, as it will be stored: before the transaction, in which others wait."""
        stored = stored_row(intent.path, row, self.keys, self._rows.last(intent.path))
        told = self.keys.seal(encode(answer), "answer", intent.path, intent.version, intent.request)
        return Settlement(row, stored, stored.fingerprint, answer, told, _digest(told))

    def settle(self, unit: Unit, intent: Intent, ready: "Settlement") -> Plain:
        """State and answer together, and the seed gone; or what is on record, if somebody has settled it."""
        known = unit.request(intent.request)
        if known is None:
            raise never_made()
        if known.answer is not None:
            return self._told(unit, known)
        before = unit.row(intent.path)
        if before is not None and before.version != intent.version:
            raise moved_on()
        version, state = ready.stored.version, ready.state
        unit.append("answer", intent.request, intent.path, "", ready.digest, version=version, state=state)
        unit.put_row(ready.stored)
        self._rows.keep(ready.stored, ready.row)
        unit.put_request(known.settled(ready.told))
        unit.settled = True
        return ready.answer

    def intent(self, unit: Unit, found: StoredRequest) -> Intent:
        """An open request, ready to be finished from its seed."""
        assert found.seed is not None
        path = read_path(found.path)
        seed = self.keys.unseal(found.seed, "seed", path, found.version, found.request)
        data = unit.entry(found.entry)
        if data is None:
            raise LedgerError("the entry of an open request is missing; `counterpoint ledger verify` says more")
        body = read_entry(data).body.encode()
        row = self._row(unit.row(path))
        pin: int | str = decode(found.pin.encode(), int | str)  # type: ignore[arg-type]  # a union is a kind, too
        return Intent(found.request, body, path, found.version, pin, seed, found.sampler, row)

    def unsealed(self, unit: Unit, found: StoredRequest) -> Intent | None:
        """The same, or None if the key at hand does not open it."""
        try:
            return self.intent(unit, found)
        except CounterpointError:
            return None

    def _told(self, unit: Unit, found: StoredRequest) -> Plain:
        """An answer on record, which somebody is about to be told: whoever settled it may have died right after."""
        assert found.answer is not None
        unit.settled = True
        place = (read_path(found.path), found.version, found.request)
        return decode(self.keys.unseal(found.answer, "answer", *place), Plain)  # type: ignore[arg-type]

    def _row(self, stored: StoredRow | None) -> Row | None:
        return None if stored is None else self._rows.read(stored, self.keys)


@lru_cache(maxsize=256)
def _must_be_readable(body: bytes) -> None:
    """What cannot be read back could neither be finished nor verified."""
    decode(body, Plain)  # type: ignore[arg-type]  # plain data of no fixed type


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()
