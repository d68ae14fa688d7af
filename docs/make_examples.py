"""Writes docs/worked_examples.md: the worked examples of Haney et al. 2023 and Henzinger et al. 2024, computed.

Every number comes from the code that runs: sessions, rules and exact games. Run by `make docs`; a test compares the
page with what the code computes.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import counterpoint as cp
from counterpoint.composition.odometers import truncated
from counterpoint.encoding import Value
from counterpoint.mechanisms.concurrent import Concurrent, Launch
from counterpoint.numbers import format_number
from counterpoint.privacy.messages import Ask, Gap, Message, ToChild
from counterpoint.privacy.relations import Pair, Relation, Steps, every_step, first_pair_consistent, k_sparse
from counterpoint.verify.exact_loss import ExactLoss, exact
from counterpoint.verify.finite import FiniteMechanism, OpenDoor, Outcome, side_by_side
from counterpoint.verify.game import CreatedFirst

PAGE = Path(__file__).parent / "worked_examples.md"
SEVENTH = Fraction(1, 7)


def story() -> Iterator[str]:
    """A filter, as Haney et al. 2023, Alg 3 has it: what each launch does, and that asks cost nothing."""
    session = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1))
    first = session.launch(cp.Laplace(epsilon="0.5", asks=2))
    yield _step("launch `Laplace(0.5, asks=2)`", "admitted", session)
    second = session.launch(cp.Laplace(epsilon="0.3", asks=2))
    yield _step("launch `Laplace(0.3, asks=2)`", "admitted", session)
    for asked in (first, second):
        asked.ask(cp.total())
    yield _step("ask the first, then the second", "answered", session)
    yield _step("launch `Laplace(0.4)`", _refused(session, cp.Laplace(epsilon="0.4")), session)
    session.launch(cp.Laplace(epsilon="0.2"))
    yield _step("launch `Laplace(0.2)`", "admitted", session)
    for asked in (second, first):
        asked.ask(cp.total())
    yield _step("ask the second, then the first", "answered", session)


def _refused(session: cp.Session, mechanism: cp.Laplace) -> str:
    try:
        session.launch(mechanism)
    except cp.BudgetExceeded:
        return "refused, at no cost"
    raise AssertionError("the budget is exceeded")


def _step(what: str, happened: str, session: cp.Session) -> str:
    return f"| {what} | {happened} | {session.loss!r} | {format_number(session.remaining.epsilon)} |"


def interleaved() -> float:
    """The exact loss of two randomized responses that are launched and asked in any order (Haney et al. 2023, Thm
    1.19).
    """
    response = cp.RandomizedResponse("0.5")
    pairs: list[Pair] = [(Ask(Launch(response)), Ask(Launch(response)))]
    pairs += [(Ask(ToChild(n), 0), Ask(ToChild(n), 1)) for n in range(3)]
    return exact(Concurrent(cp.Filter(cp.PureDP(1)), every_step()), messages=pairs, rounds=6).epsilon_at(0)


def readings() -> tuple[list[str], int]:
    """What an odometer reads after each launch, and how many answers a threshold of 1 keeps."""
    rule = cp.Odometer(cp.PureDP)
    account, read = rule.start(), []
    for epsilon in ("0.5", "0.3", "0.2", "0.4"):
        account = rule.admit(account, cp.Laplace(epsilon).claim)
        read.append(rule.loss(account))
    return list(map(repr, read)), len(truncated([(loss, None) for loss in read], cp.PureDP(1)))


def doors(copies: int, first_pair: bool = False) -> Fraction:
    """The exact delta at epsilon 0 of copies of M_delta (Henzinger et al. 2024, Thm 5.2), of which data reach one."""
    inner = Steps(asks=1)
    relation = first_pair_consistent(1, inner) if first_pair else k_sparse(1, inner)
    rule = cp.Parallel(1, cp.ApproxDP(0, SEVENTH), delta_total=None if first_pair else 1, first_pair=first_pair)
    pairs: list[Pair] = [(Ask(Launch(OpenDoor(SEVENTH))), Ask(Launch(OpenDoor(SEVENTH))))]
    pairs += [(Ask(ToChild(n), 0), Ask(ToChild(n), bit)) for n in range(copies) for bit in (0, 1)]
    created = CreatedFirst(relation, copies)
    loss = exact(Concurrent(rule, relation), created, messages=pairs, rounds=2 * copies + 1, rational=True)
    return _exactly(loss)


def _exactly(loss: ExactLoss) -> Fraction:
    lower, upper = loss.bounds_at_growth(1)
    assert lower == upper
    return Fraction(upper)


def charged(copies: int) -> Fraction:
    """The deltas of this number of created copies, as `Parallel` charges them (Henzinger et al. 2024, Thm 5.4)."""
    rule = cp.Parallel(1, cp.ApproxDP(0, SEVENTH), delta_total=1)
    account = rule.start()
    for _ in range(copies):
        account = rule.admit(account, OpenDoor(SEVENTH).claim)
    return account.exposed


class OneSecondDiffers(Relation, Value, frozen=True):
    """Of copies that are asked by number, one receives a second message that differs."""

    def begin(self) -> object:
        """None asked, none differed."""
        return (), False

    def _advance(self, progress: object, left: Message, right: Message, distance: Gap) -> object:
        assert isinstance(progress, tuple) and isinstance(left, Ask)
        started, differed = progress
        if distance.l1 and (left.public not in started or differed):
            return None
        return tuple(sorted({*started, left.public})), differed or distance.l1 > 0

    def within(self, other: Relation) -> bool:
        """In itself alone."""
        return other == self


def renyi_in_parallel(copies: int) -> float:
    """The divergence of order 2 of machines that are hot with probability 1/8 and then repeat a bit with 9/10."""
    hot, truth = Fraction(1, 8), Fraction(9, 10)
    response = (Outcome(truth, 0), Outcome(1 - truth, 1)), (Outcome(1 - truth, 0), Outcome(truth, 1))
    first = Outcome(hot, "hot", 1), Outcome(1 - hot, "cold", 2)
    cold = (Outcome(1, "cold"),)
    one = several = FiniteMechanism((((first, first),), (response,), ((cold, cold),)))
    for _ in range(copies - 1):
        several = side_by_side(several, one)
    pairs: list[Pair] = [(Ask(n, 0), Ask(n, bit)) for n in range(copies) for bit in (0, 1)]
    return exact(several, messages=pairs, rounds=2 * copies, relation=OneSecondDiffers()).renyi_at(2)


TEXT = """# Worked examples

