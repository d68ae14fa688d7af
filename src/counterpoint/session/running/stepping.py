"""What a launch or an ask comes to: here the code of mechanisms and sources runs, and sees the data.

**This is the only place where a mechanism steps, and so where noise is drawn.** No error leaves with a chain or a frame
of that code, whose locals may hold raw values, noise or a seed. What a source raises (the data cannot be reached) is
passed on, and the step is made later, from its seed. Any error that is not one of this package's, such as a lack of
memory, may depend on the data: it becomes `DataFailed`, and the data are closed until the custodian has looked. A
mechanism whose code fails would fail again: it is `Faulty` from
then on, charged and halted, and what it raised is dropped, since its type and text may depend on the data. That it
failed does, too, which no library can undo: authors promise that their code is total, and `verify.two_worlds` tests
that promise.

>>> from counterpoint.ledger.wanted import Opening
>>> from counterpoint.mechanisms.composed.concurrent import Concurrent
>>> from counterpoint import Filter, PureDP
>>> from counterpoint.privacy.relations import Steps
>>> opening = Opening((), Concurrent(Filter(PureDP(1)), Steps()))
>>> root = opening.plan(lambda path: None).row
>>> answered(Intent("root", opening.body(), (), 0, 0, bytes(32), row=root), opening, None) == (root, None)
True
"""

from collections.abc import Sequence

from msgspec import UNSET

from counterpoint.encoding import Plain, encode
from counterpoint.errors import INTERRUPTIONS, CounterpointError, bare
from counterpoint.ledger.ledger import Intent
from counterpoint.ledger.nesting import stepping
from counterpoint.ledger.state import Faulty, Node, Row
from counterpoint.ledger.wanted import Asking, Launching, Wanted
from counterpoint.mechanisms.composed.concurrent import Concurrent
from counterpoint.mechanisms.composed.postprocessing import Failed
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.privacy.messages import Ask, Update
from counterpoint.privacy.samples import Sample
from counterpoint.session.running.coins import StepCoins
from counterpoint.sources.engines.answering import failure
from counterpoint.sources.source import Source


def answered(intent: Intent, wanted: Wanted, source: Source | None) -> tuple[Row, Plain]:
    """What a request that was begun comes to: the row after it, and the answer."""
    outcome = _attempted(intent, wanted, source)
    if isinstance(outcome, BaseException):
        raise bare(outcome)
    return outcome


def _attempted(intent: Intent, wanted: Wanted, source: Source | None) -> tuple[Row, Plain] | BaseException:
    """What came of it, or the error. Raised here, it would take along the frames of all that has seen the data."""
    try:
        with stepping:
            if isinstance(wanted, Asking):
                assert source is not None
                return _answer(intent, wanted, source)
            if isinstance(wanted, Launching):
                return _start(intent, wanted)
            assert intent.row is not None  # a session that is opened or taken back: its row is made as it begins
            return intent.row, None
    except (CounterpointError, *INTERRUPTIONS) as error:
        return error
    except BaseException as error:
        return failure(error) if isinstance(wanted, Asking) else error  # a start sees no data


def _start(intent: Intent, wanted: Launching) -> tuple[Row, Plain]:
    """The row of a new mechanism, and its path.

    A start sees no data. If it fails, its error is raised as it is, and the same id tries again, on the same coins.
    """
    mechanism = wanted.mechanism
    state: State
    if isinstance(mechanism, Concurrent):
        rate, grant = mechanism.sampling_rate, UNSET if wanted.grant is None else wanted.grant
        sample = UNSET if rate is None else Sample.drawn(rate, StepCoins(intent))
        state = Node(mechanism.rule.start(), grant=grant, sample=sample)
    else:
        state = mechanism.start(StepCoins(intent))
    return Row(mechanism, state, 0, intent.pin, wanted.by, wanted.of), intent.path


def _answer(intent: Intent, wanted: Asking, source: Source) -> tuple[Row, Plain]:
    """The row after an ask, and the mechanism's own answer: updates that arrived since the last one, then the ask."""
    row, coins = intent.row, StepCoins(intent)
    assert row is not None and row.state is not None
    mechanism, state = row.mechanism, row.state
    sample = mechanism.sample(state)
    source = source if sample is None else source.sampled(sample)  # from here on, the units of the sample alone
    if not _ignores_updates(mechanism, source.blank_update()):
        state = _follow(mechanism, state, source.items(row.cursor, intent.pin), coins)
    private = None if wanted.prepared is None else source.resolve(intent.pin, wanted.prepared)
    last, answer = _step(mechanism, state, wanted.message(private), coins)
    return Row(mechanism, last, row.version + 1, intent.pin, None, row.of), answer


def _ignores_updates(mechanism: Mechanism, blank: Update | None) -> bool:
    """Whether a mechanism accepts no update of this shape, which is public: then none has to be read."""
    if blank is None:
        return False
    try:
        return not mechanism.accepts(blank)
    except Exception:  # the step finds that, and the mechanism is faulty
        return False


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
