"""An instance that is small enough to enumerate: a mechanism, or a session as a game, with its claimed and exact loss.

The two are compared as one number: the epsilon at a delta that is larger than the truncated tails, and small enough to
be near the claim. If the claim is about delta alone, it is the delta at an epsilon; if it is about Renyi divergences
and no tail was truncated, the divergence of an order. A claim that covers many behaviours (a filter, a composite) need
not be reached; the tightness says how near the exact loss comes.

>>> from counterpoint import RandomizedResponse
>>> measured = measure(Instance("randomized response", RandomizedResponse(1)))
>>> measured.verdict, round(measured.tightness, 3), measured.at
(Verdict.HOLDS, 1.0, 'delta 1e-6')
"""

from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from counterpoint.coins.coins import Coins
from counterpoint.composition.accumulator import Account
from counterpoint.composition.odometers import Odometer
from counterpoint.composition.rule import Rule
from counterpoint.encoding import Value
from counterpoint.errors import BudgetExceeded, InvalidParameter, NotCovered, RelationMismatch
from counterpoint.measures.conversions import response_of
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State, accepted
from counterpoint.mechanisms.randomized_response import RandomizedResponse
from counterpoint.numbers.exact import float_up, format_number
from counterpoint.numbers.parameters import PositiveInt
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.messages import Ask, Message
from counterpoint.privacy.relations import Pair, Relation, every_step
from counterpoint.verify.exact_loss import ExactLoss, exact
from counterpoint.verify.message_pairs import MessagePairs, asks, message_pairs
from counterpoint.verify.verdict import Verdict


class Instance(NamedTuple):
    """A mechanism with its parameters, and the messages of the adversary (None: the default of the mechanism).

    With an `epsilon`, deltas are compared there; with an `alpha`, Renyi divergences of that order; else epsilons at
    `delta`. `relation` restricts the messages further. `group` is its heading in the table.
    """

    name: str
    mechanism: Mechanism
    pairs: tuple[Pair, ...] | None = None
    rounds: int | None = None
    cut: Fraction = Fraction(1, 10**12)
    delta: Fraction = Fraction(1, 10**6)
    epsilon: Fraction | None = None
    alpha: Fraction | None = None
    relation: Relation | None = None
    group: str = "mechanisms"

    def exactly(self) -> ExactLoss:
        """Its exact loss."""
        return exact(self.mechanism, self.relation, messages=self.pairs, rounds=self.rounds, cut=self.cut)


class Measured(NamedTuple):
    """The claim of an instance, and bounds on its exact loss, in the measure in which they are compared."""

    instance: Instance
    loss: ExactLoss
    claim: Loss
    claimed: float
    lower: float
    upper: float

    @property
    def at(self) -> str:
        """The point at which the two are compared."""
        at = self.instance
        if at.alpha is not None:
            return f"order {format_number(at.alpha)}"
        return f"delta {format_number(at.delta)}" if at.epsilon is None else f"epsilon {format_number(at.epsilon)}"

    @property
    def tightness(self) -> float:
        """The exact loss divided by the claimed one: 1 is tight, above 1 would be a false claim."""
        return self.lower / self.claimed if self.claimed else 1.0 + self.lower

    @property
    def verdict(self) -> Verdict:
        """The verdict on the claim, with an allowance of a hundredth of the delta at which the two are compared.

        The truncated mass must fit into that allowance; if it does not, the verdict is undecided.
        """
        return self.loss.judge(self.claim, allowance=self.instance.delta / 100)


def measure(instance: Instance) -> Measured:
    """Compute the exact loss of an instance beside its claim."""
    loss, claim = instance.exactly(), instance.mechanism.claim.loss
    if instance.alpha is not None:
        claimed = float_up(claim.as_renyi(instance.alpha).epsilon)
        return Measured(instance, loss, claim, claimed, *loss.renyi_bounds(instance.alpha))
    if instance.epsilon is not None:
        lower, upper = loss.bounds(instance.epsilon)
        return Measured(instance, loss, claim, claim.delta_at(instance.epsilon), float(lower), float_up(upper))
    return Measured(instance, loss, claim, claim.epsilon_at(instance.delta), *loss.epsilon_bounds(instance.delta))


REFUSED = "refused"
"""The answer to a launch that the rule does not admit."""


class Charged(State, Value, frozen=True):
    """The account of the rule."""

    account: Account


