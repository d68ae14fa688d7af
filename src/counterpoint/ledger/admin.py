"""What an operator does with a ledger besides asking: list, show, back up, retire and recover its sessions.

Reading needs no key and writes nothing. One process at a time has an SQLite ledger open: while a service runs, a copy
of its ledger is read, and it is backed up through the service. `retire` destroys the keys of a data set and keeps its
public record; `recover` opens a backup after the newest copy was lost.

>>> next(listed(Durable("nowhere.db")))
Traceback (most recent call last):
...
counterpoint.errors.LedgerError: there is no ledger at 'nowhere.db'
"""

import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path as FilePath

from counterpoint.encoding import decode, encode
from counterpoint.errors import InvalidParameter, LedgerBusy, LedgerError, NotAllowed, Unsealable
from counterpoint.ledger import headers, verification
from counterpoint.ledger import witness as sightings
from counterpoint.ledger.chain import API_KEY, HISTORY, read_entry
from counterpoint.ledger.location import Durable, Place, hold, looked_at, release
from counterpoint.ledger.register_check import RegisterSigner
from counterpoint.ledger.replay import exhausted
from counterpoint.ledger.sealed_rows import PublicRow, budget_used, read_public_row
from counterpoint.ledger.sealing import DataKeys, MasterKey, padded
from counterpoint.ledger.state import HistoryEntry, Lost, SessionState, principal
from counterpoint.ledger.store.records import (
    REGISTER,
    PrincipalTables,
    SessionHeader,
    StoredRow,
    keys_digest,
    path_text,
    read_path,
)
from counterpoint.ledger.store.sqlite import SqliteStore
from counterpoint.ledger.store.store import ChangeSet, Store
from counterpoint.ledger.verification import Opened
from counterpoint.ledger.witness import Witness
from counterpoint.mechanisms.concurrent import Concurrent


def listed(place: Durable) -> Iterator[str]:
    """Each session: its name, and how many entries its record has."""
    with looked_at(place) as store:
        for name in store.names():
            with store.lock:
                yield f"{name}: {_header(store, name).head.number} entries"


def shown(place: Durable, name: str) -> Iterator[str]:
    """What a session is: its rule, its loss, its keys, its witness, and the head of its chain."""
    with looked_at(place) as store, store.lock, _one_moment(store):
        header, row = _header(store, name), store.row(name, path_text(()))
        composition = None if row is None else read_public_row(row.public).mechanism
        if row is not None and row.node is not None and isinstance(composition, Concurrent):
            node = decode(row.node, SessionState)
            yield f"rule: {composition.rule!r}"
            yield f"loss: {composition.rule.loss(node.account)!r} in {node.launched} launches"
        yield f"entries: {header.head.number}, of which the last has the hash {header.head.hash.hex()}"
        yield f"signer of its record and receipts: {_signer(store, name)}"
        yield f"requests to be finished: {len(store.open_requests(name))}"
        if not header.keys:
            yield "retired: its keys, and all that they sealed, are destroyed"
        yield f"data keys: {len(header.keys)}; must have its witness: {'yes' if header.witnessed else 'no'}"
        if header.beside:
            yield f"has the same rows as: {', '.join(header.beside)}"


def history(place: Durable, name: str) -> Iterator[str]:
    """The public lines of a session: when, who, what, where."""
    with looked_at(place) as store, store.lock, _one_moment(store):
        _header(store, name)
        entries = (read_entry(data) for _, data in store.entries(name, 0))
        facts = [entry.fact for entry in entries if entry.kind in HISTORY]
    yield from map(_line, facts)


def back_up(place: Durable, file: str | os.PathLike[str]) -> str:
    """A copy of an SQLite ledger as of one moment, in a new file that its owner alone may read.

    In the process that has it open, requests go on in between; from another one, it must be at rest.
    """
    if place.in_postgres:
        raise InvalidParameter("a ledger in PostgreSQL is backed up as its database is: pg_dump, or a standby")
    target = FilePath(file)
    store = hold(place, existing=True)
    try:
        assert isinstance(store, SqliteStore)
        store.copy_to(target)
    finally:
        release(store)
    return f"copied to {str(target)!r}; the master key and the witness are not in it: keep them apart from it"


@contextmanager
def _one_moment(store: Store) -> Iterator[None]:
    store.begin_reading()
    try:
        yield
    finally:
        store.rollback()


def _header(store: Store, name: str) -> SessionHeader:
    found = store.header(name)
    if found is None:
        names = ", ".join(map(repr, store.names())) or "none"
        raise LedgerError(f"there is no session {name!r} in this ledger; there are: {names}")
    return found


def _signer(store: Store, name: str) -> str:
    entries = (read_entry(data, number) for number, data in store.entries(name, 0))
    return [entry.what for entry in entries if entry.kind == "signer"][-1]


