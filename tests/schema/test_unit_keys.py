"""One unit, one key: whatever spells it, wherever it comes in, it is the same unit, none, or refused by its type."""

import datetime
from contextlib import closing
from decimal import Decimal
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines import engines

import counterpoint as cp
from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.privacy.samples import Sample, SampleKey
from counterpoint.privacy.secret import reveal
from counterpoint.schema.unit_keys import UNIT_TYPES, unit_key
from counterpoint.sources.streams.items import total

ID = UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")
DAY = datetime.date(2024, 2, 29)
WIDEST = 10**38 - 1
TEXTS = ["17", "017", " 17", "17 ", "+17", "-0", "0", "17.0", "1e1", "\uff11\uff17", "", " ", "ann", "Ann", "e\u0301"]
TEXTS += ["\u00e9", str(ID), str(ID).upper(), "2024-02-29", "a\nb", "nan", "9" * 38, "9" * 39, "-" + "9" * 38, "true"]
VALUES = {
    pa.string(): TEXTS,
    pa.int32(): [17, 0, -17, 2**31 - 1],
    pa.int64(): [17, 0, -17, 2**63 - 1, -(2**63)],
    pa.uint64(): [17, 0, 2**63, 2**64 - 1],
    pa.decimal128(38, 0): [Decimal(17), Decimal(WIDEST), Decimal(-WIDEST)],
    pa.decimal128(10, 2): [Decimal("17.00"), Decimal("17.50"), Decimal("-0.00"), Decimal("-17.00")],
    pa.decimal128(38, 18): [Decimal("17"), Decimal("0.000000000000000001"), Decimal("17.000000000000000001")],
    pa.float64(): [17.0, -0.0, 17.5, float("nan"), float("inf"), 2.0**53, 2.0**53 - 1, 1e300, -5e-324],
    pa.float32(): [np.float32(value) for value in (17, 17.5, -0.0, 2**24 - 1, 2**24, -(2**24), 1e30, "nan", "inf")],
    pa.date32(): [DAY, datetime.date(1, 1, 1), datetime.date(9999, 12, 31)],
}
"""Values by the types of columns that hold them."""
ONLY_EMBEDDED = (pa.uint64(),)


def fits(kind, of):
    """Whether a column of this type may name units of that one."""
    return not (pa.types.is_floating(kind) and of == "text") and not (kind == pa.date32() and of == "whole")


def keys(table):
    """The keys of the units of a table, in order."""
    with closing(table):
        return sorted(str(row[0]) for row in table.all_rows("u"))


def expected(values, of):
    return sorted(key for key in (unit_key(value, of) for value in values) if key is not None)


@pytest.mark.parametrize("of", UNIT_TYPES)
@pytest.mark.parametrize("kind", VALUES, ids=str)
@pytest.mark.parametrize("engine", ["duckdb", "postgres", "spark"])
def test_every_engine_computes_the_keys_that_python_computes(engine, kind, of):
    frame, values = pa.table({"who": pa.array(VALUES[kind], kind)}), VALUES[kind]
    if engine != "duckdb" and kind in ONLY_EMBEDDED:
        pytest.skip("no such type")
    if not fits(kind, of):
        with pytest.raises(InvalidParameter, match="cannot name the unit"):
            engines.bound(engine, frame, "who", 9, unit_type=of)
        return
    assert keys(engines.bound(engine, frame, "who", 9, unit_type=of)) == expected(values, of)


@pytest.mark.parametrize("of", UNIT_TYPES)
def test_types_that_one_engine_alone_has_give_the_same_keys(of):
    columns = {
        "i": ("numeric", ["17.00", "17.5", "NaN", "Infinity", "1e60", "-0.0"], [17, None, None, None, None, 0]),
        "c": ("char(6)", ["17", "ann"], ["17", "ann"]),
        "s": ("smallint", ["17", "-1"], [17, -1]),
        "r": (
            "real",
            ["17", "17.5", "NaN", "16777215", "16777216"],
            [17, None, None, 2**24 - 1, None] if of == "whole" else None,
        ),
        "u": ("uuid", [str(ID), str(ID).upper()], None if of == "whole" else [ID, ID]),
    }
    for kind, values, meant in columns.values():
        name = f"keys_{next(engines._numbers)}"
        written = ", ".join(f"('{value}')" for value in values)
        engines.execute(f"CREATE TABLE {name} (who {kind})", f"INSERT INTO {name} VALUES {written}")
        if meant is None:
            with pytest.raises(InvalidParameter, match="cannot name the unit"):
                cp.Table(engines.url(), "who", 9, relation=name, unit_type=of)
        else:
            found = keys(cp.Table(engines.url(), "who", 9, relation=name, unit_type=of))
            assert found == expected(meant, of), kind


