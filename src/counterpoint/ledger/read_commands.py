"""A command, read back from the record: what an open request wanted, or an entry says.

>>> from counterpoint.ledger.commands import AskCommand
>>> asking = AskCommand((0,), None, None, pin=0)
>>> read_command(asking.body()) == asking
True
"""

from counterpoint.encoding import Plain, decode
from counterpoint.ledger.commands import (
    AskCommand,
    Command,
    Fit,
    LaunchCommand,
    OpenCommand,
    QuestionCommand,
    as_path,
    message_of,
)
from counterpoint.ledger.custodian_commands import CloseCommand, RefreshCommand, RefundCommand, RevokeCommand
from counterpoint.ledger.state import Grant
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.mechanisms.mechanism import Mechanism, priced
from counterpoint.privacy.relations import Relation
from counterpoint.queries.request import PreparedQuery
from counterpoint.schema.versions import DeclaredData
from counterpoint.sources.streams.items import read_subscription


def read_command(body: bytes, pin: int | str = 0) -> Command:
    """What an open request wanted, from the record."""
    said, _, choice = body.partition(b"\n")
    kind, *rest = _parts(said)
    if kind == "open":
        composition, sequential = rest
        assert isinstance(composition, Concurrent) and isinstance(sequential, bool)
        return OpenCommand((), composition, sequential, decode(choice, DeclaredData) if choice else None)
    if kind == "ask":
        path, prepared, public = rest
        assert isinstance(prepared, PreparedQuery | None)
        return AskCommand(as_path(path), prepared, public, pin)
    if kind == "question":
        path, prepared, terms, data = rest
        mechanism, public, *more = _parts(choice)
        assert isinstance(prepared, PreparedQuery) and isinstance(data, Relation) and isinstance(mechanism, Mechanism)
        chosen = Fit(mechanism, data, priced(mechanism), message_of(prepared, public))
        sees, typed = _version(*more[:1]), _text(*more[1:])
        return QuestionCommand(
            as_path(path), prepared, terms, data, pin, (chosen,), chosen=chosen, sees=sees, typed=typed
        )
    if kind in ("closing", "reopening"):
        path, number = rest
        assert isinstance(number, int)
        return CloseCommand(as_path(path), number)
    if kind == "revocation":
        (path,) = rest
        return RevokeCommand(as_path(path))
    if kind == "recount":
        path, number = rest
        assert isinstance(number, int)
        return RefundCommand(as_path(path), number)
    if kind == "version":
        path, number, fingerprint, declared, note = rest
        assert isinstance(number, int) and isinstance(declared, DeclaredData)
        assert isinstance(fingerprint, str) and isinstance(note, str)
        return RefreshCommand(as_path(path), number, fingerprint, declared, note)
    parent, name, mechanism, data, by, of, *granted = rest
    assert isinstance(mechanism, Mechanism) and isinstance(data, Relation)
    assert isinstance(name, str | None) and isinstance(by, str | None)
    grant = granted[0] if granted else None
    assert isinstance(grant, Grant | None)
    fit = Fit(mechanism, data, mechanism.claim)
    sees = _version(decode(choice, int)) if choice else 1
    return LaunchCommand(as_path(parent), name, fit, by, read_subscription(of), pin, grant, sees=sees)


def _version(number: Plain = 1) -> int:
    """The number of a version, which is on record if it is not the first."""
    assert isinstance(number, int)
    return number


def _text(typed: Plain = "") -> str:
    """The text by which a question was asked, which is on record if there was one."""
    assert isinstance(typed, str)
    return typed


def _parts(said: bytes) -> tuple[Plain, ...]:
    parts: Plain = decode(said, Plain)  # type: ignore[arg-type]  # plain data of no fixed type
    assert isinstance(parts, tuple)
    return parts
