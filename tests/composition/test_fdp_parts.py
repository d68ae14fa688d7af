"""Partitions inside budgets in Gaussian DP and f-DP: what is charged, what is refused, and exact games against both."""

from fractions import Fraction

import pytest

from counterpoint.composition.accumulator import Account
from counterpoint.composition.filters import Filter
from counterpoint.composition.parallel import Parallel
from counterpoint.composition.slots import Slots
from counterpoint.encoding import Value
from counterpoint.errors import BudgetExceeded, NotCovered
from counterpoint.measures import ApproxDP, GaussianDP, PureDP, RenyiDP, TradeOff, tCDP, zCDP
from counterpoint.mechanisms.concurrent import Concurrent, ConcurrentState, Launch
from counterpoint.mechanisms.mechanism import Mechanism, State, accepted
from counterpoint.privacy.claims import Charge, claim
from counterpoint.privacy.messages import Ask, ToChild
from counterpoint.privacy.relations import every_step, k_sparse, static_parts
from counterpoint.verify.decomposition import CurveTooHigh, decompose
from counterpoint.verify.exact_loss import exact
from counterpoint.verify.finite import FiniteMechanism, Outcome, query_pairs
from counterpoint.verify.verdict import Verdict

COIN = TradeOff.between(["0.6", "0.4"], ["0.4", "0.6"])
GAUSSIAN, TABLE = GaussianDP(1), GaussianDP(1).as_tradeoff()


def of(loss, interaction="one-shot"):
    return claim(loss, every_step(), "a test", interaction=interaction)


def parts(k, each, **given):
    rule = Parallel(k, each=each, **given)
    return Concurrent(rule, static_parts(k, every_step()) if rule.first_pair else k_sparse(k, every_step())).claim


def one_by_one(rule, loss, times):
    account = rule.start()
    for _ in range(times):
        account = rule.admit(account, of(loss, "finite"))
    return account


@pytest.mark.parametrize("budget", [GAUSSIAN, TABLE], ids=["Gaussian", "table"])
@pytest.mark.parametrize(
    ("each", "large"),
    [(PureDP("0.1"), PureDP("0.7")), (GaussianDP("0.2"), GaussianDP("0.7"))],
    ids=["pure", "Gaussian"],
)
def test_parts_of_static_data_cost_k_launches_all_or_none(budget, each, large):
    rule = Filter(budget)
    claimed = parts(3, each, first_pair=True)
    assert rule.charge(rule.start(), claimed) == one_by_one(rule, each, 3)
    with pytest.raises(BudgetExceeded, match="charged together, all or none, do not fit"):
        rule.charge(rule.start(), parts(3, large, first_pair=True))


def test_pure_parts_of_changing_data_cost_k_launches_too():
    for budget in (GAUSSIAN, TABLE):
        rule = Filter(budget)
        assert rule.charge(rule.start(), parts(3, PureDP("0.1"))) == one_by_one(rule, PureDP("0.1"), 3)


@pytest.mark.parametrize("each", [GaussianDP("0.1"), COIN, zCDP("0.1"), RenyiDP(4, "0.1"), tCDP("0.1", 8)], ids=repr)
def test_parts_of_changing_data_in_other_measures_are_refused(each):
    with pytest.raises(NotCovered, match=r"Thm 13\.5"):
        parts(2, each)


@pytest.mark.parametrize("each", [ApproxDP("0.1", "1e-6"), zCDP("0.01"), RenyiDP(4, "0.01"), COIN], ids=repr)
def test_a_gaussian_budget_refuses_parts_without_a_mu(each):
    rule = Filter(GAUSSIAN)
    with pytest.raises(NotCovered, match="charged together, all or none, cannot all be charged"):
        rule.charge(rule.start(), parts(2, each, first_pair=True))


def test_a_trade_off_budget_counts_exposures_of_parts_static_or_changing():
    rule = Filter(TradeOff.of_approx(1, "1e-3"))
    static = rule.charge(rule.start(), parts(2, ApproxDP("0.1", "1e-4"), first_pair=True))
    assert static == one_by_one(rule, ApproxDP("0.1", "1e-4"), 2)
    changing = parts(2, ApproxDP("0.1", "1e-6"), delta_total="1e-4")
    assert changing.launches == (Charge(PureDP("0.1"), 2), Charge(ApproxDP(0, "1e-4")))
    left = rule.charge(rule.start(), changing)
    assert rule.fits(left, of(ApproxDP("0.7", "8e-4"))) and not rule.fits(left, of(ApproxDP("0.7", "9.5e-4")))


