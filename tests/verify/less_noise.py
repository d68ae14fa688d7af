"""Coins that give any mechanism too little noise: what an audit must notice."""

from fractions import Fraction


class LessNoise:
    """The coins given, with every spread divided by `times` and every chance of telling all multiplied by it.

    That is: scales of Laplace and geometric noise, standard deviations of Gaussian noise, and how far a randomized
    response or an exponential choice is from certain. A plain chance, which is one of exposing something, grows.
    """

    def __init__(self, coins, times=2):
        self._coins = coins
        self._times = times

    def bernoulli(self, p, size=None):
        return self._coins.bernoulli(min(Fraction(1), self._times * Fraction(p)), size)

    def logistic(self, epsilon):
        return self._coins.logistic(self._times * Fraction(epsilon))

    def integer(self, n, size=None):
        return self._coins.integer(n, size)

    def discrete_laplace(self, scale, size=None):
        return self._coins.discrete_laplace(Fraction(scale) / self._times, size)

    def discrete_gaussian(self, sigma2, size=None):
        return self._coins.discrete_gaussian(Fraction(sigma2) / self._times**2, size)

    def rounded_normal(self, sigma2, size=None):
        return self._coins.rounded_normal(Fraction(sigma2) / self._times**2, size)

    def geometric(self, scale, size=None):
        return self._coins.geometric(Fraction(scale) / self._times, size)

    def choose(self, lags):
        return self._coins.choose([self._times * Fraction(lag) for lag in lags])

    def call(self, experiment, *args):
        return experiment(*args, self)
