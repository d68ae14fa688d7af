"""Questions: what is launched for them, at which price, and that one question is charged once."""

import re
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest
from msgspec.structs import replace
from tests.session.asked import session, table, tail

import counterpoint as cp
from counterpoint.coins.enumerated import gaussian_options, laplace_options, rounded_normal_options
from counterpoint.encoding import encode
from counterpoint.errors import (
    BudgetExceeded,
    CounterpointError,
    DataFailed,
    InvalidParameter,
    InvalidRequest,
    NotCovered,
    RequestConflict,
)
from counterpoint.ledger import commands
from counterpoint.ledger.commands import AskCommand, QuestionCommand
from counterpoint.ledger.durable import DurableLedger
from counterpoint.ledger.ledger import Ledger
from counterpoint.ledger.memory import MemoryLedger
from counterpoint.ledger.sealing import MasterKey
from counterpoint.ledger.state import charge_text
from counterpoint.ledger.store.sqlite import SqliteStore
from counterpoint.numbers import Exact
from counterpoint.session import pricing as reaching
from counterpoint.session import questions
from counterpoint.session.runner import Engine

# ------------------------------------------------------------------------------------------------ what is launched


def test_a_price_buys_what_fits_the_request():
    s = session(cp.ApproxDP(100, 1e-3))
    loss = cp.ApproxDP(1, 1e-6)
    assert isinstance(s.ask(cp.count(), loss=loss).mechanism, cp.Laplace)
    assert s.ask(cp.keys("street"), loss=loss) == ("rue",)
    assert s.ask(cp.quantile("age", 0.5, [20, 40, 60]), epsilon=50) == 40
    wide = cp.ranks("age", list(range(0, 121)))
    assert isinstance(s.ask(wide, loss=loss).mechanism, cp.Gaussian), "of 121 numbers Gaussian noise is smaller"


def test_streams_and_parts_answer_questions():
    visits = cp.Stream(fields={"page": cp.category(["home", "shop"])})
    visits.extend([{"page": "home"}] * 9)
    s = cp.Session(visits, cp.PureDP(100))
    assert s.ask(cp.histogram("page"), epsilon=40)["home"] == 9
    people = session().partition("city", within=cp.PureDP(50))
    assert people["Rome"].ask(cp.count(), epsilon=50) == 30


BAD = [
    ({}, InvalidParameter),
    ({"epsilon": 1, "error": 5}, InvalidParameter),
    ({"epsilon": 1, "rho": 1}, InvalidParameter),
    ({"epsilon": 0}, InvalidParameter),
    ({"epsilon": -1}, InvalidParameter),
    ({"epsilon": "much"}, InvalidParameter),
    ({"epsilon": True}, InvalidParameter),
    ({"epsilon": float("nan")}, InvalidParameter),
    ({"loss": 0.5}, InvalidParameter),
    ({"loss": cp.PureDP(0)}, NotCovered),
    ({"loss": cp.RenyiDP(alpha=8, epsilon=0.2)}, NotCovered),
    ({"mu": 1}, NotCovered),
    ({"epsilon": 101}, BudgetExceeded),
    ({"error": -1}, InvalidParameter),
    ({"error": "near"}, InvalidParameter),
    ({"error": 5, "probability": 1}, InvalidParameter),
    ({"error": 5, "probability": 95}, InvalidParameter),
    ({"epsilon": 1, "probability": 0.9}, InvalidParameter),
    ({"epsilon": 1, "simultaneous": True}, InvalidParameter),
    ({"epsilon": 1, "id": ""}, InvalidParameter),
    ({"epsilon": 1, "id": 7}, InvalidParameter),
]


@pytest.mark.parametrize(("terms", "refusal"), BAD, ids=repr)
def test_terms_that_cannot_be_met_are_refused_and_nothing_is_charged(terms, refusal):
    s = session()
    with pytest.raises(refusal):
        s.ask(cp.count(), **terms)
    assert s.loss == cp.PureDP(0) and not s.handles


