"""Few children of a composition receive anything that differs (Henzinger et al. 2024, Def 5.1, 5.12, 5.13).

>>> from counterpoint.privacy.messages import Ask, ToChild
>>> from counterpoint.privacy.relations import every_step
>>> one, other = (Ask(ToChild("CA"), 0), Ask(ToChild("CA"), 1)), (Ask(ToChild("NY"), 0), Ask(ToChild("NY"), 1))
>>> k_sparse(1, every_step()).valid([one, one]), k_sparse(1, every_step()).valid([one, other])
(True, False)
"""

from collections.abc import Iterable

from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.numbers.parameters import PositiveInt
from counterpoint.privacy.messages import Ask, Gap, Message, ToChild, Update, gap
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
        if isinstance(left, Ask) and isinstance(left.public, ToChild):
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
    >>> pair = Ask(ToChild("CA"), 0), Ask(ToChild("CA"), 1)
    >>> k_sparse(1, every_step()).valid([pair, pair]), k_sparse(1, every_step()).per_child == every_step()
    (True, True)
    """
    return Sparse(k, inner)


def first_pair_consistent(k: int, inner: Relation) -> Sparse:
    """k-sparse, and a child's first pair decides for good whether it is affected.

    See Henzinger et al. 2024, Def 5.12, 5.13.

    >>> from counterpoint.privacy.relations import every_step
    >>> same, other = (Ask(ToChild(0), 1), Ask(ToChild(0), 1)), (Ask(ToChild(0), 1), Ask(ToChild(0), 2))
    >>> first_pair_consistent(1, every_step()).valid([same, other]), k_sparse(1, every_step()).valid([same, other])
    (False, True)
    """
    return Sparse(k, inner, first_pair=True)


class Static(Relation, Value, frozen=True):
    """At most `k` children receive anything that differs, each a sequence in `inner`; which ones was fixed before.

    A claim under it holds for every set of at most k children that is fixed before the first message: `affected` is
    one such set, and without it a whole sequence can be checked, but no game played.

    See Henzinger et al. 2024, Cor 5.15, 13.7, 14.9.

    Which parts of a table one unit is in is a fact about the data, and no message says it: a part that it reaches may
    answer an ask about which neighbours agree first, and one about which they differ later. First-pair consistent
    sequences (`Sparse`) exclude just that. An adversary chooses messages as the game goes on, but not which children
    they reach. So a game is played once for each set of children, named before it begins.

    >>> from counterpoint.privacy.messages import Ask, ToChild
    >>> from counterpoint.privacy.relations import every_step, first_pair_consistent
    >>> same, other = (Ask(ToChild("CA"), 3), Ask(ToChild("CA"), 3)), (Ask(ToChild("CA"), 3), Ask(ToChild("CA"), 4))
    >>> parts = static_parts(1, every_step())
    >>> parts.valid([same, other]), first_pair_consistent(1, every_step()).valid([same, other])
    (True, False)
    >>> parts.reaching("CA").valid([other]), parts.reaching("NY").valid([other])
    (True, False)
    """

    k: PositiveInt
    inner: Relation
    affected: tuple[int | str, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse a set of more than k children."""
        if self.affected is not None and len(set(self.affected)) > self.k:
            raise InvalidParameter(f"at most k = {self.k} children are affected, not {len(set(self.affected))}")

    def reaching(self, *children: int | str) -> "Static":
        """The sequences in which nothing differs but what these children receive."""
        return Static(self.k, self.inner, tuple(dict.fromkeys(children)))

    @property
    def in_words(self) -> str:
        """How many children are affected, and how.

        >>> Static(2, Steps(updates=0)).in_words
        'that differ for at most 2 children fixed before, each of which sees neighbours that differ in any asks'
        """
        seen = f"each of which sees neighbours {self.inner.in_words}"
        return f"that differ for at most {self.k} children fixed before, {seen}"

    @property
    def decided(self) -> bool:
        """Whether a child is affected is settled before its first answer."""
        return True

    @property
    def symmetric(self) -> bool:
        """As symmetric as what each child sees."""
        return self.inner.symmetric

    @property
    def hereditary(self) -> bool:
        """If the inner relation is: no message decides which children are affected.

        (Never closed: a postprocessor may send what is for one child to another, or to several.)
        """
        return self.inner.hereditary

    @property
    def instead(self) -> str:
        """A postprocessor inside the composition cannot reach another child."""
        return "launch postprocess(..., child) as a child of the composition, where it cannot reach another one"

    @property
    def per_child(self) -> Relation:
        """Each child sees the inner relation."""
        return self.inner

    def valid(self, pairs: Iterable[Pair]) -> bool:
        """Whether a whole sequence of pairs is in this relation, for the children that it reaches."""
        if self.affected is not None:
            return super().valid(pairs)
        given = list(pairs)
        reached = {child for left, right in given if (child := _reached(left, right)) is not None}
        return len(reached) <= self.k and self.reaching(*reached).valid(given)

    def begin(self) -> Progress:
        """As in `k_sparse`, for the children that are affected."""
        return self._sparse.begin()

    def _advance(self, progress: Progress, left: Message, right: Message, distance: Gap) -> Progress:
        reached = _reached(left, right)
        if reached is not None and reached not in (self.affected or ()):
            return None
        return self._sparse.check(progress, left, right)

    @property
    def _sparse(self) -> Sparse:
        if self.affected is None:
            raise NotCovered(
                f"{self!r} is about children that were fixed before the first message, so name them to play a game, as "
                "in relation.reaching(0, 2), and play it for each set of at most "
                f"{self.k}"
            )
        return Sparse(self.k, self.inner)

    def within(self, other: Relation) -> bool:
        """Fewer children, or the same ones, and a smaller inner family; or children chosen on the way."""
        if isinstance(other, Static):
            same = other.affected is None or (self.affected is not None and set(self.affected) <= set(other.affected))
            return self.k <= other.k and same and self.inner.within(other.inner)
        if isinstance(other, Sparse):
            return not other.first_pair and self.k <= other.k and self.inner.within(other.inner)
        unlimited = isinstance(other, Steps) and other.asks is other.updates is other.total is None
        return unlimited and self.inner.within(other)


def static_parts(k: int, inner: Relation) -> Static:
    """At most k children receive anything different, and which ones was fixed before the first message.

    >>> from counterpoint.privacy.relations import every_step
    >>> static_parts(2, every_step()).reaching("CA", "NY").k
    2
    """
    return Static(k, inner)


def _reached(left: Message, right: Message) -> int | str | None:
    """The child that an ask is for, if what it receives differs."""
    distance = gap(left, right)
    differs = distance is not None and distance.l1 > 0
    return left.public.child if differs and isinstance(left, Ask) and isinstance(left.public, ToChild) else None
