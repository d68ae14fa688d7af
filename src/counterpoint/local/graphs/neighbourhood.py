"""The user of the core decomposition protocol: one vertex, which knows its neighbours (Henzinger et al. 2024, sec. 9).

Asked (A, d), it answers whether it has fewer than d neighbours in A, with the noise of a sparse vector, and halts after
the first yes. In `watch`'s terms: -|N n A| reaches 1 - d. Between neighbouring graphs one neighbour is added or
removed, so that each such value moves by at most 1 and all of them the same way, whatever the sets A: both noises of
the sparse vector are covered. Where an edge may be rewired (one neighbour replaced by another), values move either way
and the smaller, monotone noise is refused.

Data are changes: they are added to what the user knows (nothing, at first) and clamped to 0 or 1. That map is monotone
and acts on each neighbour alone, so the argument holds for data that change as well, one change of which may differ.

>>> from counterpoint import Ask, SeededCoins
>>> vertex, coins = Neighbourhood(SparseVector(50, 0, monotone=True), vertices=4), SeededCoins(1)
>>> state, _ = vertex.step(vertex.start(coins), Ask(Data(), private=(0, 1, 1, 1)), coins)
>>> state, few = vertex.step(state, Ask(Fewer((0, 1, 2), than=2)), coins)
>>> few, vertex.step(state, Ask(Fewer((0, 1, 2), than=3)), coins)
(False, (None, True))
"""

from typing import Annotated

from counterpoint.encoding import Plain, Tagged, Value
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.local.properties import Data, are_different, is_whole
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.mechanisms.selecting.comparing import Comparing
from counterpoint.mechanisms.selecting.sparse_vector import AboveThreshold, SparseVector
from counterpoint.numbers.parameters import PositiveInt
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.messages import Ask, Gap, Message
from counterpoint.privacy.relations import OneWay, Progress, Relation, Steps, every_step
from counterpoint.privacy.secret import Raw, Secret, reveal
from counterpoint.randomness.coins import Coins

__all__ = ["AboveThreshold", "Fewer", "Neighbourhood", "OneSwap", "SparseVector"]


class Fewer(Tagged, Value, frozen=True):
    """The query (A, d) of Henzinger et al. 2024, sec. 9: have you fewer than `than` neighbours among `among`? Each
    is named once.
    """

    among: tuple[int, ...]
    than: int


class OneSwap(Relation, Value, frozen=True):
    """At most one message differs, by at most one neighbour more and at most one fewer: an edge was rewired.

    >>> OneSwap().valid([(Ask(Data(), (1, 0)), Ask(Data(), (0, 1)))])
    True
    >>> OneSwap().valid([(Ask(Data(), (1, 1)), Ask(Data(), (0, 0)))])
    False
    """

    @property
    def hereditary(self) -> bool:
        """What is left out does not differ."""
        return True

    def begin(self) -> Progress:
        """Nothing has differed."""
        return 0

    def _advance(self, progress: Progress, left: Message, right: Message, distance: Gap) -> Progress:
        if distance.l1 == 0:
            return progress
        assert left.private is not None and right.private is not None
        change = reveal(right.private - left.private)
        steps = change if isinstance(change, tuple) else (change,)
        up, down = sum(step for step in steps if step > 0), sum(-step for step in steps if step < 0)
        return 1 if progress == 0 and up <= 1 and down <= 1 else None

    def within(self, other: Relation) -> bool:
        """In itself."""
        return isinstance(other, OneSwap)


class Knows(State, Value, frozen=True):
    """A 1 for each neighbour, and the state of the sparse vector."""

    neighbours: Secret
    inner: State


class Neighbourhood(Mechanism, Value, frozen=True):
    """One vertex of a graph on vertices 0 ... `vertices` - 1 (which are public); its claim is that of `watch`."""

    watch: SparseVector | AboveThreshold
    vertices: Annotated[PositiveInt, "the number of vertices"]
    rewired: bool = False

    def __post_init__(self) -> None:
        """Check that the noise is enough for these neighbours."""
        if not all(map(isinstance, (self.watch, self.rewired), (Comparing, bool))) or self.watch.hits != 1:
            raise InvalidParameter(
                "a Neighbourhood takes a SparseVector or an AboveThreshold of one hit, and rewired=True or False"
            )
        moves: Relation = every_step() if self.rewired else OneWay()
        if not moves.within(self.watch.claim.relation):
            raise NotCovered(
                "the smaller noise needs all values of a user to move the same way between neighbours, which they do "
                "if one edge is added or removed and not if one is rewired; take noise='wide' for those"
            )

    @property
    def relation(self) -> Relation:
        """Which data are neighbours."""
        return OneSwap() if self.rewired else Steps(total=1)

    @property
    def claim(self) -> Claim:
        """That of the sparse vector."""
        watched = self.watch.claim
        by = "Henzinger et al. 2024, sec. 9: -|N n A| moves by at most 1 between neighbours, for every A"
        return claim(watched.loss, self.relation, by, watched.certificate)

    def accepts(self, message: object) -> bool:
        """Changes of what it knows (one integer for each vertex), or a query."""
        if not isinstance(message, Ask):
            return False
        if isinstance(message.public, Data):
            data = message.private
            known = data is not None and data.width == self.vertices
            return known and (self.rewired or message.sensitivity == 1)
        return message.private is None and self.understands(message.public)

    def understands(self, query: Plain) -> bool:
        """Whether a query names vertices, each once, and a number."""
        return isinstance(query, Fewer) and is_whole(query.than) and are_different(query.among, self.vertices)

    def start(self, coins: Coins) -> State:
        """It knows of no neighbour, and the noise on its threshold is drawn."""
        return Knows(Secret((0,) * self.vertices), coins.call(self.watch.start))

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """Add data to what it knows, or answer whether it has few neighbours, and halt if so."""
        assert isinstance(state, Knows) and isinstance(message, Ask)
        if isinstance(message.public, Data):
            assert message.private is not None
            return Knows((state.neighbours + message.private).clamp(0, 1), state.inner), None
        query = message.public
        assert isinstance(query, Fewer)

        def fewest(raw: Raw) -> int:
            assert isinstance(raw, tuple)
            return -sum(raw[vertex] for vertex in query.among)

        ask = Ask(1 - query.than, state.neighbours.map(fewest), one_way=not self.rewired)
        inner, few = coins.call(self.watch.step, state.inner, ask)
        return (None if inner is None else Knows(state.neighbours, inner)), few
