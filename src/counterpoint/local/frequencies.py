"""How often values occur among users that answer with noise: a histogram in one round, heavy hitters in several.

Users are `BlockResponse`s, and the design of their answers is the best one for epsilon and the number of candidates, by
a formula of these public numbers (`designs.best`). `histogram_of_users`: each is asked once about all categories.
`heavy_hitters`: the values are too many to be listed, so the server grows prefixes: it divides the users at random into
as many groups as there are levels, asks each group once, about the extensions of the prefixes that were frequent a
level before, and keeps those that look frequent again. What it asks depends on earlier answers, and yet it is
PureDP(epsilon) for each user's value, since each user answers once (Henzinger et al. 2024, Cor 8.8 with k = 1, and the
property `AtMost(1)`).

>>> from counterpoint.coins import SeededCoins
>>> words = [5] * 6000 + [9] * 3000 + list(range(16)) * 50
>>> found = heavy_hitters(words, epsilon=2, bits=4, coins=SeededCoins(1), server_coins=SeededCoins(2))
>>> [row.value for row in found.rows]
[5, 9]
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from math import ceil, hypot, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterpoint.coins.coins import Coins
from counterpoint.errors import InvalidParameter
from counterpoint.local.designs import best
from counterpoint.local.properties import AtMost
from counterpoint.local.protocol import Done, Protocol, ProtocolOutcome, Server
from counterpoint.local.responders import BlockResponders, BlockResponse, Which
from counterpoint.local.users import Answers, Query, Round
from counterpoint.measures.loss import Loss
from counterpoint.numbers import Number
from counterpoint.numbers.exact import positive, whole
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.claims import Claim
from counterpoint.privacy.relations import FirstMessage, first_pair_consistent

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
    """The rows of a result, what the server's view cost, how many rounds it took, and how many bits a user sent."""

    rows: tuple[Frequency, ...]
    claim: Claim = field(repr=False)
    rounds: int
    bits: int

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


@dataclass(frozen=True)
class Estimates:
    """Unbiased counts of the users with each candidate, their deviations, and the deviation where no user has it."""

    counts: NDArray[np.float64]
    deviations: NDArray[np.float64]
    of_none: float


def estimates(user: BlockResponse, query: Which, answers: Answers) -> Estimates:
    """What the blocks say, by the law of the noise (theory, Block designs); deviations are those at the estimates.

    >>> from counterpoint.local.designs import Subsets
    >>> found = estimates(BlockResponse(100, bits=2), Which(Subsets(3, 1), 2, 2), [(0,), (0,), (1,), (2,)])
    >>> found.counts.round(), found.of_none < 1e-9
    (array([2., 1.]), True)
    """
    blocks = np.asarray(answers, dtype=np.int64)
    asked, design = len(blocks), query.design
    true, false = design.truth(user.epsilon), design.falsehood(user.epsilon)
    p, q, more = float(true), float(false), float(true - false)
    counts: NDArray[np.float64] = (design.counts(blocks, query.width).astype(np.float64) - asked * q) / more
    have = np.clip(counts, 0, asked)
    deviations = np.sqrt(have * (p * (1 - p)) + (asked - have) * (q * (1 - q))) / more
    return Estimates(counts, deviations, sqrt(asked * q * (1 - q)) / more)


class AskAll(Server):
    """Asks every user once which category it has; its result is the estimated counts and their deviations."""

    def __init__(self, user: BlockResponse, users: int, query: Which) -> None:
        self.user, self.users, self.query = user, users, query

    def start(self) -> None:
        """There is nothing to remember."""

    def turn(self, own: None, answers: Answers | None, coins: Coins) -> tuple[None, Query | Done]:
        """One round."""
        if answers is None:
            return None, Round(range(self.users), self.query)
        return None, Done(estimates(self.user, self.query, answers))


@dataclass(frozen=True)
class Grown:
    """What the server of heavy hitters remembers: the groups of users, the level, what it asked there, and the largest
    number of bits of an answer so far.
    """

    groups: Sequence[NDArray[np.int64]] | None
    level: int
    asked: Which | None
    bits: int


