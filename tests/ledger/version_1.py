"""Writes the ledgers of fixtures/: `python -m tests.ledger.version_1`, again only with a new version of the format.

Each holds what a ledger can hold: sessions over a source of tests, a table, a stream and a live table, with an open
request, a delegation, parts and a grant; a principal and an API key; a recovered session and a retired one. SQLite is
kept as its file, PostgreSQL as the statements that make it again. The JSON beside it has the answers that were given:
test_version_1.py asks for them again, and goes on.
"""

import json
import pathlib
import shutil
import tempfile
from contextlib import closing, suppress

from tests.ledger.places import DATA, Place
from tests.ledger.test_left_open import Flaky
from tests.session.numbers_source import Numbers

import counterpoint as cp
from counterpoint.errors import InvalidRequest
from counterpoint.ledger.admin import recover, retire
from counterpoint.service.identity import Role
from counterpoint.service.registry import Registry

FIXTURES = pathlib.Path(__file__).parent / "fixtures"
BUDGET = cp.PureDP(1)
TABLES = ("schema", "session", "key", "entry", "row", "request", "items", "principal", "api_key")


def people():
    import pyarrow as pa

    columns = {"age": cp.number(0, 100), "state": cp.category(["CA", "NY"])}
    rows = pa.table({"id": [1, 2, 3, 3], "age": [7, 40, 71, 71], "state": ["CA", "NY", "NY", "CA"]})
    return cp.Table(rows, unit="id", rows_per_unit=2, columns=columns, key=b"k" * 32)


def visits():
    fields = {"page": cp.category(["home", "shop"]), "seconds": cp.number(0, 60)}
    return cp.Stream(fields=fields, unit="user", per_unit=2)


def staff():
    return cp.LiveTable("who", 2, key="desk", columns={"hours": cp.number(0, 40)})


SOURCES = {"numbers": lambda: Numbers(DATA), "people": people, "visits": visits, "staff": staff}


def told(place):
    """Fill an empty ledger; what it answered, by session and id, and an API key."""
    with place.session(BUDGET, name="lost", source=Numbers({"lost": 5})) as s:
        lost = s.launch(cp.Laplace("0.1", asks=9), id="L").ask("lost", id="q")
    before = dumped(place)
    with place.reopened(name="lost", source=Numbers({"lost": 5})) as s:
        s.handles[0].ask("lost", id="after the backup")
    restore(place, before)
    recover(place.durable, "lost", by="olga")

    with place.session(BUDGET, name="gone", source=Numbers({"gone": 5})) as s:
        s.launch(cp.Laplace("0.1", asks=9), id="L").ask("gone", id="q")
    retire(place.durable, "gone", by="olga")

    with place.session(BUDGET, name="numbers", source=Flaky(DATA)) as s:
        s._source.broken = False
        handle = s.launch(cp.Laplace("0.1", asks=9), id="L")
        number = handle.ask("apples", id="q")
        s.launch(cp.SparseVector(epsilon="0.1", threshold=50, hits=2), id="svt").ask("apples", id="above")
        s.delegate(cp.PureDP("0.2"), id="D").launch(cp.Laplace("0.05"), id="inner")
        s.partition("letter", within=cp.PureDP("0.1"), id="P")["a"].launch(cp.Laplace("0.05"), id="part")
        s.grant("ann", cp.PureDP("0.1"), id="G")
        with suppress(cp.BudgetExceeded):
            s.launch(cp.Laplace(2), id="too much")
        s._source.broken = True
        with suppress(InvalidRequest):
            handle.ask("beans", id="open")
        with suppress(InvalidRequest):
            s.ask("beans", epsilon="0.01", id="open question")
    with place.session(BUDGET, name="people", source=people()) as s:
        old = s.ask(cp.count(where="age > 30"), epsilon="0.25", id="q")
        table = s.ask(cp.count(by="state"), epsilon="0.25", id="by")
    arriving = visits()
    with place.session(BUDGET, name="visits", source=arriving) as s:
        arriving.append({"user": "ann", "page": "home", "seconds": 5}, id="first")
        counter = s.launch(cp.Counter(epsilon="0.5"), of=cp.count(where="page = 'shop'"), id="C")
        arriving.extend([{"user": "bob", "page": "shop", "seconds": 9}] * 3, id="second")
        counted = counter.ask(id="q")
    changing = staff()
    with place.session(BUDGET, name="staff", source=changing) as s:
        changing.put({"who": "ann", "desk": 1, "hours": 8}, id="first")
        handle = s.launch(cp.Laplace("0.1", asks=9), id="L")
        changing.put({"who": "bob", "desk": 2, "hours": 30}, id="second")
        hours = handle.ask(cp.sum("hours"), id="q")
        changing.remove(who="ann", desk=1, id="third")
    with closing(Registry(place.durable)) as registry:
        registry.identity.add("ann", Role.ANALYST)
        key = registry.identity.new_key("ann").shown()
    return {
        "lost": int(lost),
        "numbers": int(number),
        "people": int(old),
        "by": {str(key): int(value) for key, value in table.items()},
        "visits": int(counted),
        "staff": int(hours),
        "key": key,
    }


