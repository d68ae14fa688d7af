"""Partition selection: which keys there are, released privately (Desfontaines et al. 2022, Thm 1).

Which cities occur in a table is itself private: a city with one inhabitant reveals that one. `PartitionSelection` takes
the number of units of each key, which is a `Tally`, and releases each key with the largest chance that
(epsilon, delta) leaves it: next to nothing where one unit stands behind it, next to certainty where many do. A key
without units is never released, as it is not in the tally; delta pays for the first unit, which brings it in.

>>> from counterpoint import Ask, PartitionSelection, SeededCoins
>>> from counterpoint.privacy.tally import Tally
>>> select, coins = PartitionSelection(epsilon=1, delta=1e-6), SeededCoins(7)
>>> cities = Tally((("Paris", 900), ("Rome", 4000), ("Ys", 1)))
>>> select.step(select.start(coins), Ask(private=cities), coins)
(None, ('Paris', 'Rome'))
"""

from bisect import bisect_left
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, isqrt

from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter
from counterpoint.mechanisms.mechanism import Answer, Left, Mechanism, State, is_addressed
from counterpoint.mechanisms.tails import may_fail
from counterpoint.numbers import Number, certify, precision
from counterpoint.numbers.exact import spell, whole
from counterpoint.numbers.parameters import Positive, Probability
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.losses import ApproxDP
from counterpoint.privacy.messages import Ask, Message
from counterpoint.privacy.relations import every_step
from counterpoint.privacy.secret import counted
from counterpoint.randomness.coins import Coins

GRID = 2**127 - 1
"""What chances are fractions of: a prime, so that no fraction is shortened, and every toss takes equally many bits."""
LEAST_EPSILON = Fraction(1, 10**4)
"""The least epsilon for one unit at one key: below, certainty would be more than a million units away."""
LEAST_DELTA = Fraction(1, 10**28)
"""The least delta for one unit at one key: far enough above 1/GRID that rounding down costs nothing."""
_ENOUGH = 64
"""An epsilon that no chance notices to be larger."""
_FINE = 128


class PartitionSelection(Mechanism, Value, frozen=True):
    """Answers one ask about a tally with the keys it selects, in order; ApproxDP(epsilon, delta).

    Between neighbours key i moves by d_i, with sum d_i <= s (the ask's sensitivity) and sum d_i^2 <= q (its `squared`).
    A unit that counts once at each of at most r keys has s = q = r; replaced by another one, s = q = 2r.

    Proof. (1) One key. A count of n is released with chance p(n), where p(0) = 0, p does not fall, and for every n
    p(n+1) <= e^e p(n) + d and 1 - p(n) <= e^e (1 - p(n+1)) + d. Together with monotonicity these are the four
    inequalities of (e, d)-DP for a bit; the largest such p takes the tighter of the two with equality (the paper's
    Thm 1). `chances` computes it in integers, every step rounded down, e^e and d rounded down as well, so that the
    inequalities hold exactly for what is drawn.
    (2) A key that moves by k is (k e, h(k) d)-DP, h(k) = (e^(ke) - 1)/(e^e - 1), by group privacy.
    (3) Keys are tossed independently, so epsilons and deltas add up over the keys: (s e, d sum h(d_i))-DP, and with
    e <= epsilon/s the first is at most epsilon.
    (4) Let m = min(s, isqrt(q)), the most that one key can move. h(k)/k^2 falls and then rises in k, so it is at most
    max(1, h(m)/m^2), and h(k)/k rises; so sum h(d_i) <= min(q max(1, h(m)/m^2), s h(m)/m), and d is delta divided by
    that. Where s = q = r and epsilon is at most 2.7, it is r.

    The tosses are made key by key in the tally's order: how many there are depends on the data, as the tally does, and
    on equal coins two worlds may part ways. Only the law of the answer is private, and so that is what tests compare.

    >>> PartitionSelection(0.5, 1e-9).claim.loss
    ApproxDP(0.5, 1e-9)
    """

    epsilon: Positive
    delta: Probability

    def __post_init__(self) -> None:
        """Without a delta no key could ever be released."""
        for name, least in (("epsilon", LEAST_EPSILON), ("delta", LEAST_DELTA)):
            given = getattr(self, name)
            if given < least:
                raise InvalidParameter(
                    f"{name} must be at least {spell(least)} for keys to be selected, but {spell(given)} was given"
                )

    @property
    def claim(self) -> Claim:
        """ApproxDP(epsilon, delta) for neighbours that move the tally by the ask's sensitivity."""
        by = "optimal partition selection (Desfontaines et al. 2022, Thm 1) at every key, basic composition over keys"
        return claim(ApproxDP(self.epsilon, self.delta), every_step(), by, interaction="one-shot")

    def accepts(self, message: object) -> bool:
        """An ask about a tally, not so sensitive that epsilon and delta would be spread too thin over its keys."""
        if not isinstance(message, Ask) or message.private is None or is_addressed(message):
            return False
        return message.private.keyed and computable(*self.per_key(message))

    def per_key(self, ask: Ask) -> tuple[Fraction, Fraction]:
        """The epsilon and delta that one unit at one key is given.

        >>> PartitionSelection(1, "1e-6").per_key(Ask(private=0, sensitivity=4, squared=4))
        (Fraction(1, 4), Fraction(1, 4000000))
        """
        assert ask.squared is not None  # every Ask has it
        return _per_key(self.epsilon, self.delta, ask.sensitivity, ask.squared)

    def start(self, coins: Coins) -> State:
        """One ask is left."""
        return Left(1)

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """The keys whose toss succeeded."""
        assert isinstance(message, Ask) and message.private is not None
        table = chances(*self.per_key(message))
        last = len(table) - 1
        tally = counted(message.private)
        return None, tuple(
            key for key, units in tally.pairs if coins.bernoulli(Fraction(table[min(units, last)], GRID))
        )

    def error(self, probability: Number, sensitivity: int = 1, squared: int | None = None) -> int:
        """The least number of units with which a key is released with at least this probability; exact.

        For an ask of this sensitivity; `squared` is the same unless given, as where a unit counts once at each of its
        keys. With fewer units a key may be missing from the answer; one without units is never in it (Desfontaines
        et al. 2022, Thm 1).

        >>> PartitionSelection(1, 1e-6).error(0.95), PartitionSelection(1, 1e-6).error(0.95, sensitivity=4)
        (16, 63)
        """
        least = 1 - may_fail(probability)
        places = whole(sensitivity, 1, "the sensitivity")
        most = places if squared is None else min(whole(squared, 1, "the squared sensitivity"), places * places)
        each = _per_key(self.epsilon, self.delta, places, most)
        if not computable(*each):
            raise InvalidParameter(
                f"a sensitivity of {places} leaves less than epsilon {spell(LEAST_EPSILON)} or delta "
                f"{spell(LEAST_DELTA)} for each key: launch it with more"
            )
        table = chances(*each)
        if least * GRID > table[-1]:
            raise InvalidParameter("no key is released with more certainty than 1 - 2^-127")
        return bisect_left(table, least * GRID)


