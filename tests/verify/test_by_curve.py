"""Every f-DP system is one draw in disguise: Haney et al. 2023, Thm 1.24; Henzinger et al. 2024, Lemma 14.5."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.verify.test_decomposition import random_mechanism, simulated

import counterpoint as cp
from counterpoint.encoding import encode
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.measures import GaussianDP, PureDP, TradeOff, curves
from counterpoint.verify.automaton import TooLarge
from counterpoint.verify.curve_simulator import Remainder
from counterpoint.verify.decomposition import CurveTooHigh, decompose
from counterpoint.verify.exact_loss import exact
from counterpoint.verify.finite import LoudNumber, OpenDoor, query_pairs
from counterpoint.verify.induction import Regions, best, hockey_stick

NO_LOSS = TradeOff([(0, 1), (1, 0)])
ROUNDS = 3


def own_curve(mechanism, rounds=ROUNDS, **given):
    """The mechanism's exact curve, as the refusal of a higher one carries it."""
    with pytest.raises(CurveTooHigh) as refused:
        decompose(mechanism, curve=NO_LOSS, rounds=rounds, **given)
    return refused.value.curve


@pytest.mark.parametrize("seed", range(12))
def test_random_mechanisms_are_simulated_by_one_draw_of_their_own_curve(seed):
    rng = np.random.default_rng(seed)
    mechanism = random_mechanism(rng, answers=2 + seed % 2, least=seed % 2)
    curve = own_curve(mechanism, messages=query_pairs(2))
    made = decompose(mechanism, curve=curve, messages=query_pairs(2), rounds=ROUNDS)
    assert made.worlds.rational and made.check() == 0
    assert simulated(made, ROUNDS)


@pytest.mark.parametrize("seed", range(12))
def test_the_curve_in_a_refusal_is_that_of_the_best_adversaries(seed):
    """At every slope the recursion of Lyu 2022, eq. 19, finds the same."""
    mechanism = random_mechanism(np.random.default_rng(seed), answers=3)
    curve = own_curve(mechanism, messages=query_pairs(2))
    loss = exact(mechanism, messages=query_pairs(2), rounds=ROUNDS)
    for slope in (Fraction(1), Fraction(3, 2), Fraction(2), Fraction(5)):
        for bit in (0, 1):
            delta = best(loss.worlds, hockey_stick(slope, bit)).value
            pairs = [(p, q) if bit else (q, p) for p, q in curves.atoms(curve.vertices)]
            assert delta == sum(max(q - slope * p, Fraction(0)) for p, q in pairs)


def feasible(worlds, outcomes):
    """Whether weights with the conditions of the theorem exist, by linear programming over the whole tree."""
    columns: dict[tuple, int] = {}
    rows, values = [], []

    def visit(node, history, masses):
        own = [columns.setdefault((history, y), len(columns)) for y in range(len(outcomes))]
        for bit in (0, 1):
            rows.append({own[y]: float(pair[bit]) for y, pair in enumerate(outcomes)})
            values.append(float(masses[bit]))
        for move in node.moves:
            children = []
            for branch in move.branches:
                then = (*history, (move.number, encode(branch.answer)))
                visit(branch.node, then, (masses[0] * branch.p0, masses[1] * branch.p1))
                children.append(then)
            for y in range(len(outcomes)):
                rows.append({own[y]: -1.0} | {columns[then, y]: 1.0 for then in children})
                values.append(0.0)

    visit(worlds.root, (), (Fraction(1), Fraction(1)))
    matrix = np.zeros((len(rows), len(columns)))
    for number, row in enumerate(rows):
        matrix[number, list(row)] = list(row.values())
    return linprog(np.zeros(len(columns)), A_eq=matrix, b_eq=values, bounds=(0, 1)).status == 0


@pytest.mark.parametrize("seed", range(6))
def test_there_is_a_simulation_just_where_linear_programming_finds_one(seed):
    rng = np.random.default_rng(100 + seed)
    mechanism = random_mechanism(rng, answers=2, least=1)
    curve = own_curve(mechanism, rounds=2, messages=query_pairs(2))
    worlds = exact(mechanism, messages=query_pairs(2), rounds=2).worlds
    pulled = [(a, (1 - a) * Fraction(1, 20) + b * Fraction(19, 20)) for a, b in curve.vertices]
    higher = TradeOff([(Fraction(0), curve.vertices[0][1]), *pulled[1:]])
    for wanted in (curve, higher):
        try:
            decompose(mechanism, curve=wanted, messages=query_pairs(2), rounds=2)
            found = True
        except CurveTooHigh:
            found = False
        assert found == feasible(worlds, [pair for pair in curves.atoms(wanted.vertices) if any(pair)])
        assert found == curve.lies_above(wanted)


def test_a_lower_curve_will_do_as_well():
    mechanism = random_mechanism(np.random.default_rng(5), answers=2, least=1)
    own = own_curve(mechanism, messages=query_pairs(2))
    lower = own.tensor(TradeOff.between(["0.5", "0.5"], ["0.3", "0.7"]))
    made = decompose(mechanism, curve=lower, messages=query_pairs(2), rounds=ROUNDS)
    assert made.check() == 0 and simulated(made, ROUNDS)


