"""Block designs: how a user answers which of several symbols it holds, with as little noise as epsilon allows.

An answer names a *block*, a set of symbols. In a design every symbol lies in a share r of all M blocks, and every two
symbols lie together in a share l of them. A user that holds v tosses, with chance p, whether its block is to contain v,
and answers a uniform one of those that do, or of those that do not.

Privacy. P[block | v] is p/(rM) if v is in the block, and (1-p)/((1-r)M) if not: the same two numbers for every v. With
r <= p <= e^epsilon r/(e^epsilon r + 1 - r) the first is at least the second and at most e^epsilon times it, so an
answer is PureDP(epsilon) for any two symbols, and so for any law on symbols. `truth` rounds p down to a multiple of
1/GRID, and that is the chance with which the coin falls; nothing else is rounded.

Utility. Another symbol lies in the block with chance q = p l/r + (1-p)(r-l)/(1-r). If n users answer and Y of their
blocks contain x, then (Y - nq)/(p - q) is unbiased for the number h of users that hold x, and its variance is
(h p(1-p) + (n-h) q(1-q))/(p-q)^2, exactly, as users toss independently (Wang et al. 2017; Park et al. 2023).

Designs with small l and r near 1/(e^epsilon + 1) are best. `Subsets` are all sets of one size (Ye and Barg 2018; size 1
is k-ary response), whose variance no other design of that r beats, but a block takes many bits to name. `Affine` has
l = r^2, at the price of a factor of about 1 + 1/symbols, and a block of log(symbols) bits; over the field of two it is
Hadamard response (Acharya et al. 2019). Unary responses, symmetric or optimised, are never better than `Subsets`.

>>> best(Fraction(1), 3), best(Fraction(1), 20), best(Fraction(1), 10**6)
(Subsets(symbols=3, size=1), Subsets(symbols=20, size=5), Affine(symbols=1000000, field=11, size=3))
>>> [best(Fraction(1), symbols).bits for symbols in (3, 20, 10**6)]
[2, 20, 25]
"""

from abc import abstractmethod
from fractions import Fraction
from functools import lru_cache
from math import floor, inf, isqrt

import numpy as np
from numpy.typing import NDArray

from counterpoint.coins.coins import Coins, Flags
from counterpoint.encoding import Tagged, Value
from counterpoint.errors import InvalidParameter
from counterpoint.numbers import Interval, precision
from counterpoint.numbers.parameters import PositiveInt

Symbols = NDArray[np.int64]
"""The symbols of some users, one each; or their blocks, one row each."""

GRID = 2**127 - 1
"""What the chance of a true answer is a fraction of: a prime, so that every toss takes equally many bits."""
LEAST_EPSILON = Fraction(1, 10**24)
"""The least epsilon: below, the rounding of a chance would be larger than the difference it makes."""
MOST_SYMBOLS = 2**24
_MOST_IN_FIELD = 2048
_NEAR = Fraction(101, 100)
"""A design with fewer bits is chosen up to this times the least variance."""
_TABLE = 2**22
"""The entries of the tables by which affine blocks are counted."""


class Design(Tagged):
    """A block design on the symbols 0, 1, ..., symbols - 1."""

    __slots__ = ()
    symbols: PositiveInt

    @property
    @abstractmethod
    def share(self) -> Fraction:
        """r: the share of the blocks that contain a symbol."""

    @property
    @abstractmethod
    def together(self) -> Fraction:
        """l: the share of the blocks that contain two symbols."""

    @property
    @abstractmethod
    def bits(self) -> int:
        """How many bits name a block: the size of a user's answer."""

    @abstractmethod
    def draw(self, held: Symbols, inside: Flags, coins: Coins) -> Symbols:
        """For each user a uniform block, one row each: of those that contain what it holds if `inside`, else not.

        The kinds and public parameters of the tosses are the same for all that is held.
        """

    @abstractmethod
    def counts(self, blocks: Symbols, categories: int) -> Symbols:
        """How many of these blocks contain each of the first `categories` symbols."""

    def truth(self, epsilon: Fraction) -> Fraction:
        """p: the chance that the block contains the symbol, the largest on the grid that epsilon allows."""
        odds = _decay(epsilon) * (1 / self.share - 1)
        most = Fraction((1 / (1 + odds)).lower)
        return Fraction(min(floor(most * GRID), GRID - 1), GRID)

    def falsehood(self, epsilon: Fraction) -> Fraction:
        """q: the chance that the block contains another symbol."""
        p, r = self.truth(epsilon), self.share
        return p * self.together / r + (1 - p) * (r - self.together) / (1 - r)

    def variance(self, epsilon: Fraction) -> Fraction:
        """The variance of the count of a symbol that no user holds, for each user who answers: q(1-q)/(p-q)^2.

        >>> round(float(Subsets(3, 1).variance(Fraction(1))), 4)  # (e + 1)/(e - 1)^2
        1.2594
        """
        p, q = self.truth(epsilon), self.falsehood(epsilon)
        return q * (1 - q) / (p - q) ** 2


