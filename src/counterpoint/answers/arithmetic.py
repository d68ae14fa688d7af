"""Arithmetic with answers: sums, differences, products and ratios that know their error.

Answers are released numbers, so that arithmetic with them is postprocessing and costs nothing. The error follows from
the errors of the answers: with the stated probability all of them hold at once, and then the true result lies between
the least and the largest value of the formula over the box that these errors span.

- Answers of one release share its noise law; their errors hold at once by that law. Over several releases the chances
  of a miss add up (the union bound), so the noises of different releases need not be independent.
- A linear formula takes its extremes at corners of the box, and so does a ratio of two linear formulas whose
  denominator has one sign. There the ends are exact, also where an answer occurs twice, as in `a / (a + b)`.
- Any other formula is bounded by interval arithmetic, which is valid and may be wider.

>>> import counterpoint as cp
>>> session = cp.Session(cp.datasets.people_table(), within=cp.PureDP(10))
>>> adults = session.ask(cp.count(where="age >= 18"), epsilon=1)
>>> everybody = session.ask(cp.count(), epsilon=1)
>>> share = 100 * adults / everybody
>>> share.error(0.95) < 0.5, share.interval(0.95)[0] < share < share.interval(0.95)[1]
(True, True)
>>> (everybody - adults).error(), adults.error() + everybody.error()
(8, 6)
"""

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, nextafter
from numbers import Rational
from typing import Any, TypeAlias

from counterpoint.answers.frame import show, written
from counterpoint.answers.provenance import SURE, Provenance
from counterpoint.errors import InvalidParameter
from counterpoint.numbers import Exact, Number
from counterpoint.numbers.exact import exact, format_number

Ends: TypeAlias = tuple[Fraction, Fraction]
"""The least and the largest value."""


@dataclass(frozen=True, slots=True, eq=False)
class AnswerTerm:
    """One answer in a formula: its value and its provenance. Two answers differ, even where they are equal numbers."""

    value: Fraction
    provenance: Provenance


Errors: TypeAlias = Mapping[AnswerTerm, Fraction]


def joint_errors(answers: Collection[AnswerTerm], probability: Number) -> Errors:
    """How far off each answer is at most, with this probability for all of them at once."""
    releases: dict[int, list[AnswerTerm]] = {}
    for answer in answers:
        releases.setdefault(id(answer.provenance.known), []).append(answer)  # every cell of a release shares this
    sure = exact(probability, "the probability")
    each = 1 - (1 - sure) / max(1, len(releases))
    return {answer: error for release in releases.values() for answer, error in _of_a_release(release, each)}


def _of_a_release(answers: list[AnswerTerm], sure: Fraction) -> Iterator[tuple[AnswerTerm, Fraction]]:
    provenance = answers[0].provenance
    numbers = sum(answer.provenance.prepared.simultaneous_values for answer in answers)
    steps = provenance.steps_of(min(numbers, provenance.asked.width or 1), sure)
    for answer in answers:
        prepared, released = answer.provenance.prepared, answer.provenance.released
        yield answer, Fraction(prepared.error_from(released, steps))


class Formula:
    """A formula of answers: its value, the answers in it, and its range if no answer is off by more than its error."""

    @property
    @abstractmethod
    def value(self) -> Fraction:
        """The result for the answers as they are."""

    @property
    @abstractmethod
    def answers(self) -> frozenset[AnswerTerm]:
        """The answers in it."""

    @abstractmethod
    def ends(self, errors: Errors) -> Ends | None:
        """An interval that holds the result for all values within the errors; None where a denominator may be 0."""


