"""Why a mechanism does not accept an ask, in words that say what it would accept. Public facts only.

Whether a message is accepted is the mechanism's to say (`accepts`); what a person got wrong is found out by asking it
about messages that differ in one public fact: no request, a request, a single number, a smaller sensitivity.

>>> from counterpoint import Counter, Stream, total
>>> explained(Counter(epsilon=1), None, Stream().prepare(total()))
'Counter follows the data by itself: ask() it without a request; nothing was charged or changed'
"""

from counterpoint.encoding import Plain
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.privacy.messages import Ask
from counterpoint.sources.source import Prepared


def explained(mechanism: Mechanism, public: Plain, prepared: Prepared | None) -> str | None:
    """What was wrong with this ask, and what would work; None if nothing was."""
    given = _ask(public, prepared)
    if mechanism.accepts(given):
        return None
    name = type(mechanism).__name__
    return f"{name} {_reason(mechanism, public, prepared)}; nothing was charged or changed"


def _reason(mechanism: Mechanism, public: Plain, prepared: Prepared | None) -> str:
    if prepared is None:
        if mechanism.accepts(Ask(public, 0)):
            return "answers requests: ask it one, such as ask(count()) on a table or ask(total()) on a stream"
        return "does not accept an ask without a request"
    if mechanism.accepts(Ask(public)):
        return "follows the data by itself: ask() it without a request"
    if prepared.width is not None and mechanism.accepts(Ask(public, 0, prepared.sensitivity, prepared.squared)):
        return f"takes requests for a single number, and this one is for {prepared.width} of them"
    if mechanism.accepts(Ask(public, _zero(prepared.width), 1, 1)):
        most = getattr(mechanism, "sensitivity", None)
        limit = f"more than its sensitivity of {most}" if isinstance(most, int) else "more than it takes"
        return (
            f"was launched for requests that move less: this one moves by up to {prepared.sensitivity} steps between "
            f"neighbours, {limit}; launch one with sensitivity={prepared.sensitivity}"
        )
    return f"does not accept a request such as {prepared.request!r}"


def _ask(public: Plain, prepared: Prepared | None) -> Ask:
    if prepared is None:
        return Ask(public)
    return Ask(public, _zero(prepared.width), prepared.sensitivity, prepared.squared)


def _zero(width: int | None) -> int | tuple[int, ...]:
    return 0 if width is None else (0,) * width
