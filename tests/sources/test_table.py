"""A table answers with exact integers that move no further than was said, and says nothing else about its rows."""

import math
import threading
from datetime import date as day
from decimal import Decimal
from fractions import Fraction
from statistics import pvariance

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sources import people

from counterpoint.errors import CounterpointError, DataFailed, InvalidParameter, InvalidRequest
from counterpoint.privacy.messages import Ask
from counterpoint.privacy.relations import OneWay, Steps, every_step
from counterpoint.privacy.secret import Secret
from counterpoint.queries import aggregates as requests
from counterpoint.queries import quantiles as choices
from counterpoint.queries import variance as variances
from counterpoint.queries.request import PreparedQuery
from counterpoint.schema.columns import boolean, category, number, text
from counterpoint.schema.units import each_row
from counterpoint.sources.table import Table

DAYS = [day(1990, 1, 1), day(2010, 1, 1)]
STEPS = people.COLUMNS["income"]
GROUPS = st.tuples(st.sampled_from(["CA", "NY", "WY", "nowhere"]), st.booleans())


@settings(max_examples=40, deadline=None)
@given(people.worlds, people.units, st.lists(people.questions, min_size=4, max_size=8), st.integers(1, 3), st.data())
def test_no_request_moves_by_more_than_its_sensitivity_between_neighbours(world, unit, questions, cap, data):
    neighbours = data.draw(st.sampled_from(["add-or-remove", "replace"]))
    other = {**world, 9: unit}
    if neighbours == "replace":
        world = {**world, 10: data.draw(people.units)}
    here, there = (people.table(w, cap, neighbours) for w in (world, other))
    assert here.describe() == there.describe()
    for request in questions:
        prepared = here.prepare(request)
        assert prepared == there.prepare(request), "what is public is the same in both worlds"
        l1, squared, each = people.moved(people.found(here, request), people.found(there, request), prepared.cells)
        assert l1 <= prepared.sensitivity and squared <= prepared.squared
        assert each <= prepared.each == here.sensitivities(request).each


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
@pytest.mark.parametrize(
    ("request_", "old", "new"),
    [
        (requests.count(), [], [{}] * 2),
        (requests.count_distinct("income > 0"), [{"income": -1}], [{"income": 1}]),
        (requests.sum("income"), [{"income": -2}] * 2, [{"income": 3}] * 2),
        (requests.sum("income", by="state"), [{"income": 3, "state": "CA"}] * 2, [{"income": 3, "state": "NY"}] * 2),
        (requests.sum("income", by="state"), [{"income": -2, "state": "NY"}] * 2, [{"income": 3, "state": "NY"}] * 2),
        (
            requests.sum("income", by=["state", "vip"]),
            [{"income": 3, "state": "CA", "vip": True}] * 2,
            [{"income": 3, "state": "CA", "vip": False}] * 2,
        ),
        (requests.count(by=["state", "vip"]), [{"state": "CA", "vip": True}] * 2, [{"state": "WY", "vip": True}] * 2),
        (requests.mean("income"), [{"income": -2}] * 2, [{"income": 3}] * 2),
        (variances.variance("income"), [{"income": -2}] * 2, [{"income": 3}] * 2),
        (
            variances.variance("income", by="state"),
            [{"income": -2, "state": "CA"}] * 2,
            [{"income": 3, "state": "NY"}] * 2,
        ),
        (requests.histogram("state"), [{"state": "CA"}] * 2, [{"state": "NY"}] * 2),
        (requests.histogram("income", edges=[-2, 0, 3]), [{"income": -1}] * 2, [{"income": 2}] * 2),
        (requests.ranks("income", [0, 1, 2]), [{"income": 3}] * 2, [{"income": -2}] * 2),
        (requests.ranks("born", ["2000-01-01"]), [{"born": DAYS[1]}] * 2, [{"born": DAYS[0]}] * 2),
        (choices.keys("zip"), [{"zip": "a"}, {"zip": "b"}], [{"zip": "c"}, {"zip": "d"}]),
        (choices.quantile("income", 1, [-2, -1]), [{"income": -2}] * 2, [{"income": 3}] * 2),
    ],
)
def test_the_stated_sensitivities_are_reached_so_they_are_not_too_large(request_, old, new, neighbours):
    blank = dict.fromkeys(["income", "tokens", "state", "vip", "zip", "age"])
    unit = {name: [{**blank, **row} for row in rows] for name, rows in (("old", old), ("new", new))}
    without = {} if neighbours == "add-or-remove" or not old else {1: unit["old"]}
    here, there = people.table(without, 2, neighbours), people.table({2: unit["new"]}, 2, neighbours)
    l1, squared, _ = people.moved(people.found(here, request_), people.found(there, request_))
    prepared = here.prepare(request_)
    reached = {"l1": l1 == prepared.sensitivity, "squared": squared == prepared.squared}
    assert any(reached.values()), reached


