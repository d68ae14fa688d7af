"""How a row is stored, and what each process remembers of the chain: its ids, and how it left every row.

Of a row, the public part and a session's account are stored in the open, a mechanism's state sealed, bound to its path
and version. So charges can be read, replayed and reported without any key.

>>> from counterpoint import Laplace
>>> from counterpoint.coins import SeededCoins
>>> from counterpoint.ledger.sealing import MasterKey
>>> master = MasterKey(bytes(32))
>>> keys = DataKeys("people", master, (DataKeys.fresh("people", 0, master),))
>>> row = LaunchRecord(Laplace(1), Laplace(1).start(SeededCoins(1)))
>>> read_row(stored_row((0,), row, keys), keys) == row
True
"""

from array import array
from bisect import bisect_left
from functools import lru_cache

from msgspec.structs import replace

from counterpoint.encoding import Plain, Tagged, Value, decode, encode, encode_checked, must_read_back
from counterpoint.errors import LedgerTampered, Unsealable
from counterpoint.ledger.chain import INTENTS, Entry, Head, link, read_entry
from counterpoint.ledger.sealing import DataKeys, padded
from counterpoint.ledger.state import LaunchRecord, Path, Sealed, SessionState, charge_text
from counterpoint.ledger.store.records import BUDGET, StoredRow, path_text, read_path
from counterpoint.ledger.store.store import ChangeSet
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.mechanisms.mechanism import Mechanism, State
from counterpoint.privacy.samples import Sample
from counterpoint.sources.streams.items import read_subscription

_KEPT = 1024
_LARGEST = 2**16


class PublicRow(Tagged, Value, frozen=True):
    """The public part of a row."""

    mechanism: Mechanism
    cursor: int | str
    by: str | None
    of: Plain = None
    sees: int = 1


def stored_row(
    path: Path, row: LaunchRecord, keys: DataKeys, last: tuple[StoredRow, LaunchRecord] | None = None
) -> StoredRow:
    """The row as it is stored; a stored one and what it says (`last`) spare encoding what is the same.

    `InvalidParameter` if it could not be read back: then nothing is written, and nothing is charged.
    """
    if last is not None and _framed_alike(last[1], row):
        data = last[0].public
    else:
        data = encode(PublicRow(row.mechanism, row.cursor, row.by, row.of, row.sees))
        _must_read_back(data)
    if row.state is None:
        return StoredRow(path_text(path), row.version, data, None, None)
    if isinstance(row.state, SessionState):
        node, sample = row.state.in_public, row.state.sample
        sealed = None if sample is None else _sealed(sample, Sample, path, row.version, keys)
        public = encode_checked(node, SessionState)
        return StoredRow(path_text(path), row.version, data, public, sealed, budget_used(row.mechanism, node))
    return StoredRow(path_text(path), row.version, data, None, _sealed(row.state, State, path, row.version, keys))


@lru_cache(maxsize=256)
def _must_read_back(public: bytes) -> None:
    """Remembered, since many questions launch the same mechanism."""
    must_read_back(public, PublicRow)


def _sealed(secret: State | Sample, kind: type, path: Path, version: int, keys: DataKeys) -> bytes:
    """A mechanism's state, or the sample of a session, as it is stored in a row."""
    return keys.seal(padded(encode_checked(secret, kind, sealed=True)), "state", path, version)


def _framed_alike(one: LaunchRecord, other: LaunchRecord) -> bool:
    same = one.mechanism is other.mechanism or one.mechanism == other.mechanism
    return same and (one.cursor, one.by, one.of, one.sees) == (other.cursor, other.by, other.of, other.sees)


def budget_used(mechanism: Mechanism, node: SessionState) -> int | None:
    """How much of its budget a session has used, in parts of `BUDGET`; None for one that has none."""
    return mechanism.rule.used(node.account, BUDGET) if isinstance(mechanism, Concurrent) else None


def read_row(stored: StoredRow, keys: DataKeys) -> LaunchRecord:
    """The row, with its state; `Unsealable` if the key at hand does not open it."""
    node = None if stored.node is None else decode(stored.node, SessionState)
    if stored.sealed is None:
        return _row(stored, node)
    unsealed = keys.unseal(stored.sealed, "state", read_path(stored.path), stored.version)
    return _row(stored, decode(unsealed, State) if node is None else replace(node, sample=decode(unsealed, Sample)))


def seen_row(stored: StoredRow, keys: DataKeys) -> LaunchRecord:
    """The row for a reader: a state that no available key opens is shown as `Sealed`, a session without its sample."""
    try:
        return read_row(stored, keys)
    except Unsealable:
        return _row(stored, Sealed() if stored.node is None else decode(stored.node, SessionState))


def _row(stored: StoredRow, state: State | None) -> LaunchRecord:
    public = read_public_row(stored.public)
    of = read_subscription(public.of)
    return LaunchRecord(public.mechanism, state, stored.version, public.cursor, public.by, of, public.sees)


