"""What is left of an f-DP budget: a curve that every launch divides.

f-DP has no sum: the tensor product of adaptively chosen curves bounds nothing (theory, f-DP in general). So a filter
for a `TradeOff` budget keeps the curve that is left and searches, at every launch, for one that the launch leaves.

>>> from counterpoint import PureDP
>>> rest = TradeOffRest.for_budget(TradeOff.of_approx(1, 0))
>>> round(float((rest + PureDP(0.25)).headroom(rest.budget)), 6)
0.75
"""

from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from counterpoint.composition.accumulator import ZERO, Accumulator, Entries, entry
from counterpoint.encoding import Value
from counterpoint.errors import NotCovered
from counterpoint.measures import GaussianDP, RenyiDP, TradeOff, Unbounded, curves, tCDP, zCDP
from counterpoint.measures.conversions import response_of
from counterpoint.measures.curves import rest_after
from counterpoint.measures.gaussian_curve import square_of_pure
from counterpoint.measures.loss import EpsilonDelta, Loss
from counterpoint.numbers import sqrt_up
from counterpoint.numbers.exact import added_up
from counterpoint.numbers.rounding import rounded_up, short
from counterpoint.privacy.claims import Interaction

_HUGE = 10**4
"""An epsilon beyond which a curve is not searched for."""
_MOST_SEGMENTS = 64
_TINY, _STEPS = Fraction(1, 10**15), 24


def _must_be_few(curve: TradeOff) -> None:
    segments = len(curve.vertices) - 1
    if segments > _MOST_SEGMENTS:
        raise NotCovered(
            f"a filter for f-DP takes curves of at most {_MOST_SEGMENTS} segments, and this one has {segments}; give "
            "fewer vertices below the curve, or use GaussianDP"
        )


def _proven_curve(loss: Loss, interaction: Interaction) -> TradeOff | None:
    """The curve that a loss's deltas prove, at 25 epsilons and down to 1e-15, with finite communication.

    A mechanism with this loss has that curve against every adversary (theory, f-DP in general).
    """
    if interaction not in ("one-shot", "finite"):
        return None
    reach = loss._least_epsilon(_TINY) or Fraction(0)
    return TradeOff.proven_by(loss, [rounded_up(reach * k / _STEPS) for k in range(_STEPS + 1)])


