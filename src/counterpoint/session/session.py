"""Sessions: launch, ask, interleave, delegate, partition; what a person holds (S3 Alg 1, 3, 6; S4 ExtConComp).

A session pays at launch and never at ask; a refusal is free; what was launched goes on answering when the budget is
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

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from threading import RLock
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from counterpoint.composition.filters import Filter, Remaining
from counterpoint.composition.parallel import Parallel
from counterpoint.composition.rule import Rule
from counterpoint.encoding import Plain, Value, encode
from counterpoint.errors import (
    CounterpointError,
    Halted,
    InvalidParameter,
    InvalidRequest,
    NotAllowed,
    RelationMismatch,
)
from counterpoint.ledger.ledger import Fact, Ledger, MemoryLedger, Path
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.numbers import Number
from counterpoint.numbers.exact import whole
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.loss import Loss
from counterpoint.privacy.relations import Sparse, Steps
from counterpoint.session.display import as_html, as_table
from counterpoint.session.engine import Engine
from counterpoint.session.explaining import explained
from counterpoint.session.fitting import launchable
from counterpoint.session.partition import Partition
from counterpoint.sources.source import Prepared, Source, in_units


class Quote(Value, frozen=True):
    """What a launch would cost: its own loss, what would have been lost after it, and if it is refused, why."""

    cost: Loss
    after: Loss | None
    refusal: str | None = None

    @property
    def fits(self) -> bool:
        """Whether the launch would be admitted."""
        return self.refusal is None


class Session:
    """A source, a rule and what was launched under it.

    Give a budget (`within=ApproxDP(1, 1e-6)`) or a rule (`rule=Odometer(zCDP)`). With `sequential=True` a handle
    retires as soon as the next mechanism is launched; no measure here needs that, so it is off unless asked for.
    """

    def __init__(
        self,
        source: Source,
        within: Loss | None = None,
        *,
        rule: Rule | None = None,
        ledger: Ledger | None = None,
        sequential: bool = False,
    ) -> None:
        if not isinstance(source, Source):
            raise InvalidParameter(
                f"a session needs a Table or a Stream, not a {type(source).__name__}: say "
                "Session(Table('people.parquet', unit='person_id'), within=PureDP(1))"
            )
        if (within is None) == (rule is None):
            raise InvalidParameter(
                "give a session either a budget, as in within=ApproxDP(1, 1e-6), or a rule, as in rule=Odometer(zCDP)"
            )
        chosen = Filter(within) if within is not None else rule
        if not isinstance(chosen, Rule):
            kind = type(chosen).__name__
            raise InvalidParameter(
                f"rule is a Filter, an Odometer or Slots, not a {kind}; a budget is said by within=..."
            )
        if chosen.halts:
            raise InvalidParameter("a session refuses and goes on, which is as private; halt=True is for Concurrent")
        engine = Engine(MemoryLedger() if ledger is None else ledger)
        engine.open_root(Concurrent(chosen, source.relation))
        self._set_up(source, engine, (), sequential)

    def _set_up(self, source: Source, engine: Engine, path: Path, sequential: bool) -> None:
        self._source = source
        self._engine = engine
        self._path = path
        self._sequential = sequential
        self._closed = False
        self._handles: dict[Path, Handle] = {}
        self._given: dict[Path, Session | Partition] = {}
        # in turn where a launch retires the handle before it, so that none is asked in the middle of the next launch
        self._turn: AbstractContextManager[object] = RLock() if sequential else nullcontext()

    @classmethod
    def _at(cls, source: Source, engine: Engine, path: Path) -> Self:
        session = cls.__new__(cls)
        session._set_up(source, engine, path, sequential=False)
        return session

    def _inside(self, path: Path, source: Source | None = None) -> "Session":
        """The session at a path below this one, on the same data or on a part of it."""
        return Session._at(self._source if source is None else source, self._engine, path)

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
    def remaining(self) -> Remaining:
        """The largest further PureDP that fits, and the delta that is left; for anything else, `would_cost`."""
        composition, node = self._engine.node(self._path)
        if not isinstance(composition.rule, Filter):
            raise NotAllowed(f"{type(composition.rule).__name__} has no budget that something could remain of")
        return composition.rule.remaining(node.account)

    def would_cost(self, mechanism: Mechanism, *, of: str | Sequence[str] | None = None) -> Quote:
        """What this launch would cost, by the very code that would admit it; nothing happens."""
        source = self._source.of(of)
        fitted = launchable(mechanism, source)
        try:
            account = self._engine.quote(self._path, fitted, source.relation)
        except CounterpointError as error:
            return Quote(fitted.claim.loss, None, f"{type(error).__name__}: {error}")
        return Quote(fitted.claim.loss, self.rule.loss(account))

    def launch(self, mechanism: Mechanism, *, of: str | Sequence[str] | None = None, id: str | None = None) -> "Handle":
        """Pay for a mechanism and start it; or `BudgetExceeded`, `NotCovered` or `RelationMismatch`, for free.

        Of a stream of records a mechanism follows the field that `of` names (see `Stream.of`), or the records as such.
        What is launched is the mechanism as `fitted` to the data.
        """
        self._must_be_open()
        source = self._source.of(of)
        fitted = launchable(mechanism, source)
        # the path says what is read, so that an id that was launched on one field is a conflict on another
        name = (
            None
            if of is None
            else encode((_checked(id) or uuid4().hex, of if isinstance(of, str) else tuple(of))).decode()
        )
        with self._turn:
            path = self._engine.launch(
                self._path, fitted, source.relation, cursor=source.pin(), name=name, request=self._request(id)
            )
            return self._handles.setdefault(path, Handle(self, source, path, fitted))

    def delegate(self, loss: Loss, *, id: str | None = None) -> "Session":
        """A session inside this one with a budget of its own, charged here at once; what it leaves stays reserved."""
        self._must_be_open()
        self._must_be_concurrent()
        composition = Concurrent(Filter(loss), self._source.relation)
        path = self._engine.launch(
            self._path, composition, self._source.relation, cursor=self._source.pin(), request=self._request(id)
        )
        inner = self._inside(path)
        self._given.setdefault(path, inner)
        return inner

    def partition(self, by: str, k: int = 1, *, within: Loss, delta_total: Number | None = None) -> "Partition":
        """Sub-sessions for the parts of the data, each with the budget `within`; charges k times that, once.

        A unit must reach at most k parts, which the source knows and enforces. On a table every measure is covered (S4
        Cor 5.15); on a stream pure losses (Cor 5.5) and, with `delta_total`, approximate ones (Thm 5.4): there every
        part that is ever looked at charges its delta, and `delta_total` is what they may come to.

        >>> import counterpoint as cp
        >>> visits = cp.Stream(fields={"page": cp.text()})
        >>> parts = cp.Session(visits, within=cp.PureDP(1)).partition("page", k=2, within=cp.PureDP(0.5))
        >>> counter = parts["home"].launch(cp.Counter(epsilon=0.5))
        """
        self._must_be_open()
        self._must_be_concurrent()
        if not isinstance(within, Loss):
            raise InvalidParameter(
                f"within is the loss that each part stays within, such as PureDP(0.1), not a {type(within).__name__}"
            )
        reach, k = self._source.reach(by), whole(k, 1, "k")
        if reach > k:
            raise RelationMismatch(
                f"neighbours of this data can differ in {reach} parts by {by!r}, more than k = {k}: say k={reach}, "
                f"which costs {reach} times {within!r}, or declare the data so that a unit reaches fewer"
            )
        inner = self._source.relation
        static = inner.within(Steps(updates=0))
        rule = Parallel(k, each=within, delta_total=delta_total, first_pair=static)
        relation = Sparse(k, inner, first_pair=static)
        path = self._engine.launch(self._path, Concurrent(rule, relation), relation, cursor=self._source.pin())
        parts = Partition(self, path, by, within)
        self._given[path] = parts
        return parts

    def certificate(self) -> Certificate:
        """Why what has been lost is what it is: the rule's derivation, on what was launched and what was given away."""
        composition, node = self._engine.node(self._path)
        root = composition.rule.certificate(node.account)
        launched = [handle.mechanism for handle in self.handles]
        launched += [self._engine.node(inner._path)[0] for inner in self.given]
        premises = (mechanism.claim.certificate for mechanism in launched)
        return Certificate(root.statement, root.theorem, (*root.premises, *premises))

    @property
    def history(self) -> tuple[Fact, ...]:
        """What has been done here and below, in order; public facts only, no answers."""
        here = len(self._path)
        return tuple(fact for fact in self._engine.ledger.history() if fact.path[:here] == self._path)

    @property
    def handles(self) -> "tuple[Handle, ...]":
        """What was launched here, in order."""
        return tuple(self._handles.values())

    @property
    def given(self) -> "tuple[Session | Partition, ...]":
        """What was delegated or partitioned here, in order: reserved, whether it is used or not."""
        return tuple(self._given.values())

    def _request(self, id: str | None) -> str | None:
        """The name of a request in the ledger: ids are this session's own, and never those of parts or of others."""
        return None if _checked(id) is None else f"{self._path!r} {id}"

    def _must_be_concurrent(self) -> None:
        if self._sequential:
            raise NotAllowed(
                "a sequential session has one mechanism at a time, and what is given away would be used beside it; "
                "leave out sequential=True to delegate or partition"
            )

    def _must_be_open(self) -> None:
        if self._closed:
            raise NotAllowed(
                "this session has been closed: it launches and answers no more; session.loss is what was lost"
            )

    def close(self) -> None:
        """Launch and ask no more through this object."""
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def as_given(self) -> tuple[str, str]:
        """How the session that gave this one a part of its budget shows it."""
        budget = self.rule.budget if isinstance(self.rule, Filter) else self.rule
        return "delegated", f"{budget!r}, of which {self.loss!r} is used; the rest stays reserved"

    def __repr__(self) -> str:
        return f"Session({self.rule!r}, {self.loss!r} lost, {len(self._handles)} launched)"

    def __rich__(self) -> object:
        return as_table(self)

    def _repr_html_(self) -> str:
        return as_html(self)


