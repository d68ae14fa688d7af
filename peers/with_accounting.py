"""The tasks with dp_accounting, Google's accounting: privacy loss distributions, at their default grid of 1e-4."""

from collections.abc import Callable
from typing import Any

from peers.library import Library
from peers.tasks import DELTA, SAMPLED_SIGMA, SAMPLING_RATE, different_losses, noise_levels


def _start() -> None:
    import dp_accounting.pld  # noqa: F401 - imported before the clock runs


def _composed(events: Any) -> Callable[[], Any]:
    from dp_accounting import ComposedDpEvent
    from dp_accounting.pld import PLDAccountant

    return lambda: PLDAccountant().compose(ComposedDpEvent(events)).get_epsilon(DELTA)


def _different_losses(size: int) -> Callable[[], Any]:
    from dp_accounting.pld import common, privacy_loss_distribution

    losses = [common.DifferentialPrivacyParameters(*loss) for loss in different_losses(size)]

    def epsilon() -> float:
        waiting = [privacy_loss_distribution.from_privacy_parameters(loss) for loss in losses]
        while len(waiting) > 1:  # two by two, which is much faster than one by one
            pairs = zip(waiting[::2], waiting[1::2], strict=False)
            waiting = [one.compose(other) for one, other in pairs] + waiting[len(waiting) // 2 * 2 :]
        return float(waiting[0].get_epsilon_for_delta(DELTA))

    return epsilon


def _gaussian_losses(size: int) -> Callable[[], Any]:
    from dp_accounting import GaussianDpEvent, SelfComposedDpEvent

    return _composed([SelfComposedDpEvent(GaussianDpEvent(sigma), size // 10) for sigma in noise_levels(size)[:10]])


def _sampled_gaussians(size: int) -> Callable[[], Any]:
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent

    step = PoissonSampledDpEvent(SAMPLING_RATE, GaussianDpEvent(SAMPLED_SIGMA))
    return _composed([SelfComposedDpEvent(step, size)])


NO_DATA = "it accounts for events and touches no data"
NO_FILTER = "its accountants state what a fixed list costs; none is a filter for losses that are chosen adaptively"

LIBRARY = Library(
    "accounting",
    "dp_accounting",
    "dp-accounting",
    __name__,
    ("dp-accounting",),
    works={
        "different_losses": _different_losses,
        "gaussian_losses": _gaussian_losses,
        "sampled_gaussians": _sampled_gaussians,
    },
    cannot={
        "filter": NO_FILTER,
        "interleaved": "it has no mechanisms",
        "threads": NO_FILTER,
        **dict.fromkeys(
            ("stream", "separated", "group_by", "group_by_units", "counts", "means", "medians", "keys"), NO_DATA
        ),
    },
    no_gallery="it accounts for events and touches no data (task 14 is the list of Gaussian mechanisms below)",
    start=_start,
)
