"""A score in a terminal: the same marks in the same order, in as many columns as there are.

>>> from counterpoint.pictures.score import LossAxis, ScoreEvent, Lane, Mark, Score, Step
>>> laplace = Lane("1", "Laplace", "2 asks", (1,), "0.5", asks=(Mark(2, ""), Mark(3, "")), halted=3)
>>> events = (ScoreEvent("launch", "1", ""), ScoreEvent("ask", "1", ""), ScoreEvent("ask", "1", ""))
>>> score = Score("people", LossAxis("ε", 1, "budget ε 1"), events, (Step(1, 0, 0.5, "1", ""),), (), (laplace,))
>>> print(as_text(score, 60))
people     ε 0.5 of 1 lost, 0.5 left  █████░░░░░
loss       ▄▄▄
1 Laplace  ●┼┼┃  0.5
>>> print(as_text(score, 60, unicode=False))
people     e 0.5 of 1 lost, 0.5 left  #####.....
loss       444
1 Laplace  o||]  0.5
"""

from collections.abc import Iterator

from counterpoint.pictures.score import Lane, Score, decimals, folded

_BAR = 10
_PLAIN = str.maketrans("●○┼×┃▒─█░…–εδρμα▁▂▃▄▅▆▇", "oo|x]#-#..-edrma1234567")
"""The marks where Unicode is missing."""


def as_text(score: Score, width: int, unicode: bool = True) -> str:
    """The lines: a head with a bar, the loss, and a lane for each mechanism."""
    lanes = folded(score.lanes)
    names = [_name(lane) for lane in lanes]
    margin = min(max(map(len, [score.name, "loss", *names])) + 2, 26)
    columns = max(8, min(len(score.events), width - margin - 10))
    rows = [_cut(score.name, margin) + _head(score), *_loss(score, columns, margin)]
    rows += [_cut(name, margin) + _lane(score, lane, columns) for name, lane in zip(names, lanes, strict=True)]
    text = "\n".join(row.rstrip() for row in rows)
    return text if unicode else text.translate(_PLAIN).encode("ascii", "replace").decode()


def _name(lane: Lane) -> str:
    return f"{'  ' * lane.depth}{lane.number} {lane.name}"


def _cut(name: str, margin: int) -> str:
    return (name if len(name) < margin else f"{name[: margin - 3]}… ").ljust(margin)


def _head(score: Score) -> str:
    symbol, ceiling, left = score.budget.symbol, score.budget.ceiling, score.left
    if ceiling is None or left is None:
        return f"{symbol} {score.lost:.{decimals([score.lost])}f} lost"
    places = decimals([score.lost, left])
    parts = (
        [round(_BAR * (score.lost - score.reserved) / ceiling), round(_BAR * score.lost / ceiling)]
        if ceiling
        else [0, 0]
    )
    bar = "█" * parts[0] + "▒" * (parts[1] - parts[0]) + "░" * (_BAR - parts[1])
    return f"{symbol} {score.lost:.{places}f} of {ceiling:g} lost, {left:.{places}f} left  {bar}"


def _loss(score: Score, columns: int, margin: int) -> Iterator[str]:
    """The level after the events of each column, in eighths of the ceiling; a cross where a launch was refused."""
    if not score.steps and not score.refusals:
        return
    highest = score.budget.ceiling or score.lost
    heights = [" "] * _used(score, columns)
    for step in score.steps:
        height = "▁▂▃▄▅▆▇"[max(0, min(6, round(8 * step.after / highest) - 1))] if highest else "▁"
        place = _column(score, step.at, columns)
        heights[place:] = height * (len(heights) - place)
    for mark in score.refusals:
        heights[_column(score, mark.at, columns)] = "×"
    yield "loss".ljust(margin) + "".join(heights)


def _lane(score: Score, lane: Lane, columns: int) -> str:
    """Marks on a line; where several fall into one column, the rarer one is shown."""
    used = _used(score, columns)
    start = _column(score, lane.start, columns)
    end = used - 1 if lane.halted is None else _column(score, lane.halted, columns)
    line = [" "] * start + ["▒" if lane.reserve else "─"] * (end - start + 1) + [" "] * (used - end)
    for marks, sign in ((lane.asks, "┼"), (lane.refusals, "×")):
        for mark in marks:
            line[_column(score, mark.at, columns)] = sign
    if lane.halted is not None:
        line[end + 1] = "┃"
    for at in lane.starts:
        line[_column(score, at, columns)] = "○" if lane.inner else "●"
    return f"{''.join(line)}  {lane.cost}"


def _used(score: Score, columns: int) -> int:
    return max(1, min(columns, len(score.events)))


def _column(score: Score, at: int, columns: int) -> int:
    """In which column an event stands; one each, if there is room."""
    events = len(score.events)
    place = min(max(at - score.before, 1), events) - 1
    return place if events <= columns else place * columns // events
