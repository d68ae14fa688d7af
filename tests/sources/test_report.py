"""The custodian's report: what became of the given values, alike on every engine; and nothing of it reaches others."""

import logging
import math
import warnings
from datetime import date as day
from datetime import datetime

import pyarrow as pa
import pytest
from tests.engines.engines import ENGINES, bound

import counterpoint as cp
from counterpoint.errors import CustodianWarning
from counterpoint.sources import report, table

ROWS = {
    "who": ["ann", "ann", "ann", "bob", None, "cid"],
    "age": [30, -1, 121, 130, None, 120],
    "pay": [1.5, math.nan, 1e9, -math.inf, 0.0, None],
    "state": ["CA", "ca", "ca", None, "NY", "TX"],
    "count": ["1", "12,345", "+7", " 8 ", "12,345", None],
    "born": [day(2000, 1, 1), day(1, 1, 1), day(2001, 1, 2), day(2000, 12, 31), None, day(2000, 6, 1)],
    "seen": ["2000-02-29", "29/02/2000", "2000-02-30", "1999-12-31", "01/03/2000", None],
    "vip": ["t", "yes", "0", "no", None, "false"],
    "at": [datetime(2000, 1, 1), datetime(1999, 12, 31, 23, 59, 59, 999999), datetime(2000, 1, 2, 0, 0, 0, 1)]
    + [None] * 3,
}
COLUMNS = {
    "age": cp.number(0, 120),
    "pay": cp.number(0, 100, step="0.5"),
    "state": cp.category(["CA", "NY"]),
    "count": cp.number(0, 10),
    "born": cp.date("2000-01-01", "2000-12-31"),
    "seen": cp.date("2000-01-01", "2000-12-31"),
    "vip": cp.boolean(),
    "at": cp.timestamp("2000-01-01", "2000-01-02", zone="UTC"),
}
FATES = {
    "who": (1, 0, 0, 0, 0),
    "age": (1, 0, 1, 2, 0),
    "pay": (2, 0, 1, 1, 0),
    "state": (1, 0, 0, 0, 3),
    "count": (1, 2, 0, 0, 0),
    "born": (1, 0, 1, 1, 0),
    "seen": (1, 3, 1, 0, 0),
    "vip": (1, 2, 0, 0, 0),
    "at": (3, 0, 1, 1, 0),
}
"""Missing, unreadable, below, above, undeclared."""


def frame(rows=ROWS):
    return pa.table({name: pa.array(values) for name, values in rows.items()})


def checked(engine="duckdb", rows=ROWS, columns=COLUMNS, cap=2):
    return bound(engine, frame(rows), "who", cap, columns).check()


def fates_of(found):
    return {one.name: (one.missing, one.unreadable, one.below, one.above, one.undeclared) for one in found.columns}


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_counts_what_became_of_each_value(engine):
    found = checked(engine)
    assert fates_of(found) == FATES
    assert (found.rows, found.rows_without_unit, found.units, found.rows_dropped) == (6, 1, 3, 1)
    listed = {one.name: [(text.text, text.rows) for text in one.most_frequent] for one in found.columns}
    assert listed["state"] == [("ca", 2), ("TX", 1)]
    assert listed["count"] == [("99,999", 2)], "the spelling of a text that is no number, never its digits"
    assert listed["seen"] == [("99/99/9999", 2), ("9999-99-99", 1)]
    assert listed["vip"] == [("no", 1), ("yes", 1)] and listed["age"] == listed["born"] == []


def test_what_is_stored_does_not_depend_on_the_report(monkeypatch):
    with_report = bound("duckdb", frame(), "who", 2, COLUMNS, key=bytes(32))
    monkeypatch.setattr(table.survey, "load", table.loading.load)
    monkeypatch.setattr(report, "compute", lambda *given: None)
    without = bound("duckdb", frame(), "who", 2, COLUMNS, key=bytes(32))
    assert with_report.pin() == without.pin() and with_report.rows() == without.rows()


