"""`connect` for code that waits, `connect_async` for code that awaits; and the events that a follower receives.

A call is sent again with its id when the service cannot be reached, is busy or restarts: the service finds by the id
what it has done already, and does nothing twice. Refusals are not repeated. The key is sent in a header, never shown.

>>> connect("http://127.0.0.1:8000", key="cp_...")
Connection('http://127.0.0.1:8000')

A follower reads server-sent events line by line. After a reconnection the service sends the present values first, and
the follower drops those that it has seen.

>>> follower = Follower()
>>> [follower.read(line) for line in ("event: items", 'data: {"items": 3}', "")]
[None, None, ItemsArrived(items=3)]
>>> [follower.read(line) for line in ("event: items", 'data: {"items": 3}', "")]
[None, None, None]
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from functools import partial
from ipaddress import ip_address
from math import ceil
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias, TypeVar

import msgspec

from counterpoint.client.calls import Call, Calls, Reaction, ServiceReply
from counterpoint.client.service import Service
from counterpoint.composition.rule import Remaining
from counterpoint.errors import CounterpointError, InvalidParameter, NotAllowed
from counterpoint.measures.loss import Loss
from counterpoint.wire.documents import read_loss, read_remaining

if TYPE_CHECKING:
    import httpx

LONGEST = 300
"""For how many seconds a service sends events at once; after that, a follower connects again."""


class LossChanged(NamedTuple):
    """What a session has lost, and what is left of its budget, if it has one."""

    loss: Loss
    remaining: Remaining | None


class ItemsArrived(NamedTuple):
    """How many items of a stream have arrived, or updates of a live table."""

    items: int


Event: TypeAlias = LossChanged | ItemsArrived


def _loss(content: dict[str, Any]) -> Event:
    left = None if content["remaining"] is None else read_remaining(content)
    return LossChanged(read_loss(content["loss"]), left)


_KINDS: dict[str, Callable[[dict[str, Any]], Event]] = {
    "loss": _loss,
    "items": lambda content: ItemsArrived(int(content["items"])),
}


class Follower:
    """Reads server-sent events, and remembers the last one of each kind."""

    def __init__(self) -> None:
        self._fields: dict[str, str] = {}
        self._last: dict[str, Event] = {}

    def read(self, line: str) -> Event | None:
        """The event that ends with this line, if there is one and it is new."""
        name, _, value = line.partition(":")
        if name:
            self._fields[name] = value.removeprefix(" ")
        if line:
            return None
        kind, data = self._fields.get("event", ""), self._fields.get("data", "")
        self._fields = {}
        if kind not in _KINDS:  # a sign of life, or a kind that a later service sends
            return None
        event = _KINDS[kind](msgspec.json.decode(data))
        if self._last.get(kind) == event:
            return None
        self._last[kind] = event
        return event

    def restart(self) -> None:
        """Forget the part of an event that came before a connection was lost."""
        self._fields = {}


class Patience:
    """How long to follow, and how often to connect again when the service is away."""

    def __init__(self, seconds: float | None, tries: int) -> None:
        self._until = None if seconds is None else time.monotonic() + seconds
        self._tries = tries
        self._backoff = backoff(tries)

    @property
    def lasts(self) -> bool:
        """Whether to continue."""
        return self._until is None or time.monotonic() < self._until

    @property
    def left(self) -> int:
        """For how many seconds events are asked for: from one to as many as a service sends them at once."""
        return LONGEST if self._until is None else max(1, min(LONGEST, ceil(self._until - time.monotonic())))

    def renew(self) -> None:
        """The service is there."""
        self._backoff = backoff(self._tries)

    def pause(self, reply: ServiceReply, call: Call) -> float:
        """How long to wait before connecting again, or the error that came of it."""
        pause = next(self._backoff, None)
        if pause is None or not reply.is_worth_repeating:
            reply.result(call)
        return reply.pause(pause or 0.0)


def backoff(tries: int) -> Iterator[float]:
    """How long to wait between tries: from a tenth of a second on, twice as long each time."""
    return (0.1 * 2**number for number in range(tries - 1))


T = TypeVar("T")

TRIES = 7
"""How often a call is sent at most: the pauses between them add up to some 6 seconds."""
TIMEOUT = 120.0
"""For how many seconds an answer is waited for."""
LINES = "application/jsonl"
"""The type of a public record, which is read line by line."""


def connect(
    url: str,
    *,
    key: str,
    timeout: float = TIMEOUT,
    tries: int = TRIES,
    transport: "httpx.BaseTransport | None" = None,
    insecure: bool = False,
) -> "Connection":
    """Connect to a service as the principal whose key this is: `connect(url, key=key).session("people")`.

    The session has the calls of a local one. Plain http to another machine is refused, since the key and the answers
    would travel in the open; `insecure=True` insists. `transport` is httpx's, for tests and for unusual networks.

    >>> connect("http://counterpoint.example.org", key="cp_...")
    Traceback (most recent call last):
    ...
    counterpoint.errors.NotAllowed: plain http to counterpoint.example.org would send the key in the open: use https...
    """
    client = _httpx().Client(**_settings(url, key, timeout, insecure), transport=transport)
    return Connection(client, tries)


def connect_async(
    url: str,
    *,
    key: str,
    timeout: float = TIMEOUT,
    tries: int = TRIES,
    transport: "httpx.AsyncBaseTransport | None" = None,
    insecure: bool = False,
) -> "AsyncConnection":
    """The same for asyncio: each call, and each property that asks the service, is awaited.

    As in `session = await connect_async(url, key=key).session("people")` and `await session.loss`.
    """
    client = _httpx().AsyncClient(**_settings(url, key, timeout, insecure), transport=transport)
    return AsyncConnection(client, tries)


class Connection(Service):
    """A connection that waits for each call; threads may share it. Close it, or use it in a `with`."""

    def __init__(self, client: "httpx.Client", tries: int, sleep: Callable[[float], None] = time.sleep) -> None:
        self._client = client
        self._tries = tries
        self._sleep = sleep

    def run(self, calls: Calls[T]) -> T:
        """The result of these calls."""
        step: Callable[[], Call | Reaction] = partial(calls.send, None)
        while True:
            try:
                wanted = step()
            except StopIteration as end:
                found: T = end.value
                return found
            try:
                step = partial(calls.send, self._done(wanted))
            except CounterpointError as error:
                step = partial(calls.throw, error)

    def _done(self, wanted: Call | Reaction) -> Any:
        return wanted.code(self.run) if isinstance(wanted, Reaction) else self._sent(wanted).result(wanted)

    def _sent(self, call: Call) -> ServiceReply:
        for pause in backoff(self._tries):
            reply = self._once(call)
            if not reply.is_worth_repeating:
                break
            self._sleep(reply.pause(pause))
        else:
            reply = self._once(call)
        return reply

    def _once(self, call: Call) -> ServiceReply:
        try:
            return _reply(self._client.request(**_request(call)))
        except _httpx().TransportError as error:
            return ServiceReply(None, type(error).__name__)

    def follow(self, path: str, seconds: float | None) -> Iterator[Event]:
        """The events that are sent there, for `seconds`, or for ever."""
        follower, patience = Follower(), Patience(seconds, self._tries)
        while patience.lasts:
            call = Call("GET", path, query={"seconds": patience.left})
            try:
                with self._client.stream(**_request(call)) as response:
                    reply = None
                    if response.status_code != 200:
                        response.read()
                        reply = _reply(response)
                    else:
                        for line in response.iter_lines():
                            patience.renew()
                            event = follower.read(line)
                            if event is not None:
                                yield event
            except _httpx().TransportError as error:
                reply = ServiceReply(None, type(error).__name__)
            follower.restart()
            if reply is not None:
                self._sleep(patience.pause(reply, call))

    def close(self) -> None:
        """Close the connection; what was launched stays."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Connection({str(self._client.base_url).rstrip('/')!r})"


