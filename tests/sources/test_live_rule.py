"""Which updates of a live table take effect, and the lemma on which its sensitivities rest: all short histories."""

from itertools import product

import pytest

from counterpoint.sources.streams.live_updates import NEW, UpdateRule

LETTERS = [
    None,
    *((True, key, value) for key, value in product(range(3), range(2))),
    *((False, key) for key in range(3)),
]


def moments(updates, most):
    """The rows of one unit after each update, as pairs of a key and a value."""
    rows, values, found = UpdateRule(most), {}, []
    for slot, update in enumerate(updates):
        replaced = None if update is None else rows.apply("ann", update, slot)
        if replaced is not None:
            assert (replaced == NEW) == (update[1] not in values)
            if update[0]:
                values[update[1]] = update[2]
            else:
                del values[update[1]]
        assert len(values) <= most
        found.append(set(values.items()))
    return found


@pytest.mark.parametrize("most", [1, 2])
def test_without_one_update_each_world_has_at_most_one_row_that_the_other_has_not(most):
    """At every moment of every history of four updates under three keys, after a first row or none."""
    worst = set()
    for tail in product(LETTERS, repeat=3):
        for first in LETTERS[1:]:
            for before in ((), ((True, 0, 0),)):
                pairs = zip(moments((*before, first, *tail), most), moments((*before, None, *tail), most), strict=True)
                worst |= {(len(one - other), len(other - one)) for one, other in pairs}
    assert worst == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_a_unit_is_capped_by_its_own_rows_alone():
    rows = UpdateRule(most=1)
    assert [rows.apply(who, (True, "k"), slot) for slot, who in enumerate(["ann", "bob", "ann", "eve"])] == [
        NEW,
        NEW,
        0,
        NEW,
    ]
    assert rows.apply("ann", (True, "other"), 4) is None and rows.apply("bob", (False, "other"), 5) is None


def test_what_found_no_room_does_not_come_back():
    rows = UpdateRule(most=1)
    assert [rows.apply("ann", (True, key), slot) for slot, key in enumerate("ab")] == [NEW, None]
    assert rows.apply("ann", (False, "a"), 2) == 0 and rows.apply("ann", (False, "b"), 3) is None


def test_units_without_rows_take_no_memory():
    rows = UpdateRule(most=2)
    for unit in range(100):
        rows.apply(unit, (True, 1), 2 * unit)
        rows.apply(unit, (False, 1), 2 * unit + 1)
    assert rows._of == {}
