"""Every shipped mechanism, rule and composite on a small instance: what it claims, and what it exactly loses.

Losses are compared as the epsilon at one delta, large enough that what was cut off infinite tails does not show, and
small enough to be near the claim. Where the claim is a promise about any behaviour within it (a filter, a composite),
the instance need not reach it; the tightness says how near it comes.

>>> measured = measure(next(instance for instance in CATALOGUE if instance.name == "randomized response"))
>>> measured.holds, round(measured.tightness, 3)
(True, 1.0)
"""

from fractions import Fraction
from typing import NamedTuple

from counterpoint.composition.filters import Filter
from counterpoint.composition.parallel import Parallel
from counterpoint.composition.slots import Slots
from counterpoint.mechanisms.additive import Gaussian, Laplace
from counterpoint.mechanisms.concurrent import Concurrent, Launch
from counterpoint.mechanisms.counters import Counter
from counterpoint.mechanisms.examples import LoudNumber, OpenDoor
from counterpoint.mechanisms.guess_and_check import GuessAndCheck
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.mechanisms.monotone_histogram import MonotoneHistogram
from counterpoint.mechanisms.monotone_queries import max_of
from counterpoint.mechanisms.randomized_response import InteractiveRandomizedResponse, RandomizedResponse
from counterpoint.mechanisms.sparse_vector import AboveThreshold, SparseVector
from counterpoint.privacy.loss import Loss
from counterpoint.privacy.losses import ApproxDP, PureDP, zCDP
from counterpoint.privacy.messages import Ask, To, Update
from counterpoint.privacy.relations import Pair, Steps, every_step, k_sparse
from counterpoint.verify.exact_loss import ExactLoss, exact
from counterpoint.verify.menus import asks
from counterpoint.verify.sessions import session_game

DELTA = Fraction(1, 10**6)
_BOTH_WAYS = asks([(0, 1), (1, 0)])


class Instance(NamedTuple):
    """A mechanism with its parameters, and what the adversary may send it (None: its own default)."""

    name: str
    mechanism: Mechanism
    pairs: tuple[Pair, ...] | None = None
    rounds: int | None = None
    cut: Fraction = Fraction(1, 10**12)
    delta: Fraction = DELTA

    def exactly(self) -> ExactLoss:
        """Its exact loss."""
        return exact(self.mechanism, messages=self.pairs, rounds=self.rounds, cut=self.cut)


class Measured(NamedTuple):
    """What an instance claims, and between what its exact epsilon lies, at one delta."""

    instance: Instance
    loss: ExactLoss
    claim: Loss
    claimed: float
    lower: float
    upper: float

    @property
    def tightness(self) -> float:
        """The exact epsilon by the claimed one: 1 is tight, above 1 would be a false claim."""
        return self.lower / self.claimed if 0 < self.claimed < float("inf") else 1.0

    @property
    def holds(self) -> bool:
        """Whether the exact loss is within the claim everywhere, up to what rounding and cutting leave open."""
        return not self.loss.exceeds(self.claim) and self.loss.respects(self.claim, allowance=self._open)

    @property
    def _open(self) -> Fraction:
        """What is cut in all rounds, in both worlds, and rounding."""
        return self.instance.cut * 100 + Fraction(1, 10**9)


def _launched(children: list[Mechanism], copies: int) -> tuple[Pair, ...]:
    """Launches of these, and pairs of bits (equal ones too) to so many children."""
    launches = [(Ask(Launch(child)), Ask(Launch(child))) for child in children]
    return (*launches, *(pair for n in range(copies) for pair in asks([(0, 0), (0, 1)], To(n))))


_COARSE, _ABOVE = Fraction(1, 10**6), Fraction(1, 1000)
_THREE = [PureDP("0.3"), PureDP("0.5"), ApproxDP("0.2", "0.01")]

CATALOGUE: tuple[Instance, ...] = (
    Instance("Laplace", Laplace(1)),
    Instance("Laplace, three asks", Laplace(1, asks=3)),
    Instance("Gaussian", Gaussian("0.5")),
    Instance("Gaussian, two asks", Gaussian("0.5", asks=2)),
    Instance("randomized response", RandomizedResponse(1)),
    Instance("randomized response that may expose", RandomizedResponse(1, "0.01"), delta=Fraction(2, 100)),
    Instance("interactive randomized response", InteractiveRandomizedResponse(1, "0.01"), delta=Fraction(2, 100)),
    Instance("open door", OpenDoor("1/7"), delta=Fraction(1, 7)),
    Instance("loud number", LoudNumber("1/4")),
    Instance("sparse vector", SparseVector(1, 0), _BOTH_WAYS, 10),
    Instance("sparse vector, two hits", SparseVector(2, 0, hits=2), _BOTH_WAYS, 8),
    Instance("sparse vector, monotone", SparseVector(1, 0, monotone=True)),
    Instance("AboveThreshold", AboveThreshold(1, 0), _BOTH_WAYS, 10),
    Instance("Counter", Counter(3, horizon=2), cut=_COARSE, delta=_ABOVE),
    Instance("Counter without a horizon", Counter(4), rounds=2, cut=_COARSE, delta=_ABOVE),
    Instance("guess and check", GuessAndCheck(1, 2), asks([(1, 2), (2, 1)], 0), 3),
    Instance(
        "monotone histogram",
        MonotoneHistogram(30, max_of, 1, scale="1/10"),
        ((Update((0,)), Update((1,))), (Ask(), Ask())),
        2,
        cut=_COARSE,
        delta=_ABOVE,
    ),
    Instance("filter, basic", session_game(Filter(PureDP(1)), _THREE[:2], 4)),
    Instance("filter, best", session_game(Filter(ApproxDP(1, "0.05")), _THREE, 6), delta=Fraction(5, 100)),
    Instance(
        "filter, advanced",
        session_game(Filter(ApproxDP(1, "0.05"), by="advanced"), _THREE, 6),
        delta=Fraction(5, 100),
    ),
    Instance("filter, zCDP", session_game(Filter(zCDP("0.1")), _THREE[:2], 6)),
    Instance("slots", session_game(Slots(_THREE), _THREE, 3), delta=Fraction(5, 100)),
    Instance(
        "parallel, pure",
        Concurrent(Parallel(1, each=PureDP(1)), k_sparse(1, every_step())),
        _launched([RandomizedResponse(1)], 2),
        4,
    ),
    Instance(
        "parallel, every delta charged",
        Concurrent(Parallel(1, each=ApproxDP(0, "1/7"), delta_total="13/49"), k_sparse(1, Steps(asks=1))),
        _launched([OpenDoor("1/7")], 2),
        5,
        delta=Fraction(13, 49),
    ),
)


def measure(instance: Instance) -> Measured:
    """Compute the exact loss of an instance and compare."""
    loss, claim = instance.exactly(), instance.mechanism.claim.loss
    lower, upper = loss.epsilon_bounds(instance.delta)
    return Measured(instance, loss, claim, claim.epsilon_at(instance.delta), lower, upper)
