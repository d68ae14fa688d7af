"""Which rewritings of a statement the embedded engine may do: those that follow from the statement alone.

DuckDB reads statistics of the stored rows (least and largest values, numbers of rows and of different values) while it
plans a statement. What it does by them is meant to leave the answer alone, but it can fail: version 2.0 raises an error
for some comparisons of a CASE, depending on the largest value of a column. So nothing that reads statistics runs, and
an optimizer of a later version stays off until it has been looked at.

What this costs, in CPU time on 8 * 10^6 rows: a grouped sum takes 48 ms in the place of 35, one of rows that a list of
keys selects 101 in the place of 35 (49 with `filter_pushdown`), and a join with attributes four times as long.

>>> import duckdb
>>> "statistics_propagation" in disabled(duckdb.connect()), "expression_rewriter" in disabled(duckdb.connect())
(True, False)
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

KEPT = {
    "expression_rewriter": "computes constants once, and moves them to one side of a comparison",
    "unused_columns": "reads only the columns that a statement names",
    "column_lifetime": "drops a column after its last use",
    "common_subexpressions": "computes equal expressions once",
    "common_aggregate": "computes equal aggregates once",
    "deliminator": "makes one join of EXISTS, which otherwise compares all rows with all",
    "in_clause": "looks up a long list of keys in a hash table, in the place of comparing a row with each",
}
"""The optimizers that run, and what for. None of them reads a row or a statistic.

Others read statistics: statistics_propagation, join_order, build_side_probe_side, compressed_materialization,
row_group_pruner, partitioned_execution, join_filter_pushdown, late_materialization. Or they prune what is read by the
statistics of each block: filter_pushdown and filter_pullup put conditions into the scan, where whole blocks are skipped
by their least and largest value, which the time of an answer shows, too. The rest serves statements that are never
emitted here: top_n, limit_pushdown, sampling_pushdown, those of windows and of common table expressions.
"""


def disabled(connection: "DuckDBPyConnection") -> list[str]:
    """The names of all other optimizers of this version."""
    known = [name for (name,) in connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()]
    return [name for name in known if name not in KEPT]


def disable(connection: "DuckDBPyConnection") -> None:
    """Let the database of this connection, and its cursors, plan without the others."""
    connection.execute(f"SET GLOBAL disabled_optimizers = '{','.join(disabled(connection))}'")
