"""A conversation alternates, ends when one party halts, and replays from its seeds."""

from counterpoint.coins.secure import SeededCoins
from counterpoint.composition.filters import Filter
from counterpoint.measures import PureDP
from counterpoint.mechanisms.additive import Laplace
from counterpoint.mechanisms.concurrent import Concurrent, Launch, Refused
from counterpoint.mechanisms.interaction import Analyst, interact
from counterpoint.privacy.messages import Ask, ToChild, Update
from counterpoint.privacy.relations import every_step


class Script(Analyst):
    """Sends what it is told, or what a function makes of the last answer."""

    def __init__(self, *messages):
        self.messages = messages

    def start(self):
        return 0

    def turn(self, own, answer, coins):
        if own == len(self.messages):
            return own, None
        message = self.messages[own]
        return own + 1, message(answer, coins) if callable(message) else message


def test_the_analyst_speaks_first_and_every_message_has_one_answer():
    heard = []
    analyst = Script(*[lambda answer, coins: (heard.append(answer), Ask(private=5))[1]] * 3)
    view = interact(analyst, Laplace(1, asks=5), SeededCoins(1))
    assert heard[0] is None and heard[1:] == list(view.answers[:2]) and len(view.answers) == 3
    assert view.halted_by == "analyst"


def test_the_mechanisms_last_answer_ends_the_conversation():
    view = interact(Script(*[Ask(private=5)] * 9), Laplace(1, asks=2), SeededCoins(1))
    assert len(view.exchanges) == 2 and view.halted_by == "mechanism"


def test_rounds_bound_the_conversation():
    view = interact(Script(*[Ask(private=5)] * 9), Laplace(1, asks=9), SeededCoins(1), rounds=4)
    assert len(view.exchanges) == 4 and view.halted_by == "nobody"


def test_a_malformed_message_is_answered_with_a_refusal_and_costs_no_ask():
    view = interact(Script("nonsense", Ask(), Update(1), Ask(private=5)), Laplace(1), SeededCoins(1))
    assert [type(answer) for answer in view.answers] == [Refused, Refused, Refused, int]
    plain = interact(Script(Ask(private=5)), Laplace(1), SeededCoins(1))
    assert plain.answers[0] == view.answers[3], "and no coins"


def test_the_view_holds_the_analysts_own_coins():
    random = Script(lambda answer, coins: Ask(private=coins.integer(1000)))
    one = interact(random, Laplace(1), SeededCoins(1), analyst_coins=SeededCoins(2))
    two = interact(random, Laplace(1), SeededCoins(1), analyst_coins=SeededCoins(3))
    assert len(one.coins) == 1 and one != two


def test_the_same_seeds_give_the_same_view_of_an_adaptive_conversation():
    def adaptive(answer, coins):
        child = coins.integer(2)
        return Ask(ToChild(child), private=(answer if isinstance(answer, int) else 0) + 1)

    launches = [Ask(Launch(Laplace("0.5", asks=20)))] * 2
    composition = Concurrent(Filter(PureDP(1)), every_step())
    views = [
        interact(Script(*launches, *[adaptive] * 15), composition, SeededCoins(seed), analyst_coins=SeededCoins(9))
        for seed in (1, 1, 2)
    ]
    assert views[0] == views[1] and views[0] != views[2]
    assert hash(views[0].exchanges) == hash(views[1].exchanges)