class OpenRows:
    """Rows with their states, as they were last written or read: a blob that has not changed is not unsealed again.

    A sealed blob has a nonce of its own, so equal rows have equal states: a row that another process wrote differs.
    """

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: dict[str, tuple[StoredRow, LaunchRecord]] = {}

    def read(self, stored: StoredRow, keys: DataKeys) -> LaunchRecord:
        """The row, with its state; `Unsealable` if the key at hand does not open it."""
        before, row = self._rows.get(stored.path, (None, None))
        if row is None or before != stored:
            row = read_row(stored, keys)
            self.keep(stored, row)
        return row

    def last(self, path: Path) -> tuple[StoredRow, LaunchRecord] | None:
        """What was last written or read at a path, if it is kept."""
        return self._rows.get(path_text(path))

    def keep(self, stored: StoredRow, row: LaunchRecord) -> None:
        """Remember the last few rows, but no large state: a few of these would fill the memory."""
        if len(self._rows) >= _KEPT:
            self._rows.clear()
        if len(stored.sealed or b"") <= _LARGEST:
            self._rows[stored.path] = (stored, row)


@lru_cache(maxsize=1024)
def cost_of(public: bytes) -> str:
    """What the launch of a row was charged, as the record has it; the row by its public part."""
    return charge_text(read_public_row(public).mechanism.claim)


@lru_cache(maxsize=4096)
def read_public_row(data: bytes) -> PublicRow:
    """The public part of a row."""
    return decode(data, PublicRow)


_UNSORTED = 2**16


class Ids:
    """The ids under which requests were admitted and items arrived, and the rows as they were left, up to a head.

    A missing row is no evidence that an id is new: an id that is not among the stored requests would get fresh noise,
    or a session that is opened again a fresh budget, so a tamperer would only have to delete a row. The chain shows
    what was there. It is followed at every start, and its ids are kept as hashes of 64 bits, 8 bytes each; entries of
    other processes are read, and must continue the chain, before an id counts as new. A lookup costs the same however
    long the chain is.

    For the same reason the hash of every row as the chain left it is kept, some 150 bytes for each launch. A row that
    was changed while the ledger is open, or put back as it once was (an account before a charge, a grant before it was
    revoked, a mechanism before it halted), is refused when a request uses it.

    >>> ids = Ids()
    >>> ids.add("ask", "() monday")
    >>> ids.has("ask", "() monday"), ids.has("ask", "() tuesday"), ids.has("items", "() monday")
    (True, False, False)
    """

    __slots__ = ("_later", "_rows", "_sorted", "head")

    def __init__(self) -> None:
        self.head = Head(0, b"")
        self._sorted = array("q")
        self._later: set[int] = set()
        self._rows: dict[int, int] = {}

    def add(self, kind: str, request: str) -> None:
        """An entry of the chain; those of other kinds admit nothing."""
        if request and (kind in INTENTS or kind == "items"):
            self._later.add(hash((kind == "items", request)))
            if len(self._later) > _UNSORTED + len(self._sorted) // 4:
                self._sorted = array("q", sorted([*self._sorted, *self._later]))
                self._later.clear()

    def step(self, entry: Entry) -> None:
        """One entry further."""
        self.add(entry.kind, entry.request)
        if entry.leaves_row:
            self._rows[hash(entry.path)] = hash(entry.state)

    def has(self, kind: str, request: str) -> bool:
        """Whether there is such an entry."""
        sought = hash((kind == "items", request))
        place = bisect_left(self._sorted, sought)
        return sought in self._later or (place < len(self._sorted) and self._sorted[place] == sought)

    def must_be_new(self, changes: ChangeSet, kind: str, request: str) -> None:
        """Refuse an id that is on record although nothing is stored under it any more."""
        self._catch_up(changes)
        if self.has(kind, request):
            raise LedgerTampered(
                f"request {request[:80]!r} is on record, but what is stored of it is missing: it was taken away. "
                "Nothing is drawn for it again; put back the newest copy of the database"
            )

    def must_be_as_left(self, changes: ChangeSet, path: Path, row: StoredRow | None) -> None:
        """Refuse a row, as it is stored before this change set, unless the chain left it so."""
        self._catch_up(changes)
        if self._rows.get(hash(path)) != (None if row is None else hash(row.fingerprint)):
            raise LedgerTampered(
                f"the row at {path_text(path)} of {changes.name!r} is not the one that its last charge or answer "
                "left: it was changed, taken away or put back, and is not used"
            )

    def learn(self, changes: ChangeSet) -> None:
        """Take note of a committed change set; if others came in between, all are read when needed."""
        if changes.base == self.head:
            for entry in changes.begun:
                self.step(entry)
            self.head = changes.head

    def _catch_up(self, changes: ChangeSet) -> None:
        if changes.base == self.head:
            return
        number, head = self.head
        for number, data in changes.added(number):  # noqa: B020 - from where it is to where it comes
            head = link(head, data)
            self.step(read_entry(data, number))
        if (number, head) != changes.base:
            raise LedgerTampered(
                f"the chain of {changes.name!r} does not continue what this process has seen of it: an entry was "
                "changed, or an old copy was put back, while it was open"
            )
        self.head = changes.base
