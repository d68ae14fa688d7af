"""Scalars of numpy stand for Python's own values wherever those are given: the same stored bytes, the same answers."""

from datetime import date, datetime
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import counterpoint as cp
from counterpoint.encoding import encode
from counterpoint.errors import CounterpointError
from counterpoint.numbers.exact import plain_scalar


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        (np.int64(-3), -3),
        (np.uint8(7), 7),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.bool_(True), True),
        (np.str_("Zürich"), "Zürich"),
        (np.float64(0.1), 0.1),
        (np.float32(0.1), 0.1),
        (np.float16(0.1), 0.1),
        (np.datetime64("2024-02-29"), date(2024, 2, 29)),
        (np.datetime64("2024-02"), date(2024, 2, 1)),
        (np.datetime64("2024-02-29T00:00", "ns"), date(2024, 2, 29)),
        (np.datetime64("2024-02-29T12:30", "ns"), datetime(2024, 2, 29, 12, 30)),
        (np.datetime64("2024-02-29T12:30:01.000001", "us"), datetime(2024, 2, 29, 12, 30, 1, 1)),
    ],
)
def test_a_scalar_is_the_value_it_shows_with_python_s_own_type(scalar, value):
    assert plain_scalar(scalar) == value and type(plain_scalar(scalar)) is type(value)
    assert plain_scalar(value) is value


@pytest.mark.parametrize(
    "other",
    [
        *(np.datetime64("NaT"), np.timedelta64(3, "s"), np.bytes_(b"a"), np.complex128(1)),
        *(np.datetime64("2024-01-01", "ns") + 1, np.datetime64("10000-01-01"), np.array([1]), [1], None),
    ],
)
def test_what_python_cannot_hold_stays_as_it_is(other):
    assert plain_scalar(other) is other


SAME = [
    (lambda: cp.count(by="s", keys=np.array(["CA", "NY"])), lambda: cp.count(by="s", keys=["CA", "NY"])),
    (lambda: cp.count(by="n", keys=np.arange(3)), lambda: cp.count(by="n", keys=[0, 1, 2])),
    (lambda: cp.count(by="b", keys=[np.True_, np.False_]), lambda: cp.count(by="b", keys=[True, False])),
    (
        lambda: cp.sum("n", by=["s", "b"], keys=[(np.str_("CA"), np.True_)]),
        lambda: cp.sum("n", by=["s", "b"], keys=[("CA", True)]),
    ),
    (
        lambda: cp.count(by="d", keys=np.array(["2024-02-29"], dtype="datetime64[D]")),
        lambda: cp.count(by="d", keys=["2024-02-29"]),
    ),
    (lambda: cp.count(by="d", keys=[date(2024, 2, 29)]), lambda: cp.count(by="d", keys=["2024-02-29"])),
    (lambda: cp.histogram("n", edges=np.array([0, 0.1, 1])), lambda: cp.histogram("n", edges=[0, 0.1, 1])),
    (
        lambda: cp.histogram("n", edges=np.array([0, 0.1, 1], dtype=np.float32)),
        lambda: cp.histogram("n", edges=[0, "0.1", 1]),
    ),
    (
        lambda: cp.histogram("d", edges=np.array(["2024-01-01", "2024-02-01"], dtype="datetime64[ns]")),
        lambda: cp.histogram("d", edges=["2024-01-01", "2024-02-01"]),
    ),
    (lambda: cp.ranks("n", np.arange(3)), lambda: cp.ranks("n", [0, 1, 2])),
    (lambda: cp.quantile("n", np.float64(0.5), np.arange(3)), lambda: cp.quantile("n", 0.5, [0, 1, 2])),
    (lambda: cp.number(np.int64(0), np.float32(0.3), np.float64(0.1)), lambda: cp.number(0, "0.3", "0.1")),
    (lambda: cp.category(np.array(["CA", "NY"])), lambda: cp.category(["CA", "NY"])),
    (lambda: cp.category(np.arange(1, 13)), lambda: cp.category(range(1, 13))),
    (
        lambda: cp.date(np.datetime64("2024-01-01"), np.datetime64("2025-01-01", "ns")),
        lambda: cp.date("2024-01-01", "2025-01-01"),
    ),
]


@pytest.mark.parametrize(("of_numpy", "of_python"), SAME)
def test_what_is_given_as_numpy_s_scalars_is_stored_as_python_s_values(of_numpy, of_python):
    assert encode(of_numpy()) == encode(of_python())


def test_parts_are_named_by_either():
    rows = {"who": [1, 2], "s": ["CA", "NY"], "n": [1, 2], "b": [True, False], "x": [0.5, 1.0], "d": ["2024-02-29"] * 2}
    columns = {"b": cp.boolean(), "x": cp.number(0, 1, step="0.5"), "d": cp.date("2024-01-01", "2025-01-01")}
    table = cp.Table(pa.table(rows), unit="who", rows_per_unit=1, columns=columns)
    for by, scalar, value in [
        ("s", np.str_("CA"), "CA"),
        ("n", np.int32(2), 2),
        ("b", np.True_, True),
        ("x", np.float32(0.5), Fraction(1, 2)),
        ("d", np.datetime64("2024-02-29"), "2024-02-29"),
    ]:
        assert table.key(by, scalar) == table.key(by, value)
        assert type(table.key(by, scalar)) is type(table.key(by, value))
    parts = cp.Session(table, within=cp.PureDP(1)).partition("n", within=cp.PureDP(1))
    parts[np.int64(1)].launch(cp.Laplace(epsilon=1))
    assert parts[1].loss == cp.PureDP(1)


@pytest.mark.parametrize("key", [np.float64("nan"), np.datetime64("NaT"), np.timedelta64(3), np.complex128(1)])
def test_a_scalar_that_is_no_key_is_refused(key):
    with pytest.raises(CounterpointError):
        cp.count(by="n", keys=[key])