class Handle:
    """The analyst's end of one launched mechanism."""

    def __init__(self, session: Session, source: Source, path: Path, mechanism: Mechanism) -> None:
        self._session = session
        self._source = source
        self._path = path
        self.mechanism = mechanism

    def ask(self, request: object = None, *, id: str | None = None, **options: Any) -> Any:
        """Ask; the answer is in the request's units. Malformed asks are `InvalidRequest` and change nothing.

        `options` are the mechanism's own, such as `threshold=` of a sparse vector. The same `id` gets the same answer;
        it means so in this session, whatever ids others use.
        """
        self._session._must_be_open()
        prepared = None if request is None else self._source.prepare(request)
        public = self._public(prepared, options)
        with self._session._turn:
            self._must_be_current()
            try:
                name = self._session._request(id)
                answer = self._session._engine.ask(self._path, self._source, prepared, public, request=name)
            except InvalidRequest as error:
                raise InvalidRequest(explained(self.mechanism, public, prepared) or str(error)) from None
        return in_units(answer, self._source.update_grid) if prepared is None else prepared.in_units(answer)

    def _public(self, prepared: Prepared | None, options: dict[str, Any]) -> Plain:
        """What the mechanism makes of its options, on the grid of the request."""
        understand: Callable[..., Plain] | None = getattr(self.mechanism, "public_part", None)
        if understand is not None:
            return understand(None if prepared is None else prepared.grid, **options)
        if options:
            raise InvalidRequest(f"{type(self.mechanism).__name__} takes no {', '.join(options)}")
        return None

    def _must_be_current(self) -> None:
        if self._session._sequential and self._session.handles[-1] is not self:
            raise Halted(
                "this session is sequential, and another mechanism has been launched since; leave out sequential=True "
                "to go back and forth"
            )

    @property
    def halted(self) -> bool:
        """Whether the mechanism has given its last answer."""
        row = self._session._engine.ledger.read(self._path)
        return row is None or row.state is None

    def __repr__(self) -> str:
        return f"Handle({self.mechanism!r}{', halted' if self.halted else ''})"


def _checked(id: object) -> str | None:
    """A request's id, if it has one, or `InvalidParameter`."""
    if id is None or (isinstance(id, str) and id):
        return id
    raise InvalidParameter(f"id names a request, by a text such as 'monday', not by a {type(id).__name__}: {id!r:.40}")
