"""The updates of a live table as they are stored: (True, key, fields...) puts a row, (False, key) removes one.

Fields are converted by the rules of a table's columns, which are total over the types that a column accepts (see
`records`). The names and the types of what is sent are public, so a record with wrong ones is refused, whatever the
table holds. A unit or a key that is missing (None) makes an update that does nothing, as None itself does. A row is
named as a unit is: by the key of `unit_keys`, as a text.

>>> from counterpoint.sources.declaring.columns import number
>>> form = UpdateForm(Fields.of({"age": number(0, 120)}), "person", "row")
>>> form.put({"person": "ann", "row": 1, "age": 200.3}), form.put({"person": None, "row": 1}), form.put(None)
(((True, '1', 120), 'ann'), (None, None), (None, None))
>>> form.removal({"person": "ann", "row": 1})
((False, '1'), 'ann')
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.sources.declaring.columns import Key
from counterpoint.sources.declaring.unit_keys import UnitType, checked_key
from counterpoint.sources.declaring.units import one_column
from counterpoint.sources.streams.log import Item, Unit
from counterpoint.sources.streams.records import Fields
from counterpoint.sources.streams.values import reader

Readers = Sequence[tuple[str, Callable[[object], Key | None]]]
"""The columns of a row by their names, each with the function that brings its values to stored form."""

NOTHING: Item = (None, None)
"""An update that does nothing, and belongs to no unit."""


class UpdateForm(Value, frozen=True):
    """The declared columns of a live table, and the names of its unit (None: none) and of its key."""

    fields: Fields
    unit: str | None
    key: str

    def __post_init__(self) -> None:
        """Check the names."""
        if self.unit is not None:
            one_column(self.unit, "a live table")
        if not isinstance(self.key, str):
            raise InvalidParameter(f"key must be the name of a column, such as 'row', not {self.key!r}")
        if self.unit == self.key:
            raise InvalidParameter(
                f"unit and key are both {self.key!r}, but a key tells the rows of one unit apart: name two columns"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """What names a row: its unit, if it has one, and its key."""
        return (self.key,) if self.unit is None else (self.unit, self.key)

    def puts(self, records: Iterable[object], of: UnitType = "text") -> list[Item]:
        """The updates that put these rows: all of them, or `InvalidRequest` if one has a wrong form."""
        known = dict.fromkeys((*self.names, *self.fields.names))
        readers = [(named.name, reader(named)) for named in self.fields.declared.columns]
        return [
            NOTHING if record is None else self._put(self._checked(record, known), readers, of) for record in records
        ]

    def put(self, record: object) -> Item:
        """The update that puts this row; a column that is left out is missing."""
        return self.puts([record])[0]

    def _put(self, sent: Mapping[str, object], readers: Readers, of: UnitType) -> Item:
        """The column of the unit is read from its key: all rows of a unit have one value there."""
        owner, key = self._owner_and_key(sent, of)
        row = tuple([read(owner if name == self.unit else sent.get(name)) for name, read in readers])
        return NOTHING if key is None else ((True, key, *row), owner)

    def stored(self, of: UnitType, named: object, *converted: Any) -> Item:
        """The update that puts a row whose columns, and behind them its unit, are converted already.

        >>> from counterpoint.sources.declaring.columns import number
        >>> UpdateForm(Fields.of({"age": number(0, 120)}), "person", "row").stored("text", 1, 41, "ann")
        ((True, '1', 41), 'ann')
        """
        *row, unit = converted
        owner = None if self.unit is None else checked_key(self.unit, unit, of)
        key = checked_key(self.key, named)
        is_missing = key is None or (owner is None and self.unit is not None)
        return NOTHING if is_missing else ((True, key, *row), owner)

    def removals(self, records: Iterable[object], of: UnitType = "text") -> list[Item]:
        """The updates that remove these rows: all of them, or `InvalidRequest` if one has a wrong form."""
        return [self.removal(record, of) for record in records]

    def removal(self, record: object, of: UnitType = "text") -> Item:
        """The update that removes the row of this unit with this key."""
        if record is None:
            return NOTHING
        owner, key = self._owner_and_key(self._checked(record, dict.fromkeys(self.names)), of)
        return NOTHING if key is None else ((False, key), owner)

    def _checked(self, record: object, known: Collection[str]) -> Mapping[str, object]:
        """The record, if it names its row and has no unknown columns."""
        if not isinstance(record, Mapping):
            example = ", ".join(f"{name!r}: ..." for name in known)
            raise InvalidRequest(f"a row of this live table is {{{example}}}, not a {type(record).__name__}")
        for name in self.names:
            if name not in record:
                what = "unit" if name == self.unit else "key"
                raise InvalidRequest(f"each update of this live table needs {name!r}, which names the row's {what}")
        for name in record:
            if name not in known:
                raise InvalidRequest(f"there is no {str(name)[:40]!r} to give here; there are: {', '.join(known)}")
        return record

    def _owner_and_key(self, record: Mapping[str, object], of: UnitType) -> tuple[Unit | None, Unit | None]:
        """The unit and the key of a row; both None if one of them is missing."""
        owner = None if self.unit is None else checked_key(self.unit, record[self.unit], of)
        key = checked_key(self.key, record[self.key])
        missing = key is None or (owner is None and self.unit is not None)
        return (None, None) if missing else (owner, key)
