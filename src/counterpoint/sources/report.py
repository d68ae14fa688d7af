"""The custodian's report on a table: what became of the given values, what the cap dropped, and what to write instead.

**All of it is raw data.** It is exact, no budget protects it, and it is for the custodian alone: `Table.check()`
returns it, the service sends it to custodians only, and it is never logged, counted in a metric or kept by a cache.
What a custodian then declares becomes public. So a suggestion never quotes the smallest or the largest value, and names
a key only if many rows have it; declare what you knew, or could have known, without these rows.

Binding also warns the custodian (`warnings`, the log `counterpoint.custodian`) of columns of which more than 1 % of the
values were lost or changed, without numbers and values. Nothing else in the package looks at the report: no answer,
error or branch that an analyst sees depends on it.

>>> rows_kept([(1, 70), (3, 20), (200, 1)], 3)
133
>>> print(caps_of([(1, 70), (3, 20), (200, 1)])[1])
CapChoice(rows_per_unit=5, dropped=195, error=15)
"""

import json
import re
import warnings
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import msgspec
from msgspec.structs import replace

from counterpoint.engines import survey
from counterpoint.engines.engine import SqlEngine
from counterpoint.errors import CustodianWarning
from counterpoint.mechanisms.additive import Laplace
from counterpoint.numbers.exact import format_number
from counterpoint.queries.fallback import log
from counterpoint.schema.columns import Category, Number
from counterpoint.schema.date_formats import likely_format
from counterpoint.schema.declaration import Declaration, Named
from counterpoint.schema.times import Date

MARK = (
    "RAW DATA, for the custodian alone: exact and not private. Do not show it to analysts, and keep it out of logs and "
    "files that they can read."
)
"""Stands at the head of the report in every form."""
CAPS = (1, 5, 10, 20, 50, 100)
"""The caps whose losses are reported."""
_MORE_CAPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
"""The caps among which one is suggested: round numbers."""
NOTABLE = Fraction(1, 100)
"""From which share of lost or changed values on the custodian is warned."""
_QUANTILES = (
    Fraction(0),
    Fraction(1, 4),
    Fraction(1, 2),
    Fraction(3, 4),
    Fraction(9, 10),
    Fraction(99, 100),
    Fraction(1),
)
_PROBABILITY = Fraction(95, 100)
_FEWEST_DIGITS = 4
"""An unreadable text with as many digits is taken for a date in another spelling, and not for a word such as 'n/a'."""
_FEWEST = 20
"""A value that fewer rows have is not suggested as a key: it might be one unit's."""

RowsOfUnits = Sequence[tuple[int, int]]
"""How many rows, and how many units have that many; in order."""


class CapChoice(msgspec.Struct, frozen=True):
    """A cap on the rows of a unit: how many rows it drops, and how far off a count is at epsilon 1 (95 %)."""

    rows_per_unit: int
    dropped: int
    error: int


class FrequentText(msgspec.Struct, frozen=True):
    """A value that was not understood, or the spelling of such values (digits as 9), and how many rows have it."""

    text: str
    rows: int


class ColumnReport(msgspec.Struct, frozen=True):
    """What became of the values of one column."""

    name: str
    given: str
    """The type of the given data."""
    declared: str
    """What it was read as, in words."""
    missing: int
    unreadable: int
    below: int
    above: int
    undeclared: int
    """How many values are not among the declared keys."""
    most_frequent: tuple[FrequentText, ...] = ()
    """Of those not among the declared keys: the values. Of unreadable texts: their spellings, with digits as 9."""
    suggestion: str = ""
    """The line to write in `columns`; empty if there is nothing to say."""
    toml: str = ""
    """The same line for the configuration of a service."""
    why: str = ""
    """Why that line."""

    @property
    def converted(self) -> bool:
        """Whether texts were read as values of another type."""
        return self.given in ("VARCHAR", "ENUM") and not self.declared.startswith(("a text", "one of '"))

    def faults(self, rows: int) -> tuple[str, ...]:
        """What happened to more than 1 % of its values."""
        found = {
            "missing": self.missing,
            "unreadable": self.unreadable,
            "beyond the declared bounds": self.below + self.above,
            "not among the declared keys": self.undeclared,
        }
        return tuple(what for what, many in found.items() if many > NOTABLE * rows)

    @property
    def is_spelled_in_several_ways(self) -> bool:
        """Whether it has dates or times in several spellings, and no format says which one is meant."""
        is_about_time = self.declared.startswith(("a date from", "an instant from"))
        has_format = ", written as %" in self.declared
        return (
            is_about_time
            and not has_format
            and any(one.text.count("9") >= _FEWEST_DIGITS for one in self.most_frequent)
        )


