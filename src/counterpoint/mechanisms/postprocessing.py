"""Postprocessing: a party between the analyst and a mechanism, free of charge.

See Haney et al. 2023, Thm 2.17; Henzinger et al. 2024, Lemma 2.16.

A `Postprocessor` sees every request before the mechanism does (errata, Haney E2: as printed; Haney et al. 2023, Alg 7
lets the first query pass by it), may ask the mechanism as often as it likes or never, and answers. It never sees a
state or a private value: `ask(public)` sends the public part it chooses along with the private part that came with the
request. Its own state is plain data without floats. It may toss coins (Haney et al. 2023, Def 2.15; Henzinger et al.
2024, Def 2.14): `ask.coins` are those of the step, so that a replay is exact and an enumeration sees every outcome.
Postprocessors chain (Henzinger et al. 2024, Def 2.17, Alg 2 with the directions of errata, Henzinger E7): P1 . P2 . M.

Free of charge it is where the theorems apply: what the mechanism receives must be neighbours of the kind that its claim
names, and between the analyst and the mechanism asks are repeated, left out and redirected. So the relation must be
`closed`; or it is a `Steps`, and the mechanism takes no private part in asks (`asks_are_public`), so that only updates
can differ, which pass by a postprocessor once and in place. Anything else is refused. A mechanism that is PureDP(1) if
one ask differs loses 2 to a postprocessor that asks twice.

>>> from counterpoint import Laplace, postprocess
>>> from counterpoint.coins import SeededCoins
>>> from counterpoint.mechanisms import Ask, Postprocessor
>>> class Thousands(Postprocessor, Value, frozen=True):
...     def start(self):
...         return None
...     def react(self, own, request, ask):
...         return own, round(ask(request), -3)
>>> rounded, coins = postprocess(Thousands(), Laplace(1)), SeededCoins(1)
>>> rounded.step(rounded.start(coins), Ask(private=41234), coins)[1]
41000
"""

from abc import abstractmethod
from fractions import Fraction
from typing import Any, TypeAlias

from msgspec.structs import replace

from counterpoint.coins.coins import Coins
from counterpoint.encoding import Plain, Tagged, Value, encode
from counterpoint.errors import Halted, InvalidParameter, NotAllowed, NotCovered, NotTotal
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State, accepted, refuse_options, stepped
from counterpoint.privacy.claims import Claim, postprocessed_claim
from counterpoint.privacy.messages import Ask, Message, Update
from counterpoint.privacy.relations import Relation, Steps

Own: TypeAlias = Plain
"""What a postprocessor remembers: public plain data."""


class Asker:
    """What a postprocessor asks with: call it with a public part to get the mechanism's answer."""

    __slots__ = ()

    @property
    @abstractmethod
    def halted(self) -> bool:
        """Whether the mechanism has given its last answer; asking it then raises `Halted`."""

    @property
    @abstractmethod
    def coins(self) -> Coins:
        """The postprocessor's own coins, for this reaction: toss none but these, so that a replay is exact."""

    @abstractmethod
    def __call__(self, public: Plain = None) -> Answer:
        """Ask the mechanism; `InvalidRequest` if it does not accept that, `Halted` if it has halted."""


class Postprocessor(Tagged):
    """Stands between an analyst and a mechanism; sees requests and answers, nothing else."""

    __slots__ = ()

    def accepts(self, ask: Ask) -> bool:
        """Whether it takes this ask, whose private part has been blanked; by default every ask."""
        return True

    def public_part(self, grid: Fraction | None, /, **options: Any) -> Plain:
        """The request, from the options that an analyst gave with an ask; by default there are none.

        As `Mechanism.public_part`: `grid` is that of the integers asked about, in the units of the options.
        """
        refuse_options(self, options)
        return None

    @abstractmethod
    def start(self) -> Own:
        """What it remembers before the first request."""

    @abstractmethod
    def react(self, own: Own, request: Plain, ask: Asker) -> tuple[Own, Answer]:
        """What it remembers next, and its answer."""


class Failed(Tagged, Value, frozen=True):
    """The last answer of a postprocessor that broke after it had asked or tossed a coin: that cannot be undone.

    The mechanism halts: running the same step again would draw fresh noise for a question already answered.
    """

    error: str


