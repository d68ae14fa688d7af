"""Returning what a revoked grant left unused: by recounting, where a theorem allows it, and never by subtracting."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import counterpoint as cp
from counterpoint.composition.filters import Filter
from counterpoint.errors import BudgetExceeded, LedgerTampered, NotAllowed, NotCovered, NotGranted
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.privacy.relations import every_step

PARENTS = [
    cp.PureDP(2),
    cp.zCDP(1),
    cp.GaussianDP(2),
    cp.RenyiDP(8, 2),
    cp.ApproxDP(2, 1e-6),
]
SMALL = st.fractions(Fraction(1, 100), Fraction(1, 10), max_denominator=100)


def new(within, ledger=None):
    return cp.Session(cp.Stream(bound=1), within=within, ledger=ledger)


def claim(rule):
    return Concurrent(rule, every_step()).claim


@pytest.mark.parametrize("budget", PARENTS, ids=repr)
@given(
    before=st.lists(SMALL, min_size=1, max_size=3), inner=st.lists(SMALL, max_size=5), after=st.lists(SMALL, max_size=3)
)
def test_a_recount_gives_the_account_of_the_same_launches_made_directly(budget, before, inner, after):
    """In each sum that is in. The first launch divides delta in the default filter: one before the charge does."""
    rule, child = Filter(budget), Filter(cp.PureDP("1/2"))
    launched = [cp.Laplace(epsilon).claim for epsilon in inner]
    account = direct = rule.start()
    for epsilon in before:
        account, direct = (rule.charge(each, cp.Laplace(epsilon).claim) for each in (account, direct))
    account = rule.charge(account, claim(child))
    for one in launched:
        direct = rule.charge(direct, one)
    for epsilon in after:
        account, direct = (rule.charge(each, cp.Laplace(epsilon).claim) for each in (account, direct))
    recounted = rule.refunded(account, child, claim(child), launched)
    if isinstance(budget, cp.ApproxDP):
        assert (recounted.basic, recounted.exposed) == (direct.basic, direct.exposed)
        fit = [total <= room for total, room in zip(account.renyi, account.rooms.most, strict=True)]
        assert any(fit)
        expected = [total if inside else None for total, inside in zip(direct.renyi, fit, strict=True)]
        assert list(recounted.renyi) == expected, "a part that was out stays out"
        assert recounted.left == account.left
    elif isinstance(budget, cp.GaussianDP):
        assert recounted.lost == direct.lost and recounted.left == account.left
        assert recounted.spare == Fraction(1, 2) - sum(inner)
    else:
        assert recounted == direct


@pytest.mark.parametrize("measure", [cp.zCDP, cp.GaussianDP], ids=lambda kind: kind.__name__)
def test_a_child_of_the_same_measure_is_recounted(measure):
    rule, child = Filter(measure(1)), Filter(measure("1/2"))
    account = rule.charge(rule.start(), claim(child))
    launched = [claim(Filter(measure("1/10")))]
    assert rule.refunded(account, child, claim(child), launched) == rule.charge(rule.start(), launched[0])


def test_what_a_pure_child_left_pays_pure_launches_of_a_gaussian_budget_and_is_not_added_up():
    rule, child = Filter(cp.GaussianDP(1)), Filter(cp.PureDP("1/2"))
    account = rule.charge(rule.charge(rule.start(), claim(child)), claim(child))
    once = rule.refunded(account, child, claim(child), [cp.Laplace("1/5").claim])
    assert once.spare == Fraction(3, 10) and once.left == account.left
    twice = rule.refunded(once, child, claim(child), [cp.Laplace("1/4").claim])
    assert twice.spare == Fraction(3, 10), "two responses of x and y are not one of x + y"
    paid = rule.charge(twice, cp.Laplace("1/10").claim)
    assert (paid.spare, paid.left) == (Fraction(1, 5), account.left)
    assert rule.charge(paid, cp.Laplace("1/4").claim).left < account.left


def test_a_gaussian_child_gives_back_what_it_has_left_after_exact_payments():
    rule, child = Filter(cp.GaussianDP(1)), Filter(cp.GaussianDP("1/2"))
    account, inside = rule.charge(rule.start(), claim(child)), child.start()
    launched = [cp.Laplace("1/10").claim] * 20
    for one in launched:
        inside = child.charge(inside, one)
    assert inside.lost.squares > Fraction(1, 4), "more than squares of mu would admit"
    recounted = rule.refunded(account, child, claim(child), launched)
    assert recounted.left == account.left + inside.left
    assert recounted.lost.squares == Fraction(1, 4) - inside.left


def test_deltas_of_basic_composition_are_returned_too():
    child = Filter(cp.ApproxDP("1/2", "1/1000000"), by="basic")
    small = claim(Filter(cp.ApproxDP("1/10", "1/10000000"), by="basic"))
    for rule in (Filter(cp.ApproxDP(1, "1/100000")), Filter(cp.ApproxDP(1, "1/100000"), by="basic")):
        account = rule.charge(rule.start(), claim(child))
        recounted = rule.refunded(account, child, claim(child), [small])
        assert recounted.exposed == Fraction(1, 10**7)
        assert recounted.basic == Fraction(1, 10)


@pytest.mark.parametrize(
    ("parent", "child"),
    [
        (Filter(cp.ApproxDP(1, 1e-6)), Filter(cp.ApproxDP(0.5, 1e-7))),  # the default rule inside
        (Filter(cp.ApproxDP(1, 1e-6)), Filter(cp.zCDP(0.001))),
        (Filter(cp.zCDP(1)), Filter(cp.GaussianDP(0.5))),
        (Filter(cp.RenyiDP(8, 1)), Filter(cp.RenyiDP(16, 0.5))),
        (Filter(cp.PureDP(1), launches=5), Filter(cp.PureDP(0.5))),
        (Filter(cp.ApproxDP(1, 1e-6), by="renyi"), Filter(cp.PureDP(0.5))),
        (cp.Odometer(cp.PureDP), Filter(cp.PureDP(0.5))),
        (cp.Slots([cp.PureDP(0.5)] * 3), Filter(cp.PureDP(0.5))),
    ],
    ids=repr,
)
def test_where_no_theorem_returns_anything_the_charge_stays(parent, child):
    account = parent.charge(parent.start(), claim(child))
    with pytest.raises(NotCovered, match=r"Returning|no theorem"):
        parent.refunded(account, child, claim(child), [])


def test_a_part_of_the_default_filter_that_is_out_stays_out():
    """Its transcripts stopped being those of its analyst: delta could reach 1 if it came back."""
    budget = cp.ApproxDP(1, 1e-6)
    rule, child = Filter(budget), Filter(cp.PureDP("3/10"))
    account = rule.charge(rule.start(), claim(child))
    while account.basic <= budget.epsilon:
        account = rule.charge(account, cp.Laplace("1/50").claim)
    recounted = rule.refunded(account, child, claim(child), [])
    assert recounted.basic is None and rule.loss(recounted).epsilon > 0


@pytest.mark.parametrize("durable", [False, True], ids=["memory", "sqlite"])
def test_a_session_returns_what_a_revoked_grant_left_and_no_more(tmp_path, durable):
    place = cp.Durable(str(tmp_path / "ledger.db")) if durable else None
    with new(cp.PureDP(1), place) as session:
        hers = session.grant("ann", cp.PureDP("0.6"))
        hers.launch(cp.Laplace("0.1", asks=2))
        with pytest.raises(NotAllowed, match="only a revoked grant"):
            session.recount(hers)
        session.revoke(hers)
        session.recount(hers)
        session.recount(hers)
        assert session.loss == cp.PureDP("0.1")
        for each in (hers, session.at(hers._path)):
            with pytest.raises(NotGranted):
                each.launch(cp.Laplace("0.1"))
        session.launch(cp.Laplace("0.9"))
        with pytest.raises(BudgetExceeded):
            session.launch(cp.Laplace("0.001"))
        session._engine.ledger.verify()
    if durable:
        with cp.open(place, source=cp.Stream(bound=1)) as again:
            assert again.loss == cp.PureDP(1)
            again._engine.ledger.verify()


def test_what_was_delegated_further_counts_with_its_whole_budget():
    """More may be launched there: only a grant that was revoked is closed to every caller."""
    with new(cp.PureDP(1)) as session:
        hers = session.grant("ann", cp.PureDP("0.6"))
        inner = session.at(hers._path).delegate(cp.PureDP("0.4"))
        session.revoke(hers)
        session.recount(hers)
        assert session.loss == cp.PureDP("0.4")
        inner.launch(cp.Laplace("0.4"))


def test_a_recount_that_was_put_on_record_without_a_theorem_is_found(tmp_path, monkeypatch):
    with new(cp.ApproxDP(1, 1e-6), cp.Durable(str(tmp_path / "ledger.db"))) as session:
        hers = session.grant("ann", cp.ApproxDP(0.5, 1e-7))
        session.revoke(hers)
        with monkeypatch.context() as patched:
            patched.setattr(Filter, "refunded", lambda self, account, *rest: self.start())
            session.recount(hers)
        with pytest.raises(LedgerTampered, match="no theorem covers"):
            session._engine.ledger.verify()
