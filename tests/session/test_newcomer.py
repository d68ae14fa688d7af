"""What a newcomer tries first, and what is said to them: what was asked, what the limit is, and what would work.

Each case is a mistake that somebody makes in the first hour. The words are part of the face: a message that would make
one hesitate is a bug. Nothing is ever charged for a mistake.
"""

import pytest
from tests.session.deeds import done

import counterpoint as cp

PEOPLE = str(cp.datasets.people())
NAN = float("nan")


@pytest.fixture(scope="module")
def people():
    return cp.Table(PEOPLE, unit="person_id", rows_per_unit=1)


@pytest.fixture
def table(people):
    return cp.Session(people, within=cp.ApproxDP(1, 1e-6))


def visits(**options):
    return cp.Stream(fields={"page": cp.text(), "kind": cp.category(["a", "b"]), "clicks": cp.number(0, 10)}, **options)


def live(within=None, stream=None):
    return cp.Session(cp.Stream(bound=1) if stream is None else stream, within=within or cp.PureDP(1))


def says(error, words, deed):
    with pytest.raises(error) as caught:
        deed()
    said = str(caught.value)
    assert all(word in said for word in words), said
    return caught.value


OPENING = {
    "a path where a table is meant": (
        lambda: cp.Session("adult.parquet", within=cp.PureDP(1)),
        "str",
        "Session(Table(",
    ),
    "a list of rows": (lambda: cp.Session([1, 2], within=cp.PureDP(1)), "Table or a Stream", "list", "Session(Table("),
    "a path that does not exist": (
        lambda: cp.Table("nowhere.parquet", unit=cp.each_row),
        "no file",
        "'nowhere.parquet'",
    ),
    "a number where data is meant": (lambda: cp.Table(3, unit=cp.each_row), ".parquet or .csv", "not a int"),
    "a unit that is no column": (
        lambda: cp.Table(PEOPLE, unit="person", rows_per_unit=1),
        "no column 'person'",
        "person_id",
    ),
    "bounds as a pair": (
        lambda: cp.Table(PEOPLE, unit=cp.each_row, columns={"age": (0, 120)}),
        "age",
        "number, category",
        "(0, 120)",
    ),
    "columns as a list": (lambda: cp.Table(PEOPLE, unit=cp.each_row, columns=["age"]), "by name", "number(0, 120)"),
    "a column that is not there": (
        lambda: cp.Table(PEOPLE, unit=cp.each_row, columns={"agee": cp.text()}),
        "'agee'",
        "age",
    ),
    "no budget at all": (lambda: cp.Session(cp.Stream()), "within=ApproxDP(1, 1e-6)", "rule=Odometer(zCDP)"),
    "a budget and a rule": (lambda: cp.Session(cp.Stream(), cp.PureDP(1), rule=cp.Filter(cp.PureDP(1))), "either"),
    "a number as a budget": (lambda: cp.Session(cp.Stream(), within=1.0), "loss", "PureDP(1)", "1.0 was given"),
    "a class as a budget": (lambda: cp.Session(cp.Stream(), within=cp.PureDP), "ApproxDP(1, 1e-6)", "the class PureDP"),
    "a budget as a rule": (lambda: cp.Session(cp.Stream(), rule=cp.PureDP(1)), "Filter", "PureDP", "within="),
    "half of user level": (lambda: cp.Stream(unit="user"), "unit", "per_unit", "both"),
    "a bound below a step": (lambda: cp.Stream(bound=0.5), "bound", "at least 1", "0.5"),
    "fields without a declaration": (lambda: cp.Stream(fields={"page": str}), "'page'", "number, category, text"),
    "neighbours by another name": (lambda: cp.Stream(neighbours="swap"), "'add-or-remove' or 'replace'", "'swap'"),
    "low above high": (lambda: cp.number(10, 0), "low must be below high", "10 and 0"),
    "a category without keys": (lambda: cp.category([]), "all texts"),
    "a text for a list of keys": (lambda: cp.category("abc"), "must be a list"),
}