class Both(State, Value, frozen=True):
    """What the postprocessor remembers and the state of its mechanism (None: halted)."""

    own: Plain
    inner: State | None


class _Relay(Asker):
    """Asks a mechanism on behalf of one message, keeping its state, which the postprocessor must not see.

    It ends with the reaction that it was made for: one that was kept would ask a state that has been replaced, and an
    old message again out of its place.
    """

    __slots__ = ("_coins", "_drew", "_ended", "_mechanism", "_message", "_state", "_unfinished")

    def __init__(self, mechanism: Mechanism, state: State | None, message: Ask, coins: Coins) -> None:
        self._mechanism = mechanism
        self._message = message
        self._coins = coins
        self._state = state
        self._drew = False
        self._ended = False
        self._unfinished = 0

    @property
    def halted(self) -> bool:
        return self._state is None

    @property
    def coins(self) -> Coins:
        self._must_be_current()
        self._drew = True
        return self._coins

    def _must_be_current(self) -> None:
        if self._ended:
            raise NotAllowed("this request has been answered: ask with the `ask` that comes with the next one")

    def __call__(self, public: Plain = None) -> Answer:
        self._must_be_current()
        if self._state is None:
            raise Halted(f"{type(self._mechanism).__name__} has given its last answer: check ask.halted first")
        message = accepted(self._mechanism, replace(self._message, public=public))
        self._drew = True
        self._unfinished += 1
        self._state, answer = stepped(self._mechanism, self._state, message, self._coins)
        self._unfinished -= 1
        return answer


class Postprocessed(Mechanism, Value, frozen=True):
    """P . M: the mechanism with a postprocessor before it.

    See Haney et al. 2023, Def 2.15, Alg 7; Henzinger et al. 2024, Def 2.15, Alg 1.
    """

    postprocessor: Postprocessor
    mechanism: Mechanism

    @property
    def claim(self) -> Claim:
        """What the mechanism promises, for the same neighbours; `NotCovered` where their relation is not closed."""
        inner = _kept(self.mechanism)
        by = "Haney et al. 2023, Thm 2.17; Henzinger et al. 2024, Lemma 2.16"
        return postprocessed_claim(inner, f"{inner.loss!r}, postprocessed", by)

    @property
    def asks_are_public(self) -> bool:
        """Where those of the mechanism are."""
        return self.mechanism.asks_are_public

    def fitted(self, relation: Relation, dimensions: int | None) -> "Postprocessed":
        """The mechanism fitted to the data, with the same postprocessor before it."""
        return Postprocessed(self.postprocessor, self.mechanism.fitted(relation, dimensions))

    def for_counts(self, moves: int) -> "Postprocessed":
        """The mechanism able to take counts, with the same postprocessor before it."""
        return Postprocessed(self.postprocessor, self.mechanism.for_counts(moves))

    def accepts(self, message: object) -> bool:
        """The asks that the postprocessor takes and the updates that the mechanism accepts."""
        if isinstance(message, Ask):
            if message.private is None:
                return self.postprocessor.accepts(message)
            blank = replace(message, private=message.private * 0)
            return not self.asks_are_public and self.postprocessor.accepts(blank)
        return isinstance(message, Update) and self.mechanism.accepts(message)

    def public_part(self, grid: Fraction | None, /, **options: Any) -> Plain:
        """What the postprocessor makes of the options of an ask."""
        return self.postprocessor.public_part(grid, **options)

    @property
    def dimensions(self) -> int | None:
        """Those of the mechanism, which receives the updates."""
        return self.mechanism.dimensions

    def start(self, coins: Coins) -> State:
        """Both start."""
        return Both(_plain(self.postprocessor.start()), coins.call(self.mechanism.start))

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """The postprocessor's answer; an update goes straight to the mechanism, unseen."""
        assert isinstance(state, Both)
        if isinstance(message, Update):
            return self._updated(state, message, coins), None
        relay = _Relay(self.mechanism, state.inner, message, coins)
        after: tuple[State | None, Answer]
        try:
            own, answer = self.postprocessor.react(state.own, message.public, relay)
            after = Both(_plain(own), relay._state), _plain(answer)
        except Exception as error:
            if not relay._drew:
                raise
            after = None, Failed(type(error).__name__)
        finally:
            relay._ended = True
        # Where the mechanism failed, what the postprocessor made of that would depend on raw data.
        return (None, Failed(NotTotal.__name__)) if relay._unfinished else after

    def _updated(self, state: Both, update: Update, coins: Coins) -> State:
        if state.inner is None:
            return state
        inner, _ = stepped(self.mechanism, state.inner, update, coins)
        return Both(state.own, inner)


