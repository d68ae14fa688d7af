"""Samples of tables and streams: each unit has a coin of its own, the same wherever and whenever it is tossed."""

import threading
from fractions import Fraction

import pyarrow as pa
import pytest

import counterpoint as cp
from counterpoint.coins.secure import SeededCoins
from counterpoint.engines.engine import KeptTables
from counterpoint.errors import InvalidParameter, NotCovered, SecretLeak
from counterpoint.privacy.samples import Sample, SampleKey, length_prefixed
from counterpoint.privacy.secret import reveal

HALF = Sample("1/2", SampleKey(2**255 + 17))
ODD = ["ann", "1", "Zoë", "a'b", " ", "x" * 300, "日本", "a\\b", "%"]


def table(units, rows=1, **more):
    data = {"who": [u for u in units for _ in range(rows)], "age": [n % 90 for n in range(len(units) * rows)]}
    return cp.Table(pa.table(data), unit="who", rows_per_unit=rows, columns={"age": cp.number(0, 120)}, **more)


def found(source, request):
    return reveal(source.resolve(source.pin(), source.prepare(request)))


def kept(source, units):
    """Which of these units a sample keeps."""
    counts = found(source, cp.histogram("who", keys=units))
    return {unit for unit, n in zip(units, counts, strict=True) if n}


@pytest.mark.parametrize("units", [ODD, [str(n) for n in range(200)]])
def test_the_engine_tosses_the_coins_of_the_definition(units):
    assert kept(table(units).sampled(HALF), units) == {unit for unit in units if HALF.keeps(unit)}


def test_numbers_and_the_same_numbers_as_texts_have_the_same_coins():
    numbers = list(range(-50, 150))
    assert {str(n) for n in kept(table(numbers).sampled(HALF), numbers)} == kept(
        table([str(n) for n in numbers]).sampled(HALF), [str(n) for n in numbers]
    )


def test_another_unit_changes_no_coin_and_takes_all_of_its_rows_along():
    units = [f"u{n}" for n in range(60)]
    everyone = kept(table(units, rows=3).sampled(HALF), units)
    for gone in units[:10]:
        others = [unit for unit in units if unit != gone]
        assert kept(table(others, rows=3).sampled(HALF), others) == everyone - {gone}
    assert found(table(units, rows=3).sampled(HALF), cp.count()) == 3 * len(everyone)


def test_a_sample_of_a_sample_keeps_those_that_are_in_both():
    other, units = Sample("1/2", SampleKey(3)), [f"u{n}" for n in range(100)]
    both = kept(table(units).sampled(HALF).sampled(other), units)
    assert both == {unit for unit in units if HALF.keeps(unit) and other.keeps(unit)}


def test_rows_that_are_units_of_their_own_have_coins_of_their_own_also_where_they_are_equal():
    ages = [age for age in range(100) for _ in range(20)]
    whole = cp.Table(pa.table({"age": ages}), unit=cp.each_row, columns={"age": cp.number(0, 120)})
    counts = found(whole.sampled(HALF), cp.histogram("age", keys=list(range(100))))
    assert len(set(counts)) > 5 and 700 < sum(counts) < 1300  # not all equal rows together
    fewer = cp.Table(pa.table({"age": ages[::-1][1:]}), unit=cp.each_row, columns={"age": cp.number(0, 120)})
    without = found(fewer.sampled(HALF), cp.histogram("age", keys=list(range(100))))
    assert without[:99] == counts[:99] and counts[99] - without[99] in (0, 1)  # its order does not matter either


def test_parts_and_spreads_see_the_same_sample():
    people = cp.Table(
        pa.table({"who": list("abcdefghij") * 3, "city": ["x"] * 15 + ["y"] * 15, "age": list(range(30))}),
        unit="who",
        rows_per_unit=3,
        columns={"age": cp.number(0, 120)},
    )
    units = list("abcdefghij")
    who = {unit for unit in units if HALF.keeps(unit)}
    for view in (people.spread("city", 1).sampled(HALF), people.sampled(HALF).spread("city", 1)):
        assert found(view, cp.count()) > 0 and kept(view, units) == who
    assert kept(people.sampled(HALF).part("city", "x"), units) == who
    assert kept(people.part("city", "x").sampled(HALF), units) == who


def test_public_facts_are_those_of_the_whole_table():
    people = table(["ann", "bob"])
    assert people.sampled(HALF).prepare(cp.count()) == people.prepare(cp.count())
    assert people.sampled(HALF).relation == people.relation
    assert people.sampled(HALF).describe() == people.describe()


@pytest.mark.parametrize("rate", ["1/10", "0.35"])
def test_the_share_of_the_units_in_a_sample_is_its_rate(rate):
    """A false alarm has probability below 1e-9: 6.2 standard deviations on either side."""
    units, share = 20_000, Fraction(rate)
    sample = Sample.drawn(share, SeededCoins(5))
    n = found(table(list(range(units))).sampled(sample), cp.count())
    assert abs(n - units * share) < 6.2 * float(units * share * (1 - share)) ** 0.5


def test_coins_of_neighbouring_names_and_of_two_samples_are_independent():
    """Of 20,000 names, pairs agree as often as independent coins do, up to 6.2 standard deviations."""
    other = Sample("1/2", SampleKey(2**255 + 18))
    mine = [HALF.keeps(str(n)) for n in range(20_000)]
    theirs = [other.keeps(str(n)) for n in range(20_000)]
    for one, two in ((mine, mine[1:]), (mine, theirs)):
        agree = sum(a == b for a, b in zip(one, two, strict=False))
        assert abs(agree - 10_000) < 6.2 * 5000**0.5


