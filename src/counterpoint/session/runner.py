"""The engine: launches, asks and questions against a ledger, by the `admit` and `step` that `Concurrent` runs on.

Every request goes through `Engine.perform`: **begin** (the ledger checks, charges and records it, in one transaction),
**step** (the source evaluates it and the mechanism steps; `step.py`), **settle** (the ledger stores state and answer
together, in a second transaction), and the answer is released. A question is one such request, too: it is charged as it
begins and answered as it settles. Each request has a seed of its own; coins are derived from that seed, the path, the
version and the body of the request, so a step can be finished or replayed and never draws twice. What cannot be done
now (a crash, data out of reach) leaves the intent open at its path, and the next request there finishes it first, from
its seed; a question is alone at its path. A mechanism whose code fails would fail again: that is settled too, and halts
it.

A session's row keeps an account and how many children were launched, not the children themselves, so a launch costs the
same however many there are.

>>> part_key(part_name("CA")), part_key(part_name(7))
('CA', 7)
"""

import threading
from contextlib import suppress
from copy import copy
from typing import Any

from counterpoint.composition.accumulator import Account
from counterpoint.encoding import Plain
from counterpoint.errors import CounterpointError, DataFailed, LedgerError, RequestConflict, bare
from counterpoint.ledger.chain import Disclosure, Signed
from counterpoint.ledger.commands import (
    AskCommand,
    Command,
    Fit,
    LaunchCommand,
    NewerVersion,
    OpenCommand,
    QuestionCommand,
    as_path,
    as_typed,
    node_at,
    pins_version,
    row_at,
)
from counterpoint.ledger.custodian_commands import CloseCommand, RefundCommand, RevokeCommand
from counterpoint.ledger.ledger import Intent, Ledger, StoredAnswer, conflict, new_request_id
from counterpoint.ledger.state import (
    UNNAMED,
    Acting,
    Faulty,
    Grant,
    LaunchRecord,
    Path,
    SessionState,
    failed,
    granted,
    sample_of,
)
from counterpoint.ledger.stepping import must_not_step
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.mechanisms.mechanism import Mechanism, must_be_short
from counterpoint.queries.request import PreparedQuery
from counterpoint.queries.source import Source
from counterpoint.schema.versions import DeclaredData
from counterpoint.session.step import answered
from counterpoint.session.versions import DataVersions
from counterpoint.sources.streams.items import Subscription
from counterpoint.sources.streams.log import checked_id

_STRIPES = 1024


