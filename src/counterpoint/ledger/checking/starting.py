"""Starting with a book as it is found: it is checked, and a witness that is new to it is put on record.

>>> from counterpoint.ledger.store.sqlite import SqliteStore
>>> import os.path, tempfile
>>> store = SqliteStore(os.path.join(tempfile.mkdtemp(), "ledger.db"))
>>> started(store, "people", None, None) is None
True
>>> store.close()
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from counterpoint.ledger.checking import books, verification
from counterpoint.ledger.checking.verification import Opened
from counterpoint.ledger.checking.witness import Witness
from counterpoint.ledger.crypto.sealing import MasterKey
from counterpoint.ledger.store.store import Store

Writing = Callable[[], AbstractContextManager[None]]


def started(
    store: Store, name: str, witness: Witness | None, master: MasterKey | None, writing: Writing = nullcontext
) -> Opened | None:
    """The record of a session (None: there is none yet), once it was found to hold.

    `writing` is entered around what is written to the database.
    """
    found = verification.opened(store, name, witness, master)
    if found is None:
        return None
    books.must_not_be_retired(name, found.book)
    if witness is None:
        return found
    if not (found.sighting and found.sighting.placed):
        witness.note_place(name, found.book.genesis)
    if found.book.witnessed:
        return found
    with writing():
        book = books.require_witness(store, name)
    witness.note(name, *book.head, book.genesis, lambda after: store.entries(name, after))
    return verification.opened(store, name, witness, master)
