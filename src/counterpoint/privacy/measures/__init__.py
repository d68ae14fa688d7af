"""The measures of privacy, one file each: the loss, its order and conversions, and the sum that composes it.

`privacy/loss.py` lists what a measure answers; `privacy/losses.py` has them all in one place.

A new measure is one more file, here or in your own project: a subclass of `Loss` and, if its losses add up, an
`Accumulator`. Total variation, for instance, is (0, distance)-DP, so distances add. Filters, odometers, parallel parts,
sessions and ledgers then take it as it is (tests/privacy/test_own_measure.py has the whole of it):

>>> from counterpoint import ApproxDP, Filter
>>> from counterpoint.encoding import Value
>>> from counterpoint.numbers.parameters import Probability
>>> from counterpoint.privacy.accumulator import Accumulator
>>> from counterpoint.privacy.loss import Loss
>>> class EventDistance(Loss, Value, frozen=True):
...     distance: Probability
...     amounts = property(lambda self: (self.distance,))  # what a budget compares
...     def _epsilon_bounds(self, delta):
...         return ApproxDP(0, self.distance)._epsilon_bounds(delta)
...     def _delta_bounds(self, epsilon):
...         return ApproxDP(0, self.distance)._delta_bounds(epsilon)
...     def group(self, size):
...         return EventDistance(min(1, size * self.distance))
...     @classmethod
...     def odometer(cls):
...         return EventDistances()
>>> class EventDistances(Accumulator, Value, frozen=True):
...     total: EventDistance = EventDistance(0)
...     theorem = "basic composition (Haney et al. 2023, Thm 1.19)"
...     def plus(self, loss, interaction="endless"):
...         if not isinstance(loss, EventDistance):
...             self._not_covered(loss, "EventDistance")
...         return EventDistances(EventDistance(self.total.distance + loss.distance))
>>> rule = Filter(EventDistance(0.3))
>>> rule.fits(rule.start(), EventDistance(0.3)), rule.fits(rule.start(), EventDistance(0.31))
(True, False)
"""
