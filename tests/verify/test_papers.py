"""The papers' counterexamples and traps, computed: Henzinger et al. 2024, Thm 5.2, errata, Henzinger E1 and
Henzinger E13.
"""

import math
from fractions import Fraction

import pytest

from counterpoint import ApproxDP, BudgetExceeded, Parallel, relations
from counterpoint.coins import SeededCoins
from counterpoint.composition.parallel import EqualParts
from counterpoint.encoding import Value
from counterpoint.errors import NotCovered
from counterpoint.mechanisms import Ask, Concurrent, Launch, ToChild
from counterpoint.privacy.relations import Relation, Steps
from counterpoint.verify.exact_loss import exact
from counterpoint.verify.finite import FiniteMechanism, OpenDoor, Outcome, query_pairs, side_by_side
from counterpoint.verify.game import HALT, CreatedFirst, Game

SEVENTH = Fraction(1, 7)


def doors(copies: int, first_pair: bool = False):
    """Henzinger et al. 2024, Thm 5.2: copies of M_delta of which one may be reached by a difference."""
    if first_pair:
        relation = relations.first_pair_consistent(1, Steps(asks=1))
        rule = Parallel(1, each=ApproxDP(0, SEVENTH), first_pair=True)
    else:
        relation = relations.k_sparse(1, Steps(asks=1))
        rule = Parallel(1, each=ApproxDP(0, SEVENTH), delta_total=1)
    pairs = [(Ask(Launch(OpenDoor(SEVENTH))),) * 2]
    pairs += [(Ask(ToChild(n), 0), Ask(ToChild(n), bit)) for n in range(copies) for bit in (0, 1)]
    created = CreatedFirst(relation, copies)
    return exact(Concurrent(rule, relation), created, messages=pairs, rounds=2 * copies + 1, rational=True)


@pytest.mark.parametrize("copies", [1, 2, 3, pytest.param(4, marks=pytest.mark.long)])
def test_t16_open_doors_in_parallel_give_exactly_one_minus_all_closed(copies):
    """Henzinger et al. 2024, Thm 5.2, in rationals, with the composition and the rule that run: 1 - (1 - delta)^l."""
    assert doors(copies).bounds_at_growth(1) == (1 - (1 - SEVENTH) ** copies,) * 2


@pytest.mark.parametrize("copies", [3, 5, 12])
def test_t16_more_doors_than_can_be_interleaved_one_by_one(copies):
    """The same for as many doors as the trap has: 1 - (6/7)^12 = 0.8427.

    Nothing is lost by trying the doors in order: they are independent and equal, and one that is closed stays closed.
    """
    trying, opened = range(copies), copies
    table = [_tried(n + 1 if n + 1 < copies else None, opened) for n in trying]
    table.append(((((Outcome(1, 0),), (Outcome(1, 1),))),))
    loss = exact(FiniteMechanism(tuple(table)), messages=query_pairs(1), rounds=copies + 1)
    assert loss.bounds_at_growth(1) == (1 - (1 - SEVENTH) ** copies,) * 2


def _tried(following, opened):
    return (_both(Outcome(SEVENTH, "open", opened), Outcome(1 - SEVENTH, "closed", following)),)


def test_t16_the_rule_refuses_what_the_computation_refutes():
    with pytest.raises(NotCovered):
        Parallel(1, each=ApproxDP(0, SEVENTH))
    twelve = 1 - (1 - SEVENTH) ** 12
    rule, account = Parallel(1, each=ApproxDP(0, SEVENTH), delta_total=twelve), EqualParts()
    for _ in range(12):
        account = rule.admit(account, OpenDoor(SEVENTH).claim)
    assert rule.loss(account) == ApproxDP(0, twelve)
    with pytest.raises(BudgetExceeded):
        rule.admit(account, OpenDoor(SEVENTH).claim)


def test_t18_first_pair_consistency_removes_the_attack():
    loss = doors(2, first_pair=True)
    assert loss.bounds_at_growth(1) == (0, 0)
    assert any(branch.answer == 0 for branch in loss.worlds.root.moves[0].branches), "and the doors were launched"


def test_t18_what_is_affected_is_decided_by_the_first_pair():
    """A late difference, and a second affected child, halt before they are seen; identical children are free."""
    relation = relations.first_pair_consistent(1, Steps(asks=1))
    game = Game(Concurrent(Parallel(1, each=ApproxDP(0, 1), first_pair=True), relation), 1)
    launch = (Ask(Launch(OpenDoor(1))),) * 2

    def pair(child, bit):
        return Ask(ToChild(child), 0), Ask(ToChild(child), bit)

    def heard(*pairs):
        coins = SeededCoins(1)
        state, answers = game.start(coins), []
        for left, right in [launch, launch, launch, *pairs]:
            state, answer = game.step(state, left, right, coins)
            answers.append(answer)
        return answers[3:]

    assert heard(pair(0, 0), pair(0, 1), pair(1, 0)) == ["open", HALT, HALT]
    assert heard(pair(0, 0), pair(1, 1), pair(0, 0), pair(1, 0)) == ["open", "open", 0, 0]
    assert heard(pair(1, 1), pair(2, 1)) == ["open", HALT]


