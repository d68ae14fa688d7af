"""What the guide says of the tests is true: the ones it names are there."""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parent
GUIDE = TESTS.parent / "docs" / "guide"


def names_in_use() -> set[str]:
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in TESTS.rglob("test_*.py"))
    return {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_each_defence_of_the_guide_names_names_in_use():
    lines = (GUIDE / "defences.md").read_text(encoding="utf-8").splitlines()
    rows = [line.split("|") for line in lines if line.startswith("|")][2:]
    named = [re.findall(r"`(test_\w+)`", row[3]) for row in rows]
    assert len(rows) > 10 and all(named)
    assert {name for names in named for name in names} <= names_in_use()