@pytest.mark.parametrize(
    ("request_", "terms", "says"),
    [
        ("how many?", {"epsilon": 1}, "how many"),
        (None, {"epsilon": 1}, "NoneType"),
        (cp.count(where="nonsense ="), {"epsilon": 1}, "cannot be parsed"),
        (cp.keys("street"), {"epsilon": 1}, "ApproxDP"),
        (cp.keys("street"), {"error": 5}, "keys"),
        (cp.mean("age"), {"error": 5}, "epsilon="),
        (cp.quantile("age", 0.5, [20, 40]), {"error": 5}, "ranks"),
        (cp.quantile("age", 0.5, [20, 40]), {"mu": 1}, "NoisyMax"),
    ],
    ids=repr,
)
def test_requests_that_cannot_be_answered_so_say_what_would_work(request_, terms, says):
    s = session(cp.ApproxDP(10, 1e-3))
    for use in (s.ask, s.would_cost):
        with pytest.raises((InvalidRequest, NotCovered), match=says):
            use(request_, **terms)
    assert not any(s.loss.amounts) and not s.handles


def test_a_mechanism_is_quoted_at_its_own_price():
    with pytest.raises(InvalidParameter, match="error="):
        session().would_cost(cp.Laplace(1), error=5)
    assert session().would_cost(cp.Laplace(1)).cost == cp.PureDP(1)
    with pytest.raises(InvalidRequest, match="Laplace"):
        session().ask(cp.Laplace(1), epsilon=1)


# ------------------------------------------------------------------------------------------------ accuracy first


@pytest.mark.parametrize(
    ("request_", "error", "steps", "l1", "l2", "cells"),
    [
        (cp.count(), 50, 50, 1, 1, 1),
        (cp.count(), 3, 3, 1, 1, 1),
        (cp.count(), 0, 0, 1, 1, 1),
        (cp.sum("pay"), 99.7, 199, 20, 400, 1),
        (cp.histogram("city"), 20, 20, 1, 1, 3),
        (cp.ranks("age", [30, 60, 90]), 20, 20, 3, 3, 3),
    ],
    ids=repr,
)
@pytest.mark.parametrize("simultaneous", [False, True])
def test_the_price_of_an_error_is_within_two_percent_of_the_least_by_search(  # noqa: PLR0917
    request_, error, steps, l1, l2, cells, simultaneous
):
    at_once = cells if simultaneous else 1
    found = questions.keeping(table().prepare(request_), error, simultaneous=simultaneous)
    laplace, normal, *fine = found
    assert bool(fine) == (error < 50 and steps < 5), "the discrete Gaussian is for deviations below two steps"

    def keeps(law, spread):
        return (1 - tail(law, spread, steps)) ** at_once >= Fraction(95, 100)

    for found, law, spread in (
        (laplace.epsilon, laplace_options, lambda epsilon: l1 / epsilon),
        (normal.mu, rounded_normal_options, lambda mu: l2 / mu**2),
        *((discrete.rho, gaussian_options, lambda rho: l2 / (2 * rho)) for discrete in fine),
    ):
        assert keeps(law, spread(found)), "the error is kept"
        assert not keeps(law, spread(found / Fraction(102, 100))), "and nothing 2 % cheaper keeps it"


@pytest.mark.parametrize(
    "within",
    [cp.PureDP(10), cp.zCDP(10), cp.GaussianDP(10), cp.ApproxDP(10, 1e-6), cp.tCDP(rho=10, omega=20)],
    ids=repr,
)
@pytest.mark.parametrize("request_", [cp.count(), cp.ranks("age", list(range(10, 120, 10)))], ids=["count", "ranks"])
def test_what_lowers_the_budget_least_is_launched(within, request_):
    s = session(within)
    answer = s.ask(request_, error=30)
    assert answer.error() <= 30
    for other in questions.keeping(table().prepare(request_), 30):
        beside = session(within)
        if beside.would_cost(other).fits:
            beside.launch(other)
            assert beside.remaining.epsilon <= s.remaining.epsilon


def test_an_odometer_loses_least():
    s = cp.Session(table(), rule=cp.Odometer(cp.zCDP))
    answer = s.ask(cp.count(), error=30)
    assert answer.error() <= 30
    for other in questions.keeping(table().prepare(cp.count()), 30):
        assert s.loss.epsilon_at(1e-6) <= s.rule.loss(s.rule.admit(s.rule.start(), other.claim)).epsilon_at(1e-6)


