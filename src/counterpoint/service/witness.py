r"""The witness service, `counterpoint witness`: it records the newest head of each ledger's chain, outside the ledger.

It holds numbers, hashes and the names of sessions, and nothing that was asked, answered or drawn. Each owner of ledgers
has a key and sees only its own heads; `ledger/remote_witness.py` is the client.

A chain only goes forward. A head is accepted if it is the first of its chain, or if its sender names the newest one
before it. The one exception is the entry of a recovery (`ledger/admin.py`), which is sent whole: the witness checks
that it is a recovery from the last head it has seen, and that the new head is that entry's. Each line is on disk before
it is acknowledged. A long file is rewritten with the newest lines and those around recoveries; it is also rewritten
before the first acknowledgement after a start or a failed line, since what can be read may never have reached the disk.

>>> import tempfile
>>> book = WitnessBook(tempfile.mkdtemp())
>>> key = book.new_key("ann")
>>> book.owner(key.shown()), book.owner(key.shown() + "x"), book.owner("")
('ann', None, None)
>>> chain = SeenChain("people", b"\xbb" * 32)
>>> book.note("ann", chain, 7, b"\xaa" * 32, after=None)
(7, b'...')
>>> book.note("ann", chain, 5, b"\xcc" * 32, after=(7, b"\xaa" * 32))
Traceback (most recent call last):
...
counterpoint.service.witness.HeadRefused: it has seen another head last
>>> book.close()
"""

import hmac
import json
import os
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from litestar import Litestar, Request, Response, get, post
from litestar.connection import ASGIConnection
from litestar.datastructures import State
from litestar.exceptions import HTTPException, NotAuthorizedException
from litestar.middleware import AbstractAuthenticationMiddleware, AuthenticationResult, DefineMiddleware
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.params import JSONBody, QueryParameter

import counterpoint
from counterpoint.errors import CounterpointError, InvalidParameter, LedgerTampered
from counterpoint.ledger.chain import link, read_entry
from counterpoint.ledger.line_file import LineFile
from counterpoint.ledger.state import principal
from counterpoint.ledger.store.files import FileLock
from counterpoint.ledger.witness import Line, WitnessFile
from counterpoint.service import tls
from counterpoint.service.edge import StrictRequest, harden
from counterpoint.service.identity import ApiKey
from counterpoint.service.limits import Limits
from counterpoint.service.server import Listening, address, listener_at, run_server
from counterpoint.wire.problems import PROBLEM, problem

Seen = tuple[int, bytes]
"""A number and the head there."""
_KEYS, _HEADS, _REWRITTEN, _LOCK = "keys.jsonl", "heads.", "rewritten.", "lock"
_WAIT = 10.0
"""Seconds to wait for another process that adds or ends a key."""
LONGEST = 10_000
"""How many lines a file has before it is rewritten; later on, twice as many as are needed, if these are more."""


class HeadRefused(Exception):
    """A head that is not behind the newest one, which it carries."""

    def __init__(self, newest: Seen | None) -> None:
        super().__init__("it has seen another head last")
        self.newest = newest


class SeenChain(NamedTuple):
    """Which chain: the name of its session, and where it begins."""

    session: str
    genesis: bytes


@dataclass
class _Followed:
    """What was seen of a chain: its newest head, the recoveries in it, and the places of its ledger."""

    newest: Seen | None = None
    recoveries: list[Seen] = field(default_factory=list)
    taken_back: list[Seen] = field(default_factory=list)
    """What was the newest before each recovery: that the number went back is how a recovery is known."""
    places: list[bytes] = field(default_factory=list)

    def add(self, number: int, head: bytes) -> None:
        """One line more, in the order of the file."""
        if not number:
            self.places.append(head)
            return
        if self.newest is not None and number <= self.newest[0]:
            self.recoveries.append((number, head))
            self.taken_back.append(self.newest)
        self.newest = (number, head)

    def needed(self) -> list[Seen]:
        """The lines from which all this can be read again."""
        kept = [(0, place) for place in self.places]
        for before, recovery in zip(self.taken_back, self.recoveries, strict=True):
            kept += [recovery] if before in kept[-1:] else [before, recovery]
        return kept if self.newest is None or self.newest in kept[-1:] else [*kept, self.newest]

    def lines(self, genesis: bytes) -> list[Line]:
        """What a ledger compares itself with, the newest last."""
        heads = [*((0, place) for place in self.places), *self.recoveries]
        if self.newest is not None and self.newest not in self.recoveries[-1:]:
            heads.append(self.newest)
        return [Line(number, head, genesis) for number, head in heads]


