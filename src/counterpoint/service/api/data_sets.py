"""Data sets: their declarations and budgets, their grants, and the items and rows that producers send."""

from collections.abc import Iterator, Mapping
from itertools import chain, islice

from litestar import Response, Router, delete, get, post
from litestar.params import JSONBody
from litestar.response import Stream

import counterpoint as cp
from counterpoint.errors import InvalidRequest, LedgerTampered
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.service.api.inputs import (
    After,
    Caller,
    ConfirmBody,
    GrantBody,
    InPath,
    ItemsBody,
    Json,
    Limit,
    RequestId,
    RowsBody,
    TheRegistry,
    VersionBody,
    for_roles,
    page_of,
)
from counterpoint.service.identity import Principal, Role
from counterpoint.service.outages import note_reopened
from counterpoint.service.registry import GrantedSession, Registry, later
from counterpoint.service.views import grant_json, session_json, version_json
from counterpoint.session.session import Session
from counterpoint.wire.problems import SessionId, unknown
from counterpoint.wire.requests import EXACT_MECHANISMS, PAGE, decode_loss, named

RECORD_PAGE = 1000
"""How many lines of a record are sent at once: it may be longer than what fits into memory."""
READERS = (Role.CUSTODIAN, Role.AUDITOR)


@get("/", summary="The data sets that you may use", sync_to_thread=True)
def listed(registry: TheRegistry, who: Caller) -> list[Json]:
    """All of them for custodians and auditors, and why one is not served; for an analyst those with a grant, without
    the whole budget.
    """
    if who.role in READERS:
        served = [
            {"data_set": name, **session_json(name, registry.data_set(name).session())} for name in registry.names
        ]
        return [*served, *({"data_set": name, "set_aside": why} for name, why in registry.set_aside.items())]
    if who.role is Role.PRODUCER:
        return [{"data_set": name} for name in registry.names]
    own = [(name, [given for given in registry.granted(name) if given.grant.to == who.name]) for name in registry.names]
    return [_granted_here(name, given, registry.identity.now()) for name, given in own if given]


def _granted_here(name: str, given: list[GrantedSession], now: int) -> Json:
    standing = [one for one in given if not one.grant.revoked and (one.grant.until is None or now < one.grant.until)]
    return {
        "data_set": name,
        "sessions": [str(one.id) for one in given],
        "standing": [str(one.id) for one in standing],
    }


@get("/{name:str}", summary="What a data set protects, and what its columns are", sync_to_thread=True)
def described(registry: TheRegistry, who: Caller, name: InPath) -> Json:
    """The declaration, which is public to everyone with a grant here."""
    must_see(registry, who, name)
    return {"data_set": name, "description": str(registry.data_set(name).source.describe())}


@get(
    "/{name:str}/report",
    summary="The custodian's report: raw data",
    guards=[for_roles(Role.CUSTODIAN)],
    sync_to_thread=True,
)
def reported(registry: TheRegistry, name: InPath) -> Json:
    """What became of the given values: raw data, for custodians alone. No cache may keep it."""
    table = registry.data_set(name).source
    if not isinstance(table, cp.Table):
        raise InvalidRequest(f"{name} is not a table: there is a report on what a table was bound from")
    return {"data_set": name, **table.check().plain()}


@get("/{name:str}/grants", summary="Who was granted what", guards=[for_roles(*READERS)], sync_to_thread=True)
def granted(registry: TheRegistry, name: InPath, after: After = 0, limit: Limit = PAGE) -> Response[list[Json]]:
    """Every grant, with how much of it is used, in pages; `Link` names the next."""
    grants = list(registry.granted(name))
    page = [grant_json(one.id, one.grant, one.session) for one in grants[after : after + limit]]
    return page_of(f"/v1/data-sets/{name}/grants", page, len(grants), after, limit)


