"""exact: certified bounds over all adaptive adversaries, checked against brute force and against what is known."""

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mechanisms.catalogue import CATALOGUE
from tests.verify.machines import random_mechanism, two_rounds

from counterpoint import Counter, Filter, Laplace, PureDP, RandomizedResponse, Slots, SparseVector, relations, verify
from counterpoint.coins import SeededCoins
from counterpoint.coins.enumerated import EnumeratedCoins
from counterpoint.encoding import Value, encode
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.mechanisms import Ask, Concurrent, Launch, ToChild
from counterpoint.mechanisms.mechanism import Left, Mechanism
from counterpoint.privacy.secret import reveal
from counterpoint.verify.exact_loss import exact
from counterpoint.verify.finite import FiniteMechanism, LoudNumber, OpenDoor, Outcome, query_pairs, side_by_side
from counterpoint.verify.grow import grow
from counterpoint.verify.symbolic import SymbolicCoins


def brute_force(node, growth, bit):
    """Lower^b by trying every deterministic adversary on the full tree of transcripts, one whole strategy at a time."""

    def strategies(here):
        """Every strategy from a node on: a list of its final nodes' pairs of probabilities, given the node."""
        if not here.moves:
            yield [(Fraction(1), Fraction(1))]
            return
        for move in here.moves:
            for plays in product(*(list(strategies(branch.node)) for branch in move.branches)):
                ends = zip(move.branches, plays, strict=True)
                yield [(branch.p0 * p, branch.p1 * q) for branch, play in ends for p, q in play]

    def stick(play):
        return sum(max((q - growth * p) if bit else (p - growth * q), 0) for p, q in play)

    return max(stick(play) for play in strategies(node))


@settings(max_examples=25)
@given(st.integers(0, 10**9), st.integers(1, 4))
def test_floats_enclose_what_rationals_say(seed, rounds):
    mechanism = random_mechanism(seed, states=3, answers=2)
    rational = exact(mechanism, messages=query_pairs(2), rounds=rounds, rational=True)
    floats = exact(mechanism, messages=query_pairs(2), rounds=rounds, rational=False)
    for growth in (1, "3/2", 4):
        truth, bounds = rational.bounds_at_growth(growth), floats.bounds_at_growth(growth)
        assert truth.lower == truth.upper
        assert bounds.lower <= truth.lower <= bounds.upper <= bounds.lower + Fraction(1, 10**12)


@settings(max_examples=25)
@given(st.integers(0, 10**9))
def test_merged_nodes_are_worth_what_single_transcripts_are(seed):
    mechanism = random_mechanism(seed, states=2)
    merged, full = (
        verify.ExactLoss(grow(mechanism, [*query_pairs(2), *query_pairs(1, differ=False)], 3, full=full))
        for full in (False, True)
    )
    assert merged.worlds.size <= full.worlds.size
    assert merged.bounds_at_growth(2) == full.bounds_at_growth(2)


@settings(max_examples=25)
@given(st.integers(0, 10**9))
def test_the_adversary_reaches_the_delta_that_is_stated(seed):
    """Her own win, computed by letting her play against the enumerated game."""
    mechanism = random_mechanism(seed, states=2)
    loss = exact(mechanism, messages=query_pairs(2), rounds=2)
    spy = loss.adversary
    says_one = [
        sum(
            (p for played, p in EnumeratedCoins().law(lambda c, b=b: _guess(spy, mechanism, b, c)) if played),
            Fraction(),
        )
        for b in (0, 1)
    ]
    assert abs(says_one[1] - says_one[0]) == loss.bounds(0).lower


def _guess(spy, mechanism, bit, coins):
    return bool(spy.play(mechanism, bit, coins).guess)


def test_an_adversary_reads_as_a_list_of_decisions_and_replays():
    spy = exact(OpenDoor("1/4"), rounds=2).adversary
    assert str(spy).splitlines()[:2] == ["send Ask(private=0 | 0)", "  open: send Ask(private=0 | 1)"]
    first, again = (spy.play(OpenDoor("1/4"), 1, SeededCoins(4)) for _ in range(2))
    assert first.answers == again.answers and first.guess == again.guess
    assert "to" in str(exact(Laplace(1), cut="1e-3").adversary), "answers that lead to the same are listed as ranges"


@pytest.mark.parametrize("name", ["SparseVector", "AboveThreshold", "GuessAndCheck", "Laplace", "RandomizedResponse"])
def test_symbolic_noise_has_the_law_of_enumerated_noise(name):
    """For shipped mechanisms, at the likeliest state after the start."""
    mechanism, messages = next(pair for pair in CATALOGUE if type(pair[0]).__name__ == name)
    laws = []
    for coins in (SymbolicCoins("1e-2"), EnumeratedCoins("1e-2")):
        start = coins.law(mechanism.start)
        state = max(start, key=lambda pair: (pair[1], repr(encode(pair[0], sealed=True))))[0]
        law = coins.law(mechanism.step, state, messages[0])
        laws.append({encode((after, answer), sealed=True): p for (after, answer), p in law})
    symbolic, enumerated = laws
    assert enumerated.keys() <= symbolic.keys()
    assert sum(abs(symbolic[key] - enumerated.get(key, 0)) for key in symbolic) < Fraction(1, 10)


