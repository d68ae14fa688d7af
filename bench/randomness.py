"""Exact noise beside opendp's exact noise and numpy's inexact one; the time of the import beside numpy's."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench.table import Row, seconds, side_by_side
from counterpoint.coins.secure import SecureCoins

SAMPLES = 10**6
SCALE = 10
SINGLES = 10**4


def rows() -> Iterator[Row]:
    coins = SecureCoins()

    def laplace() -> object:
        return coins.discrete_laplace(SCALE, size=SAMPLES)

    def gaussian() -> object:
        return coins.discrete_gaussian(SCALE**2, size=SAMPLES)

    def singles() -> object:
        return [coins.discrete_gaussian(SCALE**2) for _ in range(SINGLES)]

    def rounded_normal() -> object:
        return coins.rounded_normal(SCALE**2, size=SAMPLES)

    opendp_laplace, opendp_gaussian = opendp()
    numpy_laplace, numpy_gaussian = numpy()
    name = f"10^6 exact discrete {{}}, {{}} {SCALE}"
    times = side_by_side(laplace, opendp_laplace, rounds=3)
    yield Row(name.format("Laplace", "scale"), *times, "opendp's integer Laplace", at_least=50)
    times = side_by_side(gaussian, opendp_gaussian, rounds=3)
    yield Row(name.format("Gaussian", "sigma"), *times, "opendp's integer Gaussian", at_least=25)
    times = side_by_side(rounded_normal, opendp_gaussian, rounds=3)
    yield Row(f"10^6 exact rounded normals, sigma {SCALE}", *times, "opendp's integer Gaussian", at_least=80)
    times = side_by_side(laplace, numpy_laplace)
    yield Row(name.format("Laplace", "scale"), *times, "numpy's float Laplace, rounded (neither exact nor secure)")
    times = side_by_side(gaussian, numpy_gaussian)
    yield Row(name.format("Gaussian", "sigma"), *times, "numpy's float normal, rounded (neither exact nor secure)")
    yield Row(
        "one exact discrete Gaussian", seconds(singles, time.process_time) / SINGLES, 15e-6, "15 us of CPU", at_most=1
    )
    yield Row("import counterpoint", *import_times("import counterpoint"), "import numpy", at_most=2)
    everything = "from counterpoint.lazy import load; load('counterpoint')"
    yield Row("import everything public", *import_times(everything), "import numpy")


def opendp() -> tuple[Callable[[], object], Callable[[], object]]:
    """Noise on a vector of zeros, given as the numpy array that opendp converts fastest."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    laplace = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=float(SCALE))
    gaussian = dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=float(SCALE))
    zeros: Any = np.zeros(SAMPLES, dtype=np.int64)
    return lambda: laplace(zeros), lambda: gaussian(zeros)


def numpy() -> tuple[Callable[[], object], Callable[[], object]]:
    """What people write who need neither exactness nor secrecy."""
    generator = np.random.default_rng()  # noqa: TID251 - the insecure peer is what is measured here
    return (
        lambda: np.rint(generator.laplace(scale=SCALE, size=SAMPLES)).astype(np.int64),
        lambda: np.rint(generator.normal(scale=SCALE, size=SAMPLES)).astype(np.int64),
    )


def import_times(program: str, rounds: int = 11) -> tuple[float, float]:
    """The median seconds that a program and `import numpy` take in fresh interpreters, in turns."""
    pairs = [(run_time(program), run_time("import numpy")) for _ in range(rounds)]
    return statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs)


def run_time(program: str) -> float:
    timed = f"import time; start = time.perf_counter(); {program}; print(time.perf_counter() - start)"
    done = subprocess.run([sys.executable, "-c", timed], capture_output=True, text=True, check=True)
    return float(done.stdout)
