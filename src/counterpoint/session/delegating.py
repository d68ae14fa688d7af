"""What a session delegates, and to whom: a rule with a bound, charged at once; a grant is delegated to a principal.

>>> from counterpoint import PureDP
>>> delegated_rule(PureDP(1), None)
Filter(PureDP(1))
"""

from abc import abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from counterpoint.composition.rules.amplified import Amplified
from counterpoint.composition.rules.converted import Converted
from counterpoint.composition.rules.filters import Filter
from counterpoint.composition.rules.rule import Rule
from counterpoint.errors import InvalidParameter, NotAllowed, NotCovered
from counterpoint.ledger.grants import Grant, expiry, mechanism_names, principal
from counterpoint.ledger.state import Path
from counterpoint.mechanisms.composed.concurrent import Concurrent
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.numbers import Number
from counterpoint.privacy.loss import Loss
from counterpoint.privacy.relations import OfSample
from counterpoint.session.reading import ReadableSession
from counterpoint.sources.source import Source

if TYPE_CHECKING:
    from counterpoint.session.session import Session


def delegated_rule(within: Loss | Rule, delta: Number | None, sampled: Number | None = None) -> Rule:
    """The rule of a delegated session: of a budget its filter; with a delta, converted; on a sample, amplified."""
    rule = within if isinstance(within, Rule) else Filter(within)
    if rule.halts:
        raise InvalidParameter("a session refuses and goes on, which is as private; halt=True is for Concurrent")
    promised = rule if delta is None else Converted(rule, delta)
    return promised if sampled is None else Amplified(promised, sampled)


def composed_on(rule: Rule, source: Source) -> Concurrent:
    """What is launched for a delegated session on this source: its rule, on the data or on a sample of them."""
    if not isinstance(rule, Amplified):
        return Concurrent(rule, source.relation)
    if source.unsampled is not None:
        raise NotCovered(f"no sample is drawn of this data: {source.unsampled}")
    return Concurrent(rule, OfSample(rule.rate, source.relation))


class DelegatingSession(ReadableSession):
    """What a session gives away: budgets of their own, to no principal in particular or to one."""

    _sequential: bool

    @abstractmethod
    def _inside(self, path: Path) -> "Session":
        """The session at a path below this one."""

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
        composition = composed_on(rule, self._source)
        pin, relation = self._source.pin(), composition.relation
        return self._inside(self._engine.launch(self._path, composition, relation, cursor=pin, request=id, grant=grant))

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
