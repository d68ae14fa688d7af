"""Random requests over the whole grammar of expressions, and worlds whose statistics are unlike.

What an engine does to a statement may depend on what the rows hold: on how many there are, on the least and largest
value of a column, on whether any is missing. So the same requests are asked of worlds that differ in all of that, and
of their neighbours.
"""

from datetime import UTC, date, datetime

import pyarrow as pa

import counterpoint as cp

COLUMNS = {
    "a": cp.number(-4, 4, step="1/2"),
    "b": cp.number(0, 9),
    "c": cp.number(-(2**31), 2**31),
    "g": cp.number(-(2**62), 2**62),
    "d": cp.date("1990-01-01", "2030-12-31"),
    "e": cp.date("0001-01-01", "9999-12-31"),
    "z": cp.timestamp("1999-12-31T00:00", "2031-01-01T00:00", zone="Europe/Berlin"),
    "f": cp.boolean(),
    "s": cp.text(),
    "t": cp.category(["CA", "NY"]),
    "k": cp.category([-3, 0, 7]),
}
_KINDS = {
    "who": pa.int64(),
    "a": pa.float64(),
    "b": pa.int64(),
    "c": pa.int64(),
    "g": pa.int64(),
    "d": pa.date32(),
    "e": pa.date32(),
    "z": pa.timestamp("us", tz="UTC"),
    "f": pa.bool_(),
    "s": pa.string(),
    "t": pa.string(),
    "k": pa.int64(),
}
_BLANK = dict.fromkeys(_KINDS)
_TEXTS = ["CA", "NY", "", "it's", "a", "é" * 40, "z" * 5000, "\U0010ffff", "%_\\"]
_DAYS = [date(2000, 2, 29), date(1990, 1, 1), date(2030, 12, 31), date(1999, 12, 31)]
_FAR = [date(1, 1, 1), date(9999, 12, 31), date(1582, 10, 10), *_DAYS]
_TIMES = [
    datetime(2000, 3, 26, 1, 30, tzinfo=UTC),
    datetime(2030, 12, 31, 23, tzinfo=UTC),
    datetime(2000, 1, 1, tzinfo=UTC),
]


def _row(rng):
    """A row of ordinary values, some of them missing."""
    given = {
        "a": float(rng.integers(-8, 9)) / 2,
        "b": int(rng.integers(0, 10)),
        "c": int(rng.integers(-(2**31), 2**31)),
        "g": int(rng.integers(-(2**62), 2**62)),
        "d": _DAYS[rng.integers(len(_DAYS))],
        "e": _FAR[rng.integers(len(_FAR))],
        "z": _TIMES[rng.integers(len(_TIMES))],
        "f": bool(rng.integers(2)),
        "s": _TEXTS[rng.integers(len(_TEXTS))],
        "t": ["CA", "NY"][rng.integers(2)],
        "k": [-3, 0, 7][rng.integers(3)],
    }
    return {name: None if rng.random() < 0.15 else value for name, value in given.items()}


_NAMES = [name for name in _KINDS if name != "who"]
_SMALL = dict(zip(_NAMES, [0.5, 1, 17, 3, _DAYS[0], _DAYS[0], _TIMES[0], True, "a", "CA", 0], strict=True))
_LEAST = dict(
    zip(_NAMES, [-4.0, 0, -(2**31), -(2**62), _DAYS[1], _FAR[0], _TIMES[2], False, "", "CA", -3], strict=True)
)
_MOST = dict(
    zip(_NAMES, [4.0, 9, 2**31, 2**62, _DAYS[2], _FAR[1], _TIMES[1], True, "\U0010ffff", "NY", 7], strict=True)
)


def worlds(rng):
    """Rows by the name of their world; each but the first has a neighbour among the others."""
    some, alike = [_row(rng) for _ in range(40)], [_SMALL] * 30
    many = [_row(rng) for _ in range(2100)]
    found = {
        "empty": [],
        "one blank": [_BLANK],
        "one": [_MOST],
        "alike": alike,
        "alike and the most": [*alike, _MOST],
        "alike and the least": [*alike, _LEAST],
        "alike and a blank": [*alike, _BLANK],
        "some": some,
        "some and the most": [*some, _MOST],
        "many": many,
    }
    return {name: _frame(rows) for name, rows in found.items()}


def _frame(rows):
    listed = [{**_BLANK, **row, "who": i} for i, row in enumerate(rows)]
    return pa.Table.from_pylist(listed, schema=pa.schema(list(_KINDS.items())))


