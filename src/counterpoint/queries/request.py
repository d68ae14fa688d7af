"""Requests, the questions that data answer, and prepared queries: a request with everything public about its answer.

A request is checked against a declaration, which makes it a `QueryPlan` and a `PreparedQuery`, from public facts alone;
`read_rows` makes the answer of what the engine returned. `aggregates`, `variance`, `quantiles`, `extremes` and `select`
have the requests.

>>> from counterpoint.queries.aggregates import count
>>> isinstance(count(), Request), count().why_no_updates
(True, None)
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

from counterpoint.encoding import Plain, Tagged, Value
from counterpoint.errors import InvalidRequest, NotCovered, shown
from counterpoint.mechanisms.mechanism import Chosen
from counterpoint.numbers import Exact
from counterpoint.privacy.messages import Ask
from counterpoint.privacy.secret import Raw, Secret, Tally
from counterpoint.queries.grouping import cell_by_cell
from counterpoint.queries.plan import QueryPlan, tally
from counterpoint.queries.sensitivity import Sensitivities, one_way, sum_sensitivities
from counterpoint.schema.columns import KeyOrTuple
from counterpoint.schema.declaration import Declaration
from counterpoint.schema.expressions.conditions import condition
from counterpoint.schema.expressions.tree import Condition

Wants: TypeAlias = Literal["numbers", "choice", "keys"]
"""What a request wants of a mechanism."""


class PreparedQuery(Tagged, Value, frozen=True):
    """A request that has been checked against the source's declaration, with everything public about its value."""

    request: Plain
    sensitivity: int
    squared: int
    width: int | None
    grid: Fraction
    each: int | None = None
    one_way: bool = False
    names: tuple[KeyOrTuple, ...] | None = None
    units: str | None = None

    def in_units(self, answer: Plain) -> object:
        """A noisy integer (or a tuple of them) in the user's units: an int where the grid is 1, else a Fraction.

        A chosen coordinate becomes its name, or its index if it has none.

        >>> PreparedQuery(None, 1, 1, 2, Fraction(1), names=("CA", "NY")).in_units(Chosen(1))
        'NY'
        """
        if isinstance(answer, Chosen):
            return answer.index if self.names is None else self.names[answer.index]
        return in_units(answer, self.grid)

    @property
    def wants(self) -> Wants:
        """What kind of mechanism answers it: one that adds noise to numbers, or chooses a coordinate, or selects keys.

        >>> PreparedQuery(None, 1, 1, None, Fraction(1)).wants
        'numbers'
        """
        return "numbers"

    @property
    def cells(self) -> int:
        """In how many cells a choice is wanted, where one is (see `Ask`)."""
        return 1

    @property
    def options(self) -> Mapping[str, int]:
        """The options of a mechanism that the request itself gives with the ask, such as `top` of a noisy max."""
        return {}

    @property
    def states_error(self) -> bool:
        """Whether an error of the integers is one of the answer: not if `in_units` does more than multiply.

        A subclass with another `in_units` states an error by overriding this, `simultaneous_values` and `error_from`.
        """
        return type(self).in_units is PreparedQuery.in_units

    @property
    def simultaneous_values(self) -> int:
        """How many numbers of the noisy answer make one number in the user's units: two for a mean."""
        return 1

    def error_in_units(self, steps: int) -> int | Fraction:
        """How far an answer is off in the user's units if its integers are off by `steps`; or `NotCovered`."""
        if not self.states_error:
            raise NotCovered(
                f"no error is stated for {shown(self.request, 200)}: ask for counts or sums, which have one"
            )
        return steps if self.grid == 1 else Exact(steps * self.grid)

    def error_among(self, steps: int, rows: int | None) -> int | Fraction:
        """The same in advance, where it depends on how many rows the answer is about: of at least so many."""
        return self.error_in_units(steps)

    def steps_keeping(self, error: Fraction, rows: int | None) -> int:
        """By how many steps integers may be off so that an answer about at least so many rows is within this error."""
        self.error_in_units(0)  # refuses where no error is stated
        return floor(self.to_grid(error))

    def error_from(self, answer: Plain, steps: int) -> int | Fraction:
        """The same, where it may depend on the noisy answer itself: on what was released, never on the data."""
        return self.error_in_units(steps)

    def parts(self, answer: Plain) -> "Mapping[str, tuple[PreparedQuery, Plain]]":
        """Where an answer is several questions' at once: for each name what was asked, and its share of the integers.

        The noise of all of them is that of the whole request; a part says how its integers are read.
        """
        return {}

    def signal(self, answer: Plain) -> int:
        """The size of what noise could drown, on the grid of the integers: that of the number itself."""
        assert isinstance(answer, int)
        return abs(answer)

    @property
    def measured_in(self) -> str | None:
        """What the answer is measured in, if its column declares that."""
        return self.units

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """What the values of the answer are called where `names` says nothing; no mechanism needs it."""
        request = self.request.request if isinstance(self.request, OnSource) else self.request
        return request.labels if isinstance(request, Request) else None

    def message(self, public: Plain = None) -> Ask:
        """The ask that a mechanism receives, with this public part; what is private is blank (see `Ask.carrying`)."""
        return Ask(
            public, self.blank(), self.sensitivity, self.squared, each=self.each, one_way=self.one_way, cells=self.cells
        )

    def blank(self) -> Secret:
        """A secret of this public shape: a mechanism that accepts it accepts the real one."""
        return Secret(0 if self.width is None else (0,) * self.width)

    def to_grid(self, value: Fraction) -> Fraction:
        """A number in the user's units (such as a threshold), counted in steps of the grid."""
        return value / self.grid


