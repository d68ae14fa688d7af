"""Keys are released by chances that (epsilon, delta) allows, exactly, and that nothing allowed exceeds."""

import pathlib
import re
from fractions import Fraction
from itertools import pairwise, product
from math import exp, floor, log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import counterpoint
from counterpoint.coins.enumerated import EnumeratedCoins
from counterpoint.coins.secure import SeededCoins
from counterpoint.encoding import encode
from counterpoint.errors import InvalidParameter, SecretLeak
from counterpoint.mechanisms.additive import Gaussian, Laplace
from counterpoint.mechanisms.partition_selection import GRID, PartitionSelection, chances
from counterpoint.mechanisms.randomized_response import RandomizedResponse
from counterpoint.mechanisms.sparse_vector import SparseVector
from counterpoint.numbers import precision
from counterpoint.privacy.messages import Ask, ToChild, Update, gap
from counterpoint.privacy.relations import every_step
from counterpoint.privacy.secret import Secret, Tally


def law(mechanism, tally, s, q):
    """The chance of every answer, exactly: all tosses are rational."""
    ask = Ask(private=tally, sensitivity=s, squared=q)
    assert mechanism.accepts(ask)
    found = EnumeratedCoins().law(lambda coins: mechanism.step(mechanism.start(coins), ask, coins)[1])
    assert found.error == found.cut == 0
    return dict(found)


def least_delta(left, right, epsilon):
    """The least delta for which (epsilon, delta)-DP holds between two laws, from above."""
    growth = Fraction(precision(60)(epsilon).exp().lower)
    return max(
        sum((max(a.get(o, Fraction(0)) - growth * b.get(o, Fraction(0)), Fraction(0)) for o in {*a, *b}), Fraction(0))
        for a, b in ((left, right), (right, left))
    )


SMALL = [Tally(tuple(zip("abc", counts, strict=True))) for counts in product(range(4), repeat=3)]


@pytest.mark.parametrize(
    ("epsilon", "delta", "s", "q"),
    [
        (1, "0.01", 1, 1),
        ("0.3", "0.1", 2, 2),
        (2, "0.05", 3, 3),
        (3, "0.02", 4, 4),  # one key may move by 2
        (1, "0.1", 2, 4),
        (9, "0.01", 9, 9),  # so much epsilon that a key moving by 3 is worse than nine moving by 1
        (4, "0.2", 3, 9),
    ],
)
def test_the_law_keeps_epsilon_and_delta_on_all_small_neighbours(epsilon, delta, s, q):
    mechanism = PartitionSelection(epsilon, delta)
    laws = [law(mechanism, tally, s, q) for tally in SMALL]
    worst, pairs = Fraction(0), 0
    for (left, one), (right, other) in product(zip(SMALL, laws, strict=True), repeat=2):
        asks = [Ask(private=tally, sensitivity=s, squared=q) for tally in (left, right)]
        if left != right and every_step().valid([tuple(asks)]):
            worst, pairs = max(worst, least_delta(one, other, mechanism.epsilon)), pairs + 1
    assert worst <= mechanism.delta and pairs > 100
    if s <= 3 and s == q:  # a unit alone with s new keys
        assert worst > mechanism.delta * Fraction(9, 10) ** s


def test_a_key_moves_between_neighbours_even_where_only_one_of_them_lists_it():
    here, there = Tally((("a", 2),)), Tally((("a", 2), ("b", 1), ("c", 1)))
    assert gap(Ask(private=here), Ask(private=there))[:2] == (2, 2)
    pair = [Ask(private=tally, sensitivity=2, squared=2) for tally in (here, there)]
    assert every_step().valid([tuple(pair)])
    assert not every_step().valid([(Ask(private=here), Ask(private=there))])
    assert gap(Ask(private=here), Ask(private=(2,))) is None and gap(Ask(private=here), Ask(private=())) is None


@given(
    st.fractions(Fraction(1, 50), 30, max_denominator=100),
    st.fractions(Fraction(1, 10**9), 1, max_denominator=10**9),
)
@settings(max_examples=60)
def test_chances_satisfy_every_inequality_exactly_and_end_next_to_certainty(epsilon, delta):
    growth = Fraction(precision(60)(epsilon).exp().lower)
    table = chances(epsilon, delta)
    assert table[0] == 0 and table[-1] == GRID - 1
    for here, there in pairwise(table):
        assert here <= there < GRID
        assert there <= growth * here + delta * GRID
        assert GRID - here <= growth * (GRID - there) + delta * GRID


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-9), (3.0, 1e-3), (0.02, 0.01)])
def test_chances_are_those_of_the_optimal_mechanism(epsilon, delta):
    """Against the closed form of Desfontaines et al. 2022, Thm 1, in floating point."""
    one = 1 + floor(log((exp(epsilon) + 2 * delta - 1) / ((exp(epsilon) + 1) * delta)) / epsilon)
    two = one + floor(
        log(1 + (exp(epsilon) - 1) / delta * (1 - delta * (exp(one * epsilon) - 1) / (exp(epsilon) - 1))) / epsilon
    )

    def rising(n):
        return delta * (exp(n * epsilon) - 1) / (exp(epsilon) - 1)

    def expected(n):
        if n <= one:
            return rising(n)
        fallen = exp(-(n - one) * epsilon)
        return min(1, (1 - fallen) * (1 + delta / (exp(epsilon) - 1)) + fallen * rising(one)) if n <= two else 1.0

    table = chances(Fraction(str(epsilon)), Fraction(str(delta)))
    for n, chance in enumerate(table):
        assert chance / GRID == pytest.approx(expected(n), rel=1e-6, abs=1e-9), n


