"""Draws docs/figures/histogram.svg: where the monotone histogram beats plain counters, and where nothing does.

The mechanism itself takes a step at a time; here blocks of steps are compared at once with numpy, on the same noises,
thresholds and totals (its own `gamma`, interpolated inside a block, `xi` and `totals`). Plain counters are those of
`Counter`; under zCDP, where every read changes their noise, it is drawn from its deviation at each
measured time. Streams are fixed: bar i has grown to floor(rate_i t) at time t. Run in an
environment with matplotlib; the same picture every time.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

import counterpoint as cp
from counterpoint.continual.counter import CounterState
from counterpoint.continual.packed import Packed
from counterpoint.measures.concentrated import rho_below

HERE = Path(__file__).parent
Numbers = NDArray[np.int64]
FIRST, LAST = 1 << 8, 1 << 14
"""The lengths of blocks of time: they double from one hit to the next."""

EPSILON, SEEDS = Fraction(1), range(3)
LINES = {"plain counters": "C0", "histogram, scale 1/4": "C1", "histogram, scale 1/20": "C2", "always 0": "0.5"}


class Rising:
    """A stream of 0/1 vectors whose bars grow at fixed rates from 0.1 to 0.9, times an overall activity."""

    def __init__(self, bars: int, activity: float) -> None:
        self.rates = activity * np.linspace(0.9, 0.1, bars)

    def sums(self, times: Numbers) -> Numbers:
        """All bars at these times, a row for each."""
        return np.floor(np.multiply.outer(times, self.rates)).astype(np.int64)

    def largest(self, times: Numbers) -> Numbers:
        """The true answer: the largest bar."""
        return self.sums(times).max(axis=1)


def looked_at(length: int) -> Numbers:
    """The times at which answers are compared: at most 400, evenly."""
    return np.unique(np.linspace(1, length, min(length, 400)).astype(np.int64))


def read(
    counter: cp.Counter, state: CounterState, items: int, sums: Numbers, coins: cp.coins.Coins
) -> tuple[CounterState, Numbers]:
    """The noisy totals after `items` items; updates draw no noise, so their sum can be sent at once."""
    after, answer = counter.step(CounterState(items, Packed(sums), state.noise), cp.mechanisms.Ask(), coins)
    assert isinstance(after, CounterState)
    return after, np.array(answer)


def begun(counter: cp.Counter, coins: cp.coins.Coins) -> CounterState:
    """The first state."""
    state = counter.start(coins)
    assert isinstance(state, CounterState)
    return state


def plain(stream: Rising, length: int, delta: Fraction, seed: int) -> float:
    """The largest error of the largest of d counters that are read all the time."""
    bars, coins, errors = len(stream.rates), cp.coins.SeededCoins(seed), []
    if delta:
        for time, deviation in deviations(bars, delta, length):
            exactly = stream.sums(np.array([time]))[0]
            noisy = exactly + coins.discrete_gaussian(Fraction(round(deviation**2)), bars)
            errors.append(abs(int(noisy.max()) - int(exactly.max())))
        return float(max(errors))
    counter = cp.Counter(EPSILON, bound=bars, width=bars)
    state = begun(counter, coins)
    for time in looked_at(length):
        exactly = stream.sums(np.array([time]))[0]
        state, noisy = read(counter, state, int(time), exactly, coins)
        errors.append(abs(int(noisy.max()) - int(exactly.max())))
    return float(max(errors))


@lru_cache
def deviations(bars: int, delta: Fraction, length: int) -> list[tuple[int, float]]:
    """The times that are looked at, and the deviation of counters under zCDP that were read at every step before."""
    counter = cp.Counter(rho=rho_below(EPSILON, delta), squared=bars, width=bars)
    return [(int(time), counter.deviation(int(time))) for time in looked_at(length)]


def hits(stream: Rising, length: int, histogram: cp.MonotoneHistogram, seed: int) -> Iterator[tuple[int, int]]:
    """Henzinger et al. 2024, Alg 4 by blocks of time: (time, what is answered from then on)."""
    coins, totals = cp.coins.SeededCoins(seed), histogram.totals
    third, bars = histogram.epsilon / 3, len(stream.rates)
    state = begun(totals, coins)
    noisy, since, time, hit, base = np.zeros(bars, np.int64), np.zeros(bars, np.int64), 0, 0, 0
    once, each = cp.AboveThreshold(third, 0).scales
    tau = coins.discrete_laplace(once)
    block = FIRST
    while time < length:
        times = np.arange(time + 1, min(time + block, length) + 1)
        values = (noisy + stream.sums(times) - since).max(axis=1)
        steps = sorted({int(times[0]), int(times[-1])})
        gammas = np.interp(times, steps, [histogram.gamma(step, hit + 1) for step in steps])
        above = np.flatnonzero(values + coins.discrete_laplace(each, len(times)) - tau >= base + np.ceil(gammas))
        if not len(above):
            time, block = int(times[-1]), min(2 * block, LAST)
            continue
        time, value = int(times[above[0]]), int(values[above[0]])
        threshold = base + histogram.gamma(time, hit + 1)
        if value + coins.discrete_laplace(1 / third) >= threshold - histogram.xi(time, hit + 1):
            base = threshold
        hit += 1
        since = stream.sums(np.array([time]))[0]
        state, totals_read = read(totals, state, hit, since, coins)
        noisy, tau, block = np.maximum(totals_read, 0), coins.discrete_laplace(once), FIRST
        yield time, int(noisy.max())


def watched(stream: Rising, length: int, delta: Fraction, scale: str, seed: int) -> float:
    """The largest error of the histogram."""
    histogram = cp.MonotoneHistogram(EPSILON, cp.continual.max_of, len(stream.rates), delta=delta, scale=scale)
    times = looked_at(length)
    answered = np.zeros(len(times), np.int64)
    for time, answer in hits(stream, length, histogram, seed):
        answered[times >= time] = answer
    return float(np.abs(answered - stream.largest(times)).max())


def study(stream: Rising, length: int, delta: Fraction) -> dict[str, float]:
    """The median over seeds of the largest error, for each way."""
    return {
        "plain counters": float(np.median([plain(stream, length, delta, seed) for seed in SEEDS])),
        "histogram, scale 1/4": float(np.median([watched(stream, length, delta, "1/4", seed) for seed in SEEDS])),
        "histogram, scale 1/20": float(np.median([watched(stream, length, delta, "1/20", seed) for seed in SEEDS])),
        "always 0": float(stream.largest(np.array([length]))[0]),
    }


def lengths(bars: int, activity: float, delta: Fraction = Fraction(0)) -> dict[int, dict[str, float]]:
    """Streams of 2^10 to 2^20 steps."""
    return {1 << n: study(Rising(bars, activity), 1 << n, delta) for n in range(10, 21, 2)}


def draw(panels: dict[str, dict[int, dict[str, float]]]) -> None:
    """One panel for each stream: errors against length."""
    mpl.rcParams["svg.hashsalt"] = "counterpoint"
    figure, axes = plt.subplots(2, 2, figsize=(9, 6.6), sharex=True, sharey=True)
    for axis, (title, rows) in zip(axes.flat, panels.items(), strict=True):
        for name, colour in LINES.items():
            axis.loglog(list(rows), [row[name] for row in rows.values()], color=colour, marker=".", label=name)
        axis.set_title(title, fontsize=10)
        axis.grid(alpha=0.3)
    for below, left in zip(axes[1], axes[:, 0], strict=True):
        below.set_xlabel("steps of the stream")
        left.set_ylabel("largest error of the largest bar")
    axes[0, 0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(HERE / "figures" / "histogram.svg", metadata={"Date": None})


def main() -> None:
    """Compute, print and draw."""
    panels = {
        "2 bars, busy": lengths(2, 1.0),
        "50 bars, busy": lengths(50, 1.0),
        "50 bars, 1 % as busy": lengths(50, 0.01),
        "50 bars, busy, delta = 1e-6": lengths(50, 1.0, Fraction(1, 10**6)),
    }
    for title, rows in panels.items():
        print(f"\n| {title}: steps | " + " | ".join(LINES) + " |\n|---" + "|---" * len(LINES) + "|")
        for length, row in rows.items():
            print(f"| {length:,} | " + " | ".join(f"{row[name]:,.0f}" for name in LINES) + " |")
    draw(panels)


if __name__ == "__main__":
    main()
