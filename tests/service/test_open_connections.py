"""Connections of callers that never finish: they end, they displace each other alone, and others are served."""

import json
import logging
import resource
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager

import httpx
import pytest
from tests.service.certificates import certificate
from tests.service.process import Served

from counterpoint.service.connections import AFewAMinute

ASK = {"request": {"request": "count"}, "epsilon": 0.01}
FORM = b"POST /sign-in HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"
LIMITS = """
limits.connections = 40
limits.connections_per_address = 8
limits.header_seconds = 2
limits.body_seconds = 2
limits.streams = 20
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service with few connections and little time."""
    folder = tmp_path_factory.mktemp("service")
    (folder / "counterpoint.toml").write_text(LIMITS)
    with Served(folder, "--demo", "--config", "counterpoint.toml") as served:
        yield served


def port_of(service):
    return int(service.url.rpartition(":")[2])


@contextmanager
def connected(service, number=1, *, source="127.0.0.1", begun=b""):
    """So many connections, from one address of this machine, on which something was sent."""
    with ExitStack() as opened:
        made, there = [], ("127.0.0.1", port_of(service))
        for _ in range(number):
            made.append(opened.enter_context(socket.create_connection(there, timeout=60, source_address=(source, 0))))
            made[-1].sendall(begun)
        yield made


def rest(connection):
    """All that still comes, until the service closes the connection."""
    found = b""
    try:
        while part := connection.recv(65536):
            found += part
    except ConnectionResetError:
        pass
    return found


def health(service, source="127.0.0.1"):
    transport = httpx.HTTPTransport(local_address=source, retries=0)
    with httpx.Client(transport=transport, timeout=60) as client:
        return client.get(f"{service.url}/health").status_code


