"""Each step has coins of its own: seed, path, version and body all enter, so a seed that came twice would show nothing.

Two draws at this scale agree with a probability of about 1e-12, far below any false alarm that could be noticed.
"""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.ledger.places import DURABLE, Place
from tests.session.numbers_source import Numbers

import counterpoint as cp
from counterpoint.coins.keystream import Keystream
from counterpoint.encoding import encode
from counterpoint.ledger.ledger import Intent
from counterpoint.ledger.memory import MemoryLedger
from counterpoint.session import step as room
from counterpoint.session.step import StepCoins

WIDE = cp.Laplace("1e-12", asks=5)
SEED = bytes(range(32))


def session(seeds=lambda: SEED):
    data = Numbers({"apples": 7, "pears": 7})
    return cp.Session(data, cp.PureDP(1), ledger=MemoryLedger(seeds=seeds))


def test_the_same_seed_gives_other_noise_at_another_path():
    s = session()
    assert len({s.launch(WIDE).ask("apples") for _ in range(3)}) == 3


def test_the_same_seed_gives_other_noise_to_the_next_launch():
    """Of two equal launches nothing but the path differs."""
    s = session()
    paths = [s.launch(cp.SparseVector(epsilon="1e-12", threshold=5)).path for _ in range(3)]
    assert len({encode(s._engine.ledger.read(path).state, sealed=True) for path in paths}) == 3


def test_the_same_seed_gives_other_noise_at_the_next_step():
    noisy = session().launch(WIDE)
    assert len({noisy.ask("apples") for _ in range(3)}) == 3


def test_the_same_seed_gives_other_noise_for_another_request():
    """Else the difference of two answers would be the difference of what was counted."""
    assert session().launch(WIDE).ask("apples") != session().launch(WIDE).ask("pears")


def test_the_same_seed_gives_the_same_noise_for_the_same_step():
    assert session().launch(WIDE).ask("apples") == session().launch(WIDE).ask("apples")


def test_the_two_steps_of_a_question_have_coins_of_their_own():
    intent = Intent("a question", b"[]", (0,), 0, "v1", SEED)
    drawn = {StepCoins(intent, *label).integer(2**60) for label in ((), ("start",), ("ask",))}
    assert len(drawn) == 3


def test_each_step_has_a_seed_of_its_own(tmp_path):
    """Path, version and body are public: without a fresh seed all noise could be computed by anybody."""
    drawn = []
    for number in range(2):
        for kind in ("memory", *DURABLE):
            home = tmp_path / f"{kind}{number}"
            home.mkdir()
            with Place(kind, home).session() as s:
                drawn.append(s.launch(WIDE).ask("apples"))
    assert len(set(drawn)) == 6


@pytest.mark.parametrize("kind", ["memory", *DURABLE])
def test_no_seed_is_drawn_twice(kind, tmp_path):
    with Place(kind, tmp_path).session() as s:
        ledger, seeds = s._engine.ledger, []
        begin = ledger.begin

        def noted(*request, **options):
            intent = begin(*request, **options)
            seeds.append(intent.seed)
            return intent

        ledger.begin = noted
        for _ in range(3):
            noisy = s.launch(WIDE)
            noisy.ask("apples"), noisy.ask("apples")
    assert len(seeds) == len(set(seeds)) == 9 and all(len(seed) == 32 for seed in seeds)


def test_threads_that_draw_first_at_once_get_other_noise_each(monkeypatch):
    """As of all coins: none receives what another did, also where the first draw makes the stream."""
    made = []

    def slowly(key):
        time.sleep(0.05)
        made.append(key)
        return Keystream(key)

    coins = StepCoins(Intent("a request", b"[]", (0,), 3, "v1", SEED))
    monkeypatch.setattr(room, "Keystream", slowly)
    with ThreadPoolExecutor(2) as threads:
        drawn = list(threads.map(lambda _: coins.integer(10**12), range(2)))
    assert len(set(drawn)) == 2 and len(made) == 1
