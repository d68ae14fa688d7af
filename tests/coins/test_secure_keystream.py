"""The keystream: nobody receives the same bytes twice, whatever forks, threads or counters do."""

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from counterpoint.coins import keystream
from counterpoint.coins.keystream import SPAN, Keystream
from counterpoint.coins.secure import SecureCoins
from counterpoint.errors import NotAllowed

BIG = 2**128


def in_child(work: Callable[[], object], fork: Callable[[], int] = os.fork) -> str:
    """What `work` returns or raises in a forked child, as text; a child that hangs is ended by its alarm."""
    readable, writable = os.pipe()
    child = fork()
    if child == 0:
        signal.alarm(20)
        try:
            outcome = str(work())
        except Exception as error:
            outcome = type(error).__name__
        os.write(writable, outcome.encode())
        os._exit(0)
    os.close(writable)
    with os.fdopen(readable) as pipe:
        outcome = pipe.read()
    os.waitpid(child, 0)
    return outcome


def test_the_stream_is_chacha20_as_in_rfc_8439_appendix_a1():
    assert Keystream(bytes(32)).octets(32).hex() == ("76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7")


def test_reads_follow_one_another_without_gap_or_repetition():
    whole = Keystream(bytes(32)).octets(3000)
    stream = Keystream(bytes(32))
    assert b"".join(stream.octets(count) for count in (1, 0, 63, 64, 65, 1000, 1807)) == whole


def test_a_read_larger_than_the_prepared_zeros_is_the_same_stream():
    count = 2**20 + 5
    stream = Keystream(bytes(32))
    assert stream.octets(count) == Keystream(bytes(32)).octets(count - 5) + _after(count - 5).octets(5)


def _after(count: int) -> Keystream:
    stream = Keystream(bytes(32))
    stream.octets(count)
    return stream


@pytest.mark.parametrize("width", [1, 2, 5, 8, 11, 16, 31, 32, 33, 64])
def test_words_use_every_value_of_their_width_and_no_more(width):
    words = Keystream(bytes(32)).words(4000, width)
    assert int(words.max()) < 2**width
    assert int(words.max()) >= 2**width - 1 - 2**width // 100
    assert int(words.min()) <= 2**width // 100


def test_unseeded_streams_differ_from_one_another():
    assert len({Keystream().octets(16) for _ in range(50)}) == 50


def test_a_forked_child_never_repeats_its_parents_stream():
    coins = SecureCoins()
    coins.integer(BIG)
    children = [in_child(lambda: coins.integer(BIG)) for _ in range(3)]
    own = [str(coins.integer(BIG)) for _ in range(3)]
    assert len({*children, *own}) == 6


def test_a_grandchild_never_repeats_its_grandparents_stream():
    coins = SecureCoins()
    grandchild = in_child(lambda: in_child(lambda: coins.integer(BIG)))
    child = in_child(lambda: coins.integer(BIG))
    assert len({grandchild, child, str(coins.integer(BIG))}) == 3


def test_a_fork_that_python_is_not_told_of_is_noticed_too():
    fork = ctypes.PyDLL(None).fork
    coins, seeded = SecureCoins(), SecureCoins(seed=bytes(32))
    child = in_child(lambda: coins.integer(BIG), fork)
    assert child.isdecimal()
    assert child != str(coins.integer(BIG))
    assert in_child(lambda: seeded.integer(BIG), fork) == NotAllowed.__name__


def test_a_child_whose_number_comes_again_is_noticed_too(monkeypatch):
    coins, seeded, number = SecureCoins(), SecureCoins(seed=bytes(32)), os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: number)
    assert in_child(lambda: coins.integer(BIG)) != str(coins.integer(BIG))
    assert in_child(lambda: seeded.integer(BIG)) == NotAllowed.__name__


def test_seeded_coins_refuse_to_go_on_in_a_forked_child_and_go_on_in_the_parent():
    coins = SecureCoins(seed=bytes(32))
    assert in_child(lambda: coins.integer(BIG)) == NotAllowed.__name__
    assert in_child(lambda: coins.discrete_laplace(10, size=3)) == NotAllowed.__name__
    assert coins.integer(BIG) == SecureCoins(seed=bytes(32)).integer(BIG)


def test_seeded_coins_made_in_a_forked_child_replay_there():
    expected = SecureCoins(seed=bytes(32)).integer(BIG)
    assert in_child(lambda: SecureCoins(seed=bytes(32)).integer(BIG)) == str(expected)


def test_a_child_forked_while_another_thread_reads_does_not_hang():
    stream = Keystream()
    with stream._lock:
        outcome = in_child(lambda: len(stream.octets(16)))
    assert outcome == "16"


def test_a_reader_waits_for_its_turn():
    stream, done = Keystream(), threading.Event()
    reader = threading.Thread(target=lambda: (stream.octets(1), done.set()))
    with stream._lock:
        reader.start()
        assert not done.wait(0.05)
    assert done.wait(20)
    reader.join()


def test_threads_that_share_coins_receive_each_draw_once():
    coins, drawn = SecureCoins(seed=bytes(32)), []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [
            threading.Thread(target=lambda: drawn.extend(coins.integer(BIG) for _ in range(500))) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    alone = SecureCoins(seed=bytes(32))
    assert sorted(drawn) == sorted(alone.integer(BIG) for _ in range(2000))


def test_a_seeded_stream_takes_its_next_key_from_itself_when_its_span_is_used():
    stream, longer = Keystream(bytes(32), span=64), Keystream(bytes(32))
    assert stream.octets(60) == longer.octets(60)
    successor = Cipher(algorithms.ChaCha20(longer.octets(32), bytes(16)), mode=None).encryptor()
    assert stream.octets(10) == successor.update(bytes(10))


def test_an_unseeded_stream_takes_a_new_key_from_the_system_when_its_span_is_used(monkeypatch):
    keys = []
    system = os.urandom
    monkeypatch.setattr(keystream.os, "urandom", lambda count: keys.append(system(count)) or keys[-1])
    stream = Keystream(span=64)
    drawn = [stream.octets(32) for _ in range(6)]
    assert len(keys) == 3
    assert len(set(drawn)) == 6


def test_a_key_is_replaced_before_the_block_counter_wraps():
    assert SPAN <= 64 * 2**32 // 2
    assert Keystream()._left == SPAN
