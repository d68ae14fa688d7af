"""Finite mechanisms, given by tables of rational probabilities, on which theorems are tested; two bad examples.

A `FiniteMechanism` has numbered states and queries. A message is an ask whose public part is the number of a query and
whose private part is a bit; the table gives the probability of each answer and next state.

>>> from counterpoint.mechanisms import Ask
>>> from counterpoint.verify.exact_loss import exact
>>> coin, truth = (Outcome("1/2", 0), Outcome("1/2", 1)), (Outcome(1, 1),)
>>> tells = FiniteMechanism((((coin, truth),),))
>>> exact(tells, messages=query_pairs(1), rounds=1).bounds_at_growth(1)
DeltaBounds(0.5, 0.5)
"""

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from math import ceil
from typing import Annotated, Any, TypeAlias

from counterpoint.coins.coins import Coins
from counterpoint.encoding import Plain, Tagged, Value
from counterpoint.errors import InvalidParameter
from counterpoint.measures import ApproxDP, Unbounded
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.mechanism import Answer, Left, Mechanism, State, is_addressed
from counterpoint.numbers import Number
from counterpoint.numbers.exact import probability
from counterpoint.numbers.parameters import NonNegativeInt, Parameter, Probability, Read, default
from counterpoint.privacy.claims import Claim, Interaction, claim
from counterpoint.privacy.messages import Ask, Message
from counterpoint.privacy.relations import FirstMessage, Pair, Relation, Steps, every_step
from counterpoint.privacy.secret import Secret, reveal


class Outcome(Tagged, Value, frozen=True):
    """With this probability: this answer, and this state next (None: halted)."""

    probability: Annotated[Probability, "a probability"]
    answer: Plain
    state: Annotated[NonNegativeInt | None, "the state"] = None


Outcomes: TypeAlias = tuple[Outcome, ...]
OutcomeTable: TypeAlias = tuple[tuple[tuple[Outcomes, Outcomes], ...], ...]
"""For each state, for each query, the outcomes where the bit is 0 and where it is 1."""


def _law(chances: Iterable[Number], _what: str) -> tuple[Fraction, ...]:
    return tuple(probability(chance, "a probability") for chance in chances)


Law = Annotated[Parameter[tuple[Fraction, ...], tuple[Number, ...]], Read(_law)]
"""The probability of each state."""


class InState(State, Value, frozen=True):
    """The number of the state."""

    number: int


class FiniteMechanism(Mechanism, Value, frozen=True):
    """A mechanism with finitely many states, queries and answers and with rational probabilities.

    It starts in state 0, or in state i with probability start_law[i]. It claims nothing unless a loss is given. Where
    no state is reached twice it halts after boundedly many answers, and its interaction is "finite"; with a loop in the
    table it is "endless".
    """

    table: OutcomeTable
    start_law: Law = default((Fraction(1),))
    loss: Loss = Unbounded()
    relation: Relation = every_step()

    def __post_init__(self) -> None:
        """Check that every law sums to 1 and every state exists."""
        if sum(self.start_law) != 1 or len(self.start_law) > len(self.table):
            raise InvalidParameter(
                f"start_law must be at most {len(self.table)} probabilities, one for each state, that sum to 1"
            )
        for outcomes in self._rows():
            if sum(outcome.probability for outcome in outcomes) != 1:
                raise InvalidParameter("the probabilities of each state, query and bit must sum to 1")
            if any(outcome.state is not None and outcome.state >= len(self.table) for outcome in outcomes):
                raise InvalidParameter(f"there are only {len(self.table)} states, numbered from 0")

    def _rows(self) -> Iterator[Outcomes]:
        """The outcomes of each state, query and bit, or `InvalidParameter` if the table has another form."""
        rows: Iterator[Any] = (row for state in self.table for query in state for row in query)
        for outcomes in rows:
            if not (isinstance(outcomes, tuple) and all(isinstance(outcome, Outcome) for outcome in outcomes)):
                raise InvalidParameter("table[state][query][bit] must be a tuple of Outcome values")
            yield outcomes

    @property
    def claim(self) -> Claim:
        """The given loss and relation."""
        how: Interaction = "endless" if self._loops else "finite"
        return claim(self.loss, self.relation, "given with the table", interaction=how)

    @property
    def _loops(self) -> bool:
        """Whether a state can be reached again, so that the number of answers has no bound."""
        after = [{o.state for query in state for row in query for o in row if o.probability} for state in self.table]
        reached = {state for state, chance in enumerate(self.start_law) if chance}
        waiting = list(reached)
        while waiting:
            new = {state for state in after[waiting.pop()] if state is not None} - reached
            reached |= new
            waiting.extend(new)
        while ends := {state for state in reached if reached.isdisjoint(after[state])}:
            reached -= ends
        return bool(reached)

    def accepts(self, message: object) -> bool:
        """An ask with the number of a query, and with a bit (0 if left out)."""
        if not isinstance(message, Ask) or type(message.public) is not int:
            return False
        known = 0 <= message.public < min(len(queries) for queries in self.table)
        return known and (message.private is None or message.private.width is None)

    def start(self, coins: Coins) -> State:
        """One of the first states."""
        return InState(_drawn(self.start_law, coins))

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """One of the outcomes in the table."""
        assert isinstance(state, InState) and isinstance(message, Ask) and isinstance(message.public, int)
        bit = 0 if message.private is None else reveal(message.private.clamp(0, 1))
        assert isinstance(bit, int)
        outcomes = self.table[state.number][message.public][bit]
        outcome = outcomes[_drawn(tuple(outcome.probability for outcome in outcomes), coins)]
        return (None if outcome.state is None else InState(outcome.state)), outcome.answer


