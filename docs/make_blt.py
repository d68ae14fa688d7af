"""Writes `blt_table.py` in mechanisms/counting/noise: buffers for counters under zCDP, found by optimisation.

For each horizon T = 2^n it minimises the largest standard deviation up to T, |c|_2 |b_0..b_{T-1}|_2, over decays and
weights (by the formulas of `blt.py` beside it, in floats), with the sensitivity |c|_2 over all time; then
rounds every number to eight binary digits and lets each digit step up and down while that helps. How the numbers were
found is no part of any claim: what they cost in privacy is computed from them, exactly, where they are used.

Run with scipy installed: `python docs/make_blt.py`.
"""

from itertools import product
from math import frexp
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

TABLE = Path(__file__).parent.parent / "src/counterpoint/continual/blt_table.py"
ENOUGH = ((2, 1), (6, 2), (10, 3), (16, 4), (20, 5), (26, 6), (32, 7), (40, 8))
"""Up to which horizon, as a power of two, how many buffers come within two percent of the best there is."""

BITS = 8
Floats = NDArray[np.float64]
Digits = list[tuple[int, int]]

PAGE = '''"""Buffers for counters under zCDP, by the binary logarithm of the horizon: made by docs/make_blt.py.

A buffer is (m, s, p, q): it decays by 1 - m/2^s a step, and weighs p/2^q.

>>> sorted(TABLE)[-1], TABLE[2]
({last}, {first})
"""

TABLE: dict[int, tuple[tuple[int, int, int, int], ...]] = {{
{rows}
}}
'''


def gaps(rates: Floats, weights: Floats) -> Floats:
    """The zeros g of 1 + sum w/(rate - g): one between each two neighbouring rates, one above all; by bisection."""
    order = np.argsort(rates)
    rates, weights = rates[order], weights[order]
    low, high = np.zeros(len(rates)), np.append(np.diff(rates), weights.sum())
    for _ in range(80):
        middle = (low + high) / 2
        with np.errstate(divide="ignore"):
            below = 1 + (weights / (rates - rates[:, None] - middle[:, None])).sum(axis=1) < 0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return rates + (low + high) / 2


def deviation(rates: Floats, weights: Floats, horizon: int) -> float:
    """|c|_2 |b|_2 at the horizon: the standard deviation there at rho = 1/2."""
    zeros = gaps(rates, weights)
    if zeros.max() >= 1 or zeros.min() <= 0:
        return float("inf")
    last = 1 / (1 + (weights / rates).sum())
    fading = 1 / ((weights / (rates - zeros[:, None]) ** 2).sum(axis=1) * zeros)
    logs = np.log1p(-zeros)
    mixed = zeros + zeros[:, None] - zeros * zeros[:, None]
    squares = horizon * last**2 - 2 * last * (fading * np.expm1(horizon * logs) / zeros).sum()
    squares -= (fading * fading[:, None] * np.expm1(horizon * (logs + logs[:, None])) / mixed).sum()
    shared = rates + rates[:, None] - rates * rates[:, None]
    return float(np.sqrt((1 + (weights * weights[:, None] / shared).sum()) * squares))


def optimised(horizon: int, buffers: int) -> tuple[Floats, Floats]:
    """Rates and weights for a horizon, from rates in a geometric row and the weights that go with 1/sqrt(k)."""
    rates = np.geomspace(min(0.1, 3 / horizon), 0.4, buffers) if buffers > 1 else np.array([0.5])
    weights = np.sqrt(rates) * 0.25 * np.log(rates[-1] / rates[0]) / (buffers - 1) if buffers > 1 else np.array([0.3])
    weights *= min(1, 0.8 / (weights / (1 - rates)).sum())  # so that all zeros are below 1

    def objective(point: Floats) -> float:
        value = deviation(1 / (1 + np.exp(-point[:buffers])), np.exp(point[buffers:]), horizon)
        return float(np.log(value)) if np.isfinite(value) else 1e3

    start = np.concatenate([np.log(rates / (1 - rates)), np.log(weights)])
    found = minimize(objective, start, method="L-BFGS-B", options={"maxiter": 1000, "maxfun": 20000}).x
    return 1 / (1 + np.exp(-found[:buffers])), np.exp(found[buffers:])


def digits(numbers: Floats) -> Digits:
    """Each number as m/2^s with m of eight binary digits."""
    return [(round(fraction * 2**BITS), BITS - power) for fraction, power in map(frexp, numbers.tolist())]


def value(rounded: Digits) -> Floats:
    """The numbers that such digits spell."""
    return np.array([m / 2**s for m, s in rounded])


def polished(rates: Digits, weights: Digits, horizon: int) -> tuple[Digits, Digits]:
    """Single steps of the rounded digits, as long as one of them helps."""
    buffers = len(rates)
    best, everything = deviation(value(rates), value(weights), horizon), rates + weights
    helped = True
    while helped:
        helped = False
        for at, step in product(range(2 * buffers), (-1, 1)):
            m, s = everything[at]
            trial = [*everything[:at], (m + step, s), *everything[at + 1 :]]
            now = deviation(value(trial[:buffers]), value(trial[buffers:]), horizon)
            if 0 < m + step <= 2**BITS and now < best * (1 - 1e-9):
                best, everything, helped = now, trial, True
    return everything[:buffers], everything[buffers:]


def main() -> None:
    """Find, round, polish and write."""
    rows = {}
    for n in range(2, ENOUGH[-1][0] + 1):
        buffers = next(count for last, count in ENOUGH if n <= last)
        found = optimised(2**n, buffers)
        rates, weights = polished(digits(found[0]), digits(found[1]), 2**n)
        rows[n] = tuple(sorted((*rate, *weight) for rate, weight in zip(rates, weights, strict=True)))
        print(n, buffers, deviation(*found, 2**n), deviation(value(rates), value(weights), 2**n), flush=True)
    lines = "\n".join(
        f"    {n}: (\n" + "\n".join(f"        {buffer}," for buffer in row) + "\n    )," for n, row in rows.items()
    )
    TABLE.write_text(PAGE.format(last=max(rows), first=rows[2], rows=lines), encoding="utf-8")


if __name__ == "__main__":
    main()
