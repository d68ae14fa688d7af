"""Relations: which pairs of message sequences are neighbours; the verification functions f of Henzinger et al. 2024,
Def 3.3.

A relation is an automaton over pairs of messages. `begin()` is its progress before the first pair, `check` the progress
after one more pair, or None: from then on nothing is valid any more (the verifier of Henzinger et al. 2024, Def 3.5
evaluates f on every prefix and halts for good). Every relation here is reflexive (errata, Henzinger E11: "differ in one
step" means at most one). `within` says whether one family is contained in another (Henzinger et al. 2024, Obs 8.9); how
far a single ask may move is checked ask by ask, by the mechanism that accepts it. `symmetric` says whether swapping the
two worlds keeps every sequence valid, which Henzinger et al. 2024, Thm 5.4 needs (errata, Henzinger E1).

A claim speaks of the sequences that reach its mechanism. Two declarations say when it may be passed on to a party that
stands before the mechanism and does not hand on what it receives one to one. `closed`: a postprocessor may repeat asks,
leave them out and change their public parts (Haney et al. 2023, Thm 2.17; Henzinger et al. 2024, Lemma 2.16).
`hereditary`: a guard or a composition may leave messages out. Both are False unless a relation says otherwise.

>>> from counterpoint.privacy.messages import Update
>>> event_level = one_step()
>>> pairs = [(0, 0), (1, 1), (0, 1), (1, 1)]
>>> event_level.valid([(Update(a), Update(b)) for a, b in pairs])
True
>>> event_level.valid([(Update(a), Update(b)) for a, b in [*pairs, (1, 0)]])
False
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from msgspec.structs import force_setattr

from counterpoint.encoding import Tagged, Value
from counterpoint.errors import InvalidParameter
from counterpoint.numbers.exact import whole
from counterpoint.privacy.messages import Ask, Gap, Message, To, Update, gap
from counterpoint.privacy.secret import Secret, reveal

Progress: TypeAlias = Any
"""What a relation remembers of a sequence: plain data of its own kind; None once the sequence is invalid."""

Pair: TypeAlias = tuple[Message, Message]


class Relation(Tagged):
    """Which pairs of message sequences are neighbours."""

    __slots__ = ()

    @property
    def symmetric(self) -> bool:
        """Whether swapping the two worlds keeps every valid sequence valid."""
        return True

    @property
    def closed(self) -> bool:
        """Whether postprocessing keeps every valid sequence valid, so that a claim under this relation outlives it.

        In the place of each ask a postprocessor sends any finite list of asks, perhaps an empty one, each with the
        private part and the sensitivities of that ask and a public part of the postprocessor's choice; updates pass
        once, in place. Haney et al. 2023, Thm 2.17 and Henzinger et al. 2024, Lemma 2.16 say that the view behind a
        postprocessor is a function of its coins and of a view of the mechanism: that is a view of this relation's game
        if and only if such sequences are valid. So a relation that counts asks or looks at public parts (whom an ask is
        for, what it asks) is not closed.
        """
        return False

    @property
    def hereditary(self) -> bool:
        """Whether leaving out messages, asks or updates, keeps every valid sequence valid.

        What stands before a mechanism and refuses messages needs that: a guard (Henzinger et al. 2024, Def 8.5), or a
        composition, whose child does not see what it does not accept, what came before its launch and what is for other
        children.
        """
        return False

    @property
    def instead(self) -> str:
        """What to do where a closed relation is needed and this is none: the end of an error message."""
        return "launch the mechanism as it is and compute on the answers it gives"

    @property
    def per_child(self) -> "Relation":
        """What one child of a composition sees of sequences in this relation, if this relation is hereditary."""
        return self

    def check(self, progress: Progress, left: Message, right: Message) -> Progress:
        """The progress after one more pair; None, for good, from the first invalid pair on."""
        distance = None if progress is None else gap(left, right)
        return None if distance is None else self._advance(progress, left, right, distance)

    def valid(self, pairs: Iterable[Pair]) -> bool:
        """Whether a whole sequence of pairs is in this relation, prefix by prefix."""
        progress = self.begin()
        for left, right in pairs:
            progress = self.check(progress, left, right)
        return progress is not None

    @abstractmethod
    def begin(self) -> Progress:
        """The progress before the first pair."""

    @abstractmethod
    def _advance(self, progress: Progress, left: Message, right: Message, distance: Gap) -> Progress:
        """The progress after a pair that agrees in public and is this far apart in private."""

    @abstractmethod
    def within(self, other: "Relation") -> bool:
        """Whether every sequence in this family is in the other one (False where that is not known)."""


class Steps(Relation, Value, frozen=True):
    """At most so many asks, so many updates and so many messages in `total` differ; None: any number.

    A differing ask moves by at most its own sensitivity. An update declares none: it moves by at most `bound` in L1
    and `squared` in squared L2, or anywhere if there is no bound (so a claim under `Steps()` says something about
    updates only if the mechanism takes none).
    """

    asks: int | None = None
    updates: int | None = None
    total: int | None = None
    bound: int | None = None
    squared: int | None = None

    def __post_init__(self) -> None:
        """Check the limits, and derive the squared bound where only the bound is given."""
        for name in ("asks", "updates", "total"):
            if getattr(self, name) is not None:
                whole(getattr(self, name), 0, f"the number of {name}")
        if self.bound is not None:
            whole(self.bound, 1, "the bound")
            most = self.bound * self.bound
            force_setattr(self, "squared", most if self.squared is None else min(most, self.squared))

    def __repr__(self) -> str:
        names = ("asks", "updates", "total", "bound", "squared")
        derived = self.bound is not None and self.squared == self.bound * self.bound
        given = [(name, getattr(self, name)) for name in names if not (derived and name == "squared")]
        said = ", ".join(f"{name}={value}" for name, value in given if value is not None)
        return f"Steps({said})"

    @property
    def closed(self) -> bool:
        """Where differing asks are not counted, or there are none: repeating an ask then adds nothing to a count."""
        return _least(self.asks, self.total) in (None, 0)

    @property
    def hereditary(self) -> bool:
        """What is left out is not counted."""
        return True

    @property
    def instead(self) -> str:
        """Say that asks are public, or speak of fewer neighbours."""
        updates = _least(self.updates, self.total)
        smaller = Steps(asks=0, updates=updates, bound=self.bound, squared=self.squared)
        return (
            "if its asks carry no private part, let the mechanism declare asks_are_public; if only updates need to "
            f"differ, let it claim {smaller!r}, which is closed; else {super().instead}"
        )

    def begin(self) -> Progress:
        """No ask and no update has differed yet."""
        return (0, 0)

    def _advance(self, progress: Progress, left: Message, right: Message, distance: Gap) -> Progress:
        if distance.l1 == 0:
            return progress
        asks, updates = progress
        # what has no limit need not be counted, and then sequences that may go on alike are at the same progress
        if isinstance(left, Ask):
            asks += self.asks is not None or self.total is not None
        else:
            updates += self.updates is not None or self.total is not None
        within_limits = _at_most(asks, self.asks) and _at_most(updates, self.updates)
        fits = within_limits and _at_most(asks + updates, self.total) and self._small(left, distance)
        return (asks, updates) if fits else None

    def _small(self, message: Message, distance: Gap) -> bool:
        if isinstance(message, Ask):
            near = distance.l1 <= message.sensitivity and _at_most(distance.squared, message.squared)
            return near and _at_most(distance.each, message.each)
        return _at_most(distance.l1, self.bound) and _at_most(distance.squared, self.squared)

    def within(self, other: Relation) -> bool:
        """Containment of families: every limit, and the size of updates; asks are checked one by one."""
        asks, updates = _least(self.asks, self.total), _least(self.updates, self.total)
        if asks == 0 and updates == 0:
            return True
        if not isinstance(other, Steps):
            return False
        total = _least(self.total, None if asks is None or updates is None else asks + updates)
        limits = ((asks, other.asks), (updates, other.updates), (total, other.total))
        sizes = ((self.bound, other.bound), (self.squared, other.squared)) if updates != 0 else ()
        return all(_at_most(here, there, endless=True) for here, there in (*limits, *sizes))


def identical() -> Steps:
    """Nothing may differ (what an unaffected mechanism receives).

    >>> identical().valid([(Ask(private=1), Ask(private=1))]), identical().valid([(Ask(private=1), Ask(private=2))])
    (True, False)
    """
    return Steps(total=0)


def one_step(bound: int = 1) -> Steps:
    """At most one message differs, an update by at most `bound`: event level.

    See Henzinger et al. 2024, sec. 3.2, Def 7.2, at most one.

    >>> one_step().within(up_to_steps(3)), up_to_steps(3).within(one_step())
    (True, False)
    """
    return up_to_steps(1, bound)


def up_to_steps(steps: int, bound: int = 1) -> Steps:
    """At most `steps` messages differ, an update by at most `bound`: a user with a capped number of events.

    >>> from counterpoint.privacy.messages import Update
    >>> up_to_steps(2).valid([(Update(0), Update(1)), (Update(1), Update(0))])
    True
    """
    return Steps(total=steps, bound=bound)


def every_step(bound: int | None = None) -> Steps:
    """Every message may differ, an ask by at most its own sensitivity: queries on one table and its neighbour.

    >>> every_step().valid([(Ask(private=5, sensitivity=2), Ask(private=7, sensitivity=2))] * 9)
    True
    """
    return Steps(bound=bound)


class FirstMessage(Relation, Value, frozen=True):
    """Only the first message may differ: an interactive mechanism on a fixed dataset (Henzinger et al. 2024, sec. 3.1).

    >>> FirstMessage().valid([(Ask(private=0), Ask(private=1)), (Ask("q"), Ask("q"))])
    True
    >>> FirstMessage().valid([(Ask("q"), Ask("q")), (Ask(private=0), Ask(private=1))])
    False
    """

    bound: int | None = None

    @property
    def hereditary(self) -> bool:
        """A later message, which may not differ, may become the first."""
        return True

    def begin(self) -> Progress:
        """Nothing has been said."""
        return "first"

    def _advance(self, progress: Progress, left: Message, right: Message, distance: Gap) -> Progress:
        later = "later"
        if distance.l1 == 0:
            return later
        if progress != "first":
            return None
        return None if every_step(self.bound).check((0, 0), left, right) is None else later

    def within(self, other: Relation) -> bool:
        """A first message is one step."""
        if isinstance(other, FirstMessage):
            return _at_most(self.bound, other.bound, endless=True)
        return Steps(total=1, bound=self.bound).within(other)


class OneWay(Relation, Value, frozen=True):
    """Sequences in `inner` in which all integers of asks that say `one_way` move the same way, up or down.

    So do counts when one unit is added or removed. It is what halves the noise of selection: `monotone=True`.

    >>> up = Ask(private=0, one_way=True), Ask(private=1, one_way=True)
    >>> down = up[1], up[0]
    >>> OneWay().valid([up, up]), OneWay().valid([down, down]), OneWay().valid([up, down])
    (True, True, False)
    >>> OneWay().valid([up, (Ask(private=1), Ask(private=0))])
    True
    """

    inner: Steps = Steps()

    @property
    def closed(self) -> bool:
        """If the inner relation is: an ask that is sent again moves the way it moved."""
        return self.inner.closed

    @property
    def hereditary(self) -> bool:
        """What is left out moves no way."""
        return self.inner.hereditary

    @property
    def instead(self) -> str:
        """What the inner relation would need."""
        return self.inner.instead

    def begin(self) -> Progress:
        """The inner progress, and 0 as nothing has moved; then 1 if everything moves up, -1 if down."""
        return (self.inner.begin(), 0)

    def _advance(self, progress: Progress, left: Message, right: Message, distance: Gap) -> Progress:
        before, way = progress
        inner = self.inner.check(before, left, right)
        if inner is not None and distance.l1 > 0 and isinstance(left, Ask) and left.one_way:
            here = _way(left.private, right.private)
            inner, way = (inner, here) if way in (0, here) and here else (None, way)
        return None if inner is None else (inner, way)

    def within(self, other: Relation) -> bool:
        """Where the inner sequences are, one way or not."""
        return self.inner.within(other.inner if isinstance(other, OneWay) else other)


def _way(left: Secret | None, right: Secret | None) -> int:
    """1 if no integer is smaller on the right and some is larger, -1 the other way round, 0 if they disagree."""
    assert left is not None and right is not None
    change = reveal(right - left)
    steps = change if isinstance(change, tuple) else (change,)
    return 1 if min(steps) >= 0 else -1 if max(steps) <= 0 else 0


class Sparse(Relation, Value, frozen=True):
    """At most `k` children of a composition receive anything that differs, each a sequence valid in `inner`.

    With `first_pair`, a child is affected or not by its first pair (first-pair consistent; Henzinger et al. 2024, Def
    5.12, 5.13): one whose first pair is identical must get identical pairs for ever. That is enforced here, on the
    messages, not inspected in somebody's code. What is not addressed to a child must not differ.
    """

    k: int
    inner: Relation
    first_pair: bool = False

    def __post_init__(self) -> None:
        """Check k."""
        whole(self.k, 1, "k")

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
        """No child has been spoken to: the progress of those, and (child, (affected, its own progress)) of the others.

        The others stand in order of first contact. Updates go to all children, contacted or not.
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

    >>> pair = Ask(To("CA"), 0), Ask(To("CA"), 1)
    >>> k_sparse(1, every_step()).valid([pair, pair]), k_sparse(1, every_step()).per_child == every_step()
    (True, True)
    """
    return Sparse(k, inner)


def first_pair_consistent(k: int, inner: Relation) -> Sparse:
    """k-sparse, and a child's first pair decides for good whether it is affected.

    See Henzinger et al. 2024, Def 5.12, 5.13.

    >>> same, other = (Ask(To(0), 1), Ask(To(0), 1)), (Ask(To(0), 1), Ask(To(0), 2))
    >>> first_pair_consistent(1, every_step()).valid([same, other]), k_sparse(1, every_step()).valid([same, other])
    (False, True)
    """
    return Sparse(k, inner, first_pair=True)


class Predicate(Relation):
    """Any predicate on sequences of pairs, asked at every prefix; identical sequences are always valid.

    It is made reflexive, contains itself and nothing else that is known, and cannot be stored. Say whether it is
    symmetric; it is taken not to be.

    >>> rising = Predicate("only upward", lambda pairs: all(a.sensitivity <= b.sensitivity for a, b in pairs))
    >>> rising.valid([(Ask(private=0), Ask(private=1))]), rising.symmetric
    (True, False)
    """

    __slots__ = ("_holds", "_symmetric", "name")

    def __init__(self, name: str, holds: Callable[[Sequence[Pair]], bool], *, symmetric: bool = False) -> None:
        if not callable(holds):
            raise InvalidParameter("a predicate relation needs a function of the pairs so far")
        self.name = name
        self._holds = holds
        self._symmetric = symmetric

    def __repr__(self) -> str:
        return f"Predicate({self.name!r})"

    @property
    def symmetric(self) -> bool:
        """As declared."""
        return self._symmetric

    def begin(self) -> Progress:
        """No pairs yet."""
        return ()

    def check(self, progress: Progress, left: Message, right: Message) -> Progress:
        """Ask the predicate about the whole prefix; unlike the other relations it may relate differing public parts."""
        if progress is None:
            return None
        pairs = (*progress, (left, right))
        same = all((distance := gap(a, b)) is not None and distance.l1 == 0 for a, b in pairs)
        return pairs if same or self._holds(pairs) else None

    def _advance(self, progress: Progress, left: Message, right: Message, distance: Gap) -> Progress:
        return self.check(progress, left, right)

    def within(self, other: Relation) -> bool:
        """Only in itself."""
        return other is self


def _least(left: int | None, right: int | None) -> int | None:
    known = [limit for limit in (left, right) if limit is not None]
    return min(known) if known else None


def _at_most(value: int | None, limit: int | None, *, endless: bool = False) -> bool:
    """Whether a value keeps a limit (None: no limit); with `endless`, a value of None is itself without end."""
    if limit is None:
        return True
    return not endless if value is None else value <= limit
