"""Fresh bytes are handed out once."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from counterpoint.coins import keystream as module
from counterpoint.coins.keystream import MOST, fresh


def test_no_two_threads_are_given_the_same():
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda _: fresh(16), range(20_000)))
    assert len(set(taken)) == len(taken) and {len(each) for each in taken} == {16}


def test_all_of_what_the_system_gave_is_used_and_none_of_it_twice(monkeypatch):
    given = []

    def system(count):
        given.append(bytes([len(given)]) * count)
        return given[-1]

    monkeypatch.setattr(module.os, "urandom", system)
    fresh = module._Pool().fresh
    taken = [fresh(MOST) for _ in range(3 * module._TOGETHER)]
    assert sorted(taken) == sorted(part[:MOST] for part in given for _ in range(module._TOGETHER)) and len(given) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_forked_child_and_its_parent_are_not_given_the_same():
    fresh(1)  # so that there is something left to inherit
    end, begin = os.pipe()
    child = os.fork()
    if not child:
        os.write(begin, b"".join(fresh(MOST) for _ in range(2 * module._TOGETHER)))
        os._exit(0)
    os.waitpid(child, 0)
    octets = os.read(end, 2**16)
    theirs = {octets[start : start + MOST] for start in range(0, len(octets), MOST)}
    assert len(theirs) == 2 * module._TOGETHER and not theirs & {fresh(MOST) for _ in range(2 * module._TOGETHER)}


def test_no_more_than_there_is_in_one():
    with pytest.raises(AssertionError):
        fresh(MOST + 1)
