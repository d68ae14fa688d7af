"""Progress: a line on a screen that lasts, nothing elsewhere, and no count of what is private."""

import json
import os
import pty
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

import pyarrow as pa
import pytest

import counterpoint as cp
from counterpoint.display import progress
from counterpoint.display.progress import Work, shown_on, working


class Recorded:
    """A screen that keeps what it was shown, and says when."""

    def __init__(self):
        self.lines, self.seen = [], threading.Event()

    def show(self, line):
        self.lines.append(line)
        self.seen.set()

    def clear(self):
        self.lines.append("")


def test_long_work_is_shown_and_erased_at_its_end():
    screen, work = Recorded(), Work("checking", 10)
    with shown_on(screen, work, after=0, every=0.001):
        assert screen.seen.wait(30)
        work.done(4)
        while not any("4 of 10" in line for line in screen.lines):
            screen.seen.wait(0.01)
    assert screen.lines[0] == "checking: 0 of 10, 0 %, 0 s" and screen.lines[-1] == ""


def test_work_that_ends_sooner_shows_nothing():
    screen = Recorded()
    with shown_on(screen, Work("checking"), after=3600):
        pass
    assert screen.lines == []


def test_an_error_passes_and_the_line_is_erased():
    screen = Recorded()
    with pytest.raises(ZeroDivisionError), shown_on(screen, Work("checking"), after=0):
        assert screen.seen.wait(30)
        raise ZeroDivisionError
    assert screen.lines[-1] == ""


def test_only_the_outer_work_is_shown(monkeypatch):
    opened = []

    @contextmanager
    def recorded(screen, work):
        opened.append(work.what)
        yield

    monkeypatch.setattr(progress, "_screen", Recorded)
    monkeypatch.setattr(progress, "shown_on", recorded)
    with working("outer"), working("inner") as inner:
        inner.done()
    with working("after"):
        pass
    with working("never", shown=False):
        pass
    assert opened == ["outer", "after"] and inner.steps == 1


def test_a_pipe_and_a_switch_keep_it_silent(monkeypatch):
    assert progress._screen() is None, "pytest's standard error is no terminal"
    monkeypatch.setattr(sys, "stderr", StringIO())
    assert progress._screen() is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(progress._screen(), progress.TerminalScreen)
    monkeypatch.setenv("COUNTERPOINT_PROGRESS", "0")
    assert progress._screen() is None


def test_what_is_counted_is_public(monkeypatch, tmp_path):
    """Binding a table counts nothing, whatever the rows; a ledger counts entries, a feed items, an audit games."""
    seen = []

    @contextmanager
    def recorded(screen, work):
        yield
        seen.append((work.what, work.steps, work.total))

    monkeypatch.setattr(progress, "_screen", Recorded)
    monkeypatch.setattr(progress, "shown_on", recorded)
    for rows in (1, 1000):
        cp.Table(pa.table({"person": range(rows)}), unit="person", rows_per_unit=1)
    assert seen == [("binding the table", 0, None)] * 2
    seen.clear()
    visits = cp.Stream(bound=1)
    with cp.Session(visits, within=cp.PureDP(1), ledger=tmp_path / "ledger.db") as s:
        visits.feed(iter([1, 0, 1]), name="monday")
        assert seen[-1] == ("feeding 'monday'", 3, None)
        seen.clear()
        s._engine.ledger.verify()
    assert [what for what, _, _ in seen] == [
        "checking the ledger of 'session'",
        "replaying the ledger of 'session'",
        "checking the ledger of '@register'",
    ]
    assert all(steps == total > 0 for _, steps, total in seen)
    seen.clear()
    cp.verify.audit(cp.Laplace(1), samples=1000, coins=cp.coins.SeededCoins(1))
    cp.verify.exact(cp.RandomizedResponse(1), rounds=1)
    assert [what for what, _, _ in seen] == ["auditing", "following every transcript"] and seen[0][1] >= 900


def test_asks_and_launches_show_no_progress(monkeypatch):
    visits = cp.Stream(bound=1)
    s = cp.Session(visits, within=cp.PureDP(1))
    monkeypatch.setattr(progress, "_screen", lambda: pytest.fail("work was shown"))
    s.launch(cp.Laplace(0.1)).ask(cp.total())
    s.ask(cp.total(), epsilon=0.1)


SLOW = """
from counterpoint.display import progress
import time
screen = progress._screen()
assert screen is not None, "no screen"
with progress.shown_on(screen, progress.Work("binding the table"), after=0, every=0.05):
    time.sleep(0.5)
print("done")
"""


def everything(terminal):
    """All that was written: a terminal gives a few thousand bytes at a time, and an error at the end."""
    found = b""
    with suppress(OSError):
        while part := os.read(terminal, 10_000):
            found += part
    return found


def test_a_terminal_shows_one_line_and_erases_it():
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    done = subprocess.run([sys.executable, "-c", SLOW], stderr=theirs, stdout=subprocess.PIPE, env=env, check=True)
    os.close(theirs)
    written = everything(ours).decode()
    os.close(ours)
    assert done.stdout == b"done\n" and written.endswith("\r\x1b[K") and "\r\x1b[Kbinding the table: 0 s" in written


@pytest.mark.skipif(find_spec("nbclient") is None, reason="needs nbclient and ipykernel")
def test_a_notebook_shows_displays_progress_and_refusals(tmp_path):
    """A notebook with a kernel of its own: pictures as HTML, a line that is replaced in place, refusals as one line."""
    cells = [
        "import counterpoint as cp\ns = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1))\n"
        "h = s.launch(cp.Laplace(0.5))\nh.ask(cp.total());",
        "s.plot()",
        "s",
        "s.certificate()",
        SLOW,
        "s.launch(cp.Laplace(2))",
        "s.ask(cp.total(), epsilon=0.1).plot()",
        "h",
    ]
    code = f"""
import json, nbformat, sys
from nbclient import NotebookClient
book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in {cells!r}])
NotebookClient(book, timeout=120, kernel_name="python3", allow_errors=True).execute()
print(json.dumps([cell["outputs"] for cell in book.cells]))
"""
    env = {**os.environ, "PYTHONPATH": str(Path(cp.__file__).parents[1]), "IPYTHONDIR": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, env=env, check=False, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr.decode()[-2000:]
    silent, plot, session, tree, slow, refused, answer, handle = json.loads(ran.stdout.splitlines()[-1])
    assert silent == []
    assert plot[0]["data"]["text/html"].count('role="img"') == 2 and plot[0]["data"]["image/svg+xml"].startswith("<svg")
    assert plot[0]["data"]["text/plain"].startswith("<Picture: 1 launch lost ε 0.5 of 1;")
    assert "<table>" in session[0]["data"]["text/html"] and "<svg" in session[0]["data"]["text/html"]
    assert "<details open" in tree[0]["data"]["text/html"]
    assert {output["output_type"] for output in slow} == {"display_data", "stream"}, slow
    assert [o["data"]["text/plain"] for o in slow if o["output_type"] == "display_data"] == [""], "erased at the end"
    assert len(refused[0]["traceback"]) == 1 and refused[0]["traceback"][0].startswith("BudgetExceeded: PureDP(2)")
    assert (
        "<svg" in answer[0]["data"]["text/html"] and handle[0]["data"]["text/plain"] == "Handle(Laplace(0.5), halted)"
    )