class AsyncConnection(Service):
    """A connection whose calls are awaited. Close it, or use it in an `async with`."""

    def __init__(
        self, client: "httpx.AsyncClient", tries: int, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._client = client
        self._tries = tries
        self._sleep = sleep

    def run(self, calls: Calls[T]) -> Coroutine[Any, Any, T]:
        """A coroutine that gives the result of these calls."""
        return self._run(calls)

    async def _run(self, calls: Calls[T]) -> T:
        step: Callable[[], Call | Reaction] = partial(calls.send, None)
        while True:
            try:
                wanted = step()
            except StopIteration as end:
                found: T = end.value
                return found
            try:
                step = partial(calls.send, await self._done(wanted))
            except CounterpointError as error:
                step = partial(calls.throw, error)

    async def _done(self, wanted: Call | Reaction) -> Any:
        if not isinstance(wanted, Reaction):
            return (await self._sent(wanted)).result(wanted)
        loop = asyncio.get_running_loop()
        return await asyncio.to_thread(
            wanted.code, lambda calls: asyncio.run_coroutine_threadsafe(self._run(calls), loop).result()
        )

    async def _sent(self, call: Call) -> ServiceReply:
        for pause in backoff(self._tries):
            reply = await self._once(call)
            if not reply.is_worth_repeating:
                break
            await self._sleep(reply.pause(pause))
        else:
            reply = await self._once(call)
        return reply

    async def _once(self, call: Call) -> ServiceReply:
        try:
            return _reply(await self._client.request(**_request(call)))
        except _httpx().TransportError as error:
            return ServiceReply(None, type(error).__name__)

    async def follow(self, path: str, seconds: float | None) -> AsyncIterator[Event]:
        """The events that are sent there, for `seconds`, or for ever."""
        follower, patience = Follower(), Patience(seconds, self._tries)
        while patience.lasts:
            call = Call("GET", path, query={"seconds": patience.left})
            try:
                async with self._client.stream(**_request(call)) as response:
                    reply = None
                    if response.status_code != 200:
                        await response.aread()
                        reply = _reply(response)
                    else:
                        async for line in response.aiter_lines():
                            patience.renew()
                            event = follower.read(line)
                            if event is not None:
                                yield event
            except _httpx().TransportError as error:
                reply = ServiceReply(None, type(error).__name__)
            follower.restart()
            if reply is not None:
                await self._sleep(patience.pause(reply, call))

    async def close(self) -> None:
        """Close the connection; what was launched stays."""
        await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncConnection({str(self._client.base_url).rstrip('/')!r})"


def _settings(url: str, key: str, timeout: float, insecure: bool) -> dict[str, Any]:
    address = _httpx().URL(url)
    if address.scheme not in ("http", "https") or not address.host or address.userinfo or address.query:
        raise InvalidParameter("url must be an address such as https://counterpoint.example.org; give the key as key=")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise InvalidParameter("key must be the text that was shown when the key was made, such as cp_...")
    if address.scheme == "http" and not insecure and not _is_loopback(address.host):
        raise NotAllowed(
            f"plain http to {address.host} would send the key in the open: use https://, or say insecure=True where no "
            "one else can listen"
        )
    # A proxy of the environment would read what plain http says, also to this machine; https goes through it sealed.
    proxies = address.scheme == "https"
    return {
        "base_url": url,
        "timeout": timeout,
        "trust_env": proxies,
        "headers": {"Authorization": f"Bearer {key}"},
    }


def _is_loopback(host: str) -> bool:
    """Whether this names the machine itself; other names are not looked up, since what they mean may change."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _request(call: Call) -> dict[str, Any]:
    headers = {} if call.id is None else {"Idempotency-Key": call.id}
    return {"method": call.method, "url": call.path, "json": call.body, "headers": headers, "params": call.query}


def _reply(response: "httpx.Response") -> ServiceReply:
    wait = response.headers.get("retry-after", "")
    try:
        content = response.text if response.headers.get("content-type") == LINES else response.json()
    except ValueError:  # an error of a proxy, or no service at all
        content = None
    return ServiceReply(response.status_code, content, float(wait) if wait.isascii() and wait.isdigit() else None)


def _httpx() -> Any:
    try:
        import httpx  # noqa: PLC0415 - only those who connect need it
    except ImportError:
        raise InvalidParameter("a connection to a service needs httpx: pip install counterpoint[service]") from None
    return httpx
