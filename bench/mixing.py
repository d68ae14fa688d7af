"""Mixed workloads through the default (epsilon, delta) filter, and the search for its table of shares.

`workloads.json` lists what analysts may do under a budget: repeat a pattern of launches until one is refused (the value
is how many were admitted), or launch something and then the largest pure or zCDP launch that fits (the value is its
size). Every second one is held out: the search never looks at it. `python -m bench.mixing` searches, and prints the
table that is in `composition/best.py`; `python -m bench.mixing table` compares all workloads with the
filter of one order, which was the default before, and `rows` compares the time of a launch.

The search minimises the mean of log(best/value), where the best of a workload is what any table that was tried
has for it. What a workload must have at least is in the file, and where the first launch has a delta it is also 99 % of
what it had with one order; a workload with less costs 1 more. The search goes from one table to the best neighbour
until none is better.
"""

import json
import math
import pathlib
import statistics
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from itertools import cycle, islice
from typing import Any, NamedTuple

from bench.filters import after, in_turns
from bench.table import Row
from counterpoint.composition.accumulator import Accumulator
from counterpoint.composition.advanced import order_for
from counterpoint.composition.best import SHARES, BestOfSums, Division, Shares, union_within
from counterpoint.composition.filters import Filter
from counterpoint.errors import NotCovered
from counterpoint.measures import ApproxDP, GaussianDP, PureDP, RenyiDP, zCDP
from counterpoint.measures.conversions import response_of
from counterpoint.measures.loss import Loss
from counterpoint.privacy.claims import claim
from counterpoint.privacy.relations import every_step

MEASURES: dict[str, Callable[..., Loss]] = {
    "PureDP": PureDP,
    "ApproxDP": ApproxDP,
    "GaussianDP": GaussianDP,
    "RenyiDP": RenyiDP,
    "zCDP": zCDP,
}
MOST = 2_000
PRECISION = Fraction(1, 10**4)
SMALLEST = Fraction(1, 10**9)


class Workload(NamedTuple):
    """Launches under a budget: a pattern that is repeated, or some and then the largest of a measure that fits."""

    name: str
    budget: ApproxDP
    launches: tuple[Loss, ...]
    largest: str | None
    at_least: float
    held_out: bool

    def value(self, start: Accumulator) -> float:
        """How many launches this account admits, or how large the last one may be; 0 for what is not covered."""
        try:
            return self._value(start)
        except NotCovered:
            return 0.0

    def _value(self, start: Accumulator) -> float:
        if self.largest is None:
            return admitted(start, self.budget, islice(cycle(self.launches), MOST))
        account = start
        for loss in self.launches:
            account = account.plus(loss, "one-shot")
            if not account.keeps(self.budget):
                return 0.0
        return largest(account, self.budget, MEASURES[self.largest])


def workloads() -> list[Workload]:
    """All of them, as the file has them."""
    file = pathlib.Path(__file__).with_name("workloads.json")
    return [_workload(entry) for entry in json.loads(file.read_text())]


def _workload(entry: dict[str, Any]) -> Workload:
    repeated, first, largest = entry.get("repeat", ()), entry.get("first", ()), entry.get("largest")
    budget = next(_launches(entry["budget"]))
    assert isinstance(budget, ApproxDP)
    losses = tuple(loss for text in (*repeated, *first) for loss in _launches(text))
    told = " and ".join((*repeated, *first))
    name = f"{told}, repeated" if largest is None else f"{told}, then the largest {largest}"
    name = f"{name}, under {entry['budget']}"
    least, held_out = float(entry.get("at_least", 0)), bool(entry["held_out"])
    return Workload(name, budget, losses, entry.get("largest"), least, held_out)


def _launches(text: str) -> Iterator[Loss]:
    """`100 PureDP 0.01` is a hundred of them."""
    words = text.split()
    copies = int(words.pop(0)) if words[0].isdecimal() else 1
    yield from [MEASURES[words[0]](*words[1:])] * copies


def admitted(account: Accumulator, budget: Loss, losses: Iterator[Loss]) -> int:
    """How many of these launches are admitted before the first refusal."""
    for launched, loss in enumerate(losses):
        account = account.plus(loss, "one-shot")
        if not account.keeps(budget):
            return launched
    return MOST


def largest(account: Accumulator, budget: Loss, measure: Callable[..., Loss]) -> float:
    """The largest further launch of a measure that fits, by halving."""
    low, high = Fraction(0), Fraction(16)
    while high - low > PRECISION * high and high > SMALLEST:
        middle = Fraction(f"{float((low + high) / 2):.6g}")
        fits = account.plus(measure(middle), "one-shot").keeps(budget)
        low, high = (middle, high) if fits else (low, middle)
    return float(low)


def kept(each: Workload) -> float:
    """What a workload must at least have: 99 % of what it had, if its first launch has a delta."""
    first = response_of(each.launches[0])
    return 0.99 * each.value(before(each.budget)) if first is not None and first[1] else 0.0


