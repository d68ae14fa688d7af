"""The forms: grant, quote, launch, ask, revoke, recount; one charge for one form, and a refusal says what fits."""

import pytest
from tests.service.browser import Browser
from tests.service.registry import served

import counterpoint as cp
from counterpoint.errors import InvalidRequest
from counterpoint.service.pages import forms as typed


@pytest.fixture
def call(tmp_path):
    with served(tmp_path) as caller:
        yield caller


GRANT = {"to": "ann", "data_set": "people", "measure": "PureDP", "amount": "1", "once": "first"}


def act(browser, session, do, **form):
    page = f"/sessions/{session}"
    return browser.post(page, {"do": do, "once": f"{do} {form}", **form}, page=page)


def test_a_custodian_grants_and_the_analyst_launches_and_asks(call):
    granted = Browser(call, "carol").post("/grants", GRANT)
    assert granted.status_code == 303 and granted.headers["location"] == "/grants"
    ann = Browser(call, "ann")
    launched = act(ann, "people.0", "launch", mechanism="Laplace(epsilon=0.5, asks=2)")
    assert (launched.status_code, launched.headers["location"]) == (303, "/sessions/people.0#answers")
    asked = act(ann, "people.0", "ask a handle", handle="0", question='count(where="age > 35")')
    assert asked.status_code == 303
    once = act(ann, "people.0", "ask", question="mean('age')", terms="loss", amount="0.25")
    assert once.status_code == 303
    seen = ann.get("/sessions/people.0").text
    assert "count(where=&#39;age &gt; 35&#39;)" in seen and "mean(&#39;age&#39;)" in seen and "± " in seen
    session = call.registry.data_set("people").session().at((0,))
    assert session.loss == cp.PureDP(0.75)
    assert [fact.who for fact in session.history] == ["ann"] * 3


def test_a_form_that_is_sent_twice_counts_once(call):
    carol, ann = Browser(call, "carol"), Browser(call, "ann")
    carol.post("/grants", GRANT)
    carol.post("/grants", GRANT)
    assert len(list(call.registry.granted("people"))) == 1
    for _ in range(2):
        act(ann, "people.0", "launch", mechanism="Laplace(0.1)")
        act(ann, "people.0", "ask", question="count()", terms="loss", amount="0.1")
    assert call.registry.data_set("people").session().at((0,)).loss == cp.PureDP(0.2)


def test_every_page_gives_its_forms_an_id_of_their_own(call):
    call.granted()
    ann = Browser(call, "ann")
    pages = [ann.get("/sessions/people.0").text for _ in range(2)]
    ids = [part.split('"')[0] for text in pages for part in text.split('name="once" value="')[1:]]
    assert len(ids) == len(set(ids)) == 4


def test_a_quote_changes_nothing_by_loss_or_by_error(call):
    call.granted()
    ann = Browser(call, "ann")
    by_loss = act(ann, "people.0", "quote a question", question="count()", terms="loss", amount="0.5")
    by_error = act(ann, "people.0", "quote a question", question="count()", terms="error", amount="50")
    launch = act(ann, "people.0", "quote a launch", mechanism="Laplace(epsilon=2)")
    assert [one.status_code for one in (by_loss, by_error, launch)] == [200] * 3
    assert "PureDP(0.5)" in by_loss.text and "Fits" in by_loss.text
    assert "PureDP(0.05932)" in by_error.text
    assert "± 6 with 95 %" in by_loss.text and "± 3 with 95 %" in by_loss.text, "twice the price, half the error"
    assert "Would be refused" in launch.text and "PureDP(1) more would fit" in launch.text
    assert call.registry.data_set("people").session().at((0,)).loss == cp.PureDP(0)


def test_a_refusal_is_free_and_says_what_would_fit(call):
    call.granted()
    ann = Browser(call, "ann")
    refused = act(ann, "people.0", "launch", mechanism="Laplace(epsilon=2)")
    assert refused.status_code == 409 and "Nothing was charged" in refused.text
    assert "At most <b>PureDP(1)</b> would fit" in refused.text
    assert 'value="Laplace(epsilon=2)"' in refused.text
    too_much = Browser(call, "carol").post("/grants", {**GRANT, "amount": "9"})
    assert too_much.status_code == 409 and "At most <b>PureDP(3)</b> would fit" in too_much.text


MALFORMED = ["", "count", "count(", "Concurrent()", "count(where=1, wheer=2)", "x" * 5000, "(" * 900, "count(**{})"]


def test_what_is_no_question_is_refused_and_nothing_is_charged(call):
    call.granted()
    ann = Browser(call, "ann")
    for text in [*MALFORMED, "__import__('os')", "count(where=f'{1}')", "\0", "cp.cp.count()"]:
        asked = act(ann, "people.0", "ask", question=text, terms="loss", amount="0.1")
        launched = act(ann, "people.0", "launch", mechanism=text)
        assert {asked.status_code, launched.status_code} == {422}, text
    assert call.registry.data_set("people").session().at((0,)).loss == cp.PureDP(0)


def test_numbers_of_forms_are_read_exactly_or_refused(call):
    call.granted()
    ann = Browser(call, "ann")
    for amount in ("", "-1", "nan", "0x1", "1e", "ten"):
        asked = act(ann, "people.0", "ask", question="count()", terms="loss", amount=amount)
        assert asked.status_code == 422, amount
    act(ann, "people.0", "ask", question="count()", terms="loss", amount="1/3")
    assert call.registry.data_set("people").session().at((0,)).loss == cp.PureDP("1/3")


