"""Why a mechanism does not accept an ask, in words that say what it would accept. Public facts only.

Whether a message is accepted is the mechanism's to say (`accepts`); what a person got wrong is found out by asking it
about messages that differ in one public fact: no request, a request, a single number, a smaller sensitivity.

>>> from counterpoint import Counter, Stream, total
>>> explained(Counter(epsilon=1), None, Stream().prepare(total()))
'Counter follows the data by itself: ask() it without a request; nothing was charged or changed'
"""

from counterpoint.encoding import Plain
from counterpoint.errors import shown
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.privacy.messages import Ask
from counterpoint.privacy.secret import Raw, Secret
from counterpoint.privacy.tally import Tally
from counterpoint.sources.source import Prepared


def explained(mechanism: Mechanism, public: Plain, prepared: Prepared | None) -> str | None:
    """What was wrong with this ask, and what would work; None if nothing was, and something else must have been."""
    if mechanism.accepts(Ask(public) if prepared is None else _ask(public, prepared, one_way=prepared.one_way)):
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
    return _shape(mechanism, public, prepared) or _size(mechanism, public, prepared)


def _shape(mechanism: Mechanism, public: Plain, prepared: Prepared) -> str | None:
    """Whether it takes other shapes than this one: a number, several of them, a tally of keys."""
    blank = prepared.blank()

    def takes(private: Secret | Raw | Tally) -> bool:
        return mechanism.accepts(Ask(public, private, one_way=True))

    if takes(blank):
        return None
    if blank.keyed:
        return "takes numbers, and which keys there are is none: PartitionSelection and GaussianSelection select keys"
    if takes(Tally(())):
        return "selects keys: ask it for some, as in ask(keys('city'))"
    if blank.width is not None and takes(0):
        return f"takes requests for a single number, and this one is for {blank.width} of them"
    if blank.width is None and takes((0, 0)):
        return "chooses among several numbers: ask it for a vector, such as a histogram"
    return None


def _size(mechanism: Mechanism, public: Plain, prepared: Prepared) -> str:
    """Whether it takes requests of this shape that move less far, or one way only."""
    if not prepared.one_way and mechanism.accepts(_ask(public, prepared, one_way=True)):
        return (
            "was launched as monotone, for requests that all move the same way when a unit is added, as counts on a "
            "table do: this one may move either way; launch one without monotone=True"
        )
    if mechanism.accepts(Ask(public, prepared.blank(), one_way=True)):
        most = mechanism.sensitivity
        limit = "more than it takes" if most is None else f"more than its sensitivity of {most}"
        launch = "" if most is None else f"; launch one with sensitivity={prepared.sensitivity}"
        return (
            f"was launched for requests that move less: this one moves by up to {prepared.sensitivity} steps between "
            f"neighbours, {limit}{launch}"
        )
    return f"does not accept a request such as {shown(prepared.request, 200)}"


def _ask(public: Plain, prepared: Prepared, *, one_way: bool) -> Ask:
    """The ask as the engine would make it, but for what is private."""
    each = prepared.each
    return Ask(
        public,
        prepared.blank(),
        prepared.sensitivity,
        prepared.squared,
        each=each,
        one_way=one_way,
        cells=prepared.cells,
    )
