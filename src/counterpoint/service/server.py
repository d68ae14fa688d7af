"""Starting and stopping the service: one process over any ledger, or several workers over one in PostgreSQL.

Everything is opened once before it is served, so that a mistake in the configuration is an error first, and the first
custodian's key is made. A worker opens sessions of its own. SIGTERM and SIGINT stop it: running requests are finished,
no new ones are taken, and the ledgers are closed; what takes longer than a few seconds is cut off, and loses nothing.

>>> address("127.0.0.1", 8000, tls=False)
'http://127.0.0.1:8000'
"""

import asyncio
import gc
import ipaddress
import logging.config
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import fields
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import uvicorn
from litestar import Litestar

from counterpoint.errors import InvalidParameter
from counterpoint.service import metrics, tls
from counterpoint.service.app import application
from counterpoint.service.config import Settings, open_registry
from counterpoint.service.connections import ConnectionGuard, GuardedListener, GuardedProtocol
from counterpoint.service.identity import Role
from counterpoint.service.limits import Limits
from counterpoint.service.registry import Registry
from counterpoint.service.supervisor import STOPPING, Supervisor, end_in_time, in_a_fork, keep_beating

FIRST = "custodian"
"""The principal that the first start makes."""
LEVELS = ("debug", "info", "warning", "error")
"""What the log may tell of; each request is a line of info."""
_SHORT_TURNS = 0.0005
"""Seconds after which a thread that computes gives way to another: asks wait for the interpreter at every commit."""


class Listening(NamedTuple):
    """Where the service listens, and how."""

    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    certificate: str | None = None
    private_key: str | None = None
    log_level: str = "warning"


def serve(settings: Settings, listening: Listening, say: Callable[[str], None], refresh: Sequence[str] = ()) -> None:
    """Serve until a signal stops it. `say` shows the address, the signer and, first, the custodian's key.

    The data of the data sets in `refresh` become the next version first.
    """
    _check(settings, listening)
    logging.config.dictConfig(metrics.configuration(listening.log_level))  # before the ledger is opened, which may warn
    limits = limits_of(settings)
    with ExitStack() as opened:
        if listening.workers == 1:
            registry = opened.enter_context(closing(open_registry(settings, refresh)))
            prepared = _prepared(registry)
        else:  # workers are forks of this process, which must have opened nothing
            prepared = in_a_fork(partial(_prepared_and_closed, settings, refresh))
        listener = opened.enter_context(listener_at(listening))
        host, port = listener.getsockname()[:2]
        say(f"serving {prepared.names or 'no data sets'} at {address(host, port, listening.certificate is not None)}")
        if listening.certificate is None and not ipaddress.ip_address(host).is_loopback:
            say("without TLS, keys can be read on the way: give --certificate, or put a proxy with TLS in front")
        for name, why in prepared.set_aside.items():
            say(f"not serving {name}. {why}")
        if prepared.key is not None:
            say(f"the key of {FIRST!r}, shown only once: {prepared.key}")
        say(f"records and receipts are signed with the public key {prepared.signer}")
        for name in (name for name, data in settings.data_sets.items() if data.second_budget):
            say(f"{name} has a second budget for its rows: what is lost there adds to what is lost elsewhere")
        say("stop it with Ctrl-C, or SIGTERM")
        if listening.workers == 1:
            run_server(listening, listener, limits, partial(_closing, registry, limits))
        else:
            logging.config.dictConfig(metrics.configuration(listening.log_level))
            counts = opened.enter_context(TemporaryDirectory(prefix="counterpoint-"))
            Supervisor(partial(_work, settings, listening, listener, Path(counts)), listening.workers).run()


class Prepared(NamedTuple):
    """What the operator is told: the first custodian's key, if it was made just now, and what is served."""

    key: str | None
    names: str
    signer: str
    set_aside: dict[str, str]


def _prepared(registry: Registry) -> Prepared:
    return Prepared(first_key(registry), ", ".join(registry.names), registry.signer, registry.set_aside)


def _prepared_and_closed(settings: Settings, refresh: Sequence[str]) -> Prepared:
    with closing(open_registry(settings, refresh)) as registry:
        return _prepared(registry)


