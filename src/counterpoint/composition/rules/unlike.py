"""Parts of unlike losses: a list of k losses is paid for, and any number of parts may be created that find their place.

Declare epsilon_1 >= ... >= epsilon_k and delta_1 >= ... >= delta_k, each coordinate by itself. A part may be created
while, for every entry v of a coordinate, no more created parts are above v than entries are. The k launches
RR(epsilon_i, delta_i) pay for all of them, however adaptively the parts are chosen.

Proof. RR(epsilon, delta) is RR(epsilon, 0) with RR(0, delta). When a part is affected, it takes in each coordinate the
smallest free entry that is not below its own. There is one: let the entries not below its own be 1 .. m, and all of
them taken. Let entry i be the first after m that is still free, or i = k + 1 if there is none. All of 1 .. i-1 are
taken, by parts that are above entry i (each took the smallest free entry, and i was free), or i = k + 1 and k parts are
affected already, which is all there may be. With the newcomer, i parts are above entry i, and i - 1 entries are: the
rule had refused one of them. So at most k parts take k different entries, drawn beforehand (Henzinger et al. 2024, Thm
5.14, Cor 5.5 for equal ones). Other measures: the entries are a chain under `implies`, and a part is above those that
it does not imply.

Charging the k largest created so far instead would be optimal composition of adaptively chosen parameters, which is
false: RR(ln 2, 0), and by its answer RR(ln 4, 0) or RR(0, 3/10), reach 41/75 at e^epsilon = 1.3, where both pairs have
at most 27/50.

>>> from counterpoint import PureDP
>>> entries = Entries.of([PureDP(0.1), PureDP(1)])
>>> entries.losses, entries.limits
((PureDP(1), PureDP(0.1)), (0, 1, 0))
>>> [position.above for position in entries.positions(PureDP(0.5))]
[(False, True, False)]
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from counterpoint.errors import NotCovered
from counterpoint.privacy.loss import EpsilonDelta, Loss
from counterpoint.privacy.losses import ApproxDP, PureDP

ZERO = Fraction(0)


class Position(NamedTuple):
    """Where a part stands: above which entries, coordinate after coordinate, and the delta it counts with."""

    above: tuple[bool, ...]
    delta: Fraction


class Entries(NamedTuple):
    """The declared losses, from the largest; equal ones once each."""

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
        found = [response for each in (loss, *implied) if (response := each.added_response()) is not None]
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


def _responses(losses: Sequence[Loss]) -> list[EpsilonDelta] | None:
    found = [response for loss in losses if (response := loss.added_response()) is not None]
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
