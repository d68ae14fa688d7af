"""How often values occur among users that answer with noisy bits: a histogram in one round, heavy hitters in several.

`histogram_of_users`: each is asked once about all categories. `heavy_hitters`: the values are too many to be listed, so
the server grows prefixes: it divides the users at random into as many groups as there are levels, asks each group once,
about the extensions of the prefixes that were frequent a level before, and keeps those that look frequent again. What
it asks depends on earlier answers, and yet it is PureDP(epsilon) for each user's value, since each user answers once
(Henzinger et al. 2024, Cor 8.8 with k = 1, and the property `AtMost(1)`).

>>> from counterpoint import SeededCoins
>>> words = [5] * 6000 + [9] * 3000 + list(range(16)) * 50
>>> found = heavy_hitters(words, epsilon=2, bits=4, coins=SeededCoins(1), server_coins=SeededCoins(2))
>>> [row.value for row in found.rows]
[5, 9]
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from math import ceil, hypot, sqrt, tanh
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterpoint.errors import InvalidParameter
from counterpoint.local.membership import Among, Members, Membership
from counterpoint.local.properties import AtMost
from counterpoint.local.protocol import Done, Protocol, ProtocolOutcome, Server
from counterpoint.local.users import Answers, Query, Round
from counterpoint.numbers import Number
from counterpoint.numbers.exact import positive, whole
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.claims import Claim
from counterpoint.privacy.loss import Loss
from counterpoint.privacy.relations import FirstMessage, first_pair_consistent
from counterpoint.randomness.coins import Coins

_KEYS = 2**40
"""The scale of the random keys by which users are put in order: ties hardly happen, and only move a user's group."""


@dataclass(frozen=True)
class Frequency:
    """A value, about how many users have it, and the standard deviation of that."""

    value: Hashable
    count: float
    deviation: float


@dataclass(frozen=True)
class Frequencies:
    """The rows of a result, what the server's view cost, and how many rounds it took."""

    rows: tuple[Frequency, ...]
    claim: Claim = field(repr=False)
    rounds: int

    @property
    def loss(self) -> Loss:
        """What the server's view cost."""
        return self.claim.loss

    def certificate(self) -> Certificate:
        """Why it cost no more."""
        return self.claim.certificate

    def __getitem__(self, value: Hashable) -> Frequency:
        for row in self.rows:
            if row.value == value:
                return row
        raise KeyError(value)

    def __rich__(self) -> object:
        from rich.table import Table  # noqa: PLC0415 - rich is imported only where something is shown

        table = Table("value", "count", "deviation")
        for row in self.rows:
            table.add_row(str(row.value), f"{row.count:.0f}", f"{row.deviation:.0f}")
        return table


def estimates(user: Membership, answers: Answers) -> tuple[NDArray[np.float64], float]:
    """Unbiased counts of the users who have each candidate, and their standard deviation, by the law of the noise.

    A bit is true with probability p: E[ones] = count p + (asked - count)(1 - p), and 2p - 1 = tanh(epsilon/4).

    >>> estimates(Membership(100, bits=1), [(1, 0), (1, 0), (0, 1)])[0].round()
    array([2., 1.])
    """
    bits = np.asarray(answers, dtype=np.float64)
    p, asked, more = user.truth, len(bits), tanh(float(user.epsilon) / 4)
    counts: NDArray[np.float64] = (bits.sum(axis=0) - asked * (1 - p)) / more
    return counts, sqrt(asked * p * (1 - p)) / more


class AskAll(Server):
    """Asks every user once about every category; its result is the estimated counts and their deviation."""

    def __init__(self, user: Membership, users: int, candidates: int) -> None:
        self.user, self.users, self.candidates = user, users, candidates

    def start(self) -> None:
        """There is nothing to remember."""

    def turn(self, own: None, answers: Answers | None, coins: Coins) -> tuple[None, Query | Done]:
        """One round."""
        if answers is None:
            return None, Round(range(self.users), Among(self.user.bits, tuple(range(self.candidates))))
        return None, Done(estimates(self.user, answers))


@dataclass(frozen=True)
class Grown:
    """What the server of heavy hitters remembers: the groups of users, the level, and the prefixes it asked about."""

    groups: Sequence[NDArray[np.int64]] | None
    level: int
    asked: tuple[int, ...]


