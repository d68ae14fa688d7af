"""The data sets: what is left of each budget, what needs attention, and how items arrive.

Custodians and auditors see the budget of each data set, an analyst what is left of each grant, a producer the names.
"""

import time
from dataclasses import dataclass, replace
from typing import Any

from litestar import Request, Response, get
from markupsafe import Markup

from counterpoint.display.markup import element, joined, percent
from counterpoint.display.timeline import Timeline, count
from counterpoint.service.api.inputs import TheRegistry
from counterpoint.service.identity import Principal, Role
from counterpoint.service.pages.access import OVERSEERS, By, source_words, visible_grants, visible_timeline
from counterpoint.service.pages.render import drawn, page, refreshing
from counterpoint.service.pages.widgets import Meter, meter_of
from counterpoint.service.pages.words import ahead, day, figure
from counterpoint.service.refresh_preview import report_of
from counterpoint.service.registry import GrantedSession, Registry

_DAYS = 90
_NARROWEST = 1 / 512
"""Steps closer together than this part of the axis are drawn as one."""
_SOON = 7 * 86_400


@dataclass(frozen=True, slots=True)
class IndexLine:
    """A data set, or a grant of one; a producer sees no meter."""

    name: str
    href: str | None
    what: str
    meter: Meter | None = None
    spark: str = ""
    sessions: str = ""
    active: float | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that needs a person: about what, the sentence, and where to go."""

    about: str
    says: str
    href: str
    link: str
    stops: bool = False


@get("/", sync_to_thread=True, include_in_schema=False)
def index(request: Request[Any, Any, Any], registry: TheRegistry, by: By) -> Response[Any]:
    """The first page."""
    lines, now = _lines(registry, by.who), time.time()
    notices = [*_set_aside(registry, by.who), *_short(lines), *_ending(registry, by.who, now)]
    notices += [*_changed(registry, by.who), *_ill_fitting(registry, by.who)]
    return page("index", by, here="/", live=refreshing(request), lines=lines, notices=notices)


def _lines(registry: Registry, who: Principal) -> list[IndexLine]:
    if who.role in OVERSEERS:
        return [_data_set(registry, who, name) for name in registry.names]
    if who.role is Role.PRODUCER:
        return [IndexLine(name, None, source_words(registry.data_set(name).source, who)) for name in registry.bound]
    return [_granted(name, given, who) for name in registry.bound for given in visible_grants(registry, who, name)]


def _data_set(registry: Registry, who: Principal, name: str) -> IndexLine:
    if registry.data_set(name).has_other_rows():
        return IndexLine(name, f"/data-sets/{name}", "not served: its rows or its declaration were changed in place")
    whole = registry.data_set(name).session()
    timeline = visible_timeline(whole, who, by="time")
    standing = [given for given in registry.granted(name) if not given.grant.revoked]
    sessions = count(len(standing), "grant") if standing else "none"
    return IndexLine(
        name,
        f"/sessions/{name}",
        source_words(whole._source, who),
        meter_of(whole, timeline),
        _spark(timeline, time.time()),
        sessions,
        timeline.times[-1] if timeline.times else None,
    )


def _granted(name: str, given: GrantedSession, who: Principal) -> IndexLine:
    session, grant, now = given.session, given.grant, time.time()
    timeline = visible_timeline(session, who, by="time")
    has_expired = grant.until is not None and now >= grant.until
    ended = "revoked · " if grant.revoked else "expired · " if has_expired else ""
    return IndexLine(
        str(given.id),
        f"/sessions/{given.id}",
        f"{ended}your session on {name} · {source_words(session._source, who)}",
        replace(meter_of(session, timeline), ended=bool(ended)),
        _spark(timeline, now),
        "",
        timeline.times[-1] if timeline.times else None,
    )


def _short(lines: list[IndexLine]) -> list[Notice]:
    says = "{} {} left. Running mechanisms still answer; larger launches are refused."
    return [
        Notice(
            line.name,
            f"has {says.format(line.meter.symbol, figure(line.meter.left))}",
            line.href,
            "See its session",
            True,
        )
        for line in lines
        if line.meter is not None and line.href is not None and line.meter.is_short
    ]


def _set_aside(registry: Registry, who: Principal) -> list[Notice]:
    """Data sets whose record cannot be trusted."""
    found = registry.set_aside if who.role in OVERSEERS else {}
    return [
        Notice(name, f"is not served. {why}", f"/data-sets/{name}", "See what to do", True)
        for name, why in found.items()
    ]


def _changed(registry: Registry, who: Principal) -> list[Notice]:
    """Data sets whose rows were replaced where they lie, and that the ledger does not know again."""
    names = [name for name in registry.names if name not in registry.bound] if who.role in OVERSEERS else []
    says = "is not served: its rows or its declaration were changed in place."
    return [Notice(name, says, f"/data-sets/{name}", "Make them the next version", True) for name in names]


def _ill_fitting(registry: Registry, who: Principal) -> list[Notice]:
    """Tables of which more than 1 % is lost or changed: that follows from exact counts, so custodians alone see it."""
    found = []
    for name in registry.bound if who.role is Role.CUSTODIAN else ():
        report = report_of(registry.data_set(name).source)
        faults = () if report is None else report.faults()
        if faults:
            says = f"does not fit its declaration: {faults[0]}{', and more' if len(faults) > 1 else ''}."
            found.append(Notice(name, says, f"/data-sets/{name}", "See its report"))
    return found


def _ending(registry: Registry, who: Principal, now: float) -> list[Notice]:
    """Grants that end within a week."""
    found = []
    for name in () if who.role is Role.PRODUCER else registry.bound:
        for given in visible_grants(registry, who, name):
            until = given.grant.until
            if not given.grant.revoked and until is not None and now < until < now + _SOON:
                says = f"has a grant on {name} that ends {ahead(until, now)}, on {day(until)}."
                found.append(Notice(given.grant.to, says, f"/sessions/{given.id}", "See its session"))
    return found


def _spark(timeline: Timeline, now: float) -> Markup:
    """The loss over the last 90 days, under its ceiling."""
    highest = timeline.budget.ceiling or timeline.lost or 1.0
    first = now - _DAYS * 86_400
    level, start = 0.0, 0.0
    parts: list[str] = []
    for step in (*timeline.steps, None):
        end = 1.0 if step is None else min(1.0, max(0.0, (timeline.times[step.at - 1] - first) / (now - first)))
        if end - start >= _NARROWEST or step is None:
            y = 30 - 26 * min(1.0, level / highest)
            parts.append(
                element("rect", class_="area", x=percent(start), width=percent(end - start), y=y, height=30 - y)
            )
            parts.append(element("line", x1=percent(start), x2=percent(end), y1=y, y2=y))
            start = end
        level = level if step is None else step.after
    y = 30 - 26 * min(1.0, level / highest)
    parts.append(element("circle", cx="100%", cy=y, r=3))
    cap = [element("line", class_="cap", x1=0, x2="100%", y1=4, y2=4)] if timeline.budget.ceiling else []
    words = f"{figure(timeline.lost)} lost, over the last {_DAYS} days"
    return drawn(element("svg", joined(*cap, *parts), class_="spark", role="img", aria_label=words))
