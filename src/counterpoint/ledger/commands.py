"""Commands: open, launch, ask, question, revoke, refund; each plans and charges.

What a request wants: to open a session, to launch a mechanism, to ask one, or to take back what was granted.

Each is a frozen value. `body` is what the record keeps of it, `at` the row that it concerns, and `plan` decides, by
public facts alone, whether it may happen and what it changes: **a budget is charged in `Launching.plan`, and nowhere
else**. The ledger runs `plan` inside the transaction that records the request, so no other request charges in between.

>>> asking = Asking((0,), None, None, pin=0)
>>> asking.kind, asking.at, read_wanted(asking.body()) == asking
('ask', (0,), True)

A mechanism that works out an answer asks nothing itself: its thread may neither ask nor launch meanwhile.

A postprocessor that asked its own handle would wait for itself for ever, and two that asked each other's, for each
other. Nor could such an answer be finished from its seed after a crash: what it had asked is not on its record.

>>> with stepping:
...     must_not_step()
Traceback (most recent call last):
...
counterpoint.errors.NotAllowed: a mechanism or postprocessor asked or launched something while it worked out...
>>> must_not_step()
"""

import threading
from abc import abstractmethod
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from counterpoint.composition.accumulator import Account
from counterpoint.encoding import Plain, decode, encode, encode_checked
from counterpoint.errors import Halted, NotAllowed
from counterpoint.ledger.state import Fact, Faulty, Grant, Node, Path, Row, charge_text, failed, granted
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.mechanisms.mechanism import Mechanism, must_be_short, ready
from counterpoint.privacy.claims import Claim
from counterpoint.privacy.messages import Ask
from counterpoint.privacy.relations import Relation
from counterpoint.privacy.secret import Secret
from counterpoint.queries.request import Prepared
from counterpoint.sources.streams.items import FollowedAmong, followed_among

_BARE = Ask()
"""The ask without a request and without options, as all asks of counters are."""

Read = Callable[[Path], Row | None]
"""Reads rows as they are inside the transaction."""


class Plan(msgspec.Struct, frozen=True):
    """What a request that may happen comes to: where its answer will be settled, and the row that it changes at once.

    `row` is the row at `path`, if there is one already; `charged` replaces the row that the request concerns.
    """

    path: Path
    version: int
    pin: int | str = 0
    row: Row | None = None
    charged: Row | None = None


class Wanted(msgspec.Struct, frozen=True):
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

    @abstractmethod
    def plan(self, read: Read) -> Plan:
        """Check it and charge for it, or raise the refusal; nothing but what is returned changes."""

    @property
    def launches(self) -> tuple[str, ...]:
        """Which kinds of mechanism it launches one of, as a grant names them; none if it launches nothing."""
        return ()

    @property
    def needs_data(self) -> bool:
        """Whether it is refused while the data are closed: so is what an analyst can want, whether it reads rows."""
        return False

    def fact(self, who: str, now: int) -> Fact:
        """Its line of the history: who did it, and when."""
        return Fact(self.kind, self.at, self.what, who, now, self.cost)

    @property
    def cost(self) -> str:
        """What a launch loses, exactly; empty for what loses nothing more."""
        return ""


class Opening(Wanted, frozen=True):
    """Make the row of a whole session, at the root."""

    composition: Concurrent
    sequential: bool = False

    @property
    def kind(self) -> str:
        """The session itself."""
        return "open"

    def body(self) -> bytes:
        """The rule and the relation of the session."""
        return encode(("open", self.composition, self.sequential))

    @property
    def what(self) -> str:
        """The rule."""
        return repr(self.composition.rule)

    def plan(self, read: Read) -> Plan:
        """A new account, from which nothing is charged yet."""
        root = Row(self.composition, Node(self.composition.rule.start(), sequential=self.sequential))
        return Plan((), 0, row=root, charged=root)


