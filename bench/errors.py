"""Stated errors beside simulated ones: the `error(probability)` of every shipped mechanism, on the input that is worst.

A case asks whether one run is off by at least so much. The simulated error is the largest of which that happens as
often as the stated error may fail. A bound that holds for all inputs, or for many answers at once, cannot be met by one
input: such a case says why, and has a target of its own.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import networkx as nx  # type: ignore[import-untyped] # graphs, and their exact core numbers
from msgspec.structs import replace

from bench.table import Row
from counterpoint.coins.coins import Coins
from counterpoint.coins.secure import SeededCoins
from counterpoint.continual.counter import Counter
from counterpoint.continual.monotone_histogram import HistogramInterval, MonotoneHistogram
from counterpoint.continual.monotone_queries import max_of
from counterpoint.local.cores import core_decomposition, core_protocol
from counterpoint.mechanisms.additive import Additive, Gaussian, Laplace
from counterpoint.mechanisms.composite import CompositeState
from counterpoint.mechanisms.guess_and_check import PASS, GuessAndCheck
from counterpoint.mechanisms.mechanism import Mechanism, State
from counterpoint.mechanisms.multiplicative_weights import MultiplicativeWeights
from counterpoint.mechanisms.noisy_max import NoisyMax
from counterpoint.mechanisms.partition_selection import GaussianSelection, PartitionSelection
from counterpoint.mechanisms.sparse_vector import AboveThreshold, SparseVector
from counterpoint.mechanisms.threshold import NoisyThreshold
from counterpoint.privacy.messages import Ask, Update
from counterpoint.privacy.secret import Tally

SURE = "0.9"
FAILS = 0.1
WITHIN = 1.3
Off = Callable[[int, Coins], bool]


@dataclass(frozen=True)
class Case:
    """A mechanism's stated error at 90 %, and whether one run on its worst input is off by at least so much."""

    name: str
    mechanism: Mechanism
    stated: int
    off: Off
    runs: int = 1000
    within: float = WITHIN
    why: str = ""

    def often(self, far: int) -> float:
        """How often runs are off by at least so much; equal coins for every `far`."""
        return sum(self.off(far, SeededCoins(seed)) for seed in range(self.runs)) / self.runs

    def simulated(self) -> int:
        """The largest error that is reached as often as the stated one may fail."""
        reached, beyond = 0, self.stated + 2
        while beyond - reached > 1:
            middle = (reached + beyond) // 2
            reached, beyond = (middle, beyond) if self.often(middle) >= FAILS else (reached, middle)
        return reached


def additive(mechanism: Additive, width: int = 1) -> Off:
    """Noise of at least so much on one of the numbers."""

    def off(far: int, coins: Coins) -> bool:
        _, noisy = mechanism.step(mechanism.start(coins), Ask(private=(0,) * width), coins)
        return bool(max(map(abs, noisy)) >= far)

    return off


def comparing(mechanism: NoisyThreshold, asks: int) -> Off:
    """A hit among values that are all so far below the threshold."""

    def off(far: int, coins: Coins) -> bool:
        state = mechanism.start(coins)
        for _ in range(asks):
            after, answer = mechanism.step(state, Ask(private=-far, one_way=True), coins)
            if after is None or answer:
                return True
            state = after
        return False

    return off


def choosing(mechanism: NoisyMax, candidates: int) -> Off:
    """Another candidate than the best one, where all others are so far below it."""

    def off(far: int, coins: Coins) -> bool:
        ask = Ask(private=(0,) + (-far,) * (candidates - 1), sensitivity=candidates, each=1, one_way=mechanism.monotone)
        return bool(mechanism.step(mechanism.start(coins), ask, coins)[1].index)

    return off


def selecting(mechanism: Mechanism, keys: int) -> Off:
    """A key of so many units that is not released."""

    def off(far: int, coins: Coins) -> bool:
        ask = Ask(private=Tally((("key", far),) if far else ()), sensitivity=keys, squared=keys)
        return not mechanism.step(mechanism.start(coins), ask, coins)[1]

    return off