def test_a_csv_file_is_counted_over_all_of_its_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("counterpoint.engines.inputs._BLOCK", 64)
    file = tmp_path / "many.csv"
    file.write_text("id,age\n" + "".join(f"{number % 50},{number}\n" for number in range(500)))
    found = cp.Table(file, unit="id", rows_per_unit=4, columns={"age": cp.number(100, 399)}).check()
    assert (found.rows, found.units, found.rows_dropped) == (500, 50, 300)
    assert fates_of(found)["age"] == (0, 0, 100, 100, 0)
    assert found.columns[1].converted


def test_only_values_beyond_the_bounds_are_clamped_and_rounding_is_not():
    rows = {"who": list("abcd"), "x": [9.9, 10.0, 10.2, 10.3]}
    found = checked(rows=rows, columns={"x": cp.number(0, 10, step="0.5")})
    assert fates_of(found)["x"] == (0, 0, 0, 1, 0)


def test_bounds_at_the_end_of_what_can_be_stored_have_nothing_beyond():
    rows = {"who": ["a", "b"], "day": [day(1, 1, 1), day(9999, 12, 31)], "n": [-(2**62), 2**62]}
    columns = {"day": cp.date("0001-01-01", "9999-12-31"), "n": cp.number(-(2**62), 2**62)}
    assert fates_of(checked(rows=rows, columns=columns)) == dict.fromkeys(["who", "day", "n"], (0,) * 5)


def test_each_cap_says_what_it_drops_and_what_a_count_then_costs():
    units = [(1, 60), (7, 30), (30, 10)]
    by_cap = {one.rows_per_unit: (one.dropped, one.error) for one in report.caps_of(units, 7)}
    rows = 60 + 210 + 300
    assert set(by_cap) == {1, 5, 7, 10, 20, 50, 100}
    assert {cap: dropped for cap, (dropped, _) in by_cap.items()} == {
        cap: rows - sum(min(n, cap) * many for n, many in units) for cap in by_cap
    }
    assert all(error == cp.Laplace(1).error(0.95, cap) for cap, (_, error) in by_cap.items())


def test_it_suggests_a_round_cap_a_wider_range_and_frequent_keys_only():
    rows = {
        "who": [str(number % 60) for number in range(420)],
        "age": [*range(120), *([7000] * 300)],
        "state": ["CA"] * 200 + ["wy"] * 200 + [f"rare {number}" for number in range(20)],
    }
    found = checked(rows=rows, columns={"age": cp.number(0, 120), "state": cp.category(["CA"])}, cap=1)
    age, state = found.columns[1:]
    assert found.suggestion.startswith("rows_per_unit=10 "), "every unit has 7 rows: the next round number"
    assert age.suggestion.startswith("'age': cp.number(0, 240)") and "7000" not in age.suggestion
    assert state.suggestion.startswith("'state': cp.category(['CA', 'wy'])") and "rare" not in state.suggestion


def test_every_row_as_its_own_unit_has_no_caps():
    found = bound("duckdb", frame(), unit=cp.each_row, columns=COLUMNS).check()
    assert (found.units, found.caps, found.rows_dropped, found.suggestion) == (6, (), 0, "")
    empty = bound("duckdb", frame().slice(0, 0), "who", 2, COLUMNS).check()
    assert (empty.rows, empty.units, empty.rows_of_units, empty.faults()) == (0, 0, {}, ())


def test_every_form_is_marked_as_raw_data_and_its_repr_shows_none():
    found = checked()
    assert str(found).startswith("RAW DATA") and next(iter(found.plain())) == "raw_data"
    assert found.plain()["raw_data"] == report.MARK and "raw data" in repr(found)
    assert "ca" in str(found) and not any(char.isdigit() for char in repr(found))


