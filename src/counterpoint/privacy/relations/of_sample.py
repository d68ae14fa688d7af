"""Messages that a source makes from a secret Poisson sample of its units: what amplified claims are about.

See theory, Sampling.

Such messages have no relation of their own: which of two worlds' messages reach a mechanism depends on a coin that
neither world shows. So this relation names the rate of the sample and the relation that the messages have if the unit
that differs is in it. Only sources make such messages; no sequence of messages is in it by itself, and data as such
are not within it, so that a mechanism with an amplified claim cannot be launched on them.

>>> from fractions import Fraction
>>> from counterpoint.privacy.relations.steps import Steps
>>> sampled = OfSample(Fraction(1, 10), Steps(updates=0))
>>> Steps(updates=0).within(sampled), sampled.within(OfSample(Fraction(1, 5), Steps()))
(False, True)
"""

from fractions import Fraction
from typing import NoReturn

from counterpoint.encoding import Value
from counterpoint.errors import NotCovered
from counterpoint.numbers import spell
from counterpoint.privacy.messages import Gap, Message
from counterpoint.privacy.relations.relation import Progress, Relation


class OfSample(Relation, Value, frozen=True):
    """Messages made from a Poisson sample of this `rate`; in `inner`, if the unit that differs is in the sample.

    The sample is drawn once for the mechanism that receives them, and neighbours differ by one unit that is added or
    removed.
    """

    rate: Fraction
    inner: Relation

    @property
    def in_words(self) -> str:
        """The sample, and how its messages differ.

        >>> from counterpoint.privacy.relations.steps import Steps
        >>> OfSample(Fraction(1, 10), Steps(updates=0)).in_words
        'by a unit that is added or removed, of which a secret sample of rate 0.1 is seen, that differ in any asks'
        """
        return (
            f"by a unit that is added or removed, of which a secret sample of rate {spell(self.rate)} is seen, "
            f"{self.inner.in_words}"
        )

    @property
    def symmetric(self) -> bool:
        """As symmetric as what is seen if the unit is in the sample."""
        return self.inner.symmetric

    @property
    def closed(self) -> bool:
        """If the inner relation is: a postprocessor does not see the sample."""
        return self.inner.closed

    @property
    def hereditary(self) -> bool:
        """If the inner relation is."""
        return self.inner.hereditary

    @property
    def instead(self) -> str:
        """What the inner relation would need."""
        return self.inner.instead

    @property
    def per_child(self) -> Relation:
        """What a child of a session on one sample sees: the data of the sample, whose neighbours are the inner ones."""
        return self.inner

    def begin(self) -> Progress:
        """No game can be played on messages alone."""
        self._no_game()

    def _advance(self, progress: Progress, left: Message, right: Message, distance: Gap) -> Progress:
        self._no_game()

    def _no_game(self) -> NoReturn:
        raise NotCovered(
            "which units are in a sample is decided where messages are made from data, so no game is played on the "
            "messages of a sampled mechanism: play it unit by unit, as in verify.exact(verify.UnitByUnit(sampled, 2))"
        )

    def within(self, other: Relation) -> bool:
        """A sample of a smaller rate, with a smaller inner family."""
        return isinstance(other, OfSample) and self.rate <= other.rate and self.inner.within(other.inner)
