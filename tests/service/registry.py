"""A service for tests: a table, a stream, and people of every role, in one process."""

from contextlib import contextmanager

import pyarrow
from litestar.testing import TestClient

import counterpoint as cp
from counterpoint.service.app import DEFAULT, application
from counterpoint.service.identity import Role
from counterpoint.service.registry import Registry

PEOPLE = {
    "carol": Role.CUSTODIAN,
    "ann": Role.ANALYST,
    "bob": Role.ANALYST,
    "olga": Role.AUDITOR,
    "paul": Role.PRODUCER,
}
AGES = [20, 30, 40, 50, 60] * 20


def table(ages=AGES):
    rows = pyarrow.table(
        {"person": [str(number) for number in range(len(ages))], "age": ages, "state": ["CA"] * len(ages)}
    )
    return cp.Table(
        rows,
        unit="person",
        rows_per_unit=1,
        columns={"age": cp.number(0, 100), "state": cp.category(["CA", "NY"])},
        key=bytes(32),
    )


def staff():
    return cp.LiveTable(unit="person", rows_per_unit=1, key="row", columns={"age": cp.number(0, 100)})


class Caller:
    """Calls the service as each of its people."""

    def __init__(self, registry, client):
        self.registry, self.client = registry, client
        self.keys = {}
        for name, role in PEOPLE.items():
            registry.identity.add(name, role)
            self.keys[name] = registry.identity.new_key(name).shown()

    def __call__(self, who, method, url, json=None, *, id=None, key=None):
        headers = {} if who is None else {"Authorization": f"Bearer {key or self.keys[who]}"}
        if id is not None:
            headers["Idempotency-Key"] = id
        return self.client.request(method, url, json=json, headers=headers)

    def granted(self, to="ann", epsilon=1, data_set="people", **more):
        """The id of a new session."""
        body = {"to": to, "within": {"measure": "PureDP", "epsilon": epsilon}, **more}
        made = self("carol", "POST", f"/v1/data-sets/{data_set}/grants", body)
        assert made.status_code == 201, made.text
        return made.json()["session"]

    def launched(self, session, who="ann", **mechanism):
        """The id of a new handle."""
        body = {"mechanism": mechanism or {"mechanism": "Laplace", "epsilon": 0.1, "asks": 10}}
        made = self(who, "POST", f"/v1/sessions/{session}/launches", body)
        assert made.status_code == 201, made.text
        return made.json()["handle"]


@contextmanager
def served(folder, ages=AGES, limits=DEFAULT, counts=None):
    """The service, with its callers."""
    registry = Registry(cp.Durable(str(folder / "ledger.db")))
    registry.register("people", lambda: table(ages), cp.Filter(cp.PureDP(4)))
    registry.register("visits", lambda: cp.Stream(bound=1), cp.Filter(cp.PureDP(4)))
    registry.register("staff", staff, cp.Filter(cp.PureDP(4)))
    with TestClient(application(registry, limits, counts), raise_server_exceptions=False) as client:
        yield Caller(registry, client)
    registry.close()
