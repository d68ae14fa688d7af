"""The second path gives the integers of the first, and no engine needs it."""

import numpy as np
import pytest
from tests.engines import engines
from tests.schema.grammar import COLUMNS, Grammar, worlds
from tests.sources import people

import counterpoint as cp
from counterpoint.engines import optimizers
from counterpoint.engines.duckdb import EmbeddedEngine, silent_database
from counterpoint.engines.engine import failed
from counterpoint.errors import DataFailed, InvalidParameter, InvalidRequest
from counterpoint.queries import fallback as answering
from counterpoint.queries.plan import joined
from counterpoint.session.session import Session


def asked(rng, most):
    """So many random requests that the grammar admits, each made by the generator as it is drawn."""
    grammar, found = Grammar(rng), []
    probe = cp.Table(worlds(rng)["empty"], unit="who", rows_per_unit=1, columns=COLUMNS)
    while len(found) < most:
        try:
            request = grammar.request()
            probe.prepare(request)
        except (InvalidRequest, InvalidParameter):  # too large, or two literals compared: the same for all data
            continue
        found.append(request)
    return found


def both_paths(table, compiled):
    """What the engine answers, and what is computed from the stored rows; the first raises if the engine fails."""
    first = joined(compiled.plan, [table._fetch(sql) for sql in compiled.statements])
    second = answering.evaluated(compiled.plan, lambda: table.stored_rows(compiled.plan.columns()), held=700)
    return [compiled.request.read_rows(table.declaration, compiled.plan, rows) for rows in (first, second)]


def compare(engine, seed, requests, among=None):
    """Ask every request in worlds of unlike statistics; how many asks that were, and on which ones an engine failed."""
    rng = np.random.default_rng(seed)
    tables = {
        name: engines.bound(engine, frame, "who", 1, COLUMNS)
        for name, frame in worlds(rng).items()
        if among is None or name in among
    }
    failures, count = [], 0
    for request in asked(rng, requests):
        compiled = next(iter(tables.values()))._compiled(request)  # one for all: they have one declaration
        for name, table in tables.items():
            count += 1
            try:
                first, second = both_paths(table, compiled)
            except DataFailed as error:
                failures.append((name, error.reason, request))
                continue
            assert first == second, (name, request)
    return count, failures


def test_no_random_request_makes_the_embedded_engine_fail_and_both_paths_agree():
    count, failures = compare("duckdb", 1, 40)
    assert count == 400 and not failures


def test_no_random_request_makes_postgres_fail_and_both_paths_agree():
    count, failures = compare("postgres", 2, 40, ("alike", "alike and the most", "some", "empty"))
    assert count == 160 and not failures


def test_no_random_request_makes_spark_fail_and_both_paths_agree():
    count, failures = compare("spark", 3, 3, ("alike and the most", "some"))
    assert count == 6 and not failures


@pytest.mark.long
@pytest.mark.parametrize(
    ("engine", "requests"), [("duckdb", 2000), ("postgres", 400), ("spark", 40)], ids=["duckdb", "postgres", "spark"]
)
def test_no_request_of_thousands_makes_an_engine_fail(engine, requests):
    among = None if engine != "spark" else ("alike", "alike and the most", "some")
    count, failures = compare(engine, 4, requests, among)
    assert not failures, f"{len(failures)} of {count}"


def test_only_optimizers_that_were_looked_at_run():
    with silent_database() as database:
        ((off,),) = database.execute("SELECT current_setting('disabled_optimizers')").fetchall()
        known = {name for (name,) in database.execute("SELECT name FROM duckdb_optimizers()").fetchall()}
        with database.cursor() as cursor:
            assert cursor.execute("SELECT current_setting('disabled_optimizers')").fetchall() == [(off,)]
    assert known - set(off.split(",")) == set(optimizers.KEPT) and set(optimizers.OFF) <= set(off.split(","))


def test_only_the_optimizers_whose_reasons_are_written_down_would_change_a_plan(monkeypatch):
    monkeypatch.setattr("counterpoint.engines.duckdb._LOCK", ())
    rng, read = np.random.default_rng(5), []
    tables = [engines.bound("duckdb", frame, "who", 1, COLUMNS) for frame in worlds(rng).values()][-2:]
    for request in asked(rng, 8):
        read += [(table.embedded, sql, ()) for table in tables for sql in table._compiled(request).statements]
    several, run = joined_sources(), EmbeddedEngine._run
    with monkeypatch.context() as noting:
        noting.setattr(EmbeddedEngine, "_run", lambda *given: read.append(given) or run(*given))
        for request in ASKED_OF_SEVERAL:
            people.found(several, request)
    statements = [given for given in read if given[1].startswith(("SELECT", "WITH"))]

    def plans(off):
        for engine in {engine for engine, *_ in statements}:
            engine.run(f"SET GLOBAL disabled_optimizers = '{','.join(off)}'")
        return [engine.run(f"EXPLAIN {sql}", values) for engine, sql, values in statements]

    with silent_database() as database:
        off = set(optimizers.disabled(database))
    planned = plans(off)
    assert {name for name in off if plans(off - {name}) != planned} == set(optimizers.OFF)


def test_no_answer_tells_whether_any_row_is_above_a_value():
    def answers(incomes):
        data = {"person": list(range(len(incomes))), "income": incomes, "city": ["b"] * len(incomes)}
        columns = {"income": cp.number(0, 10_000_000), "city": cp.text()}
        table = cp.Table(engines.pa.table(data), unit="person", rows_per_unit=1, columns=columns)
        probe = "CASE WHEN income >= {} THEN 'a' END = city"
        return [
            both_paths(table, table._compiled(cp.count(probe.format(at))))[0] for at in (20_000, 1_000_000, 4_217_340)
        ]

    base = [30_000 + i for i in range(1000)]
    assert answers(base) == answers([*base, 4_217_339]) == [0, 0, 0]


