"""What an answer will be worth, said with its price before it is paid for: by public facts alone.

The error of a count or a sum follows from the law of the noise, that of a choice counts rows of its rank, and selected
keys need so many units. A mean, a variance and a share have a bound if it is said how many rows they are of at least.

>>> from counterpoint import Laplace, Stream, total
>>> Expected.of(Laplace(0.1), Stream(bound=1).prepare(total()), Fraction(95, 100))
error 30 with probability 0.95
"""

from fractions import Fraction
from typing import Literal, TypeAlias

from msgspec.structs import replace

from counterpoint.encoding import Value
from counterpoint.errors import CounterpointError
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.additive import Gaussian, Laplace
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.mechanisms.noisy_max import NoisyMax
from counterpoint.numbers import Exact
from counterpoint.numbers.exact import format_number
from counterpoint.queries.request import PreparedQuery

Kind: TypeAlias = Literal["error", "rank_error", "units_needed"]
_KINDS: dict[str, Kind] = {"numbers": "error", "choice": "rank_error", "keys": "units_needed"}
_TIMES = tuple(map(Fraction, ("1/4", "1/2", "1", "2", "4")))


class Expected(Value, frozen=True):
    """How far off an answer will be at most with this probability; or for a choice its rank, for keys the units needed.

    `prices` are other prices with what each would buy.
    """

    within: Fraction
    what: Kind
    probability: Fraction
    units: str | None = None
    prices: tuple[tuple[Loss, Fraction], ...] = ()

    def __repr__(self) -> str:
        sure = f"with probability {format_number(self.probability)}"
        return f"{self.what} {format_number(self.within)}{f' {self.units}' if self.units else ''} {sure}"

    @classmethod
    def of(
        cls,
        mechanism: Mechanism,
        prepared: PreparedQuery,
        probability: Fraction,
        *,
        simultaneous: bool = False,
        rows: int | None = None,
    ) -> "Expected | None":
        """What this mechanism will say about this request; None where that is not known before."""
        found = _within(mechanism, prepared, probability, simultaneous, rows)
        if found is None:
            return None
        kind = _KINDS[prepared.wants]
        return cls(found, kind, probability, prepared.measured_in if kind == "error" else None)

    def beside(self, mechanism: Mechanism, prepared: PreparedQuery, simultaneous: bool, rows: int | None) -> "Expected":
        """With a quarter, half, twice and four times the price of this mechanism, and what each would buy."""
        prices = []
        for other in _scaled(mechanism):
            found = _within(other, prepared, self.probability, simultaneous, rows)
            if found is not None:
                prices.append((other.claim.loss, found))
        return replace(self, prices=tuple(prices))


def _within(
    mechanism: Mechanism, prepared: PreparedQuery, probability: Fraction, simultaneous: bool, rows: int | None
) -> Exact | None:
    try:
        if prepared.wants == "keys":
            units: int = mechanism.error(probability, prepared.sensitivity, prepared.squared)
            return Exact(units)
        numbers = (prepared.width or 1) if simultaneous else prepared.simultaneous_values
        return Exact(prepared.error_among(mechanism.answer_error(prepared.message(), probability, numbers), rows))
    except CounterpointError:  # no error is known in advance; the price is
        return None


def _scaled(mechanism: Mechanism) -> tuple[Mechanism, ...]:
    """The same mechanism at other prices."""
    price: dict[str, Fraction | None]
    match mechanism:
        case Laplace(epsilon=epsilon):
            price = {"epsilon": epsilon}
        case Gaussian(rho=rho, mu=mu) if rho is not None or mu is not None:
            price = {"rho": rho, "mu": mu}
        case NoisyMax(epsilon=epsilon, rho=rho):
            price = {"epsilon": epsilon, "rho": rho}
        case _:
            return ()
    ((name, amount),) = ((name, amount) for name, amount in price.items() if amount is not None)
    return tuple(replace(mechanism, **{name: amount * times}) for times in _TIMES)
