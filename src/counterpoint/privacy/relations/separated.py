"""Updates that differ are far from each other: a unit whose items never follow one another closely.

A phone that reports at most once an hour, or a person who visits at most once a week, is such a unit. Noise that is
correlated over time can be smaller for it (`mechanisms/counting/separated_counters.py`; theory, Counters).

>>> from counterpoint.privacy.messages import Update
>>> same, other = (Update(1), Update(1)), (Update(0), Update(1))
>>> twice = Separated(Steps(updates=2, bound=1), apart=3)
>>> twice.valid([other, same, same, other]), twice.valid([other, same, other])
(True, False)
"""

from typing import Annotated

from counterpoint.encoding import Value
from counterpoint.numbers.parameters import PositiveInt
from counterpoint.privacy.messages import Ask, Gap, Message
from counterpoint.privacy.relations.relation import Progress, Relation
from counterpoint.privacy.relations.steps import Steps


class Separated(Relation, Value, frozen=True):
    """Sequences in `inner` in which an update that differs is the `apart`th after the last that did, or a later one.

    Only updates of its own shape count: a child of a composition receives all updates of the shapes that it accepts,
    and those of other shapes would bring it no distance. Asks between them do not matter.

    >>> Separated(Steps(updates=8, bound=1), apart=100).within(Separated(Steps(updates=9, bound=1), apart=60))
    True
    >>> Separated(Steps(updates=8, bound=1), apart=100).within(Steps(updates=8, bound=1))
    True
    """

    inner: Steps
    apart: Annotated[PositiveInt, "the distance"]

    @property
    def in_words(self) -> str:
        """As the inner relation, and how far from each other.

        >>> Separated(Steps(asks=0, updates=3, bound=5), apart=100).in_words
        'that differ in at most 3 updates (each by at most 5), each at least 100 updates after the one before'
        """
        return f"{self.inner.in_words}, each at least {self.apart} updates after the one before"

    @property
    def closed(self) -> bool:
        """If the inner relation is: a postprocessor hands on every update once, in its place."""
        return self.inner.closed

    @property
    def hereditary(self) -> bool:
        """What is left out by public facts brings no two updates of one shape nearer to each other."""
        return self.inner.hereditary

    @property
    def instead(self) -> str:
        """What the inner relation would need."""
        return self.inner.instead

    def begin(self) -> Progress:
        """The inner progress, and (shape, updates that must come before the next that differs) where some must."""
        return (self.inner.begin(), ())

    def _advance(self, progress: Progress, left: Message, right: Message, distance: Gap) -> Progress:
        before, waiting = progress
        inner = self.inner.check(before, left, right)
        if inner is None or isinstance(left, Ask):
            return None if inner is None else (inner, waiting)
        to_wait, shape = dict(waiting), "a tally" if left.private.keyed else left.private.width
        left_to_wait = to_wait.pop(shape, 0)
        if distance.l1 > 0:
            if left_to_wait:
                return None
            left_to_wait = self.apart
        if left_to_wait > 1:
            to_wait[shape] = left_to_wait - 1
        return (inner, tuple(to_wait.items()))

    def within(self, other: Relation) -> bool:
        """Fewer and smaller differences, and at least as far from each other; or at any distance."""
        if isinstance(other, Separated):
            return self.apart >= other.apart and self.inner.within(other.inner)
        return self.inner.within(other)
