"""Releases made elsewhere: charged here once, or reserved first and settled for less where that is proven.

A charge is a launch of `External`, which answers nothing: the custodian says what another tool has released about the
same rows, and for how much. Charge first and release afterwards: what does not fit is refused, and must not be run.
What is sound, and what no program can check, is in the guide (Releases made elsewhere).

>>> import counterpoint as cp
>>> total_loss([cp.zCDP(0.1), (cp.zCDP(0.05), 4)], None)
(zCDP(0.3), 'composed from 2 losses that were fixed in advance: zCDP(0.1), 4 x zCDP(0.05) (compose.optimal, sum)')
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from counterpoint.composition.fixed.compose import optimal_of
from counterpoint.composition.fixed.totals import Composed
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.ledger.commands import Fit
from counterpoint.ledger.state import granted
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.external import External
from counterpoint.mechanisms.mechanism import priced
from counterpoint.numbers import Number
from counterpoint.numbers.exact import format_number, probability, whole
from counterpoint.privacy.claims import Charge
from counterpoint.session.handle import Handle
from counterpoint.session.subsessions import DelegatingSession

if TYPE_CHECKING:
    from counterpoint.session.session import Session

Losses: TypeAlias = Loss | Sequence[Loss | tuple[Loss, int]]
"""One loss, or a list of losses that was fixed before the release began, each perhaps with how often it occurs."""
_SHOWN = 5
"""How many of a list's losses a certificate spells out."""
_NOBODY = "custodian"
"""Who declares a release in a session without a principal."""


def total_loss(given: Losses, delta: Number | None) -> tuple[Loss, str]:
    """What a release costs as one loss, and how that follows from a list; with a delta, the (epsilon, delta) of it."""
    if isinstance(given, Loss):
        return (given, "") if delta is None else (given.as_approx(delta), _at(repr(given), delta))
    counted = _counted(given)
    total = optimal_of(counted)
    listed = [repr(Charge(loss, times)) for loss, times in counted.items()]
    more = [f"{len(listed) - _SHOWN} more"] * (len(listed) > _SHOWN)
    number = f"{len(listed)} losses that were" if len(listed) > 1 else "a list that was"
    how = f"composed from {number} fixed in advance: {', '.join(listed[:_SHOWN] + more)} (compose.optimal, {{}})"
    if delta is not None:
        return total.as_approx(delta), _at(how.format(total.method_at(delta)), delta)
    if isinstance(total.loss, Composed):
        raise InvalidParameter(
            "the optimal composition of this list is a curve: say at which delta it is charged, as in delta=1e-7"
        )
    return total.loss, how.format(total.method)


def _at(what: str, delta: Number) -> str:
    return f"{what}, read at delta {format_number(probability(delta, 'delta'))}"


def _counted(given: object) -> Counter[Loss]:
    """How often each loss occurs in a list."""
    counted: Counter[Loss] = Counter()
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise InvalidParameter(
            f"a charge is a loss such as PureDP(0.1), or a list of losses, not a {type(given).__name__}"
        )
    for one in given:
        loss, times = one if isinstance(one, tuple) and len(one) == 2 else (one, 1)
        if not isinstance(loss, Loss):
            raise InvalidParameter(f"a list of losses holds losses, or pairs of a loss and a number, not {one!r:.80}")
        counted[loss] += whole(times, 1, "how often a loss occurs")
    if not counted:
        raise InvalidParameter("the list of losses is empty: a release that lost nothing is not charged")
    return counted


class Reservation:
    """What was set aside for a release that is still to be made; `settle` charges what it cost, once."""

    def __init__(self, session: "ChargingSession", inside: "Session", what: str, unit: str, id: str) -> None:
        self._session, self._inside = session, inside
        self._what, self._unit, self._id = what, unit, id

    @property
    def loss(self) -> Loss:
        """What is set aside."""
        return self._inside._engine.node(self._inside._path)[0].claim.loss

    def settle(self, loss: Losses, *, delta: Number | None = None) -> Handle[External]:
        """Charge what the release cost, at most what was set aside, and return the rest.

        Only where a theorem allows that the rest is returned (theory, Returning), else `NotCovered`, and all of it
        stays set aside. The loss must have been fixed without looking at what the run released: one that stopped early
        because of what it saw costs what was reserved. A second call with the same loss changes nothing.
        """
        session, inside = self._session, self._inside
        session._must_be_open()
        cost, derived = total_loss(loss, delta)
        fit = inside._external(cost, self._what, self._unit, derived)
        row = session._engine.ledger.read(inside._path)
        grant = None if row is None else granted(row)
        if grant is not None and not grant.revoked:
            composition, node = session._engine.node(session._path)
            inner, used = session._engine.node(inside._path)
            if not used.launched:
                inner.admit(used.account, fit.mechanism, fit.relation, fit.claim)
                composition.rule.refunded(node.account, inner.rule, inner.claim, [fit.claim])
        handle = inside.charge(loss, self._what, unit=self._unit, delta=delta, id=self._id)
        session._engine.revoke(inside._path)
        session._engine.recount(inside._path)
        return handle

    def __repr__(self) -> str:
        return f"Reservation({self.loss!r} for {self._what!r})"


