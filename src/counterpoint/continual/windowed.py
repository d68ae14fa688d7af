"""The noisy count over the last n items of a stream: the difference of two values that a running counter released.

A counter that is asked after every item releases its counts S(1), S(2), ...; the count over the last n items at time t
is S(t) - S(t - n), which is computed from released values alone. So a window costs what its counter costs (theory,
Counters). n counts items of the stream, which are public slots, and never items that satisfy a condition: which items
those are is private.

>>> from counterpoint import Counter
>>> from counterpoint.coins import SeededCoins
>>> from counterpoint.mechanisms import Ask, Update
>>> recent, coins = Windowed(Counter(epsilon=10**6), last=3), SeededCoins(7)
>>> state = recent.start(coins)
>>> for item in (1, 1, 0, 1, 0, 0):
...     state, _ = recent.step(state, Update(item), coins)
>>> recent.step(state, Ask(), coins)[1]
1
>>> recent.claim.loss
PureDP(1000000)
"""

import operator
from collections import deque
from collections.abc import Sequence

from counterpoint.coins.coins import Coins
from counterpoint.continual.counter import Counter, PastHorizon, VectorCounter, below_one, is_past, until_past
from counterpoint.encoding import Plain, Value
from counterpoint.errors import InvalidParameter
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State, stepped
from counterpoint.numbers import Number
from counterpoint.numbers.exact import whole
from counterpoint.numbers.parameters import PositiveInt
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.claims import Claim
from counterpoint.privacy.messages import Ask, Message, Update
from counterpoint.privacy.relations import Relation
from counterpoint.privacy.secret import Secret

MOST_KEPT = 100_000
"""The most numbers that a window keeps: they are stored with every ask."""


class WindowState(State, Value, frozen=True):
    """How many items came; the counter's state after those that it has taken; those that wait; what it released.

    At most `last` + 1 items wait, the latest ones. What was released is of the last `last` + 1 times before them, or of
    as many as there were; older than that it may have gaps, which nothing reads.
    """

    items: int
    counter: State
    waiting: tuple[Secret, ...]
    released: Plain


