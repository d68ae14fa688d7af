"""A mechanism takes what was left open from what is public about the data, before anything is checked or paid."""

from fractions import Fraction

import pyarrow as pa
import pytest
from tests.session.deeds import done
from tests.session.numbers_source import Numbers

import counterpoint as cp
from counterpoint.encoding import Value
from counterpoint.mechanisms.mechanism import Left
from counterpoint.privacy.claims import claim
from counterpoint.privacy.relations import Steps


class Following(cp.Mechanism, Value, frozen=True):
    """Follows vectors and says nothing: what is left open, it takes from the data."""

    epsilon: Fraction
    bound: int | None = None
    dimensions: int | None = None

    def fitted(self, relation, dimensions):
        if self.bound is not None:
            return self
        return Following(self.epsilon, relation.bound, dimensions)

    @property
    def claim(self):
        return claim(cp.PureDP(self.epsilon), Steps(updates=1, bound=self.bound), "it says nothing")

    def accepts(self, message):
        if isinstance(message, cp.mechanisms.Update):
            return message.private.width == self.dimensions
        return isinstance(message, cp.mechanisms.Ask) and message.private is None

    def start(self, coins):
        return Left(0)

    def step(self, state, message, coins):
        return (Left(state.asks + 1), None) if isinstance(message, cp.mechanisms.Update) else (state, state.asks)


def test_a_session_launches_the_mechanism_as_it_fits_the_data():
    clicks = cp.Stream(bound=3, dimensions=4)
    session = cp.Session(clicks, within=cp.PureDP(1))
    handle = session.launch(Following(Fraction(1, 2)))
    assert handle.mechanism == Following(Fraction(1, 2), 12, 4)
    clicks.extend([[1, 0, 0, 1], [0, 0, 0, 0]])
    assert handle.ask() == 2, "it received both"
    assert "bound=12" in str(session.history)


def test_the_dry_run_fits_it_too():
    session = cp.Session(cp.Stream(bound=3), within=cp.PureDP(1))
    assert session.would_cost(Following(Fraction(1, 2))).fits
    assert "RelationMismatch" in session.would_cost(Following(Fraction(1, 2), bound=2)).refusal
    assert session.loss == cp.PureDP(0)


def test_it_is_fitted_to_the_field_that_it_follows_and_to_the_part():
    visits = cp.Stream(fields={"page": cp.text(), "clicks": cp.number(0, 7), "kind": cp.category(["a", "b", "c"])})
    session = cp.Session(visits, within=cp.PureDP(1))
    part = session.partition("page", k=2, within=cp.PureDP("0.4"))["home"]
    for where in (session, part):
        for of, bound, dimensions in ((None, 1, None), ("clicks", 7, None), ("kind", 2, 3), (["clicks"], 7, 1)):
            handle = where.launch(Following(Fraction(1, 100)), of=of)
            assert handle.mechanism == Following(Fraction(1, 100), bound, dimensions)


def test_a_mechanism_that_would_follow_nothing_is_refused_before_it_is_paid_for():
    for source, mechanism, words in (
        (cp.Stream(dimensions=4), cp.Counter(1, width=3), "items of this source are vectors of 4"),
        (cp.Stream(), Following(Fraction(1), 5, 3), "vectors of 3, but this data sends single numbers"),
        (cp.Stream(dimensions=2), Following(Fraction(1), 5, 3), "vectors of 3, but this data sends vectors of 2"),
        (Numbers({}), cp.Counter(1), "a table does not change"),
    ):
        session = cp.Session(source, within=cp.PureDP(1))
        with pytest.raises(cp.errors.InvalidRequest, match=words):
            session.launch(mechanism)
        with pytest.raises(cp.errors.InvalidRequest, match=words):
            session.would_cost(mechanism)
        assert session.loss == cp.PureDP(0) and len(done(session)) == 1


@pytest.mark.parametrize("dimensions", [None, 1, 7])
def test_most_mechanisms_leave_nothing_open(dimensions):
    for mechanism in (cp.Laplace(1), cp.Gaussian(1), cp.SparseVector(1, 10), cp.RandomizedResponse(1)):
        assert mechanism.fitted(Steps(updates=1, bound=1), dimensions) is mechanism


def test_a_mechanism_for_fewer_items_of_a_unit_says_what_would_fit():
    session = cp.Session(cp.Stream(unit="user", per_unit=4), within=cp.PureDP(1))
    with pytest.raises(cp.errors.RelationMismatch, match=r"updates=4.*at most 1 items that count"):
        session.launch(Following(Fraction(1), 1))


class Same(cp.mechanisms.Postprocessor, Value, frozen=True):
    """Passes everything on."""

    def start(self):
        return None

    def react(self, own, request, ask):
        return own, ask(request)


def test_what_stands_before_a_mechanism_fits_it_too():
    session = cp.Session(cp.Stream(bound=3, dimensions=2), within=cp.PureDP(1))
    launched = session.launch(cp.postprocess(Same(), Following(Fraction(1)))).mechanism
    assert launched == cp.postprocess(Same(), Following(Fraction(1), 6, 2))


SHOPPERS = {"unit": "person", "rows_per_unit": 20, "columns": {"age": cp.number(0, 100)}}


@pytest.mark.parametrize(
    "mechanism",
    [
        cp.SparseVector(epsilon=0.2, threshold=100, hits=2),
        cp.AboveThreshold(0.2, 100),
        cp.GuessAndCheck(0.2, margin=10),
        cp.Sampled(cp.SparseVector(epsilon=0.2, threshold=100), rate=0.5),
    ],
    ids=repr,
)
def test_what_fixes_its_sensitivity_at_launch_can_take_a_count_of_any_data(mechanism):
    """Launched for 1 on a table with 20 rows a unit, it would have been charged and have refused every count."""
    table = cp.Table(pa.table({"person": [1, 1, 2], "age": [1, 2, 3]}), **SHOPPERS)
    session = cp.Session(table, within=cp.PureDP(9))
    handle = session.launch(mechanism)
    charged = session.loss
    assert isinstance(handle.mechanism.sensitivity, int) and handle.mechanism.sensitivity == 20
    guess = {"guess": 3} if isinstance(mechanism, cp.GuessAndCheck) else {}
    handle.ask(cp.count(), **guess)
    assert session.loss == charged


def test_a_sensitivity_that_was_given_stays():
    table = cp.Table(pa.table({"person": [1, 1, 2], "age": [1, 2, 3]}), **SHOPPERS)
    session = cp.Session(table, within=cp.PureDP(9))
    handle = session.launch(cp.SparseVector(epsilon=0.2, threshold=10**6, sensitivity=1))
    assert handle.mechanism.sensitivity == 1 and handle.ask(cp.count_distinct()) is False
    with pytest.raises(cp.errors.InvalidRequest, match="sensitivity=20"):
        handle.ask(cp.count())
