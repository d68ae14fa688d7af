"""344 penguins of three species near Palmer Station, Antarctica, from the package palmerpenguins.

So few rows that answers by species and island are soon mostly noise: good for seeing where differential privacy ends.
"""

from pathlib import Path

from counterpoint.datasets.other_packages import as_parquet, data_file
from counterpoint.sources.declaring.columns import category, number
from counterpoint.sources.declaring.units import each_row
from counterpoint.sources.tables.table import Table


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
