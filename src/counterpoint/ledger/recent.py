"""What a store that nobody else writes to may keep in memory: the records it has just committed.

An ask reads its row twice and its own request once, all of them written a moment ago. The rows of the last handles that
were asked are kept as they are stored (sealed), and of requests only those that are open; a done one is read again.

>>> from counterpoint.ledger.records import Head, StoredRow
>>> unit = Unit(None, "people", Head(0, bytes(32)))
>>> unit.put_row(StoredRow("[0]", 3, b"frame", None, b"sealed"))
>>> recent = Recent()
>>> recent.learn(unit)
>>> recent.known("people", [], ["[0]", "[1]"]).rows
{'[0]': StoredRow(path='[0]', version=3, frame=b'frame', node=None, sealed=b'sealed', spent=None)}
"""

from collections.abc import Mapping, Sequence

from counterpoint.ledger.records import StoredRequest
from counterpoint.ledger.store import Ahead, Unit

_MOST = 4096
_LARGEST = 2**16


class Recent:
    """Records as the last commits left them, by session and path or id."""

    __slots__ = ("_books",)

    def __init__(self) -> None:
        self._books: dict[str, Ahead] = {}

    def known(self, name: str, requests: Sequence[str], paths: Sequence[str]) -> Ahead:
        """As much as is in memory of what is going to be looked up."""
        kept = self._kept(name)
        return Ahead(
            {request: kept.requests[request] for request in requests if request in kept.requests},
            {path: kept.opened[path] for path in paths if path in kept.opened},
            {path: kept.rows[path] for path in paths if path in kept.rows},
        )

    def note(self, name: str, opened: Mapping[str, StoredRequest | None]) -> None:
        """Which requests are open, as the database says."""
        self._kept(name).opened.update(opened)

    def learn(self, unit: Unit) -> None:
        """What a unit wrote, once it is committed."""
        requests, opened, rows = self._kept(unit.name)
        if len(rows) + len(opened) > _MOST:
            rows.clear()
            opened.clear()
        rows.update(dict.fromkeys(unit.vacant))
        rows.update(unit.rows)
        opened.update(unit.opened)
        for path, row in unit.rows.items():
            if len(row.sealed or row.node or b"") > _LARGEST:
                del rows[path]
        for key, request in unit.requests.items():
            if request.seed is not None:
                requests[key] = request
            else:
                requests.pop(key, None)

    def _kept(self, name: str) -> Ahead:
        if name not in self._books:
            self._books[name] = Ahead({}, {}, {})
        return self._books[name]
