"""The names of units and keys: one plain form for the cap and the engine, whatever was sent, and no error by value."""

import enum

import pytest
from tests.ledger.places import Place

import counterpoint as cp
from counterpoint.privacy.secret import reveal


class Person(str, enum.Enum):  # noqa: UP042 - StrEnum is written as its value, and this is not
    ANN = "ann"


class Number(enum.IntEnum):
    ONE = 1


def visits():
    return cp.Stream(fields={"n": cp.number(0, 9)}, unit="who", per_unit=5)


def members():
    return cp.LiveTable("who", 5, key="row", columns={"n": cp.number(0, 9)}, updates_per_unit=9)


SENT = {
    visits: lambda data, units: data.extend([{"who": unit, "n": 1} for unit in units]),
    members: lambda data, units: data.put([{"who": unit, "row": row, "n": 1} for row, unit in enumerate(units)]),
}


def answered(data, request):
    return reveal(data.resolve(data.pin(), data.prepare(request)))


@pytest.mark.parametrize("make", SENT)
@pytest.mark.parametrize("units", [(Person.ANN, "ann"), (Number.ONE, 1)])
def test_equal_names_are_one_unit_to_the_engine_as_they_are_to_the_cap(make, units):
    data = make()
    SENT[make](data, units)
    assert data.prepare(cp.count_distinct()).sensitivity == 1
    assert answered(data, cp.count_distinct()) == 1


@pytest.mark.parametrize("make", SENT)
@pytest.mark.parametrize("digits", [5000, 1000])
def test_a_number_that_is_too_large_to_be_written_names_no_unit(make, digits, tmp_path):
    data, unit = make(), -(10**digits)
    with Place("sqlite", tmp_path).session(cp.PureDP(1), source=data):
        SENT[make](data, [unit, "ann"])
        assert (data.pin(), answered(data, cp.count()), answered(data, cp.count_distinct())) == (2, 1, 1)


def test_a_number_that_is_too_large_names_no_row(tmp_path):
    data = members()
    with Place("sqlite", tmp_path).session(cp.PureDP(1), source=data):
        data.put({"who": "ann", "row": 10**5000, "n": 1})
        data.remove(who="ann", row=10**5000)
        assert (data.pin(), answered(data, cp.count())) == (2, 0)


def test_a_number_of_a_unit_may_be_missing_as_a_record_may():
    spent = cp.Stream(bound=9, unit="who", per_unit=2)
    spent.extend([5, 6], units=["ann", None])
    assert (spent.pin(), answered(spent, cp.total())) == (2, 5)
