"""Live tables as games: an adversary sends updates, a mechanism answers asks about the rows, and all of it is counted.

An update carries the number of one of `CONTENTS`, 0 for nothing. The values that the mechanism receives are those of
the real log, or of one with a bug planted in it.
"""

from fractions import Fraction
from functools import lru_cache

import counterpoint as cp
from counterpoint.encoding import Value
from counterpoint.measures import PureDP
from counterpoint.mechanisms.mechanism import Left, Mechanism, State
from counterpoint.privacy.claims import claim
from counterpoint.privacy.messages import Ask, Update
from counterpoint.privacy.relations import Steps, every_step
from counterpoint.privacy.secret import Secret, reveal
from counterpoint.sources.streams.live_table import LiveTable
from counterpoint.sources.streams.live_updates import UpdateRule

COLUMNS = {"state": cp.category(["a", "b"])}
CONTENTS = [
    None,
    ("ann", 1, "a"),
    ("ann", 1, "b"),
    ("ann", 2, "a"),
    ("ann", 1, None),  # a removal
    ("bob", 1, "b"),
    ("bob", 1, None),
]
REQUESTS = {
    "count": (cp.count(), len),
    "a": (cp.count("state = 'a'"), lambda states: states.count("a")),
    "b": (cp.count("state = 'b'"), lambda states: states.count("b")),
    "histogram": (cp.histogram("state"), lambda states: (states.count("a"), states.count("b"))),
}
"""What is asked, and its answer from the states of all rows."""
LAST = "did the last update do anything?"


class OneCapForAll(UpdateRule):
    """A cap that looks at other units: there is room for so many rows, whoever they belong to."""

    __slots__ = ()

    def apply(self, owner, update, slot):
        there = sum(map(len, self._of.values()))
        full = update[0] and update[1] not in self._of.get(owner, {}) and there >= self.most
        return None if full else super().apply(owner, update, slot)


class KeysForAll(UpdateRule):
    """Keys that do not belong to a unit: one unit replaces and removes the rows of another."""

    __slots__ = ()

    def apply(self, owner, update, slot):
        return super().apply("anyone", update, slot)


BUGS = {"one cap for all": OneCapForAll, "keys for all": KeysForAll}


@lru_cache(None)
def played(protects, rows, bug, codes):
    """The table after these updates."""
    table = LiveTable("who", rows, key="k", columns=COLUMNS, protects=protects)
    if bug in BUGS:
        table.log._rows = BUGS[bug](rows)
    for code in codes:
        who, key, state = CONTENTS[code] or (None, None, None)
        if state is None and code:
            table.remove(who=who, k=key)
        else:
            table.put({"who": who, "k": key, "state": state})
    return table


@lru_cache(None)
def asked(protects, rows, bug, codes, name):
    """The ask that a mechanism receives about a request then."""
    table, (request, evaluate) = played(protects, rows, bug, codes), REQUESTS[name]
    facts = (played("unit", rows, None, ()) if bug == "unit facts" else table).prepare(request)
    ended = set(table.log.replaced)
    states = [item[2] for slot, item in enumerate(table.log.items) if item and item[0] and slot not in ended]
    return Ask(None, evaluate(states), facts.sensitivity, facts.squared, each=facts.each, one_way=facts.one_way)


class CellBits(Mechanism, Value, frozen=True):
    """Says of each cell whether it is above 0, and lies with odds that make up for as many cells as may differ."""

    epsilon: Fraction = Fraction(1)

    @property
    def claim(self):
        return claim(PureDP(self.epsilon), every_step(), "randomized response, epsilon/L1 for each cell")

    def accepts(self, message):
        return isinstance(message, Ask) and message.private is not None

    def start(self, coins):
        return Left(1)

    def step(self, state, message, coins):
        value, each = reveal(message.private), self.epsilon / message.sensitivity
        cells = value if isinstance(value, tuple) else (value,)
        return None, tuple((cell > 0) == coins.logistic(each) for cell in cells)


class SentSoFar(State, Value, frozen=True):
    """The updates so far, which are secret, and the state of the mechanism that is asked."""

    codes: Secret
    inner: State | None


class LiveGame(Mechanism, Value, frozen=True):
    """A mechanism on a live table; an ask names a request."""

    inner: Mechanism
    protects: str
    rows: int = 1
    bug: str | None = None

    @property
    def claim(self):
        relation = Steps(asks=0, updates=1 if self.protects == "event" else None)
        return claim(self.inner.claim.loss, relation, "the mechanism's own claim, on a live table")

    def accepts(self, message):
        return isinstance(message, Update) or (isinstance(message, Ask) and message.private is None)

    def start(self, coins):
        return SentSoFar(Secret(()), coins.call(self.inner.start))

    def step(self, state, message, coins):
        codes = reveal(state.codes)
        if isinstance(message, Update):
            return SentSoFar(Secret((*codes, reveal(message.private))), state.inner), None
        if message.public == LAST:
            return state, bool(codes) and played(self.protects, self.rows, self.bug, codes).log.items[-1] is not None
        ask = asked(self.protects, self.rows, self.bug, codes, message.public)
        after, answer = coins.call(self.inner.step, state.inner, ask)
        return (None if after is None else SentSoFar(state.codes, after)), answer


def differing(*codes):
    """Updates that do nothing in the second world; at unit level those of one unit, which must all be such."""
    return [(Update(code), Update(0)) for code in codes]


def equal(*codes):
    """Updates that are the same in both."""
    return [(Update(code), Update(code)) for code in codes]


def asking(*names):
    """Asks, which are public."""
    return [(Ask(name), Ask(name)) for name in names]
