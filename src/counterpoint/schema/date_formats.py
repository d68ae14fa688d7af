"""How dates and times are written in a column of texts: a declared format, for texts other than YYYY-MM-DD.

A format has the codes of `strftime` that have a fixed width (%Y %m %d, and %H %M %S for instants) and single characters
between them, as in "%d/%m/%Y". A text in the format is rewritten as YYYY-MM-DD or YYYY-MM-DDTHH:MM:SS, and read as
such. Every other text of the column is missing, also one that is written YYYY-MM-DD. So each value is read by itself: a
day is never guessed from how other rows are written.

>>> rewritten("%d/%m/%Y", "29/02/2000"), rewritten("%d/%m/%Y", "2000-02-29"), rewritten("%Y%m%d %H%M", "20000229 0730")
('2000-02-29', None, '2000-02-29T07:30:00')
>>> likely_format("99.99.9999"), likely_format("9999999"), likely_format("99/99/9999")
('%d.%m.%Y', None, '%d/%m/%Y')
"""

import re
from functools import lru_cache
from typing import NamedTuple

from counterpoint.errors import InvalidParameter, shown

_WIDTHS = {"Y": 4, "m": 2, "d": 2, "H": 2, "M": 2, "S": 2}
_TOKEN = re.compile(r"%([YmdHMS])|([ /.:,_T-])")
_DAY = ("Y", "m", "d")
_GUESSED = ("%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d")


class Layout(NamedTuple):
    """A format as it is read: the width of its texts, a pattern for them, and where each part begins."""

    width: int
    pattern: str
    places: dict[str, int]

    def pieces(self) -> list[tuple[int, int] | str]:
        """The rewritten text: places and widths of the given one, and what is written between them."""
        year, month, day = ((self.places[code], _WIDTHS[code]) for code in _DAY)
        found: list[tuple[int, int] | str] = [year, "-", month, "-", day]
        if "H" in self.places:
            for before, code in zip("T::", "HMS", strict=True):
                found += [before, (self.places[code], 2) if code in self.places else "00"]
        return found


@lru_cache(maxsize=256)
def layout(format: str) -> Layout:
    """Read a format that was checked."""
    width, pattern, places = 0, "", {}
    for code, between in _TOKEN.findall(format):
        if code:
            places[code] = width
            pattern += f"[0-9]{{{_WIDTHS[code]}}}"
        else:
            pattern += f"[{between}]"
        width += _WIDTHS.get(code, 1)
    return Layout(width, pattern, places)


def checked_format(given: object, *, times: bool) -> str | None:
    """A format, or `InvalidParameter` that says what one is.

    >>> checked_format("%d %b %Y", times=False)
    Traceback (most recent call last):
    ...
    counterpoint.errors.InvalidParameter: format says how dates are written, as in '%d/%m/%Y': ...
    """
    if given is None:
        return None
    codes = [code for code, _ in _TOKEN.findall(given)] if isinstance(given, str) else []
    parts = [code for code in codes if code]
    is_read = isinstance(given, str) and re.fullmatch(rf"(?:{_TOKEN.pattern})+", given) is not None
    days = [code for code in parts if code in _DAY]
    clock = [code for code in "HMS" if code in parts]
    is_clock = clock == list("HMS")[: len(clock)] and (times or not clock)
    if is_read and sorted(days) == sorted(_DAY) and len(set(parts)) == len(parts) and is_clock:
        return str.__str__(given)
    more = "; of a time also %H, %M and %S, as in '%d/%m/%Y %H:%M'" if times else ""
    raise InvalidParameter(
        f"format says how dates are written, as in '%d/%m/%Y': %Y, %m and %d once each, with single characters "
        f"between them{more}; not {shown(given)}"
    )


def rewritten(format: str, text: str) -> str | None:
    """The text that is read in the place of one in this format; None for any other."""
    found = layout(format)
    if len(text) != found.width or re.fullmatch(found.pattern, text, re.ASCII) is None:
        return None
    return "".join(one if isinstance(one, str) else text[one[0] : sum(one)] for one in found.pieces())


def likely_format(spelling: str) -> str | None:
    """A format whose texts are spelled so, with 9 for every digit; of day and month, the day comes first."""
    spelled = {re.sub("%(.)", lambda code: "9" * _WIDTHS[code[1]], format): format for format in _GUESSED}
    return spelled.get(spelling)
