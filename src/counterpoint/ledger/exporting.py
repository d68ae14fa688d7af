"""The public record of a session as JSON lines: what `checker.py`, or anyone's own, reads. No key is needed.

The first line says which record it is, where its chain begins and where it has come to; each other line holds one
entry, as the text that is hashed. Seeds, states, answers and items are sealed and not in it.

>>> list(exported(None, "people"))
Traceback (most recent call last):
...
counterpoint.errors.LedgerError: there is no session 'people' in this ledger
"""

import json
from collections.abc import Iterator

from counterpoint.errors import LedgerError
from counterpoint.ledger.checking.verification import chain
from counterpoint.ledger.store.store import Store

FORMAT = "counterpoint-record/1"


def exported(store: Store | None, name: str) -> Iterator[str]:
    """The lines of a session's record, as of one moment."""
    book = None
    if store is not None:
        store.begin_reading()
        book = store.book(name)
    try:
        if store is None or book is None:
            raise LedgerError(f"there is no session {name!r} in this ledger")
        head = {"number": book.head.number, "hash": book.head.hash.hex()}
        yield json.dumps({"format": FORMAT, "session": name, "genesis": book.genesis.hex(), "head": head})
        for number, data in chain(store, name):
            if number <= book.head.number:
                yield json.dumps({"number": number, "entry": data.decode()})
    finally:
        if store is not None:
            store.rollback()
