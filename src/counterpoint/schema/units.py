"""What a table protects, as its custodian declares it, and the guarantee in words that need no mathematics.

Protected is a unit with a cap on its rows, or each row by itself. A unit is a value of one column, or a combination of
values of several, as in ["hospital", "patient"] where each hospital numbers its own patients. A row in which one of
them is missing has no unit.

A silent cap would change what is measured (of 336,776 flights of 4,043 planes, 4,043 would count), and a row is not a
person: both must be the custodian's own words.

>>> protected("person", 3), protected(["hospital", "patient"], 3), protected(each_row, None)
(('person', 3), (('hospital', 'patient'), 3), (None, 1))
>>> protected("person", None)
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: say how many rows of one 'person' count, as in rows_per_unit=10: further rows ...

All sentences of the guarantee are here: who is protected, against what, what is public, what is capped. Every kind of
source says the same things in the same order, and none of them depends on data.

>>> print(of_table("patient", 2, "add-or-remove").paragraph)
Protected is everything about one patient (user level). Whatever analysts see would be nearly as
likely if all rows of that patient were missing; the budget of the session says how nearly. This
holds against analysts who know all other rows, choose every request after the answers before it,
and share what they learn. It does not hide what the data say about people in general. Public are
the names and types of the columns and what is declared about them: bounds, steps and keys. The
number of rows is not. At most 2 rows of each patient count: if there are more, a rule that looks at
the rows of that patient alone chooses between them, and the others are left out. Rows without a
patient are left out, too. A value beyond its declared bounds counts as the nearest bound, and one
that cannot be read, or is not among the declared keys, as missing.
"""

from collections.abc import Sequence
from textwrap import fill
from typing import NamedTuple, TypeAlias

from counterpoint.errors import InvalidParameter, shown
from counterpoint.numbers.exact import whole

IdentifiedBy: TypeAlias = str | tuple[str, ...] | None
"""The column, or the columns together, that identify a unit; None where every row is one."""
MOST_COLUMNS = 10
"""The most columns that identify a unit together."""


