"""Random histories of launches, and what `Filter.admit` says of each launch, to compare with the functions in Coq.

Losses are multiples of a grain that divides the budget, now and then off by a tiny amount, so that histories often
reach the budget exactly: there a rule that admits one too many would differ.
"""

import random
from collections.abc import Iterator
from fractions import Fraction

from tests.proofs.coq import History, Loss

from counterpoint import ApproxDP, Filter, PureDP
from counterpoint.errors import BudgetExceeded
from counterpoint.measures.loss import Loss as AnyLoss
from counterpoint.privacy.claims import Claim, claim
from counterpoint.privacy.relations import every_step

SEED = 20240601
TINY = Fraction(1, 10**12)


def random_histories(count: int, seed: int = SEED) -> Iterator[History]:
    """So many histories, the same ones for a seed."""
    draw = random.Random(seed)  # noqa: S311
    for _ in range(count):
        parts = draw.randint(1, 12)
        budget = (Fraction(draw.randint(1, 400), draw.randint(1, 120)), Fraction(draw.randint(0, 90), 1000))
        launches = draw.randint(1, 9)
        yield budget, [(_near(draw, budget[0], parts), _near(draw, budget[1], parts)) for _ in range(launches)]


def _near(draw: random.Random, limit: Fraction, parts: int) -> Fraction:
    amount = limit * draw.randint(0, parts) / parts
    if draw.random() < 0.1:
        amount += draw.choice((TINY, -TINY))
    return max(amount, Fraction(0))


def admitted(rule: Filter, losses: list[AnyLoss]) -> str:
    """A 1 for each launch that the filter admits, a 0 for each that it refuses."""
    account, verdicts = rule.start(), ""
    for loss in losses:
        try:
            account = rule.admit(account, _claimed(loss))
            verdicts += "1"
        except BudgetExceeded:
            verdicts += "0"
    return verdicts


def verdicts_of_the_code(history: History) -> tuple[str, str]:
    """What the pure filter and the basic (epsilon, delta) filter admit."""
    (epsilon, delta), losses = history
    pure = admitted(Filter(PureDP(epsilon)), [PureDP(e) for e, _ in losses])
    basic = admitted(Filter(ApproxDP(epsilon, delta), by="basic"), [ApproxDP(*loss) for loss in losses])
    return pure, basic


def differences(histories: list[History], found: list[tuple[str, str]]) -> list[str]:
    """Where the code and the Coq functions disagree."""
    assert len(found) == len(histories)
    return [
        f"{_shown(history[0])}: {' '.join(map(_shown, history[1]))}: Filter.admit {code}, Coq {coq}"
        for history, coq in zip(histories, found, strict=True)
        if (code := verdicts_of_the_code(history)) != coq
    ]


def _claimed(loss: AnyLoss) -> Claim:
    return claim(loss, every_step(), "a random history")


def _shown(loss: Loss) -> str:
    return f"({loss[0]}, {loss[1]})"
