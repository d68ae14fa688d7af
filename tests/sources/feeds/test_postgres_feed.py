"""Feeding from PostgreSQL by a growing key: every row once, also rows whose transactions commit late."""

import threading
import time

import numpy as np
import pytest
from tests.engines import engines
from tests.engines.test_postgres import fresh
from tests.ledger.places import Place

import counterpoint as cp
from counterpoint.errors import FeedFailed, InvalidParameter
from counterpoint.sources.streams import feed_readers as postgres

psycopg = pytest.importorskip("psycopg", reason="PostgreSQL: psycopg is not installed")

SURE = cp.PureDP(10**7)
SERIAL = (
    "CREATE TABLE visits (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, seconds float8, who text, more jsonb)"
)
INSERT = "INSERT INTO visits (seconds, who) VALUES (%s, 'ann')"


def visits(**level):
    return cp.Stream(fields={"seconds": cp.number(0, 10**6)}, **level)


def poll(stream, url, **options):
    return stream.feed(url, **{"relation": "visits", "key": "id", **options})


def seconds(stream):
    return [item[0] for item in stream.log.items]


def inserting(url, *values):
    """A transaction that has inserted, and has not ended."""
    connection = psycopg.connect(url)
    for value in values:
        connection.execute(INSERT, (value,))
    return connection


def test_rows_arrive_once_in_the_order_of_their_keys_in_batches():
    url, stream = fresh(SERIAL), visits(unit="who", per_unit=100)
    assert poll(stream, url) == 0, "no rows yet"
    with inserting(url, *range(25)):
        pass
    assert poll(stream, url, batch=10) == 25 and seconds(stream) == list(range(25))
    assert stream.position("visits") == "key 25" and poll(stream, url) == 0
    with inserting(url, 25, 26):
        pass
    engines.execute("UPDATE visits SET seconds = 9 WHERE id < 5", "DELETE FROM visits WHERE id = 26", at=url)
    assert poll(stream, url) == 1 and seconds(stream) == [*range(25), 26], "what has arrived stays as it was"


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_smaller_key_that_is_committed_later_is_waited_for(end):
    url, stream = fresh(SERIAL), visits()
    with inserting(url, 1) as early:
        with inserting(url, 2):
            pass
        with pytest.raises(FeedFailed, match=r"have not ended within 0\.1 seconds, and may hold smaller keys"):
            poll(stream, url, wait=0.1)
        assert stream.pin() == 0, "key 2 can be seen, and must not be read before key 1 is settled"
        getattr(early, end)()
    assert poll(stream, url) == len(seconds(stream)) and seconds(stream) == ([1, 2] if end == "commit" else [2])


def test_a_writer_that_begins_later_is_not_waited_for(monkeypatch):
    url, stream = fresh(SERIAL), visits()
    with inserting(url, 1):
        pass
    early, later = inserting(url, 2), []

    def pause(seconds):
        later.append(inserting(url, 3))
        early.commit()

    monkeypatch.setattr(postgres.time, "sleep", pause)
    assert poll(stream, url) == 1 and len(later) == 1, "keys up to the largest that was seen at first are settled"
    monkeypatch.undo()
    later[0].commit()
    assert poll(stream, url) == 2 and seconds(stream) == [1, 2, 3]
    for connection in (early, *later):
        connection.close()


