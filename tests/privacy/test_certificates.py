"""A certificate prints as a tree that a person can read, and as JSON."""

import json

from counterpoint.encoding import decode, encode
from counterpoint.privacy.certificates import Certificate

LEAF = Certificate("leaf", "an axiom")
TREE = Certificate(
    "root", "Haney et al. 2023, Thm 1.19", (LEAF, Certificate("branch", "Henzinger et al. 2024, Thm 12.4", (LEAF,)))
)


def test_it_prints_as_a_tree():
    assert str(TREE).splitlines() == [
        "root",
        "│ by Haney et al. 2023, Thm 1.19",
        "├─ leaf",
        "│    by an axiom",
        "└─ branch",
        "   │ by Henzinger et al. 2024, Thm 12.4",
        "   └─ leaf",
        "        by an axiom",
    ]


def test_it_is_json_and_reads_back():
    assert json.loads(TREE.json())["premises"][1]["premises"][0]["statement"] == "leaf"
    assert decode(encode(TREE), Certificate) == TREE


def test_it_knows_what_it_rests_on():
    assert TREE.rests_on("Henzinger et al. 2024, Thm 12.4") and not TREE.rests_on("Whitehouse et al. 2023, Thm 1")
