"""Connections: calls are sent again by their id and charged once, keys are shown nowhere, and one table says what a
served session does not do.
"""

import inspect
import re
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest
from tests.service.places import in_process, people

import counterpoint as cp
from counterpoint.client.calls import ARGUMENTS, NOT_SERVED
from counterpoint.client.handle import RemoteHandle
from counterpoint.client.session import RemotePartition, RemoteSession


@pytest.fixture
def place(tmp_path):
    with in_process(tmp_path) as found:
        yield found


class Torn(httpx.BaseTransport):
    """A network that loses the first answers to each POST, after the service has done what was asked."""

    def __init__(self, inner, losing, how):
        self._inner, self._losing, self._how = inner, losing, how
        self.sent = []

    def handle_request(self, request):
        if request.method != "POST":
            return self._inner.handle_request(request)
        self.sent.append(request.headers["idempotency-key"])
        reply = self._inner.handle_request(request)
        lost = self.sent.count(self.sent[-1]) <= self._losing
        return self._how(request, reply) if lost else reply


def raised(kind):
    def lose(request, _reply):
        raise kind("the answer was lost", request=request)

    return lose


def replaced(status, headers=()):
    return lambda _request, _reply: httpx.Response(status, text="<html>a proxy</html>", headers=dict(headers))


LOSSES = {
    "timeout": raised(httpx.ReadTimeout),
    "reset": raised(httpx.RemoteProtocolError),
    "closed": raised(httpx.ReadError),
    "busy": replaced(503),
    "gateway": replaced(502),
    "limited": replaced(429, {"retry-after": "7"}),
}


@pytest.mark.parametrize("how", LOSSES)
def test_a_call_whose_answer_was_lost_is_sent_again_and_charged_once(place, how):
    place.session("people")
    torn = Torn(place.transport, 3, LOSSES[how])
    connection = place.connect("ann", torn)
    backoff = []
    connection._sleep = backoff.append
    session = connection.session("people")
    handle = session.launch(cp.Laplace(1, asks=3))
    assert session.loss == cp.PureDP(1) and len(torn.sent) == 4 and len(set(torn.sent)) == 1
    assert backoff == ([7.0, 7.0, 7.0] if how == "limited" else [0.1, 0.2, 0.4])
    handle.ask(cp.count())
    assert session.ask(cp.count(), epsilon=1, id="mine") == session.ask(cp.count(), epsilon=1, id="mine")
    assert session.loss == cp.PureDP(2) and torn.sent[-1] == "mine"
    assert [fact.kind for fact in session.history] == ["launch", "ask", "question"]


def test_a_service_that_stays_away_is_said_to_with_the_id_to_repeat_by(place):
    place.session("people")
    torn = Torn(place.transport, 99, LOSSES["timeout"])
    connection = place.connect("ann", torn)
    connection._sleep = lambda _pause: None
    with pytest.raises(cp.errors.ServiceFailed, match="could not be reached") as failed:
        connection.session("people").launch(cp.Laplace(1))
    (note,) = failed.value.__notes__
    assert torn.sent[0] in note and len(torn.sent) == 7 and len(set(torn.sent)) == 1
    session = place.connect("ann").session("people")
    assert session.loss == cp.PureDP(1), "the service did it"
    session.launch(cp.Laplace(1), id=torn.sent[0])
    assert session.loss == cp.PureDP(1)


def test_refusals_are_not_repeated(place):
    place.session("people")
    torn = Torn(place.transport, 0, None)
    session = place.connect("ann", torn).session("people")
    with pytest.raises(cp.BudgetExceeded):
        session.launch(cp.Laplace(10**6))
    with pytest.raises(cp.errors.InvalidRequest):
        session.ask(cp.mean("wage"), epsilon=1)
    assert len(torn.sent) == 2


def test_a_name_means_the_one_grant_that_stands(place):
    whole, ann = place.whole("people"), place.connect("ann")
    with pytest.raises(cp.errors.NotAllowed, match="'people' was not found"):
        ann.session("people")
    first = whole.grant("ann", cp.PureDP(1))
    assert ann.session("people").id == "people.0"
    whole.grant("ann", cp.PureDP(2))
    with pytest.raises(
        cp.errors.NotAllowed, match=r"several sessions were granted in 'people': say which one, 'people\.0', 'pe"
    ):
        ann.session("people")
    assert ann.session("people.1").remaining.epsilon == 2 and [one.id for one in ann.sessions] == [
        "people.0",
        "people.1",
    ]
    whole.revoke(first)
    assert ann.session("people").id == "people.1"
    whole.revoke(whole.given[1])
    with pytest.raises(cp.errors.NotAllowed, match="several"):
        ann.session("people")


