"""Limits on callers: how often, how much at once, for how long, and over how many connections.

Each principal has a bucket of tokens, filled at a steady rate. A request takes one token and a refusal several, because
a refusal costs no budget and is written to the ledger. Buckets live in memory, in each worker its own; one principal's
requests do not change another's. CPU time is charged to the principal when a request ends, which bounds quotes and
reads. Asks and launches are bounded by the budget, by the launches of a session and by fair turns.

>>> now = 0.0
>>> buckets = Buckets(Limits(per_second=1, burst=3, refusal=2), clock=lambda: now)
>>> [buckets.wait("ann") for _ in range(4)], buckets.wait("bob")
([0, 0, 0, 1], 0)
>>> buckets.refused("bob")
>>> now = 1.0
>>> buckets.wait("ann"), buckets.wait("bob"), buckets.wait("bob")
(0, 0, 1)
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import msgspec
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from counterpoint.errors import InvalidParameter
from counterpoint.service.fair_threads import WORK, RequestWork
from counterpoint.service.identity import Principal
from counterpoint.wire.problems import PROBLEM


@dataclass(frozen=True)
class Limits:
    """The limits of callers; a request beyond them is refused before it reaches a ledger."""

    per_second: float = 200
    """How many requests a second a principal may send, for as long as it likes."""
    burst: int = 2000
    """How many requests a principal may send after a pause."""
    refusal: int = 19
    """How many requests a refusal counts for, besides itself."""
    at_once: int = 64
    """How many requests of a principal may run or wait at the same time."""
    seconds: float = 60
    """How long a caller waits at most; what was begun is finished, and found again by its id."""
    streams: int = 8
    """How many streams of events a principal may have open at the same time."""
    computing: float = 0.25
    """How many seconds of CPU time a second the quotes and reads of a principal may take, for as long as it likes."""
    computing_burst: float = 10
    """How many seconds of CPU time the quotes and reads of a principal may take after a pause."""
    launches: int = 20_000
    """How many launches a session may have, questions and delegations among them."""
    sign_ins_per_minute: float = 30
    """How often an address may try to sign in to the dashboard, for as long as it likes."""
    sign_in_burst: int = 30
    """How often an address may try to sign in to the dashboard after a pause."""
    connections: int = 1000
    """How many connections may be open at the same time; fewer where the system allows fewer open files."""
    connections_per_address: int = 256
    """How many connections of one address may be open at the same time."""
    header_seconds: float = 10
    """How long a client may take to send the header of a request."""
    body_seconds: float = 30
    """How long a client may take to send the body of a request, or to read a part of the response."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            least = {"refusal": 0, "computing": 0.001}.get(name, 1)
            if not value >= least:
                raise InvalidParameter(f"the limit {name} must be at least {least}, not {value!r}")


