"""Two worlds on one tape: do neighbouring inputs of a composite give neighbouring sub-inputs?

See Henzinger et al. 2024, Def 6.5, f -> f'.

World 0 runs for real, and the answers of its sub-mechanisms are recorded on a tape. World 1 receives the neighbouring
messages and, from its sub-mechanisms, the answers on the tape. Then both worlds must have made the same calls in the
same order, with the same public parts; their answers and the public parts of their states must be equal; and the
messages they sent must be neighbours as each part declares: in its relation, and in a k-sparse part different in at
most k launches. This finds mistakes that types cannot show (a value sent doubled, a change that reaches too far), on
the given examples.

>>> from counterpoint.mechanisms import Ask
>>> from counterpoint.mechanisms.guess_and_check import GuessAndCheck
>>> worlds = [Ask(10, 12), Ask(10, 500)], [Ask(10, 13), Ask(10, 499)]
>>> two_worlds(GuessAndCheck(epsilon=1, margin=20, wrong=3), *worlds)
Agreement(steps=2, messages=3, reached={'check': 1, 'answer': 1})
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import msgspec

from counterpoint.coins.coins import Coins
from counterpoint.coins.secure import SeededCoins
from counterpoint.coins.tape import RecordingCoins, ReplayedCoins
from counterpoint.encoding import encode
from counterpoint.errors import InvalidParameter, NotTotal, RelationMismatch, SecretLeak, TapeMismatch
from counterpoint.mechanisms.composite import Composite, CompositeState, Ran
from counterpoint.mechanisms.composite_parts import Part, Sent
from counterpoint.mechanisms.mechanism import Answer, Mechanism, accepted
from counterpoint.mechanisms.postprocessing import Failed
from counterpoint.numbers.exact import whole
from counterpoint.privacy.messages import Message, gap
from counterpoint.privacy.relations import Progress
from counterpoint.privacy.secret import Secret


class Agreement(NamedTuple):
    """What was compared: steps, messages to sub-mechanisms, and in how many launches of each part messages differed."""

    steps: int
    messages: int
    reached: dict[str, int]


class Launched:
    """The messages that one launch in a part has received in the two worlds."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.progress: Progress = part.relation.begin()
        self.began = self.reached = False

    def receive(self, left: Message, right: Message) -> None:
        """Check one more pair of sub-inputs."""
        distance = gap(left, right)
        if distance is None:
            raise TapeMismatch(
                f"the two worlds send part {self.part.name!r} messages with different public parts: only private parts "
                "may depend on the data"
            )
        self.progress = self.part.relation.check(self.progress, left, right)
        if self.progress is None:
            raise RelationMismatch(
                f"neighbouring inputs reach part {self.part.name!r} as messages that are not neighbours in "
                f"{self.part.relation!r}, as it declares"
            )
        if self.part.first_pair and self.began and distance.l1 > 0 and not self.reached:
            raise RelationMismatch(
                f"a launch in part {self.part.name!r} received an equal message first and a differing one later, and "
                "the part declares first_pair=True: leave it out, with delta_total for approximate losses"
            )
        self.began = True
        self.reached = self.reached or distance.l1 > 0


Step: TypeAlias = Callable[[Coins], Ran]
NextPair: TypeAlias = Callable[[tuple[Answer, ...]], tuple[Message, Message]]
"""An adaptive adversary: the next pair of messages, one for each world, from all answers so far (None for updates)."""


