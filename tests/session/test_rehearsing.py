"""Rehearsals: the calls and refusals of the real session, on rows that are drawn from the declaration alone."""

import pickle

import pyarrow as pa
import pytest

import counterpoint as cp
from counterpoint.errors import CounterpointError, NotAllowed, NotCovered
from counterpoint.schema.columns import Whole
from counterpoint.sources.synthetic import UNITS, made_up_rows

COLUMNS = {
    "state": cp.category(["CA", "NY", "WY"]),
    "age": cp.number(20, 30),
    "pay": cp.number(0, 10, step="0.5"),
    "joined": cp.date("2020-01-01", "2020-12-31"),
    "street": cp.text(),
    "member": cp.boolean(),
}
ROWS = {
    "who": [1, 1, 2],
    "state": ["CA", "CA", "NY"],
    "age": [21, 22, 23],
    "pay": [1.0, 2.0, 3.5],
    "joined": ["2020-05-05"] * 3,
    "street": ["rue"] * 3,
    "member": [True, False, None],
    "visits": [7, 8, 9],
    "weight": [60.5, 70.5, 80.5],
}


def people(**more):
    return cp.Table(pa.table(ROWS), unit="who", rows_per_unit=2, columns=COLUMNS, **more)


class Untouchable:
    """An engine that raises on any use."""

    closed = False

    def __init__(self, dialect):
        self.dialect = dialect

    def __getattr__(self, name):
        raise AssertionError(f"the real data was touched: {name}")


def untouchable(table):
    """The table, whose rows can no longer be read."""
    table._bound = table._bound._replace(engine=Untouchable(table._bound.engine.dialect))
    return table


def refusal(call, session):
    with pytest.raises(CounterpointError) as raised:
        call(session)
    return type(raised.value), str(raised.value)


def test_a_rehearsal_reads_nothing_of_the_data_and_writes_nothing_to_the_ledger(tmp_path):
    table = people(key=b"k" * 32)
    session = cp.Session(table, within=cp.PureDP(1), ledger=tmp_path / "ledger.db")
    session.launch(cp.Laplace(epsilon=0.25))
    before, account = session.history, session.loss
    untouchable(table)
    session._engine.ledger.transact = None
    rehearsal = session.rehearse()
    for request in (
        cp.count(),
        cp.mean("age", by="state"),
        cp.variance("pay"),
        cp.histogram("joined", ["2020-03-01", "2020-06-01"]),
    ):
        assert rehearsal.ask(request, epsilon=0.1) is not None
    rehearsal.launch(cp.NoisyMax(epsilon=0.1)).ask(cp.histogram("state"))
    assert rehearsal.loss == cp.PureDP(0.75)
    assert session.history == before and session.loss == account
    with pytest.raises(AssertionError, match="touched"):
        table._bound.engine.run("SELECT 1")


CALLS = [
    lambda s: s.launch(cp.Laplace(epsilon=0.8)),
    lambda s: s.ask(cp.count(), error=1),
    lambda s: s.ask(cp.sum("street"), epsilon=0.1),
    lambda s: s.ask(cp.sum("weight"), epsilon=0.1),
    lambda s: s.ask(cp.sum("visits"), epsilon=0.1),
    lambda s: s.ask(cp.count(where="agee > 3"), epsilon=0.1),
    lambda s: s.ask(cp.count(where="age > 'x'"), epsilon=0.1),
    lambda s: s.ask(cp.count()),
    lambda s: s.ask("how many?", epsilon=0.1),
    lambda s: s.partition("state", within=cp.PureDP(0.1)),
    lambda s: s.partition("state", k=2, within=cp.PureDP(0.6)),
    lambda s: s.partition("who", within=cp.PureDP(0.1))["no number"],
    lambda s: s.delegate(cp.PureDP(0.76)),
    lambda s: s.delegate(cp.zCDP(0.1)),
    lambda s: s.launch(cp.Counter(epsilon=0.1)),
    lambda s: s.launch(cp.Laplace(epsilon=0.1), of="age"),
    lambda s: s.launch(cp.SparseVector(epsilon=0.1, threshold=3, sensitivity=1)).ask(cp.count()),
    lambda s: s.would_cost(cp.count(where="nothing = 1"), epsilon=0.1),
]


