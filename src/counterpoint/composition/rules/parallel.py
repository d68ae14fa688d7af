"""Parallel composition: any number of mechanisms, at most k of which neighbouring data reach.

See Henzinger et al. 2024, sec. 5.

What is promised depends on how the data may change. Pure losses: the cost of k mechanisms (Henzinger et al. 2024, Cor
5.5). First-pair consistent data, such as the parts of a static table: the cost of k in every measure (Henzinger et al.
2024, Thm 5.14, Cor 5.15, 13.7, 14.9). Otherwise an approximate mechanism that is *not* affected still counts: an
adversary may create many, wait for one that has failed and send it the difference (Henzinger et al. 2024, Thm 5.2), so
that every created delta_j is charged to `delta_total`: 1 - prod(1 - delta_j) <= delta_total (Henzinger et al. 2024, Thm
5.4, for symmetric relations; for an asymmetric one with k >= 2 it is 2 delta_j, errata, Henzinger E1). Renyi losses on
such data have no theorem (Henzinger et al. 2024, Thm 13.5) and are refused.

>>> from counterpoint import ApproxDP, Parallel, PureDP
>>> from counterpoint.privacy.relations import every_step, k_sparse
>>> Parallel(2, each=PureDP(0.5)).bound(k_sparse(2, every_step()))
PureDP(1)
>>> Parallel(1, each=ApproxDP(0, "1/7"))
Traceback (most recent call last):
...
counterpoint.errors.NotCovered: ApproxDP(0, 1/7) in parallel on changing data needs delta_total, ...
"""

from fractions import Fraction

from counterpoint.composition.fixed.compose import summed
from counterpoint.composition.rules.rule import Account, Rule
from counterpoint.encoding import Value
from counterpoint.errors import BudgetExceeded, InvalidParameter, NotCovered, RelationMismatch
from counterpoint.numbers import spell
from counterpoint.numbers.exact import bounded_up
from counterpoint.numbers.parameters import PositiveInt, ProbabilityOrNone, default
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.claims import Claim, require_finite
from counterpoint.privacy.loss import EpsilonDelta, Loss
from counterpoint.privacy.losses import ApproxDP
from counterpoint.privacy.relations import Relation, Sparse


class Created(Account, Value, frozen=True):
    """How many mechanisms have been created, and 1 - prod(1 - delta_j) over them, rounded up."""

    count: int = 0
    exposed: Fraction = Fraction(0)


