"""The game that defines privacy: V[f] . I(b) . M (Henzinger et al. 2024, Def 3.2, 3.5, 3.7).

The adversary sends pairs of messages. The verifier V[f] checks every prefix of the pairs against the relation f and
halts at the first invalid pair, before the mechanism sees it (also at a message that the mechanism does not accept;
Henzinger et al. 2024, Remark 3.6); the identifier I(b) passes on the left or the right message of each pair. A
mechanism is (epsilon, delta)-DP for f if the views of every adversary for b = 0 and b = 1 are (epsilon,
delta)-indistinguishable.

>>> from counterpoint import RandomizedResponse
>>> from counterpoint.coins import SeededCoins
>>> from counterpoint.mechanisms import Ask
>>> game, coins = Game(RandomizedResponse(800), bit=1), SeededCoins(1)
>>> game.step(game.start(coins), Ask(private=0), Ask(private=1), coins)[1]
(False, 1)
"""

from typing import Literal

from msgspec.structs import force_setattr

from counterpoint.coins.coins import Coins
from counterpoint.encoding import Plain, Tagged, Value
from counterpoint.mechanisms.concurrent import Launch
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.privacy.messages import Ask, Gap, Message
from counterpoint.privacy.relations import Pair, Progress, Relation

HALT = "halt"
"""The answer to every message after the game has halted."""


class GameState(State, Value, frozen=True):
    """The progress of the relation's check, and the mechanism's state (None: the mechanism has halted)."""

    progress: Plain
    inner: State | None


class Game(Tagged, Value, frozen=True):
    """The world `bit` of a mechanism, guarded by a relation: its claim's own if no other is given."""

    mechanism: Mechanism
    bit: Literal[0, 1]
    relation: Relation | None = None

    def __post_init__(self) -> None:
        """Use the claim's relation if none is given."""
        if self.relation is None:
            force_setattr(self, "relation", self.mechanism.claim.relation)

    def start(self, coins: Coins) -> State:
        """Start the mechanism; the verifier has seen nothing."""
        assert self.relation is not None
        return GameState(self.relation.begin(), coins.call(self.mechanism.start))

    def step(self, state: State | None, left: Message, right: Message, coins: Coins) -> tuple[State | None, Answer]:
        """The mechanism's answer to its side of a valid pair; `HALT` from the first invalid pair on."""
        if not isinstance(state, GameState) or state.inner is None or self.relation is None:
            return None, HALT
        progress = verified(self.mechanism, self.relation, state.progress, (left, right))
        if progress is None:
            return None, HALT
        message = right if self.bit else left
        inner, answer = coins.call(self.mechanism.step, state.inner, message)
        return GameState(progress, inner), answer


def verified(mechanism: Mechanism, relation: Relation, progress: Progress, pair: Pair) -> Progress:
    """V[f] on one more pair: the progress after it, or None if it halts.

    See Henzinger et al. 2024, Def 3.5, Remark 3.6.

    >>> from counterpoint import Laplace
    >>> from counterpoint.mechanisms import Ask
    >>> laplace = Laplace(1)
    >>> verified(laplace, laplace.claim.relation, (0, 0), (Ask(private=0), Ask(private=1)))
    (0, 0)
    >>> verified(laplace, laplace.claim.relation, (0, 0), (Ask(), Ask())) is None
    True
    """
    if progress is None or not all(map(mechanism.accepts, pair)):
        return None
    return relation.check(progress, *pair)


class CreatedFirst(Relation, Value, frozen=True):
    """Neighbours in `inner` whose first `created` messages are launches, and whose other messages are not.

    Suitable sequences (Henzinger et al. 2024, Def 4.5, 4.9): the composition of a fixed number of mechanisms, with
    everything else that the relation requires unchanged. As printed, Def 4.9 lets a further creation pass uncounted
    (errata, Henzinger E2); this relation does not.

    >>> from counterpoint import RandomizedResponse
    >>> from counterpoint.mechanisms import Ask, Launch, ToChild
    >>> from counterpoint.privacy.relations import every_step
    >>> create = (Ask(Launch(RandomizedResponse(1))),) * 2
    >>> ask = Ask(ToChild(0), 0), Ask(ToChild(0), 1)
    >>> relation = CreatedFirst(every_step(), 1)
    >>> [relation.valid(pairs) for pairs in ([create, ask, ask], [ask], [create, create], [create, ask, create])]
    [True, False, False, False]
    """

    inner: Relation
    created: int

    @property
    def symmetric(self) -> bool:
        """As symmetric as the inner relation: launches are the same in both worlds."""
        return self.inner.symmetric

    @property
    def per_child(self) -> Relation:
        """A child sees no launches."""
        return self.inner.per_child

    def begin(self) -> Progress:
        """Nothing has been created."""
        return (0, self.inner.begin())

    def _advance(self, progress: Progress, left: Message, right: Message, distance: Gap) -> Progress:
        created, inner = progress
        launches = isinstance(left, Ask) and isinstance(left.public, Launch)
        if launches != (created < self.created):
            return None
        inner = self.inner.check(inner, left, right)
        return None if inner is None else (created + launches, inner)

    def within(self, other: Relation) -> bool:
        """Within every relation that contains the inner one, and within the same with a larger inner relation."""
        if isinstance(other, CreatedFirst):
            return self.created == other.created and self.inner.within(other.inner)
        return self.inner.within(other)
