"""Noisy max: which coordinate of a vector is the largest, paid for once however many there are.

`NoisyMax(epsilon)` is permute-and-flip (McKenna and Sheldon 2020), which at equal epsilon is never less accurate than
the exponential mechanism; `NoisyMax(rho=...)` is the exponential mechanism, whose bounded range makes it four times
cheaper in zCDP than its epsilon says. The answer is a public index, or the name of the coordinate where the request has
names.

>>> from counterpoint.coins import SeededCoins
>>> from counterpoint.mechanisms import Ask
>>> mechanism, coins = NoisyMax(epsilon=1), SeededCoins(7)
>>> mechanism.step(mechanism.start(coins), Ask(private=(3, 90, 5), each=1), coins)
(None, Chosen(1))

Let every score move by at most D (the ask's `each`) between neighbours, and let e be the epsilon of one ask.

Permute-and-flip: to each integer score add noise G from 0, 1, 2, ... with P[G >= k] = e^(-k/s), s = 2D/e; the largest
sum wins, and a uniformly random order decides ties. (Flipping coins of e^((score - best)/s) in random order is the same
as adding exponential noise, Ding et al. 2021; on integer scores its whole part is G, its fraction is independent of it
and decides ties uniformly.) Why it is private: fix the order and the noise of all others. Then candidate i wins exactly
if its G is at least some m. In a neighbouring world its rivals are at most D higher and itself at most D lower, so it
wins if its G is at least m + 2D, which is so with probability at least e^(-2D/s) = e^-e times that of G >= m. If all
scores move the same way (`monotone=True`), m moves by D at most, and s = D/e is enough.

Exponential mechanism (McSherry and Talwar 2007): i with probability proportional to e^(score_i/s), same s. The log of
the odds of i in two worlds is (score_i - score'_i)/s plus a constant: between D/s and -D/s, and if all move the same
way in 0 to D/s or the negative of that. So over all i it lies in an interval of length e (bounded range; Dong et al.
2020), which must hold 0: PureDP(e). And it is zCDP(e^2/8) (Cesar and Rogers 2021, Lemma 3.4): for P, Q with log
P/Q in an interval of length e, K(a) = log E_Q (P/Q)^a is 0 at a = 0 and a = 1, and K'' is a variance of numbers in that
interval, at most e^2/4; so K(a) <= a(a-1)/2 * e^2/4, which is (a-1) times the Renyi divergence.

Several cells: an ask of m cells is answered with one choice in each, by m independent choices with this same s, where
D (the ask's `each`) now bounds the sum over the cells of how far the scores of cell c move, D_c. By the above, the
choice in cell c multiplies no probability by more than e^(2 D_c/s), and the log of its odds lies in an interval of
length 2 D_c/s (monotone: D_c/s). Independent choices multiply probabilities and add logs, so all of them together are
PureDP(e), and their range is bounded by e, so that the same lemma makes them zCDP(e^2/8). A row is in one cell: what a
unit's rows can do to all cells costs no more than what they could do to one.

The largest k: `top=k` chooses one, takes it out and goes on (peeling), with e/k for each choice, or rho/k. What is
taken out is public by then, and the scores that are left move no farther: the k choices are an adaptive composition.
"""

from fractions import Fraction
from functools import lru_cache
from itertools import count
from math import ceil
from typing import Any, Literal, TypeAlias

from msgspec.structs import force_setattr

from counterpoint.coins.coins import Coins
from counterpoint.encoding import Plain, Tagged, Value
from counterpoint.errors import InvalidParameter
from counterpoint.measures import PureDP, zCDP
from counterpoint.mechanisms.mechanism import Answer, Chosen, Left, Mechanism, State, is_addressed, refuse_options
from counterpoint.mechanisms.tails import each_may_fail, may_fail
from counterpoint.numbers import Interval, Number, Precision, certify, precision
from counterpoint.numbers.exact import whole
from counterpoint.numbers.parameters import Flag, PositiveInt, PositiveOrNone, default
from counterpoint.privacy.claims import Claim, Interaction, claim
from counterpoint.privacy.messages import Ask, Message
from counterpoint.privacy.relations import OneWay, every_step
from counterpoint.privacy.secret import reveal

By: TypeAlias = Literal["permute-and-flip", "exponential"]
"""How the choice is made."""

_DIGITS = 30
_WIDEST = 10**300


class Largest(Tagged, Value, frozen=True):
    """The public part of an ask for the `k` largest coordinates instead of one."""

    k: PositiveInt


