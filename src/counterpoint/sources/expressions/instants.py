"""Instants in expressions: the day and the hour that the wall clock of the declared zone shows.

The offset of the zone is chosen by its changes within the declared bounds (`zones`), so no engine is asked about zones:
the day is a quotient of integers, as everything else here.

>>> from counterpoint.sources.declaring.timestamps import timestamp
>>> year = timestamp("2013-01-01", "2014-01-01", zone="America/New_York")
>>> day = day_of(Timed(quantities.stored(0, year.least, year.most, Fraction(1)), year))
>>> day.top.least, day.top.most, hour_of(Timed(quantities.stored(0, year.least, year.most, Fraction(1)), year)).top.most
(15706, 16071, 23)
"""

from fractions import Fraction

from counterpoint.sources.asking.conditions import Within
from counterpoint.sources.declaring.zones import SECOND, changes_of, offset_at
from counterpoint.sources.expressions import quantities
from counterpoint.sources.expressions.operands import Timed, Written
from counterpoint.sources.expressions.quantities import ONE, Integer, Quantity
from counterpoint.sources.expressions.terms import Choose, Constant, Plus, Quotient, Term, Times

_HOUR = 3600 * SECOND
_DAY = 24 * _HOUR


def as_instant(operand: Timed | Written, column: Timed) -> Quantity:
    """An instant, or a text literal that spells one, read on the wall clock of the column that it is compared with."""
    if isinstance(operand, Timed):
        return operand.quantity
    return quantities.literal(Fraction(column.column.key(operand.text)))


def day_of(timed: Timed) -> Quantity:
    """The day on the wall clock of the zone, as days since 1970-01-01."""
    wall, first = _from_first_day(timed)
    days = Plus(Quotient(wall.term, Constant(_DAY)), Constant(first))
    return Quantity(quantities.checked(days, first, first + wall.most // _DAY), ONE, Fraction(1))


def hour_of(timed: Timed) -> Quantity:
    """The hour on the wall clock of the zone, from 0 to 23."""
    wall, _ = _from_first_day(timed)
    hours, days = Quotient(wall.term, Constant(_HOUR)), Quotient(wall.term, Constant(_DAY))
    return Quantity(quantities.checked(Plus(hours, Times(Constant(-24), days)), 0, 23), ONE, Fraction(1))


def _from_first_day(timed: Timed) -> tuple[Integer, int]:
    """The wall time in microseconds since the first day that there may be, and the number of that day."""
    column, instant = timed.column, timed.quantity.top
    seconds = column.least // SECOND, column.most // SECOND + 1
    changes = changes_of(column.zone, *seconds)
    offsets = [offset_at(column.zone, seconds[0]), *(after for _, _, after in changes)]
    first = (column.least + min(offsets) * SECOND) // _DAY
    shifts = [Constant(offset * SECOND - first * _DAY) for offset in offsets]
    starts = [Within(instant.term, at * SECOND, None) for at, _, _ in changes]
    later = list(zip(starts, shifts[1:], strict=True))
    shift: Term = Choose(tuple(reversed(later)), shifts[0]) if later else shifts[0]
    most = column.most + max(offsets) * SECOND - first * _DAY
    return quantities.checked(Plus(instant.term, shift), 0, most), first