@pytest.mark.parametrize("mistake", OPENING)
def test_opening(mistake):
    deed, *words = OPENING[mistake]
    says(cp.errors.InvalidParameter, words, deed)


NUMBERS = {
    "epsilon=0": (lambda: cp.Laplace(epsilon=0), "epsilon must be above 0", "0 was given"),
    "epsilon=-1": (lambda: cp.Laplace(epsilon=-1), "above 0", "-1"),
    "epsilon=nan": (lambda: cp.Laplace(epsilon=NAN), "finite number", "nan"),
    "epsilon='a lot'": (lambda: cp.Laplace(epsilon="a lot"), "must be a number", "'a lot'"),
    "epsilon=None": (lambda: cp.Laplace(epsilon=None), "must be a number", "NoneType"),
    "epsilon=True": (lambda: cp.Counter(epsilon=True), "must be a number", "truth value"),
    "epsilon=inf": (lambda: cp.PureDP(float("inf")), "finite number", "inf"),
    "epsilon=PureDP(1)": (lambda: cp.Laplace(cp.PureDP(1)), "must be a number", "PureDP"),
    "delta=2": (lambda: cp.ApproxDP(1, 2), "delta must be between 0 and 1", "2"),
    "asks=0": (lambda: cp.Laplace(1, asks=0), "asks must be at least 1", "0"),
    "asks=1.5": (lambda: cp.Laplace(1, asks=1.5), "whole number", "1.5"),
}


@pytest.mark.parametrize("mistake", NUMBERS)
def test_numbers(mistake):
    deed, *words = NUMBERS[mistake]
    says(cp.errors.InvalidParameter, words, deed)


LAUNCHING = {
    "a class": (cp.errors.InvalidParameter, lambda s: s.launch(cp.Laplace), "Laplace", "Laplace(epsilon=0.1)"),
    "a text": (cp.errors.InvalidParameter, lambda s: s.launch("Laplace"), "mechanisms", "Laplace(epsilon=0.1)", "str"),
    "a loss": (cp.errors.InvalidParameter, lambda s: s.launch(cp.PureDP(0.1)), "Laplace(epsilon=0.1)", "PureDP"),
    "a request": (cp.errors.InvalidParameter, lambda s: s.launch(cp.total()), "mechanisms", "RunningTotal"),
    "a price of a class": (cp.errors.InvalidParameter, lambda s: s.would_cost(cp.Laplace), "Laplace(epsilon=0.1)"),
    "a session in a session": (
        cp.errors.InvalidParameter,
        lambda s: s.launch(cp.mechanisms.Concurrent(cp.Filter(cp.PureDP(1)), s._source.relation)),
        "session.delegate",
    ),
    "too much": (cp.BudgetExceeded, lambda s: s.launch(cp.Laplace(2)), "PureDP(2)", "PureDP(1)", "would fit"),
    "Gaussian noise under a pure budget": (
        cp.errors.NotCovered,
        lambda s: s.launch(cp.Gaussian(rho=0.1)),
        "GaussianDP(rho=0.1)",
        "PureDP",
        "ApproxDP",
    ),
    "a field of numbers": (
        cp.errors.InvalidRequest,
        lambda s: s.launch(cp.Counter(1), of="clicks"),
        "'clicks'",
        "fields=",
    ),
    "an id that is a number": (cp.errors.InvalidParameter, lambda s: s.launch(cp.Laplace(1), id=7), "'monday'", "int"),
    "a number as a colleague's budget": (
        cp.errors.InvalidParameter,
        lambda s: s.delegate(0.5),
        "PureDP(1)",
        "0.5 was given",
    ),
    "more than there is for a colleague": (cp.BudgetExceeded, lambda s: s.delegate(cp.PureDP(3)), "PureDP(3)", "fit"),
    "parts of what has no fields": (
        cp.errors.InvalidRequest,
        lambda s: s.partition("page", within=cp.PureDP(0.1)),
        "'page'",
        "fields=",
        "dimensions",
    ),
}


