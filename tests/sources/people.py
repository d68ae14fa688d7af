"""Small made-up tables full of awkward values, requests over them, and a second opinion on what the answers are."""

import math
from datetime import date as day
from fractions import Fraction

import pyarrow as pa
from hypothesis import strategies as st

from counterpoint.privacy.secret import Tally, counted, distances, reveal
from counterpoint.queries import aggregates as requests
from counterpoint.queries import extremes, shares
from counterpoint.queries import extremes as tops
from counterpoint.queries import quantiles as choices
from counterpoint.queries import select as selects
from counterpoint.queries import variance as variances
from counterpoint.schema.columns import boolean, category, number, text
from counterpoint.schema.times import date
from counterpoint.sources.table import Table

SCHEMA = pa.schema(
    [
        ("who", pa.int64()),
        ("income", pa.float64()),
        ("tokens", pa.int64()),
        ("state", pa.string()),
        ("vip", pa.bool_()),
        ("zip", pa.string()),
        ("age", pa.int32()),
        ("born", pa.date32()),
    ]
)
COLUMNS = {
    "income": number(-2, 3, step="0.25"),
    "tokens": number(-(2**62), 2**62),
    "state": category(["CA", "NY", "WY"]),
    "vip": boolean(),
    "zip": text(),
    "born": date("1990-01-01", "2010-12-31"),
}
BORN = [None, day(1, 1, 1), day(9999, 12, 31), day(1990, 1, 1), day(2000, 2, 29), day(2010, 12, 30)]
LEAST, MOST = -(2**63), 2**63 - 1

incomes = st.sampled_from([None, math.nan, math.inf, -math.inf, -0.0, 0.1, 0.125, 1e308, -1e308, 2.9, 3.0]) | st.floats(
    -3, 4
)
tokens = st.sampled_from([None, LEAST, MOST, 2**62, -(2**62), 2**53 + 1, 0]) | st.integers(-5, 5)
rows = st.fixed_dictionaries(
    {
        "income": incomes,
        "tokens": tokens,
        "state": st.sampled_from([None, "CA", "NY", "WY", "", "ca", "'; DROP"]),
        "vip": st.sampled_from([None, True, False]),
        "zip": st.sampled_from([None, "10001", "10%", "1_", "é😀", "it's", "\\", ""]),
        "age": st.sampled_from([None, 0, 17, 18, 99, -(2**31), 2**31 - 1]),
        "born": st.sampled_from(BORN),
    }
)
units = st.lists(rows, min_size=1, max_size=5)
worlds = st.dictionaries(st.integers(0, 8), units, max_size=5)
"""A table as a dictionary: the rows of each unit."""

