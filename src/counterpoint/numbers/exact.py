"""Numbers read exactly, and written so that they read back, never rounded in the analyst's favour.

A privacy parameter is the rational number that a person typed: the float 0.1 is one tenth, not the binary
fraction nearest to it. Sums of such numbers are exact, so ten launches of 0.1 fill a budget of 1 and leave nothing.

>>> exact(0.1) * 10 == 1
True
>>> exact("1e-17") + 1 > 1
True
"""

import math
import operator
import re
import sys
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from typing import Any

from counterpoint.errors import InvalidParameter

Number = int | float | str | Decimal | Fraction
"""What may be given where a number is meant; a float stands for the decimal that it prints as."""

GIVEN_DIGITS = 50
"""How long the parameters of what a session charges for may be: numerator and denominator are at most 10^GIVEN_DIGITS.

`must_be_short` checks it once, at the edge. What the library computes of such parameters (the scale of a noise, a share
of a delta, a sum) has room below the wider bounds. Noise of a scale of 10^100 would take seconds to draw.
"""
PLACES = 400
"""The bound on every parameter of a value and on sums: none is above 10^PLACES, and no denominator is."""
LARGEST = 10**PLACES
"""10^PLACES: the largest number that a parameter may be, and one over the smallest above 0."""
_WRITTEN = 3 * PLACES + 3
"""How long a parameter may be as it is written: a sign, 2 PLACES + 1 digits, a slash, PLACES + 1 digits."""
STORED_DIGITS = 4000
"""How many digits the two integers of a stored rational have at most.

What is derived from parameters (a share of a delta, a grid, a state) may be longer than a parameter and is stored as it
is. Python reads and writes integers of at most 4300 digits.
"""
_STORED_BITS = (10**STORED_DIGITS - 1).bit_length() - 1
_STORED = re.compile(r"(-?[0-9]+)/([0-9]+)", re.ASCII)
_SPELLING = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
"""How a text may write a decimal. Python would also read 1_0 as ten, digits of other scripts, and white space."""
_LONG = 1000
"""A ratio is written as one while both of its numbers are below this."""


