"""Columns: what a custodian declares about each one, and how its values are stored.

When a table is bound, every number is converted once to a fixed-point grid: clamped into [low, high], rounded to the
nearest multiple of `step` and stored as an integer count of steps. Every later sum is then a sum of integers. The
conversion is a total function of one value, so no row changes how another is converted:

- NULL, NaN and unreadable values are *missing*: they add nothing to a sum or a count of the column, fall into no bin
  and make every comparison false;
- an infinite or out-of-range number becomes the nearer bound;
- a category outside the declared keys is missing.

>>> from counterpoint.schema.columns import number
>>> age = number(0, 120)
>>> age.least, age.most, number(0, 1, step="0.01").most
(0, 120, 100)

Of a column that was not declared only its type is public; a description says what to declare for more.

>>> undeclared_words("delay", "DOUBLE")
"undeclared, of type DOUBLE: declare columns={'delay': cp.number(low, high)} to ask about it"
>>> undeclared_note(Whole())
' (undeclared: for where and keys only; cp.number(low, high) to add it up)'
"""

import math
from abc import abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from fractions import Fraction
from typing import Annotated, Literal, TypeAlias

from counterpoint.coins.coins import Coins
from counterpoint.encoding import Tagged, Value
from counterpoint.errors import InvalidParameter, InvalidRequest, shown
from counterpoint.numbers import Number as AnyNumber
from counterpoint.numbers.exact import exact, format_number, plain_scalar
from counterpoint.numbers.parameters import Parameter, Positive, Rational, Read, default

Kind: TypeAlias = Literal["number", "text", "boolean"]
"""The stored type of a column: a 64-bit integer count of steps, a text, or a truth value."""

Key: TypeAlias = bool | int | str
"""One stored value of a column."""

KeyOrTuple: TypeAlias = Key | tuple[Key, ...]
"""What names a group: a value of the column that rows are grouped by, or a tuple of one value for each such column."""

WIDEST = 2**62
"""The largest count of steps: far enough below 2^63 that no conversion and no comparison overflows 64 bits."""
MOST_KEYS = 10_000
_LONGEST_STEP = 10**18
_LONGEST_UNITS = 40
_INT64 = range(-(2**63), 2**63)
_FEW = 20
"""How many different values are made up where the declaration does not list them."""


class Column(Tagged):
    """A declared column."""

    __slots__ = ()

    @property
    @abstractmethod
    def kind(self) -> Kind:
        """The stored type."""

    @property
    def grid(self) -> Fraction:
        """What one stored integer step is worth."""
        return Fraction(1)

    @property
    def known_keys(self) -> tuple[Key, ...] | None:
        """Every value that the column may hold, if the declaration lists them."""
        return None

    @property
    def bounds(self) -> tuple[int, int] | None:
        """The least and the largest stored value, if values beyond them are clamped.

        >>> number(0, 10, step="0.5").bounds, text().bounds
        ((0, 20), None)
        """
        return None

    @property
    def wider(self) -> "Column | None":
        """The same declaration with bounds one step farther out, as far as there are such values; None without bounds.

        >>> number(0, 10, step="0.5").wider
        Number(low=-0.5, high=10.5, step=0.5)
        """
        return None

    @abstractmethod
    def describe(self) -> str:
        """The declaration in words."""

    def key(self, value: object) -> Key:
        """The stored form of a value in the user's units, or `InvalidRequest` if the column cannot hold it.

        >>> number(0, 10, step="0.5").key(1.5), text().key("CA")
        (3, 'CA')
        """
        value = plain_scalar(value)
        if self.kind == "text" and isinstance(value, str):
            return readable(str.__str__(value))  # a plain str: a subclass, such as numpy's, would be another key
        if self.kind == "boolean" and isinstance(value, bool):
            return value
        if self.kind == "number" and isinstance(value, int | float | Fraction) and not isinstance(value, bool):
            with suppress(InvalidParameter):  # not finite, or too many digits
                steps = exact(value, "a key") / self.grid
                if steps.denominator == 1 and steps.numerator in _INT64:
                    return steps.numerator
        raise InvalidRequest(f"{shown(value)} is not a value of this column, which is {self.describe()}")

    @property
    @abstractmethod
    def code(self) -> str:
        """The declaration as Python code, after `import counterpoint as cp`.

        >>> number(0, 10, step="0.5").code, category(["CA", "NY"]).code
        ('cp.number(0, 10, step=0.5)', "cp.category(['CA', 'NY'])")
        """

    @abstractmethod
    def made_up(self, coins: Coins) -> Key:
        """A stored value drawn from the declaration alone, for a rehearsal.

        >>> from counterpoint.coins.secure import SeededCoins
        >>> number(7, 8).made_up(SeededCoins(1)) in (7, 8), text().made_up(SeededCoins(1)).startswith("made up")
        (True, True)
        """

    def spelled(self, stored: Key) -> Key | Fraction:
        """A stored value in the user's units, as `key` takes it.

        >>> text().spelled("CA"), number(0, 10, step="0.5").spelled(3)
        ('CA', Fraction(3, 2))
        """
        return stored if self.grid == 1 else stored * self.grid  # type: ignore[operator]  # only numbers have a grid


