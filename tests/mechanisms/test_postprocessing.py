"""Postprocessors stand before the mechanism, see nothing secret, chain, and cannot unsay an answer."""

import math

import pytest
from tests.carried import chained
from tests.mechanisms.catalogue import Forward

from counterpoint.coins.secure import SeededCoins
from counterpoint.coins.tape import RecordingCoins
from counterpoint.encoding import Value, encode
from counterpoint.errors import Halted, InvalidParameter, InvalidRequest, NotTotal, SecretLeak
from counterpoint.measures import ApproxDP, Loss, OneSidedDP, ProbabilisticDP, PureDP
from counterpoint.mechanisms.additive import Laplace
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.mechanisms.postprocessing import Chain, Failed, Postprocessed, Postprocessor, postprocess
from counterpoint.mechanisms.sparse_vector import SparseVector
from counterpoint.privacy.claims import claim
from counterpoint.privacy.messages import Ask, Update
from counterpoint.privacy.relations import every_step
from counterpoint.privacy.secret import reveal


class Post(Postprocessor, Value, frozen=True):
    """A postprocessor whose reaction is given by a test."""

    name: str

    def start(self):
        return ()

    def react(self, own, request, ask):
        return REACTIONS[self.name](own, request, ask)


def blocked(own, request, ask):
    return own, "blocked" if request == "secret" else ask(request)


def averaged(own, request, ask):
    return own, sum(ask(request) for _ in range(4)) // 4


def tagged(tag):
    return lambda own, request, ask: ((*own, request), (tag, ask((tag, request))))


def greedy(own, request, ask):
    answers = []
    while not ask.halted:
        answers.append(ask())
    try:
        ask()
    except Halted:
        answers.append("halted")
    return own, tuple(answers)


def breaking_after(own, request, ask):
    raise ValueError(f"the answer was {ask(request)}")


def breaking_before(own, request, ask):
    raise ValueError("not my kind of request")


REACTIONS = {
    "blocked": blocked,
    "averaged": averaged,
    "first": tagged("first"),
    "second": tagged("second"),
    "greedy": greedy,
    "breaking after": breaking_after,
    "breaking before": breaking_before,
    "floating": lambda own, request, ask: (0.5, ask(request)),
    "floating at once": lambda own, request, ask: (0.5, None),
    "misasking": lambda own, request, ask: (own, ask(To_MISTAKE)),
    "mute": lambda own, request, ask: (own, "no"),
}
To_MISTAKE = Ask("a message is not a public part")


class Echo(Mechanism, Value, frozen=True):
    """Answers with the public part, without privacy: to see what reaches a mechanism."""

    claim = Laplace(1).claim

    def accepts(self, message):
        return isinstance(message, Ask)

    def start(self, coins):
        return Laplace(1).start(coins)

    def step(self, state, message, coins):
        return state, message.public


def run(mechanism, *asks, coins=None):
    coins = coins or SeededCoins(1)
    state, answers = mechanism.start(coins), []
    for ask in asks:
        state, answer = mechanism.step(state, ask, coins)
        answers.append(answer)
    return state, answers


def test_x3_a_blocking_postprocessor_sees_the_query_before_the_mechanism():
    coins = RecordingCoins(SeededCoins(1))
    _, answers = run(postprocess(Post("blocked"), Laplace(1, asks=5)), Ask("secret", 7), Ask("open", 7), coins=coins)
    assert answers[0] == "blocked" and isinstance(answers[1], int)
    assert sum(toss.kind == "call" and "step" in str(toss.parameters) for toss in coins.tape) == 1


def test_x3_two_forwarders_in_a_chain_terminate():
    _, answers = run(postprocess(Forward(), Forward(), Echo()), Ask("hello"), Ask("again"))
    assert answers == ["hello", "again"]


def test_a_chain_passes_requests_rightward_and_answers_leftward():
    _, answers = run(postprocess(Post("first"), Post("second"), Echo()), Ask("q"))
    assert answers == [("first", ("second", ("second", ("first", "q"))))]


def test_a_chain_is_the_same_as_postprocessing_what_is_postprocessed():
    chained = postprocess(Post("first"), Post("second"), Laplace(1, asks=3))
    nested = Postprocessed(Post("first"), Postprocessed(Post("second"), Laplace(1, asks=3)))
    asks = [Ask("a", 10), Ask("b", 20)]
    assert run(chained, *asks)[1] == run(nested, *asks)[1]


def test_three_postprocessors_chain_in_order():
    mechanism = postprocess(Forward(), Post("first"), Post("second"), Echo())
    assert mechanism.postprocessor == Chain(Forward(), Chain(Post("first"), Post("second")))


def test_a_postprocessor_may_ask_many_times_or_never():
    state, answers = run(postprocess(Post("averaged"), Laplace(1, asks=8)), Ask(private=100), Ask(private=100))
    assert all(abs(answer - 100) < 200 for answer in answers)
    assert state is not None
    _, mute = run(postprocess(Post("mute"), Laplace(1)), *[Ask(private=1)] * 5)
    assert mute == ["no"] * 5


def test_a_postprocessor_learns_of_the_halt_and_may_go_on_by_itself():
    state, (answers, nothing) = run(postprocess(Post("greedy"), Laplace(1, asks=2)), Ask(private=9), Ask(private=9))
    assert len(answers) == 3 and answers[-1] == "halted" and nothing == ("halted",)
    assert state is not None


