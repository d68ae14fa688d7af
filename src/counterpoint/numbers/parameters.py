"""Kinds of exact parameters: how a field reads what it is given, declared once, in its annotation.

A struct (`encoding.Value`) declares the kind of each parameter. A constructor then takes any `Number` for a rational
kind, the field holds the `Fraction` it stands for, and `__post_init__`, which runs afterwards, is left with what
relates one parameter to another. Messages call a parameter by its field's name, or by the text annotated beside it.

>>> from counterpoint.encoding import Value
>>> class Noise(Value, frozen=True):
...     epsilon: Positive
...     asks: PositiveInt = 1
...     scale: Annotated[PositiveOrNone, "the scale"] = default(None)
>>> Noise(0.1)
Noise(0.1)
>>> Noise("0.1", scale=-2)
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: the scale must be above 0, but -2 was given

A kind is `Annotated[Parameter[held, given], Read(reader)]`, so a room can declare its own. A kind that may be None has
a name of its own (`PositiveOrNone`), since type checkers do not look into `Positive | None`; kinds of integers take
what they hold, so that `PositiveInt | None` will do. A default other than an int's is written `default(...)`.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Generic,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

import msgspec
from msgspec.structs import force_setattr

from counterpoint.errors import InvalidParameter
from counterpoint.numbers.exact import (
    LARGEST,
    Number,
    above_one,
    at_least,
    exact,
    format_number,
    positive,
    probability,
    whole,
)

Held = TypeVar("Held")
Given = TypeVar("Given")
Reader = Callable[[Any, str], Any]
"""Makes what a field holds of what was given, or raises `InvalidParameter` with the name it is handed."""

if TYPE_CHECKING:

    class Parameter(Generic[Held, Given]):
        """A field that holds one type and is given another: to type checkers a descriptor, else the type it holds."""

        @overload
        def __get__(self, owner: None, kind: type) -> "Parameter[Held, Given]": ...
        @overload
        def __get__(self, owner: object, kind: type) -> Held: ...
        def __get__(self, owner: object, kind: type) -> object: ...
        def __set__(self, owner: Any, value: Given) -> None: ...

else:

    class Parameter:
        """A field that holds one type and is given another: to type checkers a descriptor, else the type it holds."""

        def __class_getitem__(cls, held_and_given: tuple[Any, Any]) -> Any:
            return held_and_given[0]


@dataclass(frozen=True)
class Read:
    """Marks a kind of parameter with its reader.

    Values of exactly the type `held`, from `least` to `LARGEST`, are what the reader would return, and are left as they
    are: most come from our own code, and every ask and launch has several.
    """

    reader: Reader
    held: type[Any] | None = None
    least: int = 0


def default(value: object) -> Any:
    """The default of a parameter: what its field holds when nothing is given."""
    return value


def _at_least_zero(value: object, what: str) -> Fraction:
    return at_least(value, 0, what)


def _positive_int(value: object, what: str) -> int:
    return whole(value, 1, what)


def _non_negative_int(value: object, what: str) -> int:
    return whole(value, 0, what)


def _flag(value: object, what: str) -> bool:
    if isinstance(value, bool):
        return value
    raise InvalidParameter(f"{what} is True or False")


Rational = Annotated[Parameter[Fraction, Number], Read(exact)]
"""Any number."""
NonNegative = Annotated[Parameter[Fraction, Number], Read(_at_least_zero)]
"""A number from 0 on."""
Positive = Annotated[Parameter[Fraction, Number], Read(positive)]
"""A number above 0."""
Probability = Annotated[Parameter[Fraction, Number], Read(probability)]
"""A number from 0 to 1."""
Order = Annotated[Parameter[Fraction, Number], Read(above_one)]
"""The order of a Renyi divergence: a number above 1."""
RationalOrNone = Annotated[Parameter[Fraction | None, Number | None], Read(exact)]
"""Any number, or None."""
PositiveOrNone = Annotated[Parameter[Fraction | None, Number | None], Read(positive)]
"""A number above 0, or None."""
OrderOrNone = Annotated[Parameter[Fraction | None, Number | None], Read(above_one)]
"""An order, or None."""
ProbabilityOrNone = Annotated[Parameter[Fraction | None, Number | None], Read(probability)]
"""A number from 0 to 1, or None."""
PositiveInt = Annotated[int, Read(_positive_int, int, 1)]
"""A whole number from 1 on."""
NonNegativeInt = Annotated[int, Read(_non_negative_int, int, 0)]
"""A whole number from 0 on."""
Flag = Annotated[bool, Read(_flag, bool)]
"""True or False."""


class _Reading(NamedTuple):
    """How one field is read: its name, what messages call it, of which kind, and whether None is left as it is."""

    name: str
    what: str
    kind: Read
    optional: bool


def read_before_checks(struct: type) -> None:
    """Let a struct that is being defined read its parameters, by their kinds, before its own `__post_init__` runs."""
    readings = {reading.name: reading for base in reversed(struct.__mro__) for reading in _declared(base)}
    if readings and ("__post_init__" in struct.__dict__ or any(_declared(struct))):
        check = getattr(struct, "__post_init__", None)
        check = getattr(check, "after_reading", check)  # of a base that reads, what it checks afterwards
        struct.__post_init__ = _post_init(tuple(readings.values()), check)  # type: ignore[attr-defined]


def _post_init(readings: tuple[_Reading, ...], check: Callable[[Any], None] | None) -> Callable[[Any], None]:
    """A `__post_init__` that reads the parameters, and then checks."""
    # plain tuples are unpacked faster than named ones, and every launch comes this way
    steps = tuple((name, what, kind.reader, kind.held, kind.least, optional) for name, what, kind, optional in readings)

    def read_and_check(struct: Any) -> None:
        for name, what, reader, held, least, optional in steps:
            given = getattr(struct, name)
            if (given is None and optional) or (type(given) is held and least <= given <= LARGEST):
                continue
            found = reader(given, what)
            if found is not given:
                force_setattr(struct, name, found)
        if check is not None:
            check(struct)

    read_and_check.after_reading = check  # type: ignore[attr-defined]
    return read_and_check


def _declared(struct: type) -> Iterator[_Reading]:
    """The parameters that this class itself declares."""
    if not isinstance(struct, type(msgspec.Struct)):
        return  # what a mixin annotates is no field
    annotations = inspect.get_annotations(struct)
    if any(isinstance(annotation, str) for annotation in annotations.values()):
        resolved = get_type_hints(struct, localns={struct.__name__: struct}, include_extras=True)
        annotations = {name: resolved[name] for name in annotations}
    for name, annotation in annotations.items():
        marks = list(_marks(annotation))
        for kind in (mark for mark in marks if isinstance(mark, Read)):
            what = next((mark for mark in reversed(marks) if isinstance(mark, str)), name)
            yield _Reading(name, what, kind, NoneType in marks)


def _marks(annotation: Any) -> Iterator[object]:
    """What is annotated beside a type, inside first; `NoneType` among it says that the field may be None."""
    parts = get_args(annotation)
    if get_origin(annotation) is Annotated:
        yield from _marks(parts[0])
        yield from parts[1:]
    elif get_origin(annotation) in (Union, UnionType):
        for part in parts:
            yield from _marks(part)
    elif annotation is NoneType:
        yield NoneType
    elif any(isinstance(mark, Read) for part in parts for mark in _marks(part)):
        raise TypeError(f"{annotation} holds a kind of parameter, which is read only as a field of its own")


def _rate(value: object, what: str) -> Fraction:
    """Read the rate of a sample: a number above 0 and below 1.

    >>> from counterpoint import Laplace, Sampled
    >>> Sampled(Laplace(1), rate=1)
    Traceback (most recent call last):
    ...
    counterpoint.errors.InvalidParameter: rate must be above 0 and below 1, not 1: each unit is in the ...
    """
    rate = exact(value, what)
    if not 0 < rate < 1:
        raise InvalidParameter(
            f"{what} must be above 0 and below 1, not {format_number(rate)}: each unit is in the sample with "
            "that probability"
        )
    return rate


Rate = Annotated[Parameter[Fraction, Number], Read(_rate)]
"""The rate of a sample: a number above 0 and below 1."""
