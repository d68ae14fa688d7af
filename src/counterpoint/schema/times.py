"""Columns of dates and of timestamps, and what a wall clock means in a time zone.

**Dates** are stored as whole numbers of days since 1970-01-01, between two public bounds. A day outside the bounds (an
infinite date too) becomes the nearer bound; a value that is not a date of the years 1 to 9999, written as YYYY-MM-DD,
is missing. Write dates the same way in a `where`, and as keys, edges and candidates. Dates can be compared, counted and
ranked, but not added up.

>>> joined = date("2020-01-01", "2029-12-31")
>>> joined.describe(), joined.key("2020-02-29"), joined.spelled(18321)
('a date from 2020-01-01 to 2029-12-31', 18321, '2020-02-29')

**Timestamps** are instants between two public bounds, with a zone whose wall clock people read. An instant is stored
exactly, as a whole number of microseconds since 1970-01-01 in UTC (nanoseconds are rounded down). Values with a zone or
an offset are instants already; values without one are wall times of the declared zone. A value beyond the bounds
becomes the nearer bound; a text that is not written as in 2013-03-10T02:30:00-05:00 is missing. Instants can be
compared and counted by key, not added up.

Write them the same way in a `where` and as keys; without an offset they mean the declared zone's wall clock, and a wall
time that happens twice or never is refused.

>>> departed = timestamp("2013-01-01", "2014-01-01", zone="America/New_York")
>>> departed.describe()
'an instant from 2013-01-01T00:00:00-05:00 to 2014-01-01T00:00:00-05:00 in America/New_York'
>>> departed.key("2013-07-01 12:00"), departed.spelled(1372694400000000)
(1372694400000000, '2013-07-01T12:00:00-04:00')

**Time zones** say which instant a wall clock means, by the tz database (`zoneinfo`). A zone is an offset from UTC that
changes at certain instants. Where the clock is set back, a wall time happens twice; where it is set forward, some never
happen. Data is read by one total rule, that of PEP 495 with fold=0: the offset that held before the change still
applies, up to the later of the two wall times of the change. So a wall time that happens twice is its first instant,
and one that never happens is read on the old clock, as if it had not been changed yet. Engines differ in this, so none
is asked: the changes within the declared bounds are written into the query.

>>> new_york = zone("America/New_York")
>>> changes = changes_of("America/New_York", 1362000000, 1384000000)
>>> [(instant_of(at, new_york), before, after) for at, before, after in changes]
[('2013-03-10T03:00:00-04:00', -18000, -14400), ('2013-11-03T01:00:00-05:00', -14400, -18000)]

**Times of numpy**, which counts years to attoseconds in 64 bits, become exact microseconds, far beyond Python's
calendar. Numpy's own conversions wrap around where 64 bits do not hold the result, and a time in the year
146,138,514,283 would become one of 2013. Here all is computed in Python's integers, so that a time beyond the bounds of
a column is clamped like any other value.

>>> [wall_micros(time) for time in (np.datetime64("1970-01-02"), np.datetime64(-1, "ns"), np.datetime64(2**62, "Y"))]
[86400000000, -1, 145530754322584195571932800000000]
>>> at_wall(10**30), at_wall(0)
(datetime.datetime(9999, 12, 31, 23, 59, 59, 999999), datetime.datetime(1970, 1, 1, 0, 0))
"""

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from datetime import date as Day  # noqa: N812
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import numpy as np

from counterpoint.coins.coins import Coins
from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter, InvalidRequest, shown
from counterpoint.numbers.exact import plain_scalar
from counterpoint.numbers.parameters import Parameter, Read
from counterpoint.schema.columns import Column, Key, Kind
from counterpoint.schema.date_formats import checked_format, rewritten

_ISO = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_FIRST_DAY = Day(1970, 1, 1).toordinal()


def _day(value: object, what: str) -> str:
    found = days(value)
    if found is None:
        raise InvalidParameter(f"{what} must be a date such as '2020-12-31', but {shown(value)} was given")
    return spelled(found)


