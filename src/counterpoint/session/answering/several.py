"""Answers to several questions that were asked at once: by name, and with `by=` a table with a value column for each.

>>> from fractions import Fraction
>>> from counterpoint import Laplace
>>> from counterpoint.session.answering.origin import Origin
>>> from counterpoint.session.answering.scalars import IntAnswer
>>> from counterpoint.sources.source import Prepared
>>> count = Prepared(None, 1, 1, None, Fraction(1))
>>> rows, late = (IntAnswer(number, Origin(Laplace(1), count, number)) for number in (60, 2))
>>> both = RecordAnswer({"rows": rows, "late": late}, rows._origin)
>>> both["rows"], both
(60 +- 3, rows  rows_error  late  late_error
  60        +- 3     2        +- 3  late mostly noise)
"""

from collections.abc import ItemsView, KeysView, Mapping, ValuesView
from typing import Any

from counterpoint.numbers import Number
from counterpoint.session.answering.answer_table import AnswerTable
from counterpoint.session.answering.choosing import SURE
from counterpoint.session.answering.origin import Origin
from counterpoint.session.answering.tables import Cell, Label, TableAnswer, Tabular, one_cell


class RecordAnswer(Tabular):
    """The answers to several questions by their names; a table of one row.

    It reads as a mapping (`answer["late"]`, `answer.items()`, `dict(answer)`); iterating gives its row.
    """

    def __init__(self, cells: Mapping[str, Cell], origin: Origin) -> None:
        self._cells = dict(cells)
        self._origin = origin

    def __getitem__(self, name: str) -> Cell:
        return self._cells[name]

    def __len__(self) -> int:
        return len(self._cells)

    def __contains__(self, name: object) -> bool:
        return name in self._cells

    def keys(self) -> KeysView[str]:
        """The names, in the order of the request."""
        return self._cells.keys()

    def values(self) -> ValuesView[Cell]:
        """The answers, in the order of the names."""
        return self._cells.values()

    def items(self) -> ItemsView[str, Cell]:
        """Each name with its answer."""
        return self._cells.items()

    def suppress(self, signal_to_noise: Number) -> "RecordAnswer":
        """The same answers, with None in place of each that is less than `signal_to_noise` times its error at 95 %."""
        kept = {name: one_cell(cell, self._origin).suppress(signal_to_noise)[0] for name, cell in self.items()}
        return RecordAnswer(kept, self._origin)

    def table(self, probability: Number = SURE) -> AnswerTable:
        """The table as data, with one row and no keys."""
        parts = {name: one_cell(cell, self._origin) for name, cell in self.items()}
        return beside({}, parts, probability, self.made_up)


class SeveralAnswer(Tabular):
    """The answers to several questions by key: a table with a value column, and a column of errors, for each.

    `answer["UA"]` has the answers for one key by their names, `answer.part("late")` those to one question by key.
    Iterating gives rows.
    """

    def __init__(self, parts: Mapping[str, TableAnswer], origin: Origin) -> None:
        self._parts = dict(parts)
        self._first = next(iter(self._parts.values()))
        self._origin = origin

    def __getitem__(self, key: Label) -> RecordAnswer:
        return RecordAnswer({name: part[key] for name, part in self._parts.items()}, self._origin)

    def __len__(self) -> int:
        return len(self._first)

    def __contains__(self, key: object) -> bool:
        return key in self._first

    def keys(self) -> KeysView[Label]:
        """The keys, in the order of the request."""
        return self._first.keys()

    def values(self) -> list[RecordAnswer]:
        """The answers by their names, in the order of the keys."""
        return [self[key] for key in self.keys()]

    def items(self) -> list[tuple[Label, RecordAnswer]]:
        """Each key with its answers."""
        return [(key, self[key]) for key in self.keys()]

    def part(self, name: str) -> TableAnswer:
        """The answers to one of the questions, by key."""
        return self._parts[name]

    def suppress(self, signal_to_noise: Number) -> "SeveralAnswer":
        """The same table, with None for every value less than `signal_to_noise` times its error at 95 %."""
        return SeveralAnswer({name: part.suppress(signal_to_noise) for name, part in self._parts.items()}, self._origin)

    def table(self, probability: Number = SURE) -> AnswerTable:
        """The table as data: keys, and each value beside its error."""
        keys = self._first.table(probability).keys
        return beside(keys, self._parts, probability, self.made_up)


def beside(
    keys: Mapping[str, Any], parts: Mapping[str, TableAnswer], probability: Number, made_up: bool
) -> AnswerTable:
    """The tables of several questions as one: the errors of `late` are in `late_error`, and notes name the column."""
    tables = {name: part.table(probability) for name, part in parts.items()}
    values = {name: table.values["value"] for name, table in tables.items()}
    errors = {
        name: (f"{name}_{head}", column) for name, table in tables.items() for head, column in [table.errors["value"]]
    }
    noted = zip(
        *([f"{name} {note}" if note else "" for note in table.notes] for name, table in tables.items()), strict=True
    )
    notes = [", ".join(filter(None, row)) for row in noted]
    measured = ", ".join(f"{name} {table.measured}" for name, table in tables.items() if table.measured)
    return AnswerTable(keys, values, errors, notes, measured or None, made_up)
