"""What the pages say of this repository is true: the tests they name exist, and so do the rooms."""

import ast
import re
from pathlib import Path

from docs import make_examples

TESTS = Path(__file__).parent
ROOT = TESTS.parent
GUIDE = ROOT / "docs" / "guide"
SRC = ROOT / "src" / "counterpoint"


def names_in_use() -> set[str]:
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in TESTS.rglob("test_*.py"))
    return {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_each_defence_of_the_guide_names_names_in_use():
    lines = (GUIDE / "defences.md").read_text(encoding="utf-8").splitlines()
    rows = [line.split("|") for line in lines if line.startswith("|")][2:]
    named = [re.findall(r"`(test_\w+)`", row[3]) for row in rows]
    assert len(rows) > 10 and all(named)
    assert {name for names in named for name in names} <= names_in_use()


def test_the_worked_examples_are_what_the_code_computes():
    assert make_examples.PAGE.read_text(encoding="utf-8") == make_examples.written(), "make docs writes the page again"


def test_the_map_lists_every_room_and_no_other():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = page.partition("| room |")[2].partition("\n\n")[0]
    listed = [name for row in table.splitlines()[2:] for name in re.findall(r"`([^`]+)`", row.split("|")[1])]
    rooms = {f"{init.parent.relative_to(SRC).as_posix()}/" for init in SRC.rglob("__init__.py")} - {"./"}
    modules = {file.name for file in SRC.glob("*.py") if not file.name.startswith("__")}
    assert set(listed) == rooms | modules
    assert len(listed) == len(set(listed))


def test_what_happens_where_is_so():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = page.partition("| where | it happens |")[2].partition("\n\n")[0]
    rows = [re.findall(r"`([^`]+)`", row) for row in table.splitlines()[2:]]
    assert len(rows) == 5
    for named in rows:
        files = [SRC / name for name in named if name.endswith(".py")]
        code = "".join(file.read_text(encoding="utf-8") for file in files)
        assert files and all(f"def {name.rpartition('.')[2]}(" in code for name in named if not name.endswith(".py"))


def test_code_on_the_pages_is_at_most_88_characters_wide():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    wide = [
        (page.name, line)
        for page in pages
        for block in re.findall(r"```(?:python|pycon)\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
        for line in block.splitlines()
        if len(line) > 88 and (line.startswith((">>> ", "... ")) or ">>> " not in block)
    ]
    assert not wide


def test_every_file_that_a_text_names_is_there():
    files = {path.name for room in ("src", "tests", "docs", "bench", "peers") for path in (ROOT / room).rglob("*.py")}
    texts = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    named = [(path, re.findall(r"\b[a-z_]+\.py\b", path.read_text(encoding="utf-8"))) for path in texts]
    assert sum(len(names) for _, names in named) > 100
    assert [f"{path.relative_to(ROOT)}: {name}" for path, names in named for name in names if name not in files] == []