class Comparison:
    """The sub-inputs of the two worlds so far."""

    def __init__(self, composite: Composite) -> None:
        self.parts = {part.name: part for part in composite.structure}
        self.current: dict[tuple[str, int], Launched] = {}
        self.launched: list[Launched] = []
        self.steps = self.messages = 0

    def run(self, zero: Step, one: Step, coins: Coins) -> tuple[Ran, Ran]:
        """Make a step in both worlds, the second with the sub-answers of the first, and compare."""
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
            raise TapeMismatch(
                "world 1 failed in a step in which world 0 did not: control flow must not depend on private values"
            ) from error
        if _failed(left) == NotTotal.__name__:
            raise _not_total()
        self._compare(left, right)
        return left, right

    def _compare(self, left: Ran, right: Ran) -> None:
        if len(left.sent) != len(right.sent):
            raise TapeMismatch(
                f"world 0 sends {len(left.sent)} messages to sub-mechanisms in this step, and world 1 "
                f"{len(right.sent)}: their number must not depend on private values"
            )
        for one, other in zip(left.sent, right.sent, strict=True):
            self._sent(one, other)
        if encode(left.answer) != encode(right.answer):
            raise TapeMismatch(
                "the two worlds give different answers: an answer may depend on sub-answers and public parts only"
            )
        if list(_public(left.state)) != list(_public(right.state)):
            raise TapeMismatch(
                "the public parts of the two worlds' states differ: keep values that depend on the data in a Secret"
            )

    def _sent(self, left: Sent, right: Sent) -> None:
        place = left.part, left.at
        if place != (right.part, right.at) or isinstance(left.what, Mechanism) != isinstance(right.what, Mechanism):
            raise TapeMismatch(
                "the two worlds use different parts, or in a different order: that must not depend on private values"
            )
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
        """How many launches in this part have received different messages."""
        return sum(launched.reached for launched in self.launched if launched.part.name == name)

    def agreement(self) -> Agreement:
        """What has been compared."""
        return Agreement(self.steps, self.messages, {name: self.reached(name) for name in self.parts})


def two_worlds(composite: Composite, left: Sequence[Message], right: Sequence[Message], seed: int = 0) -> Agreement:
    """Run two neighbouring sequences of messages on equal sub-answers, until the composite halts.

    `RelationMismatch`: the sequences, or the sub-inputs they lead to, are not neighbours as declared. `TapeMismatch`: a
    decision or an answer depends on more than sub-answers, or a function that must be total failed in one world or in
    both. An agreement is not a proof; it holds for these messages and this seed.

    >>> from counterpoint.mechanisms import Ask
    >>> from counterpoint.mechanisms.guess_and_check import GuessAndCheck
    >>> two_worlds(GuessAndCheck(epsilon=1, margin=20, wrong=3), [Ask(10, 0)], [Ask(10, 7)])
    Traceback (most recent call last):
    ...
    counterpoint.errors.RelationMismatch: the two sequences of messages are not neighbours in Steps()
    """
    if len(left) != len(right):
        raise InvalidParameter(
            f"the two worlds must get equally many messages, but {len(left)} and {len(right)} were given"
        )
    pairs = list(zip(left, right, strict=True))
    if not composite.relation.valid(pairs):
        raise RelationMismatch(f"the two sequences of messages are not neighbours in {composite.relation!r}")
    return two_adaptive_worlds(composite, lambda answers: pairs[len(answers)], len(pairs), seed)


def two_adaptive_worlds(composite: Composite, adversary: NextPair, rounds: int, seed: int = 0) -> Agreement:
    """The same with an adaptive adversary, a function from the answers so far to the next pair of messages.

    >>> from counterpoint.mechanisms import Ask
    >>> from counterpoint.mechanisms.guess_and_check import GuessAndCheck
    >>> def adversary(answers):
    ...     guess = 10 * len(answers)
    ...     return Ask(guess, 12), Ask(guess, 13)
    >>> two_adaptive_worlds(GuessAndCheck(epsilon=1, margin=20, wrong=3), adversary, rounds=3).steps
    3
    """
    comparison, coins, answers = Comparison(composite), SeededCoins(seed), list[Answer]()
    progress = composite.relation.begin()
    left, right = comparison.run(composite.begun, composite.begun, coins)
    for _ in range(whole(rounds, 0, "rounds")):
        if left.state is None or right.state is None:
            break
        one, other = adversary(tuple(answers))
        progress = composite.relation.check(progress, one, other)
        if progress is None:
            raise RelationMismatch(f"the two sequences of messages are not neighbours in {composite.relation!r}")
        zero = partial(composite.ran, left.state, accepted(composite, one))
        left, right = comparison.run(zero, partial(composite.ran, right.state, accepted(composite, other)), coins)
        comparison.steps += 1
        answers.append(left.answer)
    return comparison.agreement()


def _failed(ran: Ran) -> str | None:
    """The error that a program raised in this step, if any: in its answer or, after an update, in its state."""
    if isinstance(ran.answer, Failed):
        return ran.answer.error
    return None if ran.state is None else ran.state.failed


def _not_total() -> TapeMismatch:
    return TapeMismatch(
        "a function of a secret, or the step of a sub-mechanism, failed on these messages: it must be total, or its "
        "failure would reveal raw data"
    )


def _public(value: object) -> Iterator[object]:
    """The public parts of a state: everything but the raw values of secrets and the states of sub-mechanisms."""
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
