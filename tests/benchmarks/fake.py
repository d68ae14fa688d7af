"""A library that is none: its tasks do what a peer's might."""

import os
import subprocess
import sys
import time

from peers.library import Library

HARD = "import time\nwhile time.process_time() < 0.2: pass"


def _answers(size):
    return lambda: [size] * 3


def _refuses(size):
    def run():
        raise ValueError(f"no {size}\nfor a reason of two lines")

    return run


def _dies(size):
    return os.abort


def _never_ends(size):
    def run():
        while True:
            pass

    return run


def _starts_another(size):
    return lambda: subprocess.run([sys.executable, "-c", HARD], check=True) and None


def _leaves_another(size):
    return lambda: subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid


def _start():
    time.sleep(0)


LIBRARY = Library(
    "fake",
    "Fake",
    "fake",
    __name__,
    (),
    works={
        "answers": _answers,
        "refuses": _refuses,
        "dies": _dies,
        "never_ends": _never_ends,
        "starts_another": _starts_another,
        "leaves_another": _leaves_another,
    },
    cannot={"flies": "it has no wings"},
    start=_start,
)
