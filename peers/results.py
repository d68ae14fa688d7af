"""The results as the page reads them: medians over the rounds, and ours beside the others'.

>>> row = {"task": "keys", "size": 1, "library": "opendp", "cpu": [3, 1, 2], "preparing": [1, 1, 1], "memory": [7]}
>>> cell = Cell(row | {"errors": [1, 2], "starting": [0.1], "lines": 4})
>>> cell.cpu, cell.error, cell.why
(3, 1.5, '')
>>> Cell({"task": "keys", "size": 1, "library": "jax_privacy", "cannot": "no tables"}).why
'cannot: no tables'
"""

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from peers.libraries import LIBRARIES, OURS
from peers.library import Library
from peers.tasks import TASKS, Task

WITH_DATA = {task.name for task in TASKS if task.with_data}


def _median(values: Sequence[float]) -> float:
    return statistics.median(values)


NOT_RUN = "not run"
"""How the reason begins of a row that was not tried: a smaller size failed, or the run was cut short."""


class Cell:
    """What one library took for one task at one size, or why there is no number."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.row = row
        self.library: Library = LIBRARIES[row["library"]]

    @property
    def why(self) -> str:
        """Why there is no number; empty if there is one."""
        if self.row.get("failed", "").startswith(NOT_RUN):
            return str(self.row["failed"])
        return next((f"{kind}: {self.row[kind]}" for kind in ("cannot", "failed") if kind in self.row), "")

    @property
    def cpu(self) -> float:
        """The median CPU time, with that of preparing where data is read then."""
        whole = zip(self.row["cpu"], self.row["preparing"], strict=True) if self.row["task"] in WITH_DATA else None
        return _median([sum(pair) for pair in whole] if whole is not None else self.row["cpu"])

    @property
    def preparing(self) -> float:
        """The median CPU time of preparing."""
        return _median(self.row["preparing"])

    @property
    def starting(self) -> float:
        """The median CPU time of importing the library and starting what it runs on."""
        return _median(self.row["starting"])

    @property
    def memory(self) -> float:
        """The median of the peaks, in bytes."""
        return _median(self.row["memory"])

    @property
    def error(self) -> float | None:
        """The mean error over the rounds, if the task has one."""
        errors = self.row.get("errors")
        return statistics.fmean(errors) if errors else None

    @property
    def lines(self) -> int:
        """The logical lines of the code."""
        return int(self.row["lines"])


class Results:
    """All results of one file."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.versions: dict[str, str] = found["versions"]
        self.measured_with: dict[str, Any] = found["with"]
        self._cells = {(row["task"], row["size"], row["library"]): Cell(row) for row in found["rows"]}

    def cell(self, task: str, size: int, library: Library) -> Cell:
        """The cell; every task has one for each library and size."""
        return self._cells[task, size, library.name]

    def numbers(self, task: str, size: int) -> list[Cell]:
        """The cells that have numbers, in the order of the libraries."""
        cells = [self.cell(task, size, library) for library in LIBRARIES.values()]
        return [cell for cell in cells if not cell.why]

    def largest(self, task: Task, library: Library) -> int | None:
        """The largest size for which both this library and ours have numbers."""
        sizes = [
            size
            for size in task.sizes
            if not self.cell(task.name, size, library).why and not self.cell(task.name, size, OURS).why
        ]
        return max(sizes, default=None)

    def ratio(self, task: Task, library: Library, of: Callable[[Cell], float | None]) -> float | None:
        """A library's number by ours, at the largest size that both have; None if there is none."""
        size = self.largest(task, library)
        if size is None:
            return None
        theirs, ours = of(self.cell(task.name, size, library)), of(self.cell(task.name, size, OURS))
        return theirs / ours if theirs is not None and ours else None

    def starting(self, library: Library) -> float | None:
        """What starting a library takes: the median over its tasks."""
        cells = [cell for cell in self._cells.values() if cell.library is library and "starting" in cell.row]
        return statistics.median(cell.starting for cell in cells) if cells else None
