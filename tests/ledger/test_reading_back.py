"""Whatever is stored can be read: any sequence of accepted requests leaves rows that decode to equal values."""

from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from inspect import isabstract
from typing import get_args

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import force_setattr

import counterpoint as cp
from counterpoint.composition.accumulator import Account, Accumulator, Summand
from counterpoint.composition.filters import By
from counterpoint.composition.readings import LaunchesRead
from counterpoint.composition.restated import Amplified, Converted
from counterpoint.composition.rule import Exhausted, Rule
from counterpoint.composition.sums import PureSum
from counterpoint.encoding import Value, decode, encode, encode_checked
from counterpoint.errors import CounterpointError, Halted, InvalidParameter
from counterpoint.ledger.sealed_rows import stored_row
from counterpoint.ledger.sealing import DataKeys
from counterpoint.ledger.state import LaunchRecord, SessionState
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.mechanisms.mechanism import Mechanism, State
from counterpoint.numbers.exact import GIVEN_DIGITS, LARGEST, STORED_DIGITS, added_up, exact, taken_out
from counterpoint.privacy.claims import claim
from counterpoint.privacy.relations import every_step

BOUND = 10**GIVEN_DIGITS
PRIME = 10**49 + 9
"""Sums of ever new denominators like this one are rounded, after eight launches."""
AWKWARD = [
    *("0.1", "1/3", 1, 2, "1e-50", "1e50", "0.5"),
    *(1 + Fraction(1, 10**49), 1 - Fraction(1, PRIME), Fraction(1, PRIME), Fraction(7, PRIME + 2)),
    *(Fraction(1, BOUND - 2 * n - 1) for n in range(8)),
]
SIZES = st.sampled_from([Fraction(size) for size in AWKWARD]) | st.fractions(0, 3, max_denominator=BOUND).filter(bool)
DELTAS = st.sampled_from([Fraction(1, PRIME), Fraction("1e-50"), Fraction("1e-9"), Fraction(1, 3), Fraction(0)])
BUDGETS = [
    cp.PureDP(3),
    cp.PureDP(2 + Fraction(1, PRIME)),
    cp.zCDP(2 - Fraction(1, PRIME)),
    cp.GaussianDP(2 + Fraction(1, 3**90)),
    cp.RenyiDP(8, 3),
    cp.tCDP(3, 20),
    cp.ApproxDP(3, "1e-6"),
    cp.ApproxDP(3, Fraction(1, PRIME)),
    cp.measures.ApproxzCDP(2, "1e-6"),
]
RULES = [
    *(cp.Filter(budget) for budget in BUDGETS),
    cp.Filter(cp.measures.TradeOff.of_approx(2, "1e-6")),
    cp.Filter(cp.PureDP(3), launches=5),
    *(cp.Filter(cp.ApproxDP(3, "1e-6"), by=by) for by in ("best", "basic", "renyi", "advanced", "gaussian")),
    cp.Filter(cp.ApproxDP(3, Fraction(1, PRIME)), by="renyi", slack=Fraction(1, 2 * PRIME)),
    cp.Filter(cp.ApproxDP(3, "1e-6"), alpha=7, launches=9),
    cp.Filter.planned(cp.ApproxDP(3, "1e-6"), [cp.PureDP("0.1")] * 30),
    cp.Odometer(cp.PureDP),
    cp.Odometer(cp.zCDP),
    cp.Odometer(cp.measures.ApproxzCDP),
    cp.Odometer(cp.GaussianDP),
    cp.Odometer.approximate("1e-6"),
    cp.Odometer.approximate(Fraction(1, PRIME), by="renyi"),
    cp.Odometer.advanced(Fraction(1, PRIME)),
    cp.Odometer.renyi(8),
    cp.Odometer.tcdp(20),
    cp.Odometer.gaussian(),
    cp.Odometer.filter("1e-6", tuned_for=1),
    cp.Odometer.filter(Fraction(1, PRIME), tuned_for=1),
    cp.Odometer.mixture("1e-6", tuned_for=1),
    cp.Odometer.stitched("1e-6", tuned_for=1),
    cp.Odometer.advanced("1e-6").within(cp.ApproxDP(3, "1e-6")),
    cp.Filter.planned(cp.ApproxDP(3, "1e-6"), cp.PureDP("0.1")),
    cp.Filter.planned(cp.ApproxDP(3, Fraction(1, PRIME)), [cp.PureDP(Fraction(1, 3)), cp.PureDP(Fraction(1, PRIME))]),
    cp.Slots([cp.PureDP("0.1")] * 3),
    cp.Slots([cp.PureDP(Fraction(1, PRIME)), cp.ApproxDP("0.1", "1e-9")]),
    cp.Parallel(3, each=cp.ApproxDP(1, "1e-9"), delta_total=Fraction(1, PRIME)),
    cp.Parallel(2, each=[cp.PureDP(1), cp.PureDP(Fraction(1, PRIME))]),
    Converted(cp.Filter(cp.zCDP(1 + Fraction(1, PRIME))), delta=Fraction(1, PRIME)),
    Amplified(cp.Filter(cp.PureDP(3)), rate=Fraction(1, PRIME)),
    Exhausted(cp.Filter(cp.PureDP(3)), every_step()),
]


