"""The decomposition of a private mechanism into one randomized response (Lyu 2022, Thm 3).

See Vadhan and Wang 2021, Thm 3 when delta = 0.

If M^0 and M^1 are (epsilon, delta)-indistinguishable to every adversary, there are systems E^0, E^1, N^0, N^1 with

    M^b = delta E^b + (1 - delta) (g/(1+g) N^b + 1/(1+g) N^(1-b)),   g = e^epsilon,

on every history. The construction computes the residual D^b = mu^b - delta E^b, answer by answer (errata, Lyu E4):
0 <= D^b <= mu^b - Lower^b, D^b <= g D^(1-b), and the residuals of the answers sum to that of the history. Then
N^b = (g D^b - D^(1-b)) / ((1-delta)(g-1)) (Vadhan and Wang 2021, Lemma 3). In rationals all of this is exact.

>>> from counterpoint.mechanisms.examples import OpenDoor
>>> from counterpoint.verify.decomposing import decompose
>>> door = decompose(OpenDoor("1/7"), 0, "1/7", rounds=2)
>>> door.check()
Fraction(0, 1)
>>> door.laws(0).exposed[0], door.laws(0).noisy[1]
({'open': Fraction(1, 1)}, {'closed': Fraction(1, 1)})
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from counterpoint.encoding import encode
from counterpoint.errors import InvalidParameter
from counterpoint.mechanisms.mechanism import Answer
from counterpoint.numbers import spell
from counterpoint.verify.exactly.arithmetic import Array
from counterpoint.verify.exactly.worlds import Worlds

if TYPE_CHECKING:
    from counterpoint.verify.simulating.simulation import Simulator

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
    _known: dict[tuple[Place, int], tuple[Edge, ...] | None] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        mechanism, steps = (
            type(self.worlds.automaton.mechanism).__name__,
            "two steps" if self.in_two_steps else "one step",
        )
        return f"Decomposition({mechanism}, growth={spell(self.growth)}, delta={spell(self.delta)}, in {steps})"

    @property
    def root(self) -> Place:
        """Before the first message: 1 - delta of either world is not exposed."""
        rest = self._number(1 - self.delta) / self._number(self.worlds.factor)
        return Place(0, 0, (rest, rest), self.in_two_steps)

    @cached_property
    def simulator(self) -> "Simulator":
        """The mechanism T that receives only a randomized response to the bit b, and answers as M(b) does."""
        from counterpoint.verify.simulating.simulation import Simulator  # noqa: PLC0415 - it imports this module

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
