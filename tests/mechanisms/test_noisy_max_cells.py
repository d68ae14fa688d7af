"""Noisy max in several cells, and the largest k: exact laws over all small vectors and all their neighbours."""

from fractions import Fraction
from itertools import product
from math import exp, log

import pytest
from tests.mechanisms.test_noisy_max import flipped, softmax

import counterpoint as cp
from counterpoint.coins.enumerated import EnumeratedCoins
from counterpoint.coins.secure import SeededCoins
from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.mechanisms.noisy_max import Largest, NoisyMax
from counterpoint.privacy.messages import Ask, gap
from counterpoint.privacy.relations import OneWay, every_step
from counterpoint.privacy.secret import reveal

CUT = Fraction(1, 10**4)
COINS = EnumeratedCoins(CUT)
MECHANISMS = {
    "permute-and-flip": NoisyMax(4),
    "permute-and-flip, one way": NoisyMax(2, monotone=True),
    "exponential": NoisyMax(4, by="exponential"),
    "exponential, one way": NoisyMax(2, monotone=True, by="exponential"),
    "zCDP": NoisyMax(rho=2),
    "zCDP, one way": NoisyMax(rho="0.5", monotone=True),
}
every = pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)


def asked(mechanism, scores, each, cells=1, top=None):
    public = None if top is None else Largest(top)
    return Ask(public, scores, len(scores) * each, each=each, one_way=mechanism.monotone, cells=cells)


def enumerated(mechanism, ask):
    """What the code that runs in production answers, with which probability; short of it by a few times CUT."""
    found = {}
    for (_, said), p in COINS.law(mechanism.step, mechanism.start(None), ask):
        key = tuple(one.index for one in said)
        found[key] = found.get(key, 0) + float(p)
    return found


