"""Whatever is changed in a ledger's database, `ledger verify` refuses it and names what was changed.

Each table, each column, each row: changed, deleted, added, exchanged with another row, put back as it was earlier; and
a whole session, or the whole register, taken away or put back. The tamperer has the database at rest, and neither the
key nor the witness.
"""

import re
import time
from contextlib import closing, contextmanager
from itertools import pairwise

import pytest
from tests.ledger.test_left_open import Flaky

import counterpoint as cp
from counterpoint.errors import InvalidRequest, LedgerError
from counterpoint.ledger.location import hold, release
from counterpoint.ledger.open import sessions_at
from counterpoint.ledger.sealing import MasterKey
from counterpoint.ledger.store.records import REGISTER, StoredKey
from counterpoint.service.identity import Identity, Role

DATA = {"apples": 100, "beans": 3}
KEYS = {
    "counterpoint_api_key": ("id",),
    "counterpoint_session": ("name",),
    "counterpoint_entry": ("name", "number"),
    "counterpoint_items": ("name", "start"),
    "counterpoint_key": ("name", "number"),
    "counterpoint_principal": ("name",),
    "counterpoint_request": ("name", "request"),
    "counterpoint_row": ("name", "path"),
    "counterpoint_schema": (),
}
"""The columns by which the rows of each table are found."""
DECIDES_NOTHING: dict[tuple[str, str], str] = {}
"""Columns that may be changed unnoticed, each with the reason why nothing depends on it. There is none."""
NAMES_WHAT = re.compile(
    r"(session|history of|data or the keys of|entries of|items of the stream of|header of) '@?\w+'"
    r"|'@?\w+' (has|is (kept|retired))"
    r"|(principal|API key) .+ is|request .|the (state|row|account) at|entry \d+|an entry |a record is not of the type"
    r"|sessions or principals and no register|table counterpoint_\w+ has|schema"
)
"""What an error says was changed."""


@contextmanager
def people(place):
    store = hold(place.durable, existing=True)
    try:
        with closing(Identity(store, place.durable)) as found:
            yield found
    finally:
        release(store)


def lives(place):
    """Does everything that leaves a record, and stops now and then: what was stored then may be put back later."""
    with place.session(source=Flaky(DATA)) as s:
        s.launch(cp.Laplace("0.01", asks=9), id="L")
        s.launch(cp.Laplace("0.01", asks=1), id="halting")
        s.grant("bob", cp.PureDP("0.1"), id="G")
    stream = cp.Stream()
    with place.session(source=stream, name="stream") as s:
        s.launch(cp.Counter("0.1"), id="C")
        stream.append(1, id="line 3")
    with people(place) as known:
        for name, role in {"olga": Role.CUSTODIAN, "bob": Role.ANALYST, "gone": Role.ANALYST}.items():
            known.add(name, role, by="olga")
        ended, _ = known.new_key("bob"), known.new_key("bob", days=3)
        now = int(time.time())
        known.sign_in(StoredKey("browser.1", "bob", bytes(32), now, now + 60), "browser")
    yield
    with people(place) as known:
        known.end_key(ended.id)
        known.end_key("browser.1")
    yield
    with people(place) as known:
        known.end("gone")
        known.sign_in(StoredKey("browser.2", "bob", bytes(32), now, now + 60), "browser")
    with place.reopened(source=Flaky(DATA)) as s:
        s._engine.ledger.rotate(MasterKey.from_file(place.key))
        with pytest.raises(InvalidRequest):
            s.handles[0].ask("apples", id="left open")
        with pytest.raises(cp.BudgetExceeded):
            s.launch(cp.Laplace(100), id="too much")
        s.delegate(cp.PureDP("0.1"), id="D").launch(cp.Laplace("0.01"), id="inner")
        parts = s.partition("letter", within=cp.PureDP("0.1"), id="P")
        parts["a"].launch(cp.Laplace("0.01"), id="part")
        s.revoke(s.given[0])
    with place.reopened(source=cp.Stream(), name="stream") as s:
        s.handles[0].ask(id="asked")
        s._source.extend([1, 0])