@settings(max_examples=25)
@given(
    st.lists(st.sampled_from(TEXTS) | st.text(max_size=40) | st.from_regex(r" *[+-]?[0-9]{1,40} *", fullmatch=True)),
    st.sampled_from(UNIT_TYPES),
)
def test_any_text_has_the_key_in_the_embedded_engine_that_it_has_in_python(texts, of):
    frame = pa.table({"who": pa.array([None, *texts], pa.string())})
    assert keys(cp.Table(frame, "who", 99, unit_type=of)) == expected(texts, of)


SEVENTEEN = [17, np.uint64(17), np.int8(17), np.float64(17), 17.0, Decimal(17), Decimal("17.00"), np.str_("17"), "17"]
SPELLED = {"whole": [*SEVENTEEN, "017", " 17", "+17", "17 "], "text": SEVENTEEN}


def stream(of):
    return cp.Stream(fields={"x": cp.number(0, 1)}, unit="who", per_unit=1, unit_type=of)


def live(of):
    return cp.LiveTable("who", 1, key="k", columns={"x": cp.number(0, 1)}, unit_type=of)


def arrow(value, name):
    """A reader with this value, and a row behind its name; None if Arrow has no type for it."""
    given = pa.array([value]) if not isinstance(value, np.generic) else pa.array(np.array([value]))
    return pa.table({"who": given, "x": [1], "k": [name]}).to_reader()


ENTRIES = {
    "append": lambda data, value, name: data.append({"who": value, "x": 1}),
    "items": lambda data, value, name: data.feed([{"who": value, "x": 1}], name=name),
    "arrow": lambda data, value, name: data.feed(arrow(value, name), name=name),
}
PUTS = {
    "put": lambda data, value, name: data.put({"who": value, "x": 1, "k": name}),
    "items": lambda data, value, name: data.feed([{"who": value, "x": 1, "k": name}], name=name),
    "arrow": ENTRIES["arrow"],
}


@pytest.mark.parametrize("of", [None, "text", "whole"])
@pytest.mark.parametrize(("make", "entries"), [(stream, ENTRIES), (live, PUTS)], ids=["stream", "live"])
def test_every_spelling_through_every_entry_is_one_unit(make, entries, of):
    data, came = make(of), 0
    for number, value in enumerate(SPELLED[of or "text"]):
        for entry, send in entries.items():
            try:
                send(data, value, f"{entry} {number}")
                came += 1
            except InvalidParameter as refusal:  # a column of floats names texts no more than a table's does
                assert "DOUBLE cannot name the unit" in str(refusal) and of != "whole"
    assert data.pin() == came
    for request in (cp.count(), cp.count_distinct()):
        assert data.prepare(request).sensitivity == 1
        assert reveal(data.resolve(data.pin(), data.prepare(request))) == 1


@pytest.mark.parametrize("of", UNIT_TYPES)
@pytest.mark.parametrize("make", [stream, live])
def test_every_type_of_postgres_names_one_unit_in_a_feed(make, of):
    data, kinds = make(of), ["smallint", "bigint", "numeric", "numeric(9, 2)", "char(5)", "text", "varchar(9)"]
    for kind in kinds:
        name = f"fed_{next(engines._numbers)}"
        create = f"CREATE TABLE {name} (id serial PRIMARY KEY, who {kind}, k {kind}, x int)"
        engines.execute(create, f"INSERT INTO {name} (who, k, x) VALUES ('17', '17', 1), (NULL, '17', 1)")
        assert data.feed(engines.url(), relation=name, key="id") == 2
    data.append({"who": 17, "x": 1}) if make is stream else data.put({"who": 17, "k": 17, "x": 1})
    for request in (cp.count(), cp.count_distinct()):
        assert reveal(data.resolve(data.pin(), data.prepare(request))) == 1


