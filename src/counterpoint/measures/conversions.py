"""Conversions between measures: one table, from a measure to another, and the theorem at each entry.

`loss.as_zcdp()` looks its own type up here. A conversion is tight, or rounded toward more loss, or raises `NotCovered`
because no theorem gives one. The entries of `Loss` itself are for every measure without an entry of its own: (epsilon,
delta) is read off the curve that each measure has, and the others go through pure DP.

`RESPONSES` beside it is no table of conversions: it says which randomized response simulates a mechanism with a loss,
which is what most composition theorems ask.

>>> from counterpoint import zCDP
>>> zCDP(0.05).as_renyi(8), PureDP(1).as_zcdp(), response_of(PureDP(1)), response_of(zCDP(0.5))
(RenyiDP(alpha=8, epsilon=0.4), zCDP(0.5), (1, Fraction(0, 1)), None)
"""

import math
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

from counterpoint.errors import NotCovered
from counterpoint.measures.approximate import ApproxDP, OneSidedDP, Probabilistic, ProbabilisticDP
from counterpoint.measures.concentrated import tCDP, zCDP
from counterpoint.measures.divergences import concentrated_of_pure, renyi_of_pure
from counterpoint.measures.gaussian import GaussianDP, SampledGaussianDP
from counterpoint.measures.gaussian_curve import gaussian_of_pure, normal_quantile, sampled_divergence
from counterpoint.measures.loss import CONVERSIONS, EpsilonDelta, Loss
from counterpoint.measures.pure import PureDP
from counterpoint.measures.renyi import RenyiDP
from counterpoint.measures.tradeoff import TradeOff
from counterpoint.numbers import Interval, Number, Precision, certify, format_number
from counterpoint.numbers.exact import above_one, at_least, probability, whole
from counterpoint.numbers.rounding import DIGITS, rounded_up

_ZERO = Fraction(0)

RESPONSES: dict[type[Loss], Callable[[Any], EpsilonDelta]] = {
    PureDP: lambda loss: (loss.epsilon, _ZERO),
    ApproxDP: lambda loss: (loss.epsilon, loss.delta),
    ProbabilisticDP: lambda loss: (loss.epsilon, loss.delta),
}
"""The measures whose mechanisms a randomized response simulates, and its (epsilon, delta)."""


def response_of(loss: Loss) -> EpsilonDelta | None:
    """The (epsilon, delta) of the randomized response that simulates a mechanism, whatever it is asked; None for none.

    See Henzinger et al. 2024, Lemma 4.7, Thm 12.4; Haney et al. 2023, Thm 1.19. This is no conversion: zCDP converts to
    (epsilon, delta), at one delta, and no randomized response simulates a Gaussian.

    >>> response_of(ApproxDP(1, 0.1)), response_of(zCDP(1))
    ((1, 0.1), None)
    """
    response = RESPONSES.get(type(loss))
    return None if response is None else response(loss)


def _itself(loss: Loss, *_: object) -> Loss:
    return loss


# To pure DP.


def _any_as_pure(loss: Loss) -> PureDP:
    """Only a loss that is nothing at all."""
    if not loss._is_zero():
        raise loss._no_conversion("PureDP")
    return PureDP(0)


def _approx_as_pure(loss: ApproxDP | Probabilistic) -> PureDP:
    """PureDP(epsilon) if delta is 0; `NotCovered` otherwise."""
    if loss.delta:
        raise loss._no_conversion("PureDP")
    return PureDP(loss.epsilon)


def _tradeoff_as_pure(loss: TradeOff) -> PureDP:
    """The logarithm of the steepest slope, either way, if f(0) = 1 and f is 0 only at 1; tight."""
    epsilon = loss._least_epsilon(_ZERO)
    if epsilon is None:
        raise loss._no_conversion("PureDP")
    return PureDP(epsilon)


# To (epsilon, delta).


def _any_as_approx(loss: Loss, delta: Number) -> ApproxDP:
    """The point of its curve at this delta; lossy, since it keeps one point."""
    allowed = probability(delta, "delta")
    epsilon = loss._least_epsilon(allowed)
    if epsilon is None:
        raise NotCovered(f"{loss!r} has no finite epsilon at delta = {format_number(allowed)}; try a larger delta")
    return ApproxDP(epsilon, allowed)


# To probabilistic DP.


