"""Records that arrive together are stored as each of them would be alone, or refused with the same error."""

import datetime
from collections import OrderedDict
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import counterpoint as cp
from counterpoint.errors import InvalidRequest
from counterpoint.schema.declaration import Named
from counterpoint.sources.streams.records import Fields, RecordReader, reader, stored

COLUMNS = [
    cp.number(-3, 7),
    cp.number(2, 10, step="0.5"),
    cp.number(0, "0.3", step="0.1"),
    cp.number(-6, 9, step=3),
    cp.number(-(2**62), 2**62),
    cp.number("-1e30", "1e30", step="1e15"),
    cp.category(["a", "b", "1", "true"]),
    cp.category([0, 1, 7]),
    cp.text(),
    cp.boolean(),
    cp.date("2000-01-01", "2000-01-03"),
]
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-12, 12),
    st.integers(-(2**200), 2**200),
    st.floats(),
    st.floats(-10, 12, width=16),
    st.sampled_from([0.1, 0.15, 0.3, 0.25, 2.0, 10.0, 9.75, -0.0, 4.6e18, 2.0**62, 1e30]),
    st.text(max_size=4),
    st.sampled_from(["a", "1", "true", "\0", "\ud800", "7", "2.5", " 3", "inf", "nan", "2000-01-02", "2000-02-30"]),
    st.sampled_from([Decimal("2.5"), Decimal("NaN"), Fraction(7, 2), np.int8(4), np.float32(2.5), np.bool_(True)]),
    st.sampled_from([np.datetime64("2000-01-02"), np.datetime64("NaT"), datetime.date(2000, 1, 2), b"a", 1j, [1]]),
)


def outcome(work):
    try:
        return work()
    except InvalidRequest as error:
        return str(error)


@settings(max_examples=600, deadline=None)
@given(st.sampled_from(COLUMNS), values)
def test_the_fast_reader_of_a_field_agrees_with_the_rules_on_every_value(column, value):
    named = Named("it", column)
    fast, slow = outcome(lambda: reader(named)(value)), outcome(lambda: stored(named, value))
    assert (type(fast), fast) == (type(slow), slow)


FIELDS = Fields.of({"n": cp.number(-3, 7), "t": cp.text(), "k": cp.category(["a", "b"]), "day": COLUMNS[-1]})
dicts = st.dictionaries(st.sampled_from(["n", "t", "k", "day", "who"]), values, max_size=5)
records = st.one_of(
    dicts,
    dicts,
    st.none(),
    dicts.map(OrderedDict),
    dicts.map(MappingProxyType),
    st.sampled_from([{"other": 1}, {1: 2}, 3, "text", [("n", 1)]]),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(records, max_size=6), st.sampled_from([None, "who"]))
def test_many_records_are_read_as_one_by_one_and_the_first_wrong_one_is_refused(given_, unit):
    owners = [f"u{place}" for place in range(len(given_))]
    many = outcome(lambda: RecordReader(FIELDS, unit).read(given_, owners))
    assert many == outcome(lambda: [FIELDS.fit(*one) for one in zip(given_, [unit] * len(owners), owners, strict=True)])


def test_nothing_is_appended_where_one_record_is_wrong():
    stream = cp.Stream(fields={"n": cp.number(0, 9)})
    with pytest.raises(InvalidRequest, match="no field 'm'"):
        stream.extend([{"n": 1}, {"m": 1}, {"n": b"bytes"}])
    with pytest.raises(InvalidRequest, match="type bytes"):
        stream.extend([{"n": 1}, {"n": b"bytes"}, {"m": 1}])
    assert stream.pin() == 0
