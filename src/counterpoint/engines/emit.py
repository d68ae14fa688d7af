"""Conditions and terms as SQL: one sqlglot tree for each, in an engine's dialect.

The three truth values are SQL's own, so AND, OR, NOT and CASE are written as they are; `expressions.evaluate` says what
each engine must compute. Arithmetic is done in wide integers, which every intermediate result fits
(`quantities.LARGEST`); what is grouped or added up is cast back to 64 bits. The only division is of a number that is at
least 0 by one that is at least 1, so every engine rounds it the same way.

>>> from counterpoint.schema.expressions.tree import Between, Constant, FloorDivide, Not, Plus
>>> from counterpoint.engines.duckdb import DUCKDB
>>> from counterpoint.engines.postgres import POSTGRES
>>> print(emit_condition(Not(Between(Plus(0, Constant(7)), 3, None)), DUCKDB).sql(DUCKDB.name))
NOT (CAST(c0 AS INT128) + CAST('7' AS INT128)) >= 3
>>> print(emit_term(FloorDivide(0, 1), POSTGRES).sql(POSTGRES.name))
CAST(DIV(CAST(c0 AS DECIMAL), CAST(c1 AS DECIMAL)) AS BIGINT)
"""

from functools import lru_cache
from typing import TYPE_CHECKING

from counterpoint.engines.dialect import Dialect
from counterpoint.schema.columns import Key
from counterpoint.schema.expressions.evaluate import value_test
from counterpoint.schema.expressions.tree import (
    And,
    AsBoolean,
    BeforePin,
    Between,
    Case,
    CaseCondition,
    CaseText,
    Condition,
    Constant,
    DatePart,
    Equal,
    FloorDivide,
    In,
    IsNull,
    Like,
    MaxLength,
    Not,
    NotEnded,
    Or,
    Plus,
    Term,
    Times,
    steady_pattern,
)

if TYPE_CHECKING:
    from sqlglot import exp


def emit_condition(condition: Condition, dialect: Dialect) -> "exp.Expr":
    """A condition in SQL: TRUE, FALSE or NULL of each row."""
    from sqlglot import exp  # noqa: PLC0415

    match condition:
        case And(parts):
            every = [emit_condition(part, dialect) for part in parts]
            return exp.and_(*every, copy=False) if every else exp.true()
        case Or(parts):
            some = [emit_condition(part, dialect) for part in parts]
            return exp.or_(*some, copy=False) if some else exp.false()
        case Not(part):
            return exp.not_(emit_condition(part, dialect), copy=False)
        case CaseCondition(cases, otherwise):
            given = [(when, None if then is None else emit_condition(then, dialect)) for when, then in cases]
            return _case(given, None if otherwise is None else emit_condition(otherwise, dialect), dialect)
        case IsNull(term):
            return exp.Is(this=_compared(term, dialect), expression=exp.Null())
        case Equal(left, right):
            return exp.EQ(this=_compared(left, dialect), expression=_compared(right, dialect))
        case In(CaseText() as text) | Like(CaseText() as text) | MaxLength(CaseText() as text):
            return _of_literals(condition, text, dialect)
        case _:
            return _comparison(condition, dialect)


def _of_literals(condition: In | Like | MaxLength, text: CaseText, dialect: Dialect) -> "exp.Expr":
    """A condition on a CASE of literals: the CASE of its truth values, which are computed here.

    WHERE CASE WHEN x THEN 'a' END IN ('a'), or LIKE 'a%', keeps rows whose CASE is missing in DuckDB 2.0 if statistics
    are propagated. That optimiser is off in the embedded engine, so this is a second guard.
    """
    from sqlglot import exp  # noqa: PLC0415

    holds = value_test(condition)
    truths = {True: exp.true(), False: exp.false(), None: exp.null()}
    return _case(
        [(when, truths[holds(then)].copy()) for when, then in text.cases], truths[holds(text.otherwise)], dialect
    )


def emit_term(term: Term, dialect: Dialect) -> "exp.Expr":
    """A term in SQL, as a column has it: an integer of 64 bits, a text or a truth value."""
    from sqlglot import exp  # noqa: PLC0415

    if isinstance(term, int | CaseText | AsBoolean):
        return _compared(term, dialect)
    return exp.cast(_compared(term, dialect), "BIGINT", dialect=dialect.name)


