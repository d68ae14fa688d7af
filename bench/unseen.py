"""Random workloads that nothing was tuned on: how near the default (epsilon, delta) filter comes to the fixed optimum.

`python -m bench.unseen SEED` draws 48 workloads, six of each of eight kinds, and prints for each how many launches are
admitted before the first refusal: by the default filter, with zCDP launches as they are and as rounded normals, by a
filter that was told the plan where the kind has one size, and by the best single accountant (basic, Renyi, zCDP); and
how many a list that is fixed in advance may have. Rounded normals are GaussianDP with mu^2 = 2 rho. The means are
geometric. A seed that was looked at while something was changed is no test any more: take another one.
"""

import math
import random  # noqa: TID251 - which workloads are drawn is no secret
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from counterpoint.composition.filters import Filter
from counterpoint.composition.fixed.compose import optimal_of
from counterpoint.measures import ApproxDP, GaussianDP, PureDP, zCDP
from counterpoint.measures.concentrated import rho_below
from counterpoint.measures.loss import Loss

MOST = 3_000
KINDS = (
    "uniform small",
    "uniform large",
    "two sizes",
    "decreasing",
    "one large, then small",
    "pure and Gaussian",
    "some pure, then zCDP",
    "zCDP and pure",
)
BUDGETS = ("0.5", "1", "1.5", "2", "3", "4", "6", "8")


class Drawn(NamedTuple):
    """A workload: its kind, its budget, and its launches, of which the first few are made."""

    kind: str
    budget: ApproxDP
    launches: list[Loss]


def _pure(size: float) -> Loss:
    return PureDP(f"{size:.4g}")


def _concentrated(mu: float) -> Loss:
    """What a Gaussian mechanism, whose mu has few digits, loses in zCDP."""
    return GaussianDP(f"{mu:.4g}").as_zcdp()


def _normal(loss: Loss) -> Loss:
    """A zCDP launch as a rounded normal; every other as it is."""
    return GaussianDP(f"{math.sqrt(2 * float(loss.rho)):.4g}") if isinstance(loss, zCDP) else loss


def drawn(kind: str, draw: random.Random) -> Drawn:
    """One workload of a kind."""
    budget = ApproxDP(draw.choice(BUDGETS), f"{10 ** draw.uniform(-9, -4):.3g}")
    mu = float(GaussianDP.for_budget(budget.epsilon, budget.delta).mu)
    small, large = mu / math.sqrt(10 ** draw.uniform(1.5, 3.2)), mu / math.sqrt(10 ** draw.uniform(0.5, 1.8))
    return Drawn(kind, budget, list(islice(_launches(kind, small, large, draw), MOST)))


def _launches(kind: str, small: float, large: float, draw: random.Random) -> Iterator[Loss]:
    few = draw.randint(2, 40)
    number = 0
    while True:
        even = number % 2 == 0
        if kind == "uniform small":
            yield _pure(small)
        elif kind == "uniform large":
            yield _pure(large)
        elif kind == "two sizes":
            yield _pure(large if even else small)
        elif kind == "decreasing":
            yield _pure(large / math.sqrt(1 + number))
        elif kind == "one large, then small":
            yield _pure(3 * large if number == 0 else small)
        elif kind == "pure and Gaussian":
            yield _pure(large) if even else GaussianDP(f"{small:.4g}")
        elif kind == "some pure, then zCDP":
            yield _pure(large / 2) if number < few else _concentrated(small)
        else:
            yield _concentrated(large) if even else _pure(small)
        number += 1


def admitted(rule: Filter, launches: list[Loss]) -> int:
    """How many are admitted before the first refusal."""
    account = rule.start()
    for number, loss in enumerate(launches):
        account = account.plus(loss, "one-shot")
        if not account.keeps(rule.budget):
            return number
    return len(launches)


def optimum(budget: ApproxDP, launches: list[Loss]) -> int:
    """How many of a list that is fixed in advance are within the budget."""

    def fits(count: int) -> bool:
        counted: Counter[Loss] = Counter(launches[:count])
        return optimal_of(counted).delta_at(budget.epsilon) <= float(budget.delta)

    low, high = 0, len(launches) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def single(budget: ApproxDP, launches: list[Loss]) -> int:
    """What the best of basic composition, one Renyi order and zCDP admits."""
    rules = [Filter(budget, by="renyi", slack=budget.delta), Filter(zCDP(rho_below(budget.epsilon, budget.delta)))]
    if all(isinstance(loss, PureDP) for loss in launches):
        rules.append(Filter(budget, by="basic"))
    return max(admitted(rule, launches) for rule in rules)


def main(seed: int) -> None:
    """Draw the workloads and print them."""
    draw = random.Random(seed)  # noqa: S311 - as above
    print("| kind | budget | fixed | as is | rounded | planned | best single | rounded/fixed |")
    print("|---|---|---|---|---|---|---|---|")
    as_is, rounded = [], []
    for number in range(48):
        each = drawn(KINDS[number % len(KINDS)], draw)
        normal = [_normal(loss) for loss in each.launches]
        best, rule = optimum(each.budget, normal), Filter(each.budget)
        found = admitted(rule, each.launches), admitted(rule, normal)
        uniform = each.kind.startswith("uniform")
        plan = f"{admitted(Filter.planned(each.budget, normal[0]), normal)}" if uniform else ""
        as_is.append(found[0] / best)
        rounded.append(found[1] / best)
        alone = single(each.budget, each.launches)
        under = f"({each.budget.epsilon}, {float(each.budget.delta):.2g})"
        shown = (each.kind, under, best, *found, plan, alone, f"{rounded[-1]:.3f}")
        print(f"| {' | '.join(map(str, shown))} |", flush=True)
    for name, shares in (("as is", as_is), ("rounded", rounded)):
        print(f"{name}: {math.exp(math.fsum(map(math.log, shares)) / len(shares)):.4f} of the fixed optimum")


if __name__ == "__main__":
    main(int(sys.argv[1]))
