"""Noise added to a value: Laplace and Gaussian, ask by ask, with the total price paid at launch.

`Laplace(epsilon, asks=n)` spends epsilon/n on each of n asks, `Gaussian(mu=..., asks=n)` mu/sqrt(n). Both keep no
secret state. Their noise is exact and integer, on the grid of the values, and scales with each ask's public sensitivity
(L1 for Laplace, L2 for Gaussian), so that a vector is answered in one ask.

>>> from counterpoint import Laplace
>>> from counterpoint.coins import SeededCoins
>>> from counterpoint.mechanisms import Ask
>>> laplace, coins = Laplace(epsilon=1, asks=2), SeededCoins(7)
>>> state, answer = laplace.step(laplace.start(coins), Ask(private=1000), coins)
>>> abs(answer - 1000) < 100
True
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from typing import Annotated, Any

from msgspec.structs import force_setattr

from counterpoint.coins.coins import Coins, Integers
from counterpoint.encoding import Plain, Tagged, Value
from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.measures import GaussianDP, PureDP, zCDP
from counterpoint.mechanisms.laplace_sums import sum_within
from counterpoint.mechanisms.mechanism import Answer, Left, Mechanism, State, is_addressed, refuse_options
from counterpoint.mechanisms.tails import (
    each_may_fail,
    gaussian_within,
    laplace_beyond,
    may_fail,
    rounded_normal_within,
    rounded_sum_within,
    weighted_within,
)
from counterpoint.numbers import Interval, Number, format_number, precision
from counterpoint.numbers.exact import exact, whole
from counterpoint.numbers.parameters import (
    Flag,
    Parameter,
    Positive,
    PositiveInt,
    PositiveOrNone,
    ProbabilityOrNone,
    Rational,
    Read,
    default,
)
from counterpoint.privacy.claims import Claim, Interaction, claim
from counterpoint.privacy.messages import Ask, Message
from counterpoint.privacy.relations import every_step
from counterpoint.privacy.secret import reveal


class Additive(Mechanism):
    """A fixed number of asks, each answered with the value plus noise; nothing is remembered in between."""

    __slots__ = ()
    asks: int

    @abstractmethod
    def noise(self, ask: Ask, size: int, coins: Coins) -> list[int]:
        """`size` independent draws of the noise that this ask needs."""

    def accepts(self, message: object) -> bool:
        """An ask with a private value, other than a tally: noise on what is listed would tell what is."""
        if not isinstance(message, Ask) or message.private is None:
            return False
        return not message.private.keyed and not is_addressed(message)

    def start(self, coins: Coins) -> State:
        """All asks are left."""
        return Left(self.asks)

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """The value plus noise, an integer for an integer and a vector for a vector."""
        assert isinstance(state, Left) and isinstance(message, Ask) and message.private is not None
        value = reveal(message.private)
        if isinstance(value, int):
            return state.after_one(), self.released(message, (value + self.noise(message, 1, coins)[0],))[0]
        noise = self.noise(message, len(value), coins)
        return state.after_one(), self.released(message, tuple(a + b for a, b in zip(value, noise, strict=True)))

    def released(self, ask: Ask, noisy: tuple[int, ...]) -> tuple[int, ...]:
        """What is released of the noisy numbers: all of them, as they are."""
        return noisy


class Range(Tagged, Value, frozen=True):
    """The public part of an ask whose answer is clamped: from `low` to `high`, on the grid of its value.

    >>> Ask(Range(0, 10), private=3).public
    Range(low=0, high=10)
    """

    low: Annotated[Rational, "the lower end"]
    high: Annotated[Rational, "the upper end"]

    @property
    def whole_numbers(self) -> tuple[int, int]:
        """The smallest and the largest whole number in it; the first is larger if there is none.

        >>> Range("-2.5", 7).whole_numbers
        (-2, 7)
        """
        return ceil(self.low), floor(self.high)

    @property
    def has_answers(self) -> bool:
        """Whether there is a whole number in it, and all of them are among the finitely many that are ever answered."""
        low, high = self.whole_numbers
        return -_FARTHEST <= low <= high <= _FARTHEST


_FARTHEST = 2**63
"""Clamped answers lie between plus and minus this, whatever grid an ask has: so they are finitely many."""
_MOST_NUMBERS = 2**20
"""The most numbers of a clamped answer."""


def _two_ends(given: object, what: str) -> tuple[Fraction, Fraction]:
    """Read the two ends of a range of answers."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InvalidParameter(f"{what} is a pair (low, high), such as (0, 1000), between which answers are clamped")
    low, high = (exact(end, f"an end of {what}") for end in given)
    if low >= high:
        raise InvalidParameter(f"{what} goes from low to high, not from {format_number(low)} to {format_number(high)}")
    return low, high


