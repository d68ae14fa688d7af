"""f-differential privacy: a curve below which no test of "which neighbour was it?" can push its two errors.

`TradeOff` holds a convex, piecewise linear curve with rational vertices (Henzinger et al. 2024, Def 14.2 and 14.3; with
randomised tests: errata, Henzinger E20). The promise is about ordered pairs, T(M(x), M(x')) >= f, so a curve that is
not its own mirror image is read both ways whenever (epsilon, delta) is asked for. What is irrational is
rounded below.

>>> from counterpoint import TradeOff
>>> coin = TradeOff.between([0.5, 0.5], [0.1, 0.9])
>>> coin(0.25), coin.delta_at(0)
(Fraction(11, 20), 0.4)
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, ClassVar, Self

from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.measures import curves
from counterpoint.measures.divergences import approximate_divergence
from counterpoint.measures.loss import Loss
from counterpoint.numbers import Interval, Number, Precision, certify, float_up, format_number, precision
from counterpoint.numbers.exact import above_one, at_least, exact, probability, whole
from counterpoint.numbers.parameters import Parameter, Read
from counterpoint.numbers.rounding import DIGITS, certified_delta, rounded_down, rounded_up

_SLOPE_DIGITS = 20  # fewer than inverses and conversions keep, so that a loss is seen to imply its own curve
_HUGE = 10**4


def _coordinate(value: object) -> Fraction:
    # a vertex that was computed may be longer than a number that was typed
    return value if isinstance(value, Fraction) else exact(value, "a vertex")


def _curve(vertices: Iterable[tuple[object, object]], _what: str) -> curves.Points:
    """Read the vertices of a trade-off curve: convex, and below 1 - alpha."""
    points = tuple((_coordinate(alpha), _coordinate(beta)) for alpha, beta in vertices)
    alphas = [alpha for alpha, _ in points]
    if len(points) < 2 or alphas[0] != 0 or points[-1] != (Fraction(1), Fraction(0)):
        raise InvalidParameter("a trade-off curve starts at (0, f(0)) and ends at (1, 0)")
    if any(left >= right for left, right in pairwise(alphas)):
        raise InvalidParameter("give the vertices of a trade-off curve in increasing order of their first coordinates")
    corners = curves.without_flat_points(points)
    if not curves.is_convex(corners) or any(not 0 <= beta <= 1 - alpha for alpha, beta in corners):
        raise InvalidParameter("a trade-off curve is convex and lies between 0 and 1 - alpha")
    return corners


Vertices = Annotated[Parameter[curves.Points, Iterable[tuple[Number, Number]]], Read(_curve)]
"""A parameter that is a trade-off curve, given by its vertices."""


class TradeOff(Loss, Value, frozen=True):
    """f-DP for the convex curve through the vertices given, from (0, f(0)) to (1, 0).

    >>> TradeOff([(0, 1), (0.25, 0.25), (1, 0)])(0.125)
    Fraction(5, 8)
    """

    vertices: Vertices

    def __repr__(self) -> str:
        return f"TradeOff([{', '.join(f'({format_number(a)}, {format_number(b)})' for a, b in self.vertices)}])"

    @classmethod
    def between(cls, first: Sequence[Number], second: Sequence[Number]) -> "TradeOff":
        """The curve T(P, Q) of two distributions on the same finite set.

        >>> TradeOff.between([0.5, 0.5], [0.1, 0.9])
        TradeOff([(0, 1), (0.5, 0.1), (1, 0)])
        """
        ps, qs = ([probability(value, "a probability") for value in given] for given in (first, second))
        if len(ps) != len(qs) or sum(ps) != 1 or sum(qs) != 1:
            raise InvalidParameter("give two lists of probabilities for the same outcomes, each adding up to 1")
        return cls(curves.of_atoms(zip(ps, qs, strict=True)))

    @classmethod
    def of_approx(cls, epsilon: Number, delta: Number) -> "TradeOff":
        """f_(epsilon, delta), the curve of (epsilon, delta)-DP; e^epsilon is rounded up.

        >>> TradeOff.of_approx(0, 0.1)
        TradeOff([(0, 0.9), (0.9, 0), (1, 0)])
        """
        exponent, exposed = at_least(epsilon, 0, "epsilon"), probability(delta, "delta")
        if exponent > _HUGE:  # nothing is left that could be written down
            return cls([(0, 0), (1, 0)])
        growth = certify(lambda p: p(exponent).exp(), DIGITS).upper
        slope = Fraction(precision(_SLOPE_DIGITS).ceiling.create_decimal(growth))
        return cls(curves.envelope([(slope, 1 - exposed), (1 / slope, (1 - exposed) / slope)]))

    @classmethod
    def highest(cls, several: Iterable["TradeOff"]) -> "TradeOff":
        """The upper envelope: what holds for something that has all of these losses at once."""
        return cls(curves.envelope([line for curve in several for line in curves.lines(curve.vertices)]))

    @classmethod
    def proven_by(cls, loss: Loss, epsilons: Iterable[Fraction]) -> "TradeOff":
        """The highest curve that follows from the deltas of a loss at these epsilons: never above its own curve."""
        return _proven_by(loss, tuple(epsilons))

    def __call__(self, alpha: Number) -> Fraction:
        """f(alpha): the least type II error at type I error alpha."""
        return curves.value_at(self.vertices, probability(alpha, "alpha"))

    def lies_above(self, other: "TradeOff") -> bool:
        """Whether this curve is nowhere below the other one: it then loses no more.

        >>> TradeOff.of_approx(0, 0).lies_above(TradeOff.of_approx(1, 0))
        True
        """
        return curves.lies_above(self.vertices, other.vertices)

    def tensor(self, other: "TradeOff") -> "TradeOff":
        """The curve of two independent tests together (f tensor g); exact.

        >>> fair_or_not = TradeOff.between([0.5, 0.5], [0, 1])
        >>> fair_or_not.tensor(fair_or_not)
        TradeOff([(0, 1), (0.25, 0), (1, 0)])
        """
        return TradeOff(_product(self.vertices, other.vertices))

    def tensor_power(self, copies: int) -> "TradeOff":
        """The curve of this number of independent tests with this curve; exact.

        >>> coin = TradeOff.between([0.5, 0.5], [0.1, 0.9])
        >>> coin.tensor_power(3) == coin.tensor(coin).tensor(coin)
        True
        """
        return TradeOff(_doubled(_product, self.vertices, whole(copies, 0, "copies")))

    def _epsilon_bounds(self, delta: Fraction) -> Interval | None:
        """The logarithm of the steepest line that the curve needs at this delta."""
        ratio = self._steepest(delta)
        return None if ratio is None else certify(lambda p: p(ratio).log(), DIGITS)

    def _delta_bounds(self, epsilon: Fraction) -> Interval:
        """The largest of 1 - e^eps alpha - f(alpha), and of the same with alpha and f(alpha) exchanged."""
        if epsilon == 0:
            return precision(DIGITS)(max(1 - a - b for a, b in self.vertices))
        bounds = certified_delta(lambda p: self._stick(p(min(epsilon, Fraction(_HUGE))).exp(), p))
        if epsilon <= _HUGE:
            return bounds
        exposed = max([1 - a - b for a, b in self.vertices if 0 in (a, b)])
        return precision(DIGITS).between(precision(DIGITS)(exposed).lower, bounds.upper)

    def group(self, size: int) -> "TradeOff":
        """A unit of m places: 1 - (1-f) o ... o (1-f) (Dong et al. 2022, Thm 2.14); exact.

        >>> TradeOff([(0, 1), (0.25, 0.25), (1, 0)]).group(2)
        TradeOff([(0, 1), (1/12, 0.25), (0.25, 1/12), (1, 0)])
        """
        return TradeOff(_doubled(_through, self.vertices, whole(size, 0, "size")))

    def within(self, budget: Loss) -> bool:
        """Whether the curve lies above the budget's."""
        return isinstance(budget, TradeOff) and self.lies_above(budget)

    def used_of(self, budget: Loss, parts: int) -> int:
        """None of it before the first launch and then all: a curve is not spent in equal parts."""
        if not self.within(budget):
            return parts + 1
        return 0 if self.vertices == curves.NO_LOSS else parts

    theorem_if_fixed: ClassVar[str] = (
        "tensor product, with finite communication or without memory (Haney et al. 2023, Thm 1.24; Henzinger et al. "
        "2024, Cor 14.7)"
    )
    slow_to_compose: ClassVar[bool] = True

    @classmethod
    def compose_fixed(cls, counted: Mapping[Self, int]) -> tuple["TradeOff", str]:
        """The tensor product (Haney et al. 2023, Thm 1.24; Henzinger et al. 2024, Cor 14.7)."""
        (first, *rest) = [loss.tensor_power(copies) for loss, copies in counted.items()]
        for other in rest:
            first = first.tensor(other)
        return first, "tensor product"

    @property
    def needs_finite_communication(self) -> bool:
        """As every measure of f-DP."""
        return True

    def renyi_at(self, alpha: Number, delta: Number = 0) -> float:
        """The delta-approximate Renyi divergence of the pair that has this curve, either way, rounded up.

        See Whitehouse et al. 2023, Def 9; infinite where more than delta is exposed.

        >>> coin = TradeOff.between([0.5, 0.5], [0.1, 0.9])
        >>> round(coin.renyi_at(2), 6), round(coin.renyi_at(2, delta=0.1), 6), coin.renyi_at(2, delta=0.4)
        (1.021651, 0.753772, 0.0)
        """
        found = self._divergences(above_one(alpha, "alpha"), probability(delta, "delta"))
        return max(math.inf if bound is None else float_up(bound) for bound in found)

    def _divergences(self, order: Fraction, delta: Fraction) -> list[Fraction | None]:
        """Those of P from Q and of Q from P; None for an infinite one."""
        pairs = curves.atoms(self.vertices)
        return [approximate_divergence(some, order, delta) for some in (pairs, [(q, p) for p, q in pairs])]

    def _advice(self) -> str:
        return "only a curve that starts at (0, 1) and stays above 0 before 1 converts; as_approx(delta) always works"

    def _steepest(self, delta: Fraction) -> Fraction | None:
        """The largest of 1, (1-delta-f(alpha))/alpha and (1-delta-alpha)/f(alpha); None if infinite."""
        worst = Fraction(1)
        for a, b in [*self.vertices, *((b, a) for a, b in self.vertices)]:
            excess = 1 - delta - b
            if excess > 0 and a == 0:
                return None
            worst = max(worst, excess / a if excess > 0 else worst)
        return worst

    def _stick(self, growth: Interval, p: Precision) -> Interval:
        heights = [p(1 - b) - growth * a for a, b in [*self.vertices, *((b, a) for a, b in self.vertices)]]
        return p.between(max(h.lower for h in heights), max(h.upper for h in heights)).at_least(0)

    def _least_delta(self, epsilon: Fraction) -> Fraction:
        if epsilon == 0:
            return rounded_up(max(1 - a - b for a, b in self.vertices))
        return super()._least_delta(epsilon)

    def _follows_from(self, loss: Loss) -> bool:
        if isinstance(loss, TradeOff):
            return loss.lies_above(self)
        return all(loss._covers(epsilon, delta) for epsilon, delta in self._demands())

    def _demands(self) -> set[tuple[Fraction, Fraction]]:
        """The (epsilon, delta)-DP guarantees that together are this curve, one for each of its lines.

        The line c - s alpha is below the curve of something exactly if it is (log s, 1-c)-DP; a line with a
        slope below 1 is read from the other axis.
        """
        sides = [(s, c) if s >= 1 else (1 / s, c / s) for s, c in curves.lines(self.vertices) if s > 0]
        return {(_log_down(slope), 1 - height) for slope, height in sides}


