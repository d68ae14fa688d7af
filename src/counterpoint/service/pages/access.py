"""Signing in and out, and what each role sees: every page reads sessions, timelines and histories through here.

A key is sent once, in the body of a form; from then on the browser has a cookie of its own (`service/identity.py`).

| | custodian | analyst | auditor | producer |
|---|---|---|---|---|
| the budget of a data set | yes | no | yes | no |
| a session, its certificate, its history | every one | their own | every one | no |
| what was asked in a session that was granted to another | yes | a band, no more | yes | no |
| where a mechanism halted | yes | in their own | no: it may depend on answers | no |
| answers and their receipts | their own | their own | no | no |
| the public record, to download | yes | no | yes | no |
| people and the ids of their keys | yes | no | no | no |
| versions of the data: number and time | yes | where they have a grant | yes | no |
| who made a version, its note and its fingerprint | yes | no | yes | no |
| the report on how the rows fit | yes | no | no | no |
| how many items a stream has | yes | where they have a grant | yes | yes |
| how many rows a table has | in the report | no | no | no |
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Any, TypeAlias

from litestar import Request, Response, get, post
from litestar.concurrency import sync_to_thread
from litestar.connection import ASGIConnection
from litestar.di import NamedDependency
from litestar.enums import RequestEncodingType
from litestar.exceptions import NotAuthorizedException, PermissionDeniedException
from litestar.handlers.base import BaseRouteHandler
from litestar.middleware import AbstractAuthenticationMiddleware, ASGIMiddleware, AuthenticationResult
from litestar.params import Body
from litestar.types import ASGIApp, Receive, Scope, Send

from counterpoint.display.timeline import Lane, Timeline
from counterpoint.ledger.state import Grant, HistoryEntry, Path, granted
from counterpoint.queries.source import Source
from counterpoint.service.api.inputs import TheRegistry
from counterpoint.service.edge import Strangers, address_of
from counterpoint.service.identity import COOKIE, Browsers, BrowserToken, Principal, Role, SignedIn
from counterpoint.service.limits import send_problem
from counterpoint.service.pages.render import elsewhere, page, set_cookie
from counterpoint.service.registry import GrantedSession, Registry
from counterpoint.session.session import Session
from counterpoint.session.timeline import TimelineReading
from counterpoint.sources.streams.stream import Stream
from counterpoint.wire.problems import SessionId, unknown

Form: TypeAlias = Annotated[dict[str, Any], Body(media_type=RequestEncodingType.URL_ENCODED)]
By: TypeAlias = NamedDependency[SignedIn]

SIGNED_OUT = {"signed_out": True}
"""The option of a page that is shown to everyone."""
_LONGEST_KEY = 200
LARGEST_SIGN_IN = 4096
"""How many bytes the form to sign in may have."""


class BrowserAuthentication(AbstractAuthenticationMiddleware):
    """Reads the cookie; without a valid session, only the page to sign in is shown."""

    async def authenticate_request(self, connection: ASGIConnection[Any, Any, Any, Any]) -> AuthenticationResult:
        """Who is signed in."""
        cookie = connection.cookies.get(COOKIE)
        # The database is asked in a thread: it may wait for a commit, and other requests go on meanwhile.
        found = await sync_to_thread(lambda: Browsers(connection.app.state.registry.identity).signed_in(cookie))
        if found is None:
            raise NotAuthorizedException("sign in with a valid key")
        return AuthenticationResult(user=found.who, auth=found)


def signed_in(request: Request[Any, Any, Any]) -> SignedIn:
    """Who is signed in, for a page."""
    found: SignedIn = request.auth
    return found


async def from_our_form(connection: ASGIConnection[Any, Any, Any, Any], _handler: BaseRouteHandler) -> None:
    """A guard: a posted form must be one of these pages', made for this browser."""
    assert isinstance(connection, Request)  # pages have no web sockets
    if connection.method in ("GET", "HEAD"):
        return
    token = BrowserToken.read(connection.cookies.get(COOKIE))
    given = (await connection.form()).get("form_token", "")
    if token is None or not token.signs(str(given)):
        raise PermissionDeniedException("this form belongs to another sign-in or to another site: load the page again")


@get("/sign-in", sync_to_thread=True, include_in_schema=False, opt=SIGNED_OUT)
def ask_for_key(request: Request[Any, Any, Any]) -> Response[Any]:
    """The form to sign in, which already has a token of its own: no other site can sign a browser in."""
    token = BrowserToken.fresh("none")
    response = page("sign_in", None, token=token.form(), wrong=False)
    set_cookie(response, token, secure=request.url.scheme == "https")
    return response