def losses(size, delta):
    """One of each measure, as far as there is one with these numbers."""
    makes = (
        lambda: cp.PureDP(size),
        lambda: cp.ApproxDP(size, delta),
        lambda: cp.zCDP(size),
        lambda: cp.GaussianDP(size),
        lambda: cp.RenyiDP(9, size),
        lambda: cp.tCDP(size, 30),
        lambda: cp.measures.ApproxzCDP(size, delta),
    )
    for make in makes:
        try:
            yield make()
        except InvalidParameter:
            continue


def kinds_of(base):
    """The classes that are stored: those of the package below this one, without the ones between. Tests have others."""
    ours = [found for found in base.__subclasses__() if found.__module__.startswith("counterpoint.composition.")]
    for found in ours:
        below = list(kinds_of(found))
        yield from below
        if not below and not isabstract(found):
            yield found


def test_every_kind_of_rule_and_of_sum_is_among_them():
    assert set(kinds_of(Rule)) == {type(rule) for rule in RULES}
    starts = {type(rule.start()) for rule in RULES}
    read_alone = {LaunchesRead}  # made where a history is read, and never stored
    assert set(kinds_of(Accumulator)) - read_alone == {kind for kind in starts if issubclass(kind, Accumulator)}
    assert {rule.by for rule in RULES if isinstance(rule, cp.Filter)} == {None, *get_args(By)}


@settings(deadline=None)
@given(st.lists(st.fractions(0, LARGEST, max_denominator=LARGEST), max_size=12))
def test_every_sum_of_parameters_reads_back_and_is_never_below_the_sum(amounts):
    total, truth = Fraction(0), Fraction(0)
    for amount in amounts:
        truth += exact(amount)
        if truth > LARGEST:
            with pytest.raises(InvalidParameter, match="no account can hold"):
                added_up(total, amount)
            return
        total = added_up(total, amount)
        assert truth <= total < truth + Fraction(len(amounts), LARGEST)
        assert exact(total) == total == exact(str(total)) == decode(encode(total), Fraction)
    for amount in amounts:
        total, truth = taken_out(total, amount), truth - amount
        assert total >= truth and decode(encode(total), Fraction) == exact(total) == total


@pytest.mark.parametrize("rule", RULES, ids=repr)
@settings(deadline=None, max_examples=12)
@given(st.lists(st.tuples(SIZES, DELTAS), min_size=1, max_size=4), st.sampled_from(["endless", "one-shot"]))
def test_the_account_of_every_rule_reads_back_whatever_was_launched(rule, launches, interaction):
    account = rule.start()
    encode_checked(account, Account)
    for size, delta in launches:
        for loss in losses(size, delta):
            claim = cp.Claim(loss, every_step(), cp.composition.Certificate("", ""), interaction)
            try:
                account = rule.charge(account, claim)
            except CounterpointError:
                continue
            assert decode(encode_checked(account, Account), Account) == account
            encode_checked(rule.loss(account), type(rule.loss(account)))


