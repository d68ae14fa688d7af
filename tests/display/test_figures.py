"""The figures of the guide are what the code draws, and the page shows no other."""

import re
from pathlib import Path

import pytest
from docs import make_pictures

GUIDE = Path(__file__).parents[2] / "docs" / "guide"


@pytest.mark.parametrize("name", make_pictures.PICTURES)
def test_a_figure_is_what_the_code_draws(name):
    drawn = make_pictures.PICTURES[name]().svg()
    stored = (make_pictures.FIGURES / f"{name}.svg").read_text(encoding="utf-8")
    assert stored == drawn + "\n", "make docs draws it again"


def test_the_page_shows_each_figure():
    page = (GUIDE / "pictures.md").read_text(encoding="utf-8")
    assert set(re.findall(r"figures/(\w+)\.svg", page)) == set(make_pictures.PICTURES)
