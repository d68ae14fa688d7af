"""Opening a durable ledger by its place and a session's name; and looking after all sessions at a place.

>>> durable("nowhere.db", "people", existing=True)
Traceback (most recent call last):
...
counterpoint.errors.LedgerError: there is no ledger at 'nowhere.db'
"""

from collections.abc import Iterator
from typing import Any

from counterpoint.encoding import decode
from counterpoint.errors import InvalidParameter, LedgerError
from counterpoint.ledger import verification
from counterpoint.ledger.durable import DurableLedger
from counterpoint.ledger.ledger import Node
from counterpoint.ledger.places import Durable, Place, hold, release
from counterpoint.ledger.records import StoredRow, path_text
from counterpoint.ledger.rows import read_frame
from counterpoint.ledger.sealing import MasterKey
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.sources.columns import is_readable

_LONGEST_NAME = 200


def durable(place: Place, name: str, *, existing: bool = False, **options: Any) -> DurableLedger:
    """The record of the session of this name at a place; with `existing`, only if there is one."""
    if not (type(name) is str and 0 < len(name) <= _LONGEST_NAME and is_readable(name)):
        raise InvalidParameter(f"a session's name is a string of 1 to {_LONGEST_NAME} characters")
    where = place if isinstance(place, Durable) else Durable(place)
    store = hold(where, existing)
    try:
        if existing and store.book(name) is None:
            names = ", ".join(map(repr, store.names())) or "none"
            raise LedgerError(f"there is no session {name!r} in this ledger; there are: {names}")
        with store.desk:  # two threads that open a new ledger at once make one key for it
            if not store.names():
                where.make_key_beside()
        return DurableLedger(store, name, where.master_key(), where.witness_file(), **options)
    except BaseException:
        release(store)
        raise


def sessions_at(place: Durable) -> Iterator[str]:
    """Verify every session at a place, and say of each what was found; the first that does not hold raises."""
    store = hold(place, existing=True)
    try:
        for name in store.names():
            with store.desk:
                entries = verification.verify(store, name, place.witness_file())
                waiting = len(store.open_requests(name))
            row = store.row(name, path_text(()))
            node = None if row is None or row.node is None else decode(row.node, Node)
            yield f"{name}: {entries} entries hold; {_said(row, node)}; {waiting} requests to be finished"
    finally:
        release(store)


def _said(row: StoredRow | None, node: Node | None) -> str:
    composition = None if row is None else read_frame(row.frame).mechanism
    if node is None or not isinstance(composition, Concurrent):
        return "nothing launched yet"
    return f"{node.launched} launched, {composition.rule.loss(node.account)!r} lost"


def rotate(place: Durable, new_key_file: str) -> Iterator[str]:
    """Change the master key of every session at a place; their names."""
    master = MasterKey.from_file(new_key_file)
    store = hold(place, existing=True)
    names = store.names()
    release(store)
    for name in names:
        found = durable(place, name, existing=True)
        try:
            found.rotate(master)
        finally:
            found.close()
        yield name
