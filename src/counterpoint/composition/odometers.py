"""Odometers: no budget, keep count (Haney et al. 2023, Def 2.11 to 2.14, Thm 3.8; Henzinger et al. 2024, Thm 12.4).

An odometer reports the same accumulators that filters compare with a budget: G is a valid odometer if and only if "G <=
d" is a valid filter for every d (Haney et al. 2023, Lemma 2.19). Its reading means: fix a threshold before you start;
the view, cut off before the answer that would carry the reading beyond it, is within the threshold. Reading changes
nothing.

>>> from counterpoint import Gaussian, Odometer, PureDP, zCDP
>>> rule = Odometer(zCDP)
>>> rule.loss(rule.admit(rule.start(), Gaussian(rho=0.25).claim))
zCDP(0.25)
"""

from collections.abc import Iterable
from contextlib import suppress
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, Self, TypeVar

from msgspec.structs import replace

from counterpoint.composition.accumulator import Account, Accumulator
from counterpoint.composition.advanced import AdvancedSum, order_for
from counterpoint.composition.filters import Filter
from counterpoint.composition.readings import read_at
from counterpoint.composition.renyi_sums import ApproximateSum, RenyiSum, Tail
from counterpoint.composition.rule import Rule
from counterpoint.composition.sums import GaussianChain, TCDPSum, odometer_for
from counterpoint.composition.time_uniform import Kind, TimeUniform, constant_for
from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.measures import ApproxDP, PureDP, tCDP
from counterpoint.measures.loss import Loss
from counterpoint.numbers import Number
from counterpoint.numbers.exact import above_one, exact, positive, probability
from counterpoint.numbers.parameters import Parameter, Read
from counterpoint.privacy.certificates import Certificate, machine_checked
from counterpoint.privacy.claims import Claim
from counterpoint.privacy.relations import Relation

T = TypeVar("T")


def _accumulator(given: object, _what: str) -> Accumulator:
    """Read a measure as its accumulator."""
    if isinstance(given, Accumulator):
        return given
    reason = ""
    if isinstance(given, type) and issubclass(given, Loss):
        try:
            return odometer_for(given)
        except NotCovered as error:
            reason = f". Why not this one: {error}"
    raise InvalidParameter(
        "Odometer takes PureDP, zCDP, ApproxzCDP or GaussianDP; for others there are Odometer.approximate(delta=...), "
        f".renyi(alpha=...), .tcdp(omega=...), .advanced(...), .filter(...), .mixture(...) and .stitched(...){reason}"
    )