def test_a_symbolic_draw_is_an_integer_that_compares_and_shifts():
    def experiment(coins):
        z = coins.discrete_laplace(2)
        assert isinstance(z, int)
        return 3 - z > 1, z + 1 <= 2, -z >= 0, z - 1 > 5

    for outcome, p in SymbolicCoins().law(experiment):
        reference = dict(EnumeratedCoins("1e-12").law(experiment))
        assert abs(p - reference[outcome]) < Fraction(1, 10**11)
    assert len(SymbolicCoins().law(experiment)) == len(reference)


def test_a_symbolic_vector_has_the_law_of_an_enumerated_one():
    def experiment(coins):
        return tuple((coins.discrete_laplace(2, size=2) >= 1).tolist())

    ours, theirs = dict(SymbolicCoins().law(experiment)), dict(EnumeratedCoins("1e-9").law(experiment))
    assert ours.keys() == theirs.keys() and sum(ours.values()) > 1 - Fraction(1, 10**50)
    assert all(abs(ours[outcome] - theirs[outcome]) < Fraction(1, 10**8) for outcome in ours)


@pytest.mark.parametrize("escape", [lambda z: z.sum(), lambda z: z.astype(int).tolist(), lambda z: int(z[1]) + 1])
def test_a_vector_of_which_more_is_made_is_enumerated(escape):
    def experiment(coins):
        return repr(escape(coins.discrete_laplace(1, size=2)))

    ours, theirs = SymbolicCoins("1e-3").law(experiment), EnumeratedCoins("1e-3").law(experiment)
    assert dict(ours) == dict(theirs)


@pytest.mark.parametrize("wide", [Counter(rho="0.5"), Counter("1e-9"), Laplace("1e-9")], ids=repr)
def test_noise_that_is_too_wide_to_enumerate_is_refused(wide):
    with pytest.raises(InvalidParameter, match="too many outcomes"):
        exact(wide)


@pytest.mark.parametrize("escape", [lambda z: z, lambda z: z * 2, abs, lambda z: z == 1, lambda z: f"{z}"])
def test_a_draw_of_which_more_is_made_is_enumerated(escape):
    def experiment(coins):
        return escape(coins.discrete_laplace(1))

    ours, theirs = SymbolicCoins("1e-6").law(experiment), EnumeratedCoins("1e-6").law(experiment)
    assert dict(ours) == dict(theirs)


def test_cut_tails_are_dropped_below_and_added_above():
    truth = exact(Laplace(1), cut="1e-15").bounds("0.5")
    for cut in ("1e-2", "1e-4", "1e-6"):
        bounds = exact(Laplace(1), cut=cut).bounds("0.5")
        assert bounds.lower <= truth.lower and truth.upper <= bounds.upper
        assert bounds.upper - bounds.lower <= 4 * Fraction(cut)
    assert exact(Laplace(1), cut="1e-2").epsilon_at("1e-3") == math.inf, "finite only above the cut mass"
    with pytest.raises(NotCovered):
        exact(Laplace(1)).renyi_at(2)


class Rare(Mechanism, Value, frozen=True):
    """Tells the bit, but only where a noise is large: all that it loses is in the tail."""

    @property
    def claim(self):
        return Laplace(1).claim

    def accepts(self, message):
        return isinstance(message, Ask) and message.private is not None

    def start(self, coins):
        return Left(1)

    def step(self, state, message, coins):
        large = abs(coins.discrete_laplace(1)) > 3
        return None, (reveal(message.private) if large else None)


def test_what_a_cut_hides_counts_in_full_above():
    whole, cut = (exact(Rare(), messages=[(Ask(private=0), Ask(private=1))], rounds=1, cut=c) for c in ("1e-9", "0.1"))
    assert whole.bounds(1).lower > 0.01
    assert cut.bounds(1).lower == 0, "nothing of it is left"
    assert cut.bounds(1).upper >= whole.bounds(1).lower


def test_epsilon_and_delta_are_inverse():
    loss = exact(RandomizedResponse(1, "0.01"))
    for delta in ("0.02", "0.1", "0.3"):
        low, high = loss.epsilon_bounds(delta)
        assert low <= RandomizedResponse(1, "0.01").claim.loss.epsilon_at(delta) <= high + 1e-12 and high - low < 1e-9
        assert loss.delta_at(high) <= float(delta)
    assert loss.epsilon_at("0.005") == math.inf and loss.epsilon_at(1) == 0


