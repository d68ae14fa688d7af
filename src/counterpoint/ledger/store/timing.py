"""How long things take, as a histogram: for the metrics of a service, which read what this process has counted.

>>> times = Durations()
>>> times.add(0.004)
>>> times.add(20)
>>> dict(times.samples("commit_seconds"))["commit_seconds_count"]
2
>>> [number for name, number in times.samples("commit_seconds") if "bucket" in name][-2:]
[1, 2]
"""

import threading
from bisect import bisect_left
from collections.abc import Iterator

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The upper ends of the buckets, in seconds."""


class Durations:
    """Durations, counted by size. Threads may add at the same time."""

    def __init__(self) -> None:
        self._buckets = [0] * (len(BOUNDS) + 1)
        self._sum = 0.0
        self._lock = threading.Lock()

    def add(self, seconds: float) -> None:
        """Count one."""
        with self._lock:
            self._buckets[bisect_left(BOUNDS, seconds)] += 1
            self._sum += seconds

    def samples(self, name: str, labels: str = "") -> Iterator[tuple[str, float]]:
        """As Prometheus has them: how many took at most so long, the sum, and how many there were."""
        with self._lock:
            buckets, total = tuple(self._buckets), self._sum
        below, before = 0, f"{labels}," if labels else ""
        for bound, number in zip((*BOUNDS, "+Inf"), buckets, strict=True):
            below += number
            yield f'{name}_bucket{{{before}le="{bound}"}}', below
        shown = f"{{{labels}}}" if labels else ""
        yield f"{name}_sum{shown}", total
        yield f"{name}_count{shown}", below


COMMITS = Durations()
"""The transactions of all ledgers of this process; the requests that wait at the same time share one."""
