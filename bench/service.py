"""Asks over HTTP beside the same asks in process and an empty Litestar handler: CPU, waits, and what stays in memory.

The service, the empty handler and the load generator (`generator.py`) are processes of their own, so the CPU of each is
counted apart. Every client asks a mechanism of its own. All send the same bytes, also to the empty handler. The four
ways take turns, and medians of the rounds are compared.

A served ask brings a signed receipt. So there are two ratios: beside an ask in process that makes its receipt too, and
beside one that makes none, for which the service pays a signature that the other side does not.

The target of 1.3x is missed: 1.34x at 1 client, 1.53x at 8, 1.38x at 64, measured on a machine without other work. In
process, more threads make an ask cheaper, as asks share commits; a service has the fixed price of a request, and its
event loop waits for the interpreter's lock behind the threads of handlers.

    python -m bench service
    python -m bench memory      the server's memory after 10,000 and after 100,000 asks; takes some minutes
"""

import json
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
from contextlib import ExitStack, contextmanager
from itertools import count as counting
from pathlib import Path
from typing import Any, NamedTuple

from bench.generator import Load, load
from bench.table import Row, seconds

ASKS = 256
ROUNDS = 5
CLIENTS = (1, 8, 64)
COUNT = {"request": {"request": "count", "where": "age > 40"}}
WARM = 64


class Measured(NamedTuple):
    """What asks took in one way: CPU for each, and their waits."""

    cpu: float
    load: Load


class Server(NamedTuple):
    """A server in a process of its own."""

    port: int
    process: int
    key: str

    def measure(self, files: list[Path]) -> Measured:
        """`ASKS` requests from as many clients as there are files."""
        before = cpu_of(self.process)
        found = load(self.port, ASKS, files)
        return Measured((cpu_of(self.process) - before) / len(found.waits), found)


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        empty = stack.enter_context(started("empty", folder))
        service = stack.enter_context(started("service", folder))
        bare, signed = stack.enter_context(in_process(folder))
        files = asking(service, folder, max(CLIENTS))
        ways = {
            "bare": bare,
            "signed": signed,
            "empty": lambda clients: empty.measure(files[:clients]),
            "served": lambda clients: service.measure(files[:clients]),
        }
        found = {clients: _in_turns(ways, clients) for clients in CLIENTS}
        for clients, got in found.items():
            cpu = {way: statistics.median(one.cpu for one in rounds) for way, rounds in got.items()}
            what = f"CPU of a served ask, {_spell(clients)}"
            signed_too = "an ask in process that makes its receipt, and an empty handler"
            yield Row(what, cpu["served"], cpu["signed"] + cpu["empty"], signed_too, at_most=1.3)
            yield Row(what, cpu["served"], cpu["bare"] + cpu["empty"], "the same without the receipt")
        for clients, got in found.items():
            for way, against in (("served", "signed"), ("empty", "served")):
                yield from _waits(way, got[way], against, got[against], clients)
        for clients, got in found.items():
            generator = statistics.median(one.load.cpu / len(one.load.waits) for one in got["served"])
            server = statistics.median(one.cpu for one in got["served"])
            yield Row(f"CPU of the load generator for an ask, {_spell(clients)}", generator, server, "the server's own")


def _in_turns(ways: dict[str, Callable[[int], Measured]], clients: int) -> dict[str, list[Measured]]:
    rounds = [{way: measure(clients) for way, measure in ways.items()} for _ in range(ROUNDS)]
    return {way: [one[way] for one in rounds] for way in ways}


def _waits(way: str, ours: list[Measured], against: str, peers: list[Measured], clients: int) -> Iterator[Row]:
    names = {"served": "a served ask", "signed": "an ask in process with its receipt", "empty": "an empty handler"}
    rate, peer_rate = (statistics.median(one.load.rate for one in got) for got in (ours, peers))
    for share, name in ((0.5, "p50"), (0.99, "p99")):
        mine, other = (statistics.median(one.load.at(share) for one in got) for got in (ours, peers))
        what = f"{name} of {names[way]}, {_spell(clients)} ({rate:.0f} a second)"
        yield Row(what, mine, other, f"{names[against]} ({peer_rate:.0f} a second)")


def _spell(clients: int) -> str:
    return "1 client" if clients == 1 else f"{clients} clients"


