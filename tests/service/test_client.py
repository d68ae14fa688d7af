"""One suite for a local session and a served one: the same calls, the same answers, the same refusals."""

import asyncio
from contextlib import ExitStack
from fractions import Fraction

import pytest
from tests.service.places import PLACES, over_a_socket

import counterpoint as cp
from counterpoint.client.connect import ItemsArrived, LossChanged
from counterpoint.queries.select import Select


@pytest.fixture(params=PLACES)
def place(request, tmp_path):
    with PLACES[request.param](tmp_path) as found:
        yield found


@pytest.fixture(scope="module")
def everywhere(tmp_path_factory):
    """All places at once, to compare them."""
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(open_place(tmp_path_factory.mktemp(name))) for name, open_place in PLACES.items()
        }


@pytest.fixture
def session(place):
    return place.session("people")


def test_a_launched_mechanism_is_asked_as_often_as_was_paid_for(session):
    handle = session.launch(cp.Laplace(2000, asks=2))
    assert (handle.path, handle.mechanism, handle.halted) == ((0, 0), cp.Laplace(2000, asks=2), False)
    assert handle.cost == cp.PureDP(2000)
    assert handle.ask(cp.count("age > 35")) == 60 and type(handle.ask(cp.count())) is int
    assert handle.halted
    with pytest.raises(cp.errors.Halted):
        handle.ask(cp.count())
    assert session.loss == cp.PureDP(2000) and session.remaining == cp.composition.Remaining(
        Fraction(8000), Fraction(0)
    )


HANDLE_ASKS = [
    (cp.Laplace(1000), cp.count("age > 35"), 60, int),
    (cp.Laplace(1000), cp.sum("hours"), Fraction(250), Fraction),
    (cp.Laplace(1000), cp.histogram("state"), (60, 40), tuple),
    (cp.Gaussian(rho=1000), cp.count(), 100, int),
    (cp.NoisyMax(1000), cp.quantile("age", 0.5, [10, 40, 90]), 40, int),
    (cp.NoisyMax(1000), cp.histogram("state"), "CA", str),
    (cp.PartitionSelection(100, 1e-3), cp.keys("town"), ("here", "there"), tuple),
    (cp.Laplace(20_000), cp.mean("age"), Fraction(40), Fraction),
    (cp.Laplace(5000), cp.select(n=cp.count(), old=cp.count("age > 45")), {"n": 100, "old": 40}, dict),
]


@pytest.mark.parametrize(("mechanism", "asked", "value", "kind"), HANDLE_ASKS, ids=lambda given: repr(given)[:40])
def test_a_handle_answers_in_units(everywhere, mechanism, asked, value, kind):
    for place in everywhere.values():
        answer = place.session("folks").launch(mechanism).ask(asked)
        assert answer == value and isinstance(answer, kind)


def test_an_ask_takes_the_options_of_its_mechanism(session):
    sparse = session.launch(cp.SparseVector(1000, threshold=0, hits=3))
    assert sparse.ask(cp.count(), threshold="99.5") is True
    assert sparse.ask(cp.count(), threshold=Fraction(201, 2)) is False
    with pytest.raises(cp.errors.InvalidRequest):
        sparse.ask(cp.count(), depth=1)


def test_the_same_id_gets_the_same_answer_and_is_charged_once(session):
    first = [session.ask(cp.count(), epsilon="0.1", id="monday") for _ in range(3)]
    assert len(set(first)) == 1 and session.loss == cp.PureDP("0.1")
    handles = [session.launch(cp.Laplace("0.2", asks=5), id="tuesday") for _ in range(2)]
    assert handles[0].path == handles[1].path and session.loss == cp.PureDP("0.3")
    assert len({handle.ask(cp.count(), id="a") for handle in handles}) == 1
    with pytest.raises(cp.errors.RequestConflict):
        session.launch(cp.Laplace("0.4"), id="tuesday")


