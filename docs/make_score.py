"""Draws the README's picture: a session as a score. What was lost stands above, each mechanism has a lane below.

The events are those of a real session on the synthetic people: launches, asks, a refusal, a halt, in the order in which
they happened. Run by `make docs`; the picture is docs/figures/score.svg.
"""

from dataclasses import dataclass, field
from pathlib import Path

import counterpoint as cp
from counterpoint.ledger.memory import MemoryLedger

TARGET = Path(__file__).with_name("figures") / "score.svg"
PAPER, INK, FAINT, VOICE, SOFT, STOP = "#ffffff", "#1a1c20", "#696d75", "#1d5fa6", "#d9e6f4", "#b0410b"
LEFT, STEP, TOP, HEIGHT, LANE = 150, 26, 34, 120, 40


@dataclass
class Lane:
    """What happened to one mechanism: when it was launched, asked, refused, and when it halted."""

    name: str
    launched: int
    asks: list[int] = field(default_factory=list)
    halted: int | None = None


@dataclass
class Score:
    """A session's events in order, and the loss after each."""

    lanes: list[Lane] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    refused: list[tuple[int, str]] = field(default_factory=list)

    @property
    def now(self) -> int:
        """The place of the next event."""
        return len(self.losses)


def played() -> Score:
    """The session of the README, a little longer."""
    seeds = (bytes([number]) * 32 for number in range(1, 200))
    people = cp.Table(cp.datasets.people(), unit="person_id", rows_per_unit=1)
    session = cp.Session(people, within=cp.ApproxDP(1, 1e-6), ledger=MemoryLedger(seeds=lambda: next(seeds)))
    score = Score()

    def launch(name: str, mechanism: cp.Mechanism) -> tuple[Lane, cp.Handle]:
        handle = session.launch(mechanism)
        score.lanes.append(Lane(name, score.now))
        score.losses.append(float(session.loss.epsilon_at(1e-6)))
        return score.lanes[-1], handle

    def ask(lane: Lane, handle: cp.Handle, state: str) -> object:
        answer = handle.ask(cp.count(where=f"state = '{state}'"))
        lane.asks.append(score.now)
        lane.halted = score.now if handle.halted else None
        score.losses.append(score.losses[-1])
        return answer

    watch = launch("SparseVector", cp.SparseVector(epsilon=0.3, threshold=1000, hits=3))
    tell = launch("Laplace", cp.Laplace(epsilon=0.05, asks=4))
    more = None
    for number, state in enumerate(["WY", "CA", "VT", "OR", "NY", "WA", "TX"]):
        if not watch[1].halted and ask(*watch, state):
            ask(*tell, state)
        if number == 2:
            more = launch("a second Laplace", cp.Laplace(epsilon=0.2, asks=3))
        if more is not None and number in (3, 5):
            ask(*more, state)
        if number == 4:
            refuse(score, session, cp.Laplace(epsilon=0.9), "0.9 refused")
    ask(*tell, "CA")
    return score


def refuse(score: Score, session: cp.Session, mechanism: cp.Mechanism, words: str) -> None:
    """A launch that does not fit: free, and nothing else changes."""
    try:
        session.launch(mechanism)
    except cp.BudgetExceeded:
        score.refused.append((score.now, words))
        score.losses.append(score.losses[-1])


def drawn(score: Score) -> str:
    """The picture."""
    width = LEFT + STEP * score.now + 60
    height = TOP + HEIGHT + 30 + LANE * len(score.lanes)
    marks = [*_loss(score, width), *(mark for row, lane in enumerate(score.lanes) for mark in _lane(row, lane, width))]
    body = "\n".join(marks)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"
 font-family="system-ui, sans-serif" font-size="12" fill="{INK}" role="img"
 aria-label="What a session has lost, and below it the asks of each mechanism as they interleaved.">
<rect width="100%" height="100%" fill="{PAPER}"/>
{body}
</svg>
"""


def _x(place: float) -> float:
    return LEFT + STEP * (place + 0.5)


def _y(loss: float) -> float:
    return TOP + HEIGHT * (1 - loss)


def _loss(score: Score, width: int) -> list[str]:
    """The loss under its budget: a step at each launch, none at an ask."""
    points, before = [f"{LEFT},{_y(0)}"], 0.0
    for place, loss in enumerate(score.losses):
        points += [f"{_x(place)},{_y(before)}", f"{_x(place)},{_y(loss)}"]
        before = loss
    end = width - 60
    line = " ".join([*points, f"{end},{_y(before)}"])
    refusals = [
        f'<path d="{_cross(_x(place), TOP)}" stroke="{STOP}" stroke-width="2"/>'
        f'<text x="{_x(place)}" y="{TOP - 10}" fill="{STOP}" text-anchor="middle">{words}</text>'
        for place, words in score.refused
    ]
    return [
        f'<text x="14" y="{TOP + 4}" font-weight="600">Loss</text>',
        f'<text x="{LEFT}" y="{TOP - 10}" fill="{FAINT}">budget: epsilon 1, delta 1e-6</text>',
        f'<path d="M{LEFT},{TOP}H{end}" stroke="{INK}" stroke-width="1.5"/>',
        f'<path d="M{LEFT},{_y(0)}H{end}" stroke="{FAINT}" stroke-width="0.5"/>',
        f'<polygon points="{line} {end},{_y(0)}" fill="{SOFT}"/>',
        f'<polyline points="{line}" fill="none" stroke="{VOICE}" stroke-width="2"/>',
        f'<text x="{end + 6}" y="{_y(before) + 4}">{before:.2f}</text>',
        *refusals,
    ]


def _lane(row: int, lane: Lane, width: int) -> list[str]:
    """A dot where it was launched, a stroke for each ask, a barline where it halted."""
    y = TOP + HEIGHT + 36 + LANE * row
    end = _x(lane.halted) + 6 if lane.halted is not None else width - 60
    strokes = [f'<path d="M{_x(at)},{y - 7}V{y + 7}" stroke="{INK}" stroke-width="1.5"/>' for at in lane.asks]
    barline = f'<path d="M{end},{y - 8}V{y + 8}" stroke="{INK}" stroke-width="4"/>' if lane.halted is not None else ""
    return [
        f'<text x="14" y="{y + 4}" font-weight="600">{lane.name}</text>',
        f'<path d="M{_x(lane.launched)},{y}H{end}" stroke="{VOICE}" stroke-width="1.5"/>',
        f'<circle cx="{_x(lane.launched)}" cy="{y}" r="6" fill="{VOICE}"/>',
        *strokes,
        barline,
    ]


def _cross(x: float, y: float) -> str:
    return f"M{x - 5},{y - 5}L{x + 5},{y + 5}M{x - 5},{y + 5}L{x + 5},{y - 5}"


if __name__ == "__main__":
    TARGET.write_text(drawn(played()), encoding="utf-8")
