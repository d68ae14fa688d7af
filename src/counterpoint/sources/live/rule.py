"""Which updates of a live table take effect: decided at arrival, by earlier updates of the same unit alone.

An update puts a row under a key, or removes the row under a key. A key belongs to its unit: the same key of two units
names two rows. A put under a key that has a row replaces it. Under a new key it adds a row if its unit has fewer than
`most` rows, and else does nothing, for good. Removing a key that has no row does nothing.

Two lemmas, on which every sensitivity of a live table rests (theory, Live data). The tests enumerate both.

- *Unit level.* Without its updates a unit has no rows, and the rows of all others stay as they are. So at every moment
  neighbours differ by at most `most` rows of one unit, as neighbouring tables do.
- *Event level.* Without one update, at every moment each world has at most one row that the other has not, and both
  belong to the same unit. Let A and B be the two sets of rows of that unit. If they are equal, they stay equal. If they
  have the same keys and differ in one row, the cap treats them alike; the next update of that key makes them equal. If
  A has one key more, a put under another new key finds room in both, in none, or in B alone: then A has one key and B
  another. From there, an update of A's own key removes or replaces that row, and B, which has as many rows, takes the
  key if there is room (then B has one key more) and stays as it is if there is none.

>>> rows = LiveRows(most=2)
>>> [rows.apply("ann", update, slot) for slot, update in enumerate([(True, 1), (True, 2), (True, 3), (True, 1)])]
[-1, -1, None, 0]
>>> rows.apply("bob", (False, 1), 4), rows.apply("ann", (False, 1), 5), rows.apply("ann", (True, 3), 6)
(None, 3, -1)
"""

from counterpoint.sources.declaring.columns import Key
from counterpoint.sources.streams.log import Unit
from counterpoint.sources.streams.shape import Record

NEW = -1
"""What a put replaces that adds a row."""


class LiveRows:
    """For each unit its rows: the key of each, and the slot of the update that put it there."""

    __slots__ = ("_of", "most")

    def __init__(self, most: int | None = None) -> None:
        self.most = most
        self._of: dict[Unit | None, dict[Key | None, int]] = {}

    def apply(self, owner: Unit | None, update: Record, slot: int) -> int | None:
        """The slot of the row that this update replaces or removes, or `NEW`; None if it does nothing.

        An update is (True, key, field, ...) to put a row, or (False, key) to remove one.
        """
        puts, key = update[:2]
        own = self._of.get(owner, {})
        before = own.get(key)
        if before is None and not (puts and (self.most is None or len(own) < self.most)):
            return None
        if puts:
            self._of.setdefault(owner, own)[key] = slot
        else:
            self._remove(owner, key)
        return NEW if before is None else before

    def slots(self) -> set[int]:
        """The slots of the updates whose rows are there."""
        return {slot for own in self._of.values() for slot in own.values()}

    def _remove(self, owner: Unit | None, key: Key | None) -> None:
        del self._of[owner][key]
        if not self._of[owner]:
            del self._of[owner]  # or the memory would grow with the units that ever were
