"""`audit`: a lower bound on what a mechanism loses, from many games with it, at a stated confidence.

Use it for instances that are too large for `exact`. The first half of the games trains: a search (search.py) chooses
the messages to send and the event that best separates the two worlds. The second half tests that one event on fresh
games, by Clopper-Pearson bounds on its probability in either world: P^b >= p and P^(1-b) <= q, so that
delta(e) >= p - exp(e) q for all e at once, wrong with a probability of at most 1 - confidence. A bound above the claim
shows a bug; a bound below it shows nothing.

>>> from counterpoint import Laplace
>>> from counterpoint.coins import SeededCoins
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

from counterpoint.coins.coins import Coins
from counterpoint.coins.secure import SecureCoins
from counterpoint.display.progress import Work, working
from counterpoint.errors import InvalidParameter
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.numbers import Number, format_number
from counterpoint.numbers.exact import positive, probability, whole
from counterpoint.privacy.relations import Pair, Relation
from counterpoint.verify.adversary import Adversary
from counterpoint.verify.audits.events import Aim, Event, Views, joined
from counterpoint.verify.audits.players import DrawnAhead, Player, Strategist, player
from counterpoint.verify.audits.report import Audit, EventCount, at_most, least_chance
from counterpoint.verify.audits.search import Contender, Search, first_scripts
from counterpoint.verify.inputs import check_inputs

_SAMPLES = 10**6
_FEWEST = 400
_PROBE, _PROBED = 8, 0.02
_SMALL = Fraction(1, 1000)
_REMEMBERED = 2_000_000


@dataclass
class GameRunner:
    """Runs games of a mechanism under a relation, and counts and times them."""

    mechanism: Mechanism
    relation: Relation
    coins: Coins
    progress: "AuditProgress"
    seconds: float = 0.0

    @property
    def speed(self) -> float:
        """Games per second, not counting the time of learning."""
        return self.progress.games / max(self.seconds, 1e-6)

    def games(self, player: Player, bit: int, size: int) -> Views:
        """Play `size` games and keep their views."""
        return joined(list(self._played(player, bit, size)))

    def over(self, limit: float | None, share: Fraction) -> bool:
        """Whether this share of the time limit has passed."""
        return limit is not None and self.progress.seconds > limit * share

    def count(self, player: Player, event: Event, bit: int, size: int) -> int:
        """Play `size` games and count those in which the event happens."""
        return sum(int(event.holds(views).sum()) for views in self._played(player, bit, size))

    def _played(self, player: Player, bit: int, size: int) -> Iterator[Views]:
        """Play `size` games, in batches of the player's size."""
        for start in range(0, size, player.at_once):
            some, began = min(player.at_once, size - start), time.monotonic()
            views = player.games(self.mechanism, self.relation, bit, some, self.coins)
            self.seconds += time.monotonic() - began
            self.progress.played(some)
            yield views


