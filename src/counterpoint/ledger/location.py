"""Where a durable ledger is kept, with which key and which witness; and one connection to an SQLite file for all who
use it in this process.

>>> Durable("ledger.db", key_file="/safe/ledger.key", witness="/elsewhere/ledger.witness")
Durable('ledger.db')
"""

import os
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import parse_qsl, urlsplit

import msgspec

from counterpoint.errors import InvalidParameter
from counterpoint.ledger.chain import Signer
from counterpoint.ledger.remote_witness import RemoteWitness, is_address
from counterpoint.ledger.sealing import MasterKey
from counterpoint.ledger.store.postgres import PostgresStore
from counterpoint.ledger.store.snapshot import read_only
from counterpoint.ledger.store.sqlite import SqliteStore
from counterpoint.ledger.store.store import Store
from counterpoint.ledger.witness import Witness, WitnessFile

_SCHEMES = ("postgresql://", "postgres://")
WITNESS = "COUNTERPOINT_WITNESS"
"""The path of the witness file, where none is given."""
_WAIT = 1.0
_LONGEST_WAIT = 86_400


class Durable(msgspec.Struct, frozen=True):
    """A path or a postgresql:// URL, and how the ledger there is kept.

    The key comes from `key_file`, else from COUNTERPOINT_KEY or COUNTERPOINT_KEY_FILE, else, for SQLite, from the file
    `<path>.key`, which is made along with a new ledger: move it away from the database, and out of its backups.
    The witness is `witness`, else COUNTERPOINT_WITNESS, else, for SQLite, `<path>.witness`; it belongs on another disk.
    One at an https:// address (`counterpoint witness`) needs its key: `witness_key_file`, else
    COUNTERPOINT_WITNESS_KEY_FILE.
    A path that is a symbolic link stands for what it leads to: key and witness are beside that.
    `wait` is how many seconds to wait for another process that has the ledger, or on PostgreSQL the account, and for a
    server to be reached (2 at least). None is 1 for SQLite; for PostgreSQL 30, and for the server what the URL says.
    """

    place: str
    key_file: str | None = None
    witness: str | None = None
    wait: float | None = None
    witness_key_file: str | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            place: str | os.PathLike[str],
            key_file: str | os.PathLike[str] | None = None,
            witness: str | os.PathLike[str] | None = None,
            wait: float | None = None,
            witness_key_file: str | os.PathLike[str] | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        """Read paths as strings."""
        for name in ("place", "key_file", "witness", "witness_key_file"):
            value = getattr(self, name)
            if not isinstance(value, str | os.PathLike | None) or value in ("", ":memory:"):
                raise InvalidParameter(f"{name} is a path, or for the ledger itself a postgresql:// URL")
            msgspec.structs.force_setattr(self, name, None if value is None else os.fspath(value))
        if self.place is None:
            raise InvalidParameter("a durable ledger is at a path or a postgresql:// URL")
        if self.wait is not None and (type(self.wait) not in (int, float) or not 0 <= self.wait <= _LONGEST_WAIT):
            raise InvalidParameter(f"wait is a number of seconds from 0 to {_LONGEST_WAIT}")

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
        if found is None and not self.in_postgres and os.path.exists(self._beside("key")):
            return MasterKey.from_file(self._beside("key"))
        return found

    @property
    def signer(self) -> str | None:
        """The public key that records and receipts of the sessions here are signed with; None without a master key.

        An auditor gets it from the custodian, and gives it to `checker.py` as `--signer`.
        """
        key = self.master_key()
        return None if key is None else Signer(key.signing_seed()).public

    def master_keys(self) -> tuple[MasterKey, ...]:
        """Every key at hand: the one that was given, that of the environment, the one beside the ledger."""
        found = [None if self.key_file is None else MasterKey.from_file(self.key_file), MasterKey.from_environment()]
        if not self.in_postgres and os.path.exists(self._beside("key")):
            found.append(MasterKey.from_file(self._beside("key")))
        return tuple(key for key in found if key is not None)

    def make_key_beside(self) -> None:
        """For a new SQLite ledger without any key: one in a file beside it."""
        given = self.key_file is not None or self.in_postgres or MasterKey.from_environment() is not None
        if not given and not os.path.exists(self._beside("key")):
            MasterKey.create(self._beside("key"))

    def _beside(self, ending: str) -> str:
        """A file of an SQLite ledger, by whatever name the ledger is opened."""
        return f"{os.path.realpath(self.place)}.{ending}"

    def witness_file(self) -> Witness | None:
        """The witness, if there is one."""
        path = self._witness_path
        if path is None or not is_address(path):
            return None if path is None else WitnessFile(path, self.identity)
        return RemoteWitness(path, self.witness_key_file or os.environ.get(f"{WITNESS}_KEY_FILE"), self.identity)

    @property
    def _witness_path(self) -> str | None:
        return self.witness or os.environ.get(WITNESS) or (None if self.in_postgres else self._beside("witness"))

    @property
    def witness_beside(self) -> str | None:
        """A warning, if the witness file stands where a copy or a snapshot of the SQLite ledger has it, too.

        >>> Durable("ledger.db", witness="ledger.witness").witness_beside
        'the witness is in the folder of the ledger: an old copy of both can be put back unnoticed, ...'
        >>> Durable("ledger.db", witness="https://witness.example").witness_beside
        """
        if self.in_postgres or self._witness_path is None or is_address(self._witness_path):
            return None
        ledger, witness = os.path.realpath(self.place), os.path.realpath(self._witness_path)
        if os.path.dirname(ledger) == os.path.dirname(witness):
            where = "in the folder"
        elif _device(ledger) == _device(witness) is not None:
            where = "on the device"
        else:
            return None
        return (
            f"the witness is {where} of the ledger: an old copy of both can be put back unnoticed, which undoes "
            "charges; keep the witness on another disk, or use `counterpoint witness` on another machine"
        )

    def store(self, existing: bool) -> Store:
        """Open the database."""
        if self.in_postgres:
            return PostgresStore(self.place, existing=existing, wait=self.wait)
        return SqliteStore(self.place, existing=existing, wait=_WAIT if self.wait is None else self.wait)


def _device(path: str) -> int | None:
    """The device that a file is on, or will be made on."""
    with suppress(OSError):
        return os.stat(path if os.path.exists(path) else os.path.dirname(path)).st_dev
    return None


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


@contextmanager
def looked_at(place: Durable) -> Iterator[Store]:
    """The store of this place, to be read; nothing is written, but by this process if it has opened an SQLite file.

    Of an SQLite ledger that another process has open, this is a copy of a moment after this was called.
    """
    if place.in_postgres:
        with closing(PostgresStore(place.place, wait=place.wait, read_only=True)) as reading:
            yield reading
        return
    with _guard:
        held = os.path.realpath(place.place) in _held
    if not held:
        with read_only(place.place, _WAIT if place.wait is None else place.wait) as store:
            yield store
        return
    found = hold(place, existing=True)
    try:
        yield found
    finally:
        release(found)


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
