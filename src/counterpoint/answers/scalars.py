"""Single answers: numbers that know their error, chosen candidates, and selected keys.

To other code a number is an int or a float. A quantile is a candidate that a noisy maximum chose: its distance from the
true quantile depends on how the rows lie, which is private, but the error of its rank is known (`rank_error`). Of
selected keys it is known how many units a key needs to be selected (`units_needed`).

>>> import counterpoint as cp
>>> session = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1))
>>> visits = session.ask(cp.total(), epsilon=0.1)
>>> visits.error(0.95), visits.cost, visits.mechanism, visits == visits + 0
(30, PureDP(0.1), Laplace(0.1), True)

>>> import counterpoint as cp
>>> people = cp.Table(cp.datasets.people(), unit="person_id", rows_per_unit=1, columns={"age": cp.number(0, 120)})
>>> session = cp.Session(people, within=cp.PureDP(1))
>>> age = session.ask(cp.median("age"), epsilon=0.5)
>>> isinstance(age, int), age.rank_error(0.95), age.cost
(True, 14, PureDP(0.5))
"""

from abc import abstractmethod
from collections.abc import Iterable
from fractions import Fraction
from math import floor, inf, nextafter
from typing import Any, NoReturn, Self, TypeAlias

from counterpoint.answers.arithmetic import AnswerTerm, Arithmetic, Formula, Linear, read_ratio
from counterpoint.answers.frame import MOSTLY_NOISE, AnswerTable, plot_answer, show, written
from counterpoint.answers.provenance import SURE, Answer, Provenance
from counterpoint.display.markup import Picture
from counterpoint.errors import NotCovered
from counterpoint.numbers import Exact, Number
from counterpoint.numbers.exact import format_number
from counterpoint.queries.ranked import RankedChoice
from counterpoint.queries.request import OnSource, PreparedQuery
from counterpoint.queries.several_quantiles import CumulatedQuantiles
from counterpoint.schema.arguments import points


class NumberAnswer(Arithmetic, Answer):
    """A number with noise: how it compares with its own error, and arithmetic that keeps the error."""

    _measured: AnswerTerm
    stated = "error"
    """The head of the column that says how far off it is."""

    @property
    def mostly_noise(self) -> bool:
        """Whether it is smaller than its error at 95 %; of a mean or a variance, whether the count under it is."""
        return not self._provenance.exceeds_noise(Fraction(1))

    def suppress(self, signal_to_noise: Number) -> Self | None:
        """The answer itself, or None if it is less than `signal_to_noise` times its error at 95 %.

        Of a mean or a variance it is the noisy count under it that is compared with its error. Both are public.

        >>> import counterpoint as cp
        >>> visits = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1)).ask(cp.total(), epsilon=0.1)
        >>> visits.suppress(signal_to_noise=1000) is None, visits.suppress(signal_to_noise=0) is visits
        (True, True)
        """
        return self if self._provenance.exceeds_noise(read_ratio(signal_to_noise)) else None

    def plot(self, probability: Number = SURE) -> Picture:
        """The number with its error, as a picture."""
        value, error = self._as_float(), float(self._provenance.error(probability))
        notes = [MOSTLY_NOISE if self.mostly_noise else ""]
        measured = None if self.units is None else f"in {self.units}"
        table = AnswerTable({}, {"value": [value]}, {"value": ("error", [error])}, notes, measured, self.made_up)
        return plot_answer(table, self.request, probability)

    @abstractmethod
    def _as_float(self) -> float:
        """The plain number."""

    def _formula(self) -> Formula:
        return Linear(Fraction(0), {self._measured: Fraction(1)})

    def _shown(self, value: str, error: str) -> str:
        return show(value, error, self.units, self.mostly_noise, self.made_up)


