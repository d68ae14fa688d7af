"""The notebooks: made from their scripts, and every cell runs, or fails where it is meant to."""

import json

import nbformat
import pytest
from docs import make_notebooks

SCRIPTS = make_notebooks.scripts()


def test_there_are_five_notebooks():
    assert len(SCRIPTS) == 5


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_notebook_is_that_of_its_script_and_has_been_run(script):
    kept = json.loads(script.with_suffix(".ipynb").read_text(encoding="utf-8"))
    made = make_notebooks.notebook(script)
    assert [("".join(cell["source"]), cell["id"]) for cell in kept["cells"]] == [
        (cell.source, cell.id) for cell in made.cells
    ], f"python -m docs.make_notebooks {script.stem}"
    assert all(cell["execution_count"] for cell in kept["cells"] if cell["cell_type"] == "code")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_page_of_a_notebook_shows_its_cells_and_outputs(script):
    text, figures = make_notebooks.page(nbformat.read(script.with_suffix(".ipynb"), as_version=4), script.stem)
    assert script.with_suffix(".md").read_text(encoding="utf-8") == text, f"python -m docs.make_notebooks {script.stem}"
    assert all((make_notebooks.FIGURES / name).read_bytes() == drawn for name, drawn in figures.items())


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_notebook_runs_and_fails_only_where_it_is_meant_to(script, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    made = make_notebooks.notebook(script)
    make_notebooks.run(made)
    for cell in made.cells:
        failed = [output for output in cell.get("outputs", ()) if output["output_type"] == "error"]
        assert bool(failed) == ("raises-exception" in cell.metadata.get("tags", ())), cell.source
