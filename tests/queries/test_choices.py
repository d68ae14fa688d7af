"""Keys are tallied by units and selected; scores of candidates say how near a quantile is."""

from fractions import Fraction
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sources import people

from counterpoint.encoding import decode, encode
from counterpoint.errors import InvalidParameter, InvalidRequest, SecretLeak
from counterpoint.measures import ApproxDP, PureDP
from counterpoint.mechanisms.additive import Laplace
from counterpoint.mechanisms.mechanism import Chosen
from counterpoint.mechanisms.partition_selection import PartitionSelection
from counterpoint.privacy.secret import Secret, Tally, reveal
from counterpoint.queries import aggregates as requests
from counterpoint.queries import quantiles as choices
from counterpoint.queries.several_quantiles import smoothed
from counterpoint.schema.columns import category, number, text
from counterpoint.schema.times import date
from counterpoint.schema.units import each_row
from counterpoint.session.session import Session
from counterpoint.sources.streams.stream import Stream
from counterpoint.sources.table import Table


def cities(**more):
    """900 people in Rome, 500 in Paris, one in Ys, all of whom have been to Rome."""
    rows = (
        [(i, "Rome") for i in range(900)]
        + [(i, "Paris") for i in range(500)]
        + [(7, "Ys"), (600, None), (601, "x" * 101)]
    )
    return Table(pa.table({"who": [r[0] for r in rows], "city": [r[1] for r in rows]}), "who", 3, **more)


def test_units_are_counted_once_at_each_value_and_long_values_are_left_out():
    assert people.found(cities(), choices.keys("city")) == Tally((("Rome", 900), ("Paris", 500), ("Ys", 1)))
    assert people.found(cities(), choices.keys("city", longest=3)) == Tally((("Ys", 1),))
    assert people.found(cities(), choices.keys("city", where="who < 8 AND city <> 'Ys'")) == Tally(
        (("Rome", 8), ("Paris", 8))
    )
    thrice = Table(pa.table({"who": [1, 1, 1, 2], "s": ["a", "a", "b", "a"]}), "who", 3)
    assert people.found(thrice, choices.keys("s")) == Tally((("a", 2), ("b", 1)))


def test_a_text_that_not_every_engine_could_hold_is_no_key():
    source = Table(pa.table({"s": ["a\0b", "fine", ""]}), unit=each_row)
    assert people.found(source, choices.keys("s")) == Tally((("fine", 1), ("", 1)))


@pytest.mark.parametrize(("neighbours", "times"), [("add-or-remove", 1), ("replace", 2)])
def test_a_tally_moves_by_one_at_as_many_values_as_a_unit_can_have(neighbours, times):
    source = cities(neighbours=neighbours)
    assert tuple(source.sensitivities(choices.keys("city"))) == (3 * times, 3 * times, 1)
    narrow = source.spread("city", 2)
    assert narrow.prepare(choices.keys("city")).sensitivity == 2 * times
    assert sum(n for _, n in people.found(narrow, choices.keys("city")).pairs) == 1400, "one of the three was cut"
    assert source.prepare(choices.keys("who")).sensitivity == times, "a unit has one name"


def test_a_session_selects_keys_and_asks_about_them():
    session = Session(cities(), within=ApproxDP(4, 1e-5))
    selected = session.launch(PartitionSelection(2, 1e-6)).ask(choices.keys("city"))
    assert selected == ("Paris", "Rome")
    counts = session.launch(Laplace(1)).ask(requests.histogram("city", keys=selected))
    assert abs(counts[0] - 500) < 200 and abs(counts[1] - 900) < 200
    assert session.loss == ApproxDP(3, 1e-6) or session.loss.implies(ApproxDP(3, 1e-5))
    few = session.launch(PartitionSelection(1, 1e-6)).ask(choices.keys("city", most=1))
    assert few == ("Paris",)


def test_a_part_or_a_delegate_selects_keys_as_well():
    session = Session(cities(columns={"city": category(["Rome", "Ys"])}), within=ApproxDP(9, 1e-5))
    part = session.partition("city", k=3, within=ApproxDP(2, 1e-6))["Rome"]
    whole = part.launch(PartitionSelection(2, 1e-7)).ask(choices.keys("who"))
    assert whole == (), "everybody is there once"
    colleague = Session(cities(), within=ApproxDP(9, 1e-5)).delegate(ApproxDP(2, 1e-6))
    assert colleague.launch(PartitionSelection(2, 1e-7)).ask(choices.keys("city")) == ("Paris", "Rome")


def test_keys_of_dates_and_whole_numbers_come_back_as_a_histogram_takes_them():
    rows = {"d": ["2020-02-29"] * 200 + ["1999-01-01"] * 300 + ["oops"] * 400, "n": [-5] * 450 + [7] * 450}
    source = Table(pa.table(rows), unit=each_row, columns={"d": date("2000-01-01", "2030-01-01")})
    session = Session(source, within=ApproxDP(9, 1e-5))
    days = session.launch(PartitionSelection(2, 1e-6)).ask(choices.keys("d"))
    assert days == ("2000-01-01", "2020-02-29"), "a day before the first declared one is the first"
    assert people.found(source, requests.histogram("d", keys=days)) == (300, 200)
    assert session.launch(PartitionSelection(2, 1e-6)).ask(choices.keys("n")) == (-5, 7)


