"""What is declared about one version of a data set, as the record has it, and which declarations may follow it.

The versions of a data set are about the same units (theory, Versions): neighbours differ in the rows of one unit in all
versions. So what a unit is, how values name it, what a row is and which data sets are neighbours stay what they were.
Columns, keys, bounds and caps may change: each launch has the sensitivity of the version that it sees.

>>> first = DeclaredData("table", ("person",), ("whole",), "add-or-remove", "age: a number from 0 to 120 in steps of 1")
>>> from msgspec.structs import replace
>>> why_not_next(first, replace(first, text="age: a number from 0 to 130 in steps of 1"))
>>> why_not_next(first, replace(first, unit=("household",)))
"the unit would be 'household', and it is 'person'"
"""

from collections.abc import Iterator, Sequence

from counterpoint.encoding import Plain, Tagged, Value


class DeclaredData(Tagged, Value, frozen=True):
    """What is declared about the data of one version; public.

    `what` says what a row is one of: a table, a stream, a live table. `unit` names the columns that identify a unit
    (none: each row is its own), and `unit_types` how their values do. `text` is the declaration for people, `facts` is
    what requests are prepared from; `members` are the sources, where there are several.
    """

    what: str
    unit: tuple[str, ...]
    unit_types: tuple[str, ...]
    neighbours: str
    text: str
    facts: Plain = None
    members: tuple[tuple[str, "DeclaredData"], ...] = ()


def why_not_next(before: DeclaredData, after: DeclaredData) -> str | None:
    """Why data declared like `after` cannot be a version behind data declared like `before`; None if they can."""
    return next(reasons_against(before, after), None)


def reasons_against(before: DeclaredData, after: DeclaredData) -> Iterator[str]:
    """Every change of the declaration that no later version may make."""
    if after.what != before.what:
        yield f"a row would be one of a {after.what}, and it is one of a {before.what}"
    if after.unit != before.unit:
        yield f"the unit would be {_unit(after.unit)}, and it is {_unit(before.unit)}"
    elif after.unit_types != before.unit_types:
        yield (
            f"units would be named by {_types(after.unit_types)}, and they are named by {_types(before.unit_types)}: "
            "one unit would have two names"
        )
    if after.neighbours != before.neighbours:
        yield f"neighbours would be declared by {after.neighbours!r}, and they are by {before.neighbours!r}"
    members = dict(before.members)
    for name, member in after.members:
        if name in members:
            yield from (f"{name}: {why}" for why in reasons_against(members[name], member))


def _unit(columns: Sequence[str]) -> str:
    return " with ".join(map(repr, columns)) or "each row"


def _types(types: Sequence[str]) -> str:
    return " and ".join(f"{one} numbers" if one == "whole" else f"{one}s" for one in types) or "nothing"
