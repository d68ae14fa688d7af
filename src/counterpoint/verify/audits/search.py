"""The search for a script that distinguishes the two worlds of a mechanism; it treats the mechanism as a black box.

There are too many sequences of messages to try them all. The search starts with simple ones (one pair repeated; one
pair, then another repeated) and continues from the best so far: it repeats a message, or changes the pair in one round
or from one round on. So "many misses, then the other way" is two steps from the start. Every script is scored by the
event that is learned from its games; the leading scripts play more games, so that lucky scores do not last.

The search uses training games only. The result is tested on other games, so the length of the search does not change
the confidence of the audit.

>>> from counterpoint.mechanisms import Ask
>>> from counterpoint.privacy.relations import every_step
>>> up, down = (Ask(private=0), Ask(private=1)), (Ask(private=1), Ask(private=0))
>>> [script.moves for script in first_scripts([up, down], 9, every_step())]
[(0, 0, 0, 0, 0, 0, 0, 0, 0), (0, 1, 1, 1, 1, 1, 1, 1, 1), (1, 0, 0, 0, 0, 0, 0, 0, 0), (1, 1, 1, 1, 1, 1, 1, 1, 1)]
>>> (0, 0, 1) in changed((0, 0, 0), 2)
True
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product, zip_longest
from typing import NamedTuple, TypeAlias

from counterpoint.encoding import encode
from counterpoint.errors import InvalidParameter
from counterpoint.privacy.messages import Ask
from counterpoint.privacy.relations import Pair, Relation
from counterpoint.verify.audits.events import Aim, Learned, Views, joined, learn
from counterpoint.verify.audits.players import Player

Moves: TypeAlias = tuple[int, ...]
"""A script as the numbers of its pairs."""
_ALL = 64
_PARENTS = 4
_LEADING = (16, 8, 4)
_FEWEST = 80
_GENERATIONS = 4


class Numbered(NamedTuple):
    """A script as the numbers of its pairs, and how much it promises: how many pairs differ, how many are asks."""

    moves: Moves
    promise: tuple[int, int]


@dataclass
class Contender:
    """A player, its games so far in either world, and the event learned from them."""

    player: Player
    moves: Moves | None = None
    games: tuple[list[Views], list[Views]] = field(default_factory=lambda: ([], []))
    learned: Learned | None = None

    @property
    def score(self) -> float:
        """The epsilon that its event seems to show."""
        assert self.learned is not None
        return self.learned.score

    def study(self, games: int, play: Callable[[Player, int, int], Views], aim: Aim) -> None:
        """Play this many more games, half of them in either world, and learn from all games so far."""
        for bit in (0, 1):
            self.games[bit].append(play(self.player, bit, max(1, games // 2)))
        self.learned = _lesson((joined(self.games[0]), joined(self.games[1])), aim)


def _lesson(games: tuple[Views, Views], aim: Aim) -> Learned:
    """The event that one half of the games orders and the other half chooses, or the other way round.

    Its score is the mean of both ways: a script that is good on one half by luck is not good on the other.
    """
    even, odd = _half(games, 0), _half(games, 1)
    found = [learn(ordering, choosing, aim) for ordering, choosing in ((even, odd), (odd, even))]
    better = max(found, key=lambda learned: learned.score)
    return better._replace(score=sum(learned.score for learned in found) / 2)


def _half(games: tuple[Views, Views], first: int) -> tuple[Views, Views]:
    zero, one = ({name: column[first::2] for name, column in views.items()} for views in games)
    return zero, one


def first_scripts(pairs: Sequence[Pair], rounds: int, relation: Relation) -> list[Numbered]:
    """The first scripts of the search: valid ones only, the most promising first."""
    numbers = range(len(pairs))
    if len(pairs) ** rounds <= _ALL:
        tried: Iterable[Moves] = product(numbers, repeat=rounds)
    else:
        tried = (
            (first,) * opening + (rest,) * (rounds - opening)
            for first, rest in product(numbers, repeat=2)
            for opening in ((1,) if first != rest else (rounds,))
        )
    valid = sorted(_valid(tried, pairs, relation), key=lambda script: script.promise, reverse=True)
    if not valid:
        raise InvalidParameter(
            f"no sequence of {rounds} of these messages is valid in the relation: give fewer rounds or other messages"
        )
    return valid


def _valid(tried: Iterable[Moves], pairs: Sequence[Pair], relation: Relation) -> Iterator[Numbered]:
    differs = [encode(left, sealed=True) != encode(right, sealed=True) for left, right in pairs]
    asks = [isinstance(left, Ask) for left, _ in pairs]
    for moves in tried:
        if relation.valid([pairs[move] for move in moves]):
            yield Numbered(moves, (sum(differs[move] for move in moves), sum(asks[move] for move in moves)))


def changed(moves: Moves, pairs: int) -> Iterator[Moves]:
    """All scripts that repeat one message, which shifts the later ones, or change the pair in one round or from one on.

    The three kinds alternate, with late changes first.
    """
    rounds, numbers = range(len(moves)), range(pairs)
    repeated = (
        moves[:at] + (moves[at],) * more + moves[at : len(moves) - more]
        for at in rounds
        for more in range(1, len(moves) - at)
    )
    onward = (moves[:at] + (move,) * (len(moves) - at) for at in reversed(rounds) for move in numbers)
    once = ((*moves[:at], move, *moves[at + 1 :]) for at in reversed(rounds) for move in numbers)
    for several in zip_longest(repeated, onward, once):
        yield from (change for change in several if change is not None and change != moves)


class Search(NamedTuple):
    """The search: the messages, the player of a script, the function that plays games, and the goal."""

    pairs: Sequence[Pair]
    relation: Relation
    player: Callable[[tuple[Pair, ...]], Player]
    play: Callable[[Player, int, int], Views]
    aim: Aim
    ended: Callable[[], bool]

    def best(self, given: Sequence[Player], rounds: int, games: int) -> Contender:
        """The best contender in about `games` games, among the given players and all scripts that were tried."""
        share = games // (_GENERATIONS + 1)
        first = [script.moves for script in first_scripts(self.pairs, rounds, self.relation)]
        first = first[: max(1, share // _FEWEST - len(given))]
        known, met = [*map(Contender, given), *map(self._contender, first)], set(first)
        self._study(known, share // 2)
        self._sift(known, share // 2)
        for _ in range(_GENERATIONS - 1):
            fresh = self._fresh(_leading(known, _PARENTS), met, share // 2 // _FEWEST)
            self._study(fresh, share // 2)
            known += fresh
            self._sift(known, share // 2 if fresh else share)
        self._study(_leading(known, 1), share)
        return _leading(known, 1)[0]

    def _sift(self, known: list[Contender], games: int) -> None:
        """Play more games with the leading contenders, fewer of them each time, so that lucky scores do not last."""
        for many in _LEADING:
            self._study(_leading(known, many), games // len(_LEADING))

    def _fresh(self, parents: list[Contender], met: set[Moves], most: int) -> list[Contender]:
        """New scripts, made from the leading ones in turn, as many as there are games for."""
        tried = [changed(parent.moves, len(self.pairs)) for parent in parents if parent.moves is not None]
        fresh: list[Contender] = []
        while tried and len(fresh) < most:
            changes = tried.pop(0)
            moves = next(changes, None)
            if moves is None:
                continue
            tried.append(changes)
            if moves not in met:
                met.add(moves)
                fresh += [self._contender(script.moves) for script in _valid([moves], self.pairs, self.relation)]
        return fresh

    def _contender(self, moves: Moves) -> Contender:
        return Contender(self.player(tuple(self.pairs[move] for move in moves)), moves)

    def _study(self, contenders: list[Contender], games: int) -> None:
        """Share the games among the contenders, or among the first of them if there are too few games for all.

        A contender that has not played yet plays in any case; after the time limit only the first one does.
        """
        fresh = sum(contender.learned is None for contender in contenders)
        able = contenders[: max(fresh, games // (_FEWEST // 2))]
        for number, contender in enumerate(able):
            if not self.ended() or (number == 0 and contender.learned is None):
                contender.study(max(_FEWEST // 2, games // len(able)), self.play, self.aim)


def _leading(contenders: list[Contender], many: int) -> list[Contender]:
    played = [contender for contender in contenders if contender.learned is not None]
    return sorted(played, key=lambda contender: contender.score, reverse=True)[:many]
