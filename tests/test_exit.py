"""A script ends in silence, whatever it leaves open: DuckDB would complain of each object that outlives Python."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
START = """
import counterpoint as cp
from counterpoint.encoding import Value

def bound():
    return cp.Table(cp.datasets.people(), unit="person_id", rows_per_unit=1)

class Rounded(cp.mechanisms.Postprocessor, Value, frozen=True):
    def start(self):
        return 0

    def react(self, own, request, ask):
        return own + 1, round(ask(request), -3)
"""
LEFT_OPEN = """
people = bound()
session = cp.Session(people, within=cp.PureDP(1))
handle = session.launch(cp.Laplace(1))
handle.ask(cp.count())
"""
OF_ITS_OWN = """
import duckdb
people = cp.Table(duckdb.sql("SELECT range AS id FROM range(9)"), unit="id", rows_per_unit=1)
rounded = Rounded()
handle = cp.Session(people, within=cp.PureDP(1)).launch(cp.postprocess(rounded, cp.Laplace(1)))
handle.ask(cp.count())
"""
IN_A_CLOSURE = """
def main():
    people = bound()

    class Counted(Rounded, frozen=True):
        def react(self, own, request, ask):
            assert counted is not None and people is not None
            return own, ask(request)

    counted = Counted()
    cp.Session(people, within=cp.PureDP(1)).launch(cp.postprocess(counted, cp.Laplace(1))).ask(cp.count())

main()
"""
IN_A_THREAD = """
import threading, time
people, asked = bound(), threading.Event()

def ask():
    cp.Session(people, within=cp.PureDP(1)).launch(cp.Laplace(1)).ask(cp.count())
    asked.set()
    time.sleep(3600)

threading.Thread(target=ask, daemon=True).start()
asked.wait()
"""
SCRIPTS = {
    "a session left open": LEFT_OPEN,
    "a mechanism of its own": OF_ITS_OWN,
    "a mechanism that knows the table": IN_A_CLOSURE,
    "a thread that still runs": IN_A_THREAD,
}


def run(script: str) -> subprocess.CompletedProcess[str]:
    code = START + script
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_a_script_ends_without_a_word(script):
    done = run(script)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_script_that_fails_says_only_why():
    done = run(OF_ITS_OWN + "\nhandle.ask(cp.count())")
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback") and done.stderr.splitlines()[-1].startswith("counterpoint.errors.Halted")


def test_a_table_is_still_open_to_what_was_registered_to_run_at_exit_after_it():
    done = run("""
import atexit
people = bound()
pin = people.pin()
atexit.register(lambda: print(people.pin() == pin))
""")
    assert (done.stdout, done.stderr) == ("True\n", "")
