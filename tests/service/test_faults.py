"""Faults: killed workers, duplicated and reordered requests. Each id has one answer, and the budget is exact."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from tests.service.registry import PEOPLE, served
from tests.service.repeating import Questions, patient, seen
from tests.service.worker import GENEROUS, people

QUESTIONS = Questions()


@pytest.mark.parametrize("requests", [500, pytest.param(10_000, marks=pytest.mark.long)])
def test_duplicated_and_reordered_requests_of_64_threads_are_answered_once(tmp_path, requests):
    with served(tmp_path, limits=GENEROUS) as call:
        session = call.granted()

        def ask(id):
            return seen(id, call("ann", "POST", f"/v1/sessions/{session}/questions", QUESTIONS.body, id=id))

        with ThreadPoolExecutor(64) as threads:
            QUESTIONS.check(threads.map(ask, QUESTIONS.shuffled(requests, requests)))
        assert call("ann", "GET", f"/v1/sessions/{session}").json()["loss"]["text"] == "PureDP(1)"
        assert call("olga", "POST", "/v1/data-sets/people/verification").status_code == 200


class Worker:
    """A process that serves, and another one after it was killed, on one socket."""

    def __init__(self, place, listening):
        self._place, self._listening = place, listening
        self._process = self._started()

    def _started(self):
        root = Path(__file__).parents[2]
        path = os.pathsep.join([str(root / "src"), str(root)])
        command = [sys.executable, "-m", "tests.service.worker", self._place, str(self._listening.fileno())]
        return subprocess.Popen(
            command, cwd=root, env={**os.environ, "PYTHONPATH": path}, pass_fds=[self._listening.fileno()]
        )

    def kill(self):
        """Kill the process, wherever it is, and start another one."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._process = self._started()

    def stop(self):
        """Ask the process to stop; how it ended."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(timeout=120)


@pytest.fixture
def worker(tmp_path):
    """A worker, the address that it serves, and everyone's keys."""
    place = str(tmp_path / "ledger.db")
    registry = people(place)
    for name, role in PEOPLE.items():
        registry.identity.add(name, role)
    keys = {name: registry.identity.new_key(name).shown() for name in PEOPLE}
    registry.close()
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listening:
        made = Worker(place, listening)
        try:
            yield made, f"http://127.0.0.1:{listening.getsockname()[1]}", keys
        finally:
            made._process.kill()
            made._process.wait()


@pytest.mark.parametrize(
    ("requests", "kills"), [(250, 2), pytest.param(10_000, 20, marks=pytest.mark.long)], ids=["few", "many"]
)
def test_a_worker_that_is_killed_loses_and_repeats_nothing(worker, requests, kills):
    process, url, keys = worker
    with httpx.Client(base_url=url, timeout=120, limits=httpx.Limits(max_connections=8)) as client:
        body = {"to": "ann", "within": {"measure": "PureDP", "epsilon": 1}}
        grant = patient(client, keys["carol"], "POST", "/v1/data-sets/people/grants", json=body, id="grant")
        session = grant.json()["session"]
        asked, lock, answers = f"/v1/sessions/{session}/questions", threading.Lock(), []

        def ask(id):
            answer = seen(id, patient(client, keys["ann"], "POST", asked, json=QUESTIONS.body, id=id))
            with lock:
                answers.append(answer)
                if len(answers) % (requests // (kills + 1)) == 0 and len(answers) < requests:
                    process.kill()  # while the other threads' requests run

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(ask, QUESTIONS.shuffled(requests, kills)))
        process.kill()  # between requests
        answers += [
            seen(id, patient(client, keys["ann"], "POST", asked, json=QUESTIONS.body, id=id)) for id, *_ in answers[:20]
        ]
        QUESTIONS.check(answers)
        shown = patient(client, keys["ann"], "GET", f"/v1/sessions/{session}").json()
        assert shown["loss"]["text"] == "PureDP(1)"
        assert patient(client, keys["olga"], "POST", "/v1/data-sets/people/verification").status_code == 200


def test_a_worker_stops_when_asked_while_readers_follow_its_events(worker):
    process, url, keys = worker
    with httpx.Client(base_url=url, timeout=120) as client:
        headers = {"Authorization": f"Bearer {keys['carol']}"}
        with client.stream("GET", "/v1/sessions/people/events", headers=headers) as got:
            lines = got.iter_lines()
            assert next(lines) == "event: loss"
            assert process.stop() in (0, -signal.SIGTERM)  # before the stream would have ended by itself
            assert all(line.startswith(("data:", ":")) or not line for line in lines)


def torn(url, key, path, body, *, sent, id):
    """Send a part of a request, and close the connection; what is sent whole is not waited for."""
    host, port = url.removeprefix("http://").split(":")
    text = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\nIdempotency-Key: {id}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
    ).encode()
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall((head + text)[: int(len(head + text) * sent)])


def test_torn_connections_charge_nothing_or_once_by_their_ids(worker):
    """Half a body is no request; a caller that closes before its answer finds that answer by its id."""
    _, url, keys = worker
    with httpx.Client(base_url=url, timeout=120) as client:
        body = {"to": "ann", "within": {"measure": "PureDP", "epsilon": 1}}
        grant = patient(client, keys["carol"], "POST", "/v1/data-sets/people/grants", json=body, id="grant")
        session = grant.json()["session"]
        asked = f"/v1/sessions/{session}/questions"
        for number, sent in enumerate((0.2, 0.8, 0.99, 1.0, 1.0)):
            torn(url, keys["ann"], asked, QUESTIONS.body, sent=sent, id=f"torn {number}")
        first = [
            seen(id, patient(client, keys["ann"], "POST", asked, json=QUESTIONS.body, id=id))
            for id in ("torn 3", "torn 4", "torn 3", "torn 4")
        ]
        assert first[:2] == first[2:] and all(status == 201 for _, status, _ in first)
        shown = patient(client, keys["ann"], "GET", f"/v1/sessions/{session}").json()
        assert shown["loss"]["text"] == "PureDP(0.02)", "the halves charged nothing, and each id once"
        assert patient(client, keys["olga"], "POST", "/v1/data-sets/people/verification").status_code == 200
