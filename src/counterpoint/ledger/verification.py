"""Checking a durable ledger: at every start what a thief or a restored snapshot would change, on demand every charge.

`opened` follows the hash chain to its head, compares every line of the witness, the fingerprint of every row with the
last entry about it, and every open request with its intent: it needs no key and reads each entry once. `verify` also
replays every launch and every refusal through the rule (each must have been right at its place), and compares accounts
and every stored request, so that every column of every table is covered.

>>> from counterpoint.ledger.store.sqlite import SqliteStore
>>> import os.path, tempfile
>>> store = SqliteStore(os.path.join(tempfile.mkdtemp(), "ledger.db"))
>>> started(store, "people", None, None) is None
True
>>> store.close()
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from hashlib import sha256
from typing import NamedTuple

from counterpoint.display.progress import working
from counterpoint.errors import LedgerTampered
from counterpoint.ledger import headers
from counterpoint.ledger import witness as sightings
from counterpoint.ledger.chain import (
    ABOUT_HEADER,
    INTENTS,
    REGISTERED,
    Entry,
    is_signed,
    link,
    read_entry,
    successor_text,
)
from counterpoint.ledger.register_check import Registered, must_have_no_strays, must_have_register
from counterpoint.ledger.replay import Replay, changed, other_request, recovered
from counterpoint.ledger.sealed_rows import Ids
from counterpoint.ledger.sealing import DataKeys, MasterKey
from counterpoint.ledger.store.records import KINDS, REGISTER, SessionHeader, StoredItems, keys_digest, path_text
from counterpoint.ledger.store.store import Store
from counterpoint.ledger.witness import Line, Recovered, Sightings, Witness, WitnessCheck

_ABOUT_HEADER_OR_RECOVERY = (*ABOUT_HEADER, "recovery")
_HASH = 32
_Arrived = tuple[int, str, str | None]
"""Of items on record: how many there are with them, the fingerprint, the id."""


class Opened(NamedTuple):
    """A session's record as it was found: its header, and the ids that it has.

    `sighting` is what its witness, if there is one, has seen of it.
    """

    header: SessionHeader
    ids: Ids
    sighting: WitnessCheck | None
    signer: str = ""
    """The public key that its record and receipts are signed with."""
    registered: Registered | None = None
    """What the register says, if this is the register."""
    recoveries: tuple[Recovered, ...] = ()


def opened(
    store: Store,
    name: str,
    witness: Sightings | None,
    master: MasterKey | None = None,
    *,
    may_be_unseen: bool = False,
) -> Opened | None:
    """At start: the session's record (None: there is none yet), once chain, witness and states were found to hold.

    `LedgerTampered` or `LedgerRolledBack` if one does not. The signatures of a register are checked with `master`. It
    may be unseen by the witness of a session: the one that must have seen it is that of the service.
    """
    seen = _seen(witness, name)
    store.begin_reading()
    try:
        header = store.header(name)
        if header is not None:
            return _check(store, name, header, witness, seen, master=master, may_be_unseen=may_be_unseen)
        if witness is not None:
            sightings.must_be_new(name, witness, seen)
        if name == REGISTER:
            must_have_register(store)
        return None
    finally:
        store.rollback()


def behind(store: Store, name: str, witness: Sightings) -> Opened:
    """The record as `verify` checks it, but that its witness may have seen more of it, or nothing at all."""
    seen = _seen(witness, name)
    store.begin_reading()
    try:
        header = store.header(name)
        if header is None:
            raise LedgerTampered(f"there is no session {name!r} in this ledger")
        found = _check(store, name, header, witness, seen, may_be_behind=True)
        _replay(store, name, header)
        return found
    finally:
        store.rollback()


def _seen(witness: Sightings | None, name: str) -> Iterator[Line]:
    """What was seen before the snapshot of the database, which must not be older than that."""
    return iter(()) if witness is None else witness.seen(name)


def verify_register(
    store: Store, witness: Sightings | None, master: MasterKey | None, *, may_be_unseen: bool = False
) -> None:
    """The register, all that it says, and that no table has rows of a session that is not in it.

    Signatures are checked if `master` is the key of the register.
    """
    if opened(store, REGISTER, witness, master, may_be_unseen=may_be_unseen) is not None:
        must_have_no_strays(store)


def verify(store: Store, name: str, witness: Sightings | None) -> int:
    """Everything in a session's record that can be checked without a key; how many entries there are."""
    seen = _seen(witness, name)
    store.begin_reading()
    try:
        header = store.header(name)
        if header is None:
            raise LedgerTampered(f"there is no session {name!r} in this ledger")
        _check(store, name, header, witness, seen)
        _replay(store, name, header)
        return header.head.number
    finally:
        store.rollback()


