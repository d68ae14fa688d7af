"""Timestamps: a column of instants between two public bounds, with a zone whose wall clock people read.

An instant is stored exactly, as a whole number of microseconds since 1970-01-01 in UTC (nanoseconds are rounded down).
Values with a zone or an offset are instants already; values without one are wall times of the declared zone (see
`zones` for those that happen twice or never). A value beyond the bounds becomes the nearer bound; a text that is not
written as in 2013-03-10T02:30:00-05:00 is missing. Instants can be compared and counted by key, not added up.

Write them the same way in a `where` and as keys; without an offset they mean the declared zone's wall clock, and a wall
time that happens twice or never is refused.

>>> from counterpoint.sources.declaring.timestamps import timestamp
>>> departed = timestamp("2013-01-01", "2014-01-01", zone="America/New_York")
>>> departed.describe()
'an instant from 2013-01-01T00:00:00-05:00 to 2014-01-01T00:00:00-05:00 in America/New_York'
>>> departed.key("2013-07-01 12:00"), departed.spelled(1372694400000000)
(1372694400000000, '2013-07-01T12:00:00-04:00')
"""

import re
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter, InvalidRequest, shown
from counterpoint.numbers.scalars import plain_scalar
from counterpoint.randomness.coins import Coins
from counterpoint.sources.declaring.columns import Column, Key, Kind
from counterpoint.sources.declaring.zones import SECOND, at_micros, changes_of, is_ambiguous, micros, offset_at, zone

_TIME = "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,6})?)?"
OFFSET = "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
"""What follows a time that is an instant by itself."""
TIME_OF_DAY = f"([T ]{_TIME}{OFFSET}?)?"
"""What may follow the day in a text."""
LONGEST = 32
"""The most characters of such a text."""
MOST_YEARS = 200
"""The most years between the bounds: every change of the zone between them is written into the query."""
MARGIN = 2 * 24 * 3600
"""Further apart than this, in seconds, no two wall clocks show the same time."""


class Timestamp(Column, Value, frozen=True):
    """An instant from `low` to `high`, both texts with an offset, read on the wall clock of `zone`."""

    low: str
    high: str
    zone: str

    def __post_init__(self) -> None:
        """Check the zone and the bounds."""
        within = zone(self.zone)
        for name, bound in (("low", self.low), ("high", self.high)):
            if not _is_instant(bound):
                raise InvalidParameter(f"{name} must be an instant such as '2013-01-01T00:00:00Z', not {shown(bound)}")
        if self.least >= self.most:
            raise InvalidParameter(f"low must be before high, but {self.low} and {self.high} were given")
        first, last = _year(self.least, within, 1), _year(self.most, within, 9999)
        if first < 2 or last > 9998 or last - first > MOST_YEARS:
            raise InvalidParameter(
                f"the bounds must be at most {MOST_YEARS} years apart, in the years 2 to 9998, but {self.low} and "
                f"{self.high} were given"
            )

    @property
    def kind(self) -> Kind:
        """Integers."""
        return "number"

    @property
    def least(self) -> int:
        """The first instant, in microseconds."""
        return micros(_aware(self.low))

    @property
    def most(self) -> int:
        """The last instant, in microseconds."""
        return micros(_aware(self.high))

    def describe(self) -> str:
        """The bounds and the zone."""
        return f"an instant from {self.low} to {self.high} in {self.zone}"

    @property
    def code(self) -> str:
        """The bounds and the zone."""
        return f"cp.timestamp({self.low!r}, {self.high!r}, zone={self.zone!r})"

    def made_up(self, coins: Coins) -> int:
        """Any second between the bounds."""
        seconds = (self.most - self.least) // SECOND
        return self.least + SECOND * coins.integer(seconds + 1)

    def key(self, value: object) -> int:
        """The stored form of an instant, or of a wall time of the zone that happens once."""
        found = written(value)
        if found is None:
            raise InvalidRequest(
                f"{shown(value)} is not a time, and this column is {self.describe()}: write it as in "
                "'2013-03-10T14:30:00' or '2013-03-10T14:30:00-05:00'"
            )
        return _meant(found, zone(self.zone), InvalidRequest)

    def spelled(self, stored: Key) -> str:
        """A stored instant on the wall clock of the zone, with its offset."""
        return at_micros(int(stored), zone(self.zone)).isoformat()

    def read(self, found: datetime) -> int:
        """A value of the data in stored form, within the bounds; one without an offset is a wall time of the zone."""
        aware = found if found.tzinfo is not None else found.replace(tzinfo=zone(self.zone), fold=0)
        return min(max(micros(aware), self.least), self.most)

    def offsets(self) -> tuple[int, tuple[tuple[int, int], ...]]:
        """The first offset of the zone near the bounds, and from which wall time on which other one holds.

        Wall times and offsets are in microseconds; wall times count from 1970-01-01 00:00 on the wall clock.
        """
        first, last = self.least // SECOND - MARGIN, self.most // SECOND + MARGIN
        changes = changes_of(self.zone, first, last)
        later = [((at + max(before, after)) * SECOND, after * SECOND) for at, before, after in changes]
        return offset_at(self.zone, first) * SECOND, tuple(later)


def timestamp(low: str | date, high: str | date, zone: str) -> Timestamp:
    """Declare a column of instants between two public ones, read on the wall clock of a zone of the tz database.

    >>> timestamp("2013-01-01T00:00:00Z", "2014-01-01T00:00:00Z", zone="UTC").most
    1388534400000000
    """
    return Timestamp(_bound(low, "low", zone), _bound(high, "high", zone), zone)


def written(value: Any) -> datetime | None:
    """A datetime, a date (its midnight), or a text that spells one; None for anything else.

    >>> written("2013-03-10 02:30"), written("2013-02-30"), written(3)
    (datetime.datetime(2013, 3, 10, 2, 30), None, None)
    """
    value = plain_scalar(value)
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    if not isinstance(value, str) or len(value) > LONGEST or not value.isascii():
        return None
    if re.fullmatch(rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}{TIME_OF_DAY}", value) is None:
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


def _bound(value: object, what: str, name: str) -> str:
    found = written(value)
    if found is None:
        raise InvalidParameter(
            f"{what} must be a time such as '2013-01-01' or '2013-01-01T12:00:00Z', not {shown(value)}"
        )
    instant = _meant(found, zone(name), InvalidParameter)
    try:
        return at_micros(instant, zone(name)).isoformat()
    except OverflowError:  # a bound beyond the calendar, which `Timestamp` refuses
        return found.replace(tzinfo=found.tzinfo or UTC).isoformat()


def _year(instant: int, within: ZoneInfo, beyond: int) -> int:
    """The year that the wall clock of a zone shows, or this one where that is beyond the calendar."""
    try:
        return at_micros(instant, within).year
    except OverflowError:
        return beyond


def _meant(found: datetime, within: ZoneInfo, refusal: type[Exception]) -> int:
    """What a person means who wrote this; a wall time must happen once."""
    if found.tzinfo is not None:
        return micros(found)
    if is_ambiguous(found, within):
        raise refusal(
            f"{found.isoformat()} happens twice or never in {within.key}, where the clock is changed: write the "
            f"offset, as in {found.replace(tzinfo=within, fold=0).isoformat()}"
        )
    return micros(found.replace(tzinfo=within))


def _is_instant(bound: object) -> bool:
    found = written(bound) if isinstance(bound, str) else None
    return found is not None and found.tzinfo is not None


def _aware(text: str) -> datetime:
    return datetime.fromisoformat(text)
