"""The HTTP application: who calls, what they may do, and how errors look. The routes are in `routes/`.

Every handler runs in a thread, as the library is synchronous. Who calls is settled before a handler runs; a body is
decoded strictly, so that a field that no route knows is an error and nothing is charged.
"""

import asyncio
import threading
from pathlib import Path
from typing import Any

from anyio import to_thread
from litestar import Litestar, Request, Response
from litestar.connection import ASGIConnection
from litestar.datastructures import State
from litestar.di import Provide
from litestar.exceptions import HTTPException, NotAuthorizedException
from litestar.middleware import AbstractAuthenticationMiddleware, AuthenticationResult, DefineMiddleware
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme

import counterpoint
from counterpoint.errors import CounterpointError
from counterpoint.service.describing import Describing
from counterpoint.service.edge import PROBLEM, StrictRequest, harden
from counterpoint.service.fairness import FairThreads, TooBusy
from counterpoint.service.house import House
from counterpoint.service.identity import Identity, Principal
from counterpoint.service.limiting import Limiter, Limiting
from counterpoint.service.limits import Limits
from counterpoint.service.operating.metering import Metering, RequestMeter, metrics, note_error
from counterpoint.service.pages import routes as pages
from counterpoint.service.problems import problem
from counterpoint.service.retrying import Retrying, note_lost
from counterpoint.service.routes import data_sets, events, handles, health, people, readings, sessions
from counterpoint.service.routes.bodies import request_id
from counterpoint.service.routes.parameters import Caller, Key, TheHouse
from counterpoint.service.strangers import Strangers, address_of

DEFAULT = Limits()
LARGEST_BODY = 2**20
"""How many bytes a request may have."""
OPEN = ("/health", "/ready", "/schema")
"""Where anyone may look."""
_API = (data_sets.ROUTES, sessions.ROUTES, readings.ROUTES, events.ROUTES, handles.ROUTES, people.ROUTES)


class Authentication(AbstractAuthenticationMiddleware):
    """Reads the key of a request; without one that stands, nothing is served but health and the schema."""

    async def authenticate_request(self, connection: ASGIConnection[Any, Any, Any, Any]) -> AuthenticationResult:
        """The principal whose key it is."""
        given = next((value for name, value in connection.scope["headers"] if name == b"authorization"), b"")
        scheme, _, presented = given.decode("latin-1").partition(" ")
        house: House = connection.app.state.house
        who = await _owner(house.identity, presented.strip()) if scheme.lower() == "bearer" else None
        if who is None:
            if given:
                connection.app.state.strangers.note_failure(address_of(connection.scope), "header")
            raise NotAuthorizedException("send a key that stands, as in: Authorization: Bearer cp_...")
        return AuthenticationResult(user=who, auth=None)


async def _owner(identity: Identity, presented: str) -> Principal | None:
    """Whose key this is. The database is asked in a thread: it may wait for a commit, and others go on meanwhile."""
    return identity.known(presented) or await to_thread.run_sync(identity.principal, presented)


def application(house: House, limits: Limits = DEFAULT, counts: Path | None = None) -> Litestar:
    """The service over these data sets; its metrics are those of all workers that share the folder `counts`."""
    meter = RequestMeter(counts)
    house.limit_launches(limits.launches)
    return Litestar(
        route_handlers=[*_API, *health.ROUTES, metrics, pages.ROUTES],
        middleware=[
            Metering,
            Retrying,
            DefineMiddleware(Authentication, exclude=[f"^{path}" for path in OPEN]),
            Limiting(),
        ],
        dependencies={
            "house": Provide(_house, sync_to_thread=False),
            "who": Provide(_who, sync_to_thread=False),
            "request_id": Provide(_request_id, sync_to_thread=False),
        },
        exception_handlers={CounterpointError: _refused, HTTPException: _http, TooBusy: _busy, Exception: _fault},
        after_exception=[note_lost, note_error],
        before_send=[harden],
        request_class=StrictRequest,
        logging_config=None,
        request_max_body_size=LARGEST_BODY,
        openapi_config=Describing(
            title="Counterpoint",
            version=counterpoint.__version__,
            components=Components(security_schemes={"key": SecurityScheme(type="http", scheme="bearer")}),
            security=[{"key": []}],
            # the framework's pages for a browser would run scripts of other hosts beside the dashboard's cookie
            render_plugins=[JsonRenderPlugin()],
        ),
        state=State(
            {
                "house": house,
                "limiter": Limiter(limits),
                "strangers": Strangers(limits),
                "stopping": threading.Event(),
                "meter": meter,
            }
        ),
        on_startup=[_make_threads, events.end_on_signals],
        on_shutdown=[meter.keep],
    )


async def _make_threads() -> None:
    asyncio.get_running_loop().set_default_executor(FairThreads())


# Each of these three asks for the one before it: then Litestar makes them one after the other, and else by tasks of
# their own, at every request.


def _house(request: Request[Any, Any, Any]) -> House:
    found: House = request.app.state.house
    return found


def _who(request: Request[Any, Any, Any], house: TheHouse) -> Principal:
    found: Principal = request.user
    return found


def _request_id(request: Request[Any, Any, Any], who: Caller, idempotency_key: Key = None) -> str:
    """The id of a request, kept for its errors: a request that was paid for and not answered is repeated by it."""
    own = request_id(idempotency_key)
    request.scope["state"]["id"] = own
    return own


def _refused(request: Request[Any, Any, Any], error: CounterpointError) -> Response[Any]:
    said = problem(error)
    named = _repeatable(request) if said["status"] >= 500 else {}
    return Response({**said, **named}, status_code=said["status"], media_type=PROBLEM)


def _http(_request: Request[Any, Any, Any], error: HTTPException) -> Response[Any]:
    said = {"type": "about:blank", "title": type(error).__name__, "status": error.status_code, "detail": error.detail}
    if isinstance(error.extra, list):
        said["errors"] = [one.get("message") for one in error.extra if isinstance(one, dict)]
    return Response(said, status_code=error.status_code, media_type=PROBLEM)


def _busy(_request: Request[Any, Any, Any], _error: TooBusy) -> Response[Any]:
    detail = "too many requests of callers without a key are waiting; send this again later"
    said = {"type": "about:blank", "title": "TooManyRequests", "status": 503, "detail": detail}
    return Response(said, status_code=503, media_type=PROBLEM, headers={"Retry-After": "1"})


def _fault(request: Request[Any, Any, Any], _error: Exception) -> Response[Any]:
    """A fault of ours: what went wrong may quote anything, so nothing of it is shown."""
    said = {"type": "about:blank", "title": "InternalError", "status": 500, "detail": "the service failed; see its log"}
    return Response({**said, **_repeatable(request)}, status_code=500, media_type=PROBLEM)


def _repeatable(request: Request[Any, Any, Any]) -> dict[str, str]:
    """The id by which a request that failed is repeated: what it has paid for is not charged again."""
    return {"id": request.scope["state"]["id"]} if "id" in request.scope["state"] else {}
