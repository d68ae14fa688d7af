"""A live table by the book: every rule written out on lists and dictionaries, to compare the real one with.

An update is None, ("put", unit, key, record) or ("remove", unit, key).
"""

import random
from fractions import Fraction

import counterpoint as cp

STATES = ["a", "b", "c"]
COLUMNS = {"state": cp.category(STATES), "n": cp.number(-2, 5), "note": cp.text()}
UNITS, KEYS, NOTES = ["ann", "bob"], [1, 2, "x"], ["w", "x", "y", "z"]
NUMBERS = [[-2], [5], [-2, 5], [-2, 0, 5, None]]


def draws(seed):
    """What is tried, the same every time."""
    return random.Random(seed)  # noqa: S311 - which histories are tried is no secret


def live(protects="unit", rows=2, updates=None, unit="who"):
    """A real one."""
    return cp.LiveTable(
        unit, None if unit is None else rows, key="k", columns=COLUMNS, protects=protects, updates_per_unit=updates
    )


def send(table, update, id=None):
    """One update to a real one."""
    if update is None:
        return table.put(None, id=id)
    kind, who, key, *record = update
    named = {"k": key} if table.log.unit is None else {"who": who, "k": key}
    return table.put({**named, **record[0]}, id=id) if kind == "put" else table.remove(named, id=id)


def history(rng, length):
    """Random updates: more puts than removals, and few keys and values, so that they meet."""
    if rng.random() < 0.3:
        others = [_put(rng, key, [-2, 5], UNITS[1:], (STATES, NOTES)) for key in KEYS[: rng.randint(0, 2)]]
        dense = [_put(rng, rng.choice(KEYS[:2]), [-2, 5], UNITS[:1], (STATES[:2], NOTES)) for _ in range(4)]
        return [*others, *dense]
    keys, numbers = KEYS[: rng.randint(2, 3)], rng.choice(NUMBERS)
    return [_update(rng, rng.choice(keys), numbers) for _ in range(length)]


def _update(rng, key, numbers):
    if rng.random() < 0.05:
        return None
    if rng.random() < 0.3:
        return ("remove", rng.choice(UNITS), key)
    return _put(rng, key, numbers, UNITS, ([*STATES, None], [*NOTES, None]))


def _put(rng, key, numbers, units, texts):
    states, notes = texts
    record = {"state": rng.choice(states), "n": rng.choice(numbers), "note": rng.choice(notes)}
    return ("put", rng.choice(units), key, record)


def without(updates, protects, rng):
    """A neighbour: the updates of one unit, or one update, do nothing."""
    if protects == "event":
        place = rng.randrange(len(updates))
        return [None if number == place else update for number, update in enumerate(updates)]
    return [None if update is not None and update[1] == "ann" else update for update in updates]


def moments(updates, rows, most=None, units=True):
    """The rows after 0, 1, 2, ... updates: a list of (unit, key, record)."""
    present, seen, found = [], {}, [[]]
    for update in updates:
        if update is not None:
            kind, who, key, *record = update
            who = who if units else key  # without units, every row is its own
            seen[who] = seen.get(who, 0) + 1
            if most is None or seen[who] <= most:
                there = [row for row in present if row[:2] == (who, key)]
                others = [row for row in present if row[:2] != (who, key)]
                room = sum(row[0] == who for row in present) < rows
                if kind == "remove":
                    present = others
                elif there or room:
                    present = [*others, (who, key, record[0])]
        found.append(list(present))
    return found


def _numbers(rows):
    return [record["n"] for _, _, record in rows if record["n"] is not None]


def _by_state(rows, value):
    return tuple(sum(value(record) for _, _, record in rows if record["state"] == state) for state in STATES)


def _quantile(rows, q, candidates):
    numbers, (u, v) = _numbers(rows), q.as_integer_ratio()
    target = u * len(numbers)

    def score(candidate):
        below, upto = sum(n < candidate for n in numbers), sum(n <= candidate for n in numbers)
        return -max(0, v * below - target, target - v * upto)

    return tuple(map(score, candidates))


def _keys(rows):
    pairs = {(who, record["note"]) for who, _, record in rows if record["note"] is not None}
    return {note: sum(found == note for _, found in pairs) for note in {note for _, note in pairs}}


EVALUATED = {
    cp.count(): len,
    cp.count("n >= 3"): lambda rows: sum(n >= 3 for n in _numbers(rows)),
    cp.count("NOT (state = 'a' OR n = 0)"): lambda rows: sum(
        r["state"] not in ("a", None) and r["n"] not in (0, None) for *_, r in rows
    ),
    cp.count_distinct(): lambda rows: len({who for who, *_ in rows}),
    cp.count_distinct("state = 'a'"): lambda rows: len({who for who, _, r in rows if r["state"] == "a"}),
    cp.sum("n"): lambda rows: sum(_numbers(rows)),
    cp.sum("n", by="state"): lambda rows: _by_state(rows, lambda r: r["n"] or 0),
    cp.mean("n"): lambda rows: (2 * sum(_numbers(rows)) - 3 * len(_numbers(rows)), 7 * len(_numbers(rows))),
    cp.histogram("state"): lambda rows: _by_state(rows, lambda r: 1),
    cp.histogram("n", edges=[-2, 0, 5]): lambda rows: (
        sum(n < 0 for n in _numbers(rows)),
        sum(n >= 0 for n in _numbers(rows)),
    ),
    cp.ranks("n", [0, 1, 2]): lambda rows: tuple(sum(n <= c for n in _numbers(rows)) for c in (0, 1, 2)),
    cp.quantile("n", "0.5", [0, 1, 2]): lambda rows: _quantile(rows, Fraction(1, 2), (0, 1, 2)),
    cp.quantile("n", "0.25", [0, 1, 2]): lambda rows: _quantile(rows, Fraction(1, 4), (0, 1, 2)),
    cp.keys("note"): _keys,
}
"""What each request answers, row by row."""


def steps(left, right):
    """The differences of two answers, coordinate by coordinate."""
    if isinstance(left, dict):
        return [right.get(key, 0) - left.get(key, 0) for key in {*left, *right}]
    pairs = zip(left, right, strict=True) if isinstance(left, tuple) else [(left, right)]
    return [b - a for a, b in pairs]


def norms(moves):
    """L1, squared L2 and the maximum norm."""
    return sum(map(abs, moves)), sum(x * x for x in moves), max(map(abs, moves), default=0)
