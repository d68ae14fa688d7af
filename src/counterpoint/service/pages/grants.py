"""Grants: who may launch, on which data set, up to what loss, and until when.

Before a revocation the page says what stops and what stays charged. Recounting returns what a revoked grant left unused
where a theorem allows it (theory, Returning); elsewhere the page says why not.
"""

import csv
import io
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from litestar import Request, Response, get, post

from counterpoint.errors import CounterpointError, InvalidParameter, LedgerError
from counterpoint.ledger.state import Path
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.service.api.inputs import InPath, TheRegistry, for_roles, request_id
from counterpoint.service.identity import Principal, Role, SignedIn
from counterpoint.service.pages.access import OVERSEERS, By, Form, visible_grants, visible_timeline
from counterpoint.service.pages.render import download, elsewhere, page
from counterpoint.service.pages.session import PageRefusal, refusal
from counterpoint.service.pages.widgets import Meter, meter_of, plain_meter_of
from counterpoint.service.pages.words import ahead, day, figure, whole_number
from counterpoint.service.registry import GrantedSession, Registry, later
from counterpoint.session.given_away import used_share
from counterpoint.wire.problems import unknown
from counterpoint.wire.requests import MECHANISMS, decode_loss, named

MEASURES = {
    "PureDP": ("epsilon",),
    "ApproxDP": ("epsilon", "delta"),
    "zCDP": ("rho",),
    "GaussianDP": ("mu",),
}
"""What a form grants in, and the numbers that it takes: an amount, and a delta."""


LINES = 25
"""How many grants a page lists."""
FEW = 12
"""Up to how many grants the form for a new one stands beside them, and no filters above."""
_SOON = 7 * 86_400
STATES = {
    "": "all",
    "standing": "standing",
    "soon": "ending within 7 days",
    "short": "with less than 5 % left",
    "ended": "ended",
    "open": "ended, not recounted",
}
"""What can be chosen by state, and its words."""
_ORDERS = {"": "granted first", "soonest": "ends soonest", "newest": "granted last"}


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


@dataclass(frozen=True, slots=True)
class GrantFacts:
    """A grant with what it is chosen by; its session is looked at only if it is listed."""

    given: GrantedSession
    recounted: bool
    divided: bool
    """Whether it has given away parts of its budget."""
    now: float

    @property
    def standing(self) -> bool:
        """Whether it was not revoked and has not expired."""
        grant = self.given.grant
        return not grant.revoked and (grant.until is None or self.now < grant.until)

    @property
    def ends_soon(self) -> bool:
        """Whether it ends within a week."""
        until = self.given.grant.until
        return self.standing and until is not None and until - self.now < _SOON

    @property
    def is_short(self) -> bool:
        """Whether less than a twentieth of it is left."""
        return self.standing and used_share(self.given.row) > 1 - 1 / 20

    def is_in(self, state: str) -> bool:
        """Whether it is in one of the `STATES`."""
        if state == "open":
            return self.given.grant.revoked and not self.recounted
        chosen = {"standing": self.standing, "soon": self.ends_soon, "ended": not self.standing}
        return self.is_short if state == "short" else chosen.get(state, True)


@dataclass(frozen=True, slots=True)
class GrantFilters:
    """What the reader chose; it has an address."""

    who: str = ""
    data_set: str = ""
    state: str = ""
    order: str = ""

    @classmethod
    def read(cls, query: Mapping[str, str]) -> "GrantFilters":
        """The filters in an address; what is not known is left out."""
        state, order = query.get("state", ""), query.get("order", "")
        known = (state if state in STATES else "", order if order in _ORDERS else "")
        return cls(query.get("who", ""), query.get("data", ""), *known)

    def chosen(self, grants: Sequence[GrantFacts]) -> list[GrantFacts]:
        """The grants that are shown, in their order."""
        found = [
            one
            for one in grants
            if one.given.grant.to.lower().startswith(self.who.lower())
            and self.data_set in ("", one.given.id.data_set)
            and one.is_in(self.state)
        ]
        if self.order == "newest":
            return found[::-1]
        if self.order == "soonest":
            found.sort(key=lambda one: one.given.grant.until or float("inf"))
        return found

    def address(self, **changes: object) -> str:
        """The same view, changed."""
        said = {"who": self.who, "data": self.data_set, "state": self.state, "order": self.order, **changes}
        chosen = {key: value for key, value in said.items() if value}
        return f"/grants?{urlencode(chosen)}" if chosen else "/grants"


@get("/grants", sync_to_thread=True, include_in_schema=False, guards=[for_roles(*OVERSEERS)])
def show(request: Request[Any, Any, Any], registry: TheRegistry, by: By) -> Response[Any]:
    """The chosen grants, in pages from `?start=` on; with `?revoke=`, what revoking that one would mean."""
    query = request.query_params
    start = max(1, whole_number(query.get("start", ""), 1))
    form = {"to": query["to"]} if query.get("to") else None
    opened = "new" in query or form is not None
    return _page(
        registry, by, filters=GrantFilters.read(query), asked=query.get("revoke"), start=start, form=form, opened=opened
    )


