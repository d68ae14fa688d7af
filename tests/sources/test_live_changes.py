"""What mechanisms that follow a request of a live table receive: the change of its answer with each update."""

from collections import defaultdict
from itertools import pairwise

import pytest
from tests.sources.live_model import EVALUATED, draws, history, live, moments, norms, send, steps, without

import counterpoint as cp
from counterpoint.errors import InvalidRequest, RelationMismatch
from counterpoint.privacy.secret import reveal

FOLLOWED = [
    cp.count(),
    cp.count("n >= 3"),
    cp.sum("n"),
    cp.sum("n", by="state"),
    cp.histogram("state"),
    cp.ranks("n", [0, 1, 2]),
]
LEVELS = {
    "unit, three updates": {"protects": "unit", "updates": 3, "rows": 1},
    "event, three updates": {"protects": "event", "updates": 3, "rows": 1},
    "event, no unit": {"protects": "event", "unit": None},
}


def changes(request, updates, options):
    """How the answer changes with each update, by the rules written out."""
    rows = moments(updates, options.get("rows", 2), options.get("updates"), options.get("unit", "who") is not None)
    answers = [EVALUATED[request](at) for at in rows]
    return [steps(before, after) for before, after in pairwise(answers)]


@pytest.mark.parametrize("level", LEVELS)
def test_changes_differ_at_as_many_updates_and_by_as_much_as_the_relation_says(level):
    """And somewhere as many, and as much: by brute force over neighbouring histories."""
    options = LEVELS[level]
    table = live(**options)
    places, farthest = defaultdict(int), defaultdict(lambda: (0, 0))
    for seed in range(4000):
        rng = draws(seed)
        updates = history(rng, 9)
        other = without(updates, options["protects"], rng)
        for request in FOLLOWED:
            pairs = zip(changes(request, updates, options), changes(request, other, options), strict=True)
            moves = [norms([a - b for a, b in zip(one, two, strict=True)])[:2] for one, two in pairs]
            places[request] = max(places[request], sum(l1 > 0 for l1, _ in moves))
            for move in moves:
                farthest[request] = tuple(map(max, farthest[request], move))
    for request in FOLLOWED:
        relation = table.of(request).relation
        assert places[request] == relation.updates, request
        assert farthest[request] == (relation.bound, relation.squared), request


def test_a_cap_on_rows_does_not_bound_how_often_they_change():
    """With one update left out, every later update of a unit that has no room may do something else."""
    options = {"protects": "event", "rows": 1}
    most = 0
    for seed in range(3000):
        rng = draws(seed)
        updates = history(rng, 9)
        pairs = zip(*(changes(cp.count(), w, options) for w in (updates, without(updates, "event", rng))), strict=True)
        most = max(most, sum(one != two for one, two in pairs))
    assert most > 4
    for table in (live(), live("event")):
        with pytest.raises(RelationMismatch, match="updates_per_unit"):
            table.of(cp.count())


@pytest.mark.parametrize("options", LEVELS.values(), ids=LEVELS)
def test_the_updates_of_a_followed_request_are_the_changes_of_its_answer(options):
    for seed in range(150):
        table, updates = live(**options), history(draws(seed), 9)
        for update in updates:
            send(table, update)
        for request in FOLLOWED:
            source = table.of(request)
            sent = [reveal(update.private) for update in source.items(0, table.pin())]
            listed = [list(item) if isinstance(item, tuple) else [item] for item in sent]
            assert listed == changes(request, updates, options)
            assert source.blank_update().private.width == source.dimensions
            assert (source.dimensions is not None) == isinstance(sent[0], tuple)


def test_a_part_sees_rows_come_and_go():
    table = live(updates=9)
    for state in ("a", "b", "b"):
        table.put({"who": "ann", "k": 1, "state": state})
    a, b = (table.part("state", state).of(cp.count()) for state in "ab")
    assert [[reveal(u.private) for u in part.items(0, 3)] for part in (a, b)] == [[1, -1, 0], [0, 1, 0]]
    assert [reveal(u.private) for u in a.items(1, 2)] == [-1]


def test_only_sums_over_rows_are_followed_and_only_by_a_request():
    table = live(updates=9)
    for request in (cp.mean("n"), cp.count_distinct(), cp.quantile("n", "0.5", [0]), cp.keys("note")):
        with pytest.raises(InvalidRequest, match="cannot be followed"):
            table.of(request)
    for other in ("n", ["n"], 3):
        with pytest.raises(InvalidRequest, match="follow requests"):
            table.of(other)
    with pytest.raises(InvalidRequest, match="already"):
        table.of(cp.count()).of(cp.count())
    with pytest.raises(InvalidRequest, match="use the original"):
        table.of(cp.count()).put(None)
    assert table.of() is table and table.items(0, 0) == () and table.blank_update() is None


def test_the_grid_of_a_change_is_that_of_the_column():
    table = cp.LiveTable("who", 1, key="k", columns={"paid": cp.number(0, 10, step="0.5")}, updates_per_unit=3)
    session = cp.Session(table, within=cp.PureDP(10**7))
    counter = session.launch(cp.Counter(10**5), of=cp.sum("paid"))
    table.put({"who": "ann", "k": 1, "paid": 2.5})
    assert counter.ask() == 2.5
