"""Two worlds on one tape: do neighbouring inputs of a composite give neighbouring sub-inputs?

See Henzinger et al. 2024, Def 6.5, f -> f'.

World 0 runs for real, and what its sub-mechanisms answered goes on a tape. World 1 gets the neighbouring messages and,
from its sub-mechanisms, the answers on the tape. Then both must have done the same things in the same order, with the
same public parts; must have answered and remembered, in public, the same; and what they sent must be neighbours, as
each part declares: in its relation, and in a part that is k-sparse different in at most k of its launches. This finds
what the types cannot show (a value sent doubled, a change that reaches too far), on the examples that it is given.

>>> from counterpoint import Ask
>>> from counterpoint.mechanisms.composed.guess_and_check import GuessAndCheck
>>> worlds = [Ask(10, 12), Ask(10, 500)], [Ask(10, 13), Ask(10, 499)]
>>> two_worlds(GuessAndCheck(epsilon=1, margin=20, wrong=3), *worlds)
Agreement(steps=2, messages=3, reached={'check': 1, 'answer': 1})
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import msgspec

from counterpoint.encoding import encode
from counterpoint.errors import InvalidParameter, NotTotal, RelationMismatch, SecretLeak, TapeMismatch
from counterpoint.mechanisms.composed.composite import Composite, CompositeState, Part, Ran, Sent
from counterpoint.mechanisms.composed.postprocessing import Failed
from counterpoint.mechanisms.mechanism import Answer, Mechanism, accepted
from counterpoint.numbers.exact import whole
from counterpoint.privacy.messages import Message, gap
from counterpoint.privacy.relations import Progress
from counterpoint.privacy.secret import Secret
from counterpoint.randomness.coins import Coins
from counterpoint.randomness.seeded import SeededCoins
from counterpoint.randomness.tape import RecordingCoins, ReplayedCoins


class Agreement(NamedTuple):
    """What was compared: steps, messages to sub-mechanisms, and in each part how many launches a difference reached."""

    steps: int
    messages: int
    reached: dict[str, int]


class Launched:
    """What one launch in a part has received in the two worlds."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.progress: Progress = part.relation.begin()
        self.reached = False

    def receive(self, left: Message, right: Message) -> None:
        """Check one more pair of sub-inputs."""
        distance = gap(left, right)
        if distance is None:
            raise TapeMismatch(f"the two worlds send part {self.part.name!r} messages that differ in public")
        self.progress = self.part.relation.check(self.progress, left, right)
        if self.progress is None:
            raise RelationMismatch(
                f"neighbouring inputs reach part {self.part.name!r} as messages that are not neighbours in "
                f"{self.part.relation!r}, as it declares"
            )
        self.reached = self.reached or distance.l1 > 0


Step: TypeAlias = Callable[[Coins], Ran]
Adversary: TypeAlias = Callable[[tuple[Answer, ...]], tuple[Message, Message]]
"""Makes the next pair of messages, one for each world, out of all answers so far (None for an update)."""


class Comparison:
    """The sub-inputs of the two worlds so far."""

    def __init__(self, composite: Composite) -> None:
        self.parts = {part.name: part for part in composite.structure}
        self.current: dict[tuple[str, int], Launched] = {}
        self.launched: list[Launched] = []
        self.steps = self.messages = 0

    def run(self, zero: Step, one: Step, coins: Coins) -> tuple[Ran, Ran]:
        """Make a step in both worlds, the second on the sub-answers of the first, and compare."""
        recording = RecordingCoins(coins)
        try:
            left = zero(recording)
        except NotTotal:
            raise _not_total() from None
        try:
            right = one(ReplayedCoins(recording.tape, outcomes=True))
        except (SecretLeak, TapeMismatch):
            raise
        except Exception as error:
            raise TapeMismatch("one world breaks where the other does not") from error
        if _failed(left) == NotTotal.__name__:
            raise _not_total()
        self._compare(left, right)
        return left, right

    def _compare(self, left: Ran, right: Ran) -> None:
        if len(left.sent) != len(right.sent):
            raise TapeMismatch("one world goes on talking to its sub-mechanisms where the other has stopped")
        for one, other in zip(left.sent, right.sent, strict=True):
            self._sent(one, other)
        if encode(left.answer) != encode(right.answer):
            raise TapeMismatch("the two worlds answer differently")
        if list(_public(left.state)) != list(_public(right.state)):
            raise TapeMismatch("the two worlds remember different things in public")

    def _sent(self, left: Sent, right: Sent) -> None:
        place = left.part, left.at
        if place != (right.part, right.at) or isinstance(left.what, Mechanism) != isinstance(right.what, Mechanism):
            raise TapeMismatch("the two worlds do not do the same things in the same order")
        if isinstance(left.what, Mechanism) or isinstance(right.what, Mechanism):
            if encode(left.what) != encode(right.what):
                raise TapeMismatch(f"the two worlds launch different mechanisms in part {left.part!r}")
            self.current[place] = Launched(self.parts[left.part])
            self.launched.append(self.current[place])
            return
        self.messages += 1
        self.current[place].receive(left.what, right.what)
        most = self.parts[left.part].sparse
        if most is not None and self.reached(left.part) > most:
            raise RelationMismatch(f"neighbouring inputs reach more than {most} of the launches in part {left.part!r}")

    def reached(self, name: str) -> int:
        """How many launches in this part have received anything different."""
        return sum(launched.reached for launched in self.launched if launched.part.name == name)

    def agreement(self) -> Agreement:
        """What has been compared."""
        return Agreement(self.steps, self.messages, {name: self.reached(name) for name in self.parts})


