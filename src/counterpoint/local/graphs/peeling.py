"""Peeling: the server of the core decomposition protocol, and its users as arrays.

See Henzinger et al. 2024, sec. 9, errata, Henzinger E16.

The server keeps a value d and the active vertices A, and asks all of A: have you fewer than d neighbours in A? The
vertices that answer yes get the core number d - 1 and leave; if none does, d grows by `step`. (As printed, d never
grows and the vertices that leave get d.) Without noise and with step 1 this is the classical peeling, and exact. The
vertices that are left when d exceeds their number n get n - 1. Any server would be as private: it only sees answers.

>>> from counterpoint import SeededCoins
>>> from counterpoint.local.graphs.neighbourhood import Neighbourhood, SparseVector
>>> graph = Graph.of([(0, 1), (1, 2), (2, 0), (2, 3)], vertices=4)
>>> present = Neighbourhoods(Neighbourhood(SparseVector(80, 0, monotone=True), 4)).meet(graph, SeededCoins(1))
>>> present.answer(Peel(np.arange(4), than=2), SeededCoins(2))
array([False, False, False,  True])
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterpoint.encoding import Plain
from counterpoint.errors import Halted, InvalidParameter, InvalidRequest
from counterpoint.local.graphs.graph import Graph
from counterpoint.local.graphs.neighbourhood import Fewer, Neighbourhood
from counterpoint.local.properties import is_whole
from counterpoint.local.protocol import Done, Server
from counterpoint.local.users import Answers, Crowd, Meeting, Query
from counterpoint.numbers.exact import whole
from counterpoint.randomness.coins import Coins

Vertices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Peel:
    """A round of peeling: all of A are asked whether they have fewer than d neighbours in A."""

    to: Vertices
    than: int

    @property
    def query(self) -> Plain:
        """The query spelled out, as a single user sees it."""
        return Fewer(tuple(self.to.tolist()), self.than)


@dataclass(frozen=True, eq=False)
class Peeled:
    """What the server remembers: d, the active vertices, and the core numbers so far."""

    than: int
    active: Vertices
    cores: Vertices


class Peeling(Server):
    """The server; its result is one core number for each vertex."""

    def __init__(self, vertices: int, step: int = 1) -> None:
        self.vertices = whole(vertices, 0, "the number of vertices")
        self.step = whole(step, 1, "the step")

    def start(self) -> Peeled:
        """All vertices are active and d = 1."""
        all_vertices = np.arange(self.vertices)
        return Peeled(1, all_vertices, np.zeros(self.vertices, dtype=np.int64))

    def turn(self, own: Peeled, answers: Answers | None, coins: Coins) -> tuple[Peeled, Query | Done]:
        """Remove the vertices that answered yes, or go on to the next d."""
        if answers is not None:
            own = self._after(own, np.asarray(answers, dtype=bool))
        if not len(own.active) or own.than > self.vertices:
            cores = _set(own.cores, own.active, self.vertices - 1)
            return own, Done(cores)
        return own, Peel(own.active, own.than)

    def _after(self, own: Peeled, few: NDArray[np.bool_]) -> Peeled:
        if not few.any():
            return Peeled(own.than + self.step, own.active, own.cores)
        return Peeled(own.than, own.active[~few], _set(own.cores, own.active[few], own.than - 1))


def _set(cores: Vertices, where: Vertices, value: int) -> Vertices:
    changed = cores.copy()
    changed[where] = value
    return changed


class Neighbourhoods(Crowd):
    """All vertices of a graph, each a `Neighbourhood`, as arrays."""

    def __init__(self, user: Neighbourhood) -> None:
        self._user = user

    @property
    def user(self) -> Neighbourhood:
        """What each of them is."""
        return self._user

    def meet(self, data: Any, coins: Coins) -> "NeighbourhoodsPresent":
        """Every vertex draws the noise on its threshold and learns its neighbours."""
        if not isinstance(data, Graph) or data.size != self._user.vertices:
            raise InvalidParameter(f"the data are a Graph on {self._user.vertices} vertices")
        return NeighbourhoodsPresent(self._user, data, coins)


class NeighbourhoodsPresent(Meeting):
    """The vertices at work: each one's noise, and how many neighbours it has among those last asked about.

    A round costs one noise for each vertex asked, and one step for each edge of a vertex that has left or entered the
    set since the round before.
    """

    def __init__(self, user: Neighbourhood, graph: Graph, coins: Coins) -> None:
        self._user = user
        self._graph = graph
        self._live = np.ones(graph.size, dtype=bool)
        self._tau = coins.discrete_laplace(user.watch.scales[0], size=graph.size)
        self._among = np.ones(graph.size, dtype=bool)
        self._counts = graph.degrees.copy()

    @property
    def size(self) -> int:
        """One user for each vertex."""
        return self._graph.size

    def read_once(self, asked: Query) -> Query:
        """As it is: a round of peeling is the same whenever it is read, and computing its query would take long."""
        return asked

    def check(self, to: Vertices, asked: Query) -> None:
        """The round is one of peeling, and all who are asked still answer."""
        if type(asked) is not Peel or not is_whole(asked.than):
            raise InvalidRequest("a crowd of vertices answers rounds of peeling: Peel(to, than)")
        if not self._live[to].all():
            raise Halted("a vertex that has answered yes has given its last answer")

    def reply(self, to: Vertices, asked: Query, coins: Coins) -> Answers:
        """-count + nu - tau >= 1 - d, as `Neighbourhood` and its sparse vector say it."""
        assert isinstance(asked, Peel)
        self._count_among(to)
        noise = coins.discrete_laplace(self._user.watch.scales[1], size=len(to))
        few: NDArray[np.bool_] = np.asarray(noise - self._tau[to] - self._counts[to] >= 1 - asked.than, dtype=bool)
        self._live[to[few]] = False
        return few

    def _count_among(self, to: Vertices) -> None:
        among = np.zeros(self.size, dtype=bool)
        among[to] = True
        for vertices, change in (
            (np.flatnonzero(self._among & ~among), -1),
            (np.flatnonzero(among & ~self._among), 1),
        ):
            if len(vertices):
                np.add.at(self._counts, self._graph.ends_of(vertices), change)
        self._among = among