def test_without_ids_each_call_is_another(session):
    handles = [session.launch(cp.Laplace("0.2")) for _ in range(2)]
    assert [handle.path for handle in handles] == [(0, 0), (0, 1)] == [handle.path for handle in session.handles]


QUESTIONS = [
    (cp.count("age > 35"), {"epsilon": 1000}),
    (cp.count("age > 35"), {"error": 5}),
    (cp.count("age > 35"), {"rho": "1/3"}),
    (cp.sum("hours"), {"error": "0.5", "probability": "0.99"}),
    (cp.mean("age"), {"epsilon": 20_000}),
    (cp.stdev("age", by="state"), {"epsilon": 1000}),
    (cp.histogram("state"), {"error": 9, "simultaneous": True}),
    (cp.histogram("age", edges=[0, 35, 100]), {"mu": 100}),
    (cp.histogram("age", bins=4), {"epsilon": 1000}),
    (cp.share("age > 35", by="state"), {"epsilon": 1000}),
    (cp.count(), {"relative_error": "0.5", "rows_at_least": 8}),
    (cp.count(by=["state", "town"], keys=[("CA", "here"), ("NY", "there")]), {"epsilon": 1000}),
    (cp.median("age"), {"epsilon": 100}),
    (cp.quantile("age", 0.1, by="state"), {"rank_error": 3}),
    (cp.quantile("age", [0.1, 0.5], by="state"), {"epsilon": 1000}),
    (cp.maximum("age"), {"epsilon": 1000}),
    (cp.bounds("age"), {"epsilon": 1000}),
    (cp.top("state", 1), {"epsilon": 1000}),
    (cp.select(n=cp.count(), age=cp.mean("age"), by="state"), {"epsilon": 5000}),
    (cp.select(n=cp.count(), hours=cp.sum("hours")), {"epsilon": 5000}),
    (cp.count("age > 99"), {"epsilon": "0.01", "suppress": 2}),
    (cp.histogram("state"), {"epsilon": "0.001", "suppress": 10**6}),
]


def told(answer):
    """All that an answer tells, but for its noise where it has some."""
    facts = {"type": type(answer).__name__}
    for name in ("cost", "mechanism", "why", "request", "units", "made_up"):
        facts[name] = getattr(answer, name, None)
    for name in ("columns", "error", "units_needed", "rank_error"):
        if hasattr(answer, name):
            try:
                facts[name] = getattr(answer, name)(0.99)
            except cp.errors.NotCovered as error:
                facts[name] = str(error)
    return facts


def without_noise(asked, on):
    return type(asked).__name__ in ("Count", "Histogram") and on.get("epsilon") == 1000


@pytest.mark.parametrize(("asked", "on"), QUESTIONS, ids=repr)
def test_a_question_is_answered_by_the_same_object_wherever_it_is_asked(everywhere, asked, on):
    answers = {name: place.session("folks").ask(asked, **on) for name, place in everywhere.items()}
    for answer in answers.values():
        facts, expected = told(answer), told(answers["local"])
        if not without_noise(asked, on):
            facts.pop("columns", None), expected.pop("columns", None)
        assert facts == expected
        if without_noise(asked, on):
            assert repr(answer) == repr(answers["local"])
        if hasattr(answer, "plot") and not isinstance(asked, Select):
            assert "<svg" in answer.plot()._repr_svg_()
        if hasattr(answer, "to_pandas"):
            assert list(answer.to_pandas().columns) == list(answers["local"].to_pandas().columns)


def test_keys_say_what_they_needed_to_be_selected(place):
    towns = place.session("folks").ask(cp.keys("town"), loss=cp.ApproxDP(100, "1e-3"))
    assert sorted(towns) == ["here", "there"] and type(towns) is cp.answers.KeysAnswer
    assert towns.units_needed(0.99) > 0 and towns.cost == cp.ApproxDP(100, "1e-3")


