"""Tables in PostgreSQL: a private copy in the session, found by name, that nothing in the database can disturb."""

import gc
import os
import subprocess
import sys
import threading

import pyarrow as pa
import pytest
from tests.engines import engines
from tests.sources import people

from counterpoint.engines.postgres import PostgresOffer
from counterpoint.errors import DataLost, InvalidParameter
from counterpoint.queries import aggregates as requests
from counterpoint.schema.columns import boolean, category, number, text
from counterpoint.schema.units import each_row
from counterpoint.sources.table import Table

psycopg = pytest.importorskip("psycopg", reason="PostgreSQL: psycopg is not installed")


def fresh(*statements):
    """A new database in which these statements have been run: its URL."""
    name = f"fresh_{next(engines._numbers)}"
    engines.execute(f"CREATE DATABASE {name}")
    url = engines.url().replace("/postgres?", f"/{name}?")
    engines.execute(*statements, at=url)
    return url


def test_types_of_postgres_are_known_by_their_kind():
    url = fresh(
        "CREATE DOMAIN years AS integer CHECK (VALUE >= 0)",
        "CREATE TYPE mood AS ENUM ('glad', 'sad')",
        """CREATE TABLE t (a years, b mood, c uuid, d date, e numeric(9, 2), f real, g char(5), h varchar(9), i jsonb,
           j timestamptz, k smallint, l boolean, m double precision, n bigint, o numeric, p text[])""",
    )
    kinds = PostgresOffer(url, "t").kinds
    assert list(kinds) == list("abcdefghijklmnop")
    assert [kinds[name] for name in "abcdefgh"] == [
        *["INTEGER", "ENUM", "UUID", "DATE", "DECIMAL", "FLOAT", "VARCHAR", "VARCHAR"]
    ]
    assert [kinds[name] for name in "klmno"] == ["SMALLINT", "BOOLEAN", "DOUBLE", "BIGINT", "DECIMAL"]
    source = Table(url, unit=each_row, relation="t", columns={"e": number(0, 1), "d": text()})
    assert [named.name for named in source.declaration.columns] == list("abcdeghkln")
    for name in "ijp":
        with pytest.raises(InvalidParameter, match="cannot be declared as a text"):
            Table(url, unit=each_row, relation="t", columns={name: text()})


def test_values_that_only_postgres_can_hold_follow_the_stated_rules():
    url = fresh(
        "CREATE TYPE mood AS ENUM ('glad', 'sad')",
        "CREATE TABLE t (x numeric, d date, g char(5), b mood)",
        """INSERT INTO t VALUES ('NaN', '-infinity', 'ab', 'sad'), ('Infinity', '0044-03-15 BC', 'ab ', 'glad'),
           ('-Infinity', '10000-01-01', 'a b', NULL), (1e400, '2020-02-29', '', 'sad'), (1e-400, NULL, NULL, 'sad'),
           (-1e400, 'infinity', 'é', 'sad'), (0.5, '0001-01-01', 'é', 'sad')""",
    )
    columns = {"x": number(-2, 5), "d": text(), "g": category(["ab", "a b", "", "é"]), "b": text()}
    source = Table(url, unit=each_row, relation="t", columns=columns)
    assert people.found(source, requests.sum("x")) == (5 - 2 + 5 + 0 - 2 + 1,)
    assert people.found(source, requests.count("x IS NULL")) == (1,)
    assert people.found(source, requests.count("d IS NULL")) == (5,), "no date, or none from the years 1 to 9999"
    assert people.found(source, requests.histogram("d", keys=["2020-02-29", "0001-01-01"])) == (1, 1)
    assert people.found(source, requests.histogram("g")) == (2, 1, 1, 2), (
        "char(n) is padded with blanks that say nothing"
    )
    assert people.found(source, requests.count("b = 'sad'")) == (5,)
    by_day = Table(url, relation="t", unit="d", rows_per_unit=1, columns={"x": number(-2, 5)})
    assert people.found(by_day, requests.count()) == (2,), "a date that is missing names no unit"


