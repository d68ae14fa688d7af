"""Peeling: the server of the core decomposition protocol, and its users, one by one and as arrays.

It is the protocol of Henzinger et al. 2024, sec. 9, as corrected in errata, Henzinger E16.

The server keeps a value d and the active vertices A, and asks all of A: have you fewer than d neighbours in A? The
vertices that answer yes get the core number d - 1 and leave; if none does, d grows by `step`. (As printed, d never
grows and the vertices that leave get d.) Without noise and with step 1 this is the classical peeling, and exact. The
vertices that are left when d exceeds their number n get n - 1. Any server would be as private: it only sees answers.

>>> from counterpoint.coins import SeededCoins
>>> from counterpoint.local.peeling import Neighbourhood
>>> from counterpoint.mechanisms.sparse_vector import SparseVector
>>> graph = Graph.of([(0, 1), (1, 2), (2, 0), (2, 3)], vertices=4)
>>> present = Neighbourhoods(Neighbourhood(SparseVector(80, 0, monotone=True), 4)).meet(graph, SeededCoins(1))
>>> present.answer(Peel(np.arange(4), than=2), SeededCoins(2))
array([False, False, False,  True])
"""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from counterpoint.coins.coins import Coins
from counterpoint.encoding import Plain, Tagged, Value
from counterpoint.errors import Halted, InvalidParameter, InvalidRequest, NotCovered
from counterpoint.local.graph import Graph
from counterpoint.local.properties import Data, are_different, is_whole
from counterpoint.local.protocol import Done, Server
from counterpoint.local.users import Answers, Crowd, Meeting, Query
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.mechanisms.sparse_vector import AboveThreshold, SparseVector
from counterpoint.mechanisms.threshold import NoisyThreshold
from counterpoint.numbers.exact import whole
from counterpoint.numbers.parameters import PositiveInt
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.messages import Ask, Gap, Message
from counterpoint.privacy.relations import OneWay, Progress, Relation, Steps, every_step
from counterpoint.privacy.secret import Raw, Secret, reveal


class Fewer(Tagged, Value, frozen=True):
    """The query (A, d) of Henzinger et al. 2024, sec. 9: have you fewer than `than` neighbours among `among`? Each
    is named once.
    """

    among: tuple[int, ...]
    than: int


class OneSwap(Relation, Value, frozen=True):
    """At most one message differs, by at most one neighbour more and at most one fewer: an edge was rewired.

    >>> OneSwap().valid([(Ask(Data(), (1, 0)), Ask(Data(), (0, 1)))])
    True
    >>> OneSwap().valid([(Ask(Data(), (1, 1)), Ask(Data(), (0, 0)))])
    False
    """

    @property
    def hereditary(self) -> bool:
        """What is left out does not differ."""
        return True

    def begin(self) -> Progress:
        """Nothing has differed."""
        return 0

    def _advance(self, progress: Progress, left: Message, right: Message, distance: Gap) -> Progress:
        if distance.l1 == 0:
            return progress
        assert left.private is not None and right.private is not None
        change = reveal(right.private - left.private)
        steps = change if isinstance(change, tuple) else (change,)
        up, down = sum(step for step in steps if step > 0), sum(-step for step in steps if step < 0)
        return 1 if progress == 0 and up <= 1 and down <= 1 else None

    def within(self, other: Relation) -> bool:
        """In itself."""
        return isinstance(other, OneSwap)


class Knows(State, Value, frozen=True):
    """A 1 for each neighbour, and the state of the sparse vector."""

    neighbours: Secret
    inner: State


class Neighbourhood(Mechanism, Value, frozen=True):
    """One vertex of a graph on vertices 0 ... `vertices` - 1 (which are public); its claim is that of `watch`.

    Asked (A, d), it answers whether it has fewer than d neighbours in A, with the noise of a sparse vector, and halts
    after the first yes. In `watch`'s terms: -|N n A| reaches 1 - d. Between neighbouring graphs one neighbour is added
    or removed, so that each such value moves by at most 1 and all of them the same way, whatever the sets A: both
    noises of the sparse vector are covered. Where an edge may be rewired (one neighbour replaced by another), values
    move either way and the smaller, monotone noise is refused.

    Data are changes: they are added to what the user knows (nothing, at first) and clamped to 0 or 1. That map is
    monotone and acts on each neighbour alone, so the argument holds for data that change as well, one change of which
    may differ.

    >>> from counterpoint.coins import SeededCoins
    >>> from counterpoint.mechanisms import Ask
    >>> vertex, coins = Neighbourhood(SparseVector(50, 0, monotone=True), vertices=4), SeededCoins(1)
    >>> state, _ = vertex.step(vertex.start(coins), Ask(Data(), private=(0, 1, 1, 1)), coins)
    >>> state, few = vertex.step(state, Ask(Fewer((0, 1, 2), than=2)), coins)
    >>> few, vertex.step(state, Ask(Fewer((0, 1, 2), than=3)), coins)
    (False, (None, True))
    """

    watch: SparseVector | AboveThreshold
    vertices: Annotated[PositiveInt, "the number of vertices"]
    rewired: bool = False

    def __post_init__(self) -> None:
        """Check that the noise is enough for these neighbours."""
        if not all(map(isinstance, (self.watch, self.rewired), (NoisyThreshold, bool))) or self.watch.hits != 1:
            raise InvalidParameter(
                "a Neighbourhood takes a SparseVector or an AboveThreshold of one hit, and rewired=True or False"
            )
        moves: Relation = every_step() if self.rewired else OneWay()
        if not moves.within(self.watch.claim.relation):
            raise NotCovered(
                "the smaller noise needs all values of a user to move the same way between neighbours, which they do "
                "if one edge is added or removed and not if one is rewired; take noise='wide' for those"
            )

    @property
    def relation(self) -> Relation:
        """Which data are neighbours."""
        return OneSwap() if self.rewired else Steps(total=1)

    @property
    def claim(self) -> Claim:
        """That of the sparse vector."""
        watched = self.watch.claim
        by = "Henzinger et al. 2024, sec. 9: -|N n A| moves by at most 1 between neighbours, for every A"
        return claim(watched.loss, self.relation, by, watched.certificate)

    def accepts(self, message: object) -> bool:
        """Changes of what it knows (one integer for each vertex), or a query."""
        if not isinstance(message, Ask):
            return False
        if isinstance(message.public, Data):
            data = message.private
            known = data is not None and data.width == self.vertices
            return known and (self.rewired or message.sensitivity == 1)
        return message.private is None and self.understands(message.public)

    def understands(self, query: Plain) -> bool:
        """Whether a query names vertices, each once, and a number."""
        return isinstance(query, Fewer) and is_whole(query.than) and are_different(query.among, self.vertices)

    def start(self, coins: Coins) -> State:
        """It knows of no neighbour, and the noise on its threshold is drawn."""
        return Knows(Secret((0,) * self.vertices), coins.call(self.watch.start))

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """Add data to what it knows, or answer whether it has few neighbours, and halt if so."""
        assert isinstance(state, Knows) and isinstance(message, Ask)
        if isinstance(message.public, Data):
            assert message.private is not None
            return Knows((state.neighbours + message.private).clamp(0, 1), state.inner), None
        query = message.public
        assert isinstance(query, Fewer)

        def fewest(raw: Raw) -> int:
            assert isinstance(raw, tuple)
            return -sum(raw[vertex] for vertex in query.among)

        ask = Ask(1 - query.than, state.neighbours.map(fewest), one_way=not self.rewired)
        inner, few = coins.call(self.watch.step, state.inner, ask)
        return (None if inner is None else Knows(state.neighbours, inner)), few


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
