"""One task of one library, in one process: `python -m peers.child MODULE TASK SIZE FILE` writes what it took.

A task is run twice, and the second run counts: the first one loads and compiles what a library loads late. The lists
of losses have another length then, so that nothing is remembered that counts. If the first run took more than five
seconds of CPU time, it counts. CPU time and memory are those of the process and of all that it started (Spark runs in a
Java process), read from /proc; where that is missing, those of the process alone. The limit on CPU time ends a process
that takes longer.
"""

import io
import json
import os
import resource
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

from docs.cells import Cell, cells

from peers.library import Library
from peers.tasks import FIRST

CPU_LIMIT = int(os.environ.get("PEERS_CPU_LIMIT", "60"))
GALLERY_LIMITS = 5
"""How many times the limit its fifteen tasks have together."""
GALLERY = Path(__file__).parent.parent / "docs" / "gallery"
TICKS = os.sysconf("SC_CLK_TCK")
TOO_LONG = 5
"""Seconds of CPU time after which there is no second run."""
REASON = 200
"""How much of an error's message is kept."""


def main(module: str, task: str, size: int, into: Path) -> None:
    """Run it and write the measurement, or why it failed."""
    library: Library = import_module(module).LIBRARY
    with redirect_stdout(io.StringIO()):
        report = reported(library, task, size, into)
    into.write_text(json.dumps(report), encoding="utf-8")
    sys.stdout.flush()
    os._exit(0)  # Spark's own exit takes seconds, and nothing is left to do


def reported(library: Library, task: str, size: int, into: Path) -> dict[str, Any]:
    """The library started, then its task measured, or all of its gallery, within the limit."""
    starting = measured(library.start)
    if "failed" in starting:
        return starting
    threading.Thread(target=stop_after, args=(cpu_limit(task), into), daemon=True).start()
    found = gallery(library) if task == "gallery" else {task: single(library, task, size)}
    return {"starting": starting["cpu"], "parts": found, "memory": memory()}


def cpu_limit(task: str) -> int:
    """The seconds of CPU time that a task may take, after its library has started."""
    return GALLERY_LIMITS * CPU_LIMIT if task == "gallery" else CPU_LIMIT


def stop_after(limit: int, into: Path) -> None:
    """Once `limit` more seconds of CPU time are spent, write that they were, and end the process."""
    begun = cpu_seconds()
    while cpu_seconds() < begun + limit:
        time.sleep(1)
    into.write_text(json.dumps({"failed": f"stopped after {limit} s of CPU time"}), encoding="utf-8")
    os._exit(1)


def single(library: Library, task: str, size: int) -> dict[str, Any]:
    """A task that is a function, run twice unless that takes too long or fails; the answers of both are kept."""
    begun = cpu_seconds()
    if task in FIRST:
        once(library, task, FIRST[task])
        return once(library, task, size)
    first = once(library, task, size)
    if "failed" in first or cpu_seconds() - begun > TOO_LONG:
        return first
    second = once(library, task, size)
    return second if "failed" in second else second | {"answers": first["answers"] + second["answers"]}


def once(library: Library, task: str, size: int) -> dict[str, Any]:
    """A task prepared, then measured."""
    prepared: list[Callable[[], Any]] = []
    preparing = measured(lambda: prepared.append(library.works[task](size)))
    return measured(prepared[0]) | {"preparing": preparing["cpu"]} if prepared else preparing


def gallery(library: Library) -> dict[str, dict[str, Any]]:
    """The cells of the library's script, each measured; a cell sees what earlier ones have named."""
    names: dict[str, Any] = {"__name__": "gallery"}
    script = cells((GALLERY / library.gallery).read_text(encoding="utf-8"))
    return {str(cell.number): measured(running(cell, names)) for cell in script if cell.code}


def running(cell: Cell, names: dict[str, Any]) -> Callable[[], None]:
    """The cell, as a call."""
    return lambda: exec(compile(cell.code, f"task {cell.number}", "exec"), names)


def measured(work: Callable[[], Any]) -> dict[str, Any]:
    """The CPU time and the time that a call takes, and what it returns; if it fails, why."""
    others = cpu_of_others()
    own, clock = cpu_of_this(), time.perf_counter()  # last, and first below: looking at the others takes time itself
    try:
        answer = work()
    except Exception as error:
        traceback.print_exc()
        said = " ".join(f"{type(error).__name__}: {error}".split())
        return {"failed": said if len(said) <= REASON else f"{said[:REASON]}..."}
    seconds, spent = time.perf_counter() - clock, cpu_of_this() - own
    return {"cpu": spent + cpu_of_others() - others, "seconds": seconds, "answers": [answer]}


def cpu_of_this() -> float:
    """The CPU time of this process, and of those that it started and that have ended."""
    ended = os.times()
    return time.process_time() + ended.children_user + ended.children_system


def cpu_of_others() -> float:
    """The CPU time of the other processes of this session, and of those that they started and that have ended."""
    others = [stat for pid, stat in _session().items() if pid != os.getpid()]
    return sum(int(ticks) for stat in others for ticks in stat[11:15]) / TICKS


def cpu_seconds() -> float:
    """All of it."""
    return cpu_of_this() + cpu_of_others()


def memory() -> int:
    """The most memory that this process has used, in bytes, and each other of its session, added up."""
    return sum(_peak(pid) for pid in _session()) or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _session() -> dict[int, list[str]]:
    """What /proc/PID/stat has after the name, for this session: Spark's workers have process groups of their own."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            stat = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if int(stat[3]) == os.getsid(0):
            found[int(path.parent.name)] = stat
    return found


def _peak(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM")), 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