@pytest.mark.parametrize("mistake", LAUNCHING)
def test_launching(mistake):
    error, deed, *words = LAUNCHING[mistake]
    session = live()
    says(error, words, lambda: deed(session))
    assert session.loss == cp.PureDP(0) and len(done(session)) == 1, "nothing was charged"


def test_an_over_budget_launch_carries_what_was_asked_what_is_left_and_what_would_fit():
    session = live()
    session.launch(cp.Laplace(0.6))
    error = says(
        cp.BudgetExceeded,
        ["PureDP(0.5)", "PureDP(0.6) of PureDP(1) is spent", "PureDP(0.4)"],
        lambda: session.launch(cp.Laplace(0.5)),
    )
    assert (error.requested, error.would_fit) == (cp.PureDP(0.5), cp.PureDP(0.4))
    session.launch(cp.Laplace(error.would_fit.epsilon))


PARTS = {
    "a field that is not declared": (
        cp.errors.InvalidRequest,
        lambda s: s.partition("pgae", k=2, within=cp.PureDP(0.1)),
        "'pgae'",
        "did you mean 'page'?",
    ),
    "too small a k": (
        cp.errors.RelationMismatch,
        lambda s: s.partition("page", within=cp.PureDP(0.1)),
        "2 parts by 'page'",
        "k = 1",
        "k=2",
        "2 times PureDP(0.1)",
    ),
    "k=0": (
        cp.errors.InvalidParameter,
        lambda s: s.partition("page", k=0, within=cp.PureDP(0.1)),
        "k must be at least 1",
    ),
    "k='two'": (
        cp.errors.InvalidParameter,
        lambda s: s.partition("page", k="two", within=cp.PureDP(0.1)),
        "k must be",
        "'two'",
    ),
    "a number within": (
        cp.errors.InvalidParameter,
        lambda s: s.partition("page", k=2, within=0.1),
        "PureDP(0.1)",
        "float",
    ),
    "more than there is": (
        cp.BudgetExceeded,
        lambda s: s.partition("page", k=2, within=cp.PureDP(0.6)),
        "2 x PureDP(0.6)",
        "only 1 of them would",
        "at most PureDP(0.4) more would fit",
    ),
    "delta without delta_total": (
        cp.errors.NotCovered,
        lambda s: s.partition("page", k=2, within=cp.ApproxDP(0.1, 1e-8)),
        "ApproxDP(0.1, 1e-8)",
        "delta_total",
        "1e-6 is enough for 100",
        "PureDP needs none",
    ),
    "a measure that no theorem covers": (
        cp.errors.NotCovered,
        lambda s: s.partition("page", k=2, within=cp.zCDP(0.1)),
        "zCDP(0.1)",
        "Henzinger et al. 2024, Thm 13.5",
        "use PureDP",
    ),
    "a text to be followed": (
        cp.errors.InvalidRequest,
        lambda s: s.launch(cp.Counter(1), of="page"),
        "page is a text",
        "partition by this field",
    ),
    "a field that is misspelled": (
        cp.errors.InvalidRequest,
        lambda s: s.launch(cp.Counter(1), of="click"),
        "did you mean 'clicks'?",
    ),
}


@pytest.mark.parametrize("mistake", PARTS)
def test_parts(mistake):
    error, deed, *words = PARTS[mistake]
    session = live(stream=visits())
    says(error, words, lambda: deed(session))
    assert session.loss == cp.PureDP(0) and len(done(session)) == 1, "nothing was charged"


KEYS = {
    "a key of another type": (cp.errors.InvalidRequest, lambda parts: parts["page"][3], "3 is not a value", "a text"),
    "a key that is not declared": (
        cp.errors.InvalidRequest,
        lambda parts: parts["kind"]["c"],
        "'c' is not a key of kind",
        "'a', 'b'",
    ),
    "all the keys": (cp.errors.NotAllowed, lambda parts: list(parts["page"]), "not read off the data", "parts[key]"),
    "a part's whole budget twice": (
        cp.BudgetExceeded,
        lambda parts: [parts["page"]["home"].launch(cp.Laplace(0.1)) for _ in range(2)],
        "PureDP(0.1) of PureDP(0.1) is spent",
    ),
}


