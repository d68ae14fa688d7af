"""What a ledger records: a row for each launched mechanism, addressed by its path, and the lines of the history.

A grant is a delegated session whose public state names its principal. It is checked in the transaction that records a
request, against the row as it is there: a revocation stops the next launch and the next ask, in every process at once.
What was launched stays charged. Whether a request is allowed follows from public facts alone. That a caller is who they
say is checked outside, before a session is handed out.

>>> grant = Grant("ann", until=None, mechanisms=("Laplace",))
>>> grant.check(("SparseVector",), now=0)
Traceback (most recent call last):
...
counterpoint.errors.NotGranted: 'ann' was granted Laplace here, not SparseVector
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from counterpoint.composition.accumulator import Account
from counterpoint.encoding import Tagged, Value, encode
from counterpoint.errors import Halted, InvalidParameter, NotGranted, Unsealable, shown
from counterpoint.mechanisms.mechanism import Mechanism, State
from counterpoint.privacy.claims import Claim
from counterpoint.privacy.samples import Sample
from counterpoint.sources.streams.items import Subscription

Path = tuple[int | str, ...]
"""Where a mechanism lives: the root is (), its children (0,), (1,), ..., a part ("str:CA",) below its partition."""


class Grant(Tagged, Value, frozen=True):
    """To whom a session was given, until when (in seconds since 1970), and which mechanisms may be launched in it."""

    to: str
    until: int | None = None
    mechanisms: tuple[str, ...] | None = None
    revoked: bool = False

    def must_stand(self) -> None:
        """`NotGranted` once it was revoked."""
        if self.revoked:
            raise NotGranted(
                f"the grant of {self.to!r} was revoked: what was launched in it stays charged and answers no more"
            )

    def check(self, kinds: tuple[str, ...], now: int) -> None:
        """`NotGranted` if no mechanism of these kinds may be launched here now, or (no kinds) nothing may be asked."""
        self.must_stand()
        if self.until is not None and now >= self.until:
            raise NotGranted(f"the grant of {self.to!r} has expired; its custodian can grant another")
        if kinds and self.mechanisms is not None and not set(kinds) & set(self.mechanisms):
            raise NotGranted(f"{self.to!r} was granted {', '.join(self.mechanisms)} here, not {kinds[0]}")


class SessionState(State, Value, frozen=True):
    """The state of a composition whose children have rows of their own: its account, and how many there are.

    It is public: nothing in it was computed from data, so it is stored in the open and can be read without a key. Only
    the key of a sample is sealed beside it; without that key it is read as a session whose sample is not known.
    """

    account: Account
    launched: int = 0
    sequential: bool = False
    grant: Grant | None = None
    """To whom the session was granted, if it was."""
    sample: Sample | None = None
    """The sample of units that all children see, if they see one: secret."""
    closings: int = 0
    """Of a whole session: how often its data were closed or reopened. They are closed while this is odd."""
    data_version: int = 1
    """Of a whole session: the number of the version of its data that launches see."""

    @property
    def is_closed(self) -> bool:
        """Whether the data are closed for everyone, after an answer could not be computed."""
        return self.closings % 2 == 1

    @property
    def in_public(self) -> "SessionState":
        """Without the sample."""
        return replace(self, sample=None)


class Sealed(State, Value, frozen=True):
    """A state that no available key opens: a reader sees that it exists, and cannot step it."""


class Faulty(State, Value, frozen=True):
    """Stands for the state of a mechanism whose code failed in a step, and for the answer to the request that did it.

    The step is not made again: it would fail again, and coins that were tossed for one answer must not make another.
    The record says only that it failed, because the reason could depend on the data.
    """


class Lost(State, Value, frozen=True):
    """Stands for the answer to a request that was open in a backup, when its later record was lost.

    It may have been answered there. Nothing is drawn for it again.
    """


class LaunchRecord(Tagged, Value, frozen=True):
    """A launched mechanism: its state (None: halted), how often it has stepped, how much of a stream it has read.

    `by` is the column that a partition cuts the data by; its children are the parts. `of` is what a mechanism follows
    of a stream's records: a field, several of them, a request, or the records as such. `sees` is the version of the
    data that a mechanism, a partition or a session on a sample was launched on, and keeps; any other session sees the
    version of the one around it.
    """

    mechanism: Mechanism
    state: State | None
    version: int = 0
    cursor: int | str = 0
    by: str | None = None
    of: Subscription = None
    sees: int = 1

    def stepped(self, state: State | None) -> "LaunchRecord":
        """The same row with another state, one step later."""
        return LaunchRecord(self.mechanism, state, self.version + 1, self.cursor, self.by, self.of, self.sees)


class HistoryEntry(Tagged, Value, frozen=True):
    """One public line of the history: what happened where. It holds nothing that was computed from data.

    `who` did it, if a principal was named (`Session.acting_as`), and `at` is when, in seconds since 1970, by the clock
    of the process that wrote it. `cost` is what a launch costs (`charge_text`).
    """

    kind: str
    path: Path
    what: str
    who: str = ""
    at: int = 0
    cost: str = ""


def charge_text(claim: Claim) -> str:
    """What a launch costs, as the record has it: its loss, and the launches that it is made of, if it has a list.

    A sum of launches counts the list, one by one, if all of it fits (`Rule.charge`).

    >>> from counterpoint import Laplace
    >>> charge_text(Laplace(0.5).claim)
    '{"type":"PureDP/1","epsilon":"1/2"}'
    """
    return encode((claim.loss, *claim.launches) if claim.launches else claim.loss).decode()


def granted(row: LaunchRecord) -> Grant | None:
    """To whom a row's session was granted, if it is one that was."""
    return row.state.grant if isinstance(row.state, SessionState) else None


