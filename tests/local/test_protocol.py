"""Protocols: the engine's rules, its certificates, users who come and go, and tiny protocols checked exactly."""

from fractions import Fraction

import numpy as np
import pytest

from counterpoint.coins.coins import Coins
from counterpoint.coins.secure import SeededCoins
from counterpoint.encoding import Value
from counterpoint.errors import (
    BudgetExceeded,
    Halted,
    InvalidParameter,
    InvalidRequest,
    NotAllowed,
    NotCovered,
    NotTotal,
    RelationMismatch,
)
from counterpoint.local.peeling import Fewer, Knows, Neighbourhood
from counterpoint.local.properties import Anything, Asked, AtMost, Data, Guarded
from counterpoint.local.protocol import Done, Protocol, Server
from counterpoint.local.responders import Among, Members, Membership
from counterpoint.local.users import Dealer, Round, UserObjects
from counterpoint.measures import ApproxDP, PureDP
from counterpoint.mechanisms.concurrent import Launch, Refused
from counterpoint.mechanisms.mechanism import Chosen, Left, Mechanism
from counterpoint.mechanisms.noisy_max import NoisyMax
from counterpoint.mechanisms.randomized_response import InteractiveRandomizedResponse
from counterpoint.mechanisms.sparse_vector import SparseVector
from counterpoint.privacy.messages import Ask, ToChild
from counterpoint.privacy.relations import FirstMessage, Steps, every_step, first_pair_consistent, k_sparse
from counterpoint.privacy.secret import Secret, reveal

STATIC = first_pair_consistent(1, FirstMessage())
CHANGING = k_sparse(1, Steps(total=1))
BOTH = Among(1, (0, 1))
ONCE = AtMost(1)


class Script(Server):
    """Asks the given rounds and returns all answers."""

    def __init__(self, *rounds):
        self.rounds = rounds

    def start(self):
        return ()

    def turn(self, own, answers, coins):
        own = own if answers is None else (*own, answers)
        return own, self.rounds[len(own)] if len(own) < len(self.rounds) else Done(own)


def three(allowed=ONCE, server=None, neighbours=STATIC, epsilon=1):
    return Protocol(server or Script(), [Membership(epsilon, bits=1)] * 3, neighbours, allowed)


def test_the_claim_is_derived_from_the_users_and_says_so():
    claim = three().claim
    assert claim.loss == PureDP(1) and claim.relation == STATIC
    for theorem in ("Thm 8.7", "Cor 8.8", "Thm 5.14", "8.5: a query", "Lemma 2.4"):
        assert claim.certificate.rests_on(theorem), theorem
    assert three(neighbours=first_pair_consistent(2, FirstMessage())).claim.loss.as_pure() == PureDP(2)
    assert three(neighbours=CHANGING).claim.certificate.rests_on("Remark 8.10")


def test_colluders_leave_the_concurrent_composition_of_their_targets():
    protocol = three()
    assert protocol.collusion(1).loss == PureDP(1) and protocol.collusion(3).loss == PureDP(3)
    assert protocol.collusion(2).certificate.rests_on("Remark 8.11") and protocol.collusion(2).relation.k == 2
    with pytest.raises(InvalidParameter):
        protocol.collusion(0)


def test_a_claim_that_needs_a_property_is_refused_without_it():
    with pytest.raises(RelationMismatch, match="AtMost"):
        three(allowed=AtMost(2))
    with pytest.raises(RelationMismatch):
        three(allowed=None)
    with pytest.raises(RelationMismatch):
        Guarded(Membership(1, bits=1), Anything())


def test_queries_that_the_property_does_not_allow_are_refused_before_anybody_tosses():
    running = three().open([1, 0, 1], SeededCoins(1))
    running.ask(Round((0,), BOTH))
    for round_ in (Round((0,), BOTH), Round((1, 0, 2), BOTH)):
        with pytest.raises(NotAllowed):
            running.ask(round_)
    other = three().open([1, 0, 1], SeededCoins(1))
    other.ask(Round((0,), BOTH))
    assert running.ask(Round((1, 2), BOTH)) == other.ask(Round((1, 2), BOTH)), "a refusal tosses no coins"
    assert running.rounds == 2 and running.asks == 3


