"""The default messages for each shipped mechanism: a few pairs that make its loss largest.

The two sides of a pair differ by as much as the claim's relation allows, in both directions, near the values where the
mechanism decides something (a threshold, a margin). A composition has no default: its messages must be given.

>>> from counterpoint import Laplace
>>> from counterpoint.verify.adversary import format_pair
>>> [format_pair(pair) for pair in message_pairs(Laplace(1, asks=2)).pairs], message_pairs(Laplace(1, asks=2)).rounds
(['Ask(private=0 | 1)', 'Ask(private=1 | 0)'], 2)
"""

from collections.abc import Iterable
from functools import singledispatch
from math import ceil
from typing import NamedTuple

from counterpoint.continual.counter import Counter
from counterpoint.continual.monotone_histogram import MonotoneHistogram
from counterpoint.encoding import Plain
from counterpoint.errors import InvalidParameter
from counterpoint.local.designs import Affine, Subsets
from counterpoint.local.multi_sparse_vector import MultiSparseVector
from counterpoint.local.peeling import Fewer, Neighbourhood
from counterpoint.local.properties import Data, Guarded
from counterpoint.local.responders import Among, BlockResponse, Membership, Which
from counterpoint.mechanisms.additive import Additive
from counterpoint.mechanisms.guess_and_check import GuessAndCheck, LinearGuess, LinearGuessAndCheck
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.mechanisms.multiplicative_weights import MultiplicativeWeights
from counterpoint.mechanisms.noisy_max import NoisyMax
from counterpoint.mechanisms.partition_selection import GaussianSelection, PartitionSelection
from counterpoint.mechanisms.postprocessing import Postprocessed
from counterpoint.mechanisms.randomized_response import Dice, InteractiveRandomizedResponse, RandomizedResponse
from counterpoint.mechanisms.threshold import NoisyThreshold
from counterpoint.privacy.messages import Ask, Update
from counterpoint.privacy.relations import OneWay, Pair
from counterpoint.privacy.secret import Raw, Tally
from counterpoint.verify.finite import LoudNumber, OpenDoor


class MessagePairs(NamedTuple):
    """Pairs of messages, and a number of rounds that is enough to show the loss."""

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


def updates(values: Iterable[tuple[Raw, Raw]]) -> tuple[Pair, ...]:
    """Pairs of updates with these pairs of values."""
    return tuple((Update(left), Update(right)) for left, right in values)


_BITS = [(0, 1), (1, 0)]
_ASK: Pair = (Ask(), Ask())


@singledispatch
def message_pairs(mechanism: Mechanism) -> MessagePairs:
    """The default messages and rounds for a mechanism; `InvalidParameter` if it has none."""
    raise InvalidParameter(
        f"{type(mechanism).__name__} has no default messages: give messages=[(left, right), ...], pairs of "
        "neighbouring messages, and rounds=..."
    )


@message_pairs.register
def _(mechanism: Additive) -> MessagePairs:
    return MessagePairs(asks(_BITS), mechanism.asks)


@message_pairs.register
def _(mechanism: RandomizedResponse) -> MessagePairs:
    return MessagePairs(asks([(0, 1)]), 1)


@message_pairs.register
def _(mechanism: InteractiveRandomizedResponse) -> MessagePairs:
    return MessagePairs((*asks([(0, 1)]), _ASK), 2)


@message_pairs.register
def _(mechanism: OpenDoor) -> MessagePairs:
    return MessagePairs(asks([(0, 0), (0, 1)]), 2)


@message_pairs.register
def _(mechanism: LoudNumber) -> MessagePairs:
    numbers = [(Ask(number), Ask(number)) for number in range(1, mechanism.numbers + 1)]
    return MessagePairs((*asks([(0, 1)]), *numbers), 2)


@message_pairs.register
def _(mechanism: NoisyThreshold) -> MessagePairs:
    at, step = ceil(mechanism.threshold), mechanism.moves
    moved = [(at - step, at), (at, at - step), (at, at + step), (at + step, at), (at, at)]
    # far from the threshold the answer is almost certain, and reveals most about the noise on the threshold
    far = 8 * ceil(max(mechanism.scales))
    values = [*moved, (at - far, at - far + step), (at - far + step, at - far)]
    return MessagePairs(asks(values, sensitivity=step, one_way=isinstance(mechanism.claim.relation, OneWay)), 5)


@message_pairs.register
def _(mechanism: GuessAndCheck) -> MessagePairs:
    margin, step = ceil(mechanism.margin), mechanism.moves
    moved = [(margin - step, margin), (margin, margin - step), (margin, margin + step), (margin + step, margin)]
    return MessagePairs(asks(moved, 0, step), 3)


@message_pairs.register
def _(mechanism: Counter) -> MessagePairs:
    zero: Raw = 0
    moved: Raw = mechanism.bound or 1
    if mechanism.width is not None:
        zero, moved = (0,) * mechanism.width, (1,) + (0,) * (mechanism.width - 1)
    return MessagePairs((*updates([(zero, moved), (moved, zero), (zero, zero)]), _ASK), 4)


