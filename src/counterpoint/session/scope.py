"""What a session reads from its ledger, how it is bound to one, and its rehearsal. Reading changes nothing.

A session reads what was lost and by which theorem, what is left, and what was done. A reading at a distance composes
the launches one by one (theory, Groups): its own, and those in what it delegated, since a delegated session is a
filter, whose refusals only restrict the analyst. A partition counts as one launch with the claim that was charged for
it: at distance d, d units reach up to d k parts, each perhaps at distance 1, so k launches of the group loss of a part
would be too few. So does a session on a sample: its claim is amplified, its launches are not.

A rehearsal is a session in memory over rows that are drawn from the declaration alone. It has the rule of the session
that it rehearses and begins with a copy of its account, so that it refuses what the real one would refuse. Nothing of
the real data is read, nothing is written to the real ledger, and its answers say that they are made up.

>>> import counterpoint as cp
>>> session = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1))
>>> session.loss, session.remaining.epsilon, [fact.kind for fact in session.history]
(PureDP(0), 1, ['open'])
>>> _ = session.delegate(cp.PureDP(0.5)).launch(cp.Laplace(0.2))
>>> [claim.loss for claim in launched_claims(session._engine, ())]
[PureDP(0.2)]
>>> ages = {"age": cp.number(0, 120)}
>>> people = cp.Table(cp.datasets.people(), unit="person_id", rows_per_unit=1, columns=ages)
>>> session = cp.Session(people, within=cp.PureDP(1))
>>> rehearsal = session.rehearse()
>>> rehearsal.ask(cp.count(where="age >= 65"), epsilon=1).made_up, rehearsal.loss, session.loss
(True, PureDP(1), PureDP(0))
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeGuard

from msgspec.structs import replace

from counterpoint.composition.accumulator import Account
from counterpoint.composition.filters import Filter
from counterpoint.composition.rule import Remaining, Reserved, Rule
from counterpoint.errors import DataChanged, InvalidParameter, LedgerError, NotAllowed, RequestConflict
from counterpoint.ledger.chain import Disclosure, Signed
from counterpoint.ledger.commands import Admission, LaunchCommand, OpenCommand, QuestionCommand, Read, row_at
from counterpoint.ledger.custodian_commands import RefreshCommand, RefundCommand
from counterpoint.ledger.durable import unrecognisable
from counterpoint.ledger.ledger import Ledger, StoredAnswer
from counterpoint.ledger.location import Place
from counterpoint.ledger.memory import MemoryLedger
from counterpoint.ledger.open import durable
from counterpoint.ledger.replay import LAUNCHING
from counterpoint.ledger.state import HistoryEntry, LaunchRecord, Path, SessionState
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.numbers.exact import whole
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.claims import Claim
from counterpoint.queries.source import Source
from counterpoint.session.runner import Engine
from counterpoint.session.versions import DataVersion, DataVersions, current_number, must_follow, versions_on_record
from counterpoint.sources.replaced import replaced

if TYPE_CHECKING:
    from counterpoint.session.session import Session


class ReadableSession:
    """The readings of a session, from its ledger."""

    _engine: Engine
    _path: Path

    @property
    @abstractmethod
    def _source(self) -> Source:
        """The data that is launched on."""

    def _must_be_open(self) -> None:
        """Refuse what needs an open session."""

    @property
    def rule(self) -> Rule:
        """The rule that decides."""
        return self._engine.node(self._path)[0].rule

    @property
    def loss(self) -> Loss:
        """What has been lost so far; reading it changes nothing."""
        composition, node = self._engine.node(self._path)
        return composition.rule.loss(node.account)

    @property
    def made_up(self) -> bool:
        """Whether this is a rehearsal, whose rows and answers are made up."""
        return self._source.made_up

    def loss_at(self, *, distance: int) -> Loss:
        """What has been lost between data that differ in `distance` units: a reading, at a distance fixed in advance.

        Each launch counts with its own group loss, by the session's rule (theory, Groups), which is tighter than
        `loss.group(distance)` where losses have a delta. What was delegated counts with its launches, a partition with
        the group loss of what it was charged; `reserved` lists what `loss` counts and this reading does not, at
        distance 1 as at any other.

        >>> import counterpoint as cp
        >>> session = cp.Session(cp.Stream(bound=1), within=cp.ApproxDP(5, 1e-6))
        >>> for _ in range(50):
        ...     _ = session.launch(cp.Laplace(epsilon=0.1))
        >>> session.loss_at(distance=3).delta, session.loss.group(3).delta > 1e-3
        (1e-6, True)
        """
        apart = whole(distance, 0, "distance")
        if self.made_up and not self._path:
            raise NotAllowed(
                "a rehearsal begins with an account, without the launches in it: read loss_at from the real session"
            )
        return self.rule.loss_at(apart, launched_claims(self._engine, self._path))

    @property
    def reserved(self) -> tuple[Reserved, ...]:
        """What was delegated out of this session and is counted by `loss` in full, used or not.

        >>> import counterpoint as cp
        >>> session = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1))
        >>> _ = session.delegate(cp.PureDP(0.5)).launch(cp.Laplace(0.2))
        >>> session.loss, session.loss_at(distance=1), session.reserved
        (PureDP(0.5), PureDP(0.2), (Reserved(path=(0,), charged=PureDP(0.5), used=PureDP(0.2)),))
        """
        return tuple(reserved_in(self._engine, self._path))

    @property
    def remaining(self) -> Remaining:
        """The largest further PureDP that fits, and the delta that is left; for anything else, `would_cost`."""
        composition, node = self._engine.node(self._path)
        return composition.rule.remaining(node.account)

    def would_admit(self, loss: Loss) -> int:
        """How many more launches with this loss would fit, one after another; nothing happens.

        >>> import counterpoint as cp
        >>> session = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1))
        >>> session.would_admit(cp.PureDP(0.3))
        3
        """
        composition, node = self._engine.node(self._path)
        return composition.rule.would_admit(node.account, loss)

    def certificate(self) -> Certificate:
        """Why the loss is what it is: the rule's derivation, on what was launched, in order, each with its path.

        A part of a partition is named by its key, and its certificate is its own session's.
        """
        return self.page_of_certificate(0, None)[0]

    def page_of_certificate(self, after: int, limit: int | None) -> tuple[Certificate, int | None]:
        """The same derivation with `limit` of its launches behind the first `after`; and where the next page begins.

        The rule's own premises stand on the first page, those about shared data on the last: all pages together are the
        certificate.
        """
        composition, node = self._engine.node(self._path)
        root = composition.rule.certificate(node.account)
        end = node.launched if limit is None else min(after + limit, node.launched)
        before = root.premises if after == 0 else ()
        rows: dict[Path, LaunchRecord | None] = {(*self._path, number): None for number in range(after, end)}
        self._engine.ledger.read_all(rows)
        launched = [_launched(path, row) for path, row in rows.items()]
        shared = () if self._path or end < node.launched else shared_data(self._engine)
        page = Certificate(root.statement, root.theorem, (*before, *launched, *shared))
        return page, end if end < node.launched else None

    def receipt(self, id: str) -> tuple[Signed, Disclosure]:
        """A signed receipt for the answer to the request with this id, and what opens its answer to others.

        It can be checked against the public record without a key and without this library; see the guide's page on
        receipts. Only a session with a durable ledger has receipts.
        """
        self._must_be_open()
        return self._engine.receipt(self._path, id)

    def record(self) -> list[str]:
        """The public record of the whole session as JSON lines, which `checker.py` and others' checkers read."""
        self._must_be_open()
        return list(self._engine.ledger.record())

    @property
    def history(self) -> tuple[HistoryEntry, ...]:
        """What has been done here and below, in order; public facts only, no answers."""
        here = len(self._path)
        return tuple(fact for fact in self._engine.ledger.history() if fact.path[:here] == self._path)

    def as_given(self) -> tuple[str, str]:
        """How the session that gave this one a part of its budget shows it."""
        budget = self.rule.budget if isinstance(self.rule, Filter) else self.rule
        return "delegated", f"{budget!r}, of which {self.loss!r} is used; the rest stays reserved"

    def __repr__(self) -> str:
        try:
            launched = self._engine.node(self._path)[1].launched
            rows = ", made-up rows" if self.made_up else ""
            return f"Session({self.rule!r}, {self.loss!r} lost, {launched} launched{rows})"
        except LedgerError as error:
            return f"Session(cannot be read: {type(error).__name__})"


