"""Replaying a record: every launch and every refusal must have been right at its place, and every request is compared.

A chain that holds together may still say something wrong, if it was rewritten as a whole. So each entry goes through
the rule again, by the same code that admits; what comes of it is compared with what is stored.

>>> Replay("people").step(Entry(1, "answer", "monday", (0,), "", "", record="a fingerprint"))
Traceback (most recent call last):
...
counterpoint.errors.LedgerTampered: entry 1 of 'people' is wrong: an answer was given to a request that was not open
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from counterpoint.composition.accumulator import Account
from counterpoint.composition.rule import Exhausted
from counterpoint.encoding import Plain, decode
from counterpoint.errors import CounterpointError, LedgerTampered
from counterpoint.ledger.chain import INTENTS, Entry, said_digest
from counterpoint.ledger.commands import launch_kind, pins_version
from counterpoint.ledger.sealed_rows import budget_used, read_public_row
from counterpoint.ledger.state import Grant, Path, SessionState
from counterpoint.ledger.store.records import StoredRow, path_text, read_path
from counterpoint.ledger.store.store import Store
from counterpoint.ledger.witness import Recovered
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.privacy.claims import Claim
from counterpoint.privacy.relations import Relation
from counterpoint.queries.request import OnSource, PreparedQuery, Request
from counterpoint.schema.versions import DeclaredData

_SAYS: dict[str, tuple[Any, ...]] = {
    "open": (str, Concurrent, bool),
    "ask": (str, tuple, object, object),
    "question": (str, tuple, PreparedQuery, object, Relation),
    "revocation": (str, tuple),
    "recount": (str, tuple, int),
    "closing": (str, tuple, int),
    "reopening": (str, tuple, int),
    "version": (str, tuple, int, str, DeclaredData, str),
}
"""What the bodies of entries are made of."""
LAUNCHING = ("launch", "delegation", "charge", "question")
"""The kinds of entries that charge a session."""
_LAUNCH: tuple[Any, ...] = (
    str,
    tuple,
    str | None,
    Mechanism,
    Relation,
    str | None,
    str | tuple | Request | OnSource | None,
)
"""What the body of a launch is made of; that of a granted session has its grant, too."""


class Replay:
    """What the entries say must be stored."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: dict[Path, tuple[Concurrent, Account, int]] = {}
        self._grants: dict[Path, Grant] = {}
        self._granted: dict[Path, list[Claim]] = {}
        self._open: dict[str, Entry] = {}
        self._places: dict[str, Path] = {}
        self._recounted: set[Path] = set()
        self._asked: dict[str, bytes] = {}
        self._done: set[str] = set()
        self._records: dict[str, str] = {}
        self._sent: set[str] = set()
        self._sending = ""
        self._recovered = self._recovering = self._retired = False
        self._closings = 0
        self._version = 1
        self._sees: dict[Path, int] = {}
        """Of a mechanism the version of the data that it keeps; of a session that, if it keeps one."""
        self._seeing: dict[str, int] = {}
        self._left_open: set[str] = set()
        self._steps: dict[str, Callable[[Entry], None]] = {
            **dict.fromkeys(LAUNCHING, self._launch),
            **dict.fromkeys(("closing", "reopening"), self._closing),
            "version": self._refreshed,
            "revocation": self._revocation,
            "recount": self._recount,
            "refusal": self._refusal,
            "answer": self._answered,
            "recovery": self._recovery,
            "lost": self._lost,
        }

    def step(self, entry: Entry) -> None:
        """One entry further, if it was right."""
        self._must_be_over(entry)
        if entry.kind in INTENTS:
            if entry.request in self._asked:
                raise self._wrong(entry, "a request was admitted twice")
            self._open[entry.request] = entry
            self._asked[entry.request] = said_digest(entry.body.encode())
        self._recorded(entry)
        if entry.kind == "open":
            _, composition, _ = _parts(entry)
            if self._nodes:
                raise self._wrong(entry, "the session was opened twice")
            self._nodes[()] = (composition, composition.rule.start(), 0)
        elif entry.kind in self._steps:
            self._steps[entry.kind](entry)
        self._retired = entry.kind == "retirement"
        self._arrived(entry)

    def _must_be_over(self, entry: Entry) -> None:
        """A retirement is the last entry. From a recovery on nothing is launched or asked.

        What was open then is closed right behind it.
        """
        if self._retired:
            raise self._wrong(entry, "the record has entries after it was retired")
        if self._recovered and entry.kind in INTENTS and entry.kind != "revocation":
            raise self._wrong(entry, "something was launched or asked after the record was lost")
        if self._closings % 2 and entry.kind in (*LAUNCHING, "ask"):
            raise self._wrong(entry, "something was launched or asked while the data were closed")
        if entry.kind == "lost" and not self._recovering:
            raise self._wrong(entry, "something was given up, and no record was lost")
        if entry.kind != "lost":
            if self._left_open:
                raise self._wrong(entry, "a request was left open that a recovery must close")
            self._recovering = False

    def _recovery(self, entry: Entry) -> None:
        self._recovered = self._recovering = True
        self._left_open = set(self._open)
        self._nodes = {
            path: (exhausted(node), account, launched) for path, (node, account, launched) in self._nodes.items()
        }

    def _lost(self, entry: Entry) -> None:
        if not entry.request:
            return  # a row, whose fingerprint is compared
        if entry.request not in self._left_open:
            raise self._wrong(entry, "a request was given up that was not open")
        self._left_open.discard(entry.request)
        del self._open[entry.request]
        self._done.add(entry.request)
        self._records[entry.request] = entry.record

    def _recorded(self, entry: Entry) -> None:
        """Which fingerprint the request of an entry must have."""
        if entry.kind in (*INTENTS, "answer"):
            if not entry.record:
                raise self._wrong(entry, "it does not say what is stored of its request")
            self._records[entry.request] = entry.record

    def compare(self, store: Store) -> None:
        """Accounts, requests and answers against what is stored."""
        if self._left_open:
            raise LedgerTampered(f"the record of {self._name!r} was recovered, and requests were left open")
        for path, (composition, account, launched) in self._nodes.items():
            stored = store.row(self._name, path_text(path))
            node = None if stored is None or stored.node is None else decode(stored.node, SessionState)
            if stored is None or node is None or node.account != account or node.launched != launched:
                raise LedgerTampered(f"the account at {path!r} is not what the charges on record add up to")
            if stored.budget_used != budget_used(composition, node):
                raise LedgerTampered(f"the account at {path!r} is not what the charges on record add up to")
            if node.closings != (0 if path else self._closings):
                raise LedgerTampered(f"whether the data of {self._name!r} are closed is not what is on record")
            if node.data_version != (1 if path else self._version):
                raise LedgerTampered(
                    f"which version of the data of {self._name!r} launches see is not what is on record"
                )
            if node.grant != self._grants.get(path):
                raise LedgerTampered(f"to whom the session at {path!r} is granted is not what is on record")
            if read_public_row(stored.public).mechanism != composition:
                raise LedgerTampered(f"the rule at {path!r} is not the one on record")
        self._compare_kinds(store)
        if not self._retired:
            self._compare_requests(store)

    def _compare_kinds(self, store: Store) -> None:
        """A session's state is in the open and its budget counted, a mechanism's sealed and not.

        Of a session only the sample of its units is sealed, if it sees one.
        """
        for row in store.rows(self._name):
            public = read_public_row(row.public)
            mechanism, sees = public.mechanism, self._sees.get(read_path(row.path), 1)
            if public.sees != (sees if pins_version(mechanism, public.by) else 1):
                raise changed(row)
            is_session, on_sample = isinstance(mechanism, Concurrent), mechanism.sampling_rate is not None
            if is_session != (row.node is not None) or (is_session and on_sample != (row.sealed is not None)):
                raise changed(row)
            if not is_session and (row.budget_used is not None or (self._recovered and row.sealed is not None)):
                raise changed(row)

    def _compare_requests(self, store: Store) -> None:
        missing = set(self._asked)
        for request in store.requests(self._name):
            missing.discard(request.request)
            done = request.request in self._done
            if request.digest != self._asked.get(request.request) or done != (request.answer is not None):
                raise other_request(request.request)
            if self._records[request.request] != request.fingerprint:
                raise other_request(request.request)
        if missing:
            raise LedgerTampered(
                f"request {min(missing)[:80]!r} is on record, and its row is missing: it was taken away"
            )

    def _launch(self, entry: Entry) -> None:
        asked = _launched(entry)
        parent = asked.parent
        if entry.kind not in ("question", launch_kind(asked.mechanism)):
            raise self._wrong(entry, "a launch is on record as one of another kind")
        composition, account, launched = self._node(entry, parent)
        self._places[entry.request] = (*parent, launched if asked.name is None else asked.name)
        self._keeps_version(entry, asked)
        try:
            after = composition.admit(account, asked.mechanism, asked.data)
        except CounterpointError as error:
            raise self._wrong(entry, f"a launch was admitted that the rule refuses ({type(error).__name__})") from None
        self._nodes[parent] = (composition, after, launched + 1)
        if parent in self._granted:
            self._granted[parent].append(asked.mechanism.claim)

    def _keeps_version(self, entry: Entry, asked: "_Launched") -> None:
        """A launch sees the version that the nearest session around it keeps, or the current one."""
        ends = (asked.parent[:length] for length in range(len(asked.parent), 0, -1))
        current = next((self._sees[end] for end in ends if end in self._sees), self._version)
        keeps = pins_version(asked.mechanism, asked.by)
        if asked.sees != (current if keeps else 1):
            raise self._wrong(entry, "something was launched on another version of the data than the one of its time")
        if keeps:
            self._seeing[entry.request] = current

    def _refreshed(self, entry: Entry) -> None:
        _, path, number, *_ = _parts(entry)
        if path or number != self._version + 1:
            raise self._wrong(entry, "the versions of the data are numbered one after the other")
        self._version = number

    def _closing(self, entry: Entry) -> None:
        _, path, number = _parts(entry)
        if path or number != self._closings or (entry.kind == "reopening") != bool(number % 2):
            raise self._wrong(entry, "data are closed and reopened in turn")
        self._closings += 1

    def _revocation(self, entry: Entry) -> None:
        grant = self._grants.get(entry.path)
        if grant is None:
            raise self._wrong(entry, "there was no grant to revoke")
        self._grants[entry.path] = replace(grant, revoked=True)

    def _recount(self, entry: Entry) -> None:
        _, parent, number = _parts(entry)
        composition, account, launched = self._node(entry, parent)
        child = (*parent, number)
        grant = self._grants.get(child)
        if grant is None or not grant.revoked:
            raise self._wrong(entry, "what was not revoked was recounted")
        if child in self._recounted:
            raise self._wrong(entry, "what was left unused was returned twice")
        self._recounted.add(child)
        inner = self._nodes[child][0]
        try:
            after = composition.rule.refunded(account, inner.rule, inner.claim, self._granted[child])
        except CounterpointError as error:
            raise self._wrong(entry, f"a recount that no theorem covers ({type(error).__name__})") from None
        self._nodes[parent] = (composition, after, launched)

    def _refusal(self, entry: Entry) -> None:
        """A launch that the rule refuses, or a recount that no theorem covers."""
        parts = _parts(entry)
        composition, account, _ = self._node(entry, parts[1])
        try:
            if parts[0] == "recount":
                child = (*parts[1], parts[2])
                inner = self._node(entry, child)[0]
                composition.rule.refunded(account, inner.rule, inner.claim, self._granted.get(child, []))
            elif parts[0] in LAUNCHING:
                asked = _launched(entry)
                composition.admit(account, asked.mechanism, asked.data)
            else:
                return
        except CounterpointError:
            return
        raise self._wrong(entry, f"a {parts[0]} was refused that the rule admits")

    def _answered(self, entry: Entry) -> None:
        asked = self._open.pop(entry.request, None)
        if asked is None:
            raise self._wrong(entry, "an answer was given to a request that was not open")
        self._done.add(entry.request)
        if entry.request in self._seeing:
            self._sees[entry.path] = self._seeing.pop(entry.request)
        place = self._places.pop(entry.request, entry.path)
        if entry.path != place or (asked.kind == "delegation" and place in self._nodes):
            raise self._wrong(entry, "what was launched is in another place")
        if asked.kind == "delegation":
            _, _, _, composition, _, _, _, *granted = _parts(asked)
            self._nodes[entry.path] = (composition, composition.rule.start(), 0)
            if granted:
                self._grants[entry.path], self._granted[entry.path] = granted[0], []

    def _arrived(self, entry: Entry) -> None:
        """The batches of an id follow each other; whatever comes between ends it."""
        sent = entry.request if entry.kind == "items" else ""
        if sent != self._sending and sent in self._sent:
            raise self._wrong(entry, "items arrived twice under one id")
        if sent:
            self._sent.add(sent)
        self._sending = sent

    def _node(self, entry: Entry, path: Path) -> tuple[Concurrent, Account, int]:
        found = self._nodes.get(path)
        if found is None:
            raise self._wrong(entry, "there was no session to launch in")
        return found

    def _wrong(self, entry: Entry, what: str) -> LedgerTampered:
        return LedgerTampered(f"entry {entry.number} of {self._name!r} is wrong: {what}")


