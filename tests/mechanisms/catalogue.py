"""Every shipped mechanism with messages that it accepts: what all of them must satisfy is tested over this list."""

from counterpoint.composition.filters import Filter
from counterpoint.encoding import Value
from counterpoint.mechanisms.additive import Gaussian, Laplace
from counterpoint.mechanisms.concurrent import Concurrent, Launch
from counterpoint.mechanisms.counters import Counter
from counterpoint.mechanisms.examples import LoudNumber, OpenDoor
from counterpoint.mechanisms.guess_and_check import Guess, GuessAndCheck
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.mechanisms.monotone_histogram import IntervalCounter, MonotoneHistogram, max_of
from counterpoint.mechanisms.postprocessing import Postprocessor, postprocess
from counterpoint.mechanisms.randomized_response import InteractiveRandomizedResponse, RandomizedResponse
from counterpoint.mechanisms.sparse_vector import AboveThreshold, SparseVector, Threshold
from counterpoint.privacy.losses import PureDP
from counterpoint.privacy.messages import Ask, Message, To, Update
from counterpoint.privacy.relations import every_step
from counterpoint.verify.finite import FiniteMechanism, Outcome
from counterpoint.verify.sessions import session_game


class Forward(Postprocessor, Value, frozen=True):
    """Passes every request on, and remembers how many there were."""

    def start(self):
        return 0

    def react(self, own, request, ask):
        return own + 1, ask(request)


COIN, TRUTH = (Outcome("1/2", 0, 0), Outcome("1/2", (1, "x"), 0)), (Outcome(1, None, 0),)
NESTED = Concurrent(Filter(PureDP(1)), every_step())
CATALOGUE: list[tuple[Mechanism, list[Message]]] = [
    (Laplace(1, asks=3), [Ask(private=5), Ask(private=(1, 2**80), sensitivity=3), Ask("public", 0)]),
    (Laplace("1/3"), [Ask(private=-(2**100))]),
    (
        Gaussian("0.5", asks=2),
        [Ask(private=5, sensitivity=4), Ask(private=(1, 2, 3), sensitivity=2, squared=2)],
    ),
    (RandomizedResponse(1, "0.1"), [Ask(private=1)]),
    (InteractiveRandomizedResponse(1, "0.1"), [Ask(private=1), Ask()]),
    (OpenDoor("0.5"), [Ask(private=1), Ask(private=0)]),
    (LoudNumber("0.5"), [Ask(private=1), Ask(1)]),
    (
        SparseVector(1, "2.5", hits=3, sensitivity=2),
        [Ask(private=-9, sensitivity=2), Ask(40, 2**80), Ask(Threshold("-1/3"), -(2**80))],
    ),
    (SparseVector("1/3", 10, hits=2, monotone=True), [Ask(private=0), Ask(private=-5)]),
    (
        Counter("0.5", horizon=4, bound=2),
        [Update(1), Ask(), Ask(), Update(-(2**80)), Update(7), Ask(), Update(1), Update(2), Update(1), Ask()],
    ),
    (Counter("1e-30"), [Update(1), Ask(), Update(0), Ask()]),
    (GuessAndCheck("0.5", 10, wrong=2), [Ask(0, 1), Ask(Guess(5, margin="1/3"), 2**80), Ask(-3, -(2**80))]),
    (MonotoneHistogram(60, max_of, 2, scale="1/100"), [Update((1, 0)), Ask(), *[Update((1, 1))] * 9, Ask()]),
    (IntervalCounter("0.5"), [Update(2**80), Ask(), Update(-3), Ask(), Ask()]),
    (FiniteMechanism((((COIN, TRUTH),),)), [Ask(0, 1), Ask(0), Ask(0, -(2**80))]),
    (session_game(Filter(PureDP(1)), [PureDP("0.5"), PureDP(2)], 3), [Ask(0, 1), Ask(1, 0), Ask(0, 0), Ask(0, 1)]),
    (AboveThreshold(1, 10), [Ask(private=-(2**90)), Ask(private=2**90)]),
    (postprocess(Forward(), Forward(), Laplace(1, asks=2)), [Ask("a", 5), Ask("b", 6), Ask("c", 6)][:2]),
    (
        NESTED,
        [
            Ask(Launch(Laplace("0.25", asks=2))),
            Ask(To(0), private=3),
            Update(1),
            Ask(Launch(NESTED)),
            Ask(Launch(Concurrent(Filter(PureDP("0.5")), every_step()))),
            Ask(To(1, Launch(RandomizedResponse("0.5")))),
            Ask(To(1, To(0)), private=1),
            Ask(To(7), private=1),
        ],
    ),
]
