"""The same integers, the same pins and the same refusals come from every engine."""

import math
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines import engines
from tests.engines.engines import OTHERS
from tests.sources import people

from counterpoint.errors import DataFailed
from counterpoint.queries import aggregates as requests
from counterpoint.queries import extremes
from counterpoint.queries import quantiles as choices
from counterpoint.queries import select as selects
from counterpoint.queries import variance as variances
from counterpoint.schema.columns import boolean, category, number, text

KEY = b"sixteen bytes..."

DOUBLES = [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -5e-324, -0.0, 0.5, -0.5, 0.1, 2.675, 4.6e18, None]
WHOLES = [2**63 - 1, -(2**63), 2**62, -(2**62), 2**62 - 1, 2**53 + 1, -7, -1, 0, 1, 8, 12, 9, None]
DECIMALS = [
    *map(
        Decimal, ["0.29", "-7.1", "0.5", "-0.5", "1e27", "-1e27", "1e-10", "-1e-10", "0.15", "2.5", "0", "3", "1.005"]
    ),
    None,
]
WRITTEN = [
    *["3", " 4 ", "1e1", "nan", "inf", "-Infinity", "99999999999999999999", "1e400", "-1e400", "1e-400", "+7", ".5"],
    *[
        "5.",
        "1_0",
        "0x10",
        "4\n",
        "\t4",
        "4d",
        "4f",
        "",
        " ",
        ".",
        "1e",
        "٣",
        "１",
        "1e9999",
        "0" * 201,
        "9" * 40,
        None,
    ],
    *["TRUE", "f", "1", "0", "-0.5", "--1", "+-1", "1,5", "1.5.5", "Infinit", "NaN ", "-nan", "2.5", "1e-5", "2e0"],
]
TEXTS = [
    *["é😀", "é", "e\u0301", "it's", "\\", "${user.name}", "%s", "{}", "a\nb", "ß", "SS", "İ", "i", "", " ", "a ", "a"],
    *["A", "$1 ? :x", '"', "\\'", "--", "ab", "a😀b", "\u2028", "\u00a0", None],
]


def edges():
    """One table of every awkward value of every type, and its declaration: each column on several grids."""
    rows = len(WRITTEN)
    data = {"who": pa.array([i % 9 for i in range(rows)], pa.int64())}
    columns = {}
    grids = {
        "unit": number(-3, 3),
        "tenth": number(-3, 3, step="0.1"),
        "third": number(-3, 3, step="1/3"),
        "seven": number("-14/3", "14/3", step="7/3"),
        "half": number(-(2**31), 2**31),
        "far": number(-(2**62), 2**62),
        "coarse": number(-(2**62) * 10**17, 2**62 * 10**17, step=10**17),
        "fine": number(0, 1, step="1e-18"),
    }
    given = {
        "d": (DOUBLES, pa.float64()),
        "f": ([math.nan, math.inf, 0.1, 1e-45, -2.5, None], pa.float32()),
        "w": (WHOLES, pa.int64()),
        "m": (DECIMALS, pa.decimal128(38, 10)),
        "t": (WRITTEN, pa.string()),
        "b": ([True, False, None], pa.bool_()),
    }
    for name, (values, kind) in given.items():
        for grid, column in grids.items():
            data[f"{name}_{grid}"] = pa.array([values[i % len(values)] for i in range(rows)], kind)
            columns[f"{name}_{grid}"] = column
    texts = [TEXTS[i % len(TEXTS)] for i in range(rows)]
    days = [date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), None]
    more = {
        "s": (texts, pa.string(), text()),
        "c": (texts, pa.string(), category([t for t in TEXTS[:12] if t is not None])),
        "k": (WRITTEN, pa.string(), category([3, 4, 7, -(2**63), 1, 16, 10])),
        "v": (WHOLES, pa.int64(), category([2**63 - 1, -(2**63), 0])),
        "l": (WRITTEN, pa.string(), boolean()),
        "y": (days, pa.date32(), text()),
        "n": (WHOLES, pa.int64(), None),
    }
    for name, (values, kind, column) in more.items():
        data[name] = pa.array([values[i % len(values)] for i in range(rows)], kind)
        columns |= {} if column is None else {name: column}
    return pa.table(data), columns