class Parallel(Rule, Value, frozen=True):
    """Any number of mechanisms, each within `each`, on data that reaches at most k of them.

    `first_pair` is for data of which a part is affected or not from its first message on; it is enforced by the
    relation (`first_pair_consistent`), which must be the composition's. `symmetric=False` is for relations that do not
    stay valid when the two worlds are swapped. `delta_total` is required for approximate losses otherwise. Not covered:
    Renyi, zCDP, tCDP and f-DP losses on changing data.

    >>> from counterpoint import zCDP
    >>> Parallel(2, each=zCDP(0.5), first_pair=True).theorem[:27]
    'first-pair consistent k-spa'
    """

    k: PositiveInt
    each: Loss
    delta_total: ProbabilityOrNone = default(None)
    first_pair: bool = False
    symmetric: bool = True

    def __post_init__(self) -> None:
        """Refuse at once what no theorem covers."""
        if not isinstance(self.each, Loss):
            raise InvalidParameter("each is the loss that every part stays within, such as PureDP(0.1)")
        if not self.first_pair:
            self._check_changing_data()

    def __repr__(self) -> str:
        """What was chosen otherwise than by default."""
        shown = [f"Parallel({self.k}, each={self.each!r}"]
        shown += [] if self.delta_total is None else [f"delta_total={spell(self.delta_total)}"]
        shown += ["first_pair=True"] if self.first_pair else []
        shown += [] if self.symmetric else ["symmetric=False"]
        return ", ".join(shown) + ")"

    def _check_changing_data(self) -> None:
        part = self.each.part_on_changing_data()
        if part is None:
            raise NotCovered(
                f"no theorem covers {self.each!r} in parallel on changing data (Henzinger et al. 2024, Thm 13.5 is a "
                "counterexample for Renyi); use PureDP, or ApproxDP with delta_total, or static data with "
                "first_pair=True (Henzinger et al. 2024, Thm 5.14, 13.6, Cor 14.8)"
            )
        _, delta = part
        if delta and self.delta_total is None:
            raise NotCovered(
                f"{self.each!r} in parallel on changing data needs delta_total, to which every created mechanism's "
                f"delta is charged (Henzinger et al. 2024, Thm 5.4): {spell(100 * delta)} is enough for 100 of them. "
                "PureDP needs none, nor do static data such as a table (first_pair=True; Henzinger et al. 2024, Thm "
                "5.14)"
            )

    @property
    def counts_every_delta(self) -> bool:
        """Whether unaffected mechanisms cost delta, too."""
        return self._counted is not None

    @property
    def _counted(self) -> EpsilonDelta | None:
        """The epsilon and the delta of each part, where unaffected ones cost delta, too."""
        part = None if self.first_pair else self.each.part_on_changing_data()
        return part if part is not None and part[1] else None

    def start(self) -> Created:
        """Nothing created."""
        return Created()

    def admit(self, account: Account, claim: Claim) -> Created:
        """Any mechanism within `each`, as long as the deltas of all that were created have room."""
        assert isinstance(account, Created)
        require_finite(claim, self.each)
        if not claim.loss.implies(self.each):
            raise BudgetExceeded(
                f"{claim.loss!r} does not fit into a part, which holds {self.each!r}",
                requested=claim.loss,
                remaining=self.each,
                would_fit=self.each,
            )
        exposed, part = account.exposed, self._counted
        if part is not None:
            exposed = bounded_up(exposed + (1 - exposed) * self._charge(claim.loss, part))
            assert self.delta_total is not None
            if exposed > self.delta_total:
                raise BudgetExceeded(
                    f"one more {claim.loss!r} would bring the deltas of all created mechanisms beyond delta_total "
                    f"{spell(self.delta_total)} (Henzinger et al. 2024, Thm 5.4 charges every one of them)",
                    requested=claim.loss,
                    remaining=self.delta_total - account.exposed,
                )
        return Created(account.count + 1, exposed)

    def _charge(self, loss: Loss, part: EpsilonDelta) -> Fraction:
        """What a created mechanism adds to the deltas: its own where it has one, else that of `each`."""
        response = loss.added_response()
        own = response[1] if response is not None and response[0] <= part[0] else part[1]
        return own if self.symmetric or self.k == 1 else min(Fraction(1), 2 * own)

    def bound(self, relation: Relation) -> Loss:
        """K times `each`; with `delta_total` in the place of the deltas where all of them count."""
        self._check(relation)
        return self._bound(self.delta_total)

    def _bound(self, exposed: Fraction | None) -> Loss:
        """K times `each`; with `exposed` in the place of the deltas where all of them count."""
        part = self._counted
        if part is None:
            return times(self.each, self.k)
        assert exposed is not None
        return ApproxDP(self.k * part[0], exposed)

    def _check(self, relation: Relation) -> None:
        if not isinstance(relation, Sparse) or relation.k > self.k:
            raise RelationMismatch(
                f"Parallel(k={self.k}) needs a relation that is {self.k}-sparse, not {relation!r}; a mechanism "
                "launched in a session sees all data; session.partition(by, k=..., within=...) makes sparse parts"
            )
        if self.first_pair and not relation.first_pair:
            raise RelationMismatch("first_pair=True needs a first-pair consistent relation")
        if self.symmetric and self.counts_every_delta and not relation.symmetric:
            raise RelationMismatch(
                "the relation is not symmetric: pass symmetric=False (errata, Henzinger E1: 2 delta each)"
            )

    @property
    def theorem(self) -> str:
        """What the bound rests on."""
        if self.first_pair:
            return (
                "first-pair consistent k-sparse parallel composition (Henzinger et al. 2024, Thm 5.14, Cor "
                "5.15, Thm 13.6, Cor 14.8)"
            )
        if not self.counts_every_delta:
            return "k-sparse parallel composition of pure losses (Henzinger et al. 2024, Cor 5.5)"
        return "k-sparse parallel composition, every created delta charged (Henzinger et al. 2024, Thm 5.4, tight form)"

    def loss(self, account: Account) -> Loss:
        """The bound from the start, since which k are affected is secret."""
        assert isinstance(account, Created)
        return self._bound(account.exposed)

    def promise(self, relation: Relation) -> Certificate:
        """At most k mechanisms are affected."""
        self._check(relation)
        return Certificate(
            f"at most {self.k} of any number of mechanisms within {self.each!r} are affected", self.theorem
        )

    def certificate(self, account: Account) -> Certificate:
        """The same, with what has been created."""
        assert isinstance(account, Created)
        statement = f"{self.loss(account)!r}: at most {self.k} of {account.count} mechanisms are affected"
        return Certificate(statement, self.theorem)


def times(loss: Loss, k: int) -> Loss:
    """The sum of k equal losses, in their own measure.

    >>> from counterpoint import GaussianDP, zCDP
    >>> times(zCDP(0.5), 2), times(GaussianDP(1), 4)
    (zCDP(1), GaussianDP(2))
    """
    return loss if k == 1 else summed({loss: k})
