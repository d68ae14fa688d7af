r"""Conformance: an engine computes what the others do, integer by integer, before a table is bound in it.

What a request may move by is bounded for the integers that its plan defines. An engine that wraps a sum at 64 bits,
takes "a" and "A" for one text or rounds a quotient has other integers, whose bound nobody has proven. So each engine,
with its dialect and version, computes once in a process what is known here: a few rows with awkward values are loaded,
capped, fingerprinted and asked about. Where anything differs, no table is bound.

The rows and what is known about them say nothing about anyone's data, so what a refusal says is public.

>>> from counterpoint.engines.duckdb import empty_engine
>>> check(empty_engine("CREATE TABLE any_other (c0 BIGINT)"))
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from counterpoint.engines import loading
from counterpoint.engines.dialect import Dialect
from counterpoint.engines.engine import SqlEngine
from counterpoint.engines.unit_key_sql import key_of
from counterpoint.errors import CounterpointError, DataLost, InvalidParameter
from counterpoint.queries import known_rows
from counterpoint.queries.plan import QueryPlan, Together, statement
from counterpoint.queries.request import Request
from counterpoint.schema.declaration import Declaration
from counterpoint.schema.expressions.tree import And

_GIVEN, _STORED, _HEAVY = "known_given", "known_stored", "known_heavy"
_KEY = "00"
_WITH_MICROSECONDS = len("2024-06-01 12:00:00.123456")
_MARK = "4217339"
"""Stands in a statement that fails, and must not stand in what the engine raises then."""

_passed: set[tuple[type, Dialect, str]] = set()


def check(engine: SqlEngine) -> None:
    """`InvalidParameter` unless this engine, with this dialect and version, computes what is known.

    That takes some twelve statements (150 ms in DuckDB, seconds in Spark), once in a process.
    """
    facts = (type(engine), engine.dialect, engine.version)
    if facts in _passed:
        return
    wrong = None
    try:
        wrong = next(_differences(engine), None)
    finally:
        for name in (_HEAVY, _STORED, _GIVEN):
            with suppress(Exception):  # it was not created
                engine.drop(name)
    if wrong is not None:
        raise InvalidParameter(
            f"{type(engine).__name__} does not compute {wrong} as every engine must, so no table is bound in it: "
            "correct its Dialect (CONTRIBUTING, Adding an engine)"
        )
    _passed.add(facts)


def _differences(engine: SqlEngine) -> Iterator[str]:
    """What the engine computes otherwise, in words; a statement that it cannot run at all is one of them."""
    for what, computes in (
        ("the stored form of values", _stores),
        ("which values name one unit", _names_units),
        ("requests", _answers),
        ("which rows of a unit are kept, or their fingerprint", _keeps),
        ("a refusal that quotes nothing, in the place of an error", _fails),
    ):
        found: str | bool | None = False
        try:
            found = computes(engine)
        except DataLost:
            raise
        except Exception:  # which may be of any kind, and is no concern of the rows
            found = False
        if found is not True:
            yield found or what


def _stores(engine: SqlEngine) -> bool | str:
    declared, dialect = known_rows.declared(), engine.dialect
    engine.create(_GIVEN, given(dialect))
    engine.create(_STORED, loading.load(declared, _kinds(dialect), _GIVEN, dialect))
    names = ", ".join([*(f"c{i}" for i in range(len(declared.columns))), "u"])
    every = f"SELECT {names} FROM {_STORED}"
    for path, rows in (("", engine.run(every)), (" on its second path", list(engine.scan(every)))):
        found = sorted(rows, key=lambda row: int(row[0]))
        if len(found) != len(known_rows.STORED):
            return False
        for row, known in zip(found, known_rows.STORED, strict=True):
            for about, value, wanted in zip(_abouts(), row, known, strict=True):
                if not _is(value, wanted):
                    return f"the stored form of {about}{path}"
    return True


def _names_units(engine: SqlEngine) -> bool | str:
    dialect, keys, abouts = engine.dialect, [], []
    for name, of in known_rows.UNIT_TYPES:
        about, kind = known_rows.COLUMNS[name].about, _kinds(dialect)[name]
        found = key_of(kind, dialect.quoted(name), of, dialect)
        assert found is not None, "each of these types names units"
        keys.append(dialect.written(found[1]))
        abouts.append(f"which units {about} name")
    rows = engine.run(f"SELECT {', '.join([dialect.quoted('id'), *keys])} FROM {_GIVEN}")
    known = zip(*(known_rows.keys_of(*column) for column in known_rows.UNIT_TYPES), strict=True)
    for row, wanted in zip(sorted(rows, key=lambda row: int(row[0])), known, strict=True):
        for about, value, key in zip(abouts, row[1:], wanted, strict=True):
            if not _is(value, key):
                return about
    return True


def _kinds(dialect: Dialect) -> dict[str, str]:
    kinds = {name: known.kind for name, known in known_rows.COLUMNS.items()}
    return kinds if dialect.nanos is not None else {**kinds, "nano": "TIMESTAMP"}


def _abouts() -> list[str]:
    """What each stored column is about, in words; the last one is the unit."""
    own = [known.about for known in known_rows.COLUMNS.values()]
    return [*own, *(about for about, _ in known_rows.DERIVED.values()), own[-1]]


def _is(found: Any, wanted: Any) -> bool:
    """Whether a value is this one: a whole number of any type, but no double, and no number for a truth value."""
    if wanted is None or isinstance(wanted, str | bool):
        return type(found) is type(wanted) and bool(found == wanted)
    return found is not None and not isinstance(found, bool | float | str) and bool(found == wanted)


def _answers(engine: SqlEngine) -> bool | str:
    declared = known_rows.declared()
    plans = [request.plan(declared) for _, request, _ in known_rows.SUMS]
    together = QueryPlan(Together(tuple(plans), (1,) * len(plans)), (), And(()))
    (found,) = engine.run(statement(together, _STORED, None, engine.dialect))
    for value, (what, _, wanted) in zip(found, known_rows.SUMS, strict=True):
        if not _is(value, wanted):
            return what
    for what, request, known in known_rows.CELLS:
        if _answered(engine, declared, request) != known:
            return what
    return True


def _answered(engine: SqlEngine, declared: Declaration, request: Request) -> object:
    plan = request.plan(declared)
    return request.read_rows(declared, plan, engine.run(statement(plan, _STORED, None, engine.dialect)))


def _keeps(engine: SqlEngine) -> bool:
    declared, dialect = known_rows.declared(), engine.dialect
    prints = engine.run(loading.fingerprint(declared, _STORED, _KEY, dialect))
    engine.create(_HEAVY, loading.heavy(declared, _STORED))
    capped = loading.capped(declared, _STORED, _HEAVY, _KEY, dialect)
    spread = loading.spread(declared, declared.index("f"), 1, _STORED, _KEY, dialect=dialect, each=1)
    kept = [_numbers(engine.run(f"SELECT c0 FROM ({query}) AS kept")) for query in (capped, spread)]
    return [tuple(map(int, prints[0])), *kept] == [known_rows.FINGERPRINT, known_rows.CAPPED, known_rows.SPREAD]


def _numbers(rows: Sequence[tuple[Any, ...]]) -> list[int]:
    return sorted(int(number) for (number,) in rows)


def _fails(engine: SqlEngine) -> bool:
    """A statement that cannot be run is a typed error, which quotes nothing; the next one runs."""
    error: BaseException | None = None
    try:
        engine.run(f"SELECT known_{_MARK} FROM {_STORED} WHERE c4 = '{_MARK}'")
    except CounterpointError as refused:
        error = refused
    quotes = error is None or _MARK in repr(error) or error.__cause__ is not None or error.__context__ is not None
    ids = [*range(len(known_rows.STORED))]
    return not quotes and _numbers(engine.run(f"SELECT c0 FROM {_STORED}")) == ids


def given(dialect: Dialect) -> str:
    """The query for the known rows as data has them, before anything is stored."""
    types = {
        "BIGINT": "BIGINT",
        "DOUBLE": dialect.double,
        "BOOLEAN": "BOOLEAN",
        "DATE": "DATE",
        "TIMESTAMP": dialect.unzoned,
        "TIMESTAMP WITH TIME ZONE": dialect.zoned,
        "TIMESTAMP_NS": "TIMESTAMP_NS",
        "DECIMAL": "DECIMAL(38, 3)",
        "HUGEINT": dialect.wide,
        "FLOAT": "REAL",
    }
    columns = []
    for name, kind in _kinds(dialect).items():
        texts: Sequence[str | None] = known_rows.COLUMNS[name].given
        if name == "nano" and kind == "TIMESTAMP":  # some engines round to microseconds, and others cut
            texts = [None if text is None else text[:_WITH_MICROSECONDS] for text in texts]
        spelled = ["NULL" if text is None else dialect.literal(text) for text in texts]
        cast = [dialect.written(it) if kind == "VARCHAR" else f"CAST({it} AS {types[kind]})" for it in spelled]
        columns.append([f"{it} AS {dialect.quoted(name)}" for it in cast])
    return " UNION ALL ".join(f"SELECT {', '.join(row)}" for row in zip(*columns, strict=True))
