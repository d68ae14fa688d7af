"""Relations: which pairs of message sequences are neighbours (Henzinger et al. 2024, Def 3.3).

A relation is an automaton over pairs of messages. `begin()` is its progress before the first pair, `check` the progress
after one more pair, or None: then no longer sequence is valid (the verifier of Henzinger et al. 2024, Def 3.5
evaluates f on every prefix and halts for good). Every relation here is reflexive (errata, Henzinger E11: "differ in one
step" means at most one). `within` says whether one family is contained in another (Henzinger et al. 2024, Obs 8.9); how
far a single ask may move is checked ask by ask, by the mechanism that accepts it. `symmetric` says whether swapping the
two worlds keeps every sequence valid, which Henzinger et al. 2024, Thm 5.4 needs (errata, Henzinger E1).

A claim covers the sequences that reach its mechanism. Two declarations say when it still holds for a party in front of
the mechanism that does not forward messages one to one. `closed`: a postprocessor may repeat asks, leave them out and
change their public parts (Haney et al. 2023, Thm 2.17; Henzinger et al. 2024, Lemma 2.16). `hereditary`: a guard or a
composition may leave messages out. Both are False unless a relation says otherwise.

>>> from counterpoint.mechanisms import Ask
>>> from counterpoint.privacy.relations import every_step
>>> relation = every_step()
>>> relation.check(relation.begin(), Ask(private=5), Ask(private=9)) is None  # an ask moves by its sensitivity, 1
True
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, NoReturn, TypeAlias

from counterpoint.encoding import Tagged, Value
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.numbers import format_number
from counterpoint.privacy.messages import Gap, Message, gap

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
        """Whether leaving out messages by public facts keeps every valid sequence valid.

        What stands before a mechanism and refuses messages needs that: a guard (Henzinger et al. 2024, Def 8.5), or a
        composition, whose child does not see what it does not accept, what came before its launch and what is for other
        children. So any asks are left out, all messages before some message, and all updates of some shapes: the shape
        is all that is public about an update.
        """
        return False

    @property
    def in_words(self) -> str:
        """How neighbours may differ, as a certificate says it: the end of "for neighbours ..."."""
        return f"in {self!r}"

    @property
    def instead(self) -> str:
        """What to do instead where a closed relation is needed and this one is not: the end of an error message."""
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


class Predicate(Relation):
    """Any predicate on sequences of pairs, asked at every prefix; identical sequences are always valid.

    It is made reflexive, contains itself and nothing else that is known, and cannot be stored. Say whether it is
    symmetric; it is taken not to be.

    For experiments with a relation that no family has.

    >>> from counterpoint.privacy.messages import Ask
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
        """Whether the predicate was declared symmetric."""
        return self._symmetric

    def begin(self) -> Progress:
        """The empty list of pairs."""
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
        """Whether the other is this very predicate."""
        return other is self


class OfSample(Relation, Value, frozen=True):
    """Messages made from a Poisson sample of this `rate`; in `inner`, if the unit that differs is in the sample.

    The sample is drawn once for the mechanism that receives them, and neighbours differ by one unit that is added or
    removed.

    Amplified claims are about these messages (theory, Sampling).

    Such messages have no relation of their own: which of two worlds' messages reach a mechanism depends on a coin that
    neither world shows. So this relation names the rate of the sample and the relation that the messages have if the
    unit that differs is in it. Only sources make such messages; no sequence of messages is in it by itself, and data as
    such are not within it, so that a mechanism with an amplified claim cannot be launched on them.

    >>> from fractions import Fraction
    >>> from counterpoint.privacy.relations.steps import Steps
    >>> sampled = OfSample(Fraction(1, 10), Steps(updates=0))
    >>> Steps(updates=0).within(sampled), sampled.within(OfSample(Fraction(1, 5), Steps()))
    (False, True)
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
            f"by a unit that is added or removed, of which a secret sample of rate {format_number(self.rate)} is seen, "
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