@settings(max_examples=20, deadline=None)
@given(people.worlds, st.lists(people.questions, min_size=3, max_size=6), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_moves_nothing(world, questions, random):
    key = b"sixteen bytes..."
    here = people.table(world, 2, key=key)
    there = people.table(world, 2, order=lambda rows: random.sample(rows, len(rows)), key=key)
    assert here.pin() == there.pin()
    for request in questions:
        assert people.found(here, request) == people.found(there, request)


@settings(max_examples=40, deadline=None)
@given(people.worlds)
def test_what_is_found_is_what_a_second_opinion_finds(world):
    source = people.table(world, rows_per_unit=5)
    rows = [row for unit in world.values() for row in unit]
    incomes = [people.steps(row["income"], STEPS) for row in rows]
    known = [income for income in incomes if income is not None]
    tokens = [people.steps(row["tokens"], people.COLUMNS["tokens"]) for row in rows]
    assert people.found(source, requests.count()) == (len(rows),)
    assert people.found(source, requests.count_distinct()) == (len(world),)
    assert people.found(source, requests.sum("income")) == (sum(known),)
    assert people.found(source, requests.sum("tokens")) == (sum(t for t in tokens if t is not None),)
    centred = sum(2 * income - STEPS.least - STEPS.most for income in known)
    assert people.found(source, requests.mean("income")) == (centred, 20 * len(known))
    assert people.found(source, requests.ranks("income", [-2, 0.3, 3])) == tuple(
        sum(income * STEPS.step <= Fraction(c) for income in known) for c in ("-2", "0.3", "3")
    )
    bins = [sum(a <= i * STEPS.step < b for i in known) for a, b in ((-2, 0), (0, 2))]
    bins.append(sum(2 <= i * STEPS.step <= 3 for i in known))
    assert people.found(source, requests.histogram("income", edges=[-2, 0, 2, 3])) == tuple(bins)
    states = [sum(row["state"] == key for row in rows) for key in ("CA", "NY", "WY")]
    assert people.found(source, requests.histogram("state")) == tuple(states)
    by_state = requests.sum("income", by="state", keys=["NY", "CA"])
    assert people.found(source, by_state) == tuple(
        sum(i for i, row in zip(incomes, rows, strict=True) if i is not None and row["state"] == key)
        for key in ("NY", "CA")
    )


@settings(max_examples=40, deadline=None)
@given(people.worlds, st.none() | st.lists(GROUPS, min_size=1, unique=True))
def test_groups_of_several_columns_hold_what_a_second_opinion_finds(world, keys):
    source = people.table(world, rows_per_unit=5)
    rows = [row for unit in world.values() for row in unit]
    cells = keys or [(state, vip) for state in ("CA", "NY", "WY") for vip in (False, True)]
    groups = [[row for row in rows if (row["state"], row["vip"]) == cell] for cell in cells]
    known = [[i for i in (people.steps(row["income"], STEPS) for row in g) if i is not None] for g in groups]
    by = {"by": ["state", "vip"], "keys": keys}
    assert people.found(source, requests.count(**by)) == tuple(map(len, groups))
    assert people.found(source, requests.sum("income", **by)) == tuple(map(sum, known))
    variance = variances.variance("income", **by)
    assert source.prepare(variance).in_units(people.found(source, variance)) == tuple(
        pvariance([Fraction(value, 4) for value in values]) if values else None for values in known
    )
    mean = requests.mean("income", **by)
    assert source.prepare(mean).in_units(people.found(source, mean)) == tuple(
        Fraction(sum(values), 4 * len(values)) if values else None for values in known
    )


def test_the_same_integers_come_from_every_kind_of_input(tmp_path):
    rows = [(i, i % 7 - 2.6 if i % 5 else None, ["CA", "NY", "it's", None][i % 4], i % 3 == 0) for i in range(60)]
    frame = pa.table({name: [row[i] for row in rows] for i, name in enumerate(["who", "x", "s", "b"])})
    pyarrow.parquet.write_table(frame, tmp_path / "people.parquet")
    pyarrow.csv.write_csv(frame, tmp_path / "people.csv")
    connection = duckdb.connect()
    connection.register("frame", frame)
    inputs = {
        "arrow": frame,
        "polars": pl.from_arrow(frame),
        "pandas": frame.to_pandas(),
        "pandas of objects": frame.to_pandas().astype(object),
        "relation": connection.sql("SELECT * FROM frame ORDER BY s DESC"),
        "parquet": tmp_path / "people.parquet",
        "csv": str(tmp_path / "people.csv"),
    }
    columns = {"x": number(-2, 3, step="0.1"), "s": text(), "b": boolean(), "who": category(range(50))}
    asked = [
        requests.count("s = 'it''s' OR b"),
        requests.sum("x", where="NOT s LIKE 'C%'"),
        requests.mean("x", "b"),
        requests.histogram("who", keys=[3, 4, 55]),
        requests.ranks("x", [-1, 0, 1]),
        requests.sum("x", by="b"),
        requests.count("s IS NULL AND x > 0.4"),
    ]
    key = b"sixteen bytes..."
    tables = {name: Table(data, "who", 1, columns, unit_type="whole", key=key) for name, data in inputs.items()}
    answers = {name: [people.found(source, request) for request in asked] for name, source in tables.items()}
    assert all(answer == answers["arrow"] for answer in answers.values()), answers
    assert len({source.pin() for source in tables.values()}) == 1, "and the fingerprint is the same"
    assert answers["arrow"][0] == (30,) and answers["arrow"][3] == (1, 1, 0)


@pytest.mark.parametrize(
    ("values", "column", "expected"),
    [
        ([2**63 - 1, -(2**63), None], number(-(2**62), 2**62), 0),
        ([2**63 - 1] * 3, number(0, 2**62), 3 * 2**62),
        ([2**53 + 1] * 3, number(0, 2**60), 3 * (2**53 + 1)),
        ([7, -7, 8, 12], number(-20, 20, step=5), 1 - 1 + 2 + 2),
        ([1, 2, 3], number(0, 3, step="1/3"), 18),
        ([math.nan, math.inf, -math.inf, None], number(-1, 5), 4),
        ([0.1] * 10, number(0, 1, step="0.1"), 10),
        ([1e308, -1e308, 0.5, -0.5], number(-3, 3), 1),
        ([4.6e18, 1e19], number(0, 2**62), 4_600_000_000_000_000_000 + 2**62),
        # rounding to doubles would carry this one, which is just below the bound, one step beyond it
        ([450359962737050.06], number(0, "450359962737050.1", step="0.1"), 4503599627370501),
        ([True, True, None], number(0, 1), 2),
        ([Decimal("0.29"), Decimal("-7.10"), None], number(-5, 5, step="0.01"), 29 - 500),
        (["3", " 4", "x", None, "1e1", "nan", "inf", "99999999999999999999"], number(0, 5), 3 + 4 + 5 + 5 + 5),
    ],
)
def test_awkward_numbers_are_brought_onto_the_grid_by_the_stated_rule(values, column, expected):
    source = Table(pa.table({"x": values}), unit=each_row, columns={"x": column})
    assert people.found(source, requests.sum("x")) == (expected,)


def test_whole_numbers_without_bounds_are_compared_up_to_the_edges_of_64_bits():
    least, most = -(2**63), 2**63 - 1
    source = Table(pa.table({"n": [least, most, 0, None]}), unit=each_row)
    for where, expected in (
        (f"n = {least}", 1),
        (f"n IN ({least}, {most}, {2 * most})", 2),
        (f"n >= {least}", 3),
        (f"n > {least}", 2),
        (f"n < {most}", 2),
        (f"n > {most}", 0),
        (f"n BETWEEN {10 * least} AND {10 * most}", 3),
        (f"NOT n <= {10 * most}", 0),
        (f"NOT n > {10 * most}", 3),
        (f"n <> {most + 1}", 3),
    ):
        assert people.found(source, requests.count(where)) == (expected,), where
    assert people.found(source, requests.histogram("n", keys=[least, most])) == (1, 1)


def test_integer_sums_are_exact_where_floating_point_would_lose_them():
    values = [2**62, 1, -1, -(2**62) + 1] * 500
    source = Table(pa.table({"x": values}), unit=each_row, columns={"x": number(-(2**62), 2**62)})
    assert people.found(source, requests.sum("x")) == (sum(values),) == (500,)
    wide = Table(pa.table({"x": [2**62] * 1000}), unit=each_row, columns={"x": number(0, 2**62)})
    assert people.found(wide, requests.sum("x")) == (1000 * 2**62,)


def test_a_unit_keeps_its_cap_of_rows_whatever_others_do_and_however_often_it_is_bound():
    crowd = {"who": [1] * 50 + [2] * 3 + [None] * 4, "x": [*range(50), 1, 2, 3, *range(4)]}
    alone = {"who": [1] * 50, "x": [*reversed(range(50))]}
    keys = list(range(50))
    asked = requests.histogram("x", keys=keys, where="who = 1")
    first, again, without = (Table(pa.table(data), "who", 5) for data in (crowd, crowd, alone))
    assert people.found(first, requests.count()) == (8,), "five of one unit, three of the other, none without a unit"
    assert people.found(Table(pa.table(crowd), "who", 60), requests.count()) == (53,)
    assert sum(people.found(first, asked)) == 5
    assert people.found(first, asked) == people.found(again, asked) == people.found(without, asked)
    kept = {people.found(Table(pa.table(crowd), "who", 5, key=bytes([i]) * 16), asked) for i in range(5)}
    assert len(kept) > 1, "the choice depends on the key"


def test_describe_and_repr_tell_nothing_that_depends_on_rows():
    empty, full = (
        people.table({}),
        people.table({i: [dict.fromkeys(people.COLUMNS, None) | {"age": 7}] for i in range(9)}),
    )
    assert empty.describe() == full.describe() and repr(empty) == repr(full)
    assert "income: a number from -2 to 3 in steps of 0.25" in full.describe()
    assert "age: a whole number without bounds (undeclared" in full.describe()
    assert full.relation == OneWay(Steps(updates=0)) and full.relation.within(every_step())


def test_an_answer_is_a_secret_of_the_public_width_that_an_ask_can_carry():
    source = people.table({1: [{**dict.fromkeys(people.COLUMNS), "age": 1, "income": 1.0}]})
    for request in (requests.count(), requests.mean("income"), requests.histogram("state")):
        prepared = source.prepare(request)
        secret = source.resolve(source.pin(), prepared)
        assert isinstance(secret, Secret) and secret.width == prepared.width
        ask = Ask(prepared.request, secret, prepared.sensitivity, prepared.squared)
        assert ask.squared == prepared.squared


def test_a_request_is_resolved_only_on_the_version_it_was_pinned_to_and_as_it_was_prepared():
    one, other = people.table({}), people.table({}, rows_per_unit=3)
    prepared = one.prepare(requests.count())
    with pytest.raises(InvalidRequest, match="another version"):
        one.resolve(other.pin(), prepared)
    with pytest.raises(InvalidRequest, match="another declaration"):
        other.resolve(other.pin(), prepared)
    forged = PreparedQuery(prepared.request, 1, 1, None, prepared.grid)
    with pytest.raises(InvalidRequest, match="another declaration"):
        one.resolve(one.pin(), forged)
    with pytest.raises(InvalidRequest, match="a table answers count"):
        one.prepare("SELECT 1")


def test_pins_without_a_key_are_fresh_and_with_a_key_follow_the_content():
    row = {**dict.fromkeys(people.COLUMNS), "age": 1}
    assert people.table({}).pin() != people.table({}).pin()
    keyed = [people.table(world, key=b"k" * 32).pin() for world in ({}, {1: [row]}, {1: [row]}, {2: [row]})]
    assert keyed[1] == keyed[2] and len(set(keyed)) == 3
    assert people.table({}, key=b"l" * 32).pin() != keyed[0]


@settings(max_examples=20, deadline=None)
@given(people.worlds, people.maybe_where)
def test_parts_add_up_to_the_whole_and_hold_only_their_rows(world, where):
    source = people.table(world, 3)
    request = requests.sum("income", where=where)
    parts = [people.found(source.part("state", key), request)[0] for key in ("CA", "NY", "WY")]
    assert tuple(parts) == people.found(source, requests.sum("income", where=where, by="state"))
    inner = source.part("state", "CA").part("vip", True)
    both = "state = 'CA' AND vip"
    assert people.found(inner, requests.count(where)) == people.found(
        source, requests.count(both if where is None else f"{both} AND ({where})")
    )
    assert inner.prepare(request) == source.prepare(request) and inner.pin() == source.pin()


def test_a_part_is_asked_for_by_a_value_that_its_column_can_have():
    source = people.table({})
    for by, key in (
        ("state", "TX"),
        ("state", 3),
        ("vip", 1),
        ("age", "x"),
        ("age", 1.5),
        ("nope", 1),
        ("zip", None),
        ("age", math.nan),
        ("age", None),
    ):
        with pytest.raises(InvalidRequest):
            source.part(by, key)
    assert people.found(source.part("zip", "'; DROP TABLE bound; --"), requests.count()) == (0,)
    assert people.found(source.part("income", 0.25), requests.count()) == (0,)


@settings(max_examples=25, deadline=None)
@given(people.worlds, people.units, st.integers(1, 2), st.sampled_from(["add-or-remove", "replace"]), st.data())
def test_neighbours_differ_in_no_more_parts_than_the_source_says(world, unit, k, neighbours, data):
    other = {**world, 9: unit}
    if neighbours == "replace":
        world = {**world, 10: data.draw(people.units)}
    here, there = (people.table(w, 4, neighbours).spread("state", k) for w in (world, other))
    assert here.reach("state") == k * (2 if neighbours == "replace" else 1)
    asked = [requests.count(), requests.sum("income"), requests.histogram("age", keys=[0, 17])]
    differing = 0
    for key in ("CA", "NY", "WY"):
        answers = [[people.found(t.part("state", key), request) for request in asked] for t in (here, there)]
        differing += answers[0] != answers[1]
        for request, left, right in zip(asked, *answers, strict=True):
            assert people.moved(left, right)[0] <= here.prepare(request).sensitivity
    assert differing <= here.reach("state")


def test_a_unit_reaches_as_many_parts_as_it_may_have_rows_and_one_by_its_own_name():
    source = people.table({}, 3)
    assert (source.reach("state"), source.reach("who")) == (3, 1)
    assert people.table({}, 3, "replace").reach("state") == 6
    assert source.spread("state", 5) is source
    with pytest.raises(InvalidRequest):
        source.part("state", "CA").spread("zip", 1)


def test_many_threads_ask_one_table_at_once_and_get_the_same_answers():
    source = people.table({i: [{**dict.fromkeys(people.COLUMNS), "age": 17, "income": i / 8}] for i in range(9)})
    asked = [requests.count(f"income > {i / 8}") for i in range(8)]
    expected = [people.found(source, request) for request in asked]
    results = {}

    def ask(name):
        results[name] = [people.found(source, request) for request in asked * 5]

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8 and all(result == expected * 5 for result in results.values())


def test_an_engine_error_is_one_constant_refusal():
    source = people.table({})
    prepared = source.prepare(requests.count())
    source._bound.engine.run("DROP TABLE bound")
    with pytest.raises(DataFailed) as refused:
        source.resolve(source.pin(), prepared)
    assert str(refused.value) == str(DataFailed())
    assert refused.value.__cause__ is refused.value.__context__ is None, "the engine's own words are gone"


def test_the_engine_reaches_nothing_outside_once_the_rows_are_in(tmp_path):
    (tmp_path / "other.csv").write_text("a\n1\n")
    engine = people.table({})._bound.engine
    frame = pd.DataFrame({"a": [1]})  # noqa: F841 - a variable that DuckDB would find by its name
    for sql in (
        f"FROM read_csv('{tmp_path}/other.csv')",
        "FROM frame",
        "SET threads = 1",
        "FROM given",
        "FROM offered",
    ):
        with pytest.raises(DataFailed, match="could not answer"):
            engine.run(sql)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([2**62 + 1, 2**62 + 3], "int64"),
        ([1, 255], "uint8"),
        ([7, -7], "Int64"),
        ([True, False], "bool"),
        (["a", "b"], "object"),
    ],
)
def test_a_missing_value_in_a_pandas_category_changes_neither_its_type_nor_other_values(values, kind):
    kept = pd.CategoricalDtype(pd.Index(values, dtype=kind))
    worlds = [[*values, values[0]], [*values, None], [None] * 3, []]
    frames = [pd.DataFrame({"k": pd.Series(pd.Categorical(world, dtype=kept))}) for world in worlds]
    tables = [Table(frame, unit=each_row) for frame in frames]
    assert len({table.describe() for table in tables}) == 1
    found = [people.found(table, requests.histogram("k", keys=values)) for table in tables]
    assert found == [(2, 1), (1, 1), (0, 0), (0, 0)]
    assert all(frame["k"].dtype == kept for frame in frames), "and the frame itself is left alone"