@lru_cache(maxsize=64)
def _proven_by(loss: Loss, epsilons: tuple[Fraction, ...]) -> TradeOff:
    """Remembered, since it takes long, and losses recur."""
    return TradeOff.highest(TradeOff.of_approx(epsilon, loss._least_delta(epsilon)) for epsilon in epsilons)


def _doubled(
    join: Callable[[curves.Points, curves.Points], curves.Points], curve: curves.Points, times: int
) -> curves.Points:
    """`times` equal curves, joined by an associative operation."""
    if times == 0:
        return curves.NO_LOSS
    points = curve
    for bit in f"{times:b}"[1:]:  # from the first binary digit to the last: double, and add one for a 1
        points = join(points, points)
        points = join(points, curve) if bit == "1" else points
    return points


def _through(one: curves.Points, other: curves.Points) -> curves.Points:
    _must_be_short(curves.length(one) + curves.length(other), 2**20)
    return curves.through(one, other)


def _product(one: curves.Points, other: curves.Points) -> curves.Points:
    _must_be_short(len(one) * curves.length(other) + len(other) * curves.length(one), 2**24)
    return curves.product(one, other)


def _must_be_short(bits: int, most: int) -> None:
    """Refuse what would take more than some seconds to write out: each step lengthens the list and its numbers."""
    if bits > most:
        raise NotCovered(
            "the composed curve would have too many vertices; convert first, by as_approx(delta), or by as_pure() or "
            "as_gaussian() if the curve starts at (0, 1) and stays above 0 before 1"
        )


def _log_down(value: Fraction) -> Fraction:
    return rounded_down(certify(lambda p: p(value).log(), DIGITS).lower)
