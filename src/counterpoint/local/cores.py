"""Private core decomposition: each vertex' core number, from noisy comparisons alone (Henzinger et al. 2024, sec. 9).

The core number of a vertex is the largest k such that it belongs to a subgraph in which all have at least k neighbours.
The protocol is edge-local: PureDP(epsilon) for the server's whole view between graphs that differ in one edge. That
edge is known to two users, each a sparse vector of epsilon/2, and k = 2 of them compose (Henzinger et al. 2024, Cor
8.8).

How far it is off is bounded for every graph, from public numbers alone (`most_below`, `most_above`; theory, Core
numbers).

>>> from counterpoint.coins import SeededCoins
>>> edges = [(a, b) for a in range(30) for b in range(a)] + [(30, 0)]
>>> cores = core_decomposition(edges, epsilon=40, vertices=31, coins=SeededCoins(1))
>>> cores.loss, cores[30], abs(cores[0] - 29) <= cores.error(0.95)
(OptimalParts(2 x PureDP(20)), 1, True)
>>> most_below(34, 1, (Fraction(4), Fraction(4)), Fraction(1, 20), rooms=(33, 32, 20))
33
>>> most_above(34, (Fraction(4), Fraction(4)), Fraction(1, 20))
30
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import import_module
from math import expm1, log
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from counterpoint.coins.coins import Coins
from counterpoint.coins.secure import SecureCoins
from counterpoint.display.progress import working
from counterpoint.errors import InvalidParameter
from counterpoint.local.graph import Graph
from counterpoint.local.peeling import Neighbourhood, Neighbourhoods, OneSwap, Peeling
from counterpoint.local.protocol import Protocol
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.sparse_vector import AboveThreshold, SparseVector
from counterpoint.mechanisms.tails import may_fail
from counterpoint.mechanisms.threshold import Scales, least_alpha, log_draws
from counterpoint.numbers import Number
from counterpoint.numbers.exact import positive, whole
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.claims import Claim
from counterpoint.privacy.relations import FirstMessage, Sparse, first_pair_consistent

_ABOVE = Fraction(1, 5)
"""What core numbers that are too high may take of what may fail: that is one round for each vertex."""
Noise: TypeAlias = Literal["narrow", "wide"]
Neighbours: TypeAlias = Literal["edge", "rewired"]


@dataclass(frozen=True, eq=False, repr=False)
class Cores:
    """The private core numbers of a graph's vertices, what they cost and how far they may be off."""

    vertices: Sequence[Hashable]
    values: NDArray[np.int64]
    claim: Claim
    rounds: int
    asks: int
    step: int
    scales: tuple[Fraction, Fraction] = field(repr=False)
    rooms: tuple[int, ...] = field(repr=False)
    """For the first, second, ... rounds of levels: the largest number of vertices asked, less d, where some left."""

    @property
    def loss(self) -> Loss:
        """What the server's view cost."""
        return self.claim.loss

    def certificate(self) -> Certificate:
        """Why it cost no more."""
        return self.claim.certificate

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[tuple[Hashable, int]]:
        return iter(self.rows())

    def __getitem__(self, vertex: Hashable) -> int:
        if vertex not in self.vertices:
            raise KeyError(vertex)
        return int(self.values[self.vertices.index(vertex)])

    def rows(self) -> list[tuple[Hashable, int]]:
        """The table: each vertex and its core number."""
        return list(zip(self.vertices, self.values.tolist(), strict=True))

    def to_arrow(self) -> Any:
        """The table for Arrow, and so for Polars, pandas or DuckDB; needs pyarrow."""
        return import_module("pyarrow").table({"vertex": list(self.vertices), "core": self.values})

    def error(self, probability: Number) -> int:
        """With this probability every core number is right up to this, below and above.

        It holds for every graph (theory, Core numbers), by public numbers alone, and so it is wider than what most
        graphs have: 1.2 times the error of a complete graph and 1.5 times that of a regular one. There a level has a
        dozen rounds, in each of which another core may lose its first vertex, for all that the answers tell; that one
        core lost it long before is not public. No core number is off by more than what the answers leave, from 0 to
        one less than there are vertices.
        """
        fails = may_fail(probability)
        if not self.asks:
            return 0
        vertices = len(self.values)
        below = most_below(vertices, self.step, self.scales, fails * (1 - _ABOVE), self.rooms)
        above = most_above(vertices, self.scales, fails * _ABOVE) + self.step - 1
        return max(min(below, vertices - 1 - int(self.values.min())), min(above, int(self.values.max())))

    def _summary(self) -> list[tuple[str, str]]:
        largest = str(self.values.max()) if len(self.values) else "none"
        return [
            ("vertices", f"{len(self.values):,}"),
            ("largest core number", largest),
            ("lost", repr(self.loss)),
            ("rounds", f"{self.rounds:,}"),
            ("right up to (95 %)", str(self.error("0.95"))),
        ]

    def __repr__(self) -> str:
        return f"Cores({', '.join(f'{name}: {value}' for name, value in self._summary())})"

    def __rich__(self) -> object:
        from rich.table import Table  # noqa: PLC0415 - rich is imported only where something is shown

        table = Table("Core decomposition", "")
        for name, value in self._summary():
            table.add_row(name, value)
        return table

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in self._summary())
        return f"<table>{rows}</table>"