class EachRow:
    """The type of `each_row`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "each_row"


each_row = EachRow()
"""Every row is protected by itself: a person with several rows is protected in each, not in all of them together."""


def protected(unit: object, rows_per_unit: object) -> tuple[IdentifiedBy, int]:
    """The columns that identify units (None: each row is one), and how many rows of a unit are kept."""
    if isinstance(unit, EachRow):
        if rows_per_unit not in (None, 1):
            raise InvalidParameter("with unit=each_row every row is its own unit: leave out rows_per_unit")
        return None, 1
    if unit is None:
        raise InvalidParameter(
            "say what is protected: unit='person', the column that identifies people, with rows_per_unit=..., or "
            "unit=cp.each_row, which protects every row by itself"
        )
    named = _named(unit)
    if rows_per_unit is None:
        raise InvalidParameter(
            f"say how many rows of one {unit_words(named)!r} count, as in rows_per_unit=10: further rows of it are "
            "dropped, and counts move by that much"
        )
    return named, whole(rows_per_unit, 1, "rows_per_unit")


def _named(unit: object) -> str | tuple[str, ...]:
    """The name of one column, or the names of several; a list of one is that one."""
    if isinstance(unit, str):
        return str.__str__(unit)
    if not isinstance(unit, Sequence) or not all(isinstance(name, str) for name in unit):
        raise InvalidParameter(
            f"unit must be the name of a column, a list of names, as in ['hospital', 'patient'], or each_row, not a "
            f"{type(unit).__name__}"
        )
    names = tuple(map(str.__str__, unit))
    if not 1 <= len(set(names)) == len(names) <= MOST_COLUMNS:
        raise InvalidParameter(f"a unit is identified by 1 to {MOST_COLUMNS} different columns, not by {shown(unit)}")
    return names if len(names) > 1 else names[0]


def unit_columns(unit: IdentifiedBy) -> tuple[str, ...]:
    """The columns that identify a unit.

    >>> unit_columns("person"), unit_columns(("hospital", "patient")), unit_columns(None)
    (('person',), ('hospital', 'patient'), ())
    """
    return () if unit is None else (unit,) if isinstance(unit, str) else unit


def unit_words(unit: str | tuple[str, ...]) -> str:
    """A unit as a sentence names it.

    >>> unit_words("person"), unit_words(("country", "hospital", "patient"))
    ('person', 'combination of country, hospital and patient')
    """
    return unit if isinstance(unit, str) else f"combination of {', '.join(unit[:-1])} and {unit[-1]}"


def one_column(unit: object, what: str) -> str:
    """The name of the column of a source whose unit is one column, or `InvalidParameter` with what would work.

    >>> one_column(["hospital", "patient"], "a stream")
    Traceback (most recent call last):
    ...
    counterpoint.errors.InvalidParameter: unit must be the name of one column of a stream, such as 'user', not ...
    """
    if isinstance(unit, str):
        return unit
    raise InvalidParameter(
        f"unit must be the name of one column of {what}, such as 'user', not a {type(unit).__name__}; to identify "
        "units by several, put them into one that tells them apart, as json.dumps([hospital, patient]) does"
    )


_WIDTH = 100
_AGAINST = (
    "This holds against analysts who know all other {}, choose every request after the answers before it, and share "
    "what they learn. It does not hide what the data say about people in general."
)
_DECLARED = "what is declared about them: bounds, steps and keys"
_VALUES = (
    "A value beyond its declared bounds counts as the nearest bound, and one that cannot be read, or is not among the "
    "declared keys, as missing."
)
_UNTOLD = "No answer and no error says which."


class Guarantee(NamedTuple):
    """The sentences of one source: what is protected, as if what, what is public, what is capped."""

    protected: str
    otherwise: str
    others: str
    public: str
    capped: str

    @property
    def paragraph(self) -> str:
        """All sentences as one paragraph, in lines."""
        likely = f"Whatever analysts see would be nearly as likely if {self.otherwise}; the budget of the session says"
        against = _AGAINST.format(self.others)
        return fill(f"{self.protected} {likely} how nearly. {against} {self.public} {self.capped} {_VALUES}", _WIDTH)


def of_table(identified_by: IdentifiedBy, rows_per_unit: int, neighbours: str) -> Guarantee:
    """The guarantee of a table.

    >>> of_table(("hospital", "patient"), 2, "add-or-remove").otherwise
    'all rows of that combination of hospital and patient were missing'
    """
    public = f"Public are the names and types of the columns and {_DECLARED}. The number of rows is not."
    if identified_by is None:
        otherwise = "that row were missing" if neighbours == "add-or-remove" else "that row were another one"
        return Guarantee(_alone("row", "row"), otherwise, "rows", public, "Every row counts.")
    unit = unit_words(identified_by)
    missing = f"all rows of that {unit} were missing"
    otherwise = missing if neighbours == "add-or-remove" else f"all rows of that {unit} were others"
    capped = (
        f"At most {_counted(rows_per_unit, 'row')} of each {unit} {'counts' if rows_per_unit == 1 else 'count'}: if "
        f"there are more, a rule that looks at the rows of that {unit} alone chooses between them, and the others are "
        f"left out. Rows without a {' or without a '.join(unit_columns(identified_by))} are left out, too."
    )
    return Guarantee(_whole(unit), otherwise, "rows", public, capped)


def of_stream(unit: str | None, per_unit: int | None, neighbours: str, apart: int | None = None) -> Guarantee:
    """The guarantee of a stream; its items of a unit are this far `apart`, if that is declared.

    >>> of_stream("user", 3, "replace").otherwise, of_stream(None, None, "add-or-remove").otherwise
    ('the items of that user had other values or were empty', 'that item were empty')
    """
    public = _arriving("items")
    if unit is None:
        otherwise = (
            "that item were empty" if neighbours == "add-or-remove" else "that item had another value or were empty"
        )
        return Guarantee(_alone("item", "event"), otherwise, "items", public, "Every item counts.")
    empty = "were empty" if neighbours == "add-or-remove" else "had other values or were empty"
    first = "first item" if per_unit == 1 else f"first {per_unit} items"
    near = "" if apart is None else f" items less than {_counted(apart, 'place')} after one that counts,"
    capped = (
        f"The {first} of each {unit} {'counts' if per_unit == 1 else 'count'}; later ones,{near} and items without a "
        f"{unit}, stay in their places as empty ones. {_UNTOLD}"
    )
    return Guarantee(_whole(unit), f"the items of that {unit} {empty}", "items", public, capped)


def of_live_table(
    unit: str | None, rows_per_unit: int | None, updates_per_unit: int | None, *, event: bool
) -> Guarantee:
    """The guarantee of a live table, for a unit or, at event level, for one update.

    >>> of_live_table("person", 2, None, event=False).otherwise
    'all updates of that person did nothing'
    """
    protected = _alone("update", "event") if event or unit is None else _whole(unit)
    otherwise = "that update did nothing" if event or unit is None else f"all updates of that {unit} did nothing"
    if unit is None:
        return Guarantee(protected, otherwise, "updates", _arriving("updates"), "Every update counts.")
    most = (
        "" if updates_per_unit is None else f" Of its updates the first {updates_per_unit} count, over its whole life."
    )
    capped = (
        f"At any time a {unit} has at most {_counted(rows_per_unit or 1, 'row')}; a row that finds no room is dropped."
        f"{most} No answer and no error says whether an update did anything."
    )
    return Guarantee(protected, otherwise, "updates", _arriving("updates"), capped)


def _whole(unit: str) -> str:
    return f"Protected is everything about one {unit} (user level)."


def _alone(thing: str, level: str) -> str:
    return (
        f"Protected is each {thing} by itself ({level} level): a person with several {thing}s is protected in each of "
        "them, and not in all of them together."
    )


def _arriving(things: str) -> str:
    return (
        f"Public are how many {things} there are, when and in which order they arrive, the ids under which they are "
        f"sent, and {_DECLARED}."
    )


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
