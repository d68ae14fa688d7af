"""The last item that a counter counts, and the answer it gives after more of them.

A counter under pure privacy has noise for the items up to its horizon alone, and one whose every item is a step of the
noise for those up to the last step. An update cannot halt a mechanism, and a sum that leaves items out must not pass
for a running count. So later items are taken without being counted, and the next ask gets `PastHorizon`.

>>> [up_to(3, items) for items in (2, 3, 4)], [is_past(3, items) for items in (2, 3, 4)]
([2, 3, 3], [False, False, True])
"""

from collections.abc import Sequence

from counterpoint.encoding import Tagged, Value
from counterpoint.privacy.messages import Update


class PastHorizon(Tagged, Value, frozen=True):
    """The answer to an ask after more items than the horizon: the noisy count at the horizon.

    >>> PastHorizon(41)
    PastHorizon(41)
    """

    count: int | tuple[int, ...]


def up_to(most: int | None, items: int) -> int:
    """How many of this many items are counted, if at most `most` are (None: all).

    >>> up_to(3, 4), up_to(None, 4)
    (3, 4)
    """
    return items if most is None else min(items, most)


def is_past(most: int | None, items: int) -> bool:
    """Whether there are more items than are counted.

    >>> is_past(3, 4), is_past(None, 4)
    (True, False)
    """
    return most is not None and items > most


def until_past(most: int | None, items: int, updates: Sequence[Update]) -> Sequence[Update]:
    """The updates that are counted, if this many items came before them.

    >>> len(until_past(3, 2, [Update(1)] * 5)), len(until_past(None, 2, [Update(1)] * 5))
    (1, 5)
    """
    return updates if most is None else updates[: max(most - items, 0)]
