"""Sparse vector: which of endlessly many values reach a threshold, paid for only by the few that do (Lyu et al. 2017).

One noise tau on the threshold is drawn at the start and never again; each ask compares its value, with fresh noise nu,
with the noisy threshold, and answers True for a hit. After `hits` hits it halts; misses are free, however many.

>>> from counterpoint import Ask, SeededCoins
>>> above, coins = SparseVector(epsilon=1, threshold=1000, hits=2), SeededCoins(7)
>>> state = above.start(coins)
>>> state, low = above.step(state, Ask(private=0), coins)
>>> state, high = above.step(state, Ask(private=2000), coins)
>>> low, high, state is None
(False, True, False)

Why it is private. Let neighbouring values differ by at most D (`sensitivity`), tau have scale D/e1 and nu scale 2cD/e2
(c = `hits`). Write a run of world 0 into world 1 by moving tau to tau + D: its odds change by at most e^e1. A miss,
v + nu < t + tau, stays a miss with the same nu, since v' <= v + D: misses cost nothing. A hit, v + nu >= t + tau, stays
one if nu moves by v - v' + D, which is 0 to 2D: its odds change by at most e^(e2/c), and there are at most c hits. So
every transcript's probability changes by at most e^(e1 + e2). All moves are integers, so the proof is one for integer
noise, with >= as with >; and a transcript fixes the asks that led to it, so it covers adaptive ones.

The same moves leave v + nu - tau as it was at every hit, so that the gap between a hit and the noisy threshold may be
released as well, free of charge (Ding et al. 2019, sec. 6): `release="gap"`. The value itself must not be released
with the noise it was compared with; it takes fresh noise, and its own charge: `release="value"`.
"""

from fractions import Fraction
from math import ceil
from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, UnsetType

from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter
from counterpoint.mechanisms.mechanism import Answer
from counterpoint.mechanisms.selecting.comparing import Comparing, Threshold, Watching
from counterpoint.mechanisms.selecting.comparison_noise import shares_of_concentrated, shares_of_pure
from counterpoint.mechanisms.selecting.comparison_tails import least_alpha, log_draws
from counterpoint.mechanisms.tails import laplace_beyond, may_fail
from counterpoint.numbers import Number, precision
from counterpoint.numbers.exact import whole
from counterpoint.numbers.parameters import Flag, Positive, PositiveInt, PositiveOrNone, Rational, default
from counterpoint.privacy.claims import Claim, Interaction, claim
from counterpoint.privacy.losses import PureDP, zCDP
from counterpoint.privacy.messages import Ask
from counterpoint.privacy.relations import OneWay, every_step
from counterpoint.privacy.secret import reveal
from counterpoint.randomness.coins import Coins

__all__ = ["AboveThreshold", "Release", "SparseVector", "Threshold", "Watching", "laplace_beyond"]

Release: TypeAlias = Literal["gap", "value"]
"""What is released of a hit, beside True."""


