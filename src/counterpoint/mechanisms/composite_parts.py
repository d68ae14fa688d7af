"""The parts that a composite declares: what is launched in each, what they cost together, and the program's `Context`.

A part states the loss of what is launched in it and for which neighbours (Henzinger et al. 2024, Def 4.1: a creation
query). What the parts cost together is concurrent composition with parameters fixed in advance (Henzinger et al. 2024,
Thm 4.12, Cor 13.4; in f-DP Cor 14.7, where what is launched must have finite communication or no memory), and inside a
part either the same, slot by slot, or k-sparse parallel composition (Henzinger et al. 2024, Cor 5.5): all of it
computed by `composition/`, so that the author of a composite proves nothing.

>>> from counterpoint.privacy.relations import every_step
>>> parts = Part("watch", PureDP(1), every_step()), Part("check", PureDP(0.5), every_step(), sparse=2)
>>> composed([part.cost for part in parts])
PureDP(2)
"""

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from counterpoint.coins.coins import Coins
from counterpoint.composition.accumulator import Account
from counterpoint.composition.fixed.compose import optimal_of, summed
from counterpoint.composition.fixed.totals import Composed
from counterpoint.composition.parallel import Parallel, times, total
from counterpoint.composition.slots import require_draws
from counterpoint.encoding import Plain, Tagged, Value, encode
from counterpoint.errors import BudgetExceeded, InvalidParameter, InvalidRequest, RelationMismatch
from counterpoint.measures import ApproxDP, PureDP, SampledGaussianDP
from counterpoint.measures.conversions import response_of
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State, ready, stepped
from counterpoint.numbers import Number, format_number
from counterpoint.numbers.exact import probability
from counterpoint.numbers.parameters import PositiveInt, ProbabilityOrNone, default
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.claims import require_finite
from counterpoint.privacy.messages import Ask, Message, Update
from counterpoint.privacy.relations import Relation, Sparse
from counterpoint.privacy.secret import Raw, Secret


class Part(Tagged, Value, frozen=True):
    """A declared part: what is launched in it stays within `loss` for sub-inputs that are neighbours in `relation`.

    It has `slots` slots, one by default, and each slot takes one launch, once: all of them are paid for. With
    `sparse=k` any number of mechanisms are launched in it, of which neighbouring inputs reach at most k: that costs k
    of them, as in `Parallel`. Approximate losses need `delta_total`, to which every launch adds its delta (Henzinger et
    al. 2024, Thm 5.4), unless `first_pair` declares that the first message to a launch settles whether it is reached
    (Henzinger et al. 2024, Thm 5.14), which `verify.two_worlds` checks.

    >>> from counterpoint.privacy.relations import every_step
    >>> Part("check", PureDP(0.5), every_step(), sparse=2).cost, Part("three", PureDP(0.5), every_step(), slots=3).cost
    (PureDP(1), PureDP(1.5))
    >>> from counterpoint import ApproxDP
    >>> Part("check", ApproxDP(0.5, 1e-8), every_step(), sparse=2, delta_total=1e-6).cost
    ApproxDP(1, 1e-6)
    """

    name: str
    loss: Loss
    relation: Relation
    sparse: PositiveInt | None = None
    slots: PositiveInt = 1
    delta_total: ProbabilityOrNone = default(None)
    first_pair: bool = False

    def __post_init__(self) -> None:
        """Check what is declared."""
        if not all(map(isinstance, (self.name, self.loss, self.relation), (str, Loss, Relation))):
            raise InvalidParameter(
                "a part takes a name (a text), the Loss that it stays within and the Relation of its inputs"
            )
        if self.sparse is not None and self.slots != 1:
            raise InvalidParameter("a part has slots or is sparse, not both: sparse=k takes any number of launches")
        if self.sparse is None and (self.first_pair or self.delta_total is not None):
            raise InvalidParameter("delta_total and first_pair are for a part with sparse=k")

    def has_place(self, at: int) -> bool:
        """Whether something may be launched at this number: any in a sparse part, else one of the slots."""
        return self.sparse is not None or 0 <= at < self.slots

    @property
    def cost(self) -> Loss:
        """What the whole part costs; `NotCovered` where no theorem says so."""
        if self.sparse is None:
            return times(self.loss, self.slots)
        return total(self.rule.charges(self._reached))

    @property
    def losses(self) -> dict[Loss, int]:
        """The launches that it is a postprocessing of, with how many of each: its slots, or those that are reached."""
        if self.sparse is None:
            return {self.loss: self.slots}
        return {charge.loss: charge.times for charge in self.rule.charges(self._reached)}

    @property
    def _reached(self) -> Sparse:
        assert self.sparse is not None
        return Sparse(self.sparse, self.relation, self.first_pair)

    @property
    def rule(self) -> Parallel:
        """What decides about launches in a sparse part."""
        assert self.sparse is not None
        symmetric = self.relation.symmetric
        return Parallel(self.sparse, self.loss, self.delta_total, self.first_pair, symmetric)

    @property
    def certificate(self) -> Certificate:
        """Why it costs that, given what is checked at each launch."""
        where = f"{self.loss!r} for neighbours {self.relation.in_words}"
        each = (
            "its claim implies the part's loss on a family that contains the part's (Henzinger et al. 2024, "
            "Obs 8.9), checked at launch"
        )
        if self.sparse is None and self.slots == 1:
            return Certificate(f"part {self.name!r}, launched once, is {where}", each)
        launched = Certificate(f"whatever is launched in part {self.name!r} is {where}", each)
        if self.sparse is None:
            statement = f"part {self.name!r} is {self.cost!r}: {self.slots} launches, each in a slot of its own"
            theorem = "Cor 14.7" if self.loss.needs_finite_communication else "Thm 4.12, Cor 13.4"
            return Certificate(statement, f"losses fixed in advance (Henzinger et al. 2024, {theorem})", (launched,))
        statement = f"part {self.name!r} is {self.cost!r}: at most {self.sparse} of its launches are reached"
        return Certificate(statement, self.rule.theorem, (launched,))


