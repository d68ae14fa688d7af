"""The analyst's end of one launched mechanism, and the quote of one that is not launched yet.

Asking through a handle costs nothing more. The handles of one session may be asked in any order, and each is found
again by its path after a restart. A quote comes from the code that would admit the launch.

>>> import counterpoint as cp
>>> session = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1))
>>> session.would_cost(cp.Laplace(epsilon=0.4))
Quote(cost=PureDP(0.4), after=PureDP(0.4), mechanism=Laplace(0.4))
>>> noisy = session.launch(cp.Laplace(epsilon=0.4, asks=2))
>>> noisy.path, session.at(noisy.path).mechanism == noisy.mechanism
((0,), True)
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, overload

from counterpoint.answers.present import marked
from counterpoint.continual.counter import Counter
from counterpoint.display.charts import Series
from counterpoint.display.markup import Picture
from counterpoint.encoding import Plain, Value
from counterpoint.errors import CounterpointError, DataLost, InvalidRequest, LedgerError, NotCovered
from counterpoint.ledger.chain import Disclosure, Signed
from counterpoint.ledger.commands import Fit
from counterpoint.ledger.state import Faulty, Path, Sealed
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.additive import Gaussian, Laplace
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.mechanisms.sparse_vector import AboveThreshold, SparseVector
from counterpoint.numbers import Number
from counterpoint.numbers.exact import exact
from counterpoint.queries.request import PreparedQuery, Request, in_units
from counterpoint.queries.source import Source
from counterpoint.session.expected import Expected
from counterpoint.session.fit import explained, public_part
from counterpoint.session.step import follows_updates

if TYPE_CHECKING:
    from typing_extensions import TypeVar as _Kind

    from counterpoint.session.session import Session

    M_co = _Kind("M_co", bound=Mechanism, covariant=True, default=Mechanism)
else:
    M_co = TypeVar("M_co", covariant=True)
M = TypeVar("M", bound=Mechanism)


class Released(NamedTuple):
    """What a mechanism answered, and what makes it an answer in units: the request's public facts, or a grid."""

    answer: Plain
    prepared: PreparedQuery | None
    grid: Fraction
    made_up: bool

    def in_units(self) -> Any:
        """The answer, in the request's units."""
        found = in_units(self.answer, self.grid) if self.prepared is None else self.prepared.in_units(self.answer)
        return marked(found) if self.made_up else found


