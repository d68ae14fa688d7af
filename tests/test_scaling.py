"""The simulation behind the guide's page on scaling: it agrees with what can be computed, and the page with it."""

from pathlib import Path

import pytest
from bench.scaling import ON_THIS_PAGE, WORKERS, Layout, Parameters, layouts, simulate, table

PAGE = (Path(__file__).parents[1] / "docs" / "guide" / "scaling.md").read_text(encoding="utf-8")
SOME = Parameters(cpu=0.001, commit=0.01, each=0.0005)


def test_one_worker_waits_for_its_cpu_and_two_commits():
    one = simulate(SOME, Layout(1))
    assert one.median == pytest.approx(0.022) and one.per_second == pytest.approx(1 / 0.022) and one.per_commit == 1


@pytest.mark.parametrize("workers", [10, 100])
@pytest.mark.parametrize("replicas", [1, 4, 16])
def test_without_groups_a_budget_is_as_fast_as_its_lock(workers, replicas):
    alone = simulate(SOME, Layout(workers, replicas, grouped=False))
    assert alone.per_second == pytest.approx(1 / 0.021, rel=0.03) and alone.per_commit == 1


def test_without_a_commit_and_with_one_process_the_cpu_decides():
    assert simulate(Parameters(0.001, 0, 0), Layout(50)).per_second == pytest.approx(1000, rel=0.01)


def test_ledgers_that_share_nothing_are_each_as_fast_as_one():
    one, ten = simulate(SOME, Layout(20)), simulate(SOME, Layout(200, 10, 10, routed=True))
    assert ten.per_second == pytest.approx(10 * one.per_second) and ten.median == pytest.approx(one.median)


def test_each_worker_gets_all_its_answers_whatever_the_layout():
    for layout in layouts(37).values():
        rate = simulate(SOME, layout, asks=3)
        assert rate.per_second > 0 and rate.median >= 0.022 - 1e-9


@pytest.mark.parametrize("workers", WORKERS)
def test_more_processes_do_not_make_one_budget_faster(workers):
    rates = [simulate(ON_THIS_PAGE["PostgreSQL"], Layout(workers, replicas), 10).per_second for replicas in (1, 4, 16)]
    assert rates[2] < rates[0] and rates[1] < 1.05 * rates[0]


def test_the_page_has_the_numbers_of_the_simulation():
    lines = list(table(ON_THIS_PAGE["PostgreSQL"]))[2:]
    assert all(line in PAGE for line in lines)
    assert f"{simulate(ON_THIS_PAGE['SQLite'], Layout(1000)).per_second:,.0f} asks a second at 1,000 workers" in PAGE
    measured = ON_THIS_PAGE["PostgreSQL"]
    assert f"{1e6 * measured.cpu:.0f} us" in PAGE and f"{1e3 * measured.commit:g} ms" in PAGE
    assert f"{1e6 * measured.each:.0f} us more" in PAGE
