"""The `counterpoint` command. Each subcommand is a function here; what `counterpoint demo` shows is in `demo.py`.

>>> from typer.testing import CliRunner
>>> CliRunner().invoke(app, ["--version"]).output.startswith("counterpoint 0.")
True
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from counterpoint import __version__
from counterpoint.errors import InvalidParameter
from counterpoint.service import commands
from counterpoint.service.commands import explained
from counterpoint.service.identity import Role, is_browser

if TYPE_CHECKING:
    from counterpoint.client.connect import Connection
    from counterpoint.client.people import RemotePeople
    from counterpoint.ledger.location import Durable

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
    seed: int | None = typer.Option(None, help="Make all but the service repeatable (for tests; never for real data)."),
) -> None:
    """Show a budget, three mechanisms, a proof and a service on made-up data."""
    from counterpoint.demo import tell  # noqa: PLC0415 - rich is imported only where something is shown

    tell(seed)


@app.command()
def verify(
    names: Annotated[
        list[str] | None, typer.Argument(help="Instances of the catalogue to verify; all by default.")
    ] = None,
) -> None:
    """Compute what every shipped mechanism exactly loses, against all adversaries, and compare with its claim.

    Exits with 0 only if every claim holds; with 1 if one is refuted or undecided.
    """
    from counterpoint.verify.catalogue.catalogue import show_catalogue  # noqa: PLC0415 - imported only where it is used
    from counterpoint.verify.verdict import Verdict  # noqa: PLC0415

    try:
        verdict = show_catalogue(names or ())
    except InvalidParameter as error:
        raise typer.BadParameter(str(error)) from None
    if verdict is not Verdict.HOLDS:
        raise typer.Exit(1)


ledger = typer.Typer(name="ledger", help="Look after a durable ledger: keys and verification.", no_args_is_help=True)
app.add_typer(ledger)


@ledger.command()
def key(file: str = typer.Argument(help="The file to make; it must not exist.")) -> None:
    """Make a new master key in a file that only you may read."""
    from counterpoint.ledger.sealing import MasterKey  # noqa: PLC0415 - as above

    with explained():
        typer.echo(f"made key {MasterKey.create(file).name} in {file}; keep it apart from the ledger and its backups")


@ledger.command("verify")
def verify_ledger(
    place: str = typer.Argument(help="A path or a postgresql:// URL."),
    witness: str | None = typer.Option(None, help="The witness file, if it is not at its default place."),
) -> None:
    """Check the chain, replay every charge, compare accounts, requests and witness. Needs no key."""
    from counterpoint.ledger.location import Durable  # noqa: PLC0415
    from counterpoint.ledger.open import sessions_at  # noqa: PLC0415

    with explained():
        for found in sessions_at(Durable(place, witness=witness)):
            typer.echo(found)


@ledger.command()
def export(
    place: str = typer.Argument(help="A path or a postgresql:// URL."),
    session: str = typer.Argument(help="The session whose record to write."),
    key_file: str | None = typer.Option(None, help="The file with the master key, if it is not at its default place."),
) -> None:
    """Write the public record of a session as JSON lines, for auditors: signed, if the key is at hand."""
    from counterpoint.ledger.headers import signer_at_hand  # noqa: PLC0415
    from counterpoint.ledger.location import Durable, looked_at  # noqa: PLC0415
    from counterpoint.ledger.store.store import exported  # noqa: PLC0415

    with explained():
        found = Durable(place, key_file=key_file)
        with looked_at(found) as store, store.lock:
            signer = signer_at_hand(store, session, found.master_key())
            for line in exported(lambda: nullcontext(store), session, signer):
                typer.echo(line)


@ledger.command()
def rotate(
    place: str = typer.Argument(help="A path or a postgresql:// URL; no other process may have it open."),
    new_key_file: str = typer.Argument(help="The file with the new master key."),
    key_file: str | None = typer.Option(
        None, help="The file with the present master key, if it is not at its default place."
    ),
    witness: str | None = typer.Option(None, help="The witness file, if it is not at its default place."),
) -> None:
    """Change the master key of every session. What is sealed from then on gets a new data key, too."""
    from counterpoint.ledger.location import Durable  # noqa: PLC0415
    from counterpoint.ledger.open import rotate as rotated  # noqa: PLC0415

    with explained():
        for done in rotated(Durable(place, key_file=key_file, witness=witness), new_key_file):
            typer.echo(done)


@ledger.command()
def recover(  # noqa: PLR0917 - what a command takes, by name
    place: str = typer.Argument(help="The backup, which becomes the ledger: a path or a postgresql:// URL."),
    session: str = typer.Argument(help="The session's name, which is its data set's."),
    by: str = typer.Option(help="Your name, for the record."),
    yes: str = typer.Option(help="The session's name again, to confirm: its budget will count as spent, for ever."),
    key_file: str | None = typer.Option(None, help="The file with the master key, if it is not at its default place."),
    witness: str | None = typer.Option(None, help="The witness, if it is not at its default place."),
    witness_lost: bool = typer.Option(False, help="The witness was lost, too; a new one takes its place."),
) -> None:
    """Open a backup that is behind its witness, after the newest copy was lost.

    Its budget counts as spent and its mechanisms are halted, for ever; answers can be read. The act stays on record.
    """
    from counterpoint.ledger.admin import recover as recovered  # noqa: PLC0415
    from counterpoint.ledger.location import Durable  # noqa: PLC0415

    with explained():
        _must_be_meant(session, yes)
        where = Durable(place, key_file=key_file, witness=witness)
        typer.echo(recovered(where, session, by=by, witness_lost=witness_lost))


@ledger.command()
def retire(
    place: str = typer.Argument(help="A path or a postgresql:// URL; no service may have it open."),
    session: str = typer.Argument(help="The session's name, which is its data set's."),
    by: str = typer.Option(help="Your name, for the record."),
    yes: str = typer.Option(help="The session's name again, to confirm: its answers will be gone, for ever."),
    witness: str | None = typer.Option(None, help="The witness, if it is not at its default place."),
) -> None:
    """Destroy the keys and the sealed content of a data set. Its public record stays, and receipts still hold."""
    from counterpoint.ledger.admin import retire as retired  # noqa: PLC0415
    from counterpoint.ledger.location import Durable  # noqa: PLC0415

    with explained():
        _must_be_meant(session, yes)
        typer.echo(retired(Durable(place, witness=witness), session, by=by))


def _must_be_meant(session: str, typed: str) -> None:
    if typed != session:
        raise InvalidParameter(
            f"this cannot be undone, so nothing was done: confirm it with the session's name, --yes {session}"
        )


Place = Annotated[str, typer.Argument(help="A path or a postgresql:// URL.")]
SessionName = Annotated[str, typer.Argument(help="The session's name, which is its data set's.")]


@ledger.command("list")
def list_sessions(place: Place) -> None:
    """List the sessions of a ledger. Needs no key."""
    from counterpoint.ledger import admin  # noqa: PLC0415

    _echo_lines(place, admin.listed)


@ledger.command()
def show(place: Place, session: SessionName) -> None:
    """Show a session's rule, loss, keys and head. Needs no key."""
    from counterpoint.ledger import admin  # noqa: PLC0415

    _echo_lines(place, lambda where: admin.shown(where, session))