The worked examples of Haney et al. 2023 and Henzinger et al. 2024, computed by the code that runs. `make docs` makes
this page, and a test compares it with what the code computes. Those of Whitehouse et al. 2023 are on the page
[Tightness](tightness.md); the histogram and the cores of Henzinger et al. 2024, sec. 7 and sec. 9, are in the guide
([Histogram](guide/histogram.md), [The local model](guide/local.md)).

## Filters and odometers

Haney et al. 2023, Alg 3: a session with the budget PureDP(1). Privacy is paid for at launch; a refusal costs nothing,
and what was launched answers on.

| step | | lost | largest further PureDP |
|---|---|---|---|
{story}

Launches and asks may be interleaved (Thm 1.19): under the same filter, two randomized responses with epsilon 0.5,
launched and asked in any order by the best adversary, lose an epsilon of {interleaved:.6f}.

An odometer has no budget (Alg 6). After launches of 0.5, 0.3, 0.2 and 0.4 it reads
{readings}. For the threshold PureDP(1), fixed in advance, the truncated view
(Def 1.13) keeps the answers of the first {kept}: equality stays in.

## Parallel composition

Henzinger et al. 2024, Thm 5.2: M_delta answers "open" with probability delta and then repeats its next input. One copy
is (0, delta)-DP. Of l copies data reach only one, but the adversary looks at all of them and sends the difference to
one that is open. With delta = 1/7, exactly, over all adversaries:

| copies | claimed by one | exact | charged by `Parallel` (Thm 5.4) | exact, first-pair consistent (Thm 5.14) |
|---|---|---|---|---|
{doors}

Thm 13.5, in the corrected form of errata, Henzinger E13: machines that are hot with probability 1/8, and then repeat a
bit truthfully with probability 9/10. Their Renyi divergence of order 2 grows with the number of copies, though only one
is reached; so Renyi losses in parallel are refused on data that change.

| copies | exact divergence of order 2 |
|---|---|
{renyi}
"""


def written() -> str:
    """The page."""
    read, kept = readings()
    rows = [
        f"| {n} | 1/7 | {_both(doors(n))} | {_both(charged(n))} | {format_number(doors(n, first_pair=True))} |"
        for n in (1, 2, 3)
    ]
    return TEXT.format(
        story="\n".join(story()),
        interleaved=interleaved(),
        readings=", ".join(read),
        kept=kept,
        doors="\n".join(rows),
        renyi="\n".join(f"| {n} | {renyi_in_parallel(n):.6f} |" for n in (1, 2, 3)),
    )


def _both(value: Fraction) -> str:
    rounded = math.floor(value * 10**4) / 10**4
    return f"{value.numerator}/{value.denominator}, {rounded:.4f}"


def main() -> None:
    """Write the page."""
    PAGE.write_text(written(), encoding="utf-8")


if __name__ == "__main__":
    main()
