"""Ledgers for tests: a fresh one of each kind that can be closed and opened again; PostgreSQL where it starts."""

import os
import pathlib
import tempfile
from itertools import count

from tests.engines import engines
from tests.session.numbers_source import Numbers

import counterpoint as cp
from counterpoint.ledger.memory import MemoryLedger
from counterpoint.ledger.open import durable
from counterpoint.ledger.sealing import MasterKey

DATA = {"apples": 100, "avocados": 7, "beans": 3}
KINDS = ("memory", "sqlite", "postgres")
DURABLE = ("sqlite", "postgres")
_numbers = count()


def fresh_database():
    """The URL of an empty PostgreSQL database, or skip."""
    name = f"ledger_{os.getpid()}_{next(_numbers)}"
    url = engines.url()
    engines.execute(f"CREATE DATABASE {name}")
    return url.replace("/postgres?", f"/{name}?")


class Place:
    """Where one ledger is, and how to open it again."""

    def __init__(self, kind, home=None, url=None):
        self.kind = kind
        self.home = pathlib.Path(home or tempfile.mkdtemp())
        self.key = self.home / "the.key"
        if not self.key.exists():
            MasterKey.create(self.key)
        self.url = url or (fresh_database() if kind == "postgres" else str(self.home / "ledger.db"))
        self._memory = MemoryLedger()

    @property
    def source(self):
        return Numbers(DATA)

    @property
    def durable(self):
        return cp.Durable(self.url, key_file=self.key, witness=self.home / "witness")

    def ledger(self, name="session", **options):
        return self._memory if self.kind == "memory" else durable(self.durable, name, **options)

    def session(self, within=None, source=None, name="session", rule=None, **options):
        """The session, made or resumed."""
        ledger = self.ledger(name, **options)
        try:
            budget = None if rule else within or cp.PureDP(1)
            return cp.Session(source or self.source, budget, rule=rule, ledger=ledger)
        except BaseException:
            ledger.close()
            raise

    def reopened(self, source=None, name="session", **options):
        """The session as it is found after a restart."""
        ledger = self.ledger(name, **options)
        try:
            return cp.open(ledger, name, source=source or self.source)
        except BaseException:
            ledger.close()
            raise

    def sql(self, statement, *parameters):
        """Reach into the database behind the ledger's back, as a tamperer would."""
        if self.kind == "sqlite":
            import apsw

            connection = apsw.Connection(self.url)
            try:
                return list(connection.execute(statement, parameters))
            finally:
                connection.close()
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement.replace("?", "%s"), parameters)
            return cursor.fetchall() if cursor.description else []
