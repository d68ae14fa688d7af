"""Streams of records: stored as a table's columns are; readings and parts stay within what is stated, in two worlds."""

import datetime
import uuid
from decimal import Decimal
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.errors import CounterpointError, InvalidParameter, InvalidRequest
from counterpoint.privacy.messages import Ask, ToChild, gap
from counterpoint.privacy.relations import Steps, k_sparse
from counterpoint.privacy.secret import reveal
from counterpoint.queries.aggregates import count
from counterpoint.queries.aggregates import sum as summed
from counterpoint.schema.columns import boolean, category, number, text
from counterpoint.schema.times import date
from counterpoint.schema.units import each_row
from counterpoint.sources.streams.items import total
from counterpoint.sources.streams.records import Fields
from counterpoint.sources.streams.stream import Stream
from counterpoint.sources.table import Table

FIELDS = {
    "page": text(),
    "country": category(["CH", "DE", "AT"]),
    "only": category([7]),
    "member": boolean(),
    "clicks": number(-3, 7),
    "price": number(2, 10, step="0.5"),
    "day": date("2000-01-01", "2000-01-03"),
}
KEYS = {
    "page": ["home", "shop", "help", "nowhere"],
    "country": ["CH", "DE", "AT"],
    "only": [7],
    "member": [True, False],
    "clicks": list(range(-3, 8)),
    "price": [2, 2.5, Fraction(19, 2)],
    "day": ["2000-01-01", "2000-01-02", "2000-01-03", "1999-12-31"],
    "user": ["ann", "bob", "7", "nobody"],
}
READINGS = [None, "country", "only", "member", "clicks", "price", ("clicks", "member"), ("price",)]
numbers = st.integers(-12, 12) | st.floats() | st.sampled_from([None, "3", "x", Decimal("2.5"), np.int8(4)])
contents = {
    "page": st.sampled_from(["home", "shop", "help", None, "\0"]),
    "country": st.sampled_from(["CH", "DE", "AT", "FR", None]),
    "only": st.sampled_from([7, 8, None]),
    "member": st.booleans() | st.none(),
    "clicks": numbers,
    "price": numbers,
    "day": st.sampled_from(["2000-01-01", datetime.date(2000, 1, 2), "1990-01-01", "2010-01-01", "x", None]),
}
records = st.none() | st.fixed_dictionaries(contents) | st.fixed_dictionaries({}, optional=contents)
UNITS = ["ann", "bob", 7]


@st.composite
def neighbours(draw):
    """A declaration and two lists of records that are neighbours at its level, of its kind."""
    given = {"neighbours": draw(st.sampled_from(["replace", "add-or-remove"])), "fields": FIELDS}
    left = draw(st.lists(records, min_size=1, max_size=10))
    right, place = list(left), draw(st.integers(0, len(left) - 1))
    vanishes = given["neighbours"] == "add-or-remove" or draw(st.booleans())
    if draw(st.booleans()):
        right[place] = None if vanishes else draw(records)
        return given, left, right
    given |= {"fields": {**FIELDS, "user": text()}, "unit": "user", "per_unit": draw(st.integers(1, 3))}
    units = [draw(st.sampled_from(UNITS)) for _ in left]
    for index, unit in enumerate(units):
        left[index] = None if left[index] is None else {**left[index], "user": unit}
        right[index] = left[index]
        if unit == units[place] and left[index] is not None:
            right[index] = None if vanishes else {**(draw(records) or {}), "user": unit}
    return given, left, right


def filled(given, items):
    stream = Stream(**given)
    stream.extend(items)
    return stream


def raw(stream):
    return [reveal(update.private) for update in stream.items(0, stream.pin())]


@settings(max_examples=150)
@given(neighbours(), st.sampled_from(READINGS))
def test_neighbours_move_what_is_read_within_its_relation_and_that_within_the_streams(case, of):
    given, left, right = case
    one, other = filled(given, left), filled(given, right)
    assert one.of(of).relation.within(one.relation) and one.part("page", "home").relation == one.relation
    for cut in (lambda s: s, lambda s: s.part("page", "home"), lambda s: s.part("member", True).part("country", "CH")):
        here, there = cut(one).of(of), cut(other).of(of)
        pairs = list(zip(here.items(0, here.pin()), there.items(0, there.pin()), strict=True))
        assert len(pairs) == len(left) and here.relation.valid(pairs)


