"""Block designs: exactly private, exactly uniform, counted right, and as good as the best formula."""

from fractions import Fraction
from itertools import combinations, product
from math import exp, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.coins.enumerated import EnumeratedCoins
from counterpoint.coins.secure import SeededCoins
from counterpoint.coins.tape import RecordingCoins, ReplayedCoins
from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.local import designs
from counterpoint.local.designs import MOST_SYMBOLS, Affine, Design, Subsets, best
from counterpoint.local.properties import Asked, AtMost, Data
from counterpoint.local.protocol import Done, Protocol, Server
from counterpoint.local.responders import BlockResponders, BlockResponse, Which
from counterpoint.local.users import Round
from counterpoint.numbers import precision
from counterpoint.privacy.messages import Ask
from counterpoint.privacy.relations import FirstMessage, first_pair_consistent

SMALL = [Subsets(2, 1), Subsets(4, 1), Subsets(5, 2), Subsets(5, 3), Affine(4, 2, 1), Affine(5, 5, 2), Affine(4, 3, 2)]


def contains(design, block, symbol):
    if isinstance(design, Subsets):
        return symbol in block
    *u, b = block
    digits = [symbol // design.field**n % design.field for n in reversed(range(design.dimensions))]
    return (sum(x * y for x, y in zip(u, digits, strict=True)) + b) % design.field < design.size


def answered(design, epsilon, symbol, coins):
    user = BlockResponse(epsilon, bits=3)
    state, _ = user.step(user.start(coins), Ask(Data(), symbol), coins)
    return user.step(state, Ask(Which(design, 3, design.symbols)), coins)[1]


def laws(design, epsilon):
    return [dict(EnumeratedCoins().law(answered, design, epsilon, symbol)) for symbol in range(design.symbols)]


@pytest.mark.parametrize("design", SMALL, ids=repr)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
def test_an_answer_is_private_to_the_last_digit_and_hardly_more(design, epsilon):
    """All chances are rational, so the worst ratio is computed exactly and compared with e^epsilon."""
    found = laws(design, epsilon)
    assert all(sum(law.values()) == 1 and law.keys() == found[0].keys() for law in found)
    worst = max(p / other[block] for law in found for other in found for block, p in law.items())
    most = precision(80)(epsilon).exp()
    assert worst <= Fraction(most.lower) and worst > Fraction(most.upper) * (1 - Fraction(1, 10**30))


@pytest.mark.parametrize("design", SMALL, ids=repr)
def test_blocks_are_uniform_and_contain_symbols_as_often_as_stated(design):
    """The formulas of variance and estimate, exactly: p, q, and two values of P[block | symbol] in all."""
    true, false = design.truth(Fraction(1)), design.falsehood(Fraction(1))
    for symbol, law in enumerate(laws(design, Fraction(1))):
        assert len({(p, contains(design, block, symbol)) for block, p in law.items()}) == 2
        for other in range(design.symbols):
            inside = sum(p for block, p in law.items() if contains(design, block, other))
            assert inside == (true if other == symbol else false)


def test_the_shares_of_a_design_are_those_of_its_blocks():
    for design in SMALL:
        blocks = laws(design, Fraction(1))[0]
        for x, y in product(range(design.symbols), repeat=2):
            both = Fraction(sum(contains(design, b, x) and contains(design, b, y) for b in blocks), len(blocks))
            assert both == (design.share if x == y else design.together)


def test_subsets_are_all_sets_in_order():
    assert set(laws(Subsets(5, 3), Fraction(1))[2]) == set(combinations(range(5), 3))


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([(2, 1), (3, 1), (3, 2), (5, 2), (7, 3), (31, 4)]),
    st.integers(2, 200),
    st.integers(0, 50),
    st.integers(0, 10**6),
    st.sampled_from([8, 1000, 2**22]),
)
def test_affine_blocks_are_counted_by_digits_as_one_by_one(sizes, symbols, users, seed, table):
    design, coins = Affine(symbols, *sizes), SeededCoins(seed)
    blocks = design.draw(coins.integer(symbols, size=users), coins.bernoulli("1/2", size=users), coins)
    expected = [sum(contains(design, block, x) for block in blocks.tolist()) for x in range(symbols - 1)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(designs, "_TABLE", table)
        assert design.counts(blocks, symbols - 1).tolist() == expected


def formulas(epsilon, k):
    """The variances of the literature, in floats: unary (symmetric, optimised), k-ary, subsets of every size."""
    e = exp(epsilon)
    yield sqrt(e) / (sqrt(e) - 1) ** 2
    yield 4 * e / (e - 1) ** 2
    yield (e + k - 2) / (e - 1) ** 2
    for d in range(1, min(k, 3000)) if k <= 3000 else {max(1, int(k / (e + 1)) + more) for more in range(-3, 4)}:
        p = e * d / (e * d + k - d)
        q = (p * (d - 1) + (1 - p) * d) / (k - 1)
        yield q * (1 - q) / (p - q) ** 2


@pytest.mark.parametrize("k", [2, 3, 4, 7, 16, 60, 150, 1000, 30000, 10**6])
def test_the_chosen_design_is_within_a_fiftieth_of_the_best_formula(k):
    for epsilon in ("0.1", "0.35", "1", "2.2", "4", "6"):
        least = min(formulas(float(epsilon), k))
        assert 0.999 * least < best(Fraction(epsilon), k).variance(Fraction(epsilon)) <= 1.02 * least


def test_many_symbols_take_few_bits():
    assert best(Fraction(1), 10**6).bits <= 32 and best(Fraction(6), 10**6).bits <= 32
    assert Subsets(100, 50).bits == 100 and Subsets(100, 1).bits == 7


class AskOnce(Server):
    def __init__(self, query):
        self.query = query

    def start(self):
        return None

    def turn(self, own, answers, coins):
        if answers is None:
            return own, Round((0, 1, 2, 4), self.query)
        return own, Done([tuple(int(part) for part in answer) for answer in answers])


@pytest.mark.parametrize("design", [Subsets(4, 1), Subsets(5, 2), Affine(5, 3, 1)], ids=repr)
def test_a_crowd_answers_as_its_users_do_one_by_one(design):
    still = first_pair_consistent(1, FirstMessage())
    for query in (Which(design, 2, 4), Which(design, 3, (7, 0, 5, 2))):
        users = [BlockResponse(1, bits=3)] * 5
        outcomes = [
            Protocol(AskOnce(query), population, still, AtMost(1)).run([0, 7, 2, 3, 5], SeededCoins(8)).result
            for population in (users, BlockResponders(1, bits=3))
        ]
        assert outcomes[0] == outcomes[1] and len(outcomes[0]) == 4


@pytest.mark.parametrize("design", SMALL, ids=repr)
def test_two_worlds_toss_the_same_coins(design):
    recording = RecordingCoins(SeededCoins(3))
    answered(design, Fraction(1), 0, recording)
    replay = ReplayedCoins(recording.tape)
    answered(design, Fraction(1), 6, replay)
    assert replay.finished


def test_a_prefix_finds_its_place_among_the_candidates():
    listed = Which(Subsets(5, 1), 3, (6, 0, 3))
    assert listed.symbols(np.array([0, 3, 6, 1, 7, -1])).tolist() == [1, 2, 0, 3, 3, 3]
    assert Which(Subsets(3, 1), 3, (6, 0, 3)).symbols(np.array([6, 5])).tolist() == [0, 2], "no symbol to spare"
    assert Which(Subsets(9, 1), 3, 4).symbols(np.array([0, 3, 4, 7, -1])).tolist() == [0, 3, 4, 4, 4]


@pytest.mark.parametrize(
    "query",
    [
        Which(Subsets(3, 1), 3, 4),
        Which(Subsets(3, 1), 4, 2),
        Which(Subsets(3, 1), 0, 1),
        Which(Subsets(3, 1), 1, 3),
        Which(Subsets(3, 1), 3, 0),
        Which(Subsets(3, 1), 3, ()),
        Which(Subsets(3, 1), 3, (1, 1)),
        Which(Subsets(3, 1), 3, (8,)),
        Which(Subsets(3, 1), 3, True),
        Which("all", 3, 2),
        Which(Subsets(3, 1), "3", 2),
        "how many?",
    ],
    ids=repr,
)
def test_queries_that_make_no_sense_are_refused(query):
    assert not BlockResponse(1, bits=3).accepts(Ask(query))
    present = BlockResponders(1, bits=3).meet([1, 2], SeededCoins(1))
    with pytest.raises(InvalidRequest):
        present.answer(Round((0,), query), SeededCoins(1))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Subsets(3, 3),
        lambda: Subsets(MOST_SYMBOLS + 1, 1),
        lambda: Affine(9, 4, 1),
        lambda: Affine(9, 3, 3),
        lambda: Affine(9, 2053, 1),
        lambda: BlockResponse("1e-25", bits=3),
        lambda: BlockResponse(1, bits=63),
    ],
)
def test_designs_and_users_that_cannot_be_are_refused(make):
    with pytest.raises(InvalidParameter):
        make()


def test_the_claim_is_for_users_that_are_asked_once():
    relation = BlockResponse(1, bits=3).claim.relation
    assert isinstance(relation, Asked) and relation.allowed == AtMost(1)


def test_rounding_never_makes_an_answer_say_less_than_nothing():
    least = designs.LEAST_EPSILON
    for design in (Subsets(MOST_SYMBOLS, 1), Subsets(MOST_SYMBOLS, MOST_SYMBOLS - 1), Affine(9, 2039, 1)):
        assert isinstance(design, Design) and design.truth(least) > design.share
    assert Subsets(3, 1).truth(Fraction(10**4)) < 1
