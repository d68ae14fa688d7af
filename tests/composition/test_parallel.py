"""Parallel composition: the cost of k, and which delta counts (errata, Henzinger E1)."""

from fractions import Fraction
from functools import lru_cache

import pytest

from counterpoint.coins.secure import SeededCoins
from counterpoint.composition.fixed import compose
from counterpoint.composition.fixed.optimal import OptimalParts
from counterpoint.composition.parallel import EqualParts, Parallel, times
from counterpoint.encoding import decode, encode
from counterpoint.errors import BudgetExceeded, InvalidParameter, NotCovered, RelationMismatch
from counterpoint.measures import ApproxDP, GaussianDP, PureDP, RenyiDP, TradeOff, tCDP, zCDP
from counterpoint.mechanisms.additive import Gaussian, Laplace
from counterpoint.mechanisms.concurrent import Concurrent, Launch
from counterpoint.privacy.claims import claim
from counterpoint.privacy.messages import Ask
from counterpoint.privacy.relations import Predicate, Steps, every_step, first_pair_consistent, k_sparse
from counterpoint.verify.finite import OpenDoor

SEVENTH = Fraction(1, 7)


def of(loss, interaction="finite"):
    return claim(loss, every_step(), "a test", interaction=interaction)


def create(rule, *losses):
    account = rule.start()
    for loss in losses:
        account = rule.admit(account, of(loss))
    return account


def test_f_dp_parts_want_finite_communication():
    rule = Parallel(1, each=GaussianDP(1), first_pair=True)
    with pytest.raises(NotCovered, match="finite communication"):
        rule.admit(rule.start(), of(GaussianDP(1), "endless"))
    assert rule.admit(rule.start(), of(PureDP("0.1"), "endless")).count == 1, "it is one randomized response"
    assert Parallel(1, each=zCDP(1), first_pair=True).admit(EqualParts(), of(zCDP(1), "endless")) == EqualParts(1)


@lru_cache
def best_attack(copies: int, delta: Fraction) -> Fraction:
    """The exact advantage against naive parallel composition of M_delta, k = 1, over all adaptive adversaries.

    A copy is fresh, open or spent; probing a fresh one with identical inputs opens it with probability delta; the
    one difference may be sent to any copy, and tells the worlds apart just if that copy is open.
    """
    if copies == 0:
        return Fraction(0)
    probe = delta * 1 + (1 - delta) * best_attack(copies - 1, delta)
    return max(probe, best_attack(copies - 1, delta))


def test_t16_every_created_delta_counts_on_changing_data():
    with pytest.raises(NotCovered, match="delta_total"):
        Parallel(1, each=ApproxDP(0, SEVENTH))
    claimed = 1 - (1 - SEVENTH) ** 12
    rule = Parallel(1, each=ApproxDP(0, SEVENTH), delta_total=claimed)
    account = create(rule, *[ApproxDP(0, SEVENTH)] * 12)
    assert rule.loss(account) == ApproxDP(0, claimed) and abs(float(claimed) - 0.8427) < 1e-4
    with pytest.raises(BudgetExceeded):
        rule.admit(account, of(ApproxDP(0, SEVENTH)))
    assert best_attack(12, SEVENTH) == claimed, "and the attack of Henzinger et al. 2024, Thm 5.2 reaches it"


def test_pure_parts_cost_k_of_them_however_many_there_are():
    rule = Parallel(2, each=PureDP(0.5))
    account = create(rule, *[PureDP(0.5)] * 1000)
    assert (
        rule.loss(account)
        == rule.bound(k_sparse(2, every_step()))
        == OptimalParts(compose.optimal([PureDP(0.5)] * 2).parts)
    )
    assert rule.loss(account).as_pure() == PureDP(1)
    assert account == EqualParts(1000, Fraction(0))


def test_first_pair_consistent_parts_cost_k_in_every_measure():
    relation = first_pair_consistent(2, every_step())
    for each, total in [
        (ApproxDP(0.1, 1e-7), OptimalParts(compose.optimal([ApproxDP(0.1, 1e-7)] * 2).parts)),
        (zCDP(0.5), zCDP(1)),
        (RenyiDP(8, 0.1), RenyiDP(8, 0.2)),
        (tCDP(0.1, 8), tCDP(0.2, 8)),
        (GaussianDP(3), GaussianDP(rho=9)),
    ]:
        rule = Parallel(2, each=each, first_pair=True)
        assert rule.bound(relation) == total == rule.loss(create(rule, *[each] * 50))
    assert times(GaussianDP(1), 4) == GaussianDP(2)
    assert isinstance(times(TradeOff([(0, 1), ("1/4", "1/4"), (1, 0)]), 2), TradeOff)