def test_asking_the_wrong_mechanism_or_source_for_keys_changes_nothing():
    session = Session(cities(), within=ApproxDP(4, 1e-5))
    noisy, select = session.launch(Laplace(1)), session.launch(PartitionSelection(1, 1e-6))
    with pytest.raises(InvalidRequest):
        noisy.ask(choices.keys("city"))
    for request in (requests.count(), requests.histogram("city", keys=["Rome"]), choices.quantile("city", 0.5, [1])):
        with pytest.raises(InvalidRequest):
            select.ask(request)
    assert not noisy.halted and not select.halted, "refused before anything was written"
    with pytest.raises(InvalidRequest):
        Session(Stream(bound=1), within=ApproxDP(4, 1e-5)).launch(PartitionSelection(1, 1e-6)).ask(choices.keys("city"))
    huge = Table(pa.table({"who": [1], "s": ["a"]}), "who", 10**6)
    with pytest.raises(InvalidRequest):
        Session(huge, within=ApproxDP(4, 1e-5)).launch(PartitionSelection(1, 1e-6)).ask(choices.keys("s"))


def test_a_tally_from_a_table_is_opened_by_nobody_else():
    source = cities()
    secret = source.resolve(source.pin(), source.prepare(choices.keys("city")))
    assert isinstance(secret, Secret) and "Rome" not in repr(secret)
    with pytest.raises(SecretLeak):
        reveal(secret)


@pytest.mark.parametrize(
    ("request_", "hint"),
    [
        (choices.keys("state"), "are declared, so there is nothing to select"),
        (choices.keys("vip"), "are declared, so there is nothing to select"),
        (choices.keys("income"), "edges="),
        (choices.keys("nope"), "no column 'nope'"),
        (choices.quantile("zip", 0.5, [1]), "only a number or a date"),
        (choices.quantile("income", 0.5, ["2000-01-01"]), "give numbers"),
        (choices.quantile("born", 0.5, [1]), "give dates"),
        (requests.ranks("born", [1]), "give dates"),
        (requests.histogram("income", edges=["2000-01-01", "2001-01-01"]), "give numbers"),
        (requests.sum("born"), "only a number with declared bounds"),
        (requests.mean("born"), "only a number with declared bounds"),
    ],
)
def test_a_choice_that_does_not_fit_the_declaration_is_refused_with_a_hint(request_, hint):
    with pytest.raises(InvalidRequest) as refused:
        people.table({}).prepare(request_)
    assert hint in str(refused.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: choices.keys(None),
        lambda: choices.keys("s", longest=0),
        lambda: choices.keys("s", longest=10_001),
        lambda: choices.keys("s", longest="long"),
        lambda: choices.keys("s", longest=True),
        lambda: choices.keys("s", most=0),
        lambda: choices.keys("s", most=10_001),
        lambda: choices.keys("s", where=5),
        lambda: choices.quantile("x", -0.1, [1]),
        lambda: choices.quantile("x", 1.1, [1]),
        lambda: choices.quantile("x", float("nan"), [1]),
        lambda: choices.quantile("x", "half", [1]),
        lambda: choices.quantile("x", Fraction(1, 10**7), [1]),
        lambda: choices.quantile("x", 0.5, []),
        lambda: choices.quantile("x", 0.5, [2, 1]),
        lambda: choices.quantile("x", 0.5, [1, "2000-01-01"]),
        lambda: choices.quantile("x", 0.5, ["2000-02-30"]),
        lambda: requests.ranks("x", ["2000-01-02", "2000-01-01"]),
    ],
)
def test_a_malformed_choice_is_refused_when_it_is_made(make):
    with pytest.raises(InvalidRequest):
        make()


def nearest(values, q, candidates):
    """By the definition: how far q n is from the ranks that the candidate has."""
    n = len(values)
    for c in candidates:
        below, upto = sum(v < c for v in values), sum(v <= c for v in values)
        yield -max(Fraction(0), below - q * n, q * n - upto)


@settings(max_examples=40)
@given(
    st.lists(st.integers(0, 9), max_size=8),
    st.sampled_from([Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(2, 3), Fraction(1)]),
)
def test_scores_are_the_distances_by_the_definition(values, q):
    source = Table(pa.table({"x": pa.array(values, pa.int64())}), unit=each_row, columns={"x": number(0, 9)})
    candidates = [-1, 0, Fraction(5, 2), 4, 5, 9, 12]
    request = choices.quantile("x", q, candidates)
    assert source.prepare(request).in_units(people.found(source, request)) == tuple(nearest(values, q, candidates))


