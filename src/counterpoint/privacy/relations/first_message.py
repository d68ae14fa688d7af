"""Only the first message may differ: an interactive mechanism on a fixed data set (Henzinger et al. 2024, sec. 3.1).

>>> from counterpoint.privacy.messages import Ask
>>> FirstMessage().valid([(Ask(private=0), Ask(private=1)), (Ask("q"), Ask("q"))])
True
"""

from counterpoint.encoding import Value
from counterpoint.privacy.messages import Gap, Message
from counterpoint.privacy.relations.relation import Progress, Relation
from counterpoint.privacy.relations.steps import Steps, at_most, every_step


class FirstMessage(Relation, Value, frozen=True):
    """Only the first message may differ: an interactive mechanism on a fixed dataset (Henzinger et al. 2024, sec. 3.1).

    >>> from counterpoint.privacy.messages import Ask
    >>> FirstMessage().valid([(Ask("q"), Ask("q")), (Ask(private=0), Ask(private=1))])
    False
    """

    bound: int | None = None

    @property
    def in_words(self) -> str:
        """Only the first message differs."""
        return "that differ in the first message"

    @property
    def hereditary(self) -> bool:
        """A later message, which may not differ, may become the first."""
        return True

    def begin(self) -> Progress:
        """No message yet."""
        return "first"

    def _advance(self, progress: Progress, left: Message, right: Message, distance: Gap) -> Progress:
        later = "later"
        if distance.l1 == 0:
            return later
        if progress != "first":
            return None
        return None if every_step(self.bound).check((0, 0), left, right) is None else later

    def within(self, other: Relation) -> bool:
        """A first message is one step."""
        if isinstance(other, FirstMessage):
            return at_most(self.bound, other.bound, endless=True)
        return Steps(total=1, bound=self.bound).within(other)
