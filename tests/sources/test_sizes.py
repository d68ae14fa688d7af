"""Whatever is too long, too many, too deep or too large is refused with the limit, and what is allowed is quick."""

import itertools
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp
from tests.engines import engines
from tests.sources import people

from counterpoint.continual.counter import Counter
from counterpoint.engines.duckdb import DUCKDB
from counterpoint.engines.postgres import POSTGRES
from counterpoint.engines.spark import SPARK
from counterpoint.errors import CounterpointError, InvalidRequest
from counterpoint.queries import aggregates as requests
from counterpoint.queries import compile as compiling
from counterpoint.queries import plan as emitter
from counterpoint.queries import quantiles as choices
from counterpoint.schema.arguments import LONGEST_KEYS, MOST_POINTS
from counterpoint.schema.columns import MOST_KEYS, number, text
from counterpoint.schema.expressions.syntax import LONGEST
from counterpoint.schema.times import date
from counterpoint.schema.units import each_row
from counterpoint.session.fit import explained
from counterpoint.sources import table as tables
from counterpoint.sources.streams.log import checked_id

FRAME = pa.table({"s": ["a", None], "n": [1, 2], "vip": [True, False], "z": [3, 4], "d": ["2020-01-01", None]})
DECLARED = {"s": text(), "n": number(0, 100, step="0.5"), "d": date("2000-01-01", "2020-12-31")}
SOURCE = tables.Table(FRAME, unit=each_row, columns=DECLARED)


def by_key(keys):
    return [lambda: requests.histogram("s", keys=keys), lambda: requests.sum("n", by="s", keys=keys)]


@pytest.mark.parametrize(
    ("keys", "limit"),
    [
        ([str(i) for i in range(MOST_KEYS + 1)], "takes 1 to 10000 keys"),
        (["x" * (LONGEST + 1)], "a key must be a text of at most 10000 characters"),
        ([f"{i:09999d}" for i in range(101)], "at most 1000000 characters together"),
        ([2**127], "below 2^127"),
        ([-(10**5000)], "below 2^127"),
        (itertools.count(), "takes 1 to 10000 keys"),
        (range(10**12), "takes 1 to 10000 keys"),
        ([], "keys is empty"),
    ],
    ids=["many", "one long", "long together", "wide", "huge", "endless", "range", "none"],
)
def test_too_many_too_long_or_too_large_keys_are_refused_with_the_limit(keys, limit):
    for make in by_key(keys):
        with pytest.raises(InvalidRequest) as refused:
            make()
        assert limit in str(refused.value)


def test_as_many_and_as_long_keys_as_are_allowed_are_counted():
    keys = ["a", *(f"{i:0100d}" for i in range(MOST_KEYS - 1))]
    assert sum(map(len, keys)) < LONGEST_KEYS
    assert people.found(SOURCE, requests.histogram("s", keys=keys)) == (1,) + (0,) * (MOST_KEYS - 1)
    longest = "x" * LONGEST
    assert people.found(SOURCE, requests.histogram("s", keys=[longest])) == (0,)


@pytest.mark.parametrize("points", [itertools.count(), range(10**12), [0] * (MOST_POINTS + 1)])
def test_edges_and_candidates_without_end_are_refused_with_the_limit(points):
    for make in (
        lambda: requests.histogram("n", edges=points),
        lambda: requests.ranks("n", points),
        lambda: choices.quantile("n", "0.5", points),
    ):
        with pytest.raises(InvalidRequest, match="to 1000 numbers"):
            make()


