"""Asks over HTTP beside the same asks in process and an empty handler: CPU of the server, and how long they take.

The server is a process of its own, so that its CPU time is counted apart from that of the clients.

    python -m bench service
"""

import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench.table import Row, seconds

ASKS = 400
CLIENTS = (1, 8, 64)
COUNT = {"request": {"request": "count", "where": "age > 40"}}


class Load(NamedTuple):
    """What some requests took: CPU of the server for each, and the times that their clients waited, sorted."""

    server: float
    waits: list[float]
    lasted: float

    def at(self, share: float) -> float:
        """The wait that this share of the requests did not exceed."""
        return self.waits[min(len(self.waits) - 1, int(share * len(self.waits)))]


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        alone = in_process(folder)
        with served(folder) as (url, key, server):
            import httpx

            with httpx.Client() as client:
                handle = launched(client, url, key)
            loads = {}
            for clients in CLIENTS:
                empty = load(server, clients, asking(f"{url}/health", None, None))
                asks = load(server, clients, asking(f"{url}/v1/handles/{handle}/asks", key, COUNT))
                loads[clients] = asks
                beside = alone + empty.server
                what = f"CPU of the server for an ask, {clients} clients"
                yield Row(what, asks.server, beside, "an ask in process and an empty handler", at_most=1.3)
            for clients, asks in loads.items():
                rate = f"{len(asks.waits) / asks.lasted:.0f} a second"
                yield Row(
                    f"waiting for an ask, {clients} clients ({rate})",
                    asks.at(0.5),
                    asks.at(0.99),
                    "the 99th percentile",
                )


def in_process(folder: str) -> float:
    """CPU seconds of an ask on a durable ledger, without HTTP."""
    from counterpoint import Laplace, PureDP, Session, count

    with Session(people(), within=PureDP(10), ledger=f"{folder}/alone.db") as session:
        noisy = session.launch(Laplace(1, asks=10 * ASKS))
        request = count(where="age > 40")
        noisy.ask(request)
        rounds = [seconds(lambda: [noisy.ask(request) for _ in range(ASKS)], time.process_time) for _ in range(3)]
        return statistics.median(rounds) / ASKS


def people() -> Any:
    """A small table."""
    import counterpoint as cp

    columns = {"age": cp.number(0, 100)}
    return cp.Table(cp.datasets.people(), unit="person_id", rows_per_unit=1, columns=columns, key=bytes(32))


@contextmanager
def served(folder: str) -> Iterator[tuple[str, str, int]]:
    """A service in a process of its own: its address, a custodian's key, and its process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "bench.service", folder, str(port)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        key = server.stdout.readline().strip()
        url = f"http://127.0.0.1:{port}"
        _wait_for(url)
        yield url, key, server.pid
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


def _wait_for(url: str) -> None:
    import httpx

    for _ in range(300):
        try:
            if httpx.get(f"{url}/ready").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise TimeoutError("the service did not start")


def launched(client: Any, url: str, key: str) -> str:
    """A handle with asks enough."""
    body = {"mechanism": {"mechanism": "Laplace", "epsilon": 1, "asks": 100 * ASKS}}
    made = client.post(f"{url}/v1/sessions/people/launches", json=body, headers={"Authorization": f"Bearer {key}"})
    assert made.status_code == 201, made.text
    return str(made.json()["handle"])


def asking(url: str, key: str | None, body: object) -> Callable[[Any], None]:
    """One request of a client."""

    def ask(client: Any) -> None:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        got = client.get(url) if body is None else client.post(url, json=body, headers=headers)
        assert got.status_code in (200, 201), got.text

    return ask


def load(server: int, clients: int, ask: Callable[[Any], None]) -> Load:
    """What `ASKS` requests from some clients at once take, after a few that are not counted."""
    import httpx

    def one(_: int) -> list[float]:
        with httpx.Client(timeout=60) as client:
            ask(client)
            return [seconds(lambda: ask(client)) for _ in range(max(1, ASKS // clients))]

    with ThreadPoolExecutor(clients) as pool:
        before, started = cpu_of(server), time.perf_counter()
        waits = [wait for waits in pool.map(one, range(clients)) for wait in waits]
        lasted = time.perf_counter() - started
        spent = (cpu_of(server) - before) / (len(waits) + clients)
    return Load(spent, sorted(waits), lasted)


def cpu_of(process: int) -> float:
    """The CPU seconds that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def serve(folder: str, port: int) -> None:
    """The server's process: a table of made-up people, and a custodian."""
    import uvicorn

    from counterpoint import Durable, Filter, PureDP
    from counterpoint.service.app import application
    from counterpoint.service.house import House
    from counterpoint.service.identity import Role

    house = House(Durable(f"{folder}/served.db"))
    house.register("people", people, Filter(PureDP(10)))
    house.identity.add("carol", Role.CUSTODIAN)
    print(house.identity.new_key("carol").shown(), flush=True)
    uvicorn.run(application(house), host="127.0.0.1", port=port, log_level="warning", access_log=False)
    house.close()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