@pytest.mark.parametrize("call", CALLS)
def test_a_rehearsal_refuses_what_the_real_session_refuses_in_the_same_words(call):
    session = cp.Session(people(), within=cp.PureDP(1))
    session.launch(cp.Laplace(epsilon=0.25))
    rehearsal = session.rehearse()
    assert refusal(call, rehearsal) == refusal(call, session)


def test_a_rehearsal_begins_with_what_is_left_and_has_its_own_account():
    session = cp.Session(people(), within=cp.ApproxDP(1, 1e-6))
    session.ask(cp.count(), epsilon=0.25)
    rehearsal = session.rehearse()
    assert (rehearsal.rule, rehearsal.loss, rehearsal.remaining) == (session.rule, session.loss, session.remaining)
    session.ask(cp.count(), epsilon=0.25)
    rehearsal.ask(cp.count(), epsilon=0.5)
    assert (rehearsal.loss.epsilon, session.loss.epsilon) == (0.75, 0.5)
    quote = cp.Laplace(epsilon=0.25)
    assert rehearsal.would_cost(quote).fits and rehearsal.would_cost(quote).cost == session.would_cost(quote).cost
    assert not rehearsal.would_cost(cp.Laplace(epsilon=0.3)).fits


def test_a_sequential_session_has_a_sequential_rehearsal():
    session = cp.Session(people(), within=cp.PureDP(1), sequential=True)
    rehearsal = session.rehearse()
    assert refusal(lambda s: s.delegate(cp.PureDP(0.1)), rehearsal)[0] is NotAllowed


def test_an_odometer_can_be_rehearsed():
    session = cp.Session(people(), rule=cp.Odometer(cp.PureDP))
    session.launch(cp.Laplace(epsilon=0.5))
    rehearsal = session.rehearse()
    rehearsal.launch(cp.Laplace(epsilon=0.5))
    assert (rehearsal.loss, session.loss) == (cp.PureDP(1), cp.PureDP(0.5))


def test_slots_that_are_taken_stay_taken_in_a_rehearsal():
    session = cp.Session(people(), rule=cp.Slots([cp.PureDP(0.5)] * 2))
    session.launch(cp.Laplace(epsilon=0.5))
    rehearsal = session.rehearse()
    rehearsal.launch(cp.Laplace(epsilon=0.5))
    with pytest.raises(CounterpointError):
        rehearsal.launch(cp.Laplace(epsilon=0.5))


def test_delegated_sessions_and_parts_are_rehearsed_with_their_own_budgets():
    session = cp.Session(people(), within=cp.PureDP(2))
    inner = session.delegate(cp.PureDP(0.5))
    inner.ask(cp.count(), epsilon=0.2)
    assert inner.rehearse().remaining == inner.remaining
    part = session.partition("state", k=2, within=cp.PureDP(0.5))["CA"]
    rehearsal = part.rehearse()
    counts = rehearsal.ask(cp.count(by="state"), epsilon=0.5)
    assert counts["CA"] > counts["NY"] + 50 and session.loss == cp.PureDP(1.5)


def test_inside_a_rehearsal_everything_is_a_rehearsal():
    rehearsal = cp.Session(people(), within=cp.PureDP(10)).rehearse()
    inner = rehearsal.delegate(cp.PureDP(1))
    part = rehearsal.partition("state", k=2, within=cp.PureDP(1))["CA"]
    handle = rehearsal.launch(cp.Laplace(epsilon=1))
    assert rehearsal.at(handle.path).ask(cp.count()).made_up
    for session in (inner, part, rehearsal.rehearse()):
        assert session.made_up and session.ask(cp.count(), epsilon=1).made_up


def test_a_spread_table_is_rehearsed_with_its_reach():
    table = people().spread("state", 1)
    session = cp.Session(table, within=cp.PureDP(1))
    assert session.rehearse().partition("state", k=1, within=cp.PureDP(0.1)).loss == cp.PureDP(0.1)


