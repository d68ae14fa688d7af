"""Many launches, grants and principals: a session has a limit on the ones, and lists of all come in pages."""

import pytest
from tests.service.browser import Browser
from tests.service.registry import served

import counterpoint as cp
from counterpoint.client import calls
from counterpoint.service.limits import Limits
from counterpoint.service.pages import grants, widgets
from counterpoint.service.pages import session as session_pages
from counterpoint.session.timeline import timeline_of
from counterpoint.wire.documents import read_certificate, read_timeline
from counterpoint.wire.problems import SessionId
from counterpoint.wire.requests import PAGE

TINY = {"mechanism": {"mechanism": "Laplace", "epsilon": "1e-9", "asks": 9}}
COUNT = {"request": {"request": "count"}}
QUESTION = {**COUNT, "epsilon": "1e-9"}
BUDGET = {"within": {"measure": "PureDP", "epsilon": "1e-9"}}


def test_a_session_has_a_number_of_launches_and_its_mechanisms_go_on(tmp_path):
    with served(tmp_path, limits=Limits(launches=4)) as call:
        session, other = call.granted(), call.granted("bob")
        url = f"/v1/sessions/{session}"
        handle = call("ann", "POST", f"{url}/launches", TINY, id="first").json()["handle"]
        assert call("ann", "POST", f"{url}/questions", QUESTION, id="second").status_code == 201
        assert call("ann", "POST", f"{url}/delegations", BUDGET).status_code == 201
        assert (
            call("ann", "POST", f"{url}/sql", {"text": "SELECT COUNT(*) FROM people", "epsilon": "1e-9"}).status_code
            == 201
        )
        before = call("ann", "GET", url).json()["loss"]
        parts = {**BUDGET, "by": "state"}
        for path, body in (("launches", TINY), ("questions", QUESTION), ("delegations", BUDGET), ("partitions", parts)):
            refused = call("ann", "POST", f"{url}/{path}", body)
            assert refused.status_code == 409 and "4 is the limit" in refused.json()["detail"], refused.text
        assert call("ann", "GET", url).json()["loss"] == before, "a refusal costs nothing"
        assert len(call("ann", "GET", f"{url}/history").json()["facts"]) == 4, "nor is it written to the ledger"
        assert call("ann", "POST", f"{url}/launches", TINY, id="first").json()["handle"] == handle
        assert call("ann", "POST", f"{url}/questions", QUESTION, id="second").status_code == 201
        assert call("ann", "POST", f"/v1/handles/{handle}/asks", COUNT).status_code == 201
        assert call("bob", "POST", f"/v1/sessions/{other}/launches", TINY).status_code == 201


def test_a_limit_on_launches_holds_after_the_ledger_was_opened_anew(tmp_path):
    with served(tmp_path, limits=Limits(launches=2)) as call:
        session = call.granted()
        assert call("ann", "POST", f"/v1/sessions/{session}/launches", TINY).status_code == 201
        call.registry.data_set("people").session().close()
        codes = [call("ann", "POST", f"/v1/sessions/{session}/launches", TINY).status_code for _ in range(2)]
        assert codes == [201, 409]


def pages(call, who, url):
    """All pages of a list, by the header that names the next."""
    found, here = [], url
    while here is not None:
        response = call(who, "GET", here)
        assert response.status_code == 200, response.text
        found.append(response.json())
        here = response.links["next"]["url"] if "next" in response.links else None
    return found


def test_lists_come_in_pages(tmp_path):
    with served(tmp_path) as call:
        sessions = [call.granted(epsilon="1e-6") for _ in range(5)]
        for url, who in (("/v1/sessions", "ann"), ("/v1/data-sets/people/grants", "olga"), ("/v1/principals", "carol")):
            whole = pages(call, who, url)
            assert len(whole) == 1 and len(whole[0]) == 5
            in_twos = pages(call, who, f"{url}?limit=2")
            assert [len(page) for page in in_twos] == [2, 2, 1]
            assert [one for page in in_twos for one in page] == whole[0]
            assert call(who, "GET", f"{url}?after=9").json() == []
            assert call(who, "GET", f"{url}?limit={PAGE + 1}").status_code == 400
        assert [one["session"] for one in call("ann", "GET", "/v1/sessions").json()] == sessions


