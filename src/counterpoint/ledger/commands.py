"""What a ledger is asked to do, and the commands of analysts: open, launch, ask, question. Each plans its own change.

A command is a frozen value; those of custodians are in `custodian_commands.py`. `body` is what the record keeps of it,
`at` the row that it concerns, and `plan` decides, by public facts alone, whether it may happen and what it changes. **A
budget is charged in `_charge`, and nowhere else.** The ledger runs `decide` and `plan` inside the transaction that
records the request, so that no other request is charged in between.

>>> asking = AskCommand((0,), None, None, pin=0)
>>> asking.kind, asking.at, asking.body()
('ask', (0,), b'["ask",[0],null,null]')
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction

import msgspec
from msgspec.structs import replace

from counterpoint.composition.accumulator import Account
from counterpoint.encoding import Plain, encode, encode_checked
from counterpoint.errors import CounterpointError, DataReplaced, Halted, LedgerError, NotAllowed
from counterpoint.ledger.state import (
    Faulty,
    Grant,
    HistoryEntry,
    LaunchRecord,
    Path,
    SessionState,
    charge_text,
    failed,
    granted,
)
from counterpoint.ledger.stepping import stepping
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.mechanisms.external import External
from counterpoint.mechanisms.mechanism import Mechanism, must_be_short, ready
from counterpoint.privacy.claims import Claim
from counterpoint.privacy.messages import Ask
from counterpoint.privacy.relations import Relation
from counterpoint.queries.request import PreparedQuery
from counterpoint.schema.versions import DeclaredData
from counterpoint.sources.streams.items import Subscription

_BARE = Ask()
"""The ask without a request and without options, as all asks of counters are."""

Read = Callable[[Path], LaunchRecord | None]
"""Reads rows as they are inside the transaction."""


class NewerVersion(DataReplaced):
    """Another process has refreshed the data, and this one has the version before: nothing was charged."""


class Fit(msgspec.Struct, frozen=True):
    """What was decided about a mechanism and its data at the edge, before any transaction; made in `session/fit.py`.

    `relation` is how what the mechanism sees differs between neighbours. `message` is the ask of a question, which the
    mechanism has accepted; its private part is blank.
    """

    mechanism: Mechanism
    relation: Relation
    claim: Claim
    message: Ask | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of mechanism, then those that it is one of: a `Counter` may become one for the data it follows."""
        return tuple(kind.__name__ for kind in type(self.mechanism).__mro__ if issubclass(kind, Mechanism))


class Admission(msgspec.Struct, frozen=True):
    """The effect of an admitted request: where its answer will be settled, and the row that it changes at once.

    `row` is the row at `path`, if there is one already; `charged` replaces the row that the request concerns.
    """

    path: Path
    version: int
    pin: int | str = 0
    row: LaunchRecord | None = None
    charged: LaunchRecord | None = None


class Command(msgspec.Struct, frozen=True):
    """A request's own content, the same whether it is made, repeated by its id, or finished after a crash.

    `at` is the row that it concerns; at each row one request at most is open.
    """

    at: Path

    @property
    @abstractmethod
    def kind(self) -> str:
        """Which kind of entry it makes in the record."""

    @abstractmethod
    def body(self) -> bytes:
        """What the record keeps of it: enough to finish it, and to compare a repeated request with the first."""

    @property
    @abstractmethod
    def what(self) -> str:
        """What the history says of it; public."""

    def decide(self, read: Read) -> "Command":
        """The command with its choices made, where they depend on the record: of a question, its mechanism."""
        return self

    def choice(self) -> bytes:
        """What was decided inside the transaction. The record keeps it as a second line behind the body.

        A repeated request is compared by its body alone: the account may lead to another choice by then.
        """
        return b""

    @abstractmethod
    def plan(self, read: Read) -> Admission:
        """Check it and charge for it, or raise the refusal; nothing but what is returned changes."""

    @property
    def launches(self) -> tuple[str, ...]:
        """Which kinds of mechanism it launches one of, as a grant names them; none if it launches nothing."""
        return ()

    @property
    def needs_data(self) -> bool:
        """Whether it is refused while the data are closed: so is what an analyst can want, whether it reads rows."""
        return False

    @property
    def reads_data(self) -> bool:
        """Whether its answer is computed from the data."""
        return False

    def fact(self, who: str, now: int) -> HistoryEntry:
        """Its line of the history: who did it, and when."""
        return HistoryEntry(self.kind, self.at, self.what, who, now, self.cost)

    @property
    def cost(self) -> str:
        """What a launch loses, exactly; empty for what loses nothing more."""
        return ""


