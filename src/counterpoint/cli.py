"""The `counterpoint` command. Each subcommand is a function here; the stories it tells are in `demo.py`.

>>> from typer.testing import CliRunner
>>> CliRunner().invoke(app, ["--version"]).output.startswith("counterpoint 0.")
True
"""

from typing import Annotated

import typer

from counterpoint import __version__
from counterpoint.errors import InvalidParameter

app = typer.Typer(
    name="counterpoint",
    help="Interactive differential privacy: ask, interleave, and know what was lost.",
    no_args_is_help=True,
    add_completion=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"counterpoint {__version__}")
        raise typer.Exit


@app.callback()
def counterpoint(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Interactive differential privacy: ask, interleave, and know what was lost."""


@app.command()
def demo(
    seed: int | None = typer.Option(None, help="Make the story repeatable (for tests; never for real data)."),
) -> None:
    """Tell a short story of a budget, three mechanisms and a proof, on made-up data."""
    from counterpoint.demo import tell  # noqa: PLC0415 - rich is imported only where something is shown

    tell(seed)


@app.command()
def verify(
    names: Annotated[list[str] | None, typer.Argument(help="Which instances of the catalogue; without, all.")] = None,
) -> None:
    """Compute what every shipped mechanism exactly loses, against all adversaries, and compare with its claim."""
    from counterpoint.verify.report import tell  # noqa: PLC0415 - the verifier is imported only where it is used

    try:
        holds = tell(names or ())
    except InvalidParameter as error:
        raise typer.BadParameter(str(error)) from None
    if not holds:
        raise typer.Exit(1)


def main() -> None:
    """Run the command."""
    app()
