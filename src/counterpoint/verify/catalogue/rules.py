"""The shipped rules against every adaptive analyst, and the local model's users and protocols, for the catalogue.

A rule is verified as the game in which an adaptive analyst launches mechanisms from a menu (`session_game`), or as the
concurrent composition that a session is (`Concurrent`), over all interleavings.

>>> RULES[0].name, LOCAL[-1].name
('filter, basic', 'core protocol')
"""

from fractions import Fraction

from counterpoint.composition.filters import Filter
from counterpoint.composition.odometers import Odometer
from counterpoint.composition.parallel import Parallel
from counterpoint.composition.restated import Amplified, Converted
from counterpoint.composition.slots import Slots
from counterpoint.encoding import Plain
from counterpoint.local.cores import core_protocol
from counterpoint.local.designs import Affine, Subsets
from counterpoint.local.multi_sparse_vector import MultiSparseVector
from counterpoint.local.peeling import Fewer, Neighbourhood
from counterpoint.local.properties import AtMost, Data, Guarded
from counterpoint.local.protocol import Protocol
from counterpoint.local.responders import Among, BlockResponse, Membership, Which
from counterpoint.measures import ApproxDP, GaussianDP, PureDP, RenyiDP, TradeOff, zCDP
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.additive import Gaussian
from counterpoint.mechanisms.concurrent import Concurrent, Launch
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.mechanisms.randomized_response import RandomizedResponse
from counterpoint.mechanisms.sparse_vector import AboveThreshold, SparseVector
from counterpoint.privacy.messages import Ask, ToChild
from counterpoint.privacy.relations import (
    OfSample,
    Pair,
    Steps,
    every_step,
    first_pair_consistent,
    k_sparse,
    static_parts,
)
from counterpoint.privacy.secret import Raw
from counterpoint.verify.catalogue.instances import Instance, session_game, stopped
from counterpoint.verify.finite import OpenDoor
from counterpoint.verify.game import CreatedFirst
from counterpoint.verify.message_pairs import asks
from counterpoint.verify.unit_by_unit import UnitByUnit

_ZERO, _TWO, _TENTH, _TWENTIETH, _FIFTIETH = map(Fraction, ("0", "2", "1/10", "1/20", "1/50"))
_PURE = [PureDP("0.3"), PureDP("0.5")]
_THREE = [*_PURE, ApproxDP("0.2", "0.01")]
_BUDGET = ApproxDP(1, _TWENTIETH)
_CURVE = TradeOff.of_approx(1, "0.01")
_MIXED: list[Loss | Mechanism] = [
    PureDP(1),
    Gaussian(rho="0.1", discrete=True),
    Gaussian(mu="0.6"),
    ApproxDP(1, "0.005"),
]
_NORMALS: list[Loss | Mechanism] = [Gaussian(mu="0.6"), Gaussian(mu="0.8"), PureDP("0.3")]
_BY_THREE = tuple(
    pair for number in range(3) for pair in asks([(0, 3)], number, 3)
)  # a finer grid: rounding tells less


def _launch(child: Mechanism) -> Pair:
    return Ask(Launch(child)), Ask(Launch(child))


def _launched(child: Mechanism, copies: int) -> tuple[Pair, ...]:
    """The launch of a child, and pairs of bits (equal ones too) to this many copies."""
    return (_launch(child), *(pair for n in range(copies) for pair in asks([(0, 0), (0, 1)], ToChild(n))))


_SAMPLED_SESSION = UnitByUnit(Concurrent(Amplified(Filter(PureDP(1)), "0.1"), OfSample(_TENTH, every_step())), 1)
_ON_ONE_UNIT = (
    _launch(RandomizedResponse("0.5")),
    *(pair for n in range(2) for pair in asks([((0,), (0,)), ((0,), (1,)), ((1,), (0,))], ToChild(n))),
)

