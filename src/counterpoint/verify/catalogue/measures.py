"""Each measure in each rule that takes it, for the catalogue: the cells of the table in "theory, Every measure in every
rule" that say yes.

What is launched is a randomized response, restated in the measure: its loss is converted, which every conversion of
pure and approximate losses allows. The budgets have room for two launches. For pure, approximate and f-DP losses and
for Renyi losses of one order, randomized response is as bad as the measure allows, so that these bounds are reached.
For zCDP and tCDP it nearly is if its epsilon is small, as it is in theirs.

>>> len([instance for instance in MEASURES if instance.name.startswith("filter")])
8
"""

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from counterpoint.coins.coins import Coins
from counterpoint.composition.filters import Filter
from counterpoint.composition.odometers import Odometer
from counterpoint.composition.parallel import Parallel
from counterpoint.composition.restated import Converted
from counterpoint.composition.rule import Rule
from counterpoint.composition.slots import Slots
from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter
from counterpoint.measures import ApproxDP, ApproxzCDP, GaussianDP, PureDP, RenyiDP, TradeOff, tCDP, zCDP
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.composite import Composite, Own
from counterpoint.mechanisms.composite_parts import Context, Part
from counterpoint.mechanisms.concurrent import Concurrent, Launch
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.mechanisms.randomized_response import RandomizedResponse
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.messages import Ask, Message, ToChild
from counterpoint.privacy.relations import Pair, Relation, every_step, k_sparse, static_parts
from counterpoint.verify.catalogue.instances import Instance, session_game, stopped
from counterpoint.verify.message_pairs import MessagePairs, asks, message_pairs

_TWENTIETH, _TWO = Fraction(1, 20), Fraction(2)


class Restated(Mechanism, Value, frozen=True):
    """A mechanism that claims another loss than its own, which its own implies.

    >>> Restated(RandomizedResponse(1), zCDP("0.5")).claim.loss
    zCDP(0.5)
    """

    mechanism: Mechanism
    loss: Loss

    def __post_init__(self) -> None:
        """Refuse a loss that does not follow."""
        if not self.mechanism.claim.loss.implies(self.loss):
            raise InvalidParameter(f"{self.mechanism.claim.loss!r} is not proven to imply {self.loss!r}")

    @property
    def claim(self) -> Claim:
        """The loss that is stated, for the mechanism's own reasons."""
        own = self.mechanism.claim
        why = f"implied by {own.loss!r}"
        return claim(self.loss, own.relation, why, own.certificate, interaction=own.interaction)

    def accepts(self, message: object) -> bool:
        """What the mechanism accepts."""
        return self.mechanism.accepts(message)

    def start(self, coins: Coins) -> State:
        """As the mechanism starts."""
        return self.mechanism.start(coins)

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """As the mechanism steps."""
        return self.mechanism.step(state, message, coins)


class Idle(Own, Value, frozen=True):
    """A composite that remembers nothing."""


class AskedTwice(Composite, Value, frozen=True):
    """A composite with one part of two slots: an ask goes to a mechanism in each, and that is all."""

    launched: Mechanism

    @property
    def structure(self) -> tuple[Part, ...]:
        """The part."""
        return (Part("both", self.launched.claim.loss, every_step(), slots=2),)

    @property
    def relation(self) -> Relation:
        """As that of the mechanism."""
        return every_step()

    def accepts(self, message: object) -> bool:
        """What the mechanism accepts."""
        return self.launched.accepts(message)

    def begin(self, context: Context) -> Own:
        """Launch both."""
        for at in range(2):
            context.launch("both", self.launched, at=at)
        return Idle()

    def react(self, context: Context, own: Own, message: Message) -> tuple[Own | None, Answer]:
        """Ask both, and halt."""
        assert isinstance(message, Ask) and message.private is not None
        return None, tuple(context.ask("both", message.private, at=at) for at in range(2))


@message_pairs.register
def _(mechanism: Restated) -> MessagePairs:
    return message_pairs(mechanism.mechanism)


@message_pairs.register
def _(mechanism: AskedTwice) -> MessagePairs:
    return MessagePairs(asks([(0, 1), (1, 0)]), 1)


class _Measure(NamedTuple):
    """A measure: the loss of a randomized response in it, a budget for two of these, its odometer, and where exact
    losses are compared with it.
    """

    one: Loss
    two: Loss
    odometer: Odometer | None
    delta: Fraction = Fraction(1, 10**6)
    alpha: Fraction | None = None
    epsilon: str = "0.5"

    @property
    def launched(self) -> Mechanism:
        """A randomized response that claims `one`."""
        return Restated(RandomizedResponse(self.epsilon, self.one.stated_delta or 0), self.one)

    def instance(
        self, name: str, mechanism: Mechanism, pairs: tuple[Pair, ...] | None = None, rounds: int | None = None
    ) -> Instance:
        """An instance of this measure."""
        named = f"{name} {type(self.one).__name__}"
        return Instance(named, mechanism, pairs, rounds, delta=self.delta, alpha=self.alpha, group="measures")


