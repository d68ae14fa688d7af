"""A part of a score: some of its events, the level of the loss that they begin with, and the lanes that they are in.

A session of thousands of events is drawn folded and as a density (`score.py`). A part of it has room for each stroke.

>>> from counterpoint.pictures.score import LossAxis, ScoreEvent, Step
>>> lanes = tuple(Lane(str(n), "Laplace", "1 ask", (2 * n - 1,), asks=(Mark(2 * n, ""),)) for n in (1, 2, 3))
>>> events = tuple(ScoreEvent(kind, lane.number, "") for lane in lanes for kind in ("launch", "ask"))
>>> steps = tuple(Step(2 * n - 1, (n - 1) / 4, n / 4, str(n), "") for n in (1, 2, 3))
>>> part = zoomed(Score("people", LossAxis("ε", 1, "budget ε 1"), events, steps, (), lanes), 3, 4)
>>> part.before, part.after, [lane.number for lane in part.lanes], part.lost
(2, 2, ['2'], 0.5)
"""

from collections.abc import Sequence
from dataclasses import replace

from counterpoint.pictures.score import Lane, Mark, Score, Step


def zoomed(score: Score, first: int, last: int) -> Score:
    """The events from `first` to `last`, which are numbers of events, and what they need to be understood."""
    part = replace(
        score,
        events=score.events[first - 1 : last],
        times=score.times[first - 1 : last],
        before=first - 1,
        after=max(0, len(score.events) - last),
    )
    return replace(
        part,
        steps=(*_level_before(score.steps, first), *(step for step in score.steps if part.has(step.at))),
        refusals=_within(part, score.refusals),
        lanes=_active(part, [_cut(part, lane) for lane in score.lanes]),
    )


def _level_before(steps: Sequence[Step], first: int) -> tuple[Step, ...]:
    """What was lost before: a step to what was spent, and one to what was reserved."""
    earlier = [step for step in steps if step.at < first]
    if not earlier:
        return ()
    level = earlier[-1].after
    spent = level - sum(step.after - step.before for step in earlier if step.reserve)
    at = first - 1
    return Step(at, 0.0, spent, "", "lost before"), Step(at, spent, level, "", "reserved before", reserve=True)


def _within(part: Score, marks: Sequence[Mark]) -> tuple[Mark, ...]:
    return tuple(mark for mark in marks if part.has(mark.at))


def _cut(part: Score, lane: Lane) -> Lane:
    return replace(lane, asks=_within(part, lane.asks), refusals=_within(part, lane.refusals))


def _active(part: Score, lanes: Sequence[Lane]) -> tuple[Lane, ...]:
    """The lanes in which something happens, and the reserves that they are paid from, which stand above them."""
    found: list[Lane] = []
    needed = 0
    for lane in reversed(lanes):
        happens = lane.asks or lane.refusals or any(map(part.has, lane.starts))
        if happens or lane.depth < needed:
            found.append(lane)
            needed = lane.depth
    return tuple(reversed(found))