def test_binding_warns_the_custodian_of_more_than_one_percent_where_and_never_how_much(caplog):
    rows = {"who": [str(number) for number in range(200)], "age": [999, 999, 999] + [5] * 197, "pay": [5] * 200}
    columns = {"age": cp.number(0, 120), "pay": cp.number(0, 9)}
    with pytest.warns(CustodianWarning) as caught, caplog.at_level(logging.WARNING):
        checked(rows=rows, columns=columns)
    (one,) = caught
    assert "'age' are beyond the declared bounds" in str(one.message) and "pay" not in str(one.message)
    assert one.filename.endswith("engines.py"), "it names the line that bound the table"
    (line,) = caplog.records
    assert line.name == "counterpoint.custodian" and "999" not in line.getMessage()
    few = {**rows, "age": [999, 999] + [5] * 198}
    with warnings.catch_warnings():
        warnings.simplefilter("error", CustodianWarning)
        assert checked(rows=few, columns=columns).columns[1].above == 2, "1 % is not more than 1 %"


def test_a_cap_that_drops_more_than_one_percent_is_warned_of():
    rows = {"who": ["ann"] * 3 + [str(number) for number in range(97)], "age": [5] * 100}
    with pytest.warns(CustodianWarning, match="rows_per_unit=1 drops more than 1 % of the rows"):
        checked(rows=rows, columns={"age": cp.number(0, 120)}, cap=1)


def test_a_report_that_cannot_be_computed_does_not_keep_a_table_from_binding(monkeypatch):
    def fails(*given):
        raise cp.errors.DataFailed("made up")

    monkeypatch.setattr(report, "compute", fails)
    people = bound("duckdb", frame(), "who", 2, COLUMNS)
    assert isinstance(cp.Session(people, within=cp.PureDP(1)).ask(cp.count(), epsilon=1), int)
    with pytest.raises(cp.errors.NotAllowed, match="there is no report"):
        people.check()


def test_made_up_rows_and_closed_tables_have_no_report():
    people = bound("duckdb", frame(), "who", 2, COLUMNS)
    with pytest.raises(cp.errors.NotAllowed, match="made up"):
        people.rehearsed().check()
    assert people.part("state", "CA").check() == people.check(), "a part has the report of the whole table"
    people.close()
    with pytest.raises(cp.errors.NotAllowed, match="closed"):
        people.check()


def seen_by_analysts(ages):
    """Everything public about a table, and what a session on it says, but for the noise."""
    rows = {"who": [str(number) for number in range(len(ages))], "age": ages}
    people = bound("duckdb", frame(rows), "who", 1, {"age": cp.number(0, 120)})
    session = cp.Session(people, within=cp.PureDP(1))
    noisy = session.launch(cp.Laplace(0.5))
    noisy.ask(cp.count(where="age > 100"))
    refusals = []
    for call in (
        lambda: noisy.ask(cp.count()),
        lambda: session.launch(cp.Laplace(9)),
        lambda: session.ask(cp.mean("pay"), epsilon=0.1),
    ):
        with pytest.raises(cp.CounterpointError) as refused:
            call()
        refusals.append(str(refused.value))
    prepared = people.prepare(cp.mean("age"))
    history = [(line.kind, line.what) for line in session.history]
    shown = repr(people), people.describe(), repr(session), session._repr_html_(), str(session.certificate())
    return shown, refusals, history, prepared, people.relation, session.loss


