"""Writes people.parquet: 20,000 made-up people, the same every time. No such person exists.

Run it with `python -m counterpoint.datasets.make_people` after a change; the file is committed.
"""

import csv
import tempfile
from fractions import Fraction
from pathlib import Path

import duckdb

from counterpoint.datasets.made_up_people import STATES
from counterpoint.randomness.samplers import version_1
from counterpoint.randomness.seeded import SeededCoins

PEOPLE = 20_000


def people() -> list[tuple[int, str, int, int]]:
    """(person_id, state, age, income) of everybody."""
    coins = SeededCoins(20261115)
    urn = [state for state, weight in STATES.items() for _ in range(weight)]
    ages = version_1.discrete_gaussian(Fraction(18**2), PEOPLE, coins._stream)  # so that they stay who they are
    incomes = coins.discrete_laplace(18_000, size=PEOPLE)
    return [
        (number, urn[coins.integer(len(urn))], min(max(42 + int(age), 0), 100), max(45_000 + int(income), 0))
        for number, (age, income) in enumerate(zip(ages, incomes, strict=True))
    ]


def main() -> None:
    """Write the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(("person_id", "state", "age", "income"))
            writer.writerows(people())
        target = Path(__file__).with_name("people.parquet")
        duckdb.sql(f"COPY (FROM read_csv('{path}')) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")


if __name__ == "__main__":
    main()