class OpenCommand(Command, frozen=True):
    """Make the row of a whole session, at the root."""

    composition: Concurrent
    sequential: bool = False
    declared: DeclaredData | None = None
    """The declaration of the first version of the data; it is no part of the request's body."""

    @property
    def kind(self) -> str:
        """The session itself."""
        return "open"

    def choice(self) -> bytes:
        """The declaration: the session is the same whatever the version that it was opened on was declared to be."""
        return b"" if self.declared is None else encode(self.declared)

    def body(self) -> bytes:
        """The rule and the relation of the session."""
        return encode(("open", self.composition, self.sequential))

    @property
    def what(self) -> str:
        """The rule."""
        return repr(self.composition.rule)

    def plan(self, read: Read) -> Admission:
        """A new account, from which nothing is charged yet."""
        root = LaunchRecord(self.composition, SessionState(self.composition.rule.start(), sequential=self.sequential))
        return Admission((), 0, row=root, charged=root)


def launch_kind(mechanism: Mechanism) -> str:
    """Which kind of entry the launch of a mechanism makes in the record.

    >>> from counterpoint import Laplace
    >>> launch_kind(Laplace(1))
    'launch'
    """
    if isinstance(mechanism, Concurrent):
        return "delegation"
    return "charge" if isinstance(mechanism, External) else "launch"


class LaunchCommand(Command, frozen=True):
    """Pay for a mechanism and start it, below the session at `at`; as part `name` of a partition, if it has a name."""

    name: str | None
    fit: Fit
    by: str | None
    of: Subscription
    cursor: int | str
    grant: Grant | None = None
    most: int | None = None
    """How many launches the session may have; it is no part of the request's body."""
    sees: int = 1
    """The version of the data that it was fitted to; it is no part of the request's body."""
    replaced: bool = False
    """Whether the rows of that version are gone; it is no part of the request's body."""

    @property
    def mechanism(self) -> Mechanism:
        """What is launched."""
        return self.fit.mechanism

    @property
    def kind(self) -> str:
        """Whether a session is launched, which gives a budget away, a release made elsewhere, or another mechanism."""
        return launch_kind(self.mechanism)

    def body(self) -> bytes:
        """All but the cursor: a repeated launch is the same launch, however much of a stream has arrived since."""
        granted = () if self.grant is None else (self.grant,)
        return encode((self.kind, self.at, self.name, self.mechanism, self.fit.relation, self.by, self.of, *granted))

    @property
    def what(self) -> str:
        """The mechanism and its price, and to whom it was granted."""
        if isinstance(self.mechanism, External):
            return f"{self.mechanism.what} at {self.fit.claim.loss!r}, declared to protect {self.mechanism.unit}"
        granted = "" if self.grant is None else f", granted to {self.grant.to}"
        return f"{self.mechanism!r} at {self.fit.claim.loss!r}{granted}"

    @property
    def cost(self) -> str:
        """What its claim costs."""
        return charge_text(self.fit.claim)

    @property
    def launches(self) -> tuple[str, ...]:
        """The kinds of the mechanism. A session releases nothing by itself."""
        return () if self.kind == "delegation" else self.fit.kinds

    @property
    def needs_data(self) -> bool:
        """Refused while the data are closed."""
        return True

    def choice(self) -> bytes:
        """The version that it keeps, if it keeps one and that is not the first."""
        return b"" if self.sees == 1 or not pins_version(self.mechanism, self.by) else encode(self.sees)

    def plan(self, read: Read) -> Admission:
        """Charge the session's account, or raise what its rule says against it."""
        must_be_seen(read, self.at, self.sees, replaced=self.replaced)
        number, charged = _charge(read, self.at, self.fit, self.most)
        if isinstance(self.mechanism, Concurrent):  # its own account is written only once this charge is on record
            encode_checked(self.mechanism.rule.start(), Account)
        return Admission((*self.at, number if self.name is None else self.name), 0, self.cursor, charged=charged)


