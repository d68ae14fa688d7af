"""The page of a data set: who sees what of its versions and of the custodian's report, and a refresh that is looked at
before it happens.
"""

import re
import warnings

import pyarrow
import pytest
from tests.service.browser import Browser
from tests.service.registry import served

import counterpoint as cp
from counterpoint.service.data_set import Binding

BUDGET = cp.Filter(cp.PureDP(4))
PAGE = "/data-sets/trips"


class Config:
    """What a custodian's configuration names: rows, and how they are declared."""

    def __init__(self, ages):
        self.ages, self.high, self.unit, self.keys, self.rule = ages, 100, "person", ["CA", "NY"], BUDGET

    def binding(self):
        rows = pyarrow.table(
            {
                "person": [str(n) for n in range(len(self.ages))],
                "other": [str(n) for n in range(len(self.ages))],
                "age": self.ages,
                "state": ["CA"] * len(self.ages),
            }
        )
        columns = {"age": cp.number(0, self.high), "state": cp.category(self.keys)}
        unit = self.unit

        def bind():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", cp.errors.CustodianWarning)
                return cp.Table(rows, unit=unit, rows_per_unit=1, columns=columns, key=bytes(32))

        return Binding(bind, self.rule, "trips.csv")


@pytest.fixture
def config():
    return Config([40] * 40 + [777] * 7)


@pytest.fixture
def call(tmp_path, config):
    with served(tmp_path) as call:
        call.registry.add("trips", config.binding(), config.binding)
        call.granted(data_set="trips")
        yield call


@pytest.fixture
def carol(call):
    return Browser(call, "carol")


def versions(call):
    return call("carol", "GET", "/v1/data-sets/trips/versions").json()


def looked(carol):
    """The page before a refresh, and its form."""
    text = carol.post(f"{PAGE}/preview").text
    return text, dict(re.findall(r'name="(once|number|fingerprint)" value="(\w+)"', text))


def plain(text):
    """A page without what a clock and a key decide: times, ids of forms, fingerprints, and the strip over time."""
    text = re.sub(r'<div class="strip-box">.*?</div>|<svg class="spark".*?</svg>', "", text, flags=re.DOTALL)
    return re.sub(r'value="\w{32,}"|\d\d:\d\d(:\d\d)?|Fingerprint <code>\w+', "", text)


def test_a_custodian_reads_the_report_under_a_band_that_says_what_it_is(call, carol):
    page = carol.get(PAGE)
    assert page.headers["cache-control"] == "no-store"
    assert "For custodians only" in page.text and "more than 1 % of the values of &#39;age&#39;" in page.text
    assert "columns.age = { type = &#34;number&#34;, low = 0, high = 200 }" in page.text
    assert re.search(r'data-label="Clamped high">7<', page.text)
    assert "does not fit its declaration" in carol.get("/").text


@pytest.mark.parametrize("who", ["ann", "olga"])
def test_nothing_of_the_report_reaches_others_and_two_worlds_look_alike(tmp_path, who):
    seen = []
    for number, ages in enumerate(([40] * 47, [40] * 40 + [777] * 7)):
        (tmp_path / str(number)).mkdir()
        with served(tmp_path / str(number)) as call:
            config = Config(ages)
            call.registry.add("trips", config.binding(), config.binding)
            call.granted(data_set="trips")
            Browser(call, "carol").get(PAGE)
            looked(Browser(call, "carol"))
            browser = Browser(call, who)
            pages = [browser.get(path) for path in (PAGE, "/", "/sessions/trips.0", "/history")]
            assert [page.status_code for page in pages] == [200] * 4
            seen.append([plain(page.text) for page in pages])
    assert seen[0] == seen[1]
    assert "For custodians only" not in "".join(seen[0])


def test_an_analyst_sees_numbers_times_and_declared_columns_alone(call, carol):
    carol.post(f"{PAGE}/refresh", {**looked(carol)[1], "note": "the secret file"})
    ann, olga = (Browser(call, who).get(PAGE).text for who in ("ann", "olga"))
    assert "Version 2" in ann and "a number from 0 to 100" in ann and "other" not in ann.split("<main")[1]
    for secret in ("secret file", "trips.csv", "carol", "Fingerprint"):
        assert secret not in ann and secret in olga
    assert Browser(call, "bob").get(PAGE).status_code == 404