def _replay(store: Store, name: str, header: SessionHeader) -> None:
    replay = Replay(name)
    with working(f"replaying the ledger of {name!r}", header.head.number) as work:
        for number, data in chain(store, name):
            replay.step(_entry(data, number))
            work.done()
        replay.compare(store)


def _check(  # noqa: PLR0917 - all that a record is compared with
    store: Store,
    name: str,
    header: SessionHeader,
    witness: Sightings | None,
    seen: Iterator[Line],
    may_be_behind: bool = False,
    may_be_unseen: bool = False,
    master: MasterKey | None = None,
) -> Opened:
    if witness is None and header.witnessed and not may_be_unseen:
        raise sightings.unseen(name)
    followed, heads = _Followed(_registered(header, master) if name == REGISTER else None), bytearray()
    head, number = header.genesis, 0
    with working(f"checking the ledger of {name!r}", header.head.number) as work:
        for number, data in chain(store, name):
            followed.step(_entry(data, number), head)
            head = link(head, data)
            if witness is not None:
                heads += head
            work.done()
    sighting = None
    if witness is not None:
        lines = list(seen) if may_be_behind else seen
        sighting = sightings.compare(header, heads, lines, witness.mark, followed.recoveries)
        if may_be_behind and followed.recoveries and not (sighting and sighting.recovered):
            # a recovery that ended before the witness had seen it: as if it had
            last = followed.recoveries[-1].number
            line = Line(last, bytes(heads[(last - 1) * _HASH : last * _HASH]), header.genesis)
            finished = sightings.compare(header, heads, [*lines, line], witness.mark, followed.recoveries)
            sighting = None if finished is None else finished._replace(recovered=False)
        if sighting is None:
            raise sightings.forked(name)
        if header.witnessed and not sighting.any and not may_be_behind and not may_be_unseen:
            raise sightings.unseen(name)
    if (number, head) != header.head:
        raise LedgerTampered(f"the entries of {name!r} do not lead to its head: one was changed, added or taken away")
    if sighting is not None and sighting.beyond and not may_be_behind:
        raise sightings.rolled_back(name, number, sighting.beyond)
    followed.compare(store, name, header)
    followed.ids.head = header.head
    recoveries = tuple(followed.recoveries)
    return Opened(header, followed.ids, sighting, followed.signer, followed.registered, recoveries)


def _registered(header: SessionHeader, master: MasterKey | None) -> Registered:
    """A follower of the register, with the key of its signatures if it is available."""
    keys = DataKeys(REGISTER, master, header.keys)
    return Registered(keys.register_key() if header.keys and keys.usable else None)


class _Followed:
    """What the entries say about the records as they are now, and which ids they have."""

    def __init__(self, registered: Registered | None) -> None:
        self.registered = registered
        self.ids, self.signer = Ids(), ""
        self._false_answer: int | None = None
        self.recoveries: list[Recovered] = []
        self._data = self._keys = self._header = ""
        self._rows: dict[str, tuple[int, str]] = {}
        self._waiting: dict[str, str] = {}
        self._retired = False
        self._arrived: list[_Arrived] = []

    def step(self, entry: Entry, before: bytes) -> None:
        """One entry further, from the head before it."""
        self.ids.step(entry)
        if entry.kind not in _ABOUT_HEADER_OR_RECOVERY and (entry.kind in REGISTERED) != (self.registered is not None):
            raise LedgerTampered(f"entry {entry.number} is of another kind than the entries of its chain")
        if entry.kind in ABOUT_HEADER:
            self._step_header(entry)
        elif entry.kind == "recovery":
            self.recoveries.append(recovered(entry, before))
        elif self.registered is not None:
            self.registered.step(entry, before)
        elif entry.kind == "items":
            self._arrived.append((entry.version, entry.body, entry.request or None))
        elif entry.kind == "signer":
            self._step_signer(entry, before)
        elif entry.kind in ("answer", "lost"):
            self._waiting.pop(entry.request, None)
            if entry.kind == "answer" and entry.what != before.hex():
                self._false_answer = entry.number
        elif entry.kind in INTENTS:
            self._waiting[entry.request] = entry.record
        if entry.leaves_row:
            self._rows[path_text(entry.path)] = (entry.version, entry.state)

    def _step_signer(self, entry: Entry, before: bytes) -> None:
        """Each signer but the first is named by the one before it."""
        if self.signer and not is_signed(successor_text(entry.what, before), entry.body, self.signer):
            raise LedgerTampered(f"entry {entry.number} names a signer, and the one before it has not signed that")
        self.signer = entry.what

    def _step_header(self, entry: Entry) -> None:
        self._header = entry.record or self._header
        self._keys = entry.state or self._keys
        if entry.kind == "data":
            self._data = entry.body
        self._retired = entry.kind == "retirement"

    def compare(self, store: Store, name: str, header: SessionHeader) -> None:
        """The header, every row, every open request and the items of a stream are as the entries leave them."""
        if self._false_answer is not None:
            raise LedgerTampered(f"entry {self._false_answer} of {name!r} does not say what was before it")
        same = (self._data, self._keys) == (header.fingerprint, keys_digest(header.keys))
        if not same or self._header != header.record:
            raise LedgerTampered(
                f"the data or the keys of {name!r} are not those on record: they were changed or put back"
            )
        if self._retired:
            _compare_retired(store, name, self._rows)
            return
        _compare_states(store, name, self._rows)
        _compare_waiting(store, name, self._waiting)
        _compare_items(store, name, self._arrived)
        if self.registered is not None:
            self.registered.compare(store)


