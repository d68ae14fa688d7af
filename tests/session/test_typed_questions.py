"""A question stays on record as it was typed, and is the same question however it is typed again."""

import pyarrow

import counterpoint as cp
from counterpoint import checker
from counterpoint.ledger.open import sessions_at

TYPED = "SELECT COUNT(*)\n  FROM people WHERE age > 30"
LINE = "SELECT COUNT(*) FROM people WHERE age > 30 by Laplace("


def people():
    rows = pyarrow.table({"person": [1, 2, 3], "age": [20, 40, 60]})
    return cp.Table(rows, unit="person", rows_per_unit=1, columns={"age": cp.number(0, 100)}, key=bytes(32))


def whats(session):
    return [fact.what for fact in session.history]


def test_a_select_is_on_record_as_it_was_typed_after_a_restart_too(tmp_path):
    place = cp.Durable(tmp_path / "ledger.db")
    with cp.Session(people(), within=cp.PureDP(1), ledger=place, name="people") as session:
        first = session.sql(TYPED, epsilon=0.1, id="q")
        session.ask(cp.count(), epsilon=0.1)
        assert whats(session)[-2].startswith(LINE) and whats(session)[-1].startswith("Count() by Laplace(")
        again = session.sql("select count(*) from people where age > 30", epsilon=0.1, id="q")
        assert list(again) == list(first) and session.loss == cp.PureDP("0.2"), "the same question, charged once"
        before = whats(session)
    with cp.open(place, "people", source=people()) as session:
        assert whats(session) == before
        assert "entries" in checker.check(iter(session.record()))
    assert all("hold" in line for line in sessions_at(place))


def test_a_text_that_is_too_long_for_a_line_of_the_history_is_left_out():
    session = cp.Session(people(), within=cp.PureDP(1))
    session.sql(f"SELECT COUNT(*) FROM people WHERE age IN ({', '.join(['30'] * 900)})", epsilon=0.1)
    assert whats(session)[-1].startswith("Count(where=")
