"""Draws 20,000 made-up people anew and writes them to people.parquet. No such person exists.

The committed file has other people of the same laws, whom an earlier sampler drew. Running
`python -m docs.make_people` replaces them, and with them the numbers in the guide's examples.
"""

import csv
import tempfile
from fractions import Fraction
from pathlib import Path

import duckdb

import counterpoint as cp
from counterpoint.coins.secure import SeededCoins
from counterpoint.datasets.tables import STATES

PEOPLE = 20_000


def people() -> list[tuple[int, str, int, int]]:
    """(person_id, state, age, income) of everybody."""
    coins = SeededCoins(20261115)
    urn = [state for state, weight in STATES.items() for _ in range(weight)]
    ages = coins.discrete_gaussian(Fraction(18**2), size=PEOPLE)
    incomes = coins.discrete_laplace(18_000, size=PEOPLE)
    return [
        (number, urn[coins.integer(len(urn))], min(max(42 + int(age), 0), 100), max(45_000 + int(income), 0))
        for number, (age, income) in enumerate(zip(ages, incomes, strict=True))
    ]


def write(target: Path) -> None:
    """Write them to this file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(("person_id", "state", "age", "income"))
            writer.writerows(people())
        duckdb.sql(f"COPY (FROM read_csv('{path}')) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")


if __name__ == "__main__":
    write(cp.datasets.people())