def _line(fact: HistoryEntry) -> str:
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(fact.at)) if fact.at else "-"
    return f"{when} {fact.who or '-'} {fact.kind} {'.'.join(map(str, fact.path)) or '.'} {fact.what}"


def retire(ledger: Place, name: str, *, by: str) -> str:
    """Destroy the keys of a session and all that they sealed; its public record stays. Returns a line for people.

    States, seeds, answers, items and the digest of the rows go, and the wrapped data keys with them. What stays is the
    chain of entries, the accounts of sessions, and the public key that receipts were signed with: the record can be
    verified and exported, and receipts checked, as before. Nothing is launched, asked or read again under this name.
    `by` is who does it, for the record.

    Out of reach are copies that were made before (a backup opens with its master key as ever), blocks of a disk that a
    file system has not overwritten yet, and the log of a PostgreSQL server. To close older backups too, change the
    master key of the other sessions (`counterpoint ledger rotate`) and destroy the old one.
    """
    place, who = ledger if isinstance(ledger, Durable) else Durable(ledger), principal(by)
    store = hold(place, existing=True)
    try:
        witness = place.witness_file()
        with store.lock, nullcontext() if witness is None else closing(witness):
            verification.verify(store, name, witness)
            header = _retire(store, name, who)
            if witness is not None:
                witness.note(name, *header.head, header.genesis, lambda after: store.entries(name, after))
            erased = store.erase_deleted()
    finally:
        release(store)
    left = "older backups have them still" if erased else "unused space of the database may have them still: vacuum it"
    return f"{name}: retired. Its keys and all that they sealed are destroyed; {left}"


def _retire(store: Store, name: str, who: str) -> SessionHeader:
    """Put the retirement on record, and delete what it destroys, in one transaction; the header as it is then."""
    head = store.begin(name)
    try:
        header = store.header(name)
        assert head is not None and header is not None
        headers.must_not_be_retired(name, header)
        left, changes = header._replace(content=None, keys=()), ChangeSet(store, name, head)
        what = "its keys, and all that they sealed, are destroyed"
        changes.append("retirement", "", (), what, "", state=keys_digest(()), record=left.record, who=who)
        store.write(changes)
        store.write_header(name, left)
        store.write_keys(name, ())
        store.delete_sealed(name)
        store.commit()
    except BaseException:
        store.rollback()
        raise
    return left._replace(head=changes.head)


def recover(ledger: Place, name: str, *, by: str, witness_lost: bool = False) -> str:
    """Open the session of this name in a backup that is behind its witness: its budget counts as spent from then on.

    `by` is who does it, for the record. `witness_lost` says that the witness was lost along with the newest copy: then
    one that has never seen this record takes its place. Returns what was done, in a line.

    Between the backup and the loss, requests may have been charged, drawn and answered, and no record of them is left.

    - What was charged is unknown. The rules admitted it, so all that they promise counts as spent, for ever
      (`Exhausted`): nothing is launched again in any session of this record.
    - Which coins were drawn is unknown. A mechanism that went on from its state in the backup could answer a question a
      second time, with other noise. So every mechanism is halted and its state erased.
    - A request that was open in the backup may have been answered since. It is closed without an answer, its seed
      erased.
    - What was answered before the backup can be read.
    - API keys may have been revoked. So if the register is behind its witness, it is recovered along with the first
      session, and every API key is ended. Principals and roles are those of the backup.

    One transaction does all of it, behind an entry that says who did it, which head the backup had and which one the
    witness. The witness then records that entry, so that it refuses both the backup as it was and the newest copy, if
    that is found after all. A new budget for the data is a new session, which its custodian opens on purpose.
    """
    place, who = ledger if isinstance(ledger, Durable) else Durable(ledger), principal(by)
    store = hold(place, existing=True)
    try:
        witness = place.witness_file()
        if witness is None:
            raise InvalidParameter("a record is behind its witness, and none was given: say where it is")
        with store.lock, closing(witness):
            keys_ended = _recover_register(store, place.master_key(), witness, who, witness_lost)
            return _recovered(store, name, place.master_key(), witness, who, witness_lost) + keys_ended
    finally:
        release(store)


def _recover_register(store: Store, master: MasterKey | None, witness: Witness, who: str, witness_lost: bool) -> str:
    """Bring the register back if it is behind its witness, too; what was done, for the end of a line."""
    found = verification.behind(store, REGISTER, witness)
    sighting = found.sighting
    assert sighting is not None
    up_to_date = not sighting.beyond and (sighting.recovered or not found.recoveries)
    if not found.header.witnessed or (up_to_date if sighting.any else not witness_lost):
        return ""  # or it has another witness than the session, which its service compares
    _recovered(store, REGISTER, master, witness, who, witness_lost)
    return "; every API key is ended: make new ones with `counterpoint keys new`"


