"""Retiring a data set: its keys and all that they sealed are destroyed, and its public record stays.

States, seeds, answers, items and the digest of the rows go, and the wrapped data keys with them. What stays is the
chain of entries, the accounts of sessions, and the public key that receipts were signed with: the record can be
verified and exported, and receipts be checked, as before. Nothing is launched, asked or read again under this name.

What this cannot reach: copies that were made before (a backup with its master key opens as ever), the blocks of a disk
that a file system has not written over yet, and the log of a PostgreSQL server. To close older backups too, change the
master key of the other sessions (`counterpoint ledger rotate`) and destroy the old one.

>>> retire("nowhere.db", "people", by="olga")
Traceback (most recent call last):
...
counterpoint.errors.LedgerError: there is no ledger at 'nowhere.db'
"""

from contextlib import closing, nullcontext

from counterpoint.ledger.checking import books, verification
from counterpoint.ledger.grants import principal
from counterpoint.ledger.places import Durable, Place, hold, release
from counterpoint.ledger.store.records import Book, keys_digest
from counterpoint.ledger.store.store import Store, Unit


def retire(ledger: Place, name: str, *, by: str) -> str:
    """Destroy the keys and the sealed content of a session; `by` is who does it, for the record. What was done."""
    place, who = ledger if isinstance(ledger, Durable) else Durable(ledger), principal(by)
    store = hold(place, existing=True)
    try:
        witness = place.witness_file()
        with store.lock, nullcontext() if witness is None else closing(witness):
            verification.verify(store, name, witness)
            book = _write(store, name, who)
            if witness is not None:
                witness.note(name, *book.head, book.genesis, lambda after: store.entries(name, after))
            erased = store.erase_deleted()
    finally:
        release(store)
    left = "older backups have them still" if erased else "unused space of the database may have them still: vacuum it"
    return f"{name}: retired. Its keys and all that they sealed are destroyed; {left}"


def _write(store: Store, name: str, who: str) -> Book:
    """Put the retirement on record, and delete what it destroys, in one transaction; the book as it is then."""
    head = store.begin(name)
    try:
        book = store.book(name)
        assert head is not None and book is not None
        books.must_not_be_retired(name, book)
        left, unit = book._replace(content=None, keys=()), Unit(store, name, head)
        what = "its keys, and all that they sealed, are destroyed"
        unit.append("retirement", "", (), what, "", state=keys_digest(()), record=left.record, who=who)
        store.write(unit)
        store.write_book(name, left)
        store.write_keys(name, ())
        store.delete_sealed(name)
        store.commit()
    except BaseException:
        store.rollback()
        raise
    return left._replace(head=unit.head)
