"""The history of a durable ledger, as a process keeps it: read from the chain once, and then followed.

Entries are only ever appended, so a line that was read stays as it is. Lines that are alike in part share that part. A
history of more than `MOST_KEPT` lines is not kept, but read whenever it is asked for.

>>> from counterpoint.ledger.chain import Entry
>>> def entries(after):
...     made = (Entry(1, "open", "root", (), "Filter", ""), Entry(2, "witness", "", (), "", ""))
...     return [(entry.number, entry.encoded()) for entry in made if entry.number > after]
>>> history = FollowedHistory()
>>> [fact.kind for fact in history.follow(entries)], history.head, list(history.numbers)
(['open'], 2, [1])
"""

from array import array
from collections.abc import Callable, Iterable, Iterator

from counterpoint.ledger.chain import ANSWERED, HISTORY, read_entry
from counterpoint.ledger.state import HistoryEntry, Path

MOST_KEPT = 300_000
"""How many lines are kept: some 300 bytes each."""
_MOST_SHARED = 50_000


class FollowedHistory:
    """The lines of a history, and the numbers of their entries."""

    def __init__(self) -> None:
        self.head = 0
        """The number of the last entry that was read."""
        self.facts: list[HistoryEntry] = []
        self.numbers = array("q")
        self._shared: dict[object, object] = {}

    def follow(self, entries_after: Callable[[int], Iterable[tuple[int, bytes]]]) -> list[HistoryEntry]:
        """All lines, after reading the entries that are new."""
        if len(self.facts) > MOST_KEPT:
            self._forget()
        for number, data in entries_after(self.head):
            entry = read_entry(data, number)
            if entry.kind in HISTORY:
                self.facts.append(self._compact(entry.fact))
                self.numbers.append(number)
            self.head = number
        return self.facts

    def answered(self, path: Path, who: str) -> Iterator[int]:
        """The numbers of the entries of a principal's asks at or below a path, the newest first."""
        length = len(path)
        for place in range(len(self.facts) - 1, -1, -1):
            fact = self.facts[place]
            if fact.who == who and fact.kind in ANSWERED and fact.path[:length] == path:
                yield self.numbers[place]

    def _forget(self) -> None:
        self.head, self.facts, self.numbers = 0, [], array("q")
        self._shared.clear()

    def _compact(self, fact: HistoryEntry) -> HistoryEntry:
        """The same line; what it has in common with others is kept once."""
        if len(self._shared) > _MOST_SHARED:
            self._shared.clear()
        share = self._shared.setdefault
        parts = (share(fact.kind, fact.kind), share(fact.path, fact.path), share(fact.what, fact.what))
        return HistoryEntry(*parts, share(fact.who, fact.who), fact.at, share(fact.cost, fact.cost))  # type: ignore[arg-type]