class Bucket:
    """Tokens that return at a steady rate, up to a number of them."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float]) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._level, self._at = float(burst), clock()

    def take(self, tokens: float = 1) -> int:
        """Take tokens: 0, or the seconds after which they will be there."""
        self._fill()
        if self._level < tokens:
            return max(1, ceil((tokens - self._level) / self._rate))
        self._level -= tokens
        return 0

    def debit(self, tokens: float) -> None:
        """Take tokens, also those that are not there yet."""
        self._fill()
        self._level -= tokens

    @property
    def wait(self) -> int:
        """0, or the seconds after which no token will be owed."""
        self._fill()
        return 0 if self._level > 0 else max(1, ceil(-self._level / self._rate))

    def _fill(self) -> None:
        now = self._clock()
        self._level = min(self._burst, self._level + (now - self._at) * self._rate)
        self._at = now


@dataclass
class Buckets:
    """The tokens of every principal that has called. Only the event loop uses them."""

    limits: Limits
    clock: Callable[[], float] = time.monotonic
    _requests: dict[str, Bucket] = field(default_factory=dict)
    _computing: dict[str, Bucket] = field(default_factory=dict)

    def wait(self, name: str) -> int:
        """Take the token of a request: 0, or the seconds after which there will be one."""
        return self._of(name).take()

    def refused(self, name: str) -> None:
        """Take the tokens of a refusal, also those that are not there yet."""
        self._of(name).debit(self.limits.refusal)

    def computing(self, name: str) -> Bucket:
        """The seconds of CPU time that are left for quotes and reads."""
        found = self._computing.get(name)
        if found is None:
            found = Bucket(self.limits.computing, self.limits.computing_burst, self.clock)
            self._computing[name] = found
        return found

    def _of(self, name: str) -> Bucket:
        found = self._requests.get(name)
        if found is None:
            found = self._requests[name] = Bucket(self.limits.per_second, self.limits.burst, self.clock)
        return found


STREAMS = "streams"
"""The option of a route that sends events for as long as its reader stays."""
FREE = {"free": True}
"""The option of a route that posts and yet changes nothing, such as a quote."""


class Limiter:
    """Holds the principals of one application to their limits."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.buckets = Buckets(limits)
        self.running: Counter[tuple[str, bool]] = Counter()

    async def handle(self, who: str, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Refuse a request that goes beyond, or run it for as long as it may take."""
        streams, free = STREAMS in scope["route_handler"].opt, _is_free(scope)
        limits, most = self.limits, self.limits.streams if streams else self.limits.at_once
        if wait := self.buckets.wait(who):
            each = f"{limits.per_second:g} requests a second, and a refusal counts for {limits.refusal + 1}"
            await send_problem(send, 429, f"you may send {each}; send this again later", wait)
        elif free and (wait := self.buckets.computing(who).wait):
            each = f"quotes and reads may take {limits.computing:g} seconds of CPU time a second, and yours took more"
            await send_problem(send, 429, f"{each}; asks and launches go on; send this again later", wait)
        elif self.running[who, streams] >= most:
            what = "streams of events open" if streams else "requests running"
            await send_problem(send, 429, f"you may have {most} {what} at the same time; send this again later", 1)
        else:
            deadline = None if streams else asyncio.get_running_loop().time() + limits.seconds
            work = RequestWork(who, _route(scope))
            exchange = _Exchange(receive, send, deadline, work, free=free)
            await self._run((who, streams), scope, exchange, next_app)

    async def _run(self, slot: tuple[str, bool], scope: Scope, exchange: "_Exchange", next_app: ASGIApp) -> None:
        """Run a request. A free request that takes too long is ended; any other continues, and counts until it ends."""
        self.running[slot] += 1
        token = WORK.set(exchange.work)
        running = asyncio.ensure_future(next_app(scope, exchange.receive, exchange.send))
        WORK.reset(token)
        running.add_done_callback(lambda _: self._ended(slot, exchange))
        try:
            await asyncio.wait([running], timeout=exchange.left())
        except asyncio.CancelledError:
            running.cancel()
            raise
        if running.done():
            running.result()
        else:
            await exchange.give_up(scope["state"].get("id"))
            if exchange.free:
                running.cancel()

    def _ended(self, slot: tuple[str, bool], exchange: "_Exchange") -> None:
        self.running[slot] -= 1
        self.running += Counter()  # which forgets the principals that have nothing running
        if exchange.refused:
            self.buckets.refused(slot[0])
        if exchange.free:
            self.buckets.computing(slot[0]).debit(exchange.work.computed)


def _route(scope: Any) -> str:
    return f"{scope['method']} {scope.get('path_template')}"


def _is_free(scope: Any) -> bool:
    return scope["method"] in ("GET", "HEAD") or "free" in scope["route_handler"].opt


class Limiting(ASGIMiddleware):
    """Asks the limiter of the application. It runs after authentication, which identifies the caller."""

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Hold a principal to its limits; open routes have none."""
        who = scope.get("user")
        if not isinstance(who, Principal):
            token = WORK.set(RequestWork(None, _route(scope)))
            try:
                await next_app(scope, receive, send)
            finally:
                WORK.reset(token)
            return
        limiter: Limiter = scope["litestar_app"].state.limiter
        await limiter.handle(who.name, scope, receive, send, next_app)


class _Exchange:
    """A request and its response, until a deadline: whether it was refused, and whether its caller still waits."""

    def __init__(self, receive: Receive, send: Send, deadline: float | None, work: RequestWork, *, free: bool) -> None:
        self.work, self.free = work, free
        self.refused = False
        self._begun = False
        self._given_up = False
        self._receive, self._send, self._deadline = receive, send, deadline

    def left(self) -> float | None:
        """How many seconds are left; None if there is no deadline."""
        return None if self._deadline is None else max(0.0, self._deadline - asyncio.get_running_loop().time())

    async def receive(self) -> Any:
        """The next part of the body; after the deadline, a disconnection."""
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
            if message["type"] == "http.request":
                self.work.size += len(message.get("body", b""))
            return message
        except TimeoutError:
            return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Send a part of the response, unless its caller waits no more."""
        if self._given_up:
            return
        if message["type"] == "http.response.start":
            self._begun = True
            self.refused = 400 <= message["status"] < 500
        await self._send(message)

    async def give_up(self, id: str | None) -> None:
        """Say that it takes too long, unless a response was begun."""
        if self._begun:
            return
        self._given_up = True
        if self.free:
            await send_problem(self._send, 503, "this takes too long; nothing was changed", 1)
            return
        named = {} if id is None else {"id": id}
        detail = "this takes too long and goes on meanwhile; repeat it by its id"
        await send_problem(self._send, 503, detail, 1, **named)


async def send_problem(send: Send, status: int, detail: str, wait: int, **more: str) -> None:
    """Refuse a request that no handler has seen."""
    title = "TooManyRequests" if status == 429 else "TooSlow"
    said = {"type": "about:blank", "title": title, "status": status, "detail": detail, **more}
    headers = [(b"content-type", PROBLEM.encode()), (b"retry-after", str(wait).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": msgspec.json.encode(said), "more_body": False})