class SigningIn(ASGIMiddleware):
    """Holds each address to its number of attempts to sign in, before anything of the form is read."""

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Refuse an attempt beyond the limit with 429."""
        strangers: Strangers = scope["litestar_app"].state.strangers
        if scope.get("method") == "POST" and (wait := strangers.wait(address_of(scope))):
            detail = "too many attempts to sign in from this address; send this again later"
            await send_problem(send, 429, detail, wait)
        else:
            await next_app(scope, receive, send)


@post(
    "/sign-in",
    include_in_schema=False,
    opt=SIGNED_OUT,
    middleware=[SigningIn()],
    request_max_body_size=LARGEST_SIGN_IN,
)
async def sign_in(request: Request[Any, Any, Any], registry: TheRegistry, data: Form) -> Response[Any]:
    """A cookie for a key."""
    key = str(data.get("key", ""))[:_LONGEST_KEY].strip()
    token = await sync_to_thread(lambda: Browsers(registry.identity).sign_in(key))
    if token is None:
        request.app.state.strangers.note_failure(address_of(request.scope), "form")
        again = BrowserToken.fresh("none")
        response: Response[Any] = page("sign_in", None, status=401, token=again.form(), wrong=True)
        set_cookie(response, again, secure=request.url.scheme == "https")
        return response
    response = elsewhere("/")
    set_cookie(response, token, secure=request.url.scheme == "https")
    return response


@post("/sign-out", sync_to_thread=True, include_in_schema=False)
def sign_out(request: Request[Any, Any, Any], registry: TheRegistry, by: By) -> Response[Any]:
    """End the browser's session, here and on record."""
    Browsers(registry.identity).sign_out(by.token)
    response = elsewhere("/sign-in")
    set_cookie(response, None, secure=request.url.scheme == "https")
    return response


OVERSEERS = (Role.CUSTODIAN, Role.AUDITOR)
"""They see every data set and every session."""
WORKERS = (Role.CUSTODIAN, Role.ANALYST)
"""They launch and ask."""


def visible_session(registry: Registry, who: Principal, text: str) -> Session:
    """The session of this id; one that is another's is refused as one that does not exist."""
    if who.role is Role.AUDITOR:
        id = SessionId.read(text)
        found = registry.data_set(id.data_set).session().at(id.path)
    else:
        found = registry.reached(who, text)
    if not isinstance(found, Session):
        raise unknown(text)
    return found


def visible_grants(registry: Registry, who: Principal, name: str) -> list[GrantedSession]:
    """The grants of a data set: all of them, or an analyst's own."""
    return [given for given in registry.granted(name) if who.role in OVERSEERS or given.grant.to == who.name]


def grants_around(session: Session) -> list[Grant]:
    """The grants that a session lies in, the innermost last."""
    rows = map(session._engine.ledger.read, session._engine.grants_on(session._path))
    grants = (None if row is None else granted(row) for row in rows)
    return [grant for grant in grants if grant is not None]


def shown_facts(session: Session, who: Principal) -> Callable[[HistoryEntry], bool]:
    """Whether a principal sees a line of this session's history: sessions granted to others stay hidden."""
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


def visible_history(session: Session, who: Principal) -> list[HistoryEntry]:
    """The history of a session, as far as a principal may see it."""
    return list(filter(shown_facts(session, who), session.history))


def visible_timeline(session: Session, who: Principal, by: str = "order") -> Timeline:
    """The timeline of a session, as far as a principal may see it."""
    kept = session._engine.kept.setdefault(_KeptReadings, _KeptReadings())
    timeline = kept.timeline(session, who, by)
    return _without_halts(timeline) if who.role is Role.AUDITOR else timeline


class _KeptReadings:
    """The sessions that were looked at last, each as one kind of reader sees it: of those, only what is new is read."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._kept: OrderedDict[tuple[Path, str], _KeptReading] = OrderedDict()

    def timeline(self, session: Session, who: Principal, by: str) -> Timeline:
        """The timeline for this reader."""
        seen_by = (session._path, "" if who.role in OVERSEERS else who.name)
        with self._guard:
            found = self._kept.get(seen_by)
            if found is None:
                self._kept[seen_by] = found = _KeptReading(TimelineReading(session, shown_facts(session, who)))
            self._kept.move_to_end(seen_by)
        with found.lock:
            timeline = found.reading.timeline(by)
        with self._guard:
            while len(self._kept) > MOST_KEPT or sum(one.reading.events for one in self._kept.values()) > MOST_EVENTS:
                self._kept.popitem(last=False)
        return timeline


@dataclass(frozen=True, slots=True)
class _KeptReading:
    reading: TimelineReading
    lock: threading.Lock = field(default_factory=threading.Lock)


MOST_KEPT, MOST_EVENTS = 16, 400_000
"""How many readings of a ledger are kept, and with how many events in all."""


def _without_halts(timeline: Timeline) -> Timeline:
    """Where a mechanism halted may depend on its answers, as a sparse vector's does."""
    return replace(timeline, lanes=tuple(map(_running, timeline.lanes)))


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
