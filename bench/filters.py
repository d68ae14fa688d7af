"""What one launch costs, after few and after many: beside itself, and beside opendp's privacy filter."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from bench.table import Row, seconds
from counterpoint.composition.accumulator import Account
from counterpoint.composition.filters import Filter
from counterpoint.measures import ApproxDP, PureDP
from counterpoint.mechanisms.additive import Laplace
from counterpoint.privacy.claims import Claim

HISTORIES = (10, 10**3, 10**5)
OPENDP_HISTORY = 5_000
TURNS = 400


def rows() -> Iterator[Row]:
    for name, rule in (("pure", Filter(PureDP(1000))), ("(epsilon, delta)", Filter(ApproxDP(1000, 1e-6)))):
        claim = Laplace("0.001").claim
        few, some, many = in_turns([partial(rule.admit, after(rule, claim, history), claim) for history in HISTORIES])
        yield Row(f"a launch through a {name} filter after 10^3", some, few, "after 10", at_most=1.3)
        yield Row(f"a launch through a {name} filter after 10^5", many, few, "after 10", at_most=1.3)
    rule, claim = Filter(PureDP(1000)), Laplace("0.001").claim
    account = after(rule, claim, OPENDP_HISTORY)
    peer = opendp_launch(OPENDP_HISTORY)
    ours = statistics.median(seconds(lambda: rule.admit(account, claim)) for _ in range(TURNS))
    theirs = statistics.median(seconds(peer) for _ in range(20))
    yield Row("a launch after 5,000 earlier ones", ours, theirs, "opendp's privacy filter", at_least=500)
    best = Filter(ApproxDP(1000, 1e-6))
    account = after(best, claim, OPENDP_HISTORY)
    ours = statistics.median(seconds(lambda: best.admit(account, claim)) for _ in range(TURNS))
    yield Row("the same, by the default (epsilon, delta) rule", ours, theirs, "opendp's (pure) filter", at_least=500)


def after(rule: Filter, claim: Claim, launches: int) -> Account:
    """The account after `launches` launches."""
    account: Account = rule.start()
    for _ in range(launches):
        account = rule.admit(account, claim)
    return account


def in_turns(works: Sequence[Callable[[], object]]) -> list[float]:
    """The median seconds of each, run in turns."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(TURNS):
        for spent, work in zip(times, works, strict=True):
            spent.append(seconds(work))
    return [statistics.median(spent) for spent in times]


def opendp_launch(history: int) -> Callable[[], object]:
    """A launch through opendp's filter that has `history` launches behind it; the mechanism is as small as can be."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain, metric = dp.atom_domain(T="i32"), dp.absolute_distance(T="i32")
    odometer = dp.c.make_fully_adaptive_composition(domain, metric, dp.max_divergence())
    filtered: Any = dp.c.make_privacy_filter(odometer, d_in=1, d_out=10.0**6)(0)
    noise = dp.m.make_laplace(domain, metric, scale=1000.0)
    for _ in range(history):
        filtered(noise)
    return lambda: filtered(noise)