Ends = Annotated[
    Parameter[tuple[Fraction, Fraction] | None, tuple[Number, Number] | None],
    Read(_two_ends),
]
"""The two ends of a range, or None."""


class Laplace(Additive, Value, frozen=True):
    """Discrete Laplace noise of scale asks * sensitivity / epsilon on each of `asks` answers; PureDP(epsilon).

    Proof: one answer changes its odds by at most e^(epsilon/asks) when the value moves by its sensitivity in L1
    (P[z] is proportional to e^(-|z|/scale), coordinate by coordinate); adaptive answers multiply.

    With `clamp=(low, high)` every number of an answer is clamped to that range, a postprocessing. So there are finitely
    many answers: the mechanism has finite communication, which the theorems on f-DP need (theory, f-DP in general). The
    range is in the units of the requests; without units (`Ask` by `Ask`) that is the grid of the values.

    >>> Laplace(epsilon=0.3, asks=3).claim.loss
    PureDP(0.3)
    >>> Laplace(epsilon=0.3, asks=3, clamp=(0, 1000)).claim.interaction
    'finite'
    """

    epsilon: Positive
    asks: PositiveInt = 1
    clamp: Ends = default(None)

    @property
    def claim(self) -> Claim:
        """PureDP(epsilon) for neighbours that may move every ask by its sensitivity."""
        by = f"discrete Laplace noise, epsilon/{self.asks} an ask, adaptive answers multiply"
        several: Interaction = "endless" if self.clamp is None else "finite"
        return claim(PureDP(self.epsilon), every_step(), by, interaction="one-shot" if self.asks == 1 else several)

    def accepts(self, message: object) -> bool:
        """As every `Additive`; with a clamp, only asks whose answers are among finitely many."""
        if not Additive.accepts(self, message):
            return False
        if self.clamp is None:
            return True
        assert isinstance(message, Ask) and message.private is not None
        width = message.private.width
        return (width is None or width <= _MOST_NUMBERS) and self._range(message).has_answers

    def public_part(self, grid: Fraction | None, /, **options: Any) -> Plain:
        """The range of the answer on the grid of the request; nothing without a clamp.

        >>> Laplace(1, clamp=(0, 2.5)).public_part(Fraction(1, 100))
        Range(low=0, high=250)
        """
        refuse_options(self, options)
        if self.clamp is None:
            return None
        low, high = self.clamp
        step = Fraction(1) if grid is None else grid
        on_grid = Range(low / step, high / step)
        if not on_grid.has_answers:
            raise InvalidRequest(
                f"a clamp from {format_number(low)} to {format_number(high)} leaves no answer or too many on a "
                f"grid of {format_number(step)}: "
                "at least one and at most 2^63 steps on either side of 0; launch one with another clamp"
            )
        return on_grid

    def released(self, ask: Ask, noisy: tuple[int, ...]) -> tuple[int, ...]:
        """The noisy numbers, clamped if there is a range."""
        if self.clamp is None:
            return noisy
        low, high = self._range(ask).whole_numbers
        return tuple(low if number < low else high if number > high else int(number) for number in noisy)

    def _range(self, ask: Ask) -> Range:
        assert self.clamp is not None
        return ask.public if isinstance(ask.public, Range) else Range(*self.clamp)

    def noise(self, ask: Ask, size: int, coins: Coins) -> list[int]:
        """Discrete Laplace draws, scaled by the L1 sensitivity."""
        scale = self.scale(ask.sensitivity)
        return [coins.discrete_laplace(scale)] if size == 1 else _listed(coins.discrete_laplace(scale, size))

    def error(self, probability: Number, sensitivity: int = 1, width: int = 1) -> int:
        """How far all of `width` numbers of an answer are off at most, with this probability; on their grid.

        For an ask of this L1 sensitivity. It is the least such distance: P[|z| > m] = 2 q^(m+1)/(1+q) for one number,
        q = e^(-1/scale), and the noise of several is independent. A clamp brings answers no farther from values within
        its range.

        >>> Laplace(epsilon=0.1).error(0.95), Laplace(epsilon=0.1, asks=10).error(0.95, width=3)
        (30, 408)
        """
        each = each_may_fail(probability, whole(width, 1, "width"))
        return laplace_beyond(self.scale(whole(sensitivity, 1, "the sensitivity")), each / 2)

    def answer_error(self, ask: Ask, probability: Number, numbers: int = 1) -> int:
        """By the L1 sensitivity of the ask."""
        return self.error(probability, ask.sensitivity, numbers)

    def sum_error(self, ask: Ask, probability: Number, weights: Sequence[tuple[int, int]]) -> int:
        """By the law of the sum (`sum_within`), at most a hundredth more than the least bound.

        >>> Laplace(epsilon=0.1).sum_error(Ask(private=0), 0.95, [(1, 100)])
        280
        """
        if self.clamp is not None:
            return super().sum_error(ask, probability, weights)
        terms = ((self.scale(ask.sensitivity), Fraction(weight), count) for weight, count in weights)
        return sum_within(terms, may_fail(probability), Fraction(1))

    def scale(self, sensitivity: int) -> Fraction:
        """Of the noise on each number of an answer, for an ask of this L1 sensitivity."""
        return _ratio(self.asks * sensitivity, self.epsilon)


