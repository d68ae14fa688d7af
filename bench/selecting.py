"""How many units a key needs to be selected: the better of two mechanisms beside the one for single keys.

The peer divides epsilon and delta by the number of keys of a unit, as selection by counts of single keys must.
"""

from collections.abc import Iterator

from bench.table import Row
from counterpoint.mechanisms.partition_selection import GaussianSelection, PartitionSelection

GOALS = {1: 1.0, 3: 1.0, 8: 0.71, 50: 0.3}
"""By the keys of a unit, at most this times as many units."""


def rows() -> Iterator[Row]:
    """At (1, 1e-6) and 95 %: exact numbers, not measurements."""
    for keys, goal in GOALS.items():
        divided, normal = (kind(1, "1e-6").error("0.95", keys) for kind in (PartitionSelection, GaussianSelection))
        what = f"units that a key needs, {keys} keys of a unit, at (1, 1e-6)"
        yield Row(what, min(divided, normal), divided, "optimal selection of single keys", at_most=goal, unit="units")
