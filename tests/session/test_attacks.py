"""What somebody tries who wants more than was paid for, or a colleague to get less."""

import threading
from fractions import Fraction

import pyarrow as pa
import pytest
from tests.session.numbers_source import Numbers

import counterpoint as cp
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.privacy.relations import every_step, k_sparse
from counterpoint.queries.quantiles import Quantile
from counterpoint.sources.streams.items import RunningTotal

PEOPLE = {"id": [1, 2, 3, 3], "age": [5, 7, 90, 3], "city": ["a", "b", "a", "c"]}
COLUMNS = {"age": cp.number(-5, 100)}


def people():
    return cp.Table(pa.table(PEOPLE), unit="id", rows_per_unit=2, columns=COLUMNS)


def test_a_rule_for_parts_is_no_rule_for_a_session():
    """Under Parallel any number of launches cost what k cost, as long as they see disjoint data; these do not."""
    for source in (people(), cp.Stream(bound=1)):
        with pytest.raises(cp.errors.RelationMismatch, match=r"session\.partition"):
            cp.Session(source, rule=cp.Parallel(1, each=cp.PureDP(1)))
    with pytest.raises(cp.errors.RelationMismatch):
        Concurrent(cp.Parallel(1, each=cp.PureDP(1)), every_step())
    assert Concurrent(cp.Parallel(1, each=cp.PureDP(1)), k_sparse(1, every_step())).claim.loss == cp.PureDP(1)


def test_nobodys_id_stands_in_anothers_way():
    """A colleague cannot take the name under which a part is made, nor an id that others mean to use."""
    session = cp.Session(Numbers({"ann": 1}), within=cp.PureDP(1))
    parts, colleague = session.partition("letter", within=cp.PureDP("0.2")), session.delegate(cp.PureDP("0.2"))
    for id in ("root", f"part {parts._path!r} str:a", "monday"):
        colleague.launch(cp.Laplace("0.01"), id=id)
        session.launch(cp.Laplace("0.02"), id=id)
    assert parts["a"].loss == cp.PureDP(0) and session.loss == cp.PureDP("0.46")
    for here in (session, colleague):
        with pytest.raises(cp.errors.LedgerError):
            here.launch(cp.Laplace("0.03"), id="monday")


def test_a_certificate_accounts_for_what_was_given_away():
    """Else a session that delegated everything would be charged, and say by no theorem for what."""
    session = cp.Session(people(), within=cp.ApproxDP(1, 1e-6))
    session.delegate(cp.PureDP("0.25"))
    session.partition("age", k=2, within=cp.PureDP("0.125"))
    said = str(session.certificate())
    assert "PureDP(0.25) whatever is launched" in said
    assert "at most 2 of any number of mechanisms within PureDP(0.125)" in said


class Slow(Numbers):
    """Data that is as slow as somebody wants it to be."""

    def __init__(self, values, gate):
        super().__init__(values)
        self.gate, self.reached = gate, threading.Event()

    def resolve(self, pin, prepared):
        if prepared.request == "slow":
            self.reached.set()
            assert self.gate.wait(10), "nobody else was answered in the meantime"
        return super().resolve(pin, prepared)


def test_a_slow_ask_holds_up_nobody_but_its_own_handle():
    gate = threading.Event()
    slow = Slow({}, gate)
    session = cp.Session(slow, within=cp.PureDP(1))
    first, second = (session.launch(cp.Laplace("0.1", asks=2)) for _ in range(2))
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(first.ask("slow")))
    waiting.start()
    assert slow.reached.wait(30)
    answers.append(second.ask("quick"))
    session.launch(cp.Laplace("0.1"))
    gate.set()
    waiting.join()
    assert len(answers) == 2


def refusal(mechanism, request):
    with pytest.raises(cp.errors.InvalidRequest) as refused:
        cp.Session(people(), within=cp.ApproxDP(10, 0.1)).launch(mechanism).ask(request)
    return str(refused.value)


@pytest.mark.parametrize(
    ("mechanism", "request_", "words"),
    [
        (cp.NoisyMax(1, monotone=True), cp.mean("age"), "launch one without monotone=True"),
        (cp.NoisyMax(1), cp.count(), "such as a histogram"),
        (cp.SparseVector(1, 5), cp.histogram("city", keys=["a", "b"]), "a single number, and this one is for 2"),
        (cp.SparseVector(1, 5, monotone=True), cp.sum("age"), "launch one with sensitivity=200"),
        (cp.Laplace(1), cp.keys("city"), "launch PartitionSelection or GaussianSelection"),
        (cp.PartitionSelection(1, 1e-6), cp.count(), r"ask(keys('city'))"),
        (cp.PartitionSelection("1e-4", 1e-6), cp.keys("city"), "moves by up to 2 steps"),
    ],
)
def test_a_request_of_another_kind_is_told_what_the_mechanism_takes(mechanism, request_, words):
    assert words in refusal(mechanism, request_)


@pytest.mark.parametrize(
    ("mechanism", "request_"),
    [
        (cp.PartitionSelection(1, 1e-6), cp.keys("city")),
        (cp.NoisyMax(1, monotone=True), cp.histogram("city", keys=["a", "b"])),
        (cp.NoisyMax(1), cp.quantile("age", 0.5, [0, 50])),
        (cp.Laplace(1), cp.count()),
    ],
)
def test_a_failing_engine_is_the_engines_fault_whatever_was_asked(mechanism, request_):
    table = people()
    handle = cp.Session(table, within=cp.ApproxDP(10, 0.1)).launch(mechanism)
    table._bound.engine.drop("bound")
    with pytest.raises(cp.errors.DataFailed, match=r"^the data could not answer and are closed, for everyone, until"):
        handle.ask(request_)


@pytest.mark.parametrize("day", [Fraction(10**9), Fraction(-(10**6)), Fraction(1, 2)])
def test_a_day_that_could_not_be_told_is_refused_before_it_can_be_chosen(day):
    with pytest.raises(cp.errors.InvalidRequest, match="years 1 to 9999"):
        Quantile("born", Fraction(1, 2), (day,), None, True)
    assert Quantile("born", Fraction(1, 2), (Fraction(-719162),), None, True).dates


def test_a_total_is_of_fields_that_are_named_and_no_subclass_of_it_is_answered():
    visits = cp.Stream(fields={"clicks": cp.number(0, 9), "paid": cp.number(0, 99)})
    for of in (5, ["clicks", 5], {"clicks"}):
        with pytest.raises(cp.errors.InvalidRequest):
            RunningTotal(of)
    fields = ["clicks"]
    asked = RunningTotal(fields)
    fields.append("paid")
    assert asked == cp.total(["clicks"]) and visits.prepare(asked).sensitivity == 9

    class Changing(RunningTotal, frozen=True):
        """Would be one field when it is checked and another one when it is read."""

    with pytest.raises(cp.errors.InvalidRequest):
        visits.prepare(Changing("clicks"))