class Odometer(Rule, Value, frozen=True):
    """Keeps count in one measure: `Odometer(PureDP)`, `Odometer(zCDP)`, `Odometer(ApproxzCDP)` (for mechanisms that
    answer once), `Odometer(GaussianDP)`, or one built below.

    It promises no bound, so it has no claim and can't be launched inside a filter; `within(budget)` makes one of it.
    """

    empty: Annotated[Parameter[Accumulator, type[Loss] | Accumulator], Read(_accumulator)]

    counts_launches: ClassVar[bool] = True

    @classmethod
    def approximate(
        cls,
        delta: Number,
        tuned_for: Number = 1,
        *,
        by: Literal["best", "basic", "renyi"] = "best",
        slack: Number | None = None,
        alpha: Number | None = None,
    ) -> Self:
        """(epsilon, delta) at a delta fixed in advance, tightest near epsilon = `tuned_for`.

        See theory, The default filter and The Renyi filter by reduction.

        >>> rule = Odometer.approximate(delta=1e-6)
        >>> rule.loss(rule.start())
        ApproxDP(0, 1e-6)
        """
        if by == "basic":
            return cls(ApproximateSum())
        total, tail = _split(delta, slack)
        target = positive(tuned_for, "tuned_for")
        if alpha is None:
            fixed = Tail(total, tail, order_for(target, tail), tuned_for=target, given=None if slack is None else tail)
        else:
            fixed = Tail(total, tail, above_one(alpha, "alpha"))
        return cls(ApproximateSum(fixed, None if by == "renyi" else Fraction(0)))

    @classmethod
    def advanced(cls, delta: Number, slack: Number | None = None) -> Self:
        """Haney et al. 2023, Thm 3.8: the odometer of Whitehouse et al. 2023, Thm 1, at a delta and slack fixed in
        advance.

        >>> rule = Odometer.advanced(delta=1e-5, slack=1e-6)
        >>> rule.loss(rule.start())
        ApproxDP(0, 1e-5)
        """
        return cls(AdvancedSum(*_split(delta, slack)))

    @classmethod
    def gaussian(cls) -> Self:
        """Gaussian DP of pure and Gaussian launches, read exactly: the least mu from which a reserve pays for all.

        Forty launches of 0.1 read 0.641, where the squares of `Odometer(GaussianDP)` add up to 0.793. Each reading
        takes time for every launch, and the account remembers the runs of unlike ones (theory, A Gaussian odometer).

        >>> from counterpoint import Laplace
        >>> rule = Odometer.gaussian()
        >>> account = rule.admit(rule.admit(rule.start(), Laplace(0.1).claim), Laplace(0.3).claim)
        >>> rule.loss(account)
        GaussianDP(~0.388628)
        """
        return cls(GaussianChain())

    @classmethod
    def renyi(cls, alpha: Number) -> Self:
        """Renyi losses of one order.

        >>> Odometer.renyi(8).start().total
        RenyiDP(alpha=8, epsilon=0)
        """
        return cls(RenyiSum(above_one(alpha, "alpha")))

    @classmethod
    def tcdp(cls, omega: Number) -> Self:
        """TCDP up to an omega (which shrinks to the smallest that is launched).

        >>> Odometer.tcdp(20).start().total
        tCDP(rho=0, omega=20)
        """
        return cls(TCDPSum(tCDP(0, omega)))

    @classmethod
    def filter(cls, delta: Number, tuned_for: Number, slack: Number | None = None) -> Self:
        """Whitehouse et al.'s time-uniform filter odometer, tangent to advanced composition at the target epsilon;
        one-sided.

        `slack` is the part of delta for the tail bound. If it is left out, the first launch decides: nine tenths of
        delta if it has none itself, else half.
        """
        return cls._time_uniform("filter", delta, tuned_for, slack)

    @classmethod
    def mixture(cls, delta: Number, tuned_for: Number, slack: Number | None = None) -> Self:
        """Whitehouse et al.'s time-uniform mixture odometer; its readings are one-sided, `two_sided()` says what
        holds from both.

        >>> from counterpoint import Laplace
        >>> rule = Odometer.mixture(delta=1e-6, tuned_for=1.0)
        >>> reading = rule.loss(rule.admit(rule.start(), Laplace(0.1).claim))
        >>> round(float(reading.epsilon), 4), float(reading.delta), round(float(reading.two_sided().delta), 9)
        (0.5837, 1e-06, 1.839e-06)
        """
        return cls._time_uniform("mixture", delta, tuned_for, slack)

    @classmethod
    def stitched(cls, delta: Number, tuned_for: Number, slack: Number | None = None) -> Self:
        """Whitehouse et al.'s time-uniform stitched odometer, one-sided; infinite until a tenth of the target has
        been spent.
        """
        return cls._time_uniform("stitched", delta, tuned_for, slack)

    @classmethod
    def _time_uniform(cls, kind: Kind, delta: Number, tuned_for: Number, slack: Number | None) -> Self:
        target = positive(tuned_for, "tuned_for")
        half = _tuned(kind, target, *_split(delta, slack))
        if slack is not None:
            return cls(half)
        return cls(replace(_tuned(kind, target, half.delta, half.delta * _IF_PURE), if_exposed=half))

    def __repr__(self) -> str:
        measure = type(self.empty.total)
        with suppress(NotCovered):
            if odometer_for(measure) == self.empty:
                return f"Odometer({measure.__name__})"
        return f"Odometer({self.empty!r})"

    def within(self, budget: Loss) -> Filter:
        """The filter that admits launches while this odometer reads at most `budget`: Haney et al. 2023, Lemma 2.19.

        It promises the budget, so it can be delegated, which an odometer cannot. The budget is a loss of the measure
        that is read, at the odometer's order and delta (`OneSidedDP` for the time-uniform odometers).

        >>> from counterpoint import PureDP, RenyiDP
        >>> Odometer(PureDP).within(PureDP(1)), Odometer.renyi(8).within(RenyiDP(8, 1))
        (Filter(PureDP(1)), Filter(RenyiDP(alpha=8, epsilon=1)))
        """
        with suppress(NotCovered):
            plain = Filter(budget)
            if plain.start() == self.empty:
                return plain
        return Filter(budget, empty=self.empty)

    def start(self) -> Accumulator:
        """The sum before the first launch."""
        return self.empty

    def admit(self, account: Account, claim: Claim) -> Accumulator:
        """Always admits what its theorem covers."""
        assert isinstance(account, Accumulator)
        return account.plus(claim.loss, claim.interaction)

    def loss(self, account: Account) -> Loss:
        """The total of the sum so far."""
        assert isinstance(account, Accumulator)
        return account.total

    def loss_at(self, distance: int, launched: Iterable[Claim]) -> Loss:
        """The group losses of the launches, added up by the same theorem (theory, Groups).

        >>> from counterpoint import Laplace, PureDP
        >>> Odometer(PureDP).loss_at(3, [Laplace(0.1).claim])
        PureDP(0.3)
        """
        return read_at(distance, launched, self.empty)

    def bound(self, relation: Relation) -> Loss:
        """`NotCovered`: an odometer promises no bound."""
        raise NotCovered("an odometer promises no bound, so it has no claim; use a Filter where one is needed")

    def promise(self, relation: Relation) -> Certificate:
        """`NotCovered`: an odometer promises no bound."""
        raise NotCovered("an odometer promises no bound, so it has no claim; use a Filter where one is needed")

    def certificate(self, account: Account) -> Certificate:
        """What the reading means, and the theorem behind it."""
        assert isinstance(account, Accumulator)
        meaning = "for every threshold fixed in advance, the view truncated before it is exceeded is within it"
        about = isinstance(account.total, PureDP | ApproxDP)  # the thresholds that Coq has checked
        by = machine_checked("Haney et al. 2023, Lemma 2.19", "odometer_iff_filter" if about else None)
        return Certificate(f"{account.total!r} read so far: {meaning}", by, (account.certificate,))