DayText = Annotated[Parameter[str, str | Day], Read(_day)]
"""A day, as YYYY-MM-DD."""


class Date(Column, Value, frozen=True):
    """A date from `low` to `high`, both YYYY-MM-DD, stored as a number of days.

    Texts are read as `format` says, or else as YYYY-MM-DD (see `date_formats`).
    """

    low: DayText
    high: DayText
    format: str | None = None

    def __post_init__(self) -> None:
        """Check the format, and the order of the bounds."""
        checked_format(self.format, times=False)
        if self.low >= self.high:  # ISO 8601 texts sort as dates do
            raise InvalidParameter(f"low must be before high, but {self.low} and {self.high} were given")

    @property
    def kind(self) -> Kind:
        """Integers."""
        return "number"

    @property
    def least(self) -> int:
        """The first day."""
        return Day.fromisoformat(self.low).toordinal() - _FIRST_DAY

    @property
    def most(self) -> int:
        """The last day."""
        return Day.fromisoformat(self.high).toordinal() - _FIRST_DAY

    @property
    def bounds(self) -> tuple[int, int]:
        """Both days."""
        return self.least, self.most

    @property
    def wider(self) -> "Date":
        """Two days more."""
        first, last = 1 - _FIRST_DAY, Day.max.toordinal() - _FIRST_DAY
        return Date(spelled(max(self.least - 1, first)), spelled(min(self.most + 1, last)), self.format)

    def describe(self) -> str:
        """The first and the last day, and how texts are written."""
        return f"a date from {self.low} to {self.high}{_written_as(self.format)}"

    @property
    def code(self) -> str:
        """Both days, and the format."""
        return f"cp.date({self.low!r}, {self.high!r}{_format_code(self.format)})"

    def made_up(self, coins: Coins) -> int:
        """Any day between the bounds."""
        return self.least + coins.integer(self.most - self.least + 1)

    def key(self, value: object) -> int:
        """The stored form of a date."""
        found = days(value)
        if found is None:
            raise InvalidRequest(f"{shown(value)} is not a date, and this column is {self.describe()}: use YYYY-MM-DD")
        return found

    def read_text(self, text: str) -> int | None:
        """The day that a text of the data spells; None if it is written in another way."""
        found = text if self.format is None else rewritten(self.format, text)
        return None if found is None else days(found)

    def spelled(self, stored: Key) -> str:
        """A stored date as YYYY-MM-DD."""
        return spelled(int(stored))


def _written_as(format: str | None) -> str:
    return "" if format is None else f", written as {format}"


def _format_code(format: str | None) -> str:
    return "" if format is None else f", format={format!r}"


def date(low: str | Day, high: str | Day, *, format: str | None = None) -> Date:
    """Declare a column of dates between two public days; `format` says how texts are written, if not as YYYY-MM-DD.

    >>> date("2020-01-01", "2020-12-31").most
    18627
    >>> date("2020-01-01", "2020-12-31", format="%d/%m/%Y").read_text("31/12/2020")
    18627
    """
    return Date(low, high, format)


def days(value: object) -> int | None:
    """A date, or a text YYYY-MM-DD, as days since 1970-01-01; None if it is neither.

    >>> days("1970-01-02"), days("1970-02-30"), days("tomorrow")
    (1, None, None)
    """
    value = plain_scalar(value)
    if isinstance(value, Day) and not isinstance(value, datetime):
        return value.toordinal() - _FIRST_DAY
    if not isinstance(value, str) or _ISO.fullmatch(value) is None:
        return None
    try:
        return Day.fromisoformat(value).toordinal() - _FIRST_DAY
    except ValueError:
        return None


def is_day(stored: Fraction) -> bool:
    """Whether this number of days after 1970-01-01 is a day of the years 1 to 9999.

    >>> is_day(Fraction(-719162)), is_day(Fraction(-719163)), is_day(Fraction(1, 2))
    (True, False, False)
    """
    return stored.denominator == 1 and 0 < stored + _FIRST_DAY <= Day.max.toordinal()