class Report(msgspec.Struct, frozen=True):
    """The custodian's report on a table; `print` shows it, and `plain` is for programs. See `Table.check`."""

    rows: int
    rows_without_unit: int
    units: int
    rows_per_unit: int
    """The declared cap."""
    rows_dropped: int
    """How many rows the declared cap drops."""
    rows_of_units: dict[str, int]
    """Quantiles of the number of rows of a unit, before the cap."""
    caps: tuple[CapChoice, ...]
    columns: tuple[ColumnReport, ...]
    suggestion: str = ""
    """The cap to declare instead, and why; empty if there is nothing to say."""

    def __repr__(self) -> str:
        return "Report(raw data, for the custodian alone: print it to read it)"

    def plain(self) -> dict[str, Any]:
        """The report as plain data, for JSON; its mark comes first."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return {"raw_data": MARK, **fields}

    def __str__(self) -> str:
        return self.text()

    def text(self, *, toml: bool = False) -> str:
        """The report for people; with `toml`, what it suggests is written as in the configuration of a service."""
        return "\n".join((MARK, "", *self._lines(toml)))

    def _lines(self, toml: bool) -> list[str]:
        lines = [f"rows: {self.rows}", f"rows without a unit, left out: {self.rows_without_unit}"]
        if self.caps:
            spread = ", ".join(f"{name} {rows}" for name, rows in self.rows_of_units.items())
            lines += [f"units: {self.units}", f"rows of a unit: {spread}"]
            lines.append(f"rows_per_unit={self.rows_per_unit} drops {self._share(self.rows_dropped)} of the rows")
            lines.append("  rows_per_unit, rows that it drops, error of a count at epsilon 1 (95 %):")
            lines += [f"  {cap.rows_per_unit:>7} {self._share(cap.dropped):>9} {cap.error:>7}" for cap in self.caps]
            lines += [f"  suggestion: {self.suggestion}"] if self.suggestion else []
        for column in self.columns:
            lines += ["", *self._lines_of(column, toml)]
        return lines

    def _lines_of(self, column: ColumnReport, toml: bool) -> list[str]:
        converted = ", read from texts" if column.converted else ""
        lines = [f"{column.name} ({column.given}): {column.declared}{converted}"]
        found = {
            "missing": column.missing,
            "unreadable, so missing": column.unreadable,
            "below the lowest bound, clamped": column.below,
            "above the highest bound, clamped": column.above,
            "not among the declared keys, so missing": column.undeclared,
        }
        lines += [f"  {what}: {many} ({self._share(many)})" for what, many in found.items() if many]
        title = "values" if column.undeclared else "spellings, with 9 for every digit"
        if column.most_frequent:
            lines.append(f"  {title}: " + ", ".join(f"{one.text!r} {one.rows}" for one in column.most_frequent))
        line = column.toml if toml else column.suggestion
        return lines + ([f"  suggestion: {line}  # {column.why}"] if line else [])

    def _share(self, many: int) -> str:
        return f"{float(100 * Fraction(many, max(self.rows, 1))):.2g} %"

    def faults(self) -> tuple[str, ...]:
        """What was lost or changed in more than 1 % of the rows, without numbers and values: the words of a warning."""
        found = [
            f"more than 1 % of the values of {column.name!r} are {what}"
            for column in self.columns
            for what in column.faults(self.rows)
        ]
        found += [
            f"{column.name!r} has dates that are not written as declared, and these are missing: say format=..., as in "
            "cp.date(low, high, format='%d/%m/%Y'), or write all of them in one way"
            for column in self.columns
            if column.is_spelled_in_several_ways
        ]
        if self.rows_dropped > NOTABLE * self.rows:
            found.append(f"rows_per_unit={self.rows_per_unit} drops more than 1 % of the rows")
        return tuple(found)


def rows_kept(units: RowsOfUnits, cap: int) -> int:
    """How many rows a cap keeps."""
    return sum(min(rows, cap) * many for rows, many in units)


def caps_of(units: RowsOfUnits, declared: int = 1) -> tuple[CapChoice, ...]:
    """What each cap drops and costs; the declared one is among them."""
    return tuple(_choice(units, cap) for cap in sorted({*CAPS, declared}))


def _choice(units: RowsOfUnits, cap: int) -> CapChoice:
    dropped = sum(rows * many for rows, many in units) - rows_kept(units, cap)
    return CapChoice(cap, dropped, _error(cap))


@lru_cache(256)
def _error(cap: int) -> int:
    """How far off a count of such units is at PureDP(1), 95 % of the time."""
    return Laplace(1).error(_PROBABILITY, cap)


def compute(engine: SqlEngine, declared: Declaration, kinds: Mapping[str, str], loaded: str) -> Report:
    """The report on the rows that were loaded with their fates (`engines.survey`); the engine counts."""
    (found,) = engine.run(survey.counts(declared, loaded))
    rows, with_unit, *fates = map(int, found)
    columns = []
    for number, (place, named) in enumerate(survey.surveyed_columns(declared)):
        own = fates[number * len(survey.FATES) : (number + 1) * len(survey.FATES)]
        frequent = engine.run(survey.most_frequent(place, loaded)) if own[1] or own[4] else []
        listed = tuple(FrequentText(str(text), int(many)) for text, many in frequent)
        missing, unreadable, below, above, undeclared = own
        report = ColumnReport(
            named.name,
            kinds[named.name],
            named.column.describe(),
            missing,
            unreadable,
            below,
            above,
            undeclared,
            listed,
        )
        columns.append(_with_suggestion(named, report, rows))
    if declared.unit is None:
        return Report(rows, 0, rows, 1, 0, {}, (), tuple(columns))
    units = [(int(n), int(many)) for n, many in engine.run(survey.units_by_rows(loaded))]
    return _with_units(units, rows, with_unit, declared.rows_per_unit, tuple(columns))


def _with_units(units: RowsOfUnits, rows: int, with_unit: int, cap: int, columns: tuple[ColumnReport, ...]) -> Report:
    own = _choice(units, cap)
    return Report(
        rows=rows,
        rows_without_unit=rows - with_unit,
        units=sum(many for _, many in units),
        rows_per_unit=cap,
        rows_dropped=own.dropped,
        rows_of_units=_quantiles(units),
        caps=caps_of(units, cap),
        columns=columns,
        suggestion=_better_cap(units, rows, own),
    )


def _quantiles(units: RowsOfUnits) -> dict[str, int]:
    """How many rows a unit has: the least that so large a part of the units does not exceed."""
    many = sum(count for _, count in units)
    found: dict[str, int] = {}
    for part in _QUANTILES if many else ():
        name = {Fraction(0): "least", Fraction(1, 2): "median", Fraction(1): "most"}.get(part)
        found[name or f"{format_number(100 * part)} %"] = _rows_at(units, max(Fraction(1), part * many))
    return found


def _rows_at(units: RowsOfUnits, wanted: Fraction) -> int:
    """How many rows the unit of this number has, in the order of their rows."""
    seen = 0
    for rows, many in units:
        seen += many
        if seen >= wanted:
            return rows
    raise AssertionError("no more units are wanted than there are")


def _better_cap(units: RowsOfUnits, rows: int, own: CapChoice) -> str:
    """A round cap that drops at most 1 % of the rows, where the declared one drops more."""
    if own.dropped <= NOTABLE * rows:
        return ""
    for cap in _MORE_CAPS:
        choice = _choice(units, cap)
        if choice.dropped <= NOTABLE * rows:
            return (
                f"rows_per_unit={cap} keeps 99 % of the rows; a count at epsilon 1 is then off by {choice.error} "
                f"instead of {own.error}"
            )
    return f"no cap up to {_MORE_CAPS[-1]} keeps 99 % of the rows: choose a unit with fewer rows, or ask for less"


def _with_suggestion(named: Named, found: ColumnReport, rows: int) -> ColumnReport:
    """With the line to write, if more than 1 % of the values were lost or changed in a way that a declaration mends."""
    column = named.column
    better: Number | Category | Date | None = None
    if isinstance(column, Number) and max(found.below, found.above) > NOTABLE * rows:
        better = _widened(column, found, rows)
        why = "bounds twice as far, if you know without these rows that such values are real"
    elif isinstance(column, Category) and found.undeclared > NOTABLE * rows:
        better, why = _with_keys(column, found, rows), "with the frequent values that are public as keys"
    elif isinstance(column, Date) and found.unreadable > NOTABLE * rows:
        better, why = _with_format(column, found, rows), "as most texts are written, if the day comes before the month"
    if better is None:
        return found
    return replace(found, suggestion=f"{named.name!r}: {better.code}", toml=as_toml(named.name, better), why=why)


def as_toml(name: str, column: Number | Category | Date) -> str:
    """The declaration of a column as the configuration of a service has it.

    >>> as_toml("age", Number(0, 120)), as_toml("Sex", Category(["F"]))
    ('columns.age = { type = "number", low = 0, high = 120 }', 'columns.Sex = { type = "category", keys = ["F"] }')
    """
    key = name if _BARE.fullmatch(name) else _text(name)
    if isinstance(column, Category):
        keys = ", ".join(_text(one) if isinstance(one, str) else str(one) for one in column.keys)
        return f'columns.{key} = {{ type = "category", keys = [{keys}] }}'
    if isinstance(column, Date):
        fields = [f"{field} = {_text(str(getattr(column, field)))}" for field in ("low", "high", "format")]
        return f'columns.{key} = {{ type = "date", {", ".join(fields)} }}'
    given = {"low": column.low, "high": column.high, **({} if column.step == 1 else {"step": column.step})}
    fields = [f"{field} = {_number(value)}" for field, value in given.items()]
    fields += [] if column.units is None else [f"units = {_text(column.units)}"]
    return f'columns.{key} = {{ type = "number", {", ".join(fields)} }}'


_BARE = re.compile(r"[A-Za-z0-9_-]+")


def _text(text: str) -> str:
    """A basic string of TOML, which is one of JSON."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _number(value: Fraction) -> str:
    """A whole number as it is; any other as a text, which is read exactly."""
    return str(value) if value.denominator == 1 else _text(format_number(value))


