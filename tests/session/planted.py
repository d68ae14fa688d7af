"""Engines in which failures are planted: what a database may do to a statement because of the rows that it reads."""

from contextlib import contextmanager

import numpy as np
import psycopg

from counterpoint.engines import postgres
from counterpoint.engines.duckdb import EmbeddedEngine
from counterpoint.engines.postgres import PostgresEngine
from counterpoint.engines.spark import SparkEngine

ENGINES = {"duckdb": EmbeddedEngine, "postgres": PostgresEngine, "spark": SparkEngine}


class Planted(Exception):
    """What a faulty engine raises; its words quote a row."""


def by_count(at_least):
    """Raises if a table has so many rows."""
    return lambda look: look("SELECT COUNT(*) FROM bound")[0][0] >= at_least


def by_value(at_least, column="c1"):
    """Raises if a column has a value so large."""
    return lambda look: (look(f"SELECT MAX({column}) FROM bound")[0][0] or 0) >= at_least


def at_random(seed):
    """Raises now and then, whatever the rows are."""
    coins = np.random.default_rng(seed)
    return lambda look: coins.random() < 0.5


def always(look):
    """Raises whatever the rows are."""
    return True


@contextmanager
def planted(monkeypatch, engine, when, *, scans=False, error=Planted):
    """Statements of this engine raise where `when` says so; with `scans`, reading the stored rows does, too.

    Yields a list to which every failure that was planted is added.
    """
    kind, raised = ENGINES[engine], []
    run, scan = kind.run, kind.scan

    def fail(self, sql):
        if sql.startswith(("SELECT", "WITH")) and when(lambda looked: run(self, looked)):
            raised.append(sql)
            raise error("the largest income is 4217339")

    def failing_run(self, sql, *given, **more):
        _called(engine, self, lambda: fail(self, sql))
        return run(self, sql, *given, **more)

    def failing_scan(self, sql):
        if scans:
            _called(engine, self, lambda: fail(self, sql))
        return scan(self, sql)

    with monkeypatch.context() as patched:
        patched.setattr(kind, "run", failing_run)
        patched.setattr(kind, "scan", failing_scan)
        yield raised


def _called(engine, self, work):
    """Work in the place where the engine's own errors are caught."""
    if engine == "postgres":
        postgres._succeeded(postgres._attempted(_as(psycopg.DatabaseError, work), self))
    else:
        self._attempt(work)


def _as(kind, work):
    def raising():
        try:
            work()
        except Planted as error:
            raise kind(str(error)) from error

    return raising