def failing(*given, **more):
    """A first path that always fails."""
    raise failed(RuntimeError("a row was quoted"))


def sources():
    """One of every kind of source that an embedded engine answers for, with the same people in it."""
    ages = [(name, age, city) for name, age, city in zip("abcdefgh", range(20, 60, 5), "xyxyxyxy", strict=True)]
    columns = {"age": cp.number(0, 120), "city": cp.category(["x", "y"])}
    data = engines.pa.table(dict(zip(("person", "age", "city"), zip(*ages, strict=True), strict=True)))
    table = cp.Table(data, unit="person", rows_per_unit=1, columns=columns)
    stream = cp.Stream(fields=columns, unit="person", per_unit=2)
    stream.extend([{"person": p, "age": a, "city": c} for p, a, c in ages for _ in range(2)])
    events = cp.Stream(fields=columns)
    events.extend([{"age": a, "city": c} for _, a, c in ages])
    live = cp.LiveTable(columns=columns, unit="person", key="row", rows_per_unit=1)
    live.put([{"person": p, "row": 1, "age": a, "city": c} for p, a, c in ages])
    live.put([{"person": "a", "row": 1, "age": 99, "city": "y"}])
    live.remove([{"person": "b", "row": 1}])
    return {"table": table, "stream": stream, "events": events, "live": live}


REQUESTS = [
    cp.count("age >= 30"),
    cp.sum("age", by="city"),
    cp.count_distinct("age < 50"),
    cp.histogram("age", edges=[0, 30, 50, 120]),
]


@pytest.mark.parametrize("name", ["table", "stream", "events", "live"])
def test_every_source_has_a_second_path_and_its_parts_and_samples_have_one(name, monkeypatch):
    source = sources()[name]
    seen = [source, source.part("city", "x")]
    if source.why_not_sampled is None:
        from counterpoint.privacy.samples import Sample, SampleKey

        seen.append(source.sampled(Sample("1/2", SampleKey(7))))

    def found():
        return [people.found(one, request) for one in seen for request in REQUESTS if accepts(one, request)]

    expected = found()
    monkeypatch.setattr(EmbeddedEngine, "run", failing)
    monkeypatch.setattr(EmbeddedEngine, "change", failing)
    monkeypatch.setattr(EmbeddedEngine, "run_on_sample", failing)
    assert found() == expected


def accepts(source, request):
    """Whether a source answers such a request at all."""
    try:
        source.prepare(request)
    except InvalidRequest:
        return False
    return True


@pytest.mark.parametrize("name", ["stream", "events", "live"])
def test_what_an_engine_took_before_it_failed_is_there_once(name, monkeypatch):
    source, insert = sources()[name], EmbeddedEngine.insert
    expected = people.found(sources()[name], cp.count())
    with monkeypatch.context() as failing_late:
        failing_late.setattr(EmbeddedEngine, "insert", lambda *given: failing(insert(*given)))
        assert people.found(source, cp.count()) == expected
    assert people.found(source, cp.count()) == expected


def joined_sources():
    """Rows that see each other's attributes and a lookup's."""
    made = sources()
    codes = cp.Lookup(
        engines.pa.table({"city": ["x", "y"], "zone": [1, 2]}), key="city", columns={"zone": cp.number(0, 9)}
    )
    return cp.Sources(unit="person", people=made["table"], visits=made["stream"], now=made["live"], codes=codes)


ASKED_OF_SEVERAL = [
    cp.count(of="visits", where="people.age >= 30 AND now.city = 'x'"),
    cp.sum("codes.zone", of="people", where="now.age < 99"),
    cp.count(of="now", where="people.age = age AND codes.zone = 2"),
    cp.count_distinct(of="visits", where="people.age >= 30"),
]


def test_rows_that_see_other_sources_have_a_second_path(monkeypatch):
    both = joined_sources()

    def found():
        return [people.found(both, request) for request in ASKED_OF_SEVERAL]

    expected = found()
    assert any(expected)
    monkeypatch.setattr(EmbeddedEngine, "run", failing)
    monkeypatch.setattr(EmbeddedEngine, "change", failing)
    assert found() == expected


def test_units_are_counted_in_pieces_where_memory_is_short():
    rows = [(i % 7, f"unit {i % 501}") for i in range(3000)]
    plan = (
        cp.Table(
            engines.pa.table({"k": [1], "u": ["x"]}), unit="u", rows_per_unit=9, columns={"k": cp.category(range(7))}
        )
        ._compiled(cp.select(a=cp.count_distinct(), b=cp.count_distinct("k < 3"), n=cp.count()))
        .plan
    )
    passes = []

    def read():
        passes.append(1)
        return iter(rows)

    assert (
        answering.evaluated(plan, read, held=100) == answering.evaluated(plan, lambda: iter(rows)) == [(501, 501, 3000)]
    )
    assert len(passes) > 4


def test_a_table_that_is_closed_while_it_answers_is_not_a_failure_of_its_data():
    table = sources()["table"]
    session = Session(table, within=cp.PureDP(1))
    table.close()
    with pytest.raises(cp.errors.NotAllowed):
        session.ask(cp.count(), epsilon=0.1)
    assert not session.data_closed
