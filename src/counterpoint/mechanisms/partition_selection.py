"""Partition selection: which keys a table has, released privately (Desfontaines et al. 2022, Thm 1).

Which cities occur in a table is itself private: a city with one inhabitant reveals that one. `PartitionSelection` takes
the number of units of each key, which is a `Tally`, and releases each key with the largest chance that
(epsilon, delta) allows: almost never where one unit has the key, almost surely where many do. A key without units is
never released, as it is not in the tally; delta pays for the first unit, which adds it. `GaussianSelection` is for
units that have several keys.

>>> from counterpoint import PartitionSelection
>>> from counterpoint.coins import SeededCoins
>>> from counterpoint.mechanisms import Ask
>>> from counterpoint.privacy.secret import Tally
>>> select, coins = PartitionSelection(epsilon=1, delta=1e-6), SeededCoins(7)
>>> cities = Tally((("Paris", 900), ("Rome", 4000), ("Ys", 1)))
>>> select.step(select.start(coins), Ask(private=cities), coins)
(None, ('Paris', 'Rome'))
"""

from bisect import bisect_left
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, isqrt
from typing import NamedTuple

from counterpoint.coins.coins import Coins
from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter
from counterpoint.measures import ApproxDP, ApproxzCDP, GaussianDP
from counterpoint.measures.gaussian_curve import gaussian_delta, normal_quantile
from counterpoint.mechanisms.mechanism import Answer, Left, Mechanism, State, is_addressed
from counterpoint.mechanisms.tails import may_fail
from counterpoint.numbers import Interval, Number, certify, normal_tail, precision, sqrt_up
from counterpoint.numbers.exact import format_number, whole
from counterpoint.numbers.parameters import Positive, PositiveOrNone, Probability, default
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.messages import Ask, Message
from counterpoint.privacy.relations import every_step
from counterpoint.privacy.secret import counted

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
                    f"{name} must be at least {format_number(least)} for keys to be selected, but "
                    f"{format_number(given)} was given"
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
                f"a sensitivity of {places} leaves less than epsilon {format_number(LEAST_EPSILON)} or delta "
                f"{format_number(LEAST_DELTA)} for each key: launch it with more"
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
        # p' <= e^e p + d, and 1 - p <= e^e (1 - p') + d the other way round (Desfontaines et al. 2022, Thm 1). Both are
        # rounded down, against the analyst: the chances keep the two inequalities as integers.
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


MOST_SQUARED = 10**6
"""The largest squared sensitivity of an ask: as many keys of a unit."""
_SHARE = Fraction(99, 100)
"""What the noise on keys that both worlds have may take of delta; new keys may take all of it."""
_DIGITS = 50


class Calibration(NamedTuple):
    """The variance of the noise, and from which noisy count on a key is released."""

    sigma2: Fraction
    threshold: int

    def released(self, units: int) -> Interval:
        """The chance that a key with `units` units is released: Q((threshold - 1/2 - units)/sigma), enclosed.

        >>> round(float(Calibration(Fraction(1), 3).released(3).lower), 4)
        0.6915
        """
        p = precision(_DIGITS)
        far = p(self.threshold - units - Fraction(1, 2)) / p(self.sigma2).sqrt()
        return normal_tail(far) if far.lower >= 0 else 1 - normal_tail(-far)


