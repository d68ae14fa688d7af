"""A session as a timeline, and the table in which a terminal and a notebook show it. Public facts only.

The timeline is what the history says, in order, and what each launch added to the loss. Its axis is the order of
events, or the times that the recording process gave them. Where a rule is not a sum, a step is the increase that the
launch caused when it was admitted. A part of a partition has no lane of its own; each launch in it has.

>>> import counterpoint as cp
>>> session = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1))
>>> noisy = session.launch(cp.Laplace(epsilon=0.4, asks=2))
>>> answer = noisy.ask(cp.total())
>>> timeline = timeline_of(session)
>>> timeline.lost, timeline.left, [(lane.name, lane.detail) for lane in timeline.lanes]
(0.4, 0.6, [('Laplace', '1 ask')])
>>> print(session.plot())
session    ε 0.4 of 1 lost, 0.6 left  ████░░░░░░
loss       ▃▃
1 Laplace  ●┼   0.4
>>> colleague = session.delegate(cp.PureDP(0.25))
>>> dict(summary(session))["delegated"]
'PureDP(0.25), of which PureDP(0) is used; the rest stays reserved'
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from html import escape
from math import isfinite
from string import ascii_lowercase
from typing import TYPE_CHECKING

from counterpoint.composition.accumulator import Account
from counterpoint.composition.filters import Filter
from counterpoint.composition.rule import Rule
from counterpoint.display.timeline import Lane, LossAxis, Mark, Step, Timeline, TimelineEvent, count
from counterpoint.errors import InvalidParameter, LedgerError, NotCovered, shown
from counterpoint.ledger.state import Faulty, HistoryEntry, LaunchRecord, Path, SessionState, granted
from counterpoint.measures import PureDP
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.mechanisms.external import External
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.numbers import format_number
from counterpoint.privacy.claims import Claim
from counterpoint.privacy.relations.relation import Relation
from counterpoint.session.runner import part_key
from counterpoint.session.scope import launched_at

if TYPE_CHECKING:
    from counterpoint.session.handle import Handle
    from counterpoint.session.session import Session

_READ_AT = Fraction(1, 10**6)
"""The delta at which a loss is read that has no number of its own to draw, such as a curve."""


def timeline_of(
    session: "Session", by: str = "order", shows: Callable[[HistoryEntry], bool] = lambda fact: True
) -> Timeline:
    """The session's timeline, from its history and from the mechanisms that were launched; by order, or by time.

    What `shows` leaves out is everything below a path: a reserve is then a lane without what happened in it.
    """
    return TimelineReading(session, shows).timeline(by)


_LAUNCHING = ("launch", "delegation", "charge", "question")


@dataclass
class _Line:
    """A lane while it is read."""

    path: Path
    number: str
    mechanism: Mechanism
    by: str | None
    row: LaunchRecord | None
    start: int
    claim: Claim
    """What was charged for it."""
    order: tuple[int, ...] = ()
    """Inner lanes stand below the one that paid for them."""
    asks: list[Mark] = field(default_factory=list)
    refusals: list[Mark] = field(default_factory=list)
    lane: Lane | None = None
    """How it is shown; None if something happened in it since."""


class TimelineReading:
    """Reads a history event by event: all of it once, and then what is new.

    A reading that is kept costs as much as there is news, however long the session is.
    """

    def __init__(self, session: "Session", shows: Callable[[HistoryEntry], bool] = lambda fact: True) -> None:
        self._shows = shows
        self._seen = 0
        self._events: list[TimelineEvent] = []
        self._times = _Apart()
        self._changed: set[Path] = set()
        """The lanes whose rows may have changed since they were read."""
        self._engine = session._engine
        self._path = session._path
        self._rule = session.rule.chosen  # which admitted what is on record, also if it is spent since
        self._whole = session.loss
        self._made_up = session.made_up
        self._read = gauge_of(session)
        self._lines: dict[Path, _Line] = {}
        self._newest: _Line
        self._launched: dict[Path, int] = defaultdict(int)
        self._inside: dict[Path, int] = defaultdict(int)
        self._rows: dict[Path, LaunchRecord | None] = {}
        self._account = self._rule.start()
        self._steps: list[Step] = []
        self._refusals: list[Mark] = []

    @property
    def events(self) -> int:
        """How many events were read."""
        return len(self._events)

    def timeline(self, by: str = "order") -> Timeline:
        """All that is shown of the session, as it is now; by order, or by time."""
        if by not in ("order", "time"):
            raise InvalidParameter(f"a session is drawn by='order' or by='time', not by={shown(by)}")
        self._follow()
        lanes = tuple(self._lane(line) for line in sorted(self._lines.values(), key=lambda line: line.order))
        name = f"{self._engine.ledger.name}{' (made-up rows)' if self._made_up else ''}"
        times = self._times.placed() if by == "time" else ()
        steps, refusals = tuple(self._steps), tuple(self._refusals)
        return Timeline(name, self._read.budget, tuple(self._events), steps, refusals, lanes, times)

    def _follow(self) -> None:
        """Read what is new. Rows are read after the history and after what is open: so they are no older than it."""
        here, known = len(self._path), self._known
        facts = self._engine.ledger.history()
        waiting = {intent.path for intent in self._engine.ledger.opened()}
        self._rows.clear()
        self._read_launched(facts[self._seen :])
        for fact in facts[self._seen :]:
            inside = fact.kind == "recovery" or (fact.path[:here] == self._path and self._shows(fact))
            if inside and fact.kind in known:
                self._events.append(known[fact.kind](len(self._events) + 1, fact))
                self._times.add(fact.at)
        self._seen = len(facts)
        for path in self._changed:
            line = self._lines[path]
            line.row, line.lane = self._row(path), None
        self._changed &= waiting

    def _read_launched(self, facts: Sequence[HistoryEntry]) -> None:
        """Read the rows of what these lines launched together: one by one, they would take most of a first look."""
        launched = self._launched.copy()
        for fact in facts:
            if fact.kind in _LAUNCHING:
                self._rows[(*fact.path, launched[fact.path])] = None
                launched[fact.path] += 1
        self._engine.ledger.read_all(self._rows)

    @property
    def _known(self) -> dict[str, Callable[[int, HistoryEntry], TimelineEvent]]:
        return {
            "launch": self._launch,
            "delegation": self._launch,
            "charge": self._launch,
            "ask": self._ask,
            "question": self._question,
            "refusal": self._refusal,
            "denial": self._refusal,
            "recount": self._recount,
            "recovery": self._recovery,
        }

    def _launch(self, at: int, fact: HistoryEntry) -> TimelineEvent:
        """A launch charges the session at its path; its child has the next number there, or is a part."""
        row = self._row(fact.path)
        if row is not None and row.by is not None:
            around = self._around(fact.path)
            return TimelineEvent("part", "" if around is None else around.number, "a part is looked at")
        child = (*fact.path, self._launched[fact.path])
        self._launched[fact.path] += 1
        started = self._row(child)
        mechanism, by = launched_at(self._engine, child) if started is None else (started.mechanism, started.by)
        line = _Line(child, self._number(child), mechanism, by, started, at, mechanism.claim)
        self._lines[child] = self._newest = line
        line.order = self._order(line)
        self._changed.add(child)
        reserve = fact.kind == "delegation"
        says = self._reserved(line) if reserve else fact.what
        if fact.path == self._path:
            self._charge(line, says)
        return TimelineEvent("reserve" if reserve else "launch", line.number, says)

    def _reserved(self, line: _Line) -> str:
        """What a delegation or a partition has reserved, in words."""
        for_whom = "for a delegated session" if line.by is None else f"for the parts by {line.by}"
        return f"{line.claim.loss!r} {for_whom}"

    def _charge(self, line: _Line, says: str) -> None:
        """The level after this launch, by the rule that admitted it."""
        before = self._steps[-1].after if self._steps else 0.0
        self._account = self._rule.charge(self._account, line.claim)
        after = max(before, self._read(self._rule.loss(self._account)))
        reserve = isinstance(line.mechanism, Concurrent)
        self._steps.append(Step(line.start, before, after, line.number, f"event {line.start}: {says}", reserve))

    def _recount(self, at: int, fact: HistoryEntry) -> TimelineEvent:
        """The level falls to what a revoked grant has used of its reserve."""
        number = int(fact.what.removeprefix("child ").partition(":")[0])
        line = self._lines[(*fact.path, number)]
        row = self._row(line.path)
        if fact.path == self._path and row is not None:
            before = self._steps[-1].after
            self._account = self._recounted(row, line.path)
            after = self._read(self._rule.loss(self._account))
            self._steps.append(Step(at, before, after, line.number, f"event {at}: {fact.what}", True))
        return TimelineEvent("recount", line.number, fact.what)

    def _recovery(self, at: int, fact: HistoryEntry) -> TimelineEvent:
        """The level rises to all that the rule promises, where it promises something: what was lost is not known."""
        before, after = self._steps[-1].after if self._steps else 0.0, self._read(self._whole)
        if isfinite(after):
            self._steps.append(Step(at, before, max(before, after), "", f"event {at}: {fact.what}"))
        return TimelineEvent("recovery", "", fact.what)

    def _recounted(self, child: LaunchRecord, path: Path) -> Account:
        assert isinstance(child.mechanism, Concurrent) and isinstance(child.state, SessionState)
        rows = (self._row((*path, number)) for number in range(child.state.launched))
        claims = [row.mechanism.claim for row in rows if row is not None]
        return self._rule.refunded(self._account, child.mechanism.rule, child.mechanism.claim, claims)

    def _ask(self, at: int, fact: HistoryEntry) -> TimelineEvent:
        line = self._lines[fact.path]
        line.asks.append(Mark(at, f"event {at}: asked {fact.what}".rstrip()))
        self._changed.add(fact.path)
        return TimelineEvent("ask", line.number, fact.what)

    def _question(self, at: int, fact: HistoryEntry) -> TimelineEvent:
        """A launch that is asked at once."""
        launched = self._launch(at, fact)
        self._newest.asks.append(Mark(at, f"event {at}: asked {fact.what}"))
        return TimelineEvent("question", launched.lane, fact.what)

    def _refusal(self, at: int, fact: HistoryEntry) -> TimelineEvent:
        """A launch that was refused, in this session or in one that it gave a budget to."""
        mark = Mark(at, f"event {at}: {fact.what}; nothing was charged")
        line = self._around(fact.path)
        if line is None:
            self._refusals.append(mark)
        else:
            line.refusals.append(mark)
            line.lane = None
        return TimelineEvent("refused", "" if line is None else line.number, fact.what)

    def _around(self, path: Path) -> _Line | None:
        """The lane that a session inside this one is shown in."""
        ends = (path[:length] for length in range(len(path), len(self._path), -1))
        return next((self._lines[end] for end in ends if end in self._lines), None)

    def _number(self, child: Path) -> str:
        """Numbers for what is charged here, letters for what a reserve pays for."""
        if child[:-1] == self._path:
            return str(self._launched[self._path])
        line = self._around(child[:-1])
        around = () if line is None else line.path
        self._inside[around] += 1
        return _letters(self._inside[around])

    def _order(self, line: _Line) -> tuple[int, ...]:
        """Inner lanes stand below the one that paid for them."""
        ends = (line.path[:length] for length in range(len(self._path) + 1, len(line.path) + 1))
        return tuple(self._lines[end].start for end in ends if end in self._lines)

    def _lane(self, line: _Line) -> Lane:
        if line.lane is None:
            line.lane = self._drawn(line)
        return line.lane

    def _drawn(self, line: _Line) -> Lane:
        """The lane, now that all of it is known. Where it halted is its last ask."""
        mechanism, asked = line.mechanism, count(len(line.asks), "ask")
        cost, kind, depth = (
            self._read.spelled(line.claim.loss),
            type(mechanism).__name__,
            len(line.order) - 1,
        )
        asks, refusals = tuple(line.asks), tuple(line.refusals)
        if isinstance(mechanism, Concurrent):
            grant = None if line.row is None else granted(line.row)
            name = f"by {line.by}" if line.by is not None else "delegated" if grant is None else grant.to
            return Lane(line.number, name, f"reserve {cost}", (line.start,), cost, depth, True, asks, refusals)
        if isinstance(mechanism, External):
            return Lane(
                line.number, mechanism.what, "released elsewhere", (line.start,), cost, depth, False, asks, refusals
            )
        part = next((part_key(step) for step in reversed(line.path[:-1]) if isinstance(step, str)), None)
        name, detail = (kind, asked) if part is None else (str(part), f"{kind} · {asked}")
        halted = line.asks[-1].at if _over(line.row) and line.asks else None
        detail += " · not started" if line.row is None else " · halted" if halted else ""
        return Lane(line.number, name, detail, (line.start,), cost, depth, False, asks, refusals, halted)

    def _row(self, path: Path) -> LaunchRecord | None:
        if path not in self._rows:
            self._rows[path] = self._engine.ledger.read(path)
        return self._rows[path]


def _over(row: LaunchRecord | None) -> bool:
    """Whether a mechanism has given its last answer, or its code failed."""
    return row is not None and (row.state is None or isinstance(row.state, Faulty))


class _Apart:
    """Times in whole seconds, of which those of one second stand side by side in it. A clock that was set back stops.

    >>> times = _Apart()
    >>> for at in (10, 10, 12, 11):
    ...     times.add(at)
    >>> times.placed()
    (10.0, 10.5, 12.0, 12.5)
    """

    def __init__(self) -> None:
        self._before: list[float] = []
        """Those of earlier seconds."""
        self._second = 0
        self._together = 0
        """How many there are in this second."""

    def add(self, at: int) -> None:
        """One time more."""
        if at > self._second:
            self._before += self._now()
            self._second, self._together = at, 0
        self._together += 1

    def placed(self) -> tuple[float, ...]:
        """All of them, where they stand."""
        return (*self._before, *self._now())

    def _now(self) -> list[float]:
        return [self._second + number / self._together for number in range(self._together)]


def _letters(number: int) -> str:
    """a, b, ..., z, aa, ab, ..."""
    text = ""
    while number:
        number, digit = divmod(number - 1, 26)
        text = ascii_lowercase[digit] + text
    return text


@dataclass(frozen=True)
class Gauge:
    """Reads a loss as one number: the first of its own, or the epsilon that it implies at a delta."""

    kind: type[Loss] | None
    budget: LossAxis

    def __call__(self, loss: Loss) -> float:
        """The height of a loss."""
        own = type(loss) is self.kind and bool(loss.amounts)
        return float(loss.amounts[0]) if own else loss.epsilon_at(_READ_AT)

    def spelled(self, loss: Loss) -> str:
        """A price; with its letter, if it is in another measure than the axis."""
        if not loss.amounts:
            return repr(loss)
        symbol, number = loss.letters[0], format_number(loss.amounts[0])
        return number if symbol == self.budget.symbol else f"{symbol} {number}"


def gauge_of(session: "Session") -> Gauge:
    """How the loss of a session is drawn: in the measure of its budget, if that is one of numbers."""
    return gauge_of_rule(session.rule, session.loss, session._source.relation)


def gauge_of_rule(rule: Rule, loss: Loss, relation: Relation) -> Gauge:
    """How a loss is drawn that this rule admitted, on data with this relation."""
    kind = type(loss) if loss.amounts else None
    try:
        bound = rule.bound(relation)
    except NotCovered:  # an odometer promises nothing beforehand
        return Gauge(kind, LossAxis(loss.letters[0], None, "no budget: the loss is counted"))
    if type(bound) is kind:
        numbers = zip(bound.letters, bound.amounts, strict=False)
        words = ", ".join(f"{letter} {format_number(amount)}" for letter, amount in numbers)
        return Gauge(kind, LossAxis(bound.letters[0], float(bound.amounts[0]), f"budget {words}"))
    height = bound.epsilon_at(_READ_AT)
    words = f"budget {bound!r}, read at δ {format_number(_READ_AT)}"
    return Gauge(None, LossAxis("ε", height if height < float("inf") else None, words))


def summary(session: "Session") -> list[tuple[str, str]]:
    """What there is to know at a glance: budget, loss, what would fit, each mechanism, and what was given away."""
    rule = session.rule
    lines = [("lost", repr(session.loss))]
    if isinstance(rule, Filter):
        lines = [("budget", repr(rule.budget)), *lines, ("would fit", _would_fit(session, rule))]
    else:
        lines = [("rule", repr(rule)), *lines]
    if session.made_up:
        lines = [("rehearsal", "rows and answers are made up; nothing is charged to the real session"), *lines]
    try:
        return lines + [_launched(*child) for child in enumerate(session.handles)] + _given(session)
    except LedgerError:
        return [*lines, ("closed", "open it again to see what was launched")]


def _launched(number: int, handle: "Handle") -> tuple[str, str]:
    state = "halted" if handle.halted else "live"
    return f"[{number}] {state}", f"{handle.mechanism!r} at {handle.mechanism.claim.loss!r}"


def _given(session: "Session") -> list[tuple[str, str]]:
    return [inner.as_given() for inner in session.given]


def _would_fit(session: "Session", rule: Filter) -> str:
    left, lost = session.remaining, session.loss
    own = rule.budget.left_after(lost)
    pure = PureDP(left.epsilon)
    offers = [loss for loss in dict.fromkeys((own or pure, pure)) if any(loss.amounts)]
    if not offers:
        return "nothing more; what was launched keeps answering"
    fits = "; or ".join(f"{loss!r}, such as {loss.example}" if loss.example else repr(loss) for loss in offers)
    return f"{fits}; delta {format_number(left.delta)} is left" if left.delta else fits


def as_rich(session: "Session") -> object:
    """The timeline and a rich table; of a session that is closed, the table alone."""
    from rich.console import Group  # noqa: PLC0415 - rich is imported only where something is shown
    from rich.table import Table  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415 - as above

    table = Table("Session", "", title=None)
    for name, value in summary(session):
        table.add_row(Text(name), Text(value))  # as it stands: a key of the data may look like markup
    try:
        return Group(session.plot(), table)
    except LedgerError:
        return table


def as_html(session: "Session") -> str:
    """The timeline and an HTML table; of a session that is closed, the table alone."""
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in summary(session))
    table = f"<table>{rows}</table>"
    try:
        return f"{session.plot()._repr_html_()}{table}"
    except LedgerError:
        return table
