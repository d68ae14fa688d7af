"""The page of a data set: its versions, what is declared, the custodian's report, and the way to a next version.

An analyst sees the numbers and times of the versions and the declared columns, an auditor also who made them and why.
The report is raw data: it is shown to custodians alone, under a band that says so, and left out of prints. A refresh is
read and shown before it happens: what changes in the declaration, and what of that is refused.

>>> from counterpoint.schema.columns import number, text
>>> uses(Named("age", number(0, 120))), uses(Named("name", text(), declared=False))
('added up, averaged, ranked, binned', 'for conditions only')
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from litestar import Request, Response, get, post

from counterpoint.errors import CounterpointError, DataChanged, InvalidParameter, LedgerError
from counterpoint.schema.columns import Boolean, Category, Number, Text
from counterpoint.schema.declaration import Named
from counterpoint.schema.times import Date
from counterpoint.service.api.data_sets import READERS, must_see
from counterpoint.service.api.inputs import InPath, TheRegistry, for_roles, request_id
from counterpoint.service.data_set import SeenVersion
from counterpoint.service.identity import Principal, Role, SignedIn
from counterpoint.service.outages import note_reopened
from counterpoint.service.pages.access import By, Form, source_words, visible_grants, visible_timeline
from counterpoint.service.pages.render import elsewhere, page
from counterpoint.service.pages.session import PageRefusal, refusal
from counterpoint.service.pages.widgets import Meter, meter_of
from counterpoint.service.pages.words import whole_number
from counterpoint.service.refresh_preview import DeclarationChange, changes, preview, report_of, spoken
from counterpoint.service.registry import Registry
from counterpoint.session.session import Session
from counterpoint.session.versions import DataVersion
from counterpoint.sources.report import CapChoice, ColumnReport, Report
from counterpoint.sources.table import TableFacts
from counterpoint.wire.problems import unknown

MOST_VERSIONS = 12
"""How many versions are listed unless all are asked for; the newest."""
MOST_CHANGES = 6
"""How many changes of a declaration a version lists."""


@dataclass(frozen=True, slots=True)
class VersionEntry:
    """A version as its reader sees it; `changed` is None for readers who see its number and time only."""

    number: int
    at: int
    words: str = ""
    who: str = ""
    fingerprint: str = ""
    changed: list[DeclarationChange] | None = None
    more: int = 0


@dataclass(frozen=True, slots=True)
class ColumnEntry:
    """A declared column: what it holds, and what a request can do with it."""

    name: str
    holds: str
    uses: str


@dataclass(frozen=True, slots=True)
class ReportView:
    """The report as the page shows it: raw data, for the custodian alone."""

    report: Report
    version: int
    unit: str

    @property
    def rows_that_count(self) -> int:
        """How many rows answers are computed from."""
        return self.report.rows - self.report.rows_without_unit - self.report.rows_dropped

    @property
    def ill(self) -> list[ColumnReport]:
        """The columns with values that were lost or changed."""
        return [one for one in self.report.columns if _lost(one)]

    @property
    def well(self) -> list[str]:
        """The names of the others."""
        return [one.name for one in self.report.columns if not _lost(one)]

    @property
    def caps(self) -> Sequence[CapChoice]:
        """What each cap drops and costs."""
        return self.report.caps

    def share(self, many: int) -> str:
        """A number of rows in percent of all."""
        return f"{100 * many / max(self.report.rows, 1):.2g} %"


def _lost(column: ColumnReport) -> bool:
    return any((column.missing, column.unreadable, column.below, column.above, column.undeclared))


@get("/data-sets/{name:str}", sync_to_thread=True, include_in_schema=False)
def show(request: Request[Any, Any, Any], registry: TheRegistry, by: By, name: InPath) -> Response[Any]:
    """The page of a data set, as far as its reader may see it; `?all=1` lists all versions."""
    return _page(registry, by, name, whole="all" in request.query_params)


@post("/data-sets/{name:str}/preview", sync_to_thread=True, include_in_schema=False, guards=[for_roles(Role.CUSTODIAN)])
def look(registry: TheRegistry, by: By, name: InPath) -> Response[Any]:
    """Read what the configuration names, and show what a refresh would make of it. Nothing changes."""
    data_set = registry.data_set(name)
    try:
        found = preview(data_set)
    except LedgerError:
        raise
    except CounterpointError as error:
        refused, status = refusal(error)
        return _page(registry, by, name, refused=refused, status=status)
    session = data_set.session()
    return page(
        "refresh",
        by,
        here="/",
        status=200,
        name=name,
        found=found,
        versions=(session.data_version, found.seen.number),
        meter=_meter(session, by.who),
        report=_view(found.report, found.seen.number, _unit_of(session)),
        now=report_of(session._source),
    )


@post("/data-sets/{name:str}/refresh", sync_to_thread=True, include_in_schema=False, guards=[for_roles(Role.CUSTODIAN)])
def refresh(registry: TheRegistry, by: By, name: InPath, data: Form) -> Response[Any]:
    """Make what was looked at the next version; a form that is sent twice makes one."""
    form = {key: str(value) for key, value in data.items()}
    seen = SeenVersion(whole_number(form.get("number", ""), 0), form.get("fingerprint", ""))
    try:
        registry.data_set(name).refresh(
            by.who.name,
            note=form.get("note", "").strip(),
            keep="keep" in form,
            id=request_id(form.get("once")),
            seen=seen if seen.number else None,
        )
    except DataChanged:
        raise
    except CounterpointError as error:
        refused, status = refusal(error)
        return _page(registry, by, name, refused=refused, status=status)
    return elsewhere(f"/data-sets/{name}")


@post("/data-sets/{name:str}/reopen", sync_to_thread=True, include_in_schema=False, guards=[for_roles(Role.CUSTODIAN)])
def reopen(registry: TheRegistry, by: By, name: InPath) -> Response[Any]:
    """Let launches and asks begin again, once the custodian knows why an answer could not be computed."""
    registry.data_set(name).session().acting_as(by.who.name).reopen()
    note_reopened(name, by.who.name)
    return elsewhere(f"/data-sets/{name}")


@post("/data-sets/{name:str}/recover", sync_to_thread=True, include_in_schema=False, guards=[for_roles(Role.CUSTODIAN)])
def recover(registry: TheRegistry, by: By, name: InPath, data: Form) -> Response[Any]:
    """Serve a record that is behind its witness, with its budget spent for ever, if the form names it."""
    try:
        if str(data.get("confirm", "")).strip() != name:
            raise InvalidParameter(f"this cannot be undone: confirm it by typing the name, {name!r}")
        registry.recover(name, by=by.who.name)
    except CounterpointError as error:
        refused, status = refusal(error)
        return _page(registry, by, name, refused=refused, status=status)
    return elsewhere(f"/data-sets/{name}")


def _page(
    registry: Registry,
    by: SignedIn,
    name: str,
    *,
    whole: bool = False,
    refused: PageRefusal | None = None,
    status: int = 200,
) -> Response[Any]:
    who = by.who
    if name in registry.set_aside and who.role in READERS:
        return page("set_aside", by, here="/", status=status, name=name, why=registry.set_aside[name], refused=refused)
    try:
        must_see(registry, who, name)
        session = registry.data_set(name).session()
    except DataChanged as error:
        if who.role not in READERS:
            raise unknown(name) from None
        return page("data_changed", by, here="/", status=status, name=name, why=str(error), refused=refused)
    known = session.versions
    table = known[-1].declared is not None and isinstance(known[-1].declared.facts, TableFacts)
    report = report_of(session._source) if who.role is Role.CUSTODIAN else None
    shown = known if whole else known[-MOST_VERSIONS:]
    return page(
        "data",
        by,
        here="/",
        status=status,
        name=name,
        meta=source_words(session._source, who),
        current=session.data_version,
        closed=session.data_closed and who.role in READERS,
        versions=[_version(one, known, who) for one in reversed(shown)],
        hidden_versions=len(known) - len(shown),
        columns=_columns(known[-1], who),
        undeclared=_undeclared(known[-1]) if who.role in READERS else 0,
        described="" if table else session._source.describe(),
        why_not_refreshed=session._source.why_not_refreshed,
        meter=_meter(session, who) if who.role in READERS else None,
        sessions=[str(given.id) for given in visible_grants(registry, who, name)] if who.role not in READERS else [],
        report=_view(report, session.data_version, _unit_of(session)),
        warnings=() if report is None else report.faults(),
        refused=refused,
    )


def _meter(session: Session, who: Principal) -> Meter:
    return meter_of(session, visible_timeline(session, who))


def _view(report: Report | None, version: int, unit: str) -> ReportView | None:
    return None if report is None else ReportView(report, version, unit)


def _unit_of(session: Session) -> str:
    return session._source.unit or "unit"


def _version(one: DataVersion, known: Sequence[DataVersion], who: Principal) -> VersionEntry:
    if who.role not in READERS or one.declared is None:
        return VersionEntry(one.number, one.at)
    before = known[one.number - 2].declared if one.number > 1 else None
    changed = [] if before is None else changes(spoken(before), spoken(one.declared))
    return VersionEntry(
        one.number, one.at, one.note, one.who, one.fingerprint[:16], changed[:MOST_CHANGES], len(changed) - MOST_CHANGES
    )


def _named(version: DataVersion) -> tuple[Named, ...]:
    facts = None if version.declared is None else version.declared.facts
    return facts.declaration.columns if isinstance(facts, TableFacts) else ()


def _columns(version: DataVersion, who: Principal) -> list[ColumnEntry]:
    """The declared columns."""
    return [
        ColumnEntry(named.name, named.column.describe(), uses(named)) for named in _named(version) if named.declared
    ]


def _undeclared(version: DataVersion) -> int:
    return sum(not named.declared for named in _named(version))


_USES = (
    (Number, "added up, averaged, ranked, binned"),
    (Category, "counted by"),
    (Boolean, "counted where it holds"),
    (Date, "ranked, binned, compared"),
    (Text, "compared; counted by keys that a request gives"),
)


def uses(named: Named) -> str:
    """What a request can do with a column."""
    if not named.declared:
        return "for conditions only"
    return next((words for kind, words in _USES if isinstance(named.column, kind)), "compared")
