"""Bringing the record of a session, not its tables, up to the present form.

Before form 2, entries did not say what was stored of a request, a seal did not cover where its request had been pinned,
and some columns were on no chain. The first time that such a session is opened with its key, open requests are sealed
anew with all that they rest on, and an entry puts everything on record as it was found: whatever is changed from then
on is noticed. What was changed before cannot be known; `verify` replays the charges of every form. Nothing is drawn,
charged or answered by it.

>>> upgrade.__name__
'upgrade'
"""

from contextlib import suppress

from counterpoint.encoding import decode
from counterpoint.errors import Unsealable
from counterpoint.ledger.crypto.rows import read_frame, spent
from counterpoint.ledger.crypto.sealing import DataKeys
from counterpoint.ledger.state import Node
from counterpoint.ledger.store.records import FORM, StoredRequest, read_path, upgrade_digest
from counterpoint.ledger.store.store import Store, Unit


def upgrade(store: Store, name: str, keys: DataKeys) -> None:
    """Put a session of an earlier form on record, in one transaction."""
    head, book = store.begin(name), store.book(name)
    assert head is not None and book is not None
    unit = Unit(store, name, head)
    for request in store.open_requests(name):
        again = _sealed_again(request, keys)
        unit.put_request(again)
        path, what = read_path(request.path), "an open request, as it was found"
        unit.append("upgrade", request.request, path, what, "", record=again.fingerprint)
    for row in store.rows(name):
        if row.node is not None and row.spent is None:  # from before a budget was counted in parts
            unit.put_row(row._replace(spent=spent(read_frame(row.frame).mechanism, decode(row.node, Node))))
    found = upgrade_digest([(request.entry, request.fixed) for request in store.requests(name)])
    what = "written by an earlier version up to here"
    unit.append("upgraded", "", (), what, found, version=FORM, record=book.record)
    store.write(unit)
    store.commit()


def _sealed_again(request: StoredRequest, keys: DataKeys) -> StoredRequest:
    """An open request whose seed is bound to all of its columns; one that does not open is left as it is."""
    assert request.seed is not None
    with suppress(Unsealable):
        seed = keys.unseal(request.seed, "seed", *request.first_place)
        return request._replace(seed=keys.seal(seed, "seed", *request.place))
    return request
