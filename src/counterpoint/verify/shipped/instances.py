"""A mechanism on a small instance: its claimed loss and its exact loss.

The two are compared as one number: the epsilon at a delta that is larger than the truncated tails, and small enough to
be near the claim. If the claim is about delta alone, it is the delta at an epsilon; if it is about Renyi divergences
and no tail was truncated, the divergence of an order. A claim that covers many behaviours (a filter, a composite) need
not be reached; the tightness says how near the exact loss comes.

>>> from counterpoint import RandomizedResponse
>>> measured = measure(Instance("randomized response", RandomizedResponse(1)))
>>> measured.verdict, round(measured.tightness, 3), measured.at
(Verdict.HOLDS, 1.0, 'delta 1e-6')
"""

from fractions import Fraction
from typing import NamedTuple

from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.numbers.exact import float_up, spell
from counterpoint.privacy.loss import Loss
from counterpoint.privacy.relations import Pair, Relation
from counterpoint.verify.exact_loss import ExactLoss, exact
from counterpoint.verify.verdict import Verdict


class Instance(NamedTuple):
    """A mechanism with its parameters, and the messages of the adversary (None: the default of the mechanism).

    With an `epsilon`, deltas are compared there; with an `alpha`, Renyi divergences of that order; else epsilons at
    `delta`. `relation` restricts the messages further. `group` is its heading in the table.
    """

    name: str
    mechanism: Mechanism
    pairs: tuple[Pair, ...] | None = None
    rounds: int | None = None
    cut: Fraction = Fraction(1, 10**12)
    delta: Fraction = Fraction(1, 10**6)
    epsilon: Fraction | None = None
    alpha: Fraction | None = None
    relation: Relation | None = None
    group: str = "mechanisms"

    def exactly(self) -> ExactLoss:
        """Its exact loss."""
        return exact(self.mechanism, self.relation, messages=self.pairs, rounds=self.rounds, cut=self.cut)


class Measured(NamedTuple):
    """The claim of an instance, and bounds on its exact loss, in the measure in which they are compared."""

    instance: Instance
    loss: ExactLoss
    claim: Loss
    claimed: float
    lower: float
    upper: float

    @property
    def at(self) -> str:
        """The point at which the two are compared."""
        at = self.instance
        if at.alpha is not None:
            return f"order {spell(at.alpha)}"
        return f"delta {spell(at.delta)}" if at.epsilon is None else f"epsilon {spell(at.epsilon)}"

    @property
    def tightness(self) -> float:
        """The exact loss divided by the claimed one: 1 is tight, above 1 would be a false claim."""
        return self.lower / self.claimed if self.claimed else 1.0 + self.lower

    @property
    def verdict(self) -> Verdict:
        """The verdict on the claim, with an allowance of a hundredth of the delta at which the two are compared.

        The truncated mass must fit into that allowance; if it does not, the verdict is undecided.
        """
        return self.loss.judge(self.claim, allowance=self.instance.delta / 100)


def measure(instance: Instance) -> Measured:
    """Compute the exact loss of an instance beside its claim."""
    loss, claim = instance.exactly(), instance.mechanism.claim.loss
    if instance.alpha is not None:
        claimed = float_up(claim.as_renyi(instance.alpha).epsilon)
        return Measured(instance, loss, claim, claimed, *loss.renyi_bounds(instance.alpha))
    if instance.epsilon is not None:
        lower, upper = loss.bounds(instance.epsilon)
        return Measured(instance, loss, claim, claim.delta_at(instance.epsilon), float(lower), float_up(upper))
    return Measured(instance, loss, claim, claim.epsilon_at(instance.delta), *loss.epsilon_bounds(instance.delta))
