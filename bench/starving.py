"""Whether one analyst can starve the others: waits of another's ask, read and /health while one sends heavy quotes.

`counterpoint serve` runs in a process of its own. One principal's 64 threads, in another process, repeat a quote of a
mean by 9999 keys, which is free and computes for long; or a read of the certificate of a session with many launches.
Meanwhile another principal asks, reads its session and calls /health, one after the other. The p99 of an ask and of
/health must stay below 250 ms.

Other work on the machine is waited for as well. So a second row says how much CPU time the service used meanwhile, in
ticks of 10 ms: its threads compute one at a time, so that is about how long the wait is where nothing else runs.

python -m bench starving
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.service import cpu_of
from bench.table import Row

MOST = 0.25
SECONDS = float(os.environ.get("BENCH_SECONDS", "15"))
THREADS = 64
PAUSE = 0.02
"""Between the calls of the other analyst, who would else reach the most launches of a session."""
LAUNCHES = 500
"""In the session whose certificate is read."""
CONFIG = """
ledger = "ledger.db"
[tables.people]
source = "people.csv"
unit = "person"
rows_per_unit = 1
budget = { measure = "PureDP", epsilon = 1000 }
columns.big = { type = "number", low = 0, high = 1000000, step = 1 }
columns.note = { type = "text" }
"""
KEYS = [f"k{number}" for number in range(9999)]
HEAVY = {"request": {"request": "mean", "column": "big", "by": ["note"], "keys": KEYS}, "epsilon": 0.1}
COUNT = {"request": {"request": "count"}, "epsilon": 0.001}
LAUNCH = {"mechanism": {"mechanism": "Laplace", "epsilon": "1e-9"}}


def rows() -> Iterator[Row]:
    """Waits alone, beside heavy quotes and beside heavy reads."""
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as (url, custodian, process):
        ann, bob = (analyst(url, custodian, name) for name in ("ann", "bob"))
        for _ in range(LAUNCHES):
            posted(ann, f"/v1/sessions/{ann.session}/launches", LAUNCH)
        attacks = {
            "alone": None,
            "beside 64 heavy quotes": ("POST", f"/v1/sessions/{ann.session}/quotes", HEAVY),
            "beside 64 reads of a certificate": ("GET", f"/v1/sessions/{ann.session}/certificate", None),
        }
        for what, attack in attacks.items():
            with attacking(url, ann.key, attack):
                found = waits(bob, process)
            for name, waited in found.items():
                for clock, every in zip(("by the clock", "CPU"), zip(*waited, strict=True), strict=True):
                    p99 = sorted(every)[int(0.99 * len(every))]
                    yield Row(f"p99 of another's {name}, {what}: {clock}", p99, MOST, "250 ms", at_most=1)


class Analyst:
    """A principal with a grant, and its connection."""

    def __init__(self, url: str, key: str, session: str) -> None:
        self.key, self.session, self.http = key, session, client(url, key)


def client(url: str, key: str) -> Any:
    """An HTTP client that presents a key."""
    import httpx

    limits = httpx.Limits(max_connections=THREADS)
    return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=120, limits=limits)


def analyst(url: str, custodian: Any, name: str) -> Analyst:
    """A new analyst with a key and a grant."""
    assert custodian.post("/v1/principals", json={"name": name, "role": "analyst"}).status_code == 201
    key = custodian.post(f"/v1/principals/{name}/keys", json={}).json()["key"]
    within = {"measure": "PureDP", "epsilon": 100}
    granted = custodian.post("/v1/data-sets/people/grants", json={"to": name, "within": within})
    return Analyst(url, key, granted.json()["session"])


def posted(who: Analyst, path: str, body: object) -> None:
    """Post something that must succeed."""
    sent = who.http.post(path, json=body)
    assert sent.status_code == 201, sent.text


def waits(bob: Analyst, process: int) -> dict[str, list[tuple[float, float]]]:
    """How long asks, reads and calls of /health take by the clock, and how much CPU time the service used meanwhile."""
    calls: dict[str, Callable[[], Any]] = {
        "ask": lambda: bob.http.post(f"/v1/sessions/{bob.session}/questions", json=COUNT),
        "read": lambda: bob.http.get(f"/v1/sessions/{bob.session}"),
        "call of /health": lambda: bob.http.get("/health"),
    }
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    until = time.perf_counter() + SECONDS
    while time.perf_counter() < until:
        for name, call in calls.items():
            began, cpu = time.perf_counter(), cpu_of(process)
            sent = call()
            assert sent.status_code in (200, 201), sent.text
            found[name].append((time.perf_counter() - began, cpu_of(process) - cpu))
        time.sleep(PAUSE)
    return found


@contextmanager
def attacking(url: str, key: str, attack: tuple[str, str, object] | None) -> Iterator[None]:
    """While another process sends one request again and again, from many threads."""
    if attack is None:
        yield
        return
    process = subprocess.Popen([sys.executable, "-m", "bench.starving", url, key, json.dumps(attack)])
    time.sleep(2)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def attack(url: str, key: str, method: str, path: str, body: object) -> None:
    """Send a request again and again, until this process is killed."""
    http = client(url, key)

    def send() -> None:
        while True:
            answer = http.request(method, path, json=body)
            if answer.status_code == 429:
                time.sleep(0.05)

    for _ in range(THREADS):
        threading.Thread(target=send).start()


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, Any, int]]:
    """`counterpoint serve` over a table of 200 people, the custodian's client, and the process."""
    lines = "".join(f"{number},{number * 997},n{number}\n" for number in range(200))
    (folder / "people.csv").write_text("person,big,note\n" + lines, encoding="utf-8")
    (folder / "c.toml").write_text(CONFIG, encoding="utf-8")
    command = [sys.executable, "-u", "-m", "counterpoint", "serve", "--config", "c.toml", "--port", "0"]
    server = subprocess.Popen(
        [*command, "--log-level", "error"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert server.stdout is not None
        said = ""
        while "stop it" not in said:
            said += server.stdout.readline() or "stop it"
        url, key = re.search(r"https?://\S+", said), re.search(r"cp_\S+", said)
        assert url is not None and key is not None, said
        yield url[0], client(url[0], key[0]), server.pid
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


if __name__ == "__main__":
    attack(sys.argv[1], sys.argv[2], *json.loads(sys.argv[3]))