@settings(max_examples=120)
@given(neighbours(), st.sampled_from(READINGS))
def test_neighbours_differ_in_at_most_so_many_parts_as_reach_says(case, of):
    given, left, right = case
    one, other = filled(given, left), filled(given, right)
    for by in given["fields"]:
        pairs = [tuple(stream.part(by, key).of(of) for stream in (one, other)) for key in KEYS[by]]
        assert sum(raw(here) != raw(there) for here, there in pairs) <= one.reach(by)


@settings(max_examples=100)
@given(neighbours(), st.sampled_from(sorted(FIELDS)), st.sampled_from(READINGS))
def test_what_parts_are_asked_as_data_arrives_is_sparse(case, by, of):
    """The relation that a partition claims, checked message by message."""
    given, left, right = case
    one, other = filled(given, left), filled(given, right)
    asks, prepared = [], one.of(of).prepare(total())
    for pin in range(one.pin() + 1):
        for index, key in enumerate(KEYS[by]):
            secrets = [stream.part(by, key).of(of).resolve(pin, prepared) for stream in (one, other)]
            asks.append(tuple(Ask(ToChild(index), s, prepared.sensitivity, prepared.squared) for s in secrets))
    assert k_sparse(one.reach(by), one.of(of).relation).valid(asks)


@pytest.mark.parametrize(
    ("declared", "by", "left", "right", "reach"),
    [
        ({}, "page", [{"page": "a"}], [{"page": "b"}], 2),
        ({"neighbours": "add-or-remove"}, "page", [{"page": "a"}], [None], 1),
        ({}, "only", [{"only": 7}], [{"only": 8}], 1),
        ({}, "member", [{"member": True}], [{"member": False}], 2),
        ({"unit": "user", "per_unit": 2}, "page", list("abc"), list("xyz"), 4),
        ({"unit": "user", "per_unit": 2, "neighbours": "add-or-remove"}, "page", list("abc"), [None] * 3, 2),
        ({"unit": "user", "per_unit": 3}, "country", ["CH", "DE", "CH"], ["AT", "AT", "AT"], 3),
        ({"unit": "page", "per_unit": 3}, "page", list("aaa"), [None] * 3, 1),
    ],
)
def test_reach_is_attained(declared, by, left, right, reach):
    def record(value):
        whole = value if isinstance(value, dict | None) else {by: value}
        return whole if whole is None or "unit" not in declared or by == declared["unit"] else {**whole, "user": "ann"}

    one, other = (filled({"fields": FIELDS, **declared}, map(record, side)) for side in (left, right))
    keys = {key for item in (*left, *right) if item for key in (item.values() if isinstance(item, dict) else [item])}
    known = FIELDS[by].known_keys
    differing = [k for k in keys if known is None or k in known if raw(one.part(by, k)) != raw(other.part(by, k))]
    assert len(differing) == reach == one.reach(by)


@settings(max_examples=120)
@given(neighbours(), st.sampled_from(READINGS))
def test_totals_of_parts_move_within_their_sensitivity_at_every_moment(case, of):
    given, left, right = case
    one, other = (filled(given, items).part("country", "CH") for items in (left, right))
    prepared = one.prepare(total(of))
    assert prepared == other.prepare(total(of))
    for pin in (*range(one.pin() + 1), 0):
        asks = [Ask(None, s.resolve(pin, prepared), prepared.sensitivity, prepared.squared) for s in (one, other)]
        distance = gap(*asks)
        assert distance.l1 <= prepared.sensitivity and distance.squared <= prepared.squared
        values = raw(one.of(of))[:pin]
        width = prepared.width
        expected = sum(values) if width is None else tuple(sum(v[i] for v in values) for i in range(width))
        assert reveal(asks[0].private) == expected