def test_a_quote_is_what_asking_costs_and_changes_nothing():
    s = session(cp.zCDP(1))
    quote = s.would_cost(cp.histogram("city"), error=20, simultaneous=True)
    assert quote.fits and not any(s.loss.amounts) and not s.handles
    answer = s.ask(cp.histogram("city"), error=20, simultaneous=True)
    assert answer.cost == quote.cost and s.loss == quote.after and answer.mechanism == quote.mechanism
    assert answer.error(simultaneous=True) <= 20
    assert not session(cp.PureDP(0.1)).would_cost(cp.count(), error=1).fits


def test_a_handle_states_its_error_in_the_units_of_the_request():
    s = session(cp.ApproxDP(100, 1e-3))
    laplace = s.launch(cp.Laplace(1, asks=2))
    assert laplace.error(cp.sum("pay"), 0.95) == Fraction(cp.Laplace(1, asks=2).error(0.95, 20), 2)
    ranks = cp.ranks("age", [30, 60])
    assert laplace.error(ranks, simultaneous=True) == cp.Laplace(1, asks=2).error(0.95, 2, width=2)
    assert laplace.error(ranks) == cp.Laplace(1, asks=2).error(0.95, 2)
    with pytest.raises(NotCovered, match="mean"):
        laplace.error(cp.mean("age"))
    assert s.launch(cp.NoisyMax(1)).error(ranks) == cp.NoisyMax(1).error(0.95, candidates=2)
    assert s.launch(cp.NoisyMax(1)).error(cp.median("age")) == Fraction(cp.NoisyMax(1).error(0.95, 121), 2)
    with pytest.raises(InvalidRequest, match="keys"):
        laplace.error(cp.keys("street"))


# ------------------------------------------------------------------------------------------------ one request


TERMS = [{"epsilon": "0.5"}, {"error": 5}, {"rho": "0.5"}]


@pytest.mark.parametrize("terms", TERMS, ids=repr)
def test_a_question_with_an_id_is_charged_once_and_answered_once(terms):
    s = session(cp.zCDP(10))
    first = s.ask(cp.count(), id="people", **terms)
    again = s.ask(cp.count(), id="people", **terms)
    assert (again, again.error(), again.mechanism) == (first, first.error(), first.mechanism)
    assert len(s.handles) == 1 and [fact.kind for fact in s.history] == ["open", "question"]
    assert s.ask(cp.count(), **terms) is not None and len(s.handles) == 2, "without an id, a new one"


def test_a_question_is_one_line_of_the_history_with_its_price():
    s = session(cp.PureDP(10))
    s.ask(cp.count(where="age > 3"), epsilon="0.5")
    *_, line = s.history
    assert (line.kind, line.path) == ("question", ())
    assert line.what == "Count(where='age > 3') by Laplace(0.5) at PureDP(0.5)"
    assert line.cost == charge_text(cp.Laplace("0.5").claim)


def test_a_question_has_two_commits(tmp_path):
    points = []
    ledger = DurableLedger(SqliteStore(tmp_path / "l.db"), "people", MasterKey(bytes(32)), reached=points.append)
    with cp.Session(table(key=bytes(32)), cp.PureDP(10), ledger=ledger) as s:
        points.clear()
        s.ask(cp.count(), epsilon=1)
        assert points.count("committed") == 2


def test_a_question_decides_once(monkeypatch):
    """Whether the mechanism answers it, at what price, and how the data of neighbours differ."""
    s, seen = session(cp.PureDP(10)), []

    def counted(kind, name, usual):
        monkeypatch.setattr(kind, name, lambda self, *given: seen.append(name) or usual(self, *given))

    counted(cp.Laplace, "accepts", cp.Laplace.accepts)
    usual = cp.Laplace.claim.fget
    monkeypatch.setattr(cp.Laplace, "claim", property(lambda self: seen.append("claim") or usual(self)))
    relation = cp.Table.relation.fget
    monkeypatch.setattr(cp.Table, "relation", property(lambda self: seen.append("relation") or relation(self)))
    counted(QuestionCommand, "body", QuestionCommand.body)
    counted(QuestionCommand, "choice", QuestionCommand.choice)
    s.ask(cp.count(), epsilon=1)
    assert sorted(seen) == ["accepts", "body", "choice", "claim", "relation"]


