"""docs/benchmarks.md is what results.json says, and results.json has a row for every task, size and library."""

import json

import pytest
from peers import page
from peers.libraries import LIBRARIES
from peers.measuring import ALL, GALLERY_TASK, scripts
from peers.results import Results
from peers.tasks import TASKS

FOUND = json.loads(page.RESULTS.read_text(encoding="utf-8"))


def test_the_page_and_its_figures_are_those_of_the_results():
    results = Results(FOUND)
    assert page.PAGE.read_text(encoding="utf-8") == page.written(results), "python -m peers page"
    for name, drawn in page.drawings(results).items():
        assert (page.DOCS / "figures" / name).read_text(encoding="utf-8") == drawn, name


def test_every_task_has_a_row_for_each_library_and_size():
    rows = [(row["task"], row["size"], row["library"]) for row in FOUND["rows"]]
    assert sorted(rows) == sorted(
        (task.name, size, library) for task in ALL for size in task.sizes for library in LIBRARIES
    )


def test_every_row_has_numbers_or_says_why_not():
    for row in FOUND["rows"]:
        assert len({"cpu", "cannot", "failed"} & set(row)) == 1, row
        assert "cpu" not in row or len(row["cpu"]) == len(row["memory"]) >= 1, row


@pytest.mark.parametrize("library", LIBRARIES.values(), ids=list(LIBRARIES))
def test_a_library_says_of_every_task_how_or_why_not(library):
    names = {task.name for task in TASKS}
    assert set(library.works) | set(library.cannot) == names
    assert not set(library.works) & set(library.cannot)
    assert bool(library.gallery) != bool(library.no_gallery)


@pytest.mark.parametrize("library", [each for each in LIBRARIES.values() if each.gallery], ids=lambda each: each.name)
def test_a_script_of_the_gallery_has_its_fifteen_tasks(library):
    ours = {number: cell.title for number, cell in scripts(LIBRARIES["counterpoint"]).items()}
    assert {number: cell.title for number, cell in scripts(library).items()} == ours
    assert list(ours) == list(GALLERY_TASK.sizes)
