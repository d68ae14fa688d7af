"""The tables of a query and the names of its columns: FROM one source, and LEFT JOINs of what its rows see.

A joined source has one row for each key (see `Sources`), and a row of the source in FROM that finds none keeps its
place, with missing values: that is a LEFT JOIN. Its columns are written with its name or alias, and become the dotted
names of requests. Names are compared letter by letter, capital letters too.

>>> from counterpoint.session.sql.reading import parsed
>>> tree = parsed("SELECT AVG(p.age) FROM visits AS v LEFT JOIN people AS p ON v.person = p.person GROUP BY v.page")
>>> scope = Scope.read(tree)
>>> scope.source, scope.joins
('visits', (Join(name='people', on='person'),))
>>> scope.column(tree.expressions[0].this), scope.column(tree.args["group"].expressions[0])
('people.age', 'page')
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from counterpoint.session.sql.reading import SHAPE, only, unsupported

if TYPE_CHECKING:
    from sqlglot import exp

_LEFT = "write LEFT JOIN name USING (key): a row that finds nothing keeps its place, and the columns are missing there"


@dataclass(frozen=True, slots=True)
class Join:
    """A source that is joined, and the column whose values find its rows."""

    name: str
    on: str


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
            raise unsupported("query without FROM", select, SHAPE)
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
            raise unsupported("join but LEFT JOIN", join, _LEFT)
        name, called = _table(only(join, "this", "side", "kind", "on", "using").this)
        if called in dict(self.called):
            raise unsupported("two tables of one name", join, "give one of them another name, as in people AS p")
        wider = Scope(self.source, self.joins, (*self.called, (called, name)))
        return Scope(self.source, (*self.joins, Join(name, wider._key(join, name))), wider.called)

    def _key(self, join: "exp.Expr", name: str) -> str:
        """The column on both sides of a join: of the source in FROM, and of the joined one."""
        using, on = list(join.args.get("using") or ()), join.args.get("on")
        if len(using) == 1 and on is None and using[0].key == "identifier":
            return str(only(using[0], "this", "quoted").name)
        if not using and on is not None and on.key == "eq":
            one, other = (self.column(side) for side in (only(on, "this", "expression").this, on.expression))
            for left, right in ((one, other), (other, one)):
                if f"{name}.{left}" == right:
                    return left
        raise unsupported("join on anything but one key", join, f"{_LEFT}, where both call the key the same")

    def column(self, node: "exp.Expr") -> str:
        """The name of a column as requests write it: of a joined source, with that source's name and a dot."""
        if node.key != "column" or node.this.key != "identifier":
            raise unsupported("expression where a column is needed", node, "name a column")
        only(only(node, "this", "table").this, "this", "quoted")
        of = node.args.get("table")
        if of is None:
            return str(node.name)
        if of.name not in dict(self.called):
            raise unsupported(f"table {of.name!r} in FROM", node, f"it has {', '.join(dict(self.called))}; {_LEFT}")
        source = dict(self.called)[of.name]
        return str(node.name) if of.name == self.called[0][0] else f"{source}.{node.name}"

    def unaliased(self, tree: "exp.Expr") -> "exp.Expr":
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
        raise unsupported("table but a source by its name", node, "name the source, as in FROM flights")
    only(only(node, "this", "alias").this, "this", "quoted")
    alias = node.args.get("alias")
    if alias is None:
        return str(node.name), str(node.name)
    return str(node.name), str(only(only(alias, "this").this, "this", "quoted").name)