def tables(place):
    """Every table, with its columns and their types, as the database says."""
    if place.kind == "sqlite":
        names = [name for (name,) in place.sql("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {name: {row[1]: row[2].lower() for row in place.sql(f"PRAGMA table_info({name})")} for name in names}
    found = {}
    listed = "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'public'"
    for table, column, kind in place.sql(listed):
        found.setdefault(table, {})[column] = kind
    return found


def stored(place):
    """The rows of every table."""
    return {
        table: [dict(zip(columns, row, strict=True)) for row in place.sql(f"SELECT {', '.join(columns)} FROM {table}")]
        for table, columns in sorted(tables(place).items())
    }


SOME = {"bigint": 1, "text": "1", "bytea": b"1", "blob": b"1"}


def others(value, kind):
    """Values to put in the place of one; where there was none, one of its type."""
    if value is None:
        return [SOME[kind]]
    if isinstance(value, int):
        changed = [value + 1, value - 1]
    elif isinstance(value, str):
        changed = [value + "x", value[:-1]]
    else:
        changed = [bytes(value)[:-1] + bytes([bytes(value)[-1] ^ 1]), b""]
    return [*changed, None]


def key_of(table, row):
    return tuple(row[column] for column in KEYS[table])


def changes(place, now, earlier, most=None):
    """Every change: what it is, and for each table that it concerns which rows go and which come.

    `most` is the number of rows of each table that are tried, all of them if it is None.
    """
    for table, columns in sorted(tables(place).items()):
        assert now[table], f"no row of {table} is there to be changed"
        yield from changed(table, columns, now[table][:most])
        yield from exchanged(table, columns, list(pairwise(now[table]))[:most])
        for before in earlier:
            yield from put_back(table, now[table], before[table], most)
    yield from whole(now, earlier)


def changed(table, columns, rows):
    """A value is replaced, a row is deleted, or there is one more like it."""
    for row in rows:
        for column, value in row.items():
            for other in others(value, columns[column]):
                yield (table, column, f"to {type(other).__name__}"), [(table, [row], [{**row, column: other}])]
        yield (table, "*", "deleted"), [(table, [row], [])]
        for column in KEYS[table]:
            yield (table, column, "copied"), [(table, [], [{**row, column: others(row[column], "")[0]}])]
        if not KEYS[table]:
            yield (table, "*", "copied"), [(table, [row], [row, row])]


def exchanged(table, columns, pairs):
    """Two rows have each other's value in a column, or in all but those by which they are found."""
    rest = [column for column in columns if column not in KEYS[table]]
    for one, other in pairs:
        for swapped in [*([column] for column in rest), rest]:
            left = {**one, **{column: other[column] for column in swapped}}
            right = {**other, **{column: one[column] for column in swapped}}
            if left != one:
                yield (table, ", ".join(swapped), "exchanged"), [(table, [one, other], [left, right])]


def put_back(table, rows, before, most):
    """A row, or one value of it, is as it was earlier."""
    present = {key_of(table, row): row for row in rows}
    old = [row for row in before if row != present.get(key_of(table, row))]
    for row in old[:most]:
        now = present.get(key_of(table, row))
        yield (table, "*", "put back"), [(table, [] if now is None else [now], [row])]
        for column in [] if now is None else row:
            if row[column] != now[column]:
                yield (table, column, "put back"), [(table, [now], [{**now, column: row[column]}])]


def whole(now, earlier):
    """All rows of a session or the register are taken away, or put back."""
    people = [(table, now[table], []) for table in ("counterpoint_api_key", "counterpoint_principal")]
    for name in (REGISTER, "session", "stream"):
        of = {
            table: [row for row in rows if row.get("name") == name]
            for table, rows in now.items()
            if "name" in KEYS[table] and table != "counterpoint_principal"
        }
        taken = [(table, rows, []) for table, rows in of.items()]
        yield (name, "*", "deleted"), taken
        yield (name, "*", "deleted but for its entries"), [one for one in taken if one[0] != "counterpoint_entry"]
        for before in earlier:
            old = [(table, rows, [row for row in before[table] if row["name"] == name]) for table, rows in of.items()]
            yield (name, "*", "put back"), old
            if name == REGISTER:
                yield (
                    (name, "*", "put back with its people"),
                    [*old, *((one, rows, before[one]) for one, rows, _ in people)],
                )
        if name == REGISTER:
            yield (name, "*", "deleted with its people"), [*taken, *people]
    yield ("people", "*", "deleted"), people
    for before in earlier:
        yield ("people", "*", "put back"), [(table, rows, before[table]) for table, rows, _ in people]


def exchange(place, parts):
    """Take rows out and put others in, in one transaction, unless the database itself will not have it."""
    if place.kind == "sqlite":
        import apsw

        connection, equal, mark, refused = apsw.Connection(place.url), "IS", "?", apsw.Error
        connection.execute("PRAGMA synchronous = OFF")  # a crash would lose the change, and takes the test along
    else:
        import psycopg

        connection, equal, mark = psycopg.connect(place.url, autocommit=True), "IS NOT DISTINCT FROM", "%s"
        connection.execute("SET synchronous_commit = off")
        refused = psycopg.Error
    try:
        connection.execute("BEGIN")
        for table, gone, _ in parts:
            for row in gone:
                same = " AND ".join(f"{column} {equal} {mark}" for column in row)
                connection.execute(f"DELETE FROM {table} WHERE {same}", tuple(row.values()))
        for table, _, new in parts:
            for row in new:
                connection.execute(
                    f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join([mark] * len(row))})",
                    tuple(row.values()),
                )
        connection.execute("COMMIT")
    except refused:
        return False
    finally:
        connection.close()
    return True


def refusal(place):
    """What verifying says; nothing if all holds."""
    try:
        list(sessions_at(place.durable))
    except LedgerError as error:
        return str(error)
    return ""


def unnoticed(place, most=None):
    """The changes that verifying does not notice, or does not name; and the kinds of those that were made."""
    earlier = [stored(place) for _ in lives(place)]
    now, missed, made = stored(place), set(), set()
    assert set(now) >= set(KEYS) - {"counterpoint_schema"} and set(now) <= set(KEYS)
    assert refusal(place) == "", "as it was left, it holds"
    for what, parts in changes(place, now, earlier, most):
        if what[:2] in DECIDES_NOTHING or not exchange(place, parts):
            continue
        made.add(what[2])
        said = refusal(place)
        if not NAMES_WHAT.search(said):
            missed.add((*what, said))
        assert exchange(place, [(table, new, gone) for table, gone, new in parts])
    assert {"deleted", "copied", "exchanged", "put back", "put back with its people"} <= made
    return missed


def test_every_change_of_every_row_is_noticed_and_named(lasting):
    """In PostgreSQL of one row a table: what verifies is the same code, and each change is a connection there."""
    assert unnoticed(lasting, 2 if lasting.kind == "sqlite" else 1) == set()


@pytest.mark.long
def test_every_change_of_every_row_is_noticed_in_postgres_too(lasting):
    assert unnoticed(lasting) == set()
