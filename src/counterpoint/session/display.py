"""How a session shows itself: in a terminal (rich) and in a notebook (HTML). Public facts only.

>>> from counterpoint import PureDP, Session, Stream
>>> "PureDP(1)" in Session(Stream(bound=1), within=PureDP(1))._repr_html_()
True
"""

from html import escape
from typing import TYPE_CHECKING

from counterpoint.composition.filters import Filter

if TYPE_CHECKING:
    from counterpoint.session.session import Session


def summary(session: "Session") -> list[tuple[str, str]]:
    """What there is to know at a glance: budget, loss, what would fit, and each mechanism."""
    rule = session.rule
    lines = [("lost", repr(session.loss))]
    if isinstance(rule, Filter):
        left = session.remaining
        lines = [("budget", repr(rule.budget)), *lines, ("would fit", f"PureDP up to {left!r}")]
    else:
        lines = [("rule", repr(rule)), *lines]
    for number, handle in enumerate(session.handles):
        state = "halted" if handle.halted else "live"
        lines.append((f"[{number}] {state}", f"{handle.mechanism!r} at {handle.mechanism.claim.loss!r}"))
    return lines


def as_table(session: "Session") -> object:
    """A rich table."""
    from rich.table import Table  # noqa: PLC0415 - rich is imported only where something is shown

    table = Table("Session", "", title=None)
    for name, value in summary(session):
        table.add_row(name.replace("[", r"\["), value)
    return table


def as_html(session: "Session") -> str:
    """An HTML table."""
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in summary(session))
    return f"<table>{rows}</table>"