def dumped(place):
    """All rows of the database, by table."""
    tables = TABLES if place.kind == "postgres" else TABLES[1:]
    return {name: place.sql(f"SELECT * FROM counterpoint_{name}") for name in tables}


def restore(place, rows):
    """Make the tables hold these rows, and nothing else."""
    for name, records in rows.items():
        place.sql(f"DELETE FROM counterpoint_{name}")
        for record in records:
            place.sql(f"INSERT INTO counterpoint_{name} VALUES ({', '.join('?' * len(record))})", *record)


def statements(place):
    """The statements that make this PostgreSQL ledger again, as text."""
    for name in TABLES:
        columns = place.sql(
            "SELECT column_name, data_type, is_nullable FROM information_schema.columns "
            f"WHERE table_name = 'counterpoint_{name}' ORDER BY ordinal_position"
        )
        written = ", ".join(f"{name} {kind}{' NOT NULL' if null == 'NO' else ''}" for name, kind, null in columns)
        yield f"CREATE TABLE counterpoint_{name} ({written});"
    named = "'" + "', '".join(f"counterpoint_{name}" for name in TABLES) + "'"
    for table, name, kind, rule in place.sql(
        "SELECT conrelid::regclass::text, conname, contype, pg_get_constraintdef(oid) FROM pg_constraint "
        f"WHERE conrelid::regclass::text IN ({named}) ORDER BY 1, 2"
    ):
        if kind in ("p", "c", b"p", b"c"):
            yield f"ALTER TABLE {table} ADD CONSTRAINT {name} {rule};"
    for (index,) in place.sql(
        "SELECT indexdef FROM pg_indexes WHERE indexname IN ('counterpoint_open', 'counterpoint_sent') ORDER BY 1"
    ):
        yield f"{index};"
    for name, records in dumped(place).items():
        for record in records:
            yield f"INSERT INTO counterpoint_{name} VALUES ({', '.join(map(_literal, record))});"


def _literal(value):
    if value is None:
        return "NULL"
    if isinstance(value, bytes | memoryview):
        return rf"'\x{bytes(value).hex()}'"
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def load(kind, home):
    """The place of a fixture, put there from its files, and what was told when it was written."""
    for name in ("the.key", "witness"):
        shutil.copyfile(FIXTURES / f"{kind}.{name}", home / name)
        (home / name).chmod(0o600)
    place = Place(kind, home)
    if kind == "sqlite":
        shutil.copy(FIXTURES / "sqlite.db", place.url)
    else:
        import psycopg

        with psycopg.connect(place.url, autocommit=True) as connection:
            connection.execute((FIXTURES / "postgres.sql").read_text(encoding="utf-8"))
    return place, json.loads((FIXTURES / f"{kind}.json").read_text(encoding="utf-8"))


def main():
    FIXTURES.mkdir(exist_ok=True)
    for kind in ("sqlite", "postgres"):
        home = pathlib.Path(tempfile.mkdtemp())
        place = Place(kind, home)
        answers = told(place)
        for name in ("the.key", "witness"):
            shutil.copy(home / name, FIXTURES / f"{kind}.{name}")
        if kind == "sqlite":
            shutil.copy(place.url, FIXTURES / "sqlite.db")
        else:
            (FIXTURES / "postgres.sql").write_text("\n".join(statements(place)) + "\n", encoding="utf-8")
        (FIXTURES / f"{kind}.json").write_text(json.dumps(answers, indent=2) + "\n", encoding="utf-8")
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
