"""A look at what a refresh would make the next version of a data set, before a custodian confirms it.

The configuration and the rows are read anew, compared with the version that is served, and let go of again; nothing is
recorded and nothing is kept. The result has the custodian's report on the new rows: it is for custodians alone. What
changes in the declaration is public once the version is served.

>>> from counterpoint.schema.columns import category, number
>>> first, second = (
...     Declaration("id", 1, "replace", (Named("age", number(0, high)), Named("state", category([*"ABCDE", last]))))
...     for high, last in ((9, "F"), (99, "G"))
... )
>>> for change in changes(_of_table(first), _of_table(second)):
...     print(change.name, "->", change.after)
column age -> a number from 0 to 99 in steps of 1
column state -> one of 'A', 'B', 'C', 'D', 'E' and 1 more, with 'G', without 'F'
"""

from collections.abc import Mapping
from contextlib import closing, suppress
from typing import NamedTuple

from counterpoint.errors import NotAllowed
from counterpoint.schema.columns import Category
from counterpoint.schema.declaration import NEIGHBOURS, Declaration, Named
from counterpoint.schema.units import unit_words
from counterpoint.schema.versions import DeclaredData, reasons_against
from counterpoint.service.data_set import DataSet, SeenVersion, next_seen
from counterpoint.sources.report import Report
from counterpoint.sources.table import Table, TableFacts

UNIT = "what is protected"
CAP = "rows of one unit that count"
NEIGHBOURING = "neighbouring data"


class DeclarationChange(NamedTuple):
    """What is declared anew: before and after; empty where it was not declared, or is no longer."""

    name: str
    before: str
    after: str


class RefreshPreview(NamedTuple):
    """What a refresh would do: what changes in the declaration, why it would be refused, and how the rows fit."""

    seen: SeenVersion
    label: str
    changes: list[DeclarationChange]
    reasons: list[str]
    """Why this is no next version; empty if it can be served."""
    report: Report | None
    """Raw data, for the custodian alone; None where there is none."""


def preview(data_set: DataSet) -> RefreshPreview:
    """Read the configuration and the rows as they are now, and compare them with what is served."""
    session = data_set.session()
    binding = data_set.next_binding()
    source = binding.source()
    before = session.versions[-1].declared
    assert before is not None  # the whole session sees everything of its versions
    if not isinstance(source, Table):
        why = source.why_not_refreshed
        reasons = list(reasons_against(before, source.declared())) if why is None else [why]
        said = changes(spoken(before), spoken(source.declared()))
        return RefreshPreview(next_seen(source, session.data_version), binding.label, said, reasons, None)
    with closing(source):
        after = source.declared()
        return RefreshPreview(
            next_seen(source, session.data_version),
            binding.label,
            changes(spoken(before), spoken(after)),
            list(reasons_against(before, after)),
            report_of(source),
        )


def report_of(source: object) -> Report | None:
    """The custodian's report on a table, if it could be counted."""
    with suppress(NotAllowed):
        return source.check() if isinstance(source, Table) else None
    return None


class DeclaredLine(NamedTuple):
    """A line of a declaration in words, and all of it: the words may leave keys out."""

    words: str
    whole: object


def spoken(declared: DeclaredData) -> dict[str, DeclaredLine]:
    """What is declared, by its name: of a table what is protected and each column, of other data their description."""
    if isinstance(declared.facts, TableFacts):
        return _of_table(declared.facts.declaration)
    return {"": DeclaredLine(" ".join(declared.text.split()), declared.text)}


def _of_table(declared: Declaration) -> dict[str, DeclaredLine]:
    unit = "every row by itself" if declared.unit is None else f"each {unit_words(declared.unit)}"
    heads = {UNIT: unit, CAP: f"at most {declared.rows_per_unit}", NEIGHBOURING: NEIGHBOURS[declared.neighbours]}
    lines = {name: DeclaredLine(words, words) for name, words in heads.items()}
    return lines | {f"column {named.name}": DeclaredLine(_holds(named), named) for named in declared.columns}


def _holds(named: Named) -> str:
    words = named.column.describe()
    if named.expression is not None:
        return f"{words}, computed as {named.expression}"
    return words if named.declared else f"{words} (undeclared)"


def changes(before: Mapping[str, DeclaredLine], after: Mapping[str, DeclaredLine]) -> list[DeclarationChange]:
    """What is said otherwise, in the order of what is said now; then what is said no more."""
    found = [_change(name, before.get(name), now) for name, now in after.items()]
    gone = (DeclarationChange(name, said.words, "") for name, said in before.items() if name not in after)
    return [change for change in found if change is not None] + list(gone)


def _change(name: str, before: DeclaredLine | None, after: DeclaredLine) -> DeclarationChange | None:
    if before is None:
        return DeclarationChange(name, "", after.words)
    if before.whole == after.whole:
        return None
    if before.words != after.words:
        return DeclarationChange(name, before.words, after.words)
    return DeclarationChange(name, before.words, f"{after.words}{_other_keys(before.whole, after.whole)}")


def _other_keys(before: object, after: object) -> str:
    """Which keys were added and which are gone, of categories that look alike by their first keys."""
    old, new = (
        one.column.keys if isinstance(one, Named) and isinstance(one.column, Category) else ()
        for one in (before, after)
    )
    added, gone = ([repr(key) for key in keys if key not in others] for keys, others in ((new, old), (old, new)))
    parts = [f"with {', '.join(added[:_MOST_KEYS])}"] if added else []
    parts += [f"without {', '.join(gone[:_MOST_KEYS])}"] if gone else []
    return ", " + ", ".join(parts) if parts else ", in another order"


_MOST_KEYS = 12
"""How many keys a change names."""
