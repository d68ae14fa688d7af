"""Grants: who may launch, on which data set, up to what loss, and until when.

Before a revocation the page says what stops and what stays charged. Recounting returns what a revoked grant left unused
where a theorem allows it (theory, Returning); elsewhere the page says why not.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from litestar import Request, Response, get, post

from counterpoint.errors import CounterpointError, InvalidParameter, LedgerError
from counterpoint.ledger.state import Grant, HistoryEntry
from counterpoint.service.api.inputs import InPath, TheRegistry, for_roles, request_id
from counterpoint.service.identity import Principal, Role, SignedIn
from counterpoint.service.pages.access import OVERSEERS, By, Form, visible_grants, visible_timeline
from counterpoint.service.pages.render import elsewhere, page
from counterpoint.service.pages.session import PageRefusal, refusal
from counterpoint.service.pages.widgets import Meter, meter_of, plain_meter_of
from counterpoint.service.pages.words import ahead, day, figure, whole_number
from counterpoint.service.registry import GrantedSession, Registry, later
from counterpoint.wire.problems import unknown
from counterpoint.wire.requests import MECHANISMS, decode_loss, named

MEASURES = {
    "PureDP": ("epsilon",),
    "ApproxDP": ("epsilon", "delta"),
    "zCDP": ("rho",),
    "GaussianDP": ("mu",),
}
"""What a form grants in, and the numbers that it takes: an amount, and a delta."""


LINES = 100
"""How many grants a page lists."""


@dataclass(frozen=True, slots=True)
class GrantLine:
    """A grant, as the page shows it; `mark` and `state` are its state as a sign and in words."""

    id: str
    data_set: str
    to: str
    meter: Meter
    mechanisms: str
    until: str
    mark: str
    state: str
    revoked: bool


@get("/grants", sync_to_thread=True, include_in_schema=False, guards=[for_roles(*OVERSEERS)])
def show(request: Request[Any, Any, Any], registry: TheRegistry, by: By) -> Response[Any]:
    """All grants, in pages from `?start=` on; with `?revoke=`, what revoking that one would mean."""
    start = max(1, whole_number(request.query_params.get("start", ""), 1))
    return _page(registry, by, asked=request.query_params.get("revoke"), start=start)


@post("/grants", sync_to_thread=True, include_in_schema=False, guards=[for_roles(Role.CUSTODIAN)])
def grant(registry: TheRegistry, by: By, data: Form) -> Response[Any]:
    """Charge a data set with a budget for an analyst."""
    form = {key: value for key, value in data.items() if isinstance(value, str)}
    names = data.get("mechanisms", [])
    chosen = [names] if isinstance(names, str) else list(names)
    try:
        whole = registry.data_set(form.get("data_set", "")).session().acting_as(by.who.name)
        whole.grant(
            registry.grantee(form.get("to", "")),
            _loss(form),
            until=later(_until(form.get("until", ""))),
            mechanisms=[named(name) for name in MECHANISMS if name in chosen] or None,
            id=request_id(form.get("once")),
        )
    except LedgerError:
        raise
    except CounterpointError as error:
        refused, status = refusal(error)
        return _page(registry, by, refused=refused, form=form, status=status)
    return elsewhere("/grants")


@post("/grants/{session:str}/revoke", sync_to_thread=True, include_in_schema=False, guards=[for_roles(Role.CUSTODIAN)])
def revoke(registry: TheRegistry, by: By, session: InPath) -> Response[Any]:
    """Stop it at once; its charge stays."""
    given = _given(registry, by.who, session)
    registry.data_set(given.id.data_set).session().acting_as(by.who.name).revoke(given.session)
    return elsewhere("/grants")


@post("/grants/{session:str}/recount", sync_to_thread=True, include_in_schema=False, guards=[for_roles(Role.CUSTODIAN)])
def recount(registry: TheRegistry, by: By, session: InPath) -> Response[Any]:
    """Return what it left unused, or say why not."""
    given = _given(registry, by.who, session)
    try:
        registry.data_set(given.id.data_set).session().acting_as(by.who.name).recount(given.session)
    except LedgerError:
        raise
    except CounterpointError as error:
        refused, status = refusal(error)
        return _page(registry, by, refused=refused, status=status)
    return elsewhere("/grants")


def _page(
    registry: Registry,
    by: SignedIn,
    *,
    start: int = 1,
    asked: str | None = None,
    refused: PageRefusal | None = None,
    form: dict[str, str] | None = None,
    status: int = 200,
) -> Response[Any]:
    now = time.time()
    grants = [given for name in registry.names for given in visible_grants(registry, by.who, name)]
    chosen = [given for given in grants if str(given.id) == asked]
    listed = chosen or grants[start - 1 : start - 1 + LINES]
    facts = {name: registry.data_set(name).session().history for name in {given.id.data_set for given in listed}}
    lines = [_line(given, by.who, now, facts[given.id.data_set]) for given in listed]
    analysts = [one.name for one in registry.identity.principals() if one.role == Role.ANALYST and one.ended is None]
    data_sets = [(name, _left(registry, name)) for name in registry.names]
    return page(
        "grants",
        by,
        here="/grants",
        status=status,
        lines=lines,
        earlier=max(1, start - LINES) if start > 1 and not chosen else None,
        later=start + LINES if start - 1 + LINES < len(grants) and not chosen else None,
        number=len(grants),
        start=start,
        asked=asked,
        refused=refused,
        form=form or {},
        analysts=analysts,
        data_sets=data_sets,
        measures=tuple(MEASURES),
        mechanisms=MECHANISMS,
    )


def _line(given: GrantedSession, who: Principal, now: float, facts: Sequence[HistoryEntry]) -> GrantLine:
    """A grant, by the history of its data set; only one that has reserved something needs its timeline."""
    grant, path = given.grant, given.id.path
    recounts = (fact for fact in facts if fact.kind == "recount" and fact.path == path[:-1])
    is_recounted = any(fact.what.split()[1].rstrip(":") == str(path[-1]) for fact in recounts)
    mark, state = ("end", "recounted") if is_recounted else _state(grant, now)
    reserved = any(fact.kind == "delegation" and fact.path == path for fact in facts)
    meter = meter_of(given.session, visible_timeline(given.session, who)) if reserved else plain_meter_of(given.session)
    return GrantLine(
        str(given.id),
        given.id.data_set,
        grant.to,
        meter,
        "all" if grant.mechanisms is None else ", ".join(grant.mechanisms),
        "no end" if grant.until is None else day(grant.until),
        mark,
        state,
        grant.revoked,
    )


def _state(grant: Grant, now: float) -> tuple[str, str]:
    if grant.revoked:
        return "end", "revoked"
    if grant.until is None:
        return "on", "active"
    if now >= grant.until:
        return "end", "expired"
    return ("stop", f"ends {ahead(grant.until, now)}") if grant.until - now < 7 * 86_400 else ("on", "active")


def _left(registry: Registry, name: str) -> str:
    meter = plain_meter_of(registry.data_set(name).session())
    return "an odometer" if meter.ceiling is None else f"{meter.symbol} {figure(meter.left)} left"


def _given(registry: Registry, who: Principal, text: str) -> GrantedSession:
    for name in registry.names:
        for given in visible_grants(registry, who, name):
            if str(given.id) == text:
                return given
    raise unknown(text)


def _loss(form: dict[str, str]) -> Any:
    measure = form.get("measure", "")
    amounts = (form.get("amount", "").strip(), form.get("delta", "").strip())
    return decode_loss({"measure": measure, **dict(zip(MEASURES.get(measure, ()), amounts, strict=False))})


def _until(text: str) -> datetime | None:
    """The end of a day, in UTC."""
    if not text:
        return None
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC) + timedelta(days=1)
    except ValueError:
        raise InvalidParameter("until is a day such as 2030-01-31") from None