def in_units(answer: Plain, grid: Fraction) -> object:
    """The integers of an answer as multiples of the grid; anything else stays as it is.

    >>> in_units((3, True), Fraction(1, 2)), in_units(3, Fraction(1))
    ((1.5, True), 3)
    """
    if isinstance(answer, tuple):
        return tuple(in_units(item, grid) for item in answer)
    if isinstance(answer, bool) or not isinstance(answer, int):
        return answer
    return answer if grid == 1 else Exact(answer * grid)


def describe_request(request: object) -> str:
    """A request that no source knows, as an error message names it.

    >>> describe_request("how many?"), describe_request(sum), describe_request(3)
    ("the text 'how many?'", 'the function sum: call it, as in sum(...)', 'a value of type int')
    """
    if isinstance(request, str):
        query = request.lstrip()[:6].upper() == "SELECT"
        return f"the text {request[:40]!r}{': ask it by session.sql(...)' if query else ''}"
    if isinstance(request, OnSource):
        return f"one about several sources: there is one here, so leave out of={request.source!r}"
    if callable(request):
        name = getattr(request, "__name__", "it")
        return f"the function {name}: call it, as in {name}(...)"
    return f"a value of type {type(request).__name__}"


if TYPE_CHECKING:
    from typing_extensions import TypeVar as _Kind

    A = _Kind("A", default=Any)
else:
    A = TypeVar("A")


class Request(Tagged, Generic[A]):
    """A question for a table.

    `A` is for type checkers: what the answer is in units, such as `Request[int]`. A choice of a candidate is a
    `Request[Chosen]`, and an answer for each key a `Request[tuple[object, ...]]`. `Session.ask` and `Handle.ask` say by
    it what they return.
    """

    __slots__ = ()
    where: str | None

    @abstractmethod
    def plan(self, declared: Declaration) -> QueryPlan:
        """The plan of this request on a declaration, or `InvalidRequest`."""

    def read_cells(self, declared: Declaration, found: tuple[int, ...]) -> Raw:
        """The answer in its public shape, from one integer per cell."""
        return found[0]

    def read_rows(self, declared: Declaration, plan: QueryPlan, fetched: Sequence[Sequence[Any]]) -> Raw | Tally:
        """The answer, from the rows that the engine returned for the plan."""
        return self.read_cells(declared, tally(plan, fetched))

    @property
    def keyed_by(self) -> tuple[str, ...]:
        """The heads of what names the values of the answer, such as columns of keys; none where they are numbered."""
        return ()

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """What the values of the answer are called where `names` says nothing, one item for each head of `keyed_by`.

        Labels are public facts of the request that no mechanism and no record needs.
        """
        return None

    def units(self, declared: Declaration) -> str | None:
        """What the answer is measured in, if the declaration of its column says that."""
        return None

    @property
    def why_no_updates(self) -> str | None:
        """Why no mechanism can follow this request as rows arrive; None if its answer is a sum over rows.

        Such a sum adds up `read_cells` of each row alone, so `read_cells` must be linear.
        """
        return "its answer is not a sum of what each row adds by itself"

    def sensitivities(self, declared: Declaration, plan: QueryPlan) -> Sensitivities:
        """How far the answer can move in the L1 norm, in the squared L2 norm and in each coordinate."""
        rows = 1 if plan.once else declared.rows_per_unit
        return sum_sensitivities(plan.corners, rows, declared.neighbours, plan.groups)

    def prepare(self, declared: Declaration, plan: QueryPlan) -> PreparedQuery:
        """Everything public about the answer; `plan` is this request's plan on the same declaration."""
        return PreparedQuery(*self._facts(declared, plan))

    def _facts(self, declared: Declaration, plan: QueryPlan) -> tuple[Any, ...]:
        """The public facts of the answer, in the order of the fields of `PreparedQuery`."""
        most, up = self.sensitivities(declared, plan), one_way(plan.corners, declared.neighbours)
        names, units = self.names(declared), self.units(declared)
        return self, most.l1, most.squared, plan.width, plan.grid, most.each, up, names, units

    def names(self, declared: Declaration) -> tuple[KeyOrTuple, ...] | None:
        """The names of the values that `in_units` gives, in the user's units; None if they have none."""
        return None

    def _condition(self, declared: Declaration) -> Condition | None:
        return None if self.where is None else condition(self.where, declared)


R = TypeVar("R")