class Link(Asker):
    """How the first postprocessor of a chain asks the second, whose memory it keeps."""

    __slots__ = ("_ask", "_second", "own")

    def __init__(self, second: Postprocessor, own: Own, ask: Asker) -> None:
        self._second = second
        self._ask = ask
        self.own = own

    @property
    def halted(self) -> bool:
        """Whether the mechanism at the end of the chain has halted."""
        return self._ask.halted

    @property
    def coins(self) -> Coins:
        """Those of the step: both postprocessors toss the same source of coins, in turn."""
        return self._ask.coins

    def __call__(self, public: Plain = None) -> Answer:
        """Let the second postprocessor react."""
        self.own, answer = self._second.react(self.own, public, self._ask)
        return answer


class Chain(Postprocessor, Value, frozen=True):
    """P1 . P2 as one postprocessor: what P1 sends on reaches P2 from its left.

    See Henzinger et al. 2024, Alg 2, errata, Henzinger E7.
    """

    first: Postprocessor
    second: Postprocessor

    def accepts(self, ask: Ask) -> bool:
        """What the first of them takes."""
        return self.first.accepts(ask)

    def public_part(self, grid: Fraction | None, /, **options: Any) -> Plain:
        """What the first of them makes of the options: it receives the request."""
        return self.first.public_part(grid, **options)

    def start(self) -> Own:
        """Both start."""
        return (self.first.start(), self.second.start())

    def react(self, own: Own, request: Plain, ask: Asker) -> tuple[Own, Answer]:
        """P1 reacts, asking P2, which asks the mechanism."""
        assert isinstance(own, tuple)
        link = Link(self.second, own[1], ask)
        first, answer = self.first.react(own[0], request, link)
        return (first, link.own), answer


def postprocess(*parties: Postprocessor | Mechanism) -> Postprocessed:
    """P1 . P2 . ... . M: the mechanism, given last, behind one or more postprocessors.

    See Haney et al. 2023, Alg 7; Henzinger et al. 2024, Alg 1 and 2.

    `NotCovered` if the claim of M would not outlive them: see above.

    >>> from counterpoint import Laplace
    >>> postprocess(Laplace(1))
    Traceback (most recent call last):
    ...
    counterpoint.errors.InvalidParameter: postprocess takes one or more postprocessors and then a mechanism
    """
    *posts, mechanism = parties or (None,)
    chain = [post for post in posts if isinstance(post, Postprocessor)]
    if not (chain and len(chain) == len(posts) and isinstance(mechanism, Mechanism)):
        raise InvalidParameter("postprocess takes one or more postprocessors and then a mechanism")
    whole = chain[-1]
    for post in reversed(chain[:-1]):
        whole = Chain(post, whole)
    _kept(mechanism)
    return Postprocessed(whole, mechanism)


def _kept(mechanism: Mechanism) -> Claim:
    """The claim of a mechanism that stands whatever a postprocessor makes of the asks; else `NotCovered`."""
    claim = mechanism.claim
    relation = claim.relation
    if relation.closed or (mechanism.asks_are_public and isinstance(relation, Steps)):
        return claim
    raise NotCovered(
        f"{type(mechanism).__name__} is private for neighbours in {relation!r}; a postprocessor may repeat asks, leave "
        "them out or redirect them, and what then reaches the mechanism need not be such neighbours "
        "(Haney et al. 2023, Thm 2.17 and "
        "Henzinger et al. 2024, Lemma 2.16 need a closed relation). "
        f"{relation.instead[0].upper()}{relation.instead[1:]}"
    )


def _plain(value: Plain) -> Plain:
    encode(value)  # raises where the value is not plain, holds a float or holds a secret
    return value