def launched_claims(engine: Engine, path: Path) -> Iterator[Claim]:
    """The claims of all that was launched in the session at a path and in what it delegated, in the order of time.

    The order counts: what a launch needs of a Gaussian depends on those behind it (theory, A Gaussian odometer), and
    the first launch decides how a reading is divided.
    """
    launched = {path: 0}
    for fact in engine.ledger.history():
        if fact.kind not in LAUNCHING or fact.path not in launched:
            continue
        child = (*fact.path, launched[fact.path])
        launched[fact.path] += 1
        mechanism, by = launched_at(engine, child)
        if _counts_with_its_launches(mechanism, by):
            launched[child] = 0
        else:
            yield mechanism.claim


def _counts_with_its_launches(mechanism: Mechanism, by: str | None) -> TypeGuard[Concurrent]:
    """Whether a reading counts it with what is launched in it: a delegated session, but on all of the data."""
    return isinstance(mechanism, Concurrent) and by is None and mechanism.sampling_rate is None


def reserved_in(engine: Engine, path: Path) -> Iterator[Reserved]:
    """The delegated sessions whose charges stand; not those whose launches were recounted in their place."""
    returned = {fact.what for fact in engine.ledger.history() if fact.kind == "recount" and fact.path == path}
    for number in range(engine.node(path)[1].launched):
        child = (*path, number)
        mechanism, by = launched_at(engine, child)
        if _counts_with_its_launches(mechanism, by) and RefundCommand(path, number).what not in returned:
            composition, node = engine.node(child)
            yield Reserved(child, mechanism.claim.loss, composition.rule.loss(node.account))


