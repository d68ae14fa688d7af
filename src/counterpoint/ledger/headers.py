"""The header of a session: its own record in a database. How one is made, and how it is changed, each on the chain.

A budget belongs to a data set, and a second name for the same rows would be a second budget. So a header has a digest
of the rows as they were given, whatever was declared about them; several tables have one each, and one that is equal
is enough. In the open such a digest would confirm a guess at the rows, so it is sealed with the session's data key:
sessions under different master keys cannot be compared. This guards against mistakes, not against a custodian: one
changed row makes other rows.

>>> str(in_use("people", ("visitors",))).split(":")[0]
"session 'people' would be a second budget for the rows of 'visitors'"
"""

import hmac
import os
from collections.abc import Sequence
from hashlib import sha256

from counterpoint.errors import DataInUse, LedgerTampered, NotAllowed, Unsealable
from counterpoint.ledger.chain import SESSION, Entry, Head, Signer, read_entry
from counterpoint.ledger.sealing import DataKeys, MasterKey
from counterpoint.ledger.store.records import REGISTER, SessionHeader, keys_digest
from counterpoint.ledger.store.store import ChangeSet, Store
from counterpoint.ledger.witness import Witness

_REGISTER = "the register of a ledger"
"""The fingerprint in the header of a register, which has no data."""
_WITNESSED = "there is a witness from here on"


def new_genesis() -> bytes:
    """A random beginning for a chain: no two chains share one."""
    return sha256(os.urandom(32)).digest()


def create(  # noqa: PLR0917 - all that a header is made of
    store: Store,
    name: str,
    master: MasterKey | None,
    genesis: bytes,
    fingerprint: str,
    rows: bytes | None,
    *,
    witness: Witness | None,
    second_budget: bool,
) -> None:
    """Make the header of a new session and its first entries, unless another session has these rows.

    The same transaction enters the session in the register.
    """
    assert master is not None
    if witness is not None:
        # The witness comes first: a header that its witness has never seen looks like one whose witness was taken away.
        witness.note_place(name, genesis)
    wrapped = (DataKeys.fresh(name, 0, master),)
    content = None if rows is None else sealed(rows, DataKeys(name, master, wrapped), genesis)
    store.begin_alone(name)
    beside = () if rows is None else with_rows(store, name, rows, master)
    if beside and not second_budget:
        raise in_use(name, beside)
    header = SessionHeader(Head(0, genesis), genesis, fingerprint, wrapped, witness is not None, content, beside)
    head = _put_first(store, name, header, about(beside))
    if head is not None:
        _register(store, name, genesis, master)
        _name_signer(store, ChangeSet(store, name, head), Signer(master.signing_seed()).public)
    store.commit()


def add_rows(
    store: Store, name: str, master: MasterKey | None, keys: DataKeys, rows: bytes, *, second_budget: bool
) -> SessionHeader:
    """Add the digest of a next version's rows to the header, unless another session has these rows.

    It is added whatever the rows are: a header that did not grow would tell that they are those of the version before.
    """
    head, header = store.begin(name), store.header(name)
    assert head is not None and header is not None
    others = with_rows(store, name, rows, master)
    if others and not second_budget:
        raise in_use(name, others)
    known = b"" if header.content is None else keys.unseal(header.content, "rows", header.genesis.hex())
    also = tuple(dict.fromkeys((*header.beside, *others)))
    grown = header._replace(content=sealed(known + rows, keys, header.genesis), beside=also)
    return _replace(store, ChangeSet(store, name, head), grown, "rows", about(others, "the rows of the next version"))


def _put_first(store: Store, name: str, header: SessionHeader, what: str) -> Head | None:
    """Make a header with its first entry. Returns the head, or None if the name is taken."""
    first = Entry(
        1, "data", "", (), what, header.fingerprint or "", state=keys_digest(header.keys), record=header.record
    )
    head = Head(1, first.hash(header.genesis))
    return head if store.create(name, header._replace(head=head), first.encoded()) else None


def _register(store: Store, name: str, genesis: bytes, master: MasterKey) -> None:
    """Enter a new session in the register."""
    changes = ChangeSet(store, REGISTER, _locked_register(store, master))
    changes.append(SESSION, "", (), f"session {name!r} was made", name, state=genesis.hex())
    store.write(changes)


def make_register(store: Store, master: MasterKey) -> None:
    """Make the register of a new ledger, unless there is one by now."""
    store.begin_alone(REGISTER)
    _locked_register(store, master)
    store.commit()


def _locked_register(store: Store, master: MasterKey) -> Head:
    """The head of the register, which is made along with the first session or principal of a ledger.

    The service that uses it gives it a witness: sessions may have witnesses of their own.
    """
    found = store.lock_session(REGISTER)
    if found is None:
        genesis, wrapped = new_genesis(), (DataKeys.fresh(REGISTER, 0, master),)
        header = SessionHeader(Head(0, genesis), genesis, _REGISTER, wrapped, witnessed=False)
        _put_first(store, REGISTER, header, "the register of this ledger was begun")
        found = store.lock_session(REGISTER)
        assert found is not None
    return found


def must_have_key(master: MasterKey | None) -> None:
    """`Unsealable` where a new ledger would have nothing to seal with."""
    if master is None:
        raise Unsealable(
            "a durable ledger seals what is secret, and no key was given: make one with `counterpoint ledger "
            "key FILE`, keep it apart from the database, and say COUNTERPOINT_KEY_FILE=FILE"
        )