@pytest.mark.parametrize("path", ["preview", "refresh", "reopen", "recover"])
def test_only_a_custodian_looks_refreshes_reopens_and_recovers(call, path):
    for who in ("ann", "olga", "paul"):
        assert Browser(call, who).post(f"{PAGE}/{path}", {"number": "2", "confirm": "trips"}).status_code == 403
    assert len(versions(call)) == 1


def test_a_refresh_is_looked_at_before_it_happens_and_happens_once(call, config, carol):
    config.high, config.keys, config.ages = 1000, ["CA", "WY"], [40] * 90
    text, form = looked(carol)
    assert "Put version 2 in the place of version 1?" in text and "2 changes" in text
    assert "a number from 0 to 1000" in text and "&#39;WY&#39;" in text
    assert len(versions(call)) == 1, "a look changes nothing"
    for _ in range(2):
        done = carol.post(f"{PAGE}/refresh", {**form, "note": "April"})
        assert (done.status_code, done.headers["location"]) == (303, PAGE)
    assert [(one["version"], one["note"], one["who"]) for one in versions(call)][1:] == [
        (2, "trips.csv: April", "carol")
    ]
    page = carol.get(PAGE).text
    assert "serving version 2" in page and "Refreshed by carol" in page and "does not fit" not in carol.get("/").text


@pytest.mark.parametrize("change", ["rows", "declaration", "another refresh"])
def test_what_changed_after_the_look_is_not_served_unseen(call, config, carol, change):
    config.ages = [40] * 90
    _, form = looked(carol)
    if change == "rows":
        config.ages = [41] * 90
    elif change == "declaration":
        config.high = 1000
    else:
        assert call("carol", "POST", "/v1/data-sets/trips/versions", {}).status_code == 201
    before = len(versions(call))
    refused = carol.post(f"{PAGE}/refresh", form)
    assert refused.status_code == 422 and "look again" in refused.text
    assert len(versions(call)) == before


def test_what_can_be_no_next_version_is_refused_before_anything_happens(call, config, carol):
    config.unit, config.high = "other", 1000
    text, form = looked(carol)
    assert "the unit would be &#39;other&#39;, and it is &#39;person&#39;" in text and "Serve version" not in text
    config.unit, config.rule = "person", cp.Filter(cp.PureDP(40))
    text, form = looked(carol)
    assert "leaves the budget as it is" in text and not form.get("fingerprint")
    assert len(versions(call)) == 1


def test_rows_that_were_changed_in_place_lead_to_a_refresh_and_hide_no_other_data_set(call, config, carol):
    data_set = call.registry.data_set("trips")
    data_set.session()._engine.ledger.close()
    config.ages = [40] * 50
    data_set._binding = config.binding()
    first = carol.get("/").text
    assert "were changed in place" in first and 'href="/sessions/people"' in first
    assert Browser(call, "ann").get(PAGE).status_code == 404
    page = carol.get(PAGE).text
    assert "Make them the next version" in page
    assert carol.post(f"{PAGE}/refresh", {"once": "a" * 32, "note": "April"}).status_code == 303
    assert "serving version 2" in carol.get(PAGE).text


def test_closed_data_are_reopened_where_the_page_says_so(call, carol):
    call.registry.data_set("trips").session()._engine.close_data()
    page = carol.get(PAGE).text
    assert "Closed for every analyst" in page and "Closed for every analyst" in Browser(call, "olga").get(PAGE).text
    assert carol.post(f"{PAGE}/reopen").status_code == 303
    assert "Closed for every analyst" not in carol.get(PAGE).text


def test_a_stream_has_no_report_and_may_be_declared_anew(carol):
    page = carol.get("/data-sets/visits").text
    assert "serving version 1" in page and "another declaration" in page and "For custodians only" not in page
    assert "Put version 2 in the place of version 1?" in carol.post("/data-sets/visits/preview").text
