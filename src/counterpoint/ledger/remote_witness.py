"""A witness that is a service: `counterpoint witness` keeps the newest head of each chain, for all who write to it.

It takes a head only behind the newest one that it has seen, which the ledger names: a head that goes back, or that
leaves another one out, is refused. Where another process has moved it on meanwhile, the ledger's own entries must lead
through what it has seen; if they do not, the database was put back or forked while it was open. What was sent is sent
again after a failure: the same head is taken once. A witness that stays out of reach is a `WitnessFailed`: what was
charged is on record, nothing is released, and the request is repeated by its id.

>>> RemoteWitness("http://example.org", "witness.key", "here")
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: the key of a witness is sent to it, so it is reached by https://, not by http://...
"""

import http.client
import ipaddress
import json
import os
import ssl
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from counterpoint.errors import InvalidParameter, LedgerRolledBack, WitnessFailed
from counterpoint.ledger.chain import link
from counterpoint.ledger.witness import Entries, Line, Witness, place_in, place_mark

PAUSES = (0.1, 0.5, 1.0)
"""Seconds before each further attempt."""
TIMEOUT = 10.0
"""Seconds that an answer is waited for."""
_TRANSIENT = (429, 500, 502, 503, 504)

_Seen = tuple[int, bytes]
"""A number and the head there."""


class RemoteWitness(Witness):
    """A witness at an address, for one ledger; one thread at a time uses it, as it does the ledger's connection."""

    __slots__ = ("_connection", "_key", "_newest", "_sleep", "_url", "path", "place")

    def __init__(
        self, url: str, key_file: str | None, place: str = "", sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.path, self.place = url.rstrip("/"), place
        self._url = _checked(self.path)
        self._key = _read_key(key_file)
        self._sleep = sleep
        self._newest: dict[tuple[str, bytes], _Seen] = {}
        self._connection: http.client.HTTPConnection | None = None

    @property
    def mark(self) -> bytes:
        """Where the witness and the ledger are now."""
        return place_mark(self.path, self.place)

    def place_in(self, mark: bytes) -> bytes | None:
        """The ledger's place that a mark names, if it was made at this address."""
        return place_in(mark, self.mark)

    def seen(self, whose: str) -> Iterator[Line]:
        """The newest line of each chain of this name, its recoveries, and where its ledgers were."""
        said = self._call("GET", f"/v1/heads?session={quote(whose, safe='')}", None)
        lines = [Line(number, bytes.fromhex(head), bytes.fromhex(chain)) for number, head, chain in said["lines"]]
        for number, head, genesis in lines:
            if number:
                self._newest[whose, genesis] = (number, head)
        return iter(lines)

    def note(self, whose: str, sequence: int, head: bytes, genesis: bytes, entries: Entries | None = None) -> None:
        """Let it see a head, behind the newest one that it has seen."""
        while True:
            after = self._newest.get((whose, genesis))
            body = {"session": whose, "genesis": genesis.hex(), "number": sequence, "head": head.hex()}
            said = self._call("POST", "/v1/heads", {**body, "after": _shown(after)})
            newest = _read(said["newest"])
            if not sequence or newest == (sequence, head):
                break
            if newest is None or not _leads_through(newest, after or (0, genesis), entries):
                raise _other_history(whose)
            self._newest[whose, genesis] = newest
            if newest[0] >= sequence:  # another process was faster: what it has shown is behind this head
                return
        if sequence:
            self._newest[whose, genesis] = (sequence, head)

    def note_place(self, whose: str, genesis: bytes) -> None:
        """Let it see where it and the ledger are now."""
        self.note(whose, 0, self.mark, genesis)

    def note_recovery(self, whose: str, number: int, before: bytes, genesis: bytes, entry: bytes) -> None:
        """Show it the entry itself: it goes back to no other."""
        after, head = self._newest.get((whose, genesis)), link(before, entry)
        body = {"session": whose, "genesis": genesis.hex(), "number": number, "before": before.hex()}
        said = self._call("POST", "/v1/recoveries", {**body, "entry": entry.decode(), "after": _shown(after)})
        if _read(said["newest"]) != (number, head):
            raise _other_history(whose)
        self._newest[whose, genesis] = (number, head)

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _call(self, method: str, path: str, body: Any) -> Any:
        """Send a request until it is answered: what was taken is taken once."""
        why = ""
        for pause in (*PAUSES, None):
            try:
                status, said = self._send(method, path, body)
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.close()
                why = type(error).__name__
            else:
                if status in (200, 201, 409) and isinstance(said, dict):
                    return said
                why = f"it answered {status}"
                if status == 401:
                    why = "it does not know the key"
                if status not in _TRANSIENT:
                    break
            if pause is not None:
                self._sleep(pause)
        raise WitnessFailed(
            f"the witness {self.path!r} cannot be used: {why}. What was charged is on record and nothing was released; "
            "mend that, open the ledger again, and repeat what was not answered by its id"
        )

    def _send(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        if self._connection is None:
            url = self._url
            if url.scheme == "https":
                context = ssl.create_default_context()
                self._connection = http.client.HTTPSConnection(url.netloc, timeout=TIMEOUT, context=context)
            else:
                self._connection = http.client.HTTPConnection(url.netloc, timeout=TIMEOUT)
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        self._connection.request(method, f"{self._url.path}{path}", data, headers)
        with self._connection.getresponse() as answer:
            return answer.status, json.loads(answer.read())


def is_address(witness: str) -> bool:
    """Whether a witness is a service rather than a file.

    >>> is_address("https://witness.example"), is_address("/elsewhere/ledger.witness")
    (True, False)
    """
    return witness.startswith(("https://", "http://"))


def _leads_through(newest: _Seen, known: _Seen, entries: Entries | None) -> bool:
    """Whether the chain, from a head that it has, leads through another one."""
    number, head = known
    if number < newest[0] and entries is not None:
        for number, data in entries(number):  # noqa: B020 - from where it is to where it comes
            head = link(head, data)
            if number == newest[0]:
                break
    return (number, head) == newest


def _other_history(whose: str) -> LedgerRolledBack:
    return LedgerRolledBack(
        f"the witness has seen another history of {whose!r} than this one: an old copy was put back, or two are in "
        "use; nothing is released from it. Open the ledger again to see which"
    )


def _checked(url: str) -> Any:
    parts = urlsplit(url)
    if not parts.hostname or parts.username or parts.query:
        raise InvalidParameter("a witness is at an address such as https://witness.example:8443, without a key in it")
    if parts.scheme != "https" and not _is_loopback(parts.hostname):
        raise InvalidParameter(
            "the key of a witness is sent to it, so it is reached by https://, not by http://, but for one on this "
            "machine"
        )
    return parts


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _read_key(file: str | None) -> str:
    if file is None:
        raise InvalidParameter("a witness at an address needs the key that it gave: name the file with it")
    path = Path(file)
    try:
        if os.name == "posix" and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise InvalidParameter(f"others may read the witness's key file {file!r}: chmod 600 it")
        key = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeError):
        raise InvalidParameter(f"the witness's key file {file!r} cannot be read") from None
    if not key or not key.isprintable():
        raise InvalidParameter(f"the witness's key file {file!r} holds no key")
    return key


def _shown(seen: _Seen | None) -> list[Any] | None:
    return None if seen is None else [seen[0], seen[1].hex()]


def _read(said: Any) -> _Seen | None:
    return None if said is None else (int(said[0]), bytes.fromhex(said[1]))