class Subsets(Design, Value, frozen=True):
    """All sets of `size` of the symbols; a row is its members in order. With size 1 it is k-ary response."""

    symbols: PositiveInt
    size: PositiveInt

    def __post_init__(self) -> None:
        """A block must be able to leave a symbol out."""
        if not self.size < self.symbols <= MOST_SYMBOLS:
            raise InvalidParameter(
                f"subsets are smaller than the symbols, of which there are at most {MOST_SYMBOLS}; "
                f"{self.size} of {self.symbols} were asked for"
            )

    @property
    def share(self) -> Fraction:
        """size/symbols."""
        return Fraction(self.size, self.symbols)

    @property
    def together(self) -> Fraction:
        """Of symbols (symbols - 1) ordered pairs, size (size - 1)."""
        return Fraction(self.size * (self.size - 1), self.symbols * (self.symbols - 1))

    @property
    def bits(self) -> int:
        """Its members, or one bit for each symbol, whichever is less."""
        return min(self.symbols, self.size * (self.symbols - 1).bit_length())

    def draw(self, held: Symbols, inside: Flags, coins: Coins) -> Symbols:
        """A uniform set of the others; to be inside, the symbol takes the place of a uniform one of them.

        A uniform set without a uniform member is a uniform set of one member less. In order, a row does not show which
        place that was.
        """
        others = _sets(self.symbols - 1, self.size, len(held), coins)
        place = coins.integer(self.size, size=len(held))
        block = (held[:, None] + 1 + others) % self.symbols
        rows = np.flatnonzero(inside)
        block[rows, place[rows]] = held[rows]
        return np.sort(block, axis=1)

    def counts(self, blocks: Symbols, categories: int) -> Symbols:
        """Each member of each block, counted."""
        return np.bincount(blocks.ravel(), minlength=self.symbols)[:categories]


def _sets(below: int, size: int, rows: int, coins: Coins) -> Symbols:
    """Uniform sets of `size` numbers below a bound, one in each row, by as many draws of each (Floyd's algorithm).

    Before the step for `last`, a row is a uniform set of numbers below it. A number up to `last` joins it, or, if that
    is in it already, `last` itself: then every set of one more is equally likely again.
    """
    chosen = np.zeros((rows, size), dtype=np.int64)
    for place, last in enumerate(range(below - size, below)):
        number = coins.integer(last + 1, size=rows)
        taken = (chosen[:, :place] == number[:, None]).any(axis=1)
        chosen[:, place] = np.where(taken, last, number)
    return chosen


