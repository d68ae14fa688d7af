"""The declared structure of a composite: named parts, what is launched in each, and what they cost together.

A part states the loss of what is launched in it and for which neighbours (Henzinger et al. 2024, Def 4.1: a creation
query). What the parts cost together is concurrent composition with parameters fixed in advance (Henzinger et al. 2024,
Thm 4.12, Cor 13.4; in f-DP Cor 14.7, where what is launched must have finite communication or no memory), and inside a
part either the same, slot by slot, or k-sparse parallel composition (Henzinger et al. 2024, Cor 5.5): all of it
computed by `composition/`, so that the author of a composite proves nothing.

>>> from counterpoint.privacy.relations import every_step
>>> parts = Part("watch", PureDP(1), every_step()), Part("check", PureDP(0.5), every_step(), sparse=2)
>>> composed([part.cost for part in parts])
PureDP(2)
"""

from collections import Counter
from collections.abc import Iterable

from counterpoint.composition.fixed.compose import summed
from counterpoint.composition.rules.parallel import Parallel, times, total
from counterpoint.encoding import Tagged, Value
from counterpoint.errors import InvalidParameter
from counterpoint.numbers.parameters import PositiveInt, ProbabilityOrNone, default
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.loss import Loss
from counterpoint.privacy.losses import PureDP
from counterpoint.privacy.relations import Relation, Sparse


class Part(Tagged, Value, frozen=True):
    """A declared part: what is launched in it stays within `loss` for sub-inputs that are neighbours in `relation`.

    It has `slots` slots, one by default, and each slot takes one launch, once: all of them are paid for. With
    `sparse=k` any number of mechanisms are launched in it, of which neighbouring inputs reach at most k: that costs k
    of them, as in `Parallel`. Approximate losses need `delta_total`, to which every launch adds its delta (Henzinger et
    al. 2024, Thm 5.4), unless `first_pair` declares that the first message to a launch settles whether it is reached
    (Henzinger et al. 2024, Thm 5.14), which `verify.two_worlds` checks.

    >>> from counterpoint.privacy.relations import every_step
    >>> Part("check", PureDP(0.5), every_step(), sparse=2).cost, Part("three", PureDP(0.5), every_step(), slots=3).cost
    (PureDP(1), PureDP(1.5))
    >>> from counterpoint import ApproxDP
    >>> Part("check", ApproxDP(0.5, 1e-8), every_step(), sparse=2, delta_total=1e-6).cost
    ApproxDP(1, 1e-6)
    """

    name: str
    loss: Loss
    relation: Relation
    sparse: PositiveInt | None = None
    slots: PositiveInt = 1
    delta_total: ProbabilityOrNone = default(None)
    first_pair: bool = False

    def __post_init__(self) -> None:
        """Check what is declared."""
        if not all(map(isinstance, (self.name, self.loss, self.relation), (str, Loss, Relation))):
            raise InvalidParameter(
                "a part takes a name (a text), the Loss that it stays within and the Relation of its inputs"
            )
        if self.sparse is not None and self.slots != 1:
            raise InvalidParameter("a part has slots or is sparse, not both: sparse=k takes any number of launches")
        if self.sparse is None and (self.first_pair or self.delta_total is not None):
            raise InvalidParameter("delta_total and first_pair are for a part with sparse=k")

    def has_place(self, at: int) -> bool:
        """Whether something may be launched at this number: any in a sparse part, else one of the slots."""
        return self.sparse is not None or 0 <= at < self.slots

    @property
    def cost(self) -> Loss:
        """What the whole part costs; `NotCovered` where no theorem says so."""
        if self.sparse is None:
            return times(self.loss, self.slots)
        return total(self.rule.charges(Sparse(self.sparse, self.relation, self.first_pair)))

    @property
    def rule(self) -> Parallel:
        """What decides about launches in a sparse part."""
        assert self.sparse is not None
        symmetric = self.relation.symmetric
        return Parallel(self.sparse, self.loss, self.delta_total, self.first_pair, symmetric)

    @property
    def certificate(self) -> Certificate:
        """Why it costs that, given what is checked at each launch."""
        where = f"{self.loss!r} for neighbours {self.relation.in_words}"
        each = (
            "its claim implies the part's loss on a family that contains the part's (Henzinger et al. 2024, "
            "Obs 8.9), checked at launch"
        )
        if self.sparse is None and self.slots == 1:
            return Certificate(f"part {self.name!r}, launched once, is {where}", each)
        launched = Certificate(f"whatever is launched in part {self.name!r} is {where}", each)
        if self.sparse is None:
            statement = f"part {self.name!r} is {self.cost!r}: {self.slots} launches, each in a slot of its own"
            theorem = "Cor 14.7" if self.loss.needs_finite_communication else "Thm 4.12, Cor 13.4"
            return Certificate(statement, f"losses fixed in advance (Henzinger et al. 2024, {theorem})", (launched,))
        statement = f"part {self.name!r} is {self.cost!r}: at most {self.sparse} of its launches are reached"
        return Certificate(statement, self.rule.theorem, (launched,))


def composed(losses: list[Loss]) -> Loss:
    """What losses fixed in advance cost together, in their own measure: sums, and for f-DP tensor products.

    >>> from counterpoint import ApproxDP, GaussianDP, zCDP
    >>> composed([PureDP(0.1), PureDP(0.2)]), composed([PureDP(1), ApproxDP(1, 1e-6)]), composed([zCDP(1), zCDP(2)])
    (PureDP(0.3), ApproxDP(2, 1e-6), zCDP(3))
    >>> composed([GaussianDP(3), GaussianDP(4)])
    GaussianDP(5)
    """
    return summed(Counter(losses)) if losses else PureDP(0)


def by_name(structure: Iterable[Part]) -> dict[str, Part]:
    """The parts by their names, which must differ: of two with one name, one would not be charged."""
    parts = list(structure)
    names = {part.name: part for part in parts}
    if len(names) != len(parts):
        raise InvalidParameter("two parts have the same name: give each its own, or one of them would not be charged")
    return names