def head(service, path, *more, method="POST", key=None):
    lines = [f"{method} {path} HTTP/1.1", "Host: x", *more]
    if key is not None:
        lines.append(f"Authorization: Bearer {key}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


@pytest.mark.parametrize(
    ("sent", "stage"),
    [
        (b"", "header"),
        (b"GET /health HTTP/1.1\r\nHost: x\r\nX-a: ", "header"),
        (FORM + b"Content-Length: 900\r\n\r\nkey=", "body"),
        (FORM + b"Transfer-Encoding: chunked\r\n\r\n3\r\nkey\r\n", "body"),
        (b"POST /v1/sessions/people/questions HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n{", None),
    ],
    ids=["nothing", "half a header", "half a form", "half of the chunks", "a body behind a refusal"],
)
def test_a_request_that_is_never_finished_is_ended(service, sent, stage):
    with connected(service) as (connection,):
        connection.sendall(sent)
        said = rest(connection)
        assert said.startswith(b"HTTP/1.1 408" if stage else b"HTTP/1.1 401"), said
        if stage:
            assert f"the {stage} of the request took too long".encode() in said
        assert b"no-store" in said and b"nosniff" in said
        assert said.count(b"\r\nconnection: close") <= 1 and said.count(b"HTTP/1.1 4") == 1
    assert "fault" not in service.log and "Traceback" not in service.log


def test_an_ask_whose_body_is_never_finished_charges_nothing(service):
    with service.client() as client:
        before = client.get("/v1/sessions/people").json()["loss"]
        body = json.dumps(ASK).encode()
        with connected(service) as (connection,):
            length, kind = f"Content-Length: {len(body)}", "Content-Type: application/json"
            connection.sendall(
                head(service, "/v1/sessions/people/questions", length, kind, key=service.key) + body[:-1]
            )
            assert rest(connection).startswith(b"HTTP/1.1 408")
        assert client.get("/v1/sessions/people").json()["loss"] == before
    assert "fault" not in service.log


def test_a_body_that_trickles_in_is_ended_too(service):
    with connected(service) as (connection,):
        connection.sendall(head(service, "/sign-in", "Content-Length: 4000"))
        with pytest.raises(OSError):
            for _ in range(600):
                connection.sendall(b"a")
                time.sleep(0.1)


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nX: ", FORM + b"Content-Length: 9\r\n\r\n"])
def test_connections_that_wait_displace_each_other_and_nobody_else(service, begun):
    """The oldest goes, with a reason; other addresses, and finished requests of this one, are served."""
    with connected(service, 30, source="127.0.0.2", begun=begun) as many:
        assert health(service) == 200
        assert health(service, "127.0.0.2") == 200
        said = rest(many[0])
        assert b"429" in said and b"8 connections of this address are open" in said, said


def test_connections_with_a_request_running_are_not_displaced_and_the_next_one_is_refused(service):
    events = head(service, "/v1/sessions/people/events", method="GET", key=service.key)
    with connected(service, 8, source="127.0.0.3") as running:
        for one in running:
            one.sendall(events)
            assert one.recv(4096).startswith(b"HTTP/1.1 200")
        with connected(service, source="127.0.0.3") as (refused,):
            said = rest(refused)
            assert said.startswith(b"HTTP/1.1 503") and b"connections of this address" in said
            assert b"retry-after" in said
        assert health(service) == 200
        for one in running:
            one.settimeout(0.05)
            with pytest.raises(TimeoutError):
                while one.recv(4096):  # it goes on
                    pass


def test_many_addresses_together_have_a_limit_too(service):
    with ExitStack() as opened:
        for number in range(10, 20):
            opened.enter_context(connected(service, 8, source=f"127.0.0.{number}"))
        assert health(service) == 200


@pytest.mark.parametrize(
    "lengths",
    [
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("transfer-encoding: Chunked", "CONTENT-LENGTH: 5"),
        ("Content-Length: 0", "Transfer-Encoding: chunked"),
        ("Content-Length: 5", "Content-Length: 6"),
        ("Transfer-Encoding: gzip, chunked",),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: identity"),
        ("Content-Length: +5",),
        ("Content-Length: 5, 6",),
    ],
)
def test_a_request_with_two_lengths_is_refused_and_what_follows_is_no_request(service, lengths):
    with connected(service) as (connection,):
        smuggled = head(service, "/health", method="GET")
        connection.sendall(head(service, "/v1/principals", *lengths, key=service.key) + b"0\r\n\r\n" + smuggled)
        said = rest(connection)
        assert said.startswith((b"HTTP/1.1 400", b"HTTP/1.1 501")) and said.count(b"HTTP/1.1 ") == 1
        assert b"no-store" in said and b"nosniff" in said


def test_a_tls_handshake_that_is_never_finished_is_ended(tmp_path):
    certificate(tmp_path)
    (tmp_path / "counterpoint.toml").write_text(LIMITS)
    flags = ("--certificate", "certificate.pem", "--private-key", "private.pem")
    with Served(tmp_path, "--config", "counterpoint.toml", *flags) as service:
        with connected(service, 30) as many:
            many[-1].sendall(b"\x16\x03\x01")
            assert [rest(one) for one in many] == [b""] * 30
        assert not service.log


def test_without_a_free_file_the_log_stays_short_and_the_service_goes_on_afterwards(tmp_path):
    (tmp_path / "counterpoint.toml").write_text("limits.header_seconds = 2")
    with Served(tmp_path, "--demo", "--config", "counterpoint.toml") as service, service.client() as client:
        assert client.post("/v1/sessions/people/questions", json=ASK).status_code == 201
        files = len(list((tmp_path / "/proc" / str(service.process.pid) / "fd").iterdir()))
        resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE, (files + 3, 20_000))
        with connected(service, 60):
            time.sleep(1)
        resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE, (files + 100, 20_000))
        assert client.post("/v1/sessions/people/questions", json=ASK).status_code == 201
        assert 1 <= service.log.count("no file can be opened") <= 10 and len(service.log) < 10_000
        assert "Traceback" not in service.log and "fault" not in service.log


@pytest.mark.parametrize(("soft", "hard", "most"), [(256, 256, 128), (1024, 1024, 768), (256, 20_000, 1000)])
def test_accepting_leaves_files_for_ledgers_and_data(soft, hard, most):
    code = (
        "import resource; from counterpoint.service.connections import most_connections\n"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard})); print(most_connections(1000))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(said.stdout) == most


def test_a_line_that_callers_cause_any_number_of_times_is_logged_a_few_times_a_minute():
    few = AFewAMinute()
    records = [logging.LogRecord("n", 30, "", 0, f"line {number % 2}", (), None) for number in range(1000)]
    assert 2 <= sum(map(few.filter, records)) <= 20