def test_the_best_score_is_the_median_even_where_all_values_are_equal():
    source = Table(pa.table({"x": [5] * 9}), unit=each_row, columns={"x": number(0, 9)})
    scores = people.found(source, choices.quantile("x", 0.5, range(10)))
    assert scores.index(max(scores)) == 5 and scores.count(max(scores)) == 1


def test_the_number_of_a_candidate_becomes_the_candidate():
    source = people.table({})
    prepared = source.prepare(choices.quantile("income", 0.5, [0, 0.5, 3]))
    assert [prepared.in_units(i) for i in range(3)] == [0, Fraction(1, 2), 3]
    assert prepared.in_units(Chosen(1)) == Fraction(1, 2) and prepared.in_units("none") == "none"
    assert prepared.in_units((-1, 0, 4)) == (Fraction(-1, 2), 0, 2)
    for number_ in (3, -1):
        with pytest.raises(InvalidRequest):
            prepared.in_units(number_)
    assert source.prepare(choices.quantile("born", 0.5, ["1999-12-31"])).in_units(0) == "1999-12-31"
    assert decode(encode(prepared), type(prepared)) == prepared


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=7))
def test_ranks_are_made_to_ascend_by_the_nearest_vector_that_does(ranks):
    rising = smoothed([Fraction(rank) for rank in ranks])
    assert rising == sorted(rising) and sum(rising) == sum(ranks)
    blocks = {value: [r for r, v in zip(ranks, rising, strict=True) if v == value] for value in rising}
    for value, block in blocks.items():
        assert sum(block) == value * len(block), "every level is the mean of what it stands for"
        for i in range(
            1, len(block)
        ):  # and could not be split into two that ascend (optimality, by the KKT conditions)
            assert sum(block[:i]) * len(block) >= sum(block) * i


def test_a_quantile_is_read_off_ranks():
    candidates = [0, 10, 20, 30]
    assert choices.quantile_from((1, 5, 9, 10), candidates, 0.5) == 10
    assert choices.quantile_from((1, 5, 9, 10), candidates, 1) == 30
    assert choices.quantile_from((-4, -3, -2, -1), candidates, 0.5) == 30
    assert choices.quantile_from((Fraction(1, 2),), ["only"], 0) == "only"
    for ranks, among, q in (((), [], 0.5), ((1, 2), [1], 0.5), ((float("nan"),), [1], 0.5)):
        with pytest.raises(InvalidParameter):
            choices.quantile_from(ranks, among, q)
    with pytest.raises(InvalidRequest):
        choices.quantile_from((1,), [1], 2)


def test_noisy_ranks_and_noisy_scores_find_a_median():
    source = Table(pa.table({"x": list(range(1001))}), unit=each_row, columns={"x": number(0, 1000)})
    session = Session(source, within=PureDP(40))
    candidates = range(0, 1001, 50)
    ranks = session.launch(Laplace(20)).ask(requests.ranks("x", candidates))
    assert abs(choices.quantile_from(ranks, candidates, 0.5) - 500) <= 100
    scores = session.launch(Laplace(20)).ask(choices.quantile("x", 0.5, candidates))
    assert abs(candidates[scores.index(max(scores))] - 500) <= 100


def test_columns_that_are_texts_by_declaration_have_keys_too():
    source = Table(pa.table({"n": [3, 3, 4]}), unit=each_row, columns={"n": text()})
    assert people.found(source, choices.keys("n")) == Tally((("3", 2), ("4", 1)))


def test_the_candidates_of_a_quantile_follow_from_the_declared_bounds():
    source = people.table({})
    incomes = source.prepare(choices.median("income"))
    assert incomes.candidates == tuple(Fraction(step, 4) for step in range(-8, 13))
    assert incomes == source.prepare(choices.median("income")) and incomes.each == 2, "in halves of two rows"
    tokens = source.prepare(choices.median("tokens")).candidates
    assert len(tokens) == 1000 and (tokens[0], tokens[-1]) == (-(2**62), 2**62)
    assert all(0 <= (b - a) - 2**63 // 999 <= 1 for a, b in pairwise(tokens))
    born = source.prepare(choices.median("born"))
    assert born.dates and (born.in_units(0), born.in_units(999)) == ("1990-01-01", "2010-12-31")


def test_given_candidates_are_stored_and_others_follow_from_the_bounds():
    assert encode(choices.median("x", [1, 2])) == (
        b'{"type":"Quantile/1","column":"x","q":"1/2","candidates":["1/1","2/1"],"where":null,"dates":false,'
        b'"by":null,"keys":null}'
    )
    assert b'"candidates":null' in encode(choices.median("x"))


@pytest.mark.parametrize("column", ["state", "zip", "age"])
def test_a_median_needs_declared_bounds(column):
    with pytest.raises(InvalidRequest, match="only a number or a date with declared bounds"):
        people.table({}).prepare(choices.median(column))
