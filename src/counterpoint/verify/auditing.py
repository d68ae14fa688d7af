"""`audit`: a lower bound on what a mechanism loses, from many games with it, at a stated confidence.

For instances that are too large for `exact`. Half of the games teach: a search finds out what to send (searching.py),
and which event tells the worlds apart. The other half, which the search has not seen, judges that one event, by
Clopper-Pearson bounds on its probability in either world: P^b >= p and P^(1-b) <= q, so that delta(e) >= p - exp(e) q
for all e at once, wrong with a probability of at most 1 - confidence. A bound above the claim shows a bug; one below it
shows nothing.

>>> from counterpoint import Laplace, SeededCoins
>>> found = audit(Laplace(1), samples=100_000, confidence="0.999", coins=SeededCoins(1))
>>> 0.8 < found.epsilon < 1, found.judge()
(True, Verdict.UNDECIDED)
"""

import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

from counterpoint.errors import InvalidParameter
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.numbers import Number
from counterpoint.numbers.exact import positive, probability, whole
from counterpoint.privacy.loss import Loss
from counterpoint.privacy.relations import Pair, Relation
from counterpoint.randomness.coins import Coins
from counterpoint.randomness.secure import SecureCoins
from counterpoint.verify.audits.audit_report import Audit, Count
from counterpoint.verify.audits.clopper_pearson import at_least, at_most
from counterpoint.verify.audits.drawn_ahead import DrawnAhead
from counterpoint.verify.audits.events import Aim, Event
from counterpoint.verify.audits.players import Player, Strategist, player
from counterpoint.verify.audits.searching import Contender, Search, first_scripts
from counterpoint.verify.audits.views import Views, joined
from counterpoint.verify.exactly.adversary import Adversary
from counterpoint.verify.games.asked import asked_for

_SAMPLES = 10**6
_FEWEST = 400
_PROBE, _PROBED = 8, 0.02
_SMALL = Fraction(1, 1000)
_REMEMBERED = 2_000_000


@dataclass
class Table:
    """Where the games are played: a mechanism under a relation, coins, and a count of the games."""

    mechanism: Mechanism
    relation: Relation
    coins: Coins
    tell: "Progress"
    seconds: float = 0.0

    @property
    def speed(self) -> float:
        """How many games were played in a second, not counting what is learned in between."""
        return self.tell.games / max(self.seconds, 1e-6)

    def games(self, player: Player, bit: int, size: int) -> Views:
        """So many games, remembered."""
        return joined(list(self._played(player, bit, size)))

    def over(self, limit: float | None, share: Fraction) -> bool:
        """Whether a share of the time is over."""
        return limit is not None and self.tell.seconds > limit * share

    def count(self, player: Player, event: Event, bit: int, size: int) -> int:
        """In how many of so many games an event happens; nothing else is remembered of them."""
        return sum(int(event.holds(views).sum()) for views in self._played(player, bit, size))

    def _played(self, player: Player, bit: int, size: int) -> Iterator[Views]:
        """So many games, in parts of a size that suits the player."""
        for start in range(0, size, player.at_once):
            some, began = min(player.at_once, size - start), time.monotonic()
            views = player.games(self.mechanism, self.relation, bit, some, self.coins)
            self.seconds += time.monotonic() - began
            self.tell.played(some)
            yield views


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
    neither is said). Players: sequences of `rounds` pairs of messages, sought among all of them by what their games
    show, and the `adversaries` given, such as `exact(small).adversary_at(epsilon)`. The event is chosen for the largest
    epsilon at `delta`: by default the claim's, or 1e-3 if the claim has none and is not pure. `batches=False` plays all
    games one by one and draws all noise as it is needed, also where a vector could be asked for.
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidParameter(f"audit takes a mechanism, not a {type(mechanism).__name__}")
    sure, allowed = probability(confidence, "the confidence"), _delta(delta, mechanism.claim.loss)
    if not 0 < sure < 1:
        raise InvalidParameter("the confidence must be above 0 and below 1, such as 0.999")
    pairs, many, checked = asked_for(mechanism, relation, messages, rounds)
    given = [_player(adversary) for adversary in adversaries]
    limit = None if seconds is None else float(positive(seconds, "seconds"))
    wanted = _SAMPLES if samples is None and limit is None else samples
    games = None if wanted is None else whole(wanted, _FEWEST, "samples")
    tell = Progress(games or 0, shown=progress)
    tossed = SecureCoins() if coins is None else coins
    table = Table(mechanism, checked, DrawnAhead(tossed) if batches else tossed, tell)

    def playing(script: tuple[Pair, ...]) -> Player:
        return player(script, mechanism, checked, batches=batches)

    try:
        first = [playing(tuple(pairs[move] for move in s.moves)) for s in first_scripts(pairs, many, checked)[:1]]
        planned = _planned(table, first[0], games, limit)
        aim = Aim(float(allowed), NormalDist().inv_cdf(1 - max(1e-15, float(1 - sure) / 2)), max(1, planned // 4))
        search = Search(pairs, checked, playing, table.games, aim, lambda: table.over(limit, Fraction(1, 2)))
        lesson = search.best(given, many, min(planned // 2, _REMEMBERED))
        return _judged(table, lesson, games, limit, sure, allowed)
    finally:
        tell.stop()


def _delta(delta: Number | None, loss: Loss) -> Fraction:
    """The delta at which the largest epsilon is sought: the claim's own; where its epsilon there is infinite, 1e-3."""
    if delta is not None:
        return probability(delta, "delta")
    if loss.stated_delta is not None:
        return loss.stated_delta
    return Fraction(0) if math.isfinite(loss.epsilon_at(0)) else _SMALL


def _player(given: Adversary | Player) -> Player:
    if isinstance(given, Adversary):
        return Strategist(given)
    if not hasattr(given, "games"):
        raise InvalidParameter(f"an adversary of an audit is an Adversary or a player, not a {type(given).__name__}")
    return given


def _planned(table: Table, first: Player, games: int | None, limit: float | None) -> int:
    """How many games there will be in all, about: as many as were asked for, or as fit into the time."""
    if limit is None:
        return games or 0
    size = _PROBE
    while table.seconds < limit * _PROBED and (games is None or table.tell.games + size < games / 4):
        table.games(first, 0, size)
        size *= 2
    return max(_FEWEST, _affordable(table, games, limit))


def _affordable(table: Table, games: int | None, limit: float) -> int:
    """How many more games fit into the time that is left, by the speed so far."""
    most = int(table.speed * max(0.0, limit - table.tell.seconds))
    return most if games is None else min(most, games - table.tell.games)


def _judged(  # noqa: PLR0917 - one call, of what `audit` has read
    table: Table, best: Contender, games: int | None, limit: float | None, sure: Fraction, delta: Fraction
) -> Audit:
    """The event on games that it was not learned from; how many is decided before the first of them."""
    rest = (games or 0) - table.tell.games if limit is None else _affordable(table, games, limit)
    rest = max(_FEWEST // 2, rest)
    table.tell.expect(table.tell.games + rest)
    assert best.learned is not None
    event, bit, _ = best.learned
    trials, risk = rest // 2, (1 - sure) / 2
    hits = [table.count(best.player, event, world, trials) for world in (bit, 1 - bit)]
    bounds = at_least(hits[0], trials, risk), at_most(hits[1], trials, risk)
    likely, unlikely = Count(hits[0], trials, bounds[0]), Count(hits[1], trials, bounds[1])
    found = table.mechanism, str(best.player), event, bit, likely, unlikely
    return Audit(*found, sure, delta, table.tell.games, table.tell.seconds)