@given(neighbours(), st.sampled_from(["text", 3, [1], {"nothing": 1}, {"clicks": [3]}, {"page": 1.5}, {"only": True}]))
def test_both_worlds_look_alike_and_raise_the_same_errors(case, stranger):
    given, left, right = case

    def seen(items):
        stream, errors = filled(given, items), []
        try:
            stream.append({"user": "ann", **stranger} if isinstance(stranger, dict) and "unit" in given else stranger)
        except CounterpointError as error:
            errors.append((type(error), str(error)))
        assert errors, "a stranger is refused"
        return errors, repr(stream), stream.describe(), repr(stream.part("page", "home"))

    assert seen(left) == seen(right)


def test_the_parts_of_a_stream_have_its_length_and_only_their_own_records():
    stream = filled(
        {"fields": FIELDS}, [{"page": "home", "clicks": 3}, {"page": "shop", "clicks": 5}, {"clicks": 7}, None]
    )
    home = stream.part("page", "home")
    assert home.pin() == stream.pin() == 4
    assert raw(home) == [1, 0, 0, 0] and raw(home.of("clicks")) == [3, 0, 0, 0]
    assert raw(stream) == [1, 1, 1, 0] and raw(stream.of("clicks")) == [3, 5, 7, 0]
    assert raw(stream.part("page", "never seen")) == [0] * 4
    assert raw(home.part("clicks", 3)) == [1, 0, 0, 0] and raw(home.part("clicks", 4)) == [0] * 4


def test_a_category_is_read_as_a_one_at_its_key_and_several_numbers_as_a_vector():
    stream = filled({"fields": FIELDS}, [{"country": "DE", "member": True}, {"country": "FR", "clicks": -2}])
    assert raw(stream.of("country")) == [(0, 1, 0), (0, 0, 0)] and stream.of("country").dimensions == 3
    assert raw(stream.of(["clicks", "member"])) == [(0, 1), (-2, 0)]
    assert raw(stream.of("price")) == [0, 0], "what is missing is 0, though the smallest price is 2"
    assert stream.of("price").relation == Steps(updates=1, bound=20), "0 to 20 half units"


def test_signed_streams_move_half_as_much_when_items_only_come_and_go():
    for declared, l1, squared in (
        ({"bound": 5, "signed": True}, 5, 25),
        ({"bound": 3, "dimensions": 4}, 12, 36),
        ({"bound": 1, "dimensions": 4, "l1": 2}, 1, 1),
        ({"bound": 9, "dimensions": 2, "signed": True, "l2_squared": 100}, 7, 25),
    ):
        assert Stream(**declared, neighbours="add-or-remove").relation == Steps(updates=1, bound=l1, squared=squared)


def test_a_record_says_itself_whose_it_is():
    stream = Stream(fields={"clicks": number(0, 9)}, unit="user", per_unit=2)
    stream.extend([{"user": "ann", "clicks": n} for n in (1, 2, 3)])
    stream.extend(
        [{"user": np.str_("ann"), "clicks": 4}, {"user": None, "clicks": 5}, {"user": np.int64(7), "clicks": 6}]
    )
    assert raw(stream.of("clicks")) == [1, 2, 0, 0, 0, 6]
    for bad, words in (
        ({"clicks": 1}, "'user'"),
        ({"user": b"ann", "clicks": 1}, "a text or a whole number"),
        ({"user": True}, "a text or a whole number"),
        (3, "'user'"),
    ):
        with pytest.raises(InvalidRequest, match=words):
            stream.append(bad)
    with pytest.raises(InvalidRequest, match="leave out units"):
        stream.append({"user": "ann"}, unit="bob")
    assert stream.pin() == 6


VALUES = [0, 1, -1, 2, 3, 7, 8, 2.5, 2.24, 2.25, 2.75, 9.74, 9.75, -0.0, 1e300, -1e300, 10.0, 6.249999999999999, None]


