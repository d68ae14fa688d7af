"""All values move the same way, up or down, as counts do when one unit is added or removed.

>>> from counterpoint.privacy.messages import Ask
>>> up = Ask(private=0, one_way=True), Ask(private=1, one_way=True)
>>> OneWay().valid([up, up]), OneWay().valid([up, up[::-1]])
(True, False)
"""

from counterpoint.encoding import Value
from counterpoint.privacy.messages import Ask, Gap, Message
from counterpoint.privacy.relations.relation import Progress, Relation
from counterpoint.privacy.relations.steps import Steps
from counterpoint.privacy.secret import Secret, reveal


class OneWay(Relation, Value, frozen=True):
    """Sequences in `inner` in which all integers of asks that say `one_way` move the same way, up or down.

    So do counts when one unit is added or removed. It is what halves the noise of selection: `monotone=True`.

    >>> up = Ask(private=0, one_way=True), Ask(private=1, one_way=True)
    >>> down = up[1], up[0]
    >>> OneWay().valid([up, up]), OneWay().valid([down, down]), OneWay().valid([up, down])
    (True, True, False)
    >>> OneWay().valid([up, (Ask(private=1), Ask(private=0))])
    True
    """

    inner: Steps = Steps()

    @property
    def closed(self) -> bool:
        """If the inner relation is: an ask that is sent again moves the way it moved."""
        return self.inner.closed

    @property
    def hereditary(self) -> bool:
        """What is left out moves no way."""
        return self.inner.hereditary

    @property
    def instead(self) -> str:
        """What the inner relation would need."""
        return self.inner.instead

    @property
    def in_words(self) -> str:
        """As the inner relation, and all changes move the same way.

        >>> OneWay(Steps(updates=0)).in_words
        'that differ in any asks, all in the same direction'
        """
        return f"{self.inner.in_words}, all in the same direction"

    def begin(self) -> Progress:
        """The inner progress, and 0 as nothing has moved; then 1 if everything moves up, -1 if down."""
        return (self.inner.begin(), 0)

    def _advance(self, progress: Progress, left: Message, right: Message, distance: Gap) -> Progress:
        before, way = progress
        inner = self.inner.check(before, left, right)
        if inner is not None and distance.l1 > 0 and isinstance(left, Ask) and left.one_way:
            move = _way(left.private, right.private)
            inner, way = (inner, move) if way in (0, move) and move else (None, way)
        return None if inner is None else (inner, way)

    def within(self, other: Relation) -> bool:
        """Where the inner sequences are, one way or not."""
        return self.inner.within(other.inner if isinstance(other, OneWay) else other)


def _way(left: Secret | None, right: Secret | None) -> int:
    """1 if no integer is smaller on the right and some is larger, -1 the other way round, 0 if they disagree."""
    assert left is not None and right is not None
    change = reveal(right - left)
    steps = change if isinstance(change, tuple) else (change,)
    return 1 if min(steps) >= 0 else -1 if max(steps) <= 0 else 0
