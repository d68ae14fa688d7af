"""Writes src/counterpoint/continual/blt_table.py: buffers for counters under zCDP without a horizon.

`make_blt.py` finds buffers that are best at one horizon. These are for counters whose number of steps is not known.
For each T = 2^8 .. 2^24 take the root mean square error up to T, divided by that of the square root of the prefix-sum
matrix of size T; the largest of these ratios is made small, each divided by what is aimed at there: less from 2^10 to
2^20 than outside. With up to seven buffers the best are within 9.4 % from 2^10 to 2^20 (and 53 % off at 2^24), or
within 15.3 % from 2^8 to 2^24, or between: 11.3 % and 17.4 %, or 13.5 % and 16 %, which is what is aimed at.

The formulas are those of `blt.py`, in floats; the sensitivity is that over all time. Then every
number is rounded to eight binary digits, and single digits step up and down while that helps. How the numbers were
found is no part of any claim: what they cost in privacy is computed from them, exactly.

Run with scipy installed, beside `make_blt.py`: `python docs/make_endless_blt.py`.
"""

from itertools import product
from pathlib import Path

import numpy as np
from make_blt import BITS, Digits, Floats, digits, gaps, value
from scipy.optimize import minimize

TABLE = Path(__file__).parent.parent / "src/counterpoint/continual/blt_table.py"
POWERS = np.arange(8, 25)
AIMS = np.where((POWERS >= 10) & (POWERS <= 20), 1.132, 1.156)
BUFFERS = 6

PAGE = '''"""Buffers for counters under zCDP without a horizon: made by docs/make_endless_blt.py.

A buffer is (m, s, p, q): it decays by 1 - m/2^s a step, and weighs p/2^q.

>>> len(ENDLESS)
{count}
"""

ENDLESS: tuple[tuple[int, int, int, int], ...] = (
{rows}
)
'''


def square_root_errors() -> Floats:
    """At each T the root mean square error of the square root of the prefix-sum matrix, at rho = 1/2."""
    k = np.arange(1, 2.0 ** POWERS[-1])
    squares = np.concatenate([[1.0], np.cumprod(1 - 0.5 / k) ** 2])
    norms, moments = np.cumsum(squares), np.cumsum(squares * np.arange(len(squares)))
    last = 2**POWERS - 1
    return np.sqrt(norms[last] * (norms[last] - moments[last] / 2.0**POWERS))


def errors(rates: Floats, weights: Floats) -> Floats:
    """At each T the root mean square error of these buffers, at rho = 1/2."""
    zeros = gaps(rates, weights)
    if zeros.max() >= 1 or zeros.min() <= 0:
        return np.full(len(POWERS), np.inf)
    end = 1 / (1 + (weights / rates).sum())
    fading = 1 / ((weights / (rates - zeros[:, None]) ** 2).sum(axis=1) * zeros)
    times = 2.0**POWERS
    mean = (times + 1) / 2 * end**2
    mean = mean + 2 * end * sum(
        size * _mean_of_sums(np.log1p(-gap), gap, times) for size, gap in zip(fading, zeros, strict=True)
    )
    for one, other in product(range(len(zeros)), repeat=2):
        gap = zeros[one] + zeros[other] - zeros[one] * zeros[other]
        log = np.log1p(-zeros[one]) + np.log1p(-zeros[other])
        mean = mean + fading[one] * fading[other] * _mean_of_sums(log, gap, times)
    shared = rates + rates[:, None] - rates * rates[:, None]
    return np.sqrt((1 + (weights * weights[:, None] / shared).sum()) * mean)


def _mean_of_sums(log: float, gap: float, times: Floats) -> Floats:
    """The mean over t from 1 to T of the sum of x^k over k < t, where log is that of x, and gap = 1 - x."""
    missing: Floats = 1 + np.exp(log) * np.expm1(times * log) / (gap * times)
    return missing / gap


def worst(rates: Floats, weights: Floats, roots: Floats, sharpness: float | None = None) -> float:
    """The largest ratio by its aim; with a sharpness, a smooth function that lies just above it."""
    ratios = errors(rates, weights) / roots / AIMS
    if sharpness is None or not np.isfinite(ratios).all():
        return float(ratios.max())
    most = ratios.max()
    return float(most + np.log(np.exp(sharpness * (ratios - most)).sum()) / sharpness)


def optimised(buffers: int, roots: Floats) -> tuple[Floats, Floats]:
    """Rates and weights, from rates in a geometric row and the weights that go with 1/sqrt(k)."""
    rates = np.geomspace(2.0**-22, 0.4, buffers)
    weights = np.sqrt(rates) * 0.25 * np.log(rates[-1] / rates[0]) / (buffers - 1)
    weights *= min(1, 0.8 / (weights / (1 - rates)).sum())
    point = np.concatenate([np.log(rates / (1 - rates)), np.log(weights)])
    for sharpness in (20.0, 100.0, 500.0, 3000.0):

        def objective(at: Floats, sharpness: float = sharpness) -> float:
            found = worst(1 / (1 + np.exp(-at[:buffers])), np.exp(at[buffers:]), roots, sharpness)
            return found if np.isfinite(found) else 1e3

        point = minimize(objective, point, method="L-BFGS-B", options={"maxiter": 400, "maxfun": 20000}).x
    return 1 / (1 + np.exp(-point[:buffers])), np.exp(point[buffers:])


def polished(rates: Digits, weights: Digits, roots: Floats) -> tuple[Digits, Digits]:
    """Single steps of the rounded digits, as long as one of them helps."""
    buffers = len(rates)
    best, everything = worst(value(rates), value(weights), roots), rates + weights
    helped = True
    while helped:
        helped = False
        for at, step in product(range(2 * buffers), (-1, 1)):
            m, s = everything[at]
            trial = [*everything[:at], (m + step, s), *everything[at + 1 :]]
            now = worst(value(trial[:buffers]), value(trial[buffers:]), roots)
            if 0 < m + step <= 2**BITS and now < best * (1 - 1e-9):
                best, everything, helped = now, trial, True
    return everything[:buffers], everything[buffers:]


def main() -> None:
    """Find, round, polish and write."""
    roots = square_root_errors()
    found = optimised(BUFFERS, roots)
    rates, weights = polished(digits(found[0]), digits(found[1]), roots)
    for power, ratio in zip(POWERS, errors(value(rates), value(weights)) / roots, strict=True):
        print(power, round(ratio, 4), flush=True)
    row = tuple(sorted((*rate, *weight) for rate, weight in zip(rates, weights, strict=True)))
    rows = "\n".join(f"    {buffer}," for buffer in row)
    TABLE.write_text(PAGE.format(count=len(row), rows=rows), encoding="utf-8")


if __name__ == "__main__":
    main()
