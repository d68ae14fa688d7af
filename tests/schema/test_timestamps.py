"""Instants with a declared zone: exact, the same on every engine, also where a wall time happens twice or never."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines import engines
from tests.sources import people

import counterpoint as cp
from counterpoint.encoding import decode, encode
from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.schema.columns import Column
from counterpoint.schema.times import changes_of, micros, offset_at, written

ENGINES = ["duckdb", "postgres", "spark"]
ZONES = {
    "America/New_York": ("2013-01-01", "2014-01-01"),  # one hour forward, one hour back
    "Australia/Lord_Howe": ("2013-01-01", "2014-01-01"),  # half an hour
    "Pacific/Apia": ("2011-06-01", "2012-06-01"),  # a whole day was left out
    "America/Caracas": ("2007-06-01", "2008-06-01"),  # the offset changed to -04:30
    "Asia/Kolkata": ("2013-01-01", "2014-01-01"),  # no change
    "UTC": ("1969-01-01", "1971-01-01"),
}
NEW_YORK = cp.timestamp("2013-01-01", "2014-01-01", zone="America/New_York")


def column(zone):
    return cp.timestamp(*ZONES[zone], zone=zone)


def walls(zone):
    """Wall times around every change of a zone, around the bounds, and far outside of them."""
    low, high = (datetime.fromisoformat(bound) for bound in ZONES[zone])
    first, last = (int(bound.replace(tzinfo=UTC).timestamp()) for bound in (low, high))
    found = [low, high, low - timedelta(days=3), high + timedelta(days=3), datetime(2, 1, 1), datetime(9998, 1, 1)]
    found += [bound + timedelta(microseconds=step) for bound in (low, high) for step in (-1, 1)]
    for at, before, after in changes_of(zone, first, last):
        for offset in (before, after):
            wall = datetime(1970, 1, 1) + timedelta(seconds=at + offset)
            found += [wall + timedelta(microseconds=step) for step in (-1_800_000_000, -1, 0, 1, 900_000_000)]
    return found


def stored(table, name="at"):
    place = [named.name for named in table.declaration.columns].index(name)
    return [row[0] for row in sorted(table.all_rows(f"c{place}, u"), key=lambda row: row[1])]


def bound(engine, values, kind, declared):
    frame = pa.table({"n": list(range(len(values))), "at": pa.array(values, kind)})
    return engines.bound(engine, frame, "n", 1, {"at": declared})


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_reads_wall_times_instants_and_texts_as_python_does(engine, zone):
    declared, naive = column(zone), walls(zone)
    expected = [declared.read(wall) for wall in naive]
    assert stored(bound(engine, [*naive, None], pa.timestamp("us"), declared)) == [*expected, None]
    aware = [wall.replace(tzinfo=UTC) for wall in naive]
    expected_aware = [declared.read(instant) for instant in aware]
    assert stored(bound(engine, [*aware, None], pa.timestamp("us", tz="UTC"), declared)) == [*expected_aware, None]
    texts = [wall.isoformat() for wall in naive] + [wall.isoformat(" ") for wall in aware]
    texts += [wall.isoformat() + "Z" for wall in naive] + [wall.isoformat() + "-05:30" for wall in naive]
    read = [declared.read(written(text)) for text in texts]
    assert stored(bound(engine, texts, pa.string(), declared)) == read


OTHERS = [
    *["2013-02-30", "2013-01-01T24:00:00", "2013-01-01T10:00:60", "2013-01-01T10", "2013-01-01  10:00", "now", ""],
    *["2013-01-01T10:00:00.1234567", "2013-01-01T10:00:00+24:00", "2013-01-01T10:00:00 Z", "infinity", "20130101"],
    *["2013-01-01T10:00:00Z\n", "٢٠١٣-01-01", "2013-01-01T10:00:00+0500", "2013-01-01Z", "x" * 100, None],
]
GOOD = ["2013-06-01", "2013-06-01T10:00", "2013-06-01T10:00:00", "2013-06-01 10:00:00.5", "2013-06-01T10:00:00.123456Z"]
GOOD += ["2013-06-01T10:00-04:00", "2013-06-01T10:00Z"]


@pytest.mark.parametrize("engine", ENGINES)
def test_texts_that_are_no_times_are_missing(engine):
    found = stored(bound(engine, OTHERS + GOOD, pa.string(), NEW_YORK))
    assert found == [None] * len(OTHERS) + [NEW_YORK.read(written(text)) for text in GOOD]
    assert [written(text) for text in OTHERS if text is not None] == [None] * (len(OTHERS) - 1)


def test_the_wall_clock_that_is_set_forward_or_back_is_read_by_the_offset_before():
    def read(text):
        return NEW_YORK.spelled(NEW_YORK.read(datetime.fromisoformat(text)))

    assert read("2013-03-10T01:59:59") == "2013-03-10T01:59:59-05:00"
    assert read("2013-03-10T02:30:00") == "2013-03-10T03:30:00-04:00"  # it never happened
    assert read("2013-03-10T03:00:00") == "2013-03-10T03:00:00-04:00"
    assert read("2013-11-03T01:30:00") == "2013-11-03T01:30:00-04:00"  # the first of two
    assert read("2013-11-03T02:00:00") == "2013-11-03T02:00:00-05:00"


@pytest.mark.parametrize("zone", ZONES)
def test_the_changes_are_those_that_the_tz_database_has(zone):
    declared, hour = column(zone), 3600
    first, last = declared.least // 10**6, declared.most // 10**6
    changes = changes_of(zone, first, last)
    ends = [first, *(at for at, _, _ in changes), last]
    for (start, end), offset in zip(pairwise(ends), [offset_at(zone, first), *(it[2] for it in changes)], strict=True):
        assert (
            all(offset_at(zone, at) == offset for at in range(start, end, hour)) and offset_at(zone, end - 1) == offset
        )


@settings(max_examples=200)
@given(st.datetimes(datetime(2012, 12, 25), datetime(2014, 1, 5)), st.sampled_from(sorted(ZONES)))
def test_the_offset_in_the_query_is_the_one_of_pep_495(wall, zone):
    declared = cp.timestamp("2012-12-20", "2014-01-10", zone=zone)
    first, changes = declared.offsets()
    clock = micros(wall.replace(tzinfo=UTC))
    offset = next((offset for start, offset in reversed(changes) if clock >= start), first)
    assert timedelta(microseconds=offset) == wall.replace(tzinfo=ZoneInfo(zone), fold=0).utcoffset()


def test_nanoseconds_are_rounded_down():
    values = np.array(["2013-06-01T10:00:00.123456789", "1969-12-31T23:59:59.999999999", "NaT"], dtype="datetime64[ns]")
    declared = cp.timestamp("1969-01-01", "2014-01-01", zone="UTC")
    zoned = pa.array(values).cast(pa.timestamp("ns", tz="America/New_York"))
    frame = pa.table({"n": range(3), "at": pa.array(values), "zoned": zoned})
    table = cp.Table(frame, unit="n", rows_per_unit=1, columns={"at": declared, "zoned": declared})
    expected = [1370080800123456, -1, None]
    assert stored(table) == stored(table, "zoned") == expected
    pandas = cp.Table(pd.DataFrame({"n": range(3), "at": values}), unit="n", rows_per_unit=1, columns={"at": declared})
    assert stored(pandas) == expected
    stream = cp.Stream(fields={"at": declared})
    stream.extend([{"at": value} for value in values])
    assert [item[0] for item in stream.log.items] == expected


FAR = [0, 1372694400, 2**31, 253402300800, -62135596801, 10**12, 2**62, -(2**62), 2**63 - 1, -(2**63) + 1]
"""Counts of any unit of time: some that are within the bounds, some beyond the calendar, some beyond 64 bits."""
PER_DAY = {"D": 1, "h": 24, "m": 1440, "s": 86400, "ms": 864 * 10**5, "us": 864 * 10**8, "ns": 864 * 10**11}


def clamped(column, unit, count):
    """A count of a unit of time as a column stores it."""
    micros = count * 864 * 10**8 // PER_DAY[unit]
    return min(max(micros // (864 * 10**8 if column == DAYS else 1), column.least), column.most)


INSTANTS, DAYS = cp.timestamp("2013-01-01", "2014-01-01", zone="UTC"), cp.date("2013-01-01", "2014-01-01")


@pytest.mark.parametrize("column", [INSTANTS, DAYS], ids=["instants", "days"])
@pytest.mark.parametrize("unit", PER_DAY)
def test_times_far_out_of_range_are_clamped_one_by_one(column, unit):
    """In a stream and a live table, from Arrow and pandas, with and without a zone: as far as their types go."""
    wanted = [(clamped(column, unit, count),) for count in FAR]
    values = [np.int64(count).view(f"datetime64[{unit}]") for count in FAR]
    stream = cp.Stream(fields={"at": column})
    stream.extend([{"at": value} for value in values])
    live = cp.LiveTable("who", 99, key="k", columns={"at": column})
    live.put([{"who": 1, "k": n, "at": value} for n, value in enumerate(values)])
    assert stream.log.items == [item[2:] for item in live.log.items] == wanted
    if unit not in ("s", "ms", "us", "ns"):
        return
    for zone in (None, "UTC", "Europe/Berlin")[: 1 if column == DAYS else 3]:
        arrow = pa.table({"at": pa.array(FAR, pa.int64()).cast(pa.timestamp(unit, zone))})
        plain = pd.Series(np.array(FAR).view(f"datetime64[{unit}]"))
        pandas = pd.DataFrame({"at": plain if zone is None else plain.dt.tz_localize("UTC").dt.tz_convert(zone)})
        nullable = pd.DataFrame({"at": pd.Series(arrow["at"].combine_chunks(), dtype=pd.ArrowDtype(arrow["at"].type))})
        for data in (arrow, pandas, nullable):
            with cp.Table(data, unit=cp.each_row, columns={"at": column}) as table:
                assert sorted(table.all_rows("c0")) == sorted(wanted), (type(data), zone)
        fed = cp.Stream(fields={"at": column})
        assert fed.feed(arrow.to_reader(), name="a") == len(FAR) and fed.log.items == wanted


def test_days_in_milliseconds_do_not_wrap_around():
    counts = [count * 864 * 10**5 for count in (0, 15800, 2**31, -(2**31) - 1, 2**36, -(2**36))]
    rows = pa.table({"at": pa.array(counts, pa.int64()).cast(pa.date64())})
    with cp.Table(rows, unit=cp.each_row, columns={"at": DAYS}) as table:
        assert sorted(table.all_rows("c0")) == sorted((clamped(DAYS, "ms", count),) for count in counts)


def test_a_time_of_numpy_that_python_cannot_hold_is_no_other_time():
    far = np.datetime64("146138514283-06-19T07:45:04")
    for value in (far, np.datetime64(2**62, "h"), np.datetime64("10000-01-01")):
        with pytest.raises(InvalidRequest):
            INSTANTS.key(value)


def test_infinite_times_are_the_bounds():
    declared, ends = NEW_YORK, "CASE i WHEN 0 THEN 'infinity' ELSE '-infinity' END"
    infinite = duckdb.sql(
        f"SELECT i AS n, CAST({ends} AS TIMESTAMPTZ) AS at, CAST({ends} AS TIMESTAMP) AS wall FROM range(2) AS t(i)"
    )
    table = cp.Table(infinite, unit="n", rows_per_unit=1, columns={"at": declared, "wall": declared})
    assert stored(table) == stored(table, "wall") == [declared.most, declared.least]


def test_infinite_times_in_postgres_are_the_bounds():
    name = "endless_times"
    engines.execute(
        f"DROP TABLE IF EXISTS {name}",
        f"CREATE TABLE {name} (n int, at timestamptz, wall timestamp)",
        f"INSERT INTO {name} VALUES (0, 'infinity', 'infinity'), (1, '-infinity', '-infinity'), (2, NULL, NULL)",
    )
    table = cp.Table(
        engines.url(), unit="n", rows_per_unit=1, columns=dict.fromkeys(("at", "wall"), NEW_YORK), relation=name
    )
    assert stored(table) == stored(table, "wall") == [NEW_YORK.most, NEW_YORK.least, None]


def test_a_stream_and_a_live_table_hold_the_same_instants():
    given_values = [*walls("America/New_York"), "2013-03-10T02:30:00", "2013-06-01T10:00Z", "never", None]
    stream = cp.Stream(fields={"at": NEW_YORK})
    stream.extend([{"at": value} for value in given_values])
    expected = [None if written(value) is None else NEW_YORK.read(written(value)) for value in given_values]
    assert [item[0] for item in stream.log.items] == expected
    assert people.found(stream, cp.count(where="at >= '2013-06-01'"))[0] > 0
    live = cp.LiveTable("who", 1, key="row", columns={"at": NEW_YORK})
    live.put({"who": 1, "row": 1, "at": datetime(2013, 6, 1, tzinfo=UTC)})
    assert people.found(live, cp.count(where="at = '2013-06-01T00:00:00Z'")) == (1,)
    with pytest.raises(InvalidRequest, match="cannot be converted"):
        stream.append({"at": 3})


FLIGHTS = [
    "2013-03-10T06:59:59Z",
    "2013-03-10T07:00:00Z",
    "2013-11-03T05:30:00Z",
    "2013-11-03T06:30:00Z",
    "2013-07-04T03:59:59Z",
]


@pytest.mark.parametrize("engine", ENGINES)
def test_instants_are_compared_and_have_the_parts_of_their_wall_clock(engine):
    table = bound(engine, [*FLIGHTS, None], pa.string(), NEW_YORK)
    for where, number in {
        "at >= '2013-03-10 03:00'": 4,
        "at < '2013-03-10T03:00:00'": 1,
        "at = '2013-11-03T01:30:00-05:00'": 1,
        "at IN ('2013-11-03T01:30:00-05:00', '2013-03-10T07:00:00Z')": 2,
        "at BETWEEN '2013-03-10' AND '2013-07-04'": 3,
        "NOT at BETWEEN '2013-03-10' AND '2013-07-04'": 2,
        "at IS NULL": 1,
        "at <> '2013-03-10T07:00:00Z'": 4,
        "HOUR(at) = 1": 3,
        "HOUR(at) = 3": 1,
        "HOUR(at) = 23 AND DAY(at) = 3": 1,
        "MONTH(at) = 3 AND YEAR(at) = 2013": 2,
        "DATE(at) = '2013-11-03'": 2,
        "WEEKDAY(at) = 7": 4,
    }.items():
        assert people.found(table, cp.count(where=where)) == (number,), where
    assert people.found(table, cp.count(by="HOUR(at)"))[:4] == (0, 3, 0, 1)
    keys = [datetime(2013, 3, 10, 3), "2013-11-03T01:30:00-05:00", datetime(2013, 7, 4, 3, 59, 59, tzinfo=UTC)]
    assert people.found(table, cp.count(by="at", keys=keys)) == (1, 1, 1)


@pytest.mark.parametrize("zone", ZONES)
def test_the_parts_are_those_that_python_s_clock_shows(zone):
    declared = column(zone)
    table = bound("duckdb", walls(zone), pa.timestamp("us"), declared)
    clocks = [datetime.fromisoformat(declared.spelled(instant)) for instant in stored(table)]
    assert people.found(table, cp.count(by="HOUR(at)")) == tuple([it.hour for it in clocks].count(i) for i in range(24))
    for month in range(1, 13):
        assert people.found(table, cp.count(where=f"MONTH(at) = {month}")) == (
            [it.month for it in clocks].count(month),
        )
    for day in {it.date() for it in clocks}:
        assert people.found(table, cp.count(where=f"DATE(at) = '{day}'")) == ([it.date() for it in clocks].count(day),)


@pytest.mark.parametrize("text", ["2013-03-10 02:30", "2013-11-03T01:30:00"])
def test_what_a_person_writes_must_happen_once(text):
    with pytest.raises(InvalidRequest, match=r"twice or never.*write the offset"):
        NEW_YORK.key(text)
    with pytest.raises(InvalidParameter, match="twice or never"):
        cp.timestamp(text, "2014-01-01", zone="America/New_York")
    assert NEW_YORK.key(text.replace(" ", "T") + "-05:00") < NEW_YORK.most


@pytest.mark.parametrize(
    ("low", "high", "zone", "why"),
    [
        ("2013-01-01", "2014-01-01", "Mars/Olympus", "no time zone"),
        ("2013-01-01", "2014-01-01", "../etc/passwd", "no time zone"),
        ("2013-01-01", "2014-01-01", 5, "no time zone"),
        ("2013-01-01", "2014-01-01", ["UTC"], "no time zone"),
        (datetime.min, "0100-01-01", "Etc/GMT-14", "years 2 to 9998"),
        ("0001-01-01T00:00:00+23:59", "0100-01-01", "UTC", "years 2 to 9998"),
        ("9998-01-01", "9999-12-31T23:59:59-23:59", "UTC", "years 2 to 9998"),
        ("9998-01-01", datetime.max, "America/New_York", "years 2 to 9998"),
        ("2014-01-01", "2013-01-01", "UTC", "before high"),
        ("1700-01-01", "2013-01-01", "UTC", "200 years"),
        ("0001-01-01", "0100-01-01", "UTC", "years 2 to 9998"),
        ("yesterday", "2013-01-01", "UTC", "must be a time"),
        (3, "2013-01-01", "UTC", "must be a time"),
    ],
)
def test_a_declaration_that_cannot_be_is_refused(low, high, zone, why):
    with pytest.raises(InvalidParameter, match=why):
        cp.timestamp(low, high, zone=zone)


def test_it_is_stored_printed_and_spelled_as_declared():
    assert decode(encode(NEW_YORK), Column) == NEW_YORK and eval(NEW_YORK.code, {"cp": cp}) == NEW_YORK
    assert NEW_YORK.key(NEW_YORK.spelled(1372694400000000)) == 1372694400000000
    assert cp.timestamp(date(2013, 1, 1), datetime(2014, 1, 1), zone="America/New_York") == NEW_YORK
    assert NEW_YORK.key(np.datetime64("2013-07-01T12:00")) == NEW_YORK.key("2013-07-01 12:00")


def test_instants_are_not_added_up_and_a_date_has_no_hour():
    columns = {"at": NEW_YORK, "d": cp.date("2013-01-01", "2014-01-01")}
    table = cp.Table(pa.table({"at": ["2013-01-01"], "d": ["2013-01-01"]}), unit=cp.each_row, columns=columns)
    numbers = [cp.sum("at"), cp.mean("at"), cp.sum("at + 1"), cp.median("at"), cp.sum("HOUR(d)")]
    for request in (*numbers, cp.count(where="at > 3")):
        with pytest.raises(InvalidRequest):
            table.prepare(request)
    assert table.prepare(cp.sum("HOUR(at)")).sensitivity == 23


def test_a_sample_and_a_schema_say_what_to_declare():
    zoned = pa.timestamp("us", tz="America/New_York")
    frame = pa.table({"at": pa.array([0, 10**6], zoned)})
    assert cp.columns_like(frame, public=True) == {"at": cp.timestamp("1970-01-01", "1970-01-01T00:00:01", zone="UTC")}
    assert cp.columns_from(frame.schema).undeclared["at"].startswith("cp.timestamp(")
    table = cp.Table(frame, unit=cp.each_row)
    with pytest.raises(
        InvalidRequest, match=r"at: undeclared, of type TIMESTAMP WITH TIME ZONE: declare columns=\{'at': cp"
    ):
        table.prepare(cp.count(where="at IS NULL"))
    rehearsal = cp.Session(cp.Table(frame, unit=cp.each_row, columns={"at": NEW_YORK}), within=cp.PureDP(1)).rehearse()
    assert rehearsal.ask(cp.count(by="HOUR(at)"), epsilon=1).made_up
