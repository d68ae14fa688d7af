"""Sessions: launch, ask, interleave, delegate, partition; what a person holds.

See Haney et al. 2023, Alg 1, Alg 3, Alg 6.

A session pays at launch and never at ask; a refusal is free; what was launched keeps answering when the budget is
gone; reading the loss changes nothing; a child's halt concerns that child. Threads may launch and ask at once: checking
and charging is one step, asks on different handles run side by side, asks on one handle in turn. From asyncio, use
`await asyncio.to_thread(handle.ask, request)`.

>>> import counterpoint as cp
>>> visits = cp.Stream(bound=1)
>>> session = cp.Session(visits, within=cp.PureDP(1))
>>> noisy = session.launch(cp.Laplace(epsilon=0.4, asks=2))
>>> visits.append(1)
>>> isinstance(noisy.ask(cp.total()), int)
True
>>> session.loss, session.remaining
(PureDP(0.4), Remaining(epsilon=0.6, delta=0))
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from types import TracebackType
from typing import Any, Self, Unpack, overload

from counterpoint.answers.present import SQLAnswer
from counterpoint.answers.scalars import AnyChoice, FloatAnswer, IntAnswer, KeysAnswer, Scalar, TupleAnswer
from counterpoint.answers.tables import RecordAnswer, SeveralAnswer, TableAnswer
from counterpoint.composition.filters import Filter
from counterpoint.composition.parallel import Parallel
from counterpoint.composition.rule import Rule
from counterpoint.display.markup import Picture
from counterpoint.display.timeline_svg import TimelinePicture
from counterpoint.errors import InvalidParameter, NotAllowed, RelationMismatch
from counterpoint.ledger.ledger import Ledger
from counterpoint.ledger.location import Place
from counterpoint.ledger.state import Path, principal
from counterpoint.measures import ApproxDP
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.mechanisms.mechanism import Chosen, Mechanism
from counterpoint.numbers import Exact, Number
from counterpoint.numbers.exact import whole
from counterpoint.privacy.relations import Sparse, Static, Steps
from counterpoint.queries.quantiles import Keys
from counterpoint.queries.request import Request
from counterpoint.queries.source import Source
from counterpoint.session.charges import ChargingSession
from counterpoint.session.fit import composed, launchable
from counterpoint.session.handle import Handle, M, Quote, quote_of
from counterpoint.session.questions import GivenTerms, ask, epsilon_for, terms, wanted_error, would_launch
from counterpoint.session.runner import Engine
from counterpoint.session.scope import bind, closed_on_error, ledger_of, make_version, open_root, rehearse
from counterpoint.session.subsessions import Partition
from counterpoint.session.timeline import as_html, as_rich, timeline_of
from counterpoint.session.versions import DataVersion, VersionedSource, versions_on_record
from counterpoint.sources.streams.items import read_subscription
from counterpoint.sql_requests.query import SQLQuery
from counterpoint.sql_requests.select import sql


class Session(ChargingSession):
    """A source, a rule and what was launched under it.

    Give a budget (`within=ApproxDP(1, 1e-6)`) or a rule (`rule=Odometer(zCDP)`). With `sequential=True` a handle
    retires as soon as the next mechanism is launched; no measure here needs that, so it is off unless asked for.

    With `ledger="ledger.db"` (or a postgresql:// URL, or `Durable(...)`) the session outlives its process: made again
    with the same data, rule and `name` it goes on where it was, and `counterpoint.open` opens it by its name alone. A
    budget belongs to a data set: another name for the rows of a session in that ledger is refused (`DataInUse`), unless
    `second_budget=True` insists, which stays on record and in the certificate. Newer rows of the same units are the
    next version under the same budget: `refresh`, or `refresh="why"` as the session is opened again, and the record
    names `refreshed_by`. The rows of `earlier` versions, if given, are recognised, and their handles answer on.
    """

    def __init__(
        self,
        source: Source,
        within: Loss | None = None,
        *,
        rule: Rule | None = None,
        ledger: Ledger | Place | None = None,
        name: str = "session",
        sequential: bool = False,
        second_budget: bool = False,
        refresh: str | None = None,
        refreshed_by: str = "",
        earlier: Sequence[Source] = (),
    ) -> None:
        if not isinstance(source, Source):
            raise InvalidParameter(
                f"a session needs a Table, a LiveTable or a Stream, not a {type(source).__name__}: say "
                "Session(Table('people.parquet', unit='person_id', rows_per_unit=1), within=PureDP(1))"
            )
        if (within is None) == (rule is None):
            raise InvalidParameter(
                "give a session either a budget, as in within=ApproxDP(1, 1e-6), or a rule, as in rule=Odometer(zCDP)"
            )
        if isinstance(within, ApproxDP) and within.delta == 1:
            raise InvalidParameter(
                f"{within!r} promises nothing, as everything may leak with probability delta: say ApproxDP(1, 1e-6), "
                "epsilon first"
            )
        chosen = Filter(within) if within is not None else rule
        if not isinstance(chosen, Rule):
            kind = type(chosen).__name__
            raise InvalidParameter(f"rule is a Filter, an Odometer or Slots, not a {kind}; give a budget by within=...")
        if chosen.halts:
            raise InvalidParameter(
                "a session refuses and continues, which is equally private; halt=True is for Concurrent"
            )
        engine = Engine(ledger_of(ledger, name))
        with closed_on_error(engine, ledger):
            is_next = bind(engine, source, second_budget, refresh=refresh, earlier=earlier)
            open_root(engine, Concurrent(chosen, source.relation), sequential, source, is_next=is_next)
            engine.recover()
            if is_next:
                acting = engine.acting(refreshed_by, ())
                make_version(acting, source, note=refresh or "", keep=bool(earlier), second_budget=second_budget)
            self._set_up(engine, (), None)

    def _set_up(self, engine: Engine, path: Path, pinned: VersionedSource | None) -> None:
        self._pinned = pinned
        self._engine = engine.acting(engine.principal, path)
        self._path = path
        self._sequential = engine.node(path)[1].sequential  # and the engine notes its account, for after it is closed
        self._closed = False

    @classmethod
    def _at(cls, engine: Engine, path: Path, pinned: VersionedSource | None = None) -> Self:
        session = cls.__new__(cls)
        session._set_up(engine, path, pinned)
        return session

    def _inside(self, path: Path) -> "Session":
        """The session at a path below this one: on the data, or on the part or the sample that it keeps."""
        engine = self._engine
        number = engine.version_at(path)
        if number is None:
            return Session._at(engine, path)
        return Session._at(engine, path, VersionedSource(number, engine.source_at(engine.data.source(number), path)))

    @property
    def _seen(self) -> VersionedSource:
        """The data that is launched on here: what this session keeps, or the current version."""
        return self._engine.data.current if self._pinned is None else self._pinned

    def _seen_by(self, request: str | None) -> VersionedSource:
        """The same; for a request that is on record by this id, the version that it was made on.

        It is the same request then, although it would be another one on the current version.
        """
        seen = self._seen
        if request is None or self._pinned is not None or seen.number == 1:
            return seen
        number = self._engine.version_of(request, self._path)
        return seen if number is None else VersionedSource(number, self._engine.data.source(number))

    @property
    def _source(self) -> Source:
        return self._seen.source

    def would_cost(
        self,
        mechanism: Mechanism | object,
        *,
        of: str | Sequence[str] | Request | None = None,
        **on: Unpack[GivenTerms],
    ) -> Quote:
        """What this launch would cost, by the very code that would admit it; nothing happens.

        Of a request, it is what `ask` would launch on the same terms, such as `error=50`, with how far off its answer
        will be (`expected`), where that is known before, and what other prices would buy.

        >>> import counterpoint as cp
        >>> session = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1))
        >>> quote = session.would_cost(cp.total(), error=50)
        >>> quote.cost, quote.fits, session.loss
        (PureDP(0.05932), True, PureDP(0))
        >>> session.would_cost(cp.total(), epsilon=0.1).expected.within
        30
        """
        source = self._source.of(of)
        would, expected = would_launch(self, mechanism, on)
        return quote_of(self, launchable(would, source), expected)

    @overload
    def ask(self, request: Keys, *, id: str | None = None, **on: Unpack[GivenTerms]) -> KeysAnswer: ...
    @overload
    def ask(self, request: SQLQuery, *, id: str | None = None, **on: Unpack[GivenTerms]) -> SQLAnswer: ...
    @overload
    def ask(self, request: Request[int], *, id: str | None = None, **on: Unpack[GivenTerms]) -> IntAnswer: ...
    @overload
    def ask(self, request: Request[Fraction], *, id: str | None = None, **on: Unpack[GivenTerms]) -> FloatAnswer: ...
    @overload
    def ask(self, request: Request[int | Fraction], *, id: str | None = None, **on: Unpack[GivenTerms]) -> Scalar: ...
    @overload
    def ask(self, request: Request[Chosen], *, id: str | None = None, **on: Unpack[GivenTerms]) -> AnyChoice: ...
    @overload
    def ask(
        self, request: Request[tuple[object, ...]], *, id: str | None = None, **on: Unpack[GivenTerms]
    ) -> TableAnswer: ...
    @overload
    def ask(
        self, request: Request[tuple[Chosen, ...]], *, id: str | None = None, **on: Unpack[GivenTerms]
    ) -> TupleAnswer: ...
    @overload
    def ask(
        self, request: Request[Mapping[str, object]], *, id: str | None = None, **on: Unpack[GivenTerms]
    ) -> RecordAnswer: ...
    @overload
    def ask(
        self, request: Request[Mapping[str, tuple[object, ...]]], *, id: str | None = None, **on: Unpack[GivenTerms]
    ) -> SeveralAnswer: ...
    @overload
    def ask(self, request: object, *, id: str | None = None, **on: Unpack[GivenTerms]) -> Any: ...
    def ask(self, request: object, *, id: str | None = None, **on: Unpack[GivenTerms]) -> Any:
        """Launch what answers this request, and ask it once; a number or a table that knows its error.

        Say what it may cost (`epsilon`, `rho`, `mu`, or a `loss`), and the mechanism with the least error is launched.
        Or say what `error` it may have, in the request's units, with a probability of 95 % unless another is given, and
        the mechanism is launched that lowers this session's budget least. Of several cells each is within the error,
        with `simultaneous=True` all at once; the rank of a quantile is within `rank_error` rows of the best. The error
        of a mean, a variance or a share is known before if they are of `rows_at_least` so many rows. With
        `suppress=2`, None stands for a number below twice its error. It is one request, with
        one `id`: a question that is repeated, also after a crash, is charged once and gets the same answer. A refusal
        is free.

        >>> import counterpoint as cp
        >>> session = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1))
        >>> visits = session.ask(cp.total(), error=50)
        >>> visits.error(), visits.mechanism, session.loss
        (50, Laplace(0.05932), PureDP(0.05932))
        """
        self._must_be_open()
        return ask(self, request, terms(**on), id)

    def sql(self, text: str, *, id: str | None = None, **on: Unpack[GivenTerms]) -> SQLAnswer:
        """Ask what a SELECT of aggregates says, on the terms of `ask`; a table with the names of its outputs.

        It is `ask(cp.sql(text), ...)`: the text is compiled to the request that Python would make, and what this SQL
        does not have is refused by name (`UnsupportedSQL`), for free. See the guide, SQL.

        >>> import counterpoint as cp
        >>> session = cp.Session(cp.Stream(fields={"page": cp.text()}), within=cp.PureDP(1))
        >>> visits = session.sql("SELECT COUNT(*) AS n FROM visits WHERE page = 'home'", epsilon=1)
        >>> visits["n"].error(0.95), list(visits.columns())
        (3, ['n', 'n_error'])
        """
        answer: SQLAnswer = self.ask(sql(text), id=id, **on)
        return answer

    def epsilon_for(self, request: object, **on: Unpack[GivenTerms]) -> Exact:
        """The least epsilon of four digits at which an answer keeps this `error` or `rank_error`; nothing happens.

        >>> import counterpoint as cp
        >>> cp.Session(cp.Stream(bound=1), within=cp.PureDP(1)).epsilon_for(cp.total(), error=50)
        0.05932
        """
        return epsilon_for(self, request, wanted_error(on))

    def launch(
        self,
        mechanism: M,
        *,
        of: str | Sequence[str] | Request | None = None,
        id: str | None = None,
    ) -> Handle[M]:
        """Pay for a mechanism and start it; or `BudgetExceeded`, `NotCovered` or `RelationMismatch`, for free.

        Of a stream of records a mechanism follows what `of` says: a field, several of them, or a request that is a sum
        over records (see `Stream.of`); else the records as such. The session launches
        the mechanism as `fitted` to the data.

        >>> import counterpoint as cp
        >>> visits = cp.Stream(fields={"page": cp.category(["home", "shop"]), "seconds": cp.number(0, 600)})
        >>> session = cp.Session(visits, within=cp.PureDP(1))
        >>> home = session.launch(cp.Counter(epsilon=0.5), of=cp.count(where="page = 'home'"))
        >>> recent = session.launch(cp.Counter(epsilon=0.5, window=1000), of=cp.count(where="page = 'home'"))
        >>> visits.append({"page": "home", "seconds": 20})
        >>> isinstance(home.ask(), int), isinstance(recent.ask(), int)
        (True, True)
        """
        self._must_be_open()
        seen = self._seen_by(id)
        source = seen.source.of(of)
        fit = launchable(mechanism, source)
        path = self._engine.launch(
            self._path, fit, cursor=source.pin(), of=read_subscription(of), request=id, sees=seen.number
        )
        return Handle(self, source, path, fit.mechanism, seen.number)  # type: ignore[arg-type]  # fitting keeps the class

    def rehearse(self) -> "Session":
        """The same session on made-up rows: the same calls and refusals, and no budget is spent.

        The rows are drawn from the declaration alone: nothing of the data is read. The rehearsal has this session's
        rule and what is left of its budget now, and its own account from then on. Its answers say that they are made
        up; their errors and prices are the real ones.

        >>> import counterpoint as cp
        >>> people = cp.Table(cp.datasets.people(), unit="person_id", rows_per_unit=1)
        >>> session = cp.Session(people, within=cp.PureDP(1))
        >>> answer = session.rehearse().ask(cp.count(), epsilon=0.1)
        >>> answer.made_up, answer.error(), session.loss
        (True, 30, PureDP(0))
        """
        return rehearse(self)

    def acting_as(self, who: str) -> "Session":
        """The same session for a principal: what is launched and asked through it is on record as theirs.

        Each principal has request ids of its own. In a granted session only the principal that it was granted to may
        launch and ask.

        >>> import counterpoint as cp
        >>> session = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1))
        >>> _ = session.acting_as("carol").launch(cp.Laplace(0.1))
        >>> session.history[-1].who
        'carol'
        """
        return Session._at(self._engine.acting(principal(who), self._path), self._path, self._pinned)

    def partition(
        self,
        by: str,
        k: int = 1,
        *,
        within: Loss | Sequence[Loss],
        delta_total: Number | None = None,
        id: str | None = None,
    ) -> "Partition":
        """Sub-sessions for the parts of the data, each with the budget `within`; charges k of these at once.

        A unit must reach at most k parts, which the source knows and enforces. The session's rule counts k launches of
        `within`, all or none. On a table every measure is covered; on a stream pure losses and, with `delta_total`,
        approximate ones (Henzinger et al. 2024, Cor 5.15, Cor 5.5 and Thm 5.4): there every part that is ever looked at
        charges its delta, and `delta_total` is what they may come to. The same `id` finds the same partition again, and
        nothing more is charged.

        Where some parts need more than others, `within` is a list of k losses: `parts.part(key, within=...)` opens a
        part with one of them, and `parts[key]` one with the smallest, of which there may be any number.

        >>> import counterpoint as cp
        >>> visits = cp.Stream(fields={"page": cp.text()})
        >>> session = cp.Session(visits, within=cp.PureDP(2))
        >>> parts = session.partition("page", k=2, within=cp.PureDP(0.5))
        >>> counter = parts["home"].launch(cp.Counter(epsilon=0.5))
        >>> unlike = session.partition("page", k=2, within=[cp.PureDP(0.5), cp.PureDP(0.1)])
        >>> counter = unlike.part("home", within=cp.PureDP(0.5)).launch(cp.Counter(epsilon=0.5))
        >>> session.loss
        PureDP(1.6)
        """
        self._must_be_open()
        self._must_be_concurrent()
        if not isinstance(within, Loss | list | tuple):
            raise InvalidParameter(
                "within is the loss that each part stays within, such as PureDP(0.1), or a list of k losses, not a "
                f"{type(within).__name__}"
            )
        seen = self._seen_by(id)
        reach, k = seen.source.reach(by), whole(k, 1, "k")
        if reach > k:
            raise RelationMismatch(
                f"neighbours of this data can differ in {reach} parts by {by!r}, more than k = {k}: say k={reach}, "
                f"which costs {reach} times {within!r}, or declare the data so that a unit reaches fewer"
            )
        inner = seen.source.relation
        static = inner.within(Steps(updates=0))
        rule = Parallel(k, each=within, delta_total=delta_total, first_pair=static)
        composition = Concurrent(rule, Static(k, inner) if static else Sparse(k, inner))
        fit, pin = composed(composition), seen.source.pin()
        path = self._engine.launch(self._path, fit, cursor=pin, by=by, request=id, sees=seen.number)
        return Partition(self, path, by, rule, seen)

    @property
    def handles(self) -> tuple[Handle, ...]:
        """What was launched here, in order, by whichever process; what was delegated or parted is in `given`."""
        return tuple(child for child in self._children() if isinstance(child, Handle))

    @property
    def given(self) -> "tuple[Session | Partition, ...]":
        """What was delegated or partitioned here, in order: reserved, whether it is used or not."""
        return tuple(child for child in self._children() if isinstance(child, Session | Partition))

    def _children(self) -> "Iterator[Handle | Session | Partition | None]":
        launched = self._engine.node(self._path)[1].launched
        return (self.at((*self._path, number)) for number in range(launched))

    def page_of_children(self, after: int, limit: int) -> "tuple[list[Handle | Session | Partition], int | None]":
        """What was launched, delegated or parted here, behind the first `after`; and where the next page begins."""
        launched = self._engine.node(self._path)[1].launched
        found = (self.at((*self._path, number)) for number in range(after, min(after + limit, launched)))
        return [one for one in found if one is not None], after + limit if after + limit < launched else None

    def at(self, path: Path) -> "Handle | Session | Partition | None":
        """What lives at a path (`handle.path`) at or below this session: how a handle is found again after a restart.

        None if nothing does, or not yet: a launch that was charged and never finished is finished by its request id.
        """
        path = tuple(path)
        row = self._engine.ledger.read(path)
        if row is None or path[: len(self._path)] != self._path:
            return None
        if path == self._path:
            return self
        if isinstance(row.mechanism, Concurrent) and row.by is None:
            return self._inside(path)
        around = self if path[:-1] == self._path else self._inside(path[:-1])
        source = self._engine.source_at(self._engine.data.source(row.sees), path)
        if not isinstance(row.mechanism, Concurrent):
            return Handle(around, source, path, row.mechanism, row.sees)
        rule = row.mechanism.rule.chosen
        assert row.by is not None and isinstance(rule, Parallel)
        return Partition(around, path, row.by, rule, VersionedSource(row.sees, source))

    def _must_be_open(self) -> None:
        if self._closed:
            raise NotAllowed(
                "this session has been closed: it launches and answers no more; session.loss is what was lost"
            )
        self._engine.ledger.check()

    def close(self) -> None:
        """Launch and ask no more through this object; the whole session lets go of its ledger, too.

        `loss`, `remaining` and `rule` stay what they were; what is read from the ledger (`history`, `handles`) needs it
        open.
        """
        self._closed = True
        if not self._path:
            self._engine.close()

    @property
    def data_closed(self) -> bool:
        """Whether the data are closed for everyone, as an answer could not be computed (`DataFailed`)."""
        return self._engine.data_closed

    def reopen(self) -> None:
        """Let launches and asks begin again after `DataFailed`; a custodian does, once the reason is understood.

        The log `counterpoint.custodian` names it. Requests that were left open are finished when they are repeated by
        their id, or their handle is asked again: from their own seeds, and charged once. If an answer cannot be
        computed then, either, the data are closed again, and analysts have seen one more failure. Only the whole
        session reopens its data. Data that are open stay so.

        >>> import counterpoint as cp
        >>> session = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1))
        >>> session.reopen()
        >>> session.data_closed
        False
        """
        self._must_be_open()
        if self._path:
            raise NotAllowed("data are reopened by the custodian, through the whole session, and not in a part of it")
        self._engine.reopen_data()

    def refresh(
        self,
        source: Source,
        *,
        note: str = "",
        keep: bool = False,
        second_budget: bool = False,
        id: str | None = None,
    ) -> DataVersion:
        """Make newer rows of the same units the next version of the data; what was lost stays lost.

        Launches see it from here on. A handle keeps the version that it was launched on, and so do partitions and
        sessions on a sample with all that is in them. With `keep=True` they go on answering from it; else they say
        `DataReplaced`. The declaration may be another: more columns, other keys, bounds and caps. `NotCovered` if the
        unit, its type, or the neighbours are others, or a row is one of something else.

        Refresh by schedule or by decision, never because of what the exact rows show, and also if nothing changed: that
        there is a new version, and how it is declared, is public. The guide's page on versions says what no program can
        check. Only the whole session is refreshed, by its custodian; the same `id` does it once.

        >>> import counterpoint as cp
        >>> import duckdb
        >>> rows = duckdb.sql("SELECT 41 AS age")
        >>> june = cp.Table(rows, unit=cp.each_row, columns={"age": cp.number(0, 120)})
        >>> july = cp.Table(rows, unit=cp.each_row, columns={"age": cp.number(0, 130)})
        >>> session = cp.Session(june, within=cp.PureDP(1))
        >>> session.refresh(july, note="monthly").number, [version.note for version in session.versions]
        (2, ['', 'monthly'])
        """
        self._must_be_open()
        if self._path:
            raise NotAllowed("data are refreshed by the custodian, through the whole session, and not in a part of it")
        return make_version(self._engine, source, note=note, keep=keep, second_budget=second_budget, request=id)

    @property
    def versions(self) -> tuple[DataVersion, ...]:
        """The versions of the data, in order. In what was delegated or granted, only their numbers and times."""
        found = versions_on_record(self._engine.ledger)
        return tuple(version.public for version in found) if self._path else found

    @property
    def data_version(self) -> int:
        """The number of the version that is launched on here."""
        return self._seen.number

    def plot(self, by: str = "order") -> Picture:
        """The session as a timeline: the loss under its budget, and a lane for each launch, on one axis of events.

        With `by="time"` events stand at their times. Public facts only. A notebook shows it, `print` and rich write it
        in a terminal, and `plot().save("session.svg")` keeps it.
        """
        return TimelinePicture(timeline_of(self, by))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __rich__(self) -> object:
        return as_rich(self)

    def _repr_html_(self) -> str:
        return as_html(self)


def open(
    ledger: Ledger | Place,
    name: str = "session",
    *,
    source: Source,
    refresh: str | None = None,
    refreshed_by: str = "",
    earlier: Sequence[Source] = (),
) -> Session:
    """Resume a session after a restart: same paths, same states, same answers for the same request ids.

    What a crash left unfinished is finished first, from the seeds on record. The data must be what it was; or with
    `refresh="why"` it becomes the next version, made by `refreshed_by`, and launches see it (`Session.refresh`). The
    rows of `earlier` versions, if given, are recognised, and their handles answer on.

    >>> import counterpoint as cp
    >>> cp.open("nowhere.db", source=cp.Stream(bound=1))
    Traceback (most recent call last):
    ...
    counterpoint.errors.LedgerError: there is no ledger at 'nowhere.db'
    """
    engine = Engine(ledger_of(ledger, name, existing=True))
    with closed_on_error(engine, ledger):
        is_next = bind(engine, source, refresh=refresh, earlier=earlier)
        engine.recover()
        if is_next:
            make_version(engine.acting(refreshed_by, ()), source, note=refresh or "", keep=bool(earlier))
        return Session._at(engine, ())