def _with_format(column: Date, found: ColumnReport, rows: int) -> Date | None:
    """The format of the most frequent spelling, if more texts are written so than could be read."""
    for spelling in found.most_frequent[:1]:
        format = likely_format(spelling.text)
        if column.format is None and format and spelling.rows > rows - found.missing - found.unreadable:
            return Date(column.low, column.high, format)
    return None


def _widened(column: Number, found: ColumnReport, rows: int) -> Number:
    """The bounds that are exceeded, moved out by the width of the range: no value decides how far."""
    width = column.high - column.low
    low = column.low - width if found.below > NOTABLE * rows else column.low
    high = column.high + width if found.above > NOTABLE * rows else column.high
    return Number(low, high, column.step, column.units)


def _with_keys(column: Category, found: ColumnReport, rows: int) -> Category | None:
    """The declared keys and those others that at least 1 % of the rows have; None if there are none."""
    texts = [one.text for one in found.most_frequent if one.rows >= max(Fraction(_FEWEST), NOTABLE * rows)]
    added: list[int | str] = list(texts)
    if column.kind == "number":
        added = [int(text) for text in texts if text.strip().lstrip("+-").isdigit()]
    new = [key for key in added if key not in column.keys]
    return Category((*column.keys, *new)) if new else None


def warn(report: Report) -> None:
    """Tell the custodian of what was lost or changed in more than 1 % of the rows: where, never how much."""
    faults = report.faults()
    if not faults:
        return
    text = f"{'; '.join(faults)}. Analysts are not told: look at table.check(), or counterpoint data check"
    log.warning("a table was bound: %s", text)
    warnings.warn(text, CustodianWarning, stacklevel=3)