def test_it_costs_nothing():
    plain, processed = Laplace(1).claim, postprocess(Forward(), Laplace(1)).claim
    assert processed.loss == plain.loss and processed.relation == plain.relation
    assert processed.certificate.rests_on("Haney et al. 2023, Thm 2.17")


def test_a_failure_after_an_answer_was_seen_halts_and_does_not_tell_it():
    state, (answer,) = run(postprocess(Post("breaking after"), Laplace(1, asks=9)), Ask("q", 5))
    assert state is None and answer == Failed("ValueError")
    state, (answer,) = run(postprocess(Post("floating"), Laplace(1, asks=9)), Ask("q", 5))
    assert state is None and answer == Failed("InvalidParameter")


def test_a_failure_before_anything_was_asked_changes_nothing():
    mechanism, coins = postprocess(Post("breaking before"), Laplace(1)), SeededCoins(1)
    state = mechanism.start(coins)
    before = encode(state, sealed=True)
    with pytest.raises(ValueError, match="not my kind"):
        mechanism.step(state, Ask("q", 5), coins)
    assert encode(state, sealed=True) == before


def test_its_own_state_is_plain_data_without_floats():
    mechanism, coins = postprocess(Post("floating at once"), Laplace(1)), SeededCoins(1)
    with pytest.raises(InvalidParameter, match="float"):
        mechanism.step(mechanism.start(coins), Ask("q", 5), coins)


def test_what_the_mechanism_does_not_accept_is_the_postprocessors_error():
    mechanism, coins = postprocess(Post("blocked"), Laplace(1)), SeededCoins(1)
    with pytest.raises(InvalidRequest):
        mechanism.step(mechanism.start(coins), Ask("no value comes with this"), coins)


def test_it_never_sees_a_private_value_or_a_state():
    seen = []
    REACTIONS["spy"] = lambda own, request, ask: (seen.append((own, request, ask)), (own, ask(request)))[1]
    run(postprocess(Post("spy"), Laplace(1)), Ask("q", 123456789))
    assert "123456789" not in repr(seen) and seen[0][1] == "q"
    _own, _request, ask = seen[0]
    with pytest.raises(SecretLeak):
        encode(ask._message)


def test_no_face_of_what_it_asks_with_shows_a_state_or_lets_it_deny_that_it_asked():
    shown = []

    def looking(own, request, ask):
        ask(request)
        shown.extend(name for name in dir(ask) if not name.startswith("_"))
        return own, None

    def denying(own, request, ask):
        answer = ask(request)
        ask.asked = False
        raise ValueError(answer)

    REACTIONS.update(looking=looking, denying=denying)
    sparse, coins = postprocess(Post("looking"), SparseVector(1, 0)), SeededCoins(1)
    sparse.step(sparse.start(coins), Ask(private=0), coins)
    assert shown == ["coins", "halted"]
    denier = postprocess(Post("denying"), Laplace(1))
    assert denier.step(denier.start(coins), Ask(private=0), coins) == (None, Failed("AttributeError"))


class PartialLaplace(Laplace, frozen=True):
    """A Laplace mechanism whose code fails on large values."""

    def step(self, state, message, coins):
        held = reveal(message.private)
        if held > 5:
            raise ValueError(f"{held} is too much")
        return super().step(state, message, coins)


@pytest.mark.parametrize("after", ["answers", "raises"])
def test_a_postprocessor_cannot_catch_the_failure_of_its_mechanism_and_answer_by_it(after):
    def swallowing(own, request, ask):
        try:
            return own, ask(request)
        except NotTotal as error:
            seen.append(error)
            if after == "raises":
                raise KeyError(request) from None
        return own, "large"

    REACTIONS["swallowing"], seen = swallowing, []
    for value in (6, 8_675_309):
        state, answers = run(postprocess(Post("swallowing"), PartialLaplace(1, asks=9)), Ask("q", value))
        assert state is None and answers == [Failed("NotTotal")]
        assert chained(seen[-1]) == [] and "8675309" not in str(seen[-1])


def test_updates_pass_by_a_postprocessor_only_to_mechanisms_that_take_them():
    assert not postprocess(Forward(), Laplace(1)).accepts(Update(1))


@pytest.mark.parametrize("parties", [(), (Laplace(1),), (Forward(),), (Laplace(1), Forward()), ("x", Laplace(1))])
def test_anything_else_than_postprocessors_and_then_a_mechanism_is_refused(parties):
    with pytest.raises(InvalidParameter):
        postprocess(*parties)


class Claiming(Mechanism, Value, frozen=True):
    """A mechanism that only claims."""

    loss: Loss

    @property
    def claim(self):
        return claim(self.loss, every_step(), "a test", interaction="one-shot")

    def accepts(self, message):
        return False

    def start(self, coins):
        raise NotImplementedError

    def step(self, state, message, coins):
        raise NotImplementedError


@pytest.mark.parametrize("loss", [ProbabilisticDP(1, "0.01"), OneSidedDP(1, "0.01")], ids=repr)
def test_postprocessing_keeps_no_more_of_a_probabilistic_loss_than_approximate_dp(loss):
    """Chances 0.01 and 0 of one answer, 0.71 and 0.263 of another (log 0.71/0.263 < 1): together log 0.72/0.263 > 1.

    So the loss exceeds 1 with probability 0.01, and with 0.72 once the two answers are not told apart.
    """
    assert math.log(0.71 / 0.263) < 1 < math.log(0.72 / 0.263)
    assert postprocess(Post("blocked"), Claiming(loss)).claim.loss == ApproxDP(1, "0.01")
    assert postprocess(Post("blocked"), Claiming(PureDP(1))).claim.loss == PureDP(1)