def truncated(readings: Iterable[tuple[Loss, T]], threshold: Loss) -> tuple[T, ...]:
    """The view up to, and without, the first answer after which the odometer exceeds the threshold.

    See Haney et al. 2023, Def 1.13.

    Each answer comes with the loss read *after* it was produced (errata, Haney E3: read before, the view would keep the
    answer that exceeds). Equality with the threshold stays in. The threshold is a loss of the measure that is read
    (`OneSidedDP` for Whitehouse et al.'s time-uniform odometers); a reading of another measure says nothing about it
    and is refused.

    >>> from counterpoint import PureDP
    >>> truncated([(PureDP(0.5), "a"), (PureDP(1), "b"), (PureDP(1.1), "c"), (PureDP(1.1), "d")], PureDP(1))
    ('a', 'b')
    """
    kept: list[T] = []
    for loss, answer in readings:
        if not loss.can_keep(threshold):
            raise NotCovered(
                f"{threshold!r} is not a threshold for an odometer that reads {loss!r}; give one of the same measure, "
                "order and delta"
            )
        if not loss.within(threshold):
            break
        kept.append(answer)
    return tuple(kept)


_IF_PURE = Fraction(9, 10)
"""The share of delta for the tail bound of a time-uniform odometer whose first launch has no delta."""


def _tuned(kind: Kind, target: Fraction, delta: Fraction, slack: Fraction) -> TimeUniform:
    return TimeUniform(kind, constant_for(kind, target, slack), delta, slack)


def _split(delta: Number, slack: Number | None) -> tuple[Fraction, Fraction]:
    total = probability(delta, "delta")
    tail = total / 2 if slack is None else exact(slack, "slack")
    if not 0 < tail <= total or tail >= 1:
        raise InvalidParameter("slack must be above 0, at most delta and below 1")
    return total, tail