@pytest.mark.parametrize("mistake", KEYS)
def test_keys(mistake):
    error, deed, *words = KEYS[mistake]
    session = live(stream=visits())
    parts = {by: session.partition(by, k=2, within=cp.PureDP("0.1")) for by in ("page", "kind")}
    says(error, words, lambda: deed(parts))
    assert session.loss == cp.PureDP("0.4")


ASKING_A_TABLE = {
    "SQL": (lambda h: h.ask("SELECT count(*) FROM people"), "answers count", "SELECT count(*)", "count(where="),
    "a function that was not called": (lambda h: h.ask(cp.count), "the function count", "count(...)"),
    "nothing": (lambda h: h.ask(), "Laplace answers requests", "count()"),
    "what is for streams": (lambda h: h.ask(cp.total()), "answers count", "RunningTotal"),
    "a column that is not there": (lambda h: h.ask(cp.count(where="country = 'US'")), "country"),
    "a text in double quotes": (lambda h: h.ask(cp.count(where='state = "CA"')), "CA", "single quotes"),
    "a sum without bounds": (lambda h: h.ask(cp.sum("age")), "age", "declared bounds", "number(low, high"),
    "an option of another mechanism": (lambda h: h.ask(cp.count(), threshold=3), "Laplace", "threshold"),
}


@pytest.mark.parametrize("mistake", ASKING_A_TABLE)
def test_asking_a_table(table, mistake):
    deed, *words = ASKING_A_TABLE[mistake]
    handle = table.launch(cp.Laplace(0.1))
    says(cp.errors.InvalidRequest, words, lambda: deed(handle))
    assert isinstance(handle.ask(cp.count()), int), "the ask is still there"
    assert table.loss == cp.ApproxDP(0.1, 1e-6)


ASKING_A_STREAM = {
    "words": (cp.Laplace(0.1), lambda h: h.ask("how many?"), "total()", "'how many?'", "Counter"),
    "what is for tables": (cp.Laplace(0.1), lambda h: h.ask(cp.count()), "total()", "Count", "Table"),
    "a function that was not called": (cp.Laplace(0.1), lambda h: h.ask(cp.total), "the function total", "total(...)"),
    "a field of numbers": (cp.Laplace(0.1), lambda h: h.ask(cp.total("clicks")), "'clicks'", "fields="),
    "a request of a counter": (cp.Counter(0.1), lambda h: h.ask(cp.total()), "Counter", "ask() it without a request"),
    "a misspelled option": (
        cp.SparseVector(0.1, 9),
        lambda h: h.ask(cp.total(), treshold=3),
        "threshold=",
        "treshold=",
    ),
    "a threshold in words": (
        cp.SparseVector(0.1, 9),
        lambda h: h.ask(cp.total(), threshold="high"),
        "number",
        "'high'",
    ),
}


@pytest.mark.parametrize("mistake", ASKING_A_STREAM)
def test_asking_a_stream(mistake):
    mechanism, deed, *words = ASKING_A_STREAM[mistake]
    session = live()
    handle = session.launch(mechanism)
    says(cp.errors.InvalidRequest, words, lambda: deed(handle))
    assert not handle.halted and session.loss == cp.PureDP(0.1) and len(done(session)) == 2


def test_a_request_that_moves_too_far_for_a_sparse_vector_says_how_far():
    session = live(stream=cp.Stream(bound=5))
    svt = session.launch(cp.SparseVector(0.5, 100, sensitivity=1))
    says(cp.errors.InvalidRequest, ["up to 5", "sensitivity of 1", "sensitivity=5"], lambda: svt.ask(cp.total()))
    assert session.launch(cp.SparseVector(0.5, 10**6, sensitivity=5)).ask(cp.total()) is False