class Affine(Design, Value, frozen=True):
    """Blocks of points: symbols are vectors over the field of `field` (a prime) numbers, by their digits.

    A block is a vector u and a number b: it contains x if (u x + b) mod field is below `size`. For two different x the
    pair of these numbers is uniform when u and b are, so that l = r^2. A row is the digits of u and then b.
    """

    symbols: PositiveInt
    field: PositiveInt
    size: PositiveInt

    def __post_init__(self) -> None:
        """Only a prime field has inverses, on which independence rests."""
        if self.field not in _primes() or not self.size < self.field or self.symbols > MOST_SYMBOLS:
            raise InvalidParameter(
                f"affine blocks need a prime below {_MOST_IN_FIELD}, a size below it, and at most {MOST_SYMBOLS} "
                f"symbols; {self.field}, {self.size} and {self.symbols} were given"
            )

    @property
    def share(self) -> Fraction:
        """size/field."""
        return Fraction(self.size, self.field)

    @property
    def together(self) -> Fraction:
        """Two symbols are independent."""
        return self.share**2

    @property
    def dimensions(self) -> int:
        """How many digits a symbol has."""
        return len(_powers(self.field, self.symbols))

    @property
    def bits(self) -> int:
        """There are field^(dimensions + 1)."""
        blocks: int = self.field ** (self.dimensions + 1)
        return (blocks - 1).bit_length()

    def draw(self, held: Symbols, inside: Flags, coins: Coins) -> Symbols:
        """A uniform u; b is what brings the symbol to a uniform number below `size`, or from there on."""
        users, t = len(held), self.dimensions
        u = coins.integer(self.field, size=users * t).reshape(users, t)
        below = coins.integer(self.size, size=users)
        above = self.size + coins.integer(self.field - self.size, size=users)
        b = np.where(inside, below, above)
        for place, power in enumerate(_powers(self.field, self.symbols)):
            b -= u[:, place] * (held // power % self.field)
        return np.column_stack([u, b % self.field])

    def _digits(self, symbols: Symbols) -> Symbols:
        """The digits of each symbol, the last one counting ones."""
        digits: Symbols = symbols[:, None] // np.array(_powers(self.field, self.symbols)) % self.field
        return digits

    def counts(self, blocks: Symbols, categories: int) -> Symbols:
        """Digit by digit, as in a fast Fourier transform: blocks are counted together if their last digits agree.

        The first digits of the symbols are fixed in turn. Then a block is its last digits of u and one number, and all
        blocks are one table, which `_by_symbol` turns into counts.
        """
        g, t = self.field, self.dimensions
        last = min(range(1, t + 1), key=lambda n: self._steps(n, len(blocks), categories))
        places = np.array([g**n for n in range(last, 0, -1)])
        tail = blocks[:, t - last : t] @ places
        found = []
        for first in range(-(-categories // g**last)):
            head = self._digits(np.array([first * g**last]))[0, : t - last]
            number = (blocks[:, : t - last] @ head + blocks[:, t]) % g
            found.append(self._by_symbol(np.bincount(tail + number, minlength=g ** (last + 1)), last))
        return np.concatenate(found)[:categories]

    def _steps(self, last: int, users: int, categories: int) -> float:
        """About how much work `counts` is with tables of `last` + 1 digits; endless where they would be too large."""
        table: int = self.field ** (last + 1)
        if table > _TABLE and last > 1:
            return inf
        heads: int = -(-categories // self.field**last)
        return heads * (users + table * (1 + self.field * (last - 1)))

    def _by_symbol(self, table: Symbols, digits: int) -> Symbols:
        """From how many blocks have each (u, b) to how many contain each symbol, one digit after the other.

        Fixing a digit x of the symbol moves a block with the digit u from b to b + u x, and in the end a block counts
        if its number is below `size`. Moving and summing over `size` numbers commute, so the sum comes first.
        """
        g, numbers = self.field, np.arange(self.field)
        wide = table.reshape(-1, g)
        by_number: Symbols = np.add.reduce([np.roll(wide, -ahead, axis=1) for ahead in range(self.size)])
        for _ in range(digits - 1):
            by_digit = by_number.reshape(g, -1, g)  # the digit of u that is replaced, the other digits, the number
            moved = (
                np.take_along_axis(by_digit, ((numbers - (numbers * x)[:, None]) % g)[:, None, :], axis=2).sum(axis=0)
                for x in range(g)
            )
            by_number = np.stack(list(moved), axis=1)  # x comes behind the digits that are left
        end = -np.outer(numbers, numbers) % g  # of the last digit only the number 0 matters
        counted: Symbols = by_number.reshape(g, -1, g)[numbers, :, end].sum(axis=1).T.ravel()
        return counted


@lru_cache(maxsize=256)
def best(epsilon: Fraction, symbols: int) -> Design:
    """The design with the fewest bits among those whose variance is within a hundredth of the least.

    >>> [type(best(Fraction(3), symbols)).__name__ for symbols in (2, 200, 20000)]
    ['Subsets', 'Subsets', 'Affine']
    """
    variances = {
        design: design.variance(epsilon) for design in (*_subsets(epsilon, symbols), *_affine(epsilon, symbols))
    }
    near = _NEAR * min(variances.values())
    return min((design for design in variances if variances[design] <= near), key=lambda d: (d.bits, variances[d]))


def _subsets(epsilon: Fraction, symbols: int) -> list[Design]:
    """Subsets of the sizes about symbols/(e^epsilon + 1), and of one."""
    size = symbols * _ideal(epsilon)
    sizes = {1, *(min(max(1, floor(size) + more), symbols - 1) for more in (0, 1))}
    return [Subsets(symbols, size) for size in sorted(sizes)]


def _affine(epsilon: Fraction, symbols: int) -> list[Design]:
    """Affine designs over each field, of the sizes about field/(e^epsilon + 1)."""
    found: list[Design] = []
    for field in _primes():
        size = field * _ideal(epsilon)
        sizes = {min(max(1, floor(size) + more), field - 1) for more in (0, 1)}
        found.extend(Affine(symbols, field, size) for size in sorted(sizes))
    return found


def _ideal(epsilon: Fraction) -> Fraction:
    """The share at which the variance of many symbols is least: 1/(e^epsilon + 1)."""
    shrunk = _decay(epsilon)
    return Fraction((shrunk / (1 + shrunk)).lower)


@lru_cache(maxsize=256)
def _decay(epsilon: Fraction) -> Interval:
    """e^-epsilon."""
    return (-precision(80)(epsilon)).exp()


@lru_cache(maxsize=1)
def _primes() -> tuple[int, ...]:
    return tuple(n for n in range(2, _MOST_IN_FIELD) if all(n % divisor for divisor in range(2, isqrt(n) + 1)))


@lru_cache(maxsize=256)
def _powers(field: int, symbols: int) -> tuple[int, ...]:
    """The values of the digits of numbers below `symbols`, the largest first."""
    powers = [1]
    while powers[-1] * field < symbols:
        powers.append(powers[-1] * field)
    return tuple(reversed(powers))
