"""Neighbouring worlds in one table, and every kind of request about them: what the differential tests enumerate.

A world is a table of a few units: bystanders, and perhaps one more unit, the guest. Two worlds with the same bystanders
and different guests are neighbours: by replacing a unit, and, if one of them has no guest, by adding or removing it.
All worlds are in one table, a part of which is a world, so that an engine answers about all of them in one query.

The unit is a pair of columns, the world and the unit within it. Which rows of a unit are kept depends on its name, and
so on the world: therefore a bystander has at most `CAP` rows, of one kind besides blank ones, and is the same in every
world also where the table is spread. Guests may have more rows than are kept.
"""

from datetime import UTC, date, datetime
from itertools import product
from typing import NamedTuple

import pyarrow as pa
from tests.engines import engines

import counterpoint as cp
from counterpoint.privacy.secret import Tally
from counterpoint.queries.aggregates import ranks
from counterpoint.queries.plan import joined

CAP = 3
NOWHERE = 987654321
"""A number that no world has, and that occurs in no query but for this."""
KEY = b"sixteen bytes..."
SCHEMA = pa.schema(
    [
        ("world", pa.int64()),
        ("who", pa.int64()),
        ("x", pa.float64()),
        ("b", pa.int64()),
        ("s", pa.string()),
        ("z", pa.string()),
        ("f", pa.bool_()),
        ("d", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
    ]
)
COLUMNS = {
    "x": cp.number(-2, 3, step="1/2"),
    "b": cp.number(0, 4),
    "s": cp.category(["CA", "NY"]),
    "z": cp.text(),
    "f": cp.boolean(),
    "d": cp.date("1990-01-01", "2030-12-31"),
    "at": cp.timestamp("2024-01-01", "2025-01-01", zone="America/New_York"),
    "late": cp.derived("x - b / 2", -4, 3, "1/2"),
    "hour": cp.derived("HOUR(at)", 0, 23),
}
LEAP, LAST = date(2000, 2, 29), date(2030, 12, 31)
FOLD, GAP = datetime(2024, 11, 3, 5, 30, tzinfo=UTC), datetime(2024, 3, 10, 7, 0, tzinfo=UTC)
"""In New York 1:30 for the first time (it comes again an hour later), and 3:00, a moment after 1:59."""


def row(x, b, s, *, f=None, z=None, d=None, at=None):
    """A row of the columns, without its world and its unit."""
    return {"x": x, "b": b, "s": s, "z": z, "f": f, "d": d, "at": at}


def corner(x, b, s):
    """A row of extremes, whose other values go with these."""
    return row(x, b, s, f=x > 0, z="é😀" if s == "CA" else "it's", d=LEAP if s == "CA" else LAST, at=FOLD if b else GAP)


CORNERS = [corner(x, b, s) for x, b, s in product((-2.0, 3.0), (0, 4), ("CA", "NY"))]
LOW, HIGH = corner(-2.0, 0, "CA"), corner(3.0, 0, "NY")
MIDDLE = row(0.5, 2, "NY", f=False, z="", d=date(1999, 12, 31), at=datetime(2024, 11, 3, 6, 30, tzinfo=UTC))
BLANK = row(None, None, None)
STRANGE = row(float("nan"), -(2**63), "ca", z="x" * 200, d=date(1, 1, 1), at=datetime(1970, 1, 1, tzinfo=UTC))
BEYOND = row(float("inf"), 2**63 - 1, "CA", f=True, z="it's", d=date(9999, 12, 31), at=datetime(2030, 1, 1, tzinfo=UTC))

GUESTS = [
    [],
    *([one] * CAP for one in CORNERS),
    *([corner(x, 1, "CA")] * CAP for x in (-2.0, 3.0)),
    [{**LOW, "f": True}] * CAP,
    [{**corner(3.0, 0, "CA"), "at": FOLD}] * CAP,
    [{**corner(3.0, 4, "CA"), "d": LAST}] * CAP,
    *([corner(x, b, s) for b in (0, 4)] for x, s in ((-2.0, "CA"), (3.0, "CA"), (3.0, "NY"))),
    *([corner(x, b, s) for s in ("CA", "NY", "CA")] for x, b in ((-2.0, 0), (3.0, 4))),
    *(
        [{**LOW, "s": s, "f": f, "z": z} for s, f, z in zip(("CA", "NY", "NY"), (True, False, True), zs, strict=True)]
        for zs in ("abc", "def")
    ),
    [corner(-2.0, 4, "CA"), corner(-2.0, 4, "NY"), MIDDLE],
    [STRANGE, HIGH, LOW],
    [BEYOND, BLANK],
    [*CORNERS, MIDDLE, BLANK, BEYOND, STRANGE],  # more than are kept
]
BYSTANDERS = [
    [],
    [[LOW] * CAP, [{**LOW, "f": True}] * CAP, [CORNERS[1]] * CAP, [LOW]],
    [[HIGH] * CAP, [CORNERS[4]] * CAP, [HIGH]],
    [[MIDDLE, BLANK, BLANK], [STRANGE, BLANK], [LOW], [CORNERS[2]]],
]
ALL = list(product(range(len(BYSTANDERS)), range(len(GUESTS))))
"""Every world: which bystanders it has, and which guest."""
FEW = [(3, guest) for guest in (0, 1, 6, len(GUESTS) - 3, len(GUESTS) - 1)]
"""Those for an engine that takes a moment for each."""


def frame(worlds=ALL):
    """The rows of these worlds in one table."""
    listed = []
    for bystanders, guest in worlds:
        units = [*enumerate(BYSTANDERS[bystanders]), (100 + guest % 2, GUESTS[guest])]
        number = ALL.index((bystanders, guest))
        listed += [{"world": number, "who": who, **one} for who, unit in units for one in unit]
    return pa.Table.from_pylist(listed, schema=SCHEMA)


def bound(engine, neighbours, worlds=ALL):
    """These worlds in one table of an engine."""
    return engines.bound(engine, frame(worlds), ["world", "who"], CAP, COLUMNS, neighbours=neighbours, key=KEY)


class Case(NamedTuple):
    """A request, and the limits of the table that it is asked of: the arguments of `spread`, if it is spread."""

    request: object
    spread: tuple = ()

    def source(self, table):
        """The table with these limits."""
        return table.spread(*self.spread) if self.spread else table


CASE = "CASE WHEN s = 'CA' THEN b ELSE -3 END"
PAIRS = {"by": ["s", "f"], "keys": [("CA", True), ("NY", False), ("NY", True)]}
BETWEEN = [-1, 0, "1/3", 2]
BOTH_ENDS = [cp.bounds("x", 4, BETWEEN), cp.bounds("x + b", 2)]
SELECT_BY = cp.select(n=cp.count(), units=cp.count_distinct("x > 0"), total=cp.sum("x", "f"), late=cp.mean("b"), by="s")
PLAIN = [
    cp.count("x < b OR NOT f"),
    cp.count(by="s"),
    cp.sum("x", "b >= 0"),
    cp.mean("x"),
    cp.variance("x"),
    cp.stdev("x", by="s"),
    cp.median("x", BETWEEN),
    cp.quantile("x", "3/4", BETWEEN, by="s"),
    cp.quantile("x", [0, "3/4", 1], BETWEEN),
    cp.minimum("x", 4, BETWEEN),
    cp.maximum("x", 4, BETWEEN, by="s"),
    BOTH_ENDS[0],
    cp.count_distinct("x > 0"),
    cp.histogram("x", edges=[-2, 0, "1/2", 3]),
    cp.share("x > 0", "b >= 0"),
    cp.keys("z"),
    cp.top("s", 1),
    cp.select(n=cp.count(), total=cp.sum("x"), late=cp.mean("b")),
]
"""One of every kind."""
MORE = [
    cp.count(**PAIRS),
    cp.count(by=["z", "d"], keys=[("é😀", "2000-02-29"), ("it's", "2030-12-31"), ("", "1999-12-31")]),
    cp.sum("x", by="s"),
    cp.sum("x", **PAIRS),
    cp.mean("x", by=["s", "f"]),
    cp.variance("x", **PAIRS),
    cp.median("x", BETWEEN, **PAIRS),
    cp.quantile("x", [0.5], by="s"),
    cp.quantile("d", ["1/3"], ["1999-01-01", "2029-12-31", "2030-12-31"], "x > 0", **PAIRS),
    cp.minimum("d", 3, ["1999-01-01", "2010-01-01"], by="f"),
    cp.maximum("d", 3, ["1999-01-01", "2010-01-01"]),
    cp.minimum("x", 2, BETWEEN, **PAIRS),
    cp.count_distinct(by="s"),
    cp.count_distinct("NOT x > 2", **PAIRS),
    cp.count_distinct(by="who", keys=[0, 1, 2, 100, 101]),
    cp.histogram("z", keys=["it's", "é😀", ""]),
    cp.histogram("x", bins=4),
    cp.histogram("d", bins=7),
    cp.share("b > 2", by="s"),
    cp.share("NOT f OR x / b > 1", "x < 3", **PAIRS),
    ranks("x", [-2, *BETWEEN, 3]),
    cp.keys(["z", "b"]),
    cp.keys("who"),
    cp.top(["s", "f"], 2, keys=PAIRS["keys"]),
    SELECT_BY,
    cp.select(n=cp.count("x > 0"), far=cp.variance("x"), **PAIRS),
]
EXPRESSIONS = [
    cp.count("x / b > 0.7 OR d + 366 > '2010-01-01' AND s <> z"),
    cp.count(by=["YEAR(d)", CASE], keys=[(2000, 4), (2000, 0), (2030, -3)]),
    cp.count(by="HOUR(at)"),
    cp.count("at >= '2024-03-10T03:00:00-04:00'", by=["HOUR(at)", "WEEKDAY(DATE(at))"], keys=[(1, 7), (3, 7), (0, 1)]),
    cp.sum("x * b - 1"),
    cp.sum("x / b", low=-1, high=2, step="1/3"),
    cp.sum(CASE, by="QUARTER(d)"),
    cp.sum("late"),
    cp.sum("COALESCE(x, -1)", by="b > 2"),
    cp.mean("ABS(x - 3) - b", by="s"),
    cp.mean("late", "MONTH(d) = 2", by=["s", "hour"], keys=[("CA", 1), ("CA", 3), ("NY", 1)]),
    cp.variance("2 * x"),
    cp.stdev("x", by=CASE, keys=[0, 4, -3]),
    cp.median("d - '2000-02-29'", [1, 40, 9000]),
    cp.quantile("x - b", "1/3", [-1, 0, 1], by="HOUR(at) > 2"),
    cp.minimum("x * x", 3, [5, 7]),
    cp.maximum("late", 2, [-3, 0, 1], by="s"),
    BOTH_ENDS[1],
    cp.count_distinct("x < b", by="YEAR(d)", keys=[1999, 2000, 2030]),
    cp.histogram("x - b", edges=[-6, -2, 0, 3]),
    cp.histogram("hour", keys=[1, 3]),
    ranks("late", [-4, 0, "1/2", 3]),
    cp.keys("YEAR(d) - b"),
    cp.keys(["z", "HOUR(at)"], where="NOT x = b"),
    cp.top("HOUR(at)", 2),
    cp.select(n=cp.count("x + b > 6"), total=cp.sum("x + b"), mean=cp.mean("b"), by=CASE, keys=[0, 4, -3]),
]
SPREADS = [("s", 1), ("s", 2, 1), ("s", 1, 2), ("b", 2, 1)]
SPREAD = [
    cp.count(),
    cp.sum("x", by="s"),
    cp.mean("x", by=["b", "s"], keys=[(0, "CA"), (4, "CA"), (0, "NY"), (4, "NY")]),
    cp.count_distinct(by="s"),
    cp.median("x", [0]),
]
CASES = [
    *(Case(request) for request in (*PLAIN, *MORE, *EXPRESSIONS)),
    *(Case(request, spread) for spread in SPREADS for request in SPREAD),
]
ONE_OF_EACH = [
    *(Case(request) for request in PLAIN),
    Case(EXPRESSIONS[3]),
    Case(EXPRESSIONS[5]),
    Case(SPREAD[1], SPREADS[1]),
]


def answers(table, case, worlds=ALL):
    """The integers of a request in each world, from one query for all: that of a part, at each world in turn."""
    source = case.source(table)
    part = source.part("world", NOWHERE)._compiled(case.request)
    numbers = ", ".join(f"({ALL.index(world)})" for world in worlds)
    fetched = {ALL.index(world): [[] for _ in part.statements] for world in worlds}
    for place, sql in enumerate(part.statements):
        query = sql.replace(str(NOWHERE), "each_world.n")
        every = f"SELECT each_world.n, q.* FROM (VALUES {numbers}) AS each_world(n), LATERAL ({query}) AS q"
        for number, *found in source._bound.engine.run(every):
            fetched[number][place].append(tuple(found))
    read = (part.request.read_rows(table.declaration, part.plan, joined(part.plan, rows)) for rows in fetched.values())
    return dict(zip(worlds, (raw if isinstance(raw, Tally | tuple) else (raw,) for raw in read), strict=True))


def pairs(neighbours, worlds=ALL):
    """All pairs of these worlds that are neighbours."""
    for left, right in product(worlds, worlds):
        if left[0] == right[0] and left[1] < right[1] and (neighbours == "replace" or left[1] == 0):
            yield left, right
