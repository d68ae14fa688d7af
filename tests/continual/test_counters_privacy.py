"""The counter's privacy, exactly: the joint law of its answers in neighbouring worlds, on trees small enough for that.

With epsilon = 6 and two levels a node's noise has scale 1/3, so a handful of outcomes carries all but the cut mass.
"""

from fractions import Fraction
from itertools import product

import pytest
from tests.continual.digit_trees import ScalarDigitTree

from counterpoint.coins.enumerated import EnumeratedCoins
from counterpoint.continual import counter as counters
from counterpoint.continual import digit_trees as tree_noise
from counterpoint.continual.digit_trees import Tree
from counterpoint.mechanisms.interaction import Analyst, interact
from counterpoint.privacy.messages import Ask, Update
from counterpoint.verify.catalogue.mechanisms import Resized

E6 = Fraction("403.4287934927351227")  # e^6, rounded up
NEARLY_E6 = E6 * (1 - Fraction(1, 10**9))
TERNARY = Tree(3, 2)


@pytest.fixture
def two_levels(monkeypatch):
    """Counters on a tree of two levels, for times up to 4."""
    monkeypatch.setattr(tree_noise, "best_tree", lambda horizon: TERNARY)


@pytest.fixture
def short_epochs(monkeypatch):
    """Epochs of 2 and of 4 steps, the second on a tree of two levels."""
    monkeypatch.setattr(tree_noise, "FIRST_EPOCH", 2)
    monkeypatch.setattr(tree_noise, "GROWTH", 2)
    monkeypatch.setattr(tree_noise, "best_tree", lambda horizon: Tree(3, 1) if horizon < 2 else TERNARY)


def answers(counter, items, times, coins):
    state, said = counter.start(coins), []
    for time, item in enumerate(items, start=1):
        state, _ = counter.step(state, Update(item), coins)
        for _ in range(times.count(time)):
            state, answer = counter.step(state, Ask(), coins)
            said.append(answer)
    return tuple(said)


def law(counter, items, times, cut):
    return EnumeratedCoins(cut).law(lambda coins: answers(counter, items, times, coins))


def neighbours(items):
    for place, item in enumerate(items):
        yield (*items[:place], 1 - item, *items[place + 1 :])


def largest_ratio(left, right):
    """Over the outcomes that both worlds have above the cut."""
    here, there = dict(left), dict(right)
    return max(here[said] / there[said] for said in here.keys() & there.keys())


def is_private(left, right, bound=E6):
    """Whether no outcome's odds exceed the bound, even if all cut mass were to fall on it."""
    there, slack = dict(right), right.cut + right.error
    return all(chance <= bound * (there.get(said, 0) + slack) for said, chance in left)


def test_asked_at_every_time_no_answers_are_likelier_than_allowed_and_some_are_as_likely(two_levels):
    # four answers of four nodes: one outcome of the noises for each of the answers, so the cut moves no probability
    laws = {
        items: law(ScalarDigitTree(6, horizon=4), items, (1, 2, 3, 4), "1e-3") for items in product((0, 1), repeat=4)
    }
    ratios = {(a, b): largest_ratio(laws[a], laws[b]) for a in laws for b in neighbours(a)}
    assert all(ratio <= E6 for ratio in ratios.values())
    used_up = {b for (a, b), ratio in ratios.items() if a == (0, 0, 0, 0) and ratio > NEARLY_E6}
    assert used_up == {(1, 0, 0, 0), (0, 0, 1, 0)}, "no answer up to 4 names both nodes above another step"


@pytest.mark.parametrize("times", [(1,), (2,), (4,), (2, 2), (1, 3), (2, 3), (2, 4), (3, 4)])
def test_asked_at_some_times_or_twice_no_answers_are_likelier_than_allowed(two_levels, times):
    for items in [(0, 0, 0, 0), (1, 0, 1, 1)]:
        one = law(ScalarDigitTree(6, horizon=4), items, times, "1e-6")
        for other in neighbours(items):
            two = law(ScalarDigitTree(6, horizon=4), other, times, "1e-6")
            assert is_private(one, two) and is_private(two, one)


def test_larger_items_are_as_private_as_small_ones_and_stray_ones_are_brought_near(two_levels):
    counter = ScalarDigitTree(6, horizon=4, bound=2)
    laws = {items: law(counter, (*items, 0), (1, 3), "1e-6") for items in product((-1, 0, 1, 2, 7), repeat=2)}
    pairs = [(a, b) for a in laws for b in laws if a[0] == b[0] or a[1] == b[1]]
    assert all(largest_ratio(laws[a], laws[b]) <= E6 for a, b in pairs)
    assert largest_ratio(laws[0, 0], laws[7, 0]) > NEARLY_E6
    assert dict(laws[-1, 0]) == dict(laws[0, 0]) and dict(laws[7, 1]) == dict(laws[2, 1])


