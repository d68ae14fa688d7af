"""A secret: an integer, a vector of integers or a tally that depends on raw data (S4 sec. 6.3, a tainted variable).

Arithmetic on secrets gives secrets. Whatever would decide something by a secret or show it raises `SecretLeak` at
the very line that tries: truth value, comparison, formatting, hashing, iteration, indexing, conversion, copying,
pickling. Its width is public. Only mechanisms open it (`reveal`), to add noise; a tally, whose very keys are secret, is
opened by those alone that select keys (`counted`).

>>> salary = Secret(1200)
>>> salary * 2 + 5
Secret(...)
>>> if salary > 1000:
...     print("rich")
Traceback (most recent call last):
...
counterpoint.errors.SecretLeak: a secret was compared: nothing may depend on raw data but through a mechanism
"""

import operator
from collections.abc import Callable
from typing import NoReturn, TypeAlias

from counterpoint.errors import InvalidParameter, SecretLeak
from counterpoint.privacy.tally import Tally

Raw: TypeAlias = int | tuple[int, ...]
"""What a secret holds, unless it holds a tally."""


def _refuse(deed: str) -> Callable[..., NoReturn]:
    def refuse(*_: object) -> NoReturn:
        raise SecretLeak(f"a secret was {deed}: nothing may depend on raw data but through a mechanism")

    return refuse


class Secret:
    """An integer, or a vector of integers, that nothing may depend on but through a mechanism.

    >>> Secret((1, 2)) - Secret((0, 5)), Secret((1, 2)).width, Secret(7).width
    (Secret(...), 2, None)
    """

    __slots__ = ("_raw",)

    def __init__(self, value: "Secret | Raw | Tally") -> None:
        self._raw: Raw | Tally
        if isinstance(value, Secret):
            self._raw = value._raw
        else:
            self._raw = value if isinstance(value, Tally) else _integers(value)

    @property
    def keyed(self) -> bool:
        """Whether this is a tally. This is public."""
        return isinstance(self._raw, Tally)

    @property
    def width(self) -> int | None:
        """How many integers a vector has; None for a single integer, 0 for a tally. This is public."""
        if isinstance(self._raw, Tally):
            return 0
        return len(self._raw) if isinstance(self._raw, tuple) else None

    def map(self, function: Callable[..., Raw], *others: "Secret | Raw") -> "Secret":
        """Apply a public, total function of integers; the result is as secret as its arguments.

        Where it is not total after all, its error, which may quote the values, goes no further.

        >>> Secret((3, 9)).map(max)
        Secret(...)
        """
        raw = [reveal(value) for value in (self, *others)]
        try:
            return Secret(function(*raw))
        except Exception:
            raise InvalidParameter("a function of a secret failed on its value: it must be total") from None

    def clamp(self, low: int, high: int) -> "Secret":
        """Bring every integer into [low, high].

        >>> Secret(-3).clamp(0, 10)
        Secret(...)
        """
        return self._each(lambda raw: min(max(raw, low), high))

    def __add__(self, other: "Secret | Raw") -> "Secret":
        return self._with(operator.add, other)

    __radd__ = __add__

    def __sub__(self, other: "Secret | Raw") -> "Secret":
        return self._with(operator.sub, other)

    def __rsub__(self, other: "Secret | Raw") -> "Secret":
        return -self + other

    def __mul__(self, other: "Secret | Raw") -> "Secret":
        if isinstance(self._raw, Tally) and isinstance(other, int):
            return Secret(self._raw.scaled(other))
        return self._with(operator.mul, other)

    __rmul__ = __mul__

    def __neg__(self) -> "Secret":
        return self._each(operator.neg)

    def __abs__(self) -> "Secret":
        return self._each(abs)

    def _each(self, function: Callable[[int], int]) -> "Secret":
        raw = reveal(self)
        return Secret(tuple(map(function, raw)) if isinstance(raw, tuple) else function(raw))

    def _with(self, function: Callable[[int, int], int], other: "Secret | Raw") -> "Secret":
        """Coordinate by coordinate; a single integer goes with every coordinate of a vector."""
        left, right = reveal(self), reveal(Secret(other))
        if isinstance(left, int) and isinstance(right, int):
            return Secret(function(left, right))
        width = len(left) if isinstance(left, tuple) else len(right) if isinstance(right, tuple) else 1
        first = left if isinstance(left, tuple) else (left,) * width
        second = right if isinstance(right, tuple) else (right,) * width
        if len(first) != len(second):
            raise InvalidParameter(f"vectors of {len(first)} and {len(second)} integers do not combine")
        return Secret(tuple(map(function, first, second)))

    def __repr__(self) -> str:
        return "Secret(...)"

    def __sealed__(self) -> Raw | Tally:
        """The raw value, for `encode` alone, where the bytes are going to be sealed."""
        return self._raw

    @classmethod
    def __unsealed__(cls, raw: Raw | Tally) -> "Secret":
        return cls(raw)

    __bool__ = _refuse("used as a truth value")
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse("compared")
    __hash__ = _refuse("hashed")
    __str__ = __format__ = _refuse("formatted")
    __iter__ = __len__ = __contains__ = _refuse("iterated over")
    __getitem__ = _refuse("looked into")
    __int__ = __index__ = __float__ = __complex__ = __round__ = _refuse("converted to a number")
    __floordiv__ = __truediv__ = __mod__ = __pow__ = __divmod__ = _refuse("divided, which is not total")
    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = _refuse("copied or pickled")


def reveal(value: Secret | Raw) -> Raw:
    """The integers inside. For mechanisms (which add noise to them) and for the verifier; nobody else may call it.

    >>> reveal(Secret(3)), reveal(3)
    (3, 3)
    """
    if not isinstance(value, Secret):
        return value
    if isinstance(value._raw, Tally):
        raise SecretLeak("a tally was opened as a number: its keys are secret, and only a selection of keys opens it")
    return value._raw


def counted(value: Secret) -> Tally:
    """The tally inside. For mechanisms that select keys, and for the verifier; nobody else may call it.

    >>> counted(Secret(Tally((("CA", 3),)))).pairs
    (('CA', 3),)
    """
    if isinstance(value._raw, Tally):
        return value._raw
    raise InvalidParameter("this secret is a number or a vector, not a tally")


def _integers(value: object) -> Raw:
    if isinstance(value, tuple | list):
        return tuple(_integer(item) for item in value)
    return _integer(value)


def _integer(value: object) -> int:
    if type(value) is int:  # nearly always, and much cheaper to see than what follows
        return value
    if hasattr(value, "__index__"):
        return operator.index(value)
    raise InvalidParameter(f"a secret holds an integer or a tuple of integers, not a {type(value).__name__}")
