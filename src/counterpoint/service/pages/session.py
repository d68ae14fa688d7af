"""The page of a session: what is left, the loss and the lanes on one axis, the answers, and the certificate.

The page of a whole data set is this page, with a lane for each grant. A session of thousands of launches shows its
newest events and both ends of its certificate. Works that the certificate cites are listed in full, from `works.txt`.

>>> from counterpoint.privacy.certificates import Certificate
>>> [work.name for work in cited(Certificate("it holds", "Haney et al. 2023, Thm 1.19", ()))]
['Haney et al. 2023']
"""

import dataclasses
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from litestar import Request, Response, get
from msgspec.structs import replace

from counterpoint.display.markup import as_details
from counterpoint.display.timeline import MOST_ASKS, Timeline, count
from counterpoint.display.timeline_svg import TimelinePicture
from counterpoint.errors import BudgetExceeded, CounterpointError, NotAllowed
from counterpoint.ledger.state import Faulty, LaunchRecord, Path, Sealed
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.privacy.certificates import Certificate
from counterpoint.service.api.inputs import InPath, TheRegistry
from counterpoint.service.identity import Principal, Role, SignedIn
from counterpoint.service.pages.access import (
    WORKERS,
    By,
    grants_around,
    source_words,
    visible_session,
    visible_timeline,
)
from counterpoint.service.pages.answers import own_answers
from counterpoint.service.pages.render import Refreshing, drawn, page, refreshing
from counterpoint.service.pages.widgets import EventWindow, Meter, meter_with, reserves
from counterpoint.service.pages.words import at_most, figure, moment, worth
from counterpoint.service.registry import Registry
from counterpoint.session.handle import Quote
from counterpoint.session.session import Session
from counterpoint.session.timeline import gauge_of
from counterpoint.wire.problems import SessionId, problem

MOST_RUNNING = 100
"""Among how many of its newest launches a page looks for those that can be asked."""
_PATH = re.compile(r"^\((?:.*, )?(\d+),?\): ")
MOST_RESERVES = 8
"""How many reserves the bar lists one by one."""
MOST_PREMISES = 25
"""How many launches a page shows at either end of a certificate."""


@dataclass(frozen=True, slots=True)
class SessionPlace:
    """A session as a principal meets it: its id, and why nothing can be launched in it, if so."""

    id: SessionId
    session: Session
    state: str
    closed: str | None

    @property
    def ended(self) -> bool:
        """Whether the grant was revoked or has expired: then nothing is left of it."""
        return self.state in ("revoked", "expired")

    @property
    def href(self) -> str:
        """Its page."""
        return f"/sessions/{self.id}"


def place_of(registry: Registry, who: Principal, text: str) -> SessionPlace:
    """The session of this id, and whether this principal may launch and ask in it now."""
    session = visible_session(registry, who, text)
    state, closed = _standing(session, who, time.time())
    return SessionPlace(SessionId.read(text), session, state, closed)


def _standing(session: Session, who: Principal, now: float) -> tuple[str, str | None]:
    """The state of a session, and why this principal can launch nothing in it, by the grants that it lies in."""
    grants = grants_around(session)
    if any(grant.revoked for grant in grants):
        return "revoked", "This grant was revoked: nothing more is launched or asked in it, and its charge stays."
    if any(grant.until is not None and now >= grant.until for grant in grants):
        return "expired", "This grant has expired: nothing more is launched or asked in it."
    if who.role is Role.AUDITOR:
        return "running", "An auditor reads, and launches nothing."
    if grants and grants[-1].to != who.name:
        return "running", f"Only {grants[-1].to}, to whom it was granted, launches and asks here."
    return "running", None


@dataclass(frozen=True, slots=True)
class PageRefusal:
    """Why nothing was done, and the largest loss that would fit, if that is known."""

    title: str
    detail: str
    fits: str | None = None


def refusal(error: CounterpointError) -> tuple[PageRefusal, int]:
    """The words of a refusal on a page, and its status."""
    said = problem(error)
    fits = repr(error.would_fit) if isinstance(error, BudgetExceeded) and error.would_fit is not None else None
    return PageRefusal(said["title"], said["detail"], fits), said["status"]


@get("/sessions/{session:str}", sync_to_thread=True, include_in_schema=False)
def show(request: Request[Any, Any, Any], registry: TheRegistry, by: By, session: InPath) -> Response[Any]:
    """The page of a session; `?by=order` draws it by order, `&first=1&events=200` some of its events."""
    return session_page(request, registry, by, session, live=refreshing(request))


def session_page(
    request: Request[Any, Any, Any],
    registry: Registry,
    by: SignedIn,
    text: str,
    *,
    status: int = 200,
    live: Refreshing | None = None,
    form: Mapping[str, str] = {},
    quote: Quote | None = None,
    refused: PageRefusal | None = None,
) -> Response[Any]:
    """The page, with the result of a form that was sent from it."""
    place = place_of(registry, by.who, text)
    session = place.session
    timeline = visible_timeline(session, by.who, by="order" if request.query_params.get("by") == "order" else "time")
    window = EventWindow.read(place.href, request.query_params, len(timeline.events))
    drawn_timeline = dataclasses.replace(window.seen(timeline), ended=place.ended)
    kept, certificate = reserves(session, timeline), _both_ends(session)
    works_here = by.who.role in WORKERS
    return page(
        "session",
        by,
        here="/",
        status=status,
        live=live,
        place=place,
        meta=_meta(place, by.who),
        timeline=timeline,
        window=window,
        strip=window.drawn_strip(timeline) if window.is_offered(timeline) else None,
        traceable=drawn_timeline.asks <= MOST_ASKS and len(drawn_timeline.lanes) > 1,
        drawing=drawn(TimelinePicture(drawn_timeline, trace=True).figure()),
        said=_said(timeline),
        meter=(meter := dataclasses.replace(meter_with(timeline, kept), ended=place.ended)),
        lines=[line for line in _lines(timeline, kept, meter) if not (place.ended and line[0] == "free")],
        room=None if place.ended else _room(session),
        tree=drawn(as_details(_by_lanes(certificate))),
        references=cited(certificate),
        address=str(request.base_url).rstrip("/"),
        answers=own_answers(session, by.who) if works_here else [],
        running=_running(session) if place.closed is None else [],
        most_running=MOST_RUNNING,
        form=form,
        quote=quote,
        worth=worth,
        quoted=None if quote is None else gauge_of(session)(quote.cost),
        refused=refused,
    )


