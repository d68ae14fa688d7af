"""Conditions and terms in SQL: one sqlglot tree for each, in an engine's dialect.

Arithmetic is done in wide integers, which every intermediate result fits (`quantities.LARGEST`); what is grouped or
added up is cast back to 64 bits. The only division is of a number that is at least 0 by one that is at least 1, so that
every engine rounds it the same way. Texts and truth values are compared as they are.

>>> from counterpoint.schema.expressions.tree import Between
>>> from counterpoint.engines.duckdb import DUCKDB
>>> from counterpoint.engines.postgres import POSTGRES
>>> from counterpoint.schema.expressions.tree import Constant, Plus, FloorDivide
>>> print(written_condition(Not(Between(Plus(0, Constant(7)), 3, None)), DUCKDB, total=False).sql(DUCKDB.name))
NOT COALESCE((CAST(c0 AS INT128) + CAST('7' AS INT128)) >= 3, FALSE)
>>> print(written_term(FloorDivide(0, 1), POSTGRES).sql(POSTGRES.name))
CAST(DIV(CAST(c0 AS DECIMAL), CAST(c1 AS DECIMAL)) AS BIGINT)
"""

from functools import lru_cache
from typing import TYPE_CHECKING

from counterpoint.engines.dialect import Dialect
from counterpoint.schema.columns import Key
from counterpoint.schema.expressions.tree import (
    And,
    AsBoolean,
    BeforePin,
    Between,
    Case,
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


def written_condition(condition: Condition, dialect: Dialect, *, total: bool) -> "exp.Expr":
    """A condition in SQL. Under a NOT it must be `total`: an unknown (NULL) must become FALSE before it is negated.

    Elsewhere AND, OR and WHERE treat unknown as false (they are monotone), and the engine can use the bare comparison
    to skip rows.
    """
    from sqlglot import exp  # noqa: PLC0415

    if isinstance(condition, And):
        parts = [written_condition(part, dialect, total=total) for part in condition.parts]
        return exp.and_(*parts, copy=False) if parts else exp.true()
    if isinstance(condition, Or):
        parts = [written_condition(part, dialect, total=total) for part in condition.parts]
        return exp.or_(*parts, copy=False) if parts else exp.false()
    if isinstance(condition, Not):
        return exp.not_(written_condition(condition.part, dialect, total=True), copy=False)
    if isinstance(condition, IsNull):
        return exp.Is(this=_compared(condition.column, dialect), expression=exp.Null())
    bare = _comparison(condition, dialect)
    # DuckDB 2.0 lets rows pass WHERE CASE ... THEN 'text' END IN ('text') whose CASE is missing
    chosen_text = isinstance(condition, In) and isinstance(condition.column, CaseText)
    return exp.Coalesce(this=bare, expressions=[exp.false()]) if total or chosen_text else bare


def written_term(term: Term, dialect: Dialect) -> "exp.Expr":
    """A term in SQL, as a column has it: an integer of 64 bits, a text or a truth value."""
    from sqlglot import exp  # noqa: PLC0415

    if isinstance(term, int | CaseText | AsBoolean):
        return _compared(term, dialect)
    return exp.cast(_compared(term, dialect), "BIGINT", dialect=dialect.name)


def _comparison(
    condition: In | Between | Like | MaxLength | Equal | BeforePin | NotEnded, dialect: Dialect
) -> "exp.Expr":
    from sqlglot import exp  # noqa: PLC0415

    if isinstance(condition, Equal):
        return exp.EQ(this=_compared(condition.left, dialect), expression=_compared(condition.right, dialect))
    column = _compared(condition.column, dialect)
    if isinstance(condition, BeforePin):
        return exp.LT(this=column, expression=exp.Placeholder())
    if isinstance(condition, NotEnded):
        return exp.GTE(this=column, expression=exp.Placeholder())
    if isinstance(condition, Like):
        if dialect.like_backtracks:  # an exploding running time would reveal a row
            return exp.RegexpLike(this=column, expression=exp.Literal.string(steady_pattern(condition.pattern)))
        return exp.Like(this=column, expression=exp.Literal.string(condition.pattern))
    if isinstance(condition, MaxLength):
        return exp.LTE(this=exp.Anonymous(this="LENGTH", expressions=[column]), expression=_literal(condition.longest))
    if isinstance(condition, In):
        keys = [_literal(key) for key in condition.keys]
        return exp.In(this=column, expressions=keys) if keys else exp.false()
    low, high = condition.low, condition.high
    if low is not None and high is not None:
        return exp.Between(this=column, low=_literal(low), high=_literal(high))
    if low is None and high is None:
        return exp.not_(exp.Is(this=column, expression=exp.Null()))
    if low is None:
        return exp.LTE(this=column, expression=_literal(high))  # type: ignore[arg-type]
    return exp.GTE(this=column, expression=_literal(low))


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
            return written_condition(condition, dialect, total=True)
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
        exp.If(this=written_condition(condition, dialect, total=False), true=exp.Null() if value is None else value)
        for condition, value in cases
    ]
    return exp.Case(ifs=ifs, default=otherwise)


def _literal(key: Key) -> "exp.Expr":
    from sqlglot import exp  # noqa: PLC0415

    return exp.convert(key)