def _any_as_probabilistic(loss: Loss, epsilon: Number) -> ProbabilisticDP:
    """Through its best (e, delta_at(e)) with e < epsilon; lossy (errata, Whitehouse E4).

    Against e^e, delta is convex, so its quotient by 1 - e^(e - epsilon) has a single valley, which a golden
    section finds; whatever e it ends at proves what is returned.

    >>> from counterpoint import zCDP
    >>> float(zCDP(0.01).as_probabilistic(1).delta)
    3.1242607976421365e-11
    """
    target = at_least(epsilon, 0, "epsilon")
    with suppress(NotCovered):
        return loss.as_pure().as_probabilistic(target)
    if target == 0:
        raise NotCovered(f"{loss!r} has no conversion to ProbabilisticDP at epsilon 0; choose an epsilon above 0")

    def height(fraction: float) -> Fraction:
        below = target * Fraction(fraction)
        return _tail_beyond(below, loss._least_delta(below), target)

    return ProbabilisticDP(target, min(Fraction(1), height(_valley(height))))


def _pure_as_probabilistic(loss: PureDP, epsilon: Number | None) -> ProbabilisticDP:
    """(epsilon, 0)-pDP; `NotCovered` at a smaller epsilon (randomized response always exceeds it)."""
    return ProbabilisticDP(_from(loss, loss.epsilon, epsilon), 0)


def _approx_as_probabilistic(loss: ApproxDP, epsilon: Number) -> ProbabilisticDP:
    """(eps', delta (1+e^-eps')/(1-e^(eps-eps')))-pDP for an eps' above eps (errata, Whitehouse E4); tight.

    >>> float(ApproxDP(1, 1e-3).as_probabilistic(2).delta)
    0.0017960739725672106
    """
    target = at_least(epsilon, 0, "epsilon")
    if loss.delta == 0:
        return loss.as_pure().as_probabilistic(target)
    if target <= loss.epsilon:
        raise loss._no_conversion(
            f"ProbabilisticDP at epsilon {format_number(target)}",
            f"choose an epsilon above {format_number(loss.epsilon)}",
        )
    return ProbabilisticDP(target, min(Fraction(1), _tail_beyond(loss.epsilon, loss.delta, target)))


def _one_way_as_probabilistic(loss: Probabilistic, epsilon: Number | None) -> ProbabilisticDP:
    """What holds from both sides, at this epsilon or any larger one."""
    target = _from(loss, loss.epsilon, epsilon)
    return ProbabilisticDP(target, loss._both_sides(target))


def _tradeoff_as_probabilistic(loss: TradeOff, epsilon: Number) -> ProbabilisticDP:
    """By the best (e, delta) below epsilon, which is at 0 or where the slope of the curve changes; lossy."""
    target = at_least(epsilon, 0, "epsilon")
    corners = {rounded_up(delta) for _, delta in loss._demands()} | {loss._least_delta(_ZERO)}
    found = []
    for point in map(loss.as_approx, corners):
        with suppress(NotCovered):
            found.append(point.as_probabilistic(target))
    if not found:
        raise loss._no_conversion("ProbabilisticDP at epsilon 0", "choose an epsilon above 0")
    return min(found, key=lambda point: point.delta)


def _from(loss: Loss, least: Fraction, epsilon: Number | None) -> Fraction:
    target = least if epsilon is None else at_least(epsilon, 0, "epsilon")
    if target < least:
        raise loss._no_conversion(
            f"ProbabilisticDP at epsilon {format_number(target)}",
            f"choose an epsilon of at least {format_number(least)}",
        )
    return target


def _tail_beyond(below: Fraction, delta: Fraction, epsilon: Fraction) -> Fraction:
    """P[|loss| > epsilon] under (below, delta)-DP: delta (1+e^-epsilon)/(1-e^(below-epsilon))."""

    def formula(p: Precision) -> Interval:
        return delta * (1 + p(-epsilon).exp()) / -p(below - epsilon).expm1()

    return rounded_up(certify(formula, DIGITS).upper)


_GOLDEN = (math.sqrt(5) - 1) / 2


