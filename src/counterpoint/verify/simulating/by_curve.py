"""The simulation of an f-DP mechanism by one draw (Haney et al. 2023, Thm 1.24, Thm 3.3).

See Henzinger et al. 2024, Lemma 14.5.

The curve f is that of a pair of distributions P, Q on finitely many outcomes y. If no adversary tells M(0) from M(1)
better than f allows, there is a mechanism T that is given a y, drawn from P for the bit 0 and from Q for the bit 1, and
answers as M(b) does. Let w_h(y) be the probability that T, given y, gives the answers in the history h to its asks:

    w = 1 before the first ask;  the w of the answers to an ask add up to the w before it, for each y;
    sum of P(y) w_h(y) = mu^0(h)  and  sum of Q(y) w_h(y) = mu^1(h).

They are built from the first ask on. At h the pair (P w_h, Q w_h) is at least as telling as the pair of what is still
to come (`regions`); a move's answers have their pairs side by side, no more telling than that of h; so Blackwell's
theorem gives a kernel (`shadows`), and the share of y that goes to an answer's pair is the answer's w(y). In rationals
all of this is exact.

>>> from counterpoint import TradeOff
>>> from counterpoint.mechanisms.examples import OpenDoor
>>> from counterpoint.verify.decomposing import decompose
>>> door = decompose(OpenDoor("1/7"), curve=TradeOff.of_approx(0, "1/7"), rounds=2)
>>> door, door.check()
(CurveDecomposition(OpenDoor, 3 outcomes), Fraction(0, 1))
>>> door.laws(0)[0]  # of the outcome that world 0 never has
{'open': Fraction(1, 1)}
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from counterpoint.encoding import encode
from counterpoint.errors import InvalidParameter
from counterpoint.mechanisms.mechanism import Answer
from counterpoint.privacy.formulas import curves
from counterpoint.privacy.losses import TradeOff
from counterpoint.verify.exactly.regions import Masses, Regions
from counterpoint.verify.exactly.worlds import Worlds
from counterpoint.verify.simulating.shadows import Remainder

if TYPE_CHECKING:
    from counterpoint.verify.simulating.curve_simulator import CurveSimulator

Weights: TypeAlias = tuple[Any, ...]
"""For each outcome of the draw, the probability of a history if that was drawn."""


class Stage(NamedTuple):
    """A history: its node, and its weights, in the units of the node's masses."""

    level: int
    node: int
    weights: Weights


class Reply(NamedTuple):
    """An answer; its masses and its weights, in the units of the node before; and where it leads to."""

    answer: Answer
    masses: Masses
    weights: Weights
    stage: Stage