def launched_at(engine: Engine, path: Path) -> tuple[Mechanism, str | None]:
    """What was launched at a path, and what it cuts the data by; from the open request if it has not started yet."""
    row = engine.ledger.read(path)
    if row is not None:
        return row.mechanism, row.by
    for intent in engine.ledger.opened():
        if intent.path == path:
            asked = intent.asked
            assert isinstance(asked, LaunchCommand | QuestionCommand)
            return asked.fit.mechanism, asked.by if isinstance(asked, LaunchCommand) else None
    row = row_at(engine.ledger.read, path)  # it started between the two looks
    return row.mechanism, row.by


def _launched(path: Path, row: LaunchRecord | None) -> Certificate:
    """What a launch adds to the derivation: the claim of its mechanism, with the path where it is found."""
    if row is None:
        return Certificate(f"{path!r}: charged, and not started yet", "an open request, finished by its id")
    claimed = row.mechanism.claim.certificate
    return Certificate(f"{path!r}: {claimed.statement}", claimed.theorem, claimed.premises)


def bind(
    engine: Engine,
    source: Source,
    second_budget: bool = False,
    *,
    refresh: str | None = None,
    earlier: Sequence[Source] = (),
) -> bool:
    """Say to the ledger which data it is about; the log of a stream or a live table is its to keep.

    Returns whether these data are to become the next version: the session is on record, and `refresh` says why.
    """
    ledger = engine.ledger
    is_next = refresh is not None and ledger.read(()) is not None
    number = current_number(ledger)
    known = versions_on_record(ledger) if number > 1 or is_next or earlier else ()
    before = _earlier_versions(known, earlier)
    if is_next:
        declared = must_follow(known[-1].declared, source)
        seen, has_rows = replaced(declared), False
        if seen.log is not None:
            ledger.bind(seen.fingerprint(), seen.log, refreshed=known[-1].fingerprint if number > 1 else None)
            has_rows = True
        engine.data = DataVersions(seen, number, known, has_rows=has_rows)
    else:
        seen = source.numbered(number)
        refreshed = known[-1].fingerprint if number > 1 else None
        rows = source.rows()
        ledger.bind(seen.fingerprint(), seen.log, rows=rows, second_budget=second_budget, refreshed=refreshed)
        engine.data = DataVersions(seen, number, known)
    if seen.log is not None:
        for old in known[:-1]:
            assert old.declared is not None
            before[old.number] = replaced(old.declared)
            before[old.number].continues(seen)
    for version, kept in before.items():
        engine.data.keep(version, kept)
    return is_next


def _earlier_versions(known: Sequence[DataVersion], given: Sequence[Source]) -> dict[int, Source]:
    """The versions that these sources are, recognised by their fingerprints; `DataChanged` if one is none of them."""
    found: dict[int, Source] = {}
    for source in given:
        seen = ((version, source.numbered(version.number)) for version in known)
        match = next(((one.number, as_one) for one, as_one in seen if as_one.fingerprint() == one.fingerprint), None)
        if match is None:
            raise DataChanged("data that were given as an earlier version are none of those on record")
        found[match[0]] = match[1]
    return found


