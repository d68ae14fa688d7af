"""How a session shows itself: in a terminal (rich) and in a notebook (HTML). Public facts only.

>>> from counterpoint import PureDP, Session, Stream
>>> session = Session(Stream(bound=1), within=PureDP(1))
>>> colleague = session.delegate(PureDP(0.25))
>>> for name, value in summary(session):
...     print(f"{name}: {value}")
budget: PureDP(1)
lost: PureDP(0.25)
would fit: PureDP(0.75), such as Laplace(epsilon=0.75)
delegated: PureDP(0.25), of which PureDP(0) is used; the rest stays reserved
"""

from html import escape
from typing import TYPE_CHECKING

from counterpoint.composition.rules.filters import Filter
from counterpoint.errors import LedgerError
from counterpoint.numbers import spell
from counterpoint.privacy.losses import PureDP

if TYPE_CHECKING:
    from counterpoint.session.handle import Handle
    from counterpoint.session.session import Session


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
        return "nothing more; what was launched goes on answering"
    fits = "; or ".join(f"{loss!r}, such as {loss.example}" if loss.example else repr(loss) for loss in offers)
    return f"{fits}; delta {spell(left.delta)} is left" if left.delta else fits


def as_rich(session: "Session") -> object:
    """The score and a rich table; of a session that is closed, the table alone."""
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
    """The score and an HTML table; of a session that is closed, the table alone."""
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in summary(session))
    table = f"<table>{rows}</table>"
    try:
        return f"{session.plot()._repr_html_()}{table}"
    except LedgerError:
        return table
