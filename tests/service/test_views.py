"""Views of a large session, pages that stay current, and what can be taken away from them: receipts and records."""

import html
import json
import re
import time
from urllib.parse import urlencode

import pytest
from tests.service.browser import Browser
from tests.service.registry import served
from tests.service.test_pages import COUNT, Elements

import counterpoint as cp
from counterpoint import checker
from counterpoint.ledger.chain import read_entry
from counterpoint.service.pages.render import EVERY
from counterpoint.service.pages.widgets import SMALLEST, EventWindow


@pytest.fixture
def call(tmp_path):
    with served(tmp_path) as caller:
        yield caller


def asked(call, asks, data_set="visits"):
    """A session of the analyst ann with so many asks."""
    session = call.registry.data_set(data_set).session().acting_as("carol").grant("ann", cp.PureDP(3)).acting_as("ann")
    noisy = session.launch(cp.Laplace(1, asks=asks))
    for _ in range(asks):
        noisy.ask(cp.total())
    return session


def links(text):
    """Where the links of a page lead, by their words or their class."""
    found = re.findall(r'<a class="button small-button" href="([^"]+)">([^<]+)</a>', text)
    return {words: html.unescape(href).partition("#")[0] for href, words in found}


def test_a_large_session_is_seen_whole_or_a_window_at_a_time(call):
    session = call.registry.data_set("visits").session().acting_as("carol").grant("ann", cp.PureDP(4)).acting_as("ann")
    for _ in range(40):
        session.launch(cp.Laplace("0.1")).ask(cp.total())
    ann = Browser(call, "ann")
    whole = ann.get("/sessions/visits.0?by=order").text
    assert "All 80 events" in whole and "40 ended" in whole
    assert "Earlier" not in links(whole) and "Wider" not in links(whole)
    newest = ann.get(links(whole)["Closer"]).text
    assert "Events 56 to 80 of 80" in newest and "Later" not in links(newest) and 'id="trace"' in newest
    assert "event 80: " in newest and "event 40: " not in newest and "ended" not in newest
    before = ann.get(links(newest)["Earlier"]).text
    assert "Events 31 to 55 of 80" in before and "event 40: " in before and "lost by then" in before
    assert "event 80: " not in before and "35 Laplace" not in before, "a lane that begins later is not here"
    assert "Events 56 to 80" in ann.get(links(before)["Later"]).text
    assert "Closer" not in links(before) and "All 80 events" in ann.get(links(before)["Wider"]).text
    assert "Events 31 to 55" in ann.get("/sessions/visits.0?by=time&first=31&events=25").text
    bars = [one for tag, one in Elements(whole).found if tag == "a" and "first=" in (one.get("href") or "")]
    assert len(bars) > 50 and all(ann.get(bar["href"]).status_code == 200 for bar in (bars[0], bars[30], bars[-1]))


def test_a_small_session_has_no_window_and_an_address_that_says_nonsense_shows_what_there_is(call):
    asked(call, 30)
    ann = Browser(call, "ann")
    assert "All 31 events" not in ann.get("/sessions/visits.0").text
    for query in ("first=2&events=26", "first=99999999&events=1", "first=0&events=27", "first=-1&events=x"):
        assert ann.get(f"/sessions/visits.0?{query}").status_code == 200
    assert "Events 7 to 31 of 31" in ann.get("/sessions/visits.0?first=99999999&events=1").text
    assert "events" not in EventWindow.read("/s", {"events": "500"}, 31).address


@pytest.mark.parametrize("events", [26, 199, 200, 801, 10_000])
def test_windows_stay_within_the_events_and_lead_over_all_of_them(events):
    window = EventWindow("/s", "order", events)
    seen = set()
    address = window.closer
    while address is not None:
        query = dict(part.split("=") for part in address.partition("?")[2].partition("#")[0].split("&"))
        window = EventWindow.read("/s", query, events)
        assert 1 <= window.first <= window.last <= events and window.size >= min(SMALLEST, events - 1)
        seen |= {*range(window.first, window.last + 1)}
        address = window.earlier
    assert seen == {*range(1, events + 1)}


def test_a_page_is_kept_current_while_its_reader_wants_it(call):
    call.granted()
    for who, path in (("ann", "/sessions/people.0"), ("carol", "/"), ("olga", "/ledger")):
        browser = Browser(call, who)
        still = browser.get(path)
        assert "refresh" not in still.headers
        live = browser.get(links(still.text)["Keep current"])
        assert live.headers["refresh"] == str(EVERY) and links(live.text)["Stop"] == path
    assert 'name="mechanism"' in Browser(call, "ann").get("/sessions/people.0?by=order").text
    ann = Browser(call, "ann").get("/sessions/people.0?by=order&live=1")
    assert 'name="mechanism"' not in ann.text, "what is typed would be lost"
    assert links(ann.text)["Stop"] == "/sessions/people.0?by=order"


def receipt_links(text):
    return [html.unescape(href) for href in re.findall(r'href="(/sessions/[^"]+/receipt[^"]+)"', text)]


