"""Sparse vector: which of endlessly many values reach a threshold, paid for only by the few that do (Lyu et al. 2017).

One noise tau on the threshold is drawn at the start and never again; each ask compares its value, with fresh noise nu,
with the noisy threshold, and answers True for a hit. After `hits` hits it halts; misses are free, however many.

>>> from counterpoint.coins import SeededCoins
>>> from counterpoint.mechanisms import Ask
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

How its loss is spread over the noise on the threshold and the noise on the values. Let tau have scale D/e1, drawn once,
and let each value's noise nu change its odds by at most e^b when it moves by what a hit moves it in the proof above:
2D, or D if all values move the same way. With c hits:

- pure: e1 + c b (that proof). The noise of a comparison is least at e1 : c b = 1 : (2c)^(2/3), or 1 : c^(2/3);
- zCDP: e1 tanh(e1/2) + c b (1 - e^-b), so about e1^2/2 + c b^2: it grows with the number of hits, not with its square.
  The noise is least where these two are 1 : 2 sqrt(2c), or 1 : sqrt(2c).

Proof of the second (ours; Zhu and Wang 2020 bound it in another way). Fix an order a > 1, write s = a - 1, and let both
worlds be seen with their threshold, as in the pure proof: world 0 at tau and world 1 at tau + D. That can only make
them easier to tell apart. The thresholds' laws are e1-DP to each other, which contributes e1 tanh(e1/2)
(`divergences`). Given tau, a round is a miss, which is not likelier in world 0 than in world 1, or a hit (with its gap,
if it is released), and all odds between the worlds are in [e^-b, e^b]. Let W be the product of
the odds of all rounds, and V(c) the largest mean of W^s in world 0 that any adversary reaches in these rounds with c
hits to come. Then V(c) <= K^c for every K >= 1 that has h <= K (1 - m) in every such round, where h and m are what its
hits and its miss contribute to the mean of its odds^s: for V(c) is at most m V(c) + h V(c-1), with a round less to go.

Where is K = h/(1 - m) largest? As t^a is convex, hits whose odds are e^b or e^-b make h largest; let A and B be their
probabilities in world 1. Then h = A e^(ab) + B e^(-ab) is linear in (A, B), and 1 - m is concave (u^a v^(1-a) is convex
in u and v), so K is quasi-convex. That a miss is not likelier in world 0 says B <= A e^b, and its odds say
A <= 1/(1 + e^b): a triangle. Towards its corner (0, 0) K falls along every ray. The other two, at A = 1/(1 + e^b), have
K1 = e^(ab)/(1 + e^b - e^(-sb)) where B = 0, and K2 = (e^(ab) + e^(-sb))/(1 + e^b) where B = A e^b; and K1 >= K2, since
(1 - e^(-sb))(e^b - e^(-sb)) >= 0. So V(c) <= K1^c. Finally log K1 <= s (s + 1) b (1 - e^-b): at s = 0 both sides are 0
and have the slope b (1 - e^-b), and the second derivative of the left side is largest there, b^2 (e^-b + e^-2b), which
is at most 2 b^2 e^-b <= 2 b (1 - e^-b), that of the right side. So hits add at most a c b (1 - e^-b) to D_a, at all a.

If all values move one way, that is the proof for going up. Whether it goes up or down may be decided late, when an
outcome y of equal asks has been seen; if then down, both worlds go on at the same tau, and what follows has mean at
most P(y) K1^c, c being the hits left. With f(t) = P(tau = t and y), that is no more than the sum of f(t)^a f(t+D)^(1-a)
times K1^c (Hölder), which is what the proof for going up had allowed at y.

>>> shares_of_pure(Fraction(1), hits=4, reach=2)
(Fraction(1, 5), Fraction(1, 5))
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from typing import Annotated, Literal, TypeAlias

from counterpoint.coins.coins import Coins
from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter
from counterpoint.measures import PureDP, zCDP
from counterpoint.measures.divergences import concentrated_of_pure
from counterpoint.mechanisms.mechanism import Answer
from counterpoint.mechanisms.tails import laplace_beyond, may_fail
from counterpoint.mechanisms.threshold import NoisyThreshold, least_alpha, log_draws
from counterpoint.numbers import Interval, Number, Precision, precision
from counterpoint.numbers.exact import whole
from counterpoint.numbers.parameters import Flag, Positive, PositiveInt, PositiveOrNone, Rational, default
from counterpoint.privacy.certificates import machine_checked
from counterpoint.privacy.claims import Claim, Interaction, claim
from counterpoint.privacy.messages import Ask
from counterpoint.privacy.relations import OneWay, every_step
from counterpoint.privacy.secret import reveal

Release: TypeAlias = Literal["gap", "value"]
"""What is released of a hit, beside True."""


class SparseVector(NoisyThreshold, Value, frozen=True):
    """Answers whether each value reaches the threshold, with noise, until it has answered True `hits` times.

    PureDP(epsilon) or zCDP(rho), whichever is given, if every ask moves by at most its sensitivity; one that is more
    sensitive than `sensitivity` is not accepted. How the loss is spread over the two noises stands at the top of this
    file, with the proof for zCDP; any split is private, and this one makes the noise of a comparison least. The
    threshold is in the units of the requests; without units (`Ask` by `Ask`) that is the grid of the values.

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
    asks: PositiveInt | None = None

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
        """What every `NoisyThreshold` accepts; with `monotone=True`, only asks that are `one_way`."""
        one_way = isinstance(message, Ask) and message.one_way
        return NoisyThreshold.accepts(self, message) and (one_way or not self.monotone)

    @property
    def claim(self) -> Claim:
        """PureDP or zCDP of epsilon or rho, plus the charge, whatever the asks; monotone: if all move the same way."""
        relation = OneWay() if self.monotone else every_step()
        more, fresh = (
            self.charge or Fraction(0),
            "" if self.charge is None else "; fresh noise on values: plus its charge",
        )
        if self.rho is not None:
            by = f"sparse vector, at most {self.hits} hits, its Renyi divergences hit by hit (sparse_vector.py){fresh}"
            return claim(zCDP(self.rho + more), relation, by, interaction=self._interaction)
        assert self.epsilon is not None
        by = f"sparse vector, at most {self.hits} hits (Lyu et al. 2017, Alg 7), integer noise, e1 + e2 = epsilon"
        plain = not self.monotone and self.release is None  # what the checked theorem is about
        checked = "sparse_vector_geometric" if self.asks is None else "sparse_vector_geometric, postprocessing"
        by = machine_checked(by + fresh, checked if plain else None)
        return claim(PureDP(self.epsilon + more), relation, by, interaction=self._interaction)

    @property
    def _interaction(self) -> Interaction:
        """Finite with a bounded number of asks, if an answer is a hit or a miss and nothing more."""
        return "endless" if self.asks is None or self.release is not None else "finite"

    @property
    def most_asks(self) -> int | None:
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


