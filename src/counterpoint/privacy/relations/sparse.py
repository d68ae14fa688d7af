"""Few children of a composition receive anything that differs: what parallel composition is about.

See Henzinger et al. 2024, Def 5.1, 5.12, 5.13.

>>> from counterpoint.privacy.messages import Ask, To
>>> from counterpoint.privacy.relations import every_step
>>> one, other = (Ask(To("CA"), 0), Ask(To("CA"), 1)), (Ask(To("NY"), 0), Ask(To("NY"), 1))
>>> k_sparse(1, every_step()).valid([one, one]), k_sparse(1, every_step()).valid([one, other])
(True, False)
"""

from counterpoint.encoding import Value
from counterpoint.numbers.parameters import PositiveInt
from counterpoint.privacy.messages import Ask, Gap, Message, To, Update
from counterpoint.privacy.relations.relation import Pair, Progress, Relation
from counterpoint.privacy.relations.steps import Steps


class Sparse(Relation, Value, frozen=True):
    """At most `k` children of a composition receive anything that differs, each a sequence valid in `inner`.

    With `first_pair`, a child is affected or not by its first pair (first-pair consistent; Henzinger et al. 2024, Def
    5.12, 5.13): one whose first pair is identical must get identical pairs for ever. That is enforced on the
    messages; no code is inspected. What is not addressed to a child must not differ.
    """

    k: PositiveInt
    inner: Relation
    first_pair: bool = False

    @property
    def in_words(self) -> str:
        """How many children are affected, and how.

        >>> Sparse(2, Steps(updates=0)).in_words
        'that differ for at most 2 children, each of which sees neighbours that differ in any asks'
        """
        return f"that differ for at most {self.k} children, each of which sees neighbours {self.inner.in_words}"

    @property
    def decided(self) -> bool:
        """Whether a child is affected is settled before its first answer: by its first pair."""
        return self.first_pair

    @property
    def symmetric(self) -> bool:
        """As symmetric as what each child sees."""
        return self.inner.symmetric

    @property
    def hereditary(self) -> bool:
        """If the inner relation is, unless first pairs decide: without its first pair, a child may begin otherwise.

        (Never closed: a postprocessor may send what is for one child to another, or to several.)
        """
        return self.inner.hereditary and not self.first_pair

    @property
    def instead(self) -> str:
        """A postprocessor inside the composition cannot reach another child."""
        return "launch postprocess(..., child) as a child of the composition, where it cannot reach another one"

    @property
    def per_child(self) -> Relation:
        """Each child sees the inner relation."""
        return self.inner

    def begin(self) -> Progress:
        """The progress of children without messages, and (child, (affected, its own progress)) of the others.

        The others come in the order of their first message. Updates go to all children, contacted or not.
        """
        return (self.inner.begin(), ())

    def _advance(self, progress: Progress, left: Message, right: Message, distance: Gap) -> Progress:
        if isinstance(left, Ask) and isinstance(left.public, To):
            return self._addressed(progress, left.public.child, (left, right), distance)
        if distance.l1 > 0:
            return None
        return self._broadcast(progress, left) if isinstance(left, Update) else progress

    def _addressed(self, progress: Progress, child: int | str, pair: Pair, distance: Gap) -> Progress:
        """After an ask for one child."""
        untouched, contacted = progress
        children = dict(contacted)
        known = children.get(child)
        affected, inner = known or (False, untouched)
        inner = self.inner.check(inner, *pair)
        if distance.l1 > 0 and not affected:
            frozen = self.first_pair and known is not None
            room = sum(1 for hit, _ in children.values() if hit) < self.k
            if frozen or not room:
                return None
            affected = True
        children[child] = (affected, inner)
        return None if inner is None else (untouched, tuple(children.items()))

    def _broadcast(self, progress: Progress, update: Update) -> Progress:
        """After an update, the same in both worlds: every child may have seen it, and the inner relation may care."""
        untouched, contacted = progress
        after = self.inner.check(untouched, update, update)
        children = [(child, (hit, self.inner.check(inner, update, update))) for child, (hit, inner) in contacted]
        valid = after is not None and all(inner is not None for _, (_, inner) in children)
        return (after, tuple(children)) if valid else None

    def within(self, other: Relation) -> bool:
        """Fewer children, a smaller inner family, and consistency kept; or any limits at all dropped."""
        if isinstance(other, Sparse):
            consistent = self.first_pair or not other.first_pair
            return self.k <= other.k and consistent and self.inner.within(other.inner)
        unlimited = isinstance(other, Steps) and other.asks is other.updates is other.total is None
        return unlimited and self.inner.within(other)


def k_sparse(k: int, inner: Relation) -> Sparse:
    """At most k children receive anything different (Henzinger et al. 2024, Def 5.1).

    >>> from counterpoint.privacy.relations import every_step
    >>> pair = Ask(To("CA"), 0), Ask(To("CA"), 1)
    >>> k_sparse(1, every_step()).valid([pair, pair]), k_sparse(1, every_step()).per_child == every_step()
    (True, True)
    """
    return Sparse(k, inner)


def first_pair_consistent(k: int, inner: Relation) -> Sparse:
    """k-sparse, and a child's first pair decides for good whether it is affected.

    See Henzinger et al. 2024, Def 5.12, 5.13.

    >>> from counterpoint.privacy.relations import every_step
    >>> same, other = (Ask(To(0), 1), Ask(To(0), 1)), (Ask(To(0), 1), Ask(To(0), 2))
    >>> first_pair_consistent(1, every_step()).valid([same, other]), k_sparse(1, every_step()).valid([same, other])
    (False, True)
    """
    return Sparse(k, inner, first_pair=True)