class _Owned:
    """The chains of one owner, over a file."""

    def __init__(self, folder: Path, owner: str) -> None:
        self.file = WitnessFile(folder / f"{_HEADS}{owner}")
        self._rewritten = folder / f"{_REWRITTEN}{owner}"
        self.chains: dict[SeenChain, _Followed] = {}
        self._length, self._limit = 0, LONGEST
        for session, line in self.file.everything():
            self._length += 1
            self.chain(SeenChain(session, line.genesis)).add(line.sequence, line.head)
        self._is_on_disk = not self._length

    def chain(self, chain: SeenChain) -> _Followed:
        return self.chains.setdefault(chain, _Followed())

    def append(self, chain: SeenChain, number: int, head: bytes) -> None:
        """See a head, or a place."""
        self.put_on_disk()
        if self._length >= self._limit:
            self._rewrite()
        self._is_on_disk = False
        self.file.note(chain.session, number, head, chain.genesis)
        self._is_on_disk = True
        self._length += 1
        self.chain(chain).add(number, head)

    def put_on_disk(self) -> None:
        """Make sure that all that was seen is on disk, and nothing else is in the file: before it is acknowledged."""
        if not self._is_on_disk:
            self._rewrite()
            self._is_on_disk = True

    def _rewrite(self) -> None:
        """Leave out the lines that are not needed."""
        needed = [
            (chain.session, Line(number, head, chain.genesis))
            for chain, seen in self.chains.items()
            for number, head in seen.needed()
        ]
        self.file.rewrite(needed, self._rewritten)
        self._length, self._limit = len(needed), max(LONGEST, 2 * len(needed))


