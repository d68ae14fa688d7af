"""Histograms and heavy hitters: right up to their stated deviation, private by enumeration, one answer each."""

from fractions import Fraction

import numpy as np
import pytest
from tests.local.coins import law

from counterpoint.coins.enumerated import EnumeratedCoins
from counterpoint.coins.secure import SeededCoins
from counterpoint.errors import InvalidParameter
from counterpoint.local.designs import Subsets
from counterpoint.local.frequencies import Growing, heavy_hitters, histogram_of_users
from counterpoint.local.properties import AtMost, Data
from counterpoint.local.protocol import Protocol
from counterpoint.local.responders import Among, BlockResponders, Membership, Which
from counterpoint.measures import PureDP
from counterpoint.numbers import precision
from counterpoint.privacy.messages import Ask
from counterpoint.privacy.relations import FirstMessage, first_pair_consistent


@pytest.mark.statistical
def test_a_histogram_is_right_up_to_its_deviation():
    # The ones told about a category are a sum of 20,000 independent bits. 7.5 deviations are 514 of them, which is
    # exceeded with chance at most 2 exp(-2 * 514^2 / 20000) < 7e-12 (Hoeffding); there are four categories.
    values = ["a"] * 9000 + ["b"] * 6000 + ["c"] * 4000 + ["elsewhere"] * 1000
    found = histogram_of_users(values, 1, ["a", "b", "c", "d"], coins=SeededCoins(3))
    for name, true in (("a", 9000), ("b", 6000), ("c", 4000), ("d", 0)):
        assert abs(found[name].count - true) <= 7.5 * found[name].deviation
    assert found.loss == PureDP(1) and found.rounds == 1 and found.certificate().rests_on("Cor 8.8")
    with pytest.raises(KeyError):
        found["elsewhere"]


def test_with_hardly_any_noise_a_histogram_counts():
    found = histogram_of_users([3, 1, 3, 3], 200, [1, 2, 3], coins=SeededCoins(1))
    assert [round(row.count) for row in found.rows] == [1, 0, 3]
    assert [round(row.count) for row in histogram_of_users([], 1, ["x"]).rows] == [0]


def test_values_that_are_no_category_count_nowhere_or_if_there_are_no_others_as_the_last_one():
    values = [1] * 3 + [2] * 2 + ["else"] * 4
    assert [round(row.count) for row in histogram_of_users(values, 200, [1, 2], coins=SeededCoins(1)).rows] == [3, 2]
    closed = histogram_of_users(values, 200, [1, 2], others=False, coins=SeededCoins(1))
    assert [round(row.count) for row in closed.rows] == [3, 6] and closed.bits == 1
    assert [round(row.count) for row in histogram_of_users([7] * 3, 200, [7], others=False).rows] == [3]


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon, categories, others", [(1, 3, True), (1, 3, False), (1, 40, True), (1, 3000, True)])
def test_histograms_of_every_design_are_right_up_to_their_deviation(epsilon, categories, others):
    # Each count is a sum of 20,000 independent bits; eight of its deviations are exceeded with chance below 1e-13
    # (Bernstein: 2 exp(-64 / (2 + 16/(3 s))) with s > 60 standard deviations of the sum); 3000 categories at most.
    values = [0] * 12000 + [1] * 7000 + [2] * 1000
    found = histogram_of_users(values, epsilon, range(categories), others=others, coins=SeededCoins(6))
    true = np.bincount(values, minlength=categories)
    assert all(abs(row.count - have) <= 8 * row.deviation for row, have in zip(found.rows, true, strict=True))


@pytest.mark.parametrize("categories", [[], ["a", "a"]])
def test_categories_are_different_and_there_is_one(categories):
    with pytest.raises(InvalidParameter):
        histogram_of_users(["a"], 1, categories)


def test_heavy_hitters_are_found_among_very_many_values():
    rare = (np.arange(20000) * 2654435761) % 2**20
    values = np.concatenate([np.full(9000, 0xABCDE), np.full(7000, 0xAB000), np.full(6000, 0x12345), rare])
    found = heavy_hitters(values, 4, bits=20, step=4, coins=SeededCoins(1), server_coins=SeededCoins(2))
    assert {row.value for row in found.rows} == {0xABCDE, 0xAB000, 0x12345}
    assert found.rows[0].value == 0xABCDE and found.rounds == 5 and found.loss == PureDP(4)


