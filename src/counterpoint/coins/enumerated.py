"""EnumeratedCoins: run a function of coins over every outcome, with its exact probability.

The function is run again and again, each time along another path of outcomes. Probabilities are exact rationals where
the law is rational (bernoulli, integer, logistic at 0); others are certified, rounded to about 60 digits, and `error`
bounds by how much they are off in all. An infinite support is cut symmetrically where its tail holds at most `cut`; cut
outcomes are dropped, never lumped onto others, and their mass is reported. Sub-experiments (`call`) on plain data are
computed once and remembered.

An experiment must be a function of its coins. Each run is therefore repeated on the same outcomes, in the reverse
order: one that tosses coins of its own, reads a clock or counts its runs comes out differently, and is refused.

>>> law = EnumeratedCoins().law(lambda coins: coins.integer(2) + coins.integer(2))
>>> [(outcome, str(probability)) for outcome, probability in law]
[(0, '1/4'), (1, '1/2'), (2, '1/4')]
>>> law.error, law.cut
(Fraction(0, 1), Fraction(0, 1))
>>> options = laplace_options(Fraction(1), Fraction(1, 100))
>>> [z for z, _ in options.outcomes], options.error < Fraction(1, 10**50)
([0, 1, -1, 2, -2, 3, -3, 4, -4], True)
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import chain, cycle, islice
from math import ceil, isqrt
from types import FunctionType, MethodType
from typing import Any, Generic, TypeVar, overload

import numpy as np

from counterpoint.coins.coins import Flags, Integers, read_lags
from counterpoint.encoding import Tagged, encode
from counterpoint.errors import CounterpointError, Interruption, InvalidParameter, TapeMismatch
from counterpoint.numbers import Interval, Number, normal_cell, normal_tail, precision
from counterpoint.numbers.exact import at_least, positive_scale, probability, whole

R = TypeVar("R")
_REPEATS, _MANY, _FEW = 32, 2000, 4
"""How often the runs of an experiment are repeated at least: `_REPEATS` times, a hidden fair coin passes with
probability 2^-32. After `_MANY` repeats of many experiments, so that large games stay cheap, `_FEW` times each."""
_CHOICES = 1000
"""How many draws with more than one outcome a run may make: beyond that it is a loop that some path never leaves."""


@dataclass(frozen=True)
class Law(Generic[R]):
    """The law of an experiment: outcomes with their probabilities, in order of first appearance.

    `error` bounds the sum over all outcomes of |stated - true probability|; `cut` is the dropped mass, up to `error`.
    """

    outcomes: tuple[tuple[R, Fraction], ...]
    error: Fraction

    @property
    def cut(self) -> Fraction:
        """The probability of the outcomes that were dropped with infinite tails."""
        return 1 - sum((p for _, p in self.outcomes), Fraction(0))

    def __iter__(self) -> Iterator[tuple[R, Fraction]]:
        return iter(self.outcomes)

    def __len__(self) -> int:
        return len(self.outcomes)


class EnumeratedCoins:
    """All outcomes of experiments on coins, exactly.

    >>> coins = EnumeratedCoins(cut="1e-6")
    >>> law = coins.law(lambda coins: coins.discrete_laplace(1))
    >>> 0 < law.cut <= Fraction(1, 10**6), law.error < Fraction(1, 10**50)
    (True, True)
    """

    def __init__(self, cut: Number = Fraction(1, 10**9)) -> None:
        self.cut = probability(cut, "the cut mass")
        if self.cut == 0:
            raise InvalidParameter("the cut mass must be above 0: noise has infinitely many outcomes")
        self._known: dict[bytes, Law[Any]] = {}
        self._repeats = 0
        self.repeating = True
        """Whether runs are repeated on equal outcomes, as they are unless what they give is compared otherwise."""

    def law(self, experiment: Callable[..., R], *args: object) -> Law[R]:
        """The law of `experiment(*args, coins)`, remembered where the experiment and its arguments are plain data."""
        key = _key(experiment, args)
        if key is None:
            return self._enumerate(experiment, args)
        if key not in self._known:
            self._known[key] = self._enumerate(experiment, args)
        return self._known[key]

    def _along(self, path: tuple[int, ...]) -> "Run":
        return Run(self, path)

    def _enumerate(self, experiment: Callable[..., R], args: tuple[object, ...]) -> Law[R]:
        merged: dict[bytes, tuple[R, Fraction]] = {}
        error, runs = Fraction(0), list[tuple[tuple[int, ...], int]]()
        waiting: list[tuple[int, ...]] = [()]
        while waiting:
            run = self._along(waiting.pop())
            outcome = _as_plain(experiment(*args, run))
            waiting.extend(run.siblings())
            error = max(error, run.error)
            key = encode(outcome, sealed=True)
            before = merged[key][1] if key in merged else Fraction(0)
            merged[key] = (outcome, before + run.probability)
            runs.append((run.path, hash(key)))
        if self.repeating:
            self._repeat(experiment, args, runs)
        return Law(tuple(merged.values()), error)

    def _repeat(
        self, experiment: Callable[..., R], args: tuple[object, ...], runs: list[tuple[tuple[int, ...], int]]
    ) -> None:
        """Run the experiment on the same outcomes again: each once, and a few of them until that is often enough."""
        more = (_REPEATS if self._repeats < _MANY else _FEW) - len(runs)
        self._repeats += len(runs) + max(0, more)
        kept = list[object]()
        for path, before in chain(reversed(runs), islice(cycle(runs), max(0, more))):
            again = self._along(path)
            kept.append(object())  # where a repeat finds memory is not where the last one did
            try:
                same = hash(encode(_as_plain(experiment(*args, again)), sealed=True)) == before and again.path == path
            except (Exception, Interruption):  # the first run on these outcomes raised nothing
                same = False
            if not same:
                raise TapeMismatch(
                    "run twice on equal coins, this came out differently: it tosses coins of its own, reads a clock, "
                    "or remembers its runs; draw from `coins` alone, and keep what changes in the state"
                )


@dataclass(frozen=True)
class Options(Generic[R]):
    """Outcomes with stated probabilities; `error` bounds the sum of what these are off by."""

    outcomes: tuple[tuple[R, Fraction], ...]
    error: Fraction = Fraction(0)


class Run:
    """One execution along a prescribed path of choices; past its end, the first option is taken each time."""

    def __init__(self, world: EnumeratedCoins, path: tuple[int, ...]) -> None:
        self._world = world
        self._path = path
        self._widths: list[int] = []
        self._choices = 0
        self.probability = Fraction(1)
        self.error = Fraction(0)

    @property
    def path(self) -> tuple[int, ...]:
        """The number of the outcome that was taken at each draw."""
        return (*self._path[: len(self._widths)], *(0 for _ in self._widths[len(self._path) :]))

    def siblings(self) -> Iterator[tuple[int, ...]]:
        """The paths that branch off this one beyond its prescribed part, the nearest to the next path last."""
        taken = self.path
        for depth in range(len(self._path), len(self._widths)):
            for other in range(self._widths[depth] - 1, 0, -1):
                yield (*taken[:depth], other)

    def take(self, options: Options[R]) -> R:
        """The outcome that the path prescribes here, or the first one past its end."""
        depth = len(self._widths)
        self._widths.append(len(options.outcomes))
        self._choices += len(options.outcomes) > 1
        if self._choices > _CHOICES:
            raise InvalidParameter(
                f"a run draws more than {_CHOICES} times, as a loop does that ends by chance: its outcomes are not "
                "finitely many; draw a number of tosses at once (coins.geometric), or bound the loop"
            )
        outcome, chance = options.outcomes[self._path[depth] if depth < len(self._path) else 0]
        self.probability *= chance
        # Replacing one draw's law by its rounding moves the law of the whole by at most that draw's error (a hybrid
        # argument), so a path's errors add up and the worst path bounds them all.
        self.error += options.error
        return outcome

    @overload
    def bernoulli(self, p: Number, size: None = None) -> bool: ...
    @overload
    def bernoulli(self, p: Number, size: int) -> Flags: ...
    def bernoulli(self, p: Number, size: int | None = None) -> bool | Flags:
        """Both outcomes that are possible."""
        chance = probability(p, "p")
        both = ((True, chance), (False, 1 - chance))
        options = Options(tuple((value, q) for value, q in both if q))
        if size is None:
            return self.take(options)
        return np.array([self.take(options) for _ in range(whole(size, 0, "size"))], dtype=np.bool_)

    def logistic(self, epsilon: Number) -> bool:
        """Both outcomes."""
        return self.take(logistic_options(at_least(epsilon, 0, "epsilon")))

    @overload
    def integer(self, n: int, size: None = None) -> int: ...
    @overload
    def integer(self, n: int, size: int) -> Integers: ...
    def integer(self, n: int, size: int | None = None) -> int | Integers:
        """Each of the n outcomes."""
        n = whole(n, 1, "n")
        return self._draw(Options(tuple((value, Fraction(1, n)) for value in range(n))), size)

    @overload
    def discrete_laplace(self, scale: Number, size: None = None) -> int: ...
    @overload
    def discrete_laplace(self, scale: Number, size: int) -> Integers: ...
    def discrete_laplace(self, scale: Number, size: int | None = None) -> int | Integers:
        """Every outcome above the cut."""
        return self._draw(laplace_options(positive_scale(scale, "scale"), self._world.cut), size)

    @overload
    def discrete_gaussian(self, sigma2: Number, size: None = None) -> int: ...
    @overload
    def discrete_gaussian(self, sigma2: Number, size: int) -> Integers: ...
    def discrete_gaussian(self, sigma2: Number, size: int | None = None) -> int | Integers:
        """Every outcome above the cut."""
        return self._draw(gaussian_options(positive_scale(sigma2, "sigma2"), self._world.cut), size)

    @overload
    def rounded_normal(self, sigma2: Number, size: None = None) -> int: ...
    @overload
    def rounded_normal(self, sigma2: Number, size: int) -> Integers: ...
    def rounded_normal(self, sigma2: Number, size: int | None = None) -> int | Integers:
        """Every outcome above the cut."""
        return self._draw(rounded_normal_options(positive_scale(sigma2, "sigma2"), self._world.cut), size)

    @overload
    def geometric(self, scale: Number, size: None = None) -> int: ...
    @overload
    def geometric(self, scale: Number, size: int) -> Integers: ...
    def geometric(self, scale: Number, size: int | None = None) -> int | Integers:
        """Geometric noise, cut where little mass is left."""
        return self._draw(geometric_options(positive_scale(scale, "scale"), self._world.cut), size)

    def choose(self, lags: Sequence[Number]) -> int:
        """Every index, with its probability."""
        return self.take(choice_options(read_lags(lags)))

    def _draw(self, options: Options[int], size: int | None) -> int | Integers:
        if size is None:
            return self.take(options)
        return np.array([self.take(options) for _ in range(whole(size, 0, "size"))], dtype=np.int64)

    def call(self, experiment: Callable[..., R], *args: object) -> R:
        """The outcomes of the sub-experiment, from its law where that can be remembered."""
        if _key(experiment, args) is None:
            return experiment(*args, self)
        law = self._world.law(experiment, *args)
        return self.take(Options(law.outcomes, law.error))


def _as_plain(outcome: Any) -> Any:
    return tuple(outcome.tolist()) if isinstance(outcome, np.ndarray) else outcome


def _key(experiment: Callable[..., object], args: tuple[object, ...]) -> bytes | None:
    """What names an experiment on plain data for good, or None where nothing does (closures, lambdas, objects)."""
    owner = experiment.__self__ if isinstance(experiment, MethodType) else None
    function = experiment.__func__ if isinstance(experiment, MethodType) else experiment
    if not isinstance(function, FunctionType) or function.__closure__ or function.__name__ == "<lambda>":
        return None
    if owner is not None and not isinstance(owner, Tagged):
        return None
    try:
        return encode((function.__module__, function.__qualname__, owner, args), sealed=True)
    except (CounterpointError, TypeError):
        return None


_DIGITS = 60
_MOST = 10**5


def _rounded(outcomes: list[tuple[R, Interval]]) -> Options[R]:
    stated = tuple((value, Fraction(bounds.lower)) for value, bounds in outcomes)
    error = sum((Fraction(bounds.upper) - Fraction(bounds.lower) for _, bounds in outcomes), Fraction(0))
    return Options(stated, error)


@lru_cache(maxsize=256)
def logistic_options(epsilon: Fraction) -> Options[bool]:
    """True with probability e^epsilon/(1+e^epsilon); exact where epsilon is 0.

    >>> logistic_options(Fraction(0)).outcomes
    ((True, Fraction(1, 2)), (False, Fraction(1, 2)))
    """
    if epsilon == 0:
        return Options(((True, Fraction(1, 2)), (False, Fraction(1, 2))))
    shrunk = (-precision(_DIGITS)(epsilon)).exp()
    return _rounded([(True, 1 / (1 + shrunk)), (False, shrunk / (1 + shrunk))])


@lru_cache(maxsize=256)
def laplace_options(scale: Fraction, cut: Fraction) -> Options[int]:
    """Discrete Laplace on -reach..reach, from the middle outward, so that the tails hold at most `cut`."""
    _refuse_endless(scale * cut.denominator.bit_length() // 2)
    q = (-1 / precision(_DIGITS)(scale)).exp()
    middle = (1 - q) / (1 + q)
    outcomes: list[tuple[int, Interval]] = []
    power, reach = q**0, 0
    while 2 * Fraction(power.upper) > cut * Fraction((1 + q).lower):  # both tails from `reach` on: 2 q^reach/(1+q)
        chance = middle * power
        outcomes.extend((z, chance) for z in ((reach, -reach) if reach else (0,)))
        power, reach = power * q, reach + 1
    return _rounded(outcomes or [(0, middle)])


@lru_cache(maxsize=256)
def geometric_options(scale: Fraction, cut: Fraction) -> Options[int]:
    """The one-sided law on 0..reach, so that the tail holds at most `cut`.

    >>> [k for k, _ in geometric_options(Fraction(1), Fraction(1, 10)).outcomes]
    [0, 1, 2]
    """
    _refuse_endless(scale * cut.denominator.bit_length())
    q = (-1 / precision(_DIGITS)(scale)).exp()
    outcomes: list[tuple[int, Interval]] = []
    power = q**0
    while Fraction(power.upper) > cut:  # the tail from k on holds q^k
        outcomes.append((len(outcomes), (1 - q) * power))
        power = power * q
    return _rounded(outcomes or [(0, 1 - q)])


def choice_options(lags: tuple[Fraction, ...]) -> Options[int]:
    """Index i with probability e^(-lags[i]) over the sum of all; exact where all lags are equal.

    >>> choice_options((Fraction(1), Fraction(1))).outcomes
    ((0, Fraction(1, 2)), (1, Fraction(1, 2)))
    """
    if len(set(lags)) == 1:
        return Options(tuple((index, Fraction(1, len(lags))) for index in range(len(lags))))
    p, nearest = precision(_DIGITS), min(lags)
    weights = [(-p(lag - nearest)).exp() for lag in lags]
    total = sum(weights[1:], weights[0])
    return _rounded([(index, weight / total) for index, weight in enumerate(weights)])


@lru_cache(maxsize=256)
def gaussian_options(sigma2: Fraction, cut: Fraction) -> Options[int]:
    """Discrete Gaussian on -reach..reach, from the middle outward, so that the tails hold at most `cut`."""
    _refuse_endless(16 * isqrt(ceil(sigma2)))
    p = precision(_DIGITS)
    weights, smallest = [p(1)], p.floor.scaleb(Decimal(1), -_DIGITS)
    while weights[-1].upper > smallest:
        z = len(weights)
        weights.append((-p(Fraction(z * z) / (2 * sigma2))).exp())
    # Beyond z the weights fall at least geometrically, by the ratio of the last two: what is left is below this.
    ratio = Interval(Decimal(0), weights[-1].upper, p) / Interval(weights[-2].lower, weights[-2].lower, p)
    rest = Interval(Decimal(0), (weights[-1] * ratio / (1 - ratio)).upper, p)
    total = weights[0] + 2 * sum(weights[1:], p(0)) + 2 * rest
    reach = len(weights)
    tail = 2 * rest / total
    while reach > 1 and Fraction((longer := tail + 2 * weights[reach - 1] / total).upper) <= cut:
        tail, reach = longer, reach - 1
    kept = [(z, weights[z] / total) for z in range(reach)]
    return _rounded([(z, chance) for size, chance in kept for z in ((size, -size) if size else (0,))])


@lru_cache(maxsize=256)
def rounded_normal_options(sigma2: Fraction, cut: Fraction) -> Options[int]:
    """Rounded normal on -reach..reach, from the middle outward, so that the tails hold at most `cut`.

    >>> [z for z, _ in rounded_normal_options(Fraction(1), Fraction(1, 100)).outcomes]
    [0, 1, -1, 2, -2, 3, -3]
    """
    _refuse_endless(16 * isqrt(ceil(sigma2)))
    p = precision(_DIGITS)
    outcomes = [(0, normal_cell(0, sigma2, p))]
    reach = 0
    while 2 * Fraction(normal_tail(p((reach + Fraction(1, 2)) ** 2 / sigma2).sqrt()).upper) > cut:
        reach += 1
        outcomes.extend((z, normal_cell(z, sigma2, p)) for z in (reach, -reach))
    return _rounded(outcomes)


def _refuse_endless(reach: Fraction | int) -> None:
    if reach > _MOST:
        raise InvalidParameter(f"this noise has more than {_MOST} outcomes above the cut: enumerate a smaller scale")