HUGE = [
    10**5000,
    -(10**5000),
    2**200,
    "x" * 10**6,
    "1/" * 5000 + "1",
    "/" * 5000,
    "1/" + "9" * 5000,
    Decimal("1e999999999"),
    Decimal("1e-999999"),
    Fraction(1, 10**5000),
    Fraction(10**5000),
    float("inf"),
    "1e999999999",
    "9" * 5000,
    "2020-01-01" * 1000,
    ("x",) * 10_001,
]
DEEDS = [
    *(lambda huge, name=name: requests.histogram(name, keys=[huge]) for name in FRAME.column_names),
    lambda huge: requests.histogram("s", keys=huge),
    lambda huge: requests.sum("n", by="s", keys=[huge]),
    lambda huge: requests.histogram("n", edges=[0, huge]),
    lambda huge: requests.histogram("d", edges=["2000-01-01", huge]),
    lambda huge: requests.ranks("n", [huge]),
    lambda huge: requests.ranks("n", huge),
    lambda huge: choices.quantile("n", huge, [1, 2]),
    lambda huge: choices.quantile("d", 0.5, [huge]),
    lambda huge: choices.keys("s", longest=huge),
    lambda huge: choices.keys("s", most=huge),
    choices.keys,
    requests.sum,
    lambda huge: requests.sum("n", by=huge),
    requests.count,
    lambda huge: requests.count(f"n = {huge}" if isinstance(huge, str) else "n = 1"),
]
PARTS = [
    *(lambda huge, name=name: SOURCE.part(name, huge) for name in FRAME.column_names),
    lambda huge: SOURCE.part(huge, 1),
    lambda huge: SOURCE.spread("s", huge),
    lambda huge: SOURCE.spread(huge, 1),
    checked_id,
]


@pytest.mark.parametrize("huge", HUGE, ids=range(len(HUGE)))
def test_whatever_is_huge_is_answered_or_refused_in_a_few_words(huge):
    for deed in [*(lambda given, make=make: SOURCE.prepare(make(given)) for make in DEEDS), *PARTS]:
        try:
            deed(huge)
        except CounterpointError as refused:
            assert len(str(refused)) < 600


CHAINS = {
    "AND": " AND ".join(f"s <> '{i}'" for i in range(450)),
    "AND of truth values": " AND ".join(["vip"] * 999),
    "AND in parentheses": " AND ".join(f"(vip AND s LIKE '%{i}%')" for i in range(200)),
    "one more than few": " AND ".join(["vip"] * emitter.MANY),
}


@pytest.mark.parametrize("where", CHAINS.values(), ids=CHAINS)
def test_a_long_chain_of_conditions_is_one_for_the_engine_which_compares_each_with_each(where):
    plan = requests.count(where).plan(SOURCE.declaration)
    for dialect in (DUCKDB, POSTGRES, SPARK):
        tree = sqlglot.parse_one(emitter.statement(plan, "bound", dialect=dialect), read=dialect.name)
        assert isinstance(tree.args["where"].this, exp.Case)
    few = requests.count(" AND ".join(["vip"] * (emitter.MANY - 1))).plan(SOURCE.declaration)
    assert "CASE" not in emitter.statement(few, "bound"), "a few, it may use to skip rows"


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "spark"])
def test_a_long_chain_of_conditions_means_what_a_short_one_does(engine):
    source = engines.bound(engine, FRAME, columns=DECLARED)
    for n in (3, 400):
        differs = " AND ".join(f"s <> '{i}'" for i in range(n))
        assert people.found(source, requests.count(differs)) == (1,), "missing, it is neither equal nor different"
        assert people.found(source, requests.count(f"({differs}) OR z = 4")) == (2,)
        assert people.found(source, requests.count(f"NOT ({differs})")) == (0,)


def test_of_long_requests_no_statement_is_kept(monkeypatch):
    compiled, asked = compiling.compile_request, []

    def counting(*given):
        asked.append(given)
        return compiled(*given)

    monkeypatch.setattr(compiling, "compile_request", counting)
    source = tables.Table(FRAME, unit=each_row, columns=DECLARED)
    for request, times in (
        (requests.count(), 1),
        (requests.histogram("s", keys=[f"{i:0100d}" for i in range(999)]), 2),
    ):
        asked.clear()
        assert source.prepare(request) == source.prepare(request) and len(asked) == times


def test_a_mechanism_that_refuses_a_long_request_does_not_repeat_it():
    long = SOURCE.prepare(requests.histogram("s", keys=[f"{i:0100d}" for i in range(999)]))
    said = explained(Counter(epsilon=1), "a public part that it does not take", long)
    assert "does not accept a request such as" in said and len(said) < 500