@ledger.command()
def history(place: Place, session: SessionName) -> None:
    """Show what was done in a session: when, who, what, where. Needs no key."""
    from counterpoint.ledger import admin  # noqa: PLC0415

    _echo_lines(place, lambda where: admin.history(where, session))


@ledger.command()
def backup(place: Place, file: str = typer.Argument(help="The file to make; it must not exist.")) -> None:
    """Copy an SQLite ledger that is at rest. A service that runs copies its own: POST /v1/backups."""
    from counterpoint.ledger import admin  # noqa: PLC0415

    _echo_lines(place, lambda where: iter([admin.back_up(where, file)]))


def _echo_lines(place: str, lines: "Callable[[Durable], Iterator[str]]") -> None:
    from counterpoint.ledger.location import Durable  # noqa: PLC0415

    with explained():
        for line in lines(Durable(place)):
            typer.echo(line)


people = typer.Typer(
    name="people", help="Look after the people of a running service, with a custodian's key.", no_args_is_help=True
)
ServiceUrl = Annotated[str, typer.Option("--url", envvar="COUNTERPOINT_URL", help="The service.")]
LOCAL = "http://127.0.0.1:8000"
API_KEY = "COUNTERPOINT_API_KEY"
"""Where these commands look for the key; else they ask for it. No option takes it: others can read a command line."""


