"""How the answer to a request changes with each update of a live table: what mechanisms that follow it receive.

An update puts a row in the place of another, or of none, or removes one: the answer, a sum over rows, changes by what
the new row adds less what the old one added. It is a function of the two rows, which the log has.

>>> from counterpoint.sources.asking.contributions import contribution
>>> from counterpoint.sources.asking.requests import sum
>>> from counterpoint.sources.declaring.columns import number
>>> from counterpoint.sources.declaring.declaration import Declaration, Named
>>> from counterpoint.sources.live.update_log import UpdateLog
>>> ages = contribution(sum("age"), Declaration(None, 1, "replace", (Named("age", number(0, 120)),)))
>>> log = UpdateLog("person", rows_per_unit=1)
>>> log.extend([(True, 1, 30), (True, 1, 31), None, (False, 1)], ["ann"] * 4)
>>> [change(*effect, ages, ()) for effect in log.effects(0, 4)]
[30, 1, 0, -31]
"""

from typing import Any

from counterpoint.privacy.secret import Raw
from counterpoint.sources.asking.contributions import Contribution
from counterpoint.sources.declaring.columns import Key

Where = tuple[tuple[int, Key], ...]
"""A part: columns by their places, each with the value that its rows have there."""


def change(update: Any, replaced: Any, read: Contribution, where: Where) -> Raw:
    """How much an update changes the answer about the rows of a part, with the update whose row it replaced, if any."""
    after = _added(update, read, where)
    before = _added(replaced, read, where)
    if isinstance(after, tuple):
        return tuple(new - old for new, old in zip(after, before, strict=True))  # type: ignore[arg-type]  # same shape
    return after - before  # type: ignore[operator]  # the same shape


def _added(update: Any, read: Contribution, where: Where) -> Raw:
    """What the row of an update adds to the answer; 0 without a row, or if the row is in another part."""
    if update is None or not update[0]:
        return read.zero
    row = update[2:]
    return read.read(row) if all(row[place] == key for place, key in where) else read.zero