def test_each_role_gets_what_is_theirs(place):
    place.session("people")
    auditor = place.connect("olga")
    assert auditor.session("people").loss == cp.PureDP(10**4) and auditor.verify("people")
    assert auditor.session("people").history[-1].who == "carol" and auditor.session("people.0").history == ()
    with pytest.raises(cp.errors.NotAllowed):
        auditor.session("people").ask(cp.count(), epsilon=1)
    producer = place.connect("paul")
    assert producer.data_sets == ("people", "folks", "visits", "staff")
    with pytest.raises(cp.errors.NotAllowed, match="a producer appends"):
        producer.session("visits")
    with pytest.raises(cp.errors.NotAllowed):
        place.connect("bob").session("people.0")
    assert "age" in place.connect("ann").describe("people") and place.connect("ann").data_sets == ("people",)
    with pytest.raises(cp.errors.NotAllowed):
        place.connect("ann").stream("visits").append({"page": "home", "seconds": 1})


def test_an_answer_has_the_receipt_that_its_custodian_reads(place):
    session = place.session("people")
    session.ask(cp.count(), epsilon=1, id="monday")
    signed, disclosed = session.receipt("monday")
    whole = place.registry.data_set("people").session()
    mine = whole.acting_as("ann").at((0,))
    assert '"who":"ann"' in signed.receipt and disclosed == mine.receipt("monday")[1]
    with pytest.raises(cp.CounterpointError):
        session.receipt("tuesday")


def test_histories_are_read_page_by_page(place):
    handle = place.session("people").launch(cp.Laplace(1, asks=300))
    for _ in range(205):
        handle.ask(cp.count())
    assert len(place.session("people").history) == 206


def test_a_key_is_shown_nowhere(place):
    key = place.keys["ann"]
    secret = key.rpartition("_")[2]
    connection = place.connect("ann")
    assert secret not in repr(connection) and repr(connection) == "Connection('http://localhost')"
    wrong = cp.connect("http://localhost", key="cp_wrong", transport=place.transport)
    with pytest.raises(cp.errors.NotAllowed, match="send a valid key") as refused:
        wrong.session("people")
    assert "cp_wrong" not in str(refused.value)
    for url in (
        "people.db",
        "ftp://example.org",
        "http://",
        "http://ann:secret@example.org",
        "http://a.org/?key=secret",
    ):
        with pytest.raises(cp.errors.InvalidParameter, match="url must be an address") as refused:
            cp.connect(url, key=key)
        assert "secret" not in str(refused.value)
    with pytest.raises(cp.errors.InvalidParameter, match="key must be the text") as refused:
        cp.connect("http://example.org", key=f"{key}\n")
    assert secret not in str(refused.value)


def test_what_answers_is_no_service(place):
    class Page(httpx.BaseTransport):
        def handle_request(self, _request):
            return httpx.Response(404, text="<html>nothing</html>")

    with pytest.raises(cp.errors.ServiceFailed, match="status 404 and no reason"):
        cp.connect("https://example.org", key="cp_x", transport=Page()).session("people")


@pytest.mark.parametrize("connect", [cp.connect, cp.connect_async])
def test_plain_http_to_another_machine_is_refused_unless_one_insists(connect):
    for host in (
        "example.org",
        "10.0.0.7",
        "localhost.example.org",
        "127.0.0.1.example.org",
        "[2001:db8::1]",
        "0.0.0.0",
    ):
        with pytest.raises(cp.errors.NotAllowed, match="would send the key in the open: use https") as refused:
            connect(f"http://{host}:8000", key="cp_secret")
        assert "secret" not in str(refused.value)
        assert connect(f"https://{host}:8000", key="cp_secret") and connect(f"http://{host}", key="cp_x", insecure=True)
    for host in ("localhost", "LOCALHOST", "127.0.0.1", "127.3.2.1", "[::1]"):
        assert connect(f"http://{host}:8000", key="cp_secret")