@contextmanager
def in_process(folder: str) -> Iterator[tuple[Callable[[int], Measured], Callable[[int], Measured]]]:
    """Ways to ask on a durable ledger without HTTP, from as many threads as clients: bare, and with a receipt."""
    from counterpoint import Laplace, PureDP, Session, count

    request, ids = count(where="age > 40"), counting()
    with Session(people(), within=PureDP(1000), ledger=f"{folder}/alone.db") as session:
        handles = [session.launch(Laplace(1, asks=10**6)) for _ in range(max(CLIENTS))]

        def bare(number: int) -> None:
            handles[number].ask(request)

        def signed(number: int) -> None:
            own = f"ask {next(ids)}"
            handles[number].ask(request, id=own)
            handles[number]._receipt(own)

        yield _threads(bare), _threads(signed)


def _threads(ask: Callable[[int], None]) -> Callable[[int], Measured]:
    def measured(clients: int) -> Measured:
        each = max(1, ASKS // clients)
        with ThreadPoolExecutor(clients) as pool:
            list(pool.map(ask, range(clients)))
            cpu, began = time.process_time(), time.perf_counter()
            waits = pool.map(lambda number: [seconds(lambda: ask(number)) for _ in range(each)], range(clients))
            every = sorted(wait for several in waits for wait in several)
            lasted, cpu = time.perf_counter() - began, time.process_time() - cpu
        return Measured(cpu / len(every), Load(every, lasted, cpu))

    return measured


def people() -> Any:
    """A small table."""
    import counterpoint as cp

    columns = {"age": cp.number(0, 100)}
    return cp.Table(cp.datasets.people(), unit="person_id", rows_per_unit=1, columns=columns, key=bytes(32))


@contextmanager
def started(what: str, folder: str) -> Iterator[Server]:
    """The service, or an empty handler, in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "bench.service", what, folder, str(port)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        key = server.stdout.readline().strip()
        _wait_for(port)
        yield Server(port, server.pid, key)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


def _wait_for(port: int) -> None:
    for _ in range(300):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError("the service did not start")


def asking(service: Server, folder: str, clients: int, data_set: str = "people") -> list[Path]:
    """A file for each client with its request: an ask of a mechanism of its own."""
    import httpx

    body = {"mechanism": {"mechanism": "Laplace", "epsilon": 1, "asks": 10**6}}
    headers = {"Authorization": f"Bearer {service.key}"}
    files = []
    with httpx.Client(base_url=f"http://127.0.0.1:{service.port}", headers=headers, timeout=60) as client:
        for number in range(clients):
            made = client.post(f"/v1/sessions/{data_set}/launches", json=body)
            assert made.status_code == 201, made.text
            path = Path(folder) / f"{data_set} {number}"
            path.write_bytes(_request(f"/v1/handles/{made.json()['handle']}/asks", service.key))
            files.append(path)
        load(service.port, WARM, files[:1])
    return files


def _request(path: str, key: str) -> bytes:
    body = json.dumps(COUNT)
    lines = (
        f"POST {path} HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: Bearer {key}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    )
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


def cpu_of(process: int) -> float:
    """The CPU seconds that a process and its children have used."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + sum(cpu_of(int(one)) for one in children)


def serve(what: str, folder: str, port: int) -> None:
    """The process of a server: a table of made-up people and a custodian, or a handler that does nothing."""
    import uvicorn

    from counterpoint import Durable, Filter, PureDP
    from counterpoint.service.app import application
    from counterpoint.service.identity import Role
    from counterpoint.service.limits import Limits
    from counterpoint.service.registry import Registry

    if what == "empty":
        print(flush=True)
        uvicorn.run(_empty(), host="127.0.0.1", port=port, log_level="warning", access_log=False)
        return
    registry = Registry(Durable(f"{folder}/served.db"))
    registry.register("people", people, Filter(PureDP(1000)))
    registry.identity.add("carol", Role.CUSTODIAN)
    print(registry.identity.new_key("carol").shown(), flush=True)
    limits = Limits(per_second=10**6, burst=10**6)
    uvicorn.run(application(registry, limits), host="127.0.0.1", port=port, log_level="warning", access_log=False)
    registry.close()


def _empty() -> Any:
    from litestar import Litestar, post

    @post("/{rest:path}")
    async def empty() -> dict[str, str]:
        return {}

    return Litestar([empty], openapi_config=None)


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2], int(sys.argv[3]))