def test_thousands_of_units_are_released_and_nobody_is_never():
    mechanism, coins = PartitionSelection(1, 1e-6), SeededCoins(3)
    tally = Tally((("crowd", 5000), ("nobody", 0), ("someone", 1)))
    answers = {mechanism.step(mechanism.start(coins), Ask(private=tally), coins) for _ in range(50)}
    assert answers == {(None, ("crowd",))}
    assert law(mechanism, Tally(()), 1, 1) == {(): 1}


def test_keys_are_told_in_one_order_whatever_order_they_were_given_in():
    one, other = Tally(((10, 9), (9, 9), (-1, 9))), Tally(((-1, 9), (9, 9), (10, 9)))
    assert encode(one) == encode(other)
    answer = max(law(PartitionSelection(20, 1), one, 1, 1), key=len)
    assert answer == (-1, 9, 10)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(0, 1e-6), (-1, 1e-6), (1, 0), (1, -1), (1, 2), (float("nan"), 0.1), (True, 0.1), (1, 1e-30), (1e-5, 0.1)],
)
def test_parameters_by_which_no_key_could_be_selected_are_refused(epsilon, delta):
    with pytest.raises(InvalidParameter):
        PartitionSelection(epsilon, delta)


def test_only_a_tally_of_bearable_sensitivity_is_accepted():
    mechanism, tally = PartitionSelection(1, 1e-6), Tally((("a", 1),))
    assert mechanism.accepts(Ask(private=tally, sensitivity=10**4, squared=10**4))
    for message in (
        Ask(private=tally, sensitivity=10**5, squared=10**5),
        Ask(private=5),
        Ask(private=()),
        Ask(private=(1, 2)),
        Ask(),
        Update(tally),
        Ask(ToChild(0), private=tally),
    ):
        assert not mechanism.accepts(message)
    assert not PartitionSelection(10**300, 1e-6).accepts(Ask(private=tally, sensitivity=10**100))
    assert PartitionSelection(10**300, 1e-6).accepts(Ask(private=tally))


@pytest.mark.parametrize("mechanism", [Laplace(1), Gaussian(1), RandomizedResponse(1), SparseVector(1, 5)])
def test_no_other_mechanism_takes_a_tally_or_could_open_it(mechanism):
    ask = Ask(private=Tally((("canary", 1),)))
    assert not mechanism.accepts(ask)
    with pytest.raises((SecretLeak, AssertionError)):
        mechanism.step(mechanism.start(SeededCoins(1)), ask, SeededCoins(1))


def test_a_secret_tally_shows_nothing_and_is_computed_with_only_by_scaling():
    secret = Secret(Tally((("canary", 1),)))
    assert secret.keyed and secret.width == 0 and "canary" not in repr(secret)
    assert gap(Ask(private=secret * 3), Ask(private=secret))[:2] == (2, 4)
    for deed in (lambda: secret + 1, lambda: -secret, lambda: secret.clamp(0, 1), lambda: secret.map(len)):
        with pytest.raises(SecretLeak):
            deed()


@pytest.mark.parametrize("pairs", [(("a", -1),), (("a", True),), (("a", 1), ("a", 2)), (("a", 1), (1, 1)), ((1.5, 1),)])
def test_a_malformed_tally_is_refused_without_saying_what_is_in_it(pairs):
    with pytest.raises(InvalidParameter) as refused:
        Tally(pairs)
    assert "'a'" not in str(refused.value) and "-1" not in str(refused.value)


def test_nothing_opens_a_tally_but_selection_the_distance_of_two_messages_and_the_verifier_that_shows_its_own():
    package = pathlib.Path(counterpoint.__file__).parent
    opening = {path.name for path in package.rglob("*.py") if re.search(r"\bcounted\(", path.read_text())}
    assert opening == {"secret.py", "messages.py", "adversary.py", "partition_selection.py"}


@settings(max_examples=30)
@given(
    st.fractions("1/10", 5),
    st.sampled_from(["0.1", "0.001", "1e-9"]),
    st.integers(1, 4),
    st.fractions("1/100", "99/100"),
)
def test_from_the_stated_number_of_units_on_a_key_is_released_so_often_and_not_from_one_fewer(epsilon, delta, r, sure):
    mechanism = PartitionSelection(epsilon, delta)
    units = mechanism.error(sure, sensitivity=r)

    def chance(n):
        return law(mechanism, Tally((("a", n),)), r, r).get(("a",), Fraction(0))

    assert chance(units - 1) < sure <= chance(units) <= chance(units + 1)


@pytest.mark.parametrize("bad", [(1,), (-1,), ("0.5", 0), ("0.5", 10**9), (1 - Fraction(1, 2**200),)])
def test_an_accuracy_that_cannot_be_stated_is_refused(bad):
    with pytest.raises(InvalidParameter):
        PartitionSelection(1, "1e-6").error(*bad)
