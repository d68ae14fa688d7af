"""Bytes that a disk, a tool or a tamperer has changed: whatever is done with such a ledger, errors are typed."""

import pathlib
import random
import shutil
from itertools import product

import apsw
import pytest
from tests.ledger.places import Place
from tests.session.numbers_source import Numbers

import counterpoint as cp
from counterpoint.ledger.admin import history, shown
from counterpoint.ledger.location import hold, release
from counterpoint.ledger.open import sessions_at
from counterpoint.service.identity import ApiKey, Identity, Role

DAMAGE = {
    "a bit": "",
    "half": "substr(CAST({0} AS BLOB), 1, length(CAST({0} AS BLOB)) / 2)",
    "longer": "CAST({0} AS BLOB) || x'00ff'",
    "empty": "x''",
    "no text": "CAST(x'ff00fe' AS TEXT)",
    "another text": "'another'",
    "a number": "7",
    "a huge number": "9223372036854775807",
    "a fraction": "0.5",
    "nothing": "NULL",
}
"""Values of SQL by which a value is replaced."""


def tables(connection):
    """The tables of a ledger and their columns."""
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return {name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")] for name in names}


def ended(place):
    """A session that was recovered from a backup, and one that was retired."""
    with place.session(name="recovered", source=Numbers({"plums": 5})) as s:
        s.launch(cp.Laplace("0.1", asks=9), id="L").ask("plums", id="q")
        s.delegate(cp.PureDP("0.1"), id="D").launch(cp.Laplace("0.05"), id="inner")
    backup = shutil.copy(place.url, place.home / "backup")
    with place.reopened(name="recovered", source=Numbers({"plums": 5})) as s:
        s.handles[0].ask("plums", id="lost")
    shutil.move(backup, place.url)
    cp.ledger.recover(place.durable, "recovered", by="olga")
    with place.session(name="retired", source=Numbers({"pears": 6})) as s:
        s.launch(cp.Laplace("0.1", asks=9), id="L").ask("pears", id="q")
    cp.ledger.retire(place.durable, "retired", by="olga")


def story(place):
    """A table's and a stream's session, each with answers, open requests, refusals, a part and a changed key."""
    with place.session(name="people") as s:
        noisy = s.launch(cp.Laplace("0.1", asks=9), id="L")
        noisy.ask("apples", id="q")
        s.delegate(cp.PureDP("0.1"), id="D").launch(cp.Laplace("0.05"), id="inner")
        with pytest.raises(cp.BudgetExceeded):
            s.launch(cp.Laplace(2))
    visits = cp.Stream(bound=1)
    with cp.Session(visits, cp.PureDP(1), ledger=place.durable, name="visits") as s:
        counter = s.launch(cp.Counter(epsilon="0.5"), id="C")
        visits.extend([1, 0, 1], id="monday")
        visits.append(1)
        counter.ask(id="q")


def left_open(place):
    """An ask and a launch that are begun and not finished."""
    ledger = place.ledger("people")
    try:
        s = cp.open(ledger, "people", source=place.source)

        def die(point):
            if point == "committed":
                raise KeyboardInterrupt

        ledger._reached = die
        with pytest.raises(KeyboardInterrupt):
            s.handles[0].ask("beans", id="open")
    finally:
        ledger.close()


KEY = ApiKey.fresh().shown()
PEOPLE = ("counterpoint_principal", "counterpoint_api_key")
"""Who may call a service is on no chain: what they do is."""


def deeds(place):
    """Everything that may be done with a ledger, each by itself."""

    def people():
        return cp.open(place.durable, "people", source=place.source)

    def visits():
        stream = cp.Stream(bound=1)
        return stream, cp.open(place.durable, "visits", source=stream)

    def ask():
        with people() as s:
            yield lambda: s.handles[0].ask("apples", id="q")
            yield lambda: s.handles[0].ask("beans", id="open")
            yield lambda: s.handles[0].ask("beans")
            yield lambda: s.launch(cp.Laplace("0.1", asks=9), id="L")
            yield lambda: s.launch(cp.Laplace("0.01"))
            yield lambda: s.given[0].launch(cp.Laplace("0.01"))
            yield lambda: (s.loss, s.remaining, s.history, s.handles, s.given, s.certificate(), repr(s))
            yield s._engine.ledger.verify

    def follow():
        stream, s = visits()
        with s:
            yield lambda: stream.extend([1, 0, 1], id="monday")
            yield lambda: stream.append(1)
            yield lambda: s.handles[0].ask(id="q")
            yield s.handles[0].ask

    def verify():
        yield lambda: list(sessions_at(place.durable))

    def identify():
        store = hold(place.durable, existing=True)
        try:
            identity = Identity(store, place.durable)
            yield lambda: identity.principal(KEY)
            yield lambda: (identity.principals(), identity.keys("ann"))
            yield lambda: identity.new_key("ann")
        finally:
            release(store)

    def read_what_ended():
        yield lambda: list(history(place.durable, "retired"))
        yield lambda: list(shown(place.durable, "retired"))
        with cp.open(place.durable, "recovered", source=Numbers({"plums": 5})) as s:
            yield lambda: s.handles[0].ask("plums", id="q")
            yield lambda: (s.loss, s.remaining, s.history, s.given, s.certificate(), s.plot(), repr(s))
            yield s._engine.ledger.verify

    return ask, follow, verify, identify, read_what_ended


def tried(place):
    """The errors that come of it all."""
    found = []
    for group in deeds(place):
        steps = group()
        while True:
            try:
                deed = next(steps)
            except StopIteration:
                break
            except Exception as error:
                found.append(error)
                break
            try:
                deed()
            except Exception as error:
                found.append(error)
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    place = Place("sqlite", tmp_path_factory.mktemp("whole"))
    ended(place)
    story(place)
    left_open(place)
    store = hold(place.durable, existing=True)
    identity = Identity(store, place.durable)
    for name, role in [("ann", Role.ANALYST), ("bob", Role.AUDITOR)]:
        identity.add(name, role)
        identity.new_key(name)
    release(store)
    return place


def replaced(path, table, column, how, row):
    """Replace one value, of a row by its number or of the last one of a session; whether it is another one now."""
    connection = apsw.Connection(path)
    try:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        keys = tables(connection)[table][:2]
        rows = list(connection.execute(f"SELECT {', '.join(keys)}, {column} FROM {table}"))
        if isinstance(row, str):
            rows, row = [found for found in rows if found[0] == row], -1
        if not rows:
            return False
        found = rows[row]
        where, key, before = " AND ".join(f"{name} = ?" for name in keys), found[:2], found[2]
        value = DAMAGE[how].format(column)
        if how == "a bit":
            value = f"x'{flipped(before).hex()}'"
        connection.execute(f"UPDATE {table} SET {column} = {value} WHERE {where}", key)
        try:
            return list(connection.execute(f"SELECT {column} FROM {table} WHERE {where}", key)) != [(before,)]
        except UnicodeDecodeError:
            return True
    except apsw.ConstraintError:
        return False
    finally:
        connection.close()


def flipped(value):
    data = bytearray(value if isinstance(value, bytes) else str(value).encode())
    data[len(data) // 2] ^= 4
    return data


def test_a_whole_ledger_gives_no_error(whole, tmp_path):
    assert tried(Place("sqlite", shutil.copytree(whole.home, tmp_path / "copy"))) == []


@pytest.mark.parametrize(
    ("how", "row"),
    [*product(DAMAGE, (0, -1)), *product(("a bit", "nothing", "a huge number"), ("recovered", "retired"))],
)
def test_a_value_that_was_replaced_gives_typed_errors(whole, tmp_path, how, row):
    """Whichever of a row of any table, by whatever value SQLite takes; and verification does not pass it."""
    connection = apsw.Connection(whole.url)
    every = [(table, column) for table, columns in tables(connection).items() for column in columns]
    connection.close()
    assert len(every) > 30
    for number, (table, column) in enumerate(every):
        place = Place("sqlite", shutil.copytree(whole.home, tmp_path / str(number)))
        if not replaced(place.url, table, column, how, row):
            continue
        errors = tried(place)
        assert all(isinstance(error, cp.CounterpointError) for error in errors), (table, column, errors)
        if table not in PEOPLE:
            with pytest.raises(cp.errors.LedgerError):
                list(sessions_at(place.durable))


@pytest.mark.parametrize("seed", range(20))
def test_a_file_in_which_bytes_were_changed_gives_typed_errors(whole, tmp_path, seed):
    place = Place("sqlite", shutil.copytree(whole.home, tmp_path / "copy"))
    data, places = bytearray(pathlib.Path(place.url).read_bytes()), random.Random(seed)  # noqa: S311 - where damage is, for a test
    for _ in range(8):
        data[places.randrange(len(data))] ^= 1 << places.randrange(8)
    pathlib.Path(place.url).write_bytes(data)
    errors = tried(place)
    assert all(isinstance(error, cp.CounterpointError) for error in errors), errors
