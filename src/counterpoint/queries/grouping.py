"""Grouping rows by one or several columns: the arguments `by` and `keys`, the cells they make, and the names of these.

A key is a value of the column or, for several columns, a tuple with one value for each. Keys are given or declared,
never read from the data; those of several declared columns are all combinations, the last column's value changing
fastest. A row is in at most one cell, since the keys are distinct as stored; it is in none if one of its values is
missing or not mentioned.

>>> read_by(["carrier", "month"]), read_by(["carrier"])
(('carrier', 'month'), 'carrier')
>>> in_one_cell([(3, 1)], cells=5)
((3, 1, 0, 0), (0, 0, 3, 1))
"""

from collections.abc import Iterable, Sequence
from itertools import product
from math import prod
from typing import Annotated, TypeAlias, TypeVar

from counterpoint.errors import InvalidRequest
from counterpoint.numbers.parameters import Parameter, Read
from counterpoint.queries.plan import ByKeys
from counterpoint.queries.sensitivity import Corner
from counterpoint.schema.arguments import check_texts, distinct, listed
from counterpoint.schema.columns import KeyOrTuple, Number
from counterpoint.schema.declaration import Declaration
from counterpoint.schema.times import Date

T = TypeVar("T")

By: TypeAlias = str | tuple[str, ...]
"""The name of the column that rows are grouped by, or the names of several."""
GivenBy: TypeAlias = str | Iterable[str]

MOST_COLUMNS = 10
"""The most columns that one request groups by."""


def read_by(by: object, what: str = "by") -> By:
    """The names of one or several columns: the text itself for one, also in a list, and a tuple for several.

    >>> read_by([])
    Traceback (most recent call last):
    ...
    counterpoint.errors.InvalidRequest: by names 1 to 10 different columns, as in by=['carrier', 'month']
    """
    if isinstance(by, str):
        return by
    names = listed(by, what) or ()
    if any(not isinstance(name, str) for name in names):
        raise InvalidRequest(f"{what} must be the name of a column or a list of names, as in by=['carrier', 'month']")
    if not 1 <= len(names) <= MOST_COLUMNS or len(set(names)) < len(names):
        raise InvalidRequest(f"{what} names 1 to {MOST_COLUMNS} different columns, as in by=['carrier', 'month']")
    return names[0] if len(names) == 1 else names


Names = Annotated[Parameter[By, GivenBy], Read(read_by)]
"""One or several columns."""
NamesOrNone = Annotated[Parameter[By | None, GivenBy | None], Read(read_by)]
"""One or several columns, or None."""
DistinctKeys = Annotated[tuple[KeyOrTuple, ...] | None, Read(lambda keys, _: distinct(keys))]
"""Keys, all different, if there are any."""


def check_groups(by: By | None, keys: Sequence[KeyOrTuple] | None) -> None:
    """Check the names, and that every key has one value for each of the columns; keys need a column to group by.

    >>> check_groups(("carrier", "month"), ["UA"])
    Traceback (most recent call last):
    ...
    counterpoint.errors.InvalidRequest: each of the keys must be a tuple of 2 values, one for each column
    """
    names = columns_of(by)
    for name in names:
        check_texts(column=name)
    if keys is None:
        return
    if by is None:
        raise InvalidRequest("keys were given without a column to group by: give by=... as well")
    if len(names) == 1 and any(isinstance(key, tuple) for key in keys):
        raise InvalidRequest("the keys of one column are its values, as in keys=['CA', 'NY'], not tuples")
    if len(names) > 1 and any(not isinstance(key, tuple) or len(key) != len(names) for key in keys):
        raise InvalidRequest(f"each of the keys must be a tuple of {len(names)} values, one for each column")


def columns_of(by: By | None) -> tuple[str, ...]:
    """The names, as a tuple.

    >>> columns_of("carrier"), columns_of(None)
    (('carrier',), ())
    """
    return () if by is None else (by,) if isinstance(by, str) else by


