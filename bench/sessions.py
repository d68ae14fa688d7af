"""A session's asks beside the plain query, and beside opendp's interleaved children."""

from collections.abc import Callable, Iterator
from typing import Any

from bench.counters import HORIZON, binary_tree
from bench.table import Row, best_cpu, side_by_side
from counterpoint.continual.counter import Counter
from counterpoint.measures import PureDP
from counterpoint.mechanisms.additive import Laplace
from counterpoint.queries.aggregates import count
from counterpoint.queries.aggregates import sum as sum_of
from counterpoint.schema.columns import category, number
from counterpoint.schema.units import each_row
from counterpoint.session.session import Session
from counterpoint.sources.streams.items import total
from counterpoint.sources.streams.stream import Stream
from counterpoint.sources.table import Table

ROWS = 10**7
KEYS = [f"k{n}" for n in range(20)]
ASKS = 500
CALLS = 200


def rows() -> Iterator[Row]:
    yield Row("a private group-by sum, 10^7 rows", *side_by_side(*group_by()), "the same query in DuckDB", at_most=1.3)
    yield Row("1,000 cells of two columns, 10^7 rows", *side_by_side(*cells()), "the same query in DuckDB", at_most=1.3)
    yield Row(f"{CALLS} launches, each asked once, on 100 rows", *side_by_side(*each_launched()), "the queries alone")
    yield Row(f"{CALLS} questions (session.ask), on 100 rows", *side_by_side(*questions()), "the queries alone")
    yield Row(f"{CALLS} asks of one mechanism, on 100 rows", *side_by_side(*asked_again()), "the queries alone")
    yield Row(f"{2 * ASKS} asks of two interleaved mechanisms", *side_by_side(*interleaved()), "opendp's children")
    tree = "numpy's float binary tree (neither exact nor kept), CPU time"
    for name, counter, at_most in (
        ("zCDP", Counter(rho="0.5", horizon=HORIZON), 16),
        ("pure", Counter(1, HORIZON), None),
    ):
        what = f"{ASKS} appends to a stream, each followed by an ask of a counter, {name}"
        times = best_cpu(counted(counter), binary_tree(1, ASKS, gaussian=name == "zCDP"), rounds=20)
        yield Row(what, *times, tree, at_most=at_most)


def group_by() -> tuple[Callable[[], object], Callable[[], object]]:
    """Twenty sums over ten million rows: through a session, and in the same engine by hand."""
    import duckdb

    connection = duckdb.connect()
    made_up = (
        f"SELECT 'k' || (i * 7 % {len(KEYS)}) AS key, (i * 7919 % 1000)::BIGINT AS amount FROM range({ROWS}) AS t(i)"
    )
    connection.execute(f"CREATE TABLE plain AS {made_up}")
    table = Table(
        connection.sql("FROM plain"), unit=each_row, columns={"key": category(KEYS), "amount": number(0, 1000)}
    )
    noisy = Session(table, within=PureDP(1)).launch(Laplace(1, asks=1000))
    request = sum_of("amount", by="key")
    return (
        lambda: noisy.ask(request),
        lambda: connection.sql("SELECT key, sum(amount) FROM plain GROUP BY key").fetchall(),
    )


def cells() -> tuple[Callable[[], object], Callable[[], object]]:
    """A thousand counts by two columns over ten million rows: through a session, and in the same engine by hand."""
    import duckdb

    connection = duckdb.connect()
    made_up = f"SELECT (i * 7 % 25)::INT AS a, (i * 7919 // 25 % 40)::INT AS b FROM range({ROWS}) AS t(i)"
    connection.execute(f"CREATE TABLE plain AS {made_up}")
    columns = {"a": category(range(25)), "b": category(range(40))}
    table = Table(connection.sql("FROM plain"), unit=each_row, columns=columns)
    noisy, request = Session(table, within=PureDP(1)).launch(Laplace(1, asks=1000)), count(by=["a", "b"])
    return (
        lambda: noisy.ask(request),
        lambda: connection.sql("SELECT a, b, count(*) FROM plain GROUP BY a, b").fetchall(),
    )