@pytest.mark.parametrize("budget", [*BUDGETS[:5], BUDGETS[6]], ids=repr)
@settings(deadline=None, max_examples=20)
@given(st.lists(SIZES.filter(lambda size: size <= 1), max_size=9), SIZES.filter(lambda size: size <= 1))
def test_a_budget_that_is_returned_reads_back_and_covers_what_was_launched(budget, sizes, charged):
    rule, charge = cp.Filter(budget), cp.PureDP(charged)
    child = cp.Filter(charge)
    launched = []
    inner = child.start()
    for size in sizes:
        loss = cp.PureDP(size * charged)
        if child.fits(inner, loss):
            inner = inner + loss
            launched.append(loss)
    before = rule.start() + cp.PureDP(Fraction(1, PRIME + 8)) + charge
    claims = [cp.Claim(loss, every_step(), cp.composition.Certificate("", "")) for loss in (charge, *launched)]
    after = rule.refunded(before, child, claims[0], claims[1:])
    assert decode(encode_checked(after, Account), Account) == after and after.keeps(budget)
    without = before.refunded(budget, Summand(charge), [])
    assert without.total.within(before.total)


def new(tmp_path, within=None):
    return cp.Session(cp.Stream(bound=1), within=within or cp.PureDP(20), ledger=cp.Durable(str(tmp_path / "l.db")))


@pytest.mark.parametrize("small", ["1e-400", "1e-51", f"1/{10**390 + 1}", "1e-99999999", f"1/{10**60}"])
def test_an_ask_that_is_too_small_to_be_stored_beside_a_large_one_is_refused_before_it_is_charged(small, tmp_path):
    with new(tmp_path) as session:
        hers = session.grant("ann", cp.PureDP("1.5"))
        hers.ask(cp.total(), epsilon=1)
        for ask in (
            lambda: hers.ask(cp.total(), epsilon=small),
            lambda: hers.launch(cp.SparseVector("0.1", threshold=small)),
            lambda: hers.launch(cp.Laplace("0.1", clamp=(0, small))),
            lambda: session.grant("bob", cp.PureDP(small)),
            lambda: hers.would_cost(cp.Laplace(small)),
        ):
            with pytest.raises(InvalidParameter, match=r"at most \d+ (digits|decimal places)"):
                ask()
        assert hers.loss == cp.PureDP(1) and session.loss == cp.PureDP("1.5")
        session.revoke(hers)
        session.recount(hers)
        session._engine.ledger.verify()
    with new(tmp_path) as session:
        assert session.loss == cp.PureDP(1)


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["launch", "question", "threshold", "delegation", "part", "recount"]),
        SIZES,
        DELTAS,
        st.integers(0, 3),
    ),
    max_size=9,
)


def people():
    """Two people, of whom a sample may be drawn, and in whose parts by age a budget of its own may be spent."""
    rows = pa.table({"person": ["ann", "bob"], "age": [30, 41]})
    return cp.Table(rows, "person", 1, {"age": cp.number(0, 120)}, key=bytes(32))


def mechanisms(size, delta):
    """Of each measure one that can be launched."""
    return [
        lambda: cp.Laplace(size),
        lambda: cp.Gaussian(rho=size),
        lambda: cp.Gaussian(mu=size),
        lambda: cp.PartitionSelection(size, delta),
    ]


def operate(places, parts, operation):
    """Do one thing in one of these places; what makes another place appends it."""
    what, size, delta, place = operation
    here = places[place % len(places)]
    if what == "launch":
        for make in mechanisms(size, delta):
            with suppress(CounterpointError):
                here.launch(make())
    elif what == "question":
        for price in ({"epsilon": size}, {"rho": size}):
            with suppress(CounterpointError):
                here.ask(cp.count(), **price)
    elif what == "threshold":
        here.launch(cp.SparseVector("0.1", size)).ask(cp.count())
    elif what == "delegation":
        within, sampled = cp.PureDP(size), Fraction(1, PRIME)
        makes = [
            lambda: here.grant("ann", within),
            lambda: here.delegate(cp.Slots([within, within]), delta=delta),
            lambda: here.delegate(within, sampled=sampled),
            lambda: here.delegate(cp.ApproxDP(size, delta)),
        ]
        for make in makes[place % 2 :: 2]:
            with suppress(CounterpointError):
                places.append(make())
    elif what == "part":
        parts[:] = parts or [here.partition("age", within=[cp.PureDP(size)])]
        places.append(parts[0].part(30 + place, within=cp.PureDP(size)))
    elif here is not places[0]:
        places[0].revoke(here)
        places[0].recount(here)