def spelled(stored: int) -> str:
    """Days since 1970-01-01 as YYYY-MM-DD.

    >>> spelled(0)
    '1970-01-01'
    """
    return Day.fromordinal(stored + _FIRST_DAY).isoformat()


SECOND = 1_000_000
"""Microseconds of a second."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOOKED_AT = 6 * 3600
"""The offset is looked at every six hours: no zone has changed it twice within six hours and back."""


def zone(name: object) -> ZoneInfo:
    """The zone of this name, or `InvalidParameter`.

    >>> zone("Mars/Olympus")
    Traceback (most recent call last):
    ...
    counterpoint.errors.InvalidParameter: there is no time zone 'Mars/Olympus': use a name of the tz ...
    """
    with suppress(LookupError, ValueError, OSError, TypeError):
        if isinstance(name, str):
            return ZoneInfo(name)  # which keeps the zones that it has read
    raise InvalidParameter(
        f"there is no time zone {str(name)[:40]!r}: use a name of the tz database, such as 'Europe/Berlin' or 'UTC'"
    )


@lru_cache(64)
def changes_of(name: str, first: int, last: int) -> tuple[tuple[int, int, int], ...]:
    """The changes of a zone between two instants, in order: when, the offset before it and after it, all in seconds."""
    found, place, before = [], first, offset_at(name, first)
    while place < last:
        ahead = min(place + _LOOKED_AT, last)
        if offset_at(name, ahead) != before:
            start = place
            while ahead - start > 1:
                middle = (start + ahead) // 2
                start, ahead = (middle, ahead) if offset_at(name, middle) == before else (start, middle)
            after = offset_at(name, ahead)
            found.append((ahead, before, after))
            before = after
        place = ahead
    return tuple(found)


def offset_at(name: str, second: int) -> int:
    """The offset of a zone at an instant, in seconds; both count from 1970-01-01 in UTC.

    >>> offset_at("Asia/Kolkata", 0)
    19800
    """
    offset = (_EPOCH + timedelta(seconds=second)).astimezone(zone(name)).utcoffset()
    assert offset is not None
    return int(offset.total_seconds())


def micros(aware: datetime) -> int:
    """Microseconds from 1970-01-01 in UTC to a datetime with an offset, exactly.

    >>> micros(datetime(1970, 1, 1, 1, tzinfo=UTC))
    3600000000
    """
    return (aware - _EPOCH) // timedelta(microseconds=1)


def at_micros(stored: int, within: ZoneInfo) -> datetime:
    """The datetime in a zone that is `stored` microseconds after 1970-01-01 in UTC."""
    return (_EPOCH + timedelta(microseconds=stored)).astimezone(within)


def instant_of(second: int, within: ZoneInfo) -> str:
    """An instant as a text with its offset."""
    return at_micros(second * SECOND, within).isoformat()


def is_ambiguous(wall: datetime, within: ZoneInfo) -> bool:
    """Whether this wall time happens twice in a zone, or never.

    >>> is_ambiguous(datetime(2013, 3, 10, 2, 30), zone("America/New_York"))
    True
    """
    first, second = (wall.replace(tzinfo=within, fold=fold) for fold in (0, 1))
    return first.utcoffset() != second.utcoffset()


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
    """An instant from `low` to `high`, both texts with an offset, read on the wall clock of `zone`.

    Texts are read as `format` says, or else as ISO 8601 (see `date_formats`).
    """

    low: str
    high: str
    zone: str
    format: str | None = None

    def __post_init__(self) -> None:
        """Check the format, the zone and the bounds."""
        checked_format(self.format, times=True)
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

    @property
    def bounds(self) -> tuple[int, int]:
        """Both instants."""
        return self.least, self.most

    @property
    def wider(self) -> "Timestamp | None":
        """Two microseconds more; None where the calendar or the years between the bounds leave no room."""
        with suppress(InvalidParameter, OverflowError):
            return Timestamp(self.spelled(self.least - 1), self.spelled(self.most + 1), self.zone, self.format)
        return None

    def describe(self) -> str:
        """The bounds, the zone, and how texts are written."""
        return f"an instant from {self.low} to {self.high} in {self.zone}{_written_as(self.format)}"

    @property
    def code(self) -> str:
        """The bounds, the zone and the format."""
        return f"cp.timestamp({self.low!r}, {self.high!r}, zone={self.zone!r}{_format_code(self.format)})"

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

    def read_text(self, text: str) -> datetime | None:
        """The time that a text of the data spells; None if it is written in another way."""
        return written(text if self.format is None else rewritten(self.format, text))

    def offsets(self) -> tuple[int, tuple[tuple[int, int], ...]]:
        """The first offset of the zone near the bounds, and from which wall time on which other one holds.

        Wall times and offsets are in microseconds; wall times count from 1970-01-01 00:00 on the wall clock.
        """
        first, last = self.least // SECOND - MARGIN, self.most // SECOND + MARGIN
        changes = changes_of(self.zone, first, last)
        later = [((at + max(before, after)) * SECOND, after * SECOND) for at, before, after in changes]
        return offset_at(self.zone, first) * SECOND, tuple(later)


def timestamp(low: str | Day, high: str | Day, zone: str, *, format: str | None = None) -> Timestamp:
    """Declare a column of instants between two public ones, read on the wall clock of a zone of the tz database.

    `format` says how texts are written, if not as ISO 8601.

    >>> timestamp("2013-01-01T00:00:00Z", "2014-01-01T00:00:00Z", zone="UTC").most
    1388534400000000
    """
    return Timestamp(_bound(low, "low", zone), _bound(high, "high", zone), zone, format)


def written(value: Any) -> datetime | None:
    """A datetime, a date (its midnight), or a text that spells one; None for anything else.

    >>> written("2013-03-10 02:30"), written("2013-02-30"), written(3)
    (datetime.datetime(2013, 3, 10, 2, 30), None, None)
    """
    value = plain_scalar(value)
    if isinstance(value, datetime):
        return value
    if isinstance(value, Day):
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


_NAIVE_EPOCH = datetime(1970, 1, 1)
_DAY = 24 * 3600 * SECOND
_MICROS = {"W": 7 * _DAY, "D": _DAY, "h": 3600 * SECOND, "m": 60 * SECOND, "s": SECOND, "ms": 1000, "us": 1}
_PARTS = {"ns": 10**3, "ps": 10**6, "fs": 10**9, "as": 10**12}
"""How many of a unit are a microsecond."""


def wall_micros(value: np.datetime64) -> int:
    """Microseconds from 1970-01-01 00:00 to a time that is not NaT, rounded down, as in a table."""
    unit, many = np.datetime_data(value.dtype)
    count = int(value.astype(np.int64)) * many
    if unit in _PARTS:
        return count // _PARTS[unit]
    if unit in ("Y", "M"):
        return _DAY * _days_before(12 * count if unit == "Y" else count)
    return count * _MICROS[unit]


def _days_before(month: int) -> int:
    """The days from 1970-01-01 to the first day of a month, counted from then on; 400 years have 146,097 days.

    >>> _days_before(0), _days_before(2), _days_before(12 * 30 + 2), _days_before(-12)
    (0, 59, 11017, -365)
    """
    cycles, rest = divmod(month, 12 * 400)
    return cycles * 146_097 + (datetime(1970 + rest // 12, rest % 12 + 1, 1) - _NAIVE_EPOCH).days


def at_wall(micros: int) -> datetime:
    """The wall time so many microseconds after 1970-01-01 00:00, or the nearest of the years 1 to 9999."""
    first, last = ((bound - _NAIVE_EPOCH) // timedelta(microseconds=1) for bound in (datetime.min, datetime.max))
    return _NAIVE_EPOCH + timedelta(microseconds=min(max(micros, first), last))
