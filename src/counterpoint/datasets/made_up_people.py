"""Made-up people: 20,000 rows that come with the package. No such person exists."""

from pathlib import Path

from counterpoint.sources.declaring.columns import category, number
from counterpoint.sources.tables.table import Table

STATES = {"CA": 40, "TX": 30, "FL": 22, "NY": 19, "IL": 12, "OH": 11, "WA": 8, "OR": 4, "VT": 1, "WY": 1}
"""The states, and how likely each is in proportion to the others."""


def people() -> Path:
    """The path of a Parquet file with 20,000 made-up people: person_id, state, age and income.

    `make_people.py` beside it draws others of the same laws.

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