def test_sql_is_answered_under_the_names_of_select(session):
    answer = session.sql(
        "SELECT state AS s, COUNT(*) AS n FROM people WHERE age > 25 GROUP BY state HAVING n > 10 ORDER BY n DESC",
        epsilon=5000,
    )
    assert answer.columns()["n"] == [40, 40]
    assert list(answer.columns()) == ["s", "n", "n_error"] and session.loss == cp.PureDP(5000)
    assert abs(session.sql("SELECT AVG(age) AS a FROM people", epsilon=4000)["a"] - 40) < 1
    with pytest.raises(cp.errors.UnsupportedSQL) as refused:
        session.sql("SELECT age FROM people", epsilon=1)
    assert refused.value.found == "raw columns in SELECT" and "GROUP BY" in refused.value.works


def test_a_refusal_is_free_and_carries_what_was_asked_and_what_would_fit(session):
    session.launch(cp.Laplace("1/3"))
    with pytest.raises(cp.BudgetExceeded) as refused:
        session.launch(cp.Laplace(10**4))
    left = 10**4 - Fraction(1, 3)
    assert refused.value.requested == cp.PureDP(10**4) and refused.value.would_fit == cp.PureDP(left)
    assert refused.value.remaining == cp.composition.Remaining(left, Fraction(0)) == session.remaining
    assert session.loss == cp.PureDP("1/3")
    assert [fact.kind for fact in session.history] == ["launch", "refusal"]


