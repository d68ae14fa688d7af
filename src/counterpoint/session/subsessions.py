"""Sessions inside a session: delegated, granted to a principal, and the parts of a partition.

A delegated session has a rule of its own with a bound, which is charged at once; a grant is delegated to a principal.
A partition has a session for each part of the data, made on demand, all of them for the price of k
(Henzinger et al. 2024, sec. 5). A part is named by a value of the column or field that the data is cut by, never read
off the data. Which parts of a table one unit reaches is fixed, and every measure is covered (Cor 5.15); on a stream
pure losses are (Cor 5.5), and approximate ones with a total for all deltas (Thm 5.4). The session's rule counts k
launches.

>>> import counterpoint as cp
>>> delegated_rule(cp.PureDP(1), None)
Filter(PureDP(1))
>>> visits = cp.Stream(fields={"page": cp.text()}, neighbours="add-or-remove")
>>> parts = cp.Session(visits, within=cp.PureDP(1)).partition("page", within=cp.PureDP(0.5))
>>> home = parts["home"].launch(cp.Counter(epsilon=0.5))
>>> parts.loss, parts["home"].loss, parts["shop"].loss
(PureDP(0.5), PureDP(0.5), PureDP(0))
"""

from abc import abstractmethod
from collections.abc import Sequence
from datetime import datetime
from fractions import Fraction
from threading import Lock
from typing import TYPE_CHECKING, NoReturn

from counterpoint.composition.filters import Filter
from counterpoint.composition.parallel import Parallel
from counterpoint.composition.restated import Amplified, Converted
from counterpoint.composition.rule import Rule
from counterpoint.encoding import Plain
from counterpoint.errors import InvalidParameter, NotAllowed, NotCovered
from counterpoint.ledger.state import Grant, Path, expiry, mechanism_names, principal
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.numbers import Number
from counterpoint.privacy.relations import OfSample
from counterpoint.queries.source import Source
from counterpoint.session.fit import composed
from counterpoint.session.runner import part_name
from counterpoint.session.scope import ReadableSession
from counterpoint.session.versions import VersionedSource

if TYPE_CHECKING:
    from counterpoint.session.session import Session


def delegated_rule(within: Loss | Rule, delta: Number | None, sampled: Number | None = None) -> Rule:
    """The rule of a delegated session: of a budget its filter; with a delta, converted; on a sample, amplified."""
    rule = within if isinstance(within, Rule) else Filter(within)
    if rule.halts:
        raise InvalidParameter("a session refuses and continues, which is equally private; halt=True is for Concurrent")
    promised = rule if delta is None else Converted(rule, delta)
    return promised if sampled is None else Amplified(promised, sampled)


def composed_on(rule: Rule, source: Source) -> Concurrent:
    """What is launched for a delegated session on this source: its rule, on the data or on a sample of them."""
    if not isinstance(rule, Amplified):
        return Concurrent(rule, source.relation)
    if source.why_not_sampled is not None:
        raise NotCovered(f"no sample is drawn of this data: {source.why_not_sampled}")
    return Concurrent(rule, OfSample(rule.rate, source.relation))


