"""How days and instants are read: the part of `loading` that is about the calendar and the clock.

A day is read from a date, a timestamp without a zone, or a text; an instant from a timestamp with or without a zone, or
a text. Values are clamped before they are converted, since not every engine can convert an infinite one. All engines
give the same integers: the changes of a zone come from `changes_of`, not from the engine.

>>> from counterpoint.schema.times import timestamp
>>> from counterpoint.engines.duckdb import DUCKDB
>>> column = timestamp("1970-01-01", "1970-01-02", zone="UTC")
>>> print(stored_instant(column, "TIMESTAMP WITH TIME ZONE", "x", DUCKDB)[-53:])
ELSE GREATEST(0, LEAST(86400000000, EPOCH_US(x))) END
"""

from counterpoint.engines.dialect import Dialect
from counterpoint.schema.date_formats import layout
from counterpoint.schema.times import LONGEST, MARGIN, OFFSET, SECOND, TIME_OF_DAY, Date, Timestamp, at_micros, zone

TIMES = {"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"}
"""Timestamps without a time zone: with one, the day would depend on the engine's own time zone."""
ZONED = {"TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS"}
_NANOSECONDS = {"TIMESTAMP_NS", "TIMESTAMPTZ_NS"}
_BEYOND_DATES = ("TIMESTAMP_S", "TIMESTAMP_MS")
"""Timestamps whose range exceeds that of dates."""
_UTC = zone("UTC")
_YEAR = "([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
_BY_FOUR = "(0[48]|[2468][048]|[13579][26])"
DAY = (
    f"({_YEAR}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
    f"|([0-9]{{2}}{_BY_FOUR}|{_BY_FOUR}00)-02-29)"
)
"""Exactly the days of the years 1 to 9999: not every engine has a conversion that returns NULL on other texts."""


def stored_day(column: Date, kind: str, value: str, dialect: Dialect) -> str:
    """Clamped first: a date within the bounds is finite, and every engine can subtract it."""
    if kind in ("VARCHAR", "ENUM"):
        written = _rewritten(column.format, dialect.written(value), dialect)
        day = _days(column, dialect.read_date.format(written), dialect)
        return f"CASE WHEN LENGTH({written}) <> 10 THEN NULL WHEN {dialect.matches(written, DAY)} THEN {day} END"
    if kind in _BEYOND_DATES:
        value = _within_calendar(kind, value)
    return _days(column, value if kind == "DATE" else f"CAST({value} AS DATE)", dialect)


def _rewritten(format: str | None, text: str, dialect: Dialect) -> str:
    """The text that is read in the place of one in a declared format, NULL for any other (`schema/date_formats.py`)."""
    if format is None:
        return text
    found = layout(format)
    pieces = [
        dialect.literal(one) if isinstance(one, str) else f"SUBSTR({text}, {one[0] + 1}, {one[1]})"
        for one in found.pieces()
    ]
    is_written_so = f"LENGTH({text}) = {found.width} AND {dialect.matches(text, found.pattern)}"
    return f"(CASE WHEN {is_written_so} THEN {' || '.join(pieces)} END)"


def _days(column: Date, day: str, dialect: Dialect) -> str:
    return (
        f"CASE WHEN {day} IS NULL THEN NULL WHEN {day} >= DATE '{column.high}' THEN {column.most} "
        f"WHEN {day} <= DATE '{column.low}' THEN {column.least} ELSE {dialect.days.format(day)} END"
    )