def law(mechanism, ask):
    """The same by the formulas: choices in cells are independent, and of the largest each is among what is left."""
    scores, top = reveal(ask.private), 1 if ask.public is None else ask.public.k
    width, scale = len(scores) // ask.cells, float(mechanism.scale(ask.each, top))
    choose = flipped if mechanism.by == "permute-and-flip" else softmax
    found = {(): 1.0}
    for start in range(0, len(scores), width):
        for _ in range(top):
            found = {
                (*key, index): p * chance
                for key, p in found.items()
                for index, chance in chosen(choose, scores[start : start + width], key[start // width * top :], scale)
            }
    return found


def chosen(choose, scores, before, scale):
    left = [index for index in range(len(scores)) if index not in before]
    return zip(left, choose([scores[index] for index in left], scale), strict=True)


@every
def test_the_code_has_the_law_of_the_formulas(mechanism):
    for scores, cells, top in (((0, 1, 1, 0), 2, None), ((2, 0, 0, 0), 2, None), ((0, 1), 1, 2), ((0, -2, 1), 1, 1)):
        ask = asked(mechanism, scores, 1, cells, top)
        assert enumerated(mechanism, ask) == pytest.approx(law(mechanism, ask), abs=20 * float(CUT))


def far(mechanism, left, right):
    """The largest log of the odds in two worlds, the length of the interval that holds them all, and the divergence."""
    p, q = law(mechanism, left), law(mechanism, right)
    losses = [log(p[key] / q[key]) for key in p]
    moments = [log(sum(p[key] ** a * q[key] ** (1 - a) for key in p)) / (a - 1) / a for a in (1.1, 2, 4)]
    return max(map(abs, losses)), max(losses) - min(losses), max(moments)


def moves(width, most, *, one_way):
    steps = range(most + 1) if one_way else range(-most, most + 1)
    return product(steps, repeat=width)


@every
def test_choices_in_cells_lose_no_more_together_than_is_claimed_and_as_much_where_one_cell_moves(mechanism):
    relation, start, worst = mechanism.claim.relation, (0, 1, 0, 0), 0.0
    for move in moves(4, 2, one_way=mechanism.monotone):
        left = asked(mechanism, start, 2, cells=2)
        right = asked(mechanism, tuple(map(sum, zip(start, move, strict=True))), 2, cells=2)
        near = max(map(abs, move[:2])) + max(map(abs, move[2:])) <= 2
        assert relation.valid([(left, right)]) == near, "the relation measures the sum over the cells"
        if near:
            loss, length, rate = far(mechanism, left, right)
            worst = max(worst, length if mechanism.by == "exponential" else loss)
            assert loss <= float(mechanism.epsilon_per_ask) + 1e-9
            assert mechanism.by != "exponential" or length <= float(mechanism.epsilon_per_ask) + 1e-9
            assert mechanism.rho is None or rate <= float(mechanism.rho) + 1e-9
    assert worst > 0.7 * float(mechanism.epsilon_per_ask)


@every
def test_the_noise_of_one_cell_is_too_little_if_every_cell_moves_as_far(mechanism):
    """So `each` must count the cells: with half of it, two moving cells lose twice what is claimed."""
    down = 0 if mechanism.monotone else -1
    left, right = (0, 0, 0, 0), (1, down, 1, down)
    loss, length, _ = far(mechanism, *(asked(mechanism, scores, 1, cells=2) for scores in (left, right)))
    most = length if mechanism.by == "exponential" else loss
    assert most > 1.4 * float(mechanism.epsilon_per_ask) or mechanism.monotone
    assert not mechanism.claim.relation.valid(
        [(asked(mechanism, left, 1, cells=2), asked(mechanism, right, 1, cells=2))]
    )


@every
@pytest.mark.parametrize("top", [2, 3])
def test_the_largest_lose_no_more_together_than_is_claimed(mechanism, top):
    worst = 0.0
    for start in ((0, 0, 0), (2, 0, 1)):
        for move in moves(3, 1, one_way=mechanism.monotone):
            left = asked(mechanism, start, 1, top=top)
            right = asked(mechanism, tuple(map(sum, zip(start, move, strict=True))), 1, top=top)
            loss, _, rate = far(mechanism, left, right)
            worst = max(worst, loss)
            assert mechanism.rho is not None or loss <= float(mechanism.epsilon_per_ask) + 1e-9
            assert mechanism.rho is None or rate <= float(mechanism.rho) + 1e-9
    assert worst > 0.25 * float(mechanism.epsilon_per_ask)


def test_peeling_is_one_choice_after_another_among_what_is_left():
    mechanism = NoisyMax(4, by="exponential")
    scores, scale = (0, 1, 3), float(mechanism.scale(1, top=2))
    weights = [exp(score / scale) for score in scores]
    for (first, second), p in enumerated(mechanism, asked(mechanism, scores, 1, top=2)).items():
        left = sum(weights) - weights[first]
        assert first != second and p == pytest.approx(weights[first] / sum(weights) * weights[second] / left, abs=1e-5)


def test_cells_and_the_largest_of_each_go_together():
    scores = (0, 900, 300, 5, 1, 900)
    _, said = NoisyMax(4).step(NoisyMax(4).start(None), asked(NoisyMax(4), scores, 1, 2, 2), SeededCoins(1))
    assert [one.index for one in said] == [1, 2, 2, 0]


def test_a_vector_that_does_not_fall_into_equal_cells_is_refused():
    for private in (None, 3, (1, 2, 3), ()):
        with pytest.raises(InvalidParameter, match="cells"):
            Ask(private=private, cells=2)
    assert not NoisyMax(1).accepts(Ask(Largest(3), (1, 2, 3, 4), cells=2)), "two in each cell are not three"
    assert NoisyMax(1).accepts(Ask(Largest(2), (1, 2, 3, 4), cells=2))


def test_the_norm_of_cells_is_between_the_maximum_and_the_sum():
    one, other = Ask(private=(0, 0, 0, 0), sensitivity=4, cells=2), Ask(private=(1, 1, 0, 2), sensitivity=4, cells=2)
    assert gap(one, other).each == 3 and gap(one, other).l1 == 4
    assert Ask(private=(0, 0), sensitivity=2, squared=2, each=2, cells=2).each == 2, "more than the root of 2"
    assert Ask(private=(0, 0), sensitivity=2, squared=2, each=2).each == 1
    assert gap(one, Ask(private=(0, 0, 0, 0), sensitivity=4)) is None, "the cells are public"


def test_the_claims_are_those_of_single_choices():
    assert NoisyMax(1).claim.relation == every_step() and NoisyMax(1, monotone=True).claim.relation == OneWay()
    mechanism = NoisyMax(rho=2)
    assert mechanism.scale(top=4) == 2 * mechanism.scale(), "rho/4 for each"
    assert NoisyMax(1).scale(3, top=4) == 4 * NoisyMax(1).scale(3), "epsilon/4 for each"
    many = NoisyMax(1).answer_error(Ask(private=(0,) * 30, each=1, cells=3), "0.95", 3)
    assert NoisyMax(1).error("0.95", 10) < many <= NoisyMax(1).error(1 - Fraction(1, 60), 10)


def test_an_option_says_how_many_are_wanted():
    session = cp.Session(cp.Stream(bound=1, dimensions=4), within=cp.PureDP(4))
    assert len(session.launch(NoisyMax(2)).ask(cp.total(), top=3)) == 3
    with pytest.raises(InvalidParameter):
        session.launch(NoisyMax(1)).ask(cp.total(), top=0)
    with pytest.raises(InvalidRequest, match="takes no best="):
        session.launch(NoisyMax(1)).ask(cp.total(), best=3)
