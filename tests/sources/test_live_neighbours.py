"""How far neighbouring live tables differ: every request, at every moment, at both levels, by brute force.

The rows come from the rules written out in `live_model`; `test_live_table` compares the real table with them. The
bounds are those that the real table declares, and each is reached.
"""

from collections import defaultdict

import pytest
from tests.sources.live_model import EVALUATED, STATES, draws, history, live, moments, norms, steps, without

import counterpoint as cp
from counterpoint.privacy.relations import OneWay, Steps
from counterpoint.privacy.secret import reveal

LEVELS = {
    "unit": {"protects": "unit"},
    "unit, three updates": {"protects": "unit", "updates": 3},
    "event": {"protects": "event"},
    "event, three updates": {"protects": "event", "updates": 3},
    "event, no unit": {"protects": "event", "unit": None},
}


PAIRS = [("a", -2), ("b", 5), ("b", -2), ("a", 5)]


def dispersed(rows):
    """The triple of a variance of n."""
    centred = [2 * record["n"] - 3 for *_, record in rows if record["n"] is not None]
    return sum(3 * y * y - 49 for y in centred), sum(14 * y for y in centred), 98 * len(centred)


def in_states(rows, evaluate):
    return sum((evaluate([row for row in rows if row[2]["state"] == state]) for state in STATES), ())


def in_pairs(rows):
    return tuple(sum((r["state"], r["n"]) == pair for *_, r in rows) for pair in PAIRS)


def units_in_states(rows):
    return tuple(len({row[0] for row in rows if row[2]["state"] == state}) for state in STATES)


COUNTED = cp.select(n=cp.count(), late=cp.count("n >= 0"), by="state")


def counted(rows):
    """Both counts have equal weights."""
    late = [row for row in rows if row[2]["n"] is not None and row[2]["n"] >= 0]
    return tuple(1000 * value for value in (*_states(rows), *_states(late)))


def _states(rows):
    return tuple(sum(row[2]["state"] == state for row in rows) for state in STATES)


GROUPED = {
    cp.count_distinct(by="state"): units_in_states,
    COUNTED: counted,
    cp.count(by=["state", "n"], keys=PAIRS): in_pairs,
    cp.mean("n", by="state"): lambda rows: in_states(rows, EVALUATED[cp.mean("n")]),
    cp.variance("n"): dispersed,
    cp.variance("n", by="state"): lambda rows: in_states(rows, dispersed),
}


def worlds(options, seed):
    """Random neighbours: the rows of both at each moment."""
    rng = draws(seed)
    updates = history(rng, rng.randint(1, 9))
    for world in (updates, without(updates, options["protects"], rng)):
        yield moments(world, 2, options.get("updates"), options.get("unit", "who") is not None)


@pytest.mark.parametrize("pairs", [2500, pytest.param(15_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("level", LEVELS)
def test_every_request_moves_by_at_most_its_sensitivity_at_every_moment_and_reaches_it(level, pairs):
    options = LEVELS[level]
    table = live(**options)
    evaluated = EVALUATED | GROUPED
    facts = {request: table.prepare(request) for request in evaluated}
    farthest = defaultdict(lambda: (0, 0, 0))
    for seed in range(pairs):
        ways = defaultdict(set)
        for one, other in zip(*worlds(options, seed), strict=True):
            for request, evaluate in evaluated.items():
                moves = steps(evaluate(other), evaluate(one))
                farthest[request] = tuple(map(max, farthest[request], norms(moves)))
                ways[request] |= {move > 0 for move in moves if move}
        for request, seen in ways.items():
            assert not facts[request].one_way or len(seen) <= 1, (seed, request)
    for request, found in farthest.items():
        bound = (facts[request].sensitivity, facts[request].squared, facts[request].each)
        assert found == bound, (request, found, bound)  # none is passed, and each is reached


def test_the_sensitivities_are_those_of_the_theory():
    def facts(table, request):
        prepared = table.prepare(request)
        return prepared.sensitivity, prepared.squared, prepared.each, prepared.one_way

    event, unit = live("event"), live("unit")
    for request, single in {
        cp.count(): (1, 1, 1),
        cp.sum("n"): (7, 49, 7),
        cp.histogram("state"): (2, 2, 1),
        cp.sum("n", by="state"): (10, 50, 7),
        cp.count_distinct(): (1, 1, 1),
        cp.keys("note"): (2, 2, 1),
    }.items():
        assert facts(event, request) == (*single, False)
        assert facts(live("event", unit=None), request) == (*single, False)
        l1, squared, each = single
        if request not in (cp.count_distinct(), cp.keys("note")):
            assert facts(live("event", updates=9), request) == (2 * l1, 4 * squared, 2 * each, False)
    assert facts(unit, cp.count()) == (2, 4, 2, True) and facts(unit, cp.sum("n")) == (10, 100, 10, False)
    assert facts(unit, cp.histogram("state")) == (2, 4, 2, True)


def test_only_at_unit_level_all_counts_move_one_way():
    assert live("unit").relation == OneWay(Steps()) and live("unit", updates=3).relation == OneWay(Steps(updates=3))
    assert live("event").relation == Steps() and live("event", updates=3).relation == Steps(updates=4)
    assert live("event", unit=None).relation == Steps(updates=2)


def test_with_keys_shared_between_units_one_unit_would_move_more_than_its_rows():
    """Why a key belongs to its unit: a unit of at most 2 rows would move a count by 3, by removing rows of others."""
    updates = [("put", "bob", 1, {}), ("put", "eve", 2, {}), ("put", "dan", 3, {})]
    updates += [("remove", "ann", key) for key in (1, 2, 3)]
    shared = [(kind, None, *rest) for kind, _, *rest in updates]
    gone = [*shared[:3], None, None, None]
    counts = [len(moments(world, 2, units=False)[-1]) for world in (shared, gone)]
    assert counts == [0, 3]
    table = live()
    for kind, who, key, *_ in updates:
        (table.put if kind == "put" else table.remove)({"who": who, "k": key})
    assert reveal(table.resolve(6, table.prepare(cp.count()))) == 3
