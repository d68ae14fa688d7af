"""Games against every rule of composition, refereed by code that shares nothing with the rules.

A game is a budget, a rule and an analyst who chooses each launch by all answers before it. The rule says what is
admitted, or what is read; nothing else of the package is used. The referee answers by explicit mechanisms (randomized
responses with exposure, normal variables and sampled normal variables that are seen in a few cells), lists every view
with its probability in both worlds, in 30 digits, and compares hockey sticks with the promise.

    python -m tests.composition.games 10000 --seed 1

plays so many games, and prints for each kind how many there were, how many broke their promise (none may), and the
largest share of a promise that a game has reached.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from mpmath import mp, mpf, workdps

from counterpoint.composition.filters import Filter
from counterpoint.composition.odometers import Odometer
from counterpoint.composition.rule import Rule
from counterpoint.composition.slots import Slots
from counterpoint.errors import BudgetExceeded, NotCovered
from counterpoint.measures import ApproxDP, GaussianDP, PureDP, RenyiDP, SampledGaussianDP, zCDP
from counterpoint.measures.loss import Loss
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.relations import every_step

Cells = tuple[tuple[mpf, mpf], ...]
"""The probabilities of each answer in the two worlds."""
Views = list[tuple[mpf, mpf]]
Chooser = random.Random
_DEPTH = 5
_ROOM = mpf(10) ** -15


class Offer(NamedTuple):
    """A launch on the menu: what it claims, and what it does."""

    claimed: Claim
    cells: Cells


class Found(NamedTuple):
    """The share of its promise that a game has reached: above 1, the promise is broken."""

    kind: str
    share: float
    told: str


# ------------------------------------------------------------------------------------------------ mechanisms


def response(epsilon: Fraction, delta: Fraction = Fraction(0)) -> Cells:
    """Randomized response, which is exposed with probability delta."""
    truth = 1 / (1 + mp.exp(-real(epsilon)))
    kept = 1 - real(delta)
    noisy = ((kept * truth, kept * (1 - truth)), (kept * (1 - truth), kept * truth))
    return (*noisy, (real(delta), mpf(0)), (mpf(0), real(delta))) if delta else noisy


def normal(mu: mpf, edges: int, rate: mpf | int = 1) -> Cells:
    """N(mu, 1), with this chance and else N(0, 1), against N(0, 1): which of some cells the answer is in."""
    middle = mpf(edges - 1) / 2
    cuts = [mpf("-inf"), *(mu / 2 + edge - middle for edge in range(edges)), mpf("inf")]

    def between(low: mpf, high: mpf, mean: mpf) -> mpf:
        return (mp.erfc((low - mean) / mp.sqrt(2)) - mp.erfc((high - mean) / mp.sqrt(2))) / 2

    return tuple(
        (rate * between(a, b, mu) + (1 - rate) * between(a, b, mpf(0)), between(a, b, mpf(0)))
        for a, b in pairwise(cuts)
    )


def real(value: Fraction) -> mpf:
    """A rational in 30 digits."""
    return mpf(value.numerator) / value.denominator


def offer(loss: Loss, cells: Cells, interaction: str = "one-shot") -> Offer:
    """A launch with this claim."""
    return Offer(claim(loss, every_step(), "a game", interaction=interaction), cells)  # type: ignore[arg-type]


def size(draw: Chooser, low: float, high: float) -> Fraction:
    """A number of two digits between two others, small ones as likely as large ones."""
    return Fraction(f"{low * (high / low) ** draw.random():.2g}")


def pure(draw: Chooser, near: float) -> Offer:
    """A randomized response, a few of which fill a budget."""
    epsilon = size(draw, near / 3, near)
    return offer(PureDP(epsilon), response(epsilon), draw.choice(["one-shot", "endless"]))


def approximate(draw: Chooser, near: float, delta: Fraction) -> Offer:
    """One with a delta, of which a few fit."""
    epsilon, exposed = size(draw, near / 3, near), delta * size(draw, 0.002, 0.3)
    return offer(ApproxDP(epsilon, exposed), response(epsilon, exposed))


def gaussian(draw: Chooser, near: float) -> Offer:
    """A normal variable."""
    mu = size(draw, near / 3, near)
    return offer(GaussianDP(mu), normal(real(mu), draw.choice([1, 2])))


def concentrated(draw: Chooser, near: float) -> Offer:
    """The same, which claims zCDP."""
    rho = size(draw, near**2 / 16, near**2 / 2)
    return offer(zCDP(rho), normal(mp.sqrt(2 * real(rho)), draw.choice([1, 2])))


def sampled(draw: Chooser, near: float) -> Offer:
    """A normal variable on a sample, for a unit that is removed or one that is added."""
    rate, mu = size(draw, 0.05, 0.7), size(draw, near / 2, 4 * near)
    cells = normal(real(mu), draw.choice([1, 2]), real(rate))
    return offer(SampledGaussianDP(mu, rate), cells if draw.random() < 0.5 else tuple((q, p) for p, q in cells))


# --------------------------------------------------------------------------------------------------- referee


def played(menu: list[Offer], launch: Callable[[object, Offer], object], start: object, draw: Chooser) -> Views:
    """All views of one analyst. `launch(state, offer)` is the state after it, or None where it is refused.

    By chance the analyst takes the largest that fits, the smallest, or any, after each history anew, or stops.
    """
    style = draw.choice(["any", "largest", "smallest", "by the answers"])
    views: Views = []

    def go(state: object, zero: mpf, one: mpf, depth: int) -> None:
        order = list(menu)
        if style == "any" or (style == "by the answers" and depth % 2):
            draw.shuffle(order)
        elif style == "smallest" or (style == "by the answers" and zero < one):
            order.reverse()
        if depth > 0 and not (style == "any" and draw.random() < 0.05):
            for chosen in order:
                after = launch(state, chosen)
                if after is not None:
                    for p, q in chosen.cells:
                        if p or q:
                            go(after, zero * p, one * q, depth - 1 if len(chosen.cells) < 4 else depth - 2)
                    return
        views.append((zero, one))

    go(start, mpf(1), mpf(1), _DEPTH)
    return views


def stick(views: Views, epsilon: mpf) -> mpf:
    """The larger of the two hockey sticks."""
    grown = mp.exp(epsilon)
    one = mp.fsum(p - grown * q for p, q in views if p > grown * q)
    return max(one, mp.fsum(q - grown * p for p, q in views if q > grown * p))


def gaussian_stick(mu: mpf, x: mpf) -> mpf:
    """That of N(mu, 1) against N(0, 1)."""
    root = mp.sqrt(2)
    return (mp.erfc((x / mu - mu / 2) / root) - mp.exp(x) * mp.erfc((x / mu + mu / 2) / root)) / 2


def against_gaussian(views: Views, mu: mpf) -> mpf:
    """The largest share of the Gaussian's hockey stick, at some of the thresholds where views have theirs."""
    ratios = sorted({abs(mp.log(p / q)) for p, q in views if p and q})
    chosen = ratios[:: max(1, len(ratios) // 6)] + ratios[-2:-1]
    return max((stick(views, x) / gaussian_stick(mu, x) for x in [mpf(0), *chosen] if x < 40 * mu), default=mpf(0))


# ----------------------------------------------------------------------------------------------------- games


def admitted_by(rule: Rule) -> Callable[[object, Offer], object]:
    """Launching what a rule admits."""

    def launch(account: object, chosen: Offer) -> object:
        if isinstance(rule, Filter) and not rule.fits(account, chosen.claimed):  # type: ignore[arg-type]
            return None  # a refusal by admit would say what fits instead, which takes longer than the game
        try:
            return rule.admit(account, chosen.claimed)  # type: ignore[arg-type]
        except (BudgetExceeded, NotCovered):
            return None

    return launch


def budget(draw: Chooser) -> ApproxDP:
    """One that a few launches fill."""
    return ApproxDP(size(draw, 0.05, 4), size(draw, 1e-3, 0.3))


def by_size(menu: list[Offer]) -> list[Offer]:
    """From the largest total variation to the smallest."""
    return sorted(menu, key=lambda each: -sum(abs(p - q) for p, q in each.cells))


def within(rule: Rule, menu: list[Offer], promised: ApproxDP, draw: Chooser) -> mpf:
    """The share of a budget's delta that the analyst reaches."""
    views = played(by_size(menu), admitted_by(rule), rule.start(), draw)
    return stick(views, real(promised.epsilon)) / real(promised.delta)


def default_game(draw: Chooser) -> mpf:
    """The default filter, and those of one order, with all kinds of launches."""
    promised = budget(draw)
    options: dict[str, object] = draw.choice([{}, {}, {}, {"by": "gaussian"}, {"by": "renyi"}, {"alpha": 3}])
    near = float(promised.epsilon) * draw.choice([0.5, 0.8, 1.2])
    menu = [pure(draw, near), pure(draw, near / 2)]
    menu += draw.sample(
        [
            approximate(draw, near, promised.delta),
            gaussian(draw, near / 2),
            concentrated(draw, near / 2),
            sampled(draw, near),
        ],
        2,
    )
    return within(Filter(promised, **options), menu, promised, draw)  # type: ignore[arg-type]


def planned_game(draw: Chooser) -> mpf:
    """A planned filter, of one loss or of a list, with launches that were planned and others."""
    promised = budget(draw)
    near = float(promised.epsilon) * draw.choice([0.4, 0.7])
    planned = size(draw, near / 4, near)
    planned = min(planned, promised.epsilon / 3)
    plan: object = PureDP(planned) if draw.random() < 0.6 else [PureDP(planned)] * 2 + [PureDP(planned / 2)]
    rule = Filter.planned(promised, plan)  # type: ignore[arg-type]
    menu = [offer(PureDP(planned), response(planned)), pure(draw, 2 * near), gaussian(draw, near)]
    return within(rule, menu, promised, draw)


def gaussian_game(draw: Chooser) -> mpf:
    """A Gaussian budget, which pays pure launches exactly: compared at every threshold."""
    mu = size(draw, 0.05, 3)
    rule = Filter(GaussianDP(mu))
    menu = [pure(draw, float(mu)), pure(draw, float(mu) / 2), gaussian(draw, float(mu) / 2)]
    return against_gaussian(played(by_size(menu), admitted_by(rule), rule.start(), draw), real(mu))


def odometer_game(draw: Chooser) -> mpf:
    """An analyst who stops before a Gaussian odometer would read more than a threshold."""
    threshold, rule = size(draw, 0.05, 2), Odometer.gaussian()
    near = float(threshold)

    def launch(account: object, chosen: Offer) -> object:
        after = rule.admit(account, chosen.claimed)  # type: ignore[arg-type]
        return after if rule.loss(after).within(GaussianDP(threshold)) else None

    menu = [pure(draw, near), pure(draw, near / 2), gaussian(draw, near / 2)]
    return against_gaussian(played(by_size(menu), launch, rule.start(), draw), real(threshold))


def reading_game(draw: Chooser) -> mpf:
    """An analyst who stops before a reading of launches would exceed a threshold, at neighbours or farther away."""
    promised, distance = budget(draw), draw.choice([1, 1, 2])
    rule = Odometer.approximate(promised.delta, tuned_for=promised.epsilon * size(draw, 0.3, 2))
    near = float(promised.epsilon) * draw.choice([0.5, 0.8])

    def launch(launched: object, chosen: Offer) -> object:
        assert isinstance(launched, tuple)
        after = (*launched, chosen.claimed)
        return after if rule.loss_at(distance, after).within(promised) else None

    def apart(each: Offer) -> Offer:
        loss = each.claimed.loss
        if isinstance(loss, PureDP):
            return offer(PureDP(loss.epsilon / distance), each.cells)
        if isinstance(loss, GaussianDP):
            return offer(GaussianDP(loss.mu / distance), each.cells)
        assert isinstance(loss, zCDP)
        return offer(zCDP(loss.rho / distance**2), each.cells)

    menu = [apart(each) for each in by_size([pure(draw, near), gaussian(draw, near / 2), concentrated(draw, near / 2)])]
    views = played(menu, launch, (), draw)
    return stick(views, real(promised.epsilon)) / real(promised.delta)


def list_game(draw: Chooser) -> mpf:
    """Slots of unlike measures: their product bounds every interleaving, at every epsilon."""
    near = float(size(draw, 0.1, 1))
    kinds = (pure, lambda d, n: approximate(d, n, Fraction(1, 20)), gaussian, concentrated, sampled)
    chosen = [draw.choice(kinds)(draw, near) for _ in range(draw.choice([2, 3]))]
    chosen += [chosen[0]] * draw.choice([0, 2])
    rule = Slots([each.claimed.loss for each in chosen])
    views = played(by_size(chosen), admitted_by(rule), rule.start(), draw)
    epsilon = size(draw, near / 4, 3 * near)
    return stick(views, real(epsilon)) / mpf(max(rule.total.delta_at(epsilon), 1e-30))


def sampled_game(draw: Chooser) -> mpf:
    """Sampled steps under a Renyi budget: the divergence itself, both ways, of a whole order or of one between."""
    order, total = draw.choice([Fraction(2), Fraction(3), Fraction(5), Fraction(5, 2)]), size(draw, 0.02, 1)
    rule = Filter(RenyiDP(order, total))
    near = float(total / order) ** 0.5
    menu = [sampled(draw, near), sampled(draw, 2 * near), pure(draw, near), gaussian(draw, near)]
    views = played(by_size(menu), admitted_by(rule), rule.start(), draw)

    def divergence(pairs: Views) -> mpf:
        alpha = real(order)
        return mp.log(mp.fsum(p**alpha * q ** (1 - alpha) for p, q in pairs)) / (alpha - 1)

    return max(divergence(views), divergence([(q, p) for p, q in views])) / real(total)


KINDS: dict[str, Callable[[Chooser], mpf]] = {
    "default filter": default_game,
    "planned launches": planned_game,
    "Gaussian budget": gaussian_game,
    "Gaussian odometer": odometer_game,
    "reading of launches": reading_game,
    "unlike measures": list_game,
    "sampled steps": sampled_game,
}


SLOW = ("planned launches", "reading of launches", "unlike measures")
"""Kinds that take a tenth of a second and more, of which fewer are played."""


def games(number: int, seed: int) -> Iterator[Found]:
    """Play so many games, each kind in its turn, and the slow ones every third time."""
    rounds = [[item for item in KINDS.items() if item[0] not in SLOW or not turn % 3] for turn in range(3)]
    kinds = [item for each in rounds for item in each] or list(KINDS.items())
    for turn in range(number):
        name, play = kinds[turn % len(kinds)]
        with workdps(30):
            share = play(random.Random(f"{seed} {turn}"))  # noqa: S311 - which games are played is no secret
        yield Found(name, float(share), f"game {turn} of seed {seed}")


def is_broken(found: Found) -> bool:
    """Whether a promise is broken, beyond the rounding of the referee."""
    return found.share > 1 + float(_ROOM) * 1e3


def main() -> int:
    """Play, print a row for each kind; 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.composition.games", description=__doc__.splitlines()[0])
    parser.add_argument("games", type=int)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    shares: dict[str, list[float]] = {name: [] for name in KINDS}
    broken = Counter[str]()
    for number, found in enumerate(games(asked.games, asked.seed), 1):
        shares[found.kind].append(found.share)
        broken[found.kind] += is_broken(found)
        if is_broken(found):
            print(f"BROKEN {found}", flush=True)
        if number == asked.games or number % 1000 == 0:
            print(f"after {number} games:", flush=True)
            for name, each in shares.items():
                most = max(each, default=0.0)
                print(f"{name:20} {len(each):6}, {broken[name]} broken, at most {most:.6f} of the promise", flush=True)
    return int(broken.total() > 0)


if __name__ == "__main__":
    sys.exit(main())