def _charge(read: Read, at: Path, fit: Fit, most: int | None) -> tuple[int, LaunchRecord]:
    """Charge a launch to the session at a path: the number of the launch, and the session's row after it.

    This is the only place where a budget is charged.
    """
    row, (composition, node) = row_at(read, at), node_at(read, at)
    grant = granted(row)
    if grant is not None:
        grant.must_stand()  # for every caller: what was taken back may have been recounted
    if most is not None and node.launched >= most:
        raise NotAllowed(
            f"this session has had {node.launched} launches, and {most} is the limit: a mechanism that was "
            "launched keeps answering, and its custodian can grant another session"
        )
    with stepping:
        account = composition.admit(node.account, fit.mechanism, fit.relation, fit.claim)
    after = replace(node, account=account, launched=node.launched + 1)
    return node.launched, row.stepped(after)


def pins_version(mechanism: Mechanism, by: str | None) -> bool:
    """Whether what is launched keeps its version of the data: all but a session that was delegated on all of them.

    A partition does: a unit would reach parts of two versions for the price of one. So does a session on a sample: one
    coin decides whether a unit is in it (theory, Versions).

    >>> from counterpoint import Laplace
    >>> pins_version(Laplace(1), None)
    True
    """
    return not isinstance(mechanism, Concurrent) or by is not None or mechanism.sampling_rate is not None


def version_at(read: Read, at: Path) -> int:
    """The version of the data that a launch in the session at a path sees.

    It is that of the outermost session around it that keeps one, or else the current one.
    """
    current = node_at(read, ())[1].data_version
    if current == 1:
        return 1
    around = (row_at(read, at[:length]) for length in range(1, len(at) + 1))
    return next((row.sees for row in around if pins_version(row.mechanism, row.by)), current)


def must_be_seen(read: Read, at: Path, version: int, *, replaced: bool) -> None:
    """`DataReplaced` unless a launch sees this version here, and its rows are there: else nothing is charged."""
    current = version_at(read, at)
    if current == version and replaced:
        raise rows_replaced(version)
    if current != version:
        raise NewerVersion(
            f"version {current} of the data is the current one, and this was prepared for version {version}: nothing "
            "was charged; make the call again, in a process that has the current version"
        )