def make_version(
    engine: Engine,
    source: Source,
    *,
    note: str,
    keep: bool,
    second_budget: bool = False,
    request: str | None = None,
    let_go: Callable[[], None] | None = None,
) -> DataVersion:
    """Put the next version of the data on record, and launch on it from here on. `let_go` frees the rows before it."""
    ledger, own = engine.ledger, None if request is None else engine.own_id(request)
    done = None if own is None else ledger.find(own)
    known = versions_on_record(ledger)
    if isinstance(done, StoredAnswer):
        return next(version for version in known if version.number == done.answer)
    must_follow(known[-1].declared, source)
    number = known[-1].number + 1
    seen = source.numbered(number)
    fingerprint = seen.fingerprint()
    if fingerprint is None:
        if not isinstance(ledger, MemoryLedger):
            raise unrecognisable()
        fingerprint = ""  # nothing has to be recognised after this process
    if len(note) > _LONGEST_NOTE:
        raise InvalidParameter(f"a note has at most {_LONGEST_NOTE} characters")
    ledger.note_rows(source.rows(), second_budget=second_budget)
    seen.continues(engine.data.current.source)
    engine.perform(own, RefreshCommand((), number, fingerprint, seen.declared(), note), None, request)
    engine.data.move_on(number, seen, keep=keep, let_go=let_go)
    return versions_on_record(ledger)[-1]


_LONGEST_NOTE = 1000


def open_root(engine: Engine, composition: Concurrent, sequential: bool, source: Source, *, is_next: bool) -> None:
    """Make the whole session, or find it on record with the same rule, relation and order.

    The relation on record is that of the first version. Those behind it are matched launch by launch, and were found to
    have the same neighbours as they were made (theory, Versions).
    """
    if is_next or current_number(engine.ledger) > 1:
        composition = replace(composition, relation=engine.node(())[0].relation)
    try:
        return engine.open_root(composition, sequential, source.declared())
    except RequestConflict:
        pass
    found, node = engine.node(())
    stored, given = found.rule, composition.rule
    if isinstance(stored, Filter) and isinstance(given, Filter) and stored.budget != given.budget:
        difference = f"budget {stored.budget!r}, not {given.budget!r}"
    elif type(stored) is not type(given):
        difference = f"{_words(stored)}, not {_words(given)}"
    elif stored != given:
        difference = f"rule {stored!r}, not {given!r}"
    elif node.sequential != sequential:
        difference = f"sequential={node.sequential}, not sequential={sequential}"
    else:
        difference = f"data whose neighbours are {found.relation!r}, not {composition.relation!r}"
    raise RequestConflict(
        f"this ledger holds a session {engine.ledger.name!r} with {difference}; open it as it is, or choose another "
        "name"
    )


def _words(rule: Rule) -> str:
    return f"budget {rule.budget!r}" if isinstance(rule, Filter) else f"rule {type(rule).__name__}"


@contextmanager
def closed_on_error(engine: Engine, given: object) -> Iterator[None]:
    """A ledger that was opened here is let go of if the session cannot be had; one that was given is its owner's."""
    try:
        yield
    except BaseException:
        if not isinstance(given, Ledger):
            engine.ledger.close()
        raise


def ledger_of(given: Ledger | Place | None, name: str, existing: bool = False) -> Ledger:
    """The ledger that was given, or the one at the place that was."""
    if given is None:
        return MemoryLedger()
    return given if isinstance(given, Ledger) else durable(given, name, existing=existing)


def shared_data(engine: Engine) -> tuple[Certificate, ...]:
    """What a certificate has to say about other sessions on the same data: their losses are not in this one's.

    >>> shared_data(Engine(MemoryLedger()))
    ()
    """
    return tuple(
        Certificate(
            f"session {name!r} of this ledger has the same rows and its own budget: what is lost there adds to this",
            "a second budget, which is on record",
        )
        for name in engine.ledger.beside()
    )


class CarriedOpenCommand(OpenCommand, frozen=True, kw_only=True):
    """Make the row of a rehearsal, whose account is a copy of the account of the session that it rehearses."""

    account: Account

    def plan(self, read: Read) -> Admission:
        """The account as it was when the rehearsal began."""
        root = LaunchRecord(self.composition, SessionState(self.account, sequential=self.sequential))
        return Admission((), 0, row=root, charged=root)


def rehearse(session: "Session") -> "Session":
    """A session in memory over made-up rows, with the rule and a copy of the account of this one."""
    composition, node = session._engine.node(session._path)
    source = session._source.rehearsed()
    engine = Engine(MemoryLedger(), DataVersions(source))
    engine.perform("root", CarriedOpenCommand((), composition, node.sequential, account=node.account), None)
    return type(session)._at(engine, ())