def _valley(height: Callable[[float], Fraction]) -> float:
    """Where between 0 and 1 a function with a single valley is about lowest."""
    low, high = 0.0, 1.0
    left, right = 1 - _GOLDEN, _GOLDEN
    at_left, at_right = height(left), height(right)
    for _ in range(45):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = height(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = height(right)
    return left if at_left <= at_right else right


# To Renyi DP of one order.


def _pure_as_renyi(loss: PureDP, alpha: Number) -> RenyiDP:
    """tau_alpha(epsilon), the divergence of randomized response; tight (theory, The Renyi filter by reduction).

    >>> float(PureDP(0.01).as_renyi(16).epsilon)
    0.000796813728723477
    """
    order = above_one(alpha, "alpha")
    tau = certify(lambda p: renyi_of_pure(loss.epsilon, order, p), DIGITS)
    return RenyiDP(order, min(loss.epsilon, rounded_up(tau.upper)))  # it never exceeds epsilon


def _zcdp_as_renyi(loss: zCDP, alpha: Number) -> RenyiDP:
    """Alpha rho; exact.

    >>> zCDP(0.1).as_renyi(8)
    RenyiDP(alpha=8, epsilon=0.8)
    """
    order = above_one(alpha, "alpha")
    return RenyiDP(order, rounded_up(order * loss.rho))


def _tcdp_as_renyi(loss: tCDP, alpha: Number) -> RenyiDP:
    """Alpha rho at an order below omega; exact.

    >>> tCDP(0.1, 6).as_renyi(8)
    Traceback (most recent call last):
    ...
    counterpoint.errors.NotCovered: tCDP(rho=0.1, omega=6) has no conversion to RenyiDP at order 8; ...
    """
    order = above_one(alpha, "alpha")
    if order >= loss.omega and loss.rho:
        raise loss._no_conversion(
            f"RenyiDP at order {format_number(order)}", f"choose an order below {format_number(loss.omega)}"
        )
    return RenyiDP(order, rounded_up(order * loss.rho))


def _renyi_as_renyi(loss: RenyiDP, alpha: Number) -> RenyiDP:
    """The same bound at an order that is not above the stated one (D_alpha grows with alpha); lossy.

    >>> RenyiDP(16, 0.2).as_renyi(8)
    RenyiDP(alpha=8, epsilon=0.2)
    """
    order = above_one(alpha, "alpha")
    if order > loss.alpha and loss.epsilon:
        raise loss._no_conversion(
            f"RenyiDP at order {format_number(order)}", f"choose an order of at most {format_number(loss.alpha)}"
        )
    return RenyiDP(order, loss.epsilon)


def _gaussian_as_renyi(loss: GaussianDP, alpha: Number) -> RenyiDP:
    """The divergence alpha mu^2/2 of the two Gaussians; exact."""
    return loss.as_zcdp().as_renyi(alpha)


def _sampled_as_renyi(loss: SampledGaussianDP, alpha: Number) -> RenyiDP:
    """At whole orders by a sum, and between them by the chord of the log moments; never more than on all units.

    See theory, Sampled Gaussian steps; Mironov et al. 2019 have the sum.

    >>> round(float(SampledGaussianDP(1, 0.01).as_renyi(5).epsilon), 12)
    0.000468667242
    """
    order = above_one(alpha, "alpha")
    on_all = order * loss.mu**2 / 2
    if order > _MOST_TERMS:
        return RenyiDP(order, on_all)
    low, part = divmod(order, 1)
    moment = _log_moment(loss, int(low)) * (1 - part)
    if part:
        moment += _log_moment(loss, int(low) + 1) * part
    return RenyiDP(order, min(on_all, rounded_up(moment / (order - 1))))


_MOST_TERMS = 2000
"""Beyond this order a sampled step counts as one on all units: the sum would take too long."""


@lru_cache(maxsize=4096)
def _log_moment(loss: SampledGaussianDP, order: int) -> Fraction:
    """(order - 1) D_order, rounded up; 0 at order 1."""
    if order < 2:
        return Fraction(0)
    return rounded_up(certify(lambda p: sampled_divergence(loss.mu, loss.rate, order, p), 30).upper)


def _tradeoff_as_renyi(loss: TradeOff, alpha: Number) -> RenyiDP:
    """The divergence, either way, of the pair of distributions that has this curve; tight."""
    order, most = above_one(alpha, "alpha"), loss._through_pure("RenyiDP").epsilon
    if most == 0 or order * most > 10**12:  # D_alpha never exceeds the pure epsilon
        return RenyiDP(order, most)
    return RenyiDP(order, max(bound for bound in loss._divergences(order, _ZERO) if bound is not None))


# To zero-concentrated DP. `tight` asks for the smallest rho where that costs more to compute.


def _pure_as_zcdp(loss: PureDP, tight: bool) -> zCDP:
    """epsilon^2/2 (Bun and Steinke 2016, Prop 1.4), exact, and lossy for a large epsilon; or epsilon tanh(epsilon/2).

    >>> PureDP(20).as_zcdp(), PureDP(20).as_zcdp(tight=True).rho < 20
    (zCDP(200), True)
    """
    rho = rounded_up(loss.epsilon**2 / 2)
    if not tight:
        return zCDP(rho)
    least = certify(lambda p: concentrated_of_pure(loss.epsilon, p), DIGITS)
    return zCDP(min(rho, rounded_up(least.upper)))


def _gaussian_as_zcdp(loss: GaussianDP, _tight: bool) -> zCDP:
    """mu^2/2; exact as a bound on divergences, lossy as a curve."""
    return zCDP(rounded_up(loss.square / 2))


def _tradeoff_as_zcdp(loss: TradeOff, _tight: bool) -> zCDP:
    """The better of what its pure and its Gaussian DP imply; lossy."""
    return zCDP(min(loss.as_pure().as_zcdp(tight=True).rho, loss.as_gaussian().as_zcdp().rho))


# To truncated concentrated DP.


def _pure_as_tcdp(loss: PureDP, omega: Number) -> tCDP:
    """(epsilon tanh(epsilon/2), omega)-tCDP; tight, because the smallest orders decide."""
    return tCDP(loss.as_zcdp(tight=True).rho, omega)


def _zcdp_as_tcdp(loss: zCDP, omega: Number) -> tCDP:
    """The same rho, claimed only below omega."""
    return tCDP(loss.rho, omega)


def _tcdp_as_tcdp(loss: tCDP, omega: Number) -> tCDP:
    """The same rho, claimed only below a smaller omega."""
    order = above_one(omega, "omega")
    if order > loss.omega and loss.rho:
        raise loss._no_conversion(
            f"tCDP up to order {format_number(order)}", f"choose an order below {format_number(loss.omega)}"
        )
    return tCDP(loss.rho, order)


def _renyi_as_tcdp(loss: RenyiDP, omega: Number) -> tCDP:
    """(epsilon, omega)-tCDP for an omega up to alpha: D at an order below is at most epsilon; lossy."""
    return tCDP(loss.as_renyi(omega).epsilon, omega)


def _gaussian_as_tcdp(loss: GaussianDP, omega: Number) -> tCDP:
    """(mu^2/2, omega)-tCDP."""
    return loss.as_zcdp().as_tcdp(omega)


def _tradeoff_as_tcdp(loss: TradeOff, omega: Number) -> tCDP:
    """The better of its zCDP and its divergence at omega; lossy."""
    return tCDP(min(loss.as_zcdp().rho, loss.as_renyi(omega).epsilon), omega)


# To Gaussian DP.


def _pure_as_gaussian(loss: PureDP) -> GaussianDP:
    """The smallest mu there is, 2 Phi^-1(e^eps/(1+e^eps)).

    The trade-off curve of eps-DP is two segments, (0, 1) to (q, q) to (1, 0), with q = 1/(1+e^eps). G_mu
    is convex with the same ends, so it lies below that curve exactly if it does at the corner: G_mu(q) =
    Phi(Phi^-1(1-q) - mu) <= q, that is mu >= 2 Phi^-1(1-q).

    >>> float(PureDP(1).as_gaussian().mu)
    1.2320353853449009
    """
    return GaussianDP(rounded_up(gaussian_of_pure(loss.epsilon)))


def _tradeoff_as_gaussian(loss: TradeOff) -> GaussianDP:
    """The smallest mu whose curve is below: by convexity only the vertices matter; tight.

    G_mu(a) <= b exactly if mu >= Q^-1(a) + Q^-1(b).
    """
    loss._through_pure("GaussianDP")
    inner = [normal_quantile(a) + normal_quantile(b) for a, b in loss.vertices[1:-1]]
    return GaussianDP(rounded_up(max((mu.upper for mu in inner), default=Decimal(0))))


# To a trade-off curve. `points` says how finely a curve without corners is drawn.


def _approx_as_tradeoff(loss: PureDP | ApproxDP | Probabilistic, _points: int) -> TradeOff:
    """f_(epsilon, delta), in two or three segments."""
    return TradeOff.of_approx(loss.epsilon, 0 if isinstance(loss, PureDP) else loss.delta)


def _gaussian_as_tradeoff(loss: GaussianDP, points: int) -> TradeOff:
    """The curve G_mu from below: the upper envelope of `points` pairs of tangents; lossy between them.

    >>> GaussianDP(1).implies(GaussianDP(1).as_tradeoff(points=4))
    True
    """
    count = whole(points, 1, "points")
    return TradeOff.proven_by(loss, [rounded_up(8 * loss.mu * k / count) for k in range(count)])


CONVERSIONS.update(
    {
        (Loss, "PureDP"): _any_as_pure,
        (PureDP, "PureDP"): _itself,
        (ApproxDP, "PureDP"): _approx_as_pure,
        (ProbabilisticDP, "PureDP"): _approx_as_pure,
        (OneSidedDP, "PureDP"): _approx_as_pure,
        (TradeOff, "PureDP"): _tradeoff_as_pure,
        (Loss, "ApproxDP"): _any_as_approx,
        (Loss, "ProbabilisticDP"): _any_as_probabilistic,
        (PureDP, "ProbabilisticDP"): _pure_as_probabilistic,
        (ApproxDP, "ProbabilisticDP"): _approx_as_probabilistic,
        (ProbabilisticDP, "ProbabilisticDP"): _one_way_as_probabilistic,
        (OneSidedDP, "ProbabilisticDP"): _one_way_as_probabilistic,
        (TradeOff, "ProbabilisticDP"): _tradeoff_as_probabilistic,
        (Loss, "RenyiDP"): lambda loss, alpha: loss._through_pure("RenyiDP").as_renyi(alpha),
        (PureDP, "RenyiDP"): _pure_as_renyi,
        (zCDP, "RenyiDP"): _zcdp_as_renyi,
        (tCDP, "RenyiDP"): _tcdp_as_renyi,
        (RenyiDP, "RenyiDP"): _renyi_as_renyi,
        (GaussianDP, "RenyiDP"): _gaussian_as_renyi,
        (SampledGaussianDP, "RenyiDP"): _sampled_as_renyi,
        (TradeOff, "RenyiDP"): _tradeoff_as_renyi,
        (Loss, "zCDP"): lambda loss, tight: loss._through_pure("zCDP").as_zcdp(tight=tight),
        (PureDP, "zCDP"): _pure_as_zcdp,
        (zCDP, "zCDP"): _itself,
        (GaussianDP, "zCDP"): _gaussian_as_zcdp,
        (TradeOff, "zCDP"): _tradeoff_as_zcdp,
        (Loss, "tCDP"): lambda loss, omega: loss._through_pure("tCDP").as_tcdp(omega),
        (PureDP, "tCDP"): _pure_as_tcdp,
        (zCDP, "tCDP"): _zcdp_as_tcdp,
        (tCDP, "tCDP"): _tcdp_as_tcdp,
        (RenyiDP, "tCDP"): _renyi_as_tcdp,
        (GaussianDP, "tCDP"): _gaussian_as_tcdp,
        (TradeOff, "tCDP"): _tradeoff_as_tcdp,
        (Loss, "GaussianDP"): lambda loss: loss._through_pure("GaussianDP").as_gaussian(),
        (PureDP, "GaussianDP"): _pure_as_gaussian,
        (GaussianDP, "GaussianDP"): _itself,
        (TradeOff, "GaussianDP"): _tradeoff_as_gaussian,
        (Loss, "TradeOff"): lambda loss, points: loss._through_pure("TradeOff").as_tradeoff(points),
        (PureDP, "TradeOff"): _approx_as_tradeoff,
        (ApproxDP, "TradeOff"): _approx_as_tradeoff,
        (ProbabilisticDP, "TradeOff"): _approx_as_tradeoff,
        (OneSidedDP, "TradeOff"): _approx_as_tradeoff,
        (GaussianDP, "TradeOff"): _gaussian_as_tradeoff,
        (TradeOff, "TradeOff"): _itself,
    }
)