def asked_of_edges(columns):
    """Many requests on the edge table, few enough for an engine that takes half a second for each."""
    sums = [requests.mean(name) for name, column in columns.items() if hasattr(column, "step")]
    quoted = ["'" + t.replace("'", "''") + "'" for t in TEXTS if t is not None]
    return [
        *sums,
        requests.histogram("s", keys=[t for t in TEXTS if t is not None]),
        requests.histogram("c"),
        requests.histogram("k"),
        requests.histogram("v"),
        requests.histogram("l"),
        requests.histogram("y", keys=["0001-01-01", "9999-12-31", "1970-01-01"]),
        requests.histogram("n", keys=[2**63 - 1, -(2**63), 0, 8]),
        requests.ranks("d_tenth", [-3, -0.05, 0, 0.1, 2.7, 3]),
        requests.ranks("w_far", [-(2**70), -(2**62), 0, 2**53, 2**62 - 1, 2**62]),
        requests.sum("w_far", by=["s", "l"], keys=[(t, b) for t in TEXTS if t is not None for b in (True, False)]),
        requests.count(by=["c", "k", "l"]),
        requests.mean("w_far", by=["k", "l"]),
        variances.variance("d_tenth", by="c"),
        variances.variance("t_half"),
        requests.sum("t_unit", by="s", keys=["é", "e\u0301", "a", "A", "a "]),
        requests.count(f"s IN ({', '.join(quoted)}) AND NOT s = '${{user.name}}'"),
        requests.count("s LIKE '_' OR s LIKE 'a_b' OR NOT c LIKE '%s'"),
        requests.count(f"NOT n <= {2**63 - 2} OR n < {-(2**63) + 1}"),
        requests.count_distinct("NOT (l OR d_unit > 0.5) OR b_unit IS NULL"),
    ]


@pytest.mark.parametrize("engine", OTHERS)
def test_edge_values_give_the_same_integers_as_in_the_embedded_engine(engine):
    frame, columns = edges()
    here, there = (engines.bound(e, frame, "who", 5, columns, key=KEY) for e in ("duckdb", engine))
    assert here.describe() == there.describe()
    assert here.pin() == there.pin(), "the same rows are kept, and their contents are the same"
    asked = asked_of_edges(columns)
    if engine == "spark":
        asked = asked[::12] + asked[-19:]  # the pin has compared every stored value already
    for request in asked:
        assert people.found(here, request) == people.found(there, request), request


@settings(max_examples=12, deadline=None)
@given(people.worlds, st.lists(people.questions, min_size=4, max_size=8), st.integers(1, 3))
def test_random_tables_and_requests_give_the_same_integers_in_postgres(world, questions, cap):
    compare("postgres", world, questions, cap)


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(people.worlds, st.lists(people.questions, min_size=6, max_size=6), st.integers(1, 2))
@pytest.mark.parametrize("engine", OTHERS)
def test_more_random_tables_and_requests_give_the_same_integers(engine, world, questions, cap):
    compare(engine, world, questions, cap)


def compare(engine, world, questions, cap):
    frame = people.arrow(world)
    here, there = (engines.bound(e, frame, "who", cap, people.COLUMNS, key=KEY) for e in ("duckdb", engine))
    assert here.pin() == there.pin()
    for request in questions:
        assert here.prepare(request) == there.prepare(request)
        assert people.found(here, request) == people.found(there, request), request