class WitnessBook:
    """A folder of heads and keys, held by one process. Threads may share it."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidParameter(f"a witness cannot be kept in {str(folder)!r}: {error.strerror}") from None
        self._lock = threading.Lock()
        self._held = FileLock(str(self._folder / _LOCK), time.monotonic())
        self._owned: dict[str, _Owned] = {}
        self.keys = WitnessKeys(self._folder)

    def new_key(self, owner: str) -> ApiKey:
        """A key for the ledgers of an owner."""
        return self.keys.new(owner)

    def owner(self, presented: str) -> str | None:
        """The owner of a key."""
        return self.keys.owner(presented)

    def lines(self, owner: str, session: str) -> list[Line]:
        """The lines of every chain of this name."""
        with self._lock:
            chains = self._of(owner).chains.items()
            return [line for chain, seen in chains if chain.session == session for line in seen.lines(chain.genesis)]

    def note(self, owner: str, chain: SeenChain, number: int, head: bytes, after: Seen | None) -> Seen | None:
        """See a head, or a place (number 0); the newest then. `HeadRefused` if it is not behind the newest."""
        with self._lock:
            owned = self._of(owner)
            seen = owned.chain(chain)
            if not number:
                if head not in seen.places:
                    owned.append(chain, number, head)
            elif seen.newest == (number, head):
                pass  # sent again
            elif after != seen.newest or (after is not None and number <= after[0]):
                raise HeadRefused(seen.newest)
            else:
                owned.append(chain, number, head)
            owned.put_on_disk()
            return seen.newest

    def recover(  # noqa: PLR0917 - all that a recovery is
        self, owner: str, chain: SeenChain, number: int, before: bytes, entry: bytes, after: Seen | None
    ) -> Seen | None:
        """Go back to the entry of a recovery; `HeadRefused` if it is not a recovery from the last head."""
        with self._lock:
            owned, head = self._of(owner), link(before, entry)
            seen = owned.chain(chain)
            if seen.newest == (number, head):
                pass  # sent again
            elif after != seen.newest or not _is_recovery(entry, number, before, after):
                raise HeadRefused(seen.newest)
            else:
                owned.append(chain, number, head)
            owned.put_on_disk()
            return seen.newest

    def _of(self, owner: str) -> _Owned:
        if owner not in self._owned:
            self._owned[owner] = _Owned(self._folder, owner)
        return self._owned[owner]

    def close(self) -> None:
        """Let go of the folder."""
        for owned in self._owned.values():
            owned.file.close()
        self._held.release()


def _is_recovery(entry: bytes, number: int, before: bytes, after: Seen | None) -> bool:
    """Whether an entry is the recovery, behind that head, of a record that had come so far."""
    try:
        read = read_entry(entry, number)
        backup, head, seen, lost = msgspec.json.decode(read.body, type=tuple[int, str, int, str])
    except (LedgerTampered, msgspec.MsgspecError):
        return False
    about = (0, "") if after is None else (after[0], after[1].hex())
    return (read.kind, read.number, backup, head, seen, lost) == ("recovery", number, number - 1, before.hex(), *about)


class WitnessKeys:
    """The keys of a witness, in a file of digests. It is read anew for each caller: an ended key ends at once."""

    def __init__(self, folder: Path) -> None:
        self._file = LineFile(folder / _KEYS)

    def new(self, owner: str) -> ApiKey:
        """A key for the ledgers of an owner; it is shown once, and its digest stored."""
        key = ApiKey.fresh()
        self._append({"id": key.id, "owner": principal(owner), "digest": key.digest.hex(), "at": int(time.time())})
        return key

    def end(self, id: str) -> None:
        """End a key, by its public id."""
        if id not in {said["id"] for said in self._read()}:
            raise InvalidParameter(f"this witness has no key {id!r}")
        self._append({"id": id, "ended": int(time.time())})

    def owner(self, presented: str) -> str | None:
        """The owner of a key; every path takes the same comparison."""
        key = ApiKey.read(presented)
        found = self.standing().get("" if key is None else key.id, {})
        digest = bytes.fromhex(found.get("digest", bytes(32).hex()))
        right = hmac.compare_digest(digest, bytes(32) if key is None else key.digest)
        return found["owner"] if right and found else None

    def standing(self) -> dict[str, dict[str, Any]]:
        """The keys that have not ended, by their ids."""
        keys: dict[str, dict[str, Any]] = {}
        for said in self._read():
            if "ended" in said:
                keys.pop(said["id"], None)
            else:
                keys[said["id"]] = said
        return keys

    def _read(self) -> list[dict[str, Any]]:
        try:
            return [json.loads(line) for line in self._file.texts()]
        except ValueError:
            raise LedgerTampered(f"the keys of the witness in {self._file.path!r} cannot be read") from None

    def _append(self, said: dict[str, Any]) -> None:
        """All keys go to a new file, so that one that could not be added or ended is as it was before."""
        lock = FileLock(f"{self._file.path}.lock", time.monotonic() + _WAIT)  # the service and commands add keys
        try:
            self._file.rewrite([*self._file.texts(), json.dumps(said).encode()], f"{self._file.path}.new")
        finally:
            lock.release()


FIRST = "ledgers"
"""The owner whose key the first start makes."""
_LARGEST_BODY = 2**16

_Hash = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
_Number = Annotated[int, msgspec.Meta(ge=0, lt=2**62)]
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
_Asked = Annotated[str, QueryParameter(min_length=1, max_length=200)]
Json = dict[str, Any]


class HeadBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A head, and the newest one before it as its sender knows it."""

    session: _Name
    genesis: _Hash
    number: _Number
    head: _Hash
    after: tuple[_Number, _Hash] | None


class RecoveryBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The entry of a recovery, the head that it is behind, and what was seen last of the record that was lost."""

    session: _Name
    genesis: _Hash
    number: _Number
    before: _Hash
    entry: str
    after: tuple[_Number, _Hash] | None


class OwnerAuthentication(AbstractAuthenticationMiddleware):
    """Reads the key of a request."""

    async def authenticate_request(self, connection: ASGIConnection[Any, Any, Any, Any]) -> AuthenticationResult:
        """The owner that the key belongs to."""
        scheme, _, presented = connection.headers.get("authorization", "").partition(" ")
        book: WitnessBook = connection.app.state.book
        owner = book.owner(presented.strip()) if scheme.lower() == "bearer" else None
        if owner is None:
            raise NotAuthorizedException("send a valid key, as in: Authorization: Bearer cp_...")
        return AuthenticationResult(user=owner, auth=None)


@get("/health", sync_to_thread=False, summary="Whether the process lives", security=[])
def alive() -> dict[str, str]:
    """Always so, if it answers."""
    return {"status": "alive"}


@get("/v1/heads", sync_to_thread=True, summary="What was seen of the chains of a session")
def heads(request: Request[str, Any, State], session: _Asked) -> Json:
    """The newest head of each chain of this name, its recoveries and places."""
    book: WitnessBook = request.app.state.book
    found = book.lines(request.user, session)
    return {"lines": [(line.sequence, line.head.hex(), line.genesis.hex()) for line in found]}


@post("/v1/heads", sync_to_thread=True, summary="See a head, behind the newest one")
def note(request: Request[str, Any, State], data: JSONBody[HeadBody]) -> Json:
    """Acknowledged once it is on disk; 409 with the newest head if it goes back or skips one."""
    book: WitnessBook = request.app.state.book
    chain = SeenChain(data.session, bytes.fromhex(data.genesis))
    return _newest(book.note(request.user, chain, data.number, bytes.fromhex(data.head), _read(data.after)))


@post("/v1/recoveries", sync_to_thread=True, summary="Go back to the entry of a recovery")
def recover(request: Request[str, Any, State], data: JSONBody[RecoveryBody]) -> Json:
    """Accepted if the entry is a recovery from the last head; nothing else may go back."""
    book: WitnessBook = request.app.state.book
    chain, entry = SeenChain(data.session, bytes.fromhex(data.genesis)), data.entry.encode()
    before, after = bytes.fromhex(data.before), _read(data.after)
    return _newest(book.recover(request.user, chain, data.number, before, entry, after))


def witness_application(book: WitnessBook) -> Litestar:
    """The HTTP application over a witness's book."""
    return Litestar(
        route_handlers=[alive, heads, note, recover],
        middleware=[DefineMiddleware(OwnerAuthentication, exclude=["^/health", "^/schema"])],
        exception_handlers={HeadRefused: _behind, CounterpointError: _refused, HTTPException: _http, Exception: _fault},
        logging_config=None,
        request_max_body_size=_LARGEST_BODY,
        before_send=[harden],
        request_class=StrictRequest,
        # the framework's pages for a browser would run scripts of other hosts
        openapi_config=OpenAPIConfig(
            title="Counterpoint witness", version=counterpoint.__version__, render_plugins=[JsonRenderPlugin()]
        ),
        state=State({"book": book}),
    )


def serve_witness(folder: str, listening: Listening, say: Callable[[str], None]) -> None:
    """Serve until a signal stops it. `say` shows the address and, on the first start, a key."""
    tls.check(listening.certificate, listening.private_key)
    with closing(WitnessBook(folder)) as book, listener_at(listening) as listener:
        host, port = listener.getsockname()[:2]
        say(f"a witness at {address(host, port, listening.certificate is not None)}")
        if not book.keys.standing():
            say(f"the key of {FIRST!r}, shown only once: {book.new_key(FIRST).shown()}")
        say("stop it with Ctrl-C, or SIGTERM")
        run_server(listening, listener, Limits(), lambda: witness_application(book))


def _newest(seen: Seen | None) -> Json:
    return {"newest": None if seen is None else (seen[0], seen[1].hex())}


def _read(said: tuple[int, str] | None) -> Seen | None:
    return None if said is None else (said[0], bytes.fromhex(said[1]))


def _behind(_request: Request[Any, Any, Any], error: HeadRefused) -> Response[Any]:
    detail = "this head is not behind the newest one that was seen"
    said = {"type": "about:blank", "title": "Refused", "status": 409, "detail": detail, **_newest(error.newest)}
    return Response(said, status_code=409, media_type=PROBLEM)


def _refused(_request: Request[Any, Any, Any], error: CounterpointError) -> Response[Any]:
    said = problem(error)
    return Response(said, status_code=said["status"], media_type=PROBLEM)


def _http(_request: Request[Any, Any, Any], error: HTTPException) -> Response[Any]:
    said = {"type": "about:blank", "title": type(error).__name__, "status": error.status_code, "detail": error.detail}
    return Response(said, status_code=error.status_code, media_type=PROBLEM)


def _fault(_request: Request[Any, Any, Any], _error: Exception) -> Response[Any]:
    said = {"type": "about:blank", "title": "InternalError", "status": 500, "detail": "the witness failed; see its log"}
    return Response(said, status_code=500, media_type=PROBLEM)