def test_the_receipt_of_an_own_answer_and_the_record_are_downloads_that_the_checker_takes(call):
    handle = call.launched(call.granted())
    for _ in range(2):
        call("ann", "POST", f"/v1/handles/{handle}/asks", COUNT)
    ann, olga = Browser(call, "ann"), Browser(call, "olga")
    hrefs = receipt_links(ann.get("/sessions/people.0").text)
    taken = [ann.get(href) for href in hrefs]
    assert len(taken) == 2 and all("attachment" in one.headers["content-disposition"] for one in taken)
    record = olga.get("/data-sets/people/record")
    assert "attachment" in record.headers["content-disposition"]
    said = checker.check(iter(record.text.splitlines()), [json.loads(one.text) for one in taken], call.registry.signer)
    assert said.endswith("2 receipts hold")
    assert "/data-sets/people/record" in olga.get("/ledger").text and "/record" in olga.get("/history").text
    assert "/record" not in ann.get("/history").text


def test_no_one_else_gets_a_receipt_and_what_is_anothers_looks_as_what_there_is_not(call):
    mine, others = call.granted(), call.granted(to="bob")
    for session, who in ((mine, "ann"), (others, "bob")):
        call(who, "POST", f"/v1/handles/{call.launched(session, who)}/asks", COUNT)
    (href,) = receipt_links(Browser(call, "ann").get(f"/sessions/{mine}").text)
    codes = [Browser(call, who).get(href).status_code for who in ("ann", "bob", "carol", "olga", "paul")]
    assert codes == [200, 404, 404, 403, 403]
    asked_for = href.partition("?")[2]
    bob = Browser(call, "bob")
    stolen, none = (bob.get(f"/sessions/{others}/receipt?{query}").text for query in (asked_for, "ask=none"))
    strip = re.compile(r"&#39;.*?&#39; was not found")
    assert strip.sub("", stolen) == strip.sub("", none) and "signature" not in stolen
    entries = map(read_entry, call.registry.entries("people"))
    launch = next(entry.request for entry in entries if entry.kind == "launch" and entry.who == "ann")
    assert Browser(call, "ann").get(f"/sessions/{mine}/receipt?{urlencode({'ask': launch})}").status_code == 404


def test_who_downloads_the_record(call):
    codes = [Browser(call, who).get("/data-sets/people/record").status_code for who in ("carol", "olga", "ann", "paul")]
    assert codes == [200, 200, 403, 403]
    assert Browser(call, "olga").get("/data-sets/none/record").status_code == 404


def test_a_verification_over_http_is_noted_on_the_ledger_page(call):
    olga = Browser(call, "olga")
    assert "The record of people holds" not in olga.get("/ledger").text
    assert call("olga", "POST", "/v1/data-sets/people/verification").json() == {"data_set": "people", "holds": True}
    assert "The record of people holds" in olga.get("/ledger").text
    call.granted()
    call.registry._store._run("UPDATE counterpoint_row SET version = version + 1 WHERE name = 'people'")
    refused = call("olga", "POST", "/v1/data-sets/people/verification")
    assert refused.status_code >= 400 and refused.json()["title"] == "LedgerTampered"
    assert "The record of people does not hold" in olga.get("/ledger").text


def test_the_strip_of_the_history_shows_when_lines_were_written_and_leads_to_them(call, monkeypatch):
    clock = [time.time() + 10]
    monkeypatch.setattr("counterpoint.ledger.store.store.time.time", lambda: clock[0])
    session = call.registry.data_set("visits").session().acting_as("carol")
    noisy = session.launch(cp.Laplace(1, asks=200))
    for _ in range(120):
        noisy.ask(cp.total())
    clock[0] += 3600
    with pytest.raises(cp.BudgetExceeded):
        session.launch(cp.Laplace(9))
    text = Browser(call, "carol").get("/history?data=visits").text
    elements = Elements(text).found
    bars = [one for tag, one in elements if tag == "a" and one.get("aria-label")]
    assert [bar["aria-label"] for bar in bars] == ["122 lines", "1 line, 1 refused"]
    assert bars[-1]["href"] == "/history?data=visits&start=0" and bars[0]["href"] == "/history?data=visits&start=1"
    assert [one["class"] for tag, one in elements if tag == "rect" and "chosen" in one.get("class", "")]


def test_the_history_calls_parts_by_their_keys_and_what_is_set_aside_reserved(call):
    session = call.registry.data_set("people").session().acting_as("carol").grant("ann", cp.PureDP(1)).acting_as("ann")
    session.partition("state", within=cp.PureDP(0.5))["CA"].launch(cp.Laplace(0.1)).ask(cp.count())
    text = Browser(call, "ann").get("/history").text
    assert "people.0.0.CA.0" in text and "%3A" not in text and "Reserved" in text
    assert "Reserved" not in Browser(call, "carol").get("/history?kind=delegation&who=carol").text
