"""`decompose`: from a mechanism to its decomposition, or to the reason why there is none.

A mechanism with infinitely many answers is decomposed by its finite quotient, where one is known (quotients.py).
A decomposition exists exactly if no adversary exceeds delta at epsilon (Lyu 2022, Thm 3), so a refusal carries the
adversary that does.

>>> from counterpoint.verify.finite import OpenDoor
>>> decompose(OpenDoor("1/7"), epsilon=0, delta="1/7", rounds=2)
Decomposition(OpenDoor, growth=1, delta=1/7, in one step)
"""

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, overload

from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.measures import TradeOff, curves
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.numbers import Number, format_number, precision
from counterpoint.numbers.exact import at_least, probability
from counterpoint.privacy.relations import Pair, Relation
from counterpoint.verify.adversary import Adversary, strategy
from counterpoint.verify.curve_simulator import CurveDecomposition
from counterpoint.verify.grow import LIMIT, grow
from counterpoint.verify.induction import Best, Regions, best, hockey_stick, lazy_delta, own_curve
from counterpoint.verify.inputs import check_inputs
from counterpoint.verify.quotients import HIDDEN, Lift, finite_quotient
from counterpoint.verify.simulator import Decomposition
from counterpoint.verify.worlds import Worlds

_ROUNDING = 1e-12
_LARGEST_IN_FLOATS = Fraction(26 * 10**42)  # below e^100


class DeltaTooSmall(InvalidParameter):
    """There is no decomposition at this delta: `delta` is the least one, `adversary` one that needs it, if known."""

    def __init__(self, message: str, delta: Fraction, adversary: Adversary | None = None) -> None:
        super().__init__(message)
        self.delta = delta
        self.adversary = adversary


class CurveTooHigh(InvalidParameter):
    """No decomposition has this curve: `adversary` beats it.

    `curve` is the mechanism's own, exactly; None where its probabilities are not rational.
    """

    def __init__(self, message: str, curve: TradeOff | None, adversary: Adversary) -> None:
        super().__init__(message)
        self.curve = curve
        self.adversary = adversary