@dataclass(frozen=True, slots=True)
class Linear(Formula):
    """A constant plus multiples of answers."""

    constant: Fraction
    terms: Mapping[AnswerTerm, Fraction] = field(default_factory=dict)

    @property
    def value(self) -> Fraction:
        """The constant plus the multiples."""
        return self.constant + sum(times * answer.value for answer, times in self.terms.items())

    @property
    def answers(self) -> frozenset[AnswerTerm]:
        """The answers that are left; `a - a` has none."""
        return frozenset(self.terms)

    def ends(self, errors: Errors) -> Ends:
        """The value, less and plus each error times the size of its multiple."""
        value, off = self.value, sum(abs(times) * errors[answer] for answer, times in self.terms.items())
        return value - off, value + off

    def plus(self, other: "Linear", times: Fraction) -> "Linear":
        """The sum of it and a multiple of another."""
        terms = {
            answer: self.terms.get(answer, Fraction(0)) + times * other.terms.get(answer, Fraction(0))
            for answer in {**self.terms, **other.terms}
        }
        kept = {answer: multiple for answer, multiple in terms.items() if multiple}
        return Linear(self.constant + times * other.constant, kept)

    def highest_corner(self, errors: Errors) -> dict[AnswerTerm, Fraction]:
        """The values within the errors at which it is largest."""
        return {
            answer: answer.value + (errors[answer] if times > 0 else -errors[answer])
            for answer, times in self.terms.items()
        }

    def at(self, values: Mapping[AnswerTerm, Fraction]) -> Fraction:
        """The result for other values; an answer that is not named stays as it is."""
        return self.constant + sum(times * values.get(answer, answer.value) for answer, times in self.terms.items())


@dataclass(frozen=True, slots=True)
class Ratio(Formula):
    """A linear formula over another."""

    above: Linear
    below: Linear

    @property
    def value(self) -> Fraction:
        """The ratio; `ZeroDivisionError` where the denominator is 0."""
        return self.above.value / self.below.value

    @property
    def answers(self) -> frozenset[AnswerTerm]:
        """Those of both."""
        return self.above.answers | self.below.answers

    def ends(self, errors: Errors) -> Ends | None:
        """The exact ends, if the denominator has one sign."""
        low, high = self.below.ends(errors)
        if low <= 0 <= high:
            return None
        sign = Fraction(1 if low > 0 else -1)
        zero = Linear(Fraction(0))
        above, below = zero.plus(self.above, sign), zero.plus(self.below, sign)
        return -_largest_ratio(zero.plus(above, Fraction(-1)), below, errors), _largest_ratio(above, below, errors)


def _largest_ratio(above: Linear, below: Linear, errors: Errors) -> Fraction:
    """The largest ratio over the box, whose denominator is positive there.

    A ratio r is exceeded somewhere just if `above - r below` is positive somewhere, and that is linear: so it is
    positive at the corner where it is largest. The ratio at that corner is the next r. It rises with each step, and
    there are finitely many corners (Dinkelbach's method).
    """
    ratio = above.value / below.value
    while True:
        corner = above.plus(below, -ratio).highest_corner(errors)
        higher = above.at(corner) / below.at(corner)
        if higher <= ratio:
            return ratio
        ratio = higher


@dataclass(frozen=True, slots=True)
class Combined(Formula):
    """Two formulas and what joins them: their ranges are combined, which may be wider than the range of both."""

    operation: Callable[[Fraction, Fraction], Fraction]
    left: Formula
    right: Formula

    @property
    def value(self) -> Fraction:
        """The result."""
        return self.operation(self.left.value, self.right.value)

    @property
    def answers(self) -> frozenset[AnswerTerm]:
        """Those of both."""
        return self.left.answers | self.right.answers

    def ends(self, errors: Errors) -> Ends | None:
        """The least and the largest result of ends: each operation is monotone in each of its sides."""
        left, right = self.left.ends(errors), self.right.ends(errors)
        if left is None or right is None or (self.operation is _over and right[0] <= 0 <= right[1]):
            return None
        corners = [self.operation(a, b) for a in left for b in right]
        return min(corners), max(corners)


def _plus(a: Fraction, b: Fraction) -> Fraction:
    return a + b


def _minus(a: Fraction, b: Fraction) -> Fraction:
    return a - b