def test_a_unit_that_the_database_knows_by_several_spellings_is_refused():
    url = fresh(
        'CREATE COLLATION loose FROM "C"',
        'CREATE TABLE t (who text COLLATE loose, sure text COLLATE "C", x int)',
        "INSERT INTO t VALUES ('Ann', 'a', 1), ('ann', 'a', 2)",
        # as ICU would make it, which not every server is built with
        "UPDATE pg_collation SET collisdeterministic = false WHERE collname = 'loose'",
    )
    with pytest.raises(InvalidParameter, match="NONDETERMINISTIC COLLATION cannot name the unit"):
        Table(url, relation="t", unit="who", rows_per_unit=1)
    source = Table(url, relation="t", unit="sure", rows_per_unit=1)
    assert [named.name for named in source.declaration.columns] == ["sure", "x"]


def test_tables_that_were_spread_many_times_are_not_taken_for_each_other():
    names = [f"a{i}" for i in range(14)]
    frame = pa.table({"who": [1] * 4, "last": [1, 2, 3, 4], **dict.fromkeys(names, [7] * 4)})
    source = engines.bound("postgres", frame, "who", 4)
    for name in names:
        source = source.spread(name, 3)
    wide, narrow = source.spread("last", 3), source.spread("last", 1)
    for spread, values in ((wide, 3), (narrow, 1)):
        assert spread.reach("last") == values
        assert people.found(spread, requests.count()) == (values,)


def test_texts_are_stored_under_the_collation_of_bytes():
    url = fresh(
        'CREATE TABLE t (s text COLLATE "C.utf8", b varchar(5) COLLATE "POSIX")',
        "INSERT INTO t VALUES ('a', 'TRUE'), ('A', 'f')",
    )
    collations = """SELECT attname, collname FROM pg_attribute JOIN pg_collation ON pg_collation.oid = attcollation
                    WHERE attrelid = 'pg_temp.bound'::regclass AND attnum > 0 ORDER BY attnum"""
    source = Table(url, "s", 1, {"s": text(), "b": category(["TRUE", "f"])}, relation="t")
    assert source._bound.engine.run(collations) == [("c0", "C"), ("c1", "C"), ("u", "C")]
    spread = Table(url, "s", 2, {"b": text()}, relation="t").spread("b", 1)
    assert spread._bound.engine.run(collations.replace("bound", spread._rows)) == [("c0", "C"), ("c1", "C"), ("u", "C")]


def test_texts_are_compared_by_their_bytes_whatever_the_collation():
    try:
        url = fresh("CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false)")
    except psycopg.errors.FeatureNotSupported:
        pytest.skip("this PostgreSQL was built without ICU: it has no collation under which different texts are equal")
    engines.execute(
        "CREATE TABLE t (s text COLLATE loose, b text COLLATE loose)",
        "INSERT INTO t VALUES ('a', 'TRUE'), ('A', 'false'), ('á', 'T'), ('b', 'ｔ')",
        at=url,
    )
    source = Table(url, "s", 1, {"s": text(), "b": boolean()}, relation="t")
    assert people.found(source, requests.count()) == (4,), "four units, though the collation sees two"
    assert (
        people.found(source, requests.count("s = 'a'")) == people.found(source, requests.count("s LIKE 'A%'")) == (1,)
    )
    assert people.found(source, requests.histogram("s", keys=["a", "A", "á"])) == (1, 1, 1)
    assert people.found(source, requests.histogram("b")) == (1, 2)


