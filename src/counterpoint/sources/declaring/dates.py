"""Dates: a column of days between two public bounds, stored as whole numbers of days since 1970-01-01.

A day outside the bounds (an infinite date too) becomes the nearer bound; a value that is not a date of the years 1 to
9999, written as YYYY-MM-DD, is missing. Write dates the same way in a `where`, and as keys, edges and candidates. Dates
can be compared, counted and ranked, but not added up.

>>> from counterpoint.sources.declaring.dates import date
>>> joined = date("2020-01-01", "2029-12-31")
>>> joined.describe(), joined.key("2020-02-29"), joined.spelled(18321)
('a date from 2020-01-01 to 2029-12-31', 18321, '2020-02-29')
"""

import re
from datetime import date as Day  # noqa: N812 - `date` is what a data person declares a column with
from datetime import datetime
from fractions import Fraction
from typing import Annotated

from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter, InvalidRequest, shown
from counterpoint.numbers.parameters import Parameter, Read
from counterpoint.numbers.scalars import plain_scalar
from counterpoint.randomness.coins import Coins
from counterpoint.sources.declaring.columns import Column, Key, Kind

_ISO = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_EPOCH = Day(1970, 1, 1).toordinal()


def _day(value: object, what: str) -> str:
    found = days(value)
    if found is None:
        raise InvalidParameter(f"{what} must be a date such as '2020-12-31', but {shown(value)} was given")
    return spelled(found)


DayText = Annotated[Parameter[str, str | Day], Read(_day)]
"""A day, as YYYY-MM-DD."""


class Date(Column, Value, frozen=True):
    """A date from `low` to `high`, both YYYY-MM-DD, stored as a number of days."""

    low: DayText
    high: DayText

    def __post_init__(self) -> None:
        """Check the order of the bounds."""
        if self.low >= self.high:  # ISO 8601 texts sort as dates do
            raise InvalidParameter(f"low must be before high, but {self.low} and {self.high} were given")

    @property
    def kind(self) -> Kind:
        """Integers."""
        return "number"

    @property
    def least(self) -> int:
        """The first day."""
        return Day.fromisoformat(self.low).toordinal() - _EPOCH

    @property
    def most(self) -> int:
        """The last day."""
        return Day.fromisoformat(self.high).toordinal() - _EPOCH

    def describe(self) -> str:
        """The first and the last day."""
        return f"a date from {self.low} to {self.high}"

    @property
    def code(self) -> str:
        """Both days."""
        return f"cp.date({self.low!r}, {self.high!r})"

    def made_up(self, coins: Coins) -> int:
        """Any day between the bounds."""
        return self.least + coins.integer(self.most - self.least + 1)

    def key(self, value: object) -> int:
        """The stored form of a date."""
        found = days(value)
        if found is None:
            raise InvalidRequest(f"{shown(value)} is not a date, and this column is {self.describe()}: use YYYY-MM-DD")
        return found

    def spelled(self, stored: Key) -> str:
        """A stored date as YYYY-MM-DD."""
        return spelled(int(stored))


def date(low: str | Day, high: str | Day) -> Date:
    """Declare a column of dates between two public days.

    >>> date("2020-01-01", "2020-12-31").most
    18627
    """
    return Date(low, high)


def days(value: object) -> int | None:
    """A date, or a text YYYY-MM-DD, as days since 1970-01-01; None if it is neither.

    >>> days("1970-01-02"), days("1970-02-30"), days("tomorrow")
    (1, None, None)
    """
    value = plain_scalar(value)
    if isinstance(value, Day) and not isinstance(value, datetime):
        return value.toordinal() - _EPOCH
    if not isinstance(value, str) or _ISO.fullmatch(value) is None:
        return None
    try:
        return Day.fromisoformat(value).toordinal() - _EPOCH
    except ValueError:
        return None


def is_day(stored: Fraction) -> bool:
    """Whether this number of days after 1970-01-01 is a day of the years 1 to 9999.

    >>> is_day(Fraction(-719162)), is_day(Fraction(-719163)), is_day(Fraction(1, 2))
    (True, False, False)
    """
    return stored.denominator == 1 and 0 < stored + _EPOCH <= Day.max.toordinal()


def spelled(stored: int) -> str:
    """Days since 1970-01-01 as YYYY-MM-DD.

    >>> spelled(0)
    '1970-01-01'
    """
    return Day.fromordinal(stored + _EPOCH).isoformat()