def by_keys(declared: Declaration, by: By, keys: Sequence[KeyOrTuple] | None) -> ByKeys:
    """The cells of these keys, or of all combinations of the declared ones: at most as many as are declared.

    >>> from counterpoint.schema.columns import boolean, category
    >>> from counterpoint.schema.declaration import Named
    >>> flights = Declaration(None, 1, "replace", (Named("late", boolean()), Named("month", category(range(1, 13)))))
    >>> by_keys(flights, ("month", "late"), [(3, True)])
    ByKeys(columns=(1, 0), keys=((3, True),), complete=(False, False))
    """
    columns = [declared.column(name) for name in columns_of(by)]
    if keys is None:
        asked = _declared_keys(declared, by)
    else:
        asked = tuple(
            tuple(column.key(value) for column, value in zip(columns, _values(key), strict=True)) for key in keys
        )
        if len(set(asked)) < len(asked):  # a row would be in two cells
            raise InvalidRequest("keys must be distinct: two of these are the same value of the column")
    complete = tuple(
        column.known_keys is not None and set(column.known_keys) <= {key[place] for key in asked}
        for place, column in enumerate(columns)
    )
    return ByKeys(tuple(declared.find(name) for name in columns_of(by)), asked, complete)


def group_names(declared: Declaration, by: By, keys: Sequence[KeyOrTuple] | None) -> tuple[KeyOrTuple, ...]:
    """The names of the cells, as the user spells them: values of one column, tuples of several."""
    if keys is not None:
        return tuple(keys)
    asked = _declared_keys(declared, by)
    return tuple(key[0] for key in asked) if isinstance(by, str) else asked


def in_one_cell(points: Iterable[Corner], cells: int) -> tuple[Corner, ...]:
    """The corners of a row that puts one of these points into one cell and 0 into the others.

    Two corners differ in at most two cells, and all cells are alike, so two cells give the same bounds as more.
    """
    given = list(points)
    if cells == 1:
        return tuple(given)
    zero = (0,) * len(given[0])
    return (*(point + zero for point in given), *(zero + point for point in given))


def cell_by_cell(values: Sequence[T], each: int) -> list[tuple[T, ...]]:
    """Values that were listed cell by cell, `each` of them for every cell.

    >>> cell_by_cell((1, 2, 3, 4), each=2)
    [(1, 2), (3, 4)]
    """
    return [tuple(values[start : start + each]) for start in range(0, len(values), each)]


def _declared_keys(declared: Declaration, by: By) -> tuple[tuple[bool | int | str, ...], ...]:
    known = []
    for name in columns_of(by):
        column = declared.column(name)
        declared_keys = column.known_keys
        if declared_keys is None:
            if isinstance(column, Number | Date):
                coarser = (
                    f"MONTH({name})"
                    if isinstance(column, Date)
                    else f"CASE WHEN {name} < 18 THEN 'low' ELSE 'high' END"
                )
                raise InvalidRequest(
                    f"{name} is {column.describe()}, and no keys are declared: give those that you want as keys=[...], "
                    f"or cut it into bins, as in histogram({name!r}, edges=[...]), or group by an expression of it, "
                    f"such as by={coarser!r}"
                )
            raise InvalidRequest(
                f"the keys of {name} are not declared: select them privately first, as in keys=session.ask(keys"
                f"({name!r}), loss=ApproxDP(0.5, 1e-6)); or give keys=[...], or declare it as category([...])"
            )
        known.append(declared_keys)
    cells = prod(map(len, known))
    if cells > declared.widest:
        raise InvalidRequest(
            f"the declared keys have {cells} combinations, and a request has at most {declared.widest} cells: give "
            "those that you want as keys=[...], or group by fewer columns; a custodian declares more by most_cells"
        )
    return tuple(product(*known))


def _values(key: KeyOrTuple) -> tuple[bool | int | str, ...]:
    return key if isinstance(key, tuple) else (key,)
