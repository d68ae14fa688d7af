"""Parses the text of a query into one checked SELECT, and resolves the names of its tables and columns.

The dialect is DuckDB's. sqlglot parses the text; nothing of it is run. Comments, second statements and texts that are
too long or too deep are refused before they are parsed, and so are the words that begin what this SQL does not have, by
name. The modules that read the tree refuse every node that they do not know, and with `only` every argument of a node
that they do not read: an argument that was overlooked would change the meaning of the query.

A query has one source in FROM and LEFT JOINs of sources with one row for each key (see `Sources`). `Scope` turns the
aliases of a query into the dotted names of requests, and a condition into the text that the request keeps on record.
That text is what is answered: it is parsed as `where=` is, today and by later readers of the record. So each text is
read back as it is written, and a query whose tree does not come back is refused.

>>> tree = parsed("SELECT AVG(p.age) FROM visits AS v LEFT JOIN people AS p ON v.person = p.person GROUP BY v.page")
>>> scope = Scope.read(tree)
>>> scope.source, scope.joins
('visits', (Join(name='people', on=(('person', '=', 'person'),)),))
>>> scope.column(tree.expressions[0].this), scope.column(tree.args["group"].expressions[0])
('people.age', 'page')
>>> parsed("SELECT COUNT(*) FROM flights; DROP TABLE flights")
Traceback (most recent call last):
...
counterpoint.errors.UnsupportedSQL: Counterpoint's SQL does not support a second statement (at character 29, ';'): ...
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from counterpoint.errors import InvalidRequest, UnsupportedSQL
from counterpoint.schema.columns import readable
from counterpoint.schema.expressions.syntax import ALLOWED, DEEPEST, LONGEST, MOST_TOKENS

if TYPE_CHECKING:
    from sqlglot import exp

DIALECT = "duckdb"

SHAPE = "write SELECT keys and aggregates FROM a source, and WHERE, GROUP BY, HAVING, ORDER BY and LIMIT where needed"
_ASK_TWICE = "ask one SELECT at a time"
_SET = "ask two queries, and combine their answers in Python"
_NO_SUBQUERY = "ask the inner query first, and put what it answers into the text of the next one"
_WINDOW = "compute it in Python from the answer"
_STILL = "the answer depends on the rows and the noise alone: write a date as 'YYYY-MM-DD'"
_LITERAL = "write the value itself"

_REFUSED = {
    "WITH": ("WITH (common table expressions)", _NO_SUBQUERY),
    "UNION": ("UNION", _SET),
    "INTERSECT": ("INTERSECT", _SET),
    "EXCEPT": ("EXCEPT", _SET),
    "OVER": ("OVER (window functions)", _WINDOW),
    "WINDOW": ("WINDOW (window functions)", _WINDOW),
    "QUALIFY": ("QUALIFY (window functions)", _WINDOW),
    "EXISTS": ("EXISTS (subqueries)", _NO_SUBQUERY),
    "OFFSET": ("OFFSET", "leave it out, and skip rows of the answer in Python"),
    "FETCH": ("FETCH", "write LIMIT"),
    "INTO": ("INTO", "the answer is a table in Python: leave it out"),
    "PIVOT": ("PIVOT", "write GROUP BY, and pivot the answer in Python"),
    "UNPIVOT": ("UNPIVOT", "write GROUP BY, and pivot the answer in Python"),
    "TABLE_SAMPLE": ("TABLESAMPLE", "leave it out: all rows are counted, with noise"),
    "LATERAL": ("LATERAL", _NO_SUBQUERY),
    "CURRENT_DATE": ("CURRENT_DATE", _STILL),
    "CURRENT_DATETIME": ("CURRENT_DATETIME", _STILL),
    "CURRENT_TIME": ("CURRENT_TIME", _STILL),
    "CURRENT_TIMESTAMP": ("CURRENT_TIMESTAMP", _STILL),
    "CURRENT_USER": ("CURRENT_USER", _LITERAL),
    "PLACEHOLDER": ("parameters", _LITERAL),
    "PARAMETER": ("parameters", _LITERAL),
    "CUBE": ("CUBE", "ask one query for each grouping"),
    "ROLLUP": ("ROLLUP", "ask one query for each grouping"),
    "GROUPING_SETS": ("GROUPING SETS", "ask one query for each grouping"),
}
_ARGUMENTS = {
    "db": "schema",
    "when": "AT",
    "locks": "FOR UPDATE",
    "sample": "SAMPLE",
    "expressions": "second argument",
    "count": "second argument",
    "limit_options": "percent",
    "columns": "names of columns",
}
"""What arguments of a node are called in a text, where the parser calls them otherwise."""
_OPENS = {
    "L_PAREN": 1,
    "L_BRACKET": 1,
    "L_BRACE": 1,
    "CASE": 1,
    "R_PAREN": -1,
    "R_BRACKET": -1,
    "R_BRACE": -1,
    "END": -1,
}
_PREFIXES = {"NOT", "DASH", "PLUS", "TILDE"}


def parsed(text: object) -> "exp.Expr":
    """The syntax tree of the one SELECT that a text is."""
    if not isinstance(text, str) or len(text) > LONGEST:
        raise UnsupportedSQL(f"queries other than a text of at most {LONGEST} characters", "", SHAPE)
    readable(text)
    import sqlglot  # noqa: PLC0415 - takes a tenth of a second, and only SQL and filters need it

    try:
        tokens = sqlglot.tokenize(text, read=DIALECT)
    except Exception:  # every failure of the tokenizer is the same refusal
        raise UnsupportedSQL("these words", "a quote may be missing its other half", SHAPE) from None
    if tokens and tokens[-1].token_type.name == "SEMICOLON" and not tokens[-1].comments:
        tokens.pop()
    _check_tokens(text, tokens)
    try:
        found = sqlglot.parse(text, read=DIALECT)
    except Exception:  # also RecursionError
        raise UnsupportedSQL("this sentence", "it cannot be parsed in DuckDB's dialect", SHAPE) from None
    trees = [tree for tree in found if tree is not None]
    if len(trees) != 1 or trees[0].key != "select":
        raise UnsupportedSQL("statements other than SELECT", "", SHAPE)
    return trees[0]


def _check_tokens(text: str, tokens: list[Any]) -> None:
    if not 0 < len(tokens) <= MOST_TOKENS:
        raise UnsupportedSQL(f"queries of more than {MOST_TOKENS} words, or of none", f"there are {len(tokens)}", SHAPE)
    depth = run = 0
    for number, token in enumerate(tokens):
        kind, at = token.token_type.name, _spot(text, token)
        if token.comments:
            raise UnsupportedSQL("comments", f"near {at.removeprefix('at ')}", "leave them out")
        if number == 0 and kind not in ("SELECT", *_REFUSED):
            raise UnsupportedSQL("statements other than SELECT", at, SHAPE)
        if number > 0 and kind == "SELECT":
            raise UnsupportedSQL("subqueries", at, _NO_SUBQUERY)
        if kind == "SEMICOLON":
            raise UnsupportedSQL("a second statement", at, _ASK_TWICE)
        if kind in _REFUSED:
            found, works = _REFUSED[kind]
            raise UnsupportedSQL(found, at, works)
        depth += _OPENS.get(kind, 0)
        run = run + 1 if kind in _PREFIXES else 0
        if max(depth, run) > DEEPEST:
            raise UnsupportedSQL(f"nesting deeper than {DEEPEST}", at, "ask for less at a time")


def _spot(text: str, token: Any) -> str:
    before = text[: token.start]
    line, character = before.count("\n") + 1, token.start - (before.rfind("\n") + 1) + 1
    return f"at {_place(line, character)}, {token.text[:40]!r}"


def _place(line: int, character: int) -> str:
    return f"character {character}" if line == 1 else f"line {line}, character {character}"


def unsupported(found: str, node: "exp.Expr", works: str) -> UnsupportedSQL:
    """A refusal of a node, with its place in the text and its first characters."""
    begins = [(part.meta["line"], part.meta["col"] - (part.meta["end"] - part.meta["start"])) for part in _leaves(node)]
    at = f"at {_place(*min(begins))}, " if begins else ""
    return UnsupportedSQL(found, f"{at}{written(node)[:60]!r}", works)


def _leaves(node: "exp.Expr") -> "Iterator[exp.Expr]":
    """The parts of a node whose places in the text the parser noted."""
    return (part for part in node.walk() if "start" in part.meta)


def only(node: "exp.Expr", *known: str) -> "exp.Expr":
    """The node itself, if it has no other arguments than the known ones."""
    for name, value in node.args.items():
        if value and name not in known:
            word = _ARGUMENTS.get(name, name.strip("_").replace("_", " ").upper())
            raise unsupported(f"{word} with {node.key.upper()}", node, "leave it out")
    return node


def function_name(node: "exp.Expr") -> str:
    """How an error names a node that is a function, or something like it."""
    return str(node.name).upper() if node.key == "anonymous" else written(node).partition("(")[0] or node.key.upper()


def written(node: "exp.Expr") -> str:
    """The text of a node, as this module writes it."""
    from sqlglot import ErrorLevel  # noqa: PLC0415 - as above

    try:
        return node.sql(dialect=DIALECT, unsupported_level=ErrorLevel.IGNORE)
    except Exception:  # also RecursionError
        raise InvalidRequest(
            "an expression of this query is too deep to be written out: ask for less at a time"
        ) from None


_SIGNS = "eq neq lt lte gt gte and or not is in between like boolean"
_VALUES = "column identifier literal null paren neg add sub mul div case if coalesce abs"
_KNOWN = {*_SIGNS.split(), *_VALUES.split(), *["year", "quarter", "month", "day", "dayofweekiso", "hour"]}
"""The nodes of the language of `where`, besides CLAMP and DATE. WEEKDAY is left out: DuckDB's counts from Sunday."""


