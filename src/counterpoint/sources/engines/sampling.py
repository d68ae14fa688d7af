"""The coins of a Poisson sample in SQL, and the sample of a table: the same coins as `Sample.keeps` tosses.

A unit is in the sample if a keyed hash of its name is below a bound (theory, Sampling): by its name alone. Rows that
are units of their own are named by their content and, among equal rows, by a number; whichever of equal rows is kept,
the rows of the sample are the same.

>>> from counterpoint.privacy.samples import SampleKey
>>> from counterpoint.sources.engines.dialects import DUCKDB
>>> coin(Sample("1/4", SampleKey(5)), "u", DUCKDB)
"SHA256('000...005' || CAST(LENGTH(u) AS VARCHAR) || ':' || u) < '4000...000'"
"""

from collections.abc import Sequence

from counterpoint.privacy.samples import Sample
from counterpoint.sources.declaring.declaration import Declaration
from counterpoint.sources.engines.dialects import Dialect
from counterpoint.sources.tables.loading import content
from counterpoint.sources.tables.owners import unit_spelled


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
        name = unit_spelled(dialect)
    return f"SELECT {names} FROM (SELECT {names}, {name} AS unit FROM {bound}) AS named WHERE " + coins(
        samples, "unit", dialect
    )
