"""A claim: the loss that a mechanism promises, under which relation, and why (Henzinger et al. 2024, Def 4.1).

>>> from counterpoint import Laplace
>>> print(Laplace(epsilon=0.5, asks=2).claim.loss)
PureDP(0.5)
"""

from typing import Literal, TypeAlias, get_args

from counterpoint.encoding import Tagged, Value
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.measures import ApproxDP, PureDP
from counterpoint.measures.conversions import response_of
from counterpoint.measures.loss import Loss
from counterpoint.privacy.certificates import Certificate, machine_checked
from counterpoint.privacy.relations import Relation

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


class Charge(Tagged, Value, frozen=True):
    """A number of launches of one loss, in the place of a mechanism that is made from them.

    >>> from counterpoint import PureDP
    >>> Charge(PureDP(0.1), 3), Charge(PureDP(0.1))
    (3 x PureDP(0.1), PureDP(0.1))
    """

    loss: Loss
    times: int = 1
    interaction: Interaction = "endless"

    def __repr__(self) -> str:
        return repr(self.loss) if self.times == 1 else f"{self.times} x {self.loss!r}"


class Claim(Tagged, Value, frozen=True):
    """A loss under a relation, with its certificate, and how long the mechanism interacts.

    `launches` is for a mechanism that is a postprocessing of launches drawn when it starts, such as the parts of a
    partition (theory, Parallel composition): a rule whose losses add up may count these, all or none, in the place of
    `loss`.
    """

    loss: Loss
    relation: Relation
    certificate: Certificate
    interaction: Interaction = "endless"
    launches: tuple[Charge, ...] = ()

    def __post_init__(self) -> None:
        """Refuse an interaction that is not one of the four: theorems ask whether it is endless, by its name."""
        if self.interaction not in get_args(Interaction):
            raise InvalidParameter(
                f"interaction is one of {', '.join(get_args(Interaction))}, not {self.interaction!r}"
            )


def require_finite(claimed: Claim, slot: Loss) -> None:
    """Refuse a mechanism that is not known to be a postprocessing of one draw, where an f-DP theorem is to be used.

    Finite and memoryless mechanisms are (Henzinger et al. 2024, Cor 14.7 to 14.9; theory, f-DP in general), and so is
    everything in PureDP or ApproxDP, however it interacts: the draw is a randomized response (Lemma 4.7).

    >>> from counterpoint import GaussianDP, Laplace
    >>> require_finite(Laplace(0.1, asks=2).claim, GaussianDP(1))
    """
    one_draw = claimed.interaction != "endless" or response_of(claimed.loss) is not None
    if slot.needs_finite_communication and not one_draw:
        raise NotCovered(
            f"{slot!r} composes by theorems on f-DP, which need finite communication (Henzinger et al. 2024, Cor 14.7, "
            "14.9) or no memory (theory, Gaussian budgets), and this mechanism has neither; use a measure such as zCDP "
            "or ApproxDP instead"
        )


def claim(
    loss: Loss,
    relation: Relation,
    theorem: str,
    *premises: Certificate,
    interaction: Interaction = "endless",
) -> Claim:
    """A claim whose certificate says "`loss` under `relation`", by the theorem given.

    >>> from counterpoint import PureDP
    >>> from counterpoint.privacy.relations import every_step
    >>> print(claim(PureDP(1), every_step(), "an example").certificate.statement)
    PureDP(1) for neighbours that differ in any asks and any updates
    """
    statement = f"{loss!r} for neighbours {relation.in_words}"
    return Claim(loss, relation, Certificate(statement, theorem, premises), interaction)


def postprocessed_claim(inner: Claim, statement: str, theorem: str, interaction: Interaction = "endless") -> Claim:
    """What a claim is worth after postprocessing; Coq has checked that for one epsilon and delta.

    >>> from counterpoint import Laplace
    >>> print(postprocessed_claim(Laplace(1).claim, "an answer, rounded", "postprocessing").certificate.theorem)
    postprocessing; machine-checked: postprocessing
    """
    checked = "postprocessing" if isinstance(inner.loss, PureDP | ApproxDP) else None
    certificate = Certificate(statement, machine_checked(theorem, checked), (inner.certificate,))
    return Claim(inner.loss.postprocessed(), inner.relation, certificate, interaction)