class Exact(Fraction):
    """A rational that people are given: a `Fraction`, shown as they would write it.

    >>> Exact(25, 2), Exact(1, 3), Exact(1, 1999999), Exact(1, 10) + Exact(2, 10) == Exact("0.3")
    (12.5, 1/3, ~5e-7, True)
    >>> print(Exact(25, 2), Exact(1, 1999999))
    12.5 1/1999999
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return format_number(self)

    def __str__(self) -> str:
        """The number itself, however long it is: `exact` reads it back."""
        return repr(self) if not repr(self).startswith("~") else super().__str__()


def exact(value: object, what: str = "the value") -> Exact:
    """Read `value` as the rational number it stands for, or raise `InvalidParameter` naming `what`.

    >>> exact(0.1), exact("2.50"), exact("1/3"), exact(Decimal("1e-3"))
    (0.1, 2.5, 1/3, 0.001)
    >>> exact(float("nan"), "epsilon")
    Traceback (most recent call last):
    ...
    counterpoint.errors.InvalidParameter: epsilon must be a finite number, but nan was given
    """
    if type(value) is int and abs(value) <= LARGEST:  # first, as Python takes longer to see that it is no Fraction
        return _made(value, 1)
    if isinstance(value, Fraction):
        if value.denominator <= LARGEST >= abs(value.numerator):  # most are small, and every launch comes this way
            return value if type(value) is Exact else _as_exact(value)
        return _in_range(value, what)
    if isinstance(value, str | float):
        return _ratio(value, what) if isinstance(value, str) and "/" in value else _decimal(value, what)
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        raise InvalidParameter(f"{what} must be a number, but a truth value was given")
    if hasattr(value, "__index__"):
        with suppress(TypeError):  # an array has it, too, and raises
            return _in_range(Fraction(operator.index(value)), what)
    if isinstance(value, Decimal) or hasattr(value, "as_integer_ratio"):
        return _decimal(value, what)
    raise InvalidParameter(f"{what} must be a number, but a {type(value).__name__} was given")


def _ratio(text: str, what: str) -> Exact:
    if len(text) > _WRITTEN:
        raise InvalidParameter(_too_long(what))
    written = _STORED.fullmatch(text)
    if written is not None and int(written[2]):
        return _in_range(Fraction(int(written[1]), int(written[2])), what)  # as we write them ourselves
    above, _, below = text.partition("/")
    if "/" in below:  # reading it again would recurse once for every slash
        raise InvalidParameter(_not_a_number(text, what))
    bottom = exact(below.strip(" "), what)
    if bottom == 0:
        raise InvalidParameter(f"{what} must be a finite number, but its denominator is 0")
    return _in_range(exact(above.strip(" "), what) / bottom, what)


def _decimal(value: object, what: str) -> Exact:
    text = str(value)
    if len(text) > _WRITTEN:
        raise InvalidParameter(_too_long(what))
    if isinstance(value, str) and not _SPELLING.fullmatch(text):
        raise InvalidParameter(_not_a_number(text, what))
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise InvalidParameter(_not_a_number(text, what)) from None
    if not number.is_finite():
        raise InvalidParameter(f"{what} must be a finite number, but {text} was given")
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int) or exponent < -2 * PLACES or exponent > 2 * PLACES:
        raise InvalidParameter(_too_long(what))
    above, below = number.as_integer_ratio()
    _check_range(above, below, what)
    return _made(above, below)


def _in_range(value: Fraction, what: str) -> Exact:
    _check_range(value.numerator, value.denominator, what)
    return value if isinstance(value, Exact) else _as_exact(value)


def _check_range(above: int, below: int, what: str) -> None:
    if below > LARGEST or abs(above) > LARGEST * below:
        raise InvalidParameter(_too_long(what))


def _not_a_number(text: str, what: str) -> str:
    return f"{what} must be a number, written as in 0.1, 1e-6 or 1/3, but {text[:40]!r} was given"


def _too_long(what: str) -> str:
    return (
        f"{what} must be a number of at most {PLACES} decimal places: neither the number nor its denominator may be "
        f"above 10^{PLACES}"
    )


def stored(value: Fraction) -> str:
    """A rational as it is stored, `n/d`; `InvalidParameter` if it is longer than `read_stored` reads back.

    >>> stored(Fraction(1, 10))
    '1/10'
    """
    above, below = value.numerator, value.denominator
    if max(above.bit_length(), below.bit_length()) > _STORED_BITS:
        raise InvalidParameter(f"a rational of more than {STORED_DIGITS} digits cannot be stored")
    return f"{above}/{below}"


def read_stored(text: object) -> Exact:
    """A rational that was stored, as `n/d`; it may be longer than a parameter.

    >>> read_stored("1/10"), read_stored(f"{10**900 + 1}/{10**900}") > 1
    (0.1, True)
    """
    written = _STORED.fullmatch(text) if isinstance(text, str) and len(text) <= 2 * STORED_DIGITS + 2 else None
    if written is None or max(len(written[1].lstrip("-")), len(written[2])) > STORED_DIGITS:
        return exact(text, "a stored number")
    above, below = int(written[1]), int(written[2])
    if not below:
        raise InvalidParameter("a stored number must be a finite number, but its denominator is 0")
    return Exact(above, below)


def _as_exact(value: Fraction) -> Exact:
    """Exact(value), in a third of the time: a rule makes several losses for every launch."""
    return _made(value.numerator, value.denominator)


def _made(above: int, below: int) -> Exact:
    """The fraction of two numbers without a common divisor."""
    number = object.__new__(Exact)
    number._numerator, number._denominator = above, below  # type: ignore[attr-defined]
    return number


def at_least(value: object, low: int, what: str) -> Exact:
    """Read a number that must not be below `low`.

    >>> at_least("0.5", 0, "epsilon")
    0.5
    """
    number = exact(value, what)
    if number.numerator < low * number.denominator:
        raise InvalidParameter(f"{what} must be at least {low}, but {format_number(number)} was given")
    return number


def positive(value: object, what: str) -> Exact:
    """Read a number that must be above 0.

    >>> positive(2, "scale")
    2
    """
    if type(value) is Exact and 0 < value.numerator <= LARGEST >= value.denominator:
        return value
    number = exact(value, what)
    if number.numerator <= 0:
        raise InvalidParameter(f"{what} must be above 0, but {format_number(number)} was given")
    return number


def above_one(value: object, what: str) -> Exact:
    """Read a Renyi order: a number above 1.

    >>> above_one(1, "alpha")
    Traceback (most recent call last):
    ...
    counterpoint.errors.InvalidParameter: alpha must be above 1, but 1 was given
    """
    number = exact(value, what)
    if number <= 1:
        raise InvalidParameter(f"{what} must be above 1, but {format_number(number)} was given")
    return number


def positive_scale(value: object, what: str) -> Exact:
    """A number above 0 that was computed of parameters: it may be as long as what is stored.

    >>> positive_scale(Fraction(10) ** 900, "scale") == 10**900
    True
    """
    if not isinstance(value, Fraction) or value.denominator <= LARGEST >= value.numerator or value <= 0:
        return positive(value, what)
    stored(value)  # which refuses what is too long
    return _as_exact(value)


def probability(value: object, what: str) -> Exact:
    """Read a number from 0 to 1.

    >>> probability(1e-6, "delta")
    1e-6
    """
    number = exact(value, what)
    if not 0 <= number.numerator <= number.denominator:
        raise InvalidParameter(f"{what} must be between 0 and 1, but {format_number(number)} was given")
    return number


def whole(value: object, low: int, what: str) -> int:
    """Read a whole number that must not be below `low`.

    >>> whole(3, 1, "asks")
    3
    """
    if type(value) is int and low <= value <= LARGEST:
        return value
    number = at_least(value, low, what)
    if number.denominator != 1:
        raise InvalidParameter(f"{what} must be a whole number, but {format_number(number)} was given")
    return number.numerator


# How sums are rounded: the four functions below, and nowhere else. A sum is exact while its denominator is at most
# 10^PLACES; beyond that it is rounded to a whole multiple of 10^-PLACES after each launch, against the analyst. Whoever
# computes an account again (`ledger verify`, `checker.py`) must do the same after every launch, in the same order.
def bounded_up(value: Fraction) -> Fraction:
    """The value itself while its denominator is at most 10^PLACES, else the next larger multiple of 10^-PLACES.

    Sums of decimals stay exact for ever; sums of ever new denominators keep a bounded size, rounded up.

    >>> bounded_up(Fraction(1, 3)) == Fraction(1, 3), bounded_up(Fraction(1, 3) ** 1000) == Fraction(1, 10**400)
    (True, True)
    """
    if value.denominator <= LARGEST:
        return value
    return Fraction(-(-value.numerator * LARGEST // value.denominator), LARGEST)


def bounded_down(value: Fraction) -> Fraction:
    """The same, rounded down: what a budget has left.

    >>> bounded_down(Fraction(1, 3)) == Fraction(1, 3), bounded_down(Fraction(1, 3) ** 1000)
    (True, Fraction(0, 1))
    """
    if value.denominator <= LARGEST:
        return value
    return Fraction(value.numerator * LARGEST // value.denominator, LARGEST)


def added_up(total: Fraction, amount: Fraction) -> Fraction:
    """The sum as an account keeps it, `bounded_up`; beyond the largest parameter it could not be read again.

    >>> added_up(Fraction(1, 3), Fraction(2, 3))
    Fraction(1, 1)
    """
    value = total + amount
    if value.numerator > LARGEST and value > LARGEST:
        raise InvalidParameter(f"this would bring the sum of all launches above 10^{PLACES}, which no account can hold")
    return bounded_up(value)


def taken_out(total: Fraction, amount: Fraction) -> Fraction:
    """A sum without an amount that was added to it, `bounded_up`: never below the sum of all other amounts.

    >>> taken_out(Fraction(1, 2), Fraction(1, 3))
    Fraction(1, 6)
    """
    return bounded_up(total - amount)


@lru_cache(maxsize=256)
def format_number(value: Fraction) -> str:
    """Write a rational as a person would: as a decimal or a ratio if that is short, else rounded, behind a tilde.

    >>> [format_number(value) for value in (Fraction(1, 10), Fraction(1, 3), Fraction(15, 10**7))]
    ['0.1', '1/3', '1.5e-6']
    >>> [format_number(value) for value in (Fraction(10**20 + 1, 3**40), Fraction(1, 1999999), Fraction(2, 10**9 + 7))]
    ['~8.22526', '~5e-7', '~2e-9']
    """
    places = _decimal_places(value.denominator)
    if places is not None:
        digits = str(abs(value.numerator) * (10**places // value.denominator))
        if len(digits) <= 18:
            return ("-" if value < 0 else "") + _pointed(digits, places)
    if max(abs(value.numerator), value.denominator) < _LONG:
        return f"{value.numerator}/{value.denominator}"
    about = Decimal(value.numerator) / Decimal(value.denominator)
    digits, _, exponent = f"{about:.6g}".lower().partition("e")
    short = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return f"~{short}e{int(exponent)}" if exponent else f"~{short}"


def _pointed(digits: str, places: int) -> str:
    """Digits with the decimal point `places` from the end; small numbers with an exponent."""
    leading = len(digits) - places  # digits before the point; 0 or less for a number below one
    if places == 0:
        return digits
    if digits != "0" and leading < -2:
        mantissa = f"{digits[0]}.{digits[1:]}".rstrip("0").rstrip(".")
        return f"{mantissa}e{leading - 1}"
    padded = digits.zfill(places + 1)
    return f"{padded[:-places]}.{padded[-places:]}".rstrip("0").rstrip(".")


def _decimal_places(denominator: int) -> int | None:
    """How many decimal places a fraction with this denominator has, or None if it never ends (or ends late)."""
    if denominator > 10**40:
        return None
    twos = (denominator & -denominator).bit_length() - 1
    odd, fives = denominator >> twos, 0
    while odd % 5 == 0:
        odd, fives = odd // 5, fives + 1
    return max(twos, fives) if odd == 1 else None


def float_up(value: Fraction | Decimal | float) -> float:
    """The smallest float that, read as the decimal it prints as, is not below `value`.

    >>> float_up(Fraction(3, 10)), float_up(Fraction(1, 3))
    (0.3, 0.33333333333333337)
    """
    # a Decimal's own minus sign would round it to the ambient precision
    return 0.0 - float_down(value.copy_negate() if isinstance(value, Decimal) else -value)


def float_down(value: Fraction | Decimal | float) -> float:
    """The largest float that, read as the decimal it prints as, is not above `value`.

    >>> float_down(Fraction(3, 10)), float_down(Fraction(2, 3))
    (0.3, 0.6666666666666666)
    """
    if isinstance(value, float) or (isinstance(value, Decimal) and not value.is_finite()):
        return float(value)
    try:
        nearest = float(value)
    except OverflowError:
        nearest = math.inf if value > 0 else -math.inf
    if nearest == -math.inf or _reads_at_most(nearest, value):
        return nearest
    return math.nextafter(nearest, -math.inf)


def _reads_at_most(number: float, value: Fraction | Decimal) -> bool:
    if number == math.inf:
        return False
    text = Decimal(repr(number))
    return text <= value if isinstance(value, Decimal) else Fraction(text) <= value


def plain_scalar(value: Any) -> Any:
    """Python's own value for a numpy scalar; anything else as it is.

    A float is the decimal that it prints as, in its own precision. A time of whole days is a date, any other a datetime
    without a zone, if it is a whole number of microseconds; what Python cannot hold stays as it is.

    A key read from a numpy array or a pandas frame is a `np.int64` or a `np.str_`. The plain value replaces it, so that
    what is stored, compared and hashed is the same for both. Numpy is not imported for this.

    >>> import numpy as np
    >>> [plain_scalar(given) for given in (np.int64(3), np.bool_(True), np.str_("CA"), np.float32(0.1))]
    [3, True, 'CA', 0.1]
    >>> plain_scalar(np.datetime64("2024-02-29")), plain_scalar([1])
    (datetime.date(2024, 2, 29), [1])
    """
    numpy: Any = sys.modules.get("numpy")  # where it was never imported, there are no scalars of it
    if numpy is None or not isinstance(value, numpy.generic):
        return value
    if isinstance(value, numpy.bool_ | numpy.integer | numpy.str_) and not isinstance(value, numpy.timedelta64):
        return value.item()
    if isinstance(value, numpy.floating):
        return float(str(value))
    return _time(value, numpy) if isinstance(value, numpy.datetime64) else value


def _time(value: Any, numpy: Any) -> Any:
    """A date or a datetime; what is neither (no time at all, nanoseconds, the year 10000) stays as it is."""
    for unit in ("D", "us"):
        found = value.astype(f"datetime64[{unit}]")
        if found.astype(value.dtype) == value == found:  # converted back, too: numpy's conversions may wrap around
            return value if isinstance(found.item(), int) else found.item()
    return value