class SessionGame(Mechanism, Value, frozen=True):
    """A rule that admits one-shot mechanisms from a menu; an ask names one by its number and carries its bit.

    `launches` is the default number of launches of an adversary.
    """

    rule: Rule
    menu: tuple[Mechanism, ...]
    launches: PositiveInt

    def __post_init__(self) -> None:
        """Check that every mechanism answers once, for neighbours that may differ in every step."""
        if not self.menu or not all(isinstance(item, Mechanism) for item in self.menu):
            raise InvalidParameter(
                "the menu of a session game must have at least one loss or one-shot mechanism, such as PureDP(0.1)"
            )
        for item in self.menu:
            if item.claim.interaction != "one-shot":
                raise NotCovered(
                    f"{type(item).__name__} answers more than once; to verify interleavings, use exact(Concurrent(...))"
                )
            if not every_step().within(item.claim.relation):
                raise RelationMismatch(
                    f"{type(item).__name__} is private for neighbours in {item.claim.relation!r}, but in a session "
                    f"game they are those in {every_step()!r}; to verify it, use exact(Concurrent(rule, relation))"
                )

    @property
    def claim(self) -> Claim:
        """The rule's promise."""
        return claim(self.rule.bound(every_step()), every_step(), "the rule's", self.rule.promise(every_step()))

    def accepts(self, message: object) -> bool:
        """An ask with the number of an item, that the item accepts."""
        if not isinstance(message, Ask) or type(message.public) is not int:
            return False
        return 0 <= message.public < len(self.menu) and self.menu[message.public].accepts(_inner(message))

    def start(self, coins: Coins) -> State:
        """Nothing charged."""
        return Charged(self.rule.start())

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """Launch and ask, or refuse."""
        assert isinstance(state, Charged) and isinstance(message, Ask) and isinstance(message.public, int)
        launched = self.menu[message.public]
        try:
            account = self.rule.charge(state.account, launched.claim)
        except BudgetExceeded:
            return (None if self.rule.halts else state), REFUSED
        _, answer = coins.call(launched.step, coins.call(launched.start), accepted(launched, _inner(message)))
        return Charged(account), answer


def _inner(message: Ask) -> Ask:
    return Ask(None, message.private, message.sensitivity, message.squared)


class Stopped(Rule, Value, frozen=True):
    """An odometer that halts before its reading would exceed a threshold fixed in advance.

    The promise of an odometer is about exactly this (Haney et al. 2023, Lemma 2.19), so it can be tested.
    """

    odometer: Odometer
    threshold: Loss

    @property
    def halts(self) -> bool:
        """The view ends at the threshold."""
        return True

    def start(self) -> Account:
        """Nothing launched."""
        return self.odometer.start()

    def admit(self, account: Account, claim: Claim) -> Account:
        """Admit a launch if the reading stays within the threshold."""
        after = self.odometer.admit(account, claim)
        if not self.odometer.loss(after).within(self.threshold):
            raise BudgetExceeded(f"the odometer would read more than {self.threshold!r}", requested=claim.loss)
        return after

    def loss(self, account: Account) -> Loss:
        """The reading."""
        return self.odometer.loss(account)

    def bound(self, relation: Relation) -> Loss:
        """The threshold."""
        return self.threshold

    def promise(self, relation: Relation) -> Certificate:
        """That of every odometer."""
        return Certificate(f"{self.threshold!r} for the view that is stopped there", "Haney et al. 2023, Lemma 2.19")

    def certificate(self, account: Account) -> Certificate:
        """The odometer's own certificate."""
        return self.odometer.certificate(account)


def stopped(odometer: Odometer, threshold: Loss) -> Stopped:
    """An odometer's promise at one threshold, as a rule that halts there.

    >>> from counterpoint import Odometer, PureDP
    >>> from counterpoint.verify.exact_loss import exact
    >>> game = session_game(stopped(Odometer(PureDP), PureDP(1)), [PureDP("0.4")], launches=4)
    >>> round(exact(game).epsilon_at(0), 9)  # two launches fit, the third would read 1.2
    0.8
    """
    return Stopped(odometer, threshold)


def session_game(rule: Rule, menu: Iterable[Loss | Mechanism], launches: int) -> SessionGame:
    """The game of a rule with a menu of losses (each as its randomized response) or of one-shot mechanisms.

    The game finds the worst case of a rule over all adaptive analysts (theory, Verification by computation).

    In the game a move launches a mechanism from a menu, if the rule admits it, and asks it at once. For mechanisms that
    answer once this is no restriction: an analyst that launches first and asks later knows no more at either time.
    Randomized responses are the worst mechanisms with given parameters (Henzinger et al. 2024, Thm 12.4 reduces all
    others to them), so a menu of them finds the worst case of a filter over all analysts that choose parameters, order
    and end adaptively.

    >>> from counterpoint import ApproxDP, Filter, PureDP
    >>> from counterpoint.verify.exact_loss import exact
    >>> game = session_game(Filter(PureDP(1)), [PureDP("0.5"), PureDP("0.2")], launches=5)
    >>> 0.999999 < exact(game).epsilon_at(0) < 1.000001
    True
    """
    return SessionGame(rule, tuple(map(_item, menu)), launches)


def _item(item: Loss | Mechanism) -> Mechanism:
    if isinstance(item, Mechanism):
        return item
    if not isinstance(item, Loss):
        raise InvalidParameter(f"the menu must list losses or mechanisms, not a {type(item).__name__}")
    response = response_of(item)
    if response is None:
        raise InvalidParameter(f"{item!r} has no single worst mechanism: give PureDP, ApproxDP or a mechanism")
    return RandomizedResponse(*response)


@message_pairs.register
def _(mechanism: SessionGame) -> MessagePairs:
    pairs = [pair for number in range(len(mechanism.menu)) for pair in asks([(0, 1)], number)]
    return MessagePairs(tuple(pairs), mechanism.launches)
