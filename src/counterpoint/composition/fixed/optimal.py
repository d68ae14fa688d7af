"""The optimal composition of fixed (eps_i, delta_i): what the responses RR(eps_i, delta_i) lose together.

Vadhan and Wang 2021, Cor 4 and Lyu 2022, Thm 1 for interactive mechanisms; Henzinger et al. 2024, Thm 4.12 for
continual ones: any concurrent composition of them is a postprocessing of these randomized responses. Something is
exposed with probability D = 1 - prod(1 - delta_i); otherwise the RR(eps_i, 0) remain, so delta = D + (1 - D) d0(eps)
(theory, Fixed parameters).

>>> hundred = Optimal(((Fraction(1, 10), Fraction(1, 10**9), 100),))
>>> hundred.epsilon_at(1e-6), hundred.bounds.delta_at(4), hundred.method
(4.787723760811647, Enclosure(lower=3.432311976470558e-05, upper=3.432311976470559e-05), 'counting')
"""

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from counterpoint.composition.fixed.composed import INFINITE, Composed
from counterpoint.composition.fixed.exposure import Parts, exposure, left_after, spell_parts, with_exposure
from counterpoint.composition.fixed.unexposed import Unexposed
from counterpoint.encoding import Value
from counterpoint.privacy.loss import Loss
from counterpoint.privacy.losses import ApproxDP, PureDP


class Optimal(Composed, Value, frozen=True):
    """Randomized responses RR(epsilon, delta), composed."""

    parts: Parts

    def __repr__(self) -> str:
        return f"{type(self).__name__}({spell_parts(self.parts)})"

    @property
    def loss(self) -> "Optimal":
        """Itself: it is a whole curve, not an amount of one measure."""
        return self

    @property
    def method(self) -> str:
        """Either "counting" or "lattice"; "basic" for parameters out of all proportion."""
        return _unexposed(self.parts).method

    def _by_renyi(self, delta: Fraction) -> bool:
        """Where a lattice's d0 would be below 1e-300."""
        left = left_after(delta, exposure(self.parts).high)
        return left is not None and _unexposed(self.parts).by_renyi(left)

    def _epsilon_above(self, delta: Fraction) -> Fraction | Decimal:
        """An epsilon at which d0 is at most what the exposures leave of delta."""
        left = left_after(delta, exposure(self.parts).high)
        return INFINITE if left is None else _unexposed(self.parts).epsilon_above(left)

    def _epsilon_below(self, delta: Fraction) -> Fraction | Decimal:
        """An epsilon at which d0 is still more than that."""
        left = left_after(delta, exposure(self.parts).low)
        return INFINITE if left is None else _unexposed(self.parts).epsilon_below(left)

    def _delta_above(self, epsilon: Fraction) -> Decimal:
        """D + (1 - D) d0 from above."""
        return with_exposure(exposure(self.parts).high, _unexposed(self.parts).delta_above(epsilon)).upper

    def _delta_below(self, epsilon: Fraction) -> Decimal:
        """D + (1 - D) d0 from below."""
        return with_exposure(exposure(self.parts).low, _unexposed(self.parts).delta_below(epsilon)).lower

    def group(self, size: int) -> "Optimal":
        """Each mechanism's loss for a group, composed."""
        larger = [(ApproxDP(epsilon, delta).group(size), copies) for epsilon, delta, copies in self.parts]
        return Optimal(tuple((loss.epsilon, loss.delta, copies) for loss, copies in larger))

    def as_pure(self) -> PureDP:
        """The sum of the epsilons, if no delta is above 0."""
        if any(delta for _, delta, _ in self.parts):
            raise self._no_conversion("PureDP")
        return PureDP(_unexposed(self.parts).most)


class OptimalParts(Optimal, frozen=True):
    """The same for parts of the data, k of which neighbours reach; data farther apart may reach more than k.

    Three units may move three parts by two steps each where two parts were paid for, and RR(2e) three times is not
    within RR(3e) twice (theory, Groups). So a group's loss is that of the sum.

    >>> OptimalParts(((Fraction(1), Fraction(0), 2),)).group(3)
    PureDP(6)
    """

    def group(self, size: int) -> Loss:  # type: ignore[override]  # no composition of the parts' groups
        """The group loss of all parts together, as one loss; itself for one unit."""
        if size == 1:
            return self
        total, _ = ApproxDP.together({ApproxDP(epsilon, delta): copies for epsilon, delta, copies in self.parts})
        assert isinstance(total, ApproxDP)
        return total.group(size) if total.delta else PureDP(total.epsilon).group(size)


@lru_cache(maxsize=32)
def _unexposed(parts: Parts) -> Unexposed:
    counts: Counter[Fraction] = Counter()
    for epsilon, _, copies in parts:
        counts[epsilon] += copies
    return Unexposed(tuple(sorted((epsilon, copies) for epsilon, copies in counts.items() if epsilon > 0)))