class Handle(Generic[M_co]):
    """The analyst's end of one launched mechanism."""

    def __init__(self, session: "Session", source: Source, path: Path, mechanism: M_co, data_version: int = 1) -> None:
        self._session = session
        self._source = source
        self._path = path
        self._follows: bool | None = None
        self.mechanism = mechanism
        self.data_version = data_version
        """The number of the version of the data that it was launched on, and keeps."""

    @property
    def path(self) -> Path:
        """Where this handle is found again: `session.at(handle.path)`."""
        return self._path

    @property
    def cost(self) -> Loss:
        """What its launch was charged; asking costs nothing more.

        >>> import counterpoint as cp
        >>> cp.Session(cp.Stream(bound=1), within=cp.PureDP(1)).launch(cp.Laplace(epsilon=0.4, asks=2)).cost
        PureDP(0.4)
        """
        return self.mechanism.claim.loss

    @overload
    def ask(
        self: "Handle[AboveThreshold]", request: object = None, *, id: str | None = None, **options: Any
    ) -> bool: ...
    @overload
    def ask(
        self: "Handle[SparseVector]", request: object = None, *, id: str | None = None, **options: Any
    ) -> bool | tuple[bool, int | Fraction]: ...
    @overload
    def ask(self: "Handle[Laplace | Gaussian]", request: Request[int], *, id: str | None = None) -> int: ...
    @overload
    def ask(
        self: "Handle[Laplace | Gaussian]", request: Request[int | Fraction], *, id: str | None = None
    ) -> int | Fraction: ...
    @overload
    def ask(
        self: "Handle[Laplace | Gaussian]", request: Request[Fraction], *, id: str | None = None
    ) -> Fraction | float: ...
    @overload
    def ask(self, request: object = None, *, id: str | None = None, **options: Any) -> Any: ...
    def ask(self, request: object = None, *, id: str | None = None, **options: Any) -> Any:
        """Ask; the answer is in the request's units. Malformed asks are `InvalidRequest` and change nothing.

        `options` are the mechanism's own, such as `threshold=` of a sparse vector. The same `id` gets the same answer;
        it means so in this session, whatever ids others use. `Halted` if the mechanism has given its last answer, or
        if its code failed: code that sees data must not, whatever the data, as that would tell of it.
        """
        return self._release(request, id, options).in_units()

    def _release(self, request: object, id: str | None, options: Mapping[str, Any]) -> Released:
        self._session._must_be_open()
        prepared = None if request is None else self._source.prepare(request)
        return self._asked(prepared, public_part(self.mechanism, prepared, options), id)

    def _asked(self, prepared: PreparedQuery | None, public: Plain, id: str | None) -> Released:
        """Ask with this public part."""
        refused: str | None = None
        if self._follows is None:  # decided once for all asks of this handle
            self._follows = follows_updates(self.mechanism, self._source)
        try:
            answer = self._session._engine.ask(
                self._path,
                self._source,
                prepared,
                public,
                sequential=self._session._sequential,
                follows=self._follows,
                request=id,
                sees=self.data_version,
            )
        except DataLost:  # it was accepted, and is finished by its id
            raise
        except InvalidRequest as error:
            refused = str(error)
        if refused is not None:
            raise InvalidRequest(explained(self.mechanism, public, prepared) or refused)
        return Released(answer, prepared, self._source.update_grid, self._source.made_up)

    def _receipt(self, id: str) -> tuple[Signed, Disclosure]:
        """The receipt for an answer of this handle, by the id that its ask was given."""
        return self._session._engine.receipt(self._path[:-1], id)

    def error(self, request: object, probability: Number = "0.95", *, simultaneous: bool = False) -> int | Fraction:
        """How far off the answer to this request would be at most, with this probability, in the request's units.

        By the law of the noise and the declaration; nothing is asked. Where the answer has several numbers, each is so
        far off at most, or with `simultaneous=True` all of them at once. `NotCovered` where no error is stated.

        >>> import counterpoint as cp
        >>> session = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1))
        >>> session.launch(cp.Laplace(epsilon=0.1)).error(cp.total(), 0.95)
        30
        """
        return error_of(self.mechanism, self._source.prepare(request), probability, simultaneous)

    def plot(self, answers: Mapping[int, float | Fraction], probability: Number = "0.95") -> Picture:
        """These answers of a counter as a line, with the band of their error; by how many items each was asked after.

        Each answer is within the band with this probability.

        >>> import counterpoint as cp
        >>> visits = cp.Stream(bound=1)
        >>> counter = cp.Session(visits, within=cp.PureDP(1)).launch(cp.Counter(epsilon=1))
        >>> seen = {}
        >>> for n in range(1, 4):
        ...     visits.append(1)
        ...     seen[n] = counter.ask()
        >>> len(counter.plot(seen).points)
        3
        """
        return series_of(self.mechanism, self._source.update_grid, answers, probability, made_up=self._source.made_up)

    @property
    def halted(self) -> bool:
        """Whether the mechanism has given its last answer, or its code failed, or no key at hand opens its state."""
        row = self._session._engine.ledger.read(self._path)
        return row is None or row.state is None or isinstance(row.state, Sealed | Faulty)

    def __repr__(self) -> str:
        try:
            return f"Handle({self.mechanism!r}{', halted' if self.halted else ''})"
        except LedgerError:  # it is closed, or cannot be read
            return f"Handle({self.mechanism!r})"


def error_of(mechanism: Mechanism, prepared: PreparedQuery, probability: Number, simultaneous: bool) -> int | Fraction:
    """How far off a mechanism's answer to a request would be at most, with this probability, in the request's units."""
    message = prepared.message()
    if not mechanism.accepts(message):
        raise InvalidRequest(explained(mechanism, None, prepared) or f"{type(mechanism).__name__} does not accept this")
    numbers = (prepared.width or 1) if simultaneous else prepared.simultaneous_values
    return prepared.error_in_units(mechanism.answer_error(message, probability, numbers))


def series_of(
    counter: Mechanism,
    grid: Fraction,
    answers: Mapping[int, float | Fraction],
    probability: Number,
    *,
    made_up: bool,
) -> Picture:
    """These answers of a counter as a line, with the band of their error."""
    if not isinstance(counter, Counter):
        raise NotCovered(
            f"{type(counter).__name__} is not a Counter, whose answers make a series; an answer of session.ask has a "
            "plot() of its own"
        )
    points = (
        (float(t), float(answer), float(counter.error(probability, t) * grid)) for t, answer in sorted(answers.items())
    )
    sure = f"{float(100 * exact(probability)):g} %"
    return Series(f"{counter!r}{' (made up)' if made_up else ''}", tuple(points), "items", sure)


class Quote(Value, frozen=True):
    """What a launch would cost: its own loss, what would have been lost after it, and if it is refused, why.

    `mechanism` is what would be launched, `expected` what its answer to the request will be worth, where that is known.
    """

    cost: Loss
    after: Loss | None
    refusal: str | None = None
    mechanism: Mechanism | None = None
    expected: Expected | None = None

    @property
    def fits(self) -> bool:
        """Whether the launch would be admitted."""
        return self.refusal is None


def quote_of(session: "Session", fit: Fit, expected: Expected | None = None) -> Quote:
    """What the launch of a fitted mechanism would cost in this session."""
    cost, mechanism = fit.claim.loss, fit.mechanism
    try:
        account = session._engine.quote(session._path, fit)
    except LedgerError:  # no refusal of the rule: the account could not be read
        raise
    except CounterpointError as error:
        return Quote(cost, None, f"{type(error).__name__}: {error}", mechanism, expected)
    return Quote(cost, session.rule.loss(account), None, mechanism, expected)