@pytest.mark.parametrize("engine", OTHERS)
def test_an_empty_table_parts_and_spread_agree(engine):
    row = {**dict.fromkeys(people.COLUMNS), "age": 1}
    world = {i: [{**row, "state": s, "income": i / 4} for s in ("CA", "NY", "WY", None)] for i in range(5)}
    for data in ({}, world):
        frame = people.arrow(data)
        here, there = (engines.bound(e, frame, "who", 4, people.COLUMNS) for e in ("duckdb", engine))
        assert people.found(here, requests.mean("income")) == people.found(there, requests.mean("income"))
        request = requests.sum("income", by="state")
        spread = [people.found(source.spread("state", 2), request) for source in (here, there, there)]
        assert spread[0] == spread[1] == spread[2]
        part = [
            people.found(source.spread("state", 2).part("state", "CA"), requests.count()) for source in (here, there)
        ]
        assert part[0] == part[1]


@pytest.mark.parametrize("engine", OTHERS)
def test_sums_beyond_64_bits_are_exact(engine):
    frame = pa.table({"x": [2**62] * 1000 + [1]})
    source = engines.bound(engine, frame, columns={"x": number(0, 2**62)})
    assert people.found(source, requests.sum("x")) == (1000 * 2**62 + 1,)


@pytest.mark.parametrize("engine", ["duckdb", *OTHERS])
def test_whatever_goes_wrong_in_an_engine_is_one_constant_refusal(engine):
    source = engines.bound(engine, people.arrow({}), "who", 1, people.COLUMNS)
    prepared = source.prepare(requests.count())
    source._bound.engine.drop("bound")
    with pytest.raises(DataFailed) as refused:
        source.resolve(source.pin(), prepared)
    assert str(refused.value) == str(DataFailed())
    assert refused.value.__cause__ is refused.value.__context__ is None, "the engine's own words are gone"


BY_ITSELF = [
    requests.sum("b", by="b", keys=[1, 2]),
    requests.mean("b", by=["n", "b"], keys=[(1, 1), (2, 3)]),
    requests.histogram("b", keys=[1, 2], where="b > 1"),
    requests.count(by=["b > 1", "b > 2"]),
    requests.count_distinct(by="b", keys=[1, 2]),
    variances.variance("b", by="b", keys=[1, 2]),
    choices.median("b", [1, 2], by="b", keys=[1, 2]),
    choices.median("n", [1, 2], by="n", keys=[1, 2]),
    choices.quantile("b", 0.5, [1, 2], by=["b", "n"], keys=[(1, 1), (2, 2)]),
    choices.median("b + 1", [1, 2], by="b + 1", keys=[2, 3]),
    choices.median("b", [1, 2], by="CASE WHEN b > 1 THEN 'x' ELSE 'y' END"),
    choices.median("w", [1, 2], by="w", keys=[1, 2]),  # of a wide column, whose rows are not counted by value first
    choices.keys(["b", "n"]),
    extremes.minimum("b", by="b", keys=[1, 2]),
    selects.select(n=requests.count(), total=requests.sum("b"), m=requests.mean("b"), by="b", keys=[1, 2]),
]
"""Requests in which a column is asked about, selected and grouped by itself."""


@pytest.mark.parametrize("engine", OTHERS)
def test_a_column_that_is_asked_by_itself_gives_the_same_integers(engine):
    values = [1, 2, 2, 3, 4, None]
    frame = pa.table({name: pa.array(values, pa.int64()) for name in "bnw"})
    columns = {"b": number(0, 4), "n": number(0, 9), "w": number(0, 2**40)}
    here, there = (engines.bound(e, frame, columns=columns) for e in ("duckdb", engine))
    for request in BY_ITSELF if engine == "postgres" else BY_ITSELF[6:12:2]:
        assert people.found(here, request) == people.found(there, request), request
    by_value = {key: sum(value == key for value in values) for key in (1, 2)}
    assert people.found(there, BY_ITSELF[0]) == tuple(key * n for key, n in by_value.items())
