"""Times of numpy, which counts years to attoseconds in 64 bits: as exact microseconds, far beyond Python's calendar.

Numpy's own conversions wrap around where 64 bits do not hold the result, and a time in the year 146,138,514,283 would
become one of 2013. Here all is computed in Python's integers, so that a time beyond the bounds of a column is clamped
like any other value.

>>> [wall_micros(time) for time in (np.datetime64("1970-01-02"), np.datetime64(-1, "ns"), np.datetime64(2**62, "Y"))]
[86400000000, -1, 145530754322584195571932800000000]
>>> at_wall(10**30), at_wall(0)
(datetime.datetime(9999, 12, 31, 23, 59, 59, 999999), datetime.datetime(1970, 1, 1, 0, 0))
"""

from datetime import datetime, timedelta

import numpy as np

from counterpoint.sources.declaring.zones import SECOND

_EPOCH = datetime(1970, 1, 1)
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
    return cycles * 146_097 + (datetime(1970 + rest // 12, rest % 12 + 1, 1) - _EPOCH).days


def at_wall(micros: int) -> datetime:
    """The wall time so many microseconds after 1970-01-01 00:00, or the nearest of the years 1 to 9999."""
    first, last = ((bound - _EPOCH) // timedelta(microseconds=1) for bound in (datetime.min, datetime.max))
    return _EPOCH + timedelta(microseconds=min(max(micros, first), last))
