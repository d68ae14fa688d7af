"""A bounded number of messages differ: event level, a user with a capped number of events, queries on one table.

See Henzinger et al. 2024, sec. 3.2, Def 7.2.

>>> one_step().within(up_to_steps(3)), up_to_steps(3).within(one_step())
(True, False)
"""

from typing import Annotated

from msgspec.structs import force_setattr

from counterpoint.encoding import Value
from counterpoint.numbers.parameters import NonNegativeInt, PositiveInt
from counterpoint.privacy.messages import Ask, Gap, Message
from counterpoint.privacy.relations.relation import Progress, Relation
from counterpoint.privacy.secret import Secret, reveal


class Steps(Relation, Value, frozen=True):
    """At most `asks` asks, `updates` updates and `total` messages in all differ; None: any number.

    A differing ask moves by at most its own sensitivity. An update declares none: it moves by at most `bound` in L1
    and `squared` in squared L2, or anywhere if there is no bound (so a claim under `Steps()` says something about
    updates only if the mechanism takes none).
    """

    asks: Annotated[NonNegativeInt, "the number of asks"] | None = None
    updates: Annotated[NonNegativeInt, "the number of updates"] | None = None
    total: Annotated[NonNegativeInt, "the number of messages"] | None = None
    bound: Annotated[PositiveInt, "the bound"] | None = None
    squared: int | None = None

    def __post_init__(self) -> None:
        """Derive the squared bound where only the bound is given."""
        if self.bound is not None:
            most = self.bound * self.bound
            force_setattr(self, "squared", most if self.squared is None else min(most, self.squared))

    def __repr__(self) -> str:
        names = ("asks", "updates", "total", "bound", "squared")
        derived = self.bound is not None and self.squared == self.bound * self.bound
        given = [(name, getattr(self, name)) for name in names if not (derived and name == "squared")]
        shown = ", ".join(f"{name}={value}" for name, value in given if value is not None)
        return f"Steps({shown})"

    @property
    def in_words(self) -> str:
        """Which messages may differ.

        >>> Steps(updates=0).in_words
        'that differ in any asks'
        >>> Steps(asks=0, updates=3, bound=5).in_words
        'that differ in at most 3 updates (each by at most 5)'
        >>> Steps(total=1).in_words
        'that differ in at most 1 message'
        """
        if self.total and (self.asks, self.updates, self.bound) == (None, None, None):
            return f"that differ in at most {_counted(self.total, 'message')}"
        asks, updates = _some(self.asks, "ask"), _some(self.updates, "update")
        if updates and self.bound is not None:
            updates += f" (each by at most {self.bound})"
        differ = " and ".join(filter(None, (asks, updates)))
        most = "" if self.total is None else f", at most {_counted(self.total, 'message')} in all"
        return f"that differ in {differ}{most}" if differ else "that do not differ"

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
        """Declare that asks are public, or claim fewer neighbours."""
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
        within_limits = at_most(asks, self.asks) and at_most(updates, self.updates)
        fits = within_limits and at_most(asks + updates, self.total) and self._small(left, distance)
        return (asks, updates) if fits else None

    def _small(self, message: Message, distance: Gap) -> bool:
        if isinstance(message, Ask):
            near = distance.l1 <= message.sensitivity and at_most(distance.squared, message.squared)
            return near and at_most(distance.each, message.each)
        return at_most(distance.l1, self.bound) and at_most(distance.squared, self.squared)

    def within(self, other: Relation) -> bool:
        """Containment of families: every limit, and the size of updates; asks are checked one by one."""
        asks, updates = _least(self.asks, self.total), _least(self.updates, self.total)
        if asks == 0 and updates == 0:
            return True
        if not isinstance(other, Steps):
            return False
        total = _least(self.total, None if asks is None or updates is None else asks + updates)
        return (
            at_most(asks, other.asks, endless=True)
            and at_most(updates, other.updates, endless=True)
            and at_most(total, other.total, endless=True)
            and (updates == 0 or at_most(self.bound, other.bound, endless=True))
            and (updates == 0 or at_most(self.squared, other.squared, endless=True))
        )


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