_RULES = (
    Instance("filter, basic", session_game(Filter(PureDP(1)), _PURE, 4)),
    Instance("filter, best", session_game(Filter(_BUDGET), _THREE, 6), delta=_TWENTIETH),
    Instance("filter, advanced", session_game(Filter(_BUDGET, by="advanced"), _THREE, 6), delta=_TWENTIETH),
    Instance("filter, by renyi", session_game(Filter(_BUDGET, by="renyi"), _THREE, 6), delta=_TWENTIETH),
    Instance("filter, by gaussian", session_game(Filter(_BUDGET, by="gaussian"), _THREE, 6), delta=_TWENTIETH),
    Instance("filter, zCDP", session_game(Filter(zCDP("0.1")), _PURE, 6), alpha=_TWO),
    Instance("filter, Renyi", session_game(Filter(RenyiDP(2, "0.5")), _PURE, 6), alpha=_TWO),
    Instance("filter, mixed", session_game(Filter(ApproxDP(2, _TWENTIETH)), _MIXED, 3), delta=_TWENTIETH),
    Instance("filter, Gaussian", session_game(Filter(GaussianDP(1)), _NORMALS, 3), _BY_THREE, 3, delta=_TWENTIETH),
    Instance(
        "filter, trade-off",
        session_game(Filter(_CURVE), [PureDP("0.5"), PureDP("0.4999"), ApproxDP(0, "0.0099")], 3),
        delta=_FIFTIETH,
    ),
    Instance(
        "filter, a table",
        session_game(
            Filter(GaussianDP(1).as_tradeoff(points=16)),
            [PureDP("0.6"), Gaussian(rho="0.18", discrete=True), Gaussian(mu="0.6")],
            3,
        ),
        epsilon=_ZERO,
    ),
    Instance("session on a sample", _SAMPLED_SESSION, _ON_ONE_UNIT, 4),
    Instance("odometer, pure", session_game(stopped(Odometer(PureDP), PureDP(1)), _PURE, 4)),
    Instance("odometer, zCDP", session_game(stopped(Odometer(zCDP), zCDP("0.1")), _PURE, 6), alpha=_TWO),
    Instance(
        "odometer, approximate",
        session_game(stopped(Odometer.approximate(_TWENTIETH), _BUDGET), _THREE, 6),
        delta=_TWENTIETH,
    ),
    Instance(
        "odometer, Gaussian",
        session_game(stopped(Odometer(GaussianDP), GaussianDP(1)), _NORMALS, 3),
        _BY_THREE,
        3,
        delta=_TWENTIETH,
    ),
    Instance("filter, launches", session_game(Filter(PureDP(1), launches=2), _PURE, 4)),
    Instance(
        "filter of an odometer",
        session_game(Odometer.approximate(_TWENTIETH).within(_BUDGET), _THREE, 6),
        delta=_TWENTIETH,
    ),
    Instance("slots", session_game(Slots(_THREE), _THREE, 3), delta=_TWENTIETH),
    Instance(
        "slots, Gaussian",
        session_game(Slots([GaussianDP("0.6"), GaussianDP("0.8")]), _NORMALS, 3),
        _BY_THREE,
        3,
        delta=_TWENTIETH,
    ),
    Instance(
        "slots, trade-off",
        session_game(Slots([_CURVE, PureDP("0.5").as_tradeoff()]), [ApproxDP(1, "0.01"), PureDP("0.5")], 3),
        delta=_FIFTIETH,
    ),
    Instance("slots, at a delta", session_game(Converted(Slots(_THREE), _TWENTIETH), _THREE, 3), delta=_TWENTIETH),
    Instance(
        "parallel, pure",
        Concurrent(Parallel(1, each=PureDP(1)), k_sparse(1, every_step())),
        _launched(RandomizedResponse(1), 2),
        4,
    ),
    Instance(
        "parallel, every delta",
        Concurrent(Parallel(1, each=ApproxDP(0, "1/7"), delta_total="13/49"), k_sparse(1, Steps(asks=1))),
        _launched(OpenDoor("1/7"), 2),
        5,
        epsilon=_ZERO,
    ),
    Instance(
        "parallel, first pair",
        Concurrent(Parallel(1, each=ApproxDP(1, "0.01"), first_pair=True), first_pair_consistent(1, every_step())),
        _launched(RandomizedResponse(1, "0.01"), 2),
        4,
        delta=Fraction(2, 100),
    ),
    Instance(
        "parallel, static",
        Concurrent(Parallel(1, each=ApproxDP(1, "0.01"), first_pair=True), static_parts(1, every_step())),
        (*_launched(RandomizedResponse(1, "0.01"), 1), *asks([(0, 0)], ToChild(1))),
        4,
        delta=Fraction(2, 100),
        relation=static_parts(1, every_step()).reaching(0),
    ),
    Instance(
        "parallel, trade-off",
        Concurrent(Parallel(2, each=_CURVE, first_pair=True), static_parts(2, every_step())),
        (*_launched(RandomizedResponse(1, "0.01"), 2), *asks([(0, 0)], ToChild(2))),
        5,
        delta=Fraction(3, 100),
        relation=static_parts(2, every_step()).reaching(0, 1),
    ),
    Instance(
        "parallel, Gaussian",
        Concurrent(Parallel(2, each=GaussianDP("0.5"), first_pair=True), static_parts(2, every_step())),
        (_launch(Gaussian(mu="0.5")), *(pair for n in (0, 1) for pair in asks([(0, 2)], ToChild(n), 2))),
        4,
        delta=_TWENTIETH,
        relation=static_parts(2, every_step()).reaching(0, 1),
    ),
    Instance(
        "parallel, unlike",
        Concurrent(Parallel(2, each=[PureDP(1), PureDP("0.5")], first_pair=True), static_parts(2, every_step())),
        (*_launched(RandomizedResponse(1), 2), _launch(RandomizedResponse("0.5"))),
        4,
        delta=_TWENTIETH,
        relation=static_parts(2, every_step()).reaching(0, 1),
    ),
    Instance(
        "parts of a partition",
        Concurrent(Parallel(1, each=PureDP(1)), k_sparse(1, every_step())),
        (
            _launch(Concurrent(Filter(PureDP(1)), every_step())),
            *(
                pair
                for part in (0, 1)
                for launched in (Ask(ToChild(part, Launch(RandomizedResponse("0.5")))),)
                for pair in (
                    (launched, launched),
                    *asks([(0, 1)], ToChild(part, ToChild(0))),
                    *asks([(0, 1)], ToChild(part, ToChild(1))),
                )
            ),
        ),
        5,
    ),
)
RULES: tuple[Instance, ...] = tuple(instance._replace(group="rules") for instance in _RULES)
"""Every shipped rule."""