class OnSource(Tagged, Value, frozen=True):
    """A request for the source of this name among several (`Sources`).

    >>> from counterpoint.queries.aggregates import count
    >>> count(where="people.age >= 65", of="visits")
    OnSource(source='visits', request=Count(where='people.age >= 65'))
    """

    source: str
    request: Plain

    def __post_init__(self) -> None:
        """Check the name."""
        named: object = self.source
        if not (isinstance(named, str) and named.isidentifier()):
            raise InvalidRequest("of names one of several sources, as in count(of='visits')")


def on_source(of: str | None, request: R) -> R:
    """The request itself, or about the source of this name; for a reader of types it stays what it is."""
    return request if of is None else OnSource(of, request)  # type: ignore[return-value, arg-type]


class Averaged(PreparedQuery, frozen=True, kw_only=True):
    """A prepared mean: in units, a noisy pair becomes the mean, or None if the noisy count is not above 0.

    Where there are names, the answer has a pair for each of them.
    """

    low: Fraction
    high: Fraction

    def in_units(self, answer: Plain) -> object:
        """The middle plus half the width times the ratio of the coordinates, clamped to the bounds.

        >>> ages = Averaged(None, 240, 28_800, 2, Fraction(1, 2), low=Fraction(0), high=Fraction(120))
        >>> ages.in_units((-120, 240)), ages.in_units((5, 0))
        (30, None)
        """
        if not isinstance(answer, tuple):
            return answer.index if isinstance(answer, Chosen) else super().in_units(answer)  # a pair has one name
        means = tuple(self._mean(*pair) for pair in cell_by_cell(answer, 2))
        return means[0] if self.names is None else means

    def _mean(self, centred: Plain, weighed: Plain) -> Fraction | None:
        assert isinstance(centred, int) and isinstance(weighed, int)
        if weighed <= 0:
            return None
        return self._at(Fraction(centred, weighed))

    def _at(self, ratio: Fraction) -> Fraction:
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        return Exact(min(max(middle + half * ratio, self.low), self.high))

    @property
    def states_error(self) -> bool:
        """From the noisy sum and count."""
        return True

    @property
    def simultaneous_values(self) -> int:
        """A sum and a count."""
        return 2

    def signal(self, answer: Plain) -> int:
        """The count."""
        assert isinstance(answer, tuple)
        return super().signal(answer[1])

    def error_in_units(self, steps: int) -> Fraction:
        """It depends on how many rows there are."""
        raise NotCovered(
            "the error of a mean depends on how many rows it is a mean of, so that none is stated before it is asked: "
            "give ask() an epsilon=, and the answer states its error; or say how many rows there are at least, "
            "rows_at_least=, which a rough count tells; or ask for a sum and a count, each with error="
        )

    @property
    def _wide(self) -> Fraction:
        """How much a row adds to the count, in steps."""
        return (self.high - self.low) / (2 * self.grid)

    def error_among(self, steps: int, rows: int | None) -> Fraction:
        """How far a mean of at least `rows` rows is off, whatever they are, if its numbers are off by `steps`.

        With true sum C and count W, |C| <= W, the noisy ratio is off by |a - (C/W) b|/(W + b) <= 2 steps/(W - steps),
        half of the width for each 1; a clamp brings it no farther off. The largest error is the width.

        >>> ages = Averaged(None, 240, 28_800, 2, Fraction(1, 2), low=Fraction(0), high=Fraction(120))
        >>> float(ages.error_among(240, rows=1000)), ages.error_among(240, rows=2)
        (0.240..., 120)
        >>> ages.steps_keeping(Fraction(1), rows=1000)
        991
        """
        if rows is None:
            return self.error_in_units(steps)
        width, weight = self.high - self.low, rows * self._wide
        return Exact(min(width, width * steps / (weight - steps)) if weight > steps else width)

    def steps_keeping(self, error: Fraction, rows: int | None) -> int:
        """The inverse of `error_among`."""
        if rows is None:
            self.error_in_units(0)
            raise AssertionError("it refuses")
        return floor(error * rows * self._wide / (self.high - self.low + error))

    def error_from(self, answer: Plain, steps: int) -> Fraction:
        """The farthest mean that a sum and a count within `steps` of the noisy ones have.

        A noisy count that could be noise alone says nothing: then it is the farther of the two bounds.

        >>> ages = Averaged(None, 240, 28_800, 2, Fraction(1, 2), low=Fraction(0), high=Fraction(120))
        >>> ages.error_from((-12_000, 24_000), 240), ages.error_from((-120, 240), 240)
        (10/11, 90)
        """
        return self.error_within(answer, steps, steps)

    def error_within(self, answer: Plain, of_sum: int, of_count: int) -> Fraction:
        """The same, where the sum and the count may be off by different numbers of steps."""
        assert isinstance(answer, tuple)
        centred, weighed = answer
        assert isinstance(centred, int) and isinstance(weighed, int)
        mean = self._at(Fraction(centred, weighed))
        if weighed <= of_count:
            return Exact(max(mean - self.low, self.high - mean))
        corners = [(centred + a, weighed + b) for a in (-of_sum, of_sum) for b in (-of_count, of_count)]
        return Exact(max(abs(self._at(Fraction(*corner)) - mean) for corner in corners))
