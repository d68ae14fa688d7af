"""Rows that see more columns than their own: those of one row of another source, found by a key that is unique there.

A row of `visits` sees the attributes of its own unit in `people`, which has one row for each unit, and the columns of a
public lookup table under the row's own value of a column. The join is total: where nothing is found, the columns are
missing. So a row stays one row, and what a unit's rows say depends on that unit's data alone.

The joined columns are declared under dotted names, and stored behind the row's own: a request is then planned and
emitted like any other, over the joined rows. Only what a request mentions is joined.

>>> from counterpoint.sources.asking.requests import count
>>> from counterpoint.sources.declaring.columns import number, text
>>> from counterpoint.sources.engines.compiling import canonical
>>> visits = Declaration("person", 5, "add-or-remove", (Named("page", text()),))
>>> people = Joined("people", (Named("age", number(0, 120)),), on="u")
>>> found = compile_joined(visits, RowView("visits"), [people], canonical(count(where="people.age >= 65")))
>>> found.compiled.sql.partition("(SELECT * FROM visits)")[2]
' AS b LEFT JOIN beside AS j0 ON b.u = j0.f0) AS joined WHERE c1 >= 65'
>>> found.used
('people',)
"""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from counterpoint.encoding import decode
from counterpoint.sources.asking.request import Request
from counterpoint.sources.declaring.declaration import Declaration, Named
from counterpoint.sources.engines.compiling import Compiled, RowView, compile_request
from counterpoint.sources.engines.dialects import DUCKDB
from counterpoint.sources.engines.emitter import narrowed


class Joined(NamedTuple):
    """The columns of another source that rows see; `on` is the column in which rows hold its key.

    `table` has its rows, in the engine of the rows that see it: the key `f0`, then the columns `f1`, ... Its name is
    its own in this process (see `beside`), and not the source's: an engine would take `people` and `People` for one.
    """

    name: str
    columns: tuple[Named, ...]
    on: str
    neighbours: str = "add-or-remove"
    table: str = "beside"


class JoinedRequest(NamedTuple):
    """A compiled request, the declaration of the rows that it sees, and the names of what they are joined with."""

    compiled: Compiled
    declared: Declaration
    used: tuple[str, ...]


def compile_joined(declared: Declaration, view: RowView, joins: Sequence[Joined], request: bytes) -> JoinedRequest:
    """One request, from its canonical bytes, on rows that see these columns as well as their own."""
    asked = decode(request, Request)  # type: ignore[type-abstract]  # a family is read by its tags
    mentioned = set(asked.plan(seen(declared, joins)).columns())
    used, first = [], len(declared.columns)
    for join in joins:
        if mentioned & set(range(first, first + len(join.columns))):
            used.append(join)
        first += len(join.columns)
    if not used:
        return JoinedRequest(compile_request(declared, view, DUCKDB, request), declared, ())
    rows = RowView(f"({_joined(len(declared.columns), view, used)}) AS joined", None, view.reach)
    visible = seen(declared, used)
    found = compile_request(visible, rows, DUCKDB, request)
    return JoinedRequest(found, visible, tuple(join.name for join in used))


def seen(declared: Declaration, joins: Sequence[Joined]) -> Declaration:
    """The declaration of rows that see the columns of these as well.

    Where one of them is declared for replacement, a unit's attributes may change while its rows stay: then each row is
    another one, as under replacement.
    """
    names = [Named(f"{join.name}.{it.name}", it.column, it.declared) for join in joins for it in join.columns]
    neighbours = [declared.neighbours, *(join.neighbours for join in joins)]
    return replace(
        declared,
        columns=(*declared.columns, *names),
        neighbours="replace" if "replace" in neighbours else declared.neighbours,
    )


def _joined(width: int, view: RowView, joins: Sequence[Joined]) -> str:
    """The SQL of the rows with the columns of these behind their own."""
    columns = [*(f"b.c{i} AS c{i}" for i in range(width)), "b.u AS u"]
    found = []
    for number, join in enumerate(joins):
        columns += [f"j{number}.f{i + 1} AS c{width + i}" for i in range(len(join.columns))]
        width += len(join.columns)
        found.append(f" LEFT JOIN {join.table} AS j{number} ON b.{join.on} = j{number}.f0")
    return f"SELECT {', '.join(columns)} FROM ({narrowed(view.rows, view.within)}) AS b{''.join(found)}"
