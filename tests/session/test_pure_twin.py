"""A session answers as the pure composition does: on equal coins, in any interleaving, with data that arrives,
mechanisms that halt, sessions inside sessions, and parts.

A session first runs through moves that hypothesis draws; then `Concurrent` runs through the same ones as messages, and
every mechanism gets the coins that it had in the session. In the session a mechanism reads what has arrived when it is
next asked, on the coins of that ask; in the composition an update is broadcast when it arrives. So there a mechanism's
updates get the coins of its next ask, too, and must lead to the same states.
"""

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.session.numbers_source import Numbers

import counterpoint as cp
from counterpoint.coins.secure import SecureCoins
from counterpoint.encoding import digest
from counterpoint.errors import CounterpointError
from counterpoint.ledger.commands import AskCommand
from counterpoint.ledger.ledger import Intent
from counterpoint.ledger.memory import MemoryLedger
from counterpoint.mechanisms.concurrent import Concurrent, ConcurrentState, Launch, Refused
from counterpoint.privacy.messages import Ask, ToChild, Update
from counterpoint.privacy.secret import Secret
from counterpoint.session.fit import launchable
from counterpoint.session.step import StepCoins

DATA = {"apples": 100, "avocados": 7, "beans": 3}


class Watching(MemoryLedger):
    """Predictable seeds, and the last intent that was made."""

    def __init__(self):
        self.count, self.last = 0, None
        super().__init__(seeds=self._next)

    def _next(self):
        self.count += 1
        return digest("seed", self.count)

    def begin(self, *args, **options):
        intent = super().begin(*args, **options)
        self.last = intent if isinstance(intent, Intent) else None
        return intent


class NoCoins:
    """For what the session refused: whoever draws from these fails."""

    def call(self, step, *args):
        return step(*args, self)


class Broadcast:
    """Coins for an update: each child that takes it gets those of its own path."""

    def __init__(self, path, state, update, coins_at):
        takes = (child.state is not None and child.mechanism.accepts(update) for child in state.children)
        self.paths = iter([(*path, index) for index, taken in enumerate(takes) if taken])
        self.coins_at = coins_at

    def call(self, step, state, update):
        path = next(self.paths)
        inner = isinstance(state, ConcurrentState)
        return step(state, update, Broadcast(path, state, update, self.coins_at) if inner else self.coins_at(path))


class Run:
    """What a session was told and what it said, as messages to the composition that it, or the part at `home`, is."""

    def __init__(self, ledger, home=()):
        self.ledger, self.home, self.parts = ledger, len(home), []
        self.events, self.coins = [], defaultdict(list)

    def place(self, path):
        """A path of the session as one of the composition, where a part has the number of its first use."""
        return tuple(step if type(step) is int else self.parts.index(step) for step in path[self.home :])

    def send(self, path, message, deed):
        """Do it in the session; note the message, what came of it, and the coins that it was done with."""
        self.ledger.last, made = None, None
        try:
            made = said = deed()
        except CounterpointError as error:
            said = type(error).__name__
        if isinstance(made, cp.Session | cp.Handle):
            if type(made._path[-1]) is str:
                self.parts.append(made._path[-1])
            said = self.place(made._path)[-1]
        coins = self.ledger.last and StepCoins(self.ledger.last)
        if coins is not None and not isinstance(message.public, Launch):
            self.coins[self.place(path)].append(coins)
        self.events.append((self.place(path), message, said, coins))
        return made

    def launch(self, session, mechanism, of=None):
        """A mechanism, by its handle."""
        message = Ask(Launch(launchable(mechanism, session._source.of(of)).mechanism))
        return self.send(session._path, message, lambda: session.launch(mechanism, of=of))

    def delegate(self, session, loss):
        """A session inside."""
        message = Ask(Launch(Concurrent(cp.Filter(loss), session._source.relation)))
        return self.send(session._path, message, lambda: session.delegate(loss))

    def ask(self, handle, request, value, **options):
        """The message holds the value that the test knows, not what the source made of the request."""
        prepared = None if request is None else handle._source.prepare(request)
        public = handle.mechanism.public_part(None if prepared is None else prepared.grid, **options)
        message = AskCommand(handle.path, prepared, public, 0).message
        message = message if value is None else message.carrying(Secret(value))
        return self.send(handle.path, message, lambda: handle.ask(request, **options))

    def replayed(self, pure):
        """The composition after the same messages; what it says must be what the session said."""
        state, waiting = pure.start(None), {path: list(coins) for path, coins in self.coins.items()}
        idle = defaultdict(SecureCoins)  # of those who are never asked again: nobody sees what they draw

        def coins_at(path):
            return waiting[path][0] if waiting.get(path) else idle[path]

        for path, message, said, coins in self.events:
            if isinstance(message, Update):
                state, _ = pure.step(state, message, Broadcast((), state, message, coins_at))
                continue
            launching = isinstance(message.public, Launch)
            given = NoCoins() if coins is None else coins if launching else coins_at(path)
            state, answer = pure.step(state, replace(message, public=addressed(path, message.public)), given)
            assert (answer.error if isinstance(answer, Refused) else answer) == said
            if not launching and not isinstance(answer, Refused):
                waiting[path].pop(0)
        assert not any(waiting.values()), "every ask of the session was one of the composition"
        return state


def addressed(path, public):
    """Wrapped once for every composition on the way."""
    for step in reversed(path):
        public = ToChild(step, public)
    return public


def losses(pure, state):
    """What was lost, in every composition, in order."""
    inner = [losses(c.mechanism, c.state) for c in state.children if isinstance(c.mechanism, Concurrent)]
    return [pure.loss(state), *inner]


