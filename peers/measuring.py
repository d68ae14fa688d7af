"""Runs tasks: each run is a process in the library's environment, and all libraries take turns, round after round.

A machine that is busy slows all of them. What the page compares are medians over the rounds.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from docs.cells import Cell, cells

from peers.child import GALLERY, TOO_LONG, cpu_limit
from peers.environments import ROOT, python
from peers.judging import error
from peers.library import Library, lines
from peers.tasks import TASKS, Task

WALL_LIMITS = 10
"""How many times the limit on CPU time a process may take on a busy machine."""
Report = dict[str, Any]
Row = dict[str, Any]
GALLERY_TASK = Task("gallery", "The gallery's fifteen tasks", "", tuple(range(15)))
Runner = Callable[[Library, str, int], Report]


def run(library: Library, task: str, size: int) -> Report:
    """One process: what it reports, or {"failed": why}."""
    with TemporaryDirectory() as folder:
        into = Path(folder) / "report.json"
        command = [str(python(library)), "-m", "peers.child", library.module, task, str(size), str(into)]
        paths = os.pathsep.join([str(ROOT), str(ROOT / "src")])
        variables = {"PYTHONPATH": paths, "PYTHONWARNINGS": "ignore", "TMPDIR": folder}
        with (Path(folder) / "said").open("w+", encoding="utf-8") as said:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=os.environ | variables,
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
            )
            limit = WALL_LIMITS * cpu_limit(task)
            _wait(process, limit)
            said.seek(0)
            failure = why(process.returncode, said.read(), limit)
        if into.exists():
            report: Report = json.loads(into.read_text(encoding="utf-8"))
            return report
    return {"failed": failure}


def _wait(process: "subprocess.Popen[bytes]", limit: int) -> None:
    """Wait for the process, and no longer than the limit; then end all that it has started."""
    try:
        process.wait(limit)
    except subprocess.TimeoutExpired:
        process.kill()
    while started := _session_of(process.pid):
        for pid in started:
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    process.wait()


def _session_of(leader: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            stat = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if int(stat[3]) == leader and stat[0] != "Z":
            found.append(int(path.parent.name))
    return found


def why(code: int, said: str, limit: int) -> str:
    r"""Why a process has left no report, from its exit code and the last line that it said.

    >>> why(-9, "", 600), why(-11, "", 600), why(1, "Traceback ...\nKeyError: 3\n", 600)
    ('stopped after 600 s', 'the process was ended by SIGSEGV', 'KeyError: 3')
    """
    if code == -signal.SIGKILL:
        return f"stopped after {limit} s"
    if code < 0:
        return f"the process was ended by {signal.Signals(-code).name}"
    return (said.strip().splitlines() or [f"exit code {code}"])[-1]


def measure(task: Task, libraries: Sequence[Library], missing: dict[str, str], start: Runner = run) -> Iterator[Row]:
    """The rows of a task: one for each size and library, with numbers, or with why there are none."""
    if task is GALLERY_TASK:
        yield from _gallery(libraries, missing, start)
        return
    over: dict[str, str] = {}
    for size in task.sizes:
        can = [each for each in libraries if task.name in each.works and each.name not in missing | over]
        reports: dict[str, list[Report]] = {library.name: [] for library in can}
        for _ in range(task.rounds):
            for library in can:
                if not any(_is_final(report, task.name) for report in reports[library.name]):
                    print(f"{task.name} {size}: {library.name}", file=sys.stderr, flush=True)
                    reports[library.name].append(start(library, task.name, size))
        for library in libraries:
            row = _row(task, size, library, missing | over, reports.get(library.name, []))
            if "failed" in row and library.name in reports:
                over[library.name] = f"not run: {size:,} {task.size_is} failed"
            yield row


def _is_final(report: Report, part: str) -> bool:
    """Whether the run need not be repeated: it failed, or took so long that noise is small beside it."""
    return bool(_failure(report, part)) or _is_long(report)


def _is_long(report: Report) -> bool:
    """Whether starting and all parts took so long together; a part that failed took nothing."""
    parts = report["parts"].values()
    return bool(report["starting"] + sum(part.get("cpu", 0) + part.get("preparing", 0) for part in parts) > TOO_LONG)


def _failure(report: Report, part: str) -> str:
    found = report if "failed" in report else report["parts"][part]
    return str(found.get("failed", ""))


def _row(task: Task, size: int, library: Library, missing: dict[str, str], reports: list[Report]) -> Row:
    row: Row = {"task": task.name, "size": size, "library": library.name}
    if task.name in library.cannot:
        return row | {"cannot": library.cannot[task.name]}
    row["lines"] = lines(library.works[task.name])
    if library.name in missing:
        return row | {"failed": missing[library.name]}
    failures = [failure for report in reports if (failure := _failure(report, task.name))]
    if failures:
        return row | {"failed": failures[0]}
    parts = [report["parts"][task.name] for report in reports]
    errors = [error(task.name, size, answer) for part in parts for answer in part["answers"]]
    return row | {
        "cpu": [round(part["cpu"], 6) for part in parts],
        "preparing": [round(part["preparing"], 6) for part in parts],
        "starting": [round(report["starting"], 3) for report in reports],
        "memory": [report["memory"] for report in reports],
        "errors": [float(f"{each:.6g}") for each in errors if each is not None],
    }


def scripts(library: Library) -> dict[int, Cell]:
    """The cells of the library's script of the gallery, by the numbers of their tasks."""
    if not library.gallery:
        return {}
    found = cells((GALLERY / library.gallery).read_text(encoding="utf-8"))
    return {cell.number: cell for cell in found}


def _gallery(libraries: Sequence[Library], missing: dict[str, str], start: Runner) -> Iterator[Row]:
    can = [library for library in libraries if library.gallery and library.name not in missing]
    reports: dict[str, list[Report]] = {library.name: [] for library in can}
    for _ in range(GALLERY_TASK.rounds):
        for library in can:
            if not any("failed" in report or _is_long(report) for report in reports[library.name]):
                print(f"gallery: {library.name}", file=sys.stderr, flush=True)
                reports[library.name].append(start(library, "gallery", 0))
    for number in GALLERY_TASK.sizes:
        for library in libraries:
            yield _cell_row(number, library, missing, reports.get(library.name, []))


def _cell_row(number: int, library: Library, missing: dict[str, str], reports: list[Report]) -> Row:
    row: Row = {"task": "gallery", "size": number, "library": library.name}
    if not library.gallery:
        return row | {"cannot": library.no_gallery}
    cell = scripts(library)[number]
    if cell.notes.startswith("cannot:"):
        return row | {"cannot": " ".join(cell.notes.removeprefix("cannot: ").split())}
    row["lines"] = cell.lines
    if library.name in missing:
        return row | {"failed": missing[library.name]}
    failures = [failure for report in reports if (failure := _failure(report, str(number)))]
    if failures:
        return row | {"failed": failures[0]}
    parts = [report["parts"][str(number)] for report in reports]
    return row | {
        "cpu": [round(part["cpu"], 6) for part in parts],
        "memory": [report["memory"] for report in reports],
    }


ALL = [GALLERY_TASK, *TASKS]
