"""Gauges: what is left of each budget, what is open, how large the ledger and its witness are, and what does not work.

They say what the pages say to custodians and auditors, who alone read them. A budget is measured in shares of itself,
which means the same for every measure; where nothing is refused there is none. A grant is found once, among the
launches that came since the gauges were read last.

>>> from counterpoint.ledger.location import Durable
>>> import tempfile
>>> registry = Registry(Durable(f"{tempfile.mkdtemp()}/ledger.db"))
>>> [line for line in Gauges(registry).lines() if line.startswith("# TYPE") and "serving" in line]
['# TYPE counterpoint_data_set_serving gauge']
>>> registry.close()
"""

import threading
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from counterpoint.errors import CounterpointError
from counterpoint.ledger.state import Path, SessionState, granted
from counterpoint.ledger.store.records import BUDGET
from counterpoint.ledger.witness import WitnessFile
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.service.data_set import DataSet
from counterpoint.service.registry import Registry
from counterpoint.session.session import Session
from counterpoint.wire.problems import SessionId

FAMILIES = {
    "counterpoint_budget_spent": "the share of a budget that is spent; of a grant, once it was made, of its own",
    "counterpoint_budget_left": "the share of a budget that is left",
    "counterpoint_data_set_serving": "1 if a data set is served; 0 if its ledger, witness or data failed",
    "counterpoint_data_set_closed": "1 if the data could not answer and are closed until the custodian has looked",
    "counterpoint_open_requests": "requests that were charged and are not answered yet",
    "counterpoint_ledger_entries": "entries of the chain of a data set",
    "counterpoint_ledger_bytes": "how large the database of the ledger is",
    "counterpoint_witness_bytes": "how large the witness is, where it is a file",
}
"""Each gauge, and what it says."""


class GaugeValue(NamedTuple):
    """A value of a gauge."""

    family: str
    value: float
    labels: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        labels = ",".join(f'{name}="{value}"' for name, value in self.labels)
        return f"{self.family}{f'{{{labels}}}' if labels else ''} {self.value:.15g}"


class Gauges:
    """Reads the gauges of a registry. Threads may share it."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._lock = threading.Lock()
        self._grants: dict[str, list[Path]] = {}
        self._looked_at: dict[str, int] = {}

    def lines(self) -> list[str]:
        """As Prometheus reads them."""
        with self._lock:
            found = list(self._samples())
        lines = []
        for family, says in FAMILIES.items():
            lines += [f"# HELP {family} {says}", f"# TYPE {family} gauge"]
            lines += [str(sample) for sample in found if sample.family == family]
        return lines

    def _samples(self) -> Iterator[GaugeValue]:
        for name in self._registry.set_aside:
            yield GaugeValue("counterpoint_data_set_serving", 0, (("data_set", name),))
        for name in self._registry.names:
            data_set = self._registry.data_set(name)
            try:
                yield from list(self._of(data_set))
            except CounterpointError:  # the log says why
                yield GaugeValue("counterpoint_data_set_serving", 0, (("data_set", name),))
        yield from self._sizes()

    def _of(self, data_set: DataSet) -> Iterator[GaugeValue]:
        session = data_set.session()
        labels = (("data_set", data_set.name),)
        ledger, node = session._engine.ledger, session._engine.node(())[1]
        yield GaugeValue("counterpoint_data_set_serving", not data_set.outage.parts, labels)
        yield GaugeValue("counterpoint_data_set_closed", node.is_closed, labels)
        yield GaugeValue("counterpoint_open_requests", ledger.waiting(), labels)
        yield GaugeValue("counterpoint_ledger_entries", ledger.head(), labels)
        for path in ((), *self._granted(data_set.name, session)):
            yield from _budget(data_set.name, session, path)

    def _granted(self, name: str, session: Session) -> list[Path]:
        """The paths of what was granted; those whose grants were revoked spend nothing more, and are left out."""
        known, launched = self._grants.setdefault(name, []), session._engine.node(())[1].launched
        read = session._engine.ledger.read
        for number in range(self._looked_at.get(name, 0), launched):
            row = read((number,))
            if row is None:  # it was charged and is not finished: looked at again, with all that come behind it
                break
            if granted(row) is not None:
                known.append((number,))
            self._looked_at[name] = number + 1
        return known

    def _sizes(self) -> Iterator[GaugeValue]:
        try:
            yield GaugeValue("counterpoint_ledger_bytes", self._registry.ledger_bytes())
            witness = self._registry.place.witness_file()
            if isinstance(witness, WitnessFile):
                yield GaugeValue("counterpoint_witness_bytes", witness.size())
        except CounterpointError:
            return


def _budget(name: str, session: Session, path: Path) -> Iterator[GaugeValue]:
    """The budget of a data set, or of a grant that stands."""
    row = session._engine.ledger.read(path)
    grant = None if row is None else granted(row)
    if row is None or not isinstance(row.mechanism, Concurrent) or not isinstance(row.state, SessionState):
        return
    used = row.mechanism.rule.used(row.state.account, BUDGET)
    if used is not None and not (grant is not None and grant.revoked):
        spent = Fraction(used, BUDGET)
        labels = (("data_set", name), ("session", str(SessionId(name, path))))
        yield GaugeValue("counterpoint_budget_spent", float(spent), labels)
        yield GaugeValue("counterpoint_budget_left", float(1 - spent), labels)