@overload
def decompose(
    mechanism: Mechanism,
    epsilon: Number | None = None,
    delta: Number = 0,
    relation: Relation | None = None,
    messages: Iterable[Pair] | None = None,
    rounds: int | None = None,
    *,
    growth: Number | None = None,
    curve: None = None,
    in_two_steps: bool = False,
    rational: bool | None = None,
    limit: int = LIMIT,
) -> Decomposition: ...
@overload
def decompose(
    mechanism: Mechanism,
    epsilon: None = None,
    delta: Number = 0,
    relation: Relation | None = None,
    messages: Iterable[Pair] | None = None,
    rounds: int | None = None,
    *,
    curve: Loss,
    rational: bool | None = None,
    limit: int = LIMIT,
) -> CurveDecomposition: ...
def decompose(  # noqa: PLR0917 - the order of `exact`, after the parameters
    mechanism: Mechanism,
    epsilon: Number | None = None,
    delta: Number = 0,
    relation: Relation | None = None,
    messages: Iterable[Pair] | None = None,
    rounds: int | None = None,
    *,
    growth: Number | None = None,
    curve: Loss | None = None,
    in_two_steps: bool = False,
    rational: bool | None = None,
    limit: int = LIMIT,
) -> Decomposition | CurveDecomposition:
    """The decomposition of a mechanism into E^0, E^1, N^0, N^1, over these pairs of messages and this many rounds.

    With `curve`, a `TradeOff` or a loss that has a trade-off curve, it is the simulation by one draw from the pair of
    distributions that has this curve (Haney et al. 2023, Thm 1.24): for the worlds in this order, left for the bit 0.
    Raises `CurveTooHigh`, with the adversary that shows it, if the curve is above the mechanism's own.

    An `epsilon` is replaced by a rational growth just below e^epsilon; give `growth` = e^epsilon itself for an exact
    one. Raises `DeltaTooSmall`, with the adversary that shows it, if delta is less than the mechanism needs.

    `in_two_steps`: the simulator uses an interactive randomized response, and asks for its noisy bit only once a pair
    of messages differs (Henzinger et al. 2024, Cor 5.7). Henzinger et al. 2024, Lemma 5.6 claims this at the same
    delta, which is false (errata, Henzinger E1). It is true at the lazy delta, which is at most twice as large, and
    equal to delta if every valid sequence of pairs may also be sent with its sides swapped; a smaller delta is refused.

    >>> from counterpoint.verify.finite import OpenDoor
    >>> try:
    ...     decompose(OpenDoor("1/4"), 0, "1/5", rounds=2)
    ... except DeltaTooSmall as error:
    ...     print(error.delta)
    1/4
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidParameter(f"decompose takes a mechanism, not a {type(mechanism).__name__}")
    if curve is not None:
        if (epsilon, delta, growth, in_two_steps) != (None, 0, None, False):
            raise InvalidParameter("give a curve, or an epsilon or a growth with a delta, not both")
        wanted = curve.as_tradeoff()
        worlds, lift = _grown(mechanism, relation, messages, rounds, rational=rational, limit=limit)
        return _by_curve(worlds, wanted, limit, lift)
    ratio, allowed = _growth(epsilon, growth), probability(delta, "delta")
    worlds, lift = _grown(mechanism, relation, messages, rounds, rational=rational, limit=limit)
    if not worlds.rational and ratio > _LARGEST_IN_FLOATS:
        raise InvalidParameter(
            "the probabilities of this mechanism are not rational, so epsilon must be at most about 100"
        )
    number = ratio if worlds.rational else float(ratio)
    found = [best(worlds, hockey_stick(number, bit)) for bit in (0, 1)]
    _require(worlds, found, number, allowed)
    lower = found[0].values, found[1].values
    made = Decomposition(worlds, ratio, allowed, in_two_steps, lower, lazy_delta(worlds, lower), lift)
    if in_two_steps:
        _require_lazy(made)
    return made


def _grown(
    mechanism: Mechanism,
    relation: Relation | None,
    messages: Iterable[Pair] | None,
    rounds: int | None,
    *,
    rational: bool | None,
    limit: int,
) -> tuple[Worlds, Lift]:
    """The tree of the two worlds of the finite quotient, if all of it was enumerated; and the way back."""
    pairs, many, checked = check_inputs(mechanism, relation, messages, rounds)
    finite, cut, lift = finite_quotient(mechanism, pairs)
    worlds = grow(finite, pairs, many, checked, cut=cut, rational=rational, limit=limit, complete=True)
    if worlds.answers_are_cut or worlds.cut > HIDDEN:
        raise NotCovered(
            "the decomposition is a theorem about finitely many answers (Lyu 2022, Thm 3), and this mechanism has "
            "infinitely many, of which no finite quotient is known: decompose it with its answers clamped"
        )
    return worlds, lift


def _by_curve(worlds: Worlds, wanted: TradeOff, limit: int, lift: Lift) -> CurveDecomposition:
    """The decomposition by a curve, if no adversary gets below one of its lines."""
    regions = Regions(worlds, limit)
    reached = regions.of(0, 0)
    number = Fraction if worlds.rational else float
    for slope, height in curves.lines(wanted.vertices):
        least = sum(min(number(slope) * p, q) for p, q in reached) * worlds.factor
        if _exceeds(worlds, number(height) - least, Fraction(0)):
            bit, growth = (1, slope) if slope >= 1 else (0, 1 / slope)
            found = best(worlds, hockey_stick(number(growth), bit))
            raise CurveTooHigh(
                f"the curve is too high: at slope {format_number(slope)} it is at least "
                f"{format_number(height)}, and an adversary "
                f"reaches {format_number(Fraction(least))} (see .adversary); give a lower one, such as "
                "exact(...).trade_off()",
                own_curve(worlds, regions) if worlds.rational else None,
                strategy(worlds, found, number(growth), bit),
            )
    return CurveDecomposition(worlds, wanted, regions, lift)


def _growth(epsilon: Number | None, growth: Number | None) -> Fraction:
    if (epsilon is None) == (growth is None):
        raise InvalidParameter("give exactly one of epsilon and growth, which is e^epsilon")
    if growth is not None:
        return at_least(growth, 1, "the growth")
    exponent = at_least(epsilon, 0, "epsilon")
    return Fraction(precision(30)(exponent).exp().lower) if exponent else Fraction(1)


def _exceeds(worlds: Worlds, needed: Any, allowed: Fraction) -> bool:
    return bool(needed > allowed if worlds.rational else needed > float(allowed) + _ROUNDING)


def _require(worlds: Worlds, found: list[Best], growth: Any, allowed: Fraction) -> None:
    bit = int(found[1].value > found[0].value)
    if _exceeds(worlds, found[bit].value, allowed):
        least = Fraction(found[bit].value)
        raise DeltaTooSmall(
            f"delta = {format_number(allowed)} is too small: an adversary reaches {format_number(least)} (see "
            ".adversary); give at "
            "least that",
            least,
            strategy(worlds, found[bit], growth, bit),
        )


def _require_lazy(made: Decomposition) -> None:
    needed = made.lazy(0, 0) * made.worlds.factor
    if _exceeds(made.worlds, needed, made.delta):
        raise DeltaTooSmall(
            f"delta = {format_number(made.delta)} is enough in one step, but two steps need the lazy delta, "
            f"{format_number(Fraction(needed))}: until a pair differs both worlds must be exposed alike, and "
            "this game is not "
            "symmetric. Give that delta, or messages and a relation that allow every pair to be swapped "
            "(errata, Henzinger E1)",
            Fraction(needed),
        )
