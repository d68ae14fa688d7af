"""What a follower of a session is sent: its loss as it changes, and how many items have arrived.

The service sends server-sent events; a follower reads them line by line. After a connection is made anew, the service
begins with how things stand: what the follower knows already is left out.

>>> follower = Follower()
>>> [follower.read(line) for line in ("event: items", 'data: {"items": 3}', "")]
[None, None, ItemsArrived(items=3)]
>>> [follower.read(line) for line in ("event: items", 'data: {"items": 3}', "")]
[None, None, None]
"""

import time
from collections.abc import Callable, Iterator
from math import ceil
from typing import Any, NamedTuple, TypeAlias

import msgspec

from counterpoint.composition.rules.rule import Remaining
from counterpoint.privacy.loss import Loss
from counterpoint.service.client import reading
from counterpoint.service.client.calls import Call, ServiceReply

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


def _loss(said: dict[str, Any]) -> Event:
    left = None if said["remaining"] is None else reading.remaining_of(said)
    return LossChanged(reading.loss_of(said["loss"]), left)


_KINDS: dict[str, Callable[[dict[str, Any]], Event]] = {
    "loss": _loss,
    "items": lambda said: ItemsArrived(int(said["items"])),
}


class Follower:
    """Reads server-sent events, and remembers the last one of each kind."""

    def __init__(self) -> None:
        self._fields: dict[str, str] = {}
        self._last: dict[str, Event] = {}

    def read(self, line: str) -> Event | None:
        """The event that ends with this line, if one does and it says something new."""
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
        self._pauses = pauses(tries)

    @property
    def lasts(self) -> bool:
        """Whether to go on."""
        return self._until is None or time.monotonic() < self._until

    @property
    def left(self) -> int:
        """For how many seconds events are asked for: from one to as many as a service sends them at once."""
        return LONGEST if self._until is None else max(1, min(LONGEST, ceil(self._until - time.monotonic())))

    def renew(self) -> None:
        """The service is there."""
        self._pauses = pauses(self._tries)

    def pause(self, reply: ServiceReply, call: Call) -> float:
        """How long to wait before connecting again, or the error that came of it."""
        pause = next(self._pauses, None)
        if pause is None or not reply.is_worth_repeating:
            reply.result(call)
        return reply.pause(pause or 0.0)


def pauses(tries: int) -> Iterator[float]:
    """How long to wait between tries: from a tenth of a second on, twice as long each time."""
    return (0.1 * 2**number for number in range(tries - 1))