def test_an_ask_decides_and_is_written_once(monkeypatch):
    """Whether the mechanism accepts it, by public facts; and what the record keeps of it."""
    s, seen = session(cp.PureDP(10)), []
    handle = s.launch(cp.Laplace(1, asks=9))
    handle.ask(cp.count())  # whether the mechanism follows updates is decided with the first ask of a handle
    for kind, name in ((cp.Laplace, "accepts"), (cp.Laplace, "step"), (AskCommand, "body")):
        usual = getattr(kind, name)
        monkeypatch.setattr(
            kind, name, lambda self, *given, name=name, usual=usual: seen.append(name) or usual(self, *given)
        )
    handle.ask(cp.count())
    assert seen == ["body", "accepts", "step"]


def crash(*_, **__):
    raise RuntimeError("the process ends here")


def settled_then_crashed(*given, **more):
    usual_settle(*given, **more)
    crash()


usual_settle = Ledger.settle
CRASHES = {
    "after its charge": (Engine, "_settled", crash),
    "after its step": (Ledger, "settle", crash),
    "after its answer": (Ledger, "settle", settled_then_crashed),
}


@pytest.mark.parametrize("terms", TERMS, ids=repr)
@pytest.mark.parametrize("crashed", CRASHES.values(), ids=CRASHES)
def test_a_crash_in_a_question_costs_nothing_more(tmp_path, monkeypatch, terms, crashed):
    def opened():
        return cp.Session(table(key=bytes(32)), cp.zCDP(10), ledger=tmp_path / "ledger.db")

    with opened() as s:
        with monkeypatch.context() as patched:
            patched.setattr(*crashed)
            with pytest.raises(RuntimeError):
                s.ask(cp.count(), id="people", **terms)
        charged = s.loss
        assert any(charged.amounts)
        s.ask(cp.count(), epsilon="0.1"), s.launch(cp.Laplace("0.1")).ask(cp.count())
        after = s.loss
    with opened() as s:
        assert not s._engine.ledger.opened() and s.loss == after, "it was finished as the session was opened"
        answer = s.ask(cp.count(), id="people", **terms)
        assert s.loss == after and len(s.handles) == 3
        s._engine.ledger.verify()
    with opened() as s:
        assert s.ask(cp.count(), id="people", **terms) == answer and s.loss == after


def test_a_question_that_is_open_is_finished_on_the_coins_that_it_began_with():
    """By the process that began it, or by another one from the record: the same noise, so nothing is drawn twice."""
    answers = set()
    for finish in (False, True):
        s = cp.Session(table(), cp.PureDP(1), ledger=MemoryLedger(seeds=lambda: bytes(32)))
        with pytest.MonkeyPatch.context() as patched:
            if finish:
                patched.setattr(Engine, "_settled", crash)
                with pytest.raises(RuntimeError):
                    s.ask(cp.count(), epsilon="1e-9", id="people")
        if finish:
            (intent,) = s._engine.ledger.opened()
            s._engine.ledger._records.opened[intent.request] = replace(intent, command=None)  # as it is on record
            assert s._engine.recover() == 0
        answers.add(int(s.ask(cp.count(), epsilon="1e-9", id="people")))
    assert len(answers) == 1


def test_an_open_question_keeps_no_other_request_waiting(monkeypatch):
    s = session(cp.PureDP(10))
    with monkeypatch.context() as patched:
        patched.setattr(cp.Table, "resolve", lambda *_: crash())
        with pytest.raises(DataFailed):
            s.ask(cp.count(), epsilon=1, id="people")
        s.reopen()
        assert [intent.path for intent in s._engine.ledger.opened()] == [(0,)]
    handle = s.launch(cp.Laplace(1))
    assert isinstance(handle.ask(cp.count()), int) and isinstance(s.ask(cp.count(), epsilon=1), int)
    assert [intent.path for intent in s._engine.ledger.opened()] == [(0,)] and s.loss == cp.PureDP(3)
    assert isinstance(s.ask(cp.count(), epsilon=1, id="people"), int)
    assert s.loss == cp.PureDP(3) and not s._engine.ledger.opened()