class QuestionCommand(Command, frozen=True):
    """Launch one of the `candidates` and ask it once: one id, one charge, one seed and one answer.

    The body is the request and the terms, not the mechanism. `chosen` is the candidate that lowers the budget of the
    session least as its account is inside the transaction that charges it.
    """

    prepared: PreparedQuery
    terms: Plain
    """What the answer may cost, or how far off it may be."""
    data: Relation
    pin: int | str
    candidates: tuple[Fit, ...] = ()
    most: int | None = None
    """How many launches the session may have; it is no part of the request's body."""
    chosen: Fit | None = None
    sees: int = 1
    """The version of the data that it was prepared for; it is no part of the request's body."""
    replaced: bool = False
    """Whether the rows of that version are gone; it is no part of the request's body."""
    typed: str = ""
    """The text by which it was asked, such as a SELECT, if there was one; it is no part of the request's body."""

    @property
    def fit(self) -> Fit:
        """The mechanism that answers."""
        assert self.chosen is not None  # `decide` comes first
        return self.chosen

    @property
    def kind(self) -> str:
        """A charge with its answer."""
        return "question"

    def body(self) -> bytes:
        """The request with everything public about it, its terms, and the relation of the data."""
        return encode(("question", self.at, self.prepared, self.terms, self.data))

    def choice(self) -> bytes:
        """The mechanism, and the options that the request has for it; then the version and the text, if they are not
        the first and none.
        """
        more = (self.sees, self.typed) if self.typed else () if self.sees == 1 else (self.sees,)
        return encode((self.fit.mechanism, self.message.public, *more))

    @property
    def what(self) -> str:
        """The request as it was typed, or as it is on record, and the mechanism with its price."""
        fit, asked = self.fit, self.typed or _asked(self.prepared, self.message.public)
        return f"{asked} by {fit.mechanism!r} at {fit.claim.loss!r}"

    @property
    def cost(self) -> str:
        """What the claim of the mechanism costs."""
        return charge_text(self.fit.claim)

    @property
    def launches(self) -> tuple[str, ...]:
        """The kinds of the mechanism."""
        return self.fit.kinds

    @property
    def needs_data(self) -> bool:
        """Refused while the data are closed."""
        return True

    @property
    def reads_data(self) -> bool:
        """The answer is computed from the data."""
        return True

    @property
    def message(self) -> Ask:
        """The ask that the mechanism receives, but for what is private."""
        assert self.chosen is not None and self.chosen.message is not None
        return self.chosen.message

    def decide(self, read: Read) -> "QuestionCommand":
        """The question with its cheapest candidate."""
        if len(self.candidates) == 1:
            return replace(self, chosen=self.candidates[0])
        composition, node = node_at(read, self.at)
        with stepping:
            return replace(self, chosen=cheapest(composition, node.account, self.candidates))

    def plan(self, read: Read) -> Admission:
        """Charge the session's account. The mechanism starts and answers at a path that no other request knows."""
        must_be_seen(read, self.at, self.sees, replaced=self.replaced)
        number, charged = _charge(read, self.at, self.fit, self.most)
        return Admission((*self.at, number), 0, self.pin, charged=charged)


_READ_AT = Fraction(1, 10**6)
"""Without a budget, mechanisms are compared by the epsilon that is lost at this delta."""


def cheapest(composition: Concurrent, account: Account, candidates: Sequence[Fit]) -> Fit:
    """The candidate whose launch lowers a budget least; the first one if none of them fits.

    Without a budget, the one after which least is lost.
    """
    fits: list[tuple[Fraction, Fraction, int]] = []
    for number, fit in enumerate(candidates):
        try:
            fits.append((*_lowers(composition, account, fit), number))
        except LedgerError:
            raise
        except CounterpointError:  # the rule refuses it
            continue
    return candidates[min(fits)[-1] if fits else 0]


def _lowers(composition: Concurrent, account: Account, fit: Fit) -> tuple[Fraction, Fraction]:
    """By how much a launch lowers the budget, up to a constant; without a budget, what is lost after it."""
    after, rule = composition.admit(account, fit.mechanism, fit.relation, fit.claim), composition.rule
    try:
        left = rule.remaining(after)
    except NotAllowed:  # an odometer
        return Fraction(rule.loss(after).epsilon_at(_READ_AT)), Fraction(0)
    return -left.epsilon, -left.delta