class IntAnswer(NumberAnswer, int):
    """A whole number that knows its error; else it is an int.

    >>> import counterpoint as cp
    >>> visits = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1)).ask(cp.total(), epsilon=1)
    >>> visits + 1 == int(visits) + 1, (visits + 1).error(), str(visits).startswith(f"{visits} +- 3")
    (True, 3, True)
    """

    def __new__(cls, value: int, provenance: Provenance) -> "IntAnswer":
        """An int, and where it comes from."""
        answer = super().__new__(cls, value)
        answer._provenance = provenance
        answer._measured = AnswerTerm(Fraction(value), provenance)
        return answer

    def error(self, probability: Number = SURE) -> int:
        """How far off it is at most, with this probability: the least whole number that holds."""
        error = self._provenance.error(probability)
        assert isinstance(error, int)
        return error

    def _as_float(self) -> float:
        return float(int(self))

    def __repr__(self) -> str:
        return self._shown(str(int(self)), str(self.error()))

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return int.__format__(int(self), spec)

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)


class FloatAnswer(NumberAnswer, float):
    """A number that knows its error; else it is a float.

    The released number is a rational, `exact`; this is the float nearest to it. The error is that of `exact`.

    >>> import counterpoint as cp
    >>> visits = cp.Stream(fields={"seconds": cp.number(0, 600, step="0.1")})
    >>> time = cp.Session(visits, within=cp.PureDP(1)).ask(cp.sum("seconds"), epsilon=1)
    >>> time == float(time.exact), time.exact * 10 == round(time.exact * 10)
    (True, True)
    """

    exact: Exact

    def __new__(cls, value: Fraction | float, provenance: Provenance) -> "FloatAnswer":
        """A float, its exact value, and where it comes from."""
        answer = super().__new__(cls, float(value))
        answer.exact = Exact(value)
        answer._provenance = provenance
        answer._measured = AnswerTerm(answer.exact, provenance)
        return answer

    def error(self, probability: Number = SURE) -> float:
        """The largest error with this probability, rounded up to a float."""
        error = self._provenance.error(probability)
        return float(error) if Fraction(float(error)) >= error else nextafter(float(error), inf)

    def _as_float(self) -> float:
        return float(self)

    def __repr__(self) -> str:
        return self._shown(*written(float(self), self.error()))

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return float.__format__(float(self), spec)

    def __reduce__(self) -> tuple[type[float], tuple[float]]:
        return float, (float(self),)


Scalar: TypeAlias = IntAnswer | FloatAnswer
"""A number that knows its error."""


def scalar(value: object, provenance: Provenance) -> Scalar | None:
    """A number with its provenance; None where noise left no number."""
    if value is None:
        return None
    assert isinstance(value, int | float | Fraction)
    return IntAnswer(value, provenance) if type(value) is int else FloatAnswer(value, provenance)


def no_error_of_a_choice() -> NotCovered:
    """Why a choice states no error in units, and what it states instead."""
    return NotCovered(
        "a chosen candidate has no error in the units of its column, which would depend on where the rows lie: "
        "answer.rank_error(0.95) is by how many rows its rank is off"
    )


class Choice(Answer):
    """A chosen candidate: how much worse it may be than the best one."""

    __slots__ = ()
    stated = "rank_error"
    """The head of the column that says how far off it is."""

    @property
    def mostly_noise(self) -> bool:
        """A rank is compared with no noise."""
        return False

    def rank_error(self, probability: Number = SURE) -> int | Exact:
        """By how many rows at most its rank is farther from the wanted one than that of the best candidate.

        With this probability, by the exact law of the choice, for the worst data. If every value that the column can
        have is a candidate, the best candidate is the quantile itself.
        """
        rows = Exact(self._provenance.error(probability))
        return rows.numerator if rows.denominator == 1 else rows

    def rows_needed(self, probability: Number = SURE) -> int:
        """The least number of rows among which the choice tells anything: the rank error spans all rows of fewer.

        How many rows there are is private, and a choice does not tell: ask for a count beside it.
        """
        return rows_needed(self._provenance.prepared, self.rank_error(probability))

    def error(self, probability: Number = SURE) -> NoReturn:
        """Refused: a choice has no error in the units of the column."""
        raise no_error_of_a_choice()

    def _shown(self, value: str) -> str:
        measured = "" if self.units is None else f" {self.units}"
        off = format_number(Fraction(self.rank_error()))
        least = self.rows_needed()
        few = f"; {MOSTLY_NOISE} among fewer than {least:,}" if least > 1 else ""
        return f"{value}{measured} (rank within {off} rows{few}){self._mark}"