class Gaussian(Additive, Value, frozen=True):
    """Gaussian noise on each of `asks` answers, scaled by the L2 sensitivity of the ask.

    The noise is a rounded normal, x + round(N(0, s^2)), which is Gaussian DP and composes without loss. As x is whole,
    that is the rounding of N(x, s^2), coordinate by coordinate, so that moving x by the ask's sensitivity D in L2 is
    GaussianDP(D/s), whatever came before (theory, Gaussian budgets). `mu` is the price of all asks together: s = D
    sqrt(asks)/mu for each; `rho` = mu^2/2 is the same price as zCDP counts it, and the loss is zCDP(rho), too. `sigma`
    is the deviation of each answer per unit of sensitivity: s = D sigma. `epsilon` and `delta` are a promise for all
    asks, kept by the largest such mu.

    With a `rho` and `discrete=True`, it is a discrete Gaussian of variance parameter asks * D^2/(2 rho) (Canonne et al.
    2020, Thm 14): zCDP(rho), and not GaussianDP, as at sigma = 1 its total variation exceeds that of G_1. Its variance
    is smaller, by 1/12 of a step of the grid squared: worth it for a deviation below two steps or so, and a budget in
    zCDP.

    >>> Gaussian(mu=0.5, asks=4).claim.loss, Gaussian(sigma=30).claim.loss, Gaussian(rho=0.3, asks=4).claim.loss
    (GaussianDP(0.5), GaussianDP(1/30), GaussianDP(rho=0.3))
    >>> Gaussian(rho=0.3, discrete=True).claim.loss
    zCDP(0.3)
    >>> Gaussian(epsilon=1, delta=1e-6).claim.loss.delta_at(1) <= 1e-6
    True
    """

    rho: PositiveOrNone = default(None)
    asks: PositiveInt = 1
    mu: PositiveOrNone = default(None)
    sigma: PositiveOrNone = default(None)
    epsilon: PositiveOrNone = default(None)
    delta: ProbabilityOrNone = default(None)
    discrete: Flag = False

    def __post_init__(self) -> None:
        """Read an (epsilon, delta) as the mu that keeps it; only the mu is held and stored."""
        if (self.epsilon is None) != (self.delta is None):
            raise InvalidParameter("epsilon and delta go together: both, or neither")
        if [self.rho, self.mu, self.sigma, self.epsilon].count(None) != 3:
            raise InvalidParameter("give Gaussian one of rho, mu, sigma, or epsilon with delta")
        if self.discrete and self.rho is None:
            raise InvalidParameter("a discrete Gaussian is zCDP and not Gaussian DP: give rho= with discrete=True")
        if self.epsilon is None or self.delta is None:
            return
        if not 0 < self.delta < 1:
            raise InvalidParameter(f"delta must be above 0 and below 1, but {format_number(self.delta)} was given")
        mu = GaussianDP.for_budget(self.epsilon, self.delta).mu
        if mu == 0:
            raise InvalidParameter("this epsilon and delta are so small that no mu keeps them; choose larger ones")
        force_setattr(self, "mu", mu)
        force_setattr(self, "epsilon", None)
        force_setattr(self, "delta", None)

    def __repr__(self) -> str:
        price = {"rho": self.rho, "mu": self.mu, "sigma": self.sigma}
        shown = [f"{name}={format_number(value)}" for name, value in price.items() if value is not None]
        shown += [f"asks={self.asks}"] if self.asks > 1 else []
        shown += ["discrete=True"] if self.discrete else []
        return f"Gaussian({', '.join(shown)})"

    @property
    def claim(self) -> Claim:
        """GaussianDP or zCDP(rho), of all asks together, for neighbours that may move every ask by its sensitivity."""
        if self.discrete:
            assert self.rho is not None
            by = f"discrete Gaussian noise (Canonne-Kamath-Steinke Thm 14), rho/{self.asks} an ask, losses add"
            return claim(zCDP(self.rho), every_step(), by, interaction="one-shot" if self.asks == 1 else "endless")
        by = f"a normal number rounded is a postprocessing of it, in each of {self.asks} asks anew; squares of mu add"
        loss = GaussianDP.of_square(self.asks / self._sigma2(1))
        return claim(loss, every_step(), by, interaction="one-shot" if self.asks == 1 else "memoryless")

    def noise(self, ask: Ask, size: int, coins: Coins) -> list[int]:
        """Discrete Gaussian or rounded normal draws, scaled by the L2 sensitivity."""
        assert ask.squared is not None  # every Ask has it
        draw = coins.discrete_gaussian if self.discrete else coins.rounded_normal
        return _listed(draw(self._sigma2(ask.squared), size))

    def error(self, probability: Number, squared: int = 1, width: int = 1) -> int:
        """How far all of `width` numbers of an answer are off at most, with this probability; on their grid.

        For an ask of this squared L2 sensitivity. It is the least such distance by the law of the noise, which is
        independent in each number: P[|z| > m] = 2 Q((m + 1/2)/s) for a rounded normal, a sum for a discrete Gaussian.

        >>> Gaussian(mu=1).error(0.95), Gaussian(rho=0.5).error(0.95), Gaussian(rho=0.5).error(0.95, width=1000)
        (2, 2, 4)
        >>> Gaussian(rho=5, discrete=True).error(0.9), Gaussian(rho=5).error(0.9)
        (0, 1)
        """
        each = each_may_fail(probability, whole(width, 1, "width"))
        within = gaussian_within if self.discrete else rounded_normal_within
        return within(self._sigma2(whole(squared, 1, "the squared sensitivity")), each)

    def answer_error(self, ask: Ask, probability: Number, numbers: int = 1) -> int:
        """By the L2 sensitivity of the ask."""
        assert ask.squared is not None  # every Ask has it
        return self.error(probability, ask.squared, numbers)

    def sum_error(self, ask: Ask, probability: Number, weights: Sequence[tuple[int, int]]) -> int:
        """By the law of discrete Gaussian draws, or of normal draws and what rounding adds to each.

        >>> Gaussian(mu=0.1).sum_error(Ask(private=0), 0.95, [(1, 100)])
        216
        """
        assert ask.squared is not None  # every Ask has it
        squares = sum(weight**2 * count for weight, count in weights)
        bound = weighted_within if self.discrete else rounded_sum_within
        return _sum_bound(bound, self._sigma2(ask.squared), squares, may_fail(probability)) if squares else 0

    def _sigma2(self, squared: int) -> Fraction:
        """The variance of the noise on an ask of this squared sensitivity."""
        if self.rho is not None:
            return self.asks * squared / (2 * self.rho)
        if self.sigma is not None:
            return squared * self.sigma**2
        assert self.mu is not None
        return self.asks * squared / self.mu**2


@lru_cache(maxsize=1024)
def _sum_bound(
    bound: Callable[[Fraction, Interval, Fraction], Interval], sigma2: Fraction, squares: int, fails: Fraction
) -> int:
    """The least whole number below which a sum stays by this bound."""
    return max(0, ceil(bound(sigma2, precision(40)(squares), fails).upper) - 1)


@lru_cache
def _ratio(above: int, below: Fraction) -> Fraction:
    return above / below


def _listed(draws: Integers) -> list[int]:
    return [int(draw) for draw in draws]
