r"""Connections before they are requests: how many there are, and how long a client may take to say what it wants.

A connection is counted from the moment when it is accepted, TLS or not. Where an address has as many as it may have, or
the process as many as it can have, the connection that has kept the service waiting longest is closed to make room, so
that connections which never finish a request only displace each other; one with a request running is never closed for
that. If every connection has one running, the new connection is refused. Accepting stops short of the limit of open
files, which leaves some for ledgers and data.

>>> refusal(408, "TooSlow", "the header took too long").split(b"\r\n")[0]
b'HTTP/1.1 408 Request Timeout'
"""

import asyncio
import errno
import logging
import os
import resource
import socket
import time
from contextlib import suppress
from http import HTTPStatus
from typing import Any

import h11
import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from counterpoint.service.edge import address_key, safe_headers
from counterpoint.service.joined_writes import JoinedWrites
from counterpoint.service.limits import Limits
from counterpoint.wire.problems import PROBLEM

_OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_AT_ONE_TURN = 32
"""How many connections are accepted before the ones that were closed are let go."""
_LARGEST_HEADER = 32 * 1024
_LINES_A_MINUTE = 5
_log = logging.getLogger("counterpoint.service")


def refusal(status: int, title: str, detail: str, wait: int | None = None) -> bytes:
    """A whole response, sent before or instead of the application's."""
    said = msgspec.json.encode({"type": "about:blank", "title": title, "status": status, "detail": detail})
    headers = [
        (b"content-type", PROBLEM.encode()),
        (b"content-length", str(len(said)).encode()),
        (b"connection", b"close"),
        *([] if wait is None else [(b"retry-after", str(wait).encode())]),
    ]
    lines = [b"%s: %s" % header for header in safe_headers(headers)]
    return b"\r\n".join([f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode(), *lines, b"", said])