def test_a_pandas_category_of_texts_is_one_even_if_all_are_missing():
    frames = [pd.DataFrame({"k": pd.Categorical(world)}) for world in (["a", None], [None, None])]
    assert len({Table(frame, unit=each_row).describe() for frame in frames}) == 1


def test_units_named_by_a_pandas_category_stay_apart_when_one_is_missing():
    who = pd.Categorical([2**62 + 1, 2**62 + 3, 2**62 + 3, None])
    source = Table(pd.DataFrame({"who": who}), unit="who", rows_per_unit=1)
    assert people.found(source, requests.count()) == people.found(source, requests.count_distinct()) == (2,)


def test_types_are_never_guessed_from_values(tmp_path):
    (tmp_path / "a.csv").write_text('n,s\n1,"x, ""y"""\n2,\n')
    (tmp_path / "b.csv").write_text("n,s\n1,x\noops,2020-01-01\n")
    for name in ("a", "b"):
        assert "n: a text" in Table(tmp_path / f"{name}.csv", unit=each_row).describe()
    source = Table(tmp_path / "a.csv", unit=each_row, columns={"n": number(0, 9)})
    assert people.found(source, requests.sum("n", where="s = 'x, \"y\"'")) == (1,)
    assert people.found(Table(tmp_path / "b.csv", unit=each_row, columns={"n": number(0, 9)}), requests.sum("n")) == (
        1,
    )
    objects = [
        make({"x": pd.Series(values, dtype=object)})
        for make in (pd.DataFrame, type("Frame", (pd.DataFrame,), {}))
        for values in ([1, 2], ["a", None], [True, 0.5])
    ]
    assert {Table(frame, unit=each_row).describe() for frame in objects} == {
        Table(objects[0], unit=each_row).describe()
    }


