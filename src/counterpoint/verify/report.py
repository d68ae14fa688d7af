"""The catalogue as a table: what `counterpoint verify` shows.

>>> tell(["randomized response", "open door"], Console(quiet=True))
True
"""

from collections.abc import Collection

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from counterpoint.errors import InvalidParameter
from counterpoint.verify.catalogue import CATALOGUE, Measured, measure


def tell(names: Collection[str] = (), console: Console | None = None) -> bool:
    """Measure the instances of these names (all of them without names), show the table; whether every claim holds."""
    shown = console or Console()
    chosen = [instance for instance in CATALOGUE if not names or instance.name in names]
    if strange := set(names) - {instance.name for instance in CATALOGUE}:
        known = ", ".join(repr(instance.name) for instance in CATALOGUE)
        raise InvalidParameter(f"there is no instance {sorted(strange)[0]!r} in the catalogue; there are {known}")
    found: list[Measured] = []
    with Progress(console=shown, transient=True) as progress:
        task = progress.add_task("against every adversary", total=len(chosen))
        for instance in chosen:
            progress.update(task, description=instance.name)
            found.append(measure(instance))
            progress.advance(task)
    shown.print(_table(found))
    return all(measured.holds for measured in found)


def _table(found: list[Measured]) -> Table:
    table = Table(title="Exact loss over all adaptive adversaries, on small instances")
    for name in ("instance", "claim", "delta", "claimed epsilon", "exact epsilon", "tightness", "holds"):
        table.add_column(name, justify="left" if name in ("instance", "claim") else "right")
    for measured in found:
        table.add_row(
            measured.instance.name,
            repr(measured.claim),
            f"{float(measured.instance.delta):.3g}",
            f"{measured.claimed:.6f}",
            f"{measured.lower:.6f}",
            f"{measured.tightness:.4f}",
            "yes" if measured.holds else "NO",
        )
    return table
