"""Multi-dimensional sparse vector: one sparse vector for each coordinate, asked in turn.

See Henzinger et al. 2024, sec. 9.

An ask brings a value for every coordinate, and the answer says of each whether it reached its threshold; a coordinate
that has had its hits is silent (None) from then on. It is a parallel composition of sparse vectors in a round-robin
pattern. If neighbouring data move at most k coordinates, each value by at most 1, it costs k sparse vectors, however
many coordinates there are (Henzinger et al. 2024, Cor 5.5, 6.6).

>>> from counterpoint import SparseVector
>>> from counterpoint.coins import SeededCoins
>>> from counterpoint.mechanisms import Ask
>>> many, coins = MultiSparseVector(SparseVector(8, threshold=10), width=3, k=2), SeededCoins(1)
>>> state, answer = many.step(many.start(coins), Ask(private=(0, 20, 0), sensitivity=2), coins)
>>> state, later = many.step(state, Ask((90, 10, 10), private=(50, 20, 50), sensitivity=2), coins)
>>> many.claim.loss, answer, later
(PureDP(16), (False, True, False), (False, None, True))
"""

from typing import Annotated

from counterpoint.encoding import Plain, Value
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.local.properties import is_whole
from counterpoint.mechanisms.composite import Composite, Own
from counterpoint.mechanisms.composite_parts import Context, Part
from counterpoint.mechanisms.mechanism import Answer
from counterpoint.mechanisms.threshold import NoisyThreshold
from counterpoint.numbers.parameters import PositiveInt
from counterpoint.privacy.messages import Ask, Gap, Message
from counterpoint.privacy.relations import Progress, Relation, every_step
from counterpoint.privacy.secret import Raw, reveal


class FewCoordinates(Relation, Value, frozen=True):
    """At most k coordinates ever differ, each value by at most `bound`: k users of many, or k parts of a partition.

    >>> relation = FewCoordinates(1)
    >>> one, other = (Ask(private=(0, 0)), Ask(private=(1, 0))), (Ask(private=(0, 0)), Ask(private=(0, 1)))
    >>> relation.valid([one, one]), relation.valid([one, other])
    (True, False)
    """

    k: int
    bound: int = 1

    @property
    def closed(self) -> bool:
        """An ask that is sent again differs where it differed."""
        return True

    @property
    def hereditary(self) -> bool:
        """What is left out differs nowhere."""
        return True

    def begin(self) -> Progress:
        """No coordinate has differed."""
        return ()

    def _advance(self, progress: Progress, left: Message, right: Message, distance: Gap) -> Progress:
        if distance.l1 == 0:
            return progress
        assert left.private is not None and right.private is not None
        change = reveal(right.private - left.private)
        steps = change if isinstance(change, tuple) else (change,)
        moved = tuple(sorted({*progress, *(place for place, step in enumerate(steps) if step)}))
        small = max(map(abs, steps)) <= self.bound
        return moved if small and len(moved) <= self.k else None

    def within(self, other: Relation) -> bool:
        """Fewer coordinates and smaller steps."""
        return isinstance(other, FewCoordinates) and self.k <= other.k and self.bound <= other.bound


class Answered(Own, Value, frozen=True):
    """How many asks there have been: public."""

    asks: int


class MultiSparseVector(Composite, Value, frozen=True):
    """`width` copies of one sparse vector; neighbours differ in at most `k` coordinates.

    An ask's public part is None or one integer threshold for each coordinate.
    """

    each: NoisyThreshold
    width: Annotated[PositiveInt, "the width"]
    k: PositiveInt = 1

    def __post_init__(self) -> None:
        """Check the parameters."""
        if not all(map(isinstance, (self.each,), (NoisyThreshold,))):
            raise InvalidParameter("each coordinate is a SparseVector or an AboveThreshold")
        if not every_step().within(self.each.claim.relation):
            raise NotCovered(
                "coordinates may move either way between neighbours: take a sparse vector without monotone=True"
            )

    @property
    def structure(self) -> tuple[Part, ...]:
        """One part of `width` launches, at most k of which a difference reaches."""
        return (Part("coordinates", self.each.claim.loss, every_step(), sparse=self.k),)

    @property
    def relation(self) -> Relation:
        """At most k coordinates differ."""
        return FewCoordinates(self.k, self.each.moves)

    def accepts(self, message: object) -> bool:
        """An ask with a value, and perhaps a threshold, for every coordinate."""
        if not isinstance(message, Ask) or message.private is None or message.private.width != self.width:
            return False
        fits = message.sensitivity <= self.k * self.each.moves
        return fits and (message.public is None or self._are_thresholds(message.public))

    def _are_thresholds(self, public: Plain) -> bool:
        return isinstance(public, tuple) and len(public) == self.width and all(map(is_whole, public))

    def begin(self, context: Context) -> Own:
        """Launch a sparse vector for each coordinate."""
        for place in range(self.width):
            context.launch("coordinates", self.each, at=place)
        return Answered(0)

    def react(self, context: Context, own: Own, message: Message) -> tuple[Own | None, Answer]:
        """Ask every coordinate in turn; halt when all have halted."""
        assert isinstance(own, Answered) and isinstance(message, Ask)
        answers = tuple(self._ask(context, message, place) for place in range(self.width))
        over = all(context.halted("coordinates", place) for place in range(self.width))
        return (None if over else Answered(own.asks + 1)), answers

    def _ask(self, context: Context, message: Ask, place: int) -> Answer:
        assert message.private is not None
        if context.halted("coordinates", place):
            return None
        threshold = message.public[place] if isinstance(message.public, tuple) else None

        def pick(raw: Raw) -> int:
            assert isinstance(raw, tuple)
            return raw[place]

        sensitivity = self.each.moves
        return context.ask("coordinates", message.private.map(pick), threshold, sensitivity, at=place)
