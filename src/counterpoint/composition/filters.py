"""Filters: launches with adaptively chosen losses, within a budget.

See Haney et al. 2023, Def 2.5, 2.8; Henzinger et al. 2024, Def 12.2.

A filter admits a launch while the accumulator with it stays within the budget, coordinate by coordinate and exactly.
The default theorem for a budget in (epsilon, delta) is the best of basic composition, a Gaussian reserve and Renyi
filters of several orders after reduction to randomized responses (theory, The default filter and The Renyi filter by
reduction; best.py); other measures add up. Refusals are free.

>>> from counterpoint import ApproxDP, Laplace, PureDP
>>> rule = Filter(ApproxDP(1, 1e-6))
>>> account = rule.admit(rule.start(), Laplace(0.6).claim)
>>> rule.remaining(account).epsilon
0.4
>>> rule.admit(account, Laplace(0.5).claim)
Traceback (most recent call last):
...
counterpoint.errors.BudgetExceeded: PureDP(0.5) does not fit: ... and at most PureDP(0.4) more would fit
"""

from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal, Self, get_args

from msgspec.structs import force_setattr

from counterpoint.composition.accumulator import Account, Accumulator, Summand
from counterpoint.composition.advanced import AdvancedSum, Limited, order_for
from counterpoint.composition.best import BestOfSums, union_within
from counterpoint.composition.one_order import OneOrderSum, Terms
from counterpoint.composition.planned import PlannedRest
from counterpoint.composition.readings import read_at
from counterpoint.composition.renyi_sums import ApproximateSum, Tail
from counterpoint.composition.rule import Remaining, Rule
from counterpoint.composition.sums import sum_for
from counterpoint.encoding import Value
from counterpoint.errors import BudgetExceeded, CounterpointError, InvalidParameter, NotCovered, shown
from counterpoint.measures import ApproxDP, GaussianDP, PureDP
from counterpoint.measures.conversions import response_of
from counterpoint.measures.divergences import renyi_offset
from counterpoint.measures.loss import Loss
from counterpoint.numbers import Exact, Number, format_number
from counterpoint.numbers.exact import bounded_down, exact, positive, whole
from counterpoint.numbers.parameters import OrderOrNone, PositiveOrNone, default
from counterpoint.privacy.certificates import Certificate, machine_checked
from counterpoint.privacy.claims import Claim, Interaction
from counterpoint.privacy.relations import Relation

By = Literal["best", "basic", "renyi", "advanced", "gaussian"]


