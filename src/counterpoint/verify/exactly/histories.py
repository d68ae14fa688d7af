"""What one transcript has told, and what may still be told after it.

The *realised privacy loss* of a transcript is the logarithm of how much likelier it was in one world than in the other:
the sum of the conditional losses of its answers (Whitehouse et al. 2023, Def 2, eq. 4). What is *left* after it is the
largest Renyi divergence that an adversary who goes on from there can reach, the "privacy budget monitor" of Lyu 2022,
sec. 4.2; at the beginning it is the loss of the mechanism, and on average it never grows (Lyu 2022, Lemma 5).

>>> from counterpoint import Ask, RandomizedResponse
>>> from counterpoint.verify.exact_loss import exact
>>> loss = exact(RandomizedResponse(1, "0.1"), rounds=1)
>>> loss.realised([(0, (False, 0))], bit=0)
RealisedLoss(1)
>>> loss.realised([(0, (True, 0))], bit=0)
RealisedLoss(inf)
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from counterpoint.encoding import encode
from counterpoint.errors import InvalidParameter
from counterpoint.mechanisms.mechanism import Answer
from counterpoint.privacy.relations import Pair
from counterpoint.verify.exactly.worlds import Branch, Worlds

History: TypeAlias = Iterable[tuple[int | Pair, Answer]]
"""The pairs of messages that were sent (or their numbers) with the answers."""


@dataclass(frozen=True)
class RealisedLoss:
    """The privacy loss of one transcript, answer by answer; `total` is their sum.

    Above 0, the transcript speaks for the true world; below 0, for the other one. Infinite if one of the worlds could
    not have answered so.
    """

    conditional: tuple[float, ...]

    @property
    def total(self) -> float:
        """The loss of the whole transcript."""
        return math.fsum(self.conditional)

    def __repr__(self) -> str:
        return f"RealisedLoss({self.total:.12g})"


def realised_loss(worlds: Worlds, history: History, bit: int) -> RealisedLoss:
    """The loss of a transcript if `bit` is the true world."""
    branches = walk(worlds, history)
    both = [(branch.p1, branch.p0) if bit else (branch.p0, branch.p1) for branch in branches]
    return RealisedLoss(tuple(_log_ratio(mine, other) for mine, other in both))


def walk(worlds: Worlds, history: History) -> list[Branch]:
    """The answers of a transcript in the tree, one after another; `InvalidParameter` for one that is not there."""
    node, passed = worlds.root, []
    for sent, answer in history:
        number = sent if isinstance(sent, int) else _number(worlds, sent)
        moves = [move for move in node.moves if move.number == number]
        if not moves:
            raise InvalidParameter(
                f"message {number} is not in the tree after this history: it is not valid there, the last round is "
                "over, or one of the worlds could not have come there"
            )
        sought = encode(answer)
        found = [branch for branch in moves[0].branches if encode(branch.answer) == sought]
        if not found:
            raise InvalidParameter(f"message {number} has no answer {answer!r} there in either world")
        passed.append(found[0])
        node = found[0].node
    return passed


def _number(worlds: Worlds, pair: Pair) -> int:
    sought = [encode(message, sealed=True) for message in pair]
    known = ([encode(message, sealed=True) for message in sent] for sent in worlds.pairs)
    found = next((number for number, sent in enumerate(known) if sent == sought), None)
    if found is None:
        raise InvalidParameter("this pair of messages is not among those of the game")
    return found


def _log_ratio(mine: Any, other: Any) -> float:
    if not other:
        return math.inf
    if not mine:
        return -math.inf
    ratio = Fraction(mine) / Fraction(other)
    return math.log(ratio.numerator) - math.log(ratio.denominator)


def renyi_left(worlds: Worlds, values: tuple[Any, Any], history: History, order: float) -> float:
    """The larger of the two divergences that are left after a transcript, from the values of the two recursions."""
    passed = walk(worlds, history)
    node = passed[-1].node if passed else worlds.root
    zero, one = (float(mass) for mass in node.masses)
    if not zero or not one:
        return 0.0
    left = []
    for mine, other, found in ((zero, one, values[0]), (one, zero, values[1])):
        value = float(found[node.level][node.place])
        left.append(math.inf if math.isinf(value) else math.log(value / (mine * (mine / other) ** (order - 1))))
    return max(0.0, *left) / (order - 1)
