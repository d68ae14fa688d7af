"""The shipped mechanisms and composites on instances that are small enough to enumerate, for the catalogue.

The two sides of a message differ by as much as the claim's relation allows, in every direction that matters, near the
values where the mechanism decides something. Noise scales are small (large epsilons), so that states can be enumerated.
A parameter whose default is 1 (a sensitivity, the items of a unit) has an instance with a larger value: a missing
factor of 1 would not show.

>>> [instance.name for instance in MECHANISMS[:2]]
['Laplace', 'Laplace, 3 asks']
"""

from fractions import Fraction

from counterpoint.continual.blt_noise import LIFETIME, BltNoise
from counterpoint.continual.counter import Counter, Resolution, noise_for
from counterpoint.continual.histogram_error import DigitTreeCounter
from counterpoint.continual.monotone_histogram import MonotoneHistogram
from counterpoint.continual.monotone_queries import max_of
from counterpoint.continual.tree_noise import TreeNoise
from counterpoint.mechanisms.additive import Gaussian, Laplace
from counterpoint.mechanisms.guess_and_check import GuessAndCheck, LinearGuess, LinearGuessAndCheck
from counterpoint.mechanisms.multiplicative_weights import multiplicative_weights
from counterpoint.mechanisms.noisy_max import Largest, NoisyMax
from counterpoint.mechanisms.partition_selection import GaussianSelection, PartitionSelection
from counterpoint.mechanisms.randomized_response import Dice, InteractiveRandomizedResponse, RandomizedResponse
from counterpoint.mechanisms.sampled import Sampled
from counterpoint.mechanisms.sparse_vector import AboveThreshold, SparseVector
from counterpoint.privacy.messages import Ask
from counterpoint.privacy.relations import Pair
from counterpoint.privacy.secret import Tally
from counterpoint.verify.catalogue.instances import Instance
from counterpoint.verify.finite import LoudNumber, OpenDoor
from counterpoint.verify.message_pairs import asks, updates
from counterpoint.verify.unit_by_unit import UnitByUnit


class Resized(Counter, frozen=True, repr_omit_defaults=True):
    """A counter that is small enough to enumerate: with coarse noise, few steps or a small tree.

    Only the noise is another one (`noise_for`); all else is the shipped code. A shipped counter draws its Gaussian
    noise on a grid of about 2^-41 and gives up to 2^40 answers. The proof in `blt_noise` holds for any grid 2^-bits and
    any number N of steps: a variance of s^2/(2 rho) on the grid is enough, where s = 2^bits |d| |c|_2 + r sqrt(N k).
    Under pure privacy the best tree for a few items has one level; the proof in `Counter` holds for every `tree`.
    Audits cover the shipped sizes.

    >>> from counterpoint.mechanisms import Ask, Update
    >>> from counterpoint.verify.exact_loss import exact
    >>> counter = Resized(rho=2, horizon=2, bits=1, steps=1)
    >>> pairs = [(Update(0), Update(1)), (Ask(), Ask())]
    >>> exact(counter, messages=pairs, rounds=2, cut="1e-9").judge(counter.claim, allowance="1e-6")
    Verdict.HOLDS
    """

    bits: int | None = None
    steps: int = LIFETIME
    tree: tuple[int, int] | None = None

    @property
    def noise(self) -> TreeNoise | BltNoise:
        """The noise at this resolution."""
        return noise_for(self, Resolution(self.bits, self.steps, self.tree))

    @property
    def most_items(self) -> int | None:
        """Where every item is a step, there are few."""
        return super().most_items if self.min_separation is None else self.steps


_ASK: Pair = (Ask(), Ask())
_BOTH_WAYS = asks([(0, 1), (1, 0)])
_BY_TWO = asks([(0, 2), (2, 0)], sensitivity=2)
_ZERO, _TWO, _TENTH, _HUNDREDTH, _THOUSANDTH = map(Fraction, ("0", "2", "1/10", "1/100", "1/1000"))
_COARSE, _FINE = Fraction(1, 10**6), Fraction(1, 10**9)
_UNIT = updates([((0,), (1,))])
_PLANE = updates([((0, 0), (1, 0)), ((1, 0), (0, 0))])
_VECTORS = asks([((0, 0), (1, 1)), ((0, 0), (2, 0)), ((0, 0), (1, -1))], sensitivity=2)
_SCORES = tuple(
    (Ask(private=left, sensitivity=4, each=2), Ask(private=right, sensitivity=4, each=2))
    for left, right in (((0, 0), (2, -2)), ((0, 0), (-2, 2)), ((-8, 0), (-6, -2)))
)


