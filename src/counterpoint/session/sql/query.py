"""A query: the request that a SELECT asks, and what is done with the released answer.

Only the request reaches the data. HAVING, ORDER BY and LIMIT are postprocessing of the noisy answer, so they cost
nothing. All that can be refused is refused before anything is charged.

>>> from counterpoint.session.sql.select import sql
>>> query = sql("SELECT COUNT(*) AS n, carrier FROM flights GROUP BY carrier ORDER BY n DESC LIMIT 2")
>>> query.arrange([("AA", 4), ("DL", 1), ("UA", 9)])
[('UA', 9), ('AA', 4)]
>>> query.outputs
(Output(name='n', place=1), Output(name='carrier', place=0))
"""

from collections.abc import Sequence
from dataclasses import dataclass

from counterpoint.errors import InvalidRequest, UnsupportedSQL
from counterpoint.session.sql.arranging import Order, arranged
from counterpoint.session.sql.having import Having, Row
from counterpoint.session.sql.scope import Join
from counterpoint.sources.asking.about import about
from counterpoint.sources.asking.request import Request
from counterpoint.sources.declaring.columns import KeyOrTuple
from counterpoint.sources.source import Prepared, Source


@dataclass(frozen=True, slots=True)
class Output:
    """A column of SELECT: what it is called, and its place in a row of keys and aggregates."""

    name: str
    place: int

    @property
    def part(self) -> str:
        """What a request for several aggregates calls it: its name, if that is a word.

        >>> Output("n", 1).part, Output("COUNT(*)", 1).part
        ('n', 'column1')
        """
        return self.name if self.name.isidentifier() else f"column{self.place}"


@dataclass(frozen=True, slots=True)
class SQLQuery:
    """What a text asks: a request about a source, and how its answer is shown."""

    source: str
    joins: tuple[Join, ...]
    request: Request
    by: tuple[str, ...]
    outputs: tuple[Output, ...]
    having: Having | None
    order: tuple[Order, ...]
    limit: int | None
    units: tuple[str, ...] = ()
    """The columns that it takes for those that identify a unit."""

    @property
    def heads(self) -> tuple[str, ...]:
        """What SELECT calls the columns of GROUP BY."""
        return tuple(output.name for place in range(len(self.by)) for output in self.outputs if output.place == place)

    @property
    def aggregates(self) -> tuple[Output, ...]:
        """The outputs that are aggregates."""
        return tuple(output for output in self.outputs if output.place >= len(self.by))

    def on(self, source: Source) -> Request:
        """The request for this source: about the one in FROM if there are several, seeing those that are joined.

        A source that is alone has no name: FROM may call it as it likes.
        """
        for column in self.units:
            if column != source.unit:
                known = "" if source.unit is None else f": {source.unit}"
                raise InvalidRequest(
                    f"COUNT(DISTINCT {column}) is answered of the column that identifies a unit{known}; how many "
                    "values others have is not"
                )
        if not source.names:
            self._refuse_joins()
            return self.request
        if self.source not in source.names:
            raise InvalidRequest(f"there is no source {self.source!r} for FROM; there are: {', '.join(source.names)}")
        seen = source.seen_from(self.source)
        for join in self.joins:
            if seen.get(join.name) != join.on:
                known = " ".join(f"LEFT JOIN {name} USING ({key})" for name, key in seen.items()) or "no others"
                raise InvalidRequest(
                    f"a row of {self.source} cannot find one of {join.name} by {join.on!r}; it sees {known}"
                )
        return about(self.source, self.request)

    def _refuse_joins(self) -> None:
        for join in self.joins:
            raise InvalidRequest(
                f"this session has one source, so {join.name} cannot be joined: give it several, as in "
                f"Session(Sources({self.source}=..., {join.name}=..., unit='person'), within=...)"
            )

    def check(self, prepared: Prepared) -> None:
        """Refuse a HAVING that compares a key with a literal of another type; the keys are public."""
        for compared in self.having.literals() if self.having is not None and prepared.names else ():
            place = compared.place
            if place < len(self.by) and any(compared.is_unlike(_values(key)[place]) for key in prepared.names or ()):
                raise UnsupportedSQL(
                    "comparison of texts with numbers", f"HAVING, {self.by[place]}", "write texts in 'single quotes'"
                )

    def arrange(self, rows: Sequence[Row]) -> list[Row]:
        """The rows of the answer, keys and then aggregates, that are shown, in their order."""
        return arranged(rows, self.having, self.order, self.limit)


def _values(key: KeyOrTuple) -> tuple[bool | int | str, ...]:
    return key if isinstance(key, tuple) else (key,)
