"""The provenance of an answer: its mechanism, its request, what was released and why this mechanism was chosen.

The error is relative to what is measured, the rows of a declaration with its bounds and its rows per unit. It follows
from public facts alone by the law of the noise, or (for a mean) from the released numbers too.

>>> import counterpoint as cp
>>> visits = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1)).ask(cp.total(), epsilon=0.1)
>>> visits.cost, visits.mechanism, visits.why
(PureDP(0.1), Laplace(0.1), 'Laplace(0.1) is what answers such a request at this price')
"""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from counterpoint.encoding import Plain
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.numbers import Number
from counterpoint.numbers.exact import exact, format_number
from counterpoint.queries.request import PreparedQuery

SURE = Fraction(95, 100)
"""The probability with which a stated error holds, where no other is given."""

Mechanisms = tuple[Mechanism, ...]


@lru_cache(maxsize=256)
def least_error(mechanism: Mechanism, prepared: PreparedQuery) -> int:
    """The number that mechanisms are compared by: the error at 95 % in grid steps, or the units that a key needs."""
    if prepared.wants == "keys":
        units: int = mechanism.error(SURE, prepared.sensitivity, prepared.squared)
        return units
    return mechanism.answer_error(prepared.message(), SURE, prepared.simultaneous_values)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a mechanism was launched: those that it was compared with, and the error that was wanted, if one was."""

    compared: Mechanisms = ()
    wanted: str | None = None

    def text(self, chosen: Mechanism, prepared: PreparedQuery) -> str:
        """The reason in words; errors are those at 95 %."""
        others = [mechanism for mechanism in self.compared if mechanism != chosen]
        if not others:
            return f"{chosen!r} is what answers such a request at this price"
        if self.wanted is not None:
            also = ", ".join(map(repr, others))
            return f"{chosen!r} keeps {self.wanted} and lowers the budget least; also looked at: {also}"

        def error(mechanism: Mechanism) -> str:
            return f"{mechanism!r} with {format_number(exact(least_error(mechanism, prepared)))}"

        least = (
            "needs the fewest units for a key"
            if prepared.wants == "keys"
            else "has the least error in steps of the grid"
        )
        if any(least_error(mechanism, prepared) < least_error(chosen, prepared) for mechanism in others):
            least = "lowers the budget less than the one with the least error"
        return f"{error(chosen)} {least} that this price buys; compared: {', '.join(map(error, others))}"


ONLY_ONE = Reason()
"""There was nothing to compare."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """The mechanism behind an answer, the request with its public facts, the released value, and why this mechanism."""

    mechanism: Mechanism
    prepared: PreparedQuery
    released: Plain
    reason: Reason = ONLY_ONE
    made_up: bool = False
    whole: PreparedQuery | None = None
    """The request that was asked, where this is a part of it: its sensitivity says how large the noise is."""
    known: dict[tuple[object, Fraction], int] = field(default_factory=dict, compare=False, repr=False)
    """Errors that have been computed; all cells and parts of an answer share them."""

    @property
    def asked(self) -> PreparedQuery:
        """The request that the mechanism answered."""
        return self.prepared if self.whole is None else self.whole

    def of(self, released: Plain, part: PreparedQuery | None = None) -> "Provenance":
        """The provenance of a cell of this answer, or of one of its parts."""
        prepared, whole = (self.prepared, self.whole) if part is None else (part, self.asked)
        return Provenance(self.mechanism, prepared, released, self.reason, self.made_up, whole, self.known)

    def steps(self, probability: Number) -> int:
        """How far off each of the released numbers that make up this one is at most, all at once; on their grid."""
        return self.steps_of(self.prepared.simultaneous_values, probability)

    def steps_of(self, numbers: int, probability: Number) -> int:
        """How far off `numbers` released numbers are at most, all at once; on their grid."""
        sure = exact(probability, "the probability")
        found = self.known.get((numbers, sure))
        if found is None:
            found = self.mechanism.answer_error(self.asked.message(), sure, numbers)
            self.known[numbers, sure] = found
        return found

    def steps_of_sum(self, weights: tuple[tuple[int, int], ...], probability: Number) -> int:
        """How far off a sum of released numbers is at most, where so many of them count with each weight."""
        sure = exact(probability, "the probability")
        if (weights, sure) not in self.known:
            self.known[weights, sure] = self.mechanism.sum_error(self.asked.message(), sure, weights)
        return self.known[weights, sure]

    def error(self, probability: Number) -> int | Fraction:
        """How far off the number is at most with this probability, in its units."""
        return self.prepared.error_from(self.released, self.steps(probability))

    def exceeds_noise(self, ratio: Fraction) -> bool:
        """Whether the released signal is at least `ratio` times its error at 95 %; by what is public alone."""
        return self.prepared.signal(self.released) >= ratio * self.steps(SURE)


class Answer:
    """The properties that every answer has, read from its provenance."""

    _provenance: Provenance

    @property
    def cost(self) -> Loss:
        """The price of the mechanism behind this answer, which may have given others, too."""
        return self._provenance.mechanism.claim.loss

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that gave this answer."""
        return self._provenance.mechanism

    @property
    def request(self) -> Plain:
        """The request that was asked."""
        return self._provenance.asked.request

    @property
    def why(self) -> str:
        """Why this mechanism was chosen, and what it was compared with."""
        return self._provenance.reason.text(self._provenance.mechanism, self._provenance.asked)

    @property
    def made_up(self) -> bool:
        """Whether it is an answer of a rehearsal, about made-up rows."""
        return self._provenance.made_up

    @property
    def _mark(self) -> str:
        return " (made up)" if self.made_up else ""

    @property
    def units(self) -> str | None:
        """What the value is measured in, if the column declares it: `number(0, 600, units="minutes")`."""
        return self._provenance.prepared.measured_in