@post("/{name:str}/grants", summary="Grant a budget", guards=[for_roles(Role.CUSTODIAN)], sync_to_thread=True)
def grant(registry: TheRegistry, who: Caller, name: InPath, data: JSONBody[GrantBody], request_id: RequestId) -> Json:
    """Charge the data set with a budget for an analyst; the same `Idempotency-Key` grants it once."""
    whole = registry.data_set(name).session().acting_as(who.name)
    given = whole.grant(
        registry.grantee(data.to),
        decode_loss(data.within),
        until=later(data.until),
        mechanisms=_kinds(data.mechanisms),
        delta=data.delta,
        sampled=data.sampled,
        id=request_id,
    )
    return session_json(name, given)


@delete(
    "/{name:str}/grants/{session:str}",
    summary="Revoke a grant",
    guards=[for_roles(Role.CUSTODIAN)],
    status_code=200,
    sync_to_thread=True,
)
def revoke(registry: TheRegistry, who: Caller, name: InPath, session: InPath) -> Json:
    """Nothing more is launched or asked in it; what was launched stays charged."""
    whole, given = _given(registry, who, name, session)
    whole.revoke(given)
    return session_json(name, whole)


@post(
    "/{name:str}/grants/{session:str}/recount",
    summary="Take back what a revoked grant left unused",
    guards=[for_roles(Role.CUSTODIAN)],
    status_code=200,
    sync_to_thread=True,
)
def recount(registry: TheRegistry, who: Caller, name: InPath, session: InPath) -> Json:
    """Where a theorem allows it; else the charge stays, and the refusal says why."""
    whole, given = _given(registry, who, name, session)
    whole.recount(given)
    return session_json(name, whole)


@post(
    "/{name:str}/reopening",
    summary="Reopen data that could not answer",
    guards=[for_roles(Role.CUSTODIAN)],
    status_code=200,
    sync_to_thread=True,
)
def reopen(registry: TheRegistry, who: Caller, name: InPath) -> Json:
    """After `DataFailed`, once the log `counterpoint.custodian` has been read: launches and asks begin again."""
    whole = registry.data_set(name).session().acting_as(who.name)
    whole.reopen()
    note_reopened(name, who.name)
    return session_json(name, whole)


@post(
    "/{name:str}/recovery",
    summary="Recover a data set whose newest record was lost",
    guards=[for_roles(Role.CUSTODIAN)],
    status_code=200,
    sync_to_thread=True,
)
def recover(registry: TheRegistry, who: Caller, name: InPath, data: JSONBody[ConfirmBody]) -> Json:
    """Serve a record that is behind its witness: its budget counts as spent, for ever, and its answers can be read."""
    if data.confirm != name:
        raise InvalidRequest(f"this cannot be undone, so nothing was done: confirm it with the name, {name[:80]!r}")
    return {"data_set": name, "recovered": registry.recover(name, by=who.name)}


@get("/{name:str}/versions", summary="The versions of the data", sync_to_thread=True)
def versions(registry: TheRegistry, who: Caller, name: InPath) -> list[Json]:
    """All of them, in order. Analysts see their numbers and times; the rest is for custodians and auditors."""
    must_see(registry, who, name)
    found = registry.data_set(name).session().versions
    return [version_json(version if who.role in READERS else version.public) for version in found]


@post(
    "/{name:str}/versions",
    summary="Make the data anew its next version",
    guards=[for_roles(Role.CUSTODIAN)],
    sync_to_thread=True,
)
def refresh(
    registry: TheRegistry, who: Caller, name: InPath, data: JSONBody[VersionBody], request_id: RequestId
) -> Json:
    """Read the configuration and the rows again: launches see them then. The same `Idempotency-Key` does it once.

    The budget stays as it is. With `keep`, handles of the version before go on answering from its rows until the
    service stops; without it they answer no more (`DataReplaced`).
    """
    made = registry.data_set(name).refresh(who.name, note=data.note, keep=data.keep, id=request_id)
    return {"data_set": name, **version_json(made)}


@post("/{name:str}/items", summary="Append to a stream", guards=[for_roles(Role.PRODUCER)], sync_to_thread=True)
def append(registry: TheRegistry, name: InPath, data: JSONBody[ItemsBody], request_id: RequestId) -> Json:
    """Items arrive in this order; the same `Idempotency-Key` adds them once."""
    stream = registry.data_set(name).source
    if not isinstance(stream, cp.Stream):
        raise InvalidRequest(f"{name} is not a stream")
    stream.extend(data.items, **({} if data.owners is None else {"units": data.owners}), id=request_id)
    return {"data_set": name, "items": len(data.items)}