def computable(epsilon: Fraction, delta: Fraction) -> bool:
    """Whether the chances of one key can be computed for this epsilon and delta.

    >>> computable(Fraction(1, 100), Fraction(1, 10**9)), computable(Fraction(1, 10**5), Fraction(1, 10**9))
    (True, False)
    """
    return epsilon >= LEAST_EPSILON and delta >= LEAST_DELTA


@lru_cache(maxsize=64)
def chances(epsilon: Fraction, delta: Fraction) -> tuple[int, ...]:
    """The chance, in units of 1/GRID, to release a key of 0, 1, 2, ... units; from the last on it stays the same.

    It stops one unit short of certainty, so that a toss is a toss.

    >>> [round(chance / GRID, 4) for chance in chances(Fraction(1), Fraction(1, 10))]
    [0.0, 0.1, 0.3718, 0.8057, 0.9653, 1.0]
    """
    growth = floor(Fraction(precision(60)(epsilon).exp().lower) * 2**_FINE)
    extra = floor(delta * GRID)
    table = [0]
    while table[-1] < GRID - 1:
        now = table[-1]
        more = (growth * now >> _FINE) + extra
        rest = -((now + extra - GRID << _FINE) // growth)  # (1 - p - d)/e^e, rounded up
        table.append(min(more, GRID - rest, GRID - 1))
    return tuple(table)


@lru_cache(maxsize=1024)
def _per_key(epsilon: Fraction, delta: Fraction, sensitivity: int, squared: int) -> tuple[Fraction, Fraction]:
    most = min(sensitivity, isqrt(squared))
    each = min(epsilon / sensitivity, Fraction(_ENOUGH, most))  # less is as private
    if most == 1:
        return each, delta / min(sensitivity, squared)
    grown = _grown(each, most)
    spread = min(squared * max(Fraction(1), grown / most**2), sensitivity * grown / most)
    return each, delta / spread


def _grown(epsilon: Fraction, places: int) -> Fraction:
    """(e^(places epsilon) - 1)/(e^epsilon - 1), rounded up: by what group privacy multiplies delta."""
    bound = certify(lambda p: p(places * epsilon).expm1() / p(epsilon).expm1(), 30).upper
    return Fraction(ceil(Fraction(bound) * 10**30), 10**30)
