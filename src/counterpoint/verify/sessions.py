"""The worst that adaptive launches can do to a rule: a session as a game, against every analyst (THEORY section 6).

In the game a move launches something from a menu, if the rule admits it, and asks it at once. Where mechanisms answer
once, nothing is lost by that: an analyst who launches first and asks later knows no more at either time. Randomized
responses are the worst mechanisms with given parameters (S4 Thm 12.4 reduces all others to them), so a menu of them
finds the worst case of a filter over all analysts who may choose parameters, order and end by what they have seen.

>>> from counterpoint import ApproxDP, Filter, PureDP
>>> from counterpoint.verify.exact_loss import exact
>>> game = session_game(Filter(PureDP(1)), [PureDP("0.5"), PureDP("0.2")], launches=5)
>>> 0.999999 < exact(game).epsilon_at(0) < 1.000001
True
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec.structs import force_setattr

from counterpoint.composition.conversions import epsilon_and_delta
from counterpoint.composition.rule import Account, Rule
from counterpoint.encoding import Value
from counterpoint.errors import BudgetExceeded, InvalidParameter, NotCovered
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State, accepted
from counterpoint.mechanisms.randomized_response import RandomizedResponse
from counterpoint.numbers.exact import whole
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.loss import Loss
from counterpoint.privacy.messages import Ask, Message
from counterpoint.privacy.relations import every_step
from counterpoint.randomness.coins import Coins
from counterpoint.verify.menus import Menu, asks, menu

REFUSED = "refused"
"""What the game answers to a launch that the rule does not admit."""


class Charged(State, Value, frozen=True):
    """What the rule has charged."""

    account: Account


class SessionGame(Mechanism, Value, frozen=True):
    """A rule that admits one-shot mechanisms from a menu; an ask names one by its number and brings its bit.

    `launches` is how many of them an adversary is given when nobody says otherwise.
    """

    rule: Rule
    menu: tuple[Mechanism, ...]
    launches: int

    if TYPE_CHECKING:

        def __init__(self, rule: Rule, menu: tuple[Mechanism, ...], launches: int) -> None: ...

    def __post_init__(self) -> None:
        """Only mechanisms that answer once."""
        force_setattr(self, "launches", whole(self.launches, 1, "launches"))
        if not self.menu or not all(isinstance(item, Mechanism) for item in self.menu):
            raise InvalidParameter("the menu of a session game holds losses or one-shot mechanisms, at least one")
        for item in self.menu:
            if item.claim.interaction != "one-shot":
                raise NotCovered(
                    f"{type(item).__name__} answers more than once; to verify interleavings, use exact(Concurrent(...))"
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
            account = self.rule.admit(state.account, launched.claim)
        except BudgetExceeded:
            return (None if self.rule.halts else state), REFUSED
        _, answer = coins.call(launched.step, coins.call(launched.start), accepted(launched, _inner(message)))
        return Charged(account), answer


def _inner(message: Ask) -> Ask:
    return Ask(None, message.private, message.sensitivity, message.squared)


def session_game(rule: Rule, menu: Iterable[Loss | Mechanism], launches: int) -> SessionGame:
    """The game of a rule with a menu of losses (each as its randomized response) or of one-shot mechanisms."""
    return SessionGame(rule, tuple(map(_item, menu)), launches)


def _item(item: Loss | Mechanism) -> Mechanism:
    if isinstance(item, Mechanism):
        return item
    if not isinstance(item, Loss):
        raise InvalidParameter(f"a menu holds losses or mechanisms, not a {type(item).__name__}")
    epsilon, delta = epsilon_and_delta(item)
    if epsilon is None:
        raise InvalidParameter(f"{item!r} has no one worst mechanism: give PureDP, ApproxDP or a mechanism")
    return RandomizedResponse(epsilon, delta)


@menu.register
def _(mechanism: SessionGame) -> Menu:
    pairs = [pair for number in range(len(mechanism.menu)) for pair in asks([(0, 1)], number)]
    return Menu(tuple(pairs), mechanism.launches)