def stored_instant(column: Timestamp, kind: str, value: str, dialect: Dialect) -> str:
    """An instant in microseconds: of a timestamp with a zone, or of a wall time of the declared one."""
    if kind in ZONED:
        return _with_zone(column, kind, value, dialect)
    if kind in TIMES:
        return _wall(column, kind, value, dialect)
    text = _rewritten(column.format, dialect.written(value), dialect)
    wall = dialect.read_time.format(f"REGEXP_REPLACE({text}, '{OFFSET}$', '')")
    hours, minutes = (dialect.read_whole.format(f"SUBSTR({text}, LENGTH({text}) - {place}, 2)") for place in (4, 1))
    east = f"CASE WHEN SUBSTR({text}, LENGTH({text}) - 5, 1) = '-' THEN -1 ELSE 1 END * ({hours} * 60 + {minutes})"
    shifted = f"CAST({dialect.micros.format(wall)} - {east} * {60 * SECOND} AS BIGINT)"
    return (
        f"CASE WHEN LENGTH({text}) > {LONGEST} THEN NULL "
        f"WHEN {dialect.matches(text, f'{DAY}{TIME_OF_DAY}')} THEN "
        f"CASE WHEN {dialect.matches(text, '.*Z')} THEN {_clamped(column, dialect.micros.format(wall))} "
        f"WHEN {dialect.matches(text, f'.*:.*{OFFSET}')} THEN {_clamped(column, shifted)} "
        f"ELSE {_wall(column, 'TIMESTAMP', wall, dialect)} END END"
    )


def _with_zone(column: Timestamp, kind: str, value: str, dialect: Dialect) -> str:
    """Clamped first: within the bounds a timestamp is finite."""
    low, high = (f"CAST('{bound}' AS {dialect.zoned})" for bound in (column.low, column.high))
    coarse = value if kind == "TIMESTAMP WITH TIME ZONE" else f"CAST({value} AS {dialect.zoned})"
    return (
        f"CASE WHEN {value} IS NULL THEN NULL WHEN {coarse} > {high} THEN {column.most} "
        f"WHEN {coarse} < {low} THEN {column.least} ELSE {_clamped(column, _micros(kind, value, dialect))} END"
    )


def _wall(column: Timestamp, kind: str, value: str, dialect: Dialect) -> str:
    """The instant of a wall time: the offset is that of the last change before it (`schema/times.py`)."""
    near = f"CAST({value} AS {dialect.unzoned})"
    if kind in _BEYOND_DATES:
        near = f"CAST({_within_calendar(kind, value)} AS TIMESTAMP)"
    margin = MARGIN * SECOND
    first, last = (
        f"CAST('{at_micros(bound, _UTC).replace(tzinfo=None).isoformat(' ')}' AS {dialect.unzoned})"
        for bound in (column.least - margin, column.most + margin)
    )
    micros = _micros(kind, value if kind == "TIMESTAMP_NS" else near, dialect)
    before, changes = column.offsets()
    cases = " ".join(f"WHEN {micros} >= {wall} THEN {offset}" for wall, offset in reversed(changes))
    offset = f"CASE {cases} ELSE {before} END" if changes else str(before)
    return (
        f"CASE WHEN {value} IS NULL THEN NULL WHEN {near} > {last} THEN {column.most} WHEN {near} < {first} THEN "
        f"{column.least} ELSE {_clamped(column, f'{micros} - {offset}')} END"
    )


def _micros(kind: str, value: str, dialect: Dialect) -> str:
    """Microseconds, rounded down where there are nanoseconds."""
    if kind not in _NANOSECONDS:
        return dialect.micros.format(value)
    assert dialect.nanos is not None, "an engine whose dialect has no nanoseconds offers no such type"
    nanos = dialect.nanos.format(value)
    return dialect.floor_divide.format(f"{nanos} - ({nanos} % 1000 + 1000) % 1000", 1000)


def _clamped(column: Timestamp, micros: str) -> str:
    return f"GREATEST({column.least}, LEAST({column.most}, {micros}))"


def _within_calendar(kind: str, value: str) -> str:
    """A timestamp of a type whose range exceeds that of dates, brought into it."""
    first, last = (f"CAST('{day}' AS {kind})" for day in ("0001-01-01", "9999-12-31"))
    return f"CASE WHEN {value} < {first} THEN {first} WHEN {value} > {last} THEN {last} ELSE {value} END"
