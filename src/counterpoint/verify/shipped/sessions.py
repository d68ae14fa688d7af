"""The worst case of a rule over all adaptive analysts: a session as a game.

See theory, Verification by computation.

In the game a move launches a mechanism from a menu, if the rule admits it, and asks it at once. For mechanisms that
answer once this is no restriction: an analyst that launches first and asks later knows no more at either time.
Randomized responses are the worst mechanisms with given parameters (Henzinger et al. 2024, Thm 12.4 reduces all others
to them), so a menu of them finds the worst case of a filter over all analysts that choose parameters, order and end
adaptively.

>>> from counterpoint import ApproxDP, Filter, PureDP
>>> from counterpoint.verify.exact_loss import exact
>>> game = session_game(Filter(PureDP(1)), [PureDP("0.5"), PureDP("0.2")], launches=5)
>>> 0.999999 < exact(game).epsilon_at(0) < 1.000001
True
"""

from collections.abc import Iterable

from counterpoint.composition.rules.odometers import Odometer
from counterpoint.composition.rules.rule import Account, Rule
from counterpoint.encoding import Value
from counterpoint.errors import BudgetExceeded, InvalidParameter, NotCovered, RelationMismatch
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State, accepted
from counterpoint.mechanisms.randomized_response import RandomizedResponse
from counterpoint.numbers.parameters import PositiveInt
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.loss import Loss
from counterpoint.privacy.messages import Ask, Message
from counterpoint.privacy.relations import Relation, every_step
from counterpoint.randomness.coins import Coins
from counterpoint.verify.games.menus import Menu, asks, menu

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
    """The game of a rule with a menu of losses (each as its randomized response) or of one-shot mechanisms."""
    return SessionGame(rule, tuple(map(_item, menu)), launches)


def _item(item: Loss | Mechanism) -> Mechanism:
    if isinstance(item, Mechanism):
        return item
    if not isinstance(item, Loss):
        raise InvalidParameter(f"the menu must list losses or mechanisms, not a {type(item).__name__}")
    response = item.added_response()
    if response is None:
        raise InvalidParameter(f"{item!r} has no single worst mechanism: give PureDP, ApproxDP or a mechanism")
    return RandomizedResponse(*response)


@menu.register
def _(mechanism: SessionGame) -> Menu:
    pairs = [pair for number in range(len(mechanism.menu)) for pair in asks([(0, 1)], number)]
    return Menu(tuple(pairs), mechanism.launches)
