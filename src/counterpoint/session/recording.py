"""How a session comes by its record: a ledger in memory, or one that lasts and must be about the same data.

>>> type(ledger_of(None, "session")).__name__
'MemoryLedger'
"""

from collections.abc import Iterator
from contextlib import contextmanager

from counterpoint.composition.rules.filters import Filter
from counterpoint.composition.rules.rule import Rule
from counterpoint.errors import RequestConflict
from counterpoint.ledger.ledger import Ledger
from counterpoint.ledger.memory import MemoryLedger
from counterpoint.ledger.opening import durable
from counterpoint.ledger.places import Place
from counterpoint.mechanisms.composed.concurrent import Concurrent
from counterpoint.privacy.certificates import Certificate
from counterpoint.session.running.engine import Engine
from counterpoint.sources.source import Source


def bind(engine: Engine, source: Source, second_budget: bool = False) -> None:
    """Say to the ledger which data it is about; the log of a stream or a live table is its to keep."""
    engine.ledger.bind(source.fingerprint(), source.log, rows=source.rows(), second_budget=second_budget)


def open_root(engine: Engine, composition: Concurrent, sequential: bool) -> None:
    """Make the whole session, or find it on record with the same rule, relation and order."""
    try:
        return engine.open_root(composition, sequential)
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