def test_parts_in_f_dp_are_one_draw_made_at_the_charge():
    claimed = parts(2, GaussianDP("0.6"), first_pair=True)
    assert claimed.interaction == "memoryless" and parts(2, PureDP("0.6"), first_pair=True).interaction == "endless"
    rule = Parallel(1, each=GaussianDP(1), first_pair=True)
    assert rule.admit(rule.start(), claimed).count == 1, "a part may be partitioned again"
    with pytest.raises(BudgetExceeded):
        rule.admit(rule.start(), parts(3, GaussianDP("0.6"), first_pair=True))


def test_slots_in_f_dp_take_parts_one_by_one():
    rule = Slots([GaussianDP("0.5")] * 3)
    assert rule.charge(rule.start(), parts(3, GaussianDP("0.5"), first_pair=True)).groups == ()
    assert rule.charge(rule.start(), parts(3, PureDP("0.1"), first_pair=True)).groups == ()


# Exact games

F = Fraction


def two_step():
    """Answers twice, about one bit; what it says first decides how it answers next."""

    def coin(numerator, *states):
        chances = (F(numerator, 6), 1 - F(numerator, 6))
        return tuple(Outcome(p, answer, state) for answer, (p, state) in enumerate(zip(chances, states, strict=True)))

    table = (
        ((coin(4, 1, 2), coin(2, 1, 2)),),
        ((coin(3, None, None), coin(2, None, None)),),
        ((coin(5, None, None), coin(4, None, None)),),
    )
    bare = FiniteMechanism(table)
    with pytest.raises(CurveTooHigh) as refused:
        decompose(bare, curve=TradeOff([(0, 1), (1, 0)]), messages=query_pairs(1), rounds=2)
    return FiniteMechanism(table, loss=refused.value.curve)


PART = two_step()


def largest(curve, growth):
    """Delta at e^epsilon = growth, either way, exactly."""
    return max(max(1 - b - growth * a, 1 - a - growth * b) for a, b in curve.vertices)


def asked(child, differ):
    return Ask(ToChild(child, 0), 0), Ask(ToChild(child, 0), 1 if differ else 0)


def test_parts_with_memory_reach_just_their_tensor():
    """Two interactive parts that are both affected, in any interleaving: exactly f tensor f."""
    rule = Parallel(2, each=PART.loss, first_pair=True)
    game = Concurrent(rule, static_parts(2, every_step()))
    launch = (Ask(Launch(PART)),) * 2
    relation = static_parts(2, every_step()).reaching(0, 1)
    loss = exact(game, relation, messages=[launch, asked(0, True), asked(1, True)], rounds=6)
    assert loss.judge(rule.bound(game.relation)) is Verdict.HOLDS
    tensor = PART.loss.tensor(PART.loss)
    for growth in (F(1), F(3, 2), F(3)):
        assert loss.bounds_at_growth(growth).upper == largest(tensor, growth)


def test_a_part_that_is_not_affected_adds_nothing():
    rule = Parallel(1, each=PART.loss, first_pair=True)
    game = Concurrent(rule, static_parts(1, every_step()))
    launch = (Ask(Launch(PART)),) * 2
    relation = static_parts(1, every_step()).reaching(0)
    loss = exact(game, relation, messages=[launch, asked(0, True), asked(1, False)], rounds=6)
    assert loss.judge(PART.loss) is Verdict.HOLDS


class Cutting(State, Value, frozen=True):
    """The account of the session, and its partition, once there is one."""

    account: Account
    inner: State | None = None


