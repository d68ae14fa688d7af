"""A budget belongs to a data set: which other sessions of a ledger have the same rows.

A second name for the same rows would be a second budget. So a session's record has a digest of its rows as they were
given, whatever was declared about them; several tables have one each, and one that is the same is enough. In the open
such a digest would confirm a guess of the rows; it is sealed with the session's data key: a process without the
ledger's master key cannot compare its sessions. It is a guard against mistakes, not against a custodian: one changed
row makes other rows. Sessions under another master key, and those from before digests were kept which have not been
opened since, cannot be compared.

>>> str(in_use("people", ("visitors",))).split(":")[0]
"session 'people' would be a second budget for the rows of 'visitors'"
"""

import hmac
from collections.abc import Sequence

from counterpoint.errors import DataInUse, LedgerTampered, Unsealable
from counterpoint.ledger.crypto.sealing import DataKeys, MasterKey
from counterpoint.ledger.store.records import Book
from counterpoint.ledger.store.store import Store

_SIZE = 32
"""The bytes of a digest."""


def sealed(rows: bytes, keys: DataKeys, genesis: bytes) -> bytes:
    """The digest as it is stored."""
    return keys.seal(rows, "rows", genesis.hex())


def with_rows(store: Store, name: str, rows: bytes, master: MasterKey | None) -> tuple[str, ...]:
    """The other sessions of a ledger that have these rows."""
    others = [(other, store.book(other)) for other in store.names() if other != name]
    return tuple(other for other, book in others if book is not None and _has(other, book, rows, master))


def _has(name: str, book: Book, rows: bytes, master: MasterKey | None) -> bool:
    keys = DataKeys(name, master, book.keys)
    if book.content is None or not keys.usable:
        return False
    try:
        known = keys.unseal(book.content, "rows", book.genesis.hex())
    except Unsealable:
        raise LedgerTampered(f"what is on record of the rows of {name!r} was changed") from None
    return any(hmac.compare_digest(one, other) for one in _digests(known) for other in _digests(rows))


def _digests(rows: bytes) -> list[bytes]:
    """The digest of each table.

    >>> [len(one) for one in _digests(bytes(64))]
    [32, 32]
    """
    return [rows[start : start + _SIZE] for start in range(0, len(rows), _SIZE)]


def beside(store: Store, name: str) -> tuple[str, ...]:
    """The sessions that are known to have the same rows as this one, whichever of them came first."""
    books = {other: store.book(other) for other in store.names()}
    found = books.get(name)
    own = () if found is None else found.beside
    later = (other for other, book in books.items() if book is not None and name in book.beside)
    return tuple(dict.fromkeys((*own, *later)))


def about(beside: Sequence[str]) -> str:
    """What the history says about the data of a session."""
    if not beside:
        return "the data that this session is about"
    same = _listed(beside)
    return f"the data that this session is about; the same rows as those of {same}: the custodian insisted"


def in_use(name: str, beside: Sequence[str]) -> DataInUse:
    """Why a second name gets no second budget."""
    return DataInUse(
        f"session {name!r} would be a second budget for the rows of {_listed(beside)}: open that one, and delegate a "
        "part of its budget, as in session.delegate(PureDP(0.1)). A second budget, whose losses add to those of the "
        "first, is given with second_budget=True; that stays on record and in the certificate"
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
