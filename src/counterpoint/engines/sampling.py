"""The coins of a Poisson sample in SQL, and the sample of a table: the same coins as `Sample.keeps` tosses.

A unit is in the sample if a keyed hash of its name is below a bound (theory, Sampling): by its name alone. Rows that
are units of their own are named by their content and, among equal rows, by a number; whichever of equal rows is kept,
the rows of the sample are the same.

>>> from counterpoint.privacy.samples import SampleKey
>>> from counterpoint.engines.duckdb import DUCKDB
>>> coin(Sample("1/4", SampleKey(5)), "u", DUCKDB)
"SHA256('000...005' || CAST(LENGTH(u) AS VARCHAR) || ':' || u) < '4000...000'"
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from counterpoint.engines.dialect import Dialect
from counterpoint.engines.loading import content
from counterpoint.engines.unit_key_sql import stored_unit_key
from counterpoint.privacy.samples import Sample
from counterpoint.schema.columns import Column
from counterpoint.schema.declaration import Declaration


def coin(sample: Sample, unit: str, dialect: Dialect) -> str:
    """The condition that a unit, whose name this expression is, is in the sample; a unit without a name is not."""
    spelled = f"{dialect.written(f'LENGTH({unit})')} || ':' || {unit}"
    return f"{dialect.hashed(f'{dialect.literal(sample.secret)} || {spelled}')} < {dialect.literal(sample.below)}"


def coins(samples: Sequence[Sample], unit: str, dialect: Dialect) -> str:
    """The condition that a unit is in all of these samples: a sample of a sample."""
    return " AND ".join(coin(sample, unit, dialect) for sample in samples)


def sampled(declared: Declaration, bound: str, samples: Sequence[Sample], dialect: Dialect) -> str:
    """The query for the stored rows whose units are in these samples."""
    names = ", ".join([*(f"c{i}" for i in range(len(declared.columns))), "u"])
    if declared.unit is None:
        row = content(declared, dialect)
        number = f"ROW_NUMBER() OVER (PARTITION BY {row})"
        name = f"{dialect.written(number)} || ';' || {row}"
    else:
        name = stored_unit_key(dialect)
    return f"SELECT {names} FROM (SELECT {names}, {name} AS unit FROM {bound}) AS named WHERE " + coins(
        samples, "unit", dialect
    )


def stored_kind(column: Column) -> str:
    """The type in which a stored value of this column is kept.

    >>> from counterpoint.schema.columns import number, text
    >>> stored_kind(number(0, 1)), stored_kind(text())
    ('BIGINT', 'VARCHAR')
    """
    return _KINDS.get(column.kind, "BIGINT")


def column_array(kind: str, values: "Sequence[Any]") -> Any:
    """A column as an array; missing numbers and truth values are masked.

    >>> column_array("BIGINT", [3, None]).tolist()
    [3, None]
    """
    if kind == "VARCHAR":
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array
    missing = np.fromiter((value is None for value in values), dtype=bool, count=len(values))
    filled = np.fromiter((0 if value is None else value for value in values), dtype=np.int64, count=len(values))
    return np.ma.MaskedArray(filled if kind == "BIGINT" else filled.astype(bool), mask=missing)


_KINDS = {"text": "VARCHAR", "boolean": "BOOLEAN"}
