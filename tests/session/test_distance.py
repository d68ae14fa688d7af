"""What a session has lost between data that differ in several units."""

import pytest
from tests.session.numbers_source import Numbers

import counterpoint as cp
from counterpoint.ledger.memory import MemoryLedger


def session(rule, reach=1, **options):
    return cp.Session(Numbers({"apples": 3}, reach=reach), rule=rule, **options)


@pytest.mark.parametrize("rule", [cp.Filter(cp.PureDP(1)), cp.Odometer(cp.PureDP)], ids=repr)
def test_launches_count_with_their_group_losses(rule):
    s = session(rule)
    s.launch(cp.Laplace(0.1))
    s.launch(cp.Laplace(0.2, asks=2))
    assert s.loss_at(distance=3) == cp.PureDP(0.9)
    assert s.loss_at(distance=1) == s.loss and s.reserved == ()
    assert s.loss_at(distance=0) == cp.PureDP(0)


def test_what_was_delegated_counts_with_its_launches():
    s = session(cp.Filter(cp.PureDP(1)))
    inner = s.delegate(cp.PureDP(0.5))
    deeper = inner.delegate(cp.PureDP(0.3))
    inner.launch(cp.Laplace(0.1))
    deeper.launch(cp.Laplace(0.05))
    assert s.loss == cp.PureDP(0.5)
    assert s.loss_at(distance=2) == cp.PureDP(0.3)
    assert inner.loss_at(distance=2) == cp.PureDP(0.3) and deeper.loss_at(distance=2) == cp.PureDP(0.1)


def test_a_reading_at_distance_one_counts_launches_too_and_what_is_reserved_stands_beside_it():
    s = session(cp.Filter(cp.PureDP(1)))
    inner, hers = s.delegate(cp.PureDP(0.5)), s.grant("ann", cp.PureDP(0.3))
    inner.launch(cp.Laplace(0.2))
    assert s.loss_at(distance=0) == cp.PureDP(0)
    assert s.loss_at(distance=1) == cp.PureDP(0.2)
    assert s.loss_at(distance=2) == cp.PureDP(0.4)
    assert [(each.path, each.charged, each.used) for each in s.reserved] == [
        ((0,), cp.PureDP(0.5), cp.PureDP(0.2)),
        ((1,), cp.PureDP(0.3), cp.PureDP(0)),
    ]
    s.revoke(hers)
    assert len(s.reserved) == 2
    s.recount(hers)
    assert len(s.reserved) == 1 and s.loss == cp.PureDP(0.5)


def test_launches_are_read_in_the_order_of_time_wherever_they_were_made():
    """Read in another order, 0.3 before 0.1 would need less of a Gaussian than was spent."""
    for early, late, read in ((0.1, 0.3, "0.38863"), (0.3, 0.1, "0.37627")):
        s = session(cp.Filter(cp.GaussianDP(1)))
        inner = s.delegate(cp.GaussianDP(0.8))
        s.launch(cp.Laplace(early))
        inner.launch(cp.Laplace(late))
        assert float(s.loss_at(distance=1).mu) == pytest.approx(float(read), abs=1e-5)


def test_a_partition_counts_with_the_group_loss_of_its_whole_claim():
    s = session(cp.Filter(cp.PureDP(5)), reach=2)
    parts = s.partition("letter", k=2, within=cp.PureDP(0.25))
    assert s.loss_at(distance=3) == cp.PureDP(1.5)
    parts["a"].launch(cp.Laplace(0.1))
    assert s.loss_at(distance=3) == cp.PureDP(1.5) and parts["a"].loss_at(distance=3) == cp.PureDP(0.3)


def test_a_launch_that_was_charged_and_has_not_started_counts():
    class Crashing(MemoryLedger):
        crash = False

        def settle(self, intent, row, answer, **reads):
            if self.crash:
                raise KeyboardInterrupt
            return super().settle(intent, row, answer, **reads)

    ledger = Crashing()
    s = session(cp.Filter(cp.PureDP(1)), ledger=ledger)
    s.launch(cp.Laplace(0.1))
    ledger.crash = True
    with pytest.raises(KeyboardInterrupt):
        s.launch(cp.Laplace(0.2))
    assert s.loss == cp.PureDP(0.3)
    assert s.loss_at(distance=2) == cp.PureDP(0.6)


def test_a_distance_is_a_whole_number():
    with pytest.raises(cp.errors.InvalidParameter, match="distance"):
        session(cp.Filter(cp.PureDP(1))).loss_at(distance=-1)


def test_launches_are_limited_in_a_session_and_delegations_count():
    s = session(cp.Filter(cp.PureDP(1), launches=2))
    s.launch(cp.Laplace(0.1))
    with pytest.raises(cp.BudgetExceeded):
        s.launch(cp.Laplace(2))
    inner = s.delegate(cp.PureDP(0.1))
    assert not s.would_cost(cp.Laplace(0.01)).fits and s.remaining.epsilon == 0
    with pytest.raises(cp.BudgetExceeded, match="2 launches"):
        s.launch(cp.Laplace(0.01))
    inner.launch(cp.Laplace(0.1))