class SparseVector(Comparing, Value, frozen=True):
    """Answers whether each value reaches the threshold, with noise, until it has answered True `hits` times.

    PureDP(epsilon) or zCDP(rho), whichever is given, if every ask moves by at most its sensitivity; one that is more
    sensitive than `sensitivity` is not accepted. How the loss is spread over the two noises stands, with the proof for
    zCDP, in `comparison_noise`; any split is private, and this one makes the noise of a comparison least. The threshold
    is in the units of the requests; without units (`Ask` by `Ask`) that is the grid of the values.

    `release="gap"`: a hit is answered (True, gap), where gap is by how much the noisy value exceeds the noisy threshold
    (rounded up to the grid), at no further charge. `release="value", charge=x`: it is answered (True, noisy value),
    with fresh noise: discrete Laplace for x in epsilon, discrete Gaussian for x in rho, x/hits for each hit; the claim
    is epsilon + x or rho + x, as adaptive answers add up. A miss is then answered (False, None).

    `monotone=True` halves the noise on the values, but asks for more: it takes only asks that are `one_way`, and
    between neighbours these must all move the same way (`OneWay`), as the counts of a table do when one unit is added
    or removed. The proof is then: going up, move tau by D, and a hit by v - v' + D, now at most D; going down, leave
    tau where it is, and move a hit by v - v', at most D.

    With `asks=n` it halts after n asks, hits or not. That costs nothing and saves nothing; but its communication is
    then finite, unless hits release numbers, which the theorems on f-DP need (theory, f-DP in general).

    >>> SparseVector(epsilon=0.3, threshold=1000, hits=3).claim.loss
    PureDP(0.3)
    >>> SparseVector(rho=0.02, threshold=1000, hits=50, release="value", charge=0.01).claim.loss
    zCDP(0.03)
    >>> SparseVector(1, 0, monotone=True).scales, SparseVector(1, 0, monotone=True).claim.relation
    ((Fraction(2, 1), Fraction(2, 1)), OneWay())
    >>> SparseVector(rho=0.02, asks=10).claim.interaction
    'finite'
    """

    epsilon: PositiveOrNone = default(None)
    threshold: Annotated[Rational, "the threshold"] = default(Fraction(0))
    hits: PositiveInt = 1
    sensitivity: Annotated[PositiveInt | None, "the sensitivity"] = None
    monotone: Flag = False
    release: Release | None = None
    charge: PositiveOrNone = default(None)
    rho: PositiveOrNone = default(None)
    # Unset, it is left out of the encoding, so that mechanisms in older ledgers keep their bytes.
    asks: PositiveInt | UnsetType = UNSET

    def __post_init__(self) -> None:
        """Check that the parameters go together."""
        if (self.epsilon is None) == (self.rho is None):
            raise InvalidParameter("SparseVector takes either epsilon=, for pure privacy, or rho=, for zCDP")
        if self.release not in (None, "gap", "value"):
            raise InvalidParameter("release must be 'gap', which is free, or 'value', which needs charge=")
        if (self.release == "value") != (self.charge is not None):
            raise InvalidParameter(
                "a charge is for released values, and they need one: give release='value' and charge= together"
            )

    def accepts(self, message: object) -> bool:
        """What every `Comparing` accepts; with `monotone=True`, only asks that are `one_way`."""
        one_way = isinstance(message, Ask) and message.one_way
        return Comparing.accepts(self, message) and (one_way or not self.monotone)

    @property
    def claim(self) -> Claim:
        """PureDP or zCDP of epsilon or rho, plus the charge, whatever the asks; monotone: if all move the same way."""
        relation = OneWay() if self.monotone else every_step()
        more, fresh = (
            self.charge or Fraction(0),
            "" if self.charge is None else "; fresh noise on values: plus its charge",
        )
        if self.rho is not None:
            by = f"sparse vector, at most {self.hits} hits, its Renyi divergences hit by hit (comparison_noise){fresh}"
            return claim(zCDP(self.rho + more), relation, by, interaction=self._interaction)
        assert self.epsilon is not None
        by = f"sparse vector, at most {self.hits} hits (Lyu et al. 2017, Alg 7), integer noise, e1 + e2 = epsilon"
        return claim(PureDP(self.epsilon + more), relation, by + fresh, interaction=self._interaction)

    @property
    def _interaction(self) -> Interaction:
        """Finite with a bounded number of asks, if an answer is a hit or a miss and nothing more."""
        return "endless" if self.asks is UNSET or self.release is not None else "finite"

    @property
    def most_asks(self) -> int | UnsetType:
        """As launched."""
        return self.asks

    @property
    def scales(self) -> tuple[Fraction, Fraction]:
        """D/e1, and 2D/b (D/b if monotone), where b is what one hit may cost."""
        reach = 1 if self.monotone else 2
        if self.rho is not None:
            first, each = shares_of_concentrated(self.rho, self.hits, reach)
        else:
            assert self.epsilon is not None
            first, each = shares_of_pure(self.epsilon, self.hits, reach)
        return self.moves / first, reach * self.moves / each

    def miss(self) -> Answer:
        """False, or (False, None) where hits release something."""
        return False if self.release is None else (False, None)

    def hit(self, ask: Ask, above: int, coins: Coins) -> Answer:
        """True, or (True, what is released)."""
        if self.release is None:
            return True
        return (True, above if self.release == "gap" else self._fresh(ask, coins))

    def _fresh(self, ask: Ask, coins: Coins) -> int:
        """The value with Laplace noise of scale hits D/charge, or Gaussian noise of variance hits D^2/(2 charge)."""
        assert self.charge is not None and ask.squared is not None and ask.private is not None
        value = reveal(ask.private)
        assert isinstance(value, int)
        if self.rho is not None:
            return value + coins.discrete_gaussian(self.hits * ask.squared / (2 * self.charge))
        return value + coins.discrete_laplace(self.hits * ask.sensitivity / self.charge)

    def release_error(self, probability: Number, asks: int = 1) -> int:
        """The alpha such that, with this probability, all that is released is within alpha, on the grid of the values.

        A released value is that far from the value; a gap is that far from by how much the value exceeds the threshold
        (rounded up to the grid), if there are `asks` asks: its noise is the one that made it a hit, so it tends to be
        too large, and all asks must be counted, on either side. Union bounds; for the discrete Gaussian by its
        subgaussian tail.

        >>> SparseVector(1, 0, hits=3, release="value", charge=1).release_error(0.95)
        12
        >>> SparseVector(1, 0, hits=3, release="gap").release_error(0.95, asks=100)
        62
        """
        fails = may_fail(probability)
        if self.release == "value":
            assert self.charge is not None
            each = fails / (2 * self.hits)
            if self.rho is None:
                return laplace_beyond(self.hits * self.moves / self.charge, each)
            spread = self.hits * self.moves**2 / self.charge
            return max(0, ceil((-precision(40)(each).log() * spread).sqrt().upper) - 1)
        if self.release != "gap":
            raise InvalidParameter(
                "this sparse vector releases nothing: launch it with release='gap', or with release='value' and charge="
            )
        return least_alpha(self.scales, fails / 2, log_draws(self.scales, whole(asks, 1, "asks")))


