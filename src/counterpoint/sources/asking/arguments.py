"""The arguments of a request, read and checked when it is made or read back: texts, keys, ascending numbers.

Whatever is too many, too long, of the wrong type or out of order is `InvalidRequest`, before any table is known.

>>> ascending([0, 0.5, 1], "edges", least=2)
((Fraction(0, 1), Fraction(1, 2), Fraction(1, 1)), False)
>>> distinct(["CA", "NY", "CA"])
Traceback (most recent call last):
...
counterpoint.errors.InvalidRequest: keys are distinct: at least one, at most 10000, and together of at most 1000000 ...
"""

from collections.abc import Iterable
from fractions import Fraction
from itertools import islice, pairwise
from typing import Any

from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.numbers.exact import exact
from counterpoint.sources.asking.where import LONGEST
from counterpoint.sources.declaring.columns import MOST_KEYS, Key, readable
from counterpoint.sources.declaring.dates import days

MOST_POINTS = 1_000
"""The most edges or candidates of one request."""
LONGEST_KEYS = 1_000_000
"""The most characters of all keys of a request together: as many as 10,000 that were selected have, if left alone."""
_WIDEST_KEY = 2**127
"""Beyond it no whole number is a key of any column, whatever its step is."""


def check_texts(**texts: object) -> None:
    """Check that each is a text that every engine can hold; all but `column` may be None.

    >>> check_texts(column="age", where=None)
    """
    for name, text in texts.items():
        if text is None and name != "column":
            continue
        _check_text(text, name)


def _check_text(text: object, what: str) -> None:
    if not isinstance(text, str) or len(text) > LONGEST:
        raise InvalidRequest(f"{what} must be a text of at most {LONGEST} characters")
    readable(text)


def distinct(keys: Any) -> tuple[Key, ...] | None:
    """Keys: texts, whole numbers or truth values, all different; None if none were given.

    >>> distinct(["CA", "NY"])
    ('CA', 'NY')
    """
    if keys is None:
        return None
    items = listed(keys, "keys")
    assert items is not None
    if not all(isinstance(key, bool | int | str) for key in items):
        raise InvalidRequest("keys are texts, whole numbers or truth values")
    together = sum(len(key) for key in items if isinstance(key, str))
    if not 1 <= len(items) <= MOST_KEYS or together > LONGEST_KEYS or len(set(items)) < len(items):
        raise InvalidRequest(
            f"keys are distinct: at least one, at most {MOST_KEYS}, and together of at most {LONGEST_KEYS} characters"
        )
    for key in items:
        if isinstance(key, str):
            _check_text(key, "a key")
        elif abs(key) >= _WIDEST_KEY:
            raise InvalidRequest("a key that is a whole number has at most 38 digits")
    return items


def ascending(points: Any, what: str, least: int) -> tuple[tuple[Fraction, ...], bool]:
    """Numbers, read exactly, each above the one before, and whether they were given as dates (as days, then).

    >>> ascending(["1970-01-01", "1970-02-01"], "edges", least=2)
    ((Fraction(0, 1), Fraction(31, 1)), True)
    """
    items = listed(points, what) or ()
    if not least <= len(items) <= MOST_POINTS:
        raise InvalidRequest(f"{what} are at least {least} and at most {MOST_POINTS} numbers")
    found = [days(item) for item in items]
    dated = all(day is not None for day in found)
    try:
        numbers = (
            tuple(Fraction(day) for day in found if day is not None)
            if dated
            else tuple(exact(item, f"each of the {what}") for item in items)
        )
    except InvalidParameter as error:
        raise InvalidRequest(str(error)) from None
    if any(a >= b for a, b in pairwise(numbers)):
        raise InvalidRequest(f"{what} must ascend, each above the one before")
    return numbers, dated


def listed(items: Any, what: str) -> tuple[Any, ...] | None:
    """The items of whatever can be listed; a text is not meant as a list of letters.

    Of a list without end no more is taken than shows that it has too many.

    >>> listed(range(3), "keys")
    (0, 1, 2)
    """
    if items is None or isinstance(items, tuple):
        return items
    if isinstance(items, str) or not isinstance(items, Iterable):
        raise InvalidRequest(f"{what} must be a list")
    return tuple(islice(items, MOST_KEYS + 1))
