"""How a session comes by its record: a ledger in memory, or one that lasts and must be about the same data.

>>> type(ledger_of(None, "session")).__name__
'MemoryLedger'
"""

from collections.abc import Iterator
from contextlib import contextmanager

from counterpoint.ledger.ledger import Ledger, MemoryLedger
from counterpoint.ledger.opening import durable
from counterpoint.ledger.places import Place
from counterpoint.session.engine import Engine
from counterpoint.sources.source import Source
from counterpoint.sources.stream import Stream


def bind(engine: Engine, source: Source) -> None:
    """Say to the ledger which data it is about; the log of a stream is its to keep."""
    engine.ledger.bind(source.fingerprint(), source.log if isinstance(source, Stream) else None)


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
