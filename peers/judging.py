"""How far off answers are: each task's answers beside the truth, which is computed here without noise.

>>> root_mean_square({"a": 3, "b": 0}, {"a": 0, "b": 4})
3.5355339059327378
"""

import math
import statistics
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

from peers.data import rows
from peers.tasks import ANSWERS, FITTING

Truth = Mapping[str, float]


def error(task: str, size: int, answer: Any) -> float | None:
    """The error of an answer, as the task defines it; None for a task that has none.

    >>> error("threads", 1, 1003), error("filter", 1000, True)
    (3.0, None)
    """
    judge = JUDGES.get(task)
    return None if judge is None else float(judge(size, answer))


def root_mean_square(found: Truth, truth: Truth) -> float:
    """Over the keys of the truth; a key without an answer counts as 0."""
    return math.sqrt(statistics.fmean((found.get(key, 0) - value) ** 2 for key, value in truth.items()))


def mean_absolute(found: Truth, truth: Truth) -> float:
    """Over the keys of the truth; a key without an answer counts as 0."""
    return statistics.fmean(abs(found.get(key, 0) - value) for key, value in truth.items())


@cache
def _query(asked: str) -> dict[str, float]:
    import duckdb

    return dict(duckdb.execute(asked).fetchall())


def _sums(size: int) -> Truth:
    return _query(f"SELECT key, sum(amount) FROM '{rows(size)}' GROUP BY key")


def _flights(column: str, by: str = "carrier") -> Truth:
    from counterpoint.datasets import flights

    return _query(f"SELECT {by}, {column} FROM '{flights()}' GROUP BY {by}")


def _by_carrier(column: str, size: int, answer: Any) -> float:
    return mean_absolute(answer, _flights(column))


def _counts_of_a_stream(size: int, answer: Any) -> float:
    truth = {str(place): size // ANSWERS * (place + 1) / 2 for place in range(ANSWERS)}
    return root_mean_square({str(place): count for place, count in enumerate(answer)}, truth)


DELAY = "least(600, greatest(-60, arr_delay))"
JUDGES: dict[str, Callable[[int, Any], float]] = {
    "different_losses": lambda size, answer: answer,
    "gaussian_losses": lambda size, answer: answer,
    "sampled_gaussians": lambda size, answer: answer,
    "threads": lambda size, answer: answer - FITTING,
    "stream": _counts_of_a_stream,
    "separated": lambda size, answer: math.sqrt(statistics.fmean(deviation**2 for deviation in answer)),
    "group_by": lambda size, answer: root_mean_square(answer, _sums(size)),
    "group_by_units": lambda size, answer: root_mean_square(answer, _sums(size)),
    "counts": lambda size, answer: root_mean_square(answer, _flights("count(*)")),
    "means": partial(_by_carrier, f"avg({DELAY})"),
    "medians": partial(_by_carrier, f"median({DELAY})"),
    "keys": lambda size, answer: len(set(_flights("count(*)", "dest")) - set(answer)),
}
"""For the lists of losses, the epsilon itself: the page compares it with the smallest."""