def _as_requests_write(node: "exp.Expr") -> "exp.Expr":
    """DATE '2024-02-29' is '2024-02-29' in a request, EXTRACT(month FROM day) is MONTH(day), and IF is CASE."""
    from sqlglot import exp  # noqa: PLC0415 - as above

    parts = {
        **{"YEAR": exp.Year, "QUARTER": exp.Quarter, "MONTH": exp.Month, "DAY": exp.Day},
        **{"ISODOW": exp.DayOfWeekIso, "HOUR": exp.Hour},
    }
    if node.key == "extract" and node.name.upper() in parts:
        return parts[node.name.upper()](this=only(node, "this", "expression").expression)
    if node.key == "if" and node.arg_key != "ifs":
        return exp.Case(ifs=[exp.If(this=node.this, true=node.args["true"])], default=node.args.get("false"))
    if node.key == "date":  # which the parser's own writer spells as a CAST
        return exp.Anonymous(this="DATE", expressions=[only(node, "this").this])
    dated = node.key == "cast" and node.this.key == "literal" and node.this.is_string
    return node.this if dated and node.args["to"].is_type("date") else node


def reads_back(tree: "exp.Expr", text: str) -> bool:
    """Whether a text parses to this tree, apart from quotes that a name does not need.

    >>> both = parsed("SELECT COUNT(*) FROM t WHERE (a OR b) AND c").args["where"].this
    >>> reads_back(both, '("a" OR b) AND c'), reads_back(both, "a OR b AND c")
    (True, False)
    """
    import sqlglot  # noqa: PLC0415 - as above
    from sqlglot import exp  # noqa: PLC0415

    def unquoted(node: "exp.Expr") -> "exp.Expr":
        return exp.to_identifier(node.name, quoted=False) if node.key == "identifier" else node

    try:
        again = sqlglot.parse_one(text, read=DIALECT, into=exp.Condition)
        return bool(again.transform(_as_requests_write).transform(unquoted) == tree.transform(unquoted))
    except Exception:  # also RecursionError
        return False