class ChargingSession(DelegatingSession):
    """What a session pays for releases that were made elsewhere."""

    def charge(self, loss: Losses, what: str, *, unit: str, id: str, delta: Number | None = None) -> Handle[External]:
        """Charge a release that was made with another tool: official, on record, and it answers nothing.

        Its loss is declared and not derived, and the certificate says so. It must be true for the same rows and the
        same neighbours as this session's, and have been fixed before the release was seen; `unit` says in words whom
        the other tool protects. A list of losses that was fixed in advance is composed by `compose.optimal`, with
        `delta` as an (epsilon, delta). The `id` is required, so that a script that runs twice pays once.

        >>> import counterpoint as cp
        >>> session = cp.Session(cp.Stream(bound=1), within=cp.ApproxDP(1, 1e-6))
        >>> run = session.charge(cp.ApproxDP(0.5, 1e-8), "DP-SGD run 17, Opacus 1.6", unit="a person", id="run 17")
        >>> again = session.charge(cp.ApproxDP(0.5, 1e-8), "DP-SGD run 17, Opacus 1.6", unit="a person", id="run 17")
        >>> run.cost, again.path == run.path, session.history[-1].kind
        (ApproxDP(0.5, 1e-8), True, 'charge')
        """
        self._must_be_open()
        self._must_see_all_rows()
        seen = self._seen_by(_given(id))
        fit = self._external(*_as_one(loss, delta, what, unit))
        path = self._engine.launch(self._path, fit, cursor=seen.source.pin(), request=id, sees=seen.number)
        assert isinstance(fit.mechanism, External)
        return Handle(self, seen.source, path, fit.mechanism, seen.number)  # type: ignore[arg-type]  # a Session

    def reserve(self, loss: Losses, what: str, *, unit: str, id: str, delta: Number | None = None) -> Reservation:
        """Set a loss aside for a release that is still to be made; `settle` it with what it really cost.

        What is set aside is charged at once. The rest is returned where losses add up: in a budget that is a plain sum
        (theory, Returning). A reservation that is never settled stays charged.

        >>> import counterpoint as cp
        >>> session = cp.Session(cp.Stream(bound=1), within=cp.zCDP(1))
        >>> reserved = session.reserve(cp.zCDP(0.75), "a model of visits", unit="a visit", id="model")
        >>> session.loss
        zCDP(0.75)
        >>> _ = reserved.settle(cp.zCDP(0.375))
        >>> session.loss
        zCDP(0.375)
        """
        self._must_be_open()
        self._must_see_all_rows()
        cost, said, whom, _ = _as_one(loss, delta, what, unit)
        self._external(cost, said, whom, "")  # which checks the words
        who = self._engine.principal or _NOBODY
        inside = self.grant(who, cost, mechanisms=[External], id=_given(id))
        return Reservation(self, inside, what, unit, id)

    def _external(self, loss: Loss, what: str, unit: str, derived: str) -> Fit:
        relation = self._source.relation
        mechanism = External(loss, relation, what, unit, self._engine.principal or f"the {_NOBODY}", derived)
        return Fit(mechanism, relation, priced(mechanism))

    def _must_see_all_rows(self) -> None:
        """Refuse a charge in a part or a sample: another tool may have seen all rows."""
        for path in (self._path[:length] for length in range(1, len(self._path) + 1)):
            row = self._engine.ledger.read(path)
            sampled = row is not None and row.mechanism.sampling_rate is not None
            if isinstance(path[-1], str) or sampled:
                where = "a sample" if sampled else "a part"
                raise NotCovered(
                    f"this session is about {where} of the data, and a release that was made elsewhere need not be: "
                    "charge it in the session around"
                )


def _as_one(loss: Losses, delta: Number | None, what: str, unit: str) -> tuple[Loss, str, str, str]:
    cost, derived = total_loss(loss, delta)
    return cost, what, unit, derived


def _given(id: object) -> str:
    """The id of a charge, which must be given."""
    if not isinstance(id, str) or not id:
        raise InvalidParameter("a charge needs an id, such as id='run 17': a script that is run twice must pay once")
    return id