def _least(left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return right if left is None else left
    return min(left, right)


def at_most(value: int | None, limit: int | None, *, endless: bool = False) -> bool:
    """Whether a value keeps a limit (None: no limit); with `endless`, a value of None is itself without end."""
    if limit is None:
        return True
    return not endless if value is None else value <= limit


def _some(most: int | None, what: str) -> str:
    """Any of them, at most `most`, or, as an empty text, none."""
    if most is None:
        return f"any {what}s"
    return f"at most {_counted(most, what)}" if most else ""


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


class FirstMessage(Relation, Value, frozen=True):
    """Only the first message may differ: an interactive mechanism on fixed data (Henzinger et al. 2024, sec. 3.1).

    >>> from counterpoint.privacy.messages import Ask
    >>> FirstMessage().valid([(Ask("q"), Ask("q")), (Ask(private=0), Ask(private=1))])
    False
    >>> FirstMessage().valid([(Ask(private=0), Ask(private=1)), (Ask("q"), Ask("q"))])
    True
    """

    bound: int | None = None

    @property
    def in_words(self) -> str:
        """Only the first message differs."""
        return "that differ in the first message"

    @property
    def hereditary(self) -> bool:
        """A later message, which may not differ, may become the first."""
        return True

    def begin(self) -> Progress:
        """The progress before the first message."""
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
            return at_most(self.bound, other.bound, endless=True)
        return Steps(total=1, bound=self.bound).within(other)


class OneWay(Relation, Value, frozen=True):
    """Sequences in `inner` in which all integers of asks that say `one_way` move the same way, up or down.

    So do counts when one unit is added or removed. It is what halves the noise of selection: `monotone=True`.

    >>> from counterpoint.privacy.messages import Ask
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
        """Dropped messages do not differ, so they move neither way."""
        return self.inner.hereditary

    @property
    def instead(self) -> str:
        """What the inner relation would need."""
        return self.inner.instead

    @property
    def in_words(self) -> str:
        """As the inner relation, and all changes move the same way.

        >>> OneWay(Steps(updates=0)).in_words
        'that differ in any asks, all in the same direction'
        """
        return f"{self.inner.in_words}, all in the same direction"

    def begin(self) -> Progress:
        """The inner progress, and 0 as nothing has moved; then 1 if everything moves up, -1 if down."""
        return (self.inner.begin(), 0)

    def _advance(self, progress: Progress, left: Message, right: Message, distance: Gap) -> Progress:
        before, way = progress
        inner = self.inner.check(before, left, right)
        if inner is not None and distance.l1 > 0 and isinstance(left, Ask) and left.one_way:
            move = _way(left.private, right.private)
            inner, way = (inner, move) if way in (0, move) and move else (None, way)
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


class MinSeparation(Relation, Value, frozen=True):
    """Sequences in `inner` in which an update that differs is the `apart`th after the last that did, or a later one.

    Only updates of its own shape count: a child of a composition receives all updates of the shapes that it accepts,
    and those of other shapes would bring it no distance. Asks between them do not matter.

    A phone that reports at most once an hour, or a person who visits at most once a week, is such a unit. Noise that is
    correlated over time can be smaller for it (theory, Counters).

    >>> MinSeparation(Steps(updates=8, bound=1), apart=100).within(MinSeparation(Steps(updates=9, bound=1), apart=60))
    True
    >>> MinSeparation(Steps(updates=8, bound=1), apart=100).within(Steps(updates=8, bound=1))
    True

    >>> from counterpoint.privacy.messages import Update
    >>> same, other = (Update(1), Update(1)), (Update(0), Update(1))
    >>> twice = MinSeparation(Steps(updates=2, bound=1), apart=3)
    >>> twice.valid([other, same, same, other]), twice.valid([other, same, other])
    (True, False)
    """

    inner: Steps
    apart: Annotated[PositiveInt, "the distance"]

    @property
    def in_words(self) -> str:
        """As the inner relation, and how far from each other.

        >>> MinSeparation(Steps(asks=0, updates=3, bound=5), apart=100).in_words
        'that differ in at most 3 updates (each by at most 5), each at least 100 updates after the one before'
        """
        return f"{self.inner.in_words}, each at least {self.apart} updates after the one before"

    @property
    def closed(self) -> bool:
        """If the inner relation is: a postprocessor hands on every update once, in its place."""
        return self.inner.closed

    @property
    def hereditary(self) -> bool:
        """What is left out by public facts brings no two updates of one shape nearer to each other."""
        return self.inner.hereditary

    @property
    def instead(self) -> str:
        """What the inner relation would need."""
        return self.inner.instead

    def begin(self) -> Progress:
        """The inner progress, and (shape, updates that must come before the next that differs) where some must."""
        return (self.inner.begin(), ())

    def _advance(self, progress: Progress, left: Message, right: Message, distance: Gap) -> Progress:
        before, waiting = progress
        inner = self.inner.check(before, left, right)
        if inner is None or isinstance(left, Ask):
            return None if inner is None else (inner, waiting)
        to_wait, shape = dict(waiting), "a tally" if left.private.keyed else left.private.width
        left_to_wait = to_wait.pop(shape, 0)
        if distance.l1 > 0:
            if left_to_wait:
                return None
            left_to_wait = self.apart
        if left_to_wait > 1:
            to_wait[shape] = left_to_wait - 1
        return (inner, tuple(to_wait.items()))

    def within(self, other: Relation) -> bool:
        """Fewer and smaller differences, and at least as far from each other; or at any distance."""
        if isinstance(other, MinSeparation):
            return self.apart >= other.apart and self.inner.within(other.inner)
        return self.inner.within(other)