def test_a_relation_is_found_by_its_name_as_in_postgres():
    url = fresh(
        'CREATE SCHEMA "My Schema"',
        'CREATE TABLE "My Schema"."a.b" (x integer)',
        'INSERT INTO "My Schema"."a.b" VALUES (1), (2)',
        'CREATE VIEW given AS SELECT x + 1 AS "we""ird" FROM "My Schema"."a.b"',
    )
    assert people.found(Table(url, unit=each_row, relation='"My Schema"."a.b"'), requests.count("x = 2")) == (1,)
    view = Table(url, unit=each_row, relation="public.given")
    assert people.found(view, requests.count('"we""ird" = 3')) == (1,)
    assert people.found(Table(url, unit=each_row, relation="GIVEN"), requests.count()) == (2,)
    for name in ("nowhere", "", "a.b.c.d", "x; DROP TABLE given", '"', "given, given", "(SELECT 1)", 'given"'):
        with pytest.raises(InvalidParameter):
            Table(url, unit=each_row, relation=name)


def test_a_database_is_refused_with_words_that_give_nothing_away(monkeypatch):
    url = engines.url()
    with pytest.raises(InvalidParameter, match="needs the name of a table or view") as refused:
        Table(url, unit=each_row)
    with pytest.raises(InvalidParameter, match="relation names a table of a database"):
        Table(pa.table({"x": [1]}), unit=each_row, relation="x")
    with pytest.raises(InvalidParameter) as refused:
        Table("postgresql://me:hunter2@127.0.0.1:1/nowhere", unit=each_row, relation="t")
    assert str(refused.value) == (
        "could not connect to the database: check host, user and password of the postgresql:// URL"
    )
    assert refused.value.__cause__ is refused.value.__context__ is None, "whose words would quote the password"
    for strange in ("postgresql://%zz", "postgresql://\ud800/x", "postgresql://h/x?nonsense=1"):
        with pytest.raises(InvalidParameter, match="could not connect"):
            Table(strange, unit=each_row, relation="t")
    for strange in ("\ud800", "a\0b"):
        with pytest.raises(InvalidParameter, match="could not be read as a table"):
            Table(url, unit=each_row, relation=strange)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InvalidParameter, match=r"pip install counterpoint\[postgres\]"):
        Table(url, unit=each_row, relation="t")


