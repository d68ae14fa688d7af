"""One class, one name: a reader who meets a name in a message or a trace finds one class of it."""

import re
from collections import Counter
from pathlib import Path

SRC = Path(__file__).parents[1] / "src"


def test_no_class_name_is_in_two_modules():
    names = Counter(
        name for path in SRC.rglob("*.py") for name in re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE)
    )
    assert len(names) > 200
    assert [name for name, count in names.items() if count > 1 and not name.startswith("_")] == []
