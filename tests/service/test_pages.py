"""The pages: who sees what, forms that only our pages can send, and nothing that a name could smuggle in."""

import html
import re
import shutil
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pytest
from litestar.testing import TestClient
from tests.service.browser import Browser
from tests.service.registry import PEOPLE, served, table

import counterpoint as cp
from counterpoint.ledger.admin import back_up
from counterpoint.ledger.location import Durable
from counterpoint.ledger.state import HistoryEntry
from counterpoint.service.app import application
from counterpoint.service.identity import LASTS, Browsers, BrowserToken
from counterpoint.service.pages.explain import MOST_LINES, REASONS
from counterpoint.service.pages.history import HistoryLine
from counterpoint.service.pages.session import works
from counterpoint.service.registry import Registry
from counterpoint.wire.requests import EXACT_MECHANISMS

COUNT = {"request": {"request": "count", "where": "age > 35"}}

UNTIL = (datetime.now(UTC) + timedelta(days=3)).isoformat()


@pytest.fixture
def call(tmp_path):
    with served(tmp_path) as caller:
        yield caller


class Elements(HTMLParser):
    """The elements of a page, with their attributes."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


def test_without_a_session_every_page_leads_to_the_form_to_sign_in(call):
    for path in ("/", "/sessions/people"):
        response = call.client.get(path, follow_redirects=False)
        assert response.status_code == 303 and response.headers["location"] == "/sign-in"
    bearer = {"Authorization": f"Bearer {call.keys['carol']}"}
    assert call.client.get("/", headers=bearer, follow_redirects=False).status_code == 303


def test_a_key_signs_in_and_the_cookie_is_neither_the_key_nor_one(call):
    browser = Browser(call, "ann")
    cookie = browser.cookies["counterpoint"]
    assert browser.get("/").status_code == 200 and "ann" in browser.get("/").text
    assert call.keys["ann"] not in cookie and call.keys["ann"].split("_", 2)[2] not in cookie
    assert call(None, "GET", "/v1/sessions").status_code == 401
    for presented in (cookie, f"cp_{cookie}"):
        headers = {"Authorization": f"Bearer {presented}"}
        assert call.client.get("/v1/sessions", headers=headers).status_code == 401


def test_the_cookie_is_for_this_site_and_not_for_scripts(call):
    browser = Browser(call, "ann")
    said = browser.sign_in(call.keys["ann"]).headers["set-cookie"].lower()
    assert "httponly" in said and "samesite=strict" in said and "path=/" in said and "secure" not in said
    call.client.base_url = "https://testserver.local"
    assert "secure" in browser.sign_in(call.keys["ann"]).headers["set-cookie"].lower()


def test_a_wrong_key_signs_nobody_in(call):
    browser = Browser(call, "ann")
    for key in ("", "cp_x", call.keys["ann"][:-2] + "AA", "x" * 3000):
        browser.cookies.clear()
        refused = browser.sign_in(key)
        assert refused.status_code == 401 and (not key or key not in refused.text)
        assert browser.get("/").status_code == 303


def test_signing_out_ends_the_session_on_the_server(call):
    browser = Browser(call, "ann")
    kept = dict(browser.cookies)
    assert browser.post("/sign-out").headers["location"] == "/sign-in"
    browser.cookies = kept
    assert browser.get("/").status_code == 303


def test_a_session_ends_with_the_key_that_signed_in_with_its_principal_and_after_half_a_day(call, monkeypatch):
    ann, bob, carol = (Browser(call, who) for who in ("ann", "bob", "carol"))
    call.registry.identity.end_key(BrowserToken.read(ann.cookies["counterpoint"]).key)
    call.registry.identity.end("bob")
    assert [browser.get("/").status_code for browser in (ann, bob, carol)] == [303, 303, 200]
    later = time.time() + LASTS
    monkeypatch.setattr(time, "time", lambda: later)
    assert carol.get("/").status_code == 303


def test_what_is_stored_of_a_session_is_a_digest(call):
    browser = Browser(call, "ann")
    cookie = browser.cookies["counterpoint"]
    secret = cookie.rpartition(".")[2]
    rows = call.registry._store._run("SELECT id, principal, digest, expires FROM counterpoint_api_key")
    assert secret not in repr(rows) and bytes.fromhex(secret) not in [row[2] for row in rows]
    assert Browsers(call.registry.identity).signed_in(cookie).who.name == "ann"


def test_a_form_without_the_token_of_this_browser_is_refused(call):
    ann, other = Browser(call, "ann"), Browser(call, "bob")
    forged = [{}, {"form_token": ""}, {"form_token": "0" * 64}, {"form_token": other.token()}]
    for form in forged:
        assert ann.request("POST", "/sign-out", form).status_code == 403
        assert ann.request("POST", "/sign-in", {**form, "key": call.keys["bob"]}).status_code == 403
    assert "ann" in ann.get("/").text


def test_every_page_is_sent_with_a_policy_that_allows_no_script(call):
    browser = Browser(call, "carol")
    pages = [browser.get(path) for path in ("/", "/sign-in", "/sessions/people", "/sessions/none", "/assets/style.css")]
    for response in pages:
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "script-src" not in policy
        assert "form-action 'self'" in policy and "frame-ancestors 'none'" in policy
        assert response.headers["x-content-type-options"] == "nosniff"
    assert pages[0].headers["cache-control"] == "no-store"


@pytest.mark.parametrize("who", PEOPLE)
def test_no_page_has_script_or_style_of_its_own_or_anything_from_elsewhere(call, who):
    handle = call.launched(call.granted())
    call("ann", "POST", f"/v1/handles/{handle}/asks", COUNT)
    browser = Browser(call, who)
    for path in (
        "/",
        "/sessions/people",
        "/sessions/people.0",
        "/history",
        "/grants?revoke=people.0",
        "/people?do=end&of=ann",
        "/ledger",
    ):
        for tag, attributes in Elements(browser.get(path).text).found:
            assert tag not in ("script", "style", "iframe", "object", "embed")
            assert not any(name == "style" or name.startswith("on") for name in attributes)
            places = [attributes[name] or "" for name in ("href", "src", "action") if name in attributes]
            assert all(place.startswith(("/", "#")) for place in places)


SEEN = [
    # page, custodian, the analyst whose it is, another analyst, auditor, producer
    ("/", 200, 200, 200, 200, 200),
    ("/sessions/people", 200, 404, 404, 200, 404),
    ("/sessions/people.0", 200, 200, 404, 200, 404),
    ("/sessions/people.0.0", 404, 404, 404, 404, 404),
    ("/sessions/people.9", 404, 404, 404, 404, 404),
    ("/sessions/none", 404, 404, 404, 404, 404),
    ("/sessions/people/in-words", 200, 404, 404, 200, 404),
    ("/data-sets/people", 200, 200, 404, 200, 404),
    ("/data-sets/none", 404, 404, 404, 404, 404),
    ("/people", 200, 403, 403, 403, 403),
    ("/people?do=end&of=ann", 200, 403, 403, 403, 403),
]


@pytest.mark.parametrize("page", SEEN, ids=lambda page: page[0])
def test_who_sees_which_page(call, page):
    call.launched(call.granted())
    path, *expected = page
    found = [Browser(call, who).get(path).status_code for who in ("carol", "ann", "bob", "olga", "paul")]
    assert found == expected


def test_what_is_anothers_and_what_there_is_not_look_the_same(call):
    call.granted()
    bob = Browser(call, "bob")
    anothers, none = (re.sub(r"people\.\d", "ID", bob.get(f"/sessions/people.{number}").text) for number in (0, 7))
    assert anothers == none


@pytest.mark.parametrize("path", ["/nowhere", "/sessions", "/people/ann/keys", "/v1/nothing", "/sessions/a/b/c"])
def test_a_browser_gets_a_page_at_an_unknown_address_and_a_program_gets_json(call, path):
    """The same page with a cookie and without: nobody is looked up for an address that does not exist."""
    cookie = {"Cookie": f"counterpoint={Browser(call, 'carol').cookies['counterpoint']}"}
    signed_in, stranger, program = (
        call.client.get(path, headers=headers, follow_redirects=False)
        for headers in ({"Accept": "text/html", **cookie}, {"Accept": "text/html"}, {"Accept": "application/json"})
    )
    assert signed_in.status_code in (404, 405) and "There is nothing for you at this address" in signed_in.text
    assert stranger.text == signed_in.text and "default-src 'none'" in stranger.headers["content-security-policy"]
    assert program.headers["content-type"] == "application/problem+json"


def test_an_auditor_sees_no_halt_and_an_analyst_sees_their_own(call):
    session = call.granted()
    handle = call.launched(session, mechanism="Laplace", epsilon=0.1, asks=1)
    call("ann", "POST", f"/v1/handles/{handle}/asks", COUNT)
    assert "1 ask · halted" in Browser(call, "ann").get(f"/sessions/{session}").text
    for path in (f"/sessions/{session}", "/sessions/people"):
        seen = Browser(call, "olga").get(path).text
        assert "1 ask" in seen and "· halted" not in seen and "halted at event" not in seen


def test_what_was_granted_to_another_inside_a_session_is_a_band(call):
    session = call.granted()
    hers = call.registry.data_set("people").session().at((0,)).acting_as("ann")
    bobs = hers.grant("bob", cp.PureDP(0.5))
    bobs.launch(cp.Laplace(0.1, asks=2)).ask(cp.count(where="age > 59"))
    seen = {who: Browser(call, who).get(f"/sessions/{session}").text for who in ("ann", "carol")}
    assert "age &gt; 59" in seen["carol"] and "age &gt; 59" not in seen["ann"]
    assert "reserved, bob" in seen["ann"] and "Laplace(0.1" not in seen["ann"]
    inner = Browser(call, "bob").get(f"/sessions/{session}.0")
    assert inner.status_code == 200 and "age &gt; 59" in inner.text


def test_what_people_write_is_escaped(call):
    session = call.granted()
    handle = call.launched(session)
    asked = call(
        "ann",
        "POST",
        f"/v1/handles/{handle}/asks",
        {"request": {"request": "count", "where": "state = '<script>alert(1)</script>'"}},
    )
    assert asked.status_code == 201
    for who in ("ann", "carol", "olga"):
        seen = Browser(call, who).get(f"/sessions/{session}").text
        assert "<script" not in seen and "&lt;script&gt;" in seen
    missing = Browser(call, "carol").get("/sessions/%3Cscript%3Ealert(1)%3C%2Fscript%3E")
    assert missing.status_code == 404 and "<script" not in missing.text


def test_the_number_of_rows_of_a_table_is_on_no_page_and_two_worlds_look_alike(tmp_path):
    seen = []
    for ages in ([20] * 7919, [20] * 7918):
        (tmp_path / str(len(ages))).mkdir()
        with served(tmp_path / str(len(ages)), ages) as call:
            session = call.granted()
            call.launched(session)
            browser = Browser(call, "carol")
            pages = [browser.get(path).text for path in ("/", "/sessions/people", f"/sessions/{session}?by=order")]
            seen.append([re.sub(r'value="\w{32,}"|\d\d:\d\d(:\d\d)?', "", text) for text in pages])
    assert seen[0] == seen[1] and "791" not in "".join(seen[0])


def test_the_items_of_a_stream_are_counted_for_everyone_who_may_append_or_ask(call):
    call.granted(data_set="visits")
    for _ in range(3):
        call("paul", "POST", "/v1/data-sets/visits/items", {"items": [1]})
    for who, sees in {"carol": True, "ann": True, "bob": False, "olga": True, "paul": True}.items():
        assert ("3 items" in Browser(call, who).get("/").text) is sees


def test_a_producer_reads_nothing_of_a_declaration(call):
    seen = Browser(call, "paul").get("/").text
    assert "people" in seen and "unit" not in seen and "ε" not in seen


def test_what_needs_a_person_comes_first(call):
    call.granted(epsilon="3.9")
    call.granted(
        data_set="visits", until=f"{time.strftime('%Y-%m-%d', time.gmtime(time.time() + 3 * 86400))}T00:00:00Z"
    )
    carol, ann, bob = (Browser(call, who).get("/").text for who in ("carol", "ann", "bob"))
    assert "has ε 0.1 left" in carol and "has a grant on visits that ends in 2 days" in carol
    assert "has ε 0.1 left" not in ann and "ends in 2 days" in ann
    assert "Needs attention" not in bob


def test_pages_stand_without_data(tmp_path):
    registry = Registry(cp.Durable(str(tmp_path / "ledger.db")))
    with TestClient(application(registry)) as client:
        call = type("Call", (), {"client": client, "keys": {}})
        for name, role in PEOPLE.items():
            registry.identity.add(name, role)
            call.keys[name] = registry.identity.new_key(name).shown()
            response = Browser(call, name).get("/")
            assert response.status_code == 200
            assert ("Nothing was granted to you yet" if name in ("ann", "bob") else "No data set yet") in response.text
    registry.close()


def test_an_empty_session_says_how_to_start(call):
    session = call.granted()
    seen = Browser(call, "ann").get(f"/sessions/{session}").text
    assert "Nothing was launched yet" in seen and f'session("{session}")' in seen
    assert "A launch of up to ε 1 fits" in seen


def test_an_odometer_has_no_bar(tmp_path):
    with served(tmp_path) as call:
        call.registry.register("clicks", lambda: cp.Stream(bound=1), cp.Odometer(cp.zCDP))
        browser = Browser(call, "carol")
        assert "an odometer: it counts" in browser.get("/").text
        seen = browser.get("/sessions/clicks").text
        assert "Lost so far" in seen and 'class="bar"' not in seen


def test_the_works_that_pages_cite_are_those_of_the_references():
    page = (Path(__file__).parents[2] / "docs/references.md").read_text()
    papers = re.findall(r"^### (.+?)\n\n(.+?)\n\n", page, re.S | re.M)
    others = re.findall(r"^- \*\*(.+?)\.\*\* (.+?)(?=\n- |\n\n|\Z)", page, re.S | re.M)
    assert list(works()) == [(name, " ".join(full.replace("*", "").split())) for name, full in papers + others]


def test_a_certificate_is_shown_with_the_works_it_cites(call):
    call.launched(call.granted())
    seen = Browser(call, "olga").get("/sessions/people.0").text
    assert "PureDP(0.1) lost so far" in seen and "Samuel Haney, Michael Shoemate" in seen


def test_the_history_is_chosen_by_filters_that_have_an_address(call):
    session = call.granted()
    handle = call.launched(session)
    for age in (35, 45):
        call("ann", "POST", f"/v1/handles/{handle}/asks", {"request": {"request": "count", "where": f"age > {age}"}})
    call("ann", "POST", f"/v1/sessions/{session}/launches", {"mechanism": {"mechanism": "Laplace", "epsilon": 2}})
    carol = Browser(call, "carol")
    everything = carol.get("/history").text
    assert "2 asks" in everything and "PureDP(1), granted to ann" in everything
    assert "refused: BudgetExceeded" in everything and "ε 0.9 was left; nothing was charged" in everything
    asks = carol.get("/history?kind=ask&q=age+%3E+45&who=ann&data=people").text
    assert "age &gt; 45" in asks and "age &gt; 35" not in asks and "BudgetExceeded" not in asks
    assert "No line is chosen" in carol.get("/history?to=2000-01-01").text
    assert carol.get("/history?start=9999&kind=none&from=%00").status_code == 200
    assert "<script" not in carol.get("/history?q=%3Cscript%3E").text


def test_the_history_is_shown_in_pages(call):
    session = call.registry.data_set("people").session().acting_as("carol")
    noisy = session.launch(cp.Laplace(0.1, asks=120))
    for age in range(120):
        noisy.ask(cp.count(where=f"age > {age}"))
    carol = Browser(call, "carol")
    first, second = carol.get("/history").text, carol.get("/history?start=100").text
    assert "Lines 1 to 100 of" in first and 'href="/history?start=100">Older' in first
    assert "age &gt; 119" in first and "age &gt; 1&#39;" in second and "Newer" in second and "Older" not in second


def test_an_analyst_reads_the_history_of_their_own_sessions(call):
    mine, others = call.granted(), call.granted(to="bob")
    call.launched(others, who="bob", mechanism="Laplace", epsilon=0.3)
    call.launched(mine, mechanism="Laplace", epsilon=0.2)
    seen = {who: Browser(call, who).get("/history").text for who in ("ann", "bob", "olga")}
    assert "Laplace(0.2)" in seen["ann"] and "Laplace(0.3)" not in seen["ann"] and "bob" not in seen["ann"]
    assert "Laplace(0.3)" in seen["bob"] and "Laplace(0.2)" not in seen["bob"]
    assert "Laplace(0.2)" in seen["olga"] and "Laplace(0.3)" in seen["olga"]


def test_the_ledger_page_warns_of_a_witness_beside_the_ledger(call, tmp_path, monkeypatch):
    """It names no path of the machine."""
    olga = Browser(call, "olga")
    shown = olga.get("/ledger").text
    assert "The witness is in the folder of the ledger" in shown and str(tmp_path) not in shown
    monkeypatch.setattr(Durable, "witness_beside", None)
    assert "witness is in" not in olga.get("/ledger").text


def test_the_ledger_is_verified_on_request_and_a_record_that_was_changed_comes_first(call):
    call.launched(call.granted(data_set="visits"))
    call("paul", "POST", "/v1/data-sets/visits/items", {"items": [1, 0]})
    olga = Browser(call, "olga")
    before = olga.get("/ledger").text
    assert call.registry.signer == call.registry.place.signer and call.registry.signer in before
    assert "was checked when it was opened" in before and "2 items in the last hour" in before
    assert olga.post("/ledger").status_code == 303
    assert olga.get("/ledger").text.count(" holds") == len(call.registry.names)
    call.registry._store._run("UPDATE counterpoint_row SET version = version + 1 WHERE name = 'visits'")
    olga.post("/ledger")
    found = olga.get("/ledger").text
    assert "The record of visits does not hold" in found and "compare it with a backup" in found
    assert found.index("visits does not hold") < found.index("people holds")


OVERSEEN = [
    ("/grants", 200, 403, 403, 200, 403),
    ("/ledger", 200, 403, 403, 200, 403),
    ("/history", 200, 200, 200, 200, 403),
]


def test_who_sees_grants_the_ledger_and_the_history(call):
    call.granted()
    browsers = [Browser(call, who) for who in ("carol", "ann", "bob", "olga", "paul")]
    for path, *expected in OVERSEEN:
        assert [browser.get(path).status_code for browser in browsers] == expected, path
    assert "New grant" not in browsers[3].get("/grants").text


def test_a_recovered_data_set_is_shown_with_its_recovery(tmp_path):
    """Nothing is left of its budget, and what was done before the backup is there to be read."""
    place = cp.Durable(str(tmp_path / "ledger.db"))
    with served(tmp_path) as call:
        handle = call.launched(call.granted())
        back_up(place, tmp_path / "copy.db")
        assert call("ann", "POST", f"/v1/handles/{handle}/asks", COUNT).status_code == 201
    shutil.copy(tmp_path / "copy.db", place.place)
    cp.ledger.recover(place, "people", by="olga")
    registry = Registry(place)
    registry.register("people", table, cp.Filter(cp.PureDP(4)))
    with TestClient(application(registry)) as client:
        browser = Browser(SimpleNamespace(client=client, keys=call.keys), "carol")
        lines = browser.get("/history").text
        assert "Recovered" in lines and "a backup of " in lines and "Launch" in lines
        chosen = browser.get("/history?kind=recovery").text
        assert "a backup of " in chosen and "Laplace" not in chosen
        for page in ("/", "/sessions/people", "/sessions/people.0"):
            assert browser.get(page).status_code == 200
    registry.close()


def test_a_retirement_is_called_so():
    assert HistoryLine(1, "people", HistoryEntry("retirement", (), "its keys are destroyed")).words == "Retired"


def reads(registry, name):
    """Counts the entries and rows that are read of a data set from now on, by the statements of its store."""
    store, counted = registry.data_set(name).session()._engine.ledger._store, Counter()
    run = store._run

    def counting(sql, parameters=()):
        found = run(sql, parameters)
        if "counterpoint_entry" in sql:
            counted["entries"] += len(found)
        elif "public_row" in sql:
            counted["rows"] += len(found)
        return found

    store._run = counting
    return counted


@pytest.mark.parametrize("path", ["/", "/grants", "/sessions/people", "/history", "/sessions/people.0"])
def test_a_page_that_is_loaded_again_reads_only_what_is_new(call, path):
    """However many grants and asks there are: the history is followed, and only rows that have changed are read."""
    handle = None
    for number in range(40):
        session = call.granted(to="ann" if number % 2 else "bob", epsilon="0.01")
        handle = handle or call.launched(session, "bob", mechanism="Laplace", epsilon="0.001", asks=1000)
    for _ in range(30):
        call("bob", "POST", f"/v1/handles/{handle}/asks", COUNT)
    carol = Browser(call, "carol")
    first = carol.get(path)
    counted = reads(call.registry, "people")
    again = carol.get(path)
    assert first.status_code == again.status_code == 200
    assert counted["entries"] == 0 and counted["rows"] < 250, counted
    call("bob", "POST", f"/v1/handles/{handle}/asks", COUNT)
    assert carol.get(path).status_code == 200 and counted["entries"] <= 4


def test_a_page_that_follows_a_session_shows_what_a_fresh_look_shows(call):
    """Launches, asks, a halt, a refusal, parts, a reserve, a revocation and a recount come in between the looks."""
    session = call.granted(epsilon=2)
    ann, carol = Browser(call, "ann"), Browser(call, "carol")
    whole = call.registry.data_set("people").session()
    hers = whole.at((0,)).acting_as("ann")

    def steps():
        once = hers.launch(cp.Laplace("0.1", asks=1))
        yield
        once.ask(cp.count())
        yield
        with pytest.raises(cp.BudgetExceeded):
            hers.launch(cp.Laplace(5))
        yield
        hers.ask(cp.histogram("state"), epsilon="0.2")
        hers.partition("state", within=cp.PureDP("0.3"))["CA"].launch(cp.Laplace("0.1", asks=2)).ask(cp.count())
        yield
        bobs = hers.grant("bob", cp.PureDP("0.25"))
        bobs.launch(cp.Laplace("0.05")).ask(cp.count())
        yield
        whole.revoke(whole.at((0,)))
        whole.recount(whole.at((0,)))
        yield

    for _ in steps():
        for who, path in ((ann, session), (carol, session), (carol, "people")):
            for by in ("time", "order"):
                followed = who.get(f"/sessions/{path}?by={by}").text
                whole._engine.kept.clear()
                fresh = who.get(f"/sessions/{path}?by={by}").text
                assert without_ids(followed) == without_ids(fresh)
    assert "recounted" in carol.get("/grants").text


def without_ids(text):
    """A page without the ids of its forms, which differ each time."""
    return re.sub(r'name="once" value="\w+"', "", text)


def test_many_grants_come_in_pages_are_counted_by_state_and_chosen(call):
    for number in range(30):
        call.granted(to="ann" if number % 3 else "bob", epsilon="0.05", until=UNTIL if number < 2 else None)
    whole = call.registry.data_set("people").session()
    for number in (5, 6):
        whole.revoke(whole.at((number,)))
    whole.recount(whole.at((5,)))
    used = whole.at((7,)).acting_as("ann")
    used.launch(cp.Laplace("0.05"))
    carol = Browser(call, "carol")
    page = carol.get("/grants").text
    tallies = re.findall(r"<b>([\d,]+)</b>([^<]+)</a>", page)
    assert [figure for figure, _ in tallies] == ["28", "2", "1", "2"]
    assert tallies[3][1] == "ended, 1 revoked and not recounted"
    assert "1 to 25 of 30" in page and 'id="amount"' not in page, "the form stands behind a link"
    assert 'id="amount"' in carol.get("/grants?new=1").text and 'value="bob" selected' not in page
    later = carol.get("/grants?start=26").text
    assert "26 to 30 of 30" in later and ">people.29<" in later and ">people.0<" not in later
    bobs = carol.get("/grants?who=b").text
    assert "1 to 10 of 10" in bobs and "<strong>ann</strong>" not in bobs
    assert "1 to 2 of 2" in carol.get("/grants?state=soon&order=soonest").text
    assert re.findall(r">(people\.\d+)</a>", carol.get("/grants?state=short").text) == ["people.7"]
    lines = carol.get("/grants.csv?state=ended").text.splitlines()
    assert [line.split(",")[0] for line in lines] == ["session", "people.5", "people.6"]
    assert [Browser(call, who).get("/grants.csv").status_code for who in ("ann", "olga", "paul")] == [403, 200, 403]


def test_the_letter_says_what_was_promised_and_what_was_spent_on_which_question(call):
    session = call.granted(epsilon=1)
    ann = call.registry.data_set("people").session().at((0,)).acting_as("ann")
    ann.ask(cp.count(where="age > 35"), epsilon="0.5")
    ann.launch(cp.SparseVector("0.25", threshold=10))
    with pytest.raises(cp.BudgetExceeded):
        ann.launch(cp.Laplace(9))
    text = html.unescape(Browser(call, "ann").get(f"/sessions/{session}/in-words").text)
    assert (
        "any one person" in text
        and "at most <strong>2.12</strong>" in text
        and "never pass <strong>2.72</strong>" in text
    )
    asked = re.findall(
        r'class="asked"><code>([^<]+)</code></td><td data-label="Lane" class="nowrap quiet">([^<]+)<', text
    )
    assert [lane for _, lane in asked] == ["people.0 1", "people.0 2"] and asked[0][0] == "count(where='age > 35')"
    assert "ε 0.5</td>" in text and "1 more was refused" in text and "Haney et al. 2023" in text
    whole = html.unescape(Browser(call, "carol").get("/sessions/people/in-words").text)
    assert "PureDP(1) for ann" in whole and "count(where='age > 35')" in whole and "Download" in whole


def test_questions_are_shown_as_they_were_typed(call):
    session = call.granted()
    text = "SELECT COUNT(*) FROM people WHERE age > 35"
    asked = call("ann", "POST", f"/v1/sessions/{session}/sql", {"text": text, "epsilon": 0.1})
    ann = Browser(call, "ann")
    typed = {"do": "ask", "once": "a" * 32, "question": 'count( where = "age > 36" )', "amount": "0.1"}
    assert (asked.status_code, ann.post(f"/sessions/{session}", typed).status_code) == (201, 303)
    for who, path in (("carol", "/sessions/people/in-words"), ("ann", f"/sessions/{session}/in-words")):
        letter = html.unescape(Browser(call, who).get(path).text)
        assert f"<code>{text}</code>" in letter and '<code>count( where = "age > 36" )</code>' in letter
    assert text in html.unescape(ann.get("/history").text)


def test_the_letter_shows_a_reader_what_the_session_shows_them(call):
    call.granted(epsilon=1)
    hers = call.registry.data_set("people").session().at((0,)).acting_as("ann")
    hers.grant("bob", cp.PureDP("0.5")).launch(cp.Laplace("0.1", asks=2)).ask(cp.count(where="age > 59"))
    assert "Laplace(epsilon=0.1" not in Browser(call, "ann").get("/sessions/people.0/in-words").text
    assert "Laplace(epsilon=0.1" in Browser(call, "carol").get("/sessions/people.0/in-words").text
    found = [Browser(call, who).get("/sessions/people.0/in-words").status_code for who in ("bob", "olga", "paul")]
    assert found == [404, 200, 404]


def test_the_letter_has_a_sentence_for_every_mechanism_that_a_service_launches():
    assert set(REASONS) == {*EXACT_MECHANISMS, "Concurrent"}


def test_a_letter_about_many_questions_lists_the_newest_and_says_how_many_came_before(call):
    whole = call.registry.data_set("people").session().acting_as("carol")
    for number in range(MOST_LINES + 3):
        whole.ask(cp.count(where=f"age > {number}"), epsilon="0.01")
    text = html.unescape(Browser(call, "carol").get("/sessions/people/in-words").text)
    assert "3 before these" in text and "'age > 2'" not in text and "'age > 3'" in text


def test_a_letter_about_nothing_says_so_and_an_odometer_has_no_limit(call):
    call.registry.register("more", lambda: cp.Stream(bound=1), cp.Odometer(cp.zCDP))
    carol = Browser(call, "carol")
    assert "Nothing was asked yet" in carol.get("/sessions/people/in-words").text
    assert "No limit was set in advance" in carol.get("/sessions/more/in-words").text


def test_of_a_grant_that_was_revoked_nothing_is_left(call):
    session = call.granted(epsilon=1)
    ann = Browser(call, "ann")
    call.registry.data_set("people").session().at((0,)).acting_as("ann").ask(cp.count(), epsilon="0.25")
    assert "Left to launch" in ann.get(f"/sessions/{session}").text
    call("carol", "DELETE", f"/v1/data-sets/people/grants/{session}")
    text = ann.get(f"/sessions/{session}").text
    assert "Nothing left to spend" in text and "<b>0</b><span>of ε 1: this grant was revoked" in text
    assert "ε 0.25 was spent; 0.75 was not" in text and "fits" not in text
    assert "0.75 was not spent" in text and "is left" not in text and ">left<" not in text
    assert "revoked · your session" in ann.get("/").text and "<b>ε 0</b> left" in ann.get("/").text


def test_a_launch_has_one_number_in_the_drawing_the_answers_and_the_certificate(call):
    whole = call.registry.data_set("people").session().acting_as("carol")
    whole.launch(cp.Laplace("0.125"))
    whole.ask(cp.histogram("state"), epsilon="0.25")
    text = html.unescape(Browser(call, "carol").get("/sessions/people").text)
    assert "lane 2: PureDP(0.25)" in text and "(1,): " not in text
    assert re.search(r'class="num">2</span>', text) and "<code>histogram('state')</code>" in text
    assert "<code>histogram('state') by " in html.unescape(Browser(call, "carol").get("/history").text)
