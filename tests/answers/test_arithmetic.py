"""Arithmetic with answers: the result knows how far off it can be when each answer is off by at most its error."""

import copy
import pickle
from fractions import Fraction
from itertools import product
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from tests.session.asked import session

import counterpoint as cp
from counterpoint.answers.arithmetic import AnswerTerm, Linear, Ratio, added, divided, joint_errors, multiplied
from counterpoint.answers.provenance import Provenance
from counterpoint.queries.request import PreparedQuery

COUNT = PreparedQuery(None, 1, 1, None, Fraction(1))


def measured(value):
    """A count of this value, from a release of its own."""
    return AnswerTerm(Fraction(value), Provenance(cp.Laplace(1), COUNT, value))


small = st.integers(-40, 40)
errors_of_three = st.tuples(*[st.integers(0, 15)] * 3)


def formulas(leaves):
    """Formulas of these answers and constants, by all four operations."""
    atoms = st.sampled_from([Linear(Fraction(0), {leaf: Fraction(1)}) for leaf in leaves]) | small.map(
        lambda n: Linear(Fraction(n))
    )

    def joined(inner):
        pairs = st.tuples(inner, inner)
        return (
            pairs.map(lambda two: added(*two, 1))
            | pairs.map(lambda two: added(*two, -1))
            | pairs.map(lambda two: multiplied(*two))
            | pairs.filter(lambda two: two[1].value != 0).map(lambda two: divided(*two))
        )

    return st.recursive(atoms, joined, max_leaves=6)


def at(formula, values):
    """The formula for other values of its answers, computed from its structure and none of its own methods."""
    if isinstance(formula, Linear):
        return formula.constant + sum(times * values[leaf] for leaf, times in formula.terms.items())
    if isinstance(formula, Ratio):
        return at(formula.above, values) / at(formula.below, values)
    return formula.operation(at(formula.left, values), at(formula.right, values))


@given(st.data(), st.tuples(small, small, small), errors_of_three)
@settings(max_examples=300)
def test_every_value_within_the_errors_gives_a_result_within_the_ends(data, values, sizes):
    leaves = [measured(value) for value in values]
    formula = data.draw(formulas(leaves))
    errors = dict(zip(leaves, map(Fraction, sizes), strict=True))
    ends = formula.ends(errors)
    if ends is None:
        return
    for shares in product((-1, Fraction(-1, 3), 0, Fraction(1, 2), 1), repeat=3):
        moved = {leaf: leaf.value + share * errors[leaf] for leaf, share in zip(leaves, shares, strict=True)}
        assert ends[0] <= at(formula, moved) <= ends[1]


@given(st.lists(small, min_size=8, max_size=8), st.tuples(small, small, small), errors_of_three)
@settings(max_examples=300)
def test_the_ends_of_a_ratio_are_reached_at_corners_also_where_an_answer_stands_above_and_below(times, values, sizes):
    leaves = [measured(value) for value in values]
    above, below = (
        Linear(Fraction(part[0]), {leaf: Fraction(n) for leaf, n in zip(leaves, part[1:], strict=True) if n})
        for part in (times[:4], times[4:])
    )
    errors = dict(zip(leaves, map(Fraction, sizes), strict=True))
    low, high = below.ends(errors)
    ratio = Ratio(above, below)
    if low <= 0 <= high:
        assert ratio.ends(errors) is None
        return
    corners = [
        {leaf: leaf.value + sign * errors[leaf] for leaf, sign in zip(leaves, signs, strict=True)}
        for signs in product((-1, 1), repeat=3)
    ]
    results = [at(ratio, corner) for corner in corners]
    assert ratio.ends(errors) == (min(results), max(results))


def test_answers_of_different_releases_share_the_chance_of_a_miss():
    s = session(cp.PureDP(100))
    a, b = s.ask(cp.count(), epsilon=1), s.ask(cp.count(where="age > 30"), epsilon=2)
    assert (a - b).error("0.95") == a.error("0.975") + b.error("0.975") == (a + b).error("0.95")
    assert (2 * a - 3 * b + 7).error() == 2 * a.error("0.975") + 3 * b.error("0.975")
    assert (a - a).error() == 0 == a - a and (a + b - a).error() == b.error()


