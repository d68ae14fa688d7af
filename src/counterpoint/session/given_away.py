"""What a session has given away, as its readers follow it: granted and delegated sessions, and partitions.

Which launches these are never changes, so each is looked at once; after that, only rows that have changed are read.

>>> import counterpoint as cp
>>> session = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1))
>>> hers, noisy = session.grant("ann", cp.PureDP(0.5)), session.launch(cp.Laplace(0.1))
>>> from counterpoint.ledger.state import granted
>>> given = GivenAway.of(session)
>>> [(path, granted(row).to) for path, row in given.rows().items()]
[((0,), 'ann')]
>>> used = hers.launch(cp.Laplace(0.25))
>>> [used_share(row) for row in given.rows().values()]
[0.5]
"""

import threading
from typing import TYPE_CHECKING

from counterpoint.ledger.state import LaunchRecord, Path, SessionState
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.session.runner import Engine
from counterpoint.session.timeline import gauge_of_rule

if TYPE_CHECKING:
    from counterpoint.session.session import Session


class GivenAway:
    """The rows of what was given away out of the session at a path."""

    def __init__(self, engine: Engine, path: Path) -> None:
        self._engine = engine
        self._path = path
        self._seen = 0
        """How many launches were looked at."""
        self._begun: set[Path] = set()
        """Launches that were not finished when they were looked at."""
        self._rows: dict[Path, LaunchRecord | None] = {}
        self._used: dict[Path, tuple[LaunchRecord, float]] = {}
        self._lock = threading.Lock()

    @classmethod
    def of(cls, session: "Session") -> "GivenAway":
        """The one that all readers of this session share."""
        key = (cls, session._path)
        found: GivenAway = session._engine.kept.setdefault(key, cls(session._engine, session._path))
        return found

    def rows(self) -> dict[Path, LaunchRecord]:
        """The rows as they are now, by path, in the order of their launches."""
        with self._lock:
            launched = self._engine.node(self._path)[1].launched
            new = {*self._begun, *((*self._path, number) for number in range(self._seen, launched))}
            self._seen = launched
            looked_at: dict[Path, LaunchRecord | None] = dict.fromkeys(new)
            self._engine.ledger.read_all(looked_at)
            self._begun = {path for path, row in looked_at.items() if row is None}
            given = {path: row for path, row in looked_at.items() if row is not None and _is_given(row)}
            self._engine.ledger.read_all(self._rows)
            if given:
                self._rows = dict(sorted((self._rows | given).items(), key=lambda item: int(item[0][-1])))
            return {path: row for path, row in self._rows.items() if row is not None}

    def used(self) -> dict[Path, float]:
        """The share of its budget that each has used (`used_share`); computed anew only where the row has changed."""
        rows = self.rows()
        with self._lock:
            for path, row in rows.items():
                known = self._used.get(path)
                if known is None or known[0] is not row:
                    self._used[path] = row, used_share(row)
            return {path: self._used[path][1] for path in rows}


def _is_given(row: LaunchRecord) -> bool:
    return isinstance(row.mechanism, Concurrent)


def used_share(row: LaunchRecord) -> float:
    """The share of its budget that a delegated session has used, by its row; 0 for a partition."""
    if not isinstance(row.mechanism, Concurrent) or not isinstance(row.state, SessionState) or row.by is not None:
        return 0.0
    composition = row.mechanism
    lost = composition.rule.loss(row.state.account)
    gauge = gauge_of_rule(composition.rule, lost, composition.relation)
    ceiling = gauge.budget.ceiling
    return min(1.0, gauge(lost) / ceiling) if ceiling else 0.0