def _units(units: object, what: str) -> str:
    if not isinstance(units, str) or not 1 <= len(units) <= _LONGEST_UNITS or not units.isprintable():
        raise InvalidParameter(f"{what} is a short text, as in number(0, 600, units='minutes')")
    return str.__str__(units)


class Number(Column, Value, frozen=True):
    """A number from `low` to `high`, kept as a whole number of steps."""

    low: Rational
    high: Rational
    step: Positive = default(Fraction(1))
    units: Annotated[str | None, Read(_units)] = None

    def __post_init__(self) -> None:
        """Check the bounds: they must lie on the grid, or rounding could leave them."""
        low, high, step = self.low, self.high, self.step
        if low >= high:
            raise InvalidParameter(
                f"low must be below high, but {format_number(low)} and {format_number(high)} were given"
            )
        if max(step.numerator, step.denominator) > _LONGEST_STEP:
            raise InvalidParameter(
                f"step must be a ratio of two whole numbers of at most 18 digits, but {format_number(step)} was given"
            )
        for name, bound in (("low", low), ("high", high)):
            steps = bound / step
            if steps.denominator != 1:
                raise InvalidParameter(
                    f"{name} must be a whole number of steps: {format_number(bound)} is not a multiple of "
                    f"{format_number(step)}; "
                    f"{format_number(math.floor(steps) * step)} and {format_number(math.ceil(steps) * step)} are"
                )
            if abs(steps) > WIDEST:
                raise InvalidParameter(
                    f"{name} must be at most 2^62 steps from 0, but {format_number(bound)} in steps of "
                    f"{format_number(step)} is more: "
                    "choose a larger step"
                )

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

    @property
    def farthest(self) -> int:
        """The most steps that a value is away from 0."""
        return max(-self.least, self.most)

    @property
    def bounds(self) -> tuple[int, int]:
        """Both bounds in steps."""
        return self.least, self.most

    @property
    def wider(self) -> "Number":
        """Two steps more."""
        least, most = max(self.least - 1, -WIDEST), min(self.most + 1, WIDEST)
        return Number(least * self.step, most * self.step, self.step)

    def describe(self) -> str:
        """The bounds, the grid and the units."""
        measured = "" if self.units is None else f" {self.units}"
        low, high, step = map(format_number, (self.low, self.high, self.step))
        return f"a number from {low} to {high}{measured} in steps of {step}"

    @property
    def code(self) -> str:
        """The bounds, and the step unless it is 1."""
        step = "" if self.step == 1 else f", step={_literal(self.step)}"
        return f"cp.number({_literal(self.low)}, {_literal(self.high)}{step})"

    def made_up(self, coins: Coins) -> int:
        """Any number of steps between the bounds."""
        return self.least + coins.integer(self.most - self.least + 1)


