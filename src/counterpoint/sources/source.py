"""A source: a table or a stream that turns a public request into private integers under a relation.

See Henzinger et al. 2024, sec. 3, 6.

A source prepares a request from public facts alone: its shape, its sensitivity in the L1, squared L2 and maximum norms,
whether it moves one way (see `Ask`), the names of its coordinates, and the grid of its integers (one integer step is
worth `grid` in the user's units). It then resolves the prepared request on pinned data, to a `Secret`. Every refusal
comes before any data is touched.

>>> Prepared(request=None, sensitivity=100, squared=10_000, width=None, grid=Fraction(1, 100)).in_units(250)
2.5
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import UNSET, UnsetType

from counterpoint.encoding import Plain, Tagged, Value, digest
from counterpoint.errors import InvalidRequest, NotCovered, shown
from counterpoint.mechanisms.mechanism import Chosen
from counterpoint.numbers import Exact
from counterpoint.privacy.messages import Ask, Update
from counterpoint.privacy.relations import Relation
from counterpoint.privacy.samples import Sample
from counterpoint.privacy.secret import Secret
from counterpoint.sources.asking.about import About
from counterpoint.sources.declaring.columns import Key, KeyOrTuple

if TYPE_CHECKING:
    from counterpoint.sources.asking.request import Request
    from counterpoint.sources.streams.log import Log


Wants: TypeAlias = Literal["numbers", "choice", "keys"]
"""What a request wants of a mechanism."""


class Prepared(Tagged, Value, frozen=True):
    """A request that has been checked against the source's declaration, with everything public about its value."""

    request: Plain
    sensitivity: int
    squared: int
    width: int | None
    grid: Fraction
    each: int | None = None
    one_way: bool = False
    names: tuple[KeyOrTuple, ...] | None = None
    # Unset, it is left out of the encoding, so that asks in older ledgers keep their bytes.
    units: str | UnsetType = UNSET

    def in_units(self, answer: Plain) -> object:
        """A noisy integer (or a tuple of them) in the user's units: an int where the grid is 1, else a Fraction.

        A chosen coordinate becomes its name, or its index if it has none.

        >>> Prepared(None, 1, 1, 2, Fraction(1), names=("CA", "NY")).in_units(Chosen(1))
        'NY'
        """
        if isinstance(answer, Chosen):
            return answer.index if self.names is None else self.names[answer.index]
        return in_units(answer, self.grid)

    @property
    def wants(self) -> Wants:
        """What kind of mechanism answers it: one that adds noise to numbers, or chooses a coordinate, or selects keys.

        >>> Prepared(None, 1, 1, None, Fraction(1)).wants
        'numbers'
        """
        return "numbers"

    @property
    def cells(self) -> int:
        """In how many cells a choice is wanted, where one is (see `Ask`)."""
        return 1

    @property
    def options(self) -> Mapping[str, int]:
        """The options of a mechanism that the request itself gives with the ask, such as `top` of a noisy max."""
        return {}

    @property
    def states_error(self) -> bool:
        """Whether an error of the integers is one of the answer: not if `in_units` does more than multiply.

        A subclass with another `in_units` states an error by overriding this, `together` and `error_from`.
        """
        return type(self).in_units is Prepared.in_units

    @property
    def together(self) -> int:
        """How many numbers of the noisy answer make one number in the user's units: two for a mean."""
        return 1

    def error_in_units(self, steps: int) -> int | Fraction:
        """How far an answer is off in the user's units if its integers are off by `steps`; or `NotCovered`."""
        if not self.states_error:
            raise NotCovered(
                f"no error is stated for {shown(self.request, 200)}: ask for counts or sums, which have one"
            )
        return steps if self.grid == 1 else Exact(steps * self.grid)

    def error_from(self, answer: Plain, steps: int) -> int | Fraction:
        """The same, where it may depend on the noisy answer itself: on what was released, never on the data."""
        return self.error_in_units(steps)

    def parts(self, answer: Plain) -> "Mapping[str, tuple[Prepared, Plain]]":
        """Where an answer is several questions' at once: for each name what was asked, and its share of the integers.

        The noise of all of them is that of the whole request; a part says how its integers are read.
        """
        return {}

    def signal(self, answer: Plain) -> int:
        """The size of what noise could drown, on the grid of the integers: that of the number itself."""
        assert isinstance(answer, int)
        return abs(answer)

    @property
    def measured_in(self) -> str | None:
        """What the answer is measured in, if its column declares that."""
        return None if isinstance(self.units, UnsetType) else self.units

    def message(self) -> Ask:
        """The ask that a mechanism receives, but for what is private."""
        return Ask(
            None, self.blank(), self.sensitivity, self.squared, each=self.each, one_way=self.one_way, cells=self.cells
        )

    def blank(self) -> Secret:
        """A secret of this public shape: a mechanism that accepts it accepts the real one."""
        return Secret(0 if self.width is None else (0,) * self.width)

    def to_grid(self, value: Fraction) -> Fraction:
        """A number in the user's units (such as a threshold), counted in steps of the grid."""
        return value / self.grid


def in_units(answer: Plain, grid: Fraction) -> object:
    """The integers of an answer as multiples of the grid; anything else stays as it is.

    >>> in_units((3, True), Fraction(1, 2)), in_units(3, Fraction(1))
    ((1.5, True), 3)
    """
    if isinstance(answer, tuple):
        return tuple(in_units(item, grid) for item in answer)
    if isinstance(answer, bool) or not isinstance(answer, int):
        return answer
    return answer if grid == 1 else Exact(answer * grid)


