"""ORDER BY and LIMIT: which rows of a released answer are shown, and in which order. Postprocessing, as HAVING is.

Missing values come last, in both directions, unless NULLS FIRST is written. Texts are ordered by the code points of
their letters, as DuckDB orders them.

>>> rows = [("AA", 9), ("DL", 3), ("UA", 9), ("B6", None)]
>>> arranged(rows, None, [Order(1, downward=True)], limit=3)
[('AA', 9), ('UA', 9), ('DL', 3)]
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING

from counterpoint.session.sql.having import Having, Place, Row
from counterpoint.session.sql.reading import only, unsupported
from counterpoint.sources.declaring.columns import MOST_KEYS

if TYPE_CHECKING:
    from sqlglot import exp


@dataclass(frozen=True, slots=True)
class Order:
    """The place of the values to sort by, which way, and whether missing ones come first."""

    place: int
    downward: bool = False
    missing_first: bool = False


def arranged(rows: Sequence[Row], having: Having | None, order: Sequence[Order], limit: int | None) -> list[Row]:
    """The rows of which HAVING is true, in this order, at most `limit`; rows that are alike keep their order."""
    kept = [row for row in rows if having is None or having.holds(row) is True]
    for by in reversed(order):  # sorting is stable
        gone = [row for row in kept if row[by.place] is None]
        there = [row for row in kept if row[by.place] is not None]
        there.sort(key=itemgetter(by.place), reverse=by.downward)
        kept = gone + there if by.missing_first else there + gone
    return kept[:limit]


def read_order(node: "exp.Expr", place: Place) -> tuple[Order, ...]:
    """What ORDER BY sorts by."""
    terms = [only(term, "this", "desc", "nulls_first") for term in only(node, "expressions").expressions]
    return tuple(
        Order(place(term.this), bool(term.args.get("desc")), bool(term.args.get("nulls_first"))) for term in terms
    )


def read_limit(node: "exp.Expr") -> int:
    """The number in LIMIT."""
    number = only(node, "expression").expression
    if number.key != "literal" or number.is_string or not str(number.this).isdecimal():
        raise unsupported("LIMIT but of a whole number", node, "write LIMIT 5")
    digits = str(number.this).lstrip("0") or "0"
    return MOST_KEYS if len(digits) > len(str(MOST_KEYS)) else int(digits)
