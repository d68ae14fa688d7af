"""What a store may keep in memory: the records it has last written or read, as long as nobody else writes.

An ask reads its row twice and its own request once, all of them written a moment ago. Whoever changes a session moves
the head of its chain: where the head is as this store left it, so is all the rest. The rows of the last handles that
were asked are kept as they are stored (sealed), and of requests only those that are open; a done one is read again.

>>> unit = Unit(None, "people", Head(0, bytes(32)))
>>> unit.put_row(StoredRow("[0]", 3, b"frame", None, b"sealed"))
>>> recent = Recent()
>>> recent.learn(unit)
>>> recent.known("people", [], ["[0]", "[1]"]).rows
{'[0]': StoredRow(path='[0]', version=3, frame=b'frame', node=None, sealed=b'sealed', spent=None)}
>>> recent.holds("people", Head(1, bytes(32))), recent.known("people", [], ["[0]", "[1]"]).rows
(False, {})
"""

from collections.abc import Sequence

from counterpoint.ledger.records import Head, StoredRow
from counterpoint.ledger.store import Ahead, Unit

_MOST = 4096
_LARGEST = 2**16


class _Kept:
    """Of one session: where its chain had come to, and records as they were then; whether nobody else came lately."""

    __slots__ = ("alone", "head", "records")

    def __init__(self) -> None:
        self.head: Head | None = None
        self.records = Ahead({}, {}, {})
        self.alone = False


class Recent:
    """Records as the last commits left them, by session and path or id."""

    __slots__ = ("_books",)

    def __init__(self) -> None:
        self._books: dict[str, _Kept] = {}

    def known(self, name: str, requests: Sequence[str], paths: Sequence[str]) -> Ahead:
        """As much as is in memory of what is going to be looked up."""
        kept = self._of(name).records
        return Ahead(
            {request: kept.requests[request] for request in requests if request in kept.requests},
            {path: kept.opened[path] for path in paths if path in kept.opened},
            {path: kept.rows[path] for path in paths if path in kept.rows},
        )

    def holds(self, name: str, head: Head) -> bool:
        """Whether what is kept still is as the database has it; it is forgotten if not."""
        kept = self._of(name)
        kept.alone = kept.head == head
        if not kept.alone:
            self._books.pop(name)
        return kept.alone

    def presumed(self, name: str) -> Head | None:
        """The head of the chain, if there is reason to believe that nobody has moved it."""
        kept = self._of(name)
        return kept.head if kept.alone else None

    def note(self, name: str, head: Head, read: Ahead) -> None:
        """What the database has just said: which requests are open, and rows."""
        _, opened, rows = self._room(name, head)
        opened.update(read.opened)
        rows.update({path: row for path, row in read.rows.items() if row is None or not _is_large(row)})

    def learn(self, unit: Unit) -> None:
        """What a unit wrote, once it is committed."""
        requests, opened, rows = self._room(unit.name, unit.head)
        rows.update(dict.fromkeys(unit.vacant))
        rows.update(unit.rows)
        opened.update(unit.opened)
        for path, row in unit.rows.items():
            if _is_large(row):
                del rows[path]
        for key, request in unit.requests.items():
            if request.seed is not None:
                requests[key] = request
            else:
                requests.pop(key, None)

    def _room(self, name: str, head: Head) -> Ahead:
        """The records of a session as of this head, with room for more."""
        kept = self._of(name)
        kept.head = head
        if len(kept.records.rows) + len(kept.records.opened) > _MOST:
            kept.records.rows.clear()
            kept.records.opened.clear()
        return kept.records

    def _of(self, name: str) -> _Kept:
        if name not in self._books:
            self._books[name] = _Kept()
        return self._books[name]


def _is_large(row: StoredRow) -> bool:
    return len(row.sealed or row.node or b"") > _LARGEST
