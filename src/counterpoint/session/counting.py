"""The launches that a session counts: its own, and those in what it delegated.

A reading at a distance composes launches one by one (theory, Groups). A delegated session is a filter, whose refusals
only restrict the analyst, so that its launches count as if they had been made in the session itself. A partition counts
as one launch with the claim that was charged for it: at distance d, d units reach up to d k parts, each perhaps at
distance 1, so k launches of the group loss of a part would be too few. So does a session on a sample: its claim is
amplified, its launches are not.

>>> from counterpoint import Laplace, PureDP, Session, Stream
>>> session = Session(Stream(bound=1), within=PureDP(1))
>>> _ = session.delegate(PureDP(0.5)).launch(Laplace(0.2))
>>> [claim.loss for claim in launched_claims(session._engine, ())]
[PureDP(0.2)]
"""

from collections.abc import Iterator

from counterpoint.ledger.state import Path
from counterpoint.ledger.wanted import Launching, read_wanted, row_at
from counterpoint.mechanisms.composed.concurrent import Concurrent
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.privacy.claims import Claim
from counterpoint.session.running.engine import Engine


def launched_claims(engine: Engine, path: Path) -> Iterator[Claim]:
    """The claims of all that was launched in the session at a path, in order."""
    _, node = engine.node(path)
    for number in range(node.launched):
        child = (*path, number)
        mechanism, by = launched_at(engine, child)
        if isinstance(mechanism, Concurrent) and by is None and mechanism.sampling_rate is None:
            yield from launched_claims(engine, child)
        else:
            yield mechanism.claim


def launched_at(engine: Engine, path: Path) -> tuple[Mechanism, str | None]:
    """What was launched at a path, and what it cuts the data by; from the open request if it has not started yet."""
    row = engine.ledger.read(path)
    if row is not None:
        return row.mechanism, row.by
    for intent in engine.ledger.opened():
        if intent.path == path:
            wanted = read_wanted(intent.body)
            assert isinstance(wanted, Launching)
            return wanted.mechanism, wanted.by
    row = row_at(engine.ledger.read, path)  # it started between the two looks
    return row.mechanism, row.by
