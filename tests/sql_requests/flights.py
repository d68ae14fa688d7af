"""A small made-up table with missing values, and DuckDB's own answer to the same SQL on the same rows."""

from datetime import date

import duckdb
import pyarrow as pa
from hypothesis import strategies as st

import counterpoint as cp

CARRIERS = ["AA", "DL", "UA", "it's"]
MONTHS = [1, 2, 3]
COLUMNS = {
    "carrier": cp.category(CARRIERS),
    "month": cp.category(MONTHS),
    "delay": cp.number(-20, 20),
    "late": cp.boolean(),
    "dest": cp.text(),
    "day": cp.date("2024-01-01", "2024-12-31"),
}
SCHEMA = pa.schema(
    [
        ("carrier", pa.string()),
        ("month", pa.int64()),
        ("delay", pa.int64()),
        ("late", pa.bool_()),
        ("dest", pa.string()),
        ("day", pa.date32()),
    ]
)
DAYS = [None, *(date(2024, month, 15) for month in (1, 6, 12))]

rows = st.lists(
    st.fixed_dictionaries(
        {
            "carrier": st.sampled_from([None, *CARRIERS]),
            "month": st.sampled_from([None, *MONTHS]),
            "delay": st.none() | st.integers(-20, 20),
            "late": st.sampled_from([None, True, False]),
            "dest": st.sampled_from([None, "LAX", "JFK", "é", ""]),
            "day": st.sampled_from(DAYS),
        }
    ),
    max_size=12,
)

atoms = st.sampled_from(
    [
        "delay > 3",
        "delay <= 0",
        "3 < delay",
        "delay <> 5",
        "delay BETWEEN -5 AND 5",
        "delay NOT BETWEEN -5 AND 5",
        "carrier = 'UA'",
        "carrier <> 'it''s'",
        "carrier IN ('UA', 'AA')",
        "carrier NOT IN ('UA', 'AA')",
        "month IN (1, 3)",
        "f.month = 2",
        "late",
        "late = FALSE",
        "dest LIKE 'L%'",
        "dest NOT LIKE '%A%'",
        "dest IS NULL",
        "delay IS NOT NULL",
        "day >= DATE '2024-06-15'",
        "day < '2024-06-15'",
        "delay - month > 2",
        "delay * 2 <> month + 4",
        "delay / month > 3",
        "f.delay / (month - 1) <= 3",
        "ABS(delay) BETWEEN month AND 10",
        "COALESCE(delay, month, 0) = 3",
        "MONTH(day) = 6",
        "EXTRACT(quarter FROM f.day) IN (1, 4)",
        "ISODOW(day) > 3",
        "day - DATE '2024-03-01' > 100",
        "CASE WHEN NOT delay > 3 THEN 1 WHEN late THEN 2 END = 1",
        "CASE WHEN NOT late THEN delay ELSE month END > 1",
        "CASE WHEN carrier NOT IN ('UA') THEN 'a' END = 'a'",
        "CASE month WHEN 1 THEN 5 WHEN 2 THEN delay END >= 5",
        "carrier = dest",
        "carrier <> dest",
    ]
)
conditions = st.recursive(
    atoms,
    lambda inner: (
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda it: f"({it[0]}) {it[1]} {it[2]}")
        | inner.map(lambda it: f"NOT ({it})")
        | inner.map(lambda it: f"NOT {it}" if " AND " not in it and " OR " not in it else f"({it})")
    ),
    max_leaves=5,
)


def table(made):
    """The rows as an Arrow table."""
    return pa.Table.from_pylist(made, schema=SCHEMA)


def session(made, **options):
    """A session that adds next to no noise."""
    source = cp.Table(table(made), unit=cp.each_row, columns=COLUMNS, **options)
    return cp.Session(source, within=cp.PureDP(10**12))


def duckdb_answer(text, **tables):
    """What DuckDB answers to a text about these Arrow tables, if a quotient by 0 is missing, as it is here."""
    with duckdb.connect() as connection:
        for name, rows_of in tables.items():
            connection.register(name, rows_of)
        return connection.sql(text.replace("(month - 1)", "NULLIF(month - 1, 0)")).fetchall()
