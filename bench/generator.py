"""A light load generator: the same bytes again and again, over kept connections, from one thread of one process.

It shares the machine with what it measures, so it must cost little: it parses nothing of a response but its status and
its length. What it has cost is in its report.

    python -m bench.generator PORT REQUESTS FILE ...      a connection for each file, which holds the request
"""

import json
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

_LARGEST = 2**16


class Load(NamedTuple):
    """What some requests took: how long each waited, sorted, how long all of them lasted, and the generator's CPU."""

    waits: list[float]
    lasted: float
    cpu: float

    def at(self, share: float) -> float:
        """The wait that this share of the requests did not exceed."""
        return self.waits[min(len(self.waits) - 1, int(share * len(self.waits)))]

    @property
    def rate(self) -> float:
        """Requests a second."""
        return len(self.waits) / self.lasted


def load(port: int, requests: int, files: Sequence[Path]) -> Load:
    """`requests` requests from clients that each send the request in their file, by a process of its own."""
    command = [sys.executable, "-m", "bench.generator", str(port), str(requests), *map(str, files)]
    said = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return Load(**said)


@dataclass
class _Client:
    connection: socket.socket
    request: bytes
    left: int
    began: float = 0.0
    got: bytes = b""
    waits: list[float] = field(default_factory=list)

    def send(self) -> None:
        self.left -= 1
        self.got = b""
        self.began = time.perf_counter()
        self.connection.sendall(self.request)

    def receive(self) -> bool:
        """Take what has arrived; whether the response is whole."""
        self.got += self.connection.recv(_LARGEST)
        head, end, body = self.got.partition(b"\r\n\r\n")
        if not end:
            return False
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        if len(body) < length:
            return False
        if head[9:10] != b"2":
            raise SystemExit(f"the service answered: {self.got[:1000].decode()}")
        self.waits.append(time.perf_counter() - self.began)
        return True


def _run(port: int, requests: int, files: Sequence[str]) -> Load:
    each = max(1, requests // len(files))
    address = ("127.0.0.1", port)
    clients = [_Client(socket.create_connection(address), Path(name).read_bytes(), each) for name in files]
    selector, cpu, began = selectors.DefaultSelector(), time.process_time(), time.perf_counter()
    for client in clients:
        selector.register(client.connection, selectors.EVENT_READ, client)
        client.send()
    running = len(clients)
    while running:
        for key, _ in selector.select():
            if not key.data.receive():
                continue
            if key.data.left:
                key.data.send()
            else:
                selector.unregister(key.fileobj)
                running -= 1
    lasted, cpu = time.perf_counter() - began, time.process_time() - cpu
    return Load(sorted(wait for client in clients for wait in client.waits), lasted, cpu)


if __name__ == "__main__":
    print(json.dumps(_run(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])._asdict()))
