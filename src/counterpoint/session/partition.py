"""The parts of a session's data: sessions of their own, made on demand, all of them for the price of k.

See Henzinger et al. 2024, sec. 5.

A part is named by a value of the column or field that the data is cut by, and never read off the data. Which parts of a
table one unit reaches is fixed, and every measure is covered (Henzinger et al. 2024, Cor 5.15); on a stream pure losses
are (Cor 5.5), and approximate ones with a total for all deltas (Thm 5.4). The session's rule counts k launches.

>>> import counterpoint as cp
>>> visits = cp.Stream(fields={"page": cp.text()}, neighbours="add-or-remove")
>>> parts = cp.Session(visits, within=cp.PureDP(1)).partition("page", within=cp.PureDP(0.5))
>>> home = parts["home"].launch(cp.Counter(epsilon=0.5))
>>> parts.loss, parts["home"].loss, parts["shop"].loss
(PureDP(0.5), PureDP(0.5), PureDP(0))
"""

from fractions import Fraction
from threading import Lock
from typing import TYPE_CHECKING, NoReturn

from counterpoint.composition.rules.filters import Filter
from counterpoint.composition.rules.parallel import Parallel
from counterpoint.encoding import Plain
from counterpoint.errors import InvalidParameter, NotAllowed
from counterpoint.ledger.state import Path
from counterpoint.mechanisms.composed.concurrent import Concurrent
from counterpoint.privacy.loss import Loss
from counterpoint.session.running.engine import part_name
from counterpoint.sources.source import Source

if TYPE_CHECKING:
    from counterpoint.session.session import Session


class Partition:
    """The parts of a session's data, each a session of its own, made on demand: `parts["CA"].launch(...)`."""

    def __init__(self, session: "Session", path: Path, by: str, rule: Parallel) -> None:
        self._session = session
        self._path = path
        self._by = by
        self._rule = rule
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
        cut = self._session._source
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
            return self._session._inside(
                path, source
            )  # by another process, or before a restart, with what it was given
        composition = Concurrent(Filter(within or self._rule.smallest), source.relation)
        path = engine.launch(
            self._path,
            composition,
            source.relation,
            cursor=source.pin(),
            name=name,
        )
        return self._session._inside(path, source)

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
