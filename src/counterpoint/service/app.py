"""The HTTP application: authentication, routes, errors, and its OpenAPI.

Handlers run in threads, since the library is synchronous. The caller is known before a handler runs. Bodies are decoded
strictly: an unknown field is an error, and nothing is charged.

The OpenAPI shows a body, a response and the possible problems of each operation. `examples.json` holds what a running
service received and answered (`python -m tests.service.examples` writes it, and a test sends the requests again).

>>> problems_of("post", "/v1/handles/{handle}/asks", has_body=True)
(400, 401, 403, 404, 409, 410, 413, 422, 429, 503)
>>> problems_of("get", "/v1/sessions", has_query=True)
(400, 401, 403, 429, 503)
>>> problems_of("get", "/health")
()
"""

import asyncio
import threading
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
from anyio import to_thread
from litestar import Litestar, Request, Response
from litestar.connection import ASGIConnection
from litestar.datastructures import State
from litestar.di import Provide
from litestar.exceptions import HTTPException, MethodNotAllowedException, NotAuthorizedException, NotFoundException
from litestar.middleware import AbstractAuthenticationMiddleware, AuthenticationResult, DefineMiddleware
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, OpenAPI, SecurityScheme

import counterpoint
from counterpoint.errors import BudgetExceeded, CounterpointError
from counterpoint.measures import PureDP
from counterpoint.service.api import admin, data_sets, events, handles, sessions
from counterpoint.service.api.inputs import Caller, Key, TheRegistry, request_id
from counterpoint.service.edge import Strangers, StrictRequest, address_of, harden
from counterpoint.service.fair_threads import FairThreads, TooBusy
from counterpoint.service.gauges import Gauges
from counterpoint.service.identity import Identity, Principal
from counterpoint.service.limits import Limiter, Limiting, Limits
from counterpoint.service.metrics import Metering, RequestMeter, metrics, note_error
from counterpoint.service.pages import routes as pages
from counterpoint.service.readiness import Readiness
from counterpoint.service.registry import Registry
from counterpoint.service.retry import Retrying, note_lost
from counterpoint.wire.problems import PROBLEM, problem

DEFAULT = Limits()
LARGEST_BODY = 2**20
"""How many bytes a request may have."""
OPEN = ("/health", "/ready", "/schema")
"""Where anyone may look."""
_API = (
    data_sets.ROUTES,
    sessions.SESSION_ROUTES,
    sessions.READING_ROUTES,
    events.ROUTES,
    handles.ROUTES,
    admin.PRINCIPAL_ROUTES,
)


class Authentication(AbstractAuthenticationMiddleware):
    """Reads the key of a request; without a valid one, only health and the schema are served."""

    async def authenticate_request(self, connection: ASGIConnection[Any, Any, Any, Any]) -> AuthenticationResult:
        """The principal that the key belongs to."""
        given = next((value for name, value in connection.scope["headers"] if name == b"authorization"), b"")
        scheme, _, presented = given.decode("latin-1").partition(" ")
        registry: Registry = connection.app.state.registry
        who = await _owner(registry.identity, presented.strip()) if scheme.lower() == "bearer" else None
        if who is None:
            if given:
                connection.app.state.strangers.note_failure(address_of(connection.scope), "header")
            raise NotAuthorizedException("send a valid key, as in: Authorization: Bearer cp_...")
        return AuthenticationResult(user=who, auth=None)


async def _owner(identity: Identity, presented: str) -> Principal | None:
    """The principal of a key. The database is read in a thread: it may wait for a commit."""
    return identity.known(presented) or await to_thread.run_sync(identity.principal, presented)


def application(registry: Registry, limits: Limits = DEFAULT, counts: Path | None = None) -> Litestar:
    """The service over these data sets; its metrics are those of all workers that share the folder `counts`."""
    meter = RequestMeter(counts)
    registry.limit_launches(limits.launches)
    return Litestar(
        route_handlers=[*_API, *admin.HEALTH_ROUTES, metrics, pages.ROUTES],
        middleware=[
            Metering,
            Retrying,
            DefineMiddleware(Authentication, exclude=[f"^{path}" for path in OPEN]),
            Limiting(),
        ],
        dependencies={
            "registry": Provide(_registry, sync_to_thread=False),
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
                "registry": registry,
                "limiter": Limiter(limits),
                "strangers": Strangers(limits),
                "stopping": threading.Event(),
                "meter": meter,
                "gauges": Gauges(registry),
                "readiness": Readiness(registry.must_answer),
            }
        ),
        on_startup=[_make_threads, events.end_on_signals],
        on_shutdown=[meter.keep],
    )


async def _make_threads() -> None:
    asyncio.get_running_loop().set_default_executor(FairThreads())


# Each of these three asks for the one before it: then Litestar makes them one after the other, and else by tasks of
# their own, at every request.
def _registry(request: Request[Any, Any, Any]) -> Registry:
    found: Registry = request.app.state.registry
    return found


def _who(request: Request[Any, Any, Any], registry: TheRegistry) -> Principal:
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


