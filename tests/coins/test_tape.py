"""A tape replays a run toss by toss, and notices where another run goes its own way."""

import pytest

from counterpoint.coins.secure import SeededCoins
from counterpoint.coins.tape import RecordingCoins, ReplayedCoins
from counterpoint.errors import TapeMismatch


def sub_experiment(shift, coins):
    return shift + coins.discrete_laplace(10)


def run(shift, coins):
    tosses = [coins.bernoulli("0.5"), coins.logistic(1), coins.integer(10), coins.discrete_gaussian(100)]
    tosses += coins.rounded_normal(900, 2).tolist()
    return [*tosses, coins.discrete_laplace(5, 3).tolist(), shift + coins.call(sub_experiment, shift)]


def recorded(shift):
    coins = RecordingCoins(SeededCoins(7))
    return run(shift, coins), coins.tape


def test_the_same_run_replays_to_the_same_results():
    results, tape = recorded(0)
    replay = ReplayedCoins(tape)
    assert run(0, replay) == results and replay.finished


def test_recording_does_not_disturb_the_coins():
    assert recorded(0)[0] == run(0, SeededCoins(7))


def test_another_world_on_equal_coins_differs_by_its_data_alone():
    results, tape = recorded(0)
    other = run(3, ReplayedCoins(tape))
    assert other[:-1] == results[:-1] and other[-1] == results[-1] + 6


def test_whole_outcomes_can_be_replayed_instead_of_tosses():
    results, tape = recorded(0)
    assert run(3, ReplayedCoins(tape, outcomes=True))[-1] == results[-1] + 3


@pytest.mark.parametrize(
    "deviant",
    [lambda c: c.integer(11), lambda c: c.bernoulli("0.4"), lambda c: c.call(sub_experiment, 0)],
)
def test_another_toss_than_the_recorded_one_is_noticed(deviant):
    with pytest.raises(TapeMismatch):
        deviant(ReplayedCoins(recorded(0)[1]))


def test_tossing_more_or_less_than_the_recorded_run_is_noticed():
    _, tape = recorded(0)
    replay = ReplayedCoins(tape)
    run(0, replay)
    with pytest.raises(TapeMismatch):
        replay.integer(2)

    def idle(shift, coins):
        return shift

    idle.__qualname__ = "sub_experiment"
    replay = ReplayedCoins(tape)
    run_prefix = [
        replay.bernoulli("0.5"),
        replay.logistic(1),
        replay.integer(10),
        replay.discrete_gaussian(100),
    ]
    assert run_prefix and replay.rounded_normal(900, 2) is not None and replay.discrete_laplace(5, 3) is not None
    with pytest.raises(TapeMismatch):
        replay.call(idle, 0)


def test_a_tape_does_not_print_its_results():
    _, tape = recorded(0)
    assert all("..." in repr(toss) for toss in tape)


def test_vectors_of_tosses_and_integers_are_replayed():
    recording = RecordingCoins(SeededCoins(1))
    heads, drawn = recording.bernoulli("1/3", 4), recording.integer(7, 4)
    replay = ReplayedCoins(recording.tape)
    assert replay.bernoulli("1/3", 4).tolist() == heads.tolist() and replay.integer(7, 4).tolist() == drawn.tolist()
    with pytest.raises(TapeMismatch):
        ReplayedCoins(recording.tape).bernoulli("1/3")
