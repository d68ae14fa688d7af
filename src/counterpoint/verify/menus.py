"""What an adversary may send to a shipped mechanism if nobody says: a few pairs of messages that make it lose most.

Pairs move by as much as the claim's relation allows, both ways, with values where the mechanism decides something (a
threshold, a margin). A composition can hold anything, so there one must say.

>>> from counterpoint import Laplace
>>> from counterpoint.verify.adversary import said
>>> [said(pair) for pair in menu(Laplace(1, asks=2)).pairs], menu(Laplace(1, asks=2)).rounds
(['Ask(private=0 | 1)', 'Ask(private=1 | 0)'], 2)
"""

from collections.abc import Iterable
from functools import singledispatch
from math import ceil
from typing import NamedTuple

from counterpoint.encoding import Plain
from counterpoint.errors import InvalidParameter
from counterpoint.mechanisms.additive import Additive
from counterpoint.mechanisms.comparing import Comparing
from counterpoint.mechanisms.counters import Counter
from counterpoint.mechanisms.examples import LoudNumber, OpenDoor
from counterpoint.mechanisms.guess_and_check import GuessAndCheck
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.mechanisms.monotone_histogram import MonotoneHistogram
from counterpoint.mechanisms.postprocessing import Postprocessed
from counterpoint.mechanisms.randomized_response import InteractiveRandomizedResponse, RandomizedResponse
from counterpoint.privacy.messages import Ask, Update
from counterpoint.privacy.relations import OneWay, Pair
from counterpoint.privacy.secret import Raw


class Menu(NamedTuple):
    """Pairs of messages, and how many rounds are enough to see something."""

    pairs: tuple[Pair, ...]
    rounds: int


def asks(
    values: Iterable[tuple[Raw, Raw]], public: Plain = None, sensitivity: int = 1, *, one_way: bool = False
) -> tuple[Pair, ...]:
    """Pairs of asks about these pairs of values.

    >>> asks([(0, 1)])[0][1].sensitivity
    1
    """

    def ask(value: Raw) -> Ask:
        return Ask(public, value, sensitivity, one_way=one_way)

    return tuple((ask(left), ask(right)) for left, right in values)


def updates(values: Iterable[tuple[int, int]]) -> tuple[Pair, ...]:
    """Pairs of updates with these pairs of values."""
    return tuple((Update(left), Update(right)) for left, right in values)


_BITS = [(0, 1), (1, 0)]
_ASK: Pair = (Ask(), Ask())


@singledispatch
def menu(mechanism: Mechanism) -> Menu:
    """The default messages and rounds for a mechanism; `InvalidParameter` where there is no obvious choice."""
    raise InvalidParameter(
        f"there is no obvious choice of messages for {type(mechanism).__name__}: give messages=[(left, right), ...], "
        "pairs of neighbouring messages, and rounds="
    )


@menu.register
def _(mechanism: Additive) -> Menu:
    return Menu(asks(_BITS), mechanism.asks)


@menu.register
def _(mechanism: RandomizedResponse) -> Menu:
    return Menu(asks([(0, 1)]), 1)


@menu.register
def _(mechanism: InteractiveRandomizedResponse) -> Menu:
    return Menu((*asks([(0, 1)]), _ASK), 2)


@menu.register
def _(mechanism: OpenDoor) -> Menu:
    return Menu(asks([(0, 0), (0, 1)]), 2)


@menu.register
def _(mechanism: LoudNumber) -> Menu:
    numbers = [(Ask(number), Ask(number)) for number in range(1, mechanism.numbers + 1)]
    return Menu((*asks([(0, 1)]), *numbers), 2)


@menu.register
def _(mechanism: Comparing) -> Menu:
    at, step = ceil(mechanism.threshold), mechanism.sensitivity
    moved = [(at - step, at), (at, at - step), (at, at + step), (at + step, at), (at, at)]
    # far away the answer is sure, and what it says of the noise on the threshold is most
    far = 8 * ceil(max(mechanism.scales))
    values = [*moved, (at - far, at - far + step), (at - far + step, at - far)]
    return Menu(asks(values, sensitivity=step, one_way=isinstance(mechanism.claim.relation, OneWay)), 5)


@menu.register
def _(mechanism: GuessAndCheck) -> Menu:
    margin, step = ceil(mechanism.margin), mechanism.sensitivity
    moved = [(margin - step, margin), (margin, margin - step), (margin, margin + step), (margin + step, margin)]
    return Menu(asks(moved, 0, step), 3)


@menu.register
def _(mechanism: Counter) -> Menu:
    bound = mechanism.bound or 1
    return Menu((*updates([(0, bound), (bound, 0), (0, 0)]), _ASK), 4)


@menu.register
def _(mechanism: MonotoneHistogram) -> Menu:
    width = mechanism.dimensions or 1
    empty, full = (0,) * width, (1,) * width
    near = (1,) * (mechanism.diameter or 0) + (0,) * (width - (mechanism.diameter or 0))
    same = (Update(full), Update(full))
    return Menu(((Update(empty), Update(near)), (Update(near), Update(empty)), same, _ASK), 3)


@menu.register
def _(mechanism: Postprocessed) -> Menu:
    return menu(mechanism.mechanism)