class GaussianSelection(Mechanism, Value, frozen=True):
    """Answers one ask about a tally with the keys it selects, in order: their counts plus noise reach a threshold.

    With `epsilon` it is ApproxDP(epsilon, delta), with `rho` ApproxzCDP(rho, delta). The noise is a rounded normal, its
    variance and the threshold follow from the sensitivities of the ask, as `PartitionSelection` has them: between
    neighbours key i moves by d_i, with sum d_i <= s and sum d_i^2 <= q.

    >>> GaussianSelection(0.5, 1e-9).claim.loss, GaussianSelection(rho=0.1, delta=1e-9).claim.loss
    (ApproxDP(0.5, 1e-9), ApproxzCDP(0.1, 1e-9))

    It is for units that have several keys (theory, Selecting keys). `PartitionSelection` divides epsilon and delta by
    the number r of keys of a unit. Normal noise on the count of each key and one threshold for all pay for the square
    root of r instead, so that from r = 3 on fewer units are enough for a key. A key without units is never released:
    the threshold keeps a unit's new keys out, but for a chance of delta.

    >>> from counterpoint import PartitionSelection
    >>> from counterpoint.coins import SeededCoins
    >>> from counterpoint.mechanisms import Ask, GaussianSelection
    >>> from counterpoint.privacy.secret import Tally
    >>> select, coins = GaussianSelection(epsilon=1, delta=1e-6), SeededCoins(7)
    >>> cities = Tally((("Paris", 900), ("Rome", 4000), ("Ys", 1)))
    >>> select.step(select.start(coins), Ask(private=cities, sensitivity=8, squared=8), coins)
    (None, ('Paris', 'Rome'))
    >>> [mechanism(1, 1e-6).error(0.95, sensitivity=50) for mechanism in (PartitionSelection, GaussianSelection)]
    [772, 215]
    """

    epsilon: PositiveOrNone = default(None)
    delta: Probability = default(Fraction(0))
    rho: PositiveOrNone = default(None)

    def __post_init__(self) -> None:
        """Check that there is one price, and a delta for keys that are new."""
        if (self.epsilon is None) == (self.rho is None):
            raise InvalidParameter("give GaussianSelection one of epsilon and rho, with a delta")
        if not LEAST_DELTA <= self.delta < 1:
            raise InvalidParameter(
                f"delta must be at least {format_number(LEAST_DELTA)} and below 1 for keys to be selected, "
                f"but {format_number(self.delta)} was given"
            )

    @property
    def claim(self) -> Claim:
        """ApproxDP or ApproxzCDP, for neighbours that move the tally by the ask's sensitivity."""
        by = "rounded normal noise on counts, and a threshold that new keys reach with delta (theory, Selecting keys)"
        if self.rho is not None:
            return claim(ApproxzCDP(self.rho, self.delta), every_step(), by, interaction="one-shot")
        assert self.epsilon is not None
        return claim(ApproxDP(self.epsilon, self.delta), every_step(), by, interaction="one-shot")

    def accepts(self, message: object) -> bool:
        """An ask about a tally, of a unit that has at most a million keys."""
        if not isinstance(message, Ask) or message.private is None or is_addressed(message):
            return False
        assert message.squared is not None  # every Ask has it
        return message.private.keyed and message.squared <= MOST_SQUARED

    def calibrated(self, sensitivity: int, squared: int) -> Calibration:
        """The noise and the threshold for an ask of these sensitivities; both are public."""
        most = min(squared, sensitivity * sensitivity)
        return _calibrated(self.epsilon, self.rho, self.delta, sensitivity, most)

    def start(self, coins: Coins) -> State:
        """One ask is left."""
        return Left(1)

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """The keys whose noisy count reaches the threshold."""
        assert isinstance(message, Ask) and message.private is not None and message.squared is not None
        sigma2, threshold = self.calibrated(message.sensitivity, message.squared)
        pairs = counted(message.private).pairs  # a key without units is not listed
        noise = coins.rounded_normal(sigma2, size=len(pairs))
        return None, tuple(
            key for (key, units), more in zip(pairs, noise, strict=True) if units + int(more) >= threshold
        )

    def error(self, probability: Number, sensitivity: int = 1, squared: int | None = None) -> int:
        """The least number of units with which a key is released with at least this probability; exact.

        For an ask of this sensitivity; `squared` is the same unless given, as where a unit counts once at each of its
        keys.

        >>> GaussianSelection(1, 1e-6).error(0.95, sensitivity=8), GaussianSelection(1, 1e-6).error(0.5, sensitivity=8)
        (84, 64)
        """
        fails = may_fail(probability)
        places = whole(sensitivity, 1, "the sensitivity")
        most = places if squared is None else whole(squared, 1, "the squared sensitivity")
        if most > MOST_SQUARED:
            raise InvalidParameter(f"a squared sensitivity of {most} is more than {MOST_SQUARED}: spread to fewer keys")
        if fails == 1:
            return 1
        found = self.calibrated(places, most)
        far = precision(_DIGITS)(found.sigma2).sqrt() * normal_quantile(fails) + found.threshold - Fraction(1, 2)
        return max(1, ceil(far.upper))


@lru_cache(maxsize=1024)
def _calibrated(epsilon: Fraction | None, rho: Fraction | None, delta: Fraction, s: int, q: int) -> Calibration:
    """The least noise, and then the least threshold, with which the claim holds."""
    if rho is not None:
        sigma2, slack = q / (2 * rho), None
    else:
        assert epsilon is not None
        mu = GaussianDP.for_budget(epsilon, _SHARE * delta).mu
        if mu == 0:
            raise InvalidParameter("this epsilon and delta are so small that no noise keeps them; choose larger ones")
        sigma2, slack = q / mu**2, epsilon
    short, step = 1, ceil(sqrt_up(sigma2))
    while not _holds(Calibration(sigma2, short + step), slack, delta, s, q):
        short, step = short + step, 2 * step
    enough = short + step
    while enough - short > 1:
        middle = (short + enough) // 2
        if _holds(Calibration(sigma2, middle), slack, delta, s, q):
            enough = middle
        else:
            short = middle
    return Calibration(sigma2, enough)


def _holds(found: Calibration, epsilon: Fraction | None, delta: Fraction, s: int, q: int) -> bool:
    """Whether new keys, with what is left for old ones, stay within delta; all bounds are rounded up."""
    new = _rate(found, s, q)
    if new is None or _chance(new * q) > delta:
        return False
    if epsilon is None:
        return True
    ranges = ((0, 0), *_ranges(q))
    return all(_delta(found, epsilon, _chance(new * most), q - least) <= delta for least, most in ranges)


def _rate(found: Calibration, s: int, q: int) -> Fraction | None:
    """The largest -log(1 - P[released]) of a new key by the square of its units; None if one is almost certain."""
    rates = []
    for least, most in _ranges(min(s, isqrt(q))):
        stays = 1 - found.released(most)
        if stays.lower <= 0:
            return None
        rates.append(Fraction((-stays.log()).upper) / least**2)
    return max(rates)


def _chance(rate: Fraction) -> Fraction:
    """1 - e^-rate, rounded up."""
    return Fraction((-(-precision(_DIGITS)(rate)).expm1()).upper)


def _ranges(last: int) -> Iterator[tuple[int, int]]:
    """The numbers from 1 on in ranges over which a bound changes little: one by one up to 8, then by an eighth more."""
    least = 1
    while least <= last:
        most = min(least + least // 8, last)
        yield least, most
        least = most + 1


def _delta(found: Calibration, epsilon: Fraction, new: Fraction, squared: int) -> Fraction:
    """The delta of neighbours whose new keys show with chance `new`, and whose other keys move by `squared`."""
    if squared == 0:
        return new
    p = precision(_DIGITS)
    left = epsilon + Fraction(p(1 - new).log().lower)
    if left < 0:
        return Fraction(1)
    return new + (1 - new) * Fraction(gaussian_delta(sqrt_up(squared / found.sigma2), left, p).upper)
