"""Starting and stopping the service: one process over any ledger, or several workers over one in PostgreSQL.

The process that is started opens everything once, so that a mistake in the configuration is an error before anything is
served, and makes the first custodian's key. A worker opens sessions of its own. SIGTERM and SIGINT stop it: running
requests are finished, no new ones are taken, and the ledgers are closed.

>>> address("127.0.0.1", 8000, tls=False)
'http://127.0.0.1:8000'
"""

import ipaddress
import logging.config
import socket
from collections.abc import Callable
from contextlib import closing
from dataclasses import fields
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import uvicorn
from litestar import Litestar
from uvicorn.supervisors import Multiprocess

from counterpoint.errors import InvalidParameter
from counterpoint.service.app import application
from counterpoint.service.house import House
from counterpoint.service.identity import Role
from counterpoint.service.limits import Limits
from counterpoint.service.operating import logs
from counterpoint.service.operating.config import Settings
from counterpoint.service.operating.opening import open_house

FIRST = "custodian"
"""The principal that the first start makes."""
LEVELS = ("debug", "info", "warning", "error")
"""What the log may tell of; each request is a line of info."""
_STARTING = 120
"""Seconds after which a worker that does not answer its supervisor is replaced: binding large data takes a while."""
_STOPPING = 30
"""Seconds that running requests have to finish once the service is stopped."""


class Listening(NamedTuple):
    """Where the service listens, and how."""

    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    certificate: str | None = None
    private_key: str | None = None
    log_level: str = "warning"


def serve(settings: Settings, listening: Listening, say: Callable[[str], None]) -> None:
    """Serve until a signal stops it. `say` shows the address, the signer and, first, the custodian's key."""
    _check(settings, listening)
    logging.config.dictConfig(logs.configuration(listening.log_level))  # before the ledger is opened, which may warn
    limits = limits_of(settings)
    with closing(open_house(settings)) as house, listener_at(listening) as listener:
        host, port = listener.getsockname()[:2]
        key, names = first_key(house), ", ".join(house.names)
        say(f"serving {names or 'no data sets'} at {address(host, port, listening.certificate is not None)}")
        if listening.certificate is None and not ipaddress.ip_address(host).is_loopback:
            say("without TLS, keys can be read on the way: give --certificate, or put a proxy with TLS in front")
        if key is not None:
            say(f"the key of {FIRST!r}, which is shown this once: {key}")
        say(f"records and receipts are signed with the public key {house.signer}")
        say("stop it with Ctrl-C, or SIGTERM")
        if listening.workers == 1:
            uvicorn.Server(server_config(listening, partial(_closing, house, limits))).run(sockets=[listener])
        else:
            house.close()
            with TemporaryDirectory(prefix="counterpoint-") as counts:
                worker = partial(_worker, settings, Path(counts))
                Multiprocess(server_config(listening, worker), sockets=[listener]).run()


def server_config(listening: Listening, factory: Callable[[], Litestar]) -> uvicorn.Config:
    """How uvicorn serves an application."""
    return uvicorn.Config(
        factory,
        factory=True,
        workers=listening.workers,
        ssl_certfile=listening.certificate,
        ssl_keyfile=listening.private_key,
        timeout_graceful_shutdown=_STOPPING,
        timeout_worker_healthcheck=_STARTING,
        access_log=False,
        server_header=False,
        log_config=logs.configuration(listening.log_level),
    )


def first_key(house: House) -> str | None:
    """The key of a first custodian, if the ledger has no principals; of several processes one makes it."""
    if house.identity.principals():
        return None
    try:
        house.identity.add(FIRST, Role.CUSTODIAN)
    except InvalidParameter:  # another process has made it meanwhile
        return None
    return house.identity.new_key(FIRST).shown()


def limits_of(settings: Settings) -> Limits:
    """The limits that the configuration says; the others are as they are by default."""
    known = [field.name for field in fields(Limits)]
    for name in settings.limits:
        if name not in known:
            raise InvalidParameter(f"there is no limit {name!r}; there are: {', '.join(known)}")
    return Limits(**settings.limits)  # type: ignore[arg-type]  # numbers, which Limits checks


def address(host: str, port: int, tls: bool) -> str:
    """The URL of a service."""
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def _worker(settings: Settings, counts: Path) -> Litestar:
    """What a worker serves; each opens its own connections, and all count into one folder."""
    return _closing(open_house(settings), limits_of(settings), counts)


def _closing(house: House, limits: Limits, counts: Path | None = None) -> Litestar:
    """The application, which closes the ledgers when it stops."""
    app = application(house, limits, counts)
    app.on_shutdown.append(house.close)
    return app


def _check(settings: Settings, listening: Listening) -> None:
    if listening.workers < 1:
        raise InvalidParameter(f"workers is a number from 1, not {listening.workers}")
    if listening.workers > 1 and not settings.place.in_postgres:
        raise InvalidParameter(
            f"an SQLite ledger serves one process, and {listening.workers} workers were asked for: leave --workers "
            "out, or keep the ledger in PostgreSQL (--ledger postgresql://...)"
        )
    if listening.log_level not in LEVELS:
        raise InvalidParameter(f"log-level is one of {', '.join(LEVELS)}, not {listening.log_level!r}")
    check_tls(listening)


def check_tls(listening: Listening) -> None:
    """TLS is asked for as a whole, or not at all."""
    if (listening.certificate is None) != (listening.private_key is None):
        raise InvalidParameter("TLS needs both --certificate and --private-key")


def listener_at(listening: Listening) -> socket.socket:
    """The socket to serve on; `InvalidParameter` if it cannot be had."""
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((listening.host, listening.port))
        listener.listen()  # a client that has read the address waits until the first worker is there
    except OSError as error:
        listener.close()
        raise InvalidParameter(f"cannot listen at {listening.host}:{listening.port}: {error.strerror}") from None
    listener.set_inheritable(True)
    return listener