@people.command("add")
def add_person(
    name: str = typer.Argument(help="The name: it is given once, and stays in the record for good."),
    role: Annotated[Role, typer.Option(help="It cannot be changed later.")] = Role.ANALYST,
    days: int | None = typer.Option(None, help="Days until the key expires; by default it does not expire."),
    url: ServiceUrl = LOCAL,
) -> None:
    """Add a person, and show their first key, which is shown only once."""
    with explained(), _served_people(url) as found:
        typer.echo(found.add(name, role.value, days=days))


@people.command("list")
def list_people(url: ServiceUrl = LOCAL) -> None:
    """List people, their roles, and the ids of their keys."""
    with explained(), _served_people(url) as found:
        for one in found.all():
            typer.echo(f"{one.name}: {one.role}{', ended' if one.ended else ''}")
            for key in (key for key in one.keys if not is_browser(key.id)):
                ends = "no end" if key.expires is None else f"ends {datetime.fromtimestamp(key.expires, UTC):%Y-%m-%d}"
                typer.echo(f"  {key.id}: {ends if key.is_valid else 'ended'}")


@people.command("key")
def new_key_of(
    name: str = typer.Argument(help="The person."),
    days: int | None = typer.Option(None, help="Days until the key expires; by default it does not expire."),
    url: ServiceUrl = LOCAL,
) -> None:
    """Make another key for a person, and show it only once."""
    with explained(), _served_people(url) as found:
        typer.echo(found.new_key(name, days=days))


@people.command("end")
def end_person(
    who: str = typer.Argument(help="The name of a person, or the public id of a key."), url: ServiceUrl = LOCAL
) -> None:
    """End a person with all their keys, or one key."""
    with explained(), _served_people(url) as found:
        everybody = found.all()
        if who in {one.name for one in everybody}:
            found.end(who)
        elif who in {key.id for one in everybody for key in one.keys}:
            found.end_key(who)
        else:
            raise InvalidParameter(f"there is no person and no key {who!r} in this service")
        typer.echo(f"{who} is ended")


@commands.data.command("refresh")
def refresh_data(
    name: str = typer.Argument(help="The data set."),
    note: str = typer.Option("", help="Why, for the record: custodians and auditors see it."),
    keep: bool = typer.Option(False, help="Let handles of the version before answer on, until the service stops."),
    id: str | None = typer.Option(None, help="The id of this refresh: running it again with it does nothing more."),
    url: ServiceUrl = LOCAL,
) -> None:
    """Let a running service read a data set anew, as its next version: newer rows, or another declaration.

    The budget stays as it is. Change the file or the configuration first, by schedule or by decision.
    """
    with explained(), _connected(url) as service:
        made = service.refresh(name, note=note, keep=keep, id=id)
        typer.echo(f"{name} serves version {made.number} from now on; what was lost stays lost")


@commands.data.command("versions")
def list_versions(name: str = typer.Argument(help="The data set."), url: ServiceUrl = LOCAL) -> None:
    """List the versions of a served data set."""
    with explained(), _connected(url) as service:
        for one in service.versions(name):
            when = f"{datetime.fromtimestamp(one.at, UTC):%Y-%m-%d %H:%M}"
            typer.echo(", ".join(part for part in (f"{one.number}: {when} UTC", one.who, one.note) if part))


@contextmanager
def _served_people(url: str) -> "Iterator[RemotePeople]":
    with _connected(url) as service:
        yield service.people


@contextmanager
def _connected(url: str) -> "Iterator[Connection]":
    from counterpoint.client.connect import connect  # noqa: PLC0415

    key = os.environ.get(API_KEY) or typer.prompt("A custodian's key", hide_input=True)
    with connect(url, key=key) as service:
        yield service


app.command()(commands.serve)
app.command()(commands.grant)
app.command()(commands.revoke)
app.add_typer(people)
app.add_typer(commands.data)
app.add_typer(commands.keys)
app.add_typer(commands.witness)


def main() -> None:
    """Run the command."""
    app()
