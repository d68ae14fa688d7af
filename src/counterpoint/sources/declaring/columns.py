"""What a custodian declares about a column, and the integers, texts or truth values it is stored as.

A number is brought onto a fixed-point grid once, when the table is bound: clamped into [low, high], rounded to the
nearest multiple of `step` and kept as an integer count of steps, so that every later sum is a sum of integers. The
rule is total, and per row, so no row's conversion depends on another's:

- NULL, NaN and what cannot be read stay *missing*: they add nothing to a sum or a count of the column, fall into no
  bin and make every comparison false;
- an infinite or out-of-range number becomes the nearer bound;
- a category outside the declared keys is missing.

>>> from counterpoint.sources.declaring.columns import number
>>> age = number(0, 120)
>>> age.least, age.most, number(0, 1, step="0.01").most
(0, 120, 100)
"""

import math
from abc import abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from fractions import Fraction
from typing import Annotated, Literal, TypeAlias

from counterpoint.encoding import Tagged, Value
from counterpoint.errors import InvalidParameter, InvalidRequest, shown
from counterpoint.numbers import Number as AnyNumber
from counterpoint.numbers.exact import exact, spell
from counterpoint.numbers.parameters import Parameter, Positive, Rational, Read, default

Kind: TypeAlias = Literal["number", "text", "boolean"]
"""What a column is stored as: a 64-bit integer of steps, a text, a truth value."""

Key: TypeAlias = bool | int | str
"""One stored value of a column."""

WIDEST = 2**62
"""The largest count of steps: far enough below 2^63 that no conversion and no comparison can leave 64 bits."""
MOST_KEYS = 10_000
_LONGEST_STEP = 10**18
_INT64 = range(-(2**63), 2**63)


class Column(Tagged):
    """A declared column."""

    __slots__ = ()

    @property
    @abstractmethod
    def kind(self) -> Kind:
        """What the column is stored as."""

    @property
    def grid(self) -> Fraction:
        """What one stored integer step is worth."""
        return Fraction(1)

    @property
    def known_keys(self) -> tuple[Key, ...] | None:
        """Every value that the column may hold, if that was declared."""
        return None

    @abstractmethod
    def said(self) -> str:
        """The declaration in words."""

    def key(self, value: object) -> Key:
        """One value in the user's units as it is stored, or `InvalidRequest` if the column cannot hold it.

        >>> number(0, 10, step="0.5").key(1.5), text().key("CA")
        (3, 'CA')
        """
        if self.kind == "text" and isinstance(value, str):
            return readable(str.__str__(value))  # a plain text: subclasses, as numpy's, would be other keys
        if self.kind == "boolean" and isinstance(value, bool):
            return value
        if self.kind == "number" and isinstance(value, int | float | Fraction) and not isinstance(value, bool):
            with suppress(InvalidParameter):  # not finite, or far too long
                steps = exact(value, "a key") / self.grid
                if steps.denominator == 1 and steps.numerator in _INT64:
                    return steps.numerator
        raise InvalidRequest(f"{shown(value)} is not a value of this column, which is {self.said()}")

    def spelled(self, stored: Key) -> Key | Fraction:
        """A stored value as `key` takes it, in the user's units.

        >>> text().spelled("CA"), number(0, 10, step="0.5").spelled(3)
        ('CA', Fraction(3, 2))
        """
        return stored if self.grid == 1 else stored * self.grid  # type: ignore[operator]  # only numbers have a grid


class Number(Column, Value, frozen=True):
    """A number from `low` to `high`, kept as a whole number of steps."""

    low: Rational
    high: Rational
    step: Positive = default(Fraction(1))

    def __post_init__(self) -> None:
        """The bounds must lie on the grid, or the largest possible value would not be known."""
        low, high, step = self.low, self.high, self.step
        if low >= high:
            raise InvalidParameter(f"low must be below high, but {spell(low)} and {spell(high)} were given")
        if max(step.numerator, step.denominator) > _LONGEST_STEP:
            raise InvalidParameter(f"step must be a ratio of numbers of at most 18 digits, not {spell(step)}")
        for name, bound in (("low", low), ("high", high)):
            steps = bound / step
            if steps.denominator != 1:
                raise InvalidParameter(
                    f"{name} must be a whole number of steps: {spell(bound)} is not a multiple of {spell(step)}; "
                    f"{spell(math.floor(steps) * step)} and {spell(math.ceil(steps) * step)} are"
                )
            if abs(steps) > WIDEST:
                raise InvalidParameter(f"{name} is more than 2^62 steps from 0: choose a larger step")

    @property
    def kind(self) -> Kind:
        """Integers."""
        return "number"

    @property
    def grid(self) -> Fraction:
        """One step."""
        return self.step

    @property
    def least(self) -> int:
        """The lower bound in steps."""
        return (self.low / self.step).numerator

    @property
    def most(self) -> int:
        """The upper bound in steps."""
        return (self.high / self.step).numerator

    def said(self) -> str:
        """The bounds and the grid."""
        return f"a number from {spell(self.low)} to {spell(self.high)} in steps of {spell(self.step)}"


