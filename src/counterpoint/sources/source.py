"""A source: a table or a stream that turns a public request into private integers under a relation.

See Henzinger et al. 2024, sec. 3, 6.

A request is prepared by public facts alone: its shape, its sensitivity in the L1, squared L2 and maximum norms, whether
it moves one way (see `Ask`), what its coordinates are called, and the grid on which its integers stand (one step of the
integer is worth `grid` in the user's units). Only then is it resolved on pinned data, to a `Secret`. What is refused is
refused before any data is touched.

>>> Prepared(request=None, sensitivity=100, squared=10_000, width=None, grid=Fraction(1, 100)).in_units(250)
Fraction(5, 2)
"""

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction

from counterpoint.encoding import Plain, Tagged, Value, digest
from counterpoint.errors import InvalidRequest, shown
from counterpoint.mechanisms.mechanism import Chosen
from counterpoint.privacy.messages import Update
from counterpoint.privacy.relations import Relation
from counterpoint.privacy.secret import Secret
from counterpoint.sources.declaring.columns import Key


class Prepared(Tagged, Value, frozen=True):
    """A request that has been checked against the source's declaration, with everything public about its value."""

    request: Plain
    sensitivity: int
    squared: int
    width: int | None
    grid: Fraction
    each: int | None = None
    one_way: bool = False
    names: tuple[bool | int | str, ...] | None = None

    def in_units(self, answer: Plain) -> object:
        """A noisy integer (or a tuple of them) in the user's units: an int where the grid is 1, else a Fraction.

        A chosen coordinate is named, if it has a name.

        >>> Prepared(None, 1, 1, 2, Fraction(1), names=("CA", "NY")).in_units(Chosen(1))
        'NY'
        """
        if isinstance(answer, Chosen):
            return answer.index if self.names is None else self.names[answer.index]
        return in_units(answer, self.grid)

    def blank(self) -> Secret:
        """A secret of this public shape, by which a mechanism says whether it would accept the real one."""
        return Secret(0 if self.width is None else (0,) * self.width)

    def to_grid(self, value: Fraction) -> Fraction:
        """A number in the user's units (such as a threshold) on the grid of the integers."""
        return value / self.grid


def in_units(answer: Plain, grid: Fraction) -> object:
    """The integers of an answer as multiples of the grid; what is no integer stays as it is.

    >>> in_units((3, True), Fraction(1, 2)), in_units(3, Fraction(1))
    ((Fraction(3, 2), True), 3)
    """
    if isinstance(answer, tuple):
        return tuple(in_units(item, grid) for item in answer)
    if isinstance(answer, bool) or not isinstance(answer, int):
        return answer
    return answer if grid == 1 else answer * grid


def told(request: object) -> str:
    """What was asked, as a person would know it again.

    >>> told("how many?"), told(sum), told(3)
    ("the text 'how many?'", 'the function sum: call it, as in sum(...)', 'a int')
    """
    if isinstance(request, str):
        return f"the text {request[:40]!r}"
    if callable(request):
        name = getattr(request, "__name__", "it")
        return f"the function {name}: call it, as in {name}(...)"
    return f"a {type(request).__name__}"


class Source:
    """Data that can be asked: prepares requests in public, resolves them in secret, on pinned versions."""

    __slots__ = ()

    @property
    @abstractmethod
    def relation(self) -> Relation:
        """How the messages made from this source may differ between neighbouring data."""

    @property
    def dimensions(self) -> int | None:
        """How long the vectors are that mechanisms receive as updates; None: they receive numbers, or nothing."""
        return None

    @property
    def update_grid(self) -> Fraction:
        """What one step of the integers is worth that mechanisms receive as updates."""
        return Fraction(1)

    def of(self, fields: str | Sequence[str] | None = None) -> "Source":
        """The same data, of which mechanisms receive these fields as updates; a table sends none."""
        if fields is not None:
            raise InvalidRequest(f"only a stream of records is followed by its fields, such as {shown(fields)}")
        return self

    @abstractmethod
    def pin(self) -> int | str:
        """The present version of the data: a fingerprint of a table, the length of a stream. It is public."""

    def fingerprint(self) -> str | None:
        """What a durable ledger knows this data by after a restart, rows and declaration; None: it cannot be known."""
        return digest(self.pin(), self.relation).hex()

    def rows(self) -> bytes | None:
        """A digest of the data as it was given, whatever was declared; None: it is not compared with other data.

        It is not public: it confirms guesses. A ledger keeps it sealed.
        """
        return None

    @abstractmethod
    def prepare(self, request: object) -> Prepared:
        """The request with its public facts, or `InvalidRequest`; no data is touched."""

    @abstractmethod
    def resolve(self, pin: int | str, prepared: Prepared) -> Secret:
        """The private integers, on the data as it was when it was pinned."""

    def items(self, start: int | str, end: int | str) -> tuple[Update, ...]:
        """The updates that arrived between two pins; a table has none."""
        return ()

    def prompt(self, start: int | str, end: int | str, prepared: Prepared | None) -> bool:
        """Whether a request, after the updates between two pins, is worked out in no time; if in doubt, it is not.

        Then whoever commits does so for all who share the transaction; otherwise each thread for itself. Only what is
        public may decide.
        """
        return False

    def reach(self, by: str) -> int:
        """How many parts, cut by this column, a unit and its neighbour can reach: public, enforced by the source."""
        raise InvalidRequest(f"this source is not cut into parts by {by!r}")

    def key(self, by: str, key: Plain | float | Fraction) -> Key:
        """The value that names a part, as it is stored: however it is spelled, it is one part."""
        if type(key) in (bool, int, str):
            return key  # type: ignore[return-value]
        raise InvalidRequest(f"a part is named by a text, a whole number or a truth value, not a {type(key).__name__}")

    def spelled(self, by: str, stored: Key) -> Key | Fraction:
        """A stored value that names a part as `part` takes it, by which a part on record is found again."""
        return stored

    @abstractmethod
    def part(self, by: str, key: Plain | float | Fraction) -> "Source":
        """The part of this source where column `by` has this value; the set of parts is never read off the data."""
