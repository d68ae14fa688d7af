"""A source: a table or a stream that turns a public request into private integers under a relation.

See Henzinger et al. 2024, sec. 3, 6.

A source prepares a request from public facts alone: its shape, its sensitivity in the L1, squared L2 and maximum norms,
whether it moves one way (see `Ask`), the names of its coordinates, and the grid of its integers (one integer step is
worth `grid` in the user's units). It then resolves the prepared request on pinned data, to a `Secret`. Every refusal
comes before any data is touched.

>>> PreparedQuery(request=None, sensitivity=100, squared=10_000, width=None, grid=Fraction(1, 100)).in_units(250)
2.5
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

from counterpoint.encoding import Plain, digest
from counterpoint.errors import InvalidRequest, NotCovered, shown
from counterpoint.privacy.messages import Update
from counterpoint.privacy.relations import Relation
from counterpoint.privacy.samples import Sample
from counterpoint.privacy.secret import Secret
from counterpoint.queries.request import PreparedQuery
from counterpoint.schema.columns import Key
from counterpoint.schema.versions import DeclaredData

if TYPE_CHECKING:
    from counterpoint.queries.request import Request

BY_REPLACEMENT = (
    "neighbours are declared by replacement, and there a sample hides nothing of a unit (theory, Sampling); declare "
    "the data with neighbours='add-or-remove'"
)
"""Why data with other neighbours than by one unit, added or removed, are not sampled."""


class AppendLog(Protocol):
    """The items of a stream, which a ledger stores as they arrive."""

    what: str
    """What it is the log of, as in an error: a stream or a live table."""

    @property
    def kept_for(self) -> str | None:
        """The name of the session that stores this log, if one does."""

    def keep(self, keeper: Any) -> None:
        """Store the items with this keeper (`DurableLog` in `sources.streams.log`) from now on."""

    def length(self) -> int:
        """How many items have arrived."""


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

    def seen_from(self, name: str) -> Mapping[str, tuple[tuple[str, str, str], ...]]:
        """What the rows of the source of this name see of others, and how each is found.

        A row finds another by comparisons of its own columns with the other's, as in `("day", ">=", "since")`.
        """
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
    def why_no_updates(self) -> str | None:
        """What is missing before a mechanism that takes updates can follow this source; None if nothing is."""
        return None

    @property
    def why_not_sampled(self) -> str | None:
        """Why no secret sample of the units can be drawn of this source; None if one can (theory, Sampling)."""
        return (
            f"samples are drawn of embedded tables and of streams, and not of a {type(self).__name__} (theory, "
            "Sampling); launch the mechanism as it is, on all units"
        )

    def sampled(self, sample: Sample) -> "Source":
        """The same source with the units of this sample alone; its public facts are the same."""
        raise NotCovered(f"no sample is drawn of this data: {self.why_not_sampled}")

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
    def log(self) -> "AppendLog | None":
        """What has arrived, which a durable ledger stores; None if the data does not change."""
        return None

    def fingerprint(self) -> str | None:
        """How a durable ledger recognises rows and declaration after a restart; None if it cannot."""
        return digest(self.pin(), self.relation).hex()

    def declared(self) -> DeclaredData:
        """What is declared about the data, as the record of its versions has it; public."""
        return DeclaredData(type(self).__name__, () if self.unit is None else (self.unit,), (), "", self.describe())

    def numbered(self, version: int) -> "Source":
        """The same data as this version of a data set.

        Two versions with the same rows must not be recognised by that: it would tell a neighbour, in whom they differ.
        So a fingerprint that is shown belongs to one version.
        """
        return self

    @property
    def why_not_refreshed(self) -> str | None:
        """Why data like these do not become a next version of a data set; None if they can."""
        return f"newer rows do not take the place of those of a {type(self).__name__}: append to it"

    def why_not_behind(self, before: DeclaredData) -> str | None:
        """Why these data cannot read what has arrived for data that were declared like this; None if they can."""
        return None

    def continues(self, before: "Source") -> None:
        """Read on in what has arrived for the version before; rows that do not arrive are each version's own."""

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
    def prepare(self, request: object) -> PreparedQuery:
        """The request with its public facts, or `InvalidRequest`. Touches no data."""

    @abstractmethod
    def resolve(self, pin: int | str, prepared: PreparedQuery) -> Secret:
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
