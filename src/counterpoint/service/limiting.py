"""How much a principal may ask of the service: how often, how much at once, and how long one request may take.

Each principal has a bucket of tokens, which fills at a steady rate. A request takes one token and a refusal many more:
a refusal costs no budget and is written to the ledger, so tokens are what bounds it. The buckets are apart, so nothing
that one principal does changes what another gets. They live in memory, in each worker its own.

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
from counterpoint.service.identity import Principal

PROBLEM = "application/problem+json"
STREAMS = "streams"
"""The option of a route that sends events for as long as its reader stays."""


@dataclass(frozen=True)
class Limits:
    """What a principal may do; a request that goes beyond is refused before it reaches a ledger."""

    per_second: float = 200
    """How many requests a second, for as long as it likes."""
    burst: int = 2000
    """How many requests at most, after a pause."""
    refusal: int = 19
    """How many requests a refusal counts for, besides itself."""
    at_once: int = 64
    """How many requests may run at the same time."""
    seconds: float = 60
    """How long a caller waits at most; what was begun is finished, and found again by its id."""
    streams: int = 8
    """How many streams of events may be open at the same time."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value >= (0 if name == "refusal" else 1):
                raise InvalidParameter(f"the limit {name} is a number from 1, not {value!r}")


@dataclass
class _Bucket:
    level: float
    at: float


@dataclass
class Buckets:
    """The tokens of every principal that has called. Only the event loop uses them."""

    limits: Limits
    clock: Callable[[], float] = time.monotonic
    _buckets: dict[str, _Bucket] = field(default_factory=dict)

    def wait(self, name: str) -> int:
        """Take the token of a request: 0, or the seconds after which there will be one."""
        bucket = self._filled(name)
        if bucket.level < 1:
            return ceil((1 - bucket.level) / self.limits.per_second)
        bucket.level -= 1
        return 0

    def refused(self, name: str) -> None:
        """Take the tokens of a refusal, also those that are not there yet."""
        self._filled(name).level -= self.limits.refusal

    def _filled(self, name: str) -> _Bucket:
        now, full = self.clock(), float(self.limits.burst)
        bucket = self._buckets.setdefault(name, _Bucket(full, now))
        bucket.level = min(full, bucket.level + (now - bucket.at) * self.limits.per_second)
        bucket.at = now
        return bucket


class Limiter:
    """Holds the principals of one application to their limits."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.buckets = Buckets(limits)
        self.running: Counter[tuple[str, bool]] = Counter()

    async def handle(self, who: str, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Refuse a request that goes beyond, or run it for as long as it may take."""
        streams = STREAMS in scope["route_handler"].opt
        most = self.limits.streams if streams else self.limits.at_once
        wait = self.buckets.wait(who)
        if wait > 0:
            each = f"{self.limits.per_second:g} requests a second, and a refusal counts for {self.limits.refusal + 1}"
            await _problem(send, 429, f"you may send {each}; send this again later", wait)
        elif self.running[who, streams] >= most:
            what = "streams of events open" if streams else "requests running"
            await _problem(send, 429, f"you may have {most} {what} at the same time; send this again later", 1)
        else:
            deadline = None if streams else asyncio.get_running_loop().time() + self.limits.seconds
            await self._run((who, streams), scope, _Exchange(receive, send, deadline), next_app)

    async def _run(self, slot: tuple[str, bool], scope: Scope, exchange: "_Exchange", next_app: ASGIApp) -> None:
        """Run a request. One that takes too long goes on behind its response, and counts as running until it ends."""
        self.running[slot] += 1
        running = asyncio.ensure_future(next_app(scope, exchange.receive, exchange.send))
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

    def _ended(self, slot: tuple[str, bool], exchange: "_Exchange") -> None:
        self.running[slot] -= 1
        self.running += Counter()  # which forgets the principals that have nothing running
        if exchange.refused:
            self.buckets.refused(slot[0])


class Limiting(ASGIMiddleware):
    """Asks the limiter of the application. It stands behind an authentication, which says who calls."""

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Hold a principal to its limits; what is open to all has none."""
        who = scope.get("user")
        if not isinstance(who, Principal):
            await next_app(scope, receive, send)
            return
        limiter: Limiter = scope["litestar_app"].state.limiter
        await limiter.handle(who.name, scope, receive, send, next_app)


class _Exchange:
    """A request and its response, until a deadline: whether it was refused, and whether its caller still waits."""

    def __init__(self, receive: Receive, send: Send, deadline: float | None) -> None:
        self.refused = False
        self._begun = False
        self._given_up = False
        self._receive, self._send, self._deadline = receive, send, deadline

    def left(self) -> float | None:
        """How many seconds are left; None if there is no deadline."""
        return None if self._deadline is None else max(0.0, self._deadline - asyncio.get_running_loop().time())

    async def receive(self) -> Any:
        """The next part of the body; after the deadline, that there is none."""
        try:
            async with asyncio.timeout_at(self._deadline):
                return await self._receive()
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
        named = {} if id is None else {"id": id}
        await _problem(self._send, 503, "this takes too long and goes on meanwhile; repeat it by its id", 1, **named)


async def _problem(send: Send, status: int, detail: str, wait: int, **more: str) -> None:
    title = "TooManyRequests" if status == 429 else "TooSlow"
    said = {"type": "about:blank", "title": title, "status": status, "detail": detail, **more}
    headers = [(b"content-type", PROBLEM.encode()), (b"retry-after", str(wait).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": msgspec.json.encode(said), "more_body": False})