class DelegatingSession(ReadableSession):
    """What a session gives away: budgets of their own, to no principal in particular or to one."""

    _sequential: bool

    @abstractmethod
    def _inside(self, path: Path) -> "Session":
        """The session at a path below this one."""

    @abstractmethod
    def _seen_by(self, request: str | None) -> VersionedSource:
        """The version of the data that a request with this id is made on."""

    def delegate(
        self,
        within: Loss | Rule,
        *,
        delta: Number | None = None,
        sampled: Number | None = None,
        id: str | None = None,
    ) -> "Session":
        """A session inside this one with a budget of its own, charged here at once; what it leaves stays reserved.

        Give a budget, or a rule that promises one: a `Filter`, `Slots`, `odometer.within(loss)`. What is charged is the
        rule's bound (Haney et al. 2023, Lemma 4.5), if this session's rule covers it. With `delta` it is the (epsilon,
        delta) that the bound implies: for approximate zCDP, and for slots whose optimal composition is a curve.

        >>> import counterpoint as cp
        >>> session = cp.Session(cp.Stream(bound=1), within=cp.ApproxDP(1, 1e-6))
        >>> inner = session.delegate(cp.Slots([cp.PureDP(0.01)] * 100), delta=1e-7)
        >>> session.loss.epsilon < 0.45
        True

        With `sampled`, the inner session sees a secret Poisson sample of the units, of this rate, which is drawn once;
        what is charged here is the bound on the sample, amplified (theory, Sampling), and all of its answers are about
        the sample.

        >>> people = cp.Table(cp.datasets.people(), unit="person_id", rows_per_unit=1)
        >>> session = cp.Session(people, within=cp.PureDP(1))
        >>> hundredth = session.delegate(cp.PureDP(3), sampled=0.01)
        >>> hundredth.remaining.epsilon, round(float(session.loss.epsilon), 4)
        (3, 0.1747)
        """
        return self._delegated(delegated_rule(within, delta, sampled), id)

    def _delegated(self, rule: Rule, id: str | None, grant: Grant | None = None) -> "Session":
        self._must_be_open()
        self._must_be_concurrent()
        seen = self._seen_by(id)
        composition = composed_on(rule, seen.source)
        fit, pin = composed(composition), seen.source.pin()
        path = self._engine.launch(self._path, fit, cursor=pin, request=id, grant=grant, sees=seen.number)
        return self._inside(path)

    def grant(
        self,
        to: str,
        within: Loss | Rule,
        *,
        until: datetime | None = None,
        mechanisms: Sequence[type[Mechanism]] | None = None,
        delta: Number | None = None,
        sampled: Number | None = None,
        id: str | None = None,
    ) -> "Session":
        """Delegate a budget to a principal: the session in which they, and no other principal, launch and ask.

        It ends at `until`, or when it is revoked, and takes only the `mechanisms` that are named, if any are. `delta`
        and `sampled` are those of `delegate`.

        >>> import counterpoint as cp
        >>> session = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1))
        >>> hers = session.grant("ann", cp.PureDP(0.5), mechanisms=[cp.Laplace])
        >>> noisy = hers.launch(cp.Laplace(0.1, asks=2))
        >>> session.revoke(hers)
        >>> noisy.ask(cp.total())
        Traceback (most recent call last):
        ...
        counterpoint.errors.NotGranted: the grant of 'ann' was revoked: what was launched in it stays charged and...
        >>> session.loss
        PureDP(0.5)
        """
        given = Grant(principal(to), expiry(until), mechanism_names(mechanisms))
        return self._delegated(delegated_rule(within, delta, sampled), id, given).acting_as(given.to)

    def revoke(self, granted: "Session") -> None:
        """Take back a granted session: it launches and answers no more, in any process; its charge stays.

        An ask that was begun before is finished, and what was answered can still be read by its id.
        """
        self._must_have_granted(granted)
        self._engine.revoke(granted._path)

    def recount(self, granted: "Session") -> None:
        """Return what a revoked grant has left unused: its launches count in the place of its charge.

        Where a theorem allows it (theory, Returning), else `NotCovered`, and the charge stays: a grant of PureDP, or of
        this session's own measure, in a budget that is a plain sum. The loss that a session reads is not a number that
        may be subtracted.

        >>> import counterpoint as cp
        >>> session = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1))
        >>> hers = session.grant("ann", cp.PureDP(0.5))
        >>> noisy = hers.launch(cp.Laplace(0.1))
        >>> session.revoke(hers)
        >>> session.recount(hers)
        >>> session.loss
        PureDP(0.1)
        """
        self._must_have_granted(granted)
        self._engine.recount(granted._path)

    def _must_have_granted(self, granted: "Session") -> None:
        self._must_be_open()
        if granted._path[: len(self._path)] != self._path or granted._path == self._path:
            raise NotAllowed(f"what is at {granted._path!r} was not granted here; do it where it was granted")

    def _must_be_concurrent(self) -> None:
        if self._sequential:
            raise NotAllowed(
                "a sequential session has one mechanism at a time, and what is given away would be used beside it; "
                "leave out sequential=True to delegate or partition"
            )


