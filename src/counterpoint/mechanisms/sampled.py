"""A mechanism on a secret Poisson sample of the units, which is drawn once, at launch.

See theory, Sampling: (eps, delta) becomes (log(1 + rate (e^eps - 1)), rate delta), for neighbours by one unit that is
added or removed, against every adaptive analyst, and on data that arrive.

The sample is a key in the state. It is the source that makes messages from the units of the sample, so a session asks
the mechanism for its sample (`Mechanism.sample`) before it makes a message. The claim is about such messages alone
(`OfSample`): on any other data the mechanism is not launched.

Answers, and their stated errors, are about the sample. A count on it, divided by the rate, estimates the count.

>>> from counterpoint import Laplace
>>> sampled = Sampled(Laplace(1, asks=5), rate=0.01)
>>> sampled.claim.loss
PureDP(~0.0170369)
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from counterpoint.coins.coins import Coins
from counterpoint.encoding import Plain, Value
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.numbers import Number
from counterpoint.numbers.parameters import ProbabilityOrNone, Rate, default
from counterpoint.privacy.claims import Claim, Interaction, claim
from counterpoint.privacy.messages import Ask, Message, Update
from counterpoint.privacy.relations import OfSample, Relation
from counterpoint.privacy.samples import Sample, amplified

_INTERACTION: dict[Interaction, Interaction] = {"one-shot": "one-shot", "finite": "finite"}
"""How it interacts on a sample: what has no memory of its own has one then, the sample."""


class OnSample(State, Value, frozen=True):
    """The sample, and the state of the mechanism; None once it has halted."""

    sample: Sample
    inner: State | None


class Sampled(Mechanism, Value, frozen=True):
    """A mechanism on a secret Poisson sample of the units: each is in it with probability `rate`.

    The mechanism has an (epsilon, delta) loss; of another loss, `delta` says at which delta it is converted to one.

    >>> import counterpoint as cp
    >>> people = cp.Table(cp.datasets.people(), unit="person_id", rows_per_unit=1)
    >>> session = cp.Session(people, within=cp.PureDP(1))
    >>> tenth = session.launch(cp.Sampled(cp.Laplace(epsilon=1), rate=0.1))
    >>> answer = tenth.ask(cp.count())                       # about 2,000, a tenth of 20,000
    >>> 15_000 < answer * 10 < 25_000, tenth.cost
    (True, PureDP(~0.158565))
    """

    mechanism: Mechanism
    rate: Rate
    delta: ProbabilityOrNone = default(None)

    def __post_init__(self) -> None:
        """Refuse what a session samples in other ways."""
        if not isinstance(self.mechanism, Mechanism):
            raise InvalidParameter(
                f"Sampled takes a mechanism, as in Sampled(Laplace(1), rate=0.01), not a "
                f"{type(self.mechanism).__name__}"
            )
        if isinstance(self.mechanism, Concurrent):
            raise InvalidParameter("to run a whole session on one sample, use session.delegate(loss, sampled=rate)")
        if self.mechanism.sampling_rate is not None:
            raise InvalidParameter("this mechanism is sampled already: multiply the two rates, and sample once")

    @property
    def claim(self) -> Claim:
        """The amplified claim, for messages that are made from the sample."""
        inner = self.mechanism.claim
        if not inner.relation.symmetric:
            raise NotCovered(
                f"a sample amplifies what holds both ways (theory, Sampling), and {inner.relation!r} is not symmetric"
            )
        return claim(
            amplified(inner.loss, self.rate, self.delta),
            OfSample(self.rate, inner.relation),
            "a secret Poisson sample, drawn once (theory, Sampling; Balle et al. 2018, Thm 8)",
            inner.certificate,
            interaction=_INTERACTION.get(inner.interaction, "endless"),
        )

    @property
    def sampling_rate(self) -> Fraction:
        """The rate."""
        return self.rate

    def sample(self, state: State) -> Sample | None:
        """The sample that was drawn at launch."""
        return state.sample if isinstance(state, OnSample) else None

    def fitted(self, relation: Relation, dimensions: int | None) -> "Sampled":
        """The mechanism fitted to the data: those of a sample have the same neighbours."""
        return Sampled(self.mechanism.fitted(relation, dimensions), self.rate, self.delta)

    def for_counts(self, moves: int) -> "Sampled":
        """The mechanism able to take counts: on a sample they move as far."""
        return Sampled(self.mechanism.for_counts(moves), self.rate, self.delta)

    def accepts(self, message: object) -> bool:
        """What the mechanism accepts."""
        return self.mechanism.accepts(message)

    def public_part(self, grid: Fraction | None, /, **options: Any) -> Plain:
        """What the mechanism makes of the options."""
        return self.mechanism.public_part(grid, **options)

    @property
    def asks_are_public(self) -> bool:
        """Where those of the mechanism are."""
        return self.mechanism.asks_are_public

    @property
    def sensitivity(self) -> int | None:
        """That of the mechanism."""
        return self.mechanism.sensitivity

    @property
    def dimensions(self) -> int | None:
        """Those of the mechanism."""
        return self.mechanism.dimensions

    def answer_error(self, ask: Ask, probability: Number, numbers: int = 1) -> int:
        """What the mechanism says, against the value on the sample."""
        return self.mechanism.answer_error(ask, probability, numbers)

    def start(self, coins: Coins) -> State:
        """Draw the sample, and start the mechanism."""
        return OnSample(Sample.drawn(self.rate, coins), coins.call(self.mechanism.start))

    def step(self, state: State, message: Message, coins: Coins) -> tuple[State | None, Answer]:
        """The mechanism's step; the message was made from the sample."""
        assert isinstance(state, OnSample) and state.inner is not None
        inner, answer = self.mechanism.step(state.inner, message, coins)
        return None if inner is None else OnSample(state.sample, inner), answer

    def updated(self, state: State, updates: Sequence[Update], coins: Coins) -> State | None:
        """The mechanism's own way with many updates."""
        assert isinstance(state, OnSample) and state.inner is not None
        inner = self.mechanism.updated(state.inner, updates, coins)
        return None if inner is None else OnSample(state.sample, inner)