def composed(losses: list[Loss]) -> Loss:
    """What losses fixed in advance cost together, in their own measure: sums, and for f-DP tensor products.

    >>> from counterpoint import ApproxDP, GaussianDP, zCDP
    >>> composed([PureDP(0.1), PureDP(0.2)]), composed([PureDP(1), ApproxDP(1, 1e-6)]), composed([zCDP(1), zCDP(2)])
    (PureDP(0.3), ApproxDP(2, 1e-6), zCDP(3))
    >>> composed([GaussianDP(3), GaussianDP(4)])
    GaussianDP(5)
    """
    return summed(Counter(losses)) if losses else PureDP(0)


def fixed_in_advance(parts: Iterable[Part]) -> Composed:
    """What the launches of all parts cost together: their optimal composition, as a curve."""
    counted: Counter[Loss] = Counter()
    for part in parts:
        counted.update(part.losses)
    return _optimal(tuple(counted.items()))


@lru_cache(maxsize=256)
def _optimal(counted: tuple[tuple[Loss, int], ...]) -> Composed:
    """Remembered: every step of a composite asks for its claim."""
    return optimal_of(dict(counted))


def composed_at(parts: Iterable[Part], delta: Number) -> ApproxDP:
    """What they cost at this delta, rounded up.

    >>> from counterpoint.privacy.relations import every_step
    >>> composed_at([Part("often", PureDP(0.1), every_step(), slots=100)], 1e-6)
    ApproxDP(~4.77457, 1e-6)
    """
    return _at(fixed_in_advance(parts), probability(delta, "claimed_delta"))


@lru_cache(maxsize=256)
def _at(curve: Composed, delta: Fraction) -> ApproxDP:
    epsilon = curve._least_epsilon(delta)
    if epsilon is None:
        raise InvalidParameter(
            f"the parts expose more than claimed_delta {format_number(delta)}: name a larger one, or none for their sum"
        )
    return ApproxDP(epsilon, delta)


def are_unlike(parts: Iterable[Part]) -> bool:
    """Whether they compose by the product of their pairs alone: losses of several measures, or steps on samples."""
    kinds = {None if response_of(loss) is not None else type(loss) for part in parts for loss in part.losses}
    return len(kinds) > 1 or SampledGaussianDP in kinds


def by_name(structure: Iterable[Part]) -> dict[str, Part]:
    """The parts by their names, which must differ: of two with one name, one would not be charged."""
    parts = list(structure)
    names = {part.name: part for part in parts}
    if len(names) != len(parts):
        raise InvalidParameter("two parts have the same name: give each its own, or one of them would not be charged")
    return names


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

    Every launch is checked against the part it goes to: its claim must imply the part's loss (Henzinger et al. 2024,
    Obs 8.9) and speak of at least the part's neighbours, and there must be room. Whatever must be public (names,
    places, parameters, public parts, sensitivities) is encoded in the open on its way, so that a `Secret` among it
    raises `SecretLeak` right there.

    >>> from counterpoint import Laplace, PureDP
    >>> from counterpoint.coins import SeededCoins
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

    __slots__ = ("_accounts", "_answered", "_children", "_coins", "_parts", "_sent", "_unfinished", "_unlike")

    def __init__(
        self,
        structure: Iterable[Part],
        children: tuple[Placed, ...],
        coins: Coins,
        accounts: Accounts = (),
        claimed_at: Number | None = None,
    ) -> None:
        self._parts = by_name(structure)
        self._children: dict[Place, Placed] = {(child.part, child.at): child for child in children}
        self._unlike = claimed_at is not None and are_unlike(self._parts.values())
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
        if self._unlike:
            require_draws(claim, part.loss)
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
