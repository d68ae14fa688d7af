"""Trees over time: digits that name nodes, nodes that cover a prefix, and the best shape for a horizon."""

from collections import Counter as Multiset

from hypothesis import given
from hypothesis import strategies as st

from counterpoint.continual.digit_trees import Tree, best_tree, surviving

trees = st.sampled_from([Tree(3, 1), Tree(3, 4), Tree(5, 3), Tree(7, 2), Tree(13, 3), Tree(1, 1)])


def named(tree, time):
    """The nodes that a time names, as (sign, level, index), each level from its parent's start outward."""
    start = 0
    for level, digit in reversed(list(enumerate(tree.digits(time)))):
        width = tree.arity**level
        first = start // width
        yield from ((1, level, first + i) if digit > 0 else (-1, level, first - 1 - i) for i in range(abs(digit)))
        start += digit * width


@given(trees, st.data())
def test_the_named_nodes_cover_every_step_before_a_time_once_and_no_other_net(tree, data):
    time = data.draw(st.integers(0, tree.reach))
    covered: Multiset[int] = Multiset()
    for sign, level, index in named(tree, time):
        width = tree.arity**level
        covered.update(dict.fromkeys(range(index * width, (index + 1) * width), sign))
    assert {step for step, times in covered.items() if times} == set(range(time))
    assert all(times in (0, 1) for times in covered.values())


@given(trees, st.data())
def test_digits_are_balanced_and_spell_the_time(tree, data):
    time = data.draw(st.integers(0, tree.reach))
    digits = tree.digits(time)
    assert sum(digit * tree.arity**level for level, digit in enumerate(digits)) == time
    assert len(digits) == tree.height and all(abs(digit) <= tree.most for digit in digits)
    assert tree.nodes(time) == len(list(named(tree, time)))


@given(trees, st.data())
def test_the_most_nodes_up_to_a_horizon_are_found_without_trying_all_times(tree, data):
    horizon = data.draw(st.integers(0, tree.reach))
    assert tree.most_nodes(horizon) == max(tree.nodes(time) for time in range(horizon + 1))


@given(st.integers(1, 400))
def test_no_tree_of_any_arity_and_height_beats_the_best_one(horizon):
    best = best_tree(horizon).cost(horizon)
    assert best_tree(horizon).reach >= horizon
    every = (Tree(arity, height) for height in range(1, 8) for arity in range(3, 2 * horizon + 2, 2))
    assert best == min(tree.cost(horizon) for tree in every if tree.reach >= horizon)


def test_the_best_tree_is_found_at_once_for_any_horizon_and_stays_narrow():
    assert best_tree(2**62).arity < 60 and best_tree(10**300).reach >= 10**300


@given(trees, st.data())
def test_what_survives_is_what_both_times_name_and_nothing_that_is_dropped_is_named_again(tree, data):
    before = data.draw(st.integers(0, tree.reach))
    now = data.draw(st.integers(before, tree.reach))
    listed = list(named(tree, before))
    kept = surviving(tree.digits(before), tree.digits(now))
    stay = {node for level in range(tree.height) for node in [n for n in listed if n[1] == level][: kept[level]]}
    assert stay == set(listed) & set(named(tree, now)) and len(stay) == sum(kept)
    later = data.draw(st.integers(now, tree.reach))
    assert set(listed) & set(named(tree, later)) <= stay
