"""The ledger: how many entries each chain has, whether the record was verified, what waits, and how items arrive."""

import time
from dataclasses import dataclass
from typing import Any

from litestar import Request, Response, get, post

from counterpoint.ledger.chain import read_entry
from counterpoint.service.api.data_sets import sent_record
from counterpoint.service.api.inputs import InPath, TheRegistry, for_roles
from counterpoint.service.pages.access import OVERSEERS, By
from counterpoint.service.pages.render import attached, elsewhere, page, refreshing
from counterpoint.service.pages.words import ago
from counterpoint.service.registry import Registry, Verification
from counterpoint.sources.streams.stream import Stream


@dataclass(frozen=True, slots=True)
class RecordLine:
    """The record of a data set: its entries, its head, what waits, and when it was verified."""

    name: str
    entries: int
    head: str
    waiting: int
    verified: Verification | None

    @property
    def failed(self) -> bool:
        """Whether its last verification found something."""
        return self.verified is not None and self.verified.failure is not None


@dataclass(frozen=True, slots=True)
class Arriving:
    """A stream: how many items it has, how many came within the hour, and when the last did. All of it is public."""

    name: str
    items: int
    lately: int
    last: str


@get("/ledger", sync_to_thread=True, include_in_schema=False, guards=[for_roles(*OVERSEERS)])
def show(request: Request[Any, Any, Any], registry: TheRegistry, by: By) -> Response[Any]:
    """The page; a failed verification stands first."""
    chains = sorted((_chain(registry, name) for name in registry.bound), key=lambda chain: not chain.failed)
    streams = [name for name in registry.bound if isinstance(registry.data_set(name).source, Stream)]
    now = time.time()
    return page(
        "ledger",
        by,
        here="/ledger",
        live=refreshing(request),
        warning=registry.place.witness_beside,
        chains=chains,
        streams=[_arriving(registry, name, now) for name in streams],
        entries=sum(chain.entries for chain in chains),
        waiting=sum(chain.waiting for chain in chains),
        signer=registry.signer,
    )


@post("/ledger", sync_to_thread=True, include_in_schema=False, guards=[for_roles(*OVERSEERS)])
def verify(registry: TheRegistry) -> Response[Any]:
    """Verify every record now."""
    for name in registry.bound:
        registry.verified(name)
    return elsewhere("/ledger")


@get("/data-sets/{name:str}/record", sync_to_thread=True, include_in_schema=False, guards=[for_roles(*OVERSEERS)])
def record(registry: TheRegistry, name: InPath) -> Response[Any]:
    """The public record as JSON lines, to check by `checker.py`; no answer is in it."""
    return sent_record(registry, name, attached(f"{name}.jsonl"))


def _chain(registry: Registry, name: str) -> RecordLine:
    head, waiting = registry.head(name), len(registry.data_set(name).session()._engine.ledger.opened())
    spelled = head.hash.hex()
    return RecordLine(name, head.number, f"{spelled[:4]} {spelled[4:8]}", waiting, registry.verifications.get(name))


def _arriving(registry: Registry, name: str, now: float) -> Arriving:
    """By the entries of the chain: each has the number of items up to it."""
    arrived = [(entry.at, entry.version) for entry in map(read_entry, registry.entries(name)) if entry.kind == "items"]
    total = arrived[-1][1] if arrived else 0
    before = max((items for at, items in arrived if at < now - 3600), default=0)
    return Arriving(name, total, total - before, ago(arrived[-1][0], now) if arrived else "none yet")
