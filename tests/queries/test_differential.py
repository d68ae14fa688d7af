"""Every kind of request in all pairs of neighbouring worlds, on every engine (see `worlds`).

No pair moves an answer by more than its stated sensitivities, in L1, squared L2 and each coordinate; some pair moves it
as far. All engines give the same integers, the same public facts and the same refusals, whatever rows they hold.
"""

from functools import lru_cache

import pytest
from tests.engines import engines
from tests.queries import worlds
from tests.queries.worlds import ALL, CASES, FEW, ONE_OF_EACH
from tests.sources import people

import counterpoint as cp
from counterpoint.errors import InvalidRequest
from counterpoint.queries.sensitivity import Sensitivities

NEIGHBOURS = ["add-or-remove", "replace"]
APART = "its parts move farthest between different pairs, and the bounds of a select add up"
ENDS = "a row moves all candidates of one end, or of the other; the choice uses `each`, which is reached"
FEW_KEYS = "there are two keys, so a unit and its replacement that have rows in both share the cells"
UNREACHED = {
    **dict.fromkeys(((n, case) for n in NEIGHBOURS for case in CASES if case.request in worlds.BOTH_ENDS), ENDS),
    **dict.fromkeys(((n, worlds.Case(worlds.SELECT_BY)) for n in NEIGHBOURS), APART),
    ("replace", worlds.Case(worlds.SPREAD[1], ("s", 2, 1))): FEW_KEYS,
}
"""What no pair moves as far as is stated, and why: here the bounds are sound, and larger than need be."""


@lru_cache(None)
def in_duckdb(neighbours):
    """The public facts and the integers of every case, in every world."""
    table = worlds.bound("duckdb", neighbours)
    return {case: (case.source(table).prepare(case.request), worlds.answers(table, case)) for case in CASES}


def farthest(found, neighbours, cells, among=ALL):
    """The most that any pair of neighbours among these worlds is apart, by each norm."""
    moves = [people.moved(found[a], found[b], cells) for a, b in worlds.pairs(neighbours, among)]
    return Sensitivities(*(max(move[norm] for move in moves) for norm in range(3)))


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_no_pair_of_neighbours_moves_an_answer_farther_than_is_stated_and_one_moves_it_as_far(neighbours):
    for case, (facts, found) in in_duckdb(neighbours).items():
        moved, stated = farthest(found, neighbours, facts.cells), stated_by(facts)
        assert all(most <= bound for most, bound in zip(moved, stated, strict=True)), (case, moved, stated)
        assert moved.each == stated.each, (case, moved, stated)
        assert (moved == stated) is ((neighbours, case) not in UNREACHED), (case, moved, stated)


def stated_by(facts):
    """The sensitivities that mechanisms read off prepared requests."""
    return Sensitivities(facts.sensitivity, facts.squared, facts.each)


def test_one_query_for_all_worlds_answers_as_the_part_that_is_a_world_does():
    world = (3, len(worlds.GUESTS) - 1)
    with worlds.bound("duckdb", "replace", [world]) as table:
        for case, (_, found) in in_duckdb("replace").items():
            part = case.source(table).part("world", ALL.index(world))
            assert people.found(part, case.request) == found[world], case


def agrees(engine, neighbours, cases, among):
    """Compare an engine with DuckDB, world by world, and its own answers with what they may move by."""
    with worlds.bound(engine, neighbours, among) as table:
        for case in cases:
            facts, expected = in_duckdb(neighbours)[case]
            assert case.source(table).prepare(case.request) == facts
            found = worlds.answers(table, case, among)
            assert found == {world: expected[world] for world in among}, case
            moved = farthest(found, neighbours, facts.cells, among)
            assert all(most <= bound for most, bound in zip(moved, stated_by(facts), strict=True)), case


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_postgres_gives_the_same_integers_in_every_world(neighbours):
    agrees("postgres", neighbours, CASES, ALL)


def test_spark_gives_the_same_integers_for_one_request_of_every_kind():
    agrees("spark", "replace", ONE_OF_EACH, FEW)


@pytest.mark.long
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_spark_gives_the_same_integers_in_every_world(neighbours):
    agrees("spark", neighbours, CASES, ALL)


REFUSED = [
    cp.count("x > 'CA'"),
    cp.count("x / 0 > 1"),
    cp.count(by="z"),
    cp.sum("x / b"),
    cp.sum("s"),
    cp.sum("x * x * 1000000000000000000000 * 1000000000000000000000"),
    cp.mean("nowhere"),
    cp.median("at"),
    cp.quantile("x", 0.5, [0], by="z"),
    cp.minimum("z"),
    cp.histogram("at", edges=["2024-01-01", "2024-06-01"]),
    cp.keys("x"),
    cp.top("s", 3),
    cp.select(n=cp.count(), total=cp.sum("z"), by="s"),
]


def public(table):
    """What is public of every case, and the words of every refusal."""
    words = []
    for request in REFUSED:
        with pytest.raises(InvalidRequest) as refused:
            table.prepare(request)
        words.append(str(refused.value))
    return [case.source(table).prepare(case.request) for case in CASES], words, table.describe()


def alone(engine, bystanders, guest, neighbours):
    """One world in a table of its own, whose bystanders have more rows than are kept; a unit is one column here."""
    units = [*enumerate(worlds.BYSTANDERS[bystanders]), (50, worlds.GUESTS[-1]), (100, worlds.GUESTS[guest])]
    rows = [{"world": 0, "who": who, **one} for who, unit in units for one in unit]
    frame = worlds.pa.Table.from_pylist(rows, schema=worlds.SCHEMA)
    return engines.bound(engine, frame, "who", worlds.CAP, worlds.COLUMNS, neighbours=neighbours, key=worlds.KEY)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_neighbours_in_tables_of_their_own_have_the_same_public_facts_and_stay_within_them(neighbours):
    guests = (0, 1, 6, len(worlds.GUESTS) - 1)
    tables = {(3, guest): alone("duckdb", 3, guest, neighbours) for guest in guests}
    facts, *words = public(tables[3, 0])
    for table in tables.values():
        assert public(table) == (facts, *words)
    for case, prepared in zip(CASES, facts, strict=True):
        found = {world: people.found(case.source(table), case.request) for world, table in tables.items()}
        moved = farthest(found, neighbours, prepared.cells, list(tables))
        assert all(most <= bound for most, bound in zip(moved, stated_by(prepared), strict=True)), case


@pytest.mark.parametrize("engine", ["postgres", pytest.param("spark", marks=pytest.mark.long)])
def test_other_engines_have_the_same_public_facts_and_refusals_whatever_rows_they_hold(engine):
    expected = public(alone("duckdb", 0, 0, "replace"))
    for bystanders, guest in ((0, 0), (3, len(worlds.GUESTS) - 1)):
        with alone(engine, bystanders, guest, "replace") as table:
            assert public(table) == expected
