"""Accumulators: losses in, total loss out, in constant time and space per launch however long the history.

An accumulator is a frozen value; adding a loss gives a new one. A filter compares it with a budget, an odometer reports
it (Haney et al. 2023, Lemma 2.19), so each theorem is written once. Sums are exact; an irrational amount is rounded up
at 50 digits before it is added, so no amount is ever absorbed. A loss that the theorem does not cover is `NotCovered`.

Each measure's file has the accumulator of that measure (`PureSum` beside `PureDP`); `Loss.accumulator` hands it out.

>>> from counterpoint import PureDP
>>> spent = PureDP(1).accumulator()
>>> for _ in range(10):
...     spent = spent + PureDP(0.1)
>>> spent.total, spent.keeps(PureDP(1)), (spent + PureDP("1e-12")).keeps(PureDP(1))
(PureDP(1), True, False)
"""

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from typing import Literal, NamedTuple, NoReturn, Self, TypeAlias

from counterpoint.encoding import Tagged
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.measures.loss import Loss
from counterpoint.numbers.exact import bounded_down
from counterpoint.privacy.certificates import Certificate

Interaction: TypeAlias = Literal["one-shot", "finite", "memoryless", "endless"]
"""How a mechanism interacts, as far as theorems ask.

- one-shot: one answer and no state.
- finite: a bounded number of messages, each with finitely many answers (theory, f-DP in general).
- memoryless: every answer is a postprocessing of a draw of its own, whatever came before, so that for any two
  neighbours the whole conversation is a postprocessing of one draw that could be made at launch, and that has the
  claimed loss itself.
- endless: none of these is known.

The theorems about sequences of non-interactive mechanisms (Whitehouse et al. 2023) need one-shot mechanisms; those
about f-DP (Haney et al. 2023, Thm 1.20; Henzinger et al. 2024, sec. 14) need finite communication, which only serves
to find the draw that a memoryless mechanism has anyway (theory, Gaussian budgets).
"""

ZERO = Fraction(0)


class Summand(NamedTuple):
    """A launch, as a sum counts it."""

    loss: Loss
    interaction: Interaction = "endless"


class Account(Tagged):
    """What a rule remembers of the launches so far: a frozen value whose size does not grow with their number."""

    __slots__ = ()


class Accumulator(Account):
    """The sum of one theorem: losses in, total out.

    A new one defines `theorem`, `plus` and `total`, and what a budget of its measure still has room for: `room` if it
    takes pure launches, `fitting` otherwise.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def theorem(self) -> str:
        """The theorem that the total rests on."""

    @abstractmethod
    def plus(self, loss: Loss, interaction: Interaction = "endless") -> Self:
        """The accumulator after one more launch; `NotCovered` if the theorem says nothing about such a loss."""

    @property
    @abstractmethod
    def total(self) -> Loss:
        """What the launches so far have lost together."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.total!r})"

    def __add__(self, loss: Loss) -> Self:
        return self.plus(loss)

    @property
    def interaction(self) -> Interaction:
        """How a composition of launches that are added up here interacts, whatever is launched."""
        return "endless"

    def keeps(self, budget: Loss) -> bool:
        """Whether the total is within a budget."""
        return self.total.within(budget)

    def room(self, budget: Loss) -> Fraction:
        """The largest further pure epsilon within a budget of the total's measure, rounded down; 0 for none."""
        return ZERO

    def delta_left(self, budget: Loss) -> Fraction:
        """How much the deltas of further launches may add up to; 0 where the sum takes none."""
        return ZERO

    def fitting(self, budget: Loss) -> Loss:
        """The largest further loss within a budget, as a refusal shows it: pure, where pure launches are covered."""
        from counterpoint.measures.pure import PureDP  # noqa: PLC0415 - the base meets its heirs at use

        return PureDP(bounded_down(self.room(budget)))

    def at_distance(self, distance: int) -> "Accumulator":
        """The empty sum by which losses between data at this distance are read; `self` is empty (theory, Groups).

        Itself, where every total is an odometer's reading. Its constants depend on `self` and the distance alone.
        """
        return self

    def recounted(self, budget: Loss, charge: Summand, launches: Sequence[Summand]) -> Self:
        """The sum with these launches in the place of one charge that no sum of them exceeds (theory, Returning).

        Only where losses add up whatever their order; a part that is out for this budget stays out.

        >>> from counterpoint import PureDP
        >>> spent = PureDP(1).accumulator() + PureDP(0.5) + PureDP(0.1)
        >>> spent.recounted(PureDP(1), Summand(PureDP(0.5)), [Summand(PureDP(0.2))]).total
        PureDP(0.3)
        """
        return reduce(lambda spent, launch: spent.plus(*launch), launches, self._without(charge))

    def _without(self, charge: Summand) -> Self:
        """The sum before a charge that is in it, wherever it stands, without the very amount that was added."""
        raise NotCovered(
            f"{type(self).__name__} is no plain sum: what a charge has left unused cannot be taken out of it again "
            "(theory, Returning)"
        )

    @property
    def certificate(self) -> Certificate:
        """Why the total is what it is."""
        return Certificate(f"{self.total!r} for the launches so far", self.theorem)

    def _limits(self, budget: Loss, measure: type[Loss]) -> tuple[Fraction, ...]:
        """The numbers that a budget limits; refused if it is not a budget of the measure that is summed here."""
        if not isinstance(budget, measure):
            raise InvalidParameter(f"{type(self).__name__} adds up {measure.__name__}; {budget!r} is no budget for it")
        return budget.amounts

    def _not_covered(self, loss: Loss | str, covered: str) -> NoReturn:
        raise NotCovered(f"{self.theorem} does not cover {loss}; it covers {covered}")