def test_whether_the_custodian_is_warned_changes_nothing_that_an_analyst_sees(caplog):
    quiet, loud = [5] * 198 + [999] * 2, [5] * 198 + [999] * 3
    with warnings.catch_warnings(record=True) as caught, caplog.at_level(logging.DEBUG):
        warnings.simplefilter("always")
        one = seen_by_analysts(quiet)
        own = [record.name for record in caplog.records if record.name.startswith("counterpoint")]
        assert not caught and not own
        other = seen_by_analysts(loud)
    assert one == other
    assert [type(found.message) for found in caught] == [CustodianWarning], "the custodian's channel alone differs"
    names = {record.name for record in caplog.records}
    assert {name for name in names if name.startswith("counterpoint")} == {"counterpoint.custodian"}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_format_says_how_dates_are_written_and_every_other_text_is_missing(engine):
    """Alike on every engine, and in records that are appended one by one."""
    texts = ["29/02/2000", "30/02/2000", "2000-02-29", "1/2/2000", "01.02.2000", "31/12/2000x", " 01/02/2000", None]
    times = [
        "29/02/2000 07:30",
        "29/02/2000",
        "2000-02-29T07:30",
        "29/02/2000 24:00",
        "29/02/2000-07:30",
        "",
        "x",
        None,
    ]
    columns = {
        "day": cp.date("2000-01-01", "2000-12-31", format="%d/%m/%Y"),
        "at": cp.timestamp("2000-01-01", "2001-01-01", zone="UTC", format="%d/%m/%Y %H:%M"),
    }
    rows = {"who": [*"abcdefgh"], "day": texts, "at": times}
    kept = sorted(bound(engine, frame(rows), "who", 1, columns).all_rows("c1, c2"), key=str)
    first, instant = 11016, 951809400000000
    assert kept == sorted([(first, instant)] + [(None, None)] * 7, key=str)
    read = [
        (columns["day"].read_text(day), columns["at"].read_text(at))
        for day, at in zip(texts, times, strict=True)
        if day
    ]
    assert [day for day, _ in read] == [first] + [None] * 6 and [at is not None for _, at in read] == [True] + [
        False
    ] * 6


def test_dates_in_several_spellings_are_a_loud_warning_to_the_custodian_and_no_refusal():
    days = ["2000-01-01"] * 300 + ["02/01/2000"]
    given = {"who": list(range(301)), "day": days}
    columns = {"day": cp.date("2000-01-01", "2000-12-31")}
    with pytest.warns(CustodianWarning, match="not written as declared.*format="):
        cp.Table(frame(given), unit="who", rows_per_unit=1, columns=columns)
    columns = {"day": cp.date("2000-01-01", "2000-12-31", format="%Y-%m-%d")}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cp.Table(frame({**given, "day": ["2000-01-01"] * 300 + ["n/a"]}), unit="who", rows_per_unit=1, columns=columns)


def test_the_report_suggests_the_format_that_most_texts_have():
    given = {"who": list(range(30)), "day": ["02/01/2000"] * 29 + ["2000-01-01"]}
    columns = {"day": cp.date("2000-01-01", "2000-12-31")}
    (found,) = [one for one in checked(rows=given, columns=columns).columns if one.name == "day"]
    assert found.suggestion == "'day': cp.date('2000-01-01', '2000-12-31', format='%d/%m/%Y')"
    assert found.toml == 'columns.day = { type = "date", low = "2000-01-01", high = "2000-12-31", format = "%d/%m/%Y" }'


@pytest.mark.parametrize(
    "wrong", ["%d/%m", "%d/%m/%y", "%d%d%m%Y", "%d/%m/%Y %H:%M", "day", "%d'%m'%Y", "%d %m %Y\n", 7]
)
def test_a_format_that_could_not_be_read_is_refused(wrong):
    with pytest.raises(cp.errors.InvalidParameter, match="format says how dates are written"):
        cp.date("2000-01-01", "2000-12-31", format=wrong)


def test_several_sources_have_a_report_on_each_table():
    rows = pa.table({"id": [1, 2], "age": [41, 170]})
    with pytest.warns(CustodianWarning):
        visits = cp.Table(rows, unit="id", rows_per_unit=1, columns={"age": cp.number(0, 120)})
    news = cp.Stream(fields={"id": cp.number(0, 9)}, unit="id", per_unit=1)
    both = cp.Sources(unit="id", visits=visits, news=news)
    assert {name: found.columns[1].above for name, found in both.check().items()} == {"visits": 1}