def run_server(listening: Listening, listener: socket.socket, limits: Limits, make: Callable[[], Litestar]) -> None:
    """Serve an application until a signal stops it."""
    guard = ConnectionGuard(limits, tls=listening.certificate is not None)

    def factory() -> Litestar:
        made = make()
        made.on_startup.append(_prefer_short_turns)
        made.on_startup.append(end_in_time)
        return made

    guarded = GuardedListener(listener, guard)
    uvicorn.Server(_server_config(listening, guard, factory)).run(sockets=[guarded])


def _prefer_short_turns() -> None:
    """Let no request wait long for the interpreter: threads take short turns, and collections skip what is code."""
    sys.setswitchinterval(_SHORT_TURNS)
    gc.collect()
    gc.freeze()


def _server_config(listening: Listening, guard: ConnectionGuard, factory: Callable[[], Litestar]) -> uvicorn.Config:
    """How uvicorn serves an application: over our connections, whatever else is installed."""
    return uvicorn.Config(
        factory,
        factory=True,
        loop="asyncio",
        http=partial(GuardedProtocol, guard),  # type: ignore[arg-type]  # it is called as a class is
        ws="none",
        ssl_certfile=listening.certificate,
        ssl_keyfile=listening.private_key,
        timeout_graceful_shutdown=STOPPING,
        access_log=False,
        server_header=False,
        log_config=metrics.configuration(listening.log_level),
    )


def first_key(registry: Registry) -> str | None:
    """The key of a first custodian, if the ledger has no principals; of several processes one makes it."""
    if registry.identity.principals():
        return None
    try:
        registry.identity.add(FIRST, Role.CUSTODIAN)
    except InvalidParameter:  # another process has made it meanwhile
        return None
    return registry.identity.new_key(FIRST).shown()


def limits_of(settings: Settings) -> Limits:
    """The limits that the configuration says; the others are as they are by default."""
    known = [field.name for field in fields(Limits)]
    for name in settings.limits:
        if name not in known:
            raise InvalidParameter(f"there is no limit {name!r}; there are: {', '.join(known)}")
    given = {name: int(value) if float(value).is_integer() else value for name, value in settings.limits.items()}
    return Limits(**given)  # type: ignore[arg-type]  # numbers, which Limits checks


def address(host: str, port: int, tls: bool) -> str:
    """The URL of a service."""
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def _work(settings: Settings, listening: Listening, listener: socket.socket, counts: Path, beating: Connection) -> None:
    """Serve as one of several workers; each opens its own connections, and all count into one folder."""
    limits, kept = limits_of(settings), set()

    def make() -> Litestar:
        made = _closing(open_registry(settings), limits, counts)
        made.on_startup.append(lambda: kept.add(asyncio.get_running_loop().create_task(keep_beating(beating))))
        return made

    run_server(listening, listener, limits, make)


def _closing(registry: Registry, limits: Limits, counts: Path | None = None) -> Litestar:
    """The application, which closes the ledgers when it stops."""
    app = application(registry, limits, counts)
    app.on_shutdown.append(registry.close)
    return app


def _check(settings: Settings, listening: Listening) -> None:
    if listening.workers < 1:
        raise InvalidParameter(f"workers must be at least 1, not {listening.workers}")
    if listening.workers > 1 and not settings.place.in_postgres:
        raise InvalidParameter(
            f"an SQLite ledger serves one process, and {listening.workers} workers were asked for: leave --workers "
            "out, or keep the ledger in PostgreSQL (--ledger postgresql://...)"
        )
    if listening.log_level not in LEVELS:
        raise InvalidParameter(f"log-level is one of {', '.join(LEVELS)}, not {listening.log_level!r}")
    tls.check(listening.certificate, listening.private_key)


def listener_at(listening: Listening) -> socket.socket:
    """The socket to serve on; `InvalidParameter` if it cannot be opened."""
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    # asyncio sends small packets at once only on sockets that name TCP: else each response waits 40 ms for an ACK
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((listening.host, listening.port))
        listener.listen()  # a client that has read the address waits until the first worker is there
    except OSError as error:
        listener.close()
        raise InvalidParameter(f"cannot listen at {listening.host}:{listening.port}: {error.strerror}") from None
    listener.set_inheritable(True)
    return listener
