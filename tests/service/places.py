"""The same session in several places: in this process, behind a service, and behind a service that is awaited."""

import asyncio
import inspect
import socket
import threading
from contextlib import contextmanager

import httpx
import pyarrow
import uvicorn
from litestar.testing import TestClient

import counterpoint as cp
from counterpoint.client.calls import Remote
from counterpoint.service.app import application
from counterpoint.service.identity import Role
from counterpoint.service.registry import Registry

ROLES = {
    "carol": Role.CUSTODIAN,
    "ann": Role.ANALYST,
    "bob": Role.ANALYST,
    "olga": Role.AUDITOR,
    "paul": Role.PRODUCER,
}
URL = "http://localhost"
PURE, APPROXIMATE = (
    (cp.PureDP(10**5), cp.PureDP(10**4)),
    (cp.ApproxDP(10**6, "0.1"), cp.ApproxDP(10**5, "0.01")),
)
"""Budgets of a data set, and of ann in it: so much that answers can be had without noise, and compared."""


def people(called="p"):
    """A table of a hundred people."""
    rows = pyarrow.table(
        {
            "person": [f"{called}{number}" for number in range(100)],
            "age": [20, 30, 40, 50, 60] * 20,
            "hours": [0.5, 1.5, 2.5, 3.5, 4.5] * 20,
            "state": (["CA"] * 3 + ["NY"] * 2) * 20,
            "town": ["here", "there"] * 50,
        }
    )
    columns = {
        "age": cp.number(0, 100, units="years"),
        "hours": cp.number(0, 10, step="0.5"),
        "state": cp.category(["CA", "NY"]),
        "town": cp.text(),
    }
    return cp.Table(rows, unit="person", rows_per_unit=1, columns=columns, key=bytes(32))


def folks():
    """As many others, as a ledger has one budget for the same rows."""
    return people("f")


def visits():
    """A stream of records."""
    return cp.Stream(fields={"page": cp.category(["home", "shop"]), "seconds": cp.number(0, 600)})


def staff():
    """A live table."""
    return cp.LiveTable(unit="person", rows_per_unit=2, key="row", columns={"age": cp.number(0, 100)})


SOURCES = {
    "people": (people, *PURE),
    "folks": (folks, *APPROXIMATE),
    "visits": (visits, *PURE),
    "staff": (staff, *PURE),
}
"""The data sets; the budget of folks is for every measure."""


class Place:
    """Where sessions live: `session(name)` is ann's, `whole(name)` the custodian's; `stream` and `table` take data."""

    def __init__(self, connect):
        self.connect = connect
        self._granted = {}

    def stream(self, name):
        return self.connect("paul").stream(name)

    def table(self, name):
        return self.connect("paul").table(name)

    def whole(self, name):
        return self.connect("carol").session(name)

    def session(self, name):
        if name not in self._granted:
            self._granted[name] = self.whole(name).grant("ann", SOURCES[name][2])
        return self.connect("ann").session(name)


class LocalPlace:
    """The same in this process."""

    def __init__(self):
        self._sources = {name: make() for name, (make, *_) in SOURCES.items()}
        self._whole = {
            name: cp.Session(source, within=SOURCES[name][1], name=name) for name, source in self._sources.items()
        }
        self._granted = {}

    def whole(self, name):
        return self._whole[name].acting_as("carol")

    def session(self, name):
        if name not in self._granted:
            self._granted[name] = self.whole(name).grant("ann", SOURCES[name][2])
        return self._granted[name]

    def stream(self, name):
        return self._sources[name]

    table = stream


class Awaited:
    """What is called over an asynchronous connection, each call awaited at once."""

    def __init__(self, remote, run):
        self._remote, self._run = remote, run

    def __getattr__(self, name):
        return self._settled(getattr(self._remote, name))

    def __getitem__(self, key):
        return self._settled(self._remote[key])

    def _settled(self, value):
        if inspect.isawaitable(value):
            return self._settled(self._run(value))
        if isinstance(value, Remote):
            return Awaited(value, self._run)
        if type(value) is tuple and any(isinstance(part, Remote) for part in value):
            return tuple(map(self._settled, value))
        return (lambda *given, **options: self._called(value, given, options)) if inspect.ismethod(value) else value

    def _called(self, method, given, options):
        return self._settled(method(*(one._remote if isinstance(one, Awaited) else one for one in given), **options))


@contextmanager
def registry(folder):
    """The data sets and the people of a service, with their keys."""
    kept = Registry(cp.Durable(str(folder / "ledger.db")))
    for name, (make, whole, _) in SOURCES.items():
        kept.register(name, make, cp.Filter(whole))
    keys = {}
    for name, role in ROLES.items():
        kept.identity.add(name, role)
        keys[name] = kept.identity.new_key(name).shown()
    yield kept, keys
    kept.close()


@contextmanager
def in_process(folder):
    """A service in this process, and connections that wait."""
    with registry(folder) as (kept, keys), TestClient(application(kept), raise_server_exceptions=False) as client:

        def connect(who, transport=client._transport):
            return cp.connect(URL, key=keys[who], transport=transport)

        place = Place(connect)
        place.registry, place.keys, place.transport = kept, keys, client._transport
        yield place


@contextmanager
def awaited(folder):
    """A service in this process, and connections that are awaited."""
    with registry(folder) as (kept, keys), asyncio.Runner() as runner:

        async def settled(coroutine):
            return await coroutine

        def connect(who):
            transport = httpx.ASGITransport(application(kept), raise_app_exceptions=False)
            connection = cp.connect_async(URL, key=keys[who], transport=transport)
            return Awaited(connection, lambda awaitable: runner.run(settled(awaitable)))

        yield Place(connect)


@contextmanager
def over_a_socket(folder):
    """A service behind a port of this machine."""
    with registry(folder) as (kept, keys), socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(application(kept), log_level="error", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        opened = []

        url = f"http://127.0.0.1:{listening.getsockname()[1]}"

        def connect(who):
            opened.append(cp.connect(url, key=keys[who]))
            return opened[-1]

        place = Place(connect)
        place.url, place.keys = url, keys
        try:
            yield place
        finally:
            for connection in opened:
                connection.close()
            server.should_exit = True
            thread.join()


@contextmanager
def local(_folder):
    """No service."""
    yield LocalPlace()


PLACES = {"local": local, "served": in_process, "awaited": awaited}
