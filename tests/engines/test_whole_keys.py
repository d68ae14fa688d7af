"""1.0 is key 1: what other tools wrote as a float or a decimal names the key that it is, on every path."""

from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest
from tests.engines.engines import ENGINES, bound

import counterpoint as cp
from counterpoint.errors import InvalidRequest
from counterpoint.schema.declaration import Named
from counterpoint.sources.streams.records import stored

COLUMNS = {"keyed": cp.category([1, 2, -3]), "free": cp.whole()}
DOUBLES = [1.0, 2.0, -3.0, 1.5, 4.0, float("nan"), float("inf"), -float("inf"), None, 2.0**53, 1e300, -0.0]
KEYED = [1, 2, -3, *[None] * 9]
FREE = [1, 2, -3, None, 4, *[None] * 6, 0]
TEXTS = ["1.0", " 2.000 ", "-3.", "1.5", "4.0", "nan", "inf", "1e0", None, "9" * 30 + ".0", "1.0x", "+0.0"]


def kept(engine, values, kind):
    rows = {"n": pa.array(range(len(values)), pa.int64()), **{name: pa.array(values, kind) for name in COLUMNS}}
    table = bound(engine, pa.table(rows), columns={"n": cp.whole(), **COLUMNS})
    return [list(column) for column in zip(*(row[1:] for row in sorted(table.all_rows("c0, c1, c2"))), strict=True)]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_float_without_a_fraction_is_the_whole_number_that_it_is(engine):
    assert kept(engine, DOUBLES, pa.float64()) == [KEYED, FREE]
    singles = [None if value is None or abs(value) > 1e30 else value for value in DOUBLES]
    assert kept(engine, singles, pa.float32()) == [KEYED, FREE]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_text_or_a_decimal_without_a_fraction_is_the_whole_number_that_it_is(engine):
    assert kept(engine, TEXTS, pa.string()) == [KEYED, FREE]
    decimals = [None if value is None else Decimal(value) for value in ("1.00", "2.00", "-3.00", "1.50", "4.00", None)]
    assert kept(engine, decimals, pa.decimal128(10, 2)) == [KEYED[:6], FREE[:6]]


def test_a_record_is_read_as_a_row_of_a_table_is():
    keyed = Named("keyed", COLUMNS["keyed"])
    for given, key in [*zip(DOUBLES, KEYED, strict=True), *zip(TEXTS, KEYED, strict=True)]:
        assert stored(keyed, given) == key, given
    for exact in (Decimal("1.00"), Fraction(2, 2)):
        assert stored(keyed, exact) == 1
    for odd in (Decimal("1.5"), Decimal("Infinity"), Decimal("1e999999"), Fraction(1, 2), 10**40):
        assert stored(keyed, odd) is None
    with pytest.raises(InvalidRequest, match="cannot be converted"):
        stored(keyed, True)


def test_the_file_that_answered_0_in_every_group_is_counted(tmp_path):
    file = tmp_path / "rates.csv"
    file.write_text("person,rate\n" + "".join(f"{number},{1 + number % 5}.0\n" for number in range(50)))
    people = cp.Table(file, unit="person", rows_per_unit=1, columns={"rate": cp.category([1, 2, 3, 4, 5])})
    answer = cp.Session(people, within=cp.PureDP(10**6)).ask(cp.count(by="rate"), epsilon=10**5)
    assert dict(answer) == dict.fromkeys(range(1, 6), 10)
