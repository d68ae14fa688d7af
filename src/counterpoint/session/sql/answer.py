"""The released answer of a query as its table: the rows that HAVING, ORDER BY and LIMIT leave, under SELECT's names.

>>> import counterpoint as cp
>>> visits = cp.Stream(fields={"page": cp.category(["home", "shop"])})
>>> session = cp.Session(visits, within=cp.PureDP(1000))
>>> visits.extend([{"page": "home"}, {"page": "shop"}, {"page": "shop"}])
>>> session.sql("SELECT page AS p, COUNT(*) AS n FROM visits GROUP BY page ORDER BY n DESC", epsilon=1000)
p     n  n_error
shop  2     +- 0
home  1     +- 0
"""

from collections.abc import KeysView
from typing import Any, TypeAlias

from counterpoint.session.answering.origin import Origin
from counterpoint.session.answering.several import RecordAnswer, SeveralAnswer
from counterpoint.session.answering.tables import Label
from counterpoint.session.sql.having import Row
from counterpoint.session.sql.query import SQLQuery

SQLAnswer: TypeAlias = SeveralAnswer | RecordAnswer
"""The answer of a query: by key and then by the names of SELECT; without GROUP BY, by the names alone."""


def shown(query: SQLQuery, answer: Any, origin: Origin) -> SQLAnswer:
    """The table of a query, from the answer to its request."""
    heads = query.heads
    if not heads:
        cells = answer if isinstance(answer, RecordAnswer) else {output.part: answer for output in query.aggregates}
        return RecordAnswer({output.name: cells[output.part] for output in query.aggregates}, origin)
    several = isinstance(answer, SeveralAnswer)
    parts = {output.name: answer.part(output.part) if several else answer for output in query.aggregates}
    keys: KeysView[Label] = answer.keys()
    rows = query.arrange([(*_values(key, len(heads)), *(part[key] for part in parts.values())) for key in keys])
    kept = [_key(row, len(heads)) for row in rows]
    return SeveralAnswer({name: part.arranged(kept, heads) for name, part in parts.items()}, origin)


def _values(key: Label, columns: int) -> tuple[Label, ...]:
    return (key,) if columns == 1 else tuple(key)


def _key(row: Row, columns: int) -> Label:
    return row[0] if columns == 1 else tuple(row[:columns])