class Partition:
    """The parts of a session's data, each a session of its own, made on demand: `parts["CA"].launch(...)`."""

    def __init__(self, session: "Session", path: Path, by: str, rule: Parallel, seen: VersionedSource) -> None:
        self._session = session
        self._path = path
        self._by = by
        self._rule = rule
        self._seen = seen
        self._sessions: dict[str, Session] = {}
        self._lock = Lock()

    def __getitem__(self, key: Plain | float | Fraction) -> "Session":
        """The part where the data has this value; a part that was never looked at before may cost its delta.

        Where unlike losses were declared, a new part has the smallest of them.
        """
        return self._part(key, None)

    def part(self, key: Plain | float | Fraction, *, within: Loss) -> "Session":
        """The same part with this budget, if it is new: one that finds its place among the declared losses."""
        if not isinstance(within, Loss):
            raise InvalidParameter(
                f"within is the loss that this part stays within, such as {self._rule.smallest!r}, not a "
                f"{type(within).__name__}"
            )
        part = self._part(key, within)
        rule = part.rule.chosen
        assert isinstance(rule, Filter)
        if rule.budget != within:
            raise NotAllowed(
                f"the part {key!r} was opened before with {rule.budget!r}, which it keeps: use it as parts[key]"
            )
        return part

    def _part(self, key: Plain | float | Fraction, within: Loss | None) -> "Session":
        self._session._must_be_open()
        cut = self._seen.source
        source, stored = cut.part(self._by, key), cut.key(self._by, key)
        # by its stored value: if 1 and 1.0 made two parts, or two kinds of text, both would have been paid for once
        name = part_name(stored)
        with self._lock:  # one thread makes a part, the others find it
            known = self._sessions.get(name)
            if known is None or known._closed:
                self._sessions[name] = known = self._made(source, name, within)
        return known

    def _made(self, source: Source, name: str, within: Loss | None) -> "Session":
        engine, path = self._session._engine, (*self._path, name)
        if isinstance(self._rule.each, tuple) and engine.ledger.read(path) is not None:
            return self._session._inside(path)  # by another process, or before a restart, with what it was given
        fit = composed(Concurrent(Filter(within or self._rule.smallest), source.relation))
        path = engine.launch(self._path, fit, cursor=source.pin(), name=name, sees=self._seen.number)
        return self._session._inside(path)

    def __iter__(self) -> NoReturn:
        raise NotAllowed(f"the parts by {self._by!r} are not read off the data: name them, as in parts[key]")

    @property
    def loss(self) -> Loss:
        """What the session has been charged for all parts together."""
        return self._session._engine.node(self._path)[0].claim.loss

    @property
    def within(self) -> Loss | tuple[Loss, ...]:
        """The budget of each part, or the k unlike ones that were declared."""
        return self._rule.each

    def as_given(self) -> tuple[str, str]:
        """How the session that was partitioned shows it."""
        return f"parts by {self._by!r}", f"each within {self._budgets}, {self._charged} charged for all of them"

    @property
    def _budgets(self) -> str:
        each = self._rule.each
        return repr(each) if isinstance(each, Loss) else f"one of {', '.join(map(repr, each))}"

    @property
    def _charged(self) -> str:
        claim = self._session._engine.node(self._path)[0].claim
        return " and ".join(map(repr, claim.launches)) or repr(claim.loss)

    def __repr__(self) -> str:
        return f"Partition(by {self._by!r}, each within {self._budgets})"
