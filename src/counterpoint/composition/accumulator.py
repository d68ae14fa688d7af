"""Accumulators: losses in, total loss out, in constant time and space per launch.

A filter compares an accumulator's total with a budget, and an odometer reports it (Haney et al. 2023, Lemma 2.19), so
each theorem is written once. An accumulator is a frozen value: adding a loss gives a new one. Sums are exact; an
irrational amount is rounded up at 50 digits before it is added, so no amount is ever absorbed.

Each sum has one table, `ENTERS`, from a measure to what its losses add: the list of what the theorem covers. It is no
list of conversions, because a theorem may refuse a loss that converts. Any other loss raises `NotCovered`.

>>> from counterpoint import PureDP
>>> from counterpoint.composition.sums import PureSum
>>> spent = PureSum()
>>> for _ in range(10):
...     spent = spent + PureDP(0.1)
>>> spent.total, spent.keeps(PureDP(1)), (spent + PureDP("1e-12")).keeps(PureDP(1))
(PureDP(1), True, False)
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any, NamedTuple, NoReturn, Self, TypeAlias, TypeVar

from counterpoint.encoding import Tagged
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.measures import PureDP
from counterpoint.measures.loss import Loss
from counterpoint.numbers.exact import bounded_down
from counterpoint.privacy.certificates import Certificate, machine_checked
from counterpoint.privacy.claims import Interaction

ZERO = Fraction(0)

Amount = TypeVar("Amount")
Entries: TypeAlias = dict[type[Loss], Callable[[Any, Interaction], Amount | None]]
"""From a measure to what one of its losses adds, launched with an interaction; None where the theorem refuses that."""


def entry(entries: Entries[Amount], loss: Loss, interaction: Interaction) -> Amount | None:
    """What a loss adds by the table of a theorem; None if the theorem does not cover it.

    The type is looked up exactly: a subclass is covered only if the table lists it, too.
    """
    enters = entries.get(type(loss))
    return None if enters is None else enters(loss, interaction)


def named(measures: Iterable[type[Loss]]) -> str:
    """Measures in words: "PureDP, zCDP and GaussianDP"."""
    *names, last = [measure.__name__ for measure in measures]
    return f"{', '.join(names)} and {last}" if names else last


class Summand(NamedTuple):
    """A launch, as a sum counts it."""

    loss: Loss
    interaction: Interaction = "endless"


class Tuned(NamedTuple):
    """An (epsilon, delta) near which a reading is tight, and the slack; None where the first launch decides on it."""

    epsilon: Fraction
    delta: Fraction
    slack: Fraction | None


class Account(Tagged):
    """What a rule remembers of the launches so far: a frozen value whose size does not grow with their number."""

    __slots__ = ()


class Accumulator(Account):
    """The sum of one theorem: losses in, total out.

    A new one defines `theorem`, `plus` and `total`, and what would still fit into a budget of its measure: `headroom`
    if it takes pure launches, `largest_fitting` otherwise. One line in `sums.SUMS` lets budgets of its measure use it.
    """

    __slots__ = ()

    @classmethod
    def for_budget(cls, budget: Loss) -> Self:
        """The empty sum that a filter with this budget starts from."""
        return cls()

    @classmethod
    def for_odometer(cls) -> Self:
        """The empty sum of an odometer; `NotCovered` if the sum wants something fixed in advance."""
        return cls()

    @property
    @abstractmethod
    def theorem(self) -> str:
        """The theorem that the total rests on."""

    @property
    def checked(self) -> str | None:
        """The statement in `proofs/` that Coq has checked about this very sum; None for none."""
        return None

    @property
    def checked_only(self) -> str:
        """What of the theorem that statement covers, where it is not all of it."""
        return ""

    @property
    def cited(self) -> str:
        """The theorem as a certificate names it."""
        return machine_checked(self.theorem, self.checked, self.checked_only)

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

    def headroom(self, budget: Loss) -> Fraction:
        """The largest further pure epsilon within a budget of the total's measure, rounded down; 0 for none."""
        return ZERO

    def delta_left(self, budget: Loss) -> Fraction:
        """How much the deltas of further launches may add up to; 0 where the sum takes none."""
        return ZERO

    def largest_fitting(self, budget: Loss) -> Loss:
        """The largest further loss within a budget, as a refusal shows it: pure, where pure launches are covered."""
        return PureDP(bounded_down(self.headroom(budget)))

    @property
    def tuned(self) -> "Tuned | None":
        """What a reading of single launches is tuned for (see `readings.py`); None where `at_launches` reads them."""
        return None

    def at_launches(self) -> "Accumulator":
        """The empty sum by which the launches are read, one by one, at any distance; `self` is empty (theory, Groups).

        Itself, where every total is an odometer's reading.
        """
        return self

    def after(self, launches: Iterable[Summand]) -> Self:
        """The sum after these launches."""
        return reduce(lambda spent, launch: spent.plus(*launch), launches, self)

    def refunded(self, budget: Loss, charge: Summand, launches: Sequence[Summand]) -> Self:
        """The sum with these launches in the place of one charge that no sum of them exceeds (theory, Returning).

        Only for sums that do not depend on the order of launches; a part that no longer counts stays out.

        >>> from counterpoint.composition.sums import PureSum
        >>> spent = PureSum() + PureDP(0.5) + PureDP(0.1)
        >>> spent.refunded(PureDP(1), Summand(PureDP(0.5)), [Summand(PureDP(0.2))]).total
        PureDP(0.3)
        """
        return self._without(charge).after(launches)

    def _without(self, charge: Summand) -> Self:
        """The sum before a charge that is in it, wherever it stands, without the very amount that was added."""
        raise NotCovered(
            f"{type(self).__name__} is not a plain sum, so the unused part of a charge cannot be taken out of it "
            "(theory, Returning)"
        )

    @property
    def certificate(self) -> Certificate:
        """Why the total is what it is."""
        return Certificate(f"{self.total!r} for the launches so far", self.cited)

    def _limits(self, budget: Loss, measure: type[Loss]) -> tuple[Fraction, ...]:
        """The numbers that a budget limits; refused if it is not a budget of the measure that is summed here."""
        if not isinstance(budget, measure):
            raise self._another_measure(budget, measure)
        return budget.amounts

    def _another_measure(self, budget: Loss, measure: type[Loss]) -> InvalidParameter:
        return InvalidParameter(f"{type(self).__name__} adds up {measure.__name__}; {budget!r} is not a budget for it")

    def _not_covered(self, loss: Loss | str, covered: str) -> NoReturn:
        raise NotCovered(f"{self.theorem} does not cover {loss}; it covers {covered}")
