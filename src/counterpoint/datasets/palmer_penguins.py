"""344 penguins of three species near Palmer Station, Antarctica, from the package palmerpenguins.

So few rows that answers by species and island are soon mostly noise: good for seeing where differential privacy ends.
"""

from typing import TYPE_CHECKING

from counterpoint.datasets.other_packages import csv_rows, data_file
from counterpoint.sources.declaring.columns import category, number
from counterpoint.sources.declaring.units import each_row
from counterpoint.sources.tables.table import Table

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation


def penguins() -> "DuckDBPyRelation":
    """The penguins as a DuckDB relation, one row each. It needs `pip install palmerpenguins`.

    >>> penguins().columns[:3], penguins().shape[0]
    (['species', 'island', 'bill_length_mm'], 344)
    """
    return csv_rows(data_file("palmerpenguins", "data/penguins.csv"))


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
