"""Questions: launch what fits and ask it once, as one request. `Session.ask` and the quotes of it.

A question is one request with one id: a question that crashed, or that is asked again, finds its own answer, and is
charged once. Which mechanisms can answer it follows from the question alone; which of them lowers the budget least may
depend on the account, and is decided in the transaction that charges it.

>>> import counterpoint as cp
>>> session = cp.Session(cp.Stream(bound=1), within=cp.zCDP(1))
>>> first = session.ask(cp.total(), error=50, id="visits")
>>> session.ask(cp.total(), error=50, id="visits") == first, session.loss == first.cost.as_zcdp()
(True, True)
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypedDict

from counterpoint.answers.arithmetic import read_ratio
from counterpoint.answers.present import as_sql_table, present, suppress_noisy
from counterpoint.answers.provenance import SURE, Mechanisms, Provenance, Reason
from counterpoint.encoding import Plain, plain_number
from counterpoint.errors import InvalidParameter, NotCovered
from counterpoint.ledger.commands import Fit, cheapest
from counterpoint.measures import GaussianDP, zCDP
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.additive import Gaussian, Laplace
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.mechanisms.noisy_max import NoisyMax
from counterpoint.numbers import Exact, Number, exact, format_number
from counterpoint.numbers.exact import positive, whole
from counterpoint.privacy.relations import Relation
from counterpoint.queries.request import OnSource, PreparedQuery
from counterpoint.queries.select import divided_for
from counterpoint.queries.several_quantiles import CumulatedQuantiles
from counterpoint.queries.source import Source
from counterpoint.queries.statistics import COUNTS
from counterpoint.session.expected import Expected
from counterpoint.session.fit import answering, launchable
from counterpoint.session.pricing import is_discrete, keeping, offered, price
from counterpoint.sql_requests.query import SQLQuery

if TYPE_CHECKING:
    from counterpoint.session.session import Session


@dataclass(frozen=True, slots=True)
class AnswerTerms:
    """What an answer may cost, or how far off it may be: one of the two."""

    loss: Loss | None
    error: Number | None
    probability: Number
    simultaneous: bool
    in_rows: bool = False
    suppress: Fraction | None = None
    rows: int | None = None
    """Of how many rows at least an answer is said to be."""
    relative: bool = False
    """Whether the error was given as a part of that many rows."""

    @property
    def recorded(self) -> Plain:
        """What the record keeps of the terms; what is done with the answer afterwards is no part of them."""
        if self.loss is not None:
            return (self.loss,)
        assert self.error is not None
        error, sure = plain_number(exact(self.error)), plain_number(exact(self.probability))
        terms = (error, sure, self.simultaneous, self.in_rows)
        return terms if self.rows is None else (*terms, self.rows)

    def fits(self, prepared: PreparedQuery, relation: Relation) -> tuple[Fit, ...]:
        """The mechanisms on these terms: of a price the one with the least error first, of an error in no order."""
        if self.loss is not None:
            return offered(prepared, self.loss, relation)
        fits = (answering(mechanism, prepared, relation) for mechanism in self.keeping(prepared))
        return tuple(fit for fit in fits if fit is not None)

    def candidates(self, fits: tuple[Fit, ...]) -> tuple[Fit, ...]:
        """Those among which the account decides: at a price, none but the first, and its rounded normal.

        A discrete Gaussian may have less noise than the rounded normal of the same rho, and cost more than that where
        Gaussian DP is counted, or not be covered.
        """
        if self.error is not None or not is_discrete(fits[0].mechanism):
            return fits if self.error is not None else fits[:1]
        return (fits[0], *(fit for fit in fits[1:] if isinstance(fit.mechanism, Gaussian)))

    def keeping(self, prepared: PreparedQuery) -> Mechanisms:
        """The mechanisms that keep the wanted error, each at its least price."""
        if self.error is None:
            raise InvalidParameter(_HOW_FAR)
        request = prepared.request.request if isinstance(prepared.request, OnSource) else prepared.request
        if self.relative and not isinstance(request, COUNTS):
            raise NotCovered(
                "relative_error= is for counts, whose size rows_at_least= bounds; give error= in units of the request"
            )
        return keeping(
            prepared,
            self.error,
            self.probability,
            simultaneous=self.simultaneous,
            in_rows=self.in_rows,
            rows=self.rows,
        )

    def expected(self, mechanism: Mechanism, prepared: PreparedQuery) -> Expected | None:
        """What the answer of this mechanism will be worth, and what other prices would buy."""
        sure = exact(self.probability)
        found = Expected.of(mechanism, prepared, sure, simultaneous=self.simultaneous, rows=self.rows)
        return None if found is None else found.beside(mechanism, prepared, self.simultaneous, self.rows)

    def check(self, prepared: PreparedQuery) -> None:
        """Refuse, before anything is charged, to suppress what is no number with an error."""
        if self.suppress is None or prepared.parts((0,) * (prepared.width or 1)):
            return
        if prepared.wants != "numbers" or not prepared.states_error or isinstance(prepared, CumulatedQuantiles):
            raise InvalidParameter(
                "suppress= is for numbers that state an error; leave it out for quantiles, choices and keys"
            )

    def reason(self, fits: tuple[Fit, ...]) -> Reason:
        """Why one of these mechanisms is launched."""
        mechanisms = tuple(fit.mechanism for fit in fits)
        if self.error is None:
            return Reason(mechanisms)
        rows = " rows of the best rank" if self.in_rows else ""
        kept = (
            f"within {format_number(exact(self.error))}{rows} with probability {format_number(exact(self.probability))}"
        )
        return Reason(mechanisms, kept)


class GivenTerms(TypedDict, total=False):
    """The keywords by which an analyst says what an answer may cost or how far off it may be."""

    epsilon: Number | None
    rho: Number | None
    mu: Number | None
    loss: Loss | None
    error: Number | None
    rank_error: Number | None
    probability: Number | None
    simultaneous: bool
    suppress: Number | None
    relative_error: Number | None
    rows_at_least: Number | None


def terms(  # noqa: PLR0917 - the keywords of `Session.ask`, in their order
    epsilon: Number | None = None,
    rho: Number | None = None,
    mu: Number | None = None,
    loss: Loss | None = None,
    error: Number | None = None,
    rank_error: Number | None = None,
    probability: Number | None = None,
    simultaneous: bool = False,
    suppress: Number | None = None,
    relative_error: Number | None = None,
    rows_at_least: Number | None = None,
    **unknown: object,
) -> AnswerTerms:
    """Read what an analyst gave: one price, or an error."""
    if unknown:
        names = ", ".join(f"{name}=" for name in unknown)
        known = ", ".join(f"{name}=" for name in GivenTerms.__annotations__)
        raise InvalidParameter(
            f"there is no {names} among the terms of an answer, which are {known} and id=; an epsilon with a delta is "
            "loss=ApproxDP(1, 1e-6)"
        )
    given = price(epsilon, rho, mu, loss)
    rows = None if rows_at_least is None else whole(rows_at_least, 1, "rows_at_least")
    relative = relative_error is not None
    if relative_error is not None:
        if rows is None:
            raise InvalidParameter(
                "relative_error=0.05 is a part of a number that is not known before: say how many rows there are at "
                "least, as in rows_at_least=10_000, which a rough count tells: "
                "session.ask(count(), epsilon=0.01).interval(0.99)[0]"
            )
        error = positive(relative_error, "relative_error") * rows if error is None else None
    if sum(it is not None for it in (given, error, rank_error)) != 1:
        raise InvalidParameter(
            "say what the answer may cost or how far off it may be, one of the two: epsilon=0.1, rho=, mu= or "
            "loss=PureDP(0.1); or error=50, which holds with probability=0.95 (rank_error=50 for a quantile)"
        )
    off = error if rank_error is None else rank_error
    if off is None and (probability is not None or simultaneous):
        raise InvalidParameter(
            "probability= and simultaneous= belong to error=; an answer states its error at any probability, as in "
            "answer.error(0.99)"
        )
    sure = SURE if probability is None else positive(probability, "the probability")
    ratio = None if suppress is None else read_ratio(suppress, "suppress")
    return AnswerTerms(given, off, sure, simultaneous, rank_error is not None, ratio, rows, relative)


def wanted_error(on: GivenTerms) -> AnswerTerms:
    """Read what an analyst gave where only an error makes sense."""
    if all(on.get(name) is None for name in ("error", "rank_error", "relative_error")):
        raise InvalidParameter(_HOW_FAR)
    return terms(**on)


_HOW_FAR = "say how far off the answer may be: error=50, or rank_error=50 for a quantile"


def prepare(source: Source, request: object, loss: Loss | None) -> PreparedQuery:
    """The public facts of a request, or of what a query asks, at this price."""
    asked = request.on(source) if isinstance(request, SQLQuery) else request
    prepared = source.prepare(divided_for(asked, "gaussian") if isinstance(loss, zCDP | GaussianDP) else asked)
    if isinstance(request, SQLQuery):
        request.check(prepared)
    return prepared


def ask(session: "Session", request: object, on: AnswerTerms, id: str | None) -> object:
    """Launch what answers the request on these terms, and ask it; one request, whose answer is found by its id."""
    return presented(request, release(session, request, on, id), on.suppress)


def release(
    session: "Session", request: object, on: AnswerTerms, id: str | None, typed: str | None = None
) -> Provenance:
    """The same, as what was released with where it comes from: all that an answer is made of.

    The history has the text that was `typed`: of SQL its own, of a form what a person wrote into it.
    """
    if typed is None:
        typed = request.text if isinstance(request, SQLQuery) else ""
    (sees, source), engine = session._seen_by(id), session._engine
    prepared = prepare(source, request, on.loss)
    on.check(prepared)
    fits = on.fits(prepared, source.relation)
    mechanism, released = engine.question(
        session._path, on.candidates(fits), prepared, on.recorded, source, request=id, sees=sees, typed=typed
    )
    return Provenance(mechanism, prepared, released, on.reason(fits), source.made_up)


def presented(request: object, provenance: Provenance, suppress: Fraction | None) -> object:
    """The answer to a request, made of what was released: postprocessing, so it can be done anywhere."""
    answer = present(provenance)
    if isinstance(request, SQLQuery):
        answer = as_sql_table(request, answer, provenance)
    return answer if suppress is None else suppress_noisy(answer, suppress)


def would_launch(session: "Session", given: object, on: GivenTerms) -> tuple[Mechanism, Expected | None]:
    """The mechanism that was given, at its own price; or what would be launched for a request on these terms.

    With what the answer to the request will be worth, where that is known before.
    """
    if isinstance(given, type):
        launchable(given, session._source)  # which refuses it, and says what to write instead
    if isinstance(given, Mechanism):
        if on:
            heads = ", ".join(f"{name}=" for name in on)
            raise InvalidParameter(f"{heads} goes with a request; a mechanism has a price")
        return given, None
    asked = terms(**on)
    prepared = prepare(session._source, given, asked.loss)
    composition, node = session._engine.node(session._path)
    candidates = asked.candidates(asked.fits(prepared, session._source.relation))
    found = cheapest(composition, node.account, candidates).mechanism
    return found, asked.expected(found, prepared)


def epsilon_for(session: "Session", request: object, on: AnswerTerms) -> Exact:
    """The least epsilon of four digits at which an answer keeps the wanted error."""
    pure, *_ = on.keeping(prepare(session._source, request, None))
    assert isinstance(pure, Laplace | NoisyMax) and pure.epsilon is not None
    return Exact(pure.epsilon)