@pytest.mark.parametrize("connect", [cp.connect, cp.connect_async])
def test_a_proxy_of_the_environment_is_not_given_a_key_in_the_open(connect, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://proxy.example.org:3128")
    for url, proxied in (("http://127.0.0.1:8000", False), ("https://example.org", True)):
        client = connect(url, key="cp_x")._client
        assert (client._transport_for_url(httpx.URL(url)) is not client._transport) is proxied


def test_a_custodian_reads_the_public_record_and_an_analyst_does_not(place):
    place.session("people").ask(cp.count(), epsilon=1)
    lines = place.whole("people").record()
    assert lines == place.registry.data_set("people").session().record() and len(lines) > 3
    with pytest.raises(cp.errors.NotAllowed):
        place.session("people").record()


def test_many_threads_share_one_connection(place):
    place.session("people")
    session = place.connect("ann").session("people")
    handle = session.launch(cp.Laplace(1, asks=200))
    counts = []

    def work(number):
        counts.append(handle.ask(cp.count(), id=f"{number % 4}"))
        assert session.loss.epsilon >= 1 and session.launch(cp.Laplace("0.01"), id="shared").path == (0, 1)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(counts) == 16 and len(set(counts)) <= 4 and session.loss == cp.PureDP("1.01")
    assert [fact.kind for fact in session.history].count("ask") == 4


PAIRS = {"Session": (cp.Session, RemoteSession), "Handle": (cp.Handle, RemoteHandle)}
PAIRS["Partition"] = (cp.Partition, RemotePartition)
DISPLAYS = {"as_given"}


def members(kind):
    return {name for name in dir(kind) if not name.startswith("_")} - DISPLAYS


@pytest.mark.parametrize("name", PAIRS)
def test_every_member_of_a_local_one_is_served_or_in_the_table(place, name):
    local, remote = PAIRS[name]
    own = set() if name != "Partition" else {"loss", "within"}
    missing = members(local) - members(remote) - own - ({"mechanism"} if name == "Handle" else set())
    assert missing == {entry.partition(".")[2] for entry in NOT_SERVED if entry.startswith(f"{name}.")}


@pytest.mark.parametrize("entry", NOT_SERVED)
def test_what_is_in_the_table_is_not_allowed(place, entry):
    kind, _, name = entry.partition(".")
    session = place.session("people")
    given = session if kind == "Session" else session.launch(cp.Laplace(1))
    with pytest.raises(cp.errors.NotAllowed, match=re.escape(NOT_SERVED[entry])):
        getattr(given, name)
    with pytest.raises(AttributeError):
        given.no_such_name  # noqa: B018 - reading it is the test


@pytest.mark.parametrize(
    "name",
    [
        "launch",
        "ask",
        "sql",
        "would_cost",
        "delegate",
        "partition",
        "grant",
        "at",
        "loss_at",
        "epsilon_for",
        "plot",
        "record",
        "charge",
        "reserve",
        "would_admit",
    ],
)
def test_served_calls_have_the_parameters_of_local_ones(name):
    local, remote = (inspect.signature(getattr(kind, name)).parameters for kind in PAIRS["Session"])
    assert list(local) == list(remote)
    assert [one.default for one in local.values()] == [one.default for one in remote.values()]


def test_what_brings_code_or_a_rule_along_is_not_sent(place):
    session = place.session("people")
    with pytest.raises(cp.errors.NotAllowed, match="a service takes as mechanism"):
        session.launch(cp.mechanisms.Concurrent(cp.Filter(cp.PureDP(1)), people().relation))
    with pytest.raises(cp.errors.NotAllowed, match="a service takes as measure"):
        session.delegate(cp.Filter(cp.PureDP(1)))
    with pytest.raises(cp.errors.NotAllowed, match=re.escape("session.sql(text")):
        session.ask(cp.sql("SELECT COUNT(*) FROM people"), epsilon=1)
    with pytest.raises(cp.errors.NotAllowed, match="whole budget"):
        session.grant("bob", cp.PureDP(1))
    assert session.loss == cp.PureDP(0)


def test_the_guide_shows_the_tables():
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "service.md").read_text()
    for name, instead in {**NOT_SERVED, **ARGUMENTS}.items():
        assert f"| `{name}` | {instead} |" in guide


def test_the_client_imports_no_web_framework_and_httpx_only_when_it_connects():
    script = (
        "import sys, counterpoint as cp; cp.connect; cp.lazy.load('counterpoint')\n"
        "assert not {'litestar', 'uvicorn', 'httpx'} & set(sys.modules), sys.modules.keys()\n"
        "cp.connect('http://127.0.0.1:1', key='cp_x').close()\n"
        "assert 'litestar' not in sys.modules and 'httpx' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
