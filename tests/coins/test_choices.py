"""One-sided noise and choices: the secure sampler, the enumeration and the formula agree; bad lags are refused."""

from collections import Counter
from fractions import Fraction
from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from counterpoint.coins.bernoulli import place
from counterpoint.coins.enumerated import EnumeratedCoins
from counterpoint.coins.keystream import Keystream
from counterpoint.coins.secure import SeededCoins
from counterpoint.coins.tape import RecordingCoins, ReplayedCoins
from counterpoint.errors import InvalidParameter

DRAWS = 20_000


def statistic(seen, chances):
    return sum((seen[k] - DRAWS * p) ** 2 / (DRAWS * p) for k, p in chances.items()), chi2.isf(1e-10, len(chances) - 1)


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3)])
def test_one_sided_noise_has_its_law(scale):
    """False alarm 1e-10."""
    q = exp(-1 / scale)
    most = int(5 * scale) + 1
    seen = Counter(min(int(k), most) for k in SeededCoins(3).geometric(scale, DRAWS))
    chances = {k: (1 - q) * q**k for k in range(most)} | {most: q**most}
    found, limit = statistic(seen, chances)
    assert found < limit


@pytest.mark.statistical
def test_a_choice_has_its_law():
    """False alarm 1e-10."""
    lags, coins = [Fraction(1), Fraction(0), Fraction(5, 2), Fraction(0)], SeededCoins(4)
    weights = [exp(-float(lag)) for lag in lags]
    seen = Counter(coins.choose(lags) for _ in range(DRAWS))
    found, limit = statistic(seen, {i: w / sum(weights) for i, w in enumerate(weights)})
    assert found < limit


@given(st.lists(st.fractions(0, 9, max_denominator=9), min_size=1, max_size=5))
def test_an_enumerated_choice_has_its_law_and_shifting_all_lags_changes_nothing(lags):
    law = EnumeratedCoins().law(lambda coins: coins.choose(lags))
    weights = [exp(-float(lag)) for lag in lags]
    assert [float(p) for _, p in law] == pytest.approx([w / sum(weights) for w in weights])
    moved = EnumeratedCoins().law(lambda coins: coins.choose([lag + 7 for lag in lags]))
    assert moved.outcomes == law.outcomes and law.error < Fraction(1, 10**50)


def test_enumerated_one_sided_noise_has_its_law_up_to_the_cut():
    law = EnumeratedCoins("1e-6").law(lambda coins: coins.geometric(2))
    assert 0 < law.cut <= Fraction(1, 10**6)
    assert [float(p) for _, p in law][:3] == pytest.approx([(1 - exp(-0.5)) * exp(-k / 2) for k in range(3)])


class Words:
    """A keystream that spells given words, then zeros."""

    def __init__(self, *words):
        self.words = list(words)

    def bits(self, width):
        return self.words.pop(0) if self.words else 0


def test_a_number_on_the_edge_of_two_shares_waits_for_more_digits():
    lags = [Fraction(0), Fraction(1)]
    share = int(2**200 / (1 + Fraction(exp(-1))))  # the end of the first share, right to about 50 bits
    edge = share >> 136
    words = Words(edge - 2**20)
    assert place(lags, words) == 0 and place(lags, Words(edge + 2**20)) == 1
    half = 2**63
    assert place([Fraction(0)] * 2, Words(half - 1)) == 0 and place([Fraction(0)] * 2, Words(half)) == 1
    third = 2**64 // 3  # the end of the first of three equal shares lies within this word
    assert place([Fraction(0)] * 3, Words(third, 0)) == 0 and place([Fraction(0)] * 3, Words(third, 2**64 - 1)) == 1


def test_hopeless_candidates_are_never_chosen_and_cost_no_overflow():
    lags = [Fraction(2**90), Fraction(0), Fraction(10**300)]
    assert {place(lags, Keystream(bytes([i]) * 32)) for i in range(20)} == {1}


def test_tapes_replay_choices_and_show_no_lags():
    recording = RecordingCoins(SeededCoins(1))
    said = recording.choose([Fraction(1, 7), 0]), int(recording.geometric(3))
    replay = ReplayedCoins(recording.tape)
    assert (replay.choose([0, 5]), replay.geometric(3)) == said and replay.finished
    assert "7" not in repr(recording.tape[0])


@pytest.mark.parametrize("bad", [[], [float("nan")], ["x"], [True]])
def test_bad_lags_are_refused(bad):
    with pytest.raises(InvalidParameter):
        SeededCoins(1).choose(bad)
    with pytest.raises(InvalidParameter):
        EnumeratedCoins().law(lambda coins: coins.choose(bad))
