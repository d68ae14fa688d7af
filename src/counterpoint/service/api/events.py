"""Server-sent events: the loss of a session and the number of items that arrived, as they change.

The ledger's head is read each second. A reader gets an event only if something changed that this reader may see. A
stream of events ends when its key does, after `LONGEST` seconds, or when the service stops; a browser's `EventSource`
and our client connect again.
"""

import asyncio
import signal
import threading
import time
from collections.abc import AsyncIterator
from types import FrameType
from typing import Annotated, Any, TypeAlias

import msgspec
from litestar import Litestar, Request, Router, get
from litestar.concurrency import sync_to_thread
from litestar.params import QueryParameter
from litestar.response import ServerSentEvent, ServerSentEventMessage

from counterpoint.errors import CounterpointError
from counterpoint.service.api.inputs import Caller, InPath, TheRegistry
from counterpoint.service.api.sessions import to_read
from counterpoint.service.identity import Principal
from counterpoint.service.limits import STREAMS
from counterpoint.service.registry import Registry
from counterpoint.service.views import session_json
from counterpoint.session.session import Session

EVERY = 1.0
"""How many seconds lie between two looks at the ledger."""
LONGEST = 300
"""After how many seconds a reader connects again."""
QUIET = 15
"""After how many seconds without an event a sign of life is sent."""

Seconds: TypeAlias = Annotated[int, QueryParameter(ge=1, le=LONGEST)]


@get(
    "/{session:str}/events",
    summary="What was lost and what has arrived, as it changes",
    opt={STREAMS: True},
    media_type="text/event-stream",
)
async def events(
    request: Request[Any, Any, Any], registry: TheRegistry, who: Caller, session: InPath, seconds: Seconds = LONGEST
) -> ServerSentEvent:
    """Events `loss`, with what the session has lost and has left, and `items`, with how many have arrived."""
    name, found = await sync_to_thread(to_read, registry, who, session)
    presented = request.headers.get("authorization", "").partition(" ")[2].strip()
    stands = _Standing(registry, who, presented, request.app.state.stopping)
    return ServerSentEvent(_following(_Seen(name, found), stands, time.monotonic() + seconds))


async def _following(seen: "_Seen", stands: "_Standing", until: float) -> AsyncIterator[ServerSentEventMessage]:
    quiet_since = time.monotonic()
    while time.monotonic() < until and await stands.still():
        try:
            news = await sync_to_thread(seen.news)
        except CounterpointError:  # the ledger was lost or closed: the reader connects again
            return
        for kind, what in news.items():
            yield ServerSentEventMessage(event=kind, data=msgspec.json.encode(what).decode())
        now = time.monotonic()
        if not news and now - quiet_since >= QUIET:
            yield ServerSentEventMessage(data=None, comment="nothing new")
        if news or now - quiet_since >= QUIET:
            quiet_since = now
        await asyncio.sleep(EVERY)


class _Standing:
    """Whether a reader may continue to read."""

    def __init__(self, registry: Registry, who: Principal, presented: str, stopping: threading.Event) -> None:
        self._registry, self._who, self._presented, self._stopping = registry, who, presented, stopping

    async def still(self) -> bool:
        """Whether the service is running and the key is still valid."""
        identity = self._registry.identity
        return not self._stopping.is_set() and self._who == (
            identity.known(self._presented) or await sync_to_thread(identity.principal, self._presented)
        )


class _Seen:
    """What a reader has been sent of a session."""

    def __init__(self, data_set: str, session: Session) -> None:
        self._data_set, self._session = data_set, session
        self._at: object = None
        self._sent: dict[str, Any] = {}

    def news(self) -> dict[str, Any]:
        """The changes since the last events, by kind. Nothing is computed while the ledger's head is the same."""
        pin = self._session._source.pin()
        at = (self._session._engine.ledger.head(), pin)
        if at == self._at:
            return {}
        self._at = at
        now: dict[str, Any] = {"loss": session_json(self._data_set, self._session)}
        if isinstance(pin, int):
            now["items"] = {"items": pin}
        changed = {kind: what for kind, what in now.items() if self._sent.get(kind) != what}
        self._sent = now
        return changed


def end_on_signals(app: Litestar) -> None:
    """End all streams when the process is asked to stop: a server waits for its connections before it stops."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        before = signal.getsignal(number)

        def stop(number: int, frame: FrameType | None, before: Any = before) -> None:
            app.state.stopping.set()
            if callable(before):
                before(number, frame)

        if callable(before):
            signal.signal(number, stop)


ROUTES = Router("/v1/sessions", route_handlers=[events])