class Windowed(Mechanism, Value, frozen=True):
    """The noisy count over the last `last` items, or over all items since the launch while there are fewer.

    It keeps the counter's released values of the last `last` + 1 times, and of the items that have arrived since it was
    asked the last `last` + 1, at most 100,000 numbers each (a vector counter keeps `dimensions` numbers for each time).
    Items wait for the next ask, when the counts after them are released; counts that no window will need are not
    released. The analyst learns differences of released values alone.

    Proof. An adversary against this mechanism can be played against the counter: at every ask send it the updates since
    the last one, ask it after each of those that a window can need, keep its answers, subtract. No answer is due
    between, so it may wait for that. The counter then receives the same updates in the same order, and asks that carry
    nothing and cannot differ, so the two worlds are neighbours as before, and the answers are a function of what the
    counter answered (Henzinger et al. 2024, Lemma 2.16). Which counts are released depends on public times alone.

    Error: S(t) - S(t - n) has the noise of both times, but what both have in common cancels. Under pure privacy the
    weights of nodes which both times name are subtracted. Under zCDP, with the falling coefficients b of the noise, the
    variance is sum of b_k^2 over k < n, plus the sum of (b_k - b_(k+n))^2 over k < t - n (`Blt.spread_between`): at
    most twice that of a counter after n steps, however long the stream is. `deviation` is exact but for rounding.

    With a horizon under pure privacy, items beyond it are not counted, and the next ask gets `PastHorizon` with the
    window that ends at the horizon, the last answer.

    >>> window = Windowed(Counter(rho=0.5), last=1000)
    >>> [round(window.deviation(t), 1) for t in (1000, 10_000, 1_000_000)]
    [4.1, 5.4, 5.4]
    """

    counter: Mechanism
    last: PositiveInt

    def __post_init__(self) -> None:
        """Check that it is a counter, and how much would be kept."""
        if not isinstance(self.counter, Counter | VectorCounter):
            raise InvalidParameter(
                "a window is a difference of two running counts: give last= to a Counter or a VectorCounter, not to "
                f"{self.counter!r}"
            )
        most = MOST_KEPT // (self.counter.dimensions or 1) - 1
        if self.last > most:
            raise InvalidParameter(
                f"a window keeps what was released at the last {self.last} + 1 times, and at most {MOST_KEPT} numbers: "
                f"last must be at most {most} here"
            )

    @property
    def _counter(self) -> Counter | VectorCounter:
        assert isinstance(self.counter, Counter | VectorCounter)
        return self.counter

    @property
    def claim(self) -> Claim:
        """The counter's: what it answers after every update, postprocessed."""
        inner = self.counter.claim
        certificate = Certificate(
            f"{inner.loss!r}, as a difference of released counts",
            "postprocessing (Henzinger et al. 2024, Lemma 2.16), of asks after every update, which carry nothing",
            (inner.certificate,),
        )
        return Claim(inner.loss.postprocessed(), inner.relation, certificate, inner.interaction)

    @property
    def asks_are_public(self) -> bool:
        """Items come in updates."""
        return True

    def fitted(self, relation: Relation, dimensions: int | None) -> "Windowed":
        """The same window of the counter as fitted to the data."""
        return Windowed(self.counter.fitted(relation, dimensions), self.last)

    def accepts(self, message: object) -> bool:
        """What the counter accepts."""
        return self.counter.accepts(message)

    @property
    def dimensions(self) -> int | None:
        """Those of the counter."""
        return self.counter.dimensions

    def start(self, coins: Coins) -> State:
        """Nothing has been counted; before the first item a count is 0, without noise."""
        width = self.counter.dimensions
        return WindowState(0, coins.call(self.counter.start), (), (0 if width is None else (0,) * width,))

    def updated(self, state: State, updates: Sequence[Update], coins: Coins) -> State:
        """Let items wait, those up to the horizon; the counter takes the oldest, where no window will begin."""
        assert isinstance(state, WindowState)
        counted = until_past(self._counter.most_items, state.items, updates)
        waiting = (*state.waiting, *(update.private for update in counted))
        older, waiting = waiting[: -self.last - 1], waiting[-self.last - 1 :]
        counter = self.counter.updated(state.counter, [Update(item) for item in older], coins)
        assert counter is not None, "an update halts no counter"
        return WindowState(state.items + len(updates), counter, waiting, state.released)

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """Take an item, or have counts released and answer with the difference of two of them."""
        assert isinstance(state, WindowState)
        if isinstance(message, Update):
            return self.updated(state, (message,), coins), None
        counter, released, waiting = self._released(state, coins)
        window = _minus(released[-1], released[0])
        if waiting or is_past(self._counter.most_items, state.items):
            return None, PastHorizon(window)
        return None if counter is None else WindowState(state.items, counter, (), released), window

    def _released(self, state: WindowState, coins: Coins) -> tuple[State | None, tuple[Plain, ...], bool]:
        """The counter and its released counts once it has taken the items that wait, or as many as it took."""
        assert isinstance(state.released, tuple)
        counter: State | None = state.counter
        released, waiting = [*state.released], deque(state.waiting)
        while waiting and counter is not None:
            counter, _ = stepped(self.counter, counter, Update(waiting.popleft()), coins)
            assert counter is not None, "an update halts no counter"
            counter, count = stepped(self.counter, counter, Ask(), coins)
            released.append(count)
        return counter, tuple(released[-self.last - 1 :]), bool(waiting)

    def deviation(self, t: int) -> float:
        """The standard deviation of (each coordinate of) the answer after t items, rounded up.

        >>> round(Windowed(Counter(epsilon=1, horizon=2**10), last=100).deviation(549), 2)
        11.98
        """
        time = whole(t, 0, "t")
        return self._counter.noise.deviation_between(max(time - self.last, 0), time)

    def error(self, probability: Number, t: int) -> int:
        """How far any coordinate of the answer after t items is off at most, with this probability for all at once.

        >>> Windowed(Counter(rho=0.5), last=1000).error(0.95, t=10**6)
        10
        """
        time = whole(t, 0, "t")
        return self._counter.noise.bound_between(below_one(probability), max(time - self.last, 0), time)


def _minus(now: Plain, then: Plain) -> int | tuple[int, ...]:
    """The difference of two released counts, coordinate by coordinate."""
    if isinstance(now, tuple) and isinstance(then, tuple):
        return tuple(map(operator.sub, now, then))
    assert isinstance(now, int) and isinstance(then, int)
    return now - then
