"""Every shipped mechanism with messages that it accepts: what all of them must satisfy is tested over this list."""

from counterpoint.composition.filters import Filter
from counterpoint.continual.counter import Counter
from counterpoint.continual.histogram_error import DigitTreeCounter
from counterpoint.continual.monotone_histogram import MonotoneHistogram
from counterpoint.continual.monotone_queries import max_of
from counterpoint.encoding import Value
from counterpoint.local.designs import Affine, Subsets
from counterpoint.local.multi_sparse_vector import MultiSparseVector
from counterpoint.local.peeling import Fewer, Neighbourhood
from counterpoint.local.properties import AtMost, Data, Guarded
from counterpoint.local.responders import Among, BlockResponse, Membership, Which
from counterpoint.measures import PureDP
from counterpoint.mechanisms.additive import Gaussian, Laplace, Range
from counterpoint.mechanisms.concurrent import Concurrent, Launch
from counterpoint.mechanisms.guess_and_check import Guess, GuessAndCheck, LinearGuess, LinearGuessAndCheck
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.mechanisms.multiplicative_weights import multiplicative_weights
from counterpoint.mechanisms.noisy_max import Largest, NoisyMax
from counterpoint.mechanisms.partition_selection import GaussianSelection, PartitionSelection
from counterpoint.mechanisms.postprocessing import Postprocessor, postprocess
from counterpoint.mechanisms.randomized_response import Dice, InteractiveRandomizedResponse, RandomizedResponse
from counterpoint.mechanisms.sampled import Sampled
from counterpoint.mechanisms.sparse_vector import AboveThreshold, SparseVector
from counterpoint.mechanisms.threshold import Threshold
from counterpoint.privacy.messages import Ask, Message, ToChild, Update
from counterpoint.privacy.relations import every_step
from counterpoint.privacy.secret import Tally
from counterpoint.verify.catalogue.instances import session_game
from counterpoint.verify.catalogue.mechanisms import Resized
from counterpoint.verify.finite import FiniteMechanism, LoudNumber, OpenDoor, Outcome
from counterpoint.verify.unit_by_unit import UnitByUnit


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
        Laplace(1, asks=3, clamp=(-9, "9.5")),
        [Ask(private=2**80), Ask(Range(0, 2**62), (1, -(2**80)), sensitivity=3), Ask("public", 0)],
    ),
    (SparseVector(rho="0.5", asks=2), [Ask(private=-(2**80)), Ask(private=2**80)]),
    (
        Gaussian("0.5", asks=2),
        [Ask(private=5, sensitivity=4), Ask(private=(1, 2, 3), sensitivity=2, squared=2)],
    ),
    (
        Gaussian(mu="0.5", asks=2),
        [Ask(private=5, sensitivity=4), Ask(private=(1, 2, 3), sensitivity=2, squared=2)],
    ),
    (Gaussian(sigma=2**40), [Ask(private=-(2**100))]),
    (RandomizedResponse(1, "0.1"), [Ask(private=1)]),
    (InteractiveRandomizedResponse(1, "0.1"), [Ask(private=1), Ask()]),
    (OpenDoor("0.5"), [Ask(private=1), Ask(private=0)]),
    (LoudNumber("0.5"), [Ask(private=1), Ask(1)]),
    (
        SparseVector(1, "2.5", hits=3, sensitivity=2),
        [Ask(private=-9, sensitivity=2), Ask(40, 2**80), Ask(Threshold("-1/3"), -(2**80))],
    ),
    (SparseVector("1/3", 10, hits=2, monotone=True), [Ask(private=v, one_way=True) for v in (0, -5)]),
    (SparseVector(1, 5, hits=2, release="gap"), [Ask(private=-(2**80)), Ask(private=2**80), Ask(private=2**80)]),
    (SparseVector(1, release="value", charge="0.5"), [Ask(private=-(2**80)), Ask(private=2**80)]),
    (SparseVector(rho="0.1", hits=3, release="value", charge="0.1"), [Ask(private=2**80), Ask(private=-(2**80))]),
    (NoisyMax(1, asks=3), [Ask(private=(3, 9, 2**80), each=2), Ask("public", (0,)), Ask(private=(0,) * 9)]),
    (NoisyMax("1/3", monotone=True), [Ask(private=(1, 2), one_way=True)]),
    (NoisyMax(1, asks=2), [Ask(private=(3, 9, 2**80, 0), each=2, cells=2), Ask(Largest(2), (3, 9, -(2**80)))]),
    (NoisyMax(rho="0.1", asks=2), [Ask(Largest(2), (3, 9, 0, 1), sensitivity=8, each=2, cells=2), Ask(private=(0, 1))]),
    (NoisyMax(rho="0.1", asks=2), [Ask(private=(3, 9, -(2**80))), Ask(private=(1, 1), sensitivity=5, each=2)]),
    (
        Counter("0.5", horizon=4, bound=2),
        [Update(1), Ask(), Ask(), Update(-(2**80)), Update(7), Ask(), Update(1), Update(2), Update(1), Ask()],
    ),
    (
        Counter("0.5", horizon=3, window=2),
        [Ask(), Update(1), Ask(), Ask(), Update(-(2**80)), Update(7), Ask(), Update(1), Update(2), Ask()],
    ),
    (Counter(rho="0.5", window=1), [Update(1), Ask(), Update(0), Update(1), Ask()]),
    (Counter(epsilon=1, width=2, window=2), [Ask(), Update((1, 0)), Update((0, 2**80)), Ask()]),
    (Counter("1e-30"), [Update(1), Ask(), Update(0), Ask()]),
    (Counter(1, per_unit=3, clamp=False), [Update(-(2**80)), Ask(), Update(5), Ask()]),
    (Counter(rho="0.5", bound=3), [Ask(), Update(1), Ask(), Ask(), Update(-(2**80)), Update(7), Ask()]),
    (Counter(rho="1e-30", horizon=2**40, per_unit=2), [Update(1), Ask(), Update(2**80), Ask()]),
    (Counter(rho="0.5", per_unit=3, min_separation=4), [Ask(), Update(1), Ask(), Update(-(2**80)), Update(7), Ask()]),
    (Counter(rho="0.5", per_unit=3, width=2, min_separation=4), [Update((1, 0)), Ask(), Update((-(2**80), 0)), Ask()]),
    (Resized(rho=2, per_unit=2, min_separation=2, bits=1, steps=2), [Update(1), Ask(), Update(0), Update(1), Ask()]),
    (Resized(rho=2, width=1, min_separation=1, bits=1, steps=2), [Update((1,)), Ask(), Update((0,)), Ask()]),
    (Counter("0.5", horizon=2, width=2), [Update((1, 2**80)), Ask(), Update((0, -1)), Ask(), Update((1, 1)), Ask()]),
    (Counter(rho="0.5", squared=2, width=3), [Ask(), Update((1, 0, 0)), Ask(), Update((-(2**80), 0, 1)), Ask()]),
    (
        Counter(rho="0.5", bound=2, per_unit=3, width=2),
        [Update((-1, 1)), Ask(), Update((2**80, -(2**80))), Update((0, 2)), Ask()],
    ),
    (Counter(4, squared=3, per_unit=2, width=2), [Update((5, -5)), Ask(), Update((0, 0)), Ask()]),
    (
        GuessAndCheck("0.5", 10, wrong=3, sensitivity=4),
        [Ask(0, 2**80, sensitivity=4), Ask(Guess(5, margin="1/3"), -(2**80), sensitivity=2), Ask(-3, 3)],
    ),
    (GuessAndCheck("0.5", 10, wrong=2), [Ask(0, 1), Ask(Guess(5, margin="1/3"), 2**80), Ask(-3, -(2**80))]),
    (GuessAndCheck.concentrated("0.1", 10, 4), [Ask(0, 1), Ask(Guess(5, margin="1/3"), 2**80), Ask(-3, -(2**80))]),
    (MonotoneHistogram(60, max_of, 2, scale="1/100"), [Update((1, 0)), Ask(), *[Update((1, 1))] * 9, Ask()]),
    (
        MonotoneHistogram(60, max_of, 2, delta="1e-6", scale="1/100"),
        [Update((1, 0)), Ask(), *[Update((1, 1))] * 9, Ask()],
    ),
    (
        MonotoneHistogram(200, max_of, 2, delta="1e-6", scale="1/100", per_unit=3),
        [*[Update((1, 0))] * 9, Ask()],
    ),
    (MonotoneHistogram(60, max_of, 2, scale="1/100"), [*[Update((2**80, -(2**80))), Update((-1, 2))] * 5, Ask()]),
    (Dice(6), [Ask(), Ask()]),
    (
        LinearGuessAndCheck(GuessAndCheck(1, 5, wrong=4, sensitivity=2), 2, steps=2),
        [
            Ask(LinearGuess((0, 2), 9), (2**80, 4)),
            Ask(LinearGuess((1, 2), -9), 7, sensitivity=2),
            Ask(LinearGuess((2, 2), 9), (1, 2)),
        ],
    ),
    (
        multiplicative_weights(40, 3, rows=100, margin="0.1", updates=2),
        [Ask((1, 0, 0), (90, 5, 5)), Ask((0, 1, 1), 10), Ask((0, 1, 0), (90, 10, 0)), Ask((1, 0, 1), 95)],
    ),
    (Resized(rho=2, horizon=2, bits=1, steps=2), [Update(1), Ask(), Update(0), Ask()]),
    (Resized(rho=2, horizon=2, squared=1, width=2, bits=1, steps=1), [Update((1, 0)), Ask()]),
    (Resized(2, horizon=3, tree=(2, 2)), [Update(1), Ask(), Update(0), Ask()]),
    (Resized(2, horizon=3, width=2, tree=(2, 2)), [Update((1, 0)), Ask(), Update((0, 2)), Ask()]),
    (DigitTreeCounter("0.5", horizon=2, width=2), [Update((1, 2**80)), Ask(), Update((0, -1)), Ask()]),
    (Resized(rho=2, horizon=2, bound=2, per_unit=2, bits=1, steps=1), [Update(-7), Update(7), Ask()]),
    (FiniteMechanism((((COIN, TRUTH),),)), [Ask(0, 1), Ask(0), Ask(0, -(2**80))]),
    (session_game(Filter(PureDP(1)), [PureDP("0.5"), PureDP(2)], 3), [Ask(0, 1), Ask(1, 0), Ask(0, 0), Ask(0, 1)]),
    (AboveThreshold(1, 10), [Ask(private=-(2**90)), Ask(private=2**90)]),
    (postprocess(Forward(), Forward(), Laplace(1, asks=2)), [Ask("a", 5), Ask("b", 6), Ask("c", 6)][:2]),
    (Membership("0.5", bits=3), [Ask(Data(), 5), Ask(Among(2, (0, 3))), Ask(Data(), -(2**80)), Ask(Among(3, ()))]),
    (
        BlockResponse("0.5", bits=3),
        [
            Ask(Data(), 5),
            Ask(Which(Subsets(5, 2), 2, (0, 3))),
            Ask(Data(), -(2**80)),
            Ask(Which(Affine(9, 5, 2), 3, 8)),
        ],
    ),
    (Guarded(Membership(1, bits=1), AtMost(1)), [Ask(Data(), 1), Ask(Among(1, (0, 1))), Ask(Among(1, (0,)))]),
    (
        Neighbourhood(AboveThreshold(1, 0), vertices=3),
        [Ask(Data(), (0, 1, 1)), Ask(Fewer((0, 2), -40)), Ask(Data(), (0, -1, 2**80)), Ask(Fewer((), 99))],
    ),
    (
        MultiSparseVector(SparseVector(1, 10, hits=2), width=2, k=2),
        [Ask(private=(0, 2**80)), Ask((99, -(2**80)), (0, 0)), Ask(None, (5, 5), sensitivity=2)],
    ),
    (Sampled(Laplace(1, asks=2), "1/10"), [Ask(private=5), Ask(private=-(2**80))]),
    (Sampled(Counter("0.5", horizon=4), "1/3"), [Update(1), Ask(), Update(-(2**80)), Ask()]),
    (Sampled(Gaussian("0.5"), "1/2", delta="1e-6"), [Ask(private=(1, 2, 3), sensitivity=2, squared=2)]),
    (UnitByUnit(Sampled(Laplace(1, asks=2), "1/2"), 3), [Ask(private=(0, 2**80, 1)), Ask(private=(0, 0, 1))]),
    (GaussianSelection(1, "1e-6"), [Ask(private=Tally((("CA", 2**80), ("é", 1))), sensitivity=3, squared=3)]),
    (PartitionSelection(1, "1e-6"), [Ask(private=Tally((("CA", 2**80), ("é", 1))), sensitivity=3, squared=3)]),
    (
        NESTED,
        [
            Ask(Launch(Laplace("0.25", asks=2))),
            Ask(ToChild(0), private=3),
            Update(1),
            Ask(Launch(NESTED)),
            Ask(Launch(Concurrent(Filter(PureDP("0.5")), every_step()))),
            Ask(ToChild(1, Launch(RandomizedResponse("0.5")))),
            Ask(ToChild(1, ToChild(0)), private=1),
            Ask(ToChild(7), private=1),
        ],
    ),
]
