"""Monotone queries: functions of a histogram that follow it upward, one step at a time.

See Henzinger et al. 2024, Def 7.2, 7.3.

What a `MonotoneHistogram` needs of its function f: it never falls when bars grow, and it moves by at most 1 between
histograms that are at most 1 apart in every bar. Both together are one condition on single steps, for all integer
vectors x and all 0/1 vectors e: f(x) <= f(x + e) <= f(x) + 1. (Steps add up to any growth, so f is monotone; and two
histograms that are at most 1 apart are both single steps above the smaller of them, bar by bar.)

>>> max_of((3, 9, -4)), MonotoneQuery("largest", rank=2)((3, 9, -4)), MonotoneQuery("top", rank=2)((3, 9, -4))
(9, 3, 6)

A function of your own is declared under a name and checked on some ten thousand steps; the first that breaks the
condition is shown. A query is stored by its name, so a program that reads it back must have declared the same function:
nothing is ever imported or run because stored data names it.

>>> @monotone_query("runner-up, if there are two")
... def runner_up(bars):
...     return sorted(bars)[-2] if len(bars) > 1 else bars[0]
>>> runner_up((3, 9, -4))
3
>>> monotone_query("spread")(lambda bars: max(bars) - min(bars))
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: 'spread' falls from 1 at (-1, 0) to 0 at (0, 0): it is not monotone
"""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Annotated, TypeAlias

from counterpoint.coins.secure import SeededCoins
from counterpoint.encoding import Tagged, Value
from counterpoint.errors import InvalidParameter
from counterpoint.numbers.parameters import PositiveInt

Bars: TypeAlias = tuple[int, ...]
Function: TypeAlias = Callable[[Bars], int]


def _percentile(rising: list[int], rank: int) -> int:
    return rising[-(-len(rising) * rank // 100) - 1]


def _top(rising: list[int], rank: int) -> int:
    most = rising[-rank:]
    return sum(most) // len(most)  # a mean moves by at most 1, and so does its floor


_SHIPPED: dict[str, Callable[[list[int], int], int]] = {
    "max": lambda rising, _: rising[-1],
    "min": lambda rising, _: rising[0],
    "median": lambda rising, _: rising[(len(rising) - 1) // 2],
    "largest": lambda rising, rank: rising[-min(rank, len(rising))],
    "percentile": _percentile,
    "top": _top,
}
_DECLARED: dict[str, Function] = {}


class MonotoneQuery(Tagged, Value, frozen=True):
    """A public function of a histogram that never falls when a bar grows, and moves by at most 1 when all bars do.

    "max", "min", "median" (the lower one), "largest" (the bar of a `rank` from above), "percentile" (the smallest bar
    that at least `rank` percent do not exceed), "top" (the mean of the `rank` largest bars, rounded down), or a name
    that was declared with `monotone_query`. A sum of bars does not qualify: it moves by as many as there are.

    >>> MonotoneQuery("percentile", rank=75)((1, 2, 3, 4))
    3
    """

    name: str
    rank: Annotated[PositiveInt, "the rank"] = 1

    def __post_init__(self) -> None:
        """Only what is known to be monotone and 1-sensitive."""
        if self.name not in _SHIPPED and self.name not in _DECLARED:
            raise InvalidParameter(
                f"a monotone query is one of {', '.join(_SHIPPED)}, or a name that was declared with monotone_query, "
                f"not {self.name!r}"
            )
        if self.name == "percentile" and self.rank > 100:
            raise InvalidParameter("the rank of a percentile must be at most 100")

    def __call__(self, histogram: Bars) -> int:
        """Its value: total on all vectors of integers, also negative ones."""
        if self.name in _DECLARED:
            return _DECLARED[self.name](histogram)
        return _SHIPPED[self.name](sorted(histogram), self.rank)


max_of = MonotoneQuery("max")
"""The largest bar."""


def monotone_query(name: str) -> Callable[[Function], MonotoneQuery]:
    """Declare a function of histograms of any width as a query, after checking it; to be used as a decorator.

    The function must be total on non-empty tuples of integers, deterministic and integer. The check can refute it,
    with a witness, and cannot prove it: the claim of a mechanism that uses it rests on the declaration.
    """
    if not isinstance(name, str):
        raise InvalidParameter(
            f"a query is declared under a name (a text), as in @monotone_query('runner-up'), not under {name!r}"
        )
    if not name or name in _SHIPPED:
        raise InvalidParameter(f"a query of your own needs a name that no shipped one has, not {name!r}")

    def declare(function: Function) -> MonotoneQuery:
        check_monotone(function, name)
        if not _same(_DECLARED.setdefault(name, function), function):
            raise InvalidParameter(
                f"{name!r} has been declared as another function, and stored queries would change: choose another name"
            )
        return MonotoneQuery(name)

    return declare


def _same(one: Function, other: Function) -> bool:
    """Whether a declaration is repeated, as when a cell is run again: the same code, which is closed over nothing."""
    if one is other:
        return True
    code = getattr(one, "__code__", None)
    closed = (getattr(function, "__closure__", None) or function.__defaults__ for function in (one, other) if code)
    return code is not None and code == getattr(other, "__code__", None) and not any(closed)


def check_monotone(function: Function, name: str = "the function", seed: int = 0) -> int:
    """Try f(x) <= f(x + e) <= f(x) + 1 on all small steps and many large ones; how many, or `InvalidParameter`.

    >>> check_monotone(max) > 5000
    True
    """
    tried = 0
    for low, step in _steps(SeededCoins(seed)):
        high = tuple(bar + more for bar, more in zip(low, step, strict=True))
        before, after = _value(function, low, name), _value(function, high, name)
        if after < before:
            raise InvalidParameter(f"{name!r} falls from {before} at {low} to {after} at {high}: it is not monotone")
        if after > before + 1:
            raise InvalidParameter(
                f"{name!r} rises from {before} at {low} to {after} at {high}, by more than 1: it is not 1-sensitive"
            )
        tried += 1
    return tried


def _value(function: Function, bars: Bars, name: str) -> int:
    try:
        value, again = function(bars), function(bars)
    except Exception as error:
        raise InvalidParameter(f"{name!r} is not total: {type(error).__name__} at {bars}") from error
    if type(value) is not int or value != again:
        raise InvalidParameter(f"{name!r} must be an integer, the same every time; at {bars} it is not")
    return value


def _steps(coins: SeededCoins) -> Iterator[tuple[Bars, Bars]]:
    """All steps of up to four small bars; then steps of up to forty bars, small and huge, with many ties."""
    for width in (1, 2, 3, 4):
        for low in product((-1, 0, 1, 2), repeat=width):
            for step in product((0, 1), repeat=width):
                yield low, step
    for _ in range(1000):
        width, reach = 1 + coins.integer(40), 2 << coins.integer(40)
        low = tuple(coins.integer(reach) - reach // 4 for _ in range(width))
        yield low, tuple(coins.integer(2) for _ in range(width))