def test_t20_only_valid_prefixes_are_played():
    """Two differing updates would tell everything; the verifier lets one through, in whichever order."""
    spy = FiniteMechanism((((((Outcome(1, 0, 0),), (Outcome("1/2", 0, 0), Outcome("1/2", 1, 0)))),),))
    pairs = [(Ask(0, 0), Ask(0, 1)), (Ask(0, 1), Ask(0, 1)), (Ask(0, 0), Ask(0, 0))]
    one, two = (exact(spy, messages=pairs, rounds=5, relation=Steps(asks=n)).bounds_at_growth(1) for n in (1, 2))
    assert one == (Fraction(1, 2),) * 2 and two == (Fraction(3, 4),) * 2


class SecondDiffers(Relation, Value, frozen=True):
    """Of the copies, each asked by its number, at most k receive a different second pair: (0, 1), never (1, 0)."""

    k: int

    @property
    def symmetric(self):
        return False

    def begin(self):
        return ((), 0)

    def _advance(self, progress, left, right, distance):
        started, differed = progress
        known = left.public in started
        if distance.l1 and (not known or differed == self.k):
            return None
        return (tuple(sorted({*started, left.public})), differed + (distance.l1 > 0))

    def within(self, other):
        return other == self


def _second_differs(copies):
    return [(Ask(n, 0), Ask(n, bit)) for n in range(copies) for bit in (0, 1)]


def _both(*outcomes):
    return outcomes, outcomes


A = Fraction(11, 10)


def asymmetric():
    """The machine of errata, Henzinger E1: publishes a type, then answers by P or Q of that type."""
    first = _both(Outcome("1/4", "A", 1), Outcome("1/4", "B", 2), Outcome("1/2", "R", 3))
    some, rest = 1 / A, 1 - 1 / A
    kind_a = (Outcome(rest, "*"), Outcome(some, 1)), (Outcome(1, 1),)
    kind_b = (Outcome(1, 0),), (Outcome(some, 0), Outcome(rest, "*"))
    truth = A / (1 + A)
    kind_r = (Outcome(truth, 0), Outcome(1 - truth, 1)), (Outcome(1 - truth, 0), Outcome(truth, 1))
    return FiniteMechanism(((first,), (kind_a,), (kind_b,), (kind_r,)))


def test_one_asymmetric_machine_is_what_it_says():
    loss = exact(asymmetric(), messages=_second_differs(1), rounds=2, relation=SecondDiffers(1))
    assert loss.bounds_at_growth(A) == (Fraction(1, 44),) * 2


def test_two_of_three_asymmetric_machines_exceed_the_printed_bound_and_not_the_repaired_one():
    machine = asymmetric()
    three = side_by_side(side_by_side(machine, machine), machine)
    found = exact(three, messages=_second_differs(3), rounds=6, relation=SecondDiffers(2), rational=True)
    assert found.bounds_at_growth(1) == (Fraction(607, 5082),) * 2
    delta, each = Fraction(1, 21), Fraction(1, 44)
    printed = delta + 1 - (1 - each) ** 3
    repaired = 1 - (1 - delta) * (1 - 2 * each) ** 3
    assert printed < Fraction(607, 5082) < repaired


@pytest.mark.parametrize("copies", [1, 2, 3])
def test_renyi_in_parallel_grows_as_the_corrected_construction_says(copies):
    """errata, Henzinger E13 at alpha = 2, with q = 9/10 and p = 1/8: log((1-p)^l + (1-(1-p)^l) M)."""
    p, q = Fraction(1, 8), Fraction(9, 10)
    response = (Outcome(q, 0), Outcome(1 - q, 1)), (Outcome(1 - q, 0), Outcome(q, 1))
    one = FiniteMechanism(
        ((_both(Outcome(p, "hot", 1), Outcome(1 - p, "cold", 2)),), (response,), (_both(Outcome(1, "cold")),))
    )
    several = one
    for _ in range(copies - 1):
        several = side_by_side(several, one)
    loss = exact(several, messages=_second_differs(copies), rounds=2 * copies, relation=SecondDiffers(1))
    moment = q**2 / (1 - q) + (1 - q) ** 2 / q
    cold = (1 - p) ** copies
    assert abs(loss.renyi_at(2) - math.log(cold + (1 - cold) * moment)) < 1e-12
