"""What a custodian does while the service runs: principals, keys and backups; and the health of the service."""

import time
from collections import defaultdict
from typing import Any

from litestar import Request, Response, Router, delete, get, post
from litestar.params import JSONBody

from counterpoint.errors import NotAllowed
from counterpoint.ledger.admin import back_up
from counterpoint.ledger.store.sqlite import BackupFailed
from counterpoint.service.api.inputs import After, Body, Caller, InPath, Json, Limit, TheRegistry, for_roles, page_of
from counterpoint.service.identity import Role
from counterpoint.service.readiness import Readiness
from counterpoint.wire.problems import PROBLEM, unknown
from counterpoint.wire.requests import PAGE

CUSTODIAN = [for_roles(Role.CUSTODIAN)]


class PrincipalBody(Body, frozen=True, kw_only=True):
    """A new principal."""

    name: str
    role: Role


class KeyBody(Body, frozen=True, kw_only=True):
    """A new key; it expires after some days, if they are given."""

    days: int | None = None


@get("/principals", summary="Principals and the ids of their keys", guards=CUSTODIAN, sync_to_thread=True)
def listed(registry: TheRegistry, after: After = 0, limit: Limit = PAGE) -> Response[list[Json]]:
    """Also those that ended: histories name them. A key is named by its public id. In pages; `Link` names the next."""
    identity = registry.identity
    now = identity.now()
    people, keys = identity.principals(), identity.all_keys()
    own = defaultdict(list)
    for key in keys:
        own[key.principal].append({"id": key.id, "stands": key.stands(now), "expires": key.expires})
    page = [
        {"name": one.name, "role": one.role, "ended": one.ended is not None, "keys": own[one.name]}
        for one in people[after : after + limit]
    ]
    return page_of("/v1/principals", page, len(people), after, limit)


@post("/principals", summary="Add a principal", guards=CUSTODIAN, sync_to_thread=True)
def add(registry: TheRegistry, who: Caller, data: JSONBody[PrincipalBody]) -> Json:
    """A name is given once, whatever becomes of its principal."""
    registry.identity.add(data.name, data.role, by=who.name)
    return {"name": data.name, "role": data.role.value}


@post("/principals/{name:str}/keys", summary="Make a key", guards=CUSTODIAN, sync_to_thread=True)
def new_key(registry: TheRegistry, who: Caller, name: InPath, data: JSONBody[KeyBody]) -> Json:
    """The key is shown only once."""
    made = registry.identity.new_key(name, days=data.days, by=who.name)
    return {"name": name, "id": made.id, "key": made.shown()}


@delete("/principals/{name:str}", summary="End a principal", guards=CUSTODIAN, status_code=200, sync_to_thread=True)
def end(registry: TheRegistry, who: Caller, name: InPath) -> Json:
    """All its keys end with it; what it did stays on record."""
    if name not in {one.name for one in registry.identity.principals()}:
        raise unknown(name)
    registry.identity.end(name, by=who.name)
    return {"name": name, "ended": True}


@delete("/keys/{id:str}", summary="Revoke a key", guards=CUSTODIAN, status_code=200, sync_to_thread=True)
def end_key(registry: TheRegistry, who: Caller, id: InPath) -> Json:
    """By its public id."""
    if not registry.identity.has_key(id):
        raise unknown(id)
    registry.identity.end_key(id, by=who.name)
    return {"id": id, "stands": False}


@post("/backups", summary="Back up the ledger", guards=CUSTODIAN, sync_to_thread=True)
def backup(registry: TheRegistry) -> Json:
    """Copy an SQLite ledger into the folder that the operator has set, without holding up requests."""
    if registry.place.in_postgres:
        raise NotAllowed("this ledger is in PostgreSQL: back it up as a database, by pg_dump or a standby")
    if registry.backups is None:
        raise NotAllowed("this service keeps no backups: set backups = 'FOLDER' in its configuration")
    try:
        registry.backups.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise NotAllowed(f"the folder of the backups cannot be made: {error.strerror}") from None
    file = registry.backups / f"ledger-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{time.time_ns() % 10**9:09d}.db"
    try:
        back_up(registry.place, file)
    except BackupFailed as error:
        raise NotAllowed(f"the backup cannot be written: {error.reason}") from None
    return {"file": file.name}


PRINCIPAL_ROUTES = Router("/v1", route_handlers=[listed, add, new_key, end, end_key, backup])


@get("/health", sync_to_thread=False, summary="Whether the process lives", security=[])
def health() -> dict[str, str]:
    """Always so, if it answers."""
    return {"status": "alive"}


@get("/ready", summary="Whether every data set that is served can be reached", security=[])
async def ready(request: Request[Any, Any, Any]) -> Response[dict[str, Any]]:
    """Within a second. Every ledger was asked just now; one that was lost is opened anew."""
    readiness: Readiness = request.app.state.readiness
    error = await readiness.why_not()
    if error is None:
        return Response({"status": "ready"})
    detail = "a ledger or a data set cannot be reached; the log of the service says which"
    said = {"type": "about:blank", "title": type(error).__name__, "status": 503, "detail": detail}
    return Response(said, status_code=503, media_type=PROBLEM, headers={"Retry-After": "1"})


HEALTH_ROUTES = (health, ready)
