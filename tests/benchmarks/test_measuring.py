"""The runner, on a library that is none: what it took, why it failed, and that nothing is left running."""

from pathlib import Path
from subprocess import CompletedProcess

import pytest
from peers import measuring
from peers.environments import build, reason
from peers.library import Library, lines
from peers.tasks import Task
from tests.benchmarks.fake import LIBRARY


@pytest.fixture
def limited(monkeypatch):
    monkeypatch.setenv("PEERS_CPU_LIMIT", "1")


def test_a_run_reports_what_it_took_and_what_was_answered():
    report = measuring.run(LIBRARY, "answers", 7)
    part = report["parts"]["answers"]
    assert part["answers"] == [[7, 7, 7]] * 2
    assert 0 <= part["cpu"] < 1 and 0 <= part["preparing"] < 1
    assert report["memory"] > 5_000_000


def test_the_time_of_a_process_that_a_task_starts_counts():
    """It works for 0.2 s; the kernel counts in ticks, and starting it takes the task itself hundredths."""
    assert measuring.run(LIBRARY, "starts_another", 1)["parts"]["starts_another"]["cpu"] > 0.1


def test_a_task_that_fails_says_why_in_one_line():
    part = measuring.run(LIBRARY, "refuses", 7)["parts"]["refuses"]
    assert part["failed"] == "ValueError: no 7 for a reason of two lines"


def test_a_process_that_dies_says_by_which_signal():
    assert measuring.run(LIBRARY, "dies", 1) == {"failed": "the process was ended by SIGABRT"}


def test_a_task_that_takes_too_long_is_stopped(limited):
    assert "stopped after" in measuring.run(LIBRARY, "never_ends", 1)["failed"]


def test_nothing_that_a_task_has_started_stays():
    pid = measuring.run(LIBRARY, "leaves_another", 1)["parts"]["leaves_another"]["answers"][0]
    stat = Path(f"/proc/{pid}/stat")
    assert not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z", "it runs, and is not a zombie"


def reported(cpu: float = 1.0) -> measuring.Report:
    part = {"cpu": cpu, "preparing": 0.5, "answers": [None]}
    return {"starting": 0.1, "memory": 100, "parts": {"answers": part}}


def test_every_library_has_a_row_for_every_size_and_they_take_turns():
    other = LIBRARY._replace(name="other", works={}, cannot={"answers": "it is mute"})
    third = LIBRARY._replace(name="third")
    turns = []

    def start(library, task, size):
        turns.append((library.name, size))
        return reported()

    task = Task("answers", "Answers", "", (1, 2), rounds=2)
    rows = list(measuring.measure(task, [LIBRARY, other, third], {}, start))
    assert [(row["size"], row["library"]) for row in rows] == [
        (size, name) for size in (1, 2) for name in ("fake", "other", "third")
    ]
    assert turns[:4] == [("fake", 1), ("third", 1)] * 2
    assert rows[0]["cpu"] == [1.0, 1.0] and rows[1]["cannot"] == "it is mute"


def test_what_failed_is_not_tried_again_at_larger_sizes():
    tried = []

    def start(library, task, size):
        tried.append(size)
        return {"failed": "no memory"}

    rows = list(measuring.measure(Task("answers", "Answers", "", (1, 2), "items"), [LIBRARY], {}, start))
    assert tried == [1]
    assert [row["failed"] for row in rows] == ["no memory", "not run: 1 items failed"]


def test_a_library_that_did_not_install_has_rows_that_say_so():
    [row] = measuring.measure(Task("answers", "Answers", ""), [LIBRARY], {"fake": "did not install here: no"})
    assert row["failed"] == "did not install here: no"


def test_an_install_that_fails_gives_its_reason_and_is_tried_again(tmp_path, monkeypatch):
    commands = []

    def refuse(*command):
        commands.append(command)
        return CompletedProcess(command, "pip" in command, "", "ERROR: No matching distribution found for fake\n")

    monkeypatch.setattr("peers.environments.FOLDER", tmp_path)
    monkeypatch.setattr("peers.environments._run", refuse)
    broken = LIBRARY._replace(installs=("fake",))
    assert build(broken) == build(broken) == "No matching distribution found for fake"
    assert [command[2] for command in commands] == ["venv", "pip"] * 2
    assert reason("") == "no reason was given"


def test_lines_are_those_of_the_body():
    assert lines(LIBRARY.works["answers"]) == 1
    assert isinstance(LIBRARY, Library)
