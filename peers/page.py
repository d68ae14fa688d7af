"""Makes docs/benchmarks.md and its figures from results.json, and from nothing else: the same file, the same page."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from peers import figures
from peers.child import TOO_LONG
from peers.libraries import LIBRARIES, OURS
from peers.library import Library
from peers.measuring import GALLERY_TASK, scripts
from peers.results import NOT_RUN, Cell, Results
from peers.tasks import LISTS, TASKS, Task

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
DOCS = HERE.parent / "docs"
PAGE = DOCS / "benchmarks.md"
EVERY = list(LIBRARIES.values())
PEERS = [library for library in EVERY if library is not OURS]
CLEARLY = 0.95
"""A peer wins where it takes less than this much of ours: less is within what a busy machine blurs."""
NOT_BY_CHANCE, EXACTLY = 0.8, 0.9995
EXACT = (*LISTS, "separated")
"""The same for errors that are measured on some dozens of noisy answers, and for those that are computed."""

HEAD = """# Benchmarks

The same tasks, on the same data and at the same guarantee, with Counterpoint and with other libraries of the field.
`make peers` installs each library into an environment of its own, measures everything and writes this page; nothing on
it is typed by hand but the sentences. The code is in `peers/`, one file for each library, and in `docs/gallery/`.

"""

HOW = """## How it was measured

- **CPU time** is that of the process and of everything that it starts (Spark runs in a Java process, with two threads
  here), user and system. Every number is the median over rounds in which all libraries take turns, each run in a
  process of its own: a busy machine slows them alike. Compare ratios; seconds are this machine's.
- Importing a library, and starting Spark, is not counted; the first table shows it. A task is run twice in its process
  and the second run counts, so that what is loaded or compiled once is not counted either (the first list of losses
  has another length, so that nothing is remembered). After {too_long} s of CPU time there is no second run and no
  further round, and after {limit} s a run is stopped. The gallery runs once in a process.
- Where a task reads data, reading it counts. Elsewhere, preparing (parameters, events, earlier launches) stands in a
  column of its own.
- **Memory** is the most that the process has held, added up over what it started, with the library itself.
- **Error** is measured against the answer without noise, on the answers of these runs: a mean over two to ten
  runs, so differences of a tenth mean nothing. For lists of losses it is exact: the epsilon that was found.
- **Lines** are logical lines as Python's tokenizer counts them, with imports and preparing.
- "Not run" is a row that was left out because a smaller size had failed already. `python -m peers TASK` measures a task
  again and keeps the others.
- Each library is used as its documentation shows. A task that a library cannot express says why; please correct us.

"""

NOT_COMPARABLE = """## What is not comparable

- Counterpoint and OpenDP draw exact discrete noise from secure randomness, Tumult Analytics too; jax-privacy draws
  floating-point Gaussians from a seeded generator, which is faster, and right for training models.
- dp_accounting's privacy loss distributions are computed in floating point and rounded pessimistically to a grid; ours
  are certified enclosures by interval arithmetic. A finer grid than the default makes dp_accounting tighter and slower.
- The stream of jax-privacy uses its rational approximation of the square root with ten buffers. Its documentation
  prefers `optimize`, whose error is smaller; that alone takes about a minute of CPU time here, beyond the limit.
- Tumult Analytics and PipelineDP are made for clusters; here they run on one small machine, which is not where they
  are at home. PipelineDP's local backend is pure Python; on Beam or Spark it scales as they do.
- SmartNoise SQL does not protect which keys occur in the group-bys here (`censor_dims` is off, as the keys are known),
  and answers integers for sums.
- OpenDP adds up the epsilons of (epsilon, delta) losses; it has no optimal composition, so its time for that list is
  that of a sum. SmartNoise's odometer is a closed formula, of the kind that `cp.compose.advanced` is.
- With eight threads, OpenDP is asked under a lock: its filter refuses a query that comes while it answers another, and
  says so.
- Sessions here are in memory, as the peers' are. With a durable ledger every launch and answer is written to disk
  first, which costs more than everything else; `make bench` measures that apart.