def rows_needed(prepared: PreparedQuery, rank_error: Fraction | int) -> int:
    """The least number of rows among which a choice with this rank error tells anything."""
    request = prepared.request.request if isinstance(prepared.request, OnSource) else prepared.request
    assert isinstance(request, RankedChoice)
    return floor(request.rows_spanned(Fraction(rank_error))) + 1


class IntChoice(Choice, int):
    """A chosen whole number that knows its rank error; else it is an int."""

    def __new__(cls, value: int, provenance: Provenance) -> "IntChoice":
        """An int, and where it comes from."""
        choice = super().__new__(cls, value)
        choice._provenance = provenance
        return choice

    def __repr__(self) -> str:
        return self._shown(str(int(self)))

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return int.__format__(int(self), spec)

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)


class FloatChoice(Choice, float):
    """A chosen number that knows its rank error; else it is a float. The candidate itself is `exact`."""

    exact: Exact

    def __new__(cls, value: Fraction, provenance: Provenance) -> "FloatChoice":
        """A float, its exact value, and where it comes from."""
        choice = super().__new__(cls, float(value))
        choice.exact = Exact(value)
        choice._provenance = provenance
        return choice

    def __repr__(self) -> str:
        return self._shown(str(float(self)))

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return float.__format__(float(self), spec)

    def __reduce__(self) -> tuple[type[float], tuple[float]]:
        return float, (float(self),)


class TextChoice(Choice, str):
    """A chosen text, such as a date, that knows its rank error; else it is a str."""

    def __new__(cls, value: str, provenance: Provenance) -> "TextChoice":
        """A str, and where it comes from."""
        choice = super().__new__(cls, value)
        choice._provenance = provenance
        return choice

    def __repr__(self) -> str:
        return self._shown(repr(str(self)))

    __str__ = str.__str__

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


AnyChoice: TypeAlias = IntChoice | FloatChoice | TextChoice


class QuantileAnswer(Choice):
    """A quantile that was computed from a noisy histogram: it knows an interval in the units of its column.

    The provenance is that of one quantile of one group: its request is about this quantile alone.
    """

    __slots__ = ()
    stated = "interval"

    def interval(self, probability: Number = SURE) -> tuple[Any, Any]:
        """The ends between which the true quantile is, with this probability, whatever the data: both may be it.

        >>> import counterpoint as cp
        >>> session = cp.Session(cp.datasets.people_table(), within=cp.PureDP(10))
        >>> ages = session.ask(cp.quantile("age", [0.1, 0.5]), epsilon=1)
        >>> low, high = ages[0.5].interval(0.95)
        >>> low <= ages[0.5] <= high, high - low < 20
        (True, True)
        """
        facts, cells = self._histogram
        return facts.interval(cells, facts.qs[0], lambda weights: self._provenance.steps_of_sum(weights, probability))

    @property
    def _histogram(self) -> tuple[CumulatedQuantiles, tuple[int, ...]]:
        facts = self._provenance.prepared
        assert isinstance(facts, CumulatedQuantiles)
        return facts, facts.cells_of(self._provenance.released)[0]

    def error(self, probability: Number = SURE) -> NoReturn:
        """Refused: the ends of its interval need not be equally far from it."""
        raise NotCovered("a quantile from a histogram has an interval, and no error: answer.interval(0.95)")

    def rank_error(self, probability: Number = SURE) -> NoReturn:
        """Refused: the noise of its rank is what chose it, so no bound for one fixed candidate holds for it."""
        raise NotCovered("a quantile from a histogram has an interval, and no rank error: answer.interval(0.95)")

    def rows_needed(self, probability: Number = SURE) -> NoReturn:
        """Refused, as its rank error is."""
        raise NotCovered("a quantile from a histogram says by its interval whether it is noise: answer.mostly_noise")

    @property
    def mostly_noise(self) -> bool:
        """Whether the interval at 95 % has all values between the declared bounds."""
        facts, _ = self._histogram
        return self.interval() == points(facts.ends, facts.dates)

    def _shown(self, value: str) -> str:
        measured = "" if self.units is None else f" {self.units}"
        low, high = self.interval()
        noisy = f"; {MOSTLY_NOISE}" if self.mostly_noise else ""
        return f"{value}{measured} (between {low} and {high}{noisy}){self._mark}"


