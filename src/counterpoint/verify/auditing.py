"""`audit`: a lower bound on what a mechanism loses, from many games with it, at a stated confidence.

For instances that are too large for `exact`. Half of the games teach: who of the players does best, and which event
tells the worlds apart. The other half, which nobody has looked at, judges that one event, by Clopper-Pearson bounds on
its probability in either world: P^b >= p and P^(1-b) <= q, so that delta(e) >= p - exp(e) q for all e at once, wrong
with a probability of at most 1 - confidence. A bound above the claim shows a bug; one below it shows nothing.

>>> from counterpoint import Laplace, SeededCoins
>>> found = audit(Laplace(1), samples=100_000, confidence="0.999", coins=SeededCoins(1))
>>> 0.8 < found.epsilon < 1, found.judge()
(True, Verdict.UNDECIDED)
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from counterpoint.errors import InvalidParameter
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.numbers import Number
from counterpoint.numbers.exact import positive, probability, whole
from counterpoint.privacy.loss import Loss
from counterpoint.privacy.losses import ApproxDP
from counterpoint.privacy.relations import Pair, Relation
from counterpoint.randomness.coins import Coins
from counterpoint.randomness.secure import SecureCoins
from counterpoint.verify.adversary import Adversary
from counterpoint.verify.asked import asked_for
from counterpoint.verify.audit_report import Audit, Count
from counterpoint.verify.clopper_pearson import at_least, at_most
from counterpoint.verify.events import Aim, Event, Learned, Views, learn
from counterpoint.verify.players import Player, Strategist, scripts

_SAMPLES = 10**6
_FEWEST = 400
_PILOT = 1000
_PROBE = 8
_REMEMBERED = 2_000_000


class Lesson(NamedTuple):
    """A player, and the event that was learned from her games."""

    player: Player
    learned: Learned


@dataclass
class Table:
    """Where the games are played: a mechanism under a relation, coins, and somebody who is told how far it has come."""

    mechanism: Mechanism
    relation: Relation
    coins: Coins
    tell: "Progress"

    def games(self, player: Player, bit: int, size: int) -> Views:
        """So many games, remembered."""
        parts = [
            player.games(self.mechanism, self.relation, bit, some, self.coins) for some in _shares(player, size, self)
        ]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def count(self, player: Player, event: Event, bit: int, size: int) -> int:
        """In how many of so many games an event happens; nothing else is remembered of them."""
        hits = 0
        for some in _shares(player, size, self):
            hits += int(event.holds(player.games(self.mechanism, self.relation, bit, some, self.coins)).sum())
        return hits

    def learn(self, player: Player, size: int, aim: Aim) -> Learned:
        """The best event, from so many games: half of either world's to order values, half to choose by."""
        part = max(1, min(size, _REMEMBERED) // 4)
        ordering = self.games(player, 0, part), self.games(player, 1, part)
        choosing = self.games(player, 0, part), self.games(player, 1, part)
        return learn(ordering, choosing, aim)


def _shares(player: Player, size: int, table: Table) -> Iterable[int]:
    for start in range(0, size, player.at_once):
        some = min(player.at_once, size - start)
        yield some
        table.tell.played(some)


class Progress:
    """Told how many games have been played; shows a bar if it was asked to."""

    def __init__(self, games: int, *, shown: bool) -> None:
        self.games = 0
        self._started = time.monotonic()
        self._bar = None
        if shown:
            from rich.progress import Progress as Bar  # noqa: PLC0415 - only who wants a bar pays for it

            self._bar = Bar(transient=True)
            self._task = self._bar.add_task("auditing", total=games)
            self._bar.start()

    def played(self, some: int) -> None:
        """So many more."""
        self.games += some
        if self._bar is not None:
            self._bar.update(self._task, advance=some)

    def expect(self, games: int) -> None:
        """There will be so many in all."""
        if self._bar is not None:
            self._bar.update(self._task, total=games)

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return time.monotonic() - self._started

    def stop(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()


def audit(
    mechanism: Mechanism,
    relation: Relation | None = None,
    messages: Iterable[Pair] | None = None,
    rounds: int | None = None,
    *,
    samples: int | None = None,
    seconds: Number | None = None,
    confidence: Number = Fraction(999, 1000),
    delta: Number | None = None,
    adversaries: Iterable[Adversary | Player] = (),
    coins: Coins | None = None,
    batches: bool = True,
    progress: bool = False,
) -> Audit:
    """A lower bound on the loss of a mechanism that is wrong with a probability of at most 1 - confidence.

    `samples` games are played in all, half of them in either world; or as many as fit into `seconds` (a million if
    neither is said). Players: sequences of the pairs of messages, chosen as for `exact`, and the `adversaries` given,
    such as `exact(small).adversary_at(epsilon)`. The event is chosen for the largest epsilon at `delta`, by default the
    claim's. `batches=False` plays all games one by one, also where a vector could be asked for.
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidParameter(f"audit takes a mechanism, not a {type(mechanism).__name__}")
    sure, allowed = probability(confidence, "the confidence"), _delta(delta, mechanism.claim.loss)
    if not 0 < sure < 1:
        raise InvalidParameter("the confidence must be above 0 and below 1, such as 0.999")
    pairs, many, checked = asked_for(mechanism, relation, messages, rounds)
    players = [*map(_player, adversaries), *scripts(mechanism, pairs, many, checked, batches=batches)]
    limit = None if seconds is None else float(positive(seconds, "seconds"))
    wanted = _SAMPLES if samples is None and limit is None else samples
    games = None if wanted is None else whole(wanted, _FEWEST, "samples")
    tell = Progress(games or 0, shown=progress)
    table = Table(mechanism, checked, SecureCoins() if coins is None else coins, tell)
    try:
        return _judged(table, _taught(table, players, games, limit, float(allowed), sure), games, limit, sure, allowed)
    finally:
        tell.stop()


def _delta(delta: Number | None, loss: Loss) -> Fraction:
    if delta is not None:
        return probability(delta, "delta")
    return loss.delta if isinstance(loss, ApproxDP) else Fraction(0)


def _player(given: Adversary | Player) -> Player:
    if isinstance(given, Adversary):
        return Strategist(given)
    if not hasattr(given, "games"):
        raise InvalidParameter(f"an adversary of an audit is an Adversary or a player, not a {type(given).__name__}")
    return given


def _taught(  # noqa: PLR0917 - one call, of what `audit` has read
    table: Table, players: list[Player], games: int | None, limit: float | None, delta: float, sure: Fraction
) -> Lesson:
    """Every player's event on a first quarter of the games; then the best player's again, on a second quarter."""
    width = NormalDist().inv_cdf(1 - max(1e-15, float(1 - sure) / 2))
    each = max(_FEWEST // 4, games // 4 // len(players)) if games is not None else _PILOT
    if limit is not None:
        each = min(each, _pilot(table, players, limit))
    lessons = []
    for player in players:
        aim = Aim(delta, width, _trials(table, games, limit))
        lessons.append(Lesson(player, table.learn(player, each, aim)))
        if limit is not None and table.tell.seconds > limit / 4:
            break
    best = max(lessons, key=lambda lesson: lesson.learned.score)
    again = _affordable(table, games, limit, Fraction(1, 2)) if limit is not None else (games or 0) // 4
    if again <= each / 2:
        return best
    return Lesson(best.player, table.learn(best.player, again, Aim(delta, width, _trials(table, games, limit))))


def _trials(table: Table, games: int | None, limit: float | None) -> int:
    """In about how many games of either world an event will be judged."""
    return max(_FEWEST // 4, (_affordable(table, games, limit, Fraction(1)) if limit is not None else games or 0) // 4)


def _pilot(table: Table, players: list[Player], limit: float) -> int:
    """How many games of each player fit into a quarter of the time, as a few of the first one's tell."""
    table.games(players[0], 0, _PROBE)
    speed = table.tell.games / max(table.tell.seconds, 1e-6)
    return max(_FEWEST // 4, min(_PILOT, int(speed * limit / 4 / len(players))))


def _affordable(table: Table, games: int | None, limit: float, share: Fraction) -> int:
    """How many games fit into the time that is left until a share of the limit, by the speed so far."""
    spent = max(table.tell.seconds, 1e-3)
    left = max(0.0, limit * float(share) - spent)
    most = int(table.tell.games / spent * left)
    return most if games is None else min(most, int(games * share) - table.tell.games)


def _judged(  # noqa: PLR0917 - one call, of what `audit` has read
    table: Table, lesson: Lesson, games: int | None, limit: float | None, sure: Fraction, delta: Fraction
) -> Audit:
    """The event on games that it was not learned from; how many is decided before the first of them."""
    rest = (games or 0) - table.tell.games
    if limit is not None:
        rest = max(_FEWEST, _affordable(table, games, limit, Fraction(1)))
    table.tell.expect(table.tell.games + rest)
    player, (event, bit, _) = lesson
    trials, risk = rest // 2, (1 - sure) / 2
    hits = [table.count(player, event, world, trials) for world in (bit, 1 - bit)]
    bounds = at_least(hits[0], trials, risk), at_most(hits[1], trials, risk)
    likely, unlikely = Count(hits[0], trials, bounds[0]), Count(hits[1], trials, bounds[1])
    seconds = table.tell.seconds
    return Audit(table.mechanism, str(player), event, bit, likely, unlikely, sure, delta, table.tell.games, seconds)
