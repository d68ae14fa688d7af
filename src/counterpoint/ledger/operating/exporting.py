"""The public record of a session as JSON lines: what `checker.py`, or anyone's own, reads. No key is needed.

The first line says which record it is, where its chain begins and ends, with the signature of the service if its key is
at hand; each other line holds one entry, as the text that is hashed. Seeds, states, answers and items are sealed and
not in it.

>>> from contextlib import nullcontext
>>> from types import SimpleNamespace
>>> list(exported(lambda: nullcontext(SimpleNamespace(book=lambda name: None)), "people"))
Traceback (most recent call last):
...
counterpoint.errors.LedgerError: there is no session 'people' in this ledger
"""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import islice

from counterpoint.errors import LedgerError, LedgerTampered
from counterpoint.ledger.receipts import RECORD, Signer
from counterpoint.ledger.store.store import BATCH, Store


def exported(
    connection: Callable[[], AbstractContextManager[Store]], name: str, signer: Signer | None = None
) -> Iterator[str]:
    """The lines of a session's record, as of the moment of the first, signed by its signer if that is given.

    The chain only grows, so it is read in pages, each with the connection for itself; requests go on between them.
    """
    with connection() as store:
        book = store.book(name)
    if book is None:
        raise LedgerError(f"there is no session {name!r} in this ledger")
    last = book.head.number
    head = {"number": last, "hash": book.head.hash.hex()}
    header = {"format": RECORD, "session": name, "genesis": book.genesis.hex(), "head": head}
    signed = {} if signer is None else {"signature": signer.sign_record(book.genesis, name, book.head)}
    yield json.dumps(header | signed)
    for after in range(0, last, BATCH):
        size = min(BATCH, last - after)
        with connection() as store:
            page = list(islice(store.entries(name, after, size), size))
        if [number for number, _ in page] != list(range(after + 1, after + size + 1)):
            raise LedgerTampered(f"an entry of {name!r} between {after + 1} and {after + size} is missing")
        yield from (json.dumps({"number": number, "entry": data.decode()}) for number, data in page)