@pytest.mark.statistical
def test_heavy_hitters_are_right_up_to_their_deviation_even_where_there_is_hardly_any_noise():
    # Half of 20,000 users have the value; 10,000 random ones are asked at its level. Ten deviations are 353 of them,
    # which is exceeded with chance at most 2 exp(-2 * 353^2 / 10000) < 4e-11 (Hoeffding, without replacement).
    found = heavy_hitters([9] * 10000 + [2] * 10000, 200, 4, coins=SeededCoins(1), server_coins=SeededCoins(2))
    for row in found.rows:
        assert 0 < abs(row.count - 10000) <= 10 * row.deviation and 70 < row.deviation < 71.5
    assert heavy_hitters([9] * 5000, 200, 4, coins=SeededCoins(1))[9].deviation < 1e-3, "all have it, whoever is asked"


def test_next_to_no_epsilon_gives_a_huge_deviation_and_no_error():
    (row,) = histogram_of_users([1] * 9, "1e-20", [1], coins=SeededCoins(1)).rows
    assert row.deviation > 1e19


@pytest.mark.parametrize("wide", [2**62, 2**63, 2**64, 2**200, -(2**200)])
def test_a_value_too_wide_for_an_array_is_brought_to_the_nearest_like_any_other(wide):
    """Were it refused, that one user's value would show."""
    nearest = min(max(wide, 0), 15)
    found = [
        heavy_hitters([value, *[5] * 99, -1], 200, 4, coins=SeededCoins(1), server_coins=SeededCoins(2))
        for value in (wide, nearest)
    ]
    assert found[0].rows == found[1].rows
    with pytest.raises(InvalidParameter):
        heavy_hitters([wide, 0.5], 1, 4)


@pytest.mark.parametrize("bad", [[True, False], [1.0, 2.0], [[1], [1, 2]], [[1, 2]], ["1"], [None]])
def test_values_that_are_no_integers_are_refused(bad):
    with pytest.raises(InvalidParameter):
        heavy_hitters(bad, 1, 4)


def test_heavy_hitters_end_early_where_nothing_is_frequent():
    found = heavy_hitters(np.arange(64), "0.1", bits=6, threshold=50, coins=SeededCoins(1))
    assert found.rows == () and found.rounds == 1
    assert heavy_hitters([], 1, bits=4, coins=SeededCoins(1)).rows == ()


def test_the_growing_server_asks_everybody_at_most_once_and_refines_what_it_heard():
    values = [9] * 600 + [2] * 500
    crowd = BlockResponders(30, bits=4)
    protocol = Protocol(Growing(crowd.user, 1100), crowd, first_pair_consistent(1, FirstMessage()), AtMost(1))
    outcome = protocol.run(np.array(values), SeededCoins(1))
    (first, _), (second, _) = outcome.view.rounds
    assert not set(first.to.tolist()) & set(second.to.tolist()) and len(first.to) + len(second.to) == 1100
    assert first.query == Which(Subsets(5, 1), 2, (0, 1, 2, 3))
    assert sorted(second.query.candidates) == [0, 1, 2, 3, 8, 9, 10, 11]
    rows, bits = outcome.result
    assert [value for value, _, _ in rows] == [9, 2] and bits == 4


@pytest.mark.parametrize(
    "change", [{"epsilon": 0}, {"bits": 0}, {"bits": 63}, {"step": 0}, {"step": 13}, {"most": 0}, {"threshold": 0}]
)
def test_bad_parameters_are_refused(change):
    with pytest.raises(InvalidParameter):
        heavy_hitters([1, 2], **{"epsilon": 1, "bits": 4, **change})


@pytest.mark.parametrize("query", [Among(2, (0, 1, 2, 3)), Among(1, (0, 1)), Among(2, (3, 0)), Among(2, (2,))])
def test_one_answer_is_within_its_claim_for_every_two_values(query):
    user = Membership(1, bits=2)
    laws = [law(lambda coins, value=value: answer(user, value, query, coins)) for value in range(4)]
    worst = max(p / there[said] for here in laws for there in laws for said, p in here.items())
    claimed = Fraction(precision(30)(1).exp().upper)
    assert worst <= claimed * (1 + Fraction(1, 10**30))  # chances are known to 40 places
    assert len(query.candidates) == 1 or worst > claimed * Fraction(999, 1000), "and the claim is tight"


def answer(user, value, query, coins):
    state, _ = user.step(user.start(coins), Ask(Data(), value), coins)
    return user.step(state, Ask(query), coins)[1]


def test_the_chance_of_a_true_bit_is_that_of_randomized_response():
    told = EnumeratedCoins(cut="1e-12").law(answer, Membership(2, bits=1), 1, Among(1, (1,)))
    assert abs(float(dict(told)[(1,)]) - Membership(2, bits=1).truth) < 1e-9
    assert abs(Membership(2, bits=1).truth - 0.7310585786300049) < 1e-15