def test_a_rate_is_rounded_down_and_never_up():
    third = Sample("1/3", SampleKey(1))
    assert Fraction(int(third.below, 16), 2**256) < Fraction(1, 3)
    assert int(Sample("1/4", SampleKey(1)).below, 16) == 2**254
    assert not Sample(Fraction(1, 2**300), SampleKey(1)).keeps("ann")


@pytest.mark.parametrize("rate", [0, 1, -1, "1.5"])
def test_a_rate_is_above_0_and_below_1(rate):
    with pytest.raises(InvalidParameter, match="above 0 and below 1"):
        Sample(rate, SampleKey(1))


def test_no_name_spelled_behind_its_length_begins_another():
    names = [length_prefixed(name) for name in ("", "1", "1:", "11", "ann", "anna")]
    assert not any(a != b and b.startswith(a) for a in names for b in names)


def test_the_key_is_written_only_where_it_is_sealed():
    import pickle

    from counterpoint.encoding import decode, encode

    for leak in (encode, pickle.dumps):
        with pytest.raises(SecretLeak):
            leak(HALF)
    assert decode(encode(HALF, sealed=True), Sample) == HALF
    assert "key=SampleKey(...)" in repr(HALF)


STREAMS = [
    lambda: cp.Stream(bound=9, unit="user", per_unit=2, neighbours="add-or-remove"),
    lambda: cp.Stream(
        fields={"n": cp.number(0, 9), "user": cp.text()}, unit="user", per_unit=2, neighbours="add-or-remove"
    ),
]


def test_a_unit_of_a_stream_keeps_its_coin_for_life():
    stream = STREAMS[0]()
    for start in (0, 50):
        stream.extend([1] * 100, units=[n if n % 2 else f"u{n}" for n in range(start, start + 100)])
    values = [reveal(update.private) for update in stream.sampled(HALF).items(0, 200)]
    assert values[50:100] == values[100:150]
    assert values[:50] == [int(HALF.keeps(str(n) if n % 2 else f"u{n}")) for n in range(50)]
    assert found(stream.sampled(HALF), cp.total()) == sum(values)


def test_requests_on_records_see_the_units_that_updates_come_from():
    stream = STREAMS[1]()
    stream.extend({"n": n % 10, "user": f"u{n % 70}"} for n in range(150))
    sampled = stream.sampled(HALF)
    values = [reveal(update.private) for update in sampled.of("n").items(0, 150)]
    assert found(sampled, cp.sum("n")) == sum(values) == found(sampled, cp.total("n"))
    assert found(sampled.part("user", "u3"), cp.count()) == 2 * HALF.keeps("u3")
    other = STREAMS[1]()
    other.extend({"n": n % 10, "user": f"u{n % 70}"} if n % 70 != 5 else None for n in range(150))
    rest = [reveal(update.private) for update in other.sampled(HALF).of("n").items(0, 150)]
    assert [v for n, v in enumerate(values) if n % 70 != 5] == [v for n, v in enumerate(rest) if n % 70 != 5]


def test_at_event_level_each_item_has_a_coin_by_its_place():
    stream = cp.Stream(fields={"n": cp.number(0, 9)}, neighbours="add-or-remove")
    stream.extend({"n": 1} for _ in range(200))
    values = [reveal(update.private) for update in stream.sampled(HALF).of("n").items(0, 200)]
    assert values == [int(HALF.keeps(str(place))) for place in range(200)]
    assert found(stream.sampled(HALF), cp.count()) == sum(values)


def test_what_cannot_be_sampled_says_why():
    replaced = table(["ann"], neighbours="replace")
    for source in (replaced, cp.Stream(bound=1)):
        with pytest.raises(NotCovered, match="by replacement, and there a sample hides nothing"):
            source.sampled(HALF)
    visits = cp.LiveTable(columns={"age": cp.number(0, 9)}, unit="who", key="id", rows_per_unit=1)
    with pytest.raises(NotCovered, match="not of a LiveTable"):
        visits.sampled(HALF)
    two = cp.Sources(people=table(["ann"]), others=table(["ann"]), unit="who")
    with pytest.raises(NotCovered, match="not of a Sources"):
        two.sampled(HALF)


def test_tables_in_use_are_not_dropped_and_the_others_are_the_latest():
    there = set()
    tables = KeptTables(lambda name, query: there.add(name), there.remove, most=2)
    with tables.using("a", ""):
        for name in "bcd":
            with tables.using(name, ""):
                assert {"a", name} <= there
        assert there == {"a", "d"}
    assert there == {"a", "d"}


def test_many_samples_by_many_threads_stay_what_they_are():
    units = list(range(500))
    people, samples = table(units), [Sample("1/2", SampleKey(n)) for n in range(20)]
    wanted = [sum(sample.keeps(str(n)) for n in units) for sample in samples]
    wrong = []

    def ask():
        for sample, n in zip(samples, wanted, strict=True):
            if found(people.sampled(sample), cp.count()) != n:
                wrong.append(n)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    names = people._bound.engine.run("SELECT COUNT(*) FROM duckdb_tables() WHERE table_name LIKE 'sample_%'")
    assert names[0][0] <= 8