def one_order(budget: ApproxDP) -> Filter:
    """The filter with one Renyi order, and half of delta for exposures."""
    slack = budget.delta / 2
    return Filter(budget, slack=slack, alpha=order_for(budget.epsilon, slack))


def before(budget: ApproxDP) -> Accumulator:
    """An account of the filter of one order."""
    return one_order(budget).start()


def rows() -> Iterator[Row]:
    budget = ApproxDP(8, 1e-6)
    rule, before_it = Filter(budget), one_order(budget)
    for loss in (PureDP("0.001"), ApproxDP("0.001", "1e-12"), zCDP("1e-6")):
        launch = claim(loss, every_step(), "a benchmark", interaction="one-shot")
        works = [partial(each.admit, after(each, launch, 1000), launch) for each in (rule, before_it)]
        now, earlier = in_turns(works)
        yield Row(f"a launch of {loss!r}", now, earlier, "with one Renyi order", at_most=2)


def table() -> Iterator[str]:
    """Every workload: what it has, what it had with one order, and whether the search has seen it."""
    yield "| workload | now | with one order | |"
    yield "|---|---|---|---|"
    for each in workloads():
        now, earlier = each.value(Filter(each.budget).start()), each.value(before(each.budget))
        yield f"| {each.name} | {now:.4g} | {earlier:.4g} | {'held out' if each.held_out else ''} |"


class Table(NamedTuple):
    """A point of the search: steps in tenths, and weights, of which only the proportions count."""

    steps: tuple[int, ...]
    reserve: tuple[int, ...]
    orders: tuple[int, ...]
    reserve_with_delta: tuple[int, ...]
    orders_with_delta: tuple[int, ...]

    def shares(self) -> Shares:
        """As the filter takes it."""
        return Shares(
            steps=tuple(Fraction(step, 10) for step in self.steps),
            without_delta=Division(SHARES.without_delta.slack, _proportions(self.reserve), _proportions(self.orders)),
            with_delta=Division(
                SHARES.with_delta.slack, _proportions(self.reserve_with_delta), _proportions(self.orders_with_delta)
            ),
        )

    def neighbours(self) -> Iterator["Table"]:
        """Every table that has one number a step up or down, but the largest weight of a row."""
        for place, values in enumerate(self):
            for index, value in enumerate(values):
                for moved in () if value == max(values) and place else _moves(value):
                    yield self._replace(**{self._fields[place]: (*values[:index], moved, *values[index + 1 :])})


def _proportions(weights: tuple[int, ...]) -> tuple[Fraction, ...]:
    return tuple(Fraction(weight, sum(weights)) for weight in weights)


def _moves(value: int) -> Iterator[int]:
    yield math.ceil(value * 1.3)
    if value > 1:
        yield max(1, math.floor(value / 1.3))


def _all_to(part: int, steps: tuple[int, ...]) -> Table:
    """Nearly all to one part, 0 being the reserve: best for some workloads."""
    reserve = tuple(1000 if place == part else 1 for place in range(len(steps) + 1))
    orders = tuple(1000 if place == max(0, part - 1) else 1 for place in range(len(steps)))
    return Table(steps, reserve, orders, reserve, orders)


START = Table(
    steps=(7, 12, 30, 120),
    reserve=(900, 10, 60, 30, 30),
    orders=(30, 920, 35, 26),
    reserve_with_delta=(790, 5, 185, 10, 10),
    orders_with_delta=(5, 975, 10, 10),
)


class Search:
    """Tables that were tried, with what each has for every workload that is not held out."""

    def __init__(self) -> None:
        self.workloads = [each for each in workloads() if not each.held_out]
        self.least = [max(each.at_least, kept(each)) for each in self.workloads]
        self.values: dict[Table, list[float]] = {}

    def tried(self, table: Table) -> list[float]:
        """What a table has for each workload."""
        if table not in self.values:
            shares = table.shares()
            starts = (BestOfSums(union_within(each.budget, None, shares)) for each in self.workloads)
            self.values[table] = [each.value(start) for each, start in zip(self.workloads, starts, strict=True)]
        return self.values[table]

    def regret(self, table: Table) -> float:
        """The mean of log(best/value), and 1 for each workload that has too little."""
        values = self.tried(table)
        best = [max(column) for column in zip(*self.values.values(), strict=True)]
        regrets = (math.log(b / max(v, SMALLEST)) for b, v in zip(best, values, strict=True))
        return statistics.fmean(regrets) + sum(v < least for v, least in zip(values, self.least, strict=True))

    def run(self) -> Table:
        """From the start to the best neighbour, until none is better."""
        for part in range(len(START.steps) + 1):
            self.tried(_all_to(part, START.steps))
        table = START
        while True:
            nearest = min(table.neighbours(), key=self.regret)
            print(f"{self.regret(table):.6f} {table}", flush=True)
            if self.regret(nearest) > self.regret(table) - 1e-4:
                return table
            table = nearest


if __name__ == "__main__":
    print("\n".join(table()) if "table" in sys.argv[1:] else Search().run())