@pytest.mark.parametrize("step", [1, "0.5", "0.1", 2, "1/3"])
def test_numbers_are_stored_as_in_a_table(step):
    declared = number(-10, 10, step=step)
    whole = [v for v in VALUES if isinstance(v, int)] + [2**62, -(2**62)]
    texts = ["3", " +4 ", "2.5", "1e1", ".5", "x", "", "inf", "-Infinity", "1e400", "0x1", "1_0", "٣", "9" * 30]
    real = [v for v in VALUES if v is not None] + [float("nan"), float("inf"), float("-inf"), 0.05, 0.15, 0.25, 1 / 6]
    for values, kind in ((whole, "BIGINT"), (real, "DOUBLE"), (texts, "VARCHAR")):
        rows = pd.DataFrame(
            {"id": range(len(values)), "x": pd.Series(values, dtype=float if kind == "DOUBLE" else None)}
        )
        relation = duckdb.from_df(rows).project(f"id, CAST(x AS {kind}) AS x")
        table = Table(relation, unit=each_row, columns={"id": number(0, 100), "x": declared})
        stream = Stream(fields={"x": declared}).of("x")
        for index, value in enumerate(values):
            one = filled({"fields": {"x": declared}}, [{"x": float(value) if kind == "DOUBLE" else value}]).of("x")
            prepared = table.prepare(summed("x", where=f"id = {index}"))
            assert raw(one) == [reveal(table.resolve(table.pin(), prepared))], (value, kind)
        assert stream.prepare(total()).grid == prepared.grid


def test_dates_are_stored_as_in_a_table():
    """Days, times without a zone and texts, inside the bounds and far outside, and what is no date."""
    declared = date("2000-01-01", "2009-12-31")
    days = [datetime.date(*ymd) for ymd in [(2000, 1, 1), (2004, 2, 29), (1969, 12, 31), (1, 1, 1), (9999, 12, 31)]]
    times = [datetime.datetime(2005, 1, 1, 23, 59, 59), datetime.datetime(1969, 12, 31, 0, 0, 1), None]
    texts = ["2004-02-29", "2003-02-29", "0000-01-01", "1999-12-31", "10000-01-01", " 2005-01-01", "2005-01-01 12:00"]
    texts += ["2005-1-1", "20050101", "infinity", "today", "", "٢٠٠٥-٠١-٠١", "2005-W01-1"]
    for values, kind in ((days, pa.date32()), (times, pa.timestamp("us")), (texts, pa.string())):
        frame = pa.table({"id": range(len(values)), "d": pa.array(values, kind)})
        table = Table(frame, unit=each_row, columns={"id": number(0, 100), "d": declared})
        stream = filled({"fields": {"d": declared}}, [{"d": value} for value in values])
        for index, (stored,) in enumerate(stream._log.items):
            here = f"d = '{declared.spelled(stored)}'" if stored is not None else "d IS NULL"
            prepared = table.prepare(count(where=f"id = {index} AND {here}"))
            assert reveal(table.resolve(table.pin(), prepared)) == 1, (values[index], stored)
        assert any(stored is not None for (stored,) in stream._log.items)


def test_dates_come_as_numpy_and_pandas_have_them_and_not_as_anything_else():
    fields, day = Fields.of({"d": date("2000-01-01", "2009-12-31")}), 12784
    late = np.datetime64("2005-01-01T23:59:59.999999999")
    for value in (
        "2005-01-01",
        np.str_("2005-01-01"),
        np.datetime64("2005-01-01"),
        late,
        pd.Timestamp("2005-01-01 9:00"),
    ):
        assert fields.fit({"d": value}) == (day,), value
    assert fields.fit({"d": np.datetime64("1969-12-31T23:00", "ns")}) == fields.fit({"d": "2000-01-01"}) == (10957,)
    assert fields.fit({"d": np.datetime64("12005-01-01")}) == fields.fit({"d": "9999-12-31"}) == (14609,)
    for missing in (None, pd.NaT, np.datetime64("NaT"), np.datetime64("NaT", "ns"), float("nan"), "yesterday"):
        assert fields.fit({"d": missing}) == (None,)
    utc = datetime.timezone.utc  # noqa: UP017 - the zone is the point
    for bad in (12784, 1.5, True, b"2005-01-01", datetime.time(12), datetime.datetime(2005, 1, 1, tzinfo=utc)):
        with pytest.raises(InvalidRequest, match="a date from 2000-01-01 to 2009-12-31, and a value of type"):
            fields.fit({"d": bad})