def require_witness(store: Store, name: str) -> SessionHeader:
    """Put on record that there is a witness, so that from now on there must be one. Returns the header."""
    head, header = store.begin(name), store.header(name)
    assert head is not None and header is not None
    return _replace(store, ChangeSet(store, name, head), header._replace(witnessed=True), "witness", _WITNESSED)


def signer(name: str, master: MasterKey, public: str) -> Signer:
    """The signer of a session; `LedgerTampered` if its record names another one than its key gives."""
    found = Signer(master.signing_seed())
    if found.public != public:
        raise LedgerTampered(f"the record of {name!r} names another signer than that of its key: it was changed")
    return found


def signer_at_hand(store: Store, name: str, master: MasterKey | None) -> Signer | None:
    """The signer of a session that is not opened; None if this is not the key of its present signer."""
    entries = (read_entry(data, number) for number, data in store.entries(name, 0))
    public = [entry.what for entry in entries if entry.kind == "signer"]
    found = None if master is None else Signer(master.signing_seed())
    return None if found is None or [found.public] != public[-1:] else found


def _name_signer(store: Store, changes: ChangeSet, public: str) -> None:
    changes.append("signer", "", (), public, "")
    store.write(changes)


def _replace(store: Store, changes: ChangeSet, header: SessionHeader, kind: str, what: str) -> SessionHeader:
    """Write a changed header, and say on the chain what was changed."""
    changes.append(kind, "", (), what, "", record=header.record)
    store.write(changes)
    store.write_header(changes.name, header)
    store.commit()
    return header._replace(head=changes.head)


def rewrap(store: Store, name: str, old: MasterKey | None, new: MasterKey) -> tuple[bytes, ...]:
    """Wrap the data keys with another master key, and add a new one for what is sealed from now on."""
    head, header = store.begin(name), store.header(name)
    assert head is not None and header is not None
    # those on record, not those read at the start: another process may have added one since
    keys = DataKeys(name, old, header.keys).rewrapped(new)
    changes = ChangeSet(store, name, head)
    changes.append("keys", "", (), f"master key {new.name}", "", state=keys_digest(keys))
    if name != REGISTER:  # no record and no receipt is signed for it
        _change_signer(changes, old, new)
    store.write(changes)
    store.write_keys(name, keys)
    store.commit()
    return keys


def _change_signer(changes: ChangeSet, old: MasterKey | None, new: MasterKey) -> None:
    """Name the signer of the new master key, signed by the one before it."""
    assert old is not None
    before, after = Signer(old.signing_seed()), Signer(new.signing_seed())
    if before.public != after.public:
        signature = before.sign_successor(after.public, changes.head.hash)
        changes.append("signer", "", (), after.public, signature)


def must_not_be_retired(name: str, header: SessionHeader) -> None:
    """`NotAllowed` if the session is retired: nothing is left of it but its record."""
    if not header.keys:
        raise NotAllowed(
            f"{name!r} is retired: its keys and answers are destroyed. Its record can be read by `counterpoint ledger "
            "history`, `verify` and `export`"
        )


_SIZE = 32
"""The bytes of a digest."""


def sealed(rows: bytes, keys: DataKeys, genesis: bytes) -> bytes:
    """The digest as it is stored."""
    return keys.seal(rows, "rows", genesis.hex())


def with_rows(store: Store, name: str, rows: bytes, master: MasterKey | None) -> tuple[str, ...]:
    """The other sessions of a ledger that have these rows."""
    others = [(other, store.header(other)) for other in store.names() if other != name]
    return tuple(other for other, header in others if header is not None and _has(other, header, rows, master))


def _has(name: str, header: SessionHeader, rows: bytes, master: MasterKey | None) -> bool:
    keys = DataKeys(name, master, header.keys)
    if header.content is None or not keys.usable:
        return False
    try:
        known = keys.unseal(header.content, "rows", header.genesis.hex())
    except Unsealable:
        raise LedgerTampered(f"what is on record of the rows of {name!r} was changed") from None
    return any(hmac.compare_digest(one, other) for one in _digests(known) for other in _digests(rows))


def _digests(rows: bytes) -> list[bytes]:
    """The digest of each table.

    >>> [len(one) for one in _digests(bytes(64))]
    [32, 32]
    """
    return [rows[start : start + _SIZE] for start in range(0, len(rows), _SIZE)]


def beside(store: Store, name: str) -> tuple[str, ...]:
    """The sessions that are known to have the same rows as this one, whichever of them came first."""
    headers = {other: store.header(other) for other in store.names()}
    found = headers.get(name)
    own = () if found is None else found.beside
    later = (other for other, header in headers.items() if header is not None and name in header.beside)
    return tuple(dict.fromkeys((*own, *later)))


def about(beside: Sequence[str], data: str = "the data that this session is about") -> str:
    """What the history says about the data of a session."""
    return data if not beside else f"{data}; the same rows as those of {_listed(beside)}: the custodian insisted"


def in_use(name: str, beside: Sequence[str]) -> DataInUse:
    """The error for a second name for the same rows."""
    return DataInUse(
        f"session {name!r} would be a second budget for the rows of {_listed(beside)}: open that one, and delegate a "
        "part of its budget, as in session.delegate(PureDP(0.1)). A second budget, whose losses add to those of the "
        "first, is given with second_budget=True; that stays on record and in the certificate"
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
