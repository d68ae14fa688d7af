"""What a source guarantees, in words: the same facts for every kind of source, and none of them from data."""

import pyarrow as pa
import pytest

import counterpoint as cp

COLUMNS = {"x": cp.number(0, 9)}
ROWS = pa.table({"x": [1, 2], "who": ["ann", "bob"]})
SOURCES = {
    "rows": (
        cp.Table(ROWS, unit=cp.each_row, columns=COLUMNS),
        ["row level", "that row were missing", "Every row counts"],
    ),
    "replaced rows": (
        cp.Table(ROWS, unit=cp.each_row, columns=COLUMNS, neighbours="replace"),
        ["that row were another one"],
    ),
    "units": (
        cp.Table(ROWS, "who", 7, COLUMNS),
        ["one who (user level)", "all rows of that who were missing", "At most 7 rows of each who count"],
    ),
    "replaced units": (
        cp.Table(ROWS, "who", 1, COLUMNS, "replace"),
        ["were others", "At most 1 row of each who counts"],
    ),
    "items": (cp.Stream(), ["event level", "that item had another value or were empty", "Every item counts"]),
    "users": (
        cp.Stream(fields=COLUMNS, unit="user", per_unit=7),
        ["one user (user level)", "had other values or were empty", "The first 7 items of each user count"],
    ),
    "present users": (
        cp.Stream(fields=COLUMNS, unit="user", per_unit=1, neighbours="add-or-remove"),
        ["the items of that user were empty", "The first item of each user counts"],
    ),
    "live units": (
        cp.LiveTable("person", 7, key="k", columns=COLUMNS, updates_per_unit=90),
        ["one person (user level)", "all updates of that person did nothing", "at most 7 rows", "the first 90 count"],
    ),
    "live updates": (
        cp.LiveTable("person", 7, key="k", columns=COLUMNS, protects="event"),
        ["event level", "that update did nothing", "at most 7 rows"],
    ),
    "live rows": (
        cp.LiveTable(key="k", columns=COLUMNS, protects="event"),
        ["event level", "that update did nothing", "Every update counts"],
    ),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_a_paragraph_says_who_is_protected_from_what_and_what_is_public_and_capped(kind):
    source, facts = SOURCES[kind]
    paragraph, declared = source.describe().split("\n\n")
    words = " ".join(paragraph.split("\n"))
    for fact in (*facts, "the budget of the session says how nearly", "Public are", "counts as the nearest bound"):
        assert fact in words, fact
    changing = not isinstance(source, cp.Table)
    assert ("when and in which order they arrive" in words) is changing
    assert ("The number of rows is not." in words) is not changing
    assert all(len(line) <= 100 for line in paragraph.split("\n"))
    assert not any(term in words for term in ("epsilon", "delta", "neighbour", "sensitivity", "None", "noise"))
    assert declared.split("\n")[0].startswith("unit: ")


def test_no_two_guarantees_read_alike():
    assert len({source.describe().split("\n\n")[0] for source, _ in SOURCES.values()}) == len(SOURCES)