class NoisyMax(Mechanism, Value, frozen=True):
    """Chooses one of the largest coordinates of a vector, `asks` times; PureDP(epsilon) or zCDP(rho) in total.

    Give `epsilon` (by permute-and-flip, unless by="exponential") or `rho` (by the exponential mechanism). The noise of
    an ask is scaled by its `each`, how far one coordinate moves, not by its L1 sensitivity. `monotone=True` halves it,
    takes only asks that are `one_way`, and is private where those move all the same way (`OneWay`), as the counts of a
    table do when one unit is added or removed. An ask of several cells gets one choice in each, for the price of one.
    With the option `top=k` an ask gets k choices (in each cell), the largest first, which share its epsilon or rho.

    >>> NoisyMax(epsilon=0.5).claim.loss, NoisyMax(rho=0.125, asks=4).claim.loss
    (PureDP(0.5), zCDP(0.125))
    >>> NoisyMax(rho=0.125, asks=4).epsilon_per_ask
    Fraction(1, 2)
    """

    epsilon: PositiveOrNone = default(None)
    asks: PositiveInt = 1
    monotone: Flag = False
    by: By | None = None
    rho: PositiveOrNone = default(None)

    def __post_init__(self) -> None:
        """Choose the method by the measure, where none was given."""
        if (self.epsilon is None) == (self.rho is None):
            raise InvalidParameter("NoisyMax takes either epsilon=, for pure privacy, or rho=, for zCDP")
        if self.by not in (None, "permute-and-flip", "exponential"):
            raise InvalidParameter("by must be 'permute-and-flip' or 'exponential'")
        if self.rho is not None and self.by == "permute-and-flip":
            raise InvalidParameter(
                "rho= needs by='exponential': permute-and-flip has no bounded range, and takes epsilon="
            )
        force_setattr(self, "by", self.by or ("permute-and-flip" if self.rho is None else "exponential"))

    @property
    def claim(self) -> Claim:
        """PureDP(epsilon) or zCDP(rho), an ask at a time; monotone: as long as all scores move the same way."""
        relation = OneWay() if self.monotone else every_step()
        interaction: Interaction = "one-shot" if self.asks == 1 else "endless"
        if self.rho is not None:
            by = f"exponential mechanism, bounded range (Cesar and Rogers 2021), rho/{self.asks} an ask, losses add"
            return claim(zCDP(self.rho), relation, by, interaction=interaction)
        assert self.epsilon is not None
        way = (
            "permute-and-flip (McKenna and Sheldon 2020)" if self.by == "permute-and-flip" else "exponential mechanism"
        )
        by = f"{way} on integer scores, epsilon/{self.asks} an ask, adaptive answers multiply"
        return claim(PureDP(self.epsilon), relation, by, interaction=interaction)

    @property
    def epsilon_per_ask(self) -> Fraction:
        """The e of one ask: epsilon/asks; or sqrt(8 rho/asks), rounded down where it is irrational."""
        return self._epsilon_of_one_in(self.asks)

    def _epsilon_of_one_in(self, choices: int) -> Fraction:
        """The e of one of `choices` choices, which share epsilon or rho equally."""
        if self.rho is not None:
            return _root_down(8 * self.rho / choices)
        assert self.epsilon is not None
        return self.epsilon / choices

    def scale(self, each: int = 1, top: int = 1) -> Fraction:
        """How far a coordinate may fall behind before its odds fall by a factor e: 2D/e, or D/e if monotone.

        >>> NoisyMax(epsilon=0.5).scale(), NoisyMax(epsilon=0.5, monotone=True).scale(each=3)
        (Fraction(4, 1), Fraction(6, 1))
        """
        moves = (1 if self.monotone else 2) * whole(each, 1, "each")
        return moves / self._epsilon_of_one_in(self.asks * whole(top, 1, "top"))

    def public_part(self, grid: Fraction | None, /, **options: Any) -> Plain:
        """How many of the largest coordinates are wanted: `top=5`; one, unless it is given.

        >>> NoisyMax(epsilon=1).public_part(None, top=5)
        Largest(5)
        """
        top = options.pop("top", None)
        refuse_options(self, options)
        return None if top is None else Largest(top)

    def accepts(self, message: object) -> bool:
        """An ask with a private vector of one coordinate or more, which moves one way if that is what is relied on."""
        return (
            isinstance(message, Ask)
            and message.private is not None
            and (message.private.width or 0) >= message.cells * _wanted(message)
            and not is_addressed(message)
            and (message.one_way or not self.monotone)
        )

    def start(self, coins: Coins) -> State:
        """All asks are left."""
        return Left(self.asks)

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """The index of a coordinate that is among the largest; several of them for several cells, or for `top`.

        Those of one cell are next to each other, and are counted from its first coordinate.
        """
        assert isinstance(state, Left) and isinstance(message, Ask) and message.private is not None
        scores, each, top = reveal(message.private), message.each, _wanted(message)
        assert isinstance(scores, tuple) and each is not None
        scale, width = self.scale(each, top), len(scores) // message.cells
        chosen = [
            Chosen(index)
            for start in range(0, len(scores), width)
            for index in self._peeled(scores[start : start + width], top, scale, coins)
        ]
        single = message.cells == 1 and not isinstance(message.public, Largest)
        return state.after_one(), chosen[0] if single else tuple(chosen)

    def _peeled(self, scores: tuple[int, ...], top: int, scale: Fraction, coins: Coins) -> list[int]:
        """One choice after another, each among those that have not been chosen."""
        choose = _permute_and_flip if self.by == "permute-and-flip" else _exponential
        left, found = list(range(len(scores))), []
        # Each choice has noise and a share of the budget of its own: the best `top` of one noisy vector would take less
        # work, and permute-and-flip has no theorem for them.
        for _ in range(top):
            found.append(left.pop(choose(tuple(scores[index] for index in left), scale, coins)))
        return found

    def answer_error(self, ask: Ask, probability: Number, numbers: int = 1) -> int:
        """How far the scores of `numbers` choices are from the best ones at most, at once, with this probability.

        There is one choice in each cell, and these are independent. Those of `top` are not: they share what may fail.

        >>> NoisyMax(epsilon=1).answer_error(Ask(private=(0,) * 100, each=1), 0.95)
        13
        """
        assert ask.private is not None and ask.each is not None
        candidates, top = (ask.private.width or 1) // ask.cells, _wanted(ask)
        return self.error(1 - each_may_fail(probability, min(numbers, ask.cells)) / top, candidates, ask.each, top)

    def error(self, probability: Number, candidates: int, each: int = 1, top: int = 1) -> int:
        """The least alpha such that, with this probability, the chosen score is within alpha of the best.

        On the grid of the scores, for one choice (of `top` that share an ask) and the best of what is left. It is exact
        for the worst vector: one best score and all others at distance alpha + 1 (lowering a score that is good enough,
        or raising one that is not, only helps the wrong ones). With d candidates and r = e^(-(alpha+1)/scale), the best
        one is then chosen with probability 1/(1 + (d-1) r) by the exponential mechanism, and (1 - (1-r)^d)/(d r) by
        permute-and-flip: if k others come first, and k is 0 to d - 1 equally likely, none of them is taken with
        probability (1-r)^k.

        >>> NoisyMax(epsilon=1).error(0.95, 100), NoisyMax(epsilon=1, by="exponential").error(0.95, 100)
        (13, 15)
        """
        fails, d = may_fail(probability), whole(candidates, 1, "candidates")
        scale = self.scale(each, top)
        if d == 1 or fails == 1:
            return 0
        odds = precision(_DIGITS)((d - 1) * (1 - fails) / fails).log()
        most = max(0, ceil((odds * scale).upper) - 1)
        if self.by == "exponential":
            return most
        low, high = -1, most
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if _flips_wrong(d, (middle + 1) / scale) <= fails else (middle, high)
        return high