@pytest.mark.parametrize("value", [True, np.bool_(False), b"17", DAY, ID, [17], np.timedelta64(17, "s")])
def test_what_is_neither_a_text_nor_a_number_is_a_text_or_refused_by_its_type(value):
    data = stream(None)
    if value in (DAY, ID):
        data.append({"who": value, "x": 1})
        data.append({"who": str(value).upper(), "x": 1})
        assert reveal(data.resolve(data.pin(), data.prepare(cp.count_distinct()))) == 1
        return
    for given_ in (value, datetime.datetime(2024, 2, 29), np.datetime64("2024-02-29", "s"), pd.Timestamp("2024-02-29")):
        with pytest.raises(InvalidRequest, match="must be a text or a whole number"):
            data.append({"who": given_, "x": 1})
    assert data.pin() == 0


def test_a_value_that_names_no_unit_is_missing_and_leaves_the_others_alone():
    missing = [None, float("nan"), np.nan, pd.NA, pd.NaT, np.datetime64("NaT"), Decimal("NaN"), Decimal("17.5"), 17.5]
    missing += [10**38, -(10**5000), 2.0**53, float("inf"), "a\0b", "\ud800", Decimal("sNaN"), Decimal("1e999999")]
    for of, more in ((None, []), ("whole", ["ann", "", "17.0", ID, DAY])):
        data = stream(of)
        data.extend([{"who": value, "x": 1} for value in [17, *missing, *more]])
        assert reveal(data.resolve(data.pin(), data.prepare(cp.count()))) == 1


@pytest.mark.parametrize(("kind", "limit"), [(np.float16, 2**11), (np.float32, 2**24), (np.float64, 2**53)])
def test_a_float_that_several_integers_may_have_become_names_no_unit(kind, limit):
    values = np.array([17, limit - 1, limit, limit + 1, -limit], kind)
    known = ["17", str(limit - 1)]
    assert [unit_key(value) for value in values] == [*known, None, None, None]
    for column in (values, pd.Series(list(values), dtype=object)):
        assert keys(cp.Table(pd.DataFrame({"who": column}), "who", 9, unit_type="whole")) == sorted(known)
    data = stream("whole")
    data.extend([{"who": value, "x": 1} for value in values])
    assert reveal(data.resolve(data.pin(), data.prepare(cp.count_distinct()))) == 2


def test_objects_of_pandas_name_units_by_the_same_keys():
    objects = [
        17,
        17.0,
        Decimal("17.00"),
        "17",
        np.uint64(17),
        ID,
        str(ID).upper(),
        DAY,
        True,
        b"17",
        17.5,
        None,
        pd.NA,
    ]
    objects += [pd.NA, datetime.datetime(2024, 2, 29), float("nan")]
    frame = pd.DataFrame({"who": pd.Series(objects, dtype=object), "x": 1})
    assert keys(cp.Table(frame, "who", 99)) == sorted(["17"] * 5 + [str(ID)] * 2 + [str(DAY)])
    assert keys(cp.Table(frame.astype({"who": "category"}), "who", 99)) == keys(cp.Table(frame, "who", 99))
    assert keys(cp.Table(pd.DataFrame({"who": pd.array([17, None], "UInt64")}), "who", 1)) == ["17"]


KINDS = [pa.int64(), pa.uint64(), pa.decimal128(20, 3), pa.string(), pa.large_string(), pa.float64()]
KINDS += [pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int8(), pa.int64())]


def named_by(kind):
    """40 units of 5 rows each, whose names have this type."""
    units = [unit for unit in range(40) for _ in range(5)]
    values = [Decimal(u) if pa.types.is_decimal(kind) else float(u) if kind == pa.float64() else u for u in units]
    names = pa.array([str(u) for u in units] if "string" in str(kind) else values)
    column = names.dictionary_encode() if pa.types.is_dictionary(kind) else names.cast(kind)
    return pa.table({"who": column, "x": list(range(200))})