def test_a_repeated_question_is_found_though_another_mechanism_is_cheaper_by_now(monkeypatch):
    s = session(cp.zCDP(10))
    first = s.ask(cp.count(), error=5, id="people")
    for module in (commands, questions):
        monkeypatch.setattr(
            module, "cheapest", lambda _, account, fits: next(fit for fit in fits if fit.mechanism != first.mechanism)
        )
    assert s.would_cost(cp.count(), error=5).mechanism != first.mechanism
    assert s.ask(cp.count(), error=5, id="others").mechanism != first.mechanism
    again = s.ask(cp.count(), error=5, id="people")
    assert (again, again.mechanism, len(s.handles)) == (first, first.mechanism, 2)


def test_the_cheapest_mechanism_is_chosen_by_the_account_inside_the_transaction(monkeypatch):
    """Of two threads that ask at once, the second one's choice counts what the first was charged."""
    s, accounts = session(cp.ApproxDP(10, 1e-6)), []
    usual = commands.cheapest
    monkeypatch.setattr(
        commands, "cheapest", lambda c, account, fits: accounts.append(account) or usual(c, account, fits)
    )
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: s.ask(cp.count(), error=30), range(4)))
    assert len({encode(account) for account in accounts}) == 4


def test_a_repeated_question_is_answered_though_nothing_is_left():
    s = session(cp.PureDP(1))
    first = s.ask(cp.count(), epsilon=1, id="people")
    with pytest.raises(BudgetExceeded):
        s.ask(cp.count(), epsilon=1)
    assert s.ask(cp.count(), epsilon=1, id="people") == first


def test_an_id_stands_for_the_question_and_its_terms():
    s = session(cp.PureDP(10))
    s.ask(cp.count(), epsilon=1, id="people")
    for request_, terms in (
        (cp.count(), {"epsilon": 2}),
        (cp.count(where="age > 3"), {"epsilon": 1}),
        (cp.count(), {"error": 5}),
    ):
        with pytest.raises(RequestConflict, match="people"):
            s.ask(request_, id="people", **terms)
    assert s.loss == cp.PureDP(1)


def test_an_id_is_that_of_one_request_whatever_its_kind():
    s = session(cp.PureDP(10))
    handle = s.launch(cp.Laplace(1, asks=2), id="launched")
    handle.ask(cp.count(), id="asked")
    answer = s.ask(cp.count(), epsilon=1, id="people")
    for name in ("launched", "asked"):
        with pytest.raises(RequestConflict, match=name):
            s.ask(cp.count(), epsilon=1, id=name)
    for other in (lambda: s.launch(cp.Laplace(1), id="people"), lambda: handle.ask(cp.count(), id="people")):
        with pytest.raises(RequestConflict, match="people"):
            other()
    assert s.ask(cp.count(), epsilon=1, id="people") == answer and s.loss == cp.PureDP(2)


def test_every_error_of_a_question_is_in_the_tree():
    s = session()
    for terms in ({"epsilon": object()}, {"error": [1]}, {"loss": "PureDP"}, {"rho": 1j}):
        with pytest.raises(CounterpointError):
            s.ask(cp.count(), **terms)


# ------------------------------------------------------------------------------------------------ accuracy of choices


@pytest.mark.parametrize("rows", [0, 3, "12.5", 200])
@pytest.mark.parametrize("probability", ["0.5", "0.95", "0.999"])
def test_the_price_of_a_rank_error_is_within_two_percent_of_the_least(rows, probability):
    facts, halves = table().prepare(cp.median("age")), 2 * Fraction(rows)
    flips, odds = questions.keeping(facts, rows, probability, in_rows=True)
    for found, cheaper in (
        (flips, cp.NoisyMax(flips.epsilon / Fraction(102, 100))),
        (odds, cp.NoisyMax(rho=odds.rho / Fraction(102, 100))),
    ):
        assert found.error(probability, 121, facts.each) <= halves < cheaper.error(probability, 121, facts.each)


def test_a_quantile_is_asked_by_the_rank_error_that_it_may_have():
    s = session(cp.PureDP(100))
    quote = s.would_cost(cp.median("age"), rank_error=10)
    answer = s.ask(cp.median("age"), rank_error=10, id="middle")
    assert answer.rank_error() <= 10 and answer.cost == quote.cost == s.loss
    assert "within 10 rows of the best rank" in answer.why
    assert s.ask(cp.median("age"), rank_error=10, id="middle") == answer and s.loss == quote.cost
    for request_, terms in ((cp.count(), {"rank_error": 5}), (cp.median("age"), {"rank_error": -1})):
        with pytest.raises(InvalidParameter, match="error"):
            s.ask(request_, **terms)
    with pytest.raises(NotCovered, match="rank_error=20"):
        s.ask(cp.median("age"), error=5)
    assert s.loss == quote.cost