class AFewAMinute(logging.Filter):
    """Lets a log line through a few times a minute, so that callers cannot fill the log."""

    def __init__(self) -> None:
        super().__init__()
        self._minute = 0
        self._seen: dict[str, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is one of the first of this minute."""
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            self._minute, self._seen = minute, {}
        self._seen[record.msg] = self._seen.get(record.msg, 0) + 1
        return self._seen[record.msg] <= _LINES_A_MINUTE


_quiet = logging.getLogger("counterpoint.service.connections")
_quiet.addFilter(AFewAMinute())


class OpenConnection:
    """An accepted connection: where it is from, and since when it has kept the service waiting."""

    def __init__(self, accepted: "CountedSocket", address: str, *, tls: bool) -> None:
        self.accepted = accepted
        self._tls = tls
        self.address = address
        self.protocol: GuardedProtocol | None = None
        self.waiting_since: float | None = time.monotonic()
        """None while a request of its runs."""

    def displace(self, detail: str) -> None:
        """Close it, to make room for another."""
        response = refusal(429, "TooManyConnections", detail, 1)
        if self.protocol is not None:
            self.protocol.end(response)
        else:  # it was accepted just now, or is in the middle of a TLS handshake
            if not self._tls:
                self.say(response)
            self.shut()

    def say(self, response: bytes) -> None:
        """Send this past the transport. With bytes unread, closing would make the client's system drop it."""
        with suppress(OSError):
            self.accepted.recv(_LARGEST_HEADER)
        with suppress(OSError):
            self.accepted.send(response)

    def shut(self) -> None:
        """End both directions; its transport then closes it."""
        with suppress(OSError):  # its client was faster
            self.accepted.shutdown(socket.SHUT_RDWR)


class ConnectionGuard:
    """The open connections of this process, and their limits. Only the event loop uses it."""

    def __init__(self, limits: Limits, *, tls: bool = False) -> None:
        self.limits, self.tls = limits, tls
        self.most = most_connections(limits.connections)
        self._open: dict[int, OpenConnection] = {}
        self._by_address: dict[str, dict[int, OpenConnection]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def why_not(self, address: str) -> str | None:
        """Make room for a connection from this address; the reason if there is no room."""
        own = self._by_address.get(address, {})
        if len(own) >= self.limits.connections_per_address:
            reason = f"{self.limits.connections_per_address} connections of this address are open; close some"
            return None if _displace_longest_waiting(own, reason) else reason
        if len(self._open) >= self.most:
            reason = f"{self.most} connections are open; try again later"
            largest = max(self._by_address.values(), key=len)
            found = _displace_longest_waiting(largest, reason) or _displace_longest_waiting(self._open, reason)
            return None if found else reason
        return None

    def add(self, accepted: "CountedSocket", address: str) -> None:
        """Count a connection, and end it if it does not get as far as a request's first byte in time."""
        number = accepted.fileno()
        made = self._open[number] = OpenConnection(accepted, address, tls=self.tls)
        self._by_address.setdefault(address, {})[number] = made

    def remove(self, number: int) -> None:
        """A connection was closed."""
        gone = self._open.pop(number, None)
        if gone is not None:
            own = self._by_address[gone.address]
            del own[number]
            if not own:
                del self._by_address[gone.address]

    def attach(self, number: int, protocol: "GuardedProtocol") -> OpenConnection | None:
        """The connection that this protocol reads; None of one that was accepted elsewhere."""
        found = self._open.get(number)
        if found is not None:
            found.protocol = protocol
        return found

    def end_handshake(self, number: int, made: "CountedSocket") -> None:
        """End a connection that has not finished its TLS handshake in time."""
        found = self._open.get(number)
        if found is not None and found.accepted is made and found.protocol is None:
            found.shut()


def _displace_longest_waiting(among: dict[int, OpenConnection], reason: str) -> bool:
    waiting = [one for one in among.values() if one.waiting_since is not None]
    if not waiting:
        return False
    oldest = min(waiting, key=lambda one: one.waiting_since or 0.0)
    oldest.waiting_since = None  # it is on its way out: the next one is chosen next time
    oldest.displace(reason)
    return True


def most_connections(wanted: int) -> int:
    """So many connections, or as many as leave a quarter of the open files for the service itself.

    The soft limit of open files is raised first, as far as the hard one allows.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = 2 * wanted + 512
    if soft != resource.RLIM_INFINITY and soft < enough:
        raised = enough if hard == resource.RLIM_INFINITY else min(hard, enough)
        with suppress(OSError, ValueError):  # then it stays as it is
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, raised), hard))
            soft = max(soft, raised)
    return wanted if soft == resource.RLIM_INFINITY else max(1, min(wanted, soft - max(soft // 4, min(256, soft // 2))))


class CountedSocket(socket.socket):
    """An accepted connection, which is counted until it is closed."""

    guard: ConnectionGuard | None = None

    def close(self) -> None:
        """Close it, and let its place go."""
        number = self.fileno()
        if self.guard is not None and number >= 0:
            self.guard.remove(number)
        super().close()


class GuardedListener(socket.socket):
    """A listening socket that accepts connections as far as a guard allows; made of one that is bound."""

    def __init__(self, bound: socket.socket, guard: ConnectionGuard) -> None:
        super().__init__(bound.family, bound.type, bound.proto, fileno=bound.detach())
        self._guard = guard
        self._accepted = 0
        self._spare = os.open(os.devnull, os.O_RDONLY)

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection that is admitted. BlockingIOError if none waits: the event loop asks again."""
        loop = asyncio.get_running_loop()
        while self._accepted < _AT_ONE_TURN:
            if self._accepted == 0:
                loop.call_soon(self._next_turn)
            self._accepted += 1
            try:
                plain, peer = super().accept()
            except OSError as error:
                if error.errno in _OUT_OF_FILES:
                    self._drop_one()
                    continue
                raise
            made = CountedSocket(plain.family, plain.type, plain.proto, fileno=plain.detach())
            made.setblocking(False)
            address = address_key(str(peer[0]))
            reason = self._guard.why_not(address)
            if reason is None:
                made.guard = self._guard
                self._guard.add(made, address)
                loop.call_later(self._guard.limits.header_seconds, self._guard.end_handshake, made.fileno(), made)
                return made, peer
            self._refuse(made, reason)
        raise BlockingIOError

    def _next_turn(self) -> None:
        self._accepted = 0

    def _refuse(self, made: socket.socket, reason: str) -> None:
        _quiet.warning("a connection was refused", extra={"said": {"event": "connection refused", "why": reason}})
        if not self._guard.tls:
            with suppress(OSError):  # its client is gone
                made.send(refusal(503, "TooManyConnections", reason, 1))
        made.close()

    def _drop_one(self) -> None:
        """Without a free file nothing can be accepted: take one connection with the spare file, and close it."""
        _quiet.error("no file can be opened", extra={"said": {"event": "no file can be opened"}})
        if self._spare >= 0:
            os.close(self._spare)
            self._spare = -1
        with suppress(OSError):
            super().accept()[0].close()
        with suppress(OSError):
            self._spare = os.open(os.devnull, os.O_RDONLY)

    def close(self) -> None:
        """Listen no more."""
        if self._spare >= 0:
            os.close(self._spare)
            self._spare = -1
        super().close()


class StrictConnection(h11.Connection):
    """Reads requests, and refuses those that say two lengths: a proxy in front may read another request than we do."""

    def next_event(self) -> Any:
        """The next part of a request."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = {name for name, _ in event.headers}
            if b"content-length" in names and b"transfer-encoding" in names:
                raise h11.RemoteProtocolError("Content-Length and Transfer-Encoding together")
        return event


class GuardedProtocol(H11Protocol):
    """One connection: a header, a body and the reading of a response each have their time."""

    def __init__(self, guard: ConnectionGuard, **options: Any) -> None:
        super().__init__(**options)
        self.conn = StrictConnection(h11.SERVER, _LARGEST_HEADER)
        self.logger = _quiet
        self._guard = guard
        self._counted: OpenConnection | None = None
        self._stage: tuple[str, int] = ("", 0)
        self._timer: asyncio.TimerHandle | None = None
        self._reading_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Wait for the header of a first request."""
        super().connection_made(JoinedWrites(transport, self.loop))  # type: ignore[arg-type]  # it has what is used
        self._counted = self._guard.attach(transport.get_extra_info("socket").fileno(), self)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timers."""
        super().connection_lost(exc)
        for timer in (self._timer, self._reading_timer):
            if timer is not None:
                timer.cancel()

    def data_received(self, data: bytes) -> None:
        """Read on, within the time of what is being read."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """The next request begins."""
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        """The client reads more slowly than it is sent: it has its time for the next part."""
        super().pause_writing()
        self._reading_timer = self.loop.call_later(self._guard.limits.body_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """The client has read on."""
        super().resume_writing()
        if self._reading_timer is not None:
            self._reading_timer.cancel()

    def send_400_response(self, msg: str) -> None:
        """Refuse bytes that are not an HTTP request."""
        self.end(refusal(400, "InvalidRequest", "this is not one request of HTTP, with one length"))

    def end(self, response: bytes) -> None:
        """Send this instead of a response, unless one has begun, and close."""
        if self.transport.is_closing():
            self.transport.abort()
            return
        cycle: RequestResponseCycle | None = self.cycle
        running = cycle is not None and not cycle.response_complete
        begun = cycle is not None and running and cycle.response_started
        answered = self._stage[0] == "body" and not running
        if not begun and not answered and self._stage[0] != "idle":
            if self._counted is not None and not self._guard.tls:
                self._counted.say(response)
            else:
                self.transport.write(response)
        if cycle is not None and running:  # its handler sees a client that has gone
            cycle.disconnected = True
            cycle.message_event.set()
        if begun or self._guard.tls:
            self.loop.call_later(0.5, self.transport.abort)  # TLS would wait for its client to say goodbye
        self.transport.close()

    def _watch(self) -> None:
        """Start a timer for what the service waits for, if that has changed."""
        stage = self._waits_for()
        if stage == self._stage:
            return
        self._stage = stage
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._counted is not None:
            self._counted.waiting_since = None if stage[0] == "response" else time.monotonic()
        limits = self._guard.limits
        if stage[0] in ("header", "body"):
            seconds = limits.header_seconds if stage[0] == "header" else limits.body_seconds
            self._timer = self.loop.call_later(seconds, self._expire)

    def _waits_for(self) -> tuple[str, int]:
        """The part of a request that comes next on this connection."""
        cycle: RequestResponseCycle | None = self.cycle
        request = 0 if cycle is None else id(cycle)
        theirs = self.conn.their_state
        if theirs is h11.SEND_BODY:
            return "body", request
        if cycle is not None and not cycle.response_complete:
            return "response", request
        if cycle is None or (theirs is h11.IDLE and self.conn.trailing_data[0]):
            return "header", request
        return "idle", request

    def _expire(self) -> None:
        stage = self._stage[0]
        if stage == "body" and self.flow.read_paused:  # it is the service that does not read
            self._timer = self.loop.call_later(self._guard.limits.body_seconds, self._expire)
            return
        self.end(refusal(408, "TooSlow", f"the {stage} of the request took too long to arrive"))