@pytest.mark.parametrize("each", [zCDP(0.1), RenyiDP(4, 0.1), tCDP(0.1, 4), GaussianDP(0.1)], ids=str)
def test_other_measures_on_changing_data_are_refused_with_the_missing_theorem(each):
    with pytest.raises(NotCovered, match=r"13\.5"):
        Parallel(1, each=each)


def test_an_asymmetric_relation_pays_twice_unless_k_is_one():
    delta = Fraction(1, 44)
    asymmetric = Predicate("one way", lambda pairs: True)
    twice = Parallel(2, each=ApproxDP("0.0953", delta), delta_total="0.2", symmetric=False)
    assert create(twice, ApproxDP("0.0953", delta)).exposed == 2 * delta
    once = Parallel(1, each=ApproxDP("0.0953", delta), delta_total="0.2", symmetric=False)
    assert create(once, ApproxDP("0.0953", delta)).exposed == delta
    careless = Parallel(2, each=ApproxDP("0.0953", delta), delta_total="0.2")
    with pytest.raises(RelationMismatch, match="symmetric"):
        careless.bound(k_sparse(2, asymmetric))
    assert twice.bound(k_sparse(2, asymmetric)).epsilon_at("0.2") == 0.1906


def test_the_counterexample_of_the_erratum_is_within_the_repaired_bound_and_beyond_the_printed_one():
    """errata, Henzinger E1: 607/5082 is reached by three copies of a machine with e^eps = 1.1, delta = 1/44 and k =
    2.
    """
    reached, pure = Fraction(607, 5082), Fraction(1, 21)
    printed = 1 - (1 - pure) * (1 - Fraction(1, 44)) ** 3
    repaired = 1 - (1 - pure) * (1 - Fraction(2, 44)) ** 3
    assert printed < reached < repaired


def test_a_part_holds_what_each_allows():
    rule = Parallel(1, each=ApproxDP(0.1, "1e-6"), delta_total="1e-3")
    assert create(rule, PureDP("0.1")).exposed == 0, "a pure part has no delta to count"
    with pytest.raises(BudgetExceeded):
        create(rule, PureDP("0.2"))
    with pytest.raises(BudgetExceeded):
        create(rule, ApproxDP("0.05", "1e-5"))
    converted = create(rule, PureDP("0.1000001"))
    assert converted.exposed == Fraction(1, 10**6), "held only by spending delta, which is then counted"


def test_the_composition_must_be_as_sparse_and_as_consistent_as_the_rule_says():
    rule = Parallel(1, each=PureDP(1))
    for relation in (every_step(), k_sparse(2, every_step())):
        with pytest.raises(RelationMismatch):
            rule.bound(relation)
    with pytest.raises(RelationMismatch):
        Parallel(1, each=zCDP(1), first_pair=True).bound(k_sparse(1, every_step()))


def test_parts_run_as_a_concurrent_composition():
    parts = Concurrent(Parallel(1, each=PureDP(0.5)), k_sparse(1, every_step()))
    assert parts.claim.loss == PureDP(0.5) and parts.claim.certificate.rests_on("Henzinger et al. 2024, Cor 5.5")
    state, coins = parts.start(SeededCoins(1)), SeededCoins(1)
    for child in range(20):
        state, index = parts.step(state, Ask(Launch(Laplace(0.5))), coins)
        assert index == child
    _, refused = parts.step(state, Ask(Launch(Laplace(0.6))), coins)
    assert refused.error == "BudgetExceeded"
    _, refused = parts.step(state, Ask(Launch(Gaussian(0.1))), coins)
    assert refused.error == "BudgetExceeded"


def test_the_door_of_the_papers_is_refused_without_a_delta_budget_and_counted_with_one():
    doors = Concurrent(Parallel(1, each=ApproxDP(0, SEVENTH), delta_total="0.3"), k_sparse(1, Steps(asks=1, updates=0)))
    coins = SeededCoins(1)
    state, answers = doors.start(coins), []
    for _ in range(3):
        state, answer = doors.step(state, Ask(Launch(OpenDoor(SEVENTH))), coins)
        answers.append(answer)
    assert answers[:2] == [0, 1] and answers[2].error == "BudgetExceeded"


def test_rules_round_trip_and_bad_ones_are_refused():
    rule = Parallel(2, each=ApproxDP(1, 1e-6), delta_total=1e-4)
    assert decode(encode(rule), Parallel) == rule and rule.certificate(rule.start()).theorem
    for bad in (0, -1, 1.5, True):
        with pytest.raises(InvalidParameter):
            Parallel(bad, each=PureDP(1))
    with pytest.raises(InvalidParameter):
        Parallel(1, each=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        Parallel(1, each=ApproxDP(1, 0.1), delta_total=2)
    with pytest.raises(NotCovered):
        times(Unknown(), 2)


class Unknown(PureDP.__mro__[1]):  # type: ignore[misc]
    """A loss that no rule knows."""

    def __repr__(self):
        return "Unknown()"
