"""How the default filter divides delta among its parts: a table of constants, found by search.

The parts and tails of a union of filters must be fixed before the first answer (theory, The default filter); any choice
is valid, a good one is tight. `python -m bench.mixing` searches over the workloads of `bench/workloads.json`, of which
half
are held out, and prints this table.

A ledger holds these numbers in its accounts, but its rules say no more than `by="best"`: a change of a number here
changes what a stored rule means. So a better table comes with another name for `by`, and this one stays.

>>> [sum(row.among_orders) for row in (SHARES.without_delta, SHARES.with_delta)]
[Fraction(1, 1), Fraction(1, 1)]
"""

from fractions import Fraction

from counterpoint.encoding import Tagged, Value


class Division(Tagged, Value, frozen=True, cache_hash=True):
    """Which share of delta is slack, and how the parts divide that; the rest of delta is for exposures.

    `with_reserve` is for a first launch that suits the reserve: its share, then one for each order. `among_orders`
    divides the slack otherwise, and for every reading below the budget.
    """

    slack: Fraction
    with_reserve: tuple[Fraction, ...]
    among_orders: tuple[Fraction, ...]


class Shares(Tagged, Value, frozen=True, cache_hash=True):
    """The whole table. `steps` says how many times farther from 1 each order lies than the best one for the budget
    (orders.py); then come the divisions if the first launch has no delta, and if it has one.
    """

    steps: tuple[Fraction, ...]
    without_delta: Division
    with_delta: Division


def _in_proportion(*weights: int) -> tuple[Fraction, ...]:
    return tuple(Fraction(weight, sum(weights)) for weight in weights)


SHARES = Shares(
    steps=(Fraction(7, 10), Fraction(12, 10), Fraction(3), Fraction(344, 10)),
    without_delta=Division(
        slack=Fraction(885, 1000),
        with_reserve=_in_proportion(900, 10, 78, 23, 30),
        among_orders=_in_proportion(51, 920, 46, 26),
    ),
    with_delta=Division(
        slack=Fraction(505, 1000),
        with_reserve=_in_proportion(790, 5, 241, 10, 10),
        among_orders=_in_proportion(5, 975, 10, 10),
    ),
)
