"""A mean in the user's units: what a noisy sum and a noisy count say together, and how far that may be off.

>>> ages = Averaged(None, 240, 28_800, 2, Fraction(1, 2), low=Fraction(0), high=Fraction(120))
>>> ages.in_units((0, 240))
60
"""

from fractions import Fraction

from counterpoint.encoding import Plain
from counterpoint.errors import NotCovered
from counterpoint.mechanisms.mechanism import Chosen
from counterpoint.numbers import Exact
from counterpoint.sources.asking.grouping import cell_by_cell
from counterpoint.sources.source import Prepared


class Averaged(Prepared, frozen=True, kw_only=True):
    """A prepared mean: in units, a noisy pair becomes the mean, or None if the noisy count is not above 0.

    Where there are names, the answer has a pair for each of them.
    """

    low: Fraction
    high: Fraction

    def in_units(self, answer: Plain) -> object:
        """The middle plus half the width times the ratio of the coordinates, clamped to the bounds.

        >>> ages = Averaged(None, 240, 28_800, 2, Fraction(1, 2), low=Fraction(0), high=Fraction(120))
        >>> ages.in_units((-120, 240)), ages.in_units((5, 0))
        (30, None)
        """
        if not isinstance(answer, tuple):
            return answer.index if isinstance(answer, Chosen) else super().in_units(answer)  # a pair has one name
        means = tuple(self._mean(*pair) for pair in cell_by_cell(answer, 2))
        return means[0] if self.names is None else means

    def _mean(self, centred: Plain, weighed: Plain) -> Fraction | None:
        assert isinstance(centred, int) and isinstance(weighed, int)
        if weighed <= 0:
            return None
        return self._at(Fraction(centred, weighed))

    def _at(self, ratio: Fraction) -> Fraction:
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        return Exact(min(max(middle + half * ratio, self.low), self.high))

    @property
    def states_error(self) -> bool:
        """From the noisy sum and count."""
        return True

    @property
    def together(self) -> int:
        """A sum and a count."""
        return 2

    def signal(self, answer: Plain) -> int:
        """The count."""
        assert isinstance(answer, tuple)
        return super().signal(answer[1])

    def error_in_units(self, steps: int) -> Fraction:
        """It depends on how many rows there are."""
        raise NotCovered(
            "the error of a mean depends on how many rows it is a mean of, so that none is stated before it is asked: "
            "give ask() an epsilon=, and the answer states its error; or ask for a sum and a count, each with error="
        )

    def error_from(self, answer: Plain, steps: int) -> Fraction:
        """The farthest mean that a sum and a count within `steps` of the noisy ones have.

        A noisy count that could be noise alone says nothing: then it is the farther of the two bounds.

        >>> ages = Averaged(None, 240, 28_800, 2, Fraction(1, 2), low=Fraction(0), high=Fraction(120))
        >>> ages.error_from((-12_000, 24_000), 240), ages.error_from((-120, 240), 240)
        (10/11, 90)
        """
        return self.error_within(answer, steps, steps)

    def error_within(self, answer: Plain, of_sum: int, of_count: int) -> Fraction:
        """The same, where the sum and the count may be off by different numbers of steps."""
        assert isinstance(answer, tuple)
        centred, weighed = answer
        assert isinstance(centred, int) and isinstance(weighed, int)
        mean = self._at(Fraction(centred, weighed))
        if weighed <= of_count:
            return Exact(max(mean - self.low, self.high - mean))
        corners = [(centred + a, weighed + b) for a in (-of_sum, of_sum) for b in (-of_count, of_count)]
        return Exact(max(abs(self._at(Fraction(*corner)) - mean) for corner in corners))
