"""Runs a request again, under its id, when its ledger or data were lost on the way.

After a lost connection, the last commit may or may not have happened. A request repeated by its id gets the answer that
was drawn, or is begun if there was none; either way it is charged once. An API request without an `Idempotency-Key`
gets one here, the same for every attempt. The browser's forms are not repeated: their page says so. Nothing is repeated
once a response has begun.

>>> sum(PAUSES) < 10
True
"""

from typing import Any

import anyio
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from counterpoint.errors import DataLost, LedgerError, LedgerFailed, WitnessFailed
from counterpoint.ledger.commands import NewerVersion
from counterpoint.ledger.ledger import new_request_id

PAUSES = (0.0, 0.05, 0.2, 0.5, 1.0, 2.0, 4.0)
"""Seconds before each further attempt: a database that restarts takes some."""
LOST = frozenset({LedgerError, LedgerFailed, WitnessFailed, DataLost, NewerVersion})
"""The connection was lost, could not be made, or was closed for another request; other errors stay."""
_API = "/v1/"
_ID = b"idempotency-key"


class Retrying:
    """Runs a request again, under one id, while its ledger or its data is lost."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run it; again after each pause, if that was lost; the last time, whatever comes."""
        if scope["type"] != ScopeType.HTTP or not _is_repeatable(scope):
            await self.app(scope, receive, send)
            return
        _give_id(scope)
        body = _Body(receive)
        for pause in PAUSES:
            if await self._is_done(scope, body, send):
                return
            await anyio.sleep(pause)
        await self.app(scope, body.again(), send)

    async def _is_done(self, scope: Scope, body: "_Body", send: Send) -> bool:
        response = _Response(scope, send)
        try:
            await self.app(scope, body.again(), response.send)
        except LedgerError as error:  # before the handler ran, as when a key was looked up
            if type(error) not in LOST or response.begun:
                raise
            return False
        return not response.is_lost


async def note_lost(error: Exception, scope: Scope) -> None:
    """A hook of the application: the response that comes next is that of a lost ledger, or of lost data."""
    if type(error) in LOST:
        scope["state"]["lost"] = True


class _Body:
    """The body of a request, kept to be read again."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._read: list[Any] = []

    def again(self) -> Receive:
        """The body from its beginning."""
        ahead = iter(tuple(self._read))

        async def receive() -> Any:
            before = next(ahead, None)
            if before is not None:
                return before
            message = await self._receive()
            if message["type"] == "http.request":
                self._read.append(message)
            return message

        return receive


class _Response:
    """A response as it is sent; one that reports a lost connection is held back."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._send = send
        self._scope = scope
        scope["state"].pop("lost", None)
        self.begun = False
        self.is_lost = False

    async def send(self, message: Message) -> None:
        """Pass a message on, unless a connection was lost before the first."""
        self.is_lost = self.is_lost or (not self.begun and bool(self._scope["state"].get("lost")))
        if not self.is_lost:
            self.begun = True
            await self._send(message)


def _is_repeatable(scope: Any) -> bool:
    return scope["method"] in ("GET", "HEAD") or str(scope["path"]).startswith(_API)


def _give_id(scope: Any) -> None:
    if scope["method"] == "POST" and not any(name == _ID for name, _ in scope["headers"]):
        scope["headers"] = [*scope["headers"], (_ID, new_request_id().encode())]