class CutSession(Mechanism, Value, frozen=True):
    """A session that launches `direct`, which answers once, and may be partitioned; its parts are all affected.

    A part launches `direct`, too, as soon as it is asked.
    """

    rule: Filter
    partition: Concurrent
    direct: Mechanism

    @property
    def claim(self):
        return claim(self.rule.budget, every_step(), "the rule's")

    def accepts(self, message):
        return isinstance(message, Ask)

    def start(self, coins):
        return Cutting(self.rule.start())

    def step(self, state, message, coins):
        try:
            if message.public == "cut":
                account = self.rule.charge(state.account, self.partition.claim)
                return Cutting(account, self.partition.start(coins)), "cut"
            if message.public == "direct":
                account = self.rule.charge(state.account, self.direct.claim)
                ask = Ask(0, message.private)
                return Cutting(account, state.inner), self.direct.step(
                    self.direct.start(coins), accepted(self.direct, ask), coins
                )[1]
        except BudgetExceeded:
            return state, "refused"
        if not isinstance(state.inner, ConcurrentState):
            return state, "there are no parts yet"
        inner = state.inner
        if message.public.child == len(inner.children):
            inner, _ = self.partition.step(inner, Ask(Launch(self.direct)), coins)
        after, answer = self.partition.step(inner, message, coins)
        return Cutting(state.account, after), answer if isinstance(answer, int) else "refused"


def answering_once(loss, first, second):
    outcomes = [tuple(Outcome(p, n) for n, p in enumerate(law)) for law in (first, second)]
    return FiniteMechanism((((outcomes[0], outcomes[1]),),), loss=loss)


HALVES = ["0.55", "0.45"], ["0.45", "0.55"]
MU = TradeOff.between(*HALVES).as_gaussian()
GAMES = {
    "Gaussian": (GaussianDP(MU.mu * F(175, 100)), MU),
    "table": (TradeOff.between(*HALVES).tensor_power(5), TradeOff.between(*HALVES)),
}


def play(rule, each, k, rounds):
    part = answering_once(each, *HALVES)
    partition = Concurrent(Parallel(k, each=each, first_pair=True), static_parts(k, every_step()))
    game = CutSession(rule, partition, part)
    bits = [(Ask("direct", 0), Ask("direct", 1)), *(asked(child, True) for child in range(k))]
    return exact(game, every_step(), messages=[(Ask("cut"),) * 2, *bits], rounds=rounds)


@pytest.mark.parametrize(("budget", "each"), GAMES.values(), ids=GAMES)
def test_no_analyst_who_interleaves_parts_and_launches_exceeds_the_budget(budget, each):
    """Three launches fit, or two parts and one launch: in any order, the launch chosen by what the parts said."""
    loss = play(Filter(budget), each, k=2, rounds=6)
    assert loss.judge(budget) is Verdict.HOLDS
    assert loss.bounds_at_growth(1).lower == largest(TradeOff.between(*HALVES).tensor_power(3), 1), "all are reached"


class OncePaid(Filter, frozen=True):
    """The planted mistake: a partition is paid for as one launch of `each`."""

    def charge(self, account, claim):
        first = claim.launches[0] if claim.launches else None
        return self.admit(account, claim if first is None else of(first.loss, first.interaction))


@pytest.mark.parametrize(("budget", "each"), GAMES.values(), ids=GAMES)
def test_a_partition_that_is_paid_for_once_is_beaten(budget, each):
    assert play(OncePaid(budget), each, k=4, rounds=7).judge(budget) is Verdict.REFUTED


# Interactive mechanisms with finite communication, beside each other


def interleaved(rule, loss, copies=2):
    """Every interleaving of so many copies of a mechanism with memory, launched and asked twice each."""
    part = FiniteMechanism(PART.table, loss=loss)
    messages = [(Ask(Launch(part)),) * 2, *(asked(child, True) for child in range(copies))]
    return exact(Concurrent(rule, every_step()), messages=messages, rounds=3 * copies)


IN_MU = PART.loss.as_gaussian()


@pytest.mark.parametrize(
    ("budget", "claimed"),
    [(GaussianDP(IN_MU.mu * F(142, 100)), IN_MU), (PART.loss.tensor_power(3), PART.loss)],
    ids=["Gaussian", "table"],
)
def test_interactive_mechanisms_interleave_within_the_budget(budget, claimed):
    loss = interleaved(Filter(budget), claimed)
    assert loss.judge(budget) is Verdict.HOLDS
    tensor = PART.loss.tensor(PART.loss)
    assert loss.bounds_at_growth(1).lower == largest(tensor, 1), "two fit, and interleaving them tells nothing more"
