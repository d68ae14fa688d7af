"""A benchmark's row, the clock behind it, and the table that all rows end in.

Ours and the peer's run in turns in one process, so that a busy machine slows both; medians of the rounds are
compared. A ratio means the same on every machine, a time does not.
"""

import json
import platform
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).with_name("results.json")


@dataclass(frozen=True)
class Row:
    """What was measured, in seconds or another unit, and the target: times faster than the peer, or at most times more.

    >>> row = Row("sum", ours=0.1, peer=0.8, against="a loop", at_least=5)
    >>> row.ratio, row.target, row.met
    (8.0, 'at least 5x as fast', True)
    """

    what: str
    ours: float
    peer: float
    against: str
    at_least: float | None = None
    at_most: float | None = None
    unit: str = "s"

    @property
    def ratio(self) -> float:
        """The peer's time by ours; where the target is a limit on our time, ours by the peer's."""
        return self.peer / self.ours if self.at_most is None else self.ours / self.peer

    @property
    def target(self) -> str:
        """The target in words."""
        if self.at_least is not None:
            return f"at least {self.at_least:g}x as fast"
        if self.at_most is None:
            return "none"
        return f"at most {self.at_most:g}x the time" if self.unit == "s" else f"at most {self.at_most:g}x"

    @property
    def met(self) -> bool:
        """Whether the ratio meets the target; without one it does."""
        if self.at_most is not None:
            return self.ratio <= self.at_most
        return self.at_least is None or self.ratio >= self.at_least


def side_by_side(ours: Callable[[], object], peer: Callable[[], object], rounds: int = 5) -> tuple[float, float]:
    """The median seconds of each, run in turns after one unmeasured turn of ours (compiled thresholds stay)."""
    ours()
    pairs = [(seconds(ours), seconds(peer)) for _ in range(rounds)]
    return statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs)


def best_cpu(ours: Callable[[], object], peer: Callable[[], object], rounds: int = 3) -> tuple[float, float]:
    """The least CPU seconds of each, run in turns: what others do on the machine hardly shows."""
    pairs = [(seconds(ours, time.process_time), seconds(peer, time.process_time)) for _ in range(rounds)]
    return min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """How long it takes once, by this clock."""
    start = clock()
    work()
    return clock() - start


def report(rows: Iterable[Row]) -> bool:
    """Print the rows as they come in one table, write them down, and tell whether every target was met."""
    table = Table("what", "ours", "peer", "against", "ratio", "target", title="Counterpoint beside its peers")
    done = []
    for row in rows:
        colour = "green" if row.met else "red"
        ratio = f"[{colour}]{row.ratio:.3g}x[/]"
        table.add_row(
            row.what, *(_spell(size, row.unit) for size in (row.ours, row.peer)), row.against, ratio, row.target
        )
        done.append(row)
    Console(width=150).print(table)
    _write(done)
    return all(row.met for row in done)


def _spell(duration: float, unit: str) -> str:
    if unit != "s":
        return f"{duration:.4g} {unit}".strip()
    units = ((1, "s"), (1e-3, "ms"), (1e-6, "us"))
    size, unit = next((pair for pair in units if duration >= pair[0]), units[-1])
    return f"{duration / size:.3g} {unit}"


def _write(rows: list[Row]) -> None:
    facts = {"python": platform.python_version(), "machine": platform.machine()}
    facts |= {name: _version(name) for name in ("numpy", "opendp", "dp-accounting", "cryptography")}
    measured = [asdict(row) | {"ratio": row.ratio, "target": row.target, "met": row.met} for row in rows]
    RESULTS.write_text(json.dumps({"with": facts, "rows": measured}, indent=2) + "\n", encoding="utf-8")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
