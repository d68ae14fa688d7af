"""What has arrived in a stream, and whose it was: an append-only log that a stream and its parts share.

At user level a unit's items beyond the first so many, and nobody's, are kept as nothing: they take their place in the
log, whose length is public, and say nothing. Which ones count is decided by their order alone, never by what they say.

>>> log = Log("user", 2)
>>> log.extend([5, 6, 7, 8], ["ann", "bob", "ann", "ann"])
>>> log.items
[5, 6, 7, None]
"""

from collections.abc import Iterable, Mapping
from threading import Lock

import numpy as np

from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.numbers.exact import whole
from counterpoint.privacy.secret import Raw
from counterpoint.sources.shape import Record

Unit = str | int
"""How a unit is named."""


class Log:
    """The items of a stream in stored form, None where one says nothing; threads may append at once.

    `unit` and `most` are both given (user level) or both None (event level). `sums` is for what has been added up.
    """

    __slots__ = ("_arrived", "_lock", "items", "most", "sums", "unit")

    def __init__(self, unit: str | None = None, most: int | None = None) -> None:
        if (unit is None) != (most is None):
            raise InvalidParameter("user level takes both: `unit` names whose an item is, `per_unit` how many count")
        if unit is not None and not isinstance(unit, str):
            raise InvalidParameter("`unit` is a name for whose an item is, such as 'user'")
        self.unit, self.most = unit, None if most is None else whole(most, 1, "per_unit")
        self.items: list[Raw | Record | None] = []
        self.sums: dict[object, tuple[int, Raw]] = {}
        self._arrived: dict[Unit, int] = {}
        self._lock = Lock()

    def extend(self, items: Iterable[Raw | Record | None], owners: Iterable[Unit | None]) -> None:
        """Keep these items, all at once, in this order."""
        with self._lock:
            for item, owner in zip(items, owners, strict=True):
                self.items.append(item if self.most is None or self._counts(owner, self.most) else None)

    def _counts(self, owner: Unit | None, most: int) -> bool:
        if owner is None:
            return False
        before = self._arrived.get(owner, 0)
        self._arrived[owner] = before + 1
        return before < most

    def owners(self, units: Iterable[object] | None, count: int) -> list[Unit | None]:
        """Whose so many items are, as they were given beside them."""
        if self.unit is None:
            if units is None:
                return [None] * count
            raise InvalidRequest("this stream is at event level; declare `unit` and `per_unit` to say whose items are")
        owners = [] if units is None else list(units)
        if len(owners) != count:
            raise InvalidRequest(
                f"each item of this stream has a {self.unit!r}: say whose, as in append(1, unit='ann')"
            )
        return [self._owner(owner) for owner in owners]

    def named_in(self, records: Iterable[object]) -> list[Unit | None]:
        """Whose these records are: each says it itself, under the name of the unit."""
        return [None if self.unit is None or record is None else self._said_in(record) for record in records]

    def _said_in(self, record: object) -> Unit | None:
        if not isinstance(record, Mapping) or self.unit not in record:
            raise InvalidRequest(f"each record of this stream says whose it is: {{{self.unit!r}: 'ann', ...}}")
        owner = record[self.unit]
        return None if owner is None else self._owner(owner)

    def _owner(self, given: object) -> Unit:
        owner = given.item() if isinstance(given, np.generic) else given
        if isinstance(owner, bool) or not isinstance(owner, str | int):
            raise InvalidRequest(f"a {self.unit!r} is named by a string or an integer")
        return owner
