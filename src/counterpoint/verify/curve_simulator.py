"""The simulation of an f-DP mechanism by one draw (Haney et al. 2023, Thm 3.3; Henzinger et al. 2024, Lemma 14.5).

The curve f is that of a pair of distributions P, Q on finitely many outcomes y. If no adversary tells M(0) from M(1)
better than f allows, there is a mechanism T that is given a y, drawn from P for the bit 0 and from Q for the bit 1, and
answers as M(b) does. Let w_h(y) be the probability that T, given y, gives the answers in the history h to its asks:

    w = 1 before the first ask;  the w of the answers to an ask add up to the w before it, for each y;
    sum of P(y) w_h(y) = mu^0(h)  and  sum of Q(y) w_h(y) = mu^1(h).

They are built from the first ask on. At h the pair (P w_h, Q w_h) is at least as telling as the pair of what is still
to come (`Regions`); a move's answers have their pairs side by side, no more telling than that of h; so Blackwell's
theorem gives a kernel (`Remainder`), and the share of y that goes to an answer's pair is the answer's w(y). In
rationals all of this is exact.

>>> from counterpoint import TradeOff
>>> from counterpoint.verify.finite import OpenDoor
>>> from counterpoint.verify.decomposition import decompose
>>> door = decompose(OpenDoor("1/7"), curve=TradeOff.of_approx(0, "1/7"), rounds=2)
>>> door, door.check()
(CurveDecomposition(OpenDoor, 3 outcomes), Fraction(0, 1))
>>> door.laws(0)[0]  # of the outcome that world 0 never has
{'open': Fraction(1, 1)}
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

from counterpoint.coins.coins import Coins
from counterpoint.encoding import Value, encode
from counterpoint.errors import InvalidParameter
from counterpoint.measures import TradeOff, curves
from counterpoint.mechanisms.mechanism import Answer, State
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.messages import Ask, Message
from counterpoint.privacy.relations import every_step
from counterpoint.privacy.secret import reveal
from counterpoint.verify.game import HALT
from counterpoint.verify.induction import Masses, Regions
from counterpoint.verify.quotients import Lift, as_is
from counterpoint.verify.simulator import PairSimulator, drawn
from counterpoint.verify.worlds import Worlds

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
    lift: Lift = as_is
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


class Drawn(State, Value, frozen=True):
    """The outcome of the draw, and the place in the decomposition."""

    outcome: int
    level: int
    node: int
    weights: tuple[Fraction, ...]


class CurveSimulator(PairSimulator):
    """T: it learns b only through one draw from the pair of distributions that has the curve.

    Its messages are the numbers of M's pairs of messages, with the bit b as their private part, of which only the first
    is read, and only by the draw (Haney et al. 2023, Thm 3.3). So an adversary learns from M, in any number of rounds,
    no more than from one draw.

    >>> from counterpoint import TradeOff
    >>> from counterpoint.coins import SeededCoins
    >>> from counterpoint.mechanisms import Ask
    >>> from counterpoint.verify.finite import OpenDoor
    >>> from counterpoint.verify.decomposition import decompose
    >>> made = decompose(OpenDoor("1/7"), curve=TradeOff.of_approx(0, "1/7"), rounds=2)
    >>> simulator, coins = made.simulator, SeededCoins(1)
    >>> state, answer = simulator.step(simulator.start(coins), Ask(0, 1), coins)
    >>> answer in ("open", "closed")
    True
    """

    def __init__(self, decomposition: CurveDecomposition) -> None:
        self.decomposition = decomposition

    def __repr__(self) -> str:
        return f"CurveSimulator({self.decomposition!r})"

    @property
    def claim(self) -> Claim:
        """The curve, whatever the bits of the messages are: T reads only the first one."""
        by = "it postprocesses one draw from the pair of distributions that has this curve"
        return claim(self.decomposition.curve, every_step(), by, interaction="finite")

    @property
    def pairs(self) -> int:
        """How many pairs of messages M was decomposed over."""
        return len(self.decomposition.worlds.pairs)

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """An answer by the weights of the outcome; `HALT` to an invalid pair. T halts after the last round."""
        assert isinstance(message, Ask) and isinstance(message.public, int) and message.private is not None
        made = self.decomposition
        if isinstance(state, Drawn):
            outcome, stage = state.outcome, self._stage(state)
        else:
            bit = reveal(message.private.clamp(0, 1))
            assert isinstance(bit, int)
            outcome, stage = drawn([pair[bit] for pair in made.outcomes], coins), made.root
        replies = made.after(stage, message.public)
        if replies is None:
            return None, HALT
        reply = replies[drawn([reply.weights[outcome] for reply in replies], coins)]
        return self._at(outcome, reply.stage), made.lift(message.public, reply.answer, coins)

    def _stage(self, state: Drawn) -> Stage:
        weights = state.weights if self.decomposition.worlds.rational else tuple(map(float, state.weights))
        return Stage(state.level, state.node, weights)

    def _at(self, outcome: int, stage: Stage) -> Drawn | None:
        """The state at the next stage; None if no move is left."""
        if all(self.decomposition.after(stage, move) is None for move in range(self.pairs)):
            return None
        return Drawn(outcome, stage.level, stage.node, tuple(map(Fraction, stage.weights)))


class Remainder:
    """What is left of the first pair, in the order of r; `take` removes a shadow.

    An outcome y of the first pair has masses (p, q) in the two worlds; an outcome c of the second has (u, v). If the
    curve of the first pair is nowhere above that of the second, a kernel from y to c turns the one pair into the other
    (Blackwell's theorem). It is built target by target. Write r = q/(p+q) for where an outcome stands, and lay what is
    left of the first pair out on a line by r. The *shadow* of a target is the interval of that line that has its two
    masses u and v; it is removed, and the next target follows, in any order.

    Why the next one finds its shadow, too. Some kernel serves all targets; let E be what it takes for this one, and S
    the shadow. Both have the same mass and the same mean of r. Inside its interval S takes all there is, so S - E is at
    least 0 inside and at most 0 outside. A convex function minus its chord over the interval is at most 0 inside and at
    least 0 outside; so S is the less spread of the two, and what S leaves is at least as spread as what E leaves, from
    which the other targets can be made. (The shadow is that of Beiglbock and Juillet 2016.)

    >>> from fractions import Fraction
    >>> half, tenth = Fraction(1, 2), Fraction(1, 10)
    >>> left = Remainder([(half, tenth), (half, 9 * tenth)])
    >>> left.take((half, half))  # a fair coin, made of one that is not: the share of either outcome
    [Fraction(1, 2), Fraction(1, 2)]
    """

    def __init__(self, outcomes: Sequence[Masses]) -> None:
        self._outcomes = outcomes
        weighing = [n for n, (p, q) in enumerate(outcomes) if p + q > 0]
        self._order = sorted(weighing, key=lambda n: outcomes[n][1] / (outcomes[n][0] + outcomes[n][1]))
        self._left = [outcomes[n][0] * 0 + 1 for n in range(len(outcomes))]

    def take(self, target: Masses) -> list[Any]:
        """Remove the shadow of a target: the share that is taken of each outcome."""
        shares = [share * 0 for share in self._left]
        mass, moment = target[0] + target[1], target[1]
        if mass <= 0:
            return shares
        sizes = [self._left[n] * (self._outcomes[n][0] + self._outcomes[n][1]) for n in self._order]
        ends = list(accumulate(sizes, initial=mass * 0))
        moments = list(accumulate((self._left[n] * self._outcomes[n][1] for n in self._order), initial=mass * 0))
        start = _start(ends, moments, mass, moment)
        for place, n in enumerate(self._order):
            taken = min(ends[place + 1], start + mass) - max(ends[place], start)
            if taken > 0:
                shares[n] = self._left[n] * min(taken / sizes[place], 1)
                self._left[n] -= shares[n]
        return shares


def _start(ends: list[Any], moments: list[Any], mass: Any, moment: Any) -> Any:
    """Where the interval of this mass begins whose second masses add up to `moment`.

    That sum grows with the beginning s, and is linear between the points where s or s + mass meets an end.
    """

    def held(start: Any) -> Any:
        return _at(ends, moments, start + mass) - _at(ends, moments, start)

    last = max(ends[-1] - mass, mass * 0)
    knots = sorted({mass * 0, last, *(knot for end in ends for knot in (end, end - mass) if 0 < knot < last)})
    low, high = 0, len(knots) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if held(knots[middle]) <= moment else (low, middle)
    below, above = held(knots[low]), held(knots[high])
    if moment >= above or above <= below:  # in floats, moments may be off by their last digits
        return knots[high]
    return knots[low] + (knots[high] - knots[low]) * max(moment - below, mass * 0) / (above - below)


def _at(ends: list[Any], moments: list[Any], point: Any) -> Any:
    """The second masses up to a point of the line."""
    place = bisect_right(ends, point) - 1
    if place >= len(ends) - 1:
        return moments[-1]
    width = ends[place + 1] - ends[place]
    return moments[place] + (moments[place + 1] - moments[place]) * (point - ends[place]) / width
