"""The noisy count over the last n items of a stream: the difference of two values that a running counter released.

A counter that is asked after every item releases its counts S(1), S(2), ...; the count over the last n items at time t
is S(t) - S(t - n), which is computed from released values alone. So a window costs what its counter costs (theory,
Counters). n counts items of the stream, which are public slots, and never items that satisfy a condition: which items
those are is private.

>>> from counterpoint import Counter
>>> from counterpoint.coins import SeededCoins
>>> from counterpoint.mechanisms import Ask, Update
>>> recent, coins = Counter(epsilon=10**6, window=3), SeededCoins(7)
>>> state = recent.start(coins)
>>> for item in (1, 1, 0, 1, 0, 0):
...     state, _ = recent.step(state, Update(item), coins)
>>> recent.step(state, Ask(), coins)[1]
1
"""

import operator
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from counterpoint.coins.coins import Coins
from counterpoint.continual.horizon import PastHorizon, is_past, until_past
from counterpoint.encoding import Plain, Value
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State, stepped
from counterpoint.privacy.claims import Claim, postprocessed_claim
from counterpoint.privacy.messages import Ask, Update
from counterpoint.privacy.secret import Secret

MOST_KEPT = 100_000
"""The most numbers that a window keeps: they are stored with every ask."""


class WindowState(State, Value, frozen=True):
    """How many items came; the counter's state after those it has taken; the waiting items; the released counts.

    At most `last` + 1 items wait, the latest ones. The released counts are those of the last `last` + 1 times before
    them, or of as many as there were; among older ones some may be missing, which no window needs.
    """

    items: int
    counter: State
    waiting: tuple[Secret, ...]
    released: Plain


class Windowed(NamedTuple):
    """The steps of `Counter(window=last)`, made of those of the same counter without a window.

    It keeps the counts that the counter released at the last `last` + 1 times, and the last `last` + 1 items that have
    arrived since it was asked. Items wait for the next ask, which has the counter release the counts after them; counts
    that no window will need are not released. The analyst learns differences of released counts alone.

    Proof. An adversary against this mechanism can be played against the counter: at every ask, send it the updates
    since the last one, ask it after each of those that a window can need, keep its answers, subtract. No answer is due
    between, so it may wait for that. The counter then receives the same updates in the same order, and asks that carry
    nothing and cannot differ, so the two worlds are neighbours as before, and the answers are a function of the
    counter's answers (Henzinger et al. 2024, Lemma 2.16). Which counts are released depends on public times alone.
    """

    counter: Mechanism
    last: int
    most_items: int | None

    def start(self, coins: Coins) -> WindowState:
        """Nothing has been counted; before the first item a count is 0, without noise."""
        width = self.counter.dimensions
        return WindowState(0, coins.call(self.counter.start), (), (0 if width is None else (0,) * width,))

    def updated(self, state: State, updates: Sequence[Update], coins: Coins) -> WindowState:
        """Let items wait, those up to the horizon; the counter takes the oldest, where no window will begin."""
        assert isinstance(state, WindowState)
        new = until_past(self.most_items, state.items, updates)
        waiting = (*state.waiting, *(update.private for update in new))
        older, waiting = waiting[: -self.last - 1], waiting[-self.last - 1 :]
        counter = self.counter.updated(state.counter, [Update(item) for item in older], coins)
        assert counter is not None, "an update halts no counter"
        return WindowState(state.items + len(updates), counter, waiting, state.released)

    def answered(self, state: State, coins: Coins) -> tuple[WindowState | None, Answer]:
        """Have counts released, and answer with the difference of two of them."""
        assert isinstance(state, WindowState)
        counter, released, waiting = self.released(state, coins)
        window = _minus(released[-1], released[0])
        if waiting or is_past(self.most_items, state.items):
            return None, PastHorizon(window)
        return None if counter is None else WindowState(state.items, counter, (), released), window

    def released(self, state: WindowState, coins: Coins) -> tuple[State | None, tuple[Plain, ...], bool]:
        """The counter and its released counts after the waiting items; whether it halted before the last of those."""
        assert isinstance(state.released, tuple)
        counter: State | None = state.counter
        released, waiting = [*state.released], deque(state.waiting)
        while waiting and counter is not None:
            counter, _ = stepped(self.counter, counter, Update(waiting.popleft()), coins)
            assert counter is not None, "an update halts no counter"
            counter, count = stepped(self.counter, counter, Ask(), coins)
            released.append(count)
        return counter, tuple(released[-self.last - 1 :]), bool(waiting)


def window_claim(counter: Claim) -> Claim:
    """The claim of a window over this counter: the counter's answers after every update, postprocessed."""
    statement = f"{counter.loss!r}, as a difference of released counts"
    by = "postprocessing (Henzinger et al. 2024, Lemma 2.16), of asks after every update, which carry nothing"
    return postprocessed_claim(counter, statement, by, counter.interaction)


def _minus(now: Plain, then: Plain) -> int | tuple[int, ...]:
    """The difference of two released counts, coordinate by coordinate."""
    if isinstance(now, tuple) and isinstance(then, tuple):
        return tuple(map(operator.sub, now, then))
    assert isinstance(now, int) and isinstance(then, int)
    return now - then