def _recovered(  # noqa: PLR0917 - all that a recovery is made of
    store: Store, name: str, master: MasterKey | None, witness: Witness, who: str, witness_lost: bool
) -> str:
    found = verification.behind(store, name, witness)
    sighting = found.sighting
    assert sighting is not None
    if found.recoveries and not sighting.recovered:  # an earlier attempt ended before the witness had seen it
        _move_witness(store, name, witness, found.header.genesis, found.recoveries[-1].number)
    elif sighting.any and not sighting.beyond:
        raise NotAllowed(
            f"{name!r} has all that its witness has seen, so there is nothing to recover: open it as it is"
        )
    elif not sighting.any and not witness_lost:
        raise sightings.unseen(name)
    if sighting.beyond or not sighting.any:
        number = _recover(store, name, _keys(master, name, found), found, who)
        _move_witness(store, name, witness, found.header.genesis, number)
    header = store.header(name)
    assert header is not None
    witness.note(name, *header.head, header.genesis, lambda after: store.entries(name, after))
    return (
        f"{name}: opened as of entry {found.header.head.number}; its budget counts as spent, its mechanisms are "
        "halted, and what was answered before can be read"
    )


def _keys(master: MasterKey | None, name: str, found: Opened) -> DataKeys:
    headers.must_have_key(master)
    keys = DataKeys(name, master, found.header.keys)
    if not keys.usable:
        raise Unsealable(f"the key given is another one than the one that the answers of {name!r} are sealed with")
    return keys


def _recover(store: Store, name: str, keys: DataKeys, found: Opened, who: str) -> int:
    """Put the recovery on record, and all that it ends; the number of its entry."""
    head, sighting = store.begin(name), found.sighting
    try:
        if head != found.header.head:
            raise LedgerBusy(f"another process is writing to {name!r}; close it there, and try again")
        if name != REGISTER and store.row(name, path_text(())) is None:
            raise NotAllowed(f"{name!r} was not open yet when this backup was made: there is nothing to be read in it")
        assert sighting is not None
        changes, seen = ChangeSet(store, name, head), sighting.furthest
        what = f"a backup of {head.number} entries was opened on purpose; {_said(seen.sequence)}"
        body = encode((head.number, head.hash.hex(), seen.sequence, seen.head.hex())).decode()
        number = changes.append("recovery", "", (), what, body, who=who).number
        if name == REGISTER:
            _end_api_keys(store, changes, RegisterSigner(keys.register_key(), who))
        else:
            _end(store, changes, keys)
        store.write(changes)
        store.commit()
    except BaseException:
        store.rollback()
        raise
    return number


def _said(seen: int) -> str:
    return f"its witness had seen {seen}" if seen else "its witness was lost, too"


def _end(store: Store, changes: ChangeSet, keys: DataKeys) -> None:
    """Close every open request without an answer, halt every mechanism, and spend every budget."""
    for request in store.open_requests(changes.name):
        answer = keys.seal(padded(encode(Lost())), "answer", *request.place)
        closed, path = request.settled(answer), read_path(request.path)
        changes.put_request(closed)
        what = "an open request, closed without an answer"
        changes.append("lost", request.request, path, what, "", record=closed.fingerprint)
    for row in store.rows(changes.name):
        ended = _ended(row)
        if ended != row:
            after = ended._replace(version=row.version + 1)
            changes.put_row(after)
            what = "its state is erased" if row.node is None else "its budget is spent"
            changes.append("lost", "", read_path(row.path), what, "", version=after.version, state=after.fingerprint)


def _end_api_keys(store: Store, changes: ChangeSet, signer: RegisterSigner) -> None:
    """End every API key: those that were revoked since the backup cannot be told from the others."""
    assert isinstance(store, PrincipalTables)
    for key in store.api_keys():
        if key.ended is None:
            ended = key._replace(ended=int(time.time()))
            store.put_api_key(ended)
            signer.append(
                changes, API_KEY, key.id, f"key {key.id} of {key.principal!r} was ended by the recovery", ended
            )


def _ended(row: StoredRow) -> StoredRow:
    public = read_public_row(row.public)
    if row.node is None or not isinstance(public.mechanism, Concurrent):
        return row._replace(sealed=None)
    whole = exhausted(public.mechanism)
    again = encode(PublicRow(whole, public.cursor, public.by, public.of, public.sees))
    return row._replace(public=again, budget_used=budget_used(whole, decode(row.node, SessionState)))


def _move_witness(store: Store, name: str, witness: Witness, genesis: bytes, number: int) -> None:
    """Show the witness the entry of a recovery, in the place of what was lost."""
    entry = store.entry(name, number)
    assert entry is not None
    _, before, *_ = decode(read_entry(entry, number).body.encode(), tuple[int, str, int, str])
    witness.note_recovery(name, number, bytes.fromhex(before), genesis, entry)
