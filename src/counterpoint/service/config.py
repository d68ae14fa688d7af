r"""The TOML configuration of a service: the ledger, its keys, and the data sets with their declarations.

Every field is known and checked, so a misspelled bound or budget is an error and never left out. Paths are relative to
the file. A table must name what is protected: one without a unit is refused. `open_registry` opens what is configured.

>>> settings = read('''
... ledger = "ledger.db"
... [tables.people]
... source = "people.parquet"
... unit = "person_id"
... rows_per_unit = 1
... budget = { measure = "ApproxDP", epsilon = 2, delta = 1e-6 }
... columns.age = { type = "number", low = 0, high = 100 }
... ''')
>>> settings.tables["people"].columns["age"].declared(), settings.tables["people"].rule()
(Number(low=0, high=100), Filter(ApproxDP(2, 1e-6)))
>>> read('[tables.people]\nrow_per_unit = 1')
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: the configuration: Object contains unknown field `row_per_unit` - at `$.tables...`

>>> import tempfile
>>> from counterpoint.service.config import read
>>> registry = open_registry(read("[streams.visits]\nbudget = { measure = 'PureDP', epsilon = 1 }", tempfile.mkdtemp()))
>>> registry.names
('visits',)
>>> registry.close()
"""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

import counterpoint as cp
from counterpoint.composition.rule import Rule
from counterpoint.datasets.tables import STATES
from counterpoint.errors import InvalidParameter
from counterpoint.ledger.location import Durable
from counterpoint.ledger.remote_witness import is_address
from counterpoint.ledger.sealing import MasterKey
from counterpoint.queries.source import Source
from counterpoint.schema.columns import Column
from counterpoint.schema.declaration import Derived
from counterpoint.schema.unit_keys import UnitType
from counterpoint.service.data_set import NOT_KEPT, Binding
from counterpoint.service.registry import Registry
from counterpoint.wire.requests import decode_loss

DEMO = "people"
"""The data set of `--demo`: made-up people."""

_Number = int | float | str


