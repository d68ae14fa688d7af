"""How much a caller may ask of the service: how often, how much at once, how long, and over how many connections.

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

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil

from counterpoint.errors import InvalidParameter


@dataclass(frozen=True)
class Limits:
    """What a caller may do; a request that goes beyond is refused before it reaches a ledger."""

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
                raise InvalidParameter(f"the limit {name} is a number from {least}, not {value!r}")


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