@pytest.mark.parametrize("unit", ["D", "M", "s", "us", "ns"])
@pytest.mark.parametrize("kind", [np.datetime64, np.timedelta64])
def test_whether_a_time_is_refused_depends_on_its_type_and_never_on_its_value(kind, unit):
    """numpy makes a date of a time that Python has a date for, and a whole number of any other."""
    declared = {"n": number(0, 9), "t": text(), "k": category([1, 2]), "b": boolean()}
    values = [kind(count, unit) for count in (0, 1, 10**7, 10**12, 2 * 10**18, -(10**12))]

    def refused(deed, *given, **more):
        try:
            deed(*given, **more)
        except InvalidRequest:
            return True
        return False

    for name, column in declared.items():
        fit = Fields.of({name: column}).fit
        assert len({refused(fit, {name: value}) for value in values}) == 1, name
    user, vector = Stream(bound=9, unit="user", per_unit=1), Stream(bound=9, dimensions=1)
    is_day = (kind, unit) == (np.datetime64, "D")  # a day names a unit, or none if it is beyond the calendar
    for value in values:
        assert refused(Stream(bound=9).append, value)
        assert refused(user.append, 1, unit=value) is not is_day
        assert refused(vector.append, np.array([value]))


def test_a_numpy_day_is_written_as_a_table_writes_it():
    fields = Fields.of({"t": text()})
    assert fields.fit({"t": np.datetime64("2005-01-01")}) == ("2005-01-01",)
    assert fields.fit({"t": np.datetime64("12005-01-01")}) == fields.fit({"t": np.datetime64("NaT", "D")}) == (None,)


def test_a_date_is_followed_by_no_mechanism_but_cuts_a_stream():
    stream = Stream(fields={"d": date("2000-01-01", "2009-12-31")})
    stream.extend([{"d": "2005-01-01"}, {"d": "1900-01-01"}, {}])
    assert raw(stream.part("d", "2005-01-01")) == [1, 0, 0] and raw(stream.part("d", "2000-01-01")) == [0, 1, 0]
    assert stream.reach("d") == 2 and stream.relation == Steps(updates=1, bound=1)
    with pytest.raises(InvalidRequest, match="partition by this field"):
        stream.of("d")
    with pytest.raises(InvalidRequest, match="is not a date"):
        stream.part("d", 5)