def test_the_trade_off_curve_is_that_of_the_pair_of_worlds():
    response = RandomizedResponse(1, "0.1")
    ours, theirs = exact(response).trade_off(), response.claim.loss.as_tradeoff()
    for alpha in ("0", "0.1", "0.3", "0.5", "0.9"):
        assert abs(ours(alpha) - theirs(alpha)) < 1e-9
    assert exact(OpenDoor("1/8"), rounds=2).trade_off().vertices[0] == (0, Fraction(7, 8))


def test_concurrent_randomized_responses_meet_the_optimal_bound():
    responses = [RandomizedResponse("0.5", "0.01"), RandomizedResponse("0.8")]
    pairs = [(Ask(Launch(child)),) * 2 for child in responses] + [
        (Ask(ToChild(n), 0), Ask(ToChild(n), 1)) for n in (0, 1)
    ]
    rule = Slots([child.claim.loss for child in responses])
    both, bound = exact(Concurrent(rule, relations.every_step()), messages=pairs, rounds=4), rule.total
    for epsilon in (0, "0.3", 1, "1.2"):
        assert abs(both.delta_at(epsilon) - bound.delta_at(epsilon)) < 1e-9


def test_a_finite_concurrent_composition_is_what_concurrent_does():
    children = [two_rounds(7), FiniteMechanism((((COIN, TRUTH),),), loss=PureDP(50))]
    concurrent = Concurrent(Filter(PureDP(100)), relations.every_step())
    launches = [(Ask(Launch(child)),) * 2 for child in children]
    to = [(Ask(ToChild(n, q), 0), Ask(ToChild(n, q), 1)) for n, many in ((0, 2), (1, 1)) for q in range(many)]
    ready = relations.Predicate("launched in order", lambda pairs: all(map(_in_order, pairs, range(9))))
    theirs = exact(concurrent, messages=[*launches, *to], rounds=5, relation=ready)
    ours = exact(side_by_side(*children), messages=query_pairs(3), rounds=3)
    assert theirs.bounds_at_growth("3/2") == ours.bounds_at_growth("3/2")


COIN, TRUTH = (Outcome("1/2", 0), Outcome("1/2", 1)), (Outcome("1/3", 0), Outcome("2/3", 1))


def _in_order(pair, place):
    """The first message launches a mechanism of two rounds, the second the other, and then there are no launches."""
    public = pair[0].public
    if place > 1:
        return not isinstance(public, Launch)
    return isinstance(public, Launch) and len(public.mechanism.table) == (4 if place == 0 else 1)


def test_the_footnote_machine_is_private_against_oblivious_adversaries_only():
    """Henzinger et al. 2024, footnote 1: who must choose both messages in advance gets delta, who listens gets
    everything.
    """
    machine = LoudNumber("1/5")
    assert exact(machine).bounds_at_growth(1) == (1, 1)
    for number in range(1, 6):
        oblivious = [(Ask(private=0), Ask(private=1)), (Ask(number), Ask(number))]
        assert exact(machine, messages=oblivious, rounds=2).bounds_at_growth(1) == (Fraction(1, 5),) * 2


def test_a_tree_beyond_its_limit_is_refused():
    mechanism = random_mechanism(1)
    with pytest.raises(InvalidParameter, match="more than 1000 numbers"):
        exact(mechanism, messages=query_pairs(2), rounds=9, limit=1000)
    with pytest.raises(InvalidParameter, match="more than 1000 numbers"):
        exact(mechanism, messages=query_pairs(2), rounds=9, limit=1000, rational=True)


def test_bad_input_is_refused():
    with pytest.raises(InvalidParameter, match="not a str"):
        exact("Laplace")
    with pytest.raises(InvalidParameter, match="messages="):
        exact(Concurrent(Filter(PureDP(1)), relations.every_step()))
    for messages in ([], [Ask()], [(Ask(), Ask(), Ask())], [(1, 2)]):
        with pytest.raises(InvalidParameter):
            exact(Laplace(1), messages=messages, rounds=1)
    for rounds in (0, -1, True, 1.5, "many"):
        with pytest.raises(InvalidParameter):
            exact(Laplace(1), messages=query_pairs(1), rounds=rounds)
    for epsilon in (-1, math.nan, math.inf, "x"):
        with pytest.raises(InvalidParameter):
            exact(RandomizedResponse(1)).bounds(epsilon)
    with pytest.raises(InvalidParameter, match="not all rational"):
        exact(Laplace(1), rational=True)
    with pytest.raises(InvalidParameter):
        FiniteMechanism((((Outcome("1/2", 0),) * 1, (Outcome(1, 0),)),))


def test_a_sparse_vector_with_seven_pairs_over_five_rounds_is_small():
    loss = exact(SparseVector(1, 10))
    assert len(loss.worlds.pairs) == 7 and len(loss.worlds.levels) == 6 and loss.worlds.size < 10**4