def _times(a: Fraction, b: Fraction) -> Fraction:
    return a * b


def _over(a: Fraction, b: Fraction) -> Fraction:
    return a / b


def added(a: Formula, b: Formula, sign: int) -> Formula:
    """The sum, or with `sign=-1` the difference."""
    if isinstance(a, Linear) and isinstance(b, Linear):
        return a.plus(b, Fraction(sign))
    return Combined(_plus if sign > 0 else _minus, a, b)


def multiplied(a: Formula, b: Formula) -> Formula:
    """The product."""
    if isinstance(a, Linear) and not a.terms:
        return _scaled(b, a.constant)
    if isinstance(b, Linear) and not b.terms:
        return _scaled(a, b.constant)
    return Combined(_times, a, b)


def _scaled(formula: Formula, times: Fraction) -> Formula:
    zero = Linear(Fraction(0))
    if isinstance(formula, Linear):
        return zero.plus(formula, times)
    if isinstance(formula, Ratio):
        return Ratio(zero.plus(formula.above, times), formula.below)
    return Combined(_times, Linear(times), formula)


def divided(a: Formula, b: Formula) -> Formula:
    """The ratio."""
    if b.value == 0:
        raise ZeroDivisionError("division by an answer, or by a number, that is 0")
    if isinstance(b, Linear) and not b.terms:
        return _scaled(a, 1 / b.constant)
    return Ratio(a, b) if isinstance(a, Linear) and isinstance(b, Linear) else Combined(_over, a, b)


class Arithmetic:
    """A number that is computed from answers, or is one: `+`, `-`, `*` and `/` keep the error."""

    __slots__ = ()
    units: str | None
    made_up: bool

    @abstractmethod
    def _formula(self) -> Formula:
        """The formula whose value it is."""

    def interval(self, probability: Number = SURE) -> tuple[int | float, int | float]:
        """The ends between which the true number is, with this probability; floats are rounded outward.

        >>> import counterpoint as cp
        >>> visits = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1)).ask(cp.total(), epsilon=0.1)
        >>> visits.interval(0.95) == (visits - 30, visits + 30)
        True
        """
        formula = self._formula()
        ends = formula.ends(joint_errors(formula.answers, probability))
        if ends is None:
            return -inf, inf
        return (int(ends[0]), int(ends[1])) if isinstance(self, int) else (_outward(ends[0], -1), _outward(ends[1], 1))

    def __add__(self, other: Any) -> Any:
        return _joined(self, other, lambda a, b: added(a, b, 1), _same_units)

    def __radd__(self, other: Any) -> Any:
        return _joined(self, other, lambda a, b: added(b, a, 1), _same_units)

    def __sub__(self, other: Any) -> Any:
        return _joined(self, other, lambda a, b: added(a, b, -1), _same_units)

    def __rsub__(self, other: Any) -> Any:
        return _joined(self, other, lambda a, b: added(b, a, -1), _same_units)

    def __mul__(self, other: Any) -> Any:
        return _joined(self, other, multiplied, _units_of_a_multiple)

    def __rmul__(self, other: Any) -> Any:
        return _joined(self, other, lambda a, b: multiplied(b, a), _units_of_a_multiple)

    def __truediv__(self, other: Any) -> Any:
        return _joined(self, other, divided, _units_of_a_multiple, whole=False)

    def __rtruediv__(self, other: Any) -> Any:
        return _joined(self, other, lambda a, b: divided(b, a), _no_units, whole=False)

    def __neg__(self) -> Any:
        return 0 - self


def _same_units(a: Arithmetic, b: Arithmetic | None) -> str | None:
    return a.units if b is None or a.units == b.units else None


def _units_of_a_multiple(a: Arithmetic, b: Arithmetic | None) -> str | None:
    return a.units if b is None else None


def _no_units(a: Arithmetic, b: Arithmetic | None) -> None:
    return None