class Engine:
    """Launches and asks, on one ledger."""

    def __init__(self, ledger: Ledger, data: DataVersions | None = None) -> None:
        self.ledger = ledger
        self._versions = [data]  # in a list, which the engines of all principals share
        # Asks on one path take turns. Two paths that share a lock only wait for each other now and then.
        self._locks = tuple(threading.Lock() for _ in range(_STRIPES))
        self._looked_at: set[Path] = set()
        self._last: dict[Path, tuple[Concurrent, SessionState]] = {}
        self._acting = UNNAMED
        self.kept: dict[object, Any] = {}
        """What readers keep of this ledger from one look to the next, each under a key of its own."""
        self.most_launches: int | None = None
        """How many launches each session may have, if a service has set a limit."""

    def acting(self, who: str, path: Path) -> "Engine":
        """The same engine, for the requests of a principal in the session at a path."""
        engine = copy(self)  # ledger, locks and what was looked at are shared
        engine._acting = Acting(who, self.grants_on(path)) if who else UNNAMED
        return engine

    def grants_on(self, path: Path) -> tuple[Path, ...]:
        """The granted sessions that a path leads through, outermost first."""
        ends = (path[:length] for length in range(1, len(path) + 1))
        rows = ((end, self.ledger.read(end)) for end in ends)
        return tuple(end for end, row in rows if row is not None and granted(row) is not None)

    @property
    def principal(self) -> str:
        """Whose requests these are; empty if no principal was named."""
        return self._acting.who

    @property
    def data(self) -> DataVersions:
        """The versions of the data that this process can read."""
        (found,) = self._versions
        assert found is not None  # it is bound before anything is launched
        return found

    @data.setter
    def data(self, found: DataVersions) -> None:
        self._versions[0] = found

    def open_root(
        self, composition: Concurrent, sequential: bool = False, declared: DeclaredData | None = None
    ) -> None:
        """Make the row of the whole session, if it is not there yet."""
        must_be_short(composition)
        self.perform("root", OpenCommand((), composition, sequential, declared), None)

    def launch(
        self,
        parent: Path,
        fit: Fit,
        *,
        cursor: int | str = 0,
        name: str | None = None,
        by: str | None = None,
        of: Subscription = None,
        request: str | None = None,
        grant: Grant | None = None,
        sees: int = 1,
    ) -> Path:
        """Check the relation, charge the account and start the mechanism; its path. A refusal leaves nothing behind."""
        must_not_step()
        own = None if request is None else self._own(request, parent)
        if name is not None:
            own = f"part {parent!r} {name}"
        wanted = LaunchCommand(
            parent, name, fit, by, of, cursor, grant, self.most_launches, sees, not self.data.has_rows(sees)
        )
        return as_path(self.perform(own, wanted, None, request))

    def question(
        self,
        parent: Path,
        candidates: tuple[Fit, ...],
        prepared: PreparedQuery,
        terms: Plain,
        source: Source,
        *,
        request: str | None = None,
        sees: int = 1,
        typed: str = "",
    ) -> tuple[Mechanism, Plain]:
        """Launch the candidate that costs least and ask it once, as one request: the mechanism, and its own answer.

        The same id finds the same answer, whichever candidate it was made with: which one costs least may depend on
        what has been charged since. A question without an id gets one, which is said if it was charged and could not
        be answered: repeated by it, it is answered without another charge.
        """
        must_not_step()
        given = new_request_id() if request is None else request
        data, most = candidates[0].relation, self.most_launches
        has_rows = self.data.begin_reading(sees)
        try:
            wanted = QuestionCommand(
                parent,
                prepared,
                terms,
                data,
                source.pin(),
                candidates,
                most,
                sees=sees,
                replaced=not has_rows,
                typed=as_typed(typed),
            )
            return self._questioned(wanted, self._own(given, parent), source, given, new=request is None)
        finally:
            self.data.end_reading(sees)

    def _questioned(
        self, wanted: QuestionCommand, own: str, source: Source, given: str, *, new: bool
    ) -> tuple[Mechanism, Plain]:
        """The mechanism that a question launched, and its answer."""
        begun = self._begun(own, wanted, source, given, new=new)
        if isinstance(begun, StoredAnswer):
            mechanism, answer = row_at(self.ledger.read, begun.path).mechanism, begun.answer
        else:
            asked = begun.asked
            assert isinstance(asked, QuestionCommand)
            try:
                mechanism, answer = asked.fit.mechanism, self._settled(begun, source)
            except Exception as error:
                error.add_note(f"The question is paid for: repeat it with id={given!r}, and nothing more is charged.")
                raise
        if isinstance(answer, Faulty):
            raise failed(mechanism)
        return mechanism, answer

    def revoke(self, path: Path) -> None:
        """Take back the granted session at a path; once is enough."""
        must_not_step()
        self.perform(f"revocation {path!r}", RevokeCommand(path), None)

    def recount(self, path: Path) -> None:
        """Return to the session around it what the revoked session at a path has left unused; once is enough."""
        must_not_step()
        number = path[-1]
        assert isinstance(number, int)  # a part of a partition is never granted
        self.perform(f"recount {path!r}", RefundCommand(path[:-1], number), None)

    def ask(
        self,
        path: Path,
        source: Source,
        prepared: PreparedQuery | None,
        public: Plain,
        *,
        sequential: bool = False,
        follows: bool | None = None,
        request: str | None = None,
        sees: int = 1,
    ) -> Plain:
        """One ask; the mechanism's own answer. `follows` is `step.follows_updates`, if that was decided already."""
        must_not_step()
        own = None if request is None else self._own(request, path[:-1])
        has_rows = self.data.begin_reading(sees)  # which are not let go of meanwhile
        try:
            wanted = AskCommand(path, prepared, public, source.pin(), sequential, follows, not has_rows)
            with self._locks[hash(path) % _STRIPES]:
                answer = self.perform(own, wanted, source, request)
        finally:
            self.data.end_reading(sees)
        if isinstance(answer, Faulty):
            raise failed(row_at(self.ledger.read, path).mechanism)
        return answer

    def perform(self, own: str | None, wanted: Command, source: Source | None, given: str | None = None) -> Plain:
        """Begin, step, settle; the answer, once it is on record.

        `own` is the request's id in the ledger (None: it is made up), `given` what the analyst calls it.
        """
        request = new_request_id() if own is None else own
        begun = self._begun(request, wanted, source, given or request, new=own is None)
        return begun.answer if isinstance(begun, StoredAnswer) else self._settled(begun, source)

    def _begun(
        self, request: str, wanted: Command, source: Source | None, given: str, *, new: bool
    ) -> Intent | StoredAnswer:
        """The request once it is on record: checked, charged and recorded now, or before. A refusal is raised.

        `new` says that its id was made here: then no record of it is looked for.
        """
        while True:
            try:
                begun = self.ledger.begin(request, wanted, new=new, acting=self._acting)
            except RequestConflict:
                raise conflict(given) from None
            except NewerVersion:
                self.data.note_newer(wanted)
                raise
            if isinstance(begun, StoredAnswer) or begun.request == request:
                return begun
            self._finish_first(begun, source)

    def _settled(self, intent: Intent, source: Source | None) -> Plain:
        """The answer to a request that was begun, once it is on record."""
        wanted = intent.asked
        row, answer = self._answered(intent, wanted, source)
        return self.ledger.settle(intent, row, answer, reads_data=wanted.reads_data)

    def _answered(self, intent: Intent, wanted: Command, source: Source | None) -> tuple[LaunchRecord, Plain]:
        """What a request comes to. If that cannot be computed, the data are closed before the caller learns of it."""
        try:
            return answered(intent, wanted, source)  # the only place where a mechanism steps: noise is drawn here
        except DataFailed as error:
            failure = error
        self.close_data()
        raise bare(failure)

    def close_data(self) -> None:
        """Close the data for everyone who has this ledger, until `reopen_data`; once is enough."""
        closed = self._closings()
        if closed is not None and closed % 2 == 0:
            own = copy(self)
            own._acting = UNNAMED  # whoever asked
            own._close_or_reopen(closed)

    def reopen_data(self) -> None:
        """Let launches and asks begin again; those that were open are finished first, from their seeds."""
        must_not_step()
        closed = self._closings()
        if closed is not None and closed % 2 == 1:
            self._close_or_reopen(closed)

    @property
    def data_closed(self) -> bool:
        """Whether the data are closed: nothing is launched or asked until they are reopened."""
        return (self._closings() or 0) % 2 == 1

    def _closings(self) -> int | None:
        row = self.ledger.read(())
        return row.state.closings if row is not None and isinstance(row.state, SessionState) else None

    def _close_or_reopen(self, number: int) -> None:
        closing = CloseCommand((), number)
        self.perform(f"{closing.kind} {number}", closing, None)

    def _finish_first(self, intent: Intent, source: Source | None) -> None:
        """Finish another request that is open at the same row."""
        try:
            self._settled(intent, source)
        except (LedgerError, DataFailed):
            raise
        except CounterpointError as error:
            why = f"{type(error).__name__}: {error}"
        else:
            return
        raise LedgerError(
            f"an earlier request on this handle, {intent.request[:80]!r}, was begun and cannot be finished now "
            f"({why}); until it is, this handle answers nothing else"
        )

    def recover(self) -> int:
        """Finish what a crash left open, as far as that can be done now; how many intents are left open.

        While the data are closed, only what needs none. What is about a version whose rows are gone stays open.
        """
        left = 0
        for intent in self.ledger.opened():
            if self.data_closed and intent.asked.needs_data:
                left += 1
                continue
            try:
                self._settled(intent, self._source_of(intent))
            except Exception:  # it is raised when its handle is asked, which tries again
                left += 1
        return left

    def _source_of(self, intent: Intent) -> Source:
        """The data that a request is about which was begun before."""
        asked = intent.asked
        if isinstance(asked, LaunchCommand | QuestionCommand):
            return self.source_at(self.data.source(asked.sees), intent.path)
        sees = 1 if intent.row is None else intent.row.sees
        return self.source_at(self.data.source(sees), intent.path)

    def version_of(self, given: str, session: Path) -> int | None:
        """The version that a request on record is about, by the id that the analyst gave it; None if it is new."""
        found = self.ledger.find(self._own(given, session))
        if isinstance(found, Intent):
            asked = found.asked
            return asked.sees if isinstance(asked, LaunchCommand | QuestionCommand) else None
        row = None if found is None else self.ledger.read(found.path)
        return None if row is None else row.sees

    def version_at(self, path: Path) -> int | None:
        """The version that a session keeps, or one around it; None if its launches see the current one."""
        for length in range(1, len(path) + 1):
            row = self.ledger.read(path[:length])
            if row is not None and pins_version(row.mechanism, row.by):
                return row.sees
        return None

    def quote(self, parent: Path, fit: Fit) -> Account:
        """The account after such a launch, or the reason why not: the dry run, by the same code."""
        composition, node = self.node(parent)
        return composition.admit(node.account, fit.mechanism, fit.relation, fit.claim)

    def node(self, path: Path) -> tuple[Concurrent, SessionState]:
        """The composition at a path, and its account; once closed, as they were then."""
        if path in self._last:
            return self._last[path]
        self._looked_at.add(path)
        return node_at(self.ledger.read, path)

    def source_at(self, source: Source, path: Path, start: int = 0) -> Source:
        """The data that a path is about, from that of its first `start` steps on: a part or a sample, and what is read.

        A session on a sample and all that was launched in it see the sample alone.
        """
        row = self.ledger.read(path[:start])
        for length in range(start, len(path)):
            if row is not None and row.by is not None:
                source = source.part(row.by, source.spelled(row.by, part_key(path[length])))
            row = self.ledger.read(path[: length + 1])
            if row is not None and isinstance(row.state, SessionState) and row.mechanism.sampling_rate is not None:
                source = source.sampled(sample_of(row.state))
        if row is None or row.of is None:
            return source
        return source.of(row.of)  # type: ignore[arg-type]  # an OnSource was stored by several sources, which take it

    def _own(self, given: object, session: Path) -> str:
        """The id in the ledger of a request that an analyst names so: it is that session's and that principal's own.

        Two sessions may use the same id, two principals in one session may, and none is the name of a part.
        """
        return self._acting.own(f"{session!r} {checked_id(given)}")

    def own_id(self, given: str) -> str:
        """The id in the ledger of a request to the whole session."""
        return self._own(given, ())

    def receipt(self, session: Path, given: str) -> tuple[Signed, Disclosure]:
        """The receipt for the answer to a request of this session, by the id that the analyst gave it."""
        return self.ledger.receipt(self._own(given, session))

    def close(self) -> None:
        """Let go of the ledger, and keep what was lost in those sessions that were looked at."""
        with suppress(LedgerError):  # it has failed, or is another process's: then this is not known
            self._last.update({path: node_at(self.ledger.read, path) for path in self._looked_at})
        self.ledger.close()


def part_name(key: object) -> str:
    """The step of a path that leads to the part with this key."""
    return f"{type(key).__name__}:{key}"


def part_key(step: int | str) -> bool | int | str:
    """The key that `part_name` made a name of."""
    kind, _, key = str(step).partition(":")
    if kind == "int":
        return int(key)
    return key == "True" if kind == "bool" else key
