"""Writes the notebooks of notebooks/: each is made from the script beside it, run, and kept with its outputs.

The scripts are the source, because their differences can be read. `# %% [markdown]` begins a cell of text, in comments,
`# %%` one of code, and `# %% raises` one that is meant to fail. Outputs are kept so that a notebook can be read without
running it; they have noise, so they differ from run to run, and a notebook is made again only when its script changes:
`python -m docs.make_notebooks`, or `python -m docs.make_notebooks 3_streams` for one. tests/test_notebooks.py runs all.
"""

import sys
from pathlib import Path
from typing import Any

import nbformat
from docs.cells import Cell, cells
from nbclient import NotebookClient
from nbformat import v4

FOLDER = Path(__file__).parent / "notebooks"


def scripts() -> list[Path]:
    """The sources, in their order."""
    return sorted(FOLDER.glob("*.py"))


def notebook(script: Path) -> Any:
    """The notebook of a script, without outputs."""
    made = v4.new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    )
    made.cells = [_cell(number, cell) for number, cell in enumerate(cells(script.read_text(encoding="utf-8")))]
    return made


def _cell(number: int, cell: Cell) -> Any:
    identity = f"cell-{number}"  # nbformat would choose one at random
    if cell.head == "[markdown]":
        return v4.new_markdown_cell(cell.notes, id=identity)
    tags = {"tags": ["raises-exception"]} if cell.head == "raises" else {}
    return v4.new_code_cell(cell.code, id=identity, metadata=tags)


def run(made: Any) -> None:
    """Run all cells, in a process of its own; a failure that is not meant raises `CellExecutionError`."""
    NotebookClient(made, timeout=300, record_timing=False).execute()


def kept(made: Any) -> Any:
    """A notebook that was run, without what depends on the machine: the version of Python, and paths in tracebacks."""
    made.metadata.pop("language_info", None)
    for output in (output for cell in made.cells for output in cell.get("outputs", ())):
        if output["output_type"] == "error":
            output["traceback"] = [f"{output['ename']}: {output['evalue']}"]
    return made


def main(names: list[str]) -> None:
    """Make the notebooks of these names, or all."""
    for script in scripts():
        if not names or script.stem in names:
            made = notebook(script)
            run(made)
            nbformat.write(kept(made), script.with_suffix(".ipynb"))


if __name__ == "__main__":
    main(sys.argv[1:])