def test_two_items_of_a_unit_together_change_no_odds_by_more_than_allowed(two_levels):
    counter = ScalarDigitTree(6, horizon=4, per_unit=2)
    laws = {items: law(counter, items, (1, 3), "1e-4") for items in product((0, 1), repeat=3)}
    ratios = {(a, b): largest_ratio(laws[a], laws[b]) for a in laws for b in laws if sum(map(int.__ne__, a, b)) <= 2}
    assert max(ratios.values()) <= E6 and ratios[(0, 0, 0), (1, 0, 1)] > NEARLY_E6 / 100
    alone = [law(ScalarDigitTree(6, horizon=4), items, (1, 3), "1e-4") for items in [(0, 0, 0), (1, 0, 1)]]
    assert largest_ratio(*alone) > 2 * E6, "noise for one item does not do for two"


def test_across_epochs_no_answers_are_likelier_than_allowed_and_some_are_as_likely(short_epochs):
    laws = {items: law(ScalarDigitTree(6), items, (1, 2, 3), "1e-3") for items in product((0, 1), repeat=3)}
    ratios = {(a, b): largest_ratio(laws[a], laws[b]) for a in laws for b in neighbours(a)}
    assert all(ratio <= E6 for ratio in ratios.values())
    assert ratios[(0, 0, 0), (1, 0, 0)] > NEARLY_E6, "its tree and its total together"


def test_across_epochs_larger_items_are_as_private(short_epochs):
    laws = [law(ScalarDigitTree(6, bound=2), (item, 0), (1, 2), "1e-3") for item in (0, 1, 2)]
    assert all(largest_ratio(one, two) <= E6 for one in laws for two in laws)
    assert largest_ratio(laws[0], laws[2]) > NEARLY_E6


class Adaptive(Analyst):
    """Sends an item and asks, in turn; items depend on the last answer, and the one at `place` is flipped or not."""

    def __init__(self, place, flip, rounds):
        self.place, self.flip, self.rounds = place, flip, rounds

    def start(self):
        return 0, 0

    def turn(self, own, answer, coins):
        turns, heard = own
        if turns % 2 == 1:
            return (turns + 1, heard), Ask()
        heard = heard if answer is None else answer
        if turns == 2 * self.rounds:
            return own, None
        item = int(heard % 3 == 1) ^ int(self.flip and turns == 2 * self.place)
        return (turns + 1, heard), Update(item)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_inputs_that_depend_on_earlier_answers_learn_no_more(two_levels, place):
    counter = ScalarDigitTree(6, horizon=4)
    one, two = (
        EnumeratedCoins("1e-3").law(lambda coins, flip=flip: interact(Adaptive(place, flip, 3), counter, coins).answers)
        for flip in (False, True)
    )
    assert len(one) > 100 and max(largest_ratio(one, two), largest_ratio(two, one)) <= E6
    assert place == 1 or largest_ratio(one, two) > NEARLY_E6


class Forgetful:
    """A wrong counter: it draws its noise anew at every ask."""

    def __init__(self, counter):
        self.counter, self.start = counter, counter.start

    def step(self, state, message, coins):
        fresh = counters.CounterState(state.items, state.total, self.counter.noise.start())
        return self.counter.step(fresh, message, coins)


def test_a_counter_that_draws_its_noise_anew_is_caught(two_levels):
    wrong = Forgetful(ScalarDigitTree(6, horizon=4))
    one, two = (law(wrong, items, (3, 3, 3), "1e-6") for items in [(0, 0, 0), (1, 0, 0)])
    assert not is_private(one, two)


def test_noise_that_does_not_grow_with_the_height_is_caught(two_levels, monkeypatch):
    monkeypatch.setattr(tree_noise.DigitTreeNoise, "node_scale", lambda self, tree: self.reach / self.epsilon)
    one, two = (law(ScalarDigitTree(6, horizon=4), items, (1, 3), "1e-9") for items in [(0, 0, 0), (1, 0, 0)])
    assert largest_ratio(one, two) > 2 * E6


def test_totals_that_are_not_paid_for_are_caught(short_epochs, monkeypatch):
    monkeypatch.setattr(
        tree_noise.DigitTreeNoise, "node_scale", lambda self, tree: tree.height * self.reach / self.epsilon
    )
    one, two = (law(ScalarDigitTree(6), items, (1, 2), "1e-6") for items in [(0, 0), (1, 0)])
    assert largest_ratio(one, two) > 2 * E6


# ---------------------------------------------------------------------------------------- weighted by least squares


@pytest.mark.parametrize("counter", [Resized(12, horizon=3, tree=(2, 2)), Resized(12, tree=(2, 1))])
@pytest.mark.parametrize("times", [(2,), (1, 2)])
def test_weighted_answers_at_two_times_are_no_likelier_than_allowed(counter, times):
    """Noises beyond 1 are cut: 2 e^-12 of each draw and less."""
    one, two = (law(counter, items, times, "1e-4") for items in [(0, 0), (1, 0)])
    assert is_private(one, two, E6**2) and is_private(two, one, E6**2)
    assert not is_private(one, two, E6) or counter.horizon is not None
