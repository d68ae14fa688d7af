"""Made-up rows: drawn from a declaration alone, to rehearse requests on before any budget is spent.

Every value is drawn by its column's declaration, uniformly and independently of the others; a few are missing. So the
rows have the declared shape, and say nothing about the data. They depend on the declaration only: the same one has
the same rows again.

>>> from counterpoint.schema.columns import number
>>> from counterpoint.schema.declaration import Named
>>> engine = made_up_rows(Declaration(None, 1, "replace", (Named("age", number(0, 120)),)))
>>> engine.run("SELECT COUNT(*), MIN(c0) >= 0, MAX(c0) <= 120 FROM bound")
[(1000, True, True)]
"""

from collections.abc import Sequence

from counterpoint.coins.coins import Coins
from counterpoint.coins.secure import SeededCoins
from counterpoint.encoding import digest
from counterpoint.engines.duckdb import EmbeddedEngine, empty_engine
from counterpoint.engines.sampling import column_array, stored_kind
from counterpoint.schema.columns import Column, Key
from counterpoint.schema.declaration import Declaration
from counterpoint.schema.expressions.evaluate import TermReader, term_reader

UNITS = 1_000
"""How many units are made up."""
_MOST_ROWS = 3
"""The most rows of a unit, if it may have as many."""
_MISSING = 50
"""One value in 50 is missing."""


def made_up_rows(declared: Declaration) -> EmbeddedEngine:
    """An engine whose table `bound` has made-up rows of this declaration, in stored form."""
    coins = SeededCoins(digest("made up", declared))
    computed = [(place, term_reader(expression.term)) for place, expression in declared.derived]
    rows = [_with(row, computed) for unit in range(UNITS) for row in _rows_of(unit, declared, coins)]
    kinds = [*(stored_kind(named.column) for named in declared.columns), "BIGINT"]
    names = [*(f"c{i}" for i in range(len(declared.columns))), "u"]
    created = ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))
    engine = empty_engine(f"CREATE TABLE bound ({created})")
    engine.insert(
        "bound", [column_array(kind, values) for kind, values in zip(kinds, zip(*rows, strict=True), strict=True)]
    )
    return engine


def _rows_of(unit: int, declared: Declaration, coins: Coins) -> list[tuple[Key | None, ...]]:
    """The rows of one unit; what identifies it is the same in all of them."""
    many = 1 + coins.integer(min(declared.rows_per_unit, _MOST_ROWS))
    own = {named.name: named.column.made_up(coins) for named in declared.columns if named.name in declared.unit_columns}
    return [
        (*(own.get(named.name, _value(named.column, coins)) for named in declared.columns), unit) for _ in range(many)
    ]


def _with(row: tuple[Key | None, ...], computed: Sequence[tuple[int, TermReader]]) -> tuple[Key | None, ...]:
    """The row with its derived columns, each of which may read those before it."""
    values = list(row)
    for place, read in computed:
        values[place] = read(values)
    return tuple(values)


def _value(column: Column, coins: Coins) -> Key | None:
    return None if coins.integer(_MISSING) == 0 else column.made_up(coins)