def core_protocol(
    vertices: int,
    epsilon: Number,
    *,
    step: int = 1,
    noise: Noise = "narrow",
    neighbours: Neighbours = "edge",
) -> Protocol:
    """The protocol itself, its users as a crowd; `core_decomposition` runs it.

    `neighbours="edge"`: graphs that differ in one edge, which two users know (k = 2). `"rewired"`: one end of an edge
    may have moved to another vertex, which three users notice (k = 3). `noise="narrow"` compares with half the noise of
    `"wide"`; it is for neighbours of which all of a user's values move the same way, that is for `"edge"`.

    >>> print(core_protocol(4, epsilon=1).claim.loss, core_protocol(4, 1).users.user.watch.scales)
    OptimalParts(2 x PureDP(0.5)) (Fraction(4, 1), Fraction(4, 1))
    >>> core_protocol(4, epsilon=1, noise="wide").users.user.watch.scales
    (Fraction(4, 1), Fraction(8, 1))
    """
    if noise not in ("narrow", "wide") or neighbours not in ("edge", "rewired"):
        raise InvalidParameter("noise is 'narrow' or 'wide', and neighbours are 'edge' or 'rewired'")
    rewired = neighbours == "rewired"
    k = 3 if rewired else 2
    each = positive(epsilon, "epsilon") / k
    watch = SparseVector(each, 0, monotone=True) if noise == "narrow" else AboveThreshold(each, 0)
    size = whole(vertices, 0, "the number of vertices")
    user = Neighbourhood(watch, max(1, size), rewired)
    data: Sparse = first_pair_consistent(k, OneSwap() if rewired else FirstMessage())
    return Protocol(Peeling(size, step), Neighbourhoods(user), data)


def core_decomposition(
    graph: Any,
    epsilon: Number,
    *,
    vertices: int | Iterable[Hashable] | None = None,
    step: int = 1,
    noise: Noise = "narrow",
    neighbours: Neighbours = "edge",
    coins: Coins | None = None,
    progress: bool = True,
) -> Cores:
    """The core numbers of a graph, PureDP(epsilon) for an adversary that sees every answer of its vertices.

    The graph is whatever `Graph.of` reads; the other arguments are those of `core_protocol`. After two seconds a
    terminal or a notebook shows how many vertices have their number, which is public, unless `progress=False`.
    """
    given = Graph.of(graph, vertices)
    protocol = core_protocol(given.size, epsilon, step=step, noise=noise, neighbours=neighbours)
    user = protocol.users.mechanisms[0]
    assert isinstance(user, Neighbourhood)
    server = protocol.server
    assert isinstance(server, Peeling)
    if not given.size:
        return Cores(given.names, np.zeros(0, dtype=np.int64), protocol.claim, 0, 0, server.step, user.watch.scales, ())
    running = protocol.open(given, coins or SecureCoins(), keep_view=False)
    rooms = RoundRooms()
    with working("peeling", given.size, shown=progress) as work:
        while running.turn():
            work.steps = given.size - len(running.own.active)
            rooms.note(running.own.than, len(running.own.active))
    rooms.note(running.own.than, len(running.own.active))
    outcome = running.finish()
    return Cores(
        given.names,
        outcome.result,
        outcome.claim,
        outcome.rounds,
        outcome.asks,
        server.step,
        user.watch.scales,
        tuple(rooms.largest),
    )


