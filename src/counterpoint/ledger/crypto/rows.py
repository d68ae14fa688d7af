"""How a row is stored: what is public in the open, a session's account too, and a mechanism's state sealed.

Charges can thus be read, replayed and reported without any key; a state is bound to its path and version.

>>> from counterpoint import Laplace, SeededCoins
>>> from counterpoint.ledger.crypto.sealing import MasterKey
>>> master = MasterKey(bytes(32))
>>> keys = DataKeys("people", master, (DataKeys.fresh("people", 0, master),))
>>> row = Row(Laplace(1), Laplace(1).start(SeededCoins(1)))
>>> read_row(stored_row((0,), row, keys), keys) == row
True
"""

from functools import lru_cache

from msgspec import UnsetType
from msgspec.structs import replace

from counterpoint.encoding import Plain, Tagged, Value, decode, encode_checked
from counterpoint.errors import Unsealable
from counterpoint.ledger.crypto.sealing import DataKeys, padded
from counterpoint.ledger.state import Node, Path, Row, Sealed, charge_text
from counterpoint.ledger.store.records import BUDGET, StoredRow, path_text, read_path
from counterpoint.mechanisms.composed.concurrent import Concurrent
from counterpoint.mechanisms.mechanism import Mechanism, State
from counterpoint.privacy.samples import Sample
from counterpoint.sources.streams.shape import followed_among

_KEPT = 1024
_LARGEST = 2**16


class Frame(Tagged, Value, frozen=True):
    """The public part of a row."""

    mechanism: Mechanism
    cursor: int | str
    by: str | None
    of: Plain = None


def stored_row(path: Path, row: Row, keys: DataKeys, last: tuple[StoredRow, Row] | None = None) -> StoredRow:
    """The row as it is stored; a stored one and what it says (`last`) spare encoding what is the same.

    `InvalidParameter` if it could not be read back: then nothing is written, and nothing is charged.
    """
    if last is not None and _framed_alike(last[1], row):
        data = last[0].frame
    else:
        data = encode_checked(Frame(row.mechanism, row.cursor, row.by, row.of), Frame)
    if row.state is None:
        return StoredRow(path_text(path), row.version, data, None, None)
    if isinstance(row.state, Node):
        node, sample = row.state.in_public, row.state.sample
        sealed = None if isinstance(sample, UnsetType) else _sealed(sample, Sample, path, row.version, keys)
        public = encode_checked(node, Node)
        return StoredRow(path_text(path), row.version, data, public, sealed, spent(row.mechanism, node))
    return StoredRow(path_text(path), row.version, data, None, _sealed(row.state, State, path, row.version, keys))


def _sealed(secret: State | Sample, kind: type, path: Path, version: int, keys: DataKeys) -> bytes:
    """A mechanism's state, or the sample of a session, as it is stored in a row."""
    return keys.seal(padded(encode_checked(secret, kind, sealed=True)), "state", path, version)


def _framed_alike(one: Row, other: Row) -> bool:
    same = one.mechanism is other.mechanism or one.mechanism == other.mechanism
    return same and (one.cursor, one.by, one.of) == (other.cursor, other.by, other.of)


def spent(mechanism: Mechanism, node: Node) -> int | None:
    """How much of its budget a session has used, in parts of `BUDGET`; None for one that has none."""
    return mechanism.rule.used(node.account, BUDGET) if isinstance(mechanism, Concurrent) else None


def read_row(stored: StoredRow, keys: DataKeys) -> Row:
    """The row, with its state; `Unsealable` if the key at hand does not open it."""
    node = None if stored.node is None else decode(stored.node, Node)
    if stored.sealed is None:
        return _row(stored, node)
    unsealed = keys.unseal(stored.sealed, "state", read_path(stored.path), stored.version)
    return _row(stored, decode(unsealed, State) if node is None else replace(node, sample=decode(unsealed, Sample)))


def seen_row(stored: StoredRow, keys: DataKeys) -> Row:
    """The row for a reader: a state that no key at hand opens is shown as `Sealed`, a session without its sample."""
    try:
        return read_row(stored, keys)
    except Unsealable:
        return _row(stored, Sealed() if stored.node is None else decode(stored.node, Node))


def _row(stored: StoredRow, state: State | None) -> Row:
    frame = read_frame(stored.frame)
    return Row(frame.mechanism, state, stored.version, frame.cursor, frame.by, followed_among(frame.of))


class OpenRows:
    """Rows with their states, as they were last written or read: a blob that has not changed is not unsealed again.

    A sealed blob has a nonce of its own, so equal rows have equal states: a row that another process wrote differs.
    """

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: dict[str, tuple[StoredRow, Row]] = {}

    def read(self, stored: StoredRow, keys: DataKeys) -> Row:
        """The row, with its state; `Unsealable` if the key at hand does not open it."""
        before, row = self._rows.get(stored.path, (None, None))
        if row is None or before != stored:
            row = read_row(stored, keys)
            self.keep(stored, row)
        return row

    def last(self, path: Path) -> tuple[StoredRow, Row] | None:
        """What was last written or read at a path, if it is kept."""
        return self._rows.get(path_text(path))

    def keep(self, stored: StoredRow, row: Row) -> None:
        """Remember the last few; not a large state, of which few would fill the memory."""
        if len(self._rows) >= _KEPT:
            self._rows.clear()
        if len(stored.sealed or b"") <= _LARGEST:
            self._rows[stored.path] = (stored, row)


@lru_cache(maxsize=1024)
def cost_of(frame: bytes) -> str:
    """What the launch of a row was charged, as the record has it; the row by its public part."""
    return charge_text(read_frame(frame).mechanism.claim)


@lru_cache(maxsize=4096)
def read_frame(data: bytes) -> Frame:
    """The public part of a row."""
    return decode(data, Frame)
