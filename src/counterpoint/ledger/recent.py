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

from collections.abc import Sequence

from counterpoint.ledger.records import StoredRequest, StoredRow
from counterpoint.ledger.store import Ahead, Unit

_MOST = 4096
_LARGEST = 2**16


class Recent:
    """Records as the last commits left them, by session and path or id."""

    __slots__ = ("_opened", "_requests", "_rows")

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], StoredRow] = {}
        self._opened: dict[tuple[str, str], StoredRequest | None] = {}
        self._requests: dict[tuple[str, str], StoredRequest] = {}

    def known(self, name: str, requests: Sequence[str], paths: Sequence[str]) -> Ahead:
        """As much as is in memory of what is going to be looked up."""
        return Ahead(
            {request: self._requests[name, request] for request in requests if (name, request) in self._requests},
            {path: self._opened[name, path] for path in paths if (name, path) in self._opened},
            {path: self._rows[name, path] for path in paths if (name, path) in self._rows},
        )

    def learn(self, unit: Unit) -> None:
        """What a unit wrote, once it is committed."""
        name = unit.name
        if len(self._rows) + len(self._opened) > _MOST:
            self._rows.clear()
            self._opened.clear()
        for path, row in unit.rows.items():
            if len(row.sealed or row.node or b"") <= _LARGEST:
                self._rows[name, path] = row
            else:
                self._rows.pop((name, path), None)
        for path, waiting in unit.opened.items():
            self._opened[name, path] = waiting
        for key, request in unit.requests.items():
            if request.seed is not None:
                self._requests[name, key] = request
            else:
                self._requests.pop((name, key), None)