class AskCommand(Command, frozen=True):
    """Ask a launched mechanism, on data as it was when it was pinned. It was paid for at launch."""

    prepared: PreparedQuery | None
    public: Plain
    pin: int | str
    sequential: bool = False
    follows: bool | None = None
    """Whether the mechanism follows what arrives, if that was decided already; it is no part of the request's body."""
    replaced: bool = False
    """Whether the rows of its version are gone, and nothing new is answered; it is no part of the request's body."""
    checked: Ask | None = None
    """The message, made once, as `plan` checks it and the step sends it; it is no part of the request's body."""

    @property
    def kind(self) -> str:
        """An ask, which costs nothing more."""
        return "ask"

    def body(self) -> bytes:
        """The question, with everything public about it."""
        return encode(("ask", self.at, self.prepared, self.public))

    @property
    def what(self) -> str:
        """The question, and the mechanism's own options as it understood them."""
        return _asked(self.prepared, self.public)

    @property
    def message(self) -> Ask:
        """The ask that the mechanism receives, but for what is private: all is decided by its public facts."""
        return message_of(self.prepared, self.public) if self.checked is None else self.checked

    def decide(self, read: Read) -> "AskCommand":
        """The command with its message."""
        return replace(self, checked=self.message)

    @property
    def reads_data(self) -> bool:
        """The answer is computed from the data."""
        return True

    @property
    def needs_data(self) -> bool:
        """Refused while the data are closed."""
        return True

    def plan(self, read: Read) -> Admission:
        """Whether the mechanism would accept it, by public facts."""
        row = row_at(read, self.at)
        if isinstance(row.state, Faulty):
            raise failed(row.mechanism)
        if self.sequential and self.at[-1] != node_at(read, self.at[:-1])[1].launched - 1:
            raise Halted("this session is sequential, and another mechanism has been launched since")
        must_be_short(self.public, "an option")
        with stepping:
            ready(row.mechanism, row.state, self.message)
        if self.replaced:
            raise rows_replaced(row.sees)
        return Admission(self.at, row.version, _later(self.pin, row.cursor), row)


def rows_replaced(version: int) -> DataReplaced:
    """The error for what needs the rows of a version that are gone."""
    return DataReplaced(
        f"this was launched on version {version} of the data, whose rows were replaced and not kept: what was answered "
        "is found by its ids, and nothing more is answered or charged here. Launch again, on the current version"
    )


def message_of(prepared: PreparedQuery | None, public: Plain) -> Ask:
    """The ask of a request with this public part, but for what is private; without a request, the public part alone."""
    if prepared is None:
        return _BARE if public is None else Ask(public)
    return prepared.message(public)


def _asked(prepared: PreparedQuery | None, public: Plain) -> str:
    """What an ask or a question says in the history: the request, and the mechanism's own options."""
    request = None if prepared is None else prepared.request
    return ", ".join([repr(part) for part in (request, public) if part is not None])


def _later(pin: int | str, cursor: int | str) -> int | str:
    """The pin, or what the mechanism has read already: another process may have asked since the data was pinned."""
    return max(pin, cursor) if isinstance(pin, int) and isinstance(cursor, int) else pin


_LONGEST_TEXT = 2000


def as_typed(text: str) -> str:
    r"""A text that was typed, as one line of the history; one that is too long for a line is left out.

    >>> as_typed(" SELECT COUNT(*)\n FROM people"), as_typed("x" * 3000)
    ('SELECT COUNT(*) FROM people', '')
    """
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return line if len(line) <= _LONGEST_TEXT else ""


def as_path(value: Plain) -> Path:
    """A path that was read back, or that a launch was answered with.

    >>> as_path((0, "str:CA"))
    (0, 'str:CA')
    """
    assert isinstance(value, tuple)
    return tuple(step for step in value if isinstance(step, int | str))


def row_at(read: Read, path: Path) -> LaunchRecord:
    """The row at a path; `NotAllowed` if there is none."""
    row = read(path)
    if row is None:
        raise NotAllowed(f"nothing was launched at {path!r}")
    return row


def node_at(read: Read, path: Path) -> tuple[Concurrent, SessionState]:
    """The session at a path: its rule and its account; `NotAllowed` if it is another mechanism."""
    row = row_at(read, path)
    if not isinstance(row.mechanism, Concurrent) or not isinstance(row.state, SessionState):
        raise NotAllowed(f"what was launched at {path!r} is not a session")
    return row.mechanism, row.state
