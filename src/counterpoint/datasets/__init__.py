"""Data to try things on: it comes with the package, and nobody in it exists.

>>> import counterpoint as cp
>>> people = cp.Table(cp.datasets.people(), unit="person_id", rows_per_unit=1)
>>> people.describe() is not None
True
"""

from pathlib import Path

__all__ = ["people"]

_HERE = Path(__file__).parent


def people() -> Path:
    """The path of a Parquet file with 20,000 made-up people: person_id, state, age and income.

    `make_people.py` beside it makes the same file again.

    >>> people().name
    'people.parquet'
    """
    return _HERE / "people.parquet"