def describe_request(request: object) -> str:
    """A request that no source knows, as an error message names it.

    >>> describe_request("how many?"), describe_request(sum), describe_request(3)
    ("the text 'how many?'", 'the function sum: call it, as in sum(...)', 'a value of type int')
    """
    if isinstance(request, str):
        query = request.lstrip()[:6].upper() == "SELECT"
        return f"the text {request[:40]!r}{': ask it by session.sql(...)' if query else ''}"
    if isinstance(request, About):
        return f"one about several sources: there is one here, so leave out of={request.source!r}"
    if callable(request):
        name = getattr(request, "__name__", "it")
        return f"the function {name}: call it, as in {name}(...)"
    return f"a value of type {type(request).__name__}"


BY_REPLACEMENT = (
    "neighbours are declared by replacement, and there a sample hides nothing of a unit (theory, Sampling); declare "
    "the data with neighbours='add-or-remove'"
)
"""Why data with other neighbours than by one unit, added or removed, are not sampled."""


class Source:
    """Data that answers requests: it prepares them from public facts and resolves them on a pinned version."""

    __slots__ = ()

    @property
    @abstractmethod
    def relation(self) -> Relation:
        """How the messages made from this source may differ between neighbouring data."""

    def describe(self) -> str:
        """What is declared and what is protected; public."""
        return repr(self)

    @property
    def unit(self) -> str | None:
        """The column that identifies a unit; None if none does, or only several together."""
        return None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sources that requests are about, if there are several (see `Sources`)."""
        return ()

    def seen_from(self, name: str) -> Mapping[str, str]:
        """What the rows of the source of this name see of others: each by its name, with the column that finds it."""
        return {}

    @property
    def dimensions(self) -> int | None:
        """The length of the vectors that mechanisms receive as updates; None if they receive numbers, or nothing."""
        return None

    @property
    def update_grid(self) -> Fraction:
        """What one integer step of an update is worth in the user's units."""
        return Fraction(1)

    def of(self, fields: "str | Sequence[str] | Request | None" = None) -> "Source":
        """The same data, whose updates carry these fields, or what they add to a request; a table has no updates."""
        if fields is not None:
            raise InvalidRequest(
                f"this source has no fields to read as updates, so not {shown(fields)}: leave out the fields, or "
                "use a stream of records, Stream(fields={...})"
            )
        return self

    @property
    def unfollowed(self) -> str | None:
        """What is missing before a mechanism that takes updates can follow this source; None if nothing is."""
        return None

    @property
    def unsampled(self) -> str | None:
        """Why no secret sample of the units can be drawn of this source; None if one can (theory, Sampling)."""
        return (
            f"samples are drawn of embedded tables and of streams, and not of a {type(self).__name__} (theory, "
            "Sampling); launch the mechanism as it is, on all units"
        )

    def sampled(self, sample: Sample) -> "Source":
        """The same source with the units of this sample alone; its public facts are the same."""
        raise NotCovered(f"no sample is drawn of this data: {self.unsampled}")

    @property
    def made_up(self) -> bool:
        """Whether the data is made up, so that answers say nothing about anyone."""
        return False

    @property
    def is_lost(self) -> bool:
        """Whether the connection to the data was lost, as far as is known: then the data has to be bound anew."""
        return False

    def rehearsed(self) -> "Source":
        """The same declaration over made-up data, for `Session.rehearse`; nothing of the real data is read."""
        raise NotCovered(
            f"rows are made up for tables, not for a {type(self).__name__}: declare another one like it, append "
            "made-up items, and rehearse in a session of its own, Session(made_up, within=...)"
        )

    @abstractmethod
    def pin(self) -> int | str:
        """The current version of the data: the fingerprint of a table, the length of a stream. It is public."""

    @property
    def log(self) -> "Log | None":
        """What has arrived, which a durable ledger stores; None if the data does not change."""
        return None

    def fingerprint(self) -> str | None:
        """How a durable ledger recognises rows and declaration after a restart; None if it cannot."""
        return digest(self.pin(), self.relation).hex()

    def rows(self) -> bytes | None:
        """A digest of the given data, the same for every declaration; None if it cannot be compared with other data.

        Several tables have one digest each, one behind the other. It is not public: it confirms guesses. A ledger keeps
        it sealed.
        """
        return None

    @property
    def count_moves(self) -> int:
        """By how much a count of the rows moves between neighbours; 1 for data that has no rows to count."""
        return 1

    @abstractmethod
    def prepare(self, request: object) -> Prepared:
        """The request with its public facts, or `InvalidRequest`. Touches no data."""

    @abstractmethod
    def resolve(self, pin: int | str, prepared: Prepared) -> Secret:
        """The private integers, computed on the pinned version of the data."""

    def items(self, start: int | str, end: int | str) -> tuple[Update, ...]:
        """The updates that arrived between two pins; a table has none."""
        return ()

    def blank_update(self) -> Update | None:
        """An update of the public shape that all updates have, if that is known; `items` need not be read for
        mechanisms that do not accept it.
        """
        return None

    def reach(self, by: str) -> int:
        """In how many parts by this column two neighbouring data sets may differ: public, enforced by the source."""
        raise InvalidRequest(f"this source has no column {by!r} and cannot be partitioned by it")

    def key(self, by: str, key: Plain | float | Fraction) -> Key:
        """The stored value that names a part: different spellings of one value name one part."""
        if type(key) in (bool, int, str):
            return key  # type: ignore[return-value]
        raise InvalidRequest(
            f"a part is named by a text, a whole number or a truth value, not by a value of type {type(key).__name__}"
        )

    def spelled(self, by: str, stored: Key) -> Key | Fraction:
        """The stored value of a part on record, as `part` takes it."""
        return stored

    @abstractmethod
    def part(self, by: str, key: Plain | float | Fraction) -> "Source":
        """The part of this source in which column `by` has this value. The parts never depend on the data."""