def small() -> tuple[Table, Callable[[], object]]:
    """A hundred rows, and as many plain queries on them in the same engine: beyond these, all time is the session's."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("CREATE TABLE plain AS SELECT i AS id, i % 90 AS age FROM range(100) AS t(i)")
    table = Table(connection.sql("FROM plain"), unit="id", rows_per_unit=1, columns={"age": number(0, 120)})

    def queries() -> None:
        for _ in range(CALLS):
            with connection.cursor() as cursor:
                cursor.execute("SELECT count(*) FROM plain WHERE age >= 18").fetchall()

    return table, queries


def each_launched() -> tuple[Callable[[], object], Callable[[], object]]:
    """What a call costs beyond its query: checked, charged, recorded, drawn, settled, for a launch and its ask."""
    table, queries = small()
    session, request = Session(table, within=PureDP(10**6)), count(where="age >= 18")

    def ours() -> None:
        for _ in range(CALLS):
            session.launch(Laplace(1)).ask(request)

    return ours, queries


def questions() -> tuple[Callable[[], object], Callable[[], object]]:
    """The same for a question: a mechanism is chosen, launched and asked, and the answer knows its error."""
    table, queries = small()
    session, request = Session(table, within=PureDP(10**6)), count(where="age >= 18")

    def ours() -> None:
        for _ in range(CALLS):
            session.ask(request, epsilon=1)

    return ours, queries


def asked_again() -> tuple[Callable[[], object], Callable[[], object]]:
    """The same for an ask alone."""
    table, queries = small()
    noisy, request = Session(table, within=PureDP(1)).launch(Laplace(1, asks=20 * CALLS)), count(where="age >= 18")

    def ours() -> None:
        for _ in range(CALLS):
            noisy.ask(request)

    return ours, queries


def interleaved() -> tuple[Callable[[], object], Callable[[], object]]:
    """Two mechanisms asked in turn, with next to nothing to compute: what is left is the engine."""
    stream = Stream(bound=1)
    stream.extend([1] * 100)
    session = Session(stream, within=PureDP(10**6))
    many = 20 * ASKS
    first, second = session.launch(Laplace(1, asks=many)), session.launch(Laplace(1, asks=many))
    request = total()

    def ours() -> None:
        for _ in range(ASKS):
            first.ask(request)
            second.ask(request)

    return ours, opendp_interleaved()


def counted(counter: Counter) -> Callable[[], object]:
    """A counter that is asked after every item: 60 us where the tree takes 3.75, and both are computed in memory.

    Reached are 64 to 68 us, 17 to 18 times the tree. 20 us are the counter's update and ask, 6 the stream that the
    request's seed keys, 4 the append; to check, record, follow and settle is the rest, in which no function of ours
    takes 2 us by itself. The garbage collector takes none of it.
    """
    stream = Stream(bound=1)
    handle = Session(stream, within=counter.claim.loss).launch(counter)

    def ours() -> None:
        for _ in range(ASKS):
            stream.append(1)
            handle.ask()

    return ours


def opendp_interleaved() -> Callable[[], object]:
    """Two adaptive compositions launched in a fully adaptive one, each asked in turn for a Laplace answer."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain, metric, measure = dp.atom_domain(T="i32"), dp.absolute_distance(T="i32"), dp.max_divergence()
    outer: Any = dp.c.make_fully_adaptive_composition(domain, metric, measure)(100)
    noise = dp.m.make_laplace(domain, metric, scale=1000.0)

    def child() -> Any:
        return outer(
            dp.c.make_adaptive_composition(
                input_domain=domain, input_metric=metric, output_measure=measure, d_in=1, d_mids=[0.001] * 20 * ASKS
            )
        )

    first, second = child(), child()

    def peer() -> None:
        for _ in range(ASKS):
            first(noise)
            second(noise)

    return peer
