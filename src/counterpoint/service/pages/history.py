"""The history: every charge, ask and refusal that its reader may see, newest first. No answers and no data are in it.

Filters are a GET form, so that a view has an address. Runs of asks by one principal in one lane are folded. A refusal
says what was left when it was made. A strip shows when the lines were written, and leads to them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias
from urllib.parse import urlencode

from litestar import Request, Response, get
from markupsafe import Markup

from counterpoint.display.timeline import count, moments
from counterpoint.ledger.state import HistoryEntry
from counterpoint.service.api.inputs import TheRegistry, for_roles
from counterpoint.service.identity import Principal, Role
from counterpoint.service.pages.access import OVERSEERS, By, visible_grants, visible_history, visible_timeline
from counterpoint.service.pages.render import page
from counterpoint.service.pages.widgets import binned, strip
from counterpoint.service.pages.words import as_asked, figure, whole_number
from counterpoint.service.registry import Registry
from counterpoint.session.runner import part_key
from counterpoint.session.session import Session

PAGE = 100
"""How many lines a page has."""
KINDS = {
    "launch": "launches",
    "ask": "asks",
    "question": "questions",
    "refused": "refusals",
    "delegation": "grants and delegations",
    "charge": "releases made elsewhere",
    "revocation": "revocations",
    "recount": "recounts",
    "closing": "closings of the data",
    "reopening": "reopenings of the data",
    "version": "versions of the data",
    "recovery": "recoveries",
    "retirement": "retirements",
    "other": "opened and bound",
}
"""What can be chosen, and its words."""
_SAME = {"refusal": "refused", "denial": "refused"}
_KINDS_OF = {kind: kind for kind in KINDS if kind not in ("refused", "other")} | _SAME
"""By which kind a line of each kind on record is chosen; lines of no other kind are chosen as "other"."""
_WORDS = {
    "launch": "Launch",
    "ask": "Ask",
    "question": "Question",
    "refused": "Refused",
    "delegation": "Granted",
    "charge": "Charged",
    "revocation": "Revoked",
    "recount": "Recounted",
    "closing": "Closed",
    "reopening": "Reopened",
    "version": "Version",
    "recovery": "Recovered",
    "retirement": "Retired",
    "other": "Opened",
}


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """A line of the history of a data set, with its place there."""

    number: int
    data_set: str
    fact: HistoryEntry
    left: str = ""

    @property
    def kind(self) -> str:
        """The kind that it is chosen by."""
        kind = _SAME.get(self.fact.kind, self.fact.kind)
        return kind if kind in KINDS else "other"

    @property
    def words(self) -> str:
        """The kind in a word; a budget that is set aside for parts or a delegated session is granted to no one."""
        reserved = self.kind == "delegation" and "granted to " not in self.fact.what
        return "Reserved" if reserved else _WORDS[self.kind]

    @property
    def what(self) -> str:
        """What was done; of a grant or a delegation its budget, and of an ask without a question that it was asked."""
        if self.kind == "delegation":
            return self.fact.what.rpartition(" at ")[2]
        return as_asked(self.fact.what) or "asked"

    @property
    def where(self) -> str:
        """The session or handle; a part by its key."""
        steps = (str(step if isinstance(step, int) else part_key(step)) for step in self.fact.path)
        return ".".join((self.data_set, *steps))

    @property
    def run(self) -> tuple[object, ...]:
        """The key of a run of lines: asks of one principal in one lane on one day. Other lines stand alone."""
        alone = 0 if self.kind == "ask" else self.number
        return (self.data_set, self.fact.path, self.fact.who, self.kind, alone, self.fact.at // 86_400)


_Found: TypeAlias = tuple[int, int, str, HistoryEntry]
"""A line that was chosen: when, its number, its data set, and what it says."""


@dataclass(frozen=True, slots=True)
class HistoryFilters:
    """The filters that the reader chose."""

    data_set: str
    who: str
    kinds: tuple[str, ...]
    first: str
    last: str
    contains: str

    def choose(self, name: str, facts: Sequence[HistoryEntry]) -> Iterator[_Found]:
        """The lines of a data set that are shown. What was not chosen by is not looked at: there may be many lines."""
        if self.data_set not in ("", name):
            return
        first, end = _seconds(self.first, 0), _seconds(self.last, 1)
        kinds = {kind for kind in _KINDS_OF if _KINDS_OF[kind] in self.kinds} if self.kinds else None
        others = "other" in self.kinds
        contains = self.contains.lower()
        for number, fact in enumerate(facts, 1):
            if kinds is not None and fact.kind not in kinds and not (others and fact.kind not in _KINDS_OF):
                continue
            if self.who and fact.who != self.who:
                continue
            if (first is not None and fact.at < first) or (end is not None and not 0 < fact.at < end):
                continue
            if not contains or contains in fact.what.lower():
                yield fact.at, number, name, fact

    def address(self, start: int) -> str:
        """The same view from a line on."""
        said = [
            ("data", self.data_set),
            ("who", self.who),
            ("from", self.first),
            ("to", self.last),
            ("q", self.contains),
        ]
        chosen = [(key, value) for key, value in said if value] + [("kind", kind) for kind in self.kinds]
        return f"/history?{urlencode([*chosen, ('start', start)])}"


@get(
    "/history",
    sync_to_thread=True,
    include_in_schema=False,
    guards=[for_roles(Role.CUSTODIAN, Role.ANALYST, Role.AUDITOR)],
)
def show(request: Request[Any, Any, Any], registry: TheRegistry, by: By) -> Response[Any]:
    """The page."""
    query = request.query_params
    kinds = tuple(kind for kind in query.getall("kind", []) if kind in KINDS)
    data, who, first, last, contains = (query.get(key, "") for key in ("data", "who", "from", "to", "q"))
    filters = HistoryFilters(data, who, kinds, first, last, contains)
    start = whole_number(query.get("start", "0"), 0)
    everything = [(name, visible_history(session, by.who)) for name, session in _sessions(registry, by.who)]
    chosen = [found for name, facts in everything for found in filters.choose(name, facts)]
    chosen.sort(key=itemgetter(0, 1), reverse=True)
    lines = [HistoryLine(number, name, fact) for _, number, name, fact in chosen[start : start + PAGE]]
    shown = _with_left(registry, by.who, lines)
    return page(
        "history",
        by,
        here="/history",
        runs=[list(run) for _, run in groupby(shown, key=lambda line: line.run)],
        filters=filters,
        kinds=KINDS,
        data_sets=sorted({name for name, facts in everything if facts}),
        people=sorted({fact.who for _, facts in everything for fact in facts if fact.who}),
        strip=_strip(filters, chosen, start, len(shown)),
        records=registry.bound if by.who.role in OVERSEERS else (),
        start=start,
        shown=len(shown),
        found=len(chosen),
        newer=filters.address(max(0, start - PAGE)) if start else None,
        older=filters.address(start + PAGE) if start + PAGE < len(chosen) else None,
    )


def _strip(filters: HistoryFilters, lines: Sequence[_Found], start: int, shown: int) -> Markup | None:
    """When the chosen lines were written, with those of this page marked; a bar leads to its newest line."""
    dated = [line for line in lines if line[0]]
    if len(dated) < 2:
        return None
    oldest_first = dated[::-1]
    low, high = float(dated[-1][0]), float(dated[0][0])
    span = (high - low) or 1.0
    bins = binned([line[0] for line in oldest_first], [line[3].kind in _SAME for line in oldest_first], low, high)
    on_page = dated[start : start + shown]
    chosen = None
    if on_page and len(on_page) < len(dated):
        chosen = (on_page[-1][0] - low) / span, (on_page[0][0] - low) / span
    ticks = [((at - low) / span, words) for at, words in moments(low, high)]
    return strip(
        bins,
        f"When {count(len(dated), 'line')} {'was' if len(dated) == 1 else 'were'} written",
        lambda part: filters.address(len(dated) - 1 - part.last),
        noun="line",
        ticks=[tick for tick in ticks if 0.04 <= tick[0] <= 0.96],
        chosen=chosen,
    )


def _sessions(registry: Registry, who: Principal) -> Iterator[tuple[str, Session]]:
    """The sessions whose histories a principal reads, each with its data set."""
    for name in registry.bound:
        if who.role in OVERSEERS:
            yield name, registry.data_set(name).session()
        else:
            yield from ((name, given.session) for given in visible_grants(registry, who, name))


def _seconds(text: str, days: int) -> int | None:
    """When a day in an address begins, in seconds since 1970, or so many days later; None if it is not a day.

    >>> _seconds("2026-11-16", 0), _seconds("2026-11-16", 1), _seconds("", 0)
    (1794787200, 1794873600, None)
    """
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(day.timestamp()) + 86_400 * days


def _with_left(registry: Registry, who: Principal, lines: Sequence[HistoryLine]) -> list[HistoryLine]:
    """The same lines; a refusal with what was left of the session's budget when it was made."""

    @cache
    def left_at_refusals(name: str, path: tuple[int | str, ...]) -> list[tuple[HistoryEntry, str]]:
        session = registry.data_set(name).session().at(path)
        return _left_at_refusals(session, who) if isinstance(session, Session) else []

    def left(line: HistoryLine) -> str:
        found = left_at_refusals(line.data_set, line.fact.path) if line.kind == "refused" else []
        return next((words for fact, words in found if fact == line.fact), "")

    return [HistoryLine(line.number, line.data_set, line.fact, left(line)) for line in lines]


def _left_at_refusals(session: Session, who: Principal) -> list[tuple[HistoryEntry, str]]:
    timeline = visible_timeline(session, who)
    if timeline.budget.ceiling is None:
        return []
    facts = [fact for fact in session.history if fact.path == session._path and fact.kind in _SAME]
    found = []
    for fact, mark in zip(facts, timeline.refusals, strict=False):
        lost = next((step.after for step in reversed(timeline.steps) if step.at < mark.at), 0.0)
        found.append((fact, f"{timeline.budget.symbol} {figure(max(0.0, timeline.budget.ceiling - lost))} was left"))
    return found
