"""Faults: killed workers, duplicated and reordered requests. Each id has one answer, and the budget is exact."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from tests.service.house import PEOPLE, served
from tests.service.worker import GENEROUS, people

EPSILON = 0.01
FIT = 100
"""How many questions of this price the granted budget of 1 holds."""
QUESTION = {"request": {"request": "count", "where": "age > 35"}, "epsilon": EPSILON}


def shuffled(requests, seed):
    """Ids for more questions than the budget holds, each several times, in an order that is not theirs."""
    ids = [f"question {number}" for number in range(FIT + FIT // 10)]
    order = [ids[number % len(ids)] for number in range(requests)]
    random.Random(seed).shuffle(order)  # noqa: S311 - the order of requests is no secret
    return order


def check(answers):
    """Each id was answered always alike or refused always, and as many were answered as the budget holds."""
    by_id = defaultdict(set)
    for id, status, exact in answers:
        assert status in (201, 409), (id, status)
        by_id[id].add((status, exact))
    assert all(len(found) == 1 for found in by_id.values()), [one for one in by_id.values() if len(one) > 1]
    assert sum(status == 201 for found in by_id.values() for status, _ in found) == FIT


def seen(id, got):
    return id, got.status_code, got.json()["exact"]["released"] if got.status_code == 201 else None


@pytest.mark.parametrize("requests", [500, pytest.param(10_000, marks=pytest.mark.long)])
def test_duplicated_and_reordered_requests_of_64_threads_are_answered_once(tmp_path, requests):
    with served(tmp_path, limits=GENEROUS) as call:
        session = call.granted()

        def ask(id):
            return seen(id, call("ann", "POST", f"/v1/sessions/{session}/questions", QUESTION, id=id))

        with ThreadPoolExecutor(64) as threads:
            check(threads.map(ask, shuffled(requests, requests)))
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
    house = people(place)
    for name, role in PEOPLE.items():
        house.identity.add(name, role)
    keys = {name: house.identity.new_key(name).shown() for name in PEOPLE}
    house.close()
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listening:
        made = Worker(place, listening)
        try:
            yield made, f"http://127.0.0.1:{listening.getsockname()[1]}", keys
        finally:
            made._process.kill()
            made._process.wait()


def patient(client, key, method, url, *, json=None, id=None):
    """Send a request until it is answered: by its id it can be repeated whenever it is not known what became of it."""
    headers = {"Authorization": f"Bearer {key}", **({} if id is None else {"Idempotency-Key": id})}
    while True:
        try:
            got = client.request(method, url, json=json, headers=headers)
        except httpx.TransportError:
            continue
        if got.status_code < 500:
            return got


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
            answer = seen(id, patient(client, keys["ann"], "POST", asked, json=QUESTION, id=id))
            with lock:
                answers.append(answer)
                if len(answers) % (requests // (kills + 1)) == 0 and len(answers) < requests:
                    process.kill()  # while the other threads' requests run

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(ask, shuffled(requests, kills)))
        process.kill()  # between requests
        answers += [
            seen(id, patient(client, keys["ann"], "POST", asked, json=QUESTION, id=id)) for id, *_ in answers[:20]
        ]
        check(answers)
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
            torn(url, keys["ann"], asked, QUESTION, sent=sent, id=f"torn {number}")
        first = [
            seen(id, patient(client, keys["ann"], "POST", asked, json=QUESTION, id=id))
            for id in ("torn 3", "torn 4", "torn 3", "torn 4")
        ]
        assert first[:2] == first[2:] and all(status == 201 for _, status, _ in first)
        shown = patient(client, keys["ann"], "GET", f"/v1/sessions/{session}").json()
        assert shown["loss"]["text"] == "PureDP(0.02)", "the halves charged nothing, and each id once"
        assert patient(client, keys["olga"], "POST", "/v1/data-sets/people/verification").status_code == 200