class Growing(Server):
    """Grows frequent prefixes by `step` bits a round; its result is values with their counts and deviations.

    A prefix is kept if its estimate is at least `threshold` deviations (scaled up from its group to all users), and at
    most `most` of them are, the largest ones.
    """

    def __init__(self, user: Membership, users: int, step: int = 2, most: int = 16, threshold: Number = 4) -> None:
        self.user, self.users = user, whole(users, 0, "the number of users")
        self.step, self.most = whole(step, 1, "the step"), whole(most, 1, "most")
        self.threshold = float(positive(threshold, "the threshold"))
        if self.step > 12:
            raise InvalidParameter("a step of more than 12 bits asks about more than 4096 extensions of each prefix")
        self.lengths = [min(user.bits, (level + 1) * self.step) for level in range(ceil(user.bits / self.step))]

    def start(self) -> Grown:
        """No user has been asked."""
        return Grown(None, 0, ())

    def turn(self, own: Grown, answers: Answers | None, coins: Coins) -> tuple[Grown, Query | Done]:
        """Keep what is frequent; ask the next group about its extensions."""
        groups = own.groups or self._divided(coins)
        if answers is None:
            kept, level = [(0, 0.0, 0.0)], 0
        else:
            kept, level = self._frequent(own.asked, answers), own.level + 1
        if level == len(self.lengths) or not kept:
            return own, Done(kept if level == len(self.lengths) else [])
        bits = self.lengths[level] - (self.lengths[level - 1] if level else 0)
        asked = tuple(prefix << bits | more for prefix, _, _ in kept for more in range(2**bits))
        return Grown(groups, level, asked), Round(groups[level], Among(self.lengths[level], asked))

    def _divided(self, coins: Coins) -> list[NDArray[np.int64]]:
        """The users in random groups, one for each level; the server's own coins."""
        keys = coins.discrete_laplace(_KEYS, size=self.users)
        order = np.argsort(keys, kind="stable").astype(np.int64)
        return [np.sort(group) for group in np.array_split(order, len(self.lengths))]

    def _frequent(self, asked: tuple[int, ...], answers: Answers) -> list[tuple[int, float, float]]:
        """What is kept, with its count among all users and the deviation of that: by the noise, and by who was asked.

        Of a value that no user has, only the noise can be seen, so that is what the threshold is a multiple of.
        """
        counts, deviation = estimates(self.user, np.asarray(answers).reshape(-1, len(asked)))
        share = self.users / max(1, len(answers))
        found = [(prefix, count * share) for prefix, count in zip(asked, counts.tolist(), strict=True)]
        frequent = [row for row in found if row[1] >= self.threshold * deviation * share and row[1] > 0]
        return [
            (prefix, count, hypot(deviation * share, self._by_grouping(count, len(answers))))
            for prefix, count in sorted(frequent, key=lambda row: -row[1])[: self.most]
        ]

    def _by_grouping(self, count: float, asked: int) -> float:
        """How far the count of a random group, scaled up, is from that of all: hypergeometric, at the estimate."""
        have = min(count, self.users)
        return sqrt(have * (self.users - have) * (self.users - asked) / (asked * max(1, self.users - 1)))


def histogram_of_users(
    values: Sequence[Hashable], epsilon: Number, categories: Sequence[Hashable], *, coins: Coins | None = None
) -> Frequencies:
    """How many users have each of the categories (which are public), in one round of randomized response.

    Each user's answer is PureDP(epsilon) for any change of its value. A value that is no category counts nowhere.

    >>> from counterpoint import SeededCoins
    >>> colours = ["red"] * 700 + ["blue"] * 300
    >>> found = histogram_of_users(colours, 4, ["red", "blue", "green"], coins=SeededCoins(1))
    >>> found.loss, abs(found["red"].count - 700) < 6 * found["red"].deviation
    (PureDP(4), True)
    """
    names = list(categories)
    places = {name: place for place, name in enumerate(names)}
    if not names or len(places) < len(names):
        raise InvalidParameter("the categories are one or more different values")
    crowd = Members(epsilon, bits=len(names).bit_length())
    elsewhere = 2**crowd.user.bits - 1
    data = np.array([places.get(value, elsewhere) for value in values], dtype=np.int64)
    outcome = _run(AskAll(crowd.user, len(data), len(names)), crowd, data, coins, None)
    counts, deviation = outcome.result
    rows = tuple(Frequency(name, count, deviation) for name, count in zip(names, counts.tolist(), strict=True))
    return Frequencies(rows, outcome.claim, outcome.rounds)


def heavy_hitters(
    values: Any,
    epsilon: Number,
    bits: int,
    *,
    step: int = 2,
    most: int = 16,
    threshold: Number = 4,
    coins: Coins | None = None,
    server_coins: Coins | None = None,
) -> Frequencies:
    """The values of `bits` bits that many users have, the most frequent first; one answer of each user.

    Values are integers (a word is one: `int.from_bytes`). The other arguments are those of `Growing`.
    """
    crowd = Members(epsilon, bits)
    server = Growing(crowd.user, len(values), step, most, threshold)
    outcome = _run(server, crowd, values, coins, server_coins)
    return Frequencies(tuple(Frequency(*row) for row in outcome.result), outcome.claim, outcome.rounds)


def _run(server: Server, crowd: Members, data: Any, coins: Coins | None, server_coins: Coins | None) -> ProtocolOutcome:
    protocol = Protocol(server, crowd, first_pair_consistent(1, FirstMessage()), AtMost(1))
    return protocol.run(data, coins, server_coins=server_coins, keep_view=False)