def query_pairs(queries: int, *, differ: bool = True) -> tuple[Pair, ...]:
    """For each query the pair of asks about the bits 0 and 1; with `differ=False`, about 0 and 0.

    >>> [pair[0].public for pair in query_pairs(2)]
    [0, 1]
    """
    return tuple((Ask(query, 0), Ask(query, 1 if differ else 0)) for query in range(queries))


def side_by_side(one: FiniteMechanism, other: FiniteMechanism) -> FiniteMechanism:
    """The concurrent composition of two: again a finite mechanism, with the queries of the first, then of the second.

    A mechanism that has halted answers None, and the state stays.

    >>> coin = (Outcome("1/2", 0), Outcome("1/2", 1))
    >>> pair = side_by_side(FiniteMechanism((((coin, coin),),)), FiniteMechanism((((coin, coin),),)))
    >>> len(pair.table), len(pair.table[0])
    (4, 2)
    """
    width = len(other.table) + 1  # the additional last state means that the mechanism has halted
    silent: Outcomes = (Outcome(1, None),)

    def row(left: int, right: int) -> tuple[tuple[Outcomes, Outcomes], ...]:
        first = one.table[left] if left < len(one.table) else ((silent, silent),) * len(one.table[0])
        second = other.table[right] if right < len(other.table) else ((silent, silent),) * len(other.table[0])
        of_one = [_renumber(query, lambda s: (len(one.table) if s is None else s) * width + right) for query in first]
        of_other = [_renumber(query, lambda s: left * width + (width - 1 if s is None else s)) for query in second]
        return (*of_one, *of_other)

    table = tuple(row(left, right) for left in range(len(one.table) + 1) for right in range(width))
    chances = [Fraction(0)] * len(table)
    for left, p in enumerate(one.start_law):
        for right, q in enumerate(other.start_law):
            chances[left * width + right] = p * q
    return FiniteMechanism(table, tuple(chances))


def _renumber(query: tuple[Outcomes, Outcomes], number: Callable[[int | None], int]) -> tuple[Outcomes, Outcomes]:
    """The outcomes of a query with their states renumbered."""
    zero, one = (tuple(Outcome(o.probability, o.answer, number(o.state)) for o in outcomes) for outcomes in query)
    return zero, one


def _drawn(law: tuple[Fraction, ...], coins: Coins) -> int:
    """Draw the index of an outcome, by one coin for each, with its share of the remaining probability."""
    left = Fraction(1)
    for number, chance in enumerate(law):
        if chance and (chance == left or coins.bernoulli(chance / left)):
            return number
        left -= chance
    raise AssertionError("a law sums to 1")