def test_answers_of_a_rehearsal_say_that_they_are_made_up():
    session = cp.Session(people(), within=cp.PureDP(100))
    rehearsal = session.rehearse()
    number, mean = rehearsal.ask(cp.count(), epsilon=1), rehearsal.ask(cp.mean("age"), epsilon=1)
    table = rehearsal.ask(cp.count(by="state"), epsilon=1)
    assert number.made_up and mean.made_up and table.made_up and table["CA"].made_up
    assert all(repr(answer).endswith("(made up)") for answer in (number, mean, table, table["CA"]))
    assert "(made up)" in table._repr_html_() and pa.table(table).schema.metadata == {b"made_up": b"true"}
    real = session.ask(cp.count(by="state"), epsilon=1)
    assert not real.made_up and "made up" not in repr(real) + real._repr_html_()
    assert not pa.table(real).schema.metadata
    for answer in (
        rehearsal.ask(cp.median("age"), epsilon=1),
        rehearsal.ask(cp.variance("pay"), epsilon=1),
        rehearsal.launch(cp.Laplace(epsilon=1)).ask(cp.count()),
        rehearsal.launch(cp.Laplace(epsilon=1)).ask(cp.histogram("state")),
        rehearsal.launch(cp.NoisyMax(epsilon=1)).ask(cp.histogram("state")),
    ):
        assert answer.made_up and repr(answer).endswith("(made up)")
        assert pickle.loads(pickle.dumps(answer)) == answer  # noqa: S301 - made here
    assert "made-up rows" in repr(rehearsal) and "made up" in rehearsal._repr_html_()
    assert "made" not in repr(session) + session._repr_html_()


def test_made_up_rows_keep_the_declaration_and_depend_on_it_alone():
    declared = people().declaration
    rows = made_up_rows(declared).run("SELECT * FROM bound")
    assert rows == made_up_rows(declared).run("SELECT * FROM bound")
    for named, values in zip(declared.columns, zip(*rows, strict=True), strict=False):
        column, found = named.column, {value for value in values if value is not None}
        if column.known_keys is not None:
            assert found == set(column.known_keys)
        elif column.kind == "number" and not isinstance(column, Whole):
            assert min(found) >= column.least and max(found) <= column.most
    units = [row[-1] for row in rows]
    assert set(units) == set(range(UNITS)) and max(map(units.count, range(50))) == 2
    who = [named.name for named in declared.columns].index("who")
    assert len({(row[who], row[-1]) for row in rows}) == UNITS
    assert any(value is None for row in rows for value in row)


def test_a_rehearsal_has_no_loss_at_a_distance():
    rehearsal = cp.Session(people(), within=cp.PureDP(1)).rehearse()
    with pytest.raises(NotAllowed, match="real session"):
        rehearsal.loss_at(distance=2)
    assert rehearsal.delegate(cp.PureDP(0.5)).loss_at(distance=2) == cp.PureDP(0)


def test_a_stream_is_refused_with_what_would_work():
    with pytest.raises(NotCovered, match="declare another one like it"):
        cp.Session(cp.Stream(bound=1), within=cp.PureDP(1)).rehearse()


def test_whatever_kind_of_answer_there_is_it_says_that_it_is_made_up():
    rehearsal = cp.Session(people(), within=cp.ApproxDP(100, 1e-5)).rehearse()
    for request in (
        cp.select(n=cp.count(), m=cp.mean("age"), by="state"),
        cp.top("state", 1),
        cp.bounds("age"),
        cp.minimum("age"),
        cp.median("age", by="state"),
        cp.stdev("age"),
        cp.count_distinct(by="state"),
    ):
        assert rehearsal.ask(request, epsilon=1).made_up, request
    assert rehearsal.sql("SELECT COUNT(*) FROM people", epsilon=1).made_up
    assert rehearsal.ask(cp.keys("street"), loss=cp.ApproxDP(1, 1e-6)).made_up
