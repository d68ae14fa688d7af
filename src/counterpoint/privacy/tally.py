"""A tally: how much each key has, where which keys there are is as private as how much they have.

It is a vector with a coordinate for every key that could be, 0 everywhere but at the keys that are listed; neighbours
may list different keys. So it has no public width, and no mechanism but one that selects keys may open it (`counted`):
noise added to the listed keys would reveal which keys there are. Keys are texts or whole numbers, or tuples of such
values, listed in order; what counts nothing is not listed, so that equal tallies are equal values.

>>> Tally((("NY", 1), ("CA", 3), ("WY", 0)))
Tally((('CA', 3), ('NY', 1)))
>>> distances(Tally((("CA", 3), ("NY", 1))), Tally((("CA", 2), ("WY", 1))))
(1, 1, 1)
"""

from collections.abc import Iterable
from typing import Annotated, TypeAlias

from counterpoint.encoding import Tagged, Value
from counterpoint.errors import InvalidParameter
from counterpoint.numbers.parameters import Read

TallyKey: TypeAlias = int | str | tuple[bool | int | str, ...]
Pairs = tuple[tuple[TallyKey, int], ...]


def _in_order(given: Iterable[tuple[TallyKey, int]], _what: str) -> Pairs:
    """Check the keys, and bring the pairs into their one order. No message says which key was wrong."""
    pairs = tuple(given)
    if any(type(count) is not int or count < 0 for _, count in pairs):
        raise InvalidParameter("a tally counts whole numbers from 0 on")
    if len({_kinds(key) for key, _ in pairs}) > 1 or any(None in _kinds(key) for key, _ in pairs):
        raise InvalidParameter("the keys of a tally are all texts, all whole numbers, or all tuples of the same kinds")
    if len({key for key, _ in pairs}) < len(pairs):
        raise InvalidParameter("the keys of a tally are all different")
    return tuple(sorted(pair for pair in pairs if pair[1]))


def _kinds(key: object) -> tuple[type | None, ...]:
    """What a key is made of; None where that is no value of a key. A tuple of one value is none either."""
    if isinstance(key, tuple):
        kinds = tuple(type(value) if type(value) in (bool, int, str) else None for value in key)
        return kinds if len(kinds) > 1 else (None,)
    return (type(key) if type(key) in (int, str) else None,)


class Tally(Tagged, Value, frozen=True):
    """Keys, all of the same kind, and the whole number that each has.

    >>> Tally(((7, 2),)).scaled(0)
    Tally(())
    """

    pairs: Annotated[Pairs, Read(_in_order)]

    def scaled(self, factor: int) -> "Tally":
        """Every count, times `factor`."""
        return Tally(tuple((key, count * factor) for key, count in self.pairs))


def distances(left: Tally, right: Tally) -> tuple[int, ...]:
    """How far apart two tallies are, at every key that either of them lists."""
    one, other = dict(left.pairs), dict(right.pairs)
    return tuple(abs(one.get(key, 0) - other.get(key, 0)) for key in {**one, **other})
