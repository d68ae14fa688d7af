"""Rewriting a record as somebody could who has the database and the witness: chain, rows and witness agree again.

What is then still wrong is wrong by what the entries say, which `verify` alone can find.
"""

from msgspec.structs import replace

from counterpoint.ledger.chain import INTENTS, link, read_entry
from counterpoint.ledger.store.records import StoredRequest, StoredRow, path_text
from counterpoint.ledger.witness import WitnessFile


def forge(place, edit=lambda entries: entries, renumber=True, name="session", *, before=bytes):
    """Change the entries by `edit`, from a list of them to another one, and make everything fit again.

    `before` is what answers say of the head before them.
    """
    found = place.sql("SELECT entry FROM counterpoint_entry WHERE name = ? ORDER BY number", name)
    entries = edit([read_entry(bytes(data)) for (data,) in found])
    rows = place.sql(
        "SELECT path, version, public_row, node, sealed, budget_used FROM counterpoint_row WHERE name = ?", name
    )
    columns = ", ".join(StoredRequest._fields)
    requests = place.sql(f"SELECT {columns} FROM counterpoint_request WHERE name = ?", name)
    fitted = _fitted(
        entries, {row[0]: StoredRow(*row) for row in rows}, {row[0]: StoredRequest(*row) for row in requests}
    )
    ((genesis,),) = place.sql("SELECT genesis FROM counterpoint_session WHERE name = ?", name)
    head = genesis
    place.sql("DELETE FROM counterpoint_entry WHERE name = ?", name)
    for number, entry in enumerate(fitted, start=1):
        what = before(head).hex() if entry.kind == "answer" else entry.what
        data = replace(entry, what=what, number=number if renumber else entry.number).encoded()
        head = link(head, data)
        place.sql("INSERT INTO counterpoint_entry (name, number, entry) VALUES (?, ?, ?)", name, number, data)
    place.sql("UPDATE counterpoint_session SET number = ?, head = ? WHERE name = ?", len(fitted), head, name)
    witness = WitnessFile(place.home / "witness")
    others = [(whose, *line) for whose, line in witness.everything() if whose != name]
    (place.home / "witness").unlink()
    for line in others:
        witness.note(*line)
    witness.note(name, len(fitted), head, genesis)
    witness.close()


def _fitted(entries, rows, requests):
    """The last entry about each row or request has its fingerprint; those about what is gone have none."""

    def fit(entry):
        if entry.kind in (*INTENTS, "answer"):
            request = requests.pop(entry.request, None)
            entry = replace(entry, record=request.fingerprint if request else "x" if entry.record else "")
        if not entry.state or entry.kind in ("data", "keys"):
            return entry
        row = rows.pop(path_text(entry.path), None)
        state = "" if row is None else row.fingerprint
        return replace(entry, version=row.version if row else 0, state=state)

    return [fit(entry) for entry in reversed(entries)][::-1]
