"""The price of an error: for each mechanism, the least parameter of four digits that keeps it.

Whether a parameter keeps an error is decided by the mechanism's own `answer_error`, the exact law of its noise. The
search starts where that law, computed in floats, puts the parameter: a start that is off costs time, not correctness.

>>> from counterpoint import Stream, total
>>> visits = Stream(bound=1).prepare(total())
>>> reaching(visits, steps=30)
(Laplace(0.09819), Gaussian(mu=0.06427), Gaussian(rho=0.002065))
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import exp, expm1, floor, inf, log, log1p, log10, sqrt
from statistics import NormalDist

from counterpoint.errors import InvalidParameter
from counterpoint.mechanisms.additive import Gaussian, Laplace
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.mechanisms.selecting.noisy_max import NoisyMax
from counterpoint.mechanisms.tails import may_fail
from counterpoint.numbers import Number
from counterpoint.numbers.exact import GIVEN_DIGITS
from counterpoint.sources.source import Prepared

_FAR = GIVEN_DIGITS - 3  # a number of four digits has three decimal places more
"""A parameter is searched for between 10^-60 and 10^60."""
_DECADE = 9000
"""How many numbers of four digits have the same power of ten."""
_SMALL = 5
"""Below this deviation the law of discrete Gaussian noise differs from that of a rounded normal."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is asked of the noise: that `numbers` numbers are within `steps` but for a chance; on public facts."""

    prepared: Prepared
    steps: int
    fails: float
    numbers: int

    @property
    def each_fails(self) -> float:
        """With what chance each number may be farther off."""
        return self.fails if self.numbers == 1 or self.fails == 1 else -expm1(log1p(-self.fails) / self.numbers)


def reaching(
    prepared: Prepared, steps: int, probability: Number = "0.95", *, simultaneous: bool = False
) -> tuple[Mechanism, ...]:
    """The mechanisms that answer this request, each at the least price that keeps an error of `steps` steps."""
    fails = float(may_fail(probability))
    wanted = _Wanted(prepared, steps, fails, (prepared.width or 1) if simultaneous else 1)
    message = prepared.message()

    def keeps(mechanism: Mechanism) -> bool:
        return mechanism.answer_error(message, probability, wanted.numbers) <= steps

    ways = _CHOICES if prepared.wants == "choice" else _NUMBERS
    return tuple(_cheapest(make, keeps, start(wanted)) for make, start in ways)


def _laplace(wanted: _Wanted) -> float:
    """The epsilon: 2 q^(m+1)/(1+q) is the chance, q = e^(-epsilon/sensitivity)."""
    rate = 1.0
    for _ in range(20):
        rate = max(log(2 / (wanted.each_fails * (1 + exp(-rate)))) / (wanted.steps + 1), 1e-60)
    return rate * wanted.prepared.sensitivity


def _normal_deviation(wanted: _Wanted) -> float:
    """The deviation of a normal number that is beyond m + 1/2 with this chance."""
    return (wanted.steps + 0.5) / max(-NormalDist().inv_cdf(max(wanted.each_fails / 2, 1e-300)), 1e-60)


def _rounded_normal(wanted: _Wanted) -> float:
    """The mu."""
    return sqrt(wanted.prepared.squared) / _normal_deviation(wanted)


def _discrete_gaussian(wanted: _Wanted) -> float:
    """The rho: the tail is that of a normal number where the deviation is large, and is added up where it is small."""
    deviation = _normal_deviation(wanted)
    variance = deviation**2 if deviation > _SMALL else _middle(lambda v: _tail(v, wanted.steps), wanted.each_fails)
    return wanted.prepared.squared / (2 * variance)


def _tail(variance: float, m: int) -> float:
    terms = [exp(-z * z / (2 * variance)) for z in range(1, m + 12 * _SMALL)]
    return 2 * sum(terms[m:]) / (1 + 2 * sum(terms))


def _exponential(wanted: _Wanted) -> float:
    """The rho: the odds of the others are (d - 1) e^(-(m+1)/scale)."""
    odds = log(max((_candidates(wanted) - 1) * (1 - wanted.fails) / wanted.fails, 1.0))
    return _rate(odds, wanted) ** 2 / 8


def _permute_and_flip(wanted: _Wanted) -> float:
    """The epsilon: a wrong one is chosen with chance 1 - (1 - (1-r)^d)/(d r), r = e^(-(m+1)/scale)."""
    d = _candidates(wanted)

    def wrong(r: float) -> float:
        return 1 + expm1(d * log1p(-r)) / (d * r)

    return _rate(-log(_middle(wrong, wanted.fails, most=1 - 1e-12)), wanted)


def _candidates(wanted: _Wanted) -> int:
    return (wanted.prepared.width or 1) // wanted.prepared.cells


def _rate(distance: float, wanted: _Wanted) -> float:
    """The epsilon of one ask at which a score that is m + 1 lower is so far away, in scales of 2 each/epsilon."""
    return max(2 * (wanted.prepared.each or 1) * distance / (wanted.steps + 1), 1e-60)


def _middle(rising: Callable[[float], float], goal: float, most: float = 1e3) -> float:
    """Where a rising function reaches a goal, in floats."""
    low, high = 1e-12, most
    for _ in range(60):
        middle = sqrt(low * high)
        low, high = (low, middle) if rising(middle) > goal else (middle, high)
    return sqrt(low * high)


Maker = Callable[[Fraction], Mechanism]
_Way = tuple[Maker, Callable[[_Wanted], float]]
_NUMBERS: tuple[_Way, ...] = (
    (Laplace, _laplace),
    (lambda mu: Gaussian(mu=mu), _rounded_normal),
    (lambda rho: Gaussian(rho=rho), _discrete_gaussian),
)
_CHOICES: tuple[_Way, ...] = (
    (NoisyMax, _permute_and_flip),
    (lambda rho: NoisyMax(rho=rho), _exponential),
)


def _cheapest(make: Maker, keeps: Callable[[Mechanism], bool], start: float) -> Mechanism:
    """The mechanism of the least parameter of four digits that keeps the error; less noise keeps it, too."""
    low, high = -_FAR * _DECADE, _FAR * _DECADE

    def enough(place: int) -> bool:
        return place >= low and (place > high or keeps(make(_parameter(place))))

    place, stride = min(max(_place(start), low), high), 1
    if enough(place):
        while enough(place - stride):
            place, stride = place - stride, 2 * stride
        short, found = place - stride, place
    else:
        while not enough(place + stride):
            place, stride = place + stride, 2 * stride
        short, found = place, place + stride
    while found - short > 1:
        middle = (short + found) // 2
        short, found = (short, middle) if enough(middle) else (middle, found)
    if found > high:
        raise InvalidParameter(f"no parameter up to 1e{_FAR} keeps this error with this probability: ask for less")
    return make(_parameter(max(found, low)))


def _parameter(place: int) -> Fraction:
    """The numbers of four digits in ascending order, of which 1 has place 0.

    >>> [float(_parameter(place)) for place in (-1, 0, 1, 9000)]
    [0.9999, 1.0, 1.001, 10.0]
    """
    power, digits = divmod(place, _DECADE)
    return (1000 + digits) * Fraction(10) ** (power - 3)


def _place(parameter: float) -> int:
    """The place of a number of four digits near this one.

    >>> _place(1.0015), _place(0.99991)
    (1, -1)
    """
    if not 0 < parameter < inf:
        return 0
    power = floor(log10(parameter))
    return power * _DECADE + floor(parameter / 10.0**power * 1000) - 1000
