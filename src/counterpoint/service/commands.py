"""The service's commands: serve, grants, keys, witness. Each imports what it needs when it runs, as the service is an
optional extra.

>>> from typer.testing import CliRunner
>>> from counterpoint.cli import app
>>> CliRunner().invoke(app, ["serve", "--workers", "0"]).exit_code
1
"""

import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from counterpoint.errors import CounterpointError, InvalidParameter
from counterpoint.ledger.location import hold, release
from counterpoint.service.identity import Identity, Role, is_browser
from counterpoint.service.registry import OPERATOR, Registry
from counterpoint.session.session import Session
from counterpoint.wire.problems import SessionId, unknown
from counterpoint.wire.requests import decode_loss

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
    log_level: str = typer.Option("warning", help="debug, info (a line for each request), warning or error."),
    refresh: Annotated[
        list[str] | None,
        typer.Option(help="A data set whose rows or declaration changed: they become its next version. Say it once."),
    ] = None,
) -> None:
    """Serve data sets over HTTP until stopped; prints the address and, on the first start, a custodian's key."""
    with explained():
        with _extra():
            from counterpoint.service import server  # noqa: PLC0415
        settings = _settings(config, ledger, data, demo)
        listening = server.Listening(host, port, workers, certificate, private_key, log_level)
        server.serve(settings, listening, typer.echo, refresh or ())


def grant(  # noqa: PLR0917 - as above
    data_set: str = typer.Argument(help="The data set."),
    to: str = typer.Argument(help="The principal."),
    epsilon: str = typer.Argument(help="The budget: epsilon of PureDP or, with --delta, of ApproxDP."),
    delta: str | None = typer.Option(None, help="The budget's delta."),
    id: str | None = typer.Option(
        None, help="The id of this grant: running the command again with it grants nothing more."
    ),
    config: Config = None,
    ledger: LedgerAt = None,
    data: Data = None,
    demo: Demo = False,
) -> None:
    """Grant a budget to a principal, while no service has the ledger open, or beside one that has it in PostgreSQL."""
    with explained(), _opened(config, ledger, data, demo) as registry:
        measure = {"measure": "PureDP"} if delta is None else {"measure": "ApproxDP", "delta": delta}
        whole = registry.data_set(data_set).session().acting_as(OPERATOR)
        given = whole.grant(registry.grantee(to), decode_loss({**measure, "epsilon": epsilon}), id=id)
        typer.echo(f"{to} works in the session {SessionId(data_set, given._path)}")


def revoke(
    session: str = typer.Argument(help="The session that was granted, such as people.0."),
    config: Config = None,
    ledger: LedgerAt = None,
    data: Data = None,
    demo: Demo = False,
) -> None:
    """Revoke a grant: nothing more is launched or asked in it, and its charge stays."""
    with explained(), _opened(config, ledger, data, demo) as registry:
        id = SessionId.read(session)
        whole = registry.data_set(id.data_set).session().acting_as(OPERATOR)
        found = whole.at(id.path)
        if not isinstance(found, Session):
            raise unknown(session)
        whole.revoke(found)
        typer.echo(f"{session} is revoked; {whole.loss!r} stays charged")


data = typer.Typer(name="data", help="Look after the data of the tables that are served.", no_args_is_help=True)


@data.command("check")
def check_data(
    file: str = typer.Argument(help="A .parquet or .csv file, or a postgresql:// URL."),
    config: Config = None,
    name: str | None = typer.Option(None, help="The table of the configuration whose declaration holds for the file."),
    json: bool = typer.Option(False, "--json", help="Print the report as JSON."),
) -> None:
    """Show the custodian what a declaration makes of a file: RAW DATA, never for analysts. Nothing is served or kept.

    Without --config, the declaration is in a .toml file beside the file.
    """
    from counterpoint.errors import CustodianWarning  # noqa: PLC0415 - imported only where it is used
    from counterpoint.service import config as config_file  # noqa: PLC0415

    with explained(), warnings.catch_warnings():
        warnings.simplefilter("ignore", CustodianWarning)  # the report says the same, and more
        if config is None:
            declared = config_file.declared_beside(f"data={file}")[1]
        else:
            declared = config_file.read_file(config).table_of(file, name)
        with declared.bind(lambda: None, Path()) as table:
            report = table.check()
        typer.echo(msgspec.json.encode(report.plain()).decode() if json else report.text(toml=True))


keys = typer.Typer(name="keys", help="Look after the principals of a ledger and their keys.", no_args_is_help=True)
KeyFile = Annotated[
    str | None, typer.Option("--key-file", help="The master key file, if it is not at its default place.")
]
WitnessAt = Annotated[str | None, typer.Option("--witness", help="The witness, if it is not at its default place.")]


@keys.command("new")
def new_key(  # noqa: PLR0917 - what a command takes, by name
    name: str = typer.Argument(help="The principal; it is created if it does not exist."),
    role: Annotated[Role | None, typer.Option(help="The role of a new principal.")] = None,
    days: int | None = typer.Option(None, help="Days until the key expires; by default it does not expire."),
    config: Config = None,
    ledger: LedgerAt = None,
    key_file: KeyFile = None,
    witness: WitnessAt = None,
) -> None:
    """Make a key for a principal, and show it this once."""
    with explained(), _people(config, ledger, key_file, witness) as people:
        if role is not None:
            people.add(name, role, by=OPERATOR)
        typer.echo(people.new_key(name, days=days, by=OPERATOR).shown())


