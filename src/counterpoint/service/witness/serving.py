"""`counterpoint witness`: a small service that has seen how far the chains of ledgers had come, for all their replicas.

It holds numbers and hashes, and the names of sessions: nothing that was asked, answered or drawn. Each owner of ledgers
has a key, and sees the heads of its own. `ledger/checking/remote_witness.py` is its client.
"""

from collections.abc import Callable
from contextlib import closing
from typing import Annotated, Any

import msgspec
from litestar import Litestar, Request, Response, get, post
from litestar.connection import ASGIConnection
from litestar.datastructures import State
from litestar.exceptions import HTTPException, NotAuthorizedException
from litestar.middleware import AbstractAuthenticationMiddleware, AuthenticationResult, DefineMiddleware
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.params import JSONBody, QueryParameter

import counterpoint
from counterpoint.errors import CounterpointError
from counterpoint.service.edge import PROBLEM, StrictRequest, harden
from counterpoint.service.limits import Limits
from counterpoint.service.operating.serving import Listening, address, check_tls, listener_at, run_server
from counterpoint.service.problems import problem
from counterpoint.service.witness.book import HeadRefused, Seen, SeenChain, WitnessBook

FIRST = "ledgers"
"""The owner whose key the first start makes."""
_LARGEST_BODY = 2**16

_Hash = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
_Number = Annotated[int, msgspec.Meta(ge=0, lt=2**62)]
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
_Asked = Annotated[str, QueryParameter(min_length=1, max_length=200)]
Json = dict[str, Any]


class HeadBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A head, and the newest one before it as its sender knows it."""

    session: _Name
    genesis: _Hash
    number: _Number
    head: _Hash
    after: tuple[_Number, _Hash] | None


class RecoveryBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The entry of a recovery, the head that it is behind, and what was seen last of the record that was lost."""

    session: _Name
    genesis: _Hash
    number: _Number
    before: _Hash
    entry: str
    after: tuple[_Number, _Hash] | None


class OwnerAuthentication(AbstractAuthenticationMiddleware):
    """Reads the key of a request."""

    async def authenticate_request(self, connection: ASGIConnection[Any, Any, Any, Any]) -> AuthenticationResult:
        """The owner whose key it is."""
        scheme, _, presented = connection.headers.get("authorization", "").partition(" ")
        book: WitnessBook = connection.app.state.book
        owner = book.owner(presented.strip()) if scheme.lower() == "bearer" else None
        if owner is None:
            raise NotAuthorizedException("send a key that stands, as in: Authorization: Bearer cp_...")
        return AuthenticationResult(user=owner, auth=None)


@get("/health", sync_to_thread=False, summary="Whether the process lives", security=[])
def alive() -> dict[str, str]:
    """Always so, if it answers."""
    return {"status": "alive"}


@get("/v1/heads", sync_to_thread=True, summary="What was seen of the chains of a session")
def heads(request: Request[str, Any, State], session: _Asked) -> Json:
    """The newest head of each chain of this name, its recoveries and places."""
    book: WitnessBook = request.app.state.book
    found = book.lines(request.user, session)
    return {"lines": [(line.sequence, line.head.hex(), line.genesis.hex()) for line in found]}


@post("/v1/heads", sync_to_thread=True, summary="See a head, behind the newest one")
def note(request: Request[str, Any, State], data: JSONBody[HeadBody]) -> Json:
    """Taken once it is on disk; 409, with the newest, if it goes back or leaves another one out."""
    book: WitnessBook = request.app.state.book
    chain = SeenChain(data.session, bytes.fromhex(data.genesis))
    return _newest(book.note(request.user, chain, data.number, bytes.fromhex(data.head), _read(data.after)))


@post("/v1/recoveries", sync_to_thread=True, summary="Go back to the entry of a recovery")
def recover(request: Request[str, Any, State], data: JSONBody[RecoveryBody]) -> Json:
    """Taken if the entry is a recovery of what was seen last; nothing else goes back."""
    book: WitnessBook = request.app.state.book
    chain, entry = SeenChain(data.session, bytes.fromhex(data.genesis)), data.entry.encode()
    before, after = bytes.fromhex(data.before), _read(data.after)
    return _newest(book.recover(request.user, chain, data.number, before, entry, after))


def witness_application(book: WitnessBook) -> Litestar:
    """The service over what a witness has seen."""
    return Litestar(
        route_handlers=[alive, heads, note, recover],
        middleware=[DefineMiddleware(OwnerAuthentication, exclude=["^/health", "^/schema"])],
        exception_handlers={HeadRefused: _behind, CounterpointError: _refused, HTTPException: _http, Exception: _fault},
        logging_config=None,
        request_max_body_size=_LARGEST_BODY,
        before_send=[harden],
        request_class=StrictRequest,
        # the framework's pages for a browser would run scripts of other hosts
        openapi_config=OpenAPIConfig(
            title="Counterpoint witness", version=counterpoint.__version__, render_plugins=[JsonRenderPlugin()]
        ),
        state=State({"book": book}),
    )


def serve_witness(folder: str, listening: Listening, say: Callable[[str], None]) -> None:
    """Serve until a signal stops it. `say` shows the address and, on the first start, a key."""
    check_tls(listening)
    with closing(WitnessBook(folder)) as book, listener_at(listening) as listener:
        host, port = listener.getsockname()[:2]
        say(f"a witness at {address(host, port, listening.certificate is not None)}")
        if not book.keys.standing():
            say(f"the key of {FIRST!r}, which is shown this once: {book.new_key(FIRST).shown()}")
        say("stop it with Ctrl-C, or SIGTERM")
        run_server(listening, listener, Limits(), lambda: witness_application(book))


def _newest(seen: Seen | None) -> Json:
    return {"newest": None if seen is None else (seen[0], seen[1].hex())}


def _read(said: tuple[int, str] | None) -> Seen | None:
    return None if said is None else (said[0], bytes.fromhex(said[1]))


def _behind(_request: Request[Any, Any, Any], error: HeadRefused) -> Response[Any]:
    detail = "this head is not behind the newest one that was seen"
    said = {"type": "about:blank", "title": "Refused", "status": 409, "detail": detail, **_newest(error.newest)}
    return Response(said, status_code=409, media_type=PROBLEM)


def _refused(_request: Request[Any, Any, Any], error: CounterpointError) -> Response[Any]:
    said = problem(error)
    return Response(said, status_code=said["status"], media_type=PROBLEM)


def _http(_request: Request[Any, Any, Any], error: HTTPException) -> Response[Any]:
    said = {"type": "about:blank", "title": type(error).__name__, "status": error.status_code, "detail": error.detail}
    return Response(said, status_code=error.status_code, media_type=PROBLEM)


def _fault(_request: Request[Any, Any, Any], _error: Exception) -> Response[Any]:
    said = {"type": "about:blank", "title": "InternalError", "status": 500, "detail": "the witness failed; see its log"}
    return Response(said, status_code=500, media_type=PROBLEM)