class AuditProgress:
    """Counts the games and the time."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._started = time.monotonic()

    @property
    def games(self) -> int:
        """How many games were played."""
        return self._work.steps

    def played(self, some: int) -> None:
        """Count this many more games."""
        self._work.done(some)

    def expect(self, games: int) -> None:
        """Set the expected total of games."""
        self._work.total = games

    @property
    def seconds(self) -> float:
        """The seconds since the start."""
        return time.monotonic() - self._started


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
    progress: bool = True,
) -> Audit:
    """A lower bound on the loss of a mechanism, wrong with a probability of at most 1 - confidence.

    The audit plays `samples` games in all, half of them in either world, or as many as fit into `seconds` (a million if
    neither is given). It searches all sequences of `rounds` pairs of messages, and also tries the given `adversaries`,
    such as `exact(small).adversary_at(epsilon)`. It chooses the event that shows the largest epsilon at `delta`: by
    default the claim's, or 1e-3 if the claim has none and is not pure. `batches=False` plays all games one by one, and
    draws all noise when it is needed. After two seconds a terminal or a notebook shows how far it is, unless
    `progress=False`.
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidParameter(f"audit takes a mechanism, not a {type(mechanism).__name__}")
    sure, allowed = probability(confidence, "the confidence"), _delta(delta, mechanism.claim.loss)
    if not 0 < sure < 1:
        raise InvalidParameter(
            f"the confidence must be above 0 and below 1, such as 0.999, but {format_number(sure)} was given"
        )
    pairs, many, checked = check_inputs(mechanism, relation, messages, rounds)
    given = [_player(adversary) for adversary in adversaries]
    limit = None if seconds is None else float(positive(seconds, "seconds"))
    wanted = _SAMPLES if samples is None and limit is None else samples
    games = None if wanted is None else whole(wanted, _FEWEST, "samples")
    tossed = SecureCoins() if coins is None else coins

    def playing(script: tuple[Pair, ...]) -> Player:
        return player(script, mechanism, checked, batches=batches)

    with working("auditing", games, shown=progress) as work:
        runner = GameRunner(mechanism, checked, DrawnAhead(tossed) if batches else tossed, AuditProgress(work))
        first = [playing(tuple(pairs[move] for move in s.moves)) for s in first_scripts(pairs, many, checked)[:1]]
        planned = _planned(runner, first[0], games, limit)
        aim = Aim(float(allowed), NormalDist().inv_cdf(1 - max(1e-15, float(1 - sure) / 2)), max(1, planned // 4))
        search = Search(pairs, checked, playing, runner.games, aim, lambda: runner.over(limit, Fraction(1, 2)))
        lesson = search.best(given, many, min(planned // 2, _REMEMBERED))
        return _judged(runner, lesson, games, limit, sure, allowed)


def _delta(delta: Number | None, loss: Loss) -> Fraction:
    """The delta at which to search for the largest epsilon: the claim's, or 1e-3 if epsilon is infinite at 0."""
    if delta is not None:
        return probability(delta, "delta")
    if loss.stated_delta is not None:
        return loss.stated_delta
    return Fraction(0) if math.isfinite(loss.epsilon_at(0)) else _SMALL


def _player(given: Adversary | Player) -> Player:
    if isinstance(given, Adversary):
        return Strategist(given)
    if not hasattr(given, "games"):
        raise InvalidParameter(f"adversaries must be Adversary values or players, not a {type(given).__name__}")
    return given


def _planned(runner: GameRunner, first: Player, games: int | None, limit: float | None) -> int:
    """About how many games there will be in all: as many as were asked for, or as fit into the time."""
    if limit is None:
        return games or 0
    size = _PROBE
    while runner.seconds < limit * _PROBED and (games is None or runner.progress.games + size < games / 4):
        runner.games(first, 0, size)
        size *= 2
    return max(_FEWEST, _affordable(runner, games, limit))


def _affordable(runner: GameRunner, games: int | None, limit: float) -> int:
    """How many more games fit into the remaining time, at the speed so far."""
    most = int(runner.speed * max(0.0, limit - runner.progress.seconds))
    return most if games is None else min(most, games - runner.progress.games)


def _judged(  # noqa: PLR0917 - one call, of what `audit` has read
    runner: GameRunner, best: Contender, games: int | None, limit: float | None, sure: Fraction, delta: Fraction
) -> Audit:
    """Test the event on fresh games; their number is fixed before the first of them."""
    rest = (games or 0) - runner.progress.games if limit is None else _affordable(runner, games, limit)
    rest = max(_FEWEST // 2, rest)
    runner.progress.expect(runner.progress.games + rest)
    assert best.learned is not None
    event, bit, _ = best.learned
    trials, risk = rest // 2, (1 - sure) / 2
    hits = [runner.count(best.player, event, world, trials) for world in (bit, 1 - bit)]
    bounds = least_chance(hits[0], trials, risk), at_most(hits[1], trials, risk)
    likely, unlikely = EventCount(hits[0], trials, bounds[0]), EventCount(hits[1], trials, bounds[1])
    found = runner.mechanism, str(best.player), event, bit, likely, unlikely
    return Audit(*found, sure, delta, runner.progress.games, runner.progress.seconds)