"""


def write(found: dict[str, Any]) -> None:
    """Write the page and its figures."""
    results = Results(found)
    PAGE.write_text(written(results), encoding="utf-8")
    for name, drawn in drawings(results).items():
        (DOCS / "figures" / name).write_text(drawn, encoding="utf-8")


def written(results: Results) -> str:
    """The page."""
    parts = [HEAD, *_versions(results), HOW.format(too_long=TOO_LONG, limit=results.measured_with["cpu_limit"])]
    parts += [*_summary(results), *_wins(results), *_gallery(results)]
    for task in TASKS:
        parts += _section(task, results)
    return "".join([*parts, NOT_COMPARABLE]).rstrip("\n") + "\n"


def drawings(results: Results) -> dict[str, str]:
    """The figures by the names of their files."""
    times = {task.title: _ratios(task, results, lambda cell: cell.cpu) for task in TASKS}
    errors = {task.title: _ratios(task, results, lambda cell: cell.error) for task in TASKS if task.name != "threads"}
    return {
        "benchmarks-cpu.svg": figures.dots(
            "CPU time, as a multiple of Counterpoint's", _some(times), EVERY, "the peer is faster", "ours is faster"
        ),
        "benchmarks-error.svg": figures.dots(
            "Error, as a multiple of Counterpoint's", _some(errors), EVERY, "the peer is nearer", "ours is nearer"
        ),
        "benchmarks-lists.svg": figures.lines(
            "CPU time to account for a list of different (epsilon, delta) losses",
            _by_size("different_losses", results),
            EVERY,
            "losses",
            duration,
        ),
    }


def _ratios(task: Task, results: Results, of: Callable[[Cell], float | None]) -> dict[str, float]:
    found = {library.name: results.ratio(task, library, of) for library in PEERS}
    return {name: ratio for name, ratio in found.items() if ratio}


def _some(rows: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    return {title: row for title, row in rows.items() if row}


def _by_size(task: str, results: Results) -> dict[str, dict[int, float]]:
    sizes = next(each.sizes for each in TASKS if each.name == task)
    curves: dict[str, dict[int, float]] = {}
    for size in sizes:
        for cell in results.numbers(task, size):
            curves.setdefault(cell.library.name, {})[size] = cell.cpu
    return curves


def _versions(results: Results) -> Iterator[str]:
    machine = results.measured_with
    yield from _table(["library", "version", "CPU time to start"])
    for library in EVERY:
        starting = results.starting(library)
        shown = "-" if starting is None else duration(starting)
        yield _line([library.title, results.versions.get(library.name, "did not install here"), shown])
    yield (
        f"\nPython {machine['python']}, {machine['system']}, {machine['cores']} cores. dp_accounting is Google's"
        " accounting; PipelineDP runs on Google's building blocks (PyDP).\n\n"
    )


def _summary(results: Results) -> Iterator[str]:
    yield "## In one table\n\n"
    yield (
        "CPU time as a multiple of ours, at the largest size that both did within the limit: above 1, ours is faster;"
        " **bold**, the peer is. A dash is a task that the library cannot express.\n\n"
    )
    yield from _table(["task", *(library.title for library in PEERS)])
    for task in TASKS:
        yield _line([task.title, *(_multiple(task, library, results) for library in PEERS)])
    yield "\n![CPU time of each library, by task, as a multiple of Counterpoint's](figures/benchmarks-cpu.svg)\n\n"
    yield "![Error of each library, by task, as a multiple of Counterpoint's](figures/benchmarks-error.svg)\n\n"


def _multiple(task: Task, library: Library, results: Results) -> str:
    ratio = results.ratio(task, library, lambda cell: cell.cpu)
    if ratio is None:
        whys = [results.cell(task.name, size, library).why for size in task.sizes]
        if all(why.startswith("cannot") for why in whys):
            return "-"
        failed = NOT_RUN if all(why.startswith(NOT_RUN) for why in whys) else "failed"
        return failed if all(whys) else "only the peer"
    size = results.largest(task, library)
    beyond = f" (at {size:,})" if size != max(task.sizes) else ""
    return (f"**{times(ratio)}**" if ratio < CLEARLY else times(ratio)) + beyond


def _wins(results: Results) -> Iterator[str]:
    yield "## Where a peer wins\n\n"
    yield (
        "Every row of this page in which a peer takes less than 0.95 times our CPU time or memory, has an error below"
        " 0.8 times ours (below 0.9995 times for lists of losses and deviations, which are exact), or fewer lines; and"
        " what Counterpoint cannot do.\n\n"
    )
    won = [line for task in TASKS for line in _won(task, results)] + list(_gallery_won(results))
    yield "".join(f"- {line}\n" for line in won) or "None.\n"
    yield "\n"


def _won(task: Task, results: Results) -> Iterator[str]:
    for library in PEERS:
        better: dict[str, list[str]] = {}
        for size in task.sizes:
            theirs, ours = results.cell(task.name, size, library), results.cell(task.name, size, OURS)
            at = f" at {size:,}" if task.size_is else ""
            for what, how in () if theirs.why else _better(theirs, ours):
                better.setdefault(what, []).append(f"{how}{at}".strip())
        if better:
            won = "; ".join(f"{what} {', '.join(dict.fromkeys(how))}" for what, how in better.items())
            yield f"{task.title}, {library.title}: {won}."


def _better(theirs: Cell, ours: Cell) -> Iterator[tuple[str, str]]:
    """In what a library is clearly better than ours, and how much."""
    if ours.why:
        yield f"it does what {OURS.title} does not ({ours.why})", ""
        return
    if theirs.cpu < CLEARLY * ours.cpu:
        yield "CPU time", times(theirs.cpu / ours.cpu)
    if theirs.memory < CLEARLY * ours.memory:
        yield "memory", times(theirs.memory / ours.memory)
    if theirs.error is not None and ours.error is not None and abs(theirs.error) < _clearly(theirs) * abs(ours.error):
        yield "error", times(theirs.error / ours.error)
    if theirs.lines < ours.lines:
        yield "lines", f"{theirs.lines} beside {ours.lines}"


def _clearly(cell: Cell) -> float:
    """Below which multiple of ours an error is smaller than by chance: epsilons of lists and deviations are exact."""
    return EXACTLY if cell.row["task"] in EXACT else NOT_BY_CHANCE


def _gallery_won(results: Results) -> Iterator[str]:
    for number, cell in scripts(OURS).items():
        for library in PEERS:
            theirs, ours = results.cell("gallery", number, library), results.cell("gallery", number, OURS)
            if not theirs.why and not ours.why and theirs.cpu < CLEARLY * ours.cpu:
                yield f"Gallery, {cell.head}, {library.title}: CPU time {times(theirs.cpu / ours.cpu)}."


def _gallery(results: Results) -> Iterator[str]:
    yield f"## {GALLERY_TASK.title}\n\n"
    yield (
        "The cells of the scripts in `docs/gallery/`, on 336,776 flights; the [gallery](gallery.md) shows the code. All"
        " protect each flight by itself. Each entry is the lines of code and the CPU time, a dash a task that"
        " the library cannot express.\n\n"
    )
    shown = [library for library in EVERY if library.gallery]
    yield from _table(["task", *(library.title for library in shown)])
    for number, cell in scripts(OURS).items():
        entries = (results.cell("gallery", number, library) for library in shown)
        yield _line([cell.head, *map(_lines_and_time, entries)])
    yield "\n"
    yield from _together(results, [library for library in shown if library is not OURS])
    rest = [library for library in PEERS if not library.gallery]
    yield "".join(f"- {library.title} has none of these tasks: {library.no_gallery}.\n" for library in rest) + "\n"


def _lines_and_time(cell: Cell) -> str:
    if cell.why:
        return "-" if "cannot" in cell.row else cell.why
    return f"{cell.lines}; {duration(cell.cpu)}"


def _together(results: Results, peers: list[Library]) -> Iterator[str]:
    whole = sum(results.cell("gallery", number, OURS).cpu for number in GALLERY_TASK.sizes)
    memory = results.cell("gallery", 0, OURS).memory
    yield f"- All fifteen take Counterpoint {duration(whole)} and {size_of(memory)} of memory.\n"
    for library in peers:
        common = [number for number in GALLERY_TASK.sizes if not results.cell("gallery", number, library).why]
        if not common:
            continue
        theirs = sum(results.cell("gallery", number, library).cpu for number in common)
        ours = sum(results.cell("gallery", number, OURS).cpu for number in common)
        memory = results.cell("gallery", common[0], library).memory
        yield (
            f"- The {len(common)} that {library.title} can do take it {duration(theirs)}, and Counterpoint"
            f" {duration(ours)}: {times(theirs / ours)}; it holds {size_of(memory)}.\n"
        )


def _section(task: Task, results: Results) -> Iterator[str]:
    yield f"## {task.title}\n\n{task.says}\n\n"
    names = [library for library in EVERY if task.name not in library.cannot]
    sized, data = bool(task.size_is), task.with_data
    preparing = [] if data else ["preparing"]
    heads = [*([task.size_is] if sized else []), "library", "CPU time", *preparing, "times ours", "memory"]
    heads += [*([_error_head(task)] if task.error else []), "lines"]
    yield from _table(heads)
    for size in task.sizes:
        best = min((cell.error for cell in results.numbers(task.name, size) if cell.error), default=1.0)
        for library in names:
            cell, ours = results.cell(task.name, size, library), results.cell(task.name, size, OURS)
            row = [f"{size:,}"] if sized else []
            row += [library.title, *_numbers(cell, ours, task, best)]
            yield _line(row + [""] * (len(heads) - len(row)))
    yield "\n"
    if task.error:
        yield f"Error: {task.error}.\n\n"
    reasons = [f"- {library.title} cannot: {why}.\n" for library in PEERS if (why := library.cannot.get(task.name))]
    yield "".join(reasons) + ("\n" if reasons else "")
    if task.name == "different_losses":
        yield "![CPU time by the number of losses, a line for each library](figures/benchmarks-lists.svg)\n\n"


def _error_head(task: Task) -> str:
    by = " (by the smallest)" if task.name in EXACT else ""
    return f"{'epsilon' if task.name in LISTS else 'error'}{by}"


def _numbers(cell: Cell, ours: Cell, task: Task, best: float) -> list[str]:
    if cell.why:
        return [cell.why]
    ratio = "" if ours.why or cell.library is OURS else times(cell.cpu / ours.cpu)
    preparing = [] if task.with_data else [duration(cell.preparing)]
    error = []
    if task.error and cell.error is not None:
        error = [f"{cell.error:.4f} ({cell.error / best:.3f})" if task.name in EXACT else number(cell.error)]
    return [duration(cell.cpu), *preparing, ratio, size_of(cell.memory), *error, str(cell.lines)]


def _table(heads: list[str]) -> Iterator[str]:
    yield _line(heads)
    yield _line(["---"] * len(heads))


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |\n"


def duration(seconds: float) -> str:
    """A time as people write it.

    >>> duration(0.01234), duration(123.4), duration(0.00000789)
    ('12 ms', '120 s', '7.9 us')
    """
    units = ((1, "s"), (1e-3, "ms"), (1e-6, "us"))
    size, unit = next((pair for pair in units if seconds >= pair[0]), units[-1])
    return f"{number(seconds / size)} {unit}"


def number(value: float) -> str:
    """Two digits, without an exponent.

    >>> number(0.04321), number(14142.1), number(3.14), number(0)
    ('0.043', '14,000', '3.1', '0')
    """
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 10 or rounded == round(rounded) else f"{rounded:g}"


def times(ratio: float) -> str:
    """A ratio.

    >>> times(2.345), times(0.034), times(12345)
    ('2.3x', '0.034x', '12,000x')
    """
    return f"{number(ratio)}x"


def size_of(memory: float) -> str:
    """Bytes as people write them.

    >>> size_of(123_456_789), size_of(12_345_678_901)
    ('120 MB', '12 GB')
    """
    return f"{number(memory / 1e9)} GB" if memory >= 1e9 else f"{number(memory / 1e6)} MB"
