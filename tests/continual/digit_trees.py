"""A scalar counter with the noise of `DigitTreeCounter`: one number an item is enough to test the noise."""

from counterpoint.continual.counter import Counter
from counterpoint.continual.digit_trees import DigitTreeNoise


class ScalarDigitTree(Counter, frozen=True, repr_omit_defaults=True, tag="ScalarDigitTree/1"):
    """The running count of single numbers, with a noise for each node that the time's balanced digits name."""

    @property
    def noise(self):
        return DigitTreeNoise(self.epsilon, self._l1 * (self.per_unit or 1), self.horizon, width=1)