def test_a_counter_for_smaller_values_says_which_bound_would_fit():
    session = live(stream=cp.Stream(bound=5))
    says(
        cp.errors.RelationMismatch,
        ["Counter", "bound=2", "bound=5 would fit"],
        lambda: session.launch(cp.Counter(1, bound=2)),
    )
    session.launch(cp.Counter(1, bound=5))


def test_a_counter_on_a_table_or_on_vectors_says_what_it_follows(table):
    says(
        cp.errors.InvalidRequest,
        ["Counter", "table does not change", "Laplace", "Stream"],
        lambda: table.launch(cp.Counter(0.1)),
    )
    vectors = live(stream=cp.Stream(dimensions=4))
    says(cp.errors.InvalidRequest, ["vectors of 4", "width="], lambda: vectors.launch(cp.Counter(0.1, width=3)))
    assert vectors.loss == cp.PureDP(0)


def test_a_halted_handle_says_so_and_what_to_do():
    handle = live().launch(cp.Laplace(1))
    handle.ask(cp.total())
    says(cp.errors.Halted, ["Laplace", "last answer", "launch another"], lambda: handle.ask(cp.total()))


def test_closing_twice_is_fine_and_asking_afterwards_is_not():
    session = live()
    handle = session.launch(cp.Laplace(1))
    session.close()
    session.close()
    for deed in (lambda: handle.ask(cp.total()), lambda: session.launch(cp.Laplace(0.1))):
        says(cp.errors.NotAllowed, ["closed", "session.loss"], deed)
    assert session.loss == cp.PureDP(1), "what was lost can still be read"


def test_what_remains_of_no_budget_is_refused():
    counting = cp.Session(cp.Stream(), rule=cp.Odometer(cp.zCDP))
    says(cp.errors.NotAllowed, ["Odometer", "no budget"], lambda: counting.remaining)


APPENDING = {
    "a text": (cp.Stream(), lambda s: s.append("yes"), "a number", "str"),
    "a vector to numbers": (cp.Stream(), lambda s: s.append([1, 0]), "a number", "list"),
    "a number to vectors": (cp.Stream(dimensions=2), lambda s: s.append(1), "vector of 2"),
    "whose it is at event level": (
        cp.Stream(),
        lambda s: s.append(1, unit="ann"),
        "event level",
        "unit=... and per_unit=...",
    ),
    "nobody's at user level": (cp.Stream(unit="user", per_unit=1), lambda s: s.append(1), "'user'", "unit='ann'"),
    "one item to extend": (cp.Stream(), lambda s: s.extend(1), "list of items", "append"),
    "a record to numbers": (cp.Stream(), lambda s: s.append({"page": "home"}), "a number", "dict"),
    "a number to records": (visits(), lambda s: s.append(1), "record", "'page': ...", "int"),
    "a field that is not declared": (visits(), lambda s: s.append({"pages": 1}), "'pages'", "page, kind, clicks"),
    "a list for a number": (visits(), lambda s: s.append({"clicks": [3]}), "clicks", "number from 0 to 10", "list"),
    "a record of nobody": (visits(unit="user", per_unit=1), lambda s: s.append({"clicks": 1}), "'user'", "'ann'"),
}


@pytest.mark.parametrize("mistake", APPENDING)
def test_appending(mistake):
    stream, deed, *words = APPENDING[mistake]
    says(cp.errors.InvalidRequest, words, lambda: deed(stream))
    assert stream.pin() == 0