def _choices(
    moves: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...], each: int = 1, cells: int = 1
) -> tuple[Pair, ...]:
    """Asks for one choice in each of several cells, or for the two largest of a single cell, and how they move."""
    public = Largest(2) if cells == 1 else None
    asked = [[Ask(public, scores, each * len(scores), each=each, cells=cells) for scores in move] for move in moves]
    return tuple((left, right) for left, right in asked)


_IN_CELLS = _choices(
    (((0, 0, 0, 0), (1, -1, 1, -1)), ((0, 0, 0, 0), (2, -2, 0, 0)), ((0, 0, 1, -1), (1, -1, 0, 0))), 2, 2
)
_LARGEST = _choices((((0, 0, 0), (1, -1, -1)), ((0, 0, 0), (1, 1, -1)), ((-2, 0, 0), (-1, -1, -1))))


def _two_keys(units: int) -> Ask:
    """Two keys of this many units each; a neighbour may have one more at both."""
    return Ask(private=Tally((("a", units), ("b", units)) if units else ()), sensitivity=2, squared=2)


_KEYS = tuple((_two_keys(n), _two_keys(n + 1)) for n in range(8))

_SELECTION = (
    Instance("sparse vector", SparseVector(1, 0), _BOTH_WAYS, 10),
    Instance("sparse vector, 8 asks", SparseVector(1, 0, asks=8), _BOTH_WAYS, 9),
    Instance("sparse vector, 2 hits", SparseVector(2, 0, hits=2), _BOTH_WAYS, 8),
    Instance("sparse vector, one way", SparseVector(1, 0, monotone=True), rounds=8),
    Instance("sparse vector, by 2", SparseVector(1, 0, sensitivity=2), _BY_TWO, 10),
    Instance("sparse vector, gaps", SparseVector(1, 0, release="gap"), _BOTH_WAYS, 6, cut=_COARSE, delta=_THOUSANDTH),
    Instance(
        "sparse vector, values",
        SparseVector(1, 0, release="value", charge=1),
        _BOTH_WAYS,
        6,
        cut=_COARSE,
        delta=_THOUSANDTH,
    ),
    Instance("sparse vector, zCDP", SparseVector(rho="0.5", hits=2), _BOTH_WAYS, 8),
    Instance("AboveThreshold", AboveThreshold(1, 0), _BOTH_WAYS, 10),
    Instance("AboveThreshold, by 2", AboveThreshold(1, 0, sensitivity=2), _BY_TWO, 10),
    Instance("noisy max", NoisyMax(2), cut=_FINE),
    Instance("noisy max, by 2", NoisyMax(2), _SCORES, cut=_FINE),
    Instance("noisy max, one way", NoisyMax(2, monotone=True), cut=_FINE),
    Instance("noisy max, exponential", NoisyMax(1, by="exponential", asks=2)),
    Instance("noisy max, zCDP", NoisyMax(rho="0.5", asks=3), alpha=_TWO),
    Instance("noisy max, 2 cells", NoisyMax(2, by="exponential"), _IN_CELLS),
    Instance("noisy max, cells, zCDP", NoisyMax(rho="0.5"), _IN_CELLS, alpha=_TWO),
    Instance("noisy max, top 2", NoisyMax(2, by="exponential"), _LARGEST),
    Instance("noisy max, top 2, zCDP", NoisyMax(rho="0.5"), _LARGEST, alpha=_TWO),
    Instance("partition selection", PartitionSelection(1, _HUNDREDTH), delta=_HUNDREDTH),
    Instance("Gaussian selection", GaussianSelection(4, _HUNDREDTH), _KEYS, 1, cut=_FINE, delta=_HUNDREDTH),
    Instance("Gaussian, zCDP", GaussianSelection(rho=4, delta=_HUNDREDTH), _KEYS, 1, cut=_FINE, delta=Fraction(2, 100)),
    Instance("selection of 2 keys", PartitionSelection(1, _HUNDREDTH), _KEYS, 1, delta=_HUNDREDTH),
)