def test_of_two_ways_to_choose_the_one_with_the_smaller_error_is_launched():
    s = session(cp.zCDP(10**4))
    for rho in ("0.01", "0.5", 8):
        answer = s.ask(cp.median("age"), rho=rho)
        ways = [cp.NoisyMax(rho=rho), cp.NoisyMax(Fraction(2 * Fraction(rho)) ** Fraction(1, 2))]
        assert answer.rank_error() == min(Fraction(way.error("0.95", 121), 2) for way in ways)
        assert "compared" in answer.why and "NoisyMax" in answer.why


def test_why_says_what_each_mechanism_would_have_been_off():
    answer = session(cp.zCDP(100)).ask(cp.count(), rho="0.5")
    assert answer.why.startswith("Gaussian(rho=0.5) with 2 has the least error in steps of the grid")
    assert answer.why.endswith("compared: Gaussian(rho=0.5, discrete=True) with 2, Laplace(~1) with 3")


def test_below_two_steps_the_discrete_gaussian_answers_where_only_zcdp_is_budgeted():
    fine = cp.Gaussian(rho=5, discrete=True)
    assert session(cp.zCDP(100)).ask(cp.count(), rho=5).mechanism == fine
    answer = session(cp.GaussianDP(100)).ask(cp.count(), rho=5)
    assert answer.mechanism == cp.Gaussian(rho=5)
    assert "lowers the budget less than the one with the least error" in answer.why
    assert session(cp.zCDP(100)).ask(cp.count(), rho="0.1").mechanism == cp.Gaussian(rho="0.1")


@pytest.mark.parametrize("wrong", [1e-9, 1.0, 1e9, 0.0, float("inf"), float("nan")])
def test_where_the_search_for_a_price_begins_does_not_matter(wrong):
    for request_, steps in ((cp.count(), 30), (cp.median("age"), 10)):
        facts = table().prepare(request_)
        ways = reaching._CHOICES if facts.wants == "choice" else reaching._NUMBERS
        for found, (make, _) in zip(reaching.reaching(facts, steps), ways, strict=False):

            def keeps(mechanism, facts=facts, steps=steps):
                return mechanism.answer_error(facts.message(), "0.95", 1) <= steps

            assert reaching._cheapest(make, keeps, wrong) == found


def test_an_error_that_no_parameter_keeps_is_refused_and_one_that_all_keep_costs_next_to_nothing():
    with pytest.raises(InvalidParameter, match="no parameter"):
        reaching._cheapest(cp.Laplace, lambda _: False, 1.0)
    assert session().would_cost(cp.count(), error=5, probability=Fraction(1, 10**55)).cost.epsilon <= Fraction(
        1, 10**46
    )


@pytest.mark.parametrize(
    ("request_", "terms"),
    [
        (cp.count(), {"error": 50}),
        (cp.sum("pay"), {"error": 7.5, "probability": 0.99}),
        (cp.histogram("city"), {"error": 9, "simultaneous": True}),
        (cp.median("age"), {"rank_error": 8}),
    ],
    ids=repr,
)
def test_epsilon_for_is_the_inverse_of_the_error(request_, terms):
    s = session()
    epsilon = s.epsilon_for(request_, **terms)
    assert not s.handles and type(epsilon) is Exact
    cheaper = epsilon / Fraction(102, 100)
    launched = [cp.NoisyMax(e) if "rank_error" in terms else cp.Laplace(e) for e in (epsilon, cheaper)]
    off = [
        s.launch(m).error(request_, terms.get("probability", "0.95"), simultaneous="simultaneous" in terms)
        for m in launched
    ]
    assert off[0] <= terms.get("error", terms.get("rank_error")) < off[1]
    for bad in ({}, {"epsilon": 1}):
        with pytest.raises(InvalidParameter, match="error="):
            s.epsilon_for(cp.count(), **bad)


# ------------------------------------------------------------------------------------------------ suppression, failures