NAMED = ("who", 2, {"who": cp.text(), "x": cp.number(0, 200)})


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_same_rows_are_kept_and_sampled_whatever_type_names_the_units(kind):
    half = Sample("1/2", SampleKey(7))
    found = []
    for one in (kind, pa.int64()):
        with closing(cp.Table(named_by(one), *NAMED, unit_type="whole")) as table:
            found.append((sorted(table.all_rows("c1")), sorted(table.sampled(half).all_rows("c1"))))
    assert found[0] == found[1] and len(found[0][0]) == 80 and 0 < len(found[0][1]) < 80


@pytest.mark.parametrize("engine", ["postgres", "spark"])
def test_every_engine_keeps_the_same_rows_of_a_unit(engine):
    with closing(cp.Table(named_by(pa.int64()), *NAMED, unit_type="whole")) as table:
        kept = sorted(table.all_rows("c1"))
    for kind in (pa.string(), pa.decimal128(20, 3)):
        with closing(engines.bound(engine, named_by(kind), *NAMED, unit_type="whole")) as table:
            assert sorted(table.all_rows("c1")) == kept


def test_all_rows_of_a_unit_have_one_value_in_its_column():
    rows = pa.table({"who": ["17", "017", "+17", " 17", "ann", None], "x": [1] * 6})
    with closing(cp.Table(rows, "who", 9, {"who": cp.text()}, unit_type="whole")) as table:
        assert table.reach("who") == 1 and set(table.all_rows("c0, u")) == {("17", "17")}
    with closing(cp.Table(rows, "who", 9, {"who": cp.whole()})) as table:
        assert set(table.all_rows("c0, u")) == {(17, "17")}
    data = cp.Stream(fields={"who": cp.text()}, unit="who", per_unit=9, unit_type="whole", neighbours="add-or-remove")
    data.extend([{"who": value} for value in (17, "017", "+17", " 17", 17.0, Decimal("17.00"))])
    assert data.reach("who") == 1 and set(data.log.items) == {("17",)}
    rows_of = cp.LiveTable("who", 9, key="k", columns={"who": cp.text()}, unit_type="whole")
    rows_of.put([{"who": value, "k": value} for value in (17, "017")])
    assert [item[2] for item in rows_of.log.items] == ["17", "17"]


def test_a_row_is_named_as_a_unit_is():
    data = live(None)
    data.put([{"who": "ann", "k": key, "x": 1} for key in SEVENTEEN])
    data.feed(arrow("ann", "17"), name="arrow")
    assert reveal(data.resolve(data.pin(), data.prepare(cp.count()))) == 1
    data.remove(who="ann", k=Decimal("17.0"))
    assert reveal(data.resolve(data.pin(), data.prepare(cp.count()))) == 0


def test_parts_of_composite_units_have_keys_of_their_own_types():
    rows = pa.table({"ward": ["7", "07", "7", "x"], "patient": ["1", "1", " 01", "2"]})
    found = keys(cp.Table(rows, ["ward", "patient"], 9, unit_type=["text", "whole"]))
    assert found == ["1:71:1", "1:71:1", "1:x1:2", "2:071:1"]
    numbers = pa.table({"ward": pa.array([7], pa.uint64()), "patient": pa.array([Decimal("1.0")])})
    assert keys(cp.Table(numbers, ["ward", "patient"], 9)) == ["1:71:1"]
    for wrong in (["text"], "int", ["text", 3]):
        with pytest.raises(InvalidParameter, match="unit_type"):
            cp.Table(rows, ["ward", "patient"], 9, unit_type=wrong)


AGES = {"age": cp.number(0, 120)}