class AboveThreshold(Comparing, Value, frozen=True):
    """SVT of Henzinger et al. 2024, Alg 3: one hit, the noise split evenly; PureDP(epsilon), in total.

    Henzinger et al.'s SVT(e) has noise Lap(1/e) and Lap(2/e) and costs 2e, which is attained (Henzinger et al. 2024,
    Lemma 7.4, errata, Henzinger E15). Here epsilon is what it costs: SVT(e) is `AboveThreshold(2 * e)`, and Henzinger
    et al.'s SVT(epsilon/6) is `AboveThreshold(epsilon/3)`.

    >>> AboveThreshold(epsilon=1, threshold=10).scales, AboveThreshold(epsilon=1, threshold=10).claim.loss
    ((Fraction(2, 1), Fraction(4, 1)), PureDP(1))
    """

    epsilon: Positive
    threshold: Annotated[Rational, "the threshold"]
    sensitivity: Annotated[PositiveInt | None, "the sensitivity"] = None

    @property
    def hits(self) -> int:
        """One."""
        return 1

    def miss(self) -> Answer:
        """False."""
        return False

    def hit(self, ask: Ask, above: int, coins: Coins) -> Answer:
        """True."""
        return True

    @property
    def claim(self) -> Claim:
        """PureDP(epsilon), whatever the asks."""
        return claim(
            PureDP(self.epsilon),
            every_step(),
            "Henzinger et al. 2024, Lemma 7.4: SVT(epsilon/2) of Henzinger et al. 2024, Alg 3, integer noise",
        )

    @property
    def scales(self) -> tuple[Fraction, Fraction]:
        """1/e and 2/e with e = epsilon/2, times the sensitivity."""
        return 2 * self.moves / self.epsilon, 4 * self.moves / self.epsilon
