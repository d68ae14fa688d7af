"""The engine: launches and asks against a ledger, by the same `admit` and `step` that `Concurrent` runs on.

A session's row keeps an account and how many children were launched, not the children themselves, so a launch costs the
same however many there are. Each launch and each ask has a seed of its own; coins are derived from that seed, the path,
the version and the body of the request, so a step can be finished or replayed and never draws twice.

The way of a question: the mechanism accepts it, by public facts; the intent is recorded; the source
evaluates it; the mechanism steps; state and answer are settled together; the answer is released. What cannot be done
now (a crash, data out of reach) leaves the intent open, and the next request finishes it first, from its seed. A
mechanism whose code fails would fail again: that is settled too, and halts it (`stepping.py`).

>>> part_key(part_name("CA")), part_key(part_name(7))
('CA', 7)
"""

import threading
from collections.abc import Callable
from contextlib import suppress

from counterpoint.composition.rules.rule import Account
from counterpoint.encoding import Plain, decode, encode
from counterpoint.errors import CounterpointError, Halted, LedgerError, NotAllowed, RequestConflict
from counterpoint.ledger.ledger import (
    Compute,
    Done,
    Fact,
    Faulty,
    Intent,
    Ledger,
    Node,
    Path,
    Plan,
    Read,
    Row,
    conflict,
)
from counterpoint.mechanisms.composed.concurrent import Concurrent
from counterpoint.mechanisms.mechanism import Mechanism, ready
from counterpoint.privacy.relations import Relation
from counterpoint.session.nesting import must_not_step, stepping
from counterpoint.session.stepping import answered, failed, message, started
from counterpoint.sources.source import Prepared, Source
from counterpoint.sources.streams.ids import checked_id
from counterpoint.sources.streams.shape import Of, named

_STRIPES = 1024