@pytest.mark.parametrize(
    "make",
    [
        lambda t: Table("nowhere.parquet", unit=each_row),
        lambda t: Table("people.xlsx", unit=each_row),
        lambda t: Table({"a": [1]}, unit=each_row),
        lambda t: Table(t, unit="nobody", rows_per_unit=1),
        lambda t: Table(t, unit="x", rows_per_unit=1),
        lambda t: Table(t, unit=each_row, rows_per_unit=2),
        lambda t: Table(t, unit="who", rows_per_unit=0),
        lambda t: Table(t, unit=each_row, neighbours="close"),
        lambda t: Table(t, unit=each_row, columns={"nope": number(0, 1)}),
        lambda t: Table(t, unit=each_row, columns={"who": "number"}),
        lambda t: Table(t, unit=each_row, columns={"x": text()}),
        lambda t: Table(t, unit=each_row, columns={"x": category(["one"])}),
        lambda t: Table(t, unit=each_row, key=b"short"),
    ],
)
def test_a_wrong_declaration_is_refused_with_what_there_is(make):
    with pytest.raises(InvalidParameter):
        make(pa.table({"who": [1], "x": [0.5]}))


def test_names_may_be_anything_and_never_become_sql():
    strange = 'a"; DROP TABLE bound; --'
    source = Table(pa.table({strange: [1, 2, 3], "select": ["x", "y", "z"], "u": [True, False, None]}), unit=each_row)
    quoted = '"' + strange.replace('"', '""') + '"'
    assert people.found(source, requests.count(f"{quoted} >= 2")) == (2,)
    assert people.found(source, requests.count("\"select\" = 'x' OR u")) == (1,)
    assert people.found(source, requests.histogram(strange, keys=[3])) == (1,)