class Whole(Column, Value, frozen=True):
    """A whole number without declared bounds: it can be compared and grouped by given keys, not added up."""

    @property
    def kind(self) -> Kind:
        """Integers."""
        return "number"

    def said(self) -> str:
        """Nothing is known of its size."""
        return "a whole number without bounds"


def _items(keys: object, what: str) -> tuple[int | str, ...]:
    if isinstance(keys, str) or not isinstance(keys, Iterable):
        raise InvalidParameter(f"the {what} of a category are a list of texts or of whole numbers")
    return tuple(keys)


class Category(Column, Value, frozen=True):
    """One of a public list of keys, all texts or all whole numbers; any other value is missing."""

    keys: Annotated[Parameter[tuple[int | str, ...], Iterable[int | str]], Read(_items)]

    def __post_init__(self) -> None:
        """Check that the keys are distinct and of one type."""
        keys = self.keys
        kinds = {type(key) for key in keys}
        if kinds not in ({str}, {int}):
            raise InvalidParameter("the keys of a category are one or more texts, or one or more whole numbers")
        if len(set(keys)) < len(keys) or len(keys) > MOST_KEYS:
            raise InvalidParameter(f"the keys of a category are distinct, and at most {MOST_KEYS}")
        if any(key not in _INT64 if isinstance(key, int) else not is_readable(key) for key in keys):
            raise InvalidParameter("a key is a text without NUL, or a whole number of at most 64 bits")

    @property
    def kind(self) -> Kind:
        """What the keys are."""
        return "text" if isinstance(self.keys[0], str) else "number"

    @property
    def known_keys(self) -> tuple[Key, ...]:
        """The declared keys."""
        return self.keys

    def said(self) -> str:
        """The first few keys."""
        shown = ", ".join(repr(key) for key in self.keys[:5])
        return f"one of {shown}" + (f" and {len(self.keys) - 5} more" if len(self.keys) > 5 else "")


class Text(Column, Value, frozen=True):
    """A text: equality, IN and LIKE."""

    @property
    def kind(self) -> Kind:
        """Texts."""
        return "text"

    def said(self) -> str:
        """Any text."""
        return "a text"


class Boolean(Column, Value, frozen=True):
    """True, false or missing."""

    @property
    def kind(self) -> Kind:
        """Truth values."""
        return "boolean"

    @property
    def known_keys(self) -> tuple[Key, ...]:
        """Both."""
        return (False, True)

    def said(self) -> str:
        """True or false."""
        return "true or false"


def number(low: AnyNumber, high: AnyNumber, step: AnyNumber = 1) -> Number:
    """Declare a number between public bounds, kept as a whole number of `step`s (both bounds are multiples of it).

    >>> number(0, 1000, step=0.01).said()
    'a number from 0 to 1000 in steps of 0.01'
    """
    return Number(low, high, step)


def category(keys: Iterable[int | str]) -> Category:
    """Declare a column that holds one of a public list of keys.

    >>> category(["CA", "NY", "WY"]).said()
    "one of 'CA', 'NY', 'WY'"
    """
    return Category(keys)


def text() -> Text:
    """Declare a column of texts (whole numbers and dates are written out).

    >>> text().said()
    'a text'
    """
    return Text()


def boolean() -> Boolean:
    """Declare a column of truth values.

    >>> boolean().known_keys
    (False, True)
    """
    return Boolean()


def readable(value: str) -> str:
    """The text itself, or `InvalidRequest` if some engine could not hold it.

    >>> readable("Zürich")
    'Zürich'
    """
    if not is_readable(value):
        raise InvalidRequest("a text may not hold NUL or half a character")
    return value


def is_readable(value: str) -> bool:
    r"""Whether every engine could hold this text: no NUL, no half characters.

    >>> is_readable("Zürich"), is_readable("Zur\0ich")
    (True, False)
    """
    return "\0" not in value and (value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value))
