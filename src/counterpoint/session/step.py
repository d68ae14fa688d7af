"""What a launch, an ask or a question comes to: here the code of mechanisms and sources runs, and sees the data.

**This is the only place where a mechanism steps, and so where noise is drawn.** No error leaves with a chain or a frame
of that code, whose locals may hold raw values, noise or a seed. What a source raises (the data cannot be reached) is
passed on, and the step is made later, from its seed. Any error that is not one of this package's, such as a lack of
memory, may depend on the data: it becomes `DataFailed`, and the data are closed until the custodian has looked. A
mechanism whose code fails would fail again: it is `Faulty` from
then on, charged and halted, and what it raised is dropped, since its type and text may depend on the data. That it
failed does, too, which no library can undo: authors promise that their code is total, and `verify.two_worlds` tests
that promise.

>>> from counterpoint.ledger.commands import OpenCommand
>>> from counterpoint.mechanisms.concurrent import Concurrent
>>> from counterpoint import Filter, PureDP
>>> from counterpoint.privacy.relations import Steps
>>> opening = OpenCommand((), Concurrent(Filter(PureDP(1)), Steps()))
>>> root = opening.plan(lambda path: None).row
>>> answered(Intent("root", opening.body(), (), 0, 0, bytes(32), row=root), opening, None) == (root, None)
True
"""

import hashlib
import threading
from collections.abc import Sequence

from counterpoint.coins.keystream import Keystream
from counterpoint.coins.secure import SAMPLER_VERSION, SecureCoins
from counterpoint.encoding import Plain, digest, encode
from counterpoint.errors import INTERRUPTIONS, CounterpointError, LedgerError, bare
from counterpoint.ledger.commands import AskCommand, Command, LaunchCommand, QuestionCommand, pins_version
from counterpoint.ledger.custodian_commands import RefreshCommand
from counterpoint.ledger.ledger import Intent
from counterpoint.ledger.state import Faulty, LaunchRecord, SessionState
from counterpoint.ledger.stepping import stepping
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.mechanisms.postprocessing import Failed
from counterpoint.privacy.messages import Ask, Update
from counterpoint.privacy.samples import Sample
from counterpoint.queries.fallback import failure
from counterpoint.queries.source import Source


class StepCoins(SecureCoins):
    """The coins of one step, seeded by its intent: they belong to it alone, as seed, path, version and body all enter.

    They are keyed when they are first tossed: many a mechanism starts without a draw, and making a cipher takes longer
    than such a start. Whatever finishes the step, now or after a crash, tosses the same coins. A question takes two
    steps from one seed; `label` keeps their coins apart.

    >>> intent = Intent("a request", b"[]", (0,), 3, "v1", bytes(32))
    >>> StepCoins(intent).integer(10**9) == StepCoins(intent).integer(10**9)
    True
    >>> StepCoins(intent, "start").integer(10**9) == StepCoins(intent, "ask").integer(10**9)
    False
    """

    __slots__ = ("_intent", "_label", "_made", "_making")

    def __init__(self, intent: Intent, *label: str) -> None:
        if intent.sampler != SAMPLER_VERSION:
            raise LedgerError(
                f"this request was begun with version {intent.sampler} of the sampler, and this is version "
                f"{SAMPLER_VERSION}: other noise would be drawn for it; finish it with the version that began it"
            )
        self._intent = intent
        self._label = label
        self._made: Keystream | None = None
        self._making = threading.Lock()

    @property
    def _stream(self) -> Keystream:  # type: ignore[override]  # no draw replaces it
        """The stream, made for the first draw; once, as two threads with a stream each would draw the same noise."""
        if self._made is not None:
            return self._made
        with self._making:
            if self._made is None:
                intent = self._intent
                bound = digest(intent.path, intent.version, hashlib.sha256(intent.body).hexdigest(), *self._label)
                self._made = Keystream(hashlib.sha256(intent.seed + bound).digest())
            return self._made


def answered(intent: Intent, wanted: Command, source: Source | None) -> tuple[LaunchRecord, Plain]:
    """What a request that was begun comes to: the row after it, and the answer."""
    outcome = _attempted(intent, wanted, source)
    if isinstance(outcome, BaseException):
        raise bare(outcome)
    return outcome


def _attempted(intent: Intent, wanted: Command, source: Source | None) -> tuple[LaunchRecord, Plain] | BaseException:
    """What came of it, or the error. Raised here, it would take along the frames of all that has seen the data."""
    try:
        with stepping:
            if isinstance(wanted, AskCommand):
                assert source is not None
                return _answer(intent, wanted, source)
            if isinstance(wanted, QuestionCommand):
                assert source is not None
                return _question(intent, wanted, source)
            if isinstance(wanted, LaunchCommand):
                return _start(intent, wanted)
            assert intent.row is not None  # a session that is opened, taken back or refreshed: made as it begins
            return intent.row, wanted.number if isinstance(wanted, RefreshCommand) else None
    except (CounterpointError, *INTERRUPTIONS) as error:
        return error
    except BaseException as error:
        return failure(error) if wanted.reads_data else error  # a start sees no data