DECLARED = {
    "state": cp.category(["CA", "NY"]),
    "age": cp.number(0, 120),
    "old": cp.derived("age >= 65"),
}
QUESTIONS = {
    "SQL where a request is meant": (lambda s: s.ask("SELECT COUNT(*) FROM people", epsilon=1), "session.sql"),
    "a delta beside an epsilon": (lambda s: s.ask(cp.count(), epsilon=1, delta=1e-6), "no delta=", "loss=ApproxDP("),
    "a percentage": (lambda s: s.ask(cp.count(), error=50, probability=95), "95 was given", "0.95"),
    "no probability at all": (lambda s: s.ask(cp.count(), error=50, probability=0), "above 0"),
    "an epsilon for nothing": (lambda s: s.epsilon_for(cp.count()), "error=50"),
    "a mean of truth values": (
        lambda s: s.ask(cp.mean("old"), epsilon=1),
        "count(where='old')",
        "CASE WHEN old THEN 1",
    ),
    "a mean of texts": (lambda s: s.ask(cp.mean("state"), epsilon=1), "count(by='state')"),
    "a column as a condition": (lambda s: s.ask(cp.count("age"), epsilon=1), "not a condition", "age IS NOT NULL"),
    "an empty condition": (lambda s: s.ask(cp.count(""), epsilon=1), "leave it out"),
    "a date as SQL writes it": (lambda s: s.ask(cp.count("age > DATE '2020-12-31'"), epsilon=1), "written as a text"),
    "a chain of comparisons": (lambda s: s.ask(cp.count("18 <= age < 65"), epsilon=1), "age >= 18 AND age < 65"),
    "a text without quotes": (lambda s: s.ask(cp.count("state = CA"), epsilon=1), "single quotes"),
    "a number to group by": (lambda s: s.ask(cp.count(by="age"), epsilon=1), "keys=[...]", "edges="),
    "no keys": (lambda s: s.ask(cp.count(by="state", keys=[]), epsilon=1), "keys is empty", "selected privately"),
    "aggregates without names": (lambda s: s.ask(cp.select(cp.count()), epsilon=1), "select(n=count()"),
    "a price of an ask": (lambda s: s.launch(cp.Laplace(1)).ask(cp.count(), epsilon=1), "its launch was charged"),
}


@pytest.mark.parametrize("case", QUESTIONS)
def test_a_mistaken_question_is_answered_with_what_to_ask_instead(case):
    deed, *words = QUESTIONS[case]
    table = cp.Table(PEOPLE, unit="person_id", rows_per_unit=1, columns=DECLARED)
    session = cp.Session(table, within=cp.ApproxDP(9, 1e-6))
    says((cp.errors.InvalidParameter, cp.errors.InvalidRequest), words, lambda: deed(session))


def test_epsilon_and_delta_in_the_wrong_order_are_no_budget():
    says(cp.errors.InvalidParameter, ["promises nothing", "epsilon first"], lambda: live(cp.ApproxDP(1e-6, 1)))


def test_a_column_declared_by_an_uncalled_function_is_named():
    columns = {"age": cp.number}
    says(cp.errors.InvalidParameter, ["number: call it"], lambda: cp.Table(PEOPLE, unit=cp.each_row, columns=columns))


def test_a_table_says_that_every_row_is_its_own_unit():
    assert repr(cp.Table(PEOPLE, unit=cp.each_row)).endswith("; unit=each_row)")


def test_answers_become_frames_of_all_three_libraries(people):
    table = cp.Table(PEOPLE, unit="person_id", rows_per_unit=1, columns=DECLARED)
    answer = cp.Session(table, within=cp.PureDP(1)).ask(cp.count(by="state"), epsilon=1)
    for frame in (answer.to_pandas(), answer.to_polars(), answer.to_arrow().to_pandas()):
        assert list(frame.columns) == ["state", "value", "error"] and len(frame) == 2


def test_a_quantile_is_made_of_answered_ranks(people):
    table = cp.Table(PEOPLE, unit="person_id", rows_per_unit=1, columns=DECLARED)
    ranks = cp.Session(table, within=cp.PureDP(10)).ask(cp.ranks("age", [0, 20, 120]), epsilon=10)
    assert cp.answers.quantile_from(ranks, [0, 20, 120], 0.5) == 120


def test_an_empty_selection_says_how_many_units_a_key_needs():
    visits = cp.Stream(fields={"page": cp.text()})
    found = cp.Session(visits, within=cp.ApproxDP(1, 1e-6)).ask(cp.keys("page"), loss=cp.ApproxDP(1, 1e-8))
    assert found == () and "none was selected" in repr(found) and f"{found.units_needed():,}" in repr(found)
