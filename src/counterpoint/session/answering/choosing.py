"""Which mechanism answers a question, at which price: by a loss, or by the error that is wanted. Public facts only.

With a loss, it is the mechanism whose stated error is least (`offered`). With an error, it is the cheapest mechanism
that keeps it: for Laplace, for rounded normal and for discrete Gaussian noise the least parameter is searched for, to
four digits (`reaching`); which of the three lowers a session's budget least is for its rule to say (`questions.py`).

>>> from counterpoint import Stream, total
>>> visits = Stream(bound=1).prepare(total())
>>> offered(visits, PureDP(1)), reaching(visits, error=30)[0]
((Laplace(1),), Laplace(0.09819))
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import floor

from counterpoint.errors import InvalidParameter, InvalidRequest, NotCovered, shown
from counterpoint.mechanisms.additive import Gaussian, Laplace
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.mechanisms.selecting.noisy_max import NoisyMax
from counterpoint.mechanisms.selecting.partition_selection import PartitionSelection
from counterpoint.mechanisms.tails import may_fail
from counterpoint.numbers import Number, precision
from counterpoint.numbers.exact import exact, positive, spell
from counterpoint.privacy.loss import Loss
from counterpoint.privacy.losses import ApproxDP, GaussianDP, PureDP, zCDP
from counterpoint.sources.source import Prepared, Wants

SURE = Fraction(95, 100)
"""The probability with which a stated error holds, where no other is given."""
_FAR = 60
"""A parameter is searched for between 10^-60 and 10^60."""

Mechanisms = tuple[Mechanism, ...]


def _pure(loss: PureDP) -> dict[Wants, Mechanisms]:
    return {"numbers": (Laplace(loss.epsilon),), "choice": (NoisyMax(loss.epsilon),)}


def _concentrated(loss: zCDP) -> dict[Wants, Mechanisms]:
    epsilon = Fraction(precision(30)(2 * loss.rho).sqrt().lower)  # PureDP(e) is zCDP(e^2/2)
    return {"numbers": (Gaussian(rho=loss.rho), Laplace(epsilon)), "choice": (NoisyMax(rho=loss.rho),)}


def _gaussian(loss: GaussianDP) -> dict[Wants, Mechanisms]:
    return {"numbers": (Gaussian(mu=loss.mu),)}


def _approximate(loss: ApproxDP) -> dict[Wants, Mechanisms]:
    pure = _pure(PureDP(loss.epsilon))
    if loss.delta == 0:
        return pure
    gaussian = Gaussian(epsilon=loss.epsilon, delta=loss.delta)
    keys = PartitionSelection(loss.epsilon, loss.delta)
    return {**pure, "numbers": (*pure["numbers"], gaussian), "keys": (keys,)}


_OFFERS: Mapping[type[Loss], Callable[..., dict[Wants, Mechanisms]]] = {
    PureDP: _pure,
    zCDP: _concentrated,
    GaussianDP: _gaussian,
    ApproxDP: _approximate,
}
_WORKS: Mapping[Wants, str] = {
    "numbers": "give a PureDP, a zCDP, a GaussianDP or an ApproxDP, or epsilon=, rho= or mu=",
    "choice": "a candidate is chosen by NoisyMax: give a PureDP, a zCDP or an ApproxDP, or epsilon= or rho=",
    "keys": "keys are selected by PartitionSelection, which needs a delta: give loss=ApproxDP(1, 1e-6)",
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
    offers = _OFFERS.get(type(loss))
    if offers is None or not any(loss.amounts):
        raise NotCovered(f"no mechanism is known that spends {loss!r} on one request; {_WORKS[prepared.wants]}")
    fit = [m for m in offers(loss).get(prepared.wants, ()) if m.accepts(prepared.message())]
    if not fit:
        raise InvalidRequest(f"nothing answers this request at {loss!r}: {_WORKS[prepared.wants]}; nothing was charged")
    if len(fit) == 1:
        return tuple(fit)
    return tuple(sorted(fit, key=lambda m: m.answer_error(prepared.message(), SURE, prepared.together)))


def reaching(
    prepared: Prepared, error: Number, probability: Number = SURE, *, simultaneous: bool = False
) -> Mechanisms:
    """Laplace, rounded normal and discrete Gaussian noise, each at the least price that keeps this error."""
    steps = _steps(prepared, error)
    may_fail(probability)
    message, numbers = prepared.message(), (prepared.width or 1) if simultaneous else 1

    def keeps(mechanism: Mechanism) -> bool:
        return mechanism.answer_error(message, probability, numbers) <= steps

    makers: tuple[Callable[[Fraction], Mechanism], ...] = (
        Laplace,
        lambda mu: Gaussian(mu=mu),
        lambda rho: Gaussian(rho=rho),
    )
    return tuple(_cheapest(make, keeps) for make in makers)


def _steps(prepared: Prepared, error: Number) -> int:
    """The wanted error in steps of the grid, rounded down; a refusal where a request has no stated error."""
    wanted = exact(error, "error")
    if wanted < 0:
        raise InvalidParameter(f"error must be at least 0, but {spell(wanted)} was given")
    if prepared.wants == "choice":
        raise NotCovered(
            "a choice has no error in units: ask for ranks(...) with error=, and quantile_from makes a quantile of "
            "them; or give ask() an epsilon="
        )
    if prepared.wants == "keys":
        raise NotCovered(f"selected keys have no error: {_WORKS['keys']}")
    prepared.error_in_units(0)  # refuses where the error depends on the answer
    return floor(prepared.to_grid(wanted))


def _cheapest(make: Callable[[Fraction], Mechanism], keeps: Callable[[Mechanism], bool]) -> Mechanism:
    """The mechanism of the least parameter of four digits that keeps the error."""
    power = 0
    while keeps(make(Fraction(10) ** power)) and power > -_FAR:
        power -= 1
    while not keeps(make(Fraction(10) ** (power + 1))):
        power += 1
        if power > _FAR:
            raise InvalidParameter(f"no parameter up to 1e{_FAR} keeps this error with this probability: ask for less")
    unit, short, enough = Fraction(10) ** (power - 3), 1000, 10_000
    while enough - short > 1:
        middle = (short + enough) // 2
        if keeps(make(middle * unit)):
            enough = middle
        else:
            short = middle
    return make(enough * unit)