def test_a_database_in_another_encoding_is_refused():
    name = f"ascii_{next(engines._numbers)}"
    engines.execute(f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    url = engines.url().replace("/postgres?", f"/{name}?")
    engines.execute("CREATE TABLE t (x integer)", at=url)
    with pytest.raises(InvalidParameter, match="must be UTF8"):
        Table(url, unit=each_row, relation="t")


def test_rows_that_cannot_be_read_are_one_constant_refusal():
    url = fresh(
        "CREATE TABLE t (x integer)",
        "INSERT INTO t VALUES (31337), (0)",
        "CREATE VIEW v AS SELECT 1 / x AS x, CAST('no number: ' || x AS integer) AS y FROM t",
    )
    with pytest.raises(InvalidParameter) as refused:
        Table(url, unit=each_row, relation="v", columns={"y": number(0, 1)})
    assert str(refused.value) == "the data could not be read as a table"
    assert refused.value.__cause__ is refused.value.__context__ is None, "the engine's own words are gone"


def test_the_copy_stays_as_it_was_bound_and_nobody_else_sees_it():
    url = fresh("CREATE TABLE t (x integer)", "INSERT INTO t VALUES (1), (2)")
    source = Table(url, unit=each_row, relation="t", columns={"x": number(0, 9)})
    engines.execute("UPDATE t SET x = 9", "INSERT INTO t VALUES (5)", at=url)
    assert people.found(source, requests.sum("x")) == (3,)
    with psycopg.connect(url, autocommit=True) as other:
        with pytest.raises(psycopg.Error):
            other.execute("SELECT * FROM bound")
        made = "SELECT relname, relpersistence FROM pg_class WHERE relname IN ('bound', 'loaded', 'given')"
        assert other.execute(made).fetchall() == [("bound", "t")]
        del source
        gc.collect()
        ours = "datname = current_database() AND backend_type = 'client backend'"
        sessions = f"SELECT count(*) FROM pg_stat_activity WHERE {ours}"
        for _ in range(1000):  # a session ends a moment after its connection
            if other.execute(sessions).fetchone() == (1,):
                break
            other.execute("SELECT pg_sleep(0.01)")
        assert other.execute(made).fetchall() == [] and other.execute(sessions).fetchone() == (1,)


def test_functions_and_tables_of_the_database_cannot_step_in():
    shadows = [
        "CREATE TABLE bound (c0 bigint, u boolean)",
        "CREATE FUNCTION sha256(bytea) RETURNS bytea LANGUAGE sql AS $$ SELECT 'same'::bytea $$",
        "CREATE FUNCTION encode(bytea, text) RETURNS text LANGUAGE sql AS $$ SELECT 'same' $$",
        "CREATE TABLE t (who integer, x integer)",
        "INSERT INTO t SELECT i % 3, i FROM generate_series(0, 30) AS i",
    ]
    url = fresh(*shadows)
    database = url.split("/")[3].split("?")[0]
    engines.execute(f"ALTER DATABASE {database} SET search_path = public, pg_catalog", at=url)
    frame = pa.table({"who": pa.array([i % 3 for i in range(31)], pa.int32()), "x": pa.array(range(31), pa.int32())})
    here, there = Table(frame, "who", 4), Table(url, "who", 4, relation="t")
    asked = requests.histogram("x", keys=range(31))
    assert people.found(here, asked) == people.found(there, asked) and sum(people.found(there, asked)) == 12


def test_operators_of_the_database_cannot_step_in_while_the_relation_is_looked_up():
    url = fresh(
        "CREATE TABLE t (x integer)",
        "CREATE FUNCTION never(oid, oid) RETURNS boolean LANGUAGE sql AS $$ SELECT false $$",
        "CREATE FUNCTION never(oid, regclass) RETURNS boolean LANGUAGE sql AS $$ SELECT false $$",
        "CREATE OPERATOR public.= (FUNCTION = never, LEFTARG = oid, RIGHTARG = oid)",
        "CREATE OPERATOR public.= (FUNCTION = never, LEFTARG = oid, RIGHTARG = regclass)",
    )
    database = url.split("/")[3].split("?")[0]
    engines.execute(f"ALTER DATABASE {database} SET search_path = public, pg_catalog", at=url)
    assert people.found(Table(url, unit=each_row, relation="t"), requests.count()) == (0,)


def test_many_threads_share_one_session():
    source = engines.bound("postgres", pa.table({"x": list(range(50))}), columns={"x": number(0, 99)})
    results = {}

    def ask(name):
        results[name] = [people.found(source, requests.count(f"x >= {i}"))[0] for i in range(0, 50, 5)]

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8 and all(result == list(range(50, 0, -5)) for result in results.values())


def test_a_lost_connection_is_refused_from_then_on():
    source = engines.bound("postgres", pa.table({"x": [1, 2]}))
    with psycopg.connect(engines.url(), autocommit=True) as other:
        pid = source._bound.engine.run("SELECT pg_backend_pid()")[0][0]
        other.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))
    for _ in range(2):
        with pytest.raises(DataLost, match=r"^the connection to the data was lost: bind the data again"):
            people.found(source, requests.count())


FORKING = """
import os, sys
import counterpoint as cp

table = cp.Table(sys.argv[1], unit=cp.each_row, relation=sys.argv[2])
handle = cp.Session(table, within=cp.PureDP(10**6)).launch(cp.Laplace(10**5))
if os.fork() == 0:
    sys.exit()
os.wait()
print(handle.ask(cp.count()))
"""


def test_a_forked_process_that_comes_to_its_end_leaves_the_table_to_its_parent():
    name = engines.relation(pa.table({"age": [1, 2, 3]}))
    words = [sys.executable, "-c", FORKING, engines.url(), name]
    path = os.pathsep.join(filter(None, sys.path))
    run = subprocess.run(words, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert run.stdout == "3\n", run.stderr
