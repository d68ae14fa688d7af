"""A small table, sessions on it, and the tails of noise by its law: for the tests of questions and answers."""

from fractions import Fraction

import pyarrow as pa

import counterpoint as cp

COLUMNS = {
    "city": cp.category(["Paris", "Rome", "<b>Ys</b>"]),
    "age": cp.number(0, 120),
    "pay": cp.number(0, 10, step="0.5"),
    "street": cp.text(),
}
ROWS = {
    "who": list(range(60)),
    "city": ["Paris"] * 30 + ["Rome"] * 30,
    "age": [20, 40, 60] * 20,
    "pay": [2.5] * 60,
    "street": ["rue"] * 60,
}


def table(**more):
    return cp.Table(pa.table(ROWS), unit="who", rows_per_unit=1, columns=COLUMNS, **more)


def session(within=None, **more):
    return cp.Session(table(), within or cp.PureDP(100), **more)


def beyond(options, m):
    return sum((p for z, p in options.outcomes if abs(z) > m), Fraction(0))


def tail(law, spread, m):
    """The chance that noise goes beyond m, by the law alone."""
    return beyond(law(Fraction(spread), Fraction(1, 10**12)), m)
