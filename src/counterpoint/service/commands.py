"""The commands of the service. Each imports what it needs when it runs: the service is an optional extra.

>>> from typer.testing import CliRunner
>>> from counterpoint.cli import app
>>> CliRunner().invoke(app, ["serve", "--workers", "0"]).exit_code
1
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from counterpoint.errors import CounterpointError, InvalidParameter

if TYPE_CHECKING:
    from counterpoint.service.config import Settings

Config = Annotated[str | None, typer.Option("--config", help="A TOML file with ledger, keys and data sets.")]
LedgerAt = Annotated[str | None, typer.Option("--ledger", help="A path or a postgresql:// URL.")]
Data = Annotated[list[str] | None, typer.Option("--data", help="NAME=FILE; FILE's declaration is beside it, in .toml.")]
Demo = Annotated[bool, typer.Option("--demo", help="Also serve made-up people, as the data set 'people'.")]


def serve(  # noqa: PLR0917 - what a command takes, by name
    config: Config = None,
    ledger: LedgerAt = None,
    data: Data = None,
    demo: Demo = False,
    host: str = typer.Option("127.0.0.1", help="The address to listen at."),
    port: int = typer.Option(8000, help="The port to listen at; 0 for any that is free."),
    workers: int = typer.Option(1, help="Processes; more than one needs a ledger in PostgreSQL."),
    certificate: str | None = typer.Option(None, help="A file with a TLS certificate."),
    private_key: str | None = typer.Option(None, help="The file with its key."),
) -> None:
    """Serve data sets over HTTP until stopped; prints the address and, on the first start, a custodian's key."""
    with explained():
        with _extra():
            from counterpoint.service import serving  # noqa: PLC0415
        settings = _settings(config, ledger, data, demo)
        serving.serve(settings, serving.Listening(host, port, workers, certificate, private_key), typer.echo)


def _settings(config: str | None, ledger: str | None, data: list[str] | None, demo: bool) -> "Settings":
    """The configuration, with what the command line says beside it."""
    from counterpoint.service import config as reading  # noqa: PLC0415

    found = reading.Settings() if config is None else reading.read_file(config)
    tables = dict(found.tables)
    given = [reading.declared_beside(said) for said in data or ()] + ([(reading.DEMO, reading.demo())] if demo else [])
    for name, table in given:
        if name in found.data_sets or name in tables:
            raise InvalidParameter(f"two data sets are called {name!r}; give each a name of its own")
        tables[name] = table
    changes = {"tables": tables} if ledger is None else {"tables": tables, "ledger": ledger}
    return msgspec.structs.replace(found, **changes)


@contextmanager
def explained() -> Iterator[None]:
    """Show an error as one line for people, and as an exit status for scripts."""
    try:
        yield
    except CounterpointError as error:
        typer.echo(f"{type(error).__name__}: {error}", err=True)
        raise typer.Exit(1) from None


@contextmanager
def _extra() -> Iterator[None]:
    try:
        yield
    except ImportError:
        raise InvalidParameter("the service is an extra: pip install counterpoint[service]") from None