class Launching(Wanted, frozen=True):
    """Pay for a mechanism and start it, below the session at `at`; as part `name` of a partition, if it has a name."""

    name: str | None
    mechanism: Mechanism
    data: Relation
    by: str | None
    of: FollowedAmong
    cursor: int | str
    claim: Claim
    grant: Grant | None = None
    most: int | None = None
    """How many launches the session may have; it is no part of the request's body."""

    @property
    def kind(self) -> str:
        """Whether a session is launched, which gives a budget away, or another mechanism."""
        return "delegation" if isinstance(self.mechanism, Concurrent) else "launch"

    def body(self) -> bytes:
        """All but the cursor: a repeated launch is the same launch, however much of a stream has arrived since."""
        granted = () if self.grant is None else (self.grant,)
        return encode((self.kind, self.at, self.name, self.mechanism, self.data, self.by, self.of, *granted))

    @property
    def what(self) -> str:
        """The mechanism and its price, and to whom it was granted."""
        granted = "" if self.grant is None else f", granted to {self.grant.to}"
        return f"{self.mechanism!r} at {self.claim.loss!r}{granted}"

    @property
    def cost(self) -> str:
        """What its claim costs."""
        return charge_text(self.claim)

    @property
    def launches(self) -> tuple[str, ...]:
        """The kind of mechanism, then those that it is one of: a `Counter` may become one for the data that it follows.

        A session releases nothing by itself.
        """
        if self.kind == "delegation":
            return ()
        return tuple(kind.__name__ for kind in type(self.mechanism).__mro__ if issubclass(kind, Mechanism))

    @property
    def needs_data(self) -> bool:
        """Refused while the data are closed."""
        return True

    def plan(self, read: Read) -> Plan:
        """Charge the session's account, or raise what its rule says against it."""
        row, (composition, node) = row_at(read, self.at), node_at(read, self.at)
        grant = granted(row)
        if grant is not None:
            grant.must_stand()  # for every caller: what was taken back may have been recounted
        if self.most is not None and node.launched >= self.most:
            raise NotAllowed(
                f"this session has had {node.launched} launches, and {self.most} is the limit: a mechanism that was "
                "launched goes on answering, and its custodian can grant another session"
            )
        with stepping:
            account = composition.admit(node.account, self.mechanism, self.data, self.claim)
        if isinstance(self.mechanism, Concurrent):  # its own account is written only once this charge is on record
            encode_checked(self.mechanism.rule.start(), Account)
        after = replace(node, account=account, launched=node.launched + 1)
        charged = Row(composition, after, row.version + 1, row.cursor, row.by, row.of)
        path = (*self.at, node.launched if self.name is None else self.name)
        return Plan(path, 0, self.cursor, charged=charged)


class Asking(Wanted, frozen=True):
    """Ask a launched mechanism, on data as it was when it was pinned. It was paid for at launch."""

    prepared: Prepared | None
    public: Plain
    pin: int | str
    sequential: bool = False

    @property
    def kind(self) -> str:
        """A question, which costs nothing more."""
        return "ask"

    def body(self) -> bytes:
        """The question, with everything public about it."""
        return encode(("ask", self.at, self.prepared, self.public))

    @property
    def what(self) -> str:
        """The question, and the mechanism's own options as it understood them."""
        request = None if self.prepared is None else self.prepared.request
        return ", ".join([repr(part) for part in (request, self.public) if part is not None])

    def message(self, private: Secret | None) -> Ask:
        """The ask that the mechanism receives; the private part may be blank, for what is decided by public facts."""
        if self.prepared is None:
            return _BARE if self.public is None else Ask(self.public)
        facts = self.prepared
        return Ask(
            self.public,
            private,
            facts.sensitivity,
            facts.squared,
            each=facts.each,
            one_way=facts.one_way,
            cells=facts.cells,
        )

    @property
    def needs_data(self) -> bool:
        """Refused while the data are closed."""
        return True

    def plan(self, read: Read) -> Plan:
        """Whether the mechanism would accept it, by public facts."""
        row = row_at(read, self.at)
        if isinstance(row.state, Faulty):
            raise failed(row.mechanism)
        if self.sequential and self.at[-1] != node_at(read, self.at[:-1])[1].launched - 1:
            raise Halted("this session is sequential, and another mechanism has been launched since")
        must_be_short(self.public, "an option")
        with stepping:
            ready(row.mechanism, row.state, self.message(None if self.prepared is None else self.prepared.blank()))
        return Plan(self.at, row.version, _later(self.pin, row.cursor), row)


class Closing(Wanted, frozen=True):
    """Close the data for everyone, after an answer could not be computed; or reopen them, which a custodian does.

    `number` says how often that was done before: data are closed and reopened in turn.
    """

    number: int

    @property
    def kind(self) -> str:
        """Which of the two."""
        return "reopening" if self.number % 2 else "closing"

    def body(self) -> bytes:
        """Which of the two, and its number."""
        return encode((self.kind, self.at, self.number))

    @property
    def what(self) -> str:
        """What it means."""
        if self.number % 2:
            return "the data are open again"
        return "an answer could not be computed: nothing is launched or asked until the custodian reopens the data"

    def plan(self, read: Read) -> Plan:
        """Mark the row of the whole session, which every launch and ask reads."""
        row, (composition, node) = row_at(read, self.at), node_at(read, self.at)
        if self.at or node.closings != self.number:
            raise NotAllowed("the data were closed or reopened meanwhile: look at the history, and repeat the call")
        after = replace(node, closings=self.number + 1)
        marked = Row(composition, after, row.version + 1, row.cursor, row.by, row.of)
        return Plan(self.at, marked.version, marked.cursor, row=marked, charged=marked)


class Revoking(Wanted, frozen=True):
    """Take back a granted session: nothing more is launched or asked in it, and its charge stays."""

    @property
    def kind(self) -> str:
        """The end of a grant."""
        return "revocation"

    def body(self) -> bytes:
        """Which session."""
        return encode((self.kind, self.at))

    @property
    def what(self) -> str:
        """What it means."""
        return "nothing more is launched or asked here"

    def plan(self, read: Read) -> Plan:
        """Mark the session's row, which every request under the grant reads."""
        row, (composition, node) = row_at(read, self.at), node_at(read, self.at)
        grant = granted(row)
        if grant is None:
            raise NotAllowed(f"what is at {self.at!r} was granted to no principal")
        after = replace(node, grant=replace(grant, revoked=True))
        marked = Row(composition, after, row.version + 1, row.cursor, row.by, row.of)
        return Plan(self.at, marked.version, marked.cursor, row=marked, charged=marked)


