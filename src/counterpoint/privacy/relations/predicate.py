"""Any predicate on sequences of pairs, for experiments: a relation that no family has.

>>> from counterpoint.privacy.messages import Ask
>>> rising = Predicate("only upward", lambda pairs: all(a.sensitivity <= b.sensitivity for a, b in pairs))
>>> rising.valid([(Ask(private=0), Ask(private=1))]), rising.symmetric
(True, False)
"""

from collections.abc import Callable, Sequence

from counterpoint.errors import InvalidParameter
from counterpoint.privacy.messages import Gap, Message, gap
from counterpoint.privacy.relations.relation import Pair, Progress, Relation


class Predicate(Relation):
    """Any predicate on sequences of pairs, asked at every prefix; identical sequences are always valid.

    It is made reflexive, contains itself and nothing else that is known, and cannot be stored. Say whether it is
    symmetric; it is taken not to be.
    """

    __slots__ = ("_holds", "_symmetric", "name")

    def __init__(self, name: str, holds: Callable[[Sequence[Pair]], bool], *, symmetric: bool = False) -> None:
        if not callable(holds):
            raise InvalidParameter("a predicate relation needs a function of the pairs so far")
        self.name = name
        self._holds = holds
        self._symmetric = symmetric

    def __repr__(self) -> str:
        return f"Predicate({self.name!r})"

    @property
    def symmetric(self) -> bool:
        """As declared."""
        return self._symmetric

    def begin(self) -> Progress:
        """No pairs yet."""
        return ()

    def check(self, progress: Progress, left: Message, right: Message) -> Progress:
        """Ask the predicate about the whole prefix; unlike the other relations it may relate differing public parts."""
        if progress is None:
            return None
        pairs = (*progress, (left, right))
        same = all((distance := gap(a, b)) is not None and distance.l1 == 0 for a, b in pairs)
        return pairs if same or self._holds(pairs) else None

    def _advance(self, progress: Progress, left: Message, right: Message, distance: Gap) -> Progress:
        return self.check(progress, left, right)

    def within(self, other: Relation) -> bool:
        """Only in itself."""
        return other is self
