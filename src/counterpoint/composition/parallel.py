"""Parallel composition: any number of parts, of which neighbouring data reach at most k (Henzinger et al. 2024).

What is promised depends on how the data may change. Pure losses: the cost of k mechanisms (Henzinger et al. 2024, Cor
5.5). If it is settled before a part's first answer whether the part is affected, as in a static table: the cost of k in
every measure (Henzinger et al. 2024, Thm 5.14, Cor 5.15, 13.7, 14.9). Otherwise an approximate mechanism that is *not*
affected still counts: an adversary may create many, wait for one that has failed and send it the difference (Henzinger
et al. 2024, Thm 5.2), so that every created delta_j is charged to `delta_total`: 1 - prod(1 - delta_j) <= delta_total
(Henzinger et al. 2024, Thm 5.4, for symmetric relations; for an asymmetric one with k >= 2 it is 2 delta_j, errata,
Henzinger E1). Renyi losses on such data have no theorem (Henzinger et al. 2024, Thm 13.5) and are refused.

The parts are a postprocessing of k randomized responses that are drawn at the start and used when a part is first
affected. So alone they cost the optimal composition of k, and inside another composition k launches, all or none, by
that composition's rule (`charges`).

>>> from counterpoint import ApproxDP, Parallel, PureDP
>>> from counterpoint.privacy.relations import every_step, k_sparse
>>> parts = Parallel(100, each=PureDP(0.01)).bound(k_sparse(100, every_step()))
>>> parts, parts.epsilon_at(0), round(parts.epsilon_at(1e-6), 3)
(OptimalParts(100 x PureDP(0.01)), 1.0, 0.392)
>>> Parallel(1, each=ApproxDP(0, "1/7"))
Traceback (most recent call last):
...
counterpoint.errors.NotCovered: ApproxDP(0, 1/7) in parallel on changing data needs delta_total, ...
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

from counterpoint.composition.accumulator import Account
from counterpoint.composition.fixed.compose import optimal_of, summed
from counterpoint.composition.fixed.optimal import Optimal, OptimalParts
from counterpoint.composition.rule import Rule
from counterpoint.encoding import Plain, Value
from counterpoint.errors import BudgetExceeded, InvalidParameter, NotCovered, RelationMismatch
from counterpoint.measures import ApproxDP, PureDP
from counterpoint.measures.conversions import response_of
from counterpoint.measures.loss import EpsilonDelta, Loss
from counterpoint.numbers import format_number
from counterpoint.numbers.exact import bounded_up
from counterpoint.numbers.parameters import Parameter, PositiveInt, ProbabilityOrNone, Read, default
from counterpoint.privacy.certificates import Certificate, machine_checked
from counterpoint.privacy.claims import Charge, Claim, Interaction, require_finite
from counterpoint.privacy.relations import Relation, Sparse, Static

ZERO = Fraction(0)


class Position(NamedTuple):
    """Where a part stands: above which entries, coordinate after coordinate, and the delta it counts with."""

    above: tuple[bool, ...]
    delta: Fraction


class Entries(NamedTuple):
    """The declared losses, from the largest; equal ones once each.

    A list of k losses is paid for, and any number of parts may be created while each finds its place.

    Declare epsilon_1 >= ... >= epsilon_k and delta_1 >= ... >= delta_k, each coordinate by itself. A part may be
    created while, for every entry v of a coordinate, no more created parts are above v than entries are. The k launches
    RR(epsilon_i, delta_i) pay for all of them, however adaptively the parts are chosen.

    Proof. RR(epsilon, delta) is RR(epsilon, 0) with RR(0, delta). When a part is affected, it takes in each coordinate
    the smallest free entry that is not below its own. There is one: let the entries not below its own be 1 .. m, and
    all of them taken. Let entry i be the first after m that is still free, or i = k + 1 if there is none. All of 1 ..
    i-1 are taken, by parts that are above entry i (each took the smallest free entry, and i was free), or i = k + 1 and
    k parts are affected already, which is all there may be. With the new part, i parts are above entry i, and i - 1
    entries are: the rule had refused one of them. So at most k parts take k different entries, drawn beforehand
    (Henzinger et al. 2024, Thm 5.14, Cor 5.5 for equal ones). Other measures: the entries are a chain under `implies`,
    and a part is above those that it does not imply.

    Charging the k largest created so far instead would be optimal composition of adaptively chosen parameters, which is
    false: RR(ln 2, 0), and by its answer RR(ln 4, 0) or RR(0, 3/10), reach 41/75 at e^epsilon = 1.3, where both pairs
    have at most 27/50.

    >>> from counterpoint import PureDP
    >>> entries = Entries.of([PureDP(0.1), PureDP(1)])
    >>> entries.losses, entries.limits
    ((PureDP(1), PureDP(0.1)), (0, 1, 0))
    >>> [position.above for position in entries.positions(PureDP(0.5))]
    [(False, True, False)]
    """

    losses: tuple[Loss, ...]
    all_deltas: bool = False

    @classmethod
    def of(cls, losses: Iterable[Loss]) -> "Entries":
        """The losses in order: coordinate by coordinate where they are (epsilon, delta), else as a chain."""
        given = list(losses)
        responses = _responses(given)
        return cls(_chain(given) if responses is None else _by_coordinate(responses))

    @property
    def limits(self) -> tuple[int, ...]:
        """How many entries are above each entry, coordinate after coordinate."""
        coordinates = self._coordinates
        if coordinates is None:
            return tuple(map(self.losses.index, dict.fromkeys(self.losses)))
        return tuple(sum(other > entry for other in every) for every, kept in coordinates for entry in kept)

    def positions(self, loss: Loss) -> list[Position]:
        """Where a part with this loss may stand: by its own parameters, or by those of an entry that it implies."""
        coordinates = self._coordinates
        if coordinates is None:
            return [Position(tuple(not loss.implies(entry) for entry in dict.fromkeys(self.losses)), ZERO)]
        implied = [entry for entry in reversed(self.losses) if loss.implies(entry)]
        found = [response for each in (loss, *implied) if (response := response_of(each)) is not None]
        places = [
            Position(
                tuple(mine > entry for mine, (_, kept) in zip(own, coordinates, strict=True) for entry in kept), own[1]
            )
            for own in found
        ]
        return list(dict.fromkeys(places))

    @property
    def _coordinates(self) -> list[tuple[tuple[Fraction, ...], tuple[Fraction, ...]]] | None:
        """The epsilons and the deltas of the entries, each with those that are compared; None for other measures.

        Where every created delta is charged anyway, deltas are compared with the largest alone.
        """
        responses = _responses(self.losses)
        if responses is None:
            return None
        epsilons, deltas = zip(*responses, strict=True)
        compared = (max(deltas),) if self.all_deltas else tuple(dict.fromkeys(deltas))
        return [(epsilons, tuple(dict.fromkeys(epsilons))), (deltas, compared)]


PARTS_ON_CHANGING_DATA: dict[type[Loss], Callable[[Any], EpsilonDelta]] = {
    PureDP: lambda loss: (loss.epsilon, ZERO),
    ApproxDP: lambda loss: (loss.epsilon, loss.delta),
}
"""The measures of parts that may be created as the data change (Henzinger et al. 2024, Cor 5.5, Thm 5.4)."""


def part_on_changing_data(loss: Loss) -> EpsilonDelta | None:
    """The epsilon and the delta of a part in parallel composition over data that change; None if it is not covered.

    >>> part_on_changing_data(ApproxDP(1, 1e-6))
    (1, 1e-6)
    """
    part = PARTS_ON_CHANGING_DATA.get(type(loss))
    return None if part is None else part(loss)


def _responses(losses: Sequence[Loss]) -> list[EpsilonDelta] | None:
    found = [response for loss in losses if (response := response_of(loss)) is not None]
    return found if len(found) == len(losses) else None


def _by_coordinate(responses: list[EpsilonDelta]) -> tuple[Loss, ...]:
    epsilons, deltas = (sorted(values, reverse=True) for values in zip(*responses, strict=True))
    return tuple(ApproxDP(e, d) if d else PureDP(e) for e, d in zip(epsilons, deltas, strict=True))


def _chain(losses: list[Loss]) -> tuple[Loss, ...]:
    """The losses so that each implies the one before it."""
    counts = Counter(losses)
    ordered = sorted(counts, key=lambda loss: sum(other.implies(loss) for other in counts), reverse=True)
    for larger, smaller in pairwise(ordered):
        if not smaller.implies(larger):
            raise NotCovered(
                f"neither of {larger!r} and {smaller!r} implies the other, so parts could not be matched with them; "
                "declare losses of one measure, of which each implies the next larger one"
            )
    return tuple(loss for loss in ordered for _ in range(counts[loss]))


LISTED = 10_000
"""Up to this many launches are charged one by one; more are charged as one launch of their sum."""
COMPOSED = 10**9
"""Up to this many launches are composed optimally, where the parts are read alone; more add up."""

if TYPE_CHECKING:
    Each: TypeAlias = Loss | tuple[Loss, ...]
else:
    Each = Plain  # stored as a loss or as a list of losses, which is more than a typed field can say


class EqualParts(Account, Value, frozen=True):
    """How many mechanisms have been created, and 1 - prod(1 - delta_j) over them, rounded up."""

    count: int = 0
    exposed: Fraction = Fraction(0)


class UnequalParts(EqualParts, frozen=True):
    """The same where unlike losses were declared, with how many of the created are above each of them."""

    above: tuple[int, ...] = ()


def _each(given: object, _what: str) -> Each:
    """Read one loss for all parts, or a list of k losses, which is put in order."""
    if isinstance(given, Loss):
        return given
    losses = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else ()
    if not losses or not all(isinstance(loss, Loss) for loss in losses):
        raise InvalidParameter(
            "each is the loss that every part stays within, such as PureDP(0.1), or a list of k losses, such as "
            "[PureDP(1), PureDP(0.1)], of which a part takes one"
        )
    return losses[0] if len(losses) == 1 else Entries.of(losses).losses


class Parallel(Rule, Value, frozen=True):
    """Any number of mechanisms, each within `each`, on data that reaches at most k of them.

    `each` is one loss for all, or a list of k: then at most as many parts are above a loss of the list as losses of the
    list are (theory, Parallel composition), and all k are charged. `first_pair` is for data of which a part is affected
    or not before its first answer; it is a fact about the relation (`static_parts`, `first_pair_consistent`), which
    must be the composition's. `symmetric=False` is for relations that do not stay valid when the two worlds are
    swapped. `delta_total` is required for approximate losses otherwise. Not covered: Renyi, zCDP, tCDP and f-DP losses
    on changing data; charging the k largest losses created so far.

    >>> from counterpoint import PureDP, zCDP
    >>> Parallel(2, each=zCDP(0.5), first_pair=True).theorem[:27]
    'first-pair consistent k-spa'
    >>> rule = Parallel(2, each=[PureDP(1), PureDP(0.1)])
    >>> rule.loss(rule.start()).as_pure()
    PureDP(1.1)
    """

    k: PositiveInt
    each: Annotated[Parameter[Each, Loss | Iterable[Loss]], Read(_each)]
    delta_total: ProbabilityOrNone = default(None)
    first_pair: bool = False
    symmetric: bool = True

    def __post_init__(self) -> None:
        """Refuse at once what no theorem covers."""
        if isinstance(self.each, tuple) and len(self.each) != self.k:
            raise InvalidParameter(
                f"each lists {len(self.each)} losses, and k is {self.k}: list k losses, one for each part that "
                "neighbouring data may reach"
            )
        if not self.first_pair:
            self._check_changing_data()

    def __repr__(self) -> str:
        """What was chosen otherwise than by default."""
        each = list(self.each) if isinstance(self.each, tuple) else self.each
        shown = [f"Parallel({self.k}, each={each!r}"]
        shown += [] if self.delta_total is None else [f"delta_total={format_number(self.delta_total)}"]
        shown += ["first_pair=True"] if self.first_pair else []
        shown += [] if self.symmetric else ["symmetric=False"]
        return ", ".join(shown) + ")"

    def _check_changing_data(self) -> None:
        for loss in self.losses:
            part = part_on_changing_data(loss)
            if part is None:
                raise NotCovered(
                    f"no theorem covers {loss!r} in parallel on changing data (Henzinger et al. 2024, Thm 13.5 is a "
                    "counterexample for Renyi); use PureDP, or ApproxDP with delta_total, or static data with "
                    "first_pair=True (Henzinger et al. 2024, Thm 5.14, 13.6, Cor 14.8)"
                )
            _, delta = part
            if delta and self.delta_total is None:
                raise NotCovered(
                    f"{loss!r} in parallel on changing data needs delta_total, to which every created mechanism's "
                    f"delta is charged (Henzinger et al. 2024, Thm 5.4): {format_number(100 * delta)} is enough "
                    "for 100 of "
                    "them. PureDP needs none, nor do static data such as a table (first_pair=True; Henzinger et al. "
                    "2024, Thm 5.14)"
                )

    @property
    def losses(self) -> dict[Loss, int]:
        """The losses that are paid for, from the largest, with how many of each."""
        return dict(Counter(self.each)) if isinstance(self.each, tuple) else {self.each: self.k}

    @property
    def smallest(self) -> Loss:
        """The loss that any number of parts may have."""
        return self.each[-1] if isinstance(self.each, tuple) else self.each

    @property
    def _entries(self) -> Entries:
        return Entries(self.each if isinstance(self.each, tuple) else (self.each,), self.counts_every_delta)

    @property
    def counts_every_delta(self) -> bool:
        """Whether unaffected mechanisms cost delta, too."""
        parts = [] if self.first_pair else [part_on_changing_data(loss) for loss in self.losses]
        return any(part is not None and part[1] for part in parts)

    def start(self) -> EqualParts:
        """The account before any part has been created."""
        return UnequalParts(above=(0,) * len(self._entries.limits)) if isinstance(self.each, tuple) else EqualParts()

    def admit(self, account: Account, claim: Claim) -> EqualParts:
        """Any mechanism that finds its place, as long as the deltas of all that were created have room."""
        assert isinstance(account, EqualParts)
        entries = self._entries
        for loss in self.losses:
            require_finite(claim, loss)
        placed = [place for place in entries.positions(claim.loss) if self._has_place(account, place)]
        if not placed:
            raise self._no_place(account, claim.loss)
        if not self.counts_every_delta:
            return self._with(account, placed[0], account.exposed)
        assert self.delta_total is not None
        for place in placed:
            exposed = bounded_up(account.exposed + (1 - account.exposed) * self._charged(place.delta))
            if exposed <= self.delta_total:
                return self._with(account, place, exposed)
        raise BudgetExceeded(
            f"one more {claim.loss!r} would bring the deltas of all created mechanisms beyond delta_total "
            f"{format_number(self.delta_total)} (Henzinger et al. 2024, Thm 5.4 charges every one of them)",
            requested=claim.loss,
            remaining=self.delta_total - account.exposed,
        )

    def _has_place(self, account: EqualParts, place: Position) -> bool:
        """Whether no more parts would be above an entry than entries are."""
        above = account.above if isinstance(account, UnequalParts) else (0,) * len(place.above)
        return all(
            count + here <= most for count, here, most in zip(above, place.above, self._entries.limits, strict=True)
        )

    def _with(self, account: EqualParts, place: Position, exposed: Fraction) -> EqualParts:
        if not isinstance(account, UnequalParts):
            return EqualParts(account.count + 1, exposed)
        above = tuple(count + here for count, here in zip(account.above, place.above, strict=True))
        return UnequalParts(account.count + 1, exposed, above)

    def _no_place(self, account: EqualParts, loss: Loss) -> BudgetExceeded:
        fitting = next(
            (each for each in self.losses if any(self._has_place(account, p) for p in self._entries.positions(each))),
            self.smallest,
        )
        declared = repr(self.each) if isinstance(self.each, Loss) else f"one of {', '.join(map(repr, self.each))}"
        taken = "" if fitting in (self.each, next(iter(self.losses))) else f"; of these {fitting!r} is the largest left"
        return BudgetExceeded(
            f"{loss!r} does not fit into a part, which holds {declared}{taken}",
            requested=loss,
            remaining=fitting,
            would_fit=fitting,
        )

    def _charged(self, delta: Fraction) -> Fraction:
        """What a created mechanism with this delta adds to the deltas."""
        return delta if self.symmetric or self.k == 1 else min(Fraction(1), 2 * delta)

    @property
    def interaction(self) -> Interaction:
        """Memoryless in a measure of f-DP, where the parts are a postprocessing of k draws made at the start."""
        return "memoryless" if all(loss.needs_finite_communication for loss in self.losses) else "endless"

    def bound(self, relation: Relation) -> Loss:
        """The composition of k losses; with `delta_total` in the place of the deltas where all of them count."""
        self._check(relation)
        return self._composed(self._charges(self.delta_total))

    def charges(self, relation: Relation) -> tuple[Charge, ...]:
        """The k launches that the parts are a postprocessing of."""
        self._check(relation)
        charges = self._charges(self.delta_total)
        return charges if _number(charges) <= LISTED else (Charge(total(charges), 1, charges[0].interaction),)

    def _charges(self, exposed: Fraction | None) -> tuple[Charge, ...]:
        """K losses; (epsilon_i, 0) and once (0, exposed) where all deltas count, which is one loss if k is 1."""
        if not self.counts_every_delta:
            return tuple(
                Charge(loss, times, "finite" if loss.needs_finite_communication else "endless")
                for loss, times in self.losses.items()
            )
        assert exposed is not None
        pure: Counter[Fraction] = Counter()
        for loss, times in self.losses.items():
            part = part_on_changing_data(loss)
            assert part is not None
            pure[part[0]] += times
        if self.k == 1:
            return (Charge(ApproxDP(next(iter(pure)), exposed)),)
        return (*(Charge(PureDP(epsilon), times) for epsilon, times in pure.items()), Charge(ApproxDP(0, exposed)))

    def _composed(self, charges: tuple[Charge, ...]) -> Loss:
        if not 1 < _number(charges) <= COMPOSED:
            return total(charges)
        composed = optimal_of(_counts(charges)).loss
        return OptimalParts(composed.parts) if isinstance(composed, Optimal) else composed

    def _check(self, relation: Relation) -> None:
        if not isinstance(relation, Sparse | Static) or relation.k > self.k:
            raise RelationMismatch(
                f"Parallel(k={self.k}) needs a relation that is {self.k}-sparse, not {relation!r}; a mechanism "
                "launched in a session sees all data; session.partition(by, k=..., within=...) makes sparse parts"
            )
        if self.first_pair and not relation.decided:
            raise RelationMismatch(
                "first_pair=True needs a relation that settles before a part's first answer whether it is affected: "
                "static_parts(k, ...) or first_pair_consistent(k, ...)"
            )
        if self.symmetric and self.counts_every_delta and not relation.symmetric:
            raise RelationMismatch(
                "the relation is not symmetric: pass symmetric=False (errata, Henzinger E1: 2 delta each)"
            )

    @property
    def theorem(self) -> str:
        """What the bound rests on."""
        unlike = "; unlike losses matched as in theory, Parallel composition" if isinstance(self.each, tuple) else ""
        if self.first_pair:
            return (
                "first-pair consistent k-sparse parallel composition (Henzinger et al. 2024, Thm 5.14, 13.6, Cor 14.8),"
                f" or that of static data (Henzinger et al. 2024, Cor 5.15, 13.7, 14.9){unlike}"
            )
        if not self.counts_every_delta:
            return f"k-sparse parallel composition of pure losses (Henzinger et al. 2024, Cor 5.5){unlike}"
        return (
            "k-sparse parallel composition, every created delta charged (Henzinger et al. 2024, Thm 5.4, tight "
            f"form){unlike}"
        )

    def loss(self, account: Account) -> Loss:
        """The bound from the start, since which k are affected is secret."""
        assert isinstance(account, EqualParts)
        return self._composed(self._charges(account.exposed))

    def promise(self, relation: Relation) -> Certificate:
        """At most k mechanisms are affected."""
        self._check(relation)
        each = (
            " and ".join(map(repr, self._charges(self.delta_total)))
            if isinstance(self.each, tuple)
            else repr(self.each)
        )
        return Certificate(f"at most {self.k} of any number of mechanisms within {each} are affected", self._cited)

    def certificate(self, account: Account) -> Certificate:
        """The same, with what has been created."""
        assert isinstance(account, EqualParts)
        statement = f"{self.loss(account)!r}: at most {self.k} of {account.count} mechanisms are affected"
        return Certificate(statement, self._cited)

    @property
    def _cited(self) -> str:
        """The theorem as a certificate names it: Coq has checked the sum of equal pure parts."""
        if not isinstance(self.each, PureDP):
            return self.theorem
        checked = "parallel_static_pure" if self.first_pair else "parallel_pure"
        return machine_checked(self.theorem, checked, "at delta = 0")


def _counts(charges: tuple[Charge, ...]) -> dict[Loss, int]:
    return {charge.loss: charge.times for charge in charges}


def _number(charges: tuple[Charge, ...]) -> int:
    return sum(charge.times for charge in charges)


def total(charges: tuple[Charge, ...]) -> Loss:
    """What the launches of a list cost by the rule of their own measure; (epsilon, delta) by basic composition.

    >>> total((Charge(PureDP(0.5), 2), Charge(ApproxDP(0, 1e-6))))
    ApproxDP(1, 1e-6)
    """
    return charges[0].loss if _number(charges) == 1 else summed(_counts(charges))


def times(loss: Loss, k: int) -> Loss:
    """The sum of k equal losses, in their own measure.

    >>> from counterpoint import GaussianDP, zCDP
    >>> times(zCDP(0.5), 2), times(GaussianDP(1), 4)
    (zCDP(1), GaussianDP(2))
    """
    return loss if k == 1 else summed({loss: k})
