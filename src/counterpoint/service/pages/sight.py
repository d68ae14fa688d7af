"""Who sees what. Every page reads sessions, scores and histories through these functions.

| | custodian | analyst | auditor | producer |
|---|---|---|---|---|
| the budget of a data set | yes | no | yes | no |
| a session, its certificate, its history | every one | their own | every one | no |
| what was asked in a session that was granted to another | yes | a band, no more | yes | no |
| where a mechanism halted | yes | in their own | no: it may depend on answers | no |
| answers and their receipts | their own | their own | no | no |
| the public record, to download | yes | no | yes | no |
| how many items a stream has | yes | where they have a grant | yes | yes |
| how many rows a table has | no | no | no | no |
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

from counterpoint.ledger.grants import Grant
from counterpoint.ledger.state import Fact, Path, granted
from counterpoint.pictures.score import Lane, Score
from counterpoint.service.house import Given, House, SessionId, unknown
from counterpoint.service.identity import Principal, Role
from counterpoint.session.session import Session
from counterpoint.session.showing.scoring import score_of
from counterpoint.sources.source import Source
from counterpoint.sources.streams.stream import Stream

OVERSEERS = (Role.CUSTODIAN, Role.AUDITOR)
"""They see every data set and every session."""
WORKERS = (Role.CUSTODIAN, Role.ANALYST)
"""They launch and ask."""


def seen_session(house: House, who: Principal, text: str) -> Session:
    """The session of this id; one that is another's is refused as one that does not exist."""
    if who.role is Role.AUDITOR:
        id = SessionId.read(text)
        found = house.data_set(id.data_set).session().at(id.path)
    else:
        found = house.reached(who, text)
    if not isinstance(found, Session):
        raise unknown(text)
    return found


def seen_grants(house: House, who: Principal, name: str) -> list[Given]:
    """The grants of a data set: all of them, or an analyst's own."""
    return [given for given in house.granted(name) if who.role in OVERSEERS or given.grant.to == who.name]


def grants_around(session: Session) -> list[Grant]:
    """The grants that a session lies in, the innermost last."""
    rows = map(session._engine.ledger.read, session._engine.grants_on(session._path))
    grants = (None if row is None else granted(row) for row in rows)
    return [grant for grant in grants if grant is not None]


def shown_facts(session: Session, who: Principal) -> Callable[[Fact], bool]:
    """Whether a principal sees a line of this session's history: what another was granted in it stays closed."""
    if who.role in OVERSEERS:
        return lambda fact: True
    start, read = len(session._path), session._engine.ledger.read

    @cache
    def is_anothers(path: Path) -> bool:
        if len(path) <= start:
            return False
        row = read(path)
        grant = None if row is None else granted(row)
        return (grant is not None and grant.to != who.name) or is_anothers(path[:-1])

    return lambda fact: not is_anothers(fact.path)


def seen_history(session: Session, who: Principal) -> list[Fact]:
    """What was done in a session, as far as a principal sees it."""
    return list(filter(shown_facts(session, who), session.history))


def seen_score(session: Session, who: Principal, by: str = "order") -> Score:
    """A session as a score, as far as a principal sees it."""
    score = score_of(session, by, shown_facts(session, who))
    return _without_halts(score) if who.role is Role.AUDITOR else score


def _without_halts(score: Score) -> Score:
    """Where a mechanism halted may depend on its answers, as a sparse vector's does."""
    return replace(score, lanes=tuple(map(_running, score.lanes)))


def _running(lane: Lane) -> Lane:
    return replace(lane, halted=None, detail=lane.detail.removesuffix(" · halted"))


def source_words(source: Source, who: Principal) -> str:
    """What the data are and what is protected, in a line: public facts, never how many rows there are.

    A producer reads nothing of the declaration.
    """
    described = () if who.role is Role.PRODUCER else source.describe().splitlines()
    lines = (line for line in described if line.startswith(("unit: ", "rows per unit: ")))
    counted = (f"{source.log.length():,} items",) if isinstance(source, Stream) else ()
    return " · ".join((type(source).__name__, *lines, *counted))
