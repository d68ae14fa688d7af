"""What a launch or an ask comes to: here the code of mechanisms and sources runs, and sees the data.

No error leaves with a chain or a frame of that code, whose locals may hold raw values, noise or a seed. What a source
raises (the data cannot be reached) is told, and the step is made later, from its seed. A mechanism whose code fails
would fail again: it is `Faulty` from then on, charged and halted, and what it raised is told to nobody, since its type
and text may depend on the data. That it failed does, too, which no library can undo: authors promise that their code is
total, and `verify.two_worlds` tests that promise.

>>> from counterpoint import Laplace
>>> type(failed(Laplace(1))).__name__
'Halted'
"""

from collections.abc import Callable

from counterpoint.encoding import Plain, encode
from counterpoint.errors import INTERRUPTIONS, Halted, bare
from counterpoint.ledger.ledger import Faulty, Intent, Node, Row
from counterpoint.mechanisms.composed.concurrent import Concurrent
from counterpoint.mechanisms.composed.postprocessing import Failed
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.privacy.messages import Ask, Message, Update
from counterpoint.privacy.secret import Secret
from counterpoint.session.coins import StepCoins
from counterpoint.session.nesting import stepping
from counterpoint.sources.source import Prepared, Source
from counterpoint.sources.streams.shape import Of


def started(intent: Intent, mechanism: Mechanism, by: str | None, of: Of) -> tuple[Row, Plain]:
    """What a launch comes to: the row of the new mechanism, and its path.

    A start sees no data. If it fails, its error is told, and the same id tries again, on the same coins.
    """
    outcome = _attempted(lambda: _start(intent, mechanism, by, of))
    if isinstance(outcome, BaseException):
        raise bare(outcome)
    return outcome


def answered(intent: Intent, source: Source, prepared: Prepared | None, public: Plain) -> tuple[Row, Plain]:
    """What an ask comes to: the row after it, and the mechanism's own answer."""
    outcome = _attempted(lambda: _answer(intent, source, prepared, public))
    if isinstance(outcome, BaseException):
        raise bare(outcome)
    return outcome


def failed(mechanism: Mechanism) -> Halted:
    """The error for a mechanism whose code failed: the same for every failure, as its cause would tell of the data."""
    return Halted(
        f"{type(mechanism).__name__} has halted: its own code failed in a step. Code that sees data must not fail, "
        "whatever the data, and its author promised that. Its charge stays. Step it on made-up data, or try it with "
        "two_worlds, to see what fails; then launch a repaired one"
    )


def message(public: Plain, prepared: Prepared | None, private: Secret | None) -> Ask:
    """The ask that a mechanism receives; the private part may be blank, for what is decided by public facts."""
    if prepared is None:
        return Ask(public)
    each, one_way = prepared.each, prepared.one_way
    return Ask(public, private, prepared.sensitivity, prepared.squared, each=each, one_way=one_way)


def _start(intent: Intent, mechanism: Mechanism, by: str | None, of: Of) -> tuple[Row, Plain]:
    state: State = (
        Node(mechanism.rule.start()) if isinstance(mechanism, Concurrent) else mechanism.start(StepCoins(intent))
    )
    return Row(mechanism, state, 0, intent.pin, by, of), intent.path


def _answer(intent: Intent, source: Source, prepared: Prepared | None, public: Plain) -> tuple[Row, Plain]:
    row, coins = intent.row, StepCoins(intent)
    assert row is not None and row.state is not None
    mechanism, state = row.mechanism, row.state
    for update in source.items(row.cursor, intent.pin):
        after, _ = _step(mechanism, state, update, coins)
        assert after is not None, "an update halts nothing but a mechanism that is faulty"
        state = after
    private = None if prepared is None else source.resolve(intent.pin, prepared)
    last, answer = _step(mechanism, state, message(public, prepared, private), coins)
    return Row(mechanism, last, row.version + 1, intent.pin, None, row.of), answer


def _step(mechanism: Mechanism, state: State, received: Message, coins: StepCoins) -> tuple[State | None, Answer]:
    """One step; a mechanism whose code fails is faulty from then on."""
    if isinstance(state, Faulty):
        return state, state
    try:
        if isinstance(received, Update) and not mechanism.accepts(received):
            return state, None
        after, answer = mechanism.step(state, received, coins)
        if isinstance(received, Ask):
            encode(answer)  # raises where the answer is not plain, holds a float or holds a secret
    except (MemoryError, *INTERRUPTIONS):  # not the code's failure, and perhaps not there the next time
        raise
    except BaseException:
        return Faulty(), Faulty()
    if after is None and (isinstance(received, Update) or isinstance(answer, Failed)):
        return Faulty(), Faulty()
    return after, answer


def _attempted(work: Callable[[], tuple[Row, Plain]]) -> tuple[Row, Plain] | BaseException:
    """What came of it, or the error. Raised here, it would take along the frames of all that has seen the data."""
    try:
        with stepping:
            return work()
    except BaseException as error:
        return error