@pytest.mark.parametrize(
    ("mechanism", "rounds"),
    [(OpenDoor("1/7"), 2), (LoudNumber("1/4"), 2), (cp.RandomizedResponse(0, "1/3"), 1)],
    ids=repr,
)
def test_shipped_examples_are_simulated_by_the_curve_of_their_claim(mechanism, rounds):
    made = decompose(mechanism, curve=mechanism.claim.loss, rounds=rounds)
    assert made.check() == 0 and simulated(made, rounds)


def test_a_clamped_laplace_is_one_randomized_response_and_less():
    mechanism = cp.Laplace(2, asks=2, clamp=(-1, 2))
    for curve in (PureDP(2), exact(mechanism).trade_off()):
        made = decompose(mechanism, curve=curve)
        assert not made.worlds.rational and made.check() < 1e-12
    with pytest.raises(CurveTooHigh) as refused:
        decompose(mechanism, curve=PureDP("1.9"))
    assert refused.value.curve is None and refused.value.adversary.rounds == 2
    with pytest.raises(CurveTooHigh):
        decompose(mechanism, curve=GaussianDP("0.5"))
    with pytest.raises(NotCovered, match="no finite quotient is known"):
        decompose(cp.Gaussian(rho=2), curve=PureDP(2))


def test_the_laws_of_the_simulator_are_shown_outcome_by_outcome():
    door = decompose(OpenDoor("1/7"), curve=TradeOff.of_approx(0, "1/7"), rounds=2)
    assert [str(p) for p, _ in door.outcomes] == ["0", "6/7", "1/7"]
    assert door.laws(1, after=[(0, "open")])[0] == {1: 1} and door.laws(1, after=[(0, "open")])[1] == {}
    for wrong, move in (([(0, "ajar")], 0), ([(0, "open"), (0, 0)], 0)):
        with pytest.raises(InvalidParameter):
            door.laws(move, after=wrong)


def test_curves_that_grow_too_long_are_refused():
    mechanism = random_mechanism(np.random.default_rng(5), answers=3, least=1)
    decompose(mechanism, curve=TradeOff([(0, 0), (1, 0)]), messages=query_pairs(2), rounds=3, limit=100_000)
    worlds = exact(mechanism, messages=query_pairs(2), rounds=3).worlds
    with pytest.raises(TooLarge, match="more than 500 numbers"):
        Regions(worlds, limit=500)


def test_a_curve_comes_alone_and_must_be_one():
    for given in ({"epsilon": 1}, {"growth": 2}, {"delta": "0.1"}, {"in_two_steps": True}):
        with pytest.raises(InvalidParameter, match="not both"):
            decompose(OpenDoor("1/7"), curve=NO_LOSS, rounds=2, **given)
    with pytest.raises(NotCovered, match="no conversion to TradeOff"):
        decompose(OpenDoor("1/7"), curve=cp.measures.ApproxzCDP(1, "0.1"), rounds=2)


@pytest.mark.parametrize("seed", range(20))
def test_shadows_turn_a_pair_into_every_pair_below_it(seed):
    """Any kernel makes such a pair; the shadows find one again, whatever the order of the targets."""
    rng = np.random.default_rng(seed)

    def law(size):
        weights = [int(rng.integers(0, 5)) for _ in range(size)]
        weights[int(rng.integers(size))] += 1
        return [Fraction(weight, sum(weights)) for weight in weights]

    first, second, kernel = law(4), law(4), [law(3) for _ in range(4)]
    targets = [
        tuple(sum(p * row[c] for p, row in zip(world, kernel, strict=True)) for world in (first, second))
        for c in range(3)
    ]
    for order in itertools.permutations(range(3)):
        left = Remainder(list(zip(first, second, strict=True)))
        shares = {c: left.take(targets[c]) for c in order}
        for c, target in enumerate(targets):
            made = tuple(sum(p * s for p, s in zip(world, shares[c], strict=True)) for world in (first, second))
            assert made == target
        taken = [sum(shares[c][y] for c in order) for y in range(4)]
        assert all(t == 1 for t, p, q in zip(taken, first, second, strict=True) if p + q)


@pytest.mark.long
def test_hundreds_of_random_systems_are_simulated_exactly_over_up_to_four_rounds():
    rng = np.random.default_rng(7)
    for _ in range(300):
        answers, rounds = [(2, 3), (3, 2), (3, 3), (2, 4)][int(rng.integers(4))]
        mechanism = random_mechanism(rng, answers=answers)
        try:
            made = decompose(mechanism, curve=NO_LOSS, messages=query_pairs(2), rounds=rounds)
        except CurveTooHigh as refused:
            made = decompose(mechanism, curve=refused.curve, messages=query_pairs(2), rounds=rounds)
        assert made.check() == 0
