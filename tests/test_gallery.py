"""The gallery: its tasks run, take no more lines than the best peer's, and its mistakes are refused with help."""

import re

import pytest
from docs import make_gallery

OURS = make_gallery.tasks("with_counterpoint.py")
PEERS = [make_gallery.tasks(file) for file in make_gallery.PEERS.values()]
MISTAKES = make_gallery.script("mistakes.py")[1:]


@pytest.fixture(scope="module")
def printed():
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    yield make_gallery.run(make_gallery.script("with_counterpoint.py"))
    plt.close("all")


@pytest.fixture(scope="module")
def refused():
    return make_gallery.refusals()


def test_every_task_of_the_gallery_runs_and_is_near_the_truth(printed):
    assert list(printed) == list(range(15))
    assert 336_400 < int(printed[1].split()[0]) < 337_100, "eleven times the stated error away: once in e^36"
    assert "UA" in printed[2] and "error" in printed[2]
    assert "UA" in printed[3]
    assert re.findall(r"\b(ORD|ATL|LAX|BOS|MCO)\b", printed[4]) == ["ORD", "ATL", "LAX", "BOS", "MCO"]
    assert len(re.findall(r"2013-\d\d-\d\d", printed[5])) == 3
    assert "Verdict.HOLDS" in printed[11].splitlines()[0] and "Verdict.REFUTED" in printed[11].splitlines()[1]
    first, again = printed[12].split("\n\n")
    assert first == again and "PureDP(0.5)" in first
    assert "UA" in printed[13] and "±" in printed[13]


@pytest.mark.parametrize("number", OURS, ids=lambda number: OURS[number].title)
def test_no_task_takes_more_lines_than_with_the_best_peer(number):
    possible = [theirs[number].lines for theirs in PEERS if make_gallery.is_possible(theirs[number])]
    assert OURS[number].lines <= min(possible, default=OURS[number].lines)


def test_the_peers_have_the_same_tasks():
    for theirs in PEERS:
        assert {number: cell.title for number, cell in theirs.items()} == {n: cell.title for n, cell in OURS.items()}


def test_there_are_twenty_mistakes_and_the_page_counts_them():
    assert [mistake.number for mistake in MISTAKES] == list(range(1, 21))


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.title)
def test_a_mistake_is_refused_with_what_was_asked_the_limit_and_what_would_work(mistake, refused):
    import counterpoint as cp

    _, refusal = refused[mistake.number]
    assert isinstance(refusal, cp.CounterpointError)
    says = mistake.notes.removeprefix("says: ").split(" | ")
    assert len(says) >= 2 and not [part for part in says if part not in str(refusal)], str(refusal)


def test_the_page_is_that_of_the_scripts(printed, refused):
    page = make_gallery.PAGE.read_text(encoding="utf-8")
    again = make_gallery.written(printed, refused)
    assert make_gallery.without_outputs(page) == make_gallery.without_outputs(again), "python -m docs.make_gallery"
