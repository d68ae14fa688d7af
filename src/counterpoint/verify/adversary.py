"""An adversary as a value: the pair of messages to send, how to continue after each answer, and finally a guess.

An adversary prints as an indented list of decisions. It can play the game V[f] . I(b) . M with any coins, which gives a
transcript that can be replayed message by message.

>>> from counterpoint.coins import SeededCoins
>>> from counterpoint.verify.finite import OpenDoor
>>> from counterpoint.verify.exact_loss import exact
>>> spy = exact(OpenDoor("1/4"), rounds=2).adversary
>>> print(spy)
send Ask(private=0 | 0)
  open: send Ask(private=0 | 1)
    0: say world 0
    1: say world 1
  closed: say world 1
>>> played = spy.play(OpenDoor(1), bit=1, coins=SeededCoins(1))
>>> played.answers, played.guess
(('open', 1), 1)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from counterpoint.coins.coins import Coins
from counterpoint.encoding import encode
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.privacy.messages import Ask, Message, Update
from counterpoint.privacy.relations import Pair, Relation
from counterpoint.privacy.secret import Secret, counted, reveal
from counterpoint.verify.game import Game
from counterpoint.verify.induction import Best
from counterpoint.verify.worlds import Move, TreeNode, Worlds

_LINES = 60


class Played(NamedTuple):
    """One game: the pairs that were sent, the answers, and the world that the adversary guesses."""

    pairs: tuple[Pair, ...]
    answers: tuple[Answer, ...]
    guess: int


@dataclass(frozen=True)
class Adversary:
    """Send `pair` and continue according to the answer; without a pair, guess the world."""

    guess: int
    pair: Pair | None = None
    then: tuple[tuple[Answer, "Adversary"], ...] = ()

    def __str__(self) -> str:
        lines = list(self._lines(""))
        more = [f"... and {len(lines) - _LINES} lines more"] if len(lines) > _LINES else []
        return "\n".join([*lines[:_LINES], *more])

    def _lines(self, indent: str) -> Iterator[str]:
        if self.pair is None:
            yield f"say world {self.guess}"
            return
        yield f"send {format_pair(self.pair)}"
        for answers, after in self._grouped():
            first, *rest = after._lines(indent + "  ")
            yield f"{indent}  {answers}: {first}"
            yield from rest

    @cached_property
    def rounds(self) -> int:
        """The largest number of messages that it sends."""
        return 0 if self.pair is None else 1 + max((after.rounds for _, after in self.then), default=0)

    def _grouped(self) -> list[tuple[str, "Adversary"]]:
        """The continuations, each with all answers that lead to it."""
        groups: dict[str, tuple[list[Answer], Adversary]] = {}
        for answer, after in self.then:
            groups.setdefault("\n".join(after._lines("")), ([], after))[0].append(answer)
        return [(_listed(answers), after) for answers, after in groups.values()]

    def after(self, answer: Answer) -> "Adversary":
        """The continuation after an answer; after an answer that it holds impossible, it guesses at once."""
        sought = encode(answer)
        return next((after for known, after in self.then if encode(known) == sought), Adversary(self.guess))

    def play(self, mechanism: Mechanism, bit: int, coins: Coins, relation: Relation | None = None) -> Played:
        """Play against the world `bit` of a mechanism."""
        game = Game(mechanism, 1 if bit else 0, relation)
        state: State | None = coins.call(game.start)
        current = self
        pairs: list[Pair] = []
        answers: list[Answer] = []
        while current.pair is not None:
            state, answer = game.step(state, *current.pair, coins)
            pairs.append(current.pair)
            answers.append(answer)
            current = current.after(answer)
        return Played(tuple(pairs), tuple(answers), current.guess)


def strategy(worlds: Worlds, found: Best, growth: Fraction | float, bit: int) -> Adversary:
    """The adversary that makes the best moves, and guesses `bit` where that is more than `growth` times as likely."""
    known: dict[tuple[int, int], Adversary] = {}

    def at(node: TreeNode) -> Adversary:
        place = node.level, node.place
        if place not in known:
            masses = node.masses
            guess = bit if masses[bit] > growth * masses[1 - bit] else 1 - bit
            move = chosen(node, max(masses[bit] - growth * masses[1 - bit], 0))
            then = () if move is None else tuple((branch.answer, at(branch.node)) for branch in move.branches)
            known[place] = Adversary(guess, None if move is None else move.pair, then)
        return known[place]

    def chosen(node: TreeNode, stopping: Any) -> Move | None:
        """The move of the largest value; None if stopping has as large a value."""
        choices = worlds.levels[node.level].choices
        best_move = None
        if choices is not None:
            for number, move in zip(choices.of(node.place), node.moves, strict=True):
                edges = choices.edges(number)
                total = (choices.factors[edges] * found.values[node.level + 1][choices.children[edges]]).sum()
                if total > stopping:
                    stopping, best_move = total, move
        return best_move

    return at(worlds.root)


def format_pair(pair: Pair) -> str:
    """A pair of messages in one line: the common parts, and `left | right` where they may differ.

    Private parts are shown: they are inputs of the verification, not private data.

    >>> from counterpoint.mechanisms import Ask, Update
    >>> format_pair((Ask("q", 1), Ask("q", 2))), format_pair((Update((0, 1)), Update((0, 0))))
    ("Ask('q', private=1 | 2)", 'Update((0, 1) | (0, 0))')
    >>> from counterpoint.privacy.secret import Tally
    >>> format_pair((Ask(private=Tally((("CA", 3),))), Ask(private=Tally(())))), format_pair((Ask(0), Ask(9)))
    ("Ask(private={'CA': 3} | {})", 'Ask(0) | Ask(9)')
    """
    left, right = pair
    if _public(left) != _public(right):
        return f"{_spelled(left, _values(left))} | {_spelled(right, _values(right))}"
    return _spelled(left, _values(left, right))


def _public(message: Message) -> tuple[object, ...]:
    return type(message), message.private is None, repr(message.public) if isinstance(message, Ask) else ""


def _spelled(message: Message, private: str | None) -> str:
    if isinstance(message, Update):
        return f"Update({private})"
    parts = ([] if message.public is None else [repr(message.public)]) + ([] if private is None else [f"{private=!s}"])
    return f"Ask({', '.join(parts)})"


def _values(*messages: Message) -> str | None:
    shown = [_shown(message.private) for message in messages if message.private is not None]
    return " | ".join(shown) if shown else None


def _shown(private: Secret) -> str:
    return repr(dict(counted(private).pairs)) if private.keyed else repr(reveal(private))


def _listed(answers: list[Answer]) -> str:
    """A list of answers, with runs of integers as ranges."""
    if len(answers) > 2 and all(type(answer) is int for answer in answers):
        numbers = sorted(answers)
        runs: list[list[int]] = []
        for number in numbers:
            if runs and number == runs[-1][-1] + 1:
                runs[-1].append(number)
            else:
                runs.append([number])
        return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs)
    several = sorted(str(answer) for answer in answers)
    return ", ".join(several[:6]) + (f" and {len(several) - 6} more" if len(several) > 6 else "")