def test_what_was_launched_comes_in_pages(tmp_path):
    with served(tmp_path) as call:
        session = call.granted()
        url = f"/v1/sessions/{session}"
        made = [call.launched(session, mechanism="Laplace", epsilon="1e-6") for _ in range(3)]
        made.insert(2, call("ann", "POST", f"{url}/delegations", BUDGET).json()["session"])
        made[2:] = sorted(made[2:])
        found, after = [], 0
        while after is not None:
            page = call("ann", "GET", f"{url}?after={after}&limit=3").json()
            found += [one["handle"] for one in page["handles"]] + [one["id"] for one in page["given"]]
            after = page["next"]
        assert sorted(found) == sorted(made)


@pytest.mark.parametrize("page", [1, 2, 200])
def test_the_client_reads_all_pages(tmp_path, monkeypatch, page):
    """The service's default is one size of page, and the client goes by it."""
    with served(tmp_path) as call:
        sessions = [call.granted(epsilon="1e-3") for _ in range(3)]
        monkeypatch.setattr(calls, "PAGE", page)

        class Limited(calls.Call):
            def __init__(self, method, path, *rest, query=None, **more):
                super().__init__(method, path, *rest, query={**(query or {}), "limit": page}, **more)

        monkeypatch.setattr(calls, "Call", Limited)
        connection = cp.connect("http://localhost", key=call.keys["ann"], transport=call.client._transport)
        assert [one.id for one in connection.sessions] == sessions


def test_a_timeline_and_a_certificate_come_in_pages_that_together_are_the_whole(tmp_path):
    with served(tmp_path) as call:
        session = call.granted()
        url = f"/v1/sessions/{session}"
        handles = [call.launched(session, mechanism="Laplace", epsilon="1e-6", asks=9) for _ in range(3)]
        call("ann", "POST", f"{url}/delegations", BUDGET)
        for handle in (*handles, *handles):
            call("ann", "POST", f"/v1/handles/{handle}/asks", COUNT)
        call("ann", "POST", f"{url}/launches", {"mechanism": {"mechanism": "Laplace", "epsilon": 9}})
        found = call.registry.data_set("people").session().at(SessionId.read(session).path)
        for name, read, whole in (
            ("timeline", read_timeline, timeline_of(found)),
            ("certificate", read_certificate, found.certificate()),
        ):
            for limit in (1, 2, 3, 200):
                pages, after = [], 0
                while after is not None:
                    pages.append(call("ann", "GET", f"{url}/{name}?after={after}&limit={limit}").json())
                    after = pages[-1]["next"]
                assert read(pages) == whole, (name, limit)


def test_the_page_of_a_session_of_many_launches_shows_the_newest_events_and_both_ends_of_the_certificate(
    tmp_path, monkeypatch
):
    for module, name in (
        (widgets, "MOST_WHOLE"),
        (widgets, "SIZE"),
        (widgets, "SMALLEST"),
        (grants, "LINES"),
        (grants, "FEW"),
    ):
        monkeypatch.setattr(module, name, 2)
    monkeypatch.setattr(session_pages, "MOST_PREMISES", 2)
    monkeypatch.setattr(session_pages, "MOST_RUNNING", 2)
    with served(tmp_path) as call:
        session = call.granted()
        for number in range(7):
            call.launched(session, mechanism="Laplace", epsilon=f"{number + 1}e-6")
        for _ in range(3):
            call.granted("bob", "1e-6")
        ann, carol = Browser(call, "ann"), Browser(call, "carol")
        text = ann.get(f"/sessions/{session}").text
        assert "Events 6 to 7 of 7" in text and "events=all" in text
        assert "All 7 events" in ann.get(f"/sessions/{session}?events=all").text
        assert "... and 3 launches between these" in text
        assert all(f"lane {number}:" in text for number in (1, 2, 6, 7)) and "lane 4:" not in text
        assert [f'<option value="{number}">' in text for number in range(7)] == [False] * 5 + [True] * 2
        first, last = carol.get("/grants").text, carol.get("/grants?start=3").text
        assert ">1 to 2 of 4" in first and "start=3" in first and ">3 to 4 of 4" in last
