"""What a transcript has told, and what may still be told after it, against brute force over the tree."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from tests.verify.test_decomposition import random_mechanism

import counterpoint as cp
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.measures import TradeOff
from counterpoint.verify.exact_loss import exact
from counterpoint.verify.finite import FiniteMechanism, OpenDoor, Outcome, query_pairs

ROUNDS = 3


def probability(mechanism, history, bit):
    """The probability of the answers in a history, by summing over all sequences of states."""
    beliefs = dict(enumerate(mechanism.start_law))
    for query, answer in history:
        after: dict[int, Fraction] = {}
        for state, mass in beliefs.items():
            for outcome in mechanism.table[state][query][bit]:
                if outcome.answer == answer:
                    after[outcome.state] = after.get(outcome.state, Fraction(0)) + mass * outcome.probability
        beliefs = after
    return sum(beliefs.values(), Fraction(0))


@pytest.mark.parametrize("seed", range(8))
def test_the_realised_loss_is_the_log_of_the_likelihood_ratio_and_the_sum_of_its_steps(seed):
    mechanism = random_mechanism(np.random.default_rng(seed), answers=2, least=1)
    loss = exact(mechanism, messages=query_pairs(2), rounds=ROUNDS)
    for queries in itertools.product((0, 1), repeat=ROUNDS):
        for answers in itertools.product((0, 1), repeat=ROUNDS):
            history = list(zip(queries, answers, strict=True))
            zero, one = (probability(mechanism, history, bit) for bit in (0, 1))
            found = loss.realised(history)
            assert found.total == pytest.approx(math.log(zero / one), abs=1e-12)
            assert loss.realised(history, bit=1).total == pytest.approx(-found.total, abs=1e-12)
            before = [probability(mechanism, history[:2], bit) for bit in (0, 1)]
            assert found.conditional[2] == pytest.approx(math.log(zero / before[0] / (one / before[1])), abs=1e-12)


def test_an_answer_that_one_world_never_gives_is_infinitely_telling():
    loss = exact(cp.RandomizedResponse(1, "0.1"), rounds=1)
    assert loss.realised([(0, (True, 0))]).total == math.inf and loss.realised([(0, (True, 1))]).total == -math.inf
    assert loss.realised([]).total == 0


def test_a_transcript_that_is_not_in_the_tree_is_refused():
    loss = exact(OpenDoor("1/7"), rounds=2)
    for wrong in (
        [(5, "open")],
        [(0, "ajar")],
        [((cp.mechanisms.Ask(private=8), cp.mechanisms.Ask(private=9)), "open")],
    ):
        with pytest.raises(InvalidParameter):
            loss.realised(wrong)
    with pytest.raises(InvalidParameter, match="not in the tree"):
        exact(cp.RandomizedResponse(1, "0.1"), rounds=1).realised([(0, (True, 0)), (0, (True, 0))])


def conditioned(mechanism, history):
    """The mechanism as it is after a history, in either world: two tables in one, by the bit of the first ask."""
    starts = []
    for bit in (0, 1):
        beliefs = [Fraction(0)] * len(mechanism.table)
        for states in itertools.product(range(len(mechanism.table)), repeat=len(history)):
            mass, state = Fraction(1), 0
            for (query, answer), following in zip(history, states, strict=True):
                mass *= sum(
                    (
                        o.probability
                        for o in mechanism.table[state][query][bit]
                        if (o.answer, o.state) == (answer, following)
                    ),
                    Fraction(0),
                )
                state = following
            beliefs[state] += mass
        starts.append([mass / sum(beliefs) for mass in beliefs])
    return starts


def largest_divergence(mechanism, starts, alpha, rounds):
    """Over all adaptive adversaries, by recursion on the two beliefs."""

    def value(beliefs, left):
        masses = [sum(belief) for belief in beliefs]
        best = float(masses[0]) ** alpha * float(masses[1]) ** (1 - alpha)
        for query in range(len(mechanism.table[0])) if left else ():
            total = 0.0
            for answer in (0, 1):
                after = [[Fraction(0)] * len(mechanism.table) for _ in (0, 1)]
                for bit in (0, 1):
                    for state, mass in enumerate(beliefs[bit]):
                        for o in mechanism.table[state][query][bit]:
                            if o.answer == answer:
                                after[bit][o.state] += mass * o.probability
                total += value(after, left - 1)
            best = max(best, total)
        return best

    return math.log(value(starts, rounds)) / (alpha - 1)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_left_is_the_divergence_of_what_comes_after_the_transcript(seed):
    mechanism = random_mechanism(np.random.default_rng(seed), answers=2, least=1)
    loss = exact(mechanism, messages=query_pairs(2), rounds=ROUNDS)
    assert loss.renyi_left(2) == pytest.approx(loss.renyi_at(2), abs=1e-9)
    for history in ([(0, 0)], [(1, 1)], [(0, 1), (1, 0)]):
        zero, one = conditioned(mechanism, history)
        mirrored = FiniteMechanism(tuple(tuple((b, a) for a, b in row) for row in mechanism.table))
        ways = [
            largest_divergence(mechanism, [zero, one], 2.0, ROUNDS - len(history)),
            largest_divergence(mirrored, [one, zero], 2.0, ROUNDS - len(history)),
        ]
        assert loss.renyi_left(2, history) == pytest.approx(max(ways), abs=1e-9)


def test_what_is_left_never_grows_on_average():
    """Lyu 2022, Lemma 5: the sum of p^alpha q^(1-alpha) l^(alpha-1) over the answers is at most l^(alpha-1) before."""
    mechanism = cp.Laplace(2, asks=3, clamp=(0, 1))
    loss, alpha = exact(mechanism), 3.0
    for before in ([], [(0, 0)], [(1, 1), (0, 0)]):
        for move in (0, 1):
            total = 0.0
            for answer in (0, 1):
                step = loss.realised([*before, (move, answer)]).conditional[-1]
                total += _chance(mechanism, move, answer) * math.exp(
                    (alpha - 1) * (step + loss.renyi_left(alpha, [*before, (move, answer)]))
                )
            assert math.log(total) / (alpha - 1) <= loss.renyi_left(alpha, before) + 1e-9


def _chance(mechanism, move, answer):
    """The probability of an answer in world 0 of one ask."""
    law = cp.coins.EnumeratedCoins().law(
        lambda coins: mechanism.step(mechanism.start(coins), cp.mechanisms.Ask(private=move), coins)[1]
    )
    return float(dict(law)[answer])


def test_nothing_is_left_after_the_last_answer_and_a_cut_tree_has_no_answer():
    loss = exact(cp.Laplace(1, asks=2, clamp=(0, 1)))
    assert loss.renyi_left(2, [(0, 1), (1, 0)]) == 0
    with pytest.raises(NotCovered, match="truncated"):
        exact(cp.Laplace(1, asks=2)).renyi_left(2)


def test_the_approximate_divergence_of_a_mechanism_is_that_of_its_curve():
    exposing = exact(FiniteMechanism((((half("1/2"), half("9/10")),),)), messages=query_pairs(1), rounds=1)
    coin = TradeOff.between(["0.5", "0.5"], ["0.9", "0.1"])
    for delta in ("0.05", "0.2"):
        assert exposing.renyi_at(2, delta=delta) == coin.renyi_at(2, delta=delta) < exposing.renyi_at(2)
    door = exact(OpenDoor("1/7"), rounds=2)
    assert door.renyi_at(2) == math.inf and door.renyi_at(2, delta="1/7") == 0
    laplace = exact(cp.Laplace(1))
    assert laplace.renyi_at(2, delta="0.01") <= float(cp.PureDP(1).as_renyi(2).epsilon)


def half(chance):
    return Outcome(chance, 0), Outcome(1 - Fraction(chance), 1)