def test_texts_categories_and_truth_values_are_stored_as_in_a_table():
    fields = Fields.of({"t": text(), "c": category(["1", "true", "x"]), "n": category([1, 2]), "b": boolean()})
    day, some = datetime.date(2024, 2, 3), uuid.UUID(int=5)
    cases = [
        ({"t": "ä"}, ("ä", None, None, None)),
        ({"t": 5, "c": 1, "n": "2", "b": "T"}, ("5", "1", 2, True)),
        ({"t": True, "c": True, "b": 0}, ("true", "true", None, False)),
        ({"t": day, "n": 3, "b": "maybe"}, ("2024-02-03", None, None, None)),
        ({"t": some, "c": "y"}, (str(some), None, None, None)),
        ({"t": "a\0b", "c": float("nan"), "n": pd.NA, "b": pd.NaT}, (None, None, None, None)),
        ({"t": "\ud800", "n": 10**50}, (None, None, None, None)),
        ({"t": 10**5000}, (None, None, None, None)),
        ({"t": np.str_("x"), "n": np.int16(1), "b": np.bool_(True)}, ("x", None, 1, True)),
    ]
    for record, stored in cases:
        assert fields.fit(record) == stored
    assert type(fields.fit({"t": np.str_("x")})[0]) is str
    for bad in ({"t": 1.5}, {"n": True}, {"b": 0.5}, {"t": b"x"}, {"t": datetime.datetime(2024, 1, 1)}):
        with pytest.raises(InvalidRequest, match="cannot be converted to it"):
            fields.fit(bad)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"fields": {}}, "fields"),
        ({"fields": ["page"]}, "fields"),
        ({"fields": {"page": "text"}}, "number, category, text, boolean, date or timestamp"),
        ({"fields": {3: text()}}, "number, category, text, boolean, date or timestamp"),
        ({"fields": FIELDS, "bound": 5}, "leave out bound"),
        ({"fields": FIELDS, "dimensions": 2}, "leave out bound, dimensions"),
        ({"fields": FIELDS, "unit": "user"}, "per_unit"),
        ({"neighbours": "both"}, "'add-or-remove' or 'replace'"),
        ({"neighbours": None}, "'add-or-remove' or 'replace'"),
    ],
)
def test_bad_declarations_of_records_are_refused(given, words):
    with pytest.raises(InvalidParameter, match=words):
        Stream(**given)


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        (lambda s: s.of("clics"), "'clicks'"),
        (lambda s: s.of("page"), "partition by this field"),
        (lambda s: s.of(["clicks", "page"]), "a mechanism reads numbers"),
        (lambda s: s.of(["clicks", "clicks"]), "different fields"),
        (lambda s: s.of([]), "one or more"),
        (lambda s: s.of(["clicks", "price"]), "different steps"),
        (lambda s: s.of(3), "a name or a list of names"),
        (lambda s: s.of("clicks").of("price"), "on the original stream"),
        (lambda s: s.prepare(total("page")), "a mechanism reads numbers"),
        (lambda s: s.part("pages", "home"), "'page'"),
        (lambda s: s.part("country", "FR"), "not a key of country"),
        (lambda s: s.part("page", 3), "not a value"),
        (lambda s: s.part("clicks", 10**400), "not a value"),
        (lambda s: s.part("clicks", Fraction(10**400, 3)), "not a value"),
        (lambda s: s.part("clicks", float("nan")), "not a value"),
        (lambda s: s.part("page", "home").append({"page": "home"}), "whole stream"),
        (lambda s: s.of("clicks").append({"clicks": 3}), "whole stream"),
        (lambda s: s.extend({"page": "home"}), "append takes one item"),
        (lambda s: s.extend(5), "append takes one item"),
        (lambda s: s.append([3]), "is a record"),
        (lambda s: s.append({"pagee": "home"}), "no field 'pagee'"),
        (lambda s: Stream(bound=1).of("clicks"), "fields="),
        (lambda s: Stream(bound=1).part("page", "home"), "fields="),
        (lambda s: Stream(bound=1).prepare(total("clicks")), "fields="),
    ],
)
def test_what_a_stream_of_records_does_not_have_is_refused_by_name(deed, words):
    stream = Stream(fields=FIELDS)
    with pytest.raises(InvalidRequest, match=words):
        deed(stream)
    assert stream.pin() == 0


def test_a_batch_arrives_whole_or_not_at_all():
    stream = Stream(fields={"clicks": number(0, 9)}, unit="user", per_unit=1)
    with pytest.raises(InvalidRequest):
        stream.extend([{"user": "ann", "clicks": 1}, {"user": "ann", "other": 2}])
    stream.append({"user": "ann", "clicks": 5})
    assert raw(stream.of("clicks")) == [5], "the refused batch has not used up her place"


def test_appending_builds_nothing_for_those_who_are_not_asked(monkeypatch):
    """A thousand idle readers: what they will receive is made when they read, once for each item that they have not."""
    made = []
    monkeypatch.setattr("counterpoint.sources.streams.stream.Update", lambda value: made.append(value) or value)
    stream = Stream(fields=FIELDS)
    readers = [stream.part("page", f"page {n}").of("clicks") for n in range(1000)]
    stream.extend([{"page": f"page {n % 50}", "clicks": n % 7} for n in range(500)])
    assert made == []
    readers[3].items(490, 500)
    assert len(made) == 10


def test_a_total_adds_up_only_what_is_new(monkeypatch):
    stream = Stream(bound=9)
    prepared, seen = stream.prepare(total()), []
    value = Stream._value
    monkeypatch.setattr(Stream, "_value", lambda self, read, item: seen.append(item) or value(self, read, item))
    stream.extend([1, 2, 3])
    assert reveal(stream.resolve(3, prepared)) == 6 and len(seen) == 3
    stream.append(4)
    assert reveal(stream.resolve(4, prepared)) == 10 and len(seen) == 4
    assert reveal(stream.resolve(2, prepared)) == 3, "an earlier moment, for a request that is finished late"
    assert reveal(stream.resolve(4, prepared)) == 10
