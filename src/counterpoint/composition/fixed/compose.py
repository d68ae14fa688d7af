"""What losses fixed up front cost together: `compose.optimal`, and the older bounds it improves on.

The costs hold for any interleaving.

The multiset must be chosen before the first launch; parameters chosen on the way need a filter (for them the optimal
bound is false). (eps, delta) losses compose by Vadhan and Wang 2021, Cor 4; Lyu 2022, Thm 1 (continual: Henzinger et
al. 2024, Thm 4.12); zCDP and Renyi by Lyu 2022, Thm 2 (Henzinger et al. 2024, Cor 13.4); Gaussian and f-DP losses, with
finite communication, by the tensor product (Haney et al. 2023, Thm 1.24; Henzinger et al. 2024, Cor 14.7).

>>> from counterpoint import ApproxDP, GaussianDP, compose
>>> losses = [ApproxDP(0.1, 1e-9)] * 100
>>> compose.optimal(losses).epsilon_at(1e-6), compose.advanced(losses).epsilon_at(1e-6)
(4.787723760811647, 5.776111200113309)
>>> compose.optimal([GaussianDP(3), GaussianDP(4)]).loss
GaussianDP(5)
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import TypeVar

from counterpoint.composition.fixed.closed import Advanced, vadhan_wang_loss
from counterpoint.composition.fixed.composed import Composed, Total
from counterpoint.composition.fixed.exposure import Parts
from counterpoint.composition.fixed.optimal import Optimal
from counterpoint.composition.rules.conversions import epsilon_and_delta
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.numbers import spell, sqrt_up
from counterpoint.privacy.loss import Loss, rounded_up
from counterpoint.privacy.losses import (
    ApproxDP,
    GaussianDP,
    RenyiDP,
    TradeOff,
    tCDP,
    zCDP,
)

__all__ = ["advanced", "basic", "optimal", "vadhan_wang"]

L = TypeVar("L", bound=Loss)
Counted = Mapping[L, int]
"""Losses, and how many there are of each."""


def optimal(losses: Iterable[Loss]) -> Composed:
    """The least that is true of every composition of these losses.

    PureDP, ApproxDP and ProbabilisticDP go together; zCDP, tCDP, RenyiDP of one order, GaussianDP and
    TradeOff each with their own kind. Different kinds are `NotCovered`: convert them to one measure first.

    >>> from counterpoint import PureDP
    >>> optimal([PureDP(0.1)] * 10).epsilon_at(0), optimal([]).delta_at(0)
    (1.0, 0.0)
    """
    counted = _counted(losses)
    parts = _parts(counted)
    if parts is not None:
        return Optimal(parts)
    return _by_own_rule(counted)


def repeated(loss: Loss, copies: int) -> Composed:
    """So many equal losses by the rule of their own measure, (epsilon, delta) by basic composition.

    >>> from counterpoint import GaussianDP, zCDP
    >>> repeated(zCDP("1e-30"), 10**30).loss, repeated(GaussianDP(1), 4).loss
    (zCDP(1), GaussianDP(2))
    """
    parts = _parts({loss: copies})
    return _basic(parts) if parts is not None else _by_own_rule({loss: copies})


def _by_own_rule(counted: Mapping[Loss, int]) -> Total:
    for kind, rule in _OWN_RULES.items():
        if all(isinstance(loss, kind) for loss in counted):
            return rule(counted)
    kinds = ", ".join(sorted({type(loss).__name__ for loss in counted}))
    raise NotCovered(
        f"no theorem composes {kinds} losses as they are; convert them to one measure first, "
        "for instance with as_zcdp(), as_renyi(alpha) or as_tradeoff()"
    )


def basic(losses: Iterable[Loss]) -> Composed:
    """(sum eps_i, sum delta_i): exact, and all there is at delta = 0.

    >>> from counterpoint import ApproxDP
    >>> basic([ApproxDP(0.1, 1e-9)] * 3).loss
    ApproxDP(0.3, 3e-9)
    """
    return _basic(_approximate(losses, "basic"))


def _basic(parts: Parts) -> Total:
    epsilon = sum((copies * epsilon for epsilon, _, copies in parts), Fraction(0))
    delta = sum((copies * delta for _, delta, copies in parts), Fraction(0))
    return Total(ApproxDP(rounded_up(epsilon), min(Fraction(1), rounded_up(delta))), "basic")


def advanced(losses: Iterable[Loss]) -> Composed:
    """Advanced composition: sqrt(2 log(1/delta') sum eps_i^2) + sum eps_i tanh(eps_i/2).

    delta is 1 - (1 - delta') prod(1 - delta_i), so delta' is what the deltas given leave of it.

    >>> from counterpoint import PureDP
    >>> advanced([PureDP(0.01)] * 1000).epsilon_at(1e-6)
    1.71225771960661
    """
    return Advanced(_approximate(losses, "advanced"))


def vadhan_wang(losses: Iterable[Loss]) -> Composed:
    """(sum eps_i, sum_i e^(eps_1 + ... + eps_(i-1)) delta_i), in the best order.

    Vadhan and Wang 2021, Thm 2 as corrected in errata, Vadhan-Wang E1: the first theorem on concurrent composition,
    superseded by `optimal`.

    >>> from counterpoint import ApproxDP
    >>> vadhan_wang([ApproxDP(1, 1e-6)] * 2).delta_at(2)
    3.7182818284590455e-06
    """
    return Total(vadhan_wang_loss(_approximate(losses, "Vadhan-Wang")), "vadhan_wang")


def _counted(losses: Iterable[Loss]) -> Counter[Loss]:
    if isinstance(losses, Loss | Mapping) or not isinstance(losses, Iterable):  # a mapping would lose its counts
        raise InvalidParameter("give the losses to compose, one for each mechanism: a list of PureDP, ApproxDP, ...")
    given = list(losses)
    for loss in given:
        if not isinstance(loss, Loss):
            raise InvalidParameter(f"only losses such as PureDP(0.1) compose, but a {type(loss).__name__} was given")
    return Counter(given)


def _parts(counted: Mapping[Loss, int]) -> Parts | None:
    """The (epsilon, delta) of each loss, counted; None where one has none."""
    parts: Counter[tuple[Fraction, Fraction]] = Counter()
    for loss, copies in counted.items():
        epsilon, delta = epsilon_and_delta(loss)
        if epsilon is None:
            return None
        parts[epsilon, delta] += copies
    return tuple(sorted((epsilon, delta, copies) for (epsilon, delta), copies in parts.items()))


def _approximate(losses: Iterable[Loss], rule: str) -> Parts:
    parts = _parts(_counted(losses))
    if parts is None:
        raise NotCovered(f"{rule} composition is for PureDP and ApproxDP losses; compose.optimal takes the others")
    return parts


def _zcdp(counted: Counted[zCDP]) -> Total:
    return Total(zCDP(_sum((loss.rho, copies) for loss, copies in counted.items())), "sum")


def _tcdp(counted: Counted[tCDP]) -> Total:
    rho = _sum((loss.rho, copies) for loss, copies in counted.items())
    return Total(tCDP(rho, min(loss.omega for loss in counted)), "sum")


def _renyi(counted: Counted[RenyiDP]) -> Total:
    orders = {loss.alpha for loss in counted}
    if len(orders) > 1:
        raise NotCovered(f"Renyi losses add at one order only; give them all as_renyi({spell(min(orders))})")
    return Total(RenyiDP(min(orders), _sum((loss.epsilon, copies) for loss, copies in counted.items())), "sum")


def _gaussian(counted: Counted[GaussianDP]) -> Total:
    squares = sum((copies * loss.mu**2 for loss, copies in counted.items()), Fraction(0))
    return Total(GaussianDP(rounded_up(sqrt_up(squares))), "root of the sum of squares")


def _tensor(counted: Counted[TradeOff]) -> Total:
    (first, *rest) = [loss.tensor_power(copies) for loss, copies in counted.items()]
    for other in rest:
        first = first.tensor(other)
    return Total(first, "tensor product")


def _sum(terms: Iterable[tuple[Fraction, int]]) -> Fraction:
    return rounded_up(sum((copies * amount for amount, copies in terms), Fraction(0)))


_OWN_RULES: dict[type[Loss], Callable[..., Total]] = {
    zCDP: _zcdp,
    tCDP: _tcdp,
    RenyiDP: _renyi,
    GaussianDP: _gaussian,
    TradeOff: _tensor,
}
