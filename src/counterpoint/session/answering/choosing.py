"""Which mechanism answers a question, at which price: by a loss, or by the error that is wanted. Public facts only.

With a loss, it is the mechanism whose stated error is least (`offered`). With an error, it is the cheapest mechanism
that keeps it: for Laplace, for rounded normal and for discrete Gaussian noise the least parameter is searched for, to
four digits (`keeping`), and for a choice that of both kinds of noisy maximum; which of them lowers a session's budget
least is for its rule to say (`questions.py`).

>>> from counterpoint import Stream, total
>>> visits = Stream(bound=1).prepare(total())
>>> offered(visits, PureDP(1)), keeping(visits, error=30)[0]
((Laplace(1),), Laplace(0.09819))
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from math import floor

from counterpoint.errors import InvalidParameter, InvalidRequest, NotCovered, shown
from counterpoint.mechanisms.additive import Gaussian, Laplace
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.mechanisms.selecting.gaussian_selection import GaussianSelection
from counterpoint.mechanisms.selecting.noisy_max import NoisyMax
from counterpoint.mechanisms.selecting.partition_selection import PartitionSelection
from counterpoint.numbers import Number, precision
from counterpoint.numbers.exact import exact, positive, spell
from counterpoint.privacy.loss import Loss
from counterpoint.privacy.losses import ApproxDP, ApproxzCDP, GaussianDP, PureDP, zCDP
from counterpoint.session.answering.reaching import reaching
from counterpoint.sources.source import Prepared, Wants

SURE = Fraction(95, 100)
"""The probability with which a stated error holds, where no other is given."""

Mechanisms = tuple[Mechanism, ...]


def _choosers(epsilon: Fraction | None = None, rho: Fraction | None = None) -> Mechanisms:
    """The first has half the noise of the second, and takes only what moves one way."""
    return NoisyMax(epsilon, monotone=True, rho=rho), NoisyMax(epsilon, rho=rho)


def _pure(loss: PureDP) -> dict[Wants, Mechanisms]:
    return {"numbers": (Laplace(loss.epsilon),), "choice": _choosers(epsilon=loss.epsilon)}


def _concentrated(loss: zCDP) -> dict[Wants, Mechanisms]:
    epsilon = Fraction(precision(30)(2 * loss.rho).sqrt().lower)  # PureDP(e) is zCDP(e^2/2)
    choices = *_choosers(rho=loss.rho), *_choosers(epsilon)
    return {"numbers": (Gaussian(rho=loss.rho), Laplace(epsilon)), "choice": choices}


def _gaussian(loss: GaussianDP) -> dict[Wants, Mechanisms]:
    return {"numbers": (Gaussian(mu=loss.mu),)}


def _approximate(loss: ApproxDP) -> dict[Wants, Mechanisms]:
    pure = _pure(PureDP(loss.epsilon))
    if loss.delta == 0:
        return pure
    gaussian = Gaussian(epsilon=loss.epsilon, delta=loss.delta)
    keys = PartitionSelection(loss.epsilon, loss.delta), GaussianSelection(loss.epsilon, loss.delta)
    return {**pure, "numbers": (*pure["numbers"], gaussian), "keys": keys}


def _approximate_concentrated(loss: ApproxzCDP) -> dict[Wants, Mechanisms]:
    concentrated = _concentrated(zCDP(loss.rho))
    if loss.delta == 0:
        return concentrated
    epsilon = Fraction(precision(30)(2 * loss.rho).sqrt().lower)  # an (e, delta) answer is (e^2/2, delta)
    keys = PartitionSelection(epsilon, loss.delta), GaussianSelection(rho=loss.rho, delta=loss.delta)
    return {**concentrated, "keys": keys}


_OFFERS: Mapping[type[Loss], Callable[..., dict[Wants, Mechanisms]]] = {
    PureDP: _pure,
    zCDP: _concentrated,
    GaussianDP: _gaussian,
    ApproxDP: _approximate,
    ApproxzCDP: _approximate_concentrated,
}
_FARTHEST = 2**60
"""The most steps that an error may be given as: beyond it the search for its price takes minutes, or overflows."""
_WORKS: Mapping[Wants, str] = {
    "numbers": "give a PureDP, a zCDP, a GaussianDP or an ApproxDP, or epsilon=, rho= or mu=",
    "choice": "a candidate is chosen by NoisyMax: give a PureDP, a zCDP or an ApproxDP, or epsilon= or rho=",
    "keys": (
        "keys are selected by PartitionSelection or GaussianSelection, which need a delta: give loss=ApproxDP(1, 1e-6)"
    ),
}


def price(epsilon: Number | None, rho: Number | None, mu: Number | None, loss: Loss | None) -> Loss | None:
    """The one loss that was given, in one of four ways; None if none was."""
    given = [
        name for name, value in (("epsilon", epsilon), ("rho", rho), ("mu", mu), ("loss", loss)) if value is not None
    ]
    if len(given) > 1:
        raise InvalidParameter(f"one price is enough, but {' and '.join(f'{name}=' for name in given)} were given")
    if loss is not None:
        if not isinstance(loss, Loss):
            raise InvalidParameter(
                f"loss= takes a loss, such as PureDP(0.1), not {shown(loss)}; a number is an epsilon="
            )
        return loss
    if epsilon is not None:
        return PureDP(positive(epsilon, "epsilon"))
    if rho is not None:
        return zCDP(positive(rho, "rho"))
    return None if mu is None else GaussianDP(positive(mu, "mu"))


def offered(prepared: Prepared, loss: Loss) -> Mechanisms:
    """The mechanisms that answer this request within this loss, the one with the least error first."""
    if type(loss) not in _OFFERS or not any(loss.amounts):
        raise NotCovered(f"no mechanism is known that spends {loss!r} on one request; {_WORKS[prepared.wants]}")
    fit = [m for m in _offers(loss).get(prepared.wants, ()) if m.accepts(prepared.message())]
    if not fit:
        raise InvalidRequest(f"nothing answers this request at {loss!r}: {_WORKS[prepared.wants]}; nothing was charged")
    return tuple(fit) if len(fit) == 1 else tuple(sorted(fit, key=lambda mechanism: least_error(mechanism, prepared)))


@lru_cache(maxsize=256)
def _offers(loss: Loss) -> Mapping[Wants, Mechanisms]:
    """What a loss buys; an epsilon and a delta take milliseconds to become a Gaussian."""
    return _OFFERS[type(loss)](loss)


@lru_cache(maxsize=256)
def least_error(mechanism: Mechanism, prepared: Prepared) -> int:
    """By what mechanisms are compared: the error at 95 %, in steps of the grid; of keys, the units that one needs."""
    if prepared.wants == "keys":
        units: int = mechanism.error(SURE, prepared.sensitivity, prepared.squared)
        return units
    return mechanism.answer_error(prepared.message(), SURE, prepared.together)


def keeping(
    prepared: Prepared,
    error: Number,
    probability: Number = SURE,
    *,
    simultaneous: bool = False,
    in_rows: bool = False,
) -> Mechanisms:
    """The mechanisms that answer this request, each at the least price that keeps this error (`reaching.py`)."""
    return reaching(prepared, _steps(prepared, error, in_rows), probability, simultaneous=simultaneous)


def _steps(prepared: Prepared, error: Number, in_rows: bool) -> int:
    """The wanted error in steps of the grid, rounded down; a refusal where a request has no stated error."""
    wanted = exact(error, "rank_error" if in_rows else "error")
    if wanted < 0:
        raise InvalidParameter(f"error must be at least 0, but {spell(wanted)} was given")
    if prepared.wants == "keys":
        raise NotCovered(f"selected keys have no error: {_WORKS['keys']}")
    if prepared.wants == "choice" and not in_rows:
        raise NotCovered(
            "a choice has no error in units: give rank_error=20 for a rank within 20 rows, or an epsilon=; or ask for "
            "ranks(...) with error=, and quantile_from makes a quantile of them"
        )
    if prepared.wants == "numbers" and in_rows:
        raise InvalidParameter("rank_error= is about a chosen candidate, such as a median; give error= for numbers")
    prepared.error_in_units(0)  # refuses where the error depends on the answer
    steps = floor(prepared.to_grid(wanted))
    if steps > _FARTHEST:
        raise InvalidParameter(
            f"an error of {spell(wanted)} is more than 2^60 steps of the grid: ask for a smaller one"
        )
    return steps