class ConfigFields(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A part of the file: its fields and no others."""


class ColumnFields(ConfigFields, frozen=True, tag_field="type"):
    """The declaration of a column."""

    def declared(self) -> Column | Derived:
        """As the library has it."""
        raise NotImplementedError


class NumberFields(ColumnFields, frozen=True, tag="number"):
    """A number between public bounds."""

    low: _Number
    high: _Number
    step: _Number = 1
    units: str | None = None

    def declared(self) -> Column:
        """As `cp.number` makes it."""
        return cp.number(self.low, self.high, self.step, units=self.units)


class CategoryFields(ColumnFields, frozen=True, tag="category"):
    """One of a public list of keys."""

    keys: list[int | str]

    def declared(self) -> Column:
        """As `cp.category` makes it."""
        return cp.category(self.keys)


class DateFields(ColumnFields, frozen=True, tag="date"):
    """A day between two public days, YYYY-MM-DD; `format` says how texts are written, as in "%d/%m/%Y"."""

    low: str
    high: str
    format: str | None = None

    def declared(self) -> Column:
        """As `cp.date` makes it."""
        return cp.date(self.low, self.high, format=self.format)


class TimestampFields(ColumnFields, frozen=True, tag="timestamp"):
    """An instant between two public ones, on the wall clock of a zone."""

    low: str
    high: str
    zone: str
    format: str | None = None

    def declared(self) -> Column:
        """As `cp.timestamp` makes it."""
        return cp.timestamp(self.low, self.high, self.zone, format=self.format)


class DerivedFields(ColumnFields, frozen=True, tag="derived"):
    """A column that is computed of others of its table."""

    expression: str
    low: _Number | None = None
    high: _Number | None = None
    step: _Number | None = None

    def declared(self) -> Derived:
        """As `cp.derived` makes it."""
        return cp.derived(self.expression, self.low, self.high, self.step)


class TextFields(ColumnFields, frozen=True, tag="text"):
    """A text."""

    def declared(self) -> Column:
        """As `cp.text` makes it."""
        return cp.text()


class BooleanFields(ColumnFields, frozen=True, tag="boolean"):
    """True or false."""

    def declared(self) -> Column:
        """As `cp.boolean` makes it."""
        return cp.boolean()


class WholeFields(ColumnFields, frozen=True, tag="whole"):
    """A whole number without bounds."""

    def declared(self) -> Column:
        """As `cp.whole` makes it."""
        return cp.whole()


AnyColumn = NumberFields | CategoryFields | DateFields | TimestampFields | TextFields | BooleanFields | WholeFields
"""What a stream or a live table has."""
TableColumn = AnyColumn | DerivedFields


class DataFields(ConfigFields, frozen=True, kw_only=True):
    """A data set: its budget, and what makes its source."""

    budget: dict[str, Any]
    """A loss as the wire says it, such as { measure = "PureDP", epsilon = 1 }."""
    by: str | None = None
    """The theorem of the filter, where an ApproxDP budget has several."""
    second_budget: bool = False
    """Open this data set although another one has the same rows: what both lose adds up. It stays on record."""
    keep: bool = False
    """Keep the rows of the version before at each refresh, so that its handles answer until the service stops."""

    def rule(self) -> Rule:
        """The filter of the budget."""
        return cp.Filter(decode_loss(self.budget), by=self.by)  # type: ignore[arg-type]  # checked by Filter

    @property
    def label(self) -> str:
        """What the rows are read from, as the record of versions names it."""
        return ""

    def bind(self, key: Callable[[], bytes | None], folder: Path) -> Source:
        """The source. `key` makes the keyed fingerprint by which a ledger knows a table again."""
        raise NotImplementedError

    def bind_earlier(self, key: Callable[[], bytes | None], folder: Path) -> Sequence[Source]:
        """The data of earlier versions, whose handles answer on after a start."""
        return ()


class EarlierFields(ConfigFields, frozen=True, kw_only=True):
    """The rows of an earlier version of a table; what is not declared here is as in the table."""

    source: str
    relation: str | None = None
    rows_per_unit: int | None = None
    columns: dict[str, TableColumn] | None = None


class TableFields(DataFields, frozen=True, kw_only=True):
    """A table: a file beside the configuration, or a relation of a PostgreSQL database."""

    source: str
    unit: str | list[str]
    rows_per_unit: int
    columns: dict[str, TableColumn] = {}
    neighbours: str = "add-or-remove"
    relation: str | None = None
    unit_type: UnitType | list[UnitType] | None = None
    earlier: list[EarlierFields] = []

    @property
    def label(self) -> str:
        """The name of the file; of a database that of the relation, as a URL has a password."""
        return self.relation or ("" if is_database(self.source) else Path(self.source).name)

    def bind(self, key: Callable[[], bytes | None], folder: Path) -> cp.Table:
        """Read the rows; a file that is not there is an error of the configuration."""
        in_database = is_database(self.source)
        path = folder / self.source
        if not in_database and not path.exists():
            raise InvalidParameter(f"there is no file {str(path)!r} to read a table from")
        return cp.Table(
            self.source if in_database else path,
            unit=self.unit,
            rows_per_unit=self.rows_per_unit,
            columns={name: column.declared() for name, column in self.columns.items()},
            neighbours=self.neighbours,
            key=key(),
            relation=self.relation,
            unit_type=self.unit_type,
        )

    def bind_earlier(self, key: Callable[[], bytes | None], folder: Path) -> Sequence[Source]:
        """The earlier versions, each with what it declared."""
        return [self._as_earlier(one).bind(key, folder) for one in self.earlier]

    def _as_earlier(self, one: EarlierFields) -> "TableFields":
        rows = self.rows_per_unit if one.rows_per_unit is None else one.rows_per_unit
        columns = self.columns if one.columns is None else one.columns
        return msgspec.structs.replace(
            self, source=one.source, relation=one.relation, rows_per_unit=rows, columns=columns
        )


def is_database(source: str) -> bool:
    """Whether a source is a database, and not a file.

    >>> is_database("postgresql://db.example/people"), is_database("people.csv")
    (True, False)
    """
    return source.startswith(("postgresql://", "postgres://"))


class StreamFields(DataFields, frozen=True, kw_only=True):
    """A stream that producers append to: numbers up to a bound, or records of declared fields."""

    bound: int = 1
    fields: dict[str, AnyColumn] | None = None
    unit: str | None = None
    per_unit: int | None = None
    apart: int | None = None
    neighbours: str = "replace"
    unit_type: UnitType | None = None

    def bind(self, key: Callable[[], bytes | None], folder: Path) -> Source:
        """An empty stream: the ledger keeps what has arrived."""
        fields = None if self.fields is None else {name: one.declared() for name, one in self.fields.items()}
        return cp.Stream(
            self.bound,
            fields=fields,
            unit=self.unit,
            per_unit=self.per_unit,
            apart=self.apart,
            neighbours=self.neighbours,
            unit_type=self.unit_type,
        )


class LiveFields(DataFields, frozen=True, kw_only=True):
    """A live table, whose rows producers put and remove: each has a key, and belongs to a unit."""

    key: str
    columns: dict[str, AnyColumn]
    unit: str | None = None
    rows_per_unit: int | None = None
    protects: str = "unit"
    updates_per_unit: int | None = None
    unit_type: UnitType | None = None

    def bind(self, key: Callable[[], bytes | None], folder: Path) -> Source:
        """An empty table: the ledger keeps what has arrived."""
        return cp.LiveTable(
            self.unit,
            self.rows_per_unit,
            key=self.key,
            columns={name: column.declared() for name, column in self.columns.items()},
            protects=self.protects,
            updates_per_unit=self.updates_per_unit,
            unit_type=self.unit_type,
        )


class Settings(ConfigFields, frozen=True):
    """A configuration, as it was read."""

    ledger: str = "ledger.db"
    """A path, or a postgresql:// URL."""
    key_file: str | None = None
    """The master key of the ledger."""
    data_key_file: str | None = None
    """The key of the fingerprints of tables; beside an SQLite ledger one is made."""
    witness: str | None = None
    """A path, or the https:// address of `counterpoint witness`."""
    witness_key_file: str | None = None
    """The key that a witness at an address gave."""
    backups: str | None = None
    """The folder that POST /v1/backups writes to; without one there are none."""
    limits: dict[str, float] = {}
    """What a principal may do, by the names of `limits.Limits`."""
    tables: dict[str, TableFields] = {}
    streams: dict[str, StreamFields] = {}
    live: dict[str, LiveFields] = {}
    folder: str = "."
    """What paths are relative to; set when the file is read."""
    file: str | None = None
    """The file itself; set when it is read."""
    beside: dict[str, str] = {}
    """The tables that the command line names as NAME=FILE; set by the command."""

    @property
    def data_sets(self) -> dict[str, DataFields]:
        """All of them, by name."""
        found: dict[str, DataFields] = {}
        for kind in (self.tables, self.streams, self.live):
            if twice := found.keys() & kind.keys():
                raise InvalidParameter(f"two data sets are called {min(twice)!r}; give each a name of its own")
            found |= kind
        return found

    def table_of(self, file: str, name: str | None = None) -> TableFields:
        """The declaration of the table of this name, or the one that reads this file, for this file.

        >>> Settings(tables={"people": demo()}).table_of("next.parquet").source.endswith("next.parquet")
        True
        """
        where = file if is_database(file) else str(Path(file).absolute())
        own = [table for table in self.tables.values() if str(Path(self.folder).absolute() / table.source) == where]
        found = list(self.tables.values()) if not own and len(self.tables) == 1 else own
        if name is not None:
            found = [table for known, table in self.tables.items() if known == name]
        if len(found) != 1:
            raise InvalidParameter(
                f"the configuration does not say which table {file!r} is: choose one with --name, among "
                f"{', '.join(self.tables) or 'none'}"
            )
        return msgspec.structs.replace(found[0], source=where)

    def declared_now(self, name: str) -> DataFields:
        """The data set as its file declares it now."""
        if name in self.beside:
            return declared_beside(self.beside[name])[1]
        now = self if self.file is None else read_file(self.file)
        return now.data_sets.get(name, self.data_sets[name])

    def binding(self, name: str, fields: DataFields) -> Binding:
        """How a data set is bound that is declared like this."""
        source = partial(fields.bind, partial(self.fingerprint_key, name), Path(self.folder))
        if fields.keep and self.place.in_postgres:
            raise InvalidParameter(NOT_KEPT)
        earlier = partial(fields.bind_earlier, partial(self.fingerprint_key, name), Path(self.folder))
        return Binding(source, fields.rule(), fields.label, fields.second_budget, fields.keep, earlier)

    @property
    def place(self) -> Durable:
        """Where the ledger is."""
        in_postgres = Durable(self.ledger).in_postgres
        path = self.ledger if in_postgres else self._path(self.ledger)
        assert path is not None
        remote = self.witness is not None and is_address(self.witness)
        return Durable(
            path,
            key_file=self._path(self.key_file),
            witness=self.witness if remote else self._path(self.witness),
            witness_key_file=self._path(self.witness_key_file),
        )

    @property
    def backup_folder(self) -> Path | None:
        """Where backups go."""
        return None if self.backups is None else Path(self.folder) / self.backups

    def fingerprint_key(self, name: str) -> bytes:
        """The secret of a data set's fingerprint. It is not the master key: a rotation must leave data recognised."""
        path = self._path(self.data_key_file)
        if path is None and self.place.in_postgres:
            raise InvalidParameter(
                'with a ledger in PostgreSQL the configuration needs a line at its top, data_key_file = "FILE", with '
                "the same file for every worker: make it with counterpoint ledger key FILE"
            )
        file = f"{os.path.realpath(self.place.place)}.data-key" if path is None else path
        found = MasterKey.from_file(file) if path is not None or os.path.exists(file) else MasterKey.create(file)
        return found.derived(f"fingerprint of {name}")

    def _path(self, given: str | None) -> str | None:
        return None if given is None else str(Path(self.folder) / given)


Read = TypeVar("Read")


def read(text: str, folder: str | os.PathLike[str] = ".") -> Settings:
    """Read the text of a configuration."""
    found = _decoded(text, Settings, "the configuration")
    return msgspec.structs.replace(found, folder=os.fspath(folder))


def read_file(path: str | os.PathLike[str]) -> Settings:
    """The settings in a file."""
    found = read(_text(Path(path)), Path(path).absolute().parent)
    return msgspec.structs.replace(found, file=os.fspath(Path(path).absolute()))


def declared_beside(said: str) -> tuple[str, TableFields]:
    """The table of `NAME=FILE`, whose declaration is in the file of that name with the ending .toml."""
    name, _, file = said.partition("=")
    if not name or not file:
        raise InvalidParameter(f"a data set is given as NAME=FILE, such as people=people.parquet, not {said!r}")
    declaration = Path(file).with_suffix(".toml")
    if not declaration.exists():
        raise InvalidParameter(
            f"{str(declaration)!r} does not exist; it declares what {file!r} protects. Write it, for example:\n"
            'unit = "person_id"\nrows_per_unit = 1\nbudget = { measure = "ApproxDP", epsilon = 1, delta = 1e-6 }\n'
            'columns.age = { type = "number", low = 0, high = 100 }'
        )
    where = str(Path(file).absolute())
    fields = msgspec.toml.decode(_text(declaration))
    return name, _converted({"source": where, **fields}, TableFields, str(declaration))


def demo() -> TableFields:
    """The made-up people, with a budget to spend."""
    return TableFields(
        source=str(cp.datasets.people()),
        unit="person_id",
        rows_per_unit=1,
        budget={"measure": "ApproxDP", "epsilon": 4, "delta": 1e-6},
        columns={
            "state": CategoryFields(keys=list(STATES)),
            "age": NumberFields(low=0, high=100),
            "income": NumberFields(low=0, high=200_000, step=100),
        },
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeError):
        raise InvalidParameter(f"the file {str(path)!r} cannot be read") from None


def _decoded(text: str, kind: type[Read], what: str) -> Read:
    try:
        fields = msgspec.toml.decode(text)
    except msgspec.DecodeError as error:
        raise InvalidParameter(f"{what} is not TOML: {error}") from None
    return _converted(fields, kind, what)


def _converted(fields: Any, kind: type[Read], what: str) -> Read:
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        raise InvalidParameter(f"{what}: {error}") from None


def open_registry(settings: Settings, refresh: Sequence[str] = ()) -> Registry:
    """The data sets, with their ledgers open; the data of those in `refresh` become the next version."""
    for name in refresh:
        if name not in settings.data_sets:
            raise InvalidParameter(f"there is no data set {name!r} to refresh")
    registry = Registry(settings.place, backups=settings.backup_folder)
    try:
        for name, data in settings.data_sets.items():
            registry.add(name, settings.binding(name, data), partial(_renewed, settings, name), refresh=name in refresh)
    except BaseException:
        registry.close()
        raise
    return registry


def _renewed(settings: Settings, name: str) -> Binding:
    """How a data set is bound as its file declares it now."""
    return settings.binding(name, settings.declared_now(name))