_COMPARED = {"eq": ("=", "="), "gte": (">=", "<="), "lt": ("<", ">"), "lte": ("<=", ">="), "gt": (">", "<")}
"""Comparisons of a join, and what each is when its sides change places."""

_LEFT = "write LEFT JOIN name USING (key): a row that finds nothing keeps its place, and the columns are missing there"


@dataclass(frozen=True, slots=True)
class Join:
    """A source that is joined, and how its rows are found: comparisons of a column in FROM with one of its own."""

    name: str
    on: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """The source in FROM, what is joined, and what each is called in the text."""

    source: str
    joins: tuple[Join, ...]
    called: tuple[tuple[str, str], ...]
    """The names by which columns are qualified, each with the source that it stands for."""

    @staticmethod
    def read(select: "exp.Expr") -> "Scope":
        """The tables of a SELECT."""
        if not select.args.get("from_"):
            raise unsupported("queries without FROM", select, SHAPE)
        source, called = _table(only(select.args["from_"], "this").this)
        scope = Scope(source, (), ((called, source),))
        for join in select.args.get("joins") or ():
            scope = scope._joined(join)
        return scope

    def _joined(self, join: "exp.Expr") -> "Scope":
        if (
            join.args.get("side") != "LEFT"
            or join.args.get("method")
            or join.args.get("kind") not in (None, "", "OUTER")
        ):
            raise unsupported("joins other than LEFT JOIN", join, _LEFT)
        name, called = _table(only(join, "this", "side", "kind", "on", "using").this)
        if called in dict(self.called):
            raise unsupported("two tables of one name", join, "give one of them another name, as in people AS p")
        wider = Scope(self.source, self.joins, (*self.called, (called, name)))
        compared = tuple(wider._comparisons(join, name))
        if not compared:
            raise unsupported("joins on nothing", join, _LEFT)
        return Scope(self.source, (*self.joins, Join(name, compared)), wider.called)

    def _comparisons(self, join: "exp.Expr", name: str) -> "Iterator[tuple[str, str, str]]":
        """How rows of the joined source are found: equal columns, or ON with comparisons that all hold."""
        for column in join.args.get("using") or ():
            same = str(only(column, "this", "quoted").name)
            yield same, "=", same
        on = join.args.get("on")
        for compared in () if on is None else on.flatten() if on.key == "and" else (on,):
            sides = only(compared, "this", "expression") if compared.key in _COMPARED else None
            own, other = ("", "") if sides is None else (self.column(sides.this), self.column(sides.expression))
            sign, turned = _COMPARED.get(compared.key, ("", ""))
            if own.startswith(f"{name}."):
                own, sign, other = other, turned, own
            if "." in own or not other.startswith(f"{name}."):
                raise unsupported("joins on anything other than columns of both sides", join, _LEFT)
            yield own, sign, other.removeprefix(f"{name}.")

    def column(self, node: "exp.Expr") -> str:
        """The name of a column as requests write it: of a joined source, with that source's name and a dot."""
        if node.key != "column" or node.this.key != "identifier":
            raise unsupported("an expression where a column is needed", node, "name a column")
        only(only(node, "this", "table").this, "this", "quoted")
        of = node.args.get("table")
        if of is None:
            return str(node.name)
        if of.name not in dict(self.called):
            raise unsupported(
                f"columns of {of.name!r}, which is not in FROM", node, f"it has {', '.join(dict(self.called))}; {_LEFT}"
            )
        source = dict(self.called)[of.name]
        return str(node.name) if of.name == self.called[0][0] else f"{source}.{node.name}"

    def text(self, node: "exp.Expr") -> str:
        """A condition or an expression as a request writes it; its nodes must be in the language of `where`."""
        tree = self._unaliased(node).transform(_as_requests_write)
        for part in tree.walk():
            if part.key not in _KNOWN and not (part.key == "anonymous" and str(part.this).upper() in ("CLAMP", "DATE")):
                raise unsupported(f"{function_name(part)} in an expression", part, ALLOWED.replace("WEEKDAY", "ISODOW"))
        text = written(tree)
        if not reads_back(tree, text):
            raise unsupported("this expression, which changes when it is written out", node, "write it more plainly")
        return text

    def value(self, node: "exp.Expr") -> str:
        """What a request calls a value of a row: the name of a column, or the text of an expression over columns."""
        return self.column(node) if node.key == "column" else self.text(node)

    def _unaliased(self, tree: "exp.Expr") -> "exp.Expr":
        """A copy of a tree whose columns have the names that requests write."""
        from sqlglot import exp  # noqa: PLC0415 - see `reading`

        def renamed(node: "exp.Expr") -> "exp.Expr":
            if node.key != "column":
                return node
            name = self.column(node)
            joined = name != node.name
            return exp.column(node.this.copy(), table=exp.to_identifier(name.partition(".")[0]) if joined else None)

        return tree.transform(renamed)


def _table(node: "exp.Expr") -> tuple[str, str]:
    """The name of a source in the text, and what the query calls it."""
    if node.key != "table" or node.this.key != "identifier" or not node.name.isidentifier():
        raise unsupported("tables other than a source by its name", node, "name the source, as in FROM flights")
    only(only(node, "this", "alias").this, "this", "quoted")
    alias = node.args.get("alias")
    if alias is None:
        return str(node.name), str(node.name)
    return str(node.name), str(only(only(alias, "this").this, "this", "quoted").name)
