"""Expressions with their meanings, and rows for them: what the tests of expressions draw from.

A meaning is computed from the stored values as exact fractions, by definition and without the package: None is missing.
"""

from datetime import date as day
from datetime import timedelta
from fractions import Fraction
from math import floor

import pyarrow as pa
from hypothesis import strategies as st

from counterpoint.schema.columns import boolean, category, number, text
from counterpoint.schema.declaration import Declaration, Named
from counterpoint.schema.times import date

COLUMNS = {
    "a": number(-4, 4, step="1/2"),
    "b": number(0, 9),
    "c": number(-(2**31), 2**31),
    "d": date("1990-01-01", "2030-12-31"),
    "e": date("0001-01-01", "9999-12-31"),
    "f": boolean(),
    "s": text(),
    "t": category(["CA", "NY"]),
    "k": category([-3, 0, 7]),
}
SCHEMA = pa.schema(
    [
        ("who", pa.int64()),
        ("a", pa.float64()),
        ("b", pa.int64()),
        ("c", pa.int64()),
        ("d", pa.date32()),
        ("e", pa.date32()),
        ("f", pa.bool_()),
        ("s", pa.string()),
        ("t", pa.string()),
        ("k", pa.int64()),
        ("w", pa.int64()),
    ]
)
EPOCH = day(1970, 1, 1)
LEAP = [day(2000, 2, 29), day(1999, 12, 31), day(2024, 2, 29), day(1990, 1, 1), day(2030, 12, 31), day(2000, 3, 1)]
FAR = [
    day(1970, 1, 1),
    day(1, 1, 1),
    day(9999, 12, 31),
    day(1600, 2, 29),
    day(1900, 3, 1),
    day(4, 2, 29),
    day(1582, 10, 10),
]
rows = st.fixed_dictionaries(
    {
        "a": st.sampled_from([None, -4.0, -0.5, 0.0, 0.5, 2.5, 4.0]),
        "b": st.sampled_from([None, 0, 1, 5, 9]),
        "c": st.sampled_from([None, -(2**31), 2**31, 0, -1, 1, 17]),
        "d": st.sampled_from([None, *LEAP]) | st.dates(day(1990, 1, 1), day(2030, 12, 31)),
        "e": st.sampled_from([None, *LEAP, *FAR]) | st.dates(),
        "f": st.sampled_from([None, True, False]),
        "s": st.sampled_from([None, "CA", "NY", "", "it's"]),
        "t": st.sampled_from([None, "CA", "NY"]),
        "k": st.sampled_from([None, -3, 0, 7]),
        "w": st.sampled_from([None, -(2**63), 2**63 - 1, 0, 5]),
    }
)
EDGES = [
    {
        "a": [None, -4.0, -0.5, 0.0, 0.5, 4.0, 2.5][i % 7],
        "b": [None, 0, 1, 5, 9][i % 5],
        "c": [None, -(2**31), 2**31, 0, -1, 17, 1][i // 2 % 7],
        "d": [None, *LEAP][i // 3 % 7],
        "e": [None, *LEAP, *FAR][i % 14],
        "f": [None, True, False][i // 2 % 3],
        "s": [None, "CA", "NY", "", "it's"][i // 3 % 5],
        "t": [None, "CA", "NY"][i % 3],
        "k": [None, -3, 0, 7][i // 5 % 4],
        "w": [None, -(2**63), 2**63 - 1, 0, 5][i // 4 % 5],
    }
    for i in range(140)
]


def declared(rows_per_unit=1, neighbours="add-or-remove"):
    """The declaration that a table of these columns has."""
    from counterpoint.schema.columns import Whole

    names = [Named("who", Whole(), False), *(Named(n, COLUMNS[n]) for n in COLUMNS), Named("w", Whole(), False)]
    return Declaration("who", rows_per_unit, neighbours, tuple(names))


def frame(listed):
    """Rows as an Arrow table; each is a unit, unless it names one."""
    return pa.Table.from_pylist([{"who": i, **row} for i, row in enumerate(listed)], schema=SCHEMA)


def as_stored(row):
    """A row in stored form: integers, texts and truth values."""
    days = {name: None if row[name] is None else (row[name] - EPOCH).days for name in ("d", "e")}
    half = None if row["a"] is None else int(2 * row["a"])
    given = {**row, **days, "a": half}
    return (0, *(given[name] for name in COLUMNS), row["w"])


def _both(operation):
    return lambda x, y: lambda row: None if x(row) is None or y(row) is None else operation(x(row), y(row))


def negated(holds):
    """NOT by SQL's three truth values; None is UNKNOWN."""
    return lambda row: None if holds(row) is None else not holds(row)


def both(one, other):
    """AND: FALSE if one side is, else UNKNOWN if one side is."""
    return lambda row: False if False in (one(row), other(row)) else None if None in (one(row), other(row)) else True


def either(one, other):
    """OR: TRUE if one side is, else UNKNOWN if one side is."""
    return lambda row: True if True in (one(row), other(row)) else None if None in (one(row), other(row)) else False


def _known(*names):
    """A test of some columns, UNKNOWN where one of them is missing."""
    return lambda test: lambda row: None if any(row[n] is None for n in names) else test(*(row[n] for n in names))


def _exactly(name):
    return lambda row: None if row[name] is None else Fraction(row[name])


def _case(holds, then, otherwise):
    return lambda row: then(row) if holds(row) else otherwise(row)


def nearest(value, low, high, step):
    """The nearest multiple of the step between the bounds; a half goes up."""
    return min(max(floor(value / step + Fraction(1, 2)) * step, Fraction(low)), Fraction(high))


def _clamp(x, low, high, step):
    return lambda row: None if x(row) is None else nearest(x(row), low, high, Fraction(step))


def _part(name, part):
    return lambda row: None if row[name] is None else Fraction(part(row[name]))


_plus, _minus, _times = _both(lambda x, y: x + y), _both(lambda x, y: x - y), _both(lambda x, y: x * y)
_over = _both(lambda x, y: None if y == 0 else x / y)

leaves = st.sampled_from(
    [
        *((name, _exactly(name)) for name in "abckw"),
        ("3", lambda row: Fraction(3)),
        ("0.25", lambda row: Fraction(1, 4)),
        ("-7", lambda row: Fraction(-7)),
        ("YEAR(d)", _part("d", lambda it: it.year)),
        ("MONTH(e)", _part("e", lambda it: it.month)),
        ("DAY(d + 1)", _part("d", lambda it: (it + timedelta(days=1)).day)),
        ("QUARTER(d)", _part("d", lambda it: (it.month + 2) // 3)),
        ("WEEKDAY(e)", _part("e", lambda it: it.isoweekday())),
        ("(d - e)", lambda row: None if None in (row["d"], row["e"]) else Fraction((row["d"] - row["e"]).days)),
        ("(d - '2000-02-29')", _part("d", lambda it: (it - day(2000, 2, 29)).days)),
    ]
)


def _wider(inner):
    return st.one_of(
        st.tuples(inner, inner).map(lambda t: (f"({t[0][0]} + {t[1][0]})", _plus(t[0][1], t[1][1]))),
        st.tuples(inner, inner).map(lambda t: (f"({t[0][0]} - {t[1][0]})", _minus(t[0][1], t[1][1]))),
        st.tuples(inner, inner).map(lambda t: (f"({t[0][0]} * {t[1][0]})", _times(t[0][1], t[1][1]))),
        st.tuples(inner, inner).map(lambda t: (f"({t[0][0]} / {t[1][0]})", _over(t[0][1], t[1][1]))),
        inner.map(lambda t: (f"ABS({t[0]})", lambda row: None if t[1](row) is None else abs(t[1](row)))),
        inner.map(lambda t: (f"-({t[0]})", lambda row: None if t[1](row) is None else -t[1](row))),
        inner.map(lambda t: (f"CLAMP({t[0]}, -2, 5, 0.5)", _clamp(t[1], -2, 5, Fraction(1, 2)))),
        st.tuples(inner, inner).map(
            lambda t: (
                f"COALESCE({t[0][0]}, {t[1][0]})",
                lambda row: t[0][1](row) if t[0][1](row) is not None else t[1][1](row),
            )
        ),
        st.tuples(conditions(inner), inner, inner).map(
            lambda t: (f"CASE WHEN {t[0][0]} THEN {t[1][0]} ELSE {t[2][0]} END", _case(t[0][1], t[1][1], t[2][1]))
        ),
        st.tuples(conditions(inner), inner).map(
            lambda t: (f"CASE WHEN {t[0][0]} THEN {t[1][0]} END", _case(t[0][1], t[1][1], lambda row: None))
        ),
    )


SIGNS = {
    "=": lambda x, y: x == y,
    "<>": lambda x, y: x != y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
}


def _compare(t):
    (left, x), sign, (right, y) = t
    holds = SIGNS[sign]
    return f"{left} {sign} {right}", _both(holds)(x, y)


def _between(t):
    (middle, x), (low, y), (high, z) = t
    return f"{middle} BETWEEN {low} AND {high}", both(_both(SIGNS[">="])(x, y), _both(SIGNS["<="])(x, z))


def _listed(x):
    return lambda row: None if x(row) is None else x(row) in (0, 3, Fraction(-1, 2), 17)


def _letter(test):
    """A test of CASE WHEN f THEN 'a' WHEN b > 3 THEN 'b' END."""

    def holds(row):
        letter = "a" if row["f"] else "b" if row["b"] is not None and row["b"] > 3 else None
        return None if letter is None else test(letter)

    return holds


def _first_of_two(row):
    """CASE WHEN b > 3 THEN f ELSE b = 1 END."""
    if row["b"] is not None and row["b"] > 3:
        return row["f"]
    return None if row["b"] is None else row["b"] == 1


def conditions(inner):
    """Conditions over numbers, and a few over the other columns."""
    atoms = st.one_of(
        st.tuples(inner, st.sampled_from(list(SIGNS)), inner).map(_compare),
        st.tuples(inner, inner, inner).map(_between),
        inner.map(lambda t: (f"{t[0]} IS NULL", lambda row: t[1](row) is None)),
        inner.map(lambda t: (f"{t[0]} IN (0, 3, -0.5, 17)", _listed(t[1]))),
        st.sampled_from(
            [
                ("f", _known("f")(bool)),
                ("f IN (FALSE)", _known("f")(lambda f: not f)),
                ("s = t", _known("s", "t")(lambda s, t: s == t)),
                ("s <> t", _known("s", "t")(lambda s, t: s != t)),
                ("s LIKE '%Y'", _known("s")(lambda s: s.endswith("Y"))),
                ("d <= e", _known("d", "e")(lambda d, e: d <= e)),
                ("d + 366 > e", _known("d", "e")(lambda d, e: d.toordinal() + 366 > e.toordinal())),
                ("'2000-02-29' = d", _known("d")(lambda d: d == day(2000, 2, 29))),
                ("b > 9000000000000000000", _known("b")(lambda b: False)),
                ("b IN (0.5)", _known("b")(lambda b: False)),
                ("b < 9000000000000000000", _known("b")(lambda b: True)),
                ("(b < 5) = f", _known("b", "f")(lambda b, f: (b < 5) == f)),
                ("(b < 5) IS NULL", lambda row: row["b"] is None),
                ("CASE WHEN f THEN 'a' WHEN b > 3 THEN 'b' END IN ('a', 'c')", _letter(lambda it: it == "a")),
                ("CASE WHEN f THEN 'a' WHEN b > 3 THEN 'b' END LIKE 'b%'", _letter(lambda it: it == "b")),
                ("CASE WHEN b > 3 THEN f ELSE b = 1 END", _first_of_two),
            ]
        ),
    )
    return st.one_of(
        atoms,
        atoms.map(lambda t: (f"NOT ({t[0]})", negated(t[1]))),
        st.tuples(atoms, atoms).map(lambda t: (f"({t[0][0]} OR {t[1][0]})", either(t[0][1], t[1][1]))),
        st.tuples(atoms, atoms).map(lambda t: (f"({t[0][0]} AND {t[1][0]})", both(t[0][1], t[1][1]))),
        st.tuples(atoms, atoms).map(
            lambda t: (f"NOT ({t[0][0]} AND NOT {t[1][0]})", negated(both(t[0][1], negated(t[1][1]))))
        ),
    )


numbers = st.recursive(leaves, _wider, max_leaves=6)
"""Numbers of a row: the text, and its meaning."""
wheres = conditions(numbers)
