"""What holds before a caller is known: headers of every response, bodies of any bytes, and failed sign-ins.

No response may be cached or read as another type. A body that is not JSON, or has a name twice, is its caller's error.
Each failed sign-in is a line of the log with the caller's address, never the key; each address gets a few lines a
minute, so that no caller can fill the log, and a limited rate of sign-ins.

>>> headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
>>> dict(safe_headers([(b"content-type", b"text/plain")])) == {
...     b"content-type": b"text/plain", **{name.encode(): value.encode() for name, value in headers.items()}
... }
True

>>> now = 0.0
>>> strangers = Strangers(Limits(sign_ins_per_minute=6, sign_in_burst=2), clock=lambda: now)
>>> [strangers.wait("192.0.2.1") for _ in range(3)], strangers.wait("192.0.2.2")
([0, 0, 10], 0)
>>> address_key("2001:db8:1:2:3:4:5:6"), address_key("192.0.2.1"), address_key("::ffff:192.0.2.1")
('2001:db8:1:2::/64', '192.0.2.1', '192.0.2.1')
"""

import ipaddress
import json
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from litestar import Request
from litestar.exceptions import ClientException
from litestar.types import Message, Scope

from counterpoint.service.limits import Bucket, Limits

ASSETS = "/assets/"
"""Where the style sheet and the icon are, the only responses that a browser may keep."""
_CACHING, _SNIFFING = b"cache-control", b"x-content-type-options"


def safe_headers(headers: Iterable[tuple[bytes, bytes]], *, may_be_kept: bool = False) -> list[tuple[bytes, bytes]]:
    """These headers with those that every response has."""
    ours = {_SNIFFING} if may_be_kept else {_SNIFFING, _CACHING}
    kept = [(name, value) for name, value in headers if name.lower() not in ours]
    return [*kept, (_SNIFFING, b"nosniff"), *([] if may_be_kept else [(_CACHING, b"no-store")])]


async def harden(message: Message, scope: Scope) -> None:
    """A hook of the application, before anything is sent: also errors that no route has made pass here."""
    if message["type"] == "http.response.start":
        asset = str(scope["path"]).startswith(ASSETS) and message["status"] == 200
        message["headers"] = safe_headers(message.get("headers", ()), may_be_kept=asset)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> None:
    seen = Counter(name for name, _ in pairs)
    if len(seen) < len(pairs):
        name = next(name for name, times in seen.items() if times > 1)
        raise ClientException(f"the body has the name {name[:80]!r} twice in one object")


_NAMES = json.JSONDecoder(object_pairs_hook=_without_duplicates, parse_int=str, parse_float=str, parse_constant=str)
"""Reads a body for the names in its objects alone: readers of JSON differ in which of two values they take."""


def must_have_distinct_names(body: bytes) -> None:
    """400 for a body with an object that has a name twice; text that is not JSON is refused by the other reader."""
    try:
        _NAMES.decode(body.decode())
    except json.JSONDecodeError:
        return


class StrictRequest(Request[Any, Any, Any]):
    """A request whose body may be any bytes."""

    async def json(self) -> Any:
        """The body, read as JSON; 400 if it is nested too deeply, is not UTF-8, or has a name twice in an object."""
        try:
            must_have_distinct_names(await self.body())
            return await super().json()
        except RecursionError:
            raise ClientException("the body is nested too deeply") from None
        except UnicodeDecodeError:
            raise ClientException("the body is not UTF-8") from None


_MOST_KNOWN = 10_000
_LINES_PER_MINUTE = 6
_LINES_BURST = 10
_log = logging.getLogger("counterpoint.service")


def address_key(host: str) -> str:
    """The key of a caller's address: an IPv4 address, or the 64-bit network of one IPv6 customer."""
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host[:64]
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)


def address_of(scope: Any) -> str:
    """The address that a request came from; behind a proxy on this machine, the one that the proxy says."""
    client = scope.get("client")
    return address_key(client[0]) if client else "unknown"


class Strangers:
    """Failed sign-ins and their limits, by address. Only the event loop uses it."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._sign_ins = _ByAddress(limits.sign_ins_per_minute / 60, limits.sign_in_burst, clock)
        self._lines = _ByAddress(_LINES_PER_MINUTE / 60, _LINES_BURST, clock)
        self._left_out: Counter[str] = Counter()

    def wait(self, address: str) -> int:
        """Take one attempt to sign in: 0, or the seconds after which there will be one."""
        return self._sign_ins.of(address).take()

    def note_failure(self, address: str, presented: str) -> None:
        """Log a failed sign-in: `presented` says where the key was: "form" or "header"."""
        if self._lines.of(address).take() > 0:
            self._left_out[address] += 1
            if len(self._left_out) > _MOST_KNOWN:
                self._left_out.clear()
            return
        said = {"event": "sign-in failed", "address": address, "presented": presented}
        left_out = self._left_out.pop(address, 0)
        _log.warning("sign-in failed", extra={"said": {**said, **({"left_out": left_out} if left_out else {})}})


@dataclass
class _ByAddress:
    rate: float
    burst: int
    clock: Callable[[], float]
    _buckets: OrderedDict[str, Bucket] = field(default_factory=OrderedDict)

    def of(self, address: str) -> Bucket:
        if address not in self._buckets:
            self._buckets[address] = Bucket(self.rate, self.burst, self.clock)
            if len(self._buckets) > _MOST_KNOWN:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(address)
        return self._buckets[address]