_SHARES = tuple(Fraction(part, 100) for part in (10, 5, 10, 17, 22, 16, 5, 5))
"""Of what may fail, for the rounds 1, 2, 3 to 4, 5 to 8, ... of a level: most graphs have 5 to 32 at some level.

Later ones share a tenth, halved each time.
"""
_REST = Fraction(1, 10)


class RoundRooms:
    """The largest room of the first, second, ... rounds of levels, of rounds in which a vertex left.

    >>> rooms = RoundRooms()
    >>> for level, asked in [(1, 9), (2, 9), (2, 7), (2, 6), (3, 6), (3, 0)]:
    ...     rooms.note(level, asked)
    >>> rooms.largest  # 9 were asked first at level 2, and 7 then; at level 3 all 6 left at once
    [7, 5]
    """

    def __init__(self) -> None:
        self.largest: list[int] = []
        self._level = self._asked = self._number = 0

    def note(self, level: int, asked: int) -> None:
        """Note how many vertices a round at this level asks; after the last round, how many are left."""
        if asked < self._asked:
            self.largest += [0] * (self._number - len(self.largest))
            self.largest[self._number - 1] = max(self.largest[self._number - 1], self._asked - self._level)
        self._number = self._number + 1 if level == self._level else 1
        self._level, self._asked = level, asked


def share_of(number: int) -> Fraction:
    """The share of the round of this number, from 1, at its level: those of as many binary digits have equal ones.

    >>> [str(share_of(number)) for number in (1, 2, 3, 4, 5)]
    ['1/10', '1/20', '1/20', '1/20', '17/400']
    """
    power = (number - 1).bit_length()
    beyond = max(0, power - len(_SHARES) + 1)
    share = _REST / (1 << beyond) if beyond else _SHARES[power]
    return share / (1 << max(0, power - 1))


def most_below(vertices: int, step: int, scales: Scales, fails: Fraction, rooms: Sequence[int]) -> int:
    """The least alpha such that no core number is more than alpha too low, but for a chance of `fails`.

    `rooms` are the largest rooms of the first, second, ... rounds of levels, of those in which a vertex left.

    Let vertex w have the noise tau on its threshold and a fresh nu in each round. It leaves at level
    d if nu - tau >= (neighbours left) - d + 1.

    Let k be the core number of v, and u the first vertex of v's k-core to leave, at level d. It has at least its own
    core number of neighbours left, so nu - tau >= core(u) - d + 1 >= k - d + 1 at one of the rounds of level d, and the
    latter is at least what v is too low by. At lower levels the noise must be larger, by as much: with x in steps of
    `step`, u fails in one round of some level with at most E[min(1, sum over x > alpha of P(nu >= x + tau))]. And all
    of the k-core is left when u leaves: if a vertices are asked in that round, k <= a - 1, so that v is too low by at
    most the *room* a - d.

    How many rounds a level has is not known in advance. Noises can be imagined as drawn in advance, for each level and
    round. The s-th round of a level has an alpha of its own, for a sum over x that is larger by 1/w: the shares w of
    all s add up to 1, and so all of these bounds hold at once.
    """
    # From 1 on, the sum over x is no bound that a chance needs: so it is one as well where x + tau is below 1.
    levels = max(0.0, log_draws(scales, 1) - log(-expm1(-step / float(scales[1]))))
    worst = 0
    for number, room in enumerate(rooms, 1):
        if room > worst:
            share = share_of(number)
            more = log(share.denominator) - log(share.numerator)
            worst = max(worst, min(room, least_alpha(scales, fails / vertices, levels + more)))
    return worst


def most_above(vertices: int, scales: Scales, fails: Fraction) -> int:
    """The least alpha such that no vertex is left more than alpha levels beyond its core number, but for `fails`.

    In the terms of `most_below`: if v is left after level d and its core number is below d - alpha, some w that is left
    has fewer than d - alpha neighbours left. Let t be the first round in which that holds for w: whether it is t is
    known before its nu is drawn, and w stays in that round: tau - nu > alpha. That is one round for each w, whatever
    the others were.
    """
    return least_alpha(scales, fails / vertices, log_draws(scales, 1))
