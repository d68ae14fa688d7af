"""Writes the table of theory.md that says which measure works in which rule: every cell is tried.

A cell is tried with a mechanism whose answers are constant: it has every loss, so it may claim any. The most general
case comes first, such as a mechanism that interacts without end on data that change. Where the code refuses that, a
more special case is tried, and the refusal is a note of the cell. Run by `make docs`; a test compares the page with
what the code does.
"""

import textwrap
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple, TypeAlias

import duckdb

import counterpoint as cp
from counterpoint.coins.coins import Coins
from counterpoint.coins.secure import SeededCoins
from counterpoint.composition.sums import odometer_for
from counterpoint.encoding import Value
from counterpoint.errors import NotCovered
from counterpoint.mechanisms.composite import Composite, Own
from counterpoint.mechanisms.composite_parts import Context, Part
from counterpoint.mechanisms.concurrent import Concurrent, Launch
from counterpoint.mechanisms.mechanism import Answer, Left, Mechanism, State
from counterpoint.privacy.claims import Claim, Interaction, claim
from counterpoint.privacy.messages import Ask, Message
from counterpoint.privacy.relations import Relation, k_sparse, static_parts
from counterpoint.privacy.relations.steps import every_step

PAGE = Path(__file__).parent / "theory.md"
BEGIN, END = "<!-- make_coverage.py writes from here -->", "<!-- to here -->"
WIDTH = 120

Size: TypeAlias = Callable[[str], cp.Loss]
"""The loss of a measure that has this size."""

MEASURES: dict[str, Size] = {
    "PureDP": cp.PureDP,
    "ApproxDP": lambda size: cp.ApproxDP(size, Fraction(size) ** 2 / 1000),
    "zCDP": cp.zCDP,
    "ApproxzCDP": lambda size: cp.measures.ApproxzCDP(size, Fraction(size) ** 2 / 1000),
    "tCDP": lambda size: cp.tCDP(size, 16),
    "RenyiDP": lambda size: cp.RenyiDP(8, size),
    "GaussianDP": cp.GaussianDP,
    "TradeOff": lambda size: cp.TradeOff.of_approx(size, Fraction(size) ** 2 / 1000),
}
WHOLE, SOME, LITTLE = "1", "0.1", "0.02"
"""Sizes: of a session's budget, of a part or delegation of it, of a launch in that."""


class Constant(Mechanism, Value, frozen=True):
    """Answers every ask alike, so that it has every loss; how it interacts is stated, too."""

    loss: cp.Loss
    interaction: Interaction

    @property
    def claim(self) -> Claim:
        """The loss that is stated."""
        return claim(self.loss, every_step(), "the answers are constant", interaction=self.interaction)

    def accepts(self, message: object) -> bool:
        """Every message."""
        return isinstance(message, Message)

    def start(self, coins: Coins) -> State:
        """Nothing to remember."""
        return Left(1)

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """Nothing."""
        return state, None


class Nothing(Own, Value, frozen=True):
    """The composite remembers nothing."""


class Pair(Composite, Value, frozen=True):
    """A composite with one part, in which two mechanisms are launched."""

    loss: cp.Loss
    interaction: Interaction

    @property
    def structure(self) -> tuple[Part, ...]:
        """The part."""
        return (Part("pair", self.loss, every_step(), slots=2),)

    @property
    def relation(self) -> Relation:
        """Any asks may differ."""
        return every_step()

    def accepts(self, message: object) -> bool:
        """Every message."""
        return isinstance(message, Message)

    def begin(self, context: Context) -> Own:
        """Launch both."""
        for at in range(2):
            context.launch("pair", Constant(self.loss, self.interaction), at=at)
        return Nothing()

    def react(self, context: Context, own: Own, message: Message) -> tuple[Own | None, Answer]:
        """Answer nothing."""
        return own, None


Trial: TypeAlias = Callable[[Size, Interaction], object]
"""Uses a measure in one way, with mechanisms that interact so; raises what the code refuses with."""


def stream() -> cp.Stream:
    """Data that change."""
    return cp.Stream(fields={"letter": cp.text()}, neighbours="add-or-remove")


