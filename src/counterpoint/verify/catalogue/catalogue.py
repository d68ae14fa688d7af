"""Every shipped mechanism, rule and composite on a small instance: its claimed loss beside its exact loss.

`CATALOGUE` is a test, the table of `counterpoint verify`, and the page "How we know" of the guide. Two things are not
enumerated as shipped: counters under zCDP have too fine a grid and run the same code on a coarse one (`Resized`), and
Whitehouse et al.'s time-uniform odometers, which promise a bound at all times at once, have their own tests.

>>> from counterpoint.verify.catalogue.instances import measure
>>> measured = measure(find_instance("randomized response"))
>>> measured.verdict, round(measured.tightness, 3)
(Verdict.HOLDS, 1.0)
>>> show_catalogue(["randomized response", "open door"], Console(quiet=True))
Verdict.HOLDS
"""

from collections.abc import Collection, Iterable, Iterator

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from counterpoint.errors import InvalidParameter
from counterpoint.measures.loss import Loss
from counterpoint.verify.catalogue.instances import Instance, Measured, measure
from counterpoint.verify.catalogue.measures import MEASURES
from counterpoint.verify.catalogue.mechanisms import COMPOSITES, MECHANISMS
from counterpoint.verify.catalogue.rules import LOCAL, RULES
from counterpoint.verify.verdict import Verdict, overall

CATALOGUE: tuple[Instance, ...] = (*MECHANISMS, *COMPOSITES, *RULES, *MEASURES, *LOCAL)


def find_instance(name: str) -> Instance:
    """The instance of this name.

    >>> find_instance("open door").mechanism
    OpenDoor(1/7)
    """
    for instance in CATALOGUE:
        if instance.name == name:
            return instance
    known = ", ".join(repr(instance.name) for instance in CATALOGUE)
    raise InvalidParameter(f"there is no instance {name!r} in the catalogue; there are: {known}")


_WIDEST = 18
_SHOWN = {Verdict.HOLDS: "[green]ok[/]", Verdict.REFUTED: "[red]NO[/]", Verdict.UNDECIDED: "[yellow]?[/]"}


def show_catalogue(names: Collection[str] = (), console: Console | None = None) -> Verdict:
    """Measure the instances of these names (all without names), print the table, and return the overall verdict."""
    shown = console or Console()
    chosen = [find_instance(name) for name in names] or list(CATALOGUE)
    found: list[Measured] = []
    columns = TextColumn("{task.description:24}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=shown, transient=True) as progress:
        task = progress.add_task("", total=len(chosen))
        for instance in chosen:
            progress.update(task, description=instance.name)
            found.append(measure(instance))
            progress.advance(task)
    shown.print(_table(found))
    for line in _summary(found):
        shown.print(line)
    return overall(measured.verdict for measured in found)


def _summary(found: list[Measured]) -> Iterator[str]:
    refuted, undecided = (
        ", ".join(measured.instance.name for measured in found if measured.verdict is verdict)
        for verdict in (Verdict.REFUTED, Verdict.UNDECIDED)
    )
    if refuted:
        yield f"[red]The claim is FALSE for: {refuted}[/]"
    if undecided:
        yield f"[yellow]Undecided, because the truncated tails are too heavy, for: {undecided}[/]"
    if not refuted and not undecided:
        claims = "the claim holds" if len(found) == 1 else f"all {len(found)} claims hold"
        yield f"[green]Against every adaptive adversary {claims}.[/]"


def _table(found: Iterable[Measured]) -> Table:
    title = "Exact loss over all adaptive adversaries, on small instances"
    table = Table(title=title, box=SIMPLE_HEAD, padding=0, show_edge=False)
    for name in ("instance", "claim", "at"):
        table.add_column(name, no_wrap=True)
    for name in ("claimed", "exact", "ratio", ""):
        table.add_column(name, justify="right", no_wrap=True)
    group = None
    for measured in found:
        if group is not None and measured.instance.group != group:
            table.add_section()
        group = measured.instance.group
        table.add_row(
            measured.instance.name,
            short(measured.claim),
            measured.at.replace("epsilon", "eps"),
            f"{measured.claimed:.4f}",
            f"{measured.lower:.4f}",
            f"{measured.tightness:.3f}",
            _SHOWN[measured.verdict],
        )
    return table


def short(loss: Loss) -> str:
    """The repr of a loss, or its name alone if the repr is long.

    >>> from counterpoint import PureDP, compose
    >>> short(PureDP(1)), short(compose.optimal([PureDP("0.3"), PureDP("0.5")]))
    ('PureDP(1)', 'Optimal(...)')
    """
    text = repr(loss)
    return text if len(text) <= _WIDEST else f"{text.partition('(')[0]}(...)"
