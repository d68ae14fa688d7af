"""A mechanism that asks its own handle while it answers gets an error; it does not wait for itself."""

import threading

import pytest
from tests.ledger.places import Place
from tests.session.numbers_source import Numbers

import counterpoint as cp
from counterpoint.encoding import Value

HANDLES = {}
CAUGHT = []


class Nosy(cp.mechanisms.Postprocessor, Value, frozen=True):
    """Asks the handle that it was told of, while it is asked itself."""

    deed: str

    def start(self):
        return None

    def react(self, own, request, ask):
        try:
            HANDLES[self.deed]()
        except cp.errors.NotAllowed as error:
            CAUGHT.append(error)
            raise
        return own, ask(request)


class NosyMechanism(cp.Mechanism, Value, frozen=True):
    """Asks its own handle when it is asked what it accepts."""

    @property
    def claim(self):
        return cp.Laplace(1).claim

    def accepts(self, message):
        if "own" in HANDLES:
            HANDLES["own"]()
        return True

    def start(self, coins):
        return cp.Laplace(1).start(coins)

    def step(self, state, message, coins):
        return state, 0


@pytest.fixture(params=["memory", "sqlite"])
def session(request, tmp_path):
    place = Place(request.param, tmp_path)
    HANDLES.clear()
    CAUGHT.clear()
    with place.session(cp.PureDP(5)) as s:
        yield s


def in_time(deed):
    """What a deed raises; if it does not end in time, it never will."""
    found = []

    def work():
        try:
            deed()
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), "it waits for itself"
    return found


@pytest.mark.parametrize("deed", ["own", "another", "launch", "another session"])
def test_a_postprocessor_that_asks_or_launches_gets_an_error(session, deed):
    nosy = session.launch(cp.postprocess(Nosy(deed), cp.Laplace(1, asks=9)))
    other = cp.Session(Numbers({"apples": 1}), cp.PureDP(1)).launch(cp.Laplace(1, asks=9))
    HANDLES["own"] = lambda: nosy.ask("apples")
    HANDLES["another"] = lambda: session.handles[1].ask("apples")
    HANDLES["launch"] = lambda: session.launch(cp.Laplace("0.1"))
    HANDLES["another session"] = lambda: other.ask("apples")
    session.launch(cp.Laplace(1, asks=9))
    (error,) = in_time(lambda: nosy.ask("apples"))
    assert isinstance(error, cp.CounterpointError)
    assert len(CAUGHT) == 1 and "asks nothing itself" in str(CAUGHT[0])
    assert isinstance(session.handles[1].ask("apples"), int), "the others go on"
    assert session.loss == cp.PureDP(2)


def test_so_does_a_mechanism_that_asks_while_it_is_asked_what_it_accepts(session):
    nosy = session.launch(NosyMechanism())
    HANDLES["own"] = lambda: nosy.ask("apples")
    (error,) = in_time(lambda: nosy.ask("apples"))
    assert isinstance(error, cp.errors.NotAllowed)
    HANDLES.clear()
    assert nosy.ask("apples") == 0, "nothing was begun"