@pytest.mark.parametrize(
    "bad", [Round((3,), BOTH), Round((-1,), BOTH), Round((0, 0), BOTH), Round(("0",), BOTH), Round((0,), "hello")]
)
@pytest.mark.parametrize("users", [UserObjects([Membership(1, bits=1)] * 3), Members(1, bits=1)])
def test_a_malformed_round_is_refused_in_both_forms(users, bad):
    with pytest.raises(InvalidRequest):
        Protocol(Script(), users, STATIC, AtMost(1)).open([1, 0, 1], SeededCoins(1)).ask(bad)


class Fickle:
    """A round that says something else whenever it is read: first what is allowed, then one bit a hundred times."""

    def __init__(self, readings):
        self.to, self.readings = (0,), iter(readings)

    @property
    def query(self):
        return next(self.readings)


@pytest.mark.parametrize("users", [UserObjects([Membership(1, bits=1)]), Members(1, bits=1)])
@pytest.mark.parametrize("harmless", [1, 2, 3])
def test_what_was_checked_is_what_is_answered_even_if_the_round_changes_its_mind(users, harmless):
    said = Fickle([BOTH] * harmless + [Among(1, (1,) * 100)] * 9)
    running = Protocol(Script(), users, STATIC, AtMost(1)).open([1], SeededCoins(1))
    assert len(running.ask(said)[0]) == 2
    present = users.meet([1], SeededCoins(1))
    assert len(present.answer(Fickle([BOTH] * harmless + [Among(1, (1,) * 100)] * 9), SeededCoins(1))[0]) == 2


def test_dealt_coins_toss_everything_that_coins_toss():
    coins = Dealer(SeededCoins(1), 2).to(1)
    assert isinstance(coins, Coins)
    assert coins.choose([800, 0]) == 1 and coins.geometric(5, size=3).min() >= 0 and coins.geometric("0.001") == 0
    users = UserObjects([Selector()] * 3).meet([(9000, 0), (0, 9000), (0, 9000)], SeededCoins(1))
    assert users.answer(Round((0, 1, 2)), SeededCoins(2)) == (Chosen(0), Chosen(1), Chosen(1))


class Selector(Mechanism, Value, frozen=True):
    """A user who tells the larger of two numbers, by permute-and-flip."""

    @property
    def claim(self):
        return NoisyMax(1).claim

    def accepts(self, message):
        return True

    def start(self, coins):
        return Knows(Secret((0, 0)), Left(1))

    def step(self, state, message, coins):
        if isinstance(message.public, Data):
            return Knows(message.private, state.inner), None
        inner, answer = NoisyMax(1).step(state.inner, Ask(private=state.neighbours), coins)
        return (None if inner is None else Knows(state.neighbours, inner)), answer


def test_both_forms_keep_the_property_and_answer_alike():
    rounds = [Round((0, 2, 3), Among(2, (0, 1, 3))), Round((4,), Among(1, (1,))), Round((1,), Among(2, (2, 1)))]
    server = Script(*rounds)
    users = [Membership(1, bits=2)] * 5
    for seed in range(10):
        one = Protocol(server, users, STATIC, AtMost(1)).run([0, 1, 2, 3, 9], SeededCoins(seed))
        crowd = Protocol(server, Members(1, bits=2), STATIC, AtMost(1)).run([0, 1, 2, 3, 9], SeededCoins(seed))
        assert [[list(row) for row in rows] for rows in one.result] == [rows.tolist() for rows in crowd.result]
    running = Protocol(server, Members(1, bits=2), STATIC, AtMost(1)).open([0] * 5, SeededCoins(1))
    running.ask(rounds[0])
    with pytest.raises(NotAllowed):
        running.ask(Round((1, 3), Among(1, (0,))))
    running.ask(Round((1,), Among(1, (0,))))


def test_the_engine_answers_as_the_mechanism_that_is_verified():
    protocol = three()
    running = protocol.open([1, 0, 1], SeededCoins(5))
    mechanism, coins = protocol.mechanism, SeededCoins(5)
    state = mechanism.start(coins)
    for child, value in enumerate((1, 0, 1)):
        state, number = mechanism.step(state, Ask(Launch(protocol.admit(Membership(1, bits=1)))), coins)
        assert number == child
        state, _ = mechanism.step(state, Ask(ToChild(child, Data()), value), coins)
    for user in (2, 0, 1):
        state, said = mechanism.step(state, Ask(ToChild(user, BOTH)), coins)
        assert running.ask(Round((user,), BOTH)) == (said,)
    state, said = mechanism.step(state, Ask(ToChild(1, BOTH)), coins)
    assert isinstance(said, Refused) and said.error == "NotAllowed"
    assert protocol.claim.loss == mechanism.claim.loss