def session_losses(session):
    return [session.loss, *(session_losses(inner) for inner in session.given)]


follows = [cp.Counter("0.3"), cp.Counter("0.2", horizon=4), cp.Counter("0.2", bound=3, horizon=8)]
one_shots = [cp.Laplace("0.2", asks=2), cp.SparseVector("0.2", 2, hits=1, sensitivity=3)]
one_shots.append(cp.SparseVector("0.1", 5, hits=2, sensitivity=3))
anywhere, anyone = st.integers(0, 3), st.integers(0, 7)
begun = [
    ("delegate", 0, cp.PureDP("0.9")),
    ("delegate", 1, cp.PureDP("0.5")),
    ("launch", 2, one_shots[1]),
    ("launch", 2, follows[0]),
    ("launch", 1, one_shots[0]),
    ("launch", 0, follows[1]),
]
"""So that there is something to interleave, three sessions deep: random launches rarely leave much."""
moves = st.lists(
    st.tuples(st.just("launch"), anywhere, st.sampled_from(follows + one_shots))
    | st.tuples(st.just("delegate"), anywhere, st.sampled_from([cp.PureDP("0.3"), cp.PureDP("0.9")]))
    | st.tuples(st.just("append"), st.integers(0, 3), st.none())
    | st.tuples(st.just("ask"), st.sampled_from([0, 2]), st.just("as it wants"))  # until these two have halted
    | st.tuples(st.just("ask"), anyone, st.just("as it wants"))
    | st.tuples(st.just("ask"), anyone, st.sampled_from(["as it wants", "threshold", "wrongly"])),
    min_size=8,
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(moves)
def test_with_data_that_arrives_halts_and_sessions_inside_sessions(moves):
    ledger, stream, arrived = Watching(), cp.Stream(bound=3), 0
    session = cp.Session(stream, cp.PureDP(2), ledger=ledger)
    run, sessions, handles = Run(ledger), [session], []
    for move, number, what in begun + moves:
        if move == "append":
            stream.append(number)
            run.events.append(((), Update(number), None, None))
            arrived += number
        elif move == "launch":
            handles.append(run.launch(sessions[number % len(sessions)], what))
        elif move == "delegate":
            sessions.append(run.delegate(sessions[number % len(sessions)], what))
        elif handles:
            handle = handles[number % len(handles)]
            one_shot = isinstance(handle.mechanism, cp.Laplace | cp.SparseVector) != (what == "wrongly")
            options = {"threshold": 4} if what == "threshold" and isinstance(handle.mechanism, cp.SparseVector) else {}
            run.ask(handle, cp.total() if one_shot else None, arrived if one_shot else None, **options)
        sessions, handles = [s for s in sessions if s is not None], [h for h in handles if h is not None]
    pure = Concurrent(cp.Filter(cp.PureDP(2)), stream.relation)
    assert losses(pure, run.replayed(pure)) == session_losses(session)


part_moves = st.lists(
    st.tuples(st.just("launch"), st.sampled_from("abz"), st.sampled_from(one_shots))
    | st.tuples(st.just("delegate"), st.sampled_from("abz"), st.just(cp.PureDP("0.2")))
    | st.tuples(st.just("ask"), anyone, st.sampled_from(sorted(DATA))),
    min_size=4,
    max_size=25,
)


@settings(max_examples=80, deadline=None)
@given(part_moves)
def test_with_parts_and_sessions_inside_them(moves):
    """The composition is the partition: its children are the parts, each of which sees its own letter only."""
    ledger, source = Watching(), Numbers(DATA)
    session = cp.Session(source, cp.PureDP(1), ledger=ledger)
    parts = session.partition("letter", k=2, within=cp.PureDP("0.5"))
    run, known, handles, inside = Run(ledger, parts._path), {}, [], {}
    pure, _ = session._engine.node(parts._path)
    for move, key, what in moves:
        if move == "ask":
            if handles:
                handle, letter = handles[key % len(handles)]
                run.ask(handle, what, DATA[what] if what.startswith(letter) else 0)
            continue
        if key not in known:
            message = Ask(Launch(Concurrent(cp.Filter(parts.within), source.relation)))
            known[key] = run.send(parts._path, message, lambda key=key: parts[key])
        if move == "delegate":
            inside[key] = run.delegate(known[key], what) or inside.get(key)
        else:
            made = run.launch(inside.get(key) or known[key], what)
            handles += [] if made is None else [(made, key)]
    state = run.replayed(pure)
    assert losses(pure, state)[1:] == [session_losses(part) for part in known.values()]


def test_the_twin_would_notice_other_coins_and_a_lost_update():
    """Each of these is one way of being wrong, and none of them goes through."""

    def run_of():
        ledger, stream = Watching(), cp.Stream(bound=1)
        session, run = cp.Session(stream, cp.PureDP(2), ledger=ledger), Run(ledger)
        noisy, counter = run.launch(session, cp.Laplace("0.001", asks=9)), run.launch(session, cp.Counter(1))
        for _ in range(3):
            stream.append(1)
            run.events.append(((), Update(1), None, None))
            run.ask(noisy, cp.total(), stream.pin())
            run.ask(counter, None, None)
        return run

    pure = Concurrent(cp.Filter(cp.PureDP(2)), cp.Stream(bound=1).relation)
    run_of().replayed(pure)
    other = run_of()
    other.coins[0,].reverse()
    lost = run_of()
    lost.events = [event for event in lost.events if not isinstance(event[1], Update)]
    for wrong in (other, lost):
        with pytest.raises(AssertionError):
            wrong.replayed(pure)