def _wanted(message: Ask) -> int:
    """How many choices an ask wants in each cell."""
    return message.public.k if isinstance(message.public, Largest) else 1


def _permute_and_flip(scores: tuple[int, ...], scale: Fraction, coins: Coins) -> int:
    """By its noise: the coins that are tossed, and how many, do not depend on the scores."""
    noise = coins.geometric(scale, len(scores))
    order = 0
    for radix in _radices(len(scores)):
        order = order * radix + coins.integer(radix)
    noisy = [score + int(more) for score, more in zip(scores, noise, strict=True)]
    best = max(noisy)
    tied = [index for index, sum_ in enumerate(noisy) if sum_ == best]
    return tied[order % len(tied)]


def _exponential(scores: tuple[int, ...], scale: Fraction, coins: Coins) -> int:
    best = max(scores)
    return coins.choose([(best - score) / scale for score in scores])


@lru_cache(maxsize=64)
def _radices(d: int) -> tuple[int, ...]:
    """Numbers whose product is the least common multiple of 1 to d, each small enough for one draw.

    Digits that are uniform in these radices make a number that is uniform modulo every possible number of ties, so that
    it breaks any tie just as a uniformly random order of all candidates would.
    """
    unmarked, radices = bytearray([1]) * (d + 1), [1]
    for prime in range(2, d + 1):
        if unmarked[prime]:
            unmarked[prime * prime :: prime] = bytes(len(range(prime * prime, d + 1, prime)))
            power = prime ** next(k for k in count(1) if prime ** (k + 1) > d)
            radices = [*radices, power] if radices[-1] * power > _WIDEST else [*radices[:-1], radices[-1] * power]
    return tuple(radices)


@lru_cache(maxsize=64)
def _root_down(value: Fraction) -> Fraction:
    """The square root, exact where it has few digits, else rounded down."""
    root = precision(_DIGITS)(value).sqrt()
    near = Fraction(round(Fraction(root.lower) * 10**12), 10**12)
    return near if near * near == value else Fraction(root.lower)


def _flips_wrong(d: int, distance: Fraction) -> Fraction:
    """1 - (1 - (1-r)^d)/(d r) at r = e^-distance, rounded up."""

    def wrong(p: Precision) -> Interval:
        r = (-p(distance)).exp()
        all_pass = (-(-p(distance)).expm1()).log() * d
        return 1 + all_pass.expm1() / (r * d)

    return Fraction(certify(wrong, 12).upper)
