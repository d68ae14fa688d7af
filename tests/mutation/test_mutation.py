"""The mutation lane: its data fit the code, and it tells a bug that a test notices from one that none does."""

import pytest
from tests.mutation.planting import (
    DATA,
    FOUND,
    PACKAGE,
    ROOT,
    SURVIVED,
    Mutant,
    copy_of_the_tree,
    mutants,
    outcome_with,
    outcome_without,
)

MUTANTS = mutants()
ROOMS = {
    *("coins", "measures", "privacy", "composition", "mechanisms", "continual", "schema", "engines", "queries"),
    *("sources", "ledger", "session", "local", "verify", "service"),
}
SCALE = "_ratio(self.asks * sensitivity, self.epsilon)"
QUICK = "test_laplace_noise_has_the_scale_that_its_share_and_the_sensitivity_call_for"


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.file}: {mutant.bug}")
def test_a_planted_bug_has_its_place_in_the_code_and_tests_that_are_there(mutant):
    text = (ROOT / PACKAGE / mutant.file).read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1, f"{mutant.file} has changed: say in {DATA.name} what the bug is there now"
    planted = mutant.plant(text)
    assert planted != text
    compile(planted, mutant.file, "exec")
    assert mutant.tests and all((ROOT / test.partition("::")[0]).is_file() for test in mutant.tests)


def test_bugs_are_planted_in_every_room_and_each_is_described_once():
    assert {mutant.file.partition("/")[0] for mutant in MUTANTS} >= ROOMS
    assert len({(mutant.file, mutant.bug) for mutant in MUTANTS}) == len(MUTANTS) >= 60


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return copy_of_the_tree(tmp_path_factory.mktemp("planted") / "tree")


def planted(old, new, test=f"tests/mechanisms/test_additive.py::{QUICK}"):
    return Mutant("mechanisms/additive.py", "planted by a test", old, new, (test,))


@pytest.mark.parametrize(
    ("mutant", "outcome"),
    [
        (planted(SCALE, "_ratio(sensitivity, self.epsilon)"), FOUND),
        (planted(SCALE, "_ratio(sensitivity * self.asks, self.epsilon)"), SURVIVED),
        (planted("what nobody wrote", ""), "its old text is not there once"),
        (planted(SCALE, "_ratio("), "pytest ended with 4"),
        (planted(SCALE, "0", "tests/mechanisms/test_additive.py::test_nothing"), "pytest ended with 4"),
    ],
    ids=["a bug", "no bug", "a bug that has no place", "a file that cannot be read", "a test that is not there"],
)
def test_a_bug_is_found_if_a_test_fails_and_not_if_anything_else_does(tree, mutant, outcome):
    file = PACKAGE / mutant.file
    before = (ROOT / file).read_text(encoding="utf-8")
    assert outcome_with(mutant, tree, seconds=120) == outcome
    assert (ROOT / file).read_text(encoding="utf-8") == (tree / file).read_text(encoding="utf-8") == before


def test_what_gives_no_verdict_in_time_is_no_find(tree):
    assert outcome_with(planted(SCALE, "0"), tree, seconds=0.01) == "no verdict in 0.01 s"


def test_tests_that_fail_without_a_bug_are_seen(tree):
    (tree / "tests" / "test_red.py").write_text("def test_red():\n    assert False\n")
    assert outcome_without(("tests/test_red.py",), tree, seconds=120) == FOUND
