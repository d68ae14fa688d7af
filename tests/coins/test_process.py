"""A process knows that it is not its parent, whichever mark is used and whoever forked."""

import ctypes
import os
import sys

import pytest

from counterpoint import process
from counterpoint.process import _ByNumber, _ByPage, current_process

FORKS = {"by Python": os.fork, "by itself": ctypes.PyDLL(None).fork} if hasattr(os, "fork") else {}


def in_child(home, fork):
    """What a child finds: whether it is at home, and whether it stays where it is then."""
    before = home.process()
    child = fork()
    if not child:
        found = home.process()
        os._exit(2 * (found is before) + (home.process() is not found))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("current", [_ByPage, _ByNumber])
@pytest.mark.parametrize("who", FORKS)
def test_a_child_is_another_process(current, who):
    if current is _ByPage and not sys.platform.startswith("linux"):
        pytest.skip("only Linux empties a page in a child")
    home = current()
    before = home.process()
    assert in_child(home, FORKS[who]) == 0
    assert home.process() is before


@pytest.mark.skipif(not FORKS, reason="there is no fork on this system")
def test_a_grandchild_is_another_process_than_both():
    home, before = process._marked(), current_process()
    child = os.fork()
    if not child:
        at_child = home.process()
        os._exit(in_child(home, os.fork) + 4 * (home.process() is not at_child) + 8 * (current_process() is before))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_where_any_advice_is_taken_none_is_relied_on(monkeypatch):
    """As some emulators do: the page would not be emptied."""

    class Obliging(process.mmap.mmap):
        def madvise(self, *advice):
            return None

    monkeypatch.setattr(process.mmap, "mmap", Obliging)
    assert isinstance(process._marked(), _ByNumber)


def test_where_the_kernel_does_not_know_the_advice_the_number_is_used(monkeypatch):
    monkeypatch.setattr(process, "_WIPE_ON_FORK", process._NO_ADVICE)
    assert isinstance(process._marked(), _ByNumber)
