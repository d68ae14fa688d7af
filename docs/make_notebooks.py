"""Writes the notebooks of notebooks/: each is made from the script beside it, run, and kept with its outputs.

The scripts are the source, because their differences can be read. `# %% [markdown]` begins a cell of text, in comments,
`# %%` one of code, and `# %% raises` one that is meant to fail. Outputs are kept so that a notebook can be read without
running it; they have noise, so they differ from run to run, and a notebook is made again only when its script changes:
`python -m docs.make_notebooks`, or `python -m docs.make_notebooks 3_streams` for one. tests/test_notebooks.py runs all.

Beside each notebook is its page of the site: the same cells, with the outputs of that run.
"""

import base64
import sys
import textwrap
from pathlib import Path
from typing import Any

import nbformat
from docs.cells import Cell, cells
from nbclient import NotebookClient
from nbformat import v4

FOLDER = Path(__file__).parent / "notebooks"
FIGURES = FOLDER.parent / "figures" / "notebooks"


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


def page(made: Any, stem: str) -> tuple[str, dict[str, bytes]]:
    """The page of a notebook that was run, and its figures by their file names."""
    parts, figures = [], {}
    for number, cell in enumerate(made.cells):
        source = "".join(cell.source).rstrip()
        parts.append(source if cell.cell_type == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            name, drawn, text = _shown(output, f"{stem}-{number}")
            if drawn:
                figures[name] = drawn
                parts.append(f"![What this cell draws](../figures/notebooks/{name})")
            elif text:
                parts.append(f"```text\n{text}\n```")
    title, *rest = parts
    notice = f"This page is the notebook [{stem}.ipynb]({stem}.ipynb) with the outputs of one run."
    return "\n\n".join([title, notice, *rest]) + "\n", figures


def _shown(output: Any, name: str) -> tuple[str, bytes, str]:
    """The name and the bytes of an output's figure, or its text."""
    if output["output_type"] == "error":
        return "", b"", textwrap.fill(f"{output['ename']}: {output['evalue']}", 88, break_long_words=False)
    if output["output_type"] == "stream":
        return "", b"", "".join(output["text"]).rstrip()
    data = output["data"]
    if "image/svg+xml" in data:
        return f"{name}.svg", "".join(data["image/svg+xml"]).encode(), ""
    if "image/png" in data:
        return f"{name}.png", base64.b64decode("".join(data["image/png"])), ""
    return "", b"", "".join(data["text/plain"]).rstrip()


def write_page(made: Any, script: Path) -> None:
    """Write the page of a notebook that was run, and its figures."""
    text, figures = page(made, script.stem)
    script.with_suffix(".md").write_text(text, encoding="utf-8")
    FIGURES.mkdir(exist_ok=True)
    for name, drawn in figures.items():
        (FIGURES / name).write_bytes(drawn)


def main(names: list[str]) -> None:
    """Make the notebooks of these names, or all, with their pages."""
    for script in scripts():
        if not names or script.stem in names:
            made = notebook(script)
            run(made)
            nbformat.write(kept(made), script.with_suffix(".ipynb"))
            write_page(made, script)


if __name__ == "__main__":
    main(sys.argv[1:])