def test_the_view_is_the_server_s_coins_and_every_round():
    class Tossing(Server):
        def start(self):
            return None

        def turn(self, own, answers, coins):
            return own, Round((coins.integer(3),), BOTH) if answers is None else Done(answers)

    outcome = three(server=Tossing()).run([1, 0, 1], SeededCoins(1), server_coins=SeededCoins(2))
    assert [toss.kind for toss in outcome.view.coins] == ["integer"]
    ((said, answers),) = outcome.view.rounds
    assert answers == outcome.result and said.query == BOTH and outcome.rounds == outcome.asks == 1
    assert three(server=Tossing()).run([1, 0, 1], keep_view=False).view is None


class FrailUser(Membership, frozen=True):
    """A user whose code fails on one value."""

    def step(self, state, message, coins):
        if message.private is None and reveal(state.value) == 1:
            raise ValueError(f"{reveal(state.value)}")
        return super().step(state, message, coins)


def test_a_user_whose_code_fails_has_halted_and_draws_nothing_again():
    coins = SeededCoins(1)
    meeting = UserObjects([FrailUser(1, bits=1)] * 2).meet([0, 1], coins)
    with pytest.raises(NotTotal) as info:
        meeting.answer(Round((1,), BOTH), coins)
    assert info.value.__context__ is None and info.value.__cause__ is None
    with pytest.raises(Halted):
        meeting.answer(Round((1,), BOTH), coins)
    assert len(meeting.answer(Round((0,), BOTH), coins)) == 1 and meeting.live == (0,)


def test_users_join_and_leave_and_their_data_change():
    running = Protocol(Script(), [vertex()] * 2, k_sparse(2, Steps(total=1))).open([(0, 0, 0)] * 2, SeededCoins(1))
    newcomer = running.join(vertex(), (0, 0, 0))
    assert newcomer == 2 and running.ask(Round((0, 1, 2), Fewer((0, 1, 2), -1))) == (False,) * 3
    running.update(0, (0, 1, 1))
    running.update(0, (0, -1, 0))
    running.leave(1)
    with pytest.raises(Halted):
        running.ask(Round((1,), Fewer((0,), 1)))
    running.update(1, (1, 0, 0))
    assert running.ask(Round((0,), Fewer((0, 1, 2), 1))) == (False,), "it has one neighbour left"
    assert running.ask(Round((0,), Fewer((0, 1), 1))) == (True,)
    with pytest.raises(Halted):
        running.ask(Round((0,), Fewer((0, 1), 1)))
    with pytest.raises(InvalidRequest):
        running.update(0, (0, 1), sensitivity=1)
    with pytest.raises(InvalidRequest):
        running.update(7, (0, 0, 0))


def vertex(epsilon=60):
    return Neighbourhood(SparseVector(epsilon, 0, monotone=True), 3)


def test_data_that_must_not_change_do_not():
    running = Protocol(Script(), [vertex()] * 2, first_pair_consistent(2, FirstMessage())).open([(0, 0, 0)] * 2)
    with pytest.raises(RelationMismatch, match="Remark 8"):
        running.update(0, (0, 1, 0))
    assert running.join(vertex(), (0, 0, 0)) == 2
    with pytest.raises(BudgetExceeded):
        running.join(vertex(61), (0, 0, 0))
    with pytest.raises(NotCovered, match="crowd"):
        Protocol(Script(), Members(1, bits=1), STATIC, AtMost(1)).open([1]).join(Membership(1, bits=1), 1)


def test_every_user_s_delta_counts_on_data_that_change():
    users = [InteractiveRandomizedResponse(1, "0.01")] * 2
    with pytest.raises(NotCovered):
        Protocol(Script(), users, k_sparse(1, FirstMessage()))
    protocol = Protocol(Script(), users, k_sparse(1, FirstMessage()), delta_total="0.025")
    assert protocol.claim.loss == ApproxDP(1, "0.025")
    running = protocol.open([0, 1])
    with pytest.raises(BudgetExceeded):
        running.join(users[0], 1)
    with pytest.raises(BudgetExceeded):
        Protocol(Script(), users * 2, k_sparse(1, FirstMessage()), delta_total="0.025")
    assert Protocol(Script(), users * 9, STATIC).claim.loss == ApproxDP(1, "0.01"), "not if data stand still"


