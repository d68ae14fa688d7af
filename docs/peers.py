"""The workloads of `bench/workloads.json` through the accountants of other libraries, for docs/tightness.md.

dp_accounting composes a list that is fixed in advance: by privacy loss distributions (PLD), or by Renyi divergences
(RDP). It accounts for mechanisms rather than for claims, so a pure loss stands for randomized response and a zCDP loss
for the Gaussian mechanism that has it. OpenDP's privacy filter takes adaptively chosen losses and adds them up, either
in (epsilon, delta) or in zCDP, which it converts at the end; the better of the two counts.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from itertools import cycle, islice
from typing import TypeAlias

import opendp.prelude as dp
from bench.mixing import MEASURES, MOST, Workload
from dp_accounting import NeighboringRelation, dp_event
from dp_accounting.pld.common import DifferentialPrivacyParameters
from dp_accounting.pld.privacy_loss_distribution import (
    PrivacyLossDistribution,
    from_gaussian_mechanism,
    from_privacy_parameters,
)
from dp_accounting.rdp import RdpAccountant

import counterpoint as cp

Losses: TypeAlias = Mapping[cp.Loss, int]
"""How often each loss is launched."""
Accountant: TypeAlias = Callable[[Losses, float], float]
"""The epsilon of losses at a delta; `NotCovered` for what the library has no account of."""

HALVINGS = 16


def value(accountant: Accountant, workload: Workload) -> float | None:
    """How many launches of a workload fit, or how large the last may be; None for what is not covered."""
    budget, delta = float(workload.budget.epsilon), float(workload.budget.delta)
    try:
        if workload.largest is None:
            launches = list(islice(cycle(workload.launches), MOST))
            return _first(lambda n: accountant(Counter(launches[:n]), delta) > budget, MOST + 1) - 1
        first, measure = Counter(workload.launches), MEASURES[workload.largest]
        return _largest(lambda size: accountant(first + Counter([measure(size)]), delta) <= budget, budget)
    except cp.errors.NotCovered:
        return None


def _first(exceeds: Callable[[int], bool], most: int) -> int:
    """The first number of launches, from 1, that exceeds."""
    return 1 + bisect_right(range(1, most), False, key=exceeds)


def _largest(fits: Callable[[str], bool], budget: float) -> float:
    low, high = 0.0, budget
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(f"{middle:.9f}") else (low, middle)
    return low


@cache
def _distribution(loss: cp.Loss) -> PrivacyLossDistribution:
    if isinstance(loss, cp.PureDP | cp.ApproxDP):
        parameters = DifferentialPrivacyParameters(float(loss.epsilon), float(loss.stated_delta or 0))
        return from_privacy_parameters(parameters)
    return from_gaussian_mechanism(1 / _mu(loss))


def _mu(loss: cp.Loss) -> float:
    """The mu of a Gaussian mechanism that has this loss."""
    if isinstance(loss, cp.GaussianDP):
        return float(loss.mu)
    if isinstance(loss, cp.zCDP):
        return math.sqrt(2 * loss.rho)
    raise cp.errors.NotCovered(f"no Gaussian mechanism stands for {loss!r}")


def by_pld(losses: Losses, delta: float) -> float:
    """dp_accounting's privacy loss distributions, at their default resolution."""
    parts = [_distribution(loss).self_compose(times) for loss, times in losses.items()]
    total = parts[0]
    for part in parts[1:]:
        total = total.compose(part)
    return float(total.get_epsilon_for_delta(delta))


def by_rdp(losses: Losses, delta: float) -> float:
    """dp_accounting's Renyi accountant, at its default orders."""
    accountant = RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE)  # as randomized response needs it
    for loss, times in losses.items():
        accountant.compose(_event(loss), times)
    return float(accountant.get_epsilon(delta))


def _event(loss: cp.Loss) -> dp_event.DpEvent:
    if isinstance(loss, cp.PureDP):
        return dp_event.RandomizedResponseDpEvent(2 / (1 + math.exp(loss.epsilon)), 2)
    return dp_event.ZCDpEvent(_mu(loss) ** 2 / 2)


def by_opendp(losses: Losses, delta: float) -> float:
    """The better of OpenDP's two filters: sums of (epsilon, delta), or of rho."""
    found = [epsilon for epsilon in (_summed(losses, delta), _concentrated(losses, delta)) if epsilon is not None]
    if not found:
        raise cp.errors.NotCovered("OpenDP has no such loss")
    return min(found)


def _summed(losses: Losses, delta: float) -> float | None:
    if not all(isinstance(loss, cp.PureDP | cp.ApproxDP) for loss in losses):
        return None
    exposed = sum(times * float(loss.stated_delta or 0) for loss, times in losses.items())
    return sum(times * float(loss.epsilon) for loss, times in losses.items()) if exposed <= delta else math.inf


def _concentrated(losses: Losses, delta: float) -> float | None:
    if not all(isinstance(loss, cp.PureDP | cp.zCDP | cp.GaussianDP) for loss in losses):
        return None
    return _converted(sum(times * float(loss.as_zcdp().rho) for loss, times in losses.items()), delta)


def _converted(rho: float, delta: float) -> float:
    """OpenDP's own conversion, of a Gaussian mechanism that has this rho."""
    dp.enable_features("contrib")
    space = dp.atom_domain(T="i32"), dp.absolute_distance(T="f64")
    noise = dp.m.make_gaussian(*space, scale=1 / math.sqrt(2 * rho))
    return float(dp.c.make_zCDP_to_approxDP(noise).map(1.0).epsilon(delta))


ACCOUNTANTS: dict[str, Accountant] = {
    "dp_accounting PLD": by_pld,
    "dp_accounting RDP": by_rdp,
    "OpenDP filter": by_opendp,
}
"""The other libraries, by what their column is called."""
