"""A sampled mechanism with the units that it samples: what a source and a session do, small enough to enumerate.

A source makes messages from the units of a sample, by coins that are keyed hashes; those cannot be enumerated. Here a
message has one number for each unit, the coins are tossed at the start, and the mechanism receives the sum over the
units of the sample. So `exact` enumerates samples and noise together, against every adaptive adversary who adds or
removes one unit (theory, Sampling).

>>> from counterpoint import RandomizedResponse, Sampled
>>> from counterpoint.mechanisms import Ask
>>> from counterpoint.verify.exact_loss import exact
>>> two = UnitByUnit(Sampled(RandomizedResponse(1), rate=0.5), units=2)
>>> joins, others = (Ask(private=(0, 0)), Ask(private=(0, 1))), (Ask(private=(1, 0)), Ask(private=(1, 0)))
>>> exact(two, messages=[joins, others], rounds=1).judge(two.claim)
Verdict.HOLDS
"""

from msgspec.structs import replace

from counterpoint.coins.coins import Coins
from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.mechanisms.sampled import Sampled
from counterpoint.numbers.parameters import PositiveInt
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.messages import Ask, Gap, Message, Update
from counterpoint.privacy.relations import OfSample, Progress, Relation
from counterpoint.privacy.secret import Secret, reveal


class OneUnit(Relation, Value, frozen=True):
    """Messages with a number for each unit; one unit's numbers are 0 in one of the worlds, and all others are equal.

    Which unit, and in which world, is settled when something first differs. What that unit brings is in `inner`.

    >>> from counterpoint.privacy.relations import every_step
    >>> joins = Ask(private=(0, 3), sensitivity=3), Ask(private=(0, 0), sensitivity=3)
    >>> OneUnit(every_step()).valid([joins, joins]), OneUnit(every_step()).valid([joins, joins[::-1]])
    (True, False)
    """

    inner: Relation

    @property
    def symmetric(self) -> bool:
        """If the inner relation is."""
        return self.inner.symmetric

    @property
    def hereditary(self) -> bool:
        """If the inner relation is."""
        return self.inner.hereditary

    @property
    def closed(self) -> bool:
        """If the inner relation is: an ask that is sent again differs where it differed."""
        return self.inner.closed

    def begin(self) -> Progress:
        """The inner progress, which unit differs, and in which world it is not there."""
        return (self.inner.begin(), None, None)

    def _advance(self, progress: Progress, left: Message, right: Message, distance: Gap) -> Progress:
        before, unit, absent = progress
        numbers = [() if message.private is None else reveal(message.private) for message in (left, right)]
        units = [number if isinstance(number, tuple) else (number,) for number in numbers]
        moved = [place for place, (a, b) in enumerate(zip(*units, strict=True)) if a != b]
        if moved:
            here = moved[0]
            gone = next((world for world in (0, 1) if units[world][here] == 0), None)
            if len(moved) > 1 or gone is None or unit not in (None, here) or absent not in (None, gone):
                return None
            unit, absent = here, gone
        brought = [0 if unit is None or not own else own[unit] for own in units]
        pair = [
            m if m.private is None else replace(m, private=Secret(b))
            for m, b in zip((left, right), brought, strict=True)
        ]
        inner = self.inner.check(before, *pair)
        return None if inner is None else (inner, unit, absent)

    def within(self, other: Relation) -> bool:
        """Where what the unit brings is."""
        return isinstance(other, OneUnit) and self.inner.within(other.inner)


class UnitCoins(State, Value, frozen=True):
    """Which units are in the sample, and the state of the mechanism."""

    kept: tuple[bool, ...]
    inner: State


class UnitByUnit(Mechanism, Value, frozen=True):
    """A sampled mechanism, or a session on a sample, on `units` units; each brings a number with a message."""

    sampled: Mechanism
    units: PositiveInt

    def __post_init__(self) -> None:
        """Refuse what sees all units."""
        if self.sampled.sampling_rate is None:
            raise InvalidParameter(
                "UnitByUnit takes a sampled mechanism, as in Sampled(Laplace(1), rate=0.1), and "
                f"{self.sampled!r} is none"
            )

    @property
    def claim(self) -> Claim:
        """That of the sampled mechanism, for one unit that is added or removed."""
        inner = self.sampled.claim
        assert isinstance(inner.relation, OfSample)
        relation = OneUnit(inner.relation.inner)
        return claim(inner.loss, relation, "on a sample", inner.certificate, interaction=inner.interaction)

    @property
    def on_sample(self) -> Mechanism:
        """What sees the sample: a session's composition sees it itself."""
        return self.sampled.mechanism if isinstance(self.sampled, Sampled) else self.sampled

    def accepts(self, message: object) -> bool:
        """What the mechanism accepts, with a number for each unit in the place of their sum."""
        if not isinstance(message, Ask | Update):
            return False
        if message.private is None:
            return self.sampled.accepts(message)
        return message.private.width == self.units and self.sampled.accepts(replace(message, private=Secret(0)))

    def start(self, coins: Coins) -> State:
        """Toss a coin for each unit, once."""
        rate = self.sampled.sampling_rate
        assert rate is not None
        kept = tuple(coins.bernoulli(rate) for _ in range(self.units))
        return UnitCoins(kept, coins.call(self.on_sample.start))

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """The step of the mechanism on the sum over the units of the sample."""
        assert isinstance(state, UnitCoins)
        kept = state.kept
        if message.private is not None:
            message = replace(message, private=message.private.map(lambda numbers: _sum_over(kept, numbers)))
        inner, answer = coins.call(self.on_sample.step, state.inner, message)
        return None if inner is None else UnitCoins(kept, inner), answer


def _sum_over(kept: tuple[bool, ...], numbers: tuple[int, ...]) -> int:
    return sum(number for number, here in zip(numbers, kept, strict=True) if here)