wheres = st.recursive(
    st.sampled_from(
        [
            "income > 0.1",
            "income <= -1.5",
            "income = 0.25",
            "income <> 3",
            "0 < income",
            "income BETWEEN -1 AND 1.1",
            "tokens >= 9223372036854775808",
            "tokens < 99999999999999999999999999999",
            "tokens IN (0, 1, -5, 0.5)",
            "tokens NOT BETWEEN -1 AND 1e18",
            "state = 'CA'",
            "state <> 'NY'",
            "state IN ('CA', 'WY', 'nowhere')",
            "state IS NULL",
            "vip",
            "vip = FALSE",
            "vip <> TRUE",
            "zip LIKE '10%'",
            "zip NOT LIKE '1_'",
            "zip = 'it''s'",
            "age >= 17.5",
            "age IS NOT NULL",
            "who = 3",
            "born >= '2000-02-29'",
            "born BETWEEN '0001-01-01' AND '1999-12-31'",
            "born <> '1990-01-01'",
            "NOT born IN ('2010-12-31', '2000-02-29')",
        ]
    ),
    lambda inner: st.one_of(
        inner.map(lambda a: f"NOT ({a})"),
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda t: f"({t[0]}) {t[1]} {t[2]}"),
    ),
    max_leaves=4,
)
maybe_where = st.none() | wheres
PAIRS = [(True, "NY"), (False, "CA"), (True, "nowhere")]
TRIPLES = [("it's", 17, "2000-02-29"), ("10%", 18, "1990-01-01"), ("", 0, "2010-12-31"), ("10001", 99, "2000-02-29")]
questions = st.one_of(
    st.builds(requests.count, maybe_where),
    st.builds(requests.count_distinct, maybe_where),
    st.builds(requests.sum, st.sampled_from(["income", "tokens"]), maybe_where),
    st.builds(
        requests.sum, st.just("income"), maybe_where, by=st.just("state"), keys=st.none() | st.just(["WY", "nowhere"])
    ),
    st.builds(requests.sum, st.just("tokens"), maybe_where, by=st.just("vip")),
    st.builds(
        requests.sum, st.just("income"), maybe_where, by=st.just(["vip", "state"]), keys=st.none() | st.just(PAIRS)
    ),
    st.builds(requests.count, maybe_where, by=st.just(["state", "vip"])),
    st.builds(requests.count, maybe_where, by=st.just(["zip", "age", "born"]), keys=st.just(TRIPLES)),
    st.builds(requests.mean, st.sampled_from(["income", "tokens"]), maybe_where),
    st.builds(
        requests.mean, st.just("income"), maybe_where, by=st.just(["vip", "state"]), keys=st.none() | st.just(PAIRS)
    ),
    st.builds(requests.mean, st.just("tokens"), maybe_where, by=st.just("state")),
    st.builds(shares.share, wheres, maybe_where),
    st.builds(shares.share, wheres, maybe_where, by=st.just(["vip", "state"]), keys=st.none() | st.just(PAIRS)),
    st.builds(variances.variance, st.just("income"), maybe_where),
    st.builds(
        variances.stdev, st.just("income"), maybe_where, by=st.just(["vip", "state"]), keys=st.none() | st.just(PAIRS)
    ),
    st.builds(requests.histogram, st.just("state"), where=maybe_where),
    st.builds(requests.histogram, st.just("zip"), st.just(["10%", "it's", "nowhere"]), where=maybe_where),
    st.builds(requests.histogram, st.just("age"), st.just([18]), where=maybe_where),
    st.builds(requests.histogram, st.just("income"), edges=st.just([-2, 0, 0.1, 2, 3]), where=maybe_where),
    st.builds(requests.ranks, st.just("income"), st.just([-5, -1, 0, 0.3, 2.99, 3, 7]), maybe_where),
    st.builds(requests.ranks, st.just("born"), st.just(["1989-01-01", "1990-01-01", "2000-02-29"]), maybe_where),
    st.builds(
        requests.histogram,
        st.just("born"),
        edges=st.just(["1990-01-01", day(2000, 3, 1), "2030-01-01"]),
        where=maybe_where,
    ),
    st.builds(requests.histogram, st.just("born"), st.just(["2000-02-29", "2010-12-31"]), where=maybe_where),
    st.builds(choices.keys, st.sampled_from(["zip", "age", "born", "who"]), where=maybe_where),
    st.builds(choices.keys, st.just("zip"), st.just(2), where=maybe_where),
    st.builds(
        choices.quantile,
        st.just("income"),
        st.sampled_from([0, "1/2", "0.9", "1/3", 1]),
        st.just([-5, -2, 0, 0.3, 2.99, 3, 7]),
        maybe_where,
    ),
    st.builds(choices.median, st.just("income"), where=maybe_where),
    st.builds(choices.quantile, st.just("tokens"), st.just("0.25"), st.just([-(2**70), 0, 2**62, 2**70]), maybe_where),
    st.builds(choices.quantile, st.just("born"), st.just(0.5), st.just(["1990-01-01", "2000-02-29"]), maybe_where),
    st.builds(requests.ranks, st.just("tokens"), st.just([-(2**70), 0, 2**53, 2**62, 2**70]), maybe_where),
    st.builds(
        choices.quantile,
        st.just("income"),
        st.sampled_from([0, "1/2", "0.9"]),
        st.just([-2, 0, 0.3, 3]),
        maybe_where,
        by=st.just(["vip", "state"]),
        keys=st.none() | st.just(PAIRS),
    ),
    st.builds(choices.median, st.just("tokens"), st.just([-(2**62), 0, 7]), maybe_where, by=st.just("state")),
    st.builds(extremes.minimum, st.just("income"), st.sampled_from([1, 2, None]), where=maybe_where),
    st.builds(extremes.maximum, st.just("born"), st.just(1), st.just(["1990-01-01", "2000-02-29"]), maybe_where),
    st.builds(
        extremes.maximum,
        st.just("income"),
        st.sampled_from([1, 3]),
        st.just([-2, 0, 0.3, 3]),
        maybe_where,
        by=st.just(["vip", "state"]),
        keys=st.none() | st.just(PAIRS),
    ),
    st.builds(extremes.bounds, st.sampled_from(["income", "tokens"]), st.sampled_from([1, 2]), where=maybe_where),
    st.builds(requests.count_distinct, maybe_where, by=st.just("state")),
    st.builds(requests.count_distinct, maybe_where, by=st.just(["zip", "age", "born"]), keys=st.just(TRIPLES)),
    st.builds(
        choices.keys, st.sampled_from([["zip", "age"], ["vip", "born", "zip"], ["who", "age"]]), where=maybe_where
    ),
    st.builds(
        lambda where, other, groups: selects.select(
            n=requests.count(where),
            units=requests.count_distinct(other),
            total=requests.sum("tokens", other),
            late=requests.mean("income", where),
            spread=variances.stdev("income"),
            **groups,
        ),
        maybe_where,
        maybe_where,
        st.sampled_from([{}, {"by": "state"}, {"by": ["vip", "state"], "keys": PAIRS}]),
    ),
    st.builds(tops.top, st.just(["vip", "state"]), st.sampled_from([1, 3]), st.just(PAIRS), maybe_where),
)


def arrow(world, order=lambda rows: rows):
    """The world as an Arrow table."""
    listed = order([{"who": who, **row} for who, unit in world.items() for row in unit])
    return pa.Table.from_pylist(listed, schema=SCHEMA)


def table(world, rows_per_unit=2, neighbours="add-or-remove", order=lambda rows: rows, **more):
    """The world as a bound table."""
    return Table(arrow(world, order), "who", rows_per_unit, COLUMNS, neighbours, **more)


def found(source, request):
    """The raw integers of a request, as a tuple, or a tally."""
    secret = source.resolve(source.pin(), source.prepare(request))
    if secret.keyed:
        return counted(secret)
    raw = reveal(secret)
    return raw if isinstance(raw, tuple) else (raw,)


def steps(value, column):
    """A number as it should be stored: missing, or clamped and rounded to the nearest step (a half goes up)."""
    if value is None or math.isnan(value):
        return None
    if math.isinf(value):
        return column.most if value > 0 else column.least
    nearest = math.floor(Fraction(value) / column.step + Fraction(1, 2))
    return min(max(nearest, column.least), column.most)


def moved(left, right, cells=1):
    """How far apart two answers are: in L1, in squared L2, and in the coordinate that moved most (of every cell)."""
    if isinstance(left, Tally):
        steps = distances(left, right) or (0,)
    else:
        steps = [abs(a - b) for a, b in zip(left, right, strict=True)]
    wide = len(steps) // cells
    each = sum(max(steps[start : start + wide]) for start in range(0, wide * cells, wide))
    return sum(steps), sum(step * step for step in steps), each
