"""The WHERE of a query as the `where` of a request, with SQL's meaning of a missing value.

In SQL a comparison with a missing value is unknown, NOT leaves it unknown, and WHERE keeps the rows for which the whole
is true. In a request's `where` it is false, and NOT makes it true (see `conditions`). Without NOT the two keep the same
rows. So every NOT is pushed inward, by De Morgan's laws, until it meets a comparison, which turns into its opposite:
both are unknown, here false, where a value is missing.

The text is new, written from the checked tree, and must be read as the same tree again.

>>> from counterpoint.sql_requests.parse import parsed
>>> def of(text):
...     return where_text(parsed(f"SELECT COUNT(*) FROM flights WHERE {text}").args["where"].this)
>>> of("month <= 3 AND carrier = 'UA'")
"month <= 3 AND carrier = 'UA'"
>>> of("NOT (month <= 3 OR carrier IN ('UA', 'AA'))")
"(month > 3 AND (NOT carrier IN ('UA', 'AA') AND NOT carrier IS NULL))"
"""

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING

from counterpoint.errors import UnsupportedSQL
from counterpoint.schema.expressions.syntax import ALLOWED, operands
from counterpoint.sql_requests.parse import DIALECT, Scope, function_name, only, unsupported, written

if TYPE_CHECKING:
    from sqlglot import exp

_SIGNS = ("eq", "neq", "lt", "lte", "gt", "gte")
_CONDITIONS = {"and", "or", "not", "is", "in", "between", "like", "boolean", *_SIGNS}
_VALUES = "column identifier literal null paren neg add sub mul div case if coalesce abs"
_KNOWN = {*_CONDITIONS, *f"{_VALUES} year quarter month day dayofweekiso".split()}
"""The nodes of expressions, besides CLAMP. WEEKDAY is none of them: it counts from Sunday in DuckDB."""
_MOST_NODES = 10_000
"""The most nodes of a CASE in which every NOT was pushed inward: an opposite may mention what it compares twice."""
_SHORTER = "declare parts of it as derived columns, or say what shall hold without NOT"


def where_text(node: "exp.Expr") -> str:
    """The text of a condition that is true of a row where this one is true in SQL."""
    return _same_text(_holds(_decided(_plain(node))), node)


def value_name(node: "exp.Expr", scope: Scope) -> str:
    """What a request calls a value of a row: the name of a column, or the text of an expression over columns."""
    if node.key == "column":
        return scope.column(node)
    return _same_text(_decided(_plain(scope.unaliased(node))), node)


def plain_text(node: "exp.Expr", scope: Scope) -> str:
    """The text by which a value is recognised that a query writes twice."""
    return scope.column(node) if node.key == "column" else written(_decided(_plain(scope.unaliased(node))))


def key_name(node: "exp.Expr", scope: Scope) -> str:
    """The same, of a value that rows are grouped by: where SQL has a group of missing values, these are in none.

    A condition is true or false of every row here, so rows of which SQL does not know it would be in a group.
    """
    given = [value for case in node.find_all(*_cases()) for value in _given(case)]
    if node.key in _CONDITIONS or any(value.key not in ("literal", "null") for value in given):
        raise unsupported(
            "GROUP BY of a condition", node, "write CASE WHEN condition THEN 'yes' ELSE 'no' END, with literals"
        )
    return value_name(node, scope)


def _same_text(tree: "exp.Expr", node: "exp.Expr") -> str:
    """The text of a tree that was made of a node: it must be read as the same tree again."""
    import sqlglot  # noqa: PLC0415 - see `reading`
    from sqlglot import exp  # noqa: PLC0415

    for part in tree.walk():
        if part.key not in _KNOWN and not (part.key == "anonymous" and str(part.this).upper() == "CLAMP"):
            raise unsupported(f"{function_name(part)} in an expression", part, ALLOWED.replace("WEEKDAY", "ISODOW"))
    text = written(tree)
    try:
        again: exp.Expr | None = sqlglot.parse_one(text, read=DIALECT, into=exp.Condition)
    except Exception:  # also RecursionError
        again = None
    if again != tree:
        raise unsupported("expression of this form", node, ALLOWED.replace("WEEKDAY", "ISODOW"))
    return text


def both(*conditions: str | None) -> str | None:
    """The text of all these conditions together; None if there are none.

    >>> both("a = 1 OR b = 1", None, "c = 1"), both(None)
    ('(a = 1 OR b = 1) AND (c = 1)', None)
    """
    given = [condition for condition in conditions if condition is not None]
    return " AND ".join(f"({one})" for one in given) if len(given) > 1 else given[0] if given else None


def _plain(node: "exp.Expr") -> "exp.Expr":
    """A copy in which DATE '2024-02-29' is '2024-02-29' and EXTRACT(month FROM day) is MONTH(day)."""
    from sqlglot import exp  # noqa: PLC0415 - see `reading`

    parts = {"YEAR": exp.Year, "QUARTER": exp.Quarter, "MONTH": exp.Month, "DAY": exp.Day, "ISODOW": exp.DayOfWeekIso}

    def plain(part: "exp.Expr") -> "exp.Expr":
        if part.key == "extract" and part.name.upper() in parts:
            return parts[part.name.upper()](this=only(part, "this", "expression").expression)
        dated = part.key == "cast" and part.this.key == "literal" and part.this.is_string
        return part.this if dated and part.args["to"].is_type("date") else part

    return node.transform(plain)


def _cases() -> "tuple[type[exp.Expr], ...]":
    from sqlglot import exp  # noqa: PLC0415 - see `reading`

    return (exp.Case,)


def _given(case: "exp.Expr") -> "list[exp.Expr]":
    """What a CASE gives, behind THEN and ELSE."""
    default = case.args.get("default")
    return [*(branch.args["true"] for branch in case.args["ifs"]), *([] if default is None else [default])]


def _decided(node: "exp.Expr") -> "exp.Expr":
    """A copy in which each WHEN of a CASE, and each condition that a CASE gives, holds where it is true in SQL.

    The innermost come first: `_holds` leaves what it compares as it is, so that each is changed once.
    """
    whole = node.copy()
    for case in reversed(list(whole.find_all(*_cases()))):
        for branch in case.args["ifs"]:
            if case.args.get("this") is None:
                branch.set("this", _holds(branch.this))
            branch.set("true", _holds(branch.args["true"]))
        if case.args.get("default") is not None:
            case.set("default", _holds(case.args["default"]))
        if sum(1 for _ in islice(case.walk(), _MOST_NODES + 1)) > _MOST_NODES:
            raise UnsupportedSQL(f"CASE of more than {_MOST_NODES} operations", "its NOTs pushed inward", _SHORTER)
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
