"""Finite quotients: of mechanisms with infinitely many outcomes, of which finitely many tell everything.

A decomposition is a theorem about finitely many answers (Lyu 2022, Thm 3). Two shipped mechanisms have one all the same
(theory, Verification by computation).

- *Laplace.* Let all values of a game lie in [low, high]. Given that an answer is low or less, low minus the answer has
  one law, whatever the value was: P[k] is proportional to q^k, q = e^(-1/scale). The same holds at high. So the answer,
  clamped to [low, high], tells all that the answer tells, and a `lift` draws the rest without any data.
- *Sparse vectors* that release nothing answer True or False. Infinite is only their noisy threshold, which no message
  shows: it is enumerated until 1e-30 of it is left, which is far below the rounding of a tree in floats.

>>> from counterpoint import Laplace
>>> from counterpoint.coins import SeededCoins
>>> quotient = finite_quotient(Laplace(1), [(Ask(private=3), Ask(private=4))])
>>> quotient.mechanism, [quotient.lift(0, 3, SeededCoins(seed)) for seed in range(4)]
(Laplace(epsilon=1, clamp=(3, 4)), [3, 3, 2, 3])
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from counterpoint.coins.coins import Coins
from counterpoint.mechanisms.additive import Laplace, Range
from counterpoint.mechanisms.mechanism import Answer, Mechanism
from counterpoint.mechanisms.sparse_vector import AboveThreshold, SparseVector
from counterpoint.privacy.messages import Ask, Message
from counterpoint.privacy.relations import Pair
from counterpoint.privacy.secret import reveal

Lift: TypeAlias = Callable[[int, Answer, Coins], Answer]
"""From the number of a pair of messages and an answer of the quotient to an answer of the mechanism, without data."""

CUT = Fraction(1, 10**12)
"""How much of an infinite tail a tree leaves out, where nothing more is known."""
HIDDEN = Fraction(1, 10**30)
"""How much of the law of a hidden state a decomposition may leave out: it counts as rounding."""


class Quotient(NamedTuple):
    """A mechanism with finitely many answers, how much of infinite tails to leave out, and the way back."""

    mechanism: Mechanism
    cut: Fraction
    lift: Lift


def as_is(move: int, answer: Answer, coins: Coins) -> Answer:
    """The answer itself, of a mechanism that is its own quotient."""
    return answer


def finite_quotient(mechanism: Mechanism, pairs: Sequence[Pair]) -> Quotient:
    """The quotient of a mechanism in a game with these pairs of messages; itself where none is known."""
    if isinstance(mechanism, Laplace) and mechanism.clamp is None:
        return _clamped(mechanism, pairs)
    if isinstance(mechanism, AboveThreshold) or (isinstance(mechanism, SparseVector) and mechanism.release is None):
        return Quotient(mechanism, HIDDEN, as_is)
    return Quotient(mechanism, CUT, as_is)


def _clamped(mechanism: Laplace, pairs: Sequence[Pair]) -> Quotient:
    values = [value for pair in pairs for message in pair for value in _values(mechanism, message)]
    ranged = any(isinstance(message, Ask) and isinstance(message.public, Range) for pair in pairs for message in pair)
    if ranged or not values:
        return Quotient(mechanism, CUT, as_is)  # a range would clamp the answers of the quotient alone
    low, high = min(values), max(values)
    high = max(high, low + 1)  # a range has two ends, and no value lies beyond a wider one

    def lift(move: int, answer: Answer, coins: Coins) -> Answer:
        def beyond(number: int) -> int:
            if low < number < high:
                return number
            message = pairs[move][0]
            assert isinstance(message, Ask)
            noise = int(coins.discrete_laplace(mechanism.scale(message.sensitivity)))
            further = max(noise, -1 - noise)  # of both signs together, k has the weight q^k of the tail
            return number - further if number == low else number + further

        if isinstance(answer, tuple):
            return tuple(beyond(number) for number in answer)
        return beyond(answer) if type(answer) is int else answer

    return Quotient(replace(mechanism, clamp=(Fraction(low), Fraction(high))), CUT, lift)


def _values(mechanism: Laplace, message: Message) -> tuple[int, ...]:
    if not isinstance(message, Ask) or message.private is None or not mechanism.accepts(message):
        return ()
    value = reveal(message.private)
    return value if isinstance(value, tuple) else (value,)
