"""The inputs of a game (pairs of messages, rounds, a relation), checked before anything is computed.

If the verifier halts at the first message, the loss of the game is 0, which would look like privacy. So a pair that is
part of no valid sequence raises an error that says which pair it is and why. The error shows values: they are inputs of
the verification, not private data.

>>> from counterpoint import Laplace
>>> from counterpoint.mechanisms import Ask
>>> check_inputs(Laplace(1), None, [(Ask(private=0), Ask(private=9))], 1)
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: pair 1 of 1, Ask(private=0 | 9), is valid in no sequence of these messages: its \
private parts differ by 9, and it declares sensitivity=1
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from counterpoint.encoding import encode
from counterpoint.errors import InvalidParameter
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.numbers.exact import whole
from counterpoint.privacy.messages import Ask, Message, Update, gap
from counterpoint.privacy.relations import Pair, Relation
from counterpoint.verify.adversary import format_pair
from counterpoint.verify.game import verified
from counterpoint.verify.message_pairs import message_pairs

_MOST_PROGRESSES = 1000


class GameInputs(NamedTuple):
    """The pairs of messages, how many may be sent, and the relation that says which sequences are valid."""

    pairs: list[Pair]
    rounds: int
    relation: Relation


def check_inputs(
    mechanism: Mechanism, relation: Relation | None, messages: Iterable[Pair] | None, rounds: int | None
) -> GameInputs:
    """The checked inputs; the relation defaults to the claim's own, the messages and rounds to the menu's."""
    checked = mechanism.claim.relation if relation is None else relation
    if not isinstance(checked, Relation):
        raise InvalidParameter(
            f"relation must be one of counterpoint.relations, as in relations.every_step(), not a "
            f"{type(relation).__name__}"
        )
    by_default = message_pairs(mechanism) if messages is None or rounds is None else None
    pairs = _pairs(messages) if messages is not None else list(by_default.pairs) if by_default else []
    many = by_default.rounds if rounds is None and by_default else whole(rounds, 1, "rounds")
    _require_playable(mechanism, checked, pairs, all_of_them=messages is not None)
    return GameInputs(pairs, many, checked)


def _pairs(messages: Iterable[Pair]) -> list[Pair]:
    given: list[Any] = list(messages)
    for pair in given:
        if not (isinstance(pair, tuple | list) and len(pair) == 2 and all(isinstance(m, Ask | Update) for m in pair)):
            raise InvalidParameter(
                "messages must be pairs (left, right) of two asks or two updates, as in "
                "[(Ask(private=0), Ask(private=1))]"
            )
    if not given:
        raise InvalidParameter(
            "messages must have at least one pair (left, right), as in [(Ask(private=0), Ask(private=1))]"
        )
    return [(left, right) for left, right in given]


def _require_playable(mechanism: Mechanism, relation: Relation, pairs: Sequence[Pair], *, all_of_them: bool) -> None:
    """Check that each given pair is part of a valid sequence, or, of the menu's own pairs, at least one is."""
    never = _never_valid(mechanism, relation, pairs)
    if never and (all_of_them or len(never) == len(pairs)):
        number = never[0]
        raise InvalidParameter(
            f"pair {number + 1} of {len(pairs)}, {format_pair(pairs[number])}, is valid in no sequence of these "
            f"messages: {_fault(mechanism, relation, pairs[number])}"
        )


def _never_valid(mechanism: Mechanism, relation: Relation, pairs: Sequence[Pair]) -> list[int]:
    """The indices of the pairs that the verifier rejects after every sequence of the others.

    Whether a pair passes depends on the relation's progress alone, so each progress is visited once. If there are too
    many to visit, the pairs that have not passed yet are assumed to be valid somewhere.
    """
    start = relation.begin()
    waiting, seen, never = [start], {encode(start, sealed=True)}, set(range(len(pairs)))
    while waiting and never:
        progress = waiting.pop(0)
        for number, pair in enumerate(pairs):
            after = verified(mechanism, relation, progress, pair)
            if after is None:
                continue
            never.discard(number)
            key = encode(after, sealed=True)
            if key not in seen:
                seen.add(key)
                waiting.append(after)
        if len(seen) > _MOST_PROGRESSES:
            return []
    return sorted(never)


def _fault(mechanism: Mechanism, relation: Relation, pair: Pair) -> str:
    """Why a pair is not valid, judged by the pair alone."""
    left, right = pair
    for message in pair:
        if not mechanism.accepts(message):
            return f"{type(mechanism).__name__} does not accept {format_pair((message, message))}{_hint(message)}"
    distance = gap(left, right)
    if distance is None:
        return "the public parts of its two messages differ, and only private parts, given as private=, may differ"
    if isinstance(left, Ask) and distance.l1 > left.sensitivity:
        return f"its private parts differ by {distance.l1}, and it declares sensitivity={left.sensitivity}"
    return f"{relation!r} does not allow it"


def _hint(message: Message) -> str:
    if isinstance(message, Ask) and message.private is None and message.public is not None:
        return ": it has a public part and no private part (the first argument is the public part; give private=)"
    return ""