REFUSED = [
    (cp.errors.InvalidRequest, lambda s: s.ask(cp.mean("wage"), epsilon=1)),
    (cp.errors.InvalidRequest, lambda s: s.ask("how many?", epsilon=1)),
    (cp.errors.InvalidRequest, lambda s: s.ask(cp.count, epsilon=1)),
    (cp.errors.InvalidRequest, lambda s: s.launch(cp.Laplace(1)).ask(cp.keys("town"))),
    (cp.errors.InvalidParameter, lambda s: s.ask(cp.count())),
    (cp.errors.InvalidParameter, lambda s: s.ask(cp.count(), epsilon=1, error=1)),
    (cp.errors.InvalidParameter, lambda s: s.ask(cp.count(), epsilon=-1)),
    (cp.errors.InvalidParameter, lambda s: s.ask(cp.count(), epsilon=float("nan"))),
    (cp.errors.InvalidParameter, lambda s: s.ask(cp.top("state", 1), epsilon=1, suppress=2)),
    (cp.errors.InvalidParameter, lambda s: s.launch(cp.Laplace)),
    (cp.errors.InvalidParameter, lambda s: s.launch("Laplace")),
    (cp.errors.InvalidParameter, lambda s: s.would_cost(cp.Laplace(1), epsilon=1)),
    (cp.errors.InvalidRequest, lambda s: s.launch(cp.Counter(epsilon=1))),
    (cp.errors.NotCovered, lambda s: s.ask(cp.mean("age"), error=1)),
    (cp.errors.InvalidRequest, lambda s: s.partition("wage", within=cp.PureDP(1))),
    (cp.errors.NotAllowed, lambda s: s.partition("state", within=cp.PureDP(1)).__iter__()),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_is_refused_is_refused_alike(everywhere, number):
    kind, call = REFUSED[number]
    for place in everywhere.values():
        with pytest.raises(kind) as refused:
            call(place.session("people"))
        assert (
            refused.type is kind or issubclass(kind, refused.type) or refused.type.__module__ != "counterpoint.errors"
        )


def test_a_quote_says_what_would_be_launched_and_charges_nothing(session):
    quote = session.would_cost(cp.count(), error=50)
    assert quote.expected.within == 50 and len(quote.expected.prices) == 5
    assert quote.fits and quote.mechanism == cp.Laplace("0.05932") and quote.cost == quote.after == cp.PureDP("0.05932")
    refused = session.would_cost(cp.Laplace(10**5))
    assert not refused.fits and refused.after is None and refused.refusal.startswith("BudgetExceeded: PureDP(100000)")
    assert session.loss == cp.PureDP(0)


def test_an_error_is_stated_before_anything_is_asked(session):
    handle = session.launch(cp.Laplace("0.1", asks=2))
    assert handle.error(cp.count(), "0.99") > handle.error(cp.count()) and type(handle.error(cp.count())) is int
    assert isinstance(handle.error(cp.sum("hours")), Fraction)
    assert handle.error(cp.histogram("state"), simultaneous=True) > handle.error(cp.histogram("state"))


def test_a_delegated_session_has_a_budget_of_its_own(session):
    inner = session.delegate(cp.PureDP(1), id="inner")
    assert (inner.remaining.epsilon, inner.rule) == (1, cp.Filter(cp.PureDP(1)))
    with pytest.raises(cp.BudgetExceeded):
        inner.launch(cp.Laplace(2))
    handle = inner.launch(cp.Laplace("0.5"))
    assert handle.path == (0, 0, 0) and session.loss == cp.PureDP(1) and inner.loss == cp.PureDP("0.5")
    assert session.delegate(cp.PureDP(1), id="inner").loss == inner.loss
    found = session.at(handle.path)
    assert found.mechanism == handle.mechanism and session.at((0, 9)) is None and session.at((1,)) is None
    assert session.at((0, 0)).loss == inner.loss
    assert [one.loss for one in session.given] == [cp.PureDP("0.5")] and session.handles == ()


def test_a_release_is_reserved_and_settled_as_in_a_local_session(place):
    session = place.session("people")
    reserved = session.reserve(cp.PureDP("0.5"), "a model", unit="a person", id="model")
    assert (reserved.loss, session.loss) == (cp.PureDP("0.5"), cp.PureDP("0.5"))
    again = session.reserve(cp.PureDP("0.5"), "a model", unit="a person", id="model")
    first, second = reserved.settle(cp.PureDP("0.125")), again.settle(cp.PureDP("0.125"))
    assert first.path == second.path and session.loss == cp.PureDP("0.125")
    with pytest.raises(cp.errors.CounterpointError):
        reserved.settle(cp.PureDP("0.0625"))
    assert session.loss == cp.PureDP("0.125")
    session.charge(cp.PureDP("0.25"), "another", unit="a person", id="other")
    left = session.remaining.epsilon
    assert session.would_admit(cp.PureDP(left)) == 1 and session.would_admit(cp.PureDP(left * 2)) == 0
    assert [one.kind for one in session.history].count("charge") == 2


def test_a_session_on_a_sample_is_charged_less_than_its_budget(place):
    session = place.session("folks")
    tenth = session.delegate(cp.PureDP(3), sampled="0.1")
    assert tenth.remaining.epsilon == 3 and tenth.ask(cp.count(), epsilon=1) < 150
    assert session.loss.epsilon < 2
    with pytest.raises(cp.errors.InvalidParameter):
        session.delegate(cp.PureDP(3), sampled=7)


def test_parts_are_sessions_of_their_own(session):
    parts = session.partition("state", within=cp.PureDP(1000), id="states")
    assert parts.loss == cp.PureDP(1000) and parts.within == cp.PureDP(1000)
    assert parts["CA"].ask(cp.count(), epsilon=1000) == 60 and parts["NY"].loss == cp.PureDP(0)
    assert parts["CA"].loss == cp.PureDP(1000)
    again = session.partition("state", within=cp.PureDP(1000), id="states")
    assert again["CA"].loss == cp.PureDP(1000) == session.loss
    assert session.at((0, 0)).within == cp.PureDP(1000) and session.given[0]["CA"].loss == cp.PureDP(1000)
    hours = session.partition("hours", 2, within=[cp.PureDP(500), cp.PureDP(100)])
    assert hours.within == (cp.PureDP(500), cp.PureDP(100))
    assert hours.part(1.5, within=cp.PureDP(500)).ask(cp.count(), epsilon=500) == 20
    assert hours[Fraction(5, 2)].rule == cp.Filter(cp.PureDP(100))


def test_reading_a_session_tells_what_was_done(session):
    handle = session.launch(cp.Laplace(1, asks=2))
    handle.ask(cp.count())
    session.delegate(cp.PureDP(2))
    assert [(fact.kind, fact.path, fact.who) for fact in session.history] == [
        ("launch", (0,), "ann"),
        ("ask", (0, 0), "ann"),
        ("delegation", (0,), "ann"),
    ]
    certificate = session.certificate()
    assert "(0, 0)" in str(certificate) and "Laplace" not in certificate.theorem
    assert session.rule == cp.Filter(cp.PureDP(10**4)) and session.made_up is False


def test_a_session_is_read_at_a_distance(place):
    session = place.session("folks")
    for _ in range(3):
        session.launch(cp.Laplace("0.1"))
    losses = [session.loss_at(distance=distance) for distance in (0, 1, 3)]
    assert 0 == losses[0].epsilon < losses[1].epsilon <= session.loss.epsilon < losses[2].epsilon == Fraction(9, 10)
    inner = session.delegate(cp.PureDP("0.2"))
    inner.launch(cp.Laplace("0.1"))
    (reserved,) = session.reserved
    assert (reserved.path[-1], reserved.charged, reserved.used) == (3, cp.PureDP("0.2"), cp.PureDP("0.1"))
    for wrong in (-1, "three", 1.5):
        with pytest.raises(cp.errors.InvalidParameter):
            session.loss_at(distance=wrong)


def test_the_epsilon_for_an_error_is_known_before_anything_is_asked(session):
    assert session.epsilon_for(cp.count(), error=50) == Fraction("0.05932")
    assert session.epsilon_for(cp.median("age"), rank_error=5) > 0
    with pytest.raises(cp.errors.InvalidParameter, match="say how far off"):
        session.epsilon_for(cp.count(), epsilon=1)
    assert session.loss == cp.PureDP(0)


def test_a_session_and_a_series_are_drawn(place):
    session, stream = place.session("visits"), place.stream("visits")
    counter = session.launch(cp.Counter(epsilon=1000), of="seconds")
    with pytest.raises(cp.BudgetExceeded):
        session.launch(cp.Laplace(10**6))
    stream.extend([{"page": "home", "seconds": 20}] * 2)
    seen = {2: counter.ask()}
    assert len(counter.plot(seen).points) == 1 and "<svg" in counter.plot(seen)._repr_svg_()
    with pytest.raises(cp.errors.NotCovered, match="is not a Counter"):
        session.launch(cp.Laplace(1)).plot({})
    for by in ("order", "time"):
        picture = session.plot(by)
        assert "Counter" in str(picture) and "ε 1001 of 10000 lost" in str(picture) and "<svg" in picture._repr_svg_()
    with pytest.raises(cp.errors.InvalidParameter, match="by='order'"):
        session.plot("size")


def test_rows_of_a_live_table_are_put_replaced_and_removed(place):
    session, table = place.session("staff"), place.table("staff")
    table.put({"person": "ann", "row": 1, "age": 41})
    for _ in range(2):
        table.put([{"person": "bob", "row": 1, "age": 20}, {"person": "bob", "row": 2, "age": 30}], id="batch")
    noisy = session.launch(cp.Laplace(9000, asks=3))
    assert noisy.ask(cp.count()) == 3
    table.put({"person": "ann", "row": 1, "age": 42})
    table.remove(person="bob", row=2)
    assert noisy.ask(cp.count("age >= 42")) == 1
    table.remove([{"person": "bob", "row": 1}, {"person": "eve", "row": 7}])
    assert noisy.ask(cp.count()) == 1
    with pytest.raises(cp.errors.RequestConflict):
        table.put({"person": "eve", "row": 1}, id="batch")
    for wrong in (lambda: table.put(["ann"]), lambda: table.put("ann"), lambda: table.remove([], person="ann")):
        with pytest.raises(cp.errors.InvalidRequest):
            wrong()
    with pytest.raises(cp.errors.InvalidRequest):
        table.put({"person": "ann", "row": 1, "wage": 3})


def test_a_custodian_grants_revokes_and_recounts(place):
    whole = place.whole("people")
    granted = whole.grant("ann", cp.PureDP(10), mechanisms=[cp.Laplace], id="one")
    theirs = granted if not hasattr(place, "connect") else place.connect("ann").session("people")
    handle = theirs.launch(cp.Laplace(1, asks=5))
    with pytest.raises(cp.errors.NotGranted):
        theirs.launch(cp.Gaussian(rho=1))
    assert whole.loss == cp.PureDP(10)
    whole.revoke(granted)
    with pytest.raises(cp.errors.NotGranted):
        handle.ask(cp.count())
    whole.recount(granted)
    assert whole.loss == cp.PureDP(1) and [one.loss for one in whole.given] == [cp.PureDP(1)]


def test_mechanisms_follow_what_producers_append(place):
    session, stream = place.session("visits"), place.stream("visits")
    counter = session.launch(cp.Counter(epsilon=1000), of=cp.count(where="page = 'home'"))
    recent = session.launch(cp.Counter(epsilon=1000, window=2), of=cp.count())
    stream.append({"page": "home", "seconds": 20})
    for _ in range(2):
        stream.extend([{"page": "shop", "seconds": 1}, {"page": "home", "seconds": 2}], id="batch")
    assert (counter.ask(), recent.ask()) == (2, 2)
    assert abs(session.ask(cp.total("seconds"), epsilon=5000) - 23) <= 12
    assert session.ask(cp.histogram("page"), epsilon=1000)["home"] == 2
    with pytest.raises(cp.errors.RequestConflict):
        stream.append({"page": "shop", "seconds": 1}, id="batch")
    with pytest.raises(cp.CounterpointError):
        stream.append({"page": "shop", "minutes": 1})


def test_everything_goes_over_a_socket_as_well(tmp_path):
    with over_a_socket(tmp_path) as place:
        session = place.session("people")
        handle = session.launch(cp.Laplace(2000, asks=2))
        assert handle.ask(cp.count("age > 35"), id="a") == handle.ask(cp.count("age > 35"), id="a") == 60
        assert session.ask(cp.histogram("state"), epsilon=1000)["CA"].error(0.99) == 0
        with pytest.raises(cp.BudgetExceeded) as refused:
            session.launch(cp.Laplace(10**5))
        assert refused.value.would_fit == cp.PureDP(7000)
        place.stream("visits").append({"page": "home", "seconds": 20})
        assert place.session("visits").ask(cp.count(), epsilon=1000) == 1
        followed = place.session("visits").events(seconds=30)
        first = [next(followed), next(followed)]
        assert first == [
            LossChanged(cp.PureDP(1000), cp.composition.Remaining(Fraction(9000), Fraction(0))),
            ItemsArrived(1),
        ]
        place.stream("visits").append({"page": "home", "seconds": 20})
        assert next(followed) == ItemsArrived(2), "while it is followed"
        followed.close()


def test_an_awaited_session_goes_over_a_socket_as_well(tmp_path):
    async def scene(place):
        async with cp.connect_async(place.url, key=place.keys["ann"]) as service:
            session = await service.session("people")
            handles = await asyncio.gather(*(session.launch(cp.Laplace(1000, asks=2)) for _ in range(3)))
            answers = await asyncio.gather(*(handle.ask(cp.count("age > 35")) for handle in handles for _ in range(2)))
            assert answers == [60] * 6 and await session.loss == cp.PureDP(3000)
            news = []
            async for event in session.events(seconds=30):
                news.append(event.loss)
                if len(news) == 2:
                    break
                await session.ask(cp.count(), epsilon=1)
            assert news == [cp.PureDP(3000), cp.PureDP(3001)]

    with over_a_socket(tmp_path) as place:
        place.session("people")
        asyncio.run(scene(place))