def _joined(
    number: Arithmetic,
    other: object,
    join: Callable[[Formula, Formula], Formula],
    units: Callable[[Arithmetic, Arithmetic | None], str | None],
    *,
    whole: bool = True,
) -> Any:
    """The result of an operation with another number, which may be computed from answers, too."""
    if isinstance(other, Arithmetic):
        formula, second = other._formula(), other
    elif isinstance(other, float | Rational):
        formula, second = Linear(_rational(other)), None
    else:
        return NotImplemented
    result = join(number._formula(), formula)
    made_up = number.made_up or (second is not None and second.made_up)
    integral = whole and isinstance(number, int) and isinstance(other, int)
    return computed(result, units(number, second), integral=integral, made_up=made_up)


def _rational(number: float | Rational) -> Fraction:
    """A float is the decimal that a person typed."""
    if isinstance(number, float):
        return exact(number, "a number beside an answer")
    return Fraction(int(number.numerator), int(number.denominator))


def _outward(end: Fraction, direction: int) -> float:
    near = float(end)
    inside = near > end if direction < 0 else near < end
    return nextafter(near, direction * inf) if inside else near


def read_ratio(given: Number, what: str = "signal_to_noise") -> Fraction:
    """A signal-to-noise ratio, which is at least 0."""
    ratio = exact(given, what)
    if ratio < 0:
        raise InvalidParameter(f"{what} must be at least 0, but {format_number(ratio)} was given")
    return ratio


class Computed(Arithmetic):
    """A number that is computed from answers: it knows its error, and else it is an int or a float."""

    _of: Formula
    units: str | None
    made_up: bool

    def _formula(self) -> Formula:
        return self._of

    @property
    def exact(self) -> Exact:
        """The rational that the formula gives for the released numbers."""
        return Exact(self._of.value)

    def error(self, probability: Number = SURE) -> int | float:
        """How far off it is at most, with this probability; infinite where a denominator could be 0."""
        ends = self._of.ends(joint_errors(self._of.answers, probability))
        if ends is None:
            return inf
        off = max(self._of.value - ends[0], ends[1] - self._of.value)
        return int(off) if isinstance(self, int) else _outward(off, 1)

    @property
    def mostly_noise(self) -> bool:
        """Whether it is smaller than its error at 95 %."""
        return abs(float(self._of.value)) < self.error()

    def suppress(self, signal_to_noise: Number) -> "Computed | None":
        """The number itself, or None if it is less than `signal_to_noise` times its error at 95 %."""
        ratio, error = read_ratio(signal_to_noise), self.error()
        return self if ratio == 0 or (error < inf and abs(self._of.value) >= ratio * Fraction(error)) else None

    def __copy__(self) -> "Computed":
        return self

    def __deepcopy__(self, known: object) -> "Computed":
        return self


class ComputedInt(Computed, int):
    """A whole number that is computed from answers.

    >>> import counterpoint as cp
    >>> visits = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1)).ask(cp.total(), epsilon=1)
    >>> isinstance(visits + 1, cp.answers.ComputedInt), (visits - visits).error()
    (True, 0)
    """

    def __repr__(self) -> str:
        return show(str(int(self)), str(self.error()), self.units, self.mostly_noise, self.made_up)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return int.__format__(int(self), spec)

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)


class ComputedFloat(Computed, float):
    """A number that is computed from answers; the float is the nearest to its `exact` value."""

    def __repr__(self) -> str:
        return show(*written(float(self), self.error()), self.units, self.mostly_noise, self.made_up)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return float.__format__(float(self), spec)

    def __reduce__(self) -> tuple[type[float], tuple[float]]:
        return float, (float(self),)


def computed(formula: Formula, units: str | None, *, integral: bool, made_up: bool) -> ComputedInt | ComputedFloat:
    """The value of a formula, with what is known of it."""
    number = ComputedInt(formula.value) if integral else ComputedFloat(formula.value)
    number._of, number.units, number.made_up = formula, units, made_up
    return number
