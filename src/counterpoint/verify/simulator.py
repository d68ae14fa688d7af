"""The decomposition of a private mechanism into one randomized response (Lyu 2022, Thm 3).

For delta = 0 it is that of Vadhan and Wang 2021, Thm 3.

If M^0 and M^1 are (epsilon, delta)-indistinguishable to every adversary, there are systems E^0, E^1, N^0, N^1 with

    M^b = delta E^b + (1 - delta) (g/(1+g) N^b + 1/(1+g) N^(1-b)),   g = e^epsilon,

on every history. The construction computes the residual D^b = mu^b - delta E^b, answer by answer (errata, Lyu E4):
0 <= D^b <= mu^b - Lower^b, D^b <= g D^(1-b), and the residuals of the answers sum to that of the history. Then
N^b = (g D^b - D^(1-b)) / ((1-delta)(g-1)) (Vadhan and Wang 2021, Lemma 3). In rationals all of this is exact.

>>> from counterpoint.verify.finite import OpenDoor
>>> from counterpoint.verify.decomposition import decompose
>>> door = decompose(OpenDoor("1/7"), 0, "1/7", rounds=2)
>>> door.check()
Fraction(0, 1)
>>> door.laws(0).exposed[0], door.laws(0).noisy[1]
({'open': Fraction(1, 1)}, {'closed': Fraction(1, 1)})
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from counterpoint.coins.coins import Coins
from counterpoint.encoding import Value, encode
from counterpoint.errors import InvalidParameter
from counterpoint.measures import ApproxDP, PureDP
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.mechanisms.randomized_response import Undecided
from counterpoint.numbers import format_number, precision
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.messages import Ask, Message
from counterpoint.privacy.relations import Pair, every_step
from counterpoint.privacy.secret import Secret, reveal
from counterpoint.verify.automaton import Array
from counterpoint.verify.game import HALT
from counterpoint.verify.quotients import Lift, as_is
from counterpoint.verify.worlds import Worlds

Both: TypeAlias = tuple[Any, Any]
"""A number for either world: a `Fraction`, or a float where the laws are not rational."""


class Place(NamedTuple):
    """A history as the decomposition sees it: its node, and the part of the node's two masses that is not exposed.

    `together`: all pairs of messages so far were identical, in a decomposition in two steps.
    """

    level: int
    node: int
    residual: Both
    together: bool


class Edge(NamedTuple):
    """An answer; its mass and its residual, in the units of the node before; and the place that it leads to."""

    answer: Answer
    masses: Both
    residual: Both
    place: Place


class Laws(NamedTuple):
    """The laws of E^0, E^1 and N^0, N^1 after a history; empty for a system that never reaches it."""

    exposed: tuple[dict[Answer, Any], dict[Answer, Any]]
    noisy: tuple[dict[Answer, Any], dict[Answer, Any]]


@dataclass
class Decomposition:
    """E^0, E^1, N^0, N^1 at e^epsilon = growth and delta, computed history by history on demand."""

    worlds: Worlds
    growth: Fraction
    delta: Fraction
    in_two_steps: bool
    lower: tuple[list[Array], list[Array]]
    lazy: Callable[[int, int], Any] = field(repr=False)
    lift: Lift = as_is
    _known: dict[tuple[Place, int], tuple[Edge, ...] | None] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        mechanism = type(self.worlds.automaton.mechanism).__name__
        growth, delta = format_number(self.growth), format_number(self.delta)
        steps = "two steps" if self.in_two_steps else "one step"
        return f"Decomposition({mechanism}, {growth=!s}, {delta=!s}, in {steps})"

    @property
    def root(self) -> Place:
        """Before the first message: 1 - delta of either world is not exposed."""
        rest = self._number(1 - self.delta) / self._number(self.worlds.factor)
        return Place(0, 0, (rest, rest), self.in_two_steps)

    @cached_property
    def simulator(self) -> "Simulator":
        """The mechanism T that receives only a randomized response to the bit b, and answers as M(b) does."""
        return Simulator(self)

    def after(self, place: Place, move: int) -> tuple[Edge, ...] | None:
        """How the residual at a place is shared among the answers to a move; None if the move is not valid there."""
        key = place, move
        if key not in self._known:
            self._known[key] = self._shared(place, move)
        return self._known[key]

    def identical(self, move: int) -> bool:
        """Whether a move sends the same message in both worlds."""
        left, right = self.worlds.pairs[move]
        return encode(left, sealed=True) == encode(right, sealed=True)

    def weights(self, edge: Edge, bit: int) -> tuple[Any, Any]:
        """The weight of an answer in E^bit and in N^bit, up to a factor common to all answers."""
        mine, other = edge.residual[bit], edge.residual[1 - bit]
        growth = self._number(self.growth)
        noisy = mine if self.growth == 1 else (growth * mine - other) / (growth - 1)
        return self._positive(edge.masses[bit] - mine), self._positive(noisy)

    def laws(self, move: int, after: Sequence[tuple[int, Answer]] = ()) -> Laws:
        """The four laws of the answer to a move (by its number among the messages), after these moves and answers."""
        edges = self._edges(self._walk(after), move)
        pairs = [[self.weights(edge, bit) for edge in edges] for bit in (0, 1)]
        answers = [edge.answer for edge in edges]
        exposed, noisy = ([_law(answers, [pair[kind] for pair in pairs[bit]]) for bit in (0, 1)] for kind in (0, 1))
        return Laws((exposed[0], exposed[1]), (noisy[0], noisy[1]))

    def check(self) -> Any:
        """The largest violation at any history of a condition on E and N, or of the sum that must be M^b; 0 if exact.

        The conditions: no probability is negative, and the masses of E and N at a history are the sums over its
        answers. Probabilities are conditional on the history. This visits all histories, so it takes longer than the
        construction.
        """
        worst = self._number(Fraction(0))
        waiting, seen = [self.root], {self.root}
        while waiting:
            place = waiting.pop()
            for move in range(len(self.worlds.pairs)):
                edges = self.after(place, move)
                if edges is None:
                    continue
                worst = max(worst, *(self._missed(place, edges, bit) for bit in (0, 1)))
                fresh = {edge.place for edge in edges} - seen
                seen |= fresh
                waiting.extend(fresh)
        return worst

    def _missed(self, place: Place, edges: tuple[Edge, ...], bit: int) -> Any:
        growth, missed = self._number(self.growth), abs(sum(e.residual[bit] for e in edges) - place.residual[bit])
        for edge in edges:
            residual, other = edge.residual[bit], edge.residual[1 - bit]
            exposed, noisy = self.weights(edge, bit)
            mixed = exposed + (growth * noisy + self.weights(edge, 1 - bit)[1]) / (1 + growth)
            missed = max(missed, -residual, residual - growth * other, abs(mixed - edge.masses[bit]))
        return missed

    def _walk(self, history: Sequence[tuple[int, Answer]]) -> Place:
        place = self.root
        for move, answer in history:
            sought = encode(answer)
            found = [edge.place for edge in self._edges(place, move) if encode(edge.answer) == sought]
            if not found:
                raise InvalidParameter(
                    f"after this history message {move} has no answer {answer!r} in either world: see laws({move}, ...)"
                )
            place = found[0]
        return place

    def _edges(self, place: Place, move: int) -> tuple[Edge, ...]:
        edges = self.after(place, move)
        if edges is None:
            raise InvalidParameter(f"message {move} is not valid after this history, or the last round is over")
        return edges

    def _shared(self, place: Place, move: int) -> tuple[Edge, ...] | None:
        choices = self.worlds.levels[place.level].choices
        found = [] if choices is None else [n for n in choices.of(place.node) if choices.moves[n] == move]
        if choices is None or not found:
            return None
        edges = choices.edges(found[0])
        nodes = [int(node) for node in choices.children[edges]]
        factors = [self._number(factor) for factor in choices.factors[edges]]
        following = self.worlds.levels[place.level + 1].masses
        masses = [
            (factor * self._number(following[0][node]), factor * self._number(following[1][node]))
            for node, factor in zip(nodes, factors, strict=True)
        ]
        together = place.together and self.identical(move)
        if together:
            kept = [f * self.lazy(place.level + 1, n) for n, f in zip(nodes, factors, strict=True)]
            residuals = self._in_proportion(place.residual[0], [m[0] - k for m, k in zip(masses, kept, strict=True)])
        else:
            least = [
                tuple(f * self._number(self.lower[bit][place.level + 1][n]) for bit in (0, 1))
                for n, f in zip(nodes, factors, strict=True)
            ]
            residuals = self._until_tight(place, masses, least)
        answers = [self.worlds.automaton.answers[int(answer)] for answer in choices.answers[edges]]
        return tuple(
            Edge(a, m, r, Place(place.level + 1, n, (r[0] / f, r[1] / f), together))
            for a, m, r, n, f in zip(answers, masses, residuals, nodes, factors, strict=True)
        )

    def _until_tight(self, place: Place, masses: list[Both], least: list[Any]) -> list[Both]:
        """Lyu's step: start E from Lower and raise it, one answer after another, until it is tight.

        See errata, Lyu E4.
        """
        growth = self._number(self.growth)
        gaps = [sum(m[b] - low[b] for m, low in zip(masses, least, strict=True)) - place.residual[b] for b in (0, 1)]
        residuals = []
        for mass, low in zip(masses, least, strict=True):
            room = mass[0] - low[0], mass[1] - low[1]
            wanted = [self._positive(room[b] - gaps[b]) for b in (0, 1)]
            found = max(wanted[0], wanted[1] / growth), max(wanted[1], wanted[0] / growth)
            gaps = [gaps[b] - (room[b] - found[b]) for b in (0, 1)]
            residuals.append(found)
        return residuals

    def _in_proportion(self, residual: Any, rooms: list[Any]) -> list[Both]:
        """One residual for both worlds: each answer gets a share in proportion to its mass that need not be exposed."""
        total = sum(rooms)
        shares = [residual * room / total if total > 0 else residual * 0 for room in rooms]
        return [(share, share) for share in shares]

    def _positive(self, value: Any) -> Any:
        return max(value, value * 0)

    def _number(self, value: Any) -> Any:
        return value if self.worlds.rational else float(value)


def _law(answers: list[Answer], weights: list[Any]) -> dict[Answer, Any]:
    total = sum(weights)
    return {answer: weight / total for answer, weight in zip(answers, weights, strict=True) if weight}


class PairSimulator(Mechanism):
    """A simulator that receives the numbers of the pairs of messages to M; the private part of the first is b.

    >>> from counterpoint.verify.finite import OpenDoor
    >>> from counterpoint.verify.decomposition import decompose
    >>> len(decompose(OpenDoor("1/7"), 0, "1/7", rounds=2).simulator.messages)
    2
    """

    @property
    @abstractmethod
    def pairs(self) -> int:
        """How many pairs of messages there are."""

    @property
    def messages(self) -> tuple[Pair, ...]:
        """The pairs of messages to T, one for each pair of messages to M: their private part is b."""
        return tuple((Ask(number, 0), Ask(number, 1)) for number in range(self.pairs))

    def accepts(self, message: object) -> bool:
        """The number of a pair of messages, and the bit."""
        if not isinstance(message, Ask) or type(message.public) is not int or message.private is None:
            return False
        return message.private.width is None and 0 <= message.public < self.pairs

    def start(self, coins: Coins) -> State:
        """No bit has been read."""
        return Undecided()


class Simulating(State, Value, frozen=True):
    """The position in the decomposition, and the answer of the randomized response.

    `bit` is b itself until the response is `released`; from then on it is the released bit.
    """

    level: int
    node: int
    residual: tuple[Fraction, Fraction]
    together: bool
    exposed: bool
    released: bool
    bit: Secret


class Simulator(PairSimulator):
    """T: it learns b only through one randomized response, which by Lyu 2022, Thm 3 is enough to answer as M(b).

    Its messages are the numbers of M's pairs of messages, with the bit b as their private part, which only the
    randomized response reads: if b is exposed, T continues as E^b; else as N of the noisy bit. So an adversary learns
    from M, in any number of rounds, no more than from a single randomized response. In two steps (Henzinger et al.
    2024, Cor 5.7) T first asks only whether the bit is exposed, and asks for the noisy bit once a pair of messages
    differs.

    >>> from counterpoint.coins import SeededCoins
    >>> from counterpoint.mechanisms import Ask
    >>> from counterpoint.verify.finite import OpenDoor
    >>> from counterpoint.verify.decomposition import decompose
    >>> simulator, coins = decompose(OpenDoor("1/7"), 0, "1/7", rounds=2).simulator, SeededCoins(1)
    >>> state, answer = simulator.step(simulator.start(coins), Ask(0, 1), coins)
    >>> answer in ("open", "closed")
    True
    """

    def __init__(self, decomposition: Decomposition) -> None:
        self.decomposition = decomposition

    def __repr__(self) -> str:
        return f"Simulator({self.decomposition!r})"

    @property
    def claim(self) -> Claim:
        """(log growth, delta), whatever the bits of the messages are: T reads only the first one."""
        made = self.decomposition
        epsilon = Fraction(precision(30)(made.growth).log().upper) if made.growth > 1 else Fraction(0)
        loss = ApproxDP(epsilon, made.delta) if made.delta else PureDP(epsilon)
        return claim(
            loss,
            every_step(),
            "Henzinger et al. 2024, Lemma 2.4: it postprocesses one randomized response",
            interaction="finite",
        )

    @property
    def pairs(self) -> int:
        """How many pairs of messages M was decomposed over."""
        return len(self.decomposition.worlds.pairs)

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """An answer of E or N; `HALT` to an invalid pair. T halts after the last round."""
        assert isinstance(message, Ask) and isinstance(message.public, int) and message.private is not None
        made, move = self.decomposition, message.public
        current = state if isinstance(state, Simulating) else self._begun(message.private.clamp(0, 1), coins)
        edges = made.after(self._place(current), move)
        if edges is None:
            return None, HALT
        if not current.released and not (current.together and made.identical(move)):
            current = self._release(current, coins)
        # until the bit is released, E^0 = E^1 and N^0 = N^1
        bit = reveal(current.bit) if current.released else 0
        assert isinstance(bit, int)
        weights = [made.weights(edge, bit)[0 if current.exposed else 1] for edge in edges]
        edge = edges[drawn(weights, coins)]
        return self._at(current, edge.place), made.lift(move, edge.answer, coins)

    def _begun(self, bit: Secret, coins: Coins) -> Simulating:
        """The randomized response: all of it, or, in two steps, only whether the bit is exposed."""
        made = self.decomposition
        level, node, residual, together = made.root
        begun = Simulating(level, node, _exact(residual), together, coins.bernoulli(made.delta), False, bit)
        return begun if made.in_two_steps else self._release(begun, coins)

    def _release(self, state: Simulating, coins: Coins) -> Simulating:
        growth = self.decomposition.growth
        honest = state.exposed or coins.bernoulli(growth / (1 + growth))
        return replace(state, released=True, bit=state.bit if honest else 1 - state.bit)

    def _place(self, state: Simulating) -> Place:
        zero, one = (Fraction(r) if self.decomposition.worlds.rational else float(r) for r in state.residual)
        return Place(state.level, state.node, (zero, one), state.together)

    def _at(self, state: Simulating, place: Place) -> Simulating | None:
        """The state at the next place; None if no move is left."""
        moves = range(len(self.decomposition.worlds.pairs))
        if all(self.decomposition.after(place, move) is None for move in moves):
            return None
        return replace(
            state, level=place.level, node=place.node, residual=_exact(place.residual), together=place.together
        )


def _exact(residual: tuple[Any, Any]) -> tuple[Fraction, Fraction]:
    return Fraction(residual[0]), Fraction(residual[1])


def drawn(weights: list[Any], coins: Coins) -> int:
    """Draw the index of an outcome, by weights that need not sum to 1.

    >>> from counterpoint.coins import EnumeratedCoins
    >>> [(outcome, str(p)) for outcome, p in EnumeratedCoins().law(lambda coins: drawn([1, 0, 2], coins))]
    [(0, '1/3'), (2, '2/3')]
    """
    left = [Fraction(weight) for weight in weights]
    rest = sum(left, Fraction(0))
    for number, weight in enumerate(left):
        if weight and (weight == rest or coins.bernoulli(weight / rest)):
            return number
        rest -= weight
    raise AssertionError("some outcome has a positive weight")