class TradeOffRest(Accumulator, Value, frozen=True):
    """A filter for f-DP: what is left, R, of which a launch with curve f leaves an R' with f (x) R' above R.

    See theory, f-DP in general; Haney et al. 2023, Thm 1.20; Henzinger et al. 2024, Cor 14.10.

    The rest is searched for and certified (`curves.rest_after`); a launch for which none is found does not fit. Covers
    curves of at most 64 segments: of every PureDP and ApproxDP, which are postprocessings of one randomized response;
    of TradeOff and GaussianDP with finite communication or without memory; and of zCDP, RenyiDP and tCDP with finite
    communication, by the curve that their deltas prove. It is no odometer: what was lost is read as the whole budget,
    but for two kinds of losses that have one, of which the first launch says the kind: PureDP and ApproxDP are read by
    their sums (`basic`), and GaussianDP with PureDP by the sum of squares (`squares`), while that curve is above the
    budget's (theory, f-DP in general). A launch of another kind ends that.

    >>> left = TradeOffRest.for_budget(TradeOff.of_approx(1, 0)).plus(TradeOff.of_approx(0.3, 0), "one-shot").left
    >>> round(left.epsilon_at(0), 9)
    0.7
    """

    ENTERS: ClassVar[Entries[TradeOff]] = {
        TradeOff: lambda loss, how: None if how == "endless" else loss,
        GaussianDP: lambda loss, how: None if how == "endless" else loss.as_tradeoff(),
        zCDP: _proven_curve,
        RenyiDP: _proven_curve,
        tCDP: _proven_curve,
    }

    budget: TradeOff
    left: TradeOff | None
    basic: EpsilonDelta | None = (ZERO, ZERO)
    squares: Fraction | None = ZERO
    theorem = (
        "what is left is composed with what is launched (theory, f-DP in general; Haney et al. 2023, Thm 1.20; "
        "Henzinger et al. 2024, Cor 14.10)"
    )

    @classmethod
    def for_budget(cls, budget: Loss) -> "TradeOffRest":
        """The whole curve is left."""
        assert isinstance(budget, TradeOff)
        _must_be_few(budget)
        return cls(budget, budget)

    @classmethod
    def for_odometer(cls) -> "TradeOffRest":
        """None: a tensor product of curves that were chosen adaptively bounds nothing."""
        raise NotCovered(
            "no odometer reads TradeOff losses: a tensor product is the cost of curves that were fixed in advance, and "
            "an adaptive analyst exceeds it (theory, f-DP in general: 41/75 where every tensor says 27/50); use "
            "Filter(TradeOff(...)), or Odometer(GaussianDP)"
        )

    def plus(self, loss: Loss, interaction: Interaction = "endless") -> "TradeOffRest":
        """Take a launch out of what is left."""
        curve = self._curve(loss, interaction)
        rest = None if self.left is None else rest_after(curve.vertices, self.left.vertices)
        return TradeOffRest(self.budget, None if rest is None else TradeOff(rest), *self._read(loss))

    def _read(self, loss: Loss) -> tuple[EpsilonDelta | None, Fraction | None]:
        """The two sums with this loss; None for one that cannot count it, or is not that of the first launch."""
        response = response_of(loss)
        basic, squares = self.basic, self.squares
        if self._unlaunched:
            basic, squares = basic if response is not None else None, squares if isinstance(loss, GaussianDP) else None
        if basic is not None:
            basic = None if response is None else (added_up(basic[0], response[0]), added_up(basic[1], response[1]))
        if squares is not None:
            square = loss.square if isinstance(loss, GaussianDP) else None
            if response is not None and not response[1]:
                square = square_of_pure(response[0])
            squares = None if square is None else added_up(squares, square)
        return basic, squares

    @property
    def _unlaunched(self) -> bool:
        return self.basic is not None and self.squares is not None

    def _curve(self, loss: Loss, interaction: Interaction) -> TradeOff:
        response = response_of(loss)
        if response is not None:
            return TradeOff.of_approx(*response)
        curve = entry(self.ENTERS, loss, interaction)
        if curve is None:
            self._not_covered(
                f"{loss!r} of a mechanism without finite communication"
                if type(loss) in self.ENTERS
                else f"{loss!r}: it has no trade-off curve",
                "PureDP and ApproxDP; of mechanisms that answer once or have finite communication also TradeOff, "
                "GaussianDP, zCDP, RenyiDP and tCDP; and of memoryless ones TradeOff and GaussianDP",
            )
        _must_be_few(curve)
        return curve

    @property
    def total(self) -> TradeOff | Unbounded:
        """What its kind of losses has added up to, where that curve is above the budget's; else the budget."""
        if self.left is None:
            return Unbounded()
        if self._unlaunched:
            return TradeOff(curves.NO_LOSS)
        read = None
        if self.basic is not None and self.basic[1] <= 1:
            read = TradeOff.of_approx(*self.basic)
        elif self.squares is not None:
            read = GaussianDP(rounded_up(sqrt_up(self.squares))).as_tradeoff()
        return read if read is not None and read.lies_above(self.budget) else self.budget

    @property
    def interaction(self) -> Interaction:
        """Memoryless: all launches together are a postprocessing of one draw, by the pair with the budget's curve."""
        return "memoryless"

    def keeps(self, budget: Loss) -> bool:
        """Whether a rest was found at every launch."""
        return self.left is not None and self.budget.within(budget)

    def headroom(self, budget: Loss) -> Fraction:
        """The largest epsilon, cut to 9 digits, whose curve lies above what is left."""
        return ZERO if self.left is None else _largest_pure(self.left)

    def largest_fitting(self, budget: Loss) -> Loss:
        """The curve that is left."""
        return TradeOff(curves.NO_LOSS) if self.left is None else self.left


@lru_cache(maxsize=256)
def _largest_pure(left: TradeOff) -> Fraction:
    """The largest epsilon, cut to 9 digits, whose curve lies above this one."""

    def fits(epsilon: Fraction) -> bool:
        return TradeOff.of_approx(epsilon, 0).lies_above(left)

    low, high = ZERO, Fraction(1)
    while high < _HUGE and fits(high):
        low, high = high, 2 * high
    for _ in range(40):
        middle = short((low + high) / 2)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
