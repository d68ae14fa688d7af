"""Tables in Spark: computed once, in a session of their own, whatever the user's session is set to."""

import uuid

import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.engines import engines
from tests.sources import people

from counterpoint.errors import DataLost, InvalidParameter, NotAllowed
from counterpoint.queries import aggregates as requests
from counterpoint.queries import variance as variances
from counterpoint.schema.columns import number, text
from counterpoint.schema.expressions.tree import steady_pattern
from counterpoint.schema.times import date
from counterpoint.schema.units import each_row
from counterpoint.sources.table import Table


def test_rows_are_read_once_and_never_again(tmp_path):
    path = str(tmp_path / "people.parquet")

    def frame(values):
        pyarrow.parquet.write_table(pa.table({"id": [1, 2, 2], "x": values}), path)
        return engines.spark().read.parquet(path)

    columns, key = {"x": number(0, 9)}, b"sixteen bytes..."
    source = Table(frame([1, 2, 3]), "id", 2, columns, key=key)
    later = Table(frame([7, 8, 9]), "id", 2, columns, key=key)
    assert people.found(source, requests.sum("x")) == (6,)
    assert people.found(later, requests.sum("x")) == (24,) and source.pin() != later.pin()


def test_settings_of_the_users_session_change_nothing():
    session = engines.spark().newSession()
    secret = uuid.uuid4().hex
    for name, value in {
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.ansi.doubleQuotedIdentifiers": "true",
        "spark.made.up": secret,
    }.items():
        session.conf.set(name, value)
    rows = [("${spark.made.up}", "9" * 40), (secret, "x"), ("it's", "2"), ("\\", "1e2")]
    frame = session.createDataFrame(rows, "`a.``b` string, n string")
    source = Table(frame, unit=each_row, columns={"a.`b": text(), "n": number(0, 50)})
    keys = ["${spark.made.up}", secret, "it's", "\\"]
    assert people.found(source, requests.histogram("a.`b", keys=keys)) == (1, 1, 1, 1)
    assert people.found(source, requests.sum("n")) == (102,)
    assert session.catalog.listTables() == [], "and nothing is left in it"


def test_rows_that_cannot_be_read_are_one_constant_refusal():
    session = engines.spark()
    frame = session.range(3).selectExpr("id", "RAISE_ERROR(CONCAT('the data: ', id)) AS x", "STRUCT(id) AS y")
    with pytest.raises(InvalidParameter) as refused:
        Table(frame.selectExpr("id", "CAST(x AS STRING) AS x"), unit=each_row, columns={"x": text()})
    assert str(refused.value) == "the data could not be read as a table"
    assert refused.value.__cause__ is refused.value.__context__ is None, "the engine's own words are gone"
    with pytest.raises(InvalidParameter, match="cannot be declared as a text"):
        Table(frame, unit=each_row, columns={"y": text()})


def test_sums_of_one_limb_and_of_several_are_exact():
    bounds = {"one": 2**15 - 1, "two": 2**15, "three": 2**31, "four": 2**45 + 1, "five": 2**62}
    values = {name: [far, -far, far - 1, 1 - far, -1, 0, far // 3, None] for name, far in bounds.items()}
    columns = {name: number(-far, far) for name, far in bounds.items()}
    here, there = (engines.bound(engine, pa.table(values), columns=columns) for engine in ("duckdb", "spark"))
    for name in bounds:
        assert people.found(there, requests.sum(name)) == (sum(value or 0 for value in values[name]),)
    for name in ("one", "three"):
        assert people.found(there, variances.variance(name)) == people.found(here, variances.variance(name))
    assert people.found(there, requests.sum("five", where="five IS NULL")) == (0,)


def test_only_a_dataframe_is_a_table():
    with pytest.raises(InvalidParameter, match="a table from Spark is a DataFrame, not a SparkSession"):
        Table(engines.spark(), unit=each_row)


def test_a_time_with_a_zone_has_no_day_of_its_own_and_is_refused():
    session = engines.spark().newSession()
    frame = session.sql("SELECT TIMESTAMP '2020-05-05 23:30:00 UTC' AS t, TIMESTAMP_NTZ '2020-05-05 23:30:00' AS n")
    columns = {"n": date("2020-01-01", "2020-12-31")}
    assert people.found(Table(frame, unit=each_row, columns=columns), requests.histogram("n", keys=["2020-05-05"])) == (
        1,
    )
    with pytest.raises(InvalidParameter, match="TIMESTAMP WITH TIME ZONE cannot be declared as a date"):
        Table(frame, unit=each_row, columns={**columns, "t": date("2020-01-01", "2020-12-31")})


def test_a_like_means_the_same_as_a_regular_expression_of_its_own():
    texts = ["", "a", "ab", "a\nb", "b\n", "a.b", "é😀", "[a]^$", "aXbXc", "abab"]
    patterns = [
        "",
        "%",
        "_",
        "__",
        "a%",
        "%b",
        "a_b",
        "%a%b%",
        "%_b",
        "a.%",
        "_😀",
        "[%]^$",
        "%X%X%",
        "%\n",
        "%ab",
        "b_",
    ]
    session = engines.spark()
    cases = session.createDataFrame(
        [(t, p, steady_pattern(p)) for t in texts for p in patterns], "t string, p string, r string"
    )
    agreeing = cases.selectExpr("SUM(INT((t LIKE p) = (t RLIKE r))) AS n", "SUM(INT(t LIKE p)) AS m").collect()[0]
    assert agreeing.n == len(texts) * len(patterns) and agreeing.m > 30


def test_a_pattern_that_could_share_out_a_text_in_many_ways_is_answered_at_once():
    # by going back and forth, this took longer than anybody would wait, if the row was there and only then
    source = Table(
        engines.spark().createDataFrame([("b" + 300 * "a",)], "s string"), unit=each_row, columns={"s": text()}
    )
    assert people.found(source, requests.count(f"s LIKE '{40 * '%a_'}%b_'")) == (0,)


def test_after_the_application_was_stopped_a_table_is_lost_and_is_bound_again():
    def frame():
        return engines.spark().createDataFrame([(1,), (2,)], "x int")

    source = Table(frame(), unit=each_row, columns={"x": number(0, 9)})
    closed = Table(frame(), unit=each_row, columns={"x": number(0, 9)})
    closed.close()
    prepared = source.prepare(requests.sum("x"))
    assert not source.is_lost
    engines.spark().stop()
    engines._spark.cache_clear()
    for _ in range(2):  # also once there is another application in the same process
        assert source.is_lost and not closed.is_lost
        with pytest.raises(DataLost, match=r"^the connection to the data was lost: bind the data again"):
            source.resolve(source.pin(), prepared)
        again = Table(frame(), unit=each_row, columns={"x": number(0, 9)})
    assert people.found(again, requests.sum("x")) == (3,)
    with pytest.raises(NotAllowed):
        closed.pin()
    source.close()