def test_nothing_is_lost_and_nothing_arrives_twice_while_many_write():
    url, stream = fresh(SERIAL), visits()
    writers, each = 4, 25

    def write(worker):
        chance = np.random.default_rng(worker)
        with psycopg.connect(url) as connection:
            for number in range(each):
                connection.execute(INSERT, (worker * each + number,))
                time.sleep(chance.random() / 200)
                connection.rollback() if chance.random() < 0.2 else connection.commit()

    threads = [threading.Thread(target=write, args=(worker,)) for worker in range(writers)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        poll(stream, url, batch=7)
    poll(stream, url)
    with psycopg.connect(url) as connection:
        stored = [int(value) for (value,) in connection.execute("SELECT seconds FROM visits ORDER BY id")]
    assert seconds(stream) == stored and len(stored) > 50


def test_a_key_that_is_not_taken_one_by_one_needs_a_lag():
    url = fresh(
        "CREATE TABLE given (id bigint PRIMARY KEY, seconds int)",
        "CREATE TABLE cached (id bigint GENERATED ALWAYS AS IDENTITY (CACHE 10) PRIMARY KEY, seconds int)",
        "CREATE TABLE wide (id bigint GENERATED ALWAYS AS IDENTITY (INCREMENT 50) PRIMARY KEY, seconds int)",
        "CREATE TABLE serial (id serial PRIMARY KEY, seconds int)",
        "INSERT INTO given VALUES (-7, 1), (5, 2), (100, 3), (103, 4)",
    )
    for relation in ("given", "cached", "wide"):
        with pytest.raises(InvalidParameter, match=r"must be an identity or serial column .* declare lag"):
            poll(visits(), url, relation=relation)
    assert poll(visits(), url, relation="serial") == 0
    stream = visits()
    assert poll(stream, url, relation="given", lag=50) == 2 and seconds(stream) == [1, 2]
    engines.execute("INSERT INTO given VALUES (60, 5), (200, 6)", at=url)
    assert poll(stream, url, relation="given", lag=50) == 3 and seconds(stream) == [1, 2, 5, 3, 4]
    assert poll(stream, url, relation="given", lag=0) == 1 and stream.position("given") == "key 200"
    for lag in (-1, 1.5, "x"):
        with pytest.raises(InvalidParameter, match="lag"):
            poll(stream, url, relation="given", lag=lag)


@pytest.mark.parametrize("wait", [-1, "long", None, float("nan")])
def test_a_time_to_wait_is_a_number(wait):
    with pytest.raises(InvalidParameter, match="wait must be a number of seconds"):
        poll(visits(), fresh(SERIAL), wait=wait)


def test_a_table_is_refused_by_its_definition_before_it_is_read():
    url = fresh(
        SERIAL,
        "CREATE TABLE twice (id serial, seconds int)",
        "CREATE TABLE missing (id serial, seconds int)",
        "ALTER TABLE missing ALTER id DROP NOT NULL",
        "CREATE UNIQUE INDEX ON missing (id)",
        "CREATE TABLE partial (id serial, seconds int)",
        "CREATE UNIQUE INDEX ON partial (id) WHERE seconds > 5",
        "CREATE TABLE parent (id serial PRIMARY KEY, seconds int)",
        "CREATE TABLE child () INHERITS (parent)",
        "CREATE VIEW seen AS SELECT * FROM visits",
    )
    for relation in ("twice", "missing", "partial"):
        with pytest.raises(InvalidParameter, match="must be the primary key, or be unique and NOT NULL"):
            poll(visits(), url, relation=relation)
    for relation in ("parent", "seen"):
        with pytest.raises(InvalidParameter, match="polls an ordinary table"):
            poll(visits(), url, relation=relation)
    for key in (None, "seconds", "nowhere", 5):
        with pytest.raises(InvalidParameter, match="key must name a column of whole numbers"):
            poll(visits(), url, key=key)
    with pytest.raises(InvalidParameter, match="cannot be declared as a number"):
        poll(cp.Stream(fields={"more": cp.number(0, 1)}), url)
    with pytest.raises(InvalidParameter, match="a feed needs a name"):
        visits().feed(url, key="id")


def test_values_that_only_postgres_has_arrive_by_the_rules_of_a_table():
    url = fresh(
        "CREATE TABLE visits (id serial PRIMARY KEY, d date, x numeric, who int)",
        """INSERT INTO visits (d, x, who) VALUES ('infinity', 'NaN', 1), ('0044-03-15 BC', 1e400, NULL),
           ('2020-05-05', -1e400, 2), (NULL, 0.5, 2)""",
    )
    day = cp.date("2020-01-01", "2020-12-31")
    stream = cp.Stream(fields={"d": day, "x": cp.number(-2, 5)}, unit="who", per_unit=1)
    assert poll(stream, url) == 4, "every row arrives, whatever its values are"
    assert stream.log.items == [(day.most, None), None, (day.least + 125, -2), None]


def test_a_database_that_fails_leaves_whole_batches(monkeypatch):
    url, stream = fresh(SERIAL), visits()
    with inserting(url, *range(10)):
        pass
    receive = cp.Stream.receive_stored

    def ending(self, rows, step):
        receive(self, rows, step)
        with psycopg.connect(url, autocommit=True) as other:
            ours = "datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
            other.execute(f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE {ours}")

    monkeypatch.setattr(cp.Stream, "receive_stored", ending)
    with pytest.raises(FeedFailed) as failed:
        poll(stream, url, batch=4)
    assert failed.value.__cause__ is failed.value.__context__ is None, "the database's own words are gone"
    assert seconds(stream) == [0, 1, 2, 3]
    monkeypatch.undo()
    assert poll(stream, url, batch=4) == 6 and seconds(stream) == list(range(10))


def test_a_durable_ledger_resumes_behind_the_last_key(tmp_path):
    url, place = fresh(SERIAL), Place("sqlite", tmp_path)
    for first in (0, 5, 10):
        with inserting(url, *range(first, first + 5)):
            pass
        with place.session(SURE, source=(stream := visits())):
            assert poll(stream, url, batch=3) == 5 and seconds(stream) == list(range(first + 5))
