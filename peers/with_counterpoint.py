"""The tasks with Counterpoint."""

from collections.abc import Callable
from typing import Any

from peers.data import rows
from peers.library import Library
from peers.tasks import (
    ANSWERS,
    CARRIERS,
    DELTA,
    DEVIATIONS,
    FAR_ITEMS,
    KEYS,
    ROWS_PER_UNIT,
    SAMPLED_SIGMA,
    SAMPLING_RATE,
    THREADS,
    TRIES,
    different_losses,
    noise_levels,
)


def _start() -> None:
    import counterpoint as cp

    for name in cp.__all__:
        getattr(cp, name)  # a public name is imported when it is first used


def _different_losses(size: int) -> Callable[[], Any]:
    import counterpoint as cp

    losses = [cp.ApproxDP(epsilon, delta) for epsilon, delta in different_losses(size)]
    return lambda: cp.compose.optimal(losses).epsilon_at(DELTA)


def _gaussian_losses(size: int) -> Callable[[], Any]:
    import counterpoint as cp

    losses = [cp.GaussianDP(1 / sigma) for sigma in noise_levels(size)]
    return lambda: cp.compose.optimal(losses).epsilon_at(DELTA)


def _sampled_gaussians(size: int) -> Callable[[], Any]:
    import counterpoint as cp

    steps = [cp.measures.SampledGaussianDP(mu=1 / SAMPLED_SIGMA, rate=SAMPLING_RATE)] * size
    return lambda: cp.compose.optimal(steps).epsilon_at(DELTA)


def _filter(size: int) -> Callable[[], Any]:
    import counterpoint as cp

    stream = cp.Stream(bound=1)
    stream.append(1)
    session, noise, one = cp.Session(stream, within=cp.PureDP(1000)), cp.Laplace("0.001"), cp.total()
    for _ in range(size):
        session.launch(noise).ask(one)
    return lambda: [int(session.launch(noise).ask(one)) for _ in range(20)]


def _interleaved(size: int) -> Callable[[], Any]:
    import counterpoint as cp

    stream = cp.Stream(bound=1)
    stream.extend([1] * 100)
    session = cp.Session(stream, within=cp.PureDP(1))
    first, second = (session.launch(cp.Laplace("0.5", asks=500)) for _ in range(2))
    return lambda: [mechanism.ask(cp.total()) for _ in range(500) for mechanism in (first, second)][-1]


def _threads(size: int) -> Callable[[], Any]:
    from concurrent.futures import ThreadPoolExecutor

    import counterpoint as cp

    stream = cp.Stream(bound=1)
    stream.append(1)
    session, noise, one = cp.Session(stream, within=cp.PureDP(1)), cp.Laplace("0.001"), cp.total()

    def admitted(_: int) -> int:
        done = 0
        for _ in range(TRIES):
            try:
                session.launch(noise).ask(one)
            except cp.BudgetExceeded:
                continue
            done += 1
        return done

    return lambda: sum(ThreadPoolExecutor(THREADS).map(admitted, range(THREADS)))


def _stream(size: int) -> Callable[[], Any]:
    import counterpoint as cp

    stream = cp.Stream(bound=1)
    session = cp.Session(stream, within=cp.zCDP("0.5"))
    counter, items = session.launch(cp.Counter(rho="0.5", horizon=size)), [1, 0] * (size // ANSWERS // 2)

    def answers() -> list[int]:
        found = []
        for _ in range(ANSWERS):
            stream.extend(items)
            found.append(int(counter.ask()))
        return found

    return answers


def _separated(size: int) -> Callable[[], Any]:
    import counterpoint as cp

    stream = cp.Stream(unit="user", per_unit=FAR_ITEMS, apart=size // FAR_ITEMS)
    counter = cp.Counter(rho=0.5, horizon=size).fitted(stream.relation, None)
    return lambda: [counter.deviation(size * place // DEVIATIONS) for place in range(1, DEVIATIONS + 1)]


def _group_by(size: int) -> Callable[[], Any]:
    import counterpoint as cp

    columns = {"key": cp.category(KEYS), "amount": cp.number(0, 1000)}
    table = cp.Table(rows(size), unit=cp.each_row, columns=columns)
    session = cp.Session(table, within=cp.PureDP(1))
    return lambda: dict(session.ask(cp.sum("amount", by="key"), epsilon=1))


def _group_by_units(size: int) -> Callable[[], Any]:
    import counterpoint as cp

    columns = {"key": cp.category(KEYS), "amount": cp.number(0, 1000)}
    table = cp.Table(rows(size), unit="who", rows_per_unit=ROWS_PER_UNIT, columns=columns)
    session = cp.Session(table, within=cp.PureDP(1))
    return lambda: dict(session.ask(cp.sum("amount", by="key"), epsilon=1))


def _flights() -> Any:
    import counterpoint as cp

    delay = cp.number(-60, 600)
    columns = {"carrier": cp.category(CARRIERS), "arr_delay": delay}
    table = cp.Table(cp.datasets.flights(), unit=cp.each_row, columns=columns)
    return cp.Session(table, within=cp.ApproxDP(1, DELTA))


def _counts(size: int) -> Callable[[], Any]:
    import counterpoint as cp

    session = _flights()
    return lambda: dict(session.ask(cp.count(by="carrier"), epsilon=0.1))


def _means(size: int) -> Callable[[], Any]:
    import counterpoint as cp

    session = _flights()
    return lambda: dict(session.ask(cp.mean("arr_delay", by="carrier"), epsilon=0.5))


def _medians(size: int) -> Callable[[], Any]:
    import counterpoint as cp

    session = _flights()
    return lambda: dict(session.ask(cp.median("arr_delay", by="carrier"), epsilon=0.5))


def _keys(size: int) -> Callable[[], Any]:
    import counterpoint as cp

    session = _flights()
    return lambda: list(session.ask(cp.keys("dest"), loss=cp.ApproxDP(0.25, 1e-7)))


LIBRARY = Library(
    "counterpoint",
    "Counterpoint",
    "counterpoint",
    __name__,
    (),
    works={
        "different_losses": _different_losses,
        "gaussian_losses": _gaussian_losses,
        "sampled_gaussians": _sampled_gaussians,
        "filter": _filter,
        "interleaved": _interleaved,
        "threads": _threads,
        "stream": _stream,
        "separated": _separated,
        "group_by": _group_by,
        "group_by_units": _group_by_units,
        "counts": _counts,
        "means": _means,
        "medians": _medians,
        "keys": _keys,
    },
    cannot={},
    gallery="with_counterpoint.py",
    start=_start,
)