def people(values, kind=None, **more):
    ages = pa.array([70] * len(values), pa.int64())
    return cp.Table(pa.table({"who": pa.array(values, kind), "age": ages}), "who", 1, AGES, **more)


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64(), pa.decimal128(20, 2)], ids=str)
def test_streams_take_the_type_of_units_of_a_table_beside_them(kind):
    events, calls = stream(None), live(None)
    with closing(people([17, 18], kind)) as table:
        both = cp.Sources(people=table, events=events, calls=calls, unit="who")
        events.extend([{"who": value, "x": 1} for value in ("018", "ann", 19)])
        events.feed(arrow("+17", "a"), name="a")
        events.append({"who": 17, "x": 1})  # the second item of 17, which has one
        calls.put([{"who": "0017", "x": 1, "k": 1}, {"who": "x", "x": 1, "k": 1}])
        for name, known in (("events", 2), ("calls", 1)):
            asked = both.prepare(cp.count("people.age = 70", of=name))
            assert asked.sensitivity == 1 and reveal(both.resolve(both.pin(), asked)) == known
        asked = both.prepare(cp.count("calls.x = 1", of="people"))
        assert reveal(both.resolve(both.pin(), asked)) == 1


def test_wide_and_small_numbers_of_two_tables_are_the_same_units():
    for first, second in ((pa.int64(), pa.uint64()), (pa.uint64(), pa.int32()), (pa.string(), pa.decimal128(20, 2))):
        declared = {"unit_type": "whole"} if first == pa.string() else {}
        ids = ["17", "018"] if first == pa.string() else [17, 18]
        with closing(people(ids, first, **declared)) as one, closing(people([17, 19], second)) as other:
            both = cp.Sources(one=one, other=other, unit="who")
            for request in (cp.count("other.age = 70", of="one"), cp.count("one.age = 70", of="other")):
                assert reveal(both.resolve(both.pin(), both.prepare(request))) == 1


def test_types_of_units_that_differ_are_refused_by_what_is_declared_and_never_by_values():
    for values in (["17"], ["ann"], []):
        with closing(people(values, pa.string())) as texts, closing(people([17] * len(values), pa.int64())) as numbers:
            for sources in ({"b": numbers}, {"b": stream("whole")}, {"b": live("whole")}):
                with pytest.raises(InvalidParameter, match="b names its units by whole numbers, and a by texts"):
                    cp.Sources(a=texts, **sources, unit="who")
            events = stream(None)
            cp.Sources(a=texts, b=events, unit="who")
            with pytest.raises(InvalidParameter, match="a names its units by whole numbers, and b by texts"):
                cp.Sources(a=numbers, b=events, unit="who")


@pytest.mark.parametrize("neighbours", ["replace", "add-or-remove"])
def test_what_has_arrived_before_a_stream_is_among_others_is_capped_by_their_units(neighbours):
    events = cp.Stream(fields={"x": cp.number(0, 9)}, unit="who", per_unit=2, neighbours=neighbours)
    before = ["17", "017", 17, "ann", "17", 18, None]
    events.extend([{"who": who, "x": n} for n, who in enumerate(before)], id="before")
    calls = cp.LiveTable("who", 1, key="k", columns={"x": cp.number(0, 9)})
    calls.put([{"who": who, "k": n, "x": n} for n, who in enumerate(["17", "017", "ann"])])
    with closing(people([17, 18])) as table:
        both = cp.Sources(people=table, events=events, calls=calls, unit="who")
        assert [item and item[0] for item in events.log.items] == [0, 1, None, None, None, 5, None]
        assert calls.log.items == [(True, "0", 0), None, None]
        events.extend([{"who": who, "x": n} for n, who in enumerate(before)], id="before")
        events.append({"who": "0017", "x": 9})
        assert events.pin() == 8
        for name, known in (("events", 3), ("calls", 1)):
            asked = both.prepare(cp.count("people.age = 70", of=name))
            assert reveal(both.resolve(both.pin(), asked)) == known


def test_the_type_of_units_is_part_of_what_a_ledger_knows_data_by():
    for make in (stream, live):
        assert make(None).fingerprint() == make("text").fingerprint() != make("whole").fingerprint()
    with pytest.raises(InvalidParameter, match="unit_type was given without"):
        cp.Stream(unit_type="whole")
    spent = cp.Stream(bound=9, unit="who", per_unit=1, unit_type="whole")
    spent.extend([1, 2, 3], units=["017", 17, "ann"])
    assert reveal(spent.resolve(3, spent.prepare(total()))) == 1