def test_cells_of_one_release_hold_at_once_by_their_common_law():
    cells = session(cp.PureDP(100)).ask(cp.histogram("city"), epsilon=1)
    paris, rome = cells["Paris"], cells["Rome"]
    both = cells._provenance.steps_of(2, Fraction("0.95"))
    assert (paris - rome).error() == 2 * both <= paris.error("0.975") + rome.error("0.975")


def test_a_share_of_the_same_people_is_tighter_than_a_ratio_of_strangers():
    s = session(cp.PureDP(1000))
    part, rest = s.ask(cp.count(where="age > 30"), epsilon=1), s.ask(cp.count(where="age <= 30"), epsilon=1)
    share = part / (part + rest)
    low, high = share.interval()
    assert 0 < low < share < high < 1 and type(share) is cp.answers.ComputedFloat
    apart = (part + rest) / 1
    off = joint_errors(share._formula().answers, "0.95")
    ends = [n / d for n in part._formula().ends(off) for d in apart._formula().ends(off)]
    assert float(min(ends)) < low and high < float(max(ends))


@pytest.mark.statistical
def test_differences_are_within_their_error_as_often_as_stated():
    runs, s, missed = 600, session(cp.PureDP(10**6)), 0
    for _ in range(runs):
        two = s.ask(cp.count(), epsilon=1) - s.ask(cp.count(), epsilon=1)
        missed += abs(two) > two.error("0.8")
    assert binom.sf(185, runs, 0.2) < 1e-9, "false alarms are rarer than this"
    assert missed <= 185


def test_results_are_numbers_with_units_and_marks():
    s = session(cp.PureDP(1000))
    a, pay = s.ask(cp.count(), epsilon=1), s.ask(cp.sum("pay"), epsilon=1)
    for result, plain in ((a + 1, int(a) + 1), (1 - a, 1 - int(a)), (-a, -int(a)), (3 * a, 3 * int(a))):
        assert isinstance(result, int) and result == plain and hash(result) == hash(plain)
        assert copy.deepcopy(result) is result
        assert type(pickle.loads(pickle.dumps(result))) is int  # noqa: S301 - our own bytes
    assert isinstance(a / 2, float) and isinstance(pay + a, float) and (pay + a).exact == pay.exact + int(a)
    assert sum([a, a]) == 2 * int(a) and (np.int64(2) * a == 2 * int(a)) and (a * np.int64(2)).error() == 2 * a.error()
    assert str(a + 1) == f"{int(a) + 1} +- {a.error()}" == repr(a + 1) and f"{a + 1}" == str(int(a) + 1)
    assert f"{a / 4:.2f}" == f"{int(a) / 4:.2f}"
    made_up = s.rehearse().ask(cp.count(), epsilon=1)
    assert (made_up + 1).made_up and "(made up)" in str(a - made_up)


def test_a_denominator_that_could_be_nothing_leaves_no_bound():
    s = session(cp.PureDP(100))
    a, none = s.ask(cp.count(), epsilon=1), s.ask(cp.count(where="age > 200"), epsilon=1)
    ratio = a / (none + Fraction(1, 2))
    assert ratio.error() == inf and ratio.interval() == (-inf, inf) and ratio.mostly_noise
    with pytest.raises(ZeroDivisionError):
        a / (none - none)
    with pytest.raises(ZeroDivisionError):
        a / 0


@pytest.mark.parametrize("other", ["1", None, [1]], ids=repr)
def test_other_things_are_not_added_to_answers(other):
    a = session(cp.PureDP(100)).ask(cp.count(), epsilon=1)
    with pytest.raises(TypeError):
        a + other


@pytest.mark.parametrize("other", [inf, float("nan")], ids=repr)
def test_a_float_that_is_no_number_is_refused(other):
    a = session(cp.PureDP(100)).ask(cp.count(), epsilon=1)
    with pytest.raises(cp.errors.InvalidParameter, match="beside an answer"):
        a + other


def test_an_interval_is_the_answer_less_and_plus_its_error():
    s = session(cp.PureDP(100))
    a, mean = s.ask(cp.count(), epsilon=1), s.ask(cp.mean("age"), epsilon=5)
    assert a.interval("0.9") == (a - a.error("0.9"), a + a.error("0.9"))
    low, high = mean.interval()
    assert low <= mean - mean.error() + 1e-9 and mean + mean.error() - 1e-9 <= high