def counting(mechanism: Counter, items: int) -> Off:
    """A count of nothing that is so far off, after so many items and an ask after each."""
    width = mechanism.dimensions
    nothing = Update(0 if width is None else (0,) * width)

    def off(far: int, coins: Coins) -> bool:
        state: State | None = mechanism.start(coins)
        for _ in range(items):
            assert state is not None
            after, _ = mechanism.step(state, nothing, coins)
            assert after is not None
            state, answer = mechanism.step(after, Ask(), coins)
        return bool(max(map(abs, answer if isinstance(answer, tuple) else (answer,))) >= far)

    return off


def checking(mechanism: GuessAndCheck, asks: int) -> Off:
    """A verdict on good guesses that is wrong by so much beyond the margin."""

    def off(far: int, coins: Coins) -> bool:
        state = mechanism.start(coins)
        for _ in range(asks):
            after, (verdict, _) = mechanism.step(state, Ask(0, private=int(mechanism.margin) - far), coins)
            if verdict != PASS:
                return True
            assert after is not None
            state = after
        return False

    return off


def watching(mechanism: MonotoneHistogram, items: int, hits: int, patience: int) -> Off:
    """An answer that is so far from the count of one key, until there are more hits than these.

    The count stops so far below the threshold, until a hit moves the base of the threshold all the same. After the last
    hit, and in the last 40 items, it grows with every item.
    """

    def grows(state: State, time: int, count: int) -> bool:
        assert isinstance(state, CompositeState) and isinstance(state.own, HistogramInterval)
        above = state.own.base + mechanism.gamma(time, state.own.hits + 1) - count
        return state.own.hits == hits or time > items - 40 or above > patience

    def off(far: int, coins: Coins) -> bool:
        state, count = mechanism.start(coins), 0
        for time in range(1, items + 1):
            more = int(grows(state, time, count))
            count += more
            after, _ = mechanism.step(state, Update((more,)), coins)
            assert isinstance(after, CompositeState) and isinstance(after.own, HistogramInterval)
            state, answer = after, max_of(after.own.noisy)
            if after.own.hits > hits:
                return False
            if abs(answer - count) >= far:
                return True
        return False

    return off


def peeling(graph: "nx.Graph", epsilon: int) -> Off:
    """A vertex whose core number is so far off."""
    true = nx.core_number(graph)

    def off(far: int, coins: Coins) -> bool:
        cores = core_decomposition(graph, epsilon, coins=coins, progress=False)
        return bool(max(abs(core - true[vertex]) for vertex, core in cores) >= far)

    return off


_HITS = "any hit may have moved the base, and the bounds for all numbers of hits hold at once"
_ROUNDS = "the bound is for every graph with so many vertices and rounds, and another core may begin to fall in each"


def cases() -> Iterator[Case]:
    """Every shipped mechanism that states an error."""
    yield from exact_cases()
    yield from bounded_cases()


