"""What holds for every mechanism: plain states, redacted, total acceptance, untouched by what it refuses."""

import pickle
from inspect import Parameter, signature

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.mechanisms.catalogue import CATALOGUE

from counterpoint.coins.secure import SeededCoins
from counterpoint.encoding import Plain, decode, encode
from counterpoint.errors import Halted, InvalidParameter, InvalidRequest, NotCovered, SecretLeak
from counterpoint.mechanisms.additive import Laplace
from counterpoint.mechanisms.mechanism import Mechanism, State, step
from counterpoint.privacy.messages import Ask, ToChild, Update

NAMES = [type(mechanism).__name__ for mechanism, _ in CATALOGUE]
everything = pytest.mark.parametrize(("mechanism", "messages"), CATALOGUE, ids=NAMES)


class NoCoins:
    """Coins that must not be tossed."""

    def __getattr__(self, name):
        raise AssertionError(f"{name} was tossed")


@everything
def test_states_and_answers_round_trip_to_equal_bytes_after_every_step(mechanism, messages):
    coins = SeededCoins(1)
    state = mechanism.start(coins)
    for message in messages:
        data = encode(state, sealed=True)
        restored = decode(data, State)
        assert encode(restored, sealed=True) == data
        state, answer = mechanism.step(restored, message, coins)
        said = encode(answer)
        assert encode(decode(said, Plain)) == said  # type: ignore[arg-type]


@everything
def test_a_mechanism_round_trips_with_its_claim(mechanism, messages):
    back = decode(encode(mechanism), Mechanism)
    assert back == mechanism and encode(back) == encode(mechanism) and hash(back) == hash(mechanism)
    assert back.claim == mechanism.claim
    assert encode(decode(encode(mechanism.claim), type(mechanism.claim))) == encode(mechanism.claim)


@everything
def test_steps_are_deterministic_given_their_coins_and_leave_the_old_state_alone(mechanism, messages):
    coins = SeededCoins(1)
    state = mechanism.start(coins)
    for number, message in enumerate(messages):
        before = encode(state, sealed=True)
        one = mechanism.step(state, message, SeededCoins(number))
        two = mechanism.step(state, message, SeededCoins(number))
        assert encode(one, sealed=True) == encode(two, sealed=True)
        assert encode(state, sealed=True) == before
        state = one[0]
        if state is None:
            break


@everything
def test_states_show_nothing_and_are_never_pickled(mechanism, messages):
    coins = SeededCoins(1)
    state = mechanism.start(coins)
    for message in messages:
        assert repr(state) == f"{type(state).__qualname__}(...)"
        with pytest.raises(SecretLeak):
            pickle.dumps(state)
        state, _ = mechanism.step(state, message, coins)
        if state is None:
            break


garbage = st.one_of(
    st.none(),
    st.integers(),
    st.text(max_size=3),
    st.floats(),
    st.just(object()),
    st.lists(st.integers(), max_size=2),
)


@everything
@given(garbage=garbage)
def test_accepts_is_total_and_says_no_to_what_is_no_message(mechanism, messages, garbage):
    assert mechanism.accepts(garbage) is False


@everything
def test_what_is_not_accepted_changes_and_draws_nothing(mechanism, messages):
    state = mechanism.start(SeededCoins(1))
    before = encode(state, sealed=True)
    with pytest.raises(InvalidRequest):
        step(mechanism, state, "garbage", NoCoins())
    assert encode(state, sealed=True) == before


@everything
def test_accepted_messages_are_accepted_whatever_their_secret(mechanism, messages):
    for message in messages:
        assert mechanism.accepts(message)
        if message.private is not None and isinstance(message, Ask):
            twin = replace(message, private=message.private * 0)
            assert mechanism.accepts(twin)


@pytest.mark.parametrize("message", [Ask(), Update(1), Ask(ToChild(0), 1)])
def test_a_laplace_mechanism_wants_an_ask_of_its_own_with_a_value(message):
    assert not Laplace(1).accepts(message)


def test_a_halted_mechanism_says_so_before_it_looks_at_the_message():
    with pytest.raises(Halted):
        step(Laplace(1), None, Ask(private=1), NoCoins())


ONLY_PARTS = {"Concurrent", "Postprocessed", "Sampled", "Dice", "OpenDoor", "LoudNumber"}
"""Compositions and wrappers, whose parts state their errors; dice, which know no truth; and the two counterexamples."""
GAMES = {"FiniteMechanism", "SessionGame", "UnitByUnit"}
"""What the verifier plays with."""
OF_GRAPHS = {"Membership", "BlockResponse", "Guarded", "Neighbourhood", "MultiSparseVector"}
"""One user's part of a local protocol: the error is stated by the protocol."""


@everything
def test_it_says_how_far_off_it_is_with_a_probability_and_never_for_certain(mechanism, messages):
    if type(mechanism).__name__ in ONLY_PARTS | OF_GRAPHS | GAMES:
        with pytest.raises(NotCovered, match="does not say how far off"):  # else it belongs into neither list
            mechanism.error("0.5")
        return
    needed = list(signature(mechanism.error).parameters.values())[1:]
    rest = {parameter.name: 1 for parameter in needed if parameter.default is Parameter.empty}
    likely, surely = mechanism.error("0.5", **rest), mechanism.error("0.999999", **rest)
    assert encode(likely) and likely <= surely
    with pytest.raises(InvalidParameter):
        mechanism.error(1, **rest)