def test_users_of_unlike_losses_cost_the_k_largest():
    users = [Membership(1, bits=1), Membership(2, bits=1), *[Membership("0.5", bits=1)] * 9]
    assert Protocol(Script(), users, STATIC, AtMost(1)).claim.loss == PureDP(2)
    two = first_pair_consistent(2, FirstMessage())
    protocol = Protocol(Script(), users, two, AtMost(1))
    assert protocol.rule.each == (PureDP(2), PureDP(1)) and protocol.claim.loss.as_pure() == PureDP(3)
    assert protocol.collusion(3).loss == PureDP("3.5")
    mixed = [InteractiveRandomizedResponse(1, "0.1"), InteractiveRandomizedResponse(2, "0.01")]
    assert Protocol(Script(), mixed, STATIC).claim.loss == ApproxDP(2, "0.1"), "each coordinate by itself"


def test_who_joins_later_finds_a_place_among_the_losses_that_were_paid_for():
    users = [Membership(1, bits=1), Membership(2, bits=1), Membership("0.5", bits=1)]
    protocol = Protocol(Script(), users, first_pair_consistent(2, FirstMessage()), AtMost(1))
    running = protocol.open([0, 1, 0], SeededCoins(1))
    running.join(Membership(1, bits=1), 1)
    with pytest.raises(BudgetExceeded, match=r"PureDP\(1\) is the largest left"):
        running.join(Membership("1.5", bits=1), 1)


def test_many_users_cost_the_optimal_composition_of_k():
    protocol = Protocol(
        Script(), [Membership("0.1", bits=1)] * 60, first_pair_consistent(50, FirstMessage()), AtMost(1)
    )
    assert round(protocol.claim.loss.epsilon_at(1e-6), 2) == 3.17


@pytest.mark.parametrize("bad", [{"server": 1}, {"neighbours": every_step()}, {"allowed": 3}, {"users": [3]}])
def test_a_protocol_is_made_of_the_right_things(bad):
    good = {"server": Script(), "users": [Membership(1, bits=1)], "neighbours": STATIC, "allowed": AtMost(1)}
    with pytest.raises(InvalidParameter):
        Protocol(**{**good, **bad})


def test_data_for_another_number_of_users_are_refused():
    for data in ([1, 0], [1, 0, 1, 1]):
        with pytest.raises(InvalidParameter):
            three().open(data)
    with pytest.raises(InvalidRequest):
        three().open([1, 0, (1, 1)])
    with pytest.raises(InvalidParameter):
        Protocol(Script(), Members(1, bits=1), STATIC, AtMost(1)).open([0.5, 1])


def test_a_finished_protocol_takes_no_more_turns():
    running = three().open([1, 0, 1])
    running.finish()
    with pytest.raises(Halted):
        running.turn()


def test_refusals_are_the_same_on_neighbouring_data():
    bad = [Round((3,), BOTH), Round((0,), "x"), Round((0, 0), BOTH)]
    said = []
    for data in ([0, 0, 0], [0, 1, 0]):
        running = three().open(data, SeededCoins(1))
        for round_ in bad:
            with pytest.raises(InvalidRequest) as error:
                running.ask(round_)
            said.append(str(error.value))
    assert said[:3] == said[3:]


def test_dealt_coins_are_different_for_every_user_and_every_draw():
    dealer = Dealer(SeededCoins(1), 3)
    users = [dealer.to(place) for place in range(3)]
    drawn = [user.discrete_laplace(1000) for user in users for _ in range(4)]
    assert len(set(drawn)) > 8
    wide = [user.discrete_gaussian(10**6, size=2).tolist() for user in users]
    assert len({tuple(pair) for pair in wide}) == 3
    again = Dealer(SeededCoins(1), 3)
    assert again.draw(0, "laplace", Fraction(1000), 1).tolist() == drawn[::4]


def test_the_relation_of_a_property_is_contained_where_it_should_be():
    once, twice = Asked(every_step(), AtMost(1)), Asked(every_step(), AtMost(2))
    assert once.within(twice) and not twice.within(once) and once.within(every_step()) and once.symmetric
    assert not every_step().within(once)


def test_arrays_of_answers_are_read_in_the_order_of_the_round():
    protocol = Protocol(Script(), Members(80, bits=3), STATIC, AtMost(1))
    answers = protocol.open(np.arange(8), SeededCoins(1)).ask(Round((6, 1), Among(3, (1, 6))))
    assert answers.tolist() == [[0, 1], [1, 0]]