@cache
def table() -> cp.Table:
    """Data that do not."""
    rows = duckdb.sql("SELECT 1 AS who, 'a' AS letter")
    return cp.Table(rows, unit="who", rows_per_unit=1, columns={"letter": cp.text()})


def used(session: cp.Session, size: Size, interaction: Interaction) -> None:
    """Launch in a session twice, ask, and read the loss."""
    for _ in range(2):
        session.launch(Constant(size(LITTLE), interaction)).ask(cp.count())
    assert session.loss


def in_filter(size: Size, interaction: Interaction) -> None:
    """A session with a budget."""
    used(cp.Session(table(), within=size(WHOLE)), size, interaction)


def odometer(loss: cp.Loss) -> cp.Odometer:
    """The odometer of a measure: of some it is built with what is fixed in advance."""
    built = {
        cp.ApproxDP: lambda: cp.Odometer.approximate(delta=loss.stated_delta or 0),
        cp.RenyiDP: lambda: cp.Odometer.renyi(8),
        cp.tCDP: lambda: cp.Odometer.tcdp(16),
    }
    return built.get(type(loss), lambda: cp.Odometer(odometer_for(type(loss))))()


def in_odometer(size: Size, interaction: Interaction) -> None:
    """A session without a budget."""
    used(cp.Session(table(), rule=odometer(size(WHOLE))), size, interaction)


def in_slots(size: Size, interaction: Interaction) -> None:
    """A session with losses fixed in advance."""
    used(cp.Session(table(), rule=cp.Slots([size(LITTLE)] * 3)), size, interaction)


def composed(rule: cp.Parallel, relation: Relation, launched: Mechanism) -> None:
    """A concurrent composition in which something is launched, with a claim."""
    composition = Concurrent(rule, relation)
    coins = SeededCoins(1)
    _, answer = composition.step(composition.start(coins), Ask(Launch(launched)), coins)
    composition.admit(rule.start(), launched)
    assert composition.claim.loss and answer == 0


def in_static(size: Size, interaction: Interaction) -> None:
    """Parts of which it is fixed in advance which are affected."""
    rule = cp.Parallel(2, each=size(SOME), first_pair=True)
    composed(rule, static_parts(2, every_step()), Constant(size(SOME), interaction))


def in_continual(size: Size, interaction: Interaction) -> None:
    """Parts of data that change."""
    composed(cp.Parallel(2, each=size(SOME)), k_sparse(2, every_step()), Constant(size(SOME), interaction))


def in_continual_with_total(size: Size, interaction: Interaction) -> None:
    """The same with a total for the deltas of all parts."""
    rule = cp.Parallel(2, each=size(SOME), delta_total=Fraction(1, 1000))
    composed(rule, k_sparse(2, every_step()), Constant(size(SOME), interaction))


def delegated(size: Size, interaction: Interaction) -> None:
    """A budget inside a budget of the same measure."""
    used(cp.Session(table(), within=size(WHOLE)).delegate(size(SOME)), size, interaction)


def delegated_at_delta(size: Size, interaction: Interaction) -> None:
    """A budget inside one in (epsilon, delta), as the (epsilon, delta) that it implies."""
    outer = cp.Session(table(), within=cp.ApproxDP(3, "1e-2"))
    used(outer.delegate(size(SOME), delta="1e-3"), size, interaction)


def parted_stream(size: Size, interaction: Interaction) -> None:
    """The parts of data that change, inside a budget of the same measure."""
    parts = cp.Session(stream(), within=size(WHOLE)).partition("letter", k=2, within=size(SOME))
    parts["a"].launch(Constant(size(LITTLE), interaction)).ask()


def parted_stream_with_total(size: Size, interaction: Interaction) -> None:
    """The same with a total for the deltas of all parts."""
    session = cp.Session(stream(), within=size(WHOLE))
    parts = session.partition("letter", k=2, within=size(SOME), delta_total="5e-5")
    parts["a"].launch(Constant(size(LITTLE), interaction)).ask()


def parted_table(size: Size, interaction: Interaction) -> None:
    """The parts of a table, inside a budget of the same measure."""
    parts = cp.Session(table(), within=size(WHOLE)).partition("letter", k=2, within=size(SOME))
    used(parts["a"], size, interaction)