def chain(store: Store, name: str) -> Iterator[tuple[int, bytes]]:
    """The entries, whose numbers must leave no gap."""
    expected = 1
    for number, data in store.entries(name, 0):
        if number != expected:
            raise LedgerTampered(f"entry {expected} of {name!r} is missing")
        yield number, data
        expected += 1


def _entry(data: bytes, number: int) -> Entry:
    entry = read_entry(data, number)
    if entry.number != number or entry.kind not in KINDS:
        raise LedgerTampered(f"entry {number} has been moved, or is of no known kind")
    return entry


def _compare_states(store: Store, name: str, last: dict[str, tuple[int, str]]) -> None:
    """Every row is the one that the last charge or answer at its path left: mechanism, parameters, account, state."""
    for row in store.rows(name):
        version, state = last.pop(row.path, (-1, ""))
        if (version, state) != (row.version, row.fingerprint):
            raise changed(row)
    if last:
        raise LedgerTampered(f"the row at {next(iter(last))} is missing")


def _compare_retired(store: Store, name: str, last: dict[str, tuple[int, str]]) -> None:
    """Nothing is left but the accounts of sessions, as the last charges left them."""
    for row in store.rows(name):
        version, state = last.pop(row.path, (-1, ""))
        if row.node is None or row.sealed is not None or (version, state) != (row.version, row.fingerprint):
            raise changed(row)
    if next(store.requests(name), None) is not None or next(store.items(name, 0), None) is not None:
        raise LedgerTampered(f"{name!r} is retired, and something is stored of its requests or items")


def _compare_waiting(store: Store, name: str, waiting: dict[str, str]) -> None:
    """Every open request is as its intent left it, seed and all, and none was taken away: it is finished from there."""
    for request in store.open_requests(name):
        record = waiting.pop(request.request, None)
        if record != request.fingerprint:
            raise other_request(request.request)
    if waiting:
        missing = next(iter(waiting))
        raise LedgerTampered(
            f"request {missing[:80]!r} is on record as open, but what is stored of it is missing or was answered"
        )


def _compare_items(store: Store, name: str, arrived: list[_Arrived]) -> None:
    """The log of a stream is, batch by batch, what arrived on record: none changed, moved, added or taken away."""
    count, place = 0, 0
    before: StoredItems | None = None
    for items in store.items(name, 0):
        place += items.size
        if (
            count == len(arrived)
            or arrived[count] != (place, _digest(items.sealed), items.request)
            or items.start + items.size != place
            or items.part != _part(items.request, before)
        ):
            raise LedgerTampered(
                f"the items of the stream of {name!r} from {items.start} on are not those that arrived"
            )
        count += 1
        before = items
    if count < len(arrived):
        raise LedgerTampered(f"the items of the stream of {name!r} from {place} on are missing")


def _part(request: str | None, before: StoredItems | None) -> int | None:
    """Which batch of its id this is, behind that one: those of an id follow each other."""
    if request is None:
        return None
    return 0 if before is None or before.part is None or before.request != request else before.part + 1


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()


Writing = Callable[[], AbstractContextManager[None]]


def started(
    store: Store, name: str, witness: Witness | None, master: MasterKey | None, writing: Writing = nullcontext
) -> Opened | None:
    """The record of a session (None: there is none yet), once it was found to hold.

    `writing` is entered around what is written to the database.
    """
    found = opened(store, name, witness, master)
    if found is None:
        return None
    headers.must_not_be_retired(name, found.header)
    if witness is None:
        return found
    if not (found.sighting and found.sighting.placed):
        witness.note_place(name, found.header.genesis)
    if found.header.witnessed:
        return found
    with writing():
        header = headers.require_witness(store, name)
    witness.note(name, *header.head, header.genesis, lambda after: store.entries(name, after))
    return opened(store, name, witness, master)