@message_pairs.register
def _(mechanism: MonotoneHistogram) -> MessagePairs:
    width = mechanism.dimensions or 1
    empty, full = (0,) * width, (1,) * width
    near = (1,) * (mechanism.diameter or 0) + (0,) * (width - (mechanism.diameter or 0))
    same = (Update(full), Update(full))
    return MessagePairs(((Update(empty), Update(near)), (Update(near), Update(empty)), same, _ASK), 3)


@message_pairs.register
def _(mechanism: Postprocessed) -> MessagePairs:
    if isinstance(mechanism.postprocessor, MultiplicativeWeights):
        return _weights(mechanism.postprocessor)
    return message_pairs(mechanism.mechanism)


def _weights(weights: MultiplicativeWeights) -> MessagePairs:
    """Cells where the first answer of the hypothesis is off by just the margin."""
    width = weights.universe
    query = (weights.steps,) + (0,) * (width - 1)
    at = weights.rows // width + ceil(weights.margin * weights.rows)
    return MessagePairs(tuple(_cells(query, width, [(at - 1, at), (at, at - 1)])), 2)


def _cells(public: Plain, width: int, firsts: list[tuple[int, int]]) -> Iterable[Pair]:
    """Pairs of histograms that differ in their first cell."""
    rest = (0,) * (width - 1)
    return asks([((left, *rest), (right, *rest)) for left, right in firsts], public)


@message_pairs.register
def _(mechanism: LinearGuessAndCheck) -> MessagePairs:
    guess = LinearGuess((mechanism.steps,) + (0,) * (mechanism.universe - 1), 0)
    at = ceil(mechanism.checks.margin / mechanism.steps)
    return MessagePairs(tuple(_cells(guess, mechanism.universe, [(at - 1, at), (at, at - 1)])), 2)


@message_pairs.register
def _(mechanism: NoisyMax) -> MessagePairs:
    rival = 0 if mechanism.monotone else -1  # how the other scores move while one rises
    far = 4 * ceil(mechanism.scale())
    moved = [((0, 0), (1, rival)), ((-far, 0), (1 - far, rival)), ((0, 0), (-1, -rival))]

    def ask(scores: tuple[int, ...]) -> Ask:
        return Ask(private=scores, sensitivity=2, each=1, one_way=mechanism.monotone)

    return MessagePairs(tuple((ask(left), ask(right)) for left, right in moved), mechanism.asks)


@message_pairs.register(PartitionSelection)
@message_pairs.register(GaussianSelection)
def _(mechanism: PartitionSelection | GaussianSelection) -> MessagePairs:
    def units(n: int) -> Tally:
        return Tally((("key", n),) if n else ())

    counts = range(10)
    one = [(Ask(private=units(n)), Ask(private=units(n + 1))) for n in counts]
    return MessagePairs((*one, *((right, left) for left, right in one)), 1)


@message_pairs.register
def _(mechanism: Dice) -> MessagePairs:
    return MessagePairs((_ASK,), 2)


@message_pairs.register
def _(mechanism: Membership) -> MessagePairs:
    last = 2**mechanism.bits - 1
    queries = tuple((Ask(query), Ask(query)) for query in (Among(1, (0, 1)), Among(1, (1,))))
    return MessagePairs((*asks([(0, last), (last, 0)], Data(), last), *queries), 2)


@message_pairs.register
def _(mechanism: BlockResponse) -> MessagePairs:
    last = 2**mechanism.bits - 1
    queries = tuple((Ask(query), Ask(query)) for query in (Which(Subsets(3, 1), 1, 2), Which(Affine(2, 2, 1), 1, 2)))
    return MessagePairs((*asks([(0, last), (last, 0)], Data(), last), *queries), 2)


@message_pairs.register
def _(mechanism: Guarded) -> MessagePairs:
    inner = message_pairs(mechanism.mechanism)
    return MessagePairs(inner.pairs, inner.rounds + 1)


@message_pairs.register
def _(mechanism: Neighbourhood) -> MessagePairs:
    vertices = tuple(range(mechanism.vertices))
    none, one = (0,) * mechanism.vertices, (1,) + (0,) * (mechanism.vertices - 1)
    queries = tuple((Ask(query), Ask(query)) for query in (Fewer(vertices, 1), Fewer((0,), 1), Fewer(vertices, 2)))
    return MessagePairs((*asks([(none, one), (one, none)], Data()), *queries), 6)


@message_pairs.register
def _(mechanism: MultiSparseVector) -> MessagePairs:
    at, width = ceil(mechanism.each.threshold), mechanism.width
    still, moved = (at,) * width, (at + mechanism.each.moves,) + (at,) * (width - 1)
    values = [(still, moved), (moved, still), (still, still)]
    return MessagePairs(asks(values, sensitivity=mechanism.each.moves), 3)