class Recounting(Wanted, frozen=True):
    """Count what was launched in a revoked session in the place of its charge: what it left unused is returned."""

    number: int

    @property
    def kind(self) -> str:
        """What a grant left unused."""
        return "recount"

    def body(self) -> bytes:
        """Whose account, and which of its children."""
        return encode((self.kind, self.at, self.number))

    @property
    def what(self) -> str:
        """Which child."""
        return f"child {self.number}: its launches count in the place of its charge"

    def plan(self, read: Read) -> Plan:
        """The account with the child's launches in the place of its charge, where a theorem allows it."""
        row, (composition, node) = row_at(read, self.at), node_at(read, self.at)
        child = (*self.at, self.number)
        grant, (granted_rule, inner) = granted(row_at(read, child)), node_at(read, child)
        if grant is None or not grant.revoked:
            raise NotAllowed(f"only a revoked grant is recounted: in what is at {child!r} more may be launched")
        launched = [_claim_of(read, (*child, number)) for number in range(inner.launched)]
        account = composition.rule.recounted(node.account, granted_rule.rule, granted_rule.claim, launched)
        marked = Row(composition, replace(node, account=account), row.version + 1, row.cursor, row.by, row.of)
        return Plan(self.at, marked.version, marked.cursor, row=marked, charged=marked)


def _claim_of(read: Read, path: Path) -> Claim:
    """What a launch was charged for."""
    row = read(path)
    if row is None:
        raise NotAllowed(f"the launch at {path!r} was begun and not finished; finish it by its id, then recount")
    return row.mechanism.claim


def _later(pin: int | str, cursor: int | str) -> int | str:
    """The pin, or what the mechanism has read already: another process may have asked since the data was pinned."""
    return max(pin, cursor) if isinstance(pin, int) and isinstance(cursor, int) else pin


def read_wanted(body: bytes, pin: int | str = 0) -> Wanted:
    """What an open request wanted, from the record."""
    parts: Plain = decode(body, Plain)  # type: ignore[arg-type]  # plain data of no fixed type
    assert isinstance(parts, tuple)
    kind, *rest = parts
    if kind == "open":
        composition, sequential = rest
        assert isinstance(composition, Concurrent) and isinstance(sequential, bool)
        return Opening((), composition, sequential)
    if kind == "ask":
        path, prepared, public = rest
        assert isinstance(prepared, Prepared | None)
        return Asking(as_path(path), prepared, public, pin)
    if kind in ("closing", "reopening"):
        path, number = rest
        assert isinstance(number, int)
        return Closing(as_path(path), number)
    if kind == "revocation":
        (path,) = rest
        return Revoking(as_path(path))
    if kind == "recount":
        path, number = rest
        assert isinstance(number, int)
        return Recounting(as_path(path), number)
    parent, name, mechanism, data, by, of, *granted = rest
    assert isinstance(mechanism, Mechanism) and isinstance(data, Relation)
    assert isinstance(name, str | None) and isinstance(by, str | None)
    grant = granted[0] if granted else None
    assert isinstance(grant, Grant | None)
    return Launching(as_path(parent), name, mechanism, data, by, followed_among(of), pin, mechanism.claim, grant)


def as_path(value: Plain) -> Path:
    """A path that was read back, or that a launch was answered with.

    >>> as_path((0, "str:CA"))
    (0, 'str:CA')
    """
    assert isinstance(value, tuple)
    return tuple(step for step in value if isinstance(step, int | str))


def row_at(read: Read, path: Path) -> Row:
    """The row at a path; `NotAllowed` if there is none."""
    row = read(path)
    if row is None:
        raise NotAllowed(f"there is nothing at {path!r}")
    return row


def node_at(read: Read, path: Path) -> tuple[Concurrent, Node]:
    """The session at a path: its rule and its account; `NotAllowed` if it is another mechanism."""
    row = row_at(read, path)
    if not isinstance(row.mechanism, Concurrent) or not isinstance(row.state, Node):
        raise NotAllowed(f"what is at {path!r} is no session")
    return row.mechanism, row.state


class _Stepping(threading.local):
    """How many steps a thread is in the midst of."""

    count = 0

    def __enter__(self) -> None:
        self.count += 1

    def __exit__(self, *error: object) -> None:
        self.count -= 1


stepping = _Stepping()
"""While a mechanism's code runs in this thread: `with stepping:`."""


def must_not_step() -> None:
    """`NotAllowed` in the midst of a step."""
    if stepping.count:
        raise NotAllowed(
            "a mechanism or postprocessor asked or launched something while it worked out an answer: it sees what it "
            "is given, and asks nothing itself. Ask first, and give it the answer; or make a Composite of both"
        )