class Growing(Server):
    """Grows frequent prefixes by `step` bits a round; its result is values with their counts and deviations, and bits.

    A prefix is kept if its estimate is at least `threshold` deviations (scaled up from its group to all users), and at
    most `most` of them are, the largest ones.
    """

    def __init__(self, user: BlockResponse, users: int, step: int = 2, most: int = 16, threshold: Number = 4) -> None:
        self.user, self.users = user, whole(users, 0, "the number of users")
        self.step, self.most = whole(step, 1, "the step"), whole(most, 1, "most")
        self.threshold = float(positive(threshold, "the threshold"))
        if self.step > 12:
            raise InvalidParameter("a step of more than 12 bits asks about more than 4096 extensions of each prefix")
        self.lengths = [min(user.bits, (level + 1) * self.step) for level in range(ceil(user.bits / self.step))]

    def start(self) -> Grown:
        """No user has been asked."""
        return Grown(None, 0, None, 0)

    def turn(self, own: Grown, answers: Answers | None, coins: Coins) -> tuple[Grown, Query | Done]:
        """Keep what is frequent; ask the next group about its extensions."""
        groups = own.groups or self._divided(coins)
        if answers is None or own.asked is None:
            kept, level = [(0, 0.0, 0.0)], 0
        else:
            kept, level = self._frequent(own.asked, answers), own.level + 1
        if level == len(self.lengths) or not kept:
            return own, Done((kept if level == len(self.lengths) else [], own.bits))
        bits = self.lengths[level] - (self.lengths[level - 1] if level else 0)
        candidates = tuple(prefix << bits | more for prefix, _, _ in kept for more in range(2**bits))
        asked = Which(best(self.user.epsilon, len(candidates) + 1), self.lengths[level], candidates)
        return Grown(groups, level, asked, max(own.bits, asked.design.bits)), Round(groups[level], asked)

    def _divided(self, coins: Coins) -> list[NDArray[np.int64]]:
        """The users in random groups, one for each level; the server's own coins."""
        keys = coins.discrete_laplace(_KEYS, size=self.users)
        order = np.argsort(keys, kind="stable").astype(np.int64)
        return [np.sort(group) for group in np.array_split(order, len(self.lengths))]

    def _frequent(self, asked: Which, answers: Answers) -> list[tuple[int, float, float]]:
        """What is kept, with its count among all users and the deviation of that: by the noise, and by who was asked.

        Of a value that no user has, only the noise can be seen, so that is what the threshold is a multiple of.
        """
        found = estimates(self.user, asked, answers)
        share = self.users / max(1, len(answers))
        least = self.threshold * found.of_none
        assert isinstance(asked.candidates, tuple)
        rows = zip(asked.candidates, found.counts.tolist(), found.deviations.tolist(), strict=True)
        frequent = [row for row in rows if row[1] >= least and row[1] > 0]
        return [
            (prefix, count * share, hypot(deviation * share, self._by_grouping(count * share, len(answers))))
            for prefix, count, deviation in sorted(frequent, key=lambda row: -row[1])[: self.most]
        ]

    def _by_grouping(self, count: float, asked: int) -> float:
        """How far the count of a random group, scaled up, is from that of all: hypergeometric, at the estimate."""
        have = min(count, self.users)
        return sqrt(have * (self.users - have) * (self.users - asked) / (asked * max(1, self.users - 1)))


def histogram_of_users(
    values: Sequence[Hashable],
    epsilon: Number,
    categories: Sequence[Hashable],
    *,
    others: bool = True,
    coins: Coins | None = None,
) -> Frequencies:
    """How many users have each of the categories (which are public), in one round.

    Each user's answer is PureDP(epsilon) for any change of its value. A value that is no category counts nowhere. If
    every user has one of the categories, say `others=False`: for few categories that takes less noise. A value that is
    none of them then counts as the last one.

    >>> from counterpoint.coins import SeededCoins
    >>> colours = ["red"] * 700 + ["blue"] * 300
    >>> found = histogram_of_users(colours, 4, ["red", "blue", "green"], coins=SeededCoins(1))
    >>> found.loss, found.bits, abs(found["red"].count - 700) < 6 * found["red"].deviation
    (PureDP(4), 2, True)
    """
    names = list(categories)
    places = {name: place for place, name in enumerate(names)}
    if not names or len(places) < len(names):
        raise InvalidParameter("the categories are one or more different values")
    crowd = BlockResponders(epsilon, bits=len(names).bit_length())
    elsewhere = 2**crowd.user.bits - 1
    data = np.array([places.get(value, elsewhere) for value in values], dtype=np.int64)
    query = Which(best(crowd.user.epsilon, max(2, len(names) + bool(others))), crowd.user.bits, len(names))
    outcome = _run(AskAll(crowd.user, len(data), query), crowd, data, coins, None)
    found: Estimates = outcome.result
    rows = zip(names, found.counts.tolist(), found.deviations.tolist(), strict=True)
    return Frequencies(tuple(Frequency(*row) for row in rows), outcome.claim, outcome.rounds, query.design.bits)


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
    crowd = BlockResponders(epsilon, bits)
    server = Growing(crowd.user, len(values), step, most, threshold)
    outcome = _run(server, crowd, values, coins, server_coins)
    rows, sent = outcome.result
    return Frequencies(tuple(Frequency(*row) for row in rows), outcome.claim, outcome.rounds, sent)


def _run(
    server: Server, crowd: BlockResponders, data: Any, coins: Coins | None, server_coins: Coins | None
) -> ProtocolOutcome:
    protocol = Protocol(server, crowd, first_pair_consistent(1, FirstMessage()), AtMost(1))
    return protocol.run(data, coins, server_coins=server_coins, keep_view=False)
