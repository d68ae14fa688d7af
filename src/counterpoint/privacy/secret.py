"""Secrets: values that depend on raw data, and the operations that keep them secret (Henzinger et al. 2024, sec. 6.3).

Arithmetic on secrets gives secrets. An operation that would branch on a secret or show it raises `SecretLeak` at once:
truth value, comparison, formatting, hashing, iteration, indexing, conversion, copying, pickling. Its shape (a number, a
vector of a width, a tally) is public, so no operation lets the value choose it. Only mechanisms open a secret
(`reveal`), to add noise; only mechanisms that select keys open a tally, whose keys are secret, too (`counted`).

This keeps a program from showing a secret by accident, and checks what Henzinger et al. 2024, Def 6.5 asks while it
runs. It does not stop a malicious program: in Python a function given to `map` can write what it sees into a global or
take a time that depends on it, and any code can import `reveal`. The custodian decides which programs run next to the
data; analysts send requests, never code.

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
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Annotated, Any, NoReturn, TypeAlias

from counterpoint.encoding import Tagged, Value
from counterpoint.errors import INTERRUPTIONS, InvalidParameter, NotTotal, SecretLeak, bare
from counterpoint.numbers.exact import whole
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
    """The kind of a key; None if a key cannot have it. A tuple of one value is not a key."""
    if isinstance(key, tuple):
        kinds = tuple(type(value) if type(value) in (bool, int, str) else None for value in key)
        return kinds if len(kinds) > 1 else (None,)
    return (type(key) if type(key) in (int, str) else None,)


class Tally(Tagged, Value, frozen=True):
    """Keys, all of the same kind, and the whole number that each has.

    A tally: how much each key has, where which keys there are is as private as how much they have.

    It is a vector with a coordinate for every key that could be, 0 everywhere but at the keys that are listed;
    neighbours may list different keys. So it has no public width, and no mechanism but one that selects keys may open
    it (`counted`): noise added to the listed keys would reveal which keys there are. Keys are texts or whole numbers,
    or tuples of such values, listed in order; what counts nothing is not listed, so that equal tallies are equal
    values.

    >>> Tally(((7, 2),)).scaled(0)
    Tally(())

    >>> Tally((("NY", 1), ("CA", 3), ("WY", 0)))
    Tally((('CA', 3), ('NY', 1)))
    >>> distances(Tally((("CA", 3), ("NY", 1))), Tally((("CA", 2), ("WY", 1))))
    (1, 1, 1)
    """

    pairs: Annotated[Pairs, Read(_in_order)]

    def scaled(self, factor: int) -> "Tally":
        """Every count, times `factor`."""
        return Tally(tuple((key, count * factor) for key, count in self.pairs))


def distances(left: Tally, right: Tally) -> tuple[int, ...]:
    """How far apart two tallies are, at every key that either of them lists."""
    one, other = dict(left.pairs), dict(right.pairs)
    return tuple(abs(one.get(key, 0) - other.get(key, 0)) for key in {**one, **other})


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
        if type(value) is int:  # nearly always, and every item and every ask comes this way
            _close(self, value)
        elif isinstance(value, Secret):
            _close(self, _open(value))
        else:
            _close(self, value if isinstance(value, Tally) else _integers(value))

    @property
    def keyed(self) -> bool:
        """Whether this is a tally. This is public."""
        return isinstance(_open(self), Tally)

    @property
    def width(self) -> int | None:
        """How many integers a vector has; None for a single integer, 0 for a tally. This is public."""
        raw = _open(self)
        if isinstance(raw, Tally):
            return 0
        return len(raw) if isinstance(raw, tuple) else None

    def map(self, function: Callable[..., Raw], *others: "Secret | Raw", width: int | None = None) -> "Secret":
        """Apply a public, total function of integers; the result is as secret as its arguments.

        The result's shape is public, so it is declared, not found out: a single integer, or `width` of them. A function
        that fails, or returns another shape, breaks its promise to be total. That is one error with one text, whatever
        the value was and whatever the function said; it carries neither. In a composite it cannot be caught: the
        program is halted. That a function failed is a fact about the data, so totality is the author's duty, and
        `verify.two_worlds` tests it.

        >>> Secret((3, 9)).map(max)
        Secret(...)
        >>> Secret((3, 9)).map(lambda raw: tuple(value // 2 for value in raw), width=2).width
        2
        >>> Secret(41).map(lambda raw: (0,) * raw)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        counterpoint.errors.NotTotal: a function of a secret failed on its value, or returned another shape ...
        """
        declared = None if width is None else whole(width, 0, "the width of a mapped secret")
        made = _mapped(function, (self, *others), declared)
        if isinstance(made, Secret):
            return made
        if made is not None:
            raise bare(made)
        _note_failure()
        raise not_total()

    def clamp(self, low: int, high: int) -> "Secret":
        """Bring every integer into [low, high].

        >>> Secret(-3).clamp(0, 10)
        Secret(...)
        """
        least, most = _limit(low), _limit(high)
        return self._each(lambda raw: min(max(raw, least), most))

    def __add__(self, other: "Secret | Raw") -> "Secret":
        return self._with(operator.add, other)

    __radd__ = __add__

    def __sub__(self, other: "Secret | Raw") -> "Secret":
        return self._with(operator.sub, other)

    def __rsub__(self, other: "Secret | Raw") -> "Secret":
        return -self + other

    def __mul__(self, other: "Secret | Raw") -> "Secret":
        if not self.keyed or not isinstance(other, int):
            return self._with(operator.mul, other)
        if other < 0:  # or a tally that lists nothing would pass, and one that lists a key would not
            raise InvalidParameter("a tally is multiplied by whole numbers from 0 on")
        return Secret(counted(self).scaled(other))

    __rmul__ = __mul__

    def __neg__(self) -> "Secret":
        return self._each(operator.neg)

    def __abs__(self) -> "Secret":
        return self._each(abs)

    def _each(self, function: Callable[[int], int]) -> "Secret":
        raw = reveal(self)
        return _computed(tuple(map(function, raw)) if isinstance(raw, tuple) else function(raw))

    def _with(self, function: Callable[[int, int], int], other: "Secret | Raw") -> "Secret":
        """Coordinate by coordinate; a single integer goes with every coordinate of a vector."""
        left, right = reveal(self), reveal(Secret(other))
        if isinstance(left, int) and isinstance(right, int):
            return _computed(function(left, right))
        width = len(left) if isinstance(left, tuple) else len(right) if isinstance(right, tuple) else 1
        first = left if isinstance(left, tuple) else (left,) * width
        second = right if isinstance(right, tuple) else (right,) * width
        if len(first) != len(second):
            widths = f"{len(first)} and {len(second)}"
            del left, right, first, second  # an error carries the locals of its frame along
            raise InvalidParameter(f"vectors of {widths} integers do not combine")
        return _computed(tuple(map(function, first, second)))

    def __repr__(self) -> str:
        return "Secret(...)"

    def __sealed__(self) -> Raw | Tally:
        """The raw value, for `encode` alone, where the bytes are going to be sealed."""
        return _open(self)

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
    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = __getstate__ = _refuse("copied or pickled")


_slot: Any = Secret.__dict__["_raw"]
_open: Callable[[Secret], Raw | Tally] = _slot.__get__
_close: Callable[[Secret, Raw | Tally], None] = _slot.__set__

# The slot is taken off the class: what goes through the attributes of an object, as debuggers and error reporters do,
# finds none that holds the value.
delattr(Secret, "_raw")


def _computed(raw: Raw) -> Secret:
    """A secret of integers that were computed here of integers: to check them would take longer than that did."""
    secret = Secret.__new__(Secret)
    _close(secret, raw)
    return secret


def reveal(value: Secret | Raw) -> Raw:
    """The integers inside. For mechanisms (which add noise to them) and for the verifier; no other code may call it.

    >>> reveal(Secret(3)), reveal(3)
    (3, 3)
    """
    if not isinstance(value, Secret):
        return value
    raw = _open(value)
    if isinstance(raw, Tally):
        del raw
        raise SecretLeak("a tally was opened as a number: its keys are secret, and only a selection of keys opens it")
    return raw


def counted(value: Secret) -> Tally:
    """The tally inside. For mechanisms that select keys, and for the verifier; no other code may call it.

    >>> counted(Secret(Tally((("CA", 3),)))).pairs
    (('CA', 3),)
    """
    raw = _open(value)
    if isinstance(raw, Tally):
        return raw
    del raw
    raise InvalidParameter("this secret is a number or a vector, not a tally")


_failures: ContextVar[list[None] | None] = ContextVar("failures", default=None)


@contextmanager
def noting_failures() -> Iterator[list[None]]:
    """While a program runs, note each function of a secret that fails: the program cannot undo that by catching it.

    >>> with noting_failures() as noted:
    ...     try:
    ...         secret = Secret(0).map(lambda raw: 1 // raw)
    ...     except NotTotal:
    ...         secret = Secret(7)
    >>> bool(noted)
    True
    """
    noted: list[None] = []
    before = _failures.set(noted)
    try:
        yield noted
    finally:
        _failures.reset(before)


def not_total() -> NotTotal:
    """The error for a function of a secret that failed. Its text says nothing about the value, the function or why."""
    return NotTotal(
        "a function of a secret failed on its value, or returned another shape than declared: it must be total, and "
        "return one integer, or `width` of them"
    )


def _note_failure() -> None:
    noted = _failures.get()
    if noted is not None:
        noted.append(None)


def _mapped(
    function: Callable[..., Raw], values: tuple[Secret | Raw, ...], width: int | None
) -> Secret | BaseException | None:
    """What a function makes of these values: None if it fails, the interruption if one came. It never raises either."""
    raw = [reveal(value) for value in values]
    try:
        return Secret(_shaped(function(*raw), width))
    except INTERRUPTIONS as interruption:
        return interruption
    except BaseException:
        return None


def _shaped(value: object, width: int | None) -> Raw:
    """The value as integers of the declared shape, or an error for `_mapped`."""
    if width is None:
        return _integer(value)
    if not isinstance(value, tuple | list) or len(value) != width:
        raise not_total()
    return tuple(_integer(item) for item in value)


def _integers(value: object) -> Raw:
    if isinstance(value, tuple | list):
        return tuple(_integer(item) for item in value)
    return _integer(value)


def _limit(value: object) -> int:
    """A limit of `clamp`: read as a secret's own integers are, and just as little to be decided by one."""
    return _integer(value, "the limits of clamp are whole numbers")


def _integer(value: object, rule: str = "a secret holds an integer or a tuple of integers") -> int:
    if type(value) is int:  # nearly always, and much cheaper to see than what follows
        return value
    if hasattr(value, "__index__"):
        with suppress(TypeError):  # an array has one, which fails unless it is a single integer
            return int(operator.index(value))
    raise InvalidParameter(f"{rule}, not a {type(value).__name__}")
