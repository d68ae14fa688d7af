"""Checks of a request's arguments, when it is made or decoded: texts, keys, ascending numbers.

Arguments that are too many, too long, of the wrong type or out of order raise `InvalidRequest` before any table is
involved.

>>> ascending([0, 0.5, 1], "edges", least=2)
((0, 0.5, 1), False)
>>> distinct(["CA", "NY", "CA"])
Traceback (most recent call last):
...
counterpoint.errors.InvalidRequest: keys must be distinct: list each key once
"""

from collections.abc import Iterable
from datetime import date
from fractions import Fraction
from itertools import islice, pairwise
from math import floor
from typing import Any, TypeAlias

from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.numbers import Number as AnyNumber
from counterpoint.numbers.exact import Exact, exact, plain_scalar
from counterpoint.schema.columns import MOST_KEYS, KeyOrTuple, readable
from counterpoint.schema.expressions.syntax import LONGEST
from counterpoint.schema.times import days, spelled

MOST_POINTS = 1_000
"""The most edges or candidates of one request."""
LONGEST_KEYS = 1_000_000
"""The most characters of all keys of a request together: enough for 10,000 selected keys of the default length."""
_WIDEST_KEY = 2**127
"""From here on no whole number is a key of any column, whatever its step is."""


def check_texts(**texts: object) -> None:
    """Check that each is a text that every engine can store; all but `column` may be None.

    >>> check_texts(column="age", where=None)
    """
    for name, text in texts.items():
        if text is None and name != "column":
            continue
        _check_text(text, name)


def _check_text(text: object, what: str) -> None:
    if not isinstance(text, str) or len(text) > LONGEST:
        kind = f"a text of {len(text)} characters" if isinstance(text, str) else f"a {type(text).__name__}"
        raise InvalidRequest(f"{what} must be a text of at most {LONGEST} characters, not {kind}")
    readable(text)


def distinct(keys: Any) -> tuple[KeyOrTuple, ...] | None:
    """Checked keys: texts, whole numbers or truth values, or tuples of them, all different; None if none were given.

    >>> distinct(["CA", "NY"]), distinct([("CA", True), ("NY", True)])
    (('CA', 'NY'), (('CA', True), ('NY', True)))
    """
    if keys is None:
        return None
    given = listed(keys, "keys")
    assert given is not None
    items = tuple(tuple(map(_plain, key)) if isinstance(key, tuple) else _plain(key) for key in given)
    if not items:
        raise InvalidRequest(
            "keys is empty, so there is nothing to answer: if they were selected privately, no key had enough units; "
            "select them with a larger loss, or limit each unit to fewer keys by spread(column, k)"
        )
    if len(items) > MOST_KEYS:
        raise InvalidRequest(f"a request takes 1 to {MOST_KEYS} keys: ask about fewer at a time")
    values = [value for key in items for value in (key if isinstance(key, tuple) else (key,))]
    if not all(isinstance(value, bool | int | str) for value in values):
        raise InvalidRequest(
            "keys must be texts, whole numbers or truth values, as in keys=['CA', 'NY'], or for several columns tuples "
            "of them, as in keys=[('CA', 2023), ('NY', 2024)]"
        )
    if len(set(items)) < len(items):
        raise InvalidRequest("keys must be distinct: list each key once")
    if sum(len(value) for value in values if isinstance(value, str)) > LONGEST_KEYS:
        raise InvalidRequest(f"the keys of a request have at most {LONGEST_KEYS} characters together: ask about fewer")
    for value in values:
        if isinstance(value, str):
            _check_text(value, "a key")
        elif abs(value) >= _WIDEST_KEY:
            raise InvalidRequest("a key that is a whole number must be below 2^127 in absolute value")
    return items


def _plain(value: Any) -> Any:
    """A part of a key as it is stored: numpy's scalars as Python's own, a date or a time as a text."""
    found = plain_scalar(value)
    return found.isoformat() if isinstance(found, date) else str.__str__(found) if isinstance(found, str) else found


def ascending(points: Any, what: str, least: int) -> tuple[tuple[Fraction, ...], bool]:
    """Ascending numbers, read exactly, and whether they were given as dates; dates become days since 1970-01-01.

    >>> ascending(["1970-01-01", "1970-02-01"], "edges", least=2)
    ((Fraction(0, 1), Fraction(31, 1)), True)
    """
    items = listed(points, what) or ()
    if not least <= len(items) <= MOST_POINTS:
        raise InvalidRequest(f"{what} must be a list of {least} to {MOST_POINTS} numbers or dates")
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
        raise InvalidRequest(f"{what} must be strictly ascending: sort them and leave out duplicates")
    return numbers, dated


Point: TypeAlias = int | float | Exact | str
"""An edge or a candidate in the user's units; a date is a text."""


def points(numbers: Iterable[Fraction], dates: bool) -> tuple[Point, ...]:
    """Numbers that `ascending` has read, as answers name them: by floats, unless two of them would have one.

    >>> points([Fraction(0), Fraction(1, 2)], dates=False), points([Fraction(31)], dates=True)
    ((0, 0.5), ('1970-02-01',))
    """
    if dates:
        return tuple(spelled(floor(number)) for number in numbers)
    exactly = [number.numerator if number.denominator == 1 else Exact(number) for number in numbers]
    nearly = [number if isinstance(number, int) else float(number) for number in exactly]
    return tuple(nearly if len(set(nearly)) == len(exactly) else exactly)


def clamped_text(
    column: str, low: AnyNumber | None = None, high: AnyNumber | None = None, step: AnyNumber | None = None
) -> str:
    """A column or an expression, clamped to these bounds and rounded to this step, in the language of expressions.

    >>> clamped_text("arr_delay - dep_delay", low=-60, high=60), clamped_text("age")
    ('CLAMP(arr_delay - dep_delay, -60, 60)', 'age')
    """
    given = [
        None if number is None else _spelled(number, name)
        for name, number in zip(_BOUNDS, (low, high, step), strict=True)
    ]
    while given and given[-1] is None:
        given.pop()
    return f"CLAMP({', '.join((column, *('NULL' if it is None else it for it in given)))})" if given else column


_BOUNDS = ("low", "high", "step")


def _spelled(number: AnyNumber, what: str) -> str:
    try:
        top, bottom = exact(number, what).as_integer_ratio()
    except InvalidParameter as error:
        raise InvalidRequest(str(error)) from None
    return f"{top}" if bottom == 1 else f"{top} / {bottom}"


def listed(items: Any, what: str) -> tuple[Any, ...] | None:
    """The items of an iterable as a tuple; a text is refused, since a list of its letters is not meant.

    An endless iterable is read only until it has too many items.

    >>> listed(range(3), "keys")
    (0, 1, 2)
    """
    if items is None or isinstance(items, tuple):
        return items
    if isinstance(items, str) or not isinstance(items, Iterable):
        raise InvalidRequest(f"{what} must be a list, not a {type(items).__name__}")
    return tuple(islice(items, MOST_KEYS + 1))