def test_a_question_can_ask_for_suppression_and_costs_the_same():
    s = session(cp.PureDP(1000))
    assert s.ask(cp.count(), epsilon=1, suppress=10**6) is None and s.ask(cp.count(), epsilon=100, suppress=2) == 60
    cities = s.ask(cp.histogram("city"), epsilon=100, suppress=2)
    assert dict(cities) == {"Paris": 30, "Rome": 30, "<b>Ys</b>": None} or cities.error() == 0
    lost = s.loss
    for request_, ratio in ((cp.median("age"), 2), (cp.keys("street"), 2), (cp.count(), -1), (cp.count(), "x")):
        with pytest.raises((InvalidParameter, InvalidRequest), match=r"suppress|ApproxDP"):
            s.ask(request_, epsilon=1, suppress=ratio)
    assert s.loss == lost


@pytest.mark.parametrize("id", [None, "people"])
def test_a_question_that_was_paid_and_not_answered_is_answered_by_its_id(monkeypatch, id):
    """Without an id of the analyst's, the error says which one it has got."""
    s = session(cp.PureDP(1))

    def unreachable(*_):
        raise OSError("no such file")

    with monkeypatch.context() as patched:
        patched.setattr(cp.Table, "resolve", unreachable)
        with pytest.raises(DataFailed) as failed:
            s.ask(cp.count(), epsilon=1, id=id)
    (note,) = failed.value.__notes__
    (said,) = re.findall("id='([^']+)'", note)
    assert str(failed.value) == str(DataFailed()) and said == (id or said) and s.loss == cp.PureDP(1)
    s.reopen()
    assert isinstance(s.ask(cp.count(), epsilon=1, id=said), int)
    assert s.loss == cp.PureDP(1) and len(s.handles) == 1


CHOSEN = [
    (cp.median("age"), {"epsilon": "0.5"}),
    (cp.median("age"), {"rank_error": 20}),
    (cp.quantile("pay", "0.9"), {"loss": cp.ApproxDP("0.5", "1e-7")}),
    (cp.keys("street"), {"loss": cp.ApproxDP("0.5", "1e-7")}),
    (cp.variance("age"), {"epsilon": "0.5"}),
]


@pytest.mark.parametrize(("request_", "terms"), CHOSEN, ids=repr)
def test_choices_and_keys_survive_a_crash_before_their_answer(tmp_path, monkeypatch, request_, terms):
    def opened():
        return cp.Session(table(key=bytes(32)), cp.ApproxDP(10, 1e-5), ledger=tmp_path / "ledger.db")

    with opened() as s, monkeypatch.context() as patched:
        patched.setattr(Engine, "_settled", crash)
        with pytest.raises(RuntimeError):
            s.ask(request_, id="people", **terms)
        charged = s.loss
    with opened() as s:
        answer = s.ask(request_, id="people", **terms)
        assert s.loss == charged and len(s.handles) == 1
    with opened() as s:
        again = s.ask(request_, id="people", **terms)
        assert (again, again.cost, again.mechanism, s.loss) == (answer, answer.cost, answer.mechanism, charged)


def test_the_errors_of_all_cells_are_computed_once(monkeypatch):
    answer = session().ask(cp.histogram("city"), epsilon=1)
    asked = []
    usual = cp.Laplace.answer_error
    monkeypatch.setattr(cp.Laplace, "answer_error", lambda *given: asked.append(given) or usual(*given))
    assert repr(answer) and answer.columns() and answer._repr_html_() and len(asked) == 1
    assert answer["Rome"].error(0.5) <= answer["Rome"].error("0.95") == answer.error() and len(asked) == 2
    for bad in ([1], None, "near", 1):
        with pytest.raises(InvalidParameter, match="probability"):
            answer["Rome"].error(bad)


def test_several_aggregates_can_be_suppressed_each_by_its_own_error():
    s = session(cp.PureDP(10**4))
    answer = s.ask(cp.select(n=cp.count(), pay=cp.mean("pay"), by="city"), epsilon=1000, suppress=2)
    assert answer["Rome"]["n"] == 30 and answer["Rome"]["pay"] is not None
    assert answer["<b>Ys</b>"]["pay"] is None and s.loss == cp.PureDP(1000)
    assert s.ask(cp.select(n=cp.count(), pay=cp.mean("pay")), epsilon=1, suppress=10**6)["n"] is None