_COUNTERS = (
    Instance("counter", Counter(3, horizon=2), cut=_COARSE, delta=_THOUSANDTH),
    Instance(
        "counter, 2 of a unit",
        Counter(6, horizon=2, per_unit=2),
        (*updates([(0, 1), (1, 0)]), _ASK),
        4,
        cut=_FINE,
        delta=_THOUSANDTH,
    ),
    Instance(
        "counter, off range",
        Counter(3, horizon=2, bound=2),
        (*updates([(-1, 1), (2, 4), (0, 2)]), _ASK),
        3,
        cut=_COARSE,
        delta=_THOUSANDTH,
    ),
    Instance(
        "digit trees",
        DigitTreeCounter(epsilon=4, horizon=1, bound=1, width=2),
        (*_PLANE, _ASK),
        2,
        cut=_COARSE,
        delta=_THOUSANDTH,
    ),
    Instance(
        "counter, two levels",
        Resized(6, horizon=3, tree=(2, 2)),
        (*updates([(0, 1)]), _ASK),
        3,
        cut=_COARSE,
        delta=_THOUSANDTH,
    ),
    Instance(
        "counter, no horizon",
        Resized(8, tree=(2, 1)),
        (*updates([(0, 1)]), _ASK),
        3,
        cut=_COARSE,
        delta=_THOUSANDTH,
    ),
    Instance(
        "counter, zCDP",
        Resized(rho=2, horizon=2, bits=2, steps=2),
        (*updates([(0, 1), (0, 0)]), _ASK),
        4,
        cut=_COARSE,
        delta=_HUNDREDTH,
    ),
    Instance(
        "counter, far items",
        Resized(rho=8, horizon=3, per_unit=2, min_separation=2, bits=1, steps=3),
        (*updates([(0, 1), (0, 0)]), _ASK),
        4,
        cut=Fraction(1, 10**5),
        delta=_HUNDREDTH,
    ),
    Instance(
        "vectors, far items",
        Resized(rho=2, horizon=3, squared=1, per_unit=2, width=1, min_separation=1, bits=1, steps=2),
        (*_UNIT, _ASK),
        3,
        cut=_COARSE,
        delta=_HUNDREDTH,
    ),
    Instance(
        "window",
        Counter(4, horizon=2, window=1),
        (*updates([(0, 1), (1, 0), (0, 0)]), _ASK),
        4,
        cut=_COARSE,
        delta=_THOUSANDTH,
    ),
    Instance(
        "vector counter",
        Counter(epsilon=4, horizon=1, bound=1, width=2),
        (*_PLANE, _ASK),
        2,
        cut=_COARSE,
        delta=_THOUSANDTH,
    ),
    Instance(
        "vectors, 2 of a unit",
        Counter(epsilon=6, horizon=2, bound=2, per_unit=2, width=1),
        (*updates([((0,), (2,)), ((2,), (0,))]), _ASK),
        3,
        cut=_FINE,
        delta=_THOUSANDTH,
    ),
    Instance(
        "vectors, two levels",
        Resized(epsilon=6, horizon=3, bound=1, width=1, tree=(2, 2)),
        (*_UNIT, _ASK),
        2,
        cut=_COARSE,
        delta=_THOUSANDTH,
    ),
    Instance(
        "vector counter, zCDP",
        Resized(rho=2, horizon=2, squared=1, width=2, bits=2, steps=1),
        (*_PLANE, _ASK),
        2,
        cut=_COARSE,
        delta=_THOUSANDTH,
    ),
    Instance(
        "zCDP, 3 of a unit",
        Resized(rho="0.5", horizon=1, squared=1, per_unit=3, width=1, bits=5, steps=1),
        (*_UNIT, _ASK),
        4,
        cut=_FINE,
        delta=_THOUSANDTH,
    ),
)


def _joining(value: int) -> tuple[Pair, ...]:
    """A second unit brings this or nothing, in either world, and another unit the same in both."""
    pairs = [((other, 0), (other, value)) for other in (0, value)]
    return asks([*pairs, *((b, a) for a, b in pairs)], sensitivity=value)


_SAMPLED = (
    Instance("sampled response", UnitByUnit(Sampled(RandomizedResponse(1), _TENTH), 2), _joining(1), 1),
    Instance(
        "sampled, with exposure",
        UnitByUnit(Sampled(RandomizedResponse(1, _HUNDREDTH), _TENTH), 2),
        _joining(1),
        1,
        delta=Fraction(2, 1000),
    ),
    Instance("sampled Laplace, by 2", UnitByUnit(Sampled(Laplace(2, asks=2), _TENTH), 2), _joining(2), 2),
    Instance("sampled sparse vector", UnitByUnit(Sampled(SparseVector(2, 1), Fraction(1, 2)), 2), _joining(1), 4),
    Instance(
        "sampled counter",
        UnitByUnit(Sampled(Counter(4, horizon=2), Fraction(1, 2)), 2),
        (*updates([((0, 0), (0, 1)), ((1, 0), (1, 1)), ((0, 1), (0, 0))]), _ASK),
        3,
        cut=_COARSE,
        delta=_THOUSANDTH,
    ),
)

