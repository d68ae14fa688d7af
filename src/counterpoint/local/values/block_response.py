"""Block response: a user says, with as little noise as epsilon allows, which of some candidates its value begins with.

A user holds one number of `bits` bits. A query names prefixes of one length and a block design (see `designs`), on one
symbol for each candidate and one more for every other value. If the design has no symbol to spare, all other values
count as the last candidate. An answer is one block, whose law depends on the value through its symbol alone: it is
PureDP(epsilon) for any two values, and the claim is for users that are asked once (`AtMost(1)`), which the protocol
enforces.

>>> from counterpoint import Ask, SeededCoins
>>> from counterpoint.local.values.designs import Subsets
>>> from counterpoint.local.properties import Data
>>> user, coins = BlockResponse(epsilon=40, bits=3), SeededCoins(1)
>>> state, _ = user.step(user.start(coins), Ask(Data(), private=0b110), coins)
>>> user.step(state, Ask(Which(Subsets(3, 1), 2, (0b00, 0b11))), coins)[1]
(1,)
"""

from fractions import Fraction

import numpy as np

from counterpoint.encoding import Plain, Tagged, Value
from counterpoint.errors import InvalidParameter
from counterpoint.local.properties import Asked, AtMost, are_different, is_whole
from counterpoint.local.values.designs import LEAST_EPSILON, Design, Symbols
from counterpoint.local.values.one_value import MOST_BITS, OneValue, ValueCrowd, Values
from counterpoint.numbers import Number
from counterpoint.numbers.exact import spell
from counterpoint.numbers.parameters import Positive, PositiveInt
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.losses import PureDP
from counterpoint.privacy.relations import every_step
from counterpoint.randomness.coins import Coins


class Which(Tagged, Value, frozen=True):
    """The query: with which of these prefixes of `length` bits does your value begin? An integer n stands for all
    prefixes below n.
    """

    design: Design
    length: int
    candidates: tuple[int, ...] | int

    @property
    def width(self) -> int:
        """How many candidates there are."""
        return self.candidates if isinstance(self.candidates, int) else len(self.candidates)

    def symbols(self, prefixes: Symbols) -> Symbols:
        """The place of each prefix among the candidates; behind them, or the last one, for every other prefix."""
        if isinstance(self.candidates, int):
            places = np.where(prefixes < 0, self.width, np.minimum(prefixes, self.width))
        else:
            listed = np.array(self.candidates, dtype=np.int64)
            order = np.argsort(listed)
            found = np.searchsorted(listed, prefixes, sorter=order)
            nearest = order[np.minimum(found, self.width - 1)]
            places = np.where(listed[nearest] == prefixes, nearest, self.width)
        return np.minimum(places, self.design.symbols - 1)


class BlockResponse(OneValue, Value, frozen=True):
    """One user; a value outside 0 ... 2^bits - 1 is brought to the nearest one inside.

    The noise is the same whatever the sensitivity of the ask that brings the value: 2^bits - 1 relates any two values.

    >>> BlockResponse(1, bits=8).claim.loss, BlockResponse(1, bits=8).claim.relation
    (PureDP(1), Asked(inner=Steps(), allowed=AtMost(1)))
    """

    epsilon: Positive
    bits: PositiveInt

    def __post_init__(self) -> None:
        """Check the number of bits, and that a chance on the grid can tell two symbols apart."""
        if self.bits > MOST_BITS:
            raise InvalidParameter(f"values have at most {MOST_BITS} bits, not {self.bits}")
        if self.epsilon < LEAST_EPSILON:
            raise InvalidParameter(
                f"epsilon must be at least {spell(LEAST_EPSILON)} for an answer, but {spell(self.epsilon)} was given"
            )

    @property
    def claim(self) -> Claim:
        """PureDP(epsilon) for any two values, if it is asked once."""
        by = "a block is at most e^epsilon times as likely for one symbol as for another (theory, Block designs)"
        return claim(PureDP(self.epsilon), Asked(every_step(), AtMost(1)), by)

    def understands(self, query: Plain) -> bool:
        """Whether a query is about different prefixes that values can have, with a symbol for each of them."""
        if not isinstance(query, Which) or not is_whole(query.length) or not 1 <= query.length <= self.bits:
            return False
        if not _are_prefixes(query.candidates, 2**query.length) or not _is_design(query.design):
            return False
        return 1 <= query.width <= query.design.symbols

    def replies(self, values: Values, query: Plain, coins: Coins) -> Symbols:
        """The answers of users with these values (-1: none yet), one row each; all toss the same coins."""
        assert isinstance(query, Which)
        held = query.symbols(values >> (self.bits - query.length))
        inside = coins.bernoulli(self.truth(query.design), size=len(values))
        return query.design.draw(held, inside, coins)

    def truth(self, design: Design) -> Fraction:
        """How likely a block of this design contains what the user holds."""
        return design.truth(self.epsilon)


def _are_prefixes(candidates: object, below: int) -> bool:
    if isinstance(candidates, int):
        return is_whole(candidates) and candidates <= below
    return are_different(candidates, below)


def _is_design(value: object) -> bool:
    return isinstance(value, Design)


class BlockResponders(ValueCrowd[BlockResponse]):
    """As many users as there are values, all `BlockResponse(epsilon, bits)`, as one array.

    >>> BlockResponders(1, bits=4).user
    BlockResponse(epsilon=1, bits=4)
    """

    def __init__(self, epsilon: Number, bits: int) -> None:
        super().__init__(BlockResponse(epsilon, bits))
