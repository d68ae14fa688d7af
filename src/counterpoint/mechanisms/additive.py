"""Noise added to a value: discrete Laplace and discrete Gaussian, ask by ask, with the total price paid at launch.

`Laplace(epsilon, asks=n)` spends epsilon/n on each of n asks, `Gaussian(rho, asks=n)` rho/n. Both keep no secret
state. Their noise is exact and integer, on the grid of the values, and scales with each ask's public sensitivity (L1
for Laplace, L2 for Gaussian), so that a vector is answered in one ask.

>>> from counterpoint import Ask, Laplace, SeededCoins
>>> laplace, coins = Laplace(epsilon=1, asks=2), SeededCoins(7)
>>> state, answer = laplace.step(laplace.start(coins), Ask(private=1000), coins)
>>> abs(answer - 1000) < 100
True
"""

from abc import abstractmethod
from fractions import Fraction
from functools import lru_cache

from counterpoint.encoding import Value
from counterpoint.mechanisms.mechanism import Answer, Left, Mechanism, State, is_addressed
from counterpoint.mechanisms.tails import gaussian_within, laplace_beyond, may_fail
from counterpoint.numbers import Number
from counterpoint.numbers.exact import whole
from counterpoint.numbers.parameters import Positive, PositiveInt
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.losses import PureDP, zCDP
from counterpoint.privacy.messages import Ask, Message
from counterpoint.privacy.relations import every_step
from counterpoint.privacy.secret import reveal
from counterpoint.randomness.coins import Coins, Integers


class Additive(Mechanism):
    """A fixed number of asks, each answered with the value plus noise; nothing is remembered in between."""

    __slots__ = ()
    asks: int

    @abstractmethod
    def noise(self, ask: Ask, size: int, coins: Coins) -> list[int]:
        """So many independent draws of the noise that this ask needs."""

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
            return state.after_one(), value + self.noise(message, 1, coins)[0]
        noise = self.noise(message, len(value), coins)
        return state.after_one(), tuple(a + b for a, b in zip(value, noise, strict=True))


class Laplace(Additive, Value, frozen=True):
    """Discrete Laplace noise of scale asks * sensitivity / epsilon on each of `asks` answers; PureDP(epsilon).

    Proof: one answer changes its odds by at most e^(epsilon/asks) when the value moves by its sensitivity in L1
    (P[z] is proportional to e^(-|z|/scale), coordinate by coordinate); adaptive answers multiply.

    >>> Laplace(epsilon=0.3, asks=3).claim.loss
    PureDP(0.3)
    """

    epsilon: Positive
    asks: PositiveInt = 1

    @property
    def claim(self) -> Claim:
        """PureDP(epsilon) for neighbours that may move every ask by its sensitivity."""
        by = f"discrete Laplace noise, epsilon/{self.asks} an ask, adaptive answers multiply"
        return claim(PureDP(self.epsilon), every_step(), by, interaction="one-shot" if self.asks == 1 else "endless")

    def noise(self, ask: Ask, size: int, coins: Coins) -> list[int]:
        """Discrete Laplace draws, scaled by the L1 sensitivity."""
        scale = self._scale(ask.sensitivity)
        return [coins.discrete_laplace(scale)] if size == 1 else _listed(coins.discrete_laplace(scale, size))

    def error(self, probability: Number, sensitivity: int = 1, width: int = 1) -> int:
        """How far all of `width` numbers of an answer are off at most, with this probability; on their grid.

        For an ask of this L1 sensitivity. It is the least such distance for one number (P[|z| > m] = 2 q^(m+1)/(1+q),
        q = e^(-1/scale)), and for several each has a part of what may fail.

        >>> Laplace(epsilon=0.1).error(0.95), Laplace(epsilon=0.1, asks=10).error(0.95, width=3)
        (30, 409)
        """
        each = may_fail(probability) / whole(width, 1, "width")
        return laplace_beyond(self._scale(whole(sensitivity, 1, "the sensitivity")), each / 2)

    def _scale(self, sensitivity: int) -> Fraction:
        return _ratio(self.asks * sensitivity, self.epsilon)


class Gaussian(Additive, Value, frozen=True):
    """Discrete Gaussian noise of variance parameter asks * squared / (2 rho) on each of `asks` answers; zCDP(rho).

    Proof: Canonne et al. 2020, Thm 14: moving the centre by v costs |v|^2/(2 sigma2) in zCDP; adaptive answers add up.
    It is not GaussianDP (theory, Gaussian budgets): at sigma = 1 its total variation exceeds that of G_1.

    >>> Gaussian(rho=0.5, asks=4).claim.loss
    zCDP(0.5)
    """

    rho: Positive
    asks: PositiveInt = 1

    @property
    def claim(self) -> Claim:
        """zCDP(rho) for neighbours that may move every ask by its sensitivity."""
        by = f"discrete Gaussian noise (Canonne-Kamath-Steinke Thm 14), rho/{self.asks} an ask, losses add"
        return claim(zCDP(self.rho), every_step(), by, interaction="one-shot" if self.asks == 1 else "endless")

    def noise(self, ask: Ask, size: int, coins: Coins) -> list[int]:
        """Discrete Gaussian draws, scaled by the L2 sensitivity."""
        assert ask.squared is not None  # every Ask has it
        return _listed(coins.discrete_gaussian(self._sigma2(ask.squared), size))

    def error(self, probability: Number, squared: int = 1, width: int = 1) -> int:
        """How far all of `width` numbers of an answer are off at most, with this probability; on their grid.

        For an ask of this squared L2 sensitivity. By the sub-Gaussian tail, for each number a part of what may fail.

        >>> Gaussian(rho=0.5).error(0.95), Gaussian(rho=0.5).error(0.95, width=1000)
        (2, 4)
        """
        each = may_fail(probability) / whole(width, 1, "width")
        return gaussian_within(self._sigma2(whole(squared, 1, "the squared sensitivity")), each)

    def _sigma2(self, squared: int) -> Fraction:
        return self.asks * squared / (2 * self.rho)


@lru_cache
def _ratio(above: int, below: Fraction) -> Fraction:
    return above / below


def _listed(draws: Integers) -> list[int]:
    return [int(draw) for draw in draws]