@keys.command("list")
def list_keys(
    config: Config = None, ledger: LedgerAt = None, key_file: KeyFile = None, witness: WitnessAt = None
) -> None:
    """List principals, their roles, and the ids of their keys."""
    with explained(), _people(config, ledger, key_file, witness) as people:
        for one in people.principals():
            typer.echo(f"{one.name}: {one.role}{'' if one.ended is None else ', ended'}")
            found = people.keys(one.name)
            for key in (key for key in found if not is_browser(key.id)):
                state = "stands" if key.stands(people.now()) else "ended"
                typer.echo(f"  {key.id}: {state}")
            browsers = sum(key.stands(people.now()) for key in found if is_browser(key.id))
            if browsers:
                typer.echo(f"  browsers signed in: {browsers}")


@keys.command("end")
def end_key(
    id: str = typer.Argument(help="The public id of the key, or the name of a principal."),
    config: Config = None,
    ledger: LedgerAt = None,
    key_file: KeyFile = None,
    witness: WitnessAt = None,
) -> None:
    """Revoke a key; given the name of a principal, all its keys, and remove the principal."""
    with explained(), _people(config, ledger, key_file, witness) as people:
        names = {one.name for one in people.principals()}
        ids = {key.id for name in names for key in people.keys(name)}
        if id not in names | ids:
            raise InvalidParameter(f"there is no key and no principal {id!r} in this ledger")
        people.end(id, by=OPERATOR) if id in names else people.end_key(id, by=OPERATOR)
        typer.echo(f"{id} is ended")


witness = typer.Typer(
    name="witness", help="Keep the newest heads of ledgers, for their replicas; or look after its keys."
)
Folder = Annotated[str, typer.Option("--folder", help="The folder for heads and keys, on a disk of its own.")]


@witness.callback(invoke_without_command=True)
def serve_witness(  # noqa: PLR0917 - what a command takes, by name
    context: typer.Context,
    folder: Folder = "witness",
    host: str = typer.Option("127.0.0.1", help="The address to listen at."),
    port: int = typer.Option(8100, help="The port to listen at; 0 for any that is free."),
    certificate: str | None = typer.Option(None, help="A file with a TLS certificate."),
    private_key: str | None = typer.Option(None, help="The file with its key."),
    log_level: str = typer.Option("warning", help="debug, info, warning or error."),
) -> None:
    """Keep the newest heads of ledgers over HTTP until stopped; prints the address and, on the first start, a key."""
    if context.invoked_subcommand is not None:
        return
    with explained():
        with _extra():
            from counterpoint.service.server import Listening  # noqa: PLC0415
            from counterpoint.service.witness import serve_witness  # noqa: PLC0415
        serve_witness(folder, Listening(host, port, 1, certificate, private_key, log_level), typer.echo)


@witness.command("key")
def witness_key(
    owner: str = typer.Argument(help="The owner of the ledgers; keys of one owner see the same heads."),
    folder: Folder = "witness",
) -> None:
    """Make a key for the ledgers of an owner, and show it this once; also while the witness runs."""
    from counterpoint.service.witness import WitnessKeys  # noqa: PLC0415

    with explained():
        typer.echo(WitnessKeys(Path(folder)).new(owner).shown())


@witness.command("list")
def witness_keys(folder: Folder = "witness") -> None:
    """List the ids of the valid keys, and their owners."""
    from counterpoint.service.witness import WitnessKeys  # noqa: PLC0415

    with explained():
        for id, said in WitnessKeys(Path(folder)).standing().items():
            typer.echo(f"{id}: {said['owner']}")


@witness.command("end")
def end_witness_key(id: str = typer.Argument(help="The public id of the key."), folder: Folder = "witness") -> None:
    """End a key."""
    from counterpoint.service.witness import WitnessKeys  # noqa: PLC0415

    with explained():
        WitnessKeys(Path(folder)).end(id)
        typer.echo(f"{id} is ended")


@contextmanager
def _people(config: str | None, ledger: str | None, key_file: str | None, witness: str | None) -> Iterator[Identity]:
    place = _settings(config, ledger, None, False).place
    place = msgspec.structs.replace(place, key_file=key_file or place.key_file, witness=witness or place.witness)
    store = hold(place, existing=True)
    try:
        with closing(Identity(store, place)) as people:
            yield people
    finally:
        release(store)


@contextmanager
def _opened(config: str | None, ledger: str | None, data: list[str] | None, demo: bool) -> Iterator[Registry]:
    """The data sets of a configuration, without a service."""
    from counterpoint.service.config import open_registry  # noqa: PLC0415

    with closing(open_registry(_settings(config, ledger, data, demo))) as registry:
        yield registry


def _settings(config: str | None, ledger: str | None, data: list[str] | None, demo: bool) -> "Settings":
    """The configuration, with what the command line says beside it."""
    from counterpoint.service import config as config_file  # noqa: PLC0415

    found = config_file.Settings() if config is None else config_file.read_file(config)
    tables = dict(found.tables)
    given = [config_file.declared_beside(said) for said in data or ()] + (
        [(config_file.DEMO, config_file.demo())] if demo else []
    )
    for name, table in given:
        if name in found.data_sets or name in tables:
            raise InvalidParameter(f"two data sets are called {name!r}; give each a name of its own")
        tables[name] = table
    beside = {said.partition("=")[0]: said for said in data or ()}
    changes: dict[str, Any] = {"tables": tables, "beside": beside}
    return msgspec.structs.replace(found, **changes, **({} if ledger is None else {"ledger": ledger}))


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
