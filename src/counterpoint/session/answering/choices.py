"""Choices and selected keys: answers that are no measured numbers, and what can be said about how good they are.

A quantile is a candidate that a noisy maximum chose. How far it is from the true quantile in the units of the column
depends on how the rows lie, which is private. What is known is its rank (`rank_error`). Of selected keys it is known
how many units a key needs to be among them (`units_needed`).

>>> import counterpoint as cp
>>> people = cp.Table(cp.datasets.people(), unit="person_id", rows_per_unit=1, columns={"age": cp.number(0, 120)})
>>> session = cp.Session(people, within=cp.PureDP(1))
>>> age = session.ask(cp.median("age"), epsilon=0.5)
>>> isinstance(age, int), age.rank_error(0.95), age.cost
(True, 14, PureDP(0.5))
"""

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, NoReturn, Self, TypeAlias

from counterpoint.errors import NotCovered
from counterpoint.numbers import Exact, Number, spell
from counterpoint.session.answering.choosing import SURE
from counterpoint.session.answering.origin import Known, Origin


def no_error_of_a_choice() -> NotCovered:
    """Why a choice states no error in units, and what it states instead."""
    return NotCovered(
        "a chosen candidate has no error in the units of its column, which would depend on where the rows lie: "
        "answer.rank_error(0.95) is by how many rows its rank is off"
    )


class Choice(Known):
    """A chosen candidate: how much worse it may be than the best one."""

    __slots__ = ()
    stated = "rank_error"
    """The head of the column that says how far off it is."""
    mostly_noise = False
    """A rank is compared with no noise."""

    def rank_error(self, probability: Number = SURE) -> int | Exact:
        """By how many rows at most its rank is farther from the wanted one than that of the best candidate.

        With this probability, by the exact law of the choice, for the worst data. If every value that the column can
        have is a candidate, the best candidate is the quantile itself.
        """
        rows = Exact(self._origin.error(probability))
        return rows.numerator if rows.denominator == 1 else rows

    def error(self, probability: Number = SURE) -> NoReturn:
        """Refused: there is none in the units of the column."""
        raise no_error_of_a_choice()

    def _shown(self, value: str) -> str:
        measured = "" if self.units is None else f" {self.units}"
        return f"{value}{measured} (rank +- {spell(Fraction(self.rank_error()))} rows){self._mark}"


class IntChoice(Choice, int):
    """A chosen whole number that knows its rank error; else it is an int."""

    def __new__(cls, value: int, origin: Origin) -> "IntChoice":
        """An int, and where it comes from."""
        choice = super().__new__(cls, value)
        choice._origin = origin
        return choice

    def __repr__(self) -> str:
        return self._shown(str(int(self)))

    __str__ = int.__repr__
    __format__ = int.__format__

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)


class FloatChoice(Choice, float):
    """A chosen number that knows its rank error; else it is a float. The candidate itself is `exact`."""

    exact: Exact

    def __new__(cls, value: Fraction, origin: Origin) -> "FloatChoice":
        """A float, its exact value, and where it comes from."""
        choice = super().__new__(cls, float(value))
        choice.exact = Exact(value)
        choice._origin = origin
        return choice

    def __repr__(self) -> str:
        return self._shown(str(float(self)))

    __str__ = float.__repr__
    __format__ = float.__format__

    def __reduce__(self) -> tuple[type[float], tuple[float]]:
        return float, (float(self),)


class TextChoice(Choice, str):
    """A chosen text, such as a date, that knows its rank error; else it is a str."""

    def __new__(cls, value: str, origin: Origin) -> "TextChoice":
        """A str, and where it comes from."""
        choice = super().__new__(cls, value)
        choice._origin = origin
        return choice

    def __repr__(self) -> str:
        return self._shown(repr(str(self)))

    __str__ = str.__str__

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


AnyChoice: TypeAlias = IntChoice | FloatChoice | TextChoice


def choice(value: object, origin: Origin) -> AnyChoice:
    """A candidate with what it knows."""
    if isinstance(value, str):
        return TextChoice(value, origin)
    assert isinstance(value, int | Fraction)
    return IntChoice(value, origin) if isinstance(value, int) else FloatChoice(value, origin)


class TupleAnswer(Known, tuple[Any, ...]):
    """Several things that were chosen, which know what they cost; else it is a tuple."""

    def __new__(cls, chosen: Iterable[Any], origin: Origin) -> Self:
        """A tuple, and where it comes from."""
        answer = super().__new__(cls, chosen)
        answer._origin = origin
        return answer

    def error(self, probability: Number = SURE) -> NoReturn:
        """Refused: what was chosen is no number."""
        raise NotCovered(f"no error is stated for what is chosen by {type(self.mechanism).__name__}: ask for counts")

    def __repr__(self) -> str:
        return f"{tuple(self)!r}{self._mark}"

    def __reduce__(self) -> tuple[type[tuple[Any, ...]], tuple[tuple[Any, ...]]]:
        return tuple, (tuple(self),)


class KeysAnswer(TupleAnswer):
    """The keys that were selected, which know what a key needs to be among them; else it is a tuple."""

    def units_needed(self, probability: Number = SURE) -> int:
        """With how many units a key is among these with at least this probability; exact, for each key by itself.

        A key without units is never among them. `NotCovered` if the request's `most` cut the answer off: then a key may
        be missing however many units it has.
        """
        origin = self._origin
        assert isinstance(origin.released, tuple)
        if len(origin.released) > len(self):
            raise NotCovered(
                f"more keys were selected than the {len(self)} that the request wanted at most, so a key with many "
                "units may be missing too: ask again with a larger most="
            )
        facts = origin.prepared
        needed: int = origin.mechanism.error(probability, facts.sensitivity, facts.squared)
        return needed

    def __repr__(self) -> str:
        if self:
            return super().__repr__()
        return f"() (none was selected: a key needs about {self.units_needed():,} units){self._mark}"

    def error(self, probability: Number = SURE) -> NoReturn:
        """Refused: keys are no numbers."""
        raise NotCovered("keys have no error: answer.units_needed(0.95) is how many units a key needs to be selected")