def _start(intent: Intent, wanted: LaunchCommand) -> tuple[LaunchRecord, Plain]:
    """The row of a new mechanism, and its path.

    A start sees no data. If it fails, its error is raised as it is, and the same id tries again, on the same coins.
    """
    mechanism = wanted.mechanism
    state: State
    if isinstance(mechanism, Concurrent):
        rate, grant = mechanism.sampling_rate, wanted.grant
        sample = None if rate is None else Sample.drawn(rate, StepCoins(intent))
        state = SessionState(mechanism.rule.start(), grant=grant, sample=sample)
    else:
        state = mechanism.start(StepCoins(intent))
    sees = wanted.sees if pins_version(mechanism, wanted.by) else 1
    return LaunchRecord(mechanism, state, 0, intent.pin, wanted.by, wanted.of, sees), intent.path


def _answer(intent: Intent, wanted: AskCommand, source: Source) -> tuple[LaunchRecord, Plain]:
    """The row after an ask, and the mechanism's own answer: updates that arrived since the last one, then the ask."""
    row, coins = intent.row, StepCoins(intent)
    assert row is not None and row.state is not None
    mechanism, state = row.mechanism, row.state
    source = _seen(source, mechanism, state)
    if follows_updates(mechanism, source) if wanted.follows is None else wanted.follows:
        state = _follow(mechanism, state, source.items(row.cursor, intent.pin), coins)
    message = wanted.message
    if wanted.prepared is not None:
        message = message.carrying(source.resolve(intent.pin, wanted.prepared))
    last, answer = _step(mechanism, state, message, coins)
    return LaunchRecord(mechanism, last, row.version + 1, intent.pin, None, row.of, row.sees), answer


def _question(intent: Intent, wanted: QuestionCommand, source: Source) -> tuple[LaunchRecord, Plain]:
    """The row of a mechanism that was launched and asked in one, and its answer.

    It starts on the data that it is asked about, so no updates have arrived in between.
    """
    mechanism = wanted.fit.mechanism
    state = mechanism.start(StepCoins(intent, "start"))
    private = _seen(source, mechanism, state).resolve(intent.pin, wanted.prepared)
    last, answer = _step(mechanism, state, wanted.message.carrying(private), StepCoins(intent, "ask"))
    return LaunchRecord(mechanism, last, 1, intent.pin, sees=wanted.sees), answer


def _seen(source: Source, mechanism: Mechanism, state: State) -> Source:
    """The data that a mechanism sees from here on: where it is about a sample, the units of the sample alone."""
    sample = mechanism.sample(state)
    return source if sample is None else source.sampled(sample)


def follows_updates(mechanism: Mechanism, source: Source) -> bool:
    """Whether updates have to be read for a mechanism: not if it accepts none of their shape, which is public.

    >>> from counterpoint import Counter, Laplace, Stream
    >>> follows_updates(Counter(epsilon=1), Stream()), follows_updates(Laplace(1), Stream())
    (True, False)
    """
    blank = source.blank_update()
    if blank is None:
        return True
    try:
        return mechanism.accepts(blank)
    except Exception:  # the step finds that, and the mechanism is faulty
        return True


def _follow(mechanism: Mechanism, state: State, updates: Sequence[Update], coins: StepCoins) -> State:
    """The state after the updates that it accepts; a mechanism whose code fails on one is faulty from then on."""
    if isinstance(state, Faulty):
        return state
    try:
        after = mechanism.updated(state, [update for update in updates if mechanism.accepts(update)], coins)
    except (MemoryError, *INTERRUPTIONS):  # not the code's failure, and perhaps not there the next time
        raise
    except BaseException:
        return Faulty()
    return Faulty() if after is None else after


def _step(mechanism: Mechanism, state: State, received: Ask, coins: StepCoins) -> tuple[State | None, Answer]:
    """The answer to an ask; a mechanism whose code fails is faulty from then on."""
    if isinstance(state, Faulty):
        return state, state
    try:
        after, answer = mechanism.step(state, received, coins)
        encode(answer)  # raises where the answer is not plain, holds a float or holds a secret
    except (MemoryError, *INTERRUPTIONS):  # not the code's failure, and perhaps not there the next time
        raise
    except BaseException:
        return Faulty(), Faulty()
    return (Faulty(), Faulty()) if after is None and isinstance(answer, Failed) else (after, answer)
