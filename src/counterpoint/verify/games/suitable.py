"""Suitable sequences: the first k messages create mechanisms, and no later one does.

See Henzinger et al. 2024, Def 4.5, 4.9.

This is the composition of a fixed number of mechanisms: everything else that the relation requires stays the same. As
printed, Def 4.9 lets a further creation pass uncounted (errata, Henzinger E2); this relation does not.

>>> from counterpoint import Ask, Launch, RandomizedResponse, To
>>> from counterpoint.privacy.relations import every_step
>>> create = (Ask(Launch(RandomizedResponse(1))),) * 2
>>> ask = Ask(To(0), 0), Ask(To(0), 1)
>>> relation = CreatedFirst(every_step(), 1)
>>> [relation.valid(pairs) for pairs in ([create, ask, ask], [ask], [create, create], [create, ask, create])]
[True, False, False, False]
"""

from counterpoint.encoding import Value
from counterpoint.mechanisms.composed.concurrent import Launch
from counterpoint.privacy.messages import Ask, Gap, Message
from counterpoint.privacy.relations import Progress, Relation


class CreatedFirst(Relation, Value, frozen=True):
    """Neighbours in `inner` whose first `created` messages are launches, and whose other messages are not."""

    inner: Relation
    created: int

    @property
    def symmetric(self) -> bool:
        """As symmetric as the inner relation: launches are the same in both worlds."""
        return self.inner.symmetric

    @property
    def per_child(self) -> Relation:
        """A child sees no launches."""
        return self.inner.per_child

    def begin(self) -> Progress:
        """Nothing has been created."""
        return (0, self.inner.begin())

    def _advance(self, progress: Progress, left: Message, right: Message, distance: Gap) -> Progress:
        created, inner = progress
        launches = isinstance(left, Ask) and isinstance(left.public, Launch)
        if launches != (created < self.created):
            return None
        inner = self.inner.check(inner, left, right)
        return None if inner is None else (created + launches, inner)

    def within(self, other: Relation) -> bool:
        """Within every relation that contains the inner one, and within the same with a larger inner relation."""
        if isinstance(other, CreatedFirst):
            return self.created == other.created and self.inner.within(other.inner)
        return self.inner.within(other)