class _Launched(NamedTuple):
    """Where something was launched, as which part, what, on which data, cut by what; and the version that it keeps."""

    parent: Path
    name: str | None
    mechanism: Mechanism
    data: Relation
    by: str | None
    sees: int = 1


def _launched(entry: Entry) -> _Launched:
    """What an entry says was launched. A question chose its mechanism."""
    _, parent, *rest = parts = _parts(entry)
    choice = entry.body.partition("\n")[2]
    chosen: Any = _read(entry, choice) if choice else 1
    if parts[0] != "question":
        name, mechanism, data, by, *_ = rest
        return _Launched(parent, name, mechanism, data, by, chosen)
    mechanism, _, *more = chosen
    return _Launched(parent, None, mechanism, parts[4], None, *more[:1])


def _read(entry: Entry, said: str) -> Any:
    try:
        return decode(said.encode(), Plain)  # type: ignore[arg-type]  # of no fixed type
    except CounterpointError:
        raise LedgerTampered(f"entry {entry.number} cannot be read") from None


def _parts(entry: Entry) -> tuple[Any, ...]:
    said, _, choice = entry.body.partition("\n")
    parts = _read(entry, said)
    launch = (*_LAUNCH, Grant) if isinstance(parts, tuple) and len(parts) > len(_LAUNCH) else _LAUNCH
    of = parts[0] if entry.kind == "refusal" and isinstance(parts, tuple) and parts else entry.kind
    expected = _SAYS.get(of, launch) if isinstance(of, str) else launch
    fits = isinstance(parts, tuple) and len(parts) == len(expected)
    if not fits or not _fits_choice(entry, of, choice):
        raise _unreadable(entry)
    if not all(isinstance(part, kind) for part, kind in zip(parts, expected, strict=True)):
        raise _unreadable(entry)
    return tuple(parts)