def test_both_worlds_raise_the_same_errors():
    world = {1: [{**dict.fromkeys(people.COLUMNS), "age": 2}]}
    wrong = [
        lambda t: t.prepare(requests.sum("age")),
        lambda t: t.prepare(requests.histogram("zip")),
        lambda t: t.prepare(requests.count("income / 0 > 1")),
        lambda t: t.prepare(requests.ranks("state", [1])),
        lambda t: t.part("state", "TX"),
        lambda t: t.spread("nowhere", 1),
    ]
    for deed in wrong:
        said = []
        for w in ({}, world):
            with pytest.raises(CounterpointError) as refused:
                deed(people.table(w))
            said.append((type(refused.value), str(refused.value)))
        assert said[0] == said[1]


names = st.sampled_from(["income", "tokens", "state", "vip", "zip", "age", "born", "who", "nope", "", None, 3])
texts = st.none() | st.sampled_from(
    ["age > 1", "age > 'x'", "born > 3", "state LIKE 3", "1 = 1", "zip = (SELECT 1)", "("]
)


def sum_by(name, where, by, keys):
    return requests.sum(name, where, by=by, keys=keys)


points = st.sampled_from([[1], [0, 1], [1, 0], [], ["2000-01-01"], ["2000-01-01", "2001-01-01"], ["x"], None, [2**80]])
deeds = st.one_of(
    st.tuples(st.just(requests.count), texts),
    st.tuples(st.just(requests.count_distinct), texts),
    st.tuples(st.sampled_from([requests.sum, requests.mean]), names, texts),
    st.tuples(st.just(sum_by), names, texts, names, st.none() | points),
    st.tuples(st.just(requests.histogram), names, st.none() | points, st.none() | points, texts),
    st.tuples(st.just(requests.ranks), names, points, texts),
    st.tuples(st.just(choices.keys), names, st.sampled_from([5, 0, "x"]), st.sampled_from([5, 10**9]), texts),
    st.tuples(st.just(choices.quantile), names, st.sampled_from([0.5, 2, "x", "1/3"]), points, texts),
    st.tuples(st.just("part"), names, names),
    st.tuples(st.just("spread"), names, st.sampled_from([0, 1, 2, "x"])),
)


