"""Concurrent composition: pay at launch, free refusals, isolation of children, any nesting."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.carried import chained, shows

from counterpoint.coins.secure import SeededCoins
from counterpoint.composition.filters import Filter
from counterpoint.composition.odometers import Odometer
from counterpoint.encoding import Value, encode
from counterpoint.errors import NotCovered, NotTotal
from counterpoint.measures import PureDP, RenyiDP
from counterpoint.mechanisms.additive import Gaussian, Laplace
from counterpoint.mechanisms.concurrent import Concurrent, Launch, Refused
from counterpoint.mechanisms.mechanism import Left, Mechanism
from counterpoint.mechanisms.randomized_response import InteractiveRandomizedResponse, RandomizedResponse
from counterpoint.privacy.claims import claim
from counterpoint.privacy.messages import Ask, ToChild, Update
from counterpoint.privacy.relations import FirstMessage, Steps, every_step
from counterpoint.privacy.secret import reveal
from counterpoint.verify.finite import OpenDoor


def compose(budget=1, relation=None, **options):
    return Concurrent(Filter(PureDP(budget), **options), relation or every_step())


class FrailLaplace(Laplace, frozen=True):
    """A Laplace mechanism whose code fails on a value, and quotes it."""

    def step(self, state, message, coins):
        if reveal(message.private) == 8_675_309:
            raise ValueError(f"it is {reveal(message.private)}")
        return super().step(state, message, coins)


def test_a_child_whose_code_fails_leaves_nothing_of_what_it_saw():
    both, coins = compose(), SeededCoins(1)
    state, child = both.step(both.start(coins), Ask(Launch(FrailLaplace(1))), coins)
    with pytest.raises(NotTotal) as info:
        both.step(state, Ask(ToChild(child), private=8_675_309), coins)
    assert chained(info.value) == [] and not shows(info.value, 8_675_309, __file__)


class NoCoins:
    def __getattr__(self, name):
        raise AssertionError(f"{name} was tossed")


def drive(mechanism, *messages, seed=1):
    """All answers, and the state after each message; message i is stepped on coins of its own."""
    state, answers, states = mechanism.start(SeededCoins(seed)), [], []
    for number, message in enumerate(messages):
        state, answer = mechanism.step(state, message, SeededCoins(1000 * seed + number))
        answers.append(answer)
        states.append(state)
    return answers, states


def test_t03_a_refused_launch_consumes_nothing():
    composition = Concurrent(Filter(RenyiDP(2, 1)), every_step())
    launches = [Ask(Launch(Gaussian(rho))) for rho in ("0.3", "0.3", "0.2")]  # 2 rho each: 0.6, 0.6, 0.4
    answers, states = drive(composition, *launches)
    assert answers[0] == 0 and answers[1].error == "BudgetExceeded" and answers[2] == 1, "no gap in the indices"
    assert composition.loss(states[-1]) == RenyiDP(2, 1)
    assert encode(states[1], sealed=True) == encode(states[0], sealed=True)
    composition.step(states[0], launches[1], NoCoins())


def test_t04_children_outlive_the_budget():
    composition = compose()
    answers, states = drive(
        composition, Ask(Launch(Laplace(1, asks=50))), Ask(Launch(Laplace("0.1"))), *[Ask(ToChild(0), 7)] * 50
    )
    assert isinstance(answers[1], Refused)
    assert all(isinstance(answer, int) for answer in answers[2:])
    assert composition.loss(states[-1]) == PureDP(1)


def test_t04_in_the_literal_halt_mode_a_refusal_ends_everything():
    composition = compose(halt=True)
    answers, states = drive(composition, Ask(Launch(Laplace(1, asks=5))), Ask(Launch(Laplace("0.1"))))
    assert answers[1].error == "BudgetExceeded" and states[-1] is None
    answers, states = drive(composition, Ask(Launch(Laplace(1, asks=5))), Ask(ToChild(5), 1))
    assert answers[1].error == "InvalidRequest" and states[-1] is not None, "only a refused launch halts"


def test_t05_reading_the_loss_changes_nothing():
    composition, coins = compose(), SeededCoins(3)
    state = composition.start(coins)
    state, _ = composition.step(state, Ask(Launch(Laplace("0.5", asks=2))), coins)
    before = encode(state, sealed=True)
    assert {composition.loss(state) for _ in range(100)} == {PureDP("0.5")}
    assert encode(state, sealed=True) == before
    _after, answer = composition.step(state, Ask(ToChild(0, "privacy_loss"), 5), coins)
    assert isinstance(answer, int), "a child's message that spells privacy_loss is the child's"


children = [Laplace("0.2", asks=4), Laplace("0.1", asks=3), RandomizedResponse("0.3")]


@settings(max_examples=40)
@given(st.lists(st.integers(0, 2), max_size=12))
def test_t21_a_childs_transcript_does_not_depend_on_the_interleaving(order):
    """Each child is stepped on coins of its own (child, step); alone or interleaved, it says the same."""
    composition = compose()
    state = composition.start(SeededCoins(0))
    for child, mechanism in enumerate(children):
        state, index = composition.step(state, Ask(Launch(mechanism)), SeededCoins(child))
        assert index == child
    said = {child: [] for child in range(3)}
    for child in order:
        coins = SeededCoins(100 * child + len(said[child]))
        state, answer = composition.step(state, Ask(ToChild(child), 1), coins)
        said[child].append(answer)
    for child, mechanism in enumerate(children):
        alone, expected = mechanism.start(SeededCoins(child)), []
        for turn in range(len(said[child])):
            if alone is None:
                expected.append("halted")
                continue
            alone, answer = mechanism.step(alone, Ask(private=1), SeededCoins(100 * child + turn))
            expected.append(answer)
        assert ["halted" if isinstance(answer, Refused) else answer for answer in said[child]] == expected


def test_t21_misaddressed_and_malformed_messages_touch_no_child_and_no_coins():
    composition, coins = compose(), SeededCoins(1)
    state, _ = composition.step(composition.start(coins), Ask(Launch(Laplace(1))), coins)
    for message in [
        Ask(ToChild(7), 1),
        Ask(ToChild(-1), 1),
        Ask(ToChild("0"), 1),
        Ask(ToChild(True), 1),
        Ask(ToChild(0)),
        Ask(ToChild(0, ToChild(0)), 1),
    ]:
        after, answer = composition.step(state, message, NoCoins())
        assert after is state and answer.error == "InvalidRequest"
    assert not composition.accepts(Ask("garbage", 1)) and not composition.accepts(Ask(Launch("garbage")))


def test_a_childs_halt_is_that_childs_last_message_only():
    answers, _ = drive(
        compose(),
        Ask(Launch(Laplace("0.5"))),
        Ask(Launch(Laplace("0.5"))),
        Ask(ToChild(0), 1),
        Ask(ToChild(0), 1),
        Ask(ToChild(1), 1),
    )
    assert isinstance(answers[2], int) and answers[3].error == "Halted" and isinstance(answers[4], int)


def test_children_toss_independent_coins():
    composition, coins = compose(), SeededCoins(9)
    state = composition.start(coins)
    noise = []
    for _ in range(2):
        state, _ = composition.step(state, Ask(Launch(Laplace("0.01", asks=20))), coins)
    for _ in range(20):
        pair = []
        for child in range(2):
            state, answer = composition.step(state, Ask(ToChild(child), 0), coins)
            pair.append(answer)
        noise.append(pair)
    assert len({tuple(pair) for pair in noise}) == 20 and all(a != b for a, b in noise)


def test_a_launch_must_speak_of_the_neighbours_that_the_data_has():
    door, irr = OpenDoor("0.5"), InteractiveRandomizedResponse(1)
    for mechanism in (door, irr):
        answers, _ = drive(Concurrent(Filter(PureDP(5)), every_step()), Ask(Launch(mechanism)))
        assert answers[0].error == "RelationMismatch"
    stream = Steps(asks=0, updates=1, bound=1)
    answers, _ = drive(Concurrent(Filter(PureDP(5)), stream), Ask(Launch(Laplace(1))))
    assert answers == [0]
    answers, _ = drive(Concurrent(Filter(PureDP(5)), FirstMessage()), Ask(Launch(irr)))
    assert answers == [0]


def test_it_can_be_launched_in_itself_to_any_depth():
    inner = compose("0.5")
    launch_inside = Ask(ToChild(0, Launch(Laplace("0.5"))))
    answers, _states = drive(
        compose(),
        Ask(Launch(inner)),
        launch_inside,
        launch_inside,
        Ask(ToChild(0, ToChild(0)), 10),
        Ask(Launch(Laplace("0.5"))),
        Ask(Launch(Laplace("0.1"))),
    )
    assert answers[0] == 0 and answers[1] == 0 and answers[2].error == "BudgetExceeded"
    assert isinstance(answers[3], int) and answers[4] == 1 and answers[5].error == "BudgetExceeded"
    assert inner.claim.loss == PureDP("0.5") and inner.claim.relation == every_step()
    assert inner.claim.certificate.rests_on("Henzinger et al. 2024, Thm 12.4")


def test_an_odometer_has_no_claim_and_is_refused_inside_a_filter():
    counting = Concurrent(Odometer(PureDP), every_step())
    with pytest.raises(NotCovered):
        counting.claim  # noqa: B018 - asking is the point
    answers, _ = drive(compose(), Ask(Launch(counting)))
    assert answers[0].error == "NotCovered"
    answers, states = drive(counting, *[Ask(Launch(Laplace("0.1")))] * 30)
    assert answers == list(range(30)) and counting.loss(states[-1]) == PureDP(3)


class Tallying(Mechanism, Value, frozen=True):
    """Counts the updates it has received; says so without privacy. To see where updates go."""

    @property
    def claim(self):
        return claim(PureDP(0), Steps(updates=1, bound=1), "how many items arrived is public")

    def accepts(self, message):
        return isinstance(message, Ask | Update)

    def start(self, coins):
        return Left(0)

    def step(self, state, message, coins):
        return (Left(state.asks + 1), None) if isinstance(message, Update) else (state, state.asks)


def test_an_update_reaches_every_live_child_that_takes_updates_from_its_launch_on():
    composition = Concurrent(Filter(PureDP(1)), Steps(updates=1, bound=1))
    answers, _states = drive(
        composition,
        Ask(Launch(Tallying())),
        Update(1),
        Ask(Launch(Laplace(1))),
        Ask(Launch(Tallying())),
        Update(0),
        Ask(ToChild(0)),
        Ask(ToChild(2)),
        Ask(ToChild(1), 5),
    )
    assert answers[1] is None and answers[4] is None
    assert answers[5] == 2 and answers[6] == 1 and isinstance(answers[7], int)


def test_ten_tenths_fill_a_budget_of_one_and_then_nothing_fits():
    launches = [Ask(Launch(Laplace(0.1)))] * 10 + [Ask(Launch(Laplace(Fraction(1, 10**12))))]
    answers, _ = drive(compose(), *launches)
    assert answers[:10] == list(range(10)) and answers[10].error == "BudgetExceeded"