_TAU = PureDP("0.5").as_renyi(2).epsilon
_MEASURES = (
    _Measure(PureDP("0.5"), PureDP(1), Odometer(PureDP)),
    _Measure(ApproxDP("0.5", "0.01"), ApproxDP(1, _TWENTIETH), Odometer.approximate(_TWENTIETH), _TWENTIETH),
    _Measure(zCDP("0.005"), zCDP("0.01"), Odometer(zCDP), alpha=_TWO, epsilon="0.1"),
    _Measure(ApproxzCDP("0.125", "0.01"), ApproxzCDP("0.25", "0.02"), Odometer(ApproxzCDP), _TWENTIETH),
    _Measure(tCDP("0.005", 16), tCDP("0.01", 16), Odometer.tcdp(16), alpha=_TWO, epsilon="0.1"),
    _Measure(RenyiDP(2, _TAU), RenyiDP(2, 2 * _TAU), Odometer.renyi(2), alpha=_TWO),
    _Measure(PureDP("0.5").as_gaussian(), GaussianDP("0.89"), Odometer(GaussianDP), _TWENTIETH),
    _Measure(TradeOff.of_approx("0.5", 0), TradeOff.of_approx("1.001", 0), None),
)


def _launch(child: Mechanism) -> Pair:
    return Ask(Launch(child)), Ask(Launch(child))


def _inside(child: Mechanism, launched: Mechanism) -> tuple[Pair, ...]:
    """The launch of a composition, of a mechanism inside it, and a pair of bits for that one."""
    within = Ask(ToChild(0, Launch(launched)))
    return (
        _launch(child),
        (within, within),
        *asks([(0, 1)], ToChild(0, ToChild(0))),
        *asks([(0, 1)], ToChild(0, ToChild(1))),
    )


def _in_filter(measure: _Measure) -> Instance:
    return measure.instance("filter", session_game(Filter(measure.two), [measure.launched], 3))


def _in_odometer(measure: _Measure) -> Instance:
    assert measure.odometer is not None
    return measure.instance("odometer", session_game(stopped(measure.odometer, measure.two), [measure.launched], 3))


def _in_slots(measure: _Measure) -> Instance:
    return measure.instance("slots", session_game(Slots([measure.one] * 2), [measure.launched], 3))


def _in_static_parts(measure: _Measure) -> Instance:
    relation = static_parts(1, every_step())
    parts = Concurrent(Parallel(1, each=measure.one, first_pair=True), relation)
    pairs = (_launch(measure.launched), *asks([(0, 0), (0, 1)], ToChild(0)), *asks([(0, 0)], ToChild(1)))
    return measure.instance("static", parts, pairs, 4)._replace(relation=relation.reaching(0))


def _in_continual_parts(measure: _Measure) -> Instance:
    total = None if isinstance(measure.one, PureDP) else Fraction(199, 10**4)  # of two parts with 0.01 each
    parts = Concurrent(Parallel(1, each=measure.one, delta_total=total), k_sparse(1, every_step()))
    pairs = (_launch(measure.launched), *(pair for at in range(2) for pair in asks([(0, 0), (0, 1)], ToChild(at))))
    return measure.instance("continual", parts, pairs, 4)


def _delegated(measure: _Measure) -> Instance:
    outer, inner = _rules_of_a_delegation(measure)
    pairs = _inside(Concurrent(inner, every_step()), measure.launched)
    return measure.instance("delegate", Concurrent(outer, every_step()), pairs, 5)


def _rules_of_a_delegation(measure: _Measure) -> tuple[Rule, Rule]:
    if isinstance(measure.two, ApproxzCDP):
        return Filter(ApproxDP("1.42", _TWENTIETH), by="basic"), Converted(Filter(measure.two), _TWENTIETH)
    return _filter(measure.two), _filter(measure.two)


def _filter(budget: Loss) -> Filter:
    """The filter that admits launches until their sum is the whole budget."""
    return Filter(budget, by="basic") if isinstance(budget, ApproxDP) else Filter(budget)


def _in_partition(measure: _Measure) -> Instance:
    relation = static_parts(1, every_step())
    parts = Concurrent(Parallel(1, each=measure.one, first_pair=True), relation)
    pairs = _inside(Concurrent(_filter(measure.one), every_step()), measure.launched)
    return measure.instance("partition", parts, pairs, 4)._replace(relation=relation.reaching(0))


def _in_composite(measure: _Measure) -> Instance:
    return measure.instance("composite", AskedTwice(measure.launched))


_NOT_ADDED = (ApproxzCDP,)
_CELLS: tuple[tuple[Callable[[_Measure], Instance], tuple[type[Loss], ...]], ...] = (
    (_in_filter, ()),
    (_in_odometer, (TradeOff,)),
    (_in_slots, _NOT_ADDED),
    (_in_static_parts, _NOT_ADDED),
    (_in_continual_parts, (zCDP, tCDP, RenyiDP, ApproxzCDP, GaussianDP, TradeOff)),
    (_delegated, ()),
    (_in_partition, _NOT_ADDED),
    (_in_composite, _NOT_ADDED),
)
"""Each column of the table, and the measures that it refuses."""

MEASURES: tuple[Instance, ...] = tuple(
    column(measure) for column, refused in _CELLS for measure in _MEASURES if not isinstance(measure.one, refused)
)
"""Every measure in every rule that takes it."""