class Door(State, Value, frozen=True):
    """How many asks the machine has left, and whether it has opened."""

    asks: int
    open: bool


class OpenDoor(Mechanism, Value, frozen=True):
    """M_delta of Henzinger et al. 2024, Thm 5.2: two asks about a bit, at most one of them differing; (0, delta)-DP.

    >>> OpenDoor(0.125).claim.loss
    ApproxDP(0, 0.125)

    M_delta of Henzinger et al. 2024, Thm 5.2. One copy is (0, delta)-DP; of l copies, an adversary who waits for an
    open one learns a bit with probability 1-(1-delta)^l, which is why naive parallel composition is refused.

    >>> from counterpoint.coins import SeededCoins
    >>> from counterpoint.mechanisms import Ask
    >>> door, coins = OpenDoor(delta=1), SeededCoins(1)
    >>> state, answer = door.step(door.start(coins), Ask(private=0), coins)
    >>> answer, door.step(state, Ask(private=1), coins)[1]
    ('open', 1)
    """

    delta: Probability

    @property
    def claim(self) -> Claim:
        """(0, delta) if at most one of the two asks differs."""
        by = "Henzinger et al. 2024, Thm 5.2, step 2: with probability 1-delta no answer depends on the input"
        return claim(ApproxDP(0, self.delta), Steps(asks=1), by, interaction="finite")

    def accepts(self, message: object) -> bool:
        """An ask about a bit."""
        return (
            isinstance(message, Ask)
            and message.private is not None
            and message.private.width is None
            and not is_addressed(message)
        )

    def start(self, coins: Coins) -> State:
        """Closed, with two asks left."""
        return Door(2, open=False)

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """Repeats its input if it is open; else says whether it has opened now."""
        assert isinstance(state, Door) and message.private is not None
        left = state.asks - 1
        if state.open:
            return (Door(left, open=True) if left else None), reveal(message.private.clamp(0, 1))
        opens = coins.bernoulli(self.delta)
        return (Door(left, open=opens) if left else None), "open" if opens else "closed"


class Announced(State, Value, frozen=True):
    """The number that was announced, and the bit it guards."""

    number: int
    bit: Secret


class LoudNumber(Mechanism, Value, frozen=True):
    """Henzinger et al. 2024, footnote 1: announces one of 1..ceil(1/delta) and answers with the bit if the next
    ask repeats that number.

    An adversary that must choose both asks in advance guesses it with probability delta; an adaptive one repeats
    it. Its claim is therefore ApproxDP(0, 1): no privacy, against the adversaries that this library defends from.

    >>> LoudNumber(0.25).claim.loss, LoudNumber(0.25).numbers
    (ApproxDP(0, 1), 4)

    The machine of Henzinger et al.'s first footnote: (0, delta)-DP against an oblivious adversary, without any privacy
    against an adaptive one.
    """

    delta: Probability

    def __post_init__(self) -> None:
        """There must be a number to announce."""
        if self.delta == 0:
            raise InvalidParameter("delta must be above 0: the number announced is one of ceil(1/delta)")

    @property
    def numbers(self) -> int:
        """How many numbers there are to announce."""
        return ceil(1 / self.delta)

    @property
    def claim(self) -> Claim:
        """Nothing, against adaptive adversaries."""
        return claim(ApproxDP(0, 1), FirstMessage(), "nothing is promised (Henzinger et al. 2024, footnote 1)")

    def accepts(self, message: object) -> bool:
        """An ask with the bit, then an ask with the number as its public part."""
        return isinstance(message, Ask) and not is_addressed(message)

    def start(self, coins: Coins) -> State:
        """Waiting for the bit."""
        return Left(2)

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """The number; then the bit, if the number comes back."""
        assert isinstance(message, Ask)
        if not isinstance(state, Announced):
            number = coins.integer(self.numbers) + 1
            return Announced(number, Secret(0) if message.private is None else message.private), number
        return None, reveal(state.bit) if message.public == state.number else None