def _comparison(condition: In | Between | Like | MaxLength | BeforePin | NotEnded, dialect: Dialect) -> "exp.Expr":
    from sqlglot import exp  # noqa: PLC0415

    column = _compared(condition.column, dialect)
    match condition:
        case BeforePin():
            return exp.LT(this=column, expression=exp.Placeholder())
        case NotEnded():
            return exp.GTE(this=column, expression=exp.Placeholder())
        case Like(_, pattern) if dialect.like_backtracks:  # an exploding running time would reveal a row
            return exp.RegexpLike(this=column, expression=exp.Literal.string(steady_pattern(pattern)))
        case Like(_, pattern):
            return exp.Like(this=column, expression=exp.Literal.string(pattern))
        case MaxLength(_, longest):
            return exp.LTE(this=exp.Anonymous(this="LENGTH", expressions=[column]), expression=_literal(longest))
        case In(_, ()):
            return _unless_missing(column, holds=False)
        case In(_, keys):
            return exp.In(this=column, expressions=[_literal(key) for key in keys])
        case Between(_, None, None):
            return _unless_missing(column, holds=True)
        case Between(_, None, int(high)):
            return exp.LTE(this=column, expression=_literal(high))
        case Between(_, int(low), None):
            return exp.GTE(this=column, expression=_literal(low))
        case Between(_, low, high):
            return exp.Between(this=column, low=exp.convert(low), high=exp.convert(high))


def _unless_missing(column: "exp.Expr", *, holds: bool) -> "exp.Expr":
    """TRUE or FALSE where a term is there, NULL where it is missing."""
    from sqlglot import exp  # noqa: PLC0415

    there = exp.not_(exp.Is(this=column, expression=exp.Null()), copy=False)
    return exp.Case(ifs=[exp.If(this=there, true=exp.convert(holds))])


def _compared(term: Term, dialect: Dialect) -> "exp.Expr":
    """A term as it is compared: a stored column as it is, whatever is computed in wide integers."""
    from sqlglot import exp  # noqa: PLC0415

    match term:
        case int():
            return exp.column(f"c{term}")
        case CaseText(cases, otherwise):
            texts = [(condition, None if text is None else _literal(text)) for condition, text in cases]
            return _case(texts, None if otherwise is None else _literal(otherwise), dialect)
        case AsBoolean(condition):
            return exp.paren(emit_condition(condition, dialect), copy=False)
        case _:
            return _wide(term, dialect)


def _wide(term: Term, dialect: Dialect) -> "exp.Expr":
    """A term of integers, in wide integers."""
    from sqlglot import exp  # noqa: PLC0415

    match term:
        case Constant(value):
            return cast_to_wide(exp.Literal.string(str(value)), dialect)
        case Plus(left, right):
            return exp.paren(exp.Add(this=_wide(left, dialect), expression=_wide(right, dialect)), copy=False)
        case Times(left, right):
            return exp.paren(exp.Mul(this=_wide(left, dialect), expression=_wide(right, dialect)), copy=False)
        case FloorDivide(top, bottom):
            return _quotient(_wide(top, dialect), _wide(bottom, dialect), dialect)
        case Case(cases, otherwise):
            numbers = [(condition, None if value is None else _wide(value, dialect)) for condition, value in cases]
            return _case(numbers, None if otherwise is None else _wide(otherwise, dialect), dialect)
        case DatePart(part, days):
            epoch = exp.cast(exp.Literal.string("1970-01-01"), "DATE", dialect=dialect.name)
            after = exp.cast(_compared(days, dialect), "INT", dialect=dialect.name)
            date = exp.paren(exp.Add(this=epoch, expression=after), copy=False)
            name = exp.var(dialect.weekday if part == "weekday" else part.upper())
            return cast_to_wide(exp.Extract(this=name, expression=date), dialect)
        case _:
            return cast_to_wide(_compared(term, dialect), dialect)


def cast_to_wide(value: "exp.Expr", dialect: Dialect) -> "exp.Expr":
    """A value as an integer of 38 digits, or 127 bits, at least."""
    from sqlglot import exp  # noqa: PLC0415

    return exp.cast(value, dialect.wide, dialect=dialect.name)


def _quotient(top: "exp.Expr", bottom: "exp.Expr", dialect: Dialect) -> "exp.Expr":
    """The quotient, rounded down, of a number that is at least 0 and one that is at least 1."""
    from sqlglot import exp  # noqa: PLC0415

    terms = {"top": top, "bottom": bottom}
    return _template(dialect.quotient, dialect.name).transform(
        lambda node: terms[node.name] if isinstance(node, exp.Column) else node
    )


@lru_cache(None)
def _template(text: str, dialect: str) -> "exp.Expr":
    """A dialect's template for a tree, read once."""
    import sqlglot  # noqa: PLC0415

    return sqlglot.parse_one(text, read=dialect)


def _case(
    cases: "list[tuple[Condition, exp.Expr | None]]", otherwise: "exp.Expr | None", dialect: Dialect
) -> "exp.Expr":
    from sqlglot import exp  # noqa: PLC0415

    ifs = [
        exp.If(this=emit_condition(condition, dialect), true=exp.Null() if value is None else value)
        for condition, value in cases
    ]
    return exp.Case(ifs=ifs, default=otherwise)


def _literal(key: Key) -> "exp.Expr":
    from sqlglot import exp  # noqa: PLC0415

    return exp.convert(key)