def _fits_choice(entry: Entry, of: object, choice: str) -> bool:
    """Whether the second line of a body is what was decided as such a request began."""
    if not choice:
        return of != "question"
    chosen = _read(entry, choice)
    if of == "open":
        return isinstance(chosen, DeclaredData)
    if of in LAUNCHING and of != "question":
        return type(chosen) is int
    kinds = (Mechanism, object, int, str)[: len(chosen)] if of == "question" and isinstance(chosen, tuple) else ()
    return len(kinds) >= 2 and all(map(isinstance, chosen, kinds)) and len(chosen) == len(kinds)


def _unreadable(entry: Entry) -> LedgerTampered:
    return LedgerTampered(f"entry {entry.number} does not have the form of its kind")


def exhausted(composition: Concurrent) -> Concurrent:
    """The composition after its record was lost: nothing is left of its budget.

    >>> from counterpoint import Filter, PureDP
    >>> from counterpoint.privacy.relations import Steps
    >>> once = exhausted(Concurrent(Filter(PureDP(1)), Steps()))
    >>> exhausted(once) is once
    True
    """
    if isinstance(composition.rule, Exhausted):
        return composition
    return Concurrent(Exhausted(composition.rule, composition.relation), composition.relation)


def recovered(entry: Entry, before: bytes) -> Recovered:
    """What the entry of a recovery says: behind which head of the backup, and how far the witness had seen it."""
    try:
        number, head, seen, _ = msgspec.json.decode(entry.body, type=tuple[int, str, int, str])
    except msgspec.MsgspecError:
        raise LedgerTampered(f"entry {entry.number} cannot be read") from None
    if (number, head) != (entry.number - 1, before.hex()):
        raise LedgerTampered(f"entry {entry.number} is about the recovery of another record")
    return Recovered(entry.number, seen)


def other_request(request: str) -> LedgerTampered:
    """The error for a request that was changed."""
    return LedgerTampered(f"request {request[:80]!r} is not stored as the entries say")


def changed(row: StoredRow) -> LedgerTampered:
    """The error for a row that was changed."""
    return LedgerTampered(
        f"the state at {row.path} is not the one that its last charge or answer left: it was changed or put back"
    )