class Grammar:
    """Texts of random expressions; deeper ones with fewer branches."""

    def __init__(self, rng):
        self._rng = rng

    def _one(self, *choices):
        chosen = choices[self._rng.integers(len(choices))]
        return chosen() if callable(chosen) else chosen

    def number(self, depth=3):
        """A number."""
        if depth <= 0 or self._rng.random() < 0.25:
            return self._one("a", "b", "c", "g", "k", "b", "3", "0", "-7", "0.25", "1000000", "4611686018427387904")
        n, c = (lambda: self.number(depth - 1)), (lambda: self.condition(depth - 1))
        return self._one(
            lambda: f"({n()} + {n()})",
            lambda: f"({n()} - {n()})",
            lambda: f"({n()} * {n()})",
            lambda: f"CLAMP({n()} / {n()}, -5, 5, 0.5)",
            lambda: f"ABS({n()})",
            lambda: f"-({n()})",
            lambda: f"COALESCE({n()}, {n()})",
            lambda: f"CLAMP({n()}, -2, 50, 0.5)",
            lambda: f"CASE WHEN {c()} THEN {n()} WHEN {c()} THEN {n()} ELSE {n()} END",
            lambda: f"CASE WHEN {c()} THEN {n()} ELSE NULL END",
            lambda: f"CASE {n()} WHEN 3 THEN {n()} WHEN 0 THEN {n()} END",
            lambda: f"CASE {self.text(depth - 1)} WHEN 'CA' THEN {n()} ELSE {n()} END",
            lambda: f"({self.day(depth - 1)} - {self.day(depth - 1)})",
            lambda: f"{self._one('YEAR', 'QUARTER', 'MONTH', 'DAY', 'WEEKDAY')}({self._one('d', 'e', 'z', 'd + 3')})",
            "HOUR(z)",
        )

    def day(self, depth):
        """A date."""
        return self._one("d", "e", "DATE(z)", "'2000-02-29'", lambda: f"(d + CLAMP({self.number(depth)}, 0, 99, 1))")

    def text(self, depth=2):
        """A text."""
        if depth <= 0 or self._rng.random() < 0.4:
            return self._one("s", "t")
        c, x = (lambda: self.condition(depth - 1)), (lambda: self._one("'CA'", "'NY'", "'a'", "''", "'it''s'", "NULL"))
        return self._one(
            lambda: f"CASE WHEN {c()} THEN 'a' WHEN {c()} THEN {x()} END",
            lambda: f"CASE WHEN {c()} THEN {x()} ELSE 'CA' END",
            lambda: f"CASE {self._one('s', 't')} WHEN 'CA' THEN 'NY' ELSE {x()} END",
        )

    def condition(self, depth=2):
        """A condition."""
        n, x = (lambda: self.number(depth - 1)), (lambda: self.text(depth - 1))
        sign = self._one("=", "<>", "<", "<=", ">", ">=")
        plain = (
            lambda: f"{n()} {sign} {n()}",
            lambda: f"{n()} BETWEEN {n()} AND {n()}",
            lambda: f"{n()} IN (0, 3, -0.5, 17)",
            lambda: f"{n()} IS NULL",
            lambda: f"{x()} {self._one('=', '<>')} {x()}",
            lambda: f"{x()} {self._one('=', '<>')} 'CA'",
            lambda: f"{x()} IN ('CA', 'a', 'it''s')",
            lambda: f"{x()} LIKE '{self._one('C%', '%', '_', 'a%z_', '%é', '')}'",
            lambda: f"{x()} IS NOT NULL",
            lambda: f"{self.day(depth - 1)} {sign} {self.day(depth - 1)}",
            lambda: f"z {sign} '2000-03-26T02:30'",
            "f",
            "NOT f",
            "f IS NULL",
        )
        if depth <= 0 or self._rng.random() < 0.4:
            return self._one(*plain)
        c = lambda: self.condition(depth - 1)  # noqa: E731
        return self._one(
            *plain,
            lambda: f"NOT ({c()})",
            lambda: f"({c()} OR {c()})",
            lambda: f"({c()} AND {c()})",
            lambda: f"CASE WHEN {c()} THEN {c()} ELSE {c()} END",
            lambda: f"CASE WHEN {c()} THEN f ELSE {c()} END",
        )

    def request(self):
        """A request of any kind."""
        where = self.condition() if self._rng.random() < 0.8 else None
        number = self._one("b", "a", "CLAMP(" + self.number(2) + ", -8, 8, 0.5)")
        key = self._one("t", "k", "f", "s")
        keys = {"t": ["CA", "NY"], "k": [-3, 0, 7], "f": [True, False], "s": ["CA", "", "it's"]}[key]
        return self._one(
            lambda: cp.count(where),
            lambda: cp.count(where),
            lambda: cp.count(where, by=key, keys=keys),
            lambda: cp.count_distinct(where),
            lambda: cp.sum(number, where),
            lambda: cp.sum(number, where, by=[key, "t"], keys=[(one, "CA") for one in keys]),
            lambda: cp.mean(number, where),
            lambda: cp.variance(number, where),
            lambda: cp.histogram(key, where=where, keys=keys),
            lambda: cp.histogram(number, edges=[-4, 0, 1, 5], where=where),
            lambda: cp.histogram(self.text(), where=where, keys=["CA", "a"]),
            lambda: cp.median(number, where=where),
            lambda: cp.keys(self._one("s", "t", "k", "d"), where=where),
            lambda: cp.maximum("b", where=where),
            lambda: cp.select(
                n=cp.count(where), m=cp.mean(number), u=cp.count_distinct(self.condition(1)), v=cp.sum("g", where)
            ),
        )