@get("/grants.csv", sync_to_thread=True, include_in_schema=False, guards=[for_roles(*OVERSEERS)])
def as_csv(request: Request[Any, Any, Any], registry: TheRegistry, by: By) -> Response[Any]:
    """The chosen grants, as a file for a spreadsheet."""
    chosen = GrantFilters.read(request.query_params).chosen(_facts(registry, by.who, time.time()))
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(("session", "who", "used of it", "budget", "may launch", "until (UTC)", "state"))
    for one in chosen:
        grant, mechanism = one.given.grant, one.given.row.mechanism
        assert isinstance(mechanism, Concurrent)
        until = "" if grant.until is None else datetime.fromtimestamp(grant.until, UTC).isoformat()
        budget = repr(mechanism.claim.loss)
        kinds = "all" if grant.mechanisms is None else " ".join(grant.mechanisms)
        share = f"{100 * used_share(one.given.row):.3g}%"
        table.writerow((one.given.id, grant.to, share, budget, kinds, until, _state(one)[1]))
    return download(text.getvalue(), "grants.csv", "text/csv; charset=utf-8")


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
    filters: GrantFilters = GrantFilters(),
    start: int = 1,
    asked: str | None = None,
    refused: PageRefusal | None = None,
    form: dict[str, str] | None = None,
    opened: bool = False,
    status: int = 200,
) -> Response[Any]:
    grants = _facts(registry, by.who, time.time())
    chosen = filters.chosen(grants)
    revoked = [one for one in grants if str(one.given.id) == asked]
    listed = revoked or chosen[start - 1 : start - 1 + LINES]
    analysts = [one.name for one in registry.identity.principals() if one.role == Role.ANALYST and one.ended is None]
    return page(
        "grants",
        by,
        here="/grants",
        status=status,
        lines=[_line(one, by.who) for one in listed],
        earlier=filters.address(start=max(1, start - LINES)) if start > 1 and not revoked else None,
        later=filters.address(start=start + LINES) if start - 1 + LINES < len(chosen) and not revoked else None,
        tallies=_tallies(grants, filters) if len(grants) > FEW else (),
        csv=filters.address().replace("/grants", "/grants.csv", 1),
        number=len(grants),
        found=len(chosen),
        start=start,
        filters=filters,
        states=STATES,
        orders=_ORDERS,
        asked=asked,
        refused=refused,
        form=form or {},
        opened=opened or refused is not None or len(grants) <= FEW,
        analysts=analysts,
        data_sets=[(name, _left(registry, name)) for name in registry.bound],
        measures=tuple(MEASURES),
        mechanisms=MECHANISMS,
    )


def _facts(registry: Registry, who: Principal, now: float) -> list[GrantFacts]:
    """All grants that a principal sees; the history of each data set is looked through once."""
    found = []
    for name in registry.bound:
        recounted: set[Path] = set()
        divided: set[Path] = set()
        for fact in registry.data_set(name).session()._engine.ledger.history():
            if fact.kind == "delegation":
                divided.add(fact.path)
            elif fact.kind == "recount":
                recounted.add((*fact.path, int(fact.what.split()[1].rstrip(":"))))
        for given in visible_grants(registry, who, name):
            path = given.id.path
            found.append(GrantFacts(given, path in recounted, path in divided, now))
    return found


def _tallies(grants: Sequence[GrantFacts], filters: GrantFilters) -> list[tuple[str, str, str, bool]]:
    """How many grants are in a state, in figures and words, the address that shows them, and whether it is this one."""
    unrecounted = sum(one.is_in("open") for one in grants)
    words = {
        "standing": "standing",
        "soon": "end within 7 days",
        "short": "have less than 5 % left",
        "ended": f"ended, {unrecounted:,} revoked and not recounted" if unrecounted else "ended",
    }
    return [
        (f"{sum(one.is_in(state) for one in grants):,}", says, filters.address(state=state), filters.state == state)
        for state, says in words.items()
    ]


def _line(one: GrantFacts, who: Principal) -> GrantLine:
    """A grant as it is listed; only one that has given parts away needs its timeline."""
    given, grant = one.given, one.given.grant
    session = given.session
    mark, state = _state(one)
    return GrantLine(
        str(given.id),
        given.id.data_set,
        grant.to,
        meter_of(session, visible_timeline(session, who)) if one.divided else plain_meter_of(session),
        "all" if grant.mechanisms is None else ", ".join(grant.mechanisms),
        "no end" if grant.until is None else day(grant.until),
        mark,
        state,
        grant.revoked,
    )


def _state(one: GrantFacts) -> tuple[str, str]:
    grant = one.given.grant
    if grant.revoked:
        return "end", "recounted" if one.recounted else "revoked"
    if grant.until is None:
        return "on", "active"
    if not one.standing:
        return "end", "expired"
    return ("stop", f"ends {ahead(grant.until, one.now)}") if one.ends_soon else ("on", "active")


def _left(registry: Registry, name: str) -> str:
    meter = plain_meter_of(registry.data_set(name).session())
    return "an odometer" if meter.ceiling is None else f"{meter.symbol} {figure(meter.left)} left"


def _given(registry: Registry, who: Principal, text: str) -> GrantedSession:
    for name in registry.bound:
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
