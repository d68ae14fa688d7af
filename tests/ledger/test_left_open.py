"""What was begun and not finished: by whom it is finished, when, with which seed, and what stands in the way."""

from contextlib import closing

import pytest
from tests.ledger.places import DATA
from tests.session.numbers_source import Numbers

import counterpoint as cp
from counterpoint.errors import InvalidRequest, LedgerError, LedgerTampered, Unsealable
from counterpoint.ledger.commands import AskCommand, OpenCommand
from counterpoint.ledger.sealing import MasterKey
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.session.fit import launchable
from counterpoint.session.runner import Engine
from counterpoint.session.versions import DataVersions


class Flaky(Numbers):
    broken = True

    def resolve(self, pin, prepared):
        if self.broken:
            raise InvalidRequest("the data cannot be reached")
        return super().resolve(pin, prepared)


def begun(place):
    """Two handles, each with a request that was begun and not finished."""
    with place.session(source=Flaky(DATA)) as s:
        for number in range(2):
            handle = s.launch(cp.Laplace("0.01", asks=9))
            with pytest.raises(InvalidRequest):
                handle.ask("apples", id=f"q{number}")
    return place


@pytest.fixture
def left_open(lasting):
    return begun(lasting)


def test_the_seed_of_another_request_does_not_open(lasting):
    """A request that was finished with the coins of another could be compared with it."""
    source = Flaky(DATA)
    with lasting.session(source=source) as s:
        handles = [s.launch(cp.Laplace("0.01", asks=9)) for _ in range(2)]
        for number, handle in enumerate(handles):
            with pytest.raises(InvalidRequest):
                handle.ask("apples", id=f"q{number}")
        source.broken = False
        swap = (
            "UPDATE counterpoint_request SET seed = (SELECT seed FROM counterpoint_request WHERE request = '() q0') "
            "WHERE request = '() q1'"
        )
        if lasting.kind == "postgres":
            with closing(lasting.ledger()) as other:
                lasting.sql(swap)
                Engine(other, DataVersions(source)).launch(
                    (), launchable(cp.Laplace("0.01"), source)
                )  # or what is in memory is used
            assert isinstance(handles[0].ask("apples", id="q0"), int)
            for name in ("q1", "next"):
                with pytest.raises(Unsealable):
                    handles[1].ask("apples", id=name)
            assert s._engine.ledger.read((1,)).version == 0
    if lasting.kind == "sqlite":
        lasting.sql(swap)
        with pytest.raises(LedgerTampered, match="q1' is not stored as the entries say"):
            lasting.reopened()


def test_a_state_opens_nowhere_else_and_at_no_other_version(postgres):
    """Put back or moved while the ledger is open: the chain did not leave it so, nor does it open there."""
    with postgres.session(cp.PureDP(10**6)) as s, postgres.session(cp.PureDP(10**6)) as replica:
        first, second = [s.launch(cp.SparseVector(epsilon=10**5, threshold=50, hits=9)) for _ in range(2)]
        keep = "SELECT version, sealed FROM counterpoint_row WHERE path = ?"
        ((version, old),) = postgres.sql(keep, "[0]")
        first.ask("beans"), second.ask("beans")
        put = "UPDATE counterpoint_row SET sealed = ? WHERE path = ?"
        (((_, now),), ((_, other),)) = postgres.sql(keep, "[0]"), postgres.sql(keep, "[1]")
        for wrong in (old, other):
            postgres.sql(put, wrong, "[0]")
            replica.at(second.path).ask("beans")  # or what is in memory is used, as nobody has come in between
            with pytest.raises(LedgerTampered, match=r"the row at \[0\]"):
                first.ask("beans")
            assert first.halted
        postgres.sql(put, now, "[0]")
        replica.at(second.path).ask("beans")
        assert first.ask("beans") is False and version == 0


def test_what_is_left_open_comes_in_the_order_in_which_it_was_begun(place):
    with place.session(source=Flaky(DATA)) as s:
        for name in ("b", "c", "a"):
            with pytest.raises(InvalidRequest):
                s.launch(cp.Laplace("0.01")).ask("apples", id=name)
        assert [intent.request for intent in s._engine.ledger.opened()] == ["() b", "() c", "() a"]


@pytest.mark.parametrize("again", ["opened", "made"])
def test_what_was_left_open_is_finished_at_the_next_start(left_open, again):
    with left_open.reopened() if again == "opened" else left_open.session() as s:
        assert s._engine.ledger.opened() == ()
        assert [s._engine.ledger.read(handle.path).version for handle in s.handles] == [1, 1]


def test_a_launch_finishes_first_what_is_open_in_its_session(place):
    """Else it would be started in the place of that, with its seed."""
    ledger = place.ledger()
    ledger.bind(place.source.fingerprint())
    composition = Concurrent(cp.Filter(cp.PureDP(1)), place.source.relation)
    ledger.begin("root", OpenCommand((), composition))
    path = Engine(ledger, DataVersions(place.source)).launch((), launchable(cp.Laplace("0.25"), place.source))
    assert path == (0,) and ledger.opened() == ()
    assert ledger.read(()).state.launched == 1 and ledger.read((0,)).mechanism == cp.Laplace("0.25")
    ledger.verify()
    ledger.close()


def test_what_was_left_open_waits_for_the_right_key(left_open):
    right, left_open.key = left_open.key, left_open.home / "wrong.key"
    MasterKey.create(left_open.key)
    with left_open.reopened() as s:
        assert s.loss == cp.PureDP("0.02") and s._engine.ledger.opened() == ()
        with pytest.raises(Unsealable, match="KEY_FILE"):
            s.handles[0].ask("apples", id="q0")
        s._engine.ledger.verify()
    left_open.key = right
    with left_open.reopened() as s:
        assert all(isinstance(handle.ask("apples", id=f"q{n}"), int) for n, handle in enumerate(s.handles))


def test_what_is_taken_away_from_under_an_open_ledger_is_a_clear_error(postgres):
    begun(postgres)
    asking = AskCommand((0,), postgres.source.prepare("apples"), None, "v1")
    with closing(postgres.ledger()) as ledger:
        postgres.sql(
            "DELETE FROM counterpoint_entry WHERE number = "
            "(SELECT entry FROM counterpoint_request WHERE request = '() q0')"
        )
        with pytest.raises(LedgerError, match="is missing"):
            ledger.begin("() q0", asking)
        postgres.sql("DELETE FROM counterpoint_session")
        with pytest.raises(LedgerError, match="no session"):
            ledger.begin("new", asking)