class IntQuantile(QuantileAnswer, IntChoice):
    """A whole number that knows its interval; else it is an int."""


class FloatQuantile(QuantileAnswer, FloatChoice):
    """A number that knows its interval; else it is a float."""


class TextQuantile(QuantileAnswer, TextChoice):
    """A date that knows its interval; else it is a str."""


def quantile_answer(value: object, provenance: Provenance) -> AnyChoice:
    """A quantile with its provenance."""
    if isinstance(value, str):
        return TextQuantile(value, provenance)
    assert isinstance(value, int | Fraction)
    return IntQuantile(value, provenance) if isinstance(value, int) else FloatQuantile(value, provenance)


def choice(value: object, provenance: Provenance) -> AnyChoice:
    """A chosen candidate with its provenance."""
    if isinstance(value, str):
        return TextChoice(value, provenance)
    assert isinstance(value, int | Fraction)
    return IntChoice(value, provenance) if isinstance(value, int) else FloatChoice(value, provenance)


class TupleAnswer(Answer, tuple[Any, ...]):
    """Several chosen values that know their price; otherwise a tuple."""

    def __new__(cls, chosen: Iterable[Any], provenance: Provenance) -> Self:
        """A tuple, and where it comes from."""
        answer = super().__new__(cls, chosen)
        answer._provenance = provenance
        return answer

    def error(self, probability: Number = SURE) -> NoReturn:
        """Refused: the chosen candidate is not a number."""
        raise NotCovered(f"{type(self.mechanism).__name__} states no error for its choice: ask for counts")

    def __repr__(self) -> str:
        return f"{tuple(self)!r}{self._mark}"

    def __reduce__(self) -> tuple[type[tuple[Any, ...]], tuple[tuple[Any, ...]]]:
        return tuple, (tuple(self),)


class KeysAnswer(TupleAnswer):
    """Selected keys that know how many units a key needs to be selected; otherwise a tuple."""

    def units_needed(self, probability: Number = SURE) -> int:
        """With how many units a key is among these with at least this probability; exact, for each key by itself.

        A key without units is never among them. `NotCovered` if the request's `most` cut the answer off: then a key may
        be missing however many units it has.
        """
        provenance = self._provenance
        assert isinstance(provenance.released, tuple)
        if len(provenance.released) > len(self):
            raise NotCovered(
                f"more keys were selected than the {len(self)} that the request wanted at most, so a key with many "
                "units may be missing too: ask again with a larger most="
            )
        facts = provenance.prepared
        needed: int = provenance.mechanism.error(probability, facts.sensitivity, facts.squared)
        return needed

    def __repr__(self) -> str:
        if self:
            return super().__repr__()
        return f"() (none was selected: a key needs about {self.units_needed():,} units){self._mark}"

    def error(self, probability: Number = SURE) -> NoReturn:
        """Refused: keys are not numbers."""
        raise NotCovered("keys have no error: answer.units_needed(0.95) is how many units a key needs to be selected")
