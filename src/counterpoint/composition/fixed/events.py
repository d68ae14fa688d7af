"""What other tools say they have lost, as losses: events of `dp_accounting`, and the history of an Opacus accountant.

`losses_of` reads the events whose meaning is one loss of ours, by their names and fields; neither package is imported.
The numbers are those of the event, read as the decimals that a person typed. Every other event is refused by name: a
mechanism that is not understood must not be charged as if it were. Poisson sampling means neighbours by adding or
removing one unit, as in both packages.

>>> from counterpoint import compose
>>> training = losses_of([(1.0, 0.01, 1000)])
>>> training, compose.optimal([loss for loss, times in training for _ in range(times)]).epsilon_at(1e-5) < 1.83
([(SampledGaussianDP(1, 0.01), 1000)], True)
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

from counterpoint.errors import InvalidParameter, NotCovered, shown
from counterpoint.measures import GaussianDP, PureDP, SampledGaussianDP, zCDP
from counterpoint.measures.loss import Loss
from counterpoint.numbers.exact import exact, whole

_DEEPEST = 64
"""How many events may be nested in each other."""


def losses_of(event: Any) -> list[tuple[Loss, int]]:
    """The losses of a `dp_accounting` event or of an Opacus accountant, each with how often it occurs.

    Of `dp_accounting`: `GaussianDpEvent`, `LaplaceDpEvent`, `ZCDpEvent`, `PoissonSampledDpEvent` of a Gaussian,
    `SelfComposedDpEvent`, `ComposedDpEvent` and `NoOpDpEvent`. Of Opacus: an accountant, or its `history`, a list of
    (noise multiplier, sample rate, steps). Anything else is `NotCovered`, by name. `Session.charge` takes the result.

    >>> losses_of([(2.0, 1.0, 3)])
    [(GaussianDP(0.5), 3)]
    """
    history = getattr(event, "history", event)
    if isinstance(history, list | tuple):
        return list(_opacus(history).items())
    return list(_read(event, 1, 0).items())


def _opacus(history: Any) -> Counter[Loss]:
    counted: Counter[Loss] = Counter()
    for entry in history:
        if not isinstance(entry, list | tuple) or len(entry) != 3:
            raise InvalidParameter(
                "the history of an Opacus accountant is a list of (noise multiplier, sample rate, steps), "
                f"not of {shown(entry)}"
            )
        sigma, rate, steps = entry
        counted[_sampled(sigma, rate)] += whole(steps, 1, "the number of steps")
    return counted


def _sampled(sigma: Any, rate: Any) -> Loss:
    """A Gaussian step with this noise multiplier, on a Poisson sample of this rate."""
    mu = 1 / _positive(sigma)
    return GaussianDP(mu) if exact(rate, "the sample rate") == 1 else SampledGaussianDP(mu, rate)


def _positive(sigma: Any) -> Any:
    found = exact(sigma, "the noise multiplier")
    if found <= 0:
        raise InvalidParameter(
            f"the noise multiplier must be above 0, but {shown(sigma)} was given: no noise, no bound"
        )
    return found


def _read(event: Any, times: int, depth: int) -> Counter[Loss]:
    """The losses of an event that occurs so many times."""
    if depth > _DEEPEST:
        raise InvalidParameter(f"events are nested more than {_DEEPEST} deep")
    name = type(event).__name__
    if name == "NoOpDpEvent":
        return Counter()
    if name == "SelfComposedDpEvent":
        count = whole(event.count, 0, "the count of a SelfComposedDpEvent")
        return _read(event.event, times * count, depth + 1) if count else Counter()
    if name == "ComposedDpEvent":
        found: Counter[Loss] = Counter()
        for one in event.events:
            found.update(_read(one, times, depth + 1))
        return found
    single = _SINGLE.get(name)
    if single is None:
        raise NotCovered(f"no loss here is that of a {name}; there is one for {', '.join(sorted((*_SINGLE, *_MANY)))}")
    return Counter({single(event): times})


def _concentrated(event: Any) -> Loss:
    if exact(event.xi, "xi") != 0:
        raise NotCovered("a ZCDpEvent with xi above 0 is no zCDP loss here; give its (epsilon, delta) as ApproxDP")
    return zCDP(event.rho)


def _of_sample(event: Any) -> Loss:
    """A Gaussian on a Poisson sample. Several on one sample are another mechanism than several samples."""
    inner = type(event.event).__name__
    if inner != "GaussianDpEvent":
        raise NotCovered(f"of Poisson samples only a single GaussianDpEvent is read, and this one is of a {inner}")
    return _sampled(event.event.noise_multiplier, event.sampling_probability)


_SINGLE: dict[str, Callable[[Any], Loss]] = {
    "GaussianDpEvent": lambda event: GaussianDP(1 / _positive(event.noise_multiplier)),
    "LaplaceDpEvent": lambda event: PureDP(1 / _positive(event.noise_multiplier)),
    "ZCDpEvent": _concentrated,
    "PoissonSampledDpEvent": _of_sample,
}
"""The events that are one loss."""
_MANY = ("ComposedDpEvent", "NoOpDpEvent", "SelfComposedDpEvent")
