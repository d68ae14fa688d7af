"""`exact`: the loss of a mechanism over all adaptive adversaries, computed from the code that runs in production.

It builds the tree of all transcripts from the mechanism's own `start` and `step` (theory, Verification by computation);
the recursion of Lyu 2022, eq. 19 then gives delta at any epsilon, and the adversary that reaches it. The results are
certified bounds: exact rationals if all probabilities are rational, else floats with their rounding errors counted.
Noise that must be enumerated is truncated where its tail is tiny: the truncated mass is left out of the lower bound and
counted in full in the upper bound.

>>> from counterpoint import RandomizedResponse
>>> from counterpoint.mechanisms import Ask
>>> loss = exact(RandomizedResponse(1, "0.1"), rounds=1)
>>> abs(loss.delta_at(1) - 0.1) < 1e-13, loss.epsilon_at("0.2") < 1
(True, True)
>>> print(loss.adversary)
send Ask(private=0 | 1)
  (False, 0), (True, 0): say world 0
  (False, 1), (True, 1): say world 1
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from counterpoint.display.progress import working
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.measures import TradeOff, curves
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.numbers import Number, format_number, precision
from counterpoint.numbers.exact import above_one, at_least, float_down, float_up, probability, whole
from counterpoint.privacy.claims import Claim
from counterpoint.privacy.relations import Pair, Relation
from counterpoint.verify.adversary import Adversary, strategy
from counterpoint.verify.automaton import UNIT
from counterpoint.verify.grow import LIMIT, grow
from counterpoint.verify.induction import (
    Best,
    History,
    RealisedLoss,
    Regions,
    best,
    hockey_stick,
    nothing,
    own_curve,
    realised_loss,
    renyi,
    renyi_left,
)
from counterpoint.verify.inputs import check_inputs
from counterpoint.verify.verdict import Verdict, allowed, compared, loss_of
from counterpoint.verify.worlds import Worlds

_LARGEST = 100.0  # beyond, the error of 60 digits in one world is multiplied by too large an e^epsilon
_SEARCH = 64
_UNDERFLOW = Fraction(1, 2**900)  # more than all doubles together lose by underflow


class DeltaBounds(NamedTuple):
    """Certified bounds on a delta."""

    lower: Fraction
    upper: Fraction

    def __repr__(self) -> str:
        return f"DeltaBounds({format_number(self.lower)}, {format_number(self.upper)})"


@dataclass
class ExactLoss:
    """The loss of a mechanism against every adversary with these messages and rounds: a curve, not one number."""

    worlds: Worlds
    _known: dict[Fraction, DeltaBounds] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        mechanism, rounds = type(self.worlds.automaton.mechanism).__name__, len(self.worlds.levels) - 1
        return f"ExactLoss({mechanism}, {rounds} rounds, {len(self.worlds.pairs)} messages, {self.worlds.size} nodes)"

    def bounds(self, epsilon: Number) -> DeltaBounds:
        """Certified bounds on delta(epsilon), the largest over all adversaries and both worlds."""
        exponent = at_least(epsilon, 0, "epsilon")
        if exponent == 0:
            return self.bounds_at_growth(1)
        if exponent > _LARGEST:
            return DeltaBounds(Fraction(0), self.bounds(Fraction(_LARGEST)).upper)
        growth = precision(30)(exponent).exp()
        return DeltaBounds(
            self.bounds_at_growth(Fraction(growth.upper)).lower, self.bounds_at_growth(Fraction(growth.lower)).upper
        )

    def bounds_at_growth(self, growth: Number) -> DeltaBounds:
        """The same at e^epsilon = growth, a rational: if all probabilities are rational too, both bounds are exact.

        >>> from counterpoint.verify.finite import OpenDoor
        >>> exact(OpenDoor("1/7"), rounds=2).bounds_at_growth(1)
        DeltaBounds(1/7, 1/7)
        """
        ratio = at_least(growth, 1, "the growth")
        if ratio not in self._known:
            both = [self._one_way(ratio, bit) for bit in (0, 1)]
            found = DeltaBounds(max(b.lower for b in both), max(b.upper for b in both))
            self._known[ratio] = found if self.worlds.rational else _outward(found)
        return self._known[ratio]

    def _one_way(self, growth: Fraction, bit: int) -> DeltaBounds:
        """Lower^b, widened by the errors of rounding and truncation.

        In floats every mass is within a relative drift, and where mu^b exceeds growth * mu^(1-b), or would without
        rounding, the latter is no larger than mu^b (but for drift): so a value is off by at most 3 drift * mu^b, and
        all of them together by 3 drift.
        """
        worlds = self.worlds
        number = growth if worlds.rational else float(growth)
        kept = best(worlds, hockey_stick(number, bit)).value
        off = worlds.error * (1 + growth)
        if not worlds.rational:
            off += 4 * (worlds.drift + 4 * UNIT) + growth * _UNDERFLOW
        if not worlds.is_cut:
            return DeltaBounds(max(Fraction(0), Fraction(kept) - off), min(Fraction(1), Fraction(kept) + off))
        most = Fraction(best(worlds, hockey_stick(number, bit), cut=bit).value) + worlds.cut
        missed = Fraction(best(worlds, nothing, cut=1 - bit).value) * (1 + worlds.drift) + worlds.cut
        return DeltaBounds(max(Fraction(0), Fraction(kept) - off - growth * missed), min(Fraction(1), most + off))

    def delta_at(self, epsilon: Number) -> float:
        """The exact delta at an epsilon, rounded up."""
        return float_up(self.bounds(epsilon).upper)

    def epsilon_at(self, delta: Number) -> float:
        """The smallest epsilon that is certainly enough at delta; infinite if none is (or tails were truncated)."""
        return self.epsilon_bounds(delta)[1]

    def epsilon_bounds(self, delta: Number) -> tuple[float, float]:
        """An epsilon that is not enough at this delta (or 0), and one that is: the exact one lies between them."""
        allowed = probability(delta, "delta")
        lowest, highest = self._largest_loss()
        if allowed == 0:
            return lowest, highest
        top = min(highest, _LARGEST)
        if top == _LARGEST and self.bounds(_LARGEST).upper > allowed:
            return self._crossing(lambda e: self.bounds(e).lower > allowed, _LARGEST)[0], math.inf
        low = self._crossing(lambda e: self.bounds(e).lower > allowed, top)[0]
        high = self._crossing(lambda e: self.bounds(e).upper > allowed, top)[1]
        return low, high

    def _crossing(self, is_above: Any, top: float) -> tuple[float, float]:
        """By bisection: an epsilon where a falling curve is still above, and one where it is not."""
        if not is_above(0.0):
            return 0.0, 0.0
        low, high = 0.0, top
        for _ in range(_SEARCH):
            middle = (low + high) / 2
            if not low < middle < high or high - low < 1e-13 * high:
                break
            low, high = (middle, high) if is_above(middle) else (low, middle)
        return low, high

    def _largest_loss(self) -> tuple[float, float]:
        """The logarithm of the largest likelihood ratio of any transcript: epsilon at delta = 0."""
        if self.worlds.is_cut:
            return 0.0, math.inf
        largest: Any = Fraction(1) if self.worlds.rational else 1.0
        for level in self.worlds.levels:
            for mine, other in (level.masses, level.masses[::-1]):
                if (other[mine > 0] == 0).any():
                    return math.inf, math.inf
                shared = mine > 0
                largest = max([largest, *(mine[shared] / other[shared])])
        ratio = Fraction(largest)
        if ratio == 1 and self.worlds.rational:
            return 0.0, 0.0
        spread = 4 * (self.worlds.drift + 4 * UNIT) if not self.worlds.rational else Fraction(0)
        low, high = (precision(30)(ratio * (1 + side)).log() for side in (-spread, spread))
        return max(0.0, float_down(low.lower)), float_up(high.upper)

    def renyi_bounds(self, alpha: Number) -> tuple[float, float]:
        """Certified bounds on the Renyi divergence of order alpha (above 1), over all adversaries, either way.

        `NotCovered` if tails were truncated: the truncated part may have any likelihood ratio.
        """
        order = float(above_one(alpha, "alpha"))
        if self.worlds.is_cut:
            raise NotCovered(
                "tails were truncated in this tree, and the divergence of a tail can be arbitrarily large: use "
                "bounds(epsilon), which is certified all the same"
            )
        value = max(best(self.worlds, renyi(order, bit), floats=True).value for bit in (0, 1))
        if not math.isfinite(value):
            return math.inf, math.inf
        operations = (self.worlds.most_answers + 16) * len(self.worlds.levels)
        off = (2 * order + 1) * (float(self.worlds.drift) + operations * float(UNIT)) / (order - 1)
        divergence = math.log(value) / (order - 1)
        return max(0.0, divergence - off), max(0.0, divergence) + off

    def renyi_at(self, alpha: Number, delta: Number = 0) -> float:
        """The Renyi divergence of order alpha, rounded up; with a `delta`, the delta-approximate one.

        That one (Whitehouse et al. 2023, Def 9) is read off the trade-off curve, which no adversary beats: an
        upper bound for all adversaries, and exact if one of them is best at every trade-off, as in one round, and all
        probabilities are rational.

        >>> from counterpoint import RandomizedResponse
        >>> loss = exact(RandomizedResponse(1), rounds=1)
        >>> abs(loss.renyi_at(2) - float(RandomizedResponse(1).claim.loss.as_renyi(2).epsilon)) < 1e-12
        True
        """
        allowed = probability(delta, "delta")
        if allowed == 0:
            return self.renyi_bounds(alpha)[1]
        curve = own_curve(self.worlds, Regions(self.worlds)) if self._is_exact else self.trade_off()
        return curve.renyi_at(alpha, allowed)

    @property
    def _is_exact(self) -> bool:
        return self.worlds.rational and not self.worlds.is_cut and self.worlds.error == 0

    def renyi_left(self, alpha: Number, history: History = ()) -> float:
        """The Renyi divergence of order alpha that is left after a transcript.

        It is the largest divergence, either way, that an adversary can reach from there on (Lyu 2022, sec. 4.2);
        without a transcript, that of the mechanism. The transcript is a list of pairs of messages, or of their numbers,
        with the answers. A number for people, which is not rounded up.

        >>> from counterpoint import Laplace
        >>> loss = exact(Laplace(1, asks=2, clamp=(0, 1)))
        >>> round(loss.renyi_left(2), 4), round(loss.renyi_left(2, [(0, 1)]), 4), loss.renyi_left(2, [(0, 1), (1, 0)])
        (0.4547, 0.2273, 0.0)
        """
        order = float(above_one(alpha, "alpha"))
        if self.worlds.is_cut:
            raise NotCovered("tails were truncated in this tree, and the divergence of a tail can be arbitrarily large")
        zero, one = (best(self.worlds, renyi(order, bit), floats=True).values for bit in (0, 1))
        return renyi_left(self.worlds, (zero, one), history, order)

    def realised(self, history: History, bit: int = 0) -> RealisedLoss:
        """The realised privacy loss of a transcript if `bit` is the true world (Whitehouse et al. 2023, Def 2).

        The transcript is a list of pairs of messages, or of their numbers, with the answers, as `adversary.play` gives.

        >>> from counterpoint import Laplace
        >>> from counterpoint.coins import SeededCoins
        >>> loss = exact(Laplace(1, asks=2, clamp=(0, 1)))
        >>> played = loss.adversary.play(Laplace(1, asks=2, clamp=(0, 1)), bit=0, coins=SeededCoins(1))
        >>> loss.realised(zip(played.pairs, played.answers, strict=True))
        RealisedLoss(0.5)
        >>> loss.realised([(0, 1), (1, 1)]).conditional
        (-0.5, 0.5)
        """
        return realised_loss(self.worlds, history, 1 if bit else 0)

    def trade_off(self, points: int = 33) -> TradeOff:
        """The f-DP curve, as the envelope of this many certified lines: never above the exact curve.

        >>> from counterpoint.verify.finite import OpenDoor
        >>> exact(OpenDoor("1/8"), rounds=2).trade_off()
        TradeOff([(0, 0.875), (0.875, 0), (1, 0)])
        """
        number = whole(points, 2, "points")
        top = min(self._largest_loss()[1], _LARGEST)
        reach = top if top < _LARGEST else max(1.0, self.epsilon_bounds(self._floor() + Fraction(1, 10**6))[1])
        reach = min(reach, _LARGEST)
        slopes = {Fraction(1)} | {Fraction(math.exp(reach * n / (number - 1))) for n in range(1, number)}
        heights = {slope: 1 - self.bounds_at_growth(slope).upper for slope in slopes}
        if top < _LARGEST:  # no transcript is more than e^top times likelier: at this slope delta is 0
            heights[Fraction(precision(30)(Fraction(top)).exp().upper)] = Fraction(1)
        steep = list(heights.items())
        return TradeOff(curves.envelope([*steep, *((1 / slope, height / slope) for slope, height in steep)]))

    def _floor(self) -> Fraction:
        """About the least value of delta: the mass that is exposed or truncated."""
        return min(Fraction(1, 2), self.bounds(_LARGEST).upper)

    def judge(
        self, claim: Claim | Loss | None = None, allowance: Number = Fraction(1, 10**9), points: int = 12
    ) -> Verdict:
        """The verdict on a claim or a loss (without one: on the mechanism's own claim), for this instance.

        REFUTED: at one of `points` epsilons an adversary certainly reaches a larger delta. HOLDS: at none of them can
        an adversary exceed the claim by more than `allowance`, which covers rounding and truncation. For PureDP and
        ApproxDP these epsilons decide for all (`compared`). UNDECIDED: the bounds are too far apart.

        >>> from counterpoint import PureDP, RandomizedResponse
        >>> loss = exact(RandomizedResponse(1), rounds=1)
        >>> loss.judge(), loss.judge(PureDP("0.99"))
        (Verdict.HOLDS, Verdict.REFUTED)
        """
        loss = loss_of(self.worlds.automaton.mechanism.claim if claim is None else claim)
        slack = probability(allowance, "the allowance")
        found = [(self.bounds(epsilon), allowed(loss, epsilon)) for epsilon in compared(loss, points)]
        if any(bounds.lower > most for bounds, most in found):
            return Verdict.REFUTED
        return Verdict.HOLDS if all(bounds.upper <= most + slack for bounds, most in found) else Verdict.UNDECIDED

    @property
    def adversary(self) -> Adversary:
        """The adversary that distinguishes the two worlds best: it reaches delta at epsilon = 0."""
        return self.adversary_at(0)

    def adversary_at(self, epsilon: Number) -> Adversary:
        """The adversary that reaches delta at this epsilon."""
        growth = Fraction(precision(30)(at_least(epsilon, 0, "epsilon")).exp().lower)
        number = growth if self.worlds.rational else float(growth)
        found: list[Best] = [best(self.worlds, hockey_stick(number, bit)) for bit in (0, 1)]
        bit = int(found[1].value > found[0].value)
        return strategy(self.worlds, found[bit], number, bit)


def _outward(bounds: DeltaBounds) -> DeltaBounds:
    """Slightly wider bounds that are doubles, so that they are short."""
    lower, upper = (float(bound) for bound in bounds)
    return DeltaBounds(
        max(Fraction(0), Fraction(math.nextafter(lower, -1.0))), min(Fraction(1), Fraction(math.nextafter(upper, 2.0)))
    )


def exact(
    mechanism: Mechanism,
    relation: Relation | None = None,
    messages: Iterable[Pair] | None = None,
    rounds: int | None = None,
    *,
    cut: Number = Fraction(1, 10**12),
    rational: bool | None = None,
    limit: int = LIMIT,
) -> ExactLoss:
    """The exact loss of a mechanism over all adaptive adversaries with these pairs of messages and this many rounds.

    `relation` decides which sequences of pairs are valid; the default is the claim's own. `messages` are pairs of
    (left, right), each part of a valid sequence; every shipped mechanism has a small default. Enumerated noise is
    truncated at mass `cut`; a tree of more than `limit` numbers is refused.
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidParameter(f"exact takes a mechanism, not a {type(mechanism).__name__}")
    pairs, many, checked = check_inputs(mechanism, relation, messages, rounds)
    most = whole(limit, 1, "the limit")
    with working("following every transcript"):
        return ExactLoss(grow(mechanism, pairs, many, checked, cut=cut, rational=rational, limit=most))
