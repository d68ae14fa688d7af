"""Which rewritings of a statement the embedded engine may do: those that follow from the statement alone.

DuckDB reads statistics of the stored rows (least and largest values, numbers of rows and of different values) while it
plans a statement. What it does by them is meant to leave the answer alone, but it can fail: version 2.0 raises an error
for some comparisons of a CASE, depending on the largest value of a column. So nothing that reads statistics runs, and
an optimizer of a later version stays off until it has been looked at.

What this costs in CPU time, as `python -m bench optimizers` measures it on 2 * 10^6 rows: a grouped sum takes 37 ms
in the place of 25, and a join with attributes 89 ms in the place of 15; a count with conditions, a few keys, a median
and a sum of CASE take as long as with all of them, or at most a sixth longer. By itself, only `filter_pushdown` makes
more than a sixth of a difference: the join takes 33 ms with it.

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
"""The optimizers that run, and what for. None of them reads a row or a statistic."""

OFF = {
    "statistics_propagation": "reads the least and largest value of columns; in 2.0 it fails for some CASE",
    "join_order": "reads how many rows there are, and how many different values",
    "partitioned_execution": "reads the least and largest value of each block of rows",
    "filter_pushdown": "lets a scan skip blocks by their least and largest value, which the time would show",
    "filter_pullup": "moves conditions to where filter_pushdown takes them from",
    "reorder_filter": "decides which of several conditions is computed first, and so which of them can fail",
    "outer_join_simplification": "lets rows without attributes leave a join early, which filter_pushdown would use",
    "distinct_aggregate_rewrite": "counts units in a join by another plan, which gains nothing",
}
"""The optimizers that are off and would change the plan of a statement that is emitted here, and why they are off.

All others are off, too, and cost nothing, as they would change no such plan: they serve other statements (windows,
ORDER BY, LIMIT, nested tables, other databases), or continue what these begin.
"""


def disabled(connection: "DuckDBPyConnection") -> list[str]:
    """The names of all other optimizers of this version."""
    known = [name for (name,) in connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()]
    return [name for name in known if name not in KEPT]


def disable(connection: "DuckDBPyConnection") -> None:
    """Let the database of this connection, and its cursors, plan without the others."""
    connection.execute(f"SET GLOBAL disabled_optimizers = '{','.join(disabled(connection))}'")