class AboveThreshold(NoisyThreshold, Value, frozen=True):
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
        by = "Henzinger et al. 2024, Lemma 7.4: SVT(epsilon/2) of Henzinger et al. 2024, Alg 3, integer noise"
        return claim(PureDP(self.epsilon), every_step(), machine_checked(by, "sparse_vector_geometric"))

    @property
    def scales(self) -> tuple[Fraction, Fraction]:
        """1/e and 2/e with e = epsilon/2, times the sensitivity."""
        return 2 * self.moves / self.epsilon, 4 * self.moves / self.epsilon


_DIGITS = 30
_PLACES = 12


@lru_cache(maxsize=256)
def shares_of_pure(epsilon: Fraction, hits: int, reach: int) -> tuple[Fraction, Fraction]:
    """e1 and b with e1 + hits b = epsilon exactly; `reach` is how many times D a hit moves: 2, or 1 one way."""
    first = epsilon / (1 + _root(reach * hits, Fraction(2, 3)))
    return first, (epsilon - first) / hits


@lru_cache(maxsize=256)
def shares_of_concentrated(rho: Fraction, hits: int, reach: int) -> tuple[Fraction, Fraction]:
    """e1 and b that cost at most rho in zCDP by the theorem above; to twelve digits, rounded down.

    >>> [round(float(share), 6) for share in shares_of_concentrated(Fraction(1, 50), 8, 2)]
    [0.066679, 0.047704]
    """
    first = rho / (1 + reach * _root(2 * hits, Fraction(1, 2)))
    each = (rho - first) / hits
    return _largest(concentrated_of_pure, first), _largest(concentrated_of_hit, each)


def concentrated_of_hit(b: Fraction, p: Precision) -> Interval:
    """What one hit costs in zCDP: b (1 - e^-b).

    >>> concentrated_of_hit(Fraction(1, 10), precision(6))
    Interval(0.00951625, 0.00951626)
    """
    return -p(-b).expm1() * b


def _root(value: int, power: Fraction) -> Fraction:
    """To three places: near the best split every split is nearly as good, and any is private."""
    return Fraction(round(Fraction((precision(_DIGITS)(value) ** power).lower) * 1000), 1000)


def _largest(cost: Callable[[Fraction, Precision], Interval], limit: Fraction) -> Fraction:
    """The largest share, to twelve digits, that certainly costs at most `limit`.

    Both costs are at most x^2 and at least min(x, 1) x/4, so that the share lies between sqrt(limit) and four times the
    larger of limit and its root.
    """
    p = precision(_DIGITS)
    root = p(limit).sqrt()
    step = Fraction(10) ** (root.lower.adjusted() - _PLACES)
    low, high = floor(Fraction(root.lower) / step), floor(4 * (limit + Fraction(root.upper)) / step) + 1
    while high - low > 1:
        middle = (low + high) // 2
        fits = Fraction(cost(middle * step, p).upper) <= limit
        low, high = (middle, high) if fits else (low, middle)
    return low * step
