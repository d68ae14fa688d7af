"""What a composite's program can do in one step: launch sub-mechanisms, ask them, send them updates.

Every launch is checked against the part it goes to: its claim must imply the part's loss (Henzinger et al. 2024, Obs
8.9) and speak of at least the part's neighbours, and there must be room. Whatever must be public (names, places,
parameters, public parts, sensitivities) is encoded in the open on its way, so that a `Secret` among it raises
`SecretLeak` right there.

>>> from counterpoint import Laplace, PureDP, SeededCoins
>>> from counterpoint.privacy.relations import every_step
>>> context = Context([Part("value", PureDP(1), every_step())], (), SeededCoins(1))
>>> context.launch("value", Laplace(1))
>>> isinstance(context.ask("value", Secret(41)), int)
True
>>> context.ask("value", 1, public=Secret(41))
Traceback (most recent call last):
...
counterpoint.errors.SecretLeak: a secret would have been written in the open
"""

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from counterpoint.composition.rules.rule import Account
from counterpoint.encoding import Plain, Value, encode
from counterpoint.errors import BudgetExceeded, InvalidParameter, InvalidRequest, RelationMismatch
from counterpoint.mechanisms.composed.structure import Part, by_name
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State, ready, stepped
from counterpoint.privacy.claims import require_finite
from counterpoint.privacy.messages import Ask, Message, Update
from counterpoint.privacy.secret import Raw, Secret
from counterpoint.randomness.coins import Coins


class Placed(State, Value, frozen=True):
    """A sub-mechanism in its place in a part, and its state; None once it has halted."""

    part: str
    at: int
    mechanism: Mechanism
    state: State | None


class Sent(NamedTuple):
    """One thing that a composite did to a place in a part: launch a mechanism, or send a message."""

    part: str
    at: int
    what: Mechanism | Message


Place: TypeAlias = tuple[str, int]
Accounts: TypeAlias = tuple[tuple[str, Account], ...]
"""For each part that charges every created delta, what has been created there."""


class Context:
    """What a composite's program may do in one step: launch sub-mechanisms and send them messages.

    A part may hold several sub-mechanisms, each at a place `at`. In a part with slots a place is taken once and for
    ever; in one that is sparse a launch where one is replaces it, and the old one is forgotten. Names, places, public
    parts and sensitivities must be public: a `Secret` there is a leak.
    """

    __slots__ = ("_accounts", "_answered", "_children", "_coins", "_parts", "_sent", "_unfinished")

    def __init__(
        self, structure: Iterable[Part], children: tuple[Placed, ...], coins: Coins, accounts: Accounts = ()
    ) -> None:
        self._parts = by_name(structure)
        self._children: dict[Place, Placed] = {(child.part, child.at): child for child in children}
        self._accounts = dict(accounts)
        self._coins = coins
        self._sent: list[Sent] = []
        self._answered = False
        self._unfinished = 0

    @property
    def answered(self) -> bool:
        """Whether a sub-mechanism has answered in this step, so that it cannot be made again."""
        return self._answered

    @property
    def broken(self) -> bool:
        """Whether a sub-mechanism's code has failed in this step, whatever the program made of the error."""
        return self._unfinished > 0

    @property
    def sent(self) -> tuple[Sent, ...]:
        """What has been done so far, in order."""
        return tuple(self._sent)

    def launch(self, name: str, mechanism: Mechanism, at: int = 0) -> None:
        """Launch a mechanism in a part whose loss and relation its claim covers."""
        encode((name, mechanism, at))  # raises SecretLeak where a parameter is secret
        if not isinstance(mechanism, Mechanism):
            raise InvalidParameter(f"a part takes mechanisms, such as Laplace(1), not a {type(mechanism).__name__}")
        if type(at) is not int:
            raise InvalidParameter(f"a place in a part is a whole number, not a {type(at).__name__}")
        part = self._parts.get(name)
        if part is None:
            raise InvalidParameter(f"no part {name!r} is declared; there are {', '.join(map(repr, self._parts))}")
        claim = mechanism.claim
        if not claim.loss.implies(part.loss):
            raise BudgetExceeded(
                f"{type(mechanism).__name__} is {claim.loss!r}, which does not fit into part {name!r} of {part.loss!r}",
                requested=claim.loss,
                remaining=part.loss,
                would_fit=part.loss,
            )
        if not part.relation.within(claim.relation):
            raise RelationMismatch(
                f"{type(mechanism).__name__} is private for neighbours in {claim.relation!r}, but in part {name!r} "
                f"they are those in {part.relation!r}"
            )
        require_finite(claim, part.loss)
        if not part.has_place(at) or (part.sparse is None and (name, at) in self._children):
            raise BudgetExceeded(
                f"part {name!r} has no free slot {at}: it takes {part.slots} launches, each once; declare more slots, "
                "or sparse=k where neighbours reach at most k of them"
            )
        if part.sparse is not None and part.rule.counts_every_delta:
            # a launch that is replaced has cost its delta all the same
            self._accounts[name] = part.rule.admit(self._accounts.get(name, part.rule.start()), claim)
        self._sent.append(Sent(name, at, mechanism))
        self._children[name, at] = Placed(name, at, mechanism, self._coins.call(mechanism.start))

    def ask(
        self,
        name: str,
        private: Secret | Raw | None = None,
        public: Plain = None,
        sensitivity: int = 1,
        *,
        squared: int | None = None,
        each: int | None = None,
        one_way: bool = False,
        at: int = 0,
    ) -> Answer:
        """Ask a sub-mechanism; its answer is public. `InvalidRequest` if it is not accepted, `Halted` if it has.

        How far neighbours move the value is declared as in an `Ask`: the part's relation must allow no more.
        """
        encode((public, sensitivity, squared, each, one_way))
        return self._send(name, at, Ask(public, private, sensitivity, squared, each=each, one_way=one_way))

    def update(self, name: str, private: Secret | Raw, at: int = 0) -> None:
        """Send an update to a sub-mechanism."""
        self._send(name, at, Update(private))

    def halted(self, name: str, at: int = 0) -> bool:
        """Whether the sub-mechanism there has given its last answer."""
        return self._child(name, at).state is None

    def _child(self, name: str, at: int) -> Placed:
        encode((name, at))
        child = self._children.get((name, at))
        if child is None:
            raise InvalidRequest(f"nothing has been launched in part {name!r} at {at}")
        return child

    def _send(self, name: str, at: int, message: Message) -> Answer:
        child = self._child(name, at)
        before, accepted = ready(child.mechanism, child.state, message)
        self._sent.append(Sent(name, at, accepted))
        self._answered = self._answered or isinstance(accepted, Ask)
        self._unfinished += 1
        after, answer = stepped(child.mechanism, before, accepted, self._coins)
        self._unfinished -= 1
        self._children[name, at] = Placed(name, at, child.mechanism, after)
        return answer


def accounts(context: Context) -> Accounts:
    """What every created mechanism has added to the deltas, in the parts that charge them all."""
    return tuple(context._accounts.items())


def placed(context: Context) -> tuple[Placed, ...]:
    """The sub-mechanisms as they are now, for the state of a composite; no face of `Context` shows them to its program.

    Their noise stands in their states in the open: to answer with the threshold of a sparse vector would be a leak that
    comparing two worlds on equal sub-answers does not find.
    """
    return tuple(context._children.values())