def _http(request: Request[Any, Any, Any], error: HTTPException) -> Response[Any]:
    if isinstance(error, NotFoundException | MethodNotAllowedException) and pages.wants_page(request):
        return pages.not_found(request, error.status_code)
    said = {"type": "about:blank", "title": type(error).__name__, "status": error.status_code, "detail": error.detail}
    if isinstance(error.extra, list):
        said["errors"] = [one.get("message") for one in error.extra if isinstance(one, dict)]
    return Response(said, status_code=error.status_code, media_type=PROBLEM)


def _busy(_request: Request[Any, Any, Any], _error: TooBusy) -> Response[Any]:
    detail = "too many requests of callers without a key are waiting; send this again later"
    said = {"type": "about:blank", "title": "TooManyRequests", "status": 503, "detail": detail}
    return Response(said, status_code=503, media_type=PROBLEM, headers={"Retry-After": "1"})


def _fault(request: Request[Any, Any, Any], _error: Exception) -> Response[Any]:
    """A fault of ours: its text may quote anything, so the response shows none of it."""
    said = {"type": "about:blank", "title": "InternalError", "status": 500, "detail": "the service failed; see its log"}
    return Response({**said, **_repeatable(request)}, status_code=500, media_type=PROBLEM)


def _repeatable(request: Request[Any, Any, Any]) -> dict[str, str]:
    """The id by which a failed request is repeated: it is not charged again."""
    return {"id": request.scope["state"]["id"]} if "id" in request.scope["state"] else {}


REASONS = {
    400: "The request does not have the form described here; nothing was done",
    401: "The key is missing or not valid",
    403: "The role of the key, or the grant of the session, does not allow it",
    404: "Not found, or it belongs to another principal",
    409: "Refused for now: the budget does not allow it, or the id was used for another request",
    410: "The mechanism has given its last answer",
    413: "The body is too large",
    422: "Not possible: a parameter or the request is wrong, or no theorem covers it; nothing was charged",
    429: "Too many requests: wait for as long as Retry-After says",
    503: "The ledger is unavailable or the answer takes too long: repeat it with the same Idempotency-Key",
}
"""What each status of a problem means."""
_SCHEMA = {
    "type": "object",
    "description": "What was asked, the limit and what would work. `type` names the library's error.",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
    "required": ["type", "title", "status", "detail"],
    "additionalProperties": True,
    "examples": [problem(BudgetExceeded("PureDP(2) does not fit: PureDP(1) is left", requested=PureDP(2)))],
}


def problems_of(method: str, path: str, *, has_body: bool = False, has_query: bool = False) -> tuple[int, ...]:
    """The statuses with which an operation can be refused."""
    if path in ("/health", "/ready"):
        return ()
    found = {401, 403, 429, 503}
    if has_query:
        found.add(400)
    if "{" in path:
        found |= {400, 404, 409, 422}
    if has_body:
        found |= {400, 409, 413, 422}
    if path == "/v1/backups":
        found |= {400, 409, 422}
    if path.endswith("/asks"):
        found.add(410)
    return tuple(sorted(found))


class Described(OpenAPI):
    """The OpenAPI, with examples and problems."""

    def to_schema(self) -> dict[str, Any]:
        """As it is sent."""
        return described(super().to_schema())


class Describing(OpenAPIConfig):
    """How the OpenAPI is made: as the framework does, and then described."""

    def to_openapi_schema(self) -> OpenAPI:
        """The OpenAPI before the routes are in it."""
        made = super().to_openapi_schema()
        return Described(**{name: getattr(made, name) for name in made.__dataclass_fields__})


def described(schema: dict[str, Any]) -> dict[str, Any]:
    """The same OpenAPI with examples and problems; the framework's own error bodies, which are never sent, go."""
    _let_any_fit(schema)
    schema["components"].setdefault("schemas", {})["Problem"] = _SCHEMA
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            _add_problems(method, path, operation)
            _add_example(operation, examples().get(f"{method.upper()} {path}", {}))
    return schema


def _let_any_fit(part: Any) -> None:
    """A whole number is an integer and a number: of the types that a field may have, one must fit, not exactly one."""
    if isinstance(part, dict):
        if "oneOf" in part:
            part["anyOf"] = part.pop("oneOf")
        part = list(part.values())
    for inner in part if isinstance(part, list) else ():
        _let_any_fit(inner)


def _add_problems(method: str, path: str, operation: dict[str, Any]) -> None:
    responses = operation["responses"]
    responses.pop("400", None)
    content = {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    has_query = any(one["in"] == "query" for one in operation.get("parameters", ()))
    for status in problems_of(method, path, has_body="requestBody" in operation, has_query=has_query):
        responses[str(status)] = {"description": REASONS[status], "content": content}


def _add_example(operation: dict[str, Any], example: dict[str, Any]) -> None:
    if "body" in example:
        operation["requestBody"]["content"]["application/json"]["example"] = example["body"]
    if "response" in example:
        (answered,) = (one for status, one in operation["responses"].items() if status < "300")
        for content in answered["content"].values():
            content["example"] = example["response"]


@cache
def examples() -> dict[str, dict[str, Any]]:
    """A body and a response for each operation, by its method and path."""
    found: dict[str, dict[str, Any]] = msgspec.json.decode(
        files("counterpoint.service").joinpath("examples.json").read_bytes()
    )
    return found
