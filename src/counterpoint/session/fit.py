"""What a session launches: a mechanism fitted to what is public about the data; or the words of why it is not launched.

`launchable` and `answering` decide once, before any transaction, what a mechanism costs, how what it sees differs
between neighbours, and whether it accepts the ask of a question: the `Fit` that they return is what everything after
them works with. A mechanism takes what its maker left open from the source's relation and dimensions
(`Mechanism.fitted`), and from how far a count of its rows moves (`for_counts`). One that takes updates of another shape
than the source's would silently follow nothing: it is refused, before anything is paid.

Whether an ask is accepted is the mechanism's decision (`accepts`). `explained` finds out why one was not, by asking it
about messages that differ in one public fact: no request, a request, a single number, a smaller sensitivity.

>>> from counterpoint import Counter, Stream, total
>>> launchable(Counter(epsilon=1), Stream(bound=1)).claim.loss
PureDP(1)
>>> launchable(Counter(epsilon=1, width=3), Stream(bound=1, dimensions=4))
Traceback (most recent call last):
...
counterpoint.errors.InvalidRequest: this counts vectors of 3 numbers, and items of this source are vectors of 4 ...
>>> explained(Counter(epsilon=1), None, Stream().prepare(total()))
'Counter follows the data by itself: ask() it without a request; nothing was charged or changed'
"""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from counterpoint.encoding import Plain
from counterpoint.errors import InvalidParameter, InvalidRequest, NotCovered, shown
from counterpoint.ledger.commands import Fit
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.mechanisms.external import External
from counterpoint.mechanisms.mechanism import Mechanism, accepted, must_be_short, priced
from counterpoint.privacy.messages import Ask, Update
from counterpoint.privacy.relations import OfSample, Relation, Steps
from counterpoint.privacy.secret import Raw, Secret, Tally
from counterpoint.queries.request import PreparedQuery
from counterpoint.queries.source import Source

_STANDING = Steps(updates=0)


def launchable(mechanism: object, source: Source) -> Fit:
    """The mechanism as it is launched on this source, its price and what it sees; or why it is not launched.

    >>> from counterpoint import Laplace, Sampled, Stream
    >>> launchable(Sampled(Laplace(1), rate=0.5), Stream(bound=1, neighbours="add-or-remove")).relation.rate
    0.5
    """
    if isinstance(mechanism, type) and issubclass(mechanism, Mechanism):
        name = mechanism.__name__
        raise InvalidParameter(f"{name} is a kind of mechanism: say with which parameters, as in {name}(epsilon=0.1)")
    if not isinstance(mechanism, Mechanism):
        kind = type(mechanism).__name__
        raise InvalidParameter(f"a session launches mechanisms, such as Laplace(epsilon=0.1), not a {kind}")
    if isinstance(mechanism, Concurrent):
        raise InvalidParameter("to give a part of the budget away, use session.delegate(loss)")
    if source.why_no_updates is not None and _only_follows(mechanism):
        raise InvalidRequest(f"{type(mechanism).__name__} follows data that arrives: {source.why_no_updates}")
    relation = source.relation
    fitted = mechanism.fitted(relation, source.dimensions).for_counts(source.count_moves)
    seen = _seen_by(fitted, source, relation)
    if not relation.within(_STANDING):  # the data sends updates
        _must_follow(fitted, source.dimensions)
    elif _only_follows(fitted):
        raise InvalidRequest(
            f"{type(fitted).__name__} follows data that arrives, and a table does not change: ask it with Laplace or "
            "SparseVector, or keep what arrives in a Stream"
        )
    return Fit(fitted, seen, priced(fitted))


def composed(composition: Concurrent) -> Fit:
    """A session that is delegated, or a partition, with its price."""
    return Fit(composition, composition.relation, priced(composition))


def answering(mechanism: Mechanism, prepared: PreparedQuery, relation: Relation) -> Fit | None:
    """The mechanism as it is launched to answer one request, its price and the ask that it gets; None if it cannot.

    >>> from counterpoint import Laplace, NoisyMax, Stream, total
    >>> visits = Stream(bound=1)
    >>> answering(Laplace(1), visits.prepare(total()), visits.relation).message.sensitivity
    1
    >>> answering(NoisyMax(1), visits.prepare(total()), visits.relation) is None
    True
    """
    try:
        public = public_part(mechanism, prepared, {})
        message = accepted(mechanism, prepared.message(public))
    except InvalidRequest:
        return None
    assert isinstance(message, Ask)
    must_be_short(public, "an option")
    return Fit(mechanism, relation, priced(mechanism), message)