class Whole(Column, Value, frozen=True):
    """A whole number without declared bounds: it can be compared and grouped by given keys, not added up."""

    @property
    def kind(self) -> Kind:
        """Integers."""
        return "number"

    def describe(self) -> str:
        """A whole number of any size."""
        return "a whole number without bounds"

    @property
    def code(self) -> str:
        """Without arguments."""
        return "cp.whole()"

    def made_up(self, coins: Coins) -> int:
        """One of a few numbers, so that some rows have the same."""
        return coins.integer(_FEW)


def _items(keys: object, what: str) -> tuple[int | str, ...]:
    if isinstance(keys, str) or not isinstance(keys, Iterable):
        raise InvalidParameter(
            f"the {what} of a category must be a list, as in category(['CA', 'NY']), not a {type(keys).__name__}"
        )
    return tuple(map(plain_scalar, keys))


class Category(Column, Value, frozen=True):
    """One of a public list of keys, all texts or all whole numbers; any other value is missing."""

    keys: Annotated[Parameter[tuple[int | str, ...], Iterable[int | str]], Read(_items)]

    def __post_init__(self) -> None:
        """Check that the keys are distinct and of one type."""
        keys = self.keys
        kinds = {type(key) for key in keys}
        if kinds not in ({str}, {int}):
            raise InvalidParameter(
                "the keys of a category must be all texts or all whole numbers, and at least one, as in "
                "category(['CA', 'NY'])"
            )
        if len(set(keys)) < len(keys):
            raise InvalidParameter("the keys of a category must be distinct: list each key once")
        if len(keys) > MOST_KEYS:
            raise InvalidParameter(
                f"a category has at most {MOST_KEYS} keys, but {len(keys)} were given: declare the column as text()"
            )
        if any(key not in _INT64 if isinstance(key, int) else not is_readable(key) for key in keys):
            raise InvalidParameter(
                "a key must be a whole number of at most 64 bits, or a text without NUL and without surrogates"
            )

    @property
    def kind(self) -> Kind:
        """The type of the keys."""
        return "text" if isinstance(self.keys[0], str) else "number"

    @property
    def known_keys(self) -> tuple[Key, ...]:
        """The declared keys."""
        return self.keys

    def describe(self) -> str:
        """The first few keys."""
        shown = ", ".join(repr(key) for key in self.keys[:5])
        return f"one of {shown}" + (f" and {len(self.keys) - 5} more" if len(self.keys) > 5 else "")

    @property
    def code(self) -> str:
        """All keys."""
        return f"cp.category({list(self.keys)!r})"

    def made_up(self, coins: Coins) -> Key:
        """Any key."""
        return self.keys[coins.integer(len(self.keys))]


class Text(Column, Value, frozen=True):
    """A text: equality, IN and LIKE."""

    @property
    def kind(self) -> Kind:
        """Texts."""
        return "text"

    def describe(self) -> str:
        """Any text."""
        return "a text"

    @property
    def code(self) -> str:
        """Without arguments."""
        return "cp.text()"

    def made_up(self, coins: Coins) -> str:
        """One of a few texts, so that some rows have the same."""
        return f"made up {coins.integer(_FEW)}"


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

    def describe(self) -> str:
        """True or false."""
        return "true or false"

    @property
    def code(self) -> str:
        """Without arguments."""
        return "cp.boolean()"

    def made_up(self, coins: Coins) -> bool:
        """Either."""
        return bool(coins.integer(2))


def number(low: AnyNumber, high: AnyNumber, step: AnyNumber = 1, *, units: str | None = None) -> Number:
    """Declare a number between public bounds, stored as a whole number of `step`s. Both bounds are multiples of it.

    `units` says what it is measured in, for displays of answers.

    >>> number(0, 1000, step=0.01).describe()
    'a number from 0 to 1000 in steps of 0.01'
    >>> number(-60, 600, units="minutes").describe()
    'a number from -60 to 600 minutes in steps of 1'
    """
    return Number(low, high, step, units)