def two_worlds(composite: Composite, left: Sequence[Message], right: Sequence[Message], seed: int = 0) -> Agreement:
    """Run two neighbouring sequences of messages on equal sub-answers, until the composite halts.

    `RelationMismatch`: they, or the sub-inputs they led to, are not neighbours as declared. `TapeMismatch`: a decision
    or an answer depended on more than sub-answers, or a function that must be total failed, in one world or in both. An
    agreement is no proof; it holds for these messages and this seed.

    >>> from counterpoint import Ask
    >>> from counterpoint.mechanisms.composed.guess_and_check import GuessAndCheck
    >>> two_worlds(GuessAndCheck(epsilon=1, margin=20, wrong=3), [Ask(10, 0)], [Ask(10, 7)])
    Traceback (most recent call last):
    ...
    counterpoint.errors.RelationMismatch: the two sequences of messages are not neighbours in Steps()
    """
    if len(left) != len(right):
        raise InvalidParameter("the two worlds get equally many messages")
    pairs = list(zip(left, right, strict=True))
    if not composite.relation.valid(pairs):
        raise RelationMismatch(f"the two sequences of messages are not neighbours in {composite.relation!r}")
    return two_adaptive_worlds(composite, lambda answers: pairs[len(answers)], len(pairs), seed)


def two_adaptive_worlds(composite: Composite, adversary: Adversary, rounds: int, seed: int = 0) -> Agreement:
    """The same with an adversary, who makes each pair of neighbouring messages out of the answers so far.

    >>> from counterpoint import Ask
    >>> from counterpoint.mechanisms.composed.guess_and_check import GuessAndCheck
    >>> def adversary(answers):
    ...     guess = 10 * len(answers)
    ...     return Ask(guess, 12), Ask(guess, 13)
    >>> two_adaptive_worlds(GuessAndCheck(epsilon=1, margin=20, wrong=3), adversary, rounds=3).steps
    3
    """
    comparison, coins, answers = Comparison(composite), SeededCoins(seed), list[Answer]()
    progress = composite.relation.begin()
    here, there = comparison.run(composite.begun, composite.begun, coins)
    for _ in range(whole(rounds, 0, "rounds")):
        if here.state is None or there.state is None:
            break
        one, other = adversary(tuple(answers))
        progress = composite.relation.check(progress, one, other)
        if progress is None:
            raise RelationMismatch(f"the two sequences of messages are not neighbours in {composite.relation!r}")
        zero = partial(composite.ran, here.state, accepted(composite, one))
        here, there = comparison.run(zero, partial(composite.ran, there.state, accepted(composite, other)), coins)
        comparison.steps += 1
        answers.append(here.answer)
    return comparison.agreement()


def _failed(ran: Ran) -> str | None:
    """The error that broke a program in this step, if one did: in its answer or, after an update, in its state."""
    if isinstance(ran.answer, Failed):
        return ran.answer.error
    return None if ran.state is None else ran.state.failed


def _not_total() -> TapeMismatch:
    return TapeMismatch(
        "a function of a secret, or the step of a sub-mechanism, failed on these messages: it must be total, or its "
        "failing tells of raw data"
    )


def _public(value: object) -> Iterator[object]:
    """What is public in a state: everything but the raw values of secrets and the states of sub-mechanisms."""
    if isinstance(value, CompositeState):
        yield value.failed
        yield from _public(value.own)
    elif isinstance(value, Secret):
        yield "secret", value.width
    elif isinstance(value, msgspec.Struct):
        yield type(value)
        for name in value.__struct_fields__:
            yield from _public(getattr(value, name))
    elif isinstance(value, tuple | list):
        yield "several", len(value)
        for item in value:
            yield from _public(item)
    else:
        yield value
