"""A Gaussian mechanism on a Poisson sample: one step of DP-SGD.

`mu` is its sensitivity divided by its standard deviation (1 over the noise multiplier), `rate` the probability with
which each unit is in the batch, for one unit that is added or removed (theory, Sampling). Its (epsilon, delta) curve is
exact. Lists of such steps that are fixed in advance compose by `compose.optimal`; no filter adds them up.

>>> from counterpoint import SampledGaussianDP
>>> step = SampledGaussianDP(mu=1, rate=0.01)
>>> step.epsilon_at(1e-5) < 1 < step.of_all.epsilon_at(1e-5)
True
"""

from fractions import Fraction

from counterpoint.encoding import Value
from counterpoint.errors import NotCovered
from counterpoint.numbers import Interval, precision, spell
from counterpoint.numbers.exact import whole
from counterpoint.numbers.parameters import Positive
from counterpoint.privacy.formulas.sampled_gaussian_curve import sampled_delta, sampled_epsilon
from counterpoint.privacy.loss import DIGITS, Loss, certified_delta
from counterpoint.privacy.measures import gaussian, pure
from counterpoint.privacy.rates import Rate


class SampledGaussianDP(Loss, Value, frozen=True):
    """The loss of a Gaussian mechanism with this mu on a Poisson sample of this rate.

    >>> SampledGaussianDP(1, 0.01).delta_at(0)
    0.0038292492254802623
    """

    mu: Positive
    rate: Rate

    def __repr__(self) -> str:
        return f"SampledGaussianDP({spell(self.mu)}, {spell(self.rate)})"

    @property
    def of_all(self) -> "gaussian.GaussianDP":
        """The same mechanism on all units: a sample loses no more, by joint convexity."""
        return gaussian.GaussianDP(self.mu)

    def _epsilon_bounds(self, delta: Fraction) -> Interval | None:
        """Where the curve falls to delta."""
        if delta == 1:
            return precision(DIGITS)(0)
        return None if delta == 0 else sampled_epsilon(self.mu, self.rate, delta)

    def _delta_bounds(self, epsilon: Fraction) -> Interval:
        """The larger of the two hockey sticks, of adding and of removing a unit."""
        return certified_delta(lambda p: sampled_delta(self.mu, self.rate, epsilon, p))

    def group(self, size: int) -> Loss:
        """Itself for one unit; for more, no bound in this measure."""
        units = whole(size, 0, "size")
        if units == 0:
            return pure.PureDP(0)
        if units == 1:
            return self
        raise NotCovered(
            f"{self!r} has no group loss of its own: of {units} units, any number may be in the sample; take that of "
            "as_approx(delta)"
        )

    @property
    def needs_finite_communication(self) -> bool:
        """As every measure that is a pair of distributions."""
        return True

    def added_sampled_gaussian(self) -> tuple[Fraction, Fraction]:
        """Mu and the rate."""
        return self.mu, self.rate

    def _follows_from(self, loss: Loss) -> bool:
        step = loss.added_sampled_gaussian()
        return step is not None and step[0] <= self.mu and step[1] <= self.rate