def composite(size: Size, interaction: Interaction) -> None:
    """A composite whose parts have this measure."""
    pair = Pair(size(SOME), interaction)
    assert pair.claim.loss
    pair.start(SeededCoins(1))


COLUMNS: dict[str, dict[str, Trial]] = {
    "filter": {"": in_filter},
    "odometer": {"": in_odometer},
    "slots": {"": in_slots},
    "parallel, static": {"": in_static},
    "parallel, continual": {"": in_continual, "with delta_total": in_continual_with_total},
    "delegate": {"": delegated, "in ApproxDP with delta=": delegated_at_delta},
    "partition": {"": parted_stream, "with delta_total": parted_stream_with_total, "of tables": parted_table},
    "composite": {"": composite},
}
"""The ways in which each rule can be used, from the most general to the most special."""

INTERACTIONS: dict[str, tuple[Interaction, ...]] = {
    "": ("endless", "finite", "memoryless", "one-shot"),
    "finite or memoryless": ("finite", "memoryless", "one-shot"),
    "one-shot": ("one-shot",),
}
"""How launches may interact, from any to one answer."""


class Cell(NamedTuple):
    """Whether a measure works in a rule, and each condition with why the code asks for it; or why it refuses all."""

    works: bool
    notes: tuple[tuple[str, str], ...] = ()


def refusal(trial: Trial, size: Size, interactions: tuple[Interaction, ...]) -> str | None:
    """Why the code refuses this; None if it does not. A budget that is too small would be an error of this page."""
    for interaction in interactions:
        try:
            trial(size, interaction)
        except NotCovered as error:
            return in_general(error, size)
    return None


def in_general(error: NotCovered, size: Size) -> str:
    """The refusal without the sizes that were tried."""
    said = str(error)
    for tried in (size(WHOLE), size(SOME), size(LITTLE)):
        said = said.replace(repr(tried), "this measure")
    return said


def cell(ways: Mapping[str, Trial], size: Size) -> Cell:
    """The first case that the code admits, with why it refuses those that are one step more general."""
    refusals: dict[tuple[str, str], str] = {}
    for asked, way in product(INTERACTIONS, ways):
        refused = refusal(ways[way], size, INTERACTIONS[asked])
        if refused is None:
            steps = [(asked, (_before(asked, INTERACTIONS), way)), (way, (asked, _before(way, ways)))]
            return Cell(True, tuple((chosen, refusals[general]) for chosen, general in steps if chosen))
        refusals[asked, way] = refused
    return Cell(False, (("", refused),))


def _before(name: str, names: Mapping[str, object]) -> str:
    """The name before this one, or the first."""
    listed = list(names)
    return listed[max(0, listed.index(name) - 1)]


def coverage() -> dict[str, dict[str, Cell]]:
    """Every measure in every rule."""
    return {
        measure: {column: cell(ways, size) for column, ways in COLUMNS.items()} for measure, size in MEASURES.items()
    }


def written(cells: Mapping[str, Mapping[str, Cell]]) -> str:
    """The table, and its notes in the order in which they are met."""
    notes: dict[str, int] = {}
    rows = [f"| measure | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|"]
    for measure, row in cells.items():
        rows.append(f"| {measure} | {' | '.join(_mark(found, notes) for found in row.values())} |")
    listed = (
        textwrap.fill(f"{number}. {note}", WIDTH, subsequent_indent="   ", break_on_hyphens=False)
        for note, number in notes.items()
    )
    return "\n".join([*rows, "", *listed])


def _mark(found: Cell, notes: dict[str, int]) -> str:
    marks = [f"{chosen} ({notes.setdefault(why, len(notes) + 1)})".strip() for chosen, why in found.notes]
    if not found.works:
        return f"no {marks[0]}"
    return ": ".join(["yes", ", ".join(marks)]) if marks else "yes"


def with_table(page: str, table: str) -> str:
    """The page with this table between the two marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def main() -> None:
    """Try every cell, and write the page."""
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(with_table(page, written(coverage())), encoding="utf-8")


if __name__ == "__main__":
    main()