def outcome(source, deed, *arguments):
    """What is public about doing something to a table: its error, or the shape of what comes out."""
    try:
        if isinstance(deed, str):
            return repr(getattr(source, deed)(*arguments))
        prepared = source.prepare(deed(*arguments))
        secret = source.resolve(source.pin(), prepared)
        return prepared, secret.keyed, secret.width
    except CounterpointError as error:
        return type(error), str(error)


@settings(max_examples=30, deadline=None)
@given(people.worlds, people.units, st.lists(deeds, min_size=10, max_size=20))
def test_whatever_is_asked_neighbouring_worlds_raise_the_same_errors_or_both_answer(world, unit, asked):
    here, there = people.table(world), people.table({**world, 9: unit})
    for deed in asked:
        assert outcome(here, *deed) == outcome(there, *deed), deed


def test_a_table_without_a_single_column_to_ask_about_still_counts():
    source = Table(pa.table({"x": [0.5, 1.5]}), unit=each_row)
    assert people.found(source, requests.count()) == (2,)


def test_what_is_protected_is_said_and_never_guessed():
    rows = pa.table({"who": ["ann", "ann", "bob"], "x": [1, 2, 3]})
    with pytest.raises(InvalidParameter, match=r"say what is protected: unit='person', .* or unit=cp\.each_row"):
        Table(rows)
    with pytest.raises(InvalidParameter, match="say how many rows of one 'who' count, as in rows_per_unit=10"):
        Table(rows, unit="who")
    assert people.found(Table(rows, unit=each_row), requests.count()) == (3,)
    assert people.found(Table(rows, unit="who", rows_per_unit=1), requests.count()) == (2,)