def whole() -> Whole:
    """Declare a column of whole numbers without bounds: for `where` and for given keys, not for sums.

    An undeclared column of whole numbers is one. In a CSV file, where all values are texts, it must be declared.

    >>> whole().describe()
    'a whole number without bounds'
    """
    return Whole()


def category(keys: Iterable[int | str]) -> Category:
    """Declare a column that holds one of a public list of keys.

    >>> category(["CA", "NY", "WY"]).describe()
    "one of 'CA', 'NY', 'WY'"
    """
    return Category(keys)


def text() -> Text:
    """Declare a column of texts. Whole numbers and dates become texts.

    >>> text().describe()
    'a text'
    """
    return Text()


def boolean() -> Boolean:
    """Declare a column of truth values.

    >>> boolean().known_keys
    (False, True)
    """
    return Boolean()


def _literal(value: Fraction) -> str:
    """A number as Python code that `exact` reads as that number."""
    if value.denominator == 1:
        return str(value.numerator)
    written = format_number(value)
    return written if exact(float(value)) == value and "/" not in written else repr(str(Fraction(value)))


def readable(value: str) -> str:
    """Return the text, or raise `InvalidRequest` if some engine cannot store it.

    >>> readable("Zürich")
    'Zürich'
    """
    if not is_readable(value):
        raise InvalidRequest("a text must not contain NUL or a surrogate (half of a character)")
    return value


def is_readable(value: str) -> bool:
    r"""Whether every engine can store this text: no NUL, no surrogates.

    >>> is_readable("Zürich"), is_readable("Zur\0ich")
    (True, False)
    """
    return "\0" not in value and (value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value))


_NUMBERS = {"DOUBLE", "FLOAT", "DECIMAL", "HUGEINT", "UHUGEINT", "UBIGINT"}
_DATES = {"DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"}
_MORE: dict[type[Column], str] = {
    Whole: "; cp.number(low, high) to add it up",
    Text: "; cp.category([...]) to count by it",
}
"""What to declare in the place of a column that was inferred from its type, and what for."""


def undeclared_words(name: str, kind: str) -> str:
    """What an undeclared column needs before requests can name it.

    >>> undeclared_words("when", "DATE")
    "undeclared, of type DATE: declare columns={'when': cp.date('YYYY-MM-DD', 'YYYY-MM-DD')} to ask about it"
    >>> undeclared_words("tags", "VARCHAR[]")
    'undeclared, of type VARCHAR[]: no declaration fits this type; convert it to a number, a text or a date first'
    """
    found = what_to_declare(kind)
    if found.startswith("cp."):
        return f"undeclared, of type {kind}: declare columns={{{name!r}: {found}}} to ask about it"
    return f"undeclared, of type {kind}: {found}"


def what_to_declare(kind: str) -> str:
    """The code that declares a column of this type, with names to be filled in; or why it cannot be declared.

    >>> what_to_declare("DATE")
    "cp.date('YYYY-MM-DD', 'YYYY-MM-DD')"
    """
    if kind in _NUMBERS:
        return "cp.number(low, high)"
    if kind in _DATES:
        return "cp.date('YYYY-MM-DD', 'YYYY-MM-DD')"
    if "TIME ZONE" in kind.upper() or kind == "TIMESTAMPTZ_NS":
        return "cp.timestamp('YYYY-MM-DD', 'YYYY-MM-DD', zone='UTC')"
    return "no declaration fits this type; convert it to a number, a text or a date first"


def undeclared_note(column: Column) -> str:
    """What `describe` says behind a column that was inferred from its type."""
    return f" (undeclared: for where and keys only{_MORE.get(type(column), '')})"