def test_what_is_typed_is_what_python_would_make():
    assert typed.question("cp.sum('age', where=\"state = 'CA'\")") == cp.sum("age", where="state = 'CA'")
    assert typed.question("histogram('state')") == cp.histogram("state")
    assert typed.mechanism("Gaussian(rho=0.5, asks=2)") == cp.Gaussian(rho=0.5, asks=2)
    with pytest.raises(InvalidRequest, match="has no field 'ask'"):
        typed.mechanism("Laplace(epsilon=1, ask=3)")


def test_revoking_says_what_stops_and_what_stays_and_then_stops_it(call):
    call.granted()
    carol, ann = Browser(call, "carol"), Browser(call, "ann")
    act(ann, "people.0", "launch", mechanism="Laplace(epsilon=0.25, asks=2)")
    asked = carol.get("/grants?revoke=people.0").text
    assert "stop at once" in asked and "All of ε 1 stays charged" in asked
    assert carol.post("/grants/people.0/revoke").status_code == 303
    seen = ann.get("/sessions/people.0").text
    assert "This grant was revoked" in seen and '<h2 id="launch-h">' not in seen
    late = act(ann, "people.0", "launch", mechanism="Laplace(0.1)")
    assert late.status_code == 403 and "NotGranted" in late.text
    whole = call.registry.data_set("people").session()
    assert whole.loss == cp.PureDP(1)
    assert carol.post("/grants/people.0/recount").status_code == 303
    assert whole.loss == cp.PureDP("0.25") and "recounted" in carol.get("/grants").text


def test_where_no_theorem_returns_anything_the_page_says_why(call):
    call.registry.register("more", lambda: cp.Stream(bound=1), cp.Filter(cp.ApproxDP(2, 1e-6)))
    carol = Browser(call, "carol")
    carol.post("/grants", {**GRANT, "data_set": "more", "measure": "zCDP", "amount": "0.01"})
    carol.post("/grants/more.0/revoke")
    refused = carol.post("/grants/more.0/recount")
    assert refused.status_code == 422 and "Refused: NotCovered" in refused.text


DOING = [
    # path, form, custodian, the analyst whose session it is, another, auditor, producer
    ("/grants", GRANT, 303, 403, 403, 403, 403),
    ("/grants/people.0/revoke", {}, 303, 403, 403, 403, 403),
    ("/grants/people.9/revoke", {}, 404, 403, 403, 403, 403),
    ("/grants/people.1/recount", {}, 303, 403, 403, 403, 403),
    ("/people", {"name": "dora", "role": "analyst", "days": "90"}, 200, 403, 403, 403, 403),
    ("/people", {"name": "dora", "role": "king", "days": "90"}, 422, 403, 403, 403, 403),
    ("/people/ann/keys", {"days": "90"}, 200, 403, 403, 403, 403),
    ("/people/bob/end", {}, 303, 403, 403, 403, 403),
    ("/people/keys/none/end", {}, 404, 403, 403, 403, 403),
    ("/sessions/people.0", {"do": "launch", "mechanism": "Laplace(0.1)"}, 403, 303, 404, 403, 403),
    ("/sessions/people", {"do": "launch", "mechanism": "Laplace(0.1)"}, 303, 404, 404, 403, 403),
    ("/sessions/people.0", {"do": "quote a launch", "mechanism": "Laplace(0.1)"}, 200, 200, 404, 403, 403),
    ("/sessions/people.0", {"do": "else"}, 422, 422, 404, 403, 403),
]


@pytest.mark.parametrize("row", DOING, ids=lambda row: f"{row[0]} {row[1].get('do', '')}")
def test_who_may_do_what(call, row):
    call.granted()
    call.granted(to="bob")
    whole = call.registry.data_set("people").session()
    whole.revoke(whole.at((1,)))
    path, form, *expected = row
    callers = reversed(("carol", "ann", "bob", "olga", "paul"))  # who may do it comes last
    assert [Browser(call, who).post(path, form).status_code for who in callers] == expected[::-1]


def test_answers_are_shown_to_who_asked_and_to_no_one_else(call):
    call.granted()
    ann = Browser(call, "ann")
    act(ann, "people.0", "ask", question="count()", terms="loss", amount="0.5")
    assert "± " in ann.get("/sessions/people.0").text
    for who in ("carol", "olga"):
        seen = Browser(call, who).get("/sessions/people.0")
        assert seen.status_code == 200 and "± " not in seen.text and 'class="value"' not in seen.text


def test_answers_stay_readable_after_the_grant_was_revoked(call):
    call.granted()
    ann = Browser(call, "ann")
    act(ann, "people.0", "ask", question="count()", terms="loss", amount="0.5")
    Browser(call, "carol").post("/grants/people.0/revoke")
    assert 'class="value"' in ann.get("/sessions/people.0").text


def test_every_kind_of_answer_is_written(call):
    call.granted(epsilon=4)
    call.granted(data_set="visits", epsilon=4)
    people, visits = (call.registry.data_set(name).session().at((0,)).acting_as("ann") for name in ("people", "visits"))
    people.ask(cp.histogram("state"), epsilon=0.1)
    people.ask(cp.mean("age"), epsilon=0.1)
    people.ask(cp.median("age"), epsilon=0.1)
    people.ask(cp.top("state", 1), epsilon=0.1)
    people.ask(cp.select(n=cp.count(), years=cp.sum("age")), epsilon=0.1)
    people.launch(cp.SparseVector(1, threshold=5)).ask(cp.count())
    people.partition("state", within=cp.PureDP(0.5))["CA"].ask(cp.count(), epsilon=0.5)
    visits.launch(cp.Counter(epsilon=1)).ask()
    ann = Browser(call, "ann")
    text = ann.get("/sessions/people.0").text
    assert ann.get("/sessions/visits.0").text.count('class="value"') == 1
    assert text.count('class="question"') >= 8 and ("above" in text or "below" in text) and "NY" in text