def test_a_column_that_is_not_declared_is_listed_with_what_to_declare_and_so_is_the_refusal():
    rows = pa.table({"who": ["ann"], "delay": [3.5], "tags": [["a"]], "at": pa.array([0], pa.timestamp("us", "UTC"))})
    source = Table(rows, unit="who", rows_per_unit=1)
    listed = source.describe().splitlines()[-3:]
    assert listed[0] == (
        "delay: undeclared, of type DOUBLE: declare columns={'delay': cp.number(low, high)} to ask about it"
    )
    assert "no declaration fits this type" in listed[1] and "cp.timestamp(" in listed[2]
    for request in (requests.sum("delay"), requests.count("delay > 3"), requests.histogram("delay", edges=[0, 1])):
        with pytest.raises(InvalidRequest, match=r"delay: undeclared, of type DOUBLE: declare columns=\{'delay'"):
            source.prepare(request)
    with pytest.raises(InvalidRequest, match="there is no column 'nothing'"):
        source.prepare(requests.sum("nothing"))


def test_the_keys_of_several_columns_are_compared_each_with_its_own_column():
    rows = pa.table({"state": ["CA", "CA", "NY"], "year": [1, 2, 1]})
    source = Table(rows, unit=each_row)
    assert people.found(source, requests.count(by=["state", "year"], keys=[("CA", 1), ("NY", 2)])) == (1, 0)
