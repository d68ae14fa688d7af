"""Which mechanism answers a question, and at which price, by public facts alone.

With a loss, it is the mechanism whose stated error is least (`offered`). With an error, it is the cheapest mechanism
that keeps it (`keeping`): for Laplace and rounded normal noise (below two steps of the grid also for discrete Gaussian
noise), and for both kinds of noisy maximum, the least parameter of four digits is searched for (`reaching`). Whether a
parameter keeps the error is decided by the mechanism's own `answer_error`, the exact law of its noise. The search
starts where that law, computed in floats, puts the parameter: a start that is off costs time, not correctness. Which of
the candidates lowers a session's budget least is for its rule to say (`cheapest` in `ledger/commands.py`).

>>> from counterpoint import Stream, total
>>> stream = Stream(bound=1)
>>> visits = stream.prepare(total())
>>> [fit.mechanism for fit in offered(visits, PureDP(1), stream.relation)], keeping(visits, error=30)[0]
([Laplace(1)], Laplace(0.09819))
>>> reaching(visits, steps=30)
(Laplace(0.09819), Gaussian(mu=0.06427))
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import exp, expm1, floor, inf, log, log1p, log10, sqrt
from statistics import NormalDist

from counterpoint.answers.provenance import SURE, Mechanisms, least_error
from counterpoint.errors import InvalidParameter, InvalidRequest, NotCovered, shown
from counterpoint.ledger.commands import Fit
from counterpoint.measures import ApproxDP, ApproxzCDP, GaussianDP, PureDP, zCDP
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.additive import Gaussian, Laplace
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.mechanisms.noisy_max import NoisyMax
from counterpoint.mechanisms.partition_selection import GaussianSelection, PartitionSelection
from counterpoint.mechanisms.tails import may_fail
from counterpoint.numbers import Number, precision
from counterpoint.numbers.exact import GIVEN_DIGITS, exact, format_number, positive
from counterpoint.privacy.relations import Relation
from counterpoint.queries.request import PreparedQuery, Wants
from counterpoint.session.fit import answering


def _choosers(epsilon: Fraction | None = None, rho: Fraction | None = None) -> Mechanisms:
    """The first has half the noise of the second, and takes only what moves one way."""
    return NoisyMax(epsilon, monotone=True, rho=rho), NoisyMax(epsilon, rho=rho)


def _pure(loss: PureDP) -> dict[Wants, Mechanisms]:
    return {"numbers": (Laplace(loss.epsilon),), "choice": _choosers(epsilon=loss.epsilon)}


def _concentrated(loss: zCDP) -> dict[Wants, Mechanisms]:
    epsilon = Fraction(precision(30)(2 * loss.rho).sqrt().lower)  # PureDP(e) is zCDP(e^2/2)
    choices = *_choosers(rho=loss.rho), *_choosers(epsilon)
    normal, discrete = Gaussian(rho=loss.rho), Gaussian(rho=loss.rho, discrete=True)
    return {"numbers": (normal, discrete, Laplace(epsilon)), "choice": choices}


def _gaussian(loss: GaussianDP) -> dict[Wants, Mechanisms]:
    return {"numbers": (Gaussian(mu=loss.mu) if loss.rho is None else Gaussian(rho=loss.rho),)}


def _approximate(loss: ApproxDP) -> dict[Wants, Mechanisms]:
    pure = _pure(PureDP(loss.epsilon))
    if loss.delta == 0:
        return pure
    gaussian = Gaussian(epsilon=loss.epsilon, delta=loss.delta)
    keys = PartitionSelection(loss.epsilon, loss.delta), GaussianSelection(loss.epsilon, loss.delta)
    return {**pure, "numbers": (*pure["numbers"], gaussian), "keys": keys}


def _approximate_concentrated(loss: ApproxzCDP) -> dict[Wants, Mechanisms]:
    concentrated = _concentrated(zCDP(loss.rho))
    if loss.delta == 0:
        return concentrated
    epsilon = Fraction(precision(30)(2 * loss.rho).sqrt().lower)  # an (e, delta) answer is (e^2/2, delta)
    keys = PartitionSelection(epsilon, loss.delta), GaussianSelection(rho=loss.rho, delta=loss.delta)
    return {**concentrated, "keys": keys}


_OFFERS: Mapping[type[Loss], Callable[..., dict[Wants, Mechanisms]]] = {
    PureDP: _pure,
    zCDP: _concentrated,
    GaussianDP: _gaussian,
    ApproxDP: _approximate,
    ApproxzCDP: _approximate_concentrated,
}
_FARTHEST = 2**60
"""The most steps that an error may be given as: beyond it the search for its price takes minutes, or overflows."""
_WORKS: Mapping[Wants, str] = {
    "numbers": "give a PureDP, a zCDP, a GaussianDP or an ApproxDP, or epsilon=, rho= or mu=",
    "choice": "a candidate is chosen by NoisyMax: give a PureDP, a zCDP or an ApproxDP, or epsilon= or rho=",
    "keys": (
        "keys are selected by PartitionSelection or GaussianSelection, which need a delta: give loss=ApproxDP(1, 1e-6)"
    ),
}


def price(epsilon: Number | None, rho: Number | None, mu: Number | None, loss: Loss | None) -> Loss | None:
    """The one loss that was given, in one of four ways; None if none was."""
    given = [
        name for name, value in (("epsilon", epsilon), ("rho", rho), ("mu", mu), ("loss", loss)) if value is not None
    ]
    if len(given) > 1:
        raise InvalidParameter(f"one price is enough, but {' and '.join(f'{name}=' for name in given)} were given")
    if loss is not None:
        if not isinstance(loss, Loss):
            raise InvalidParameter(
                f"loss= takes a loss, such as PureDP(0.1), not {shown(loss)}; a number is an epsilon="
            )
        return loss
    if epsilon is not None:
        return PureDP(positive(epsilon, "epsilon"))
    if rho is not None:
        return zCDP(positive(rho, "rho"))
    return None if mu is None else GaussianDP(positive(mu, "mu"))


def offered(prepared: PreparedQuery, loss: Loss, relation: Relation) -> tuple[Fit, ...]:
    """The mechanisms that answer this request within this loss, the one with the least error first."""
    if type(loss) not in _OFFERS or not any(loss.amounts):
        raise NotCovered(f"no mechanism is known that spends {loss!r} on one request; {_WORKS[prepared.wants]}")
    suitable = (mechanism for mechanism in _offers(loss).get(prepared.wants, ()) if _suits_grid(mechanism, prepared))
    fits = [answering(mechanism, prepared, relation) for mechanism in suitable]
    found = tuple(fit for fit in fits if fit is not None)
    if not found:
        raise InvalidRequest(f"nothing answers this request at {loss!r}: {_WORKS[prepared.wants]}; nothing was charged")
    return found if len(found) == 1 else tuple(sorted(found, key=lambda fit: least_error(fit.mechanism, prepared)))


_FINE = 4
"""From this variance on, in steps of the grid squared, that of a rounded normal is at most 2 % more (by 1/12)."""


def _suits_grid(mechanism: Mechanism, prepared: PreparedQuery) -> bool:
    """Whether the discrete Gaussian is worth its price in Gaussian DP: its variance is public, and below two steps."""
    if not is_discrete(mechanism):
        return True
    assert isinstance(mechanism, Gaussian) and mechanism.rho is not None
    return prepared.squared < _FINE * 2 * mechanism.rho


def is_discrete(mechanism: Mechanism) -> bool:
    """Whether it is a discrete Gaussian, which has no Gaussian DP."""
    return isinstance(mechanism, Gaussian) and mechanism.discrete


@lru_cache(maxsize=256)
def _offers(loss: Loss) -> Mapping[Wants, Mechanisms]:
    """What a loss buys; an epsilon and a delta take milliseconds to become a Gaussian."""
    return _OFFERS[type(loss)](loss)


def keeping(
    prepared: PreparedQuery,
    error: Number,
    probability: Number = SURE,
    *,
    simultaneous: bool = False,
    in_rows: bool = False,
    rows: int | None = None,
) -> Mechanisms:
    """The mechanisms that answer this request, each at the least price that keeps this error (`reaching`)."""
    return reaching(prepared, _steps(prepared, error, in_rows, rows), probability, simultaneous=simultaneous)


def _steps(prepared: PreparedQuery, error: Number, in_rows: bool, rows: int | None) -> int:
    """The wanted error in steps of the grid, rounded down; a refusal where a request has no stated error."""
    wanted = exact(error, "rank_error" if in_rows else "error")
    if wanted < 0:
        raise InvalidParameter(f"error must be at least 0, but {format_number(wanted)} was given")
    if prepared.wants == "keys":
        raise NotCovered(f"selected keys have no error: {_WORKS['keys']}")
    if prepared.wants == "choice" and not in_rows:
        raise NotCovered(
            "a choice has no error in units: give rank_error=20 for a rank within 20 rows, or an epsilon=; or ask for "
            "ranks(...) with error=, and quantile_from makes a quantile of them"
        )
    if prepared.wants == "numbers" and in_rows:
        raise InvalidParameter("rank_error= is about a chosen candidate, such as a median; give error= for numbers")
    steps = prepared.steps_keeping(wanted, rows)  # refuses where the error depends on the answer
    if steps > _FARTHEST:
        raise InvalidParameter(
            f"an error of {format_number(wanted)} is more than 2^60 steps of the grid: ask for a smaller one"
        )
    return steps


_FAR = GIVEN_DIGITS - 3  # a number of four digits has three decimal places more
"""A parameter is searched for between 10^-60 and 10^60."""
_DECADE = 9000
"""How many numbers of four digits have the same power of ten."""
_SMALL = 5
"""Below this deviation the law of discrete Gaussian noise differs from that of a rounded normal."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is asked of the noise: that `numbers` numbers are within `steps` but for a chance; on public facts."""

    prepared: PreparedQuery
    steps: int
    fails: float
    numbers: int

    @property
    def each_fails(self) -> float:
        """With what chance each number may be farther off."""
        return self.fails if self.numbers == 1 or self.fails == 1 else -expm1(log1p(-self.fails) / self.numbers)


def reaching(
    prepared: PreparedQuery, steps: int, probability: Number = "0.95", *, simultaneous: bool = False
) -> tuple[Mechanism, ...]:
    """The mechanisms that answer this request, each at the least price that keeps an error of `steps` steps."""
    fails = float(may_fail(probability))
    numbers = (prepared.width or 1) if simultaneous else prepared.simultaneous_values
    wanted = _Wanted(prepared, steps, fails, numbers)
    message = prepared.message()

    def keeps(mechanism: Mechanism) -> bool:
        return mechanism.answer_error(message, probability, wanted.numbers) <= steps

    ways = _CHOICES if prepared.wants == "choice" else _NUMBERS
    found = (_cheapest(make, keeps, start(wanted)) for make, start in ways)
    return tuple(mechanism for mechanism in found if _suits_grid(mechanism, prepared))


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
    (lambda rho: Gaussian(rho=rho, discrete=True), _discrete_gaussian),
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