def sample_of(node: SessionState) -> Sample:
    """The sample of units that a session sees; `Unsealable` if no available key opens it."""
    if node.sample is None:
        raise Unsealable("the sample of units that this session sees is sealed, and no key at hand opens it")
    return node.sample


def refused(fact: HistoryEntry, refusal: Exception) -> HistoryEntry:
    """The line of the history for what was refused: `refusal` by the rule, `denial` where a grant does not cover it.

    >>> refused(HistoryEntry("launch", (), "Laplace(2) at PureDP(2)"), NotGranted("it was revoked")).what
    'Laplace(2) at PureDP(2) refused: NotGranted'
    """
    kind = "denial" if isinstance(refusal, NotGranted) else "refusal"
    return HistoryEntry(kind, fact.path, f"{fact.what} refused: {type(refusal).__name__}", fact.who, fact.at, fact.cost)


def lost_answer(request: str) -> Halted:
    """The error for a request whose answer, if there was one, was lost.

    >>> type(lost_answer("monday")).__name__
    'Halted'
    """
    return Halted(
        f"request {request[:80]!r} was open when this record was copied, and what came after was lost with its disk: "
        "it may have been answered, and is not answered again"
    )


def failed(mechanism: Mechanism) -> Halted:
    """The error for a mechanism whose code failed: the same for every failure, as its cause would tell of the data.

    >>> from counterpoint import Laplace
    >>> type(failed(Laplace(1))).__name__
    'Halted'
    """
    return Halted(
        f"{type(mechanism).__name__} has halted: its own code failed in a step. Code that sees data must not fail, "
        "whatever the data, and its author promised that. Its charge stays. Step it on made-up data, or try it with "
        "two_worlds, to see what fails; then launch a repaired one"
    )


_LONGEST = 64
_ALSO = frozenset("-_.@+")


class Acting(msgspec.Struct, frozen=True):
    """Whose request it is, and the granted sessions that it is made in, the innermost last."""

    who: str = ""
    under: tuple[Path, ...] = ()

    def own(self, id: str) -> str:
        """The id of a request in the ledger: each principal has ids of its own.

        >>> Acting("ann").own("(0,) monday"), Acting().own("(0,) monday")
        ('@ann (0,) monday', '(0,) monday')
        """
        return f"@{self.who} {id}" if self.who else id


UNNAMED = Acting()
"""A caller who has given no name, such as a script with a session of its own."""


def principal(given: object) -> str:
    """The name of a principal, or `InvalidParameter`.

    >>> principal("ann@example.org")
    'ann@example.org'
    """
    text = str.__str__(given) if isinstance(given, str) else ""
    named = 0 < len(text) <= _LONGEST and text.isascii() and all(sign.isalnum() or sign in _ALSO for sign in text)
    if not named:
        raise InvalidParameter(
            f"a principal is named by 1 to {_LONGEST} letters, digits and signs of {''.join(sorted(_ALSO))}, such as "
            f"'ann', not the {type(given).__name__} {shown(given)}"
        )
    return text


def expiry(until: object) -> int | None:
    """When a grant ends, in seconds since 1970; a time without a zone would mean another moment elsewhere.

    >>> from datetime import UTC
    >>> expiry(datetime(2030, 1, 1, tzinfo=UTC))
    1893456000
    """
    if until is None:
        return None
    if not isinstance(until, datetime) or until.tzinfo is None:
        raise InvalidParameter("until is a datetime with a zone, such as datetime(2030, 1, 1, tzinfo=UTC)")
    return int(until.timestamp())


def mechanism_names(mechanisms: Sequence[object] | None) -> tuple[str, ...] | None:
    """The kinds of mechanism that a grant names."""
    if mechanisms is None:
        return None
    named = [kind for kind in mechanisms if isinstance(kind, type) and issubclass(kind, Mechanism)]
    if not named or len(named) != len(mechanisms):
        raise InvalidParameter("mechanisms are named by their classes, as in mechanisms=[Laplace, SparseVector]")
    return tuple(kind.__name__ for kind in named)


class Lookups(NamedTuple):
    """What a job reads in its transaction: requests by id, open requests by path, rows, and versions of rows alone."""

    requests: tuple[str, ...] = ()
    waiting: tuple[Path, ...] = ()
    rows: tuple[Path, ...] = ()
    versions: tuple[Path, ...] = ()
