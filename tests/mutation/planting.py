"""Plant a privacy bug in a copy of the tree, and see whether a test of ours fails.

`mutants.toml` holds the bugs as data: a text of a file and what it becomes, by the file that they are in and the tests
that must notice. A bug is found if one of these tests fails with it, and all of them pass without it. What is not a
failing test is no find: a time-out, a file that cannot be imported, a test that is not there.
"""

import os
import shutil
import signal
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).with_name("mutants.toml")
PACKAGE = Path("src") / "counterpoint"
FOUND, SURVIVED = "found", "SURVIVED"
_OUTCOMES = {0: SURVIVED, 1: FOUND}
"""What pytest's exit statuses say of a planted bug: 1 is that tests ran and failed."""


class Mutant(NamedTuple):
    """A privacy bug: in this file of the package `old` becomes `new`, which these tests must notice."""

    file: str
    bug: str
    old: str
    new: str
    tests: tuple[str, ...]

    def plant(self, text: str) -> str:
        """The text with the bug in it; ValueError unless the place is there, once."""
        if text.count(self.old) != 1:
            raise ValueError(f"{self.file}: there must be one {self.old!r}, and there are {text.count(self.old)}")
        return text.replace(self.old, self.new)


def mutants(data: Path = DATA) -> list[Mutant]:
    """All of them, in the order of the file."""
    with data.open("rb") as file:
        files = tomllib.load(file)["file"]
    return [
        Mutant(entry["path"], bug["bug"], bug["old"], bug["new"], tuple(bug.get("tests", entry.get("tests", ()))))
        for entry in files
        for bug in entry["mutant"]
    ]


def copy_of_the_tree(folder: Path) -> Path:
    """A copy to plant bugs in; what is hidden or compiled stays behind."""
    return Path(shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".*", "__pycache__", "*.egg-info")))


def outcome_with(mutant: Mutant, tree: Path, seconds: float) -> str:
    """What the tests say with the bug in the tree, which is then as it was before."""
    file = tree / PACKAGE / mutant.file
    before = file.read_text(encoding="utf-8")
    try:
        planted = mutant.plant(before)
    except ValueError:
        return "its old text is not there once"
    file.write_text(planted, encoding="utf-8")
    try:
        return outcome_without(mutant.tests, tree, seconds)
    finally:
        file.write_text(before, encoding="utf-8")


def outcome_without(tests: tuple[str, ...], tree: Path, seconds: float) -> str:
    """What the tests say on the tree as it is: `SURVIVED`, or their failing with a bug in it says nothing."""
    # a failed comparison is not spelled out, nor is a smaller example looked for: both can take longer than the test
    quickly = ["-x", "--assert=plain", "--tb=no", "-p", "no:cacheprovider", "--hypothesis-profile=planted"]
    command = [sys.executable, "-m", "pytest", *quickly, "-m", "not long", *tests]
    # no compiled files: one of a second ago would hide a change of this second
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        command,
        cwd=tree,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        status = process.wait(seconds)
    except subprocess.TimeoutExpired:
        return f"no verdict in {seconds:g} s"
    finally:
        with suppress(ProcessLookupError):  # tests start processes, too
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return _OUTCOMES.get(status, f"pytest ended with {status}")