@pytest.mark.parametrize("rule", [rule for rule in RULES if not isinstance(rule, cp.Parallel)], ids=repr)
@settings(deadline=None, max_examples=3)
@given(operations=OPERATIONS)
def test_a_ledger_reads_back_after_any_sequence_of_launches_grants_and_recounts(rule, operations, tmp_path_factory):
    place = cp.Durable(str(tmp_path_factory.mktemp("ledger") / "l.db"))
    with people() as table, cp.Session(table, rule=rule, ledger=place) as session:
        places, parts = [session], []
        for operation in operations:
            with suppress(CounterpointError):
                operate(places, parts, operation)
        lost, facts = session.loss, session.history
        session._engine.ledger.verify()
    with people() as table, cp.Session(table, rule=rule, ledger=place) as session:
        assert session.loss == lost and session.history == facts


class Positive(State, Value, frozen=True):
    """A state that no reader accepts once it is negative."""

    number: int

    def __post_init__(self):
        if self.number < 0:
            raise InvalidParameter("a negative number")


class Forgets(Mechanism, Value, frozen=True):
    """Its first step leaves a state, or gives an answer, that could not be read again."""

    answers: bool

    @property
    def claim(self):
        return claim(cp.PureDP(1), every_step(), "for tests")

    def accepts(self, message):
        return isinstance(message, cp.mechanisms.Ask)

    def start(self, coins):
        return Positive(1)

    def step(self, state, message, coins):
        after = Positive(0)
        force_setattr(after, "number", -1)
        return (state, after) if self.answers else (after, 1)


@pytest.mark.parametrize("answers", [True, False])
def test_a_state_or_an_answer_that_could_not_be_read_again_halts_its_mechanism_and_nothing_else(answers, tmp_path):
    with new(tmp_path) as session:
        handle, other = session.launch(Forgets(answers)), session.launch(cp.Laplace(1, asks=2))
        with pytest.raises(Halted, match="its own code failed"):
            handle.ask(cp.total())
        other.ask(cp.total())
        session._engine.ledger.verify()
    with new(tmp_path) as session:
        assert session.loss == cp.PureDP(2) and session.at((0,)).halted and not session.at((1,)).halted
        session.at((1,)).ask(cp.total())


def test_an_account_that_could_not_be_read_again_is_refused_before_anything_is_written():
    long = Fraction(1, 10**STORED_DIGITS)
    row = LaunchRecord(Concurrent(cp.Filter(cp.PureDP(1)), every_step()), SessionState(PureSum(long)))
    with pytest.raises(InvalidParameter, match="4000 digits cannot be stored"):
        stored_row((), row, DataKeys("people", None, ()))
    assert decode(encode(PureSum(long * 10)), PureSum).epsilon == long * 10


@pytest.mark.parametrize("value", [10**5000, (1, -(10**5000)), "\ud800", Fraction(10**5000, 3)], ids=list("abcd"))
def test_what_python_cannot_write_is_no_plain_data(value):
    with pytest.raises(InvalidParameter):
        encode(value)


@pytest.mark.parametrize(
    "given",
    [
        *(10 ** (10**6), "9" * 10**6, "1/" + "9" * 10**6, "1e-99999999", "1e99999999", Decimal("1e-99999999")),
        *(Decimal((0, (1,) * 5000, 0)), Fraction(1, 10**5000), Fraction(10**401), "1e" + "9" * 500, f"1/1e-{10**9}"),
    ],
    ids=list("abcdefghijk"),
)
def test_a_number_that_is_too_long_is_refused_in_plain_words_whatever_its_type(given):
    for kind in (cp.PureDP, cp.Laplace, lambda value: cp.SparseVector(1, threshold=value)):
        with pytest.raises(InvalidParameter, match="must be a number") as refused:
            kind(given)
        assert len(str(refused.value)) < 200