def public_part(mechanism: Mechanism, prepared: PreparedQuery | None, options: Mapping[str, Any]) -> Plain:
    """The public part of an ask, from the options that the analyst gave and those that the request brings along."""
    if prepared is None:
        return mechanism.public_part(None, **options)
    return mechanism.public_part(prepared.grid, **{**options, **prepared.options})


def _seen_by(mechanism: Mechanism, source: Source, relation: Relation) -> Relation:
    """How what the mechanism receives differs between neighbours; `NotCovered` if the source cannot be sampled."""
    rate = mechanism.sampling_rate
    if rate is None:
        return relation
    if source.why_not_sampled is not None:
        raise NotCovered(f"no sample is drawn of this data: {source.why_not_sampled}")
    return OfSample(rate, relation)


def _only_follows(mechanism: Mechanism) -> bool:
    """Whether it takes updates, and asks that carry nothing, but no values."""
    follows = any(mechanism.accepts(_blank(width)) for width in (None, mechanism.dimensions))
    return follows and mechanism.accepts(Ask()) and not mechanism.accepts(Ask(private=0))


def _must_follow(mechanism: Mechanism, width: int | None) -> None:
    """Refuse a mechanism that takes updates, but none of this shape: single numbers, or vectors of its own length."""
    if mechanism.accepts(_blank(width)):
        return
    for other in (None, mechanism.dimensions):
        if mechanism.accepts(_blank(other)):
            raise InvalidRequest(
                f"{type(mechanism).__name__} follows {_width_in_words(other)}, but this data "
                f"sends {_width_in_words(width)}: choose a mechanism "
                "for these, or read a field of a stream of records with launch(..., of=...)"
            )


def _width_in_words(width: int | None) -> str:
    return "single numbers" if width is None else f"vectors of {width}"


def _blank(width: int | None) -> Update:
    return Update(0 if width is None else (0,) * width)


def explained(mechanism: Mechanism, public: Plain, prepared: PreparedQuery | None) -> str | None:
    """What was wrong with this ask, and what would work; None if nothing was, and something else must have been."""
    if mechanism.accepts(Ask(public) if prepared is None else _ask(public, prepared, one_way=prepared.one_way)):
        return None
    name = type(mechanism).__name__
    return f"{name} {_reason(mechanism, public, prepared)}; nothing was charged or changed"


def _reason(mechanism: Mechanism, public: Plain, prepared: PreparedQuery | None) -> str:
    if isinstance(mechanism, External):
        return "pays for a release that was made elsewhere, and answers nothing here"
    if prepared is None:
        if mechanism.accepts(Ask(public, 0)):
            return "answers requests: ask it one, such as ask(count()) on a table or ask(total()) on a stream"
        return "does not accept an ask without a request"
    if mechanism.accepts(Ask(public)):
        return "follows the data by itself: ask() it without a request"
    return _wrong_shape(mechanism, public, prepared) or _size(mechanism, public, prepared)


def _wrong_shape(mechanism: Mechanism, public: Plain, prepared: PreparedQuery) -> str | None:
    """Whether it takes other shapes than this one: a number, several of them, a tally of keys."""
    blank = prepared.blank()

    def takes(private: Secret | Raw | Tally) -> bool:
        return mechanism.accepts(Ask(public, private, one_way=True))

    if takes(blank):
        return None
    if blank.keyed:
        return "answers numeric requests; to select keys, launch PartitionSelection or GaussianSelection"
    if takes(Tally(())):
        return "selects keys: ask it for some, as in ask(keys('city'))"
    if blank.width is not None and takes(0):
        return f"takes requests for a single number, and this one is for {blank.width} of them"
    if blank.width is None and takes((0, 0)):
        return "chooses among several numbers: ask it for a vector, such as a histogram"
    return None


def _size(mechanism: Mechanism, public: Plain, prepared: PreparedQuery) -> str:
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


def _ask(public: Plain, prepared: PreparedQuery, *, one_way: bool) -> Ask:
    """The ask as the engine would make it, but for what is private."""
    return replace(prepared.message(public), one_way=one_way)