@dataclass
class CurveDecomposition:
    """T for the pair of distributions that has this curve, computed history by history on demand."""

    worlds: Worlds
    curve: TradeOff
    regions: Regions = field(repr=False)
    _known: dict[tuple[Stage, int], tuple[Reply, ...] | None] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        mechanism = type(self.worlds.automaton.mechanism).__name__
        return f"CurveDecomposition({mechanism}, {len(self.outcomes)} outcomes)"

    @cached_property
    def outcomes(self) -> list[Masses]:
        """The outcomes of the draw, each with its probabilities for the bits 0 and 1."""
        pairs = [pair for pair in curves.atoms(self.curve.vertices) if any(pair)]
        return [(p, q) if self.worlds.rational else (float(p), float(q)) for p, q in pairs]

    @property
    def root(self) -> Stage:
        """Before the first message everything is as likely for every outcome."""
        one = self._number(1) / self._number(self.worlds.factor)
        return Stage(0, 0, (one,) * len(self.outcomes))

    @cached_property
    def simulator(self) -> "CurveSimulator":
        """The mechanism T, which is given one draw for the bit b, and answers as M(b) does."""
        from counterpoint.verify.simulating.curve_simulator import CurveSimulator  # noqa: PLC0415 - it imports this module

        return CurveSimulator(self)

    def after(self, stage: Stage, move: int) -> tuple[Reply, ...] | None:
        """The answers to a move after a history, with their weights; None if the move is not valid there."""
        key = stage, move
        if key not in self._known:
            self._known[key] = self._shared(stage, move)
        return self._known[key]

    def laws(self, move: int, after: Sequence[tuple[int, Answer]] = ()) -> list[dict[Answer, Any]]:
        """For each outcome of the draw, the law of T's answer to a move (by its number), after these moves and answers.

        Empty for an outcome with which T never comes there.
        """
        stage = self.root
        for sent, answer in after:
            sought = encode(answer)
            found = [reply.stage for reply in self._replies(stage, sent) if encode(reply.answer) == sought]
            if not found:
                raise InvalidParameter(
                    f"after this history message {sent} has no answer {answer!r} in either world: see laws({sent}, ...)"
                )
            stage = found[0]
        replies = self._replies(stage, move)
        return [
            {reply.answer: reply.weights[n] / weight for reply in replies if reply.weights[n]} if weight else {}
            for n, weight in enumerate(stage.weights)
        ]

    def check(self) -> Any:
        """The largest violation of a condition on w at any history; 0 if exact.

        The conditions are the three above, and that no w is negative; probabilities are conditional on the history.
        This visits all histories.
        """
        worst = self._number(0)
        waiting, seen = [self.root], {self.root}
        while waiting:
            stage = waiting.pop()
            for move in range(len(self.worlds.pairs)):
                replies = self.after(stage, move)
                if replies is None:
                    continue
                worst = max(worst, self._missed(stage, replies))
                fresh = {reply.stage for reply in replies} - seen
                seen |= fresh
                waiting.extend(fresh)
        return worst

    def _missed(self, stage: Stage, replies: tuple[Reply, ...]) -> Any:
        added = [
            abs(sum(reply.weights[n] for reply in replies) - weight) * (p + q)
            for n, ((p, q), weight) in enumerate(zip(self.outcomes, stage.weights, strict=True))
        ]
        missed = [
            abs(sum(pair[bit] * weight for pair, weight in zip(self.outcomes, reply.weights, strict=True)) - mass)
            for reply in replies
            for bit, mass in enumerate(reply.masses)
        ]
        return max(*added, *missed, *(-weight for reply in replies for weight in reply.weights))

    def _replies(self, stage: Stage, move: int) -> tuple[Reply, ...]:
        replies = self.after(stage, move)
        if replies is None:
            raise InvalidParameter(f"message {move} is not valid after this history, or the last round is over")
        return replies

    def _shared(self, stage: Stage, move: int) -> tuple[Reply, ...] | None:
        choices = self.worlds.levels[stage.level].choices
        found = [] if choices is None else [n for n in choices.of(stage.node) if choices.moves[n] == move]
        if choices is None or not found:
            return None
        edges = choices.edges(found[0])
        masses = self.worlds.levels[stage.level + 1].masses
        left = Remainder([(p * w, q * w) for (p, q), w in zip(self.outcomes, stage.weights, strict=True)])
        replies = []
        for number, child, factor in zip(
            choices.answers[edges], choices.children[edges], choices.factors[edges], strict=True
        ):
            node, unit = int(child), self._number(factor)
            taken = [left.take((unit * p, unit * q)) for p, q in self.regions.of(stage.level + 1, node)]
            weights = tuple(w * sum(shares) for w, shares in zip(stage.weights, zip(*taken, strict=True), strict=True))
            replies.append(
                Reply(
                    self.worlds.automaton.answers[int(number)],
                    (unit * self._number(masses[0][node]), unit * self._number(masses[1][node])),
                    weights,
                    Stage(stage.level + 1, node, tuple(w / unit for w in weights)),
                )
            )
        return tuple(replies)

    def _number(self, value: Any) -> Any:
        return Fraction(value) if self.worlds.rational else float(value)
