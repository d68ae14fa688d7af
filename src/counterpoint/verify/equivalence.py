"""Whether two mechanisms are the same to every adversary: `equivalent`.

A secret bit chooses one of two mechanisms, and an adversary that may send these messages, adaptively, tries to tell
which. Its best advantage is the delta of that game at epsilon 0: the total variation between its views of the one and
of the other, which is 0 exactly if no adversary's view differs (Haney et al. 2023, Def 1.6: a view is all that an
adversary sees). So a proof that replaces one mechanism by another can be checked on small instances: a filter by the
composition it stands for, a postprocessed mechanism by the one that it simulates.

>>> from counterpoint import Laplace, RandomizedResponse
>>> from counterpoint.mechanisms import Ask
>>> equivalent(RandomizedResponse(1), RandomizedResponse(1), [Ask(private=0), Ask(private=1)], rounds=1)
Verdict.HOLDS
>>> equivalent(RandomizedResponse(1), RandomizedResponse("1.01"), [Ask(private=0)], rounds=1)
Verdict.REFUTED
"""

from collections.abc import Iterable
from fractions import Fraction

from counterpoint.coins.coins import Coins
from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter
from counterpoint.measures import PureDP, Unbounded
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State, stepped
from counterpoint.numbers import Number
from counterpoint.numbers.exact import whole
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.messages import Ask, Message
from counterpoint.privacy.relations import Pair, every_step
from counterpoint.privacy.secret import reveal
from counterpoint.verify.exact_loss import ExactLoss, exact
from counterpoint.verify.verdict import Verdict

_CHOOSE = "choose"
"""The public part of the ask whose private bit chooses the mechanism."""
_NOT_YET = "nothing is chosen yet"


class NoneChosen(State, Value, frozen=True):
    """Before the bit."""


class OneChosen(State, Value, frozen=True):
    """Which of the two it is, and its state."""

    mechanism: Mechanism
    state: State


class OneOfTwo(Mechanism, Value, frozen=True):
    """One of two mechanisms, by a secret bit: what an adversary must not be able to tell apart."""

    left: Mechanism
    right: Mechanism

    @property
    def claim(self) -> Claim:
        """None: how far they are apart is the question."""
        return claim(Unbounded(), every_step(), "no promise: this mechanism serves to compare two others")

    def accepts(self, message: object) -> bool:
        """The bit, and what both mechanisms accept: a refusal by one alone would tell them apart."""
        if isinstance(message, Ask) and message.public == _CHOOSE:
            return True
        return self.left.accepts(message) and self.right.accepts(message)

    def start(self, coins: Coins) -> State:
        """Neither yet."""
        return NoneChosen()

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """Choose and start; afterwards, whatever the chosen one answers."""
        if isinstance(state, NoneChosen):
            if not (isinstance(message, Ask) and message.public == _CHOOSE and message.private is not None):
                return state, _NOT_YET
            mechanism = self.right if reveal(message.private) else self.left
            return OneChosen(mechanism, coins.call(mechanism.start)), None
        assert isinstance(state, OneChosen)
        if isinstance(message, Ask) and message.public == _CHOOSE:
            return state, None
        after, answer = stepped(state.mechanism, state.state, message, coins)
        return None if after is None else OneChosen(state.mechanism, after), answer


def distinguisher(
    left: Mechanism,
    right: Mechanism,
    messages: Iterable[Message],
    rounds: int,
    *,
    cut: Number = Fraction(1, 10**12),
) -> ExactLoss:
    """The exact loss of the bit that chooses between two mechanisms: `delta_at(0)` is their total variation.

    >>> from counterpoint import RandomizedResponse
    >>> apart = distinguisher(RandomizedResponse(1), RandomizedResponse(0), [Ask(private=0)], rounds=1)
    >>> round(apart.delta_at(0), 6)  # e/(1+e) - 1/2
    0.231059
    """
    sent = tuple(messages)
    if not all(isinstance(mechanism, Mechanism) for mechanism in (left, right)) or not sent:
        raise InvalidParameter("give two mechanisms, and one or more messages that both accept")
    game = OneOfTwo(left, right)
    for message in sent:
        if left.accepts(message) != right.accepts(message):
            raise InvalidParameter("one of the mechanisms accepts a message that the other does not: they differ")
    choose: Pair = Ask(_CHOOSE, 0), Ask(_CHOOSE, 1)
    pairs = (choose, *((message, message) for message in sent))
    return exact(game, every_step(), pairs, whole(rounds, 1, "rounds") + 1, cut=cut)


def equivalent(
    left: Mechanism,
    right: Mechanism,
    messages: Iterable[Message],
    rounds: int,
    *,
    allowance: Number = Fraction(1, 10**9),
) -> Verdict:
    """Whether no adversary that sends these messages, in `rounds` rounds, can tell two mechanisms apart.

    `allowance` is the total variation that counts as none, for rounding and truncated tails.
    """
    return distinguisher(left, right, messages, rounds).judge(PureDP(0), allowance=allowance)
