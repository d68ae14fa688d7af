"""Messages: what a mechanism receives (Henzinger et al. 2024, Def 3.2 to 3.5, Fig 4).

An `Ask` wants an answer: its public part is the same for all neighbouring data, its private part is a secret whose
possible change is bounded by a public integer, the sensitivity, on the same integer grid. An `Update` brings data
and gets no answer. `ToChild` addresses one child of a composition.

>>> Ask("how many?", private=Secret(41), sensitivity=1)
Ask(public='how many?', private=Secret(...), squared=1, each=1)
"""

from copy import copy
from functools import lru_cache
from math import isqrt
from typing import Annotated, NamedTuple

from msgspec.structs import force_setattr

from counterpoint.encoding import Plain, Tagged, Value, encode
from counterpoint.errors import InvalidParameter
from counterpoint.numbers.parameters import Flag, Parameter, PositiveInt, Read, default
from counterpoint.privacy.secret import Raw, Secret, Tally, counted, distances, reveal


def _sealed(value: Secret | Raw | Tally, _what: str) -> Secret:
    """Wrap a raw value; what it is appears nowhere."""
    return Secret(value)


Private = Annotated[Parameter[Secret, Secret | Raw | Tally], Read(_sealed)]
"""A private part: raw integers are wrapped as a secret."""
PrivateOrNone = Annotated[Parameter[Secret | None, Secret | Raw | Tally | None], Read(_sealed)]
"""A private part, or None."""


class Ask(Tagged, Value, frozen=True):
    """A question. Between neighbours its private part moves by at most `sensitivity` in the L1 norm.

    `squared` bounds the square of the change in the L2 norm, `each` the change of every single integer (the maximum
    norm); without them, they follow from the others. `one_way` says that no two integers, in this ask or in others that
    say so, move against each other between neighbours; the relation `OneWay` is what that means.

    A vector of several `cells` of equal length wants one choice in each of them. Then `each` bounds the sum over the
    cells of how far the integers of a cell move at most; it is no smaller than the maximum norm.

    >>> ask = Ask(private=(3, 4), sensitivity=2, squared=2)
    >>> ask.sensitivity, ask.each
    (2, 1)
    """

    public: Plain = None
    private: PrivateOrNone = default(None)
    sensitivity: Annotated[PositiveInt, "the sensitivity"] = 1
    squared: Annotated[PositiveInt, "the squared sensitivity"] | None = None
    each: Annotated[PositiveInt, "the sensitivity of each integer"] | None = None
    one_way: Flag = False
    cells: Annotated[PositiveInt, "the number of cells"] = 1

    def __post_init__(self) -> None:
        """Derive the norms that were not given; nothing here looks at a raw value."""
        width = 0 if self.private is None else self.private.width or 0
        if self.cells > 1 and (width == 0 or width % self.cells):
            raise InvalidParameter(f"{self.cells} cells of equal length do not make up a vector of {width} integers")
        most = self.sensitivity * self.sensitivity
        squared = most if self.squared is None else self.squared
        each = self.sensitivity if self.each is None else self.each
        # No norm is larger than the L1 norm, and the maximum norm of a single cell is at most the L2 norm.
        force_setattr(self, "squared", min(squared, most))
        force_setattr(self, "each", min(each, self.sensitivity, isqrt(squared) if self.cells == 1 else each))

    def carrying(self, private: Secret) -> "Ask":
        """The same ask with another private part of its shape; the public facts have been read and checked.

        >>> Ask(private=(0, 0), sensitivity=3).carrying(Secret((4, 5))).sensitivity
        3
        """
        blank = self.private
        if blank is None or blank.width != private.width:
            raise InvalidParameter("a private part has another shape than the ask that was prepared for it")
        carried = copy(self)  # which reads nothing again
        force_setattr(carried, "private", private)
        return carried


class Update(Tagged, Value, frozen=True):
    """Data that arrives. It has no answer and cannot halt a mechanism.

    >>> Update(1)
    Update(Secret(...))
    """

    private: Private


@lru_cache(maxsize=16)
def blank_update(width: int | None) -> Update:
    """An update of zeros; one is made for every width, not for every ask.

    >>> blank_update(None), blank_update(3).private.width
    (Update(Secret(...)), 3)
    """
    return Update(0 if width is None else (0,) * width)


Message = Ask | Update


class ToChild(Tagged, Value, frozen=True):
    """The public part of a message for one child of a composition: whom it is for, and what the child sees.

    >>> ToChild(0, "how many?")
    ToChild(child=0, public='how many?')
    """

    child: int | str
    public: Plain = None


class Gap(NamedTuple):
    """How far apart two messages are in their private parts: in L1, in squared L2, and in the maximum norm.

    Where an ask has several cells, `each` is the sum of the maximum norms of the cells.
    """

    l1: int
    squared: int
    each: int


def gap(left: Message, right: Message) -> Gap | None:
    """The distance between two messages, or None if an observer could tell them apart by public facts alone.

    A tally's keys are not public: what only one of two tallies lists is 0 in the other.

    >>> gap(Ask(private=(1, 1)), Ask(private=(0, 3)))
    Gap(l1=3, squared=5, each=2)
    >>> gap(Ask("a"), Ask("b")) is None
    True
    """
    if not _same_in_public(left, right):
        return None
    if left.private is None or right.private is None:
        return Gap(0, 0, 0)
    steps = _steps(left.private, right.private)
    return Gap(sum(steps), sum(step * step for step in steps), _largest(steps, left))


def _largest(steps: list[int], message: Message) -> int:
    """The largest step, or where an ask has several cells, the sum of the largest of each."""
    cells = message.cells if isinstance(message, Ask) else 1
    if cells == 1:
        return max(steps, default=0)
    each = len(steps) // cells
    return sum(max(steps[start : start + each], default=0) for start in range(0, len(steps), each or 1))


def _same_in_public(left: Message, right: Message) -> bool:
    if type(left) is not type(right) or _width(left) != _width(right):
        return False
    if isinstance(left, Ask) and isinstance(right, Ask):
        one = (left.public, left.sensitivity, left.squared, left.each, left.one_way, left.cells)
        other = (right.public, right.sensitivity, right.squared, right.each, right.one_way, right.cells)
        return encode(one) == encode(other)
    return True


def _width(message: Message) -> object:
    if message.private is None:
        return "nothing"
    return "a tally" if message.private.keyed else message.private.width


def _steps(left: Secret, right: Secret) -> list[int]:
    """How far apart two secrets of one shape are, coordinate by coordinate (of a tally: key by key)."""
    if left.keyed:
        return list(distances(counted(left), counted(right)))
    return [abs(a - b) for a, b in zip(_coordinates(left), _coordinates(right), strict=True)]


def _coordinates(secret: Secret) -> tuple[int, ...]:
    raw = reveal(secret)
    return raw if isinstance(raw, tuple) else (raw,)


def require_message(message: object) -> Message:
    """The message itself, or `InvalidParameter` if it is not a message.

    >>> require_message(Ask("x")).public
    'x'
    """
    if isinstance(message, Ask | Update):
        return message
    raise InvalidParameter(f"a message is an Ask or an Update, not a {type(message).__name__}")
