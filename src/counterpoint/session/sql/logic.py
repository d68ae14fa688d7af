"""The WHERE of a query as the `where` of a request, with SQL's meaning of a missing value.

In SQL a comparison with a missing value is unknown, NOT leaves it unknown, and WHERE keeps the rows for which the whole
is true. In a request's `where` it is false, and NOT makes it true (see `conditions`). Without NOT the two keep the same
rows. So every NOT is pushed inward, by De Morgan's laws, until it meets a comparison, which turns into its opposite:
both are unknown, here false, where a value is missing.

The text is new, written from the checked tree, and must be read as the same tree again.

>>> from counterpoint.session.sql.reading import parsed
>>> def of(text):
...     return where_text(parsed(f"SELECT COUNT(*) FROM flights WHERE {text}").args["where"].this)
>>> of("month <= 3 AND carrier = 'UA'")
"month <= 3 AND carrier = 'UA'"
>>> of("NOT (month <= 3 OR carrier IN ('UA', 'AA'))")
"(month > 3 AND (NOT carrier IN ('UA', 'AA') AND NOT carrier IS NULL))"
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from counterpoint.session.sql.reading import DIALECT, only, unsupported, written

if TYPE_CHECKING:
    from sqlglot import exp


def where_text(node: "exp.Expr") -> str:
    """The text of a condition that is true of a row where this one is true in SQL."""
    return _same_text(_holds(_decided(_plain_dates(node))), node)


def value_text(node: "exp.Expr") -> str:
    """The text of an expression over columns, for a request about it."""
    return _same_text(_decided(_plain_dates(node)), node)


def _same_text(tree: "exp.Expr", node: "exp.Expr") -> str:
    """The text of a tree that was made of a node, if it is read as the same tree again."""
    import sqlglot  # noqa: PLC0415 - see `reading`
    from sqlglot import exp  # noqa: PLC0415

    text = written(tree)
    try:
        again: exp.Expr | None = sqlglot.parse_one(text, read=DIALECT, into=exp.Condition)
    except Exception:  # also RecursionError
        again = None
    if again != tree:
        raise unsupported(
            "expression of this form", node, "compare columns with literals, by =, <>, <, IN, BETWEEN, LIKE"
        )
    return text


def both(*conditions: str | None) -> str | None:
    """The text of all these conditions together; None if there are none.

    >>> both("a = 1 OR b = 1", None, "c = 1"), both(None)
    ('(a = 1 OR b = 1) AND (c = 1)', None)
    """
    given = [condition for condition in conditions if condition is not None]
    return " AND ".join(f"({one})" for one in given) if len(given) > 1 else given[0] if given else None


def operands(node: "exp.Expr") -> "list[exp.Expr]":
    """The operands of a chain of equal connectives, read from its left-deep tree without recursion."""
    found, sign = [], node.key
    while node.key == sign:
        only(node, "this", "expression")
        found.append(node.expression)
        node = node.this
    return [node, *reversed(found)]


def _plain_dates(node: "exp.Expr") -> "exp.Expr":
    """A copy in which DATE '2024-02-29' is '2024-02-29', as `where` writes a date."""

    def plain(part: "exp.Expr") -> "exp.Expr":
        dated = (
            part.key == "cast"
            and part.this.key == "literal"
            and part.this.is_string
            and part.args["to"].is_type("date")
        )
        return part.this if dated else part

    return node.transform(plain)


def _decided(node: "exp.Expr") -> "exp.Expr":
    """A copy in which each WHEN of a CASE, and each condition that a CASE gives, holds where it is true in SQL.

    The innermost come first: `_holds` leaves what it compares as it is, so that each is changed once.
    """
    whole = node.copy()
    for case in reversed([part for part in whole.walk(bfs=True) if part.key == "case"]):
        for branch in case.args["ifs"]:
            if case.args.get("this") is None:
                branch.set("this", _holds(branch.this))
            branch.set("true", _holds(branch.args["true"]))
        if case.args.get("default") is not None:
            case.set("default", _holds(case.args["default"]))
    return whole


def _holds(node: "exp.Expr") -> "exp.Expr":
    """A condition that is true in `where` exactly where this one is true in SQL."""
    from sqlglot import exp  # noqa: PLC0415 - see `reading`

    if node.key == "not":
        return _fails(only(node, "this").this)
    if node.key == "paren":
        return exp.Paren(this=_holds(only(node, "this").this))
    if node.key in ("and", "or"):
        return _chain(type(node), [_holds(operand) for operand in operands(node)])
    if node.args.get("negate"):
        return _fails(_positive(node))
    return node


def _fails(node: "exp.Expr") -> "exp.Expr":
    """A condition that is true in `where` exactly where this one is false in SQL."""
    from sqlglot import exp  # noqa: PLC0415 - see `reading`

    if node.key == "not":
        return _holds(only(node, "this").this)
    if node.key == "paren":
        return exp.Paren(this=_fails(only(node, "this").this))
    if node.key in ("and", "or"):
        return _chain(exp.Or if node.key == "and" else exp.And, [_fails(operand) for operand in operands(node)])
    if node.args.get("negate"):
        return _holds(_positive(node))
    return _opposites().get(node.key, _no_opposite)(node)


def _opposites() -> "dict[str, Callable[[exp.Expr], exp.Expr]]":
    """What is true where an atom is false, for each kind of atom."""
    from sqlglot import exp  # noqa: PLC0415 - see `reading`

    turned = {"eq": exp.NEQ, "neq": exp.EQ, "lt": exp.GTE, "gte": exp.LT, "gt": exp.LTE, "lte": exp.GT}

    def compared(node: "exp.Expr") -> "exp.Expr":
        only(node, "this", "expression")
        return turned[node.key](this=node.this.copy(), expression=node.expression.copy())

    def outside(node: "exp.Expr") -> "exp.Expr":
        only(node, "this", "low", "high")
        below = exp.LT(this=node.this.copy(), expression=node.args["low"].copy())
        return _chain(exp.Or, [below, exp.GT(this=node.this.copy(), expression=node.args["high"].copy())])

    def present_and_not(node: "exp.Expr") -> "exp.Expr":
        missing = exp.Is(this=node.this.copy(), expression=exp.Null())
        return _chain(exp.And, [exp.Not(this=node.copy()), exp.Not(this=missing)])

    return {
        **dict.fromkeys(turned, compared),
        "between": outside,
        "in": present_and_not,
        "like": present_and_not,
        "is": lambda node: exp.Not(this=node.copy()),
        "column": lambda node: exp.EQ(this=node.copy(), expression=exp.false()),
    }


def _no_opposite(node: "exp.Expr") -> "exp.Expr":
    raise unsupported("NOT before this", node, "say what shall hold, without NOT")


def _positive(node: "exp.Expr") -> "exp.Expr":
    """The same atom without its own NOT, as in `x NOT LIKE 'a%'`."""
    positive = node.copy()
    positive.set("negate", None)
    return positive


def _chain(connective: "type[exp.Expr]", parts: "list[exp.Expr]") -> "exp.Expr":
    """These parts connected, in parentheses where they would be read otherwise: AND binds more tightly than OR."""
    from sqlglot import exp  # noqa: PLC0415 - see `reading`

    loose = ("or",) if connective is exp.Or else ("and", "or")
    first, *rest = (exp.Paren(this=part) if part.key in loose else part for part in parts)
    for part in rest:
        first = connective(this=first, expression=part)
    return first
