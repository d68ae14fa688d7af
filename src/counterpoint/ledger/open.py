"""Opening a durable ledger by its place and a session's name; and looking after all sessions at a place.

>>> durable("nowhere.db", "people", existing=True)
Traceback (most recent call last):
...
counterpoint.errors.LedgerError: there is no ledger at 'nowhere.db'
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from typing import Any

from counterpoint.encoding import decode
from counterpoint.errors import InvalidParameter, LedgerError, Unsealable
from counterpoint.ledger import verification
from counterpoint.ledger.durable import DurableLedger
from counterpoint.ledger.location import Durable, Place, hold, looked_at, release
from counterpoint.ledger.sealed_rows import read_public_row
from counterpoint.ledger.sealing import DataKeys, MasterKey
from counterpoint.ledger.state import SessionState
from counterpoint.ledger.store.records import REGISTER, StoredRow, path_text
from counterpoint.ledger.store.store import Store
from counterpoint.ledger.witness import SeenBefore, Witness
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.schema.columns import is_readable

_LONGEST_NAME = 200
_log = logging.getLogger("counterpoint.ledger")
_warned: set[str] = set()


def durable(place: Place, name: str, *, existing: bool = False, **options: Any) -> DurableLedger:
    """The record of the session of this name at a place; with `existing`, only if there is one."""
    if not (type(name) is str and 0 < len(name) <= _LONGEST_NAME and is_readable(name)):
        raise InvalidParameter(f"a session's name is a string of 1 to {_LONGEST_NAME} characters")
    if name == REGISTER:
        raise InvalidParameter(f"{REGISTER!r} is the register of a ledger: give the session another name")
    where = place if isinstance(place, Durable) else Durable(place)
    store = hold(where, existing)
    try:
        if existing and store.header(name) is None:
            names = ", ".join(map(repr, store.names())) or "none"
            raise LedgerError(f"there is no session {name!r} in this ledger; there are: {names}")
        with store.lock:  # two threads that open a new ledger at once make one key for it
            if not store.headers():
                where.make_key_beside()
        found = DurableLedger(store, name, where.master_key(), where.witness_file(), **options)
    except BaseException:
        release(store)
        raise
    _warn_once(where)
    return found


def _warn_once(place: Durable) -> None:
    """Once for a ledger in the log of this process, however many sessions are opened."""
    warning = place.witness_beside
    if warning is not None and place.identity not in _warned:
        _warned.add(place.identity)
        message = f"{place!r}: {warning}"
        _log.warning("%s", message, extra={"said": {"message": message}})


def sessions_at(place: Durable) -> Iterator[str]:
    """Verify the register and every session at a place; of each session, what was found. What does not hold raises.

    What the witness has seen is read before the ledger: one that is in use is ahead of that, and never behind it.
    """
    with looked_at(place) as before:
        names = before.names()
    with _witness_of(place) as found:
        witness = None if found is None else SeenBefore(found, (*names, REGISTER))
        with looked_at(place) as store:
            for name in names:
                with store.lock:
                    entries = verification.verify(store, name, witness)
                    waiting = len(store.open_requests(name))
                row = store.row(name, path_text(()))
                node = None if row is None or row.node is None else decode(row.node, SessionState)
                yield f"{name}: {entries} entries hold; {_state(row, node)}; {waiting} requests to be finished"
            with store.lock:
                verification.verify_register(store, witness, _key_at_hand(place))


def _key_at_hand(place: Durable) -> MasterKey | None:
    try:
        return place.master_key()
    except Unsealable:  # everything but the signatures of the register is verified without a key
        return None


@contextmanager
def _witness_of(place: Durable) -> Iterator[Witness | None]:
    witness = place.witness_file()
    with nullcontext() if witness is None else closing(witness):
        yield witness


def _state(row: StoredRow | None, node: SessionState | None) -> str:
    composition = None if row is None else read_public_row(row.public).mechanism
    if node is None or not isinstance(composition, Concurrent):
        return "nothing launched yet"
    return f"{node.launched} launched, {composition.rule.loss(node.account)!r} lost"


def rotate(place: Durable, new_key_file: str) -> Iterator[str]:
    """Change the master key of every session at a place; what was done with each.

    A session is rotated by whichever key at hand opens it; one that only the new key opens was rotated before. So a
    change that was interrupted, wherever it was, is finished by running it again in the same way: what the old key had
    wrapped is erased at the end, also if all sessions have the new key by then. Nothing is changed unless every session
    can be opened.
    """
    new = MasterKey.from_file(new_key_file)
    store = hold(place, existing=True)
    try:
        with store.lock:
            present = {
                name: _opening(store, name, place.master_keys()) for name in store.headers() if _keys(store, name)
            }
            lost = [name for name, key in present.items() if key is None and _opening(store, name, (new,)) is None]
        if lost:
            raise Unsealable(
                f"{', '.join(map(repr, lost))}: sealed with another key than those given, so nothing was changed; give "
                "that one by --key-file"
            )
        for name, key in present.items():
            if key is None:
                yield f"{name}: sealed with the new key already"
            else:
                with closing(DurableLedger(hold(place, existing=True), name, key, place.witness_file())) as found:
                    found.rotate(new)
                yield f"{name}: sealed with the new key from now on"
        yield _erased(store, place.in_postgres)
    finally:
        release(store)


def _opening(store: Store, name: str, keys: Sequence[MasterKey]) -> MasterKey | None:
    """The first of these keys that opens a session."""
    wrapped = _keys(store, name)
    return next((key for key in keys if DataKeys(name, key, wrapped).usable), None)


def _keys(store: Store, name: str) -> tuple[bytes, ...]:
    """The wrapped keys of a session; a retired one has none."""
    header = store.header(name)
    return () if header is None else header.keys


def _erased(store: Store, in_postgres: bool) -> str:
    with store.lock:
        erased = store.erase_deleted()
    kept = "the server's log and older backups have it still" if in_postgres else "older backups have it still"
    if erased:
        return f"what the old key had wrapped is erased from the database; {kept}"
    needed = "as the owner of its tables" if in_postgres else "with room for a copy of it on the disk"
    return (
        "what the old key had wrapped is still in the database, in space that is not used any more: run this again "
        f"with the same keys, {needed}, while no other process uses it"
    )
