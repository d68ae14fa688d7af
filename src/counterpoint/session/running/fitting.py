"""What a session launches: a mechanism, fitted to what is public about the data, that can receive what the data sends.

A mechanism takes what its maker left open from the source's relation and dimensions (`Mechanism.fitted`), and from how
far a count of its rows moves (`for_counts`). One that
takes updates of another shape than the source's would silently follow nothing: it is refused, before anything is paid.

>>> from counterpoint import Counter, Stream
>>> launchable(Counter(epsilon=1), Stream(bound=1)).claim.loss
PureDP(1)
>>> launchable(Counter(epsilon=1), Stream(bound=1, dimensions=4))
Traceback (most recent call last):
...
counterpoint.errors.InvalidRequest: Counter follows single numbers, but this data sends vectors of 4: ...
"""

from counterpoint.errors import InvalidParameter, InvalidRequest, NotCovered
from counterpoint.mechanisms.composed.concurrent import Concurrent
from counterpoint.mechanisms.counting.windows import Windowed
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.privacy.messages import Ask, Update
from counterpoint.privacy.relations import OfSample, Relation, Steps
from counterpoint.sources.source import Source

_STANDING = Steps(updates=0)


def launchable(mechanism: object, source: Source) -> Mechanism:
    """The mechanism as it is launched on this source, or why it is not."""
    if isinstance(mechanism, type) and issubclass(mechanism, Mechanism):
        name = mechanism.__name__
        raise InvalidParameter(f"{name} is a kind of mechanism: say with which parameters, as in {name}(epsilon=0.1)")
    if not isinstance(mechanism, Mechanism):
        kind = type(mechanism).__name__
        raise InvalidParameter(f"a session launches mechanisms, such as Laplace(epsilon=0.1), not a {kind}")
    if isinstance(mechanism, Concurrent):
        raise InvalidParameter("to give a part of the budget away, use session.delegate(loss)")
    if source.unfollowed is not None and _only_follows(mechanism):
        raise InvalidRequest(f"{type(mechanism).__name__} follows data that arrives: {source.unfollowed}")
    fitted = mechanism.fitted(source.relation, source.dimensions).for_counts(source.count_moves)
    seen_by(fitted, source)
    if sends_updates(source):
        _must_follow(fitted, source.dimensions)
    elif _only_follows(fitted):
        raise InvalidRequest(
            f"{type(fitted).__name__} follows data that arrives, and a table stands still: ask it with Laplace or "
            "SparseVector, or keep what arrives in a Stream"
        )
    return fitted


def seen_by(mechanism: Mechanism, source: Source) -> Relation:
    """How what the mechanism receives of this source differs between neighbours; `NotCovered` if it cannot be sampled.

    >>> from counterpoint import Laplace, Sampled, Stream
    >>> seen_by(Sampled(Laplace(1), rate=0.5), Stream(bound=1, neighbours="add-or-remove")).rate
    0.5
    """
    rate = mechanism.sampling_rate
    if rate is None:
        return source.relation
    if source.unsampled is not None:
        raise NotCovered(f"no sample is drawn of this data: {source.unsampled}")
    return OfSample(rate, source.relation)


def windowed(mechanism: Mechanism, last: int | None) -> Mechanism:
    """The mechanism itself, or its window over the last `last` items; `last` was left out or is a whole number.

    >>> from counterpoint import Counter
    >>> windowed(Counter(epsilon=1), 100).last
    100
    """
    return mechanism if last is None else Windowed(mechanism, last)


def sends_updates(source: Source) -> bool:
    """Whether the data can change while mechanisms run.

    >>> from counterpoint import Stream
    >>> sends_updates(Stream())
    True
    """
    return not source.relation.within(_STANDING)


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
                f"{type(mechanism).__name__} follows {_shape(other)}, but this data sends {_shape(width)}: choose a "
                "mechanism for these, or read a field of a stream of records with launch(..., of=...)"
            )


def _shape(width: int | None) -> str:
    return "single numbers" if width is None else f"vectors of {width}"


def _blank(width: int | None) -> Update:
    return Update(0 if width is None else (0,) * width)
