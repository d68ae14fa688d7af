"""The verdict on a claim: it holds, it is refuted, or it is undecided.

A computation with too little evidence (truncated tails, too few games) has not shown that a claim holds, and "not
refuted" must not be mistaken for it. So a verdict has three values and no truth value. `exact` returns all three; an
audit, which is a lower bound, never returns HOLDS.

>>> from counterpoint import Laplace, PureDP
>>> from counterpoint.verify.exact_loss import exact
>>> [exact(Laplace(1)).judge(PureDP(epsilon)).value for epsilon in (1, "0.9")]
['holds', 'refuted']
>>> exact(Laplace(1), cut="0.1").judge(PureDP(1))
Verdict.UNDECIDED
>>> if not Verdict.UNDECIDED:
...     print("passed")
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: a verdict has three values, so it is not true or false: write `is Verdict.HOLDS` \
or `is Verdict.REFUTED`
"""

import math
from collections.abc import Iterable
from enum import Enum
from fractions import Fraction
from typing import NoReturn

from counterpoint.errors import InvalidParameter
from counterpoint.measures.loss import Loss
from counterpoint.numbers.exact import exact, whole
from counterpoint.privacy.claims import Claim

_FAR = Fraction(100)
_DELTAS = tuple(Fraction(delta) for delta in ("0", "1e-9", "1e-6", "1e-3"))
_NOTHING = Fraction(1, 10**12)


class Verdict(Enum):
    """Whether a claim holds; compare it with `is`, since it is neither true nor false."""

    HOLDS = "holds"
    REFUTED = "refuted"
    UNDECIDED = "undecided"

    def __bool__(self) -> NoReturn:
        raise InvalidParameter(
            "a verdict has three values, so it is not true or false: write `is Verdict.HOLDS` or `is Verdict.REFUTED`"
        )

    def __repr__(self) -> str:
        return f"Verdict.{self.name}"


def overall(verdicts: Iterable[Verdict]) -> Verdict:
    """REFUTED if one of them is, else UNDECIDED if one of them is, else HOLDS.

    >>> overall([Verdict.HOLDS, Verdict.UNDECIDED]), overall([Verdict.HOLDS, Verdict.HOLDS])
    (Verdict.UNDECIDED, Verdict.HOLDS)
    """
    given = set(verdicts)
    return next((v for v in (Verdict.REFUTED, Verdict.UNDECIDED) if v in given), Verdict.HOLDS)


def loss_of(claim: Claim | Loss) -> Loss:
    """The loss of a claim, or the loss itself.

    >>> from counterpoint import Laplace, PureDP
    >>> loss_of(Laplace(1).claim), loss_of(PureDP(2))
    (PureDP(1), PureDP(2))
    """
    loss = claim.loss if isinstance(claim, Claim) else claim
    if not isinstance(loss, Loss):
        raise InvalidParameter(f"judge takes a claim or a loss such as PureDP(1), not a {type(claim).__name__}")
    return loss


def compared(loss: Loss, points: int, *deltas: Fraction) -> list[float]:
    """The epsilons at which a loss is compared: evenly spaced, and where its curve ends.

    A curve of exact deltas is convex in e^epsilon and never rises. The delta that PureDP and ApproxDP allow is linear
    in e^epsilon up to their epsilon and constant from there on, so for these two the ends decide for every epsilon;
    other losses are compared at these epsilons only.

    >>> from counterpoint import ApproxDP
    >>> compared(ApproxDP(1, "0.01"), 2)
    [0.0, 0.5, 1.0]
    """
    floor = Fraction(loss.delta_bounds(_FAR).upper)  # at a large epsilon an ApproxDP allows its delta
    ends = [loss.epsilon_at(delta) for delta in (*_DELTAS, *deltas, floor) if delta in _DELTAS or delta > _NOTHING]
    own = {end for end in ends if math.isfinite(end)}
    top, many = max(own, default=0.0) or 10.0, whole(points, 1, "points")
    return sorted({0.0, *own, *(top * n / many for n in range(1, many + 1))})


def allowed(loss: Loss, epsilon: float) -> Fraction:
    """The delta that a loss allows at an epsilon, rounded up."""
    return Fraction(loss.delta_bounds(exact(epsilon)).upper)
