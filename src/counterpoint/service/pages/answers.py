"""A principal's own answers with their errors, read from the record; nothing is asked again.

An answer is drawn from 0 to the end of its error bar, each on a scale of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from litestar import Response, get
from markupsafe import Markup

from counterpoint.answers.present import present
from counterpoint.answers.provenance import Provenance
from counterpoint.answers.scalars import NumberAnswer
from counterpoint.answers.tables import Tabular
from counterpoint.display.charts import ErrorBar, ErrorBars, written
from counterpoint.display.markup import element, percent
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.ledger.commands import AskCommand, QuestionCommand
from counterpoint.ledger.ledger import AnsweredAsk, StoredAnswer
from counterpoint.ledger.read_commands import read_command
from counterpoint.ledger.state import Faulty, LaunchRecord
from counterpoint.service.api.inputs import InPath, InQuery, TheRegistry, for_roles
from counterpoint.service.identity import Principal
from counterpoint.service.pages.access import WORKERS, By, visible_session
from counterpoint.service.pages.render import download, drawn
from counterpoint.service.pages.words import asked_text
from counterpoint.session.handle import Released
from counterpoint.session.session import Session
from counterpoint.wire.documents import receipt_json
from counterpoint.wire.problems import unknown

MOST = 30
"""How many answers a page shows."""
_MOST_CELLS = 12


@dataclass(frozen=True, slots=True)
class AnswerCell:
    """A value as it is written, with its key and its error if it has them."""

    key: str
    value: str
    error: str = ""
    note: str = ""
    bar: Markup | str = ""


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """An ask and its answer."""

    at: int
    request: str
    number: str
    mechanism: str
    question: str
    cells: Sequence[AnswerCell]
    more: int = 0


def own_answers(session: Session, who: Principal) -> list[AnswerLine]:
    """The newest answers to this principal's own asks in a session, newest first."""
    found = session._engine.ledger.answered(session._path, who.name, MOST)
    return [_line(session, one) for one in reversed(found)]


@get("/sessions/{session:str}/receipt", sync_to_thread=True, include_in_schema=False, guards=[for_roles(*WORKERS)])
def receipt(registry: TheRegistry, by: By, session: InPath, ask: InQuery) -> Response[Any]:
    """The signed receipt of an answer to an own ask, as `checker.py` reads it from a file."""
    found = visible_session(registry, by.who, session)
    ledger = found._engine.ledger
    if not ledger.answered(found._path, by.who.name, 1, ask):
        raise unknown(ask)
    shown = receipt_json(ask, *ledger.receipt(ask))["receipt"]
    return download(msgspec.json.encode(shown).decode(), "receipt.json", "application/json")


def _line(session: Session, one: AnsweredAsk) -> AnswerLine:
    path = one.answer.path
    row, asked = session._engine.ledger.read(path), read_command(one.body)
    assert row is not None and isinstance(asked, AskCommand | QuestionCommand)
    cells = _cells(session, row, asked, one)
    steps = path[len(session._path) :]
    number = ".".join(str(step + 1) if isinstance(step, int) else step.partition(":")[2] for step in steps)
    kind = type(row.mechanism).__name__
    more = max(0, len(cells) - _MOST_CELLS)
    return AnswerLine(
        one.fact.at, one.request, number, kind, asked_text(one.fact.kind, one.fact.what), cells[:_MOST_CELLS], more
    )


def _cells(
    session: Session, row: LaunchRecord, asked: AskCommand | QuestionCommand, one: AnsweredAsk
) -> list[AnswerCell]:
    """The answer in the request's units, with its error where it states one; else as it is.

    A postprocessor asks with a public part of its own: what is answered then need not be an answer to the request. And
    a number may be too large to be drawn. Neither keeps the page from its other answers.
    """
    released = one.answer.answer
    if isinstance(released, Faulty):
        return [AnswerCell("", "its code failed")]
    try:
        return _cells_in_units(session, row, asked, one.answer)
    except Exception:  # of whatever kind: what is shown was released
        return [AnswerCell("", _text(released))]


def _cells_in_units(
    session: Session, row: LaunchRecord, asked: AskCommand | QuestionCommand, answer: StoredAnswer
) -> list[AnswerCell]:
    released: Any = answer.answer
    if asked.prepared is not None and not isinstance(released, bool):
        bars = _error_bars(Provenance(row.mechanism, asked.prepared, released))
        if bars:
            return [_cell(bar, bars) for bar in bars]
    source = session._engine.source_at(session._engine.data.source(row.sees), answer.path)
    value = Released(released, asked.prepared, source.update_grid, False).in_units()
    return [AnswerCell("", _text(value))]


def _error_bars(provenance: Provenance) -> Sequence[ErrorBar]:
    """The values with their errors; none where no error is stated, or where values have no common scale."""
    try:
        answer = present(provenance)
        picture = answer.plot() if isinstance(answer, NumberAnswer | Tabular) else None
        return picture.cells if isinstance(picture, ErrorBars) else ()
    except (InvalidParameter, NotCovered):
        return ()


def _cell(cell: ErrorBar, cells: Sequence[ErrorBar]) -> AnswerCell:
    error = "" if cell.error is None else f"± {written(cell.error)}"
    if cell.interval is not None:
        error = f"{written(cell.interval[0])} to {written(cell.interval[1])}"
    return AnswerCell(cell.key, written(cell.value), error, cell.note, _drawn(cell, cells))


def _drawn(cell: ErrorBar, cells: Sequence[ErrorBar]) -> Markup | str:
    if cell.value is None or (cell.error is None and cell.interval is None):
        return ""
    ends = [end for one in cells for end in one.ends]
    low, high = min(0.0, *ends), max(0.0, *ends)
    width = (high - low) or 1.0
    value, first, last = (percent((place - low) / width) for place in (cell.value, *cell.ends))
    return drawn(
        element(
            "svg",
            element("line", class_="track", x1=0, x2="100%", y1=8, y2=8),
            element("line", class_="err", x1=first, x2=last, y1=8, y2=8),
            element("line", class_="end", x1=first, x2=first, y1=4, y2=12),
            element("line", class_="end", x1=last, x2=last, y1=4, y2=12),
            element("circle", class_="mid", cx=value, cy=8, r=3.5),
            class_="whisker",
            role="img",
            aria_label=f"{written(cell.value)}, between {written(cell.ends[0])} and {written(cell.ends[1])}",
        )
    )


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "above" if value else "below"
    return ", ".join(map(_text, value)) if isinstance(value, tuple | list) else str(value)
