"""Time zones: which instant a wall clock means, by the tz database (`zoneinfo`).

A zone is an offset from UTC that changes at certain instants. Where the clock is set back, a wall time happens twice;
where it is set forward, some never happen. Data is read by one total rule, that of PEP 495 with fold=0: the offset that
held before the change still applies, up to the later of the two wall times of the change. So a wall time that happens
twice is its first instant, and one that never happens is read on the old clock, as if it had not been changed yet.
Engines differ in this, so none is asked: the changes within the declared bounds are written into the query.

>>> new_york = zone("America/New_York")
>>> changes = changes_of("America/New_York", 1362000000, 1384000000)
>>> [(instant_of(at, new_york), before, after) for at, before, after in changes]
[('2013-03-10T03:00:00-04:00', -18000, -14400), ('2013-11-03T01:00:00-05:00', -14400, -18000)]
"""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from counterpoint.errors import InvalidParameter

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
