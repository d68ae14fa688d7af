"""Numbers, times and names as the pages write them.

>>> figure(0.30000000000000004), figure(1e-6), figure(2.0)
('0.3', '1e-6', '2')
>>> ago(60, now=200), ago(0, now=200_000), day(1_794_826_800), moment(1_794_826_800)
('2 min ago', '2 days ago', '16 Nov 2026', '16 Nov 2026, 11:00')
"""

from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from fractions import Fraction

from counterpoint.session.expected import Expected
from counterpoint.wire.requests import REQUESTS

_UNITS = ((86_400, "day", "days"), (3600, "h", "h"), (60, "min", "min"))


def figure(value: float | Fraction) -> str:
    """A number of four digits, as people write it."""
    text = f"{float(value):.4g}"
    if "e" not in text:
        return text
    digits, power = text.split("e")
    return f"{digits}e{int(power)}"


def at_most(value: Fraction) -> str:
    """The same, rounded down, so that the shown amount fits.

    >>> at_most(Fraction(2, 3)), at_most(Fraction(1, 2))
    ('0.6666', '0.5')
    """
    return figure(float(Context(prec=4, rounding=ROUND_FLOOR).divide(value.numerator, value.denominator)))


def at_least(value: Fraction) -> str:
    """A number of four digits, rounded up, as an error is.

    >>> at_least(Fraction(2, 3)), at_least(Fraction(599))
    ('0.6667', '599')
    """
    return figure(float(Context(prec=4, rounding=ROUND_CEILING).divide(value.numerator, value.denominator)))


def worth(expected: Expected, within: Fraction | None = None) -> str:
    """What an answer will be worth, at the quoted price or another one.

    >>> worth(Expected(599, "error", Fraction(95, 100), "minutes")), worth(Expected(14, "rank_error", Fraction(9, 10)))
    ('± 599 minutes with 95 %', 'a rank within 14 rows with 90 %')
    """
    amount, sure = at_least(expected.within if within is None else within), figure(100 * expected.probability)
    said = {
        "error": f"± {amount}{f' {expected.units}' if expected.units else ''}",
        "rank_error": f"a rank within {amount} rows",
        "units_needed": f"keys of at least {amount} units",
    }
    return f"{said[expected.what]} with {sure} %"


_ASKED_BY = {"".join(part.title() for part in name.split("_")): name for name in REQUESTS}


def as_asked(said: str) -> str:
    """A request as the forms take it: the record has the request's class, people write its function.

    >>> as_asked("Count(where='age > 40') by Laplace(0.1)"), as_asked("CountDistinct('town')"), as_asked("Laplace(0.1)")
    ("count(where='age > 40') by Laplace(0.1)", "count_distinct('town')", 'Laplace(0.1)')
    """
    name, bracket, rest = said.partition("(")
    return f"{_ASKED_BY.get(name, name)}{bracket}{rest}"


def asked_text(kind: str, what: str) -> str:
    """What a line of the history says was asked or launched, without the mechanism that answered and the price.

    >>> asked_text("question", "Count() by Laplace(1) at PureDP(1)"), asked_text("launch", "Laplace(1) at PureDP(1)")
    ('count()', 'Laplace(1)')
    """
    said = what.rpartition(" at ")[0] if kind in ("question", "launch") else what
    return as_asked(said.rpartition(" by ")[0] if kind == "question" else said)


def whole_number(text: str, default: int) -> int:
    """A number of at most eight digits in an address, or the default.

    >>> whole_number("200", 1), whole_number("-3", 1), whole_number("two", 1)
    (200, 1, 1)
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else default


def ago(at: float, now: float) -> str:
    """How long ago a moment was."""
    passed = now - at
    for seconds, one, many in _UNITS:
        if passed >= seconds:
            number = int(passed // seconds)
            return f"{number} {one if number == 1 else many} ago"
    return "just now"


def ahead(at: float, now: float) -> str:
    """In how long a moment will be.

    >>> ahead(200_000, now=0), ahead(30, now=0)
    ('in 2 days', 'in less than a minute')
    """
    left = at - now
    for seconds, one, many in _UNITS:
        if left >= seconds:
            number = int(left // seconds)
            return f"in {number} {one if number == 1 else many}"
    return "in less than a minute"


def day(at: float) -> str:
    """A day, in UTC."""
    when = datetime.fromtimestamp(at, UTC)
    return f"{when.day} {when:%b %Y}"


def moment(at: float) -> str:
    """A moment, in UTC."""
    return f"{day(at)}, {datetime.fromtimestamp(at, UTC):%H:%M}"


def clock(at: float) -> str:
    """The time of the day, in UTC."""
    return f"{datetime.fromtimestamp(at, UTC):%H:%M:%S}"