class Engine:
    """Launches and asks, on one ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        # Asks on one path take turns. Two paths that share a lock only wait for each other now and then.
        self._locks = tuple(threading.Lock() for _ in range(_STRIPES))
        self._looked_at: set[Path] = set()
        self._last: dict[Path, tuple[Concurrent, Node]] = {}

    def open_root(self, composition: Concurrent, sequential: bool = False) -> None:
        """Make the row of the whole session, if it is not there yet."""
        root = Row(composition, Node(composition.rule.start(), sequential=sequential))
        body = encode(("open", composition, sequential))
        fact = Fact("open", (), repr(composition.rule))
        intent = self.ledger.intent("root", body, fact, lambda read: Plan((), 0, row=root, charged=root))
        if isinstance(intent, Intent):
            self.ledger.settle(intent, root, None)

    def node(self, path: Path) -> tuple[Concurrent, Node]:
        """The composition at a path, and its account; once closed, as they were then."""
        if path in self._last:
            return self._last[path]
        self._looked_at.add(path)
        return _node(self.ledger.read, path)

    def close(self) -> None:
        """Let go of the ledger, and keep what was lost in those sessions that were looked at."""
        with suppress(LedgerError):  # it has failed, or is another process's: then this is not known
            self._last = {path: _node(self.ledger.read, path) for path in self._looked_at}
        self.ledger.close()

    def launch(
        self,
        parent: Path,
        mechanism: Mechanism,
        data: Relation,
        *,
        cursor: int | str = 0,
        name: str | None = None,
        by: str | None = None,
        of: Of = None,
        request: str | None = None,
    ) -> Path:
        """Check the relation, charge the account and start the mechanism; its path. A refusal leaves nothing behind."""

        def plan(read: Read) -> Plan:
            row = _row(read, parent)
            composition, node = _node(read, parent)
            with stepping:
                account = composition.admit(node.account, mechanism, data, claim)
            path = (*parent, node.launched if name is None else name)
            after = Node(account, node.launched + 1, node.sequential)
            charged = Row(composition, after, row.version + 1, row.cursor, row.by, row.of)
            return Plan(path, 0, cursor, charged=charged, prompt=True)

        kind, claim = "delegation" if isinstance(mechanism, Concurrent) else "launch", mechanism.claim
        body = encode((kind, parent, name, mechanism, data, by, of))
        fact = Fact(kind, parent, f"{mechanism!r} at {claim.loss!r}")
        own = _request(request, parent) if name is None else f"part {parent!r} {name}"
        must_not_step()
        while True:
            done = self._perform(request, own, body, fact, plan, lambda intent: started(intent, mechanism, by, of))
            if isinstance(done, Done):
                return as_path(done.answer)
            self._finish(done, None)

    def quote(self, parent: Path, mechanism: Mechanism, data: Relation) -> Account:
        """The account after such a launch, or the reason why not: the dry run, by the same code."""
        composition, node = self.node(parent)
        return composition.admit(node.account, mechanism, data)

    def ask(
        self,
        path: Path,
        source: Source,
        prepared: Prepared | None,
        public: Plain,
        *,
        sequential: bool = False,
        request: str | None = None,
    ) -> Plain:
        """One ask: checked in public, recorded, evaluated, stepped, settled; the mechanism's own answer."""

        def plan(read: Read) -> Plan:
            row = _row(read, path)
            if isinstance(row.state, Faulty):
                raise failed(row.mechanism)
            if sequential and path[-1] != _node(read, path[:-1])[1].launched - 1:
                raise Halted("this session is sequential, and another mechanism has been launched since")
            blank = None if prepared is None else prepared.blank()
            with stepping:
                ready(row.mechanism, row.state, message(public, prepared, blank))
            pin = source.pin()
            return Plan(path, row.version, pin, row, prompt=source.prompt(row.cursor, pin, prepared))

        def compute(intent: Intent) -> tuple[Row, Plain]:
            return answered(intent, source, prepared, public)

        body = encode(("ask", path, prepared, public))
        fact = Fact("ask", path, _said(prepared and prepared.request, public))
        own = _request(request, path[:-1])
        must_not_step()
        self.ledger.check()
        with self._locks[hash(path) % _STRIPES]:
            while True:
                done = self._perform(request, own, body, fact, plan, compute)
                if isinstance(done, Done):
                    break
                self._finish_first(done, source)
        if isinstance(done.answer, Faulty):
            raise failed(_row(self.ledger.read, path).mechanism)
        return done.answer

    def recover(self, source: Source) -> int:
        """Finish what a crash left open, as far as that can be done now; how many intents are left open."""
        left = 0
        for intent in self.ledger.opened():
            try:
                self._finish(intent, self.source_at(source, intent.path))
            except Exception:  # it speaks up when its handle is asked, which tries again
                left += 1
        return left

    def source_at(self, source: Source, path: Path, start: int = 0) -> Source:
        """The data that a path is about, from that of its first `start` steps on: a part, and what is read of it."""
        for length in range(start, len(path)):
            row = self.ledger.read(path[:length])
            if row is not None and row.by is not None:
                source = source.part(row.by, source.spelled(row.by, part_key(path[length])))
        row = self.ledger.read(path)
        return source if row is None or row.of is None else source.of(row.of)

    def _perform(  # noqa: PLR0917 - all that a request is made of
        self,
        given: str | None,
        own: str | None,
        body: bytes,
        fact: Fact,
        plan: Callable[[Read], Plan],
        compute: Compute,
    ) -> Intent | Done:
        """Do it; a conflict names the id that was given, not what the ledger knows it by."""
        try:
            return self.ledger.perform(own, body, fact, plan, compute)
        except RequestConflict:
            if given is None:
                raise
            raise conflict(given) from None

    def _finish_first(self, intent: Intent, source: Source) -> None:
        try:
            self._finish(intent, source)
        except LedgerError:
            raise
        except CounterpointError as error:
            why = f"{type(error).__name__}: {error}"
        else:
            return
        raise LedgerError(
            f"an earlier request on this handle, {intent.request[:80]!r}, was begun and cannot be finished now "
            f"({why}); until it is, this handle answers nothing else"
        )

    def _finish(self, intent: Intent, source: Source | None) -> Plain:
        """Do what an intent says, by what it recorded alone."""
        kind, *rest = _parts(intent.body)
        if kind == "ask":
            _, prepared, public = rest
            assert source is not None and isinstance(prepared, Prepared | None)
            return self.ledger.settle(intent, *answered(intent, source, prepared, public))
        if kind == "open":
            assert intent.row is not None
            return self.ledger.settle(intent, intent.row, None)
        _, _, mechanism, _, by, of = rest
        assert isinstance(mechanism, Mechanism) and isinstance(by, str | None)
        return self.ledger.settle(intent, *started(intent, mechanism, by, named(of)))


def _row(read: Read, path: Path) -> Row:
    row = read(path)
    if row is None:
        raise NotAllowed(f"there is nothing at {path!r}")
    return row


def _node(read: Read, path: Path) -> tuple[Concurrent, Node]:
    row = _row(read, path)
    if not isinstance(row.mechanism, Concurrent) or not isinstance(row.state, Node):
        raise NotAllowed(f"what is at {path!r} is no session")
    return row.mechanism, row.state


def _parts(body: bytes) -> tuple[Plain, ...]:
    parts: Plain = decode(body, Plain)  # type: ignore[arg-type]  # plain data of no fixed type
    assert isinstance(parts, tuple)
    return parts


def as_path(answer: Plain) -> Path:
    """The path that a launch was answered with.

    >>> as_path((0, "str:CA"))
    (0, 'str:CA')
    """
    assert isinstance(answer, tuple)
    return tuple(step for step in answer if isinstance(step, int | str))


def part_name(key: object) -> str:
    """The step of a path that leads to the part with this key."""
    return f"{type(key).__name__}:{key}"


def part_key(step: int | str) -> bool | int | str:
    """The key that `part_name` made a name of."""
    kind, _, key = str(step).partition(":")
    if kind == "int":
        return int(key)
    return key == "True" if kind == "bool" else key


def _said(*public: Plain) -> str:
    """What was asked, and the mechanism's own options as it understood them (a threshold in steps of the request)."""
    return ", ".join(repr(part) for part in public if part is not None)


def _request(given: object, session: Path) -> str | None:
    """The name of a request in the ledger, if an id was given, which is that session's own.

    Ids of one session are no concern of another's, and none is the name of a part.
    """
    return None if given is None else f"{session!r} {checked_id(given)}"