def _running(session: Session) -> list[tuple[str, str]]:
    """The handles among the newest launches of a session that have not halted, by what a form calls them."""
    launched = session._engine.node(session._path)[1].launched
    newest = range(max(0, launched - MOST_RUNNING), launched)
    rows: dict[Path, LaunchRecord | None] = {(*session._path, number): None for number in newest}
    session._engine.ledger.read_all(rows)
    running = [(path, row.mechanism) for path, row in rows.items() if row is not None and _answers(row)]
    return [(str(path[-1]), f"{int(path[-1]) + 1} {mechanism!r}") for path, mechanism in running]


def _answers(row: LaunchRecord) -> bool:
    """Whether a launch is a mechanism that has not halted."""
    return not isinstance(row.mechanism, Concurrent) and not isinstance(row.state, Sealed | Faulty | None)


def _both_ends(session: Session) -> Certificate:
    """The certificate of a session; of one with many launches, the first and the last of them."""
    first, following = session.page_of_certificate(0, MOST_PREMISES)
    if following is None:
        return first
    launched = session._engine.node(session._path)[1].launched
    start = max(following, launched - MOST_PREMISES)
    last, _ = session.page_of_certificate(start, MOST_PREMISES)
    between = Certificate(
        f"... and {count(start - following, 'launch', 'launches')} between these",
        "listed by GET /v1/sessions/{session}/certificate",
    )
    return Certificate(first.statement, first.theorem, (*first.premises, between, *last.premises))


def _by_lanes(certificate: Certificate) -> Certificate:
    """The same; what was launched is called by its lane, as in the drawing, instead of by its path on record."""
    premises = tuple(replace(one, statement=_lane_of(one.statement)) for one in certificate.premises)
    return Certificate(certificate.statement, certificate.theorem, premises)


def _lane_of(statement: str) -> str:
    """The statement about a launch, which begins with its path.

    >>> _lane_of("(0, 4): PureDP(0.1) for neighbours"), _lane_of("PureDP(1) for the launches so far")
    ('lane 5: PureDP(0.1) for neighbours', 'PureDP(1) for the launches so far')
    """
    return _PATH.sub(lambda found: f"lane {int(found[1]) + 1}: ", statement)


def _meta(place: SessionPlace, who: Principal) -> list[str]:
    grants, words = grants_around(place.session), [source_words(place.session._source, who)]
    if not grants:
        return words
    grant = grants[-1]
    words.append(f"granted to {grant.to}")
    words.append("no end" if grant.until is None else f"until {moment(grant.until)} UTC")
    words.append("every mechanism" if grant.mechanisms is None else f"only {', '.join(grant.mechanisms)}")
    return words


def _said(timeline: Timeline) -> str:
    launches = sum(event.kind in ("launch", "question", "reserve") for event in timeline.events)
    refused = sum(event.kind == "refused" for event in timeline.events)
    return ", ".join(
        [
            count(launches, "launch", "launches"),
            count(timeline.asks, "ask"),
            *([f"{refused} refused"] if refused else []),
        ]
    )


def _lines(timeline: Timeline, kept: list[tuple[str, float]], meter: Meter) -> list[tuple[str, str, str]]:
    """The bar in figures: kind, name, amount; of many reserves the largest, and the sum of the others."""
    largest = sorted(kept, key=lambda reserve: -reserve[1])[:MOST_RESERVES]
    shown = [reserve for reserve in kept if reserve in largest]
    names = {lane.number: lane.name for lane in timeline.lanes}
    lines = [("reserve", f"reserved, {names.get(number, number)}", figure(amount)) for number, amount in shown]
    if len(kept) > len(shown):
        rest = sum(amount for _, amount in kept) - sum(amount for _, amount in shown)
        lines.append(("reserve", f"reserved, {len(kept) - len(shown):,} others", figure(rest)))
    left = [] if meter.ceiling is None else [("free", "left", figure(meter.left))]
    return [("spent", "spent", figure(meter.spent)), *lines, *left]


def _room(session: Session) -> str | None:
    """The largest further launch, in words; None for an odometer."""
    try:
        left = session.remaining
    except NotAllowed:
        return None
    delta = f", with δ up to {at_most(left.delta)}" if left.delta else ""
    return f"a launch of up to ε {at_most(left.epsilon)} fits{delta}"


class CitedWork(NamedTuple):
    """A work: how it is cited, and its authors, title and place."""

    name: str
    full: str


@cache
def works() -> tuple[CitedWork, ...]:
    """All that may be cited."""
    lines = files("counterpoint.service.pages").joinpath("works.txt").read_text(encoding="utf-8").splitlines()
    return tuple(CitedWork(*line.split("\t")) for line in lines)


def cited(certificate: Certificate) -> list[CitedWork]:
    """The works that a derivation cites."""
    text = "\n".join(_theorems(certificate))
    return [work for work in works() if work.name in text]


def _theorems(certificate: Certificate) -> Iterator[str]:
    yield certificate.theorem
    for premise in certificate.premises:
        yield from _theorems(premise)