def data(left: Raw, right: Raw, sensitivity: int = 1, to: int | None = None) -> Pair:
    """Neighbouring data for a user, or for the user of this number in a protocol.

    >>> data(0, 1, to=2)[0].public
    ToChild(child=2, public=Data())
    """
    public = Data() if to is None else ToChild(to, Data())
    return Ask(public, left, sensitivity), Ask(public, right, sensitivity)


def query(public: Plain, to: int | None = None) -> Pair:
    """A server's query to a user, or to the user of this number."""
    ask = Ask(public if to is None else ToChild(to, public))
    return ask, ask


_VERTEX = (
    *(data(*rows) for rows in (((0, 1), (1, 1)), ((1, 0), (0, 0)), ((1, 1), (1, 1)))),
    *map(query, (Fewer((0, 1), 1), Fewer((0,), 1), Fewer((0, 1), 2))),
)
_OFF_RANGE = (*(data(*rows) for rows in (((-1, 2), (0, 2)), ((2, 0), (1, 0)), ((0, 2), (1, 2)))), *_VERTEX[3:])
_REWIRED = (data((0, 1), (1, 0), 2), *map(query, (Fewer((0,), 1), Fewer((1,), 1), Fewer((0, 1), 2))))
_VALUES = (data(0, 3, 3), data(3, 0, 3), data(2, 1, 3), data(-1, 9, 10))
_CORES: Protocol = core_protocol(2, epsilon=12)
_LOCAL = (
    Instance(
        "membership",
        Membership(1, bits=2),
        (data(0, 3, 3), data(0, 1, 3), *map(query, (Among(1, (0, 1)), Among(2, (0, 1, 2, 3))))),
        2,
    ),
    Instance(
        "membership, off range",
        Membership(1, bits=1),
        (data(0, 2, 2), data(-1, 1, 2), *map(query, (Among(1, (0, 1)), Among(1, (1,))))),
        2,
    ),
    Instance(
        "guarded user",
        Guarded(Membership(1, bits=2), AtMost(1)),
        (data(0, 3, 3), *map(query, (Among(1, (0, 1)), Among(2, (0, 1, 3))))),
        3,
    ),
    Instance("k-ary response", BlockResponse(1, bits=2), (*_VALUES, query(Which(Subsets(4, 1), 2, 3))), 2),
    Instance("subset selection", BlockResponse(1, bits=2), (*_VALUES, query(Which(Subsets(4, 2), 2, (3, 0, 1)))), 2),
    Instance("affine response", BlockResponse(1, bits=2), (*_VALUES, query(Which(Affine(4, 3, 1), 2, (3, 0, 1)))), 2),
    Instance("Hadamard response", BlockResponse(1, bits=2), (*_VALUES, query(Which(Affine(4, 2, 1), 2, 4))), 2),
    Instance("vertex", Neighbourhood(SparseVector(1, 0, monotone=True), 2), _VERTEX, 8),
    Instance("vertex, off range", Neighbourhood(SparseVector(1, 0, monotone=True), 2), _OFF_RANGE, 8),
    Instance("vertex, rewired", Neighbourhood(AboveThreshold(1, 0), 2, rewired=True), _REWIRED, 8),
    Instance(
        "multi sparse vector",
        MultiSparseVector(SparseVector(6, 0), 2),
        asks([((0, 0), (1, 0)), ((1, 0), (0, 0)), ((0, 0), (0, 0))]),
        3,
        cut=Fraction(1, 10**6),
        delta=Fraction(1, 1000),
    ),
    Instance(
        "multi sparse vector, 2",
        MultiSparseVector(SparseVector(6, 0), 2, k=2),
        asks([((0, 0), (1, 1)), ((1, 0), (0, 1))], sensitivity=2),
        3,
        cut=Fraction(1, 10**6),
        delta=Fraction(1, 1000),
    ),
    Instance(
        "core protocol",
        _CORES.mechanism,
        (
            _launch(_CORES.admit(_CORES.users.mechanisms[0])),
            data((0, 0), (0, 1), to=0),
            data((0, 0), (1, 0), to=1),
            query(Fewer((1,), 1), to=0),
            query(Fewer((0,), 1), to=1),
        ),
        7,
        cut=Fraction(1, 10**6),
        delta=Fraction(1, 1000),
        relation=CreatedFirst(_CORES.neighbours, 2),
    ),
)
LOCAL: tuple[Instance, ...] = tuple(instance._replace(group="the local model") for instance in _LOCAL)
"""Every user of the local model, and a protocol."""
