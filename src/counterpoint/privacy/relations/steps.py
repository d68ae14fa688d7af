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
        limits = ((asks, other.asks), (updates, other.updates), (total, other.total))
        sizes = ((self.bound, other.bound), (self.squared, other.squared)) if updates != 0 else ()
        return all(at_most(here, there, endless=True) for here, there in (*limits, *sizes))


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
    known = [limit for limit in (left, right) if limit is not None]
    return min(known) if known else None


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