class Filter(Rule, Value, frozen=True):
    """Admits launches while their total stays within `budget`.

    `by` chooses the theorem for an ApproxDP budget: "best" (the default: theory, The default filter), "basic", "renyi"
    (theory, The Renyi filter by reduction), "advanced" (Whitehouse et al. 2023, Thm 1), or "gaussian" (the reserve has
    all slack, zCDP is refused); other budgets have one each: the sum of their own measure.

    `slack` is the part of delta that is given to tail bounds; the rest is kept for the deltas of launches. The default
    filter takes 0.885 delta, or 0.505 delta if the first launch has a delta; the others take half. `alpha` is
    the one Renyi order; without it "renyi" chooses one for the budget, and the default filter uses several. Both are
    fixed in advance. `halt` ends everything at the first refusal, literally as Haney et al. 2023, Alg 3. With
    `launches=K` the launch after the K-th is refused, whatever it costs. `empty` is the sum to compare with the budget,
    where it is not the measure's own: `Odometer.within` gives it. Not covered: optimal composition (fixed parameters
    only: `Slots`), and what each accumulator says.

    >>> from counterpoint import PureDP
    >>> Filter(PureDP(1)).budget, Filter(ApproxDP(1, 1e-6), by="advanced", slack=5e-7).slack
    (PureDP(1), 5e-7)
    """

    budget: Loss
    by: By | None = None
    slack: PositiveOrNone = default(None)
    alpha: OrderOrNone = default(None)
    halt: bool = False
    launches: int | None = None
    empty: Accumulator | None = None

    counts_launches: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Fix everything that the theorem wants fixed in advance; an invalid configuration fails here."""
        if not isinstance(self.budget, Loss):
            is_class = isinstance(self.budget, type)
            given = f"the class {self.budget.__name__}" if is_class else shown(self.budget)
            raise InvalidParameter(f"a budget is a loss, such as PureDP(1) or ApproxDP(1, 1e-6), but {given} was given")
        if self.by is not None and self.by not in get_args(By):
            raise InvalidParameter(f"by is one of {', '.join(get_args(By))}, not {self.by!r}")
        if self.launches is not None:
            force_setattr(self, "launches", whole(self.launches, 1, "launches"))
        if self.empty is not None:
            self._check_given_sum(self.empty)
        elif isinstance(self.budget, ApproxDP):
            self._configure(self.budget)
        elif self.by is not None or self.slack is not None or self.alpha is not None:
            raise InvalidParameter(
                f"by, slack and alpha are for budgets in ApproxDP; {self.budget!r} adds up in its own measure"
            )
        self.start()

    @classmethod
    def planned(cls, budget: Loss, plan: Loss | Iterable[Loss], slack: Number | None = None) -> Self:
        """A filter for launches that are mostly known: one loss (as many as fit), or a list of losses (all of them).

        Those reach the optimum for fixed parameters, and all others are paid from what is left (theory, Planned
        launches), for budgets in ApproxDP. The deltas of the plan are kept for them; with `slack`, all of delta that
        this does not take is for deltas. What was planned is stored with the rule, and never chosen again.

        >>> from counterpoint import ApproxDP, PureDP
        >>> Filter.planned(ApproxDP(3, 1e-6), PureDP(0.1))
        Filter.planned(ApproxDP(3, 1e-6), 46 x PureDP(0.1))
        """
        tail = None if slack is None else positive(slack, "slack")
        return cls(budget, empty=PlannedRest.within(budget, plan, tail))

    def _check_given_sum(self, empty: Accumulator) -> None:
        if not isinstance(empty, Accumulator):
            raise InvalidParameter(
                f"empty is an accumulator, as Odometer.within gives it, not a {type(empty).__name__}"
            )
        if self.by is not None or self.slack is not None or self.alpha is not None:
            raise InvalidParameter("by, slack and alpha choose a sum, and empty is one: give one or the other")
        if not empty.keeps(self.budget):
            raise InvalidParameter(
                f"{self.budget!r} is not a budget for a sum that reads {empty.total!r} before the first launch; give "
                "one of the same measure and order, at the same delta or a larger one"
            )

    def _configure(self, budget: ApproxDP) -> None:
        by = self.by or ("best" if budget.delta else "basic")
        force_setattr(self, "by", by)
        if by == "basic":
            if self.slack is not None or self.alpha is not None:
                raise InvalidParameter("basic composition has no tail bound: leave out slack and alpha")
            return
        if budget.delta == 0:
            raise InvalidParameter(f"{by} needs a delta above 0 in the budget; with none, use basic")
        if self.slack is not None and (self.slack > budget.delta or self.slack >= 1):
            raise InvalidParameter(
                f"slack must be below 1 and at most the budget's delta {format_number(budget.delta)}, not "
                f"{format_number(self.slack)}"
            )
        if by in ("advanced", "gaussian") and self.alpha is not None:
            raise InvalidParameter(f"{by} composition has no Renyi order: leave out alpha")
        if by == "best" and self.alpha is None:
            return  # several orders, and the first launch decides on the slack: see best.py
        slack = exact(budget.delta / 2, "half of the budget's delta") if self.slack is None else self.slack
        force_setattr(self, "slack", slack)
        if by in ("advanced", "gaussian"):
            return
        alpha = order_for(budget.epsilon, slack) if self.alpha is None else self.alpha
        renyi_offset(alpha, slack)  # an order so near to 1 that it has none is refused here, not at the first launch
        force_setattr(self, "alpha", alpha)

    def __repr__(self) -> str:
        """The budget, and what was chosen otherwise than by default."""
        budget, by, slack, alpha = self.budget, self.by, self.slack, self.alpha
        if self.empty is not None:
            if isinstance(self.empty, PlannedRest):
                return f"Filter.planned({', '.join([repr(budget), repr(self.empty), *self._shown_limits()])})"
            shown = [repr(budget), f"empty={self.empty!r}"]
            return f"Filter({', '.join(shown + self._shown_limits())})"
        chosen = [f"by={by!r}"] if by != Filter(budget).by else []
        chosen += [f"slack={format_number(slack)}"] if slack is not None and slack != Filter(budget, by).slack else []
        chosen += (
            [f"alpha={format_number(alpha)}"] if alpha is not None and alpha != Filter(budget, by, slack).alpha else []
        )
        return f"Filter({', '.join([repr(self.budget), *chosen, *self._shown_limits()])})"

    def _shown_limits(self) -> list[str]:
        shown = ["halt=True"] if self.halt else []
        return shown if self.launches is None else [*shown, f"launches={self.launches}"]

    @property
    def halts(self) -> bool:
        """Whether the first refusal ends the session: `halt`."""
        return self.halt

    def start(self) -> Accumulator:
        """Nothing launched: the sum of the budget's own measure, or of the theorem that `by` names."""
        empty = self._sum()
        return empty if self.launches is None else Limited(empty, self.launches)

    def _sum(self) -> Accumulator:
        budget = self.budget
        if self.empty is not None:
            return self.empty
        if self.by in (None, "basic"):
            return sum_for(budget)
        assert isinstance(budget, ApproxDP)
        if self.by == "best" and self.alpha is None:
            return BestOfSums(union_within(budget, self.slack))
        assert self.slack is not None
        if self.by == "advanced":
            return AdvancedSum(budget.delta, self.slack)
        if self.by == "gaussian":
            return OneOrderSum(Terms(budget, self.slack, None))
        assert self.alpha is not None
        if self.by == "renyi":
            return ApproximateSum(Tail(budget.delta, self.slack, self.alpha), None)
        return OneOrderSum(Terms(budget, self.slack, self.alpha))

    def admit(self, account: Account, claim: Claim) -> Accumulator:
        """The account with this launch, or `BudgetExceeded` with what would fit."""
        before = _accumulator(account)
        after = before.plus(claim.loss, claim.interaction)
        if not after.keeps(self.budget):
            raise self._exceeded(before, claim.loss)
        return after

    def refunded(self, account: Account, child: Rule, charge: Claim, launched: Sequence[Claim]) -> Accumulator:
        """The account with a child's launches in the place of its charge, where these can never have been more.

        A child with a budget in PureDP in every plain sum, one with basic (epsilon, delta) composition in those of an
        ApproxDP budget, and one of the same measure in the others (theory, Returning).
        """
        if not isinstance(child, Filter) or child.empty is not None or not self._adds_up_as(child):
            raise NotCovered(
                f"what was left unused under {child!r} cannot be returned to {self!r}: its launches may count for more "
                "here than its charge (theory, Returning). Delegate a budget in PureDP, or in the measure of this one, "
                "to have it back"
            )
        counted = [Summand(claim.loss, claim.interaction) for claim in launched]
        before = _accumulator(account)
        after = before.refunded(self.budget, Summand(charge.loss, charge.interaction), counted)
        return after if after.keeps(self.budget) else before  # rounded up launch by launch, it may pass the charge

    def _adds_up_as(self, child: "Filter") -> bool:
        """Whether launches that a child admits never count for more here, together, than its budget does."""
        if isinstance(child.budget, PureDP):
            return True
        if isinstance(child.budget, ApproxDP):
            return child.by == "basic" and isinstance(self.budget, ApproxDP)
        if isinstance(child.budget, GaussianDP):
            return isinstance(self.budget, GaussianDP)
        return sum_for(child.budget) == sum_for(self.budget)

    def _exceeded(self, account: Accumulator, loss: Loss) -> BudgetExceeded:
        fitting = account.largest_fitting(self.budget)
        spent = f"{account.total!r} of {self.budget!r} is spent"
        return BudgetExceeded(
            f"{loss!r} does not fit: {spent}, and {self._why(account, loss)}at most {fitting!r} more would fit",
            requested=loss,
            remaining=self.remaining(account),
            would_fit=fitting,
        )

    def _why(self, account: Accumulator, loss: Loss) -> str:
        """What stands in the way, where it is not the epsilon; and a budget that would take the launch."""
        response, left = response_of(loss), account.delta_left(self.budget)
        if isinstance(self.budget, ApproxDP) and response is not None and response[1] > left:
            room = format_number(left)
            return f"its delta is too large: {room} of delta is left for the deltas of launches (slack= divides it); "
        if isinstance(loss, GaussianDP) and isinstance(self.budget, ApproxDP) and 0 < self.budget.delta < 1:
            epsilon, delta = self.budget.epsilon, self.budget.delta
            if loss.within(GaussianDP.for_budget(epsilon, delta)):
                named = f"{format_number(epsilon)}, {format_number(delta)}"
                return f"a budget of GaussianDP.for_budget({named}) would take it when empty; "
        return ""

    def fits(self, account: Account, launch: Claim | Loss) -> bool:
        """Whether a launch with this claim would be admitted; the dry run of `admit`.

        A bare loss may belong to a mechanism that interacts without end: some theorems refuse it where they would admit
        the claim of a mechanism that answers once.

        >>> from counterpoint import Laplace, PureDP
        >>> rule = Filter(PureDP(1))
        >>> rule.fits(rule.start(), PureDP(1)), rule.fits(rule.start(), Laplace("1.000000000001").claim)
        (True, False)
        """
        if not isinstance(launch, Claim | Loss):
            raise InvalidParameter(f"fits takes a claim or a loss, not a {type(launch).__name__}")
        before = _accumulator(account)
        loss, interaction = (launch.loss, launch.interaction) if isinstance(launch, Claim) else (launch, "endless")
        try:
            return before.plus(loss, interaction).keeps(self.budget)
        except CounterpointError:
            return False

    def would_admit(self, account: Account, launch: Claim | Loss, most: int = 10**5) -> int:
        """How many more launches with this claim would be admitted, one after another; `most` if there are more.

        >>> from counterpoint import PureDP
        >>> rule = Filter(PureDP(1))
        >>> rule.would_admit(rule.start(), PureDP("0.3"))
        3
        """
        if not isinstance(launch, Claim | Loss):
            raise InvalidParameter(f"would_admit takes a claim or a loss, not a {type(launch).__name__}")
        spent = _accumulator(account)
        loss, interaction = (launch.loss, launch.interaction) if isinstance(launch, Claim) else (launch, "endless")
        for admitted in range(whole(most, 0, "most")):
            try:
                spent = spent.plus(loss, interaction)
            except CounterpointError:
                return admitted
            if not spent.keeps(self.budget):
                return admitted
        return most

    def remaining(self, account: Account) -> Remaining:
        """The largest pure loss that `admit` would still take (to 12 digits, rounded down), and the delta left."""
        spent = _accumulator(account)
        return Remaining(
            Exact(bounded_down(spent.headroom(self.budget))), Exact(bounded_down(spent.delta_left(self.budget)))
        )

    def loss(self, account: Account) -> Loss:
        """What has been lost so far: nothing, before the first launch.

        >>> from counterpoint import ApproxDP
        >>> rule = Filter(ApproxDP(1, 1e-6))
        >>> rule.loss(rule.start())
        ApproxDP(0, 0)
        """
        spent = _accumulator(account)
        return self.budget.group(0) if spent == self.start() else spent.total

    def loss_at(self, distance: int, launched: Iterable[Claim]) -> Loss:
        """The group losses of the launches, added up: an odometer's reading, at the budget's delta if it has one.

        The filter's refusals only restrict the analyst, so the reading is valid under a filter, too (theory, Groups).
        `budget.group(distance)` is a second bound, for the whole session and at a delta of its own.

        >>> from counterpoint import Laplace, PureDP
        >>> Filter(PureDP(1)).loss_at(3, [Laplace(0.1).claim, Laplace(0.2).claim])
        PureDP(0.9)
        """
        return read_at(distance, launched, self._sum())

    def used(self, account: Account, parts: int) -> int:
        """How many of `parts` equal parts of the budget are spent, rounded up; more than all if it does not hold.

        >>> from counterpoint import Laplace, PureDP
        >>> rule = Filter(PureDP(1))
        >>> rule.used(rule.admit(rule.start(), Laplace("1/3").claim), 1000)
        334
        """
        return _accumulator(account).total.used_of(self.budget, parts)

    @property
    def interaction(self) -> Interaction:
        """How a composition under the sum of this filter interacts."""
        return self.start().interaction

    def bound(self, relation: Relation) -> Loss:
        """The budget, on data with any relation."""
        return self.budget

    def promise(self, relation: Relation) -> Certificate:
        """The budget is never exceeded, whatever is launched."""
        statement = f"{self.budget!r} whatever is launched, with adaptively chosen losses"
        return Certificate(statement, self._cited(self.start()))

    def certificate(self, account: Account) -> Certificate:
        """Why the loss so far is what it is, and that the budget will hold."""
        statement = f"{self.loss(account)!r} lost so far, and never more than {self.budget!r}"
        total = _accumulator(account)
        summed = total.certificate
        return Certificate(
            statement,
            "Haney et al. 2023, Def 2.5; Henzinger et al. 2024, Def 12.2",
            (Certificate(summed.statement, self._cited(total), summed.premises),),
        )

    def _cited(self, total: Accumulator) -> str:
        """The theorem of a sum as a certificate names it.

        Coq has checked sessions under the bare rule of a sum; one that refuses more is a rule among all others there.
        """
        bare = not self.halt and self.launches is None and self.empty is None
        checked = total.checked if bare or total.checked is None else _OF_ANY_RULE.get(total.checked, total.checked)
        return machine_checked(total.theorem, checked, total.checked_only)


_OF_ANY_RULE = {"pure_admission": "rule_pure", "basic_admission": "rule_approximate"}
"""What Coq has checked of every rule, in the place of what it has checked of one."""


def _accumulator(account: Account) -> Accumulator:
    if isinstance(account, Accumulator):
        return account
    raise InvalidParameter(f"the account of a Filter is an accumulator, not a {type(account).__name__}")