MECHANISMS: tuple[Instance, ...] = (
    Instance("Laplace", Laplace(1)),
    Instance("Laplace, 3 asks", Laplace(1, asks=3)),
    Instance("Laplace, by 2", Laplace(1), _BY_TWO),
    Instance("Laplace, a vector", Laplace(2), _VECTORS, cut=_FINE),
    Instance("Laplace, clamped", Laplace(1, asks=3, clamp=(-1, 2))),
    Instance("discrete Gauss", Gaussian("0.5", discrete=True)),
    Instance("discrete Gauss, 2 asks", Gaussian("0.5", asks=2, discrete=True)),
    Instance("discrete Gauss, by 2", Gaussian("0.5", discrete=True), _BY_TWO),
    Instance("rounded normal", Gaussian(mu="0.5")),
    Instance("rounded normal, 2 asks", Gaussian(mu="0.3", asks=2)),
    Instance("rounded normal, by 2", Gaussian(sigma=2), _BY_TWO),
    Instance("randomized response", RandomizedResponse(1)),
    Instance("exposing response", RandomizedResponse(1, _HUNDREDTH), delta=Fraction(2, 100)),
    Instance("interactive response", InteractiveRandomizedResponse(1, _HUNDREDTH), delta=Fraction(2, 100)),
    Instance("open door", OpenDoor("1/7"), epsilon=_ZERO),
    Instance("loud number", LoudNumber("1/4"), epsilon=_ZERO),
    Instance("dice", Dice(6), epsilon=_ZERO),
    *_SELECTION,
    *_COUNTERS,
    *_SAMPLED,
)
"""Every shipped mechanism."""


def _weighed(left: tuple[int, ...], right: tuple[int, ...], weights: tuple[int, ...]) -> Pair:
    return Ask(LinearGuess(weights, 0), left), Ask(LinearGuess(weights, 0), right)


_COMPOSITES = (
    Instance("guess and check", GuessAndCheck(1, 2), asks([(1, 2), (2, 1)], 0), 3),
    Instance("guess and check, by 2", GuessAndCheck(1, 2, sensitivity=2), asks([(1, 3), (3, 1)], 0, 2), 3),
    Instance(
        "guess and check, zCDP",
        GuessAndCheck.concentrated("0.5", 2, sensitivity=2),
        asks([(1, 3), (3, 1)], 0, 2),
        2,
        cut=_COARSE,
        delta=_THOUSANDTH,
    ),
    Instance(
        "linear guess and check",
        LinearGuessAndCheck(GuessAndCheck(1, 2), 2),
        (_weighed((1, 0), (2, 0), (1, 0)), _weighed((0, 2), (0, 1), (0, 1))),
        2,
        cut=_COARSE,
        delta=_THOUSANDTH,
    ),
    Instance(
        "linear, weights of 2",
        LinearGuessAndCheck(GuessAndCheck(1, 2, sensitivity=2), 2, steps=2),
        (_weighed((1, 0), (2, 0), (2, 0)), _weighed((0, 2), (0, 1), (0, 2))),
        2,
        cut=_COARSE,
        delta=_THOUSANDTH,
    ),
    Instance(
        "multiplicative weights",
        multiplicative_weights(8, 2, rows=4, margin="0.5", updates=1),
        asks([((3, 1), (4, 1)), ((4, 1), (3, 1))], (1, 0)),
        2,
        cut=_COARSE,
        delta=_THOUSANDTH,
    ),
    Instance(
        "monotone histogram",
        MonotoneHistogram(30, max_of, 1, scale="1/10"),
        (*_UNIT, _ASK),
        2,
        cut=_COARSE,
        delta=_THOUSANDTH,
    ),
    Instance(
        "histogram with delta",
        MonotoneHistogram(30, max_of, 1, delta=_HUNDREDTH, scale="1/10"),
        (*_UNIT, _ASK),
        2,
        cut=Fraction(1, 10**4),
        delta=Fraction(2, 100),
    ),
)
COMPOSITES: tuple[Instance, ...] = tuple(instance._replace(group="composites") for instance in _COMPOSITES)
"""Every shipped composite."""
