"""Where a durable ledger is kept, with which key and which witness; and one connection to an SQLite file for all who
use it in this process.

>>> Durable("ledger.db", key_file="/safe/ledger.key", witness="/elsewhere/ledger.witness")
Durable('ledger.db')
"""

import os
import threading
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import parse_qsl, urlsplit

import msgspec

from counterpoint.errors import InvalidParameter
from counterpoint.ledger.postgres import PostgresStore
from counterpoint.ledger.sealing import MasterKey
from counterpoint.ledger.sqlite import SqliteStore
from counterpoint.ledger.store import Store
from counterpoint.ledger.witness import Witness

_SCHEMES = ("postgresql://", "postgres://")
WITNESS = "COUNTERPOINT_WITNESS"
"""The path of the witness file, where none is given."""


class Durable(msgspec.Struct, frozen=True):
    """A path or a postgresql:// URL, and how the ledger there is kept.

    The key comes from `key_file`, else from COUNTERPOINT_KEY or COUNTERPOINT_KEY_FILE, else, for SQLite, from the file
    `<path>.key`, which is made along with a new ledger: move it away from the database, and out of its backups.
    The witness is `witness`, else COUNTERPOINT_WITNESS, else, for SQLite, `<path>.witness`; it belongs on another disk.
    `wait` is how many seconds to wait for another process that has the ledger.
    """

    place: str
    key_file: str | None = None
    witness: str | None = None
    wait: float = 1.0

    if TYPE_CHECKING:

        def __init__(
            self,
            place: str | os.PathLike[str],
            key_file: str | os.PathLike[str] | None = None,
            witness: str | os.PathLike[str] | None = None,
            wait: float = 1.0,
        ) -> None: ...

    def __post_init__(self) -> None:
        """Read paths as strings."""
        for name in ("place", "key_file", "witness"):
            value = getattr(self, name)
            if not isinstance(value, str | os.PathLike | None) or value in ("", ":memory:"):
                raise InvalidParameter(f"{name} is a path, or for the ledger itself a postgresql:// URL")
            msgspec.structs.force_setattr(self, name, None if value is None else os.fspath(value))
        if self.place is None:
            raise InvalidParameter("a durable ledger is at a path or a postgresql:// URL")

    def __repr__(self) -> str:
        return f"Durable({'postgresql://...' if self.in_postgres else self.place!r})"  # a URL may hold a password

    @property
    def in_postgres(self) -> bool:
        """Whether the ledger is in PostgreSQL rather than in an SQLite file."""
        return self.place.startswith(_SCHEMES)

    @property
    def identity(self) -> str:
        """Tells this place from others, without a password.

        >>> Durable("postgresql://me:secret@db.example/ledgers?connect_timeout=3").identity
        'postgresql://db.example:5432/ledgers'
        """
        if not self.in_postgres:
            return os.path.realpath(self.place)
        url = urlsplit(self.place)
        host = url.hostname or dict(parse_qsl(url.query)).get("host", "")
        return f"postgresql://{host}:{url.port or 5432}{url.path}"

    def master_key(self) -> MasterKey | None:
        """The key, if there is one."""
        if self.key_file is not None:
            return MasterKey.from_file(self.key_file)
        found = MasterKey.from_environment()
        beside = f"{self.place}.key"
        if found is None and not self.in_postgres and os.path.exists(beside):
            return MasterKey.from_file(beside)
        return found

    def make_key_beside(self) -> None:
        """For a new SQLite ledger without any key: one in a file beside it."""
        if self.key_file is None and not self.in_postgres and MasterKey.from_environment() is None:
            beside = f"{self.place}.key"
            if not os.path.exists(beside):
                MasterKey.create(beside)

    def witness_file(self) -> Witness | None:
        """The witness, if there is one."""
        path = self.witness or os.environ.get(WITNESS) or (None if self.in_postgres else f"{self.place}.witness")
        return None if path is None else Witness(path, self.identity)

    def store(self, existing: bool) -> Store:
        """Open the database."""
        if self.in_postgres:
            return PostgresStore(self.place, existing=existing)
        return SqliteStore(self.place, existing=existing, wait=self.wait)


Place: TypeAlias = Durable | str | os.PathLike[str]
"""What names a place: a path, a URL, or everything there is to say about it."""

_guard = threading.Lock()
_held: dict[str, tuple[Store, int]] = {}


def _begin_anew() -> None:
    """In a forked child: what is held is the parent's, and so is the lock, which one of its threads may have taken."""
    global _guard  # noqa: PLW0603 - one lock for one process
    _guard = threading.Lock()
    _held.clear()


if hasattr(os, "register_at_fork"):  # where there is no fork, there is nothing to begin anew
    os.register_at_fork(after_in_child=_begin_anew)


def hold(place: Durable, existing: bool) -> Store:
    """The store of this place; an SQLite file is opened once for the whole process."""
    if place.in_postgres:
        return place.store(existing)
    name = os.path.realpath(place.place)
    with _guard:
        held = _held.get(name)
        store, users = (place.store(existing), 0) if held is None else held
        _held[name] = (store, users + 1)
        return store


def release(store: Store, broken: bool = False) -> None:
    """Let go of a store; the last user closes it. A broken one is closed for all, and opened anew by the next."""
    with _guard:
        for name, (held, users) in list(_held.items()):
            if held is store:
                if users > 1 and not broken:
                    _held[name] = (held, users - 1)
                    return
                del _held[name]
        if broken:
            store.abandon()
        else:
            store.close()