def exact_cases() -> Iterator[Case]:
    """Where the law of the noise says it."""
    laplace, mu, rho = Laplace("0.01"), Gaussian(mu="0.01"), Gaussian(rho="0.0001")
    yield Case("Laplace", laplace, laplace.error(SURE), additive(laplace))
    yield Case("Laplace, 20 numbers", laplace, laplace.error(SURE, width=20), additive(laplace, 20))
    yield Case("rounded normal, 20 numbers", mu, mu.error(SURE, width=20), additive(mu, 20))
    yield Case("discrete Gaussian, 20 numbers", rho, rho.error(SURE, width=20), additive(rho, 20))
    for largest, runs in ((NoisyMax("0.05"), 1000), (NoisyMax("0.05", by="exponential"), 200)):
        yield Case(f"{largest!r}, 50 candidates", largest, largest.error(SURE, 50), choosing(largest, 50), runs)
    for privacy, known, endless in (
        ("pure", Counter("0.1", horizon=20), Counter("0.1")),
        ("zCDP", Counter(rho="0.001", horizon=20), Counter(rho="0.001")),
    ):
        many = Counter(epsilon=known.epsilon, rho=known.rho, horizon=20, width=8)
        for what, counter in (
            ("counter, horizon of 20", known),
            ("counter, no horizon", endless),
            ("vectors of 8", many),
            ("window of 5", replace(known, window=5)),
        ):
            yield Case(f"{privacy} {what}", counter, counter.error(SURE, t=16), counting(counter, 16), 200)
    far, wide = Counter(rho="0.001", per_unit=2, min_separation=4), Counter(rho="0.001", width=8, min_separation=4)
    yield Case("zCDP counter of far items", far, far.error(SURE, t=16), counting(far, 16), 200)
    yield Case("zCDP vectors of 8, of far items", wide, wide.error(SURE, t=16), counting(wide, 16), 200)
    for keys, mechanism in ((1, PartitionSelection("0.1", "1e-6")), (8, GaussianSelection("0.1", "1e-6"))):
        name = f"{type(mechanism).__name__}, {keys} keys of a unit"
        yield Case(name, mechanism, mechanism.error(SURE, keys), selecting(mechanism, keys))


def bounded_cases() -> Iterator[Case]:
    """Where several noises, or all inputs at once, are bounded."""
    for sparse in (SparseVector("0.05", 0), SparseVector("0.05", 0, monotone=True), AboveThreshold("0.05", 0)):
        name, stated = f"{sparse!r}, 100 asks", sparse.error(SURE, asks=100)
        yield Case(name, sparse, stated, comparing(sparse, 100), 100)
    checks = GuessAndCheck("0.1", margin=1000, wrong=3)
    verdict = checks.error(SURE, asks=50).verdict
    yield Case("guess and check, 50 asks", checks, verdict, checking(checks, 50), 100)
    histogram = MonotoneHistogram(8, max_of, 1)
    for hits, items, patience, within, why in ((0, 60, 0, 1.3, ""), (1, 200, 6, 1.3, ""), (3, 300, 5, 1.6, _HITS)):
        name, stated = f"monotone histogram, {hits} hits", histogram.error(SURE, t=items, hits=hits)
        yield Case(name, histogram, stated, watching(histogram, items, hits, patience), 100, within, why)
    for name, graph, within, why in (
        ("a complete graph", nx.complete_graph(100), WITHIN, ""),
        ("a regular graph", nx.random_regular_graph(60, 200, seed=1), 1.6, _ROUNDS),
    ):
        user = core_protocol(len(graph), 1).users.mechanisms[0]
        peeled = (core_decomposition(graph, 1, coins=SeededCoins(seed), progress=False) for seed in range(20))
        stated = max(cores.error(SURE) for cores in peeled)  # it depends on what was answered
        yield Case(f"core numbers of {name}", user, stated, peeling(graph, 1), 100, within, why)


def rows() -> Iterator[Row]:
    """The stated error beside the simulated one; and 1,000 random halves by multiplicative weights and by Laplace."""
    suited = MultiplicativeWeights.suited(1, universe=1000, rows=10**5, asks=1000, spread="0.028")
    learnt, noisy = suited.error("0.5", asks=1000).within, Laplace(1, asks=1000).error("0.5", width=1000)
    what = "stated error of 1,000 random halves of 10^5 rows, spread 0.028: multiplicative weights"
    yield Row(what, learnt, noisy, "Laplace(1, asks=1000)", at_most=0.85, unit="rows")
    for case in cases():
        what = f"stated error at 90 %: {case.name}" + (f" ({case.why})" if case.why else "")
        yield Row(what, case.stated, max(1, case.simulated()), "simulated", at_most=case.within, unit="steps")