@post("/{name:str}/rows", summary="Put rows", guards=[for_roles(Role.PRODUCER)], sync_to_thread=True)
def put(registry: TheRegistry, name: InPath, data: JSONBody[RowsBody], request_id: RequestId) -> Json:
    """Put rows into a live table: a row that is there is replaced. The same `Idempotency-Key` puts them once."""
    _live_table(registry, name).put(data.rows, id=request_id)
    return {"data_set": name, "updates": len(data.rows)}


@post("/{name:str}/removals", summary="Remove rows", guards=[for_roles(Role.PRODUCER)], sync_to_thread=True)
def remove(registry: TheRegistry, name: InPath, data: JSONBody[RowsBody], request_id: RequestId) -> Json:
    """Remove rows of a live table, each named by its unit and key. The response does not say whether a row existed."""
    _live_table(registry, name).remove(data.rows, id=request_id)
    return {"data_set": name, "updates": len(data.rows)}


@post(
    "/{name:str}/verification",
    summary="Verify the record",
    guards=[for_roles(*READERS)],
    status_code=200,
    sync_to_thread=True,
)
def verify(registry: TheRegistry, name: InPath) -> Json:
    """Follow the chain, replay every charge, and compare with what is stored; the dashboard shows the result."""
    found = registry.verified(name)
    if found.failure is not None:
        raise LedgerTampered(found.failure)
    return {"data_set": name, "holds": True}


@get(
    "/{name:str}/record",
    summary="The public record",
    guards=[for_roles(*READERS)],
    media_type="application/jsonl",
    sync_to_thread=True,
)
def record(registry: TheRegistry, name: InPath) -> Stream:
    """Every entry of the chain as JSON lines, which `counterpoint/checker.py` checks; no answer is in it."""
    return sent_record(registry, name)


def sent_record(registry: Registry, name: str, headers: Mapping[str, str] = {}) -> Stream:
    """The public record of a data set, sent in pages."""
    lines = registry.data_set(name).session()._engine.ledger.record()
    first = next(lines)  # what cannot be read is an error before anything is sent
    return Stream(_in_pages(chain([first], lines)), media_type="application/jsonl", headers=dict(headers))


def _in_pages(lines: Iterator[str]) -> Iterator[str]:
    while page := list(islice(lines, RECORD_PAGE)):
        yield "".join(f"{line}\n" for line in page)


def _given(registry: Registry, who: Principal, name: str, text: str) -> tuple[Session, Session]:
    id = SessionId.read(text)
    found = registry.reached(who, text)
    if id.data_set != name or not isinstance(found, Session):
        raise unknown(text)
    return registry.data_set(name).session().acting_as(who.name), found


def _live_table(registry: Registry, name: str) -> cp.LiveTable:
    table = registry.data_set(name).source
    if not isinstance(table, cp.LiveTable):
        raise InvalidRequest(f"{name} is not a live table")
    return table


def _kinds(names: list[str] | None) -> list[type[Mechanism]] | None:
    if names is None:
        return None
    wrong = [name for name in names if name not in EXACT_MECHANISMS]
    if wrong:
        raise InvalidRequest(f"mechanisms are among {', '.join(EXACT_MECHANISMS)}, not {wrong[0][:80]!r}")
    return [named(name) for name in names]


def must_see(registry: Registry, who: Principal, name: str) -> None:
    """Other people's data sets look as if they did not exist."""
    seen = who.role in READERS or any(given.grant.to == who.name for given in registry.granted(name))
    if not seen:
        raise unknown(name)


ROUTES = Router(
    "/v1/data-sets",
    route_handlers=[
        listed,
        described,
        reported,
        granted,
        grant,
        revoke,
        recount,
        reopen,
        recover,
        versions,
        refresh,
        append,
        put,
        remove,
        verify,
        record,
    ],
)
